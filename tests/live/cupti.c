/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for CUPTI: the calls that the agent makes, and stand_in_launch(), by which a test
 * "launches" kernels on two streams of a GPU that runs them one after the other on its own clock.
 * A name that begins with Memcpy is a copy to the device, with Graph the launch of a graph: CUPTI
 * may not leave any more after one that it saw.
 *
 * As CUPTI does, any call attaches it, and it may leave only where a call into CUDA ends.
 *   STAND_IN_TAKEN_MS=A-B  between so many milliseconds after the start somebody else is the client
 *   STAND_IN_VERSION=N     what cuptiGetVersion() says (130000)
 *   STAND_IN_COST_US=N     the first launch after it came takes so long (0)
 *   STAND_IN_SLOW_MS=N     the first time it takes so long to come (0)
 *   STAND_IN_SAYS=NAME=N   the call whose name ends so says N; with it, nothing is done
 *   STAND_IN_ODD=1         every launch brings records of all other kinds too, and damaged ones
 *   STAND_IN_FLOOD=N       every launch brings N kernels more, of ten thousand names
 *   STAND_IN_LOG=FILE      gets a line at the end: launches, of them attached and recorded, times
 * that it came and left, calls that were wrong
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))
enum {
    KERNEL = 10,
    RUNTIME = 5,
    MEMCPY = 1,
    KERNEL_BYTES = 144,
    CALL_BYTES = 40,
    COPY_BYTES = 64,
    LAUNCH_ID = 211,
    COPY_ID = 41,
    GRAPH_ID = 311,
    MEMSET = 2,
    DRIVER = 4,
    MEMCPY2 = 22,
    UNKNOWN = 60,
    NAMES = 10000,
    TAKEN = 39,
    NO_MORE = 12,
    EXIT_SITE = 1,
    ZEROED_OUT_BUFFERS = 5
};
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
SHOWN int cuptiEnableDomain(uint32_t on, void *subscriber, int domain);
SHOWN int cuptiEnableCallback(uint32_t on, void *subscriber, int domain, uint32_t id);
SHOWN int cuptiGetVersion(uint32_t *version);
SHOWN int cuptiFinalize(void);
SHOWN int cuptiActivitySetAttribute(int attribute, size_t *bytes, void *value);
SHOWN void stand_in_launch(const char *name, uint32_t stream, int64_t dur_ns);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static request_fn *request;
static complete_fn *complete;
static bool enabled[64];
static uint8_t *buffer;
static size_t size, used, dropped;
static uint32_t correlation;
static int64_t stream_free_ns[64];

typedef void callback_fn(void *, int, uint32_t, const void *);
static callback_fn *subscriber_callback; /* NULL: nobody subscribes */
static bool domains[8], attached, is_new, graph_callback;
static bool graphs_seen, zeros_promised;
static long launches, launches_attached, launches_recorded, came, left, wrong;
static _Thread_local bool in_callback;

/* With the lock. */
static void attach(void)
{
    came += !attached;
    is_new = is_new || !attached;
    attached = true;
}

/* A call that nobody makes who has just sent it away. */
static void must_be_attached(void)
{
    pthread_mutex_lock(&lock);
    wrong += !attached;
    pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void tell_at_end(void)
{
    const char *path = getenv("STAND_IN_LOG");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f)
        return;
    fprintf(f, "launches %ld attached %ld recorded %ld came %ld left %ld wrong %ld\n", launches,
            launches_attached, launches_recorded, came, left, wrong);
    fclose(f);
}

static int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - SHIFT_NS;
}

