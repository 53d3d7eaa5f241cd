/* SPDX-License-Identifier: MIT */
/* knee watch: a running job, its state first, then who holds it up and since when. */
#include "say/short.h"
#include "say/watch_report.h"

#include <math.h>
#include <string.h>

enum { JSON_WIRES = 16, NAMED = 8 };

#define REPORT struct knee_watch_report
#define WATCH  struct knee_watch
#define RANK   struct knee_watch_rank
#define WIRE   struct knee_watch_wire
#define STEP   struct knee_step

#define WATCHED TOP(REPORT)->watch

/* The step that R, E, exposed and wait are of: accounted where it was, else of the ranks' own
 * lines; NULL: nothing was sampled. */
static const STEP *sampled_of(const REPORT *r)
{
    const STEP *step = r->diagnosis ? &r->diagnosis->step : &r->watch->sampled;
    return step->wall_s > 0 ? step : NULL;
}

/* ---- The sampled step ---- */

OBJECT(sampled_object, void, sampled_of(TOP(REPORT)))
WHEN(is_sampled, void, sampled_object(at) != NULL)

static int64_t sampled_number(const REPORT *r)
{
    return r->diagnosis ? r->trace_step : r->watch->sampled_step;
}

A_NUMBER(sampled_step, void, (double)sampled_number(TOP(REPORT)))
A_BOOL(joined, void, TOP(REPORT)->diagnosis != NULL)
A_BOOL(split, void, TOP(REPORT)->diagnosis != NULL && TOP(REPORT)->diagnosis->split)
A_NUMBER(ratio, void, knee_step_ratio(it))
A_NUMBER(efficiency, void, knee_step_efficiency(it))
A_NUMBER(exposed, void, knee_step_exposed_s(it))

static const struct knee_straggler *straggler_of(const struct knee_at *at)
{
    const REPORT *r = TOP(REPORT);
    return r->diagnosis && r->diagnosis->late_ranks ? &r->account->stragglers[0] : NULL;
}

WHEN(has_straggler, void, straggler_of(at) != NULL)
A_NUMBER(straggler_rank, void, (double)TOP(REPORT)->account->ranks[straggler_of(at)->rank].rank)
A_TEXT(straggler_cause, void, knee_label_name(straggler_of(at)->cause))

#define ONLY(function, name, look, words, ...) KEY_BY(function, name, look, words, __VA_ARGS__)
#define LABEL(label, name)                     KEY(STEP, label_s[label], name, TIME, "of the step")
static const struct knee_field sampled_fields[] = {
    ONLY(sampled_step, "step", COUNT, "number of the step"),
    ONLY(joined, "joined", YES_NO, "all ranks sampled it and it was read as a trace"),
    ONLY(split, "split", YES_NO, "wait and transfer are separate"),
    ONLY(ratio, "R", NUMBER, "R: exposed communication over compute, of the newest sampled steps.",
         .metric = "knee_ratio"),
    ONLY(efficiency, "E", SHARE, "E = 1 / (1 + R).", .metric = "knee_efficiency_ratio"),
    ONLY(exposed, "exposed_s", TIME, "Communication that is not hidden, per sampled step.",
         .metric = "knee_exposed_seconds"),
    KEY(STEP, wall_s, "step_s", TIME, "its time"),
    LABEL(KNEE_COMPUTE, "compute_s"),
    LABEL(KNEE_TRANSFER, "transfer_s"),
    LABEL(KNEE_WAIT, "wait_s"),
    LABEL(KNEE_COPY, "copy_s"),
    LABEL(KNEE_STARVED, "starved_s"),
    LABEL(KNEE_HOST, "host_s"),
    LABEL(KNEE_IDLE, "idle_s"),
    ONLY(straggler_rank, "late_rank", COUNT, "the straggler of that step", .when = has_straggler),
    ONLY(straggler_cause, "late_cause", TEXT, "what it does longer", .when = has_straggler),
};

/* ---- The late rank, and changes ---- */

