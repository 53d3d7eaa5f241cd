/* SPDX-License-Identifier: MIT */
/*
 * The simulator: the engine by hand, laws of every run (order, dependencies, one thing at a time),
 * agreement with the closed path, and the trace that is written and read back.
 */
#include "trace_help.h"

#include "knee_out.h"

#include "job/plan.h"
#include "job/profile.h"
#include "predict/simulate/tasks.h"

/* ---- The engine ---- */

static struct knee_task task_of(int32_t stage, enum knee_stream stream, enum knee_lane lane,
                                enum knee_task_kind kind, double work_ns)
{
    return (struct knee_task){.work_ns = work_ns,
                              .stage = stage,
                              .next_edge = -1,
                              .called_after = -1,
                              .received_by = -1,
                              .stream = (unsigned char)stream,
                              .lane = (unsigned char)lane,
                              .kind = (unsigned char)kind};
}

TEST(links_are_shared_and_compute_is_slowed)
{
    /* two transfers on the network, one of 100 and one of 300: 200 for the first, then 200 alone */
    struct knee_task tasks[] = {
        task_of(0, KNEE_STREAM_DP, KNEE_LANE_NETWORK, KNEE_TASK_COMM, 100),
        task_of(0, KNEE_STREAM_PP, KNEE_LANE_NETWORK, KNEE_TASK_COMM, 300),
        task_of(0, KNEE_STREAM_TP, KNEE_LANE_NODE, KNEE_TASK_COMM, 50), /* another link */
        /* 200 beside gradients at 1/1.25, then the rest at full speed: 160 + 140 = 300 */
        task_of(0, KNEE_STREAM_COMPUTE, KNEE_LANE_GPU, KNEE_TASK_COMPUTE, 300),
        /* fills the GPU when the other compute has ended */
        task_of(0, KNEE_STREAM_LATER, KNEE_LANE_GPU, KNEE_TASK_COMPUTE, 10),
    };
    tasks[0].slows = true;
    struct knee_tasks all = {.task = tasks, .count = 5, .stages = 1, .slowdown = 0.25};
    int64_t end_ns;
    assert_true(knee_tasks_run(&all, &end_ns));
    assert_int_equal(tasks[0].end_ns, 200);
    assert_int_equal(tasks[1].end_ns, 400);
    assert_int_equal(tasks[2].end_ns, 50);
    assert_int_equal(tasks[3].end_ns, 200 + 140);
    assert_int_equal(tasks[4].start_ns, 340);
    assert_int_equal(end_ns, 400);
}

TEST(tasks_wait_for_other_stages)
{
    struct knee_task tasks[] = {
        task_of(0, KNEE_STREAM_COMPUTE, KNEE_LANE_GPU, KNEE_TASK_COMPUTE, 70),
        task_of(1, KNEE_STREAM_COMPUTE, KNEE_LANE_GPU, KNEE_TASK_COMPUTE, 30),
        task_of(1, KNEE_STREAM_LATER, KNEE_LANE_GPU, KNEE_TASK_COMPUTE, 20),
    };
    struct knee_edge edge = {.to = 1, .next = -1};
    tasks[0].next_edge = 0;
    tasks[1].waits = 1;
    tasks[1].gap = true;
    struct knee_tasks all = {
        .task = tasks, .count = 3, .edge = &edge, .edge_count = 1, .stages = 2};
    int64_t end_ns;
    assert_true(knee_tasks_run(&all, &end_ns));
    assert_int_equal(tasks[2].start_ns, 0); /* the gap is filled */
    assert_int_equal(tasks[1].start_ns, 70);
    assert_int_equal(end_ns, 100);
    tasks[0].waits = 1; /* nobody ends it: said, not waited for */
    assert_false(knee_tasks_run(&all, &end_ns));
}

