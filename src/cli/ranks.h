/* SPDX-License-Identifier: MIT */
/* What the ranks of one command do together under mpirun; every rank makes the same calls. */
#ifndef KNEE_CLI_RANKS_H
#define KNEE_CLI_RANKS_H

#include "reach/runtime.h"

struct cli_run;

/* Under mpirun: joins the other ranks, and only the first one speaks. Alone *rt stays NULL. */
knee_status cli_join(struct cli_run *run, struct knee_runtime **rt);

/* Ranks with different options would deadlock: ends all of them with one error line. */
void cli_same_question(struct cli_run *run, struct knee_runtime *rt);

/* All ranks go on, or none does: the worst status of all. The first rank that failed speaks. `rt`
 * may be NULL: alone. */
knee_status cli_agree(struct cli_run *run, struct knee_runtime *rt, knee_status own);

/* The bytes of rank 0 everywhere. The others get theirs here; free() them. */
void cli_hand_out(struct knee_runtime *rt, char **data, size_t *length);

/* What every rank has, `size` bytes each, one after the other at rank 0: free() it. NULL at the
 * others. */
void *cli_collect(struct knee_runtime *rt, const void *mine, size_t size);

#endif