WHEN(has_late, void, WATCHED->late_rank != SIZE_MAX)

static const RANK *late_of(const WATCH *w)
{
    return &w->ranks[w->late_rank];
}

A_NUMBER(late_rank, void, (double)late_of(WATCHED)->about->rank)
A_NUMBER(late_or_none, void, has_late(at) ? (double)late_of(WATCHED)->about->rank : -1)
A_TEXT(late_host, void, late_of(WATCHED)->about->host)

static void late_cause(const struct knee_at *at, struct knee_value *out)
{
    static const char *const causes[] = {[KNEE_WATCH_UNKNOWN] = "unknown",
                                         [KNEE_WATCH_HOT] = "hot",
                                         [KNEE_WATCH_POWER] = "power",
                                         [KNEE_WATCH_CLOCK] = "clock",
                                         [KNEE_WATCH_LABEL] = "label"};
    const WATCH *w = WATCHED;
    knee_value_text(out,
                    w->cause == KNEE_WATCH_LABEL ? knee_label_name(w->label) : causes[w->cause]);
}

static const struct knee_field late_fields[] = {
    ONLY(late_rank, "rank", COUNT, "the rank that the others wait for"),
    ONLY(late_host, "host", TEXT, "its node"),
    KEY(WATCH, late_s, "late_s", TIME, "what the others wait per step"),
    ONLY(late_cause, "cause", TEXT, "hot, power, clock, a label of the step, or unknown"),
};

A_NUMBER(since_step, struct knee_change, (double)WATCHED->points[it->at].step)
A_BOOL(or_before, struct knee_change, knee_watch_gap(WATCHED, it->at))
WHEN(of_a_rank, void, at->row == &WATCHED->late_change && WATCHED->late_change_rank != SIZE_MAX)
A_NUMBER(change_rank, void, (double)WATCHED->ranks[WATCHED->late_change_rank].about->rank)

#define CHANGED(member, name, look, words) KEY(struct knee_change, member, name, look, words)
static const struct knee_field change_fields[] = {
    ONLY(since_step, "since_step", COUNT, "first step after the change"),
    ONLY(or_before, "or_before", YES_NO, "steps before it were not read"),
    ONLY(change_rank, "rank", COUNT, "whose lateness changed", .when = of_a_rank),
    CHANGED(before, "before_s", TIME, "before"),
    CHANGED(after, "after_s", TIME, "after"),
    CHANGED(chance, "chance", NUMBER, "probability of such a change by chance"),
};

WHEN(step_changed, void, WATCHED->step_change.found)
WHEN(late_changed, void, WATCHED->late_change.found)
A_NUMBER(change_step, void,
         WATCHED->step_change.found ? (double)WATCHED->points[WATCHED->step_change.at].step
                                    : (double)NAN)

/* ---- Lists ---- */

ROW_OF(alarm_row, void, index < TOP(REPORT)->alarm_count ? &TOP(REPORT)->states[index] : NULL)
A_TEXT(alarm_when, void, TOP(REPORT)->alarm_words[at->index])

#define ALARM(member, name, look, words) KEY(struct knee_alarm_state, member, name, look, words)
static const struct knee_field alarm_fields[] = {
    ONLY(alarm_when, "when", TEXT, "the condition"),
    ALARM(goes, "goes", YES_NO, "it holds, and has held for so long"),
    ALARM(value, "value", NUMBER, "now"),
    ALARM(since_step, "since_step", COUNT, "-1: it does not hold"),
    ALARM(held_s, "held_s", TIME, "how long it has held"),
};

A_NUMBER(trace_bytes, REPORT, (double)it->trace_bytes)
A_NUMBER(damaged, REPORT, (double)it->watch->damaged)
A_NUMBER(no_line, REPORT, (double)it->watch->left_out)
A_NUMBER(partial, REPORT, (double)it->watch->partial)

