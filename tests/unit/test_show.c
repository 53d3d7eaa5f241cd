/* SPDX-License-Identifier: MIT */
/*
 * Answers that were made by hand, written in every format and style: what each of them must say,
 * and what holds for all of them (shown.h).
 */
#include "shown.h"

#include "knee_replay.h"
#include "out/gzip_out.h"
#include "out/show_lab.h"
#include "out/show_ras.h"
#include "out/show_watch.h"
#include "out/table.h"
#include "out/words.h"

/* ---- NCCL's RAS service ---- */

enum { RAS_RANKS = 40 };

struct ras_case {
    struct knee_ras_rank ranks[RAS_RANKS];
    struct knee_ras_row rows[RAS_RANKS];
    struct knee_ras_answer answer;
};

static void write_ras(const void *thing, enum knee_format format, const struct knee_style *style,
                      struct knee_text *text)
{
    knee_write_ras(&((const struct ras_case *)thing)->answer, "2.28.9", format, style, text);
}

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
}

static void ras_says_who(void **state)
{
    (void)state;
    static struct ras_case c;
    ras_init(&c, 4);
    assert_shown(write_ras, &c, SAYS("All ranks are there, and nobody is always behind."));
    c.ranks[0].dead = c.ranks[0].unresponsive = c.ranks[1].unresponsive = c.ranks[2].failed = true;
    c.rows[3].late = true;
    c.answer.dead = c.answer.unresponsive = c.answer.failed = c.answer.late = 1;
    assert_shown(write_ras, &c,
                 SAYS("Dead: rank 0 on node0.", "Does not answer: rank 1 on node1.",
                      "Reports an error: rank 2 on node2.", "Look at the host of rank 3 on node3.",
                      "it is behind", "dead", "unresponsive", "error", "late"));
    ras_init(&c, 4);
    c.answer.still_comms = 1;
    c.ranks[2].missing = true;
    c.rows[1].still = true;
    assert_shown(write_ras, &c,
                 SAYS("In 1 of 2 communicators nothing was enqueued for 1.5", "equally far",
                      "still", "missing"));
    c.rows[1].lag = 4;
    assert_shown(write_ras, &c, SAYS("the others wait for rank 1 on node1."));
    ras_init(&c, RAS_RANKS); /* more than are listed: those with something to say */
    for (size_t i = 0; i < RAS_RANKS - 2; i++)
        c.rows[i].late = true;
    c.answer.late = RAS_RANKS - 2;
    assert_shown(write_ras, &c, SAYS("rank 0 on node0, 1 on node1,", "7 on node7 and more."));
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

static void write_watch(const void *thing, enum knee_format format, const struct knee_style *style,
                        struct knee_text *text)
{
    knee_write_watch(&((const struct watch_case *)thing)->report, format, style, text);
}

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
static void watch_says_why(void **state)
{
    static const struct {
        enum knee_watch_cause cause;
        const char *words;
    } causes[] = {
        {KNEE_WATCH_HOT, ": it is hot (70 C), its clock is down to 1500 MHz."},
        {KNEE_WATCH_POWER, ": its power is capped, its clock is down to 1500 MHz."},
        {KNEE_WATCH_CLOCK, ": its clock is 1500 MHz, the others' is higher."},
        {KNEE_WATCH_LABEL, ": starved input takes 200 ms longer there."},
        {KNEE_WATCH_UNKNOWN, " (no step that says why was sampled yet)."},
    };
    static struct watch_case c;
    (void)state;
    watch_init(&c, 3);
    assert_shown(write_watch, &c,
                 SAYS("Whether somebody is late cannot be told", "Step 400, 3 ranks", "+10",
                      "R is not known"));
    c.watch.meetings = 5;
    c.watch.world = 8;
    assert_shown(write_watch, &c, SAYS("Nobody keeps the others waiting.", "3 of 8 ranks"));
    c.watch.step = -1;
    c.watch.late_rank = 2;
    c.watch.late_s = 0.11;
    c.watch.label = KNEE_STARVED;
    c.watch.label_s = 0.2;
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        c.watch.cause = causes[i].cause;
        assert_shown(write_watch, &c,
                     SAYS("Look at rank 2 on n\"1: the others wait 110 ms a step for it (10",
                          causes[i].words, "No step was found in what the ranks enqueue"));
    }
}

