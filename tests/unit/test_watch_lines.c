/* SPDX-License-Identifier: MIT */
/*
 * A watched job from lines that are put together by hand: what lines may lack or get wrong, every
 * cause that a late rank can have, wires, gaps, answers of RAS; and laws over random lines.
 */
#include "unit.h"

#include "judge/ras_judge.h"
#include "judge/watch.h"

enum { RANKS = 6, STEPS = 40, MEETINGS = 24 };

struct made {
    struct knee_live_rank ranks[RANKS];
    struct knee_live_step steps[RANKS][STEPS];
    struct knee_live_call calls[RANKS][STEPS];
    struct knee_live_meeting meetings[MEETINGS];
    struct knee_live_joined joined;
};

/* A line that says nothing. */
static struct knee_live_step blank_line(void)
{
    struct knee_live_step line = {.step = -1,
                                  .sampled = -1,
                                  .sm_mhz = -1,
                                  .temp_c = -1,
                                  .every = -1,
                                  .step_s = NAN,
                                  .comm_s = NAN,
                                  .window_s = NAN,
                                  .gpu_s = NAN,
                                  .energy_j = NAN,
                                  .power_w = NAN,
                                  .overhead = NAN};
    for (int label = 0; label < KNEE_LABELS; label++)
        line.label_s[label] = NAN;
    return line;
}

static void begin(struct made *made)
{
    memset(made, 0, sizeof *made);
    made->joined.meetings = made->meetings;
    for (size_t r = 0; r < RANKS; r++) {
        knee_live_init(&made->ranks[r], NULL);
        made->ranks[r].about.start_ns = 1000;
        made->ranks[r].steps = made->steps[r];
        made->ranks[r].calls = made->calls[r];
    }
}

static struct knee_watch watch_of(const struct made *made, size_t ranks)
{
    struct knee_watch watch;
    struct knee_watch_given given = {INT64_C(100000000000), NAN, 0, NULL};
    struct knee_err err;
    if (knee_watch(made->ranks, ranks, &made->joined, &given, &watch, &err))
        fail_msg("%s", err.what);
    return watch;
}

/* ---- Causes ---- */

/* A step a second; `late` comes 0.2 s after the others and does `label` for as much longer. */
static void late_job(struct made *made, size_t late, int label, int64_t sm_mhz, uint64_t throttle)
{
    begin(made);
    for (size_t r = 0; r < RANKS; r++) {
        for (int s = 0; s < STEPS; s++) {
            struct knee_live_step *line = &made->steps[r][s];
            *line = blank_line();
            line->step = s;
            line->t_ns = 1000 + INT64_C(1000000000) * (s + 1);
            line->step_s = 1;
            line->sm_mhz = r == late ? sm_mhz : 1980;
            line->throttle = r == late ? throttle : 0;
            if (label >= 0) {
                line->sampled = 1;
                line->window_s = 1;
                line->label_s[label] = r == late ? 0.7 : 0.5;
            }
            made->calls[r][s] = (struct knee_live_call){
                .step = s, .late_ns = r == late ? 200000000 : 0, .wait_ns = r == late ? 0 : 9};
        }
        made->ranks[r].step_count = made->ranks[r].call_count = STEPS;
    }
}

