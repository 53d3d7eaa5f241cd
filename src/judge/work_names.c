/* SPDX-License-Identifier: MIT */
/* The names of the work in traces, summed over files, and what each was taken for. */
#include "judge/work_names.h"
#include "base/order.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

KNEE_SORT(by_name, struct knee_work_name, KNEE_THEN(strcmp(a->name, b->name), KNEE_UP(kind)))

/* Communication first, then what computes and communicates, then the rest; each by time. */
static int by_time(const void *left, const void *right)
{
    static const int order[] = {
        [KNEE_SPAN_COMM] = 0, [KNEE_SPAN_FUSED] = 1, [KNEE_SPAN_COPY] = 2, [KNEE_SPAN_COMPUTE] = 3};
    const struct knee_work_name *a = left, *b = right;
    if (a->kind != b->kind)
        return order[a->kind] < order[b->kind] ? -1 : 1;
    if (a->ns != b->ns)
        return a->ns < b->ns ? 1 : -1;
    return strcmp(a->name, b->name);
}

/* One file's spans, summed by the rows of its names. */
static void sum_trace(const struct knee_trace *trace, struct knee_work_name *rows)
{
    for (size_t i = 0; i < trace->name_count; i++)
        rows[i].name = trace->names[i];
    for (size_t r = 0; r < trace->rank_count; r++)
        for (size_t s = 0; s < trace->ranks[r].span_count; s++) {
            const struct knee_span *span = &trace->ranks[r].spans[s];
            struct knee_work_name *row = &rows[span->name];
            row->kind = span->kind;
            row->op = span->call ? trace->ranks[r].calls[span->call - 1].op : KNEE_OP_UNKNOWN;
            row->calls++;
            row->ns += span->end_ns - span->start_ns;
        }
}

bool knee_work_names_sum(const struct knee_trace *traces, size_t count,
                         const struct knee_alloc *alloc, struct knee_work_names *out)
{
    size_t most = 0, used = 0, kept = 0;
    for (size_t t = 0; t < count; t++)
        most += traces[t].name_count;
    struct knee_work_name *all = knee_zeroed(alloc, (most + 1) * sizeof *all);
    if (!all)
        return false;
    for (size_t t = 0; t < count; t++) {
        sum_trace(&traces[t], all + used);
        used += traces[t].name_count;
    }
    qsort(all, used, sizeof *all, by_name);
    for (size_t i = 0; i < used; i++) {
        if (all[i].calls == 0)
            continue;
        if (kept && by_name(&all[kept - 1], &all[i]) == 0) {
            all[kept - 1].calls += all[i].calls;
            all[kept - 1].ns += all[i].ns;
        } else {
            all[kept++] = all[i];
        }
    }
    qsort(all, kept, sizeof *all, by_time);
    *out = (struct knee_work_names){all, kept};
    return true;
}
