/* SPDX-License-Identifier: MIT */
/* Timeline, account and step: what ranks did, with every nanosecond labelled. What knee.h says of
 * every call holds here; these structs may change with the minor version. */
#ifndef KNEE_TIMELINE_H
#define KNEE_TIMELINE_H

#include "knee_collective.h"

/* ---- Step: one step, every second labelled ------------------------------------------------ */

enum knee_label {
    KNEE_COMPUTE,  /* useful arithmetic */
    KNEE_TRANSFER, /* the wire, not hidden behind compute */
    KNEE_WAIT,     /* in a collective, until the last worker has come */
    KNEE_COPY,     /* copies not hidden */
    KNEE_STARVED,  /* waiting for input */
    KNEE_HOST,     /* waiting for the host to launch work */
    KNEE_IDLE,     /* what is left */
    KNEE_LABELS
};

struct knee_step {
    double label_s[KNEE_LABELS]; /* sum = wall_s */
    double wall_s;
    double comm_s; /* all communication, hidden or not */
};
const char *knee_label_name(enum knee_label label);
double knee_step_exposed_s(const struct knee_step *step);  /* X = wait + transfer */
double knee_step_busy_s(const struct knee_step *step);     /* anything runs: no gap */
double knee_step_ratio(const struct knee_step *step);      /* R = X / compute */
double knee_step_gamma(const struct knee_step *step);      /* |M| / |C|: all communication */
double knee_step_efficiency(const struct knee_step *step); /* 1 / (1 + R) */

/* ---- Timeline: what a rank's GPU did, from a trace, a simulation or a live job ------------- */

#define KNEE_NO_TIME INT64_MIN

/* Times that readers let through: up to the year 2065, base included, and a little before 1970; no
 * event is longer than four months. Then differences of times on a common clock fit into 64 bits;
 * sums over events do not have to, and are held at the largest number. */
#define KNEE_LAST_NS    INT64_C(3000000000000000000)
#define KNEE_FIRST_NS   (-INT64_C(1000000000000000000))
#define KNEE_LONGEST_NS INT64_C(10000000000000000)
static inline bool knee_time_is_good(int64_t start_ns, int64_t end_ns)
{
    return start_ns >= KNEE_FIRST_NS && end_ns >= start_ns && end_ns <= KNEE_LAST_NS &&
           end_ns - start_ns <= KNEE_LONGEST_NS;
}

enum knee_span_kind {
    KNEE_SPAN_COMPUTE,
    KNEE_SPAN_COMM,
    KNEE_SPAN_FUSED, /* compute and communication in one kernel: counts as both */
    KNEE_SPAN_COPY,  /* memcpy, memset */
};

/* The stream of pages of unified memory: they are not handed over, they move when touched.
 */
#define KNEE_NO_STREAM (-1)

/* One piece of GPU work. Times are the trace's own clock. */
struct knee_span {
    int64_t start_ns, end_ns;
    int64_t launch_ns; /* when the host had handed it over; KNEE_NO_TIME: not known */
    uint32_t name;     /* row of knee_trace.names */
    uint32_t call;     /* row of knee_rank.calls + 1; 0: not a collective */
    int32_t stream;
    int32_t step; /* row of knee_trace.steps of its launch; -1: outside of all steps */
    enum knee_span_kind kind;
    uint32_t launch; /* row of knee_trace.host_events + 1 that handed it over; 0: not known or not
                        kept */
};

/* How much a copy moves, where the trace says so; kept with knee_trace_options.host. */
struct knee_copy_size {
    uint32_t launch; /* as in knee_span */
    int64_t bytes;
};

/* What a kernel does, by its name. */
enum knee_kernel_kind {
    KNEE_KERNEL_PRODUCT, /* GEMM, convolution */
    KNEE_KERNEL_ATTENTION,
    KNEE_KERNEL_NORM,
    KNEE_KERNEL_ELEMENTWISE, /* pointwise, reductions: limited by memory */
    KNEE_KERNEL_INDEXING,    /* gathers and scatters, which a compiler does not fuse */
    KNEE_KERNEL_OPTIMIZER,
    KNEE_KERNEL_OTHER,
    KNEE_KERNEL_KINDS
};
const char *knee_kernel_kind_name(enum knee_kernel_kind kind); /* "GEMM" */

