/* SPDX-License-Identifier: MIT */
/* diff: why one recording's step is longer than another's. */
#include "ask/ask_trace.h"
#include "base/error.h"

struct diff_room {
    struct knee_job job; /* of which nothing is said */
    struct knee_ask_told before, after;
    struct knee_comparison comparison;
};

static knee_status compare(struct knee_ask_question *q, struct diff_room *all, struct knee_err *err)
{
    struct knee_ask_told *before = &all->before, *after = &all->after;
    knee_status status = knee_ask_tell(q->ask, &q->words[0], 1, &all->job, false, before, err);
    if (!status)
        status = knee_ask_tell(q->ask, &q->words[1], 1, &all->job, false, after, err);
    if (!status)
        status = knee_compare(&before->account, &before->diagnosis, &after->account,
                              &after->diagnosis, knee_ask_alloc(q->ask), &all->comparison, err);
    if (!status)
        ASK_WRITE(q, knee_write_comparison, &all->comparison, &before->account, &before->diagnosis,
                  &after->account, &after->diagnosis);
    knee_ask_told_release(before);
    knee_ask_told_release(after);
    return status;
}

static knee_status answer(struct knee_ask_question *q, struct knee_err *err)
{
    if (q->word_count != 2) {
        knee_fail(err, KNEE_USAGE, "", "two recordings are compared, not %zu", q->word_count);
        knee_hint(err, "knee diff BEFORE AFTER, each a folder or a file");
        return KNEE_USAGE;
    }
    return compare(q, q->objects[0], err);
}

static void init(void *room, void **objects)
{
    knee_job_init(&((struct diff_room *)room)->job);
    objects[0] = room;
}

const struct knee_ask_command knee_ask_diff = {
    .name = "diff",
    .most_words = 2,
    .operands = "BEFORE AFTER",
    .size = sizeof(struct diff_room),
    .init = init,
    .answer = answer,
};
