/* SPDX-License-Identifier: MIT */
/*
 * Answers that were made by hand, written in every format and style: what each of them must say,
 * and what holds for all of them (shown.h).
 */
#include "shown.h"

#include "knee_replay.h"
#include "out/answer.h"
#include "out/gzip_out.h"
#include "out/table.h"
#include "out/words.h"
#include "say/answers.h"
#include "say/lab_result.h"
#include "say/trace_fields.h"
#include "say/watch_report.h"

/* ---- NCCL's RAS service ---- */

enum { RAS_RANKS = 40 };

struct ras_case {
    struct knee_ras_rank ranks[RAS_RANKS];
    struct knee_ras_row rows[RAS_RANKS];
    struct knee_ras_answer answer;
    struct knee_ras_report report;
};

static void ras_init(struct ras_case *c, size_t count)
{
    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < count; i++) {
        c->ranks[i] = (struct knee_ras_rank){.comm = "0xab", .rank = (int64_t)i, .calls = 7};
        snprintf(c->ranks[i].host, sizeof c->ranks[i].host, "node%zu", i);
        c->rows[i] = (struct knee_ras_row){.rank = &c->ranks[i], .calls_per_s = i % 2 ? 12.5 : NAN};
    }
    c->answer = (struct knee_ras_answer){
        .rows = c->rows, .count = count, .answers = 3, .comms = 2, .seconds = 1.5};
    c->report = (struct knee_ras_report){&c->answer, "2.28.9"};
}

TEST(ras_says_who)
{
    static struct ras_case c;
    ras_init(&c, 4);
    assert_shown(&knee_ras_answer_type, &c.report,
                 SAYS("All ranks respond; none is consistently behind."));
    c.ranks[0].dead = c.ranks[0].unresponsive = c.ranks[1].unresponsive = c.ranks[2].failed = true;
    c.rows[3].late = true;
    c.answer.dead = c.answer.unresponsive = c.answer.failed = c.answer.late = 1;
    assert_shown(&knee_ras_answer_type, &c.report,
                 SAYS("Rank 0 on node0 is dead.", "Rank 1 on node1 does not respond.",
                      "Rank 2 on node2 reports an error.", "Rank 3 on node3 is always behind.",
                      "dead", "unresponsive", "error", "late"));
    ras_init(&c, 4);
    c.answer.still_comms = 1;
    c.ranks[2].missing = true;
    c.rows[1].still = true;
    assert_shown(&knee_ras_answer_type, &c.report,
                 SAYS("1 of 2 communicators enqueued nothing for 1.5 s.",
                      "All ranks have enqueued as many calls", "still", "missing"));
    c.rows[1].lag = 4;
    assert_shown(&knee_ras_answer_type, &c.report,
                 SAYS("Rank 1 on node1 is behind: the others wait for it."));
    ras_init(&c, RAS_RANKS); /* more than are listed: those with something to say */
    for (size_t i = 0; i < RAS_RANKS - 2; i++)
        c.rows[i].late = true;
    c.answer.late = RAS_RANKS - 2;
    assert_shown(&knee_ras_answer_type, &c.report,
                 SAYS("Ranks 0 on node0, 1 on node1,", "5 on node5 and 32 more are always"));
}

/* ---- A job that is watched ---- */

enum { WATCHED = 40 };

struct watch_case {
    struct knee_live_about about[WATCHED];
    struct knee_watch_rank ranks[WATCHED];
    struct knee_watch_point points[4];
    struct knee_watch_wire wires[20];
    struct knee_watch watch;
    struct knee_alarm alarms[2];
    struct knee_alarm_state states[2];
    const char *words[2];
    struct knee_rank_account rank_account;
    struct knee_straggler straggler;
    struct knee_account account;
    struct knee_diagnosis diagnosis;
    struct knee_watch_report report;
};

static const struct knee_step some_step = {
    .wall_s = 1,
    .comm_s = 0.4,
    .label_s = {[KNEE_COMPUTE] = 0.6, [KNEE_TRANSFER] = 0.3, [KNEE_WAIT] = 0.1}};

