/* SPDX-License-Identifier: MIT */
/*
 * What GPU work belongs to: the pass (forward, backward, optimizer, exchange), the innermost module
 * and the innermost annotation around the host call that launched it. A sweep over the host's
 * events with a stack for each thread. The backward pass runs in a separate thread, outside of all
 * modules; there the autograd sequence number of an operation leads to the module of its forward
 * pass.
 */
#include "timeline/where.h"

#include "base/order.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 256, DEPTH = 64 };
enum pass { FORWARD, BACKWARD, OPTIMIZER, EXCHANGE, INPUT, UNKNOWN, PASSES };
static const char *const pass_names[PASSES] = {"forward",  "backward", "optimizer",
                                               "exchange", "input",    "not known"};

static const struct {
    const char *begin;
    enum pass pass;
} passes[] = {
    {"autograd::engine::evaluate_function", BACKWARD},
    {"torch::distributed::reducer::", EXCHANGE},
    {"torch.distributed.ddp.reducer::", EXCHANGE},
    {"record_param_comms", EXCHANGE},
    {"nccl:", EXCHANGE},
    {"FSDP::", EXCHANGE},
    {"Optimizer.", OPTIMIZER},
    {"enumerate(DataLoader)", INPUT},
};

/* What holds at a moment on a thread, and, per launch, at its call. Names are rows + 1; 0: none. */
struct scope {
    int64_t end_ns;
    uint32_t module, range, operation;
    unsigned char pass;
};

struct thread {
    int64_t id;
    size_t depth;
    struct scope stack[DEPTH];
};

/* The module of a forward operation by autograd's number. */
struct origin {
    int64_t sequence;
    uint32_t module;
};

struct sweep {
    const struct knee_trace *trace;
    struct thread *threads;
    size_t count;
    struct origin *origins;
    size_t origin_count;
};

static struct thread *thread_of(struct sweep *s, int64_t id)
{
    size_t i = 0;
    while (i < s->count && s->threads[i].id != id)
        i++;
    if (i == THREADS)
        return &s->threads[THREADS - 1];
    if (i == s->count) {
        s->threads[s->count].depth = 0;
        s->threads[s->count++].id = id;
    }
    return &s->threads[i];
}

static struct scope current(struct thread *t, int64_t now_ns)
{
    while (t->depth && t->stack[t->depth - 1].end_ns <= now_ns)
        t->depth--;
    return t->depth ? t->stack[t->depth - 1] : (struct scope){.pass = FORWARD};
}

KNEE_BY(by_sequence, struct origin, sequence)

static uint32_t origin_of(const struct sweep *s, int64_t sequence)
{
    struct origin key = {.sequence = sequence};
    const struct origin *found =
        s->origin_count ? bsearch(&key, s->origins, s->origin_count, sizeof key, by_sequence)
                        : NULL;
    return found ? found->module : 0;
}

static void open_scope(struct sweep *s, struct thread *t, const struct knee_host_event *event,
                       struct scope scope)
{
    const char *name = s->trace->names[event->name];
    scope.end_ns = event->end_ns;
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        if (strncmp(name, passes[i].begin, strlen(passes[i].begin)) == 0) {
            scope.pass = (unsigned char)passes[i].pass;
            break;
        }
    if (event->kind == KNEE_HOST_OPERATION)
        scope.operation = event->name + 1;
    if (event->kind == KNEE_HOST_MODULE)
        scope.module = event->name + 1;
    if (event->kind == KNEE_HOST_RANGE || strncmp(name, "Optimizer.", 10) == 0)
        scope.range = event->name + 1;
    if (scope.pass == BACKWARD && event->sequence >= 0 && !scope.module)
        scope.module = origin_of(s, event->sequence);
    if (t->depth < DEPTH)
        t->stack[t->depth++] = scope;
}

static bool is_scope(const struct knee_host_event *event)
{
    return event->kind >= KNEE_HOST_SCOPE;
}

/* First the modules of forward operations, in order; then everything, with them. */
static void sweep_over(struct sweep *s, struct scope *at, bool origins)
{
    s->count = 0;
    for (size_t i = 0; i < s->trace->host_event_count; i++) {
        const struct knee_host_event *event = &s->trace->host_events[i];
        struct thread *t = thread_of(s, event->thread);
        struct scope scope = current(t, event->start_ns);
        if (is_scope(event))
            open_scope(s, t, event, scope);
        else if (!origins)
            at[i] = scope;
        if (origins && event->sequence >= 0 && scope.module && scope.pass == FORWARD)
            s->origins[s->origin_count++] = (struct origin){event->sequence, scope.module};
    }
    if (origins && s->origin_count)
        qsort(s->origins, s->origin_count, sizeof *s->origins, by_sequence);
}

/* What every call of the host belongs to; NULL: no memory. */
static struct scope *scopes_of(const struct knee_trace *trace, const struct knee_alloc *alloc)
{
    size_t count = trace->host_event_count + 1;
    struct sweep s = {.trace = trace};
    struct scope *at = knee_zeroed(alloc, count * sizeof *at);
    s.threads = knee_resize(alloc, NULL, THREADS * sizeof *s.threads);
    s.origins = knee_resize(alloc, NULL, count * sizeof *s.origins);
    bool good = at && s.threads && s.origins;
    if (good) {
        sweep_over(&s, at, true);
        sweep_over(&s, at, false);
    }
    knee_resize(alloc, s.threads, 0);
    knee_resize(alloc, s.origins, 0);
    if (!good)
        knee_resize(alloc, at, 0);
    return good ? at : NULL;
}

