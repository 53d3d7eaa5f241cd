/* SPDX-License-Identifier: MIT */
#include "live/live_slots.h"

#include <stdatomic.h>
#include <string.h>

enum { SLOTS = 2048, SLOT_BITS = 11, CHANNELS = 64, TRIES = 256 };

/* A slot is over when all its parts have ended and the host was through with it. How many parts
 * there will be is known only to some versions; for the others, silence decides. */
enum { QUIET_NS = 200000000 };
#define NEVER_RAN_NS INT64_C(60000000000)

enum slot_state { FREE, USED, CLOSING }; /* the low bits of a tag */

struct slot {
    _Atomic uint64_t tag; /* generation << 2 | state */
    _Atomic bool enqueued;
    _Atomic unsigned begun, ended;
    _Atomic int64_t first_ns, last_ns; /* of the parts' clock; 0: none */
    _Atomic int64_t touched_ns;        /* of the host's clock */
    _Atomic uint32_t shortest_ns, longest_ns;
    _Atomic bool gpu;
    _Atomic int64_t part_ns[CHANNELS]; /* when it began; 0: it has ended or never began */
    struct live_event event;
};

static struct slot slots[SLOTS];
static _Atomic uint64_t cursor, lost;
static _Atomic uint32_t groups;

/* ---- Handles: kind in 3 bits, channel in 7, slot in 11, the low 42 bits of the generation ---- */

enum { KIND_BITS = 3, CHANNEL_BITS = 7 };
#define GENERATIONS ((UINT64_C(1) << 42) - 1)

/* A pointer to nothing: a number in the shape that NCCL hands around. */
static void *pointer_of(uint64_t bits)
{
    void *pointer = NULL;
    memcpy(&pointer, &bits, sizeof pointer);
    return pointer;
}

static void *handle_of(enum live_handle_kind kind, unsigned channel, size_t slot, uint64_t gen)
{
    uint64_t bits = ((gen & GENERATIONS) << (KIND_BITS + CHANNEL_BITS + SLOT_BITS)) |
                    (slot << (KIND_BITS + CHANNEL_BITS)) | (channel << KIND_BITS) | kind;
    return pointer_of(bits);
}

enum live_handle_kind live_handle_kind(const void *handle)
{
    return (enum live_handle_kind)((uintptr_t)handle & ((1 << KIND_BITS) - 1));
}

/* The slot that a handle means, while it is still that one; NULL: stale. */
static struct slot *slot_of(const void *handle, enum live_handle_kind kind, uint64_t *tag)
{
    uintptr_t bits = (uintptr_t)handle;
    if (live_handle_kind(handle) != kind)
        return NULL;
    struct slot *slot = &slots[(bits >> (KIND_BITS + CHANNEL_BITS)) & (SLOTS - 1)];
    *tag = atomic_load_explicit(&slot->tag, memory_order_acquire);
    bool same = ((*tag >> 2) & GENERATIONS) == bits >> (KIND_BITS + CHANNEL_BITS + SLOT_BITS);
    return same && (*tag & 3) == USED ? slot : NULL;
}

static unsigned channel_of(const void *handle)
{
    return ((uintptr_t)handle >> KIND_BITS) & (CHANNELS - 1);
}

void *live_group_handle(void)
{
    uint32_t number = atomic_fetch_add_explicit(&groups, 1, memory_order_relaxed) + 1;
    return pointer_of(((uint64_t)number << KIND_BITS) | LIVE_HANDLE_GROUP);
}

uint32_t live_group_of(const void *handle)
{
    return live_handle_kind(handle) == LIVE_HANDLE_GROUP
               ? (uint32_t)((uintptr_t)handle >> KIND_BITS)
               : 0;
}

uint64_t live_slots_lost(void)
{
    return atomic_load_explicit(&lost, memory_order_relaxed);
}

/* ---- Closing: whoever turns USED into CLOSING reads the slot and frees it ---- */

static void close_slot(struct slot *slot, uint64_t tag)
{
    if (!atomic_compare_exchange_strong_explicit(&slot->tag, &tag, (tag & ~UINT64_C(3)) | CLOSING,
                                                 memory_order_acq_rel, memory_order_relaxed))
        return;
    struct live_event event = slot->event;
    int64_t first = atomic_load(&slot->first_ns), last = atomic_load(&slot->last_ns);
    event.kind = LIVE_RAN;
    event.dur_ns = first && last >= first ? last - first : -1;
    event.gpu_ns = atomic_load(&slot->gpu) ? first : 0;
    event.shortest_ns = atomic_load(&slot->shortest_ns);
    event.longest_ns = atomic_load(&slot->longest_ns);
    live_push(&event);
    atomic_store_explicit(&slot->tag, ((tag >> 2) + 1) << 2 | FREE, memory_order_release);
}

static bool all_parts_ended(const struct slot *slot)
{
    unsigned begun = atomic_load(&slot->begun);
    return begun > 0 && begun == atomic_load(&slot->ended) && atomic_load(&slot->enqueued);
}

static void close_if_over(struct slot *slot, uint64_t tag)
{
    if (all_parts_ended(slot) && slot->event.channels &&
        atomic_load(&slot->begun) >= slot->event.channels)
        close_slot(slot, tag);
}

