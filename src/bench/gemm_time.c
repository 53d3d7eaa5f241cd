/* SPDX-License-Identifier: MIT */
/*
 * Products through cuBLAS. CUDA's libraries are loaded when they are asked for, not linked. Random
 * values: a GPU that multiplies zeros takes less power, and is quicker than one that works.
 */
#include "base/error.h"
#include "bench/gemm.h"

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CUDA's and cuBLAS' own values. */
enum { OP_N = 0, OP_T = 1, BF16 = 14, COMPUTE_F32 = 68, ALGORITHM_DEFAULT = -1, TO_DEVICE = 1 };
enum { WARMUP = 3, FEWEST_RUNS = 3, MOST_RUNS = 1000 };

#define LARGEST 16384.0                 /* of a side: three square matrices take 1.6 GB */
#define ROOM    (2 * LARGEST * LARGEST) /* bytes of one of them */

struct cuda {
    void *driver, *runtime, *blas; /* libraries; they stay */
    int (*init)(unsigned);
    int (*device_name)(char *, int, int);
    int (*malloc)(void **, size_t);
    int (*free)(void *);
    int (*copy)(void *, const void *, size_t, int);
    int (*event_create)(void **);
    int (*event_destroy)(void *);
    int (*event_record)(void *, void *stream);
    int (*event_wait)(void *);
    int (*event_ms)(float *, void *, void *);
    int (*blas_create)(void **);
    int (*blas_destroy)(void *);
    int (*gemm)(void *, int, int, int, int, int, const void *, const void *, int, int, const void *,
                int, int, const void *, void *, int, int, int, int);
};

static void *library(const char *const *names)
{
    void *found = NULL;
    for (size_t i = 0; names[i] && !found; i++)
        found = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
    return found;
}

/* What is called, and where it lies in struct cuda. */
#define CALL(library, name, field)                                                                 \
    {                                                                                              \
        offsetof(struct cuda, library), name, offsetof(struct cuda, field)                         \
    }
static const struct {
    size_t library;
    const char *name;
    size_t field;
} calls[] = {
    CALL(driver, "cuInit", init),
    CALL(driver, "cuDeviceGetName", device_name),
    CALL(runtime, "cudaMalloc", malloc),
    CALL(runtime, "cudaFree", free),
    CALL(runtime, "cudaMemcpy", copy),
    CALL(runtime, "cudaEventCreate", event_create),
    CALL(runtime, "cudaEventDestroy", event_destroy),
    CALL(runtime, "cudaEventRecord", event_record),
    CALL(runtime, "cudaEventSynchronize", event_wait),
    CALL(runtime, "cudaEventElapsedTime", event_ms),
    CALL(blas, "cublasCreate_v2", blas_create),
    CALL(blas, "cublasDestroy_v2", blas_destroy),
    CALL(blas, "cublasGemmEx", gemm),
};

static knee_status not_here(const char *what, struct knee_err *err)
{
    knee_fail(err, KNEE_SYSTEM, "--gemm", "products are timed on a GPU, and %s", what);
    knee_hint(err, "run it where the job runs, or give --table with products timed there");
    return KNEE_SYSTEM;
}

static knee_status no_libraries(struct knee_err *err)
{
    knee_fail(err, KNEE_SYSTEM, "--gemm", "libcudart and libcublas are not found");
    knee_hint(err, "LD_LIBRARY_PATH says where they lie: CUDA's lib64, or PyTorch's nvidia/*/lib");
    return KNEE_SYSTEM;
}

static knee_status load(struct cuda *cuda, struct knee_err *err)
{
    static const char *const drivers[] = {"libcuda.so.1", NULL};
    static const char *const runtimes[] = {"libcudart.so.13", "libcudart.so.12",
                                           "libcudart.so.11.0", "libcudart.so", NULL};
    static const char *const blases[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                         "libcublas.so", NULL};
    if (!(cuda->driver = library(drivers)))
        return not_here("there is no driver of one here (libcuda.so.1)", err);
    if (!(cuda->runtime = library(runtimes)) || !(cuda->blas = library(blases)))
        return no_libraries(err);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        void *from, *symbol;
        memcpy(&from, (char *)cuda + calls[i].library, sizeof from);
        symbol = dlsym(from, calls[i].name);
        memcpy((char *)cuda + calls[i].field, &symbol, sizeof symbol);
        if (!symbol)
            return not_here("CUDA's libraries lack a call that is needed", err);
    }
    return KNEE_OK;
}

