/* SPDX-License-Identifier: MIT */
/*
 * Who arrived last at each rendezvous, how late, and why. Arriving last does not prove that a rank
 * is the cause: it may have waited for another rank elsewhere, and some rank is always last. So a
 * rank is blamed for no more than its own excess over the others, step by step: computing, copying,
 * waiting for its host or its input. The label with the largest excess over the median of the
 * others is the cause. Lateness below clock and scheduling noise, summed over the rendezvous of a
 * step, is not attributed to any rank, nor is an excess that a rank has by chance when steps
 * differ.
 */
#include "base/order.h"
#include "base/text.h"
#include "timeline/account.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Waiting and transferring are other ranks' matter. */
static bool is_own(int label)
{
    return label != KNEE_TRANSFER && label != KNEE_WAIT;
}

/* The value that `place` others are below; the values are put in another order (Hoare's select). */
static int64_t select_value(int64_t *values, size_t count, size_t place)
{
    size_t low = 0, high = count - 1;
    while (low < high) {
        int64_t pivot = values[low + (high - low) / 2];
        size_t i = low, j = high;
        for (;;) {
            while (values[i] < pivot)
                i++;
            while (values[j] > pivot)
                j--;
            if (i >= j)
                break;
            int64_t value = values[i];
            values[i++] = values[j];
            values[j--] = value;
        }
        if (place <= j)
            high = j;
        else
            low = j + 1;
    }
    return values[place];
}

/* ---- Lateness ---- */

static void look_at(struct knee_account *account, const struct knee_matches *m,
                    const struct knee_instance *instance, int64_t *starts)
{
    const struct knee_member *members = &m->members[instance->first];
    size_t last = 0;
    for (size_t i = 0; i < instance->count; i++) {
        const struct knee_rank_account *rank = &account->ranks[members[i].rank];
        uint32_t span = rank->source->calls[members[i].call].span;
        starts[i] = knee_common_time(rank, rank->source->spans[span].start_ns);
        last = starts[i] > starts[last] ? i : last;
    }
    struct knee_straggler *straggler = &account->stragglers[members[last].rank];
    int64_t late_ns = starts[last];
    starts[last] = starts[instance->count - 1];
    late_ns -= select_value(starts, instance->count - 1, (instance->count - 1) / 2);
    straggler->last_count++;
    if (late_ns > account->residual_ns)
        straggler->lateness_ns = knee_add_ns(straggler->lateness_ns, late_ns);
}

/* ---- What a rank does by itself ---- */

/* Labels of a rank over its complete steps, or over its window where there are none. Each is
 * comparable between ranks when divided by `steps`. */
struct conduct {
    double label_ns[KNEE_LABELS], steps;
    double own_ns, own_squared; /* of what is its own: sums over steps */
};

static void add_labels(struct conduct *conduct, const struct knee_ledger *ledger)
{
    double own = 0;
    for (int label = 0; label < KNEE_LABELS; label++) {
        conduct->label_ns[label] += (double)ledger->label_ns[label];
        own += is_own(label) ? (double)ledger->label_ns[label] : 0;
    }
    conduct->own_ns += own;
    conduct->own_squared += own * own;
    conduct->steps++;
}

static void find_conduct(const struct knee_account *account, struct conduct *conducts)
{
    memset(conducts, 0, account->rank_count * sizeof *conducts);
    for (size_t i = 0; i < account->step_count; i++)
        if (account->steps[i].complete && account->steps[i].number >= 0)
            add_labels(&conducts[account->steps[i].rank], &account->steps[i].ledger);
    for (size_t r = 0; r < account->rank_count; r++)
        if (conducts[r].steps == 0)
            add_labels(&conducts[r], &account->ranks[r].ledger);
}

/* The median of sorted values without one of them. */
static double median_of_others(const double *sorted, size_t count, double own)
{
    size_t middle = (count - 1) / 2;
    return own <= sorted[middle] ? sorted[middle + 1] : sorted[middle];
}

/* So many standard errors of its mean step are needed before a rank is blamed: one of many ranks is
 * always the slowest. */
#define STANDARD_ERRORS 3

/* How far the sum of a rank's steps is off by chance: of the rank in the middle, since a late rank
 * may be late in some steps only. `room` has place for every rank. */
