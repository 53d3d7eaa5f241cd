/* SPDX-License-Identifier: MIT */
/* replay: what a recorded job would do with something changed. */
#include "ask/ask_trace.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/text.h"
#include "out/answer.h"
#include "say/answers.h"

#include <string.h>

#define LARGEST_LOG (SIZE_MAX / 2 < (uint64_t)4 << 30 ? SIZE_MAX / 2 : (size_t)((uint64_t)4 << 30))

struct replay_options {
    const char *perfetto;
    unsigned char source[KNEE_KEYS_MAX];
};

static const struct knee_key rows[] = {
    KNEE_OPTION(struct replay_options, "perfetto", KNEE_KEY_WORD, perfetto, "Replay", "none",
                KNEE_OFF_PAGE("write the changed timeline for ui.perfetto.dev or knee trace")),
};

static const struct knee_keys replay_keys = KNEE_KEY_TABLE(rows, struct replay_options);

/* The options come first: they are the command's first object. */
struct replay_room {
    struct replay_options options;
    struct knee_changes changes;
    struct knee_cluster cluster; /* that changes.on points at */
    struct knee_replay replay;
};

/* ---- Timelines ---- */

static knee_status write_timeline(struct knee_ask_question *q, const struct replay_room *all,
                                  const struct knee_account *account, struct knee_err *err)
{
    const struct knee_alloc *alloc = knee_ask_alloc(q->ask);
    struct knee_replayed replayed;
    struct knee_account after;
    knee_status status = knee_replay_timeline(account, &all->changes, alloc, &replayed, err);
    if (status)
        return status;
    status = knee_account(replayed.traces, replayed.count, alloc, &after, err);
    if (!status) {
        status = knee_ask_perfetto(q->ask, all->options.perfetto, &after, err);
        knee_account_release(&after);
    }
    knee_replayed_release(&replayed);
    return status;
}

static knee_status answer_traces(struct knee_ask_question *q, struct replay_room *all,
                                 const struct knee_ask_told *told, struct knee_err *err)
{
    struct knee_account account;
    knee_status status = knee_account(told->traces, told->count, told->alloc, &account, err);
    if (status)
        return status;
    status = knee_replay(&account, &all->changes, told->alloc, &all->replay, err);
    if (!status && all->options.perfetto)
        status = write_timeline(q, all, &account, err);
    if (!status)
        ASK_ANSWER(q, &knee_replay_answer, &all->replay);
    knee_account_release(&account);
    return status;
}

/* ---- Logs of a pipeline's operations ---- */

static ptrdiff_t read_bytes(void *ctx, void *buffer, size_t size)
{
    struct knee_ask_bytes *rest = ctx;
    size_t got = size < rest->length ? size : rest->length;
    memcpy(buffer, rest->data, got);
    rest->data += got;
    rest->length -= got;
    return (ptrdiff_t)got;
}

static knee_status read_packed_log(const struct knee_ask_bytes *bytes, const char *name,
                                   const struct knee_alloc *alloc, struct knee_op_log *log,
                                   struct knee_err *err)
{
    struct knee_ask_bytes rest = *bytes;
    struct knee_reader reader = {read_bytes, &rest};
    void *data = NULL;
    size_t length = 0;
    if (knee_gunzip_all(reader, LARGEST_LOG, alloc, &data, &length))
        return knee_fail(err, KNEE_INPUT, name, "cannot be unpacked: damaged, or too large");
    knee_status status = knee_op_log_read(data, length, name, alloc, log, err);
    knee_resize(alloc, data, 0);
    return status;
}

static knee_status read_log(struct knee_ask *ask, const char *name, struct knee_op_log *log,
                            struct knee_err *err)
{
    const struct knee_alloc *alloc = knee_ask_alloc(ask);
    struct knee_ask_bytes bytes = {.data = NULL};
    knee_status status = knee_ask_read(ask, name, LARGEST_LOG, &bytes, err);
    if (status)
        return status;
    bool packed = bytes.length > 2 && memcmp(bytes.data, "\x1f\x8b", 2) == 0;
    status = packed ? read_packed_log(&bytes, name, alloc, log, err)
                    : knee_op_log_read(bytes.data, bytes.length, name, alloc, log, err);
    knee_ask_done(&bytes);
    return status;
}

static knee_status answer_log(struct knee_ask_question *q, struct knee_err *err)
{
    const struct knee_alloc *alloc = knee_ask_alloc(q->ask);
    struct knee_op_log log;
    struct knee_slowdown slowdown;
    knee_status status = read_log(q->ask, q->words[0], &log, err);
    if (status)
        return status;
    status = knee_find_slowdown(&log, alloc, &slowdown, err);
    if (!status)
        ASK_WRITE(q, knee_answer_write, &knee_slowdown_answer, &slowdown);
    knee_op_log_release(&log);
    return status;
}

/* Traces without any GPU work may be a log of a pipeline's operations. */
static bool has_work(const struct knee_ask_told *told)
{
    for (size_t i = 0; i < told->count; i++)
        if (told->traces[i].rank_count)
            return true;
    return false;
}

/* ---- The answer ---- */

static knee_status answer(struct knee_ask_question *q, struct knee_err *err)
{
    struct replay_room *all = q->objects[0];
    struct knee_ask_told told;
    knee_status status = KNEE_OK;
    if (all->changes.cluster) {
        status = knee_ask_read_cluster(q->ask, all->changes.cluster, &all->cluster, err);
        all->changes.on = &all->cluster;
    }
    if (status)
        return status;
    status = knee_ask_pick(q->ask, q->words, q->word_count, 0, &told, err);
    bool log = q->word_count == 1 && !has_work(&told) && knee_ask_has(q->ask, q->words[0]);
    knee_status logged = log ? answer_log(q, err) : KNEE_INPUT;
    if (log && (status || !logged))
        status = logged;
    else if (!status && !(status = knee_ask_one_run(&told, "", err)))
        status = answer_traces(q, all, &told, err);
    knee_ask_told_release(&told);
    return status;
}

static void init(void *room, void **objects)
{
    struct replay_room *all = room;
    knee_changes_init(&all->changes);
    objects[0] = &all->options;
    objects[1] = &all->changes;
}

const struct knee_ask_command knee_ask_replay = {
    .name = "replay",
    .keys = {&replay_keys, &knee_change_keys},
    .most_words = ASK_WORDS,
    .operands = "DIR|FILE...",
    .size = sizeof(struct replay_room),
    .init = init,
    .answer = answer,
};