static void watch_init(struct watch_case *c, size_t count)
{
    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < count; i++) {
        c->about[i] = (struct knee_live_about){.host = "n\"1", .rank = (int64_t)i};
        c->ranks[i] = (struct knee_watch_rank){.about = &c->about[i],
                                               .step = 400,
                                               .step_s = 1,
                                               .wait_s = NAN,
                                               .late_s = 0.001 * (double)(i % 37),
                                               .power_w = i % 2 ? 500 : NAN,
                                               .sm_mhz = 1500,
                                               .temp_c = 70,
                                               .joules = NAN};
    }
    for (size_t i = 0; i < 4; i++)
        c->points[i] = (struct knee_watch_point){
            .step = 100 + 100 * (int64_t)i, .step_s = 1, .wait_s = 0, .late_s = 0};
    c->watch = (struct knee_watch){.ranks = c->ranks,
                                   .rank_count = count,
                                   .world = (int64_t)count,
                                   .points = c->points,
                                   .point_count = 4,
                                   .step = 400,
                                   .first_step = 100,
                                   .step_s = 1.1,
                                   .first_step_s = 1,
                                   .wait_s = NAN,
                                   .late_rank = SIZE_MAX,
                                   .late_change_rank = SIZE_MAX,
                                   .slow_wire = SIZE_MAX,
                                   .wires = c->wires,
                                   .dollars = NAN,
                                   .stall_dollars = NAN,
                                   .joules = NAN,
                                   .overhead = NAN};
    c->report = (struct knee_watch_report){.name = "run", .watch = &c->watch, .trace_step = -1};
}

/* Every cause that a late rank can have. */
TEST(watch_says_why)
{
    static const struct {
        enum knee_watch_cause cause;
        const char *words;
    } causes[] = {
        {KNEE_WATCH_HOT, "Its GPU is hot: 70 C, clock 1500 MHz."},
        {KNEE_WATCH_POWER, "The power limit holds its clock at 1500 MHz."},
        {KNEE_WATCH_CLOCK, "Its clock is 1500 MHz, lower than elsewhere."},
        {KNEE_WATCH_LABEL, "Its starved input takes 200 ms longer than elsewhere."},
        {KNEE_WATCH_UNKNOWN, "Cause unknown: no step sampled yet."},
    };
    static struct watch_case c;
    watch_init(&c, 3);
    assert_shown(&knee_watch_answer, &c.report,
                 SAYS("RUNNING: run, 3 ranks, step 400", "Cannot tell whether a rank is late.",
                      "Efficiency unknown"));
    c.watch.meetings = 5;
    c.watch.world = 8;
    assert_shown(&knee_watch_answer, &c.report,
                 SAYS("3 of 8 ranks", "No rank is holding up the others."));
    c.watch.step = -1;
    c.watch.late_rank = 2;
    c.watch.late_s = 0.11;
    c.watch.label = KNEE_STARVED;
    c.watch.label_s = 0.2;
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        c.watch.cause = causes[i].cause;
        assert_shown(&knee_watch_answer, &c.report,
                     SAYS("Rank 2 on n\"1 is the straggler: the others wait 110 ms of every 1.1 s.",
                          causes[i].words));
    }
}

TEST(watch_says_what_changed_and_what_it_costs)
{
    static struct watch_case c;
    watch_init(&c, 3);
    c.watch.step_change = (struct knee_change){true, 2, 1, 1.3, 1e-6};
    c.watch.late_change = (struct knee_change){true, 1, 0, 0.2, 1e-6};
    c.watch.late_change_rank = 1;
    c.watch.silent = 1;
    c.ranks[1].silent = true;
    c.watch.dollars = 1234;
    c.watch.price_per_hour = 2.5;
    c.watch.price_assumed = true;
    c.watch.stall_dollars = 100;
    c.watch.joules = 5e6;
    c.watch.overhead = 0.003;
    c.watch.damaged = 4;
    c.watch.left_out = 5;
    c.watch.partial = 6;
    c.report.trace_bytes = 5000000000;
    c.report.earlier = 7;
    c.report.unusable = 8;
    c.watch.sampled = some_step;
    c.watch.sampled_step = 250;
    c.watch.wait_s = 0.2;
    c.ranks[0].step_sampled = some_step;
    assert_shown(&knee_watch_answer, &c.report,
                 SAYS("HUNG: no update from rank 1 while others go on.",
                      "Steps went from 1 s to 1.3 s", "Efficiency 60% at step 250, before steps",
                      "Cost so far $1,234 at list price.", "Energy so far 5 MJ.",
                      "Recorder overhead 0.3%."));
    c.watch.state = KNEE_WATCH_STALE;
    c.watch.silent = 0;
    c.watch.age_s = 7200;
    assert_shown(&knee_watch_answer, &c.report, SAYS("STALE: run", "STALE: no update for 2 h"));
    c.report.hang = "Rank 1 ran out of memory.";
    c.report.hang_fix = "lower the batch";
    assert_shown(&knee_watch_answer, &c.report,
                 SAYS("Rank 1 ran out of memory.", "Fix: lower the batch."));
}

