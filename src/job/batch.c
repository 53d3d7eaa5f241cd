/* SPDX-License-Identifier: MIT */
#include "job/batch.h"

#include "base/error.h"
#include "base/number.h"

#include <math.h>

#define USUAL_TOKENS 4194304 /* 4Mi: Llama 2 and 3, BLOOM */
#define TUNING_BATCH 128

double knee_batch_of_tokens(double tokens, double seq)
{
    return fmax(1, rint(tokens / seq));
}

double knee_batch_usual(int model, double seq)
{
    const struct knee_model *named = model >= 0 ? knee_model_at((size_t)model) : NULL;
    bool published = named && !isnan(named->global_batch);
    return knee_batch_of_tokens(published ? named->global_batch * named->shape.seq : USUAL_TOKENS,
                                seq);
}

double knee_batch_usual_of(const struct knee_shape *shape)
{
    return shape->lora_rank > 0 ? TUNING_BATCH : knee_batch_usual(shape->model, shape->seq);
}

knee_status knee_claim_check(const struct knee_claim *claim, struct knee_err *err)
{
    const struct {
        bool wrong;
        double value;
        enum knee_unit unit;
        const char *what, *hint;
    } rows[] = {
        {claim->bytes_per_s < 1e6, claim->bytes_per_s, KNEE_UNIT_BYTES_PER_S,
         "no network is as slow as", "check the unit of --bandwidth, or add --force"},
        {claim->tokens > 1e8, claim->tokens, KNEE_UNIT_COUNT, "no run has a batch in tokens of",
         "--global-batch counts sequences, --global-tokens tokens; or add --force"},
        {claim->step_s > 3600, claim->step_s, KNEE_UNIT_SECONDS, "no run has a step of",
         "use more GPUs, check batch and bandwidth, or add --force"},
    };
    char value[32];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!rows[i].wrong)
            continue;
        knee_number_human(value, sizeof value, rows[i].value, rows[i].unit);
        knee_fail(err, KNEE_USAGE, "", "%s %s", rows[i].what, value);
        knee_hint(err, "%s", rows[i].hint);
        return KNEE_USAGE;
    }
    return KNEE_OK;
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
    knee_status status = knee_keys_settle(
        keys, object,
        &(struct knee_conflict){
            batch, tokens, "both global-batch (sequences) and global-tokens (tokens) are given",
            "keep one of them"},
        err);
    double given = *field(keys, object, tokens);
    if (status || isnan(given) || source[batch] == KNEE_DERIVED)
        return status;
    *field(keys, object, batch) = knee_batch_of_tokens(given, seq);
    source[batch] = KNEE_DERIVED;
    return KNEE_OK;
}
