/* SPDX-License-Identifier: MIT */
/*
 * What could be changed about a recorded job, and what that would buy. Three sources, each better
 * than the one before where it answers: closed forms of the mean step, what the recording itself
 * shows (a link as fast as it should be, copies by kind, kernels that a compiler would fuse), and a
 * replay of the timeline. They are rows of the one table of changes (change_table.c); the best safe
 * one is what the headline advises.
 */
#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "cluster/hardware.h"
#include "job/job.h"
#include "judge/judge.h"
#include "knee_replay.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define SECONDS_PER_HOUR 3600.0
enum { PAUSE_NS = 500000 }; /* of the host, between two launches */
enum { LONG_QUEUE = 500 };  /* pieces of work; the driver takes about a thousand */

/* From pageable memory a copy goes at a fraction of the link's rate. */
#define PAGEABLE_FACTOR 5
/* Fusing is worth a word where elementwise kernels are this much of compute, and compute half of
 * the step: a job with 31 % gained 1.11 times, and none with less was measured. */
#define MUCH_UNFUSED  0.3
#define FUSED_AT_BEST 0.8 /* of the longest kernel of a chain */
#define MOSTLY_FUSED  0.5 /* of elementwise time: a compiler is at work already */
/* 16 bits have twice the rate of TF32 and half the bytes; attention of 32 bits also has slower
 * kernels. One job was measured: 0.43 of its step. At best, as estimated, at worst. */
static const double narrow_product[] = {0.35, 0.5, 0.7}, narrow_attention[] = {0.15, 0.25, 0.5};
#define MUCH_WIDE 0.25 /* of compute */
/* Adam moves 7 numbers per parameter in one kernel, and 19 in one kernel per operation. */
#define OPTIMIZER_AT_BEST  0.35
#define OPTIMIZER_LEFT     0.5
#define OPTIMIZER_AT_WORST 0.7
/* Of the peak, as large products reach it: plain cores, and tensor cores with TF32. */
#define PLAIN_REACHED   0.9
#define TF32_REACHED    0.7
#define TF32_AT_WORST   0.5
#define SCORES_AT_WORST 0.7

static size_t find(const struct knee_diagnosis *d, const char *name)
{
    size_t i = 0;
    while (i < d->lever_count && strcmp(d->levers[i].name, name) != 0)
        i++;
    return i < d->lever_count ? i : SIZE_MAX;
}

double knee_step_before_s(const struct knee_diagnosis *d)
{
    return d->unprofiled_s > 0 ? d->unprofiled_s : d->step.wall_s;
}

static bool is_healthy(const struct knee_diagnosis *d)
{
    bool efficient = d->step.comm_s <= 0 || d->efficiency >= KNEE_HEALTHY_EFFICIENCY;
    return efficient &&
           d->step.label_s[KNEE_COMPUTE] >= KNEE_HEALTHY_COMPUTE * knee_step_before_s(d);
}

/* ---- Closed forms ---- */

/* Traffic of activations grows with the batch and cannot be delayed, so changes that act on
 * gradients do not help it. They are barred if most of the time on the wire is not data parallel.
 */
static unsigned barred_by_axis(const struct knee_account *account)
{
    double gradients = 0, others = 0;
    for (size_t i = 0; i < account->collective_count; i++) {
        const struct knee_collective_account *c = &account->collectives[i];
        double time = (double)c->calls * (isnan(c->transfer_s) ? c->duration_s : c->transfer_s);
        bool gradient = strcmp(c->axis, "DP") == 0 || strcmp(c->axis, "FSDP") == 0 || !*c->axis;
        *(gradient ? &gradients : &others) += time;
    }
    return others <= gradients ? 0 : KNEE_LEVER_BATCH | KNEE_LEVER_COMPRESS | KNEE_LEVER_SYNC;
}

/* Without an optimizer the job has no batch to grow and no gradients to exchange; without steps it
 * has no batch either, and what is exchanged need not be gradients. More GPUs is never offered: one
 * recording does not show how the job scales.
 */
static unsigned barred_by_recording(const struct knee_diagnosis *d)
{
    unsigned kinds = KNEE_LEVER_WORKERS | KNEE_LEVER_FEWER;
    if (d->recording != KNEE_RECORDED_TRAINING || (d->gaps & KNEE_GAP_NO_STEPS))
        kinds |= KNEE_LEVER_BATCH | KNEE_LEVER_COMPRESS | KNEE_LEVER_SYNC;
    return kinds;
}

/* The measured step as terms: everything except communication stays as it is. Waiting that is
 * hidden behind compute cannot be separated from transfer and counts as transfer. */
