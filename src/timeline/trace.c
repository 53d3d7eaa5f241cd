/* SPDX-License-Identifier: MIT */
/* A read trace as a whole: what was lost on the way, and letting go of it. */
#include "base/text.h"
#include "knee_timeline.h"

#include <string.h>

static const struct {
    const char *name;
    bool lost;
} losses[KNEE_LOSSES] = {
    [KNEE_LOSS_TRUNCATED] = {"the file ends inside an event or document", true},
    [KNEE_LOSS_GZIP] = {"the gzip data is damaged or ends early", true},
    [KNEE_LOSS_EVENT] = {"events that cannot be read", true},
    [KNEE_LOSS_TIME] = {"events whose time cannot be read", true},
    [KNEE_LOSS_OVERLONG] = {"events larger than 64 MiB", true},
    [KNEE_LOSS_READ] = {"the system could not read on", true},
    [KNEE_LOSS_INTERRUPTED] = {"reading was stopped", true},
    [KNEE_LOSS_CAPPED] = {"the profiler stopped at its limit of events", true},
    [KNEE_LOSS_DEVICE] = {"pieces of work on more than 65536 devices", true},
    [KNEE_LOSS_COLUMN] = {"tables or columns of the database that cannot be read", true},
    [KNEE_LOSS_JOURNAL] = {"-wal or -journal files beside the database, whose rows are not read; "
                           "first run: sqlite3 FILE 'pragma wal_checkpoint'",
                           true},
    [KNEE_REPAIR_STRING] = {"quotes that were not escaped, taken as text", false},
    [KNEE_REPAIR_COMMA] = {"missing commas, read on", false},
    [KNEE_REPAIR_DURATION] = {"negative durations, taken as 0", false},
    [KNEE_REPAIR_DUPLICATE] = {"events that stand there twice, taken once", false},
    [KNEE_REPAIR_DOCUMENT] = {"further documents in the file, read on", false},
    [KNEE_REPAIR_CIRCLE] = {"circles of dependencies, cut at the lowest number", false},
};

const char *knee_loss_name(enum knee_loss_kind kind)
{
    return kind < KNEE_LOSSES ? losses[kind].name : "?";
}

bool knee_loss_is_lost(enum knee_loss_kind kind)
{
    return kind < KNEE_LOSSES && losses[kind].lost;
}

void knee_trace_release(struct knee_trace *trace)
{
    const struct knee_alloc *alloc = trace->alloc;
    for (size_t i = 0; i < trace->rank_count; i++) {
        knee_resize(alloc, trace->ranks[i].spans, 0);
        knee_resize(alloc, trace->ranks[i].calls, 0);
    }
    knee_resize(alloc, trace->ranks, 0);
    knee_resize(alloc, trace->steps, 0);
    knee_resize(alloc, trace->loads, 0);
    knee_resize(alloc, trace->host_events, 0);
    knee_resize(alloc, trace->long_calls, 0);
    knee_resize(alloc, trace->copies, 0);
    knee_resize(alloc, trace->optimizers, 0);
    knee_resize(alloc, trace->grids, 0);
    knee_resize(alloc, trace->products, 0);
    knee_resize(alloc, trace->names, 0);
    knee_resize(alloc, trace->file, 0);
    memset(trace, 0, sizeof *trace);
}
