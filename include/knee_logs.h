/* SPDX-License-Identifier: MIT */
/* Logs of measured collectives, the cluster fitted to them, and why one is slow. What knee.h says
 * of every call holds here; these structs may change with the minor version. */
#ifndef KNEE_LOGS_H
#define KNEE_LOGS_H

#include "knee_collective.h"

/* ---- Logs: measured collectives ----------------------------------------------------------- */

struct knee_sample {
    double bytes;
    double time_s; /* the faster of the two below, or the fastest run: disturbances only add time */
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
    const char *about; /* what people say about it, for knee_cluster_recognise(); may be NULL */
};

/* Adds the tables of one file: nccl-tests and rccl-tests (text of every era, JSON), OSU, knee
 * bench, CSV. KNEE_INPUT when it holds no usable row; the reason and the counts are in *err. */
knee_status knee_logs_read(struct knee_logs *logs, const char *text, size_t length,
                           const char *name, const struct knee_log_hints *hints,
                           struct knee_err *err);

/* ---- Fit: a cluster from its logs --------------------------------------------------------- */

/* Where a log's ranks are on a cluster. The cluster is widened where the log has more GPUs in a
 * node than it knows of. */
knee_status knee_log_layout(const struct knee_log *log, struct knee_cluster *cluster,
                            struct knee_layout *out, struct knee_err *err);

/* The question that a log answers: its collective, its sizes (room for KNEE_SIZES_MAX in `bytes`),
 * its ranks on a cluster. */
void knee_log_question(const struct knee_log *log, const struct knee_cluster *cluster,
                       double *bytes, struct knee_collective_query *out);

/* Its buffers were the host's: gpu is "CPU". */
bool knee_log_plain(const struct knee_log *log);

/* What the log, its name and `about` (may be NULL) say the cluster is; an NVLink node and
 * InfiniBand when they say nothing, plain hosts when the buffers were the host's. True if something
 * was recognised. */
bool knee_log_cluster(const struct knee_log *log, const char *about, struct knee_cluster *out);

/* Logs that belong to the caller, and where memory for what is made of them comes from. */
struct knee_log_view {
    const struct knee_log *logs;
    size_t count;
    const struct knee_alloc *alloc;
};

/* Fits one cluster to logs that are all of one cluster, starting from `prior`: latencies, rates
 * and protocols, with their uncertainty and a curve for each log in *record, which out->fitted
 * then points to. On failure only *record may have changed. */
knee_status knee_fit(const struct knee_log_view *logs, const struct knee_cluster *prior,
                     struct knee_cluster *out, struct knee_fitted *record, struct knee_err *err);

/* No preset describes plain hosts. Replaces the guessed link by the one fitted to the log's own
 * rows, without a curve; the expected time is that of the fastest algorithm on that link. Other
 * clusters are not changed. */
knee_status knee_log_wire(const struct knee_log *log, const struct knee_alloc *alloc,
                          struct knee_cluster *cluster, struct knee_err *err);

/* Errors |predicted / measured - 1| of some rows. */
struct knee_errors {
    size_t rows;
    double median, p90; /* NaN without rows */
    double promised_median,
        promised_p90; /* docs/reference/fit.md says which logs keep it; NaN: nothing is */
};

/* How well one log is predicted ... */
struct knee_log_check {
    const struct knee_log *log;
    struct knee_cluster cluster; /* what it was recognised as, before any fit */
    bool recognised;
    const char *origin;
    struct knee_errors left_out;     /* ... at every second size, fitted at the others */
    struct knee_errors out_of_place; /* the same against the out-of-place column alone */
    struct knee_errors fitted;       /* ... at the sizes it was fitted to, by the pieces */
    struct knee_errors preset;       /* ... by the preset, without any fit */
    size_t fit;                      /* row of clusters[]; SIZE_MAX: it was not fitted */
    double *fitted_s;                /* what that fit gives for each sample; owned; may be NULL */
};

/* ... and one log from another of the same cluster. */
struct knee_transfer {
    size_t from, to; /* rows of checks[] */
    struct knee_errors errors;
};

/* What the logs of one cluster say together: parameters, and a curve for each log. */
struct knee_cluster_fit {
    struct knee_cluster cluster; /* its `fitted` is the next */
    struct knee_fitted record;
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
    const char *hardware; /* for knee_cluster_recognise() */
    const char *origin; /* where it comes from: logs of different origins are different clusters */
};

/* `about` may be NULL, or has a row for each log. Logs must outlive the check. Two logs are of one
 * cluster when their origins do not differ, they were recognised as the same, and both or neither
 * have more than one node; with `prior`, what they all start from, all of them are. */
knee_status knee_check_logs(const struct knee_log_view *logs, const struct knee_log_about *about,
                            const struct knee_cluster *prior, struct knee_check *out,
                            struct knee_err *err);
void knee_check_release(struct knee_check *check);

/* Hops and bytes of the algorithm that a log names, for one byte; false: the library chose. */
bool knee_log_counts(const struct knee_log *log, const struct knee_layout *layout,
                     struct knee_counts *out);

/* The time of a run of a log's kind: by the algorithm that the log names, otherwise by the fastest
 * one or, with `curves`, by the curve that was fitted to such runs. */
double knee_log_time_s(const struct knee_log *log, const struct knee_cluster *cluster,
                       const struct knee_layout *layout, double bytes, bool curves);

/* ---- Against: measured and expected times of a collective ---------------------------------- */

/* Compares the log's times with the expected ones of the same size, marks the sizes that are slower
 * than they should be, and names the likely reason where the log shows one. */
void knee_collective_against(struct knee_collective *collective, const struct knee_log *log);

#endif
