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
            knee_text_printf(&said->title, "%s: ", row->log->format);
        knee_text_puts(
            &said->title,
            knee_say_count((double)a->row_count, logs == a->row_count ? "log" : "run").s);
        if (a->several)
            knee_text_printf(&said->title, ", %s scaling%s", knee_scale_kind_name(a->fit.kind),
                             a->fit.kind_assumed ? " assumed (no batch sizes)" : "");
    } else if (row->log)
        knee_text_printf(&said->title, "%s: %s, %s timed (%s)", row->source, row->log->format,
                         knee_say_count((double)row->log->timed, "row").s,
                         knee_train_timing_name(row->log->timing));
    else
        knee_text_printf(&said->title, "%s", row->source);
}

/* What the log's rows are of. */
static const char *unit_of(const ROW *row)
{
    return row->log && row->log->epochs ? "epoch" : "step";
}

/* "16 GPUs take 6.64 s per step (p95 6.65 s), 158k tokens/s, 51% MFU." */
static void say_step(const ROW *row, struct knee_text *text)
{
    if (row->workers >= 1)
        knee_text_printf(text, "%s: ", knee_say_count(row->workers, "GPU").s);
    knee_text_printf(text, "%s per %s", SAY_TIME(row->step_s), unit_of(row));
    if (row->p95_s > 0)
        knee_text_printf(text, ", p95 %s", SAY_TIME(row->p95_s));
    if (row->tokens_per_s > 0)
        knee_text_printf(text, ", %s tokens/s", SAY_LARGE(row->tokens_per_s));
    if (!isnan(row->model.mfu_causal))
        knee_text_printf(text, ", %s MFU", SAY_SHARE(row->model.mfu_causal));
    knee_text_puts(text, ".");
}

static void say_expected(const ROW *row, struct knee_text *text)
{
    const struct knee_scale_model *m = &row->model;
    if (!isnan(m->step_s))
        knee_text_printf(text, " Expected: %s.",
                         knee_say_interval(m->step_s, m->low_s, m->high_s, TIME).s);
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
        knee_text_printf(&said->headline, "The %s became %s slower", what,
                         SAY_SHARE(c->after_s / c->before_s - 1));
    else
        knee_text_printf(&said->headline, "The %s became %s as long", what,
                         SAY_TIMES(c->after_s / c->before_s));
    if (!isnan(c->step))
        knee_text_printf(&said->headline, " at %s %s", what, SAY_COUNT(c->step));
    knee_text_puts(&said->headline, c->restart ? ", where it was restarted." : ".");
    knee_text_printf(&said->reason, "%s per %s before, %s since. ", SAY_TIME(c->before_s), what,
                     SAY_TIME(c->after_s));
}

static double data_share(const ROW *row)
{
    return row->log ? row->log->data_s / row->step_s : NAN;
}

static void say_one_headline(const ANSWER *a, const ROW *row, struct knee_said *said)
{
    double over = row->step_s / row->model.step_s;
    if (slowed(row))
        say_change(row, said);
    else if (data_share(row) > 0.1)
        knee_text_printf(&said->headline, "Input-bound: %s of the step waits for data.",
                         SAY_SHARE(data_share(row)));
    else if (a->advice == KNEE_ADVICE_SLOW)
        knee_text_printf(&said->headline,
                         "The step is %s as long as expected: find the cause first.",
                         SAY_TIMES(over));
    else if (a->advice == KNEE_ADVICE_FAST)
        knee_text_puts(&said->headline,
                       "The step is faster than the model allows: check model, batch and GPU.");
    else if (a->advice == KNEE_ADVICE_FINE)
        knee_text_printf(&said->headline, "Healthy: the step takes %s of the expected time.",
                         SAY_SHARE(over));
    else if (row->log && row->log->epochs)
        knee_text_printf(&said->headline, "An epoch takes %s; the log does not time single steps.",
                         SAY_TIME(row->step_s));
    else if (row->log && row->log->unpriced[0])
        knee_text_printf(&said->headline, "A step takes %s; knee has no expected time for it.",
                         SAY_TIME(row->step_s));
    else
        knee_text_printf(&said->headline,
                         "A step takes %s: give model and GPU to see whether that is normal.",
                         SAY_TIME(row->step_s));
    say_step(row, &said->reason);
    say_expected(row, &said->reason);
}

