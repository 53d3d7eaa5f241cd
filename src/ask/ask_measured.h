/* SPDX-License-Identifier: MIT */
/* Measured runs from training logs, tables and traces, for the commands that take them. */
#ifndef KNEE_ASK_ASK_MEASURED_H
#define KNEE_ASK_ASK_MEASURED_H

#include "ask/ask.h"
#include "knee_scale.h"

/* Everything that was read. */
struct knee_ask_measured {
    struct knee_train_log logs[KNEE_SCALE_ROWS];
    size_t log_count;
    struct knee_scale_row rows[KNEE_SCALE_ROWS]; /* those of logs point into logs[] */
    size_t row_count;
    struct knee_sched_jobs jobs; /* of outputs of sacct */
    size_t refused;              /* files and rows */
    struct knee_text complaints; /* a line for each file */
    const struct knee_alloc *alloc;
};

/* "64=run.log": the count, and the name after it in *word; NaN: no count given. */
double knee_ask_said_workers(const char **word);

/* Is what is named a training log, by its first bytes? Not a table of runs, and not a trace. */
knee_status knee_ask_is_train_log(struct knee_ask *ask, const char *name, bool *log,
                                  struct knee_err *err);

/* Compares the two logs that the question's words name; KNEE_GATE: slower by more than this share,
 * and not by chance (NaN: no gate). */
knee_status knee_ask_compare_logs(struct knee_ask_question *q, double max_slower,
                                  struct knee_err *err);
/* Are both words training logs? diff then compares those. */
knee_status knee_ask_diff_logs(struct knee_ask *ask, const char *const *words, bool *logs,
                               struct knee_err *err);

/* Reads one training log, gzipped or not. Free with knee_train_log_release(). */
knee_status knee_ask_train_log(struct knee_ask *ask, const char *name, struct knee_train_log *out,
                               struct knee_err *err);

/* Reads the files that the question's words name, recognised by content; COUNT=NAME gives the GPU
 * count.
 * `curve` as for knee_scale_table_read(). What cannot be used does not stop the others, and fails
 * only when it is all there is. `out` must be zeroed; free it with knee_ask_measured_release(). */
knee_status knee_ask_measured_read(struct knee_ask_question *question, const char *curve,
                                   struct knee_ask_measured *out, struct knee_err *err);
void knee_ask_measured_release(struct knee_ask_measured *measured);

/* What a user may say about the job of the runs; it goes over what the logs say. */
struct knee_ask_said {
    struct knee_shape shape;
    struct knee_plan plan;
    struct knee_platform platform;
};
void knee_ask_said_init(struct knee_ask_said *said);

/* tp x pp x cp: the workers that share one copy of the model. */
double knee_ask_copy_workers(const struct knee_plan *plan);

/* Sets the model beside one row. `table` (may be NULL) gets the row as a line for knee_runs_read(),
 * when its GPU and shape are known. */
void knee_ask_model_row(const struct knee_ask_said *said, struct knee_scale_row *row,
                        struct knee_text *table);

#endif
