/* SPDX-License-Identifier: MIT */
/*
 * What a run costs: the goodput law against a simulation event by event, against known laws and
 * against the checks of the literature; the best interval; spare nodes; checkpoints; energy; and
 * input that cannot be.
 */
#include "base/order.h"
#include "unit.h"

#include "predict/goodput/energy.h"
#include "predict/goodput/run_cost.h"

/* ---- The second method: a run, event by event ---- */

enum doing { TRAINING, BLOCKED, RESTARTING };

struct run {
    double now, next_stop, phase_end;
    enum doing doing;
    double trained;  /* since the start, lost steps taken back */
    double snapshot; /* work in the checkpoint that is being written */
    double safe;     /* work in the last complete one */
    double safe_at;  /* when the one being written is complete */
    size_t stops;
};

static double exponential(uint64_t *dice, double mean)
{
    return -mean * log(1 - chance(dice));
}

static void begin(struct run *r, enum doing doing, double seconds)
{
    r->doing = doing;
    r->phase_end = r->now + seconds;
}

static void stop(struct run *r, const struct knee_stops *s, uint64_t *dice)
{
    r->now = r->next_stop;
    if (r->safe_at <= r->now)
        r->safe = r->snapshot;
    r->trained = r->snapshot = r->safe;
    r->safe_at = INFINITY;
    r->next_stop = r->now + s->restart_s + exponential(dice, s->mean_s);
    r->stops++;
    begin(r, RESTARTING, s->restart_s);
}

static void finish_phase(struct run *r, const struct knee_stops *s)
{
    r->now = r->phase_end;
    if (r->doing == TRAINING) {
        r->trained += s->every_s;
        begin(r, BLOCKED, s->block_s);
        return;
    }
    if (r->doing == BLOCKED) {
        if (r->safe_at <= r->now)
            r->safe = r->snapshot;
        r->snapshot = r->trained;
        r->safe_at = r->now + s->write_s;
    }
    begin(r, TRAINING, s->every_s);
}

static double simulated_goodput(const struct knee_stops *s, size_t stops, uint64_t seed)
{
    uint64_t dice = seed;
    struct run r = {.safe_at = INFINITY, .next_stop = exponential(&dice, s->mean_s)};
    begin(&r, TRAINING, s->every_s);
    while (r.stops < stops)
        if (r.next_stop <= r.phase_end)
            stop(&r, s, &dice);
        else
            finish_phase(&r, s);
    return r.safe / r.now;
}

static double kept(const struct knee_stops *s)
{
    struct knee_goodput g;
    knee_goodput_of(s, &g);
    return g.kept;
}

TEST(test_the_law_agrees_with_a_simulation)
{
    static const double blocks[] = {0.0003, 0.01, 0.1}, restarts[] = {0.01, 0.1, 0.5};
    static const double every[] = {0.3, 1, 3}, writes[] = {0, 0.3, 0.99};
    double worst = 0;
    size_t cases = 0;
    for (size_t i = 0; i < 81; i++) {
        struct knee_stops s = {.mean_s = 10000,
                               .block_s = 10000 * blocks[i % 3],
                               .restart_s = 10000 * restarts[i / 3 % 3]};
        s.every_s = every[i / 9 % 3] * knee_best_interval(&s);
        s.write_s = writes[i / 27] * (s.every_s + s.block_s);
        /* so many stops that the rarest event, a complete checkpoint, is seen 150,000 times; a
         * sanitizer looks at the same calls in a fifth of them */
        double stops = UNIT_SOME(150000) * exp((s.every_s + s.block_s + s.write_s) / s.mean_s);
        double simulated = simulated_goodput(&s, (size_t)stops, 32 + i);
        worst = fmax(worst, fabs(simulated / kept(&s) - 1));
        cases++;
    }
    print_message("goodput: %zu cases of %d stops or more, largest difference %.2f %%\n", cases,
                  UNIT_SOME(150000), 100 * worst);
    assert_true(worst < 0.01);
}

/* ---- Laws ---- */

