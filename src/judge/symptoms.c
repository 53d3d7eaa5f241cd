/* SPDX-License-Identifier: MIT */
/*
 * Finds the suspects by elimination, without a trace. Each rule is a row: what was seen, which
 * suspect it concerns, and whether it confirms or excludes that suspect. The first rule that
 * applies decides. Rules that confirm come first, so confirming beats excluding. If no rule
 * applies, the suspect stays open, with the measurement that would decide it.
 */
#include "judge/symptoms.h"

#include <math.h>

#define BUSY      0.9  /* a GPU that is busy */
#define IDLE      0.7  /* one that waits */
#define PINNED    0.9  /* CPUs that cannot do more */
#define LOW_FLOPS 0.3  /* of the peak */
#define JITTER    1.1  /* p95 over median of a steady job */
#define ENOUGH    30   /* steps whose spread says something */
#define SMALL     0.02 /* a share of the step below this is not a bottleneck */
#define LARGE     0.2

/* All that is known about one job. */
struct evidence {
    struct knee_symptoms seen;
    double p95_over_median, outliers; /* of the log; share of rows */
    double steps;                     /* that were timed */
    double slower;                    /* measured over modelled step; NaN */
    const struct knee_scale_model *model;
    bool loss_behind;
    double ratio;      /* R of a trace; NaN */
    double data, comm; /* shares of the step by the log's own timers; NaN */
    double workers;
};

static bool starved(const struct evidence *e)
{
    return e->seen.gpu_util < IDLE && e->seen.cpu_util >= PINNED;
}

static bool waits_for_data(const struct evidence *e)
{
    return e->data > 0.1;
}

static bool data_ready(const struct evidence *e)
{
    return e->data < SMALL;
}

static bool exchange_timed(const struct evidence *e)
{
    return e->comm > 0.1;
}

static bool alone(const struct evidence *e)
{
    return e->workers == 1;
}

static bool cpu_free(const struct evidence *e)
{
    return e->seen.cpu_util < IDLE;
}

static bool waits(const struct evidence *e)
{
    return e->seen.gpu_util < IDLE && e->seen.cpu_util < PINNED && isnan(e->seen.late_rank);
}

static bool exposed(const struct evidence *e)
{
    return e->ratio > 0.1;
}

static bool little_wire(const struct evidence *e)
{
    return e->model->comm_share < SMALL && !(e->slower > 1.25);
}

static bool not_exposed(const struct evidence *e)
{
    return e->ratio <= 0.02;
}

static bool late(const struct evidence *e)
{
    return e->seen.late_rank >= 0;
}

static bool jitters(const struct evidence *e)
{
    return e->p95_over_median > JITTER && e->outliers < 0.05 && e->steps >= ENOUGH &&
           e->workers > 1 && !(e->seen.gpu_util >= BUSY);
}

static bool busy_and_slow(const struct evidence *e)
{
    return e->seen.gpu_util >= BUSY && e->seen.flops_achieved < LOW_FLOPS;
}

static bool launches(const struct evidence *e)
{
    return e->model->host_share > LARGE;
}

static bool good_flops(const struct evidence *e)
{
    return e->seen.flops_achieved >= 0.4 || e->model->mfu_causal >= 0.4;
}

static bool behind(const struct evidence *e)
{
    return e->loss_behind || e->seen.loss_behind;
}

