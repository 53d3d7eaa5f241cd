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
    PUT(text, "{} is in {count} of {count} {} jobs, and in {count} of all {count}.", host->name,
        own, (double)(host->by_slow ? s->slow : s->failed), host->by_slow ? "slow" : "failed",
        host->jobs, s->jobs);
}

static void say_hours_of_jobs(const struct knee_sched_account *s, struct knee_text *text)
{
    PUT(text, "{jobs}, {large} node-hours[, {large} GPU-hours].", s->jobs, s->node_s / 3600,
        s->gpu_s / 3600);
    for (int i = KNEE_SCHED_FAILED; i <= KNEE_SCHED_CANCELLED; i++)
        PUT(text, "[ {}: {count}.]", knee_sched_state_name((enum knee_sched_state)i),
            s->by_state[i]);
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
        PUT(text, "{share} of the node-hours went to failed jobs: {count} of {count}.",
            s->failed_node_s / s->node_s, s->failed, s->jobs);
    else
        PUT(text, "No job failed.");
    if (!alone)
        PUT(text, " ");
    say_hours_of_jobs(s, alone ? &said->reason : text);
    if (alone && s->suspects) {
        PUT(&said->reason, " {share} of the node-hours are in failed jobs.",
            s->failed_node_s / s->node_s);
        PUT(&said->effect, "By chance some host has as many in {share} of such lists.",
            s->host[0].chance);
        PUT(&said->next, "scontrol update nodename={} state=drain reason=knee", s->host[0].name);
    }
    if (s->unnamed)
        PUT(&said->notes, "{} jobs have no node list, or it was cut: sacct -P prints all of it\n",
            s->unnamed);
    if (!alone)
        PUT(text, "\n");
}
