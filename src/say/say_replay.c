/* SPDX-License-Identifier: MIT */
/* knee replay: a recorded job run again with something changed. Schema knee.replay/1. */
#include "judge/judge.h"
#include "knee_replay.h"
#include "say/short.h"

#include <math.h>

/* ---- Fields ---- */

A_TEXT(binds, struct knee_replay_row, knee_label_name(it->binds))
A_NUMBER(throughput, struct knee_replay_row, 1 + it->gain)
A_TEXT(numerics, struct knee_replay_row,
       it->bound ? "upper bound"
                 : knee_numerics_name(knee_change_numerics(it->name, it->training_changes)))

WORDS(words, struct knee_replay_row, knee_change_words(it->name, text))

/* Rows come in this order; each group has a heading line. */
static const char *group(const struct knee_at *at)
{
    const struct knee_replay_row *row = at->row;
    return row->bound ? "upper bounds:" : row->training_changes ? "changes the optimizer:" : NULL;
}

#define ROW struct knee_replay_row
/* What is known of a changed step; of one row, and of all changes together. */
static const struct knee_field step_fields[] = {
    KNEE_FIELD(ROW, step_s, "step_s", "step", TIME, SCREEN,
               "step with the change; `low_s` and `high_s` are its interval", .interval = true,
               .interval_offset = offsetof(ROW, low_s)),
    KEY(ROW, gain, "gain", CHANGE, "work per second after / before - 1"),
    KNEE_FIELD(ROW, ratio, "ratio", "R", NUMBER, FULL, "exposed communication / compute"),
    KNEE_GET(binds, "binds", "limited by", TEXT, FULL, "largest part of the step"),
    KEY(ROW, training_changes, "training_changes", YES_NO, "changes what is learned in a step"),
};
static const struct knee_field change_fields[] = {
    KNEE_GET(words, "words", "change", TEXT, SCREEN, "the change in words"),
    KNEE_FIELD(ROW, name, "name", "option", TEXT, FULL, "the change"),
    KNEE_AMONG_BY(knee_same_row, step_fields),
    KEY(ROW, bound, "bound", YES_NO, "shows what something costs; not a change that can be made"),
    KNEE_GET(throughput, "throughput", "throughput", TIMES, SCREEN,
             "work per second after / before"),
    KNEE_GET(numerics, "side_effect", "numerics", TEXT, SCREEN,
             "same, rounding, changes the optimizer; or an upper bound"),
};
static const struct knee_field refused_fields[] = {
    KNEE_FIELD(ROW, name, "name", "not answered", TEXT, FULL, "the change"),
    KNEE_FIELD(ROW, refused, "reason", "reason", TEXT, FULL, "why the recording cannot answer it"),
};

/* The rows that were answered, or not; of what was asked for also all of it together. */
static const void *nth(const struct knee_replay *r, size_t index, bool refused)
{
    for (size_t i = 0; i < r->row_count; i++)
        if (!r->rows[i].refused[0] == !refused && index-- == 0)
            return &r->rows[i];
    return refused && index == 0 && r->all.refused[0] ? &r->all : NULL;
}

ROW_OF(answered_row, void, nth(at->row, index, false))
ROW_OF(refused_row, void, nth(at->row, index, true))
GETTER(trust, struct knee_replay,
       knee_value_printf(out,
                         "Measured step %s, replayed %s. Dependencies: %zu recorded, %zu inferred, "
                         "%zu guessed; %s of the step unexplained.",
                         SAY_TIME(it->measured_step_s), SAY_TIME(it->replayed_step_s), it->real,
                         it->ruled, it->guessed, SAY_SHARE(it->unexplained)))

#define REPLAY struct knee_replay
static const struct knee_field edge_fields[] = {
    KEY(REPLAY, real, "real", COUNT, "recorded"),
    KEY(REPLAY, ruled, "ruled", COUNT, "follow from what the framework does"),
    KEY(REPLAY, guessed, "guessed", COUNT, "guessed from gaps"),
};
static const struct knee_field fields[] = {
    KNEE_SENTENCE,
    KEY_BY(trust, "trust", TEXT, "how far to trust the graph"),
    KEY(REPLAY, measured_step_s, "measured_step_s", TIME, "step as recorded"),
    KEY(REPLAY, replayed_step_s, "replayed_step_s", TIME, "step replayed without a change"),
    KNEE_AMONG(REPLAY, all, step_fields),
    KEY(REPLAY, ratio, "ratio_before", NUMBER, "exposed communication / compute as recorded"),
    KEY(REPLAY, ranks, "ranks", COUNT, "ranks recorded"),
    KEY(REPLAY, steps, "steps", COUNT, "steps per rank"),
    KEY(REPLAY, unexplained, "unexplained", SHARE,
        "share of the step that no dependency explains; kept as it was"),
    KNEE_GROUP("edges", edge_fields, "dependencies between streams and to the host", .flat = true),
    KEY(REPLAY, collectives, "collectives", COUNT, "collectives matched over ranks"),
    KEY(REPLAY, unmet, "unmet", COUNT,
        "calls without their partners; they keep their measured time"),
    KEY(REPLAY, host_share, "host_share", SHARE,
        "share of the replayed step in which the GPU waits for the host"),
    KEY(REPLAY, host_pace, "host_pace", NUMBER,
        "host time against the recording, set by --step-time; 1: as recorded"),
    KEY(REPLAY, turn_s, "turn_s", TIME,
        "ranks share a GPU in turns of this length; 0: they do not"),
    KEY(REPLAY, standard, "standard", YES_NO,
        "no change was asked for: `changes` is the standard table"),
    KNEE_ROWS_BY(answered_row, "changes", change_fields, "one row per change"),
    KNEE_ROWS_BY(refused_row, "refused", refused_fields, "changes the recording cannot answer"),
};

