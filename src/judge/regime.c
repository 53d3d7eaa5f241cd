/* SPDX-License-Identifier: MIT */
/* The rule on R: what to do first. */
#include "judge/judge.h"

#include <math.h>

static const struct {
    struct knee_regime regime;
    unsigned kinds;
} rules[] = {
    {{0.1, "R <= 0.1", "scale out"}, KNEE_LEVER_WORKERS},
    {{0.5, "0.1 < R <= 0.5", "overlap first"}, KNEE_LEVER_OVERLAP},
    {{1.0, "0.5 < R <= 1", "bigger local batch or compress"},
     KNEE_LEVER_BATCH | KNEE_LEVER_COMPRESS},
    {{INFINITY, "R > 1", "stop adding workers"},
     KNEE_LEVER_BATCH | KNEE_LEVER_OVERLAP | KNEE_LEVER_COMPRESS | KNEE_LEVER_SYNC |
         KNEE_LEVER_NETWORK},
};
#define RULES (sizeof rules / sizeof *rules)

const struct knee_regime *knee_regime_of(double ratio)
{
    size_t i = 0;
    while (i < RULES - 1 && !(ratio <= rules[i].regime.max_ratio))
        i++;
    return &rules[i].regime;
}

unsigned knee_regime_kinds(const struct knee_regime *regime)
{
    size_t i = 0;
    while (i < RULES - 1 && &rules[i].regime != regime)
        i++;
    return rules[i].kinds;
}
