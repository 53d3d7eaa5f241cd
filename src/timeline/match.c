/* SPDX-License-Identifier: MIT */
/*
 * Which calls on different ranks are one collective. Calls are put into channels: the process group
 * with its members where the trace names it, else the kind of operation on the n-th communication
 * stream; a send and its receive meet in the channel of their pair. Within a channel, calls with
 * the same sequence number belong together, else calls at the same place in the order; an order is
 * believed only when the calls agree along it.
 *
 * A rendezvous is a collective whose members end together: all-reduces and similar ones always;
 * all-to-alls and pairs of send and receive if no member ended before the last had arrived, since
 * each needs data from the others; any other call if its own ends agree, once the clocks do. If
 * members are missing, the last one present gives a lower bound on the waiting.
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

/* The place of `rank` in a list of members such as "[0, 4, 8, 12]"; -1: it is not in it. */
static int64_t place_in(const char *members, int64_t rank)
{
    int64_t place = 0;
    for (const char *p = members; *p;) {
        if (*p < '0' || *p > '9') {
            p++;
            continue;
        }
        int64_t number = 0;
        for (; *p >= '0' && *p <= '9'; p++)
            number = number < 100000000 ? number * 10 + (*p - '0') : number;
        if (number == rank)
            return place;
        place++;
    }
    return -1;
}

/* What sets calls apart that are not made together: a pair and its direction. Peers are numbered
 * inside their group. 0: the call goes to all. */
static uint64_t pair_of(const struct knee_rank_account *rank, const struct knee_call *call)
{
    if (call->op != KNEE_OP_SEND_RECV)
        return 0;
    const char *members = name_at(rank->trace, call->members);
    int64_t own = *members ? place_in(members, rank->rank) : rank->rank;
    if (call->peer < 0 || own < 0)
        return 1;
    return mix(mix(4, (uint64_t)(call->sends ? own : call->peer)),
               (uint64_t)(call->sends ? call->peer : own));
}

/* Threads that share the work are no streams: which of them takes a call is chance. */
static bool is_pooled(const struct knee_rank_account *rank)
{
    return strcmp(rank->trace->format, "cpu") == 0;
}

static uint64_t channel_of(const struct knee_rank_account *rank, const struct knee_call *call,
                           const int32_t *streams, size_t stream_count)
{
    uint64_t pair = pair_of(rank, call);
    if (call->group)
        return mix(mix_text(mix_text(1, name_at(rank->trace, call->group)),
                            name_at(rank->trace, call->members)),
                   pair);
    if (is_pooled(rank))
        return mix(mix(mix(5, call->op), (uint64_t)call->bytes), pair);
    int32_t stream = rank->source->spans[call->span].stream;
    uint64_t place = 0;
    while (place < stream_count && streams[place] != stream)
        place++;
    return mix(mix(mix(2, place), call->op), pair);
}

