/* SPDX-License-Identifier: MIT */
/*
 * How well logs are predicted, in four ways: at every second size, fitted at the others; at the
 * sizes of the fit; by the preset of what the log was recognised as, without any fit; and from
 * another log of the same cluster, fitted to an all-reduce. Errors are |predicted / measured - 1|;
 * pooled figures count every row once.
 */
#include "base/error.h"
#include "base/format.h"
#include "base/list.h"
#include "base/order.h"
#include "base/text.h"
#include "cluster/cluster.h"
#include "collective/collective.h"
#include "knee_logs.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What is promised: docs/reference/fit.md says which logs keep it. */
#define LEFT_OUT_MEDIAN 0.08
#define LEFT_OUT_P90    0.25
#define PRESET_MEDIAN   0.25
#define TRANSFER_MEDIAN 0.20

/* ---- What a log is of ---- */

bool knee_log_plain(const struct knee_log *log)
{
    return strcmp(log->gpu, "CPU") == 0;
}

bool knee_log_cluster(const struct knee_log *log, const char *about, struct knee_cluster *out)
{
    char words[600];
    if (knee_log_plain(log)) {
        knee_cluster_plain(out);
        return true;
    }
    /* What the log says itself comes before what people say about it. */
    knee_format(words, sizeof words, "%.48s %.300s %.96s", log->gpu, about ? about : "", log->file);
    if (knee_cluster_recognise(words, out))
        return true;
    knee_cluster_parse("8xa100 * 0", out, NULL);
    knee_format(out->name, sizeof out->name, "not recognised");
    return false;
}

#define WIDEST_NODE 16 /* a larger domain is a rack of nodes on one NVLink */

static struct knee_placement place(const struct knee_log *log, const struct knee_cluster *cluster)
{
    double node = cluster->levels[0].count;
    bool rack = node > WIDEST_NODE && node >= log->ranks;
    return (struct knee_placement){
        .ranks = log->ranks,
        .per_node = rack ? NAN : ceil(log->ranks / log->nodes),
        .sharers = 1,
        .skew = 1,
    };
}

void knee_log_question(const struct knee_log *log, const struct knee_cluster *cluster,
                       double *bytes, struct knee_collective_query *out)
{
    size_t count = 0;
    for (size_t i = 0; i < log->sample_count && count < KNEE_SIZES_MAX; i++)
        if (count == 0 || bytes[count - 1] != log->samples[i].bytes)
            bytes[count++] = log->samples[i].bytes;
    *out = (struct knee_collective_query){log->op, place(log, cluster), bytes, count};
}

knee_status knee_log_layout(const struct knee_log *log, struct knee_cluster *cluster,
                            struct knee_layout *out, struct knee_err *err)
{
    struct knee_level *node = &cluster->levels[0];
    double widths[2] = {node->count, cluster->levels[1].count};
    struct knee_placement placement = place(log, cluster);
    bool rack = isnan(placement.per_node);
    if (!rack && node->count > 0 && placement.per_node > node->count)
        node->count = placement.per_node;
    if (cluster->level_count > 1)
        cluster->levels[1].count = 0; /* a log may have more nodes than the cluster names */
    knee_status status = knee_layout_init(cluster, &placement, out, err);
    for (size_t l = 0; status && l < 2; l++)
        cluster->levels[l].count = widths[l];
    return status;
}

knee_status knee_log_wire(const struct knee_log *log, const struct knee_alloc *alloc,
                          struct knee_cluster *cluster, struct knee_err *err)
{
    if (!cluster->plain)
        return KNEE_OK;
    struct knee_fitted *record = knee_resize(alloc, NULL, sizeof *record);
    if (!record)
        return knee_fail(err, KNEE_SYSTEM, log->file, "out of memory");
    knee_status status =
        knee_fit(&(struct knee_log_view){log, 1, alloc}, cluster, cluster, record, err);
    knee_resize(alloc, record, 0);
    cluster->fitted = NULL;
    knee_format(cluster->name, sizeof cluster->name, "the link that this log shows");
    return status;
}

