/* SPDX-License-Identifier: MIT */
/*
 * Plays a job into the agent as NCCL would: tests/live/play AGENT [KEY=VALUE]...
 *   api=1..6      version of the profiler interface (5)
 *   steps=N       steps (200); calls=N collectives in each (4); channels=N (2)
 *   step_us=N     time of a step (2000); the collectives are spread over it
 *   late=0|1      kernels are told of after the host has stopped the collective, by another thread,
 *                 as NCCL's proxy does (1)
 *   stale=0|1     also records and stops what was stopped long ago, and odd handles (0)
 *   dur_ns=N      duration of a collective on the GPU's clock (400000), wait_ns=N added to it (0)
 *   alike=N       every step: N gathers alike, then N reduce-scatters, as FSDP does, instead (0)
 *   fork=0|1      forks in the middle; the child plays on and ends (0)
 *   threads=N     N threads play, each on a communicator of its own (1)
 *   lost=N        every N-th kernel is never told of (0)
 *   kill=N        ends itself with SIGKILL after N steps (0)
 *   cuda=0|1      calls InitializeInjection first; a stand-in for CUPTI launches kernels (0)
 *   loader_us=N   every step waits so long for its input, which is then copied to the device (0)
 *   host_us=N     every step copies its input at once, and then the host does something else (0)
 *   graph=0|1     its own kernels are launched as graphs (0)
 *   behind=0|1    the first collective of a step is announced after the second is launched, as that
 *                 of a graph (0)
 *   stuck=0|1     the GPU's times stay those of the first collective (0)
 *   pairs=N       every step also sends N messages to the next rank and receives as many (0)
 *   comms=N       so many communicators are made before (0)
 *   gpu=0|1       CUDA's driver is there: the stand-in that STAND_IN_GPU names (0)
 *   slow_from=N   from this step on all are slow_us=N longer (0)
 *
 * Prints how long a step took, in microseconds, how long the agent's callbacks took in all, and how
 * much memory the process had.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct profiler {
    const char *name;
    void *init;
    int (*start)(void *, void **, void *);
    int (*stop)(void *);
    int (*state)(void *, int, void *);
    int (*finalize)(void *);
};

static struct settings {
    long api, steps, calls, channels, step_us, late, stale, dur_ns, wait_ns, alike, fork, threads,
        lost, kill, cuda, loader_us, host_us, slow_from, slow_us, graph, stuck, pairs, comms, gpu,
        behind;
} set = {5, 200, 4, 2, 2000, 1, 0, 400000, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

static const struct {
    const char *name;
    long *value;
} names[] = {
    {"api", &set.api},         {"steps", &set.steps},
    {"calls", &set.calls},     {"channels", &set.channels},
    {"step_us", &set.step_us}, {"late", &set.late},
    {"stale", &set.stale},     {"dur_ns", &set.dur_ns},
    {"wait_ns", &set.wait_ns}, {"alike", &set.alike},
    {"fork", &set.fork},       {"threads", &set.threads},
    {"lost", &set.lost},       {"kill", &set.kill},
    {"cuda", &set.cuda},       {"loader_us", &set.loader_us},
    {"host_us", &set.host_us}, {"slow_from", &set.slow_from},
    {"slow_us", &set.slow_us}, {"graph", &set.graph},
    {"stuck", &set.stuck},     {"pairs", &set.pairs},
    {"comms", &set.comms},     {"gpu", &set.gpu},
    {"behind", &set.behind},
};

static const struct profiler *profiler;
static void (*launch_kernel)(const char *name, uint32_t stream, int64_t dur_ns);

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void put(unsigned char *d, size_t at, const void *value, size_t size)
{
    memcpy(d + at, value, size);
}
#define PUT(d, at, type, value) put(d, at, &(type){value}, sizeof(type))

/* The layouts again, written down a second time from the public headers. */
static void coll(unsigned char *d, void *group, uint64_t hash, uint64_t seq, const char *func,
                 size_t count)
{
    memset(d, 0, 256);
    if (set.api >= 5)
        PUT(d, 0, uint64_t, 2);
    else
        d[0] = 2;
    if (set.api < 5)
        PUT(d, 8, void *, group);
    PUT(d, 16, int, 0);
    if (set.api <= 3) {
        PUT(d, 32, uint64_t, hash);
        PUT(d, 40, uint64_t, seq);
        PUT(d, 72, size_t, count);
    } else {
        PUT(d, 24, uint64_t, seq);
        PUT(d, 32, const char *, func);
        PUT(d, 56, size_t, count);
        PUT(d, 72, const char *, "ncclFloat32");
        d[80] = (unsigned char)set.channels;
        PUT(d, 88, const char *, "RING");
        PUT(d, 96, const char *, "LL");
        if (set.api >= 5)
            PUT(d, 104, void *, group);
    }
    if (set.api == 1) {
        d[48] = strcmp(func, "AllReduce") == 0 ? 4 : strcmp(func, "AllGather") == 0 ? 2 : 3;
        d[84] = 7;
        d[104] = (unsigned char)set.channels;
        d[106] = 1;
        d[107] = 0;
    } else if (set.api == 2 || set.api == 3) {
        PUT(d, 48, const char *, func);
        PUT(d, 88, const char *, "ncclFloat32");
        d[set.api == 2 ? 104 : 96] = (unsigned char)set.channels;
        PUT(d, set.api == 2 ? 112 : 104, const char *, "RING");
        PUT(d, set.api == 2 ? 120 : 112, const char *, "LL");
    }
}

