/* SPDX-License-Identifier: MIT */
/*
 * knee.h - where does the next worker stop paying, why, and what should be changed.
 *
 * The one public header. What holds for every call:
 *  - Units are in the names: _s seconds, _bytes, _bytes_per_s, _w watts. Money is US dollars.
 *    A double that is NaN means "not known" or "there is none".
 *  - A call that can fail returns knee_status. On failure the outputs are untouched and *err says
 *    what, where and what to do. `err` may be NULL.
 *  - Structs are plain data. `*_init` makes one usable, `*_release` frees what it owns, takes a
 *    zeroed struct, and may be called twice.
 *  - The library never prints, exits, reads a clock or the environment, and keeps no globals that
 *    change: calls on different objects may run in different threads.
 *  - Strings returned or found in structs are borrowed: static, or owned by the struct they are in.
 */
#ifndef KNEE_H
#define KNEE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KNEE_VERSION "0.1.0"

/* ---- Status, errors, memory ------------------------------------------------------------- */

/* The values are also the exit codes of the program. */
typedef enum knee_status {
    KNEE_OK = 0,     /* fine */
    KNEE_GATE = 1,   /* a limit that the user set was not kept */
    KNEE_USAGE = 2,  /* an option or a value is wrong */
    KNEE_INPUT = 3,  /* a file cannot be used */
    KNEE_SYSTEM = 4, /* no memory, or the system refused */
} knee_status;

struct knee_err {
    knee_status status;
    char where[128]; /* option, or file:line; may be empty */
    char what[256];
    char hint[256]; /* what to do, or the nearest valid spelling; may be empty */
};

/* The door memory comes through. resize(ctx, NULL, n) allocates, resize(ctx, p, 0) frees and
 * returns NULL. Where a call takes `const struct knee_alloc *`, NULL means the C library's. */
struct knee_alloc {
    void *(*resize)(void *ctx, void *ptr, size_t size);
    void *ctx;
};

/* Text that grows. `failed` sticks once memory ran out or the cap was met; `data` is then
 * incomplete. Zeroed is empty and uses the C library's memory. Free with knee_text_release(). */
struct knee_text {
    char *data; /* NUL-terminated, or NULL while empty */
    size_t length, capacity;
    bool failed;
    const struct knee_alloc *alloc;
};
void knee_text_release(struct knee_text *text);

/* ---- Keys: one row per input; flags, YAML keys, help and completion come from it ---------- */

enum knee_unit {
    KNEE_UNIT_COUNT,       /* 7B, 350M, 2048 */
    KNEE_UNIT_FACTOR,      /* 4, 4x */
    KNEE_UNIT_FRACTION,    /* 0.7, 70% */
    KNEE_UNIT_SECONDS,     /* 180ms, 5us */
    KNEE_UNIT_BYTES,       /* 2, 2B, 4KiB */
    KNEE_UNIT_BYTES_PER_S, /* 25GB/s, 400Gbit/s */
    KNEE_UNIT_FLOPS,       /* 60TFLOP/s */
    KNEE_UNIT_PER_S,       /* 12000/s */
    KNEE_UNIT_WATTS,       /* 700W */
    KNEE_UNIT_DOLLARS,     /* $2.50, 2.5/h */
    KNEE_UNIT_JOULES,      /* 5kJ */
    KNEE_UNITS
};

enum knee_key_kind {
    KNEE_KEY_NUMBER,  /* double */
    KNEE_KEY_CHOICE,  /* int: row of `choices`, -1 when not given */
    KNEE_KEY_WORKERS, /* struct knee_workers */
    KNEE_KEY_SWITCH,  /* bool; takes no value on the command line */
    KNEE_KEY_WORD,    /* const char *, borrowed from the caller */
};

/* A named list, such as the GPU presets. */
struct knee_choices {
    const char *what; /* "GPU preset" */
    size_t (*count)(void);
    const char *(*name)(size_t row);
};

struct knee_key {
    const char *name; /* --name on the command line, name: in YAML */
    enum knee_key_kind kind;
    enum knee_unit unit;                /* numbers */
    double min, max;                    /* numbers: allowed range, both ends included */
    const struct knee_choices *choices; /* choices */
    size_t offset;                      /* of the field in the object */
    const char *group;                  /* heading in help and man page */
    const char *otherwise;              /* what holds when it is not given, in words */
    const char *help;
};

/* Where a value came from; shown to the user for every input. */
enum knee_source {
    KNEE_UNSET,
    KNEE_DEFAULT, /* assumed by knee */
    KNEE_PRESET,  /* from a preset that was named */
    KNEE_FILE,    /* from the job file */
    KNEE_FLAG,    /* from the command line, or set by the caller */
    KNEE_DERIVED, /* computed from others */
};

#define KNEE_KEYS_MAX 64

struct knee_keys {
    const struct knee_key *rows;
    size_t count;
    size_t source_offset; /* of `unsigned char source[KNEE_KEYS_MAX]` in the object */
};

/* Sets one input from text. `source` is remembered beside the value. An unknown name or a bad
 * value gives KNEE_USAGE with the nearest valid spelling; a word is kept by reference. */
knee_status knee_keys_set(const struct knee_keys *keys, void *object, const char *name,
                          const char *text, enum knee_source source, struct knee_err *err);

/* ---- Cluster: presets and collective costs ------------------------------------------------ */

struct knee_gpu {
    const char *name, *full_name;
    double bf16_flops, fp8_flops; /* dense peak; NaN where it has none */
    double memory_bytes, memory_bytes_per_s;
    const char *node_link;        /* link preset inside the node */
    double gpus_per_node;         /* GPUs that share it */
    double power_w;               /* board power */
    double price_low, price_high; /* indicative, $ per GPU-hour; NaN where not known */
    const char *cluster;          /* cluster preset taken when nothing else is said */
    const char *origin;           /* where the figures come from */
};

struct knee_link {
    const char *name, *full_name;
    double bytes_per_s; /* raw, one direction, one port or one GPU */
    double achieved;    /* share of it that a large collective reaches */
    double latency_s;   /* one hop, as a collective sees it */
    const char *origin;
};

struct knee_cluster {
    const char *name, *gpu;
    double gpus_per_node;
    const char *node_link, *net_link;
    double nics_per_node;
    const char *origin;
};

struct knee_model {
    const char *name;
    double params, flops_per_param; /* per token or image, forward and backward */
    double layers, hidden, ffn, heads, kv_heads, vocab, seq, experts,
        topk;            /* NaN: no transformer */
    double global_batch; /* examples per step, a usual choice */
    const char *origin;
};

extern const struct knee_choices knee_gpu_names, knee_link_names, knee_cluster_names,
    knee_model_names, knee_algorithm_names;
const struct knee_gpu *knee_gpu_at(size_t row);         /* NULL past the end */
const struct knee_link *knee_link_at(size_t row);       /* NULL past the end */
const struct knee_cluster *knee_cluster_at(size_t row); /* NULL past the end */
const struct knee_model *knee_model_at(size_t row);     /* NULL past the end */

/* One level of wire: a message of n bytes takes latency_s + n / bytes_per_s. */
struct knee_wire {
    double latency_s, bytes_per_s;
};

/* Two levels. `out` is one worker's share of its node's NICs. node_size 1: one flat level. */
struct knee_fabric {
    double node_size;
    struct knee_wire in, out;
};

/* ---- Topology: the levels of links a cluster is made of ----------------------------------- */

/* A transport: what a hop over it costs beside the wire. */
struct knee_transport {
    const char *name; /* "ib"; the link presets whose names begin with it use it */
    const char *full_name;
    double wire_s;     /* one hop of a small message, port to port */
    double host_s;     /* what proxy thread, doorbell, flush or kernel stack add to it */
    double launch_s;   /* GPU links: a collective that moves nothing; NaN for networks */
    double nvls_share; /* of the link's rate that in-switch reduction reaches; 0: it has none */
    const char *origin;
};
const struct knee_transport *knee_transport_at(size_t row);       /* NULL past the end */
const struct knee_transport *knee_transport_of(const char *link); /* NULL: none fits */

/* A protocol of NCCL as a regime in size: quick and narrow, or slow to start and wide. */
enum knee_protocol_name { KNEE_LL, KNEE_LL128, KNEE_SIMPLE, KNEE_PROTOCOLS };
struct knee_protocol {
    double launch_s;              /* beside the topology's launch_s */
    double node_hop, net_hop;     /* times the latency of a level: the lowest, the others */
    double node_share, net_share; /* of a level's rate */
};
const char *knee_protocol_name(enum knee_protocol_name protocol); /* "LL" */

#define KNEE_LEVELS_MAX 4

/* What joins units of the level below: GPUs, then nodes, then leaves. */
struct knee_level {
    char name[24];           /* link preset, or a name of one's own */
    double count;            /* units that one group of this level joins; 0: any number */
    double latency_s;        /* one hop of a small message, host included */
    double bytes_per_s;      /* of one port, one direction, as a large collective reaches it */
    double ports;            /* of one unit into this level: 1 for a GPU, the NICs of a node */
    double oversubscription; /* >= 1: what comes from below over what goes up */
    bool shared;             /* a rank may use all ports of its unit; else its part of them */
};

/* A time against size that was fitted to one log; between knots it is linear. */
#define KNEE_KNOTS_MAX 12
struct knee_curve {
    int op; /* enum knee_op */
    double ranks, nodes;
    size_t knots;
    double bytes[KNEE_KNOTS_MAX], time_s[KNEE_KNOTS_MAX]; /* both ascending */
    double rows, refused;                                 /* of the log it was fitted to */
    double median_error, p90_error;                       /* of sizes left out */
    char source[96];                                      /* the log */
};

/* A fitted number with its 90 % interval. */
struct knee_parameter {
    char name[32];
    double value, low, high;
    enum knee_unit unit;
    bool fitted; /* false: the logs say nothing about it, the preset holds */
};

