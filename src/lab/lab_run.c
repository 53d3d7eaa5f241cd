/* SPDX-License-Identifier: MIT */
/* One training run: sets a rank up, drives its steps, and puts the ranks' figures together. */
#include "base/error.h"
#include "base/order.h"
#include "lab/lab_sync.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void lab_outcome_release(struct lab_outcome *outcome)
{
    free(outcome->timeline);
    free(outcome->params);
    free(outcome->steps);
    outcome->timeline = NULL;
    outcome->params = NULL;
    outcome->steps = NULL;
}

void lab_outcome_take(struct lab_outcome *outcome, double *loss, float **params)
{
    *loss = outcome->loss;
    if (params) {
        *params = outcome->params;
        outcome->params = NULL;
    }
    lab_outcome_release(outcome);
}

/* ---- What the device does ---- */

static size_t micro_from(const struct lab_worker *w, size_t micro)
{
    return w->batch->count * micro / w->setup->accumulate;
}

/* Points the net at the examples of a micro-step; before the first one the gradients are cleared.
 */
static void begin_micro(struct lab_worker *w, size_t micro)
{
    size_t from = micro_from(w, micro);
    w->net.tokens = w->batch->tokens + from * w->net.context;
    w->net.targets = w->batch->targets + from * lab_net_guesses(&w->net);
    w->net.batch = micro_from(w, micro + 1) - from;
    if (micro == 0) {
        memset(w->grads, 0, w->layout.param_count * sizeof *w->grads);
        w->step_loss = 0;
    }
}

static void forward(struct lab_worker *w, size_t part)
{
    lab_net_forward(&w->net, part);
}

static void turn_round(struct lab_worker *w, size_t argument)
{
    (void)argument;
    w->step_loss += w->net.loss;
    lab_net_begin_backward(&w->net);
}

static void backward(struct lab_worker *w, size_t part)
{
    lab_net_backward(&w->net, part);
}

static void post_gradients(struct lab_worker *w, size_t bucket)
{
    w->ready_ns[bucket] += w->compute_ns - w->step_compute_ns;
    lab_post(w, (struct lab_post){bucket, w->grads, w->running});
}

/* ---- What the host hands over ---- */

/* A third of the arithmetic is forward, two thirds are backward. */
static void launch_part(struct lab_worker *w, size_t part, bool is_backward, double micro_s)
{
    const struct lab_setup *s = w->setup;
    double share = (is_backward ? 2.0 : 1.0) / 3 / (double)w->layout.part_count;
    lab_launch(w,
               (struct lab_op){
                   .run = is_backward ? backward : forward,
                   .argument = part,
                   .name = s->synthetic  ? is_backward ? "synthetic_backward" : "synthetic_forward"
                           : is_backward ? w->backward_names[part]
                                         : w->net.nodes[part].layer->name,
                   .synthetic_s = s->synthetic ? fmax(1e-9, share * micro_s) : 0,
               });
}

static void launch_posts(struct lab_worker *w, size_t part)
{
    for (size_t b = 0; b < w->layout.bucket_count; b++)
        if (w->layout.bucket_part[b] == part) {
            lab_launch(w, (struct lab_op){.run = post_gradients, .argument = b, .posts = true});
            w->posted++;
        }
}

static void launch_micro(struct lab_worker *w, size_t micro, double micro_s)
{
    const struct lab_setup *s = w->setup;
    size_t parts = w->layout.part_count;
    bool sums = lab_strategy_of(s)->every_step && micro + 1 == s->accumulate;
    if (!s->synthetic)
        lab_launch(w, (struct lab_op){.run = begin_micro, .argument = micro});
    for (size_t part = 0; part < parts; part++)
        launch_part(w, part, false, micro_s);
    if (!s->synthetic)
        lab_launch(w, (struct lab_op){.run = turn_round});
    for (size_t part = parts; part-- > 0;) {
        launch_part(w, part, true, micro_s);
        if (sums && s->overlap)
            launch_posts(w, part);
    }
    for (size_t part = parts; sums && !s->overlap && part-- > 0;)
        launch_posts(w, part);
}

