/* SPDX-License-Identifier: MIT */
/* Out: results as text. What knee.h says of every call holds here;
 * these structs may change with the minor version. */
#ifndef KNEE_OUT_H
#define KNEE_OUT_H

#include "knee_judge.h"
#include "knee_logs.h"
#include "knee_plan.h"
#include "knee_replay.h"
#include "knee_rollcall.h"
#include "knee_runs.h"
#include "knee_scale.h"

#ifdef __cplusplus
extern "C" {
#endif
KNEE_PUBLIC_BEGIN

/* ---- Out: results as text ----------------------------------------------------------------- */

struct knee_style {
    bool ascii;      /* no characters beyond ASCII */
    bool color;      /* ANSI emphasis */
    int width;       /* columns for sentences and pictures; 0: 100 */
    int table_width; /* columns for tables: what is wider is stacked; 0: as wide as they come */
    bool brief;      /* text: verdict and table only */
};

/* Each appends to `text`; look at text->failed once at the end. `solution` may be NULL. */
void knee_write_prediction(const struct knee_prediction *prediction,
                           const struct knee_solution *solution, enum knee_format format,
                           const struct knee_style *style, struct knee_text *text);
/* A file that could not be used, and why. */
struct knee_refused_file {
    const char *file, *why;
};
/* All that was read and found out from traces, and what was not read. */
struct knee_where;
struct knee_trace_report {
    const struct knee_trace *traces;
    size_t trace_count;
    const struct knee_account *account;
    const struct knee_diagnosis *diagnosis;
    const struct knee_where *where; /* NULL: not asked for */
    const struct knee_refused_file *refused;
    size_t refused_count;
};
void knee_write_trace(const struct knee_trace_report *report, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text);

/* Several runs in one call, one row each; as JSON (schema knee.runs/1) each in full. The curve that
 * they make (NULL: none) comes first, as knee_write_scale() has it. */
void knee_write_runs(const struct knee_trace_report *runs, size_t count,
                     const struct knee_scale_answer *curve, enum knee_format format,
                     const struct knee_style *style, struct knee_text *text);

/* A roll call and what follows from it; as JSON schema knee.rollcall/1. */
struct knee_roll_report {
    const struct knee_rollcall *roll;
    const struct knee_roll_answer *answer;
};
void knee_write_rollcall(const struct knee_roll_report *report, enum knee_format format,
                         const struct knee_style *style, struct knee_text *text);

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

/* The names of the work in traces, and what each was taken for. Schema knee.names/1. */
void knee_write_names(const struct knee_trace_report *report, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text);
void knee_write_comparison(const struct knee_comparison *comparison,
                           const struct knee_account *before,
                           const struct knee_diagnosis *before_diagnosis,
                           const struct knee_account *after,
                           const struct knee_diagnosis *after_diagnosis, enum knee_format format,
                           const struct knee_style *style, struct knee_text *text);
void knee_write_replay_answer(const struct knee_replay *replay, enum knee_format format,
                              const struct knee_style *style, struct knee_text *text);
void knee_write_slowdown(const struct knee_slowdown *slowdown, enum knee_format format,
                         const struct knee_style *style, struct knee_text *text);
void knee_write_tax(const struct knee_tax *tax, enum knee_format format,
                    const struct knee_style *style, struct knee_text *text);
void knee_write_collective(const struct knee_collective *collective, enum knee_format format,
                           const struct knee_style *style, struct knee_text *text);

void knee_write_check(const struct knee_check *check, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text);

/* YAML that knee_cluster_read() reads back, or JSON with the same keys. */
void knee_write_cluster(const struct knee_cluster *cluster, enum knee_format format,
                        struct knee_text *text);
void knee_write_plan(const struct knee_plan_answer *answer, enum knee_format format,
                     const struct knee_style *style, struct knee_text *text);
/* The best plan as options of Megatron-LM or DeepSpeed's configuration; `framework` is a row of
 * knee_launch_frameworks. KNEE_USAGE: the framework has no word for a part of it. */
extern const struct knee_choices knee_launch_frameworks;
knee_status knee_write_launch(const struct knee_plan_answer *answer, int framework,
                              enum knee_format format, struct knee_text *text,
                              struct knee_err *err);
void knee_write_ops(const struct knee_plan_answer *answer, enum knee_format format,
                    const struct knee_style *style, struct knee_text *text);
void knee_write_validation(const struct knee_validation *validation, enum knee_format format,
                           const struct knee_style *style, struct knee_text *text);
void knee_write_scale(const struct knee_scale_answer *answer, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text);
void knee_write_log_comparison(const struct knee_log_comparison *comparison,
                               enum knee_format format, const struct knee_style *style,
                               struct knee_text *text);
/* Constants that are set, as YAML for --rates. */
/* The lines of such a file alone: every constant that is not NaN. */
void knee_write_constants(const struct knee_rates *rates, struct knee_text *text);
void knee_write_rates(const struct knee_rates *rates, const struct knee_platform *platform,
                      struct knee_text *text);

KNEE_PUBLIC_END
#ifdef __cplusplus
}
#endif
#endif
