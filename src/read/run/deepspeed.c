/* SPDX-License-Identifier: MIT */
/*
 * The plan from a DeepSpeed configuration: batch sizes, ZeRO stage, what is offloaded, precision.
 * "auto" means that DeepSpeed decides at launch: such keys are left open.
 */
#include "base/error.h"
#include "base/format.h"
#include "read/run/import.h"

#include <math.h>
#include <string.h>

static void take(struct knee_import *raw, const struct knee_json_values *v)
{
    bool on = v->kind == KNEE_JSON_TRUE;
    bool host = strcmp(v->text, "cpu") == 0 || strcmp(v->text, "nvme") == 0;
    if (strcmp(v->path, "zero_optimization") == 0)
        raw->zero_on = on; /* a bare bool is stage 1 */
    else if (strcmp(v->path, "bf16.enabled") == 0 || strcmp(v->path, "bfloat16.enabled") == 0)
        raw->bf16 = on;
    else if (strcmp(v->path, "fp16.enabled") == 0)
        raw->fp16 = on;
    else if (strcmp(v->path, "zero_optimization.offload_optimizer.device") == 0)
        raw->offload = host;
    else if (strcmp(v->path, "zero_optimization.offload_param.device") == 0)
        raw->offload_params = host;
    if (v->kind == KNEE_JSON_STRING || v->kind == KNEE_JSON_NULL)
        return;
    knee_import_number(raw, KNEE_FROM_DEEPSPEED, v->path, v->number);
}

static double whole(double value, double low, double high)
{
    return value >= low && value <= high && value == floor(value) ? value : NAN;
}

knee_status knee_deepspeed_read(const char *json, size_t length, const char *name,
                                struct knee_plan *plan, struct knee_err *err)
{
    struct knee_json_values v;
    struct knee_import raw;
    size_t values = 0;
    knee_import_init(&raw, KNEE_FROM_DEEPSPEED);
    knee_json_values_init(&v, json, length);
    for (; knee_json_values_next(&v); values++)
        take(&raw, &v);
    if (v.error || values == 0) {
        char where[128];
        knee_format(where, sizeof where, "%.100s:%zu", name, knee_json_values_line(&v));
        return knee_fail(err, KNEE_INPUT, where, "not JSON: %s",
                         v.error ? v.error : "there is nothing in it");
    }
    if (!isnan(raw.stage) && isnan(whole(raw.stage, 0, 3)))
        return knee_fail(err, KNEE_INPUT, name, "zero_optimization.stage is not 0, 1, 2 or 3");
    if (raw.offload_params)
        return knee_fail_hint(err, KNEE_INPUT, name,
                              "take it out; optimizer states on the host are",
                              "parameters on the host (offload_param) are not modelled");
    struct knee_plan p = *plan;
    const struct knee_keys *k = &knee_plan_keys;
    double stage = isnan(raw.stage) ? (raw.zero_on ? KNEE_ZERO1 : KNEE_REPLICATE) : raw.stage;
    double group = whole(raw.mics, 1, 1e6);
    if (isnan(group))
        group = whole(raw.hpz, 2, 1e6);
    knee_import_set(k, &p, "global-batch", whole(raw.batch, 1, 1e12));
    knee_import_set(k, &p, "micro-batch", whole(raw.micro, 1, 1e7));
    knee_import_set(k, &p, "shard", stage);
    knee_import_set(k, &p, "shard-size", stage >= KNEE_ZERO3 ? group : NAN);
    knee_import_set(k, &p, "tp", whole(raw.tp, 1, 1e7));
    knee_import_set(k, &p, "overlap-dp", raw.overlap);
    knee_import_set(k, &p, "offload", raw.offload > 0 ? KNEE_OFFLOAD_OPTIMIZER : KNEE_ON_GPU);
    if (raw.bf16 > 0 || raw.fp16 > 0)
        knee_import_set(k, &p, "precision", raw.bf16 > 0 ? KNEE_BF16 : KNEE_FP16);
    double replicas = p.gpus / (isnan(p.tp) ? 1 : p.tp);
    if (isnan(p.global_batch) && !isnan(replicas))
        knee_import_set(k, &p, "global-batch",
                        whole(raw.micro * raw.accumulate * replicas, 1, 1e12));
    *plan = p;
    return KNEE_OK;
}
