/* SPDX-License-Identifier: MIT */
/*
 * A job: the table of its inputs, and completing one. Completing goes from the specific to the
 * general: what was given stays, a preset that was named comes next, a default last; each value
 * remembers which of these it was, so that the report can say so.
 */
#include "job/job.h"
#include "base/error.h"
#include "base/keys.h"
#include "cluster/hardware.h"
#include "collective/collective.h"
#include "job/batch.h"
#include "job/models.h"

#include <math.h>
#include <string.h>

#define NUMBER(name, field, unit, low, high, heading, absent, words)                               \
    KNEE_NUMBER(struct knee_job, name, field, unit, low, high, heading, absent, words)
#define CHOICE(name, field, list, heading, absent, words)                                          \
    KNEE_CHOICE(struct knee_job, name, field, list, heading, absent, words)

static const struct knee_key rows[] = {
    KNEE_HARDWARE_ROWS(struct knee_job),

    CHOICE("model", model, knee_model_names, "Model", "none",
           "model preset: parameters, FLOPs, sequence length, usual batch"),
    NUMBER("params", params, KNEE_UNIT_COUNT, 1, 1e15, "Model", "from --model",
           "parameters whose gradients are exchanged"),
    NUMBER("flops-per-param", flops_per_param, KNEE_UNIT_COUNT, 1e-6, 1e9, "Model", "6",
           "FLOPs per parameter and token (or example), forward and backward"),
    NUMBER("seq", seq, KNEE_UNIT_COUNT, 1e-3, 1e9, "Model", "1, or from --model",
           "tokens per sequence; 1: the batch counts tokens, or images"),
    NUMBER("bytes-per-param", bytes_per_param, KNEE_UNIT_BYTES, 1e-6, 1024, "Model", "2",
           "bytes on the wire per parameter before compression"),

    KNEE_BATCH_ROWS(struct knee_job, 1e-6, 1e15, "Batch", "4Mi tokens, or from --model"),
    NUMBER("local-batch", local_batch, KNEE_UNIT_COUNT, 1e-6, 1e15, "Batch", "strong scaling",
           "sequences (examples) per worker and micro-step: weak scaling"),
    NUMBER("accumulate", accumulate, KNEE_UNIT_COUNT, 1, 1e9, "Batch", "1",
           "micro-steps per step; only the last one's compute can hide the exchange"),
    NUMBER("local-steps", local_steps, KNEE_UNIT_COUNT, 1, 1e9, "Batch", "1",
           "steps between synchronisations (local SGD, DiLoCo)"),

    NUMBER("flops", flops_per_s, KNEE_UNIT_FLOPS, 1, KNEE_HUGE, "Compute", "--gpu peak x --mfu",
           "sustained FLOP/s of one worker"),
    NUMBER("mfu", mfu, KNEE_UNIT_FRACTION, 1e-6, 1, "Compute", "0.4",
           "share of the GPU's peak that compute reaches while it runs"),
    NUMBER("compute-time", compute_time_s, KNEE_UNIT_SECONDS, 1e-12, KNEE_HUGE, "Compute",
           "from the model", "measured compute of one step, instead of a model"),
    NUMBER("comm-time", comm_time_s, KNEE_UNIT_SECONDS, 0, KNEE_HUGE, "Compute", "from the model",
           "measured communication of one step, hidden or not"),
    NUMBER("measured-workers", measured_workers, KNEE_UNIT_COUNT, 1, KNEE_WORKERS_MAX, "Compute",
           "1; with --comm-time the one worker count listed, else 8",
           "worker count that --compute-time and --comm-time were measured at"),

    CHOICE("algorithm", algorithm, knee_algorithm_names, "Hardware",
           "what NCCL picks on a cluster, a ring on bare numbers", "all-reduce algorithm"),

    NUMBER("overlap", overlap, KNEE_UNIT_FRACTION, 0, 1, "Overlap and compression", "0",
           "eta: share of min(compute, communication) that runs at the same time"),
    NUMBER("hidden", hidden, KNEE_UNIT_FRACTION, 0, 1, "Overlap and compression",
           "--overlap decides", "measured share of communication that is hidden, taken as it is"),
    NUMBER("compress", compress, KNEE_UNIT_FACTOR, 1, 1e9, "Overlap and compression", "1",
           "compression: bytes on the wire are divided by it"),
    NUMBER("encode-time", encode_time_s, KNEE_UNIT_SECONDS, 0, KNEE_HUGE, "Overlap and compression",
           "0", "time to encode and decode, per synchronisation"),

    NUMBER("loader-rate", loader_rate_per_s, KNEE_UNIT_PER_S, 1e-6, KNEE_HUGE,
           "Input and stragglers", "no limit",
           "examples per second that one worker's loader delivers"),
    NUMBER("loader-overlap", loader_overlap, KNEE_UNIT_FRACTION, 0, 1, "Input and stragglers",
           "as --overlap or --hidden", "share of loading that hides behind compute"),
    NUMBER("jitter", jitter, KNEE_UNIT_FRACTION, 0, 10, "Input and stragglers", "0",
           "standard deviation of a worker's compute time, as a share of it"),

    NUMBER("idle-power", idle_power_w, KNEE_UNIT_WATTS, 0, 1e9, "Money and energy",
           "0.4 of --power", "power of one GPU that waits"),
    NUMBER("steps", steps, KNEE_UNIT_COUNT, 1, KNEE_HUGE, "Money and energy", "from --min-steps",
           "steps of the run, for what the run costs"),

    NUMBER("critical-batch", critical_batch, KNEE_UNIT_COUNT, 1e-6, KNEE_HUGE, "Statistics",
           "not known", "batch (examples) past which more examples per step stop helping"),
    NUMBER("min-steps", min_steps, KNEE_UNIT_COUNT, 1, KNEE_HUGE, "Statistics", "not known",
           "steps to the target quality with an unlimited batch"),

    {.name = "workers",
     .kind = KNEE_KEY_WORKERS,
     .offset = offsetof(struct knee_job, workers),
     .group = "Question",
     .otherwise = "1..1024x2",
     .help = "worker counts: 8, 1,2,4, 1..1024x2 (doubling) or 8..64+8"},
    NUMBER("tolerance", tolerance, KNEE_UNIT_FRACTION, 1e-6, 1, "Question", "0.8",
           "efficiency E(K) below which a worker no longer pays"),
    NUMBER("at", at, KNEE_UNIT_COUNT, 1, KNEE_WORKERS_MAX, "Question",
           "the first listed count below tolerance, else the last",
           "worker count that verdict, levers and cost speak of"),
};

