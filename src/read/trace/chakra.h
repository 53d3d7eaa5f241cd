/* SPDX-License-Identifier: MIT */
/* What the reader and the writer of Chakra traces agree on. */
#ifndef KNEE_READ_TRACE_CHAKRA_H
#define KNEE_READ_TRACE_CHAKRA_H

#include "collective/collective_op.h"

/* Kinds of nodes. */
enum knee_chakra_type {
    KNEE_CHAKRA_COMPUTE = 4,
    KNEE_CHAKRA_SEND,
    KNEE_CHAKRA_RECEIVE,
    KNEE_CHAKRA_COLLECTIVE
};

/* Kinds of collectives, by Chakra's number; two of them are a reduce-scatter. */
#define KNEE_CHAKRA_OPS 10
extern const enum knee_op knee_chakra_ops[KNEE_CHAKRA_OPS];

#endif
