/* SPDX-License-Identifier: MIT */
/*
 * Intervals of predictions: the only place that defines the range that holds 90% of measured
 * values. The numbers are residuals of runs whose source was left out of the fit (data/bands.csv,
 * data/doubts.csv; docs/evidence/validate.md).
 */
#include "job/profile.h"

#include <math.h>

struct knee_sure knee_band_step(enum knee_band_class class, double step_s)
{
    const struct knee_band *band = &knee_bands[class];
    return (struct knee_sure){band->low * step_s, band->high * step_s};
}

static struct knee_sure doubt(enum knee_doubt_kind kind)
{
    return (struct knee_sure){knee_doubts[kind].low, knee_doubts[kind].high};
}

#define UNSEEN 0.04 /* of E(K) that is lost where the forecast sees no loss */
#define TIMES  3    /* what is lost may be so many times what is forecast, and no more */

struct knee_sure knee_band_curve(enum knee_band_class class, double workers, double anchor,
                                 double efficiency)
{
    bool known = class == KNEE_BAND_KNOWN;
    if (workers == anchor)
        return (struct knee_sure){1, 1};
    struct knee_sure sure = doubt(known ? KNEE_DOUBT_CURVE : KNEE_DOUBT_CURVE_ASSUMED);
    double lost = fmax(0, 1 - efficiency);
    if (known) /* otherwise the loss forecast may miss what loses most */
        sure.low = fmax(sure.low, 1 - (UNSEEN + (TIMES - 1) * lost) / efficiency);
    return sure;
}

struct knee_sure knee_band_mfu(void)
{
    return doubt(KNEE_DOUBT_MFU);
}
