/* SPDX-License-Identifier: MIT */
/*
 * Stands in for knee-mpi.so (KNEE_RUNTIME=mpi, KNEE_PLUGIN_DIR=BUILD/tests/wire): the processes are
 * forked, and a call that reaches another rank can fail.
 *   KNEE_WIRE_RANKS=N     how many (2); KNEE_WIRE_HOSTS=N on so many hosts, in turn (1)
 *   KNEE_WIRE_RANK=N      the rank that is looked at (0)
 *   KNEE_WIRE_PLACES=FILE gets a line for each place of that rank that calls: kind, number, place
 *   KNEE_WIRE_PLACE=P     the first call from there fails
 *   KNEE_WIRE_CUT=N       what rank 0 gathers lacks the last byte of rank 1, the N-th time
 *   KNEE_WIRE_ONE=1       calls may come from one thread only
 */
#include <stdlib.h>
#include <unistd.h>

/* What ends a rank here ends it as main() would: a coverage build has counts in every object. */
static _Noreturn void end_rank(int status)
{
#ifdef KNEE_COV_EXIT_H
    cov_lock();
#endif
    exit(status);
}
#undef _exit
#define _exit(status) end_rank(status)

#include "reach/local.c" /* NOLINT(bugprone-suspicious-include): its rest(), too */

#include "place.h"

enum { MOST = 64 };

static struct knee_runtime real;
static int hosts_of[MOST];
static char host_name[32];
static const char *places;
static uint64_t fail_place;
static long looked_at, cut;
static _Atomic long calls;

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : otherwise;
}

static bool breaks(struct knee_runtime *rt, const char *kind)
{
    static atomic_bool done;
    bool direct;
    if (rt->rank != looked_at || (!places && !fail_place))
        return false;
    uint64_t place = place_here(&direct);
    long call = ++calls;
    if (places && place_is_new(place))
        place_note(places, kind, call, place, direct);
    if (place != fail_place || atomic_exchange(&done, true))
        return false;
    snprintf(rt->fault, sizeof rt->fault, "the wire broke (%s)", kind);
    return true;
}

static bool wire_barrier(struct knee_runtime *rt)
{
    return !breaks(rt, "barrier") && real.barrier(rt);
}

static bool wire_all_reduce(struct knee_runtime *rt, void *buffer, size_t count,
                            enum knee_runtime_type type, enum knee_runtime_op op)
{
    return !breaks(rt, "all_reduce") && real.all_reduce(rt, buffer, count, type, op);
}

static bool wire_all_reduce_start(struct knee_runtime *rt, void *buffer, size_t count,
                                  enum knee_runtime_type type, enum knee_runtime_op op,
                                  struct knee_request **out)
{
    return !breaks(rt, "all_reduce_start") &&
           real.all_reduce_start(rt, buffer, count, type, op, out);
}

static bool wire_send_start(struct knee_runtime *rt, const void *data, size_t bytes, int to,
                            int tag, struct knee_request **out)
{
    return !breaks(rt, "send_start") && real.send_start(rt, data, bytes, to, tag, out);
}

static bool wire_receive_start(struct knee_runtime *rt, void *data, size_t bytes, int from, int tag,
                               struct knee_request **out)
{
    return !breaks(rt, "receive_start") && real.receive_start(rt, data, bytes, from, tag, out);
}

static bool wire_test(struct knee_runtime *rt, struct knee_request **request, bool *done)
{
    if (breaks(rt, "test") || !real.test(rt, request, done))
        return false;
    if (!*done)
        rest(rt); /* who only tests would not see that another rank has died, as mpirun would */
    return true;
}

static bool wire_wait(struct knee_runtime *rt, struct knee_request **request)
{
    return !breaks(rt, "wait") && real.wait(rt, request);
}

static bool wire_collective(struct knee_runtime *rt, enum knee_op op, const void *in, void *out,
                            size_t count)
{
    return !breaks(rt, "collective") && real.collective(rt, op, in, out, count);
}

static bool wire_gather_bytes(struct knee_runtime *rt, const void *mine, size_t size, void **all,
                              size_t *sizes)
{
    bool good = !breaks(rt, "gather_bytes") && real.gather_bytes(rt, mine, size, all, sizes);
    if (good && rt->rank == 0 && rt->size > 1 && sizes[1] && --cut == 0)
        sizes[1]--;
    return good;
}

static bool wire_buffer_new(struct knee_runtime *rt, size_t bytes, void **out)
{
    *out = NULL;
    return !breaks(rt, "buffer_new") && real.buffer_new(rt, bytes, out);
}

static bool wire_buffer_put(struct knee_runtime *rt, void *buffer, const void *from, size_t bytes)
{
    return !breaks(rt, "buffer_put") && real.buffer_put(rt, buffer, from, bytes);
}

static bool wire_buffer_get(struct knee_runtime *rt, const void *buffer, void *to, size_t bytes)
{
    return !breaks(rt, "buffer_get") && real.buffer_get(rt, buffer, to, bytes);
}

static void settle_hosts(struct knee_runtime *rt)
{
    int hosts = (int)setting("KNEE_WIRE_HOSTS", 1);
    for (int r = 0; r < rt->size; r++)
        hosts_of[r] = r % hosts;
    rt->host_of = hosts_of;
    rt->host_count = hosts < rt->size ? hosts : rt->size;
    rt->host = hosts_of[rt->rank];
    snprintf(host_name, sizeof host_name, "wire%d", rt->host);
    rt->host_name = host_name;
}

const uint32_t knee_runtime_abi = KNEE_RUNTIME_ABI;

bool knee_runtime_fill(struct knee_runtime *rt, struct knee_runtime *base)
{
    struct knee_runtime *forked = NULL;
    struct knee_err err = {0};
    (void)base;
    if (knee_runtime_fork((int)setting("KNEE_WIRE_RANKS", 2), &forked, &err)) {
        snprintf(rt->fault, sizeof rt->fault, "%s", err.what);
        return false;
    }
    *rt = real = *forked;
    free(forked);
    places = getenv("KNEE_WIRE_PLACES");
    fail_place = place_wanted("KNEE_WIRE_PLACE");
    looked_at = setting("KNEE_WIRE_RANK", 0);
    cut = setting("KNEE_WIRE_CUT", 0);
    rt->name = "wire";
    rt->one_thread = setting("KNEE_WIRE_ONE", 0) != 0;
    rt->barrier = wire_barrier;
    rt->all_reduce = wire_all_reduce;
    rt->all_reduce_start = wire_all_reduce_start;
    rt->send_start = wire_send_start;
    rt->receive_start = wire_receive_start;
    rt->test = wire_test;
    rt->wait = wire_wait;
    rt->collective = wire_collective;
    rt->gather_bytes = wire_gather_bytes;
    rt->buffer_new = wire_buffer_new;
    rt->buffer_put = wire_buffer_put;
    rt->buffer_get = wire_buffer_get;
    settle_hosts(rt);
    return true;
}
