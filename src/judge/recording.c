/* SPDX-License-Identifier: MIT */
/*
 * Decides what kind of recording this is before any advice is given. Users first record what is
 * easy to record: one step, the first one, a forward pass, the capture of a graph, a server. None
 * of them is a training step, so advice for training steps would be wrong. Rules are tried in
 * order; the first that holds wins.
 */
#include "judge/judge.h"

#include <string.h>

/* Below these there is too little GPU work to judge; a millisecond in many pieces is enough. */
#define LEAST_WORK_S  1e-3
#define LEAST_KERNELS 20
#define MANY_KERNELS  100

/* ---- Rules ---- */

static bool is_tiny(const struct knee_account *account, const struct knee_diagnosis *d)
{
    size_t kernels = 0;
    for (size_t r = 0; r < account->rank_count; r++)
        kernels += account->ranks[r].source->work;
    double busy_s = d->steps * knee_step_busy_s(&d->step);
    bool cpu = strcmp(account->ranks[0].trace->format, "cpu") == 0;
    return !cpu && (kernels < LEAST_KERNELS ||
                    (busy_s < LEAST_WORK_S && kernels < MANY_KERNELS * account->rank_count));
}

/* A capture launches nothing: most of the file is the host, and little runs. */
static bool is_capture(const struct knee_account *account, const struct knee_diagnosis *d)
{
    const struct knee_trace *trace = account->ranks[0].trace;
    return trace->captures > 0 && knee_step_busy_s(&d->step) < 0.5 * d->step.wall_s;
}

static bool is_first_step(const struct knee_account *account, struct knee_diagnosis *d)
{
    const struct knee_rank_facts *facts = &account->ranks[0].facts;
    d->cold_s = 1e-9 * (double)facts->cold_ns;
    d->recording_s = 1e-9 * (double)facts->cold_window_ns;
    d->cold_compiles = facts->cold_compiles;
    d->cold_loads = facts->cold_loads;
    return facts->cold_ns > 0;
}

static bool is_serving(const struct knee_account *account, struct knee_diagnosis *d)
{
    const struct knee_rank_facts *facts = &account->ranks[0].facts;
    d->decodes = facts->decodes;
    d->prefills = facts->prefills;
    return account->step_source != KNEE_STEPS_OPTIMIZER && facts->serves && !facts->trains;
}

/* The host's operations are recorded, and none of them belongs to a backward pass. */
static bool is_forward(const struct knee_account *account)
{
    const struct knee_trace *trace = account->ranks[0].trace;
    return trace->operations && !account->ranks[0].facts.trains;
}

static enum knee_program program_of(const struct knee_rank_account *rank)
{
    if (rank->facts.torch)
        return KNEE_PROGRAM_TORCH;
    return strcmp(rank->trace->format, "nsys") == 0 ? KNEE_PROGRAM_CUDA : KNEE_PROGRAM_OTHER;
}

void knee_recognise_recording(const struct knee_account *account, struct knee_diagnosis *d)
{
    d->program = program_of(&account->ranks[0]);
    d->micro_batches = (double)account->ranks[0].facts.micro_batches;
    d->loads_ahead = account->ranks[0].facts.loads_ahead;
    d->recording = KNEE_RECORDED_TRAINING;
    if (is_capture(account, d))
        d->recording = KNEE_RECORDED_CAPTURE;
    else if (is_tiny(account, d))
        d->recording = KNEE_RECORDED_TINY;
    else if (is_first_step(account, d))
        d->recording = KNEE_RECORDED_FIRST_STEP;
    else if (is_serving(account, d))
        d->recording = KNEE_RECORDED_SERVING;
    else if (is_forward(account))
        d->recording = KNEE_RECORDED_FORWARD;
}

const char *knee_recorded_name(enum knee_recorded recording)
{
    static const char *const names[] = {"training",   "too small", "graph capture",
                                        "first step", "serving",   "forward"};
    return names[recording];
}