/* Where a copy goes from and to. */
enum knee_copy_kind {
    KNEE_COPY_DEVICE,       /* inside one GPU */
    KNEE_COPY_IN_PAGEABLE,  /* from the host: the driver stages it, and the call waits */
    KNEE_COPY_IN_PINNED,    /* from the host at the link's rate */
    KNEE_COPY_IN,           /* from the host, kind of memory not recorded */
    KNEE_COPY_OUT_PAGEABLE, /* to the host */
    KNEE_COPY_OUT_PINNED,
    KNEE_COPY_OUT,
    KNEE_COPY_SET, /* memset */
    KNEE_COPY_OTHER,
    KNEE_COPY_KINDS
};
const char *knee_copy_kind_name(enum knee_copy_kind kind); /* "device to device" */

/* What the copies of one kind moved in the whole file, where it says how much. */
struct knee_copied {
    uint64_t count;
    int64_t bytes, time_ns; /* sums */
};

/* In how many blocks a kernel runs; kept with knee_trace_options.detail. */
struct knee_grid {
    uint32_t launch; /* as in knee_span */
    int64_t blocks;
};

/* What the host did that GPU work depends on; kept with knee_trace_options.host. */
enum knee_host_kind {
    KNEE_HOST_LAUNCH, /* hands over work: kernels, copies, memsets */
    KNEE_HOST_SYNC,   /* waits for the GPU: device, stream or event */
    KNEE_HOST_WAIT,   /* lets one stream wait for an event of another */
    KNEE_HOST_RECORD, /* records an event */
    KNEE_HOST_CALL,   /* any other call into the driver that takes long */
    KNEE_HOST_SCOPE,  /* an operation or annotation that says what runs inside it */
    /* with knee_trace_options.detail */
    KNEE_HOST_OPERATION, /* of the framework */
    KNEE_HOST_RANGE,     /* an annotation of the user's */
    KNEE_HOST_MODULE,    /* a call of a module */
};

/* A call into the driver that takes as long may be what the GPU waits for. */
#define KNEE_LONG_CALL_NS 50000

struct knee_host_event {
    int64_t start_ns, end_ns, thread;
    uint32_t name; /* row of knee_trace.names */
    enum knee_host_kind kind;
    int64_t sequence; /* of autograd: the same for an operation and its backward; -1: none */
};

/* One collective call on one rank. */
struct knee_call {
    uint32_t span;
    enum knee_op op;
    const char *algorithm, *protocol,
        *dtype;                           /* "RING", "LL", "f32"; "" when the name does not say */
    int64_t bytes;                        /* as nccl-tests counts; -1: not known */
    int32_t group_size;                   /* -1: not known */
    int32_t element_bytes;                /* of one number in it; 0: not known */
    uint32_t group, description, members; /* rows of names + 1; 0: not known */
    int64_t sequence;                     /* -1: not known */
    int32_t peer;                         /* of a send or receive, in its group; -1: not known */
    bool sends;                           /* to the peer, not from it */
};

/* A matrix product or attention whose shape the trace tells (record_shapes), with the kernels that
 * it launched. */
struct knee_product {
    int64_t start_ns, end_ns, thread; /* of the host's operation */
    int64_t kernel_ns;                /* of its kernels; 0: none was found */
    int64_t first_ns;                 /* start of the first of them */
    int64_t longest_ns;               /* of the longest of them ... */
    uint32_t kernel, launch;          /* ... its name, row of names + 1, and its launch */
    int64_t device;                   /* that ran them */
    double count, m, n, k;            /* so many (m x k) (k x n); of attention: heads of all
                                         examples, queries, keys, values of a head */
    int element_bytes;                /* 0: not known */
    bool attention, backward, causal; /* causal: half of the pairs are masked */
};
double knee_product_flops(const struct knee_product *product);
double knee_product_bytes(const struct knee_product *product); /* read and written, at least */

/* A stretch of host time that means something: a training step, or waiting for a batch. */
struct knee_mark {
    int64_t start_ns, end_ns, number;
    int64_t device; /* whose it is; -1: of all devices of the file */
};

/* Who says where steps begin. The first that a file has is believed. */
enum knee_step_source {
    KNEE_STEPS_PROFILER,   /* ProfilerStep# */
    KNEE_STEPS_ANNOTATION, /* "step 12", "iteration 7" */
    KNEE_STEPS_OPTIMIZER,  /* from one optimizer step's end to the next one's */
    KNEE_STEPS_SEQUENCE,   /* the collectives repeat */
    KNEE_STEPS_KERNELS,    /* the kernels repeat */
    KNEE_STEPS_NONE
};