static const struct knee_view views[] = {
    {.list = "changes", .group = group},
    {.list = "refused", .tier = FULL},
};

/* ---- Sentences ---- */

/* "send gradients as bf16", or the noun where a change has no row in the table. */
static void say_action(const char *row, struct knee_text *text)
{
    struct knee_lever lever;
    if (knee_change_replayed(row, &lever))
        knee_text_puts(text, lever.action);
    else
        knee_change_words(row, text);
}

/* A host-bound step that was recorded with a profiler, and no step without it is given. */
static bool is_slowed(const struct knee_replay *r)
{
    return r->host_pace == 1 && r->host_share > KNEE_HOST_BOUND;
}

static void say_best(const struct knee_replay *r, const struct knee_replay_row *best,
                     struct knee_said *said)
{
    struct knee_text name = {.alloc = said->headline.alloc};
    struct knee_lever lever;
    bool one = r->standard || r->row_count == 1;
    if (!one)
        PUT(&name, "all changes together");
    else if (best->gain > 0)
        say_action(r->rows[0].name, &name);
    else {
        PUT(&name, "no gain from ");
        knee_change_words(r->rows[0].name, &name);
    }
    if (name.data && is_slowed(r)) /* how much faster than without the profiler is not known */
        knee_text_printf(&said->headline, "%c%s: about %s per step.", knee_capital(*name.data),
                         name.data + 1, SAY_TIME(best->step_s));
    else if (name.data)
        knee_text_printf(&said->headline, "%c%s: %s throughput.", knee_capital(*name.data),
                         name.data + 1, SAY_TIMES(1 + best->gain));
    knee_text_end(&name, &said->headline);
    PUT(&said->reason, "The step goes from {time}{} to {time}.", r->replayed_step_s,
        is_slowed(r) ? " with the profiler" : "", SPAN(best->step_s, best->low_s, best->high_s));
    if (best->training_changes)
        PUT(&said->reason, " It changes training: check the loss.");
    if (r->standard && knee_change_replayed(r->rows[0].name, &lever) && *lever.how)
        PUT(&said->effect, "Try: {}.", lever.how);
}

static void say_headline(const struct knee_replay *r, struct knee_said *said)
{
    const struct knee_replay_row *best = r->standard && r->row_count ? &r->rows[0] : &r->all;
    if (!nth(r, 0, false))
        PUT(&said->headline, "This recording cannot answer any of these changes.");
    else if (best->refused[0] || isnan(best->step_s))
        PUT(&said->headline, "These changes cannot be combined in one replay.");
    else if (r->standard && best->gain < KNEE_WORTH_IT)
        PUT(&said->headline, "No change that keeps training as it is shortens the step by 5%.");
    else
        say_best(r, best, said);
}

static void say_notes(const struct knee_replay *r, struct knee_said *said)
{
    PUT(&said->notes,
        "dependencies: {} recorded, {} inferred, {} guessed; {share} of the step unexplained\n",
        r->real, r->ruled, r->guessed, r->unexplained);
    PUT(&said->notes, "[{} communication calls lack partners and keep their measured time\n]",
        r->unmet);
    PUT(&said->notes, "[ranks share a GPU in turns of {time}\n]", r->turn_s);
}

/* Profilers slow the host, not the GPU: 1.2 to 2.5 times on 18 jobs measured with and without. */
static void say_profiler(const struct knee_replay *r, struct knee_said *said)
{
    if (r->host_pace != 1)
        PUT(&said->assumed, "host time is {share} of the recorded one, by --step-time",
            r->host_pace);
    else if (is_slowed(r))
        PUT(&said->assumed,
            "the host is as slow as recorded. Profilers slow it: such steps ran 1.2 to 2.5 times "
            "faster without one. Pass the measured step with --step-time");
}

enum { NAMED = 4 }; /* changes that do not apply */

static void say(const void *result, struct knee_said *said)
{
    const struct knee_replay *r = result;
    size_t refused = 0;
    PUT(&said->title, "{ranks}, {steps}, {time} per step; replayed unchanged: {time}", r->ranks,
        r->steps, r->measured_step_s, r->replayed_step_s);
    if (r->turn_s > 0)
        PUT(&said->voids, "The ranks share one GPU: give each its own with CUDA_VISIBLE_DEVICES.");
    say_headline(r, said);
    while (nth(r, refused, true))
        refused++;
    for (size_t i = 0; i < refused && i < NAMED; i++) {
        knee_text_puts(&said->after, i ? ", " : "Does not apply: ");
        knee_change_words(((const struct knee_replay_row *)nth(r, i, true))->name, &said->after);
    }
    if (refused > NAMED)
        PUT(&said->after, " and {} more", refused - NAMED);
    say_profiler(r, said);
    say_notes(r, said);
}

const struct knee_answer_type knee_replay_answer = {
    .schema = "knee.replay/1", KNEE_FIELDS(fields), KNEE_VIEWS(views), .say = say};
