/* SPDX-License-Identifier: MIT */
/*
 * Where does the next H100 stop paying for a 7B model? Against the library, once it is installed:
 *   cc examples/predict.c $(pkg-config --cflags --libs knee) -o predict && ./predict
 */
#include "knee_judge.h"

#include <stdio.h>

int main(void)
{
    static const char *const inputs[][2] = {
        {"params", "7B"}, {"gpu", "h100"}, {"global-batch", "4M"}, {"workers", "64..4096x4"}};
    struct knee_job job;
    struct knee_prediction prediction = {0};
    struct knee_err err;
    knee_status status = KNEE_OK;

    knee_job_init(&job);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs && !status; i++)
        status = knee_keys_set(&knee_job_keys, &job, inputs[i][0], inputs[i][1], KNEE_FLAG, &err);
    if (!status)
        status = knee_predict(&job, NULL, &prediction, &err);
    if (status) {
        fprintf(stderr, "%s: %s; %s\n", err.where, err.what, err.hint);
        return (int)status;
    }
    for (size_t i = 0; i < prediction.row_count; i++)
        printf("K = %4.0f  R = %.3f  E = %.3f\n", prediction.rows[i].workers,
               prediction.rows[i].ratio, prediction.rows[i].efficiency);
    size_t lever = prediction.verdict.lever; /* SIZE_MAX: no lever helps */
    printf("knee at %.0f workers; lever: %s\n", prediction.knee.tolerance_workers,
           lever < prediction.lever_count ? prediction.levers[lever].name : "none helps");
    knee_prediction_release(&prediction);
    return 0;
}
