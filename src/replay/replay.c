/* SPDX-License-Identifier: MIT */
/*
 * The whole of a replay: the graph, the unchanged run, then each change and all of them together.
 * A change is run three times where the recording leaves its price open: as quick as it may be, in
 * the middle, as slow as it may be; low and high come from that and from how much the recorded
 * steps differ among themselves.
 */
#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "cluster/gpu_words.h"
#include "knee_job.h"
#include "replay/changes.h"
#include "replay/replayed_timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_DOUBT     0.025 /* of a step, either way: what a graph does not know */
#define MOVED_DOUBT     0.09  /* of the change: the further from what was measured, the less sure */
#define DEFAULT_CALL_NS 2e4
#define DEFAULT_BYTES   1e12 /* per second, of the memory of a GPU that no preset knows */
#define MOST_GAIN       20.0 /* times: what promises more has left something out */

/* If more of the time than this is unexplained, the graph does not know the dependencies. */
#define MOST_UNEXPLAINED 0.25

/* What the presets know of the GPU that the recording names. */
struct rates {
    double memory_bytes_per_s;
    double host_bytes_per_s; /* of its link to the host; NaN: not known */
};

static struct rates rates_of(const struct knee_account *account)
{
    const struct knee_gpu *gpu = knee_gpu_in(account->ranks[0].trace->gpu_name);
    struct rates rates = {gpu ? gpu->memory_bytes_per_s : DEFAULT_BYTES, NAN};
    struct knee_platform platform;
    struct knee_machine machine;
    if (!gpu)
        return rates;
    knee_platform_init(&platform);
    platform.hw.gpu = (int)(gpu - knee_gpu_at(0));
    if (!knee_machine_init(&platform, NULL, &machine, NULL))
        rates.host_bytes_per_s = machine.rates.host_bytes_per_s;
    return rates;
}

enum { PAUSE_NS = 500000 };

struct replayer {
    const struct knee_account *account;
    struct knee_graph graph, scratch; /* as recorded; to be changed */
    struct knee_runner runner;
    struct knee_step recorded; /* the step without a change, */
    double busiest_s;          /* and what its busiest stream has to do */
    bool (*wanted)(const char *row, const void *context); /* of the standard table; NULL: all */
    const void *context;
    struct knee_own_prices prices;
    struct rates rates;
    double call_ns;
    double noise; /* of recorded steps, as a share */
    struct knee_replay *out;
    struct knee_err *err;
    const struct knee_alloc *alloc;
};

/* The host's pace: the mean time between calls that hand over work, pauses left out. NaN: no
 * memory. */
static double pace_of(const struct knee_graph *g)
{
    double sum = 0, count = 0;
    for (size_t r = 0; r < g->rank_count; r++) {
        size_t rows = 0;
        int32_t *order = knee_nodes_by_call(g, (int32_t)r, &rows);
        if (!order)
            return NAN;
        for (size_t i = 1; i < rows; i++) {
            int64_t gap = g->nodes[order[i]].call_ns - g->nodes[order[i - 1]].call_ns;
            bool work = g->nodes[order[i]].kind != KNEE_NODE_HOST && gap > 0 && gap < PAUSE_NS;
            sum += work ? (double)gap : 0;
            count += work;
        }
        knee_resize(g->alloc, order, 0);
    }
    return count > 0 ? sum / count : DEFAULT_CALL_NS;
}

/* ---- One run ---- */

/* What the busiest stream of a rank has to do in a step: no change of what waits for what makes the
 * step shorter than that. NaN: no memory. */
