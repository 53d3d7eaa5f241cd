/* SPDX-License-Identifier: MIT */
/* What the closed forms ask of a completed job. */
#ifndef KNEE_JOB_JOB_H
#define KNEE_JOB_JOB_H

#include "knee_plan.h"

/* The MFU that closed forms assume when none is given. */
#define KNEE_USUAL_MFU 0.4

/* The all-reduce that was asked for; NULL: what the library picks. */
const struct knee_algorithm *knee_job_algorithm(const struct knee_job *job);

/* Gradient bytes before compression; 1 where only their time is known. */
double knee_job_bytes(const struct knee_job *job);

/* Fills what is not given; refuses gaps and degrees that do not fit (KNEE_USAGE). On failure *job
 * may be partly filled. */
knee_status knee_tax_job_complete(struct knee_tax_job *job, struct knee_err *err);

#endif
