/* SPDX-License-Identifier: MIT */
/* knee replay of a pipeline's operation log: which part slows the job down. Schema knee.replay/1.
 */
#include "judge/judge.h"
#include "knee_replay.h"
#include "say/short.h"

#include <math.h>

#define SLOW struct knee_slowdown

A_TEXT(get_cause, SLOW, knee_slow_cause_name(it->cause))
WHEN(is_stage, SLOW, it->cause == KNEE_SLOW_STAGE)
A_NUMBER(get_gain, SLOW, it->slowdown - 1)
A_TEXT(get_even, void, "even")
A_BOOL(get_false, void, false)

/* Rows are numbers inside the result: of a kind of operation, a stage, a replica. */
static const double *known(const double *list, size_t count, size_t index)
{
    for (size_t i = 0; i < count; i++)
        if (!isnan(list[i]) && index-- == 0)
            return &list[i];
    return NULL;
}
ROW_OF(stage_row, SLOW,
       (index < KNEE_SLOW_PARTS && (int32_t)index < it->stages) ? &it->by_stage[index] : NULL)
ROW_OF(replica_row, SLOW,
       (index < KNEE_SLOW_PARTS && (int32_t)index < it->replicas) ? &it->by_replica[index] : NULL)
/* Operations, then stages, then the slowest ranks. */
static const void *part_row(const struct knee_at *at, size_t index)
{
    const SLOW *s = at->row;
    size_t kinds = 0;
    while (known(s->by_kind, KNEE_LOGGED_KINDS, kinds))
        kinds++;
    if (index < kinds)
        return known(s->by_kind, KNEE_LOGGED_KINDS, index);
    index -= kinds;
    const void *stage = stage_row(at, index);
    size_t stages = s->stages < KNEE_SLOW_PARTS ? (size_t)s->stages : KNEE_SLOW_PARTS;
    return stage ? stage : index == stages ? &s->worst_workers : NULL;
}
static void part_name(const struct knee_at *at, struct knee_value *out)
{
    const SLOW *s = at->up->row;
    const double *row = at->row;
    if (row >= s->by_kind && row < s->by_kind + KNEE_LOGGED_KINDS)
        knee_value_text(out, knee_logged_name((enum knee_logged_kind)(row - s->by_kind)));
    else if (row >= s->by_stage && row < s->by_stage + KNEE_SLOW_PARTS)
        knee_value_printf(out, "stage %d", (int)(row - s->by_stage));
    else
        knee_value_text(out, "slowest 3% of ranks");
}
A_NUMBER(part_value, void, *(const double *)at->row)

static const struct knee_field value_fields[] = {
    KNEE_GET(part_value, NULL, NULL, TIMES, DATA, "slowdown by it alone")};
static const struct knee_field part_fields[] = {
    KNEE_GET(part_name, "name", "only this as recorded", TEXT, SCREEN,
             "the part that is not evened out"),
    KNEE_GET(part_value, "slowdown", "slowdown", TIMES, SCREEN, "step / even step"),
};
static const struct knee_field even_fields[] = {
    KEY_BY(get_even, "name", TEXT, "the change"),
    KEY(SLOW, even_step_s, "step_s", TIME, "", .interval = true,
        .interval_offset = offsetof(SLOW, low_s)),
    KEY_BY(get_gain, "gain", CHANGE, "of throughput"),
    KEY_BY(get_false, "training_changes", YES_NO, ""),
};
ROW_OF(even_row, void, index == 0 ? at->row : NULL)
#define BY(kind, name) KEY(SLOW, by_kind[kind], name, TIMES, "null: none logged")
static const struct knee_field kind_fields[] = {
    BY(KNEE_LOGGED_FORWARD, "forward-compute"),
    BY(KNEE_LOGGED_BACKWARD, "backward-compute"),
    BY(KNEE_LOGGED_FORWARD_SEND, "forward-send"),
    BY(KNEE_LOGGED_FORWARD_RECV, "forward-recv"),
    BY(KNEE_LOGGED_BACKWARD_SEND, "backward-send"),
    BY(KNEE_LOGGED_BACKWARD_RECV, "backward-recv"),
    BY(KNEE_LOGGED_PARAMS, "params-all-gather"),
    BY(KNEE_LOGGED_GRADS, "grads-reduce-scatter"),
    BY(KNEE_LOGGED_NORMS, "layernorm-grads-all-reduce"),
    BY(KNEE_LOGGED_EMBEDDING, "embedding-grads-all-reduce"),
    BY(KNEE_LOGGED_SEPARATE, "separate-grads-all-reduce"),
    BY(KNEE_LOGGED_CLIP, "optimizer-clip-main-grad"),
    BY(KNEE_LOGGED_OPTIMIZER, "optimizer"),
    BY(KNEE_LOGGED_COLLECT, "gc"),
};

