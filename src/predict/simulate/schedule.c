/* SPDX-License-Identifier: MIT */
/*
 * From a plan to tasks. The unit of a schedule is one pass of one micro-batch through one piece of
 * layers; a stage runs its units in the order of its schedule:
 *
 *   1F1B         pp - 1 - s forwards, then one forward, one backward, then the backwards left
 *   GPipe        all forwards, all backwards
 *   interleaved  the same over pieces, in groups of pp micro-batches (Narayanan et al. 2021);
 * larger groups where fewer than pp would be left over, which would deadlock the stages
 *   zero-bubble  1F1B, weight gradients apart: stage s puts off those of s micro-batches at most
 * and does them in what would be gaps (Qi et al. 2023, ZB-H1)
 *
 * A layer is a wait for the host, its compute, and the communication that does not hide; the part
 * that does hide runs beside the compute. With sharded parameters each pass of a layer waits for
 * its gather, which may start `prefetch` layers ahead. Gradients go out in buckets during the last
 * backward pass, new parameters come back in buckets before the first forward pass. Then all stages
 * meet for the norm of the gradients, the host takes its time, and the optimizer ends the step.
 */
#include "base/error.h"
#include "base/list.h"
#include "base/text.h"
#include "job/plan.h"
#include "predict/plan/gradient_exchange.h"
#include "predict/simulate/tasks.h"

#include <math.h>
#include <string.h>

#define NONE          (-1)
#define NS            1e9
#define PASSES_MAX    1e6
#define SHARDS        "FSDP" /* axis; slows compute beside it */
#define WEIGHTS_SHARE 0.5    /* of a backward pass: products for weights, not inputs */

struct maker {
    struct knee_tasks *tasks;
    const struct knee_shape *shape;
    const struct knee_machine *machine;
    const struct knee_plan *plan;
    struct knee_block block;
    struct knee_stages stages;
    int32_t pp, vp, micro_batches;
    int32_t group;         /* micro-batches that go through one piece before the next */
    int32_t *arrived[2];   /* per virtual stage and micro-batch: the send into it; NONE */
    int32_t *weights;      /* per stage and micro-batch: its last weight gradients; NONE */
    int32_t *last_compute; /* per stage: task on the compute stream made last */
    int32_t *last_gather;  /* per stage, of the last few passes: see add_gather() */
    double seconds_dp, seconds_back, seconds_gather, seconds_scatter, seconds_norm;
};

/* ---- Tasks and edges ---- */

static bool room(struct knee_tasks *t, void *rows, size_t count, size_t *capacity, size_t size)
{
    bool good = count < KNEE_TASKS_MAX && knee_room(t->alloc, rows, capacity, count + 1, size);
    t->failed = t->failed || !good;
    return good;
}

static int32_t add_task(struct maker *m, int32_t stage, enum knee_stream stream,
                        enum knee_task_kind kind, const char *name, double seconds)
{
    struct knee_tasks *t = m->tasks;
    if (t->failed || !room(t, &t->task, t->count, &t->capacity, sizeof *t->task))
        return NONE;
    t->task[t->count] = (struct knee_task){
        .work_ns = rint(NS * seconds),
        .stage = stage,
        .next_edge = NONE,
        .called_after = NONE,
        .received_by = NONE,
        .next_member = NONE,
        .stream = (int32_t)stream,
        .kind = (unsigned char)kind,
        .lane = KNEE_LANE_GPU,
        .name = name,
        .axis = "",
    };
    return (int32_t)t->count++;
}

static void after(struct maker *m, int32_t task, int32_t before)
{
    struct knee_tasks *t = m->tasks;
    if (task == NONE || before == NONE || t->failed ||
        !room(t, &t->edge, t->edge_count, &t->edge_capacity, sizeof *t->edge))
        return;
    t->edge[t->edge_count] = (struct knee_edge){.to = task, .next = t->task[before].next_edge};
    t->task[before].next_edge = (int32_t)t->edge_count++;
    t->task[task].waits++;
}

struct wire {
    enum knee_stream stream;
    enum knee_lane lane;
    enum knee_op op;
    const char *axis;
    double bytes;
    double group_size;
};

