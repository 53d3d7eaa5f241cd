/* SPDX-License-Identifier: MIT */
/*
 * Prometheus' text format 0.0.4, as node_exporter's text collector takes it: HELP and TYPE before
 * each family, base units, no timestamps (it would refuse the file). A family is a row.
 */
#include "out/show_watch.h"

#include "base/number.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

static void put_label(struct knee_text *text, const char *value)
{
    for (const char *p = value; *p; p++)
        if (*p == '\\' || *p == '"')
            knee_text_printf(text, "\\%c", *p);
        else if (*p == '\n')
            knee_text_puts(text, "\\n");
        else
            knee_text_add(text, p, 1);
}

static void put_family(struct knee_text *text, const char *name, const char *type, const char *help)
{
    knee_text_printf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_value(struct knee_text *text, double value)
{
    char number[40];
    knee_number_exact(number, sizeof number, value);
    knee_text_printf(text, " %s\n", number);
}

/* ---- Of the job ---- */

static double step_s(const struct knee_watch_report *r)
{
    return r->watch->step_s;
}

static double sampled(const struct knee_watch_report *r, double (*of)(const struct knee_step *))
{
    struct knee_step step = knee_watch_step(r);
    return step.wall_s > 0 ? of(&step) : NAN;
}

static double ratio(const struct knee_watch_report *r)
{
    return sampled(r, knee_step_ratio);
}

static double efficiency(const struct knee_watch_report *r)
{
    return sampled(r, knee_step_efficiency);
}

static double exposed_s(const struct knee_watch_report *r)
{
    return sampled(r, knee_step_exposed_s);
}

static double wait_s(const struct knee_watch_report *r)
{
    return r->watch->wait_s;
}

static double late_rank(const struct knee_watch_report *r)
{
    const struct knee_watch *w = r->watch;
    return w->late_rank == SIZE_MAX ? -1 : (double)w->ranks[w->late_rank].about->rank;
}

static double trend(const struct knee_watch_report *r)
{
    return knee_watch_trend(r->watch);
}

static double change_step(const struct knee_watch_report *r)
{
    const struct knee_change *change = &r->watch->step_change;
    return change->found ? (double)r->watch->points[change->at].step : NAN;
}

static double ranks(const struct knee_watch_report *r)
{
    return (double)r->watch->rank_count;
}

static double silent(const struct knee_watch_report *r)
{
    return (double)r->watch->silent;
}

static double age_s(const struct knee_watch_report *r)
{
    return r->watch->age_s;
}

static double dollars(const struct knee_watch_report *r)
{
    return r->watch->dollars;
}

static double stall_dollars(const struct knee_watch_report *r)
{
    return r->watch->stall_dollars;
}

static double joules(const struct knee_watch_report *r)
{
    return r->watch->joules;
}

static double overhead(const struct knee_watch_report *r)
{
    return r->watch->overhead;
}

static double damaged(const struct knee_watch_report *r)
{
    return (double)r->watch->damaged;
}

static const struct {
    const char *name, *help;
    double (*of)(const struct knee_watch_report *);
} families[] = {
    {"knee_step_seconds", "Recent median time of a step, mean over ranks.", step_s},
    {"knee_ratio", "R: exposed communication over compute, of the newest sampled steps.", ratio},
    {"knee_efficiency_ratio", "E = 1 / (1 + R).", efficiency},
    {"knee_exposed_seconds", "Communication that is not hidden, a sampled step.", exposed_s},
    {"knee_wait_seconds", "Waiting in collectives for the last rank, a step, mean over ranks.",
     wait_s},
    {"knee_late_rank", "The rank that keeps the others waiting; -1: nobody does.", late_rank},
    {"knee_step_growth_ratio", "Growth of the step since the start of what is recorded.", trend},
    {"knee_step_change_step", "Step since which steps take longer or shorter.", change_step},
    {"knee_ranks", "Ranks that write.", ranks},
    {"knee_silent_ranks", "Ranks that write nothing while others do.", silent},
    {"knee_age_seconds", "Time since the newest line of any rank.", age_s},
    /* gauges: estimates over a ring that forgets may fall, and counters may not */
    {"knee_cost_dollars", "Price of all ranks' time so far.", dollars},
    {"knee_stall_cost_dollars", "Of it exposed communication, at the share now sampled.",
     stall_dollars},
    {"knee_energy_joules", "Energy so far, by the mean power of what is recorded.", joules},
    {"knee_agent_overhead_ratio", "Share of the job's time that the agent takes, by its own count.",
     overhead},
    {"knee_damaged_lines", "Lines of rings that could not be read.", damaged},
};

/* ---- Of the ranks ---- */

static double rank_step(const struct knee_watch_rank *rank)
{
    return rank->step < 0 ? NAN : (double)rank->step;
}

static double rank_wait_s(const struct knee_watch_rank *rank)
{
    return rank->wait_s;
}

static double rank_late_s(const struct knee_watch_rank *rank)
{
    return rank->late_s;
}

static double rank_power_w(const struct knee_watch_rank *rank)
{
    return rank->power_w;
}

static double rank_clock_hz(const struct knee_watch_rank *rank)
{
    return 1e6 * rank->sm_mhz;
}

static double rank_temp_c(const struct knee_watch_rank *rank)
{
    return rank->temp_c;
}

static const struct {
    const char *name, *help;
    double (*of)(const struct knee_watch_rank *);
} rank_families[] = {
    {"knee_rank_step", "Newest step of the rank.", rank_step},
    {"knee_rank_wait_seconds", "Waiting in collectives, a step.", rank_wait_s},
    {"knee_rank_late_seconds", "What most others wait for this rank, a step.", rank_late_s},
    {"knee_rank_power_watts", "Power of its GPU.", rank_power_w},
    {"knee_rank_sm_clock_hertz", "Clock of its GPU's multiprocessors.", rank_clock_hz},
    {"knee_rank_temperature_celsius", "Temperature of its GPU.", rank_temp_c},
};

static void put_labels(const struct knee_watch_report *r, const struct knee_watch_rank *rank,
                       struct knee_text *text)
{
    knee_text_puts(text, "{job_dir=\"");
    put_label(text, r->name);
    if (rank) {
        knee_text_printf(text, "\",rank=\"%lld\",host=\"", (long long)rank->about->rank);
        put_label(text, rank->about->host);
    }
    knee_text_puts(text, "\"}");
}

static void put_ranks(const struct knee_watch_report *r, size_t family, struct knee_text *text)
{
    bool begun = false;
    for (size_t i = 0; i < r->watch->rank_count; i++) {
        const struct knee_watch_rank *rank = &r->watch->ranks[i];
        double value = rank_families[family].of(rank);
        if (isnan(value))
            continue;
        if (!begun)
            put_family(text, rank_families[family].name, "gauge", rank_families[family].help);
        begun = true;
        knee_text_puts(text, rank_families[family].name);
        put_labels(r, rank, text);
        put_value(text, value);
    }
}

void knee_write_watch_prom(const struct knee_watch_report *report, struct knee_text *text)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        double value = families[i].of(report);
        if (isnan(value))
            continue;
        put_family(text, families[i].name, "gauge", families[i].help);
        knee_text_puts(text, families[i].name);
        put_labels(report, NULL, text);
        put_value(text, value);
    }
    for (size_t i = 0; i < sizeof rank_families / sizeof *rank_families; i++)
        put_ranks(report, i, text);
}