static const struct knee_field loss_fields[] = {
    ONLY(trace_bytes, "trace_bytes", BYTES, "of sampled steps too large to read here"),
    KEY(REPORT, earlier, "earlier_folders", COUNT, "of earlier starts of ranks"),
    KEY(REPORT, unusable, "unusable_folders", COUNT, "without a usable line"),
    ONLY(damaged, "damaged_lines", COUNT, "Lines of rings that could not be read.",
         .metric = "knee_damaged_lines"),
    ONLY(no_line, "collectives_without_line", COUNT, "the recorder left them out"),
    ONLY(partial, "collectives_partial", COUNT, "not found on all their ranks"),
};

ROW_OF(wire_row, void,
       index < WATCHED->wire_count && index < JSON_WIRES ? &WATCHED->wires[index] : NULL)
A_NUMBER(wire_bytes, WIRE, (double)it->bytes)
A_NUMBER(wire_rank, WIRE, (double)WATCHED->ranks[it->a_rank].about->rank)

static const struct knee_field wire_fields[] = {
    KNEE_FIELD(WIRE, op_name, "op", "collective", TEXT, FULL, "operation"),
    KNEE_GET(wire_bytes, "bytes", "size", MESSAGE, FULL, "message size"),
    KNEE_FIELD(WIRE, members, "ranks", "ranks", COUNT, FULL, "ranks of the group"),
    ONLY(wire_rank, "a_rank", COUNT, "one of them"),
    KNEE_FIELD(WIRE, calls, "calls", "calls", COUNT, FULL, "calls joined"),
    KNEE_FIELD(WIRE, wire_s, "wire_s", "transfer", TIME, FULL, "of one call, without waiting"),
    KNEE_FIELD(WIRE, bus_bytes_per_s, "bus_bytes_per_s", "bus bandwidth", RATE, FULL,
               "bus bandwidth"),
    KNEE_FIELD(WIRE, slowdown, "over_others", "slower by", TIMES, FULL,
               "time over the same on other communicators"),
};

ROW_OF(rank_row, void, index < WATCHED->rank_count ? &WATCHED->ranks[index] : NULL)
A_NUMBER(rank_number, RANK, (double)it->about->rank)
A_TEXT(rank_host, RANK, it->about->host)
GETTER(rank_compute, RANK, const STEP *step = &it->step_sampled;
       knee_value_number(out, step->wall_s > 0 ? step->label_s[KNEE_COMPUTE] : (double)NAN))
GETTER(rank_exposed, RANK, const STEP *step = &it->step_sampled;
       knee_value_number(out, step->wall_s > 0 ? knee_step_exposed_s(step) : (double)NAN))
A_NUMBER(rank_clock, RANK, 1e6 * it->sm_mhz)
A_NUMBER(rank_last, RANK, it->step < 0 ? (double)NAN : (double)it->step)
A_TEXT(rank_mark, RANK,
       it->silent                          ? "<- silent"
       : (WATCHED->late_rank == at->index) ? "<- straggler"
                                           : "")

