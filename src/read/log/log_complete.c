/* SPDX-License-Identifier: MIT */
/*
 * What a table does not say, worked out: the collective from its columns, the number of ranks from
 * bus over algorithm bandwidth (2(n-1)/n, (n-1)/n), nodes from hosts and device numbers. Where two
 * sources contradict each other, the one that comes from the measurement wins and a note says so.
 */
#include "base/format.h"
#include "base/order.h"
#include "base/text.h"
#include "read/log/log.h"

#include "collective/collective_op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The collective ---- */

/* The rows with the least rounding say the ratio best. NaN: no row says it. */
static double best_ratio(const struct knee_log_reader *r, double *slack)
{
    double ratio = NAN;
    *slack = INFINITY;
    for (size_t i = 0; i < r->log.sample_count; i++)
        if (!isnan(r->ratios[i]) && r->slacks[i] < *slack) {
            ratio = r->ratios[i];
            *slack = r->slacks[i];
        }
    return ratio;
}

static enum knee_op op_from_columns(const struct knee_run_facts *run, double ratio, double slack)
{
    bool one = fabs(ratio - 1) <= slack + 1e-3;
    if (ratio > 1 + slack + 1e-3)
        return KNEE_OP_ALL_REDUCE;
    if (run->count_is_part && run->root_is_zero)
        return KNEE_OP_GATHER; /* or scatter: the same columns and the same time */
    if (run->count_is_part && run->redop_is_sum)
        return KNEE_OP_REDUCE_SCATTER;
    if (run->count_is_part)
        /* Old tables: all-gather has no redop column, all-to-all leaves it empty. New ones do not
         * check all-to-all in place. */
        return (run->has_redop && !run->has_root) || run->in_place_not_checked ? KNEE_OP_ALL_TO_ALL
                                                                               : KNEE_OP_ALL_GATHER;
    if (run->root_is_zero)
        return run->redop_is_sum ? KNEE_OP_REDUCE : KNEE_OP_BROADCAST;
    if (run->redop_is_sum) /* two ranks: 2(n-1)/n is 1 as well */
        return KNEE_OP_ALL_REDUCE;
    return one ? KNEE_OP_SEND_RECV : KNEE_OP_UNKNOWN;
}

/* "02_a100x8_allgather.log" */
static enum knee_op op_in_name(const char *name)
{
    enum knee_op op = knee_op_from_name(name, strlen(name));
    return op == KNEE_OP_BARRIER ? KNEE_OP_UNKNOWN : op;
}

/* All-reduce alone has a ratio above 1; gathers and scatters alone stay below. */
static bool ratio_allows(enum knee_op op, double ratio, double slack)
{
    if (isnan(ratio))
        return true;
    if (op == KNEE_OP_ALL_REDUCE)
        return ratio >= 1 - slack - 1e-3;
    if (op == KNEE_OP_BROADCAST || op == KNEE_OP_REDUCE || op == KNEE_OP_SEND_RECV)
        return fabs(ratio - 1) <= slack + 1e-2;
    return ratio < 1;
}

static void complete_op(struct knee_log_reader *r)
{
    struct knee_log *log = &r->log;
    double slack, ratio = best_ratio(r, &slack);
    enum knee_op columns = op_from_columns(&r->run, ratio, slack), named = op_in_name(r->name);
    if (r->hints.op != KNEE_OP_UNKNOWN) {
        log->op = r->hints.op;
        log->op_known = KNEE_TOLD;
    } else if (log->op_known == KNEE_SAID && ratio_allows(log->op, ratio, slack)) {
        return;
    } else {
        if (log->op_known == KNEE_SAID)
            knee_log_note(log, "the log says %s, but busbw / algbw = %.4f is not its ratio",
                          knee_op_name(log->op), ratio);
        bool trust_name = named != KNEE_OP_UNKNOWN && ratio_allows(named, ratio, slack);
        log->op = trust_name ? named : columns;
        log->op_known = KNEE_INFERRED;
    }
    if (log->op == KNEE_OP_UNKNOWN) {
        log->op = KNEE_OP_ALL_REDUCE;
        log->op_known = KNEE_ASSUMED;
        knee_log_note(log, "nothing says which collective this is: all_reduce is assumed");
    }
}

/* ---- Ranks ---- */

/* Number of ranks that a ratio stands for. */
static double ranks_of(enum knee_op op, double ratio)
{
    double most = op == KNEE_OP_ALL_REDUCE ? 2 : 1;
    return most / (most - ratio);
}

static bool ratio_tells(enum knee_op op)
{
    return op != KNEE_OP_BROADCAST && op != KNEE_OP_REDUCE && op != KNEE_OP_SEND_RECV;
}

/* The median of what all rows say, each as far as its rounding lets it. */
static double ranks_from_ratios(struct knee_log_reader *r, double *low, double *high)
{
    double *list = r->slacks; /* ours to overwrite after this pass */
    size_t count = 0;
    *low = 2;
    *high = INFINITY;
    for (size_t i = 0; i < r->log.sample_count; i++) {
        double ratio = r->ratios[i], slack = r->slacks[i];
        double most = r->log.op == KNEE_OP_ALL_REDUCE ? 2 : 1;
        if (isnan(ratio) || !(ratio - slack > 0) || ratio >= most)
            continue;
        *low = fmax(*low, ranks_of(r->log.op, ratio - slack));
        if (ratio + slack < most)
            *high = fmin(*high, ranks_of(r->log.op, ratio + slack));
        list[count++] = ranks_of(r->log.op, ratio);
    }
    return knee_median(list, count);
}

