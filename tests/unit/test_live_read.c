/* SPDX-License-Identifier: MIT */
/* What is read while a job runs: answers of NCCL's RAS service, lines of the live agent, and which
 * calls of several ranks are one collective. */
#include "read/live/live_read.h"
#include "read/live/ras_read.h"
#include "unit.h"

/* A server may list ranks in any order; answers are compared in one. */
TEST(ranks_of_ras_are_sorted)
{
    const char *text = "{\"communicators_count\": 2, \"communicators\": ["
                       "{\"hash\": \"0xb\", \"ranks\": [{\"rank\": 9}, {\"rank\": 1}]}, "
                       "{\"hash\": \"0xa\", \"ranks\": [{\"rank\": 3}]}]}";
    OWNED(knee_ras) ras;
    struct knee_err err;
    assert_ok(knee_ras_read(text, strlen(text), NULL, &ras, &err));
    assert_int_equal(ras.count, 3);
    assert_string_equal(ras.ranks[0].comm, "0xa");
    assert_true(ras.ranks[0].rank == 3 && ras.ranks[1].rank == 1 && ras.ranks[2].rank == 9);
}

TEST(answers_of_ras)
{
    static const struct {
        const char *members; /* of a rank */
        int64_t pid, calls;
        bool failed, dead, unresponsive;
    } cases[] = {
        {"\"pid\": 7, \"collective_counts\": {\"AllReduce\": 5, \"Broadcast\": 2}", 7, 7, false,
         false, false},
        {"\"pid\": -1, \"collective_counts\": {\"AllReduce\": -5, \"Broadcast\": \"x\"}", -1, 0,
         false, false, false},
        {"\"pid\": 1e20", -1, 0, false, false, false},
        {"\"status\": {\"async_error\": \"ncclSystemError\"}", -1, 0, true, false, false},
        {"\"status\": {\"async_error\": \"ncclSuccess\", \"abort_flag\": 0}", -1, 0, false, false,
         false},
        {"\"status\": {\"async_error\": \"No error\", \"abort_flag\": -1}", -1, 0, true, false,
         false},
        {"\"status\": {\"async_error\": \"no error\", \"considered_dead\": true}", -1, 0, false,
         true, false},
        {"\"status\": {\"async_error\": \"\", \"unresponsive\": \"1\"}", -1, 0, false, false, true},
        {"\"status\": {\"async_error\": \"0\", \"unresponsive\": false}", -1, 0, false, false,
         false},
        {"\"status\": {\"async_error\": null}, \"else\": 1", -1, 0, false, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        OWNED(knee_ras) ras;
        struct knee_err err;
        snprintf(text, sizeof text,
                 "OK\n{\"nccl_version\": \"2.28\", \"communicators_count\": 1, \"communicators\": "
                 "[{\"ranks\": [{\"host\": \"nobody's\"}], \"hash\": 12, \"missing_ranks\": "
                 "[{\"host\": \"x\"}, {\"rank\": 3, \"host\": \"b\"}], \"ranks\": [{\"rank\": 1, "
                 "\"host\": \"a\", %s}]}]}",
                 cases[i].members);
        if (knee_ras_read(text, strlen(text), NULL, &ras, &err))
            fail_msg("%s: %s", cases[i].members, err.what);
        assert_int_equal(ras.count, 2);
        assert_true(ras.ranks[1].missing && ras.ranks[1].rank == 3);
        const struct knee_ras_rank *r = &ras.ranks[0];
        assert_string_equal(r->host, "a");
        assert_string_equal(r->comm, "12");
        if (r->pid != cases[i].pid || r->calls != cases[i].calls || r->failed != cases[i].failed ||
            r->dead != cases[i].dead || r->unresponsive != cases[i].unresponsive)
            fail_msg("%s: pid %d, %d calls, %d %d %d", cases[i].members, (int)r->pid, (int)r->calls,
                     r->failed, r->dead, r->unresponsive);
    }
}

TEST(what_is_no_answer_is_refused)
{
    static const char *const cases[][2] = {
        {"", "this is not an answer of NCCL's RAS service: this is not a JSON value"},
        {"hello", "this is not an answer of NCCL's RAS service: this is not a JSON value"},
        {"{\"a\": 1}", "this is not an answer of NCCL's RAS service"},
        {"{\"communicators_count\": 0, ",
         "this is not an answer of NCCL's RAS service: a key must be a string"},
    };
    struct knee_ras ras;
    struct knee_err err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(knee_ras_read(cases[i][0], strlen(cases[i][0]), NULL, &ras, &err),
                         KNEE_INPUT);
        assert_string_equal(err.what, cases[i][1]);
    }
    char text[8192] = "{\"communicators\": [{\"ranks\": [";
    for (size_t i = 0, used = strlen(text); i < 200; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s{\"rank\": %zu}%s",
                                 i ? ", " : "", i, i == 199 ? "]}]}" : "");
    FOR_EACH_FAILURE(memory) {
        knee_status status = knee_ras_read(text, strlen(text), &memory.alloc, &ras, &err);
        bool enough = !failing_met(&memory);
        assert_int_equal(status, enough ? KNEE_OK : KNEE_SYSTEM);
        if (enough) {
            assert_int_equal(ras.count, 200);
            knee_ras_release(&ras);
        }
    }
}

/* Lines that are whole are taken, all others counted. */
TEST(lines_of_the_agent)
{
    static const struct {
        const char *line;
        bool taken;
    } cases[] = {
        {"{\"step\": 5, \"step_s\": 0.25, \"comm\": \"ff\", \"throttle\": 8, \"trace\": \"a\"}",
         true},
        {" { \"step\" : -5 , \"more\" : [1, 2] , \"text\" : \"a\\\"b\" , \"yes\" : true } ", true},
        {"{\"step\": true}", true},
        {"{\"step\": false}", true},
        {"{\"step\": x}", false},
        {"{\"step\": -}", false},
        {"{\"step\": }", false},
        {"{\"step\": \"5\"}", false},
        {"{\"step\": 99999999999999999999999}", false},
        {"{\"step\": 9223372036854775808}", false},
        {"{\"step_s\": x}", false},
        {"{\"comm\": 5}", false},
        {"{\"comm\": \"xyz\"}", false},
        {"{\"comm\": \"\"}", false},
        {"{\"throttle\": -1}", false},
        {"{\"throttle\": 1f}", false},
        {"{\"a\": [1", false},
        {"{\"a\": \"b", false},
        {"{\"a\": \"b\\", false},
        {"{\"a\"}", false},
        {"{\"a\": 1", false},
        {"{}", false},
        {"[]", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_live_rank rank;
        struct knee_err err;
        char text[256];
        snprintf(text, sizeof text, "%s\nno end", cases[i].line);
        knee_live_init(&rank, NULL);
        assert_ok(knee_live_read_steps(&rank, text, strlen(text), &err));
        if (rank.step_count != cases[i].taken || rank.damaged != 1u + !cases[i].taken)
            fail_msg("%s: %zu taken, %d damaged", cases[i].line, rank.step_count,
                     (int)rank.damaged);
        knee_live_release(&rank);
    }
}

/* Three ranks, whose calls are told line by line. */
TEST(calls_that_are_one)
{
#define CALL(rank, seq, n, dur, more)                                                              \
    "{\"comm\": \"a\", \"op\": \"AllReduce\", \"rank\": " rank ", \"seq\": " seq ", \"n\": " n     \
    ", \"dur_ns\": " dur more "}\n"
    static const struct {
        const char *what, *lines[2];
        size_t met, partial;
    } cases[] = {
        {"both", {CALL("0", "1", "2", "500", ""), CALL("1", "1", "2", "300", "")}, 1, 0},
        {"one is missing", {CALL("0", "1", "2", "500", ""), ""}, 0, 1},
        {"another place", {CALL("0", "1", "2", "500", ""), CALL("1", "2", "2", "300", "")}, 0, 2},
        {"no time", {CALL("0", "1", "2", "-1", ""), CALL("1", "1", "2", "300", "")}, 0, 1},
        {"no place", {CALL("0", "-1", "2", "5", ""), CALL("1", "-1", "2", "300", "")}, 0, 0},
        {"alone", {CALL("0", "1", "1", "500", ""), ""}, 0, 0},
        {"a send", {CALL("0", "1", "2", "500", ", \"peer\": 1"), ""}, 0, 0},
        {"a process that began anew",
         {CALL("0", "1", "2", "500", "") CALL("0", "1", "2", "500", ""), ""},
         0,
         1},
        {"waits that no number holds",
         {CALL("0", "1", "2", "9223372036854775807", "")
              CALL("0", "2", "2", "9223372036854775807", ""),
          CALL("1", "1", "2", "0", "") CALL("1", "2", "2", "0", "")},
         2,
         0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_live_rank ranks[2];
        struct knee_live_joined joined;
        struct knee_err err;
        for (size_t r = 0; r < 2; r++) {
            knee_live_init(&ranks[r], NULL);
            assert_ok(knee_live_read_calls(&ranks[r], cases[i].lines[r], strlen(cases[i].lines[r]),
                                           &err));
            assert_int_equal(ranks[r].damaged, 0);
        }
        assert_ok(knee_live_join(ranks, 2, NULL, &joined, &err));
        if (joined.count != cases[i].met || joined.partial != cases[i].partial)
            fail_msg("%s: %zu met, %zu in part", cases[i].what, joined.count, joined.partial);
        assert_true(joined.wait_ns[0] >= 0 && joined.wait_ns[1] == 0);
        knee_live_joined_release(&joined);
        knee_live_release(&ranks[0]);
        knee_live_release(&ranks[1]);
    }
}
