/* SPDX-License-Identifier: MIT */
/*
 * What Kineto's events mean. GPU work is category kernel, gpu_memcpy and gpu_memset (other
 * spellings in old files), never the annotations and synchronisations drawn beside it. Host calls
 * with a correlation launch it; ProfilerStep# and enumerate(DataLoader)# annotations mark steps and
 * waiting for input; record_param_comms describes collectives whose kernels do not describe
 * themselves.
 */
#include "read/trace/product_args.h"
#include "read/trace/trace_json.h"
#include "timeline/marks.h"

#include <string.h>

static bool begins(struct knee_slice s, const char *word)
{
    size_t length = strlen(word);
    return s.length >= length && memcmp(s.at, word, length) == 0;
}

static bool describes_collective(struct knee_slice name)
{
    return begins(name, "record_param_comms") || begins(name, "nccl:") || begins(name, "gloo:");
}

bool knee_event_wants_args(const struct knee_event *e)
{
    if (e->keep & KNEE_KEEP_ALL)
        return e->category != KNEE_CAT_PYTHON;
    switch (e->category) {
    case KNEE_CAT_KERNEL:
    case KNEE_CAT_COPY:
    case KNEE_CAT_RUNTIME: return true;
    case KNEE_CAT_HOST: return describes_collective(e->name) || knee_names_product(e->name);
    default: return e->phase == 'M';
    }
}

/* Bytes that equal c have their high bit set (and, rarely, one after such a byte). */
static inline uint64_t bytes_like(uint64_t word, unsigned char c)
{
    word ^= 0x0101010101010101u * c;
    return (word - 0x0101010101010101u) & ~word & 0x8080808080808080u;
}

/* Collectives that describe themselves have ccl near the start of their names. Eight bytes at a
 * time; saying yes too often only costs time. */
bool knee_event_wants_more(const struct knee_event *e)
{
    if (e->keep & KNEE_KEEP_ALL)
        return e->category != KNEE_CAT_RUNTIME;
    if (e->category == KNEE_CAT_COPY)
        return true; /* how much it moves */
    if (e->category != KNEE_CAT_KERNEL)
        return e->category == KNEE_CAT_HOST || e->phase == 'M';
    for (size_t i = 0; i < 24 && i + 3 <= e->name.length; i += 6) {
        uint64_t word;
        memcpy(&word, e->name.at + i, sizeof word); /* the window is padded */
        uint64_t c = bytes_like(word, 'c'), l = bytes_like(word, 'l');
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        if (c & (c << 8) & (l << 16))
#else
        if (c & (c >> 8) & (l >> 16))
#endif
            return true;
    }
    return false;
}

/* Not a copy, which may wait for the GPU. */
static bool launches_kernel(struct knee_slice name)
{
    return knee_slice_has(name, "Launch");
}

static bool names_module(struct knee_slice name)
{
    return begins(name, "nn.Module: ");
}

static bool names_step(struct knee_slice name)
{
    int64_t number;
    return name.length < 32 && knee_names_step(name.at, name.length, &number);
}

/* cudaLaunchKernel, cuLaunchKernelEx, hipMemcpyWithStream, cudaGraphLaunch ... */
static bool hands_over_work(const struct knee_event *e)
{
    return e->host_kind == KNEE_HOST_LAUNCH;
}

/* "MmBackward0", "autograd::engine::evaluate_function: AddBackward": of autograd. */
static inline bool names_backward(struct knee_slice name)
{
    size_t length = name.length;
    length -= length > 0 && name.at[length - 1] == '0';
    return length > 8 && name.at[length - 1] == 'd' &&
           memcmp(name.at + length - 8, "Backward", 8) == 0;
}

/* A call that may be what the GPU waits for: not one that launches kernels or records events. */
static bool may_wait(const struct knee_event *e)
{
    return e->host_kind == KNEE_HOST_SYNC || e->host_kind == KNEE_HOST_CALL ||
           e->host_kind == KNEE_HOST_LAUNCH;
}

static void see(struct knee_event *e)
{
    if (e->category == KNEE_CAT_HOST && names_backward(e->name))
        e->seen |= KNEE_SEEN_BACKWARD;
    else if (e->host_kind == KNEE_HOST_CALL && (begins(e->name, "cudaStreamBeginCapture") ||
                                                begins(e->name, "hipStreamBeginCapture")))
        e->seen |= KNEE_SEEN_CAPTURE;
}

