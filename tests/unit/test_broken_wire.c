/* SPDX-License-Identifier: MIT */
/*
 * What reaches another rank fails, at every call in turn: whoever makes it says no, keeps the
 * reason and makes no further call. One rank alone, with peers that take what they get and send
 * zeros.
 */
#include "unit.h"

#include "bench/bench.h"
#include "lab/lab_group.h"
#include "lab/lab_hunt.h"
#include "reach/exchange.h"
#include "reach/host_buffer.h"
#include "reach/start.h"

#include <unistd.h>

static const char reason[] = "the wire broke";

#if UNIT_SANITIZED && !defined(KNEE_COV_EXIT_H) /* where branches are counted all of them count */
enum { BENCH_CALLS = 20, WIRE_CALLS = 3, SYNC_CALLS = 3 };
#else
enum { BENCH_CALLS = 120, WIRE_CALLS = 8, SYNC_CALLS = 12 };
#endif

struct peers {
    struct knee_runtime runtime;
    int hosts[8];
    long calls, fail_at, after; /* after: calls that were made though one had failed */
};

static bool answers(struct knee_runtime *rt)
{
    struct peers *peers = rt->state;
    peers->after += peers->fail_at && peers->calls >= peers->fail_at;
    if (++peers->calls != peers->fail_at)
        return true;
    snprintf(rt->fault, sizeof rt->fault, "%s", reason);
    return false;
}

static bool do_barrier(struct knee_runtime *rt)
{
    return answers(rt);
}

static bool do_all_reduce(struct knee_runtime *rt, void *buffer, size_t count,
                          enum knee_runtime_type type, enum knee_runtime_op op)
{
    (void)buffer, (void)count, (void)type, (void)op;
    return answers(rt);
}

static bool do_all_reduce_start(struct knee_runtime *rt, void *buffer, size_t count,
                                enum knee_runtime_type type, enum knee_runtime_op op,
                                struct knee_request **out)
{
    *out = NULL;
    return do_all_reduce(rt, buffer, count, type, op);
}

static bool do_send_start(struct knee_runtime *rt, const void *data, size_t bytes, int to, int tag,
                          struct knee_request **out)
{
    (void)data, (void)bytes, (void)tag;
    assert_in_range(to, 0, rt->size - 1);
    *out = NULL;
    return answers(rt);
}

static bool do_receive_start(struct knee_runtime *rt, void *data, size_t bytes, int from, int tag,
                             struct knee_request **out)
{
    (void)tag;
    assert_in_range(from, 0, rt->size - 1);
    if (bytes)
        memset(data, 0, bytes);
    *out = NULL;
    return answers(rt);
}

static bool do_test(struct knee_runtime *rt, struct knee_request **request, bool *done)
{
    (void)request;
    *done = true;
    return answers(rt);
}

static bool do_wait(struct knee_runtime *rt, struct knee_request **request)
{
    (void)request;
    return answers(rt);
}

static bool do_collective(struct knee_runtime *rt, enum knee_op op, const void *in, void *out,
                          size_t count)
{
    (void)op, (void)in, (void)out, (void)count;
    return answers(rt);
}

static bool do_gather_bytes(struct knee_runtime *rt, const void *mine, size_t size, void **all,
                            size_t *sizes)
{
    char *data = rt->rank == 0 ? calloc((size_t)rt->size, size + 1) : NULL;
    if (!answers(rt)) {
        free(data);
        return false;
    }
    for (int r = 0; data && r < rt->size; r++) {
        memcpy(data + (size_t)r * size, mine, size);
        sizes[r] = size;
    }
    if (all)
        *all = data;
    return true;
}

static bool do_buffer_new(struct knee_runtime *rt, size_t bytes, void **out)
{
    *out = NULL;
    return answers(rt) && knee_host_buffer_new(rt, bytes, out);
}

static bool do_buffer_put(struct knee_runtime *rt, void *buffer, const void *from, size_t bytes)
{
    return answers(rt) && knee_host_buffer_put(rt, buffer, from, bytes);
}

static bool do_buffer_get(struct knee_runtime *rt, const void *buffer, void *to, size_t bytes)
{
    return answers(rt) && knee_host_buffer_get(rt, buffer, to, bytes);
}

static struct knee_runtime *begin(struct peers *peers, int rank, int size, long fail_at)
{
    *peers = (struct peers){.fail_at = fail_at};
    peers->runtime = (struct knee_runtime){.name = "peers",
                                           .rank = rank,
                                           .size = size,
                                           .host_count = 1,
                                           .host_name = "here",
                                           .host_of = peers->hosts,
                                           .state = peers,
                                           .device_name = "CPU",
                                           .barrier = do_barrier,
                                           .all_reduce = do_all_reduce,
                                           .all_reduce_start = do_all_reduce_start,
                                           .send_start = do_send_start,
                                           .receive_start = do_receive_start,
                                           .test = do_test,
                                           .wait = do_wait,
                                           .collective = do_collective,
                                           .gather_bytes = do_gather_bytes,
                                           .buffer_new = do_buffer_new,
                                           .buffer_release = knee_host_buffer_release,
                                           .buffer_put = do_buffer_put,
                                           .buffer_get = do_buffer_get};
    return &peers->runtime;
}

/* Something that a rank does; true: it says that all was well. */
typedef bool deed(struct knee_runtime *rt, const void *what);

