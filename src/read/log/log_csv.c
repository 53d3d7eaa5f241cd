/* SPDX-License-Identifier: MIT */
/*
 * Measurements as CSV: a header that names a size and a time, and any of collective, ranks, nodes,
 * GPU, algorithm with its hops and share. What knee bench writes with --csv is such a file. Rows
 * that differ in collective, ranks, nodes, algorithm or one of the label columns belong to
 * different tables, in whatever order they stand: all rows are read, then each table is made of
 * its own.
 */
#include "base/csv.h"
#include "base/map.h"
#include "base/text.h"
#include "read/log/log.h"

#include <math.h>
#include <string.h>

enum field {
    BYTES,
    TIME,
    OP,
    RANKS,
    NODES,
    GPU,
    ALGORITHM,
    HOPS,
    SHARE,
    MIN,
    LABEL,
    FIELDS,
    UNKNOWN
};

static const struct {
    const char *name;
    enum field field;
    double scale; /* to bytes or seconds */
} names[] = {
    {"bytes", BYTES, 1},
    {"size", BYTES, 1},
    {"size_bytes", BYTES, 1},
    {"message_size", BYTES, 1},
    {"time_s", TIME, 1},
    {"seconds", TIME, 1},
    {"time_us", TIME, 1e-6},
    {"latency_us", TIME, 1e-6},
    {"time(us)", TIME, 1e-6},
    {"time_ms", TIME, 1e-3},
    {"latency_ms", TIME, 1e-3},
    {"collective", OP, 1},
    {"op", OP, 1},
    {"op_name", OP, 1},
    {"operation", OP, 1},
    {"ranks", RANKS, 1},
    {"num_gpus", RANKS, 1},
    {"workers", RANKS, 1},
    {"nranks", RANKS, 1},
    {"nodes", NODES, 1},
    {"num_nodes", NODES, 1},
    {"gpu", GPU, 1},
    {"device", GPU, 1},
    {"dtype", LABEL, 1},
    {"nccl_dtype", LABEL, 1},
    {"version", LABEL, 1},
    {"algorithm", ALGORITHM, 1},
    {"hops", HOPS, 1},
    {"share", SHARE, 1},
    {"min_s", MIN, 1},
};

struct sheet {
    enum field field[KNEE_CSV_FIELDS];
    double scale[KNEE_CSV_FIELDS];
    size_t columns;
};

static bool read_header(const struct knee_csv *csv, struct sheet *sheet)
{
    bool has[FIELDS] = {false};
    memset(sheet, 0, sizeof *sheet);
    for (; sheet->columns < csv->fields; sheet->columns++) {
        size_t column = sheet->columns;
        struct knee_slice cell = knee_csv_slice(csv, column);
        sheet->field[column] = UNKNOWN;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (knee_slice_is(cell, names[i].name)) {
                sheet->field[column] = names[i].field;
                sheet->scale[column] = names[i].scale;
                has[names[i].field] = true;
            }
    }
    return has[BYTES] && has[TIME];
}

static void open_csv(struct knee_csv *csv, struct knee_slice text)
{
    knee_csv_init(csv, text.at, text.length);
    csv->comment = '#';
}

static bool sniff(struct knee_slice text)
{
    struct knee_csv csv;
    struct sheet sheet;
    open_csv(&csv, text);
    return knee_csv_row(&csv) && read_header(&csv, &sheet);
}

/* One row as it stands; slices stay in the file. */
struct cells {
    double bytes, time_s, ranks, nodes, hops, share, quickest_s;
    struct knee_slice op, gpu, algorithm, label;
};

static const char *read_cells(const struct sheet *sheet, const struct knee_csv *csv,
                              struct cells *out)
{
    struct cells c = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, {0}, {0}, {0}, {0}};
    for (size_t column = 0; column < sheet->columns && column < csv->fields; column++) {
        double number = NAN;
        struct knee_slice cell = knee_csv_slice(csv, column);
        bool ok = knee_slice_number(cell, &number);
        switch (sheet->field[column]) {
        case BYTES: c.bytes = ok ? number * sheet->scale[column] : NAN; break;
        case TIME: c.time_s = ok ? number * sheet->scale[column] : NAN; break;
        case RANKS: c.ranks = number; break;
        case NODES: c.nodes = number; break;
        case OP: c.op = cell; break;
        case GPU: c.gpu = cell; break;
        case ALGORITHM: c.algorithm = cell; break;
        case HOPS: c.hops = number; break;
        case SHARE: c.share = number; break;
        case MIN: c.quickest_s = number; break;
        case LABEL: /* from the first label to the last: one slice */
            c.label.at = c.label.at ? c.label.at : cell.at;
            c.label.length = (size_t)(cell.at + cell.length - c.label.at);
            break;
        default: break;
        }
    }
    if (csv->fields < sheet->columns)
        return "the row has fewer cells than its header";
    if (isnan(c.bytes) || isnan(c.time_s))
        return "size or time is not a number";
    if (!(c.bytes > 0))
        return "0 bytes";
    if (!(c.time_s > 0))
        return "the time is 0 or less";
    if (c.op.at && knee_op_of(c.op.at, c.op.length) == KNEE_OP_UNKNOWN)
        return "the collective is not known";
    *out = c;
    return NULL;
}

