/* SPDX-License-Identifier: MIT */
/* What rings of a running job say together: changes, alarms, who is late and why, what is slow. */
#include "unit.h"

#include "base/text.h"
#include "judge/alarm.h"
#include "judge/ras_judge.h"
#include "out/answer.h"
#include "say/watch_report.h"

#include <math.h>
#include <string.h>

/* ---- Changes ---- */

static uint64_t seed = 1;

static struct knee_change change_of(const double *values, size_t count, double least)
{
    struct knee_change change = {0};
    struct knee_err err;
    assert_ok(knee_change_point(values, count, least, NULL, &change, &err));
    return change;
}

TEST(test_a_change_is_found_where_it_is)
{
    for (int round = 0; round < 100; round++) {
        double values[100];
        size_t at = 20 + (size_t)(60 * chance(&seed));
        for (size_t i = 0; i < 100; i++)
            values[i] =
                normal(&seed) + (i >= at ? 8 : 0) + (i % 17 == 3 ? 50 : 0); /* wild ones too */
        struct knee_change change = change_of(values, 100, 4);
        assert_true(change.found);
        assert_in_range(change.at, at - 2, at + 2); /* a wild one beside it may hide it */
        assert_true(change.after - change.before > 6 && change.after - change.before < 10);
    }
}

/* One in a thousand by chance, as it says; and none where it would have to be larger than that. */
TEST(test_noise_does_not_change)
{
    int found = 0;
    for (int round = 0; round < 3000; round++) {
        double values[60];
        for (size_t i = 0; i < 60; i++)
            values[i] = normal(&seed);
        found += change_of(values, 60, 0).found;
        assert_false(change_of(values, 60, 4).found);
    }
    assert_true(found <= 9);
}

TEST(test_the_newest_change_counts)
{
    double values[120];
    for (size_t i = 0; i < 120; i++)
        values[i] = 0.1 * normal(&seed) + (i < 40 ? 1 : i < 80 ? 3 : 2);
    struct knee_change change = change_of(values, 120, 0.5);
    assert_true(change.found);
    assert_int_equal(change.at, 80);
    assert_true(change.after < change.before);       /* better again is a change too */
    assert_false(change_of(values, 120, 2.5).found); /* beyond chance, and too small to matter */
    assert_false(change_of(values, 3, 0.5).found);
    assert_false(change_of(values, 0, 0.5).found);
}

/* ---- A job ---- */

enum { RANKS = 8, STEPS = 64 };

struct job {
    int late; /* rank; -1: nobody */
    int from; /* step */
    double late_ms;
    int stops_at;  /* rank RANKS - 1 writes no more from this step on; 0: it goes on */
    int group;     /* ranks of a communicator */
    int slow_comm; /* -1: none */
    bool samples, no_energy;
};

static const struct job healthy = {.late = -1, .late_ms = 40, .group = RANKS, .slow_comm = -1};

struct made {
    struct knee_live_rank ranks[RANKS];
    struct knee_live_joined joined;
    struct knee_watch watch;
};

static const int64_t start_ns = INT64_C(1794770000000000000);
static const int64_t step_ns = 1000000000; /* so that a rank's silence is noticed */

static void write_rank(const struct job *job, int rank, double waits[STEPS], int64_t wire_ns,
                       struct knee_live_rank *out)
{
    OWNED(knee_text) steps = {0}, calls = {0}, about = {0};
    struct knee_err err;
    int end = job->stops_at && rank == RANKS - 1 ? job->stops_at : STEPS;
    knee_text_printf(
        &about,
        "{\"schema\": \"knee.live/1\", \"rank\": %d, \"world\": %d, \"start_ns\": %lld, "
        "\"host\": \"a\\\"b\", \"gpu\": \"NVIDIA H200\"}",
        rank, RANKS, (long long)start_ns);
    for (int s = 0; s < end; s++) {
        bool late = rank == job->late && s >= job->from;
        knee_text_printf(&steps, "{\"t_ns\": %lld, \"step\": %d, \"steps\": 1, \"step_s\": %.9f",
                         (long long)(start_ns + (s + 1) * step_ns), s,
                         1 + (job->late >= 0 && s >= job->from ? job->late_ms / 1e3 : 0));
        if (job->samples && s % 8 == 0)
            knee_text_printf(&steps,
                             ", \"sampled\": true, \"compute_s\": %.9f, \"transfer_s\": 0.2, "
                             "\"window_s\": %.9f",
                             late ? 0.8 + job->late_ms / 1e3 : 0.8,
                             late ? 1 + job->late_ms / 1e3 : 1);
        knee_text_printf(&steps, ", \"sm_mhz\": 1980, \"throttle\": 0, \"temp_c\": 60%s}\n",
                         job->no_energy ? "" : ", \"gpu_s\": 2, \"energy_j\": 1000");
        knee_text_printf(
            &calls,
            "{\"comm\": \"%x\", \"seq\": %d, \"op\": \"AllReduce\", \"bytes\": 1048576, "
            "\"dur_ns\": %lld, \"step\": %d, \"rank\": %d, \"n\": %d}\n",
            0x10 + (unsigned)(rank / job->group), s,
            (long long)(wire_ns + (int64_t)(1e6 * waits[s])), s, rank % job->group, job->group);
    }
    knee_live_init(out, NULL);
    assert_ok(knee_live_read_about(out, about.data, about.length, &err));
    assert_ok(knee_live_read_steps(out, steps.data, steps.length, &err));
    assert_ok(knee_live_read_calls(out, calls.data, calls.length, &err));
}