/* Alarms, slow communicators, an account, and more ranks than a screen has lines. */
TEST(watch_says_what_is_wrong)
{
    static struct watch_case c;
    struct knee_err err;
    watch_init(&c, WATCHED);
    c.words[0] = "R > 0.5 for 5m";
    c.words[1] = "step > 2s";
    for (size_t i = 0; i < 2; i++)
        assert_ok(knee_alarm_parse(c.words[i], &c.alarms[i], &err));
    c.states[0] = (struct knee_alarm_state){true, true, 0.7, 300, 400};
    c.states[1] = (struct knee_alarm_state){false, false, NAN, -1, 0};
    c.report.alarms = c.alarms;
    c.report.states = c.states;
    c.report.alarm_words = c.words;
    c.report.alarm_count = 2;
    for (size_t i = 0; i < 20; i++)
        c.wires[i] = (struct knee_watch_wire){.op_name = "AllReduce",
                                              .bytes = 1 << 20,
                                              .members = 8,
                                              .a_rank = 3,
                                              .calls = 9,
                                              .wire_s = 0.001,
                                              .bus_bytes_per_s = i ? 1e9 : NAN,
                                              .slowdown = i ? 1.1 : NAN};
    c.watch.wire_count = 20;
    c.watch.slow_wire = 15;
    c.wires[15].slowdown = 6;
    c.watch.silent = 12;
    for (size_t i = 0; i < 12; i++)
        c.ranks[i].silent = true;
    c.watch.late_rank = 39;
    c.watch.late_s = 0.2;
    c.rank_account.rank = 39;
    c.straggler = (struct knee_straggler){.rank = 0, .cause = KNEE_HOST};
    c.account = (struct knee_account){.ranks = &c.rank_account,
                                      .rank_count = 1,
                                      .stragglers = &c.straggler,
                                      .straggler_count = 1};
    c.diagnosis = (struct knee_diagnosis){.step = some_step, .split = true, .late_ranks = 1};
    c.report.account = &c.account;
    c.report.diagnosis = &c.diagnosis;
    c.report.trace_step = 390;
    assert_shown(&knee_watch_answer, &c.report,
                 SAYS("ALARM: R > 0.5 for 5m: R is 0.7 since step 300.",
                      "HUNG: no update from ranks 0, 1", "7 and more while others go on.",
                      "Rank 39", "Slow link: AllReduce of 1 MiB", "6x as long",
                      "Efficiency 60% at step 390."));
    c.diagnosis.split = false;
    c.diagnosis.late_ranks = 0;
    assert_shown(&knee_watch_answer, &c.report, SAYS("Efficiency 60% at step 390."));
}

/* ---- The lab ---- */

static struct knee_lab lab_of(size_t rows)
{
    struct knee_lab lab = {.runtime = "local",
                           .model = "mlp",
                           .wire = "f32",
                           .sync = "all-reduce",
                           .optimizer = "sgd",
                           .ranks = 1,
                           .hosts = 1,
                           .params = 1e6,
                           .batch = 64,
                           .accumulate = 1,
                           .steps = 20,
                           .buckets = 1,
                           .tolerance = 0.8,
                           .latency_s = NAN,
                           .bandwidth_bytes_per_s = NAN,
                           .measured = {NAN, NAN},
                           .predicted = {4, NAN},
                           .median_error = NAN,
                           .worst_error = NAN,
                           .critical_batch = NAN,
                           .row_count = rows};
    for (size_t i = 0; i < rows; i++)
        lab.rows[i] = (struct knee_lab_row){.workers = exp2((double)i),
                                            .measured_step_s = 1,
                                            .predicted_step_s = 1.1,
                                            .compute_s = 0.8,
                                            .comm_s = 0.2,
                                            .exposed_comm_s = 0.2,
                                            .ratio = 0.25,
                                            .gamma = 0.25,
                                            .efficiency = 0.9,
                                            .predicted_efficiency = 0.91,
                                            .loss = i % 2 ? 2.5 : NAN,
                                            .sent_bytes = 1e6,
                                            .model_bytes = 1e6};
    return lab;
}

