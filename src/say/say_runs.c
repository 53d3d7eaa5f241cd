/* SPDX-License-Identifier: MIT */
/* knee trace of several runs: one row each. Schema knee.runs/1, in which each run is a whole answer
 * of knee trace. */
#include "knee_reports.h"
#include "say/short.h"

#include <math.h>
#include <string.h>

#define RUN struct knee_trace_report

/* With its folder: runs often differ by nothing else. */
static void get_file(const struct knee_at *at, struct knee_value *out)
{
    const char *file = ((const RUN *)at->row)->traces[0].file, *name = file;
    size_t slashes = 0;
    for (const char *c = file + strlen(file); c > file && slashes < 2; c--)
        if (c[-1] == '/' && ++slashes == 2)
            name = c;
    knee_value_text(out, name);
}
static void get_ranks(const struct knee_at *at, struct knee_value *out)
{
    const struct knee_account *account = ((const RUN *)at->row)->account;
    if (account->world_size > (int64_t)account->rank_count)
        knee_value_printf(out, "%zu of %lld", account->rank_count, (long long)account->world_size);
    else
        knee_value_printf(out, "%zu", account->rank_count);
}
A_NUMBER(get_step, RUN, it->diagnosis->step.wall_s)
A_NUMBER(get_steps, RUN, rint(it->diagnosis->steps))
A_NUMBER(get_compute, RUN, it->diagnosis->step.label_s[KNEE_COMPUTE])
A_NUMBER(get_exposed, RUN, knee_step_exposed_s(&it->diagnosis->step))
GETTER(get_limit, RUN, const struct knee_diagnosis *d = it->diagnosis;
       knee_value_text(out, d->headline == KNEE_SAYS_HEALTHY     ? "healthy"
                            : d->headline == KNEE_SAYS_RECORDING ? knee_recorded_name(d->recording)
                                                                 : knee_suspect_name(d->suspect)))
static void get_late(const struct knee_at *at, struct knee_value *out)
{
    const RUN *run = at->row;
    size_t late = run->diagnosis->late_ranks;
    for (size_t i = 0; i < late && i < 8; i++)
        knee_value_printf(out, "%s%lld", i ? ", " : "",
                          (long long)run->account->ranks[run->account->stragglers[i].rank].rank);
    if (late > 8)
        knee_value_printf(out, " and %zu more", late - 8);
}

static const struct knee_field run_fields[] = {
    KNEE_GET(get_file, "file", "run", TEXT, SCREEN, "first file"),
    KNEE_GET(get_ranks, "ranks", "ranks", TEXT, SCREEN, "recorded, of all"),
    KNEE_GET(get_step, "step_s", "step", TIME, SCREEN, "mean step"),
    KNEE_GET(get_limit, "suspect", "limited by", TEXT, SCREEN, "main cause"),
    KNEE_GET(get_compute, "compute_s", "compute", TIME, SCREEN, "per step"),
    KNEE_GET(get_exposed, "exposed_comm_s", "exposed comm.", TIME, SCREEN, "per step"),
    KNEE_GET(get_steps, "steps", "steps", COUNT, FULL, "complete ones"),
    KNEE_GET(get_late, "late_ranks", "late ranks", TEXT, FULL, ""),
};
static const struct knee_field fields[] = {
    KNEE_ROWS(struct knee_runs_report, runs, count, "runs", run_fields, "one row per run"),
};
static const struct knee_view views[] = {{.list = "runs", .most = 8}};

static void say(const void *result, struct knee_said *said)
{
    const struct knee_runs_report *r = result;
    PUT(&said->title, "{} runs in these files", r->count);
    PUT(&said->headline, "Found {} runs; name the files of one for its full report.", r->count);
    if (r->curve)
        PUT(&said->reason, "They are one job at several GPU counts: the curve is above.");
    else if (r->worlds)
        PUT(&said->reason, "They are different jobs, GPUs or recordings without steps, so there is "
                           "no scaling curve.");
    PUT(&said->next, "knee trace FILES OF ONE RUN  |  knee diff BEFORE AFTER");
}

const struct knee_answer_type knee_runs_answer = {
    .schema = "knee.runs/1", KNEE_FIELDS(fields), KNEE_VIEWS(views), .say = say};