/* Ranks come with a noise of up to 5 ms; the last one of a communicator waits for nobody. */
static void make(const struct job *job, struct made *out)
{
    static double comes[RANKS][STEPS];
    struct knee_err err;
    for (int r = 0; r < RANKS; r++)
        for (int s = 0; s < STEPS; s++)
            comes[r][s] = 5 * chance(&seed) + (r == job->late && s >= job->from ? job->late_ms : 0);
    for (int r = 0; r < RANKS; r++) {
        double waits[STEPS];
        int first = r - r % job->group;
        for (int s = 0; s < STEPS; s++) {
            double last = 0;
            for (int k = first; k < first + job->group; k++)
                last = fmax(last, comes[k][s]);
            waits[s] = last - comes[r][s];
        }
        write_rank(job, r, waits, r / job->group == job->slow_comm ? 4000000 : 2000000,
                   &out->ranks[r]);
    }
    struct knee_watch_given given = {start_ns + (STEPS + 5) * step_ns, NAN, 0, NULL};
    assert_ok(knee_live_join(out->ranks, RANKS, NULL, &out->joined, &err));
    assert_ok(knee_watch(out->ranks, RANKS, &out->joined, &given, &out->watch, &err));
}

static void made_release(struct made *made)
{
    knee_watch_release(&made->watch);
    knee_live_joined_release(&made->joined);
    for (int r = 0; r < RANKS; r++)
        knee_live_release(&made->ranks[r]);
}

/* The rank, by how much within 5 %, and since when, wherever it is. */
TEST(test_the_late_rank_is_named)
{
    for (int late = 0; late < RANKS; late++) {
        struct job job = healthy;
        OWNED(made) made;
        job.late = late;
        job.late_ms = 100;
        job.from = 20 + 3 * late;
        job.samples = true;
        make(&job, &made);
        const struct knee_watch *w = &made.watch;
        assert_int_equal(w->late_rank, late);
        assert_near(w->late_s, 0.1, 0.05);
        assert_int_equal(w->cause, KNEE_WATCH_LABEL);
        assert_int_equal(w->label, KNEE_COMPUTE);
        assert_int_equal(w->late_change_rank, late);
        assert_in_range(w->points[w->late_change.at].step, job.from - 1, job.from + 1);
        assert_true(w->step_change.found);
        assert_int_equal(w->points[w->step_change.at].step, job.from);
        assert_near(knee_watch_trend(w), 0.1, 1e-9);
    }
}

TEST(test_nobody_is_named_in_a_healthy_job)
{
    for (int round = 0; round < 50; round++) {
        OWNED(made) made;
        make(&healthy, &made);
        assert_int_equal(made.watch.late_rank, SIZE_MAX);
        assert_int_equal(made.watch.late_change_rank, SIZE_MAX);
        assert_false(made.watch.step_change.found);
        assert_int_equal(made.watch.silent, 0);
        assert_int_equal(made.watch.slow_wire, SIZE_MAX);
    }
}

TEST(test_a_silent_rank_and_a_slow_communicator)
{
    struct job job = healthy;
    OWNED(made) made;
    job.group = 2;
    job.slow_comm = 1;
    job.stops_at = 20;
    make(&job, &made);
    assert_int_equal(made.watch.silent, 1);
    assert_true(made.watch.ranks[RANKS - 1].silent);
    assert_true(made.watch.slow_wire != SIZE_MAX);
    const struct knee_watch_wire *wire = &made.watch.wires[made.watch.slow_wire];
    assert_int_equal(wire->comm, 0x11);
    assert_near(wire->slowdown, 2, 1e-9);
    /* bus = bytes / time x 2 (n - 1) / n */
    assert_relative(wire->bus_bytes_per_s, 1048576 / 4e-3, 1e-9);
}

