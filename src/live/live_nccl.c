/* SPDX-License-Identifier: MIT */
/*
 * NCCL's profiler interface, versions 1 to 6, from one object: NCCL takes the newest it knows.
 * Where a member of a descriptor lies in which version is a table (layouts); offsets are those of
 * the public headers on 64-bit machines (docs/reference/watch.md). NCCL never waits for anything
 * here: events go into slots and a queue.
 */
#include "live/live_slots.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Bits of events, and the one state that matters. */
enum {
    EVENT_GROUP = 1,
    EVENT_COLL = 2,
    EVENT_P2P = 4,
    EVENT_PROXY_OP = 8,
    EVENT_KERNEL_CH = 64,
    STATE_KERNEL_CH_STOP = 22,
};

enum { NONE = -1 };

struct layout {
    int api;
    bool wide_type; /* the type of event has 8 bytes, else one */
    bool words;     /* names are text, else numbers of one byte */
    int hash;       /* the communicator; NONE: it came with init */
    struct {
        int seq, func, count, type, channels, algo, proto, group;
    } coll;
    struct {
        int func, type, count, peer, channels, group;
    } p2p;
    bool kernel_ch;
    int kernel_timer; /* the GPU's clock in a kernel's event; NONE: take the host's */
};

/* group NONE: the parent is the group. */
static const struct layout layouts[] = {
    {1,
     false,
     false,
     32,
     {40, 48, 72, 84, 104, 106, 107, NONE},
     {40, 56, 64, 72, NONE, NONE},
     false,
     NONE},
    {2,
     false,
     true,
     32,
     {40, 48, 72, 88, 104, 112, 120, NONE},
     {40, 56, 64, 72, NONE, NONE},
     false,
     NONE},
    {3,
     false,
     true,
     32,
     {40, 48, 72, 88, 96, 104, 112, NONE},
     {40, 56, 64, 72, NONE, NONE},
     true,
     NONE},
    {4,
     false,
     true,
     NONE,
     {24, 32, 56, 72, 80, 88, 96, NONE},
     {24, 40, 48, 56, 60, NONE},
     true,
     32},
    {5, true, true, NONE, {24, 32, 56, 72, 80, 88, 96, 104}, {24, 40, 48, 56, 60, 64}, true, 32},
    {6, true, true, NONE, {24, 32, 56, 72, 80, 88, 96, 104}, {24, 40, 48, 56, 60, 64}, true, 32},
};

/* What init() gives as context: one per communicator, never freed, for NCCL may call late. Older
 * versions name the communicator with every call. */
struct context {
    const struct layout *layout;
    uint16_t comm;
};
static struct context contexts[LIVE_COMMS];
static _Atomic unsigned context_count;

/* ---- Members of a descriptor ---- */

static uint64_t member(const void *descr, int offset, size_t size)
{
    uint64_t value = 0;
    if (offset != NONE)
        memcpy(&value, (const char *)descr + offset, size);
    return value;
}

static const char *text_at(const void *descr, int offset)
{
    const char *text = NULL;
    memcpy(&text, (const char *)descr + offset, sizeof text);
    return text;
}

static void *handle_at(const void *descr, int offset)
{
    void *handle = NULL;
    memcpy(&handle, (const char *)descr + offset, sizeof handle);
    return handle;
}

static uint8_t name_at(const struct layout *l, const void *descr, int offset,
                       uint8_t (*by_name)(const char *), uint8_t (*by_number)(unsigned))
{
    if (offset == NONE)
        return 0;
    return l->words ? by_name(text_at(descr, offset))
                    : by_number((unsigned)member(descr, offset, 1));
}

static uint16_t comm_of(const struct context *c, const void *descr)
{
    if (c->layout->hash == NONE)
        return c->comm;
    return live_comm_row(member(descr, c->layout->hash, 8), (int)(int32_t)member(descr, 16, 4), -1);
}

static uint32_t group_at(const void *descr, int offset)
{
    return live_group_of(handle_at(descr, offset == NONE ? 8 : offset));
}

/* ---- Events ---- */

static void *start_coll(const struct context *c, const void *descr)
{
    const struct layout *l = c->layout;
    struct live_event event = {
        .kind = LIVE_ENQUEUED,
        .op = name_at(l, descr, l->coll.func, live_op_of, live_op_numbered),
        .algo = name_at(l, descr, l->coll.algo, live_algo_of, live_algo_numbered),
        .proto = name_at(l, descr, l->coll.proto, live_proto_of, live_proto_numbered),
        .type = name_at(l, descr, l->coll.type, live_type_of, live_type_numbered),
        .channels = (uint8_t)member(descr, l->coll.channels, 1),
        .comm = comm_of(c, descr),
        .peer = -1,
        .launch = group_at(descr, l->coll.group),
        .at_ns = live_now_ns(),
        .sn = member(descr, l->coll.seq, 8),
        .count = member(descr, l->coll.count, 8),
    };
    event.seq = live_comm_next(event.comm);
    return live_slot_open(&event);
}