bool knee_kineto_wants(struct knee_event *e, unsigned keep)
{
    e->named = true;
    e->host_kind = KNEE_HOST_UNUSED;
    if (e->category == KNEE_CAT_RUNTIME || (keep & KNEE_KEEP_HOST))
        e->host_kind = knee_kineto_host_kind(e);
    see(e);
    if (e->category == KNEE_CAT_PYTHON || (keep & KNEE_KEEP_ALL)) {
        if ((keep & KNEE_KEEP_ALL) && e->category == KNEE_CAT_HOST && begins(e->name, "aten::"))
            e->seen |= KNEE_SEEN_OPERATION;
        return (keep & KNEE_KEEP_ALL) && (e->category != KNEE_CAT_PYTHON || names_module(e->name));
    }
    if ((keep & KNEE_KEEP_HOST) && e->host_kind != KNEE_HOST_UNUSED)
        return true;
    if (e->category == KNEE_CAT_RUNTIME)
        return may_wait(e);
    if (e->category != KNEE_CAT_HOST || (keep & KNEE_KEEP_CPU) || e->name.length == 0)
        return true;
    static const bool first_letters[256] = {
        ['P'] = 1, ['O'] = 1, ['e'] = 1, ['S'] = 1, ['s'] = 1, ['I'] = 1, ['i'] = 1,
        ['T'] = 1, ['t'] = 1, ['r'] = 1, ['n'] = 1, ['g'] = 1, ['a'] = 1};
    if (!first_letters[(unsigned char)e->name.at[0]])
        return false; /* most of them */
    switch (e->name.at[0]) {
    case 'a': /* aten::, autograd:: */
        e->seen |= KNEE_SEEN_OPERATION;
        return knee_names_product(e->name);
    case 'P': return begins(e->name, "ProfilerStep#");
    case 'O': return begins(e->name, "Optimizer.step#");
    case 'e': return begins(e->name, "enumerate(DataLoader)");
    case 'S':
    case 's':
    case 'I':
    case 'i':
    case 'T':
    case 't': return names_step(e->name);
    case 'r':
    case 'n':
    case 'g': return describes_collective(e->name);
    default: return false;
    }
}

static uint32_t named(struct knee_event_sink *sink, struct knee_slice text)
{
    if (!text.at || text.length == 0)
        return 0;
    return knee_builder_name(sink->builder, text.at, text.length) + 1;
}

static struct knee_call_facts facts_of(struct knee_event_sink *sink, const struct knee_event *e)
{
    return (struct knee_call_facts){
        .op = e->args.collective.at
                  ? knee_op_from_name(e->args.collective.at, e->args.collective.length)
                  : KNEE_OP_UNKNOWN,
        .in_elements = e->args.in_elements,
        .out_elements = e->args.out_elements,
        .group_size = e->args.group_size > 0 ? e->args.group_size : -1,
        .sequence = e->args.sequence,
        .bytes = -1,
        .dtype_bytes =
            e->args.dtype.at ? knee_dtype_bytes(e->args.dtype.at, e->args.dtype.length) : 0,
        .group = named(sink, e->args.group),
        .description = named(sink, e->args.description),
        .members = named(sink, e->args.members),
        .peer = e->args.to >= 0 ? e->args.to : e->args.from,
        .sends = e->args.to >= 0,
    };
}

static int32_t stream_of(const struct knee_event *e)
{
    int64_t stream = e->args.stream >= 0 ? e->args.stream : e->tid;
    return stream >= INT32_MIN && stream <= INT32_MAX ? (int32_t)stream
                                                      : (int32_t)(stream & 0xffff);
}

/* "[66, 2, 1]": the product is how many blocks there are. */
static void keep_grid(struct knee_event_sink *sink, const struct knee_event *e)
{
    int64_t blocks = 1, number = -1;
    for (size_t i = 0; i < e->args.grid.length; i++) {
        char c = e->args.grid.at[i];
        if (c >= '0' && c <= '9') {
            number = 10 * (number < 0 ? 0 : number) + (c - '0');
        } else if (number >= 0) {
            blocks *= number;
            number = -1;
        }
        if (number > INT32_MAX || blocks > INT32_MAX)
            return;
    }
    if (e->args.grid.length && blocks > 0)
        knee_builder_grid(sink->builder, e->args.correlation, blocks);
}

