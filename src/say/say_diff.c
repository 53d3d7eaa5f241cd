/* SPDX-License-Identifier: MIT */
/* knee diff of two recordings: which part of the step changed, and which kernels and collectives
 * changed with it. Schema knee.diff/1. */
#include "judge/judge.h"
#include "knee_reports.h"
#include "say/short.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define REPORT     struct knee_comparison_report
#define COMPARISON struct knee_comparison

/* ---- Fields ---- */

A_TEXT(get_label, COMPARISON, knee_label_name(it->label))
#define SAME(name, difference)                                                                     \
    static void name(const struct knee_at *at, struct knee_value *out)                             \
    {                                                                                              \
        knee_value_bool(out, !(((const COMPARISON *)at->row)->differs & difference));              \
    }
SAME(same_world, KNEE_DIFFER_WORLD)
SAME(same_gpu, KNEE_DIFFER_GPU)
SAME(same_traffic, KNEE_DIFFER_TRAFFIC)
SAME(same_kernels, KNEE_DIFFER_KERNELS)
SAME(same_dtype, KNEE_DIFFER_DTYPE)
SAME(same_steps, KNEE_DIFFER_STEPS)
#define IS_SAME(get, name, words) KEY_BY(get, name, YES_NO, words)

static const struct knee_field change_fields[] = {
    KEY_BY(get_label, "label", TEXT, "the part that changed most"),
    KEY(COMPARISON, share, "share", SHARE, "of all that changed"),
    KEY(COMPARISON, share_of_before, "change", CHANGE, "of the step: after / before - 1"),
    KEY(COMPARISON, noise_s, "noise_s", TIME, "standard error of the difference"),
    KEY(COMPARISON, significant, "significant", YES_NO, "more than twice the noise"),
    KEY(COMPARISON, late_s, "late_ranks_s", TIME, "what late ranks do longer, after - before"),
    KEY(COMPARISON, late_makes_it, "late_ranks_make_it", YES_NO,
        "that is half of the change or more"),
    IS_SAME(same_world, "same_world", "as many ranks"),
    IS_SAME(same_gpu, "same_gpu", "the same GPU"),
    IS_SAME(same_traffic, "same_traffic", "as many bytes in collectives"),
    IS_SAME(same_kernels, "same_kernels", "as many kernels"),
    IS_SAME(same_dtype, "same_dtype", "the same type on the wire"),
    IS_SAME(same_steps, "same_steps", "about as many steps"),
};
static const struct knee_field verdict_fields[] = {
    KNEE_SENTENCE,
    KNEE_AMONG(REPORT, c, change_fields, .pointer = true),
};

#define IN_STEP(label, name) KEY(struct knee_step, label_s[label], name, TIME, "per step")
static const struct knee_field step_fields[] = {
    KEY(struct knee_step, wall_s, "step_s", TIME, "mean step"),
    IN_STEP(KNEE_COMPUTE, "compute"),
    IN_STEP(KNEE_TRANSFER, "exposed transfer"),
    IN_STEP(KNEE_WAIT, "exposed wait"),
    IN_STEP(KNEE_COPY, "exposed copy"),
    IN_STEP(KNEE_STARVED, "starved input"),
    IN_STEP(KNEE_HOST, "host-bound"),
    IN_STEP(KNEE_IDLE, "idle"),
    KEY(struct knee_step, comm_s, "comm_s", TIME, "all communication"),
};
A_TEXT(get_suspect, struct knee_diagnosis, knee_suspect_name(it->suspect))
static const struct knee_field side_fields[] = {
    KNEE_AMONG(struct knee_diagnosis, step, step_fields),
    KEY(struct knee_diagnosis, ratio, "ratio", NUMBER, "R"),
    KEY_BY(get_suspect, "suspect", TEXT, "main cause of lost time"),
};