static void watch_says_what_changed_and_what_it_costs(void **state)
{
    static struct watch_case c;
    (void)state;
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
    assert_shown(write_watch, &c,
                 SAYS("1 of 3 ranks write nothing any more: 1.", "rank 1 is 200 ms later.",
                      "steps take 1.3 s instead of 1 s.", "hidden or not, 200 ms (step 250, each",
                      "; steps have changed since", "So far $1234", "an hour and rank, indicative",
                      "$100 of it exposed", "were not read: knee trace does",
                      "7 folders are of earlier", "8 folders say nothing", "4 lines are damaged",
                      "5 collectives got no line", "6 collectives were not",
                      "The agent takes 0.3"));
    c.watch.price_assumed = false;
    c.watch.stall_dollars = c.watch.joules = NAN;
    assert_shown(write_watch, &c, SAYS("So far $1234"));
    c.watch.dollars = NAN;
    c.watch.joules = 5e6;
    assert_shown(write_watch, &c, SAYS("So far 5 MJ at the mean power."));
}

/* Alarms, slow communicators, an account, and more ranks than a screen has lines. */
static void watch_says_what_is_wrong(void **state)
{
    static struct watch_case c;
    struct knee_err err;
    (void)state;
    watch_init(&c, WATCHED);
    c.words[0] = "R > 0.5 for 5m";
    c.words[1] = "step > 2s";
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(knee_alarm_parse(c.words[i], &c.alarms[i], &err), KNEE_OK);
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
    assert_shown(
        write_watch, &c,
        SAYS("ALARM: R > 0.5 for 5m: R is", "since step 300 or before.",
             "Nothing is known of step yet.", "12 of 40 ranks write nothing any more: 0, 1",
             "7 and more.", "AllReduce of 1M among 8 ranks takes 6.000 times as long",
             "communicator of rank 3", ": 300 ms transfer, 100 ms wait (step 390, accounted",
             "ranks: the latest; --csv has all."));
    c.diagnosis.split = false;
    c.diagnosis.late_ranks = 0;
    assert_shown(write_watch, &c, SAYS("exposed 400 ms of 1 s (step 390"));
}

/* ---- The lab ---- */

static void write_lab(const void *thing, enum knee_format format, const struct knee_style *style,
                      struct knee_text *text)
{
    knee_write_lab(thing, format, style, text);
}

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

static void lab_says_where_the_knee_is(void **state)
{
    (void)state;
    struct knee_lab lab = lab_of(1);
    assert_shown(write_lab, &lab,
                 SAYS("mlp, 1M values exchanged as f32 in 1 bucket, all-reduce, after backward; "
                      "strong scaling, batch 64; sgd, 20 steps; 1 rank on 1 host (local)"));
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
    assert_shown(write_lab, &lab,
                 SAYS("The knee lies beyond 4 workers: E(4) = 90.0 % >= 80.0 %", "predicted: 4.",
                      "gamma = 1) at K = 3.000", "5.0 % median, 10.0 % worst", "3 buckets",
                      "overlapping backward; weak scaling, batch 64 per worker in 4 micro-steps",
                      "2 ranks on 2 hosts", "alpha 10 us, 1 GB/s each way (held back",
                      "SYNTHETIC COMPUTE", "a note", "another"));
    lab.measured.tolerance_workers = 2;
    assert_shown(write_lab, &lab, SAYS("The knee is at 2 workers: the last count of the sweep"));
}

