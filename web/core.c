/* SPDX-License-Identifier: MIT */
/*
 * The core for the page: the same objects as the program's, behind a few functions that take lines
 * of "key=value" and leave text (JSON, as --json prints it) to be fetched. Strings come in at
 * kw_alloc(), the answer stands at kw_text() for kw_length() bytes until the next call. One file is
 * read at a time; bytes are pushed into the room that kw_trace_room() offers.
 */
#include "base/error.h"
#include "base/keys.h"
#include "base/number.h"
#include "base/text.h"
#include "cluster/hardware.h"
#include "job/job.h"
#include "knee_out.h"
#include "out/json.h"
#include "out/show_plan.h"
#include "out/show_prediction.h"
#include "timeline/account.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(#name))) name

static struct knee_text answer;

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

static void clear(void)
{
    knee_text_release(&answer);
}

static int say_error(const struct knee_err *err)
{
    struct knee_json json = {.text = &answer};
    clear();
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "where", err->where);
    knee_json_string(&json, "error", err->what);
    knee_json_string(&json, "hint", err->hint);
    knee_json_close(&json, '}');
    return (int)err->status;
}

/* ---- Inputs ---- */

enum { MOST_LEVERS = 16 };

/* Lines of key=value into an object; "lever=NAME" lines are kept apart. `lines` is cut up. */
static knee_status set_lines(const struct knee_keys *keys, void *object, char *lines, char **levers,
                             size_t *lever_count, struct knee_err *err)
{
    for (char *line = lines, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        char *value = strchr(line, '=');
        if (!value)
            continue;
        *value++ = '\0';
        if (strcmp(line, "lever") == 0) {
            if (lever_count && *lever_count < MOST_LEVERS)
                levers[(*lever_count)++] = value;
            continue;
        }
        knee_status status = knee_keys_set(keys, object, line, value, KNEE_FLAG, err);
        if (status)
            return status;
    }
    return KNEE_OK;
}

static const char *unit_name(enum knee_unit unit)
{
    static const char *const names[KNEE_UNITS] = {"count", "factor",  "fraction", "seconds",
                                                  "bytes", "bytes/s", "flop/s",   "/s",
                                                  "watts", "dollars", "joules"};
    return names[unit];
}

static void put_keys(struct knee_json *json, const char *name, const struct knee_keys *keys)
{
    static const char *const kinds[] = {"number", "choice", "workers", "switch", "word", "choice"};
    knee_json_open(json, name, '[');
    for (size_t i = 0; i < keys->count; i++) {
        const struct knee_key *key = &keys->rows[i];
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "name", key->name);
        knee_json_string(json, "kind", kinds[key->kind]);
        knee_json_string(json, "unit", key->kind == KNEE_KEY_NUMBER ? unit_name(key->unit) : "");
        knee_json_string(json, "example",
                         key->kind == KNEE_KEY_NUMBER ? knee_unit_example(key->unit) : "");
        knee_json_string(json, "group", key->group);
        knee_json_string(json, "otherwise", key->otherwise);
        knee_json_string(json, "help", key->help);
        if (key->choices) {
            knee_json_open_flat(json, "choices", '[');
            for (size_t c = 0; c < key->choices->count(); c++)
                knee_json_string(json, NULL, key->choices->name(c));
            knee_json_close(json, ']');
        }
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

/* The tables that the program's flags come from: the page builds its forms from them. */
int EXPORT(kw_keys)(void)
{
    struct knee_json json = {.text = &answer};
    clear();
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "version", KNEE_VERSION);
    put_keys(&json, "predict", &knee_job_keys);
    put_keys(&json, "tax", &knee_tax_keys);
    knee_json_close(&json, '}');
    return answer.failed ? KNEE_SYSTEM : KNEE_OK;
}

/* ---- Predict and tax ---- */

static struct knee_job measured; /* from the trace at hand */
static bool has_measured;