static const struct knee_field rank_fields[] = {
    KNEE_GET(rank_number, "rank", "rank", COUNT, SCREEN, "rank", .label = true),
    KNEE_GET(rank_host, "host", "node", TEXT, SCREEN, "its node", .label = true),
    KNEE_FIELD(RANK, step, "step", "step", COUNT, FULL, "newest step"),
    KNEE_METRIC(rank_last, "knee_rank_step", "Newest step of the rank."),
    KNEE_FIELD(RANK, step_s, "step_s", "time", TIME, FULL, "of a step"),
    KNEE_GET(rank_compute, "compute_s", "compute", TIME, SCREEN,
             "compute of its newest sampled step"),
    KNEE_GET(rank_exposed, "exposed_s", "exposed", TIME, FULL,
             "communication that compute does not hide"),
    KNEE_FIELD(RANK, wait_s, "wait_s", "wait", TIME, SCREEN, "Waiting in collectives, per step.",
               .metric = "knee_rank_wait_seconds"),
    KNEE_FIELD(RANK, late_s, "late_s", "delays others by", TIME, SCREEN,
               "What most others wait for this rank, per step.",
               .metric = "knee_rank_late_seconds"),
    KNEE_FIELD(RANK, sm_mhz, "sm_mhz", "MHz", COUNT, FULL, "clock of its GPU"),
    KNEE_METRIC(rank_clock, "knee_rank_sm_clock_hertz", "Clock of its GPU's multiprocessors."),
    KNEE_FIELD(RANK, power_w, "power_w", "power", WATTS, FULL, "Power of its GPU.",
               .metric = "knee_rank_power_watts"),
    KNEE_FIELD(RANK, temp_c, "temp_c", "C", COUNT, FULL, "Temperature of its GPU.",
               .metric = "knee_rank_temperature_celsius"),
    KEY(RANK, joules, "joules", JOULES, "energy so far"),
    KEY(RANK, silent, "silent", YES_NO, "writes nothing while others do"),
    KNEE_GET(rank_mark, NULL, "", TEXT, SCREEN, "what stands out"),
};

/* ---- The answer ---- */

static const char *const states[] = {
    [KNEE_WATCH_RUNNING] = "RUNNING", [KNEE_WATCH_STALE] = "STALE", [KNEE_WATCH_HUNG] = "HUNG"};

A_TEXT(state_word, void, states[WATCHED->state])
A_NUMBER(trend, void, knee_watch_trend(WATCHED))

#define OF_JOB(member, name, look, words, ...) KEY(WATCH, member, name, look, words, __VA_ARGS__)
static const struct knee_field job_fields[] = {
    OF_JOB(step, "step", COUNT, "newest step; -1: no steps were found"),
    OF_JOB(first_step, "first_step", COUNT, "oldest step that was read"),
    OF_JOB(world, "world", COUNT, "ranks of the job; -1: not known"),
    OF_JOB(step_s, "step_s", TIME, "Recent median time of a step, mean over ranks.",
           .metric = "knee_step_seconds"),
    OF_JOB(first_step_s, "first_step_s", TIME, "the same of the first steps"),
    ONLY(trend, "trend", CHANGE, "Growth of the step since the start of what is recorded.",
         .metric = "knee_step_growth_ratio"),
    OF_JOB(wait_s, "wait_s", TIME,
           "Waiting in collectives for the last rank, per step, mean over ranks.",
           .metric = "knee_wait_seconds"),
    OF_JOB(age_s, "age_s", TIME, "Time since the newest line of any rank.",
           .metric = "knee_age_seconds"),
    OF_JOB(silent, "silent", COUNT, "Ranks that write nothing while others do.",
           .metric = "knee_silent_ranks"),
    OF_JOB(rank_count, "rank_count", COUNT, "Ranks that write.", .metric = "knee_ranks"),
    OF_JOB(meetings, "joined", COUNT, "collectives found on all their ranks"),
    KNEE_OBJECT(sampled_object, "sampled", sampled_fields, "the newest sampled step",
                .when = is_sampled),
    KNEE_METRIC(late_or_none, "knee_late_rank",
                "The rank that keeps the others waiting; -1: none does."),
    KNEE_GROUP("late", late_fields, "the rank that the others wait for", .when = has_late),
    KNEE_INSIDE(WATCH, step_change, "step_change", change_fields, "steps take longer or shorter",
                .when = step_changed),
    KNEE_METRIC(change_step, "knee_step_change_step",
                "Step since which steps take longer or shorter."),
    KNEE_INSIDE(WATCH, late_change, "late_change", change_fields, "a rank comes later or earlier",
                .when = late_changed),
    /* gauges: estimates over a ring that forgets may fall, and counters may not */
    OF_JOB(dollars, "dollars", DOLLARS, "Price of all ranks' time so far.",
           .metric = "knee_cost_dollars"),
    OF_JOB(stall_dollars, "stall_dollars", DOLLARS,
           "Of it exposed communication, at the share now sampled.",
           .metric = "knee_stall_cost_dollars"),
    OF_JOB(joules, "joules", JOULES, "Energy so far, by the mean power of what is recorded.",
           .metric = "knee_energy_joules"),
    OF_JOB(joules_by_table, "joules_by_table", YES_NO, "from data/power.csv, not from NVML"),
    OF_JOB(overhead, "overhead", SHARE,
           "Share of the job's time that the agent takes, by its own count.",
           .metric = "knee_agent_overhead_ratio"),
};
static const struct knee_field fields[] = {
    KNEE_SENTENCE,
    KEY(REPORT, name, "job_dir", TEXT, "the folder", .label = true),
    ONLY(state_word, "state", TEXT, "`RUNNING`, `STALE` or `HUNG`"),
    KEY(REPORT, hang, "hang", TEXT, "of a job that stands still: what knee hang says"),
    KNEE_AMONG(REPORT, watch, job_fields, .pointer = true),
    KNEE_FIELD(REPORT, command_failures, NULL, NULL, COUNT, DATA,
               "Commands of --run that failed or took over 30 s.",
               .metric = "knee_alarm_command_failures"),
    KNEE_FIELD(REPORT, failed_looks, NULL, NULL, COUNT, DATA,
               "Looks at the folder that failed since the watcher began.",
               .metric = "knee_failed_looks"),
    KNEE_ROWS_BY(alarm_row, "alarms", alarm_fields, "the conditions of --when"),
    KNEE_GROUP("left_out", loss_fields, "what was not read or not used"),
    KNEE_ROWS_BY(wire_row, "collectives", wire_fields, "most time first"),
    KNEE_ROWS_BY(rank_row, "ranks", rank_fields, "one row per rank"),
};