static const char *const wire_names[KNEE_OPS] = {
    [KNEE_OP_ALL_REDUCE] = "ncclDevKernel_AllReduce_Sum_bf16_RING_SIMPLE",
    [KNEE_OP_ALL_GATHER] = "ncclDevKernel_AllGather_RING_SIMPLE",
    [KNEE_OP_REDUCE_SCATTER] = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_SIMPLE",
    [KNEE_OP_ALL_TO_ALL] = "ncclDevKernel_AllToAll",
    [KNEE_OP_SEND_RECV] = "ncclDevKernel_SendRecv",
};

static int32_t add_comm(struct maker *m, int32_t stage, const struct wire *wire, double seconds)
{
    if (!(seconds * NS >= 1))
        return NONE;
    int32_t row = add_task(m, stage, wire->stream, KNEE_TASK_COMM, wire_names[wire->op], seconds);
    if (row == NONE)
        return NONE;
    struct knee_task *task = &m->tasks->task[row];
    task->lane = (unsigned char)wire->lane;
    task->op = (unsigned char)wire->op;
    task->axis = wire->axis;
    task->bytes = wire->bytes;
    task->group_size = (int32_t)wire->group_size;
    task->slows = strcmp(wire->axis, SHARDS) == 0;
    return row;
}

/* On the compute stream, after everything on it. */
static int32_t add_compute(struct maker *m, int32_t stage, const char *name, double seconds)
{
    if (!(seconds * NS >= 1))
        return NONE;
    int32_t row = add_task(m, stage, KNEE_STREAM_COMPUTE, KNEE_TASK_COMPUTE, name, seconds);
    m->last_compute[stage] = row == NONE ? m->last_compute[stage] : row;
    return row;
}

static void add_host(struct maker *m, int32_t stage, double seconds)
{
    if (!(seconds * NS >= 1))
        return;
    int32_t row = add_task(m, stage, KNEE_STREAM_COMPUTE, KNEE_TASK_HOST, "host", seconds);
    m->last_compute[stage] = row == NONE ? m->last_compute[stage] : row;
}

/* A task of no length on the compute stream stands for a wait. */
static void add_wait(struct maker *m, int32_t stage, int32_t row)
{
    int32_t wait = add_task(m, stage, KNEE_STREAM_COMPUTE, KNEE_TASK_HOST, "wait", 0);
    after(m, wait, row);
    m->last_compute[stage] = wait == NONE ? m->last_compute[stage] : wait;
}

/* Communication that compute has to wait for: nothing on the compute stream runs beside it. */
static int32_t add_exposed(struct maker *m, int32_t stage, const struct wire *wire, double seconds)
{
    int32_t row = add_comm(m, stage, wire, seconds);
    if (row == NONE)
        return NONE;
    after(m, row, m->last_compute[stage]);
    add_wait(m, stage, row);
    return row;
}

/* ---- A layer ---- */

static enum knee_lane lane_of(const struct maker *m, double stride, double size)
{
    return stride * size <= m->machine->node_size ? KNEE_LANE_NODE : KNEE_LANE_NETWORK;
}

/* Share of the gradient exchange that may run beside compute. */
static double hidden_dp(const struct maker *m)
{
    return m->plan->overlap_dp > 0 ? 1 - fmin(1, m->machine->rates.dp_exposed) : 0;
}

static bool sharded(const struct maker *m)
{
    return m->plan->shard == KNEE_ZERO3 && m->plan->shard_size > 1;
}

static struct wire shard_wire(const struct maker *m, enum knee_op op)
{
    const struct knee_plan *p = m->plan;
    return (struct wire){KNEE_STREAM_SHARD,
                         lane_of(m, p->tp, p->shard_size),
                         op,
                         SHARDS,
                         2 * m->block.footprint.common[0],
                         p->shard_size};
}

/* The gather that the next compute of this stage waits for. It may start once the layer
 * `prefetch` back has begun, that is when the one before that has ended. */
static int32_t add_gather(struct maker *m, int32_t stage)
{
    if (!sharded(m))
        return NONE;
    struct wire wire = shard_wire(m, KNEE_OP_ALL_GATHER);
    int32_t row = add_comm(m, stage, &wire, m->seconds_gather);
    int32_t *back = &m->last_gather[(size_t)stage * 4];
    int ahead = m->plan->prefetch < 1 ? 0 : m->plan->prefetch > 3 ? 3 : (int)m->plan->prefetch;
    after(m, row, back[ahead]);
    return row;
}