TEST(test_shares_sum_to_one)
{
    uint64_t dice = 5;
    for (int i = 0; i < 1000; i++) {
        struct knee_stops s = {.mean_s = 1000 * exp(5 * chance(&dice)),
                               .restart_s = 1000 * chance(&dice),
                               .block_s = 0.1 + 100 * chance(&dice),
                               .every_s = 10 + 3000 * chance(&dice)};
        struct knee_goodput g;
        s.write_s = chance(&dice) * s.every_s;
        knee_goodput_of(&s, &g);
        assert_true(fabs(g.kept + g.checkpoint + g.lost + g.restart - 1) < 1e-12);
        assert_true(g.kept > 0 && g.lost >= 0 && g.kept < 1);
    }
}

/* Daly's law where nothing is asynchronous, the first-order law where everything is short. */
TEST(test_known_laws_are_limits)
{
    struct knee_stops s = {.mean_s = 1e5, .restart_s = 300, .block_s = 30, .every_s = 2000};
    double daly =
        s.every_s / ((s.mean_s + s.restart_s) * expm1((s.every_s + s.block_s) / s.mean_s));
    assert_true(fabs(kept(&s) / daly - 1) < 1e-12);
    s.write_s = 200;
    double first =
        (1 - (s.restart_s + s.write_s + s.every_s / 2) / s.mean_s) / (1 + s.block_s / s.every_s);
    assert_true(fabs(kept(&s) / first - 1) < 5e-4);
}

TEST(test_no_interval_beats_the_best)
{
    for (double c = 0.1; c < 3000; c *= 1.7) {
        struct knee_stops s = {.mean_s = 10000, .restart_s = 600, .block_s = c};
        double best = s.every_s = knee_best_interval(&s), top = kept(&s);
        for (double f = 0.5; f < 2; f += 0.0501) {
            s.every_s = f * best;
            assert_true(kept(&s) <= top * (1 + 1e-12));
        }
        if (c < 10) /* Young's approximation */
            assert_true(fabs(sqrt(2 * c * s.mean_s) / best - 1) < 0.03);
    }
}

TEST(test_an_interval_is_not_shorter_than_the_write)
{
    struct knee_stops s = {.mean_s = 10000, .block_s = 1, .write_s = 500};
    assert_true(knee_best_interval(&s) == 499);
}

/* Figures that the literature gives for the same inputs. */
TEST(test_published_examples)
{
    struct knee_stops llama = {.mean_s = 50.6e3 / 16384 * 3600, .restart_s = 600, .block_s = 5};
    llama.every_s = knee_best_interval(&llama);
    assert_true(fabs(llama.every_s - 334) < 6);
    assert_true(fabs(kept(&llama) - 0.921) < 0.001);
    llama.restart_s = 1800;
    assert_true(fabs(kept(&llama) - 0.835) < 0.001);
    /* 3.79 stops in 1000 node-days, repair in a day, in three */
    assert_true(knee_spare_nodes(2048, 86400 * 1000 / 3.79, 86400, 0.99) == 15);
    assert_true(knee_spare_nodes(2048, 86400 * 1000 / 3.79, 3 * 86400, 0.99) == 35);
    assert_true(knee_spare_nodes(1, 1e12, 1, 0.99) == 0);
}

/* ---- A run ---- */

/* Published runs with what their reports give; NaN: it does not say. Sources:
 * docs/evidence/cost.md. */
static const struct {
    const char *name;
    double gpus, params, gpu_hours_per_stop, restart_s, low, high;
    enum knee_checkpoint_mode mode;
} published[] = {
    {"Llama 3 405B", 16384, 405.8e9, 50.7e3, NAN, 0.90, 0.95, KNEE_CHECKPOINT_SYNC},
    {"Llama 3 405B, nothing given", 16384, 405.8e9, NAN, NAN, 0.90, 0.95, KNEE_CHECKPOINT_SYNC},
    {"MegaScale 175B", 12288, 175e9, NAN, NAN, 0.90, 0.95, KNEE_CHECKPOINT_ASYNC},
    {"ByteRobust", 9600, 200e9, NAN, NAN, 0.97, 0.97, KNEE_CHECKPOINT_ASYNC},
    {"HLAT, automatic restarts", 4096, 70e9, NAN, NAN, 0.9881, 0.9881, KNEE_CHECKPOINT_ASYNC},
    {"HLAT, manual restarts (2 h)", 4096, 70e9, NAN, 7200, 0.7783, 0.7783, KNEE_CHECKPOINT_ASYNC},
    {"OPT-175B, uptime", 992, 175e9, 7.4e3, 5.2 * 3600, 0.55, 0.59, KNEE_CHECKPOINT_SYNC},
};
#define PUBLISHED (sizeof published / sizeof *published)

