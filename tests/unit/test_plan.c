/* SPDX-License-Identifier: MIT */
/*
 * Plans: laws of the cost (parts sum, nothing is faster than its floors, more of a resource never
 * hurts), collectives by hand, and the search against an enumeration of its own. The pipeline is
 * held against its events in test_simulate.c.
 */
#include "unit.h"

#include "base/error.h"
#include "job/memory.h"
#include "job/plan.h"
#include "job/profile.h"
#include "judge/plan_counts.h"
#include "predict/plan/block.h"
#include "predict/plan/op_time.h"

static struct knee_plan plan_of(const struct knee_shape *shape, const struct knee_machine *machine,
                                double gpus, double batch, double tp, double pp, double vp)
{
    struct knee_plan plan;
    struct knee_err err;
    knee_plan_init(&plan);
    plan.gpus = gpus;
    plan.global_batch = batch;
    plan.tp = tp;
    plan.pp = pp;
    plan.vp = vp;
    plan.micro_batch = 1;
    if (knee_plan_complete(&plan, shape, machine, &err))
        fail_msg("%s; %s", err.what, err.hint);
    return plan;
}

/* A plan at random that can be; false: this throw gave none. */
static bool random_plan(const struct knee_shape *shape, const struct knee_machine *machine,
                        uint64_t *dice, struct knee_plan *plan)
{
    double powers[6];
    knee_plan_init(plan);
    for (size_t i = 0; i < 6; i++)
        powers[i] = exp2(floor(chance(dice) * 4));
    plan->gpus = 64;
    plan->tp = powers[0];
    plan->pp = powers[1];
    plan->cp = fmin(2, powers[2]);
    plan->micro_batch = powers[3];
    plan->ep = shape->experts > 1 ? powers[4] : 1;
    plan->vp = plan->pp > 1 && chance(dice) < 0.4 ? 2 : 1;
    plan->global_batch = 512;
    plan->shard = (int)(chance(dice) * KNEE_SHARDS);
    plan->recompute = (int)(chance(dice) * KNEE_RECOMPUTES);
    plan->precision = chance(dice) < 0.5 ? KNEE_BF16 : KNEE_FP8;
    plan->seq_par = plan->tp > 1 && chance(dice) < 0.5;
    plan->offload = chance(dice) < 0.2;
    return knee_plan_complete(plan, shape, machine, NULL) == KNEE_OK;
}

#define MODELS 4
static const char *const models[MODELS] = {"llama3-8b", "gpt3-175b", "qwen3-235b-a22b",
                                           "deepseek-v3"};

/* One of them; now and then with state space in some layers, or with adapters. */
static struct knee_shape some_shape(int i)
{
    struct knee_shape shape = shape_named(models[i % MODELS]);
    if (i % 5 == 1) {
        shape.linear_layers = floor(shape.layers / 2);
        shape.bare_layers = fmin(2, shape.dense_layers);
    }
    shape.lora_rank = i % 7 == 2 ? 32 : 0;
    return shape;
}

/* ---- Laws of the cost ---- */

TEST(parts_and_memory_sum)
{
    uint64_t dice = 7;
    struct knee_machine machine = machine_of("h100", "megatron-core");
    for (int i = 0; i < 2000; i++) {
        struct knee_shape shape = some_shape(i);
        struct knee_plan plan;
        struct knee_plan_cost cost;
        struct knee_step step;
        if (!random_plan(&shape, &machine, &dice, &plan))
            continue;
        knee_plan_price(&shape, &machine, &plan, &cost);
        double sum = 0;
        for (int part = 0; part < KNEE_PARTS; part++) {
            assert_true(cost.part_s[part] >= 0);
            sum += cost.part_s[part];
        }
        assert_relative(sum, cost.step_s, 1e-12);
        const struct knee_memory *m = &cost.memory;
        assert_relative(m->parameters + m->gradients + m->optimizer + m->activations + m->buffers +
                            m->fragmentation + m->base,
                        m->total, 1e-12);
        knee_plan_step(&cost, &step);
        sum = 0;
        for (int label = 0; label < KNEE_LABELS; label++)
            sum += step.label_s[label];
        assert_relative(sum, step.wall_s, 1e-12);
        assert_true(cost.mfu_causal > 0 && cost.mfu_causal <= cost.mfu_full);
        assert_true(cost.mfu_causal < 2); /* against the 16-bit peak, 8 bits may pass 1 */
    }
}

/* No product is faster than peak and memory allow, and no plan faster than its bound. */
TEST(nothing_is_faster_than_its_floors)
{
    uint64_t dice = 11;
    struct knee_machine machine = machine_of("h100", "nemo-25.04");
    for (int i = 0; i < 500; i++) {
        struct knee_shape shape = shape_named(models[i % MODELS]);
        struct knee_plan plan;
        struct knee_plan_cost cost;
        struct knee_block block;
        struct knee_operation ops[KNEE_OPERATIONS_MAX];
        if (!random_plan(&shape, &machine, &dice, &plan))
            continue;
        for (int what = KNEE_OPERATIONS_DENSE; what <= KNEE_OPERATIONS_HEAD; what++) {
            if ((what == KNEE_OPERATIONS_EXPERT) != (shape.experts > 1) &&
                what < KNEE_OPERATIONS_EMBEDDING)
                continue;
            size_t count = knee_plan_ops(&shape, &machine, &plan, (enum knee_operations_of)what,
                                         ops, KNEE_OPERATIONS_MAX);
            assert_true(count > 0 && count < KNEE_OPERATIONS_MAX);
            for (size_t k = 0; k < count; k++) {
                double peak = machine.peak_flops[ops[k].dtype];
                assert_true(ops[k].seconds >= ops[k].count * ops[k].flops / peak);
                assert_true(ops[k].seconds >=
                            ops[k].count * ops[k].bytes / machine.memory_bytes_per_s);
            }
        }
        struct knee_prices prices = {0};
        knee_block_init(&shape, &machine, &plan, &block);
        knee_block_price(&block, &shape, &machine, &plan, &prices, &cost);
        assert_true(cost.step_s >= knee_block_bound_s(&block, &shape, &machine, &plan));
        /* every parameter's states are on some GPU (8 bytes of moments) or some host (28 bytes of
         * reading and writing) */
        struct knee_params params;
        knee_shape_params(&shape, &params);
        assert_true(plan.offload == KNEE_OFFLOAD_OPTIMIZER ||
                    cost.memory.optimizer * plan.gpus >= 8 * (1 - 1e-9) * params.total);
        plan.offload = KNEE_OFFLOAD_OPTIMIZER;
        knee_block_price(&block, &shape, &machine, &plan, &prices, &cost);
        assert_true(cost.part_s[KNEE_PART_OFFLOAD] * machine.rates.host_bytes_per_s * plan.gpus >=
                    28 * (1 - 1e-9) * params.total);
    }
}

