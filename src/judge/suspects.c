/* SPDX-License-Identifier: MIT */
/*
 * Chooses the bottleneck among the suspects. Each rule weighs its own evidence as a share of the
 * step. The largest share wins; a share below 2 % of the step is not a bottleneck.
 */
#include "base/keys.h"
#include "judge/judge.h"

#include <math.h>
#include <stdint.h>

static double share(const struct knee_prediction *p, enum knee_label label)
{
    return p->at.step.label_s[label] / p->at.step.wall_s;
}

/* Overlap has done what it can when all that could hide behind compute does. */
static bool overlap_is_spent(const struct knee_prediction *p)
{
    double eta = isnan(p->terms.hidden) ? p->terms.overlap : p->terms.hidden;
    return eta >= 0.95;
}

static double exposed_comm(const struct knee_prediction *p)
{
    return overlap_is_spent(p) && p->at.gamma > 1 ? 0 : share(p, KNEE_TRANSFER);
}

/* Nothing left to hide, and still more communication than compute: too little work each. */
static double tiny_batch(const struct knee_prediction *p)
{
    return overlap_is_spent(p) && p->at.gamma > 1 ? share(p, KNEE_TRANSFER) : 0;
}

static double starved_input(const struct knee_prediction *p)
{
    return share(p, KNEE_STARVED);
}

static double straggler(const struct knee_prediction *p)
{
    return share(p, KNEE_WAIT);
}

/* Examples wasted, once the batch is past the critical size (where they are half). */
static double large_batch(const struct knee_prediction *p)
{
    double ratio = p->walls.examples_ratio;
    return ratio >= 2 ? 1 - 1 / ratio : 0;
}

static double exposed_copies(const struct knee_prediction *p)
{
    return share(p, KNEE_COPY);
}

static double idle_gpu(const struct knee_prediction *p)
{
    return share(p, KNEE_IDLE);
}

/* A rule without a share is of recordings only. */
static const struct {
    const char *name;
    double (*share)(const struct knee_prediction *);
} rules[KNEE_SUSPECTS] = {
    [KNEE_SUSPECT_NONE] = {"none", NULL},
    [KNEE_SUSPECT_COMM] = {"exposed communication", exposed_comm},
    [KNEE_SUSPECT_INPUT] = {"starved input", starved_input},
    [KNEE_SUSPECT_STRAGGLER] = {"straggler", straggler},
    [KNEE_SUSPECT_TINY_BATCH] = {"tiny per-GPU batch", tiny_batch},
    [KNEE_SUSPECT_LARGE_BATCH] = {"large-batch breakdown", large_batch},
    [KNEE_SUSPECT_COPY] = {"exposed copies", exposed_copies},
    [KNEE_SUSPECT_IDLE] = {"idle GPU", idle_gpu},
    [KNEE_SUSPECT_UNFUSED] = {"unfused kernels", NULL},
};

const char *knee_suspect_name(enum knee_suspect suspect)
{
    return suspect < KNEE_SUSPECTS ? rules[suspect].name : "?";
}

/* Changes of the GPU count are offered only if the count is the problem, or if no other suspect is
 * found: up to R = 0.1 the rule is to scale out. */
static unsigned barred_for(const struct knee_prediction *p, double ratio)
{
    const struct knee_verdict *verdict = &p->verdict;
    /* Every framework overlaps, so overlap is not advised if its value is only assumed. Measured
     * times follow the textbook's formulas. */
    size_t row = knee_keys_find(&knee_job_keys, "overlap");
    bool assumed = p->job.source[row] == KNEE_DEFAULT && isnan(p->job.comm_time_s);
    unsigned done = assumed ? KNEE_LEVER_OVERLAP : 0;
    bool scale_out = verdict->suspect == KNEE_SUSPECT_NONE ||
                     (verdict->suspect == KNEE_SUSPECT_COMM && ratio <= 0.1);
    if (verdict->suspect == KNEE_SUSPECT_LARGE_BATCH)
        return done | KNEE_LEVER_WORKERS;
    return done | (scale_out ? KNEE_LEVER_FEWER : KNEE_LEVER_FEWER | KNEE_LEVER_WORKERS);
}

void knee_judge_suspect(struct knee_prediction *prediction)
{
    struct knee_verdict *verdict = &prediction->verdict;
    const struct knee_row *at = &prediction->at;
    *verdict = (struct knee_verdict){.regime = knee_regime_of(at->ratio)};
    for (int i = KNEE_SUSPECT_NONE + 1; i < KNEE_SUSPECTS; i++) {
        double found = rules[i].share ? rules[i].share(prediction) : 0;
        if (found >= KNEE_NO_BOTTLENECK && found > verdict->suspect_share) {
            verdict->suspect = (enum knee_suspect)i;
            verdict->suspect_share = found;
        }
    }
    if (verdict->suspect == KNEE_SUSPECT_LARGE_BATCH)
        verdict->wall = KNEE_WALL_STATISTICAL;
    else if (at->efficiency < prediction->job.tolerance)
        verdict->wall = KNEE_WALL_SYSTEMS;

    verdict->lever = knee_levers_best(prediction->levers, prediction->lever_count,
                                      barred_for(prediction, at->ratio), KNEE_WORTH_IT);
}
