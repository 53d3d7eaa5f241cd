/* SPDX-License-Identifier: MIT */
#ifndef KNEE_WEB_LANES_H
#define KNEE_WEB_LANES_H

#include "knee_timeline.h"

enum { LANES = 3 }; /* compute, communication, copies */

struct lane {
    uint32_t *rows;  /* of knee_rank.spans */
    int64_t *latest; /* end of the one that ends last, up to this row */
    size_t count;
};
struct lanes {
    struct lane lane[LANES];
};

int lane_of(enum knee_span_kind kind);
/* False: no memory, and nothing to release. */
bool lanes_make(struct lanes *lanes, const struct knee_rank *rank);
void lanes_release(struct lanes *lanes);
/* The first row before which nothing is open at `ns` or after it. */
size_t lane_first_open(const struct lane *lane, int64_t ns);
/* The first row that starts at `ns` or later. */
size_t lane_first_from(const struct lane *lane, const struct knee_rank *rank, int64_t ns);
/* The span that is open at `ns`, the one begun last where there are several; NULL: none. */
const struct knee_span *lane_at(const struct lane *lane, const struct knee_rank *rank, int64_t ns);

#endif
