/* SPDX-License-Identifier: MIT */
/*
 * Roll call. Entries are sorted by group, sequence number and rank, so that the members of one
 * collective stand together. All members of a collective that needs everybody's data leave it
 * together; so the shortest stay is the wire's, what another stays longer is waiting, and the one
 * that stays shortest came last. No clock is compared with another.
 */
#include "knee_rollcall.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/sort.h"
#include "base/text.h"
#include "timeline/rollcall.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Collecting ---- */

static void drop(const struct knee_alloc *alloc, void *memory)
{
    knee_resize(alloc, memory, 0);
}

/* Room for one more row; NULL: no memory, and the array is as it was. */
static bool room(const struct knee_alloc *alloc, void **array, size_t count, size_t *capacity,
                 size_t size)
{
    if (count < *capacity)
        return true;
    size_t larger = *capacity ? *capacity * 2 : 64;
    void *grown = knee_resize(alloc, *array, larger * size);
    if (!grown)
        return false;
    *array = grown;
    *capacity = larger;
    return true;
}

static char *copy(const struct knee_alloc *alloc, struct knee_slice text)
{
    size_t length = text.length < KNEE_ROLL_NAME ? text.length : KNEE_ROLL_NAME;
    char *made = knee_resize(alloc, NULL, length + 1);
    if (made)
        knee_slice_copy(text, made, length + 1);
    return made;
}

bool knee_rollcall_add(struct knee_rollcall *roll, struct knee_entry entry)
{
    void *rows = roll->entries;
    if (entry.sequence < 0 || entry.sequence >= KNEE_ROLL_SEQUENCES || entry.rank < 0 ||
        entry.rank >= KNEE_ROLL_RANKS || entry.duration_ns > KNEE_LONGEST_NS) {
        roll->skipped++;
        return true;
    }
    if (!room(roll->alloc, &rows, roll->entry_count, &roll->entry_capacity, sizeof entry))
        return false;
    roll->entries = rows;
    roll->entries[roll->entry_count++] = entry;
    return true;
}

/* Where the group of this name stands in the index, or would. */
static size_t slot_of(const struct knee_rollcall *roll, struct knee_slice name)
{
    size_t at = knee_hash(name.at, name.length) & (roll->slot_count - 1);
    while (roll->slots[at] && !knee_slice_is(name, roll->groups[roll->slots[at] - 1].name))
        at = (at + 1) & (roll->slot_count - 1);
    return at;
}

/* The index is at most half full. */
static bool grow_slots(struct knee_rollcall *roll)
{
    size_t count = roll->slot_count ? roll->slot_count * 2 : 16;
    if (2 * (roll->group_count + 1) <= roll->slot_count)
        return true;
    uint32_t *slots = knee_resize(roll->alloc, NULL, count * sizeof *slots);
    if (!slots)
        return false;
    memset(slots, 0, count * sizeof *slots);
    drop(roll->alloc, roll->slots);
    roll->slots = slots;
    roll->slot_count = count;
    for (size_t g = 0; g < roll->group_count; g++)
        roll->slots[slot_of(roll, knee_slice_of(roll->groups[g].name))] = (uint32_t)g + 1;
    return true;
}

uint32_t knee_rollcall_group(struct knee_rollcall *roll, struct knee_slice name)
{
    char kept[KNEE_ROLL_NAME + 1]; /* as it is kept: cut, control bytes as '?' */
    knee_slice_copy(name, kept, sizeof kept);
    struct knee_slice cut = knee_slice_of(kept);
    if (!grow_slots(roll))
        return UINT32_MAX;
    size_t slot = slot_of(roll, cut);
    if (roll->slots[slot])
        return roll->slots[slot] - 1;
    void *rows = roll->groups;
    if (roll->group_count >= KNEE_ROLL_GROUPS ||
        !room(roll->alloc, &rows, roll->group_count, &roll->group_capacity, sizeof *roll->groups))
        return UINT32_MAX;
    roll->groups = rows;
    struct knee_comm_group group = {.name = copy(roll->alloc, cut), .size = -1};
    if (!group.name)
        return UINT32_MAX;
    roll->groups[roll->group_count] = group;
    roll->slots[slot] = (uint32_t)++roll->group_count;
    return roll->slots[slot] - 1;
}

