/* SPDX-License-Identifier: MIT */
/* knee scale: a job's own curve, or one run of it, from logs, tables and traces. The
 * sentences; the values are in say_scale_fields.c. */
#include "base/slice.h"
#include "judge/judge.h"
#include "knee_scale.h"
#include "say/scale_fields.h"
#include "say/short.h"

#include <math.h>
#include <string.h>

#define ANSWER  struct knee_scale_answer
#define ROW     struct knee_scale_row
#define ASK     struct knee_scale_ask
#define LOG     struct knee_train_log
#define ACCOUNT struct knee_run_account
#define NETWORK struct knee_scale_network

/* ---- Sentences ---- */

static const ROW *last_row(const ANSWER *a)
{
    size_t count = a->counted ? a->counted : a->row_count;
    return count ? &a->rows[count - 1] : NULL;
}

static void say_title(const ANSWER *a, struct knee_said *said)
{
    const ROW *row = last_row(a);
    size_t logs = 0, same = 0;
    for (size_t i = 0; i < a->row_count; i++) {
        logs += a->rows[i].log != NULL;
        same += a->rows[i].log && row->log && a->rows[i].log->format == row->log->format;
    }
    if (!row)
        return;
    if (a->row_count > 1) {
        if (same == a->row_count)
            PUT(&said->title, "{}: ", row->log->format);
        knee_text_puts(
            &said->title,
            knee_say_count((double)a->row_count, logs == a->row_count ? "log" : "run").s);
        if (a->several)
            PUT(&said->title, ", {} scaling{}", knee_scale_kind_name(a->fit.kind),
                a->fit.kind_assumed ? " assumed (no batch sizes)" : "");
    } else if (row->log)
        PUT(&said->title, "{}: {}, {rows} timed ({})", row->source, row->log->format,
            row->log->timed, knee_train_timing_name(row->log->timing));
    else
        PUT(&said->title, "{}", row->source);
}

/* What the log's rows are of. */
static const char *unit_of(const ROW *row)
{
    return row->log && row->log->epochs ? "epoch" : "step";
}

/* "16 GPUs take 6.64 s per step (p95 6.65 s), 158k tokens/s, 51% MFU." */
static void say_step(const ROW *row, struct knee_text *text)
{
    PUT(text, "[{GPUs}: ]{time} per {}[, p95 {time}][, {large} tokens/s][, {share} MFU].",
        row->workers, row->step_s, unit_of(row), row->p95_s, row->tokens_per_s,
        row->model.mfu_causal);
}

/* A step that changed for good inside the log: at least a tenth slower. */
static bool slowed(const ROW *row)
{
    return row->change.found && row->change.after_s > 1.1 * row->change.before_s;
}

static void say_change(const ROW *row, struct knee_said *said)
{
    const struct knee_scale_change *c = &row->change;
    const char *what = unit_of(row);
    if (c->after_s < 2 * c->before_s)
        PUT(&said->headline, "The {} became {share} slower", what, c->after_s / c->before_s - 1);
    else
        PUT(&said->headline, "The {} became {times} as long", what, c->after_s / c->before_s);
    if (!isnan(c->step))
        PUT(&said->headline, " at {} {count}", what, c->step);
    PUT(&said->headline, "{}.", c->restart ? ", where it was restarted" : "");
    PUT(&said->reason, "{time} per {} before, {time} since. ", c->before_s, what, c->after_s);
}

static double data_share(const ROW *row)
{
    return row->log ? row->log->data_s / row->step_s : NAN;
}

static void say_one_headline(const ANSWER *a, const ROW *row, struct knee_said *said)
{
    const struct knee_scale_model *m = &row->model;
    double over = row->step_s / m->step_s;
    if (slowed(row))
        say_change(row, said);
    else if (data_share(row) > 0.1)
        PUT(&said->headline, "Input-bound: {share} of the step waits for data.", data_share(row));
    else if (a->advice == KNEE_ADVICE_SLOW)
        PUT(&said->headline, "The step is {times} as long as expected: find the cause first.",
            over);
    else if (a->advice == KNEE_ADVICE_FAST)
        PUT(&said->headline,
            "The step is faster than the model allows: check model, batch and GPU.");
    else if (a->advice == KNEE_ADVICE_FINE)
        PUT(&said->headline, "Healthy: the step takes {share} of the expected time.", over);
    else if (row->log && row->log->epochs)
        PUT(&said->headline, "An epoch takes {time}; the log does not time single steps.",
            row->step_s);
    else if (row->log && row->log->unpriced[0])
        PUT(&said->headline, "A step takes {time}; knee has no expected time for it.", row->step_s);
    else
        PUT(&said->headline,
            "A step takes {time}: give model and GPU to see whether that is normal.", row->step_s);
    say_step(row, &said->reason);
    PUT(&said->reason, "[ Expected: {time}.]", SPAN(m->step_s, m->low_s, m->high_s));
}

