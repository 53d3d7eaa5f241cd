/* SPDX-License-Identifier: MIT */
/*
 * Where the time of a step is. Every labelled nanosecond of a rank is given to one piece of GPU
 * work (own_times.c): compute, communication and copies to the first that covers it, gaps to the
 * work that ended them. All tables are sums of that by another key, so each of them adds up to the
 * labels: collectives by their order in the step (buckets.c), kernels and copies by name
 * (kernel_uses.c), modules, annotations and passes (places.c). Beside them the chain over ranks
 * that makes the step as long as it is (critical_path.c), and what the host did in gaps
 * (host_gaps.c).
 *
 * Times are per step and rank, in seconds, over complete steps.
 */
#ifndef KNEE_TIMELINE_WHERE_H
#define KNEE_TIMELINE_WHERE_H

#include "timeline/account.h"

/* One collective of a step: the same operation and size at the same place in the order. */
struct knee_bucket {
    size_t order; /* in the step, from 0 */
    enum knee_op op;
    int64_t bytes; /* -1: not known */
    const char *group;
    size_t calls;                        /* on all ranks, in all complete steps */
    double start_s;                      /* after the step's start, mean over calls */
    double hidden_s, transfer_s, wait_s; /* per call */
};

/* Kernels or copies of one name and, where it is recorded, one number of blocks. */
struct knee_kernel_use {
    const char *name;
    enum knee_span_kind kind;
    int64_t blocks;   /* -1: not recorded */
    double calls;     /* per step */
    double total_s;   /* of their durations, per step */
    double exposed_s; /* per step, of the step's own time: compute, or a copy nothing hides */
    double alone_s, beside_s; /* of calls at the same place in the step, seen with no communication
                                 beside them and with it for more than half of their time: means;
                                 NaN: there are none */
    size_t places;            /* how many of those */
    uint32_t order, turn;     /* while it is made */
    double bytes;             /* per step; NaN: not recorded */
    double flops;             /* per step, of products whose longest kernel it is; 0: none known */
    double flops_s;           /* kernel time of those products, per step */
};

/* A module, an annotation or a pass. */
struct knee_place {
    const char *name;
    size_t class_length; /* of the name, without the number of one module of the class; 0: all */
    size_t members;      /* modules of the class */
    double label_s[KNEE_LABELS]; /* per step */
    double total_s;
};
enum knee_place_kind {
    KNEE_PLACE_PASS,
    KNEE_PLACE_MODULE,
    KNEE_PLACE_RANGE,
    KNEE_PLACE_CLASS, /* modules by class: Linear_0 and Linear_1 are one row */
    KNEE_PLACES
};

/* What began a gap, and what the host did in it. */
enum knee_host_act {
    KNEE_ACT_PYTHON, /* nothing that is recorded: Python, other threads */
    KNEE_ACT_OPERATIONS,
    KNEE_ACT_LAUNCH,
    KNEE_ACT_ITEM, /* waiting for a number: .item(), .cpu(), nonzero() */
    KNEE_ACT_SYNC,
    KNEE_ACT_ALLOC, /* cudaMalloc, cudaFree */
    KNEE_ACT_COPY,  /* in a call that copies: pageable memory */
    KNEE_ACT_LOADER,
    KNEE_ACT_GC,
    KNEE_ACT_COLLECTIVE,
    KNEE_ACTS
};
struct knee_host_gap {       /* gaps that began in one kind of act */
    double count, total_s;   /* per step */
    double act_s[KNEE_ACTS]; /* what the host did in them */
};

struct knee_launches { /* per step */
    double kernels, launches, graphs;
    double launch_s;    /* the host's time in those calls */
    double short_share; /* of kernels: below KNEE_SHORT_KERNEL_NS */
};
#define KNEE_SHORT_KERNEL_NS 10000

struct knee_where {
    struct knee_bucket *buckets; /* by order */
    size_t bucket_count;
    struct knee_kernel_use *kernels; /* most time first */
    size_t kernel_count;
    struct knee_place *places[KNEE_PLACES]; /* most time first */
    size_t place_count[KNEE_PLACES];
    struct knee_host_gap gaps[KNEE_ACTS];
    double gaps_s; /* all host-bound time that was looked at */
    struct knee_launches launches;
    double half_empty_s; /* compute in kernels of so few blocks that half of the GPU has none; NaN:
                            no grids are recorded, or the GPU is not known (set by judge) */
    bool graphs_help;    /* CUDA graphs are worth a try (set by judge) */
    enum knee_host_act main_act; /* began a third of the gaps or more (set by judge); KNEE_ACTS:
                                    none */
    enum { KNEE_LOOK_KERNELS, KNEE_LOOK_COLLECTIVES, KNEE_LOOK_GAPS } look; /* first (by judge) */
    bool host;           /* the host's events were there: places, gaps and launches are known */
    double *path_s;      /* of the chain, per step: rank_count rows of KNEE_LABELS */
    double path_step_s;  /* sum of it */
    size_t path_changes; /* of rank */
    size_t rank_count;
    const struct knee_alloc *alloc;
};

/* `account` must hold all spans (not those of other processes). KNEE_SYSTEM when out of memory;
 * *out can be released either way. */
knee_status knee_find_where(const struct knee_account *account, const struct knee_alloc *alloc,
                            struct knee_where *out, struct knee_err *err);
void knee_where_release(struct knee_where *where);

/* ---- Parts ---- */

/* own[span][label] for every span of a rank, and one row more for the gap after the last. */
typedef int64_t knee_own_row[KNEE_LABELS];
void knee_own_times(const struct knee_rank_account *rank, knee_own_row *own);

/* Each adds one rank, or all of them; false: no memory. */
bool knee_find_buckets(const struct knee_account *account, knee_own_row *const *own,
                       struct knee_where *out);
bool knee_find_kernel_uses(const struct knee_account *account, knee_own_row *const *own,
                           struct knee_where *out);
bool knee_find_critical_path(const struct knee_account *account, struct knee_where *out);
bool knee_find_places(const struct knee_account *account, knee_own_row *const *own,
                      struct knee_where *out);
bool knee_find_host_gaps(const struct knee_account *account, struct knee_where *out);

/* For every event of the host the innermost operation of the framework that it runs in: row of
 * names + 1; 0: none. To be released with knee_resize(); NULL: no memory. */
uint32_t *knee_operations_of(const struct knee_trace *trace, const struct knee_alloc *alloc);

/* The step of a moment of a rank; NULL: none. */
const struct knee_step_account *knee_step_at(const struct knee_account *account, size_t rank,
                                             int64_t own_ns);

#endif
