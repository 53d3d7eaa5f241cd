/* SPDX-License-Identifier: MIT */
/* A job file from any bytes, and what follows from it: read, complete, predict, solve, print. */
#include "knee_out.h"
#include "knee_read.h"
#include "out/answer.h"
#include "say/answers.h"
#include "seldom.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct knee_job job, before;
    struct knee_prediction prediction;
    struct knee_solution solution;
    struct knee_err err;
    struct knee_text text = {0};
    struct knee_style style = {0};
    knee_job_init(&job);
    before = job;
    if (knee_yaml_read((struct knee_named_text){(const char *)data, size, "fuzz"}, &knee_job_keys,
                       &job, sizeof job, &err)) {
        if (memcmp(&job, &before, sizeof job))
            abort();
        return 0;
    }
    if (job.workers.ranges > 2) /* long tables only cost time */
        return 0;
    if (knee_predict(&job, NULL, &prediction, &err))
        return 0;
    for (size_t i = 0; i < prediction.row_count; i++)
        if (prediction.rows[i].step.wall_s < prediction.rows[i].step.label_s[KNEE_COMPUTE])
            abort();
    prediction.job.at = 64;
    if (seldom(data, size, 4))
        knee_solve(&prediction.job, "bandwidth", "efficiency=0.9", &solution, &err);
    if (prediction.row_count < 100 && seldom(data, size, 8))
        for (int format = KNEE_TEXT; format <= KNEE_MARKDOWN; format++)
            knee_answer_write(&knee_predict_answer, &prediction, (enum knee_format)format, &style,
                              &text);
    knee_text_release(&text);
    knee_prediction_release(&prediction);
    return 0;
}