static void lab_says_what_was_hunted_and_pushed(void **state)
{
    (void)state;
    struct knee_lab lab = lab_of(0);
    lab.hunt_count = 2;
    lab.hunts[0] = (struct knee_lab_hunt){"straggler", "slept", "straggler", 3, 0.1, 0.6, "waits"};
    lab.hunts[1] = (struct knee_lab_hunt){"none", "nothing", "starved input", 4, NAN, NAN, ""};
    assert_shown(write_lab, &lab,
                 SAYS("1 of 2 runs named as induced.", "straggler", "10.0 % -> 60.0 %",
                      "starved input (WRONG)"));
    lab.synthetic = true;
    lab.critical_batch = 512;
    lab.push_count = 2;
    lab.pushes[0] = (struct knee_lab_push){.lever = "compress", .part = "communication"};
    lab.pushes[1] = (struct knee_lab_push){.lever = "batch", .part = "statistics", .loss = 2};
    assert_shown(write_lab, &lab,
                 SAYS("1 of 2 runs named as induced (synthetic compute",
                      "noise scale: 512 examples.", "Levers on a set-up bound by communication",
                      "compress", "Past the critical batch (512 examples, measured)", "batch"));
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

static void write_roll(const void *thing, enum knee_format format, const struct knee_style *style,
                       struct knee_text *text)
{
    knee_write_rollcall(&((const struct roll_case *)thing)->report, format, style, text);
}

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

static void roll_calls_say_who_is_missing(void **state)
{
    static struct roll_case c;
    (void)state;
    roll_init(&c);
    c.answer.blamed_count = 1;
    c.answer.stuck_count = 3;
    assert_shown(write_roll, &c,
                 SAYS("Look at rank 0 first: its oldest unfinished collective is older than the "
                      "others', in 1 group.",
                      "1 Flight Recorder dump, 1 group:", "data parallel", "all_gather"));
    c.blamed[0].groups = 2;
    c.answer.blamed_count = 20;
    c.answer.stuck_count = ROLL;
    assert_shown(write_roll, &c,
                 SAYS("Look at ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more first: their oldest",
                      "in 2 "
                      "groups.",
                      "0 and 1", "and 8 groups more (--json lists them all)"));
    c.blamed[0].blame = KNEE_BLAME_SILENT;
    c.answer.blamed_count = 2;
    c.answer.missing_count = 3;
    c.answer.mismatched = 2;
    c.answer.mismatch_sequence = 17;
    assert_shown(write_roll, &c,
                 SAYS("Look at ranks 0 and 1 first: they have entered nothing",
                      "No dump was given of rank 0, 1 and 2:", "In 2 collectives ranks disagree",
                      "number 17 of group dp"));
    c.answer.blamed_count = 0;
    assert_shown(write_roll, &c, SAYS("All ranks are in the same collectives"));
}

static void roll_calls_say_who_is_late(void **state)
{
    static struct roll_case c;
    (void)state;
    roll_init(&c);
    assert_shown(write_roll, &c, SAYS("No collective has two ranks here"));
    c.roll.untimed = 1;
    c.roll.format = "nccl inspector";
    c.roll.source_count = c.roll.group_count = 2;
    c.roll.skipped = 5;
    assert_shown(
        write_roll, &c,
        SAYS("Nothing is timed: set TORCH_NCCL_ENABLE_TIMING=1",
             "2 NCCL Inspector files, 2 groups:", "; 5 lines or entries could not be read"));
    c.answer.joined = 7;
    c.answer.rank_count = ROLL;
    c.answer.collective_count = ROLL;
    c.answer.wait_ns = 3000;
    c.answer.transfer_ns = 1000;
    assert_shown(write_roll, &c,
                 SAYS("Nobody is late more often than by chance.", "75.0 % is waiting",
                      "25.0 % is the wire.", "and 8 kinds more (--json lists them all)"));
    c.ranks[5].late = c.ranks[7].late = c.ranks[9].late = true;
    c.ranks[7].held_ns = 5000000000;
    c.ranks[9].duration_ns = 10;
    c.answer.partial = 1;
    c.answer.slow_wire = 1;
    snprintf(c.answer.machine, sizeof c.answer.machine, "dgx-h100");
    assert_shown(write_roll, &c,
                 SAYS("Look at rank 7 of group dp first: it comes last at 7 of 9 collectives and "
                      "keeps the others waiting for 5 s in all.",
                      "(waiting at least, where ranks are missing)",
                      "Its all_reduce of 1.05 MB reaches 1 GB/s, 20.0 % of what dgx-h100 can do"));
}

/* ---- Who slows a pipeline down ---- */

static void write_slowdown(const void *thing, enum knee_format format,
                           const struct knee_style *style, struct knee_text *text)
{
    knee_write_slowdown(thing, format, style, text);
}

static void every_cause_of_a_slowdown_has_words(void **state)
{
    static const struct {
        enum knee_slow_cause cause;
        const char *words;
    } causes[] = {
        {KNEE_SLOW_NONE, " The job is even."},
        {KNEE_SLOW_STAGE, " Stage 1 has more to do than the others: alone it makes the step 20.0 % "
                          "longer."},
        {KNEE_SLOW_SEQUENCE, " Micro-batches differ by 30.0 %"},
        {KNEE_SLOW_WORKER, " The slowest 3 % of workers alone make it 10.0 % longer."},
        {KNEE_SLOW_WIRE, " Communication varies."},
        {KNEE_SLOW_MIXED, " No single part explains it."},
    };
    (void)state;
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
        assert_shown(write_slowdown, &s,
                     SAYS("Slowdown 1.250 by", knee_slow_cause_name(s.cause),
                          "the step takes 1.25 s and would take 1 s", causes[i].words, "stage 63",
                          "2 steps of 4 ranks (2 replicas of 65 stages), 90 operations."));
    }
}

