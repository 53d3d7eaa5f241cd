/* SPDX-License-Identifier: MIT */
/*
 * A cluster from its logs, in two layers.
 *
 * The physical layer is the cost model itself. Its numbers (launch, latency and rate of the node's
 * link and of the network, the protocols' shares) start from a preset and are moved by eleven
 * factors, each with a prior: how far such a number strays from its preset. What the logs say moves
 * them, what they do not say stays. Since hops and bytes come from the algorithms, the fitted
 * numbers hold for other rank counts and collectives. The fit minimises |log(model / measured)|
 * over all rows of all logs plus the priors, by Gauss-Newton steps on reweighted squares with a
 * damped step.
 *
 * Plain hosts have latency and rate only, inside a host and between hosts, and no preset: they
 * start from the rows. A log of one of knee bench's own algorithms names its hops and bytes itself.
 *
 * The curves (curve.c) are fitted to each log by itself, for the sizes between those measured.
 */
#include "base/error.h"
#include "base/format.h"
#include "base/linear.h"
#include "base/order.h"
#include "base/text.h"
#include "collective/collective.h"
#include "collective/curve.h"
#include "knee_logs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Parameters ---- */

enum parameter {
    LAUNCH,
    NODE_LATENCY,
    NET_LATENCY,
    NODE_RATE,
    NET_RATE,
    SIMPLE,
    LL128_SHARE,
    LL_SHARE,
    NVLS_SHARE,
    PEER,
    FLOOR,
    PARAMETERS
};

/* Spread: standard deviation of the log of such a number about its preset, over the public logs and
 * tables that the presets come from. Plain hosts have no preset: their numbers start from the rows
 * themselves and may go far. 0: it is not moved. */
static const struct {
    const char *name;
    double spread, plain_spread;
    enum knee_unit unit;
} parameters[PARAMETERS] = {
    [LAUNCH] = {"launch", 0.5, 0, KNEE_UNIT_SECONDS},
    [NODE_LATENCY] = {"node latency", 0.35, 2, KNEE_UNIT_SECONDS},
    [NET_LATENCY] = {"network latency", 0.7, 2, KNEE_UNIT_SECONDS},
    [NODE_RATE] = {"node bandwidth", 0.3, 2, KNEE_UNIT_BYTES_PER_S},
    [NET_RATE] = {"network bandwidth", 0.4, 2, KNEE_UNIT_BYTES_PER_S},
    [SIMPLE] = {"Simple latency", 0.7, 0, KNEE_UNIT_FACTOR},
    [LL128_SHARE] = {"LL128 share", 0.4, 0, KNEE_UNIT_FRACTION},
    [LL_SHARE] = {"LL share", 0.5, 0, KNEE_UNIT_FRACTION},
    [NVLS_SHARE] = {"NVLS share", 0.3, 0, KNEE_UNIT_FRACTION},
    [PEER] = {"peer", 0.7, 0, KNEE_UNIT_SECONDS},
    [FLOOR] = {"floor", 0.3, 0, KNEE_UNIT_SECONDS},
};

#define RESIDUAL_SPREAD 0.08 /* of one row: what the model is expected to be off by */
#define STEPS           25
#define FIVE_PERCENT    1.645

