/* SPDX-License-Identifier: MIT */
/* Logs of a pipeline's operations: what they say, whatever their order; damage; too little memory.
 */
#include "knee_replay.h"
#include "unit.h"

#define OP(cat, pid, tid, ts, dur, step)                                                           \
    "{\"ph\": \"X\", \"cat\": \"" cat "\", \"name\": \"op\", \"pid\": " pid ", \"tid\": " tid      \
    ", \"ts\": " ts ", \"dur\": " dur ", \"args\": {\"step\": " step                               \
    ", \"model_chunk\": 1, \"seq_id\": 5}}"
#define THREAD(pid, tid, name)                                                                     \
    "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": " pid ", \"tid\": " tid                   \
    ", \"args\": {\"name\": \"" name "\"}}"
#define STAGES THREAD("0", "1", "PP rank 0 TP rank 1") ", " THREAD("0", "2", "PP rank 1")

static knee_status read_log(const char *events, const struct knee_alloc *alloc,
                            struct knee_op_log *out, struct knee_err *err)
{
    char json[8192];
    int length = snprintf(json, sizeof json, "{\"traceEvents\": [%s]}", events);
    assert_true(length < (int)sizeof json);
    char *exact = malloc((size_t)length); /* a byte too many is seen by ASan */
    memcpy(exact, json, (size_t)length);
    knee_status status = knee_op_log_read(exact, (size_t)length, "ops.json", alloc, out, err);
    free(exact);
    return status;
}

static struct knee_op_log log_of(const char *events)
{
    struct knee_op_log log;
    struct knee_err err;
    if (read_log(events, NULL, &log, &err))
        fail_msg("%s", err.what);
    return log;
}

/* By step, start, end and kind, whatever the file's order was, threads named first or last. */
TEST(operations_come_in_order)
{
    static const char *const events[] = {
        OP("optimizer", "0", "1", "50", "5", "1"),
        OP("forward-compute", "0", "1", "10", "5", "0"),
        OP("forward-send", "0", "1", "15", "9", "0"),
        OP("forward-recv", "0", "2", "15", "3", "0"),
        OP("forward-compute", "0", "2", "15", "9", "0"),
        STAGES,
    };
    enum { COUNT = sizeof events / sizeof *events };
    static const enum knee_logged_kind expected[] = {KNEE_LOGGED_FORWARD, KNEE_LOGGED_FORWARD_RECV,
                                                     KNEE_LOGGED_FORWARD, KNEE_LOGGED_FORWARD_SEND,
                                                     KNEE_LOGGED_OPTIMIZER};
    for (size_t first = 0; first < COUNT; first++) {
        char text[4096] = "";
        for (size_t i = 0, used = 0; i < COUNT; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : "",
                                     events[(first + i) % COUNT]);
        OWNED(knee_op_log) log = log_of(text);
        assert_int_equal(log.count, 5);
        assert_int_equal(log.skipped, 0);
        assert_int_equal(log.replicas, 1);
        assert_int_equal(log.stages, 2);
        assert_int_equal(log.parts, 2);
        for (size_t i = 0; i < log.count; i++)
            assert_int_equal(log.ops[i].kind, expected[i]);
        assert_int_equal(log.ops[0].start_ns, 10000);
        assert_int_equal(log.ops[0].end_ns, 15000);
        assert_int_equal(log.ops[0].stage, 0);
        assert_int_equal(log.ops[0].part, 1);
        assert_int_equal(log.ops[1].stage, 1);
        assert_int_equal(log.ops[0].chunk, 1);
        assert_int_equal(log.ops[0].sequence, 5);
    }
}

#define GOOD OP("forward-compute", "0", "1", "10", "5", "0") ", " STAGES

TEST(what_is_no_operation_is_counted)
{
    static const struct {
        const char *what, *events;
        size_t kept, skipped;
    } cases[] = {
        {"another category", GOOD ", " OP("cpu_op", "0", "1", "20", "5", "0"), 1, 1},
        {"a negative duration", GOOD ", " OP("gc", "0", "1", "20", "-5", "0"), 1, 1},
        {"a duration of days", GOOD ", " OP("gc", "0", "1", "20", "2e12", "0"), 1, 1},
        {"a time that no clock shows", GOOD ", " OP("gc", "0", "1", "2e15", "5", "0"), 1, 1},
        {"a thread without a name", GOOD ", " OP("gc", "0", "9", "20", "5", "0"), 1, 1},
        {"a process that no number is", GOOD ", " OP("gc", "1e9", "1", "20", "5", "0"), 1, 1},
        {"a thread that is not of the pipeline",
         GOOD ", " THREAD("0", "9", "loader") ", " OP("gc", "0", "9", "20", "5", "0"), 1, 1},
        {"a stage that is no number",
         GOOD ", " THREAD("0", "9", "PP rank x") ", " OP("gc", "0", "9", "20", "5", "0"), 1, 1},
        {"an event without an end", GOOD ", {\"ph\": \"X\", \"cat\": \"gc\", \"ts\": 5}", 1, 0},
        {"an event without a start", GOOD ", {\"ph\": \"X\", \"cat\": \"gc\", \"dur\": 5}", 1, 0},
        {"the beginning of one", GOOD ", {\"ph\": \"B\", \"cat\": \"gc\", \"ts\": 5, \"dur\": 5}",
         1, 0},
        {"a number in quotes", GOOD ", {\"ph\": \"X\", \"cat\": \"gc\", \"ts\": \"5\"}", 1, 0},
        {"a step that no number is", GOOD ", " OP("gc", "0", "1", "20", "5", "-1e300"), 2, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED(knee_op_log) log = log_of(cases[i].events);
        if (log.count != cases[i].kept || log.skipped != cases[i].skipped)
            fail_msg("%s: %zu kept, %zu skipped", cases[i].what, log.count, (size_t)log.skipped);
    }
}

/* 2^20 replicas x 2^22 stages x 2^22 parts are 2^64, which is 0 in 64 bits. */
TEST(what_is_no_pipeline_is_refused)
{
    static const char *const cases[] = {
        "",
        STAGES,
        OP("forward-compute", "0", "1", "10", "5", "0"),
        OP("gc", "1048575", "1", "1", "1", "0") ", " THREAD("1048575", "1",
                                                            "PP rank 4194303 TP rank 4194303"),
        OP("gc", "1023", "1", "1", "1", "0") ", " THREAD("1023", "1", "PP rank 1023 TP rank 1"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_op_log log;
        struct knee_err err;
        if (read_log(cases[i], NULL, &log, &err) != KNEE_INPUT)
            fail_msg("taken: %s", cases[i]);
        assert_string_equal(err.what, "no operations of a pipeline in it");
        assert_non_null(strstr(err.hint, "forward-compute"));
    }
}

TEST(kinds_have_names)
{
    for (int kind = 0; kind < KNEE_LOGGED_KINDS; kind++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "{\"ph\": \"X\", \"cat\": \"%s\", \"pid\": 0, \"tid\": 1, \"ts\": 1, \"dur\": 1}, "
                 "%s",
                 knee_logged_name((enum knee_logged_kind)kind), STAGES);
        OWNED(knee_op_log) log = log_of(text);
        assert_int_equal(log.ops[0].kind, kind);
    }
    assert_string_equal(knee_logged_name(KNEE_LOGGED_KINDS), "?");
}