bool knee_rollcall_describe(struct knee_rollcall *roll, uint32_t group, struct knee_slice words)
{
    struct knee_comm_group *g = &roll->groups[group];
    if (!g->description && words.length)
        g->description = copy(roll->alloc, words);
    return g->description || !words.length;
}

bool knee_rollcall_source(struct knee_rollcall *roll, const char *file, int64_t rank,
                          size_t first_entry)
{
    void *rows = roll->sources;
    struct knee_roll_source source = {.rank = rank, .entries = roll->entry_count - first_entry};
    for (size_t i = first_entry; i < roll->entry_count; i++)
        source.pending += roll->entries[i].pending;
    if (!room(roll->alloc, &rows, roll->source_count, &roll->source_capacity,
              sizeof *roll->sources))
        return false;
    roll->sources = rows;
    source.file = copy(roll->alloc, knee_slice_of(file));
    if (source.file)
        roll->sources[roll->source_count++] = source;
    return source.file;
}

void knee_rollcall_release(struct knee_rollcall *roll)
{
    for (size_t i = 0; i < roll->group_count; i++) {
        drop(roll->alloc, roll->groups[i].name);
        drop(roll->alloc, roll->groups[i].description);
        drop(roll->alloc, roll->groups[i].members);
    }
    for (size_t i = 0; i < roll->source_count; i++)
        drop(roll->alloc, roll->sources[i].file);
    drop(roll->alloc, roll->entries);
    drop(roll->alloc, roll->groups);
    drop(roll->alloc, roll->sources);
    drop(roll->alloc, roll->slots);
    const struct knee_alloc *alloc = roll->alloc;
    *roll = (struct knee_rollcall){.alloc = alloc};
}

/* ---- Taking one into another ---- */

/* All files of one call are of one format, and each rank of a Flight Recorder is there once. */
static knee_status may_take(const struct knee_rollcall *roll, const struct knee_rollcall *from,
                            struct knee_err *err)
{
    const char *file = from->source_count ? from->sources[0].file : "";
    if (roll->format && from->format && strcmp(roll->format, from->format) != 0)
        return knee_fail(err, KNEE_INPUT, file, "a %s file among files of %s: left out",
                         from->format, roll->format);
    for (size_t f = 0; f < from->source_count; f++)
        for (size_t i = 0; i < roll->source_count && from->sources[f].rank >= 0; i++)
            if (roll->sources[i].rank == from->sources[f].rank)
                return knee_fail(err, KNEE_INPUT, file,
                                 "rank %lld was there already, from %.60s: left out",
                                 (long long)roll->sources[i].rank, roll->sources[i].file);
    return KNEE_OK;
}

/* The row of a group of another roll call, which gives what it knows of it. */
static uint32_t take_group(struct knee_rollcall *roll, struct knee_comm_group *from)
{
    uint32_t row = knee_rollcall_group(roll, knee_slice_of(from->name));
    if (row == UINT32_MAX)
        return row;
    struct knee_comm_group *into = &roll->groups[row];
    into->size = from->size > 0 ? from->size : into->size;
    if (!into->description) {
        into->description = from->description;
        from->description = NULL;
    }
    if (!into->members) {
        into->members = from->members;
        into->member_count = from->member_count;
        from->members = NULL;
    }
    return row;
}

