/* SPDX-License-Identifier: MIT */
/*
 * Collectives through NCCL on GPU buffers; the whole of build/knee-nccl.so. Everything else (ranks,
 * barrier, small exchanges in host memory) is the runtime's under it, mpi or self. A collective is
 * timed with its launch and the wait for its end, as a step that needs the result would see it.
 */
#include "reach/runtime.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nccl_state {
    struct knee_runtime *base;
    ncclComm_t comm;
    cudaStream_t stream;
    char device_name[256];
};

static struct nccl_state *state_of(struct knee_runtime *rt)
{
    return rt->state;
}

static bool cuda_ok(struct knee_runtime *rt, const char *what, cudaError_t code)
{
    if (code != cudaSuccess)
        snprintf(rt->fault, sizeof rt->fault, "%s: %s", what, cudaGetErrorString(code));
    return code == cudaSuccess;
}

static bool nccl_ok(struct knee_runtime *rt, const char *what, ncclResult_t code)
{
    if (code != ncclSuccess)
        snprintf(rt->fault, sizeof rt->fault, "%s: %s; NCCL_DEBUG=INFO says more", what,
                 ncclGetErrorString(code));
    return code == ncclSuccess;
}

/* ---- What the runtime below does ---- */

/* Passes its fault on. */
static bool below(struct knee_runtime *rt, bool good)
{
    if (!good)
        memcpy(rt->fault, state_of(rt)->base->fault, sizeof rt->fault);
    return good;
}

static bool nccl_barrier(struct knee_runtime *rt)
{
    struct knee_runtime *base = state_of(rt)->base;
    return below(rt, base->barrier(base));
}

static bool nccl_all_reduce(struct knee_runtime *rt, void *buffer, size_t count,
                            enum knee_runtime_type type, enum knee_runtime_op op)
{
    struct knee_runtime *base = state_of(rt)->base;
    return below(rt, base->all_reduce(base, buffer, count, type, op));
}

static bool nccl_all_reduce_start(struct knee_runtime *rt, void *buffer, size_t count,
                                  enum knee_runtime_type type, enum knee_runtime_op op,
                                  struct knee_request **out)
{
    struct knee_runtime *base = state_of(rt)->base;
    return below(rt, base->all_reduce_start(base, buffer, count, type, op, out));
}

static bool nccl_send_start(struct knee_runtime *rt, const void *data, size_t bytes, int to,
                            int tag, struct knee_request **out)
{
    struct knee_runtime *base = state_of(rt)->base;
    return below(rt, base->send_start(base, data, bytes, to, tag, out));
}

static bool nccl_receive_start(struct knee_runtime *rt, void *data, size_t bytes, int from, int tag,
                               struct knee_request **out)
{
    struct knee_runtime *base = state_of(rt)->base;
    return below(rt, base->receive_start(base, data, bytes, from, tag, out));
}

static bool nccl_test(struct knee_runtime *rt, struct knee_request **request, bool *done)
{
    struct knee_runtime *base = state_of(rt)->base;
    return below(rt, base->test(base, request, done));
}

static bool nccl_wait(struct knee_runtime *rt, struct knee_request **request)
{
    struct knee_runtime *base = state_of(rt)->base;
    return below(rt, base->wait(base, request));
}

static bool nccl_gather_bytes(struct knee_runtime *rt, const void *mine, size_t size, void **all,
                              size_t *sizes)
{
    struct knee_runtime *base = state_of(rt)->base;
    return below(rt, base->gather_bytes(base, mine, size, all, sizes));
}

static void nccl_abort(struct knee_runtime *rt, const char *why)
{
    struct knee_runtime *base = state_of(rt)->base;
    base->abort(base, why);
}

/* ---- GPU memory ---- */

static bool nccl_buffer_new(struct knee_runtime *rt, size_t bytes, void **out)
{
    void *buffer = NULL;
    if (!cuda_ok(rt, "GPU memory", cudaMalloc(&buffer, bytes + 1)))
        return false;
    *out = buffer;
    return true;
}

static void nccl_buffer_release(struct knee_runtime *rt, void *buffer)
{
    (void)rt;
    cudaFree(buffer);
}

