/* SPDX-License-Identifier: MIT */
/* Which collective a name means, for all readers. */
#ifndef KNEE_COLLECTIVE_COLLECTIVE_OP_H
#define KNEE_COLLECTIVE_COLLECTIVE_OP_H

#include "knee_collective.h"

/* The collective that is named anywhere in a text: a kernel, an annotation, a file. "allreduce_",
 * "nccl:_all_gather_base", "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(...)",
 * "02_a100x8_allgather.log". A name at the start of a word counts before one inside of it:
 * "small_reduce" is a reduce. */
enum knee_op knee_op_from_name(const char *name, size_t length);

/* The collective that a word is, barriers too: KNEE_OP_UNKNOWN where the word says anything else.
 * knee_op_of() is the same for those that move data. */
enum knee_op knee_op_spelt(const char *word, size_t length);

#endif