static double chance_ns(const struct knee_account *account, const struct conduct *conducts,
                        double *room)
{
    for (size_t r = 0; r < account->rank_count; r++) {
        const struct conduct *c = &conducts[r];
        double squares = c->own_squared - c->own_ns * c->own_ns / c->steps;
        room[r] = c->steps > 1 ? sqrt(fmax(0, squares) * c->steps / (c->steps - 1)) : 0;
    }
    qsort(room, account->rank_count, sizeof *room, knee_ascending);
    return STANDARD_ERRORS * room[(account->rank_count - 1) / 2];
}

/* Each rendezvous is uncertain by the residual; n of them in a step, one way or the other, by
 * sqrt(n) times that. */
static double noise_ns(const struct knee_account *account, double steps)
{
    double rendezvous = (double)(account->instances + account->partial);
    return (double)account->residual_ns * sqrt(rendezvous / steps) * steps;
}

/* How much longer than the others a rank takes for one label, or for all that is its own. */
static void compare(struct knee_account *account, const struct conduct *conducts, int label,
                    double *values, double *sorted)
{
    size_t count = account->rank_count;
    double chance = chance_ns(account, conducts, sorted);
    for (size_t r = 0; r < count; r++) {
        values[r] = 0;
        for (int l = 0; l < KNEE_LABELS; l++)
            if (l == label || (label == KNEE_LABELS && is_own(l)))
                values[r] += conducts[r].label_ns[l] / conducts[r].steps;
    }
    memcpy(sorted, values, count * sizeof *values);
    qsort(sorted, count, sizeof *sorted, knee_ascending);
    for (size_t r = 0; r < count; r++) {
        struct knee_straggler *s = &account->stragglers[r];
        double excess = values[r] - median_of_others(sorted, count, values[r]);
        int64_t excess_ns = excess > 0 ? (int64_t)(excess * conducts[r].steps) : 0;
        if (label == KNEE_LABELS) {
            int64_t held_ns = excess_ns < s->lateness_ns ? excess_ns : s->lateness_ns;
            double noise = fmax(chance, noise_ns(account, conducts[r].steps));
            s->held_ns = (double)held_ns > noise ? held_ns : 0;
        } else if (excess_ns > s->excess_ns) {
            s->excess_ns = excess_ns;
            s->cause = (enum knee_label)label;
        }
    }
}

/* ---- All together ---- */

KNEE_SORT(worst_first, struct knee_straggler,
          KNEE_THEN(KNEE_DOWN(held_ns), KNEE_THEN(KNEE_DOWN(lateness_ns), KNEE_UP(rank))))

static void keep_those_that_came_last(struct knee_account *account)
{
    size_t kept = 0;
    for (size_t r = 0; r < account->rank_count; r++)
        if (account->stragglers[r].last_count)
            account->stragglers[kept++] = account->stragglers[r];
    account->straggler_count = kept;
    if (kept > 1)
        qsort(account->stragglers, kept, sizeof *account->stragglers, worst_first);
}

bool knee_find_stragglers(struct knee_account *account, const struct knee_matches *m)
{
    const struct knee_alloc *alloc = account->alloc;
    size_t ranks = account->rank_count;
    struct conduct *conducts = knee_resize(alloc, NULL, (ranks + 1) * sizeof *conducts);
    double *values = knee_resize(alloc, NULL, 2 * (ranks + 1) * sizeof *values);
    int64_t *starts = knee_resize(alloc, NULL, (ranks + 1) * sizeof *starts);
    account->stragglers = knee_zeroed(alloc, (ranks + 1) * sizeof *account->stragglers);
    bool good = conducts && values && starts && account->stragglers;
    if (good) {
        for (size_t r = 0; r < ranks; r++)
            account->stragglers[r] = (struct knee_straggler){.rank = r, .cause = KNEE_IDLE};
        for (size_t i = 0; i < m->order_count; i++)
            look_at(account, m, &m->instances[m->order[i].row], starts);
        find_conduct(account, conducts);
        for (int label = 0; label <= KNEE_LABELS && ranks > 1; label++)
            if (label == KNEE_LABELS || is_own(label))
                compare(account, conducts, label, values, values + ranks);
        keep_those_that_came_last(account);
    }
    void *const all[] = {conducts, values, starts};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        knee_resize(alloc, all[i], 0);
    return good;
}
