/* SPDX-License-Identifier: MIT */
/* Which moments of a rank lie in complete steps: figures per step are the mean over those. */
#include "timeline/where.h"

#include "base/order.h"

/* The first step of a rank, and how many it has; they stand together, in order of time. */
static size_t steps_of(const struct knee_account *account, size_t rank, size_t *count)
{
    size_t first, end;
    KNEE_BISECT(first, account->step_count, account->steps[first].rank < rank);
    KNEE_BISECT(end, account->step_count, account->steps[end].rank <= rank);
    *count = end - first;
    return first;
}

double knee_complete_steps(const struct knee_account *account, size_t rank)
{
    size_t count, first = steps_of(account, rank, &count), complete = 0;
    for (size_t i = 0; i < count; i++)
        complete += account->steps[first + i].complete;
    return complete ? (double)complete : 1;
}

static bool any_complete(const struct knee_step_account *steps, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (steps[i].complete)
            return true;
    return false;
}

const struct knee_step_account *knee_step_at(const struct knee_account *account, size_t rank,
                                             int64_t own_ns)
{
    size_t count, first = steps_of(account, rank, &count), low;
    const struct knee_step_account *steps = count ? &account->steps[first] : NULL;
    KNEE_BISECT(low, count, steps[low].start_ns <= own_ns);
    bool inside = low > 0 && own_ns - steps[low - 1].start_ns < steps[low - 1].ledger.window_ns;
    return inside ? &steps[low - 1] : NULL;
}

bool knee_in_complete_step(const struct knee_account *account, size_t rank, int64_t own_ns)
{
    const struct knee_step_account *step = knee_step_at(account, rank, own_ns);
    if (step && step->complete)
        return true;
    size_t count, first = steps_of(account, rank, &count);
    return !any_complete(count ? &account->steps[first] : NULL, count);
}