static void terms_of(const struct knee_diagnosis *d, const struct knee_job *given,
                     double gradient_bytes, struct knee_terms *terms)
{
    double exposed = d->step.label_s[KNEE_TRANSFER], wait = d->step.label_s[KNEE_WAIT];
    double transfer = fmax(exposed, d->step.comm_s - wait);
    double batch =
        isnan(given->local_batch) ? given->global_batch / d->workers : given->local_batch;
    struct knee_group all = {d->workers, 1, true};
    *terms = (struct knee_terms){
        .scaling = KNEE_WEAK,
        .algorithm = knee_job_algorithm(given),
        .compute_s = fmax(1e-9, d->step.label_s[KNEE_COMPUTE]),
        .batch = batch,
        .work = isnan(batch) ? 1 : batch,
        .bytes = gradient_bytes,
        .shard = 1,
        .accumulate = 1,
        .local_steps = 1,
        .hidden = isnan(given->overlap) && transfer > 0 ? 1 - exposed / transfer : NAN,
        .overlap = isnan(given->overlap) ? 0 : given->overlap,
        .loader_overlap = 1,
        .loader_rate_per_s = NAN,
        .price_per_s = d->inputs.hw.price_per_hour / SECONDS_PER_HOUR,
        .power_w = d->inputs.hw.power_w,
        .idle_power_w = given->idle_power_w,
        .critical_batch = given->critical_batch,
        .min_steps = given->min_steps,
    };
    knee_hardware_cluster(&d->inputs.hw, &terms->cluster);
    if (transfer > 0)
        terms->comm_scale = transfer / knee_collective_s(&terms->cluster, KNEE_OP_ALL_REDUCE, all,
                                                         gradient_bytes, terms->algorithm);
    for (int label = KNEE_WAIT; label < KNEE_LABELS; label++)
        terms->stall_s[label] = d->step.label_s[label];
    knee_terms_settle(terms);
}

static struct knee_lever_facts facts_of(const struct knee_account *account,
                                        const struct knee_job *given,
                                        const struct knee_diagnosis *d)
{
    bool f32 = account->collective_count > 0 && strcmp(account->collectives[0].dtype, "f32") == 0;
    double bytes = isnan(given->bytes_per_param) ? (f32 ? 4 : 2) : given->bytes_per_param;
    const struct knee_gpu *gpu = knee_hardware_gpu(&d->inputs.hw);
    return (struct knee_lever_facts){
        .params = given->params,
        .bytes_per_param = bytes,
        .gradient_bytes = isnan(given->params) ? 1 : given->params * bytes,
        .width = isnan(given->params) ? 4096 : cbrt(given->params * 128 / 12),
        .flops_per_s = gpu ? KNEE_USUAL_MFU * gpu->bf16_flops : NAN,
        .memory_bytes_per_s = d->inputs.hw.memory_bytes_per_s,
        .node_bytes_per_s = d->inputs.hw.node_bandwidth_bytes_per_s,
        .gpus_per_node = d->inputs.hw.gpus_per_node,
        .link_known = !isnan(d->inputs.hw.bandwidth_bytes_per_s),
        .tolerance = isnan(given->tolerance) ? 0.8 : given->tolerance,
        .limit_workers = NAN,
        .knee_workers = NAN,
        /* what copies cost is priced below, by kind */
        .barred = barred_by_recording(d) | barred_by_axis(account) | KNEE_LEVER_COPY,
    };
}

/* ---- What the recording shows ---- */

/* Adds a row of the table with the step that it leaves, or sets it where it is. */
static void put_step(struct knee_diagnosis *d, const char *name, double step_s, double low_s,
                     double high_s)
{
    struct knee_lever lever = knee_change_named(name);
    size_t found = find(d, name), row = found == SIZE_MAX ? d->lever_count : found;
    if (!(step_s > 0) || !(step_s < d->step.wall_s) || row == KNEE_LEVERS_MAX)
        return;
    lever.by = KNEE_BY_RECORDING;
    lever.row.step.wall_s = step_s;
    lever.row.ratio = d->ratio;
    lever.row.efficiency = d->efficiency;
    lever.row.workers = d->workers;
    lever.low_s = low_s;
    lever.high_s = high_s;
    lever.gain = d->step.wall_s / step_s - 1;
    d->levers[row] = lever;
    d->lever_count += row == d->lever_count;
}

/* What the host takes to hand over a step's work, pauses and waits left out: what GPU work hides
 * today. With a long queue the host waits for room in it, and its pace is the GPU's: such launches
 * count as the others. 0: not recorded. */
