/* SPDX-License-Identifier: MIT */
/* Closed-form evaluations per second on one core, and the ratio to the million that is promised. */
#include "knee_predict.h"

#include <stdio.h>
#include <time.h>

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double rate_of(const char *jitter)
{
    static const char *const inputs[][2] = {{"params", "7B"}, {"gpu", "h100"}, {"overlap", "0.7"}};
    struct knee_job job;
    struct knee_terms terms;
    struct knee_row row;
    double sum = 0;
    long count = 0;
    knee_job_init(&job);
    for (size_t i = 0; i < 3; i++)
        if (knee_keys_set(&knee_job_keys, &job, inputs[i][0], inputs[i][1], KNEE_FLAG, NULL))
            return 0;
    if (knee_keys_set(&knee_job_keys, &job, "jitter", jitter, KNEE_FLAG, NULL) ||
        knee_job_complete(&job, NULL))
        return 0;
    knee_terms_init(&job, &terms);
    double start = now_s(), end;
    do {
        for (int i = 0; i < 20000; i++, count++) {
            knee_evaluate(&terms, 1 + (double)(count % 4096), &row);
            sum += row.efficiency;
        }
        end = now_s();
    } while (end - start < 1);
    return sum > 0 ? (double)count / (end - start) : 0;
}

int main(void)
{
    double plain = rate_of("0"), jitter = rate_of("0.01");
    printf("closed form           %10.3g evaluations/s  %6.1f x the promised 1e6/s\n", plain,
           plain / 1e6);
    printf("  with stragglers     %10.3g evaluations/s\n", jitter);
    return plain >= 1e6 ? 0 : 1;
}