/* One GPU of one process. When its spans stayed in another process, only those of its calls are
 * here; the window and the counts are those of all its work. */
struct knee_rank {
    int64_t rank, device;
    int64_t start_ns, end_ns; /* first start and last end of its work */
    size_t work, launched;    /* pieces of GPU work that were handed over; with a known launch */
    struct knee_span *spans;  /* by start */
    size_t span_count;
    struct knee_call *calls; /* by start */
    size_t call_count;
};

enum knee_loss_kind {
    KNEE_LOSS_TRUNCATED,   /* the file ends inside an event or document */
    KNEE_LOSS_GZIP,        /* the compressed bytes end early or are damaged */
    KNEE_LOSS_EVENT,       /* an event that cannot be read */
    KNEE_LOSS_TIME,        /* an event whose time cannot be read */
    KNEE_LOSS_OVERLONG,    /* an event larger than the buffer may grow */
    KNEE_LOSS_READ,        /* the system could not read on */
    KNEE_LOSS_INTERRUPTED, /* stopped by the user */
    KNEE_LOSS_CAPPED,      /* the profiler stopped writing at its event limit */
    KNEE_LOSS_DEVICE,      /* work on more devices than one file can have */
    KNEE_LOSS_COLUMN,      /* a column or table of a database that cannot be read */
    KNEE_LOSS_JOURNAL,  /* a -wal or -journal next to the database holds changes that are not in it
                         */
    KNEE_REPAIR_STRING, /* a quote that was not escaped */
    KNEE_REPAIR_COMMA,  /* a comma that was missing */
    KNEE_REPAIR_DURATION,  /* a negative duration, taken as 0 */
    KNEE_REPAIR_DUPLICATE, /* an event that stands there twice, taken once */
    KNEE_REPAIR_DOCUMENT,  /* a second document in the file, read on */
    KNEE_REPAIR_CIRCLE,    /* dependencies that go round, cut at the lowest number */
    KNEE_LOSSES
};
/* Its name; and whether data is missing, as opposed to repaired. */
const char *knee_loss_name(enum knee_loss_kind kind);
bool knee_loss_is_lost(enum knee_loss_kind kind);

struct knee_loss {
    uint64_t count, first_byte; /* where the first one was, in uncompressed bytes */
};

#define KNEE_LONG_LAUNCH_NS 5000000

/* One file. Owns everything in it; free with knee_trace_release(). */
struct knee_trace {
    char *file;
    const char *format; /* "kineto", "xprof", "nsys", "rpd", "rocpd", "xplane", "rocprofv3",
                           "chakra", "cpu" */
    struct knee_rank *ranks;
    size_t rank_count;
    struct knee_mark *steps; /* by device, then start; not nested */
    size_t step_count;
    enum knee_step_source step_source; /* who marked them; KNEE_STEPS_NONE: there are none */
    struct knee_mark *loads; /* waiting for a batch, by device, then start; number 1: processes of
                                the loader worked on it during the step, 0: they did not */
    size_t load_count;
    struct knee_mark *optimizers; /* in an optimizer's step, by start; all devices of the file */
    size_t optimizer_count;
    struct knee_host_event *host_events; /* by start; NULL unless options.host */
    size_t host_event_count;
    struct knee_copy_size *copies; /* by launch; NULL unless options.host */
    size_t copy_count;
    struct knee_grid *grids; /* by launch; NULL unless options.detail */
    size_t grid_count;
    struct knee_product *products; /* by start; NULL where no shapes are recorded */
    size_t product_count;
    struct knee_copied copied[KNEE_COPY_KINDS];
    /* The longest call that launched a kernel, if it took KNEE_LONG_LAUNCH_NS or more: it loaded or
     * compiled code, or waited for room in a full queue. Both 0: there is none. */
    int64_t long_launch_start_ns, long_launch_end_ns;
    /* Calls into the driver that took KNEE_LONG_CALL_NS or more, by start; also without
     * options.host. */
    struct knee_host_event *long_calls;
    size_t long_call_count;
    size_t launch_calls; /* of the host, with a correlation */
    uint64_t captures;   /* CUDA graphs whose capture is recorded */
    bool operations;     /* PyTorch's operations on the host are recorded ... */
    bool backward;       /* ... one of a backward pass among them */
    char **names;
    size_t name_count;
    int64_t rank, world_size;      /* as the file says; -1: it does not */
    bool rank_stated;              /* the rank stands in the file, not in its name only */
    int64_t first_step, last_step; /* numbers of the profiler's steps; -1: there are none */
    int64_t base_ns;               /* added to its times gives the absolute time */
    char gpu_name[64], host[64], backend[32];
    uint64_t bytes, events; /* uncompressed bytes and events seen */
    struct knee_loss losses[KNEE_LOSSES];
    uint64_t cpu_comm; /* host-side communication: with no GPU work, read again with options.cpu */
    bool whole_graphs; /* CUDA graphs recorded as one piece each: kernels inside are not seen */
    bool laid_out;     /* no starts were recorded: work stands as early as its dependencies allow */
    const struct knee_alloc *alloc;
};

