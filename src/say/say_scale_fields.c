/* SPDX-License-Identifier: MIT */
/* The tree of values of knee scale (schema knee.scale/1): measured runs with what their logs say,
 * forecasts, suspects, where the hours went, the network; and which of it are tables. */
#include "base/slice.h"
#include "judge/judge.h"
#include "knee_scale.h"
#include "say/plan_fields.h"
#include "say/scale_fields.h"
#include "say/short.h"

#include <math.h>
#include <string.h>

#define ANSWER  struct knee_scale_answer
#define ROW     struct knee_scale_row
#define ASK     struct knee_scale_ask
#define LOG     struct knee_train_log
#define ACCOUNT struct knee_run_account
#define SCHED   struct knee_sched_account
#define HOST    struct knee_sched_suspect
#define NETWORK struct knee_scale_network

/* ---- Logs ---- */

A_TEXT(timed_by, LOG, knee_train_timing_name(it->timing))
A_TEXT(other_source, LOG, !isnan(it->other_s) ? knee_train_timing_name(it->other_timing) : NULL)
A_TEXT(ended, LOG, knee_train_end_name(it->account.ended))

#define COUNTED(field, words) KEY(LOG, counts.field, #field, COUNT, words)
static const struct knee_field run_fields[] = {
    KNEE_FIELD(struct knee_train_run, from, "from", "from step", COUNT, SCREEN, "first step"),
    KNEE_FIELD(struct knee_train_run, to, "to", "to", COUNT, SCREEN, "last step"),
    KNEE_FIELD(struct knee_train_run, step_s, "step_s", "step", TIME, SCREEN, "median step"),
    KNEE_FIELD(struct knee_train_run, timed, "timed", "timed", COUNT, SCREEN, "rows with a time"),
    KNEE_FIELD(struct knee_train_run, used, "used", "used", YES_NO, SCREEN,
               "in the log's median: the same job as the last long run"),
    KEY(struct knee_train_run, begin_s, "begin_s", TIME, "first stamp, seconds since 1970"),
    KEY(struct knee_train_run, end_s, "end_s", TIME, "last stamp"),
};
static const struct knee_field log_fields[] = {
    KEY(LOG, format, "format", TEXT, "what its lines look like"),
    KEY_BY(timed_by, "timed_by", TEXT, "where the seconds of a step come from"),
    KEY(LOG, other_s, "other_step_s", TIME,
        "what a second source in the log says, where it differs by more than 10 %"),
    KEY_BY(other_source, "other_timed_by", TEXT, "that source"),
    KEY(LOG, workers_from, "workers_from", TEXT, "where the count comes from"),
    KEY(LOG, data_s, "data_s", TIME, "waiting for data, by the log's own timer"),
    KEY(LOG, comm_s, "comm_s", TIME, "exposed exchange, by the log's own timer"),
    KEY(LOG, outlier_every, "outlier_every", NUMBER, "steps between outliers"),
    KEY(LOG, outlier_s, "outlier_s", TIME, "what an outlier costs beyond the median"),
    KEY(LOG, tflops, "tflops", NUMBER, "per GPU, as printed"),
    COUNTED(lines, "lines of the log"),
    COUNTED(used, "lines that gave a row"),
    COUNTED(facts, "lines about the job"),
    KEY(LOG, timed, "timed", COUNT, "rows with seconds"),
    COUNTED(warm_up, "first rows that are not like the rest"),
    COUNTED(duplicates, "rows of steps that were there already"),
    COUNTED(other_ranks, "rows of other ranks"),
    COUNTED(runs, "runs in the file"),
    COUNTED(left_out, "rows of other runs or loops"),
    COUNTED(unusable, "lines without anything to use"),
    COUNTED(cut, "lines that were too long"),
    COUNTED(thinned, "rows left out of a long log"),
    COUNTED(outliers, "rows above 1.5 medians"),
    KEY(LOG, skipped, "skipped", COUNT, "steps that the optimiser skipped"),
    KEY_BY(ended, "ended", TEXT, "how the log ended, as far as it says"),
    KEY(LOG, host, "host", TEXT, "node that its end names"),
    KEY(LOG, unpriced, "unpriced", TEXT,
        "an argument that changes the model and is not understood"),
};
static const struct knee_field job_fields[] = {
    KEY(LOG, gpu, "gpu", TEXT, "GPU that the log names"),
    KEY(LOG, model, "model", TEXT, "model that it names"),
    KEY(LOG, workers, "workers", COUNT, "GPUs"),
    KEY(LOG, batch, "global_batch", COUNT, "sequences a step"),
    KEY(LOG, micro_batch, "micro_batch", COUNT, "sequences a micro-step"),
    KEY(LOG, seq, "seq", COUNT, "tokens a sequence"),
    KEY(LOG, params, "params", COUNT, "parameters"),
    KEY(LOG, shape.layers, "layers", COUNT, "layers"),
    KEY(LOG, shape.hidden, "hidden", COUNT, "width"),
    KEY(LOG, shape.heads, "heads", COUNT, "heads"),
    KEY(LOG, plan.tp, "tp", COUNT, "tensor parallel"),
    KEY(LOG, plan.pp, "pp", COUNT, "pipeline stages"),
    KEY(LOG, plan.cp, "cp", COUNT, "context parallel"),
    KEY(LOG, plan.ep, "ep", COUNT, "expert parallel"),
};

