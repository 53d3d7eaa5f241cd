/* SPDX-License-Identifier: MIT */
#include "say/answers.h"
#include "say/lab_result.h"
#include "say/watch_report.h"

const struct knee_answer_type *const knee_answer_types[] = {
    &knee_predict_answer,   &knee_plan_answer_type,  &knee_ops_answer,       &knee_launch_answer,
    &knee_tax_answer,       &knee_collective_answer, &knee_cluster_answer,   &knee_fit_answer,
    &knee_validate_answer,  &knee_scale_answer_type, &knee_trace_answer,     &knee_diff_answer,
    &knee_diff_logs_answer, &knee_replay_answer,     &knee_slowdown_answer,  &knee_names_answer,
    &knee_hang_answer_type, &knee_lab_answer,        &knee_watch_answer,     &knee_ras_answer_type,
    &knee_doctor_answer,    &knee_rules_answer,      &knee_roll_answer_type, NULL,
};
