/* SPDX-License-Identifier: MIT */
/* A log from any bytes: read, fit what can be fitted, check, print. */
#include "knee_out.h"
#include "knee_read.h"
#include "out/answer.h"
#include "say/answers.h"
#include "seldom.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Samples are positive, finite and ascending; nothing is counted twice. */
static void look_at(const struct knee_log *log)
{
    for (size_t i = 0; i < log->sample_count; i++) {
        const struct knee_sample *s = &log->samples[i];
        if (!(s->bytes > 0) || !(s->time_s > 0) || !isfinite(s->bytes) || !isfinite(s->time_s))
            abort();
        if (i > 0 && s->bytes < log->samples[i - 1].bytes)
            abort();
    }
    if (log->refusal_count > log->refused || log->sample_count + log->refused > log->lines + 64)
        abort();
    for (size_t i = 0; i < log->refusal_count; i++)
        if (!log->refusals[i].reason || !log->refusals[i].reason[0])
            abort();
}

static void check(const struct knee_logs *logs)
{
    struct knee_check result;
    struct knee_err err;
    struct knee_text text = {0};
    struct knee_style style = {0};
    size_t rows = 0;
    for (size_t i = 0; i < logs->count; i++)
        rows += logs->logs[i].sample_count;
    if (rows > 400 || logs->count > 8) /* longer only costs time */
        return;
    if (knee_check_logs(&(struct knee_log_view){logs->logs, logs->count, NULL}, NULL, NULL, &result,
                        &err))
        return;
    for (size_t i = 0; i < result.cluster_count; i++)
        for (size_t n = 0; n < result.clusters[i].record.curve_count; n++) {
            const struct knee_curve *curve = &result.clusters[i].record.curves[n];
            for (size_t k = 1; k < curve->knots; k++)
                if (!(curve->bytes[k] > curve->bytes[k - 1]) ||
                    curve->time_s[k] < curve->time_s[k - 1])
                    abort();
        }
    for (int format = KNEE_TEXT; format <= KNEE_MARKDOWN; format++)
        knee_answer_write(&knee_fit_answer, &result, (enum knee_format)format, &style, &text);
    knee_text_release(&text);
    knee_check_release(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct knee_logs logs = {0};
    struct knee_err err = {0};
    if (knee_logs_read(&logs, (const char *)data, size, "fuzz", NULL, &err)) {
        if (logs.count || !err.what[0])
            abort();
        knee_logs_release(&logs);
        return 0;
    }
    for (size_t i = 0; i < logs.count; i++)
        look_at(&logs.logs[i]);
    if (seldom(data, size, 64))
        check(&logs);
    knee_logs_release(&logs);
    return 0;
}
