/* SPDX-License-Identifier: MIT */
/* knee live env: what a job's environment needs so that the agent runs in it. */
#include "base/error.h"
#include "base/keys.h"
#include "cli/cli.h"
#include "reach/runtime.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

struct live_options {
    const char *dir;
    bool always, mpi;
    unsigned char source[KNEE_KEYS_MAX];
};

static const struct knee_key rows[] = {
    {.name = "dir",
     .kind = KNEE_KEY_WORD,
     .offset = offsetof(struct live_options, dir),
     .group = "Recording",
     .otherwise = "knee-live",
     .help = "folder that the ranks write to; one that all hosts see lets one command watch all"},
    {.name = "always",
     .kind = KNEE_KEY_SWITCH,
     .offset = offsetof(struct live_options, always),
     .group = "Recording",
     .otherwise = "",
     .help = "record every step, not only as many as stay under 0.1 % of the job's time; one is "
             "written every half second"},
    {.name = "mpi",
     .kind = KNEE_KEY_SWITCH,
     .offset = offsetof(struct live_options, mpi),
     .group = "Recording",
     .otherwise = "",
     .help = "for a job without GPUs, whose communication is MPI"},
};

static const struct knee_keys live_keys = KNEE_KEY_TABLE(rows, struct live_options);

/* In single quotes, with those inside taken out of them: any path, any shell of the Bourne kind. */
static void put_export(struct knee_text *text, const char *name, const char *value,
                       const char *more)
{
    knee_text_printf(text, "export %s='", name);
    for (const char *p = value; *p; p++)
        if (*p == '\'')
            knee_text_puts(text, "'\\''");
        else
            knee_text_add(text, p, 1);
    knee_text_printf(text, "'%s\n", more);
}

static void put_folder(struct knee_text *text, const char *dir)
{
    char here[PATH_MAX] = "";
    struct knee_text path = {0};
    if (dir[0] != '/' && getcwd(here, sizeof here))
        knee_text_printf(&path, "%s/%s", here, dir);
    else
        knee_text_puts(&path, dir);
    if (path.failed)
        text->failed = true;
    else
        put_export(text, "KNEE_LIVE_DIR", path.data ? path.data : "", "");
    knee_text_release(&path);
}

static knee_status live_main(struct cli_run *run, int argc, char **argv)
{
    struct live_options options = {0};
    char agent[PATH_MAX];
    knee_keys_clear(&live_keys, &options);
    run->objects[0] = &options;
    knee_status status = cli_parse(run, argc, argv);
    if (status || run->common.help)
        return status;
    if (run->word_count != 1 || strcmp(run->words[0], "env") != 0) {
        knee_fail(&run->err, KNEE_USAGE, "", "knee live takes one word: env");
        knee_hint(&run->err, "eval \"$(knee live env)\" before the job starts");
        return KNEE_USAGE;
    }
    const char *object = options.mpi ? "libknee_live_mpi.so" : "libknee_live.so";
    if (!knee_runtime_object(object, agent, sizeof agent)) {
        knee_fail(&run->err, KNEE_SYSTEM, object, "is not beside this program or in ../lib/knee");
        knee_hint(&run->err, "build it: make%s", options.mpi ? " MPI=1" : "");
        return KNEE_SYSTEM;
    }
    put_folder(&run->text, options.dir ? options.dir : "knee-live");
    if (options.mpi) {
        put_export(&run->text, "LD_PRELOAD", agent, "${LD_PRELOAD:+:$LD_PRELOAD}");
    } else {
        put_export(&run->text, "CUDA_INJECTION64_PATH", agent, "");
        put_export(&run->text, "NCCL_PROFILER_PLUGIN", agent, "");
        /* PyTorch's profiler lets go of CUPTI when it is done, so that the agent comes again. */
        put_export(&run->text, "TEARDOWN_CUPTI", "1", "");
    }
    if (options.always)
        put_export(&run->text, "KNEE_LIVE_ALWAYS", "1", "");
    return KNEE_OK;
}

const struct cli_command cli_live = {
    .name = "live",
    .operands = "env",
    .summary = "record a running job's communication, without changing it",
    .about =
        "Prints what to export before a job starts: then an agent in every rank writes what its\n"
        "steps and collectives took, and samples whole steps as traces that knee trace reads.\n"
        "The job itself stays as it is. docs/live.md tells of the files and what it costs.",
    .examples = "  eval \"$(knee live env)\" && torchrun --nproc-per-node 8 train.py\n"
                "  eval \"$(knee live env --dir /shared/run7)\" && srun python train.py\n"
                "  eval \"$(knee live env --mpi)\" && mpirun -n 8 ./solver\n",
    .keys = {&live_keys},
    .most_words = 1,
    .main = live_main,
};