static double busiest_s(const struct knee_graph *g)
{
    double most = 0;
    for (size_t r = 0; r < g->rank_count; r++) {
        const struct knee_graph_rank *rank = &g->ranks[r];
        size_t lanes = (size_t)rank->lanes + 1;
        double *busy = knee_resize(g->alloc, NULL, lanes * sizeof *busy);
        if (!busy)
            return NAN;
        for (size_t i = 0; i < lanes; i++)
            busy[i] = 0;
        for (int32_t i = rank->first; i < rank->first + rank->count; i++) {
            const struct knee_node *n = &g->nodes[i];
            if (n->kind != KNEE_NODE_HOST && !n->gone && n->start_ns >= rank->from_ns &&
                n->end_ns <= rank->to_ns)
                busy[n->lane] += n->share > 0 ? n->share * n->work_ns : n->work_ns;
        }
        double window = (double)(rank->to_ns - rank->from_ns);
        for (size_t i = 0; i < lanes && window > 0; i++)
            most = fmax(most, rank->measured_step_s * busy[i] / window);
        knee_resize(g->alloc, busy, 0);
    }
    return most;
}

/* How much more than before a node that was edited has to do. */
static double added_load(const struct knee_node *n, const struct knee_saved_node *was)
{
    double share = n->share > 0 ? n->share : 1, now = n->gone ? 0 : share * n->work_ns;
    return n->kind == KNEE_NODE_HOST ? 0 : fmax(0, now - (was->gone ? 0 : share * was->work_ns));
}

/* The same for a changed graph, but at least `least_s`: if all that was added were on the busiest
 * stream, and that is not more, it need not be found out. */
static double busiest_changed_s(const struct replayer *r, double least_s)
{
    const struct knee_graph *g = &r->scratch, *of = &r->graph;
    double added = 0, part = 0;
    if (g->count != of->count || g->reordered)
        return busiest_s(g);
    for (size_t k = 0; k < g->rank_count; k++) {
        double window = (double)(g->ranks[k].to_ns - g->ranks[k].from_ns);
        part = window > 0 ? fmax(part, g->ranks[k].measured_step_s / window) : part;
    }
    for (size_t i = 0; i < g->edited_count; i++)
        added += added_load(&g->nodes[g->saved[i].row], &g->saved[i]);
    return 1.000001 * (r->busiest_s + part * added) < least_s ? least_s : busiest_s(g);
}

/* Nothing that a run depends on was changed. */
static bool is_unchanged(const struct knee_graph *g, const struct knee_graph *of)
{
    if (g->edited_count || g->count != of->count || g->edge_count != of->edge_count || g->reordered)
        return false;
    for (size_t i = 0; i < g->edge_count; i++)
        if (g->edges[i].lag_ns != of->edges[i].lag_ns)
            return false;
    return true;
}

/* Applies all requested changes, in the table's order. False: out of memory; a refused change is
 * not a failure. */
static bool apply_all(struct knee_change_run *run)
{
    for (size_t i = 0; i < knee_change_kind_count; i++)
        if (knee_change_kinds[i].asked(run->ask) && !knee_change_kinds[i].apply(run))
            return false;
    knee_graph_count_lanes(run->g);
    return !run->g->failed;
}

struct outcome {
    double step_s, work;
    char reason[200];
    struct knee_step step; /* labelled; only with `labels` */
};

static knee_status out_of_memory(struct knee_err *err)
{
    knee_fail(err, KNEE_SYSTEM, "", "out of memory for the replay");
    return KNEE_SYSTEM;
}

/* The host's time between calls without a profiler, which at worst costs nothing. A step that was
 * measured (--step-time) says it better. */
static double call_ns_of(const struct replayer *r, enum knee_lean lean)
{
    static const double unprofiled[] = {1 / KNEE_SLOWEST_HOST, 1 / KNEE_SLOWED_HOST, 1};
    return r->call_ns * (r->out->host_pace != 1 ? r->out->host_pace : unprofiled[lean + 1]);
}

static struct knee_change_run run_of(struct replayer *r, const struct knee_changes *ask,
                                     enum knee_lean lean)
{
    return (struct knee_change_run){.g = &r->scratch,
                                    .runner = &r->runner,
                                    .ask = ask,
                                    .prices = &r->prices,
                                    .lean = lean,
                                    .memory_bytes_per_s = r->rates.memory_bytes_per_s,
                                    .host_bytes_per_s = r->rates.host_bytes_per_s,
                                    .call_ns = call_ns_of(r, lean),
                                    .work = 1,
                                    .share = 1};
}