/* The prior with every number multiplied by e^theta. */
static void apply(const struct knee_cluster *prior, const double *theta, double floor_s,
                  struct knee_cluster *out)
{
    double factor[PARAMETERS];
    for (size_t i = 0; i < PARAMETERS; i++)
        factor[i] = exp(theta[i]);
    *out = *prior;
    out->launch_s *= factor[LAUNCH];
    out->peer_s *= factor[PEER];
    out->floor_s = floor_s * factor[FLOOR];
    out->nvls_share *= factor[NVLS_SHARE];
    for (size_t l = 0; l < out->level_count; l++) {
        out->levels[l].latency_s *= factor[l ? NET_LATENCY : NODE_LATENCY];
        out->levels[l].bytes_per_s *= factor[l ? NET_RATE : NODE_RATE];
    }
    struct knee_protocol *p = out->protocols;
    p[KNEE_SIMPLE].launch_s *= factor[SIMPLE];
    p[KNEE_SIMPLE].node_hop *= factor[SIMPLE];
    p[KNEE_SIMPLE].net_hop *= factor[SIMPLE];
    if (out->plain)
        return; /* one way to send, and all of the wire */
    p[KNEE_LL128].node_share = fmin(0.95, p[KNEE_LL128].node_share * factor[LL128_SHARE]);
    p[KNEE_LL128].net_share = fmin(0.95, p[KNEE_LL128].net_share * factor[LL128_SHARE]);
    p[KNEE_LL].node_share = fmin(0.5, p[KNEE_LL].node_share * factor[LL_SHARE]);
    p[KNEE_LL].net_share = fmin(0.5, p[KNEE_LL].net_share * factor[LL_SHARE]);
}

static double value_of(const struct knee_cluster *t, enum parameter parameter)
{
    switch (parameter) {
    case LAUNCH: return t->launch_s;
    case NODE_LATENCY: return t->levels[0].latency_s;
    case NET_LATENCY: return t->level_count > 1 ? t->levels[1].latency_s : NAN;
    case NODE_RATE: return t->levels[0].bytes_per_s;
    case NET_RATE: return t->level_count > 1 ? t->levels[1].bytes_per_s : NAN;
    case SIMPLE: return t->protocols[KNEE_SIMPLE].node_hop;
    case LL128_SHARE: return t->protocols[KNEE_LL128].node_share;
    case LL_SHARE: return t->protocols[KNEE_LL].node_share;
    case NVLS_SHARE: return t->nvls_share > 0 ? t->nvls_share : NAN;
    case PEER: return t->peer_s;
    case FLOOR: return t->floor_s > 0 ? t->floor_s : NAN;
    case PARAMETERS: break;
    }
    return NAN;
}

/* ---- Rows, and the model on them ---- */

#define SCHEMES_MAX 8

/* One log: what the algorithms that may have run do for one byte of its collective. */
struct table {
    const struct knee_log *log;
    struct knee_layout layout; /* of the cluster being tried */
    size_t schemes;
    const struct knee_algorithm *algorithm[SCHEMES_MAX];
    struct knee_counts counts[SCHEMES_MAX];
};

struct problem {
    const struct knee_cluster *prior;
    struct table *tables;
    size_t table_count, rows;
    double *residual, *trial;  /* log(model / measured) of each row */
    double *slope[PARAMETERS]; /* of the residuals */
    double spread[PARAMETERS]; /* of the priors; 0: not moved */
    double floor_s;            /* where the floor starts; 0: none */
};

static void count_schemes(struct table *t, const struct knee_cluster *cluster)
{
    const struct knee_algorithm *row;
    t->schemes = knee_log_counts(t->log, &t->layout, &t->counts[0]);
    if (t->schemes) {
        t->algorithm[0] = &knee_send_recv; /* messages: no allowance of any kind */
        return;
    }
    for (size_t i = 0; (row = knee_scheme_at(i)) && t->schemes < SCHEMES_MAX; i++)
        if (knee_scheme_used(cluster, row) &&
            knee_scheme_count(cluster, &t->layout, t->log->op, 1, row, &t->counts[t->schemes]))
            t->algorithm[t->schemes++] = row;
}

static double model_s(const struct knee_cluster *cluster, const struct table *t, double bytes)
{
    double best_s = INFINITY;
    for (size_t i = 0; i < t->schemes; i++) {
        struct knee_counts counts = t->counts[i];
        counts.buffer *= bytes;
        for (size_t l = 0; l < t->layout.levels; l++)
            counts.bytes[l] *= bytes;
        best_s =
            fmin(best_s, knee_best_protocol_s(cluster, &t->layout, &counts, t->algorithm[i], NULL));
    }
    return best_s;
}

