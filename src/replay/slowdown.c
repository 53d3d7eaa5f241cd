/* SPDX-License-Identifier: MIT */
/*
 * Who slows a pipeline down, from a log of its operations (Lin et al., OSDI 2025). Each recorded
 * step becomes tasks: computation in its order; sends after their computation, receives before
 * theirs and after the computation before that; parameters before the first forward pass of their
 * chunk; after the last backward pass norms, embeddings, gradients, clipping and optimizer in their
 * order. What several ranks do together ends together. Run with the times as they were: the step
 * without launch delays. With the mean or median of its kind for every operation: the even step.
 * With one part of the job as it was and the rest even: what that part costs.
 */
#include "base/error.h"
#include "base/order.h"
#include "base/sort.h"
#include "base/text.h"
#include "knee_replay.h"
#include "predict/simulate/tasks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REPLAY_OFF  0.02 /* what a replayed step of such logs is off, at most */
#define EVEN        0.05 /* a slowdown that is none */
#define MOST_OF_IT  0.5  /* of a slowdown, to be its cause */
#define UNLIKE      0.15 /* variation of micro-batches that are not of one length */
#define ALIKE       0.7  /* correlation of forward and backward passes of one micro-batch */
#define SLOW_WORKER 1.1  /* against its stage */
#define WORST_SHARE 0.03 /* of workers */

enum stream {
    COMPUTE,
    FORWARD_SEND,
    FORWARD_RECV,
    BACKWARD_SEND,
    BACKWARD_RECV,
    PARAMS,
    TAIL,
    APART,
    STREAMS
};

static const struct {
    unsigned char stream;
    bool wire;
} traits[KNEE_LOGGED_KINDS] = {
    [KNEE_LOGGED_FORWARD] = {COMPUTE, false},
    [KNEE_LOGGED_BACKWARD] = {COMPUTE, false},
    [KNEE_LOGGED_FORWARD_SEND] = {FORWARD_SEND, true},
    [KNEE_LOGGED_FORWARD_RECV] = {FORWARD_RECV, true},
    [KNEE_LOGGED_BACKWARD_SEND] = {BACKWARD_SEND, true},
    [KNEE_LOGGED_BACKWARD_RECV] = {BACKWARD_RECV, true},
    [KNEE_LOGGED_PARAMS] = {PARAMS, true},
    [KNEE_LOGGED_GRADS] = {TAIL, true},
    [KNEE_LOGGED_NORMS] = {TAIL, true},
    [KNEE_LOGGED_EMBEDDING] = {TAIL, true},
    [KNEE_LOGGED_SEPARATE] = {TAIL, true},
    [KNEE_LOGGED_CLIP] = {TAIL, true},
    [KNEE_LOGGED_OPTIMIZER] = {TAIL, false},
    [KNEE_LOGGED_COLLECT] = {APART, false},
};

struct step {
    const struct knee_logged_op *ops;
    struct knee_tasks tasks;
    int32_t *waits; /* the engine counts a task's down */
    double *own_ns; /* of each operation: computation, or from when all had come */
};

struct analysis {
    const struct knee_op_log *log;
    struct step *steps;
    size_t step_count;
    double even_ns[KNEE_LOGGED_KINDS];
    bool failed; /* memory ran out */
    const struct knee_alloc *alloc;
};

static int32_t rank_of(const struct knee_op_log *log, const struct knee_logged_op *op)
{
    return (op->replica * log->stages + op->stage) * log->parts + op->part;
}

/* ---- Tasks of a step ---- */

static void add_edge(struct step *s, int32_t from, int32_t to)
{
    struct knee_tasks *t = &s->tasks;
    if (from < 0 || to < 0 || t->edge_count == t->edge_capacity)
        return;
    t->edge[t->edge_count] = (struct knee_edge){.to = to, .next = t->task[from].next_edge};
    t->task[from].next_edge = (int32_t)t->edge_count++;
    t->task[to].waits++;
}

