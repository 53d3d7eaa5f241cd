/* SPDX-License-Identifier: MIT */
/*
 * plan: the best plans for a model on a machine. The inputs are gathered from keys and imported
 * files, the space of plans at each GPU count is searched, and the answer is judged and written.
 */
#include "ask/ask.h"
#include "base/keys.h"
#include "base/text.h"
#include "job/batch.h"
#include "job/framework.h"
#include "job/profile.h"
#include "knee_read.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LARGEST_FILE   ((size_t)64 << 20)
#define USUAL_TOP      5
#define COUNTS_MAX     64
#define PIECES_AT_ONCE 64
#define SMALLEST_MOST  65536

struct plan_options {
    struct knee_workers gpus;
    double tokens, budget, deadline_s, tolerance, top, threads;
    const char *hf, *deepspeed, *megatron, *nemo, *torchtitan, *rates, *perfetto;
    int emit;      /* row of knee_launch_frameworks; -1: not asked */
    int framework; /* row of knee_framework_names; -1: any */
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
    NUMBER("threads", threads, KNEE_UNIT_COUNT, 1, ASK_THREADS_MAX, "one per core",
           "threads that search"),
    KNEE_CHOICE(struct plan_options, "framework", framework, knee_framework_names, "Question",
                "any",
                "only plans that it can run, priced as its software: megatron, torchtitan, fsdp, "
                "deepspeed, nemo, any"),
    WORD("hf", hf, "Hugging Face config.json with the model's shape"),
    WORD("deepspeed", deepspeed, "DeepSpeed configuration with parts of the plan"),
    WORD("megatron", megatron, "Megatron log or launch script with shape and plan"),
    WORD("nemo", nemo, "NeMo (Megatron-Bridge) configuration with shape and plan"),
    WORD("torchtitan", torchtitan, "torchtitan configuration with parts of the plan"),
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
    KNEE_CHOICE(struct plan_options, "emit", emit, knee_launch_frameworks, "Question", "none",
                "the best plan as what this framework takes, instead: megatron, deepspeed, "
                "torchtitan, nemo"),
};

static const struct knee_keys plan_keys = KNEE_KEY_TABLE(rows, struct plan_options);

struct plan_room {
    struct plan_options options;
    struct knee_plan_answer answer;
    double counts[KNEE_ROWS_MAX];
    struct knee_trace trace; /* the simulated step */
    struct knee_account account;
    bool stopped; /* the search, before its end */
};

/* ---- Gathering ---- */

static knee_status read_full(struct knee_ask *ask, const char *name, struct knee_ask_bytes *out,
                             struct knee_err *err)
{
    knee_status status = knee_ask_read(ask, name, LARGEST_FILE, out, err);
    if (!status && !out->length)
        status = knee_fail(err, KNEE_INPUT, name, "the file is empty");
    return status;
}

static knee_status import_files(struct knee_ask *ask, const struct plan_options *options,
                                struct knee_plan_answer *a, struct knee_err *err)
{
    struct knee_ask_bytes file = {0};
    knee_status status = KNEE_OK;
    if (options->hf && !(status = read_full(ask, options->hf, &file, err)))
        status = knee_hf_read(file.data, file.length, options->hf, &a->shape, err);
    knee_ask_done(&file);
    if (!status && options->megatron && !(status = read_full(ask, options->megatron, &file, err)))
        status = knee_megatron_read(file.data, file.length, options->megatron, &a->shape, &a->fixed,
                                    NULL, err);
    knee_ask_done(&file);
    if (!status && options->nemo && !(status = read_full(ask, options->nemo, &file, err)))
        status = knee_nemo_read(file.data, file.length, options->nemo, &a->shape, &a->fixed, err);
    knee_ask_done(&file);
    if (!status && options->deepspeed && !(status = read_full(ask, options->deepspeed, &file, err)))
        status = knee_deepspeed_read(file.data, file.length, options->deepspeed, &a->fixed, err);
    knee_ask_done(&file);
    return status;
}

