/* SPDX-License-Identifier: MIT */
/*
 * Which calls on different ranks are one collective. Calls are put into channels: the process group
 * with its members where the trace names it, else the kind of operation on the n-th communication
 * stream. Within a channel, calls with the same sequence number belong together, else calls at the
 * same place in the order; an order is believed only when operation and size agree along it.
 */
#include "timeline/account.h"

#include "base/text.h"
#include "timeline/kinds.h"

#include <string.h>

/* One call seen from outside. Sorted by channel, then rank, then time. */
struct entry {
    uint64_t channel, signature;
    int64_t sequence;
    uint32_t rank, call;
};

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9fb21c651e98df25u;
    return hash ^ (hash >> 31);
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = mix(hash, (unsigned char)*text);
    return hash;
}

static const char *name_at(const struct knee_trace *trace, uint32_t row_plus_one)
{
    return row_plus_one ? trace->names[row_plus_one - 1] : "";
}

enum { STREAMS = 64 };

/* The communication streams of a rank in order of their numbers: numbers differ between ranks. */
static size_t comm_streams(const struct knee_rank *rank, int32_t *streams)
{
    size_t count = 0;
    for (size_t i = 0; i < rank->call_count; i++) {
        int32_t stream = rank->spans[rank->calls[i].span].stream;
        size_t at = 0;
        while (at < count && streams[at] < stream)
            at++;
        if ((at < count && streams[at] == stream) || count == STREAMS)
            continue;
        memmove(&streams[at + 1], &streams[at], (count - at) * sizeof *streams);
        streams[at] = stream;
        count++;
    }
    return count;
}

static uint64_t channel_of(const struct knee_rank_account *rank, const struct knee_call *call,
                           const int32_t *streams, size_t stream_count)
{
    if (call->group)
        return mix_text(mix_text(1, name_at(rank->trace, call->group)),
                        name_at(rank->trace, call->members));
    int32_t stream = rank->source->spans[call->span].stream;
    uint64_t place = 0;
    while (place < stream_count && streams[place] != stream)
        place++;
    return mix(mix(2, place), call->op);
}

static bool list_entries(const struct knee_account *account, struct entry **out, size_t *count)
{
    size_t total = 0;
    for (size_t r = 0; r < account->rank_count; r++)
        total += account->ranks[r].source->call_count;
    struct entry *entries = knee_resize(account->alloc, NULL, (total + 1) * sizeof *entries);
    struct entry *sorted = knee_resize(account->alloc, NULL, (total + 1) * sizeof *sorted);
    struct knee_sort_key *keys = knee_resize(account->alloc, NULL, 2 * (total + 1) * sizeof *keys);
    bool good = entries && sorted && keys;
    size_t n = 0;
    for (size_t r = 0; r < account->rank_count && good; r++) {
        const struct knee_rank_account *rank = &account->ranks[r];
        int32_t streams[STREAMS];
        size_t stream_count = comm_streams(rank->source, streams);
        for (size_t c = 0; c < rank->source->call_count; c++, n++) {
            const struct knee_call *call = &rank->source->calls[c];
            entries[n] = (struct entry){
                .channel = channel_of(rank, call, streams, stream_count),
                .signature = mix(mix(3, call->op), (uint64_t)call->bytes),
                .sequence = call->sequence,
                .rank = (uint32_t)r,
                .call = (uint32_t)c,
            };
            keys[n] = (struct knee_sort_key){entries[n].channel, n};
        }
    }
    if (good) { /* stable: within a channel by rank, then time */
        knee_sort(keys, keys + total, total);
        for (size_t i = 0; i < total; i++)
            sorted[i] = entries[keys[i].row];
    }
    if (entries)
        knee_resize(account->alloc, entries, 0);
    if (keys)
        knee_resize(account->alloc, keys, 0);
    if (!good && sorted)
        knee_resize(account->alloc, sorted, 0);
    *out = sorted;
    *count = total;
    return good;
}

