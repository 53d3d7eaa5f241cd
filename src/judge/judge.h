/* SPDX-License-Identifier: MIT */
/* The parts of the judge, each a table of rules or a search, and what they hand each other. */
#ifndef KNEE_JUDGE_JUDGE_H
#define KNEE_JUDGE_JUDGE_H

#include "knee_judge.h"

/* Kinds of lever, so that a rule can prefer some of them. */
enum knee_lever_kind {
    KNEE_LEVER_WORKERS = 1 << 0, /* more of them */
    KNEE_LEVER_FEWER = 1 << 1,   /* or fewer */
    KNEE_LEVER_BATCH = 1 << 2,
    KNEE_LEVER_OVERLAP = 1 << 3,
    KNEE_LEVER_COMPRESS = 1 << 4,
    KNEE_LEVER_SYNC = 1 << 5,
    KNEE_LEVER_NETWORK = 1 << 6, /* link, algorithm, another axis */
    KNEE_LEVER_INPUT = 1 << 7,
    KNEE_LEVER_STRAGGLER = 1 << 8,
    KNEE_LEVER_HOST = 1 << 9,
};

/* Every knee of a job, and the whole worker count with the shortest time to quality. */
/* The last count at the tolerance or better; NaN: none up to KNEE_SEARCH_MAX. */
double knee_tolerance_workers(const struct knee_terms *terms, double tolerance);

/* The same of any curve over workers, on a wider grid than knee_find()'s. */
double knee_last_workers(double (*of)(const void *ctx, double workers), const void *ctx,
                         double most_workers, double least);

/* How sure the closed forms of a completed job are; of one row; of the knee. */
void knee_doubt_init(const struct knee_job *job, struct knee_closed_doubt *out);
void knee_doubt_row(const struct knee_terms *terms, const struct knee_closed_doubt *doubt,
                    struct knee_row *row);
void knee_doubt_knee(const struct knee_terms *terms, const struct knee_closed_doubt *doubt,
                     double tolerance, struct knee_knee *knee);

/* Weights, gradients and optimizer states of so many parameters on one GPU. */
double knee_unsharded_bytes(double params);

void knee_find(const struct knee_terms *terms, double tolerance, struct knee_knee *out,
               double *quality_workers);

/* What levers ask beside the terms of the closed forms. NaN: not known. */
struct knee_lever_facts {
    double params, bytes_per_param;
    double gradient_bytes; /* before compression; 1 where only their time is known */
    double width;          /* of the model */
    double flops_per_s, memory_bytes_per_s, node_bytes_per_s, gpus_per_node;
    bool link_known; /* else there is only what communication took */
    double tolerance, limit_workers, knee_workers;
    unsigned barred; /* kinds of lever that make no sense */
};
struct knee_lever_facts knee_lever_facts_of(const struct knee_job *job,
                                            const struct knee_knee *knee);

/* Fills levers[] and lever_count, at prediction->at. */
void knee_levers(const struct knee_terms *terms, const struct knee_lever_facts *facts,
                 struct knee_prediction *prediction);
/* Row with the most gain among the kinds, or SIZE_MAX when none gains `least`. One that leaves
 * training as it is comes before all that do not. */
size_t knee_levers_best(const struct knee_prediction *prediction, unsigned kinds, double least);

/* What gain counts for ranking: time to quality where that is known. */
double knee_lever_gain(const struct knee_lever *lever);

/* The row of the rule table that holds for R. */
const struct knee_regime *knee_regime_of(double ratio);

/* Kinds that the rule on R prefers. */
unsigned knee_regime_kinds(const struct knee_regime *regime);

/* Kinds of lever that cure a suspect; 0: as the rule on R says. */
unsigned knee_suspect_kinds(enum knee_suspect suspect);

/* The mean over the complete steps of one rank, and how many those are: 1 at least, the whole
 * window where there are no steps. */
struct knee_mean_step {
    struct knee_step step;
    double steps;
};
void knee_mean_steps(const struct knee_account *account, struct knee_mean_step *means);

/* KNEE_SYSTEM when out of memory. */
knee_status knee_step_spread_of(const struct knee_account *account, const struct knee_alloc *alloc,
                                struct knee_step_spread *out, struct knee_err *err);

/* Sets the lever that is advised, of those that the prediction has. */
void knee_diagnosis_choose(struct knee_diagnosis *diagnosis);

/* Fills roofline from the products of the traces; `gpu`: row of the presets, -1: not known. Needs
 * step. */
void knee_find_roofline(const struct knee_account *account, int gpu, struct knee_diagnosis *out);

/* Sets half_empty_s and graphs_help. */
struct knee_where;
void knee_judge_where(const struct knee_diagnosis *diagnosis, struct knee_where *where);

/* Sets slow_wire and what belongs to it; needs step and steps. */
void knee_find_slow_wire(const struct knee_account *account, struct knee_diagnosis *diagnosis);

/* What is below this share of a step is no bottleneck; the least gain of a lever that is advised;
 * the least change of a step that is told at all. */
#define KNEE_NO_BOTTLENECK 0.02
#define KNEE_WORTH_IT      0.01
#define KNEE_WORTH_A_WORD  0.005

/* Fill one part each. */
void knee_judge_walls(struct knee_prediction *prediction, double quality_workers);
void knee_judge_cost(struct knee_prediction *prediction);
void knee_judge_suspect(struct knee_prediction *prediction);

/* Is it a model that is served, not trained? (serving.c) */
bool knee_is_serving(const struct knee_account *account);

#endif