static bool run_step(struct lab_worker *w, size_t step, double share)
{
    const struct lab_setup *s = w->setup;
    int64_t start = lab_now_ns();
    w->step_compute_ns = w->compute_ns;
    w->batch = lab_loader_take(&w->loader);
    int64_t loaded = lab_now_ns();
    /* The first batch is waited for while the loader starts: that happens before the recording, as
     * a profiler's warm-up does, and does not count as part of a step. */
    bool first = step == 0;
    if (!first)
        lab_record_load(&w->record, start, loaded);
    if (!w->batch)
        return false;
    if (w->group.rank == s->late_rank && s->late_s > 0)
        lab_sleep_until(lab_now_ns() + (int64_t)(1e9 * s->late_s));
    for (size_t micro = 0; micro < s->accumulate; micro++)
        launch_micro(w, micro, s->compute_s * share / (double)s->accumulate);
    lab_sync_step(w, step);
    bool good = lab_drain(w);
    lab_record_step(&w->record, step, first ? loaded : start, lab_now_ns());
    return good;
}

/* ---- Setting up ---- */

static const char *const backward_words[][2] = {
    {"embed", "embed_backward"}, {"norm", "norm_backward"},           {"linear", "linear_backward"},
    {"gelu", "gelu_backward"},   {"attention", "attention_backward"}, {"sum", "sum_backward"},
    {"loss", "loss_backward"},
};

static void name_backwards(struct lab_worker *w)
{
    for (size_t i = 0; i < w->net.node_count; i++)
        for (size_t j = 0; j < sizeof backward_words / sizeof *backward_words; j++)
            if (strcmp(w->net.nodes[i].layer->name, backward_words[j][0]) == 0)
                w->backward_names[i] = backward_words[j][1];
}

static size_t global_batch(const struct lab_setup *s, int workers)
{
    return s->weak ? s->batch * (size_t)workers : s->batch;
}

static bool set_up_values(struct lab_worker *w, size_t local)
{
    const struct lab_setup *s = w->setup;
    size_t micro = local / s->accumulate + 1;
    if (s->synthetic) {
        w->params = knee_arena_take(&w->memory, s->params + 1, sizeof *w->params);
        w->grads = knee_arena_take(&w->memory, s->params + 1, sizeof *w->grads);
        return !w->memory.failed && lab_layout_init(&w->layout, s, NULL, w->group.size);
    }
    if (!lab_net_init(&w->net, &s->shape, micro) ||
        !lab_layout_init(&w->layout, s, &w->net, w->group.size) ||
        !lab_optimizer_init(&w->optimizer, s->optimizer, w->net.param_count))
        return false;
    lab_net_start(&w->net, s->seed);
    name_backwards(w);
    w->params = w->net.params;
    w->grads = w->net.grads;
    w->optimizer.rate = isnan(s->rate) ? lab_optimizer_usual_rate(s->optimizer) : s->rate;
    w->optimizer.warmup = s->warmup;
    w->optimizer.constant = s->constant_rate;
    w->optimizer.steps = s->steps;
    return true;
}

static bool set_up_loader(struct lab_worker *w, size_t first, size_t count, size_t all)
{
    const struct lab_setup *s = w->setup;
    struct lab_loader_plan plan = {
        .fd = s->text_fd,
        .text_bytes = s->text_bytes,
        .context = s->shape.context,
        .guesses = s->shape.mlp ? 1 : s->shape.context,
        .global_batch = all,
        .first = first,
        .count = count,
        .threads = s->loader_threads,
        .depth = 2 * s->loader_threads,
        .decode_s = s->decode_s,
        .seed = s->seed,
    };
    return lab_loader_start(&w->loader, &plan);
}