static bool nccl_buffer_put(struct knee_runtime *rt, void *buffer, const void *from, size_t bytes)
{
    return cuda_ok(rt, "copy to the GPU", cudaMemcpy(buffer, from, bytes, cudaMemcpyHostToDevice));
}

static bool nccl_buffer_get(struct knee_runtime *rt, const void *buffer, void *to, size_t bytes)
{
    return cuda_ok(rt, "copy from the GPU", cudaMemcpy(to, buffer, bytes, cudaMemcpyDeviceToHost));
}

/* ---- Collectives ---- */

/* What NCCL has no call for is a group of messages: part r of `in` to rank r where `sends`, part r
 * of `out` from rank r where `receives`. */
struct plan {
    bool sends, receives; /* this rank takes part so */
    int to, from;         /* one rank, or -1: every rank its part */
};

static ncclResult_t messages(struct knee_runtime *rt, const struct plan *plan, const float *in,
                             float *out, size_t part)
{
    struct nccl_state *state = state_of(rt);
    ncclResult_t code = ncclGroupStart(), ended;
    for (int r = 0; r < rt->size && code == ncclSuccess; r++) {
        bool whole_in = plan->to >= 0, whole_out = plan->from >= 0;
        if (plan->sends && (!whole_in || plan->to == r))
            code = ncclSend(in + (whole_in ? 0 : (size_t)r * part), part, ncclFloat, r, state->comm,
                            state->stream);
        if (code == ncclSuccess && plan->receives && (!whole_out || plan->from == r))
            code = ncclRecv(out + (whole_out ? 0 : (size_t)r * part), part, ncclFloat, r,
                            state->comm, state->stream);
    }
    ended = ncclGroupEnd();
    return code == ncclSuccess ? ended : code;
}

static ncclResult_t start(struct knee_runtime *rt, enum knee_op op, const void *in, void *out,
                          size_t count)
{
    struct nccl_state *state = state_of(rt);
    size_t share = count / (size_t)rt->size;
    bool root = rt->rank == 0;
    int next = (rt->rank + 1) % rt->size, before = (rt->rank + rt->size - 1) % rt->size;
    struct plan all = {true, true, -1, -1}, gather = {true, root, 0, -1},
                scatter = {root, true, -1, 0}, ring = {true, true, next, before};
    switch (op) {
    case KNEE_OP_ALL_REDUCE:
        return ncclAllReduce(in, out, count, ncclFloat, ncclSum, state->comm, state->stream);
    case KNEE_OP_ALL_GATHER:
        return ncclAllGather(in, out, share, ncclFloat, state->comm, state->stream);
    case KNEE_OP_REDUCE_SCATTER:
        return ncclReduceScatter(in, out, share, ncclFloat, ncclSum, state->comm, state->stream);
    case KNEE_OP_BROADCAST:
        return ncclBroadcast(in, out, count, ncclFloat, 0, state->comm, state->stream);
    case KNEE_OP_REDUCE:
        return ncclReduce(in, out, count, ncclFloat, ncclSum, 0, state->comm, state->stream);
    case KNEE_OP_ALL_TO_ALL:
    case KNEE_OP_ALL_TO_ALLV: return messages(rt, &all, in, out, share);
    case KNEE_OP_GATHER: return messages(rt, &gather, in, out, share);
    case KNEE_OP_SCATTER: return messages(rt, &scatter, in, out, share);
    case KNEE_OP_SEND_RECV: return messages(rt, &ring, in, out, count);
    default: return ncclInvalidArgument;
    }
}

static bool nccl_collective(struct knee_runtime *rt, enum knee_op op, const void *in, void *out,
                            size_t count)
{
    return nccl_ok(rt, "NCCL", start(rt, op, in, out, count)) &&
           cuda_ok(rt, "waiting for the GPU", cudaStreamSynchronize(state_of(rt)->stream));
}

/* ---- Beginning and end ---- */

static void nccl_finish(struct knee_runtime *rt)
{
    struct nccl_state *state = state_of(rt);
    struct knee_runtime *base = state->base;
    ncclCommDestroy(state->comm);
    cudaStreamDestroy(state->stream);
    base->finish(base);
    free(state);
    free(rt);
}