/* Runs the changed graph: its step, at least what its busiest stream has to do, and its labels. */
static knee_status run_scratch(struct replayer *r, bool labels, struct outcome *out)
{
    if (is_unchanged(&r->scratch, &r->graph)) {
        out->step_s = fmax(r->busiest_s, r->out->replayed_step_s);
        out->step = r->recorded;
        return KNEE_OK;
    }
    knee_status status = knee_runner_run(&r->runner, &r->scratch, &out->step_s);
    if (!status)
        out->step_s = fmax(out->step_s, busiest_changed_s(r, out->step_s));
    if (!status && (isnan(out->step_s) || (labels && !knee_runner_label(&r->runner, &out->step))))
        status = KNEE_SYSTEM;
    return status;
}

/* The changed graph's run. A refusal gives KNEE_OK and a reason. */
static knee_status run_changed(struct replayer *r, const struct knee_changes *ask,
                               enum knee_lean lean, bool labels, struct outcome *out)
{
    struct knee_change_run run = run_of(r, ask, lean);
    memset(out, 0, sizeof *out);
    if (!knee_graph_copy(&r->graph, &r->scratch))
        return out_of_memory(r->err);
    bool applied = apply_all(&run);
    if (r->scratch.failed)
        return out_of_memory(r->err);
    if (run.misspelt)
        return knee_fail(r->err, KNEE_USAGE, "", "%s", run.reason);
    if (!applied) {
        memcpy(out->reason, run.reason, sizeof out->reason);
        return KNEE_OK;
    }
    knee_status status = run_scratch(r, labels, out);
    if (status == KNEE_SYSTEM)
        return out_of_memory(r->err);
    if (status) { /* the change and a guess contradict each other */
        knee_format(out->reason, sizeof out->reason, "work would wait for itself");
        return KNEE_OK;
    }
    out->work = run.work;
    out->step_s = fmax(run.floor_s, run.share * out->step_s + run.extra.wall_s);
    out->step_s = fmax(out->step_s, run.work * r->out->replayed_step_s / MOST_GAIN);
    for (int label = 0; label < KNEE_LABELS; label++)
        out->step.label_s[label] = run.share * out->step.label_s[label] + run.extra.label_s[label];
    return KNEE_OK;
}

/* ---- Rows ---- */

static void label_row(struct knee_replay_row *row, const struct knee_step *step)
{
    row->ratio = knee_step_ratio(step);
    row->binds = KNEE_COMPUTE;
    for (int label = 0; label < KNEE_LABELS; label++)
        if (step->label_s[label] > step->label_s[row->binds])
            row->binds = (enum knee_label)label;
}

static bool leans(const struct knee_changes *ask)
{
    for (size_t i = 0; i < knee_change_kind_count; i++)
        if (knee_change_kinds[i].leans && knee_change_kinds[i].asked(ask))
            return true;
    return false;
}

static knee_status fill_row(struct replayer *r, const struct knee_changes *ask,
                            struct knee_replay_row *row)
{
    struct outcome middle, quick, slow;
    knee_status status = run_changed(r, ask, KNEE_LEAN_MIDDLE, true, &middle);
    if (status || middle.reason[0]) {
        memcpy(row->refused, middle.reason, sizeof row->refused);
        row->step_s = row->low_s = row->high_s = row->gain = row->ratio = NAN;
        return status;
    }
    quick = slow = middle;
    if (leans(ask))
        status = run_changed(r, ask, KNEE_LEAN_QUICK, false, &quick);
    if (!status && leans(ask))
        status = run_changed(r, ask, KNEE_LEAN_SLOW, false, &slow);
    if (status)
        return status;
    double moved = fmin(1, fabs(middle.step_s / r->out->replayed_step_s - 1));
    double doubt = LEAST_DOUBT + r->noise / 2 + MOVED_DOUBT * moved;
    row->step_s = middle.step_s;
    row->low_s = fmin(middle.step_s, fmin(quick.step_s, slow.step_s)) * (1 - doubt);
    row->high_s = fmax(middle.step_s, fmax(quick.step_s, slow.step_s)) * (1 + doubt);
    row->gain = middle.work * r->out->replayed_step_s / middle.step_s - 1;
    label_row(row, &middle.step);
    return KNEE_OK;
}

