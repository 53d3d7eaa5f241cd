/* SPDX-License-Identifier: MIT */
/* knee bench: what this network really does. Only rank 0 writes. */
#include "base/error.h"
#include "bench/bench.h"
#include "cli/bench_gemm.h"
#include "cli/cli.h"
#include "cli/ranks.h"
#include "reach/stop.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct telling {
    enum knee_format format;
    struct knee_style style;
    const char *output;
    bool progress;
};

static void tell(void *ctx, const struct knee_bench *bench)
{
    const struct telling *telling = ctx;
    struct knee_text text = {0};
    knee_bench_write(bench, telling->format, &telling->style, &text);
    /* If a rank dies, the file holds all sizes measured so far. A failure to write it is reported
     * at the end. */
    if (telling->output && !cli_write_file(telling->output, &text, NULL))
        knee_text_release(&text);
    else
        knee_stop_keep(&text);
    if (telling->progress)
        fprintf(stderr, "\r\033[K  %s, %.0f bytes: %zu of %zu%s",
                knee_op_name(bench->rows[bench->row_count - 1].op),
                bench->rows[bench->row_count - 1].bytes, bench->row_count, bench->rows_wanted,
                bench->row_count == bench->rows_wanted ? "\r\033[K" : "");
}

static knee_status nobody_to_talk_to(struct cli_run *run)
{
    knee_fail(&run->err, KNEE_USAGE, "", "bench needs 2 or more ranks");
    knee_hint(&run->err,
              "mpirun -H a,b,c,d knee bench over hosts, or knee bench --ranks 4 on this one");
    return KNEE_USAGE;
}

static int64_t wrong_of(const struct knee_bench *bench)
{
    int64_t wrong = 0;
    for (size_t i = 0; i < bench->row_count; i++)
        wrong += bench->rows[i].wrong;
    return wrong;
}

static knee_status measure(struct cli_run *run, struct knee_runtime *rt,
                           const struct knee_bench_options *options)
{
    struct telling telling = {cli_format(run), cli_style(run), run->common.output, cli_progress()};
    struct knee_bench bench;
    char line[160];
    snprintf(line, sizeof line,
             "knee: rank %d: stopped: another rank died, or the run was ended%s\n", rt->rank,
             rt->rank == 0 ? "; what was measured until then is above or in --output" : "");
    knee_stop_arm(line);
    knee_status status = knee_bench_run(rt, options, tell, &telling, &bench, &run->err);
    if (status == KNEE_SYSTEM)
        rt->abort(rt, run->err.what);
    knee_stop_disarm();
    if (!status && rt->rank == 0) {
        knee_bench_write(&bench, telling.format, &telling.style, &run->text);
        if (wrong_of(&bench) > 0)
            status = knee_fail(&run->err, KNEE_GATE, "", "%lld values came back wrong",
                               (long long)wrong_of(&bench));
    }
    knee_bench_release(&bench);
    return status;
}

/* The ranks of mpirun, or as many as were asked for on this host. */
static knee_status open_runtime(struct cli_run *run, const struct knee_bench_options *options,
                                struct knee_runtime **rt)
{
    bool launched = knee_runtime_launched();
    if (launched && !isnan(options->ranks)) {
        knee_fail(&run->err, KNEE_USAGE, "--ranks", "mpirun has said how many there are");
        knee_hint(&run->err, "leave it out, or start knee without mpirun");
        return KNEE_USAGE;
    }
    if (!launched && isnan(options->ranks))
        return nobody_to_talk_to(run);
    struct knee_runtime *base = NULL;
    knee_status status = launched ? knee_runtime_open(NULL, &base, &run->err)
                                  : knee_runtime_fork((int)options->ranks, &base, &run->err);
    if (status)
        return status;
    run->quiet = base->rank > 0;
    *rt = base;
    return options->gpu ? knee_runtime_open_over("nccl", base, rt, &run->err) : KNEE_OK;
}

static knee_status bench_main(struct cli_run *run, int argc, char **argv)
{
    struct knee_bench_options options;
    struct knee_runtime *rt = NULL;
    knee_bench_options_init(&options);
    run->objects[0] = &options;
    run->quiet = knee_runtime_rank() > 0;
    knee_status status = cli_parse(run, argc, argv);
    if (status || run->common.help)
        return status;
    if ((status = knee_bench_options_complete(&options, &run->err)))
        return status;
    if (options.gemm)
        return cli_bench_gemm(run, &options);
    if (options.power)
        return cli_bench_power(run, &options);
    if ((status = open_runtime(run, &options, &rt)))
        return status;
    run->quiet = rt->rank > 0;
    cli_same_question(run, rt);
    status = measure(run, rt, &options);
    rt->finish(rt);
    return status;
}

const struct cli_command cli_bench = {
    .name = "bench",
    .operands = "",
    .summary = "bandwidth of this network against what it should reach",
    .common = {"collective", "max-bytes", "ranks", "gpu", "pairs", "gemm", "power"},
    .about = "Times collectives between the ranks of an MPI job, checks their results and compares "
             "them with the bandwidth between pairs of nodes. The output has the format of "
             "nccl-tests. --gemm times matrix products on one GPU; --power measures its power.",
    .examples = "  mpirun -n 4 knee bench --collective all\n"
                "  mpirun -H a,b,c,d knee bench --algorithm ring --json --output ring.json\n"
                "  mpirun -H a,b,c,d knee bench --pairs\n"
                "  knee bench --ranks 2 --gpu\n"
                "  knee bench --gemm --calibrate mine.yaml\n"
                "  knee bench --gemm --table h200.csv --on h200\n"
                "  knee bench --power --csv\n",
    .keys = {&knee_bench_keys},
    .main = bench_main,
};