TEST(lab_says_where_the_knee_is)
{
    struct knee_lab lab = lab_of(1);
    assert_shown(
        &knee_lab_answer, &lab,
        SAYS("mlp, 1M values as f32, all-reduce, after backward; strong scaling, batch 64; "
             "1 rank on 1 node (local)",
             "One rank takes 1 s per step."));
    lab = lab_of(3);
    lab.overlap = lab.weak = lab.synthetic = lab.paced = true;
    lab.ranks = lab.hosts = 2;
    lab.buckets = 3;
    lab.accumulate = 4;
    lab.latency_s = 1e-5;
    lab.bandwidth_bytes_per_s = 1e9;
    lab.measured.gamma_one_workers = 3;
    lab.median_error = 0.05;
    lab.worst_error = 0.1;
    snprintf(lab.notes[0], sizeof lab.notes[0], "a note");
    snprintf(lab.notes[1], sizeof lab.notes[1], "another");
    lab.note_count = 2;
    assert_shown(&knee_lab_answer, &lab,
                 SAYS("overlapping backward; weak scaling, batch 64; 2 ranks on 2 nodes",
                      "All 4 ranks are worth it: efficiency 90% with 4 ranks.",
                      "The prediction says 4 ranks.", "off by 5% (median), 10% at most",
                      "a note another", "synthetic"));
    lab.measured.tolerance_workers = 2;
    assert_shown(&knee_lab_answer, &lab, SAYS("Stop at 2 ranks: more fall below 80% efficiency."));
}

TEST(lab_says_what_was_hunted_and_pushed)
{
    struct knee_lab lab = lab_of(0);
    lab.hunt_count = 2;
    lab.hunts[0] = (struct knee_lab_hunt){"straggler", "slept", "straggler", 3, 0.1, 0.6, "waits"};
    lab.hunts[1] = (struct knee_lab_hunt){"none", "nothing", "starved input", 4, NAN, NAN, ""};
    assert_shown(&knee_lab_answer, &lab,
                 SAYS("knee named the trouble in 1 of 2 runs.", "straggler", "yes", "10%", "60%",
                      "starved input", "NO"));
    lab.synthetic = true;
    lab.critical_batch = 512;
    lab.push_count = 2;
    lab.pushes[0] = (struct knee_lab_push){.lever = "compress", .part = "communication"};
    lab.pushes[1] = (struct knee_lab_push){.lever = "batch", .part = "statistics", .loss = 2};
    assert_shown(&knee_lab_answer, &lab,
                 SAYS("knee named the trouble in 1 of 2 runs.", "compress", "batch", "synthetic"));
}

/* ---- Roll calls ---- */

enum { ROLL = 40 };

struct roll_case {
    struct knee_comm_group groups[2];
    struct knee_roll_rank ranks[ROLL];
    struct knee_collective_account kinds[ROLL];
    struct knee_stuck stuck[ROLL];
    struct knee_blamed blamed[ROLL];
    int32_t absent[ROLL];
    struct knee_rollcall roll;
    struct knee_roll_answer answer;
    struct knee_roll_report report;
};

static void roll_init(struct roll_case *c)
{
    static char name[] = "dp", words[] = "data parallel";
    memset(c, 0, sizeof *c);
    c->groups[0] = (struct knee_comm_group){.name = name, .description = words, .size = 8};
    c->groups[1] = (struct knee_comm_group){.name = name, .size = -1};
    for (int i = 0; i < ROLL; i++) {
        c->absent[i] = i;
        c->blamed[i] = (struct knee_blamed){i, i ? KNEE_BLAME_SILENT : KNEE_BLAME_BEHIND, 1};
        c->ranks[i] = (struct knee_roll_rank){.rank = i,
                                              .group = (uint32_t)(i % 2),
                                              .calls = 9,
                                              .joined = i % 3 ? 9 : 0,
                                              .last = (size_t)i,
                                              .wait_ns = 1000,
                                              .held_ns = i};
        c->kinds[i] = (struct knee_collective_account){.op = KNEE_OP_ALL_REDUCE,
                                                       .group = "dp",
                                                       .description = "",
                                                       .bytes = i % 2 ? 1 << 20 : -1,
                                                       .group_size = i % 2 ? 8 : -1,
                                                       .calls = 9,
                                                       .matched = 8,
                                                       .duration_s = 0.1,
                                                       .wait_s = 0.05,
                                                       .transfer_s = 0.05,
                                                       .bus_bytes_per_s = 1e9,
                                                       .expected_s = 0.01};
        c->stuck[i] = (struct knee_stuck){.group = (uint32_t)(i % 2),
                                          .sequence = i,
                                          .op = KNEE_OP_ALL_GATHER,
                                          .bytes = i % 2 ? 4096 : -1,
                                          .entered = 3,
                                          .absent = c->absent,
                                          .absent_count = (size_t)i};
    }
    c->roll = (struct knee_rollcall){
        .format = "flight recorder", .groups = c->groups, .group_count = 1, .source_count = 1};
    c->answer = (struct knee_roll_answer){.ranks = c->ranks,
                                          .collectives = c->kinds,
                                          .stuck = c->stuck,
                                          .blamed = c->blamed,
                                          .missing = c->absent,
                                          .slow_wire = SIZE_MAX};
    c->report = (struct knee_roll_report){&c->roll, &c->answer};
}