#define KNEE_CURVES_MAX     64
#define KNEE_PARAMETERS_MAX 16

/* Plain data, no pointers: copy it as you like. About 30 KB. */
struct knee_topology {
    char name[96], gpu[24];
    size_t level_count; /* >= 1 */
    struct knee_level levels[KNEE_LEVELS_MAX];
    double launch_s;   /* a collective that moves nothing */
    double peer_s;     /* every further peer of a point-to-point group */
    double floor_s;    /* the host issues them no faster; 0: not known to */
    double nvls_share; /* as in struct knee_transport */
    bool sharp;        /* the switches reduce */
    bool plain;        /* hosts that send messages: no GPU, no NCCL, any algorithm may run */
    struct knee_protocol protocols[KNEE_PROTOCOLS];
    size_t curve_count;
    struct knee_curve curves[KNEE_CURVES_MAX];
    size_t parameter_count;
    struct knee_parameter parameters[KNEE_PARAMETERS_MAX];
};

/* One level, nothing known: every number has its default. */
void knee_topology_init(struct knee_topology *topology);

/* Hosts that send messages to each other: a message of S bytes takes latency + S / rate, nothing
 * else. The numbers are a guess that a fit replaces: 50 us and 1 GB/s between hosts, 1 us and 10
 * GB/s inside one. */
void knee_topology_plain(struct knee_topology *out);

/* A preset as levels: the node's link, then the network. */
void knee_topology_preset(const struct knee_cluster *preset, struct knee_topology *out);

/* "8xH100:nvlink4 * 16 @ ib400x8": GPUs and their link, then any number of levels, each
 * "* COUNT @ LINK[xPORTS][/OVERSUBSCRIPTION][{key=value,...}]" with the keys latency, bandwidth and
 * sharing (shared or striped). A GPU may stand without link, a level without @: presets fill in. */
knee_status knee_topology_parse(const char *text, struct knee_topology *out, struct knee_err *err);

/* What such text says about itself: a GPU, an instance type, a network, rates, counts, as people
 * write them ("2x p4de.24xlarge (16x A100-80GB), EFA 4x100 Gb/s"). False: no GPU is named. */
bool knee_topology_recognise(const char *text, struct knee_topology *out);

/* The same as the one-line string, exact enough to read back. */
void knee_topology_line(const struct knee_topology *topology, struct knee_text *text);

/* The two levels that knee predict knows. */
struct knee_fabric knee_topology_fabric(const struct knee_topology *topology);

/* ---- Collectives: what they cost there ---------------------------------------------------- */

/* `bytes` of a collective are those of nccl-tests: the whole buffer (what all ranks contribute to
 * an all-gather, what one rank gives to an all-reduce, reduce-scatter or all-to-all). */
enum knee_op {
    KNEE_OP_UNKNOWN,
    KNEE_OP_BARRIER,
    KNEE_OP_ALL_REDUCE, /* this one and those after it have a cost */
    KNEE_OP_ALL_GATHER,
    KNEE_OP_REDUCE_SCATTER,
    KNEE_OP_ALL_TO_ALL,
    KNEE_OP_ALL_TO_ALLV,
    KNEE_OP_BROADCAST,
    KNEE_OP_REDUCE,
    KNEE_OP_GATHER,
    KNEE_OP_SCATTER,
    KNEE_OP_SEND_RECV,
    KNEE_OPS
};
const char *knee_op_name(enum knee_op op); /* "all_reduce" */
extern const struct knee_choices knee_op_names;
double knee_op_bus_factor(enum knee_op op, double ranks); /* bus over algorithm bandwidth */

/* The op a word stands for, in any usual spelling: all_reduce, AllReduce, all_reduce_perf,
 * osu_allreduce, ncclAllReduce. */
enum knee_op knee_op_of(const char *word, size_t length);

/* Where the ranks of one communicator are. */
struct knee_placement {
    double ranks;
    double per_node; /* ranks in one unit of the lowest level; NaN: as many as it holds */
    double sharers;  /* communicators that use the same links at the same time; 1 */
    double skew;     /* all-to-allv: largest share over mean share; 1 */
};

/* Ranks on a topology, with what they reach at each level. */
struct knee_layout {
    double ranks, skew;
    size_t levels;                       /* in use */
    double units[KNEE_LEVELS_MAX + 1];   /* units[0] = ranks, units[1] = nodes, ..., last is 1 */
    double latency_s[KNEE_LEVELS_MAX];   /* of a hop that turns round at this level */
    double bytes_per_s[KNEE_LEVELS_MAX]; /* of one unit into this level */
};

/* KNEE_USAGE when the ranks do not fit. */
knee_status knee_layout_init(const struct knee_topology *topology,
                             const struct knee_placement *placement, struct knee_layout *out,
                             struct knee_err *err);

/* What an algorithm does for one collective on one layout. */
struct knee_counts {
    double hops[KNEE_LEVELS_MAX];  /* on the longest path, by the level they turn round at */
    double bytes[KNEE_LEVELS_MAX]; /* through the busiest port of a unit, one direction */
    double peers;                  /* messages that one rank posts at once, beyond the first */
    bool in_turn;                  /* one level after the other, not all at once */
};

enum knee_needs { KNEE_NEEDS_NOTHING, KNEE_NEEDS_NVLS, KNEE_NEEDS_SHARP };

/* An algorithm. Rows live one per file in src/cluster. */
struct knee_algorithm {
    const char *name, *formula, *origin;
    /* Seconds to all-reduce `bytes` over `workers` > 1, which need not be whole; NULL where the
     * algorithm is not one of those that knee predict offers. */
    double (*time_s)(const struct knee_fabric *fabric, double workers, double bytes);
    /* `bytes` counts what one worker contributes, and contributions are kept apart. */
    bool gathers;
    /* False: it does not do this collective there. NULL: none. */
    bool (*count)(const struct knee_layout *layout, enum knee_op op, double bytes,
                  struct knee_counts *out);
    double reach;     /* share of a level's rate that it gets; 0 stands for 1 */
    const char *nccl; /* its name in NCCL; NULL: NCCL does not have it */
    bool simple_only; /* it runs with the Simple protocol only */
    enum knee_needs needs;
};
const struct knee_algorithm *knee_algorithm_at(size_t row); /* for predict; NULL past the end */
const struct knee_algorithm *knee_scheme_at(size_t row); /* those that count; NULL past the end */

/* Seconds, from counts. */
double knee_counts_time_s(const struct knee_topology *topology, const struct knee_layout *layout,
                          const struct knee_counts *counts, const struct knee_algorithm *algorithm,
                          enum knee_protocol_name protocol);

/* The quickest of NCCL's algorithms and protocols: what a run should take at best. NaN when NCCL
 * has none for it. `algorithm` and `protocol` may be NULL. */
double knee_model_time_s(const struct knee_topology *topology, const struct knee_layout *layout,
                         enum knee_op op, double bytes, const struct knee_algorithm **algorithm,
                         enum knee_protocol_name *protocol);

/* The same, but from the curve of the topology that was fitted to this op, rank count and node
 * count, where there is one. Beyond the ends of the curve it goes on as the model does. */
double knee_expected_time_s(const struct knee_topology *topology, const struct knee_layout *layout,
                            enum knee_op op, double bytes);

/* What NCCL's published tables would make it choose, and the time they give: a way to choose, not
 * a forecast. */
struct knee_nccl_choice {
    const char *algorithm, *protocol; /* "RING", "LL128"; NULL: not a GPU that NCCL knows */
    double time_s;                    /* NaN: a group of sends and receives ("P2P") has no table */
};
struct knee_nccl_choice knee_nccl_choose(const struct knee_topology *topology,
                                         const struct knee_layout *layout, enum knee_op op,
                                         double bytes);

#define KNEE_SIZES_MAX 1024

/* Message sizes as nccl-tests writes them: 4K, 8,16,32, 4K..8G (doubling), 4K..8Gx4, 1M..8M+1M. K,
 * M, G are powers of 1024, KB, MB, GB of 1000. Ascending and without repeats into
 * out[KNEE_SIZES_MAX]. */
knee_status knee_sizes_parse(const char *text, const char *where, double *out, size_t *count,
                             struct knee_err *err);

/* What is asked about a collective. */
struct knee_collective_query {
    enum knee_op op;
    struct knee_placement placement;
    const double *bytes; /* ascending */
    size_t size_count;
};

/* One algorithm at one size, with its best protocol. */
struct knee_collective_row {
    double bytes;
    const struct knee_algorithm *algorithm;
    enum knee_protocol_name protocol;
    double time_s, algbw_bytes_per_s, busbw_bytes_per_s; /* as nccl-tests counts them */
    bool winner;                                         /* the quickest at this size */
};

/* One size. */
struct knee_collective_size {
    double bytes;
    size_t first, last;   /* its rows: rows[first] up to, not with, rows[last] */
    size_t winner;        /* row */
    double latency_share; /* of the winner's time that does not grow with the size */
    double expected_s;    /* what NCCL should take here at best: knee_expected_time_s() */
    struct knee_nccl_choice nccl;
    double measured_s; /* NaN: not measured */
    double slowdown;   /* measured over expected */
    size_t finding;    /* row of findings[]; SIZE_MAX: nothing is wrong, or nobody knows what */
};

/* From this size on, another winner. */
struct knee_crossover {
    double bytes;
    const struct knee_algorithm *from, *to;
    enum knee_protocol_name from_protocol, to_protocol;
};

/* Why a measured run is slower than it should be, as far as its log shows. */
struct knee_finding {
    const char *name, *cure;
    char evidence[160];
    double from_bytes, to_bytes; /* sizes it explains */
    double slowdown;             /* median over them */
};

#define KNEE_CROSSOVERS_MAX 64
#define KNEE_FINDINGS_MAX   8