static bool take_entries(struct knee_rollcall *roll, struct knee_rollcall *from)
{
    size_t wanted = roll->entry_count + from->entry_count;
    uint32_t *rows = knee_resize(roll->alloc, NULL, (from->group_count + 1) * sizeof *rows);
    bool good = rows;
    for (size_t g = 0; g < from->group_count && good; g++)
        good = (rows[g] = take_group(roll, &from->groups[g])) != UINT32_MAX;
    if (good && wanted > roll->entry_capacity) {
        size_t larger = wanted + wanted / 4;
        void *grown = knee_resize(roll->alloc, roll->entries, larger * sizeof *roll->entries);
        good = grown;
        roll->entries = good ? grown : roll->entries;
        roll->entry_capacity = good ? larger : roll->entry_capacity;
    }
    for (size_t i = 0; i < from->entry_count && good; i++) {
        roll->entries[roll->entry_count] = from->entries[i];
        roll->entries[roll->entry_count++].group = rows[from->entries[i].group];
    }
    drop(roll->alloc, rows);
    return good;
}

static bool take_sources(struct knee_rollcall *roll, struct knee_rollcall *from)
{
    for (size_t i = 0; i < from->source_count; i++) {
        void *rows = roll->sources;
        if (!room(roll->alloc, &rows, roll->source_count, &roll->source_capacity,
                  sizeof *roll->sources))
            return false;
        roll->sources = rows;
        roll->sources[roll->source_count++] = from->sources[i];
        from->sources[i].file = NULL;
    }
    return true;
}

knee_status knee_rollcall_take(struct knee_rollcall *roll, struct knee_rollcall *from,
                               struct knee_err *err)
{
    knee_status status = may_take(roll, from, err);
    if (status)
        return status;
    if (!take_entries(roll, from) || !take_sources(roll, from))
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the collectives");
    roll->format = roll->format ? roll->format : from->format;
    roll->skipped += from->skipped;
    roll->untimed += from->untimed;
    knee_rollcall_release(from);
    return KNEE_OK;
}

/* ---- In order ---- */

/* By group, then collectives before sends, then number, then rank. Ranks get no more bits than they
 * need: sorting takes its time by bytes that differ. */
static bool sort_entries(struct knee_rollcall *roll, size_t ranks)
{
    size_t count = roll->entry_count;
    int bits = 1;
    while ((ranks - 1) >> bits)
        bits++;
    struct knee_sort_key *keys = knee_resize(roll->alloc, NULL, (2 * count + 1) * sizeof *keys);
    struct knee_entry *sorted = knee_resize(roll->alloc, NULL, (count + 1) * sizeof *sorted);
    bool good = keys && sorted;
    for (size_t i = 0; i < count && good; i++) {
        const struct knee_entry *e = &roll->entries[i];
        keys[i] = (struct knee_sort_key){
            (uint64_t)e->p2p << 63 | (uint64_t)e->sequence << bits | (uint64_t)e->rank, i};
    }
    if (good)
        knee_sort(keys, keys + count, count);
    for (size_t i = 0; i < count && good; i++)
        keys[i].key = roll->entries[keys[i].row].group;
    if (good)
        knee_sort(keys, keys + count, count);
    for (size_t i = 0; i < count && good; i++)
        sorted[i] = roll->entries[keys[i].row];
    drop(roll->alloc, keys);
    if (!good) {
        drop(roll->alloc, sorted);
        return false;
    }
    drop(roll->alloc, roll->entries);
    roll->entries = sorted;
    roll->entry_capacity = count + 1;
    return true;
}

/* ---- Joining ---- */

/* Sums behind a row of collectives. */
struct kind_sums {
    int64_t duration_ns, transfer_ns, wait_ns, shortest_ns;
    size_t waits, timed;
};

struct join {
    struct knee_rollcall *roll;
    struct knee_roll_answer *out;
    const struct knee_alloc *alloc;
    struct kind_sums *sums; /* per row of collectives */
    size_t kind_capacity, rank_capacity, stuck_capacity, blamed_capacity;
    uint32_t *row_of_rank;   /* of the group at hand: row of out->ranks + 1 */
    int64_t *oldest;         /* of the group at hand, by rank: oldest pending; INT64_MAX: none */
    int64_t *newest;         /* newest of all; -1: none */
    int64_t *stays;          /* of the collective at hand */
    size_t *behind, *absent; /* by rank: groups in which it is so */
    size_t *given, *pending; /* by rank: its file is there; entries of it that are not done */
    size_t ranks;            /* highest rank + 1 */
    size_t group_kinds;      /* first row of collectives of the group at hand */
};

