/* SPDX-License-Identifier: MIT */
#include "cli/watcher.h"

#include "base/error.h"
#include "base/slice.h"
#include "cli/cli.h"
#include "judge/hang/hang.h"
#include "reach/clock.h"
#include "say/answers.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Traces of a step that are larger in all are left to knee trace: a look has to be quick. */
#define MOST_TRACE_BYTES ((uint64_t)32 << 20)

knee_status cli_watcher_alarms(struct cli_watcher *watcher, const char *text, struct knee_err *err)
{
    while (*text) {
        size_t length = strcspn(text, ";");
        if (watcher->alarm_count == CLI_ALARMS || length >= sizeof watcher->alarm_words[0]) {
            knee_fail(err, KNEE_USAGE, "--when",
                      "more than %d conditions, or a longer one than %zu", CLI_ALARMS,
                      sizeof watcher->alarm_words[0] - 1);
            return KNEE_USAGE;
        }
        char *words = watcher->alarm_words[watcher->alarm_count];
        memcpy(words, text, length);
        words[length] = '\0';
        text += length + (text[length] == ';');
        knee_status status = knee_alarm_parse(words, &watcher->alarms[watcher->alarm_count], err);
        if (status)
            return status;
        watcher->alarm_count++;
    }
    return KNEE_OK;
}

/* ---- The newest sampled step ---- */

static void forget_sampled(struct cli_watcher *w)
{
    if (w->accounted) {
        knee_account_release(&w->account);
        cli_traces_release(&w->traces);
    }
    w->accounted = false;
    w->trace_step = -1;
    w->too_large_bytes = 0;
}

/* Watching goes on when a trace cannot be read; it ends when memory runs out. */
static knee_status refused(const struct cli_traces *traces, struct knee_err *err)
{
    for (size_t i = 0; i < traces->refused_count; i++)
        if (traces->refused[i].err.status == KNEE_SYSTEM) {
            *err = traces->refused[i].err;
            return KNEE_SYSTEM;
        }
    return KNEE_OK;
}

/* Accounted and diagnosed as knee trace does it. */
static knee_status account_for(struct cli_watcher *w, char **files, struct knee_err *err)
{
    struct cli_files list = {0};
    struct knee_job job;
    struct knee_err why = {0};
    size_t count = 0;
    while (files[count])
        count++;
    cli_files_find(&list, (const char *const *)files, count, "trace");
    knee_status status =
        cli_traces_read(&list, &(struct cli_reading){.whole = true, .where = count ? files[0] : ""},
                        &w->traces, &why);
    cli_files_release(&list);
    if (status) {
        *err = why;
        return status == KNEE_SYSTEM ? status : KNEE_OK;
    }
    status = refused(&w->traces, err);
    if (!status)
        status = knee_account(w->traces.traces, w->traces.count, NULL, &w->account, &why);
    if (!status) {
        knee_job_init(&job);
        knee_expect_of_gpus(&w->account);
        status = knee_diagnose(&w->account, &job, NULL, &w->diagnosis, &why);
        if (status)
            knee_account_release(&w->account);
    }
    w->accounted = !status;
    if (status)
        cli_traces_release(&w->traces);
    if (status == KNEE_SYSTEM && why.status)
        *err = why;
    return status == KNEE_SYSTEM ? status : KNEE_OK;
}

static knee_status look_at_sampled(struct cli_watcher *w, struct knee_err *err)
{
    int64_t step = -1;
    uint64_t bytes = 0;
    char **files = NULL;
    knee_status status = cli_rings_sampled(&w->rings, &step, &files, &bytes, err);
    if (status)
        return status;
    if (step != w->trace_step || !w->accounted) {
        forget_sampled(w);
        w->trace_step = step;
        w->too_large_bytes = bytes > MOST_TRACE_BYTES ? bytes : 0;
        if (step >= 0 && !w->too_large_bytes)
            status = account_for(w, files, err);
    }
    return status;
}

/* ---- A job that stands still ---- */

/* Processes of ranks that run on this host. */
static size_t count_alive(const struct cli_rings *rings)
{
    char here[64] = "";
    size_t alive = 0;
    gethostname(here, sizeof here - 1);
    for (size_t i = 0; i < rings->count; i++) {
        const struct knee_live_about *about = &rings->ranks[i].about;
        alive += about->pid > 0 && strcmp(about->host, here) == 0 &&
                 (kill((pid_t)about->pid, 0) == 0 || errno == EPERM);
    }
    return alive;
}

