/* SPDX-License-Identifier: MIT */
/*
 * The wires. Formats go through lab_ring_sum(); PowerSGD sends two thin factors of each matrix
 * (Vogels et al. 2019), top-k the largest values with their places (Lin et al. 2018). What a wire
 * leaves out is kept and added to the next gradient (error feedback, Karimireddy et al. 2019).
 */
#include "lab/lab_wire.h"

#include "base/keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RANK = 4 };     /* of PowerSGD's factors */
#define TOP_SHARE 0.01 /* of the values that top-k sends */

/* ---- Number formats ---- */

static bool format_exchange(const struct lab_wire *wire, struct lab_group *group,
                            struct lab_bucket *b, float *values)
{
    return lab_ring_sum(
        group, wire->format,
        &(struct lab_vector){values, b->count, b->memory, b->owner_memory, b->room});
}

static double format_bytes(const struct lab_wire *wire, const struct lab_bucket *b, int workers)
{
    return lab_ring_sum_bytes(wire->format, b->count, workers);
}

static double ring_hops(int workers)
{
    return 2.0 * (workers - 1);
}

/* ---- PowerSGD ---- */

/* Worth it for matrices whose two factors are smaller than they are. */
static bool is_low_rank(const struct lab_tensor *t)
{
    return t->rows > 1 && RANK * (t->rows + t->columns) < t->rows * t->columns;
}

/* Values in the first sum (left factors, and tensors as they are) and in the second. */
static void factor_counts(const struct lab_bucket *b, size_t *left, size_t *right)
{
    *left = *right = 0;
    for (size_t i = 0; i < b->tensor_count; i++) {
        const struct lab_tensor *t = &b->tensors[i];
        *left += is_low_rank(t) ? RANK * t->rows : t->rows * t->columns;
        *right += is_low_rank(t) ? RANK * t->columns : 0;
    }
}

/* Columns of p (rows x RANK) made orthogonal and of length 1, in order (Gram-Schmidt). */
static void orthogonalise(float *p, size_t rows)
{
    for (size_t c = 0; c < RANK; c++) {
        double square = 0;
        for (size_t before = 0; before < c; before++) {
            double along = 0;
            for (size_t i = 0; i < rows; i++)
                along += (double)p[i * RANK + before] * (double)p[i * RANK + c];
            for (size_t i = 0; i < rows; i++)
                p[i * RANK + c] -= (float)along * p[i * RANK + before];
        }
        for (size_t i = 0; i < rows; i++)
            square += (double)p[i * RANK + c] * (double)p[i * RANK + c];
        float scale = square > 1e-30 ? (float)(1 / sqrt(square)) : 0;
        for (size_t i = 0; i < rows; i++)
            p[i * RANK + c] *= scale;
    }
}

static void times(bool transposed, const struct lab_tensor *t, const float *m, const float *factor,
                  float *out)
{
    lab_gemm((struct lab_gemm){.a_transposed = transposed,
                               .rows = transposed ? t->columns : t->rows,
                               .columns = RANK,
                               .inner = transposed ? t->rows : t->columns,
                               .a_stride = t->columns,
                               .b_stride = RANK,
                               .c_stride = RANK,
                               .alpha = 1},
             m, factor, out);
}

/* P = M Q, summed, made orthogonal; Q = M' P, summed; the sum of all M is about P Q'. What a
 * worker's own M has beyond its share of that is kept. */
