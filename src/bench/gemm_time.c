/* SPDX-License-Identifier: MIT */
/* Products through cuBLAS. */
#include "base/error.h"
#include "bench/cuda.h"
#include "bench/gemm.h"

#include <math.h>

enum { WARMUP = 3, FEWEST_RUNS = 3, MOST_RUNS = 1000 };

#define LARGEST 16384.0                 /* of a side: three square matrices take 1.6 GB */
#define ROOM    (2 * LARGEST * LARGEST) /* bytes of one of them */

/* ---- One product ---- */

struct bench_room {
    const struct knee_cuda *cuda;
    void *a, *b, *c, *blas, *from, *to; /* from, to: events */
};

/* Each run uses its own matrices while memory lasts. Those of the previous run would still be in
 * the GPU's cache and read faster than from memory (1.14 times, measured on an H200). */
static void *own(void *matrix, double bytes, int run)
{
    int places = (int)(ROOM / bytes);
    return (char *)matrix + (size_t)bytes * (size_t)(run % places);
}

/* c = a b: m x k by k x n, the second transposed, as a layer's weights lie. */
static bool multiply(const struct bench_room *room, const struct knee_timed_product *p, int run)
{
    static const float one = 1, nothing = 0;
    int m = (int)p->m, n = (int)p->n, k = (int)p->k;
    void *a = own(room->a, 2 * p->m * p->k, run), *b = own(room->b, 2 * p->n * p->k, run),
         *c = own(room->c, 2 * p->m * p->n, run);
    return room->cuda->gemm(room->blas, CUDA_OP_T, CUDA_OP_N, n, m, k, &one, b, CUDA_BF16, k, a,
                            CUDA_BF16, k, &nothing, c, CUDA_BF16, n, CUDA_COMPUTE_F32,
                            CUDA_ALGORITHM_DEFAULT) == 0;
}

/* Seconds of one of `runs` in a row; NaN: CUDA says no. */
static double timed(const struct bench_room *room, const struct knee_timed_product *p, int runs)
{
    const struct knee_cuda *cuda = room->cuda;
    float ms = 0;
    bool good = cuda->event_record(room->from, NULL) == 0;
    for (int i = 0; i < runs && good; i++)
        good = multiply(room, p, i);
    good = good && cuda->event_record(room->to, NULL) == 0 && cuda->event_wait(room->to) == 0 &&
           cuda->event_ms(&ms, room->from, room->to) == 0;
    return good ? (double)ms * 1e-3 / runs : NAN;
}

/* ---- All of them ---- */

static void leave(struct bench_room *room)
{
    const struct knee_cuda *cuda = room->cuda;
    void *const matrices[] = {room->a, room->b, room->c}, *const events[] = {room->from, room->to};
    for (size_t i = 0; i < 3; i++)
        if (matrices[i])
            cuda->free(matrices[i]);
    for (size_t i = 0; i < 2; i++)
        if (events[i])
            cuda->event_destroy(events[i]);
    if (room->blas)
        cuda->blas_destroy(room->blas);
}

static bool enter(struct bench_room *room)
{
    const struct knee_cuda *cuda = room->cuda;
    size_t bytes = (size_t)ROOM;
    return cuda->malloc(&room->a, bytes) == 0 && cuda->malloc(&room->b, bytes) == 0 &&
           cuda->malloc(&room->c, bytes) == 0 && cuda->event_create(&room->from) == 0 &&
           cuda->event_create(&room->to) == 0 && cuda->blas_create(&room->blas) == 0 &&
           knee_cuda_fill(cuda, room->a, bytes) && knee_cuda_fill(cuda, room->b, bytes);
}

/* From a few tokens to many, from narrow to wide: the range that the constants describe. */
static const double tokens[] = {256, 1024, 4096, 16384};
static const double widths[] = {512, 2048, 4096, 8192, 16384};
#define TOKENS (sizeof tokens / sizeof *tokens)
#define WIDTHS (sizeof widths / sizeof *widths)

static bool time_product(const struct bench_room *room, double row_time_s,
                         struct knee_timed_product *p)
{
    double once_s = timed(room, p, WARMUP);
    if (isnan(once_s))
        return false;
    double runs = fmin(MOST_RUNS, fmax(FEWEST_RUNS, row_time_s / once_s));
    p->seconds = timed(room, p, (int)runs);
    return p->seconds > 0;
}

static knee_status time_all(const struct bench_room *room, double row_time_s, knee_gemm_tell *tell,
                            void *ctx, struct knee_timed_products *gemm, struct knee_err *err)
{
    for (size_t i = 0; i < TOKENS * WIDTHS * WIDTHS; i++) {
        struct knee_timed_product p = {KNEE_16BIT, tokens[i / WIDTHS / WIDTHS],
                                       widths[i / WIDTHS % WIDTHS], widths[i % WIDTHS], NAN};
        if (!time_product(room, row_time_s, &p))
            return knee_fail(err, KNEE_SYSTEM, "--gemm", "cuBLAS fails at %.0f x %.0f x %.0f", p.m,
                             p.n, p.k);
        if (!knee_timed_products_add(gemm, p))
            return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the products");
        if (tell)
            tell(ctx, i + 1, TOKENS * WIDTHS * WIDTHS);
    }
    return KNEE_OK;
}

knee_status knee_gemm_measure(double row_time_s, knee_gemm_tell *tell, void *ctx,
                              struct knee_timed_products *out, struct knee_err *err)
{
    struct knee_cuda cuda = {0};
    struct knee_timed_products gemm = {0};
    struct bench_room room = {.cuda = &cuda};
    knee_status status = knee_cuda_open("--gemm", &cuda, gemm.gpu, sizeof gemm.gpu, err);
    if (status)
        return status;
    if (!enter(&room))
        status = knee_cuda_refuse("--gemm", "this one lacks 1.6 GB of free memory or does not work",
                                  err);
    else
        status = time_all(&room, row_time_s, tell, ctx, &gemm, err);
    leave(&room);
    if (status)
        knee_timed_products_release(&gemm);
    else
        *out = gemm;
    return status;
}
