/* SPDX-License-Identifier: MIT */
#include "judge/ras_judge.h"

#include "base/error.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BEHIND  0.8 /* of the occasions on which counts differ */
#define STILL_S 0.5 /* without a call: shorter says nothing */

/* Such occasions. Of two ranks, one is behind in six of six by chance once in 32 times. */
enum { FEWEST = 6 };

/* The same rank of the same communicator; most often it stands where it stood. */
static const struct knee_ras_rank *find(const struct knee_ras *ras, const struct knee_ras_rank *of,
                                        size_t hint)
{
    if (!ras->ranks)
        return NULL;
    if (hint < ras->count && knee_ras_compare(&ras->ranks[hint], of) == 0)
        return &ras->ranks[hint];
    return bsearch(of, ras->ranks, ras->count, sizeof *of, knee_ras_compare);
}

/* Rows [from, to) of an answer are one communicator. */
static size_t comm_end(const struct knee_ras *ras, size_t from)
{
    size_t to = from + 1;
    while (to < ras->count && strcmp(ras->ranks[to].comm, ras->ranks[from].comm) == 0)
        to++;
    return to;
}

static void largest_and_least(const struct knee_ras *ras, size_t from, size_t to, int64_t *most,
                              int64_t *least)
{
    *most = -1;
    *least = INT64_MAX;
    for (size_t i = from; i < to && ras->ranks; i++) {
        if (ras->ranks[i].missing)
            continue;
        *most = ras->ranks[i].calls > *most ? ras->ranks[i].calls : *most;
        *least = ras->ranks[i].calls < *least ? ras->ranks[i].calls : *least;
    }
}

static void count_behind(const struct knee_ras *ras, const struct knee_ras *last,
                         struct knee_ras_answer *a)
{
    for (size_t from = 0, to; from < ras->count; from = to) {
        int64_t most, least;
        to = comm_end(ras, from);
        largest_and_least(ras, from, to, &most, &least);
        for (size_t i = from; i < to; i++) {
            const struct knee_ras_rank *now = last->count ? find(last, &ras->ranks[i], i) : NULL;
            if (!now || ras->ranks[i].missing)
                continue;
            struct knee_ras_row *row = &a->rows[now - last->ranks];
            row->lag = most - ras->ranks[i].calls;
            if (most == least || most == row->occasion)
                continue;
            row->occasion = most;
            row->uneven++;
            row->behind += row->lag > 0;
        }
    }
}

static bool is_late(const struct knee_ras_row *row)
{
    return row->uneven >= FEWEST && (double)row->behind >= BEHIND * (double)row->uneven;
}

/* Any rank falls behind now and then. If most of a communicator were behind, none would be late. */
static void judge_comm(struct knee_ras_answer *a, size_t from, size_t to)
{
    size_t late = 0;
    bool moves = a->seconds < STILL_S;
    for (size_t i = from; i < to; i++) {
        late += is_late(&a->rows[i]) ? 1 : 0;
        moves = moves || a->rows[i].calls_per_s > 0;
    }
    for (size_t i = from; i < to; i++) {
        struct knee_ras_row *row = &a->rows[i];
        row->late = 2 * late <= to - from && is_late(row);
        row->still = !moves && !row->rank->missing;
        a->late += row->late ? 1 : 0;
        a->dead += row->rank->dead ? 1 : 0;
        a->unresponsive += row->rank->unresponsive && !row->rank->dead ? 1 : 0;
        a->failed += row->rank->failed ? 1 : 0;
    }
    a->comms++;
    a->still_comms += moves ? 0 : 1;
}

knee_status knee_ras_judge(const struct knee_ras *answers, size_t count,
                           const struct knee_alloc *alloc, struct knee_ras_answer *out,
                           struct knee_err *err)
{
    const struct knee_ras *first = &answers[0], *last = &answers[count - 1];
    struct knee_ras_answer a = {.count = last->count, .answers = count, .alloc = alloc};
    a.rows = knee_resize(alloc, NULL, (a.count + 1) * sizeof *a.rows);
    if (!a.rows)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    a.seconds = 1e-9 * ((double)last->at_ns - (double)first->at_ns);
    for (size_t i = 0; i < a.count; i++) {
        const struct knee_ras_rank *rank = &last->ranks[i],
                                   *then = first->count ? find(first, rank, i) : NULL;
        a.rows[i] = (struct knee_ras_row){.rank = rank, .calls_per_s = NAN};
        if (then && a.seconds > 0)
            a.rows[i].calls_per_s = ((double)rank->calls - (double)then->calls) / a.seconds;
    }
    for (size_t k = 0; k < count; k++)
        count_behind(&answers[k], last, &a);
    for (size_t from = 0, to; from < a.count; from = to) {
        to = comm_end(last, from);
        judge_comm(&a, from, to);
    }
    *out = a;
    return KNEE_OK;
}

void knee_ras_answer_release(struct knee_ras_answer *answer)
{
    knee_resize(answer->alloc, answer->rows, 0);
    memset(answer, 0, sizeof *answer);
}