static double handing_over_s(const struct knee_account *account, const struct knee_diagnosis *d)
{
    const struct knee_rank *rank = account->ranks[0].source;
    int64_t before = KNEE_NO_TIME;
    size_t started = 0, counted = 0, launched = 0;
    double sum = 0;
    for (size_t i = 0; i < rank->span_count; i++) {
        int64_t at = rank->spans[i].launch_ns;
        if (at == KNEE_NO_TIME)
            continue;
        while (started < i && rank->spans[started].start_ns <= at)
            started++;
        int64_t gap = before == KNEE_NO_TIME ? 0 : at - before;
        bool free = i - started < LONG_QUEUE;
        sum += gap > 0 && gap < PAUSE_NS && free ? 1e-9 * (double)gap : 0;
        counted += free;
        launched++;
        before = at;
    }
    return d->steps > 0 && counted ? sum / d->steps * (double)launched / (double)counted : 0;
}

/* A change of what the GPU does: the host must still hand over as many launches, at its pace
 * without a profiler. */
static void put_above_host(const struct knee_account *account, struct knee_diagnosis *d,
                           const char *name, double step_s, double low_s, double high_s)
{
    double host = handing_over_s(account, d);
    d->handing_over_s = host / KNEE_SLOWED_HOST;
    put_step(d, name, fmax(step_s, d->handing_over_s), fmax(low_s, host / KNEE_SLOWEST_HOST),
             fmin(d->step.wall_s, fmax(high_s, host)));
}

/* Copies from pinned memory run at the rate of the link. On a separate stream they cost only the
 * part that is longer than compute. */
static void add_copies(const struct knee_account *account, struct knee_diagnosis *d)
{
    const struct knee_copy_share *c = d->copies;
    double wall = d->step.wall_s, compute = d->step.label_s[KNEE_COMPUTE];
    double pageable = c[KNEE_COPY_IN_PAGEABLE].exposed_s + c[KNEE_COPY_OUT_PAGEABLE].exposed_s;
    double hosted = c[KNEE_COPY_IN_PINNED].exposed_s + c[KNEE_COPY_OUT_PINNED].exposed_s +
                    c[KNEE_COPY_IN].exposed_s + c[KNEE_COPY_OUT].exposed_s;
    double total = c[KNEE_COPY_IN_PINNED].total_s + c[KNEE_COPY_OUT_PINNED].total_s +
                   c[KNEE_COPY_IN].total_s + c[KNEE_COPY_OUT].total_s;
    double bytes = (c[KNEE_COPY_IN_PAGEABLE].bytes > 0 ? c[KNEE_COPY_IN_PAGEABLE].bytes : 0) +
                   (c[KNEE_COPY_OUT_PAGEABLE].bytes > 0 ? c[KNEE_COPY_OUT_PAGEABLE].bytes : 0);
    double pinned = bytes > 0 ? bytes / d->host_bytes_per_s : NAN;
    if (pageable > 0)
        put_step(d, "hidden copies",
                 wall - pageable + (isnan(pinned) ? pageable / PAGEABLE_FACTOR : pinned),
                 wall - pageable, wall - pageable / 2);
    double device = c[KNEE_COPY_DEVICE].exposed_s;
    if (device > 0) /* at worst its user reads what the copy read */
        put_above_host(account, d, "no device copies", wall - device, wall - device,
                       wall - device / 2);
    if (hosted > 0)
        put_step(d, "copies beside compute",
                 wall - fmin(hosted, fmax(0, compute - (total - hosted))), NAN, NAN);
}

/* How much of the step a second of kernels is: streams run beside each other. */
static double part_of_step(const struct knee_diagnosis *d)
{
    double kernels = 0;
    for (int w = 0; w < KNEE_KERNEL_KINDS; w++)
        kernels += d->works[w].total_s;
    return kernels > 0 ? fmin(1, d->step.label_s[KNEE_COMPUTE] / kernels) : 0;
}

/* Products of 32-bit numbers on tensor cores, which take them as TF32 at half the rate of 16 bits.
 * Large products reach nearly the whole peak of plain cores, but between half and nearly all of
 * that of tensor cores. Returns what they save; 0 too where the GPU is not known. */
static double tf32_saves(const struct knee_diagnosis *d, double plain_s, double reached)
{
    const struct knee_gpu *gpu = knee_hardware_gpu(&d->inputs.hw);
    double left =
        gpu ? PLAIN_REACHED * gpu->fp32_flops / (reached * gpu->bf16_flops / 2) : (double)NAN;
    return left < 1 ? plain_s * (1 - left) : 0;
}

static bool attention_is_unfused(const struct knee_diagnosis *d)
{
    return d->spent_s[KNEE_SPENT_SCORES] * part_of_step(d) >=
               KNEE_WORTH_A_CHANGE * d->step.wall_s &&
           d->works[KNEE_KERNEL_ATTENTION].total_s < d->spent_s[KNEE_SPENT_SCORES];
}

