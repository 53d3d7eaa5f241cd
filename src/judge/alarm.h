/* SPDX-License-Identifier: MIT */
/* Alarms: "R > 0.5 for 5m", checked against the history of a job that is watched. */
#ifndef KNEE_JUDGE_ALARM_H
#define KNEE_JUDGE_ALARM_H

#include "judge/watch.h"

struct knee_alarm {
    size_t metric; /* row of the table of names */
    bool above, or_equal;
    double limit;
    double for_s; /* it must have held so long; 0: now is enough */
};

/* NAME > VALUE [for TIME], with > >= < or <=. KNEE_USAGE names what there is. */
knee_status knee_alarm_parse(const char *text, struct knee_alarm *out, struct knee_err *err);

struct knee_alarm_state {
    bool known; /* the history says something about it */
    bool goes;  /* it holds, and has held for so long */
    double value;
    int64_t since_step; /* it has held since then, as far as the history goes; -1: it does not */
    double held_s;
};
struct knee_alarm_state knee_alarm_check(const struct knee_alarm *alarm,
                                         const struct knee_watch *watch);
const char *knee_alarm_metric(const struct knee_alarm *alarm, enum knee_unit *unit);

#endif