/* With `levers`, the answer is that of the job after them, at the count they leave. */
static int predict(struct knee_job *job, char *lines)
{
    char *levers[MOST_LEVERS];
    size_t lever_count = 0;
    struct knee_prediction prediction, changed;
    struct knee_err err = {0};
    struct knee_style style = {0};
    knee_status status = set_lines(&knee_job_keys, job, lines, levers, &lever_count, &err);
    if (!status)
        status = knee_predict(job, NULL, &prediction, &err);
    if (status)
        return say_error(&err);
    if (lever_count) {
        struct knee_job after = prediction.job;
        double workers = prediction.at.workers;
        for (size_t i = 0; i < lever_count; i++)
            knee_lever_apply(&prediction, levers[i], &after, &workers);
        after.at = workers;
        knee_prediction_release(&prediction);
        status = knee_predict(&after, NULL, &changed, &err);
        if (status)
            return say_error(&err);
        prediction = changed;
    }
    clear();
    knee_write_prediction(&prediction, NULL, KNEE_JSON, &style, &answer);
    knee_prediction_release(&prediction);
    return answer.failed ? KNEE_SYSTEM : KNEE_OK;
}

int EXPORT(kw_predict)(char *lines)
{
    struct knee_job job;
    knee_job_init(&job);
    return predict(&job, lines);
}

/* The same from the step that was measured in the trace at hand. A trace shows times, not links: so
 * the link's bandwidth and the batch change by factors, and latency is added to every hop. */
int EXPORT(kw_what_if)(char *lines, double bandwidth_times, double latency_added_s,
                       double batch_times)
{
    struct knee_job job = measured;
    struct knee_err err = {.status = KNEE_USAGE, .what = "there is no trace yet"};
    if (!has_measured)
        return say_error(&err);
    struct knee_cluster hops;
    struct knee_group all = {job.measured_workers, 1, true};
    knee_hardware_cluster(&job.hw, &hops);
    knee_cluster_free_latency(&hops);
    for (size_t l = 0; l < hops.level_count; l++)
        hops.levels[l].latency_s = latency_added_s;
    job.comm_time_s /= bandwidth_times;
    job.comm_time_s +=
        knee_collective_s(&hops, KNEE_OP_ALL_REDUCE, all, 0, knee_job_algorithm(&job));
    job.batch_scale *= batch_times;
    return predict(&job, lines);
}

/* The step at the verdict's count under sets of levers: {"rows": [...]}, one for each line of
 * `sets`, levers apart by '+'. A lever that does not apply changes nothing. */
int EXPORT(kw_regimes)(char *lines, char *sets)
{
    struct knee_job job;
    struct knee_prediction before;
    struct knee_err err = {0};
    struct knee_json json = {.text = &answer};
    knee_job_init(&job);
    knee_status status = set_lines(&knee_job_keys, &job, lines, NULL, NULL, &err);
    if (!status)
        status = knee_predict(&job, NULL, &before, &err);
    if (status)
        return say_error(&err);
    clear();
    knee_json_open(&json, NULL, '{');
    knee_json_open(&json, "rows", '[');
    for (char *set = sets, *next; set && *set; set = next) {
        next = strchr(set, '\n');
        if (next)
            *next++ = '\0';
        struct knee_job after = before.job;
        double workers = before.at.workers;
        for (char *name = set, *rest; name; name = rest) {
            rest = strchr(name, '+');
            if (rest)
                *rest++ = '\0';
            knee_lever_apply(&before, name, &after, &workers);
        }
        struct knee_terms terms;
        struct knee_row row;
        knee_terms_init(&after, &terms);
        knee_evaluate(&terms, workers, &row);
        knee_row_json(&json, NULL, &row);
    }
    knee_json_close(&json, ']');
    knee_json_close(&json, '}');
    knee_prediction_release(&before);
    return answer.failed ? KNEE_SYSTEM : KNEE_OK;
}

int EXPORT(kw_tax)(char *lines)
{
    struct knee_tax_job job;
    struct knee_tax tax;
    struct knee_err err = {0};
    struct knee_style style = {0};
    knee_tax_job_init(&job);
    knee_status status = set_lines(&knee_tax_keys, &job, lines, NULL, NULL, &err);
    if (!status)
        status = knee_tax_run(&job, &tax, &err);
    if (status)
        return say_error(&err);
    clear();
    knee_write_tax(&tax, KNEE_JSON, &style, &answer);
    return answer.failed ? KNEE_SYSTEM : KNEE_OK;
}

