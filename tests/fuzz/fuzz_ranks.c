/* SPDX-License-Identifier: MIT */
/* Up to four ranks whose spans, calls, launches and marks come from any bytes, at times of any
 * size: accounted, diagnosed, compared and shown; what is written for Perfetto reads back. */
#include "knee_out.h"
#include "out/answer.h"
#include "say/answers.h"
#include "seldom.h"

#include "timeline/builder.h"
#include "timeline/recordings.h"

#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, RECORD = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t name(struct knee_builder *b, const char *text)
{
    return knee_builder_name(b, text, strlen(text));
}

/* Small times mostly, and now and then one at the edge of what is let through, or past it. */
static int64_t time_of(const uint8_t *p, uint8_t kind)
{
    static const int64_t far[] = {
        0, KNEE_LAST_NS, KNEE_FIRST_NS, KNEE_LAST_NS / 2, INT64_C(4000000000000000000), -5, 0, 1};
    int64_t near = (int64_t)(p[0] << 8 | p[1]) * 1000;
    return kind < 240 ? near : far[kind & 7] + (far[kind & 7] > 0 ? -near : near);
}

static void add_call(struct knee_builder *b, const uint8_t *p, int64_t start, int64_t end)
{
    static const char *const groups[] = {NULL, "0", "1", "tp"};
    static const char *const members[] = {"[0, 1]", "[0, 1, 2, 3]", "[2, 3", ""};
    struct knee_call_facts facts = KNEE_CALL_UNKNOWN;
    facts.op = (enum knee_op)(p[5] % KNEE_OPS);
    facts.bytes = p[6] % 3 ? 1 << (p[6] % 20) : -1;
    facts.group_size = p[6] % 5 - 1;
    facts.sequence = p[7] % 4 ? -1 : p[4];
    facts.peer = p[7] % 6 - 1;
    facts.sends = p[7] & 64;
    const char *group = groups[p[6] >> 6];
    if (group) {
        facts.group = name(b, group) + 1;
        facts.members = name(b, members[p[7] >> 6]) + 1;
    }
    knee_builder_span(b, &(struct knee_gpu_work){0, start, end,
                                                 name(b, "ncclDevKernel_SendRecv(x)"), p[5] % 3,
                                                 p[4] ? p[4] : KNEE_NO_CORRELATION, false, &facts});
}

static void add_record(struct knee_builder *b, const uint8_t *p)
{
    int64_t start = time_of(p + 1, p[7]), end = start;
    if (start < INT64_MAX / 2)
        end += p[3] == 255 ? KNEE_LONGEST_NS + (p[4] & 1) : (int64_t)p[3] * 500;
    switch (p[0] >> 2 & 7) {
    case 0:
        knee_builder_span(
            b, &(struct knee_gpu_work){0, start, end, name(b, "gemm"), 7, p[4], false, NULL});
        break;
    case 1:
        knee_builder_span(b, &(struct knee_gpu_work){p[4] & 1, start, end, name(b, "Memcpy"), 7,
                                                     p[4], true, NULL});
        break;
    case 2: knee_builder_launch(b, start, end, 1, p[4]); break;
    case 3: knee_builder_load(b, p[4] % 3 - 1, start, end, false); break;
    case 4:
        knee_builder_step_of(b, &(struct knee_raw_mark){{start, end, p[6], p[4] % 3 - 1},
                                                        (enum knee_step_source)(p[5] % 3),
                                                        p[5] % 2});
        break;
    default: add_call(b, p, start, end); break;
    }
}

static size_t build(const uint8_t *data, size_t size, struct knee_trace *traces)
{
    size_t ranks = 1 + data[0] % RANKS;
    for (size_t r = 0; r < ranks; r++) {
        struct knee_builder *b = knee_builder_new(NULL, NULL);
        if (!b)
            abort();
        traces[r] = (struct knee_trace){.rank = data[0] & 16 ? 0 : (int64_t)r,
                                        .rank_stated = data[0] & 32,
                                        .world_size = data[0] & 64 ? (int64_t)ranks : -1,
                                        .base_ns = data[0] & 128 ? 1700000000000000000 : 0,
                                        .format = data[0] & 8 ? "cpu" : "fuzz"};
        for (size_t at = 1; at + RECORD <= size; at += RECORD)
            if ((data[at] & 3) == r)
                add_record(b, data + at);
        traces[r].file = strdup("fuzz");
        if (knee_builder_finish(b, &traces[r], NULL))
            abort();
        knee_builder_free(b);
    }
    return ranks;
}

struct bytes {
    char *data;
    size_t length, at;
};

static bool keep(void *ctx, const char *data, size_t size)
{
    struct bytes *bytes = ctx;
    char *grown = realloc(bytes->data, bytes->length + size);
    if (!grown)
        return false;
    memcpy(grown + bytes->length, data, size);
    bytes->data = grown;
    bytes->length += size;
    return true;
}

static ptrdiff_t give(void *ctx, void *buffer, size_t size)
{
    struct bytes *bytes = ctx;
    size = size < bytes->length - bytes->at ? size : bytes->length - bytes->at;
    memcpy(buffer, bytes->data + bytes->at, size);
    bytes->at += size;
    return (ptrdiff_t)size;
}

static void write_and_read_back(const struct knee_account *account)
{
    struct bytes bytes = {0};
    struct knee_trace back;
    if (knee_write_perfetto(account, (struct knee_sink){keep, &bytes}, NULL) &&
        !knee_trace_read((struct knee_reader){give, &bytes}, "back", NULL, NULL, &back, NULL)) {
        struct knee_account again;
        if (!knee_account(&back, 1, NULL, &again, NULL))
            knee_account_release(&again);
        knee_trace_release(&back);
    }
    free(bytes.data);
}

static void show(const struct knee_trace *traces, size_t count, struct knee_account *account)
{
    struct knee_diagnosis d;
    struct knee_comparison c;
    struct knee_job job;
    struct knee_text text = {0};
    struct knee_style style = {0};
    knee_job_init(&job);
    knee_expect_of_gpus(account);
    if (knee_diagnose(account, &job, NULL, &d, NULL))
        return;
    struct knee_trace_report report = {
        .traces = traces, .trace_count = count, .account = account, .diagnosis = &d};
    for (int format = KNEE_TEXT; format <= KNEE_MARKDOWN; format++)
        knee_answer_write(&knee_trace_answer, &report, (enum knee_format)format, &style, &text);
    if (!knee_compare((struct knee_judged_run){account, &d}, (struct knee_judged_run){account, &d},
                      NULL, &c, NULL))
        knee_answer_write(&knee_diff_answer,
                          &(struct knee_comparison_report){&c, account, account, &d, &d}, KNEE_TEXT,
                          &style, &text);
    knee_text_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct knee_trace traces[RANKS];
    struct knee_recording told[RANKS];
    struct knee_account account;
    size_t jobs;
    if (size == 0)
        return 0;
    size_t count = build(data, size, traces);
    if (knee_tell_recordings(traces, count, NULL, told, &jobs, NULL) || jobs == 0 || jobs > count)
        abort();
    if (!knee_account(traces, count, NULL, &account, NULL)) {
        if (seldom(data, size, 8))
            write_and_read_back(&account);
        if (seldom(data, size, 64))
            show(traces, count, &account);
        knee_account_release(&account);
    }
    for (size_t i = 0; i < count; i++)
        knee_trace_release(&traces[i]);
    return 0;
}
