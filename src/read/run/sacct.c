/* SPDX-License-Identifier: MIT */
/*
 * What Slurm's sacct prints about jobs: one line each, fields between '|' (sacct -P) or in columns
 * under a line of dashes. The names of the first line say which field is which. Lines of steps
 * ("1234.batch") repeat their job and are passed over. Node lists stay as they are written,
 * "node[01-03,07]", until hosts are counted: knee_sched_host() walks them.
 */
#include "knee_scale.h"

#include "base/error.h"
#include "base/fold.h"
#include "base/format.h"
#include "base/list.h"
#include "base/slice.h"
#include "base/text.h"
#include "read/run/train_log.h"

#include <math.h>
#include <string.h>

#define JOBS_MAX 65536

#define HEAD_LINES 8 /* a command or a greeting may stand before the names */

enum column { ID, STATE, START, END, ELAPSED, SECONDS, NODES, HOSTS, TRES, COLUMNS };

static const struct {
    const char *name;
    enum column column;
} names[] = {
    {"JobID", ID},         {"JobIDRaw", ID},     {"State", STATE},        {"Start", START},
    {"End", END},          {"Elapsed", ELAPSED}, {"ElapsedRaw", SECONDS}, {"NNodes", NODES},
    {"AllocNodes", NODES}, {"NodeList", HOSTS},  {"AllocTRES", TRES},     {"ReqTRES", TRES},
};

const char *knee_sched_state_name(enum knee_sched_state state)
{
    static const char *const words[KNEE_SCHED_STATES] = {
        [KNEE_SCHED_OTHER] = "",
        [KNEE_SCHED_COMPLETED] = "COMPLETED",
        [KNEE_SCHED_FAILED] = "FAILED",
        [KNEE_SCHED_NODE_FAIL] = "NODE_FAIL",
        [KNEE_SCHED_MEMORY] = "OUT_OF_MEMORY",
        [KNEE_SCHED_TIMEOUT] = "TIMEOUT",
        [KNEE_SCHED_CANCELLED] = "CANCELLED",
        [KNEE_SCHED_PREEMPTED] = "PREEMPTED",
        [KNEE_SCHED_RUNNING] = "RUNNING",
    };
    return state < KNEE_SCHED_STATES ? words[state] : "?";
}

/* Where the fields of a line are: the number of one between '|', or its columns. */
struct layout {
    bool bars;
    struct {
        size_t at, width; /* width 0: there is none */
    } field[COLUMNS];
};

static void name_field(struct layout *layout, struct knee_slice name, size_t at, size_t width)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (knee_slice_is(name, names[i].name) && !layout->field[names[i].column].width) {
            layout->field[names[i].column].at = at;
            layout->field[names[i].column].width = width;
        }
}

/* Columns are as wide as the dashes below their names. */
static void name_columns(struct layout *layout, struct knee_slice head, struct knee_slice dashes)
{
    for (size_t at = 0; at < dashes.length;) {
        size_t width = 0;
        while (at + width < dashes.length && dashes.at[at + width] == '-')
            width++;
        struct knee_slice name = knee_slice_from(head, at < head.length ? at : head.length);
        name.length = name.length < width ? name.length : width;
        if (width)
            name_field(layout, knee_slice_trim(name), at, width);
        at += width + 1;
    }
}

static bool read_names(struct knee_slice *text, struct layout *layout)
{
    struct knee_slice line, piece, rest;
    for (size_t i = 0; i < HEAD_LINES && knee_slice_line(text, &line); i++) {
        memset(layout, 0, sizeof *layout);
        layout->bars = knee_slice_has(line, "|");
        size_t number = 0;
        rest = line;
        if (layout->bars)
            for (; knee_slice_until(&rest, '|', &piece); number++)
                name_field(layout, knee_slice_trim(piece), number, 1);
        rest = *text;
        if (!layout->bars && knee_slice_line(&rest, &piece) && knee_slice_starts(piece, "---")) {
            name_columns(layout, line, piece);
            *text = rest;
        }
        if (layout->field[ID].width && layout->field[STATE].width)
            return true;
    }
    return false;
}

