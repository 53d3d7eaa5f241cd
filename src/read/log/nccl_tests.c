/* SPDX-License-Identifier: MIT */
/*
 * The tables of nccl-tests and rccl-tests, of every era: with and without redop and root, with
 * error or #wrong, one half or two, extra columns, times in ms (2017) or us. The header line says
 * which columns there are; where it is lost, the number of words says it. Launchers put things
 * before a line and NCCL's own lines come between, even into the middle of a row: a row that stops
 * early waits for the numbers that follow. Rows whose numbers contradict each other are refused.
 */
#include "base/fold.h"
#include "read/log/log.h"

#include <math.h>
#include <string.h>

#define COLUMNS_MAX 40
#define WORDS_MAX   48

enum column { TIME, ALGBW, BUSBW, WRONG, ERROR_VALUE, QUICKEST, OTHER };

struct layout {
    bool known, redop, root;
    size_t count;                    /* numbers after the type (and redop, root) */
    enum column column[COLUMNS_MAX]; /* of each */
    double time_unit_s;              /* 1e-6 or 1e-3 */
};

/* A row that may still be growing. */
struct row {
    struct knee_slice line; /* where it began */
    size_t line_number;
    double size, count;
    struct knee_slice type, redop;
    bool has_redop;
    size_t number_count;
    double number[COLUMNS_MAX]; /* NaN: N/A */
    bool pending;
};

struct table {
    struct knee_log_reader *r;
    struct layout layout;
    struct row row;
};

static const struct {
    const char *word;
    enum column column;
} header_words[] = {
    {"time", TIME},    {"algbw", ALGBW},       {"busbw", BUSBW},     {"#wrong", WRONG},
    {"wrong", WRONG},  {"error", ERROR_VALUE}, {"res", ERROR_VALUE}, {"delta", ERROR_VALUE},
    {"copybw", OTHER}, {"i_min", OTHER},       {"i_max", OTHER},     {"i_p99", OTHER},
    {"i_cv%", OTHER},  {"cputime", TIME},      {"time(us)", TIME},   {"min", QUICKEST},
};

static bool is_word(struct knee_slice text)
{
    return text.length && knee_is_letter(text.at[0]);
}

/* "size count type redop root time algbw busbw #wrong time ...": true if it is one. */
static bool read_header(struct table *t, struct knee_slice line)
{
    struct layout layout = {.known = true, .time_unit_s = 1e-6};
    struct knee_slice word;
    bool size = false, bus = false;
    while (knee_slice_word(&line, &word)) {
        if (knee_slice_is(word, "#"))
            continue;
        size = size || knee_slice_is(word, "size") || knee_slice_is(word, "bytes") ||
               knee_slice_starts(word, "size(B)");
        if (knee_slice_is(word, "bytes"))
            layout.time_unit_s = 1e-3; /* 2017 */
        layout.redop = layout.redop || knee_slice_is(word, "redop") || knee_slice_is(word, "op");
        layout.root = layout.root || knee_slice_is(word, "root");
        for (size_t i = 0; i < sizeof header_words / sizeof *header_words; i++)
            if (knee_slice_is(word, header_words[i].word) && layout.count < COLUMNS_MAX) {
                layout.column[layout.count++] = header_words[i].column;
                bus = bus || header_words[i].column == BUSBW;
                break;
            }
    }
    if (!size || !bus)
        return false;
    t->layout = layout;
    return true;
}

/* "(B) (elements) (us) (GB/s)" under the header says the unit. */
static bool read_units(struct table *t, struct knee_slice line)
{
    if (!knee_slice_has(line, "(B)") || !knee_slice_has(line, "(GB/s)"))
        return false;
    if (knee_slice_has(line, "(ms)"))
        t->layout.time_unit_s = 1e-3;
    return true;
}