/* Every call of it fails in turn; of more than `most` some, spread evenly. */
static void break_all(deed *does, const void *what, int rank, int size, long most)
{
    struct peers peers;
    struct knee_runtime *rt = begin(&peers, rank, size, 0);
    assert_true(does(rt, what));
    long calls = peers.calls, steps = calls < most ? calls : most;
    for (long i = 0; i < steps; i++) {
        long at = 1 + i * calls / steps;
        rt = begin(&peers, rank, size, at);
        if (does(rt, what))
            fail_msg("rank %d of %d: call %ld of %ld failed, and all is well", rank, size, at,
                     calls);
        assert_string_equal(rt->fault, reason);
        if (peers.after)
            fail_msg("rank %d of %d: %ld calls after number %ld failed", rank, size, peers.after,
                     at);
    }
}

/* ---- Exchanges and the common start ---- */

static bool do_exchange(struct knee_runtime *rt, const void *what)
{
    const struct knee_exchange *exchange = what;
    float data[40] = {0}, scratch[40] = {0};
    return exchange->run(rt, data, scratch, 37);
}

TEST(exchanges_end)
{
    for (size_t i = 0; i < knee_exchange_count; i++)
        for (int size = 1; size <= 8; size++)
            for (int rank = 0; rank < size; rank++)
                break_all(do_exchange, &knee_exchanges[i], rank, size, 100);
}

static bool do_start(struct knee_runtime *rt, const void *what)
{
    struct knee_start start = {0};
    double at_s = 0;
    (void)what;
    return knee_start_measure(rt, &start) && knee_start_together(rt, &start, &at_s);
}

TEST(starts_end)
{
    for (int size = 1; size <= 5; size++)
        for (int rank = 0; rank < size; rank++)
            break_all(do_start, NULL, rank, size, 100);
    break_all(do_start, NULL, 7, 200, 100); /* more than are measured: a barrier */
}

/* ---- The bench ---- */

static bool do_bench(struct knee_runtime *rt, const void *what)
{
    struct knee_bench_options options;
    struct knee_bench bench;
    struct knee_err err = {0};
    knee_bench_options_init(&options);
    options.algorithm = *(const int *)what;
    options.collective = options.algorithm ? 0 : 1;
    options.min_bytes = options.max_bytes = 16;
    options.iterations = 1;
    options.warmup = 1;
    assert_ok(knee_bench_options_complete(&options, &err));
    knee_status status = knee_bench_run(rt, &options, NULL, NULL, &bench, &err);
    if (status)
        assert_string_equal(err.what, reason);
    knee_bench_release(&bench);
    return !status;
}

TEST(benches_end)
{
    for (int algorithm = 0; algorithm < 2; algorithm++)
        for (int rank = 0; rank < 3; rank++)
            break_all(do_bench, &algorithm, rank, 3, BENCH_CALLS);
}

/* ---- The lab ---- */

struct training {
    int wire;
    enum lab_sync sync;
    bool synthetic, overlap;
};

static struct lab_setup set_up(const struct training *t)
{
    return (struct lab_setup){.shape = {.width = 8, .layers = 1, .heads = 2, .context = 8},
                              .batch = 4,
                              .accumulate = 1,
                              .steps = 4,
                              .optimizer = 0,
                              .wire = t->wire,
                              .rate = NAN,
                              .sync = t->sync,
                              .local_steps = 2,
                              .overlap = t->overlap,
                              .bucket_bytes = 2000,
                              .loader_threads = 1,
                              .synthetic = t->synthetic,
                              .compute_s = 1e-5,
                              .params = 500,
                              .late_rank = -1,
                              .seed = 1,
                              .text_fd = -1};
}

static bool do_training(struct knee_runtime *rt, const void *what)
{
    struct lab_setup setup = set_up(what);
    struct lab_outcome outcome = {0};
    struct knee_err err = {0};
    assert_ok(lab_open_text(NULL, &setup.text_fd, &setup.text_bytes, &err));
    knee_status status = lab_run(rt, &setup, 2, &outcome, &err);
    lab_outcome_release(&outcome);
    if (setup.text_fd >= 0)
        close(setup.text_fd);
    return !status;
}

TEST(trainings_end)
{
    for (int wire = 0; lab_wire_names.count() > (size_t)wire; wire++)
        for (int rank = 0; rank < 2; rank++) {
            struct training t = {wire, LAB_EVERY_STEP, wire == 0 && rank, rank == 0};
            break_all(do_training, &t, rank, 2, WIRE_CALLS);
        }
    for (size_t sync = 1; sync < lab_sync_names.count(); sync++) {
        struct training t = {0, (enum lab_sync)sync, false, true};
        break_all(do_training, &t, (int)sync % 2, 2, SYNC_CALLS);
    }
}

/* Why the link cannot be measured is said as it is: no memory on a rank, or a wire that broke. */
TEST(link_says_why)
{
    struct peers peers;
    struct training plain = {0, LAB_EVERY_STEP, true, true};
    struct lab_setup setup = set_up(&plain);
    struct lab_link link;
    struct knee_err err = {0};
    assert_int_equal(lab_sweep_link(begin(&peers, 0, 2, 9), &setup, &link, &err), KNEE_SYSTEM);
    assert_non_null(strstr(err.what, reason));
#if !UNIT_SANITIZED /* which end a program that asks for so much */
    struct lab_group group = {.runtime = begin(&peers, 0, 2, 0), .rank = 0, .size = 2};
    assert_false(lab_measure_link(&group, SIZE_MAX / 2 + 1, &link));
    assert_true(group.failed);
    assert_string_equal(peers.runtime.fault, "out of memory");
#endif
}