static knee_status set_up(struct lab_worker *w, struct knee_err *err)
{
    const struct lab_setup *s = w->setup;
    size_t all = global_batch(s, w->group.size), size = (size_t)w->group.size;
    size_t first = all * (size_t)w->group.rank / size;
    size_t count = all * ((size_t)w->group.rank + 1) / size - first;
    knee_status status = KNEE_OK;
    if (!set_up_values(w, count) || !lab_sync_init(w))
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the model");
    if (!set_up_loader(w, first, count, all))
        return knee_fail(err, KNEE_SYSTEM, "", "the loader's threads cannot be started");
    /* Workers that train alone average over their own examples. */
    bool alone = !lab_strategy_of(s)->every_step;
    if (!s->synthetic)
        w->net.count = (double)(alone ? count : all) * (double)lab_net_guesses(&w->net);
    w->share = s->weak ? 1 : (double)count / (double)all;
    if (s->record || s->keep_timeline) {
        char file[PATH_MAX];
        size_t length = (size_t)snprintf(file, sizeof file, "%s/rank%d.json",
                                         s->record ? s->record : "", w->group.rank);
        if (length >= sizeof file)
            return knee_fail(err, KNEE_SYSTEM, "--record", "the folder's name is too long");
        status =
            lab_record_start(&w->record,
                             &(struct lab_record_of){s->record ? file : NULL, s->keep_timeline,
                                                     w->group.rank, w->group.size, s->synthetic},
                             err);
    }
    if (!status && !lab_worker_start(w))
        status = knee_fail(err, KNEE_SYSTEM, "", "no thread can be started");
    return status;
}

static void tear_down(struct lab_worker *w)
{
    lab_worker_stop(w);
    lab_loader_stop(&w->loader);
    lab_layout_release(&w->layout);
    lab_optimizer_release(&w->optimizer);
    lab_record_release(&w->record);
    if (!w->setup->synthetic)
        lab_net_release(&w->net);
    knee_arena_release(&w->memory);
}

/* ---- Figures ---- */

/* What counts from `untimed` on. */
struct meter {
    double *step_s, *losses;
    /* when it began to count */
    int64_t compute_ns, comm_ns, exposed_ns, sent_bytes, fixed_ns;
};

static void begin_to_count(struct lab_worker *w, struct meter *m)
{
    pthread_mutex_lock(&w->lock);
    m->compute_ns = w->compute_ns;
    m->comm_ns = w->comm_ns;
    m->exposed_ns = w->exposed_ns;
    m->sent_bytes = w->group.sent_bytes;
    m->fixed_ns = w->fixed_ns;
    pthread_mutex_unlock(&w->lock);
}

/* Median over rounds (of local_steps each, so that every round has one meeting) of time per step.
 */
static double median_step_s(const struct lab_setup *s, double *step_s)
{
    size_t round = s->sync == LAB_EVERY_STEP ? 1 : s->local_steps;
    size_t timed = s->steps - s->untimed, rounds = timed / round;
    if (rounds == 0) {
        round = timed;
        rounds = 1;
    }
    for (size_t r = 0; r < rounds; r++) {
        double sum = 0;
        for (size_t i = 0; i < round; i++)
            sum += step_s[s->untimed + r * round + i];
        step_s[r] = sum / (double)round;
    }
    return knee_median(step_s, rounds);
}

static void fill_figures(struct lab_worker *w, struct meter *m, double *figures)
{
    const struct lab_setup *s = w->setup;
    double steps = (double)(s->steps - s->untimed), bytes = 0, hops = 0;
    lab_layout_traffic(&w->layout, lab_wire_at(s->wire), w->group.size, &bytes, &hops);
    const double all[] = {
        median_step_s(s, m->step_s),
        1e-9 * (double)(w->compute_ns - m->compute_ns) / steps,
        1e-9 * (double)(w->comm_ns - m->comm_ns) / steps,
        1e-9 * (double)(w->exposed_ns - m->exposed_ns) / steps,
        (double)(w->group.sent_bytes - m->sent_bytes) / steps,
        bytes * lab_sync_per_step(s),
        1e-9 * (double)(w->fixed_ns - m->fixed_ns) / steps,
    };
    memcpy(figures, all, sizeof all);
}

