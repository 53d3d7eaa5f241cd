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
#include "judge/plan_counts.h"
#include "judge/run_verdict.h"
#include "knee_read.h"
#include "read/run/launch.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LARGEST_FILE   ((size_t)64 << 20)
#define USUAL_TOP      5
#define COUNTS_MAX     64
#define PIECES_AT_ONCE 64

struct plan_options {
    struct knee_workers gpus;
    double tokens, budget, deadline_s, tolerance, top, threads, memory_risk;
    const char *hf, *deepspeed, *megatron, *nemo, *torchtitan, *rates, *perfetto;
    int emit;      /* row of knee_launch_frameworks; -1: not asked */
    int framework; /* row of knee_framework_names; -1: any */
    bool ops, simulate, at_any_price, force;
    unsigned char source[KNEE_KEYS_MAX];
};

#define NUMBER(name, field, unit, low, high, absent, words)                                        \
    KNEE_NUMBER(struct plan_options, name, field, unit, low, high, "Question", absent, words)
#define WORD(key_name, field, words)                                                               \
    KNEE_OPTION(struct plan_options, key_name, KNEE_KEY_WORD, field, "Question", "none",           \
                KNEE_OFF_PAGE(words))

static const struct knee_key rows[] = {
    KNEE_OPTION(struct plan_options, "gpus", KNEE_KEY_WORKERS, gpus, "Question",
                "one node to 4096, doubling",
                "GPU counts: 64, a list 64,128, or a range 64..4096x2 (doubling)"),
    NUMBER("tokens", tokens, KNEE_UNIT_COUNT, 1, 1e18, "none",
           "tokens to train on: adds days and cost of the run"),
    NUMBER("budget", budget, KNEE_UNIT_DOLLARS, 0, 1e15, "none",
           "with --tokens: most dollars for the run; picks the fastest GPU count"),
    NUMBER("deadline", deadline_s, KNEE_UNIT_SECONDS, 0, 1e12, "none",
           "with --tokens: longest time for the run; picks the cheapest GPU count"),
    NUMBER("tolerance", tolerance, KNEE_UNIT_FRACTION, 0.01, 1, "0.8",
           "lowest efficiency still worth paying for"),
    NUMBER("top", top, KNEE_UNIT_COUNT, 1, KNEE_PLANS_MAX, "5", "number of plans to show"),
    NUMBER("threads", threads, KNEE_UNIT_COUNT, 1, ASK_THREADS_MAX, "one per core",
           "search threads"),
    KNEE_CHOICE(struct plan_options, "framework", framework, knee_framework_names, "Question",
                "any",
                "only plans this framework supports, timed as it runs them: megatron, torchtitan, "
                "fsdp, deepspeed, nemo or any"),
    WORD("hf", hf, "take the model from a Hugging Face config.json"),
    WORD("deepspeed", deepspeed, "take sharding and batch from a DeepSpeed configuration"),
    WORD("megatron", megatron, "take model and plan from a Megatron log or launch script"),
    WORD("nemo", nemo, "take model and plan from a NeMo (Megatron-Bridge) configuration"),
    WORD("torchtitan", torchtitan, "take the plan from a torchtitan configuration"),
    WORD("rates", rates, "YAML file with calibrated constants (knee validate --calibrate)"),
    NUMBER("memory-risk", memory_risk, KNEE_UNIT_FRACTION, 0, 0.5, "5%",
           "highest accepted risk of running out of memory"),
    KNEE_OPTION(struct plan_options, "force", KNEE_KEY_SWITCH, force, "Question", "",
                KNEE_OFF_PAGE("accept values that no real machine has")),
    KNEE_OPTION(
        struct plan_options, "at-any-price", KNEE_KEY_SWITCH, at_any_price, "Question", "",
        KNEE_OFF_PAGE("the fastest plan, even if it is unusual or nearly fills the memory")),
    KNEE_OPTION(struct plan_options, "simulate", KNEE_KEY_SWITCH, simulate, "Question", "",
                KNEE_OFF_PAGE("also simulate one step of the best plan, event by event")),
    WORD("perfetto", perfetto,
         "write the simulated step as a trace for ui.perfetto.dev or knee trace"),
    KNEE_OPTION(struct plan_options, "ops", KNEE_KEY_SWITCH, ops, "Question", "",
                KNEE_OFF_PAGE("print the operations of one layer under the best plan")),
    KNEE_CHOICE(struct plan_options, "emit", emit, knee_launch_frameworks, "Question", "none",
                KNEE_OFF_PAGE("print the best plan as launch flags or configuration for megatron, "
                              "deepspeed, torchtitan or nemo")),
};