bool knee_log_counts(const struct knee_log *log, const struct knee_layout *layout,
                     struct knee_counts *out)
{
    size_t top = knee_layout_top(layout);
    if (!(log->hops > 0))
        return false;
    *out = (struct knee_counts){0};
    out->hops[top] = log->hops;
    out->bytes[top] = log->share;
    return true;
}

double knee_log_time_s(const struct knee_log *log, const struct knee_cluster *cluster,
                       const struct knee_layout *layout, double bytes, bool curves)
{
    struct knee_counts counts;
    if (knee_log_counts(log, layout, &counts)) {
        counts.bytes[knee_layout_top(layout)] *= bytes;
        return knee_best_protocol_s(cluster, layout, &counts, &knee_send_recv, NULL);
    }
    return curves ? knee_expected_time_s(cluster, layout, log->op, bytes)
                  : knee_model_time_s(cluster, layout, log->op, bytes, NULL, NULL);
}

/* ---- Errors ---- */

struct errors {
    double *values;
    size_t count, capacity;
};

static bool add_error(struct errors *e, double predicted_s, double measured_s,
                      const struct knee_alloc *alloc)
{
    if (!knee_room(alloc, &e->values, &e->capacity, e->count + 1, sizeof *e->values))
        return false;
    e->values[e->count++] = fabs(predicted_s / measured_s - 1);
    return true;
}

/* Of the errors from `start` on, which are sorted in their place. */
static struct knee_errors summarise(struct errors *e, size_t start)
{
    size_t count = e->count - start;
    if (count == 0)
        return (struct knee_errors){0, NAN, NAN, NAN, NAN};
    double *values = e->values + start;
    qsort(values, count, sizeof *values, knee_ascending);
    return (struct knee_errors){count, knee_quantile(values, count, 0.5),
                                knee_quantile(values, count, 0.9), NAN, NAN};
}

/* ---- One log ---- */

/* Clusters and logs are too large for a small stack. */
struct rooms {
    struct knee_cluster fitted, there, laid;
    struct knee_log half;
    struct knee_fitted record; /* of a fit that is only tried */
};

struct checker {
    struct rooms *rooms;
    const struct knee_alloc *alloc;
    struct knee_err *err;
    struct errors left_out, out_of_place, preset, transfer; /* pooled */
};

static knee_status no_memory(struct checker *c)
{
    return knee_fail(c->err, KNEE_SYSTEM, "", "out of memory");
}

/* Every second different size, from the first or the second on. */
static void take_half(const struct knee_log *log, struct knee_sample *samples, bool first,
                      struct knee_log *half)
{
    size_t size = 0;
    *half = *log;
    half->samples = samples;
    half->sample_count = 0;
    for (size_t n = 0; n < log->sample_count; n++) {
        size += n > 0 && log->samples[n].bytes != log->samples[n - 1].bytes;
        if ((size % 2 == 0) == first)
            samples[half->sample_count++] = log->samples[n];
    }
}

/* Errors of all logs, to which those of one are added, and the summary of the one. */
struct pooled {
    struct errors *pool;
    struct knee_errors *out;
};

/* `raw` (may be NULL): the same for times out of place. */
static knee_status predict_rows(struct checker *c, const struct knee_cluster *cluster,
                                const struct knee_log *log, bool curves, const struct pooled *rows,
                                const struct pooled *raw)
{
    struct knee_cluster *t = &c->rooms->laid;
    struct knee_layout layout;
    *t = *cluster;
    size_t start = rows->pool->count, raw_start = raw ? raw->pool->count : 0;
    knee_status status = knee_log_layout(log, t, &layout, c->err);
    for (size_t n = 0; n < log->sample_count && !status; n++) {
        const struct knee_sample *s = &log->samples[n];
        double predicted_s = knee_log_time_s(log, t, &layout, s->bytes, curves);
        if (isnan(predicted_s))
            continue;
        if (!add_error(rows->pool, predicted_s, s->time_s, c->alloc) ||
            (raw && !isnan(s->out_of_place_s) &&
             !add_error(raw->pool, predicted_s, s->out_of_place_s, c->alloc)))
            status = no_memory(c);
    }
    if (status)
        return status;
    *rows->out = summarise(rows->pool, start);
    if (raw)
        *raw->out = summarise(raw->pool, raw_start);
    return KNEE_OK;
}

