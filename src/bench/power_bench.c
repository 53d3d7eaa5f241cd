/* SPDX-License-Identifier: MIT */
/*
 * Watts by kind of work. A piece of work of about 50 ms is repeated for as long as the row takes;
 * the mean power is NVML's energy counter over the clock. Bursts are products and pauses in turn:
 * what the products draw is the mean less what the pauses draw, over the products' share of the
 * time.
 */
#include "bench/power_bench.h"

#include "base/error.h"
#include "bench/cuda.h"
#include "cluster/gpu_words.h"
#include "reach/start.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define FLAG       "--power"
#define SIDE       8192              /* of a square product */
#define BYTES      ((size_t)1 << 30) /* of each buffer */
#define HOST_BYTES ((size_t)1 << 28)
#define PIECE_S    0.05     /* of work between two looks at the clock */
#define PIECE_NS   50000000 /* the same */
#define WARM_UP_S  1.0
#define WINDOW_S   0.5 /* whose means give low and high */

/* A kernel of one thread that looks at the clock until `ns` have passed: what a collective does
 * while it waits. Any GPU since 2014 compiles it. */
static const char spin_ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                               ".visible .entry spin(.param .u64 ns)\n"
                               "{\n"
                               "  .reg .u64 %r<5>;\n  .reg .pred %p;\n"
                               "  ld.param.u64 %r1, [ns];\n"
                               "  mov.u64 %r2, %globaltimer;\n"
                               "L:\n"
                               "  mov.u64 %r3, %globaltimer;\n"
                               "  sub.u64 %r4, %r3, %r2;\n"
                               "  setp.lt.u64 %p, %r4, %r1;\n"
                               "  @%p bra L;\n"
                               "  ret;\n"
                               "}\n";

struct meter {
    struct knee_cuda cuda;
    void *a, *b, *c, *blas, *spin; /* spin: the kernel */
    void *host;                    /* pinned */
    void *device;                  /* NVML's */
    int (*get_energy)(void *device, unsigned long long *mj);
    int (*get_limit)(void *device, unsigned *mw);
    double product_s; /* of one */
};

/* ---- Pieces of work ---- */

static bool nap(struct meter *m)
{
    struct timespec t = {.tv_nsec = PIECE_NS};
    (void)m;
    return nanosleep(&t, NULL) == 0;
}

static bool spin(struct meter *m)
{
    unsigned long long ns = PIECE_NS;
    void *arguments[] = {&ns};
    return m->cuda.launch(m->spin, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL) == 0 &&
           m->cuda.wait_all() == 0;
}

/* Values that come and go by the same amount, so that they stay random and in range. */
static bool move(struct meter *m)
{
    static const float up = 0.5f, down = -0.5f;
    int count = (int)(BYTES / sizeof(float));
    bool good = true;
    for (int i = 0; i < 64 && good; i++)
        good = m->cuda.axpy(m->blas, count, i % 2 ? &down : &up, m->a, 1, m->c, 1) == 0;
    return good && m->cuda.wait_all() == 0;
}

/* About 5 ms each at the rate of PCIe 5. */
static bool send(struct meter *m)
{
    bool good = true;
    for (int i = 0; i < 10 && good; i++)
        good = m->cuda.copy(m->c, m->host, HOST_BYTES, CUDA_TO_DEVICE) == 0;
    return good && m->cuda.wait_all() == 0;
}

static bool multiply(struct meter *m)
{
    static const float one = 1, nothing = 0;
    int runs = m->product_s > 0 ? (int)fmax(1, PIECE_S / m->product_s) : 1;
    bool good = true;
    for (int i = 0; i < runs && good; i++)
        good = m->cuda.gemm(m->blas, CUDA_OP_T, CUDA_OP_N, SIDE, SIDE, SIDE, &one, m->a, CUDA_BF16,
                            SIDE, m->b, CUDA_BF16, SIDE, &nothing, m->c, CUDA_BF16, SIDE,
                            CUDA_COMPUTE_F32, CUDA_ALGORITHM_DEFAULT) == 0;
    return good && m->cuda.wait_all() == 0;
}

struct work {
    const char *kind, *what;
    bool (*piece)(struct meter *m);
    bool (*pause)(struct meter *m); /* NULL: none */
};
static const struct work works[] = {
    {"idle", "context open, nothing runs", nap, NULL},
    {"wait", "one thread that looks at the clock", spin, NULL},
    {"copy", "copies from pinned host memory", send, NULL},
    {"memory", "y = a x + y over 1 GiB of random values", move, NULL},
    {"product", "bf16 products of 8192 without a pause", multiply, NULL},
    {"burst", "the same for 50 ms, then a pause of 50 ms", multiply, nap},
};
#define WORKS (sizeof works / sizeof *works)

/* ---- Measuring ---- */

/* What happened since a look at the counter. */
struct span {
    double seconds, joules, busy_s;
};

static bool run_for(struct meter *m, const struct work *work, double seconds, struct span *out)
{
    unsigned long long from_mj, to_mj;
    double from_s = knee_clock_s(), busy_s = 0;
    bool good = m->get_energy(m->device, &from_mj) == 0;
    do {
        double began_s = knee_clock_s();
        good = good && work->piece(m);
        busy_s += knee_clock_s() - began_s;
        good = good && (!work->pause || work->pause(m));
    } while (good && knee_clock_s() - from_s < seconds);
    good = good && m->get_energy(m->device, &to_mj) == 0;
    if (good)
        *out = (struct span){knee_clock_s() - from_s, 1e-3 * (double)(to_mj - from_mj), busy_s};
    return good;
}

