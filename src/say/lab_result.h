/* SPDX-License-Identifier: MIT */
/* What the lab found. Plain data; strings are borrowed or in place. */
#ifndef KNEE_SAY_LAB_RESULT_H
#define KNEE_SAY_LAB_RESULT_H

#include "say/fields.h"

enum { KNEE_LAB_ROWS = 64, KNEE_LAB_HUNTS = 64, KNEE_LAB_PUSHES = 32, KNEE_LAB_NOTES = 8 };

/* One worker count. Times are per step. */
struct knee_lab_row {
    double workers;
    double measured_step_s, predicted_step_s;
    double compute_s, comm_s, exposed_comm_s; /* measured */
    double ratio, gamma;                      /* measured */
    double efficiency, predicted_efficiency;  /* E(K) against one worker */
    double loss;                              /* held-out; NaN: compute was synthetic */
    double sent_bytes, model_bytes;           /* by one worker: counted, and by formula */
};

/* In workers; NaN: not inside the sweep. */
struct knee_lab_knee {
    double tolerance_workers; /* last swept K with E(K) >= tolerance */
    double gamma_one_workers; /* where communication equals compute, between swept counts */
};

struct knee_lab_hunt {
    const char *induced, *how; /* the suspect, or "none"; what was done */
    const char *named;         /* what the judge said */
    uint64_t seed;
    double moved_before, moved_after; /* the number that moved: its share, healthy and induced */
    char evidence[240];
};

struct knee_lab_push {
    const char *lever, *part; /* part: "communication" or "statistics" */
    char change[64];
    double workers;
    double step_s, predicted_step_s; /* at `workers` */
    double knee_workers, predicted_knee_workers;
    double sent_bytes, model_bytes; /* per step */
    double examples, loss;          /* budget of the training run, and held-out loss after it */
};

struct knee_lab {
    bool synthetic; /* compute was a timed wait */
    bool paced;     /* sending was held back to stand in for a slow link */
    bool weak;
    const char *runtime, *model, *wire, *sync, *optimizer;
    int ranks, hosts;
    double params, batch, accumulate, local_steps, steps, buckets, tolerance;
    bool overlap;
    double latency_s, bandwidth_bytes_per_s; /* measured; NaN: one rank */
    struct knee_lab_row rows[KNEE_LAB_ROWS];
    size_t row_count;
    struct knee_lab_knee measured, predicted;
    double median_error, worst_error; /* |predicted / measured - 1| over rows of K > 1; NaN: none */
    struct knee_lab_hunt hunts[KNEE_LAB_HUNTS];
    size_t hunt_count;
    struct knee_lab_push pushes[KNEE_LAB_PUSHES];
    size_t push_count;
    double critical_batch; /* measured noise scale; NaN: not measured */
    const char *record;    /* folder of the timelines; NULL: none */
    char notes[KNEE_LAB_NOTES][240];
    size_t note_count;
};

extern const struct knee_answer_type knee_lab_answer; /* struct knee_lab */

#endif