TEST(axes_by_hand)
{
    struct knee_shape shape = shape_named("qwen3-30b-a3b");
    struct knee_machine machine = machine_of("h100", "megatron-core"); /* nodes of 8 */
    struct knee_plan plan = plan_of(&shape, &machine, 128, 128, 2, 4, 1);
    struct knee_plan_axis axes[KNEE_AXES_MAX];
    plan.ep = 16; /* on tp 2 x dp 16 ranks */
    plan.shard_size = 2;
    static const struct knee_plan_axis wanted[] = {
        {"TP", 2, 1, 2}, {"EP", 16, 1, 8}, {"shards", 2, 2, 2}, {"DP", 16, 2, 4}, {"PP", 4, 32, 1}};
    assert_int_equal(knee_plan_axes(&plan, &machine, axes), 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(axes[i].name, wanted[i].name);
        assert_true(axes[i].size == wanted[i].size && axes[i].stride == wanted[i].stride);
        assert_true(axes[i].inside == wanted[i].inside);
    }
    plan = plan_of(&shape, &machine, 1, 8, 1, 1, 1);
    assert_int_equal(knee_plan_axes(&plan, &machine, axes), 0);
}

TEST(more_of_a_resource_never_hurts)
{
    uint64_t dice = 13;
    struct knee_machine machine = machine_of("a100", "megatron-core");
    for (int i = 0; i < 1000; i++) {
        struct knee_shape shape = shape_named(models[i % MODELS]);
        struct knee_plan plan;
        struct knee_plan_cost before, after;
        if (!random_plan(&shape, &machine, &dice, &plan))
            continue;
        knee_plan_price(&shape, &machine, &plan, &before);
        struct knee_machine better[4] = {machine, machine, machine, machine};
        better[0].peak_flops[KNEE_16BIT] *= 1.5;
        better[1].memory_bytes_per_s *= 1.5;
        better[2].cluster.levels[0].bytes_per_s *= 1.5;
        better[3].cluster.levels[1].bytes_per_s *= 1.5;
        for (int k = 0; k < 4; k++) {
            knee_plan_price(&shape, &better[k], &plan, &after);
            /* what shows of gathers next to less compute may grow, but not as much as is saved */
            assert_true(after.step_s <= before.step_s * (1 + 1e-9));
        }
    }
}

/* Launching more as graphs is never slower; recomputing fewer layers is never slower and never
 * takes less room, and the ends of the range are what recomputing nothing and everything cost. */
TEST(graphs_and_fewer_recomputed_layers_help)
{
    uint64_t dice = 43;
    size_t seen = 0;
    struct knee_machine machine = machine_of("h100", "megatron-core");
    for (int i = 0; i < 1000; i++) {
        struct knee_shape shape = some_shape(i);
        struct knee_plan plan;
        struct knee_plan_cost cost[3], none;
        if (!random_plan(&shape, &machine, &dice, &plan) || plan.recompute == KNEE_KEEP)
            continue;
        for (int share = 0; share < 3; share++) {
            plan.recompute_share = share / 2.0;
            knee_plan_price(&shape, &machine, &plan, &cost[share]);
        }
        assert_true(cost[0].step_s < cost[1].step_s && cost[1].step_s < cost[2].step_s);
        assert_true(cost[0].memory.activations > cost[1].memory.activations &&
                    cost[1].memory.activations > cost[2].memory.activations);
        for (int share = 0; share < 3; share++) {
            plan.graphs = share / 2.0;
            knee_plan_price(&shape, &machine, &plan, &cost[share]);
        }
        assert_true(cost[0].step_s > cost[1].step_s && cost[1].step_s > cost[2].step_s);
        plan.graphs = plan.recompute_share = 0;
        knee_plan_price(&shape, &machine, &plan, &cost[0]);
        plan.recompute = KNEE_KEEP;
        knee_plan_price(&shape, &machine, &plan, &none);
        assert_relative(cost[0].step_s, none.step_s, 1e-12);
        assert_relative(cost[0].memory.activations, none.memory.activations, 1e-12);
        seen++;
    }
    assert_true(seen > 200);
}

/* Training adapters alone never takes longer or more room than training everything, exchanges no
 * more, and takes the longer the higher their rank. */
TEST(frozen_weights_cost_less)
{
    uint64_t dice = 41;
    size_t seen = 0;
    struct knee_machine machine = machine_of("h100", "megatron-core");
    for (int i = 0; i < 2000; i++) {
        struct knee_shape shape = shape_named(models[i % MODELS]), tuned = shape, higher = shape;
        struct knee_plan plan;
        struct knee_plan_cost all, some, more;
        tuned.lora_rank = 16;
        higher.lora_rank = 256;
        if (!random_plan(&shape, &machine, &dice, &plan))
            continue;
        knee_plan_price(&shape, &machine, &plan, &all);
        knee_plan_price(&tuned, &machine, &plan, &some);
        knee_plan_price(&higher, &machine, &plan, &more);
        /* cut finely, or in 8 bits, what adapters move may be more than what is saved */
        bool large = plan.micro_batch * shape.seq / plan.cp >= 4096;
        if (large && plan.tp <= 2 && plan.precision == KNEE_BF16)
            assert_true(some.step_s < all.step_s);
        assert_true(some.step_s < more.step_s);
        assert_true(some.memory.total < all.memory.total);
        assert_true(some.wire_s[KNEE_PART_DP - KNEE_PART_TP] <=
                    all.wire_s[KNEE_PART_DP - KNEE_PART_TP]);
        assert_true(some.memory.total < more.memory.total);
        seen++;
    }
    assert_true(seen > 500);
}