static void event(unsigned char *d, unsigned type, void *parent)
{
    memset(d, 0, 256);
    if (set.api >= 5)
        PUT(d, 0, uint64_t, type);
    else
        d[0] = (unsigned char)type;
    PUT(d, 8, void *, parent);
}

/* ---- What the job's threads spend in the agent, by a clock of their own ---- */

static _Atomic int64_t spent_ns;

static void spend(int64_t began_ns)
{
    int64_t took_ns = now_ns() - began_ns;
    if (took_ns < 20000) /* else somebody else ran meanwhile */
        atomic_fetch_add_explicit(&spent_ns, took_ns, memory_order_relaxed);
}

static void play_start(void *context, void **handle, void *descr)
{
    int64_t began_ns = now_ns();
    profiler->start(context, handle, descr);
    spend(began_ns);
}

static void play_stop(void *handle)
{
    int64_t began_ns = now_ns();
    profiler->stop(handle);
    spend(began_ns);
}

static void play_state(void *handle, int state, void *args)
{
    int64_t began_ns = now_ns();
    profiler->state(handle, state, args);
    spend(began_ns);
}

/* ---- The proxy thread: tells of kernels some time after the host has stopped the collective ----
 */

struct told {
    void *call, *context;
    int64_t begin_ns, end_ns;
};
enum { QUEUE = 4096 };
static struct told queue[QUEUE];
static size_t queue_head, queue_tail;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static int proxy_stops;

static void tell(const struct told *t)
{
    unsigned char d[256], args[16] = {0};
    void *parts[64] = {0};
    long channels = set.channels < 64 ? set.channels : 64;
    for (long c = 0; c < channels; c++) {
        if (set.api <= 2) {
            event(d, 8, t->call); /* operations of the proxy */
            d[28] = (unsigned char)c;
        } else {
            event(d, 64, t->call);
            d[24] = (unsigned char)c;
            PUT(d, 32, uint64_t, (uint64_t)(t->begin_ns + 100 * c));
        }
        play_start(t->context, &parts[c], d);
    }
    for (long c = 0; c < channels; c++) {
        PUT(args, 0, uint64_t, (uint64_t)(t->end_ns - 100 * c));
        if (parts[c]) {
            if (set.api >= 3)
                play_state(parts[c], 22, args);
            play_stop(parts[c]);
            if (set.stale) {
                play_state(parts[c], 22, args);
                play_stop(parts[c]);
            }
        }
    }
}

static void *proxy(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&queue_lock);
        bool there = queue_tail < queue_head;
        struct told t = queue[queue_tail % QUEUE];
        queue_tail += there;
        bool stops = proxy_stops && !there;
        pthread_mutex_unlock(&queue_lock);
        if (there)
            tell(&t);
        else if (stops)
            return NULL;
        else
            usleep(50);
    }
}

static void hand_to_proxy(struct told t)
{
    for (;;) {
        pthread_mutex_lock(&queue_lock);
        bool room = queue_head - queue_tail < QUEUE;
        if (room)
            queue[queue_head++ % QUEUE] = t;
        pthread_mutex_unlock(&queue_lock);
        if (room)
            return;
        usleep(50);
    }
}

/* ---- The job ---- */

struct worker {
    void *context;
    uint64_t hash, seq[3];
    int64_t gpu_ns; /* the GPU's own clock */
    long told;
};

static const char *const funcs[] = {"AllReduce", "AllGather", "ReduceScatter"};