static struct knee_run_question question(const struct knee_run_inputs *inputs, double gpus)
{
    return (struct knee_run_question){
        .inputs = inputs,
        .job = {.trained_params = 405.8e9,
                .bytes_per_param = 14,
                .gpus = gpus,
                .nodes = gpus / 8,
                .writers = gpus,
                .copies = gpus / 128},
        .node_size = 8,
        .productive_s = 50 * 86400.0,
        .dollars_per_s = gpus * 2.5 / 3600,
    };
}

TEST(test_published_runs_are_inside)
{
    size_t inside = 0;
    for (size_t i = 0; i < PUBLISHED; i++) {
        struct knee_run_inputs inputs;
        struct knee_run_cost cost;
        knee_run_init(&inputs);
        inputs.gpu_hours_per_stop = published[i].gpu_hours_per_stop;
        inputs.restart_s = published[i].restart_s;
        inputs.mode = (int)published[i].mode;
        knee_run_complete(&inputs);
        struct knee_run_question q = question(&inputs, published[i].gpus);
        q.job.trained_params = published[i].params;
        q.productive_s = q.dollars_per_s = NAN;
        knee_run_price(&q, &cost);
        bool good = cost.sure.low <= published[i].high && published[i].low <= cost.sure.high;
        print_message("  %-28s goodput %.3f (%.3f-%.3f), reported %.3f%s\n", published[i].name,
                      cost.goodput.kept, cost.sure.low, cost.sure.high, published[i].low,
                      good ? "" : "  OUTSIDE");
        inside += good;
    }
    print_message("goodput: %zu of %zu published runs inside the interval\n", inside, PUBLISHED);
    assert_true(inside >= 6);
}

static struct knee_run_cost priced(const char *key, const char *value, double gpus)
{
    struct knee_run_inputs inputs;
    struct knee_run_cost cost;
    struct knee_err err;
    knee_run_init(&inputs);
    if (key && knee_keys_set(&knee_run_keys, &inputs, key, value, KNEE_FLAG, &err))
        fail_msg("%s", err.what);
    knee_run_complete(&inputs);
    struct knee_run_question q = question(&inputs, gpus);
    if (knee_run_check(&q, &err))
        fail_msg("%s", err.what);
    knee_run_price(&q, &cost);
    return cost;
}

TEST(test_a_run_with_failures)
{
    struct knee_run_cost c = priced(NULL, NULL, 16384), given = priced("mtbf", "50600", 16384);
    assert_true(c.checkpoint.bytes == 14 * 405.8e9);
    assert_true(fabs(c.time_s - 50 * 86400 / c.goodput.kept) < 1);
    assert_true(fabs(c.cost - c.time_s * 16384 * 2.5 / 3600) < 1);
    assert_true(c.sure.low < c.goodput.kept && c.goodput.kept < c.sure.high);
    assert_true(given.goodput.kept > c.goodput.kept);
    assert_true(given.sure.high - given.sure.low < c.sure.high - c.sure.low);
    /* asynchronous checkpoints block less, so that they win */
    assert_true(c.other_kept > c.goodput.kept);
    assert_true(priced("checkpoint", "async", 16384).goodput.kept == c.other_kept);
    /* one more minute costs about a minute for each stop */
    assert_true(fabs(c.minute_s / (60 * c.stop_count) - 1) < 0.05);
    assert_true(fabs(c.minute_cost / c.minute_s - c.cost / c.time_s) < 1e-6);
    assert_true(c.spares > 0 && c.spares > priced("repair", "2h", 16384).spares);
}

