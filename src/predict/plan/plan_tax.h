/* SPDX-License-Identifier: MIT */
/* The tax of each axis as the plan with these degrees pays it. */
#ifndef KNEE_PREDICT_PLAN_PLAN_TAX_H
#define KNEE_PREDICT_PLAN_PLAN_TAX_H

#include "knee_plan.h"

/* Fills axes, compute, bubble, step, MFU and memory of a tax whose job is complete. */
knee_status knee_tax_by_plan(struct knee_tax *tax, struct knee_err *err);

#endif
