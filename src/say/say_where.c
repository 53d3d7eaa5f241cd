/* SPDX-License-Identifier: MIT */
/* knee trace --where: collectives in order, critical path, kernels, copies, passes, modules,
 * annotations, and what the host does in gaps. Times are per step and rank. */
#include "say/trace_fields.h"

#include "say/short.h"

#include <math.h>
#include <string.h>

static const char *const act_names[KNEE_ACTS] = {
    [KNEE_ACT_PYTHON] = "Python",        [KNEE_ACT_OPERATIONS] = "operations",
    [KNEE_ACT_LAUNCH] = "launching",     [KNEE_ACT_ITEM] = ".item()",
    [KNEE_ACT_SYNC] = "synchronize",     [KNEE_ACT_ALLOC] = "cudaMalloc/Free",
    [KNEE_ACT_COPY] = "blocking copy",   [KNEE_ACT_LOADER] = "data loader",
    [KNEE_ACT_GC] = "garbage collector", [KNEE_ACT_COLLECTIVE] = "collective's call",
};

WHEN(host_known, struct knee_where, it->host)

/* ---- Collectives ---- */

#define BUCKET struct knee_bucket
A_NUMBER(bucket_order, BUCKET, (double)it->order + 1)
A_TEXT(bucket_name, BUCKET, knee_op_name(it->op))
GETTER(bucket_bytes, BUCKET, int64_t bytes = it->bytes;
       knee_value_number(out, bytes >= 0 ? (double)bytes : NAN))
static const struct knee_field bucket_fields[] = {
    KNEE_GET(bucket_order, "order", "#", COUNT, SCREEN, "place in the step"),
    KNEE_GET(bucket_name, "name", "collective", TEXT, SCREEN, "operation"),
    KNEE_GET(bucket_bytes, "bytes", "size", BYTES, SCREEN, "message size"),
    KEY(BUCKET, group, "group", TEXT, "communicator"),
    KEY(BUCKET, calls, "calls", COUNT, "calls on all ranks"),
    KNEE_FIELD(BUCKET, start_s, "start_s", "starts at", TIME, SCREEN, "after the step's start"),
    KNEE_FIELD(BUCKET, hidden_s, "hidden_s", "hidden", TIME, SCREEN, "per call, behind compute"),
    KNEE_FIELD(BUCKET, transfer_s, "exposed_transfer_s", "exposed transfer", TIME, SCREEN,
               "per call"),
    KNEE_FIELD(BUCKET, wait_s, "exposed_wait_s", "exposed wait", TIME, SCREEN, "per call"),
};

/* ---- Seconds by label ---- */

#define LABEL(label, name, head)                                                                   \
    {                                                                                              \
        .key = name, .heading = KNEE_SHOWN(head), .kind = TIME, .tier = FULL,                      \
        .about = KNEE_ABOUT("per step"), .offset = (label) * sizeof(double), .is = KNEE_IS_DOUBLE  \
    }
static const struct knee_field label_fields[] = {
    LABEL(KNEE_COMPUTE, "compute_s", "compute"),
    LABEL(KNEE_TRANSFER, "transfer_s", "transfer"),
    LABEL(KNEE_WAIT, "wait_s", "wait"),
    LABEL(KNEE_COPY, "exposed_copy_s", "copies"),
    LABEL(KNEE_STARVED, "starved_input_s", "input"),
    LABEL(KNEE_HOST, "host_bound_s", "launches"),
    LABEL(KNEE_IDLE, "idle_s", "idle"),
};

/* ---- Critical path: rows of KNEE_LABELS numbers ---- */

static const void *path_row(const struct knee_at *at, size_t index)
{
    const struct knee_where *w = at->row;
    for (size_t r = 0; r < w->rank_count; r++) {
        const double *row = &w->path_s[r * KNEE_LABELS];
        bool used = false;
        for (int label = 0; label < KNEE_LABELS; label++)
            used = used || row[label] > 0;
        if (used && index-- == 0)
            return row;
    }
    return NULL;
}
static void path_rank(const struct knee_at *at, struct knee_value *out)
{
    const struct knee_where *w = at->up->row;
    size_t row = (size_t)((const double *)at->row - w->path_s) / KNEE_LABELS;
    knee_value_number(out, (double)knee_report_at(at)->account->ranks[row].rank);
}
static const struct knee_field path_fields[] = {
    KNEE_GET(path_rank, "rank", "rank", COUNT, FULL, "global rank"),
    KNEE_AMONG_BY(knee_same_row, label_fields),
};

