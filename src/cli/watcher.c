/* SPDX-License-Identifier: MIT */
#include "cli/watcher.h"

#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Traces of a step that are larger in all are left to knee trace: a look has to be quick. */
#define MOST_TRACE_BYTES ((uint64_t)32 << 20)

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

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
        knee_diagnosis_release(&w->diagnosis);
        knee_account_release(&w->account);
        cli_traces_release(&w->traces);
    }
    w->accounted = false;
    w->trace_step = -1;
    w->too_large_bytes = 0;
}

/* What cannot be read of a trace is no reason not to watch; no memory is. */
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
    struct knee_trace_options reading = {0};
    struct knee_job job;
    struct knee_err why = {0};
    size_t count = 0;
    while (files[count])
        count++;
    knee_status status =
        cli_traces_read((const char *const *)files, count, &reading, NULL, true, &w->traces, &why);
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
    cli_rings_free_files(files);
    return status;
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
    struct knee_watch_given given = {now_ns(), w->price_per_hour};
    forget_look(w);
    knee_status status = cli_rings_read(w->dir, &w->rings, err);
    if (!status)
        status = knee_live_join(w->rings.ranks, w->rings.count, NULL, &w->joined, err);
    if (!status)
        status =
            knee_watch(w->rings.ranks, w->rings.count, &w->joined, &given, NULL, &w->watch, err);
    if (!status)
        status = look_at_sampled(w, err);
    for (size_t i = 0; i < w->alarm_count && !status; i++) {
        w->word_rows[i] = w->alarm_words[i];
        w->states[i] = knee_alarm_check(&w->alarms[i], &w->watch);
    }
    return status;
}

struct knee_watch_report cli_watcher_report(struct cli_watcher *w)
{
    return (struct knee_watch_report){.name = cli_base_name(w->dir),
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
                                      .alarm_count = w->alarm_count};
}

void cli_watcher_release(struct cli_watcher *w)
{
    forget_sampled(w);
    forget_look(w);
}
