/* SPDX-License-Identifier: MIT */
/* trace: what the traces that were pushed say. */
#include "ask/ask_trace.h"

#include "base/keys.h"
#include "base/text.h"

#include <string.h>

struct trace_options {
    const char *perfetto;
    unsigned char source[KNEE_KEYS_MAX];
};

static const struct knee_key rows[] = {
    {.name = "perfetto",
     .kind = KNEE_KEY_WORD,
     .offset = offsetof(struct trace_options, perfetto),
     .group = "Trace",
     .otherwise = "none",
     .help = "write all ranks, aligned and labelled, as one trace for ui.perfetto.dev"},
};

static const struct knee_keys trace_keys = KNEE_KEY_TABLE(rows, struct trace_options);

/* What is worth saying about a job beside its trace. */
static const char *const job_keys[] = {
    "params", "bytes-per-param", "global-batch", "local-batch",    "gpu",       "cluster", "price",
    "power",  "idle-power",      "steps",        "critical-batch", "tolerance", NULL};

static knee_status diagnose(struct knee_ask_told *told, const struct knee_job *job, bool expect,
                            struct knee_err *err)
{
    knee_status status = knee_account(told->traces, told->count, told->alloc, &told->account, err);
    if (status)
        return status;
    if (expect && job->hw.cluster.level_count > 0)
        knee_expect_collectives(&told->account, &job->hw.cluster);
    else if (expect)
        knee_expect_of_gpus(&told->account);
    return knee_diagnose(&told->account, job, told->alloc, &told->diagnosis, err);
}

knee_status knee_ask_tell(struct knee_ask *ask, const char *const *words, size_t word_count,
                          const struct knee_job *job, bool expect, struct knee_ask_told *out,
                          struct knee_err *err)
{
    knee_status status = knee_ask_pick(ask, words, word_count, out, err);
    if (!status && (status = diagnose(out, job, expect, err)))
        knee_ask_told_release(out);
    return status;
}

/* ---- The answer ---- */

static knee_status answer(struct knee_ask_question *q, struct knee_err *err)
{
    const struct trace_options *options = q->objects[0];
    struct knee_ask_told *told = &knee_ask_pushed_of(q->ask)->last;
    knee_ask_told_release(told);
    knee_status status =
        knee_ask_tell(q->ask, q->words, q->word_count, q->objects[1], true, told, err);
    if (!status && options->perfetto)
        status = knee_ask_perfetto(q->ask, options->perfetto, &told->account, err);
    if (status)
        return status;
    struct knee_trace_report report = {told->traces, told->count, &told->account, &told->diagnosis};
    ASK_WRITE(q, knee_write_trace, &report);
    return KNEE_OK;
}

struct trace_room {
    struct trace_options options;
    struct knee_job job;
};

static void init(void *room, void **objects)
{
    struct trace_room *all = room;
    knee_job_init(&all->job);
    objects[0] = &all->options;
    objects[1] = &all->job;
}

const struct knee_ask_command knee_ask_trace = {
    .name = "trace",
    .keys = {&trace_keys, &knee_job_keys},
    .only = {NULL, job_keys},
    .most_words = ASK_WORDS,
    .operands = "DIR|FILE...",
    .size = sizeof(struct trace_room),
    .init = init,
    .answer = answer,
};
