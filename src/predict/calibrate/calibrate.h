/* SPDX-License-Identifier: MIT */
/* Fitting constants to measured runs. */
#ifndef KNEE_PREDICT_CALIBRATE_CALIBRATE_H
#define KNEE_PREDICT_CALIBRATE_CALIBRATE_H

#include "job/profile.h"
#include "knee_logs.h"
#include "knee_runs.h"

/* What is fitted: one of the values, drawn towards a prior. */
struct knee_fit_constant {
    size_t value; /* index into values */
    double prior, sigma;
};

/* A fit of constants to some of the runs. */
struct knee_fit {
    const struct knee_runs *runs;
    const struct knee_alloc *alloc;
    char *memory;   /* of all arrays */
    double *values; /* one per row of knee_constants, then one per own constant */
    struct knee_fit_constant *fitted;
    size_t fitted_count;
    bool *use;                               /* which runs count; all expressible ones at first */
    double *log_error;                       /* log(predicted / measured) per run */
    double *predicted_s;                     /* per run */
    struct knee_machine *machine;            /* per run; its rates are those last tried */
    struct knee_recipe *recipe;              /* per run */
    double *jacobian, *normal, *kept, *open; /* open: a second `normal` */
    double loss;
};

enum knee_fit_kind {
    KNEE_FIT_SHIPPED, /* the rows of knee_constants that have a prior, starting from the priors */
    KNEE_FIT_OWN,     /* factors on a few constants, on top of the shipped ones */
};

/* Offset in struct knee_rates of the i-th constant that KNEE_FIT_OWN fits a factor for; SIZE_MAX
 * past the last. Its value is values[knee_constants_count + i]. */
size_t knee_own_constant(size_t i);

/* Free with knee_fit_release(). */
knee_status knee_fit_init(struct knee_fit *fit, const struct knee_runs *runs,
                          enum knee_fit_kind kind, const struct knee_alloc *alloc,
                          struct knee_err *err);
void knee_fit_release(struct knee_fit *fit);

/* Levenberg-Marquardt on the logarithms, robust against outliers, until it no longer helps or
 * `most` rounds are done. */
void knee_fit_run(struct knee_fit *fit, int most);

/* How far off the prediction of a run may be, one standard deviation of its logarithm: what the
 * runs that count and the priors leave open of the constants it depends on (the inverse of the
 * fit's second derivatives, so scaled that a constant no run tells about is open as its prior
 * says), and what the fit misses of the runs it knows (the median). NaN for runs that count;
 * `spread` has a place per run. After knee_fit_run(). */
void knee_fit_spread(struct knee_fit *fit, double *spread);

/* Back to where the fit started. */
void knee_fit_reset(struct knee_fit *fit);

enum knee_band_class knee_run_class(const struct knee_measured_run *run);
/* The same for E(K): a ratio of two forecasts for one software, which one source can tell about. */
enum knee_band_class knee_run_curve_class(const struct knee_measured_run *run);

/* Fills left_out_band from the held-out errors; `room` has a place per run. */
void knee_judge_bands(struct knee_validation *validation, double *room);

/* Fills band: how many rows the shipped bands hold. */
void knee_count_covered(struct knee_validation *validation);

/* Which step times an efficiency is of. */
enum knee_run_step { KNEE_RUN_MEASURED, KNEE_RUN_PREDICTED, KNEE_RUN_HELD_OUT };
/* Throughput per GPU of a run against that of its anchor. */
double knee_run_efficiency(const struct knee_validation *validation, size_t run, size_t anchor,
                           enum knee_run_step of);

/* Fills left_out_doubt; `room` as above. And doubt and memory_band, of the shipped ones. */
void knee_judge_doubts(struct knee_validation *validation, double *room);
void knee_count_doubts(struct knee_validation *validation);
_Static_assert(KNEE_RUN_DOUBTS == KNEE_DOUBTS, "a row of validate for every doubt");

/* Fills decisions and room of a validation whose results stand; false: out of memory. */
bool knee_judge_decisions(struct knee_validation *validation);

/* Predicts every run with the present values, those that do not count included. */
void knee_fit_predict(struct knee_fit *fit);

#endif