/* Every rank has run for as long as its lines say; a GPU of 500 W takes 500 J a second. */
TEST(test_dollars_and_joules)
{
    OWNED(made) made;
    make(&healthy, &made);
    assert_near(made.watch.rank_s, RANKS * STEPS, 1e-9);
    assert_near(made.watch.joules, 500.0 * RANKS * STEPS, 1e-9);
    assert_near(made.watch.dollars, RANKS * STEPS / 3600.0 * made.watch.price_per_hour, 1e-9);
    assert_true(made.watch.price_assumed);
    assert_near(made.watch.age_s, 5, 1e-6);
}

/* No line for an hour: the job hangs where its processes are alive, and is over where not. */
TEST(test_old_lines)
{
    for (size_t alive = 0; alive < 2; alive++) {
        struct knee_watch_given given = {start_ns + 3600 * step_ns, NAN, alive, NULL};
        struct knee_err err;
        OWNED(made) made;
        make(&healthy, &made);
        knee_watch_release(&made.watch);
        assert_ok(knee_watch(made.ranks, RANKS, &made.joined, &given, &made.watch, &err));
        assert_int_equal(made.watch.state, alive ? KNEE_WATCH_HUNG : KNEE_WATCH_STALE);
    }
}

/* Without NVML: 80 % products and 20 % waiting on an H200, at its power limit on average. */
TEST(test_joules_without_nvml)
{
    struct job quiet = healthy;
    OWNED(made) made;
    quiet.no_energy = quiet.samples = true;
    make(&quiet, &made);
    assert_true(made.watch.joules_by_table);
    assert_near(made.watch.joules, 685.0 * RANKS * STEPS, 1e-6);
    made_release(&made);
    quiet.samples = false; /* then nothing is known */
    make(&quiet, &made);
    assert_true(isnan(made.watch.joules));
}

TEST(test_nothing_was_read)
{
    struct knee_live_rank rank;
    OWNED(knee_live_joined) joined;
    OWNED(knee_watch) watch;
    struct knee_err err;
    struct knee_watch_given given = {start_ns, NAN, 0, NULL};
    knee_live_init(&rank, NULL);
    assert_ok(knee_live_join(&rank, 1, NULL, &joined, &err));
    assert_ok(knee_watch(&rank, 1, &joined, &given, &watch, &err));
    assert_int_equal(watch.step, -1);
    assert_int_equal(watch.point_count, 0);
    knee_live_release(&rank);
}

/* ---- Alarms ---- */

static struct knee_alarm_state check(const char *words, const struct knee_watch *watch)
{
    struct knee_alarm alarm;
    struct knee_err err;
    assert_ok(knee_alarm_parse(words, &alarm, &err));
    return knee_alarm_check(&alarm, watch);
}

/* A job of 64 s, whose rank 3 is late by 100 ms from 40 s on; 20 % of a step is a transfer. */
TEST(test_alarms)
{
    static const struct {
        const char *words;
        bool goes;
    } rows[] = {
        {"late > 50ms", true},
        {"late > 50ms for 23s", true},
        {"late > 50ms for 24s", false},
        {"late > 50ms for 5m", false},
        {"late > 150ms", false},
        {"late > 0.05 for 0.1m", true},
        {"step < 2 for 1min", true},
        {"step >= 1s for 0.005h", true},
        {"step >= 1 for 1h", false},
        {"trend > 9%", true},
        {"trend <= 0", false},
        {"R > 0.2", true},
        {"R <= 0.25", true},
        {"R < 0.2", false},
        {"E >= 0.8", true},
        {"E < 0.9 for 10s", true},
        {"exposed > 0.1", true},
        {"exposed > 60%", false},
        {"wait > 1s", false},
        {"silent > 0", false},
        {"silent < 1", true},
        {"silent < 1 for 1m", false},
        {"age > 4s", true},
        {"age > 1m", false},
    };
    struct job job = healthy;
    OWNED(made) made;
    job.late = 3;
    job.late_ms = 100;
    job.from = 40;
    job.samples = true;
    make(&job, &made);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (check(rows[i].words, &made.watch).goes != rows[i].goes)
            fail_msg("%s", rows[i].words);
    assert_int_equal(check("late > 50ms", &made.watch).since_step, 40);
    made_release(&made);
    make(&healthy, &made);
    assert_false(check("R > 0", &made.watch).known); /* nothing was sampled */
    assert_false(check("R > 0", &made.watch).goes);
    assert_false(check("exposed > 0", &made.watch).known);
}