/* Who does an operation together: the same number for all of them; 0: it is done alone. */
static uint64_t together(const struct knee_op_log *log, const struct knee_logged_op *op)
{
    int32_t stages = log->stages, replica = op->replica, stage = op->stage, part = op->part;
    int kind = (int)op->kind;
    switch (op->kind) {
    case KNEE_LOGGED_PARAMS:
    case KNEE_LOGGED_GRADS:
    case KNEE_LOGGED_SEPARATE: replica = -1; break;
    case KNEE_LOGGED_NORMS: part = -1; break;
    case KNEE_LOGGED_EMBEDDING: stage = -1; break;
    case KNEE_LOGGED_CLIP: replica = stage = part = -1; break;
    case KNEE_LOGGED_FORWARD_RECV:
        stage = (stage + stages - 1) % stages;
        kind = KNEE_LOGGED_FORWARD_SEND;
        break;
    case KNEE_LOGGED_BACKWARD_SEND: /* goes to the stage before */
        stage = (stage + stages - 1) % stages;
        kind = KNEE_LOGGED_BACKWARD_RECV;
        break;
    case KNEE_LOGGED_FORWARD_SEND:
    case KNEE_LOGGED_BACKWARD_RECV: break;
    default: return 0;
    }
    const uint64_t parts[] = {(uint64_t)kind + 1, (uint64_t)(replica + 1), (uint64_t)(stage + 1),
                              (uint64_t)(part + 1), (uint64_t)(op->sequence + 1)};
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        hash = (hash ^ parts[i]) * 0x9fb21c651e98df25u;
        hash ^= hash >> 29;
    }
    return hash | 1;
}

/* Members of one meet stand together in `keys`; what is theirs begins when the last has come. */
static void meet(struct step *s, const struct knee_sort_key *keys, size_t from, size_t to)
{
    struct knee_tasks *t = &s->tasks;
    int64_t last = INT64_MIN;
    t->meets[t->meet_count] = (struct knee_meet){.first = -1, .count = (int32_t)(to - from)};
    for (size_t i = from; i < to; i++) {
        struct knee_task *task = &t->task[keys[i].row];
        int64_t start = s->ops[keys[i].row].start_ns;
        last = start > last ? start : last;
        task->meet = (uint32_t)t->meet_count + 1;
        task->next_member = t->meets[t->meet_count].first;
        t->meets[t->meet_count].first = (int32_t)keys[i].row;
    }
    for (size_t i = from; i < to; i++) {
        int64_t own = s->ops[keys[i].row].end_ns - last;
        s->own_ns[keys[i].row] = own > 0 ? (double)own : 0;
    }
    t->meet_count++;
}

static bool join_meets(const struct analysis *a, struct step *s)
{
    size_t count = 0;
    struct knee_sort_key *keys =
        knee_resize(a->alloc, NULL, 2 * (s->tasks.count + 1) * sizeof *keys);
    if (!keys)
        return false;
    for (size_t i = 0; i < s->tasks.count; i++) {
        uint64_t key = together(a->log, &s->ops[i]);
        s->own_ns[i] = (double)(s->ops[i].end_ns - s->ops[i].start_ns);
        if (key)
            keys[count++] = (struct knee_sort_key){key, i};
    }
    knee_sort(keys, keys + count, count);
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from; to < count && keys[to].key == keys[from].key;)
            to++;
        meet(s, keys, from, to);
    }
    knee_resize(a->alloc, keys, 0);
    return true;
}

/* ---- Edges of one rank ---- */

/* The rank's operations of a step, in order of their starts. */
struct rank_ops {
    int32_t *rows;
    size_t count;
};

static bool computes(const struct step *s, int32_t row, enum knee_logged_kind kind)
{
    return s->ops[row].kind == kind;
}

/* The computation that a message belongs to: of its number, where each has one message; else the
 * last that had ended before a send, the first that had not begun before a receive. */