static const struct {
    enum knee_suspect suspect;
    enum knee_standing says;
    bool (*holds)(const struct evidence *e);
    const char *words;
} rules[] = {
    {KNEE_SUSPECT_INPUT, KNEE_CONFIRMED, starved,
     "GPUs below 70 % busy, CPUs above 90 %: they wait for batches"},
    {KNEE_SUSPECT_INPUT, KNEE_CONFIRMED, waits_for_data,
     "the log's own data time is above 10 % of the step"},
    {KNEE_SUSPECT_INPUT, KNEE_EXCLUDED, data_ready,
     "the log's own data time is below 2 % of the step"},
    {KNEE_SUSPECT_INPUT, KNEE_EXCLUDED, cpu_free, "CPUs below 70 % busy: loaders keep up"},
    {KNEE_SUSPECT_COMM, KNEE_CONFIRMED, exchange_timed,
     "the log's own timer of the exchange is above 10 % of the step"},
    {KNEE_SUSPECT_COMM, KNEE_CONFIRMED, exposed, "a trace has R above 0.1"},
    {KNEE_SUSPECT_COMM, KNEE_CONFIRMED, waits,
     "GPUs below 70 % busy, CPUs below 90 %, no late rank: they wait for data"},
    {KNEE_SUSPECT_COMM, KNEE_EXCLUDED, alone, "one GPU: it exchanges nothing"},
    {KNEE_SUSPECT_COMM, KNEE_EXCLUDED, not_exposed, "a trace has R of at most 0.02"},
    {KNEE_SUSPECT_COMM, KNEE_EXCLUDED, little_wire,
     "less than 2 % exposed in the model, and the step is as it says"},
    {KNEE_SUSPECT_STRAGGLER, KNEE_CONFIRMED, late, "one rank is late: all wait for it"},
    {KNEE_SUSPECT_STRAGGLER, KNEE_CONFIRMED, jitters,
     "steps spread: p95 above 1.1 times the median, few outliers"},
    {KNEE_SUSPECT_STRAGGLER, KNEE_EXCLUDED, alone, "one GPU: it waits for no other"},
    {KNEE_SUSPECT_TINY_BATCH, KNEE_CONFIRMED, busy_and_slow,
     "GPUs above 90 % busy below 30 % of peak: kernels too small"},
    {KNEE_SUSPECT_TINY_BATCH, KNEE_CONFIRMED, launches,
     "above 20 % of the model's step in launches: too little work each"},
    {KNEE_SUSPECT_TINY_BATCH, KNEE_EXCLUDED, good_flops, "40 % of peak or more is reached"},
    {KNEE_SUSPECT_LARGE_BATCH, KNEE_CONFIRMED, behind,
     "the loss is behind at equal tokens: more examples buy less"},
};
#define RULES (sizeof rules / sizeof *rules)

static const char *const measures[KNEE_SUSPECTS] = {
    [KNEE_SUSPECT_COMM] = "knee trace on a profiled step of all ranks: R, what is exposed",
    [KNEE_SUSPECT_INPUT] = "ten steps with synthetic data, or GPU and CPU busy shares",
    [KNEE_SUSPECT_STRAGGLER] = "knee trace on all ranks: who comes last",
    [KNEE_SUSPECT_TINY_BATCH] = "the job with twice the local batch: does the step double?",
    [KNEE_SUSPECT_LARGE_BATCH] = "a run at half the batch: loss against tokens",
};

const char *knee_standing_name(enum knee_standing standing)
{
    static const char *const names[] = {"open", "confirmed", "excluded"};
    return standing <= KNEE_EXCLUDED ? names[standing] : "?";
}

const char *knee_symptom_rule(size_t row, enum knee_suspect *suspect, enum knee_standing *says)
{
    if (row >= RULES)
        return NULL;
    *suspect = rules[row].suspect;
    *says = rules[row].says;
    return rules[row].words;
}

static void ask_rules(const struct evidence *e, struct knee_scale_suspect *s)
{
    for (size_t i = 0; i < RULES && s->standing == KNEE_OPEN; i++) {
        if (rules[i].suspect != s->suspect || !rules[i].holds(e))
            continue;
        s->standing = rules[i].says;
        s->rule = rules[i].words;
    }
}

bool knee_symptoms_any(const struct knee_symptoms *s)
{
    return s->loss_behind || !isnan(s->gpu_util) || !isnan(s->cpu_util) ||
           !isnan(s->flops_achieved) || !isnan(s->late_rank);
}

void knee_symptoms_judge(struct knee_scale_answer *a)
{
    const struct knee_scale_row *row = a->row_count ? &a->rows[a->row_count - 1] : NULL;
    struct knee_scale_model none = {
        .step_s = NAN, .comm_share = NAN, .host_share = NAN, .mfu_causal = NAN, .mfu_full = NAN};
    struct evidence e = {.seen = a->question.symptoms,
                         .p95_over_median = row ? row->p95_s / row->step_s : NAN,
                         .outliers = NAN,
                         .slower = row ? row->step_s / row->model.step_s : NAN,
                         .model = row ? &row->model : &none,
                         .loss_behind = a->batch.behind,
                         .data = row && row->log ? row->log->data_s / row->step_s : NAN,
                         .comm = row && row->log ? row->log->comm_s / row->step_s : NAN,
                         .workers = row ? row->workers : NAN,
                         .ratio = row ? row->ratio : NAN};
    if (row && row->log && row->log->timed > 0) {
        e.steps = (double)row->log->timed;
        e.outliers = (double)row->log->counts.outliers / e.steps;
    }
    for (size_t i = 0; i < KNEE_SCALE_SUSPECTS; i++) {
        a->suspects[i] = (struct knee_scale_suspect){
            .suspect = (enum knee_suspect)(i + 1), .rule = "", .measure = measures[i + 1]};
        ask_rules(&e, &a->suspects[i]);
    }
}
