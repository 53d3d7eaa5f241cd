/* SPDX-License-Identifier: MIT */
/*
 * One layer on one GPU. Operations are timed and summed by part; where launching them takes the
 * host longer than the GPU needs, the difference is waiting. Communication inside a layer:
 *
 *   tp  two all-reduces forward and two backward of the layer's activations (each an all-gather
 *       and a reduce-scatter with sequence parallelism, and backward one more gather for the
 *       weight gradients); what is exposed of it is a constant of the software
 *   cp  keys and values travel once round the ring forward, twice backward
 *   ep  two exchanges of routed tokens each way, over the ranks that share the experts: out with
 *       dispatch_bytes a value, back with 2, each after its ranks have met (expert-sync). With
 *       overlap_ep they run beside another micro-batch's compute, which they slow by the processors
 *       they take: what shows is longer(compute, wire) - compute
 */
#include "predict/plan/block.h"

#include "predict/plan/op_time.h"

#include <math.h>
#include <string.h>

enum { FORWARD, BACKWARD };
enum { TP, CP = KNEE_PART_CP - KNEE_PART_TP, EP = KNEE_PART_EP - KNEE_PART_TP };
#define CP_STEP_S 30e-6 /* launches of one piece of ring attention, and of its merge */

/* All-gather or reduce-scatter of `bytes`, the whole buffer. */
static double gather_s(const struct knee_machine *machine, struct knee_group group, double bytes)
{
    return knee_collective_s(&machine->cluster, KNEE_OP_ALL_GATHER, group, bytes, NULL);
}

/* Activations summed over tensor-parallel ranks: one all-reduce, or scattered and gathered again
 * with sequence parallelism. */
static double reduce_s(const struct knee_machine *machine, const struct knee_plan *plan,
                       struct knee_group group, double bytes)
{
    const struct knee_cluster *cluster = &machine->cluster;
    if (plan->seq_par <= 0)
        return knee_collective_s(cluster, KNEE_OP_ALL_REDUCE, group, bytes, NULL);
    return knee_collective_s(cluster, KNEE_OP_REDUCE_SCATTER, group, bytes, NULL) +
           gather_s(machine, group, bytes);
}

static void sum_ops(const struct knee_split *split, const struct knee_machine *machine,
                    enum knee_operations_of what, struct knee_pass pass[2])
{
    struct knee_operation ops[KNEE_OPERATIONS_MAX];
    size_t count = knee_ops_timed(split, machine, what, ops);
    for (size_t i = 0; i < count; i++) {
        struct knee_pass *p = &pass[ops[i].backward ? BACKWARD : FORWARD];
        if (ops[i].part == KNEE_PART_GEMM)
            p->gemm += ops[i].seconds;
        else if (ops[i].part == KNEE_PART_ATTENTION)
            p->attention += ops[i].seconds;
        else
            p->memory += ops[i].seconds;
    }
}

/* Graphs of layers leave out the experts' products, whose sizes change from step to step; a graph
 * that has more of the kernels than this is of the whole step. */
#define LAYER_GRAPH 0.9

/* Launches overlap with the GPU's work and with what shows of communication, which is launched like
 * it; only the longer of the two counts, and gaps remain. */
static void add_host(const struct knee_machine *machine, const struct knee_plan *plan,
                     double launch_s, double experts_s, struct knee_pass pass[2])
{
    const struct knee_rates *rates = &machine->rates;
    double kept = 1 - plan->graphs; /* a graph is launched once for many kernels */
    double each = kept * (launch_s + (plan->tp > 1 ? rates->tp_launch_s : 0)) +
                  (plan->graphs > LAYER_GRAPH ? kept : 1) * experts_s;
    double idle =
        kept * rates->gap_s + (plan->tp > machine->node_size ? plan->tp * rates->tp_hop_s : 0);
    for (int b = FORWARD; b <= BACKWARD; b++) {
        const struct knee_pass *p = &pass[b];
        double busy = p->gemm + p->attention + p->memory + p->tp + p->cp + p->ep;
        double times = b == BACKWARD ? 2 : 1;
        pass[b].host = knee_longer(busy, times * each) - busy + times * idle;
    }
}

double knee_pass_wait_s(const struct knee_machine *machine, const struct knee_plan *plan, int pass,
                        double pass_s)
{
    const struct knee_rates *r = &machine->rates;
    if (plan->tp <= 1 || plan->pp <= 1 || plan->gpus <= machine->node_size || r->tp_wait_s <= 0)
        return 0;
    double nodes = ceil(plan->tp / machine->node_size);
    double least = (r->tp_wait_s + plan->tp * r->tp_wait_rank_s) * sqrt(nodes);
    return knee_longer(pass_s, (pass == BACKWARD ? 2 : 1) * least) - pass_s;
}

double knee_micro_batch_fixed_s(const struct knee_machine *machine, const struct knee_plan *plan)
{
    const struct knee_rates *r = &machine->rates;
    bool stalls = r->stall_gpus > 0 && plan->gpus >= r->stall_gpus;
    return r->micro_batch_s + (stalls ? r->stall_s * (plan->pp - 1) / plan->pp : 0);
}

