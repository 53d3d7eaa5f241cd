/* SPDX-License-Identifier: MIT */
/*
 * Several processes on this host without any launcher: one process forks the others, and they speak
 * through memory they share. Between every two ranks lies a ring of bytes each way; a message is a
 * head (tag, size) and its bytes. Whoever waits moves all that can be moved: sends go out in order,
 * what comes in goes to the receive that asks for it or is kept until one does.
 */
#include "base/error.h"
#include "reach/exchange.h"
#include "reach/host_buffer.h"
#include "reach/runtime.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

enum { RING_BYTES = 1 << 18, RANKS_MAX = 64, INTERNAL_TAG = 1 << 30 };

struct head {
    uint64_t bytes;
    int64_t tag;
};

struct ring {
    _Atomic size_t written, read; /* bytes, ever */
    unsigned char data[RING_BYTES];
};

enum { RUNNING, SPEAKING, STOPPED };

struct shared {
    _Atomic int arrived, round, stopped; /* stopped: one of the above */
    struct ring rings[];                 /* [from][to] */
};

struct knee_request {
    struct head head;
    bool receive, done;
    int other;
    const unsigned char *source; /* of a send */
    unsigned char *data;         /* of a receive */
    size_t moved, head_moved;
    bool owned; /* data belongs to the request: it came before it was asked for */
    struct knee_request *next;
};

/* What is under way with one other rank. */
struct peer {
    struct knee_request *sending;  /* first to go out first */
    struct knee_request *arriving; /* the message whose bytes come now; NULL: a head comes next */
    struct knee_request *kept;     /* arrived, no receive posted yet; oldest first */
    struct knee_request *asked;    /* receives without a message yet; oldest first */
    struct head head;
    size_t head_moved;
};

struct local_state {
    struct shared *shared;
    struct peer *peers;
    pid_t children[RANKS_MAX], parent; /* parent: rank 0 */
    char host_name[256];
    int host_of[RANKS_MAX];
    uint64_t rests;
};

static struct local_state *state_of(struct knee_runtime *rt)
{
    return rt->state;
}

static bool refuse(struct knee_runtime *rt, const char *why)
{
    snprintf(rt->fault, sizeof rt->fault, "%s", why);
    return false;
}

static struct ring *ring_of(struct knee_runtime *rt, int from, int to)
{
    return &state_of(rt)->shared->rings[(size_t)from * (size_t)rt->size + (size_t)to];
}

/* ---- Bytes through a ring: as many as fit, as many as there are ---- */

static size_t ring_write(struct ring *ring, const void *data, size_t size)
{
    size_t written = atomic_load(&ring->written);
    size_t room = RING_BYTES - (written - atomic_load(&ring->read)), at = written % RING_BYTES;
    size = size < room ? size : room;
    size_t first = size < RING_BYTES - at ? size : RING_BYTES - at;
    memcpy(ring->data + at, data, first);
    memcpy(ring->data, (const unsigned char *)data + first, size - first);
    atomic_store(&ring->written, written + size);
    return size;
}

static size_t ring_read(struct ring *ring, void *data, size_t size)
{
    size_t read = atomic_load(&ring->read);
    size_t there = atomic_load(&ring->written) - read, at = read % RING_BYTES;
    size = size < there ? size : there;
    size_t first = size < RING_BYTES - at ? size : RING_BYTES - at;
    memcpy(data, ring->data + at, first);
    memcpy((unsigned char *)data + first, ring->data, size - first);
    atomic_store(&ring->read, read + size);
    return size;
}

/* ---- Moving on ---- */

static void append(struct knee_request **list, struct knee_request *request)
{
    while (*list)
        list = &(*list)->next;
    request->next = NULL;
    *list = request;
}

static struct knee_request *take_by_tag(struct knee_request **list, int64_t tag)
{
    for (; *list; list = &(*list)->next)
        if ((*list)->head.tag == tag) {
            struct knee_request *found = *list;
            *list = found->next;
            return found;
        }
    return NULL;
}

static void push(struct knee_runtime *rt, int to)
{
    struct peer *peer = &state_of(rt)->peers[to];
    struct ring *ring = ring_of(rt, rt->rank, to);
    struct knee_request *s;
    while ((s = peer->sending)) {
        const unsigned char *head = (const unsigned char *)&s->head;
        if (s->head_moved < sizeof s->head)
            s->head_moved += ring_write(ring, head + s->head_moved, sizeof s->head - s->head_moved);
        if (s->head_moved == sizeof s->head)
            s->moved += ring_write(ring, s->source + s->moved, s->head.bytes - s->moved);
        if (s->head_moved < sizeof s->head || s->moved < s->head.bytes)
            return;
        s->done = true;
        peer->sending = s->next;
    }
}

