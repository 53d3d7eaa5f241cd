/* SPDX-License-Identifier: MIT */
/*
 * Plans priced per second on one core (the closed path, block shared by many plans as in the
 * search), and how long the full space of a 175B dense model on 4096 GPUs takes on two cores. The
 * best public analytical tool prices about 500 plans a second on one core.
 */
#include "knee_timeline.h"
#include "predict/plan/block.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PUBLISHED_PER_S 500.0

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of this core alone: others may be using the machine. */
static double core_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct knee_shape shape;
static struct knee_machine machine;
static struct knee_plan fixed;

static int set_up(void)
{
    struct knee_platform platform;
    knee_shape_init(&shape);
    knee_platform_init(&platform);
    knee_plan_init(&fixed);
    fixed.gpus = 4096;
    fixed.global_batch = 1536;
    return knee_keys_set(&knee_shape_keys, &shape, "model", "gpt3-175b", KNEE_FLAG, NULL) ||
           knee_shape_complete(&shape, NULL) ||
           knee_keys_set(&knee_platform_keys, &platform, "gpu", "h100", KNEE_FLAG, NULL) ||
           knee_machine_init(&platform, NULL, &machine, NULL);
}

/* One block, its plans over and over. */
static double price_rate(void)
{
    struct knee_block block;
    struct knee_prices prices = {0};
    struct knee_plan plan = fixed;
    struct knee_plan_cost cost;
    double sum = 0, start, end;
    long count = 0;
    plan.tp = 8;
    plan.pp = 8;
    plan.micro_batch = 1;
    if (knee_plan_complete(&plan, &shape, &machine, NULL))
        return 0;
    knee_block_init(&shape, &machine, &plan, &block);
    start = core_s();
    do {
        for (int i = 0; i < 20000; i++, count++) {
            plan.pp = (double)(1 << (i % 5));
            plan.dp = 512 / plan.pp;
            plan.shard = i % 3;
            plan.shard_size = plan.shard ? plan.dp : 1;
            plan.recompute = i % 2 ? KNEE_FULL : KNEE_KEEP;
            knee_block_price(&block, &shape, &machine, &plan, &prices, &cost);
            sum += cost.step_s;
        }
        end = core_s();
    } while (end - start < 1);
    return sum > 0 ? (double)count / (end - start) : 0;
}

struct worker {
    const struct knee_search *search;
    atomic_size_t *next;
    size_t pieces;
    struct knee_search_result result;
};

static void *work(void *argument)
{
    struct worker *w = argument;
    size_t from;
    while ((from = atomic_fetch_add(w->next, 16)) < w->pieces)
        knee_search_run(w->search, from, from + 16, &w->result);
    return NULL;
}

/* Seconds of the search; the plans it looked at. */
static double search_s(bool brute, int threads, double *plans, double *best)
{
    static struct worker workers[2];
    struct knee_search search = {
        .shape = &shape, .machine = &machine, .fixed = &fixed, .top = 5, .brute = brute};
    atomic_size_t next = 0;
    pthread_t other;
    double start = now_s();
    for (int i = 0; i < threads; i++) {
        workers[i].search = &search;
        workers[i].next = &next;
        workers[i].pieces = knee_search_pieces(&search);
        knee_search_result_init(&workers[i].result);
    }
    bool both = threads > 1 && pthread_create(&other, NULL, work, &workers[1]) == 0;
    work(&workers[0]);
    if (both) {
        pthread_join(other, NULL);
        knee_search_merge(&search, &workers[1].result, &workers[0].result);
    }
    *plans = workers[0].result.plans;
    *best = workers[0].result.best[0].cost.step_s;
    return now_s() - start;
}

/* A step of the search's best plan for 405B on 16,384 GPUs, event by event, to its account. */
static double simulate_s(double *spans)
{
    static struct knee_search_result result;
    struct knee_trace trace;
    struct knee_account account;
    struct knee_shape large;
    struct knee_plan at = fixed;
    at.gpus = 16384;
    at.global_batch = 2048;
    knee_shape_init(&large);
    if (knee_keys_set(&knee_shape_keys, &large, "model", "llama3-405b", KNEE_FLAG, NULL) ||
        knee_shape_complete(&large, NULL))
        return NAN;
    struct knee_search search = {.shape = &large, .machine = &machine, .fixed = &at, .top = 1};
    knee_search_result_init(&result);
    knee_search_run(&search, 0, knee_search_pieces(&search), &result);
    double start = now_s();
    if (!result.count ||
        knee_simulate(&large, &machine, &result.best[0].plan, NULL, &trace, NULL) ||
        knee_account(&trace, 1, NULL, &account, NULL))
        return NAN;
    double taken = now_s() - start;
    *spans = 0;
    for (size_t r = 0; r < trace.rank_count; r++)
        *spans += (double)trace.ranks[r].span_count;
    knee_account_release(&account);
    knee_trace_release(&trace);
    return taken;
}

int main(void)
{
    double plans, all, best, brute_best, spans = 0;
    if (set_up())
        return 1;
    double rate = price_rate();
    printf("plans priced, one core   %10.3g /s  %8.2f x the promised 1e6/s, %.0f x the published "
           "500/s\n",
           rate, rate / 1e6, rate / PUBLISHED_PER_S);
    double pruned = search_s(false, 2, &plans, &best);
    printf("175B on 4096 GPUs        %10.3f s  %9.3f of the promised 10 s (two threads, %.0f plans "
           "looked at)\n",
           pruned, pruned / 10, plans);
    double brute = search_s(true, 1, &all, &brute_best);
    printf("  every plan, one thread %10.3f s  %9.3g plans/s over %.0f plans; %s\n", brute,
           all / brute, all, best == brute_best ? "the same best plan" : "ANOTHER BEST PLAN");
    double simulated = simulate_s(&spans);
    printf("simulate 16384 GPUs      %10.3f s  %9.3f of the promised 1 s (%.0f spans, labelled)\n",
           simulated, simulated, spans);
    return rate >= 1e6 && pruned <= 10 && simulated < 1 && best == brute_best ? 0 : 1;
}