/* The same degrees priced operation by operation: {"found": a plan as in knee plan --json, "rows":
 * ever more replicas of it at one global batch, 4Mi tokens or more}. Tax keys come in. */

static knee_status price(const struct knee_shape *shape, const struct knee_machine *machine,
                         const struct knee_plan *asked, struct knee_found *found,
                         struct knee_err *err)
{
    found->plan = *asked;
    knee_status status = knee_plan_complete(&found->plan, shape, machine, err);
    if (!status)
        knee_plan_price(shape, machine, &found->plan, &found->cost);
    return status;
}

int EXPORT(kw_plan)(char *lines)
{
    struct knee_tax_job job;
    struct knee_tax tax;
    struct knee_shape shape;
    struct knee_machine machine;
    struct knee_plan plan;
    struct knee_found found, more;
    struct knee_err err = {0};
    struct knee_json json = {.text = &answer};
    knee_tax_job_init(&job);
    knee_status status = set_lines(&knee_tax_keys, &job, lines, NULL, NULL, &err);
    if (!status)
        status = knee_tax_run(&job, &tax, &err);
    if (!status)
        status = knee_tax_plan(&tax.job, &shape, &machine, &plan, &err);
    if (status)
        return say_error(&err);
    found.plan = plan;
    knee_plan_price(&shape, &machine, &plan, &found.cost);
    plan.dp = plan.vp = NAN; /* searched anew for more replicas */
    clear();
    knee_json_open(&json, NULL, '{');
    knee_found_json(&json, "found", &found);
    knee_json_open(&json, "rows", '[');
    plan.global_batch = fmax(plan.global_batch, floor(4194304 / shape.seq)); /* as knee plan's */
    double first = 0, smallest = plan.tp * plan.pp * fmax(1, plan.shard_size);
    for (double gpus = smallest; gpus <= 65536; gpus *= 2) {
        plan.gpus = gpus;
        if (price(&shape, &machine, &plan, &more, &err))
            continue;
        double each = more.cost.tokens_per_s / gpus;
        first = first > 0 ? first : each;
        knee_json_open_flat(&json, NULL, '{');
        knee_json_number(&json, "gpus", gpus);
        knee_json_number(&json, "global_batch", plan.global_batch);
        knee_json_number(&json, "tokens_per_s", more.cost.tokens_per_s);
        knee_json_number(&json, "efficiency", each / first);
        knee_json_number(&json, "mfu", more.cost.mfu_causal);
        knee_json_bool(&json, "fits", more.cost.fits);
        knee_json_close(&json, '}');
    }
    knee_json_close(&json, ']');
    knee_json_close(&json, '}');
    return answer.failed ? KNEE_SYSTEM : KNEE_OK;
}

/* ---- Logs of measured collectives ---- */

/* What each collective of a log took beside what it should take. */
static knee_status against(const struct knee_log *log, struct knee_err *err)
{
    struct knee_cluster cluster;
    struct knee_collective_query query;
    struct knee_collective collective;
    struct knee_style style = {0};
    double *bytes = malloc(KNEE_SIZES_MAX * sizeof *bytes);
    if (!bytes)
        return KNEE_SYSTEM;
    knee_log_cluster(log, NULL, &cluster);
    knee_log_question(log, &cluster, bytes, &query);
    knee_status status = KNEE_INPUT;
    if (cluster.plain) /* the fit that their link takes is not worth its bytes in the page */
        knee_fail(err, status, log->file,
                  "it is of hosts without GPUs, which have no preset; knee collective --against "
                  "fits their link");
    else
        status = knee_collective_run(&cluster, &query, NULL, &collective, err);
    if (!status) {
        knee_collective_against(&collective, log);
        clear();
        knee_write_collective(&collective, KNEE_JSON, &style, &answer);
        knee_collective_release(&collective);
    }
    free(bytes);
    return status;
}

/* The answer is that of knee collective --against, for the log's first table. */
int EXPORT(kw_log)(const char *name, const char *text, size_t length)
{
    struct knee_logs logs = {0};
    struct knee_err err = {0};
    knee_status status = knee_logs_read(&logs, text, length, name, NULL, &err);
    if (!status)
        status = against(&logs.logs[0], &err);
    knee_logs_release(&logs);
    return status ? say_error(&err) : answer.failed ? KNEE_SYSTEM : KNEE_OK;
}