static const char *gap_words(const ACCOUNT *account)
{
    return isnan(account->all.gap_after) ? "" : " after step ";
}

/* "63% of 57 h were steps. Largest loss: gaps, 19 h after step 17,700." */
static void say_hours(const ACCOUNT *account, struct knee_text *text)
{
    const struct knee_train_account *all = &account->all;
    double kept = all->part_s[KNEE_TIME_STEPS] / all->wall_s;
    double worst = all->part_s[account->worst];
    knee_text_printf(text, "%s of %s", SAY_SHARE(kept), SAY_TIME(all->wall_s));
    if (account->jobs > 1)
        knee_text_printf(text, " in %s", knee_say_count((double)account->jobs, "job").s);
    knee_text_puts(text, " were steps.");
    if (worst >= 0.02 * all->wall_s && account->worst == KNEE_TIME_GAP)
        knee_text_printf(text, " Largest loss: a gap of %s%s%s.", SAY_TIME(all->gap_s),
                         gap_words(account),
                         isnan(all->gap_after) ? "" : SAY_COUNT(all->gap_after));
    else if (worst >= 0.02 * all->wall_s)
        knee_text_printf(text, " Largest loss: %s, %s.", knee_time_part_name(account->worst),
                         SAY_TIME(worst));
    if (all->unsaved_steps > 0)
        knee_text_printf(text, " The last %s are not in a checkpoint.",
                         knee_say_count(all->unsaved_steps, "step").s);
}

static void say_one(const ANSWER *a, struct knee_said *said)
{
    const ROW *row = last_row(a);
    say_one_headline(a, row, said);
    if (a->joined && !isnan(a->account.all.wall_s))
        say_hours(&a->account, &said->effect);
    if (!(row->workers >= 1))
        knee_text_printf(&said->next, "give the GPU count: knee scale 8=%s", row->source);
    else if (row->log && row->log->unpriced[0])
        knee_text_printf(&said->after, "No expected step: knee does not model %s.\n",
                         row->log->unpriced);
    else if (isnan(row->model.step_s) && row->model.missing[0])
        knee_text_printf(&said->next, "for the expected step: %s", row->model.missing);
    else if (a->advice == KNEE_ADVICE_SLOW)
        knee_text_puts(&said->next, "knee trace on a profiled step of all ranks");
    else
        knee_text_puts(&said->next, "add a log with half or twice as many GPUs to see the curve");
}

/* ---- Several counts ---- */

static void say_forecast(const ANSWER *a, const ASK *ask, struct knee_text *text)
{
    const ROW *last = last_row(a);
    if (ask->refused[0]) {
        knee_text_printf(text, " No forecast for %s: %s.", SAY_COUNT(ask->at.workers),
                         ask->refused);
        return;
    }
    knee_text_printf(text, " %s would run at %s", SAY_COUNT(ask->at.workers),
                     knee_say_interval(ask->efficiency, ask->efficiency_sure.low,
                                       ask->efficiency_sure.high, SHARE)
                         .s);
    knee_text_printf(text, ": %s as fast as %s%s.", SAY_TIMES(ask->speed_up / last->speed_up),
                     SAY_COUNT(last->workers),
                     knee_rough(ask->at.low_s, ask->at.high_s) ? " (rough)" : "");
}