static bool low_rank_exchange(const struct lab_wire *wire, struct lab_group *group,
                              struct lab_bucket *b, float *values)
{
    (void)wire;
    size_t left_count, right_count, left = 0, right = 0;
    if (group->size == 1)
        return true;
    factor_counts(b, &left_count, &right_count);
    for (size_t i = 0; i < b->count; i++)
        values[i] += b->memory[i];
    for (size_t i = 0; i < b->tensor_count; i++) {
        const struct lab_tensor *t = &b->tensors[i];
        const float *m = values + (t->at - b->at);
        if (is_low_rank(t)) {
            times(false, t, m, b->factors + right, b->work + left);
            left += RANK * t->rows;
            right += RANK * t->columns;
        } else {
            memcpy(b->work + left, m, t->rows * t->columns * sizeof *m);
            left += t->rows * t->columns;
        }
    }
    if (!lab_ring_sum(group, &lab_f32,
                      &(struct lab_vector){b->work, left_count, NULL, NULL, b->room}))
        return false;
    left = right = 0;
    for (size_t i = 0; i < b->tensor_count; i++) {
        const struct lab_tensor *t = &b->tensors[i];
        if (is_low_rank(t)) {
            orthogonalise(b->work + left, t->rows);
            times(true, t, values + (t->at - b->at), b->work + left, b->factors + right);
            right += RANK * t->columns;
        }
        left += is_low_rank(t) ? RANK * t->rows : t->rows * t->columns;
    }
    if (!lab_ring_sum(group, &lab_f32,
                      &(struct lab_vector){b->factors, right_count, NULL, NULL, b->room}))
        return false;
    left = right = 0;
    for (size_t i = 0; i < b->tensor_count; i++) {
        const struct lab_tensor *t = &b->tensors[i];
        size_t at = t->at - b->at, count = t->rows * t->columns;
        float *m = values + at;
        memcpy(b->memory + at, m, count * sizeof *m);
        if (is_low_rank(t)) {
            lab_gemm((struct lab_gemm){.b_transposed = true,
                                       .rows = t->rows,
                                       .columns = t->columns,
                                       .inner = RANK,
                                       .a_stride = RANK,
                                       .b_stride = RANK,
                                       .c_stride = t->columns,
                                       .alpha = 1},
                     b->work + left, b->factors + right, m);
            for (size_t j = 0; j < count; j++)
                b->memory[at + j] -= m[j] / (float)group->size;
            right += RANK * t->columns;
            left += RANK * t->rows;
        } else {
            memcpy(m, b->work + left, count * sizeof *m);
            memset(b->memory + at, 0, count * sizeof *m);
            left += count;
        }
    }
    return true;
}

static double low_rank_bytes(const struct lab_wire *wire, const struct lab_bucket *b, int workers)
{
    size_t left, right;
    (void)wire;
    factor_counts(b, &left, &right);
    return lab_ring_sum_bytes(&lab_f32, left, workers) +
           lab_ring_sum_bytes(&lab_f32, right, workers);
}

static double low_rank_hops(int workers)
{
    return 2 * ring_hops(workers);
}

/* ---- Top-k ---- */

struct picked {
    uint32_t place;
    float value;
};

static size_t picked_count(const struct lab_bucket *b)
{
    size_t count = (size_t)ceil(TOP_SHARE * (double)b->count);
    return count < b->count ? count : b->count;
}

/* The value that would stand at `place` if `x` were sorted, largest first (Hoare's quickselect). */
static float select_largest(float *x, size_t count, size_t place)
{
    size_t low = 0, high = count - 1;
    while (low < high) {
        float pivot = x[low + (high - low) / 2];
        size_t i = low, j = high;
        for (;;) {
            while (x[i] > pivot)
                i++;
            while (x[j] < pivot)
                j--;
            if (i >= j)
                break;
            float swapped = x[i];
            x[i++] = x[j];
            x[j--] = swapped;
        }
        if (place <= j)
            high = j;
        else
            low = j + 1;
    }
    return x[place];
}

/* The `wanted` largest magnitudes; they leave `rest` (which keeps the others). */
static void pick(float *rest, size_t count, float *sorted, struct picked *out, size_t wanted)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        sorted[i] = fabsf(rest[i]);
    float least = select_largest(sorted, count, wanted - 1);
    for (int equal = 0; equal < 2; equal++) /* those above the limit first, then those on it */
        for (size_t i = 0; i < count && found < wanted; i++) {
            float size = fabsf(rest[i]);
            if (equal ? size == least && rest[i] != 0 : size > least) {
                out[found++] = (struct picked){(uint32_t)i, rest[i]};
                rest[i] = 0;
            }
        }
    while (found < wanted)
        out[found++] = (struct picked){0, 0};
}