TEST(roll_calls_say_who_is_missing)
{
    static struct roll_case c;
    roll_init(&c);
    c.answer.blamed_count = 1;
    c.answer.stuck_count = 3;
    assert_shown(&knee_roll_answer_type, &c.report,
                 SAYS("1 Flight Recorder dump, 1 group", "Look at rank 0: it has fallen behind",
                      "all_gather"));
    c.blamed[0].groups = 2;
    c.answer.blamed_count = 20;
    c.answer.stuck_count = ROLL;
    assert_shown(&knee_roll_answer_type, &c.report,
                 SAYS("Look at ranks 0, 1, 2, 3, 4, 5 and 14 more: they have fallen behind",
                      "0 and 1", "more rows with -v"));
    c.blamed[0].blame = KNEE_BLAME_SILENT;
    c.answer.blamed_count = 2;
    c.answer.missing_count = 3;
    c.answer.mismatched = 2;
    c.answer.mismatch_sequence = 17;
    assert_shown(&knee_roll_answer_type, &c.report,
                 SAYS("No dump of ranks 0, 1 and 2.",
                      "Look at ranks 0 and 1: they have not entered what the others wait in.",
                      "Ranks disagree on operation or size in 2 collectives",
                      "number 17 of group dp"));
    c.groups[0].members = c.absent; /* a group with a member that gave no dump waits */
    c.groups[0].member_count = 1;
    assert_shown(&knee_roll_answer_type, &c.report,
                 SAYS("Check ranks 0, 1 and 2 first: no dump, and other ranks wait."));
    c.answer.blamed_count = c.answer.missing_count = 0; /* "all" when all gave a dump */
    assert_shown(&knee_roll_answer_type, &c.report, SAYS("All ranks are in the same collectives"));
}

TEST(roll_calls_say_who_is_late)
{
    static struct roll_case c;
    roll_init(&c);
    assert_shown(&knee_roll_answer_type, &c.report,
                 SAYS("No collective was found on two or more ranks."));
    c.roll.untimed = 1;
    c.roll.format = "nccl inspector";
    c.roll.source_count = c.roll.group_count = 2;
    c.roll.skipped = 5;
    assert_shown(
        &knee_roll_answer_type, &c.report,
        SAYS("2 NCCL Inspector files, 2 groups", "set TORCH_NCCL_ENABLE_TIMING=1", "Skipped: 5"));
    c.answer.joined = 7;
    c.answer.rank_count = ROLL;
    c.answer.collective_count = ROLL;
    c.answer.wait_ns = 3000;
    c.answer.transfer_ns = 1000;
    assert_shown(&knee_roll_answer_type, &c.report,
                 SAYS("No rank is late more often than by chance.",
                      "Waiting is 75% of the time in collectives"));
    c.ranks[5].late = c.ranks[7].late = c.ranks[9].late = true;
    c.ranks[7].held_ns = 5000000000;
    c.ranks[9].duration_ns = 10;
    c.answer.partial = 1;
    c.answer.slow_wire = 1;
    snprintf(c.answer.machine, sizeof c.answer.machine, "dgx-h100");
    assert_shown(&knee_roll_answer_type, &c.report,
                 SAYS("Rank 7 is late: it comes last at 7 of 9 collectives.",
                      "The others waited 5 s for it.", "at least 75%",
                      "Slow link: all_reduce of 1 MiB at 1 GB/s; dgx-h100 reaches 5 GB/s."));
}

/* ---- Who slows a pipeline down ---- */

TEST(every_cause_of_a_slowdown_has_words)
{
    static const struct {
        enum knee_slow_cause cause;
        const char *words;
    } causes[] = {
        {KNEE_SLOW_NONE, "Healthy: the pipeline is even."},
        {KNEE_SLOW_STAGE, "Stage 1 does more work than the others: alone it costs 1.2x."},
        {KNEE_SLOW_SEQUENCE, "Micro-batches differ by 30%"},
        {KNEE_SLOW_WORKER, "The slowest 3% of ranks alone make the step 1.1x as long."},
        {KNEE_SLOW_WIRE, "Communication time varies."},
        {KNEE_SLOW_MIXED, "No single part explains it."},
    };
    struct knee_slowdown s = {.steps = 2,
                              .ranks = 4,
                              .ops = 90,
                              .stages = KNEE_SLOW_PARTS + 1,
                              .replicas = 2,
                              .measured_step_s = 1.3,
                              .plain_step_s = 1.25,
                              .even_step_s = 1,
                              .slowdown = 1.25,
                              .worst_workers = 1.1,
                              .variation = 0.3,
                              .stage = 1};
    for (int k = 0; k < KNEE_LOGGED_KINDS; k++)
        s.by_kind[k] = k % 2 ? NAN : 1.1;
    for (int i = 0; i < KNEE_SLOW_PARTS; i++)
        s.by_stage[i] = s.by_replica[i] = 1.2;
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        s.cause = causes[i].cause;
        assert_shown(&knee_slowdown_answer, &s, SAYS(causes[i].words));
    }
}

