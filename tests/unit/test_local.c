/* SPDX-License-Identifier: MIT */
/*
 * Ranks that are forked, and the one that is alone: what they promise of messages, reductions and
 * ends. Every case runs in a process of its own, whose ranks are its children; its status is the
 * outcome.
 */
#include "unit.h"

#include "reach/runtime.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GOOD = 0, WRONG = 9 };

typedef bool deed(struct knee_runtime *rt);

static int status_of(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The ranks' own outcome is shared by the last reduction: one that is wrong is all's. */
static int run(int ranks, deed *does)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct knee_runtime *rt = NULL;
        struct knee_err err = {0};
        if (!freopen("/dev/null", "w", stderr) || knee_runtime_fork(ranks, &rt, &err))
            _exit(WRONG);
        int64_t wrong = !does(rt), rank = rt->rank;
        if (!rt->all_reduce(rt, &wrong, 1, KNEE_RUNTIME_I64, KNEE_RUNTIME_MAX))
            _exit(WRONG);
        rt->finish(rt);
        _exit(rank == 0 && wrong ? WRONG : GOOD);
    }
    return status_of(child);
}

/* ---- Reductions ---- */

#define REDUCES(type, name)                                                                        \
    static bool reduces_##name(struct knee_runtime *rt, enum knee_runtime_type kind)               \
    {                                                                                              \
        type mine = (type)(rt->rank + 1), sum[2] = {mine, 1}, most[2] = {mine, 2},                 \
             least[2] = {mine, 3};                                                                 \
        int n = rt->size;                                                                          \
        bool good = rt->all_reduce(rt, sum, 2, kind, KNEE_RUNTIME_SUM) &&                          \
                    rt->all_reduce(rt, most, 2, kind, KNEE_RUNTIME_MAX) &&                         \
                    rt->all_reduce(rt, least, 2, kind, KNEE_RUNTIME_MIN);                          \
        return good && sum[0] == (type)(n * (n + 1) / 2) && sum[1] == (type)n &&                   \
               most[0] == (type)n && most[1] == 2 && least[0] == 1 && least[1] == 3;               \
    }
REDUCES(float, f32)
REDUCES(double, f64)
REDUCES(int64_t, i64)
REDUCES(unsigned char, u8)

static bool reduces(struct knee_runtime *rt)
{
    struct knee_request *request = NULL;
    float one = 1;
    return reduces_f32(rt, KNEE_RUNTIME_F32) && reduces_f64(rt, KNEE_RUNTIME_F64) &&
           reduces_i64(rt, KNEE_RUNTIME_I64) && reduces_u8(rt, KNEE_RUNTIME_U8) &&
           rt->all_reduce_start(rt, &one, 1, KNEE_RUNTIME_F32, KNEE_RUNTIME_SUM, &request) &&
           rt->wait(rt, &request) && one == (float)rt->size;
}

TEST(reductions)
{
    for (int ranks = 1; ranks <= 4; ranks++)
        assert_int_equal(run(ranks, reduces), GOOD);
}

/* ---- Messages ---- */

enum { LARGE = 1 << 20 }; /* more than is under way at once */

static bool sends(struct knee_runtime *rt, const void *data, size_t bytes, int to, int tag)
{
    struct knee_request *request = NULL;
    return rt->send_start(rt, data, bytes, to, tag, &request) && rt->wait(rt, &request);
}

/* A request that cannot be done stays: the run is over then. */
static struct knee_request *pending[16];
static size_t pending_count;

static bool receives(struct knee_runtime *rt, void *data, size_t bytes, int from, int tag)
{
    struct knee_request **request = &pending[pending_count++ % 16];
    *request = NULL;
    return rt->receive_start(rt, data, bytes, from, tag, request) && rt->wait(rt, request);
}

/* Asked for in another order than they were sent, and one while its bytes are coming. */
static bool out_of_order(struct knee_runtime *rt)
{
    static unsigned char large[LARGE];
    int one = 1, two = 2, got_one = 0, got_two = 0, last = 0;
    if (rt->rank == 0) {
        memset(large, 7, sizeof large);
        return sends(rt, &one, sizeof one, 1, 5) && sends(rt, &two, sizeof two, 1, 6) &&
               sends(rt, large, sizeof large, 1, 7) && sends(rt, &one, sizeof one, 1, 8);
    }
    if (rt->rank > 1)
        return true;
    bool good = receives(rt, &got_two, sizeof got_two, 0, 6) &&
                receives(rt, &got_one, sizeof got_one, 0, 5) &&
                receives(rt, large, sizeof large, 0, 7) && receives(rt, &last, sizeof last, 0, 8);
    for (size_t i = 0; i < LARGE && good; i++)
        good = large[i] == 7;
    return good && got_one == 1 && got_two == 2 && last == 1;
}

