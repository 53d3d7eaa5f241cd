/* SPDX-License-Identifier: MIT */
/*
 * Two training logs: did the step change by more than chance, and what does the configuration say?
 * Neighbouring steps are alike (a slow storage, a warm GPU), so the error of a mean over single
 * steps is too small. Steps are taken in blocks in the order of the log, and the medians of the
 * blocks are compared: mean and standard error of each side, Welch's difference.
 */
#include "base/format.h"
#include "base/keys.h"
#include "base/order.h"
#include "judge/judge.h"
#include "knee_scale.h"

#include <math.h>
#include <string.h>

#define BLOCKS    8
#define CHANCE    3    /* standard errors; with eight blocks a side about one in a hundred */
#define OUTLIER   1.5  /* medians, as in the log */
#define SAME_WORK 1e-6 /* what is printed with a few digits */

/* Only steps like the others: a checkpoint or a first step would widen the spread. */
static bool is_usual(const struct knee_train_log *log, const struct knee_train_row *row)
{
    return row->step_s > log->median_s / OUTLIER && row->step_s < log->median_s * OUTLIER;
}

/* The median step of rows number `from` to `to` of those that are usual; sorted in at most BLOCK
 * places, evenly taken, so that no memory is asked for. */
#define BLOCK 256
static double block_median(const struct knee_train_log *log, size_t from, size_t to)
{
    double values[BLOCK];
    size_t number = 0, count = 0, stride = (to - from + BLOCK - 1) / BLOCK;
    for (size_t i = 0; i < log->row_count && number < to; i++) {
        if (!is_usual(log, &log->rows[i]))
            continue;
        if (number >= from && (number - from) % stride == 0)
            values[count++] = log->rows[i].step_s;
        number++;
    }
    return knee_median(values, count);
}

/* The later half of the steps from eight on, as the log's own median takes them. */
static void measure_side(const struct knee_train_log *log, struct knee_log_side *side)
{
    size_t usual = 0;
    for (size_t i = 0; i < log->row_count; i++)
        usual += is_usual(log, &log->rows[i]);
    size_t first = usual >= 8 ? usual / 2 : 0;
    size_t steps = usual - first, blocks = steps < BLOCKS ? steps : BLOCKS;
    double sum = 0, squares = 0, medians[BLOCKS];
    *side = (struct knee_log_side){.log = log, .step_s = log->median_s, .error_s = NAN};
    side->steps = steps;
    for (size_t b = 0; b < blocks; b++) {
        medians[b] =
            block_median(log, first + steps * b / blocks, first + steps * (b + 1) / blocks);
        sum += medians[b];
    }
    for (size_t b = 0; b < blocks; b++)
        squares += (medians[b] - sum / (double)blocks) * (medians[b] - sum / (double)blocks);
    if (blocks > 1)
        side->error_s = sqrt(squares / (double)(blocks - 1) / (double)blocks);
}

/* ---- What the logs say of their jobs ---- */

static bool differ(double before, double after)
{
    return (isnan(before) != isnan(after)) ||
           fabs(before - after) > SAME_WORK * fmax(fabs(before), fabs(after));
}

static struct knee_log_change *new_change(struct knee_log_comparison *c, const char *what)
{
    if (c->change_count == KNEE_LOG_CHANGES) {
        c->more_changes++;
        return NULL;
    }
    struct knee_log_change *change = &c->changes[c->change_count++];
    change->what = what;
    return change;
}

static void put_number(double value, char *out)
{
    if (isnan(value))
        knee_format(out, KNEE_LOG_WORD, "not said");
    else
        knee_format(out, KNEE_LOG_WORD, "%.10g", value);
}

static void compare_number(struct knee_log_comparison *c, const char *what, double before,
                           double after)
{
    struct knee_log_change *change = differ(before, after) ? new_change(c, what) : NULL;
    if (!change)
        return;
    put_number(before, change->before);
    put_number(after, change->after);
}

static void compare_words(struct knee_log_comparison *c, const char *what, const char *before,
                          const char *after)
{
    struct knee_log_change *change = strcmp(before, after) != 0 ? new_change(c, what) : NULL;
    if (!change)
        return;
    knee_format(change->before, KNEE_LOG_WORD, "%.40s", before[0] ? before : "not said");
    knee_format(change->after, KNEE_LOG_WORD, "%.40s", after[0] ? after : "not said");
}

static const char *choice_name(const struct knee_key *key, int row)
{
    return row < 0 ? "" : key->choices->name((size_t)row);
}

/* Rows of a table of keys: numbers and choices. `skip` is compared separately above. */
static void compare_keys(struct knee_log_comparison *c, const struct knee_keys *keys,
                         const void *before, const void *after)
{
    static const char *const skip[] = {"seq", "micro-batch", "global-batch", "global-tokens"};
    for (size_t i = 0; i < keys->count; i++) {
        const struct knee_key *key = &keys->rows[i];
        const char *b = (const char *)before + key->offset, *a = (const char *)after + key->offset;
        bool skipped = false;
        for (size_t k = 0; k < sizeof skip / sizeof *skip; k++)
            skipped = skipped || strcmp(key->name, skip[k]) == 0;
        if (skipped)
            continue;
        if (key->kind == KNEE_KEY_NUMBER)
            compare_number(c, key->name, *(const double *)(const void *)b,
                           *(const double *)(const void *)a);
        else /* shapes and plans have numbers and choices */
            compare_words(c, key->name, choice_name(key, *(const int *)(const void *)b),
                          choice_name(key, *(const int *)(const void *)a));
    }
}

static void compare_jobs(struct knee_log_comparison *c, const struct knee_train_log *before,
                         const struct knee_train_log *after)
{
    compare_number(c, "GPUs", before->workers, after->workers);
    compare_number(c, "global batch", before->batch, after->batch);
    compare_number(c, "micro-batch", before->micro_batch, after->micro_batch);
    compare_number(c, "sequence", before->seq, after->seq);
    compare_number(c, "parameters", before->params, after->params);
    compare_words(c, "GPU", before->gpu, after->gpu);
    compare_words(c, "model", before->model, after->model);
    compare_words(c, "log format", before->format, after->format);
    compare_keys(c, &knee_shape_keys, &before->shape, &after->shape);
    compare_keys(c, &knee_plan_keys, &before->plan, &after->plan);
}

/* ---- Together ---- */

/* Work of one GPU in a step: sequences, times their length if both logs give it. */
static double work_ratio(const struct knee_train_log *before, const struct knee_train_log *after)
{
    double batch = after->batch / before->batch, workers = after->workers / before->workers;
    double seq = after->seq / before->seq;
    return (isnan(batch) ? 1 : batch) * (isnan(seq) ? 1 : seq) / (isnan(workers) ? 1 : workers);
}

void knee_compare_logs(const struct knee_train_log *before, const struct knee_train_log *after,
                       struct knee_log_comparison *out)
{
    memset(out, 0, sizeof *out);
    measure_side(before, &out->before);
    measure_side(after, &out->after);
    double b = out->before.step_s, a = out->after.step_s;
    out->work = work_ratio(before, after);
    out->longer = a / b - 1;
    out->slower = a / b / out->work - 1;
    out->noise = sqrt(pow(out->before.error_s / b, 2) + pow(out->after.error_s / a, 2));
    out->chance = CHANCE * out->noise;
    out->significant = isnan(out->noise) || fabs(out->slower) > out->chance;
    compare_jobs(out, before, after);
}