/* The end of the rows that have the rank of row `from`. */
static size_t same_rank(const struct entry *entries, size_t count, size_t from)
{
    size_t to = from;
    while (to < count && entries[to].rank == entries[from].rank)
        to++;
    return to;
}

/* How far `b` must be moved against `a` for their signatures to agree along the overlap, as when
 * one rank's profiler started a little later. At least half must overlap. */
static bool find_shift(const struct entry *a, size_t a_count, const struct entry *b, size_t b_count,
                       int64_t *shift)
{
    int64_t most = (int64_t)(a_count > b_count ? a_count : b_count) / 2;
    most = most < 64 ? most : 64;
    for (int64_t step = 0; step <= 2 * most; step++) {
        int64_t s = step % 2 ? (step + 1) / 2 : -(step / 2);
        size_t agree = 0;
        bool differ = false;
        for (size_t i = 0; i < b_count && !differ; i++) {
            int64_t at = (int64_t)i + s;
            if (at < 0 || at >= (int64_t)a_count)
                continue;
            differ = a[at].signature != b[i].signature;
            agree += !differ;
        }
        if (!differ && agree * 2 >= (a_count < b_count ? a_count : b_count) && agree > 0) {
            *shift = s;
            return true;
        }
    }
    return false;
}

static int64_t group_size_of(const struct knee_account *account, const struct entry *entry)
{
    const struct knee_call *call = &account->ranks[entry->rank].source->calls[entry->call];
    return call->group_size > 0 ? call->group_size : account->world_size;
}

static void add_instance(const struct knee_account *account, struct knee_matches *m,
                         const struct entry *example, size_t first)
{
    size_t count = m->member_count - first;
    const struct knee_call *call = &account->ranks[example->rank].source->calls[example->call];
    int64_t size = group_size_of(account, example);
    struct knee_instance *instance = &m->instances[m->instance_count++];
    *instance = (struct knee_instance){
        .first = first,
        .count = count,
        .complete = count > 1 && (size < 0 ? account->rank_count == count : (int64_t)count == size),
        .barrier = knee_op_is_barrier(call->op),
    };
    for (size_t i = first; i < m->member_count; i++)
        m->instance_of[m->members[i].rank][m->members[i].call] = (uint32_t)m->instance_count;
}

/* Members of one channel share a place; `keys` is sorted by place. */
static void gather(const struct knee_account *account, struct knee_matches *m,
                   const struct entry *entries, const struct knee_sort_key *keys, size_t count)
{
    for (size_t i = 0; i < count;) {
        size_t first = m->member_count, j = i;
        for (; j < count && keys[j].key == keys[i].key; j++) {
            const struct entry *e = &entries[keys[j].row];
            /* A rank cannot take part twice: the second is another collective. */
            if (m->member_count > first && m->members[m->member_count - 1].rank == e->rank)
                continue;
            m->members[m->member_count++] = (struct knee_member){e->rank, e->call};
        }
        add_instance(account, m, &entries[keys[i].row], first);
        i = j;
    }
}

static void match_channel(const struct knee_account *account, struct knee_matches *m,
                          const struct entry *entries, size_t count, struct knee_sort_key *keys)
{
    bool sequenced = true;
    for (size_t i = 0; i < count; i++)
        sequenced = sequenced && entries[i].sequence >= 0;
    size_t first_end = same_rank(entries, count, 0), used = 0;
    for (size_t from = 0; from < count;) {
        size_t to = same_rank(entries, count, from);
        int64_t shift = 0;
        bool fits = sequenced || from == 0 ||
                    find_shift(entries, first_end, entries + from, to - from, &shift);
        for (size_t i = from; i < to && fits; i++) {
            uint64_t place = sequenced ? (uint64_t)entries[i].sequence
                                       : (uint64_t)((int64_t)(i - from) + shift + (1 << 20));
            keys[used++] = (struct knee_sort_key){place, i};
        }
        from = to;
    }
    knee_sort(keys, keys + used, used);
    gather(account, m, entries, keys, used);
}