static void residuals(struct problem *p, const double *theta, double *out)
{
    struct knee_cluster cluster;
    size_t row = 0;
    apply(p->prior, theta, p->floor_s, &cluster);
    for (size_t i = 0; i < p->table_count; i++) {
        struct table *t = &p->tables[i];
        knee_log_layout(t->log, &cluster, &t->layout, NULL);
        for (size_t n = 0; n < t->log->sample_count; n++) {
            const struct knee_sample *s = &t->log->samples[n];
            out[row++] = log(model_s(&cluster, t, s->bytes) / s->time_s);
        }
    }
}

static double cost_of(const struct problem *p, const double *residual, const double *theta)
{
    double cost = 0;
    for (size_t i = 0; i < p->rows; i++)
        cost += fabs(residual[i]) / RESIDUAL_SPREAD;
    for (size_t i = 0; i < PARAMETERS; i++)
        if (p->spread[i] > 0)
            cost += theta[i] * theta[i] / (2 * p->spread[i] * p->spread[i]);
    return cost;
}

static void find_slopes(struct problem *p, const double *theta)
{
    const double step = 1e-3;
    for (size_t i = 0; i < PARAMETERS; i++) {
        double moved[PARAMETERS];
        if (p->spread[i] == 0)
            continue;
        memcpy(moved, theta, sizeof moved);
        moved[i] += step;
        residuals(p, moved, p->slope[i]);
        for (size_t n = 0; n < p->rows; n++)
            p->slope[i][n] = (p->slope[i][n] - p->residual[n]) / step;
    }
}

/* The matrix and right side of one step; a row's weight turns its square into its absolute. */
static void normal_equations(const struct problem *p, const double *theta,
                             struct knee_matrix *matrix, double *right)
{
    memset(matrix, 0, sizeof *matrix);
    matrix->size = PARAMETERS;
    for (size_t i = 0; i < PARAMETERS; i++) {
        double precision = p->spread[i] > 0 ? 1 / (p->spread[i] * p->spread[i]) : 1;
        matrix->at[i][i] = precision;
        right[i] = p->spread[i] > 0 ? -precision * theta[i] : 0;
    }
    for (size_t n = 0; n < p->rows; n++) {
        double weight = 1 / (RESIDUAL_SPREAD * fmax(fabs(p->residual[n]), 0.01));
        for (size_t i = 0; i < PARAMETERS; i++) {
            if (p->spread[i] == 0 || p->slope[i][n] == 0)
                continue;
            right[i] -= weight * p->slope[i][n] * p->residual[n];
            for (size_t j = 0; j <= i; j++)
                if (p->spread[j] > 0)
                    matrix->at[i][j] += weight * p->slope[i][n] * p->slope[j][n];
        }
    }
}

/* One damped step; false when none makes it better. */
static bool improve(struct problem *p, double *theta, double *cost, double *damping)
{
    struct knee_matrix matrix;
    double right[PARAMETERS];
    find_slopes(p, theta);
    normal_equations(p, theta, &matrix, right);
    for (int attempt = 0; attempt < 6; attempt++) {
        struct knee_matrix damped = matrix;
        double step[PARAMETERS], moved[PARAMETERS];
        for (size_t i = 0; i < PARAMETERS; i++)
            damped.at[i][i] *= 1 + *damping;
        memcpy(step, right, sizeof step);
        if (!knee_matrix_solve(&damped, step))
            return false;
        for (size_t i = 0; i < PARAMETERS; i++)
            moved[i] = fmin(4, fmax(-4, theta[i] + fmin(0.7, fmax(-0.7, step[i]))));
        residuals(p, moved, p->trial);
        double cost_there = cost_of(p, p->trial, moved);
        if (cost_there < *cost - 1e-6 * fabs(*cost)) {
            memcpy(theta, moved, sizeof moved);
            memcpy(p->residual, p->trial, p->rows * sizeof *p->residual);
            *cost = cost_there;
            *damping = fmax(*damping / 3, 1e-4);
            return true;
        }
        *damping *= 4;
    }
    return false;
}

