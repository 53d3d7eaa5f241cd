/* SPDX-License-Identifier: MIT */
/* Predict: closed forms over worker counts. What knee.h says of every call holds here;
 * these structs may change with the minor version. */
#ifndef KNEE_PREDICT_H
#define KNEE_PREDICT_H

#include "knee_job.h"
#include "knee_timeline.h"

/* ---- Predict: closed forms ---------------------------------------------------------------- */

#define KNEE_SEARCH_MAX 1048576.0 /* most workers that a knee or a solution is looked for at */

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
    struct knee_sure step_sure, efficiency_sure,
        ratio_sure; /* NaN until knee_predict() sets them */
};
const char *knee_binding_name(enum knee_binding binding);

/* What a forecast knows of one size of micro-batches. */
#define KNEE_MICRO_SIZES 6
struct knee_micro_size {
    double example_s, end_s; /* compute: of one example; after the last one, once per step */
};

/* The calibrated forecast: what knee plan says of the data-parallel plan with a whole copy on every
 * GPU, worked out once for micro-batches of 1, 2, 4 ... 32 examples, as far as they fit. For whole
 * micro-batches the step, its parts and the memory are those of knee_plan_price(). */
struct knee_forecast {
    bool known;           /* the rest is set */
    bool fsdp_recomputed; /* fsdp_gpus hold it with full recomputation only */
    int size_count;       /* micro-batches that fit, and the first in any case */
    struct knee_micro_size sizes[KNEE_MICRO_SIZES];
    struct knee_machine machine;
    struct knee_plan plan;     /* of one GPU */
    double common, experts;    /* parameters whose gradients are exchanged */
    double bytes;              /* of gradients, uncompressed */
    double mfu;                /* causal, of one GPU, at the first size */
    struct knee_memory memory; /* of the first size */
    double fsdp_gpus;          /* fewest that hold it sharded; NaN: none do */
    struct knee_sure step;     /* factors on a step */
};

/* A completed job boiled down to what the closed forms need. Plain data, about 4 KB. */
struct knee_terms {
    enum knee_scaling scaling;
    struct knee_cluster cluster;
    const struct knee_algorithm *algorithm; /* NULL: what the library picks */
    double compute_s;  /* of the global batch on one worker, or of the local batch */
    double batch;      /* examples: global, or local x accumulate; NaN when not known */
    double work;       /* the same, or relative to the batch that was measured */
    double bytes;      /* on the wire, after compression */
    double comm_scale; /* measured over modelled communication; 1 when modelled */
    double shard;      /* workers that share one replica over another axis; 1 */
    double axis_tax;   /* what that axis costs, as a share of compute; 0 */
    double encode_s, accumulate, local_steps;
    double overlap, hidden, loader_overlap, loader_rate_per_s, jitter;
    double price_per_s, power_w, idle_power_w, critical_batch, min_steps;
    double stall_s[KNEE_LABELS];
    double most_workers; /* each has one example left; infinite where the batch grows or is not
                            known */
    double one_worker_step_s;
    struct knee_forecast forecast;
};

/* `job` must be completed. */
void knee_terms_init(const struct knee_job *job, struct knee_terms *terms);

/* Sets what follows from the others (the last two), after a change. */
void knee_terms_settle(struct knee_terms *terms);

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

#endif