#define PART struct knee_part_change
static const char *const plain[KNEE_LABELS] = {
    [KNEE_COMPUTE] = "compute",
    [KNEE_TRANSFER] = "exposed transfer",
    [KNEE_WAIT] = "waiting for ranks",
    [KNEE_COPY] = "exposed copies",
    [KNEE_STARVED] = "waiting for input",
    [KNEE_HOST] = "waiting for launches",
    [KNEE_IDLE] = "idle time",
};
GETTER(part_words, PART, ptrdiff_t label = it - UP(REPORT)->c->parts;
       knee_value_text(out, label < KNEE_LABELS ? plain[label] : it->name))
A_TEXT(part_mark, PART, it->most && !UP(REPORT)->c->as_before ? "<- most" : "")
static const struct knee_field part_fields[] = {
    KEY(PART, name, "label", TEXT, "part of the step"),
    KNEE_GET(part_words, "words", "per step, ms", TEXT, SCREEN, "the same in words"),
    KNEE_FIELD(PART, before_s, "before", "before", MS, SCREEN, "seconds"),
    KNEE_FIELD(PART, after_s, "after", "after", MS, SCREEN, "seconds"),
    KNEE_FIELD(PART, change_s, "change", "change", MS, SCREEN, "seconds"),
    KNEE_FIELD(PART, share, "share", "share of change", SHARE, SCREEN,
               "of all that changed, up or down"),
    KNEE_GET(part_mark, "mark", "", TEXT, SCREEN, "the largest"),
};

#define MOVER struct knee_mover
static void kind_name(const struct knee_at *at, struct knee_value *out)
{
    static const char *const words[] = {[KNEE_SPAN_COMPUTE] = "compute",
                                        [KNEE_SPAN_COMM] = "comm",
                                        [KNEE_SPAN_FUSED] = "fused",
                                        [KNEE_SPAN_COPY] = "copy"};
    knee_value_text(out, words[((const MOVER *)at->row)->kind]);
}
#define OF_MOVER(type, member, name, head, kind)                                                   \
    KNEE_FIELD(type, member, name, head, kind, FULL, "per step")
static const struct knee_field mover_fields[] = {
    KNEE_FIELD(MOVER, name, "name", "kernel", TEXT, FULL, "as recorded"),
    KNEE_GET(kind_name, "kind", "kind", TEXT, FULL, "compute, comm, fused or copy"),
    OF_MOVER(MOVER, before_s, "before_s", "before", TIME),
    OF_MOVER(MOVER, after_s, "after_s", "after", TIME),
    OF_MOVER(MOVER, before_calls, "before_calls", "calls before", NUMBER),
    OF_MOVER(MOVER, after_calls, "after_calls", "calls after", NUMBER),
};

/* The same work by the operation that launched it and the shapes of its inputs. */
GETTER(operation_name, MOVER, knee_value_printf(out, "%.*s", (int)it->length, it->name))
static const struct knee_field operation_fields[] = {
    KNEE_GET(operation_name, "name", "operation", TEXT, FULL,
             "of the framework, or the kernel where that is not known"),
    KNEE_FIELD(MOVER, shape, "shape", "shape", TEXT, FULL, "of its inputs; \"\": not recorded"),
    KEY_BY(kind_name, "kind", TEXT, "compute, fused or copy"),
    OF_MOVER(MOVER, before_s, "before_s", "before", TIME),
    OF_MOVER(MOVER, after_s, "after_s", "after", TIME),
    OF_MOVER(MOVER, before_calls, "before_kernels", "kernels before", NUMBER),
    OF_MOVER(MOVER, after_calls, "after_kernels", "kernels after", NUMBER),
};