/* ---- Measured counts ---- */

WHEN(has_log, ROW, it->log != NULL)
OBJECT(log_of, ROW, it->log)
WHEN(has_change, ROW, it->change.found)
WHEN(has_runs, ROW, has_log(at) && it->log->run_count > 1)

ROW_OF(run_of, ROW, it->log &&index < it->log->run_count ? &it->log->runs[index] : NULL)

static const struct knee_field change_fields[] = {
    KEY(struct knee_scale_change, step, "step", COUNT, "first step of the new time"),
    KEY(struct knee_scale_change, before_s, "before_s", TIME, "median before"),
    KEY(struct knee_scale_change, after_s, "after_s", TIME, "median since"),
    KEY(struct knee_scale_change, stamp_s, "stamp_s", TIME, "when, seconds since 1970"),
    KEY(struct knee_scale_change, restart, "restart", YES_NO, "a run began there"),
};
static const struct knee_field point_fields[] = {
    KEY(ROW, workers, "workers", COUNT, "GPUs; null: the log does not say"),
    KEY(ROW, step_s, "step_s", TIME, "median step"),
    KEY(ROW, p95_s, "p95_s", TIME, "95 % of the steps are below"),
    KEY(ROW, batch, "batch", COUNT, "sequences a step"),
    KEY(ROW, tokens_per_s, "tokens_per_s", NUMBER, "of all GPUs"),
    KEY(ROW, efficiency, "efficiency", NUMBER, "against the smallest count"),
    KEY(ROW, speed_up, "speed_up", NUMBER, "against the smallest count"),
    KEY(ROW, ratio, "R", NUMBER, "exposed communication / compute, of a trace"),
    KEY(ROW, gamma, "gamma", NUMBER, "communication / compute, of a trace"),
    KEY(ROW, model.step_s, "predicted_step_s", TIME, "what the model of knee plan says"),
    KEY(ROW, model.low_s, "low_s", TIME, "its interval"),
    KEY(ROW, model.high_s, "high_s", TIME, "its interval"),
    KEY(ROW, model.mfu_full, "mfu_full", NUMBER, "full attention counted"),
    KEY(ROW, model.mfu_causal, "mfu_causal", NUMBER, "causal attention counted"),
    KEY(ROW, model.missing, "missing", TEXT, "what the model still needs"),
    KEY(ROW, source, "source", TEXT, "file"),
    KNEE_OBJECT(log_of, "log", log_fields, "what was read of a log", .when = has_log, .flat = true),
    KNEE_OBJECT(log_of, "job", job_fields, "what the log says about its job", .when = has_log,
                .flat = true),
    KNEE_INSIDE(ROW, change, "change", change_fields, "where the step changed for good",
                .when = has_change, .flat = true),
    KNEE_ROWS_BY(run_of, "runs", run_fields, "runs of a log that has several", .when = has_runs),
};

