/* SPDX-License-Identifier: MIT */
/*
 * Who slows a pipeline down, against a pipeline that writes its own log: with nothing between its
 * operations the step without launch delays is the one that was recorded; what was put in (a stage
 * with more to do, a slow worker, long sequences, a slow wire) is what is named.
 */
#include "unit.h"

#include "knee_replay.h"

enum { REPLICAS = 2, STAGES = 3, PARTS = 2, BATCHES = 6, STEPS = 2, OPS_MAX = 6000 };
#define MS 1000000 /* ns */

struct pipe {
    int chunks, parts;
    int slow_stage, slow_replica; /* -1: none; both: one worker */
    double slower;
    bool sequences,
        wires; /* micro-batches of unequal length; messages that take long now and then */
};

struct made {
    struct knee_logged_op ops[OPS_MAX];
    size_t count;
    int step;
};

static int64_t put(struct made *made, enum knee_logged_kind kind, const int at[5], int64_t start,
                   int64_t end)
{
    assert_true(made->count < OPS_MAX);
    made->ops[made->count++] = (struct knee_logged_op){.start_ns = start,
                                                       .end_ns = end,
                                                       .replica = at[0],
                                                       .stage = at[1],
                                                       .part = at[2],
                                                       .chunk = at[3],
                                                       .sequence = at[4],
                                                       .step = made->step,
                                                       .kind = kind};
    return end;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A pass of one micro-batch through one piece of layers. */
static int64_t pass_ns(const struct pipe *p, int replica, int stage, int batch, bool backward)
{
    double took = backward ? 20.0 * MS : 10.0 * MS;
    bool slow = (p->slow_stage < 0 || p->slow_stage == stage) &&
                (p->slow_replica < 0 || p->slow_replica == replica);
    if (p->sequences)
        took *= 0.5 + (batch * 7 + replica * 3) % BATCHES / 3.0;
    return (int64_t)(took * (slow ? p->slower : 1));
}

/* One rank's streams: until when each is busy. */
struct rank {
    int64_t compute, send[2], receive[2], tail;
};

/* One pipeline (a replica's part) of one step, all forward passes and then all backward ones. */
static void run_pipe(const struct pipe *p, struct made *made, int replica, int part,
                     struct rank *ranks)
{
    static int64_t done[2][2][STAGES][BATCHES];
    static const enum knee_logged_kind passes[] = {KNEE_LOGGED_FORWARD, KNEE_LOGGED_BACKWARD},
                                       sends[] = {KNEE_LOGGED_FORWARD_SEND,
                                                  KNEE_LOGGED_BACKWARD_SEND},
                                       receives[] = {KNEE_LOGGED_FORWARD_RECV,
                                                     KNEE_LOGGED_BACKWARD_RECV};
    int pieces = p->chunks * STAGES;
    for (int unit = 0; unit < 2 * p->chunks * BATCHES * STAGES; unit++) {
        int back = unit / (p->chunks * BATCHES * STAGES);
        int chunk = unit / (BATCHES * STAGES) % p->chunks, batch = unit / STAGES % BATCHES;
        int piece = chunk * STAGES + unit % STAGES, from = piece - 1;
        piece = back ? pieces - 1 - piece : piece;
        from = back ? pieces - 1 - from : from;
        int stage = piece % STAGES, before = from % STAGES;
        struct rank *rank = &ranks[stage], *other = &ranks[before];
        int at[] = {replica, stage, part, piece / STAGES, piece / STAGES * BATCHES + batch};
        int64_t ready = rank->compute;
        if (from >= 0 && from < pieces) {
            int number = from / STAGES * BATCHES + batch;
            int there[] = {replica, before, part, from / STAGES, number};
            int here[] = {replica, stage, part, piece / STAGES, number};
            int64_t sent = later(done[back][from / STAGES][before][batch], other->send[back]);
            int64_t waits = later(rank->compute, rank->receive[back]);
            int64_t took = p->wires && batch % 3 == 2 ? 60 * MS : 2 * MS;
            int64_t end = later(sent, waits) + took;
            other->send[back] = put(made, sends[back], there, sent, end);
            rank->receive[back] = put(made, receives[back], here, waits, end);
            ready = later(ready, end);
        }
        rank->compute =
            put(made, passes[back], at, ready, ready + pass_ns(p, replica, stage, batch, back));
        done[back][piece / STAGES][stage][batch] = rank->compute;
    }
}

/* What ranks do together, from when the last of those that `same` says has come. */
static void meet(const struct pipe *p, struct made *made, struct rank (*ranks)[PARTS][STAGES],
                 enum knee_logged_kind kind, const bool all[3])
{
    int64_t last[REPLICAS][PARTS][STAGES] = {{{0}}};
    for (int i = 0; i < REPLICAS * p->parts * STAGES; i++)
        for (int k = 0; k < REPLICAS * p->parts * STAGES; k++) {
            int r = i / STAGES / p->parts, q = i / STAGES % p->parts, s = i % STAGES;
            int r2 = k / STAGES / p->parts, q2 = k / STAGES % p->parts, s2 = k % STAGES;
            if ((r == r2 || all[0]) && (q == q2 || all[1]) && (s == s2 || all[2]))
                last[r][q][s] = later(last[r][q][s], ranks[r2][q2][s2].tail);
        }
    for (int r = 0; r < REPLICAS; r++)
        for (int q = 0; q < p->parts; q++)
            for (int s = 0; s < STAGES; s++) {
                const int at[] = {r, s, q, 0, (int)kind};
                ranks[r][q][s].tail =
                    put(made, kind, at, ranks[r][q][s].tail, last[r][q][s] + 3 * MS);
            }
}

static void run_step(const struct pipe *p, struct made *made, int64_t start)
{
    struct rank ranks[REPLICAS][PARTS][STAGES] = {{{{0}}}};
    static const bool replicas[] = {true, false, false}, parts[] = {false, true, false},
                      stages[] = {false, false, true}, everybody[] = {true, true, true},
                      alone[] = {false, false, false};
    for (int r = 0; r < REPLICAS; r++)
        for (int q = 0; q < p->parts; q++) {
            for (int s = 0; s < STAGES; s++) {
                const int at[] = {r, s, q, 0, 0}, nobody[] = {r, s, q, 7, 1};
                ranks[r][q][s].compute = put(made, KNEE_LOGGED_PARAMS, at, start, start + 4 * MS);
                put(made, KNEE_LOGGED_PARAMS, nobody, start + 4 * MS, start + 5 * MS);
                put(made, KNEE_LOGGED_COLLECT, at, start, start + MS);
            }
            run_pipe(p, made, r, q, ranks[r][q]);
            for (int s = 0; s < STAGES; s++)
                ranks[r][q][s].tail = ranks[r][q][s].compute;
        }
    meet(p, made, ranks, KNEE_LOGGED_NORMS, parts);
    meet(p, made, ranks, KNEE_LOGGED_EMBEDDING, stages);
    meet(p, made, ranks, KNEE_LOGGED_SEPARATE, replicas);
    meet(p, made, ranks, KNEE_LOGGED_GRADS, replicas);
    meet(p, made, ranks, KNEE_LOGGED_CLIP, everybody);
    meet(p, made, ranks, KNEE_LOGGED_OPTIMIZER, alone);
}

static int by_step_and_start(const void *left, const void *right)
{
    const struct knee_logged_op *a = left, *b = right;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static struct knee_op_log log_of(const struct pipe *p, struct made *made)
{
    static char name[] = "made";
    made->count = 0;
    for (made->step = 0; made->step < STEPS; made->step++)
        run_step(p, made, made->step * (int64_t)10000 * MS);
    qsort(made->ops, made->count, sizeof *made->ops, by_step_and_start);
    return (struct knee_op_log){.file = name,
                                .ops = made->ops,
                                .count = made->count,
                                .replicas = REPLICAS,
                                .stages = STAGES,
                                .parts = p->parts};
}

static struct made made;

static struct knee_slowdown slowdown_of(const struct pipe *p)
{
    struct knee_op_log log = log_of(p, &made);
    struct knee_slowdown s;
    struct knee_err err;
    if (knee_find_slowdown(&log, NULL, &s, &err))
        fail_msg("%s", err.what);
    assert_int_equal(s.steps, STEPS);
    assert_int_equal(s.ranks, REPLICAS * STAGES * p->parts);
    assert_int_equal(s.ops, made.count);
    /* There are no launch delays: replayed as it was, the step is the recorded one. */
    assert_relative(s.plain_step_s, s.measured_step_s, 0.01);
    assert_true(s.low_s < s.even_step_s && s.even_step_s < s.high_s);
    assert_relative(s.slowdown, s.plain_step_s / s.even_step_s, 1e-12);
    for (int i = 0; i < KNEE_SLOW_PARTS; i++) {
        assert_true(isnan(s.by_stage[i]) == (i >= STAGES));
        assert_true(isnan(s.by_replica[i]) == (i >= REPLICAS));
    }
    return s;
}

static const struct pipe plain = {1, 1, -1, -1, 1, false, false};

TEST(what_was_put_in_is_named)
{
    static const struct {
        const char *what;
        struct pipe pipe;
        enum knee_slow_cause cause;
    } cases[] = {
        {"nothing", {1, 2, -1, -1, 1, false, false}, KNEE_SLOW_NONE},
        {"nothing, in pieces", {2, 1, -1, -1, 1, false, false}, KNEE_SLOW_NONE},
        {"a stage", {1, 1, 1, -1, 2, false, false}, KNEE_SLOW_STAGE},
        {"a stage, in pieces", {2, 2, 2, -1, 2, false, false}, KNEE_SLOW_STAGE},
        {"a worker", {1, 1, 0, 1, 2, false, false}, KNEE_SLOW_WORKER},
        {"sequences", {1, 1, -1, -1, 1, true, false}, KNEE_SLOW_SEQUENCE},
        {"the wire", {1, 1, -1, -1, 1, false, true}, KNEE_SLOW_WIRE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_slowdown s = slowdown_of(&cases[i].pipe);
        if (s.cause != cases[i].cause)
            fail_msg("%s: %s; slowdown %.3f, stages %.3f %.3f %.3f, workers %.3f, variation %.2f "
                     "likeness %.2f",
                     cases[i].what, knee_slow_cause_name(s.cause), s.slowdown, s.by_stage[0],
                     s.by_stage[1], s.by_stage[2], s.worst_workers, s.variation, s.likeness);
        if (s.cause == KNEE_SLOW_STAGE)
            assert_int_equal(s.stage, cases[i].pipe.slow_stage);
    }
    assert_string_equal(knee_slow_cause_name(KNEE_SLOW_CAUSES), "?");
}

/* Seconds are seconds: a job twice as slow in all has the same slowdown. */
TEST(units_do_not_matter)
{
    struct pipe pipe = {1, 1, 1, -1, 1.7, true, false};
    struct knee_op_log log = log_of(&pipe, &made);
    struct knee_slowdown once, twice;
    struct knee_err err;
    assert_ok(knee_find_slowdown(&log, NULL, &once, &err));
    for (size_t i = 0; i < made.count; i++) {
        made.ops[i].start_ns *= 2;
        made.ops[i].end_ns *= 2;
    }
    assert_ok(knee_find_slowdown(&log, NULL, &twice, &err));
    assert_relative(twice.even_step_s, 2 * once.even_step_s, 1e-6);
    assert_relative(twice.slowdown, once.slowdown, 1e-6);
    assert_relative(twice.worst_workers, once.worst_workers, 1e-6);
    assert_relative(twice.variation, once.variation, 1e-9);
    assert_int_equal(twice.cause, once.cause);
}

TEST(memory_may_run_out)
{
    struct knee_op_log log = log_of(&plain, &made);
    FOR_EACH_FAILURE(f) {
        struct knee_slowdown s = {.steps = 77};
        struct knee_err err;
        knee_status status = knee_find_slowdown(&log, &f.alloc, &s, &err);
        assert_int_equal(status, failing_met(&f) ? KNEE_SYSTEM : KNEE_OK);
        if (!status)
            continue;
        assert_string_equal(err.what, "out of memory for the operations");
        assert_int_equal(s.steps, 77);
    }
}

/* Two ranks that meet in two things, each in another order: they would wait for ever. */
TEST(what_waits_for_itself_is_said)
{
    static struct knee_logged_op ops[] = {
        {.end_ns = 10, .kind = KNEE_LOGGED_CLIP, .sequence = 1},
        {.end_ns = 20, .kind = KNEE_LOGGED_CLIP, .sequence = 2, .stage = 1},
        {.start_ns = 10, .end_ns = 30, .kind = KNEE_LOGGED_CLIP, .sequence = 2},
        {.start_ns = 20, .end_ns = 30, .kind = KNEE_LOGGED_CLIP, .sequence = 1, .stage = 1},
    };
    static char name[] = "made";
    struct knee_op_log log = {
        .file = name, .ops = ops, .count = 4, .replicas = 1, .stages = 2, .parts = 1};
    struct knee_slowdown s;
    struct knee_err err;
    assert_int_equal(knee_find_slowdown(&log, NULL, &s, &err), KNEE_INPUT);
    assert_string_equal(err.what,
                        "the operations cannot be put in an order: some wait for each other");
    assert_string_equal(err.where, "made");
}