static int32_t compute_of(const struct step *s, const struct rank_ops *ops, size_t at,
                          enum knee_logged_kind pass, bool numbered, bool sends)
{
    const struct knee_logged_op *op = &s->ops[ops->rows[at]];
    int32_t found = -1;
    for (size_t i = 0; i < ops->count; i++) {
        const struct knee_logged_op *other = &s->ops[ops->rows[i]];
        if (!computes(s, ops->rows[i], pass))
            continue;
        if (numbered && other->sequence == op->sequence)
            return ops->rows[i];
        if (!numbered && sends && other->end_ns <= op->start_ns + 1000000)
            found = ops->rows[i];
        if (!numbered && !sends && found < 0 && other->start_ns >= op->end_ns - 1000000)
            found = ops->rows[i];
    }
    return found;
}

static size_t count_of(const struct step *s, const struct rank_ops *ops, enum knee_logged_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < ops->count; i++)
        count += s->ops[ops->rows[i]].kind == kind;
    return count;
}

/* The computation before one in the rank's order. */
static int32_t compute_before(const struct step *s, const struct rank_ops *ops, int32_t row)
{
    int32_t before = -1;
    for (size_t i = 0; i < ops->count && ops->rows[i] != row; i++)
        if (computes(s, ops->rows[i], KNEE_LOGGED_FORWARD) ||
            computes(s, ops->rows[i], KNEE_LOGGED_BACKWARD))
            before = ops->rows[i];
    return before;
}

static void link_message(struct step *s, const struct rank_ops *ops, size_t at)
{
    enum knee_logged_kind kind = s->ops[ops->rows[at]].kind;
    bool forward = kind == KNEE_LOGGED_FORWARD_SEND || kind == KNEE_LOGGED_FORWARD_RECV;
    bool sends = kind == KNEE_LOGGED_FORWARD_SEND || kind == KNEE_LOGGED_BACKWARD_SEND;
    enum knee_logged_kind pass = forward ? KNEE_LOGGED_FORWARD : KNEE_LOGGED_BACKWARD;
    bool numbered = count_of(s, ops, kind) == count_of(s, ops, pass);
    int32_t compute = compute_of(s, ops, at, pass, numbered, sends);
    if (compute < 0)
        return;
    if (sends) {
        add_edge(s, compute, ops->rows[at]);
    } else {
        add_edge(s, ops->rows[at], compute);
        add_edge(s, compute_before(s, ops, compute), ops->rows[at]);
    }
}

static void link_rank(struct step *s, const struct rank_ops *ops)
{
    int32_t last = -1, tail = -1;
    for (size_t i = 0; i < ops->count; i++) {
        int32_t row = ops->rows[i];
        unsigned char stream = traits[s->ops[row].kind].stream;
        if (stream >= FORWARD_SEND && stream <= BACKWARD_RECV)
            link_message(s, ops, i);
        last = stream == COMPUTE ? row : last;
        tail = stream == TAIL && tail < 0 ? row : tail;
        if (stream != PARAMS)
            continue;
        size_t f = 0;
        while (f < ops->count && !(computes(s, ops->rows[f], KNEE_LOGGED_FORWARD) &&
                                   s->ops[ops->rows[f]].chunk == s->ops[row].chunk))
            f++;
        if (f < ops->count)
            add_edge(s, row, ops->rows[f]);
    }
    add_edge(s, last, tail);
}

