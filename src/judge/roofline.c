/* SPDX-License-Identifier: MIT */
/*
 * Products and attention against the roofline. Three times for the same work: what its kernels
 * took; what products of these shapes take by the operation model (start, waves of tiles, memory);
 * and what the same FLOPs would take in a large batch. The last two differ by what is lost because
 * the batch is small; the first two by everything else (contention, layout, clocks).
 *
 * The rows of the first factor show which side of a product is the batch. In a linear layer they
 * are examples times positions for the forward pass and for the gradient of the input; for the
 * gradient of the weights the inner length is the batch.
 */
#include "cluster/gpu_words.h"
#include "judge/judge.h"
#include "predict/plan/op_time.h"
#include "timeline/marks.h"
#include "timeline/where.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 64 };

/* Compute below this share of the rate that large products reach is far from the roofline. */
#define FAR_BELOW 0.5
/* A batch is large enough when examples take at most so much longer than in a very large one. */
#define NEAR_ENOUGH 1.25

/* FLOPs by the rows of their first factor. */
struct votes {
    double rows[MOST_ROWS], flops[MOST_ROWS], all;
    size_t count;
};

static bool is_layer(const struct knee_product *p)
{
    return p->kernel_ns > 0 && !p->attention && p->count == 1;
}

static void vote(struct votes *votes, const struct knee_product *p)
{
    double flops = knee_product_flops(p);
    size_t i = 0;
    votes->all += flops;
    while (i < votes->count && votes->rows[i] != p->m)
        i++;
    if (i == MOST_ROWS)
        return;
    if (i == votes->count)
        votes->rows[votes->count++] = p->m;
    votes->flops[i] += flops;
}

/* A third of the FLOPs at least, as the forward passes of all layers are. */
static double winner(const struct votes *votes)
{
    size_t best = 0;
    for (size_t i = 1; i < votes->count; i++)
        best = votes->flops[i] > votes->flops[best] ? i : best;
    return votes->count && 3.3 * votes->flops[best] >= votes->all ? votes->rows[best] : NAN;
}

/* The product in a batch so many times as large. */
static struct knee_product larger(const struct knee_product *p, double rows, double factor)
{
    struct knee_product out = *p;
    if (p->attention || p->count > 1)
        out.count *= factor;
    else if (p->m == rows)
        out.m *= factor;
    else if (p->k == rows)
        out.k *= factor;
    else if (p->n == rows)
        out.n *= factor;
    return out;
}

/* Tensor cores take 32-bit numbers as tf32, at half the rate of 16 bits. */
static double peak_of(const struct knee_trace *trace, const struct knee_product *p,
                      const struct knee_machine *machine)
{
    if (p->element_bytes == 2)
        return machine->peak_flops[KNEE_16BIT];
    if (p->element_bytes == 1)
        return machine->peak_flops[KNEE_8BIT];
    bool tf32 = p->element_bytes == 4 && p->kernel && strstr(trace->names[p->kernel - 1], "tf32");
    return tf32 ? machine->peak_flops[KNEE_16BIT] / 2 : NAN;
}

/* Seconds by the model; `peak` may be below that of the type (tf32). */
static double model_s(const struct knee_machine *machine, const struct knee_product *p, double peak)
{
    struct knee_operation op = {
        .kind = p->attention ? KNEE_OPERATION_FLASH : KNEE_OPERATION_GEMM,
        .dtype = p->element_bytes == 1 ? KNEE_8BIT : KNEE_16BIT,
        .backward = p->backward,
        .count = p->count,
        .flops = knee_product_flops(p),
        .bytes = knee_product_bytes(p) / p->count,
        .m = p->m,
        .n = p->n,
        .k = p->k,
    };
    double slower = machine->peak_flops[op.dtype] / peak;
    if (p->count > 1 && !p->attention) { /* one launch for all of them */
        op.count = 1;
        op.m *= p->count;
        op.bytes *= p->count;
    }
    return slower * knee_operation_s(machine, &op);
}

/* Of one rank, in all its complete steps. */
struct sums {
    double product_s, flops, judged_s, judged_flops, judged_bytes, peak_s, reach_s;
    double scaled_s[KNEE_BATCH_FACTORS]; /* today's FLOPs in a batch 2^i times as large */
    double optimizer_s;
};