/* The door bytes come through: up to `size` bytes, 0 at the end, negative when reading failed. */
struct knee_reader {
    ptrdiff_t (*read)(void *ctx, void *buffer, size_t size);
    void *ctx;
};

/* A name pattern: what kind of work a kernel is, by a word in its name (case does not matter). */
struct knee_pattern {
    const char *word;
    enum knee_span_kind kind;
    enum knee_op op;
};

struct knee_trace_options {
    const struct knee_pattern *patterns; /* looked at before the built-in ones */
    size_t pattern_count;
    bool cpu;          /* there is no GPU: host operations are the work */
    bool host;         /* keep what the host did, for replay */
    size_t host_ranks; /* with host: not where the file says that its job has more ranks than this,
                          which cannot be replayed; 0: always */
    bool detail;       /* with host: all that it did, and grids; for --where */
    bool shapes;       /* with detail: names of operations end in the shapes of their inputs */
    const _Atomic int *cancel; /* stops reading when it becomes nonzero; may be NULL */
};

/* Reads Kineto or XProf JSON, plain or gzip, from `reader`. Damage is counted in out->losses and
 * never fails; KNEE_INPUT when there is not one event in it (`err` says what it is instead),
 * KNEE_SYSTEM when out of memory. `options` may be NULL. */
knee_status knee_trace_read(struct knee_reader reader, const char *file,
                            const struct knee_trace_options *options,
                            const struct knee_alloc *alloc, struct knee_trace *out,
                            struct knee_err *err);
void knee_trace_release(struct knee_trace *trace);

/* The same for bytes that are pushed, already unpacked: begin, then fill the room that is offered
 * and say how much of it was filled, again and again, then end, which also frees the reader (as
 * does abandoning it). begin and room give NULL when out of memory; end then says so. */
struct knee_trace_reader;
struct knee_trace_reader *knee_trace_begin(const char *file,
                                           const struct knee_trace_options *options,
                                           const struct knee_alloc *alloc);
char *knee_trace_room(struct knee_trace_reader *reader, size_t *size);
void knee_trace_filled(struct knee_trace_reader *reader, size_t size);
knee_status knee_trace_end(struct knee_trace_reader *reader, struct knee_trace *out,
                           struct knee_err *err);
void knee_trace_abandon(struct knee_trace_reader *reader);

/* A file in memory. Borrowed. */
struct knee_file_bytes {
    const char *name;
    void *data;
    size_t length;
};

/* Reads an Nsight Systems sqlite export or an RPD database from memory, which is not changed, or
 * with `data` NULL from the file of this name. Contract as knee_trace_read(). */
knee_status knee_nsys_read(struct knee_file_bytes file, const struct knee_trace_options *options,
                           const struct knee_alloc *alloc, struct knee_trace *out,
                           struct knee_err *err);

/* Formats that are read from memory as a whole: XPlane protobuf (JAX, TensorFlow), rocprofv3's JSON
 * and its CSV of kernels (AMD), Chakra execution traces. Told by name and by the first bytes.
 * `data` may be changed. Contract as knee_trace_read(). */
knee_status knee_image_read(struct knee_file_bytes file, const struct knee_trace_options *options,
                            const struct knee_alloc *alloc, struct knee_trace *out,
                            struct knee_err *err);

