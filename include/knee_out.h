/* SPDX-License-Identifier: MIT */
/* Out: results as text. What knee.h says of every call holds here;
 * these structs may change with the minor version. */
#ifndef KNEE_OUT_H
#define KNEE_OUT_H

#include "knee_logs.h"
#include "knee_plan.h"
#include "knee_replay.h"
#include "knee_reports.h"
#include "knee_runs.h"

/* ---- Out: results as text ----------------------------------------------------------------- */

struct knee_style {
    bool ascii;          /* no characters beyond ASCII */
    bool color;          /* ANSI emphasis */
    int width;           /* columns for sentences and pictures; 0: 100 */
    int table_width;     /* columns for tables: what is wider is stacked; 0: as wide as they come */
    enum knee_tier tier; /* how much of an answer: -q, the default, -v */
};

/* The door bytes go out through; false when they cannot. */
struct knee_sink {
    bool (*write)(void *ctx, const char *data, size_t size);
    void *ctx;
};

/* The aligned, labelled ranks as one trace for ui.perfetto.dev. False: no memory, or the sink
 * refused. */
bool knee_write_perfetto(const struct knee_account *account, struct knee_sink sink,
                         const struct knee_alloc *alloc);
/* One rank of it as a Chakra execution trace (protobuf), for simulators that read those: its GPU
 * work with durations, sizes, and what waited for what as replay finds it. The graph is made once
 * for all ranks. The traces are best read with knee_trace_options.host. */
struct knee_chakra_graph;
knee_status knee_chakra_begin(const struct knee_account *account, const struct knee_alloc *alloc,
                              struct knee_chakra_graph **out, struct knee_err *err);
bool knee_chakra_write(struct knee_chakra_graph *graph, size_t rank, struct knee_sink sink);
void knee_chakra_end(struct knee_chakra_graph *graph);

#endif