static void add(struct sums *sums, const struct knee_trace *trace, const struct knee_product *p,
                const struct knee_machine *machine, double rows)
{
    double flops = knee_product_flops(p), seconds = 1e-9 * (double)p->kernel_ns;
    double peak = machine ? peak_of(trace, p, machine) : NAN;
    sums->product_s += seconds;
    sums->flops += flops;
    if (!machine || !(peak > 0))
        return;
    sums->judged_s += seconds;
    sums->judged_flops += flops;
    sums->judged_bytes += knee_product_bytes(p);
    sums->peak_s += flops / peak;
    sums->reach_s += model_s(machine, p, peak);
    double factor = 1;
    for (int i = 0; i < KNEE_BATCH_FACTORS; i++, factor *= 2) {
        struct knee_product large = larger(p, rows, factor);
        sums->scaled_s[i] += model_s(machine, &large, peak) / factor;
    }
}

/* Kernels launched in an optimizer's step: as long whatever the batch. */
static double optimizer_s(const struct knee_account *account, size_t row)
{
    const struct knee_rank *source = account->ranks[row].source;
    const struct knee_trace *trace = account->ranks[row].trace;
    struct knee_marks marks = {trace->optimizers, trace->optimizer_count};
    double sum = 0;
    for (size_t i = 0; i < source->span_count && marks.count; i++) {
        const struct knee_span *span = &source->spans[i];
        size_t mark = span->kind == KNEE_SPAN_COMPUTE && span->launch_ns != KNEE_NO_TIME
                          ? knee_marks_before(marks, span->launch_ns)
                          : 0;
        if (mark && span->launch_ns <= marks.list[mark - 1].end_ns &&
            knee_in_complete_step(account, row, span->start_ns))
            sum += 1e-9 * (double)(span->end_ns - span->start_ns);
    }
    return sum;
}

/* `rows` NaN: what depends on the batch comes out wrong, and is not used. */
static struct sums sum_rank(const struct knee_account *account, size_t row,
                            const struct knee_machine *machine, double rows)
{
    const struct knee_rank_account *rank = &account->ranks[row];
    struct sums sums = {0};
    for (size_t i = 0; i < rank->trace->product_count; i++) {
        const struct knee_product *p = &rank->trace->products[i];
        if (p->kernel_ns > 0 && p->device == rank->source->device &&
            knee_in_complete_step(account, row, p->first_ns))
            add(&sums, rank->trace, p, machine, rows);
    }
    if (sums.product_s > 0)
        sums.optimizer_s = optimizer_s(account, row);
    return sums;
}

static bool machine_of(int gpu, struct knee_machine *out)
{
    struct knee_platform platform;
    struct knee_err err;
    knee_platform_init(&platform);
    platform.hw.gpu = gpu;
    return gpu >= 0 && !knee_machine_init(&platform, NULL, out, &err);
}

static double batch_rows(const struct knee_account *account)
{
    struct votes votes = {.all = 0};
    const struct knee_trace *trace = account->ranks[0].trace;
    for (size_t i = 0; i < trace->product_count; i++)
        if (is_layer(&trace->products[i]))
            vote(&votes, &trace->products[i]);
    return winner(&votes);
}

static void add_rank(struct knee_roofline *r, const struct sums *sums, double each, double *peak_s)
{
    r->product_s += each * sums->product_s;
    r->flops += each * sums->flops;
    r->judged_s += each * sums->judged_s;
    r->judged_flops += each * sums->judged_flops;
    r->judged_bytes += each * sums->judged_bytes;
    r->reach_s += each * sums->reach_s;
    r->optimizer_s += each * sums->optimizer_s;
    for (int i = 0; i < KNEE_BATCH_FACTORS; i++)
        r->scaled_s[i] += each * sums->scaled_s[i];
    *peak_s += each * sums->peak_s;
}

double knee_batch_step_s(const struct knee_diagnosis *d, int doublings)
{
    const struct knee_roofline *r = &d->roofline;
    double factor = (double)(1u << doublings), fixed = r->optimizer_s + d->step.label_s[KNEE_HOST];
    double products = r->judged_s * (1 - r->scaled_s[doublings] / r->reach_s);
    return d->step.wall_s - products - fixed * (1 - 1 / factor);
}

/* The smallest batch whose examples take nearly as little as in a very large one. */
static void find_mend(struct knee_diagnosis *d)
{
    struct knee_roofline *r = &d->roofline;
    double best = knee_batch_step_s(d, KNEE_BATCH_FACTORS - 1);
    int i = 0;
    while (knee_batch_step_s(d, i) > NEAR_ENOUGH * best)
        i++;
    r->mend = (double)(1u << i);
    r->mended_s = knee_batch_step_s(d, i);
}

/* A recording that is faster than the model shows that the model is too slow for this machine. */
static void heed_recording(struct knee_roofline *r)
{
    double fit = r->judged_s < r->reach_s ? r->judged_s / r->reach_s : 1;
    r->reach_s *= fit;
    for (int i = 0; i < KNEE_BATCH_FACTORS; i++)
        r->scaled_s[i] *= fit;
}