const struct knee_keys knee_job_keys = KNEE_KEY_TABLE(rows, struct knee_job);

void knee_job_init(struct knee_job *job)
{
    memset(job, 0, sizeof *job);
    knee_hardware_init(&job->hw);
    knee_keys_clear(&knee_job_keys, job);
    job->batch_scale = job->comm_scale = 1;
}

/* ---- Completing ---- */

static bool given(double value)
{
    return !isnan(value);
}

static void fill(struct knee_job *job, double *field, double value, enum knee_source source)
{
    knee_keys_fill(&knee_job_keys, job, field, value, source);
}

static void fill_model(struct knee_job *job)
{
    if (job->model < 0)
        return;
    const struct knee_model *model = knee_model_at((size_t)job->model);
    fill(job, &job->params, 1e9 * model->params_billion, KNEE_PRESET);
    fill(job, &job->flops_per_param, knee_model_flops_per_param(model), KNEE_PRESET);
    fill(job, &job->seq, model->seq, KNEE_PRESET);
    if (!given(job->local_batch))
        fill(job, &job->global_batch, model->global_batch, KNEE_PRESET);
}

static void fill_gpu(struct knee_job *job, const struct knee_gpu *gpu)
{
    if (!gpu)
        return;
    if (!given(job->flops_per_s) && !given(job->compute_time_s)) {
        fill(job, &job->mfu, KNEE_USUAL_MFU, KNEE_DEFAULT);
        fill(job, &job->flops_per_s, gpu->bf16_flops * job->mfu, KNEE_DERIVED);
    }
}