void live_slots_sweep(bool all)
{
    int64_t now_ns = live_now_ns();
    for (size_t i = 0; i < SLOTS; i++) {
        uint64_t tag = atomic_load_explicit(&slots[i].tag, memory_order_acquire);
        if ((tag & 3) != USED)
            continue;
        int64_t quiet_ns = now_ns - atomic_load(&slots[i].touched_ns);
        bool never_ran = atomic_load(&slots[i].begun) == 0 && quiet_ns > NEVER_RAN_NS;
        if (never_ran || (all_parts_ended(&slots[i]) && (all || quiet_ns > QUIET_NS)))
            close_slot(&slots[i], tag);
    }
}

/* ---- What the job's threads call ---- */

static void fill(struct slot *slot, const struct live_event *event)
{
    atomic_store_explicit(&slot->enqueued, false, memory_order_relaxed);
    atomic_store_explicit(&slot->begun, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->ended, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->first_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->last_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->touched_ns, event->at_ns, memory_order_relaxed);
    atomic_store_explicit(&slot->shortest_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->longest_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->gpu, false, memory_order_relaxed);
    for (size_t i = 0; i < CHANNELS; i++)
        atomic_store_explicit(&slot->part_ns[i], 0, memory_order_relaxed);
    slot->event = *event;
}

void *live_slot_open(const struct live_event *event)
{
    for (size_t i = 0; i < TRIES; i++) {
        size_t at = atomic_fetch_add_explicit(&cursor, 1, memory_order_relaxed) % SLOTS;
        uint64_t tag = atomic_load_explicit(&slots[at].tag, memory_order_acquire);
        uint64_t gen = (tag >> 2) + 1;
        if ((tag & 3) != FREE ||
            !atomic_compare_exchange_strong_explicit(&slots[at].tag, &tag, gen << 2 | CLOSING,
                                                     memory_order_acq_rel, memory_order_relaxed))
            continue;
        fill(&slots[at], event);
        atomic_store_explicit(&slots[at].tag, gen << 2 | USED, memory_order_release);
        live_push(event);
        return handle_of(LIVE_HANDLE_CALL, 0, at, gen);
    }
    atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
    live_push(event);
    return NULL;
}

void live_slot_enqueued(void *handle)
{
    uint64_t tag;
    struct slot *slot = slot_of(handle, LIVE_HANDLE_CALL, &tag);
    if (!slot)
        return;
    atomic_store(&slot->enqueued, true);
    close_if_over(slot, tag);
}

static void at_least(_Atomic int64_t *value, int64_t bound)
{
    int64_t now = atomic_load(value);
    while (now < bound && !atomic_compare_exchange_weak(value, &now, bound))
        ;
}

static void at_most(_Atomic int64_t *value, int64_t bound)
{
    int64_t now = atomic_load(value);
    while ((now == 0 || now > bound) && !atomic_compare_exchange_weak(value, &now, bound))
        ;
}

void *live_slot_part_began(void *handle, unsigned channel, int64_t at_ns, bool gpu)
{
    uint64_t tag;
    struct slot *slot = slot_of(handle, LIVE_HANDLE_CALL, &tag);
    if (!slot || at_ns <= 0)
        return NULL;
    channel %= CHANNELS;
    atomic_store(&slot->gpu, gpu);
    atomic_store(&slot->part_ns[channel], at_ns);
    at_most(&slot->first_ns, at_ns);
    atomic_fetch_add(&slot->begun, 1);
    atomic_store(&slot->touched_ns, live_now_ns());
    return handle_of(LIVE_HANDLE_PART, channel, (size_t)(slot - slots), tag >> 2);
}

static void note_length(struct slot *slot, int64_t length_ns)
{
    uint32_t length = length_ns < 0 ? 0 : length_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)length_ns;
    uint32_t now = atomic_load(&slot->shortest_ns);
    while ((now == 0 || now > length) &&
           !atomic_compare_exchange_weak(&slot->shortest_ns, &now, length))
        ;
    now = atomic_load(&slot->longest_ns);
    while (now < length && !atomic_compare_exchange_weak(&slot->longest_ns, &now, length))
        ;
}

static void end_part(void *part, int64_t at_ns, bool told)
{
    uint64_t tag;
    struct slot *slot = slot_of(part, LIVE_HANDLE_PART, &tag);
    if (!slot)
        return;
    int64_t began_ns = atomic_exchange(&slot->part_ns[channel_of(part)], 0);
    if (!began_ns)
        return;                             /* ended already */
    if (told || !atomic_load(&slot->gpu)) { /* else the end on the GPU's clock got lost */
        note_length(slot, at_ns - began_ns);
        at_least(&slot->last_ns, at_ns);
    }
    atomic_store(&slot->touched_ns, live_now_ns());
    atomic_fetch_add(&slot->ended, 1);
    close_if_over(slot, tag);
}

void live_slot_part_ended(void *part, int64_t at_ns)
{
    end_part(part, at_ns, true);
}

void live_slot_part_stopped(void *part)
{
    end_part(part, live_now_ns(), false);
}