static void *start_p2p(const struct context *c, const void *descr)
{
    const struct layout *l = c->layout;
    struct live_event event = {
        .kind = LIVE_ENQUEUED,
        .op = name_at(l, descr, l->p2p.func, live_op_of, live_op_numbered),
        .type = name_at(l, descr, l->p2p.type, live_type_of, live_type_numbered),
        .channels = (uint8_t)member(descr, l->p2p.channels, 1),
        .pair = true,
        .comm = comm_of(c, descr),
        .peer = (int32_t)member(descr, l->p2p.peer, 4),
        .launch = group_at(descr, l->p2p.group),
        .at_ns = live_now_ns(),
        .count = member(descr, l->p2p.count, 8),
    };
    event.seq = live_pair_next(event.comm, event.op, event.peer);
    return live_slot_open(&event);
}

static void *start_kernel(const struct context *c, const void *descr)
{
    int timer = c->layout->kernel_timer;
    int64_t at_ns = timer == NONE ? live_now_ns() : (int64_t)member(descr, timer, 8);
    return live_slot_part_began(handle_at(descr, 8), (unsigned)member(descr, 24, 1), at_ns,
                                timer != NONE);
}

static void *start_event(const struct context *c, const void *descr)
{
    uint64_t type = member(descr, 0, c->layout->wide_type ? 8 : 1);
    switch (type) {
    case EVENT_GROUP: return live_group_handle();
    case EVENT_COLL: return start_coll(c, descr);
    case EVENT_P2P: return start_p2p(c, descr);
    case EVENT_KERNEL_CH: return start_kernel(c, descr);
    case EVENT_PROXY_OP:
        /* without times of kernels, those of the network are the next best */
        return c->layout->kernel_ch
                   ? NULL
                   : live_slot_part_began(handle_at(descr, 8), (unsigned)member(descr, 28, 1),
                                          live_now_ns(), false);
    default: return NULL;
    }
}

/* One callback in 61 is timed, for all: two more looks at the clock would cost as much as the rest.
 * A prime, or it would be the same callback in every step. */
enum { TIMED_ONE_IN = 61 };
static _Thread_local unsigned calls_here;

static int64_t timer_begin(void)
{
    return calls_here++ % TIMED_ONE_IN == 0 ? live_now_ns() : 0;
}

static void timer_end(int64_t began_ns)
{
    if (began_ns)
        live_took_ns((live_now_ns() - began_ns) * TIMED_ONE_IN);
}

static int nccl_start(void *context, void **handle, const void *descr)
{
    if (handle)
        *handle = NULL;
    if (!live_listens() || !context || !handle || !descr)
        return 0;
    int64_t began_ns = timer_begin();
    *handle = start_event(context, descr);
    timer_end(began_ns);
    return 0;
}

static int nccl_stop(void *handle)
{
    if (!live_listens())
        return 0;
    int64_t began_ns = timer_begin();
    if (live_handle_kind(handle) == LIVE_HANDLE_CALL)
        live_slot_enqueued(handle);
    else if (live_handle_kind(handle) == LIVE_HANDLE_PART)
        live_slot_part_stopped(handle);
    timer_end(began_ns);
    return 0;
}

/* The GPU's clock comes with this state since version 4; before, the stop is the end. */
static int nccl_record(void *handle, int state, const void *args)
{
    if (!live_listens() || state != STATE_KERNEL_CH_STOP || !args ||
        live_handle_kind(handle) != LIVE_HANDLE_PART)
        return 0;
    int64_t began_ns = timer_begin();
    live_slot_part_ended(handle, (int64_t)member(args, 0, 8));
    timer_end(began_ns);
    return 0;
}

static int nccl_record_older(void *handle, int state, const void *args)
{
    (void)handle, (void)state, (void)args;
    return 0;
}

static int nccl_finalize(void *context)
{
    (void)context; /* NCCL may still stop what it began: the slots know by themselves */
    return 0;
}

/* ---- Init ---- */

/* 22809: 2.28.9. 0: not found. */
static int nccl_version(void)
{
    int (*get)(int *) = NULL;
    int version = 0;
    void *symbol = dlsym(RTLD_DEFAULT, "ncclGetVersion");
    void *library = symbol ? NULL : dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
    if (library)
        symbol = dlsym(library, "ncclGetVersion");
    memcpy(&get, &symbol, sizeof get);
    if (get && get(&version) != 0)
        version = 0;
    return version;
}

