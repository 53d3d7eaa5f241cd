/* SPDX-License-Identifier: MIT */
/* Loads CUDA's libraries and fills memory with random values. */
#include "bench/cuda.h"

#include "base/error.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *library(const char *const *names)
{
    void *found = NULL;
    for (size_t i = 0; names[i] && !found; i++)
        found = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
    return found;
}

/* What is called, and where it lies in struct knee_cuda. */
#define CALL(library, name, field)                                                                 \
    {                                                                                              \
        offsetof(struct knee_cuda, library), name, offsetof(struct knee_cuda, field)               \
    }
static const struct {
    size_t library;
    const char *name;
    size_t field;
} calls[] = {
    CALL(driver, "cuInit", init),
    CALL(driver, "cuDeviceGetName", device_name),
    CALL(driver, "cuDeviceGetUuid", device_uuid),
    CALL(driver, "cuModuleLoadData", module_load),
    CALL(driver, "cuModuleGetFunction", module_function),
    CALL(driver, "cuLaunchKernel", launch),
    CALL(runtime, "cudaMalloc", malloc),
    CALL(runtime, "cudaFree", free),
    CALL(runtime, "cudaMallocHost", malloc_host),
    CALL(runtime, "cudaFreeHost", free_host),
    CALL(runtime, "cudaMemcpy", copy),
    CALL(runtime, "cudaDeviceSynchronize", wait_all),
    CALL(runtime, "cudaEventCreate", event_create),
    CALL(runtime, "cudaEventDestroy", event_destroy),
    CALL(runtime, "cudaEventRecord", event_record),
    CALL(runtime, "cudaEventSynchronize", event_wait),
    CALL(runtime, "cudaEventElapsedTime", event_ms),
    CALL(blas, "cublasCreate_v2", blas_create),
    CALL(blas, "cublasDestroy_v2", blas_destroy),
    CALL(blas, "cublasGemmEx", gemm),
    CALL(blas, "cublasSaxpy_v2", axpy),
};

knee_status knee_cuda_refuse(const char *flag, const char *what, struct knee_err *err)
{
    bool gemm = strcmp(flag, "--gemm") == 0;
    knee_fail(err, KNEE_SYSTEM, flag, "this needs a GPU, and %s", what);
    knee_hint(err, "run it where the job runs%s",
              gemm ? ", or give --table with products timed there" : "");
    return KNEE_SYSTEM;
}

static knee_status no_libraries(const char *flag, struct knee_err *err)
{
    return knee_fail_hint(err, KNEE_SYSTEM, flag,
                          "set LD_LIBRARY_PATH to CUDA's lib64 or PyTorch's nvidia/*/lib",
                          "libcudart and libcublas are not found");
}

static knee_status load(const char *flag, struct knee_cuda *cuda, struct knee_err *err)
{
    static const char *const drivers[] = {"libcuda.so.1", NULL};
    static const char *const runtimes[] = {"libcudart.so.13", "libcudart.so.12",
                                           "libcudart.so.11.0", "libcudart.so", NULL};
    static const char *const blases[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                         "libcublas.so", NULL};
    if (!(cuda->driver = library(drivers)))
        return knee_cuda_refuse(flag, "there is no driver here (libcuda.so.1)", err);
    if (!(cuda->runtime = library(runtimes)) || !(cuda->blas = library(blases)))
        return no_libraries(flag, err);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        void *from, *symbol;
        memcpy(&from, (char *)cuda + calls[i].library, sizeof from);
        symbol = dlsym(from, calls[i].name);
        memcpy((char *)cuda + calls[i].field, &symbol, sizeof symbol);
        if (!symbol)
            return knee_cuda_refuse(flag, "CUDA's libraries lack a call that is needed", err);
    }
    return KNEE_OK;
}

knee_status knee_cuda_open(const char *flag, struct knee_cuda *cuda, char *gpu, int gpu_size,
                           struct knee_err *err)
{
    knee_status status = load(flag, cuda, err);
    if (!status && (cuda->init(0) != 0 || cuda->device_name(gpu, gpu_size, 0) != 0))
        status = knee_cuda_refuse(flag, "CUDA finds none here", err);
    return status;
}

static uint16_t random_bf16(uint64_t *dice)
{
    *dice = *dice * 6364136223846793005u + 1442695040888963407u;
    float value = (float)(int32_t)(*dice >> 32) / 2147483648.0f; /* -1 to 1 */
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

bool knee_cuda_fill(const struct knee_cuda *cuda, void *device, size_t bytes)
{
    size_t some = (size_t)4 << 20;
    uint16_t *values = malloc(some);
    uint64_t dice = 1;
    for (size_t i = 0; values && i < some / sizeof *values; i++)
        values[i] = random_bf16(&dice);
    bool good = values != NULL;
    for (size_t at = 0; at < bytes && good; at += some)
        good = cuda->copy((char *)device + at, values, some < bytes - at ? some : bytes - at,
                          CUDA_TO_DEVICE) == 0;
    free(values);
    return good;
}