/* All of a file that may be gzipped, at most about `cap` bytes of it; free *data with
 * alloc->resize(). KNEE_SYSTEM when it cannot be had. */
knee_status knee_gunzip_all(struct knee_reader reader, size_t cap, const struct knee_alloc *alloc,
                            void **data, size_t *length);

/* ---- Account: a timeline with every nanosecond labelled ----------------------------------- */

/* Labels sum to window_ns exactly. Where communication cannot be split into wait and transfer (one
 * rank, ranks missing), all that is exposed stands under KNEE_TRANSFER. */
struct knee_ledger {
    int64_t label_ns[KNEE_LABELS];
    int64_t window_ns;
    int64_t comm_ns; /* all communication, hidden or not */
};
/* The same in seconds, over `steps` steps. */
struct knee_step knee_ledger_step(const struct knee_ledger *ledger, double steps);
int64_t knee_ledger_exposed_ns(const struct knee_ledger *ledger); /* X = wait + transfer */
double knee_ledger_ratio(const struct knee_ledger *ledger);       /* R; NaN without compute */
double knee_ledger_efficiency(const struct knee_ledger *ledger);  /* 1 / (1 + R) */
double knee_ledger_overlap(const struct knee_ledger *ledger);     /* NaN without communication */

/* From here on, until the next one's start. */
struct knee_run {
    int64_t start_ns;
    enum knee_label label;
};

#define KNEE_STRIP 72 /* parts of the common window for a picture of who waits when */

#define KNEE_SHORT_KERNEL_NS 10000 /* shorter kernels do not fill a large GPU */

/* Parts of a step that a change may save. They overlap. */
enum knee_spent {
    KNEE_SPENT_GENERATED, /* kernels that a compiler has made */
    KNEE_SPENT_PLAIN,     /* large 32-bit products that do not use tensor cores */
    KNEE_SPENT_SCORES,    /* softmax of unfused attention, and what else is done to scores */
    /* Chains of elementwise and norm kernels, nothing between them: what is left of each when it is
     * fused, as the longest of its kernels and at least a quarter; and without that floor */
    KNEE_SPENT_FUSED,
    KNEE_SPENT_LONGEST,
    KNEE_SPENT_WIDE_PRODUCT, /* of 32-bit numbers on tensor cores (TF32) */
    KNEE_SPENT_WIDE_ATTENTION,
    KNEE_SPENT_OPTIMIZER, /* one kernel for each operation of its formula */
    KNEE_SPENT_DOUBLE,    /* products of 64-bit numbers */
    KNEE_SPENT_INDEXING,  /* gathering and scattering */
    KNEE_SPENT_AGAIN,     /* forward pass, run again for the backward pass (checkpointing) */
    KNEE_SPENT_JOINING,   /* copying tensors into one (torch.cat) */
    KNEE_SPENT_LAYOUT,    /* converting images between NCHW and NHWC around convolutions */
    KNEE_SPENT_STOPPED,   /* kernels that another process's work on the GPU stopped */
    KNEE_SPENT_LONG_HOST, /* waiting for the host in gaps that are longer than launches make */
    KNEE_SPENTS
};

/* What one rank's spans and names show, in complete steps. */
struct knee_rank_facts {
    struct {
        int64_t count, total_ns, exposed_ns; /* exposed: nothing hides it */
    } copies[KNEE_COPY_KINDS];
    struct {
        int64_t count, total_ns, short_ns; /* short: in kernels too short to fill the GPU */
    } kernels[KNEE_KERNEL_KINDS];
    int64_t spent_ns[KNEE_SPENTS];
    int64_t gap_start_ns, gap_ns; /* the longest stretch in which nothing runs */
    enum knee_label gap_label;
    char gap_next[64];               /* what runs after it; empty: nothing */
    int64_t cold_ns, cold_window_ns; /* loading or compiling code, and of how much; 0: none seen */
    bool cold_compiles;              /* on the host, not in one launch */
    bool cold_loads;                 /* it is the first batch, which loads no code */
    int64_t micro_batches;           /* passes back per step of the optimizer; 0: not known */
    bool loads_ahead; /* most of the waiting for batches is for a loader with worker processes */
    bool torch;       /* PyTorch, by the format or by the names of kernels */
    bool trains, serves, decodes, prefills; /* by the names in its file */
};

