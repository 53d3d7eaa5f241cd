/* SPDX-License-Identifier: MIT */
/* knee diff of two training logs: is the step longer than noise, and what did the logs say changed.
 * Schema knee.diff-logs/1. */
#include "judge/judge.h"
#include "knee_scale.h"
#include "say/short.h"

#include <math.h>

#define COMPARISON struct knee_log_comparison
#define SIDE       struct knee_log_side

/* ---- Fields ---- */

#define OF_LOG(name, kind_of, member)                                                              \
    static void name(const struct knee_at *at, struct knee_value *out)                             \
    {                                                                                              \
        kind_of(out, ((const SIDE *)at->row)->log->member);                                        \
    }
OF_LOG(log_source, knee_value_text, name)
OF_LOG(log_format, knee_value_text, format)
OF_LOG(log_p95, knee_value_number, p95_s)
OF_LOG(log_tokens, knee_value_number, tokens_per_s)
OF_LOG(log_outliers, knee_value_number, outlier_share)
OF_LOG(log_tflops, knee_value_number, tflops)

static const struct knee_field side_fields[] = {
    KNEE_GET(log_source, "source", "log", TEXT, SCREEN, "the log"),
    KEY_BY(log_format, "format", TEXT, "who wrote it"),
    KNEE_FIELD(SIDE, step_s, "step_s", "median step", TIME, SCREEN, "median step"),
    KEY(SIDE, error_s, "error_s", TIME, "its standard error"),
    KNEE_GET(log_p95, "p95_s", "95th percentile", TIME, SCREEN, "95th percentile"),
    KNEE_GET(log_tokens, "tokens_per_s", "tokens/s", LARGE, SCREEN, "throughput"),
    KNEE_GET(log_outliers, "outlier_share", "in outliers", SHARE, SCREEN,
             "of the time, in steps far above the median"),
    KNEE_GET(log_tflops, "tflops", "TFLOP/s printed", NUMBER, FULL, "as the log prints"),
    KNEE_FIELD(SIDE, steps, "steps", "steps", COUNT, SCREEN, "steps compared"),
};
static const struct knee_field change_fields[] = {
    KNEE_FIELD(struct knee_log_change, what, "what", "changed", TEXT, FULL, "a setting"),
    KNEE_FIELD(struct knee_log_change, before, "before", "before", TEXT, FULL, ""),
    KNEE_FIELD(struct knee_log_change, after, "after", "after", TEXT, FULL, ""),
};

ROW_OF(side_row, COMPARISON, index == 0 ? &it->before : index == 1 ? &it->after : NULL)

static const struct knee_field fields[] = {
    KNEE_SENTENCE,
    KEY(COMPARISON, longer, "longer", CHANGE, "step: after / before - 1"),
    KEY(COMPARISON, slower, "slower_at_equal_work", CHANGE, "the same per unit of work"),
    KEY(COMPARISON, work, "work", TIMES, "work of a GPU per step, after / before"),
    KEY(COMPARISON, noise, "noise", SHARE, "standard error"),
    KEY(COMPARISON, chance, "chance", SHARE, "what counts as noise"),
    KEY(COMPARISON, significant, "significant", YES_NO, "more than noise"),
    KNEE_INSIDE(COMPARISON, before, "before", side_fields, "the first log", .flat = true),
    KNEE_INSIDE(COMPARISON, after, "after", side_fields, "the second", .flat = true),
    KNEE_ROWS_BY(side_row, "logs", side_fields, "both, as rows"),
    KNEE_ARRAY(COMPARISON, changes, change_count, "changes", change_fields,
               "what the logs say of their jobs that differs"),
    KEY(COMPARISON, more_changes, "more_changes", COUNT, "not listed"),
};
static const struct knee_view views[] = {
    {.list = "logs"},
    {.list = "changes", .tier = FULL, .title = "Settings that changed"},
};

/* ---- Sentences ---- */

static void say_changes(const COMPARISON *c, struct knee_text *text)
{
    for (size_t i = 0; i < c->change_count && i < 3; i++)
        PUT(text, "{}{} {} -> {}", i ? ", " : "Changed: ", c->changes[i].what,
            knee_safe(c->changes[i].before, 24).s, knee_safe(c->changes[i].after, 24).s);
    if (c->change_count > 3 || c->more_changes)
        PUT(text, " and more (-v)");
    if (c->change_count)
        PUT(text, ".");
    else if (c->significant)
        PUT(text, "Same configuration in both logs: suspect the machine (knee doctor), or record "
                  "both and compare the traces.");
}

static void say(const void *result, struct knee_said *said)
{
    const COMPARISON *c = result;
    bool same_work = fabs(c->work - 1) < KNEE_WORTH_A_WORD;
    const char *way = c->slower < 0 ? "faster" : "slower";
    PUT(&said->title, "{} against {}", knee_safe(c->after.log->name, 30).s,
        knee_safe(c->before.log->name, 30).s);
    if (isnan(c->noise))
        PUT(&said->headline, "The step is {share} {}; too few steps to rule out noise.",
            fabs(c->slower), way);
    else if (!c->significant)
        PUT(&said->headline, "No significant change: {change}, noise is {share}.", c->slower,
            c->chance);
    else
        PUT(&said->headline, "The step is {share} {}{}; noise is {share}.", fabs(c->slower), way,
            same_work ? "" : " at equal work", c->chance);
    PUT(&said->reason, "Step: {time} before, {time} after.", c->before.step_s, c->after.step_s);
    if (!same_work)
        PUT(&said->reason, " Each GPU does {times} the work per step.", c->work);
    say_changes(c, &said->effect);
}

const struct knee_answer_type knee_diff_logs_answer = {
    .schema = "knee.diff-logs/1", KNEE_FIELDS(fields), KNEE_VIEWS(views), .say = say};