/* Frozen weights in 4 bits take less room and more time than in 16, and fewer bytes are gathered.
 */
TEST(four_bits_take_less_room_and_more_time)
{
    uint64_t dice = 43;
    size_t seen = 0, gathered = 0;
    struct knee_machine machine = machine_of("a100", "fsdp");
    for (int i = 0; i < 1000; i++) {
        struct knee_shape half = shape_named(models[i % MODELS]), quarter;
        struct knee_plan plan;
        struct knee_plan_cost wide, narrow;
        half.lora_rank = 16;
        quarter = half;
        quarter.qlora_rank = 16;
        if (!random_plan(&half, &machine, &dice, &plan))
            continue;
        knee_plan_price(&half, &machine, &plan, &wide);
        knee_plan_price(&quarter, &machine, &plan, &narrow);
        bool shards = plan.shard == KNEE_ZERO3 && plan.shard_size > 1;
        double *sent = wide.wire_s, *less = narrow.wire_s;
        assert_true(narrow.memory.parameters < wide.memory.parameters);
        assert_true(narrow.memory.parameters > wide.memory.parameters / 4);
        assert_relative(narrow.memory.optimizer, wide.memory.optimizer, 1e-12);
        if (shards)
            assert_true(less[KNEE_PART_SHARD - KNEE_PART_TP] <
                        sent[KNEE_PART_SHARD - KNEE_PART_TP]);
        else
            assert_true(narrow.step_s > wide.step_s);
        gathered += shards;
        seen++;
    }
    assert_true(seen > 250 && gathered > 20);
}

/* torchtune's README: tokens/s of fine-tuning Llama 3.1 with batches of 2 x 2048 tokens on each GPU
 * and full recomputation. No row was fitted. */
TEST(fine_tuning_is_as_published)
{
    static const struct {
        const char *model, *gpu, *profile;
        double gpus, rank, qlora, measured, within;
    } runs[] = {
        {"llama3-70b", "a100", "fsdp", 8, 16, 0, 3497, 0.08},
        {"llama3-405b", "a100", "fsdp", 8, 16, 16, 653, 0.05},
        {"llama3-8b", "rtx-4090", "pytorch-compile", 1, 8, 8, 2413, 0.08},
        {"llama3-8b", "rtx-4090", "pytorch-compile", 1, 8, 0, 3083, 0.2},
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct knee_shape shape = shape_named(runs[i].model);
        struct knee_machine machine = machine_of(runs[i].gpu, runs[i].profile);
        struct knee_plan_cost cost;
        shape.seq = 2048;
        shape.lora_rank = runs[i].rank;
        shape.qlora_rank = runs[i].qlora;
        struct knee_plan plan = plan_of(&shape, &machine, runs[i].gpus, 2 * runs[i].gpus, 1, 1, 1);
        plan.micro_batch = 2;
        plan.recompute = KNEE_FULL;
        plan.shard = runs[i].gpus > 1 ? KNEE_ZERO3 : KNEE_REPLICATE;
        plan.shard_size = runs[i].gpus;
        knee_plan_price(&shape, &machine, &plan, &cost);
        if (fabs(cost.tokens_per_s / runs[i].measured - 1) > runs[i].within)
            fail_msg("%s on %s: %.0f tokens/s, measured %.0f", runs[i].model, runs[i].gpu,
                     cost.tokens_per_s, runs[i].measured);
    }
}

/* State space in every layer takes as long per token however long the sequence is; attention does
 * not, and with half of the layers it is in between. */
TEST(state_space_is_linear)
{
    struct knee_machine machine = machine_of("h100", "megatron-core");
    double per_token[3][2];
    for (int kind = 0; kind < 3; kind++)
        for (int longer = 0; longer < 2; longer++) {
            struct knee_shape shape = shape_named("llama3-8b");
            shape.linear_layers = kind * 16;
            shape.seq = longer ? 65536 : 8192;
            struct knee_plan plan = plan_of(&shape, &machine, 8, 8 * (longer ? 1 : 8), 2, 1, 1);
            struct knee_plan_cost cost;
            plan.micro_batch = longer ? 1 : 8;
            knee_plan_price(&shape, &machine, &plan, &cost);
            per_token[kind][longer] = cost.step_s / (plan.global_batch * shape.seq);
        }
    assert_relative(per_token[2][1], per_token[2][0], 0.02);
    assert_true(per_token[0][1] > 1.5 * per_token[0][0]);
    assert_relative(per_token[1][1] - per_token[1][0], (per_token[0][1] - per_token[0][0]) / 2,
                    0.05);
}

/* A token that goes to a node once, and there to a rank once, is never slower than one for each of
 * its experts; eight of them over four nodes are 3.6 copies (4 (1 - 0.75^8)). */