/* ---- Two training logs ---- */

static void write_logs(const void *thing, enum knee_format format, const struct knee_style *style,
                       struct knee_text *text)
{
    knee_write_log_comparison(thing, format, style, text);
}

static void logs_say_what_changed(void **state)
{
    (void)state;
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
    assert_shown(write_logs, &c,
                 SAYS("The step went from 1 s to 1.2 s, 20.0 % longer; too few steps to say",
                      "Nothing that the logs say of their jobs changed", "steps compared"));
    after.tokens_per_s = 100;
    before.outlier_share = 0.1;
    c.noise = 0.01;
    c.chance = 0.03;
    c.changes[0] = (struct knee_log_change){"batch", "64", "128"};
    c.changes[1] = (struct knee_log_change){"GPU", "h100", "a100"};
    c.change_count = 2;
    c.more_changes = 3;
    assert_shown(write_logs, &c,
                 SAYS(", more than by chance (3.0 %).",
                      "Changed: batch 64 -> 128, GPU h100 -> a100 "
                      "and 3 more.",
                      "tokens/s", "time in outliers"));
    c.work = 2;
    c.slower = -0.4;
    c.significant = false;
    c.change_count = c.more_changes = 0;
    assert_shown(
        write_logs, &c,
        SAYS(", with 2 times the work for each worker: at equal work it is 40.0 % shorter, "
             "no more than by chance (3.0 %)."));
    c.work = 1;
    assert_shown(write_logs, &c, SAYS(", 40.0 % shorter, no more"));
}

/* ---- Two recordings ---- */

struct pair_case {
    struct knee_comparison c;
    struct knee_rank_account ranks[2];
    struct knee_trace traces[2];
    struct knee_straggler straggler;
    struct knee_account before, after;
    struct knee_diagnosis before_diagnosis, after_diagnosis;
};

static void write_pair(const void *thing, enum knee_format format, const struct knee_style *style,
                       struct knee_text *text)
{
    const struct pair_case *p = thing;
    knee_write_comparison(&p->c, &p->before, &p->before_diagnosis, &p->after, &p->after_diagnosis,
                          format, style, text);
}

