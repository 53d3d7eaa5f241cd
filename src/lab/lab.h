/* SPDX-License-Identifier: MIT */
/*
 * One training run of the lab: what it is set up as, and what it came to. A rank has three threads:
 * the host takes batches and hands over operations, the device works them off in order, the
 * communication thread sums buckets as backward finishes them. That is how a GPU job works, and so
 * the same five things can go wrong with it.
 */
#ifndef KNEE_LAB_LAB_H
#define KNEE_LAB_LAB_H

#include "knee_out.h"
#include "lab/lab_loader.h"
#include "lab/lab_net.h"
#include "lab/lab_wire.h"
#include "say/lab_result.h"

enum { LAB_BUCKETS_MAX = 256, LAB_SYNTHETIC_PARTS = 8 };

enum lab_sync { LAB_EVERY_STEP, LAB_LOCAL_SGD, LAB_DILOCO, LAB_STREAMING };
extern const struct knee_choices lab_sync_names;

/* A training job that is run, not predicted: whole numbers, rows of the lab's own tables, files and
 * callbacks. The prediction beside it is a knee_job, made in one place (lab_sweep.c). Lengths are
 * counts; times are seconds. */
struct lab_setup {
    struct lab_shape shape;
    bool weak;                /* `batch` is one worker's, else all workers' */
    size_t batch, accumulate; /* examples of a step; micro-steps they come in */
    size_t steps, untimed;    /* all steps; the first few do not count for times */
    int optimizer, wire;      /* rows */
    double rate;              /* NaN: the optimizer's usual one */
    size_t warmup;
    bool constant_rate; /* after the warm-up; else half a cosine down to a tenth */
    enum lab_sync sync;
    size_t local_steps; /* between two synchronisations */
    bool overlap;       /* exchange while backward runs */
    double bucket_bytes;
    size_t loader_threads;
    double decode_s;  /* per example */
    double host_s;    /* per operation handed over */
    bool synthetic;   /* timed waits instead of arithmetic */
    double compute_s; /* synthetic: of `batch` examples on one worker */
    size_t params;    /* synthetic: values that are exchanged */
    int late_rank;    /* -1: none */
    double late_s;    /* its sleep, per step */
    double pace_bytes_per_s, pace_latency_s;
    uint64_t seed;
    int text_fd;
    size_t text_bytes;
    const char *record; /* folder for timelines; NULL: none */
    bool keep_timeline; /* give it back in the outcome */
    /* How a whole file is written; only lab_write_noise() needs it. */
    knee_status (*write_file)(const char *name, const struct knee_text *text, struct knee_err *err);
    void (*progress)(void *ctx, size_t step, size_t steps);
    void *progress_ctx;
};

/* Times are per step. All ranks of the group have the same, but for timeline and params. */
struct lab_outcome {
    double step_s;      /* median over rounds, mean over ranks */
    double compute_s;   /* device busy, mean over ranks */
    double comm_s;      /* in collectives */
    double exposed_s;   /* device waiting for them */
    double loss;        /* held-out, at the end; NaN: synthetic */
    double sent_bytes;  /* by one rank, counted; mean over ranks */
    double model_bytes; /* the same by the wire's formula */
    double buckets;
    double fixed_s; /* of compute: the optimizer, which does not shrink with the batch */
    double ready_share[LAB_BUCKETS_MAX]; /* of compute, when each bucket was ready */
    char *timeline;                      /* owned; free() it */
    size_t timeline_size;
    float *params; /* owned; free() it; NULL: synthetic */
    size_t param_count;
    double *steps; /* owned; with a folder for timelines: seconds, then losses of all steps */
};
void lab_outcome_release(struct lab_outcome *outcome);
/* Its loss, and its parameters where `params` is not NULL (free them with free()); releases it. */
void lab_outcome_take(struct lab_outcome *outcome, double *loss, float **params);

/* Runs on the first `workers` ranks; the others return at once with zeros. All ranks must call. */
knee_status lab_run(struct knee_runtime *runtime, const struct lab_setup *setup, int workers,
                    struct lab_outcome *out, struct knee_err *err);

/* Sums over all ranks, without keeping a core busy while some of them still train. */
bool lab_reduce(struct knee_runtime *runtime, double *values, size_t count);

/* How long the exchange stays exposed when backward takes `backward_s` and bucket i, of `comm_s`
 * each, is ready at ready_s[i]: they go one after the other. */
double lab_exposed_s(const double *ready_s, const double *comm_s, size_t buckets,
                     double backward_s);

/* The gradient noise scale at `params` (McCandlish et al. 2018, appendix A.1): mean squared norms
 * at a small and a large batch, in examples. All ranks call and help. */
struct lab_noise {
    double small_batch, small_norm, large_batch, large_norm;
    double critical_batch; /* tr(Sigma) / |G|^2; NaN when the norms do not tell */
};
knee_status lab_measure_noise(struct knee_runtime *runtime, const struct lab_setup *setup,
                              const float *params, struct lab_noise *out, struct knee_err *err);
/* Writes folder/noise.csv, which knee trace --noise reads. */
knee_status lab_write_noise(const struct lab_setup *setup, const char *folder,
                            const struct lab_noise *noise, struct knee_err *err);

/* What is exchanged, laid out: parts in the order of the tape, buckets from the last part on. */
struct lab_layout {
    struct lab_tensor tensors[LAB_TENSORS_MAX];
    size_t tensor_count;
    size_t part_at[LAB_NODES_MAX + 1]; /* parameters where part i begins; one past the last */
    size_t part_count, param_count;
    struct lab_bucket buckets[LAB_BUCKETS_MAX];
    size_t bucket_part[LAB_BUCKETS_MAX]; /* complete when backward has passed this part */
    size_t bucket_count;
    struct knee_arena memory; /* of the buckets */
};
/* `net` may be NULL: synthetic parts. False: out of memory or too many buckets. */
bool lab_layout_init(struct lab_layout *layout, const struct lab_setup *setup,
                     const struct lab_net *net, int workers);
void lab_layout_release(struct lab_layout *layout);
/* Bytes one rank sends in one exchange of everything, and its hops. */
void lab_layout_traffic(const struct lab_layout *layout, const struct lab_wire *wire, int workers,
                        double *bytes, double *hops);

#endif
