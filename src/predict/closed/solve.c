/* SPDX-License-Identifier: MIT */
/*
 * Inverse questions. The target is tried on a grid over the variable's range; the answer lies
 * between the last value that misses and the first that meets, and is closed in by bisection. So
 * nothing need be known about which way a variable works, and a target that no value meets shows.
 */
#include "base/error.h"
#include "base/format.h"
#include "base/keys.h"
#include "base/number.h"
#include "base/spell.h"
#include "knee_predict.h"

#include <math.h>
#include <string.h>

/* ---- What can be solved for ---- */

struct variable {
    const char *name;
    enum knee_unit unit;
    double low, high; /* low > 0: the grid is geometric */
    bool whole;
    const char *unknown; /* what to do when the job does not say what it is now; NULL: need not */
    size_t offset;       /* of the field in struct knee_job, unless there are functions for it */
    double (*get)(const struct knee_job *, double workers);
    void (*set)(struct knee_job *, double *workers, double value);
};

static double get_local_batch(const struct knee_job *job, double workers)
{
    if (job->scaling == KNEE_WEAK)
        return job->local_batch * job->batch_scale;
    return job->global_batch * job->batch_scale / workers / job->accumulate;
}

static void set_local_batch(struct knee_job *job, double *workers, double value)
{
    job->batch_scale *= value / get_local_batch(job, *workers);
}

static double get_overlap(const struct knee_job *job, double workers)
{
    (void)workers;
    return job->overlap;
}

static void set_overlap(struct knee_job *job, double *workers, double value)
{
    (void)workers;
    job->overlap = value;
    job->hidden = NAN; /* it would take precedence */
}

static double get_workers(const struct knee_job *job, double workers)
{
    (void)job;
    return workers;
}

static void set_workers(struct knee_job *job, double *workers, double value)
{
    (void)job;
    *workers = value;
}

#define FIELD(name) offsetof(struct knee_job, name), NULL, NULL
static const struct variable variables[] = {
    {"bandwidth", KNEE_UNIT_BYTES_PER_S, 1e3, 1e15, false,
     "add --bandwidth, the rate that communication was measured at",
     FIELD(hw.bandwidth_bytes_per_s)},
    {"latency", KNEE_UNIT_SECONDS, 1e-12, 1, false, NULL, FIELD(hw.latency_s)},
    {"local-batch", KNEE_UNIT_COUNT, 1e-3, 1e15, false, "add --global-batch or --local-batch", 0,
     get_local_batch, set_local_batch},
    {"overlap", KNEE_UNIT_FRACTION, 0, 1, false, NULL, 0, get_overlap, set_overlap},
    {"hidden", KNEE_UNIT_FRACTION, 0, 1, false, NULL, FIELD(hidden)},
    {"compress", KNEE_UNIT_FACTOR, 1, 1e6, false, NULL, FIELD(compress)},
    {"local-steps", KNEE_UNIT_COUNT, 1, 1e6, true, NULL, FIELD(local_steps)},
    {"loader-rate", KNEE_UNIT_PER_S, 1e-3, 1e15, false, "add --loader-rate and a batch",
     FIELD(loader_rate_per_s)},
    {"workers", KNEE_UNIT_COUNT, 1, KNEE_SEARCH_MAX, true, NULL, 0, get_workers, set_workers},
};
#define VARIABLES (sizeof variables / sizeof *variables)

static double get(const struct variable *variable, const struct knee_job *job, double workers)
{
    if (variable->get)
        return variable->get(job, workers);
    return *(const double *)((const char *)job + variable->offset);
}

static void set(const struct variable *variable, struct knee_job *job, double *workers,
                double value)
{
    if (variable->set)
        variable->set(job, workers, value);
    else
        *(double *)((char *)job + variable->offset) = value;
}

/* ---- What can be asked for ---- */

struct target {
    const char *name;
    enum knee_unit unit;
    bool at_least; /* else at most */
    size_t offset; /* of the double in struct knee_row */
};

static const struct target targets[] = {
    {"efficiency", KNEE_UNIT_FRACTION, true, offsetof(struct knee_row, efficiency)},
    {"ratio", KNEE_UNIT_FACTOR, false, offsetof(struct knee_row, ratio)},
    {"gamma", KNEE_UNIT_FACTOR, false, offsetof(struct knee_row, gamma)},
    {"step", KNEE_UNIT_SECONDS, false, offsetof(struct knee_row, step.wall_s)},
    {"throughput", KNEE_UNIT_PER_S, true, offsetof(struct knee_row, throughput_per_s)},
};
#define TARGETS (sizeof targets / sizeof *targets)

struct question {
    const struct knee_job *job;
    const struct variable *variable;
    const struct target *target;
    double wanted, workers;
};

static double target_at(const struct target *target, const struct knee_job *job, double workers)
{
    struct knee_terms terms;
    struct knee_row row;
    knee_terms_init(job, &terms);
    knee_evaluate(&terms, workers, &row);
    return *(const double *)((const char *)&row + target->offset);
}

/* The target's value when the variable has `value`. */
static double at(const struct question *q, double value)
{
    struct knee_job job = *q->job;
    double workers = q->workers;
    set(q->variable, &job, &workers, value);
    return target_at(q->target, &job, workers);
}

static bool meets(const struct question *q, double reached)
{
    return q->target->at_least ? reached >= q->wanted : reached <= q->wanted;
}

enum { GRID = 256 };

static double grid_value(const struct variable *variable, int i)
{
    double share = (double)i / GRID, low = variable->low, high = variable->high;
    double value = low > 0 ? low * pow(high / low, share) : high * share;
    value = i == 0 ? low : i == GRID ? high : value;
    return variable->whole ? rint(value) : value;
}

