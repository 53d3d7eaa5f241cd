/* SPDX-License-Identifier: MIT */
/*
 * Many jobs of a scheduler: how many node-hours they had, how many of them in jobs that failed, and
 * whether failures or slow jobs fall on one host more often than chance allows. A host that is in
 * 4 of 5 failures means something only beside its share of all jobs: with N jobs of which F failed,
 * and a host in n of them, the chance that f or more of the failures are among its jobs is the tail
 * of the hypergeometric distribution; times the number of hosts with two jobs or more, because any
 * of them could have been the one.
 */
#include "knee_scale.h"

#include "base/error.h"
#include "base/fold.h"
#include "base/list.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MENTIONS_MAX ((size_t)1 << 20) /* hosts of all jobs together */
#define SUSPICIOUS   0.05
#define SLOW_JOBS    8 /* fewer logs have no slowest quarter */
#define STAMP_SLACK  120

struct mention {
    char name[48];
    bool failed, slow, timed;
};

static bool failed(const struct knee_sched_job *job)
{
    return job->state == KNEE_SCHED_FAILED || job->state == KNEE_SCHED_NODE_FAIL ||
           job->state == KNEE_SCHED_MEMORY;
}

/* Jobs that are faster, of those with as many nodes. */
static bool slow(const struct knee_sched_jobs *jobs, const struct knee_sched_job *job)
{
    size_t alike = 0, faster = 0;
    if (isnan(job->step_s))
        return false;
    for (size_t i = 0; i < jobs->count; i++) {
        const struct knee_sched_job *other = &jobs->row[i];
        if (isnan(other->step_s) || other->nodes != job->nodes)
            continue;
        alike++;
        faster += other->step_s < job->step_s;
    }
    return alike >= SLOW_JOBS && 4 * faster >= 3 * alike;
}

/* log of n over k; -INFINITY where there is no such choice. */
static double log_choose(double n, double k)
{
    double sum = 0;
    if (k < 0 || k > n)
        return -INFINITY;
    for (double i = 1; i <= fmin(k, n - k); i++)
        sum += log((n - fmin(k, n - k) + i) / i);
    return sum;
}

/* The tail of the hypergeometric distribution: of `all` jobs `marked`; a host has `own` of them,
 * `found` of which are marked. */
static double tail(double all, double marked, double own, double found)
{
    double k = fmax(found, own + marked - all), sum = 0;
    double p =
        exp(log_choose(marked, k) + log_choose(all - marked, own - k) - log_choose(all, own));
    for (; k <= fmin(own, marked); k++) {
        sum += p;
        p *= (marked - k) * (own - k) / ((k + 1) * (all - marked - own + k + 1));
    }
    return fmin(1, sum);
}

KNEE_SORT(by_name, struct mention, strcmp(a->name, b->name))

static knee_status add_hosts(const struct knee_sched_jobs *jobs, const struct knee_sched_job *job,
                             struct knee_list *mentions)
{
    struct knee_sched_hosts walk;
    struct mention one = {
        .failed = failed(job), .slow = slow(jobs, job), .timed = !isnan(job->step_s)};
    const char *list = jobs->text.data ? jobs->text.data + job->hosts : "";
    knee_sched_hosts_init(&walk, list, job->hosts_length);
    while (mentions->count < MENTIONS_MAX && knee_sched_host(&walk, one.name, sizeof one.name)) {
        struct mention *mention = knee_list_add(mentions, sizeof *mention, jobs->alloc);
        if (!mention)
            return KNEE_SYSTEM;
        *mention = one;
    }
    return KNEE_OK;
}

static bool before(const struct knee_sched_suspect *a, const struct knee_sched_suspect *b)
{
    return a->chance < b->chance || (a->chance <= b->chance && a->failed > b->failed);
}

/* Keeps the list sorted by chance. */
static void keep(struct knee_sched_account *out, const struct knee_sched_suspect *host)
{
    size_t at = out->listed < KNEE_SCHED_HOSTS ? out->listed++ : KNEE_SCHED_HOSTS;
    for (; at > 0 && before(host, &out->host[at - 1]); at--)
        if (at < KNEE_SCHED_HOSTS)
            out->host[at] = out->host[at - 1];
    if (at < KNEE_SCHED_HOSTS)
        out->host[at] = *host;
}

static void judge_host(struct knee_sched_account *out, struct knee_sched_suspect *host,
                       size_t timed)
{
    double hosts = (double)out->repeated;
    double fails = host->failed < 2 ? 1
                                    : hosts * tail((double)out->jobs, (double)out->failed,
                                                   (double)host->jobs, (double)host->failed);
    double slows = host->slow < 2 ? 1
                                  : hosts * tail((double)out->timed, (double)out->slow,
                                                 (double)timed, (double)host->slow);
    host->by_slow = slows < fails;
    host->chance = fmin(1, fmin(fails, slows));
    if (host->failed || host->slow)
        keep(out, host);
}

