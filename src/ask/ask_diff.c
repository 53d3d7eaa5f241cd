/* SPDX-License-Identifier: MIT */
/* diff: why one recording's step is longer than another's; of training logs whether it is. */
#include "ask/ask_measured.h"
#include "ask/ask_trace.h"
#include "base/error.h"
#include "base/keys.h"
#include "out/answer.h"
#include "say/answers.h"

#include <math.h>

struct diff_options {
    double max_slower;
    unsigned char source[KNEE_KEYS_MAX];
};

static const struct knee_key rows[] = {
    KNEE_NUMBER(struct diff_options, "max-slower", max_slower, KNEE_UNIT_FRACTION, 0, 100, "Diff",
                "off",
                KNEE_OFF_PAGE(
                    "exit with status 1 if the step is slower by more than this, noise excluded")),
};

static const struct knee_keys diff_keys = KNEE_KEY_TABLE(rows, struct diff_options);

/* The options come first: they are the command's first object. */
struct diff_room {
    struct diff_options options;
    struct knee_job job; /* all unknown */
    struct knee_ask_told before, after;
    struct knee_comparison comparison;
};

/* By more than the user allows, and by more than steps differ by chance. */
static knee_status check_gate(const struct diff_options *options, const struct knee_comparison *c,
                              struct knee_err *err)
{
    double slower = c->after.wall_s / c->before.wall_s - 1;
    if (!isnan(options->max_slower) && isnan(slower))
        return knee_fail(err, KNEE_GATE, "--max-slower", "the step time is unknown");
    if (!(slower > options->max_slower) || !c->significant)
        return KNEE_OK;
    return knee_fail(err, KNEE_GATE, "--max-slower", "the step is %.3g %% longer > %.3g %%",
                     100 * slower, 100 * options->max_slower);
}

/* Side 0 or 1; a trace that was read for a word counts for that word alone. */
static knee_status tell_side(struct knee_ask_question *q, size_t side, const struct knee_job *job,
                             struct knee_ask_told *out, struct knee_err *err)
{
    knee_status status = knee_ask_pick(q->ask, &q->words[side], 1, side, out, err);
    if (!status)
        status = knee_ask_one_run(out, q->words[side], err);
    if (!status)
        status = knee_ask_diagnose(NULL, job, false, out, err);
    if (status || !(out->diagnosis.gaps & KNEE_GAP_NO_STEPS))
        return status;
    return knee_fail_hint(
        err, KNEE_INPUT, q->words[side],
        "call prof.step() after each step, or mark steps with NVTX ranges (step 1)",
        "no steps are marked: windows do not compare");
}

static knee_status compare(struct knee_ask_question *q, struct diff_room *all, struct knee_err *err)
{
    struct knee_ask_told *before = &all->before, *after = &all->after;
    knee_status status = tell_side(q, 0, &all->job, before, err);
    if (!status)
        status = tell_side(q, 1, &all->job, after, err);
    if (!status)
        status = knee_compare((struct knee_judged_run){&before->account, &before->diagnosis},
                              (struct knee_judged_run){&after->account, &after->diagnosis},
                              knee_ask_alloc(q->ask), &all->comparison, err);
    if (!status) {
        struct knee_comparison_report report = {&all->comparison, &before->account, &after->account,
                                                &before->diagnosis, &after->diagnosis};
        ASK_WRITE(q, knee_answer_write, &knee_diff_answer, &report);
        status = check_gate(&all->options, &all->comparison, err);
    }
    knee_ask_told_release(before);
    knee_ask_told_release(after);
    return status;
}

static knee_status answer(struct knee_ask_question *q, struct knee_err *err)
{
    if (q->word_count != 2)
        return knee_fail_hint(err, KNEE_USAGE, "",
                              "knee diff BEFORE AFTER, each a folder or a file",
                              "diff compares 2 recordings, %zu given", q->word_count);
    bool logs;
    knee_status status = knee_ask_diff_logs(q->ask, q->words, &logs, err);
    if (status)
        return status;
    const struct diff_room *all = q->objects[0];
    return logs ? knee_ask_compare_logs(q, all->options.max_slower, err)
                : compare(q, q->objects[0], err);
}

static void init(void *room, void **objects)
{
    struct diff_room *all = room;
    knee_keys_clear(&diff_keys, &all->options);
    knee_job_init(&all->job);
    objects[0] = &all->options;
}

const struct knee_ask_command knee_ask_diff = {
    .name = "diff",
    .keys = {&diff_keys},
    .most_words = 2,
    .operands = "BEFORE AFTER",
    .size = sizeof(struct diff_room),
    .init = init,
    .answer = answer,
};