TEST(tokens_sent_once_never_hurt)
{
    struct knee_shape shape = shape_named("qwen3-235b-a22b");
    struct knee_machine machine = machine_of("h100", "megatron-core");
    for (double ep = 1; ep <= 64; ep *= 2) {
        struct knee_plan plan;
        struct knee_plan_cost all, once;
        knee_plan_init(&plan);
        plan.gpus = 64;
        plan.global_batch = 256;
        plan.ep = ep;
        assert_ok(knee_plan_complete(&plan, &shape, &machine, NULL));
        assert_near(plan.dedup, 0, 0);
        knee_plan_price(&shape, &machine, &plan, &all);
        plan.dedup = 1;
        knee_plan_price(&shape, &machine, &plan, &once);
        assert_true(once.step_s <= all.step_s);
        assert_true(ep < 16 || once.wire_s[KNEE_PART_EP - KNEE_PART_TP] <
                                   0.8 * all.wire_s[KNEE_PART_EP - KNEE_PART_TP]);
        struct knee_split split = knee_split_of(&shape, &machine.rates, &plan);
        struct knee_dispatch way = knee_dispatch_of(&split, &machine, &plan);
        double token = 2 * split.tokens * shape.hidden;
        if (ep == 32) {
            assert_near(way.ranks.size, 4, 0);
            assert_relative(way.bytes / token, 4 * (1 - pow(0.75, 8)), 1e-12);
        }
    }
}

/* Tensor-parallel calls under a pipeline between nodes take so long at least, however little there
 * is to compute; inside a node, without a pipeline and in other software they wait for nothing. */
TEST(hosts_wait_for_each_other)
{
    struct knee_shape shape = shape_named("llama3-8b");
    struct knee_machine machine = machine_of("h100", "nanotron");
    struct knee_machine other = machine_of("h100", "megatron-core");
    struct knee_plan plan = plan_of(&shape, &machine, 16, 64, 8, 2, 1);
    const struct knee_rates *r = &machine.rates;
    double least = r->tp_wait_s + 8 * r->tp_wait_rank_s;
    assert_true(least > 1e-3);
    assert_near(knee_pass_wait_s(&machine, &plan, 0, 0), least, 1e-12);
    assert_near(knee_pass_wait_s(&machine, &plan, 1, 0), 2 * least, 1e-12);
    assert_true(knee_pass_wait_s(&machine, &plan, 0, 100 * least) < 1e-6 * least);
    assert_near(knee_pass_wait_s(&other, &plan, 0, 0), 0, 0);
    struct knee_plan inside = plan_of(&shape, &machine, 8, 64, 4, 2, 1);
    struct knee_plan alone = plan_of(&shape, &machine, 16, 64, 8, 1, 1);
    assert_near(knee_pass_wait_s(&machine, &inside, 0, 0), 0, 0);
    assert_near(knee_pass_wait_s(&machine, &alone, 0, 0), 0, 0);
}

/* Half when all that the driver gives is needed; certain far below, hopeless far above. */
TEST(fitting_is_a_probability)
{
    struct knee_memory m = {.capacity = 80e9, .total = 85.04e9, .spread = 0.12};
    assert_near(knee_memory_fit(&m), 0.5, 0.01);
    double before = 1;
    for (m.total = 40e9; m.total < 160e9; m.total += 5e9) {
        double now = knee_memory_fit(&m);
        assert_true(now <= before && now >= 0);
        before = now;
    }
    assert_true(before < 1e-6);
    m.total = 60e9;
    assert_true(knee_memory_fit(&m) > 0.99);
    struct knee_sure sure = knee_memory_sure(&m);
    assert_near(log(sure.high / m.total), 1.645 * 0.12, 1e-4);
    assert_near(sure.low * sure.high, m.total * m.total, 1e-9 * m.total * m.total);
    m.spread = 0;
    assert_near(knee_memory_fit(&m), 1, 0);
}

TEST(recomputing_and_sharding_save_memory)
{
    struct knee_shape shape = shape_named("llama3-70b");
    struct knee_machine machine = machine_of("h100", "megatron-core");
    struct knee_plan plan = plan_of(&shape, &machine, 64, 128, 4, 4, 1);
    double total[KNEE_RECOMPUTES], step[KNEE_RECOMPUTES];
    static const int order[] = {KNEE_KEEP, KNEE_SELECTIVE, KNEE_FULL};
    for (int i = 0; i < 3; i++) {
        struct knee_plan_cost cost;
        plan.recompute = order[i];
        knee_plan_price(&shape, &machine, &plan, &cost);
        total[i] = cost.memory.total;
        step[i] = cost.step_s;
    }
    assert_true(total[0] > total[1] && total[1] > total[2]);
    assert_true(step[0] < step[1] && step[1] < step[2]);
    plan.recompute = KNEE_KEEP;
    double before = INFINITY;
    for (int shard = KNEE_REPLICATE; shard <= KNEE_ZERO2; shard++) {
        struct knee_plan_cost cost;
        plan.shard = shard;
        plan.shard_size = shard ? plan.dp : 1;
        knee_plan_price(&shape, &machine, &plan, &cost);
        bool same = shard == KNEE_ZERO2 && plan.pp > 1; /* gradients are added up whole */
        assert_true(same ? cost.memory.total == before : cost.memory.total < before);
        before = cost.memory.total;
    }
}

/* States of mixed-precision Adam: 2 + 4 + 12 bytes, the last shared by zero1. */
TEST(bytes_per_parameter_by_hand)
{
    struct knee_shape shape = shape_named("llama3-8b");
    struct knee_machine machine = machine_of("h100", "megatron-core");
    struct knee_plan plan = plan_of(&shape, &machine, 8, 64, 1, 1, 1);
    struct knee_plan_cost cost;
    struct knee_params params;
    knee_shape_params(&shape, &params);
    double n = params.total - shape.hidden; /* the final norm is not counted */
    knee_plan_price(&shape, &machine, &plan, &cost);
    assert_relative(cost.memory.parameters, 2 * n, 1e-9);
    assert_relative(cost.memory.gradients, 4 * n, 1e-9);
    assert_relative(cost.memory.optimizer, 12 * n, 1e-9);
    plan.shard = KNEE_ZERO1;
    plan.shard_size = 8;
    knee_plan_price(&shape, &machine, &plan, &cost);
    assert_relative(cost.memory.optimizer, 12 * n / 8, 1e-9);
    assert_relative(cost.memory.gradients, 4 * n, 1e-9);
    plan.shard = KNEE_ZERO3;
    knee_plan_price(&shape, &machine, &plan, &cost);
    assert_relative(cost.memory.parameters, 2 * n / 8, 1e-9);
    assert_relative(cost.memory.gradients, 4 * n / 8, 1e-9);
}