/* From 2.31.0 to 2.31.2 times of kernels cost a tenth of the bandwidth (NVIDIA/nccl#2355). */
static bool kernel_times_are_dear(int version)
{
    return version >= 23100 && version <= 23102;
}

/* NCCL has one mask for all communicators and looks at it at every call. */
static int *_Atomic mask_at;
static _Atomic int mask_wanted;

void live_nccl_listen(bool on)
{
    int *mask = atomic_load(&mask_at);
    if (mask)
        __atomic_store_n(mask, on ? atomic_load(&mask_wanted) : 0, __ATOMIC_RELAXED);
}

static int mask_of(const struct layout *l)
{
    int version = nccl_version();
    const char *why = "";
    bool kernels = l->kernel_ch;
    if (!kernels)
        why = "this NCCL does not tell; times are those of its network thread";
    else if (kernel_times_are_dear(version) && !live_config()->kernel_times) {
        kernels = false;
        why =
            "on NCCL 2.31.0 to 2.31.2 they cost a tenth of the bandwidth; KNEE_LIVE_KERNEL_TIMES=1 "
            "takes them all the same";
    }
    live_about_nccl(l->api, version, kernels && l->kernel_timer != NONE, why);
    return EVENT_GROUP | EVENT_COLL | EVENT_P2P | (kernels ? EVENT_KERNEL_CH : 0) |
           (l->kernel_ch ? 0 : EVENT_PROXY_OP);
}

/* Fails (and NCCL goes on without a profiler) when the agent is off, and for communicators past the
 * limit: if two of them shared a row, calls would be counted for the wrong one. */
static int begin(int api, void **context, int *mask, uint64_t id, int rank, int size)
{
    const struct layout *l = &layouts[api - 1];
    if (!context || !mask || !live_start(LIVE_FROM_NCCL))
        return 1;
    static int told;
    unsigned row = atomic_fetch_add(&context_count, 1);
    if (row >= LIVE_COMMS) {
        atomic_fetch_sub(&context_count, 1);
        live_say(&told, "more than %d communicators: the calls of further ones are not recorded",
                 LIVE_COMMS);
        return 1;
    }
    contexts[row].layout = l;
    if (l->hash == NONE)
        contexts[row].comm = live_comm_row(id, rank, size);
    live_gpu_here();
    atomic_store(&mask_wanted, mask_of(l));
    atomic_store(&mask_at, mask);
    live_nccl_listen(live_listens());
    *context = &contexts[row];
    return 0;
}

static int init_v1(void **context, int *mask)
{
    return begin(1, context, mask, 0, -1, -1);
}
static int init_v2(void **context, int *mask)
{
    return begin(2, context, mask, 0, -1, -1);
}
static int init_v3(void **context, int *mask)
{
    return begin(3, context, mask, 0, -1, -1);
}
static int init_v4(void **context, int *mask, const char *name, uint64_t id, int nodes, int size,
                   int rank, void *logger)
{
    (void)name, (void)nodes, (void)logger;
    return begin(4, context, mask, id, rank, size);
}
static int init_v5(void **context, uint64_t id, int *mask, const char *name, int nodes, int size,
                   int rank, void *logger)
{
    (void)name, (void)nodes, (void)logger;
    return begin(5, context, mask, id, rank, size);
}
static int init_v6(void **context, uint64_t id, int *mask, const char *name, int nodes, int size,
                   int rank, void *logger)
{
    (void)name, (void)nodes, (void)logger;
    return begin(6, context, mask, id, rank, size);
}

/* ---- What NCCL looks for. Six pointers in this order, in all versions ---- */

typedef int init_older(void **, int *);
typedef int init_fourth(void **, int *, const char *, uint64_t, int, int, int, void *);
typedef int init_newer(void **, uint64_t, int *, const char *, int, int, int, void *);

#define PROFILER(version, init_type, record)                                                       \
    extern const struct live_profiler_v##version {                                                 \
        const char *name;                                                                          \
        init_type *init;                                                                           \
        int (*start)(void *, void **, const void *);                                               \
        int (*stop)(void *);                                                                       \
        int (*state)(void *, int, const void *);                                                   \
        int (*finalize)(void *);                                                                   \
    } ncclProfiler_v##version;                                                                     \
    LIVE_EXPORT const struct live_profiler_v##version ncclProfiler_v##version = {                  \
        "knee", init_v##version, nccl_start, nccl_stop, record, nccl_finalize}

PROFILER(1, init_older, nccl_record_older);
PROFILER(2, init_older, nccl_record_older);
PROFILER(3, init_older, nccl_record_older);
PROFILER(4, init_fourth, nccl_record);
PROFILER(5, init_newer, nccl_record);
PROFILER(6, init_newer, nccl_record);