static knee_status check_halves(struct checker *c, struct knee_log_check *check)
{
    const struct knee_log *log = check->log;
    struct knee_cluster *fitted = &c->rooms->fitted;
    struct knee_log *half = &c->rooms->half;
    struct errors own = {0};
    struct knee_sample *samples = knee_resize(c->alloc, NULL, log->sample_count * sizeof *samples);
    if (!samples)
        return no_memory(c);
    take_half(log, samples, true, half);
    knee_status status = knee_fit(&(struct knee_log_view){half, 1, c->alloc}, &check->cluster,
                                  fitted, &c->rooms->record, c->err);
    if (!status)
        status = predict_rows(c, fitted, half, true, &(struct pooled){&own, &check->fitted}, NULL);
    if (!status) {
        take_half(log, samples, false, half);
        status =
            predict_rows(c, fitted, half, true, &(struct pooled){&c->left_out, &check->left_out},
                         &(struct pooled){&c->out_of_place, &check->out_of_place});
    }
    knee_resize(c->alloc, own.values, 0);
    knee_resize(c->alloc, samples, 0);
    return status;
}

static bool usable(const struct knee_log *log)
{
    return log->sample_count > 0 && log->ranks >= 2 && log->nodes >= 1;
}

static knee_status check_log(struct checker *c, const struct knee_log *log,
                             const struct knee_log_about *about, const struct knee_cluster *prior,
                             struct knee_log_check *out)
{
    struct knee_errors none = {0, NAN, NAN, NAN, NAN};
    memset(out, 0, sizeof *out); /* a compound literal would be a second one, on the stack */
    out->log = log;
    out->left_out = out->out_of_place = out->fitted = out->preset = none;
    out->fit = SIZE_MAX;
    out->recognised =
        prior != NULL || knee_log_cluster(log, about ? about->hardware : NULL, &out->cluster);
    if (prior)
        out->cluster = *prior;
    out->origin = about ? about->origin : NULL;
    if (!usable(log))
        return KNEE_OK;
    knee_status status = log->sample_count > 1 ? check_halves(c, out) : KNEE_OK;
    if (status || !out->recognised || out->cluster.plain) /* a guessed cluster is not a preset */
        return status;
    struct errors apart = {0}; /* the pooled figure is that of two nodes */
    status =
        predict_rows(c, &out->cluster, log, false,
                     &(struct pooled){log->nodes == 2 ? &c->preset : &apart, &out->preset}, NULL);
    knee_resize(c->alloc, apart.values, 0);
    return status;
}

/* ---- From one log to another ---- */

/* The preset that a recognised cluster was made from stands before the colon of its name. */
static bool same_base(const struct knee_cluster *a, const struct knee_cluster *b)
{
    size_t length = strcspn(a->name, ":");
    return length == strcspn(b->name, ":") && strncmp(a->name, b->name, length) == 0;
}

static bool same_cluster(const struct knee_log_check *a, const struct knee_log_check *b)
{
    bool one_node = a->log->nodes == 1;
    if (a->origin && b->origin && strcmp(a->origin, b->origin) != 0)
        return false;
    return a->recognised && b->recognised && one_node == (b->log->nodes == 1) &&
           strcmp(a->log->gpu, b->log->gpu) == 0 && same_base(&a->cluster, &b->cluster) &&
           strcmp(a->cluster.gpu, b->cluster.gpu) == 0 &&
           (one_node || strcmp(a->cluster.levels[1].name, b->cluster.levels[1].name) == 0);
}