static void pair_init(struct pair_case *p)
{
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < 2; i++) {
        p->ranks[i] = (struct knee_rank_account){
            .rank = 5 + (int64_t)i, .trace = &p->traces[i], .kernels = 100 + 100 * i};
        snprintf(p->traces[i].gpu_name, sizeof p->traces[i].gpu_name, i ? "H100" : "A100");
    }
    p->straggler = (struct knee_straggler){.cause = KNEE_STARVED, .excess_ns = 400000000};
    p->before = (struct knee_account){
        .ranks = &p->ranks[0], .rank_count = 1, .world_size = -1, .stragglers = &p->straggler};
    p->after = (struct knee_account){
        .ranks = &p->ranks[1], .rank_count = 1, .world_size = 16, .stragglers = &p->straggler};
    p->before_diagnosis =
        (struct knee_diagnosis){.steps = 2, .step = some_step, .overlap = 0.5, .load_share = 0.1};
    p->after_diagnosis = p->before_diagnosis;
    p->after_diagnosis.steps = 4;
    p->c = (struct knee_comparison){.before = some_step,
                                    .after = some_step,
                                    .change = 0.5,
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
}

static void movers_init(struct pair_case *p)
{
    static const enum knee_span_kind kinds[] = {KNEE_SPAN_COMM, KNEE_SPAN_FUSED, KNEE_SPAN_COPY,
                                                KNEE_SPAN_COMPUTE};
    for (size_t i = 0; i < KNEE_MOVERS; i++) {
        p->c.movers[i] = (struct knee_mover){
            i % 4 == 2 ? "Memcpy" : "gemm", kinds[i % 4], 1, i % 2 ? 0.5 : 1.5, 4, 4};
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
static void comparisons_say_why(void **state)
{
    static const struct {
        enum knee_label label;
        const char *words;
    } labels[] = {
        {KNEE_COMPUTE, " Most of it is gemm: 1 s -> 500 ms in 4.0 -> 4.0 calls."},
        {KNEE_COPY, " Most of it is Memcpy: 1 s -> 1.5 s in 4.0 -> 4.0 calls."},
        {KNEE_WAIT, " makes 80.0 % of the difference"},
        {KNEE_STARVED, " The loader takes 10.0 % of the host's step after 10.0 %."},
        {KNEE_HOST, " The host hands over 50 kernels a step after 50."},
        {KNEE_TRANSFER, " Communication in all goes from 400 ms to 400 ms, overlap from 50.0 % to "
                        "50.0 %."},
        {KNEE_IDLE, " makes 80.0 % of the difference"},
    };
    static struct pair_case p;
    (void)state;
    pair_init(&p);
    assert_shown(write_pair, &p,
                 SAYS("The step is 50.0 % longer: 1 s -> 1.5 s.", "compute makes 80.0 %"));
    movers_init(&p);
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        p.c.label = labels[i].label;
        assert_shown(write_pair, &p, SAYS("The step is", labels[i].words));
    }
    p.c.label = KNEE_HOST;
    p.c.largest_rank = 0;
    p.c.largest_s = 0.3;
    assert_shown(write_pair, &p, SAYS(" It is largest on rank 6: 300 ms a step."));
    p.c.change = -0.5;
    assert_shown(write_pair, &p, SAYS(" It is largest on rank 5: 300 ms a step."));
    p.c.label = KNEE_WAIT;
    p.before_diagnosis.late_ranks = 1;
    assert_shown(write_pair, &p, SAYS(" Rank 5 comes late no more: starved input."));
    p.after_diagnosis.late_ranks = 1;
    assert_shown(write_pair, &p, SAYS(" Rank 6 comes late now: starved input."));
}

static void comparisons_say_what_else_differs(void **state)
{
    static struct pair_case p;
    (void)state;
    pair_init(&p);
    p.c.late_makes_it = true;
    p.c.noise_s = NAN;
    p.c.differs = KNEE_DIFFER_WORLD | KNEE_DIFFER_GPU | KNEE_DIFFER_TRAFFIC | KNEE_DIFFER_KERNELS |
                  KNEE_DIFFER_DTYPE | KNEE_DIFFER_STEPS;
    p.c.late_s = -0.2;
    assert_shown(write_pair, &p,
                 SAYS("how much steps differ by chance is not known.",
                      " Rank 5 makes it: before it is starved input for 200 ms a step longer",
                      "Not the same job: 1 against 16 ranks.", "A100 against H100",
                      "f32 against bf16", "2 against 4", "as many bytes", "as many kernels"));
    p.c.late_s = 0.2;
    p.c.noise_s = 0.1;
    p.c.significant = false;
    p.before.world_size = 8;
    p.after.world_size = -1;
    assert_shown(write_pair, &p,
                 SAYS("within what steps differ by chance (20 ms).",
                      " Rank 6 makes it: now it is starved input for 100 ms a step",
                      "8 against 1 ranks."));
    p.c.as_before = true;
    assert_shown(write_pair, &p, SAYS("The step is as long as before: 1.5 s against 1 s."));
}

/* ---- Words ---- */

static void solutions_are_sentences(void **state)
{
    static const struct {
        struct knee_solution s;
        const char *words;
    } cases[] = {
        {{.variable = "overlap",
          .target = "efficiency",
          .any = true,
          .wanted = 0.9,
          .workers = 1,
          .target_unit = KNEE_UNIT_FRACTION,
          .now_target = NAN},
         "Every overlap gives efficiency 90.0 % at 1 worker."},
        {{.variable = "workers",
          .target = "step",
          .value = NAN,
          .wanted = 2,
          .best_target = 3,
          .best_value = 64,
          .workers = NAN,
          .unit = KNEE_UNIT_COUNT,
          .target_unit = KNEE_UNIT_SECONDS,
          .now_target = 4,
          .now_value = NAN},
         "No workers gives step 2 s: the best, 64, gives 3 s."},
        {{.variable = "bandwidth",
          .target = "efficiency",
          .value = 1e9,
          .wanted = 0.9,
          .workers = 8,
          .unit = KNEE_UNIT_BYTES_PER_S,
          .target_unit = KNEE_UNIT_FRACTION,
          .now_target = 0.5,
          .now_value = 5e8},
         "bandwidth >= 1 GB/s gives efficiency 90.0 % at 8 workers. Now 500 MB/s gives 50.0 %."},
        {{.variable = "latency",
          .target = "step",
          .value = 1e-5,
          .wanted = 2,
          .workers = NAN,
          .at_most = true,
          .unit = KNEE_UNIT_SECONDS,
          .target_unit = KNEE_UNIT_SECONDS,
          .now_target = 4,
          .now_value = 1e-3},
         "latency <= 10 us gives step 2 s. Now 1 ms gives 4 s."},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_text text = {0};
        knee_solution_sentence(&cases[i].s, &text);
        assert_string_equal(text.data, cases[i].words);
        knee_text_release(&text);
    }
}

static void notes_are_sentences(void **state)
{
    (void)state;
    for (int kind = 0; kind < KNEE_NOTES; kind++) {
        struct knee_text text = {0};
        bool plain = kind == KNEE_NOTE_NO_ENCODE || kind == KNEE_NOTE_SURE;
        knee_note_sentence(&(struct knee_note){(enum knee_note_kind)kind, plain ? NAN : 40}, &text);
        assert_true(text.length > 30 && text.data[text.length - 1] == '.');
        assert_null(strstr(text.data, "%."));
        assert_true(plain || strstr(text.data, "40"));
        knee_text_release(&text);
    }
}

static void names_are_made_safe(void **state)
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
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(knee_safe(cases[i].name, 60).s, cases[i].safe);
    assert_string_equal(knee_safe("caf\xc3\xa9s", 4).s, "caf\xc3\xa9"); /* characters, not bytes */
    for (size_t i = 0; i < sizeof markdown / sizeof *markdown; i++) {
        struct knee_text text = {0};
        knee_markdown_add(&text, markdown[i].name, strlen(markdown[i].name));
        assert_string_equal(text.data, markdown[i].safe);
        knee_text_release(&text);
    }
}

