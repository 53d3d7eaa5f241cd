/* SPDX-License-Identifier: MIT */
#ifndef KNEE_JUDGE_SYMPTOMS_H
#define KNEE_JUDGE_SYMPTOMS_H

#include "knee_scale.h"

/* Fills answer->suspects from its rows, question and batch fit. */
void knee_symptoms_judge(struct knee_scale_answer *answer);

#endif