/* Closes in on the edge between `bad` and `good`; returns the good side. */
static double bisect(const struct question *q, double bad, double good)
{
    bool whole = q->variable->whole;
    for (int i = 0; i < 200; i++) {
        double middle = bad + (good - bad) / 2;
        if (whole)
            middle = good > bad ? ceil(middle) : floor(middle);
        if (middle == bad || middle == good)
            break;
        *(meets(q, at(q, middle)) ? &good : &bad) = middle;
    }
    return good;
}

static void search(const struct question *q, struct knee_solution *out)
{
    double value[GRID + 1];
    bool good[GRID + 1];
    out->best_target = NAN;
    for (int i = 0; i <= GRID; i++) {
        value[i] = grid_value(q->variable, i);
        double reached = at(q, value[i]);
        good[i] = meets(q, reached);
        bool better = q->target->at_least ? reached > out->best_target : reached < out->best_target;
        if (isnan(out->best_target) || better) {
            out->best_target = reached;
            out->best_value = value[i];
        }
    }
    out->value = NAN;
    out->at_most = good[0];
    int i = 1;
    while (i <= GRID && good[i] == good[0])
        i++;
    if (i <= GRID)
        out->value =
            good[0] ? bisect(q, value[i], value[i - 1]) : bisect(q, value[i - 1], value[i]);
    else if (good[0])
        out->any = true;
}

static const struct variable *find_variable(const char *name, struct knee_err *err)
{
    struct knee_nearest nearest = {.wanted = name};
    if (strcmp(name, "compression") == 0)
        name = "compress";
    if (strcmp(name, "gpus") == 0)
        name = "workers";
    for (size_t i = 0; i < VARIABLES; i++) {
        if (knee_same_name(variables[i].name, name))
            return &variables[i];
        knee_nearest_offer(&nearest, variables[i].name);
    }
    knee_fail(err, KNEE_USAGE, "--solve", "cannot solve for '%.60s'", name);
    if (nearest.name)
        knee_hint(err, "did you mean '%s'?", nearest.name);
    else
        knee_hint(err, "bandwidth, latency, local-batch, overlap, hidden, compress, local-steps, "
                       "loader-rate or gpus");
    return NULL;
}

/* "efficiency=0.9" -> target and value. */
static knee_status find_target(const char *wanted, const struct target **target, double *value,
                               struct knee_err *err)
{
    char name[32];
    size_t length = strcspn(wanted, "=");
    knee_format(name, sizeof name, "%.*s", (int)(length > 31 ? 31 : length), wanted);
    if (wanted[length] != '=') {
        knee_fail(err, KNEE_USAGE, "--for", "'%.60s' is not a target", wanted);
        knee_hint(err, "for example efficiency=0.9, ratio=0.1, step=150ms or throughput=1000");
        return KNEE_USAGE;
    }
    struct knee_nearest nearest = {.wanted = name};
    for (size_t i = 0; i < TARGETS; i++) {
        knee_nearest_offer(&nearest, targets[i].name);
        if (strcmp(targets[i].name, name))
            continue;
        *target = &targets[i];
        knee_status status =
            knee_number_parse(wanted + length + 1, targets[i].unit, "--for", value, err);
        if (!status && !(*value > 0))
            status = knee_fail(err, KNEE_USAGE, "--for", "'%.60s' must be above 0", wanted);
        return status;
    }
    knee_fail(err, KNEE_USAGE, "--for", "there is no target '%s'", name);
    if (nearest.name)
        knee_hint(err, "did you mean '%s'?", nearest.name);
    else
        knee_hint(err, "efficiency, ratio, gamma, step or throughput");
    return KNEE_USAGE;
}

/* The one worker count that is asked about. */
static knee_status find_workers(const struct knee_job *job, double *workers, struct knee_err *err)
{
    double one;
    size_t count = knee_workers_list(&job->workers, &one, 1);
    *workers = !isnan(job->at) ? job->at : one;
    if (count == 1 || !isnan(job->at))
        return KNEE_OK;
    knee_fail(err, KNEE_USAGE, "--solve", "the GPU count is missing");
    knee_hint(err, "add one count, for example --gpus 64");
    return KNEE_USAGE;
}

knee_status knee_solve(const struct knee_job *job, const char *variable, const char *wanted,
                       struct knee_solution *out, struct knee_err *err)
{
    struct question q = {.job = job, .workers = 1};
    knee_status status;
    if (!(q.variable = find_variable(variable, err)))
        return KNEE_USAGE;
    if ((status = find_target(wanted, &q.target, &q.wanted, err)))
        return status;
    bool for_workers = q.variable->set == set_workers;
    if (!for_workers && (status = find_workers(job, &q.workers, err)))
        return status;
    double now_value = get(q.variable, job, q.workers);
    if (q.variable->unknown && isnan(now_value)) {
        knee_fail(err, KNEE_USAGE, "--solve", "what %s is now is not known", q.variable->name);
        knee_hint(err, "%s", q.variable->unknown);
        return KNEE_USAGE;
    }
    struct knee_solution found = {
        .variable = q.variable->name,
        .target = q.target->name,
        .unit = q.variable->unit,
        .target_unit = q.target->unit,
        .wanted = q.wanted,
        .workers = for_workers ? NAN : q.workers,
        .now_value = for_workers ? NAN : now_value,
        .now_target = for_workers ? NAN : target_at(q.target, job, q.workers),
    };
    search(&q, &found);
    *out = found;
    return KNEE_OK;
}