struct knee_collective {
    struct knee_collective_query query;
    double *bytes; /* what query.bytes points to; owned */
    struct knee_topology topology;
    struct knee_layout layout;
    struct knee_collective_row *rows; /* by size, then by algorithm; owned */
    size_t row_count;
    struct knee_collective_size *sizes; /* owned */
    size_t crossover_count;
    struct knee_crossover crossovers[KNEE_CROSSOVERS_MAX];
    double peak_bytes_per_s;     /* bus bandwidth of the winner, no size too large */
    double half_bandwidth_bytes; /* where half of it is reached */
    bool curve;                  /* expected times come from a fitted curve */
    size_t slow_count;           /* sizes slower than they should be; with a measured run */
    size_t finding_count;
    struct knee_finding findings[KNEE_FINDINGS_MAX];
    const struct knee_alloc *alloc;
};

/* Every algorithm at every size. Free with knee_collective_release(). */
knee_status knee_collective_run(const struct knee_topology *topology,
                                const struct knee_collective_query *query,
                                const struct knee_alloc *alloc, struct knee_collective *out,
                                struct knee_err *err);
void knee_collective_release(struct knee_collective *collective);

/* ---- Logs: measured collectives ----------------------------------------------------------- */

struct knee_sample {
    double bytes;
    double time_s; /* the faster of the two below, or the quickest run: disturbances only add */
    double out_of_place_s, in_place_s; /* NaN: the log has no such column */
    size_t line;
};

/* A line that looks like a measurement and was not used. */
struct knee_refusal {
    size_t line;
    const char *reason; /* static */
    char text[64];      /* its beginning */
};

/* How a number of a log came to be known. */
enum knee_known {
    KNEE_NOT_KNOWN,
    KNEE_ASSUMED,  /* the usual for such GPUs */
    KNEE_INFERRED, /* from bus over algorithm bandwidth, device numbers */
    KNEE_SAID,     /* by the log */
    KNEE_TOLD,     /* by the caller */
};

/* What a log lets slip about the run; each is a bit of knee_log.seen. */
enum knee_evidence {
    KNEE_SEEN_GDR = 1 << 0,         /* GPU Direct RDMA is on */
    KNEE_SEEN_NO_GDR = 1 << 1,      /* it is off */
    KNEE_SEEN_SOCKET = 1 << 2,      /* data goes over TCP sockets */
    KNEE_SEEN_RDMA = 1 << 3,        /* data goes over verbs or libfabric */
    KNEE_SEEN_SHM = 1 << 4,         /* GPUs of a node talk through host memory */
    KNEE_SEEN_NO_P2P = 1 << 5,      /* peer access is off */
    KNEE_SEEN_FORCED_ALGO = 1 << 6, /* NCCL_ALGO or NCCL_PROTO is set */
    KNEE_SEEN_SAME_GPU = 1 << 7,    /* several ranks on one GPU */
    KNEE_SEEN_NCCL = 1 << 8,        /* there are NCCL INFO lines at all */
};

/* NCCL's choice for one size, as the log prints it. */
struct knee_tuning {
    double bytes;
    char algorithm[16], protocol[8];
};

#define KNEE_REFUSALS_KEPT 64
#define KNEE_LOG_NOTES     8
#define KNEE_TUNINGS_KEPT  64

struct knee_log {
    char file[96];
    size_t table; /* which table of the file, from 1 */
    enum knee_op op;
    double ranks, nodes; /* NaN: not known */
    enum knee_known op_known, ranks_known, nodes_known;
    char dtype[16], gpu[48], library[48]; /* gpu: "CPU" where buffers were the host's */
    char algorithm[24];                   /* of knee bench's own; "": the library chose */
    double hops, share;      /* it takes hops alpha + share S / B; 0: the library chose */
    double gpus_per_process; /* NaN: not said */
    double adapters;         /* network adapters in use, as NCCL lists them; NaN: not said */
    unsigned seen;
    struct knee_sample *samples; /* ascending in bytes; owned */
    size_t sample_count;
    size_t refused; /* rows; the first are kept below */
    size_t refusal_count;
    struct knee_refusal refusals[KNEE_REFUSALS_KEPT];
    size_t lines, facts, others; /* of the file up to its end: all, understood, neither */
    size_t tuning_count;
    struct knee_tuning tunings[KNEE_TUNINGS_KEPT];
    size_t note_count; /* contradictions and assumptions, as sentences */
    char notes[KNEE_LOG_NOTES][160];
};

/* Free with knee_logs_release(). */
struct knee_logs {
    struct knee_log *logs;
    size_t count;
    const struct knee_alloc *alloc;
};
void knee_logs_release(struct knee_logs *logs);

/* What the caller knows better. NaN and KNEE_OP_UNKNOWN: nothing. */
struct knee_log_hints {
    double ranks, nodes;
    enum knee_op op;
    const char *about; /* what people say about it, for knee_topology_recognise(); may be NULL */
};

/* Adds the tables of one file: nccl-tests and rccl-tests (text of every era, JSON), OSU, knee
 * bench, CSV. KNEE_INPUT when it holds no usable row; the reason and the counts are in *err. */
knee_status knee_logs_read(struct knee_logs *logs, const char *text, size_t length,
                           const char *name, const struct knee_log_hints *hints,
                           struct knee_err *err);

/* ---- Fit: a cluster from its logs --------------------------------------------------------- */

/* Where a log's ranks are on a topology. The topology is widened where the log has more GPUs in a
 * node than it knows of. */
knee_status knee_log_layout(const struct knee_log *log, struct knee_topology *topology,
                            struct knee_layout *out, struct knee_err *err);

/* The question that a log answers: its collective, its sizes (room for KNEE_SIZES_MAX in `bytes`),
 * its ranks on a topology. */
void knee_log_question(const struct knee_log *log, const struct knee_topology *topology,
                       double *bytes, struct knee_collective_query *out);

/* Its buffers were the host's: gpu is "CPU". */
bool knee_log_plain(const struct knee_log *log);

/* What the log, its name and `about` (may be NULL) say the cluster is; an NVLink node and
 * InfiniBand when they say nothing, plain hosts when the buffers were the host's. True if something
 * was recognised. */
bool knee_log_topology(const struct knee_log *log, const char *about, struct knee_topology *out);

/* Fits one topology to logs that are all of one cluster, starting from `prior`: latencies, rates
 * and protocols with their uncertainty, and a curve for each log. */
knee_status knee_fit(const struct knee_log *logs, size_t count, const struct knee_topology *prior,
                     const struct knee_alloc *alloc, struct knee_topology *out,
                     struct knee_err *err);

/* Plain hosts have no preset to hold a log against: puts the link that its own rows show in the
 * place of the guess, without a curve, so that the quickest algorithm on that link is expected.
 * Other topologies stay. */
knee_status knee_log_wire(const struct knee_log *log, const struct knee_alloc *alloc,
                          struct knee_topology *topology, struct knee_err *err);

/* Errors |predicted / measured - 1| of some rows. */
struct knee_errors {
    size_t rows;
    double median, p90; /* NaN without rows */
};

/* How well one log is predicted ... */
struct knee_log_check {
    const struct knee_log *log;
    struct knee_topology topology; /* what it was recognised as, before any fit */
    bool recognised;
    const char *origin;
    struct knee_errors left_out;     /* ... at every second size, fitted at the others */
    struct knee_errors out_of_place; /* the same against the out-of-place column alone */
    struct knee_errors fitted;       /* ... at the sizes it was fitted to, by the pieces */
    struct knee_errors preset;       /* ... by the preset, without any fit */
    size_t cluster;                  /* row of clusters[]; SIZE_MAX: it was not fitted */
    double *fitted_s;                /* what that fit gives for each sample; owned; may be NULL */
};

/* ... and one log from another of the same cluster. */
struct knee_transfer {
    size_t from, to; /* rows of checks[] */
    struct knee_errors errors;
};

/* What the logs of one cluster say together: parameters, and a curve for each log. */
struct knee_cluster_fit {
    struct knee_topology topology;
    size_t logs;
};

#define KNEE_TRANSFERS_MAX 4096

struct knee_check {
    size_t count;
    struct knee_log_check *checks;                               /* one per log; owned */
    struct knee_errors left_out, out_of_place, preset, transfer; /* all rows pooled */
    size_t preset_logs;                                          /* two-node logs recognised */
    size_t transfer_count;
    struct knee_transfer *transfers; /* owned */
    size_t transfers_left;           /* pairs beyond KNEE_TRANSFERS_MAX, not tried */
    size_t cluster_count;
    struct knee_cluster_fit *clusters; /* owned */
    const struct knee_alloc *alloc;
};

/* What people say about a log; each may be NULL. */
struct knee_log_about {
    const char *hardware; /* for knee_topology_recognise() */
    const char *origin; /* where it comes from: logs of different origins are different clusters */
};

/* `about` may be NULL, or has a row for each log. Logs must outlive the check. Two logs are of one
 * cluster when their origins do not differ, they were recognised as the same, and both or neither
 * have more than one node; with `prior`, what they all start from, all of them are. */
knee_status knee_check_logs(const struct knee_log *logs, const struct knee_log_about *about,
                            size_t count, const struct knee_topology *prior,
                            const struct knee_alloc *alloc, struct knee_check *out,
                            struct knee_err *err);
void knee_check_release(struct knee_check *check);

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
double knee_step_ratio(const struct knee_step *step);      /* R = X / compute */
double knee_step_gamma(const struct knee_step *step);      /* |M| / |C|: all communication */
double knee_step_efficiency(const struct knee_step *step); /* 1 / (1 + R) */

/* ---- Job: what is trained, on what, how --------------------------------------------------- */

#define KNEE_WORKER_RANGES 32
#define KNEE_WORKERS_MAX   16777216.0 /* largest worker count */
#define KNEE_ROWS_MAX      10000      /* most worker counts in one table */

/* Worker counts as written: from..to by a factor (x2) or by a step (+8). */
struct knee_workers {
    size_t ranges;
    struct {
        double from, to, factor, step;
    } range[KNEE_WORKER_RANGES];
};

