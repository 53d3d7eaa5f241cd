/* SPDX-License-Identifier: MIT */
/*
 * Measurements as CSV: a header that names a size and a time, and any of collective, ranks, nodes,
 * GPU, algorithm with its hops and share. What knee bench writes with --csv is such a file. Rows
 * that differ in collective, ranks, nodes, algorithm or one of the label columns belong to
 * different tables.
 */
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

#define CELLS_MAX 64

struct sheet {
    enum field field[CELLS_MAX];
    double scale[CELLS_MAX];
    size_t columns;
};

static bool read_header(struct knee_slice line, struct sheet *sheet)
{
    struct knee_slice cell;
    bool has[FIELDS] = {false};
    memset(sheet, 0, sizeof *sheet);
    while (sheet->columns < CELLS_MAX && knee_slice_until(&line, ',', &cell)) {
        size_t column = sheet->columns++;
        sheet->field[column] = UNKNOWN;
        cell = knee_slice_trim(cell);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (knee_slice_is(cell, names[i].name)) {
                sheet->field[column] = names[i].field;
                sheet->scale[column] = names[i].scale;
                has[names[i].field] = true;
            }
    }
    return has[BYTES] && has[TIME];
}

static bool sniff(struct knee_slice text)
{
    struct knee_slice line;
    struct sheet sheet;
    while (knee_slice_line(&text, &line)) {
        line = knee_slice_trim(line);
        if (line.length > 0 && line.at[0] != '#')
            return read_header(line, &sheet);
    }
    return false;
}

/* One row as it stands; slices stay in the file. */
struct cells {
    double bytes, time_s, ranks, nodes, hops, share, quickest_s;
    struct knee_slice op, gpu, algorithm, label;
};

static const char *read_cells(const struct sheet *sheet, struct knee_slice line, struct cells *out)
{
    struct cells c = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, {0}, {0}, {0}, {0}};
    struct knee_slice cell, rest = line;
    size_t column = 0;
    for (; column < sheet->columns && knee_slice_until(&rest, ',', &cell); column++) {
        double number = NAN;
        cell = knee_slice_trim(cell);
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
    if (column < sheet->columns)
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

static bool same_slice(struct knee_slice a, struct knee_slice b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.at, b.at, a.length) == 0);
}

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool same_table(const struct cells *a, const struct cells *b)
{
    return same_slice(a->op, b->op) && same_slice(a->gpu, b->gpu) &&
           same_slice(a->label, b->label) && same_slice(a->algorithm, b->algorithm) &&
           same_number(a->ranks, b->ranks) && same_number(a->nodes, b->nodes) &&
           same_number(a->hops, b->hops) && same_number(a->share, b->share);
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

static void read_table(struct knee_log_reader *r)
{
    struct knee_slice line;
    struct sheet sheet = {0};
    struct cells now, last = {NAN, NAN, -1, NAN, NAN, NAN, NAN, {0}, {0}, {0}, {0}};
    bool header = false;
    while (knee_log_line(r, &line)) {
        line = knee_slice_trim(line);
        if (line.length == 0 || line.at[0] == '#') {
            r->facts++;
            continue;
        }
        if (!header) {
            header = read_header(line, &sheet);
            r->facts++;
            continue;
        }
        const char *reason = read_cells(&sheet, line, &now);
        if (reason) {
            knee_log_refuse(r, r->line, line, reason);
            continue;
        }
        if (!same_table(&now, &last))
            begin_table(r, &now);
        last = now;
        struct knee_sample sample = {now.bytes, now.time_s, now.time_s, NAN, r->line};
        knee_log_quickest(&r->log, now.quickest_s, &sample);
        knee_log_add(r, &sample, NAN, NAN);
    }
}

const struct knee_log_format knee_log_csv = {"CSV", sniff, read_table};