static bool changes_training(const struct knee_change_kind *kind, const struct knee_changes *ask)
{
    static const char *const rounding[] = {"f32", "fp32", "bf16", "fp16"};
    if (strcmp(kind->key, "wire") != 0)
        return kind->training_changes;
    for (size_t i = 0; i < sizeof rounding / sizeof *rounding; i++)
        if (strcmp(ask->wire, rounding[i]) == 0)
            return false;
    return true;
}

static knee_status add_row(struct replayer *r, const struct knee_change_kind *kind,
                           const struct knee_changes *ask)
{
    struct knee_replay *out = r->out;
    struct knee_changes alone = knee_change_alone(ask, kind);
    struct knee_replay_row *row = &out->rows[out->row_count];
    if (out->row_count == KNEE_REPLAY_ROWS)
        return KNEE_OK;
    memset(row, 0, sizeof *row);
    knee_change_name(kind, ask, row->name, sizeof row->name);
    if (r->wanted && !r->wanted(row->name, r->context))
        return KNEE_OK;
    row->training_changes = changes_training(kind, ask);
    row->bound = strcmp(kind->key, "network") == 0 || strcmp(kind->key, "scale") == 0;
    out->row_count++;
    return fill_row(r, &alone, row);
}

/* Takes what was refused out of what was asked for together. */
static struct knee_changes answerable(const struct replayer *r, const struct knee_changes *ask)
{
    struct knee_changes rest = *ask;
    size_t row = 0;
    for (size_t i = 0; i < knee_change_kind_count; i++) {
        if (!knee_change_kinds[i].asked(ask))
            continue;
        if (row < r->out->row_count && r->out->rows[row].refused[0])
            knee_change_leave_out(&rest, &knee_change_kinds[i]);
        row++;
    }
    return rest;
}

static knee_status answer(struct replayer *r, const struct knee_changes *ask)
{
    knee_status status = KNEE_OK;
    for (size_t i = 0; i < knee_change_kind_count && !status; i++)
        if (knee_change_kinds[i].asked(ask))
            status = add_row(r, &knee_change_kinds[i], ask);
    struct knee_changes rest = answerable(r, ask);
    struct knee_replay_row *all = &r->out->all;
    for (size_t i = 0; i < r->out->row_count; i++)
        all->training_changes = all->training_changes ||
                                (r->out->rows[i].training_changes && !r->out->rows[i].refused[0]);
    return status ? status : fill_row(r, &rest, all);
}

/* ---- The standard table ---- */

/* Keys and values that are worth knowing of any job. */
static const struct {
    const char *key, *value;
} standard[] = {
    {"wire", "bf16"},       {"even", "on"},        {"network", "2x"},      {"network", "free"},
    {"overlap", "on"},      {"bucket", "100MB"},   {"loader-ahead", "on"}, {"no-host-gaps", "on"},
    {"pinned", "on"},       {"keep-params", "on"}, {"batch", "2x"},        {"accumulate", "4"},
    {"wire", "powersgd:4"}, {"wire", "fp8"},       {"sync-every", "8"},
};

static int by_safety(const void *left, const void *right)
{
    const struct knee_replay_row *a = left, *b = right;
    bool a_none = a->refused[0] != 0, b_none = b->refused[0] != 0;
    if (a_none != b_none)
        return a_none - b_none;
    if (a->bound != b->bound)
        return a->bound - b->bound;
    if (a->training_changes != b->training_changes)
        return a->training_changes - b->training_changes;
    int order = (b->gain > a->gain) - (b->gain < a->gain);
    return order ? order : strcmp(a->name, b->name); /* or every C library would sort its own way */
}

