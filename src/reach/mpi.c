/* SPDX-License-Identifier: MIT */
/*
 * The runtime over MPI; the whole of build/knee-mpi.so. Waiting is done by testing, and the
 * processor is given away between two tests: more ranks than cores must not stand in each other's
 * way.
 */
#include "reach/host_buffer.h"
#include "reach/naps.h"
#include "reach/runtime.h"

#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

struct knee_request {
    MPI_Request mpi;
};

enum { NAME_SIZE = 256, GATHER_TAG = 32000, CHUNK_BYTES = 1 << 30 };

struct mpi_state {
    char host_name[NAME_SIZE];
    int *host_of;
    long nap_ns;
};

static bool check(struct knee_runtime *rt, const char *what, int code)
{
    if (code == MPI_SUCCESS)
        return true;
    char words[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, words, &length);
    snprintf(rt->fault, sizeof rt->fault, "%s: %.*s", what, length, words);
    return false;
}

static bool refuse(struct knee_runtime *rt, const char *why)
{
    snprintf(rt->fault, sizeof rt->fault, "%s", why);
    return false;
}

static MPI_Datatype type_of(enum knee_runtime_type type)
{
    switch (type) {
    case KNEE_RUNTIME_F32: return MPI_FLOAT;
    case KNEE_RUNTIME_F64: return MPI_DOUBLE;
    case KNEE_RUNTIME_I64: return MPI_INT64_T;
    case KNEE_RUNTIME_U8: break;
    }
    return MPI_UINT8_T;
}

static MPI_Op op_of(enum knee_runtime_op op)
{
    return op == KNEE_RUNTIME_MAX ? MPI_MAX : op == KNEE_RUNTIME_MIN ? MPI_MIN : MPI_SUM;
}

static size_t size_of(enum knee_runtime_type type)
{
    return type == KNEE_RUNTIME_F32 ? 4 : type == KNEE_RUNTIME_U8 ? 1 : 8;
}

static bool mpi_barrier(struct knee_runtime *rt)
{
    return check(rt, "barrier", MPI_Barrier(MPI_COMM_WORLD));
}

/* MPI counts with int; larger buffers go in pieces. */
static bool mpi_all_reduce(struct knee_runtime *rt, void *buffer, size_t count,
                           enum knee_runtime_type type, enum knee_runtime_op op)
{
    char *at = buffer;
    while (count) {
        int now = count < CHUNK_BYTES ? (int)count : CHUNK_BYTES;
        if (!check(rt, "all-reduce",
                   MPI_Allreduce(MPI_IN_PLACE, at, now, type_of(type), op_of(op), MPI_COMM_WORLD)))
            return false;
        at += (size_t)now * size_of(type);
        count -= (size_t)now;
    }
    return true;
}

static struct knee_request *new_request(struct knee_runtime *rt, size_t count)
{
    if (count > INT_MAX) {
        refuse(rt, "more than 2^31-1 elements in one call");
        return NULL;
    }
    struct knee_request *request = malloc(sizeof *request);
    if (!request)
        refuse(rt, "out of memory");
    return request;
}

/* Hands out what was started, or frees it when it could not be. */
static bool started(struct knee_runtime *rt, const char *what, int code,
                    struct knee_request *request, struct knee_request **out)
{
    if (!check(rt, what, code)) {
        free(request);
        return false;
    }
    *out = request;
    return true;
}

static bool mpi_all_reduce_start(struct knee_runtime *rt, void *buffer, size_t count,
                                 enum knee_runtime_type type, enum knee_runtime_op op,
                                 struct knee_request **out)
{
    struct knee_request *request = new_request(rt, count);
    return request && started(rt, "all-reduce",
                              MPI_Iallreduce(MPI_IN_PLACE, buffer, (int)count, type_of(type),
                                             op_of(op), MPI_COMM_WORLD, &request->mpi),
                              request, out);
}

static bool mpi_send_start(struct knee_runtime *rt, const void *data, size_t bytes, int to, int tag,
                           struct knee_request **out)
{
    struct knee_request *request = new_request(rt, bytes);
    return request &&
           started(rt, "send",
                   MPI_Isend(data, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request->mpi),
                   request, out);
}

static bool mpi_receive_start(struct knee_runtime *rt, void *data, size_t bytes, int from, int tag,
                              struct knee_request **out)
{
    struct knee_request *request = new_request(rt, bytes);
    return request &&
           started(rt, "receive",
                   MPI_Irecv(data, (int)bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request->mpi),
                   request, out);
}

static bool mpi_test(struct knee_runtime *rt, struct knee_request **request, bool *done)
{
    int flag = 1;
    if (*request && !check(rt, "test", MPI_Test(&(*request)->mpi, &flag, MPI_STATUS_IGNORE)))
        return false;
    *done = flag != 0;
    if (*done) {
        free(*request);
        *request = NULL;
    }
    return true;
}

