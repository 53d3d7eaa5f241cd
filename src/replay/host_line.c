/* SPDX-License-Identifier: MIT */
/*
 * What the host's calls belong to: a sweep over its events in order of time, with a stack of open
 * operations for each thread. The innermost that says something decides.
 */
#include "base/text.h"
#include "replay/replay_graph.h"

#include <string.h>

enum { THREADS = 256, DEPTH = 64 };

/* What an operation says about launches inside it. Prefixes of names; the first that fits. */
static const struct {
    const char *begin;
    int phase; /* enum knee_work_pass; -1: as around it */
    bool comm, fsdp, backward;
} scopes[] = {
    {"autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", KNEE_WORK_EXCHANGE,
     false, false, true},
    {"autograd::engine::evaluate_function", KNEE_WORK_BACKWARD, false, false, true},
    {"torch::distributed::reducer::", KNEE_WORK_EXCHANGE, false, false, false},
    {"torch.distributed.ddp.reducer::", KNEE_WORK_EXCHANGE, false, false, false},
    {"record_param_comms", -1, true, false, false},
    {"nccl:", -1, true, false, false},
    {"gloo:", -1, true, false, false},
    {"FSDP::", KNEE_WORK_EXCHANGE, false, true, false},
    {"Optimizer.step", KNEE_WORK_OPTIMIZER, false, false, false},
    {"Optimizer.", KNEE_WORK_OPTIMIZER, false, false, false},
};

struct open_scope {
    int64_t end_ns;
    uint32_t label;
    unsigned char phase;
    bool comm, backward;
};

struct thread {
    int64_t id;
    size_t depth, launches;
    struct open_scope stack[DEPTH];
};

struct sweep {
    struct knee_host_line *line;
    struct thread *threads;
    size_t count;
};

static struct thread *thread_of(struct sweep *s, int64_t id)
{
    size_t i = 0;
    while (i < s->count && s->threads[i].id != id)
        i++;
    if (i == THREADS)
        return &s->threads[THREADS - 1];
    if (i == s->count)
        s->threads[s->count++].id = id;
    return &s->threads[i];
}

static void open_scope(struct sweep *s, struct thread *t, const struct knee_host_event *event)
{
    const char *name = s->line->trace->names[event->name];
    struct open_scope scope = {.phase = KNEE_WORK_FORWARD};
    if (t->depth)
        scope = t->stack[t->depth - 1];
    scope.end_ns = event->end_ns;
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++) {
        if (strncmp(name, scopes[i].begin, strlen(scopes[i].begin)) != 0)
            continue;
        if (scopes[i].phase >= 0)
            scope.phase = (unsigned char)scopes[i].phase;
        scope.comm = scope.comm || scopes[i].comm;
        scope.backward = scope.backward || scopes[i].backward;
        scope.label = scopes[i].fsdp ? event->name + 1 : scope.label;
        s->line->fsdp = s->line->fsdp || scopes[i].fsdp;
        s->line->phased = s->line->phased || scopes[i].backward;
        break;
    }
    if (t->depth < DEPTH)
        t->stack[t->depth++] = scope;
}

static void note_event(struct sweep *s, size_t row)
{
    const struct knee_host_event *event = &s->line->trace->host_events[row];
    struct thread *t = thread_of(s, event->thread);
    struct knee_host_note *note = &s->line->notes[row];
    while (t->depth && t->stack[t->depth - 1].end_ns <= event->start_ns)
        t->depth--;
    if (event->kind == KNEE_HOST_SCOPE) {
        open_scope(s, t, event);
        return;
    }
    t->launches += event->kind == KNEE_HOST_LAUNCH;
    if (t->depth) {
        const struct open_scope *scope = &t->stack[t->depth - 1];
        *note = (struct knee_host_note){.label = scope->label,
                                        .phase = scope->phase,
                                        .backward = scope->backward,
                                        .in_comm = scope->comm};
    }
}

bool knee_host_line_init(struct knee_host_line *line, const struct knee_trace *trace,
                         const struct knee_alloc *alloc)
{
    size_t size = (trace->host_event_count + 1) * sizeof *line->notes;
    struct sweep s = {.line = line};
    *line = (struct knee_host_line){.trace = trace, .alloc = alloc};
    line->notes = knee_resize(alloc, NULL, size);
    s.threads = knee_resize(alloc, NULL, THREADS * sizeof *s.threads);
    bool good = line->notes && s.threads;
    if (good) {
        memset(line->notes, 0, size);
        memset(s.threads, 0, THREADS * sizeof *s.threads);
    }
    for (size_t i = 0; good && i < trace->host_event_count; i++)
        note_event(&s, i);
    for (size_t i = 0; good && i < trace->host_event_count; i++)
        line->notes[i].worker = thread_of(&s, trace->host_events[i].thread)->launches > 0;
    knee_resize(alloc, s.threads, 0);
    return good;
}

void knee_host_line_release(struct knee_host_line *line)
{
    knee_resize(line->alloc, line->notes, 0);
    line->notes = NULL;
}