static void say_several(const ANSWER *a, struct knee_said *said)
{
    const ROW *last = last_row(a);
    const ASK *ask = a->advice_ask < a->ask_count ? &a->asks[a->advice_ask] : NULL;
    double knee = !isnan(a->measured_knee) ? a->measured_knee : a->predicted_knee;
    if (ask && ask->refused[0])
        knee_text_printf(&said->headline, "Stop at %s GPUs: the batch feeds no more.",
                         SAY_COUNT(last->workers));
    else if (!isnan(a->measured_knee))
        knee_text_printf(&said->headline, "Stop at %s, the last with %s efficiency or more.",
                         knee_say_count(knee, "GPU").s, SAY_SHARE(a->question.tolerance));
    else if (ask && a->advice == KNEE_ADVICE_STOP && ask->efficiency < a->question.tolerance &&
             a->advice_share < 0.9)
        knee_text_printf(&said->headline, "Do not ask for %s GPUs: efficiency would be below %s.",
                         SAY_COUNT(ask->at.workers), SAY_SHARE(a->question.tolerance));
    else if (ask && a->advice == KNEE_ADVICE_STOP)
        knee_text_printf(&said->headline,
                         "Do not ask for %s GPUs: %s of their speed is there at %s.",
                         SAY_COUNT(ask->at.workers), SAY_SHARE(fmin(1, a->advice_share)),
                         SAY_COUNT(a->advice_workers));
    else if (ask)
        knee_text_printf(&said->headline, "%s GPUs still pay: %s the speed of %s.",
                         SAY_COUNT(ask->at.workers), SAY_TIMES(1 / a->advice_share),
                         SAY_COUNT(a->advice_workers));
    else
        knee_text_printf(&said->headline, "No knee up to %s GPUs.", SAY_COUNT(last->workers));
    knee_text_printf(&said->reason, "%s run at %s (%s scaling).",
                     knee_say_count(last->workers, "GPU").s, SAY_SHARE(last->efficiency),
                     knee_scale_kind_name(a->fit.kind));
    if (ask)
        say_forecast(a, ask, &said->reason);
    if (isnan(a->measured_knee) && !isnan(a->predicted_knee))
        knee_text_printf(&said->effect, "Knee by the fit: %s GPUs.", SAY_COUNT(a->predicted_knee));
    if (isnan(last->model.step_s) && last->model.missing[0])
        knee_text_printf(&said->next, "for the expected step: %s", last->model.missing);
}

/* Runs that the curve leaves out. */
static void say_slow_repeats(const ANSWER *a, struct knee_text *text)
{
    for (size_t i = 0; i < a->counted; i++)
        if (a->rows[i].faster)
            knee_text_printf(
                text, "%s takes %s as long as %s on %s: not part of the curve.\n",
                a->rows[i].source, SAY_TIMES(a->rows[i].step_s / a->rows[i].faster->step_s),
                a->rows[i].faster->source, knee_say_count(a->rows[i].workers, "GPU").s);
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
                knee_text_printf(text, "Lost at %s:", SAY_COUNT(last_row(a)->workers));
            knee_text_printf(text, "%s %s %s", said > 1 ? "," : "",
                             knee_scale_term_name((enum knee_scale_term)t),
                             SAY_SHARE(a->fit.term_s[t] / sum));
        }
    if (said)
        knee_text_puts(text, "\n");
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
        knee_text_printf(text, " %s cannot do it%s", slow, enough ? ";" : ".");
    if (enough)
        knee_text_printf(text, " %s can where the exchange hides behind compute.", enough);
}

static void say_network_help(const NETWORK *n, struct knee_text *text)
{
    if (n->shard == KNEE_ZERO3)
        knee_text_printf(text,
                         "Without a new network: ZeRO-1 or DDP sends %s; accumulate gradients over "
                         "4 micro-batches and exchange once.\n",
                         SAY_BYTES(n->bytes * 2 / 3));
    else
        knee_text_puts(text, "Without a new network: accumulate gradients over 4 micro-batches and "
                             "exchange once; send bf16 gradients.\n");
}