LIST_OF(point_row, ANSWER, rows, row_count)

/* ---- The curve: measured counts, then forecasts ---- */

WHEN(is_measured, void, at->index < UP(ANSWER)->row_count)

static const void *curve_row(const struct knee_at *at, size_t index)
{
    const ANSWER *a = at->row;
    if (index < a->row_count)
        return &a->rows[index];
    index -= a->row_count;
    return index < a->ask_count ? &a->asks[index] : NULL;
}

A_TEXT(curve_kind, void, is_measured(at) ? "measured" : "forecast")
A_NUMBER(curve_workers, void,
         is_measured(at) ? ((const ROW *)at->row)->workers : ((const ASK *)at->row)->at.workers)

static void curve_step(const struct knee_at *at, struct knee_value *out)
{
    const ASK *ask = at->row;
    if (is_measured(at))
        knee_value_number(out, ((const ROW *)at->row)->step_s);
    else
        knee_value_between(out, ask->at.step_s, ask->at.low_s, ask->at.high_s);
}

A_NUMBER(curve_p95, ROW, is_measured(at) ? it->p95_s : NAN)
A_NUMBER(curve_batch, void,
         is_measured(at) ? ((const ROW *)at->row)->batch : ((const ASK *)at->row)->at.batch)

static void curve_tokens(const struct knee_at *at, struct knee_value *out)
{
    const ANSWER *a = at->up->row;
    const ROW *last = a->counted ? &a->rows[a->counted - 1] : NULL;
    if (is_measured(at))
        knee_value_number(out, ((const ROW *)at->row)->tokens_per_s);
    else if (last)
        knee_value_number(out,
                          last->tokens_per_s / last->speed_up * ((const ASK *)at->row)->speed_up);
}

A_NUMBER(curve_speed_up, void,
         is_measured(at) ? ((const ROW *)at->row)->speed_up : ((const ASK *)at->row)->speed_up)

static void curve_efficiency(const struct knee_at *at, struct knee_value *out)
{
    const ASK *ask = at->row;
    if (!UP(ANSWER)->several) /* against itself: says nothing */
        knee_value_number(out, NAN);
    else if (is_measured(at))
        knee_value_number(out, ((const ROW *)at->row)->efficiency);
    else
        knee_value_between(out, ask->efficiency, ask->efficiency_sure.low,
                           ask->efficiency_sure.high);
}

GETTER(curve_model, ROW,
       if (is_measured(at) && !isnan(it->model.step_s))
           knee_value_between(out, it->model.step_s, it->model.low_s, it->model.high_s))
A_TEXT(curve_source, ASK,
       is_measured(at)  ? ((const ROW *)at->row)->source
       : it->refused[0] ? it->refused
                        : "forecast")

static const struct knee_field curve_fields[] = {
    KEY_BY(curve_kind, "kind", TEXT, "measured or forecast"),
    KNEE_GET(curve_workers, "workers", "GPUs", COUNT, SCREEN, "GPUs"),
    KNEE_GET(curve_step, "step_s", "step", TIME, SCREEN, "median step", .interval = true),
    KNEE_GET(curve_p95, "p95_s", "p95", TIME, FULL, "95 % are below"),
    KNEE_GET(curve_batch, "batch", "batch", COUNT, FULL, "sequences a step"),
    KNEE_GET(curve_tokens, "tokens_per_s", "tokens/s", LARGE, SCREEN, ""),
    KNEE_GET(curve_speed_up, "speed_up", "speed-up", TIMES, FULL, "against the smallest count"),
    KNEE_GET(curve_efficiency, "efficiency", "efficiency", SHARE, SCREEN,
             "against the smallest count", .interval = true),
    KNEE_GET(curve_model, "predicted_step_s", "expected", TIME, SCREEN,
             "what the model of knee plan says", .interval = true),
    KNEE_GET(curve_source, "source", "source", TEXT, SCREEN, "file"),
};

