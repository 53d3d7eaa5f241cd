/* SPDX-License-Identifier: MIT */
/* Traces from any bytes, replayed with the standard changes and with many at once; and the same
 * bytes as a log of a pipeline's operations. Both ranks are the same bytes. */
#include "knee_out.h"
#include "out/answer.h"
#include "say/answers.h"
#include "seldom.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct source {
    const uint8_t *data;
    size_t length, at;
};

static ptrdiff_t source_read(void *ctx, void *buffer, size_t size)
{
    struct source *s = ctx;
    size_t left = s->length - s->at;
    size = size < left ? size : left;
    memcpy(buffer, s->data + s->at, size);
    s->at += size;
    return (ptrdiff_t)size;
}

static void show(const struct knee_replay *replay)
{
    struct knee_style style = {0};
    struct knee_text text = {0};
    for (int format = KNEE_TEXT; format <= KNEE_MARKDOWN; format++)
        knee_answer_write(&knee_replay_answer, replay, (enum knee_format)format, &style, &text);
    knee_text_release(&text);
}

static void ask(const struct knee_account *account, struct knee_changes *changes)
{
    struct knee_replay replay;
    struct knee_replayed replayed;
    struct knee_err err;
    knee_status status = knee_replay(account, changes, NULL, &replay, &err);
    if (status == KNEE_SYSTEM)
        abort();
    if (!status)
        show(&replay);
    if (!status && !knee_replay_timeline(account, changes, NULL, &replayed, &err)) {
        struct knee_account after;
        if (!knee_account(replayed.traces, replayed.count, NULL, &after, &err))
            knee_account_release(&after);
        knee_replayed_release(&replayed);
    }
}

static void replay(struct knee_trace *traces, size_t count)
{
    struct knee_account account;
    struct knee_changes changes;
    struct knee_err err;
    if (knee_account(traces, count, NULL, &account, &err))
        return;
    knee_changes_init(&changes);
    ask(&account, &changes);
    changes.wire = "bf16";
    changes.even = changes.overlap = changes.keep_params = changes.loader_ahead = true;
    changes.no_host_gaps = true;
    changes.batch = 1.5;
    changes.bucket_bytes = 3e5;
    changes.prefetch = 2;
    ask(&account, &changes);
    knee_account_release(&account);
}

static void read_log(const uint8_t *data, size_t size)
{
    struct knee_op_log log;
    struct knee_slowdown slowdown;
    struct knee_style style = {0};
    struct knee_text text = {0};
    struct knee_err err;
    if (knee_op_log_read((const char *)data, size, "fuzz", NULL, &log, &err))
        return;
    if ((int64_t)log.replicas * log.stages * log.parts < 1000 &&
        !knee_find_slowdown(&log, NULL, &slowdown, &err))
        knee_answer_write(&knee_slowdown_answer, &slowdown, KNEE_JSON, &style, &text);
    knee_text_release(&text);
    knee_op_log_release(&log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct knee_trace_options options = {.host = true};
    struct knee_trace traces[2];
    struct knee_err err;
    size_t count = 0;
    for (int rank = 0; rank < 2; rank++) {
        struct source source = {data, size, 0};
        if (!knee_trace_read((struct knee_reader){source_read, &source},
                             rank ? "rank1.json" : "rank0.json", &options, NULL, &traces[count],
                             &err)) {
            traces[count].rank = rank; /* whatever the bytes say: their calls are to meet */
            traces[count].rank_stated = true;
            traces[count++].world_size = 2;
        }
    }
    if (count && seldom(data, size, 32))
        replay(traces, count);
    for (size_t i = 0; i < count; i++)
        knee_trace_release(&traces[i]);
    read_log(data, size);
    return 0;
}