/* ---- Two training logs ---- */

TEST(logs_say_what_changed)
{
    struct knee_train_log before = {.name = "a.log",
                                    .format = "megatron",
                                    .p95_s = 1.2,
                                    .tokens_per_s = NAN,
                                    .tflops = NAN},
                          after = before;
    struct knee_log_comparison c = {.before = {&before, 1, 0.01, 50},
                                    .after = {&after, 1.2, 0.01, 40},
                                    .work = 1,
                                    .longer = 0.2,
                                    .slower = 0.2,
                                    .noise = NAN,
                                    .significant = true};
    assert_shown(&knee_diff_logs_answer, &c,
                 SAYS("The step is 20% slower; too few steps to rule out noise.",
                      "Step: 1 s before, 1.2 s after.", "Same configuration in both logs",
                      "median step"));
    after.tokens_per_s = 100;
    before.outlier_share = 0.1;
    c.noise = 0.01;
    c.chance = 0.03;
    c.changes[0] = (struct knee_log_change){"batch", "64", "128"};
    c.changes[1] = (struct knee_log_change){"GPU", "h100", "a100"};
    c.change_count = 2;
    c.more_changes = 3;
    assert_shown(&knee_diff_logs_answer, &c,
                 SAYS("The step is 20% slower; noise is 3%.",
                      "Changed: batch 64 -> 128, GPU h100 -> a100 and more (-v).", "tokens/s",
                      "in outliers"));
    c.work = 2;
    c.slower = -0.4;
    c.significant = false;
    c.change_count = c.more_changes = 0;
    assert_shown(
        &knee_diff_logs_answer, &c,
        SAYS("No significant change: -40%, noise is 3%.", "Each GPU does 2x the work per step."));
    c.work = 1;
    assert_shown(&knee_diff_logs_answer, &c, SAYS("No significant change: -40%, noise is 3%."));
}

/* ---- Two recordings ---- */

struct pair_case {
    struct knee_comparison c;
    struct knee_rank_account ranks[2];
    struct knee_trace traces[2];
    struct knee_straggler straggler;
    struct knee_account before, after;
    struct knee_diagnosis before_diagnosis, after_diagnosis;
    struct knee_comparison_report report;
};

static void pair_init(struct pair_case *p)
{
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < 2; i++) {
        p->ranks[i] = (struct knee_rank_account){.rank = 5 + (int64_t)i, .trace = &p->traces[i]};
        snprintf(p->traces[i].gpu_name, sizeof p->traces[i].gpu_name, i ? "H100" : "A100");
    }
    p->straggler = (struct knee_straggler){.cause = KNEE_STARVED, .excess_ns = 400000000};
    p->before = (struct knee_account){
        .ranks = &p->ranks[0], .rank_count = 1, .world_size = -1, .stragglers = &p->straggler};
    p->after = (struct knee_account){
        .ranks = &p->ranks[1], .rank_count = 1, .world_size = 16, .stragglers = &p->straggler};
    p->before_diagnosis =
        (struct knee_diagnosis){.steps = 2, .step = some_step, .overlap = 0.5, .load_share = 0.1};
    p->before_diagnosis.works[KNEE_KERNEL_PRODUCT].count = 50;
    p->after_diagnosis = p->before_diagnosis;
    p->after_diagnosis.steps = 4;
    p->c = (struct knee_comparison){.before = some_step,
                                    .after = some_step,
                                    .change = 0.5,
                                    .share_of_before = 0.5,
                                    .late_excess_s = 0.2,
                                    .before_kernels = 50,
                                    .after_kernels = 60,
                                    .noise_s = 0.01,
                                    .chance_s = 0.02,
                                    .significant = true,
                                    .label = KNEE_COMPUTE,
                                    .share = 0.8,
                                    .largest_rank = SIZE_MAX,
                                    .before_dtype = "f32",
                                    .after_dtype = "bf16"};
    p->c.after.wall_s = 1.5;
    p->c.after.label_s[KNEE_COMPUTE] = 1.1;
    p->report = (struct knee_comparison_report){&p->c, &p->before, &p->after, &p->before_diagnosis,
                                                &p->after_diagnosis};
}

