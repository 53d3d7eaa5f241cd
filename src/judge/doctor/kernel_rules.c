/* SPDX-License-Identifier: MIT */
/*
 * Xid and SXid of the kernel's log: what each number means is data/xids.csv. From 144 to 150 the
 * text says whether it is fatal.
 */
#include "judge/doctor/doctor_judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct knee_xid *xid_of(int number)
{
    for (size_t i = 0; i < knee_xids_count; i++)
        if (knee_xids[i].number == number)
            return &knee_xids[i];
    return NULL;
}

/* The message behind the time and the prefix. */
static const char *message(const char *line)
{
    const char *at = strstr(line, "Xid (");
    if (!at)
        at = strstr(line, "detected NVSwitch");
    return at ? at : line;
}

static void check_xids(struct knee_exam *exam)
{
    const char *last = "";
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "xid.*", &row);) {
        int number = (int)strtoll(row->key + 4, NULL, 10);
        const struct knee_xid *xid = xid_of(number);
        const char *rule = xid ? xid->rule : "xid_other";
        /* Every number is a separate finding, with all devices that reported it. */
        exam->apart = strcmp(row->key, last) != 0;
        last = row->key;
        bool mild = number >= 144 && number <= 150 && !strstr(row->key, ".fatal") &&
                    strstr(row->value, "Nonfatal");
        knee_blame_at(exam, mild ? KNEE_WARNING : knee_rule_of(rule)->severity, rule, row->subject,
                      NAN, "Xid %d (%.0fx): %s: %.200s", number, row->number,
                      xid ? xid->says : "not in knee's list", message(row->value));
    }
    exam->apart = false;
}

/* One or two that are not fatal come with restarts of the fabric manager; again and again is a
 * fault. */
static void check_sxids(struct knee_exam *exam)
{
    double sum = 0;
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "sxid.nonfatal", &row);)
        sum += row->number;
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "sxid.nonfatal", &row);)
        knee_blame(exam, sum >= 10 ? "sxid_nonfatal" : "sxid_few", row->subject, NAN,
                   "%.0f errors of NVSwitches that are not fatal: %.200s", sum,
                   message(row->value));
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "sxid.fatal", &row);)
        knee_blame(exam, "sxid_fatal", row->subject, NAN, "%.0fx: %.250s", row->number,
                   message(row->value));
}

/* Once or twice comes with booting; three times is a link that flaps (gpud counts so, too). */
static void check_links(struct knee_exam *exam)
{
    for (const struct knee_fact *row = NULL;
         knee_fact_next(exam->facts, "kernel.link_down", &row);) {
        knee_blame_at(exam, row->number >= 3 ? KNEE_WARNING : KNEE_NOTE, "link_flaps", row->subject,
                      NAN, "the link went down %.0fx: %.200s", row->number, row->value);
    }
}

void knee_check_kernel(struct knee_exam *exam)
{
    check_links(exam);
    check_xids(exam);
    check_sxids(exam);
}