static double held_out_loss(struct lab_worker *w)
{
    struct lab_batch batch = {0};
    struct lab_loader_plan plan = w->loader.plan;
    size_t examples = w->setup->shape.mlp ? 512 : 64, guesses = lab_net_guesses(&w->net);
    double loss = 0;
    plan.seed = 1; /* the same examples for every run */
    if (!lab_batch_init(&batch, w->net.batch_max, plan.context))
        return NAN;
    w->net.tokens = batch.tokens;
    w->net.targets = batch.targets;
    w->net.count = (double)(examples * guesses);
    for (size_t done = 0; done < examples; done += batch.count) {
        batch.count = examples - done < w->net.batch_max ? examples - done : w->net.batch_max;
        w->net.batch = batch.count;
        plan.first = done;
        loss += lab_loader_read(&plan, 0, true, &batch) ? lab_net_run(&w->net, false) : NAN;
    }
    lab_batch_release(&batch);
    return loss;
}

static knee_status train(struct lab_worker *w, struct meter *m, struct knee_err *err)
{
    const struct lab_setup *s = w->setup;
    for (size_t step = 0; step < s->steps; step++) {
        if (step == s->untimed) {
            lab_await(w, w->posted); /* what is still on its way belongs to the steps before */
            begin_to_count(w, m);
        }
        int64_t start = lab_now_ns();
        if (!run_step(w, step, w->share)) {
            if (!w->batch)
                return knee_fail(err, KNEE_INPUT, "", "the text cannot be read");
            return knee_fail(err, KNEE_SYSTEM, "", "%.200s", w->group.runtime->fault);
        }
        m->step_s[step] = 1e-9 * (double)(lab_now_ns() - start);
        m->losses[step] = w->step_loss;
        if (s->progress)
            s->progress(s->progress_ctx, step + 1, s->steps);
    }
    lab_await(w, w->posted);
    return KNEE_OK;
}

static knee_status keep_results(struct lab_worker *w, struct lab_outcome *out, struct knee_err *err)
{
    const struct lab_setup *s = w->setup;
    if (!lab_sync_end(w))
        return knee_fail(err, KNEE_SYSTEM, "", "the workers' parameters cannot be put together");
    lab_record_end(&w->record);
    knee_status written = lab_record_check(&w->record, s->record, err);
    if (s->keep_timeline) {
        out->timeline = w->record.text.data;
        out->timeline_size = w->record.text.length;
        memset(&w->record.text, 0, sizeof w->record.text);
    }
    out->loss = NAN;
    if (!s->synthetic && w->group.rank == 0)
        out->loss = held_out_loss(w);
    if (!s->synthetic) {
        out->params = w->net.params;
        out->param_count = w->net.param_count;
        w->net.params = NULL;
    }
    out->buckets = (double)w->layout.bucket_count;
    for (size_t b = 0; b < w->layout.bucket_count && w->compute_ns > 0; b++)
        out->ready_share[b] = (double)w->ready_ns[b] / (double)w->compute_ns;
    return written;
}

enum { FIGURES = 7 };

/* Called before the median sorts them. With rare synchronisation each rank reports the loss of its
 * own examples. */
static knee_status keep_steps(const struct lab_worker *w, const struct meter *m,
                              struct lab_outcome *out, struct knee_err *err)
{
    size_t steps = w->setup->steps;
    double share = lab_strategy_of(w->setup)->every_step ? 1 : 1 / (double)w->group.size;
    out->steps = calloc(2 * steps + 1, sizeof *out->steps);
    if (!out->steps)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the figures of each step");
    for (size_t i = 0; i < steps; i++) {
        out->steps[i] = m->step_s[i] / (double)w->group.size;
        out->steps[steps + i] = share * m->losses[i];
    }
    return KNEE_OK;
}

