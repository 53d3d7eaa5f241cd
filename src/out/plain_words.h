/* SPDX-License-Identifier: MIT */
/* A verdict for who has no time: what to do, why, what it buys. The sentence beside it has the
 * inequalities. */
#ifndef KNEE_OUT_PLAIN_WORDS_H
#define KNEE_OUT_PLAIN_WORDS_H

#include "knee_judge.h"
#include "knee_out.h"
#include "knee_plan.h"
#include "out/json.h"

struct knee_plain {
    struct knee_text advice, reason, gain; /* one or two sentences each; may be empty */
};

void knee_prediction_plain(const struct knee_prediction *prediction, struct knee_plain *plain);
void knee_tax_plain(const struct knee_tax *tax, struct knee_plain *plain);
void knee_plan_plain(const struct knee_plan_answer *answer, struct knee_plain *plain);

static inline struct knee_plain knee_plain_empty(const struct knee_alloc *alloc)
{
    return (struct knee_plain){{.alloc = alloc}, {.alloc = alloc}, {.alloc = alloc}};
}

/* One line after the other, the first with emphasis where there is colour; releases them. */
void knee_say_plain(struct knee_plain *plain, enum knee_format format,
                    const struct knee_style *style, struct knee_text *text);
/* "do", "why" and "buys"; releases them. */
void knee_json_plain(struct knee_json *json, struct knee_plain *plain);

#endif