struct knee_rank_account {
    const struct knee_trace *trace;
    const struct knee_rank *source;
    int64_t rank;
    int64_t start_ns, end_ns; /* the window: first to last GPU event, own clock */
    int64_t from_ns, to_ns;   /* the window widened to whole steps; runs cover it */
    int64_t shift_ns;         /* added to own times gives the common clock */
    bool split;               /* wait and transfer are separate ... */
    bool bounded;             /* ... from below and above: some members are missing */
    struct knee_ledger ledger;
    struct knee_run *runs; /* NULL where the spans are in another process */
    size_t run_count;
    int64_t waits_ns[KNEE_STRIP]; /* waiting in each part of the common window */
    int64_t load_ns;              /* host time spent waiting for batches, inside steps */
    int64_t stepped_ns;           /* host time inside steps */
    struct knee_rank_facts facts;
    size_t kernels; /* compute kernels, and their median duration */
    int64_t median_kernel_ns;
};

/* A step's window on the GPU: from where the host began it, or from the end of the work before it
 * if the GPU was still at that, to the same moment of the next step. */
struct knee_step_account {
    size_t rank;    /* row of ranks */
    int64_t number; /* as the profiler counts; -1: work outside of all steps */
    int64_t start_ns;
    bool complete; /* its beginning and end are known: means run over complete steps */
    struct knee_ledger ledger;
};

/* Calls of one kind: same operation, size, group, algorithm. Times per call. */
struct knee_collective_account {
    enum knee_op op;
    const char *algorithm, *protocol, *dtype, *group, *description;
    const char
        *axis;     /* "DP", "FSDP", "TP", "PP", "EP" by what it looks like; "" when nothing tells */
    int64_t bytes; /* -1: not known */
    int32_t group_size;
    size_t calls, matched;         /* on all ranks; instances whose every member was found */
    double transfer_s, duration_s; /* mean; transfer is NaN when no instance was matched */
    double wait_s;                 /* mean over calls of matched instances */
    double bus_bytes_per_s;        /* of the transfer, else of the shortest member's duration */
    double quick_s;    /* of one rank: a quarter of its calls took no longer; else as above */
    double expected_s; /* on a cluster: knee_expect_collectives(); NaN: not asked */
};

/* A rank that came last. */
struct knee_straggler {
    size_t rank; /* row of ranks */
    size_t last_count;
    int64_t lateness_ns; /* after the median of the others, where that is more than clocks leave */
    int64_t held_ns;     /* of it what the rank does longer than the others by itself */
    enum knee_label cause; /* what it does longer most ... */
    int64_t excess_ns;     /* ... by how much, in all */
};

struct knee_account {
    struct knee_rank_account *ranks; /* by rank */
    size_t rank_count;
    struct knee_step_account *steps; /* by rank, then time */
    size_t step_count;
    struct knee_collective_account *collectives; /* most time first */
    size_t collective_count;
    struct knee_straggler *stragglers; /* those held for most first */
    size_t straggler_count;
    enum knee_step_source step_source;
    int64_t world_size;       /* -1: not known */
    size_t instances;         /* rendezvous with all their members: they ended together */
    size_t partial;           /* rendezvous with some of their members: waits are lower bounds */
    size_t loose;             /* matched, but not ended together: nothing waits for anything */
    size_t unmatched;         /* calls that found no partners, or not all */
    size_t further;           /* calls of kinds beyond the first 4096: in one common row */
    int64_t transfer_ns;      /* of all matched instances: last end - last start */
    int64_t largest_shift_ns; /* clocks of hosts; 0: none was needed */
    int64_t residual_ns;      /* median spread of matched ends that is left */
    int64_t strip_part_ns;    /* the common window of all ranks / KNEE_STRIP, rounded up */
    bool other_steps;         /* ranks recorded other steps: nothing of theirs can be matched */
    bool machine_assumed;     /* no --cluster: a node of the GPUs in the traces */
    char machine[64];         /* what expected_s is of; "": nothing is expected */
    const struct knee_alloc *alloc;
};

/* Puts the ranks of all traces on one account. The traces must outlive it. KNEE_INPUT when none of
 * them has GPU work. Free with knee_account_release(). */
knee_status knee_account(const struct knee_trace *traces, size_t count,
                         const struct knee_alloc *alloc, struct knee_account *out,
                         struct knee_err *err);
void knee_account_release(struct knee_account *account);

#endif