/* ---- One product ---- */

struct bench_room {
    const struct cuda *cuda;
    void *a, *b, *c, *blas, *from, *to; /* from, to: events */
};

/* Each run has matrices of its own, as long as there is room: those of the run before would still
 * lie in the GPU's cache, and be read faster than memory can (1.14 times, seen on an H200). */
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
    return room->cuda->gemm(room->blas, OP_T, OP_N, n, m, k, &one, b, BF16, k, a, BF16, k, &nothing,
                            c, BF16, n, COMPUTE_F32, ALGORITHM_DEFAULT) == 0;
}

/* Seconds of one of `runs` in a row; NaN: CUDA says no. */
static double timed(const struct bench_room *room, const struct knee_timed_product *p, int runs)
{
    const struct cuda *cuda = room->cuda;
    float ms = 0;
    bool good = cuda->event_record(room->from, NULL) == 0;
    for (int i = 0; i < runs && good; i++)
        good = multiply(room, p, i);
    good = good && cuda->event_record(room->to, NULL) == 0 && cuda->event_wait(room->to) == 0 &&
           cuda->event_ms(&ms, room->from, room->to) == 0;
    return good ? (double)ms * 1e-3 / runs : NAN;
}

/* ---- All of them ---- */

static uint16_t random_bf16(uint64_t *dice)
{
    *dice = *dice * 6364136223846793005u + 1442695040888963407u;
    float value = (float)(int32_t)(*dice >> 32) / 2147483648.0f; /* -1 to 1 */
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static bool fill(const struct cuda *cuda, char *matrix, size_t bytes, uint16_t *values, size_t size)
{
    bool good = true;
    for (size_t at = 0; at < bytes && good; at += size)
        good =
            cuda->copy(matrix + at, values, size < bytes - at ? size : bytes - at, TO_DEVICE) == 0;
    return good;
}

static void leave(struct bench_room *room)
{
    const struct cuda *cuda = room->cuda;
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
    const struct cuda *cuda = room->cuda;
    size_t bytes = (size_t)ROOM, some = (size_t)4 << 20;
    uint16_t *values = malloc(some);
    uint64_t dice = 1;
    for (size_t i = 0; values && i < some / sizeof *values; i++)
        values[i] = random_bf16(&dice);
    bool good = values && cuda->malloc(&room->a, bytes) == 0 &&
                cuda->malloc(&room->b, bytes) == 0 && cuda->malloc(&room->c, bytes) == 0 &&
                cuda->event_create(&room->from) == 0 && cuda->event_create(&room->to) == 0 &&
                cuda->blas_create(&room->blas) == 0 && fill(cuda, room->a, bytes, values, some) &&
                fill(cuda, room->b, bytes, values, some);
    free(values);
    return good;
}

/* From a few tokens to many, from narrow to wide: what the constants tell apart. */
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
    struct cuda cuda = {0};
    struct knee_timed_products gemm = {0};
    struct bench_room room = {.cuda = &cuda};
    knee_status status = load(&cuda, err);
    if (status)
        return status;
    if (cuda.init(0) != 0 || cuda.device_name(gemm.gpu, sizeof gemm.gpu, 0) != 0)
        return not_here("CUDA finds none here", err);
    if (!enter(&room))
        status = not_here("this one has no 1.6 GB of memory to spare, or is not working", err);
    else
        status = time_all(&room, row_time_s, tell, ctx, &gemm, err);
    leave(&room);
    if (status)
        knee_timed_products_release(&gemm);
    else
        *out = gemm;
    return status;
}
