/* SPDX-License-Identifier: MIT */
/* The answers there are; the table is in answers.c. A new one is a row in both. */
#ifndef KNEE_SAY_ANSWERS_H
#define KNEE_SAY_ANSWERS_H

#include "knee_predict.h"
#include "say/fields.h"

extern const struct knee_answer_type knee_trace_answer;      /* struct knee_trace_report */
extern const struct knee_answer_type knee_runs_answer;       /* struct knee_runs_report */
extern const struct knee_answer_type knee_diff_answer;       /* struct knee_comparison_report */
extern const struct knee_answer_type knee_diff_logs_answer;  /* struct knee_log_comparison */
extern const struct knee_answer_type knee_slowdown_answer;   /* struct knee_slowdown */
extern const struct knee_answer_type knee_replay_answer;     /* struct knee_replay */
extern const struct knee_answer_type knee_hang_answer_type;  /* struct knee_hang_report */
extern const struct knee_answer_type knee_scale_answer_type; /* struct knee_scale_answer */
extern const struct knee_answer_type knee_doctor_answer;     /* struct knee_checkup */
extern const struct knee_answer_type knee_rules_answer;      /* the rules; no struct */
extern const struct knee_answer_type knee_roll_answer_type;  /* struct knee_roll_report */
extern const struct knee_answer_type knee_predict_answer;    /* struct knee_prediction */
extern const struct knee_answer_type knee_plan_answer_type;  /* struct knee_plan_answer */
extern const struct knee_answer_type knee_ops_answer;        /* struct knee_plan_answer, ops */
extern const struct knee_answer_type knee_tax_answer;        /* struct knee_tax */
extern const struct knee_answer_type knee_collective_answer; /* struct knee_collective */
extern const struct knee_answer_type knee_fit_answer;        /* struct knee_check */
extern const struct knee_answer_type knee_validate_answer;   /* struct knee_validation */
extern const struct knee_answer_type knee_cluster_answer;    /* struct knee_cluster */
extern const struct knee_answer_type knee_names_answer;      /* struct knee_work_names */

extern const struct knee_answer_type knee_launch_answer; /* struct knee_launch_result */
struct knee_launch_result {
    const char *framework, *launch;
};

/* For the page: rows under sets of changes; a tax's degrees as a plan (struct knee_found). */
struct knee_regime_rows {
    struct knee_row *rows;
    size_t count;
};
extern const struct knee_answer_type knee_regimes_answer, knee_axes_answer;

/* One GPU count of predict. */
#define KNEE_ROW_FIELDS 27
extern const struct knee_field knee_row_fields[KNEE_ROW_FIELDS];
/* The bytes of one GPU, struct knee_memory. */
#define KNEE_MEMORY_FIELDS 12
extern const struct knee_field knee_memory_fields[KNEE_MEMORY_FIELDS];

struct knee_plan;
/* "TP 4, DP 2, micro-batch 1, ZeRO-1, no recompute" */
void knee_say_plan(const struct knee_plan *plan, struct knee_text *text);

#endif
