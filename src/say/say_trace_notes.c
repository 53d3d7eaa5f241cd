/* SPDX-License-Identifier: MIT */
/* What knee trace -v says of the account: R, what the data cannot answer, how steps were cut and
 * ranks matched, the suspects, and products against the peak. */
#include "say/trace_fields.h"

#include "judge/judge.h"
#include "say/numbers.h"

#include <math.h>

void knee_say_formal(const struct knee_trace_report *report, struct knee_text *text)
{
    const struct knee_diagnosis *d = report->diagnosis;
    if (d->step.comm_s <= 0 || isnan(d->ratio)) {
        knee_text_printf(text, "No communication is recorded; compute takes %s of the %s step.",
                         SAY_TIME(d->step.label_s[KNEE_COMPUTE]), SAY_TIME(d->step.wall_s));
        return;
    }
    knee_text_printf(text, "R = %s", SAY(KNEE_AS_NUMBER, d->ratio));
    if (report->account->rank_count > 1 && d->lowest_ratio <= d->highest_ratio)
        knee_text_printf(text, " (%s-%s over %zu ranks)", SAY(KNEE_AS_NUMBER, d->lowest_ratio),
                         SAY(KNEE_AS_NUMBER, d->highest_ratio), report->account->rank_count);
    knee_text_printf(text, ", efficiency %s, overlap %s.", SAY_SHARE(d->efficiency),
                     SAY_SHARE(d->overlap));
}

static void note_account(const struct knee_account *account, const struct knee_diagnosis *d,
                         struct knee_text *text)
{
    static const char *const cut_by[] = {
        [KNEE_STEPS_ANNOTATION] = "steps are cut by annotations: no prof.step() in the trace",
        [KNEE_STEPS_OPTIMIZER] = "steps are cut by the optimizer: no prof.step() in the trace",
        [KNEE_STEPS_SEQUENCE] = "steps are cut by the repeating collectives",
        [KNEE_STEPS_KERNELS] = "steps are cut by the repeating kernels",
        [KNEE_STEPS_NONE] = "no steps in the trace: times are of the whole file",
    };
    if (cut_by[account->step_source])
        knee_text_printf(text, "%s\n", cut_by[account->step_source]);
    if (d->spread.steps > 1)
        knee_text_printf(text, "%zu complete steps: median %s, 95th percentile %s, longest %s\n",
                         d->spread.steps, SAY_TIME(d->spread.median_s), SAY_TIME(d->spread.p95_s),
                         SAY_TIME(d->spread.worst_s));
    if (account->rank_count > 1)
        knee_text_printf(text,
                         "%zu collectives matched, %zu partly, %zu with different ends, %zu calls "
                         "without partners; clocks shifted by %s, ends then within %s\n",
                         account->instances, account->partial, account->loose, account->unmatched,
                         SAY_TIME(1e-9 * fabs((double)account->largest_shift_ns)),
                         SAY_TIME(1e-9 * (double)account->residual_ns));
    if (account->further)
        knee_text_printf(text,
                         "%zu calls past the first 4096 kinds are counted with another kind\n",
                         account->further);
}

static void note_suspects(const struct knee_diagnosis *d, struct knee_text *text)
{
    knee_text_puts(text, "share of the step by suspect:");
    for (int i = KNEE_SUSPECT_NONE + 1; i < KNEE_SUSPECTS; i++)
        if (i != KNEE_SUSPECT_LARGE_BATCH || !(d->gaps & KNEE_GAP_LARGE_BATCH))
            knee_text_printf(text, "%s %s %s", i == KNEE_SUSPECT_NONE + 1 ? "" : ",",
                             knee_suspect_name((enum knee_suspect)i), SAY_SHARE(d->share[i]));
    knee_text_puts(text, "\n");
}

void knee_say_products(const struct knee_roofline *r, struct knee_text *text)
{
    if (!(r->product_s > 0)) {
        knee_text_puts(text, "FLOP/s unknown: no shapes are recorded (record_shapes=True)\n");
        return;
    }
    knee_text_printf(text, "products and attention take %s (%s of compute) at %s",
                     SAY_TIME(r->product_s), SAY_SHARE(r->of_compute),
                     SAY(KNEE_AS_FLOPS, r->flops_per_s));
    if (r->judged_s > 0)
        knee_text_printf(text, ", %s of the peak; their shapes allow %s", SAY_SHARE(r->of_peak),
                         SAY_SHARE(r->shapes_of_peak));
    if (r->judged_s > 0 && !isnan(r->large_s))
        knee_text_printf(text, ", large ones %s", SAY_SHARE(r->large_of_peak));
    knee_text_puts(text, "\n");
}

void knee_say_account(const struct knee_trace_report *report, struct knee_text *text)
{
    const struct knee_diagnosis *d = report->diagnosis;
    const char *gap;
    knee_say_formal(report, text);
    knee_text_puts(text, "\n");
    for (size_t i = 0; (gap = knee_gap_sentence(d->gaps, i)); i++)
        knee_text_printf(text, "%s\n", gap);
    note_account(report->account, d, text);
    if (d->recording == KNEE_RECORDED_TRAINING)
        note_suspects(d, text);
}