TEST(test_an_interval_in_use_is_judged)
{
    struct knee_run_cost c = priced("checkpoint-every", "3h", 16384);
    assert_true(c.stops.every_s == 10800);
    assert_true(c.best_kept > 1.2 * c.goodput.kept);
}

TEST(test_input_that_cannot_be)
{
    static const char *const bad[][2] = {
        {"mtbf", "0"},  {"mtbf", "-5"},          {"restart", "0s"}, {"filesystem", "50"},
        {"pue", "0.5"}, {"checkpoint", "often"}, {"grid", "-1"}};
    struct knee_run_inputs inputs;
    struct knee_err err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        knee_run_init(&inputs);
        if (!knee_keys_set(&knee_run_keys, &inputs, bad[i][0], bad[i][1], KNEE_FLAG, &err))
            fail_msg("%s %s", bad[i][0], bad[i][1]);
    }
    knee_run_init(&inputs);
    inputs.restart_s = 20000;
    knee_run_complete(&inputs);
    struct knee_run_question q = question(&inputs, 16384);
    assert_int_equal(knee_run_check(&q, &err), KNEE_USAGE);
    assert_non_null(strstr(err.what, "16384 GPUs stop every"));
    knee_run_init(&inputs);
    inputs.mode = KNEE_CHECKPOINT_ASYNC;
    inputs.every_s = 60;
    inputs.filesystem_rate = 10e9;
    knee_run_complete(&inputs);
    q = question(&inputs, 1024);
    assert_int_equal(knee_run_check(&q, &err), KNEE_USAGE);
    assert_non_null(strstr(err.what, "to write"));
}

/* ---- Checkpoints ---- */

TEST(test_the_slowest_link_sets_a_checkpoint)
{
    struct knee_checkpoint_job job = {.trained_params = 70e9,
                                      .bytes_per_param = 14,
                                      .gpus = 64,
                                      .nodes = 8,
                                      .writers = 64,
                                      .copies = 4};
    struct knee_checkpoint c;
    knee_checkpoint_of(&job, &(struct knee_storage){49e9, NAN, NAN}, &c);
    assert_true(fabs(c.write_s - 20) < 1e-9);
    assert_true(fabs(c.read_s - (20 + 3 * 140.0 / 49)) < 1e-9); /* three replicas more */
    knee_checkpoint_of(&job, &(struct knee_storage){49e9, 1e9, NAN}, &c);
    assert_true(fabs(c.write_s - 122.5) < 1e-9);
    knee_checkpoint_of(&job, &(struct knee_storage){49e9, 1e9, 1e8}, &c);
    assert_true(fabs(c.write_s - 153.125) < 1e-9);
    assert_true(knee_checkpoint_bytes_per_param("fsdp") == 12);
    assert_true(knee_checkpoint_bytes_per_param(NULL) == 14);
}

/* What MLPerf Storage measured, beside the repository: each row from the rate of its submitter's
 * other rows, in bytes per second and unit of storage. */
struct storage_row {
    char submitter[64];
    double units, hosts, bytes, write_s;
};

/* Data nodes or TiB where the system's name has them, else hosts. */
static double units_of(const char *system, double hosts)
{
    double units;
    const char *dash = strrchr(system, '-');
    if (sscanf(system, "FBEXA_%lf", &units) == 1 ||
        (dash && strstr(dash, "TiB") && sscanf(dash + 1, "%lf", &units) == 1))
        return units;
    return hosts;
}

/* The columns of a line; quoted cells may hold commas. */
static size_t cells_of(char *line, char **cells, size_t room)
{
    size_t count = 0;
    bool quoted = false;
    for (char *at = line, *from = line;; at++) {
        quoted = *at == '"' ? !quoted : quoted;
        if ((*at && *at != '\n' && (*at != ',' || quoted)) || count == room)
            continue;
        char end = *at;
        *at = '\0';
        cells[count++] = from;
        from = at + 1;
        if (end != ',')
            return count;
    }
}

