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
           "llama3-8b or a Hugging Face id; see knee list models"),
    NUMBER("params", params, KNEE_UNIT_COUNT, 1, 1e15, "Model", "from --model",
           "trainable parameters"),
    NUMBER("flops-per-param", flops_per_param, KNEE_UNIT_COUNT, 1e-6, 1e9, "Model", "6",
           "FLOPs per parameter and token, forward and backward"),
    NUMBER("seq", seq, KNEE_UNIT_COUNT, 1e-3, 1e9, "Model", "1, or from --model",
           "tokens per sequence; 8k is 8192; 1: the batch counts tokens"),
    NUMBER("bytes-per-param", bytes_per_param, KNEE_UNIT_BYTES, 1e-6, 1024, "Model", "2",
           "bytes per gradient value sent, before --compress"),

    KNEE_BATCH_ROWS(struct knee_job, 1e-6, 1e15, "Batch", "4Mi tokens, or from --model"),
    NUMBER("local-batch", local_batch, KNEE_UNIT_COUNT, 1e-6, 1e15, "Batch", "fixed global batch",
           "sequences per GPU; the global batch then grows with the GPUs"),
    NUMBER("accumulate", accumulate, KNEE_UNIT_COUNT, 1, 1e9, "Batch", "1",
           "micro-batches per step (gradient accumulation)"),
    NUMBER("local-steps", local_steps, KNEE_UNIT_COUNT, 1, 1e9, "Batch", "1",
           "steps between gradient exchanges (local SGD, DiLoCo)"),

    NUMBER("flops", flops_per_s, KNEE_UNIT_FLOPS, 1, KNEE_HUGE, "Compute", "--gpu peak x --mfu",
           "FLOP/s that one GPU sustains"),
    NUMBER("mfu", mfu, KNEE_UNIT_FRACTION, 1e-6, 1, "Compute", "0.4",
           "share of peak FLOP/s that compute reaches"),
    CHOICE("profile", profile, knee_profile_names, "Compute", "megatron-core",
           KNEE_OFF_PAGE("framework and version ('knee list profiles')")),
    NUMBER("compute-time", compute_time_s, KNEE_UNIT_SECONDS, 1e-12, KNEE_HUGE, "Compute",
           "from the model", "measured compute time of one step"),
    NUMBER("comm-time", comm_time_s, KNEE_UNIT_SECONDS, 0, KNEE_HUGE, "Compute", "from the model",
           "measured communication time of one step"),
    NUMBER("measured-workers", measured_workers, KNEE_UNIT_COUNT, 1, KNEE_WORKERS_MAX, "Compute",
           "1; with --comm-time: the count of --gpus, else 8",
           "GPU count of --compute-time and --comm-time"),

    CHOICE("algorithm", algorithm, knee_algorithm_names, "Hardware",
           "NCCL's choice on a known cluster, else ring", "all-reduce algorithm"),

    NUMBER("overlap", overlap, KNEE_UNIT_FRACTION, 0, 1, "Overlap and compression", "0",
           "share of the shorter of compute and communication that overlaps"),
    NUMBER("hidden", hidden, KNEE_UNIT_FRACTION, 0, 1, "Overlap and compression", "from --overlap",
           "measured share of communication that overlaps compute"),
    NUMBER("compress", compress, KNEE_UNIT_FACTOR, 1, 1e9, "Overlap and compression", "1",
           "bytes sent are divided by this factor"),
    NUMBER("encode-time", encode_time_s, KNEE_UNIT_SECONDS, 0, KNEE_HUGE, "Overlap and compression",
           "0", "time to compress and decompress, per exchange"),

    NUMBER("loader-rate", loader_rate_per_s, KNEE_UNIT_PER_S, 1e-6, KNEE_HUGE,
           "Input and stragglers", "no limit",
           "examples per second that the data loader of one GPU delivers"),
    NUMBER("loader-overlap", loader_overlap, KNEE_UNIT_FRACTION, 0, 1, "Input and stragglers",
           "same as --overlap or --hidden", "share of data loading that overlaps compute"),
    NUMBER("jitter", jitter, KNEE_UNIT_FRACTION, 0, 10, "Input and stragglers", "0",
           "relative standard deviation of compute between ranks"),

    NUMBER("idle-power", idle_power_w, KNEE_UNIT_WATTS, 0, 1e9, "Money and energy",
           "0.18 of --power", "power draw of one idle GPU"),
    NUMBER("steps", steps, KNEE_UNIT_COUNT, 1, KNEE_HUGE, "Money and energy", "from --min-steps",
           "steps of the whole run: adds its total cost"),

    NUMBER("critical-batch", critical_batch, KNEE_UNIT_COUNT, 1e-6, KNEE_HUGE, "Statistics",
           "unknown", "batch size beyond which larger batches stop helping"),
    NUMBER("min-steps", min_steps, KNEE_UNIT_COUNT, 1, KNEE_HUGE, "Statistics", "unknown",
           "steps to the target loss with a very large batch"),

    KNEE_OPTION(struct knee_job, "workers", KNEE_KEY_WORKERS, workers, "Question", "1..1024x2",
                "GPU counts: 64, a list 8,16,32, or a range 8..1024x2 (doubling) or 8..64+8"),
    NUMBER("tolerance", tolerance, KNEE_UNIT_FRACTION, 1e-6, 1, "Question", "0.8",
           "lowest efficiency still worth paying for"),
    NUMBER("at", at, KNEE_UNIT_COUNT, 1, KNEE_WORKERS_MAX, "Question",
           "first count below --tolerance, else the last", "GPU count that the answer describes"),
};

