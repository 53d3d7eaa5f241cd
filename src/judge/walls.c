/* SPDX-License-Identifier: MIT */
/*
 * Two limits that need different fixes. Systems: the hardware idles. Statistical: the batch is
 * above the critical size, so examples are wasted although no hardware idles.
 */
#include "judge/judge.h"

#include <math.h>

static const char *const names[] = {
    [KNEE_WALL_NONE] = "none",
    [KNEE_WALL_SYSTEMS] = "systems",
    [KNEE_WALL_STATISTICAL] = "statistical",
};

const char *knee_wall_name(enum knee_wall wall)
{
    return names[wall];
}

/* K at which the global batch reaches the critical batch; NaN: never. */
static double statistical_workers(const struct knee_job *job, const struct knee_row *at)
{
    if (isnan(job->critical_batch))
        return NAN;
    if (job->scaling == KNEE_STRONG)
        return at->global_batch >= job->critical_batch ? 1 : NAN;
    return fmax(1, job->critical_batch / (at->global_batch / at->workers));
}

void knee_judge_walls(struct knee_prediction *prediction, double quality_workers)
{
    const struct knee_job *job = &prediction->job;
    struct knee_walls *walls = &prediction->walls;
    double systems = prediction->knee.tolerance_workers;
    double statistical = statistical_workers(job, &prediction->at);
    walls->systems_workers = systems;
    walls->statistical_workers = statistical;
    walls->quality_workers = quality_workers;
    walls->examples_ratio = 1 + prediction->at.global_batch / job->critical_batch;
    walls->first = KNEE_WALL_NONE;
    if (!isnan(statistical) && !(systems < statistical))
        walls->first = KNEE_WALL_STATISTICAL;
    else if (!isnan(systems))
        walls->first = KNEE_WALL_SYSTEMS;
}