TEST(test_conditions_that_are_none)
{
    static const char bad[] =
        "|R|R >|R > x|Q > 1|R => 1|R > 1 since 5m|R > 1 for|R>1|R > 1 for -5s|"
        "R > 1 for 5m now|late > xm|late > 1 for h|R ! 1|R >> 1|"
        "R > 1111111111111111111111111111111111111111111111111111111111111111111111111111";
    struct knee_alarm alarm;
    struct knee_err err;
    for (struct pieces p = {.rest = bad}; next_piece(&p);) {
        assert_int_equal(knee_alarm_parse(p.text, &alarm, &err), KNEE_USAGE);
        assert_true(err.what[0]);
    }
}

/* ---- Prometheus ---- */

/* HELP and TYPE once before each family, no value that is not a number, labels escaped. */
TEST(test_metrics)
{
    struct job job = healthy;
    OWNED(made) made;
    OWNED(knee_text) text = {0};
    char family[64] = "";
    size_t lines = 0;
    job.late = 3;
    job.samples = true;
    make(&job, &made);
    struct knee_watch_report report = {.name = "run\\7", .watch = &made.watch, .trace_step = -1};
    knee_answer_prometheus(&knee_watch_answer, &report, &text);
    assert_false(text.failed);
    for (char *line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n"), lines++) {
        if (strncmp(line, "# HELP ", 7) == 0) {
            sscanf(line + 7, "%63s", family);
            continue;
        }
        if (strncmp(line, "# TYPE ", 7) == 0) {
            assert_int_equal(strncmp(line + 7, family, strlen(family)), 0);
            continue;
        }
        assert_int_equal(strncmp(line, family, strlen(family)), 0);
        assert_int_equal(line[strlen(family)], '{');
        assert_non_null(strstr(line, "job_dir=\"run\\\\7\""));
        assert_null(strstr(line, "null"));
        if (strstr(line, "rank=\""))
            assert_non_null(strstr(line, "host=\"a\\\"b\""));
        double value = 0;
        assert_int_equal(sscanf(strrchr(line, '}') + 1, "%lf", &value), 1);
    }
    assert_true(lines > 40);
}

/* ---- RAS ---- */

static struct knee_ras ras_of(const int64_t *calls, size_t count, int64_t at_ns)
{
    struct knee_text text = {0};
    struct knee_ras ras;
    struct knee_err err;
    knee_text_puts(&text, "SERVER PROTOCOL 2\nOK\n{\"nccl_version\": \"2.28.9\", "
                          "\"communicators_count\": 1, \"communicators\": [{\"hash\": \"0xab\", "
                          "\"ranks\": [");
    for (size_t r = 0; r < count; r++)
        knee_text_printf(&text,
                         "%s{\"rank\": %zu, \"host\": \"a\", \"pid\": 7, \"status\": "
                         "{\"async_error\": 0}, \"collective_counts\": {\"Broadcast\": 1, "
                         "\"AllReduce\": %lld}}",
                         r ? ", " : "", r, (long long)calls[r]);
    knee_text_puts(&text, "], \"missing_ranks\": [{\"rank\": 9, \"host\": \"b\", \"status\": "
                          "{\"unresponsive\": true, \"considered_dead\": false}}]}]}\n");
    assert_ok(knee_ras_read(text.data, text.length, NULL, &ras, &err));
    knee_text_release(&text);
    ras.at_ns = at_ns;
    return ras;
}

/* Counts of two ranks under NCCL 2.28.9 on an H200, asked every 50 ms, of which rank 1 slept 30 ms
 * a step. */
static const int64_t sleeper[][2] = {
    {53, 50}, {53, 53}, {53, 53}, {56, 53}, {56, 56}, {56, 56}, {56, 56}, {59, 56},
    {59, 59}, {59, 59}, {62, 59}, {62, 62}, {62, 62}, {62, 62}, {65, 62}, {65, 65},
    {65, 65}, {65, 65}, {68, 68}, {68, 68}, {68, 68}, {71, 68}, {71, 71}, {71, 71},
    {74, 71}, {74, 74}, {74, 74}, {74, 74}, {77, 74}, {77, 77}, {77, 77}, {80, 77},
    {80, 80}, {80, 80}, {80, 80}, {83, 80}, {83, 83}, {83, 83}, {86, 83}, {86, 86},
};