enum knee_scaling { KNEE_STRONG, KNEE_WEAK }; /* global batch fixed, or local batch fixed */

/* Every field is described by its row in knee_job_keys; NaN or -1 is "not given". */
struct knee_job {
    int model, gpu, link, cluster, algorithm;
    double params, flops_per_param, seq, bytes_per_param;
    double global_batch, local_batch, accumulate, local_steps;
    double flops_per_s, mfu, memory_bytes_per_s;
    double compute_time_s, comm_time_s, measured_workers;
    double bandwidth_bytes_per_s, latency_s;
    double gpus_per_node, node_bandwidth_bytes_per_s, node_latency_s;
    double overlap, hidden, loader_overlap, compress, encode_time_s;
    double loader_rate_per_s, jitter;
    double price_per_hour, power_w, idle_power_w, steps;
    double critical_batch, min_steps, tolerance, at;
    struct knee_workers workers;
    /* Filled by knee_job_complete(). */
    enum knee_scaling scaling;
    double batch_scale;          /* times the batch above, whether that is known or not; 1 */
    double comm_scale;           /* measured over modelled communication; 1 when it is modelled */
    double stall_s[KNEE_LABELS]; /* measured per step, beside what is modelled; 0 */
    unsigned barred; /* kinds of lever that make no sense for it (enum knee_lever_kind); 0 */
    double shard;    /* workers that share one replica over another axis; 1 */
    double axis_tax; /* what that axis costs, as a share of compute; 0 */
    unsigned char source[KNEE_KEYS_MAX];
};
extern const struct knee_keys knee_job_keys;

/* Nothing given. Never fails. */
void knee_job_init(struct knee_job *job);

/* Fills what is not given from presets and defaults, marks where each value came from, and
 * refuses contradictions and gaps (KNEE_USAGE). Completing twice changes nothing. */
knee_status knee_job_complete(struct knee_job *job, struct knee_err *err);

/* How many worker counts the job lists; and the counts, ascending and without repeats, into
 * `out[KNEE_ROWS_MAX]`. Both return 0 for a list that is too long. */
size_t knee_workers_list(const struct knee_workers *workers, double *out);

/* ---- Timeline: what a rank's GPU did, from a trace, a simulation or a live job ------------- */

#define KNEE_NO_TIME INT64_MIN

enum knee_span_kind {
    KNEE_SPAN_COMPUTE,
    KNEE_SPAN_COMM,
    KNEE_SPAN_FUSED, /* compute and communication in one kernel: counts as both */
    KNEE_SPAN_COPY,  /* memcpy, memset */
};

/* One piece of GPU work. Times are the trace's own clock. */
struct knee_span {
    int64_t start_ns, end_ns;
    int64_t launch_ns; /* when the host had handed it over; KNEE_NO_TIME: not known */
    uint32_t name;     /* row of knee_trace.names */
    uint32_t call;     /* row of knee_rank.calls + 1; 0: not a collective */
    int32_t stream;
    int32_t step; /* row of knee_trace.steps of its launch; -1: outside of all steps */
    enum knee_span_kind kind;
};

/* One collective call on one rank. */
struct knee_call {
    uint32_t span;
    enum knee_op op;
    const char *algorithm, *protocol,
        *dtype;                           /* "RING", "LL", "f32"; "" when the name does not say */
    int64_t bytes;                        /* as nccl-tests counts; -1: not known */
    int32_t group_size;                   /* -1: not known */
    uint32_t group, description, members; /* rows of names + 1; 0: not known */
    int64_t sequence;                     /* -1: not known */
};

/* A stretch of host time that means something: a training step, or waiting for a batch. */
struct knee_mark {
    int64_t start_ns, end_ns, number;
};

/* One GPU of one process. When its spans stayed in another process, only those of its calls are
 * here; the window and the counts are those of all its work. */
struct knee_rank {
    int64_t rank, device;
    int64_t start_ns, end_ns; /* first start and last end of its work */
    size_t work, launched;    /* pieces of GPU work; of them with a known launch */
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
    KNEE_REPAIR_STRING,    /* a quote that was not escaped */
    KNEE_REPAIR_COMMA,     /* a comma that was missing */
    KNEE_REPAIR_DURATION,  /* a negative duration, taken as 0 */
    KNEE_REPAIR_DUPLICATE, /* an event that stands there twice, taken once */
    KNEE_REPAIR_DOCUMENT,  /* a second document in the file, read on */
    KNEE_LOSSES
};
/* In words; and whether something is missing, rather than mended. */
const char *knee_loss_name(enum knee_loss_kind kind);
bool knee_loss_is_lost(enum knee_loss_kind kind);

struct knee_loss {
    uint64_t count, first_byte; /* where the first one was, in uncompressed bytes */
};

