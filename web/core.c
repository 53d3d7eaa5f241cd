/* SPDX-License-Identifier: MIT */
/*
 * The core for the page: questions as in knee.h, with a few rows of the page's own, and the lists
 * that the timeline is drawn from. Strings come in at kw_alloc(); the last answer stays at
 * kw_text(), kw_length() bytes, until the next call. There is one ask.
 */
#include "ask/ask.h"
#include "ask/pushed.h"
#include "base/keys.h"
#include "base/order.h"
#include "base/text.h"
#include "cluster/hardware.h"
#include "cluster/presets.h"
#include "job/job.h"
#include "lanes.h"
#include "out/json.h"
#include "timeline/account.h"
#include "view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct knee_ask *ask;
static struct knee_text answer;

const struct knee_account *page_account(void)
{
    return &knee_ask_pushed_of(ask)->last.account;
}

struct knee_text *page_answer(void)
{
    knee_text_release(&answer);
    return &answer;
}

void *EXPORT(kw_alloc)(size_t size)
{
    return malloc(size);
}

void EXPORT(kw_free)(void *ptr)
{
    free(ptr);
}

const char *EXPORT(kw_text)(void)
{
    return answer.data ? answer.data : "";
}

size_t EXPORT(kw_length)(void)
{
    return answer.length;
}

/* The status, and in the text what is wrong. */
static int finish(knee_status status, const struct knee_err *err)
{
    struct knee_json json = {.text = &answer};
    if (!status || status == KNEE_GATE)
        return (int)status;
    knee_text_release(&answer);
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "where", err->where);
    knee_json_string(&json, "error", err->what);
    knee_json_string(&json, "hint", err->hint);
    knee_json_close(&json, '}');
    return (int)status;
}

/* How far a long question is; 0: the page wants it to end. */
__attribute__((import_module("page"), import_name("progress"))) int page_progress(double share);

static bool watch(void *ctx, double share)
{
    (void)ctx;
    return page_progress(share) != 0;
}

/* ---- Questions that only the page asks ---- */

static const struct knee_ask_command *const commands[], *const asked[];

/* keys: what the page builds its forms from. */
static knee_status answer_keys(struct knee_ask_question *q, struct knee_err *err)
{
    (void)err;
    knee_ask_put_options(asked, q->outs[0].text);
    return KNEE_OK;
}

/* clusters: {"dgx-h100": "h100", ...}, the GPU of each preset. */
static knee_status answer_clusters(struct knee_ask_question *q, struct knee_err *err)
{
    struct knee_json json = {.text = q->outs[0].text};
    (void)err;
    knee_json_open(&json, NULL, '{');
    for (size_t i = 0; i < knee_cluster_presets_count; i++)
        knee_json_string(&json, knee_cluster_presets[i].name, knee_cluster_presets[i].gpu);
    knee_json_close(&json, '}');
    return KNEE_OK;
}

/* A word is a set of changes joined by '+'; those that do not apply have no effect. */
struct changed {
    struct knee_job job;
    struct knee_prediction prediction;
};

static void init_changed(void *room, void **objects)
{
    struct changed *all = room;
    knee_job_init(&all->job);
    objects[0] = &all->job;
    objects[1] = all;
}

/* The prediction after the first set of changes. */
static knee_status answer_levers(struct knee_ask_question *q, struct knee_err *err)
{
    struct changed *all = q->objects[1];
    struct knee_prediction *p = &all->prediction;
    knee_status status = knee_predict(&all->job, NULL, p, err);
    if (!status && q->word_count) {
        struct knee_terms after;
        double workers = knee_levers_pull(p, q->words[0], &after);
        status = knee_predict_changed(p, &after, workers, p, err);
        if (status)
            knee_prediction_release(p);
    }
    if (status)
        return status;
    ASK_ANSWER(q, &knee_predict_answer, p);
    knee_prediction_release(p);
    return KNEE_OK;
}

/* regimes: {"rows": [...]}, the step at the verdict's count under each set. */
static knee_status answer_regimes(struct knee_ask_question *q, struct knee_err *err)
{
    struct changed *all = q->objects[1];
    struct knee_row rows[64];
    struct knee_regime_rows result = {rows, q->word_count};
    knee_status status = knee_predict(&all->job, NULL, &all->prediction, err);
    if (status)
        return status;
    for (size_t i = 0; i < q->word_count; i++) {
        struct knee_terms after;
        double workers = knee_levers_pull(&all->prediction, q->words[i], &after);
        knee_evaluate(&after, workers, &rows[i]);
    }
    ASK_ANSWER(q, &knee_regimes_answer, &result);
    knee_prediction_release(&all->prediction);
    return KNEE_OK;
}

