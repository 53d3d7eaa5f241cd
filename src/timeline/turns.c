/* SPDX-License-Identifier: MIT */
/*
 * Do ranks share one GPU? Processes on one GPU take turns of about 2 ms. While one has its turn no
 * kernel of another one starts, even where both have kernels that have begun and not ended: starts
 * come in runs. On separate GPUs they come in any order, in at least as many runs as there are
 * starts of the ranks that have fewer. Counted are starts while another rank computes.
 */
#include "timeline/account.h"

#include <string.h>

enum {
    MOST_RANKS = 16,
    WINDOW = 64, /* starts in which the ranks' kernels are about as long throughout */
    LEAST = 16   /* starts of the ranks that have fewer in a window */
};

struct turns {
    size_t at[MOST_RANKS]; /* the next span of each rank */
    int64_t until_ns[MOST_RANKS];
    size_t starts[MOST_RANKS], window; /* in this window */
    size_t fewer, runs, last;
};

static void end_window(struct turns *t)
{
    size_t most = 0;
    for (size_t r = 0; r < MOST_RANKS; r++)
        most = t->starts[r] > most ? t->starts[r] : most;
    t->fewer += t->window - most;
    t->window = 0;
    memset(t->starts, 0, sizeof t->starts);
}

/* The rank whose kernel starts next; rank_count: none is left. */
static size_t next_rank(const struct knee_account *account, struct turns *t, int64_t *start_ns)
{
    size_t next = account->rank_count;
    for (size_t r = 0; r < account->rank_count; r++) {
        const struct knee_rank *source = account->ranks[r].source;
        while (t->at[r] < source->span_count && source->spans[t->at[r]].kind != KNEE_SPAN_COMPUTE)
            t->at[r]++;
        if (t->at[r] == source->span_count)
            continue;
        int64_t start = knee_common_time(&account->ranks[r], source->spans[t->at[r]].start_ns);
        if (next == account->rank_count || start < *start_ns) {
            next = r;
            *start_ns = start;
        }
    }
    return next;
}

bool knee_on_one_device(const struct knee_account *account)
{
    const struct knee_rank_account *first = &account->ranks[0];
    bool one = account->rank_count > 1 && strcmp(first->trace->format, "cpu") != 0;
    for (size_t r = 1; r < account->rank_count && one; r++)
        one = account->ranks[r].source->device == first->source->device &&
              strcmp(account->ranks[r].trace->host, first->trace->host) == 0;
    return one;
}

bool knee_take_turns(const struct knee_account *account)
{
    struct turns t = {.last = MOST_RANKS};
    int64_t start = 0;
    if (account->rank_count > MOST_RANKS || !knee_on_one_device(account))
        return false;
    for (size_t r = 0; r < MOST_RANKS; r++)
        t.until_ns[r] = INT64_MIN;
    for (size_t r; (r = next_rank(account, &t, &start)) < account->rank_count;) {
        const struct knee_span *span = &account->ranks[r].source->spans[t.at[r]++];
        bool contended = false;
        for (size_t o = 0; o < account->rank_count; o++)
            contended = contended || (o != r && t.until_ns[o] > start);
        int64_t end = knee_common_time(&account->ranks[r], span->end_ns);
        t.until_ns[r] = end > t.until_ns[r] ? end : t.until_ns[r];
        if (!contended)
            continue;
        t.runs += r != t.last;
        t.last = r;
        t.starts[r]++;
        if (++t.window == WINDOW)
            end_window(&t);
    }
    end_window(&t);
    return t.fewer >= LEAST && 2 * t.runs < t.fewer;
}