/* Of many ranks those that something is to be said of. */
static bool rank_shown(const struct knee_at *row)
{
    const WATCH *w = ((const REPORT *)knee_top_row(row))->watch;
    bool all = w->rank_count <= NAMED || (!w->silent && w->late_rank == SIZE_MAX);
    return all || ((const RANK *)row->row)->silent || row->index == w->late_rank;
}

static const struct knee_view views[] = {
    {.list = "ranks", .title = "Ranks, per step", .pick = rank_shown},
    {.list = "collectives", .title = "Collectives", .tier = FULL},
};

/* ---- Sentences ---- */

static void say_title(const REPORT *r, struct knee_text *text)
{
    const WATCH *w = r->watch;
    PUT(text, "{}: {.60}, {}[ of {}] rank{}", states[w->state], r->name ? r->name : "job",
        w->rank_count, w->world > (int64_t)w->rank_count ? w->world : 0,
        w->rank_count == 1 ? "" : "s");
    if (w->step >= 0)
        PUT(text, ", step {}, {time} per step", w->step, w->step_s);
    PUT(text, ", updated {time} ago", w->age_s);
}

/* "ALARM: late > 20ms: late is 39.9 ms since step 89." */
static void say_alarm(const REPORT *r, size_t row, struct knee_text *text)
{
    enum knee_unit unit;
    const char *metric = knee_alarm_metric(&r->alarms[row], &unit);
    enum knee_kind kind = unit == KNEE_UNIT_SECONDS    ? TIME
                          : unit == KNEE_UNIT_FRACTION ? SHARE
                                                       : NUMBER;
    PUT(text, "ALARM: {.60}: {} is {} since step {}. ", r->alarm_words[row], metric,
        SAY(kind, r->states[row].value), r->states[row].since_step);
}