/* ---- Forecasts ---- */

static const struct knee_field ask_fields[] = {
    KEY(ASK, at.workers, "workers", COUNT, "GPUs asked for"),
    KEY(ASK, at.step_s, "step_s", TIME, "forecast; `low_s`, `high_s` are its interval",
        .interval = true, .interval_offset = offsetof(ASK, at.low_s)),
    KNEE_BETWEEN(ASK, efficiency, efficiency_sure, "efficiency", NULL, NUMBER, DATA,
                 "against the smallest count measured"),
    KEY(ASK, speed_up, "speed_up", NUMBER, "against the smallest count measured"),
    KEY(ASK, at.amdahl_s, "amdahl_s", TIME, "what Amdahl's law says"),
    KEY(ASK, at.usl_s, "usl_s", TIME, "what the universal scalability law says"),
    KEY(ASK, at.unhidden_s, "unhidden_s", TIME,
        "communication that hid at the counts measured and no longer does"),
    KNEE_BETWEEN(ASK, time_s, time_sure, "time_s", "time", TIME, FULL, "for the tokens asked for"),
    KNEE_BETWEEN(ASK, cost, cost_sure, "cost", "cost", DOLLARS, FULL, "for the tokens asked for"),
    KEY(ASK, refused, "refused", TEXT, "why there is none"),
};

/* ---- The fit ---- */

#define TERM(t, name) KEY(struct knee_scale_fit, term_s[t], name, TIME, "")
static const struct knee_field term_keys[] = {
    TERM(KNEE_SCALE_COMPUTE, "compute"),
    TERM(KNEE_SCALE_FIXED, "fixed per step"),
    TERM(KNEE_SCALE_BANDWIDTH, "bandwidth"),
    TERM(KNEE_SCALE_LATENCY, "latency"),
    TERM(KNEE_SCALE_HOPS, "ring hops"),
    TERM(KNEE_SCALE_STRAGGLER, "stragglers"),
    TERM(KNEE_SCALE_MICRO, "exchanges per micro-batch"),
};

A_TEXT(scaling, struct knee_scale_fit, knee_scale_kind_name(it->kind))

static const struct knee_field fit_fields[] = {
    KEY_BY(scaling, "scaling", TEXT, "strong: one batch; weak: it grows with the GPUs"),
    KEY(struct knee_scale_fit, kind_assumed, "scaling_assumed", YES_NO, "batches are not known"),
    KEY(struct knee_scale_fit, kind_by_work, "scaling_told_by_compute", YES_NO,
        "from the compute in traces"),
    KEY(struct knee_scale_fit, noise, "noise", NUMBER, "spread of repeated runs, a share"),
    KEY(struct knee_scale_fit, misfit, "misfit", NUMBER, "root mean square, a share"),
    KEY(struct knee_scale_fit, strange, "strange", YES_NO, "the terms do not describe it"),
    KNEE_GROUP("terms_s", term_keys, "seconds of the step at the largest count", .flat = true),
};

/* Terms as rows of a table: the term's number is the row's index. */
WHEN(several, ANSWER, it->several)
ROW_OF(term_row, ANSWER, it->several && (index < KNEE_SCALE_TERMS) ? &it->fit.term_s[index] : NULL)

