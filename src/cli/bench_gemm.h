/* SPDX-License-Identifier: MIT */
#ifndef KNEE_CLI_BENCH_GEMM_H
#define KNEE_CLI_BENCH_GEMM_H

#include "bench/bench.h"
#include "cli/cli.h"

/* knee bench --gemm: times products or reads them, fits, says and writes. */
knee_status cli_bench_gemm(struct cli_run *run, const struct knee_bench_options *options);

/* knee bench --power: measures the GPU's power and says it. */
knee_status cli_bench_power(struct cli_run *run, const struct knee_bench_options *options);

#endif