static const struct knee_keys plan_keys = KNEE_KEY_TABLE(rows, struct plan_options);

struct plan_room {
    struct plan_options options;
    struct knee_plan_answer answer;
    struct knee_run_inputs run;
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
        status =
            knee_megatron_read((struct knee_named_text){file.data, file.length, options->megatron},
                               &a->shape, &a->fixed, NULL, err);
    knee_ask_done(&file);
#if !KNEE_JSON_ONLY /* the page does not offer it */
    if (!status && options->nemo && !(status = read_full(ask, options->nemo, &file, err)))
        status = knee_nemo_read(file.data, file.length, options->nemo, &a->shape, &a->fixed, err);
    knee_ask_done(&file);
#endif
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
    if (a->machine.basis == KNEE_BASIS_UNNAMED)
        a->assumed = knee_framework_priced_as(knee_profiles[a->platform.profile].name);
    a->memory_risk =
        options->at_any_price
            ? 0
            : fmin(0.5, fmax(1e-6, isnan(options->memory_risk) ? KNEE_MEMORY_RISK
                                                               : options->memory_risk));
    a->oddity = options->at_any_price ? 0 : knee_bands[0].pair;
    a->question = (struct knee_plan_question){
        .tokens = options->tokens,
        .budget = options->budget,
        .deadline_s = options->deadline_s,
        .tolerance = isnan(options->tolerance) ? 0.8 : options->tolerance,
    };
    if ((!isnan(options->budget) || !isnan(options->deadline_s)) && isnan(options->tokens))
        return knee_fail_hint(err, KNEE_USAGE, "", "add --tokens, for example 1T",
                              "--budget and --deadline need the number of tokens");
    if (!isnan(options->budget) && isnan(a->machine.price_per_hour))
        return knee_fail_hint(err, KNEE_USAGE, "", "add --price, dollars per GPU-hour",
                              "there is no price for this GPU");
    if ((status = knee_batch_settle(&knee_plan_keys, &a->fixed, a->shape.seq, err)))
        return status;
    if (isnan(a->fixed.global_batch))
        a->fixed.global_batch = knee_batch_usual_of(&a->shape);
    return KNEE_OK;
}

/* ---- The search ---- */

/* A few pieces at a time, so that the caller can watch and stop. */
static void search_alone(struct knee_counts_search *s, const struct knee_search *search,
                         struct knee_search_result *out)
{
    struct knee_ask_question *q = s->ctx;
    size_t pieces = knee_search_pieces(search);
    double each = 1 / (double)s->answer->row_count;
    knee_search_result_init(out);
    for (size_t from = 0; from < pieces && !s->stopped; from += PIECES_AT_ONCE) {
        knee_search_run(search, from, from + PIECES_AT_ONCE, out);
        double share = fmin(1, (double)(from + PIECES_AT_ONCE) / (double)pieces);
        s->stopped = !knee_ask_progress(q->ask, fmin(1, s->done + each * share));
    }
}

static knee_status search_once(struct knee_counts_search *s, const struct knee_search *search,
                               struct knee_search_result *out, struct knee_err *err)
{
    const struct knee_ask_work *work = ((struct knee_ask_question *)s->ctx)->work;
    if (!work || !work->search) {
        search_alone(s, search, out);
        return KNEE_OK;
    }
    knee_status status = work->search(work->ctx, search, out, err);
    s->stopped = work->stopped && work->stopped(work->ctx);
    return status;
}

