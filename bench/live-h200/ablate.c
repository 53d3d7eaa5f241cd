/* SPDX-License-Identifier: MIT */
/* Stands between NCCL and the agent, for bench/live-h200/job.py --ablate alone: it can tell NCCL to
 * tell less, has CUPTI come and go, and counts what the agent's callbacks take. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct table {
    const char *name;
    int (*init)(void **, uint64_t, int *, const char *, int, int, int, void *);
    int (*start)(void *, void **, const void *);
    int (*stop)(void *);
    int (*state)(void *, int, const void *);
    int (*finalize)(void *);
};

static struct table agent;
static int *mask_at;
static _Atomic int64_t calls, took_ns;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void count(int64_t began_ns)
{
    atomic_fetch_add_explicit(&took_ns, now_ns() - began_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
}

static int init(void **context, uint64_t id, int *mask, const char *name, int nodes, int size,
                int rank, void *logger)
{
    const char *path = getenv("ABLATE_AGENT");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = library ? dlsym(library, "ncclProfiler_v5") : NULL;
    if (!symbol)
        return 1;
    memcpy(&agent, symbol, sizeof agent);
    int status = agent.init(context, id, mask, name, nodes, size, rank, logger);
    mask_at = mask;
    return status;
}

static int start(void *context, void **handle, const void *descr)
{
    int64_t began_ns = now_ns();
    int status = agent.start(context, handle, descr);
    count(began_ns);
    return status;
}

static int stop(void *handle)
{
    int64_t began_ns = now_ns();
    int status = agent.stop(handle);
    count(began_ns);
    return status;
}

static int state(void *handle, int which, const void *args)
{
    int64_t began_ns = now_ns();
    int status = agent.state(handle, which, args);
    count(began_ns);
    return status;
}

static int finalize(void *context)
{
    return agent.finalize(context);
}

const struct table ncclProfiler_v5 = {"ablate", init, start, stop, state, finalize};

int ablate_mask(int mask)
{
    if (!mask_at)
        return -1;
    int before = *mask_at;
    __atomic_store_n(mask_at, mask, __ATOMIC_RELAXED);
    return before;
}

int64_t ablate_calls(void)
{
    return atomic_exchange(&calls, 0);
}

int64_t ablate_took_ns(void)
{
    return atomic_exchange(&took_ns, 0);
}

/* ---- CUPTI ---- */

static int (*cupti_register)(void *, void *), (*cupti_enable)(int), (*cupti_disable)(int);
static int (*cupti_flush)(uint32_t), (*cupti_finalize)(void);
static int (*cupti_next)(uint8_t *, size_t, void **), (*cupti_attribute)(int, size_t *, void *);

/* Buffers are kept: a fresh one's pages would be made under CUPTI's hands. */
enum { BUFFERS = 64, BYTES = 1 << 20, KINDS = 64 };
static struct {
    _Atomic int given;
    uint8_t *bytes;
} buffers[BUFFERS];
static _Atomic int64_t requests, records[KINDS];
static _Atomic int counts, zeroed;

static void on_request(uint8_t **buffer, size_t *size, size_t *most)
{
    *size = BYTES;
    *most = 0;
    atomic_fetch_add(&requests, 1);
    for (size_t i = 0; i < BUFFERS; i++) {
        int expected = 0;
        if (!atomic_compare_exchange_strong(&buffers[i].given, &expected, 1))
            continue;
        if (!buffers[i].bytes) {
            buffers[i].bytes = aligned_alloc(64, BYTES);
            memset(buffers[i].bytes, 0, BYTES);
        }
        *buffer = buffers[i].bytes;
        return;
    }
    *buffer = NULL;
    *size = 0;
}

