/* SPDX-License-Identifier: MIT */
/* knee lab: a small training job, measured and predicted. Schema knee.lab/1. */
#include "say/lab_result.h"
#include "say/short.h"

#include <math.h>
#include <string.h>

#define LAB  struct knee_lab
#define ROW  struct knee_lab_row
#define HUNT struct knee_lab_hunt
#define PUSH struct knee_lab_push
#define KNEE struct knee_lab_knee

/* ---- Fields ---- */

A_NUMBER(step_error, ROW, it->predicted_step_s / it->measured_step_s - 1)
A_BOOL(synthetic, void, UP(LAB)->synthetic)

static const struct knee_field row_fields[] = {
    KNEE_FIELD(ROW, workers, "workers", "ranks", COUNT, SCREEN, "ranks"),
    KNEE_FIELD(ROW, measured_step_s, "measured_step_s", "step", TIME, SCREEN, "measured step"),
    KNEE_FIELD(ROW, predicted_step_s, "predicted_step_s", "predicted", TIME, SCREEN,
               "predicted step"),
    KNEE_FIELD(ROW, compute_s, "compute_s", "compute", TIME, FULL, "measured compute of a step"),
    KNEE_FIELD(ROW, comm_s, "comm_s", "communication", TIME, FULL,
               "measured communication, hidden or not"),
    KNEE_FIELD(ROW, exposed_comm_s, "exposed_comm_s", "exposed", TIME, FULL,
               "measured communication that nothing hides"),
    KNEE_FIELD(ROW, ratio, "ratio", "R", NUMBER, SCREEN, "exposed communication / compute"),
    KNEE_FIELD(ROW, gamma, "gamma", "gamma", NUMBER, FULL, "all communication / compute"),
    KNEE_FIELD(ROW, efficiency, "efficiency", "efficiency", SHARE, SCREEN,
               "measured throughput per rank over that of one rank"),
    KNEE_FIELD(ROW, predicted_efficiency, "predicted_efficiency", "predicted", SHARE, FULL,
               "the same, predicted"),
    KNEE_FIELD(ROW, loss, "loss", "loss", NUMBER, FULL,
               "held-out loss; null with synthetic compute"),
    KNEE_FIELD(ROW, sent_bytes, "sent_bytes", "sent", BYTES, FULL,
               "by one rank in a step, counted"),
    KEY(ROW, model_bytes, "model_bytes", BYTES, "the same by formula"),
    KEY_BY(synthetic, "synthetic_compute", YES_NO, "compute was a timed wait"),
    KNEE_GET(step_error, "step_error", "error", CHANGE, SCREEN, "predicted / measured - 1"),
};

A_TEXT(right, HUNT, strcmp(it->induced, it->named) == 0 ? "yes" : "NO")
A_NUMBER(seed, HUNT, (double)it->seed)