static void movers_init(struct pair_case *p)
{
    static const enum knee_span_kind kinds[] = {KNEE_SPAN_COMM, KNEE_SPAN_FUSED, KNEE_SPAN_COPY,
                                                KNEE_SPAN_COMPUTE};
    for (size_t i = 0; i < KNEE_MOVERS; i++) {
        p->c.movers[i] = (struct knee_mover){.name = i % 4 == 2 ? "Memcpy" : "gemm",
                                             .length = i % 4 == 2 ? 6 : 4,
                                             .shape = "",
                                             .kind = kinds[i % 4],
                                             .before_s = 1,
                                             .after_s = i % 2 ? 0.5 : 1.5,
                                             .before_calls = 4,
                                             .after_calls = 4};
        p->c.collectives[i] = (struct knee_collective_mover){.op = KNEE_OP_ALL_REDUCE,
                                                             .description = "",
                                                             .bytes = i % 2 ? -1 : 4096,
                                                             .group_size = i % 2 ? -1 : 8,
                                                             .before_s = 1,
                                                             .after_s = i % 2 ? 0.5 : 1.5};
    }
    p->c.mover_count = p->c.collective_count = KNEE_MOVERS;
}

/* Each label that a step can have grown in, and what is said of it. */
TEST(comparisons_say_why)
{
    static const struct {
        enum knee_label label;
        const char *words;
    } labels[] = {
        {KNEE_COMPUTE, " Most: gemm, 1 s -> 500 ms in 4 -> 4 calls."},
        {KNEE_COPY, " Most: Memcpy, 1 s -> 1.5 s in 4 -> 4 calls."},
        {KNEE_WAIT, "80% of the change is "},
        {KNEE_STARVED, " The loader takes 10% of the host's step, 10% before."},
        {KNEE_HOST, " Kernels per step: 50 before, 60 after."},
        {KNEE_TRANSFER, " All communication: 400 ms before, 400 ms after; overlap 50% -> 50%."},
        {KNEE_IDLE, "80% of the change is "},
    };
    static struct pair_case p;
    pair_init(&p);
    assert_shown(
        &knee_diff_answer, &p.report,
        SAYS("The step is 50% longer: 1 s before, 1.5 s after.", "80% of the change is compute"));
    movers_init(&p);
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        p.c.label = labels[i].label;
        assert_shown(&knee_diff_answer, &p.report, SAYS("The step is", labels[i].words));
    }
    p.c.label = KNEE_COMPUTE;
    p.c.operation_count = 1;
    p.c.operations[0] = (struct knee_mover){.name = "aten::mm [8,512]x[512,64]",
                                            .length = 8,
                                            .shape = "[8,512]x[512,64]",
                                            .before_s = 1,
                                            .after_s = 2,
                                            .before_calls = 2,
                                            .after_calls = 2};
    assert_shown(&knee_diff_answer, &p.report,
                 SAYS(" Most: aten::mm [8,512]x[512,64], 1 s -> 2 s in 2 -> 2 kernels."));
    p.c.operations[0].shape = ""; /* the other recording has none */
    assert_shown(&knee_diff_answer, &p.report,
                 SAYS(" Most: aten::mm, 1 s -> 2 s in 2 -> 2 kernels."));
    p.c.operation_count = 0;
    p.c.label = KNEE_HOST;
    p.c.largest_rank = 0;
    p.c.largest_s = 0.3;
    assert_shown(&knee_diff_answer, &p.report, SAYS(" Largest on rank 6: 300 ms per step."));
    p.c.change = -0.5;
    assert_shown(&knee_diff_answer, &p.report, SAYS(" Largest on rank 5: 300 ms per step."));
    p.c.label = KNEE_WAIT;
    p.before_diagnosis.late_ranks = 1;
    assert_shown(&knee_diff_answer, &p.report, SAYS(" Rank 5 is no longer late (starved input)."));
    p.after_diagnosis.late_ranks = 1;
    assert_shown(&knee_diff_answer, &p.report, SAYS(" Rank 6 is now late (starved input)."));
}