static void begin_table(struct knee_log_reader *r, const struct cells *c)
{
    struct knee_log *log = &r->log;
    knee_log_end(r, false);
    if (c->op.at) {
        log->op = knee_op_of(c->op.at, c->op.length);
        log->op_known = KNEE_SAID;
    }
    if (c->gpu.at)
        knee_slice_copy(c->gpu, log->gpu, sizeof log->gpu);
    if (c->label.at)
        knee_slice_copy(c->label, log->dtype, sizeof log->dtype);
    if (c->ranks >= 2) {
        log->ranks = c->ranks;
        log->ranks_known = KNEE_SAID;
    }
    if (c->nodes >= 1) {
        log->nodes = c->nodes;
        log->nodes_known = KNEE_SAID;
    }
    knee_log_own_algorithm(log, c->algorithm, c->hops, c->share);
}

/* ---- Rows into tables ---- */

struct row {
    struct cells cells;
    struct knee_slice text;
    size_t line, next;  /* the next row of its table; 0: none, so they count from 1 */
    const char *reason; /* refused; NULL: a good one */
};

/* A table by its first good row, and its rows as a list. */
struct group {
    size_t first, last;
    size_t key; /* the row that says what it is of */
};

struct rows {
    struct knee_log_reader *r;
    struct row *row; /* [1 .. count] */
    size_t count, room;
    struct group *group;    /* as many as there are tables, or one */
    size_t now;             /* the one that the last good row is of; 0 before any */
    struct knee_map tables; /* by what their rows have in common */
};

static bool start_rows(struct knee_log_reader *r, struct rows *rows)
{
    const struct knee_alloc *alloc = r->logs->alloc;
    *rows = (struct rows){.r = r, .tables = {.alloc = alloc}};
    rows->group = knee_zeroed(alloc, KNEE_LOGS_MAX * sizeof *rows->group);
    if (!rows->group)
        knee_log_out_of_memory(r);
    return rows->group;
}

static void release_rows(struct rows *rows)
{
    const struct knee_alloc *alloc = rows->r->logs->alloc;
    knee_resize(alloc, rows->row, 0);
    knee_resize(alloc, rows->group, 0);
    knee_map_release(&rows->tables);
}

/* The group of a good row; a new one where there is none yet. False: there are too many. */
static bool find_group(struct rows *rows, const struct cells *c)
{
    const struct knee_slice words[] = {c->op, c->gpu, c->label, c->algorithm};
    const double numbers[] = {c->ranks, c->nodes, c->hops, c->share};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        knee_map_part(&rows->tables, &words[i].length, sizeof words[i].length);
        knee_map_part(&rows->tables, words[i].at, words[i].length);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double number = isnan(numbers[i]) ? -1 : numbers[i] + 0.0;
        knee_map_part(&rows->tables, &number, sizeof number);
    }
    size_t group = knee_map_add(&rows->tables, "", 0);
    if (rows->tables.failed)
        knee_log_out_of_memory(rows->r);
    else if (group == KNEE_LOGS_MAX)
        knee_log_too_many(rows->r);
    else
        rows->now = group;
    return !rows->r->status;
}

static void add_row(struct rows *rows, const struct row *row)
{
    if (!knee_room(rows->r->logs->alloc, &rows->row, &rows->room, rows->count + 2,
                   sizeof *rows->row)) {
        knee_log_out_of_memory(rows->r);
        return;
    }
    size_t at = ++rows->count;
    rows->row[at] = *row;
    if (!row->reason && !find_group(rows, &row->cells))
        return;
    struct group *group = &rows->group[rows->now];
    if (group->last)
        rows->row[group->last].next = at;
    else
        group->first = at;
    group->last = at;
    group->key = group->key || row->reason ? group->key : at;
}

static void take(struct knee_log_reader *r, const struct row *row)
{
    if (row->reason) {
        knee_log_refuse(r, row->line, row->text, row->reason);
        return;
    }
    const struct cells *c = &row->cells;
    struct knee_sample sample = {c->bytes, c->time_s, c->time_s, NAN, row->line};
    knee_log_quickest(&r->log, c->quickest_s, &sample);
    knee_log_add(r, &sample, NAN, NAN);
}

/* Tables in the order of their first rows; what was refused before any is in the first. */
static void make_tables(const struct rows *rows)
{
    struct knee_log_reader *r = rows->r;
    size_t g = 0;
    do {
        const struct group *group = &rows->group[g];
        if (group->key)
            begin_table(r, &rows->row[group->key].cells);
        for (size_t i = group->first; i; i = rows->row[i].next)
            take(r, &rows->row[i]);
    } while (++g < rows->tables.keys.count && !r->status);
}

static void read_table(struct knee_log_reader *r)
{
    struct knee_csv csv;
    struct sheet sheet;
    struct rows rows;
    open_csv(&csv, r->text);
    bool started = start_rows(r, &rows);
    if (started && knee_csv_row(&csv) && read_header(&csv, &sheet))
        while (!r->status && knee_csv_row(&csv)) {
            struct row row = {.text = knee_csv_line(&csv), .line = csv.line};
            row.reason = read_cells(&sheet, &csv, &row.cells);
            add_row(&rows, &row);
        }
    if (started && rows.row && !r->status)
        make_tables(&rows);
    r->line = csv.next_line - 1;
    r->facts = r->line - rows.count;
    release_rows(&rows);
}

const struct knee_log_format knee_log_csv = {"CSV", sniff, read_table};