/* The receive that a head belongs to, or a new one that keeps the bytes. */
static struct knee_request *receive_for(struct peer *peer)
{
    struct knee_request *r = take_by_tag(&peer->asked, peer->head.tag);
    if (r)
        return r;
    r = calloc(1, sizeof *r);
    if (r && !(r->data = malloc(peer->head.bytes + 1))) {
        free(r);
        r = NULL;
    }
    if (r) {
        r->head = peer->head;
        r->receive = r->owned = true;
    }
    return r;
}

static bool pull(struct knee_runtime *rt, int from)
{
    struct peer *peer = &state_of(rt)->peers[from];
    struct ring *ring = ring_of(rt, from, rt->rank);
    for (;;) {
        if (!peer->arriving) {
            unsigned char *head = (unsigned char *)&peer->head;
            peer->head_moved +=
                ring_read(ring, head + peer->head_moved, sizeof peer->head - peer->head_moved);
            if (peer->head_moved < sizeof peer->head)
                return true;
            peer->head_moved = 0;
            peer->arriving = receive_for(peer);
            if (!peer->arriving)
                return refuse(rt, "out of memory for a message");
            if (peer->arriving->head.bytes != peer->head.bytes)
                return refuse(rt, "a message of another size than was asked for");
        }
        struct knee_request *r = peer->arriving;
        r->moved += ring_read(ring, r->data + r->moved, r->head.bytes - r->moved);
        if (r->moved < r->head.bytes)
            return true;
        r->done = true;
        peer->arriving = NULL;
        if (r->owned)
            append(&peer->kept, r);
    }
}

static bool progress(struct knee_runtime *rt)
{
    for (int r = 0; r < rt->size; r++) {
        push(rt, r);
        if (!pull(rt, r))
            return false;
    }
    return true;
}

/* Gives the processor away; now and then looks whether all are still there. */
static void rest(struct knee_runtime *rt)
{
    struct local_state *state = state_of(rt);
    sched_yield();
    if (++state->rests % 1024 != 0)
        return;
    if (atomic_load(&state->shared->stopped) == STOPPED)
        _exit(KNEE_SYSTEM);
    if (rt->rank != 0 && getppid() != state->parent)
        rt->abort(rt, "rank 0 died");
    int how;
    pid_t gone = rt->rank == 0 ? waitpid(-1, &how, WNOHANG) : 0;
    bool well = gone > 0 && WIFEXITED(how) && WEXITSTATUS(how) == 0; /* it was done before rank 0 */
    for (int r = 1; gone > 0 && !well && r < rt->size; r++)
        if (state->children[r] == gone) {
            char why[96];
            snprintf(why, sizeof why, "rank %d died%s", r, WIFSIGNALED(how) ? " by a signal" : "");
            rt->abort(rt, why);
        }
}

static bool start(struct knee_runtime *rt, struct knee_request request, struct knee_request **out)
{
    if (request.other < 0 || request.other >= rt->size)
        return refuse(rt, "there is no such rank");
    struct knee_request *r = malloc(sizeof *r);
    if (!r)
        return refuse(rt, "out of memory");
    struct peer *peer = &state_of(rt)->peers[request.other];
    *r = request;
    struct knee_request *kept = r->receive ? take_by_tag(&peer->kept, r->head.tag) : NULL;
    bool fits = !kept || kept->head.bytes == r->head.bytes;
    if (kept && fits) {
        memcpy(r->data, kept->data, kept->head.bytes);
        r->done = true;
    } else if (peer->arriving && r->receive && peer->arriving->owned &&
               peer->arriving->head.tag == r->head.tag && !kept) {
        /* Its bytes are coming already: go on where they are. */
        struct knee_request *half = peer->arriving;
        fits = half->head.bytes == r->head.bytes;
        if (fits) {
            memcpy(r->data, half->data, half->moved);
            r->moved = half->moved;
            peer->arriving = r;
            kept = half;
        }
    } else if (!kept) {
        append(r->receive ? &peer->asked : &peer->sending, r);
    }
    if (kept) {
        free(kept->data);
        free(kept);
    }
    if (!fits) {
        free(r);
        return refuse(rt, "a message of another size than was asked for");
    }
    *out = r;
    return progress(rt);
}

