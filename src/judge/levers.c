/* SPDX-License-Identifier: MIT */
/*
 * Levers: each row changes a copy of the terms; the closed forms say what that buys at the
 * verdict's worker count. A row that does not apply says so by returning false.
 */
#include "judge/judge.h"

#include "base/text.h"
#include "collective/collective.h"
#include "job/job.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* A change being tried: the terms, the worker count, and how the change is called. */
struct trial {
    struct knee_terms terms;
    double workers;
    const struct knee_lever_facts *facts;
    const char *change;
};

static bool more_workers(struct trial *t)
{
    double limit = t->facts->limit_workers; /* one example each */
    t->workers *= 2;
    return t->workers <= (isnan(limit) ? KNEE_WORKERS_MAX : limit);
}

static bool fewer_workers(struct trial *t)
{
    double now = t->workers;
    t->workers = t->facts->knee_workers;
    return t->workers < now;
}

static void grow_batch(struct knee_terms *terms, double times)
{
    terms->compute_s *= times;
    terms->batch *= times;
    terms->work *= times;
}

/* More examples cost more input and copies; launches only when there are more micro-steps. */
static bool bigger_batch(struct trial *t)
{
    grow_batch(&t->terms, 2);
    t->terms.stall_s[KNEE_STARVED] *= 2;
    t->terms.stall_s[KNEE_COPY] *= 2;
    return true;
}

static bool accumulate(struct trial *t)
{
    grow_batch(&t->terms, 4);
    t->terms.accumulate *= 4;
    for (int label = KNEE_COPY; label < KNEE_LABELS; label++)
        t->terms.stall_s[label] *= 4;
    return true;
}

static bool overlap(struct trial *t)
{
    bool more = t->terms.overlap < 1 || !isnan(t->terms.hidden);
    t->terms.overlap = 1;
    t->terms.hidden = NAN;
    return more;
}

/* Sends `bytes` per parameter. Encoding and decoding read or write the gradient, 4 bytes each,
 * `passes` times at the GPU's memory bandwidth: a model, not a measurement. */
static bool send_bytes(struct trial *t, double bytes, double passes)
{
    const struct knee_lever_facts *f = t->facts;
    double sent = t->terms.bytes * f->bytes_per_param / f->gradient_bytes;
    if (bytes >= 0.99 * sent)
        return false;
    t->terms.bytes = f->gradient_bytes / (f->bytes_per_param / bytes);
    t->terms.encode_s = isnan(f->params) ? 0 : passes * 4 * f->params / f->memory_bytes_per_s;
    return true;
}

static bool send_bf16(struct trial *t)
{
    return send_bytes(t, 2, 1.5);
}

static bool send_fp8(struct trial *t)
{
    return send_bytes(t, 1 + 4.0 / 128, 3); /* a 4-byte scale per 128 values */
}

static bool send_int8(struct trial *t)
{
    return send_bytes(t, 1 + 4.0 / 256, 3); /* a 4-byte scale per 256 values */
}

static bool send_low_rank(struct trial *t)
{
    double rank = 4, h = t->facts->width;
    return send_bytes(t, 4 * 2 * rank / h, 6); /* two factors of h x rank for each h x h */
}

static bool send_top_k(struct trial *t)
{
    t->terms.algorithm = &knee_sparse_gather;
    return send_bytes(t, 0.01 * (4 + 4), 8); /* value and index of 1 % */
}

static bool send_one_bit(struct trial *t)
{
    return send_bytes(t, 1.0 / 8 + 4.0 / 1024, 5); /* a sign each, a scale per 1024 */
}

static bool meet_every(struct trial *t, double steps)
{
    bool rarer = t->terms.local_steps < steps;
    t->terms.local_steps = steps;
    return rarer;
}

static bool local_sgd(struct trial *t)
{
    return meet_every(t, 8);
}

static bool diloco(struct trial *t)
{
    return meet_every(t, 100);
}

static bool faster_link(struct trial *t)
{
    struct knee_cluster *c = &t->terms.cluster;
    double node = t->facts->gpus_per_node;
    if (!t->facts->link_known)
        t->terms.comm_scale /= 2;
    else if (node > 1 && t->workers <= node)
        c->levels[0].bytes_per_s *= 2;
    else {
        c->levels[c->level_count > 1 ? 1 : 0].bytes_per_s *= 2;
        c->fitted = NULL; /* the curves are of another network */
    }
    return true;
}

static bool best_algorithm(struct trial *t)
{
    const struct knee_cluster *cluster = &t->terms.cluster;
    struct knee_group all = {t->workers, 1, true};
    double bytes = t->terms.bytes;
    const struct knee_algorithm *now = t->terms.algorithm, *best = now;
    if (!now && cluster->textbook)
        now = best = &knee_ring;
    if (!now || now->gathers || t->workers <= 1) /* the library picks the quickest it has */
        return false;
    double best_s = knee_collective_s(cluster, KNEE_OP_ALL_REDUCE, all, bytes, now);
    for (size_t row = 0; knee_algorithm_at(row); row++) {
        const struct knee_algorithm *other = knee_algorithm_at(row);
        double other_s = knee_collective_s(cluster, KNEE_OP_ALL_REDUCE, all, bytes, other);
        if (other->gathers || !(other_s < 0.99 * best_s))
            continue;
        best = other;
        best_s = other_s;
    }
    t->terms.algorithm = best;
    t->change = best->name;
    return best != now;
}

