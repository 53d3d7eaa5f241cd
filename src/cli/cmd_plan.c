/* SPDX-License-Identifier: MIT */
/*
 * knee plan: the best plans for a model on a machine. The inputs are gathered from flags and
 * imported files, the space of plans at each GPU count is searched by as many threads as there are
 * cores, and the answer is judged and printed.
 */
#include "base/error.h"
#include "base/keys.h"
#include "cli/cli.h"
#include "cli/ranks.h"
#include "knee_read.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGEST_FILE ((size_t)64 << 20)
#define THREADS_MAX  64
#define USUAL_TOP    5
#define COUNTS_MAX   64

struct plan_options {
    struct knee_workers gpus;
    double tokens, budget, deadline_s, tolerance, top, threads;
    const char *hf, *deepspeed, *megatron, *rates, *perfetto;
    bool ops, simulate;
    unsigned char source[KNEE_KEYS_MAX];
};

#define NUMBER(name, field, unit, low, high, absent, words)                                        \
    KNEE_NUMBER(struct plan_options, name, field, unit, low, high, "Question", absent, words)
#define WORD(key_name, field, words)                                                               \
    {                                                                                              \
        .name = key_name, .kind = KNEE_KEY_WORD, .offset = offsetof(struct plan_options, field),   \
        .group = "Question", .otherwise = "none", .help = words                                    \
    }

static const struct knee_key rows[] = {
    {.name = "gpus",
     .kind = KNEE_KEY_WORKERS,
     .offset = offsetof(struct plan_options, gpus),
     .group = "Question",
     .otherwise = "from one node to 4096, doubling",
     .help = "GPU counts: 64, 64,128, 64..4096x2"},
    NUMBER("tokens", tokens, KNEE_UNIT_COUNT, 1, 1e18, "none", "tokens to train: prices the run"),
    NUMBER("budget", budget, KNEE_UNIT_DOLLARS, 0, 1e15, "none",
           "dollars for all tokens: the fastest count that they pay for"),
    NUMBER("deadline", deadline_s, KNEE_UNIT_SECONDS, 0, 1e12, "none",
           "time for all tokens: the cheapest count that meets it"),
    NUMBER("tolerance", tolerance, KNEE_UNIT_FRACTION, 0.01, 1, "0.8",
           "E(K) down to which more GPUs are worth it"),
    NUMBER("top", top, KNEE_UNIT_COUNT, 1, KNEE_PLANS_MAX, "5", "plans to show"),
    NUMBER("threads", threads, KNEE_UNIT_COUNT, 1, THREADS_MAX, "one per core",
           "threads that search"),
    WORD("hf", hf, "Hugging Face config.json with the model's shape"),
    WORD("deepspeed", deepspeed, "DeepSpeed configuration with parts of the plan"),
    WORD("megatron", megatron, "Megatron log or launch script with shape and plan"),
    WORD("rates", rates, "YAML file with constants that replace those of the profile"),
    {.name = "simulate",
     .kind = KNEE_KEY_SWITCH,
     .offset = offsetof(struct plan_options, simulate),
     .group = "Question",
     .otherwise = "",
     .help = "also run the best plan's step event by event"},
    WORD("perfetto", perfetto,
         "write the simulated step as a trace for ui.perfetto.dev; knee trace reads it too"),
    {.name = "ops",
     .kind = KNEE_KEY_SWITCH,
     .offset = offsetof(struct plan_options, ops),
     .group = "Question",
     .otherwise = "",
     .help = "list the operations of a layer under the best plan instead"},
};

static const struct knee_keys plan_keys = KNEE_KEY_TABLE(rows, struct plan_options);

/* ---- The search, in threads ---- */

/* Set by Ctrl-C: the search ends and what was found so far is printed. */
static volatile sig_atomic_t stopped;

static void stop(int number)
{
    (void)number;
    stopped = 1;
}

struct work {
    const struct knee_search *search;
    atomic_size_t next; /* piece that nobody has taken yet */
    size_t pieces;
    bool progress;
};

struct worker {
    pthread_t thread;
    struct work *work;
    struct knee_search_result result;
};

