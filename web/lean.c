/* SPDX-License-Identifier: MIT */
/* What the page leaves to the program, and says so when it is asked: it takes the place of the
 * files that the Makefile names in `page_leaves`, whose bytes would not fit into the page. */
#include "ask/ask_measured.h"
#include "base/error.h"
#include "knee_out.h"
#include "knee_plan.h"
#include "knee_read.h"
#include "knee_replay.h"
#include "timeline/where.h"

static knee_status not_here(const char *where, const char *what, struct knee_err *err)
{
    knee_fail(err, KNEE_USAGE, where, "the page %s", what);
    knee_hint(err, "the program does");
    return KNEE_USAGE;
}

knee_status knee_yaml_read(const char *yaml, size_t length, const char *name,
                           const struct knee_keys *keys, void *object, size_t object_size,
                           struct knee_err *err)
{
    (void)yaml, (void)length, (void)keys, (void)object, (void)object_size;
    return not_here(name, "reads no job files", err);
}

knee_status knee_cluster_read(const char *text, size_t length, const char *name,
                              struct knee_cluster *out, struct knee_fitted *record,
                              struct knee_err *err)
{
    (void)text, (void)length, (void)out, (void)record;
    return not_here(name, "reads no cluster files", err);
}

knee_status knee_torchtitan_read(const char *text, size_t length, const char *name, double layers,
                                 struct knee_plan *plan, struct knee_err *err)
{
    (void)text, (void)length, (void)layers, (void)plan;
    return not_here(name, "reads no torchtitan files", err);
}

/* Presets are held against logs as they are; hosts without GPUs have none, and would need a fit. */
knee_status knee_fit(const struct knee_log *logs, size_t count, const struct knee_cluster *prior,
                     const struct knee_alloc *alloc, struct knee_cluster *out,
                     struct knee_fitted *record, struct knee_err *err)
{
    (void)count, (void)prior, (void)alloc, (void)out, (void)record;
    return not_here(logs[0].file, "fits no links of hosts without GPUs", err);
}

knee_status knee_ask_perfetto(struct knee_ask *ask, const char *name,
                              const struct knee_account *account, struct knee_err *err)
{
    (void)ask, (void)account;
    return not_here(name, "writes no traces", err);
}

knee_status knee_simulate(const struct knee_shape *shape, const struct knee_machine *machine,
                          const struct knee_plan *plan, const struct knee_alloc *alloc,
                          struct knee_trace *out, double *closed_s, struct knee_err *err)
{
    (void)shape, (void)machine, (void)plan, (void)alloc, (void)out, (void)closed_s;
    return not_here("--simulate", "simulates no steps", err);
}

/* Logs of a pipeline's operations: nothing of them gets past the reader. */
knee_status knee_op_log_read(const char *json, size_t length, const char *file,
                             const struct knee_alloc *alloc, struct knee_op_log *out,
                             struct knee_err *err)
{
    (void)json, (void)length, (void)alloc, (void)out;
    return not_here(file, "reads no logs of operations", err);
}

void knee_op_log_release(struct knee_op_log *log)
{
    (void)log;
}

knee_status knee_find_slowdown(const struct knee_op_log *log, const struct knee_alloc *alloc,
                               struct knee_slowdown *out, struct knee_err *err)
{
    (void)alloc, (void)out;
    return not_here(log->file, "reads no logs of operations", err);
}

void knee_write_slowdown(const struct knee_slowdown *slowdown, enum knee_format format,
                         const struct knee_style *style, struct knee_text *text)
{
    (void)slowdown, (void)format, (void)style, (void)text;
}

knee_status knee_find_where(const struct knee_account *account, const struct knee_alloc *alloc,
                            struct knee_where *out, struct knee_err *err)
{
    (void)account, (void)alloc, (void)out;
    return not_here("--where", "does not look into kernels and modules", err);
}

void knee_where_release(struct knee_where *where)
{
    (void)where;
}

/* Dropped logs make a curve. */
knee_status knee_ask_diff_logs(struct knee_ask *ask, const char *const *words, bool *logs,
                               struct knee_err *err)
{
    (void)ask, (void)words, (void)err;
    *logs = false;
    return KNEE_OK;
}

knee_status knee_ask_compare_logs(struct knee_ask_question *q, double max_slower,
                                  struct knee_err *err)
{
    (void)q, (void)max_slower;
    return not_here("", "compares no training logs", err);
}
