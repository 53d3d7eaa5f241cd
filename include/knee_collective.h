/* SPDX-License-Identifier: MIT */
/* Collectives: what they cost on a cluster. What knee.h says of every call holds here;
 * these structs may change with the minor version. */
#ifndef KNEE_COLLECTIVE_H
#define KNEE_COLLECTIVE_H

#include "knee_cluster.h"

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

/* Ranks on a cluster, with what they reach at each level. */
struct knee_layout {
    double ranks, skew;
    size_t levels;                       /* in use */
    double units[KNEE_LEVELS_MAX + 1];   /* units[0] = ranks, units[1] = nodes, ..., last is 1 */
    double latency_s[KNEE_LEVELS_MAX];   /* of a hop that turns round at this level */
    double bytes_per_s[KNEE_LEVELS_MAX]; /* of one unit into this level */
};

/* KNEE_USAGE when the ranks do not fit. */
knee_status knee_layout_init(const struct knee_cluster *cluster,
                             const struct knee_placement *placement, struct knee_layout *out,
                             struct knee_err *err);

/* What an algorithm does for one collective on one layout. */
struct knee_counts {
    double hops[KNEE_LEVELS_MAX];  /* on the longest path, by the level they turn round at */
    double bytes[KNEE_LEVELS_MAX]; /* through the busiest port of a unit, one direction */
    double begin;                  /* hops above the lowest level if there were two units; 0: all */
    double peers;                  /* messages that one rank posts at once, beyond the first */
    double buffer;                 /* bytes that pass a pipeline which fills (knee_fill) */
    bool in_turn;                  /* one level after the other, not all at once */
    bool pipelined;                /* holds for a buffer that is passed on piece by piece */
};

enum knee_needs { KNEE_NEEDS_NOTHING, KNEE_NEEDS_NVLS, KNEE_NEEDS_SHARP };

/* A pipeline that fills: a small buffer gets a share of the full rate, a large one takes as long as
 * `bytes` more would. Share 0: full at once; bytes 0: never full. */
struct knee_fill {
    double share, bytes;
};

/* An algorithm. Rows live one per file in src/collective. */
struct knee_algorithm {
    const char *name, *formula, *origin;
    /* `bytes` counts what one worker contributes, and contributions are kept apart. */
    bool gathers;
    /* False: it does not do this collective there. Bytes are the same multiple of `bytes` at any
     * size, hops do not depend on it. */
    bool (*count)(const struct knee_layout *layout, enum knee_op op, double bytes,
                  struct knee_counts *out);
    double reach; /* share of a level's rate that it gets; 0 stands for 1 */
    struct knee_fill fill[KNEE_PROTOCOLS];
    const char *nccl; /* its name in NCCL; NULL: NCCL does not have it */
    bool simple_only; /* it runs with the Simple protocol only */
    enum knee_needs needs;
};
const struct knee_algorithm *knee_algorithm_at(size_t row); /* for predict; NULL past the end */
const struct knee_algorithm *knee_scheme_at(size_t row);    /* for sweeps; NULL past the end */

/* The time of the fastest NCCL algorithm and protocol: a lower bound for a run. NaN when NCCL
 * has none for this collective. `algorithm` and `protocol` may be NULL. */
double knee_model_time_s(const struct knee_cluster *cluster, const struct knee_layout *layout,
                         enum knee_op op, double bytes, const struct knee_algorithm **algorithm,
                         enum knee_protocol_name *protocol);

/* The same, but from the curve of the cluster that was fitted to this op, rank count and node
 * count, where there is one. Beyond the ends of the curve it goes on as the model does. */
double knee_expected_time_s(const struct knee_cluster *cluster, const struct knee_layout *layout,
                            enum knee_op op, double bytes);

/* ---- The one price ------------------------------------------------------------------------ */

/* Some ranks of a job: `size` of them, `stride` apart, ranks filling nodes in order. `alone`: they
 * are the only ones; else all GPUs are in such groups at the same time and share the links. Sizes
 * need not be whole. */