/* ---- Kernels and copies ---- */

#define USE struct knee_kernel_use
static const void *use_row(const struct knee_where *w, size_t index, bool copies)
{
    for (size_t i = 0; i < w->kernel_count; i++)
        if ((w->kernels[i].kind == KNEE_SPAN_COPY) == copies && index-- == 0)
            return &w->kernels[i];
    return NULL;
}
ROW_OF(kernel_row, void, use_row(at->row, index, false))
ROW_OF(copy_row, void, use_row(at->row, index, true))
GETTER(use_blocks, USE, int64_t blocks = it->blocks;
       knee_value_number(out, blocks >= 0 ? (double)blocks : NAN))
A_NUMBER(use_rate, USE, it->flops_s > 0 ? it->flops / it->flops_s : NAN)
#define USED                                                                                       \
    KNEE_FIELD(USE, name, "name", "name", TEXT, SCREEN, "as recorded"),                            \
        KNEE_FIELD(USE, calls, "calls", "calls", NUMBER, SCREEN, "per step"),                      \
        KNEE_FIELD(USE, total_s, "time_s", "time", TIME, SCREEN, "per step")
static const struct knee_field kernel_fields[] = {
    USED,
    KNEE_FIELD(USE, exposed_s, "compute_s", "compute", TIME, SCREEN, "of the step's compute"),
    KNEE_GET(use_blocks, "blocks", "blocks", COUNT, FULL, "of a launch"),
    KNEE_GET(use_rate, "flops_per_s", "rate", FLOPS, SCREEN, "of its products"),
    KNEE_FIELD(USE, alone_s, "alone_s", "alone", TIME, FULL,
               "per call without communication at the same time"),
    KNEE_FIELD(USE, beside_s, "beside_communication_s", "during comm.", TIME, FULL,
               "per call during communication"),
};
static const struct knee_field copy_fields[] = {
    USED,
    KNEE_FIELD(USE, exposed_s, "exposed_s", "exposed", TIME, SCREEN, "not hidden"),
    KNEE_FIELD(USE, bytes, "bytes", "bytes", BYTES, SCREEN, "per step"),
};

/* ---- Places ---- */

static void place_name(const struct knee_at *at, struct knee_value *out)
{
    const struct knee_place *place = at->row;
    if (place->class_length)
        knee_value_printf(out, "%.*s", (int)place->class_length, place->name);
    else
        knee_value_text(out, place->name);
}
static const struct knee_field place_fields[] = {
    KNEE_GET(place_name, "name", "per step", TEXT, FULL, "as recorded"),
    KEY(struct knee_place, members, "members", COUNT, "modules of a class; 0: not a class"),
    KNEE_AMONG(struct knee_place, label_s, label_fields),
};
#define PLACES(kind, name, words)                                                                  \
    KNEE_ROWS(struct knee_where, places[kind], place_count[kind], name, place_fields, words,       \
              .when = host_known)

/* ---- Gaps ---- */

static const void *gap_row(const struct knee_at *at, size_t index)
{
    const struct knee_where *w = at->row;
    for (int act = 0; act < KNEE_ACTS; act++)
        if (w->gaps[act].total_s > 0 && index-- == 0)
            return &w->gaps[act];
    return NULL;
}
A_TEXT(gap_began, struct knee_host_gap, act_names[it - UP(struct knee_where)->gaps])
#define ACT(act, name)                                                                             \
    KNEE_FIELD(struct knee_host_gap, act_s[act], name, name, TIME, FULL, "seconds")