/* ---- The pipeline ---- */

/* M micro-batches on pp equal stages take (M + pp - 1) times one. */
TEST(bubble_of_equal_stages)
{
    struct knee_shape shape = shape_named("llama3-8b");
    shape.vocab = 1; /* no head worth the name */
    struct knee_machine machine = machine_of("h100", "megatron-core");
    machine.rates.micro_batch_s = machine.rates.jitter = machine.rates.pp_exposed = 0;
    for (double batch = 32; batch <= 512; batch *= 2) {
        struct knee_plan plan = plan_of(&shape, &machine, 8, batch, 1, 8, 1);
        struct knee_plan_cost cost;
        knee_plan_price(&shape, &machine, &plan, &cost);
        double busy = 0;
        for (int part = KNEE_PART_GEMM; part <= KNEE_PART_MEMORY; part++)
            busy += cost.part_s[part];
        busy += cost.part_s[KNEE_PART_HOST] - machine.rates.step_s;
        assert_relative(cost.part_s[KNEE_PART_BUBBLE] / busy, 7 / batch, 0.02);
        plan.vp = 4;
        plan.schedule = KNEE_INTERLEAVED;
        knee_plan_price(&shape, &machine, &plan, &cost);
        assert_relative(cost.part_s[KNEE_PART_BUBBLE] / busy, 7 / batch / 4, 0.02);
    }
}

TEST(layers_of_stages)
{
    static const struct {
        double layers, pp, vp, first, last, most;
    } rows[] = {
        {96, 8, 12, 12, 12, 12}, {126, 8, 8, 15, 15, 16}, {126, 9, 7, 14, 14, 14},
        {62, 4, 8, 15, 15, 16},  {94, 8, 1, 11, 11, 12},  {10, 4, 1, 2, 2, 3},
        {11, 4, 1, 3, 2, 3},     {32, 1, 1, 32, 32, 32},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct knee_stages s = knee_plan_stages(rows[i].layers, rows[i].pp, rows[i].vp);
        assert_near(s.first, rows[i].first, 0);
        assert_near(s.last, rows[i].last, 0);
        assert_near(s.most, rows[i].most, 0);
    }
}

/* ---- Collectives ---- */

/* What is listed call by call adds up to what the parts of the step were priced with. */
TEST(traffic_adds_up)
{
    uint64_t dice = 29;
    struct knee_machine machine = machine_of("h100", "megatron-core");
    size_t seen = 0;
    for (int i = 0; i < 2000; i++) {
        struct knee_shape shape = some_shape(i);
        struct knee_plan plan;
        struct knee_plan_cost cost;
        struct knee_traffic rows[KNEE_TRAFFIC_MAX];
        double sum[KNEE_WIRES] = {0};
        if (!random_plan(&shape, &machine, &dice, &plan) || shape.extra_layers > 0)
            continue;
        if (plan.pp > 1 && fmod(shape.layers, plan.pp * plan.vp) != 0)
            continue;                          /* the busiest stage may be one with fewer layers */
        if (i % 3 == 0 && shape.experts > 1) { /* experts divided as tensors are, unequal loads */
            plan.etp = plan.tp;
            plan.imbalance = 1.3;
            if (knee_plan_complete(&plan, &shape, &machine, NULL))
                continue;
        }
        knee_plan_price(&shape, &machine, &plan, &cost);
        size_t count = knee_plan_traffic(&shape, &machine, &plan, rows, KNEE_TRAFFIC_MAX);
        assert_true(count <= KNEE_TRAFFIC_MAX);
        for (size_t r = 0; r < count; r++) {
            sum[rows[r].part - KNEE_PART_TP] += rows[r].calls * rows[r].each_s;
            if (rows[r].part == KNEE_PART_SHARD) /* experts are spread over the same GPUs */
                assert_near(rows[r].group.size * rows[r].group.stride, plan.shard_size * plan.tp,
                            1e-9);
        }
        for (int w = 0; w < KNEE_WIRES; w++)
            if (w != KNEE_PART_SHARD - KNEE_PART_TP && cost.wire_s[w] > 0) {
                assert_relative(sum[w], cost.wire_s[w], 1e-9); /* sharding has a rate of its own */
                seen++;
            }
    }
    assert_true(seen > 500);
}

/* ---- The search ---- */

static struct knee_shape small_shape(bool experts)
{
    struct knee_shape shape;
    struct knee_err err;
    knee_shape_init(&shape);
    shape.layers = 6;
    shape.hidden = 4096;
    shape.heads = 12;
    shape.kv_heads = 4;
    shape.head_dim = 128;
    shape.ffn = 11008;
    shape.vocab = 50000;
    shape.seq = 2048;
    shape.experts = experts ? 6 : 1;
    shape.topk = experts ? 2 : 1;
    assert_ok(knee_shape_complete(&shape, &err));
    return shape;
}

/* Loops over every value of every degree, asks the plan itself whether it can be, prices it with
 * nothing shared, and keeps the fastest that fits: in much memory, and in little, where
 * recomputation, sharding and offload decide. */
struct brute {
    const struct knee_shape *shape;
    const struct knee_machine *machines; /* [2]: much and little memory */
    double best[2];
};