/* Does everybody leave together? */
static bool ends_together(enum knee_op op)
{
    return op == KNEE_OP_ALL_REDUCE || op == KNEE_OP_ALL_GATHER || op == KNEE_OP_REDUCE_SCATTER ||
           op == KNEE_OP_BARRIER || op == KNEE_OP_ALL_TO_ALL || op == KNEE_OP_ALL_TO_ALLV;
}

static bool sizes_may_differ(enum knee_op op)
{
    return op == KNEE_OP_ALL_TO_ALL || op == KNEE_OP_ALL_TO_ALLV || op == KNEE_OP_UNKNOWN;
}

static struct knee_roll_rank *rank_row(struct join *j, const struct knee_entry *e)
{
    uint32_t found = j->row_of_rank[e->rank];
    if (found)
        return &j->out->ranks[found - 1];
    void *rows = j->out->ranks;
    if (!room(j->alloc, &rows, j->out->rank_count, &j->rank_capacity, sizeof *j->out->ranks))
        return NULL;
    j->out->ranks = rows;
    j->out->ranks[j->out->rank_count] = (struct knee_roll_rank){.rank = e->rank, .group = e->group};
    j->row_of_rank[e->rank] = (uint32_t)++j->out->rank_count;
    return &j->out->ranks[j->out->rank_count - 1];
}

/* The row of this operation and size in its group; SIZE_MAX: no memory. */
static size_t kind_row(struct join *j, const struct knee_entry *e)
{
    struct knee_roll_answer *out = j->out;
    const struct knee_comm_group *group = &j->roll->groups[e->group];
    size_t i = j->group_kinds;
    while (i < out->collective_count &&
           (out->collectives[i].op != e->op || out->collectives[i].bytes != e->bytes))
        i++;
    if (i < out->collective_count)
        return i;
    if (i - j->group_kinds >= KNEE_ROLL_KINDS)
        return i - 1; /* the last one takes the rest */
    void *rows = out->collectives, *sums = j->sums;
    size_t capacity = j->kind_capacity;
    if (!room(j->alloc, &rows, i, &capacity, sizeof *out->collectives))
        return SIZE_MAX;
    out->collectives = rows;
    if (!room(j->alloc, &sums, i, &j->kind_capacity, sizeof *j->sums))
        return SIZE_MAX;
    j->sums = sums;
    j->sums[i] = (struct kind_sums){.shortest_ns = INT64_MAX};
    out->collectives[i] = (struct knee_collective_account){
        .op = e->op,
        .algorithm = "",
        .protocol = "",
        .dtype = "",
        .axis = "",
        .group = group->name,
        .description = group->description ? group->description : "",
        .bytes = e->bytes,
        .group_size = group->size,
    };
    out->collective_count++;
    return i;
}