static bool differs(const struct knee_log *a, const struct knee_log *b)
{
    return a->op != b->op || a->ranks != b->ranks || a->nodes != b->nodes ||
           strcmp(a->algorithm, b->algorithm) != 0;
}

static knee_status check_transfers(struct checker *c, struct knee_check *check, bool one)
{
    for (size_t from = 0; from < check->count; from++) {
        const struct knee_log_check *a = &check->checks[from];
        struct knee_cluster *fitted = &c->rooms->fitted, *there = &c->rooms->there;
        bool done = false;
        if (!usable(a->log) || a->log->op != KNEE_OP_ALL_REDUCE)
            continue;
        for (size_t to = 0; to < check->count; to++) {
            const struct knee_log_check *b = &check->checks[to];
            if (to == from || !usable(b->log) || !(one || same_cluster(a, b)) ||
                !differs(a->log, b->log))
                continue;
            if (check->transfer_count == KNEE_TRANSFERS_MAX) {
                check->transfers_left++;
                continue;
            }
            if (!done) {
                knee_status status = knee_fit(&(struct knee_log_view){a->log, 1, c->alloc},
                                              &a->cluster, fitted, &c->rooms->record, c->err);
                if (status)
                    return status;
                done = true;
            }
            struct knee_transfer *t = &check->transfers[check->transfer_count];
            *t = (struct knee_transfer){.from = from, .to = to};
            *there = *fitted; /* ports are a matter of each run */
            there->levels[1].ports = b->cluster.levels[1].ports;
            knee_status status = predict_rows(c, there, b->log, false,
                                              &(struct pooled){&c->transfer, &t->errors}, NULL);
            if (status)
                return status;
            check->transfer_count++;
        }
    }
    return KNEE_OK;
}

/* ---- What the logs of each cluster say together ---- */

/* The fitted time of every row, and in the curves the errors at sizes that were left out. */
static knee_status note_fit(struct checker *c, struct knee_log_check *check,
                            struct knee_cluster_fit *fitted)
{
    const struct knee_log *log = check->log;
    struct knee_cluster *t = &c->rooms->laid;
    struct knee_layout layout;
    *t = fitted->cluster;
    knee_status status = knee_log_layout(log, t, &layout, c->err);
    if (status)
        return status;
    check->fitted_s = knee_resize(c->alloc, NULL, log->sample_count * sizeof *check->fitted_s);
    if (!check->fitted_s)
        return no_memory(c);
    for (size_t n = 0; n < log->sample_count; n++)
        check->fitted_s[n] = knee_log_time_s(log, t, &layout, log->samples[n].bytes, true);
    for (size_t i = 0; i < fitted->record.curve_count; i++) {
        struct knee_curve *curve = &fitted->record.curves[i];
        if (curve->op == (int)log->op && curve->ranks == log->ranks &&
            strncmp(curve->source, log->file, strlen(log->file)) == 0) {
            curve->median_error = check->left_out.median;
            curve->p90_error = check->left_out.p90;
        }
    }
    return KNEE_OK;
}

static knee_status fit_cluster(struct checker *c, struct knee_check *check, size_t first, bool one)
{
    struct knee_cluster_fit *cluster = &check->clusters[check->cluster_count];
    struct knee_log *logs = knee_resize(c->alloc, NULL, check->count * sizeof *logs);
    size_t count = 0;
    if (!logs)
        return no_memory(c);
    for (size_t i = first; i < check->count; i++) {
        struct knee_log_check *row = &check->checks[i];
        if (row->fit != SIZE_MAX || !usable(row->log) ||
            !(i == first || one || same_cluster(&check->checks[first], row)))
            continue;
        logs[count++] = *row->log; /* borrowed: the samples stay theirs */
        row->fit = check->cluster_count;
    }
    knee_status status =
        knee_fit(&(struct knee_log_view){logs, count, c->alloc}, &check->checks[first].cluster,
                 &cluster->cluster, &cluster->record, c->err);
    knee_resize(c->alloc, logs, 0);
    cluster->logs = count;
    for (size_t i = first; i < check->count && !status; i++)
        if (check->checks[i].fit == check->cluster_count)
            status = note_fit(c, &check->checks[i], cluster);
    check->cluster_count++;
    return status;
}

