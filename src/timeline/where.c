/* SPDX-License-Identifier: MIT */
/* Puts the parts of where.h together. */
#include "timeline/where.h"

#include "base/error.h"
#include "base/text.h"

#include <string.h>

static void drop(const struct knee_alloc *alloc, void *data)
{
    knee_resize(alloc, data, 0);
}

static bool find_all(const struct knee_account *account, knee_own_row **own, struct knee_where *out)
{
    for (size_t r = 0; r < account->rank_count; r++) {
        size_t rows = account->ranks[r].source->span_count + 1;
        own[r] = knee_resize(out->alloc, NULL, rows * sizeof **own);
        if (!own[r])
            return false;
        knee_own_times(&account->ranks[r], own[r]);
        out->host = out->host || account->ranks[r].trace->host_event_count > 0;
    }
    return knee_find_buckets(account, own, out) && knee_find_kernel_uses(account, own, out) &&
           knee_find_critical_path(account, out) &&
           (!out->host ||
            (knee_find_places(account, own, out) && knee_find_host_gaps(account, out)));
}

knee_status knee_find_where(const struct knee_account *account, const struct knee_alloc *alloc,
                            struct knee_where *out, struct knee_err *err)
{
    size_t size = (account->rank_count + 1) * sizeof(knee_own_row *);
    knee_own_row **own = knee_zeroed(alloc, size);
    *out = (struct knee_where){.alloc = alloc, .rank_count = account->rank_count};
    bool good = own && find_all(account, own, out);
    for (size_t r = 0; r < account->rank_count && own; r++)
        drop(alloc, own[r]);
    drop(alloc, own);
    if (good)
        return KNEE_OK;
    knee_where_release(out);
    return knee_fail(err, KNEE_SYSTEM, "", "out of memory for --where");
}

void knee_where_release(struct knee_where *where)
{
    drop(where->alloc, where->buckets);
    drop(where->alloc, where->kernels);
    for (int kind = 0; kind < KNEE_PLACES; kind++)
        drop(where->alloc, where->places[kind]);
    drop(where->alloc, where->path_s);
    memset(where, 0, sizeof *where);
}
