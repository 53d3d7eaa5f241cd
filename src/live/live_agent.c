/* SPDX-License-Identifier: MIT */
/* Starting, stopping and turning off; the clock; who this process is. */
#include "live/live_agent.h"

#include "base/decimal.h"
#include "knee.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum state { NOT_STARTED, ON, OFF };

static _Atomic int state;
static _Atomic bool stopping, writer_done, paused;
static _Atomic int64_t took_ns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of starting and of `about` */
static pthread_t writer;
static bool writer_runs;
static struct live_config config;
static struct live_about about;
static _Atomic int64_t base_ns; /* of a clock that is not scaled; 0: not scaled */

/* ---- Words ---- */

/* Straight to the descriptor: the job's own buffers stay as they are. */
static void say(const char *fmt, va_list args)
{
    char line[512] = "knee live: ";
    size_t length = strlen(line);
    vsnprintf(line + length, sizeof line - length - 1, fmt, args);
    length = strlen(line);
    line[length++] = '\n';
    if (write(STDERR_FILENO, line, length) < 0)
        return; /* standard error is closed */
}

void live_off(const char *fmt, ...)
{
    va_list args;
    if (atomic_exchange(&state, OFF) == OFF)
        return;
    va_start(args, fmt);
    say(fmt, args);
    va_end(args);
}

void live_say(int *once, const char *fmt, ...)
{
    va_list args;
    if (__atomic_fetch_add(once, 1, __ATOMIC_RELAXED)) /* NCCL calls from several threads */
        return;
    va_start(args, fmt);
    say(fmt, args);
    va_end(args);
}

bool live_is_on(void)
{
    return atomic_load_explicit(&state, memory_order_relaxed) == ON;
}

bool live_listens(void)
{
    return live_is_on() && !atomic_load_explicit(&paused, memory_order_relaxed);
}

bool live_look_for_pause(void)
{
    char path[sizeof config.dir + 16];
    snprintf(path, sizeof path, "%s/pause", config.dir);
    bool there = access(path, F_OK) == 0;
    if (there != atomic_exchange(&paused, there))
        live_nccl_listen(!there);
    return there;
}

const struct live_config *live_config(void)
{
    return &config;
}

