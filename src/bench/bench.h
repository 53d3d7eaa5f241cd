/* SPDX-License-Identifier: MIT */
/*
 * knee bench: times collectives and messages over a sweep of sizes, checks what they return, and
 * compares the times with what pairs of hosts reach.
 *
 * How it times: warm up, then for each iteration a barrier, the clock, the operation, the clock.
 * The time of an iteration is that of its slowest rank; the time of a row is the median over the
 * iterations. The barrier is not in it, the skew with which ranks leave the barrier is.
 */
#ifndef KNEE_BENCH_BENCH_H
#define KNEE_BENCH_BENCH_H

#include "base/text.h"
#include "knee_out.h"
#include "reach/exchange.h"
#include "reach/runtime.h"
#include "reach/samples.h"

struct knee_bench_options {
    int collective, algorithm; /* rows of the lists below; -1: not given */
    double min_bytes, max_bytes, factor, iterations, warmup, row_time_s, ranks;
    bool pairs, gpu, gemm, power;
    const char *table, *on, *calibrate; /* of gemm */
    unsigned char source[KNEE_KEYS_MAX];
};
extern const struct knee_keys knee_bench_keys;
extern const struct knee_choices knee_bench_collectives; /* "all", "all_reduce", ... */
extern const struct knee_choices knee_bench_algorithms;  /* "mpi", "ring", ... */

/* Two ranks (of different hosts, where there are several): what a message between them takes. */
struct knee_bench_pair {
    int a, b;
    struct knee_line line;
    bool slow, late; /* its rate, its latency: far from the others' */
};

struct knee_bench_row {
    enum knee_op op;
    const struct knee_exchange *exchange; /* NULL: the engine's own */
    double bytes, count;                  /* as nccl-tests counts */
    struct knee_spread spread;            /* over iterations, slowest rank each */
    double *rank_median_s;                /* per rank, own clock */
    int64_t wrong;                        /* elements, over all ranks; -1: not looked at */
    double expected_s;                    /* from the pairs; NaN: not known */
    double latency_share;                 /* of it; NaN: not known */
};

/* What stands out; in words. */
#define KNEE_BENCH_FINDINGS_MAX 16
struct knee_bench_finding {
    char words[320];
};

struct knee_bench {
    struct knee_runtime *rt;
    struct knee_bench_options options;
    char **host_names; /* per host; rank 0 only */
    int64_t *pids;     /* per rank; rank 0 only */
    struct knee_bench_row *rows;
    size_t row_count, rows_wanted;
    struct knee_bench_pair *pairs;
    size_t pair_count;
    struct knee_line wire; /* the median of the neighbours' lines; NaN: not measured */
    char unable[160];      /* operations that the algorithm does not do; "" when none */
    struct knee_bench_finding findings[KNEE_BENCH_FINDINGS_MAX];
    size_t finding_count;
};

/* Defaults for what is not given; refuses what makes no sense (KNEE_USAGE). */
void knee_bench_options_init(struct knee_bench_options *options);
knee_status knee_bench_options_complete(struct knee_bench_options *options, struct knee_err *err);

/* Measures, on every rank; `tell` (may be NULL) is called on rank 0 after each row. On failure the
 * rows until then are there. Free with knee_bench_release(). */
typedef void knee_bench_tell(void *ctx, const struct knee_bench *bench);
knee_status knee_bench_run(struct knee_runtime *rt, const struct knee_bench_options *options,
                           knee_bench_tell *tell, void *ctx, struct knee_bench *out,
                           struct knee_err *err);
void knee_bench_release(struct knee_bench *bench);

/* ---- Parts, for tests ---- */

/* What row i of a rank's input is, and what must come out at element i. */
float knee_bench_input(int rank, size_t i);
float knee_bench_output(enum knee_op op, int rank, int size, size_t count, size_t i);
/* How many elements go in and come out on a rank, of `count`. */
size_t knee_bench_in(enum knee_op op, int rank, int size, size_t count);
size_t knee_bench_out(enum knee_op op, int rank, int size, size_t count);

/* Seconds for `bytes` over `ranks`: of one of our algorithms, or the best known when NULL. */
double knee_bench_expected_s(enum knee_op op, const struct knee_exchange *exchange, double ranks,
                             double bytes, const struct knee_line *wire);

/* Marks pairs that are far from the others, names hosts whose pairs are, and rows that are slower
 * than they should be or of two kinds. Appends to findings. */
void knee_bench_judge(struct knee_bench *bench);

/* alpha and beta from the fastest runs of one of our algorithms. False: too few rows. */
bool knee_bench_refit(const struct knee_bench *bench, const struct knee_exchange *exchange,
                      struct knee_line *out);

/* ---- Writing ---- */

void knee_bench_write(const struct knee_bench *bench, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text);

#endif