/* The recorder's own files say nothing about why. */
static bool is_ring_file(const char *path)
{
    const char *name = knee_base_name(path);
    return strcmp(name, "about.json") == 0 || strstr(name, ".jsonl") ||
           strncmp(name, "trace", 5) == 0;
}

static void read_logs(struct cli_watcher *w, struct knee_job_record *record)
{
    size_t passed = 0;
    struct knee_err ignored = {0};
    struct knee_arena arena = {0};
    char **names = cli_job_files(&w->dir, 1, &passed, &arena, &ignored);
    for (size_t i = 0; names && names[i]; i++) {
        char *data = NULL;
        size_t length = 0;
        if (!is_ring_file(names[i]) &&
            !cli_read_file(names[i], (size_t)64 << 20, &data, &length, &ignored))
            (void)knee_job_read(record, names[i], data ? data : "", length, &ignored);
        free(data);
    }
    knee_arena_release(&arena);
}

/* Logs and dumps that lie in the same folder, judged as knee hang does. */
static void ask_hang(struct cli_watcher *w)
{
    struct knee_job_record record;
    struct knee_hang_answer answer = {0};
    struct knee_err ignored = {0};
    int64_t newest_ns = 1;
    for (size_t i = 0; i < w->watch.rank_count; i++)
        if (w->watch.ranks[i].last_ns > newest_ns)
            newest_ns = w->watch.ranks[i].last_ns;
    if (w->watch.state == KNEE_WATCH_RUNNING || newest_ns == w->hang_of_ns)
        return;
    w->hang_of_ns = newest_ns;
    w->hang_fix = NULL;
    knee_said_release(&w->hang);
    knee_said_init(&w->hang, NULL);
    knee_job_record_init(&record, NULL);
    read_logs(w, &record);
    if (record.file_count && !knee_hang_judge(&record, NULL, &answer, &ignored) &&
        answer.kind != KNEE_HANG_NOT && answer.kind != KNEE_HANG_UNKNOWN) {
        knee_hang_answer_type.say(&(struct knee_hang_report){&record, &answer}, &w->hang);
        w->hang_fix = knee_hang_kind(answer.kind)->fix;
    }
    knee_hang_answer_release(&answer);
    knee_job_record_release(&record);
}

/* ---- A look ---- */

static void forget_look(struct cli_watcher *w)
{
    knee_watch_release(&w->watch);
    knee_live_joined_release(&w->joined);
    cli_rings_release(&w->rings);
}

knee_status cli_watcher_look(struct cli_watcher *w, struct knee_err *err)
{
    struct knee_watch_given given = {.now_ns = knee_clock_ns(CLOCK_REALTIME),
                                     .price_per_hour = w->price_per_hour};
    forget_look(w);
    knee_forget_inputs();
    knee_status status = cli_rings_read(w->dir, &w->rings, err);
    if (!status)
        status = knee_live_join(w->rings.ranks, w->rings.count, NULL, &w->joined, err);
    given.alive = status ? 0 : count_alive(&w->rings);
    if (!status)
        status = knee_watch(w->rings.ranks, w->rings.count, &w->joined, &given, &w->watch, err);
    if (!status)
        status = look_at_sampled(w, err);
    if (!status)
        ask_hang(w);
    for (size_t i = 0; i < w->alarm_count && !status; i++) {
        w->word_rows[i] = w->alarm_words[i];
        w->states[i] = knee_alarm_check(&w->alarms[i], &w->watch);
    }
    return status;
}

struct knee_watch_report cli_watcher_report(struct cli_watcher *w)
{
    return (struct knee_watch_report){.name = knee_base_name(w->dir),
                                      .watch = &w->watch,
                                      .account = w->accounted ? &w->account : NULL,
                                      .diagnosis = w->accounted ? &w->diagnosis : NULL,
                                      .trace_step = w->trace_step,
                                      .trace_bytes = w->too_large_bytes,
                                      .earlier = w->rings.earlier,
                                      .unusable = w->rings.unusable,
                                      .alarms = w->alarms,
                                      .states = w->states,
                                      .alarm_words = w->word_rows,
                                      .alarm_count = w->alarm_count,
                                      .command_failures = w->command_failures,
                                      .failed_looks = w->failed_looks,
                                      .hang = w->hang_fix ? w->hang.headline.data : NULL,
                                      .hang_fix = w->hang_fix};
}

void cli_watcher_release(struct cli_watcher *w)
{
    forget_sampled(w);
    forget_look(w);
    knee_said_release(&w->hang);
}
