/* SPDX-License-Identifier: MIT */
/* Where in a step time goes, as text and JSON. */
#include "out/show_where.h"

#include <math.h>

#define MS(value)   knee_human(value, KNEE_UNIT_SECONDS).s
#define RATE(value) knee_human(value, KNEE_UNIT_FLOPS).s

/* ---- Products against the roofline ---- */

void knee_json_roofline(struct knee_json *json, const struct knee_roofline *r)
{
    if (!(r->product_s > 0))
        return;
    bool judged = r->judged_s > 0;
    knee_json_open_flat(json, "products", '{');
    knee_json_number(json, "kernels_s", r->product_s);
    knee_json_number(json, "flops", r->flops);
    knee_json_number(json, "flops_per_s", r->flops / r->product_s);
    knee_json_number(json, "judged_s", r->judged_s);
    knee_json_number(json, "judged_flops_per_s", judged ? r->judged_flops / r->judged_s : NAN);
    knee_json_number(json, "peak_flops_per_s", judged ? r->peak_flops : NAN);
    knee_json_number(json, "flops_per_byte", judged ? r->judged_flops / r->judged_bytes : NAN);
    knee_json_number(json, "shapes_reach_s", judged ? r->reach_s : NAN);
    knee_json_number(json, "large_batch_s", judged ? r->large_s : NAN);
    knee_json_number(json, "batch_rows", r->rows);
    knee_json_number(json, "batch_factor", r->mend);
    knee_json_number(json, "batch_factor_step_s", r->mended_s);
    knee_json_number(json, "optimizer_s", r->optimizer_s);
    knee_json_close(json, '}');
}

void knee_say_roofline(const struct knee_account *account, const struct knee_diagnosis *d,
                       struct knee_text *text)
{
    const struct knee_roofline *r = &d->roofline;
    double compute_s = d->step.label_s[KNEE_COMPUTE];
    (void)account;
    if (!(r->product_s > 0)) {
        knee_text_puts(text, "FLOP/s of products are not known: no shapes are recorded "
                             "(record_shapes=True).");
        return;
    }
    knee_text_printf(text, "Products and attention take %s (%s of compute) at %s", MS(r->product_s),
                     knee_percent(r->product_s / compute_s).s, RATE(r->flops / r->product_s));
    if (!(r->judged_s > 0)) {
        knee_text_puts(text, "; the peak for their type on this GPU is not known.");
        return;
    }
    knee_text_printf(text, ": %s of the peak (%s), where their shapes can reach %s",
                     knee_percent(r->judged_flops / r->judged_s / r->peak_flops).s,
                     RATE(r->peak_flops),
                     knee_percent(r->judged_flops / r->reach_s / r->peak_flops).s);
    if (!isnan(r->large_s))
        knee_text_printf(text, " and large ones %s",
                         knee_percent(r->judged_flops / r->large_s / r->peak_flops).s);
    knee_text_printf(text, "; %.0f FLOPs a byte.", r->judged_flops / r->judged_bytes);
}