/* Kernels by what they compute: GPUs of different makers have no kernel name in common. */
#define WORK struct knee_kernel_share
static const void *work_row(const struct knee_at *at, size_t index)
{
    const REPORT *r = at->row;
    const WORK *before = r->before_diagnosis->works, *after = r->after_diagnosis->works;
    for (size_t w = 0; w < KNEE_KERNEL_KINDS; w++)
        if ((before[w].count > 0 || after[w].count > 0) && index-- == 0)
            return &before[w];
    return NULL;
}
#define WORK_KIND  (it - UP(REPORT)->before_diagnosis->works)
#define WORK_AFTER UP(REPORT)->after_diagnosis->works[WORK_KIND]
A_TEXT(work_name, WORK, knee_kernel_kind_name((enum knee_kernel_kind)WORK_KIND))
A_NUMBER(work_after_s, WORK, WORK_AFTER.total_s)
A_NUMBER(work_after_calls, WORK, WORK_AFTER.count)
static const struct knee_field work_fields[] = {
    KNEE_GET(work_name, "kind", "work", TEXT, FULL, "GEMM, attention, elementwise ..."),
    OF_MOVER(WORK, total_s, "before_s", "before", TIME),
    KNEE_GET(work_after_s, "after_s", "after", TIME, FULL, "per step"),
    OF_MOVER(WORK, count, "before_calls", "calls before", NUMBER),
    KNEE_GET(work_after_calls, "after_calls", "calls after", NUMBER, FULL, "per step"),
};

#define COLL struct knee_collective_mover
A_TEXT(coll_name, COLL, knee_op_name(it->op))
GETTER(coll_bytes, COLL, int64_t bytes = it->bytes;
       knee_value_number(out, bytes >= 0 ? (double)bytes : NAN))
GETTER(coll_ranks, COLL, int32_t size = it->group_size;
       knee_value_number(out, size > 0 ? (double)size : NAN))
static const struct knee_field collective_fields[] = {
    KNEE_GET(coll_name, "name", "collective", TEXT, FULL, "operation"),
    KNEE_GET(coll_bytes, "bytes", "size", BYTES, FULL, "message size"),
    KNEE_GET(coll_ranks, "group_size", "ranks", COUNT, FULL, ""),
    KEY(COLL, description, "description", TEXT, "of the communicator"),
    OF_MOVER(COLL, before_s, "before_s", "before", TIME),
    OF_MOVER(COLL, after_s, "after_s", "after", TIME),
    OF_MOVER(COLL, before_wait_s, "before_wait_s", "wait before", TIME),
    OF_MOVER(COLL, after_wait_s, "after_wait_s", "wait after", TIME),
    OF_MOVER(COLL, before_calls, "before_calls", "calls before", NUMBER),
    OF_MOVER(COLL, after_calls, "after_calls", "calls after", NUMBER),
};

#define ROWS_OF(function, list, count)                                                             \
    ROW_OF(function, REPORT, index < it->c->count ? &it->c->list[index] : NULL)
/* Parts that are in neither step are no rows. */
static const void *part_row(const struct knee_at *at, size_t index)
{
    const COMPARISON *c = ((const REPORT *)at->row)->c;
    for (size_t i = 0; i < c->part_count; i++)
        if ((c->parts[i].before_s > 0 || c->parts[i].after_s > 0) && index-- == 0)
            return &c->parts[i];
    return NULL;
}
ROWS_OF(mover_row, movers, mover_count)
ROWS_OF(operation_row, operations, operation_count)
ROWS_OF(collective_row, collectives, collective_count)

static const struct knee_field fields[] = {
    KNEE_GROUP("verdict", verdict_fields, "what changed"),
    KNEE_INSIDE(REPORT, before_diagnosis, "before", side_fields, "the first recording",
                .pointer = true),
    KNEE_INSIDE(REPORT, after_diagnosis, "after", side_fields, "the second", .pointer = true),
    KNEE_ROWS_BY(part_row, "parts", part_fields, "the step part by part"),
    KNEE_ROWS_BY(work_row, "work", work_fields, "kernels by what they compute"),
    KNEE_ROWS_BY(operation_row, "operations", operation_fields,
                 "operations that changed most, by the shapes of their inputs"),
    KNEE_ROWS_BY(mover_row, "kernels", mover_fields, "kernels that changed most"),
    KNEE_ROWS_BY(collective_row, "collectives", collective_fields, "likewise"),
};

static const struct knee_view views[] = {
    {.list = "parts"},
    {.list = "work", .tier = FULL, .title = "Work by kind"},
    {.list = "operations", .tier = FULL, .title = "Operations that changed most"},
    {.list = "kernels", .tier = FULL, .title = "Kernels that changed most"},
    {.list = "collectives", .tier = FULL, .title = "Collectives that changed most"},
};