#define PIECES_AT_ONCE 16

static void *search_some(void *argument)
{
    struct worker *worker = argument;
    struct work *work = worker->work;
    size_t from;
    while (!stopped && (from = atomic_fetch_add(&work->next, PIECES_AT_ONCE)) < work->pieces) {
        knee_search_run(work->search, from, from + PIECES_AT_ONCE, &worker->result);
        if (work->progress && from % (64 * PIECES_AT_ONCE) == 0)
            fprintf(stderr, "\r%g GPUs: %3.0f %% ", work->search->fixed->gpus,
                    100 * (double)from / (double)work->pieces);
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
    if (work.progress)
        fprintf(stderr, "\r%24s\r", "");
    free(workers);
    return KNEE_OK;
}

/* ---- Gathering ---- */

static knee_status with_file(const char *name, char **data, size_t *length, struct knee_err *err)
{
    knee_status status = cli_read_file(name, LARGEST_FILE, data, length, err);
    if (!status && !*data)
        status = knee_fail(err, KNEE_INPUT, name, "the file is empty");
    return status;
}

static knee_status import_files(const struct plan_options *options, struct knee_plan_answer *a,
                                struct knee_err *err)
{
    char *data = NULL;
    size_t length = 0;
    knee_status status = KNEE_OK;
    if (options->hf && !(status = with_file(options->hf, &data, &length, err)))
        status = knee_hf_read(data, length, options->hf, &a->shape, err);
    free(data);
    data = NULL;
    if (!status && options->megatron &&
        !(status = with_file(options->megatron, &data, &length, err)))
        status =
            knee_megatron_read(data, length, options->megatron, &a->shape, &a->fixed, NULL, err);
    free(data);
    data = NULL;
    if (!status && options->deepspeed &&
        !(status = with_file(options->deepspeed, &data, &length, err)))
        status = knee_deepspeed_read(data, length, options->deepspeed, &a->fixed, err);
    free(data);
    return status;
}

/* The counts asked for, that of an imported plan, or one node and its doublings. */
static size_t list_counts(const struct plan_options *options, const struct knee_plan_answer *a,
                          double *out)
{
    if (options->gpus.ranges > 0)
        return knee_workers_list(&options->gpus, out, KNEE_ROWS_MAX);
    if (!isnan(a->fixed.gpus)) {
        out[0] = a->fixed.gpus;
        return 1;
    }
    size_t count = 0;
    for (double gpus = fmin(8, a->machine.node_size); gpus <= 4096; gpus *= 2)
        out[count++] = gpus;
    return count;
}

static knee_status gather(const struct plan_options *options, struct knee_plan_answer *a,
                          struct knee_err *err)
{
    struct knee_rates rates;
    knee_status status = import_files(options, a, err);
    if (!status)
        status = knee_shape_complete(&a->shape, err);
    if (!status)
        status = cli_read_rates(options->rates, &rates, err);
    if (!status)
        status = knee_machine_init(&a->platform, &rates, &a->machine, err);
    if (status)
        return status;
    a->question = (struct knee_plan_question){
        .tokens = options->tokens,
        .budget = options->budget,
        .deadline_s = options->deadline_s,
        .tolerance = isnan(options->tolerance) ? 0.8 : options->tolerance,
    };
    if ((!isnan(options->budget) || !isnan(options->deadline_s)) && isnan(options->tokens)) {
        knee_fail(err, KNEE_USAGE, "", "a budget or a deadline is for a number of tokens");
        knee_hint(err, "add --tokens, for example 1T");
        return KNEE_USAGE;
    }
    if (!isnan(options->budget) && isnan(a->machine.price_per_hour)) {
        knee_fail(err, KNEE_USAGE, "", "there is no price for this GPU");
        knee_hint(err, "add --price, dollars per GPU-hour");
        return KNEE_USAGE;
    }
    if (isnan(a->fixed.global_batch))
        a->fixed.global_batch = fmax(1, rint(4194304 / a->shape.seq));
    return KNEE_OK;
}

/* What E(K) is against: the first of a fixed list of counts at which a plan fits, with the optimizer
 * on the GPU unless it was said otherwise: what only just fits is no measure of anything. */
static knee_status find_baseline(struct knee_plan_answer *a, size_t threads, struct knee_err *err)
{
    struct knee_search_result *found = calloc(1, sizeof *found);
    struct knee_plan fixed = a->fixed;
    struct knee_search search = {
        .shape = &a->shape, .machine = &a->machine, .fixed = &fixed, .top = 1};
    knee_status status = found ? KNEE_OK : knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    a->baseline_gpus = a->baseline_tokens_per_s = NAN;
    if (fixed.offload < 0)
        fixed.offload = KNEE_ON_GPU;
    for (size_t i = 0; !status && !stopped && isnan(a->baseline_gpus); i++) {
        fixed.gpus = knee_plan_baseline_at(&a->machine, i);
        if (fixed.gpus == 0)
            break;
        status = search_all(&search, threads, found, err);
        if (status || found->count == 0)
            continue;
        a->baseline_gpus = fixed.gpus;
        a->baseline_tokens_per_s = found->best[0].cost.tokens_per_s;
    }
    free(found);
    return status;
}

/* Under mpirun: the rows that other ranks searched, at rank 0. Count i is rank i % size's. */
static void gather_rows(struct knee_plan_answer *a, struct knee_runtime *rt)
{
    struct knee_plan_row *all = cli_collect(rt, a->rows, a->row_count * sizeof *a->rows);
    for (size_t i = 0; i < a->row_count && all; i++)
        a->rows[i] = all[i % (size_t)rt->size * a->row_count + i];
    free(all);
}

static knee_status search_counts(const struct plan_options *options, struct knee_plan_answer *a,
                                 const double *counts, struct knee_runtime *rt,
                                 struct knee_err *err)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    double threads =
        isnan(options->threads) ? fmin(THREADS_MAX, fmax(1, (double)cores)) : options->threads;
    signal(SIGINT, stop);
    knee_status status = find_baseline(a, (size_t)threads, err);
    for (size_t i = 0; i < a->row_count && !status; i++) {
        struct knee_plan fixed = a->fixed;
        struct knee_search search = {
            .shape = &a->shape,
            .machine = &a->machine,
            .fixed = &fixed,
            .top = isnan(options->top) ? USUAL_TOP : (size_t)options->top,
        };
        fixed.gpus = a->rows[i].gpus = counts[i];
        if (rt && i % (size_t)rt->size != (size_t)rt->rank)
            continue;
        status = search_all(&search, (size_t)threads, &a->rows[i].found, err);
        if (stopped && !rt)
            a->row_count = i + 1;
    }
    signal(SIGINT, SIG_DFL);
    if (rt && status)
        rt->abort(rt, err->what);
    if (rt)
        gather_rows(a, rt);
    if (stopped)
        fprintf(stderr, "knee: stopped; this is what was found so far\n");
    return status;
}