static void launch_call(int kind)
{
    char name[80];
    if (!launch_kernel)
        return;
    snprintf(name, sizeof name, "ncclDevKernel_%s_Sum_f32_RING_LL", funcs[kind]);
    launch_kernel(set.graph ? "Graph" : "gemm", 7, set.dur_ns);
    launch_kernel(name, 20, set.dur_ns);
}

/* Announces a collective, and hands over when it ran. */
static void one_call(struct worker *w, int kind, size_t count)
{
    unsigned char d[256];
    void *group = NULL, *call = NULL;
    event(d, 1, NULL);
    play_start(w->context, &group, d);
    coll(d, group, w->hash, w->seq[kind]++, funcs[kind], count);
    play_start(w->context, &call, d);
    int64_t end_ns = w->gpu_ns + set.dur_ns + set.wait_ns;
    struct told t = {call, w->context, w->gpu_ns, end_ns};
    bool lost = set.lost && ++w->told % set.lost == 0;
    if (!set.late && !lost)
        tell(&t);
    play_stop(call);
    play_stop(group);
    if (set.late && !lost)
        hand_to_proxy(t);
    if (set.stale) {
        void *odd[] = {call,
                       group,
                       NULL,
                       (void *)(uintptr_t)1,
                       (void *)(uintptr_t)0x123456789abcdef1,
                       (void *)(uintptr_t)-1};
        unsigned char args[16] = {0};
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
            play_stop(odd[i]);
            play_state(odd[i], 22, args);
        }
    }
    if (!set.stuck)
        w->gpu_ns = end_ns + 1000;
}

static void p2p(unsigned char *d, void *group, uint64_t hash, bool sends, size_t count)
{
    bool old = set.api <= 3;
    size_t func = old ? 40 : 24, type = old ? 56 : 40, peer = old ? 72 : 56;
    event(d, 4, group);
    if (set.api <= 3)
        PUT(d, 32, uint64_t, hash);
    if (set.api == 1) {
        d[func] = sends ? 6 : 7;
        d[type] = 7;
    } else {
        PUT(d, func, const char *, sends ? "Send" : "Recv");
        PUT(d, type, const char *, "ncclFloat32");
    }
    PUT(d, type + 8, size_t, count);
    PUT(d, peer, int, 1);
    if (set.api >= 4)
        d[60] = (unsigned char)set.channels;
    if (set.api >= 5)
        PUT(d, 64, void *, group);
}

static void one_pair(struct worker *w, bool sends)
{
    unsigned char d[256];
    void *group = NULL, *call = NULL;
    event(d, 1, NULL);
    play_start(w->context, &group, d);
    p2p(d, group, w->hash, sends, 1 << 10);
    play_start(w->context, &call, d);
    struct told t = {call, w->context, w->gpu_ns, w->gpu_ns + 1000};
    tell(&t);
    play_stop(call);
    play_stop(group);
    w->gpu_ns += 2000;
}

static void load_input(void)
{
    if (!launch_kernel || !(set.loader_us || set.host_us))
        return;
    usleep((useconds_t)set.loader_us);
    launch_kernel("Memcpy", 7, 20000);
    usleep((useconds_t)set.host_us);
}

static void one_step(struct worker *w)
{
    load_input();
    long calls = set.alike ? 2 * set.alike : set.calls;
    for (long i = 0; i < 2 * set.pairs; i++)
        one_pair(w, i % 2 == 0);
    for (long i = 0; i < calls; i++) {
        int kind = !set.alike ? 0 : i < set.alike ? 1 : 2;
        if (!(set.behind && i == 1))
            launch_call(kind);
        if (set.behind && i == 0)
            launch_call(kind);
        one_call(w, kind, set.alike ? 1 << 20 : (size_t)(1 << 20) + (size_t)i * 4096);
        if (set.step_us && !(set.behind && i == 0))
            usleep((useconds_t)(set.step_us / calls));
    }
}

static int mask; /* NCCL has one for all communicators, and the agent may set it at any time */

static void part(struct worker *w)
{
    typedef int init_older(void **, int *);
    typedef int init_fourth(void **, int *, const char *, uint64_t, int, int, int, void *);
    typedef int init_newer(void **, uint64_t, int *, const char *, int, int, int, void *);
    init_older *older;
    init_fourth *fourth;
    init_newer *newer;
    const char *rank = getenv("RANK"), *world = getenv("WORLD_SIZE");
    int r = rank ? atoi(rank) : 0, n = world ? atoi(world) : 2;
    memcpy(&older, &profiler->init, sizeof older);
    memcpy(&fourth, &profiler->init, sizeof fourth);
    memcpy(&newer, &profiler->init, sizeof newer);
    int failed = set.api <= 3   ? older(&w->context, &mask)
                 : set.api == 4 ? fourth(&w->context, &mask, "0", w->hash, 1, n, r, NULL)
                                : newer(&w->context, w->hash, &mask, "0", 1, n, r, NULL);
    if (failed)
        printf("init said no\n");
    else
        fprintf(stderr, "mask %d\n", __atomic_load_n(&mask, __ATOMIC_RELAXED));
    if (failed)
        w->context = NULL;
}