static size_t read_storage(FILE *file, struct storage_row *rows, size_t room)
{
    char line[2048], *cells[32];
    size_t count = 0;
    while (count < room && fgets(line, sizeof line, file)) {
        if (cells_of(line, cells, 32) < 13 || strcmp(cells[0], "id") == 0)
            continue;
        struct storage_row *row = &rows[count++];
        snprintf(row->submitter, sizeof row->submitter, "%s", cells[4]);
        row->hosts = atof(cells[8]);
        row->units = units_of(cells[5], row->hosts);
        row->bytes = atof(cells[11]);
        row->write_s = atof(cells[12]);
    }
    return count;
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, knee_ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double rate_of_others(const struct storage_row *rows, size_t count, size_t left_out)
{
    double rates[64];
    size_t others = 0;
    for (size_t i = 0; i < count; i++)
        if (i != left_out && strcmp(rows[i].submitter, rows[left_out].submitter) == 0)
            rates[others++] = rows[i].bytes / rows[i].write_s / rows[i].units;
    return others ? median(rates, others) : NAN;
}

TEST(test_checkpoints_of_mlperf_storage)
{
    struct storage_row rows[64];
    double errors[64];
    size_t judged = 0;
    FILE *file = fopen("../shared/data/published/checkpoint_dev.csv", "r");
    if (!file)
        skip();
    size_t count = read_storage(file, rows, 64);
    fclose(file);
    for (size_t i = 0; i < count; i++) {
        double rate = rate_of_others(rows, count, i);
        struct knee_checkpoint_job job = {.trained_params = rows[i].bytes / 14,
                                          .bytes_per_param = 14,
                                          .gpus = 64,
                                          .copies = 1,
                                          .nodes = rows[i].hosts,
                                          .writers = 64};
        struct knee_checkpoint c;
        if (isnan(rate))
            continue;
        knee_checkpoint_of(&job, &(struct knee_storage){rate * rows[i].units, NAN, NAN}, &c);
        errors[judged++] = fabs(c.write_s / rows[i].write_s - 1);
    }
    double middle = median(errors, judged);
    print_message("checkpoints: %zu rows left out in turn, median error %.1f %%\n", judged,
                  100 * middle);
    assert_true(judged >= 10 && middle < 0.25);
}

/* ---- Energy ---- */

TEST(test_measured_watts_come_back)
{
    struct knee_watts w;
    struct knee_gpu_seconds busy = {.product_s = 1}, waits = {.wait_s = 1}, idle = {.idle_s = 2};
    struct knee_gpu_seconds half = {.product_s = 0.5, .idle_s = 0.5};
    knee_watts_of("h200", 700, NAN, &w);
    assert_true(w.measured);
    assert_true(knee_gpu_joules(&w, &busy) == 685);
    assert_true(knee_gpu_joules(&w, &waits) == 124);
    assert_true(knee_gpu_joules(&w, &idle) == 248);
    /* Mean watts of products half of the time, three cards. Short bursts differ more than anything
     * else that was measured: 443 W on one card, 516 and 531 W on the others. */
    static const double measured_w[] = {442.6, 516, 531};
    double off = 0;
    for (int i = 0; i < 3; i++)
        off += fabs(knee_gpu_joules(&w, &half) / measured_w[i] - 1) / 3;
    assert_true(off < 0.08);
}

TEST(test_a_cap_and_a_stranger)
{
    struct knee_watts w;
    struct knee_gpu_seconds busy = {.product_s = 1};
    knee_watts_of("h200", 700, 350, &w);
    assert_true(fabs(knee_gpu_joules(&w, &busy) - 685.0 / 2) < 1e-9);
    knee_watts_of("a100", 400, NAN, &w);
    assert_false(w.measured);
    assert_true(fabs(knee_gpu_joules(&w, &busy) - 685.0 * 4 / 7) < 1e-9);
    assert_true(knee_wall_joules(685, 1) > 685 + KNEE_HOST_WATTS);
}

TEST(test_every_power_row_is_whole)
{
    for (size_t i = 0; i < knee_power_count; i++) {
        const struct knee_power *p = &knee_power[i];
        int kind = 0;
        while (kind < KNEE_POWER_KINDS && strcmp(knee_power_kinds[kind], p->kind) != 0)
            kind++;
        assert_true(kind < KNEE_POWER_KINDS);
        assert_true(p->low <= p->watts && p->watts <= p->high);
    }
}