/* NCCL refuses two ranks on one GPU unless it takes them for different hosts, which then speak over
 * sockets. What the user has set stays. */
static void share_device(const struct knee_runtime *base)
{
    char id[320];
    snprintf(id, sizeof id, "%s-%d", base->host_name, base->rank);
    setenv("NCCL_HOSTID", id, 0);
    setenv("NCCL_NET", "Socket", 0);
    setenv("NCCL_P2P_DISABLE", "1", 0);
    setenv("NCCL_SHM_DISABLE", "1", 0);
    if (base->host_count == 1)
        setenv("NCCL_SOCKET_IFNAME", "lo", 0);
}

/* Ranks of a host take its GPUs in turn. */
static bool pick_device(struct knee_runtime *rt, struct nccl_state *state)
{
    const struct knee_runtime *base = state->base;
    int devices = 0, place = 0, here = 0;
    struct cudaDeviceProp facts;
    for (int r = 0; r < base->size; r++) {
        bool beside = base->host_of[r] == base->host;
        here += beside;
        place += beside && r < base->rank;
    }
    if (!cuda_ok(rt, "CUDA", cudaGetDeviceCount(&devices)))
        return false;
    if (devices == 0) {
        snprintf(rt->fault, sizeof rt->fault, "no GPU on %s", base->host_name);
        return false;
    }
    if (here > devices)
        share_device(base);
    int device = place % devices;
    if (!cuda_ok(rt, "CUDA", cudaSetDevice(device)) ||
        !cuda_ok(rt, "CUDA", cudaGetDeviceProperties(&facts, device)))
        return false;
    char shared[64] = "";
    if (here > devices)
        snprintf(shared, sizeof shared, ", %d shared by %d ranks over sockets", devices, here);
    snprintf(state->device_name, sizeof state->device_name, "%.180s%s", facts.name, shared);
    return cuda_ok(rt, "CUDA", cudaStreamCreate(&state->stream));
}

/* Rank 0's id reaches all as the largest of their bytes: the others' are 0. */
static bool join(struct knee_runtime *rt, struct nccl_state *state)
{
    struct knee_runtime *base = state->base;
    ncclUniqueId id;
    memset(&id, 0, sizeof id);
    if (base->rank == 0 && !nccl_ok(rt, "NCCL", ncclGetUniqueId(&id)))
        return false;
    if (!base->all_reduce(base, &id, sizeof id, KNEE_RUNTIME_U8, KNEE_RUNTIME_MAX)) {
        memcpy(rt->fault, base->fault, sizeof rt->fault);
        return false;
    }
    return nccl_ok(rt, "NCCL", ncclCommInitRank(&state->comm, base->size, id, base->rank));
}

const uint32_t knee_runtime_abi = KNEE_RUNTIME_ABI;

bool knee_runtime_fill(struct knee_runtime *rt, struct knee_runtime *base)
{
    struct nccl_state *state = calloc(1, sizeof *state);
    if (!state) {
        snprintf(rt->fault, sizeof rt->fault, "out of memory");
        return false;
    }
    state->base = base;
    if (!pick_device(rt, state) || !join(rt, state)) {
        free(state);
        return false;
    }
    *rt = (struct knee_runtime){
        .name = "nccl",
        .rank = base->rank,
        .size = base->size,
        .host = base->host,
        .host_count = base->host_count,
        .host_name = base->host_name,
        .host_of = base->host_of,
        .state = state,
        .device_name = state->device_name,
        .on_device = true,
        .barrier = nccl_barrier,
        .all_reduce = nccl_all_reduce,
        .all_reduce_start = nccl_all_reduce_start,
        .send_start = nccl_send_start,
        .receive_start = nccl_receive_start,
        .test = nccl_test,
        .wait = nccl_wait,
        .collective = nccl_collective,
        .gather_bytes = nccl_gather_bytes,
        .buffer_new = nccl_buffer_new,
        .buffer_release = nccl_buffer_release,
        .buffer_put = nccl_buffer_put,
        .buffer_get = nccl_buffer_get,
        .abort = nccl_abort,
        .finish = nccl_finish,
    };
    return true;
}