static bool link_ranks(const struct analysis *a, struct step *s)
{
    size_t count = s->tasks.count;
    struct knee_sort_key *keys = knee_resize(a->alloc, NULL, 2 * (count + 1) * sizeof *keys);
    int32_t *rows = knee_resize(a->alloc, NULL, (count + 1) * sizeof *rows);
    bool good = keys && rows;
    for (size_t i = 0; good && i < count; i++)
        keys[i] = (struct knee_sort_key){(uint64_t)rank_of(a->log, &s->ops[i]), i};
    if (good)
        knee_sort(keys, keys + count, count);
    for (size_t i = 0; good && i < count; i++)
        rows[i] = (int32_t)keys[i].row;
    for (size_t from = 0, to; good && from < count; from = to) {
        for (to = from; to < count && keys[to].key == keys[from].key;)
            to++;
        struct rank_ops ops = {rows + from, to - from};
        link_rank(s, &ops);
    }
    knee_resize(a->alloc, keys, 0);
    knee_resize(a->alloc, rows, 0);
    return good;
}

static bool make_step(const struct analysis *a, size_t from, size_t to, struct step *s)
{
    struct knee_tasks *t = &s->tasks;
    size_t count = to - from;
    s->ops = a->log->ops + from;
    *t = (struct knee_tasks){.count = count,
                             .stages = a->log->replicas * a->log->stages * a->log->parts,
                             .streams = STREAMS,
                             .apart = true,
                             .alloc = a->alloc,
                             .edge_capacity = 3 * count + 1};
    t->task = knee_resize(a->alloc, NULL, (count + 1) * sizeof *t->task);
    t->edge = knee_resize(a->alloc, NULL, t->edge_capacity * sizeof *t->edge);
    t->meets = knee_resize(a->alloc, NULL, (count + 1) * sizeof *t->meets);
    s->waits = knee_resize(a->alloc, NULL, (count + 1) * sizeof *s->waits);
    s->own_ns = knee_resize(a->alloc, NULL, (count + 1) * sizeof *s->own_ns);
    if (!t->task || !t->edge || !t->meets || !s->waits || !s->own_ns)
        return false;
    for (size_t i = 0; i < count; i++)
        t->task[i] = (struct knee_task){.stage = rank_of(a->log, &s->ops[i]),
                                        .stream = traits[s->ops[i].kind].stream,
                                        .next_edge = -1,
                                        .next_member = -1,
                                        .called_after = -1,
                                        .received_by = -1,
                                        .lane = KNEE_LANE_OWN,
                                        .kind = KNEE_TASK_COPY,
                                        .name = "",
                                        .axis = ""};
    if (!join_meets(a, s) || !link_ranks(a, s))
        return false;
    for (size_t i = 0; i < count; i++)
        s->waits[i] = t->task[i].waits;
    return true;
}

/* ---- Runs ---- */

/* Which operations take the time that they took; the others take that of their kind. */
struct part {
    int kind, stage, replica; /* -1: any */
    const bool *workers;      /* per rank; NULL: any */
    bool even;                /* none at all */
};

static bool in_part(const struct analysis *a, const struct part *part,
                    const struct knee_logged_op *op)
{
    return !part->even && (part->kind < 0 || (int)op->kind == part->kind) &&
           (part->stage < 0 || op->stage == part->stage) &&
           (part->replica < 0 || op->replica == part->replica) &&
           (!part->workers || part->workers[rank_of(a->log, op)]);
}

static const struct part as_it_was = {-1, -1, -1, NULL, false}, even = {-1, -1, -1, NULL, true};

/* The mean step; NaN when a step cannot be run. */
static double run(struct analysis *a, const struct part *part)
{
    double sum = 0;
    for (size_t k = 0; k < a->step_count; k++) {
        struct step *s = &a->steps[k];
        int64_t end_ns;
        for (size_t i = 0; i < s->tasks.count; i++) {
            bool own = in_part(a, part, &s->ops[i]);
            s->tasks.task[i].work_ns = rint(own ? s->own_ns[i] : a->even_ns[s->ops[i].kind]);
            s->tasks.task[i].waits = s->waits[i];
        }
        if (!knee_tasks_run(&s->tasks, &end_ns)) {
            a->failed = a->failed || s->tasks.failed;
            return NAN;
        }
        sum += 1e-9 * (double)end_ns;
    }
    return sum / (double)a->step_count;
}

