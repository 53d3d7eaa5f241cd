/* SPDX-License-Identifier: MIT */
/*
 * Whose nanosecond it is. Spans are walked in order of their starts, once for each kind; each owns
 * what no earlier one of its kind has covered. A label of that kind inside it is its own. Gaps are
 * owned by the work that ended them: it was waited for.
 */
#include "timeline/where.h"

#include <string.h>

struct owner_kind {
    unsigned spans, labels; /* bits */
};

#define BIT(x) (1u << (x))
static const struct owner_kind kinds[] = {
    {BIT(KNEE_SPAN_COMPUTE) | BIT(KNEE_SPAN_FUSED), BIT(KNEE_COMPUTE)},
    {BIT(KNEE_SPAN_COMM) | BIT(KNEE_SPAN_FUSED), BIT(KNEE_TRANSFER) | BIT(KNEE_WAIT)},
    {BIT(KNEE_SPAN_COPY), BIT(KNEE_COPY)},
};

static void own_covered(const struct knee_rank_account *rank, const struct owner_kind *kind,
                        knee_own_row *own)
{
    const struct knee_rank *source = rank->source;
    int64_t covered = INT64_MIN;
    size_t at = 0;
    for (size_t i = 0; i < source->span_count; i++) {
        const struct knee_span *span = &source->spans[i];
        int64_t from = span->start_ns > covered ? span->start_ns : covered;
        if (!(kind->spans & BIT(span->kind)) || span->end_ns <= from)
            continue;
        int64_t sums[KNEE_LABELS] = {0};
        knee_sum_labels(rank, &at, from, span->end_ns, sums);
        for (int label = 0; label < KNEE_LABELS; label++)
            if (kind->labels & BIT(label))
                own[i][label] += sums[label];
        covered = span->end_ns;
    }
}

static void own_gaps(const struct knee_rank_account *rank, knee_own_row *own)
{
    const struct knee_rank *source = rank->source;
    size_t next = 0;
    for (size_t i = 0; i < rank->run_count; i++) {
        int64_t end = knee_run_end(rank, i);
        if (rank->runs[i].label < KNEE_STARVED)
            continue;
        while (next < source->span_count && source->spans[next].start_ns < end)
            next++;
        own[next][rank->runs[i].label] += end - rank->runs[i].start_ns;
    }
}

void knee_own_times(const struct knee_rank_account *rank, knee_own_row *own)
{
    memset(own, 0, (rank->source->span_count + 1) * sizeof *own);
    if (!rank->runs)
        return;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        own_covered(rank, &kinds[i], own);
    own_gaps(rank, own);
}