/* A training log of the run beside its timelines: what all workers had, for knee scale. */
static knee_status write_steps(struct knee_runtime *runtime, const struct lab_setup *setup,
                               int workers, struct lab_outcome *out, struct knee_err *err)
{
    size_t steps = setup->steps;
    if (!out->steps && !(out->steps = calloc(2 * steps + 1, sizeof *out->steps)))
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the figures of each step");
    if (!lab_reduce(runtime, out->steps, 2 * steps))
        return knee_fail(err, KNEE_SYSTEM, "", "%.200s", runtime->fault);
    if (runtime->rank != 0)
        return KNEE_OK;
    struct knee_text name = {0}, text = {0};
    size_t batch = setup->batch * (setup->weak ? (size_t)workers : 1);
    knee_text_printf(&name, "%s/steps.csv", setup->record);
    knee_text_puts(&text, "step,step_s,global_batch_size,loss\n");
    for (size_t i = 0; i < steps; i++) {
        knee_text_printf(&text, "%zu,%.9g,%zu,", i + 1, out->steps[i], batch);
        if (!setup->synthetic)
            knee_text_printf(&text, "%.9g", out->steps[steps + i]);
        knee_text_puts(&text, "\n");
    }
    knee_status status = name.failed ? knee_fail(err, KNEE_SYSTEM, setup->record, "out of memory")
                                     : setup->write_file(name.data, &text, err);
    knee_text_release(&name);
    knee_text_release(&text);
    return status;
}

static knee_status run_member(struct lab_worker *w, struct lab_outcome *out, double *figures,
                              struct knee_err *err)
{
    size_t steps = w->setup->steps + 1;
    struct meter m = {.step_s = knee_arena_take(&w->memory, steps, sizeof(double)),
                      .losses = knee_arena_take(&w->memory, steps, sizeof(double))};
    if (w->memory.failed) {
        knee_arena_release(&w->memory);
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the figures of each step");
    }
    knee_status status = set_up(w, err);
    if (!status && !lab_meet(&w->group))
        status = knee_fail(err, KNEE_SYSTEM, "", "%.200s", w->group.runtime->fault);
    if (!status)
        status = train(w, &m, err);
    if (!status && w->setup->record)
        status = keep_steps(w, &m, out, err);
    if (!status)
        fill_figures(w, &m, figures);
    lab_worker_stop(w);
    if (!status)
        status = keep_results(w, out, err);
    tear_down(w);
    return status;
}

bool lab_reduce(struct knee_runtime *runtime, double *values, size_t count)
{
    struct knee_request *request = NULL;
    bool done = false, good = runtime->all_reduce_start(runtime, values, count, KNEE_RUNTIME_F64,
                                                        KNEE_RUNTIME_SUM, &request);
    while (good && !done) {
        good = runtime->test(runtime, &request, &done);
        if (!done)
            lab_sleep_until(lab_now_ns() + 200000);
    }
    return good;
}

knee_status lab_run(struct knee_runtime *runtime, const struct lab_setup *setup, int workers,
                    struct lab_outcome *out, struct knee_err *err)
{
    double figures[FIGURES + 2] = {0};
    struct lab_worker *w = NULL;
    knee_status status = KNEE_OK;
    memset(out, 0, sizeof *out);
    if (runtime->rank < workers) {
        w = calloc(1, sizeof *w);
        if (!w)
            return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
        w->setup = setup;
        w->group = (struct lab_group){.runtime = runtime,
                                      .rank = runtime->rank,
                                      .size = workers,
                                      .pace_bytes_per_s = setup->pace_bytes_per_s,
                                      .pace_latency_s = setup->pace_latency_s};
        status = run_member(w, out, figures, err);
        free(w);
    }
    if (status)
        return status; /* the caller ends the run: the others wait for this rank */
    figures[FIGURES] = runtime->rank == 0 ? out->loss : 0;
    figures[FIGURES + 1] = runtime->rank == 0 ? out->buckets : 0;
    if (!lab_reduce(runtime, figures, FIGURES + 2))
        return knee_fail(err, KNEE_SYSTEM, "", "%.200s", runtime->fault);
    for (size_t i = 0; i < FIGURES; i++)
        figures[i] /= workers;
    out->step_s = figures[0];
    out->compute_s = figures[1];
    out->comm_s = figures[2];
    out->exposed_s = figures[3];
    out->sent_bytes = figures[4];
    out->model_bytes = figures[5];
    out->fixed_s = figures[6];
    out->loss = figures[FIGURES];
    out->buckets = figures[FIGURES + 1];
    return setup->record ? write_steps(runtime, setup, workers, out, err) : KNEE_OK;
}
