/* SPDX-License-Identifier: MIT */
/*
 * What a forecast rests on: which software counts as known, which published runs are put beside it,
 * and three mechanisms that measured runs told apart.
 */
#include "unit.h"

#include "collective/collective.h"
#include "job/plan.h"
#include "job/profile.h"
#include "predict/plan/block.h"
#include "predict/plan/published_runs.h"

static struct knee_platform platform_of(const char *gpu, const char *profile,
                                        struct knee_machine *machine)
{
    struct knee_platform platform;
    struct knee_err err;
    knee_platform_init(&platform);
    if (knee_keys_set(&knee_platform_keys, &platform, "gpu", gpu, KNEE_FLAG, &err) ||
        knee_keys_set(&knee_platform_keys, &platform, "profile", profile, KNEE_FLAG, &err) ||
        knee_machine_init(&platform, NULL, machine, &err))
        fail_msg("%s: %s", gpu, err.what);
    return platform;
}

static struct knee_plan plan_of(const struct knee_shape *shape, const struct knee_machine *machine,
                                double gpus, double cp, double ep)
{
    struct knee_plan plan;
    struct knee_err err;
    knee_plan_init(&plan);
    plan.gpus = gpus;
    plan.global_batch = gpus;
    plan.micro_batch = plan.tp = plan.pp = plan.vp = 1;
    plan.cp = cp;
    plan.ep = ep;
    plan.shard = KNEE_ZERO1;
    plan.recompute = KNEE_KEEP;
    if (knee_plan_complete(&plan, shape, machine, &err))
        fail_msg("%s", err.what);
    return plan;
}

static double step_of(const struct knee_shape *shape, const struct knee_machine *machine,
                      const struct knee_plan *plan)
{
    struct knee_plan_cost cost;
    knee_plan_price(shape, machine, plan, &cost);
    return cost.step_s;
}

/* One source cannot tell its software from its cluster. */
TEST(known_software_has_two_sources)
{
    struct knee_machine machine;
    platform_of("h100", "nemo", &machine);
    assert_int_equal(machine.basis, KNEE_BASIS_KNOWN);
    platform_of("h100", "torchtitan", &machine);
    assert_int_equal(machine.basis, KNEE_BASIS_ASSUMED);
    platform_of("l40s", "nemo", &machine);
    assert_int_equal(machine.basis, KNEE_BASIS_ASSUMED);
}

TEST(unusual_plans_are_not_known)
{
    struct knee_machine machine;
    platform_of("h100", "nemo", &machine);
    struct knee_shape shape = shape_named("llama3-8b");
    struct knee_plan plan = plan_of(&shape, &machine, 8, 1, 1);
    struct knee_plan_cost known, host;
    knee_plan_price(&shape, &machine, &plan, &known);
    plan.offload = KNEE_OFFLOAD_OPTIMIZER;
    knee_plan_price(&shape, &machine, &plan, &host);
    assert_true(host.high_s / host.low_s > known.high_s / known.low_s);
    assert_true(known.high_s / known.low_s < 1.4);
}

/* A graph of layers leaves the experts' launches, one of the whole step takes them. */
TEST(graphs_of_layers_leave_experts)
{
    struct knee_machine machine;
    platform_of("b200", "megatron-bridge", &machine);
    struct knee_shape shape = shape_named("qwen3-30b-a3b");
    struct knee_plan plan = plan_of(&shape, &machine, 8, 1, 8);
    struct knee_plan_cost cost[3];
    double graphs[] = {0, 0.9, 0.98};
    for (int i = 0; i < 3; i++) {
        plan.graphs = graphs[i];
        knee_plan_price(&shape, &machine, &plan, &cost[i]);
    }
    double experts = 3 * shape.layers * shape.experts / 8 * machine.rates.expert_launch_s;
    assert_true(cost[1].step_s > experts);
    assert_true(cost[2].part_s[KNEE_PART_HOST] < 0.1 * cost[1].part_s[KNEE_PART_HOST]);
}

TEST(graphs_take_the_launches_of_rings)
{
    struct knee_machine machine;
    platform_of("gb200", "nemo", &machine);
    struct knee_shape shape = shape_named("llama3-8b");
    struct knee_plan plan = plan_of(&shape, &machine, 8, 8, 1);
    struct knee_plan_cost plain, graphs;
    knee_plan_price(&shape, &machine, &plan, &plain);
    plan.graphs = 1;
    knee_plan_price(&shape, &machine, &plan, &graphs);
    assert_true(graphs.part_s[KNEE_PART_CP] < 0.5 * plain.part_s[KNEE_PART_CP]);
}

/* Attention with sinks is fused: twice the sequence costs the same per token, nearly; biases of
 * experts cost what they move. */
TEST(biases_of_experts_cost)
{
    struct knee_machine machine;
    platform_of("gb200", "megatron-bridge", &machine);
    struct knee_shape shape = shape_named("gpt-oss-120b"), plain = shape, longer = shape;
    struct knee_plan plan = plan_of(&shape, &machine, 64, 1, 64);
    double step = step_of(&shape, &machine, &plan);
    plain.bias = 1;
    longer.seq *= 2;
    assert_true(step_of(&plain, &machine, &plan) < 0.9 * step);
    assert_true(step_of(&longer, &machine, &plan) < 2.1 * step);
    machine.rates.expert_bias = 0;
    assert_relative(step_of(&shape, &machine, &plan), step_of(&plain, &machine, &plan), 0.01);
}

/* 20 racks of GB200, 1 GiB: 9.8 ms was measured, and a tree of hosts would be four times faster. */
TEST(racks_are_joined_by_rings)
{
    struct knee_machine machine;
    platform_of("gb200", "nemo", &machine);
    struct knee_group racks = {1440, 1, false};
    double s =
        knee_collective_s(&machine.cluster, KNEE_OP_ALL_REDUCE, racks, 1024.0 * (1 << 20), NULL);
    assert_true(s > 7e-3 && s < 13e-3);
}

TEST(published_runs_are_put_beside)
{
    struct knee_machine machine;
    struct knee_platform platform = platform_of("h100", "nemo", &machine);
    const char *models[] = {"llama3-70b", "qwen3-235b-a22b"};
    for (size_t i = 0; i < 2; i++) {
        struct knee_shape shape = shape_named(models[i]);
        struct knee_plan plan = plan_of(&shape, &machine, 64, 1, i ? 8 : 1);
        struct knee_alike alike[KNEE_ALIKE_MAX];
        plan.precision = i ? KNEE_FP8 : plan.precision;
        assert_int_equal(knee_alike_find(&shape, &platform, &plan, 1e-3, alike), KNEE_ALIKE_MAX);
        assert_string_equal(alike[0].model, models[i]);
        assert_string_equal(alike[0].gpu, "h100");
        double difference = alike[0].difference;
        knee_alike_find(&shape, &platform, &plan, 2e-3, alike);
        assert_relative(1 + alike[0].difference, 2 * (1 + difference), 1e-9);
        assert_int_equal(knee_alike_find(&shape, &platform, &plan, NAN, alike), 0);
    }
}
