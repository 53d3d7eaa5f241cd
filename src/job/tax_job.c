/* SPDX-License-Identifier: MIT */
/* A transformer, its degrees of parallelism and its links: the table of inputs of `knee tax`. */
#include "base/error.h"
#include "base/keys.h"
#include "cluster/hardware.h"
#include "job/batch.h"
#include "job/job.h"

#include <math.h>
#include <string.h>

#define NUMBER(name, field, unit, low, high, heading, absent, words)                               \
    KNEE_NUMBER(struct knee_tax_job, name, field, unit, low, high, heading, absent, words)
#define CHOICE(name, field, list, heading, absent, words)                                          \
    KNEE_CHOICE(struct knee_tax_job, name, field, list, heading, absent, words)

static const struct knee_key rows[] = {
    KNEE_HARDWARE_ROWS(struct knee_tax_job),

    CHOICE("model", model, knee_model_names, "Model", "none",
           "llama3-8b or a Hugging Face id; see knee list models"),
    NUMBER("layers", layers, KNEE_UNIT_COUNT, 1, 1e6, "Model", "hidden / 128",
           "transformer layers"),
    NUMBER("hidden", hidden, KNEE_UNIT_COUNT, 1, 1e7, "Model", "from --model", "hidden size"),
    NUMBER("ffn", ffn, KNEE_UNIT_COUNT, 1, 1e8, "Model", "4 x hidden, or from --model",
           "feed-forward size, counted as two matrices"),
    NUMBER("seq", seq, KNEE_UNIT_COUNT, 1, 1e9, "Model", "4096", "tokens per sequence; 8k is 8192"),
    NUMBER("vocab", vocab, KNEE_UNIT_COUNT, 1, 1e9, "Model", "32000", "vocabulary size"),
    NUMBER("experts", experts, KNEE_UNIT_COUNT, 1, 1e6, "Model", "1",
           "experts per MoE layer; 1: dense model"),
    NUMBER("topk", topk, KNEE_UNIT_COUNT, 1, 1e6, "Model", "1, or 2 with experts",
           "experts per token"),
    NUMBER("bytes-per-value", bytes_per_value, KNEE_UNIT_BYTES, 0.5, 8, "Model", "2",
           "bytes per value sent"),

    NUMBER("dp", degree[KNEE_AXIS_DP], KNEE_UNIT_COUNT, 1, 1e6, "Degrees", "1",
           "data-parallel replicas"),
    NUMBER("fsdp", degree[KNEE_AXIS_FSDP], KNEE_UNIT_COUNT, 1, 1e6, "Degrees", "1",
           "GPUs over which parameters are sharded (FSDP, ZeRO-3)"),
    NUMBER("tp", degree[KNEE_AXIS_TP], KNEE_UNIT_COUNT, 1, 1e6, "Degrees", "1",
           "tensor-parallel degree; beyond one node it uses the network"),
    NUMBER("pp", degree[KNEE_AXIS_PP], KNEE_UNIT_COUNT, 1, 1e6, "Degrees", "1", "pipeline stages"),
    NUMBER("ep", degree[KNEE_AXIS_EP], KNEE_UNIT_COUNT, 1, 1e6, "Degrees", "1",
           "expert-parallel degree, inside dp x fsdp"),
    KNEE_BATCH_ROWS(struct knee_tax_job, 1, 1e12, "Degrees",
                    "dp x fsdp x micro-batch x micro-batches"),
    NUMBER("micro-batch", micro_batch, KNEE_UNIT_COUNT, 1e-3, 1e9, "Degrees", "1",
           "sequences per micro-batch and replica"),
    NUMBER("micro-batches", micro_batches, KNEE_UNIT_COUNT, 1, 1e9, "Degrees",
           "4 x pp with a pipeline, else 1", "micro-batches per step"),

    NUMBER("flops", peak_flops, KNEE_UNIT_FLOPS, 1, KNEE_HUGE, "Hardware", "from --gpu",
           "peak FLOP/s of one GPU"),
    NUMBER("mfu", mfu, KNEE_UNIT_FRACTION, 1e-6, 1, "Hardware",
           "0.4 with --flops; computed with --gpu", "share of peak FLOP/s that compute reaches"),
};

const struct knee_keys knee_tax_keys = KNEE_KEY_TABLE(rows, struct knee_tax_job);

void knee_tax_job_init(struct knee_tax_job *job)
{
    memset(job, 0, sizeof *job);
    knee_hardware_init(&job->hw);
    knee_keys_clear(&knee_tax_keys, job);
}

static void fill(struct knee_tax_job *job, double *field, double value, enum knee_source source)
{
    knee_keys_fill(&knee_tax_keys, job, field, value, source);
}

/* A preset counts its own kinds of feed-forward parts; what matters here is their parameters, so
 * the width is the one at which two matrices hold as many. */