static bool make_room(const struct knee_account *account, struct knee_matches *m, size_t calls)
{
    const struct knee_alloc *alloc = account->alloc;
    m->alloc = alloc;
    m->rank_count = account->rank_count;
    m->instances = knee_resize(alloc, NULL, (calls + 1) * sizeof *m->instances);
    m->members = knee_resize(alloc, NULL, (calls + 1) * sizeof *m->members);
    m->instance_of = knee_resize(alloc, NULL, (account->rank_count + 1) * sizeof *m->instance_of);
    if (m->instance_of)
        memset(m->instance_of, 0, (account->rank_count + 1) * sizeof *m->instance_of);
    if (!m->instances || !m->members || !m->instance_of)
        return false;
    for (size_t r = 0; r < account->rank_count; r++) {
        size_t size = (account->ranks[r].source->call_count + 1) * sizeof **m->instance_of;
        m->instance_of[r] = knee_resize(alloc, NULL, size);
        if (!m->instance_of[r])
            return false;
        memset(m->instance_of[r], 0, size);
    }
    return true;
}

bool knee_match(const struct knee_account *account, struct knee_matches *out)
{
    struct entry *entries = NULL;
    size_t count = 0;
    memset(out, 0, sizeof *out);
    if (!list_entries(account, &entries, &count))
        return false;
    struct knee_sort_key *keys = knee_resize(account->alloc, NULL, 2 * (count + 1) * sizeof *keys);
    bool good = keys && make_room(account, out, count);
    for (size_t from = 0, to; from < count && good; from = to) {
        for (to = from; to < count && entries[to].channel == entries[from].channel;)
            to++;
        match_channel(account, out, entries + from, to - from, keys);
    }
    if (keys)
        knee_resize(account->alloc, keys, 0);
    knee_resize(account->alloc, entries, 0);
    if (!good)
        knee_matches_release(out);
    return good;
}

/* The complete barriers, by their last starts. */
static bool put_in_order(struct knee_matches *m)
{
    struct knee_sort_key *keys =
        knee_resize(m->alloc, NULL, 2 * (m->instance_count + 1) * sizeof *keys);
    m->order = keys;
    m->order_count = 0;
    for (size_t i = 0; i < m->instance_count && keys; i++)
        if (m->instances[i].complete && m->instances[i].barrier)
            keys[m->order_count++] =
                (struct knee_sort_key){knee_sort_signed(m->instances[i].last_start_ns), i};
    if (keys)
        knee_sort(keys, keys + m->order_count, m->order_count);
    return keys != NULL;
}

bool knee_match_times(const struct knee_account *account, struct knee_matches *m)
{
    for (size_t i = 0; i < m->instance_count; i++) {
        struct knee_instance *instance = &m->instances[i];
        instance->last_start_ns = instance->last_end_ns = INT64_MIN;
        for (size_t k = instance->first; k < instance->first + instance->count; k++) {
            const struct knee_rank_account *rank = &account->ranks[m->members[k].rank];
            const struct knee_call *call = &rank->source->calls[m->members[k].call];
            const struct knee_span *span = &rank->source->spans[call->span];
            int64_t start = knee_common_time(rank, span->start_ns);
            int64_t end = knee_common_time(rank, span->end_ns);
            instance->last_start_ns =
                start > instance->last_start_ns ? start : instance->last_start_ns;
            instance->last_end_ns = end > instance->last_end_ns ? end : instance->last_end_ns;
        }
    }
    return put_in_order(m);
}

void knee_matches_release(struct knee_matches *m)
{
    if (m->instances)
        knee_resize(m->alloc, m->instances, 0);
    if (m->members)
        knee_resize(m->alloc, m->members, 0);
    if (m->order)
        knee_resize(m->alloc, m->order, 0);
    for (size_t r = 0; m->instance_of && r < m->rank_count; r++)
        if (m->instance_of[r])
            knee_resize(m->alloc, m->instance_of[r], 0);
    if (m->instance_of)
        knee_resize(m->alloc, m->instance_of, 0);
    memset(m, 0, sizeof *m);
}