#define OF(member, name, kind, words) KEY(SLOW, member, name, kind, words)
static const struct knee_field fields[] = {
    KNEE_SENTENCE,
    OF(measured_step_s, "measured_step_s", TIME, "as recorded"),
    OF(plain_step_s, "replayed_step_s", TIME, "without launch delays"),
    KEY(SLOW, even_step_s, "step_s", TIME, "all parts even", .interval = true,
        .interval_offset = offsetof(SLOW, low_s)),
    OF(slowdown, "slowdown", TIMES, "replayed / even"),
    KEY_BY(get_cause, "cause", TEXT, "what makes it uneven"),
    KEY(SLOW, stage, "stage", COUNT, "that has more to do", .when = is_stage),
    OF(variation, "variation", SHARE, "of micro-batches of a stage"),
    OF(likeness, "likeness", NUMBER, "of forward to backward in that"),
    OF(worst_workers, "worst_workers", TIMES, "slowdown by the slowest 3% of ranks"),
    OF(ranks, "ranks", COUNT, ""),
    OF(steps, "steps", COUNT, ""),
    KNEE_GROUP("by_operation", kind_fields, "slowdown by kind of operation", .flat = true),
    KNEE_ROWS_BY(stage_row, "by_stage", value_fields, "slowdown by stage"),
    KNEE_ROWS_BY(replica_row, "by_replica", value_fields, "slowdown by replica"),
    KNEE_ROWS_BY(part_row, "parts", part_fields, "all of them with names"),
    KNEE_ROWS_BY(even_row, "changes", even_fields, "the one change that is priced"),
};
WHEN(counts, double, *it >= 1 + KNEE_WORTH_A_WORD)
static const struct knee_view views[] = {{.list = "parts", .pick = counts}};

static void say_cause(const SLOW *s, struct knee_text *text)
{
    switch (s->cause) {
    case KNEE_SLOW_NONE: break;
    case KNEE_SLOW_STAGE:
        PUT(text,
            "Stage {} does more work than the others: alone it costs {times}. Move layers to other "
            "stages.",
            (int)s->stage, s->by_stage[s->stage]);
        break;
    case KNEE_SLOW_SEQUENCE:
        PUT(text,
            "Micro-batches differ by {share}, forward and backward alike: sequences of unequal "
            "length. Balance tokens over micro-batches and replicas.",
            s->variation);
        break;
    case KNEE_SLOW_WORKER:
        PUT(text, "The slowest 3% of ranks alone make the step {times} as long.", s->worst_workers);
        break;
    case KNEE_SLOW_WIRE: PUT(text, "Communication time varies."); break;
    default: PUT(text, "No single part explains it."); break;
    }
}

static void say(const void *result, struct knee_said *said)
{
    static const char *const heads[KNEE_SLOW_CAUSES] = {
        [KNEE_SLOW_NONE] = "Healthy: the pipeline is even.",
        [KNEE_SLOW_STAGE] = "Balance the pipeline: one stage has more work than the others.",
        [KNEE_SLOW_SEQUENCE] = "Balance sequence lengths over micro-batches.",
        [KNEE_SLOW_WORKER] = "A few ranks are slow: replace or repair them.",
        [KNEE_SLOW_WIRE] = "Communication varies: check the network.",
        [KNEE_SLOW_MIXED] = "The pipeline is uneven; no single part explains it.",
    };
    const SLOW *s = result;
    PUT(&said->title, "{} ranks ({} replicas of {} stages), {steps}, {count} operations", s->ranks,
        (int)s->replicas, (int)s->stages, s->steps, s->ops);
    knee_text_puts(&said->headline, heads[s->cause]);
    say_cause(s, &said->reason);
    PUT(&said->effect, "Slowdown {times}: the step takes {time}, {time} if all parts were even.",
        s->slowdown, s->plain_step_s, s->even_step_s);
    PUT(&said->notes, "measured step {time}, without launch delays {time}\n", s->measured_step_s,
        s->plain_step_s);
}

const struct knee_answer_type knee_slowdown_answer = {
    .schema = "knee.replay/1", KNEE_FIELDS(fields), KNEE_VIEWS(views), .say = say};