static long memory_kb(void)
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &pages, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static _Atomic long memory_early; /* after a quarter of the steps */

static void *play(void *which)
{
    struct worker w = {.hash = 0xabc0 + (uint64_t)(uintptr_t)which, .gpu_ns = INT64_C(5000000000)};
    part(&w);
    for (long i = 0; i < set.steps && w.context; i++) {
        if (set.fork && i == set.steps / 2) {
            fflush(stdout);
            pthread_mutex_lock(&queue_lock); /* in the child nobody would let go of it */
            pid_t child = fork();
            pthread_mutex_unlock(&queue_lock);
            if (child == 0) {
                one_step(&w);
                exit(0);
            }
            int status = 0;
            waitpid(child, &status, 0);
            if (status)
                printf("the child ended with %d\n", status);
        }
        if (set.kill && i == set.kill)
            kill(getpid(), SIGKILL);
        if (i == set.steps / 4)
            memory_early = memory_kb();
        one_step(&w);
        if (i >= set.slow_from)
            usleep((useconds_t)set.slow_us);
    }
    if (w.context)
        profiler->finalize(w.context);
    return NULL;
}

/* What NCCL says of itself; without STAND_IN_NCCL it cannot tell. */
__attribute__((visibility("default"))) int ncclGetVersion(int *version);
int ncclGetVersion(int *version)
{
    const char *said = getenv("STAND_IN_NCCL");
    *version = said ? atoi(said) : 0;
    return said ? 0 : 1;
}

static void parse(int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        for (size_t k = 0; equals && k < sizeof names / sizeof *names; k++)
            if (strlen(names[k].name) == (size_t)(equals - argv[i]) &&
                strncmp(argv[i], names[k].name, (size_t)(equals - argv[i])) == 0)
                *names[k].value = strtol(equals + 1, NULL, 10);
    }
}

static void begin_cuda(void *agent)
{
    int (*inject)(void);
    void *symbol = dlsym(agent, "InitializeInjection");
    memcpy(&inject, &symbol, sizeof inject);
    void *cupti = dlopen(getenv("KNEE_LIVE_CUPTI_LIBRARY"), RTLD_NOW);
    symbol = cupti ? dlsym(cupti, "stand_in_launch") : NULL;
    memcpy(&launch_kernel, &symbol, sizeof symbol);
    printf("injection %d\n", inject());
}

int main(int argc, char **argv)
{
    pthread_t proxy_thread, players[16];
    char name[32];
    void *agent = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    parse(argc, argv);
    if (!agent) {
        fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "usage: play AGENT [KEY=VALUE]...");
        return 2;
    }
    snprintf(name, sizeof name, "ncclProfiler_v%ld", set.api);
    profiler = dlsym(agent, name);
    if (!profiler)
        return 2;
    if (set.cuda)
        begin_cuda(agent);
    if (set.gpu && !dlopen(getenv("STAND_IN_GPU"), RTLD_NOW))
        return 2;
    for (long i = 0; i < set.comms; i++)
        part(&(struct worker){.hash = 0xc0000 + (uint64_t)i});
    pthread_create(&proxy_thread, NULL, proxy, NULL);
    int64_t began_ns = now_ns();
    for (long i = 1; i < set.threads && i < 16; i++)
        pthread_create(&players[i], NULL, play, (void *)(uintptr_t)i);
    play(NULL);
    for (long i = 1; i < set.threads && i < 16; i++)
        pthread_join(players[i], NULL);
    pthread_mutex_lock(&queue_lock);
    proxy_stops = 1;
    pthread_mutex_unlock(&queue_lock);
    pthread_join(proxy_thread, NULL);
    printf("a step took %.1f us\n",
           (double)(now_ns() - began_ns) / 1e3 / (double)(set.steps ? set.steps : 1));
    printf("callbacks took %lld ns\n", (long long)atomic_load(&spent_ns));
    printf("memory in kB %ld then %ld\n", memory_early, memory_kb());
    dlclose(agent); /* as NCCL does; the agent stays */
    usleep(30000);
    return 0;
}