/* A whole number between the limits: the nearest, or a multiple of eight if there are many. */
static double settle(double median, double low, double high)
{
    double nearest = rint(median);
    if (high - low < 1.5 || !isfinite(high))
        return fmax(2, nearest);
    double eight = 8 * rint(median / 8);
    return eight >= low && eight <= high && eight > 0 ? eight : fmax(2, nearest);
}

static double ranks_said(const struct knee_run_facts *run)
{
    if (!isnan(run->max_rank))
        return run->max_rank + 1;
    return run->ranks_said;
}

static void complete_ranks(struct knee_log_reader *r)
{
    struct knee_log *log = &r->log;
    double said = ranks_said(&r->run), low = 2, high = INFINITY, from_ratio = NAN;
    if (!isnan(r->hints.ranks)) {
        log->ranks = r->hints.ranks;
        log->ranks_known = KNEE_TOLD;
        return;
    }
    if (!isnan(log->ranks) && log->ranks_known == KNEE_SAID)
        return;
    if (ratio_tells(log->op))
        from_ratio = ranks_from_ratios(r, &low, &high);
    if (!isnan(from_ratio) && !isnan(said) && said >= 2 &&
        fabs(said - from_ratio) <= fmax(0.5, 0.02 * said)) {
        log->ranks = said;
        log->ranks_known = KNEE_SAID;
    } else if (!isnan(from_ratio)) {
        log->ranks = settle(from_ratio, low, high);
        log->ranks_known = KNEE_INFERRED;
        if (!isnan(said) && said >= 2)
            knee_log_note(log, "the log says %.0f ranks, busbw / algbw says %.0f: taken", said,
                          log->ranks);
    } else if (!isnan(said)) {
        log->ranks = said;
        log->ranks_known = KNEE_SAID;
    }
}

/* ---- Nodes ---- */

static double usual_node(struct knee_log_reader *r)
{
    char words[1024];
    knee_format(words, sizeof words, "%s %.400s %.400s", r->log.gpu,
                r->hints.about ? r->hints.about : "", r->name);
    struct knee_cluster *cluster = knee_resize(r->logs->alloc, NULL, sizeof *cluster);
    if (!cluster)
        r->status = knee_fail(r->err, KNEE_SYSTEM, r->name, "out of memory");
    bool known = cluster && knee_cluster_recognise(words, cluster);
    double count = known ? fmin(cluster->levels[0].count, 8) : 8; /* a rack has several nodes */
    knee_resize(r->logs->alloc, cluster, 0);
    return count;
}

/* Nodes as the run lists them; NaN: it does not. */
static double nodes_seen(const struct knee_log_reader *r)
{
    const struct knee_run_facts *run = &r->run;
    double ranks = r->log.ranks;
    if (!isnan(run->nodes_said))
        return run->nodes_said;
    if (!isnan(run->per_node_said) && run->per_node_said <= ranks)
        return ceil(ranks / run->per_node_said);
    if (r->log.seen & KNEE_SEEN_SAME_GPU)
        return ranks; /* NCCL runs such ranks only as separate hosts */
    if (run->hosts > 0 && run->listed >= ranks)
        return run->hosts;
    if (run->hosts > 0 && !isnan(run->max_device)) /* not all are listed */
        return fmax(run->hosts, ceil(ranks / (run->max_device + 1)));
    return run->nccl_hosts > 0 ? run->nccl_hosts : NAN;
}

static void complete_nodes(struct knee_log_reader *r)
{
    struct knee_log *log = &r->log;
    double seen = nodes_seen(r);
    if (!isnan(r->hints.nodes)) {
        log->nodes = r->hints.nodes;
        log->nodes_known = KNEE_TOLD;
        if (!isnan(seen) && seen != r->hints.nodes)
            knee_log_note(log, "%.0f nodes were given, the log looks like %.0f", log->nodes, seen);
    } else if (!isnan(log->nodes) && log->nodes_known == KNEE_SAID) {
        return;
    } else if (!isnan(seen) && seen >= 1 && seen <= log->ranks) {
        log->nodes = seen;
        log->nodes_known = KNEE_SAID;
    } else if (!isnan(log->ranks)) {
        log->nodes = ceil(log->ranks / usual_node(r));
        log->nodes_known = KNEE_ASSUMED;
        if (log->nodes > 1)
            knee_log_note(log, "the log does not say how many nodes: %.0f are assumed (--nodes)",
                          log->nodes);
    }
}

void knee_log_complete(struct knee_log_reader *r)
{
    complete_op(r);
    complete_ranks(r);
    complete_nodes(r);
    if (isnan(r->log.ranks))
        knee_log_note(&r->log, "nothing says how many ranks there were: give --ranks");
    else if (r->log.ranks < 2)
        knee_log_note(&r->log, "one rank alone: a test that was built without MPI?");
}