/* What makes the rest old or urgent: alarms, a job that stands still. */
static void say_voids(const REPORT *r, struct knee_text *text)
{
    const WATCH *w = r->watch;
    size_t named = 0;
    for (size_t i = 0; i < r->alarm_count; i++) {
        if (r->states[i].goes)
            say_alarm(r, i, text);
    }
    if (w->silent) {
        PUT(text, "HUNG: no update from rank{} ", w->silent == 1 ? "" : "s");
        for (size_t i = 0; i < w->rank_count && named < NAMED; i++)
            if (w->ranks[i].silent)
                PUT(text, "{}{}", named++ ? ", " : "", w->ranks[i].about->rank);
        PUT(text, "{} while others go on.", named < w->silent ? " and more" : "");
    } else if (w->state == KNEE_WATCH_HUNG) {
        PUT(text, "HUNG: its processes live and no step ended for {time}.", w->age_s);
    } else if (w->state == KNEE_WATCH_STALE) {
        PUT(text, "STALE: no update for {time}; this was its last state.", w->age_s);
    }
}

static void say_cause(const WATCH *w, struct knee_text *text)
{
    const RANK *rank = late_of(w);
    const char *is = w->state == KNEE_WATCH_STALE ? "was" : "is";
    switch (w->cause) {
    case KNEE_WATCH_HOT:
        PUT(text, "Its GPU {} hot: {} C, clock {} MHz. ", is, rank->temp_c, rank->sm_mhz);
        break;
    case KNEE_WATCH_POWER:
        PUT(text, "The power limit holds its clock at {} MHz. ", rank->sm_mhz);
        break;
    case KNEE_WATCH_CLOCK:
        PUT(text, "Its clock {} {} MHz, lower than elsewhere. ", is, rank->sm_mhz);
        break;
    case KNEE_WATCH_LABEL:
        PUT(text, "Its {} takes {time} longer than elsewhere. ", knee_label_name(w->label),
            w->label_s);
        break;
    case KNEE_WATCH_UNKNOWN: PUT(text, "Cause unknown: no step sampled yet. "); break;
    }
}

static void say_since(const WATCH *w, const struct knee_change *change, struct knee_text *text)
{
    long long step = (long long)w->points[change->at].step;
    if (knee_watch_gap(w, change->at))
        PUT(text, "between steps {} and {}", (long long)w->points[change->at - 1].step, step);
    else
        PUT(text, "at step {}", step);
}

static void say_changes(const WATCH *w, struct knee_text *text)
{
    if (w->step_change.found) {
        PUT(text, "Steps went from {time} to {time} ", w->step_change.before, w->step_change.after);
        say_since(w, &w->step_change, text);
        PUT(text, ". ");
    } else if (w->late_change_rank != SIZE_MAX && w->late_change.found) {
        PUT(text, "Rank {} became {time} later ", w->ranks[w->late_change_rank].about->rank,
            w->late_change.after - w->late_change.before);
        say_since(w, &w->late_change, text);
        PUT(text, ". ");
    }
}

static void say_wire(const WATCH *w, struct knee_text *text)
{
    if (w->slow_wire == SIZE_MAX)
        return;
    const WIRE *wire = &w->wires[w->slow_wire];
    PUT(text,
        "Slow link: {} of {message} on rank {}'s communicator takes {times} as long as on others "
        "like it. ",
        wire->op_name, wire->bytes, w->ranks[wire->a_rank].about->rank, wire->slowdown);
}

static void say_headline(const REPORT *r, struct knee_said *said)
{
    const WATCH *w = r->watch;
    bool past = w->state != KNEE_WATCH_RUNNING;
    const STEP *step = sampled_of(r);
    if (past && r->hang) {
        knee_text_puts(&said->headline, r->hang);
        if (r->hang_fix)
            PUT(&said->reason, "Fix: {}.", r->hang_fix);
        return;
    }
    if (w->late_rank != SIZE_MAX) {
        const RANK *late = late_of(w);
        PUT(&said->headline,
            "Rank {} on {.40} {} the straggler: the others wait{} {time} of every {time}.",
            late->about->rank, late->about->host, past ? "was" : "is", past ? "ed" : "", w->late_s,
            w->step_s);
        say_cause(w, &said->reason);
        PUT(&said->next, "run knee doctor on {.40}", late->about->host);
    } else if (w->step < 0) {
        PUT(&said->headline, "No steps found yet: nothing repeats in what ranks enqueue.");
    } else if (!w->meetings) {
        PUT(&said->headline, "Cannot tell whether a rank is late.");
        PUT(&said->reason, "No collective was found on all its ranks. ");
    } else if (step && w->slow_wire == SIZE_MAX) {
        PUT(&said->headline, "{}: {share} efficiency; no rank is holding up the others.",
            knee_step_efficiency(step) >= 0.9 ? "Healthy" : "No straggler",
            knee_step_efficiency(step));
    } else {
        PUT(&said->headline, "No rank is holding up the others.");
    }
    say_wire(w, &said->reason);
    say_changes(w, &said->effect);
}