static int64_t clock_ns(clockid_t which)
{
    struct timespec now;
    clock_gettime(which, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t live_now_ns(void)
{
    int64_t now = clock_ns(CLOCK_REALTIME),
            base = atomic_load_explicit(&base_ns, memory_order_relaxed);
    return base ? base + (int64_t)((double)(now - base) * config.clock_scale) : now;
}

void live_took_ns(int64_t ns)
{
    /* A longer time means that another process ran meanwhile; that is not the agent's cost. */
    enum { PREEMPTED_NS = 61 * 20000 };
    if (ns > 0 && ns < PREEMPTED_NS)
        atomic_fetch_add_explicit(&took_ns, ns, memory_order_relaxed);
}

/* ---- Settings ---- */

static double number_of(const char *name, double otherwise)
{
    const char *text = getenv(name);
    const char *end = text;
    double value = text && *text ? knee_decimal_parse(text, &end) : 0;
    return end != text && isfinite(value) ? value : otherwise;
}

/* Within what a cast and arithmetic on it can hold. */
static double clamp(double value, double low, double high)
{
    return fmin(fmax(value, low), high);
}

static bool is_set(const char *name, bool otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strcmp(text, "0") != 0 : otherwise;
}

static void copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

static void read_config(void)
{
    const char *dir = getenv("KNEE_LIVE_DIR");
    copy_text(config.dir, sizeof config.dir, dir && *dir ? dir : "knee-live");
    config.limit_bytes = (int64_t)clamp(number_of("KNEE_LIVE_BYTES", 64 << 20), 0, 1e15);
    config.budget = number_of("KNEE_LIVE_BUDGET", 0.001);
    config.always = is_set("KNEE_LIVE_ALWAYS", false);
    config.kernel_times = is_set("KNEE_LIVE_KERNEL_TIMES", false);
    config.cupti = is_set("KNEE_LIVE_CUPTI", true);
    config.nvml = is_set("KNEE_LIVE_NVML", true);
    copy_text(config.cupti_library, sizeof config.cupti_library, getenv("KNEE_LIVE_CUPTI_LIBRARY"));
    copy_text(config.nvml_library, sizeof config.nvml_library, getenv("KNEE_LIVE_NVML_LIBRARY"));
    config.clock_scale = clamp(number_of("KNEE_LIVE_CLOCK_SCALE", 1), 0, 1000);
    if (config.clock_scale != 1)
        atomic_store(&base_ns, clock_ns(CLOCK_REALTIME));
}

/* What launchers say of a process: torchrun, Open MPI, Slurm, MPICH. */
static int from_launcher(const char *const *names)
{
    for (size_t i = 0; names[i]; i++) {
        const char *text = getenv(names[i]);
        if (text && *text >= '0' && *text <= '9')
            return (int)strtol(text, NULL, 10);
    }
    return -1;
}

static void read_about(enum live_source source)
{
    static const char *const ranks[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID",
                                        NULL};
    static const char *const worlds[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                         "SLURM_NTASKS", NULL};
    static const char *const locals[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                         "MPI_LOCALRANKID", "SLURM_LOCALID", NULL};
    if (gethostname(about.host, sizeof about.host - 1) != 0)
        copy_text(about.host, sizeof about.host, "unknown");
    for (char *p = about.host; *p; p++)
        if (*p == '/' || (unsigned char)*p < 33)
            *p = '_';
    about.rank = from_launcher(ranks);
    about.world = from_launcher(worlds);
    about.local_rank = from_launcher(locals);
    about.source = source;
    about.start_ns = live_now_ns();
}

void live_about_nccl(int api, int version, bool kernel_times, const char *why)
{
    pthread_mutex_lock(&lock);
    about.source = LIVE_FROM_NCCL;
    about.api = api;
    about.kernel_times = kernel_times;
    copy_text(about.why, sizeof about.why, why);
    if (version > 0)
        snprintf(about.nccl, sizeof about.nccl, "%d.%d.%d", version / 10000, version / 100 % 100,
                 version % 100);
    pthread_mutex_unlock(&lock);
}

void live_about_gpu(const char *name, const char *uuid)
{
    pthread_mutex_lock(&lock);
    if (!about.gpu_uuid[0]) {
        copy_text(about.gpu, sizeof about.gpu, name);
        copy_text(about.gpu_uuid, sizeof about.gpu_uuid, uuid);
    }
    pthread_mutex_unlock(&lock);
}

struct live_about live_about(void)
{
    pthread_mutex_lock(&lock);
    struct live_about copy = about;
    pthread_mutex_unlock(&lock);
    return copy;
}

/* ---- The writer ---- */

int64_t live_took_in_all_ns(void)
{
    return atomic_load_explicit(&took_ns, memory_order_relaxed);
}

static void *write_on(void *unused)
{
    (void)unused;
    struct live_writer *own = live_writer_new();
    while (live_is_on() && !atomic_load(&stopping)) {
        live_writer_round(own, false);
        struct timespec nap = {0, live_writer_hurried(own) ? 1000000 : 20000000};
        nanosleep(&nap, NULL);
    }
    if (live_is_on())
        live_writer_round(own, true);
    live_writer_free(own);
    atomic_store(&writer_done, true);
    return NULL;
}

/* The job's signals are not for this thread; and a write past a limit on file sizes becomes an
 * error instead of a signal that ends the job. */
static bool start_writer(void)
{
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return false;
    writer_runs = pthread_create(&writer, NULL, write_on, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return writer_runs;
}

/* The writer is not in the child: it has nothing to wait for and nothing to say. */
static void in_child(void)
{
    atomic_store(&state, OFF);
    writer_runs = false;
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh;
}

/* The writer writes what is left; a job that ends does not wait long for that. */
static void at_end(void)
{
    enum { PATIENCE_MS = 2000 };
    if (!writer_runs)
        return;
    writer_runs = false;
    atomic_store(&stopping, true);
    for (int ms = 0; ms < PATIENCE_MS && !atomic_load(&writer_done); ms++) {
        struct timespec nap = {0, 1000000};
        nanosleep(&nap, NULL);
    }
    atomic_store(&state, OFF);
    if (!atomic_load(&writer_done))
        return;
    pthread_join(writer, NULL);
}

bool live_start(enum live_source source)
{
    int now = atomic_load(&state);
    if (now != NOT_STARTED)
        return now == ON;
    pthread_mutex_lock(&lock);
    if (atomic_load(&state) == NOT_STARTED) {
        read_config();
        read_about(source);
        atomic_store(&state, ON);
        pthread_atfork(NULL, NULL, in_child);
        if (!is_set("KNEE_LIVE", true))
            atomic_store(&state, OFF);
        else if (!start_writer())
            live_off("no thread could be started: off");
        else
            atexit(at_end);
    }
    pthread_mutex_unlock(&lock);
    return live_is_on();
}