TEST(every_cause)
{
    static const struct {
        int label; /* that takes longer; -1: nothing was sampled */
        int64_t sm_mhz;
        uint64_t throttle;
        enum knee_watch_cause cause;
    } rows[] = {
        {KNEE_COMPUTE, 1200, 0x40, KNEE_WATCH_HOT},   {KNEE_COMPUTE, 1200, 0x20, KNEE_WATCH_HOT},
        {KNEE_COMPUTE, 1200, 0x04, KNEE_WATCH_POWER}, {KNEE_COMPUTE, 1200, 0x80, KNEE_WATCH_POWER},
        {KNEE_COMPUTE, 1200, 0x00, KNEE_WATCH_CLOCK}, {-1, 1200, 0x40, KNEE_WATCH_HOT},
        {-1, 1200, 0x00, KNEE_WATCH_CLOCK},           {KNEE_HOST, 1200, 0x40, KNEE_WATCH_LABEL},
        {KNEE_COMPUTE, 1980, 0x40, KNEE_WATCH_LABEL}, {KNEE_STARVED, 1980, 0, KNEE_WATCH_LABEL},
        {KNEE_TRANSFER, 1980, 0, KNEE_WATCH_UNKNOWN}, {KNEE_WAIT, 1980, 0, KNEE_WATCH_UNKNOWN},
        {-1, 1980, 0x40, KNEE_WATCH_UNKNOWN},         {-1, -1, 0, KNEE_WATCH_UNKNOWN},
    };
    static struct made made;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        late_job(&made, i % RANKS, rows[i].label, rows[i].sm_mhz, rows[i].throttle);
        OWNED(knee_watch) w = watch_of(&made, RANKS);
        assert_int_equal(w.late_rank, i % RANKS);
        assert_near(w.late_s, 0.2, 1e-9);
        if (w.cause != rows[i].cause)
            fail_msg("row %zu: cause %d", i, (int)w.cause);
        if (w.cause == KNEE_WATCH_LABEL)
            assert_int_equal(w.label, rows[i].label);
    }
}

/* Of two that are late the later one is named, wherever it stands; one that is late in six points
 * of ten is not. */
TEST(the_later_of_two)
{
    static struct made made;
    for (size_t other = 0; other < RANKS; other++) {
        late_job(&made, 2, -1, 1980, 0);
        for (int s = 0; s < STEPS && other != 2; s++)
            made.calls[other][s].late_ns = 300000000;
        OWNED(knee_watch) w = watch_of(&made, RANKS);
        assert_int_equal(w.late_rank, other);
    }
    late_job(&made, 2, -1, 1980, 0);
    for (int s = 0; s < STEPS; s++)
        made.calls[2][s].late_ns = s % 5 < 3 ? 200000000 : 0;
    OWNED(knee_watch) w = watch_of(&made, RANKS);
    assert_int_equal(w.late_rank, SIZE_MAX);
}

/* Two ranks become later, one less so: the largest step up is told, with its rank. */
TEST(the_change_that_counts)
{
    static struct made made;
    late_job(&made, RANKS, -1, 1980, 0); /* nobody */
    for (int s = 0; s < STEPS; s++) {
        made.calls[0][s].late_ns = s < 20 ? 0 : 100000000;
        made.calls[1][s].late_ns = s < 20 ? 0 : 400000000;
        made.calls[3][s].late_ns = s < 20 ? 0 : 300000000;
        made.calls[4][s].late_ns = s < 20 ? 900000000 : 0;
        made.steps[0][s].step_s = made.steps[1][s].step_s = s < 10 ? NAN : 1;
    }
    OWNED(knee_watch) w = watch_of(&made, RANKS);
    assert_true(w.late_change.found);
    assert_int_equal(w.late_change_rank, 1);
    assert_near(w.late_change.after - w.late_change.before, 0.4, 0.11);
    assert_int_equal(w.points[w.late_change.at].step, 20);
    assert_false(w.step_change.found);
}

/* ---- What lines may lack ---- */

TEST(steps_that_nothing_is_known_of)
{
    static struct made made;
    begin(&made);
    for (int s = 0; s < 12; s++) {
        made.steps[0][s] = blank_line();
        made.steps[0][s].step = s < 6 ? s : 100 + s;
        made.steps[0][s].step_s = 1;
    }
    made.ranks[0].step_count = 12;
    OWNED(knee_watch) w = watch_of(&made, 1);
    assert_int_equal(w.point_count, 12);
    for (size_t p = 0; p < 12; p++)
        assert_int_equal(knee_watch_gap(&w, p), p == 6);
    assert_near(knee_watch_trend(&w), 0, 1e-12);
    assert_true(isnan(w.price_per_hour) && isnan(w.joules) && isnan(w.wait_s));
    knee_watch_release(&w);
    w = watch_of(&made, 0);
    assert_int_equal(w.point_count, 0);
    assert_int_equal(w.world, -1);
    assert_true(isnan(w.step_s) && isnan(w.price_per_hour));
}