struct knee_group {
    double size, stride;
    bool alone;
};

/* What `bytes` (as nccl-tests counts them) take, for the group that is worst off: the curve
 * fitted to such runs, else the fastest algorithm of the library (NCCL's on GPUs), or `algorithm`
 * where one is given and runs there. 0 for one rank, NaN where nothing does this collective. A send
 * goes to the rank `stride` further, from all ranks of the group at once: where one of them sits in
 * another node, that is what counts. predict, tax, plan, simulate, collective and trace ask this.
 */
double knee_collective_s(const struct knee_cluster *cluster, enum knee_op op,
                         struct knee_group group, double bytes,
                         const struct knee_algorithm *algorithm);

/* The same made ready for many sizes. Borrows the cluster's curves. */
#define KNEE_PRICE_LINES 8
struct knee_price_line {
    double fixed_s, per_byte_s;
};
struct knee_price {
    struct knee_group group;
    enum knee_op op;
    size_t count;
    struct knee_price_line line[KNEE_PRICE_LINES]; /* the lowest counts */
    double floor_s;                                /* the host's; 0: none */
    const struct knee_curve *curve;                /* NULL: none was fitted */
};
void knee_price_init(const struct knee_cluster *cluster, enum knee_op op, struct knee_group group,
                     const struct knee_algorithm *algorithm, struct knee_price *out);
double knee_price_s(const struct knee_price *price, double bytes);

/* Prices that were asked on one cluster; zeroed is empty. */
#define KNEE_PRICES 37
struct knee_prices {
    struct knee_price price[KNEE_PRICES]; /* by what was asked; the latest of two alike stays */
};
const struct knee_price *knee_prices_get(struct knee_prices *prices,
                                         const struct knee_cluster *cluster, enum knee_op op,
                                         struct knee_group group);

/* What NCCL's published tables would make it choose, and the time they give: a way to choose, not
 * a forecast. */
struct knee_nccl_choice {
    const char *algorithm, *protocol; /* "RING", "LL128"; NULL: not a GPU that NCCL knows */
    double time_s;                    /* NaN: a group of sends and receives ("P2P") has no table */
};
struct knee_nccl_choice knee_nccl_choose(const struct knee_cluster *cluster,
                                         const struct knee_layout *layout, enum knee_op op,
                                         double bytes);

#define KNEE_SIZES_MAX 1024

/* Message sizes as nccl-tests writes them: 4K, 8,16,32, 4K..8G (doubling), 4K..8Gx4, 1M..8M+1M. K,
 * M, G are powers of 1024, KB, MB, GB of 1000. Ascending and without repeats into
 * `out`, which has room for `capacity` of them; more (or more than KNEE_SIZES_MAX) are refused. */
knee_status knee_sizes_parse(const char *text, const char *where, double *out, size_t capacity,
                             size_t *count, struct knee_err *err);

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
    bool winner;                                         /* the fastest at this size */
};

/* One size. */
struct knee_collective_size {
    double bytes;
    size_t first, last;   /* its rows: rows[first] up to, not with, rows[last] */
    size_t winner;        /* row */
    double latency_share; /* of the winner's time that does not grow with the size */
    bool latency_bound;   /* that is most of it */
    double expected_s;    /* what NCCL should take here at best: knee_expected_time_s() */
    struct knee_nccl_choice nccl;
    double measured_s; /* NaN: not measured */
    double slowdown;   /* measured over expected */
    bool slow;         /* more than a curve or the model explains */
    size_t finding;    /* row of findings[]; SIZE_MAX: no problem, or an unknown one */
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
    struct knee_cluster cluster;
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
knee_status knee_collective_run(const struct knee_cluster *cluster,
                                const struct knee_collective_query *query,
                                const struct knee_alloc *alloc, struct knee_collective *out,
                                struct knee_err *err);
void knee_collective_release(struct knee_collective *collective);

#endif