static knee_status add_standard(struct replayer *r, const char *key, const char *value)
{
    struct knee_changes ask;
    knee_changes_init(&ask);
    ask.loaders = KNEE_ADVISED_LOADERS;
    knee_status status = knee_keys_set(&knee_change_keys, &ask, key, value, KNEE_FLAG, r->err);
    for (size_t k = 0; k < knee_change_kind_count && !status; k++)
        if (knee_change_kinds[k].asked(&ask))
            status = add_row(r, &knee_change_kinds[k], &ask);
    return status;
}

static knee_status answer_standard(struct replayer *r)
{
    knee_status status = KNEE_OK;
    char twice[24];
    knee_format(twice, sizeof twice, "%zu", 2 * r->account->rank_count);
    for (size_t i = 0; i < sizeof standard / sizeof *standard && !status; i++)
        status = add_standard(r, standard[i].key, standard[i].value);
    if (!status)
        status = add_standard(r, "workers", twice);
    qsort(r->out->rows, r->out->row_count, sizeof *r->out->rows, by_safety);
    r->out->standard = true;
    struct knee_changes none;
    knee_changes_init(&none);
    return status ? status : fill_row(r, &none, &r->out->all);
}

/* ---- A step that was measured without the profiler ---- */

#define CLOSE        0.002 /* of the step: the pace is found */
#define NEAR_ENOUGH  0.03  /* as near as a step comes whose length is not the host's */
#define FASTEST_HOST 0.02
#define SLOWEST_HOST 4.0

/* The host takes `pace` times as long for all that it does between its waits. */
static void scale_host(struct knee_graph *g, double pace)
{
    for (size_t i = 0; i < g->count; i++) {
        const struct knee_node *n = &g->nodes[i];
        const struct knee_graph_rank *rank = &g->ranks[n->rank];
        int64_t from = n->host == rank->root ? rank->from_ns : 0; /* before that: no step */
        if (n->host != KNEE_NO_NODE && n->host_lag_ns > from)
            knee_graph_edit(g, i)->host_lag_ns =
                from + (int64_t)(pace * (double)(n->host_lag_ns - from));
    }
}

/* With the words of what goes wrong. */
static knee_status run_graph(struct replayer *r, const struct knee_graph *g, double *step_s)
{
    knee_status status = knee_runner_run(&r->runner, g, step_s);
    if (status == KNEE_INPUT)
        return knee_fail(r->err, KNEE_INPUT, "",
                         "the replay cannot be run to its end: work waits for itself");
    return status ? out_of_memory(r->err) : KNEE_OK;
}

static knee_status step_at(struct replayer *r, double pace, double *step_s)
{
    if (!knee_graph_copy(&r->graph, &r->scratch))
        return out_of_memory(r->err);
    scale_host(&r->scratch, pace);
    return run_graph(r, &r->scratch, step_s);
}

/* The host of the recording has another pace from now on. */
static knee_status take_pace(struct replayer *r, double pace)
{
    r->out->host_pace = pace;
    knee_graph_set_back(&r->scratch);
    scale_host(&r->graph, pace);
    knee_runner_release(&r->runner);
    return knee_runner_init(&r->runner, &r->graph) ? out_of_memory(r->err) : KNEE_OK;
}

/* Finds the host's pace at which the recording has the step that was measured. */
static knee_status set_pace(struct replayer *r, double wanted_s)
{
    double low = FASTEST_HOST, high = SLOWEST_HOST, pace = 1, step_s = 0;
    knee_status status = step_at(r, pace, &step_s);
    for (int i = 0; i < 40 && !status && fabs(step_s / wanted_s - 1) > CLOSE; i++) {
        low = step_s < wanted_s ? pace : low;
        high = step_s < wanted_s ? high : pace;
        pace = sqrt(low * high);
        status = step_at(r, pace, &step_s);
    }
    if (status)
        return status;
    if (fabs(step_s / wanted_s - 1) > NEAR_ENOUGH) {
        knee_fail(r->err, KNEE_USAGE, "--step-time",
                  "the recorded work cannot take %.3g ms a step: %s %.3g ms", 1e3 * wanted_s,
                  step_s > wanted_s ? "with a faster host it takes" : "with a slower host it takes",
                  1e3 * step_s);
        knee_hint(r->err, "give the step of the same job, measured without the profiler");
        return KNEE_USAGE;
    }
    return take_pace(r, pace);
}

