/* SPDX-License-Identifier: MIT */
/* The rule on R: what to do first. */
#include "judge/judge.h"

#include <math.h>

static const struct knee_regime rules[] = {
    {0.1, "R <= 0.1", "scale out"},
    {0.5, "0.1 < R <= 0.5", "overlap first"},
    {1.0, "0.5 < R <= 1", "bigger local batch or compress"},
    {INFINITY, "R > 1", "stop adding GPUs"},
};
#define RULES (sizeof rules / sizeof *rules)

const struct knee_regime *knee_regime_of(double ratio)
{
    size_t i = 0;
    while (i < RULES - 1 && !(ratio <= rules[i].max_ratio))
        i++;
    return &rules[i];
}