/* ---- Sentences ---- */

static void say_headline(const COMPARISON *c, struct knee_text *text)
{
    double times = c->after.wall_s / c->before.wall_s;
    if (c->as_before)
        PUT(text, "No change: the step takes {time} before and {time} after.", c->before.wall_s,
            c->after.wall_s);
    else if (!c->significant)
        PUT(text, "No significant change: {time} before, {time} after, noise {time}.",
            c->before.wall_s, c->after.wall_s, c->chance_s);
    else if (times >= 2 || times <= 0.5)
        PUT(text, "The step is {times} {}: {time} before, {time} after.",
            times > 1 ? times : 1 / times, times > 1 ? "as long" : "shorter", c->before.wall_s,
            c->after.wall_s);
    else
        PUT(text, "The step is {share} {}: {time} before, {time} after.", fabs(c->share_of_before),
            times > 1 ? "longer" : "shorter", c->before.wall_s, c->after.wall_s);
}

/* An operation without the shapes that the other recording lacks. */
static struct knee_word operation_word(const MOVER *m)
{
    char name[256];
    size_t length = m->length + (*m->shape ? 1 + strlen(m->shape) : 0);
    length = length < sizeof name ? length : sizeof name - 1;
    memcpy(name, m->name, length);
    name[length] = '\0';
    return knee_safe(name, 60);
}

/* The operation, kernel or copy that changed most; one that is gone or new comes with its
 * replacement. */
static void say_kernel(const COMPARISON *c, enum knee_span_kind kind, struct knee_text *text)
{
    const MOVER *first = NULL;
    bool operations = c->operation_count > 0;
    const MOVER *movers = operations ? c->operations : c->movers;
    size_t count = operations ? c->operation_count : c->mover_count;
    for (size_t i = 0; i < count; i++) {
        const MOVER *m = &movers[i];
        bool gone = m->after_calls <= 0, added = m->before_calls <= 0;
        struct knee_word name = operations ? operation_word(m) : knee_safe(m->name, 40);
        if (m->kind != kind)
            continue;
        if (!first && !gone && !added) {
            PUT(text, " Most: {}, {time} -> {time} in {number} -> {number} {}.", name.s,
                m->before_s, m->after_s, m->before_calls, m->after_calls,
                operations ? "kernels" : "calls");
            return;
        }
        if (first ? (first->after_calls <= 0 ? added : gone) : true) {
            PUT(text, " {}: {}, {time}.", gone ? "Gone" : "New", name.s,
                gone ? m->before_s : m->after_s);
            if (first)
                return;
            first = m;
        }
    }
}

/* Why a part changed, from what else changed with it. */
static void say_why(const REPORT *r, struct knee_text *text)
{
    const COMPARISON *c = r->c;
    bool now = r->after_diagnosis->late_ranks;
    const struct knee_account *late = now ? r->after : r->before;
    switch (c->label) {
    case KNEE_COMPUTE: say_kernel(c, KNEE_SPAN_COMPUTE, text); break;
    case KNEE_COPY: say_kernel(c, KNEE_SPAN_COPY, text); break;
    case KNEE_WAIT:
        if (now || r->before_diagnosis->late_ranks)
            PUT(text, " Rank {} is {} late ({}).", late->ranks[late->stragglers[0].rank].rank,
                now ? "now" : "no longer", knee_label_name(late->stragglers[0].cause));
        break;
    case KNEE_STARVED:
        PUT(text, " The loader takes {share} of the host's step, {share} before.",
            r->after_diagnosis->load_share, r->before_diagnosis->load_share);
        break;
    case KNEE_HOST:
        PUT(text, " Kernels per step: {count} before, {count} after.", rint(c->before_kernels),
            rint(c->after_kernels));
        break;
    case KNEE_TRANSFER:
        PUT(text, " All communication: {time} before, {time} after; overlap {share} -> {share}.",
            c->before.comm_s, c->after.comm_s, r->before_diagnosis->overlap,
            r->after_diagnosis->overlap);
        break;
    default: break;
    }
    if (c->largest_rank != SIZE_MAX && c->label != KNEE_WAIT)
        PUT(text, " Largest on rank {}: {time} per step.",
            (long long)(c->change > 0 ? r->after : r->before)->ranks[c->largest_rank].rank,
            c->largest_s);
}

