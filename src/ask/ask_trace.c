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

const char *const knee_ask_trace_job_keys[] = {
    "params", "bytes-per-param", "global-batch", "local-batch",    "gpu",       "cluster", "price",
    "power",  "idle-power",      "steps",        "critical-batch", "tolerance", NULL};

/* ---- The traces that are meant ---- */

/* A word is a trace's name, or the folder it is in. */
static bool names(const char *word, const char *file)
{
    size_t length = strlen(word);
    while (length > 1 && word[length - 1] == '/')
        length--;
    return strncmp(word, file, length) == 0 && (file[length] == '\0' || file[length] == '/');
}

static knee_status pick(const struct knee_ask_pushed *pushed, const char *word,
                        struct knee_ask_told *told, struct knee_err *err)
{
    size_t before = told->count;
    for (size_t t = 0; t < pushed->count; t++)
        if (!word || names(word, pushed->traces[t].file))
            told->traces[told->count++] = pushed->traces[t];
    if (told->count > before)
        return KNEE_OK;
    knee_fail(err, KNEE_INPUT, word ? word : "", "no trace was pushed%s",
              word ? " under this name" : "");
    knee_hint(err, "push its bytes before the question");
    return KNEE_INPUT;
}

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
    const struct knee_ask_pushed *pushed = knee_ask_pushed_of(ask);
    size_t rounds = word_count ? word_count : 1; /* a trace may be named more than once */
    memset(out, 0, sizeof *out);
    out->alloc = pushed->alloc;
    out->traces = knee_resize(out->alloc, NULL, (pushed->count * rounds + 1) * sizeof *out->traces);
    knee_status status = KNEE_OK;
    if (!out->traces)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    for (size_t w = 0; w < rounds && !status; w++)
        status = pick(pushed, word_count ? words[w] : NULL, out, err);
    if (!status)
        status = diagnose(out, job, expect, err);
    if (status)
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
    .only = {NULL, knee_ask_trace_job_keys},
    .most_words = ASK_WORDS,
    .operands = "DIR|FILE...",
    .size = sizeof(struct trace_room),
    .init = init,
    .answer = answer,
};
