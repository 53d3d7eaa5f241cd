/* SPDX-License-Identifier: MIT */
/* knee record now: has the PyTorch processes of this host record at one moment, then asks knee
 * trace.
 */
#include "base/error.h"
#include "base/keys.h"
#include "cli/kineto_peer.h"
#include "cli/record.h"
#include "reach/clock.h"
#include "reach/stop.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS INT64_C(1000000000)
/* Processes ask about every ten seconds; Kineto wants a moment to warm up. */
#define LEAD_S    15.0
#define LENGTH_S  2.0
#define WARM_UP_S 1.0

static double or_else(double given, double otherwise)
{
    return isnan(given) ? otherwise : given;
}

/* ---- Files ---- */

/* The folder as the processes have to name it: they run elsewhere. */
static knee_status make_folder(const char *dir, char *path, struct knee_err *err)
{
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return knee_fail(err, KNEE_SYSTEM, dir, "cannot be made: %s", strerror(errno));
    return realpath(dir, path) ? KNEE_OK : knee_fail(err, KNEE_SYSTEM, dir, "%s", strerror(errno));
}

/* Kineto puts the process before the ending. */
static bool name_of(const char *folder, int64_t start_ns, int32_t pid, char *out, size_t size)
{
    int length = snprintf(out, size, "%s/capture-%lld_%d.json", folder,
                          (long long)(start_ns / SECOND_NS), (int)pid);
    return length > 0 && (size_t)length < size;
}

/* Those that are there and have not grown since the last time. */
static size_t count_whole(const struct cli_kineto *kineto, const char *folder, int64_t start_ns,
                          int64_t *sizes)
{
    size_t whole = 0;
    for (size_t i = 0; i < kineto->count; i++) {
        char name[PATH_MAX];
        struct stat info = {0};
        bool there = name_of(folder, start_ns, kineto->pids[i], name, sizeof name) &&
                     stat(name, &info) == 0 && info.st_size > 0;
        whole += there && sizes[i] == (int64_t)info.st_size ? 1 : 0;
        sizes[i] = there ? (int64_t)info.st_size : -1;
    }
    return whole;
}

/* ---- What happens ---- */

static knee_status record(const struct record_options *options, const char *folder,
                          int64_t start_ns, struct cli_kineto *kineto, struct knee_err *err)
{
    char config[PATH_MAX + 256];
    static int64_t sizes[CLI_KINETO_MOST];
    double length_s = or_else(options->length_s, LENGTH_S);
    snprintf(config, sizeof config,
             "ACTIVITIES_LOG_FILE=%s/capture-%lld.json\nPROFILE_START_TIME=%lld\n"
             "ACTIVITIES_DURATION_MSECS=%.0f\n",
             folder, (long long)(start_ns / SECOND_NS), (long long)(start_ns / 1000000),
             1e3 * length_s);
    if (strlen(config) >= 4096)
        return knee_fail(err, KNEE_USAGE, "--dir", "the name is too long");
    cli_kineto_answer(kineto, config, start_ns - (int64_t)(WARM_UP_S * 1e9));
    if (knee_stop_signal())
        return cli_stopped(err);
    if (!kineto->count) {
        knee_fail(err, KNEE_INPUT, "", "no process on this host asked whether to record");
        knee_hint(err,
                  "start the job with KINETO_USE_DAEMON=1 in its environment, and leave --lead "
                  "at ten seconds or more");
        return KNEE_INPUT;
    }
    cli_kineto_answer(kineto, NULL, start_ns + (int64_t)(1e9 * length_s));
    int64_t end_ns =
        knee_clock_ns(CLOCK_REALTIME) + (int64_t)(1e9 * or_else(options->limit_s, 120));
    while (!knee_stop_signal() && knee_clock_ns(CLOCK_REALTIME) < end_ns &&
           count_whole(kineto, folder, start_ns, sizes) < kineto->count)
        cli_kineto_answer(kineto, NULL, knee_clock_ns(CLOCK_REALTIME) + SECOND_NS);
    return KNEE_OK;
}

/* The files that came, as the words of knee trace. */
static knee_status ask_trace(struct cli_run *run, const struct cli_kineto *kineto,
                             const char *folder, int64_t start_ns)
{
    struct knee_arena arena = {0};
    char **files = knee_arena_take(&arena, kineto->count + 1, sizeof *files);
    const char **words = calloc(kineto->count + 1, sizeof *words); /* the run's own then */
    size_t came = 0;
    for (size_t i = 0; !arena.failed && i < kineto->count; i++) {
        char name[PATH_MAX];
        if (!name_of(folder, start_ns, kineto->pids[i], name, sizeof name) ||
            access(name, R_OK) != 0)
            continue;
        files[came++] = knee_arena_printf(&arena, "%s", name);
    }
    knee_status status = KNEE_SYSTEM;
    if (arena.failed || !words) {
        knee_fail(&run->err, KNEE_SYSTEM, "", "out of memory");
    } else if (!came) {
        status = knee_fail(&run->err, KNEE_INPUT, folder,
                           "%zu processes were asked, and no trace came", kineto->count);
    } else {
        if (came < kineto->count || kineto->late)
            fprintf(stderr,
                    "knee: traces of %zu of %zu processes came; %zu requests came too late\n", came,
                    kineto->count, kineto->late);
        free(run->words);
        run->words = words;
        words = NULL;
        run->word_count = 0;
        run->command = &cli_trace;
        status = cli_trace.main(run, (int)came, files);
    }
    knee_arena_release(&arena);
    free(words);
    return status;
}

knee_status record_now(struct cli_run *run, const struct record_options *options)
{
    char folder[PATH_MAX];
    static struct cli_kineto kineto;
    int64_t start_ns = isnan(options->at_s) ? knee_clock_ns(CLOCK_REALTIME) +
                                                  (int64_t)(1e9 * or_else(options->lead_s, LEAD_S))
                                            : (int64_t)options->at_s * SECOND_NS;
    if (start_ns <= knee_clock_ns(CLOCK_REALTIME))
        return knee_fail(&run->err, KNEE_USAGE, "--at", "that moment is over");
    knee_status status =
        make_folder(options->dir ? options->dir : "knee-capture", folder, &run->err);
    if (!status)
        status = cli_kineto_open(&kineto, &run->err);
    if (status)
        return status;
    knee_stop_catch();
    status = record(options, folder, start_ns, &kineto, &run->err);
    knee_stop_release();
    if (!status)
        status = ask_trace(run, &kineto, folder, start_ns);
    cli_kineto_close(&kineto);
    return status;
}