double knee_scale_term_sum(const struct knee_scale_fit *fit)
{
    double sum = 0;
    for (int t = 0; t < KNEE_SCALE_TERMS; t++)
        sum += fit->term_s[t];
    return sum;
}

A_TEXT(term_name, void, knee_scale_term_name((enum knee_scale_term)at->index))
A_NUMBER(term_seconds, void, *(const double *)at->row)
A_NUMBER(term_share, void, *(const double *)at->row / knee_scale_term_sum(&UP(ANSWER)->fit))

static const struct knee_field term_fields[] = {
    KNEE_GET(term_name, "term", "the fit's terms at the largest count", TEXT, FULL,
             "where the step goes"),
    KNEE_GET(term_seconds, "seconds", "per step", TIME, FULL, ""),
    KNEE_GET(term_share, "share", "share", SHARE, FULL, ""),
};

/* ---- Suspects ---- */

ROW_OF(suspect_row, ANSWER, index < KNEE_SCALE_SUSPECTS ? &it->suspects[index] : NULL)
A_TEXT(suspect_name, struct knee_scale_suspect, knee_suspect_name(it->suspect))
A_TEXT(suspect_standing, struct knee_scale_suspect, knee_standing_name(it->standing))
A_TEXT(suspect_because, struct knee_scale_suspect,
       it->standing == KNEE_OPEN ? it->measure : it->rule)

static const struct knee_field suspect_fields[] = {
    KNEE_GET(suspect_name, "suspect", "suspect", TEXT, SCREEN, ""),
    KNEE_GET(suspect_standing, "standing", "is", TEXT, SCREEN, "confirmed, excluded or open"),
    KEY(struct knee_scale_suspect, rule, "rule", TEXT, "that decided"),
    KEY(struct knee_scale_suspect, measure, "measure", TEXT, "what would tell"),
    KNEE_GET(suspect_because, "because", "because, or what would tell", TEXT, SCREEN, ""),
};

/* The table of rules, where symptoms alone were given. */
static const void *rule_row(const struct knee_at *at, size_t index)
{
    enum knee_suspect suspect;
    enum knee_standing says;
    const ANSWER *a = at->row;
    return a->row_count == 0 ? knee_symptom_rule(index, &suspect, &says) : NULL;
}

A_TEXT(rule_words, void, it)

#define RULE(name, words)                                                                          \
    GETTER(name, void, enum knee_suspect suspect; enum knee_standing says;                         \
           if (knee_symptom_rule(at->index, &suspect, &says)) knee_value_text(out, words))
RULE(rule_says, knee_standing_name(says))
RULE(rule_suspect, knee_suspect_name(suspect))

static const struct knee_field rule_fields[] = {
    KNEE_GET(rule_words, "rule", "rule", TEXT, FULL, ""),
    KNEE_GET(rule_says, "says", "says", TEXT, FULL, ""),
    KNEE_GET(rule_suspect, "suspect", "suspect", TEXT, FULL, ""),
};

/* ---- Where the hours went ---- */

WHEN(has_account, ANSWER, it->joined && !isnan(it->account.all.wall_s))
ROW_OF(part_row, ACCOUNT, index < KNEE_TIME_PARTS ? &it->all.part_s[index] : NULL)
A_TEXT(part_name, void, knee_time_part_name((enum knee_time_part)at->index))
A_NUMBER(part_share, void, *(const double *)at->row / UP(ACCOUNT)->all.wall_s)

static bool part_shows(const struct knee_at *row)
{
    const ACCOUNT *account = row->up->row;
    return *(const double *)row->row >= 0.005 * account->all.wall_s;
}

static const struct knee_field part_fields[] = {
    KNEE_GET(part_name, "part", "wall time", TEXT, SCREEN, "where it went"),
    KNEE_GET(term_seconds, "seconds", "time", TIME, SCREEN, ""),
    KNEE_GET(part_share, "share", "share", SHARE, SCREEN, ""),
};