static knee_status import_torchtitan(struct knee_ask *ask, const char *name,
                                     struct knee_plan_answer *a, struct knee_err *err)
{
    struct knee_ask_bytes file = {0};
    knee_status status = read_full(ask, name, &file, err);
    if (!status)
        status =
            knee_torchtitan_read(file.data, file.length, name, a->shape.layers, &a->fixed, err);
    knee_ask_done(&file);
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

/* The software that is not named is the framework's; what is asked for must be something it has. */
static knee_status take_framework(const struct plan_options *options, struct knee_plan_answer *a,
                                  struct knee_err *err)
{
    struct knee_obstacle obstacle;
    a->framework = knee_framework_at(options->framework);
    int rule = knee_framework_breaks(a->framework, &a->fixed, &a->shape);
    if (rule >= 0) {
        knee_framework_says(a->framework, rule, &obstacle);
        knee_fail(err, KNEE_USAGE, "--framework", "%s does not have %s",
                  knee_framework_word(a->framework), obstacle.what);
        knee_hint(err, "ask with %s", obstacle.instead);
        return KNEE_USAGE;
    }
    if (a->framework && a->platform.profile < 0) {
        a->platform.profile = knee_profile_row(knee_framework_profile(a->framework));
        a->platform.source[knee_keys_find(&knee_platform_keys, "profile")] = KNEE_DERIVED;
    }
    return KNEE_OK;
}

static knee_status gather(struct knee_ask *ask, const struct plan_options *options,
                          struct knee_plan_answer *a, struct knee_err *err)
{
    struct knee_rates rates;
    knee_status status = import_files(ask, options, a, err);
    if (!status)
        status = knee_shape_complete(&a->shape, err);
    if (!status && options->torchtitan) /* which says layers per stage, not how many there are */
        status = import_torchtitan(ask, options->torchtitan, a, err);
    if (!status)
        status = take_framework(options, a, err);
    if (!status)
        status = knee_ask_read_rates(ask, options->rates, &rates, err);
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
    if ((status = knee_batch_settle(&knee_plan_keys, &a->fixed, a->shape.seq, err)))
        return status;
    if (isnan(a->fixed.global_batch))
        a->fixed.global_batch = knee_batch_usual(a->shape.seq);
    return KNEE_OK;
}

/* ---- The search ---- */

/* Who shares the search: counts i with i % parts == part are this process's. */
struct searching {
    struct knee_ask_question *q;
    struct knee_plan_answer *answer;
    const struct knee_framework *framework;
    size_t top, part, parts;
    double done; /* of all counts, for who watches */
    bool stopped;
};

/* A few pieces at a time, so that the caller can watch and stop. */
static void search_alone(struct searching *s, const struct knee_search *search,
                         struct knee_search_result *out)
{
    size_t pieces = knee_search_pieces(search);
    double each = 1 / (double)s->answer->row_count;
    knee_search_result_init(out);
    for (size_t from = 0; from < pieces && !s->stopped; from += PIECES_AT_ONCE) {
        knee_search_run(search, from, from + PIECES_AT_ONCE, out);
        double share = fmin(1, (double)(from + PIECES_AT_ONCE) / (double)pieces);
        s->stopped = !knee_ask_progress(s->q->ask, fmin(1, s->done + each * share));
    }
}

/* The best `top` plans that keep what is fixed. */
static knee_status search_plans(struct searching *s, const struct knee_plan *fixed, size_t top,
                                struct knee_search_result *out, struct knee_err *err)
{
    const struct knee_ask_work *work = s->q->work;
    struct knee_search search = {.shape = &s->answer->shape,
                                 .machine = &s->answer->machine,
                                 .fixed = fixed,
                                 .framework = s->framework,
                                 .top = top};
    if (!work || !work->search) {
        search_alone(s, &search, out);
        return KNEE_OK;
    }
    knee_status status = work->search(work->ctx, &search, out, err);
    s->stopped = work->stopped && work->stopped(work->ctx);
    return status;
}

/* What E(K) is against: the first of a fixed list of counts at which a plan fits, with the
 * optimizer on the GPU unless it was said otherwise: what only just fits is no measure of anything.
 */
static knee_status find_baseline(struct searching *s, struct knee_err *err)
{
    const struct knee_alloc *alloc = knee_ask_alloc(s->q->ask);
    struct knee_plan_answer *a = s->answer;
    struct knee_search_result *found = knee_resize(alloc, NULL, sizeof *found);
    knee_status status = KNEE_OK;
    struct knee_plan fixed = a->fixed;
    if (!found)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    a->baseline_gpus = a->baseline_tokens_per_s = NAN;
    if (fixed.offload < 0)
        fixed.offload = KNEE_ON_GPU;
    for (size_t i = 0; !status && !s->stopped && isnan(a->baseline_gpus); i++) {
        fixed.gpus = knee_plan_baseline_at(&a->machine, i);
        if (fixed.gpus == 0)
            break;
        status = search_plans(s, &fixed, 1, found, err);
        if (status || found->count == 0)
            continue;
        a->baseline_gpus = fixed.gpus;
        a->baseline_tokens_per_s = found->best[0].cost.tokens_per_s;
    }
    knee_resize(alloc, found, 0);
    return status;
}

/* Fewer GPUs than there are, in round numbers down to half of them, where that gives more: not
 * every count divides heads, layers and batch. */
static knee_status try_fewer(struct searching *s, struct knee_plan_row *row,
                             struct knee_search_result *other, struct knee_err *err)
{
    knee_status status = KNEE_OK;
    struct knee_plan fixed = s->answer->fixed;
    if (exp2(floor(log2(row->gpus))) == row->gpus)
        return KNEE_OK; /* a power of two divides best */
    for (size_t i = 0; !status && !s->stopped; i++) {
        fixed.gpus = knee_plan_round_count(i);
        if (fixed.gpus >= row->gpus)
            break;
        if (fixed.gpus < row->gpus / 2)
            continue;
        status = search_plans(s, &fixed, s->top, other, err);
        if (!status && knee_plan_quicker(other, &row->found))
            row->found = *other;
    }
    return status;
}

/* The first round count that something fits on. */
static knee_status find_smallest(struct searching *s, struct knee_search_result *found,
                                 struct knee_err *err)
{
    struct knee_plan_answer *a = s->answer;
    struct knee_plan fixed = a->fixed;
    knee_status status = KNEE_OK;
    for (size_t i = 0; !status && !s->stopped && isnan(a->smallest_gpus); i++) {
        fixed.gpus = knee_plan_round_count(i);
        if (fixed.gpus > SMALLEST_MOST)
            break;
        status = search_plans(s, &fixed, 1, found, err);
        if (!status && found->count)
            a->smallest_gpus = fixed.gpus;
    }
    return status;
}

static knee_status search_counts(struct searching *s, struct knee_err *err)
{
    struct knee_plan_answer *a = s->answer;
    const struct plan_options *options = s->q->objects[0];
    bool compared = options->emit < 0 || a->row_count > 1; /* one plan's words need no E(K) */
    const struct knee_alloc *alloc = knee_ask_alloc(s->q->ask);
    struct knee_search_result *other = knee_resize(alloc, NULL, sizeof *other);
    if (!other)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    knee_status status = compared ? find_baseline(s, err) : KNEE_OK;
    double each = 1 / (double)a->row_count;
    for (size_t i = s->part; i < a->row_count && !status; i += s->parts) {
        s->done = each * (double)i;
        struct knee_plan fixed = a->fixed;
        fixed.gpus = a->rows[i].gpus;
        status = search_plans(s, &fixed, s->top, &a->rows[i].found, err);
        if (!status)
            status = try_fewer(s, &a->rows[i], other, err);
        if (s->stopped && s->parts == 1)
            a->row_count = i + 1;
    }
    a->smallest_gpus = NAN;
    if (!status && compared)
        status = find_smallest(s, other, err);
    knee_resize(alloc, other, 0);
    return status;
}

static knee_status search(struct knee_ask_question *q, struct plan_room *all, struct knee_err *err)
{
    const struct knee_ask_work *work = q->work;
    struct knee_plan_answer *a = &all->answer;
    struct searching s = {.q = q, .answer = a, .framework = a->framework, .parts = 1};
    s.top = isnan(all->options.top) ? USUAL_TOP : (size_t)all->options.top;
    for (size_t i = 0; i < a->row_count; i++)
        a->rows[i].gpus = all->counts[i];
    knee_status status = KNEE_OK;
    if (work && work->join)
        status = work->join(work->ctx, &s.part, &s.parts, err);
    if (status)
        return status;
    status = search_counts(&s, err);
    all->stopped = s.stopped;
    if (work && work->merge_rows)
        work->merge_rows(work->ctx, a, status, err);
    return status;
}

/* The best plan of any framework where one was named, so that it can be said what that costs. */
static knee_status search_free(struct knee_ask_question *q, struct plan_room *all,
                               struct knee_err *err)
{
    struct knee_plan_answer *a = &all->answer;
    const struct knee_alloc *alloc = knee_ask_alloc(q->ask);
    if (!a->framework || a->chosen == SIZE_MAX || all->stopped || all->options.emit >= 0)
        return KNEE_OK;
    struct knee_search_result *found = knee_resize(alloc, NULL, sizeof *found);
    if (!found)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    struct searching s = {.q = q, .answer = a, .parts = 1};
    struct knee_plan fixed = a->fixed;
    fixed.gpus = a->rows[a->chosen].gpus;
    knee_status status = search_plans(&s, &fixed, 1, found, err);
    if (!status && found->count && !s.stopped) {
        a->free = found->best[0];
        a->free_known = true;
    }
    knee_resize(alloc, found, 0);
    return status;
}

/* ---- The simulated step ---- */

/* Of the plan that the answer speaks of first. */
static knee_status simulate(struct knee_ask *ask, struct plan_room *all, struct knee_err *err)
{
    struct knee_plan_answer *a = &all->answer;
    const struct plan_options *options = &all->options;
    if ((!options->simulate && !options->perfetto) || a->chosen == SIZE_MAX)
        return KNEE_OK;
    const struct knee_found *best = &a->rows[a->chosen].found.best[0];
    knee_status status = knee_simulate(&a->shape, &a->machine, &best->plan, knee_ask_alloc(ask),
                                       &all->trace, &a->closed_s, err);
    if (!status)
        status = knee_account(&all->trace, 1, knee_ask_alloc(ask), &all->account, err);
    if (status)
        return status;
    a->simulated = &all->account;
    a->simulated_s = 1e-9 * (double)all->trace.steps[0].end_ns;
    return options->perfetto ? knee_ask_perfetto(ask, options->perfetto, &all->account, err)
                             : KNEE_OK;
}

/* ---- The answer ---- */

static knee_status write_answer(struct knee_ask_question *q, const struct plan_room *all,
                                struct knee_err *err)
{
    struct knee_ask_out *out = &q->outs[0];
    knee_status status = KNEE_OK;
    if (all->options.emit >= 0) {
        status =
            knee_write_launch(&all->answer, all->options.emit, ASK_FORMAT(*out), out->text, err);
        out++;
    } else if (all->options.ops) {
        knee_write_ops(&all->answer, ASK_FORMAT(*out), &q->style, out->text);
        out++;
    }
    for (; out < q->outs + 2 && out->text; out++)
        knee_write_plan(&all->answer, ASK_FORMAT(*out), &q->style, out->text);
    return status;
}

static bool some_fits(const struct knee_plan_answer *a)
{
    bool fits = false;
    for (size_t i = 0; i < a->row_count; i++)
        fits = fits || a->rows[i].fits;
    return fits;
}

/* Judges and writes. A budget or a deadline that cannot be met is a failed gate, as is a model that
 * fits nowhere. */
static knee_status conclude(struct knee_ask_question *q, struct plan_room *all,
                            struct knee_err *err)
{
    struct knee_plan_answer *a = &all->answer;
    knee_plan_judge(a);
    knee_status status = search_free(q, all, err);
    if (!status)
        status = simulate(q->ask, all, err);
    if (!status)
        status = write_answer(q, all, err);
    if (!status) {
        bool asked = !isnan(a->question.budget) || !isnan(a->question.deadline_s);
        if (asked && a->chosen == SIZE_MAX)
            status =
                knee_fail(err, KNEE_GATE, isnan(a->question.budget) ? "--deadline" : "--budget",
                          "no GPU count that was tried meets it");
        else if (!some_fits(a) && !all->stopped)
            status = knee_fail(err, KNEE_GATE, "", "no plan fits into the memory of these GPUs");
    }
    knee_account_release(&all->account);
    knee_trace_release(&all->trace);
    return status;
}

static knee_status answer(struct knee_ask_question *q, struct knee_err *err)
{
    struct plan_room *all = (struct plan_room *)q->objects[0];
    struct knee_plan_answer *a = &all->answer;
    knee_status status = gather(q->ask, &all->options, a, err);
    if (status)
        return status;
    a->row_count = list_counts(&all->options, a, all->counts);
    if (a->row_count == 0 || a->row_count > COUNTS_MAX) {
        knee_fail(err, KNEE_USAGE, "--gpus", "too many GPU counts");
        knee_hint(err, "at most %d, for example 64..4096x2", COUNTS_MAX);
        return KNEE_USAGE;
    }
    size_t size = a->row_count * sizeof *a->rows;
    a->rows = knee_resize(knee_ask_alloc(q->ask), NULL, size);
    if (!a->rows)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    memset(a->rows, 0, size);
    status = search(q, all, err);
    if (!status && !knee_ask_silent(q))
        status = conclude(q, all, err);
    knee_resize(knee_ask_alloc(q->ask), a->rows, 0);
    return status;
}

static void init(void *room, void **objects)
{
    struct plan_room *all = room; /* whose first member the first object is */
    knee_keys_clear(&plan_keys, &all->options);
    knee_shape_init(&all->answer.shape);
    knee_plan_init(&all->answer.fixed);
    knee_platform_init(&all->answer.platform);
    objects[0] = &all->options;
    objects[1] = &all->answer.shape;
    objects[2] = &all->answer.fixed;
    objects[3] = &all->answer.platform;
}

const struct knee_ask_command knee_ask_plan = {
    .name = "plan",
    .keys = {&plan_keys, &knee_shape_keys, &knee_plan_keys, &knee_platform_keys},
    .operands = "",
    .size = sizeof(struct plan_room),
    .init = init,
    .answer = answer,
};

double knee_ask_plan_threads(const void *options)
{
    return ((const struct plan_options *)options)->threads;
}