static void fill_defaults(struct knee_job *job)
{
    bool measured = given(job->compute_time_s);
    fill(job, &job->flops_per_param, 6, KNEE_DEFAULT);
    fill(job, &job->seq, 1, KNEE_DEFAULT);
    fill(job, &job->bytes_per_param, 2, KNEE_DEFAULT);
    if (!given(job->local_batch) && !measured)
        fill(job, &job->global_batch, knee_batch_usual(job->seq), KNEE_DEFAULT);
    fill(job, &job->accumulate, 1, KNEE_DEFAULT);
    fill(job, &job->local_steps, 1, KNEE_DEFAULT);
    if (!given(job->hidden))
        fill(job, &job->overlap, 0, KNEE_DEFAULT);
    fill(job, &job->loader_overlap, given(job->hidden) ? job->hidden : job->overlap, KNEE_DEFAULT);
    fill(job, &job->compress, 1, KNEE_DEFAULT);
    fill(job, &job->encode_time_s, 0, KNEE_DEFAULT);
    fill(job, &job->jitter, 0, KNEE_DEFAULT);
    fill(job, &job->idle_power_w, 0.4 * job->hw.power_w, KNEE_DEFAULT);
    fill(job, &job->tolerance, 0.8, KNEE_DEFAULT);
}

/* Measured times hold for some worker count; the list of counts follows from it or the reverse. */
static void fill_workers(struct knee_job *job)
{
    bool one = job->workers.ranges == 1 && job->workers.range[0].from == job->workers.range[0].to;
    bool comm = given(job->comm_time_s);
    if (given(job->compute_time_s))
        fill(job, &job->measured_workers,
             !comm ? 1
             : one ? job->workers.range[0].from
                   : 8,
             KNEE_DEFAULT);
    if (job->workers.ranges)
        return;
    bool single = comm && given(job->compute_time_s);
    job->workers.ranges = 1;
    job->workers.range[0].from = single ? job->measured_workers : 1;
    job->workers.range[0].to = single ? job->measured_workers : 1024;
    job->workers.range[0].factor = 2;
    job->workers.range[0].step = 1;
    job->source[knee_keys_find(&knee_job_keys, "workers")] = KNEE_DEFAULT;
}

const struct knee_algorithm *knee_job_algorithm(const struct knee_job *job)
{
    return job->algorithm >= 0 ? knee_algorithm_at((size_t)job->algorithm) : NULL;
}

double knee_job_bytes(const struct knee_job *job)
{
    return given(job->params) ? job->params * job->bytes_per_param : 1;
}

/* Measured communication keeps the algorithm's shape over K. */
static double comm_scale(const struct knee_job *job)
{
    if (!given(job->comm_time_s))
        return 1;
    if (job->comm_time_s == 0)
        return 0;
    struct knee_cluster cluster;
    struct knee_group all = {job->measured_workers, 1, true};
    knee_hardware_cluster(&job->hw, &cluster);
    return job->comm_time_s / knee_collective_s(&cluster, KNEE_OP_ALL_REDUCE, all,
                                                knee_job_bytes(job), knee_job_algorithm(job));
}

/* ---- Gaps and contradictions, one row each ---- */

static bool no_params(const struct knee_job *job)
{
    return !given(job->params) && !(given(job->compute_time_s) && given(job->comm_time_s));
}

static bool no_rate(const struct knee_job *job)
{
    return !given(job->flops_per_s) && !given(job->compute_time_s);
}

static bool no_link(const struct knee_job *job)
{
    return !given(job->hw.bandwidth_bytes_per_s) && !given(job->comm_time_s);
}