static void take_gpu(struct knee_event_sink *sink, const struct knee_event *e, int64_t end_ns)
{
    uint32_t name = knee_builder_name(sink->builder, e->name.at, e->name.length);
    struct knee_call_facts facts;
    bool described = e->args.collective.at || e->args.group.at;
    if (described)
        facts = facts_of(sink, e);
    sink->gpu_spans++;
    if (sink->options->detail && e->category == KNEE_CAT_KERNEL)
        keep_grid(sink, e);
    if (e->category == KNEE_CAT_COPY && e->args.bytes > 0)
        knee_builder_copied(sink->builder, name, e->args.bytes, end_ns - e->start_ns);
    if (sink->options->host && e->args.bytes > 0)
        knee_builder_copy(sink->builder, e->args.correlation, e->args.bytes);
    knee_builder_span(sink->builder,
                      &(struct knee_gpu_work){e->pid, e->start_ns, end_ns, name, stream_of(e),
                                              e->args.correlation, e->category == KNEE_CAT_COPY,
                                              described ? &facts : NULL});
}

/* "ProfilerStep#12", "Optimizer.step#SGD.step", "iteration 7". False: it marks no step. */
static bool take_step(struct knee_event_sink *sink, const struct knee_event *e, int64_t end_ns)
{
    int64_t number = 0;
    uint32_t name = 0;
    enum knee_step_source source = KNEE_STEPS_ANNOTATION;
    if (begins(e->name, "Optimizer.step#")) {
        source = KNEE_STEPS_OPTIMIZER;
        name = knee_builder_name(sink->builder, e->name.at, e->name.length) + 1;
    } else if (!knee_names_step(e->name.at, e->name.length, &number)) {
        return false;
    } else if (e->name.at[0] == 'P') {
        source = KNEE_STEPS_PROFILER;
    }
    knee_builder_step_of(sink->builder, &(struct knee_raw_mark){
                                            {e->start_ns, end_ns, number, e->pid}, source, name});
    return true;
}

/* A job without GPUs: operations are its compute, gloo's annotations its communication. */
static void take_cpu_work(struct knee_event_sink *sink, const struct knee_event *e, int64_t end_ns)
{
    struct knee_call_facts facts = facts_of(sink, e);
    if (begins(e->name, "record_param_comms") || begins(e->name, "c10d::") ||
        begins(e->name, "_c10d") || begins(e->name, "Optimizer.") || begins(e->name, "nccl:"))
        return; /* wrappers around other events */
    facts.op = knee_op_from_name(e->name.at, e->name.length);
    knee_builder_span(
        sink->builder,
        &(struct knee_gpu_work){e->pid, e->start_ns, end_ns,
                                knee_builder_name(sink->builder, e->name.at, e->name.length),
                                stream_of(e), KNEE_NO_CORRELATION, false, &facts});
}

static void take_product(struct knee_event_sink *sink, const struct knee_event *e, int64_t end_ns)
{
    struct knee_product product;
    if (!knee_product_from(e, &product))
        return;
    product.start_ns = e->start_ns;
    product.end_ns = end_ns;
    product.thread = e->tid;
    knee_builder_product(sink->builder, &product);
}

static void take_host(struct knee_event_sink *sink, const struct knee_event *e, int64_t end_ns)
{
    bool is_operation = e->name.length && e->name.at[0] == 'a'; /* aten::, autograd:: */
    if (is_operation && !sink->options->cpu) {
        if (knee_names_product(e->name))
            take_product(sink, e, end_ns);
    } else if (take_step(sink, e, end_ns)) {
        return;
    } else if (begins(e->name, "enumerate(DataLoader)")) {
        knee_builder_load(sink->builder, e->pid, e->start_ns, end_ns,
                          begins(e->name, "enumerate(DataLoader)#_MultiProcessing"));
    } else if (sink->options->cpu) {
        take_cpu_work(sink, e, end_ns);
    } else if (describes_collective(e->name)) {
        struct knee_call_facts facts = facts_of(sink, e);
        sink->cpu_comm += begins(e->name, "gloo:");
        if (facts.op == KNEE_OP_UNKNOWN)
            facts.op = knee_op_from_name(e->name.at, e->name.length);
        if (facts.op != KNEE_OP_UNKNOWN)
            knee_builder_comm_op(sink->builder, e->start_ns, end_ns, e->tid, &facts);
    }
}

enum { LONG_CALL_NS = 20000 }; /* shorter ones are part of the host's own time */

/* With detail everything is kept that replay does not ask for. */
static int host_kind(const struct knee_event *e, bool detail)
{
    int kind = e->host_kind;
    if (!detail || kind != KNEE_HOST_UNUSED)
        return kind;
    if (e->category == KNEE_CAT_PYTHON)
        return KNEE_HOST_MODULE;
    if (e->category != KNEE_CAT_HOST)
        return KNEE_HOST_UNUSED;
    return e->annotates ? KNEE_HOST_RANGE : KNEE_HOST_OPERATION;
}

enum { SHAPED_NAME = 256, SHAPES = 96 };

