/* SPDX-License-Identifier: MIT */
/*
 * Which of the suspects, and hence which lever. Each rule weighs its own evidence as a share
 * of the step; the largest wins, and what is below 2 % of the step is no bottleneck.
 */
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

static const struct {
    const char *name;
    double (*share)(const struct knee_prediction *);
    unsigned kinds; /* levers that cure it; 0: as the rule on R says */
} rules[KNEE_SUSPECTS] = {
    [KNEE_SUSPECT_NONE] = {"none", NULL, KNEE_LEVER_WORKERS},
    [KNEE_SUSPECT_COMM] = {"exposed communication", exposed_comm, 0},
    [KNEE_SUSPECT_INPUT] = {"starved input", starved_input, KNEE_LEVER_INPUT},
    [KNEE_SUSPECT_STRAGGLER] = {"straggler", straggler, KNEE_LEVER_STRAGGLER | KNEE_LEVER_SYNC},
    [KNEE_SUSPECT_TINY_BATCH] = {"tiny per-GPU batch", tiny_batch,
                                 KNEE_LEVER_BATCH | KNEE_LEVER_HOST | KNEE_LEVER_COMPRESS |
                                     KNEE_LEVER_NETWORK},
    [KNEE_SUSPECT_LARGE_BATCH] = {"large-batch breakdown", large_batch, KNEE_LEVER_FEWER},
    [KNEE_SUSPECT_COPY] = {"exposed copies", exposed_copies, KNEE_LEVER_HOST},
    [KNEE_SUSPECT_IDLE] = {"idle GPU", idle_gpu, KNEE_LEVER_HOST},
};

const char *knee_suspect_name(enum knee_suspect suspect)
{
    return suspect < KNEE_SUSPECTS ? rules[suspect].name : "?";
}

unsigned knee_suspect_kinds(enum knee_suspect suspect)
{
    return rules[suspect].kinds;
}

void knee_judge_suspect(struct knee_prediction *prediction)
{
    struct knee_verdict *verdict = &prediction->verdict;
    const struct knee_row *at = &prediction->at;
    *verdict = (struct knee_verdict){.regime = knee_regime_of(at->ratio)};
    for (int i = KNEE_SUSPECT_NONE + 1; i < KNEE_SUSPECTS; i++) {
        double found = rules[i].share(prediction);
        if (found >= KNEE_NO_BOTTLENECK && found > verdict->suspect_share) {
            verdict->suspect = (enum knee_suspect)i;
            verdict->suspect_share = found;
        }
    }
    if (verdict->suspect == KNEE_SUSPECT_LARGE_BATCH)
        verdict->wall = KNEE_WALL_STATISTICAL;
    else if (at->efficiency < prediction->job.tolerance)
        verdict->wall = KNEE_WALL_SYSTEMS;

    unsigned kinds = rules[verdict->suspect].kinds;
    if (!kinds)
        kinds = knee_regime_kinds(verdict->regime);
    verdict->lever = knee_levers_best(prediction, kinds, KNEE_WORTH_IT);
    if (verdict->lever == SIZE_MAX)
        verdict->lever = knee_levers_best(prediction, ~(unsigned)KNEE_LEVER_WORKERS, KNEE_WORTH_IT);
}