static bool comm_alone(const struct knee_job *job)
{
    return given(job->comm_time_s) && !given(job->compute_time_s);
}

static bool comm_of_one(const struct knee_job *job)
{
    return given(job->comm_time_s) && job->comm_time_s > 0 && job->measured_workers < 2;
}

static bool loader_without_batch(const struct knee_job *job)
{
    return given(job->loader_rate_per_s) && !given(job->global_batch) && !given(job->local_batch);
}

struct rule {
    bool (*broken)(const struct knee_job *);
    const char *what, *hint;
};

static const struct rule rules[] = {
    {comm_alone, "comm-time is given without compute-time",
     "add --compute-time, for example 180ms"},
    {no_params, "the size of the model is not known",
     "add --params (for example 7B) or --model; 'knee list models' shows the presets"},
    {no_rate, "the speed of a worker is not known",
     "add --gpu (for example h100), --flops (60TFLOP/s) or --compute-time (180ms)"},
    {no_link, "the speed of the link is not known",
     "add --bandwidth (for example 50GB/s), --link, --cluster or --gpu"},
    {comm_of_one, "communication cannot be measured with one worker",
     "set --measured-workers to the count that it was measured at"},
    {loader_without_batch, "loader-rate needs a batch to load",
     "add --global-batch or --local-batch"},
};

static knee_status refuse(struct knee_err *err, const char *what, const char *hint)
{
    knee_fail(err, KNEE_USAGE, "", "%s", what);
    knee_hint(err, "%s", hint);
    return KNEE_USAGE;
}

static knee_status check_gaps(const struct knee_job *job, struct knee_err *err)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].broken(job))
            return refuse(err, rules[i].what, rules[i].hint);
    return KNEE_OK;
}

/* Pairs of which only one can hold. A flag beats the job file; two of a kind contradict. */
static const struct {
    const char *one, *other, *what, *hint;
} exclusive[] = {
    {"global-batch", "local-batch",
     "both global-batch (strong scaling) and local-batch (weak scaling) are given",
     "keep one of them"},
    {"global-tokens", "local-batch",
     "both global-tokens (strong scaling) and local-batch (weak scaling) are given",
     "keep one of them"},
    {"overlap", "hidden", "both overlap and hidden are given", "keep one of them"},
    {"bandwidth", "link", "both bandwidth and link are given", "keep one of them"},
    {"flops", "mfu", "both flops (what is sustained) and mfu (a share of a GPU's peak) are given",
     "give --flops already multiplied, or --gpu with --mfu"},
};

static knee_status settle_pairs(struct knee_job *job, struct knee_err *err)
{
    knee_status status = KNEE_OK;
    for (size_t i = 0; !status && i < sizeof exclusive / sizeof *exclusive; i++)
        status =
            knee_keys_settle(&knee_job_keys, job, knee_keys_find(&knee_job_keys, exclusive[i].one),
                             knee_keys_find(&knee_job_keys, exclusive[i].other), exclusive[i].what,
                             exclusive[i].hint, err);
    return status;
}

knee_status knee_job_complete(struct knee_job *job, struct knee_err *err)
{
    struct knee_job full = *job;
    knee_status status = settle_pairs(&full, err);
    if (status)
        return status;
    fill_model(&full);
    if ((status = knee_batch_settle(&knee_job_keys, &full, given(full.seq) ? full.seq : 1, err)))
        return status;
    knee_hardware_complete(&knee_job_keys, &full, &full.hw, !given(full.comm_time_s));
    fill_gpu(&full, knee_hardware_gpu(&full.hw));
    fill_defaults(&full);
    fill_workers(&full);
    if ((status = check_gaps(&full, err)))
        return status;
    full.scaling = given(full.local_batch) ? KNEE_WEAK : KNEE_STRONG;
    full.comm_scale = comm_scale(&full);
    *job = full;
    return KNEE_OK;
}