static int by_stay(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Members of one collective: entries[first .. end), each rank once, of which `timed` are timed. */
struct together {
    const struct knee_entry *first;
    size_t count, timed, row;
    int64_t shortest_ns, median_ns;
    bool complete;
};

static void share_out(struct join *j, const struct together *t)
{
    struct kind_sums *sums = &j->sums[t->row];
    bool once = false;
    for (size_t i = 0; i < t->count; i++) {
        const struct knee_entry *e = &t->first[i];
        struct knee_roll_rank *rank = &j->out->ranks[j->row_of_rank[e->rank] - 1];
        if (e->duration_ns < 0)
            continue;
        int64_t wait = e->duration_ns - t->shortest_ns;
        rank->wait_ns += wait;
        rank->transfer_ns += t->shortest_ns;
        rank->duration_ns += e->duration_ns;
        rank->joined += t->complete;
        sums->wait_ns += wait;
        sums->waits++;
        j->out->wait_ns += wait;
        j->out->transfer_ns += t->shortest_ns;
        if (!once && t->complete && wait == 0) { /* the first of those that came last */
            once = true;
            rank->last++;
            rank->held_ns += t->median_ns - t->shortest_ns;
        }
    }
    sums->transfer_ns += t->shortest_ns;
    j->out->collectives[t->row].matched++;
    j->out->joined += t->complete;
    j->out->partial += !t->complete;
}

static bool agree(struct join *j, const struct knee_entry *e, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (e[i].op != e[0].op || (e[i].bytes != e[0].bytes && !sizes_may_differ(e[0].op) &&
                                   e[0].bytes >= 0 && e[i].bytes >= 0)) {
            if (!j->out->mismatched++) {
                j->out->mismatch_group = e[0].group;
                j->out->mismatch_sequence = e[0].sequence;
            }
            return false;
        }
    return true;
}

/* One collective. False: no memory. */
static bool join_one(struct join *j, const struct knee_entry *e, size_t count)
{
    struct together t = {.first = e, .count = count, .shortest_ns = INT64_MAX};
    int32_t size = j->roll->groups[e->group].size;
    t.row = kind_row(j, e);
    if (t.row == SIZE_MAX)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct knee_roll_rank *rank = rank_row(j, &e[i]);
        if (!rank)
            return false;
        rank->calls++;
        j->out->collectives[t.row].calls++;
        if (e[i].duration_ns < 0 || e[i].pending)
            continue;
        struct kind_sums *sums = &j->sums[t.row];
        sums->duration_ns += e[i].duration_ns;
        sums->timed++;
        sums->shortest_ns =
            e[i].duration_ns < sums->shortest_ns ? e[i].duration_ns : sums->shortest_ns;
        j->stays[t.timed++] = e[i].duration_ns;
    }
    if (!agree(j, e, count) || t.timed < 2 || !ends_together(e->op))
        return true;
    qsort(j->stays, t.timed, sizeof *j->stays, by_stay);
    t.shortest_ns = j->stays[0];
    t.median_ns = j->stays[t.timed / 2];
    t.complete = size > 0 && t.timed == (size_t)size;
    share_out(j, &t);
    return true;
}

/* ---- Who is waited for ---- */

static bool in_group(const struct join *j, const struct knee_comm_group *g, size_t rank)
{
    for (size_t i = 0; i < g->member_count; i++)
        if (g->members[i] == (int32_t)rank)
            return true;
    return g->member_count == 0 && (j->oldest[rank] != INT64_MAX || j->newest[rank] >= 0);
}

/* What the files say of each rank, once. */
static void look_at_sources(struct join *j)
{
    for (size_t i = 0; i < j->roll->source_count; i++) {
        const struct knee_roll_source *source = &j->roll->sources[i];
        if (source->rank < 0)
            continue;
        j->given[source->rank] = 1;
        j->pending[source->rank] += source->pending;
    }
}

/* What is known of the collective that somebody waits in. */
static bool add_stuck(struct join *j, const struct knee_entry *e, size_t count, int64_t oldest)
{
    const struct knee_comm_group *g = &j->roll->groups[e->group];
    struct knee_stuck stuck = {.group = e->group, .sequence = oldest, .bytes = -1};
    void *rows = j->out->stuck;
    for (size_t i = 0; i < count; i++)
        if (!e[i].p2p && e[i].sequence == oldest) {
            stuck.op = e[i].op;
            stuck.bytes = e[i].bytes;
        }
    stuck.absent = knee_resize(j->alloc, NULL, (j->ranks + 1) * sizeof *stuck.absent);
    if (!stuck.absent ||
        !room(j->alloc, &rows, j->out->stuck_count, &j->stuck_capacity, sizeof stuck)) {
        drop(j->alloc, stuck.absent);
        return false;
    }
    for (size_t r = 0; r < j->ranks; r++) {
        if (!in_group(j, g, r))
            continue;
        bool entered = j->newest[r] >= oldest;
        stuck.entered += entered;
        if (!entered && j->given[r]) {
            stuck.absent[stuck.absent_count++] = (int32_t)r;
            j->absent[r]++;
        }
    }
    j->out->stuck = rows;
    j->out->stuck[j->out->stuck_count++] = stuck;
    return true;
}