bool knee_is_sacct(const char *data, size_t length)
{
    struct knee_slice text = {data, length};
    struct layout layout;
    return length > 0 && read_names(&text, &layout);
}

static struct knee_slice field_of(const struct layout *layout, struct knee_slice line,
                                  enum column column)
{
    struct knee_slice piece = {line.at, 0};
    size_t at = layout->field[column].at, width = layout->field[column].width;
    if (!width)
        return piece;
    if (!layout->bars) {
        piece = knee_slice_from(line, at < line.length ? at : line.length);
        piece.length = piece.length < width ? piece.length : width;
        return knee_slice_trim(piece);
    }
    for (size_t i = 0; i <= at; i++)
        if (!knee_slice_until(&line, '|', &piece))
            return (struct knee_slice){line.at, 0};
    return knee_slice_trim(piece);
}

/* "CANCELLED by 1000", "CANCELLED+", "COMPLETED" */
static enum knee_sched_state state_of(struct knee_slice word)
{
    for (size_t length = word.length; length > 0 && word.at[length - 1] == '+';)
        word.length = --length;
    for (int i = KNEE_SCHED_OTHER + 1; i < KNEE_SCHED_STATES; i++) {
        const char *name = knee_sched_state_name((enum knee_sched_state)i);
        size_t length = strlen(name) < word.length ? strlen(name) : word.length;
        if (length >= 6 && memcmp(name, word.at, length) == 0)
            return (enum knee_sched_state)i;
    }
    return KNEE_SCHED_OTHER;
}

/* "1-02:03:04", "02:03:04", "03:04.500" */
static double elapsed_of(struct knee_slice text)
{
    struct knee_slice days = {text.at, knee_slice_find(text, "-")};
    double count = 0;
    if (days.length < text.length && !knee_slice_number(days, &count))
        return NAN;
    if (days.length < text.length)
        text = knee_slice_from(text, days.length + 1);
    text.length = knee_slice_find(text, ".");
    return 86400 * count + knee_train_clock(text);
}

static double number_of(struct knee_slice text)
{
    double value;
    return knee_slice_number(text, &value) ? value : NAN;
}

static double gpus_of(struct knee_slice tres)
{
    double value;
    return knee_slice_number_after(tres, "gres/gpu=", &value) ? value : NAN;
}

static knee_status add_job(struct knee_sched_jobs *out, const struct layout *layout,
                           struct knee_slice line)
{
    struct knee_slice id = field_of(layout, line, ID), hosts = field_of(layout, line, HOSTS);
    if (id.length == 0 || !knee_is_digit(id.at[0]) || knee_slice_has(id, "."))
        return KNEE_OK; /* a step of a job, or not a job's line */
    if (out->count == JOBS_MAX) {
        out->left_out++;
        return KNEE_OK;
    }
    struct knee_list list = {out->row, out->count, out->room};
    struct knee_sched_job *job = knee_list_add(&list, sizeof *job, out->alloc);
    if (!job)
        return KNEE_SYSTEM;
    out->row = list.data;
    out->count = list.count;
    out->room = list.capacity;
    *job = (struct knee_sched_job){.state = state_of(field_of(layout, line, STATE)),
                                   .begin_s = knee_train_stamp(field_of(layout, line, START)),
                                   .end_s = knee_train_stamp(field_of(layout, line, END)),
                                   .elapsed_s = number_of(field_of(layout, line, SECONDS)),
                                   .nodes = number_of(field_of(layout, line, NODES)),
                                   .gpus = gpus_of(field_of(layout, line, TRES)),
                                   .step_s = NAN,
                                   .hosts = out->text.length};
    knee_slice_copy(id, job->id, sizeof job->id);
    if (isnan(job->elapsed_s))
        job->elapsed_s = elapsed_of(field_of(layout, line, ELAPSED));
    if (isnan(job->elapsed_s))
        job->elapsed_s = job->end_s - job->begin_s;
    bool cut = hosts.length && hosts.at[hosts.length - 1] == '+';
    out->cut += cut;
    if (!cut && !knee_slice_is(hosts, "None assigned"))
        knee_text_add(&out->text, hosts.at, hosts.length);
    job->hosts_length = out->text.length - job->hosts;
    return KNEE_OK;
}