/* One file. Owns everything in it; free with knee_trace_release(). */
struct knee_trace {
    char *file;
    const char *format; /* "kineto", "xprof", "nsys", "cpu" */
    struct knee_rank *ranks;
    size_t rank_count;
    struct knee_mark *steps; /* by start */
    size_t step_count;
    struct knee_mark *loads; /* waiting for a batch, by start */
    size_t load_count;
    char **names;
    size_t name_count;
    int64_t rank, world_size; /* as the file says; -1: it does not */
    int64_t base_ns;          /* added to its times gives the absolute time */
    char gpu_name[64], host[64], backend[32];
    uint64_t bytes, events; /* uncompressed bytes and events seen */
    struct knee_loss losses[KNEE_LOSSES];
    uint64_t cpu_comm; /* host-side communication: with no GPU work, read again with options.cpu */
    bool whole_graphs; /* CUDA graphs recorded as one piece each: kernels inside are not seen */
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
    bool cpu;                   /* there is no GPU: host operations are the work */
    const volatile int *cancel; /* stops reading when it becomes nonzero; may be NULL */
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

/* Reads an Nsight Systems sqlite export from a file, or from `image_size` bytes of one in memory
 * (then `path` is only a name, and `image` is not changed). Contract as knee_trace_read(). */
knee_status knee_nsys_read(const char *path, void *image, size_t image_size,
                           const struct knee_trace_options *options, const struct knee_alloc *alloc,
                           struct knee_trace *out, struct knee_err *err);

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
double knee_ledger_overlap(const struct knee_ledger *ledger);     /* NaN without communication */

/* From here on, until the next one's start. */
struct knee_run {
    int64_t start_ns;
    enum knee_label label;
};

#define KNEE_STRIP 72 /* parts of the common window for a picture of who waits when */

struct knee_rank_account {
    const struct knee_trace *trace;
    const struct knee_rank *source;
    int64_t rank;
    int64_t start_ns, end_ns; /* the window: first to last GPU event, own clock */
    int64_t shift_ns;         /* added to own times gives the common clock */
    bool split;               /* wait and transfer are told apart */
    struct knee_ledger ledger;
    struct knee_run *runs; /* NULL where the spans are in another process */
    size_t run_count;
    int64_t waits_ns[KNEE_STRIP]; /* waiting in each part of the common window */
    int64_t load_ns;              /* host time spent waiting for batches, inside steps */
    int64_t stepped_ns;           /* host time inside steps */
    size_t kernels;               /* compute kernels, and their median duration */
    int64_t median_kernel_ns;
};

struct knee_step_account {
    size_t rank;    /* row of ranks */
    int64_t number; /* as the profiler counts; -1: work outside of all steps */
    int64_t start_ns;
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
    double expected_s;             /* on a cluster: knee_expect_collectives(); NaN: not asked */
};

struct knee_straggler {
    size_t rank; /* row of ranks */
    size_t last_count;
    int64_t lateness_ns;   /* after the median of the others, where it was the last */
    enum knee_label cause; /* what it did longer than the others before it came */
    int64_t excess_ns;     /* by how much, in all */
};

enum knee_step_source { KNEE_STEPS_PROFILER, KNEE_STEPS_SEQUENCE, KNEE_STEPS_NONE };

struct knee_account {
    struct knee_rank_account *ranks; /* by rank */
    size_t rank_count;
    struct knee_step_account *steps; /* by rank, then time */
    size_t step_count;
    struct knee_collective_account *collectives; /* most time first */
    size_t collective_count;
    struct knee_straggler *stragglers; /* most lateness first */
    size_t straggler_count;
    enum knee_step_source step_source;
    int64_t world_size;       /* -1: not known */
    size_t instances;         /* collectives matched over all their members */
    size_t unmatched;         /* calls that found no partners, or not all */
    int64_t transfer_ns;      /* of all matched instances: last end - last start */
    int64_t largest_shift_ns; /* clocks of hosts; 0: none was needed */
    int64_t residual_ns;      /* median spread of matched ends that is left */
    int64_t strip_part_ns;    /* the common window of all ranks / KNEE_STRIP, rounded up */
    const struct knee_alloc *alloc;
};

/* Puts the ranks of all traces on one account. The traces must outlive it. KNEE_INPUT when none of
 * them has GPU work. Free with knee_account_release(). */
knee_status knee_account(const struct knee_trace *traces, size_t count,
                         const struct knee_alloc *alloc, struct knee_account *out,
                         struct knee_err *err);
void knee_account_release(struct knee_account *account);

/* ---- Predict: closed forms ---------------------------------------------------------------- */

enum knee_binding { KNEE_BINDS_COMPUTE, KNEE_BINDS_COMM, KNEE_BINDS_LOAD, KNEE_BINDS_STRAGGLER };

/* One worker count. */
struct knee_row {
    double workers, local_batch, global_batch; /* batches in examples; NaN when not known */
    struct knee_step step;
    double load_s, exposed_load_s; /* loading in all; the part not hidden */
    double throughput_per_s;       /* examples (or steps, when the batch is not known) */
    double speedup, efficiency;    /* against one worker: T(K)/T(1), E(K) = T(K)/(K T(1)) */
    double ratio, gamma;
    double cost, stall_cost;     /* dollars per step, and of it without useful work */
    double joules, stall_joules; /* per step */
    double steps_to_quality, time_to_quality_s;
    enum knee_binding binding;
};
const char *knee_binding_name(enum knee_binding binding);

/* A completed job boiled down to what the closed forms need. Plain data, about 200 bytes. */
struct knee_terms {
    enum knee_scaling scaling;
    const struct knee_algorithm *algorithm;
    struct knee_fabric fabric;
    double compute_s;  /* of the global batch on one worker, or of the local batch */
    double batch;      /* examples: global, or local x accumulate; NaN when not known */
    double work;       /* the same, or relative to the batch that was measured */
    double bytes;      /* on the wire, after compression */
    double comm_scale; /* measured over modelled communication; 1 when modelled */
    double shard, axis_tax, encode_s, accumulate, local_steps;
    double overlap, hidden, loader_overlap, loader_rate_per_s, jitter;
    double price_per_s, power_w, idle_power_w, critical_batch, min_steps;
    double stall_s[KNEE_LABELS];
    double one_worker_step_s;
};

/* `job` must be completed. */
void knee_terms_init(const struct knee_job *job, struct knee_terms *terms);

/* The closed form for one worker count >= 1, whole or not. Well over a million a second. */
void knee_evaluate(const struct knee_terms *terms, double workers, struct knee_row *row);

/* Expected maximum of n standard normal values (n >= 1, whole or not). */
double knee_expected_maximum(double n);

/* The smallest (or, where more is worse, the largest) value of one input that reaches a target
 * at one worker count. */
struct knee_solution {
    const char *variable, *target;
    enum knee_unit unit, target_unit; /* of the variable; of the target */
    double wanted;                    /* target value */
    double workers;                   /* where; NaN when workers are what is solved for */
    double value;                     /* NaN: no value does */
    bool at_most;                     /* the value is an upper limit */
    bool any;                         /* every allowed value does */
    double now_value, now_target;     /* before */
    double best_target;               /* what the best allowed value gives */
    double best_value;
};

/* `variable` and `wanted` as on the command line: "bandwidth", "efficiency=0.9". `job` must be
 * completed. KNEE_USAGE for names that cannot be solved for. "No value" is an answer, not a
 * failure. */
knee_status knee_solve(const struct knee_job *job, const char *variable, const char *wanted,
                       struct knee_solution *out, struct knee_err *err);

/* ---- Judge: knee, levers, walls, cost, verdict -------------------------------------------- */

/* The knee in its senses. NaN: there is none up to KNEE_SEARCH_MAX workers. */
#define KNEE_SEARCH_MAX 1048576.0
struct knee_knee {
    double gamma_one_workers;       /* communication = compute, solved, not whole */
    double ratio_one_workers;       /* exposed communication = compute, solved */
    double tolerance_workers;       /* last whole K with E(K) >= tolerance */
    double peak_throughput_workers; /* whole K of the highest throughput */
    double tolerance_efficiency;    /* E(K) at tolerance_workers ... */
    double next_efficiency;         /* ... and at the count after it */
};

struct knee_regime {
    double max_ratio; /* this row holds up to here */
    const char *name, *rule;
};
const struct knee_regime *knee_regime_of(double ratio);

enum knee_suspect {
    KNEE_SUSPECT_NONE,
    KNEE_SUSPECT_COMM,
    KNEE_SUSPECT_INPUT,
    KNEE_SUSPECT_STRAGGLER,
    KNEE_SUSPECT_TINY_BATCH,
    KNEE_SUSPECT_LARGE_BATCH,
    KNEE_SUSPECTS
};
const char *knee_suspect_name(enum knee_suspect suspect);

enum knee_wall { KNEE_WALL_NONE, KNEE_WALL_SYSTEMS, KNEE_WALL_STATISTICAL };
const char *knee_wall_name(enum knee_wall wall);

/* What one change would buy at the verdict's worker count. */
struct knee_lever {
    const char *name;     /* "overlap" */
    const char *change;   /* "eta 1" */
    const char *risk;     /* what it costs or risks, in words */
    struct knee_row row;  /* after the change */
    double gain;          /* throughput after / before - 1 */
    double quality_gain;  /* time to quality before / after - 1; NaN when it is not known */
    double knee_workers;  /* tolerance knee after the change */
    double cost_ratio;    /* dollars for the same work, after / before */
    double saved_per_day; /* dollars saved when a day's work of before is done after the change */
};

struct knee_walls {
    double systems_workers;     /* last K with E(K) >= tolerance */
    double statistical_workers; /* K where the global batch reaches the critical batch */
    double quality_workers;     /* K of the shortest time to quality */
    double examples_ratio;      /* examples needed / fewest, at the verdict's K */
    enum knee_wall first;
};

struct knee_cost {
    double step, day, run;                   /* dollars */
    double stall_step, stall_day, stall_run; /* dollars without useful work */
    double joules_step, joules_day, joules_run;
    double stall_joules_step, stall_joules_day, stall_joules_run;
    double run_steps; /* NaN: not given */
};

struct knee_verdict {
    enum knee_suspect suspect;
    double suspect_share; /* of the step (or, for a large batch, of the examples) */
    enum knee_wall wall;
    const struct knee_regime *regime;
    size_t lever; /* row of levers[]; SIZE_MAX: none is worth it */
};

enum knee_note_kind {
    KNEE_NOTE_HALF_EXAMPLE, /* local batch below one example from `value` workers on */
    KNEE_NOTE_OVERHIDDEN,   /* hidden fraction hides more than there is compute, from `value` on */
    KNEE_NOTE_LATENCY,      /* latency, not bandwidth, is most of the exchange from `value` on */
    KNEE_NOTE_MEASURED_AT,  /* measured times are taken to be for `value` workers */
    KNEE_NOTE_NO_ENCODE,    /* encoding is left out of the compression levers: no params */
    KNEE_NOTES
};
struct knee_note {
    enum knee_note_kind kind;
    double value;
};

#define KNEE_LEVERS_MAX 32

struct knee_prediction {
    struct knee_job job; /* completed */
    struct knee_row *rows;
    size_t row_count;
    struct knee_row at; /* the row that verdict, levers, walls and cost speak of */
    struct knee_knee knee;
    struct knee_lever levers[KNEE_LEVERS_MAX]; /* most gain first */
    size_t lever_count;
    struct knee_walls walls;
    struct knee_cost cost;
    struct knee_verdict verdict;
    struct knee_note notes[KNEE_NOTES];
    size_t note_count;
    const struct knee_alloc *alloc;
};

/* Applies the lever called `name` to *job and *workers, which start as before->job and
 * before->at.workers; levers can be applied one after another. False: no such lever, or it does not
 * apply to this job. */
bool knee_lever_apply(const struct knee_prediction *before, const char *name, struct knee_job *job,
                      double *workers);

/* Completes a copy of `job` and answers it. Free with knee_prediction_release(). */
knee_status knee_predict(const struct knee_job *job, const struct knee_alloc *alloc,
                         struct knee_prediction *out, struct knee_err *err);
void knee_prediction_release(struct knee_prediction *prediction);

/* What the account of a trace says is wrong, and what to do. */
enum knee_gap { /* what the data cannot answer, and why */
                KNEE_GAP_ONE_RANK = 1 << 0,
                KNEE_GAP_RANKS_MISSING = 1 << 1,
                KNEE_GAP_NO_COLLECTIVES = 1 << 2,
                KNEE_GAP_UNMATCHED = 1 << 3,
                KNEE_GAP_NO_STEPS = 1 << 4,
                KNEE_GAP_LOSSES = 1 << 5,
                KNEE_GAP_WHOLE_GRAPHS = 1 << 6,
                KNEE_GAP_NO_LAUNCHES = 1 << 7,
                KNEE_GAP_LARGE_BATCH = 1 << 8, /* always, unless a noise scale is given */
};

struct knee_diagnosis {
    struct knee_step step;             /* mean over ranks and steps */
    double steps;                      /* per rank */
    double ratio, efficiency, overlap; /* of the mean; overlap NaN without communication */
    double lowest_ratio, highest_ratio;
    double load_share; /* of host step time spent waiting for batches; NaN: no steps */
    bool split;        /* wait and transfer are told apart on all ranks */
    enum knee_suspect suspect;
    double share[KNEE_SUSPECTS]; /* of the step, each */
    double confidence;           /* 0 to 1 */
    unsigned gaps;
    size_t late_ranks; /* first so many rows of account->stragglers are the late ones */
    struct knee_prediction prediction; /* levers and cost at this step */
    size_t lever;                      /* row of its levers, SIZE_MAX: none */
};

/* `given` may hold what the user says beside the trace (price, cluster, params, critical batch); it
 * need not be complete. Free with knee_diagnosis_release(). */
knee_status knee_diagnose(const struct knee_account *account, const struct knee_job *given,
                          const struct knee_alloc *alloc, struct knee_diagnosis *out,
                          struct knee_err *err);
void knee_diagnosis_release(struct knee_diagnosis *diagnosis);

/* Fills in what each collective should take on a cluster. Groups are taken to fill nodes. */
void knee_expect_collectives(struct knee_account *account, const struct knee_topology *topology);

/* Two recordings of the same job, per step and rank. */
enum { KNEE_MOVERS = 16 };
struct knee_mover { /* a kernel name whose time changed */
    const char *name;
    enum knee_span_kind kind;
    double before_s, after_s; /* per step and rank */
    double before_calls, after_calls;
};

struct knee_comparison {
    struct knee_step before, after;
    enum knee_label label;                 /* that changed most */
    double share;                          /* of the change in the step */
    struct knee_mover movers[KNEE_MOVERS]; /* most change first */
    size_t mover_count;
};

/* KNEE_SYSTEM when out of memory. Names are borrowed from the accounts' traces. */
knee_status
knee_compare(const struct knee_account *before, const struct knee_diagnosis *before_diagnosis,
             const struct knee_account *after, const struct knee_diagnosis *after_diagnosis,
             const struct knee_alloc *alloc, struct knee_comparison *out, struct knee_err *err);
/* ---- Against: a measured collective beside what it should take ----------------------------- */

/* Puts the log's times beside the expected ones of the same size, marks the sizes that are slower
 * than they should be, and names the likely reason where the log shows one. */
void knee_collective_against(struct knee_collective *collective, const struct knee_log *log);

/* ---- Tax: what each parallel axis pays ---------------------------------------------------- */

enum knee_axis {
    KNEE_AXIS_DP,
    KNEE_AXIS_FSDP,
    KNEE_AXIS_TP,
    KNEE_AXIS_PP,
    KNEE_AXIS_EP,
    KNEE_AXES
};

/* Every field is described by its row in knee_tax_keys. */
struct knee_tax_job {
    int model, gpu, cluster;
    double layers, hidden, ffn, seq, vocab, experts, topk, bytes_per_value;
    double degree[KNEE_AXES];
    double micro_batch, micro_batches, mfu, peak_flops;
    double gpus_per_node, node_bandwidth_bytes_per_s, node_latency_s;
    double bandwidth_bytes_per_s, latency_s;
    unsigned char source[KNEE_KEYS_MAX];
};
extern const struct knee_keys knee_tax_keys;
void knee_tax_job_init(struct knee_tax_job *job);

struct knee_axis_tax {
    enum knee_axis axis;
    double degree;
    const char *collective;
    double buffer_bytes; /* one call, whole buffer */
    double calls;        /* per step and GPU */
    bool crosses_nodes;  /* which link */
    double comm_s;       /* per step, all calls */
    double window_s;     /* compute it can hide behind, per step */
    double exposed_s;
    double tax; /* exposed / compute */
};

struct knee_tax {
    struct knee_tax_job job; /* completed */
    struct knee_axis_tax axes[KNEE_AXES];
    double params, params_per_gpu, tokens_per_gpu, gpus;
    double compute_s; /* of one GPU in one step, without bubble */
    double bubble;    /* (pp-1)/(M+pp-1) of the step */
    double step_s, mfu;
    enum knee_axis binding;
    bool bubble_binds;            /* the bubble costs more than any axis */
    double local_tokens_min;      /* peak MFU / bandwidth: fewer and the gathers cannot hide */
    double tp_tax_in, tp_tax_out; /* peak / (3 BW h) on the node's link and on the network */
};
const char *knee_axis_name(enum knee_axis axis);

/* Completes a copy of `job` and prices every axis. */
knee_status knee_tax_run(const struct knee_tax_job *job, struct knee_tax *out,
                         struct knee_err *err);

/* ---- Shape: a transformer ----------------------------------------------------------------- */

/* Every field is described by its row in knee_shape_keys; NaN or -1 is "not given". Yes-or-no
 * fields are 1 or 0. */
struct knee_shape {
    int model;                                            /* row of knee_shape_names */
    double layers, hidden, heads, kv_heads, head_dim;     /* head_dim: of queries and keys */
    double ffn, glu, vocab, seq;                          /* ffn: of a layer without experts */
    double experts, topk, expert_ffn, shared_ffn;         /* experts 1: there are none */
    double dense_layers;                                  /* layers without experts */
    double q_rank, kv_rank, rope_dim, value_dim;          /* latent attention; kv_rank 0: none */
    double window, global_every;                          /* sliding window, and how often not */
    double causal, tied, bias, qk_norm, sinks, positions; /* positions: learned, rows of them */
    double extra_layers;                                  /* multi-token prediction */
    unsigned char source[KNEE_KEYS_MAX];
};
extern const struct knee_keys knee_shape_keys;
extern const struct knee_choices knee_shape_names; /* presets: llama3-70b ... */

/* Nothing given. Never fails. */
void knee_shape_init(struct knee_shape *shape);

/* Fills gaps from the preset and from what transformers usually have; refuses what cannot be
 * (KNEE_USAGE). Completing twice changes nothing. */
knee_status knee_shape_complete(struct knee_shape *shape, struct knee_err *err);

/* Parameters, by where they are. Layers are single ones. */
struct knee_params {
    double attention, dense_ffn, router, expert, shared; /* `expert`: one of them */
    double norms;                                        /* of a layer */
    double embedding, head, positions;                   /* head: 0 when tied */
    double total, active;                                /* active: what one token visits */
};
void knee_shape_params(const struct knee_shape *shape, struct knee_params *out);

/* FLOPs of the model per token, forward and backward, recomputation not counted. Two conventions
 * are in use: attention over all pairs of positions, or over those a causal mask leaves. */
struct knee_flops {
    double matmul, attention_full, attention_causal;
};
void knee_shape_flops(const struct knee_shape *shape, struct knee_flops *out);

/* ---- Importers: shapes and plans from files that exist already ----------------------------- */

struct knee_plan;

/* A Hugging Face config.json (Llama, Mistral, Qwen, Mixtral, DeepSeek, GPT-2, Gemma, gpt-oss and
 * what names its fields like them). Keys given by a flag are kept. On failure *shape is
 * untouched. */
knee_status knee_hf_read(const char *json, size_t length, const char *name,
                         struct knee_shape *shape, struct knee_err *err);

/* A DeepSpeed configuration: ZeRO stage, batch sizes, precision, offload. */
knee_status knee_deepspeed_read(const char *json, size_t length, const char *name,
                                struct knee_plan *plan, struct knee_err *err);

/* Megatron arguments: a launch script, or a log with its block of arguments; both the shape and
 * the plan. `step_s` (may be NULL) gets the median time per iteration when it is a log, else NaN.
 */
knee_status knee_megatron_read(const char *text, size_t length, const char *name,
                               struct knee_shape *shape, struct knee_plan *plan, double *step_s,
                               struct knee_err *err);

/* ---- Platform: hardware with the software that drives it ----------------------------------- */

enum knee_dtype { KNEE_16BIT, KNEE_8BIT, KNEE_4BIT, KNEE_DTYPES };

/* The constants of the operation model. Each is described (unit, meaning) by its row in
 * knee_rates_keys; docs/model.md says how they were got. */
struct knee_rates {
    /* hardware */
    double gemm_16bit, gemm_8bit, gemm_4bit; /* share of the peak that large products reach */
    double gemm_depth_16bit, gemm_depth_8bit, gemm_depth_4bit; /* inner length at half of it */
    double gemm_waves_16bit, gemm_waves_8bit, gemm_waves_4bit; /* waves of tiles at half of it */
    double gemm_start_s, gemm_memory, processors;
    double memory; /* share of the memory rate */
    double flash_forward, flash_backward, flash_length;
    double node_link, network, node_latency_s, network_latency_s, host_bytes_per_s;
    /* software */
    double gemm, weight_gradient, flash, fused_attention, fused_sinks;
    double scores_forward_bytes, scores_backward_bytes;
    double elementwise, loss, cast, fp8_block, fp8_row, recompute_op;
    double launch_s, gap_s, micro_batch_s, step_s, optimizer, jitter;
    double tp_exposed, cp_exposed, pp_exposed, dp_exposed, bucket_bytes, balanced_stages;
    double shard_rate, shard_exposed, shard_latency_s, slowdown, shard_group;
    double expert_gemm, expert_exposed, expert_copies, dropless, expert_launch_s, moe_launch_s;
    /* memory */
    double gradient_bytes, state_bytes, activation_memory, base_memory_bytes, gradients_stay;
    double fragmentation, logits_bytes;
    unsigned char source[KNEE_KEYS_MAX];
};
extern const struct knee_keys knee_rates_keys;
extern const struct knee_choices knee_profile_names;

/* A software profile: framework and version. Its constants are those of `base` with changes. */
struct knee_profile {
    const char *name, *base, *family;
    double version; /* year and month: 26.04; NaN: none */
    const char *summary, *origin;
};
const struct knee_profile *knee_profile_at(size_t row); /* NULL past the end */

/* Every field is described by its row in knee_platform_keys. */
struct knee_platform {
    int gpu, cluster, profile;
    double gpus_per_node, node_bandwidth_bytes_per_s, bandwidth_bytes_per_s;
    double memory_bytes, memory_bytes_per_s, peak_flops, power_w, price_per_hour;
    unsigned char source[KNEE_KEYS_MAX];
};
extern const struct knee_keys knee_platform_keys;
void knee_platform_init(struct knee_platform *platform);

/* A platform boiled down to numbers. */
struct knee_machine {
    double peak_flops[KNEE_DTYPES]; /* NaN where it has none */
    double memory_bytes, memory_bytes_per_s;
    double node_size, node_bytes_per_s, network_bytes_per_s; /* raw rates, one GPU's */
    double clock; /* what a power cap leaves of the compute rate */
    double price_per_hour, power_w;
    struct knee_rates rates;
};

/* Completes *platform and resolves it. `changes` (may be NULL) are constants that replace those
 * of the profile where they are not NaN. KNEE_USAGE when the GPU is not known. */
knee_status knee_machine_init(struct knee_platform *platform, const struct knee_rates *changes,
                              struct knee_machine *out, struct knee_err *err);

/* ---- Plan: how a model is spread over GPUs ------------------------------------------------- */

enum knee_shard { KNEE_REPLICATE, KNEE_ZERO1, KNEE_ZERO2, KNEE_ZERO3, KNEE_SHARDS };
enum knee_recompute {
    KNEE_KEEP,      /* nothing is computed twice */
    KNEE_SELECTIVE, /* attention scores, or activation functions and norms where scores are fused */
    KNEE_BY_OP,     /* every second product and what hangs on it */
    KNEE_FULL,      /* whole layers */
    KNEE_RECOMPUTES
};
enum knee_schedule { KNEE_1F1B, KNEE_INTERLEAVED, KNEE_GPIPE, KNEE_ZERO_BUBBLE, KNEE_SCHEDULES };
enum knee_precision {
    KNEE_BF16,
    KNEE_FP16,
    KNEE_FP8,       /* one scale per tensor */
    KNEE_FP8_BLOCK, /* mxfp8, or scales per block */
    KNEE_FP8_ROW,   /* scales per row */
    KNEE_FP4,
    KNEE_PRECISIONS
};
enum knee_offload { KNEE_ON_GPU, KNEE_OFFLOAD_OPTIMIZER, KNEE_OFFLOADS };
extern const struct knee_choices knee_shard_names, knee_recompute_names, knee_schedule_names,
    knee_precision_names, knee_offload_names;

/* Every field is described by its row in knee_plan_keys. In a question NaN or -1 means "any"; in
 * an answer all are set. */
struct knee_plan {
    double gpus, global_batch, micro_batch; /* batches in sequences */
    double tp, pp, vp, cp, ep, etp, dp;     /* dp = gpus / (tp pp cp) */
    double shard_size, prefetch;            /* GPUs that share one copy; layers gathered ahead */
    int shard, recompute, schedule, precision, offload;
    double seq_par, cp_gather;                 /* 1 or 0 */
    double overlap_tp, overlap_dp, overlap_pp; /* 1 or 0 */
    double imbalance, drop_tokens;             /* busiest expert rank over the mean; 1 or 0 */
    double compress, local_steps, loader_rate_per_s, jitter;
    double gradient_bytes; /* on the wire; NaN: as the profile says */
    unsigned char source[KNEE_KEYS_MAX];
};
extern const struct knee_keys knee_plan_keys;
void knee_plan_init(struct knee_plan *plan);

/* Sets what a single plan still lacks to the usual choice and refuses degrees that do not fit
 * (KNEE_USAGE). */
knee_status knee_plan_complete(struct knee_plan *plan, const struct knee_shape *shape,
                               const struct knee_machine *machine, struct knee_err *err);

/* ---- Memory of one GPU --------------------------------------------------------------------- */

struct knee_memory {
    double parameters, gradients, optimizer, activations, buffers; /* bytes */
    double fragmentation, base; /* what allocation wastes; context and libraries */
    double total;               /* sum */
    double capacity;            /* of the GPU */
};

/* ---- Cost of a plan: the closed path ------------------------------------------------------- */

/* Where the seconds of a step go on the busiest stage. They sum to the step. */
enum knee_part {
    KNEE_PART_GEMM,      /* matrix products */
    KNEE_PART_ATTENTION, /* scores, softmax, values */
    KNEE_PART_MEMORY,    /* what only moves bytes: norms, activations, casts, permutations */
    KNEE_PART_HEAD,      /* embedding, logits, loss */
    KNEE_PART_RECOMPUTE, /* computed a second time */
    KNEE_PART_OPTIMIZER,
    KNEE_PART_HOST, /* waiting for launches; fixed time per micro-batch and step */
    KNEE_PART_TP,   /* exposed communication of each axis */
    KNEE_PART_CP,
    KNEE_PART_EP,
    KNEE_PART_PP,
    KNEE_PART_DP,
    KNEE_PART_SHARD,  /* gathering and scattering parameters (ZeRO-3, FSDP) */
    KNEE_PART_BUBBLE, /* waiting for other stages */
    KNEE_PART_JITTER, /* waiting for the slowest of all */
    KNEE_PART_LOADER,
    KNEE_PART_OFFLOAD,
    KNEE_PARTS
};
const char *knee_part_name(enum knee_part part);

struct knee_plan_cost {
    double step_s, part_s[KNEE_PARTS]; /* sum of the parts = step */
    double comm_s;                     /* all communication, hidden or not */
    double tokens_per_s;               /* of all GPUs */
    double mfu_full, mfu_causal;       /* model FLOPs of either convention over the 16-bit peak */
    double hfu;                        /* with what was recomputed, causal */
    struct knee_memory memory;
    bool fits;
};

/* Prices one plan. `plan` must be completed. */
void knee_plan_price(const struct knee_shape *shape, const struct knee_machine *machine,
                     const struct knee_plan *plan, struct knee_plan_cost *out);

/* Which part of a step was measured. */
enum knee_phase { KNEE_PHASE_STEP, KNEE_PHASE_FORWARD, KNEE_PHASE_BACKWARD, KNEE_PHASE_OPTIMIZER };

/* Seconds of one phase on one GPU without a pipeline: the forward or backward pass of all
 * micro-batches, the optimizer, or the whole step. */
double knee_plan_phase_s(const struct knee_shape *shape, const struct knee_machine *machine,
                         const struct knee_plan *plan, enum knee_phase phase);

/* Where an axis of a completed plan lies: `size` ranks, `stride` apart, `inside` of them in a node;
 * what those do not carry crosses the network. */
struct knee_plan_axis {
    const char *name; /* static */
    double size, stride, inside;
};
#define KNEE_AXES_MAX 6
/* The axes of more than one rank, nearest first; how many there are. */
size_t knee_plan_axes(const struct knee_plan *plan, const struct knee_machine *machine,
                      struct knee_plan_axis out[KNEE_AXES_MAX]);

/* The cost as a labelled step: compute, transfer, wait, starved, host, idle. */
void knee_plan_step(const struct knee_plan_cost *cost, struct knee_step *out);

/* A simulated step, event by event: the first rank of every pipeline stage, each with its lanes, as
 * a timeline that knee_account() labels like a recorded one. `closed_s` (may be NULL) gets what the
 * closed path says about the same things, stragglers and loader left out. The plan must be
 * completed. Free the trace with knee_trace_release(). */
knee_status knee_simulate(const struct knee_shape *shape, const struct knee_machine *machine,
                          const struct knee_plan *plan, const struct knee_alloc *alloc,
                          struct knee_trace *out, double *closed_s, struct knee_err *err);

/* One operation of one layer, as the model sees it. */
enum knee_operation_kind {
    KNEE_OPERATION_GEMM,   /* matrix product (m x k) (k x n) */
    KNEE_OPERATION_FLASH,  /* fused attention; k: head_dim, n: sequence */
    KNEE_OPERATION_SCORES, /* attention whose scores go through memory */
    KNEE_OPERATION_BYTES,  /* moves bytes */
};
struct knee_operation {
    const char *name;
    enum knee_operation_kind kind;
    enum knee_part part;
    bool backward, weights, grouped; /* weights: their gradient; grouped: of experts */
    double count;                    /* of such operations in the layer */
    double flops, bytes;             /* of one */
    double m, n, k;
    enum knee_dtype dtype;
    double seconds; /* of all `count` */
};
#define KNEE_OPERATIONS_MAX 64

/* The operations of one layer (with experts or without) or of embedding and head, on one GPU and
 * for one micro-batch. Returns how many were written to out[KNEE_OPERATIONS_MAX]. */
enum knee_operations_of {
    KNEE_OPERATIONS_DENSE,
    KNEE_OPERATIONS_EXPERT,
    KNEE_OPERATIONS_EMBEDDING,
    KNEE_OPERATIONS_HEAD
};
size_t knee_plan_ops(const struct knee_shape *shape, const struct knee_machine *machine,
                     const struct knee_plan *plan, enum knee_operations_of what,
                     struct knee_operation *out);

/* ---- Search over plans --------------------------------------------------------------------- */

#define KNEE_PLANS_MAX 16
#define KNEE_FRONT     16 /* pieces that the GPU's memory is cut into */

struct knee_found {
    struct knee_plan plan;
    struct knee_plan_cost cost;
};

/* One question: `fixed` holds what is given (NaN and -1: free) and must have gpus and
 * global_batch. Everything is borrowed. */
struct knee_search {
    const struct knee_shape *shape;
    const struct knee_machine *machine;
    const struct knee_plan *fixed;
    size_t top; /* how many plans to keep, 1 ... KNEE_PLANS_MAX */
    bool brute; /* price every plan, without bounds: for tests */
};

/* Of plans that differ in less than tp, cp, pp, ep and sharding only the best is kept. */
struct knee_search_result {
    struct knee_found best[KNEE_PLANS_MAX]; /* fastest first */
    size_t count;
    /* The fastest plan that takes at most (i + 1) / KNEE_FRONT of the memory; step_s is infinite
     * where there is none. */
    struct knee_found front[KNEE_FRONT];
    struct knee_found nearest; /* of those that do not fit, the one that lacks the least */
    bool nearest_valid;
    double plans;     /* looked at */
    double priced;    /* in full */
    double too_large; /* left out because they do not fit */
    double pruned;    /* splits of a layer left out because a bound shows that none can win */
};

/* How many independent pieces the space falls into; searching pieces from ... to - 1; adding the
 * results of another search of other pieces. Pieces may run in different threads on different
 * results: every division gives the same plans in the end. */
size_t knee_search_pieces(const struct knee_search *search);
void knee_search_result_init(struct knee_search_result *result);
void knee_search_run(const struct knee_search *search, size_t from, size_t to,
                     struct knee_search_result *result);
void knee_search_merge(const struct knee_search *search, const struct knee_search_result *other,
                       struct knee_search_result *into);

/* What would make a plan that does not fit fit, cheapest first. */
struct knee_remedy {
    const char *what; /* "full recomputation" */
    struct knee_plan plan;
    struct knee_plan_cost cost;
};
#define KNEE_REMEDIES_MAX 12
size_t knee_plan_remedies(const struct knee_shape *shape, const struct knee_machine *machine,
                          const struct knee_plan *plan, struct knee_remedy *out);

/* What the best plans at several GPU counts add up to. */
struct knee_plan_row {
    double gpus;
    bool fits;                       /* some plan does */
    struct knee_search_result found; /* best plans, or the nearest when none fits */
    double efficiency;               /* tokens per second and GPU against the smallest count's */
    double time_s, cost;             /* for all tokens, or NaN */
    double cost_per_billion;         /* dollars per 1e9 tokens; NaN without a price */
};

struct knee_plan_question {
    double tokens;             /* to train; NaN: not asked */
    double budget, deadline_s; /* dollars, seconds; NaN: not asked */
    double tolerance;          /* E(K) still worth it */
};

struct knee_plan_answer {
    struct knee_plan_question question;
    struct knee_shape shape;
    struct knee_platform platform;
    struct knee_machine machine;
    struct knee_plan fixed;
    struct knee_plan_row *rows; /* ascending in gpus; borrowed */
    size_t row_count;
    size_t chosen;    /* the row that answers; SIZE_MAX: none does */
    double knee_gpus; /* last count with E(K) >= tolerance; NaN: no plan fits */
    double peak_gpus; /* count of the highest throughput */
    struct knee_remedy remedies[KNEE_REMEDIES_MAX]; /* when nothing fits at the chosen count */
    size_t remedy_count;
    const struct knee_account *simulated; /* the best plan's step; NULL: not asked. Borrowed */
    double simulated_s, closed_s;         /* its length, and what the closed path says */
};

/* Fills efficiency, time and cost of answer->rows and everything after them. The fields before
 * must be set; rows hold finished searches. */
void knee_plan_judge(struct knee_plan_answer *answer);

/* What a plan has over another: the part of the step that it saves most in, and how much. */
struct knee_advantage {
    enum knee_part part;
    double seconds;
};
struct knee_advantage knee_plan_advantage(const struct knee_plan_cost *better,
                                          const struct knee_plan_cost *worse);

/* The part that costs most beside the work itself; KNEE_PART_GEMM when nothing is above 2 %. */
enum knee_part knee_plan_binding(const struct knee_plan_cost *cost);

/* ---- Runs: measured training steps, and how well they are predicted ------------------------ */

#define KNEE_RUN_TEXT 96

/* One measured run. Fields as in the columns of the file; texts are cut at KNEE_RUN_TEXT. */
struct knee_measured_run {
    char id[KNEE_RUN_TEXT], source[KNEE_RUN_TEXT], gpu[KNEE_RUN_TEXT], curve[KNEE_RUN_TEXT],
        model[KNEE_RUN_TEXT];
    struct knee_shape shape;
    struct knee_plan plan;
    struct knee_platform platform;
    enum knee_phase phase;       /* what step_s is the time of */
    double step_s, memory_bytes; /* measured; NaN: not */
    double weight;               /* in fits; 1 */
    bool full_config;            /* the file says that nothing is missing */
    bool same_job;               /* `curve` is one job at several counts */
    char skipped[KNEE_RUN_TEXT]; /* why it cannot be expressed; empty: it can */
    char assumed[KNEE_RUN_TEXT]; /* what was missing and taken as usual */
};

struct knee_runs {
    struct knee_measured_run *run;
    size_t count;
    const struct knee_alloc *alloc;
};
void knee_runs_release(struct knee_runs *runs);

/* Reads a table of runs: CSV with a header (unknown columns are ignored), or JSON lines of timed
 * phases (see docs/validate.md). `gpu` is for rows that do not name one; NULL: none. A row that
 * cannot be expressed is kept with `skipped` set. KNEE_INPUT when it is no such table. */
knee_status knee_runs_read(const char *data, size_t length, const char *name, const char *gpu,
                           const struct knee_alloc *alloc, struct knee_runs *out,
                           struct knee_err *err);

struct knee_run_result {
    double predicted_s, error; /* predicted / measured - 1; NaN: skipped */
    double predicted_bytes, memory_error;
    double curve_error; /* of E(K) given the smallest count of the curve; NaN: no such */
    double held_out_s, held_out_error; /* predicted without its own source; NaN: not asked */
};

/* Errors of a group of rows: |error| averaged, its median, the mean of error, shares. */
struct knee_run_errors {
    const char *name; /* borrowed */
    size_t rows;
    double mape, median, bias, within_5, within_10;
};

#define KNEE_GROUPS_MAX 128

struct knee_run_curve {
    const char *name; /* borrowed from the runs */
    size_t rows;
    double anchor_gpus, mape;             /* of E(K) */
    double knee_measured, knee_predicted; /* last count with E >= tolerance */
};

struct knee_validation {
    const struct knee_runs *runs;   /* borrowed */
    struct knee_run_result *result; /* one per run */
    size_t skipped, skipped_full;   /* of them with a full configuration */
    size_t full;                    /* rows that the file calls fully configured */
    struct knee_run_errors all, dense, moe, full_config, assumed, memory;
    struct knee_run_errors held_out_all, held_out_dense, held_out_moe;
    struct knee_run_errors source[KNEE_GROUPS_MAX], gpu[KNEE_GROUPS_MAX], held_out[KNEE_GROUPS_MAX];
    size_t source_count, gpu_count; /* held_out beside source */
    struct knee_run_curve curve[KNEE_GROUPS_MAX];
    size_t curve_count;
    double curve_mape; /* over the rows of curves, anchors left out */
    size_t curve_rows;
    const struct knee_alloc *alloc;
};

/* Predicts every run. `changes` as for knee_machine_init(). Free with
 * knee_validation_release(). */
knee_status knee_validate(const struct knee_runs *runs, const struct knee_rates *changes,
                          double tolerance, const struct knee_alloc *alloc,
                          struct knee_validation *out, struct knee_err *err);
void knee_validation_release(struct knee_validation *validation);

/* Fits the shipped constants anew, once per source without that source's rows, and fills the
 * held_out fields. The work can be shared out: source i belongs to part i % parts, and the other
 * sources' fields stay NaN; 0 of 1 does them all. `progress` may be NULL; false ends it early. */
knee_status knee_cross_validate(struct knee_validation *validation, size_t part, size_t parts,
                                bool (*progress)(void *ctx, double share), void *ctx,
                                struct knee_err *err);
/* Puts parts together: `results` are the rows of each part, one part after the other, so
 * parts x runs->count of them. What comes out is what one part alone would have found. */
knee_status knee_cross_validate_merge(struct knee_validation *validation,
                                      const struct knee_run_result *results, size_t parts,
                                      struct knee_err *err);

/* Fits a profile of one's own: factors on a few constants that move the predictions of all runs
 * onto what was measured, drawn towards the shipped ones where the rows do not tell. *out gets
 * those constants for the GPU and profile that most runs have, which go to *platform; its other
 * fields are NaN. */
knee_status knee_calibrate(const struct knee_runs *runs, const struct knee_alloc *alloc,
                           struct knee_rates *out, struct knee_platform *platform,
                           struct knee_err *err);

/* ---- Out: results as text ----------------------------------------------------------------- */

enum knee_format { KNEE_TEXT, KNEE_JSON, KNEE_CSV, KNEE_MARKDOWN };

struct knee_style {
    bool ascii; /* no characters beyond ASCII */
    bool color; /* ANSI emphasis */
    int width;  /* columns of the terminal; 0: 100 */
    bool brief; /* text: verdict and table only */
};

/* Each appends to `text`; look at text->failed once at the end. `solution` may be NULL. */
void knee_write_prediction(const struct knee_prediction *prediction,
                           const struct knee_solution *solution, enum knee_format format,
                           const struct knee_style *style, struct knee_text *text);
/* All that was read and found out from traces. */
struct knee_trace_report {
    const struct knee_trace *traces;
    size_t trace_count;
    const struct knee_account *account;
    const struct knee_diagnosis *diagnosis;
};
void knee_write_trace(const struct knee_trace_report *report, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text);

/* The door bytes go out through; false when they cannot. */
struct knee_sink {
    bool (*write)(void *ctx, const char *data, size_t size);
    void *ctx;
};

/* The aligned, labelled ranks as one trace for ui.perfetto.dev. False: no memory, or the sink
 * refused. */
bool knee_write_perfetto(const struct knee_account *account, struct knee_sink sink,
                         const struct knee_alloc *alloc);
void knee_write_comparison(const struct knee_comparison *comparison,
                           const struct knee_account *before,
                           const struct knee_diagnosis *before_diagnosis,
                           const struct knee_account *after,
                           const struct knee_diagnosis *after_diagnosis, enum knee_format format,
                           const struct knee_style *style, struct knee_text *text);
void knee_write_tax(const struct knee_tax *tax, enum knee_format format,
                    const struct knee_style *style, struct knee_text *text);
void knee_write_collective(const struct knee_collective *collective, enum knee_format format,
                           const struct knee_style *style, struct knee_text *text);

void knee_write_check(const struct knee_check *check, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text);

/* YAML that knee_topology_read() reads back, or JSON with the same keys. */
void knee_write_topology(const struct knee_topology *topology, enum knee_format format,
                         struct knee_text *text);
void knee_write_plan(const struct knee_plan_answer *answer, enum knee_format format,
                     const struct knee_style *style, struct knee_text *text);
void knee_write_ops(const struct knee_plan_answer *answer, enum knee_format format,
                    const struct knee_style *style, struct knee_text *text);
void knee_write_validation(const struct knee_validation *validation, enum knee_format format,
                           const struct knee_style *style, struct knee_text *text);
/* Constants that are set, as YAML for --rates. */
void knee_write_rates(const struct knee_rates *rates, const struct knee_platform *platform,
                      struct knee_text *text);

/* ---- Read --------------------------------------------------------------------------------- */

/* A cluster from the text of a file: knee's YAML, `nvidia-smi topo -m` or NCCL's topology XML, told
 * apart by content. The last two describe one node; any number of them is taken to be there. */
knee_status knee_topology_read(const char *text, size_t length, const char *name,
                               struct knee_topology *out, struct knee_err *err);

/* Sets the keys of `object` from YAML (or JSON) text, `name` being shown in errors. Keys that
 * were already set from a flag are kept. Words are not allowed in files. Nothing is changed on
 * failure. The object must be `object_size` bytes. */
knee_status knee_yaml_read(const char *yaml, size_t length, const char *name,
                           const struct knee_keys *keys, void *object, size_t object_size,
                           struct knee_err *err);

#ifdef __cplusplus
}
#endif
#endif