A_NUMBER(goodput, ACCOUNT, it->all.part_s[KNEE_TIME_STEPS] / it->all.wall_s)

static const struct knee_field account_fields[] = {
    KEY(ACCOUNT, all.wall_s, "wall_s", TIME, "from the first time stamp to the last"),
    KEY_BY(goodput, "goodput", NUMBER, "steps kept / wall time"),
    KNEE_ROWS_BY(part_row, "parts", part_fields, "sum to the wall time"),
    KEY(ACCOUNT, logs, "logs", COUNT, "logs with time stamps"),
    KEY(ACCOUNT, jobs, "jobs", COUNT, "that they are of: logs that do not go on from one another"),
    KEY(ACCOUNT, all.starts, "starts", COUNT, "times that the steps began"),
    KEY(ACCOUNT, all.saves, "checkpoints", COUNT, "that were begun"),
    KEY(ACCOUNT, all.lost_steps, "lost_steps", COUNT, "done again after a restart"),
    KEY(ACCOUNT, all.unsaved_steps, "unsaved_steps", COUNT,
        "after the last checkpoint of a job that did not finish"),
    KEY(ACCOUNT, all.gap_s, "longest_gap_s", TIME, "the longest gap"),
    KEY(ACCOUNT, all.gap_after, "gap_after_step", COUNT, "step before it"),
    KEY(ACCOUNT, stops, "stops", COUNT, "hangs, cancellations, restarts inside a log"),
    KEY(ACCOUNT, stop_every_s, "stop_every_s", TIME, "wall time between two stops (MTBF)"),
    KEY(ACCOUNT, restart_s, "restart_s", TIME, "start-up and first step of one start"),
    KEY(ACCOUNT, checkpoint_s, "checkpoint_s", TIME, "one checkpoint"),
    KEY(ACCOUNT, checkpoint_every_s, "checkpoint_every_s", TIME, "steps between two"),
};

/* ---- Jobs of a scheduler ---- */

WHEN(has_jobs, ANSWER, it->sched.jobs > 0)

A_NUMBER(node_hours, SCHED, it->node_s / 3600)
A_NUMBER(gpu_hours, SCHED, it->gpu_s / 3600)

A_NUMBER(lost_share, SCHED, it->failed_node_s / it->node_s)

static const struct knee_field host_fields[] = {
    KNEE_FIELD(HOST, name, "host", "host", TEXT, SCREEN, ""),
    KNEE_FIELD(HOST, failed, "failed", "failed jobs", COUNT, SCREEN, ""),
    KNEE_FIELD(HOST, slow, "slow", "slow jobs", COUNT, SCREEN, "jobs of the slowest quarter"),
    KNEE_FIELD(HOST, jobs, "jobs", "all jobs", COUNT, SCREEN, ""),
    KNEE_FIELD(HOST, chance, "chance", "by chance", SHARE, SCREEN,
               "how often some host would have as many by chance"),
};

static const struct knee_field sched_fields[] = {
    KEY(SCHED, jobs, "jobs", COUNT, "that ran"),
    KEY(SCHED, failed, "failed", COUNT, "FAILED, NODE_FAIL, OUT_OF_MEMORY"),
    KEY_BY(node_hours, "node_hours", NUMBER, ""),
    KEY_BY(gpu_hours, "gpu_hours", NUMBER, ""),
    KEY_BY(lost_share, "failed_share", SHARE, "of the node-hours: in jobs that failed"),
    KEY(SCHED, host_count, "hosts", COUNT, "different ones"),
    KEY(SCHED, suspects, "suspects", COUNT,
        "hosts with more failures or slow jobs than chance allows"),
    KNEE_ARRAY(SCHED, host, listed, "by_host", host_fields, "least likely by chance first"),
};

/* ---- Two nodes ---- */

WHEN(has_network, ANSWER, it->network.asked)
A_TEXT(network_cause, NETWORK, knee_network_cause_name(it->cause))