/* Sharding, recomputation, offload, schedule ... of one set of degrees. */
static void brute_ways(struct brute *brute, const struct knee_plan *degrees)
{
    double ranks = degrees->gpus / degrees->tp / degrees->pp;
    double group = brute->machines->node_size / degrees->tp;
    for (int way = 0; way < 4 * 3 * 2 * 2 * 3 * 2 * 2; way++) {
        struct knee_plan plan = *degrees;
        struct knee_plan_cost cost;
        int rest = way;
        plan.shard = rest % 4, rest /= 4;
        plan.recompute = (int[]){0, 1, 3}[rest % 3], rest /= 3;
        plan.offload = rest % 2, rest /= 2;
        plan.seq_par = rest % 2, rest /= 2;
        plan.schedule = (int[]){0, 2, 3}[rest % 3];
        if ((plan.vp > 1 && rest % 3) || (plan.tp == 1 && rest / 3 % 2))
            continue; /* the same plan as another way */
        rest /= 3;
        plan.etp = rest % 2 ? plan.tp : 1, rest /= 2;
        bool in_node = rest % 2;
        if (plan.vp > 1)
            plan.schedule = KNEE_INTERLEAVED;
        if ((plan.tp == 1 && plan.seq_par > 0) || (plan.shard != KNEE_REPLICATE && ranks == 1))
            continue;
        if (in_node && (plan.shard != KNEE_ZERO3 || group <= 1 || group >= ranks))
            continue;
        plan.shard_size = in_node ? group : plan.shard == KNEE_REPLICATE ? 1 : ranks;
        if (knee_plan_complete(&plan, brute->shape, brute->machines, NULL))
            continue;
        knee_plan_price(brute->shape, brute->machines, &plan, &cost);
        double step_s = cost.step_s; /* memory decides what fits, not how long it takes */
        for (int little = 0; little < 2; little++) {
            if (!(step_s < brute->best[little]))
                continue;
            if (little)
                knee_plan_price(brute->shape, &brute->machines[1], &plan, &cost);
            assert_true(cost.step_s == step_s);
            if (cost.fits)
                brute->best[little] = step_s;
        }
    }
}

/* Do these degrees divide at all? Sharding, recomputation and offload never make them. */
static bool can_be(const struct brute *brute, const struct knee_plan *degrees)
{
    for (int way = 0; way < 6; way++) {
        struct knee_plan plan = *degrees;
        plan.schedule = plan.vp > 1 ? KNEE_INTERLEAVED : (int[]){0, 2, 3}[way % 3];
        plan.etp = way / 3 ? plan.tp : 1;
        plan.shard = plan.recompute = plan.offload = 0;
        plan.seq_par = 0;
        plan.shard_size = 1;
        if (!knee_plan_complete(&plan, brute->shape, brute->machines, NULL))
            return true;
    }
    return false;
}

static void brute_force(struct brute *brute, double gpus, double batch)
{
    struct knee_plan plan;
    knee_plan_init(&plan);
    plan.gpus = gpus;
    plan.global_batch = batch;
    plan.cp_gather = plan.drop_tokens = plan.jitter = 0;
    plan.dedup = brute->machines->rates.expert_dedup;
    plan.overlap_tp = plan.overlap_dp = plan.overlap_pp = plan.imbalance = plan.prefetch = 1;
    plan.compress = plan.local_steps = 1;
    plan.gradient_bytes = brute->machines->rates.gradient_bytes;
    for (plan.tp = 1; plan.tp <= gpus; plan.tp++)
        for (plan.cp = 1; plan.cp <= gpus; plan.cp++)
            for (plan.pp = 1; plan.pp <= gpus; plan.pp++) {
                if (fmod(gpus, plan.tp * plan.cp * plan.pp) != 0)
                    continue;
                for (plan.vp = 1; plan.vp <= brute->shape->layers; plan.vp++)
                    for (plan.ep = 1; plan.ep <= brute->shape->experts; plan.ep++)
                        for (plan.micro_batch = 1; plan.micro_batch <= batch; plan.micro_batch++)
                            if (fmod(batch, plan.micro_batch) == 0 && can_be(brute, &plan))
                                brute_ways(brute, &plan);
            }
}

TEST(search_finds_what_brute_force_finds)
{
    static const double counts[] = {1, 2, 4, 6, 8, 12};
    size_t most = UNIT_SANITIZED ? 3 : sizeof counts / sizeof *counts;
    for (int experts = 0; experts < 2; experts++)
        for (size_t i = 0; i < most; i++) {
            struct knee_shape shape = small_shape(experts);
            struct knee_machine machines[2] = {machine_of("a100", "megatron-core")};
            struct brute brute = {&shape, machines, {INFINITY, INFINITY}};
            machines[0].node_size = 4;
            machines[1] = machines[0];
            machines[1].memory_bytes = 12e9;
            brute_force(&brute, counts[i], 24);
            for (int little = 0; little < 2; little++) {
                struct knee_plan fixed;
                knee_plan_init(&fixed);
                fixed.gpus = counts[i];
                fixed.global_batch = 24;
                struct knee_search search = {
                    .shape = &shape, .machine = &machines[little], .fixed = &fixed, .top = 3};
                struct knee_search_result result;
                knee_search_result_init(&result);
                knee_search_run(&search, 0, knee_search_pieces(&search), &result);
                if (isinf(brute.best[little]))
                    assert_int_equal(result.count, 0);
                else
                    assert_near(result.best[0].cost.step_s, brute.best[little], 0);
            }
        }
}

static bool same_found(const struct knee_found *a, const struct knee_found *b)
{
    return memcmp(&a->plan, &b->plan, sizeof a->plan) == 0 && a->cost.step_s == b->cost.step_s &&
           a->cost.memory.total == b->cost.memory.total;
}