/* NVML's figures: the newest of each; joules by the mean power; nothing before a rank's start. */
TEST(figures_of_the_gpu)
{
    static struct made made;
    begin(&made);
    for (int s = 0; s < 4; s++) {
        made.steps[0][s] = blank_line();
        made.steps[0][s].step = s;
        made.steps[0][s].step_s = 1;
        made.steps[0][s].t_ns = 1000 + INT64_C(1000000000) * (s + 1);
    }
    made.steps[0][1].energy_j = 800;
    made.steps[0][1].gpu_s = 2;
    made.steps[0][2].energy_j = 5; /* without a time */
    made.steps[0][1].temp_c = 60, made.steps[0][2].temp_c = 61;
    made.steps[0][1].power_w = 400, made.steps[0][3].power_w = 410;
    made.steps[0][0].sm_mhz = 1980;
    made.ranks[0].step_count = 4;
    OWNED(knee_watch) w = watch_of(&made, 1);
    assert_near(w.ranks[0].joules, 400 * 4, 1e-9);
    assert_near(w.joules, 1600, 1e-9);
    assert_near(w.ranks[0].temp_c, 61, 0);
    assert_near(w.ranks[0].power_w, 410, 0);
    assert_near(w.ranks[0].sm_mhz, 1980, 0);
    knee_watch_release(&w);
    w = watch_of(&made, 2); /* of the other nothing is known: not of both */
    assert_true(isnan(w.joules));
    knee_watch_release(&w);
    made.ranks[0].about.start_ns = -1;
    w = watch_of(&made, 1);
    assert_near(w.rank_s, 0, 0);
    knee_watch_release(&w);
    made.ranks[0].about.start_ns = INT64_C(1000000000000000);
    w = watch_of(&made, 1);
    assert_near(w.rank_s, 0, 0);
    assert_near(w.age_s, 100 - 4.000001, 1e-9);
    knee_watch_release(&w);
    struct knee_watch_given before = {5, 3, 0, NULL};
    struct knee_err err;
    assert_ok(knee_watch(made.ranks, 1, &made.joined, &before, &w, &err));
    assert_near(w.age_s, 0, 0);
    assert_near(w.price_per_hour, 3, 0);
    assert_false(w.price_assumed);
}

/* Waiting is that of the last steps whose calls are all there. */
TEST(recent_waiting)
{
    static struct made made;
    begin(&made);
    for (int s = 0; s < STEPS; s++)
        made.calls[0][s] = (struct knee_live_call){.step = s / 2, .wait_ns = s < 4 ? 99 : 7};
    made.ranks[0].call_count = STEPS;
    OWNED(knee_watch) w = watch_of(&made, 1);
    assert_near(w.ranks[0].wait_s, 14e-9, 1e-15); /* two calls a step; the oldest are not recent */
    knee_watch_release(&w);
    for (int s = 0; s < STEPS; s++)
        made.calls[0][s].wait_ns = s % 4 == 0 ? -1 : made.calls[0][s].wait_ns;
    made.ranks[0].call_count = 8;
    w = watch_of(&made, 1);
    assert_near(w.ranks[0].wait_s, 1e-9 * (99 + 99 + 99 + 7) / 3, 1e-15);
    knee_watch_release(&w);
    for (int s = 0; s < STEPS; s++)
        made.calls[0][s].step = -1;
    w = watch_of(&made, 1);
    assert_true(isnan(w.ranks[0].wait_s));
}

/* ---- Wires ---- */

/* Four communicators do the same; one takes three times as long, and one of another size does not
 * count. */