/* What calls at the same place must agree in. Sizes of the others differ from rank to rank. */
static uint64_t signature_of(const struct knee_call *call)
{
    bool even = call->op == KNEE_OP_ALL_REDUCE || call->op == KNEE_OP_ALL_GATHER ||
                call->op == KNEE_OP_REDUCE_SCATTER;
    enum knee_op op = call->op == KNEE_OP_ALL_TO_ALLV ? KNEE_OP_ALL_TO_ALL : call->op;
    return mix(mix(3, op), even ? (uint64_t)call->bytes : 0);
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
                .channel =
                    channel_of(rank, call, streams, stream_count) + (account->other_steps ? r : 0),
                .signature = signature_of(call),
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
    knee_resize(account->alloc, entries, 0);
    knee_resize(account->alloc, keys, 0);
    if (!good)
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

/* Do signatures agree along the overlap when `b` is moved by `shift`? At least half must overlap.
 */
static bool agrees(const struct entry *a, size_t a_count, const struct entry *b, size_t b_count,
                   int64_t shift)
{
    size_t agree = 0;
    for (size_t i = 0; i < b_count; i++) {
        int64_t at = (int64_t)i + shift;
        if (at < 0 || at >= (int64_t)a_count)
            continue;
        if (a[at].signature != b[i].signature)
            return false;
        agree++;
    }
    return agree > 0 && agree * 2 >= (a_count < b_count ? a_count : b_count);
}

static int64_t end_of(const struct knee_account *account, const struct entry *entry)
{
    const struct knee_rank_account *rank = &account->ranks[entry->rank];
    return knee_common_time(rank,
                            rank->source->spans[rank->source->calls[entry->call].span].end_ns);
}

/* How far apart the ends are, in the mean, when `b` is moved by `shift`. */
static double apart(const struct knee_account *account, const struct entry *a, size_t a_count,
                    const struct entry *b, size_t b_count, int64_t shift)
{
    double sum = 0, count = 0;
    for (size_t i = 0; i < b_count; i++) {
        int64_t at = (int64_t)i + shift;
        if (at < 0 || at >= (int64_t)a_count)
            continue;
        double difference = (double)end_of(account, &b[i]) - (double)end_of(account, &a[at]);
        sum += difference < 0 ? -difference : difference;
        count++;
    }
    return count > 0 ? sum / count : 0;
}

/* How far `b` must be moved against `a` for their signatures to agree along the overlap, as when
 * one rank's profiler started a little later. Of equally many calls the first move that agrees is
 * taken; else, of the moves that agree, the one whose ends lie nearest. */
static bool find_shift(const struct knee_account *account, const struct entry *a, size_t a_count,
                       const struct entry *b, size_t b_count, int64_t *shift)
{
    int64_t most = (int64_t)(a_count > b_count ? a_count : b_count) / 2;
    most = most < 64 ? most : 64;
    double nearest = 0;
    int found = 0;
    for (int64_t step = 0; step <= 2 * most && found < 4; step++) {
        int64_t s = step % 2 ? (step + 1) / 2 : -(step / 2);
        if (!agrees(a, a_count, b, b_count, s))
            continue;
        double distance = apart(account, a, a_count, b, b_count, s);
        if (found++ == 0 || distance < nearest) {
            nearest = distance;
            *shift = s;
        }
        if (a_count == b_count)
            break;
    }
    return found > 0;
}

/* How many take part in a call; -1: not known. */
static int64_t group_size_of(const struct knee_account *account, const struct knee_call *call)
{
    if (call->op == KNEE_OP_SEND_RECV && call->peer >= 0)
        return 2;
    return call->group_size > 0 ? call->group_size : account->world_size;
}

static void add_instance(const struct knee_account *account, struct knee_matches *m,
                         const struct entry *example, size_t first)
{
    size_t count = m->member_count - first;
    const struct knee_call *call = &account->ranks[example->rank].source->calls[example->call];
    int64_t size = group_size_of(account, call);
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
                    find_shift(account, entries, first_end, entries + from, to - from, &shift);
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
    knee_resize(account->alloc, keys, 0);
    knee_resize(account->alloc, entries, 0);
    if (!good)
        knee_matches_release(out);
    return good;
}

/* The rendezvous, by their last starts. */
static bool put_in_order(struct knee_matches *m)
{
    struct knee_sort_key *keys =
        knee_resize(m->alloc, NULL, 2 * (m->instance_count + 1) * sizeof *keys);
    m->order = keys;
    m->order_count = 0;
    for (size_t i = 0; i < m->instance_count && keys; i++)
        if (m->instances[i].rendezvous)
            keys[m->order_count++] =
                (struct knee_sort_key){knee_sort_signed(m->instances[i].last_start_ns), i};
    if (keys)
        knee_sort(keys, keys + m->order_count, m->order_count);
    return keys != NULL;
}

#define TOGETHER_NS 50000 /* ends of one collective on one host: 49 us at most over 84 of them */

/* First to start and to end of an instance whose last are known. */
struct firsts {
    int64_t start_ns, end_ns;
};

/* Ends agree within a tenth of how far starts lie apart, or within what clocks and scheduling
 * leave. */
static bool ends_together(const struct knee_account *account, const struct knee_instance *instance,
                          struct firsts first)
{
    int64_t allowed = (instance->last_start_ns - first.start_ns) / 10;
    allowed = allowed > TOGETHER_NS ? allowed : TOGETHER_NS;
    allowed = allowed > 2 * account->residual_ns ? allowed : 2 * account->residual_ns;
    return instance->last_end_ns - first.end_ns <= allowed;
}

static bool is_rendezvous(const struct knee_account *account, const struct knee_instance *instance,
                          const struct knee_call *call, struct firsts first)
{
    bool needs_all = call->op == KNEE_OP_ALL_TO_ALL || call->op == KNEE_OP_ALL_TO_ALLV ||
                     (call->op == KNEE_OP_SEND_RECV && call->peer >= 0);
    if (instance->count < 2)
        return false;
    return instance->barrier || (needs_all && first.end_ns >= instance->last_start_ns) ||
           ends_together(account, instance, first);
}

static void set_times(const struct knee_account *account, struct knee_matches *m,
                      struct knee_instance *instance)
{
    struct firsts first = {INT64_MAX, INT64_MAX};
    const struct knee_call *call = NULL;
    instance->last_start_ns = instance->last_end_ns = INT64_MIN;
    for (size_t k = instance->first; k < instance->first + instance->count; k++) {
        const struct knee_rank_account *rank = &account->ranks[m->members[k].rank];
        const struct knee_span *span;
        call = &rank->source->calls[m->members[k].call];
        span = &rank->source->spans[call->span];
        int64_t start = knee_common_time(rank, span->start_ns);
        int64_t end = knee_common_time(rank, span->end_ns);
        first.start_ns = start < first.start_ns ? start : first.start_ns;
        first.end_ns = end < first.end_ns ? end : first.end_ns;
        instance->last_start_ns = start > instance->last_start_ns ? start : instance->last_start_ns;
        instance->last_end_ns = end > instance->last_end_ns ? end : instance->last_end_ns;
    }
    instance->rendezvous = call && is_rendezvous(account, instance, call, first);
}

bool knee_match_times(const struct knee_account *account, struct knee_matches *m)
{
    for (size_t i = 0; i < m->instance_count; i++)
        set_times(account, m, &m->instances[i]);
    return put_in_order(m);
}

void knee_matches_release(struct knee_matches *m)
{
    knee_resize(m->alloc, m->instances, 0);
    knee_resize(m->alloc, m->members, 0);
    knee_resize(m->alloc, m->order, 0);
    for (size_t r = 0; m->instance_of && r < m->rank_count; r++)
        knee_resize(m->alloc, m->instance_of[r], 0);
    knee_resize(m->alloc, m->instance_of, 0);
    memset(m, 0, sizeof *m);
}
