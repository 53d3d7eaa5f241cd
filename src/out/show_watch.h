/* SPDX-License-Identifier: MIT */
/* A running job as text, JSON (schema knee.watch/1) or Prometheus' text format. */
#ifndef KNEE_OUT_SHOW_WATCH_H
#define KNEE_OUT_SHOW_WATCH_H

#include "judge/alarm.h"
#include "knee_out.h"

struct knee_watch_report {
    const char *name; /* of the folder */
    const struct knee_watch *watch;
    /* The newest step that all ranks sampled, accounted as knee trace does; NULL: there is none, or
     * it was too large to be read. */
    const struct knee_account *account;
    const struct knee_diagnosis *diagnosis;
    int64_t trace_step;   /* -1: no step was sampled by all */
    uint64_t trace_bytes; /* of traces that were too large */
    size_t earlier;       /* folders of ranks that began anew since */
    size_t unusable;      /* folders that say nothing */
    const struct knee_alarm *alarms;
    const struct knee_alarm_state *states;
    const char *const *alarm_words; /* as they were given */
    size_t alarm_count;
};

void knee_write_watch(const struct knee_watch_report *report, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text);

/* The text format 0.0.4: no timestamps, HELP and TYPE, base units. */
void knee_write_watch_prom(const struct knee_watch_report *report, struct knee_text *text);

/* The step that R, E, exposed and wait are of: accounted where it was, else of the ranks' own
 * lines; wall_s 0: nothing was sampled. */
struct knee_step knee_watch_step(const struct knee_watch_report *report);

#endif
