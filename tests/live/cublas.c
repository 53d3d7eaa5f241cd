/* SPDX-License-Identifier: MIT */
/*
 * Stands in for CUDA's driver, runtime and cuBLAS in one: a GPU whose products take, by a clock of
 * its own, 3 us + 2 m n k / (e 989.5 TFLOP/s), e = 0.75 k / (k + 100) w / (w + 0.1), w waves of
 * 128 x 128 tiles on 132 processors, and half of that with a matrix of the product before, where
 * it is in the cache. CUBLAS_FAIL=CALL makes that call fail, CUBLAS_FAIL=gemm=N the N-th product.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static double now_s;
static long products;

static int fails(const char *call)
{
    const char *asked = getenv("CUBLAS_FAIL");
    return asked && strcmp(asked, call) == 0;
}

int cuInit(unsigned flags);
int cuDeviceGetName(char *name, int length, int device);
int cudaMalloc(void **out, size_t bytes);
int cudaFree(void *memory);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaEventCreate(void **out);
int cudaEventDestroy(void *event);
int cudaEventRecord(void *event, void *stream);
int cudaEventSynchronize(void *event);
int cudaEventElapsedTime(float *ms, void *from, void *to);
int cublasCreate_v2(void **out);
int cublasDestroy_v2(void *handle);
int cublasGemmEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha,
                 const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                 const void *beta, void *c, int c_type, int ldc, int compute, int algorithm);

int cuInit(unsigned flags)
{
    (void)flags;
    return fails("init");
}

int cuDeviceGetName(char *name, int length, int device)
{
    (void)device;
    strncpy(name, "NVIDIA H200", (size_t)length);
    return fails("name");
}

int cudaMalloc(void **out, size_t bytes)
{
    *out = bytes == (size_t)512 << 20 && !fails("malloc") ? malloc(1) : NULL;
    return *out == NULL;
}

int cudaFree(void *memory)
{
    free(memory);
    return 0;
}

int cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    const uint16_t *values = from; /* any that are not all alike */
    return !to || kind != 1 || bytes < 4 || values[0] == values[1] || fails("copy");
}

int cudaEventCreate(void **out)
{
    *out = fails("event") ? NULL : calloc(1, sizeof(double));
    return *out == NULL;
}

int cudaEventDestroy(void *event)
{
    free(event);
    return 0;
}

int cudaEventRecord(void *event, void *stream)
{
    (void)stream;
    memcpy(event, &now_s, sizeof now_s);
    return 0;
}

int cudaEventSynchronize(void *event)
{
    return event == NULL;
}

int cudaEventElapsedTime(float *ms, void *from, void *to)
{
    double began_s, ended_s;
    memcpy(&began_s, from, sizeof began_s);
    memcpy(&ended_s, to, sizeof ended_s);
    *ms = (float)((ended_s - began_s) * 1e3);
    return 0;
}

int cublasCreate_v2(void **out)
{
    *out = fails("create") ? NULL : malloc(1);
    return *out == NULL;
}

int cublasDestroy_v2(void *handle)
{
    free(handle);
    return 0;
}

int cublasGemmEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha,
                 const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                 const void *beta, void *c, int c_type, int ldc, int compute, int algorithm)
{
    const char *asked = getenv("CUBLAS_FAIL");
    if (asked && strncmp(asked, "gemm=", 5) == 0 && ++products >= strtol(asked + 5, NULL, 10))
        return 13;
    double waves = (double)m * n / (16384.0 * 132);
    double share = 0.75 * k / (k + 100) * waves / (waves + 0.1);
    static const void *before; /* of a; of 50 MB of cache it may take half */
    int cached = a == before && 2.0 * m * k < 25e6;
    before = a;
    now_s += (3e-6 + 2.0 * m * n * k / (share * 989.5e12)) * (cached ? 0.5 : 1);
    /* bf16 in and out, sums of 32 bits, the first one transposed, as its rows lie */
    return !handle || !a || !b || !c || !alpha || !beta || ta != 1 || tb != 0 || lda != k ||
           ldb != k || ldc != m || a_type != 14 || b_type != 14 || c_type != 14 || compute != 68 ||
           algorithm != -1;
}