/* ---- The whole ---- */

static double measured_step_s(const struct knee_graph *g)
{
    double sum = 0;
    for (size_t r = 0; r < g->rank_count; r++)
        sum += g->ranks[r].measured_step_s;
    return sum / (double)g->rank_count;
}

/* How much the recorded steps differ: standard deviation over mean, of the first rank. */
static double noise_of(const struct knee_account *account)
{
    double n = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < account->step_count; i++) {
        const struct knee_step_account *step = &account->steps[i];
        if (step->rank != 0 || step->number < 0)
            continue;
        double s = 1e-9 * (double)step->ledger.window_ns;
        n++, sum += s, squares += s * s;
    }
    double mean = n > 0 ? sum / n : 0, variance = n > 1 ? squares / n - mean * mean : 0;
    return mean > 0 && variance > 0 ? fmin(0.2, sqrt(variance) / mean) : 0;
}

static void describe(struct replayer *r, double step_s)
{
    struct knee_replay *out = r->out;
    const struct knee_graph *g = &r->graph;
    out->measured_step_s = measured_step_s(g);
    out->replayed_step_s = step_s;
    out->ranks = g->rank_count;
    out->tasks = g->count;
    out->steps = g->ranks[0].steps;
    out->real = g->sources[KNEE_EDGE_REAL];
    out->ruled = g->sources[KNEE_EDGE_RULED];
    out->guessed = g->sources[KNEE_EDGE_GUESSED];
    out->collectives = g->meet_count;
    out->unmet = g->unmet;
    out->turn_s = 1e-9 * r->prices.turn_ns;
    double all = out->measured_step_s * out->steps * (double)out->ranks;
    out->unexplained = all > 0 ? 1e-9 * (double)g->unexplained_ns / all : 0;
}

static knee_status check_explained(const struct knee_replay *replay, struct knee_err *err)
{
    if (replay->unexplained <= MOST_UNEXPLAINED)
        return KNEE_OK;
    knee_fail(err, KNEE_INPUT, "", "nothing in the recording explains %.0f %% of its time",
              100 * fmin(1, replay->unexplained));
    knee_hint(err, "record whole steps with ProfilerActivity.CPU and CUDA; knee trace says where "
                   "the time goes");
    return KNEE_INPUT;
}

static bool nothing_asked(const struct knee_changes *ask)
{
    for (size_t i = 0; i < knee_change_kind_count; i++)
        if (knee_change_kinds[i].asked(ask))
            return false;
    return true;
}

static void release(struct replayer *r)
{
    knee_runner_release(&r->runner);
    r->scratch.alloc = r->alloc;
    knee_graph_release(&r->scratch);
    knee_graph_release(&r->graph);
    knee_resize(r->alloc, r, 0);
}

/* The graph of a recording, its prices and its pace, at the step that was measured where one is
 * given. */
static knee_status begin(const struct knee_account *account, const struct knee_changes *changes,
                         const struct knee_alloc *alloc, struct knee_replay *answer,
                         struct knee_err *err, struct replayer **out)
{
    struct replayer *r = knee_resize(alloc, NULL, sizeof *r);
    if (!r)
        return out_of_memory(err);
    memset(r, 0, sizeof *r);
    r->account = account;
    r->out = answer;
    r->err = err;
    r->alloc = alloc;
    r->graph.alloc = alloc;
    r->rates = rates_of(account);
    r->noise = noise_of(account);
    knee_status status = knee_graph_init(&r->graph, account, alloc, err);
    if (!status &&
        (!knee_graph_sort_calls(&r->graph) || isnan(r->call_ns = pace_of(&r->graph)) ||
         !knee_own_prices_init(&r->prices, &r->graph) || knee_runner_init(&r->runner, &r->graph)))
        status = out_of_memory(err);
    if (!status && !isnan(changes->step_s))
        status = set_pace(r, changes->step_s);
    else if (!status && changes->host_pace > 0)
        status = take_pace(r, changes->host_pace);
    if (status)
        release(r);
    else
        *out = r;
    return status;
}