static knee_status search(struct knee_ask_question *q, struct plan_room *all, struct knee_err *err)
{
    const struct knee_ask_work *work = q->work;
    struct knee_plan_answer *a = &all->answer;
    struct knee_counts_search s = {.answer = a,
                                   .framework = a->framework,
                                   .alloc = knee_ask_alloc(q->ask),
                                   .search = search_once,
                                   .ctx = q,
                                   .parts = 1};
    s.top = isnan(all->options.top) ? USUAL_TOP : (size_t)all->options.top;
    s.compared = all->options.emit < 0 || a->row_count > 1; /* one plan's words need no E(K) */
    knee_status status = KNEE_OK;
    if (work && work->join)
        status = work->join(work->ctx, &s.part, &s.parts, err);
    if (status)
        return status;
    status = knee_plan_search_counts(&s, err);
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
    struct knee_counts_search s = {
        .answer = a, .alloc = knee_ask_alloc(q->ask), .search = search_once, .ctx = q, .parts = 1};
    if (!a->framework || a->chosen == SIZE_MAX || all->stopped || all->options.emit >= 0)
        return KNEE_OK;
    return knee_plan_search_free(&s, err);
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
    knee_status status =
        knee_simulate(&a->shape, &a->machine, &best->plan, knee_ask_alloc(ask), &all->trace, err);
    if (!status)
        status = knee_account(&all->trace, 1, knee_ask_alloc(ask), &all->account, err);
    if (status)
        return status;
    a->closed_s = knee_plan_simulated_s(&best->cost);
    a->simulated = &all->account;
    a->simulated_s = 1e-9 * (double)all->trace.steps[0].end_ns;
    return options->perfetto ? knee_ask_perfetto(ask, options->perfetto, &all->account, err)
                             : KNEE_OK;
}

/* ---- The answer ---- */

/* What a framework takes, as text or in JSON. */
static knee_status write_launch(struct knee_ask_question *q, const struct plan_room *all,
                                struct knee_ask_out *out, struct knee_err *err)
{
    const struct knee_plan_row *row = knee_plan_shown(&all->answer);
    struct knee_text words = {.alloc = knee_ask_alloc(q->ask)};
    if (!row)
        return knee_fail(err, KNEE_GATE, "--emit", "no plan fits into the memory of these GPUs");
    knee_status status =
        knee_launch_write(&all->answer, &row->found.best[0].plan, all->options.emit, &words, err);
    if (!status && ASK_FORMAT(*out) == KNEE_JSON) {
        struct knee_launch_result result = {knee_launch_frameworks.name((size_t)all->options.emit),
                                            words.data};
        knee_answer_write(&knee_launch_answer, &result, KNEE_JSON, &q->style, out->text);
    } else if (!status) {
        const char *fence = ASK_FORMAT(*out) == KNEE_MARKDOWN ? "```\n" : "";
        knee_text_printf(out->text, "%s%s%s", fence, words.data ? words.data : "", fence);
    }
    out->text->failed = out->text->failed || words.failed;
    knee_text_release(&words);
    return status;
}

#if !KNEE_JSON_ONLY /* the page lists no operations */
static knee_status write_ops(struct knee_ask_question *q, struct knee_plan_answer *a,
                             struct knee_ask_out *out, struct knee_err *err)
{
    const struct knee_alloc *alloc = knee_ask_alloc(q->ask);
    struct knee_layer_operation *room =
        knee_resize(alloc, NULL, KNEE_LAYER_OPERATIONS_MAX * sizeof *room);
    if (!room)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    knee_plan_operations(a, room);
    knee_answer_write(&knee_ops_answer, a, ASK_FORMAT(*out), &q->style, out->text);
    a->ops = NULL;
    knee_resize(alloc, room, 0);
    return KNEE_OK;
}
#endif