/* What meets begins when the last has come; an edge may lag, and count from a task's start. */
TEST(tasks_meet)
{
    struct knee_task tasks[] = {
        task_of(0, 0, KNEE_LANE_OWN, KNEE_TASK_COMPUTE, 100),
        task_of(1, 0, KNEE_LANE_OWN, KNEE_TASK_COMPUTE, 30),
        task_of(0, 1, KNEE_LANE_OWN, KNEE_TASK_COMM, 50),
        task_of(1, 1, KNEE_LANE_OWN, KNEE_TASK_COMM, 40),
        task_of(1, 0, KNEE_LANE_OWN, KNEE_TASK_COMPUTE, 5),
    };
    struct knee_edge edges[] = {
        {.to = 2, .next = -1, .lag_ns = 7},
        {.to = 3, .next = -1, .lag_ns = 2, .from_start = true},
        {.to = 4, .next = -1},
    };
    struct knee_meet meet = {.first = 2, .count = 2};
    tasks[0].next_edge = 0;
    tasks[1].next_edge = 1;
    tasks[1].starts_edges = true;
    tasks[3].next_edge = 2;
    tasks[2].waits = tasks[3].waits = tasks[4].waits = 1;
    tasks[2].meet = tasks[3].meet = 1;
    tasks[2].next_member = 3;
    tasks[3].next_member = -1;
    tasks[3].delay_ns = 4;
    struct knee_tasks all = {.task = tasks,
                             .count = 5,
                             .edge = edges,
                             .edge_count = 3,
                             .meets = &meet,
                             .meet_count = 1,
                             .stages = 2,
                             .streams = 2,
                             .apart = true};
    int64_t end_ns;
    assert_true(knee_tasks_run(&all, &end_ns));
    assert_int_equal(tasks[3].start_ns, 6); /* 2 after the start of task 1, then its own delay */
    assert_int_equal(tasks[2].start_ns, 107);
    assert_int_equal(tasks[2].end_ns, 157);
    assert_int_equal(tasks[3].end_ns, 147); /* its own part of what they do together */
    assert_int_equal(tasks[4].start_ns, 147);
    assert_int_equal(end_ns, 157);
}

/* Two stages on one GPU get half of it each while both have work there, waiting work included. */
TEST(stages_share_a_gpu)
{
    struct knee_task tasks[] = {
        task_of(0, 0, KNEE_LANE_OWN, KNEE_TASK_COMPUTE, 100),
        task_of(1, 0, KNEE_LANE_OWN, KNEE_TASK_COMPUTE, 30),
        task_of(1, 0, KNEE_LANE_OWN, KNEE_TASK_COPY, 50),
    };
    struct knee_tasks all = {
        .task = tasks, .count = 3, .stages = 2, .streams = 1, .apart = true, .one_gpu = true};
    int64_t end_ns;
    assert_true(knee_tasks_run(&all, &end_ns));
    assert_int_equal(tasks[1].end_ns, 60);
    assert_int_equal(tasks[0].end_ns, 130); /* alone from 60 on: copies do not hold the GPU */
    assert_int_equal(tasks[2].end_ns, 110);
}

/* ---- Laws on random plans ---- */

static bool random_plan(const struct knee_shape *shape, const struct knee_machine *machine,
                        uint64_t *dice, struct knee_plan *plan)
{
    knee_plan_init(plan);
    static const double stages[] = {1, 2, 3, 4, 6, 8};
    plan->gpus = 48;
    plan->tp = exp2(floor(chance(dice) * 4));
    plan->pp = stages[(int)(chance(dice) * 6)];
    plan->micro_batch = exp2(floor(chance(dice) * 2));
    plan->ep = shape->experts > 1 ? 4 : 1;
    plan->vp = plan->pp > 1 && chance(dice) < 0.4 ? 2 : 1;
    /* any number of micro-batches; unequal pieces of layers are what nobody runs */
    plan->global_batch =
        48 / (plan->tp * plan->pp) * plan->micro_batch * floor(1 + 32 * chance(dice));
    if (plan->vp > 1 && fmod(shape->layers, plan->pp * plan->vp) != 0)
        return false;
    plan->shard = (int)(chance(dice) * KNEE_SHARDS);
    plan->recompute = chance(dice) < 0.3 ? KNEE_FULL : KNEE_KEEP;
    if (plan->vp == 1)
        plan->schedule = (int[]){KNEE_1F1B, KNEE_GPIPE, KNEE_ZERO_BUBBLE}[(int)(chance(dice) * 3)];
    return knee_plan_complete(plan, shape, machine, NULL) == KNEE_OK;
}