static bool local_send_start(struct knee_runtime *rt, const void *data, size_t bytes, int to,
                             int tag, struct knee_request **out)
{
    return start(rt, (struct knee_request){.head = {bytes, tag}, .other = to, .source = data}, out);
}

static bool local_receive_start(struct knee_runtime *rt, void *data, size_t bytes, int from,
                                int tag, struct knee_request **out)
{
    return start(
        rt,
        (struct knee_request){.head = {bytes, tag}, .receive = true, .other = from, .data = data},
        out);
}

static bool local_test(struct knee_runtime *rt, struct knee_request **request, bool *done)
{
    *done = *request == NULL;
    if (*done)
        return true;
    if (!progress(rt))
        return false;
    *done = (*request)->done;
    if (*done) {
        free(*request);
        *request = NULL;
    }
    return true;
}

static bool local_wait(struct knee_runtime *rt, struct knee_request **request)
{
    for (bool done = false; !done;) {
        if (!local_test(rt, request, &done))
            return false;
        if (!done)
            rest(rt);
    }
    return true;
}

/* ---- Collectives, of messages ---- */

/* NOLINTBEGIN(clang-analyzer-unix.Malloc): a request is freed when it is done; one that cannot be
 * is left to the end of the run, which is near. */
static bool send(struct knee_runtime *rt, const void *data, size_t bytes, int to)
{
    struct knee_request *request = NULL;
    return local_send_start(rt, data, bytes, to, INTERNAL_TAG, &request) &&
           local_wait(rt, &request);
}

static bool receive(struct knee_runtime *rt, void *data, size_t bytes, int from)
{
    struct knee_request *request = NULL;
    return local_receive_start(rt, data, bytes, from, INTERNAL_TAG, &request) &&
           local_wait(rt, &request);
}
/* NOLINTEND(clang-analyzer-unix.Malloc) */

static bool local_barrier(struct knee_runtime *rt)
{
    struct shared *shared = state_of(rt)->shared;
    int round = atomic_load(&shared->round);
    if (atomic_fetch_add(&shared->arrived, 1) + 1 == rt->size) {
        atomic_store(&shared->arrived, 0);
        atomic_fetch_add(&shared->round, 1);
    }
    while (atomic_load(&shared->round) == round) {
        if (!progress(rt))
            return false;
        rest(rt);
    }
    return true;
}

#define REDUCE(type)                                                                               \
    for (size_t i = 0; i < count; i++) {                                                           \
        type *a = (type *)into + i, b = ((const type *)from)[i];                                   \
        *a = op == KNEE_RUNTIME_SUM                 ? (type)(*a + b)                               \
             : (op == KNEE_RUNTIME_MAX) == (b > *a) ? b                                            \
                                                    : *a;                                          \
    }

static void reduce(void *into, const void *from, size_t count, enum knee_runtime_type type,
                   enum knee_runtime_op op)
{
    switch (type) {
    case KNEE_RUNTIME_F32: REDUCE(float) break;
    case KNEE_RUNTIME_F64: REDUCE(double) break;
    case KNEE_RUNTIME_I64: REDUCE(int64_t) break;
    case KNEE_RUNTIME_U8: REDUCE(unsigned char) break;
    }
}

/* To rank 0 and back: what is reduced so is small. */
static bool local_all_reduce(struct knee_runtime *rt, void *buffer, size_t count,
                             enum knee_runtime_type type, enum knee_runtime_op op)
{
    size_t bytes = count * (type == KNEE_RUNTIME_F32 ? 4 : type == KNEE_RUNTIME_U8 ? 1 : 8);
    if (rt->rank != 0)
        return send(rt, buffer, bytes, 0) && receive(rt, buffer, bytes, 0);
    void *theirs = malloc(bytes + 1);
    bool good = theirs || refuse(rt, "out of memory");
    for (int r = 1; good && r < rt->size; r++) {
        good = receive(rt, theirs, bytes, r);
        if (good)
            reduce(buffer, theirs, count, type, op);
    }
    for (int r = 1; good && r < rt->size; r++)
        good = send(rt, buffer, bytes, r);
    free(theirs);
    return good;
}

static bool local_all_reduce_start(struct knee_runtime *rt, void *buffer, size_t count,
                                   enum knee_runtime_type type, enum knee_runtime_op op,
                                   struct knee_request **out)
{
    *out = NULL; /* done at once */
    return local_all_reduce(rt, buffer, count, type, op);
}