/* Without a header: halves of time, algbw, busbw and one more, perhaps a root before them. */
static bool guess_layout(const struct row *row, struct layout *out)
{
    struct layout layout = {.known = true, .time_unit_s = 1e-6, .redop = row->has_redop};
    size_t n = row->number_count;
    layout.root = n == 9 || n == 5;
    n -= layout.root;
    if (n != 8 && n != 4)
        return false;
    static const enum column half[] = {TIME, ALGBW, BUSBW, WRONG};
    for (size_t i = 0; i < n; i++)
        layout.column[layout.count++] = half[i % 4];
    *out = layout;
    return true;
}

/* ---- One row ---- */

struct half {
    double time_s, algbw, busbw, wrong, quickest_s;
};

/* The halves of a row: 1 or 2; 0 when the numbers do not fill the columns. */
static size_t split(const struct row *row, const struct layout *layout, struct half *halves)
{
    size_t at = layout->root, found = 0;
    if (row->number_count < layout->root + layout->count)
        return 0;
    for (size_t i = 0; i < layout->count; i++, at++) {
        double value = row->number[at];
        if (layout->column[i] == TIME) {
            if (found == 2)
                break;
            halves[found++] = (struct half){value * layout->time_unit_s, NAN, NAN, NAN, NAN};
        }
        if (found == 0)
            continue;
        if (layout->column[i] == ALGBW)
            halves[found - 1].algbw = value;
        if (layout->column[i] == BUSBW)
            halves[found - 1].busbw = value;
        if (layout->column[i] == WRONG)
            halves[found - 1].wrong = value;
        if (layout->column[i] == QUICKEST)
            halves[found - 1].quickest_s = value * layout->time_unit_s;
    }
    return found;
}

/* GB/s are printed with two decimals; past that, and 2 %, size / time must be what stands there. */
static bool agrees(double size, const struct half *half)
{
    double algbw = size / half->time_s * 1e-9;
    return isnan(half->algbw) || fabs(half->algbw - algbw) <= 0.011 + 0.02 * algbw;
}

/* The 2017 tables say nothing about milliseconds; their algbw does. */
static void settle_unit(double size, struct half *halves, size_t count, struct layout *layout)
{
    if (agrees(size, &halves[0]))
        return;
    double other = layout->time_unit_s == 1e-6 ? 1e-3 : 1e-6, factor = other / layout->time_unit_s;
    struct half moved = halves[0];
    moved.time_s *= factor;
    if (!agrees(size, &moved) || !(moved.algbw > 0.1))
        return;
    layout->time_unit_s = other;
    for (size_t i = 0; i < count; i++)
        halves[i].time_s *= factor;
}

static const char *reason_against(double size, const struct half *halves, size_t count)
{
    if (count == 0)
        return "the row has fewer numbers than its table has columns";
    if (!(size > 0))
        return "0 bytes";
    for (size_t i = 0; i < count; i++) {
        if (isnan(halves[i].time_s))
            return "no time";
        if (!(halves[i].time_s > 0))
            return "the time is 0 or less";
        if (halves[i].wrong > 0)
            return "the run had wrong results";
        if (!agrees(size, &halves[i]))
            return "algbw is not size / time";
    }
    return NULL;
}

static double slack_of(const struct half *half)
{
    return 0.005 * (1 + half->busbw / half->algbw) / half->algbw;
}