static void add_tp(const struct knee_split *split, const struct knee_machine *machine,
                   const struct knee_plan *plan, double sublayers, struct knee_pass pass[2])
{
    if (plan->tp <= 1)
        return;
    double bytes = 2 * split->tokens * split->shape->hidden;
    struct knee_group group = {plan->tp, 1, false};
    bool inside = plan->tp <= machine->node_size; /* past the node nothing has been seen to hide */
    double shown = plan->overlap_tp > 0 && inside ? machine->rates.tp_exposed : 1;
    double forward = sublayers * reduce_s(machine, plan, group, bytes), backward = forward;
    if (split->seq_par)
        backward += sublayers / 2 * gather_s(machine, group, bytes);
    pass[FORWARD].tp = shown * forward;
    pass[BACKWARD].tp = shown * backward;
    pass[FORWARD].wire[TP] = forward;
    pass[BACKWARD].wire[TP] = backward;
}

static void add_cp(const struct knee_split *split, const struct knee_machine *machine,
                   const struct knee_plan *plan, struct knee_pass pass[2])
{
    const struct knee_shape *shape = split->shape;
    if (plan->cp <= 1)
        return;
    double wide = shape->kv_heads * (shape->head_dim + shape->value_dim) / plan->tp;
    double bytes = 2 * split->tokens * plan->cp * wide;
    double ring = gather_s(machine, (struct knee_group){plan->cp, plan->tp, false}, bytes);
    double shown = plan->cp_gather > 0 ? 1 : machine->rates.cp_exposed;
    double steps = plan->cp_gather > 0 ? 0 : (1 - plan->graphs) * (plan->cp - 1) * CP_STEP_S;
    double full = 1 - knee_shape_linear(shape); /* states that the others pass on are small */
    ring *= full;
    steps *= full;
    pass[FORWARD].cp = shown * ring + steps;
    pass[BACKWARD].cp = shown * 2 * ring + steps;
    pass[FORWARD].wire[CP] = ring;
    pass[BACKWARD].wire[CP] = 2 * ring;
}

/* Places that `copies` draws among `places` reach at least once, each alike. */
static double distinct(double copies, double places)
{
    return places * (1 - pow(1 - 1 / places, copies));
}

struct knee_dispatch knee_dispatch_of(const struct knee_split *split,
                                      const struct knee_machine *machine,
                                      const struct knee_plan *plan)
{
    double stride = plan->etp >= plan->tp ? plan->tp : 1, topk = split->shape->topk;
    double token = 2 * split->tokens / plan->tp * split->shape->hidden * plan->imbalance;
    struct knee_dispatch all = {{plan->ep, stride, false}, token * topk};
    if (plan->dedup <= 0 || plan->ep <= 1)
        return all;
    all.bytes = token * distinct(topk, plan->ep);
    double inside = fmax(1, fmin(plan->ep, floor(machine->node_size / stride)));
    double nodes = ceil(plan->ep / inside);
    if (nodes <= 1)
        return all;
    /* Once to each node, and there on to its ranks; the two run side by side. */
    struct knee_dispatch between = {{nodes, inside * stride, false}, token * distinct(topk, nodes)};
    struct knee_dispatch within = {{inside, stride, false}, all.bytes};
    const struct knee_cluster *cluster = &machine->cluster;
    double between_s =
        knee_collective_s(cluster, KNEE_OP_ALL_TO_ALL, between.ranks, between.bytes, NULL);
    double within_s =
        knee_collective_s(cluster, KNEE_OP_ALL_TO_ALL, within.ranks, within.bytes, NULL);
    return between_s > within_s ? between : within;
}

/* What shows of an exchange that runs beside another micro-batch's pass through the layer. */
static double beside_s(const struct knee_machine *machine, const struct knee_pass *pass,
                       double exchange)
{
    double compute = pass->gemm + pass->attention + pass->memory;
    double slowed = compute + machine->rates.expert_slowdown * fmin(compute, exchange);
    return knee_longer(slowed, exchange) - compute;
}

static void add_ep(const struct knee_split *split, const struct knee_machine *machine,
                   const struct knee_plan *plan, struct knee_pass pass[2])
{
    double h = split->shape->hidden, routed = knee_split_routed(split) * plan->imbalance;
    struct knee_dispatch way = knee_dispatch_of(split, machine, plan);
    const struct knee_cluster *cluster = &machine->cluster;
    double out = way.bytes * plan->dispatch_bytes / 2;
    double wire = knee_collective_s(cluster, KNEE_OP_ALL_TO_ALL, way.ranks, out, NULL) +
                  knee_collective_s(cluster, KNEE_OP_ALL_TO_ALL, way.ranks, way.bytes, NULL);
    if (plan->etp > 1)
        wire += 2 * gather_s(machine, (struct knee_group){plan->etp, 1, false}, 2 * routed * h);
    double meet = plan->ep > 1 ? 2 * machine->rates.expert_sync_s : 0;
    for (int b = FORWARD; b <= BACKWARD; b++) {
        pass[b].ep = plan->overlap_ep > 0 ? beside_s(machine, &pass[b], wire + meet) : wire + meet;
        pass[b].wire[EP] = wire;
    }
}