TEST(a_wire_that_is_slow)
{
    static struct made made;
    begin(&made);
    for (size_t i = 0; i < 4; i++)
        snprintf(made.calls[i][0].op, sizeof made.calls[i][0].op, "AllReduce");
    snprintf(made.calls[4][0].op, sizeof made.calls[4][0].op, "Unheard");
    for (uint32_t i = 0; i < 8; i++)
        made.meetings[i] = (struct knee_live_meeting){.comm = i / 2,
                                                      .bytes = 1 << 20,
                                                      .wire_ns = i / 2 == 2 ? 3000 : 1000,
                                                      .members = 8,
                                                      .last = i / 2};
    made.meetings[8] =
        (struct knee_live_meeting){.comm = 9, .bytes = 64, .wire_ns = 9, .members = 4};
    made.meetings[9] =
        (struct knee_live_meeting){.comm = 9, .bytes = 64, .wire_ns = 9, .members = 4, .last = 4};
    made.meetings[10] = (struct knee_live_meeting){.comm = 10, .bytes = 64, .members = 8};
    made.meetings[11] = (struct knee_live_meeting){.comm = 10, .bytes = 0, .wire_ns = 5};
    made.joined.count = 12;
    OWNED(knee_watch) w = watch_of(&made, RANKS);
    assert_int_equal(w.wire_count, 8);
    assert_int_equal(w.slow_wire, 0); /* most time first */
    assert_int_equal(w.wires[0].comm, 2);
    assert_int_equal(w.wires[0].calls, 2);
    assert_near(w.wires[0].slowdown, 3, 1e-9);
    assert_near(w.wires[0].bus_bytes_per_s, 1048576 / 3e-6 * 14 / 8, 1);
    for (size_t i = 0; i < w.wire_count; i++) {
        const struct knee_watch_wire *wire = &w.wires[i];
        bool known = strcmp(wire->op_name, "AllReduce") == 0 && wire->bytes > 0 && wire->wire_s > 0;
        assert_true(isnan(wire->bus_bytes_per_s) == !known);
        assert_true(isnan(wire->slowdown) == (wire->bytes < 1 << 20));
    }
}

/* Two are slow: the one that loses more is named. */
TEST(two_slow_wires)
{
    static struct made made;
    begin(&made);
    static const int64_t wire_ns[] = {1000, 1500, 1000, 1000, 2000, 1000, 0, 0, 0, 0};
    for (uint32_t i = 0; i < 10; i++)
        made.meetings[i] = (struct knee_live_meeting){
            .comm = i, .bytes = i < 6 ? 64 : 8, .wire_ns = wire_ns[i], .members = 2};
    made.joined.count = 10;
    OWNED(knee_watch) w = watch_of(&made, 1);
    assert_int_equal(w.wires[w.slow_wire].comm, 4);
    assert_true(isnan(w.wires[9].slowdown)); /* of nothing */
}

/* ---- Laws ---- */

static double maybe(uint64_t *seed, double value, double instead)
{
    return chance(seed) < 0.8 ? value : instead;
}

static struct knee_live_step any_line(uint64_t *seed, int64_t number)
{
    struct knee_live_step line = blank_line();
    line.step = chance(seed) < 0.9 ? number : -1;
    line.t_ns = (int64_t)(1e12 * chance(seed));
    line.step_s = maybe(seed, between(seed, 0.1, 10), chance(seed) < 0.5 ? 0 : NAN);
    line.sampled = chance(seed) < 0.5;
    line.window_s = maybe(seed, 1, 0);
    line.comm_s = maybe(seed, 0.1, NAN);
    line.label_s[KNEE_COMPUTE] = maybe(seed, 0.5, NAN);
    line.energy_j = maybe(seed, 100, -1);
    line.gpu_s = maybe(seed, 1, 0);
    line.power_w = maybe(seed, 300, -1);
    line.temp_c = chance(seed) < 0.5 ? 50 : -1;
    line.sm_mhz = chance(seed) < 0.5 ? 1500 : -1;
    line.left_out = (int64_t)(3 * chance(seed)) - 1;
    return line;
}

