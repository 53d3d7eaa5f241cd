/* SPDX-License-Identifier: MIT */
/* knee bench of one GPU: --gemm (products, and the constants that follow) and --power (watts). */
#include "cli/bench_gemm.h"
#include "knee_read.h"

#include "base/error.h"
#include "bench/gemm.h"
#include "bench/power_bench.h"
#include "bench/power_say.h"
#include "cluster/gpu_words.h"
#include "cluster/presets.h"
#include "out/answer.h"

#include <stdio.h>
#include <stdlib.h>

#define LARGEST_TABLE ((size_t)256 << 20)

static void show_progress(void *ctx, size_t done, size_t of)
{
    (void)ctx;
    fprintf(stderr, "\r\033[K  products: %zu of %zu%s", done, of, done == of ? "\r\033[K" : "");
}

static knee_status get_products(struct cli_run *run, const struct knee_bench_options *options,
                                struct knee_timed_products *out)
{
    char *data = NULL;
    size_t length = 0;
    if (!options->table)
        return knee_gemm_measure(options->row_time_s, cli_progress() ? show_progress : NULL, NULL,
                                 out, &run->err);
    knee_status status = cli_read_file(options->table, LARGEST_TABLE, &data, &length, &run->err);
    if (!status)
        status = knee_timed_products_read(options->table, data, length, NULL, out, &run->err);
    free(data);
    return status;
}

/* The GPU given by --gpu, or the name in the table or from the driver. */
static knee_status find_gpu(struct cli_run *run, const struct knee_bench_options *options,
                            const struct knee_timed_products *gemm, const struct knee_gpu **out)
{
    const char *name = options->on ? options->on : gemm->gpu;
    *out = knee_gpu_named(name);
    if (!*out)
        *out = knee_gpu_in(name);
    if (*out)
        return KNEE_OK;
    if (!*name)
        knee_fail(&run->err, KNEE_USAGE, "--on", "the table does not say which GPU it is of");
    else
        knee_fail(&run->err, KNEE_INPUT, "--on", "there are no constants for '%.60s'", name);
    knee_hint(&run->err, "--on h200, say; knee list gpus has the names");
    return run->err.status;
}

static knee_status machine_for(struct cli_run *run, const struct knee_gpu *gpu,
                               struct knee_platform *platform, struct knee_machine *out)
{
    knee_platform_init(platform);
    knee_status status =
        knee_keys_set(&knee_platform_keys, platform, "gpu", gpu->name, KNEE_FLAG, &run->err);
    return status ? status : knee_machine_init(platform, NULL, out, &run->err);
}

static knee_status write_constants(struct cli_run *run, const char *name,
                                   const struct knee_gemm_report *report)
{
    struct knee_text text = {0};
    knee_text_printf(&text,
                     "# Constants fitted by knee bench --gemm, for %s.\n"
                     "# Use with --rates, with any profile.\n",
                     report->gpu->name);
    knee_write_constants(&report->fit->rates, &text);
    knee_status status = text.failed ? knee_fail(&run->err, KNEE_SYSTEM, name, "out of memory")
                                     : cli_write_file(name, &text, &run->err);
    knee_text_release(&text);
    return status;
}

knee_status cli_bench_gemm(struct cli_run *run, const struct knee_bench_options *options)
{
    struct knee_timed_products gemm = {0};
    struct knee_platform platform;
    struct knee_machine machine;
    struct knee_products_fit fit;
    struct knee_style style = cli_style(run);
    struct knee_gemm_report report = {.gemm = &gemm, .fit = &fit};
    knee_status status = get_products(run, options, &gemm);
    if (!status)
        status = find_gpu(run, options, &gemm, &report.gpu);
    if (!status)
        status = machine_for(run, report.gpu, &platform, &machine);
    if (!status)
        status = knee_products_fit(gemm.rows, gemm.count, &machine, &fit, &run->err);
    if (!status)
        knee_answer_write(&knee_gemm_answer, &report, cli_format(run), &style, &run->text);
    if (!status && options->calibrate)
        status = write_constants(run, options->calibrate, &report);
    knee_timed_products_release(&gemm);
    return status;
}

static void show_power_progress(void *ctx, size_t done, size_t of)
{
    (void)ctx;
    fprintf(stderr, "\r\033[K  power: %zu of %zu%s", done, of, done == of ? "\r\033[K" : "");
}

knee_status cli_bench_power(struct cli_run *run, const struct knee_bench_options *options)
{
    struct knee_power_bench bench;
    struct knee_style style = cli_style(run);
    knee_status status = knee_power_measure(
        options->row_time_s, cli_progress() ? show_power_progress : NULL, NULL, &bench, &run->err);
    if (!status)
        knee_answer_write(&knee_power_answer, &bench, cli_format(run), &style, &run->text);
    return status;
}