/* A message to oneself, an empty one, and what cannot be. */
static bool to_oneself(struct knee_runtime *rt)
{
    struct knee_request *request = NULL;
    int sent = 40 + rt->rank, got = 0;
    bool done = false;
    if (rt->send_start(rt, &sent, sizeof sent, rt->size, 1, &request) ||
        rt->receive_start(rt, &sent, sizeof sent, -1, 1, &request) ||
        strstr(rt->fault, "rank") == NULL)
        return false;
    if (!rt->send_start(rt, &sent, sizeof sent, rt->rank, 1, &request) ||
        !receives(rt, &got, sizeof got, rt->rank, 1) || !rt->wait(rt, &request) || got != sent)
        return false;
    if (!sends(rt, &sent, 0, rt->rank, 2) || !receives(rt, &got, 0, rt->rank, 2))
        return false;
    return rt->test(rt, &request, &done) && done; /* nothing is done */
}

/* One that asks for another size is told so. */
static bool other_sizes(struct knee_runtime *rt)
{
    int sent = 1, got[2];
    return sends(rt, &sent, sizeof sent, rt->rank, 3) &&
           !receives(rt, got, sizeof got, rt->rank, 3) && strstr(rt->fault, "another size");
}

static bool gathers(struct knee_runtime *rt)
{
    char mine[8];
    size_t sizes[8] = {0}, length = (size_t)rt->rank; /* nothing of rank 0 */
    void *all = NULL;
    memset(mine, 'a' + rt->rank, sizeof mine);
    if (!rt->gather_bytes(rt, mine, length, &all, rt->rank == 0 ? sizes : NULL))
        return false;
    bool good = rt->rank != 0 ? all == NULL
                              : memcmp(all, "bccddd", (size_t)(rt->size * (rt->size - 1) / 2)) == 0;
    free(all);
    return good && (rt->rank != 0 || sizes[rt->size - 1] == (size_t)(rt->size - 1));
}

static bool no_such_collective(struct knee_runtime *rt)
{
    float in = 1, out = 0;
    return !rt->collective(rt, KNEE_OPS, &in, &out, 1) && strstr(rt->fault, "no such collective");
}

TEST(messages)
{
    for (int ranks = 2; ranks <= 4; ranks++) {
        assert_int_equal(run(ranks, out_of_order), GOOD);
        assert_int_equal(run(ranks, to_oneself), GOOD);
        assert_int_equal(run(ranks, gathers), GOOD);
        assert_int_equal(run(ranks, no_such_collective), GOOD);
    }
    assert_int_equal(run(1, to_oneself), GOOD);
}

/* ---- Ends ---- */

static bool dies(struct knee_runtime *rt)
{
    if (rt->rank == 1)
        raise(SIGKILL);
    return rt->barrier(rt);
}

static bool ends_early(struct knee_runtime *rt)
{
    if (rt->rank == 1)
        _exit(3);
    return rt->barrier(rt);
}

static bool first_dies(struct knee_runtime *rt)
{
    if (rt->rank == 0)
        raise(SIGKILL);
    return rt->barrier(rt);
}

static bool gives_up(struct knee_runtime *rt)
{
    if (rt->rank == rt->size - 1)
        rt->abort(rt, "enough");
    return rt->barrier(rt);
}

TEST(ends)
{
    struct knee_runtime *rt = NULL;
    struct knee_err err = {0};
    assert_int_equal(run(3, dies), KNEE_SYSTEM);
    assert_int_equal(run(3, ends_early), KNEE_SYSTEM);
    assert_int_equal(run(3, gives_up), KNEE_SYSTEM);
    assert_int_equal(run(1, gives_up), KNEE_SYSTEM);
    assert_int_equal(run(2, first_dies), 128 + SIGKILL);
    assert_int_equal(knee_runtime_fork(0, &rt, &err), KNEE_USAGE);
    assert_int_equal(knee_runtime_fork(65, &rt, &err), KNEE_USAGE);
    assert_null(rt);
}

/* ---- One alone ---- */

TEST(alone)
{
    struct knee_runtime *rt = NULL;
    struct knee_err err = {0};
    assert_ok(knee_runtime_open("self", &rt, &err));
    assert_true(reduces(rt));
    assert_true(to_oneself(rt));
    assert_true(other_sizes(rt));
    int got = 0;
    assert_false(receives(rt, &got, sizeof got, 0, 99));
    assert_non_null(strstr(rt->fault, "was never sent"));
    float in[2] = {1, 2}, out[2] = {0};
    assert_true(rt->collective(rt, KNEE_OP_ALL_REDUCE, in, out, 2) && out[1] == 2);
    assert_true(rt->collective(rt, KNEE_OP_BARRIER, NULL, NULL, 0));
    assert_true(sends(rt, &got, sizeof got, 0, 7)); /* never received: freed at the end */
    rt->finish(rt);
    assert_int_equal(knee_runtime_open("nothing", &rt, &err), KNEE_USAGE);
}