/* The group's entries. False: no memory. */
static bool look_for_stuck(struct join *j, const struct knee_entry *e, size_t count)
{
    int64_t lowest = INT64_MAX, highest = -1;
    for (size_t r = 0; r < j->ranks; r++) {
        j->oldest[r] = INT64_MAX;
        j->newest[r] = -1;
    }
    for (size_t i = 0; i < count; i++) {
        if (e[i].p2p)
            continue;
        int64_t *oldest = &j->oldest[e[i].rank], *newest = &j->newest[e[i].rank];
        *newest = e[i].sequence > *newest ? e[i].sequence : *newest;
        if (e[i].pending)
            *oldest = e[i].sequence < *oldest ? e[i].sequence : *oldest;
    }
    for (size_t r = 0; r < j->ranks; r++)
        if (j->oldest[r] != INT64_MAX) {
            lowest = j->oldest[r] < lowest ? j->oldest[r] : lowest;
            highest = j->oldest[r] > highest ? j->oldest[r] : highest;
        }
    for (size_t r = 0; r < j->ranks && lowest < highest; r++)
        j->behind[r] += j->oldest[r] == lowest;
    return highest < 0 || add_stuck(j, e, count, lowest);
}

static bool add_blamed(struct join *j, struct knee_blamed blamed)
{
    void *rows = j->out->blamed;
    if (!room(j->alloc, &rows, j->out->blamed_count, &j->blamed_capacity, sizeof blamed))
        return false;
    j->out->blamed = rows;
    j->out->blamed[j->out->blamed_count++] = blamed;
    return true;
}