static void say_rates(const REPORT *r, struct knee_text *text)
{
    const WATCH *w = r->watch;
    const STEP *step = sampled_of(r);
    if (step) {
        bool older = w->step_change.found && sampled_number(r) < w->points[w->step_change.at].step;
        PUT(text, "Efficiency {share} at step {}{}. ", knee_step_efficiency(step),
            sampled_number(r), older ? ", before steps changed" : "");
    } else {
        PUT(text, "Efficiency unknown: no step sampled yet. ");
    }
    if (!isnan(w->dollars))
        PUT(text, "Cost so far {dollars}{}. ", w->dollars,
            w->price_assumed ? " at list price" : "");
    if (!isnan(w->joules))
        PUT(text, "Energy so far {joules}. ", w->joules);
    if (!isnan(w->overhead))
        PUT(text, "Recorder overhead {share}.", w->overhead);
    PUT(text, "\n");
}

/* What was left out, repaired or capped; alarms that cannot be judged yet. */
static void say_notes(const REPORT *r, struct knee_text *text)
{
    const WATCH *w = r->watch;
    const STEP *step = sampled_of(r);
    for (size_t i = 0; i < r->alarm_count; i++) {
        enum knee_unit unit;
        if (!r->states[i].goes && !r->states[i].known)
            PUT(text, "Unknown yet: {}.\n", knee_alarm_metric(&r->alarms[i], &unit));
    }
    if (step)
        PUT(text, "R = {number}: {time} of {time} is exposed communication.\n",
            knee_step_ratio(step), knee_step_exposed_s(step), step->wall_s);
    if (!isnan(w->stall_dollars))
        PUT(text, "Exposed communication cost {dollars} of it.\n", w->stall_dollars);
    if (w->joules_by_table)
        PUT(text, "Energy is from the power of such GPUs: NVML gave none.\n");
    if (r->trace_bytes)
        PUT(text, "Traces of step {} ({bytes}) were not read; use knee trace.\n", r->trace_step,
            r->trace_bytes);
    const struct {
        double count;
        const char *noun, *does;
    } losses[] = {{(double)r->earlier, "folder", "belong to earlier starts"},
                  {(double)r->unusable, "folder", "have no usable line"},
                  {(double)w->damaged, "line", "are damaged or cut"},
                  {(double)w->left_out, "collective", "were not recorded"},
                  {(double)w->partial, "collective", "were not found on all their ranks"}};
    for (size_t i = 0; i < KNEE_COUNT_OF(losses); i++)
        if (losses[i].count > 0)
            PUT(text, "Skipped: {} that {}.\n", knee_say_count(losses[i].count, losses[i].noun).s,
                losses[i].does);
}

static void say(const void *result, struct knee_said *said)
{
    const REPORT *r = result;
    say_title(r, &said->title);
    say_voids(r, &said->voids);
    say_headline(r, said);
    say_rates(r, &said->after);
    if (r->watch->state != KNEE_WATCH_RUNNING && !said->next.length)
        PUT(&said->next, "knee hang with the job's logs and Flight Recorder dumps");
    say_notes(r, &said->notes);
}

const struct knee_answer_type knee_watch_answer = {
    .schema = "knee.watch/1", KNEE_FIELDS(fields), KNEE_VIEWS(views), .say = say};