/* ---- Traces ---- */

enum { BINS = 1 << 15, LANES = 4 };

static struct knee_trace *traces;
static size_t trace_count;
static struct knee_trace_reader *reader;
static struct knee_account account;
static bool has_account;
static size_t room_size;

/* Time covered in each of BINS parts of the common window, for drawing from afar. Lane 0 has one
 * value per label; the others are compute, communication and copies. */
struct overview {
    float labels[BINS][KNEE_LABELS];
    float lanes[BINS][LANES - 1];
};
static struct overview *overviews; /* per rank */
static double view_start_ns, view_length_ns;

static void forget_account(void)
{
    if (has_account)
        knee_account_release(&account);
    has_account = has_measured = false;
    free(overviews);
    overviews = NULL;
}

void EXPORT(kw_trace_reset)(void)
{
    forget_account();
    knee_trace_abandon(reader);
    reader = NULL;
    for (size_t i = 0; i < trace_count; i++)
        knee_trace_release(&traces[i]);
    free(traces);
    traces = NULL;
    trace_count = 0;
}

int EXPORT(kw_trace_begin)(const char *name)
{
    knee_trace_abandon(reader);
    struct knee_trace *more = realloc(traces, (trace_count + 1) * sizeof *traces);
    traces = more ? more : traces;
    reader = more ? knee_trace_begin(name, NULL, NULL) : NULL;
    return reader ? KNEE_OK : KNEE_SYSTEM;
}

char *EXPORT(kw_trace_room)(void)
{
    room_size = 0;
    return reader ? knee_trace_room(reader, &room_size) : NULL;
}

size_t EXPORT(kw_trace_room_size)(void)
{
    return room_size;
}

void EXPORT(kw_trace_filled)(size_t size)
{
    if (reader)
        knee_trace_filled(reader, size);
}

/* The file at hand is complete. */
int EXPORT(kw_trace_end)(void)
{
    struct knee_err err = {0};
    knee_status status = KNEE_SYSTEM;
    if (reader)
        status = knee_trace_end(reader, &traces[trace_count], &err);
    reader = NULL;
    if (status)
        return say_error(&err);
    trace_count++;
    return KNEE_OK;
}

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

static int lane_of(enum knee_span_kind kind)
{
    return kind == KNEE_SPAN_COMM ? 1 : kind == KNEE_SPAN_COPY ? 2 : 0;
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
        cover(&view->lanes[0][lane_of(span->kind)], LANES - 1, (double)span->start_ns + own,
              (double)span->end_ns + own);
    }
}

static bool make_overviews(void)
{
    double start = INFINITY, end = -INFINITY;
    for (size_t r = 0; r < account.rank_count; r++) {
        double own = (double)own_shift(&account.ranks[r]);
        start = fmin(start, (double)account.ranks[r].start_ns + own);
        end = fmax(end, (double)account.ranks[r].end_ns + own);
    }
    view_start_ns = start;
    view_length_ns = fmax(1, end - start);
    overviews = calloc(account.rank_count, sizeof *overviews);
    for (size_t r = 0; r < account.rank_count && overviews; r++)
        fill_overview(&account.ranks[r], &overviews[r]);
    return overviews != NULL;
}

/* All files are there: account, diagnose, answer as knee trace --json. `lines` are job keys. */
int EXPORT(kw_trace_finish)(char *lines)
{
    struct knee_err err = {0};
    struct knee_job job;
    struct knee_diagnosis diagnosis;
    struct knee_style style = {0};
    forget_account();
    knee_job_init(&job);
    knee_status status = set_lines(&knee_job_keys, &job, lines, NULL, NULL, &err);
    if (!status)
        status = knee_account(traces, trace_count, NULL, &account, &err);
    if (status)
        return say_error(&err);
    has_account = true;
    if (knee_hardware_has_cluster(&job.hw))
        knee_expect_collectives(&account, &job.hw.cluster);
    else
        knee_expect_of_gpus(&account);
    status = knee_diagnose(&account, &job, NULL, &diagnosis, &err);
    if (status)
        return say_error(&err);
    measured = diagnosis.prediction.job;
    has_measured = true;
    struct knee_trace_report report = {traces, trace_count, &account, &diagnosis};
    clear();
    knee_write_trace(&report, KNEE_JSON, &style, &answer);
    knee_diagnosis_release(&diagnosis);
    return answer.failed || !make_overviews() ? KNEE_SYSTEM : KNEE_OK;
}