/* axes: {"found": a tax's degrees as a plan, in the words of knee plan --json}. */
static knee_status answer_axes(struct knee_ask_question *q, struct knee_err *err)
{
    struct knee_tax tax;
    struct knee_shape shape;
    struct knee_machine machine;
    struct knee_found found;
    knee_status status = knee_tax_run(q->objects[0], &tax, err);
    if (!status)
        status = knee_tax_plan(&tax.job, &shape, &machine, &found.plan, err);
    if (status)
        return status;
    knee_plan_price(&shape, &machine, &found.plan, &found.cost);
    ASK_ANSWER(q, &knee_axes_answer, &found);
    return KNEE_OK;
}

static void init_axes(void *room, void **objects)
{
    knee_tax_job_init(room);
    objects[0] = room;
}

/* ---- All questions ---- */

#define OWN(variable, word, most, begin, function)                                                 \
    static const struct knee_ask_command variable = {.name = word,                                 \
                                                     .keys = {&knee_job_keys},                     \
                                                     .most_words = most,                           \
                                                     .operands = "",                               \
                                                     .size = sizeof(struct changed),               \
                                                     .init = begin,                                \
                                                     .answer = function}
OWN(levers, "levers", 1, init_changed, answer_levers);
OWN(regimes, "regimes", 64, init_changed, answer_regimes);
static const struct knee_ask_command keys = {.name = "keys", .answer = answer_keys};
static const struct knee_ask_command clusters = {.name = "clusters", .answer = answer_clusters};
static const struct knee_ask_command axes = {.name = "axes",
                                             .keys = {&knee_tax_keys},
                                             .size = sizeof(struct knee_tax_job),
                                             .init = init_axes,
                                             .answer = answer_axes};

/* What the rest would take is not worth its bytes in the page. */
#define ASKED                                                                                      \
    &knee_ask_predict, &knee_ask_tax, &knee_ask_plan, &knee_ask_diff, &knee_ask_replay,            \
        &knee_ask_scale, &knee_ask_collective, &knee_ask_trace, &knee_ask_hang, &knee_ask_doctor
static const struct knee_ask_command *const asked[] = {ASKED, NULL};
static const struct knee_ask_command *const commands[] = {ASKED,     &levers, &regimes, &keys,
                                                          &clusters, &axes,   NULL};

static bool make_overviews(const struct knee_account *account);

/* The answer is that of knee COMMAND --json, or {where, error, hint}. */
int EXPORT(kw_ask)(const char *command, const char *lines)
{
    struct knee_err err = {.status = KNEE_OK};
    knee_text_release(&answer);
    knee_status status = knee_ask_lines(
        ask, &(struct knee_ask_asked){commands, command, lines, KNEE_JSON}, &answer, &err);
    if (!status && strcmp(command, "trace") == 0 &&
        !make_overviews(&knee_ask_pushed_of(ask)->last.account))
        status = knee_fail(&err, KNEE_SYSTEM, "", "out of memory");
    return finish(status, &err);
}

/* Bytes that a line names; they must stay where they are until it was asked. */
int EXPORT(kw_attach)(const char *name, const char *data, size_t length)
{
    struct knee_err err = {.status = KNEE_OK};
    return finish(knee_attach(ask, name, data, length, &err), &err);
}

/* What a question made beside its answer; empty: nothing of this name. */
void EXPORT(kw_pull)(const char *name)
{
    const struct knee_text *made = knee_pull(ask, name);
    knee_text_release(&answer);
    if (made)
        knee_text_add(&answer, made->data, made->length);
}

/* ---- Traces, pushed ---- */

enum { BINS = 1 << 15 };

/* Time covered in each of BINS parts of the common window, for drawing from afar, and the spans by
 * lane, for drawing close up. */
struct overview {
    float labels[BINS][KNEE_LABELS];
    float busy[BINS][LANES];
    struct lanes lanes;
};
static struct overview *overviews; /* per rank */
static size_t overview_count;
static double view_start_ns, view_length_ns;

static size_t room_size;

static void drop_overviews(void)
{
    for (size_t r = 0; r < overview_count; r++)
        lanes_release(&overviews[r].lanes);
    free(overviews);
    overviews = NULL;
    overview_count = 0;
}

/* A new ask, with nothing attached and pushed. Without memory there is none: the calls that need
 * one then fail. */
int EXPORT(kw_reset)(void)
{
    drop_overviews();
    knee_ask_end(ask);
    ask = knee_ask_begin(NULL);
    if (ask)
        knee_ask_watch(ask, watch, NULL);
    return ask ? KNEE_OK : KNEE_SYSTEM;
}

int EXPORT(kw_push_begin)(const char *name)
{
    struct knee_err err = {.status = KNEE_OK};
    return finish(knee_push_begin(ask, name, &err), &err);
}