static void numbers_are_words(void **state)
{
    (void)state;
    assert_string_equal(knee_change_word(1, 1.184).s, "18.4 % longer");
    assert_string_equal(knee_change_word(2, 1).s, "50.0 % shorter");
    assert_string_equal(knee_change_word(1, 5.1).s, "5.1 times as long");
    assert_string_equal(knee_change_word(1, 500).s, "500 times as long");
    assert_string_equal(knee_change_word(12, 1).s, "12.0 times shorter");
    assert_string_equal(knee_signed_percent(NAN).s, "-");
    assert_string_equal(knee_signed_percent(0.367).s, "+36.7 %");
    assert_string_equal(knee_size(4096).s, "4K");
    assert_string_equal(knee_size(8.0 * (1 << 30)).s, "8G");
    assert_string_equal(knee_size(1.5e6).s, "1.5 MB");
    assert_string_equal(knee_surely(6.4, (struct knee_sure){NAN, NAN}, KNEE_UNIT_SECONDS).s,
                        "6.4 s");
    assert_string_equal(knee_surely(6.4, (struct knee_sure){5.7, 7.2}, KNEE_UNIT_SECONDS).s,
                        "6.4 s (5.7 to 7.2)");
    assert_string_equal(knee_surely(0.95, (struct knee_sure){0.9, 1.1}, KNEE_UNIT_SECONDS).s,
                        "950 ms (900 ms to 1.1 s)");
    for (int cause = 0; cause <= KNEE_LABELS; cause++) /* each has a cure, the unknown too */
        assert_true(strlen(knee_cause_cure((enum knee_label)cause)) > 10);
}

