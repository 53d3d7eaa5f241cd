/* SPDX-License-Identifier: MIT */
/* Joining a roll call: entries of one collective become one row, ranks that others wait for are
 * found, and the answer is put together. */
#include "knee_rollcall.h"

#include "base/error.h"
#include "base/list.h"
#include "base/order.h"
#include "base/sort.h"
#include "base/text.h"
#include "timeline/rollcall.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* Do all members leave together? */
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
    if (!knee_room(j->alloc, &j->out->ranks, &j->rank_capacity, j->out->rank_count + 1,
                   sizeof *j->out->ranks))
        return NULL;
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
    size_t capacity = j->kind_capacity;
    if (!knee_room(j->alloc, &out->collectives, &capacity, i + 1, sizeof *out->collectives) ||
        !knee_room(j->alloc, &j->sums, &j->kind_capacity, i + 1, sizeof *j->sums))
        return SIZE_MAX;
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
    qsort(j->stays, t.timed, sizeof *j->stays, knee_ascending_whole);
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

/* Adds the facts about a collective in which a rank waits. */
static bool add_stuck(struct join *j, const struct knee_entry *e, size_t count, int64_t oldest)
{
    const struct knee_comm_group *g = &j->roll->groups[e->group];
    struct knee_stuck stuck = {.group = e->group, .sequence = oldest, .bytes = -1};
    for (size_t i = 0; i < count; i++)
        if (!e[i].p2p && e[i].sequence == oldest) {
            stuck.op = e[i].op;
            stuck.bytes = e[i].bytes;
        }
    stuck.absent = knee_resize(j->alloc, NULL, (j->ranks + 1) * sizeof *stuck.absent);
    if (!stuck.absent || !knee_room(j->alloc, &j->out->stuck, &j->stuck_capacity,
                                    j->out->stuck_count + 1, sizeof stuck)) {
        knee_resize(j->alloc, stuck.absent, 0);
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
    if (!knee_room(j->alloc, &j->out->blamed, &j->blamed_capacity, j->out->blamed_count + 1,
                   sizeof blamed))
        return false;
    j->out->blamed[j->out->blamed_count++] = blamed;
    return true;
}

KNEE_SORT(most_groups_first, struct knee_blamed, KNEE_THEN(KNEE_DOWN(groups), KNEE_UP(rank)))

/* A rank with no pending collective for which others wait is the strongest sign. A rank that is
 * itself in a collective is a victim first. Otherwise it is the rank whose oldest unfinished
 * collective is older than those of the others in its group: in most groups, if groups disagree. */
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

KNEE_SORT(most_time_first, struct knee_collective_account,
          KNEE_THEN(KNEE_COMPARE(total_s(b), total_s(a)),
                    KNEE_THEN(KNEE_DOWN(bytes), strcmp(a->group, b->group))))

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

KNEE_BY_TWO(by_group_and_rank, struct knee_roll_rank, group, rank)

/* Collectives from which a rank is absent come first. */
KNEE_SORT(absent_first, struct knee_stuck, KNEE_THEN(KNEE_DOWN(absent_count), KNEE_UP(group)))

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
        knee_resize(j->alloc, all[i], 0);
}

knee_status knee_rollcall_join(struct knee_rollcall *roll, const struct knee_alloc *alloc,
                               struct knee_roll_answer *out, struct knee_err *err)
{
    struct knee_roll_answer answer = {.alloc = alloc, .slow_wire = SIZE_MAX};
    struct join j = {.roll = roll, .out = &answer, .alloc = alloc};
    bool good = make_tables(&j) && knee_rollcall_sort(roll, j.ranks) && join_all(&j) && blame(&j) &&
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
        knee_resize(alloc, answer->stuck[i].absent, 0);
    knee_resize(alloc, answer->ranks, 0);
    knee_resize(alloc, answer->collectives, 0);
    knee_resize(alloc, answer->stuck, 0);
    knee_resize(alloc, answer->blamed, 0);
    knee_resize(alloc, answer->missing, 0);
    *answer = (struct knee_roll_answer){.alloc = alloc};
}