static double minimise(struct problem *p, double *theta)
{
    double damping = 1e-2;
    memset(theta, 0, PARAMETERS * sizeof *theta);
    residuals(p, theta, p->residual);
    double cost = cost_of(p, p->residual, theta);
    for (int step = 0; step < STEPS && improve(p, theta, &cost, &damping); step++)
        continue;
    return cost;
}

/* ---- The floor: a host that cannot issue collectives fast enough ---- */

/* Least time of any row, and whether a floor is plausible: one thread serves several GPUs, or the
 * least time is far above what the preset says it should be. */
static bool floor_plausible(const struct problem *p, double *least_s, bool *told)
{
    double model = INFINITY;
    *least_s = INFINITY;
    *told = false;
    for (size_t i = 0; i < p->table_count; i++) {
        const struct table *t = &p->tables[i];
        *told = *told || t->log->gpus_per_process > 1;
        for (size_t n = 0; n < t->log->sample_count; n++) {
            const struct knee_sample *s = &t->log->samples[n];
            if (s->time_s < *least_s) {
                *least_s = s->time_s;
                model = model_s(p->prior, t, s->bytes);
            }
        }
    }
    return *told || *least_s > 3 * model;
}

/* ---- Memory, and the whole ---- */

static bool rises(const struct knee_log *log)
{
    return log->sample_count > 0 && !isnan(log->ranks) && log->ranks >= 2 && log->nodes >= 1;
}

static knee_status set_up(struct problem *p, const struct knee_log *logs, size_t count,
                          struct knee_cluster *prior, const struct knee_alloc *alloc,
                          struct knee_err *err)
{
    p->prior = prior;
    p->tables = knee_resize(alloc, NULL, count * sizeof *p->tables);
    if (!p->tables)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    for (size_t i = 0; i < count; i++) {
        struct table *t = &p->tables[p->table_count];
        if (!rises(&logs[i]))
            continue;
        t->log = &logs[i];
        knee_status status = knee_log_layout(t->log, prior, &t->layout, err);
        if (status)
            return status;
        count_schemes(t, prior);
        if (t->schemes == 0)
            continue;
        p->rows += t->log->sample_count;
        p->table_count++;
    }
    if (p->rows == 0) {
        knee_fail(err, KNEE_INPUT, "", "no log has rows and a known number of ranks");
        knee_hint(err, "give --ranks (and --nodes)");
        return KNEE_INPUT;
    }
    double *memory = knee_resize(alloc, NULL, (2 + PARAMETERS) * p->rows * sizeof *memory);
    if (!memory)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    p->residual = memory;
    p->trial = memory + p->rows;
    for (size_t i = 0; i < PARAMETERS; i++)
        p->slope[i] = memory + (2 + i) * p->rows;
    memset(memory, 0, (2 + PARAMETERS) * p->rows * sizeof *memory);
    return KNEE_OK;
}

static void set_spreads(struct problem *p, bool with_floor, bool floor_told)
{
    for (size_t i = 0; i < PARAMETERS; i++)
        p->spread[i] = isnan(value_of(p->prior, (enum parameter)i)) ? 0
                       : p->prior->plain                            ? parameters[i].plain_spread
                                                                    : parameters[i].spread;
    p->spread[FLOOR] = with_floor ? parameters[FLOOR].spread : 0;
    if (with_floor && floor_told) { /* the kernels themselves are as quick as ever */
        p->spread[LAUNCH] /= 4;
        p->spread[NODE_LATENCY] /= 4;
    }
}

