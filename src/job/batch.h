/* SPDX-License-Identifier: MIT */
/*
 * How large a step is. One rule for every command: --global-batch counts sequences (examples) of a
 * step over all workers, --global-tokens their tokens; a sequence has --seq of them. Inside there
 * are sequences only.
 */
#ifndef KNEE_JOB_BATCH_H
#define KNEE_JOB_BATCH_H

#include "base/keys.h"
#include "knee_job.h"

/* The two rows of an object with the fields global_batch and global_tokens. */
#define KNEE_BATCH_ROWS(type, least, most, heading, absent)                                        \
    KNEE_NUMBER(type, "global-batch", global_batch, KNEE_UNIT_COUNT, least, most, heading, absent, \
                "sequences per step over all GPUs"),                                               \
        KNEE_NUMBER(type, "global-tokens", global_tokens, KNEE_UNIT_COUNT, least, 1e18, heading,   \
                    "from --global-batch", "tokens per step over all GPUs; 4M is 4194304")

/* Sequences that hold so many tokens: the nearest whole number, at least 1. */
double knee_batch_of_tokens(double tokens, double seq);

/* The default global batch: the tokens that the model's authors trained it with (data/models.csv),
 * or 4Mi tokens; of a shape with adapters 128 sequences (Stanford Alpaca; QLoRA's authors take 16).
 */
double knee_batch_usual(int model, double seq);
double knee_batch_usual_of(const struct knee_shape *shape);

/* A step as it comes out; NaN: not known. */
struct knee_claim {
    double step_s, tokens, bytes_per_s;
};

/* Refuses what no machine or training run has: a step above an hour, a batch above 100M tokens, a
 * network below 1 MB/s. It is a slip in a unit. */
knee_status knee_claim_check(const struct knee_claim *claim, struct knee_err *err);

/* Makes sequences of the tokens, where those are given. A flag beats a file; two of a kind
 * contradict (KNEE_USAGE). Settling twice changes nothing. */
knee_status knee_batch_settle(const struct knee_keys *keys, void *object, double seq,
                              struct knee_err *err);

#endif
