/* SPDX-License-Identifier: MIT */
#include "job/batch.h"

#include <math.h>

#define USUAL_TOKENS 4194304 /* 4Mi, what models of this size are trained with */

double knee_batch_of_tokens(double tokens, double seq)
{
    return fmax(1, rint(tokens / seq));
}

double knee_batch_usual(double seq)
{
    return knee_batch_of_tokens(USUAL_TOKENS, seq);
}

static double *field(const struct knee_keys *keys, void *object, size_t row)
{
    return (double *)(void *)((char *)object + keys->rows[row].offset);
}

knee_status knee_batch_settle(const struct knee_keys *keys, void *object, double seq,
                              struct knee_err *err)
{
    size_t batch = knee_keys_find(keys, "global-batch");
    size_t tokens = knee_keys_find(keys, "global-tokens");
    unsigned char *source = knee_keys_source(keys, object);
    knee_status status =
        knee_keys_settle(keys, object, batch, tokens,
                         "both global-batch (sequences) and global-tokens (tokens) are given",
                         "keep one of them", err);
    double given = *field(keys, object, tokens);
    if (status || isnan(given) || source[batch] == KNEE_DERIVED)
        return status;
    *field(keys, object, batch) = knee_batch_of_tokens(given, seq);
    source[batch] = KNEE_DERIVED;
    return KNEE_OK;
}