/* The unchanged run: with it come what all changes are compared with. */
static knee_status run_recorded(struct replayer *r)
{
    double step_s = 0;
    knee_status status = run_graph(r, &r->graph, &step_s);
    if (status)
        return status;
    describe(r, step_s);
    r->busiest_s = busiest_s(&r->graph);
    if (isnan(r->busiest_s) || !knee_runner_label(&r->runner, &r->recorded))
        return out_of_memory(r->err);
    r->out->ratio = knee_step_ratio(&r->recorded);
    r->out->host_share = r->recorded.label_s[KNEE_HOST] / r->recorded.wall_s;
    return check_explained(r->out, r->err);
}

/* All after begin(). */
static knee_status go_on(struct replayer *r, const struct knee_changes *changes,
                         struct knee_replay *out)
{
    const struct knee_replay *answered = r->out;
    knee_status status = run_recorded(r);
    if (!status)
        status = nothing_asked(changes) ? answer_standard(r) : answer(r, changes);
    release(r);
    if (!status)
        *out = *answered;
    return status;
}

knee_status knee_replay(const struct knee_account *account, const struct knee_changes *changes,
                        const struct knee_alloc *alloc, struct knee_replay *out,
                        struct knee_err *err)
{
    struct knee_replay answered = {.host_pace = 1};
    struct replayer *r = NULL;
    knee_status status = begin(account, changes, alloc, &answered, err, &r);
    return status ? status : go_on(r, changes, out);
}

knee_status knee_replay_standard(const struct knee_account *account,
                                 const struct knee_replay_table *table,
                                 const struct knee_alloc *alloc, struct knee_replay *out,
                                 struct knee_err *err)
{
    struct knee_replay answered = {.host_pace = 1};
    struct knee_changes none;
    struct replayer *r = NULL;
    knee_changes_init(&none);
    none.host_pace = table->host_pace;
    knee_status status = begin(account, &none, alloc, &answered, err, &r);
    if (status)
        return status;
    r->wanted = table->wanted;
    r->context = table->context;
    return go_on(r, &none, out);
}

knee_status knee_replay_timeline(const struct knee_account *account,
                                 const struct knee_changes *changes, const struct knee_alloc *alloc,
                                 struct knee_replayed *out, struct knee_err *err)
{
    struct knee_replay unused = {.host_pace = 1};
    struct knee_replay_times times;
    struct replayer *r = NULL;
    knee_status status = begin(account, changes, alloc, &unused, err, &r);
    if (status)
        return status;
    struct knee_change_run run = run_of(r, changes, KNEE_LEAN_MIDDLE);
    struct knee_graph recorded = r->graph;
    size_t size = recorded.count * sizeof *recorded.nodes;
    recorded.nodes = knee_resize(alloc, NULL, size);
    if (recorded.nodes)
        memcpy(recorded.nodes, r->graph.nodes, size);
    if (!recorded.nodes || !knee_graph_copy(&r->graph, &r->scratch))
        status = out_of_memory(err);
    if (!status && !apply_all(&run))
        status =
            run.g->failed ? out_of_memory(err) : knee_fail(err, KNEE_INPUT, "", "%s", run.reason);
    else if (!status && (run.extra.wall_s > 0 || run.share != 1))
        status = knee_fail(err, KNEE_INPUT, "--perfetto",
                           "a step that is several recorded ones cannot be drawn: leave out "
                           "--accumulate and --sync-every");
    if (!status && !(status = knee_graph_run(run.g, &times, err))) {
        status = knee_write_replay(&recorded, run.g, &times, out, err);
        knee_replay_times_release(&times, alloc);
    }
    knee_resize(alloc, recorded.nodes, 0);
    release(r);
    return status;
}
