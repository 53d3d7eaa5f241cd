/* SPDX-License-Identifier: MIT */
/*
 * Steps from what a rank enqueues. Collectives repeat from step to step, so the shortest period of
 * their sequence is a step; one of the rarest in it marks its beginning. Small ones (losses,
 * gradient norms, barriers) come when they like and do not count, unless there are no others.
 *
 * A period may be found too short at first (thirty layers gather alike): the first collective that
 * breaks it starts a search for a longer one that explains the break too.
 *
 * Steps are numbered from the marker's place on its communicator over the number of collectives on
 * it in a step: so all members of a communicator agree without talking.
 */
#include "live/live_agent.h"

#include <stdlib.h>
#include <string.h>

enum {
    KEPT = 8192,      /* collectives remembered: a power of two */
    LEAST_PROOF = 24, /* so many must repeat at least ... */
    TIMES = 3,        /* ... and the period so many times */
    TRY_EVERY = 8,
    SMALL_BYTES = 4096,
    ALL_SMALL = 64, /* after so many small ones and no other, small ones count */
};

struct live_period {
    uint64_t signature[KEPT];
    uint64_t seq[KEPT];
    uint64_t count;           /* taken so far */
    size_t length;            /* 0: not known */
    uint64_t broken_at;       /* count when a collective last broke the period; 0: never */
    uint64_t watched, breaks; /* collectives since the first break of late; how many broke it */
    uint64_t marker;          /* signature of the collective that begins a step */
    size_t marker_times, marker_seen; /* how often it comes in a step; how often since the last */
    uint64_t seq_per_step; /* collectives on the marker's communicator in a step, small ones too */
    bool numbered;         /* since the marker was chosen */
    uint64_t since_marker;
    int64_t number;
    uint64_t small;
    bool large_seen;
};

struct live_period *live_period_new(void)
{
    struct live_period *p = calloc(1, sizeof *p);
    if (p)
        p->number = -1;
    return p;
}

void live_period_free(struct live_period *period)
{
    free(period);
}

size_t live_period_length(const struct live_period *period)
{
    return period->length;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9fb21c651e98df25);
    return hash ^ (hash >> 29);
}

/* Ranks of other communicators in the same place of the job see the same. */
static uint64_t signature_of(const struct live_event *event)
{
    uint64_t hash = mix(mix(mix(1, event->op), event->count), event->type);
    return mix(hash, (uint64_t)(int64_t)live_comm(event->comm).size);
}

static uint64_t past(const struct live_period *p, uint64_t back)
{
    return p->signature[(p->count - 1 - back) % KEPT];
}

/* Do the last `proof` collectives repeat those `length` before? */
static bool repeats(const struct live_period *p, size_t length, size_t proof)
{
    for (size_t i = 0; i < proof; i++)
        if (past(p, i) != past(p, i + length))
            return false;
    return true;
}

/* Two steps are no step: the shortest period of all that was looked at. */
static size_t shortest_within(const struct live_period *p, size_t length, size_t proof)
{
    for (size_t part = 1; part <= length / 2; part++)
        if (length % part == 0 && repeats(p, part, proof + length - part))
            return part;
    return length;
}

/* The shortest period; when one was broken, one whose proof reaches over the break. */
static size_t find_length(const struct live_period *p)
{
    uint64_t there = p->count < KEPT ? p->count : KEPT;
    uint64_t reach = p->length ? p->count - p->broken_at + 1 : 0;
    for (size_t length = 1; length * TIMES <= there; length++) {
        size_t proof = length * (TIMES - 1) > LEAST_PROOF ? length * (TIMES - 1) : LEAST_PROOF;
        if (proof + length <= there && proof + length > reach && repeats(p, length, proof))
            return shortest_within(p, length, proof);
    }
    return 0;
}

static size_t times_in_step(const struct live_period *p, size_t length, uint64_t signature)
{
    size_t times = 0;
    for (size_t i = 0; i < length; i++)
        times += past(p, i) == signature;
    return times;
}

/* The rarest; of several the one with the smallest hash, which does not depend on where we are. */
static void choose_marker(struct live_period *p, size_t length)
{
    size_t rarest = SIZE_MAX, at = 0;
    for (size_t i = 0; i < length; i++) {
        size_t times = times_in_step(p, length, past(p, i));
        if (times < rarest || (times == rarest && past(p, i) < past(p, at))) {
            rarest = times;
            at = i;
        }
    }
    p->length = length;
    p->marker = past(p, at);
    p->marker_times = rarest;
    p->marker_seen = 0;
    p->numbered = false;
    p->since_marker = 0;
    p->broken_at = 0;
    p->watched = p->breaks = 0;
    p->seq_per_step =
        p->seq[(p->count - 1 - at) % KEPT] - p->seq[(p->count - 1 - at - length) % KEPT];
}

static void forget(struct live_period *p)
{
    p->length = 0;
    p->broken_at = 0;
    p->watched = p->breaks = 0;
}

static void search(struct live_period *p)
{
    bool wanted = p->length == 0 || p->broken_at;
    size_t found = wanted && p->count % TRY_EVERY == 0 ? find_length(p) : 0;
    if (found)
        choose_marker(p, found);
    else if (p->length && p->since_marker > 4 * p->length + 64)
        forget(p);
}

/* A collective that comes on top breaks the period for one step; where most break it over two, the
 * job does something else now. */
static void note_break(struct live_period *p, bool broke)
{
    if (broke)
        p->broken_at = p->count;
    if (!broke && !p->watched)
        return;
    p->watched++;
    p->breaks += broke;
    if (p->watched < 2 * p->length + LEAST_PROOF)
        return;
    bool other = 2 * p->breaks > p->watched;
    p->watched = p->breaks = 0;
    if (other)
        forget(p);
}

/* Small collectives do not count in the sequence, but they do in the numbers of their
 * communicator. */
static bool counts(struct live_period *p, const struct live_event *event)
{
    uint64_t bytes = event->count * live_type_bytes(event->type);
    if (bytes >= SMALL_BYTES && !p->large_seen) {
        p->large_seen = true;
        if (p->small > ALL_SMALL) { /* what was found among small ones is of no use */
            p->count = 0;
            forget(p);
        }
    }
    p->small += bytes < SMALL_BYTES;
    return bytes >= SMALL_BYTES || (!p->large_seen && p->small > ALL_SMALL);
}

static bool at_marker(struct live_period *p, const struct live_event *event,
                      struct live_boundary *out)
{
    if (++p->marker_seen < p->marker_times)
        return false;
    p->marker_seen = 0;
    p->since_marker = 0;
    int64_t place = p->seq_per_step ? (int64_t)(event->seq / p->seq_per_step) : 0;
    p->number = !p->numbered && place > p->number ? place : p->number + 1;
    p->numbered = true;
    *out = (struct live_boundary){p->number, event->at_ns, event->comm, event->seq};
    return true;
}

bool live_period_take(struct live_period *p, const struct live_event *event,
                      struct live_boundary *out)
{
    if (!counts(p, event))
        return false;
    uint64_t signature = signature_of(event);
    p->signature[p->count % KEPT] = signature;
    p->seq[p->count % KEPT] = event->seq;
    p->count++;
    p->since_marker++;
    if (p->length && p->count > p->length)
        note_break(p, past(p, p->length) != signature);
    search(p);
    return p->length && signature == p->marker && at_marker(p, event, out);
}