/* Tensor parallel over the node: 1/n of the gradient each, but 4 all-reduces of the activations a
 * layer. Their time over compute is (n-1) (2/9) rate / (h B): 16 t h bytes against 72 t h^2 FLOPs.
 */
static bool another_axis(struct trial *t)
{
    const struct knee_lever_facts *f = t->facts;
    double n = f->gpus_per_node;
    if (!(n > 1) || t->workers < 2 * n || isnan(f->flops_per_s) || f->width < 1024)
        return false;
    t->terms.shard = n;
    t->terms.axis_tax = (n - 1) * 2 / 9 * f->flops_per_s / (f->width * f->node_bytes_per_s);
    return true;
}

static bool faster_loader(struct trial *t)
{
    bool loads = !isnan(t->terms.loader_rate_per_s) || t->terms.stall_s[KNEE_STARVED] > 0;
    t->terms.loader_rate_per_s *= 2;
    t->terms.stall_s[KNEE_STARVED] = 0;
    return loads;
}

static bool even_workers(struct trial *t)
{
    bool uneven = t->terms.jitter > 0 || t->terms.stall_s[KNEE_WAIT] > 0;
    t->terms.jitter = 0;
    t->terms.stall_s[KNEE_WAIT] = 0;
    return uneven;
}

static bool without(struct trial *t, enum knee_label label)
{
    bool had = t->terms.stall_s[label] > 0;
    t->terms.stall_s[label] = 0;
    return had;
}

static bool fewer_launches(struct trial *t)
{
    return without(t, KNEE_HOST);
}

static bool hidden_copies(struct trial *t)
{
    return without(t, KNEE_COPY);
}

#define SECONDS_PER_DAY 86400.0

static const struct {
    const char *name, *change, *risk;
    unsigned kind;
    bool (*apply)(struct trial *);
    bool training; /* the run would learn otherwise: never the first advice */
} table[] = {
    {"more workers", "2x", "each pays less than the last", KNEE_LEVER_WORKERS, more_workers, false},
    {"fewer workers", "to the knee", "slower, but each worker pays", KNEE_LEVER_FEWER,
     fewer_workers, false},
    {"bigger local batch", "2x", "memory; global batch 2x, nearer to the critical batch",
     KNEE_LEVER_BATCH, bigger_batch, true},
    {"accumulate", "4 micro-steps", "no memory; global batch 4x, nearer to the critical batch",
     KNEE_LEVER_BATCH, accumulate, true},
    {"overlap", "eta 1", "none for quality; the best that overlap can do", KNEE_LEVER_OVERLAP,
     overlap, false},
    {"compress: bf16", "2 B/param", "small: rounding of the sum", KNEE_LEVER_COMPRESS, send_bf16,
     false},
    {"compress: fp8", "1.03 B/param", "needs scaling; watch the loss", KNEE_LEVER_COMPRESS,
     send_fp8, true},
    {"compress: int8", "1.02 B/param", "needs scales and error feedback", KNEE_LEVER_COMPRESS,
     send_int8, true},
    {"compress: PowerSGD", "rank 4", "needs error feedback; loses a little accuracy at low rank",
     KNEE_LEVER_COMPRESS, send_low_rank, true},
    {"compress: top-k", "1 %", "needs error feedback; all-gather grows with workers",
     KNEE_LEVER_COMPRESS, send_top_k, true},
    {"compress: 1-bit", "0.13 B/param", "needs error feedback and a warm-up", KNEE_LEVER_COMPRESS,
     send_one_bit, true},
    {"local SGD", "sync every 8", "workers drift apart between synchronisations", KNEE_LEVER_SYNC,
     local_sgd, true},
    {"DiLoCo", "sync every 100", "other optimizer (outer momentum); costs some loss per token",
     KNEE_LEVER_SYNC, diloco, true},
    {"faster link", "2x", "money for hardware", KNEE_LEVER_NETWORK, faster_link, false},
    {"another algorithm", "", "none for quality; set it in the library", KNEE_LEVER_NETWORK,
     best_algorithm, false},
    {"another axis", "tensor parallel in the node", "code; see knee tax for what it pays",
     KNEE_LEVER_NETWORK, another_axis, false},
    {"faster loader", "keeps ahead", "CPU cores or storage", KNEE_LEVER_INPUT, faster_loader,
     false},
    {"even workers", "all on time", "find the slow worker; the best that evening out can do",
     KNEE_LEVER_STRAGGLER, even_workers, false},
    {"fewer launches", "host keeps ahead", "CUDA graphs or compilation; fixed shapes",
     KNEE_LEVER_HOST, fewer_launches, false},
    {"hidden copies", "pinned, asynchronous", "none for quality", KNEE_LEVER_HOST, hidden_copies,
     false},
};
#define TABLE (sizeof table / sizeof *table)
_Static_assert(TABLE <= KNEE_LEVERS_MAX, "KNEE_LEVERS_MAX is too small");