/* The shares that are reported. */
static void set_shares(struct knee_roofline *r, double compute_s)
{
    bool judged = r->judged_s > 0;
    r->of_compute = r->product_s / compute_s;
    r->flops_per_s = r->flops / r->product_s;
    r->judged_flops_per_s = judged ? r->judged_flops / r->judged_s : NAN;
    r->flops_per_byte = judged ? r->judged_flops / r->judged_bytes : NAN;
    r->of_peak = r->judged_flops_per_s / r->peak_flops;
    r->shapes_of_peak = judged ? r->judged_flops / r->reach_s / r->peak_flops : NAN;
    r->large_of_peak = judged ? r->judged_flops / r->large_s / r->peak_flops : NAN;
    /* Larger shapes lose as much against the model as these do */
    r->reached_of_peak = r->large_of_peak * r->reach_s / r->judged_s;
}

void knee_find_roofline(const struct knee_account *account, int gpu, struct knee_diagnosis *d)
{
    struct knee_roofline r = {.rows = batch_rows(account), .mend = NAN, .mended_s = NAN};
    struct knee_machine machine;
    bool known = machine_of(gpu, &machine);
    d->host_bytes_per_s = known ? machine.rates.host_bytes_per_s : NAN;
    double ranks = (double)account->rank_count, peak_s = 0;
    for (size_t i = 0; i < account->rank_count; i++) {
        struct sums sums = sum_rank(account, i, known ? &machine : NULL, r.rows);
        add_rank(&r, &sums, 1 / (ranks * knee_complete_steps(account, i)), &peak_s);
    }
    heed_recording(&r);
    r.peak_flops = peak_s > 0 ? r.judged_flops / peak_s : NAN;
    r.large_s = isnan(r.rows) ? NAN : r.scaled_s[KNEE_BATCH_FACTORS - 1];
    double compute_s = d->step.label_s[KNEE_COMPUTE];
    set_shares(&r, compute_s);
    d->roofline = r;
    if (!(r.judged_s > 0) || !(r.large_s > 0))
        return;
    find_mend(d);
    d->roofline.optimizer_counts = r.optimizer_s >= KNEE_NO_BOTTLENECK * d->step.wall_s;
    if (r.large_s / r.judged_flops * r.flops < FAR_BELOW * compute_s)
        d->small_shapes =
            (fmax(0, r.judged_s * (1 - r.large_s / r.reach_s)) + r.optimizer_s) / d->step.wall_s;
}

/* CUDA graphs are worth a try where the GPU waits for its host, many kernels are short and few
 * launches are graphs already. */
#define MANY_SHORT 0.25
#define FEW_GRAPHS 0.1

static void find_half_empty(const struct knee_diagnosis *d, struct knee_where *where)
{
    struct knee_machine machine;
    where->half_empty_s = NAN;
    if (!machine_of(d->inputs.hw.gpu, &machine))
        return;
    double known = 0, sum = 0;
    for (size_t i = 0; i < where->kernel_count; i++) {
        const struct knee_kernel_use *k = &where->kernels[i];
        known += k->blocks >= 0 ? k->exposed_s : 0;
        sum +=
            k->blocks >= 0 && (double)k->blocks < machine.rates.processors / 2 ? k->exposed_s : 0;
    }
    where->half_empty_s = known > 0 ? sum : NAN;
}

/* What took the host's lead in a third of its gaps or more, and can be changed. */
static enum knee_host_act main_act_of(const struct knee_where *where)
{
    int most = KNEE_ACT_ITEM;
    for (int act = KNEE_ACT_ITEM; act <= KNEE_ACT_GC; act++)
        most = where->gaps[act].total_s > where->gaps[most].total_s ? act : most;
    bool counts = where->gaps_s > 0 && 3 * where->gaps[most].total_s >= where->gaps_s;
    return counts ? (enum knee_host_act)most : KNEE_ACTS;
}

void knee_judge_where(const struct knee_diagnosis *d, struct knee_where *where)
{
    const struct knee_launches *l = &where->launches;
    find_half_empty(d, where);
    where->main_act = main_act_of(where);
    double host_s = d->step.label_s[KNEE_HOST], exposed_s = knee_step_exposed_s(&d->step);
    double most_s = fmax(d->step.label_s[KNEE_COMPUTE], fmax(host_s, exposed_s));
    where->look = most_s == host_s && where->host ? KNEE_LOOK_GAPS
                  : most_s == exposed_s           ? KNEE_LOOK_COLLECTIVES
                                                  : KNEE_LOOK_KERNELS;
    where->graphs_help = d->step.label_s[KNEE_HOST] >= KNEE_NO_BOTTLENECK * d->step.wall_s &&
                         l->short_share >= MANY_SHORT && l->graphs < FEW_GRAPHS * l->launches;
}
