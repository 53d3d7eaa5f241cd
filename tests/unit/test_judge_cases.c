/* SPDX-License-Identifier: MIT */
/*
 * The judge's rules on cases that are put together by hand: comparisons, what collectives should
 * take, symptoms, curves, logs, measured collectives and why they are slow. Laws first; tables of
 * (what is seen, what must be said) where rules are tables.
 */
#include "unit.h"

#include "base/keys.h"
#include "judge/judge.h"
#include "judge/symptoms.h"
#include "knee_logs.h"
#include "knee_plan.h"
#include "knee_rollcall.h"
#include "timeline/builder.h"
#include "timeline/where.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* ---- Comparisons ---- */

enum { SIDE_RANKS = 2, SPANS = 1300, KINDS = 600 };

struct side {
    struct knee_trace trace;
    struct knee_rank sources[SIDE_RANKS];
    struct knee_span spans[SIDE_RANKS][SPANS];
    char *names[SPANS], words[SPANS][16];
    struct knee_rank_account ranks[SIDE_RANKS];
    struct knee_collective_account kinds[KINDS];
    struct knee_account account;
    struct knee_diagnosis d;
};

static void make_side(struct side *s, size_t names)
{
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < SPANS; i++) {
        snprintf(s->words[i], sizeof s->words[i], "kernel%zu", i % names);
        s->names[i] = s->words[i];
    }
    s->trace.names = s->names;
    s->trace.name_count = SPANS;
    for (size_t r = 0; r < SIDE_RANKS; r++) {
        s->sources[r].spans = s->spans[r];
        s->ranks[r].trace = &s->trace;
        s->ranks[r].source = &s->sources[r];
        s->ranks[r].kernels = 10;
    }
    s->account.ranks = s->ranks;
    s->account.rank_count = SIDE_RANKS;
    s->account.collectives = s->kinds;
    s->account.world_size = -1;
    s->d.steps = 2;
    s->d.spread.error_s = NAN;
    s->d.step.wall_s = 1;
    s->d.step.label_s[KNEE_COMPUTE] = 1;
}

static void some_work(struct side *s, uint64_t *seed)
{
    static const char *const types[] = {"", "f32", "bf16"}, *const groups[] = {"dp", "tp"};
    for (size_t r = 0; r < SIDE_RANKS; r++) {
        s->sources[r].span_count = (size_t)(SPANS * chance(seed));
        for (size_t i = 0; i < s->sources[r].span_count; i++)
            s->spans[r][i] = (struct knee_span){.name = (uint32_t)(SPANS * chance(seed)),
                                                .end_ns = 1 + (int64_t)(1000 * chance(seed))};
    }
    s->account.collective_count = (size_t)(40 * chance(seed));
    for (size_t i = 0; i < s->account.collective_count; i++)
        s->kinds[i] = (struct knee_collective_account){
            .op = chance(seed) < 0.5 ? KNEE_OP_ALL_REDUCE : KNEE_OP_ALL_GATHER,
            .bytes = (int64_t)(4 * chance(seed)) - 1,
            .group_size = chance(seed) < 0.5 ? 2 : 4,
            .description = groups[chance(seed) < 0.5],
            .dtype = types[(size_t)(3 * chance(seed))],
            .calls = 1 + (size_t)(5 * chance(seed)),
            .duration_s = chance(seed),
            .wait_s = chance(seed) < 0.5 ? NAN : 0.1};
    s->d.step.wall_s = between(seed, 0.5, 2);
    s->d.step.label_s[KNEE_HOST] = chance(seed);
}

static struct knee_comparison compare(const struct side *b, const struct side *a)
{
    struct knee_comparison c;
    assert_ok(knee_compare((struct knee_judged_run){&b->account, &b->d},
                           (struct knee_judged_run){&a->account, &a->d}, NULL, &c, NULL));
    return c;
}

/* The same against itself does not change; there and back are mirrored. */
TEST(a_comparison_mirrored)
{
    static struct side one, other;
    uint64_t seed = 11;
    for (int round = 0; round < 30; round++) {
        make_side(&one, round % 2 ? 10 : 900);
        make_side(&other, round % 2 ? 10 : 900);
        some_work(&one, &seed);
        some_work(&other, &seed);
        struct knee_comparison same = compare(&one, &one), there = compare(&one, &other),
                               back = compare(&other, &one);
        assert_true(same.change == 0 && same.as_before && same.share == 0 && !same.late_makes_it);
        for (size_t i = 0; i < same.mover_count; i++)
            assert_near(same.movers[i].after_s, same.movers[i].before_s, 1e-15);
        assert_near(there.change, -back.change, 1e-12);
        assert_int_equal(there.differs, back.differs);
        assert_int_equal(there.mover_count, back.mover_count);
        assert_int_equal(there.collective_count, back.collective_count);
        for (size_t i = 0; i < there.mover_count; i++)
            assert_near(there.movers[i].after_s - there.movers[i].before_s,
                        back.movers[i].before_s - back.movers[i].after_s, 1e-15);
        for (size_t i = 0; i < there.collective_count; i++)
            assert_near(fabs(there.collectives[i].after_s - there.collectives[i].before_s),
                        fabs(back.collectives[i].before_s - back.collectives[i].after_s), 1e-12);
    }
}

/* With few names their times add up to all that was recorded, per step and rank. */
TEST(movers_add_up)
{
    static struct side one, other;
    uint64_t seed = 5;
    make_side(&one, 9);
    make_side(&other, 9);
    some_work(&one, &seed);
    some_work(&other, &seed);
    struct knee_comparison c = compare(&one, &other);
    const struct side *sides[] = {&one, &other};
    for (size_t k = 0; k < 2; k++) {
        double sum = 0, told = 0;
        for (size_t r = 0; r < SIDE_RANKS; r++)
            for (size_t i = 0; i < sides[k]->sources[r].span_count; i++)
                sum += 1e-9 * (double)sides[k]->spans[r][i].end_ns / 2 / SIDE_RANKS;
        for (size_t i = 0; i < c.mover_count; i++)
            told += k ? c.movers[i].after_s : c.movers[i].before_s;
        assert_relative(told, sum, 1e-9);
    }
    assert_int_equal(c.mover_count, 9);
}

/* More kinds of collectives than are compared: the largest still are. */
TEST(many_kinds)
{
    static struct side one, other;
    make_side(&one, 9);
    make_side(&other, 9);
    for (size_t i = 0; i < KINDS; i++)
        one.kinds[i] = (struct knee_collective_account){.op = KNEE_OP_ALL_REDUCE,
                                                        .bytes = (int64_t)(1 + i),
                                                        .description = "",
                                                        .dtype = "",
                                                        .calls = 1,
                                                        .duration_s = 1.0 / (double)(i + 1)};
    one.account.collective_count = KINDS;
    struct knee_comparison c = compare(&one, &other);
    assert_int_equal(c.collective_count, KNEE_MOVERS);
    assert_int_equal(c.collectives[0].bytes, 1);
    assert_near(c.collectives[0].before_s, 0.25, 1e-12); /* two steps, two ranks */
}

TEST(in_what_they_differ)
{
    static struct side a, b;
    for (int what = 0; what < 9; what++) {
        make_side(&a, 9);
        make_side(&b, 9);
        a.account.collective_count = b.account.collective_count = 1;
        a.kinds[0] = b.kinds[0] = (struct knee_collective_account){
            .bytes = 100, .calls = 4, .dtype = "f32", .description = ""};
        unsigned wanted = 0;
        switch (what) {
        case 0: b.account.rank_count = 1, b.kinds[0].calls = 2, wanted = KNEE_DIFFER_WORLD; break;
        case 1:
            a.account.world_size = 8, b.account.world_size = 16, wanted = KNEE_DIFFER_WORLD;
            break;
        case 2: a.account.world_size = b.account.world_size = 8; break;
        case 3: b.kinds[0].dtype = "bf16", wanted = KNEE_DIFFER_DTYPE; break;
        case 4: b.kinds[0].dtype = ""; break;
        case 5: b.kinds[0].bytes = 120, wanted = KNEE_DIFFER_TRAFFIC; break;
        case 6: b.d.works[0].count = 20, wanted = KNEE_DIFFER_KERNELS; break;
        case 7:
            snprintf(a.trace.gpu_name, sizeof a.trace.gpu_name, "H100");
            snprintf(b.trace.gpu_name, sizeof b.trace.gpu_name, "A100");
            wanted = KNEE_DIFFER_GPU;
            break;
        default: snprintf(a.trace.gpu_name, sizeof a.trace.gpu_name, "H100");
        }
        assert_int_equal(compare(&a, &b).differs, wanted);
    }
    make_side(&a, 9);
    make_side(&b, 9);
    a.account.world_size = 8; /* the other does not say: ranks are compared */
    assert_int_equal(compare(&a, &b).differs, 0);
    a.account.world_size = -1;
    b.d.steps = 4;
    b.ranks[0].kernels = b.ranks[1].kernels = 20;
    assert_int_equal(compare(&a, &b).differs, KNEE_DIFFER_STEPS);
}

