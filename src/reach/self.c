/* SPDX-License-Identifier: MIT */
/*
 * One process. Reducing over one is nothing; what it sends to itself is kept until it is received.
 */
#include "reach/host_buffer.h"
#include "reach/runtime.h"

#include <unistd.h>

/* A message, or a receive that waits for one. */
struct knee_request {
    void *data;
    size_t bytes;
    int tag;
    bool done;
    struct knee_request *next;
};

struct self_state {
    struct knee_request *sent; /* not received yet, oldest first */
    char host_name[256];
    int host_of[1];
};

static bool self_barrier(struct knee_runtime *rt)
{
    (void)rt;
    return true;
}

static bool self_all_reduce(struct knee_runtime *rt, void *buffer, size_t count,
                            enum knee_runtime_type type, enum knee_runtime_op op)
{
    (void)rt, (void)buffer, (void)count, (void)type, (void)op;
    return true;
}

static bool self_all_reduce_start(struct knee_runtime *rt, void *buffer, size_t count,
                                  enum knee_runtime_type type, enum knee_runtime_op op,
                                  struct knee_request **out)
{
    *out = NULL;
    return self_all_reduce(rt, buffer, count, type, op);
}

static bool refuse(struct knee_runtime *rt, const char *why)
{
    snprintf(rt->fault, sizeof rt->fault, "%s", why);
    return false;
}

/* The bytes are copied, so that the send is done at once. */
static bool self_send_start(struct knee_runtime *rt, const void *data, size_t bytes, int to,
                            int tag, struct knee_request **out)
{
    struct self_state *state = rt->state;
    struct knee_request *message = to == 0 ? calloc(1, sizeof *message) : NULL;
    void *copy = message ? malloc(bytes + 1) : NULL;
    if (!copy) {
        free(message);
        return refuse(rt, to == 0 ? "out of memory" : "there is only rank 0");
    }
    memcpy(copy, data, bytes);
    *message = (struct knee_request){.data = copy, .bytes = bytes, .tag = tag};
    struct knee_request **last = &state->sent;
    while (*last)
        last = &(*last)->next;
    *last = message;
    *out = NULL;
    return true;
}

static bool self_receive_start(struct knee_runtime *rt, void *data, size_t bytes, int from, int tag,
                               struct knee_request **out)
{
    struct knee_request *receive = from == 0 ? calloc(1, sizeof *receive) : NULL;
    if (!receive)
        return refuse(rt, from == 0 ? "out of memory" : "there is only rank 0");
    *receive = (struct knee_request){.data = data, .bytes = bytes, .tag = tag};
    *out = receive;
    return true;
}

static bool self_test(struct knee_runtime *rt, struct knee_request **request, bool *done)
{
    struct self_state *state = rt->state;
    *done = *request == NULL;
    if (*done)
        return true;
    for (struct knee_request **at = &state->sent; *at; at = &(*at)->next) {
        struct knee_request *message = *at;
        if (message->tag != (*request)->tag)
            continue;
        if (message->bytes != (*request)->bytes)
            return refuse(rt, "a message of another size than was asked for");
        memcpy((*request)->data, message->data, message->bytes);
        *at = message->next;
        free(message->data);
        free(message);
        free(*request);
        *request = NULL;
        *done = true;
        return true;
    }
    return true;
}

static bool self_wait(struct knee_runtime *rt, struct knee_request **request)
{
    bool done = false;
    if (!self_test(rt, request, &done))
        return false;
    return done || refuse(rt, "waits for a message that was never sent");
}

static bool self_collective(struct knee_runtime *rt, enum knee_op op, const void *in, void *out,
                            size_t count)
{
    (void)rt;
    if (op != KNEE_OP_BARRIER)
        memcpy(out, in, count * sizeof(float));
    return true;
}

static bool self_gather_bytes(struct knee_runtime *rt, const void *mine, size_t size, void **all,
                              size_t *sizes)
{
    void *copy = malloc(size + 1);
    if (!copy)
        return refuse(rt, "out of memory");
    if (size)
        memcpy(copy, mine, size);
    *all = copy;
    sizes[0] = size;
    return true;
}

static void self_abort(struct knee_runtime *rt, const char *why)
{
    (void)rt;
    fprintf(stderr, "knee: %s\n", why);
    _exit(KNEE_SYSTEM);
}

static void self_finish(struct knee_runtime *rt)
{
    struct self_state *state = rt->state;
    while (state->sent) {
        struct knee_request *message = state->sent;
        state->sent = message->next;
        free(message->data);
        free(message);
    }
    free(state);
    free(rt);
}

bool knee_runtime_fill_self(struct knee_runtime *rt, struct knee_runtime *base)
{
    (void)base;
    struct self_state *state = calloc(1, sizeof *state);
    if (!state)
        return refuse(rt, "out of memory");
    if (gethostname(state->host_name, sizeof state->host_name - 1) != 0)
        snprintf(state->host_name, sizeof state->host_name, "localhost");
    *rt = (struct knee_runtime){
        .name = "self",
        .size = 1,
        .host_count = 1,
        .host_name = state->host_name,
        .host_of = state->host_of,
        .state = state,
        .device_name = "CPU",
        .barrier = self_barrier,
        .all_reduce = self_all_reduce,
        .all_reduce_start = self_all_reduce_start,
        .send_start = self_send_start,
        .receive_start = self_receive_start,
        .test = self_test,
        .wait = self_wait,
        .collective = self_collective,
        .gather_bytes = self_gather_bytes,
        KNEE_HOST_BUFFERS,
        .abort = self_abort,
        .finish = self_finish,
    };
    return true;
}