/* Part r of `in` to rank r and part r of `out` from it, where this rank sends and receives. */
struct pattern {
    bool sends, spread_in;     /* part r to rank r, or all to `only` */
    bool receives, spread_out; /* likewise */
    int only;
};

static bool parts(struct knee_runtime *rt, const struct pattern *p, const float *in, float *out,
                  size_t part)
{
    struct knee_request *requests[2 * RANKS_MAX] = {0};
    size_t bytes = part * sizeof(float);
    bool good = true;
    for (int r = 0; good && r < rt->size; r++) {
        if (p->receives && (p->spread_out || r == p->only))
            good = local_receive_start(rt, out + (p->spread_out ? (size_t)r * part : 0), bytes, r,
                                       INTERNAL_TAG, &requests[2 * r]);
        if (good && p->sends && (p->spread_in || r == p->only))
            good = local_send_start(rt, in + (p->spread_in ? (size_t)r * part : 0), bytes, r,
                                    INTERNAL_TAG, &requests[2 * r + 1]);
    }
    for (int i = 0; good && i < 2 * rt->size; i++)
        good = local_wait(rt, &requests[i]);
    /* What is under way when the wire breaks belongs to its queue, and the run ends. */
    return good; /* NOLINT(clang-analyzer-unix.Malloc) */
}

/* One of our own algorithms, in place on `out`. */
static bool exchanged(struct knee_runtime *rt, const char *algorithm, enum knee_op op,
                      const float *in, float *out, size_t count)
{
    size_t share = count / (size_t)rt->size, mine = (size_t)rt->rank * share;
    float *work = malloc((2 * count + 1) * sizeof *work);
    if (!work)
        return refuse(rt, "out of memory");
    bool root_only = op == KNEE_OP_BROADCAST && rt->rank != 0;
    if (op == KNEE_OP_ALL_GATHER)
        memcpy(work + mine, in, share * sizeof *work);
    else if (!root_only)
        memcpy(work, in, count * sizeof *work);
    bool good = knee_exchange_find(algorithm, op)->run(rt, work, work + count, count);
    if (op == KNEE_OP_REDUCE_SCATTER)
        memcpy(out, work + mine, share * sizeof *work);
    else if (op != KNEE_OP_REDUCE || rt->rank == 0)
        memcpy(out, work, count * sizeof *work);
    free(work);
    return good;
}

static bool local_collective(struct knee_runtime *rt, enum knee_op op, const void *in, void *out,
                             size_t count)
{
    size_t share = count / (size_t)rt->size;
    bool root = rt->rank == 0;
    switch (op) {
    case KNEE_OP_ALL_TO_ALL:
    case KNEE_OP_ALL_TO_ALLV:
        return parts(rt, &(struct pattern){true, true, true, true, -1}, in, out, share);
    case KNEE_OP_GATHER:
        return parts(rt, &(struct pattern){true, false, root, true, 0}, in, out, share);
    case KNEE_OP_SCATTER:
        return parts(rt, &(struct pattern){root, true, true, false, 0}, in, out, share);
    case KNEE_OP_BROADCAST:
    case KNEE_OP_REDUCE: return exchanged(rt, "tree", op, in, out, count);
    case KNEE_OP_BARRIER: return local_barrier(rt);
    case KNEE_OP_ALL_REDUCE:
    case KNEE_OP_ALL_GATHER:
    case KNEE_OP_REDUCE_SCATTER:
    case KNEE_OP_SEND_RECV: return exchanged(rt, "ring", op, in, out, count);
    default: return refuse(rt, "no such collective");
    }
}

static bool local_gather_bytes(struct knee_runtime *rt, const void *mine, size_t size, void **all,
                               size_t *sizes)
{
    uint64_t bytes = size;
    if (rt->rank != 0) {
        if (all)
            *all = NULL;
        return send(rt, &bytes, sizeof bytes, 0) && send(rt, mine, size, 0);
    }
    unsigned char *data = malloc(size + 1);
    size_t total = size;
    bool good = data || refuse(rt, "out of memory");
    if (good && size)
        memcpy(data, mine, size);
    sizes[0] = size;
    for (int r = 1; good && r < rt->size; r++) {
        good = receive(rt, &bytes, sizeof bytes, r);
        unsigned char *more = good ? realloc(data, total + bytes + 1) : NULL;
        if (good && !more)
            good = refuse(rt, "out of memory for what the ranks sent");
        data = more ? more : data;
        good = good && receive(rt, data + total, bytes, r);
        sizes[r] = (size_t)bytes;
        total += (size_t)bytes;
    }
    if (good)
        *all = data;
    else
        free(data);
    return good;
}