A_NUMBER(have_gbps, NETWORK, it->have * 8e-9)
A_NUMBER(need_hidden_gbps, NETWORK, it->need_hidden * 8e-9)
A_NUMBER(need_exposed_gbps, NETWORK, it->need_exposed * 8e-9)

static const struct knee_field network_fields[] = {
    KEY_BY(network_cause, "cause", TEXT, "network, not the network, fine or unknown"),
    KEY(NETWORK, one_workers, "one_workers", COUNT, "GPUs within a node"),
    KEY(NETWORK, two_workers, "two_workers", COUNT, "GPUs over several nodes"),
    KEY(NETWORK, nodes, "nodes", COUNT, "nodes of the larger run"),
    KEY(NETWORK, efficiency, "efficiency", NUMBER, "of the larger run against the smaller"),
    KEY(NETWORK, params, "params", COUNT, "parameters"),
    KEY(NETWORK, bytes, "bytes", NUMBER, "over each node's link in a step"),
    KEY(NETWORK, added_s, "added_s", TIME, "what the step got longer"),
    KEY_BY(have_gbps, "have_gbps", NUMBER, "Gb/s that the link gave in that time"),
    KEY_BY(need_hidden_gbps, "need_hidden_gbps", NUMBER,
           "Gb/s for 90 % efficiency where all of it hides behind compute"),
    KEY_BY(need_exposed_gbps, "need_exposed_gbps", NUMBER, "where none of it hides"),
    KEY(NETWORK, missing, "missing", TEXT, "what is still needed"),
};

/* ---- The rest of the tree ---- */

static void advice(const struct knee_at *at, struct knee_value *out)
{
    static const char *const names[] = {"measure", "as expected", "too slow",   "too fast",
                                        "grow",    "stop",        "batch limit"};
    const ANSWER *a = at->row;
    knee_value_text(out, a->advice <= KNEE_ADVICE_BATCH ? names[a->advice] : "?");
}

A_TEXT(wall, ANSWER, knee_wall_name(it->wall))

static const struct knee_field verdict_fields[] = {
    KEY_BY(advice, "advice", TEXT, "what to do"),
    KEY_BY(wall, "wall", TEXT, "which comes first: systems, statistical, none"),
    KEY(ANSWER, advice_workers, "workers", COUNT, "the count that the advice compares with"),
    KEY(ANSWER, advice_share, "share", NUMBER, "of the speed-up that is there already"),
};
static const struct knee_field knee_fields[] = {
    KEY(ANSWER, measured_knee, "measured_workers", COUNT, "last count worth paying for"),
    KEY(ANSWER, predicted_knee, "predicted_workers", COUNT, "by the fit"),
    KEY(ANSWER, searched_workers, "searched_workers", COUNT, "how far the fit was asked"),
    KEY(ANSWER, question.tolerance, "tolerance", NUMBER, "efficiency that is enough"),
};

A_NUMBER(batch_critical, struct knee_batch_fit, it->runs ? it->critical : (double)NAN)
A_NUMBER(batch_low, struct knee_batch_fit, it->runs ? it->low : (double)NAN)
A_NUMBER(batch_high, struct knee_batch_fit, it->runs ? it->high : (double)NAN)
LIST_OF(loss_row, struct knee_batch_fit, at_loss, losses)
A_NUMBER(loss_critical, void, UP(struct knee_batch_fit)->critical_at[at->index])

static const struct knee_field loss_fields[] = {
    KEY_BY(term_seconds, "loss", NUMBER, "loss that all runs reach"),
    KEY_BY(loss_critical, "critical", NUMBER, "critical batch for it"),
};
static const struct knee_field batch_fields[] = {
    KEY_BY(batch_critical, "critical", NUMBER, "critical batch"),
    KEY_BY(batch_low, "low", NUMBER, "its spread over the losses"),
    KEY_BY(batch_high, "high", NUMBER, "its spread over the losses"),
    KEY(struct knee_batch_fit, behind, "behind", YES_NO,
        "the large batch's loss is behind at equal samples"),
    KNEE_ROWS_BY(loss_row, "by_loss", loss_fields, "one row per loss"),
};