/* A yield gives the processor to whoever wants it. Where many emulated hosts share few cores even
 * that is too much polling: KNEE_NAP_US says how long to sleep instead. */
static void rest(const struct mpi_state *state)
{
    struct timespec nap = {0, state->nap_ns};
    if (state->nap_ns)
        nanosleep(&nap, NULL);
    else
        sched_yield();
}

static bool mpi_wait(struct knee_runtime *rt, struct knee_request **request)
{
    for (bool done = false; !done;) {
        if (!mpi_test(rt, request, &done))
            return false;
        if (!done)
            rest(rt->state);
    }
    return true;
}

/* With parts that happen to be equal: another way through MPI than all_to_all. */
static int all_to_allv(const struct knee_runtime *rt, const void *in, void *out, int share)
{
    int *counts = malloc(2 * (size_t)rt->size * sizeof *counts);
    if (!counts)
        return MPI_ERR_NO_MEM;
    int *places = counts + rt->size;
    for (int r = 0; r < rt->size; r++) {
        counts[r] = share;
        places[r] = r * share;
    }
    int code = MPI_Alltoallv(in, counts, places, MPI_FLOAT, out, counts, places, MPI_FLOAT,
                             MPI_COMM_WORLD);
    free(counts);
    return code;
}

static bool mpi_collective(struct knee_runtime *rt, enum knee_op op, const void *in, void *out,
                           size_t count)
{
    if (count > INT_MAX)
        return refuse(rt, "more than 2^31-1 elements in one call");
    MPI_Comm world = MPI_COMM_WORLD;
    int n = (int)count, share = n / rt->size, code = MPI_SUCCESS;
    int next = (rt->rank + 1) % rt->size, before = (rt->rank + rt->size - 1) % rt->size;
    switch (op) {
    case KNEE_OP_ALL_REDUCE: code = MPI_Allreduce(in, out, n, MPI_FLOAT, MPI_SUM, world); break;
    case KNEE_OP_ALL_GATHER:
        code = MPI_Allgather(in, share, MPI_FLOAT, out, share, MPI_FLOAT, world);
        break;
    case KNEE_OP_REDUCE_SCATTER:
        code = MPI_Reduce_scatter_block(in, out, share, MPI_FLOAT, MPI_SUM, world);
        break;
    case KNEE_OP_ALL_TO_ALL:
        code = MPI_Alltoall(in, share, MPI_FLOAT, out, share, MPI_FLOAT, world);
        break;
    case KNEE_OP_ALL_TO_ALLV: code = all_to_allv(rt, in, out, share); break;
    case KNEE_OP_BROADCAST: /* out of place: the root's own copy, as NCCL makes it */
        if (rt->rank == 0)
            memcpy(out, in, count * sizeof(float));
        code = MPI_Bcast(out, n, MPI_FLOAT, 0, world);
        break;
    case KNEE_OP_REDUCE: code = MPI_Reduce(in, out, n, MPI_FLOAT, MPI_SUM, 0, world); break;
    case KNEE_OP_GATHER:
        code = MPI_Gather(in, share, MPI_FLOAT, out, share, MPI_FLOAT, 0, world);
        break;
    case KNEE_OP_SCATTER:
        code = MPI_Scatter(in, share, MPI_FLOAT, out, share, MPI_FLOAT, 0, world);
        break;
    case KNEE_OP_SEND_RECV:
        code = MPI_Sendrecv(in, n, MPI_FLOAT, next, 1, out, n, MPI_FLOAT, before, 1, world,
                            MPI_STATUS_IGNORE);
        break;
    case KNEE_OP_BARRIER: code = MPI_Barrier(world); break;
    default: return refuse(rt, "no such collective");
    }
    return check(rt, "collective", code);
}

/* One stream of bytes between two ranks, in pieces that MPI can count. */
static int move_bytes(bool sending, char *data, size_t bytes, int other)
{
    int code = MPI_SUCCESS;
    for (size_t at = 0; at < bytes && code == MPI_SUCCESS; at += CHUNK_BYTES) {
        int now = bytes - at < CHUNK_BYTES ? (int)(bytes - at) : CHUNK_BYTES;
        code = sending ? MPI_Send(data + at, now, MPI_BYTE, other, GATHER_TAG, MPI_COMM_WORLD)
                       : MPI_Recv(data + at, now, MPI_BYTE, other, GATHER_TAG, MPI_COMM_WORLD,
                                  MPI_STATUS_IGNORE);
    }
    return code;
}

