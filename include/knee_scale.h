/* SPDX-License-Identifier: MIT */
/* Scale: training logs, the curve that runs at several worker counts make, and its forecast. What
 * knee.h says of every call holds here; these structs may change with the minor version. */
#ifndef KNEE_SCALE_H
#define KNEE_SCALE_H

#include "knee_judge.h"
#include "knee_plan.h"

#ifdef __cplusplus
extern "C" {
#endif
KNEE_PUBLIC_BEGIN

/* ---- Training logs ------------------------------------------------------------------------- */

#define KNEE_TRAIN_TEXT 96

/* One line of a log that speaks of a step. NaN: it does not say. */
struct knee_train_row {
    double step;         /* its number */
    double step_s;       /* seconds of one step */
    double samples;      /* sequences trained on so far */
    double batch;        /* sequences of all workers in this step */
    double tokens_per_s; /* of all workers */
    double loss, eval_loss;
};

/* How the seconds of a step were found out. */
enum knee_train_timing {
    KNEE_TIMED_NOT,       /* not at all: only losses */
    KNEE_TIMED_PRINTED,   /* printed per step */
    KNEE_TIMED_ELAPSED,   /* differences of printed elapsed time */
    KNEE_TIMED_RATE,      /* batch over samples or tokens per second */
    KNEE_TIMED_STAMP,     /* differences of the lines' time stamps */
    KNEE_TIMED_WHOLE_RUN, /* whole run over its steps */
    KNEE_TRAIN_TIMINGS
};
const char *knee_train_timing_name(enum knee_train_timing timing);

/* Lines are all accounted for: used + facts + other text = lines. */
struct knee_train_counts {
    size_t bytes, lines;
    size_t used;        /* lines that gave a row */
    size_t facts;       /* lines that say something about the job */
    size_t duplicates;  /* rows of a step that was there already (two writers, two formats) */
    size_t other_ranks; /* rows of other ranks than the first that spoke */
    size_t unusable;    /* lines that look like a row and have nothing to use */
    size_t cut;         /* lines longer than the reader keeps */
    size_t thinned;     /* rows left out because there were too many; the others stand for them */
    size_t runs;        /* steps that began again: restarts, or several runs in one file */
    size_t left_out;    /* rows of runs that are not like the longest one */
    size_t warm_up;     /* first rows that are not like the rest */
    size_t outliers;    /* rows of more than 1.5 times the median */
};

struct knee_train_log {
    char name[KNEE_TRAIN_TEXT];
    const char *format; /* static */
    enum knee_train_timing timing;
    struct knee_train_counts counts;
    struct knee_train_row *rows; /* of the runs that were used, in the order of the log */
    size_t row_count, timed;     /* timed: rows with seconds, warm-up left out */
    double median_s, p95_s;      /* of them */
    double error;                /* of the median, a share: 1.25 sigma / sqrt(timed) */
    double outlier_every;        /* steps from one outlier to the next; NaN: no rhythm */
    double outlier_s;            /* what an outlier costs beyond the median step, on average */
    double tokens_per_s;         /* of all workers, median; NaN: not known */
    double tflops;               /* per worker as printed, median; NaN */
    /* What the log says about its job; NaN or empty: nothing. */
    double workers;
    const char *workers_from; /* static: "argument dump", "mesh" ...; "" */
    double batch, micro_batch, seq, params;
    char gpu[KNEE_TRAIN_TEXT], model[KNEE_TRAIN_TEXT];
    struct knee_shape shape; /* from an argument dump or what else was printed; not completed */
    struct knee_plan plan;
    bool has_shape, has_plan; /* layers and hidden size, or a model's name; any degree */
    const struct knee_alloc *alloc;
};

/* Bytes of a log are pushed in pieces of any size; end makes the log of them and frees the reader,
 * as does abandoning it. begin gives NULL when out of memory. KNEE_INPUT when no line of it speaks
 * of a step. */
struct knee_train_reader;
struct knee_train_reader *knee_train_begin(const char *name, const struct knee_alloc *alloc);
void knee_train_push(struct knee_train_reader *reader, const char *data, size_t size);
knee_status knee_train_end(struct knee_train_reader *reader, struct knee_train_log *out,
                           struct knee_err *err);
void knee_train_abandon(struct knee_train_reader *reader);
void knee_train_log_release(struct knee_train_log *log);

/* The formats that are read, for help and lists; NULL past the last. */
const char *knee_train_format_name(size_t row);

KNEE_PUBLIC_END
#ifdef __cplusplus
}
#endif
#endif