static bool top_exchange(const struct lab_wire *wire, struct lab_group *group, struct lab_bucket *b,
                         float *values)
{
    (void)wire;
    size_t wanted = picked_count(b), bytes = wanted * sizeof(struct picked);
    struct picked *all = (struct picked *)(void *)b->room;
    if (group->size == 1)
        return true;
    for (size_t i = 0; i < b->count; i++)
        b->memory[i] += values[i];
    pick(b->memory, b->count, b->work, all + (size_t)group->rank * wanted, wanted);
    if (!lab_ring_gather(group, b->room, bytes))
        return false;
    memset(values, 0, b->count * sizeof *values);
    for (size_t i = 0; i < wanted * (size_t)group->size; i++)
        values[all[i].place] += all[i].value;
    return true;
}

static double top_bytes(const struct lab_wire *wire, const struct lab_bucket *b, int workers)
{
    (void)wire;
    return (double)(workers - 1) * (double)(picked_count(b) * sizeof(struct picked));
}

static double top_hops(int workers)
{
    return workers - 1;
}

/* ---- The table ---- */

static const struct lab_wire table[] = {
    {"f32", "lab_all_reduce_kernel_RING_f32", "as computed", KNEE_OP_ALL_REDUCE, &lab_f32, false,
     format_exchange, format_bytes, ring_hops},
    {"bf16", "lab_all_reduce_kernel_RING_bf16", "half the bytes, 8 bits of mantissa",
     KNEE_OP_ALL_REDUCE, &lab_bf16, false, format_exchange, format_bytes, ring_hops},
    {"fp8", "lab_all_reduce_kernel_RING_f8e4m3", "a quarter, a scale per 128, error feedback",
     KNEE_OP_ALL_REDUCE, &lab_fp8, true, format_exchange, format_bytes, ring_hops},
    {"int8", "lab_all_reduce_kernel_RING_i8", "a quarter, a scale per 256, error feedback",
     KNEE_OP_ALL_REDUCE, &lab_int8, true, format_exchange, format_bytes, ring_hops},
    {"1-bit", "lab_all_reduce_kernel_RING_u8", "signs, a scale per 1024, error feedback",
     KNEE_OP_ALL_REDUCE, &lab_one_bit, true, format_exchange, format_bytes, ring_hops},
    {"powersgd", "lab_all_reduce_kernel_RING_f32_low_rank", "two factors of rank 4, error feedback",
     KNEE_OP_ALL_REDUCE, NULL, true, low_rank_exchange, low_rank_bytes, low_rank_hops},
    {"top-k", "lab_all-gather_RING_f32_top", "1 % of the values, all-gathered, error feedback",
     KNEE_OP_ALL_GATHER, NULL, true, top_exchange, top_bytes, top_hops},
};

KNEE_NAMES(lab_wire_names, "wire", table);

const struct lab_wire *lab_wire_at(int row)
{
    return row >= 0 && (size_t)row < sizeof table / sizeof *table ? &table[row] : NULL;
}

bool lab_bucket_init(struct lab_bucket *b, const struct lab_wire *wire, int workers,
                     struct knee_arena *memory)
{
    size_t left, right, top = (size_t)workers * picked_count(b) * sizeof(struct picked);
    factor_counts(b, &left, &right);
    size_t room = lab_ring_room(wire->format ? wire->format : &lab_f32, b->count, workers);
    if (wire->feedback)
        b->memory = knee_arena_take(memory, b->count + 1, sizeof *b->memory);
    if (wire->feedback && wire->format)
        b->owner_memory = knee_arena_take(memory, b->count + 1, sizeof *b->owner_memory);
    b->factors = knee_arena_take(memory, right + 1, sizeof *b->factors);
    b->work = knee_arena_take(memory, b->count + left + 1, sizeof *b->work);
    b->room = knee_arena_take(memory, room > top ? room : top, 1);
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; b->factors && i < right; i++)
        b->factors[i] = (float)lab_normal(&state);
    return !memory->failed;
}