static bool collect(struct knee_runtime *rt, const void *mine, const int64_t *bytes, void **all,
                    size_t *sizes)
{
    size_t total = 0;
    for (int r = 0; r < rt->size; r++)
        total += sizes[r] = (size_t)bytes[r];
    char *data = malloc(total + 1), *at = data;
    if (!data)
        return refuse(rt, "out of memory for what the ranks sent");
    if (sizes[0])
        memcpy(at, mine, sizes[0]);
    int code = MPI_SUCCESS;
    for (int r = 1; r < rt->size && code == MPI_SUCCESS; r++) {
        at += sizes[r - 1];
        code = move_bytes(false, at, sizes[r], r);
    }
    if (!check(rt, "gather", code)) {
        free(data);
        return false;
    }
    *all = data;
    return true;
}

static bool mpi_gather_bytes(struct knee_runtime *rt, const void *mine, size_t size, void **all,
                             size_t *sizes)
{
    int64_t bytes = (int64_t)size;
    int64_t *every = rt->rank == 0 ? malloc((size_t)rt->size * sizeof *every) : NULL;
    if (rt->rank == 0 && !every)
        return refuse(rt, "out of memory");
    bool good = check(rt, "gather",
                      MPI_Gather(&bytes, 1, MPI_INT64_T, every, 1, MPI_INT64_T, 0, MPI_COMM_WORLD));
    if (all)
        *all = NULL;
    if (good && rt->rank == 0)
        good = collect(rt, mine, every, all, sizes);
    else if (good) /* MPI_Send does not write to what it sends */
        good = check(rt, "gather", move_bytes(true, (char *)(uintptr_t)mine, size, 0));
    free(every);
    return good;
}

static void mpi_abort(struct knee_runtime *rt, const char *why)
{
    fprintf(stderr, "knee: rank %d on %s: %s\n", rt->rank, rt->host_name, why);
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, KNEE_SYSTEM);
    _exit(KNEE_SYSTEM);
}

static void mpi_finish(struct knee_runtime *rt)
{
    struct mpi_state *state = rt->state;
    MPI_Finalize();
    free(state->host_of);
    free(state);
    free(rt);
}

/* Numbers the hosts in order of the first rank on each. */
static bool number_hosts(struct knee_runtime *rt, struct mpi_state *state)
{
    size_t size = (size_t)rt->size;
    char *names = malloc(size * NAME_SIZE);
    state->host_of = malloc(size * sizeof *state->host_of);
    if (!names || !state->host_of) {
        free(names);
        return refuse(rt, "out of memory");
    }
    bool good = check(rt, "host names",
                      MPI_Allgather(state->host_name, NAME_SIZE, MPI_CHAR, names, NAME_SIZE,
                                    MPI_CHAR, MPI_COMM_WORLD));
    for (size_t r = 0; good && r < size; r++) {
        size_t first = 0;
        while (strcmp(names + first * NAME_SIZE, names + r * NAME_SIZE) != 0)
            first++;
        state->host_of[r] = first == r ? rt->host_count++ : state->host_of[first];
    }
    free(names);
    return good;
}

const uint32_t knee_runtime_abi = KNEE_RUNTIME_ABI;

bool knee_runtime_fill(struct knee_runtime *rt, struct knee_runtime *base)
{
    (void)base;
    int provided = 0, length = 0;
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    struct mpi_state *state = calloc(1, sizeof *state);
    if (!state)
        return refuse(rt, "out of memory");
    if (!check(rt, "MPI_Init", MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided))) {
        free(state);
        return false;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Get_processor_name(name, &length);
    snprintf(state->host_name, sizeof state->host_name, "%.*s", NAME_SIZE - 1, name);
    const char *nap_us = getenv("KNEE_NAP_US");
    long nap = nap_us ? strtol(nap_us, NULL, 10) : 0;
    state->nap_ns = nap > 0 && nap < 1000000 ? nap * 1000 : 0;
    knee_naps_are_exact();
    *rt = (struct knee_runtime){
        .name = "mpi",
        .host_name = state->host_name,
        .state = state,
        .device_name = "CPU",
        .one_thread = provided < MPI_THREAD_SERIALIZED,
        .barrier = mpi_barrier,
        .all_reduce = mpi_all_reduce,
        .all_reduce_start = mpi_all_reduce_start,
        .send_start = mpi_send_start,
        .receive_start = mpi_receive_start,
        .test = mpi_test,
        .wait = mpi_wait,
        .collective = mpi_collective,
        .gather_bytes = mpi_gather_bytes,
        KNEE_HOST_BUFFERS,
        .abort = mpi_abort,
        .finish = mpi_finish,
    };
    MPI_Comm_rank(MPI_COMM_WORLD, &rt->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &rt->size);
    if (number_hosts(rt, state)) {
        rt->host_of = state->host_of;
        rt->host = state->host_of[rt->rank];
        return true;
    }
    MPI_Finalize();
    free(state->host_of);
    free(state);
    return false;
}