uint32_t *knee_operations_of(const struct knee_trace *trace, const struct knee_alloc *alloc)
{
    struct scope *at = scopes_of(trace, alloc);
    uint32_t *operations =
        at ? knee_resize(alloc, NULL, (trace->host_event_count + 1) * sizeof *operations) : NULL;
    for (size_t i = 0; operations && i < trace->host_event_count; i++)
        operations[i] = at[i].operation;
    knee_resize(alloc, at, 0);
    return operations;
}

/* ---- Sums by place ---- */

static void add_own(struct knee_place *place, const int64_t *own, double each)
{
    for (int label = 0; label < KNEE_LABELS; label++) {
        place->label_s[label] += each * 1e-9 * (double)own[label];
        place->total_s += each * 1e-9 * (double)own[label];
    }
}

static int compare_names(const struct knee_place *a, const struct knee_place *b)
{
    size_t m = a->class_length ? a->class_length : strlen(a->name);
    size_t n = b->class_length ? b->class_length : strlen(b->name);
    int differs = memcmp(a->name, b->name, m < n ? m : n);
    return differs ? differs : (m > n) - (m < n);
}

KNEE_SORT(most_first, struct knee_place, KNEE_THEN(KNEE_DOWN(total_s), compare_names(a, b)))

KNEE_SORT(by_name, struct knee_place, compare_names(a, b))

/* Rows of the same name become one; then most first. */
static size_t merge(struct knee_place *places, size_t count)
{
    size_t kept = 0;
    if (count)
        qsort(places, count, sizeof *places, by_name);
    for (size_t i = 0; i < count; i++) {
        if (kept && compare_names(&places[kept - 1], &places[i]) == 0) {
            places[kept - 1].members += places[i].members;
            for (int label = 0; label < KNEE_LABELS; label++)
                places[kept - 1].label_s[label] += places[i].label_s[label];
            places[kept - 1].total_s += places[i].total_s;
        } else if (places[i].total_s > 0) {
            places[kept++] = places[i];
        }
    }
    if (kept)
        qsort(places, kept, sizeof *places, most_first);
    return kept;
}

/* Room for every name of a trace and one for "none", behind what is there. */
static struct knee_place *more(struct knee_where *out, int kind, size_t count)
{
    size_t have = out->place_count[kind];
    struct knee_place *places =
        knee_resize(out->alloc, out->places[kind], (have + count) * sizeof *places);
    if (!places)
        return NULL;
    out->places[kind] = places;
    memset(places + have, 0, count * sizeof *places);
    out->place_count[kind] = have + count;
    return places + have;
}

static bool add_rank(const struct knee_account *account, size_t r, const knee_own_row *own,
                     struct knee_where *out)
{
    const struct knee_rank_account *rank = &account->ranks[r];
    const struct knee_trace *trace = rank->trace;
    size_t names = trace->name_count + 1;
    double each = 1 / ((double)account->rank_count * knee_complete_steps(account, r));
    struct scope *at = scopes_of(trace, out->alloc);
    struct knee_place *pass = at ? more(out, KNEE_PLACE_PASS, PASSES) : NULL;
    struct knee_place *module = pass ? more(out, KNEE_PLACE_MODULE, names) : NULL;
    struct knee_place *range = module ? more(out, KNEE_PLACE_RANGE, names) : NULL;
    for (int i = 0; i < PASSES && range; i++)
        pass[i].name = pass_names[i];
    for (size_t i = 0; i < names && range; i++)
        module[i].name = range[i].name = i ? trace->names[i - 1] : "(none)";
    for (size_t i = 0; i < rank->source->span_count && range; i++) {
        const struct knee_span *span = &rank->source->spans[i];
        if (!knee_in_complete_step(account, r, span->start_ns))
            continue;
        struct scope scope = {.pass = UNKNOWN};
        if (span->launch)
            scope = at[span->launch - 1];
        add_own(&pass[scope.pass], own[i], each);
        add_own(&module[scope.module], own[i], each);
        add_own(&range[scope.range], own[i], each);
    }
    knee_resize(out->alloc, at, 0);
    return range != NULL;
}

/* Models have dozens of layers: the modules of a class as one row. "Linear_12" is a Linear. */
static bool sum_classes(struct knee_where *out)
{
    size_t count = out->place_count[KNEE_PLACE_MODULE];
    struct knee_place *classes = more(out, KNEE_PLACE_CLASS, count + 1);
    for (size_t i = 0; i < count && classes; i++) {
        classes[i] = out->places[KNEE_PLACE_MODULE][i];
        size_t length = strlen(classes[i].name), digits = length;
        while (digits > 0 && classes[i].name[digits - 1] >= '0' &&
               classes[i].name[digits - 1] <= '9')
            digits--;
        bool numbered = digits > 1 && digits < length && classes[i].name[digits - 1] == '_';
        classes[i].class_length = numbered ? digits - 1 : length;
        classes[i].members = 1;
    }
    out->place_count[KNEE_PLACE_CLASS] = classes ? merge(classes, count) : 0;
    return classes != NULL;
}

bool knee_find_places(const struct knee_account *account, knee_own_row *const *own,
                      struct knee_where *out)
{
    bool good = true;
    for (size_t r = 0; r < account->rank_count && good; r++) {
        good = add_rank(account, r, own[r], out);
        for (int kind = 0; kind < KNEE_PLACE_CLASS && good; kind++)
            out->place_count[kind] = merge(out->places[kind], out->place_count[kind]);
    }
    return good && sum_classes(out);
}
