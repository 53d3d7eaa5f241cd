/* SPDX-License-Identifier: MIT */
/* knee scale: jobs of a scheduler, as sacct lists them. */
#include "say/scale_fields.h"
#include "say/short.h"

#include <math.h>

/* "node03 is in 4 of 5 failed jobs, and in 6 of all 40." */
static void say_host(const struct knee_sched_account *s, struct knee_text *text)
{
    const struct knee_sched_suspect *host = &s->host[0];
    size_t own = host->by_slow ? host->slow : host->failed;
    knee_text_printf(
        text, "%s is in %s of %s %s jobs, and in %s of all %s.", host->name, SAY_COUNT((double)own),
        SAY_COUNT((double)(host->by_slow ? s->slow : s->failed)), host->by_slow ? "slow" : "failed",
        SAY_COUNT((double)host->jobs), SAY_COUNT((double)s->jobs));
}

static void say_hours_of_jobs(const struct knee_sched_account *s, struct knee_text *text)
{
    knee_text_printf(text, "%s, %s node-hours", knee_say_count((double)s->jobs, "job").s,
                     SAY_LARGE(s->node_s / 3600));
    if (!isnan(s->gpu_s))
        knee_text_printf(text, ", %s GPU-hours", SAY_LARGE(s->gpu_s / 3600));
    knee_text_puts(text, ".");
    for (int i = KNEE_SCHED_FAILED; i <= KNEE_SCHED_CANCELLED; i++)
        if (s->by_state[i])
            knee_text_printf(text, " %s: %s.", knee_sched_state_name((enum knee_sched_state)i),
                             SAY_COUNT((double)s->by_state[i]));
}

/* The jobs alone are the answer; with logs they follow the table. */
void knee_say_jobs(const struct knee_scale_answer *a, struct knee_said *said)
{
    const struct knee_sched_account *s = &a->sched;
    bool alone = a->row_count == 0;
    struct knee_text *text = alone ? &said->headline : &said->after;
    if (s->suspects)
        say_host(s, text);
    else if (s->failed)
        knee_text_printf(text, "%s of the node-hours went to failed jobs: %s of %s.",
                         SAY_SHARE(s->failed_node_s / s->node_s), SAY_COUNT((double)s->failed),
                         SAY_COUNT((double)s->jobs));
    else
        knee_text_puts(text, "No job failed.");
    if (!alone)
        knee_text_puts(text, " ");
    say_hours_of_jobs(s, alone ? &said->reason : text);
    if (alone && s->suspects) {
        knee_text_printf(&said->reason, " %s of the node-hours are in failed jobs.",
                         SAY_SHARE(s->failed_node_s / s->node_s));
        knee_text_printf(&said->effect, "By chance some host has as many in %s of such lists.",
                         SAY_SHARE(s->host[0].chance));
        knee_text_printf(&said->next, "scontrol update nodename=%s state=drain reason=knee",
                         s->host[0].name);
    }
    if (s->unnamed)
        knee_text_printf(&said->notes,
                         "%zu jobs have no node list, or it was cut: sacct -P prints all of it\n",
                         s->unnamed);
    if (!alone)
        knee_text_puts(text, "\n");
}