/* "aten::mm [4096,4096]x[4096,11008]": an operation with the shapes of its inputs. */
static uint32_t shaped_name(struct knee_event_sink *sink, const struct knee_event *e)
{
    char text[SHAPED_NAME];
    size_t length = e->name.length, shapes = 0;
    if (e->has_args && e->args.dims.at && length + SHAPES <= sizeof text) {
        memcpy(text, e->name.at, length);
        shapes = knee_shapes_text(e->args.dims, text + length, SHAPES);
    }
    return shapes ? knee_builder_name(sink->builder, text, length + shapes)
                  : knee_builder_name(sink->builder, e->name.at, length);
}

static void keep_host(struct knee_event_sink *sink, const struct knee_event *e, int64_t end_ns)
{
    bool detail = sink->options->detail;
    int kind = host_kind(e, detail);
    bool brief = kind == KNEE_HOST_CALL && end_ns - e->start_ns < LONG_CALL_NS;
    if (kind == KNEE_HOST_UNUSED || (brief && !detail))
        return;
    if (brief) /* replay shall not see it */
        kind = KNEE_HOST_OPERATION;
    uint32_t name = sink->options->shapes && kind == KNEE_HOST_OPERATION
                        ? shaped_name(sink, e)
                        : knee_builder_name(sink->builder, e->name.at, e->name.length);
    knee_builder_host(sink->builder, e->start_ns, end_ns, e->tid, (enum knee_host_kind)kind, name);
    if (detail && e->category == KNEE_CAT_HOST && e->has_args)
        knee_builder_sequence(sink->builder, e->args.autograd);
}

/* A call into the driver that is of use only to replay. */
static bool is_host_only(const struct knee_event *e)
{
    return e->category == KNEE_CAT_RUNTIME &&
           (e->args.correlation == KNEE_NO_CORRELATION || !hands_over_work(e));
}

bool knee_kineto_event(struct knee_event_sink *sink, struct knee_event *e)
{
    if (e->phase != 'X' || e->category == KNEE_CAT_SKIP)
        return true;
    /* the name came before the category: it was not looked at yet */
    if (!e->named && !knee_kineto_wants(e, knee_keep_of(sink->options)))
        return true;
    bool waits = e->category == KNEE_CAT_RUNTIME && may_wait(e);
    if (is_host_only(e) && !sink->options->host && !waits)
        return true;
    if (e->bad_time || !e->has_start || !e->has_duration)
        return false;
    int64_t duration_ns = e->duration_ns;
    if (duration_ns < 0) {
        sink->negative++;
        duration_ns = 0;
    }
    int64_t end_ns = e->start_ns + duration_ns;
    if (!knee_time_is_good(e->start_ns, end_ns))
        return false;
    if (sink->options->host)
        keep_host(sink, e, end_ns);
    if (waits && duration_ns >= KNEE_LONG_CALL_NS)
        knee_builder_long_call(sink->builder, e->start_ns, end_ns, e->tid,
                               (enum knee_host_kind)e->host_kind,
                               knee_builder_name(sink->builder, e->name.at, e->name.length));
    if (is_host_only(e))
        return true;
    switch (e->category) {
    case KNEE_CAT_KERNEL:
    case KNEE_CAT_COPY: take_gpu(sink, e, end_ns); break;
    case KNEE_CAT_RUNTIME:
        if (duration_ns >= KNEE_LONG_LAUNCH_NS && launches_kernel(e->name))
            knee_builder_long_launch(sink->builder, e->start_ns, end_ns);
        knee_builder_launch(sink->builder, e->start_ns, end_ns, e->tid, e->args.correlation);
        break;
    case KNEE_CAT_HOST: take_host(sink, e, end_ns); break;
    default: break;
    }
    return true;
}

/* A number after one of these words, which themselves follow nothing but a separator. */
int64_t knee_rank_from_name(const char *file)
{
    static const char *const words[] = {"rank", "worker", "kineto", "gpu", "r", "host"};
    const char *base = strrchr(file, '/');
    base = base ? base + 1 : file;
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        size_t length = strlen(words[w]);
        for (const char *p = base; (p = strstr(p, words[w])); p++) {
            bool apart = p == base || !((p[-1] | 0x20) >= 'a' && (p[-1] | 0x20) <= 'z');
            const char *digits = p + length;
            if (*digits == '-' || *digits == '_' || *digits == '=' || *digits == '.')
                digits++;
            if (!apart || *digits < '0' || *digits > '9')
                continue;
            int64_t number = 0;
            for (; *digits >= '0' && *digits <= '9' && number < 100000000; digits++)
                number = number * 10 + (*digits - '0');
            return number;
        }
    }
    return -1;
}