char *EXPORT(kw_push_room)(void)
{
    return knee_push_room(ask, &room_size);
}

size_t EXPORT(kw_push_room_size)(void)
{
    return room_size;
}

void EXPORT(kw_push_filled)(size_t size)
{
    knee_push_filled(ask, size);
}

int EXPORT(kw_push_end)(void)
{
    struct knee_err err = {.status = KNEE_OK};
    return finish(knee_push_end(ask, &err), &err);
}

int EXPORT(kw_push_again)(void)
{
    return knee_push_again(ask);
}

/* ---- Drawing from afar ---- */

static int64_t own_shift(const struct knee_rank_account *rank)
{
    return rank->trace->base_ns + rank->shift_ns;
}

/* Adds [start, end) on the common clock to bins of `stride` floats. */
static void cover(float *bins, size_t stride, double start_ns, double end_ns)
{
    double scale = BINS / view_length_ns;
    double from = (start_ns - view_start_ns) * scale, to = (end_ns - view_start_ns) * scale;
    size_t bin = from > 0 ? (size_t)from : 0;
    for (; bin < BINS && (double)bin < to; bin++) {
        double a = fmax(from, (double)bin), b = fmin(to, (double)bin + 1);
        bins[bin * stride] += (float)(b - a);
    }
}

static void fill_overview(const struct knee_rank_account *rank, struct overview *view)
{
    double own = (double)own_shift(rank);
    for (size_t i = 0; i < rank->run_count; i++) {
        int64_t end = i + 1 < rank->run_count ? rank->runs[i + 1].start_ns : rank->end_ns;
        cover(&view->labels[0][rank->runs[i].label], KNEE_LABELS,
              (double)rank->runs[i].start_ns + own, (double)end + own);
    }
    for (size_t i = 0; i < rank->source->span_count; i++) {
        const struct knee_span *span = &rank->source->spans[i];
        cover(&view->busy[0][lane_of(span->kind)], LANES, (double)span->start_ns + own,
              (double)span->end_ns + own);
    }
}

static bool make_overviews(const struct knee_account *account)
{
    bool good = true;
    drop_overviews();
    double start = INFINITY, end = -INFINITY;
    for (size_t r = 0; r < account->rank_count; r++) {
        double own = (double)own_shift(&account->ranks[r]);
        start = fmin(start, (double)account->ranks[r].start_ns + own);
        end = fmax(end, (double)account->ranks[r].end_ns + own);
    }
    view_start_ns = start;
    view_length_ns = fmax(1, end - start);
    overviews = calloc(account->rank_count + 1, sizeof *overviews);
    overview_count = overviews ? account->rank_count : 0;
    for (size_t r = 0; r < overview_count && good; r++) {
        fill_overview(&account->ranks[r], &overviews[r]);
        good = lanes_make(&overviews[r].lanes, account->ranks[r].source);
    }
    return overviews && good;
}

const struct lanes *page_lanes(size_t rank)
{
    return rank < overview_count ? &overviews[rank].lanes : NULL;
}

double page_view_start_ns(void)
{
    return view_start_ns;
}

double EXPORT(kw_view_length_ns)(void)
{
    return view_length_ns;
}

/* ---- Drawing: what each of `width` columns of [from, to) shows, two bytes each ---- */

/* First row whose start is after `ns`. */
static size_t first_run_after(const struct knee_rank_account *rank, int64_t ns)
{
    size_t low;
    KNEE_BISECT(low, rank->run_count, rank->runs[low].start_ns <= ns);
    return low;
}

/* The label that takes most of a column, and how much of it. */
static void draw_labels(const struct knee_rank_account *rank, const struct overview *view,
                        double from, double to, size_t width, unsigned char *out)
{
    double per_column = (to - from) / (double)width, per_bin = view_length_ns / BINS;
    for (size_t x = 0; x < width; x++) {
        double sums[KNEE_LABELS] = {0}, start = from + per_column * (double)x, all = 0;
        if (per_column >= per_bin) {
            size_t bin = start > 0 ? (size_t)(start / per_bin) : 0;
            size_t last = (size_t)fmax(0, ceil((start + per_column) / per_bin));
            for (; bin < last && bin < BINS; bin++)
                for (int label = 0; label < KNEE_LABELS; label++)
                    sums[label] += (double)view->labels[bin][label];
        } else {
            int64_t own = (int64_t)(view_start_ns + start) - own_shift(rank);
            size_t run = first_run_after(rank, own);
            int64_t sums_ns[KNEE_LABELS] = {0};
            size_t at = run ? run - 1 : 0;
            knee_sum_labels(rank, &at, own, own + (int64_t)fmax(1, per_column), sums_ns);
            for (int label = 0; label < KNEE_LABELS; label++)
                sums[label] = (double)sums_ns[label];
        }
        int most = 0;
        for (int label = 0; label < KNEE_LABELS; label++) {
            all += sums[label];
            most = sums[label] > sums[most] ? label : most;
        }
        out[2 * x] = all > 0 ? (unsigned char)(most + 1) : 0;
        out[2 * x + 1] = all > 0 ? (unsigned char)(255 * sums[most] / all) : 0;
    }
}