/* A change beyond what steps differ by chance, half of it made by a late rank, or less. */
TEST(who_makes_the_change)
{
    static struct side a, b;
    for (int way = 0; way < 2; way++) {
        struct knee_straggler late = {.held_ns = way ? 500000000 : 100000000};
        make_side(&a, 9);
        make_side(&b, 9);
        a.d.spread.error_s = b.d.spread.error_s = 0.01;
        b.d.step.wall_s = 1.4;
        b.account.stragglers = &late;
        b.account.straggler_count = b.d.late_ranks = 1;
        struct knee_comparison c = compare(&a, &b);
        assert_true(c.significant && c.chance_s > 0);
        assert_near(c.late_s, way ? 0.25 : 0.05, 1e-9); /* in two steps */
        assert_int_equal(c.late_makes_it, way);
    }
}

TEST(a_comparison_without_memory)
{
    static struct side one, other;
    uint64_t seed = 5;
    make_side(&one, 900);
    make_side(&other, 900);
    some_work(&one, &seed);
    some_work(&other, &seed);
    FOR_EACH_FAILURE(f) {
        struct knee_comparison c;
        struct knee_err err;
        knee_status status =
            knee_compare((struct knee_judged_run){&one.account, &one.d},
                         (struct knee_judged_run){&other.account, &other.d}, &f.alloc, &c, &err);
        assert_int_equal(status, failing_met(&f) ? KNEE_SYSTEM : KNEE_OK);
        assert_true(status || f.calls >= 3);
    }
}

/* ---- What collectives should take ---- */

static struct knee_collective_account kind(enum knee_op op, int32_t group, int64_t bytes)
{
    return (struct knee_collective_account){.op = op,
                                            .group_size = group,
                                            .bytes = bytes,
                                            .calls = 8,
                                            .matched = 1,
                                            .dtype = "",
                                            .description = "",
                                            .axis = "",
                                            .expected_s = -1};
}

TEST(what_is_expected)
{
    struct knee_collective_account kinds[] = {
        kind(KNEE_OP_ALL_REDUCE, 8, 1 << 30), kind(KNEE_OP_ALL_REDUCE, 16, 1 << 30),
        kind(KNEE_OP_ALL_REDUCE, 1, 1 << 30), kind(KNEE_OP_ALL_REDUCE, 8, 0),
        kind(KNEE_OP_UNKNOWN, 8, 1 << 30),    kind(KNEE_OP_ALL_GATHER, -1, 1 << 30),
    };
    struct knee_account account = {.collectives = kinds, .collective_count = COUNT(kinds)};
    struct knee_cluster cluster;
    assert_true(knee_cluster_recognise("dgx-h100", &cluster));
    knee_expect_collectives(&account, &cluster);
    assert_true(kinds[0].expected_s > 0 && kinds[1].expected_s > kinds[0].expected_s);
    for (size_t i = 2; i < COUNT(kinds); i++)
        assert_true(isnan(kinds[i].expected_s));
    assert_string_equal(account.machine, cluster.name);
    cluster.name[0] = '\0';
    knee_expect_collectives(&account, &cluster);
    assert_string_equal(account.machine, "h100");
    cluster.levels[0].count = 4;
    cluster.levels[1].count = 2;
    cluster.level_count = 2;
    knee_expect_collectives(&account, &cluster); /* a group that is larger than all of it */
    assert_true(isnan(kinds[1].expected_s) && kinds[0].expected_s > 0);
}

