/* SPDX-License-Identifier: MIT */
/* Each collective of a step by its place in the order, its operation and its size. */
#include "base/order.h"
#include "timeline/where.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* A call of a complete step. */
struct item {
    struct knee_bucket key;
    int64_t start_ns, hidden_ns, transfer_ns, wait_ns;
};

KNEE_SORT(by_key, struct item,
          KNEE_THEN(KNEE_UP(key.order),
                    KNEE_THEN(KNEE_UP(key.op),
                              KNEE_THEN(KNEE_UP(key.bytes), strcmp(a->key.group, b->key.group)))))

static size_t take_rank(const struct knee_account *account, size_t row, const knee_own_row *own,
                        struct item *items)
{
    const struct knee_rank_account *rank = &account->ranks[row];
    const struct knee_step_account *last = NULL;
    size_t count = 0, order = 0;
    for (size_t c = 0; c < rank->source->call_count; c++) {
        const struct knee_call *call = &rank->source->calls[c];
        const struct knee_span *span = &rank->source->spans[call->span];
        const struct knee_step_account *step = knee_step_at(account, row, span->start_ns);
        order = step == last && c ? order + 1 : 0;
        last = step;
        if (!knee_in_complete_step(account, row, span->start_ns))
            continue;
        const int64_t *ns = own[call->span];
        int64_t exposed = ns[KNEE_TRANSFER] + ns[KNEE_WAIT];
        items[count++] = (struct item){
            .key = {.order = order,
                    .op = call->op,
                    .bytes = call->bytes,
                    .group = call->group ? rank->trace->names[call->group - 1] : ""},
            .start_ns = span->start_ns - (step ? step->start_ns : rank->from_ns),
            .hidden_ns = span->end_ns - span->start_ns > exposed
                             ? span->end_ns - span->start_ns - exposed
                             : 0,
            .transfer_ns = ns[KNEE_TRANSFER],
            .wait_ns = ns[KNEE_WAIT],
        };
    }
    return count;
}

/* Sums of equal keys, as means per call. */
static size_t merge(struct item *items, size_t count, struct knee_bucket *out)
{
    size_t rows = 0;
    for (size_t i = 0; i < count;) {
        struct knee_bucket *bucket = &out[rows++];
        *bucket = items[i].key;
        size_t first = i;
        for (; i < count && by_key(&items[first], &items[i]) == 0; i++) {
            bucket->calls++;
            bucket->start_s += 1e-9 * (double)items[i].start_ns;
            bucket->hidden_s += 1e-9 * (double)items[i].hidden_ns;
            bucket->transfer_s += 1e-9 * (double)items[i].transfer_ns;
            bucket->wait_s += 1e-9 * (double)items[i].wait_ns;
        }
        double calls = (double)bucket->calls;
        bucket->start_s /= calls, bucket->hidden_s /= calls;
        bucket->transfer_s /= calls, bucket->wait_s /= calls;
    }
    return rows;
}

bool knee_find_buckets(const struct knee_account *account, knee_own_row *const *own,
                       struct knee_where *out)
{
    size_t calls = 0, count = 0;
    for (size_t r = 0; r < account->rank_count; r++)
        calls += account->ranks[r].source->call_count;
    struct item *items = knee_resize(out->alloc, NULL, (calls + 1) * sizeof *items);
    out->buckets = knee_resize(out->alloc, NULL, (calls + 1) * sizeof *out->buckets);
    bool good = items && out->buckets;
    for (size_t r = 0; r < account->rank_count && good; r++)
        count += take_rank(account, r, own[r], items + count);
    if (good && count) {
        qsort(items, count, sizeof *items, by_key);
        out->bucket_count = merge(items, count, out->buckets);
    }
    knee_resize(out->alloc, items, 0);
    return good;
}
