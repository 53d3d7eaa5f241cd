/* SPDX-License-Identifier: MIT */
/* A trace from any bytes, plain or gzip: read, accounted, diagnosed, printed. Labels sum up or it
 * fails. */
#include "knee_out.h"
#include "out/answer.h"
#include "say/answers.h"
#include "seldom.h"
#include "timeline/where.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct source {
    const uint8_t *data;
    size_t length, at, piece;
};

static ptrdiff_t source_read(void *ctx, void *buffer, size_t size)
{
    struct source *s = ctx;
    size_t left = s->length - s->at;
    size = size < left ? size : left;
    size = size < s->piece ? size : s->piece;
    memcpy(buffer, s->data + s->at, size);
    s->at += size;
    return (ptrdiff_t)size;
}

static bool swallow(void *ctx, const char *data, size_t size)
{
    (void)ctx, (void)data, (void)size;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool detail = size & 4;
    struct knee_trace_options options = {
        .cpu = size && (data[0] & 1) && !detail, .host = detail, .detail = detail};
    struct source source = {data, size, 0, size % 2 ? 64 : size + 1};
    struct knee_trace trace;
    struct knee_account account;
    struct knee_diagnosis d;
    struct knee_job job;
    struct knee_err err;
    knee_job_init(&job);
    if (knee_trace_read((struct knee_reader){source_read, &source}, "fuzz", &options, NULL, &trace,
                        &err))
        return 0;
    knee_status status = knee_account(&trace, 1, NULL, &account, &err);
    if (status == KNEE_SYSTEM)
        abort(); /* labels do not sum up, or memory went */
    if (!status) {
        if (seldom(data, size, 16) && !knee_diagnose(&account, &job, NULL, &d, &err)) {
            struct knee_where where;
            if (knee_find_where(&account, NULL, &where, &err))
                abort(); /* memory went */
            struct knee_trace_report report = {.traces = &trace,
                                               .trace_count = 1,
                                               .account = &account,
                                               .diagnosis = &d,
                                               .where = detail ? &where : NULL};
            struct knee_style style = {0};
            struct knee_text text = {0};
            for (int format = KNEE_TEXT; format <= KNEE_MARKDOWN; format++)
                knee_answer_write(&knee_trace_answer, &report, (enum knee_format)format, &style,
                                  &text);
            knee_text_release(&text);
            knee_where_release(&where);
        }
        if (seldom(data, size, 4))
            knee_write_perfetto(&account, (struct knee_sink){swallow, NULL}, NULL);
        knee_account_release(&account);
    }
    knee_trace_release(&trace);
    return 0;
}
