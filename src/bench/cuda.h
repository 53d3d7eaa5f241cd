/* SPDX-License-Identifier: MIT */
/* CUDA's libraries, loaded when they are asked for, not linked: what bench --gemm and --power call.
 */
#ifndef KNEE_BENCH_CUDA_H
#define KNEE_BENCH_CUDA_H

#include "knee_keys.h"

/* CUDA's and cuBLAS' own values. */
enum {
    CUDA_OP_N = 0,
    CUDA_OP_T = 1,
    CUDA_BF16 = 14,
    CUDA_COMPUTE_F32 = 68,
    CUDA_TO_DEVICE = 1,
    CUDA_TO_HOST = 2
};
#define CUDA_ALGORITHM_DEFAULT (-1)

struct knee_cuda {
    void *driver, *runtime, *blas; /* libraries; they stay */
    int (*init)(unsigned);
    int (*device_name)(char *, int, int);
    int (*device_uuid)(unsigned char *, int);
    int (*module_load)(void **, const void *ptx);
    int (*module_function)(void **, void *module, const char *name);
    int (*launch)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  unsigned shared, void *stream, void **arguments, void **extra);
    int (*malloc)(void **, size_t);
    int (*free)(void *);
    int (*malloc_host)(void **, size_t); /* pinned */
    int (*free_host)(void *);
    int (*copy)(void *, const void *, size_t, int);
    int (*wait_all)(void);
    int (*event_create)(void **);
    int (*event_destroy)(void *);
    int (*event_record)(void *, void *stream);
    int (*event_wait)(void *);
    int (*event_ms)(float *, void *, void *);
    int (*blas_create)(void **);
    int (*blas_destroy)(void *);
    int (*gemm)(void *, int, int, int, int, int, const void *, const void *, int, int, const void *,
                int, int, const void *, void *, int, int, int, int);
    int (*axpy)(void *, int, const float *, const float *, int, float *, int);
};

/* KNEE_SYSTEM when there is no driver, no library or no GPU; `flag` is who asks. gpu gets the name
 * of the first GPU. */
knee_status knee_cuda_open(const char *flag, struct knee_cuda *cuda, char *gpu, int gpu_size,
                           struct knee_err *err);
/* KNEE_SYSTEM with the reason, in the words of the flag. */
knee_status knee_cuda_refuse(const char *flag, const char *what, struct knee_err *err);

/* Fills device memory with random values of 16 bits: a GPU that multiplies zeros draws less power,
 * and is faster than one that works. */
bool knee_cuda_fill(const struct knee_cuda *cuda, void *device, size_t bytes);

#endif
