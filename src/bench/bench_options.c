/* SPDX-License-Identifier: MIT */
/* The inputs of knee bench, and the lists of what it can time. */
#include "base/error.h"
#include "base/keys.h"
#include "bench/bench.h"

#include <math.h>
#include <string.h>

/* Row 0 is all of them, row 1 the first that has a cost. */
KNEE_CHOICES(knee_bench_collectives, "collective", KNEE_OPS - KNEE_OP_ALL_REDUCE + 1,
             row == 0 ? "all" : knee_op_name((enum knee_op)(row - 1 + KNEE_OP_ALL_REDUCE)));

static const char *const algorithms[] = {"mpi", "ring", "tree", "recursive-doubling",
                                         "halving-doubling"};
KNEE_WORDS(knee_bench_algorithms, "algorithm", algorithms);

#define NUMBER(name, field, unit, low, high, absent, words)                                        \
    KNEE_NUMBER(struct knee_bench_options, name, field, unit, low, high, "Bench", absent, words)
#define SWITCH(key_name, field_name, words)                                                        \
    KNEE_OPTION(struct knee_bench_options, key_name, KNEE_KEY_SWITCH, field_name, "Bench", "",     \
                words)

#define WORD(key_name, field_name, absent, words)                                                  \
    KNEE_OPTION(struct knee_bench_options, key_name, KNEE_KEY_WORD, field_name, "Bench", absent,   \
                words)

static const struct knee_key rows[] = {
    KNEE_CHOICE(struct knee_bench_options, "collective", collective, knee_bench_collectives,
                "Bench", "all_reduce", "collective to time, or all"),
    KNEE_CHOICE(struct knee_bench_options, "algorithm", algorithm, knee_bench_algorithms, "Bench",
                "mpi", "mpi: as the MPI library does it; others: knee's own implementation"),
    NUMBER("min-bytes", min_bytes, KNEE_UNIT_BYTES, 4, 1e12, "1KiB", "smallest buffer"),
    NUMBER("max-bytes", max_bytes, KNEE_UNIT_BYTES, 4, 1e12, "4MiB", "largest buffer"),
    NUMBER("factor", factor, KNEE_UNIT_FACTOR, 1.1, 1024, "4", "ratio of one size to the next"),
    NUMBER("iterations", iterations, KNEE_UNIT_COUNT, 1, 1e6, "20", "timed iterations per size"),
    NUMBER("warmup", warmup, KNEE_UNIT_COUNT, 2, 1e6, "5", "untimed iterations first"),
    NUMBER("row-time", row_time_s, KNEE_UNIT_SECONDS, 0.01, 1e6, "10s",
           "longest time per size: fewer iterations, but at least 5; --gemm: 50ms, --power: 5s"),
    NUMBER("ranks", ranks, KNEE_UNIT_COUNT, 1, 64, "from mpirun",
           "start this many processes on this host, without mpirun"),
    SWITCH("pairs", pairs, "measure every pair of hosts and name the slow ones"),
    SWITCH("gpu", gpu, "use GPU buffers and NCCL"),
    SWITCH("gemm", gemm, "time matrix products on this GPU and fit the constants of knee plan"),
    SWITCH("power", power,
           "measure the power of this GPU: idle, waiting, memory-bound, computing (about 30 s)"),
    WORD("table", table, "measured here", "with --gemm: CSV table of products timed elsewhere"),
    WORD("on", on, "from the table or the driver", "with --table: the GPU, such as h200"),
    WORD("calibrate", calibrate, "none",
         "with --gemm: write the fitted constants, for knee plan --rates"),
};

const struct knee_keys knee_bench_keys = KNEE_KEY_TABLE(rows, struct knee_bench_options);

void knee_bench_options_init(struct knee_bench_options *options)
{
    memset(options, 0, sizeof *options);
    knee_keys_clear(&knee_bench_keys, options);
}

static void fill(struct knee_bench_options *options, double *field, double value)
{
    knee_keys_fill(&knee_bench_keys, options, field, value, KNEE_DEFAULT);
}

static knee_status check_gemm(const struct knee_bench_options *options, struct knee_err *err)
{
    const char *beside = options->table ? "--table" : options->on ? "--on" : "--calibrate";
    if (!options->gemm && (options->table || options->on || options->calibrate)) {
        knee_fail(err, KNEE_USAGE, beside, "goes with --gemm");
        knee_hint(err, "knee bench --gemm %s ...", beside);
        return KNEE_USAGE;
    }
    if (options->power &&
        (options->gemm || options->pairs || options->gpu || !isnan(options->ranks)))
        return knee_fail_hint(err, KNEE_USAGE, "--power",
                              "leave out --gemm, --pairs, --gpu and --ranks",
                              "measures one GPU and nothing else");
    if (options->gemm && (options->pairs || options->gpu || !isnan(options->ranks)))
        return knee_fail_hint(err, KNEE_USAGE, "--gemm", "leave out --pairs, --gpu and --ranks",
                              "products have nothing to do with a network");
    return KNEE_OK;
}

knee_status knee_bench_options_complete(struct knee_bench_options *options, struct knee_err *err)
{
    if (options->collective < 0)
        options->collective = 1;
    if (options->algorithm < 0)
        options->algorithm = 0;
    fill(options, &options->max_bytes,
         isnan(options->min_bytes) ? 4 << 20 : fmax(options->min_bytes, 4 << 20));
    fill(options, &options->min_bytes, fmin(1024, options->max_bytes));
    fill(options, &options->factor, 4);
    fill(options, &options->iterations, 20);
    fill(options, &options->warmup, 5);
    fill(options, &options->row_time_s, options->gemm ? 0.05 : options->power ? 5 : 10);
    knee_status status = check_gemm(options, err);
    if (status)
        return status;
    if (options->min_bytes > options->max_bytes)
        return knee_fail_hint(err, KNEE_USAGE, "--min-bytes", "turn them round",
                              "larger than --max-bytes");
    if (options->gpu && options->algorithm != 0)
        return knee_fail_hint(err, KNEE_USAGE, "--algorithm",
                              "NCCL takes its choice from the environment, as NCCL_ALGO=Ring",
                              "knee's own algorithms do not run on a GPU");
    if (options->gpu && options->pairs)
        return knee_fail_hint(err, KNEE_USAGE, "--pairs", "leave out --gpu, or --pairs",
                              "pairs are measured in host memory only");
    return KNEE_OK;
}
