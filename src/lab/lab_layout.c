/* SPDX-License-Identifier: MIT */
/* Parts and buckets of what is exchanged. */
#include "lab/lab.h"

#include <math.h>
#include <string.h>

/* Each synthetic part is a square matrix and what is left over as a vector. */
static void synthetic_parts(struct lab_layout *l, size_t params)
{
    l->part_count = LAB_SYNTHETIC_PARTS;
    for (size_t p = 0; p < l->part_count; p++) {
        size_t at = params * p / l->part_count, count = params * (p + 1) / l->part_count - at;
        size_t side = (size_t)sqrt((double)count);
        l->part_at[p] = at;
        l->tensors[l->tensor_count++] = (struct lab_tensor){at, side, side, 0};
        if (count > side * side)
            l->tensors[l->tensor_count++] =
                (struct lab_tensor){at + side * side, 1, count - side * side, 0};
    }
    l->part_at[l->part_count] = l->param_count = params;
}

static void net_parts(struct lab_layout *l, const struct lab_net *net)
{
    l->part_count = net->node_count;
    for (size_t p = 0; p < net->node_count; p++)
        l->part_at[p] = net->nodes[p].param;
    l->part_at[l->part_count] = l->param_count = net->param_count;
    memcpy(l->tensors, net->tensors, net->tensor_count * sizeof *net->tensors);
    l->tensor_count = net->tensor_count;
}

/* The tensors of a range of parameters stand together. */
static void fill_bucket(struct lab_layout *l, size_t from, size_t to, size_t part)
{
    struct lab_bucket *b = &l->buckets[l->bucket_count];
    size_t first = 0, last = 0;
    while (first < l->tensor_count && l->tensors[first].at < from)
        first++;
    for (last = first; last < l->tensor_count && l->tensors[last].at < to;)
        last++;
    *b = (struct lab_bucket){.at = from,
                             .count = to - from,
                             .tensors = &l->tensors[first],
                             .tensor_count = last - first};
    l->bucket_part[l->bucket_count++] = part;
}

bool lab_layout_init(struct lab_layout *l, const struct lab_setup *setup, const struct lab_net *net,
                     int workers)
{
    memset(l, 0, sizeof *l);
    if (net)
        net_parts(l, net);
    else
        synthetic_parts(l, setup->params);
    size_t end = l->param_count;
    for (size_t part = l->part_count; part-- > 0;) {
        size_t from = l->part_at[part];
        bool full = 4 * (double)(end - from) >= setup->bucket_bytes;
        if (end == from || (!full && part > 0))
            continue;
        if (l->bucket_count == LAB_BUCKETS_MAX)
            return false;
        fill_bucket(l, from, end, part);
        end = from;
    }
    for (size_t b = 0; b < l->bucket_count; b++)
        lab_bucket_init(&l->buckets[b], lab_wire_at(setup->wire), workers, &l->memory);
    return !l->memory.failed;
}

void lab_layout_release(struct lab_layout *l)
{
    knee_arena_release(&l->memory);
    l->bucket_count = 0;
}

void lab_layout_traffic(const struct lab_layout *l, const struct lab_wire *wire, int workers,
                        double *bytes, double *hops)
{
    *bytes = *hops = 0;
    for (size_t b = 0; b < l->bucket_count && workers > 1; b++) {
        *bytes += wire->bytes(wire, &l->buckets[b], workers);
        *hops += wire->hops(workers);
    }
}

double lab_exposed_s(const double *ready_s, const double *comm_s, size_t buckets, double backward_s)
{
    double done = 0;
    for (size_t b = 0; b < buckets; b++)
        done = fmax(done, ready_s[b]) + comm_s[b];
    return fmax(0, done - backward_s);
}
