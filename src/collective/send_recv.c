/* SPDX-License-Identifier: MIT */
/* Every rank sends its buffer to the next one: a message, as nccl-tests' sendrecv times it. */
#include "collective/collective.h"

static bool count_send_recv(const struct knee_layout *layout, enum knee_op op, double bytes,
                            struct knee_counts *out)
{
    struct knee_counts counts = {0};
    if (op != KNEE_OP_SEND_RECV)
        return false;
    counts.hops[knee_layout_top(layout)] = 1;
    knee_count_bytes(layout, bytes, &counts);
    *out = counts;
    return true;
}

const struct knee_algorithm knee_send_recv = {
    .name = "send-recv",
    .formula = "alpha + S/B",
    .origin = "Hockney 1994",
    .count = count_send_recv,
    .nccl = "P2P",
};