static void count_hosts(const struct mention *mentions, size_t count, bool judging,
                        struct knee_sched_account *out)
{
    size_t hosts = 0, repeated = 0;
    for (size_t i = 0, end; i < count; i = end) {
        struct knee_sched_suspect host = {.jobs = 0};
        size_t timed = 0;
        memcpy(host.name, mentions[i].name, sizeof host.name);
        for (end = i; end < count && strcmp(mentions[end].name, host.name) == 0; end++) {
            host.jobs++;
            host.failed += mentions[end].failed;
            host.slow += mentions[end].slow;
            timed += mentions[end].timed;
        }
        hosts++;
        repeated += host.jobs > 1;
        if (judging)
            judge_host(out, &host, timed);
    }
    out->host_count = hosts;
    out->repeated = repeated;
}

static void add_hours(const struct knee_sched_jobs *jobs, const struct knee_sched_job *job,
                      struct knee_sched_account *out)
{
    double node_s = job->elapsed_s * (job->nodes >= 1 ? job->nodes : 1);
    out->jobs++;
    out->by_state[job->state]++;
    out->failed += failed(job);
    out->slow += slow(jobs, job);
    out->timed += isnan(job->step_s) ? 0 : 1;
    out->unnamed += job->hosts_length == 0;
    out->node_s += node_s;
    out->failed_node_s += failed(job) ? node_s : 0;
    if (!isnan(job->gpus))
        out->gpu_s = (isnan(out->gpu_s) ? 0 : out->gpu_s) + job->elapsed_s * job->gpus;
}

knee_status knee_sched_account(const struct knee_sched_jobs *jobs, struct knee_sched_account *out,
                               struct knee_err *err)
{
    struct knee_list mentions = {0};
    knee_status status = KNEE_OK;
    *out = (struct knee_sched_account){.gpu_s = NAN};
    for (size_t i = 0; i < jobs->count && !status; i++) {
        if (!(jobs->row[i].elapsed_s > 0))
            continue; /* it never ran */
        add_hours(jobs, &jobs->row[i], out);
        status = add_hosts(jobs, &jobs->row[i], &mentions);
    }
    if (!status && mentions.count) {
        qsort(mentions.data, mentions.count, sizeof(struct mention), by_name);
        count_hosts(mentions.data, mentions.count, false, out);
        count_hosts(mentions.data, mentions.count, true, out);
    }
    while (out->suspects < out->listed && out->host[out->suspects].chance < SUSPICIOUS)
        out->suspects++;
    knee_list_release(&mentions, jobs->alloc);
    return status ? knee_fail(err, KNEE_SYSTEM, "sacct", "out of memory") : KNEE_OK;
}

/* ---- A log and its job ---- */

/* Is the job's number in the log's name, and not as part of a longer one? */
static bool names(const char *log, const char *id)
{
    size_t length = strlen(id);
    for (const char *at = log; (at = strstr(at, id)); at++)
        if ((at == log || !knee_is_digit(at[-1])) && !knee_is_digit(at[length]))
            return true;
    return false;
}

static void set_ends(const struct knee_sched_job *job, struct knee_train_account *a)
{
    bool around = job->begin_s <= a->begin_s + STAMP_SLACK && job->end_s >= a->end_s - STAMP_SLACK;
    if (!around || isnan(a->wall_s))
        return;
    double before = fmax(0, a->begin_s - job->begin_s), after = fmax(0, job->end_s - a->end_s);
    a->part_s[KNEE_TIME_STARTUP] += before + after;
    a->wall_s += before + after;
    a->begin_s -= before;
    a->end_s += after;
}

void knee_sched_join(struct knee_sched_jobs *jobs, struct knee_train_log *log)
{
    static const enum knee_train_end_kind ends[KNEE_SCHED_STATES] = {
        [KNEE_SCHED_COMPLETED] = KNEE_ENDED_WELL,
        [KNEE_SCHED_TIMEOUT] = KNEE_ENDED_LIMIT,
        [KNEE_SCHED_CANCELLED] = KNEE_ENDED_CANCELLED,
        [KNEE_SCHED_PREEMPTED] = KNEE_ENDED_CANCELLED,
    };
    for (size_t i = 0; i < jobs->count; i++) {
        struct knee_sched_job *job = &jobs->row[i];
        if (!names(log->name, job->id))
            continue;
        job->step_s = log->timing == KNEE_TIMED_NOT ? NAN : log->median_s;
        set_ends(job, &log->account);
        if (log->account.ended == KNEE_ENDED_UNKNOWN)
            log->account.ended = ends[job->state];
        if (isnan(log->workers) && job->gpus >= 1) {
            log->workers = job->gpus;
            log->workers_from = "sacct";
        }
        return;
    }
}