/* Bounds and the order of pieces change nothing: not the best few, not the front. */
TEST(pruning_and_dividing_change_nothing)
{
    static const struct {
        const char *model, *gpu;
        double gpus, batch;
    } cases[] = {{"llama3-8b", "h100", 16, 64},
                 {"llama3-70b", "a100", 64, 256},
                 {"qwen3-30b-a3b", "b200", 16, 512},
                 {"gpt3-175b", "h100", 128, 384},
                 {"llama3-405b", "gb200", 144, 288}};
    for (size_t i = 0; i < UNIT_SOME(sizeof cases / sizeof *cases); i++) {
        struct knee_shape shape = shape_named(cases[i].model);
        struct knee_machine machine = machine_of(cases[i].gpu, "megatron-core");
        struct knee_plan fixed;
        knee_plan_init(&fixed);
        fixed.gpus = cases[i].gpus;
        fixed.global_batch = cases[i].batch;
        struct knee_search search = {
            .shape = &shape, .machine = &machine, .fixed = &fixed, .top = 6, .brute = true};
        static struct knee_search_result brute, pruned, pieces, part;
        size_t count = knee_search_pieces(&search);
        knee_search_result_init(&brute);
        knee_search_run(&search, 0, count, &brute);
        search.brute = false;
        knee_search_result_init(&pruned);
        knee_search_run(&search, 0, count, &pruned);
        knee_search_result_init(&pieces);
        for (size_t from = 0; from < count; from += 37) { /* back to front */
            size_t at = (count - 1) / 37 * 37 - from;
            knee_search_result_init(&part);
            knee_search_run(&search, at, at + 37, &part);
            knee_search_merge(&search, &part, &pieces);
        }
        assert_true(brute.count > 0);
        assert_int_equal(brute.count, pruned.count);
        assert_int_equal(brute.count, pieces.count);
        for (size_t k = 0; k < brute.count; k++) {
            assert_true(same_found(&brute.best[k], &pruned.best[k]));
            assert_true(same_found(&brute.best[k], &pieces.best[k]));
        }
        for (int k = 0; k < KNEE_FRONT; k++) {
            assert_true(brute.front[k].cost.step_s == pruned.front[k].cost.step_s);
            assert_true(brute.front[k].cost.step_s == pieces.front[k].cost.step_s);
        }
        assert_near(brute.plans, brute.priced + brute.too_large, 0);
    }
}

TEST(what_is_fixed_stays)
{
    struct knee_shape shape = shape_named("llama3-70b");
    struct knee_machine machine = machine_of("h100", "megatron-core");
    struct knee_plan fixed;
    knee_plan_init(&fixed);
    fixed.gpus = 64;
    fixed.global_batch = 128;
    fixed.tp = 8;
    fixed.pp = 2;
    fixed.recompute = KNEE_FULL;
    fixed.shard = KNEE_ZERO1;
    struct knee_search search = {
        .shape = &shape, .machine = &machine, .fixed = &fixed, .top = 8, .brute = false};
    struct knee_search_result result;
    knee_search_result_init(&result);
    knee_search_run(&search, 0, knee_search_pieces(&search), &result);
    assert_true(result.count > 0);
    for (size_t i = 0; i < result.count; i++) {
        assert_near(result.best[i].plan.tp, 8, 0);
        assert_near(result.best[i].plan.pp, 2, 0);
        assert_int_equal(result.best[i].plan.recompute, KNEE_FULL);
        assert_int_equal(result.best[i].plan.shard, KNEE_ZERO1);
    }
}

TEST(remedies_fit_and_are_sorted)
{
    struct knee_shape shape = shape_named("llama3-70b");
    struct knee_machine machine = machine_of("a100", "megatron-core");
    struct knee_plan plan = plan_of(&shape, &machine, 64, 256, 8, 2, 1);
    struct knee_plan_cost cost;
    struct knee_remedy remedies[KNEE_REMEDIES_MAX];
    plan.shard = KNEE_REPLICATE;
    knee_plan_price(&shape, &machine, &plan, &cost);
    assert_false(cost.fits);
    size_t count = knee_plan_remedies(&shape, &machine, &plan, remedies, KNEE_REMEDIES_MAX);
    assert_true(count >= 2);
    struct knee_remedy first[2] = {[1] = {.what = "untouched"}};
    assert_int_equal(knee_plan_remedies(&shape, &machine, &plan, first, 1), count);
    assert_string_equal(first[0].what, remedies[0].what);
    assert_string_equal(first[1].what, "untouched");
    struct knee_operation ops[2] = {[1] = {.name = "untouched"}};
    assert_true(knee_plan_ops(&shape, &machine, &plan, KNEE_OPERATIONS_DENSE, ops, 1) > 1);
    assert_string_equal(ops[1].name, "untouched");
    for (size_t i = 0; i < count; i++) {
        assert_true(remedies[i].cost.fits);
        assert_null(knee_plan_objection(&remedies[i].plan, &shape, &machine));
        if (i > 0)
            assert_true(remedies[i].cost.step_s >= remedies[i - 1].cost.step_s);
    }
}

static bool whole(double value)
{
    return value >= 1 && value == floor(value);
}

static void assert_remedies(const struct knee_shape *shape, const struct knee_machine *machine,
                            const struct knee_plan *plan)
{
    struct knee_remedy all[KNEE_REMEDIES_MAX], few[KNEE_REMEDIES_MAX];
    size_t count = knee_plan_remedies(shape, machine, plan, all, KNEE_REMEDIES_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct knee_plan *p = &all[i].plan;
        assert_true(all[i].cost.fits);
        assert_null(knee_plan_objection(p, shape, machine));
        assert_true(i == 0 || all[i].cost.step_s >= all[i - 1].cost.step_s);
        if (!whole(p->micro_batch) || !whole(p->dp) || !whole(p->shard_size) || !whole(p->vp))
            fail_msg("%s: micro-batch %g, dp %g, shards %g, vp %g", all[i].what, p->micro_batch,
                     p->dp, p->shard_size, p->vp);
        assert_true(p->vp <= 1 || p->schedule == KNEE_INTERLEAVED);
    }
    for (size_t room = 0; room < count; room++) { /* the first ones, whatever room there is */
        assert_int_equal(knee_plan_remedies(shape, machine, plan, few, room), count);
        for (size_t i = 0; i < room; i++)
            assert_string_equal(few[i].what, all[i].what);
    }
}