/* "63% of 57 h were steps. Largest loss: gaps, 19 h after step 17,700." */
static void say_hours(const ACCOUNT *account, struct knee_text *text)
{
    const struct knee_train_account *all = &account->all;
    double kept = all->part_s[KNEE_TIME_STEPS] / all->wall_s;
    double worst = all->part_s[account->worst];
    PUT(text, "{share} of {time}[ in {jobs}] were steps.", kept, all->wall_s,
        account->jobs > 1 ? account->jobs : 0);
    if (worst >= 0.02 * all->wall_s && account->worst == KNEE_TIME_GAP)
        PUT(text,
            isnan(all->gap_after) ? " Largest loss: a gap of {time}."
                                  : " Largest loss: a gap of {time} after step {count}.",
            all->gap_s, all->gap_after);
    else if (worst >= 0.02 * all->wall_s)
        PUT(text, " Largest loss: {}, {time}.", knee_time_part_name(account->worst), worst);
    PUT(text, "[ The last {steps} are not in a checkpoint.]", all->unsaved_steps);
}

static void say_one(const ANSWER *a, struct knee_said *said)
{
    const ROW *row = last_row(a);
    say_one_headline(a, row, said);
    if (a->joined && !isnan(a->account.all.wall_s))
        say_hours(&a->account, &said->effect);
    if (!(row->workers >= 1))
        PUT(&said->next, "give the GPU count: knee scale 8={}", row->source);
    else if (row->log && row->log->unpriced[0])
        PUT(&said->after, "No expected step: knee does not model {}.\n", row->log->unpriced);
    else if (isnan(row->model.step_s) && row->model.missing[0])
        PUT(&said->next, "for the expected step: {}", row->model.missing);
    else if (a->advice == KNEE_ADVICE_SLOW)
        PUT(&said->next, "knee trace on a profiled step of all ranks");
    else
        PUT(&said->next, "add a log with half or twice as many GPUs to see the curve");
}

/* ---- Several counts ---- */

static void say_forecast(const ANSWER *a, const ASK *ask, struct knee_text *text)
{
    const ROW *last = last_row(a);
    if (ask->refused[0]) {
        PUT(text, " No forecast for {count}: {}.", ask->at.workers, ask->refused);
        return;
    }
    PUT(text, " {count} would run at {share}: {times} as fast as {count}{}.", ask->at.workers,
        SPAN(ask->efficiency, ask->efficiency_sure.low, ask->efficiency_sure.high),
        ask->speed_up / last->speed_up, last->workers,
        knee_rough(ask->at.low_s, ask->at.high_s) ? " (rough)" : "");
}

static void say_several(const ANSWER *a, struct knee_said *said)
{
    const ROW *last = last_row(a);
    const ASK *ask = a->advice_ask < a->ask_count ? &a->asks[a->advice_ask] : NULL;
    double knee = !isnan(a->measured_knee) ? a->measured_knee : a->predicted_knee;
    if (ask && ask->refused[0])
        PUT(&said->headline, "Stop at {count} GPUs: the batch feeds no more.", last->workers);
    else if (!isnan(a->measured_knee))
        PUT(&said->headline, "Stop at {GPUs}, the last with {share} efficiency or more.", knee,
            a->question.tolerance);
    else if (ask && a->advice == KNEE_ADVICE_STOP && ask->efficiency < a->question.tolerance &&
             a->advice_share < 0.9)
        PUT(&said->headline, "Do not ask for {count} GPUs: efficiency would be below {share}.",
            ask->at.workers, a->question.tolerance);
    else if (ask && a->advice == KNEE_ADVICE_STOP)
        PUT(&said->headline,
            "Do not ask for {count} GPUs: {share} of their speed is there at {count}.",
            ask->at.workers, fmin(1, a->advice_share), a->advice_workers);
    else if (ask)
        PUT(&said->headline, "{count} GPUs still pay: {times} the speed of {count}.",
            ask->at.workers, 1 / a->advice_share, a->advice_workers);
    else
        PUT(&said->headline, "No knee up to {count} GPUs.", last->workers);
    PUT(&said->reason, "{GPUs} run at {share} ({} scaling).", last->workers, last->efficiency,
        knee_scale_kind_name(a->fit.kind));
    if (ask)
        say_forecast(a, ask, &said->reason);
    if (isnan(a->measured_knee) && !isnan(a->predicted_knee))
        PUT(&said->effect, "Knee by the fit: {count} GPUs.", a->predicted_knee);
    if (isnan(last->model.step_s) && last->model.missing[0])
        PUT(&said->next, "for the expected step: {}", last->model.missing);
}