/* RFC 4648, section 10; and packed bytes that fail with their text. */
static void base64_by_its_vectors(void **state)
{
    static const char *const vectors[][2] = {{"", ""},
                                             {"f", "Zg=="},
                                             {"fo", "Zm8="},
                                             {"foo", "Zm9v"},
                                             {"foob", "Zm9vYg=="},
                                             {"fooba", "Zm9vYmE="},
                                             {"foobar", "Zm9vYmFy"}};
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        struct knee_text text = {0};
        knee_put_base64(&text, vectors[i][0], strlen(vectors[i][0]));
        assert_string_equal(text.data ? text.data : "", vectors[i][1]);
        knee_text_release(&text);
    }
    for (size_t fail_at = 1, more = 1; more; fail_at++) {
        struct failing f = {.fail_at = fail_at};
        struct knee_alloc alloc = {failing_resize, &f};
        struct knee_text text = {.alloc = &alloc};
        struct knee_packer *packer = knee_pack_begin(&text);
        uint64_t dice = 3;
        for (int i = 0; packer && i < 40; i++) {
            char bytes[5000];
            for (size_t k = 0; k < sizeof bytes; k++)
                bytes[k] = (char)(unsigned char)(256 * chance(&dice));
            knee_pack_add(packer, bytes, sizeof bytes);
        }
        knee_pack_end(packer);
        more = f.calls >= fail_at;
        assert_true(text.failed == (more != 0));
        knee_text_release(&text);
        assert_int_equal(f.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ras_says_who),
        cmocka_unit_test(watch_says_why),
        cmocka_unit_test(watch_says_what_changed_and_what_it_costs),
        cmocka_unit_test(watch_says_what_is_wrong),
        cmocka_unit_test(lab_says_where_the_knee_is),
        cmocka_unit_test(lab_says_what_was_hunted_and_pushed),
        cmocka_unit_test(roll_calls_say_who_is_missing),
        cmocka_unit_test(roll_calls_say_who_is_late),
        cmocka_unit_test(every_cause_of_a_slowdown_has_words),
        cmocka_unit_test(logs_say_what_changed),
        cmocka_unit_test(comparisons_say_why),
        cmocka_unit_test(comparisons_say_what_else_differs),
        cmocka_unit_test(solutions_are_sentences),
        cmocka_unit_test(notes_are_sentences),
        cmocka_unit_test(names_are_made_safe),
        cmocka_unit_test(numbers_are_words),
        cmocka_unit_test(base64_by_its_vectors),
    };
    return RUN(tests);
}