static void say_network(const NETWORK *n, struct knee_said *said)
{
    if (n->cause == KNEE_NETWORK_SLOW) {
        knee_text_printf(&said->headline, "%s nodes run at %s: ", SAY_COUNT(n->nodes),
                         SAY_SHARE(n->efficiency));
        if (n->have >= n->need_hidden) /* fast enough, if compute hid it */
            knee_text_printf(&said->headline, "%s Gb/s, and compute does not hide it.",
                             gbps(n->have).s);
        else
            knee_text_printf(&said->headline, "the link gave %s of %s Gb/s needed.",
                             gbps(n->have).s, gbps(n->need_hidden).s);
        knee_text_printf(&said->reason,
                         "A step sends %s over each node's link; it became %s longer.",
                         SAY_BYTES(n->bytes), SAY_TIME(n->added_s));
        knee_text_printf(&said->effect, "For 90%%: %s Gb/s if all of it hides, %s if none does.",
                         gbps(n->need_hidden).s, gbps(n->need_exposed).s);
        say_networks(n, &said->effect);
        say_network_help(n, &said->after);
    } else if (n->cause == KNEE_NETWORK_NOT_IT) {
        knee_text_printf(&said->headline, "%s nodes run at %s, and the network is not the cause.",
                         SAY_COUNT(n->nodes), SAY_SHARE(n->efficiency));
        knee_text_printf(&said->reason, "%s in the %s that were added is %s Gb/s: look elsewhere.",
                         SAY_BYTES(n->bytes), SAY_TIME(n->added_s), gbps(n->have).s);
        knee_text_puts(&said->next, "knee trace on a profiled step of all ranks");
    } else {
        knee_text_printf(&said->headline, "%s nodes run at %s.", SAY_COUNT(n->nodes),
                         SAY_SHARE(n->efficiency));
        knee_text_printf(&said->reason,
                         "Unknown: what the network has to do with it. To find out: "
                         "%s.",
                         n->missing);
    }
    if (n->shard < 0 && n->cause == KNEE_NETWORK_SLOW)
        knee_text_puts(&said->assumed, "fp32 gradients, all-reduced (DDP): else --shard zero3");
}

/* ---- After the table ---- */

static void say_log_notes(const ROW *row, struct knee_said *said)
{
    const LOG *log = row->log;
    const struct knee_train_counts *c = &log->counts;
    if (!isnan(log->other_s))
        knee_text_printf(&said->after,
                         "By the time stamps a step takes %s: evaluation or "
                         "checkpoints are in it.\n",
                         SAY_TIME(log->other_s));
    if (c->outliers && !isnan(log->outlier_every) && log->outlier_share >= KNEE_WORTH_IT)
        knee_text_printf(&said->after,
                         "Every %s steps one takes %s longer, %s of the time: "
                         "checkpoint, evaluation or collection.\n",
                         SAY_COUNT(log->outlier_every), SAY_TIME(log->outlier_s),
                         SAY_SHARE(log->outlier_share));
    if (log->skipped)
        knee_text_printf(&said->after, "The optimiser skipped %s.\n",
                         knee_say_count((double)log->skipped, "step").s);
    if (log->run_count > 1) {
        size_t used = 0;
        for (size_t k = 0; k < log->run_count; k++)
            used += log->runs[k].used;
        knee_text_printf(&said->after, "%zu runs in %s, %zu of them like the last long one.\n",
                         log->run_count, row->source, used);
    }
    knee_text_printf(&said->notes, "%s: %s, %zu rows timed (%s), of %zu lines %zu used, %zu facts",
                     row->source, log->format, log->timed, knee_train_timing_name(log->timing),
                     c->lines, c->used, c->facts);
    if (log->workers_from[0])
        knee_text_printf(&said->notes, "; GPUs by %s", log->workers_from);
    const struct {
        size_t count;
        const char *what;
    } counts[] = {{c->warm_up, "of warm-up left out"}, {c->duplicates, "duplicates"},
                  {c->other_ranks, "of other ranks"},  {c->left_out, "of other runs left out"},
                  {c->unusable, "unusable"},           {c->cut, "cut lines"},
                  {c->thinned, "thinned out"},         {c->outliers, "outliers"}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].count)
            knee_text_printf(&said->notes, ", %zu %s", counts[i].count, counts[i].what);
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
    if (!isnan(b->critical))
        knee_text_printf(&said->after, "Critical batch: %s.\n",
                         knee_say_interval(b->critical, b->low, b->high, LARGE).s);
}