/* 90 % intervals: for absolute errors of mean b, precision is slopes squared over b squared. */
static void find_intervals(struct problem *p, const double *theta, const struct knee_cluster *out,
                           struct knee_fitted *record)
{
    struct knee_matrix matrix = {.size = PARAMETERS};
    double b = 0, variance[PARAMETERS] = {0};
    find_slopes(p, theta);
    for (size_t n = 0; n < p->rows; n++)
        b += fabs(p->residual[n]) / (double)p->rows;
    b = fmax(b, 0.005);
    for (size_t i = 0; i < PARAMETERS; i++) {
        for (size_t j = 0; j <= i; j++)
            for (size_t n = 0; p->spread[i] > 0 && p->spread[j] > 0 && n < p->rows; n++)
                matrix.at[i][j] += p->slope[i][n] * p->slope[j][n] / (b * b);
        matrix.at[i][i] += p->spread[i] > 0 ? 1 / (p->spread[i] * p->spread[i]) : 1;
    }
    if (!knee_matrix_inverse_diagonal(&matrix, variance))
        return;
    for (size_t i = 0; i < PARAMETERS; i++) {
        double value = value_of(out, (enum parameter)i), sigma = sqrt(variance[i]);
        bool fitted = sigma < 0.7 * p->spread[i];
        if (isnan(value) || p->spread[i] == 0 || (p->prior->plain && !fitted))
            continue; /* a guess is not worth a line */
        struct knee_parameter *row = &record->parameters[record->parameter_count++];
        *row = (struct knee_parameter){
            .value = value,
            .low = value * exp(-FIVE_PERCENT * sigma),
            .high = value * exp(FIVE_PERCENT * sigma),
            .unit = parameters[i].unit,
            .fitted = fitted,
        };
        knee_format(row->name, sizeof row->name, "%s", parameters[i].name);
    }
}

/* ---- Plain hosts: where to start ---- */

/* The fastest row is all latency and the row with the highest rate is all bytes: close enough to
 * start the fit. Levels are those that some log uses. */
static void start_from_rows(const struct problem *p, struct knee_cluster *prior)
{
    double latency_s[KNEE_LEVELS_MAX] = {0}, rate[KNEE_LEVELS_MAX] = {0};
    for (size_t i = 0; i < p->table_count; i++) {
        const struct table *t = &p->tables[i];
        size_t top = knee_layout_top(&t->layout);
        double hops = INFINITY, bytes = INFINITY;
        for (size_t k = 0; k < t->schemes; k++) {
            hops = fmin(hops, t->counts[k].hops[top]);
            bytes = fmin(bytes, t->counts[k].bytes[top]);
        }
        for (size_t n = 0; n < t->log->sample_count; n++) {
            const struct knee_sample *s = &t->log->samples[n];
            double hop_s = s->time_s / hops;
            latency_s[top] = latency_s[top] > 0 ? fmin(latency_s[top], hop_s) : hop_s;
            rate[top] = fmax(rate[top], bytes * s->bytes / s->time_s);
        }
    }
    for (size_t l = 0; l < prior->level_count; l++)
        if (rate[l] > 0 && latency_s[l] > 0 && isfinite(latency_s[l])) {
            prior->levels[l].latency_s = latency_s[l];
            prior->levels[l].bytes_per_s = rate[l];
        }
}

/* ---- Curves: one for each collective, rank count and node count ---- */

static bool same_curve(const struct table *a, const struct table *b)
{
    return a->log->op == b->log->op && a->log->ranks == b->log->ranks &&
           a->layout.units[1] == b->layout.units[1];
}

KNEE_BY(by_size, struct knee_curve_point, bytes)

/* The rows of all logs that belong to the curve of table `first`. */
static struct knee_curve_point *gather(const struct problem *p, size_t first,
                                       const struct knee_alloc *alloc, size_t *count, size_t *logs)
{
    struct knee_curve_point *points = knee_resize(alloc, NULL, p->rows * sizeof *points);
    *count = *logs = 0;
    for (size_t i = first; points && i < p->table_count; i++) {
        const struct knee_log *log = p->tables[i].log;
        if (!same_curve(&p->tables[first], &p->tables[i]))
            continue;
        for (size_t n = 0; n < log->sample_count; n++)
            points[(*count)++] =
                (struct knee_curve_point){log->samples[n].bytes, log->samples[n].time_s};
        ++*logs;
    }
    if (points)
        qsort(points, *count, sizeof *points, by_size);
    return points;
}

