/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for CUPTI: the calls that the agent makes, and stand_in_launch(), by which a test
 * "launches" kernels on two streams of a GPU that runs them one after the other on its own clock.
 * STAND_IN_TAKEN_MS=A-B: between so many milliseconds after the start somebody else is the client.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SHOWN __attribute__((visibility("default")))
enum { KERNEL = 10, RUNTIME = 5, KERNEL_BYTES = 144, CALL_BYTES = 40, TAKEN = 39, NO_MORE = 12 };
#define SHIFT_NS INT64_C(777000000000) /* its clock is not the host's */

typedef void request_fn(uint8_t **, size_t *, size_t *);
typedef void complete_fn(void *, uint32_t, uint8_t *, size_t, size_t);
SHOWN int cuptiActivityRegisterCallbacks(request_fn *r, complete_fn *c);
SHOWN int cuptiActivityEnable(int kind), cuptiActivityDisable(int kind);
SHOWN int cuptiActivityFlushAll(uint32_t flag);
SHOWN int cuptiActivityGetNextRecord(uint8_t *buffer, size_t size, void **record);
SHOWN int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped);
SHOWN int cuptiGetTimestamp(uint64_t *ns);
SHOWN int cuptiGetCallbackName(int domain, uint32_t id, const char **name);
SHOWN int cuptiSubscribe(void **subscriber, void *callback, void *data),
    cuptiUnsubscribe(void *subscriber);
SHOWN void stand_in_launch(const char *name, uint32_t stream, int64_t dur_ns);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static request_fn *request;
static complete_fn *complete;
static bool enabled[64];
static uint8_t *buffer;
static size_t size, used, dropped;
static uint32_t correlation;
static int64_t stream_free_ns[64];

static int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - SHIFT_NS;
}

static bool taken(void)
{
    static int64_t began_ns;
    const char *when = getenv("STAND_IN_TAKEN_MS");
    long from = 0, to = 0;
    began_ns = began_ns ? began_ns : clock_ns();
    long ms = (long)((clock_ns() - began_ns) / 1000000);
    return when && sscanf(when, "%ld-%ld", &from, &to) == 2 && ms >= from && ms < to;
}

int cuptiActivityRegisterCallbacks(request_fn *r, complete_fn *c)
{
    pthread_mutex_lock(&lock);
    request = r;
    complete = c;
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuptiActivityEnable(int kind)
{
    pthread_mutex_lock(&lock);
    enabled[kind] = true;
    pthread_mutex_unlock(&lock);
    return taken() ? TAKEN : 0;
}

int cuptiActivityDisable(int kind)
{
    pthread_mutex_lock(&lock);
    enabled[kind] = false;
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuptiActivityFlushAll(uint32_t flag)
{
    (void)flag;
    pthread_mutex_lock(&lock);
    uint8_t *full = buffer;
    size_t valid = used, whole = size;
    buffer = NULL;
    used = size = 0;
    pthread_mutex_unlock(&lock);
    if (full)
        complete(NULL, 0, full, whole, valid);
    return 0;
}

int cuptiActivityGetNextRecord(uint8_t *bytes, size_t valid, void **record)
{
    uint8_t *next = bytes;
    uint32_t kind = 0;
    if (*record) {
        memcpy(&kind, *record, sizeof kind);
        next = (uint8_t *)*record + (kind == KERNEL ? KERNEL_BYTES : CALL_BYTES);
    }
    if (next >= bytes + valid)
        return NO_MORE;
    *record = next;
    return 0;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *out)
{
    (void)context, (void)stream;
    *out = dropped;
    dropped = 0;
    return 0;
}

int cuptiGetTimestamp(uint64_t *ns)
{
    *ns = (uint64_t)clock_ns();
    return 0;
}

int cuptiGetCallbackName(int domain, uint32_t id, const char **name)
{
    *name = domain == 2 && id == 211 ? "cudaLaunchKernel_v7000" : "cudaEventQuery_v3020";
    return 0;
}

int cuptiSubscribe(void **subscriber, void *callback, void *data)
{
    (void)callback, (void)data;
    *subscriber = &lock;
    return taken() ? TAKEN : 0;
}

int cuptiUnsubscribe(void *subscriber)
{
    return subscriber == &lock ? 0 : 1;
}

/* Room for one record; NULL: there is none. */
static uint8_t *room(size_t bytes)
{
    size_t most = 0;
    if (buffer && used + bytes > size) {
        complete(NULL, 0, buffer, size, used);
        buffer = NULL;
    }
    if (!buffer) {
        request(&buffer, &size, &most);
        used = 0;
    }
    if (!buffer) {
        dropped++;
        return NULL;
    }
    uint8_t *at = buffer + used;
    memset(at, 0, bytes);
    used += bytes;
    return at;
}

#define PUT(at, offset, type, value) memcpy((at) + (offset), &(type){value}, sizeof(type))

void stand_in_launch(const char *name, uint32_t stream, int64_t dur_ns)
{
    pthread_mutex_lock(&lock);
    int64_t now = clock_ns(),
            begin = stream_free_ns[stream % 64] > now ? stream_free_ns[stream % 64] : now + 2000;
    stream_free_ns[stream % 64] = begin + dur_ns;
    correlation++;
    uint8_t *call = enabled[RUNTIME] && request ? room(CALL_BYTES) : NULL;
    if (call) {
        PUT(call, 0, uint32_t, RUNTIME);
        PUT(call, 4, uint32_t, 211);
        PUT(call, 8, uint64_t, (uint64_t)now);
        PUT(call, 16, uint64_t, (uint64_t)now + 1000);
        PUT(call, 32, uint32_t, correlation);
    }
    uint8_t *k = enabled[KERNEL] && request ? room(KERNEL_BYTES) : NULL;
    if (k) {
        PUT(k, 0, uint32_t, KERNEL);
        PUT(k, 16, uint64_t, (uint64_t)begin);
        PUT(k, 24, uint64_t, (uint64_t)(begin + dur_ns));
        PUT(k, 48, uint32_t, stream);
        PUT(k, 92, uint32_t, correlation);
        PUT(k, 104, const char *,
            strstr(name, "AllReduce")   ? "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
            : strstr(name, "AllGather") ? "ncclDevKernel_AllGather_RING_LL"
            : strstr(name, "Scatter")   ? "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL"
                                        : "gemm");
    }
    pthread_mutex_unlock(&lock);
}