static int most_groups_first(const void *left, const void *right)
{
    const struct knee_blamed *a = left, *b = right;
    if (a->groups != b->groups)
        return a->groups < b->groups ? 1 : -1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* A rank in which nothing is under way, while others wait for it, is the strongest sign; a rank
 * that is itself in a collective is its victim first. Else it is the one whose oldest unfinished
 * collective is older than the others' of its group: in most groups, if groups disagree. */
static bool blame(struct join *j)
{
    bool good = true;
    size_t most = 0;
    for (size_t r = 0; r < j->ranks && good; r++)
        if (j->absent[r] && j->pending[r] == 0)
            good = add_blamed(j, (struct knee_blamed){(int32_t)r, KNEE_BLAME_SILENT, j->absent[r]});
    if (j->out->blamed_count)
        return good;
    for (size_t r = 0; r < j->ranks; r++)
        most = j->behind[r] > most ? j->behind[r] : most;
    for (size_t r = 0; r < j->ranks && good; r++)
        if (j->behind[r] && j->behind[r] == most)
            good = add_blamed(j, (struct knee_blamed){(int32_t)r, KNEE_BLAME_BEHIND, j->behind[r]});
    return good;
}

static bool find_missing(struct join *j)
{
    struct knee_roll_answer *out = j->out;
    uint32_t *member = j->row_of_rank; /* no longer needed */
    out->missing = knee_resize(j->alloc, NULL, (j->ranks + 1) * sizeof *out->missing);
    memset(member, 0, (j->ranks + 1) * sizeof *member);
    for (size_t g = 0; g < j->roll->group_count; g++)
        for (size_t i = 0; i < j->roll->groups[g].member_count; i++)
            member[j->roll->groups[g].members[i]] = 1;
    for (size_t r = 0; r < j->ranks && out->missing; r++)
        if (member[r] && !j->given[r])
            out->missing[out->missing_count++] = (int32_t)r;
    return out->missing;
}

/* ---- The answer ---- */

static void take_means(struct join *j)
{
    for (size_t i = 0; j->sums && i < j->out->collective_count; i++) {
        struct knee_collective_account *row = &j->out->collectives[i];
        const struct kind_sums *sums = &j->sums[i];
        row->duration_s =
            sums->timed ? 1e-9 * (double)sums->duration_ns / (double)sums->timed : NAN;
        row->transfer_s =
            row->matched ? 1e-9 * (double)sums->transfer_ns / (double)row->matched : NAN;
        row->wait_s = sums->waits ? 1e-9 * (double)sums->wait_ns / (double)sums->waits : NAN;
        double time = row->matched  ? row->transfer_s
                      : sums->timed ? 1e-9 * (double)sums->shortest_ns
                                    : NAN;
        double factor = row->group_size > 0 ? knee_op_bus_factor(row->op, row->group_size) : NAN;
        row->expected_s = NAN;
        row->bus_bytes_per_s =
            row->bytes > 0 && time > 0 ? factor * (double)row->bytes / time : NAN;
    }
}

static double total_s(const struct knee_collective_account *c)
{
    return isnan(c->duration_s) ? 0 : c->duration_s * (double)c->calls;
}

static int most_time_first(const void *left, const void *right)
{
    const struct knee_collective_account *a = left, *b = right;
    double x = total_s(a), y = total_s(b);
    if (x != y)
        return x < y ? 1 : -1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return strcmp(a->group, b->group);
}

/* Last more often than one in `size` by more than three standard deviations, and for more than a
 * twentieth of the time that its collectives take. */
static void name_late(struct join *j)
{
    for (size_t i = 0; i < j->out->rank_count; i++) {
        struct knee_roll_rank *rank = &j->out->ranks[i];
        double share = 1 / (double)j->roll->groups[rank->group].size, n = (double)rank->joined;
        double chance = n * share + 3 * sqrt(n * share * (1 - share));
        rank->late = rank->joined > 0 && (double)rank->last > chance &&
                     (double)rank->held_ns > 0.05 * (double)(rank->transfer_ns + rank->held_ns);
    }
}

/* Entries of one rank that stand there twice count once: parts of a coalesced call, files given
 * twice. */
static size_t same_collective(struct join *j, size_t first, size_t end, size_t *kept)
{
    struct knee_entry *e = j->roll->entries;
    size_t at = first;
    *kept = 0;
    while (at < end && e[at].group == e[first].group && e[at].p2p == e[first].p2p &&
           e[at].sequence == e[first].sequence) {
        if (*kept == 0 || e[first + *kept - 1].rank != e[at].rank)
            e[first + (*kept)++] = e[at];
        at++;
    }
    return at;
}

static bool join_group(struct join *j, size_t first, size_t end)
{
    struct knee_entry *e = j->roll->entries;
    j->group_kinds = j->out->collective_count;
    memset(j->row_of_rank, 0, (j->ranks + 1) * sizeof *j->row_of_rank);
    if (!look_for_stuck(j, &e[first], end - first))
        return false;
    for (size_t at = first, next, kept; at < end; at = next) {
        next = same_collective(j, at, end, &kept);
        if (e[at].p2p)
            j->out->p2p += next - at;
        else if (!join_one(j, &e[at], kept))
            return false;
    }
    return true;
}

static bool join_all(struct join *j)
{
    struct knee_rollcall *roll = j->roll;
    for (size_t first = 0, end; first < roll->entry_count; first = end) {
        for (end = first;
             end < roll->entry_count && roll->entries[end].group == roll->entries[first].group;)
            end++;
        if (!join_group(j, first, end))
            return false;
    }
    return true;
}

static int by_group_and_rank(const void *left, const void *right)
{
    const struct knee_roll_rank *a = left, *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Those that somebody stays away from first. */
static int absent_first(const void *left, const void *right)
{
    const struct knee_stuck *a = left, *b = right;
    if (a->absent_count != b->absent_count)
        return a->absent_count < b->absent_count ? 1 : -1;
    return (a->group > b->group) - (a->group < b->group);
}

static void put_in_order(struct knee_roll_answer *out)
{
    if (out->collective_count > 1)
        qsort(out->collectives, out->collective_count, sizeof *out->collectives, most_time_first);
    if (out->rank_count > 1)
        qsort(out->ranks, out->rank_count, sizeof *out->ranks, by_group_and_rank);
    if (out->stuck_count > 1)
        qsort(out->stuck, out->stuck_count, sizeof *out->stuck, absent_first);
    if (out->blamed_count > 1)
        qsort(out->blamed, out->blamed_count, sizeof *out->blamed, most_groups_first);
}

static size_t highest_rank(const struct knee_rollcall *roll)
{
    int64_t most = 0;
    for (size_t i = 0; i < roll->entry_count; i++)
        most = roll->entries[i].rank > most ? roll->entries[i].rank : most;
    for (size_t i = 0; i < roll->source_count; i++)
        most = roll->sources[i].rank > most ? roll->sources[i].rank : most;
    for (size_t g = 0; g < roll->group_count; g++)
        for (size_t i = 0; i < roll->groups[g].member_count; i++)
            most = roll->groups[g].members[i] > most ? roll->groups[g].members[i] : most;
    return (size_t)most + 1;
}

/* The counters by rank begin at 0, the rest is filled where it is used. */
static bool make_tables(struct join *j)
{
    size_t ranks = j->ranks = highest_rank(j->roll);
    size_t **counters[] = {&j->behind, &j->absent, &j->given, &j->pending};
    bool good = true;
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        *counters[i] = knee_resize(j->alloc, NULL, (ranks + 1) * sizeof **counters[i]);
        if (*counters[i])
            memset(*counters[i], 0, (ranks + 1) * sizeof **counters[i]);
        good = good && *counters[i];
    }
    j->row_of_rank = knee_resize(j->alloc, NULL, (ranks + 1) * sizeof *j->row_of_rank);
    j->oldest = knee_resize(j->alloc, NULL, (ranks + 1) * sizeof *j->oldest);
    j->newest = knee_resize(j->alloc, NULL, (ranks + 1) * sizeof *j->newest);
    j->stays = knee_resize(j->alloc, NULL, (ranks + 1) * sizeof *j->stays);
    good = good && j->row_of_rank && j->oldest && j->newest && j->stays;
    if (good)
        look_at_sources(j);
    return good;
}

static void free_tables(struct join *j)
{
    void *all[] = {j->row_of_rank, j->oldest, j->newest,  j->stays, j->behind,
                   j->absent,      j->given,  j->pending, j->sums};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        drop(j->alloc, all[i]);
}

knee_status knee_rollcall_join(struct knee_rollcall *roll, const struct knee_alloc *alloc,
                               struct knee_roll_answer *out, struct knee_err *err)
{
    struct knee_roll_answer answer = {.alloc = alloc, .slow_wire = SIZE_MAX};
    struct join j = {.roll = roll, .out = &answer, .alloc = alloc};
    bool good = make_tables(&j) && sort_entries(roll, j.ranks) && join_all(&j) && blame(&j) &&
                find_missing(&j);
    if (good) {
        take_means(&j);
        name_late(&j);
        put_in_order(&answer);
    }
    free_tables(&j);
    if (!good) {
        knee_roll_answer_release(&answer);
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the collectives");
    }
    *out = answer;
    return KNEE_OK;
}

void knee_roll_answer_release(struct knee_roll_answer *answer)
{
    const struct knee_alloc *alloc = answer->alloc;
    for (size_t i = 0; i < answer->stuck_count; i++)
        drop(alloc, answer->stuck[i].absent);
    drop(alloc, answer->ranks);
    drop(alloc, answer->collectives);
    drop(alloc, answer->stuck);
    drop(alloc, answer->blamed);
    drop(alloc, answer->missing);
    *answer = (struct knee_roll_answer){.alloc = alloc};
}
