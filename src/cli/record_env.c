/* SPDX-License-Identifier: MIT */
/* knee record env: the variables that load the agent into a job. */
#include "base/error.h"
#include "base/keys.h"
#include "cli/record.h"
#include "reach/runtime.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

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

/* The folder as all ranks see it. False: no memory. */
static bool whole_path(struct knee_text *path, const char *dir)
{
    char here[PATH_MAX] = "";
    if (dir[0] != '/' && getcwd(here, sizeof here))
        knee_text_printf(path, "%s/", here);
    knee_text_puts(path, dir);
    return !path->failed;
}

static knee_status find_agent(const char *object, char *agent, size_t size, struct knee_err *err)
{
    if (knee_runtime_object(object, agent, size))
        return KNEE_OK;
    knee_fail(err, KNEE_SYSTEM, object, "not found next to this program or in ../lib/knee");
    knee_hint(err, "build it: make%s", strstr(object, "mpi") ? " MPI=1" : "");
    return KNEE_SYSTEM;
}

knee_status cli_live_environment(const char *dir, void (*set)(void *, const char *, const char *),
                                 void *ctx, struct knee_err *err)
{
    char agent[PATH_MAX];
    struct knee_text path = {0};
    knee_status status = find_agent("libknee_live.so", agent, sizeof agent, err);
    if (!status && !whole_path(&path, dir))
        status = knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    if (!status) {
        set(ctx, "KNEE_LIVE_DIR", path.data);
        set(ctx, "CUDA_INJECTION64_PATH", agent);
        set(ctx, "NCCL_PROFILER_PLUGIN", agent);
        /* Makes PyTorch's profiler release CUPTI, so that the agent can attach again. */
        set(ctx, "TEARDOWN_CUPTI", "1");
    }
    knee_text_release(&path);
    return status;
}

static void export_one(void *ctx, const char *name, const char *value)
{
    put_export(ctx, name, value, "");
}

static knee_status export_mpi(const char *dir, struct knee_text *text, struct knee_err *err)
{
    char agent[PATH_MAX];
    struct knee_text path = {0};
    knee_status status = find_agent("libknee_live_mpi.so", agent, sizeof agent, err);
    if (status)
        return status;
    if (strpbrk(agent, " :"))
        return knee_fail_hint(err, KNEE_SYSTEM, agent, "install knee under another path",
                              "LD_PRELOAD cannot hold a path with a space or a colon");
    if (whole_path(&path, dir))
        put_export(text, "KNEE_LIVE_DIR", path.data, "");
    else
        text->failed = true;
    knee_text_release(&path);
    put_export(text, "LD_PRELOAD", agent, "${LD_PRELOAD:+:$LD_PRELOAD}");
    return KNEE_OK;
}

knee_status record_env(struct cli_run *run, const struct record_options *options)
{
    const char *dir = options->dir ? options->dir : "knee-live";
    knee_status status = options->mpi
                             ? export_mpi(dir, &run->text, &run->err)
                             : cli_live_environment(dir, export_one, &run->text, &run->err);
    if (!status && options->always)
        put_export(&run->text, "KNEE_LIVE_ALWAYS", "1", "");
    return status;
}