/* Most products use 16 bits. The 32-bit ones are then attention's: PyTorch's math path converts
 * what it is given. */
static bool is_of_16_bits(const struct knee_diagnosis *d)
{
    return d->works[KNEE_KERNEL_PRODUCT].total_s - d->spent_s[KNEE_SPENT_PLAIN] >
           0.1 * d->spent_s[KNEE_SPENT_PLAIN];
}

/* Fused, scores never reach memory. At best its products also take half their time; at worst some
 * of what was counted is not attention's. */
static void add_attention(struct knee_diagnosis *d)
{
    double part = part_of_step(d), scores = d->spent_s[KNEE_SPENT_SCORES] * part,
           wall = d->step.wall_s;
    double plain = is_of_16_bits(d) ? d->spent_s[KNEE_SPENT_PLAIN] * part : 0;
    double products = (d->works[KNEE_KERNEL_PRODUCT].total_s - d->spent_s[KNEE_SPENT_PLAIN]) * part;
    double step = wall - scores - tf32_saves(d, plain, TF32_REACHED);
    if (attention_is_unfused(d))
        put_step(d, "fused attention", step, wall - scores - plain - products / 2,
                 wall - SCORES_AT_WORST * scores - tf32_saves(d, plain, TF32_AT_WORST));
}

static void add_tensor_cores(const struct knee_account *account, struct knee_diagnosis *d)
{
    double plain = d->spent_s[KNEE_SPENT_PLAIN] * part_of_step(d), wall = d->step.wall_s;
    double wider = d->spent_s[KNEE_SPENT_DOUBLE] * part_of_step(d);
    if (wider > 0) /* plain cores do not make 32-bit products much faster than these */
        put_above_host(account, d, "32 bits", wall - tf32_saves(d, wider, TF32_REACHED),
                       wall - tf32_saves(d, wider, 1), wall - tf32_saves(d, wider, TF32_AT_WORST));
    if (!(attention_is_unfused(d) && is_of_16_bits(d)))
        put_above_host(account, d, "tensor cores", wall - tf32_saves(d, plain, TF32_REACHED),
                       wall - tf32_saves(d, plain, 1), wall - tf32_saves(d, plain, TF32_AT_WORST));
}

/* A chain of kernels that is fused takes as long as its longest. */
static void add_fusion(struct knee_diagnosis *d)
{
    double part = part_of_step(d), wall = d->step.wall_s;
    double unfused =
        part * (d->works[KNEE_KERNEL_ELEMENTWISE].total_s + d->works[KNEE_KERNEL_NORM].total_s);
    double left = part * d->spent_s[KNEE_SPENT_FUSED];
    if (unfused >= MUCH_UNFUSED * d->step.label_s[KNEE_COMPUTE] &&
        d->step.label_s[KNEE_COMPUTE] >= 0.5 * wall &&
        d->spent_s[KNEE_SPENT_GENERATED] <= MOSTLY_FUSED * unfused)
        put_step(d, "fused kernels", wall - (unfused - left),
                 wall - (unfused - FUSED_AT_BEST * part * d->spent_s[KNEE_SPENT_LONGEST]),
                 wall - (unfused - left) / 2);
}

/* From TF32 to 16 bits. */
static void add_narrow(const struct knee_account *account, struct knee_diagnosis *d)
{
    double part = part_of_step(d), step_s[3];
    double product = part * d->spent_s[KNEE_SPENT_WIDE_PRODUCT],
           attention = part * d->spent_s[KNEE_SPENT_WIDE_ATTENTION];
    for (int i = 0; i < 3; i++)
        step_s[i] = d->step.wall_s - product * (1 - narrow_product[i]) -
                    attention * (1 - narrow_attention[i]);
    if (product >= MUCH_WIDE * d->step.label_s[KNEE_COMPUTE])
        put_above_host(account, d, "16 bits", step_s[1], step_s[0], step_s[2]);
}

static void add_optimizer(const struct knee_account *account, struct knee_diagnosis *d)
{
    double wall = d->step.wall_s, takes = part_of_step(d) * d->spent_s[KNEE_SPENT_OPTIMIZER];
    if (d->recording == KNEE_RECORDED_TRAINING && takes > 0)
        put_above_host(account, d, "fused optimizer", wall - takes * (1 - OPTIMIZER_LEFT),
                       wall - takes * (1 - OPTIMIZER_AT_BEST),
                       wall - takes * (1 - OPTIMIZER_AT_WORST));
}