static void on_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    void *record = NULL;
    (void)context, (void)stream, (void)size;
    while (counts && valid && cupti_next(buffer, valid, &record) == 0) {
        uint32_t kind = *(uint32_t *)record;
        atomic_fetch_add(&records[kind < KINDS ? kind : 0], 1);
    }
    if (zeroed) /* by CUPTI's own thread, or the one that asks */
        memset(buffer, 0, BYTES);
    for (size_t i = 0; i < BUFFERS; i++)
        if (buffers[i].bytes == buffer)
            atomic_store(&buffers[i].given, 0);
}

/* Records of a kind since it was asked last; kind -1: buffers that were asked for. */
int64_t ablate_records(int kind)
{
    return atomic_exchange(kind < 0 ? &requests : &records[kind], 0);
}

void ablate_count(int on)
{
    counts = on;
}

static void find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
}

static int load(void)
{
    void *library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    library = library ? library : dlopen("libcupti.so.13", RTLD_NOW);
    library = library ? library : dlopen("libcupti.so.12", RTLD_NOW);
    if (!library)
        return -1;
    find(library, "cuptiActivityRegisterCallbacks", &cupti_register);
    find(library, "cuptiActivityEnable", &cupti_enable);
    find(library, "cuptiActivityDisable", &cupti_disable);
    find(library, "cuptiActivityFlushAll", &cupti_flush);
    find(library, "cuptiFinalize", &cupti_finalize);
    find(library, "cuptiActivityGetNextRecord", &cupti_next);
    find(library, "cuptiActivitySetAttribute", &cupti_attribute);
    return 0;
}

/* Who hands CUPTI its buffers zeroed: CUPTI itself, in the job's thread, or us. */
int ablate_zeroed(int by_us)
{
    enum { ATTR_ZEROED_OUT = 5 };
    uint8_t value = (uint8_t)by_us;
    size_t bytes = sizeof value;
    for (size_t i = 0; by_us && i < BUFFERS; i++)
        if (buffers[i].bytes && !buffers[i].given)
            memset(buffers[i].bytes, 0, BYTES);
    zeroed = by_us;
    return cupti_attribute ? cupti_attribute(ATTR_ZEROED_OUT, &bytes, &value) : 999;
}

/* A thread that asks CUPTI for what it holds. */
static _Atomic int asks_ms;
static pthread_t asker;

static void *ask(void *data)
{
    (void)data;
    while (asks_ms) {
        struct timespec nap = {asks_ms / 1000, asks_ms % 1000 * 1000000L};
        nanosleep(&nap, NULL);
        cupti_flush(0);
    }
    return NULL;
}

void ablate_ask_every(int ms)
{
    int before = asks_ms;
    asks_ms = ms;
    if (!before && ms)
        pthread_create(&asker, NULL, ask, NULL);
    else if (before && !ms)
        pthread_join(asker, NULL);
}

static const int kinds[] = {10, 1, 2, 22, 5, 4}; /* kernels, copies, fills; calls of the host */

/* Records the first `count` kinds; the nanoseconds that took, or a negative code. */
int64_t ablate_on(int count)
{
    int64_t began_ns = now_ns();
    int code = cupti_register || load() == 0 ? 0 : 999;
    if (!code)
        code = cupti_register((void *)on_request, (void *)on_complete);
    for (int i = 0; i < count && !code; i++)
        code = cupti_enable(kinds[i]);
    return code ? -code : now_ns() - began_ns;
}

int ablate_kind(int kind)
{
    if (!cupti_register && load() != 0)
        return 999;
    cupti_register((void *)on_request, (void *)on_complete);
    return cupti_enable(kind);
}

int64_t ablate_off(void)
{
    int64_t began_ns = now_ns();
    for (int i = 0; i < 6; i++)
        cupti_disable(kinds[i]);
    cupti_flush(1);
    return now_ns() - began_ns;
}

int64_t ablate_detach(void)
{
    int64_t began_ns = now_ns();
    cupti_flush(1);
    int code = cupti_finalize();
    return code ? -code : now_ns() - began_ns;
}