/* ---- The simulated step ---- */

struct simulation {
    struct knee_trace trace;
    struct knee_account account;
};

/* Of the plan that the answer speaks of first. */
static knee_status simulate(const struct plan_options *options, struct knee_plan_answer *a,
                            struct simulation *out, struct knee_err *err)
{
    if ((!options->simulate && !options->perfetto) || a->chosen == SIZE_MAX)
        return KNEE_OK;
    const struct knee_found *best = &a->rows[a->chosen].found.best[0];
    knee_status status =
        knee_simulate(&a->shape, &a->machine, &best->plan, NULL, &out->trace, &a->closed_s, err);
    if (!status)
        status = knee_account(&out->trace, 1, NULL, &out->account, err);
    if (status)
        return status;
    a->simulated = &out->account;
    a->simulated_s = 1e-9 * (double)out->trace.steps[0].end_ns;
    return options->perfetto ? cli_write_perfetto(options->perfetto, &out->account, err) : KNEE_OK;
}

static void print_answer(struct cli_run *run, const struct plan_options *options,
                         const struct knee_plan_answer *a)
{
    struct knee_style style = cli_style(run);
    if (options->ops)
        knee_write_ops(a, cli_format(run), &style, &run->text);
    else
        knee_write_plan(a, cli_format(run), &style, &run->text);
    if (run->common.html)
        knee_write_plan(a, KNEE_JSON, &style, &run->answer);
}