/* A rule as a sentence. */
static void say_rule(const char *rule, struct knee_text *text)
{
    char first = rule[0] >= 'a' && rule[0] <= 'z' ? (char)(rule[0] - 32) : rule[0];
    knee_text_add(text, &first, 1);
    knee_text_printf(text, "%s.", rule + 1);
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
    if (count > 1)
        knee_text_printf(&said->voids, " (%zu more with -v)", count - 1);
}

static bool any_symptom(const struct knee_symptoms *s)
{
    return s->loss_behind || !isnan(s->gpu_util) || !isnan(s->cpu_util) ||
           !isnan(s->flops_achieved) || !isnan(s->late_rank);
}

static void say_suspects(const ANSWER *a, struct knee_said *said)
{
    const char *measure = NULL;
    for (size_t i = 0; i < KNEE_SCALE_SUSPECTS; i++) {
        const struct knee_scale_suspect *s = &a->suspects[i];
        if (s->standing == KNEE_CONFIRMED && a->row_count == 0) {
            if (!said->headline.length)
                knee_text_printf(&said->headline, "Suspect: %s.", knee_suspect_name(s->suspect));
            else
                knee_text_printf(&said->reason, " Also: %s. ", knee_suspect_name(s->suspect));
            say_rule(s->rule, &said->reason);
        } else if (s->standing == KNEE_CONFIRMED) {
            knee_text_printf(&said->after, "Suspect: %s (%s).\n", knee_suspect_name(s->suspect),
                             s->rule);
        }
        if (!measure && s->standing != KNEE_EXCLUDED)
            measure = s->measure;
    }
    if (a->row_count || a->sched.jobs)
        return;
    bool logs = a->left_out && !any_symptom(&a->question.symptoms);
    if (!said->headline.length)
        knee_text_puts(&said->headline, logs ? "Nothing in the log says how long a step takes."
                                             : "These symptoms confirm no suspect yet.");
    if (logs)
        knee_text_puts(&said->next, "log the step's number with its seconds, or a time stamp");
    else if (measure)
        knee_text_printf(&said->next, "%s", measure);
}

static void say_unhidden(const ANSWER *a, struct knee_said *said)
{
    for (size_t i = 0; i < a->ask_count; i++) {
        const ASK *ask = &a->asks[i];
        if (ask->refused[0] && i != a->advice_ask)
            knee_text_printf(&said->after, "No forecast for %s: %s.\n", SAY_COUNT(ask->at.workers),
                             ask->refused);
        else if (ask->at.unhidden_s >= 0.01 * ask->at.step_s)
            knee_text_printf(&said->after,
                             "At %s GPUs %s of communication no longer hides behind compute.\n",
                             SAY_COUNT(ask->at.workers), SAY_TIME(ask->at.unhidden_s));
    }
}

static void say(const void *result, struct knee_said *said)
{
    const ANSWER *a = result;
    say_title(a, said);
    if (a->network.asked && a->network.cause != KNEE_NETWORK_FINE)
        say_network(&a->network, said);
    else if (a->advice == KNEE_ADVICE_BATCH && a->row_count)
        knee_text_puts(&said->headline,
                       "Watch the loss before adding GPUs: the batch is near its limit.");
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
        knee_text_printf(&said->notes, "the terms are off by %s (root mean square)%s\n",
                         SAY_SHARE(a->fit.misfit),
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
                                                        .fields = knee_scale_fields,
                                                        .field_count = KNEE_SCALE_FIELDS,
                                                        .views = knee_scale_views,
                                                        .view_count = KNEE_SCALE_VIEWS,
                                                        .pictures = pictures,
                                                        .picture_count = KNEE_COUNT_OF(pictures),
                                                        .say = say};