static const char *const models[] = {"llama3-8b", "gpt3-175b", "qwen3-30b-a3b", "llama3-70b"};

static int by_stage_and_start(const void *a, const void *b)
{
    const struct knee_task *x = a, *y = b;
    if (x->stage != y->stage)
        return x->stage < y->stage ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* The GPU computes one thing at a time, put off or not. Sorts the tasks. */
static void assert_one_at_a_time(struct knee_tasks *t)
{
    const struct knee_task *before = NULL;
    qsort(t->task, t->count, sizeof *t->task, by_stage_and_start);
    for (size_t k = 0; k < t->count; k++) {
        const struct knee_task *task = &t->task[k];
        if (task->kind != KNEE_TASK_COMPUTE)
            continue;
        assert_true(!before || before->stage != task->stage || task->start_ns >= before->end_ns);
        before = task;
    }
}

/* What few people run: no overlap, gathers further ahead than is kept, adapters, host memory,
 * halves of attention, layers that do not divide. */
static bool odd_plan(struct knee_shape *shape, struct knee_machine *machine, uint64_t *dice,
                     struct knee_plan *plan)
{
    static const double ahead[] = {0, 1, 2, 3, 4, 9};
    static const char *const odd[] = {"deepseek-v3", "llama3-405b", "gpt2", "qwen3-30b-a3b"};
    static const double stages[] = {1, 2, 4, 8};
    *shape = shape_named(odd[(int)(chance(dice) * 4)]);
    shape->lora_rank = chance(dice) < 0.3 ? 16 : 0;
    machine->rates.balanced_stages = chance(dice) < 0.5;
    machine->rates.dp_exposed = chance(dice) < 0.3 ? 1.5 : 0.2;
    knee_plan_init(plan);
    plan->gpus = 64;
    plan->tp = exp2(floor(chance(dice) * 3));
    plan->pp = stages[(int)(chance(dice) * 4)];
    plan->cp = chance(dice) < 0.3 ? 2 : 1;
    plan->vp = plan->pp > 1 && chance(dice) < 0.3 ? 1 + floor(chance(dice) * 8) : 1;
    plan->ep = shape->experts > 1 ? exp2(floor(chance(dice) * 3)) : 1;
    plan->micro_batch = 1;
    plan->global_batch =
        64 / (plan->tp * plan->pp * plan->cp) * floor(1 + (UNIT_SANITIZED ? 8 : 24) * chance(dice));
    plan->shard = (int)(chance(dice) * KNEE_SHARDS);
    plan->prefetch = ahead[(int)(chance(dice) * 6)];
    plan->recompute = (int)(chance(dice) * KNEE_RECOMPUTES);
    plan->offload = chance(dice) < 0.4;
    plan->overlap_dp = chance(dice) < 0.5;
    plan->overlap_pp = chance(dice) < 0.5;
    plan->overlap_tp = chance(dice) < 0.5;
    plan->seq_par = plan->tp > 1 && chance(dice) < 0.5;
    plan->local_steps = chance(dice) < 0.2 ? 4 : 1;
    if (plan->vp <= 1)
        plan->schedule = (int[]){KNEE_1F1B, KNEE_GPIPE, KNEE_ZERO_BUBBLE}[(int)(chance(dice) * 3)];
    return knee_plan_complete(plan, shape, machine, NULL) == KNEE_OK;
}

/* Nothing before what it waits for, streams in order, one thing at a time, every layer of every
 * micro-batch once each way. */
static void assert_in_order(struct knee_tasks *t, const struct knee_shape *shape,
                            const struct knee_plan *plan)
{
    int64_t end_ns, stream_free[64][KNEE_STREAMS] = {{0}};
    double forward = 0, backward = 0;
    assert_true(knee_tasks_run(t, &end_ns));
    for (size_t k = 0; k < t->count; k++) {
        const struct knee_task *task = &t->task[k];
        assert_int_equal(task->waits, 0);
        assert_true(task->end_ns >= task->start_ns + (int64_t)task->work_ns - 1);
        assert_true(task->end_ns <= end_ns);
        for (int32_t e = task->next_edge; e >= 0; e = t->edge[e].next)
            assert_true(t->task[t->edge[e].to].start_ns >= task->end_ns);
        int64_t *free_ns = &stream_free[task->stage][task->stream];
        assert_true(task->start_ns >= *free_ns); /* in order, one after the other */
        *free_ns = task->end_ns;
        forward += strcmp(task->name, "forward layer") == 0;
        backward += strcmp(task->name, "backward layer") == 0;
    }
    assert_near(forward, shape->layers * knee_plan_micro_batches(plan), 0);
    assert_near(backward, forward, 0);
    assert_one_at_a_time(t);
}

TEST(every_run_keeps_its_order)
{
    uint64_t dice = 23;
    struct knee_machine usual = machine_of("h100", NULL);
    int done = 0;
    for (int i = 0; i < (UNIT_SANITIZED ? 90 : 130); i++) {
        struct knee_shape shape = shape_named(models[i % 4]);
        struct knee_machine machine = usual;
        struct knee_plan plan;
        struct knee_tasks t;
        struct knee_err err;
        bool can_be = i < 60 ? random_plan(&shape, &machine, &dice, &plan)
                             : odd_plan(&shape, &machine, &dice, &plan);
        if (!can_be)
            continue;
        if (knee_tasks_init(&t, &shape, &machine, &plan, NULL, &err))
            fail_msg("%s", err.what);
        assert_in_order(&t, &shape, &plan);
        knee_tasks_release(&t);
        done++;
    }
    assert_true(done > 50);
}

/* Memory runs out at one place after the other: said each time, nothing is lost, and the step that
 * comes out in the end is the one with all the memory there is. */
TEST(memory_may_run_out)
{
    struct knee_machine machine = machine_of("h100", NULL);
    struct knee_shape shape = shape_named("gpt2");
    for (int pipeline = 0; pipeline < 2; pipeline++) {
        struct knee_plan plan;
        struct knee_trace whole, trace;
        struct knee_err err;
        knee_status status = KNEE_SYSTEM;
        knee_plan_init(&plan);
        plan.gpus = 4;
        plan.pp = pipeline ? 2 : 1;
        plan.vp = pipeline ? 3 : 1;
        plan.shard = pipeline ? KNEE_ZERO1 : KNEE_ZERO3;
        plan.micro_batch = 1;
        plan.global_batch =
            pipeline && !UNIT_SANITIZED ? 48 : 8; /* more tasks than one piece has */
        assert_ok(knee_plan_complete(&plan, &shape, &machine, &err));
        assert_ok(knee_simulate(&shape, &machine, &plan, NULL, &whole, &err));
        FOR_EACH_FAILURE(f) {
            status = knee_simulate(&shape, &machine, &plan, &f.alloc, &trace, &err);
            if (status) {
                assert_int_equal(status, KNEE_SYSTEM);
                assert_true(strlen(err.what) > 10);
            } else {
                assert_true(trace.steps[0].end_ns == whole.steps[0].end_ns);
                knee_trace_release(&trace);
            }
        }
        assert_ok(status);
        knee_trace_release(&whole);
    }
}

/* The closed path and the events say the same where both apply. They differ where gathers take as
 * long as the compute beside them: the closed path rounds that corner by up to 2^(1/4), as measured
 * runs do, while events of fixed length fit into each other. And under zero-bubble schedules, which
 * leave gradients to the end, where they cannot hide; only the events see that. */
TEST(simulation_agrees_with_the_closed_path)
{
    uint64_t dice = 29;
    struct knee_machine machines[2] = {machine_of("h100", NULL), machine_of("h100", NULL)};
    machines[1].rates.tp_wait_s = 2e-3; /* hosts that wait for each other */
    machines[1].rates.tp_wait_rank_s = 7e-4;
    machines[1].rates.tp_hop_s = 1e-4;
    struct {
        double low, high, sum;
        int count;
    } seen[2] = {{0}}; /* others, zero3 */
    for (int i = 0; i < (UNIT_SANITIZED ? 120 : 400); i++) {
        struct knee_shape shape = shape_named(models[i % 4]);
        struct knee_plan plan;
        struct knee_trace trace;
        struct knee_err err;
        struct knee_plan_cost cost;
        struct knee_machine machine = machines[i / 4 % 2];
        if (!random_plan(&shape, &machine, &dice, &plan))
            continue;
        if (knee_simulate(&shape, &machine, &plan, NULL, &trace, &err))
            fail_msg("%s", err.what);
        knee_plan_price(&shape, &machine, &plan, &cost);
        double error = knee_plan_simulated_s(&cost) * 1e9 / (double)trace.steps[0].end_ns - 1;
        int kind = plan.shard == KNEE_ZERO3 && plan.shard_size > 1;
        seen[kind].low = fmin(seen[kind].low, error);
        seen[kind].high = fmax(seen[kind].high, error);
        seen[kind].sum += fabs(error);
        seen[kind].count++;
        knee_trace_release(&trace);
    }
    const struct {
        double mean, low, high;
    } bounds[2] = {{0.006, -0.1, 0.05}, {0.03, -0.2, 0.19}};
    for (int kind = 0; kind < 2; kind++) {
        double mean = seen[kind].sum / seen[kind].count;
        assert_true(seen[kind].count > (UNIT_SANITIZED ? 5 : 30));
        if (mean > bounds[kind].mean || seen[kind].low < bounds[kind].low ||
            seen[kind].high > bounds[kind].high)
            fail_msg("%s: off by %.4f on average, %+.3f to %+.3f", kind ? "zero3" : "others", mean,
                     seen[kind].low, seen[kind].high);
    }
}

/* Without communication and fixed times a pipeline of equal stages is (M + pp - 1) passes. */
TEST(an_equal_pipeline_is_exact)
{
    struct knee_shape shape = shape_named("llama3-8b");
    struct knee_machine machine = machine_of("h100", NULL);
    shape.vocab = 1;
    machine.rates.micro_batch_s = machine.rates.step_s = machine.rates.pp_exposed = 0;
    knee_cluster_free_latency(&machine.cluster);
    machine.cluster.levels[0].bytes_per_s = machine.cluster.levels[1].bytes_per_s = 1e30;
    for (double pp = 2; pp <= 8; pp *= 2)
        for (double batch = 8; batch <= 64; batch *= 2) {
            struct knee_plan plan;
            OWNED(knee_trace) trace;
            struct knee_err err;
            struct knee_plan_cost cost;
            knee_plan_init(&plan);
            plan.gpus = plan.pp = pp;
            plan.global_batch = batch;
            plan.micro_batch = 1;
            assert_ok(knee_plan_complete(&plan, &shape, &machine, &err));
            assert_ok(knee_simulate(&shape, &machine, &plan, NULL, &trace, &err));
            knee_plan_price(&shape, &machine, &plan, &cost);
            assert_relative((double)trace.steps[0].end_ns, knee_plan_simulated_s(&cost) * 1e9,
                            5e-4);
            assert_int_equal(trace.rank_count, (size_t)pp);
        }
}

/* ---- There and back ---- */

struct memory {
    char *data;
    size_t length;
};

static bool put(void *ctx, const char *data, size_t size)
{
    struct memory *memory = ctx;
    char *more = realloc(memory->data, memory->length + size);
    if (!more)
        return false;
    memory->data = more;
    memcpy(more + memory->length, data, size);
    memory->length += size;
    return true;
}

/* A simulated step written as a trace and read back is the same step, to the nanosecond. */
TEST(written_and_read_back_it_is_the_same)
{
    uint64_t dice = 31;
    struct knee_machine machine = machine_of("h100", NULL);
    int done = 0;
    for (int i = 0; i < 24; i++) {
        struct knee_shape shape = shape_named(models[i % 4]);
        struct knee_plan plan;
        struct knee_trace first, second;
        struct knee_account before, after;
        struct knee_err err;
        struct memory memory = {0};
        if (!random_plan(&shape, &machine, &dice, &plan))
            continue;
        assert_ok(knee_simulate(&shape, &machine, &plan, NULL, &first, &err));
        assert_ok(knee_account(&first, 1, NULL, &before, &err));
        assert_int_equal(before.largest_shift_ns, 0);
        assert_true(knee_write_perfetto(&before, (struct knee_sink){put, &memory}, NULL));
        if (read_bytes(memory.data, memory.length, "back", &second, &err))
            fail_msg("%s", err.what);
        assert_ok(knee_account(&second, 1, NULL, &after, &err));
        assert_int_equal(before.rank_count, after.rank_count);
        assert_int_equal(before.rank_count, (size_t)plan.pp);
        for (size_t r = 0; r < before.rank_count; r++) {
            const struct knee_ledger *a = &before.ranks[r].ledger, *b = &after.ranks[r].ledger;
            int64_t sum = 0;
            assert_true(a->window_ns == first.steps[0].end_ns); /* all end together */
            assert_true(before.ranks[r].rank == after.ranks[r].rank);
            assert_true(a->window_ns == b->window_ns);
            assert_true(a->comm_ns == b->comm_ns);
            for (int label = 0; label < KNEE_LABELS; label++) {
                assert_true(a->label_ns[label] == b->label_ns[label]);
                sum += a->label_ns[label];
            }
            assert_true(sum == a->window_ns);
        }
        knee_account_release(&before);
        knee_account_release(&after);
        knee_trace_release(&first);
        knee_trace_release(&second);
        free(memory.data);
        done++;
    }
    assert_true(done > 8);
}

TEST(too_large_is_said)
{
    struct knee_shape shape = shape_named("llama3-8b");
    struct knee_machine machine = machine_of("h100", NULL);
    struct knee_plan plan;
    struct knee_trace trace;
    struct knee_err err;
    knee_plan_init(&plan);
    plan.gpus = 8;
    plan.pp = 8;
    plan.global_batch = 1 << 24;
    plan.micro_batch = 1;
    assert_ok(knee_plan_complete(&plan, &shape, &machine, &err));
    assert_int_equal(knee_simulate(&shape, &machine, &plan, NULL, &trace, &err), KNEE_USAGE);
}

/* A constant at either end of its range gives a price, and a simulation that ends. */
TEST(constants_at_their_ends_have_an_end)
{
    struct knee_shape shape = shape_named("gpt2");
    for (size_t row = 0; row < knee_rates_keys.count; row++)
        for (int end = 0; end < 2; end++) {
            const struct knee_key *key = &knee_rates_keys.rows[row];
            struct knee_machine machine = machine_of("h100", NULL);
            struct knee_plan_cost cost;
            struct knee_plan plan;
            struct knee_trace trace;
            struct knee_err err;
            double value = end ? key->max : key->min;
            memcpy((char *)&machine.rates + key->offset, &value, sizeof value);
            knee_plan_init(&plan);
            plan.gpus = plan.pp = 2;
            plan.tp = 1;
            plan.global_batch = 4;
            assert_ok(knee_plan_complete(&plan, &shape, &machine, &err));
            knee_plan_price(&shape, &machine, &plan, &cost);
            if (!isfinite(cost.step_s) || !(cost.step_s > 0))
                fail_msg("%s = %g: a step of %g s", key->name, value, cost.step_s);
            if (!knee_simulate(&shape, &machine, &plan, NULL, &trace, &err))
                knee_trace_release(&trace);
        }
}

/* What takes longer than time can count is an end too. */
TEST(endless_work_is_refused)
{
    struct knee_task task =
        task_of(0, KNEE_STREAM_COMPUTE, KNEE_LANE_GPU, KNEE_TASK_COMPUTE, INFINITY);
    struct knee_tasks all = {.task = &task, .count = 1, .stages = 1};
    int64_t end_ns;
    assert_false(knee_tasks_run(&all, &end_ns));
}