static void finish(struct knee_pass pass[2])
{
    for (int b = FORWARD; b <= BACKWARD; b++) {
        struct knee_pass *p = &pass[b];
        p->total = p->gemm + p->attention + p->memory + p->host + p->tp + p->cp + p->ep;
    }
}

static void add_experts(const struct knee_split *split, const struct knee_machine *machine,
                        const struct knee_plan *plan, struct knee_block *block)
{
    const struct knee_rates *rates = &machine->rates;
    struct knee_pass *pass = block->layer[1];
    double local = split->shape->experts / plan->ep;
    sum_ops(split, machine, KNEE_OPERATIONS_EXPERT, pass);
    add_tp(split, machine, plan, 1, pass);
    add_cp(split, machine, plan, pass);
    add_ep(split, machine, plan, pass);
    add_host(machine, plan, rates->moe_launch_s, local * rates->expert_launch_s, pass);
    finish(pass);
}

static void add_ends(const struct knee_split *split, const struct knee_machine *machine,
                     const struct knee_plan *plan, struct knee_block *block)
{
    struct knee_operation ops[KNEE_OPERATIONS_MAX];
    size_t count = knee_ops_timed(split, machine, KNEE_OPERATIONS_HEAD, ops);
    for (size_t i = 0; i < count; i++)
        block->head_s[ops[i].backward] += ops[i].seconds;
    count = knee_ops_timed(split, machine, KNEE_OPERATIONS_EMBEDDING, ops);
    for (size_t i = 0; i < count; i++)
        block->embedding_s += ops[i].seconds;
    double bytes = 2 * split->tokens * split->shape->hidden;
    block->embedding_tp_s = reduce_s(machine, plan, (struct knee_group){plan->tp, 1, false}, bytes);
}

/* Which operations a module names, and how much of each. */
static const struct {
    const char *name;
    unsigned module;
    double share;
} module_ops[] = {
    {"norms and residuals", KNEE_MODULE_NORM, 0.5}, /* the norms; residuals are kept */
    {"activation", KNEE_MODULE_ACTIVATION, 1},
    {"query", KNEE_MODULE_LATENT, 1},
    {"key-value up", KNEE_MODULE_LATENT, 1},
    {"rotation", KNEE_MODULE_LATENT, 1},
    {"scores", KNEE_MODULE_ATTENTION, 1},
    {"feed-forward", KNEE_MODULE_MLP, 1},
    {"experts", KNEE_MODULE_EXPERTS, 1},
    {"permutation", KNEE_MODULE_EXPERTS, 1},
};

/* Forward work of the modules that are computed twice. */
static double modules_s(const struct knee_split *split, const struct knee_machine *machine,
                        enum knee_operations_of what, const struct knee_pass *forward)
{
    struct knee_operation ops[KNEE_OPERATIONS_MAX];
    size_t count = knee_ops_timed(split, machine, what, ops);
    double sum = split->modules & KNEE_MODULE_EXPERTS ? forward->ep : 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof module_ops / sizeof *module_ops; k++)
            if (!ops[i].backward && (split->modules & module_ops[k].module) &&
                strcmp(ops[i].name, module_ops[k].name) == 0)
                sum += module_ops[k].share * ops[i].seconds;
    return sum;
}

/* Seconds of forward work done again before the backward pass of a layer. */
static void add_recompute(const struct knee_split *split, const struct knee_machine *machine,
                          struct knee_block *block)
{
    static const enum knee_operations_of what[] = {KNEE_OPERATIONS_DENSE, KNEE_OPERATIONS_EXPERT};
    for (int kind = 0; kind < 2; kind++) {
        const struct knee_pass *forward = &block->layer[kind][FORWARD];
        double *again = block->recompute_s[kind];
        again[KNEE_KEEP] = 0;
        if (forward->total > 0)
            again[KNEE_SELECTIVE] = split->modules ? modules_s(split, machine, what[kind], forward)
                                                   : forward->attention;
        again[KNEE_BY_OP] = split->rates->recompute_op * forward->total;
        again[KNEE_FULL] = forward->total;
    }
}

void knee_block_init(const struct knee_shape *shape, const struct knee_machine *machine,
                     const struct knee_plan *plan, struct knee_block *out)
{
    struct knee_split split = knee_split_of(shape, &machine->rates, plan);
    struct knee_block block = {0};
    if (shape->dense_layers > 0) {
        sum_ops(&split, machine, KNEE_OPERATIONS_DENSE, block.layer[0]);
        add_tp(&split, machine, plan, 1 + knee_shape_fed(shape), block.layer[0]);
        add_cp(&split, machine, plan, block.layer[0]);
        add_host(machine, plan, machine->rates.launch_s, 0, block.layer[0]);
        finish(block.layer[0]);
    }
    if (shape->experts > 1)
        add_experts(&split, machine, plan, &block);
    add_ends(&split, machine, plan, &block);
    add_recompute(&split, machine, &block);
    knee_footprint_of(&split, &block.footprint);
    knee_shape_flops(shape, &block.flops);
    *out = block;
}