/* Whatever plan does not fit, what is offered can be run as it stands: no half sequences. */
TEST(remedies_can_be_run)
{
    uint64_t dice = 41;
    struct knee_machine machine = machine_of("h100", "megatron-core");
    int asked = 0;
    for (int i = 0; i < (UNIT_SANITIZED ? 200 : 800); i++) {
        struct knee_shape shape = some_shape(i);
        struct knee_plan plan;
        struct knee_plan_cost cost;
        if (!random_plan(&shape, &machine, &dice, &plan))
            continue;
        plan.micro_batch *= i % 2 ? 3 : 1;
        plan.global_batch *= i % 2 ? 3 : 1;
        machine.memory_bytes = between(&dice, 2e9, 2e11);
        knee_plan_price(&shape, &machine, &plan, &cost);
        if (knee_plan_objection(&plan, &shape, &machine) || cost.fits)
            continue;
        assert_remedies(&shape, &machine, &plan);
        asked++;
    }
    assert_true(asked > 20);
}

/* ---- The judge ---- */

TEST(advantage_is_the_largest_difference)
{
    struct knee_plan_cost a = {.step_s = 10}, b = {.step_s = 12};
    a.part_s[KNEE_PART_GEMM] = 8;
    a.part_s[KNEE_PART_TP] = 2;
    b.part_s[KNEE_PART_GEMM] = 7;
    b.part_s[KNEE_PART_BUBBLE] = 5;
    struct knee_advantage best = knee_plan_advantage(&a, &b);
    assert_int_equal(best.part, KNEE_PART_BUBBLE);
    assert_near(best.seconds, 5, 0);
    assert_true(!best.none && knee_plan_advantage(&a, &a).none);
    assert_int_equal(knee_plan_binding(&a), KNEE_PART_TP);
    assert_int_equal(knee_plan_binding(&b), KNEE_PART_BUBBLE);
}

/* ---- Counts: what a search that fails or is stopped leaves behind ---- */

struct turn {
    size_t calls, at; /* at: the call that goes wrong; 0: none */
    bool stops;
};

/* 24 GPUs and more have a plan; below, one that lacks memory or one that only risks it. */
static knee_status search_in_turn(struct knee_counts_search *s, const struct knee_search *search,
                                  struct knee_search_result *out, struct knee_err *err)
{
    struct turn *turn = s->ctx;
    double gpus = search->fixed->gpus;
    memset(out, 0, sizeof *out);
    if (++turn->calls == turn->at && !turn->stops)
        return knee_fail(err, KNEE_SYSTEM, "", "as asked");
    s->stopped = s->stopped || turn->calls == turn->at;
    out->count = gpus >= 24 || (gpus >= 20 && search->memory_risk == 0);
    out->best[0].cost.tokens_per_s = 1000 * gpus;
    out->nearest_valid = !out->count && gpus >= 12;
    out->nearest.cost.memory.total = gpus >= 20 ? 0 : 2 * s->answer->machine.memory_bytes;
    return KNEE_OK;
}

TEST(counts_end_when_told)
{
    static const double counts[] = {12, 24, 48, 100};
    enum { ROWS = sizeof counts / sizeof *counts };
    struct knee_plan_row *rows = calloc(ROWS, sizeof *rows);
    struct knee_plan_answer *a = calloc(1, sizeof *a);
    assert_non_null(rows);
    assert_non_null(a);
    for (int stops = 0; stops < 2; stops++)
        for (size_t at = 0, calls = 1; at <= calls; at++) {
            struct turn turn = {.at = at, .stops = stops};
            struct knee_err err = {0};
            memset(a, 0, sizeof *a);
            a->machine = machine_of("h100", "megatron-core");
            knee_plan_init(&a->fixed);
            a->rows = rows;
            a->row_count = ROWS;
            a->chosen = 1;
            for (size_t i = 0; i < ROWS; i++)
                rows[i] = (struct knee_plan_row){.gpus = counts[i]};
            struct knee_counts_search s = {.answer = a,
                                           .search = search_in_turn,
                                           .ctx = &turn,
                                           .top = 1,
                                           .parts = 1,
                                           .compared = true};
            knee_status status = knee_plan_search_counts(&s, &err);
            if (at == 0) { /* nothing goes wrong: the smallest count that fits is 20, at a risk */
                calls = turn.calls;
                assert_ok(status);
                assert_near(a->smallest_gpus, 20, 0);
                assert_near(a->baseline_tokens_per_s, 1000 * a->baseline_gpus, 1e-9);
            } else {
                assert_int_equal(status, stops ? KNEE_OK : KNEE_SYSTEM);
                assert_true(turn.calls == at || (stops && turn.calls == at + 1)); /* the last one */
                assert_int_equal(s.stopped, stops);
            }
        }
    for (int stops = 0; stops < 3; stops++) {
        struct turn turn = {.at = stops < 2, .stops = stops};
        struct knee_err err = {0};
        struct knee_counts_search s = {.answer = a, .search = search_in_turn, .ctx = &turn};
        a->free_known = false;
        assert_int_equal(knee_plan_search_free(&s, &err), stops ? KNEE_OK : KNEE_SYSTEM);
        assert_int_equal(a->free_known, stops == 2);
    }
    free(rows);
    free(a);
}

/* Adapters train no expert; without them every parameter of a layer is trained. */
TEST(what_a_layer_trains)
{
    struct knee_shape shape = shape_named("qwen3-235b-a22b");
    struct knee_footprint f = {.common = {1, 2}, .experts = {0, 8}, .adapter = {0.5, 0.25}};
    double common = 0, experts = 0;
    knee_layer_trained(&f, &shape, &common, &experts);
    assert_near(common + experts, 10, 1e-12);
    shape.lora_rank = 16;
    knee_layer_trained(&f, &shape, &common, &experts);
    assert_near(common, 0.25, 1e-12);
    assert_near(experts, 0, 0);
}

TEST(unknown_precisions_are_refused)
{
    struct knee_plan plan;
    struct knee_err err;
    knee_plan_init(&plan);
    assert_int_equal(knee_keys_set(&knee_plan_keys, &plan, "precision", "fp17", KNEE_FLAG, &err),
                     KNEE_USAGE);
    assert_int_equal(knee_keys_set(&knee_plan_keys, &plan, "precision", "FP8", KNEE_FLAG, &err),
                     KNEE_OK);
    assert_int_equal(plan.precision, KNEE_FP8);
}
