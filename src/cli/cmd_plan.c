/* SPDX-License-Identifier: MIT */
/* knee plan: the library's answer, with the plans of each GPU count searched by as many threads as
 * there are cores, and under mpirun the counts shared out over the ranks. */
#include "base/error.h"
#include "cli/cli.h"
#include "cli/ranks.h"
#include "reach/stop.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- The search, in threads ---- */

struct work {
    const struct knee_search *search;
    atomic_size_t next; /* first piece that no thread has taken yet */
    size_t pieces;
    bool progress;
    pthread_mutex_t speaking;
    size_t told; /* the piece printed last: progress never goes back */
};

struct worker {
    pthread_t thread;
    struct work *work;
    struct knee_search_result result;
};

#define PIECES_AT_ONCE 16

#define PIECES_A_LINE 1024

static void say_progress(struct work *work, size_t from)
{
    pthread_mutex_lock(&work->speaking);
    if (from >= work->told + PIECES_A_LINE) {
        work->told = from;
        fprintf(stderr, "\r%g GPUs: %3.0f %% ", work->search->fixed->gpus,
                100 * (double)from / (double)work->pieces);
    }
    pthread_mutex_unlock(&work->speaking);
}

static void *search_some(void *argument)
{
    struct worker *worker = argument;
    struct work *work = worker->work;
    size_t from;
    while (!knee_stop_signal() &&
           (from = atomic_fetch_add(&work->next, PIECES_AT_ONCE)) < work->pieces) {
        knee_search_run(work->search, from, from + PIECES_AT_ONCE, &worker->result);
        if (work->progress)
            say_progress(work, from);
    }
    return NULL;
}

/* The first worker is this thread; others that cannot be started are done without. */
static knee_status search_all(const struct knee_search *search, size_t threads,
                              struct knee_search_result *out, struct knee_err *err)
{
    struct work work = {
        .search = search,
        .pieces = knee_search_pieces(search),
        .progress = isatty(STDERR_FILENO),
        .speaking = PTHREAD_MUTEX_INITIALIZER,
    };
    struct worker *workers = calloc(threads, sizeof *workers);
    size_t started = 1;
    if (!workers)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the search");
    for (size_t i = 0; i < threads; i++) {
        workers[i].work = &work;
        knee_search_result_init(&workers[i].result);
    }
    while (started < threads &&
           pthread_create(&workers[started].thread, NULL, search_some, &workers[started]) == 0)
        started++;
    search_some(&workers[0]);
    knee_search_result_init(out);
    for (size_t i = 0; i < started; i++) {
        if (i > 0)
            pthread_join(workers[i].thread, NULL);
        knee_search_merge(search, &workers[i].result, out);
    }
    if (work.told > 0)
        fprintf(stderr, "\r%24s\r", "");
    free(workers);
    return KNEE_OK;
}

/* ---- What the threads and ranks of a run share ---- */

struct crew {
    struct cli_run *run;
    struct knee_runtime *rt; /* NULL: alone */
    size_t threads;
    struct knee_ask_work work;
};

static knee_status join(void *ctx, size_t *part, size_t *parts, struct knee_err *err)
{
    struct crew *crew = ctx;
    (void)err; /* run->err is it */
    knee_status status = cli_join(crew->run, &crew->rt);
    crew->work.silent = crew->run->quiet;
    if (crew->rt) {
        *part = (size_t)crew->rt->rank;
        *parts = (size_t)crew->rt->size;
    }
    return status;
}

static knee_status search(void *ctx, const struct knee_search *search,
                          struct knee_search_result *out, struct knee_err *err)
{
    const struct crew *crew = ctx;
    return search_all(search, crew->threads, out, err);
}

static bool was_stopped(void *ctx)
{
    (void)ctx;
    return knee_stop_signal() != 0;
}

/* Under mpirun: the rows that other ranks searched, at rank 0. Count i is rank i % size's. */
static void merge_rows(void *ctx, struct knee_plan_answer *a, knee_status own,
                       const struct knee_err *err)
{
    struct knee_runtime *rt = ((struct crew *)ctx)->rt;
    if (rt && own)
        rt->abort(rt, err->what);
    struct knee_plan_row *all =
        rt ? cli_collect(rt, a->rows, a->row_count * sizeof *a->rows) : NULL;
    for (size_t i = 0; i < a->row_count && all; i++)
        a->rows[i] = all[i % (size_t)rt->size * a->row_count + i];
    free(all);
    if (knee_stop_signal())
        fprintf(stderr, "knee: stopped; this is what was found so far\n");
}

static knee_status search_and_answer(struct cli_run *run)
{
    struct crew crew = {.run = run,
                        .work = {.join = join,
                                 .search = search,
                                 .stopped = was_stopped,
                                 .merge_rows = merge_rows,
                                 .silent = run->quiet,
                                 .ctx = &crew}};
    double threads = knee_ask_plan_threads(run->objects[0]);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    crew.threads =
        (size_t)(isnan(threads) ? fmin(ASK_THREADS_MAX, fmax(1, (double)cores)) : threads);
    knee_stop_catch(); /* the search ends, and what was found so far is printed */
    knee_status status = cli_answer(run, &crew.work);
    knee_stop_release();
    if (crew.rt)
        crew.rt->finish(crew.rt);
    return status;
}

static knee_status plan_main(struct cli_run *run, int argc, char **argv)
{
    run->quiet = knee_runtime_rank() > 0;
    return cli_ask_with(run, argc, argv, search_and_answer);
}

const struct cli_command cli_plan = {
    .name = "plan",
    .operands = "",
    .summary = "best split of a model over GPUs, and how many are worth it",
    .common = {"model", "gpu", "gpus", "global-batch", "seq", "tokens", "framework", "emit"},
    .about = "Searches every way to split a model over GPUs (tensor, pipeline, context, expert and "
             "data parallelism, sharding, recomputation). Prints the fastest plan that fits, the "
             "alternatives, memory and cost; with several GPU counts, the last one worth paying "
             "for. Options that you give are fixed; the others are searched.",
    .examples = "  knee plan --model llama3-70b --gpu h100 --gpus 64\n"
                "  knee plan --model llama3-8b --gpu h100 --gpus 8..1024x2 --tokens 1T\n"
                "  knee plan --hf config.json --gpu a100 --tokens 2T --deadline 30d\n"
                "  knee plan -m qwen3-235b-a22b -g gb200 -n 256 --precision fp8 --ep 32\n",
    .ask = &knee_ask_plan,
    .main = plan_main,
};