static void any_job(uint64_t *seed, struct made *made)
{
    static const char *const ops[] = {"AllReduce", "AllGather", "Unheard", ""};
    begin(made);
    for (size_t r = 0; r < RANKS; r++) {
        int64_t number = 0, step = 0;
        struct knee_live_rank *rank = &made->ranks[r];
        rank->step_count = (size_t)(STEPS * chance(seed));
        rank->call_count = 1 + (size_t)((STEPS - 1) * chance(seed));
        rank->about.start_ns = chance(seed) < 0.8 ? 1000 : -1;
        snprintf(rank->about.gpu, sizeof rank->about.gpu, "%s",
                 chance(seed) < 0.5 ? "NVIDIA H100" : "some GPU");
        for (size_t i = 0; i < rank->step_count; i++)
            made->steps[r][i] = any_line(seed, number += (int64_t)(3 * chance(seed)));
        for (size_t i = 0; i < rank->call_count; i++) {
            step += (int64_t)(3 * chance(seed));
            made->calls[r][i].step = chance(seed) < 0.9 ? step : -1;
            made->calls[r][i].wait_ns = chance(seed) < 0.8 ? (int64_t)(1e9 * chance(seed)) : -1;
            made->calls[r][i].late_ns = (int64_t)(1e9 * chance(seed));
            snprintf(made->calls[r][i].op, sizeof made->calls[r][i].op, "%s",
                     ops[(size_t)(4 * chance(seed))]);
        }
    }
    made->joined.count = (size_t)(MEETINGS * chance(seed));
    for (size_t i = 0; i < made->joined.count; i++)
        made->meetings[i] = (struct knee_live_meeting){.comm = i / 3,
                                                       .bytes = (int64_t)(3 * chance(seed)) << 10,
                                                       .wire_ns = (int64_t)(3 * chance(seed)) * 500,
                                                       .members = chance(seed) < 0.5 ? 2 : 4,
                                                       .last = (uint32_t)(RANKS * chance(seed))};
}

/* The mean of all lines of one step, taken anew. */
static double mean_step(const struct made *made, int64_t step)
{
    double sum = 0, count = 0;
    for (size_t r = 0; r < RANKS; r++)
        for (size_t i = 0; i < made->ranks[r].step_count; i++)
            if (made->steps[r][i].step == step && made->steps[r][i].step_s > 0) {
                sum += made->steps[r][i].step_s;
                count++;
            }
    return sum / count;
}

TEST(laws_of_lines)
{
    static struct made made;
    uint64_t seed = 3;
    for (int round = 0; round < (UNIT_SANITIZED ? 100 : 1000); round++) {
        any_job(&seed, &made);
        OWNED(knee_watch) w = watch_of(&made, RANKS);
        for (size_t p = 0; p < w.point_count; p++) {
            double mean = mean_step(&made, w.points[p].step);
            assert_true(p == 0 || w.points[p].step > w.points[p - 1].step);
            if (isnan(mean) ? !isnan(w.points[p].step_s)
                            : !(fabs(w.points[p].step_s - mean) < 1e-9 * mean))
                fail_msg("step %d is %g, not %g", (int)w.points[p].step, w.points[p].step_s, mean);
            assert_true(!(w.points[p].late_s < 0) && !(w.points[p].wait_s < 0));
            assert_true(isnan(w.points[p].late_s) == (w.points[p].latest == SIZE_MAX));
        }
        size_t calls = 0;
        double total_s = 0, wanted_s = 0;
        for (size_t i = 0; i < w.wire_count; i++) {
            calls += w.wires[i].calls;
            total_s += w.wires[i].total_s;
            assert_true(i == 0 || w.wires[i].total_s <= w.wires[i - 1].total_s);
        }
        for (size_t i = 0; i < made.joined.count; i++)
            wanted_s += 1e-9 * (double)made.meetings[i].wire_ns;
        assert_int_equal(calls, made.joined.count);
        assert_near(total_s, wanted_s, 1e-12);
        assert_true(!(w.joules < 0) && w.rank_s >= 0 && !(w.sampled.wall_s < 0));
    }
}

/* Memory that runs out at any call says so and leaves nothing behind. */
TEST(memory_runs_out)
{
    static struct made made;
    late_job(&made, 2, KNEE_COMPUTE, 1200, 0x40);
    FOR_EACH_FAILURE(f) {
        struct knee_watch_given given = {0, NAN, 0, &f.alloc};
        struct knee_watch w;
        struct knee_err err;
        knee_status status = knee_watch(made.ranks, RANKS, &made.joined, &given, &w, &err);
        assert_int_equal(status, failing_met(&f) ? KNEE_SYSTEM : KNEE_OK);
        if (status)
            assert_string_equal(err.what, "out of memory");
        else
            knee_watch_release(&w);
        assert_true(status || f.calls > 9);
    }
}

