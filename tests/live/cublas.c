/* SPDX-License-Identifier: MIT */
/*
 * Stands in for CUDA's driver, runtime and cuBLAS in one: a GPU whose products take, by a clock of
 * its own, 3 us + 2 m n k / (e 989.5 TFLOP/s), e = 0.75 k / (k + 100) w / (w + 0.1), w waves of
 * 128 x 128 tiles on 132 processors, and half of that with a matrix of the product before, where
 * it is in the cache. CUBLAS_FAIL=CALL makes that call fail, CUBLAS_FAIL=gemm=N the N-th product.
 *
 * It also stands in for NVML: the GPU draws 100 W, while it spins 110 W, in products 700 W and
 * while it moves bytes 500 W, in copies 160 W. For that work is waited for as long as it would
 * take.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_s;
static long products;

static int fails(const char *call)
{
    const char *asked = getenv("CUBLAS_FAIL");
    return asked && strcmp(asked, call) == 0;
}

/* Work that is not waited for yet, and the energy above that of idling. */
static double pending_s, pending_w, extra_j;

static double clock_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int cuInit(unsigned flags);
int cuDeviceGetUuid(unsigned char *uuid, int device);
int cuModuleLoadData(void **out, const void *ptx);
int cuModuleGetFunction(void **out, void *module, const char *name);
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **arguments, void **extra);
int cudaDeviceSynchronize(void);
int cublasSaxpy_v2(void *handle, int n, const float *alpha, const float *x, int incx, float *y,
                   int incy);
int nvmlInit_v2(void);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **out);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj);
int nvmlDeviceGetPowerManagementLimit(void *device, unsigned *mw);
int cuDeviceGetName(char *name, int length, int device);
int cudaMalloc(void **out, size_t bytes);
int cudaFree(void *memory);
int cudaMallocHost(void **out, size_t bytes);
int cudaFreeHost(void *memory);
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
    bool asked = bytes == (size_t)512 << 20 || bytes == (size_t)1 << 30; /* --gemm, --power */
    *out = asked && !fails("malloc") ? malloc(1) : NULL;
    return *out == NULL;
}

int cudaFree(void *memory)
{
    free(memory);
    return 0;
}

/* Four bytes stand in for all. */
int cudaMallocHost(void **out, size_t bytes)
{
    *out = bytes < 4 || fails("pinned") ? NULL : calloc(1, 4);
    return *out == NULL;
}

int cudaFreeHost(void *memory)
{
    free(memory);
    return 0;
}

int cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    static const uint16_t some[] = {1, 2};
    const uint16_t *values = kind == 2 ? some : from; /* any that are not all alike */
    if (kind == 2 && to)
        memcpy(to, some, sizeof some);
    if (kind == 1 && bytes == (size_t)1 << 28) { /* --power: over PCIe */
        pending_s += (double)bytes / 55e9;
        pending_w = 160;
    }
    return !to || (kind != 1 && kind != 2) || bytes < 4 || values[0] == values[1] || fails("copy");
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
    double took_s = (3e-6 + 2.0 * m * n * k / (share * 989.5e12)) * (cached ? 0.5 : 1);
    now_s += took_s;
    pending_s += took_s;
    pending_w = 700;
    /* bf16 in and out, sums of 32 bits, the first one transposed, as its rows lie */
    return !handle || !a || !b || !c || !alpha || !beta || ta != 1 || tb != 0 || lda != k ||
           ldb != k || ldc != m || a_type != 14 || b_type != 14 || c_type != 14 || compute != 68 ||
           algorithm != -1;
}

/* ---- Power ---- */

int cuDeviceGetUuid(unsigned char *uuid, int device)
{
    for (int i = 0; i < 16; i++)
        uuid[i] = (unsigned char)(i + 1);
    return device;
}

int cuModuleLoadData(void **out, const void *ptx)
{
    *out = (void *)(uintptr_t)ptx;
    return fails("module") || !strstr(ptx, ".entry spin");
}

int cuModuleGetFunction(void **out, void *module, const char *name)
{
    *out = module;
    return strcmp(name, "spin") != 0;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **arguments, void **extra)
{
    unsigned long long ns;
    memcpy(&ns, arguments[0], sizeof ns);
    pending_s += 1e-9 * (double)ns;
    pending_w = 110;
    return !function || gx * gy * gz * bx * by * bz != 1 || shared || stream || extra ||
           fails("launch");
}

int cublasSaxpy_v2(void *handle, int n, const float *alpha, const float *x, int incx, float *y,
                   int incy)
{
    pending_s += 12.0 * n / 4e12;
    pending_w = 500;
    return !handle || !alpha || !x || !y || incx != 1 || incy != 1 || fails("axpy");
}

int cudaDeviceSynchronize(void)
{
    double began_s = clock_s();
    struct timespec t = {.tv_sec = (time_t)pending_s,
                         .tv_nsec = (long)(1e9 * (pending_s - (double)(time_t)pending_s))};
    nanosleep(&t, NULL);
    extra_j += (pending_w - 100) * (clock_s() - began_s);
    pending_s = 0;
    return fails("synchronize");
}

int nvmlInit_v2(void)
{
    return fails("nvml");
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **out)
{
    *out = &extra_j;
    return strcmp(uuid, "GPU-01020304-0506-0708-090a-0b0c0d0e0f10") != 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj)
{
    *mj = (unsigned long long)(1e3 * (extra_j + 100 * clock_s()));
    return device != &extra_j || fails("energy");
}

int nvmlDeviceGetPowerManagementLimit(void *device, unsigned *mw)
{
    *mw = 700000;
    return device == NULL;
}