knee_status knee_sched_read(struct knee_named_text from, struct knee_sched_jobs *out,
                            struct knee_err *err)
{
    struct knee_slice text = {from.text, from.length}, line;
    struct layout layout;
    if (!read_names(&text, &layout))
        return knee_fail_hint(err, KNEE_INPUT, from.name,
                              "sacct -P -o JobID,State,Start,End,Elapsed,NNodes,NodeList,AllocTRES",
                              "not an output of sacct with its names");
    out->text.alloc = out->alloc;
    while (knee_slice_line(&text, &line))
        if (add_job(out, &layout, line) || out->text.failed)
            return knee_fail(err, KNEE_SYSTEM, from.name, "out of memory");
    return KNEE_OK;
}

void knee_sched_release(struct knee_sched_jobs *jobs)
{
    knee_resize(jobs->alloc, jobs->row, 0);
    knee_text_release(&jobs->text);
    jobs->row = NULL;
    jobs->count = jobs->room = 0;
}

/* ---- Node lists ---- */

/* The number of a range that comes after *last, as wide as it is written: "01-03,07". False: the
 * group is done. */
static bool next_number(struct knee_slice *group, double *last, char *out, size_t size)
{
    struct knee_slice rest = *group, range, low;
    if (!knee_slice_until(&rest, ',', &range) || range.length == 0)
        return false;
    size_t dash = knee_slice_find(range, "-");
    low = (struct knee_slice){range.at, dash};
    double first = number_of(low), end = first;
    if (dash < range.length)
        end = number_of(knee_slice_from(range, dash + 1));
    if (isnan(first) || !(end >= first) || end > 1e6)
        return false;
    double now = isnan(*last) ? first : *last + 1;
    knee_format(out, size, "%0*.0f", (int)(dash < 12 ? dash : 12), now);
    *last = now < end ? now : NAN;
    if (!(now < end))
        *group = rest;
    return true;
}

void knee_sched_hosts_init(struct knee_sched_hosts *walk, const char *list, size_t length)
{
    *walk = (struct knee_sched_hosts){.rest = list, .rest_length = length, .last = NAN};
}

/* The next piece of the list up to a comma outside of brackets. */
static bool next_piece(struct knee_sched_hosts *walk)
{
    size_t end = 0;
    for (bool inside = false; end < walk->rest_length; end++) {
        char c = walk->rest[end];
        inside = c == '[' || (inside && c != ']');
        if (c == ',' && !inside)
            break;
    }
    walk->piece = walk->rest;
    walk->piece_length = end;
    end += end < walk->rest_length;
    walk->rest += end;
    walk->rest_length -= end;
    return walk->piece_length > 0;
}

bool knee_sched_host(struct knee_sched_hosts *walk, char *out, size_t size)
{
    char number[24];
    for (;;) {
        if (walk->piece_length == 0 && !next_piece(walk))
            return false;
        struct knee_slice piece = {walk->piece, walk->piece_length};
        size_t open = knee_slice_find(piece, "["), close = knee_slice_find(piece, "]");
        if (open >= close) {
            knee_slice_copy(piece, out, size);
            walk->piece_length = 0;
            return true;
        }
        if (!walk->group)
            walk->group = piece.at + open + 1;
        struct knee_slice group = {walk->group, (size_t)(piece.at + close - walk->group)};
        if (group.length && next_number(&group, &walk->last, number, sizeof number)) {
            struct knee_slice after = knee_slice_from(piece, close + 1); /* none: no ] */
            walk->group = group.at;
            knee_format(out, size, "%.*s%s%.*s", (int)open, piece.at, number, (int)after.length,
                        after.at);
            return true;
        }
        walk->piece_length = 0;
        walk->group = NULL;
        walk->last = NAN;
    }
}