static const struct knee_field hunt_fields[] = {
    KNEE_FIELD(HUNT, induced, "induced", "induced", TEXT, SCREEN,
               "the suspect that was put in, or none"),
    KNEE_FIELD(HUNT, named, "named", "named", TEXT, SCREEN, "what knee said"),
    KNEE_GET(right, "right", "right", TEXT, SCREEN, "the same"),
    KNEE_FIELD(HUNT, evidence, "evidence", "evidence", TEXT, FULL, "what it was concluded from"),
    KNEE_GET(seed, "seed", "seed", COUNT, SCREEN, "of the run"),
    KNEE_FIELD(HUNT, how, "how", "how", TEXT, FULL, "what was done"),
    KNEE_FIELD(HUNT, moved_before, "share_before", "share before", SHARE, SCREEN,
               "of the step, healthy"),
    KNEE_FIELD(HUNT, moved_after, "share_after", "after", SHARE, SCREEN, "of the step, induced"),
};
static const struct knee_field push_fields[] = {
    KNEE_FIELD(PUSH, part, "part", "limit", TEXT, FULL,
               "communication: a set-up bound by it; statistics: past the critical batch"),
    KNEE_FIELD(PUSH, lever, "lever", "change", TEXT, SCREEN, "what was changed"),
    KNEE_FIELD(PUSH, change, "change", "to", TEXT, SCREEN, "how far"),
    KNEE_FIELD(PUSH, workers, "workers", "ranks", COUNT, SCREEN, "ranks"),
    KNEE_FIELD(PUSH, step_s, "measured_step_s", "step", TIME, SCREEN, "measured step"),
    KNEE_FIELD(PUSH, predicted_step_s, "predicted_step_s", "predicted", TIME, SCREEN,
               "predicted step"),
    KNEE_FIELD(PUSH, knee_workers, "measured_knee_workers", "knee", COUNT, FULL,
               "last rank count worth paying for, measured"),
    KNEE_FIELD(PUSH, predicted_knee_workers, "predicted_knee_workers", "predicted knee", COUNT,
               FULL, "the same, predicted"),
    KNEE_FIELD(PUSH, sent_bytes, "sent_bytes", "sent", BYTES, FULL, "in a step, counted"),
    KNEE_FIELD(PUSH, model_bytes, "model_bytes", "by formula", BYTES, FULL,
               "in a step, by formula"),
    KNEE_FIELD(PUSH, examples, "examples", "examples", LARGE, FULL, "trained on for the loss"),
    KNEE_FIELD(PUSH, loss, "loss", "loss", NUMBER, SCREEN, "held-out loss"),
};
static const struct knee_field place_fields[] = {
    KEY(KNEE, tolerance_workers, "tolerance_workers", COUNT,
        "last swept count with enough efficiency"),
    KEY(KNEE, gamma_one_workers, "gamma_one_workers", NUMBER, "where communication equals compute"),
};
static const struct knee_field knee_fields[] = {
    KEY(LAB, tolerance, "tolerance", SHARE, "efficiency that is still worth it"),
    KNEE_INSIDE(LAB, measured, "measured", place_fields, "measured", .flat = true),
    KNEE_INSIDE(LAB, predicted, "predicted", place_fields, "predicted", .flat = true),
    KEY(LAB, median_error, "median_error", SHARE, "of predicted steps with more than one rank"),
    KEY(LAB, worst_error, "worst_error", SHARE, "the largest"),
};

A_TEXT(scaling, LAB, it->weak ? "weak" : "strong")

#define SET_UP(member, name, look, words) KEY(LAB, member, name, look, words)
static const struct knee_field note_fields[] = {
    {.kind = TEXT, .tier = DATA, .is = KNEE_IS_CHARS},
};
static const struct knee_field fields[] = {
    KNEE_SENTENCE,
    SET_UP(synthetic, "synthetic_compute", YES_NO, "compute was a timed wait"),
    SET_UP(paced, "paced", YES_NO, "sending was held back, as on a slow link"),
    KEY_BY(scaling, "scaling", TEXT, "weak or strong"),
    SET_UP(runtime, "runtime", TEXT, "how ranks reach each other"),
    SET_UP(ranks, "ranks", COUNT, "processes"),
    SET_UP(hosts, "hosts", COUNT, "nodes"),
    SET_UP(model, "model", TEXT, "what is trained"),
    SET_UP(wire, "wire", TEXT, "format on the wire"),
    SET_UP(sync, "sync", TEXT, "how gradients are exchanged"),
    SET_UP(optimizer, "optimizer", TEXT, "optimizer"),
    SET_UP(params, "params", LARGE, "values exchanged"),
    SET_UP(batch, "batch", COUNT, "examples: of all ranks, with weak scaling of each"),
    SET_UP(accumulate, "accumulate", COUNT, "micro-steps of a step"),
    SET_UP(local_steps, "local_steps", COUNT, "steps between two exchanges"),
    SET_UP(steps, "steps", COUNT, "steps timed"),
    SET_UP(buckets, "buckets", COUNT, "gradient buckets"),
    SET_UP(overlap, "overlap", YES_NO, "exchange overlaps the backward pass"),
    SET_UP(latency_s, "latency_s", TIME, "of a message, measured before the run"),
    SET_UP(bandwidth_bytes_per_s, "bandwidth_bytes_per_s", RATE, "each way, likewise"),
    SET_UP(critical_batch, "critical_batch", LARGE, "gradient noise scale, measured"),
    KNEE_ARRAY(LAB, rows, row_count, "rows", row_fields, "one row per rank count"),
    KNEE_GROUP("knee", knee_fields, "the last rank count worth paying for"),
    KNEE_ARRAY(LAB, hunts, hunt_count, "hunt", hunt_fields, "one row per induced trouble"),
    KNEE_ARRAY(LAB, pushes, push_count, "push", push_fields, "one row per change tried"),
    KNEE_ARRAY(LAB, notes, note_count, "notes", note_fields, "what to know about the run",
               .tall = true),
};
static const struct knee_view views[] = {
    {.list = "rows"},
    {.list = "hunt", .most = KNEE_LAB_HUNTS},
    {.list = "push", .title = "Changes, each trained for real", .most = KNEE_LAB_PUSHES},
};