/* What always shows of gathers (and scatters) of a pass. */
static void add_shown_shard(struct maker *m, int32_t stage, double seconds)
{
    struct wire wire = shard_wire(m, KNEE_OP_ALL_GATHER);
    wire.stream = KNEE_STREAM_TP; /* not behind gathers that were made ahead */
    if (sharded(m))
        add_exposed(m, stage, &wire, m->machine->rates.shard_exposed * seconds);
}

static void note_layer(struct maker *m, int32_t stage)
{
    int32_t *back = &m->last_gather[(size_t)stage * 4];
    memmove(back + 1, back, 3 * sizeof *back);
    back[0] = m->last_compute[stage];
}

static void add_inner_comm(struct maker *m, int32_t stage, const struct knee_pass *pass)
{
    const struct knee_plan *p = m->plan;
    double bytes = 2 * p->micro_batch * m->shape->seq / p->cp * m->shape->hidden;
    const struct {
        double seconds;
        struct wire wire;
    } parts[] = {
        {pass->tp,
         {KNEE_STREAM_TP, lane_of(m, 1, p->tp),
          p->seq_par > 0 ? KNEE_OP_REDUCE_SCATTER : KNEE_OP_ALL_REDUCE, "TP", bytes, p->tp}},
        {pass->cp,
         {KNEE_STREAM_TP, lane_of(m, p->tp, p->cp), KNEE_OP_SEND_RECV, "CP", bytes, p->cp}},
        {pass->ep, {KNEE_STREAM_TP, lane_of(m, 1, p->ep), KNEE_OP_ALL_TO_ALL, "EP", bytes, p->ep}},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        add_exposed(m, stage, &parts[i].wire, parts[i].seconds);
}

/* Traffic of the pass that hides runs beside its compute. */
static void add_hidden_comm(struct maker *m, int32_t stage, const struct knee_pass *pass,
                            int32_t before)
{
    double hidden = -pass->tp - pass->cp - pass->ep;
    for (int w = 0; w < KNEE_WIRES; w++)
        hidden += pass->wire[w];
    struct wire wire = {KNEE_STREAM_TP, lane_of(m, 1, m->plan->tp), KNEE_OP_ALL_GATHER, "TP", 0,
                        m->plan->tp};
    if (m->plan->tp > 1 && hidden > 0)
        after(m, add_comm(m, stage, &wire, hidden), before);
}

static const struct knee_pass *pass_of(const struct maker *m, int32_t layer, int pass)
{
    bool experts = m->shape->experts > 1 && layer >= (int32_t)m->shape->dense_layers;
    return &m->block.layer[experts][pass];
}

static double work_of(const struct knee_pass *pass)
{
    return pass->gemm + pass->attention + pass->memory;
}

/* New parameters of a layer where the optimizer is sharded; its first forward pass waits for them.
 */
static int32_t add_parameters(struct maker *m, int32_t stage)
{
    const struct knee_plan *p = m->plan;
    struct wire wire = {KNEE_STREAM_DP, lane_of(m, p->tp, p->dp * p->cp), KNEE_OP_ALL_GATHER,
                        "DP",           2 * m->block.footprint.common[0], p->dp * p->cp};
    return add_comm(m, stage, &wire, hidden_dp(m) / m->stages.most * m->seconds_back);
}

static void add_forward_layer(struct maker *m, int32_t stage, int32_t layer, bool first)
{
    const struct knee_pass *pass = pass_of(m, layer, 0);
    bool gathers = first || !knee_plan_gathers_once(m->plan);
    int32_t gather = gathers ? add_gather(m, stage) : NONE, before = m->last_compute[stage];
    int32_t parameters = first ? add_parameters(m, stage) : NONE;
    add_host(m, stage, pass->host + knee_pass_wait_s(m->machine, m->plan, 0, pass->total));
    int32_t row = add_compute(m, stage, "forward layer", work_of(pass));
    after(m, row, gather);
    after(m, row, parameters);
    add_hidden_comm(m, stage, pass, before);
    add_inner_comm(m, stage, pass);
    if (gathers)
        add_shown_shard(m, stage, m->seconds_gather);
    note_layer(m, stage);
}

/* Work that is done again is that of the forward pass as far as the mode says. */
static int32_t add_recompute(struct maker *m, int32_t stage, int32_t layer)
{
    bool experts = m->shape->experts > 1 && layer >= (int32_t)m->shape->dense_layers;
    return add_compute(m, stage, "recompute layer",
                       m->plan->recompute_share *
                           m->block.recompute_s[experts][m->plan->recompute]);
}

/* The products for weight gradients of a layer, where the schedule puts them off. */
static double put_off_s(const struct maker *m, const struct knee_pass *pass)
{
    bool puts_off = m->plan->schedule == KNEE_ZERO_BUBBLE && m->pp > 1;
    return puts_off && m->shape->lora_rank <= 0 ? WEIGHTS_SHARE * pass->gemm : 0;
}

static void add_weights(struct maker *m, int32_t stage, int32_t micro_batch, int32_t after_row,
                        double seconds)
{
    if (!(seconds * NS >= 1))
        return;
    int32_t row =
        add_task(m, stage, KNEE_STREAM_LATER, KNEE_TASK_COMPUTE, "weight gradients", seconds);
    after(m, row, after_row);
    m->weights[(size_t)stage * (size_t)m->micro_batches + (size_t)micro_batch] = row;
}

static void add_backward_layer(struct maker *m, int32_t stage, int32_t layer, int32_t micro_batch,
                               bool last)
{
    const struct knee_pass *pass = pass_of(m, layer, 1);
    double work = work_of(pass), later = put_off_s(m, pass);
    bool once = knee_plan_gathers_once(m->plan);
    int32_t gather = once ? NONE : add_gather(m, stage);
    int32_t again = add_recompute(m, stage, layer);
    int32_t before = m->last_compute[stage];
    add_host(m, stage, pass->host + knee_pass_wait_s(m->machine, m->plan, 1, pass->total));
    int32_t row = add_compute(m, stage, "backward layer", work - later);
    after(m, again != NONE ? again : row, gather);
    add_hidden_comm(m, stage, pass, before);
    add_weights(m, stage, micro_batch, row, later);
    add_inner_comm(m, stage, pass);
    if (sharded(m) && (last || !once)) {
        struct wire wire = shard_wire(m, KNEE_OP_REDUCE_SCATTER);
        wire.stream = KNEE_STREAM_DP; /* gathers do not queue behind it */
        add_shown_shard(m, stage, (once ? 0 : m->seconds_gather) + m->seconds_scatter);
        after(m, add_comm(m, stage, &wire, m->seconds_scatter), m->last_compute[stage]);
    }
    note_layer(m, stage);
}

/* ---- A unit: one pass of one micro-batch through one piece ---- */

struct unit {
    int32_t stage, piece, micro_batch;
    bool backward, last; /* last: of its piece's backward passes in the step */
};

/* Of a pipeline without pieces: as many layers as the fullest stage has while the others, and what
 * the last one gets, still have enough. */
static void layers_of_stage(const struct maker *m, int32_t stage, int32_t *first, int32_t *count)
{
    int32_t left = (int32_t)m->shape->layers, most = (int32_t)m->stages.most;
    int32_t last = (int32_t)m->stages.last;
    *first = *count = 0;
    for (int32_t s = 0; s <= stage; s++) {
        int32_t kept = s < m->pp - 1 ? last + m->pp - 2 - s : 0;
        *first += *count;
        *count = s == m->pp - 1 || left - kept < 1 ? left - (m->pp - 1 - s) : left - kept;
        *count = s < m->pp - 1 && *count > most ? most : *count;
        left -= *count;
    }
}

/* First layer of a virtual stage, and how many it has: an even share, what is left over one each to
 * the first. Where embedding and loss stand for a layer each, the ends have one less. */
static void layers_of(const struct maker *m, int32_t virtual_stage, int32_t *first, int32_t *count)
{
    int32_t pieces = m->pp * m->vp, layers = (int32_t)m->shape->layers;
    bool ends = m->pp > 1 && m->stages.first < m->stages.most;
    if (m->vp == 1 && !ends) {
        layers_of_stage(m, virtual_stage, first, count);
        return;
    }
    int32_t all = ends ? layers + 2 : layers, even = all / pieces, over = all % pieces;
    int32_t before = virtual_stage * even + (virtual_stage < over ? virtual_stage : over);
    *first = before - (ends && virtual_stage > 0);
    *count = even + (virtual_stage < over);
    if (ends)
        *count -= (virtual_stage == 0) + (virtual_stage == pieces - 1);
}

static void add_send(struct maker *m, const struct unit *unit, int32_t virtual_stage)
{
    const struct knee_plan *p = m->plan;
    int32_t to = virtual_stage + (unit->backward ? -1 : 1), pieces = m->pp * m->vp;
    if (to < 0 || to >= pieces)
        return;
    double bytes = 2 * p->micro_batch * m->shape->seq / p->cp * m->shape->hidden / p->tp;
    double stride = p->tp * p->cp * p->dp;
    double seconds = knee_collective_s(&m->machine->cluster, KNEE_OP_SEND_RECV,
                                       knee_plan_pipeline(p), bytes, NULL);
    double shown = p->overlap_pp > 0 ? fmin(1, m->machine->rates.pp_exposed) : 1;
    struct wire wire = {KNEE_STREAM_PP, lane_of(m, stride, 2), KNEE_OP_SEND_RECV, "PP", bytes, 2};
    int32_t shown_row = add_exposed(m, unit->stage, &wire, shown * seconds);
    int32_t row = add_comm(m, unit->stage, &wire, (1 - shown) * seconds);
    after(m, row, m->last_compute[unit->stage]);
    m->arrived[unit->backward][(size_t)to * (size_t)m->micro_batches + (size_t)unit->micro_batch] =
        row != NONE         ? row
        : shown_row != NONE ? shown_row
                            : m->last_compute[unit->stage];
}

static int32_t weights_of(const struct maker *m, int32_t stage, int32_t micro_batch)
{
    return m->weights[(size_t)stage * (size_t)m->micro_batches + (size_t)micro_batch];
}

static void wait_for_input(struct maker *m, const struct unit *unit, int32_t virtual_stage)
{
    size_t at = (size_t)virtual_stage * (size_t)m->micro_batches + (size_t)unit->micro_batch;
    int32_t sent = m->arrived[unit->backward][at];
    int32_t wait = add_task(m, unit->stage, KNEE_STREAM_COMPUTE, KNEE_TASK_HOST, "receive", 0);
    if (wait == NONE)
        return;
    m->tasks->task[wait].gap = true;
    after(m, wait, sent);
    int32_t done = unit->micro_batch - 1 - unit->stage; /* must have its weight gradients by now */
    if (unit->backward && done >= 0)
        after(m, wait, weights_of(m, unit->stage, done));
    if (sent != NONE)
        m->tasks->task[sent].received_by = wait;
    m->last_compute[unit->stage] = wait;
}

/* Gradients of a layer whose last backward pass has ended; sharded ones after every pass. */
static int32_t add_bucket(struct maker *m, const struct unit *unit)
{
    const struct knee_plan *p = m->plan;
    if ((!unit->last && knee_plan_reductions(p) <= 1) || !(m->seconds_dp > 0))
        return NONE;
    struct wire wire = {KNEE_STREAM_DP,
                        lane_of(m, p->tp, p->dp * p->cp),
                        KNEE_OP_REDUCE_SCATTER,
                        "DP",
                        p->gradient_bytes * m->block.footprint.common[0],
                        p->dp * p->cp};
    int32_t weights = weights_of(m, unit->stage, unit->micro_batch);
    int32_t row = add_comm(m, unit->stage, &wire, hidden_dp(m) / m->stages.most * m->seconds_dp);
    after(m, row, weights != NONE ? weights : m->last_compute[unit->stage]);
    return row;
}

static void add_unit(struct maker *m, const struct unit *unit)
{
    int32_t virtual_stage = unit->piece * m->pp + unit->stage, first, count;
    int32_t pieces = m->pp * m->vp;
    layers_of(m, virtual_stage, &first, &count);
    if (pieces > 1)
        wait_for_input(m, unit, virtual_stage);
    bool starts = virtual_stage == 0, ends = virtual_stage == pieces - 1;
    int32_t bucket = NONE;
    if (!unit->backward) {
        if (starts)
            add_compute(m, unit->stage, "embedding",
                        m->block.embedding_s + m->block.embedding_tp_s);
        add_host(m, unit->stage, knee_micro_batch_fixed_s(m->machine, m->plan) / m->vp);
        for (int32_t i = 0; i < count; i++)
            add_forward_layer(m, unit->stage, first + i, unit->micro_batch == 0);
        if (ends)
            add_compute(m, unit->stage, "head forward", m->block.head_s[0]);
    } else {
        if (ends)
            add_compute(m, unit->stage, "head backward", m->block.head_s[1]);
        for (int32_t i = count; i-- > 0;) {
            add_backward_layer(m, unit->stage, first + i, unit->micro_batch, unit->last);
            bucket = add_bucket(m, unit);
        }
    }
    add_send(m, unit, virtual_stage);
    bool put_off = weights_of(m, unit->stage, unit->micro_batch) != NONE;
    if (knee_plan_reductions(m->plan) > 1 && bucket != NONE && !put_off)
        add_wait(m, unit->stage, bucket); /* gradients are given up before the next pass */
}

/* ---- Orders ---- */

/* The smallest group of micro-batches that leaves none over, or at least pp. */
static int32_t group_size(const struct maker *m)
{
    int32_t group = m->vp > 1 ? m->pp : 1;
    while (group < m->micro_batches && m->micro_batches % group > 0 &&
           m->micro_batches % group < m->pp)
        group++;
    return group;
}

/* The k-th forward (or backward) unit of a stage: groups of micro-batches go through one piece
 * after the other. */
static struct unit unit_at(const struct maker *m, int32_t stage, int32_t k, bool backward)
{
    int32_t group = m->group, per_group = group * m->vp;
    int32_t whole = m->micro_batches / group * per_group;
    int32_t begin = k < whole ? k / per_group * group : m->micro_batches / group * group;
    int32_t left = m->micro_batches - begin, size = k < whole || left < 1 ? group : left;
    int32_t rest = k < whole ? k % per_group : k - whole;
    int32_t piece = rest / size, micro_batch = begin + rest % size;
    return (struct unit){
        .stage = stage,
        .piece = backward ? m->vp - 1 - piece : piece,
        .micro_batch = micro_batch,
        .backward = backward,
        .last = backward && micro_batch == m->micro_batches - 1,
    };
}

static int32_t warm_up(const struct maker *m, int32_t stage)
{
    int32_t units = m->micro_batches * m->vp, wanted = m->pp - 1 - stage;
    if (m->plan->schedule == KNEE_GPIPE)
        return units;
    if (m->vp > 1)
        wanted = 2 * (m->pp - 1 - stage) + (m->vp - 1) * m->group;
    return wanted < units ? wanted : units;
}

/* Sends are known to the receiver only once they are made: stages are filled in turns, each as far
 * as its inputs have been made. */
struct progress {
    int32_t forward, backward;
};

static bool next_unit(const struct maker *m, int32_t stage, const struct progress *p,
                      struct unit *unit)
{
    int32_t units = m->micro_batches * m->vp, warm = warm_up(m, stage);
    bool all = p->forward == units;
    bool backward = all || p->forward - p->backward > warm;
    if (p->backward == units)
        return false;
    *unit = unit_at(m, stage, backward ? p->backward : p->forward, backward);
    return true;
}

static bool input_is_made(const struct maker *m, const struct unit *unit)
{
    int32_t virtual_stage = unit->piece * m->pp + unit->stage, pieces = m->pp * m->vp;
    if (unit->backward ? virtual_stage == pieces - 1 : virtual_stage == 0)
        return true;
    size_t at = (size_t)virtual_stage * (size_t)m->micro_batches + (size_t)unit->micro_batch;
    return m->arrived[unit->backward][at] != NONE;
}

/* False: units are left that wait for each other. */
static bool add_units(struct maker *m, struct progress *progress)
{
    bool all = true;
    for (bool moved = true; moved && !m->tasks->failed;) {
        moved = false;
        for (int32_t s = 0; s < m->pp; s++) {
            struct unit unit;
            while (next_unit(m, s, &progress[s], &unit) && input_is_made(m, &unit)) {
                add_unit(m, &unit);
                progress[s].forward += !unit.backward;
                progress[s].backward += unit.backward;
                moved = true;
            }
        }
    }
    for (int32_t s = 0; s < m->pp; s++)
        all = all && progress[s].backward == m->micro_batches * m->vp;
    return all;
}

/* ---- The rest of the step ---- */

static double part_s(const struct knee_plan_cost *cost, enum knee_part part)
{
    return cost->part_s[part];
}

/* The norm of all gradients: no stage goes on before the last is there. */
static void add_norm(struct maker *m)
{
    struct wire wire = {KNEE_STREAM_TP, KNEE_LANE_GPU, KNEE_OP_ALL_REDUCE, "PP", 4, m->plan->pp};
    size_t first = m->tasks->count;
    for (int32_t s = 0; s < m->pp && m->pp > 1; s++) {
        int32_t ready = add_task(m, s, KNEE_STREAM_COMPUTE, KNEE_TASK_HOST, "wait", 0);
        m->last_compute[s] = ready == NONE ? m->last_compute[s] : ready;
    }
    for (int32_t s = 0; s < m->pp && m->pp > 1 && !m->tasks->failed; s++) {
        int32_t own = m->last_compute[s];
        int32_t row = add_exposed(m, s, &wire, m->seconds_norm);
        for (int32_t other = 0; other < m->pp; other++)
            after(m, row, (int32_t)first + other);
        if (row != NONE)
            m->tasks->task[row].called_after = own;
    }
}

static void add_end(struct maker *m, const struct knee_plan_cost *cost)
{
    const struct knee_plan *p = m->plan;
    double times = knee_plan_reductions(p);
    double shown = (1 - hidden_dp(m)) * (times * m->seconds_dp + m->seconds_back);
    struct wire wire = {
        KNEE_STREAM_DP, lane_of(m, p->tp, p->dp * p->cp), KNEE_OP_REDUCE_SCATTER, "DP", 0,
        p->dp * p->cp};
    for (int32_t s = 0; s < m->pp; s++)
        add_exposed(m, s, &wire, shown);
    add_norm(m);
    for (int32_t s = 0; s < m->pp; s++) {
        add_host(m, s, m->machine->rates.step_s);
        add_compute(m, s, "optimizer", part_s(cost, KNEE_PART_OPTIMIZER));
        if (part_s(cost, KNEE_PART_OFFLOAD) > 0) {
            int32_t copy = add_task(m, s, KNEE_STREAM_COPY, KNEE_TASK_COPY, "Memcpy DtoH",
                                    part_s(cost, KNEE_PART_OFFLOAD));
            after(m, copy, m->last_compute[s]);
            if (copy != NONE)
                m->tasks->task[copy].lane = KNEE_LANE_HOST;
        }
    }
}

/* The optimizer waits for what is still under way: everything made so far on other streams. */
static void join_streams(struct maker *m)
{
    struct knee_tasks *t = m->tasks;
    int32_t last[KNEE_STREAMS];
    for (int32_t s = 0; s < m->pp; s++) {
        for (int k = 0; k < KNEE_STREAMS; k++)
            last[k] = NONE;
        for (size_t i = 0; i < t->count; i++)
            if (t->task[i].stage == s)
                last[t->task[i].stream] = (int32_t)i;
        int32_t wait = add_task(m, s, KNEE_STREAM_COMPUTE, KNEE_TASK_HOST, "wait", 0);
        if (wait == NONE)
            return;
        t->task[wait].gap = true;
        for (int k = KNEE_STREAM_LATER; k < KNEE_STREAMS; k++)
            after(m, wait, last[k]);
        m->last_compute[s] = wait;
    }
}

static bool allocate(struct maker *m, struct progress **progress)
{
    const struct knee_alloc *alloc = m->tasks->alloc;
    size_t cells = (size_t)(m->pp * m->vp) * (size_t)m->micro_batches, pp = (size_t)m->pp;
    for (int i = 0; i < 2; i++)
        m->arrived[i] = knee_resize(alloc, NULL, cells * sizeof(int32_t));
    m->weights = knee_resize(alloc, NULL, pp * (size_t)m->micro_batches * sizeof(int32_t));
    m->last_compute = knee_resize(alloc, NULL, pp * sizeof(int32_t));
    m->last_gather = knee_resize(alloc, NULL, 4 * pp * sizeof(int32_t));
    *progress = knee_resize(alloc, NULL, pp * sizeof **progress);
    if (!m->arrived[0] || !m->arrived[1] || !m->weights || !m->last_compute || !m->last_gather ||
        !*progress)
        return false;
    for (size_t i = 0; i < cells; i++)
        m->arrived[0][i] = m->arrived[1][i] = NONE;
    for (size_t i = 0; i < pp * (size_t)m->micro_batches; i++)
        m->weights[i] = NONE;
    for (size_t i = 0; i < 4 * pp; i++)
        m->last_gather[i] = NONE;
    for (size_t i = 0; i < pp; i++)
        m->last_compute[i] = NONE;
    memset(*progress, 0, pp * sizeof **progress);
    return true;
}

static void release(struct maker *m, struct progress *progress)
{
    const struct knee_alloc *alloc = m->tasks->alloc;
    void *owned[] = {m->arrived[0],   m->arrived[1],  m->weights,
                     m->last_compute, m->last_gather, progress};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        knee_resize(alloc, owned[i], 0);
}

void knee_tasks_release(struct knee_tasks *tasks)
{
    knee_resize(tasks->alloc, tasks->task, 0);
    knee_resize(tasks->alloc, tasks->edge, 0);
    knee_resize(tasks->alloc, tasks->meets, 0);
    tasks->task = NULL;
    tasks->edge = NULL;
    tasks->meets = NULL;
    tasks->count = tasks->edge_count = tasks->capacity = tasks->edge_capacity = 0;
}

/* Seconds on the wire of what is exchanged once per step, and per layer. */
static void price_exchange(struct maker *m)
{
    const struct knee_plan *p = m->plan;
    struct knee_prices prices = {0};
    struct knee_gradient_exchange wire =
        knee_exchange_of(&m->block, m->shape, m->machine, p, &prices);
    bool reduced = p->shard == KNEE_REPLICATE; /* an all-reduce is both at once */
    m->seconds_dp = wire.out_s + (reduced ? wire.back_s : 0);
    m->seconds_back = reduced ? 0 : wire.back_s;
    m->seconds_norm =
        knee_collective_s(&m->machine->cluster, KNEE_OP_SEND_RECV, knee_plan_pipeline(p), 4, NULL);
    if (!sharded(m))
        return;
    m->seconds_gather =
        knee_shard_wire_s(&m->block, m->shape, m->machine, p, KNEE_OP_ALL_GATHER, &prices);
    m->seconds_scatter =
        knee_shard_wire_s(&m->block, m->shape, m->machine, p, KNEE_OP_REDUCE_SCATTER, &prices);
}

knee_status knee_tasks_init(struct knee_tasks *out, const struct knee_shape *shape,
                            const struct knee_machine *machine, const struct knee_plan *plan,
                            const struct knee_alloc *alloc, struct knee_err *err)
{
    struct knee_tasks tasks = {.alloc = alloc, .stages = (int32_t)plan->pp};
    struct maker m = {.tasks = &tasks, .shape = shape, .machine = machine, .plan = plan};
    struct progress *progress = NULL;
    struct knee_plan_cost cost;
    double units = plan->pp * plan->vp * knee_plan_micro_batches(plan);
    if (units > PASSES_MAX) {
        knee_fail(err, KNEE_USAGE, "", "this step is too large to simulate: %.0f passes", units);
        knee_hint(err, "raise --micro-batch or lower --global-batch");
        return KNEE_USAGE;
    }
    m.pp = (int32_t)plan->pp;
    m.vp = (int32_t)plan->vp;
    m.micro_batches = (int32_t)knee_plan_micro_batches(plan);
    m.group = group_size(&m);
    tasks.slowdown = machine->rates.slowdown;
    knee_block_init(shape, machine, plan, &m.block);
    knee_block_price(&m.block, shape, machine, plan, &(struct knee_prices){0}, &cost);
    m.stages = knee_block_stages(&m.block, shape, machine, plan,
                                 knee_block_layer_s(&m.block, shape, machine, plan));
    price_exchange(&m);
    bool good = allocate(&m, &progress);
    if (good) {
        tasks.failed = !add_units(&m, progress) || tasks.failed;
        join_streams(&m);
        add_end(&m, &cost);
    }
    release(&m, progress);
    if (!good || tasks.failed) {
        knee_tasks_release(&tasks);
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory, or a schedule that cannot be run");
    }
    *out = tasks;
    return KNEE_OK;
}