static void fill_shape(struct knee_tax_job *job)
{
    if (job->model < 0)
        return;
    const struct knee_model *model = knee_model_at((size_t)job->model);
    const struct knee_shape *s = &model->shape;
    fill(job, &job->layers, s->layers, KNEE_PRESET);
    fill(job, &job->hidden, s->hidden, KNEE_PRESET);
    fill(job, &job->vocab, s->vocab, KNEE_PRESET);
    fill(job, &job->seq, s->seq, KNEE_PRESET);
    fill(job, &job->experts, s->experts, KNEE_PRESET);
    fill(job, &job->topk, s->topk, KNEE_PRESET);
    double h = s->hidden, experts = isnan(s->experts) ? 1 : s->experts;
    double per_layer = (1e9 * model->params_billion - 2 * s->vocab * h) / s->layers;
    fill(job, &job->ffn, fmax(1, rint((per_layer - 4 * h * h) / (2 * h * experts))), KNEE_DERIVED);
}

static void fill_hardware(struct knee_tax_job *job)
{
    knee_hardware_complete(&knee_tax_keys, job, &job->hw, true);
    const struct knee_gpu *gpu = knee_hardware_gpu(&job->hw);
    if (gpu)
        fill(job, &job->peak_flops, gpu->bf16_flops, KNEE_PRESET);
    else
        fill(job, &job->mfu, 0.4, KNEE_DEFAULT);
}

static void fill_defaults(struct knee_tax_job *job)
{
    fill(job, &job->layers, fmax(1, rint(job->hidden / 128)), KNEE_DEFAULT);
    fill(job, &job->ffn, 4 * job->hidden, KNEE_DEFAULT);
    fill(job, &job->seq, 4096, KNEE_DEFAULT);
    fill(job, &job->vocab, 32000, KNEE_DEFAULT);
    fill(job, &job->experts, 1, KNEE_DEFAULT);
    fill(job, &job->topk, job->experts > 1 ? 2 : 1, KNEE_DEFAULT);
    fill(job, &job->bytes_per_value, 2, KNEE_DEFAULT);
    for (int axis = 0; axis < KNEE_AXES; axis++)
        fill(job, &job->degree[axis], 1, KNEE_DEFAULT);
    fill(job, &job->micro_batch, 1, KNEE_DEFAULT);
}

static knee_status refuse(struct knee_err *err, const char *what, const char *hint)
{
    return knee_fail_hint(err, KNEE_USAGE, "", hint, "%s", what);
}

/* Micro-steps from the batch, or the batch from them. */
static knee_status fill_batch(struct knee_tax_job *job, struct knee_err *err)
{
    double pp = job->degree[KNEE_AXIS_PP];
    double turn = job->degree[KNEE_AXIS_DP] * job->degree[KNEE_AXIS_FSDP] * job->micro_batch;
    size_t micro = knee_keys_find(&knee_tax_keys, "micro-batches");
    knee_status status = knee_batch_settle(&knee_tax_keys, job, job->seq, err);
    static const char *const whole[] = {"global-batch", "global-tokens"};
    for (size_t i = 0; !status && i < 2; i++)
        status = knee_keys_settle(
            &knee_tax_keys, job,
            &(struct knee_conflict){knee_keys_find(&knee_tax_keys, whole[i]), micro,
                                    "both the whole batch and micro-batches are given",
                                    "keep one of them"},
            err);
    if (status)
        return status;
    fill(job, &job->micro_batches, job->global_batch / turn, KNEE_DERIVED);
    fill(job, &job->micro_batches, pp > 1 ? 4 * pp : 1, KNEE_DEFAULT);
    fill(job, &job->global_batch, turn * job->micro_batches, KNEE_DERIVED);
    if (fmod(job->global_batch, turn) == 0)
        return KNEE_OK;
    return refuse(err, "dp x fsdp x micro-batch does not divide the global batch",
                  "change --global-batch, or the degrees");
}

knee_status knee_tax_job_complete(struct knee_tax_job *job, struct knee_err *err)
{
    const double *degree = job->degree;
    fill_shape(job);
    fill_hardware(job);
    if (isnan(job->hidden))
        return refuse(err, "the width of the model is not known",
                      "add --hidden (for example 4096) or --model with a transformer");
    if (isnan(job->peak_flops))
        return refuse(err, "the peak of a GPU is not known",
                      "add --gpu (for example h100) or --flops (989TFLOP/s)");
    if (isnan(job->hw.bandwidth_bytes_per_s))
        return refuse(err, "the network is not known", "add --bandwidth, --cluster or --gpu");
    fill_defaults(job);
    knee_status status = fill_batch(job, err);
    if (status)
        return status;
    if (degree[KNEE_AXIS_PP] > job->layers)
        return refuse(err, "there are more pipeline stages than layers", "lower --pp");
    if (degree[KNEE_AXIS_EP] > job->experts)
        return refuse(err, "there are fewer experts than --ep", "lower --ep or raise --experts");
    if (degree[KNEE_AXIS_EP] > degree[KNEE_AXIS_DP] * degree[KNEE_AXIS_FSDP])
        return refuse(err, "--ep is larger than dp x fsdp", "raise --dp or --fsdp, or lower --ep");
    if (job->topk > job->experts)
        return refuse(err, "topk is larger than the number of experts", "lower --topk");
    return KNEE_OK;
}
