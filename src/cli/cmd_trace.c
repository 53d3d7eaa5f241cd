/* SPDX-License-Identifier: MIT */
/* knee trace: reads files, on several processes where there are, and asks what they say. */
#include "ask/ask_trace.h"
#include "base/error.h"
#include "cli/ranks.h"
#include "cli/rollcalls.h"
#include "cli/traces.h"
#include "out/gzip_out.h"
#include "reach/shared_account.h"

#include <math.h>
#include <stdlib.h>

static knee_status account_over(void *ctx, const struct knee_trace *traces, size_t count,
                                const int *holders, struct knee_account *out, struct knee_err *err)
{
    return knee_account_over(ctx, traces, count, holders, out, err);
}

static bool pack(void *ctx, const char *data, size_t size)
{
    return knee_pack_add(ctx, data, size);
}

/* The ranks that the page draws. */
static void pack_for_page(struct cli_run *run)
{
    const struct knee_account *account = &knee_ask_pushed_of(run->ask)->last.account;
    struct knee_packer *packer = knee_pack_begin(&run->trace);
    if (packer && !knee_write_perfetto(account, (struct knee_sink){pack, packer}, NULL))
        run->trace.failed = true;
    knee_pack_end(packer);
}

/* Keeps what the host did for changes that are priced by a replay: not where none are shown, where
 * the files are too large to be replayed unasked, or where ranks are missing. Rank 0 decides. */
static void keep_host(const struct cli_run *run, struct knee_runtime *rt,
                      const struct cli_files *files, struct knee_trace_options *reading)
{
    const struct knee_ask_trace_options *options = run->objects[0];
    bool replays = options->levers == KNEE_ASK_REPLAY;
    int64_t kept[2] = {cli_files_bytes(files) <= KNEE_LEVERS_MOST_BYTES, (int64_t)files->count};
    reading->detail = options->where;
    reading->host = options->where || options->chakra || replays;
    if (reading->host || options->levers == KNEE_ASK_CLOSED ||
        (run->common.csv && !run->common.html))
        return;
    if (rt && rt->rank > 0)
        kept[0] = kept[1] = 0;
    if (rt && !rt->all_reduce(rt, kept, 2, KNEE_RUNTIME_I64, KNEE_RUNTIME_MAX))
        rt->abort(rt, rt->fault);
    reading->host = kept[0] != 0;
    reading->host_ranks = (size_t)kept[1];
}

static knee_status answer(struct cli_run *run, struct cli_traces *traces, struct knee_runtime *rt)
{
    const struct knee_ask_trace_options *options = run->objects[0];
    struct knee_refused_file *refused = cli_traces_refused(traces);
    struct knee_ask_work work = {.silent = run->quiet,
                                 .refused = refused,
                                 .refused_count = traces->refused_count,
                                 .left_out = traces->refused_count + traces->again +
                                             traces->unsearched + traces->unfollowed,
                                 .interrupted = traces->interrupted,
                                 .account = traces->holders ? account_over : NULL,
                                 .ctx = rt};
    if (run->common.csv && !run->quiet)
        cli_traces_tell_losses(traces);
    if (!refused)
        return knee_fail(&run->err, KNEE_SYSTEM, "", "out of memory");
    knee_status status =
        knee_ask_adopt(run->ask, traces->traces, traces->count, KNEE_ASK_TOGETHER, &run->err);
    traces->count = 0; /* they are the ask's now */
    if (!status) {
        knee_ask_share(run->ask, traces->jobs, traces->holders, traces->job_count);
        status = cli_answer(run, &work);
        if (run->answered && run->common.html)
            pack_for_page(run);
        if (!status && run->answered && options->chakra)
            status = cli_write_chakra(options->chakra, &knee_ask_pushed_of(run->ask)->last.account,
                                      &run->err);
        if (!status && traces->interrupted && !run->quiet)
            status = cli_traces_stopped(&run->err);
    }
    free(refused);
    return status;
}