static knee_status write_answer(struct knee_ask_question *q, struct plan_room *all,
                                struct knee_err *err)
{
    struct knee_ask_out *out = &q->outs[0];
    knee_status status = KNEE_OK;
    if (all->options.emit >= 0) {
        status = write_launch(q, all, out, err);
        out++;
    }
#if !KNEE_JSON_ONLY
    else if (all->options.ops) {
        status = write_ops(q, &all->answer, out, err);
        out++;
    }
#endif
    for (; out < q->outs + 2 && out->text; out++)
        knee_answer_write(&knee_plan_answer_type, &all->answer, ASK_FORMAT(*out), &q->style,
                          out->text);
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
    knee_plan_details(a);
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
            status = knee_fail(err, KNEE_GATE, "", "%s",
                               a->rows[a->row_count - 1].found.nearest_valid
                                   ? "no plan fits into the memory of these GPUs"
                                   : "no plan exists with these degrees, GPUs and batch");
    }
    knee_account_release(&all->account);
    knee_trace_release(&all->trace);
    return status;
}

/* With tokens, or with anything said of failures, plans are priced as runs. */
static knee_status ask_run(struct knee_ask_question *q, struct plan_room *all, struct knee_err *err)
{
    struct knee_plan_answer *a = &all->answer;
    if (!knee_run_asked(&all->run, all->options.tokens))
        return KNEE_OK;
    knee_run_complete(&all->run);
    a->run = &all->run;
    a->runs = knee_zeroed(knee_ask_alloc(q->ask), a->row_count * sizeof *a->runs);
    if (!a->runs)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    return knee_plan_run_check(a, err);
}

#define USUAL_TOKENS 4194304.0 /* as of a model whose batch is not published */

/* The largest count: a sweep may begin where a step takes long. */
static knee_status check(const struct knee_plan_answer *a, struct knee_err *err)
{
    const struct knee_plan_row *last = &a->rows[a->row_count - 1];
    struct knee_claim claim = {.step_s = NAN, .tokens = NAN};
    claim.bytes_per_s = a->platform.hw.bandwidth_bytes_per_s;
    if (last->found.count) {
        const struct knee_found *best = &last->found.best[0];
        claim.tokens = best->plan.global_batch * a->shape.seq;
        claim.step_s = best->cost.step_s;
        if (a->fixed.source[knee_keys_find(&knee_plan_keys, "global-batch")] == KNEE_UNSET)
            claim.step_s *= fmin(1, USUAL_TOKENS / claim.tokens); /* a model's own batch */
    }
    return knee_claim_check(&claim, err);
}

static knee_status answer(struct knee_ask_question *q, struct knee_err *err)
{
    struct plan_room *all = (struct plan_room *)q->objects[0];
    struct knee_plan_answer *a = &all->answer;
    knee_status status = gather(q->ask, &all->options, a, err);
    if (status)
        return status;
    a->row_count = list_counts(&all->options, a, all->counts);
    a->counts_assumed = all->options.gpus.ranges == 0 && a->row_count > 1;
    if (a->row_count == 0 || a->row_count > COUNTS_MAX) {
        knee_fail(err, KNEE_USAGE, "--gpus", "too many GPU counts");
        knee_hint(err, "at most %d, for example 64..4096x2", COUNTS_MAX);
        return KNEE_USAGE;
    }
    size_t size = a->row_count * sizeof *a->rows;
    a->rows = knee_zeroed(knee_ask_alloc(q->ask), size);
    if (!a->rows)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    for (size_t i = 0; i < a->row_count; i++)
        a->rows[i].gpus = all->counts[i];
    status = ask_run(q, all, err);
    if (!status)
        status = search(q, all, err);
    if (!status && !all->options.force)
        status = check(a, err);
    if (!status && !knee_ask_silent(q))
        status = conclude(q, all, err);
    knee_resize(knee_ask_alloc(q->ask), a->runs, 0);
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
    knee_run_init(&all->run);
    objects[4] = &all->run;
}

const struct knee_ask_command knee_ask_plan = {
    .name = "plan",
    .keys = {&plan_keys, &knee_shape_keys, &knee_plan_keys, &knee_platform_keys, &knee_run_keys},
    .operands = "",
    .size = sizeof(struct plan_room),
    .init = init,
    .answer = answer,
};

double knee_ask_plan_threads(const void *options)
{
    return ((const struct plan_options *)options)->threads;
}