/* Lines of `left_out`. */
static const void *left_out_row(const struct knee_at *at, size_t index)
{
    const char *line = ((const ANSWER *)at->row)->left_out;
    for (; line && index > 0; index--) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return line && *line ? line : NULL;
}

static void left_out_line(const struct knee_at *at, struct knee_value *out)
{
    const char *line = at->row;
    struct knee_slice text = knee_slice_trim((struct knee_slice){line, strcspn(line, "\n")});
    knee_value_printf(out, "%.*s", (int)text.length, text.at);
}

static const struct knee_field left_out_fields[] = {
    KNEE_GET(left_out_line, NULL, NULL, TEXT, DATA, "a line")};

/* Of the largest count whose model and GPU are known. */
static const void *alike_row(const struct knee_at *at, size_t index)
{
    const ANSWER *a = at->row;
    size_t i = a->row_count;
    while (i > 0 && a->rows[i - 1].model.alike_count == 0)
        i--;
    return i > 0 && index < a->rows[i - 1].model.alike_count ? &a->rows[i - 1].model.alike[index]
                                                             : NULL;
}

const struct knee_field knee_scale_fields[] = {
    KNEE_SENTENCE,
    KNEE_GROUP("verdict", verdict_fields, "what to do", .flat = true),
    KEY(ANSWER, base_workers, "base_workers", COUNT, "the smallest count measured"),
    KNEE_ROWS_BY(point_row, "points", point_fields, "what was measured", .tall = true),
    KNEE_GROUP("knee", knee_fields, "the last count worth paying for", .flat = true),
    KNEE_INSIDE(ANSWER, batch, "batch", batch_fields, "the statistical wall", .flat = true),
    KNEE_ROWS_BY(suspect_row, "suspects", suspect_fields, "the five suspects"),
    KNEE_ARRAY(ANSWER, asks, ask_count, "forecast", ask_fields, "counts that were asked for"),
    KNEE_INSIDE(ANSWER, fit, "fit", fit_fields, "the curve's terms", .when = several),
    KNEE_INSIDE(ANSWER, account, "account", account_fields, "where the wall time went",
                .when = has_account),
    KNEE_INSIDE(ANSWER, network, "network", network_fields, "two nodes against one",
                .when = has_network),
    KNEE_INSIDE(ANSWER, sched, "jobs", sched_fields, "jobs of the scheduler", .when = has_jobs),
    KNEE_ROWS_BY(curve_row, "curve", curve_fields, "points and forecasts as one table"),
    KNEE_ROWS_BY(term_row, "terms", term_fields, "the fit's terms as a table"),
    KNEE_ROWS_BY(rule_row, "rules", rule_fields, "which symptom says what"),
    KNEE_ROWS_BY(left_out_row, "left_out", left_out_fields, "what could not be used"),
    KNEE_ROWS_BY(alike_row, "published_runs", knee_alike_fields, "measured runs like it",
                 .tall = true),
};

_Static_assert(KNEE_COUNT_OF(knee_scale_fields) == KNEE_SCALE_FIELDS, "see scale_fields.h");

const struct knee_view knee_scale_views[] = {
    {.list = "curve"},
    {.list = "account.parts", .pick = part_shows, .most = 9},
    {.list = "jobs.by_host", .most = 4},
    {.list = "suspects", .tier = FULL},
    {.list = "terms", .tier = FULL},
    {.list = "rules", .tier = FULL},
    {.list = "published_runs", .tier = FULL},
};
_Static_assert(KNEE_COUNT_OF(knee_scale_views) == KNEE_SCALE_VIEWS, "see scale_fields.h");
