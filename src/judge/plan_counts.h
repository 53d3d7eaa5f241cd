/* SPDX-License-Identifier: MIT */
#ifndef KNEE_JUDGE_PLAN_COUNTS_H
#define KNEE_JUDGE_PLAN_COUNTS_H

#include "knee_plan.h"

/* The search over all GPU counts of an answer. One search of one count is the caller's, who may
 * spread it over threads or processes, and sets `stopped` when the user wants no more. */
struct knee_counts_search {
    struct knee_plan_answer *answer;
    const struct knee_framework *framework; /* NULL: any */
    const struct knee_alloc *alloc;
    knee_status (*search)(struct knee_counts_search *s, const struct knee_search *search,
                          struct knee_search_result *out, struct knee_err *err);
    void *ctx;
    size_t top;
    size_t part, parts; /* counts i with i % parts == part are this process's */
    bool compared;      /* with a baseline, and with the smallest count */
    double done;        /* of all counts, for who watches */
    bool stopped;
};
knee_status knee_plan_search_counts(struct knee_counts_search *s, struct knee_err *err);
/* The best plan of any framework at the chosen count: answer->free. */
knee_status knee_plan_search_free(struct knee_counts_search *s, struct knee_err *err);

#endif