/* ---- Sentences ---- */

static void say_knee(const LAB *lab, struct knee_said *said)
{
    const ROW *last = &lab->rows[lab->row_count - 1];
    double at = lab->measured.tolerance_workers;
    if (isnan(at) || at >= last->workers)
        PUT(&said->headline, "All {ranks} are worth it: efficiency {share} with {ranks}.",
            last->workers, last->efficiency, last->workers);
    else
        PUT(&said->headline, "Stop at {ranks}: more fall below {share} efficiency.", at,
            lab->tolerance);
    PUT(&said->reason, "The prediction says {ranks}.", lab->predicted.tolerance_workers);
    if (!isnan(lab->median_error))
        PUT(&said->effect, "Predicted steps are off by {share} (median), {share} at most.",
            lab->median_error, lab->worst_error);
}

static void say_hunt(const LAB *lab, struct knee_said *said)
{
    size_t named = 0;
    for (size_t i = 0; i < lab->hunt_count; i++)
        named += strcmp(lab->hunts[i].induced, lab->hunts[i].named) == 0;
    PUT(&said->headline, "knee named the trouble in {} of {} runs.", named, lab->hunt_count);
}

static void say_title(const LAB *lab, struct knee_said *said)
{
    knee_text_printf(
        &said->title, "%s, %s values as %s, %s, %s; %s scaling, batch %s; %s on %s (%s)",
        lab->model, SAY_LARGE(lab->params), lab->wire, lab->sync,
        lab->overlap ? "overlapping backward" : "after backward", lab->weak ? "weak" : "strong",
        SAY_COUNT(lab->batch), knee_say_count(lab->ranks, "rank").s,
        knee_say_count(lab->hosts, "node").s, lab->runtime);
}

static void say_notes(const LAB *lab, struct knee_said *said)
{
    for (size_t i = 0; i < lab->note_count; i++)
        PUT(&said->after, "{}{}", i ? " " : "", lab->notes[i]);
    if (!isnan(lab->latency_s))
        PUT(&said->notes, "measured before the run: {time} latency, {rate} each way{}\n",
            lab->latency_s, lab->bandwidth_bytes_per_s,
            lab->paced ? ", held back to stand in for a slow link" : "");
    if (!isnan(lab->critical_batch))
        PUT(&said->notes, "critical batch, measured as gradient noise scale: {large}\n",
            lab->critical_batch);
}

static void say(const void *result, struct knee_said *said)
{
    const LAB *lab = result;
    say_title(lab, said);
    if (lab->synthetic)
        PUT(&said->assumed,
            "compute is a timed wait (synthetic): nothing is learned, and there is no loss");
    if (lab->hunt_count)
        say_hunt(lab, said);
    else if (lab->row_count > 1)
        say_knee(lab, said);
    else if (lab->row_count)
        PUT(&said->headline, "One rank takes {time} per step.", lab->rows[0].measured_step_s);
    say_notes(lab, said);
}

const struct knee_answer_type knee_lab_answer = {
    .schema = "knee.lab/1", KNEE_FIELDS(fields), KNEE_VIEWS(views), .say = say};