/* Of what the traces name: only groups that fit into a node, and only GPUs that are known. */
TEST(what_is_expected_of_a_node)
{
    static const struct {
        const char *gpu, *format, *machine;
    } rows[] = {
        {"NVIDIA H100 80GB HBM3", "kineto", "a node of h100"},
        {"NVIDIA H100 80GB HBM3", "cpu", ""},
        {"", "kineto", ""},
        {"a GPU that nobody knows", "kineto", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct knee_trace trace = {.format = rows[i].format};
        struct knee_rank_account rank = {.trace = &trace};
        struct knee_collective_account kinds[] = {kind(KNEE_OP_ALL_REDUCE, 8, 1 << 20),
                                                  kind(KNEE_OP_ALL_REDUCE, 16, 1 << 20)};
        struct knee_account account = {
            .ranks = &rank, .rank_count = 1, .collectives = kinds, .collective_count = 2};
        snprintf(trace.gpu_name, sizeof trace.gpu_name, "%s", rows[i].gpu);
        knee_expect_of_gpus(&account);
        assert_string_equal(account.machine, rows[i].machine);
        assert_int_equal(account.machine_assumed, i == 0);
        assert_true(i ? kinds[0].expected_s == -1 : kinds[0].expected_s > 0);
        assert_true(i ? kinds[1].expected_s == -1 : isnan(kinds[1].expected_s));
    }
    const struct knee_gpu *gpu;
    for (size_t i = 0; (gpu = knee_gpu_at(i)); i++) { /* what that takes for granted */
        struct knee_cluster cluster;
        if (knee_cluster_recognise(gpu->name, &cluster))
            assert_true(cluster.levels[0].count > 0 && cluster.gpu[0]);
    }
}

TEST(a_roll_calls_slow_wire)
{
    struct knee_cluster cluster;
    assert_true(knee_cluster_recognise("dgx-h100", &cluster));
    static const struct {
        double slower[3];
        size_t matched[3], wire;
    } rows[] = {
        {{1, 1.5, 1}, {9, 9, 9}, SIZE_MAX}, {{3, 1, 1}, {9, 9, 9}, 0}, {{3, 4, 1}, {9, 9, 9}, 1},
        {{4, 3, 2.5}, {9, 9, 9}, 0},        {{3, 4, 9}, {9, 1, 0}, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct knee_collective_account kinds[3];
        struct knee_roll_answer answer = {
            .collectives = kinds, .collective_count = 3, .slow_wire = SIZE_MAX};
        for (size_t k = 0; k < 3; k++)
            kinds[k] = kind(KNEE_OP_ALL_REDUCE, 8, 1 << 24);
        knee_expect_rollcall(&answer, &cluster);
        for (size_t k = 0; k < 3; k++) {
            kinds[k].transfer_s = rows[i].slower[k] * kinds[k].expected_s;
            kinds[k].matched = rows[i].matched[k];
        }
        answer.slow_wire = SIZE_MAX;
        knee_expect_rollcall(&answer, &cluster);
        assert_int_equal(answer.slow_wire, rows[i].wire);
        assert_string_equal(answer.machine, cluster.name);
    }
}

/* 16 MiB take 16 ms instead of 1: a slow wire, unless one rank alone is recorded and has calls that
 * are quick, or unless next to nothing is lost. */
TEST(a_wire_with_quick_calls_is_not_slow)
{
    for (int way = 0; way < 8; way++) {
        bool quick = way % 2, alone = way / 2 % 2, matters = way < 4;
        struct knee_collective_account kinds[] = {kind(KNEE_OP_ALL_REDUCE, 8, 1024),
                                                  kind(KNEE_OP_ALL_REDUCE, 8, 1 << 24)};
        struct knee_account account = {
            .collectives = kinds, .collective_count = 2, .rank_count = alone ? 1 : 2};
        struct knee_diagnosis d = {.steps = 2};
        d.step.wall_s = matters ? 0.1 : 100;
        d.step.label_s[KNEE_TRANSFER] = 0.05;
        kinds[0].bus_bytes_per_s = quick ? 1e9 : 1e5;
        kinds[0].expected_s = NAN;
        kinds[1].transfer_s = 0.016;
        kinds[1].expected_s = 0.001;
        assert_true(knee_find_slow_wire(&account, &d));
        assert_int_equal(d.slow_wire, matters && !(quick && alone) ? 1 : SIZE_MAX);
        assert_int_equal((d.gaps & KNEE_GAP_QUICK_WIRE) != 0, matters && quick && alone);
    }
}

/* ---- Symptoms ---- */

/* 0: nobody said. */
struct seen {
    double gpu, cpu, flops, late, ratio, comm_share, host_share, mfu, slower, jitter;
    double data, exchange;
    size_t steps, outliers;
    bool behind, fit_behind, alone;
};
static const struct {
    struct seen seen;
    enum knee_suspect suspect;
    enum knee_standing standing;
    const char *words;
} symptoms[] = {
    {{0}, KNEE_SUSPECT_INPUT, KNEE_OPEN, ""},
    {{.gpu = 0.5, .cpu = 0.95}, KNEE_SUSPECT_INPUT, KNEE_CONFIRMED, "batches"},
    {{.data = 0.4, .steps = 10}, KNEE_SUSPECT_INPUT, KNEE_CONFIRMED, "data time"},
    {{.data = 0.01, .steps = 10}, KNEE_SUSPECT_INPUT, KNEE_EXCLUDED, "data time"},
    {{.data = 0.05, .steps = 10}, KNEE_SUSPECT_INPUT, KNEE_OPEN, ""},
    {{.exchange = 0.2, .steps = 10}, KNEE_SUSPECT_COMM, KNEE_CONFIRMED, "timer"},
    {{.alone = true, .jitter = 2, .steps = 100}, KNEE_SUSPECT_STRAGGLER, KNEE_EXCLUDED, "one GPU"},
    {{.alone = true}, KNEE_SUSPECT_COMM, KNEE_EXCLUDED, "one GPU"},
    {{.gpu = 0.5, .cpu = 0.5}, KNEE_SUSPECT_INPUT, KNEE_EXCLUDED, "keep up"},
    {{.gpu = 0.8, .cpu = 0.95}, KNEE_SUSPECT_INPUT, KNEE_OPEN, ""},
    {{.gpu = 0.5, .cpu = 0.8}, KNEE_SUSPECT_COMM, KNEE_CONFIRMED, "wait for data"},
    {{.gpu = 0.5, .cpu = 0.8, .late = 3}, KNEE_SUSPECT_COMM, KNEE_OPEN, ""},
    {{.gpu = 0.5, .cpu = 0.95}, KNEE_SUSPECT_COMM, KNEE_OPEN, ""},
    {{.ratio = 0.2}, KNEE_SUSPECT_COMM, KNEE_CONFIRMED, "R above 0.1"},
    {{.ratio = 0.01}, KNEE_SUSPECT_COMM, KNEE_EXCLUDED, "at most 0.02"},
    {{.comm_share = 0.01, .slower = 1}, KNEE_SUSPECT_COMM, KNEE_EXCLUDED, "as it"},
    {{.comm_share = 0.01, .slower = 2}, KNEE_SUSPECT_COMM, KNEE_OPEN, ""},
    {{.comm_share = 0.3, .slower = 1}, KNEE_SUSPECT_COMM, KNEE_OPEN, ""},
    {{.ratio = 0.01, .comm_share = 0.01},
     KNEE_SUSPECT_COMM,
     KNEE_EXCLUDED,
     "at most"}, /* the first that speaks */
    {{.late = 3}, KNEE_SUSPECT_STRAGGLER, KNEE_CONFIRMED, "one rank is late"},
    {{.jitter = 1.3, .steps = 100}, KNEE_SUSPECT_STRAGGLER, KNEE_CONFIRMED, "p95"},
    {{.jitter = 1.3, .steps = 9}, KNEE_SUSPECT_STRAGGLER, KNEE_OPEN, ""},
    {{.jitter = 1.3, .steps = 100, .outliers = 20}, KNEE_SUSPECT_STRAGGLER, KNEE_OPEN, ""},
    {{.jitter = 1.3, .steps = 100, .gpu = 0.95}, KNEE_SUSPECT_STRAGGLER, KNEE_OPEN, ""},
    {{.gpu = 0.95, .flops = 0.2}, KNEE_SUSPECT_TINY_BATCH, KNEE_CONFIRMED, "small"},
    {{.gpu = 0.95, .flops = 0.35}, KNEE_SUSPECT_TINY_BATCH, KNEE_OPEN, ""},
    {{.flops = 0.45}, KNEE_SUSPECT_TINY_BATCH, KNEE_EXCLUDED, "40 %"},
    {{.mfu = 0.45}, KNEE_SUSPECT_TINY_BATCH, KNEE_EXCLUDED, "40 %"},
    {{.host_share = 0.3, .mfu = 0.45}, KNEE_SUSPECT_TINY_BATCH, KNEE_CONFIRMED, "launches"},
    {{.behind = true}, KNEE_SUSPECT_LARGE_BATCH, KNEE_CONFIRMED, "behind"},
    {{.fit_behind = true}, KNEE_SUSPECT_LARGE_BATCH, KNEE_CONFIRMED, "behind"},
};

static double said(double value)
{
    return value > 0 ? value : NAN;
}

TEST(rules_of_symptoms)
{
    for (size_t i = 0; i < COUNT(symptoms); i++) {
        const struct seen *s = &symptoms[i].seen;
        struct knee_train_log log = {
            .timed = s->steps, .data_s = said(s->data), .comm_s = said(s->exchange)};
        struct knee_scale_row row = {.workers = s->alone ? 1 : 8,
                                     .step_s = 1,
                                     .p95_s = fmax(1, s->jitter),
                                     .ratio = said(s->ratio)};
        static struct knee_scale_answer a;
        memset(&a, 0, sizeof a);
        log.counts.outliers = s->outliers;
        row.log = i % 2 || s->steps ? &log : NULL;
        row.model.step_s = 1 / said(s->slower);
        row.model.comm_share = said(s->comm_share);
        row.model.host_share = said(s->host_share);
        row.model.mfu_causal = said(s->mfu);
        a.rows = &row;
        a.row_count = 1;
        a.question.symptoms = (struct knee_symptoms){said(s->gpu), said(s->cpu), said(s->flops),
                                                     said(s->late), s->behind};
        a.batch.behind = s->fit_behind;
        knee_symptoms_judge(&a);
        const struct knee_scale_suspect *got = &a.suspects[symptoms[i].suspect - 1];
        assert_int_equal(got->suspect, symptoms[i].suspect);
        if (got->standing != symptoms[i].standing || !strstr(got->rule, symptoms[i].words))
            fail_msg("row %zu: %s: %s", i, knee_standing_name(got->standing), got->rule);
        for (size_t k = 0; got->standing == KNEE_CONFIRMED && k < KNEE_SCALE_SUSPECTS; k++)
            assert_true(&a.suspects[k] == got || a.suspects[k].standing != KNEE_CONFIRMED);
    }
    bool excluded[KNEE_SUSPECTS] = {false};
    enum knee_suspect suspect;
    enum knee_standing says;
    for (size_t i = 0; knee_symptom_rule(i, &suspect, &says); i++) { /* those that confirm first */
        assert_false(excluded[suspect] && says == KNEE_CONFIRMED);
        excluded[suspect] = excluded[suspect] || says == KNEE_EXCLUDED;
    }
    assert_string_equal(knee_standing_name((enum knee_standing)(KNEE_EXCLUDED + 1)), "?");
    assert_string_equal(knee_suspect_name(KNEE_SUSPECTS), "?");
}

/* ---- Curves ---- */

/* A job of 64 examples that takes 64/K + c K seconds; rows doubled from 1 on. */
static size_t curve(struct knee_scale_row *rows, size_t count, double slope)
{
    for (size_t i = 0; i < count; i++) {
        double workers = exp2((double)i);
        rows[i] = (struct knee_scale_row){.workers = workers,
                                          .step_s = 64 / workers + slope * workers,
                                          .batch = 64,
                                          .replica = 1,
                                          .error = NAN,
                                          .tokens_per_s = NAN,
                                          .ratio = NAN,
                                          .gamma = NAN,
                                          .work_s = NAN};
        rows[i].model.step_s = NAN;
    }
    return count;
}

static struct knee_scale_answer *judged(struct knee_scale_row *rows, size_t count, double at)
{
    static struct knee_scale_answer a;
    struct knee_err err;
    memset(&a, 0, sizeof a);
    a.rows = rows;
    a.row_count = count;
    a.question = (struct knee_scale_question){.tolerance = 0.5,
                                              .tokens = NAN,
                                              .price_per_hour = NAN,
                                              .at_batch = NAN,
                                              .symptoms = {NAN, NAN, NAN, NAN, false}};
    a.batch.high = a.batch.large_batch = NAN;
    if (at > 0) {
        a.question.at[0] = at;
        a.question.at_count = 1;
    }
    if (knee_scale_judge(&a, &err))
        fail_msg("%s", err.what);
    return &a;
}

TEST(advice_on_a_curve)
{
    struct knee_scale_row rows[8];
    struct knee_scale_answer *a = judged(rows, curve(rows, 5, 1e-4), 0);
    assert_int_equal(a->advice, KNEE_ADVICE_GROW);
    assert_int_equal(a->ask_count, 2);
    assert_true(a->asks[1].speed_up > a->asks[0].speed_up);
    a = judged(rows, curve(rows, 6, 0.5), 0);
    assert_int_equal(a->advice, KNEE_ADVICE_STOP);
    assert_int_equal(a->wall, KNEE_WALL_SYSTEMS);
    assert_true(a->measured_knee >= 4 && a->measured_knee <= 16);
    a = judged(rows, curve(rows, 6, 0.002), 64); /* efficient enough; but 32 have most of it */
    a->question.tolerance = 0.01;
    a->rows[5].step_s = 1.1;
    struct knee_err err;
    assert_ok(knee_scale_judge(a, &err));
    assert_int_equal(a->advice, a->advice_share >= 0.9 ? KNEE_ADVICE_STOP : KNEE_ADVICE_GROW);
    a = judged(rows, curve(rows, 5, 1e-4), 0);
    a->question.at[0] = 32, a->question.at[1] = 128, a->question.at_count = 2;
    assert_ok(knee_scale_judge(a, &err)); /* the first is worth it, none can have
                                                             the second */
    assert_true(a->advice == KNEE_ADVICE_GROW && a->advice_ask == 0 && a->asks[1].refused[0]);
    a = judged(rows, curve(rows, 6, 1e-4), 16); /* a count that was measured already */
    assert_int_equal(a->advice_ask, SIZE_MAX);
    a = judged(rows, curve(rows, 6, 1e-4), 1024); /* more workers than examples */
    assert_true(a->asks[0].refused[0] && isnan(a->asks[0].efficiency));
    assert_int_equal(a->advice, KNEE_ADVICE_STOP);
}

/* One count: against the model, or nothing. */
TEST(advice_on_one_count)
{
    static const struct {
        double low, high;
        enum knee_scale_advice advice;
    } rows[] = {{NAN, NAN, KNEE_ADVICE_MEASURE}, {60, 70, KNEE_ADVICE_FINE},
                {55, 60, KNEE_ADVICE_FINE}, /* outside, but by less than a quarter */
                {70, 80, KNEE_ADVICE_FINE},      {10, 20, KNEE_ADVICE_SLOW},
                {90, 99, KNEE_ADVICE_FAST}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct knee_scale_row row;
        curve(&row, 1, 0);
        row.model.step_s = row.model.low_s = rows[i].low;
        row.model.high_s = rows[i].high;
        struct knee_scale_answer *a = judged(&row, 1, 0);
        assert_int_equal(a->advice, rows[i].advice);
        assert_false(a->several);
    }
}

/* The statistical wall comes first where the batch is past it. */
TEST(the_batch_is_past_its_wall)
{
    struct knee_scale_row rows[8];
    struct knee_err err;
    for (int way = 0; way < 3; way++) {
        struct knee_scale_answer *a = judged(rows, curve(rows, 4, 1e-4), 0);
        a->batch.behind = way == 0;
        a->batch.high = 10;
        a->batch.large_batch = way == 1 ? 20 : 5;
        assert_ok(knee_scale_judge(a, &err));
        assert_int_equal(a->advice, way < 2 ? KNEE_ADVICE_BATCH : KNEE_ADVICE_GROW);
        assert_int_equal(a->wall, way < 2 ? KNEE_WALL_STATISTICAL : KNEE_WALL_NONE);
    }
}

/* The two largest counts whose insides are known, whatever the order of the rows; a count that was
 * run twice is not the one before itself. */
TEST(the_inside_of_steps)
{
    struct knee_scale_row rows[8], swapped[8];
    curve(rows, 6, 0.01);
    for (size_t i = 0; i < 6; i++) {
        rows[i].compute_s = i == 5 ? 0 : 1;
        rows[i].comm_s = i == 4 ? 0 : 0.5;
        swapped[5 - i] = rows[i];
    }
    rows[6] = swapped[6] = rows[3];
    for (int way = 0; way < 2; way++) {
        struct knee_scale_answer *a = judged(way ? swapped : rows, 7, 0);
        assert_near(a->fit.inside.workers, 8, 0);
        assert_near(a->fit.inside_before.workers, 4, 0);
        for (size_t i = 1; i < 7; i++)
            assert_true(a->rows[i].workers >= a->rows[i - 1].workers);
    }
}

TEST(more_runs_than_fit)
{
    static struct knee_scale_row rows[KNEE_SCALE_ROWS + 1];
    static struct knee_scale_answer a;
    struct knee_err err;
    for (size_t i = 0; i <= KNEE_SCALE_ROWS; i++)
        curve(&rows[i], 1, 0);
    a.rows = rows;
    a.row_count = KNEE_SCALE_ROWS + 1;
    assert_int_equal(knee_scale_judge(&a, &err), KNEE_USAGE);
    assert_string_equal(err.what, "more than 256 runs");
    a.row_count = 0;
    assert_ok(knee_scale_judge(&a, &err));
    assert_true(isnan(a.measured_knee) && a.ask_count == 0);
}

/* ---- Two logs ---- */

static struct knee_train_row log_rows[2][6000];

static struct knee_train_log log_of(int side, size_t count, double step_s)
{
    struct knee_train_log log;
    memset(&log, 0, sizeof log);
    knee_shape_init(&log.shape);
    knee_plan_init(&log.plan);
    for (size_t i = 0; i < count; i++)
        log_rows[side][i].step_s = step_s * (1 + 0.01 * (double)(i % 7));
    log.rows = log_rows[side];
    log.row_count = log.timed = count;
    log.median_s = 1.03 * step_s;
    log.workers = log.batch = log.micro_batch = log.seq = log.params = NAN;
    log.format = "";
    return log;
}

static const struct knee_log_change *change_of(const struct knee_log_comparison *c,
                                               const char *what)
{
    for (size_t i = 0; i < c->change_count; i++)
        if (strcmp(c->changes[i].what, what) == 0)
            return &c->changes[i];
    return NULL;
}

/* Long logs and short ones, steps that stand out: the same answer. */
TEST(steps_of_logs)
{
    static const size_t counts[] = {4, 40, 6000};
    for (size_t i = 0; i < COUNT(counts); i++) {
        struct knee_train_log b = log_of(0, counts[i], 1), a = log_of(1, counts[i], 1.2);
        struct knee_log_comparison c;
        if (i) { /* a checkpoint, and a step that was not timed well */
            log_rows[0][counts[i] - 1].step_s = 30;
            log_rows[0][counts[i] - 2].step_s = 0.001;
        }
        knee_compare_logs(&b, &a, &c);
        assert_near(c.longer, 0.2, 1e-9);
        assert_near(c.slower, 0.2, 1e-9);
        assert_true(c.significant);
        assert_int_equal(c.after.steps, counts[i] < 8 ? counts[i] : (counts[i] + 1) / 2);
        assert_int_equal(c.change_count, 0);
    }
}

TEST(settings_of_logs)
{
    struct knee_train_log b = log_of(0, 40, 1), a = log_of(1, 40, 1);
    struct knee_log_comparison c;
    a.workers = 16, b.workers = 8;
    a.batch = 64;
    a.seq = b.seq = 4096;
    snprintf(a.gpu, sizeof a.gpu, "H100");
    snprintf(b.model, sizeof b.model, "llama");
    a.plan.tp = 8;
    a.plan.shard = 1;
    knee_compare_logs(&b, &a, &c);
    assert_int_equal(c.change_count, 6);
    assert_string_equal(change_of(&c, "GPUs")->before, "8");
    assert_string_equal(change_of(&c, "GPUs")->after, "16");
    assert_string_equal(change_of(&c, "global batch")->before, "not said");
    assert_string_equal(change_of(&c, "GPU")->before, "not said");
    assert_string_equal(change_of(&c, "model")->after, "not said");
    assert_string_equal(change_of(&c, "shard")->after, knee_shard_names.name(1));
    assert_non_null(change_of(&c, "tp"));
    assert_near(c.work, 0.5, 1e-12); /* the same batch, as far as is known, on twice as many */
    assert_near(c.slower, 1, 1e-12); /* and still as long */
    for (size_t i = 0; i < knee_shape_keys.count; i++)
        if (knee_shape_keys.rows[i].kind == KNEE_KEY_NUMBER)
            *(double *)(void *)((char *)&a.shape + knee_shape_keys.rows[i].offset) = 7;
    for (size_t i = 0; i < knee_plan_keys.count; i++)
        if (knee_plan_keys.rows[i].kind == KNEE_KEY_NUMBER)
            *(double *)(void *)((char *)&a.plan + knee_plan_keys.rows[i].offset) = 7;
    knee_compare_logs(&b, &a, &c);
    assert_int_equal(c.change_count, KNEE_LOG_CHANGES);
    assert_true(c.more_changes > 0); /* and that is said */
}

/* ---- Measured collectives ---- */

enum { LADDER = 8 }; /* 1 KiB to 16 GiB, eightfold and more */

/* Rows name what they have beside a cluster and its sizes. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
static const struct measured {
    const char *cluster;
    double ranks, slower; /* than expected, from size `from` to `to` */
    size_t from, to;
    const char *name, *words; /* of the first finding; NULL: none */
    unsigned seen;
    double adapters, per_process;
    const char *tuned; /* algorithm of NCCL's tuning lines; NULL: none */
    double uneven;     /* in place over out of place; 0: 1 */
} measured[] = {
    {"dgx-h100", 16, 1, 0, 8, .seen = KNEE_SEEN_SOCKET},
    {"dgx-h100", 16, 3, 0, 8},
    {"dgx-h100", 16, 3, 0, 8, "several ranks on one GPU", "same device",
     .seen = KNEE_SEEN_SAME_GPU},
    {"dgx-h100", 16, 3, 0, 8, "TCP instead of RDMA", "NET/Socket, the cluster has ib400",
     .seen = KNEE_SEEN_SOCKET},
    {"dgx-h100", 16, 3, 0, 8, .seen = KNEE_SEEN_SOCKET | KNEE_SEEN_RDMA},
    {"h100 ethernet 100 Gb/s", 16, 3, 0, 8, .seen = KNEE_SEEN_SOCKET},
    {"dgx-h100", 8, 3, 0, 8, .seen = KNEE_SEEN_SOCKET | KNEE_SEEN_NO_GDR, .adapters = 1},
    {"dgx-h100", 8, 3, 0, 8, "GPUs talk through host memory", "says SHM", .seen = KNEE_SEEN_SHM},
    {"dgx-h100", 8, 3, 0, 8, "GPUs talk through host memory", "P2P is disabled",
     .seen = KNEE_SEEN_NO_P2P},
    {"l40s", 4, 3, 0, 8, .seen = KNEE_SEEN_SHM},
    {"dgx-h100", 16, 3, 5, 8, "not every rail in use", "lists 4 adapters, a node has 8",
     .adapters = 4},
    {"dgx-h100", 16, 3, 5, 8, .adapters = 8},
    {"dgx-h100", 16, 3, 5, 8, "GPU Direct RDMA is off", "without GDRDMA", .seen = KNEE_SEEN_NO_GDR},
    {"dgx-h100", 16, 3, 5, 8, .seen = KNEE_SEEN_NO_GDR | KNEE_SEEN_GDR},
    {"dgx-h100", 16, 8, 5, 8, "one rail in use", "8.0 times slower than 8"},
    {"dgx-h100", 16, 20, 5, 8},
    {"dgx-h100", 16, 3, 0, 8, "wrong algorithm", "NCCL_ALGO or NCCL_PROTO",
     .seen = KNEE_SEEN_FORCED_ALGO},
    {"dgx-h100", 16, 3, 0, 3, "the host issues too slowly", "serves 8 GPUs", .per_process = 8},
    {"dgx-h100", 16, 3, 0, 3, .per_process = 1},
    {"dgx-h100", 16, 3, 5, 8, "a disturbed measurement", "in-place", .uneven = 2},
    {"dgx-h100", 16, 3, 0, 8, "wrong algorithm", "tuning lines", .tuned = "TREE"},
    {"dgx-h100", 16, 3, 0, 8, .tuned = "NOTHING"},
    {"dgx-h100", 8, 3, 0, 8, "wrong algorithm", "tuning lines", .tuned = "NVLS"},
    {"8xa100 * 16 @ efa100x4", 128, 3, 0, 8, "wrong algorithm", "tuning lines", .tuned = "RING"},
    {"h100 1x400 Gb/s InfiniBand", 16, 3, 5, 8},
};

static struct knee_collective swept(const char *cluster_words, double ranks, const double *bytes)
{
    struct knee_cluster cluster;
    struct knee_collective c;
    struct knee_err err;
    assert_true(knee_cluster_recognise(cluster_words, &cluster));
    struct knee_collective_query query = {KNEE_OP_ALL_REDUCE, {ranks, NAN, 1, 1}, bytes, LADDER};
    if (knee_collective_run(&cluster, &query, NULL, &c, &err))
        fail_msg("%s", err.what);
    return c;
}

TEST(why_it_is_slow)
{
    static struct knee_log log;
    double bytes[LADDER];
    for (int i = 0; i < LADDER; i++)
        bytes[i] = 1024 * pow(12, i);
    for (size_t i = 0; i < COUNT(measured); i++) {
        const struct measured *m = &measured[i];
        OWNED(knee_collective) c = swept(m->cluster, m->ranks, bytes);
        struct knee_sample samples[LADDER];
        memset(&log, 0, sizeof log);
        for (size_t k = 0; k < LADDER; k++) {
            bool slow = k >= m->from && k < m->to;
            double time_s = c.sizes[k].expected_s * (slow ? m->slower : 1);
            samples[k] = (struct knee_sample){bytes[k], time_s, time_s,
                                              time_s * (slow && m->uneven > 0 ? m->uneven : 1), 1};
            if (m->tuned) {
                log.tunings[k].bytes = bytes[k];
                snprintf(log.tunings[k].algorithm, sizeof log.tunings[k].algorithm, "%s", m->tuned);
                log.tuning_count = k + 1;
            }
        }
        log.samples = samples;
        log.sample_count = LADDER - (i == 1); /* the largest is not in all of them */
        log.seen = m->seen;
        log.adapters = said(m->adapters);
        log.gpus_per_process = said(m->per_process);
        knee_collective_against(&c, &log);
        const char *name = c.finding_count ? c.findings[0].name : NULL;
        if (!name != !m->name ||
            (name && (strcmp(name, m->name) != 0 || !strstr(c.findings[0].evidence, m->words))))
            fail_msg("row %zu: %s: %s", i, name ? name : "nothing",
                     name ? c.findings[0].evidence : "");
        assert_true((c.slow_count > 0) == (m->slower > 1.5));
        assert_true(c.finding_count <= KNEE_FINDINGS_MAX);
        for (size_t k = log.sample_count; k < LADDER; k++)
            assert_true(isnan(c.sizes[k].measured_s) && !c.sizes[k].slow);
    }
}

/* Large sizes that take what the slowest of NCCL's algorithms would. */
TEST(looks_like_another)
{
    static struct knee_log log;
    double bytes[LADDER];
    struct knee_sample samples[LADDER];
    for (int i = 0; i < LADDER; i++)
        bytes[i] = 64e6 * pow(2, i);
    OWNED(knee_collective) c = swept("dgx-h100", 8, bytes);
    for (size_t k = 0; k < LADDER; k++) {
        double most_s = 0;
        for (size_t r = c.sizes[k].first; r < c.sizes[k].last; r++)
            if (c.rows[r].algorithm->nccl)
                most_s = fmax(most_s, c.rows[r].time_s);
        samples[k] = (struct knee_sample){bytes[k], most_s, most_s, most_s, 1};
        assert_true(most_s > 1.5 * c.sizes[k].expected_s);
    }
    log.samples = samples;
    log.sample_count = LADDER;
    log.adapters = log.gpus_per_process = NAN;
    knee_collective_against(&c, &log);
    assert_int_equal(c.finding_count, 1);
    assert_string_equal(c.findings[0].name, "wrong algorithm");
    assert_non_null(strstr(c.findings[0].evidence, "8 of 8 large sizes take what"));
}

/* ---- Predictions ---- */

TEST(predictions)
{
    struct knee_job job = job_of("params 1e9 gpu h100 workers 1..64+1 global-batch 1e7");
    OWNED(knee_prediction) p, q;
    struct knee_terms terms;
    struct knee_err err;
    job.workers.range[0].to = 1e6;
    assert_int_equal(knee_predict(&job, NULL, &p, &err), KNEE_USAGE);
    assert_non_null(strstr(err.what, "GPU counts"));
    p = predict("params 1e9 gpu h100 workers 1..64 global-batch 512 steps 1000");
    assert_true(p.cost.run > 0);
    double workers = knee_levers_pull(&p, "overlap+nothing of the kind+more workers", &terms);
    assert_near(workers, 2 * p.at.workers, 1e-9);
    struct knee_terms same;
    assert_near(knee_levers_pull(&p, "over+faster loader", &same), p.at.workers, 0);
    assert_memory_equal(&same.cluster, &p.terms.cluster, sizeof same.cluster);
    for (size_t fail_at = 1; fail_at < 3; fail_at++) { /* nothing is left, and nothing is changed */
        struct failing memory = {.fail_at = fail_at};
        struct knee_alloc alloc = {failing_resize, &memory};
        struct knee_prediction before = p;
        before.alloc = &alloc;
        assert_int_equal(knee_predict_changed(&before, &terms, workers, &q, &err), KNEE_SYSTEM);
        assert_int_equal(memory.live, 0);
    }
    assert_ok(knee_predict_changed(&p, &terms, workers, &q, &err));
    assert_ok(knee_predict_changed(&p, &terms, workers, &p, &err));
    assert_near(p.at.step.wall_s, q.at.step.wall_s, 0);
}

/* Another algorithm is offered where one was named that is not the quickest, and workers exchange
 * anything; half an example is spoken of where there are more workers than examples. */
TEST(what_is_offered)
{
    static const struct {
        const char *words;
        bool algorithm, half;
    } rows[] = {
        {"params 1e5 link eth10 flops 1e14 algorithm ring global-batch 4096 at 256", true, false},
        {"params 1e9 link eth10 flops 1e14 algorithm ring global-batch 4096 at 1", false, false},
        {"params 1e9 link eth10 flops 1e14 algorithm sparse-gather global-batch 4096 at 256", false,
         false},
        {"compute-time 1 comm-time 0.1 global-batch 64 workers 1..256", false, true},
        {"params 1e9 gpu h100 seq 0.5 global-batch 64 workers 1..256", false,
         false}, /* no tokens */
        {"model llama2-7b gpu h100 global-batch 64 workers 1..256", false, true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        OWNED(knee_prediction) p = predict(rows[i].words);
        bool algorithm = false, half = false;
        for (size_t k = 0; k < p.lever_count; k++)
            algorithm = algorithm || strcmp(p.levers[k].name, "another algorithm") == 0;
        for (size_t k = 0; k < p.note_count; k++)
            half = half || p.notes[k].kind == KNEE_NOTE_HALF_EXAMPLE;
        if (algorithm != rows[i].algorithm || half != rows[i].half)
            fail_msg("%s: %d %d", rows[i].words, algorithm, half);
    }
}

/* ---- Plans ---- */

/* Rows of 1, 2, 4 ... GPUs with so many tokens a second; 0: none fits. */
static struct knee_plan_answer *plan_answer(const double *rates, size_t count, double budget,
                                            double deadline_s, double price)
{
    static struct knee_plan_row rows[8];
    static struct knee_plan_answer a;
    struct knee_err err;
    memset(&a, 0, sizeof a);
    memset(rows, 0, sizeof rows);
    a.shape = shape_named("gpt2");
    knee_platform_init(&a.platform);
    a.platform.hw.gpu = job_of("gpu h100").hw.gpu;
    assert_ok(knee_machine_init(&a.platform, NULL, &a.machine, &err));
    a.machine.price_per_hour = price;
    knee_plan_init(&a.fixed);
    a.fixed.global_batch = 64;
    a.question = (struct knee_plan_question){
        .tokens = 1000, .budget = budget, .deadline_s = deadline_s, .tolerance = 0.8};
    for (size_t i = 0; i < count; i++) {
        rows[i].gpus = exp2((double)i);
        rows[i].found.count = rates[i] > 0;
        rows[i].found.best[0].cost.tokens_per_s = rates[i];
        rows[i].found.best[0].cost.step_s = rows[i].found.best[0].cost.low_s =
            rows[i].found.best[0].cost.high_s = 1;
        rows[i].found.best[0].cost.mfu_causal = 0.4;
    }
    a.rows = rows;
    a.row_count = count;
    a.baseline_gpus = 1;
    a.baseline_tokens_per_s = 10;
    knee_plan_judge(&a);
    return &a;
}

TEST(plans_by_hand)
{
    static const double rising[] = {10, 19, 36, 40, 30}, late[] = {0, 0, 36, 70}, none[] = {0, 0};
    struct knee_plan_answer *a = plan_answer(rising, 5, NAN, NAN, 3600);
    assert_near(a->knee_gpus, 4, 0); /* 36 of 40 is 0.9; 40 of 80 is not worth it */
    assert_int_equal(a->chosen, 2);
    assert_near(a->peak_gpus, 8, 0);
    assert_near(a->rows[4].found.best[0].cost.tokens_per_s, 40,
                0);                          /* idle GPUs take nothing away */
    assert_near(a->rows[0].cost, 100, 1e-9); /* 100 s at a dollar a second */
    assert_near(a->rows[2].efficiency, 0.9, 1e-12);
    assert_near(a->rows[0].efficiency_sure.low, 1, 1e-12); /* E(1) is 1 by definition */
    assert_true(a->rows[3].efficiency_sure.low < 0.5 && a->rows[3].efficiency_sure.high > 0.5);
    assert_true(a->knee_sure.low <= 4 && a->knee_sure.high >= 4);
    assert_near(a->fastest_s, 25, 1e-9);
    assert_near(a->cheapest, 100, 1e-9);
    assert_near(knee_plan_billion_cost(a, 1, &a->rows[0].found.best[0].cost), 1e8, 1e-3);
    a = plan_answer(rising, 5, 106, NAN, 3600); /* the fastest that it pays for */
    assert_int_equal(a->chosen, 1);
    a = plan_answer(rising, 5, NAN, 60, 3600); /* the cheapest in time */
    assert_int_equal(a->chosen, 1);
    a = plan_answer(rising, 5, NAN, 60, NAN); /* without a price the fewest */
    assert_int_equal(a->chosen, 1);
    assert_true(isnan(a->cheapest));
    a = plan_answer(rising, 5, 90, 60, 3600);
    assert_int_equal(a->chosen, SIZE_MAX);
    assert_true(isnan(a->replicas_knee));
    a = plan_answer(late, 4, 1000, 100, 3600);
    assert_int_equal(a->chosen, 3);
    assert_false(a->rows[1].fits);
    a = plan_answer(none, 2, 1000, NAN, 3600);
    assert_true(a->chosen == SIZE_MAX && isnan(a->knee_gpus) && a->remedy_count == 0);
    a = plan_answer(none, 0, NAN, NAN, NAN);
    assert_true(isnan(a->knee_sure.low) && isnan(a->fastest_s));
}

/* ---- A recorded job ---- */

enum { JOB_RANKS = 2, JOB_STEPS = 3 };
#define MILLI INT64_C(1000000)

struct recorded {
    struct knee_trace traces[JOB_RANKS];
    struct knee_account account;
};

/* Each step: a product of 4 ms, then an all-reduce of 2 ms; launched as they should be. */
static void record(struct recorded *job)
{
    struct knee_err err;
    memset(job, 0, sizeof *job);
    for (int r = 0; r < JOB_RANKS; r++) {
        struct knee_builder *b = knee_builder_new(NULL, NULL);
        uint32_t gemm = knee_builder_name(b, "gemm", 4);
        uint32_t wire = knee_builder_name(b, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 39);
        uint32_t launch = knee_builder_name(b, "cudaLaunchKernel", 16);
        uint32_t range = knee_builder_name(b, "train", 5);
        uint32_t module = knee_builder_name(b, "nn.Module: Net", 14);
        for (int s = 0; s < JOB_STEPS; s++)
            for (int k = 0; k < 2; k++) {
                int64_t at = 10 * MILLI * s + 4 * MILLI * k, host = 10 * MILLI * s + 1000 * k;
                struct knee_call_facts facts = KNEE_CALL_UNKNOWN;
                uint64_t correlation = (uint64_t)(2 * s + k + 1);
                facts.bytes = 1 << 20;
                facts.group_size = JOB_RANKS;
                facts.sequence = s;
                knee_builder_host(b, host, host + 500, 1, KNEE_HOST_LAUNCH, launch);
                if (k == 0) { /* what the host is in from step to step: a module in a range */
                    knee_builder_host(b, host + 600, host + 10 * MILLI + 100, 1, KNEE_HOST_RANGE,
                                      range);
                    knee_builder_host(b, host + 700, host + 10 * MILLI + 50, 1, KNEE_HOST_MODULE,
                                      module);
                }
                knee_builder_launch(b, host, host + 500, 1, correlation);
                knee_builder_span(b, &(struct knee_gpu_work){0, at + 2000, at + (k ? 2 : 4) * MILLI,
                                                             k ? wire : gemm, 7 + k, correlation,
                                                             false, k ? &facts : NULL});
                if (k == 0)
                    knee_builder_step(b, host, host + 10 * MILLI, s);
            }
        job->traces[r] = (struct knee_trace){.rank = r, .world_size = JOB_RANKS, .format = "test"};
        job->traces[r].file = strdup("test");
        assert_ok(knee_builder_finish(b, &job->traces[r], NULL));
        knee_builder_free(b);
    }
    assert_ok(knee_account(job->traces, JOB_RANKS, NULL, &job->account, &err));
}

static void recorded_release(struct recorded *job)
{
    knee_account_release(&job->account);
    for (int r = 0; r < JOB_RANKS; r++)
        knee_trace_release(&job->traces[r]);
}

static struct knee_diagnosis diagnosed(const struct recorded *job, const char *words)
{
    struct knee_job given = job_of(words);
    struct knee_diagnosis d;
    struct knee_err err;
    if (knee_diagnose(&job->account, &given, NULL, &d, &err))
        fail_msg("%s", err.what);
    return d;
}

/* What the recording or the user says, and the gap or the number that follows. */
TEST(gaps_of_a_recording)
{
    OWNED(recorded) job;
    record(&job);
    struct knee_diagnosis d = diagnosed(&job, "");
    unsigned usual = d.gaps;
    assert_true((usual & KNEE_GAP_LARGE_BATCH) && !(usual & (KNEE_GAP_GPU | KNEE_GAP_LOSSES)));
    assert_near(1e3 * d.step.wall_s, 10, 4.1);
    static const struct {
        const char *words, *gpu;
        bool graphs, laid_out, lost;
        unsigned more, less;
    } rows[] = {
        {"", "NVIDIA H100", false, false, false, 0, 0},
        {"", "a GPU of the future", false, false, false, KNEE_GAP_GPU, 0},
        {"gpu h100", "a GPU of the future", false, false, false, 0, 0},
        {"cluster dgx-h100", "a GPU of the future", false, false, false, 0, 0},
        {"critical-batch 9 global-batch 20 overlap 0.5", "", false, false, false, 0,
         KNEE_GAP_LARGE_BATCH},
        {"bytes-per-param 2 workers 4..8", "", false, false, false, 0, 0},
        {"", "", true, false, false, KNEE_GAP_WHOLE_GRAPHS, 0},
        {"", "", false, true, false, KNEE_GAP_LAID_OUT, 0},
        {"", "", false, false, true, KNEE_GAP_LOSSES, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        snprintf(job.traces[0].gpu_name, sizeof job.traces[0].gpu_name, "%s", rows[i].gpu);
        job.traces[0].whole_graphs = rows[i].graphs;
        job.traces[0].laid_out = rows[i].laid_out;
        job.traces[0].losses[KNEE_LOSS_EVENT].count = rows[i].lost;
        d = diagnosed(&job, rows[i].words);
        if (d.gaps != ((usual | rows[i].more) & ~rows[i].less))
            fail_msg("row %zu: %x", i, d.gaps);
        assert_true(i != 4 || d.share[KNEE_SUSPECT_LARGE_BATCH] > 0.6);
    }
}

/* The call that covers at least half of a gap is named, wherever it stands in the list. */
TEST(a_gap_is_spent_in_a_call)
{
    char *names[] = {"cudaMalloc", "cudaFree"};
    struct knee_host_event calls[] = {{.start_ns = 0, .end_ns = 50, .name = 0},
                                      {.start_ns = 60, .end_ns = 100, .name = 1}};
    struct knee_trace trace = {.names = names, .long_calls = calls, .long_call_count = 2};
    static const struct {
        int64_t from, to;
        const char *call;
        double call_ns;
    } rows[] = {{10, 40, "cudaMalloc", 30},
                {55, 95, "cudaFree", 35},
                {0, 100, "cudaMalloc", 50},
                {45, 65, NULL, 5},
                {101, 200, NULL, 0}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct knee_idle_gap gap = {0};
        knee_find_gap_call(&trace, rows[i].from, rows[i].to, &gap);
        assert_true(rows[i].call ? gap.call && strcmp(gap.call, rows[i].call) == 0 : !gap.call);
        assert_near(1e9 * gap.call_s, rows[i].call_ns, 1e-6);
    }
}

/* Nothing runs from 6 to 10 ms of each step, until the next product. */
TEST(gaps_are_rows)
{
    OWNED(recorded) job;
    struct knee_idle_gaps gaps;
    record(&job);
    knee_list_idle_gaps(&job.account, 10e-3, &gaps);
    size_t followed = 0;
    for (size_t i = 0; i < gaps.count; i++) {
        const struct knee_idle_gap *gap = &gaps.rows[i];
        assert_true(gap->step >= 0 && gap->step < JOB_STEPS && gap->rank >= 0);
        assert_true(fabs(gap->at_s - 6e-3) < 1e-5 && fabs(gap->length_s - 4e-3) < 1e-5);
        assert_true(i == 0 || gap->length_s <= gaps.rows[i - 1].length_s);
        followed += gap->next && strcmp(gap->next, "gemm") == 0 &&
                    strcmp(gap->annotation, "train") == 0 &&
                    strcmp(gap->module, "nn.Module: Net") == 0;
    }
    assert_int_equal(followed, JOB_RANKS * (JOB_STEPS - 1));
    knee_list_idle_gaps(&job.account, 1, &gaps); /* 4 ms are less than 1 % of it */
    assert_int_equal(gaps.count, 0);
    size_t steps = job.account.step_count;
    for (size_t i = 0; i < steps; i++) /* gaps of steps that are cut off do not count */
        job.account.steps[i].complete = false;
    knee_list_idle_gaps(&job.account, 10e-3, &gaps);
    assert_int_equal(gaps.count, 0);
    /* without steps a gap has no number */
    job.account.step_count = 0;
    job.account.step_source = KNEE_STEPS_NONE;
    knee_list_idle_gaps(&job.account, 10e-3, &gaps);
    assert_true(gaps.count > 0 && gaps.rows[0].step == -1);
    job.account.step_count = steps;
}

/* Ranks that end apart by milliseconds on one device of one host take turns on it. */
TEST(ranks_on_one_gpu)
{
    OWNED(recorded) job;
    record(&job);
    for (int way = 0; way < 5; way++) {
        job.account.residual_ns = way == 1 ? 0 : 5 * MILLI;
        snprintf(job.traces[1].host, sizeof job.traces[1].host, "%s", way == 2 ? "other" : "");
        job.traces[0].format = job.traces[1].format = way == 3 ? "cpu" : "test";
        job.traces[1].ranks[0].device = way == 4;
        struct knee_diagnosis d = diagnosed(&job, "");
        assert_int_equal((d.gaps & KNEE_GAP_SHARED_GPU) != 0, way == 0);
    }
    job.traces[1].ranks[0].device = 0;
}

/* Levers by replaying: when, and why not. */
TEST(levers_of_a_recording)
{
    OWNED(recorded) job;
    struct knee_err err;
    record(&job);
    static const struct {
        unsigned gap;
        uint64_t bytes;
        bool large, silent;
        const char *because;
        enum knee_recorded recording;
    } rows[] = {
        {0, 0, false, false, "", KNEE_RECORDED_TRAINING},
        {0, 0, false, false, "", KNEE_RECORDED_FORWARD},
        {0, 0, false, false, "this is not a training step", KNEE_RECORDED_FIRST_STEP},
        {KNEE_GAP_NO_COMPUTE, 0, false, false, "almost no compute", KNEE_RECORDED_TRAINING},
        {KNEE_GAP_ONE_RANK, 0, false, false, "ranks are missing", KNEE_RECORDED_TRAINING},
        {0, 0, false, true, "the host's calls are not in the recording", KNEE_RECORDED_TRAINING},
        {0, KNEE_LEVERS_MOST_BYTES, false, false, "the recording is large", KNEE_RECORDED_TRAINING},
        {0, KNEE_LEVERS_MOST_BYTES, true, false, "", KNEE_RECORDED_TRAINING},
        {0, 1, false, false, "the recording is large", KNEE_RECORDED_TRAINING}, /* of work */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct knee_diagnosis d = diagnosed(&job, "");
        size_t events = job.traces[1].host_event_count;
        d.gaps |= rows[i].gap;
        d.recording = rows[i].recording;
        job.traces[0].bytes = job.traces[1].bytes = rows[i].bytes;
        job.traces[1].host_event_count = rows[i].silent ? 0 : events;
        size_t work = job.traces[1].ranks[0].span_count;
        if (rows[i].bytes == 1)
            job.traces[1].ranks[0].span_count = KNEE_LEVERS_MOST_WORK;
        assert_ok(knee_replay_levers(&job.account, rows[i].large, NULL, &d, &err));
        if (strncmp(d.closed_because, rows[i].because, strlen(rows[i].because)) != 0 ||
            !rows[i].because[0] != !d.closed_because[0])
            fail_msg("row %zu: %s", i, d.closed_because);
        for (size_t k = 0; k < d.lever_count; k++)
            assert_true(d.levers[k].by != (rows[i].because[0] ? KNEE_BY_REPLAY : KNEE_BY_FORM));
        job.traces[1].host_event_count = events;
        job.traces[1].ranks[0].span_count = work;
    }
    struct knee_diagnosis d = diagnosed(&job, "global-batch 64 critical-batch 100 min-steps 1000");
    struct knee_job given = job_of("global-batch 64 critical-batch 100 min-steps 1000");
    d.recording = KNEE_RECORDED_TRAINING; /* little as it is */
    knee_diagnosis_levers(&job.account, &given, &d);
    assert_ok(knee_replay_levers(&job.account, true, NULL, &d, &err));
    assert_true(d.lever_count > 5);
    for (size_t k = 0; k < d.lever_count; k++)
        assert_true(!isnan(d.levers[k].quality_gain));
    job.traces[0].bytes = job.traces[1].bytes = KNEE_LEVERS_MOST_BYTES + 1;
    job.account.ranks[1].trace = job.account.ranks[0].trace; /* both of one file */
    assert_ok(knee_replay_levers(&job.account, false, NULL, &d, &err));
    assert_non_null(strstr(d.closed_because, "the recording is large"));
    job.account.ranks[1].trace = &job.traces[1];
    d = diagnosed(&job, "");
    d.recording = KNEE_RECORDED_TRAINING;
    for (size_t fail_at = 1; fail_at < 12; fail_at++) {
        struct failing memory = {.fail_at = fail_at};
        struct knee_alloc alloc = {failing_resize, &memory};
        knee_status status =
            knee_replay_levers(&job.account, true, &alloc, &d, fail_at % 2 ? &err : NULL);
        assert_int_equal(status, KNEE_SYSTEM);
        assert_int_equal(memory.live, 0);
    }
}

/* ---- Steps ---- */

/* Complete steps count; where there are none, the others; without any, the whole window. */
TEST(which_steps_count)
{
    OWNED(recorded) job;
    struct knee_mean_step means[JOB_RANKS];
    record(&job);
    struct knee_account *account = &job.account;
    for (size_t i = 0; i < account->step_count; i++)
        account->steps[i].complete = account->steps[i].number == 1;
    knee_mean_steps(account, means);
    assert_near(means[0].steps, 1, 0);
    for (size_t i = 0; i < account->step_count; i++)
        account->steps[i].complete = false;
    knee_mean_steps(account, means);
    assert_near(means[0].steps, JOB_STEPS, 0);
    for (size_t i = 0; i < account->step_count; i++)
        account->steps[i].number = -1;
    knee_mean_steps(account, means);
    assert_near(means[0].steps, 1, 0);
    assert_near(means[0].step.wall_s, 1e-9 * (double)account->ranks[0].ledger.window_ns, 1e-12);
}

/* ---- The roofline ---- */

static struct knee_product product(double count, double m, double n, double k, int bytes)
{
    return (struct knee_product){.count = count,
                                 .m = m,
                                 .n = n,
                                 .k = k,
                                 .element_bytes = bytes,
                                 .kernel_ns = MILLI,
                                 .first_ns = 10 * MILLI + 3000};
}

/* What is judged, by the type of its numbers; what is not: no peak is known, another device, no
 * kernel, outside of steps. */
TEST(what_has_a_roofline)
{
    static const struct {
        int bytes;
        const char *kernel;
        int64_t device, kernel_ns;
        bool judged, counted;
    } rows[] = {
        {2, "gemm", 0, MILLI, true, true},      {1, "gemm", 0, MILLI, true, true},
        {4, "gemm_tf32", 0, MILLI, true, true}, {4, "gemm", 0, MILLI, false, true},
        {4, NULL, 0, MILLI, false, true},       {0, "gemm", 0, MILLI, false, true},
        {2, "gemm", -1, MILLI, false, false},   {2, "gemm", 1, MILLI, false, false},
        {2, "gemm", 0, 0, false, false},
    };
    OWNED(recorded) job;
    record(&job);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct knee_product p = product(1, 4096, 4096, 4096, rows[i].bytes);
        char *names[] = {(char *)(uintptr_t)(rows[i].kernel ? rows[i].kernel : "")};
        char **own = job.traces[0].names;
        p.device = rows[i].device;
        if (p.device < 0) { /* after all steps */
            p.device = 0;
            p.first_ns = 1000 * MILLI;
        }
        p.kernel_ns = rows[i].kernel_ns;
        p.kernel = rows[i].kernel != NULL;
        struct knee_diagnosis d = diagnosed(&job, "gpu h100");
        job.traces[0].products = &p;
        job.traces[0].product_count = 1;
        job.traces[0].names = names;
        knee_find_roofline(&job.account, d.inputs.hw.gpu, &d);
        assert_int_equal(d.roofline.judged_s > 0, rows[i].judged);
        assert_int_equal(d.roofline.product_s > 0, rows[i].counted);
        assert_true(!rows[i].judged || d.roofline.rows == 4096);
        knee_find_roofline(&job.account, -1, &d); /* nobody knows the GPU */
        assert_true(d.roofline.judged_s == 0);
        job.traces[0].names = own;
        job.traces[0].products = NULL;
        job.traces[0].product_count = 0;
    }
}

/* Whichever side of a product is the batch, a larger one makes its examples no dearer; products
 * without a common side have no batch. */
TEST(sides_of_the_batch)
{
    struct knee_product mixed[80],
        p[] = {
            product(1, 512, 4096, 4096, 2), product(1, 4096, 4096, 512, 2),
            product(1, 4096, 512, 4096, 2), product(8, 128, 128, 64, 2),
            product(1, 512, 4096, 4096, 2), product(1, 512, 4096, 4096, 2),
            product(32, 512, 512, 64, 2),   product(1, 7, 7, 7, 2),
        };
    OWNED(recorded) job;
    p[6].attention = true;
    record(&job);
    struct knee_diagnosis d = diagnosed(&job, "gpu h100");
    job.traces[0].products = p;
    job.traces[0].product_count = COUNT(p);
    knee_find_roofline(&job.account, d.inputs.hw.gpu, &d);
    assert_near(d.roofline.rows, 512, 0);
    for (int i = 1; i < KNEE_BATCH_FACTORS; i++)
        assert_true(d.roofline.scaled_s[i] <= d.roofline.scaled_s[i - 1] * (1 + 1e-9));
    assert_true(d.roofline.mend >= 1 && d.roofline.large_s > 0);
    for (size_t i = 0; i < COUNT(mixed); i++)
        mixed[i] = product(1, 100 + (double)(i * 37 % 80), 64, 64, 2);
    job.traces[0].products = mixed;
    job.traces[0].product_count = COUNT(mixed);
    knee_find_roofline(&job.account, d.inputs.hw.gpu, &d);
    assert_true(isnan(d.roofline.rows) && isnan(d.roofline.large_s) && isnan(d.roofline.mend));
    job.traces[0].products = NULL;
    job.traces[0].product_count = 0;
}

/* Whether graphs would help, and how much of the time fills less than half of the GPU. */
TEST(graphs_and_grids)
{
    static const struct {
        double host, short_share, graphs;
        bool help;
    } rows[] = {
        {0.5, 0.5, 0, true}, {0.001, 0.5, 0, false}, {0.5, 0.1, 0, false}, {0.5, 0.5, 50, false}};
    struct knee_diagnosis d;
    struct knee_job job = job_of("gpu h100");
    memset(&d, 0, sizeof d);
    d.step.wall_s = 1;
    d.inputs = job;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct knee_kernel_use kernels[] = {{.blocks = -1, .exposed_s = 5},
                                            {.blocks = 8, .exposed_s = 2},
                                            {.blocks = 4096, .exposed_s = 1}};
        struct knee_where where = {.kernels = kernels, .kernel_count = i ? 3 : 1};
        where.launches.launches = 100;
        where.launches.short_share = rows[i].short_share;
        where.launches.graphs = rows[i].graphs;
        d.step.label_s[KNEE_HOST] = rows[i].host;
        knee_judge_where(&d, &where);
        assert_int_equal(where.graphs_help, rows[i].help);
        assert_true(i ? where.half_empty_s == 2 : isnan(where.half_empty_s));
        d.inputs.hw.gpu = -1;
        knee_judge_where(&d, &where);
        assert_true(isnan(where.half_empty_s));
        d.inputs.hw.gpu = job.hw.gpu;
    }
}

/* A change cannot make a step shorter than its compute, nor save more than that. */
TEST(savings_follow_the_gain_that_is_promised)
{
    struct knee_diagnosis d = {.recording = KNEE_RECORDED_TRAINING, .workers = 8, .lever_count = 1};
    d.step.wall_s = 1;
    d.step.label_s[KNEE_COMPUTE] = 0.8;
    d.cost.day = 100;
    d.levers[0] = (struct knee_lever){.name = "overlap", .gain = 1, .cost_ratio = 0.5};
    d.levers[0].row.workers = 8;
    d.levers[0].row.step.wall_s = 0.5;
    knee_diagnosis_choose(&d);
    assert_near(d.levers[0].gain, 0.25, 1e-12);
    assert_near(d.levers[0].cost_ratio, 0.8, 1e-12);
    assert_near(d.levers[0].saved_per_day, 20, 1e-9);
}