static double type_bytes(struct knee_slice type)
{
    static const struct {
        const char *word;
        double bytes;
    } types[] = {{"float", 4}, {"double", 8}, {"half", 2},  {"bfloat16", 2}, {"int8", 1},
                 {"uint8", 1}, {"char", 1},   {"int32", 4}, {"uint32", 4},   {"int", 4},
                 {"int64", 8}, {"uint64", 8}, {"bf16", 2},  {"f8", 1},       {"fp8", 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (knee_slice_is(type, types[i].word) || (types[i].word[0] == 'f' && types[i].bytes == 1 &&
                                                   knee_slice_starts(type, types[i].word)))
            return types[i].bytes;
    return NAN;
}

/* What a row tells about its collective; used when nothing says its name. */
static void note_columns(struct table *t, const struct row *row, const struct layout *layout)
{
    struct knee_run_facts *run = &t->r->run;
    double bytes = row->count * type_bytes(row->type);
    run->has_redop = layout->redop;
    run->has_root = layout->root;
    run->redop_is_sum = row->has_redop && !knee_slice_is(row->redop, "none");
    run->root_is_zero = layout->root && row->number[0] >= 0;
    if (!isnan(bytes) && bytes < row->size)
        run->count_is_part = true;
    if (!t->r->log.dtype[0])
        knee_slice_copy(row->type, t->r->log.dtype, sizeof t->r->log.dtype);
}

/* All numbers are there: use the row or refuse it. */
static void finish_row(struct table *t)
{
    struct row *row = &t->row;
    struct layout layout = t->layout;
    struct half halves[2] = {{NAN, NAN, NAN, NAN, NAN}, {NAN, NAN, NAN, NAN, NAN}};
    row->pending = false;
    if (!layout.known && !guess_layout(row, &layout)) {
        knee_log_refuse(t->r, row->line_number, row->line, "the row fits no known table");
        return;
    }
    /* Some tables have a redop column that their rows leave empty. */
    size_t count = split(row, &layout, halves);
    if (count)
        settle_unit(row->size, halves, count, &layout);
    t->layout.time_unit_s = layout.known ? layout.time_unit_s : t->layout.time_unit_s;
    const char *reason = reason_against(row->size, halves, count);
    if (reason) {
        knee_log_refuse(t->r, row->line_number, row->line, reason);
        return;
    }
    note_columns(t, row, &layout);
    if (count == 2 && isnan(halves[1].wrong) && halves[0].wrong >= 0)
        t->r->run.in_place_not_checked = true;
    struct knee_sample sample = {
        .bytes = row->size,
        .time_s = count == 2 ? fmin(halves[0].time_s, halves[1].time_s) : halves[0].time_s,
        .out_of_place_s = halves[0].time_s,
        .in_place_s = count == 2 ? halves[1].time_s : NAN,
        .line = row->line_number,
    };
    knee_log_quickest(&t->r->log, halves[0].quickest_s, &sample);
    const struct half *best = count == 2 && halves[1].algbw > halves[0].algbw ? &halves[1] : halves;
    double ratio = best->algbw > 0.5 ? best->busbw / best->algbw : NAN;
    knee_log_add(t->r, &sample, ratio, slack_of(best));
}

static void drop_pending(struct table *t)
{
    if (!t->row.pending)
        return;
    t->row.pending = false;
    /* A whole row whose table has more columns than it: decided by the words alone. */
    struct layout whole = t->layout, guessed;
    if (guess_layout(&t->row, &guessed)) {
        t->layout = guessed;
        finish_row(t);
        t->layout = whole;
    } else {
        knee_log_refuse(t->r, t->row.line_number, t->row.line,
                        "the row stops before its last column");
    }
}

/* Puts the numbers of a line into the row. A time stamp at the end of the line is skipped. False if
 * the line contains anything else. */
static bool take_numbers(struct row *row, struct knee_slice line)
{
    struct knee_slice word;
    while (knee_slice_word(&line, &word)) {
        double value = NAN;
        if (!knee_slice_number(word, &value)) {
            if (knee_slice_is(word, "OK") || memchr(word.at, ':', word.length) ||
                (memchr(word.at, '-', word.length) && word.length == 10))
                continue; /* "-S" prints date and time of day */
            if (!knee_slice_is(word, "N/A") && !knee_slice_is(word, "-"))
                return false;
            value = NAN;
        }
        if (row->number_count < COLUMNS_MAX)
            row->number[row->number_count++] = value;
    }
    return true;
}

static bool row_is_whole(const struct table *t)
{
    if (t->layout.known)
        return t->row.number_count >= t->layout.root + t->layout.count;
    struct layout guessed;
    return guess_layout(&t->row, &guessed) && t->row.number_count >= 8;
}

/* "1048576 262144 float sum -1 12.3 ...": true if the line begins a row. */
static bool begin_row(struct table *t, struct knee_slice line)
{
    struct row row = {.line = line, .line_number = t->r->line};
    struct knee_slice rest = line, word, after;
    if (!knee_slice_word(&rest, &word) || !knee_slice_number(word, &row.size) ||
        !knee_slice_word(&rest, &word) || !knee_slice_number(word, &row.count) ||
        !knee_slice_word(&rest, &row.type) || !is_word(row.type))
        return false;
    if (row.size != floor(row.size) || row.count != floor(row.count) || row.size < 0)
        return false;
    after = rest;
    if (knee_slice_word(&after, &word) && is_word(word) && !knee_slice_is(word, "N/A")) {
        row.redop = word;
        row.has_redop = true;
        rest = after;
    }
    drop_pending(t);
    if (!take_numbers(&row, rest)) {
        knee_log_refuse(t->r, t->r->line, line, "a column is not a number");
        return true;
    }
    t->row = row;
    t->row.pending = true;
    if (row_is_whole(t))
        finish_row(t);
    return true;
}

/* Numbers only, while a row waits for some. */
static bool continue_row(struct table *t, struct knee_slice line)
{
    struct row longer = t->row;
    if (!t->row.pending || line.length == 0 || !take_numbers(&longer, line) ||
        longer.number_count == t->row.number_count)
        return false;
    t->row = longer;
    if (row_is_whole(t))
        finish_row(t);
    return true;
}

/* A line that begins with a size but is not a known row is reported instead of lost. */
static bool refuse_like_row(struct table *t, struct knee_slice line)
{
    struct knee_slice rest = line, word;
    double number;
    size_t words = 0;
    if (!knee_slice_word(&rest, &word) || !knee_slice_number(word, &number))
        return false;
    while (knee_slice_word(&rest, &word))
        words++;
    if (words < 3 || !t->layout.known)
        return false;
    knee_log_refuse(t->r, t->r->line, line, "the row does not begin with size, count and type");
    return true;
}

/* ---- Lines about the run ---- */

/* "Rank 0 Group 0 Pid 1 on host device 3 [0x07] NVIDIA H100": true if it is one. */
static bool device_line(struct knee_log_reader *r, struct knee_slice line)
{
    struct knee_run_facts *run = &r->run;
    double rank, device;
    if (!knee_slice_number_after(line, "Rank ", &rank) || !knee_slice_has(line, " Pid") ||
        !knee_slice_number_after(line, " device ", &device))
        return false;
    struct knee_slice rest = knee_slice_from(line, knee_slice_find(line, " on ") + 4), host;
    knee_slice_word(&rest, &host);
    run->listed++;
    run->max_rank = fmax(isnan(run->max_rank) ? 0 : run->max_rank, rank);
    run->max_device = fmax(isnan(run->max_device) ? 0 : run->max_device, device);
    knee_run_host(&run->hosts, run->host, host);
    /* Host and device in one: the slice from the host on, up to the bracket. */
    size_t bracket = knee_slice_find(rest, "[");
    struct knee_slice both = {host.at, (size_t)(rest.at - host.at) + bracket};
    double before = (double)run->device_count, after = before;
    knee_run_host(&after, run->device, both);
    run->device_count = (size_t)after;
    if (after == before)
        r->log.seen |= KNEE_SEEN_SAME_GPU;
    struct knee_slice name = knee_slice_from(rest, knee_slice_find(rest, "]") + 1);
    if (!r->log.gpu[0])
        knee_slice_copy(knee_slice_trim(name), r->log.gpu, sizeof r->log.gpu);
    return true;
}

/* knee bench: "# algorithm: ring hops 6 share 1.5"; the library's choice is a name alone. */
static bool algorithm_line(struct knee_log *log, struct knee_slice line)
{
    struct knee_slice rest, word[5] = {0};
    double hops, share;
    if (!knee_slice_starts(line, "# algorithm: "))
        return false;
    rest = knee_slice_from(line, 13);
    for (size_t i = 0; i < 5; i++)
        knee_slice_word(&rest, &word[i]);
    if (knee_slice_is(word[1], "hops") && knee_slice_number(word[2], &hops) &&
        knee_slice_is(word[3], "share") && knee_slice_number(word[4], &share))
        knee_log_own_algorithm(log, word[0], hops, share);
    return true;
}

static bool about_the_run(struct table *t, struct knee_slice line)
{
    struct knee_log_reader *r = t->r;
    struct knee_log *log = &r->log;
    double threads, gpus;
    if (knee_slice_number_after(line, "nThread ", &threads) &&
        knee_slice_number_after(line, "nGpus ", &gpus)) {
        log->gpus_per_process = gpus; /* that one thread serves */
        return true;
    }
    size_t named = knee_slice_find(line, "Collective test starting:");
    if (named < line.length) {
        struct knee_slice rest = knee_slice_from(line, named + 25), word;
        knee_slice_word(&rest, &word);
        enum knee_op op = knee_op_of(word.at, word.length);
        if (op != KNEE_OP_UNKNOWN) {
            log->op = op;
            log->op_known = KNEE_SAID;
        }
        return true;
    }
    if (knee_slice_has(line, "NCCL version ") || knee_slice_has(line, "RCCL version")) {
        size_t at = knee_slice_find(line, "CCL version");
        knee_slice_copy(knee_slice_from(line, at - (at > 0)), log->library, sizeof log->library);
        return true;
    }
    return knee_slice_has(line, "nccl-tests version") || knee_slice_has(line, "rccl-tests:") ||
           knee_slice_has(line, "Using devices") || knee_slice_has(line, "Out of bounds values") ||
           knee_slice_has(line, "Avg bus bandwidth") || knee_slice_has(line, "out-of-place") ||
           knee_slice_has(line, "Collective test concluded") ||
           knee_slice_has(line, "Errors with asterisks") || device_line(r, line) ||
           algorithm_line(log, line);
}

/* A second run in the same file: its first line ends the table before it. */
static bool begins_a_run(struct knee_slice line)
{
    return knee_slice_has(line, "nccl-tests version") || knee_slice_has(line, "nThread ") ||
           knee_slice_has(line, "Collective test starting:");
}

static void take_line(struct table *t, struct knee_slice line)
{
    struct knee_log_reader *r = t->r;
    if (r->log.sample_count && begins_a_run(line)) {
        drop_pending(t);
        knee_log_end(r, false);
        t->layout.known = false;
    }
    if (begin_row(t, line) || continue_row(t, line))
        return;
    struct layout before = t->layout;
    if (read_header(t, line)) {
        drop_pending(t);
        if (before.known && r->log.sample_count)
            knee_log_end(r, true);
        r->facts++;
    } else if (read_units(t, line) || about_the_run(t, line) || line.length == 0 ||
               knee_slice_is(line, "#") || knee_log_launcher_line(r, line)) {
        r->facts++;
    } else if (!refuse_like_row(t, line)) {
        r->others++;
    }
}

static bool sniff(struct knee_slice text)
{
    (void)text;
    return true;
}

static void read_tables(struct knee_log_reader *r)
{
    struct table t = {.r = r};
    struct knee_slice line;
    while (knee_log_line(r, &line)) {
        line = knee_log_strip(line);
        size_t info = knee_slice_find(line, "NCCL INFO");
        if (info == line.length)
            info = knee_slice_find(line, "NCCL WARN");
        if (info < line.length) {
            /* A row may stand before it: "8192 2048 float sum -1[0] host:1:2 [0] NCCL INFO ..." */
            struct knee_slice before = knee_log_before_nccl(line, info);
            knee_nccl_debug_line(r, line, info);
            r->facts++;
            if (!begin_row(&t, before))
                continue_row(&t, before);
        } else {
            take_line(&t, line);
        }
    }
    drop_pending(&t);
}

const struct knee_log_format knee_log_nccl_tests = {"nccl-tests", sniff, read_tables};