const struct knee_keys knee_job_keys = KNEE_KEY_TABLE(rows, struct knee_job);

void knee_job_init(struct knee_job *job)
{
    memset(job, 0, sizeof *job);
    knee_hardware_init(&job->hw);
    knee_keys_clear(&knee_job_keys, job);
    job->batch_scale = job->comm_scale = job->slower = 1;
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
    fill(job, &job->seq, model->shape.seq, KNEE_PRESET);
    if (!given(job->local_batch) && given(model->global_batch))
        fill(job, &job->global_batch, knee_batch_usual(job->model, job->seq), KNEE_PRESET);
}

/* Given by a person: neither a preset nor computed. */
static bool told(const struct knee_job *job, const char *key)
{
    size_t row = knee_keys_find(&knee_job_keys, key);
    double value =
        *(const double *)(const void *)((const char *)job + knee_job_keys.rows[row].offset);
    unsigned char source = job->source[row];
    return given(value) && source != KNEE_DEFAULT && source != KNEE_PRESET &&
           source != KNEE_DERIVED;
}

#define SMALLEST_CANONICAL 1e8 /* parameters; smaller models are of any kind */

/* A transformer on a known GPU is priced as knee plan prices it, unless a rate or a time is given.
 * Bare parameters are those of a transformer where the batch is counted in sequences. */
static bool has_forecast(const struct knee_job *job)
{
    static const char *const bare[] = {"mfu", "flops", "compute-time", "comm-time",
                                       "flops-per-param"};
    if (!knee_hardware_gpu(&job->hw))
        return false;
    for (size_t i = 0; i < sizeof bare / sizeof *bare; i++)
        if (told(job, bare[i]))
            return false;
    if (job->model >= 0)
        return knee_model_has_shape(knee_model_at((size_t)job->model)) && !told(job, "params");
    bool batch = given(job->global_batch) || given(job->global_tokens) || given(job->local_batch);
    return job->params >= SMALLEST_CANONICAL && (job->seq > 1 || (!given(job->seq) && !batch));
}

#define CANONICAL_SEQ 4096

static void fill_forecast(struct knee_job *job)
{
    job->forecast = has_forecast(job);
    if (!job->forecast)
        return;
    fill(job, &job->seq, CANONICAL_SEQ, KNEE_DEFAULT);
    fill(job, &job->loader_overlap, 1, KNEE_DEFAULT);
}

static void fill_gpu(struct knee_job *job, const struct knee_gpu *gpu)
{
    if (!gpu || job->forecast)
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
    if (!job->forecast) /* else as the software does */
        fill(job, &job->bytes_per_param, 2, KNEE_DEFAULT);
    if (!given(job->local_batch) && !measured)
        fill(job, &job->global_batch, knee_batch_usual(job->model, job->seq), KNEE_DEFAULT);
    fill(job, &job->accumulate, 1, KNEE_DEFAULT);
    fill(job, &job->local_steps, 1, KNEE_DEFAULT);
    if (!given(job->hidden) && !job->forecast)
        fill(job, &job->overlap, 0, KNEE_DEFAULT);
    fill(job, &job->loader_overlap, given(job->hidden) ? job->hidden : job->overlap, KNEE_DEFAULT);
    fill(job, &job->compress, 1, KNEE_DEFAULT);
    fill(job, &job->encode_time_s, 0, KNEE_DEFAULT);
    fill(job, &job->jitter, 0, KNEE_DEFAULT);
    /* An H200 whose collectives wait draws 125 of 700 W (data/power.csv). */
    fill(job, &job->idle_power_w, 0.18 * job->hw.power_w, KNEE_DEFAULT);
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
    return !job->forecast && !given(job->flops_per_s) && !given(job->compute_time_s);
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
    {no_params, "no model given",
     "add --params (for example 7B) or --model; 'knee list models' shows the presets"},
    {no_rate, "the compute speed is unknown",
     "add --gpu (for example h100), --flops (60TFLOP/s) or --compute-time (180ms)"},
    {no_link, "the speed of the link is not known",
     "add --bandwidth (for example 50GB/s), --link, --cluster or --gpu"},
    {comm_of_one, "--comm-time needs at least 2 GPUs",
     "set --measured-workers to the GPU count of the measurement"},
    {loader_without_batch, "loader-rate needs a batch to load",
     "add --global-batch or --local-batch"},
};

static knee_status check_gaps(const struct knee_job *job, struct knee_err *err)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].broken(job))
            return knee_fail_hint(err, KNEE_USAGE, "", rules[i].hint, "%s", rules[i].what);
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
        status = knee_keys_settle(
            &knee_job_keys, job,
            &(struct knee_conflict){knee_keys_find(&knee_job_keys, exclusive[i].one),
                                    knee_keys_find(&knee_job_keys, exclusive[i].other),
                                    exclusive[i].what, exclusive[i].hint},
            err);
    return status;
}

knee_status knee_job_complete(struct knee_job *job, struct knee_err *err)
{
    struct knee_job full = *job;
    knee_status status = settle_pairs(&full, err);
    if (status)
        return status;
    fill_model(&full);
    knee_hardware_complete(&knee_job_keys, &full, &full.hw, !given(full.comm_time_s));
    fill_forecast(&full);
    if ((status = knee_batch_settle(&knee_job_keys, &full, given(full.seq) ? full.seq : 1, err)))
        return status;
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
