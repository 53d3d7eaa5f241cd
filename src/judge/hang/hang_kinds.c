/* SPDX-License-Identifier: MIT */
/* The table of classes. */
#include "judge/hang/hang.h"

const struct knee_hang_kind *knee_hang_kind(enum knee_hang_class kind)
{
    return &knee_hang_kinds[kind];
}

const char *knee_hang_fix(const struct knee_hang_report *report)
{
    const struct knee_job_record *record = report->record;
    if (report->answer->kind == KNEE_HANG_UNKNOWN && report->answer->silent_count)
        return "give the output and dumps of those ranks too; a node that died leaves none";
    bool later = record->later_errors && !record->unknown_errors && !report->answer->waits;
    return report->answer->kind == KNEE_HANG_UNKNOWN && later
               ? "give the output of all ranks and of the launcher: the first error is not here"
               : knee_hang_kinds[report->answer->kind].fix;
}
