/* SPDX-License-Identifier: MIT */
/*
 * How long a fit of 1000 rows and a sweep of all algorithms over sizes at 100,000 ranks take,
 * against what is promised: well under a second, and 10 ms. Best of several runs.
 */
#include "knee_logs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Repeatable noise of 3 %. */
static double noise(void)
{
    static unsigned state = 1;
    state = state * 1103515245u + 12345u;
    return 1 + 0.03 * (double)(state >> 16) / 65536;
}

/* A log that the model makes, `rows` sizes from 8 bytes to 8 GB. */
static struct knee_log make_log(const struct knee_cluster *cluster, double ranks, double nodes,
                                size_t rows)
{
    struct knee_log log = {.op = KNEE_OP_ALL_REDUCE,
                           .ranks = ranks,
                           .nodes = nodes,
                           .sample_count = rows,
                           .gpus_per_process = 1,
                           .adapters = NAN};
    struct knee_cluster wide = *cluster;
    struct knee_layout layout;
    log.samples = calloc(rows, sizeof *log.samples);
    if (!log.samples || knee_log_layout(&log, &wide, &layout, NULL))
        exit(4);
    for (size_t i = 0; i < rows; i++) {
        double bytes = rint(8 * pow(1e9, (double)i / (double)(rows - 1)));
        double time_s = knee_model_time_s(&wide, &layout, log.op, bytes, NULL, NULL) * noise();
        log.samples[i] = (struct knee_sample){bytes, time_s, time_s, time_s, i};
    }
    return log;
}

static struct knee_fitted record;

static double fit_s(const struct knee_log *logs, size_t count, const struct knee_cluster *prior)
{
    struct knee_cluster fitted;
    double best = INFINITY;
    for (int run = 0; run < 3; run++) {
        double start = now_s();
        if (knee_fit(&(struct knee_log_view){logs, count, NULL}, prior, &fitted, &record, NULL))
            return NAN;
        best = fmin(best, now_s() - start);
    }
    return best;
}

static double sweep_s(const struct knee_cluster *cluster, enum knee_op op, double ranks)
{
    double bytes[KNEE_SIZES_MAX], best = INFINITY;
    struct knee_collective_query query = {op, {ranks, NAN, 1, 1}, bytes, 0};
    struct knee_collective collective;
    if (knee_sizes_parse("4K..8G", "", bytes, KNEE_SIZES_MAX, &query.size_count, NULL))
        return NAN;
    for (int run = 0; run < 20; run++) {
        double start = now_s();
        if (knee_collective_run(cluster, &query, NULL, &collective, NULL))
            return NAN;
        best = fmin(best, now_s() - start);
        knee_collective_release(&collective);
    }
    return best;
}

static bool report(const char *what, double took_s, double promised_s)
{
    printf("%-44s %9.2f ms  %6.2f of the promised %g ms\n", what, 1e3 * took_s, took_s / promised_s,
           1e3 * promised_s);
    return took_s <= promised_s;
}

int main(void)
{
    struct knee_cluster prior, truth;
    struct knee_log logs[32];
    bool kept = true;
    if (knee_cluster_parse("8xh100 * 0 @ ib400x8", &prior, NULL))
        return 4;
    truth = prior;
    truth.levels[1].latency_s *= 1.5;
    truth.levels[1].bytes_per_s *= 0.8;
    for (size_t i = 0; i < 32; i++)
        logs[i] = make_log(&truth, 16 + 8 * (double)i, 2 + (double)i, 32);
    kept &= report("fit of 1024 rows in 32 logs", fit_s(logs, 32, &prior), 0.5);
    struct knee_log one = make_log(&truth, 16, 2, 1000);
    kept &= report("fit of 1000 rows in one log", fit_s(&one, 1, &prior), 0.5);
    kept &= report("sweep, all_reduce, 22 sizes, 1e5 ranks",
                   sweep_s(&prior, KNEE_OP_ALL_REDUCE, 1e5), 0.01);
    kept &= report("sweep, all_to_all, 22 sizes, 1e5 ranks",
                   sweep_s(&prior, KNEE_OP_ALL_TO_ALL, 1e5), 0.01);
    for (size_t i = 0; i < 32; i++)
        free(logs[i].samples);
    free(one.samples);
    return kept ? 0 : 1;
}
