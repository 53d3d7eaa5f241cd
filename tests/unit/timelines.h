/* SPDX-License-Identifier: MIT */
/* Random sets of traces for what must not depend on where a trace was read. */
#ifndef KNEE_TESTS_TIMELINES_H
#define KNEE_TESTS_TIMELINES_H

#include "knee_out.h"
#include "out/answer.h"
#include "say/answers.h"
#include "trace_help.h"

#include "timeline/builder.h"

enum { TRACES_MAX = 7 };

struct timelines {
    struct knee_trace traces[TRACES_MAX];
    size_t count;
};

static inline int upto(uint64_t *seed, int most)
{
    return (int)(chance(seed) * (most + 1));
}

static inline uint32_t timelines_name(struct knee_builder *b, const char *name)
{
    return knee_builder_name(b, name, strlen(name));
}

/* Kernels, copies and loads of one GPU, as chance has it. */
static inline void add_work(struct knee_builder *b, int64_t device, uint64_t *seed)
{
    static const char *const names[] = {"gemm", "softmax", "Memcpy HtoD",
                                        "ncclDevKernel_Broadcast"};
    static _Thread_local uint64_t correlation = 1;
    for (int i = 1 + upto(seed, 40); i > 0; i--) {
        const char *name = names[upto(seed, 20) ? upto(seed, 2) : 3];
        int64_t start = upto(seed, 3000);
        correlation++;
        knee_builder_span(b, &(struct knee_gpu_work){device, start, start + upto(seed, 60),
                                                     timelines_name(b, name), 7, correlation,
                                                     strncmp(name, "Mem", 3) == 0, NULL});
        if (upto(seed, 9))
            knee_builder_launch(b, start - 9, start - upto(seed, 8), 1, correlation);
    }
    for (int i = upto(seed, 4); i > 0; i--) {
        int64_t start = upto(seed, 3000);
        knee_builder_load(b, -1, start, start + upto(seed, 200), false);
    }
}

/* The collectives that all ranks share: the same on every rank but for when it comes. */
static inline void add_calls(struct knee_builder *b, int64_t device, uint64_t *seed,
                             uint64_t shared, int64_t world)
{
    static const char *const names[] = {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)",
                                        "ncclDevKernel_AllGather_RING_LL(x)"};
    bool named = upto(&shared, 2), sequenced = upto(&shared, 1);
    for (int i = upto(&shared, 20), at = 0; i > 0; i--) {
        struct knee_call_facts facts = KNEE_CALL_UNKNOWN;
        int kind = upto(&shared, 1);
        at += 60 + upto(&shared, 100);
        facts.bytes = 1024 << upto(&shared, 3);
        facts.group_size = world;
        facts.sequence = sequenced ? at : -1;
        if (named) {
            facts.group = timelines_name(b, kind ? "0" : "1") + 1;
            facts.description = timelines_name(b, kind ? "default_pg" : "fsdp") + 1;
            facts.members = timelines_name(b, "[0, 1, 2]") + 1;
        }
        if (upto(seed, 60))
            knee_builder_span(b, &(struct knee_gpu_work){device, at + upto(seed, 40),
                                                         at + 40 + upto(&shared, 20),
                                                         timelines_name(b, names[kind]), 20 + kind,
                                                         KNEE_NO_CORRELATION, false, &facts});
    }
}

/* Several files, some of several GPUs, some of none; clocks apart, ranks doubled, ranks missing. */
static inline struct timelines random_timelines(uint64_t *seed)
{
    struct timelines set = {.count = 1 + (size_t)upto(seed, TRACES_MAX - 1)};
    uint64_t shared = (uint64_t)upto(seed, 1000000) + 1;
    bool doubled = !upto(seed, 5), steps = upto(seed, 1);
    int64_t world = (int64_t)set.count + !upto(seed, 4);
    for (size_t i = 0; i < set.count; i++) {
        struct knee_builder *b = knee_builder_new(NULL, NULL);
        int devices = upto(seed, 5) ? 1 : upto(seed, 2);
        for (int d = 0; d < devices; d++) {
            add_work(b, d, seed);
            add_calls(b, d, seed, shared, world);
        }
        for (int s = 0; s < 3 && steps; s++)
            knee_builder_step(b, 1000 * s, 1000 * s + 990, s + 5);
        struct knee_trace *trace = &set.traces[i];
        *trace = (struct knee_trace){.rank = doubled ? 0 : (int64_t)(set.count - i),
                                     .world_size = world,
                                     .base_ns = upto(seed, 3) ? 0 : 1000000 * upto(seed, 9),
                                     .format = "test"};
        trace->losses[KNEE_LOSS_EVENT].count = !upto(seed, 9);
        char name[32];
        snprintf(name, sizeof name, "file%zu", i);
        trace->file = strdup(name);
        if (knee_builder_finish(b, trace, NULL))
            abort();
        knee_builder_free(b);
    }
    return set;
}

static inline void timelines_release(struct timelines *set)
{
    for (size_t i = 0; i < set->count; i++)
        knee_trace_release(&set->traces[i]);
}

/* All that is said of an account, in all formats; free() it. "" and `status` when there is none. */
static inline char *all_words(const struct knee_trace *traces, size_t count,
                              const struct knee_account *account)
{
    struct knee_diagnosis d;
    struct knee_job job;
    struct knee_text text = {0};
    struct knee_style style = {0};
    knee_job_init(&job);
    if (knee_diagnose(account, &job, NULL, &d, NULL))
        abort();
    struct knee_trace_report report = {
        .traces = traces, .trace_count = count, .account = account, .diagnosis = &d};
    for (int format = KNEE_TEXT; format <= KNEE_MARKDOWN; format++)
        knee_answer_write(&knee_trace_answer, &report, (enum knee_format)format, &style, &text);
    return text.data;
}

#endif