/* How much of a column a lane is busy. Close up, spans are drawn one by one. */
static void draw_lane(size_t row, int lane, double from, double to, size_t width,
                      unsigned char *out)
{
    const struct knee_rank_account *rank = &page_account()->ranks[row];
    const struct overview *view = &overviews[row];
    double per_column = (to - from) / (double)width, per_bin = view_length_ns / BINS;
    memset(out, 0, 2 * width);
    if (per_column >= per_bin) {
        for (size_t x = 0; x < width; x++) {
            double start = from + per_column * (double)x, sum = 0;
            size_t bin = start > 0 ? (size_t)(start / per_bin) : 0;
            size_t last = (size_t)fmax(0, ceil((start + per_column) / per_bin)), first = bin;
            for (; bin < last && bin < BINS; bin++)
                sum += (double)view->busy[bin][lane];
            out[2 * x] = sum > 0;
            out[2 * x + 1] = (unsigned char)(255 * fmin(1, sum / fmax(1, (double)(last - first))));
        }
        return;
    }
    int64_t own = (int64_t)view_start_ns - own_shift(rank);
    const struct lane *rows = &view->lanes.lane[lane];
    for (size_t i = lane_first_open(rows, own + (int64_t)from); i < rows->count; i++) {
        const struct knee_span *span = &rank->source->spans[rows->rows[i]];
        double start = (double)(span->start_ns - own), end = (double)(span->end_ns - own);
        if (start > to)
            break;
        if (end < from)
            continue;
        size_t x = start > from ? (size_t)((start - from) / per_column) : 0;
        for (; x < width && from + per_column * (double)x < end; x++) {
            out[2 * x] = 1;
            out[2 * x + 1] = 255;
        }
    }
}

/* lane 0: labels; 1 compute, 2 communication, 3 copies. Times from the view's start. */
void EXPORT(kw_draw)(size_t rank, int lane, double from_ns, double to_ns, size_t width,
                     unsigned char *out)
{
    memset(out, 0, 2 * width);
    const struct knee_account *account = page_account();
    if (rank >= overview_count || rank >= account->rank_count || !(to_ns > from_ns))
        return;
    if (lane == 0)
        draw_labels(&account->ranks[rank], &overviews[rank], from_ns, to_ns, width, out);
    else if (lane <= LANES)
        draw_lane(rank, lane - 1, from_ns, to_ns, width, out);
}

/* The span at a moment, in one lane or (lane 0) in any; the one begun last. */
static const struct knee_span *span_at(const struct knee_rank *rank, const struct lanes *lanes,
                                       int lane, int64_t ns)
{
    const struct knee_span *found = NULL;
    for (int i = 0; i < LANES; i++) {
        const struct knee_span *span =
            lane == 0 || lane == i + 1 ? lane_at(&lanes->lane[i], rank, ns) : NULL;
        if (span && (!found || span->start_ns > found->start_ns))
            found = span;
    }
    return found;
}

/* What stands at a place: the span's name, start and duration, and the label there. */
int EXPORT(kw_look)(size_t rank, int lane, double at_ns)
{
    struct knee_json json = {.text = &answer};
    const struct knee_account *account = page_account();
    knee_text_release(&answer);
    knee_json_open(&json, NULL, '{');
    if (rank < account->rank_count && rank < overview_count) {
        const struct knee_rank_account *r = &account->ranks[rank];
        int64_t own = (int64_t)(view_start_ns + at_ns) - own_shift(r);
        size_t run = first_run_after(r, own);
        const struct knee_span *span = span_at(r->source, &overviews[rank].lanes, lane, own);
        knee_json_number(&json, "rank", (double)r->rank);
        if (run > 0 && own < r->end_ns)
            knee_json_string(&json, "label", knee_label_name(r->runs[run - 1].label));
        if (span) {
            knee_json_string(&json, "name", r->trace->names[span->name]);
            knee_json_number(&json, "start_s", 1e-9 * (double)(span->start_ns - r->start_ns));
            knee_json_number(&json, "duration_s", 1e-9 * (double)(span->end_ns - span->start_ns));
            knee_json_number(&json, "stream", span->stream);
        }
    }
    knee_json_close(&json, '}');
    return KNEE_OK;
}