/* A rank that is late explains what the others' labels only show. */
static void say_late(const REPORT *r, struct knee_text *text)
{
    bool now = r->c->late_s > 0;
    const struct knee_account *account = now ? r->after : r->before;
    const struct knee_straggler *late = &account->stragglers[0];
    PUT(text, "Rank {} is the cause: {} it is {} for {time} longer than the others.",
        account->ranks[late->rank].rank, now ? "now" : "before", knee_label_name(late->cause),
        r->c->late_excess_s);
}

/* Another GPU or GPU count is not a slower job: that comes before the comparison. */
static void say_void(const REPORT *r, struct knee_text *text)
{
    const struct knee_account *b = r->before, *a = r->after;
    if (r->c->differs & KNEE_DIFFER_GPU)
        PUT(text, "Not the same GPU: {} before, {} after.",
            knee_safe(b->ranks[0].trace->gpu_name, 24).s,
            knee_safe(a->ranks[0].trace->gpu_name, 24).s);
    if (r->c->differs & KNEE_DIFFER_WORLD)
        PUT(text, "{}Not the same job: {ranks} before, {} after.", text->length ? " " : "",
            (double)(b->world_size > 0 ? b->world_size : (int64_t)b->rank_count),
            (long long)(a->world_size > 0 ? a->world_size : (int64_t)a->rank_count));
}

/* What else differs, so that another job is not taken for a slower one. */
static void say_differences(const REPORT *r, struct knee_text *text)
{
    unsigned differs = r->c->differs & ~(unsigned)(KNEE_DIFFER_GPU | KNEE_DIFFER_WORLD);
    if (!differs)
        return;
    PUT(text, "Also different:");
    if (differs & KNEE_DIFFER_DTYPE)
        PUT(text, " type on the wire ({}, {}),", r->c->before_dtype, r->c->after_dtype);
    if (differs & KNEE_DIFFER_STEPS)
        PUT(text, " steps recorded ({count}, {count}),", r->before_diagnosis->steps,
            r->after_diagnosis->steps);
    if (differs & KNEE_DIFFER_TRAFFIC)
        PUT(text, " bytes in collectives,");
    if (differs & KNEE_DIFFER_KERNELS)
        PUT(text, " kernels per step ({count}, {count}),", rint(r->c->before_kernels),
            rint(r->c->after_kernels));
    if (!text->failed)
        text->data[text->length - 1] = '.';
    if (differs & KNEE_DIFFER_TRAFFIC)
        PUT(text, " These may be different jobs.");
}

static void say(const void *result, struct knee_said *said)
{
    const REPORT *r = result;
    const COMPARISON *c = r->c;
    PUT(&said->title, "before: {ranks}, {steps}; after: {ranks}, {steps}", r->before->rank_count,
        rint(r->before_diagnosis->steps), r->after->rank_count, rint(r->after_diagnosis->steps));
    say_void(r, &said->voids);
    say_headline(c, &said->headline);
    if (!c->as_before && c->late_makes_it) {
        say_late(r, &said->reason);
    } else if (!c->as_before && c->significant) {
        PUT(&said->reason, "{share} of the change is {}: {time} before, {time} after.", c->share,
            plain[c->label], c->before.label_s[c->label], c->after.label_s[c->label]);
        say_why(r, &said->reason);
    }
    say_differences(r, &said->effect);
    if (isnan(c->noise_s))
        PUT(&said->assumed, "steps vary little; one side has a single step");
}

const struct knee_answer_type knee_diff_answer = {
    .schema = "knee.diff/1", KNEE_FIELDS(fields), KNEE_VIEWS(views), .say = say};
