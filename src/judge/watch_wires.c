/* SPDX-License-Identifier: MIT */
/* The wire of each kind of collective on each communicator, and one that is far slower than others
 * like it: the same operation and size on as many ranks elsewhere in the job. */
#include "base/order.h"
#include "base/text.h"
#include "collective/collective_op.h"
#include "judge/watch_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAR_SLOWER 1.25 /* than the median of its like */

enum { ALIKE = 3 }; /* communicators that a comparison takes */

/* On one communicator. */
static bool same_kind(const struct knee_watch_wire *wire, const struct knee_live_meeting *m,
                      const char *op)
{
    return wire->bytes == m->bytes && strcmp(wire->op_name, op) == 0;
}

/* Rows from `comm_from` on are of the meeting's communicator. */
static void add_meeting(const struct knee_live_rank *ranks, const struct knee_live_meeting *m,
                        size_t comm_from, struct knee_watch *w)
{
    const char *op = ranks[m->last].calls[m->last_call].op;
    size_t row = comm_from;
    while (row < w->wire_count && !same_kind(&w->wires[row], m, op))
        row++;
    if (row == w->wire_count)
        w->wires[w->wire_count++] = (struct knee_watch_wire){.comm = m->comm,
                                                             .op = knee_op_spelt(op, strlen(op)),
                                                             .op_name = op,
                                                             .bytes = m->bytes,
                                                             .members = m->members,
                                                             .a_rank = m->last,
                                                             .slowdown = NAN};
    w->wires[row].calls++;
    w->wires[row].total_s += 1e-9 * (double)m->wire_ns;
}

static void finish_wire(struct knee_watch_wire *wire)
{
    wire->wire_s = wire->total_s / (double)wire->calls;
    wire->bus_bytes_per_s = NAN;
    if (wire->op != KNEE_OP_UNKNOWN && wire->bytes > 0 && wire->wire_s > 0)
        wire->bus_bytes_per_s = (double)wire->bytes / wire->wire_s *
                                knee_op_bus_factor(wire->op, (double)wire->members);
}

KNEE_SORT(by_kind, struct knee_watch_wire,
          KNEE_THEN(strcmp(a->op_name, b->op_name),
                    KNEE_THEN(KNEE_UP(bytes), KNEE_THEN(KNEE_UP(members), KNEE_UP(comm)))))

KNEE_SORT(by_total, struct knee_watch_wire, KNEE_THEN(KNEE_DOWN(total_s), by_kind(a, b)))

static bool alike(const struct knee_watch_wire *a, const struct knee_watch_wire *b)
{
    return strcmp(a->op_name, b->op_name) == 0 && a->bytes == b->bytes && a->members == b->members;
}

static void compare_alike(struct knee_watch_wire *wires, size_t count, double *scratch)
{
    for (size_t i = 0; i < count; i++)
        scratch[i] = wires[i].wire_s;
    double usual = knee_median(scratch, count);
    for (size_t i = 0; i < count && count >= ALIKE && usual > 0; i++)
        wires[i].slowdown = wires[i].wire_s / usual;
}

/* The slow one that loses most time. */
static void find_slow(struct knee_watch *w)
{
    double most = 0;
    w->slow_wire = SIZE_MAX;
    for (size_t i = 0; i < w->wire_count; i++) {
        const struct knee_watch_wire *wire = &w->wires[i];
        double lost = wire->total_s * (1 - 1 / wire->slowdown);
        if (!(wire->slowdown >= FAR_SLOWER) || !(lost > most))
            continue;
        most = lost;
        w->slow_wire = i;
    }
}

bool knee_watch_wires(const struct knee_live_rank *ranks, const struct knee_live_joined *joined,
                      struct knee_watch *w)
{
    w->wires = knee_resize(w->alloc, NULL, (joined->count + 1) * sizeof *w->wires);
    double *scratch = knee_resize(w->alloc, NULL, (joined->count + 1) * sizeof *scratch);
    if (!w->wires || !scratch) {
        knee_resize(w->alloc, scratch, 0);
        return false;
    }
    for (size_t i = 0, comm_from = 0; i < joined->count; i++) {
        if (i > 0 && joined->meetings[i].comm != joined->meetings[i - 1].comm)
            comm_from = w->wire_count;
        add_meeting(ranks, &joined->meetings[i], comm_from, w);
    }
    for (size_t i = 0; i < w->wire_count; i++)
        finish_wire(&w->wires[i]);
    qsort(w->wires, w->wire_count, sizeof *w->wires, by_kind);
    for (size_t i = 0, to; i < w->wire_count; i = to) {
        for (to = i + 1; to < w->wire_count && alike(&w->wires[i], &w->wires[to]);)
            to++;
        compare_alike(w->wires + i, to - i, scratch);
    }
    knee_resize(w->alloc, scratch, 0);
    qsort(w->wires, w->wire_count, sizeof *w->wires, by_total);
    find_slow(w);
    return true;
}