/* `pause_w` is what the pauses draw. */
static bool measure_row(struct meter *m, const struct work *work, double seconds, double pause_w,
                        struct knee_power_row *row)
{
    struct span all = {0}, some;
    bool good = run_for(m, work, WARM_UP_S, &some);
    row->low = INFINITY;
    row->high = -INFINITY;
    while (good && all.seconds < seconds) {
        if (!(good = run_for(m, work, WINDOW_S, &some)))
            break;
        double paused_s = work->pause ? some.seconds - some.busy_s : 0;
        double watts = (some.joules - paused_s * pause_w) / (some.seconds - paused_s);
        row->low = fmin(row->low, watts);
        row->high = fmax(row->high, watts);
        all.seconds += some.seconds;
        all.joules += some.joules;
        all.busy_s += some.busy_s;
    }
    double paused_s = work->pause ? all.seconds - all.busy_s : 0;
    row->kind = work->kind;
    row->what = work->what;
    row->watts = (all.joules - paused_s * pause_w) / (all.seconds - paused_s);
    return good;
}

/* ---- Opening ---- */

static void find(void *from, const char *name, void *function)
{
    void *symbol = dlsym(from, name);
    memcpy(function, &symbol, sizeof symbol);
}

/* The GPU that CUDA counts as its first has another number in NVML where some are hidden. */
static bool open_nvml(struct meter *m)
{
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*init)(void) = NULL, (*by_uuid)(const char *, void **) = NULL;
    unsigned char b[16];
    char uuid[48] = "GPU";
    if (!nvml || m->cuda.device_uuid(b, 0) != 0)
        return false;
    for (size_t i = 0, at = 3; i < sizeof b; i++)
        at += (size_t)snprintf(uuid + at, sizeof uuid - at, "%s%02x",
                               i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", b[i]);
    find(nvml, "nvmlInit_v2", &init);
    find(nvml, "nvmlDeviceGetHandleByUUID", &by_uuid);
    find(nvml, "nvmlDeviceGetTotalEnergyConsumption", &m->get_energy);
    find(nvml, "nvmlDeviceGetPowerManagementLimit", &m->get_limit);
    return init && by_uuid && m->get_energy && init() == 0 && by_uuid(uuid, &m->device) == 0;
}

static bool enter(struct meter *m)
{
    const struct knee_cuda *cuda = &m->cuda;
    void *module = NULL;
    bool good = cuda->malloc(&m->a, BYTES) == 0 && cuda->malloc(&m->b, BYTES) == 0 &&
                cuda->malloc(&m->c, BYTES) == 0 && knee_cuda_fill(cuda, m->a, BYTES) &&
                knee_cuda_fill(cuda, m->b, BYTES) && knee_cuda_fill(cuda, m->c, BYTES) &&
                cuda->malloc_host(&m->host, HOST_BYTES) == 0 &&
                cuda->copy(m->host, m->a, HOST_BYTES, CUDA_TO_HOST) == 0 &&
                cuda->blas_create(&m->blas) == 0 && cuda->module_load(&module, spin_ptx) == 0 &&
                cuda->module_function(&m->spin, module, "spin") == 0 && multiply(m);
    double from_s = knee_clock_s();
    good = good && multiply(m);
    m->product_s = knee_clock_s() - from_s;
    return good;
}

static void leave(struct meter *m)
{
    void *const buffers[] = {m->a, m->b, m->c};
    for (size_t i = 0; i < 3; i++)
        if (buffers[i])
            m->cuda.free(buffers[i]);
    if (m->host)
        m->cuda.free_host(m->host);
    if (m->blas)
        m->cuda.blas_destroy(m->blas);
}

static knee_status measure_all(struct meter *m, double row_time_s, knee_power_tell *tell, void *ctx,
                               struct knee_power_bench *out, struct knee_err *err)
{
    for (size_t i = 0; i < WORKS; i++) {
        double pause_w = i ? out->rows[0].watts : 0; /* the first row is idle */
        if (!measure_row(m, &works[i], row_time_s, pause_w, &out->rows[i]))
            return knee_fail(err, KNEE_SYSTEM, FLAG, "CUDA or NVML fails at '%s'", works[i].kind);
        out->count = i + 1;
        if (tell)
            tell(ctx, i + 1, WORKS);
    }
    return KNEE_OK;
}

knee_status knee_power_measure(double row_time_s, knee_power_tell *tell, void *ctx,
                               struct knee_power_bench *out, struct knee_err *err)
{
    struct meter m = {0};
    struct knee_power_bench bench = {.limit_w = NAN};
    unsigned limit_mw = 0;
    knee_status status = knee_cuda_open(FLAG, &m.cuda, bench.gpu, sizeof bench.gpu, err);
    if (status)
        return status;
    if (!open_nvml(&m))
        return knee_cuda_refuse(FLAG, "NVML (libnvidia-ml.so.1) has no energy counter for it", err);
    if (m.get_limit && m.get_limit(m.device, &limit_mw) == 0)
        bench.limit_w = 1e-3 * (double)limit_mw;
    const struct knee_gpu *gpu = knee_gpu_in(bench.gpu);
    bench.name = gpu ? gpu->name : "";
    if (!enter(&m))
        status = knee_cuda_refuse(FLAG, "this one lacks 3 GB of free memory or does not work", err);
    else
        status = measure_all(&m, row_time_s, tell, ctx, &bench, err);
    leave(&m);
    if (!status)
        *out = bench;
    return status;
}