static bool has_curve_before(const struct problem *p, size_t table)
{
    for (size_t i = 0; i < table; i++)
        if (same_curve(&p->tables[i], &p->tables[table]))
            return true;
    return false;
}

static knee_status add_curve(const struct problem *p, size_t table, const struct knee_alloc *alloc,
                             struct knee_fitted *out, struct knee_err *err)
{
    const struct knee_log *log = p->tables[table].log;
    size_t count, logs;
    if (log->hops > 0 || has_curve_before(p, table)) /* hops and share are all of it */
        return KNEE_OK;
    if (out->curve_count == KNEE_CURVES_MAX) {
        knee_fail(err, KNEE_USAGE, log->file, "more than %d collectives and rank counts in one fit",
                  KNEE_CURVES_MAX);
        knee_hint(err, "fit fewer logs at a time");
        return KNEE_USAGE;
    }
    struct knee_curve_point *points = gather(p, table, alloc, &count, &logs);
    if (!points)
        return knee_fail(err, KNEE_SYSTEM, log->file, "out of memory");
    struct knee_curve *curve = &out->curves[out->curve_count];
    *curve = (struct knee_curve){.op = (int)log->op,
                                 .ranks = log->ranks,
                                 .nodes = p->tables[table].layout.units[1],
                                 .rows = (double)count,
                                 .refused = (double)log->refused,
                                 .median_error = NAN,
                                 .p90_error = NAN};
    if (logs > 1)
        knee_format(curve->source, sizeof curve->source, "%.64s and %zu more", log->file, logs - 1);
    else
        memcpy(curve->source, log->file, sizeof curve->source);
    knee_status status = knee_curve_fit(points, count, alloc, curve, err);
    knee_resize(alloc, points, 0);
    if (!status)
        out->curve_count++;
    return status;
}

static knee_status solve(struct problem *p, struct knee_cluster *out, struct knee_fitted *record)
{
    double theta[PARAMETERS], with_floor[PARAMETERS], least_s;
    bool told, plausible = floor_plausible(p, &least_s, &told) && !p->prior->plain;
    set_spreads(p, false, false);
    double cost = told && plausible ? INFINITY : minimise(p, theta);
    if (plausible) {
        p->floor_s = 0.97 * least_s;
        set_spreads(p, true, told);
        if (minimise(p, with_floor) < cost) {
            memcpy(theta, with_floor, sizeof theta);
        } else {
            p->floor_s = 0;
            set_spreads(p, false, false);
        }
    }
    residuals(p, theta, p->residual);
    apply(p->prior, theta, p->floor_s, out);
    find_intervals(p, theta, out, record);
    return KNEE_OK;
}

knee_status knee_fit(const struct knee_log_view *logs, const struct knee_cluster *prior,
                     struct knee_cluster *out, struct knee_fitted *record, struct knee_err *err)
{
    struct problem p = {0};
    struct knee_cluster start = *prior, fitted = *prior;
    start.fitted = NULL;
    record->curve_count = record->parameter_count = 0;
    knee_status status = set_up(&p, logs->logs, logs->count, &start, logs->alloc, err);
    if (!status && start.plain)
        start_from_rows(&p, &start);
    if (!status)
        status = solve(&p, &fitted, record);
    for (size_t i = 0; i < p.table_count && !status; i++)
        status = add_curve(&p, i, logs->alloc, record, err);
    knee_resize(logs->alloc, p.residual, 0);
    knee_resize(logs->alloc, p.tables, 0);
    if (!status) {
        *out = fitted;
        out->fitted = record;
    }
    return status;
}