static knee_status read_and_answer(struct cli_run *run, struct knee_runtime *rt,
                                   struct cli_files *files)
{
    const struct knee_ask_trace_options *options = run->objects[0];
    const struct knee_ask_patterns *patterns = &knee_ask_pushed_of(run->ask)->patterns;
    struct cli_traces traces;
    knee_status status =
        cli_agree(run, rt, knee_push_patterns(run->ask, options->patterns, &run->err));
    if (status)
        return status;
    struct cli_reading how = {
        .options = {.patterns = patterns->rows, .pattern_count = patterns->count},
        .rt = rt,
        .where = run->words[0]};
    keep_host(run, rt, files, &how.options);
    /* what shows or replays the spans themselves needs them all in one place */
    how.whole = options->perfetto || options->names || run->common.html || how.options.host;
    status = cli_agree(run, rt, cli_traces_read(files, &how, &traces, &run->err));
    if (status)
        return status;
    cli_traces_complain(&traces);
    if (!run->quiet || traces.holders)
        status = answer(run, &traces, rt);
    cli_traces_release(&traces);
    return status;
}

/* Flight Recorder dumps and Inspector files have no timeline: what needs one is refused. */
static knee_status answer_rollcall(struct cli_run *run, const struct cli_files *files)
{
    const struct knee_ask_trace_options *options = run->objects[0];
    const struct knee_job *job = run->objects[1];
    bool gate = !isnan(options->max_ratio) || !isnan(options->min_overlap);
    if (run->quiet)
        return KNEE_OK;
    if (!gate && !options->perfetto && !options->chakra && !options->names)
        return cli_rollcall(run, files, &job->hw.cluster, options->strict);
    knee_fail(&run->err, gate ? KNEE_GATE : KNEE_INPUT, run->words[0],
              "who entered which collective, without a timeline: %s",
              gate ? "R and overlap are unknown" : "there is nothing to draw");
    knee_hint(&run->err, "record a trace: docs/guide/record.md");
    return run->err.status;
}

static knee_status join_and_answer(struct cli_run *run)
{
    struct knee_runtime *rt = NULL;
    if (run->word_count == 0) {
        knee_fail(&run->err, KNEE_USAGE, "", "no trace was named");
        knee_hint(&run->err, "name a folder or files, for example: knee trace runs/");
        return KNEE_USAGE;
    }
    knee_status status = cli_join(run, &rt);
    if (status)
        return status;
    run->quiet = rt && rt->rank > 0;
    struct cli_files files = {0};
    if (!run->quiet) /* a thousand ranks would look into every file */
        cli_files_find(&files, run->words, run->word_count, "trace");
    int64_t rollcall = cli_has_rollcall(&files);
    if (rt && !rt->all_reduce(rt, &rollcall, 1, KNEE_RUNTIME_I64, KNEE_RUNTIME_MAX))
        rt->abort(rt, rt->fault);
    if (rollcall)
        status = answer_rollcall(run, &files);
    else
        status = read_and_answer(run, rt, &files);
    cli_files_release(&files);
    if (rt)
        rt->finish(rt);
    return status;
}

static knee_status trace_main(struct cli_run *run, int argc, char **argv)
{
    run->quiet = knee_runtime_rank() > 0;
    return cli_ask_with(run, argc, argv, join_and_answer);
}

const struct cli_command cli_trace = {
    .name = "trace",
    .operands = "DIR|FILE...",
    .summary = "why a recorded step is slow, and what to change",
    .common = {"where", "cluster", "gpu", "perfetto", "max-ratio", "min-overlap"},
    .about = "Reads profiler traces (PyTorch, Nsight Systems, JAX, ROCm) of one or more ranks and "
             "says what the step time is spent on, which rank is late, and which change helps "
             "most. Damaged files, Flight Recorder dumps and NCCL Inspector files are read too.",
    .examples = "  knee trace runs/\n"
                "  knee trace rank0.json.gz rank1.json.gz --json\n"
                "  knee trace runs/ --max-ratio 0.5 --perfetto all.json\n"
                "  mpirun -H a,b,c,d knee trace /shared/runs/\n",
    .ask = &knee_ask_trace,
    .main = trace_main,
};