static struct knee_ras_answer judged(const int64_t (*counts)[2], size_t count)
{
    struct knee_ras *answers = calloc(count, sizeof *answers);
    struct knee_ras_answer answer;
    struct knee_err err;
    for (size_t i = 0; i < count; i++)
        answers[i] = ras_of(counts[i], 2, (int64_t)i * 50700000);
    assert_ok(knee_ras_judge(answers, count, NULL, &answer, &err));
    assert_int_equal(answer.count, 3);
    assert_string_equal(answer.rows[0].rank->host, "a");
    assert_int_equal(answer.rows[0].rank->calls, counts[count - 1][0] + 1); /* all operations */
    for (size_t i = 0; i < count; i++)
        knee_ras_release(&answers[i]);
    free(answers);
    return answer;
}

TEST(test_the_sleeper_is_never_ahead)
{
    enum { ANSWERS = sizeof sleeper / sizeof *sleeper };
    OWNED(knee_ras_answer) answer = judged(sleeper, ANSWERS);
    assert_false(answer.rows[0].late);
    assert_true(answer.rows[1].late);
    assert_int_equal(answer.rows[1].uneven, 11);
    assert_int_equal(answer.rows[1].behind, 11);
    assert_near(answer.rows[0].calls_per_s,
                (double)(sleeper[ANSWERS - 1][0] - sleeper[0][0]) / 1.9773, 1e-6);
    assert_int_equal(answer.unresponsive, 1);
    assert_int_equal(answer.dead, 0);
    assert_int_equal(answer.still_comms, 0);
}

/* Behind three times of three: chance does that once in four times, and did on a healthy job. */
TEST(test_chance_names_nobody)
{
    static const int64_t counts[][2] = {{455, 455}, {455, 456}, {456, 456}, {456, 457}, {457, 457},
                                        {457, 458}, {458, 458}, {459, 459}, {459, 459}, {460, 460},
                                        {461, 461}, {461, 461}, {462, 462}};
    OWNED(knee_ras_answer) answer = judged(counts, sizeof counts / sizeof *counts);
    assert_int_equal(answer.rows[0].behind, 3);
    assert_int_equal(answer.late, 0);
}

/* A long step: the other rank is behind for nine answers, once. */
TEST(test_one_occasion_is_not_many)
{
    static const int64_t counts[][2] = {{10, 10}, {14, 10}, {14, 10}, {14, 10}, {14, 10}, {14, 10},
                                        {14, 10}, {14, 10}, {14, 10}, {14, 10}, {14, 14}, {18, 18}};
    OWNED(knee_ras_answer) answer = judged(counts, sizeof counts / sizeof *counts);
    assert_int_equal(answer.rows[1].uneven, 1);
    assert_int_equal(answer.late, 0);
}

TEST(test_what_stands_still)
{
    static const int64_t counts[][2] = {{401, 397}, {401, 397}, {401, 397}, {401, 397},
                                        {401, 397}, {401, 397}, {401, 397}, {401, 397},
                                        {401, 397}, {401, 397}, {401, 397}, {401, 397}};
    OWNED(knee_ras_answer) answer = judged(counts, sizeof counts / sizeof *counts);
    assert_int_equal(answer.still_comms, 1);
    assert_true(answer.rows[1].still && answer.rows[1].lag == 4);
}

/* What NCCL 2.28.9 answered on an H200, letter for letter. */
TEST(test_a_real_answer)
{
    const char *answer = seed_of("ras/h200");
    OWNED(knee_ras) ras;
    struct knee_err err;
    assert_ok(knee_ras_read(answer, strlen(answer), NULL, &ras, &err));
    assert_string_equal(ras.nccl, "2.28.9");
    assert_int_equal(ras.count, 2);
    for (size_t i = 0; i < ras.count; i++) {
        const struct knee_ras_rank *r = &ras.ranks[i];
        assert_string_equal(r->comm, "0x9e0cb5e1b61a8df1");
        assert_int_equal(r->rank, i);
        assert_int_equal(r->pid, 464 + i);
        assert_int_equal(r->calls, 4 + 1 + (i ? 50 : 53));
        assert_false(r->missing || r->unresponsive || r->dead || r->failed);
    }
}