double EXPORT(kw_view_length_ns)(void)
{
    return view_length_ns;
}

/* ---- Drawing: what each of `width` columns of [from, to) shows, two bytes each ---- */

/* First row whose start is after `ns`. */
static size_t first_run_after(const struct knee_rank_account *rank, int64_t ns)
{
    size_t low = 0, high = rank->run_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rank->runs[middle].start_ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
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

static size_t first_span_from(const struct knee_rank *rank, int64_t ns)
{
    size_t low = 0, high = rank->span_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rank->spans[middle].start_ns < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* How much of a column a lane is busy. Close up, spans are drawn one by one. */
static void draw_lane(const struct knee_rank_account *rank, const struct overview *view, int lane,
                      double from, double to, size_t width, unsigned char *out)
{
    double per_column = (to - from) / (double)width, per_bin = view_length_ns / BINS;
    memset(out, 0, 2 * width);
    if (per_column >= per_bin) {
        for (size_t x = 0; x < width; x++) {
            double start = from + per_column * (double)x, sum = 0;
            size_t bin = start > 0 ? (size_t)(start / per_bin) : 0;
            size_t last = (size_t)fmax(0, ceil((start + per_column) / per_bin)), first = bin;
            for (; bin < last && bin < BINS; bin++)
                sum += (double)view->lanes[bin][lane];
            out[2 * x] = sum > 0;
            out[2 * x + 1] = (unsigned char)(255 * fmin(1, sum / fmax(1, (double)(last - first))));
        }
        return;
    }
    int64_t own = (int64_t)view_start_ns - own_shift(rank);
    /* a long span may have started well before: look back a little further than what is shown */
    size_t i = first_span_from(rank->source, own + (int64_t)from);
    for (size_t back = 0; back < 512 && i > 0; back++)
        i--;
    for (; i < rank->source->span_count; i++) {
        const struct knee_span *span = &rank->source->spans[i];
        double start = (double)(span->start_ns - own), end = (double)(span->end_ns - own);
        if (start > to)
            break;
        if (lane_of(span->kind) != lane || end < from)
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
    if (!has_account || !overviews || rank >= account.rank_count || !(to_ns > from_ns))
        return;
    if (lane == 0)
        draw_labels(&account.ranks[rank], &overviews[rank], from_ns, to_ns, width, out);
    else if (lane < LANES)
        draw_lane(&account.ranks[rank], &overviews[rank], lane - 1, from_ns, to_ns, width, out);
}

/* What stands at a place: the span's name, start and duration, and the label there. */
int EXPORT(kw_look)(size_t rank, int lane, double at_ns)
{
    struct knee_json json = {.text = &answer};
    clear();
    knee_json_open(&json, NULL, '{');
    if (has_account && rank < account.rank_count) {
        const struct knee_rank_account *r = &account.ranks[rank];
        int64_t own = (int64_t)(view_start_ns + at_ns) - own_shift(r);
        size_t run = first_run_after(r, own);
        knee_json_number(&json, "rank", (double)r->rank);
        if (run > 0 && own < r->end_ns)
            knee_json_string(&json, "label", knee_label_name(r->runs[run - 1].label));
        size_t i = first_span_from(r->source, own + 1);
        for (size_t back = 0; back < 512 && i-- > 0; back++) {
            const struct knee_span *span = &r->source->spans[i];
            if (span->end_ns <= own || (lane > 0 && lane_of(span->kind) != lane - 1))
                continue;
            knee_json_string(&json, "name", r->trace->names[span->name]);
            knee_json_number(&json, "start_s", 1e-9 * (double)(span->start_ns - r->start_ns));
            knee_json_number(&json, "duration_s", 1e-9 * (double)(span->end_ns - span->start_ns));
            knee_json_number(&json, "stream", span->stream);
            break;
        }
    }
    knee_json_close(&json, '}');
    return KNEE_OK;
}
