/* SPDX-License-Identifier: MIT */
/* knee record: how to record a job, before it starts or while it runs. */
#include "base/error.h"
#include "base/keys.h"
#include "cli/record.h"

#include <stdio.h>
#include <string.h>

#define SWITCH(key_name, field, words)                                                             \
    KNEE_OPTION(struct record_options, key_name, KNEE_KEY_SWITCH, field, "record env", "", words)
#define SECONDS(key_name, field, low, high, absent, words)                                         \
    KNEE_NUMBER(struct record_options, key_name, field, KNEE_UNIT_SECONDS, low, high,              \
                "record now", absent, words)

static const struct knee_key rows[] = {
    KNEE_OPTION(struct record_options, "dir", KNEE_KEY_WORD, dir, "Recording",
                "knee-live or knee-capture", "folder for the files; use one that all nodes see"),
    SWITCH("always", always, "record every step instead of samples below 0.1% of the job's time"),
    SWITCH("mpi", mpi, "for a job without GPUs that communicates with MPI"),
    SECONDS("length", length_s, 0.05, 600, "2s", "how long to record"),
    SECONDS("lead", lead_s, 0.1, 3600, "15s",
            "delay before recording; processes poll every ten seconds"),
    KNEE_NUMBER(struct record_options, "at", at_s, KNEE_UNIT_COUNT, 0, 3e9, "record now",
                "now and --lead", "start at this Unix time, the same on all hosts"),
    SECONDS("limit", limit_s, 0.1, 3600, "120s", "longest wait for the traces"),
};
const struct knee_keys record_keys = KNEE_KEY_TABLE(rows, struct record_options);

/* The lines to paste into a training script. They run as they are: tests/python runs them. */
static const char *const snippet =
    "Paste this into the training script of every rank, then run: knee trace runs\n"
    "\n"
    "    from torch.profiler import profile, schedule, ProfilerActivity as A\n"
    "    import os; os.makedirs(\"runs\", exist_ok=True)\n"
    "    prof = profile(activities=[A.CPU, A.CUDA], record_shapes=True,\n"
    "        schedule=schedule(wait=10, warmup=2, active=3, repeat=1),\n"
    "        on_trace_ready=lambda p: p.export_chrome_trace(\n"
    "            f\"runs/rank{os.environ.get('RANK', '0')}.json.gz\"))\n"
    "    prof.start()            # before the training loop\n"
    "    prof.step()             # after each step\n"
    "    prof.stop()             # after the loop\n"
    "\n"
    "Without changing the script:\n"
    "    eval \"$(knee record env)\"   before the job starts, then: knee watch\n"
    "    knee record now             on a job started with KINETO_USE_DAEMON=1\n";

static knee_status parse(struct cli_run *run, struct record_options *options, int argc, char **argv)
{
    knee_keys_clear(&record_keys, options);
    run->objects[0] = options;
    return cli_parse(run, argc, argv);
}

static knee_status record_main(struct cli_run *run, int argc, char **argv)
{
    struct record_options options = {0};
    knee_status status = parse(run, &options, argc, argv);
    if (status || run->common.help)
        return status;
    const char *word = run->word_count ? run->words[0] : "";
    if (strcmp(word, "env") == 0)
        return record_env(run, &options);
    if (strcmp(word, "now") == 0)
        return record_now(run, &options);
    if (!*word) {
        knee_text_puts(&run->text, snippet);
        return KNEE_OK;
    }
    knee_fail(&run->err, KNEE_USAGE, "", "'%.60s' is not env or now", word);
    knee_hint(&run->err, "knee record, knee record env, or knee record now");
    return KNEE_USAGE;
}

const struct cli_command cli_record = {
    .name = "record",
    .operands = "[env|now]",
    .summary = "record a job: lines to paste into the script, or from outside",
    .about =
        "Without arguments: prints the lines to paste into a PyTorch training script.\n"
        "record env: prints the variables to export before a job starts. A recorder in every rank "
        "then writes steps and collectives for knee watch.\n"
        "record now: profiles a running PyTorch job that was started with KINETO_USE_DAEMON=1, "
        "then runs knee trace. With several nodes, run it on each with the same --at.",
    .common = {"dir", "length", "at", "always", "mpi"},
    .examples = "  knee record\n"
                "  eval \"$(knee record env)\" && torchrun --nproc-per-node 8 train.py\n"
                "  eval \"$(knee record env --mpi)\" && mpirun -n 8 ./solver\n"
                "  knee record now --length 500ms --dir /shared/capture\n",
    .keys = {&record_keys},
    .most_words = 1,
    .main = record_main,
};

/* ---- The names of the last release ---- */

static knee_status renamed(struct cli_run *run, struct record_options *options, int argc,
                           char **argv, const char *now)
{
    knee_status status = parse(run, options, argc, argv);
    if (!status && !run->common.help)
        fprintf(stderr, "knee: 'knee %s' is now 'knee record %s'\n", run->command->name, now);
    return status;
}

static knee_status live_main(struct cli_run *run, int argc, char **argv)
{
    struct record_options options = {0};
    knee_status status = renamed(run, &options, argc, argv, "env");
    return status || run->common.help ? status : record_env(run, &options);
}

static knee_status capture_main(struct cli_run *run, int argc, char **argv)
{
    struct record_options options = {0};
    knee_status status = renamed(run, &options, argc, argv, "now");
    return status || run->common.help ? status : record_now(run, &options);
}

const struct cli_command cli_live = {
    .name = "live",
    .operands = "env",
    .summary = "old name of 'knee record env'",
    .about = "Old name of 'knee record env'.",
    .common = {"dir", "always", "mpi"},
    .examples = "",
    .keys = {&record_keys},
    .most_words = 1,
    .main = live_main,
};

const struct cli_command cli_capture = {
    .name = "capture",
    .operands = "",
    .summary = "old name of 'knee record now'",
    .about = "Old name of 'knee record now'.",
    .common = {"dir", "length", "lead", "at", "limit"},
    .examples = "",
    .keys = {&record_keys},
    .most_words = 0,
    .main = capture_main,
};