/* The mean of computation, the median of communication. */
static bool find_even(struct analysis *a)
{
    double *values = knee_resize(a->alloc, NULL, (a->log->count + 1) * sizeof *values);
    for (int kind = 0; values && kind < KNEE_LOGGED_KINDS; kind++) {
        size_t count = 0;
        double sum = 0;
        for (size_t k = 0; k < a->step_count; k++)
            for (size_t i = 0; i < a->steps[k].tasks.count; i++)
                if ((int)a->steps[k].ops[i].kind == kind) {
                    values[count++] = a->steps[k].own_ns[i];
                    sum += a->steps[k].own_ns[i];
                }
        if (count && traits[kind].wire)
            qsort(values, count, sizeof *values, knee_ascending);
        a->even_ns[kind] = !count               ? NAN
                           : !traits[kind].wire ? sum / (double)count
                           : count % 2          ? values[count / 2]
                                                : (values[count / 2] + values[count / 2 - 1]) / 2;
    }
    knee_resize(a->alloc, values, 0);
    return values != NULL;
}

/* ---- What it comes from ---- */

static double mean_of(double sum, double count)
{
    return count > 0 ? sum / count : NAN;
}

/* How much micro-batches of one stage differ in their backward pass, and how alike forward and
 * backward passes of one micro-batch are in that: long sequences are long in both. */
static void compare_batches(const struct analysis *a, struct knee_slowdown *out)
{
    double n = 0, deviation = 0, xy = 0, xx = 0, yy = 0, pairs = 0;
    for (int32_t stage = 0; stage < a->log->stages; stage++) {
        double sums[2] = {0}, counts[2] = {0};
        for (size_t i = 0; i < a->log->count; i++) {
            const struct knee_logged_op *op = &a->log->ops[i];
            if (op->stage != stage || op->kind > KNEE_LOGGED_BACKWARD)
                continue;
            sums[op->kind] += (double)(op->end_ns - op->start_ns);
            counts[op->kind]++;
        }
        double means[2] = {mean_of(sums[0], counts[0]), mean_of(sums[1], counts[1])};
        for (size_t k = 0; k < a->step_count; k++) {
            const struct step *s = &a->steps[k];
            for (size_t i = 0; i < s->tasks.count; i++) {
                const struct knee_logged_op *op = &s->ops[i];
                if (op->stage != stage || op->kind != KNEE_LOGGED_BACKWARD)
                    continue;
                double y = (double)(op->end_ns - op->start_ns) / means[1] - 1;
                n++, deviation += y * y;
                for (size_t j = i; j-- > 0;) { /* its forward pass came before */
                    const struct knee_logged_op *f = &s->ops[j];
                    if (f->kind != KNEE_LOGGED_FORWARD || f->stage != stage ||
                        f->replica != op->replica || f->part != op->part ||
                        f->sequence != op->sequence)
                        continue;
                    double x = (double)(f->end_ns - f->start_ns) / means[0] - 1;
                    xy += x * y, xx += x * x, yy += y * y, pairs++;
                    break;
                }
            }
        }
    }
    out->variation = n > 0 ? sqrt(deviation / n) : 0;
    out->likeness = pairs > 0 && xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
}