/* ---- RAS ---- */

static struct knee_ras_rank member(const char *comm, int64_t rank, int64_t calls)
{
    struct knee_ras_rank out = {.rank = rank, .calls = calls};
    snprintf(out.comm, sizeof out.comm, "%s", comm);
    return out;
}

/* Ranks gone, new, dead; two communicators with the same ranks. */
TEST(ranks_come_and_go)
{
    struct knee_ras_rank then[] = {member("a", 0, 5), member("a", 1, 5), member("b", 0, 10),
                                   member("b", 1, 10), member("b", 7, 10)};
    struct knee_ras_rank now[] = {member("a", 0, 5), member("a", 1, 4), member("a", 2, 0),
                                  member("b", 0, 30), member("b", 1, 20)};
    struct knee_ras answers[] = {{.ranks = then, .count = 5, .at_ns = 0},
                                 {.ranks = now, .count = 5, .at_ns = 2000000000}};
    struct knee_ras_answer a;
    struct knee_err err;
    now[2].missing = now[2].unresponsive = now[2].dead = true;
    now[1].failed = true;
    now[4].unresponsive = true;
    assert_ok(knee_ras_judge(answers, 2, NULL, &a, &err));
    assert_int_equal(a.comms, 2);
    assert_int_equal(a.still_comms, 1);
    assert_int_equal(a.dead, 1);
    assert_int_equal(a.unresponsive, 1);
    assert_int_equal(a.failed, 1);
    assert_true(a.rows[0].still && a.rows[1].still && !a.rows[2].still && !a.rows[3].still);
    assert_int_equal(a.rows[1].lag, 1);
    assert_near(a.rows[3].calls_per_s, 10, 1e-9);
    assert_near(a.rows[4].calls_per_s, 5, 1e-9);
    assert_true(isnan(a.rows[2].calls_per_s)); /* it was not there */
    knee_ras_answer_release(&a);
    answers[0].count = 0; /* nothing yet */
    assert_ok(knee_ras_judge(answers, 2, NULL, &a, &err));
    assert_true(isnan(a.rows[0].calls_per_s));
    knee_ras_answer_release(&a);
    assert_ok(knee_ras_judge(answers + 1, 1, NULL, &a, &err));
    assert_true(isnan(a.rows[0].calls_per_s) && a.still_comms == 0); /* one answer says nothing */
    knee_ras_answer_release(&a);
    struct failing memory = {.fail_at = 1};
    struct knee_alloc alloc = {failing_resize, &memory};
    assert_int_equal(knee_ras_judge(answers, 2, &alloc, &a, &err), KNEE_SYSTEM);
    assert_string_equal(err.what, "out of memory");
}

/* Behind in turn: all of them, and so none. */
TEST(everybody_behind_is_nobody)
{
    enum { ANSWERS = 40, MEMBERS = 3 };
    static struct knee_ras_rank ranks[ANSWERS][MEMBERS];
    static struct knee_ras answers[ANSWERS];
    OWNED(knee_ras_answer) a;
    struct knee_err err;
    for (size_t i = 0; i < ANSWERS; i++) {
        for (int64_t r = 0; r < MEMBERS; r++) /* one of them is ahead, seldom the same */
            ranks[i][r] = member("a", r, 10 * (int64_t)i + (i % 9 == (size_t)r));
        answers[i] =
            (struct knee_ras){.ranks = ranks[i], .count = MEMBERS, .at_ns = (int64_t)i * 100000000};
    }
    assert_ok(knee_ras_judge(answers, ANSWERS, NULL, &a, &err));
    assert_int_equal(a.late, 0);
    for (size_t i = 0; i < ANSWERS; i++) /* and one of them always is not */
        ranks[i][2].calls = 10 * (int64_t)i + 2;
    knee_ras_answer_release(&a);
    assert_ok(knee_ras_judge(answers, ANSWERS, NULL, &a, &err));
    assert_int_equal(a.late, 0); /* two of three are behind: most of them */
    assert_true(a.rows[0].behind >= 30 && a.rows[2].behind == 0);
}