static const struct knee_field act_fields[] = {
    ACT(KNEE_ACT_PYTHON, "Python"),        ACT(KNEE_ACT_OPERATIONS, "operations"),
    ACT(KNEE_ACT_LAUNCH, "launching"),     ACT(KNEE_ACT_ITEM, ".item()"),
    ACT(KNEE_ACT_SYNC, "synchronize"),     ACT(KNEE_ACT_ALLOC, "cudaMalloc/Free"),
    ACT(KNEE_ACT_COPY, "blocking copy"),   ACT(KNEE_ACT_LOADER, "data loader"),
    ACT(KNEE_ACT_GC, "garbage collector"), ACT(KNEE_ACT_COLLECTIVE, "collective's call"),
};
static const struct knee_field gap_fields[] = {
    KNEE_GET(gap_began, "began_with", "gap began with", TEXT, SCREEN,
             "what the host did when the GPU ran dry"),
    KNEE_FIELD(struct knee_host_gap, count, "count", "gaps", NUMBER, SCREEN, "per step"),
    KNEE_FIELD(struct knee_host_gap, total_s, "time_s", "time", TIME, SCREEN, "per step"),
    KNEE_GROUP("doing", act_fields, "what the host did in them", .flat = true),
};
#define LAUNCHES struct knee_launches
static const struct knee_field launch_fields[] = {
    KEY(LAUNCHES, kernels, "kernels", NUMBER, "per step"),
    KEY(LAUNCHES, launches, "launches", NUMBER, "per step"),
    KEY(LAUNCHES, graphs, "graphs", NUMBER, "launches that are CUDA graphs"),
    KEY(LAUNCHES, launch_s, "launch_s", TIME, "host time in launches"),
    KEY(LAUNCHES, short_share, "short_share", SHARE, "kernels below 10 us"),
};

#define WHERE struct knee_where
const struct knee_field knee_where_fields[KNEE_WHERE_FIELDS] = {
    KNEE_ROWS(WHERE, buckets, bucket_count, "collectives", bucket_fields,
              "each collective of a step, in order"),
    KEY(WHERE, path_step_s, "critical_path_s", TIME,
        "length of the chain over ranks that makes the step"),
    KNEE_ROWS_BY(path_row, "critical_path", path_fields, "its parts by rank"),
    KNEE_ROWS_BY(kernel_row, "kernels", kernel_fields, "kernels by name, most time first"),
    KEY(WHERE, half_empty_s, "half_empty_s", TIME,
        "compute in kernels too small for half of the GPU"),
    KNEE_ROWS_BY(copy_row, "copies", copy_fields, "copies by name"),
    PLACES(KNEE_PLACE_PASS, "passes", "forward, backward, optimizer"),
    PLACES(KNEE_PLACE_CLASS, "module_classes", "modules summed by class"),
    PLACES(KNEE_PLACE_MODULE, "modules", "modules, most time first"),
    PLACES(KNEE_PLACE_RANGE, "annotations", "annotations of the user"),
    KNEE_ROWS_BY(gap_row, "host_gaps", gap_fields, "gaps in which the GPU waits for its host",
                 .when = host_known),
    KNEE_INSIDE(WHERE, launches, "launches", launch_fields, "launches of a step", .flat = true,
                .when = host_known),
};

/* ---- Notes ---- */

static void say_gap_reason(const struct knee_where *w, struct knee_text *text)
{
    static const char *const fixes[KNEE_ACTS] = {
        [KNEE_ACT_ITEM] = "keep the number on the GPU, or read it every N steps",
        [KNEE_ACT_SYNC] = "remove the synchronization",
        [KNEE_ACT_ALLOC] = "do not call empty_cache() in the loop",
        [KNEE_ACT_COPY] = "pin the memory and copy with non_blocking=True",
        [KNEE_ACT_LOADER] = "give the loader more processes or faster storage",
        [KNEE_ACT_GC] = "collect garbage every N steps (gc.disable(), gc.collect())",
    };
    if (w->main_act == KNEE_ACTS)
        return;
    PUT(text, "{time} of the {time} in which the GPU waits for its host begins with {}; {}\n",
        w->gaps[w->main_act].total_s, w->gaps_s, act_names[w->main_act], fixes[w->main_act]);
}

void knee_say_where(const struct knee_where *w, const struct knee_diagnosis *d,
                    struct knee_text *text)
{
    const struct knee_launches *l = &w->launches;
    (void)d;
    if (w->host)
        PUT(text,
            "{count} kernels per step in {count} launches; these take {time} of host time{}\n",
            rint(l->kernels), rint(l->launches), l->launch_s,
            w->graphs_help ? ". Try CUDA graphs or torch.compile" : "");
    if (w->host)
        say_gap_reason(w, text);
    if (w->half_empty_s > 0)
        PUT(text, "{time} of compute is in kernels too small for half of the GPU\n",
            w->half_empty_s);
}