/* The slowest workers against their stages; the mean of how much slower they are. */
static double slowest_workers(const struct analysis *a, double *mean, bool *chosen, size_t ranks)
{
    double stage_sum[KNEE_SLOW_PARTS] = {0}, stage_count[KNEE_SLOW_PARTS] = {0}, excess = 0;
    double *count = mean + ranks;
    memset(mean, 0, 2 * ranks * sizeof *mean);
    memset(chosen, 0, ranks * sizeof *chosen);
    for (size_t i = 0; i < a->log->count; i++) {
        const struct knee_logged_op *op = &a->log->ops[i];
        if (op->kind > KNEE_LOGGED_BACKWARD || op->stage >= KNEE_SLOW_PARTS)
            continue;
        double took = (double)(op->end_ns - op->start_ns);
        mean[rank_of(a->log, op)] += took;
        count[rank_of(a->log, op)]++;
        stage_sum[op->stage] += took;
        stage_count[op->stage]++;
    }
    for (size_t r = 0; r < ranks; r++) {
        size_t stage = r / (size_t)a->log->parts % (size_t)a->log->stages;
        double usual =
            stage < KNEE_SLOW_PARTS ? mean_of(stage_sum[stage], stage_count[stage]) : NAN;
        mean[r] = count[r] > 0 && usual > 0 ? mean[r] / count[r] / usual : 0;
    }
    size_t worst = (size_t)ceil(WORST_SHARE * (double)ranks);
    for (size_t k = 0; k < worst; k++) {
        size_t slowest = SIZE_MAX;
        for (size_t r = 0; r < ranks; r++)
            if (!chosen[r] && (slowest == SIZE_MAX || mean[r] > mean[slowest]))
                slowest = r;
        if (slowest == SIZE_MAX)
            break;
        chosen[slowest] = true;
        excess += mean[slowest] / (double)worst;
    }
    return excess;
}

static bool blame_workers(struct analysis *a, struct knee_slowdown *out, double *excess)
{
    double *mean = knee_resize(a->alloc, NULL, 2 * (out->ranks + 1) * sizeof *mean);
    bool *chosen = knee_resize(a->alloc, NULL, (out->ranks + 1) * sizeof *chosen);
    bool good = mean && chosen;
    if (good) {
        *excess = slowest_workers(a, mean, chosen, out->ranks);
        struct part part = {-1, -1, -1, chosen, false};
        out->worst_workers = run(a, &part) / out->even_step_s;
    }
    knee_resize(a->alloc, mean, 0);
    knee_resize(a->alloc, chosen, 0);
    return good;
}

static void name_cause(struct knee_slowdown *out, double worker_excess)
{
    double excess = out->slowdown - 1, wire = 0;
    for (int k = 0; k < KNEE_LOGGED_KINDS; k++)
        wire += traits[k].wire && !isnan(out->by_kind[k]) ? out->by_kind[k] - 1 : 0;
    out->stage = 0;
    for (int32_t s = 1; s < out->stages && s < KNEE_SLOW_PARTS; s++)
        out->stage = out->by_stage[s] > out->by_stage[out->stage] ? s : out->stage;
    if (excess < EVEN)
        out->cause = KNEE_SLOW_NONE;
    else if (wire > MOST_OF_IT * excess)
        out->cause = KNEE_SLOW_WIRE;
    else if (worker_excess > SLOW_WORKER && out->worst_workers - 1 > MOST_OF_IT * excess)
        out->cause = KNEE_SLOW_WORKER;
    else if (out->variation > UNLIKE && out->likeness > ALIKE)
        out->cause = KNEE_SLOW_SEQUENCE;
    else if (out->by_stage[out->stage] - 1 > MOST_OF_IT * excess)
        out->cause = KNEE_SLOW_STAGE;
    else
        out->cause = KNEE_SLOW_MIXED;
}

const char *knee_slow_cause_name(enum knee_slow_cause cause)
{
    static const char *const words[KNEE_SLOW_CAUSES] = {
        [KNEE_SLOW_NONE] = "none",
        [KNEE_SLOW_STAGE] = "stage partitioning imbalance",
        [KNEE_SLOW_SEQUENCE] = "sequence length imbalance",
        [KNEE_SLOW_WORKER] = "slow rank",
        [KNEE_SLOW_WIRE] = "communication",
        [KNEE_SLOW_MIXED] = "mixed",
    };
    return cause < KNEE_SLOW_CAUSES ? words[cause] : "?";
}

/* ---- The whole ---- */