/* ---- Beginning and end ---- */

static void local_abort(struct knee_runtime *rt, const char *why)
{
    struct local_state *state = state_of(rt);
    _Atomic int *stopped = &state->shared->stopped;
    int running = RUNNING;
    if (atomic_compare_exchange_strong(stopped, &running, SPEAKING)) {
        fprintf(stderr, "knee: rank %d: %s\n", rt->rank, why);
        atomic_store(stopped, STOPPED);
    }
    for (int i = 0; i < 1000 && atomic_load(stopped) != STOPPED; i++)
        usleep(1000); /* another one is saying why, and must not be ended before it has */
    for (int r = 1; rt->rank == 0 && r < rt->size; r++)
        kill(state->children[r], SIGKILL); /* the reason is already printed */
    _exit(KNEE_SYSTEM);
}

static size_t shared_size(int size)
{
    return sizeof(struct shared) + (size_t)size * (size_t)size * sizeof(struct ring);
}

/* Rank 0 stays until the others are gone. */
static void local_finish(struct knee_runtime *rt)
{
    struct local_state *state = state_of(rt);
    local_barrier(rt);
    for (int r = 1; rt->rank == 0 && r < rt->size; r++)
        waitpid(state->children[r], NULL, 0);
    munmap(state->shared, shared_size(rt->size));
    free(state->peers);
    free(state);
    free(rt);
}

static const struct knee_runtime table = {
    .name = "local",
    .host_count = 1,
    .device_name = "CPU",
    .barrier = local_barrier,
    .all_reduce = local_all_reduce,
    .all_reduce_start = local_all_reduce_start,
    .send_start = local_send_start,
    .receive_start = local_receive_start,
    .test = local_test,
    .wait = local_wait,
    .collective = local_collective,
    .gather_bytes = local_gather_bytes,
    KNEE_HOST_BUFFERS,
    .abort = local_abort,
    .finish = local_finish,
};

/* When rank 0 ends for any reason, the others end too, wherever they are. rest() also notices it,
 * but not while another library runs. */
static void end_with_parent(pid_t parent)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* rank 0 has said why, if it could */
#endif
    if (getppid() != parent)
        _exit(KNEE_SYSTEM);
}

/* Children end with SIGTERM when rank 0 cannot have them all. */
static bool fork_ranks(struct knee_runtime *rt)
{
    struct local_state *state = state_of(rt);
    state->parent = getpid();
    fflush(NULL); /* or what is buffered is written once by each */
    for (int r = 1; r < rt->size; r++) {
        pid_t child = fork();
        if (child == 0) {
            end_with_parent(state->parent);
            rt->rank = r;
            return true;
        }
        if (child < 0) {
            for (int k = 1; k < r; k++)
                kill(state->children[k], SIGTERM);
            return false;
        }
        state->children[r] = child;
    }
    return true;
}

knee_status knee_runtime_fork(int ranks, struct knee_runtime **out, struct knee_err *err)
{
    if (ranks < 1 || ranks > RANKS_MAX)
        return knee_fail(err, KNEE_USAGE, "", "1 to %d ranks, not %d", RANKS_MAX, ranks);
    struct knee_runtime *rt = malloc(sizeof *rt);
    struct local_state *state = calloc(1, sizeof *state);
    struct peer *peers = calloc((size_t)ranks, sizeof *peers);
    void *memory = mmap(NULL, shared_size(ranks), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (rt && state && peers && memory != MAP_FAILED) {
        *rt = table;
        rt->size = ranks;
        rt->state = state;
        rt->host_name = state->host_name;
        rt->host_of = state->host_of;
        state->shared = memory;
        state->peers = peers;
        if (gethostname(state->host_name, sizeof state->host_name - 1) != 0)
            snprintf(state->host_name, sizeof state->host_name, "localhost");
        if (fork_ranks(rt)) {
            *out = rt;
            return KNEE_OK;
        }
    }
    if (memory != MAP_FAILED)
        munmap(memory, shared_size(ranks));
    free(peers);
    free(state);
    free(rt);
    return knee_fail(err, KNEE_SYSTEM, "", "%d processes cannot be started", ranks);
}
