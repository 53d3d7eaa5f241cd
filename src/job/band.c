/* SPDX-License-Identifier: MIT */
/*
 * How sure predictions are: the one place that says between what 90 of 100 measured values lie. The
 * numbers are residuals of runs whose source the constants were not fitted to (data/bands.csv,
 * data/doubts.csv; docs/validate.md).
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

struct knee_sure knee_band_curve(enum knee_band_class class, double workers, double anchor)
{
    bool known = class == KNEE_BAND_KNOWN;
    struct knee_sure one = doubt(known ? KNEE_DOUBT_CURVE : KNEE_DOUBT_CURVE_ASSUMED);
    double far = sqrt(fabs(log2(workers / anchor)));
    return (struct knee_sure){pow(one.low, far), pow(one.high, far)};
}

struct knee_sure knee_band_mfu(void)
{
    return doubt(KNEE_DOUBT_MFU);
}
