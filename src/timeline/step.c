/* SPDX-License-Identifier: MIT */
/* The definitions of R, gamma and efficiency, each in one place. */
#include "knee_timeline.h"

static const char *const names[KNEE_LABELS] = {
    [KNEE_COMPUTE] = "compute",
    [KNEE_TRANSFER] = "exposed transfer",
    [KNEE_WAIT] = "exposed wait",
    [KNEE_COPY] = "exposed copy",
    [KNEE_STARVED] = "starved input",
    [KNEE_HOST] = "host-bound",
    [KNEE_IDLE] = "idle",
};

const char *knee_label_name(enum knee_label label)
{
    return label < KNEE_LABELS ? names[label] : "?";
}

double knee_step_exposed_s(const struct knee_step *step)
{
    return step->label_s[KNEE_TRANSFER] + step->label_s[KNEE_WAIT];
}

double knee_step_busy_s(const struct knee_step *step)
{
    return step->wall_s - step->label_s[KNEE_STARVED] - step->label_s[KNEE_HOST] -
           step->label_s[KNEE_IDLE];
}

double knee_step_ratio(const struct knee_step *step)
{
    return knee_step_exposed_s(step) / step->label_s[KNEE_COMPUTE];
}

double knee_step_gamma(const struct knee_step *step)
{
    return step->comm_s / step->label_s[KNEE_COMPUTE];
}

double knee_step_efficiency(const struct knee_step *step)
{
    return 1 / (1 + knee_step_ratio(step));
}