/* What is not done any more is saved. */
#define SPARED_AT_WORST 0.9

static void add_spared(const struct knee_account *account, struct knee_diagnosis *d)
{
    static const struct {
        const char *name;
        enum knee_spent spent;
        double at_best; /* a kernel that is stopped in every step is not seen */
        bool forward;   /* not for training, where what is joined does not grow */
    } rows[] = {
        {"no checkpointing", KNEE_SPENT_AGAIN, 1, false},
        {"channels last", KNEE_SPENT_LAYOUT, 1, false},
        {"GPU alone", KNEE_SPENT_STOPPED, 1.2, false},
        {"one tensor", KNEE_SPENT_JOINING, 1, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double spared = part_of_step(d) * d->spent_s[rows[i].spent], wall = d->step.wall_s;
        if (spared > 0 && !(rows[i].forward && d->recording == KNEE_RECORDED_TRAINING))
            put_above_host(account, d, rows[i].name, wall - spared, wall - rows[i].at_best * spared,
                           wall - SPARED_AT_WORST * spared);
    }
}

#define MUCH_INDEXED     0.3 /* of compute */
#define INDEXED_AT_BEST  0.1 /* of it is left, as a sparse product */
#define INDEXED_LEFT     0.4
#define INDEXED_AT_WORST 0.9

static void add_indexing(const struct knee_account *account, struct knee_diagnosis *d)
{
    double wall = d->step.wall_s, takes = part_of_step(d) * d->spent_s[KNEE_SPENT_INDEXING];
    if (takes >= MUCH_INDEXED * d->step.label_s[KNEE_COMPUTE])
        put_above_host(account, d, "less indexing", wall - takes * (1 - INDEXED_LEFT),
                       wall - takes * (1 - INDEXED_AT_BEST), wall - takes * (1 - INDEXED_AT_WORST));
}

static void add_recorded(const struct knee_account *account, struct knee_diagnosis *d)
{
    if (d->slow_wire != SIZE_MAX)
        put_step(d, "expected link rate", d->wired_step_s, NAN, NAN);
    if (d->lone.least_s > d->step.label_s[KNEE_HOST]) /* else it is late itself */
        put_step(d, "even workers", d->step.wall_s - d->lone.least_s, NAN, NAN);
    add_copies(account, d);
    add_fusion(d);
    add_attention(d);
    add_tensor_cores(account, d);
    add_narrow(account, d);
    add_optimizer(account, d);
    add_spared(account, d);
    add_indexing(account, d);
}

void knee_diagnosis_levers(const struct knee_account *account, const struct knee_job *given,
                           struct knee_diagnosis *d)
{
    struct knee_lever_facts facts = facts_of(account, given, d);
    struct knee_terms terms;
    struct knee_row at;
    terms_of(d, given, facts.gradient_bytes, &terms);
    knee_evaluate(&terms, d->workers, &at);
    d->lever_count = knee_levers(&terms, &facts, &at, d->levers);
    d->cost = knee_cost_of(&at, isnan(given->steps) ? at.steps_to_quality : given->steps);
    add_recorded(account, d);
}

/* ---- What is promised ---- */

/* No step is shorter than its compute, and launches that cost nothing shorten it by the gaps that
 * they made: not by waiting for input. A batch that grows is priced by its own compute. */
static void hold_floor(const struct knee_diagnosis *d, struct knee_lever *lever)
{
    double floor_s = d->step.label_s[KNEE_COMPUTE];
    unsigned kind =
        lever->by == KNEE_BY_REPLAY ? 0 : lever->kind; /* the replay has its own bounds */
    if (kind & KNEE_LEVER_INPUT) /* and batches by what is waited for them, and for others */
        floor_s = d->step.wall_s - d->step.label_s[KNEE_STARVED] - d->step.label_s[KNEE_WAIT];
    if (kind & KNEE_LEVER_HOST)
        floor_s = d->step.wall_s - d->step.label_s[KNEE_HOST] - d->step.label_s[KNEE_IDLE];
    if (lever->kind & (KNEE_LEVER_BATCH | KNEE_LEVER_FUSE) || !(lever->row.step.wall_s < floor_s))
        return;
    lever->row.step.wall_s = floor_s;
    lever->gain = knee_step_before_s(d) / floor_s - 1;
    lever->low_s = fmax(lever->low_s, floor_s);
    lever->high_s = fmax(lever->high_s, floor_s);
}

/* Do copies to pageable memory hold up the GPU more than copies from it? */
static bool copies_out(const struct knee_diagnosis *d)
{
    return d->copies[KNEE_COPY_OUT_PAGEABLE].exposed_s > d->copies[KNEE_COPY_IN_PAGEABLE].exposed_s;
}

/* What to try; in a program that is not PyTorch's its words, and nothing where it is not a CUDA
 * program either. */
static const char *how_of(const struct knee_diagnosis *d, const struct knee_lever *lever)
{
    static const struct {
        const char *name, *how;
    } of_cuda[] = {
        {"fewer launches", "cudaStreamBeginCapture(), cudaGraphLaunch()"},
        {"hidden copies", "cudaMallocHost(), cudaMemcpyAsync()"},
        {"copies beside compute", "cudaMemcpyAsync() on another stream"},
        {"no device copies", ""},
        {"faster loader", ""},
        {"fused kernels", ""},
        {"fused attention", ""},
        {"tensor cores", "cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH)"},
        {"16 bits", ""},
        {"fused optimizer", ""},
        {"one tensor", ""},
        {"32 bits", ""},
        {"less indexing", ""},
        {"channels last", ""},
    };
    for (size_t i = 0; i < sizeof of_cuda / sizeof *of_cuda; i++)
        if (d->program != KNEE_PROGRAM_TORCH && strcmp(lever->name, of_cuda[i].name) == 0)
            return d->program == KNEE_PROGRAM_CUDA ? of_cuda[i].how : "";
    if (copies_out(d) && strcmp(lever->name, "hidden copies") == 0)
        return "argmax, mean or loss on the GPU before .cpu()";
    return lever->how;
}

/* Leaves out what cannot be promised. */
static void keep_sober(struct knee_diagnosis *d)
{
    size_t kept = 0;
    for (size_t i = 0; i < d->lever_count; i++) {
        struct knee_lever lever = d->levers[i];
        hold_floor(d, &lever);
        lever.how = how_of(d, &lever);
        lever.cost_ratio = knee_lever_cost(&lever, d->workers);
        lever.saved_per_day = (1 - lever.cost_ratio) * d->cost.day;
        if (!(lever.gain + 1 > KNEE_MOST_TIMES))
            d->levers[kept++] = lever;
    }
    d->lever_count = kept;
}

/* The shapes of the products, not the launches, are what is too small. */
static bool shapes_are_small(const struct knee_diagnosis *d)
{
    return d->suspect == KNEE_SUSPECT_TINY_BATCH && d->roofline.mend > 1 &&
           2 * d->small_shapes > d->share[KNEE_SUSPECT_TINY_BATCH];
}

static bool advises(const struct knee_diagnosis *d)
{
    return d->recording == KNEE_RECORDED_TRAINING || d->recording == KNEE_RECORDED_FORWARD ||
           d->recording == KNEE_RECORDED_SERVING;
}

/* Launches are what takes the time: a good part of the step, mostly short gaps, and more than input
 * does, which comes first otherwise. */
static bool launches_explain(const struct knee_diagnosis *d)
{
    double host = d->step.label_s[KNEE_HOST];
    return host >= KNEE_LAUNCH_BOUND * d->step.wall_s &&
           2 * d->spent_s[KNEE_SPENT_LONG_HOST] <= host && host >= d->step.label_s[KNEE_STARVED];
}

/* What the headline does not advise: hardware; what one rank alone cannot show to be transfer and
 * not waiting; evening out where no rank waits for another; fewer launches where launches are not
 * what takes the time; faster kernels where the GPU computes for less than half of the step. */
static unsigned never_first(const struct knee_diagnosis *d)
{
    unsigned kinds = KNEE_LEVER_HARDWARE;
    if (d->step.comm_s > 0 && !d->split)
        kinds |= KNEE_LEVER_OVERLAP | KNEE_LEVER_COMPRESS;
    if (d->share[KNEE_SUSPECT_STRAGGLER] < KNEE_WORTH_IT && !(d->lone.least_s > 0))
        kinds |= KNEE_LEVER_STRAGGLER;
    if (2 * d->step.label_s[KNEE_COMPUTE] < knee_step_before_s(d))
        kinds |= KNEE_LEVER_FUSE;
    return launches_explain(d) ? kinds : kinds | KNEE_LEVER_HOST;
}

/* What a change gains at least. */
static double least_gain(const struct knee_diagnosis *d, const struct knee_lever *lever)
{
    double worst_s = fmax(lever->high_s, lever->row.step.wall_s);
    return knee_lever_gain(lever) + (knee_step_before_s(d) / worst_s - 1 - lever->gain);
}

/* The first advice: of the safe changes the one that surely gains most. What has no interval is an
 * upper bound, and takes the place of no other. */
static size_t surest(const struct knee_diagnosis *d, unsigned barred)
{
    size_t best = knee_levers_best(d->levers, d->lever_count, barred, KNEE_WORTH_A_CHANGE);
    for (size_t i = best; best != SIZE_MAX && i < d->lever_count; i++)
        if (knee_lever_is_advice(&d->levers[best]) && knee_lever_is_advice(&d->levers[i]) &&
            !(d->levers[i].kind & barred) && !isnan(d->levers[i].high_s) &&
            least_gain(d, &d->levers[i]) > least_gain(d, &d->levers[best]))
            best = i;
    return best;
}

/* The GPU waits longer for something that its host does than the change saves. */
static bool waits_longer(const struct knee_diagnosis *d, const struct knee_lever *lever)
{
    double saved_s = knee_step_before_s(d) - lever->row.step.wall_s;
    return !(lever->kind & (KNEE_LEVER_INPUT | KNEE_LEVER_BATCH)) &&
           d->spent_s[KNEE_SPENT_LONG_HOST] > saved_s;
}

void knee_diagnosis_choose(struct knee_diagnosis *d)
{
    if (!advises(d) || (d->gaps & KNEE_GAP_NO_COMPUTE)) {
        d->lever_count = 0;
        d->lever = SIZE_MAX;
        d->headline = advises(d) ? KNEE_SAYS_REMAINDER : KNEE_SAYS_RECORDING;
        return;
    }
    keep_sober(d);
    knee_levers_sort(d->levers, d->lever_count);
    d->lever = surest(d, never_first(d));
    if (d->lever != SIZE_MAX && d->levers[d->lever].numerics == KNEE_NUMERICS_TRAINING)
        d->lever = shapes_are_small(d) ? find(d, "bigger local batch") : SIZE_MAX;
    if (d->lever != SIZE_MAX && (d->levers[d->lever].kind & KNEE_LEVER_BATCH))
        d->levers[d->lever].saved_per_day = /* as the headline says, by its products */
            (1 - d->roofline.mended_s / d->step.wall_s) * d->cost.day;
    if (d->lever != SIZE_MAX && waits_longer(d, &d->levers[d->lever]))
        d->lever = SIZE_MAX;
    d->headline = d->recording == KNEE_RECORDED_SERVING ? KNEE_SAYS_RECORDING
                  : d->lever != SIZE_MAX                ? KNEE_SAYS_CHANGE
                  : is_healthy(d)                       ? KNEE_SAYS_HEALTHY
                                                        : KNEE_SAYS_REMAINDER;
}

/* ---- Replay ---- */

/* Examples needed before over after a change, as its closed form knows them; those without one need
 * as many as before. NaN: not known. */
static double examples_of(const struct knee_lever *forms, size_t count, const char *name)
{
    bool known = count > 0 && !isnan(forms[0].quality_gain);
    for (size_t i = 0; i < count; i++)
        if (strcmp(forms[i].name, name) == 0)
            return (1 + forms[i].quality_gain) / (1 + forms[i].gain);
    return known ? 1 : NAN;
}

static void take_row(struct knee_diagnosis *d, const struct knee_replay_row *row,
                     struct knee_lever lever, double examples_ratio)
{
    size_t found = find(d, lever.name), at = found == SIZE_MAX ? d->lever_count : found;
    if (at == KNEE_LEVERS_MAX)
        return;
    lever.by = KNEE_BY_REPLAY;
    lever.gain = row->gain;
    lever.low_s = row->low_s;
    lever.high_s = row->high_s;
    lever.row.step.wall_s = row->step_s;
    lever.row.ratio = row->ratio;
    lever.row.efficiency = 1 / (1 + row->ratio);
    lever.row.workers = d->workers;
    lever.quality_gain = (1 + row->gain) * examples_ratio - 1;
    d->levers[at] = lever;
    d->lever_count += at == d->lever_count;
}

/* Changes that a replay of this recording cannot price, or that are not for it. */
static unsigned not_replayed(const struct knee_diagnosis *d)
{
    /* the host waits inside the call that copies to pageable memory, and the replay leaves calls as
     * long as they were */
    return barred_by_recording(d) | (copies_out(d) ? KNEE_LEVER_COPY : 0);
}

/* A row of the replay that is one of the changes offered. */
static bool is_offered(const char *row, const void *diagnosis)
{
    struct knee_lever lever;
    return knee_change_replayed(row, &lever) && !(lever.kind & not_replayed(diagnosis));
}

/* What the recording shows about GPU work holds without the profiler too: as much is saved. */
static struct knee_lever rebased(const struct knee_diagnosis *d, struct knee_lever lever)
{
    double before_s = knee_step_before_s(d), profiler_s = d->step.wall_s - before_s;
    bool compiles = strcmp(lever.name, "fused kernels") == 0; /* which needs fewer launches */
    double least_s = fmax(before_s / KNEE_MOST_TIMES, compiles ? 0 : d->handing_over_s);
    if (!(d->unprofiled_s > 0))
        return lever;
    lever.row.step.wall_s = fmax(least_s, lever.row.step.wall_s - profiler_s);
    lever.low_s = fmax(least_s * KNEE_SLOWED_HOST / KNEE_SLOWEST_HOST, lever.low_s - profiler_s);
    lever.high_s = fmax(least_s, lever.high_s - profiler_s);
    lever.gain = before_s / lever.row.step.wall_s - 1;
    return lever;
}

/* Closed forms do not know what hides behind what: where a replay was made, rows that it could have
 * answered and did not are left out. */
static void take_replay(const struct knee_replay *replay, struct knee_diagnosis *d)
{
    struct knee_lever lever, forms[KNEE_LEVERS_MAX];
    size_t kept = 0, form_count = 0;
    d->unprofiled_s = replay->host_pace < 1 ? replay->replayed_step_s : 0;
    for (size_t i = 0; i < d->lever_count; i++)
        if (d->levers[i].by != KNEE_BY_FORM)
            d->levers[kept++] = rebased(d, d->levers[i]);
        else
            forms[form_count++] = d->levers[i];
    d->lever_count = kept;
    for (size_t i = 0; i < replay->row_count; i++) {
        const struct knee_replay_row *row = &replay->rows[i];
        if (!row->refused[0] && knee_change_replayed(row->name, &lever))
            take_row(d, row, lever, examples_of(forms, form_count, lever.name));
    }
}

/* Even if no rank is late, ranks that depend on each other wait; only the replay can show that. */
static void take_punctual(struct knee_diagnosis *d)
{
    size_t even = find(d, "even workers");
    if (even != SIZE_MAX)
        d->punctual_step_s = d->levers[even].row.step.wall_s;
}

/* Why this recording is not replayed unasked; NULL: it is. */
static const char *unsuited(const struct knee_account *account, const struct knee_diagnosis *d)
{
    const unsigned alone =
        KNEE_GAP_ONE_RANK | KNEE_GAP_RANKS_MISSING | KNEE_GAP_UNMATCHED | KNEE_GAP_OTHER_STEPS;
    if (d->gaps & KNEE_GAP_NO_COMPUTE)
        return "almost no compute is recorded";
    if (!advises(d))
        return "this is not a training step";
    if (d->gaps & alone)
        return "ranks are missing, and what they exchange cannot be replayed";
    for (size_t r = 0; r < account->rank_count; r++)
        if (account->ranks[r].trace->host_event_count == 0)
            return "the host's calls are not in the recording, or were not kept";
    return NULL;
}

static bool is_large(const struct knee_account *account)
{
    size_t work = 0;
    uint64_t bytes = 0;
    for (size_t r = 0; r < account->rank_count; r++) {
        const struct knee_rank_account *rank = &account->ranks[r];
        work += rank->source->span_count;
        if (r == 0 || rank->trace != account->ranks[r - 1].trace)
            bytes += rank->trace->bytes;
    }
    return work > KNEE_LEVERS_MOST_WORK || bytes > KNEE_LEVERS_MOST_BYTES;
}

knee_status knee_replay_levers(const struct knee_account *account, bool also_large,
                               const struct knee_alloc *alloc, struct knee_diagnosis *d,
                               struct knee_err *err)
{
    struct knee_replay *replay = NULL;
    struct knee_err why = {.status = KNEE_OK};
    const char *reason = unsuited(account, d);
    if (!reason && !also_large && is_large(account))
        reason = "the recording is large; add `--levers replay` to replay it";
    knee_format(d->closed_because, sizeof d->closed_because, "%s", reason ? reason : "");
    if (reason)
        return KNEE_OK;
    if (!(replay = knee_resize(alloc, NULL, sizeof *replay)))
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the changes");
    struct knee_replay_table table = {.wanted = is_offered, .context = d};
    if (d->profiled_host && account->ranks[0].trace->operations)
        table.host_pace = 1 / KNEE_SLOWED_HOST;
    knee_status status = knee_replay_standard(account, &table, alloc, replay, &why);
    if (!status) {
        take_replay(replay, d);
        take_punctual(d);
        knee_diagnosis_choose(d);
    } else if (status == KNEE_SYSTEM && err) {
        *err = why;
    } else {
        knee_format(d->closed_because, sizeof d->closed_because, "%s", why.what);
    }
    knee_resize(alloc, replay, 0);
    return status == KNEE_SYSTEM ? status : KNEE_OK;
}