/* Runs that the curve leaves out. */
static void say_slow_repeats(const ANSWER *a, struct knee_text *text)
{
    for (size_t i = 0; i < a->counted; i++)
        if (a->rows[i].faster)
            PUT(text, "{} takes {times} as long as {} on {GPUs}: not part of the curve.\n",
                a->rows[i].source, a->rows[i].step_s / a->rows[i].faster->step_s,
                a->rows[i].faster->source, a->rows[i].workers);
}

/* "latency 17%, exchanges per micro-batch 9%": beside compute, what shows. */
static void say_lost(const ANSWER *a, struct knee_text *text)
{
    double sum = knee_scale_term_sum(&a->fit);
    size_t said = 0;
    if (a->fit.strange)
        return;
    for (int t = KNEE_SCALE_FIXED; t < KNEE_SCALE_TERMS; t++)
        if (a->fit.term_s[t] >= 0.02 * sum) {
            if (said++ == 0)
                PUT(text, "Lost at {count}:", last_row(a)->workers);
            PUT(text, "{} {} {share}", said > 1 ? "," : "",
                knee_scale_term_name((enum knee_scale_term)t), a->fit.term_s[t] / sum);
        }
    if (said)
        PUT(text, "\n");
}

/* ---- Two nodes ---- */

static struct knee_word gbps(double bytes_per_s)
{
    struct knee_word word = knee_say_number(bytes_per_s * 8e-9, NUMBER);
    return word;
}

/* Networks that are too slow even where all hides, and the first that does with a margin. */
static void say_networks(const NETWORK *n, struct knee_text *text)
{
    const char *name, *enough = NULL, *slow = NULL;
    for (size_t i = 0; knee_network_rate(i, &name) > 0; i++) {
        double rate = knee_network_rate(i, &name);
        if (rate < n->need_hidden)
            slow = name;
        else if (!enough && rate >= 1.25 * n->need_hidden)
            enough = name;
    }
    if (slow)
        PUT(text, " {} cannot do it{}", slow, enough ? ";" : ".");
    if (enough)
        PUT(text, " {} can where the exchange hides behind compute.", enough);
}

static void say_network_help(const NETWORK *n, struct knee_text *text)
{
    if (n->shard == KNEE_ZERO3)
        PUT(text,
            "Without a new network: ZeRO-1 or DDP sends {bytes}; accumulate gradients over 4 "
            "micro-batches and exchange once.\n",
            n->bytes * 2 / 3);
    else
        PUT(text, "Without a new network: accumulate gradients over 4 micro-batches and exchange "
                  "once; send bf16 gradients.\n");
}

static void say_network(const NETWORK *n, struct knee_said *said)
{
    if (n->cause == KNEE_NETWORK_SLOW) {
        PUT(&said->headline, "{count} nodes run at {share}: ", n->nodes, n->efficiency);
        if (n->have >= n->need_hidden) /* fast enough, if compute hid it */
            PUT(&said->headline, "{} Gb/s, and compute does not hide it.", gbps(n->have).s);
        else
            PUT(&said->headline, "the link gave {} of {} Gb/s needed.", gbps(n->have).s,
                gbps(n->need_hidden).s);
        PUT(&said->reason, "A step sends {bytes} over each node's link; it became {time} longer.",
            n->bytes, n->added_s);
        PUT(&said->effect, "For 90%: {} Gb/s if all of it hides, {} if none does.",
            gbps(n->need_hidden).s, gbps(n->need_exposed).s);
        say_networks(n, &said->effect);
        say_network_help(n, &said->after);
    } else if (n->cause == KNEE_NETWORK_NOT_IT) {
        PUT(&said->headline, "{count} nodes run at {share}, and the network is not the cause.",
            n->nodes, n->efficiency);
        PUT(&said->reason, "{bytes} in the {time} that were added is {} Gb/s: look elsewhere.",
            n->bytes, n->added_s, gbps(n->have).s);
        PUT(&said->next, "knee trace on a profiled step of all ranks");
    } else {
        PUT(&said->headline, "{count} nodes run at {share}.", n->nodes, n->efficiency);
        PUT(&said->reason, "Unknown: what the network has to do with it. To find out: {}.",
            n->missing);
    }
    if (n->shard < 0 && n->cause == KNEE_NETWORK_SLOW)
        PUT(&said->assumed, "fp32 gradients, all-reduced (DDP): else --shard zero3");
}

