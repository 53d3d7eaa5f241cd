/* SPDX-License-Identifier: MIT */
/* knee validate: how well measured runs are predicted. Schema knee.validate/1. */
#include "knee_runs.h"
#include "say/short.h"

#include <math.h>

#define V      struct knee_validation
#define ERRORS struct knee_run_errors
#define RUN    struct knee_measured_run
#define RESULT struct knee_run_result
#define BAND   struct knee_run_band

static bool crossed(const V *v)
{
    return v->held_out_all.rows > 0;
}
WHEN(when_crossed, void, crossed(knee_top_row(at)))

/* ---- Fields ---- */

#define ERROR(member)                                                                              \
    GETTER(error_##member, ERRORS, knee_value_number(out, it->rows ? it->member : (double)NAN))
ERROR(mape)
ERROR(median)
ERROR(bias)
ERROR(within_5)
ERROR(within_10)
#define ERROR_FIELDS                                                                               \
    KNEE_FIELD(ERRORS, rows, "rows", "rows", COUNT, SCREEN, "predicted"),                          \
        KNEE_GET(error_mape, "mape", "mean error", SHARE, SCREEN, "mean of |error|"),              \
        KNEE_GET(error_median, "median", "median", SHARE, SCREEN, "median of |error|"),            \
        KNEE_GET(error_bias, "bias", "bias", CHANGE, SCREEN, "mean of error"),                     \
        KNEE_GET(error_within_5, "within_5", "within 5%", SHARE, SCREEN, "share of the rows"),     \
        KNEE_GET(error_within_10, "within_10", "within 10%", SHARE, FULL, "share of the rows")
static const struct knee_field error_fields[] = {ERROR_FIELDS};
static const struct knee_field group_fields[] = {
    KNEE_FIELD(ERRORS, name, "name", "source or GPU", TEXT, SCREEN, "the group"), ERROR_FIELDS};

/* The groups of the default table: all, dense, experts, ... that have rows. */
static const void *summary_row(const struct knee_at *at, size_t index)
{
    const V *v = at->row;
    const ERRORS *const all[] = {&v->all,          &v->dense,          &v->moe,
                                 &v->full_config,  &v->assumed,        &v->memory,
                                 &v->held_out_all, &v->held_out_dense, &v->held_out_moe};
    for (size_t i = 0; i < KNEE_COUNT_OF(all); i++)
        if (all[i]->rows > 0 && index-- == 0)
            return all[i];
    return NULL;
}
GETTER(summary_name, ERRORS, const V *v = at->up->row;
       knee_value_printf(out, "%s%s", it->name,
                         it == &v->held_out_all || it == &v->held_out_dense ||
                                 it == &v->held_out_moe
                             ? ", source left out"
                             : ""))
static const struct knee_field summary_fields[] = {
    KNEE_GET(summary_name, "name", "step time of", TEXT, SCREEN, "the group"), ERROR_FIELDS};

#define D(member, words)                                                                           \
    KNEE_FIELD(struct knee_run_decisions, member, #member, #member, NUMBER, FULL, words)
static const struct knee_field decision_fields[] = {
    D(jobs, "with several plans measured"),
    D(regret, "of taking the plan predicted to be fastest"),
    D(regret_of_three, "of timing the first three"),
    D(regret_of_any, "of taking any plan"),
    D(near_best, "share of jobs whose best of three is within 3%"),
    D(pairs, "of plans more than 5% apart"),
    D(pairs_right, "share in the order measured"),
    D(pair_error, "median error of the ratio of two plans"),
};
#define M(member, key, words)                                                                      \
    KNEE_FIELD(struct knee_run_room, member, key, key, NUMBER, FULL, words)
static const struct knee_field room_fields[] = {
    M(ran, "ran", "rows"), M(fits, "fits", "share that may fit"),
    M(measured, "measured", "rows with memory"),
    M(beyond, "beyond_5", "share more than 5% above the prediction")};
#define S(member, key, kind, words) KEY(V, member, key, kind, words)
#define GROUP(member, key, words, ...)                                                             \
    KNEE_INSIDE(V, member, key, error_fields, words, .flat = true, __VA_ARGS__)
A_NUMBER(rows_in_file, V, (double)it->runs->count)
static const struct knee_field totals[] = {
    S(all.rows, "rows", COUNT, "predicted"),
    S(all.mape, "mape", SHARE, "mean of |error|"),
    S(all.median, "median", SHARE, "median of |error|"),
    S(all.bias, "bias", CHANGE, "mean of error"),
    S(all.within_5, "within_5", SHARE, "share of the rows"),
    S(all.within_10, "within_10", SHARE, "share of the rows"),
    S(curve_mape, "curve_mape", SHARE, "of efficiency from one anchor"),
    S(curve_rows, "curve_rows", COUNT, "points of curves"),
    KEY_BY(rows_in_file, "rows_in_file", COUNT, "in all"),
    S(skipped, "skipped", COUNT, "rows that cannot be expressed"),
    S(full, "fully_configured", COUNT, "rows, as the file says"),
    S(skipped_full, "fully_configured_skipped", COUNT, "of those"),
    GROUP(dense, "dense", "models without experts"),
    GROUP(moe, "with_experts", "models with experts"),
    GROUP(full_config, "fully_configured_errors", "rows with everything known"),
    GROUP(assumed, "completed_by_assumption", "rows with something assumed"),
    GROUP(memory, "memory", "memory of one GPU"),
    GROUP(held_out_all, "held_out", "each source left out", .when = when_crossed),
    GROUP(held_out_dense, "held_out_dense", "likewise", .when = when_crossed),
    GROUP(held_out_moe, "held_out_with_experts", "likewise", .when = when_crossed),
    KNEE_INSIDE(V, decisions, "decisions", decision_fields, "what decisions cost", .flat = true),
    KNEE_INSIDE(V, room, "room", room_fields, "memory of runs that ran", .flat = true),
};

/* Bands, beside those made of the sources left out. */
static const BAND *left_out(const struct knee_at *at)
{
    const V *v = at->up->row;
    const BAND *band = at->row;
    if (band >= v->band && band < v->band + KNEE_RUN_BANDS)
        return &v->left_out_band[band - v->band];
    if (band >= v->doubt && band < v->doubt + KNEE_RUN_DOUBTS)
        return &v->left_out_doubt[band - v->doubt];
    return NULL;
}
WHEN(has_left_out, void, when_crossed(at) && left_out(at))
#define LEFT(name, member) A_NUMBER(name, void, (double)left_out(at)->member)
LEFT(left_sources, sources)
LEFT(left_low, low)
LEFT(left_high, high)
LEFT(left_covered, covered_left_out)
#define B(member, head, kind, words) KNEE_FIELD(BAND, member, #member, head, kind, FULL, words)
static const struct knee_field band_fields[] = {
    B(name, "interval", TEXT, "of which rows"),
    B(rows, "rows", COUNT, "rows"),
    B(low, "low", NUMBER, "factor on the prediction"),
    B(high, "high", NUMBER, "factor on the prediction"),
    B(covered, "inside", SHARE, "share of the rows"),
    KEY_BY(left_sources, "sources_left_out", COUNT, "sources", .when = has_left_out),
    KEY_BY(left_low, "low_left_out", NUMBER, "of sources left out", .when = has_left_out),
    KEY_BY(left_high, "high_left_out", NUMBER, "likewise", .when = has_left_out),
    KNEE_GET(left_covered, "covered_left_out", "inside, left out", SHARE, FULL, "likewise",
             .when = has_left_out),
};
ROW_OF(band_row, V, index < KNEE_RUN_BANDS ? &it->band[index] : NULL)
ROW_OF(doubt_row, V,
       index < KNEE_RUN_DOUBTS    ? &it->doubt[index]
       : index == KNEE_RUN_DOUBTS ? &it->memory_band
                                  : NULL)

/* Sources that are far off when left out. */
static const void *far_row(const struct knee_at *at, size_t index)
{
    const V *v = at->row;
    char why[2 * KNEE_RUN_TEXT];
    for (size_t i = 0; i < v->source_count; i++)
        if (knee_held_out_reason(v, i, why) && index-- == 0)
            return &v->held_out[i];
    return NULL;
}
static void far_why(const struct knee_at *at, struct knee_value *out)
{
    const V *v = at->up->row;
    char why[2 * KNEE_RUN_TEXT] = "";
    knee_held_out_reason(v, (size_t)((const ERRORS *)at->row - v->held_out), why);
    knee_value_printf(out, "%s", why);
}
A_TEXT(far_name, void, UP(V)->source[(const ERRORS *)at->row - UP(V)->held_out].name)
static const struct knee_field far_fields[] = {
    KNEE_GET(far_name, "name", "far off when left out", TEXT, FULL, "the source"),
    KNEE_FIELD(ERRORS, mape, "mape", "mean error", SHARE, FULL, "of its rows"),
    KNEE_GET(far_why, "why", "why", TEXT, FULL, "what only it has"),
};
#define CURVE struct knee_run_curve
static const struct knee_field curve_fields[] = {
    KNEE_FIELD(CURVE, name, "name", "curve", TEXT, FULL, "one job at several counts"),
    KNEE_FIELD(CURVE, anchor_gpus, "anchor_gpus", "anchor", COUNT, FULL, "smallest count"),
    KNEE_FIELD(CURVE, rows, "points", "points", COUNT, FULL, "beside the anchor"),
    KNEE_FIELD(CURVE, mape, "mape", "efficiency's error", SHARE, FULL, "mean"),
    KNEE_FIELD(CURVE, knee_measured, "knee_measured", "knee", COUNT, FULL, "measured"),
    KNEE_FIELD(CURVE, knee_predicted, "knee_predicted", "predicted", COUNT, FULL, "predicted"),
};

/* One row per run: what was measured, and beside it what was predicted. */
OBJECT(result_object, void, &UP(V)->result[at->index])
ROW_OF(run_row, V, index < it->runs->count ? &it->runs->run[index] : NULL)
GETTER(profile, RUN,
       const struct knee_profile *profile = it->platform.profile >= 0
                                                ? knee_profile_at((size_t)it->platform.profile)
                                                : NULL;
       knee_value_text(out, profile ? profile->name : "-"))
A_TEXT(skipped, RUN, it->skipped[0] ? it->skipped : NULL)
#define X(member, key, head, kind, words, ...)                                                     \
    KNEE_FIELD(RESULT, member, key, head, kind, FULL, words, __VA_ARGS__)
static const struct knee_field result_fields[] = {
    KNEE_FIELD(RESULT, predicted_s, "predicted_s", "predicted", TIME, FULL, "step"),
    X(low_s, "low_s", NULL, TIME, "where 90 of 100 such runs lie"),
    X(high_s, "high_s", NULL, TIME, "likewise"),
    X(error, "error", "error", CHANGE, "predicted / measured - 1"),
    X(curve_error, "curve_error", NULL, CHANGE, "of efficiency, given the anchor"),
    X(predicted_bytes, "predicted_bytes", "memory, predicted", BYTES, "of one GPU"),
    X(bytes.low, "low_bytes", NULL, BYTES, "low end"),
    X(bytes.high, "high_bytes", NULL, BYTES, "high end"),
    X(fits, "fit_probability", NULL, SHARE, "that it fits"),
    X(measured_efficiency, "efficiency", "efficiency", SHARE, "against the anchor"),
    X(predicted_efficiency, "predicted_efficiency", "predicted", SHARE, "against the anchor"),
    X(efficiency.low, "low_efficiency", NULL, SHARE, "low end"),
    X(efficiency.high, "high_efficiency", NULL, SHARE, "high end"),
    X(held_out_s, "held_out_s", NULL, TIME, "predicted without its source", .when = when_crossed),
    X(held_out_error, "held_out_error", NULL, CHANGE, "likewise", .when = when_crossed),
};
static const struct knee_field run_fields[] = {
    KNEE_FIELD(RUN, id, "id", "run", TEXT, FULL, "of the file"),
    KEY(RUN, source, "source", TEXT, "where it was published"),
    KEY(RUN, gpu, "gpu", TEXT, "the GPU"),
    KNEE_FIELD(RUN, plan.gpus, "gpus", "GPUs", COUNT, FULL, "GPUs"),
    KNEE_GET(profile, "profile", "profile", TEXT, FULL, "the software, as knee knows it"),
    KNEE_FIELD(RUN, step_s, "measured_s", "measured", TIME, FULL, "step"),
    KNEE_FIELD(RUN, memory_bytes, "measured_bytes", "memory", BYTES, FULL, "of one GPU"),
    KNEE_AMONG_BY(result_object, result_fields),
    KNEE_FIELD(RUN, assumed, "assumed", "assumed", TEXT, FULL, "what was missing"),
    KNEE_GET(skipped, "skipped_reason", "skipped", TEXT, FULL, "why it cannot be expressed"),
};
#define REASON struct knee_run_reason
static const struct knee_field reason_fields[] = {
    KNEE_FIELD(REASON, why, "reason", "skipped because", TEXT, FULL, "why"),
    KNEE_FIELD(REASON, rows, "rows", "rows", COUNT, FULL, "rows"),
};
#define GROUPS(member, count, key, words, ...)                                                     \
    KNEE_ARRAY(V, member, count, key, group_fields, words, __VA_ARGS__)
static const struct knee_field fields[] = {
    KNEE_SENTENCE,
    KNEE_GROUP("summary", totals, "all rows"),
    KNEE_ROWS_BY(summary_row, "groups", summary_fields, "errors by kind of row"),
    KNEE_ROWS_BY(band_row, "bands", band_fields, "intervals of the step"),
    KNEE_ROWS_BY(doubt_row, "doubts", band_fields, "intervals of efficiency and memory"),
    GROUPS(source, source_count, "sources", "by source"),
    GROUPS(held_out, source_count, "sources_held_out", "each left out", .when = when_crossed),
    KNEE_ROWS_BY(far_row, "far_off", far_fields, "left out, worse than 25%", .when = when_crossed),
    GROUPS(gpu, gpu_count, "gpus", "by GPU"),
    KNEE_ARRAY(V, curve, curve_count, "curves", curve_fields, "by curve"),
    KNEE_ARRAY(V, reason, reason_count, "reasons", reason_fields, "why rows were skipped"),
    KNEE_ROWS_BY(run_row, "rows", run_fields, "one row per run"),
};
static const struct knee_view views[] = {
    {.list = "rows", .title = "Runs", .tier = FULL},
    {.list = "groups"},
    {.list = "sources", .title = "By source", .tier = FULL},
    {.list = "sources_held_out", .title = "Each source left out", .tier = FULL},
    {.list = "far_off", .tier = FULL},
    {.list = "gpus", .title = "By GPU", .tier = FULL},
    {.list = "curves", .tier = FULL},
    {.list = "bands", .tier = FULL},
    {.list = "doubts", .tier = FULL},
    {.list = "reasons", .tier = FULL},
    {.list = "summary.decisions", .tier = FULL},
};

/* ---- Sentences ---- */

static void say(const void *result, struct knee_said *said)
{
    const V *v = result;
    size_t rows = v->runs->count;
    PUT(&said->title, "{} of {measured runs} predicted", rows - v->skipped, rows);
    if (v->all.rows == 0) {
        PUT(&said->headline, "No run could be predicted; -v shows why.");
        return;
    }
    PUT(&said->headline, "Step times are off by {share} on average, {share} in the median.",
        v->all.mape, v->all.median);
    PUT(&said->reason, "Bias {change}; {share} of the runs are within 5%, {share} within 10%.",
        v->all.bias, v->all.within_5, v->all.within_10);
    if (crossed(v))
        PUT(&said->effect, "With each source left out: {share} on average, {share} in the median.",
            v->held_out_all.mape, v->held_out_all.median);
    if (v->curve_rows > 0)
        PUT(&said->after, "Efficiency from one anchor: off by {share} over {points} of {curves}.\n",
            v->curve_mape, v->curve_rows, v->curve_count);
    if (v->memory.rows > 0)
        PUT(&said->after, "Memory: off by {share} in the median over {runs}.\n", v->memory.median,
            v->memory.rows);
    if (v->skipped > 0)
        PUT(&said->after, "Skipped: {} of {} runs, {} of {} fully configured.\n", v->skipped, rows,
            v->skipped_full, v->full);
    if (!crossed(v))
        PUT(&said->next, "--cross-validate predicts each source from the others");
}

const struct knee_answer_type knee_validate_answer = {
    .schema = "knee.validate/1", KNEE_FIELDS(fields), KNEE_VIEWS(views), .say = say};
