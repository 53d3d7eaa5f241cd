/* SPDX-License-Identifier: MIT */
/* The queue between the job's threads and the writer, and the table of communicators: fixed memory,
 * no locks. A cell's turn says whose it is: turn = place: free for the writer of that place; turn =
 * place + 1: filled. */
#include "live/live_agent.h"

#include <stdatomic.h>
#include <string.h>

enum { CELLS = 1 << 14 };

struct cell {
    _Atomic uint64_t turn; /* less the cell's own number, so that zeroed memory is a free queue */
    struct live_event event;
};

static struct cell cells[CELLS];
static _Atomic uint64_t head, tail, too_many;

bool live_push(const struct live_event *event)
{
    uint64_t place = atomic_load_explicit(&head, memory_order_relaxed);
    for (;;) {
        struct cell *cell = &cells[place % CELLS];
        uint64_t turn = atomic_load_explicit(&cell->turn, memory_order_acquire) + place % CELLS;
        if (turn == place) {
            if (atomic_compare_exchange_weak_explicit(&head, &place, place + 1,
                                                      memory_order_relaxed, memory_order_relaxed)) {
                cell->event = *event;
                atomic_store_explicit(&cell->turn, place + 1 - place % CELLS, memory_order_release);
                return true;
            }
        } else if (turn < place) {
            atomic_fetch_add_explicit(&too_many, 1, memory_order_relaxed);
            return false;
        } else {
            place = atomic_load_explicit(&head, memory_order_relaxed);
        }
    }
}

bool live_pull(struct live_event *event)
{
    uint64_t place = atomic_load_explicit(&tail, memory_order_relaxed);
    struct cell *cell = &cells[place % CELLS];
    if (atomic_load_explicit(&cell->turn, memory_order_acquire) + place % CELLS != place + 1)
        return false;
    *event = cell->event;
    atomic_store_explicit(&cell->turn, place + CELLS - place % CELLS, memory_order_release);
    atomic_store_explicit(&tail, place + 1, memory_order_relaxed);
    return true;
}

uint64_t live_pushed_too_many(void)
{
    return atomic_load_explicit(&too_many, memory_order_relaxed);
}

/* ---- Communicators ---- */

enum { PAIRS = 4096 }; /* counters of sends and receives, shared by chance when there are more */

struct comm {
    _Atomic int state; /* 0 free, 1 being filled, 2 there */
    uint64_t id;
    int rank, size;
    _Atomic uint64_t next;
};
static struct comm comms[LIVE_COMMS];
static _Atomic uint64_t pairs[PAIRS];

uint16_t live_comm_row(uint64_t id, int rank, int size)
{
    for (unsigned i = 0; i < LIVE_COMMS - 1; i++) {
        int state = atomic_load_explicit(&comms[i].state, memory_order_acquire);
        if (state == 0 && atomic_compare_exchange_strong(&comms[i].state, &state, 1)) {
            comms[i].id = id;
            comms[i].rank = rank;
            comms[i].size = size;
            atomic_store_explicit(&comms[i].state, 2, memory_order_release);
            return (uint16_t)i;
        }
        while (state == 1) /* another thread fills it: a few instructions */
            state = atomic_load_explicit(&comms[i].state, memory_order_acquire);
        if (comms[i].id == id && comms[i].rank == rank)
            return (uint16_t)i;
    }
    return LIVE_COMMS - 1;
}

struct live_comm live_comm(uint16_t row)
{
    const struct comm *c = &comms[row < LIVE_COMMS ? row : LIVE_COMMS - 1];
    if (atomic_load_explicit(&c->state, memory_order_acquire) != 2)
        return (struct live_comm){0, -1, -1};
    return (struct live_comm){c->id, c->rank, c->size};
}

uint64_t live_comm_next(uint16_t row)
{
    return atomic_fetch_add_explicit(&comms[row].next, 1, memory_order_relaxed);
}

uint64_t live_pair_next(uint16_t row, uint8_t op, int peer)
{
    uint64_t hash =
        ((uint64_t)row << 40 ^ (uint64_t)op << 32 ^ (uint32_t)peer) * UINT64_C(0x9fb21c651e98df25);
    return atomic_fetch_add_explicit(&pairs[hash >> 52], 1, memory_order_relaxed);
}