static knee_status fit_clusters(struct checker *c, struct knee_check *check, bool one)
{
    knee_status status = KNEE_OK;
    for (size_t i = 0; i < check->count && !status; i++)
        if (check->checks[i].fit == SIZE_MAX && usable(check->checks[i].log))
            status = fit_cluster(c, check, i, one);
    return status;
}

void knee_check_release(struct knee_check *check)
{
    for (size_t i = 0; i < check->count; i++)
        knee_resize(check->alloc, check->checks[i].fitted_s, 0);
    knee_resize(check->alloc, check->checks, 0);
    knee_resize(check->alloc, check->transfers, 0);
    knee_resize(check->alloc, check->clusters, 0);
    check->checks = NULL;
    check->transfers = NULL;
    check->clusters = NULL;
    check->count = check->transfer_count = check->cluster_count = 0;
}

static void promise(struct knee_check *check)
{
    check->left_out.promised_median = LEFT_OUT_MEDIAN;
    check->left_out.promised_p90 = LEFT_OUT_P90;
    check->preset.promised_median = PRESET_MEDIAN;
    check->transfer.promised_median = TRANSFER_MEDIAN;
    for (size_t i = 0; i < check->count; i++)
        check->checks[i].left_out.promised_median = LEFT_OUT_MEDIAN;
}

knee_status knee_check_logs(const struct knee_log_view *logs, const struct knee_log_about *about,
                            const struct knee_cluster *prior, struct knee_check *out,
                            struct knee_err *err)
{
    const struct knee_alloc *alloc = logs->alloc;
    size_t count = logs->count;
    struct checker c = {.alloc = alloc, .err = err};
    struct knee_check check = {.alloc = alloc};
    check.checks = knee_resize(alloc, NULL, (count + 1) * sizeof *check.checks);
    check.transfers = knee_resize(alloc, NULL, KNEE_TRANSFERS_MAX * sizeof *check.transfers);
    check.clusters = knee_resize(alloc, NULL, (count + 1) * sizeof *check.clusters);
    c.rooms = knee_resize(alloc, NULL, sizeof *c.rooms);
    if (!check.checks || !check.transfers || !check.clusters || !c.rooms) {
        knee_resize(alloc, c.rooms, 0);
        knee_check_release(&check);
        return no_memory(&c);
    }
    memset(check.checks, 0, (count + 1) * sizeof *check.checks);
    check.count = count;
    knee_status status = KNEE_OK;
    for (size_t i = 0; i < count && !status; i++)
        status = check_log(&c, &logs->logs[i], about ? &about[i] : NULL, prior, &check.checks[i]);
    if (!status)
        status = check_transfers(&c, &check, prior != NULL);
    if (!status)
        status = fit_clusters(&c, &check, prior != NULL);
    if (!status) {
        for (size_t i = 0; i < count; i++)
            check.preset_logs += check.checks[i].preset.rows > 0 && logs->logs[i].nodes == 2;
        check.left_out = summarise(&c.left_out, 0);
        check.out_of_place = summarise(&c.out_of_place, 0);
        check.preset = summarise(&c.preset, 0);
        check.transfer = summarise(&c.transfer, 0);
        promise(&check);
        *out = check;
    } else {
        knee_check_release(&check);
    }
    knee_resize(alloc, c.left_out.values, 0);
    knee_resize(alloc, c.out_of_place.values, 0);
    knee_resize(alloc, c.preset.values, 0);
    knee_resize(alloc, c.transfer.values, 0);
    knee_resize(alloc, c.rooms, 0);
    return status;
}