double knee_lever_gain(const struct knee_lever *lever)
{
    return isnan(lever->quality_gain) ? lever->gain : lever->quality_gain;
}

/* Insertion sort: there are few, and ties keep the table's order. */
static void most_gain_first(struct knee_lever *levers, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct knee_lever lever = levers[i];
        size_t j = i;
        for (; j > 0 && knee_lever_gain(&levers[j - 1]) < knee_lever_gain(&lever); j--)
            levers[j] = levers[j - 1];
        levers[j] = lever;
    }
}

static void weigh(const struct trial *t, const struct knee_row *before, struct knee_lever *lever)
{
    knee_evaluate(&t->terms, t->workers, &lever->row);
    lever->knee_workers = knee_tolerance_workers(&t->terms, t->facts->tolerance);
    lever->gain = lever->row.throughput_per_s / before->throughput_per_s - 1;
    lever->quality_gain = before->time_to_quality_s / lever->row.time_to_quality_s - 1;
    lever->cost_ratio = lever->row.workers / before->workers / (1 + lever->gain);
    lever->saved_per_day =
        (1 - lever->cost_ratio) * before->workers * t->terms.price_per_s * SECONDS_PER_DAY;
}

/* Transformers keep layers near hidden/128 (Kaplan et al. 2020), so P = 12 L h^2 gives h. */
static double width_of(const struct knee_job *job)
{
    const struct knee_model *model = job->model >= 0 ? knee_model_at((size_t)job->model) : NULL;
    if (model && !isnan(model->hidden))
        return model->hidden;
    return isnan(job->params) ? 4096 : cbrt(job->params * 128 / 12);
}

struct knee_lever_facts knee_lever_facts_of(const struct knee_job *job,
                                            const struct knee_knee *knee)
{
    return (struct knee_lever_facts){
        .params = job->params,
        .bytes_per_param = job->bytes_per_param,
        .gradient_bytes = knee_job_bytes(job),
        .width = width_of(job),
        .flops_per_s = job->flops_per_s,
        .memory_bytes_per_s = job->hw.memory_bytes_per_s,
        .node_bytes_per_s = job->hw.node_bandwidth_bytes_per_s,
        .gpus_per_node = job->hw.gpus_per_node,
        .link_known = !isnan(job->hw.bandwidth_bytes_per_s),
        .tolerance = job->tolerance,
        .limit_workers = knee->limit_workers,
        .knee_workers = knee->tolerance_workers,
        .barred = job->barred,
    };
}

/* Row i of the table, where it is not barred and applies. */
static bool try_lever(size_t i, struct trial *t)
{
    if ((table[i].kind & t->facts->barred) || !table[i].apply(t))
        return false;
    knee_terms_settle(&t->terms);
    return true;
}

void knee_levers(const struct knee_terms *terms, const struct knee_lever_facts *facts,
                 struct knee_prediction *prediction)
{
    prediction->lever_count = 0;
    for (size_t i = 0; i < TABLE; i++) {
        struct trial trial = {*terms, prediction->at.workers, facts, table[i].change};
        if (!try_lever(i, &trial))
            continue;
        struct knee_lever *lever = &prediction->levers[prediction->lever_count++];
        lever->name = table[i].name;
        lever->risk = table[i].risk;
        lever->kind = table[i].kind;
        lever->training = table[i].training;
        lever->replayed = false;
        lever->low_s = lever->high_s = NAN;
        lever->change = trial.change;
        weigh(&trial, &prediction->at, lever);
    }
    most_gain_first(prediction->levers, prediction->lever_count);
}

double knee_levers_pull(const struct knee_prediction *before, const char *set,
                        struct knee_terms *terms)
{
    struct knee_lever_facts facts = knee_lever_facts_of(&before->job, &before->knee);
    double workers = before->at.workers;
    *terms = before->terms;
    for (; *set; set += *set == '+') {
        size_t length = strcspn(set, "+");
        for (size_t i = 0; i < TABLE; i++) {
            struct trial trial = {*terms, workers, &facts, table[i].change};
            bool meant = strncmp(table[i].name, set, length) == 0 && !table[i].name[length];
            if (!meant || !try_lever(i, &trial))
                continue;
            *terms = trial.terms;
            workers = trial.workers;
        }
        set += length;
    }
    return workers;
}

size_t knee_levers_best(const struct knee_prediction *prediction, unsigned kinds, double least)
{
    for (int training = 0; training <= 1; training++)
        for (size_t i = 0; i < prediction->lever_count; i++) {
            const struct knee_lever *lever = &prediction->levers[i];
            if (lever->training == training && (lever->kind & kinds) &&
                knee_lever_gain(lever) >= least)
                return i;
        }
    return SIZE_MAX;
}
