/* SPDX-License-Identifier: MIT */
/* One look at a running job. Schema knee.watch/1; the fields with a metric are what Prometheus
 * reads, in its text format 0.0.4: HELP and TYPE, base units, no timestamps. */
#ifndef KNEE_SAY_WATCH_REPORT_H
#define KNEE_SAY_WATCH_REPORT_H

#include "judge/alarm.h"
#include "judge/ras_judge.h"
#include "say/fields.h"

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
    size_t command_failures;     /* commands of alarms that did not succeed */
    size_t failed_looks;         /* looks at the folder that failed */
    const char *hang, *hang_fix; /* of a job that stands still, in the words of knee hang; NULL:
                                    it runs, or its folder has no logs and dumps */
};
extern const struct knee_answer_type knee_watch_answer;

/* What NCCL's RAS service says. Schema knee.ras/1. */
struct knee_ras_report {
    const struct knee_ras_answer *answer;
    const char *nccl; /* the release that answered */
};
extern const struct knee_answer_type knee_ras_answer_type;

#endif