/* Searches, judges and prints. A budget or a deadline that cannot be met is a failed gate. */
static knee_status answer(struct cli_run *run, const struct plan_options *options,
                          struct knee_plan_answer *a, double *counts, struct knee_runtime *rt)
{
    a->row_count = list_counts(options, a, counts);
    if (a->row_count == 0 || a->row_count > COUNTS_MAX) {
        knee_fail(&run->err, KNEE_USAGE, "--gpus", "too many GPU counts");
        knee_hint(&run->err, "at most %d, for example 64..4096x2", COUNTS_MAX);
        return KNEE_USAGE;
    }
    a->rows = calloc(a->row_count, sizeof *a->rows);
    if (!a->rows)
        return knee_fail(&run->err, KNEE_SYSTEM, "", "out of memory");
    knee_status status = search_counts(options, a, counts, rt, &run->err);
    struct simulation simulation = {0};
    if (run->quiet) {
        free(a->rows);
        return status;
    }
    if (!status) {
        knee_plan_judge(a);
        status = simulate(options, a, &simulation, &run->err);
    }
    if (!status) {
        print_answer(run, options, a);
        bool asked = !isnan(a->question.budget) || !isnan(a->question.deadline_s);
        status = asked && a->chosen == SIZE_MAX ? KNEE_GATE : KNEE_OK;
    }
    knee_account_release(&simulation.account);
    knee_trace_release(&simulation.trace);
    free(a->rows);
    return status;
}

static knee_status plan_main(struct cli_run *run, int argc, char **argv)
{
    struct plan_options options = {0};
    struct knee_plan_answer *a = calloc(1, sizeof *a);
    double *counts = calloc(KNEE_ROWS_MAX, sizeof *counts);
    if (!a || !counts) {
        free(a);
        free(counts);
        return knee_fail(&run->err, KNEE_SYSTEM, "", "out of memory");
    }
    knee_keys_clear(&plan_keys, &options);
    knee_shape_init(&a->shape);
    knee_plan_init(&a->fixed);
    knee_platform_init(&a->platform);
    run->objects[0] = &options;
    run->objects[1] = &a->shape;
    run->objects[2] = &a->fixed;
    run->objects[3] = &a->platform;
    struct knee_runtime *rt = NULL;
    run->quiet = knee_runtime_rank() > 0;
    knee_status status = cli_parse(run, argc, argv);
    if (!status && !run->common.help)
        status = gather(&options, a, &run->err);
    if (!status && !run->common.help)
        status = cli_join(run, &rt);
    if (!status && !run->common.help)
        status = answer(run, &options, a, counts, rt);
    if (rt)
        rt->finish(rt);
    free(counts);
    free(a);
    return status;
}

const struct cli_command cli_plan = {
    .name = "plan",
    .operands = "",
    .summary = "the best way to spread a model over GPUs, and where to stop adding them",
    .about =
        "Searches all feasible plans (tensor, pipeline, context, expert and data parallelism,\n"
        "sharding, recomputation, schedules) at each GPU count and answers with the best few,\n"
        "why each stands where it does, what binds, memory per GPU, cost, the front of time\n"
        "against memory, and the count past which more GPUs are not worth it. A degree that\n"
        "is given is kept; the others are searched.",
    .examples =
        "  knee plan --model llama3-70b --gpu h100 --gpus 64\n"
        "  knee plan --model llama3-8b --gpu h100 --gpus 8..1024x2 --tokens 1T\n"
        "  knee plan --hf config.json --gpu a100 --tokens 2T --deadline 30d\n"
        "  knee plan --model qwen3-235b-a22b --gpu gb200 --gpus 256 --precision fp8 --ep 32\n",
    .keys = {&plan_keys, &knee_shape_keys, &knee_plan_keys, &knee_platform_keys},
    .main = plan_main,
};