/* ---- After the table ---- */

static void say_log_notes(const ROW *row, struct knee_said *said)
{
    const LOG *log = row->log;
    const struct knee_train_counts *c = &log->counts;
    PUT(&said->after,
        "[By the time stamps a step takes {time}: evaluation or checkpoints are in it.\n]",
        log->other_s);
    if (c->outliers && !isnan(log->outlier_every) && log->outlier_share >= KNEE_WORTH_IT)
        PUT(&said->after,
            "Every {count} steps one takes {time} longer, {share} of the time: checkpoint, "
            "evaluation or collection.\n",
            log->outlier_every, log->outlier_s, log->outlier_share);
    PUT(&said->after, "[The optimiser skipped {steps}.\n]", log->skipped);
    if (log->run_count > 1) {
        size_t used = 0;
        for (size_t k = 0; k < log->run_count; k++)
            used += log->runs[k].used;
        PUT(&said->after, "{} runs in {}, {} of them like the last long one.\n", log->run_count,
            row->source, used);
    }
    PUT(&said->notes, "{}: {}, {} rows timed ({}), of {} lines {} used, {} facts", row->source,
        log->format, log->timed, knee_train_timing_name(log->timing), c->lines, c->used, c->facts);
    PUT(&said->notes, "[; GPUs by {}]", log->workers_from);
    const struct {
        size_t count;
        const char *what;
    } counts[] = {{c->warm_up, "of warm-up left out"}, {c->duplicates, "duplicates"},
                  {c->other_ranks, "of other ranks"},  {c->left_out, "of other runs left out"},
                  {c->unusable, "unusable"},           {c->cut, "cut lines"},
                  {c->thinned, "thinned out"},         {c->outliers, "outliers"}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        PUT(&said->notes, "[, {} {}]", counts[i].count, counts[i].what);
    knee_text_puts(&said->notes,
                   log->alternates ? ", long and short steps take turns: their mean\n" : "\n");
}

static void say_batch(const struct knee_batch_fit *b, struct knee_said *said)
{
    if (b->runs < 2 || !(b->large_batch > b->small_batch))
        return;
    if (b->behind)
        knee_text_printf(&said->after,
                         "After %s samples the loss of batch %s is %.4g, of batch %s %.4g.\n",
                         SAY_LARGE(b->equal_samples), SAY_LARGE(b->large_batch), b->large_loss,
                         SAY_LARGE(b->small_batch), b->small_loss);
    PUT(&said->after, "[Critical batch: {large}.\n]", SPAN(b->critical, b->low, b->high));
}

/* A rule as a sentence. */
static void say_rule(const char *rule, struct knee_text *text)
{
    knee_text_printf(text, "%c%s.", knee_capital(*rule), rule + 1);
}

/* The first of the files or rows that could not be used. */
static void say_left_out(const ANSWER *a, struct knee_said *said)
{
    struct knee_slice rest = knee_slice_of(a->left_out ? a->left_out : ""), line, first = {"", 0};
    size_t count = 0;
    while (knee_slice_line(&rest, &line))
        if (count++ == 0)
            first = knee_slice_trim(line);
    if (count == 0)
        return;
    knee_text_printf(&said->voids, "Not used: %.*s", (int)first.length, first.at);
    PUT(&said->voids, "[ ({} more with -v)]", count - 1);
}

static void say_suspects(const ANSWER *a, struct knee_said *said)
{
    const char *measure = NULL;
    for (size_t i = 0; i < KNEE_SCALE_SUSPECTS; i++) {
        const struct knee_scale_suspect *s = &a->suspects[i];
        if (s->standing == KNEE_CONFIRMED && a->row_count == 0) {
            if (!said->headline.length)
                PUT(&said->headline, "Suspect: {}.", knee_suspect_name(s->suspect));
            else
                PUT(&said->reason, " Also: {}. ", knee_suspect_name(s->suspect));
            say_rule(s->rule, &said->reason);
        } else if (s->standing == KNEE_CONFIRMED) {
            PUT(&said->after, "Suspect: {} ({}).\n", knee_suspect_name(s->suspect), s->rule);
        }
        if (!measure && s->standing != KNEE_EXCLUDED)
            measure = s->measure;
    }
    if (a->row_count || a->sched.jobs)
        return;
    bool logs = a->left_out && !knee_symptoms_any(&a->question.symptoms);
    if (!said->headline.length)
        knee_text_puts(&said->headline, logs ? "Nothing in the log says how long a step takes."
                                             : "These symptoms confirm no suspect yet.");
    if (logs)
        PUT(&said->next, "log the step's number with its seconds, or a time stamp");
    else if (measure)
        PUT(&said->next, "{}", measure);
}

static void say_unhidden(const ANSWER *a, struct knee_said *said)
{
    for (size_t i = 0; i < a->ask_count; i++) {
        const ASK *ask = &a->asks[i];
        if (ask->refused[0] && i != a->advice_ask)
            PUT(&said->after, "No forecast for {count}: {}.\n", ask->at.workers, ask->refused);
        else if (ask->at.unhidden_s >= 0.01 * ask->at.step_s)
            PUT(&said->after,
                "At {count} GPUs {time} of communication no longer hides behind compute.\n",
                ask->at.workers, ask->at.unhidden_s);
    }
}

static void say(const void *result, struct knee_said *said)
{
    const ANSWER *a = result;
    say_title(a, said);
    if (a->network.asked && a->network.cause != KNEE_NETWORK_FINE)
        say_network(&a->network, said);
    else if (a->advice == KNEE_ADVICE_BATCH && a->row_count)
        PUT(&said->headline, "Watch the loss before adding GPUs: the batch is near its limit.");
    else if (a->several)
        say_several(a, said);
    else if (a->row_count)
        say_one(a, said);
    if (a->advice == KNEE_ADVICE_BATCH && a->row_count)
        say_step(last_row(a), &said->reason);
    if (a->several) {
        say_slow_repeats(a, &said->after);
        say_lost(a, &said->after);
    }
    say_unhidden(a, said);
    for (size_t i = 0; i < a->row_count; i++)
        if (a->rows[i].log)
            say_log_notes(&a->rows[i], said);
    say_batch(&a->batch, said);
    if (a->sched.jobs)
        knee_say_jobs(a, said);
    say_suspects(a, said);
    if (a->several)
        PUT(&said->notes, "the terms are off by {share} (root mean square){}\n", a->fit.misfit,
            a->fit.strange ? ": the curve is carried on as it went" : "");
    say_left_out(a, said);
    if (a->left_out)
        knee_text_puts(&said->notes, a->left_out);
}

/* ---- The picture ---- */

static void curve(const void *result, struct knee_plot_line *line)
{
    const ANSWER *a = result;
    size_t count = 0;
    double last = NAN;
    line->x_name = "GPUs";
    line->y_name = "efficiency";
    line->mark_name = "last measured";
    line->level_name = "tolerance";
    line->level = a->question.tolerance;
    line->mark = a->counted ? a->rows[a->counted - 1].workers : NAN;
    for (size_t i = 0; a->several && i < a->counted + a->ask_count; i++) {
        double x, y;
        if (i < a->counted) {
            x = a->rows[i].workers;
            y = a->rows[i].efficiency;
        } else {
            const ASK *ask = &a->asks[i - a->counted];
            x = ask->at.workers;
            y = ask->refused[0] ? NAN : ask->efficiency;
        }
        if (x <= last || isnan(y))
            continue;
        if (line->x) {
            line->x[count] = x;
            line->y[count] = y;
        }
        last = x;
        count++;
    }
    line->count = count;
}

static const struct knee_picture pictures[] = {{.tier = FULL, .curve = curve}};

const struct knee_answer_type knee_scale_answer_type = {.schema = "knee.scale/1",
                                                        KNEE_FIELDS(knee_scale_fields),
                                                        KNEE_VIEWS(knee_scale_views),
                                                        .pictures = pictures,
                                                        .picture_count = KNEE_COUNT_OF(pictures),
                                                        .say = say};