/* What a call is told to say; 0: what it says of itself. */
static int told(const char *name)
{
    const char *text = getenv("STAND_IN_SAYS");
    size_t length = strlen(name);
    return text && strncmp(text, name, length) == 0 && text[length] == '='
               ? (int)strtol(text + length + 1, NULL, 10)
               : 0;
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

static void come_slowly(void)
{
    static bool done;
    const char *ms = done ? NULL : getenv("STAND_IN_SLOW_MS");
    done = true;
    usleep(ms ? (unsigned)strtoul(ms, NULL, 10) * 1000 : 0);
}

int cuptiActivityRegisterCallbacks(request_fn *r, complete_fn *c)
{
    if (told("RegisterCallbacks"))
        return told("RegisterCallbacks");
    come_slowly();
    pthread_mutex_lock(&lock);
    attach();
    request = r;
    complete = c;
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuptiActivitySetAttribute(int attribute, size_t *bytes, void *value)
{
    pthread_mutex_lock(&lock);
    attach();
    zeros_promised = attribute == ZEROED_OUT_BUFFERS && *bytes == 1 && *(uint8_t *)value == 1;
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuptiActivityEnable(int kind)
{
    if (told("Enable") && kind == RUNTIME) /* one of the last */
        return told("Enable");
    pthread_mutex_lock(&lock);
    attach();
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
    must_be_attached();
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
        next = (uint8_t *)*record + (kind == KERNEL ? KERNEL_BYTES
                                     : kind == MEMCPY || kind == MEMCPY2 || kind == MEMSET
                                         ? COPY_BYTES
                                         : CALL_BYTES);
    }
    if (next >= bytes + valid)
        return NO_MORE;
    *record = next;
    return 0;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *out)
{
    (void)context, (void)stream;
    if (told("DroppedRecords"))
        return told("DroppedRecords");
    *out = dropped;
    dropped = 0;
    return 0;
}

int cuptiGetTimestamp(uint64_t *ns)
{
    if (told("Timestamp"))
        return told("Timestamp");
    must_be_attached();
    *ns = (uint64_t)clock_ns();
    return 0;
}

int cuptiGetCallbackName(int domain, uint32_t id, const char **name)
{
    if (told("CallbackName"))
        return told("CallbackName");
    must_be_attached();
    *name = domain == 2 && id == LAUNCH_ID  ? "cudaLaunchKernel_v7000"
            : domain == 2 && id == COPY_ID  ? "cudaMemcpyAsync_v3020"
            : domain == 2 && id == GRAPH_ID ? "cudaGraphLaunch_v10000"
                                            : "cudaEventQuery_v3020";
    return 0;
}

int cuptiSubscribe(void **subscriber, void *callback, void *data)
{
    (void)data;
    if (told("Subscribe"))
        return told("Subscribe");
    pthread_mutex_lock(&lock);
    attach();
    int code = taken() || subscriber_callback ? TAKEN : 0;
    if (!code)
        memcpy(&subscriber_callback, &callback, sizeof callback);
    *subscriber = &lock;
    pthread_mutex_unlock(&lock);
    return code;
}

int cuptiUnsubscribe(void *subscriber)
{
    pthread_mutex_lock(&lock);
    wrong += !attached || !subscriber_callback;
    subscriber_callback = NULL;
    memset(domains, 0, sizeof domains);
    graph_callback = zeros_promised = false;
    pthread_mutex_unlock(&lock);
    return subscriber == &lock ? 0 : 1;
}

int cuptiEnableDomain(uint32_t on, void *subscriber, int domain)
{
    if (told("EnableDomain"))
        return told("EnableDomain");
    pthread_mutex_lock(&lock);
    wrong += subscriber != &lock || !subscriber_callback;
    domains[domain % 8] = on;
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuptiEnableCallback(uint32_t on, void *subscriber, int domain, uint32_t id)
{
    pthread_mutex_lock(&lock);
    wrong += subscriber != &lock || !subscriber_callback;
    graph_callback = domain == 2 && id == GRAPH_ID ? on : graph_callback;
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuptiGetVersion(uint32_t *version)
{
    if (told("Version"))
        return told("Version");
    const char *said = getenv("STAND_IN_VERSION");
    *version = said ? (uint32_t)strtoul(said, NULL, 10) : 130000;
    return 0;
}

int cuptiFinalize(void)
{
    pthread_mutex_lock(&lock);
    wrong += !attached || !in_callback || buffer != NULL || graphs_seen;
    for (size_t i = 0; i < sizeof enabled / sizeof *enabled; i++)
        wrong += enabled[i];
    attached = false;
    left++;
    subscriber_callback = NULL;
    request = NULL;
    complete = NULL;
    memset(domains, 0, sizeof domains);
    graph_callback = zeros_promised = false;
    pthread_mutex_unlock(&lock);
    return 0;
}

/* A call into CUDA ends: whoever subscribes hears of it. */
static void end_of_call(uint32_t id)
{
    struct {
        uint32_t site;
        const char *name;
    } what = {EXIT_SITE, "a call"};
    pthread_mutex_lock(&lock);
    bool heard = domains[2] || (graph_callback && id == GRAPH_ID);
    callback_fn *callback = heard ? subscriber_callback : NULL;
    pthread_mutex_unlock(&lock);
    if (!callback)
        return;
    in_callback = true;
    callback(NULL, 2, id, &what);
    in_callback = false;
}

static bool holds_zeros(void)
{
    static const uint8_t zeros[4096];
    bool so = zeros_promised;
    for (size_t at = 0; so && at < size; at += sizeof zeros)
        so = memcmp(buffer + at, zeros, size - at < sizeof zeros ? size - at : sizeof zeros) == 0;
    return so;
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
        wrong += buffer && !holds_zeros(); /* else CUPTI would write them, in this thread */
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

static void put_call(uint32_t id, int64_t now)
{
    uint8_t *call = enabled[RUNTIME] && request ? room(CALL_BYTES) : NULL;
    if (!call)
        return;
    PUT(call, 0, uint32_t, RUNTIME);
    PUT(call, 4, uint32_t, id);
    PUT(call, 8, uint64_t, (uint64_t)now);
    PUT(call, 16, uint64_t, (uint64_t)now + 1000);
    PUT(call, 32, uint32_t, correlation);
}

static void put_kernel(const char *name, uint32_t stream, int64_t begin, int64_t dur_ns)
{
    uint8_t *k = enabled[KERNEL] && request ? room(KERNEL_BYTES) : NULL;
    if (!k)
        return;
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

static void put_copy(uint32_t stream, int64_t begin, int64_t dur_ns)
{
    uint8_t *c = enabled[MEMCPY] && request ? room(COPY_BYTES) : NULL;
    if (!c)
        return;
    PUT(c, 0, uint32_t, MEMCPY);
    PUT(c, 4, uint8_t, 1); /* host to device */
    PUT(c, 8, uint64_t, 1 << 20);
    PUT(c, 16, uint64_t, (uint64_t)begin);
    PUT(c, 24, uint64_t, (uint64_t)(begin + dur_ns));
    PUT(c, 40, uint32_t, stream);
    PUT(c, 44, uint32_t, correlation);
}

/* What the agent does not use, or cannot know. */
static void put_odd(uint32_t stream, int64_t begin)
{
    static const uint32_t kinds[] = {MEMSET, MEMCPY2, MEMCPY, DRIVER, RUNTIME, UNKNOWN, KERNEL};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        bool call = kinds[i] == DRIVER || kinds[i] == RUNTIME || kinds[i] == UNKNOWN;
        uint8_t *at = enabled[KERNEL] && request ? room(call                 ? CALL_BYTES
                                                        : kinds[i] == KERNEL ? KERNEL_BYTES
                                                                             : COPY_BYTES)
                                                 : NULL;
        if (!at)
            return;
        PUT(at, 0, uint32_t, kinds[i]);
        PUT(at, 4, uint32_t, kinds[i] == RUNTIME ? 5000 : 77); /* no such call, no such copy */
        PUT(at, call ? 8 : 16, uint64_t, (uint64_t)begin);
        PUT(at, call ? 16 : 24, uint64_t, (uint64_t)begin + 500);
        if (!call)
            PUT(at, kinds[i] == KERNEL ? 48 : 40, uint32_t, stream);
    }
}

static void put_flood(long count, uint32_t stream, int64_t begin)
{
    static char names[NAMES][16];
    static long next;
    for (long i = 0; i < count; i++, next++) {
        uint8_t *k = enabled[KERNEL] && request ? room(KERNEL_BYTES) : NULL;
        char *name = names[next % NAMES];
        if (!k)
            return;
        if (!*name)
            snprintf(name, sizeof names[0], "kernel_%ld", next);
        PUT(k, 0, uint32_t, KERNEL);
        PUT(k, 16, uint64_t, (uint64_t)begin);
        PUT(k, 24, uint64_t, (uint64_t)begin + 10);
        PUT(k, 48, uint32_t, stream);
        PUT(k, 104, const char *, name);
    }
}

void stand_in_launch(const char *name, uint32_t stream, int64_t dur_ns)
{
    bool copy = strncmp(name, "Memcpy", 6) == 0, graph = strncmp(name, "Graph", 5) == 0;
    uint32_t id = copy ? COPY_ID : graph ? GRAPH_ID : LAUNCH_ID;
    pthread_mutex_lock(&lock);
    int64_t now = clock_ns(),
            begin = stream_free_ns[stream % 64] > now ? stream_free_ns[stream % 64] : now + 2000;
    stream_free_ns[stream % 64] = begin + dur_ns;
    correlation++;
    launches++;
    launches_attached += attached;
    launches_recorded += enabled[KERNEL];
    graphs_seen = graphs_seen || (graph && attached);
    put_call(id, now);
    if (copy)
        put_copy(stream, begin, dur_ns);
    else
        put_kernel(name, stream, begin, dur_ns);
    const char *flood = getenv("STAND_IN_FLOOD");
    if (getenv("STAND_IN_ODD"))
        put_odd(stream, begin);
    if (flood)
        put_flood(strtol(flood, NULL, 10), stream, begin);
    bool pays = is_new;
    is_new = false;
    pthread_mutex_unlock(&lock);
    const char *cost_us = getenv("STAND_IN_COST_US");
    if (pays && cost_us)
        usleep((useconds_t)strtoul(cost_us, NULL, 10));
    end_of_call(id);
}