static bool make_steps(struct analysis *a)
{
    const struct knee_op_log *log = a->log;
    size_t most = 0;
    for (size_t i = 0; i < log->count; i++)
        most += i == 0 || log->ops[i].step != log->ops[i - 1].step;
    a->steps = knee_resize(a->alloc, NULL, (most + 1) * sizeof *a->steps);
    if (!a->steps)
        return false;
    memset(a->steps, 0, (most + 1) * sizeof *a->steps);
    for (size_t from = 0, to; from < log->count; from = to) {
        for (to = from; to < log->count && log->ops[to].step == log->ops[from].step;)
            to++;
        if (!make_step(a, from, to, &a->steps[a->step_count++]))
            return false;
    }
    return true;
}

static void release(struct analysis *a)
{
    for (size_t i = 0; a->steps && i < a->step_count; i++) {
        knee_tasks_release(&a->steps[i].tasks);
        knee_resize(a->alloc, a->steps[i].waits, 0);
        knee_resize(a->alloc, a->steps[i].own_ns, 0);
    }
    knee_resize(a->alloc, a->steps, 0);
}

static double measured_step_s(const struct analysis *a)
{
    double sum = 0;
    for (size_t k = 0; k < a->step_count; k++) {
        const struct step *s = &a->steps[k];
        int64_t first = INT64_MAX, last = INT64_MIN;
        for (size_t i = 0; i < s->tasks.count; i++) {
            first = s->ops[i].start_ns < first ? s->ops[i].start_ns : first;
            last = s->ops[i].end_ns > last ? s->ops[i].end_ns : last;
        }
        sum += 1e-9 * (double)(last - first);
    }
    return sum / (double)a->step_count;
}

static void blame_parts(struct analysis *a, struct knee_slowdown *out)
{
    for (int k = 0; k < KNEE_LOGGED_KINDS; k++) {
        struct part part = {k, -1, -1, NULL, false};
        out->by_kind[k] = isnan(a->even_ns[k]) ? NAN : run(a, &part) / out->even_step_s;
    }
    for (int i = 0; i < KNEE_SLOW_PARTS; i++) {
        struct part stage = {-1, i, -1, NULL, false}, replica = {-1, -1, i, NULL, false};
        out->by_stage[i] = i < out->stages ? run(a, &stage) / out->even_step_s : NAN;
        out->by_replica[i] = i < out->replicas ? run(a, &replica) / out->even_step_s : NAN;
    }
}

knee_status knee_find_slowdown(const struct knee_op_log *log, const struct knee_alloc *alloc,
                               struct knee_slowdown *out, struct knee_err *err)
{
    struct analysis a = {.log = log, .alloc = alloc};
    struct knee_slowdown s = {
        .ops = log->count, .replicas = log->replicas, .stages = log->stages, .parts = log->parts};
    double worker_excess = 0;
    s.ranks = (size_t)log->replicas * (size_t)log->stages * (size_t)log->parts;
    bool good = make_steps(&a) && find_even(&a);
    if (good) {
        s.steps = a.step_count;
        s.measured_step_s = measured_step_s(&a);
        s.plain_step_s = run(&a, &as_it_was);
        s.even_step_s = run(&a, &even);
        s.low_s = (1 - REPLAY_OFF) * s.even_step_s;
        s.high_s = (1 + REPLAY_OFF) * s.even_step_s;
        s.slowdown = s.plain_step_s / s.even_step_s;
        blame_parts(&a, &s);
        compare_batches(&a, &s);
        good = blame_workers(&a, &s, &worker_excess);
        name_cause(&s, worker_excess);
    }
    release(&a);
    if (!good || a.failed)
        return knee_fail(err, KNEE_SYSTEM, log->file, "out of memory for the operations");
    if (isnan(s.slowdown))
        return knee_fail(err, KNEE_INPUT, log->file,
                         "the operations cannot be put in an order: some wait for each other");
    *out = s;
    return KNEE_OK;
}