TEST(comparisons_say_what_else_differs)
{
    static struct pair_case p;
    pair_init(&p);
    p.c.late_makes_it = true;
    p.c.noise_s = NAN;
    p.c.differs = KNEE_DIFFER_WORLD | KNEE_DIFFER_GPU | KNEE_DIFFER_TRAFFIC | KNEE_DIFFER_KERNELS |
                  KNEE_DIFFER_DTYPE | KNEE_DIFFER_STEPS;
    p.c.late_s = -0.2;
    assert_shown(&knee_diff_answer, &p.report,
                 SAYS("Not the same GPU: A100 before, H100 after. Not the same job: 1 rank before,",
                      "Rank 5 is the cause: before it is starved input for 200 ms longer",
                      "Also different: type on the wire (f32, bf16)", "(2, 4)",
                      "bytes in collectives, kernels per step (50, 60).",
                      "These may be different jobs.", "Assumed: steps vary little"));
    p.c.late_s = 0.2;
    p.c.noise_s = 0.1;
    p.c.significant = false;
    p.before.world_size = 8;
    p.after.world_size = -1;
    assert_shown(&knee_diff_answer, &p.report,
                 SAYS("8 ranks before, 1 after",
                      "No significant change: 1 s before, 1.5 s after, noise 20 ms.",
                      "Rank 6 is the cause: now it is starved input for 200 ms"));
    p.c.as_before = true;
    assert_shown(&knee_diff_answer, &p.report,
                 SAYS("No change: the step takes 1 s before and 1.5 s after."));
}

TEST(names_are_made_safe)
{
    static const struct {
        const char *name, *safe;
    } cases[] =
        {
            {"gemm_bf16", "gemm_bf16"},
            {"a\x1b[31mb\x7f\n", "a?[31mb??"},
            {"caf\xc3\xa9", "caf\xc3\xa9"},
            {"broken \xc3", "broken ?"},
            {"\xc2\x85next", "?next"},  /* a control character of two bytes */
            {"\xc2\xa0x", "\xc2\xa0x"}, /* the first that is none */
            {"\xe2\x80\xae"
             "exe.x",
             "?exe.x"}, /* turns the direction of text */
            {"\xe2\x80\x8b"
             "x",
             "?x"}, /* no width */
            {"\xe2\x80\x8a"
             "x\xe2\x80\xaf",
             "\xe2\x80\x8a"
             "x\xe2\x80\xaf"},
            {"\xe2\x82\xac", "\xe2\x82\xac"},
        },
      markdown[] = {
          {"a<b>c", "a&lt;b>c"},
          {"1 < 2", "1 < 2"},
          {"</p><!-- x --><?y", "&lt;/p>&lt;!-- x -->&lt;?y"},
          {"[a](b)", "[a]\\(b)"},
          {"a] (b)", "a] (b)"},
          {"x<", "x<"},
          {"<Z>", "&lt;Z>"},
          {"<1>", "<1>"},
          {"<[", "<["},
      };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(knee_safe(cases[i].name, 60).s, cases[i].safe);
    assert_string_equal(knee_safe("caf\xc3\xa9s", 4).s, "caf\xc3\xa9"); /* characters, not bytes */
    for (size_t i = 0; i < sizeof markdown / sizeof *markdown; i++) {
        OWNED(knee_text) text = {0};
        knee_markdown_add(&text, markdown[i].name, strlen(markdown[i].name));
        assert_string_equal(text.data, markdown[i].safe);
    }
}

TEST(every_cause_has_a_fix)
{
    for (int cause = 0; cause <= KNEE_LABELS; cause++) /* the unknown too */
        assert_true(strlen(knee_cause_fix((enum knee_label)cause)) > 10);
}

/* RFC 4648, section 10; and packed bytes that fail with their text. */
TEST(base64_by_its_vectors)
{
    static const char *const vectors[][2] = {{"", ""},
                                             {"f", "Zg=="},
                                             {"fo", "Zm8="},
                                             {"foo", "Zm9v"},
                                             {"foob", "Zm9vYg=="},
                                             {"fooba", "Zm9vYmE="},
                                             {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        OWNED(knee_text) text = {0};
        knee_put_base64(&text, vectors[i][0], strlen(vectors[i][0]));
        assert_string_equal(text.data ? text.data : "", vectors[i][1]);
    }
    FOR_EACH_FAILURE(f) {
        OWNED(knee_text) text = {.alloc = &f.alloc};
        struct knee_packer *packer = knee_pack_begin(&text);
        uint64_t dice = 3;
        for (int i = 0; packer && i < 40; i++) {
            char bytes[5000];
            for (size_t k = 0; k < sizeof bytes; k++)
                bytes[k] = (char)(unsigned char)(256 * chance(&dice));
            knee_pack_add(packer, bytes, sizeof bytes);
        }
        knee_pack_end(packer);
        assert_int_equal(text.failed, failing_met(&f));
    }
}
