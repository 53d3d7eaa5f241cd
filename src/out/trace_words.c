/* SPDX-License-Identifier: MIT */
/* What is said of traces, in sentences. */
#include "base/format.h"
#include "judge/judge.h"
#include "out/words.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define MS(value)      knee_human(value, KNEE_UNIT_SECONDS).s
#define DOLLARS(value) knee_human(value, KNEE_UNIT_DOLLARS).s

static void list_late_ranks(const struct knee_account *account, const struct knee_diagnosis *d,
                            struct knee_text *text)
{
    size_t shown = d->late_ranks < 4 ? d->late_ranks : 4;
    knee_text_puts(text, d->late_ranks == 1 ? "rank " : "ranks ");
    for (size_t i = 0; i < shown; i++)
        knee_text_printf(text, "%s%lld",
                         i == 0           ? ""
                         : i + 1 == shown ? " and "
                                          : ", ",
                         (long long)account->ranks[account->stragglers[i].rank].rank);
    if (d->late_ranks > shown)
        knee_text_printf(text, " and %zu others", d->late_ranks - shown);
    knee_text_puts(text, d->late_ranks == 1 ? ", which comes last at " : ", which come last at ");
    for (size_t i = 0; i < shown; i++)
        knee_text_printf(text, "%s%zu",
                         i == 0           ? ""
                         : i + 1 == shown ? " and "
                                          : ", ",
                         account->stragglers[i].last_count);
    const struct knee_straggler *first = &account->stragglers[0];
    knee_text_printf(text, " of %zu collectives", account->instances + account->partial);
    if (first->excess_ns > 0)
        knee_text_printf(text, ": %s for %s longer than the others",
                         first->cause == KNEE_COMPUTE ? "computing" : knee_label_name(first->cause),
                         MS(1e-9 * (double)first->excess_ns / d->steps));
}

/* "+36 %", or "3.1 times" once per cent are no help. */
static struct knee_word gain_word(double gain)
{
    struct knee_word word = {""};
    if (gain < 2)
        knee_format(word.s, sizeof word.s, "%+.0f %%", 100 * gain);
    else
        knee_format(word.s, sizeof word.s, "%.1f times the", 1 + gain);
    return word;
}

static void say_formal(const struct knee_account *account, const struct knee_diagnosis *d,
                       struct knee_text *text)
{
    double exposed = knee_step_exposed_s(&d->step);
    if (d->step.comm_s <= 0) {
        knee_text_printf(
            text, "There is no communication in this trace: a step of %s, %s of it compute.",
            MS(d->step.wall_s), knee_percent(d->step.label_s[KNEE_COMPUTE] / d->step.wall_s).s);
        return;
    }
    knee_text_printf(text, "R = %s", knee_ratio_word(d->ratio).s);
    if (account->rank_count > 1 && d->lowest_ratio <= d->highest_ratio)
        knee_text_printf(text, " (%s to %s over %zu ranks)", knee_ratio_word(d->lowest_ratio).s,
                         knee_ratio_word(d->highest_ratio).s, account->rank_count);
    knee_text_printf(text, ", E = %s, overlap %s: %s of the %s step is exposed communication",
                     knee_percent(d->efficiency).s, knee_percent(d->overlap).s, MS(exposed),
                     MS(d->step.wall_s));
    if (d->split)
        knee_text_printf(text, ", %s%s transfer and %s%s waiting", d->bounded ? "at most " : "",
                         MS(d->step.label_s[KNEE_TRANSFER]), d->bounded ? "at least " : "",
                         MS(d->step.label_s[KNEE_WAIT]));
    knee_text_puts(text, ".");
}

/* ---- Why ---- */

/* The wire against what it should be. */
static void say_slow_wire(const struct knee_account *account, const struct knee_diagnosis *d,
                          struct knee_text *text)
{
    const struct knee_collective_account *c = &account->collectives[d->slow_wire];
    knee_text_printf(
        text, " Its %s of %s%s%s reaches %s, %s of what %s can do: %.*f times too slow.",
        knee_op_name(c->op), knee_human((double)c->bytes, KNEE_UNIT_BYTES).s, *c->dtype ? " " : "",
        c->dtype, knee_human(d->wire_bytes_per_s, KNEE_UNIT_BYTES_PER_S).s,
        knee_percent(1 / d->wire_slowdown).s, account->machine, d->wire_slowdown < 10,
        d->wire_slowdown);
}

static void say_comm(const struct knee_account *account, const struct knee_diagnosis *d,
                     struct knee_text *text)
{
    knee_text_printf(text, "exposed communication: %s takes %s of the step%s.",
                     d->split ? "transfer" : "it", knee_percent(d->share[KNEE_SUSPECT_COMM]).s,
                     d->split ? "" : " (how much of it is waiting cannot be told)");
    if (d->slow_wire != SIZE_MAX)
        say_slow_wire(account, d, text);
}

static void say_straggler(const struct knee_account *account, const struct knee_diagnosis *d,
                          struct knee_text *text)
{
    knee_text_printf(text, "a straggler, not the network: %s of the step is waiting for ",
                     knee_percent(d->share[KNEE_SUSPECT_STRAGGLER]).s);
    if (d->late_ranks)
        list_late_ranks(account, d, text);
    else
        knee_text_puts(text, "others, in turn");
    knee_text_puts(text, ".");
}

static void say_input(const struct knee_account *account, const struct knee_diagnosis *d,
                      struct knee_text *text)
{
    (void)account;
    knee_text_printf(text,
                     "starved input: the GPU waits for batches for %s (%s) of the step, and the "
                     "loader takes %s of the host's.",
                     MS(d->step.label_s[KNEE_STARVED]),
                     knee_percent(d->share[KNEE_SUSPECT_INPUT]).s, knee_percent(d->load_share).s);
}

/* The shapes, not the launches, are what is too small. */
static bool shapes_are_small(const struct knee_diagnosis *d)
{
    return d->suspect == KNEE_SUSPECT_TINY_BATCH && d->roofline.mend > 1 &&
           2 * d->small_shapes > d->share[KNEE_SUSPECT_TINY_BATCH];
}

static void say_small_shapes(const struct knee_diagnosis *d, struct knee_text *text)
{
    const struct knee_roofline *r = &d->roofline;
    double rate = r->judged_flops / d->step.wall_s, compute_s = d->step.label_s[KNEE_COMPUTE];
    knee_text_printf(
        text,
        "too little work per GPU: it is busy for %s of the step, but computes %s, %s "
        "of its peak. Products of %s rows reach %s, larger ones could reach %s",
        knee_percent(compute_s / d->step.wall_s).s, knee_human(rate, KNEE_UNIT_FLOPS).s,
        knee_percent(rate / r->peak_flops).s, knee_human(r->rows, KNEE_UNIT_COUNT).s,
        knee_percent(r->judged_flops / r->judged_s / r->peak_flops).s,
        knee_percent(r->judged_flops / r->large_s * r->reach_s / r->judged_s / r->peak_flops).s);
    if (r->optimizer_counts)
        knee_text_printf(text, "; the optimizer takes %s whatever the batch", MS(r->optimizer_s));
    knee_text_puts(text, ".");
}

static void say_tiny_batch(const struct knee_account *account, const struct knee_diagnosis *d,
                           struct knee_text *text)
{
    const struct knee_rank_account *first = &account->ranks[0];
    if (shapes_are_small(d)) {
        say_small_shapes(d, text);
        return;
    }
    knee_text_printf(text,
                     "too little work per GPU: it waits for launches for %s (%s) of the step; half "
                     "of its %zu kernels are shorter than %s.",
                     MS(d->step.label_s[KNEE_HOST]),
                     knee_percent(d->step.label_s[KNEE_HOST] / d->step.wall_s).s, first->kernels,
                     MS(1e-9 * (double)first->median_kernel_ns));
}

static void say_large_batch(const struct knee_account *account, const struct knee_diagnosis *d,
                            struct knee_text *text)
{
    (void)account;
    knee_text_printf(text,
                     "a batch past the critical size: %s of the examples are wasted, and no faster "
                     "system helps.",
                     knee_percent(d->share[KNEE_SUSPECT_LARGE_BATCH]).s);
}

static void say_copies(const struct knee_account *account, const struct knee_diagnosis *d,
                       struct knee_text *text)
{
    (void)account;
    knee_text_printf(text, "copies that nothing hides: %s (%s) of the step.",
                     MS(d->step.label_s[KNEE_COPY]), knee_percent(d->share[KNEE_SUSPECT_COPY]).s);
}

static void say_idle(const struct knee_account *account, const struct knee_diagnosis *d,
                     struct knee_text *text)
{
    (void)account;
    bool blind = d->gaps & KNEE_GAP_NO_LAUNCHES;
    knee_text_printf(text, "an idle GPU: for %s (%s) of the step it does nothing%s.",
                     MS(d->step.label_s[KNEE_IDLE]), knee_percent(d->share[KNEE_SUSPECT_IDLE]).s,
                     blind ? ", and the trace does not say whether its host had work for it"
                           : " although work was handed to it");
}

/* What each suspect is called, and what to do about it where no lever says more. */
static const struct {
    void (*say)(const struct knee_account *, const struct knee_diagnosis *, struct knee_text *);
    const char *advice;
} suspects[KNEE_SUSPECTS] = {
    [KNEE_SUSPECT_COMM] = {say_comm, "Communicate less, or hide it"},
    [KNEE_SUSPECT_INPUT] = {say_input, "Give the loader more workers or faster storage"},
    [KNEE_SUSPECT_STRAGGLER] = {say_straggler, "Even out the ranks"},
    [KNEE_SUSPECT_TINY_BATCH] = {say_tiny_batch,
                                 "Give each GPU more work per launch: a bigger batch, CUDA graphs "
                                 "or compilation"},
    [KNEE_SUSPECT_LARGE_BATCH] = {say_large_batch, "Use a smaller global batch"},
    [KNEE_SUSPECT_COPY] = {say_copies,
                           "Pin host memory (pin_memory=True) and copy with non_blocking=True"},
    [KNEE_SUSPECT_IDLE] = {say_idle, "Look at what the streams wait for: synchronisations "
                                     "(.item(), .cpu()), events, another process on the GPU"},
};

/* Whoever serves a model asks how busy its GPUs are, not what to change in training. */
static void say_served(const struct knee_diagnosis *d, struct knee_text *text)
{
    const struct knee_step *step = &d->step;
    knee_text_printf(text,
                     "Of the %s it computes for %s, is in exposed communication for %s and in "
                     "copies for %s; in gaps it waits for its host for %s and is idle for %s.",
                     MS(step->wall_s), MS(step->label_s[KNEE_COMPUTE]),
                     MS(knee_step_exposed_s(step)), MS(step->label_s[KNEE_COPY]),
                     MS(step->label_s[KNEE_HOST]), MS(step->label_s[KNEE_IDLE]));
}

static void say_reason(const struct knee_account *account, const struct knee_diagnosis *d,
                       struct knee_text *text)
{
    if (d->gaps & KNEE_GAP_SERVING) {
        say_served(d, text);
        return;
    }
    if (d->suspect == KNEE_SUSPECT_NONE) {
        knee_text_printf(text, "No suspect takes %g %% of the step.", 100 * KNEE_NO_BOTTLENECK);
    } else {
        knee_text_puts(text, "The cause is ");
        suspects[d->suspect].say(account, d, text);
    }
    if (d->suspect != KNEE_SUSPECT_STRAGGLER && d->late_ranks &&
        d->share[KNEE_SUSPECT_STRAGGLER] > KNEE_NO_BOTTLENECK) {
        knee_text_printf(text, " A further %s is waiting for ",
                         knee_percent(d->share[KNEE_SUSPECT_STRAGGLER]).s);
        list_late_ranks(account, d, text);
        knee_text_puts(text, ".");
    }
    if (d->suspect != KNEE_SUSPECT_INPUT && d->load_share >= KNEE_NO_BOTTLENECK)
        knee_text_printf(text, " The loader takes %s of the host's step.",
                         knee_percent(d->load_share).s);
}

const char *knee_cause_cure(enum knee_label cause)
{
    static const char *const cures[KNEE_LABELS] = {
        [KNEE_COMPUTE] = "even out the work, look at clocks and temperature",
        [KNEE_COPY] = "pin memory and copy asynchronously",
        [KNEE_STARVED] = "give the loader more workers or faster storage",
        [KNEE_HOST] =
            "free the host: pin processes to cores, stop what else runs there, launch less",
        [KNEE_IDLE] = "look at what the streams wait for",
    };
    return cause < KNEE_LABELS && cures[cause] ? cures[cause] : "look at the timeline";
}

/* ---- What to do, and what it buys ---- */

static bool wire_is_first(const struct knee_diagnosis *d)
{
    return d->suspect == KNEE_SUSPECT_COMM && d->slow_wire != SIZE_MAX;
}

static bool late_ranks_are_first(const struct knee_diagnosis *d)
{
    return d->suspect == KNEE_SUSPECT_STRAGGLER && d->late_ranks > 0;
}

bool knee_diagnosis_says_lever(const struct knee_diagnosis *d)
{
    return d->lever != SIZE_MAX && !wire_is_first(d);
}

static void say_advice(const struct knee_account *account, const struct knee_diagnosis *d,
                       struct knee_text *text)
{
    const struct knee_lever *lever = d->lever == SIZE_MAX ? NULL : &d->prediction.levers[d->lever];
    if (d->gaps & KNEE_GAP_SERVING) {
        knee_text_printf(text, "The GPU that serves is busy for %s of the recording.",
                         knee_percent(knee_step_busy_s(&d->step) / d->step.wall_s).s);
    } else if (wire_is_first(d)) {
        knee_text_puts(text, "Look at the transport first: NCCL_DEBUG=INFO shows what NCCL "
                             "uses (NVLink, IB, sockets).");
    } else if (late_ranks_are_first(d)) {
        knee_text_printf(text, "Rank %lld first: %s.",
                         (long long)account->ranks[account->stragglers[0].rank].rank,
                         knee_cause_cure(account->stragglers[0].cause));
    } else if (shapes_are_small(d)) {
        knee_text_printf(text,
                         "Give each GPU a batch %.0f times as large (%s rows for %s in its "
                         "products), as far as memory and the critical batch allow.",
                         d->roofline.mend,
                         knee_human(d->roofline.mend * d->roofline.rows, KNEE_UNIT_COUNT).s,
                         knee_human(d->roofline.rows, KNEE_UNIT_COUNT).s);
    } else if (d->suspect == KNEE_SUSPECT_COPY || d->suspect == KNEE_SUSPECT_IDLE || !lever) {
        knee_text_printf(text, "%s.",
                         suspects[d->suspect].advice ? suspects[d->suspect].advice
                                                     : "Nothing in this trace holds the GPUs back");
    } else {
        knee_text_printf(text, "Lever: %s (%s).", lever->name, lever->change);
    }
}

static void say_gain(const struct knee_account *account, const struct knee_diagnosis *d,
                     struct knee_text *text)
{
    const struct knee_prediction *p = &d->prediction;
    double transfer = d->step.label_s[KNEE_TRANSFER], wall = d->step.wall_s;
    bool cpu = strcmp(account->ranks[0].trace->format, "cpu") == 0;
    if (d->gaps & KNEE_GAP_SERVING)
        ; /* nothing of training is promised */
    else if (late_ranks_are_first(d) &&
             d->punctual_step_s > (1 - KNEE_WORTH_A_WORD) * d->step.wall_s)
        knee_text_printf(text,
                         "Without its lateness the step stays at %s by replay: what else holds it, "
                         "the host's pace for one, comes first.",
                         MS(wall));
    else if (late_ranks_are_first(d))
        knee_text_printf(text,
                         "The step goes from %s to %s at best; a faster network would save %s at "
                         "most.",
                         MS(wall), MS(d->punctual_step_s), knee_percent(transfer / wall).s);
    else if (wire_is_first(d))
        knee_text_printf(text, "At the rate of %s the step goes from %s to %s%s.", account->machine,
                         MS(wall), d->split && !d->bounded ? "about " : "at best ",
                         MS(d->wired_step_s));
    else if (shapes_are_small(d))
        knee_text_printf(text,
                         "The examples of a step then take %s for %s: at least %.1f times the "
                         "throughput, by the shapes of the products.",
                         MS(d->roofline.mended_s), MS(wall), wall / d->roofline.mended_s);
    else if (d->lever != SIZE_MAX) {
        const struct knee_lever *lever = &p->levers[d->lever];
        knee_text_printf(text, "The step goes from %s to %s", MS(wall), MS(lever->row.step.wall_s));
        if (d->ratio >= 0.005)
            knee_text_printf(text, ", R from %s to %s", knee_ratio_word(d->ratio).s,
                             knee_ratio_word(lever->row.ratio).s);
        knee_text_printf(text, ": %s throughput.", gain_word(lever->gain).s);
    }
    if (!cpu && !isnan(p->cost.stall_day) && p->cost.stall_day > 0)
        knee_text_printf(text, "%sThe stall costs %s of %s a day at %s a GPU-hour.",
                         text->length ? " " : "", DOLLARS(p->cost.stall_day), DOLLARS(p->cost.day),
                         DOLLARS(p->job.hw.price_per_hour));
}

void knee_diagnosis_line(const struct knee_account *account, const struct knee_diagnosis *d,
                         enum knee_diagnosis_part part, struct knee_text *text)
{
    static void (*const say[])(const struct knee_account *, const struct knee_diagnosis *,
                               struct knee_text *) = {
        [KNEE_SAY_ADVICE] = say_advice,
        [KNEE_SAY_REASON] = say_reason,
        [KNEE_SAY_GAIN] = say_gain,
        [KNEE_SAY_FORMAL] = say_formal,
    };
    say[part](account, d, text);
}

void knee_diagnosis_sentence(const struct knee_account *account, const struct knee_diagnosis *d,
                             struct knee_text *text)
{
    for (int part = 0; part < KNEE_SAY_PARTS; part++) {
        struct knee_text line = {.alloc = text->alloc};
        knee_diagnosis_line(account, d, (enum knee_diagnosis_part)part, &line);
        if (line.length && text->length)
            knee_text_puts(text, " ");
        if (line.length)
            knee_text_puts(text, line.data);
        text->failed = text->failed || line.failed;
        knee_text_release(&line);
    }
}

const char *knee_gap_sentence(unsigned gaps, size_t which)
{
    static const struct {
        unsigned gap;
        const char *sentence;
    } sentences[] = {
        {KNEE_GAP_ONE_RANK,
         "One rank alone: waiting cannot be told from transfer. Record all ranks and give "
         "their files together."},
        {KNEE_GAP_RANKS_MISSING,
         "Ranks are missing: waiting cannot be told from transfer. Give the files of "
         "all ranks of a group together."},
        {KNEE_GAP_BOUNDS,
         "Ranks are missing: what is called waiting is the least that it can be. Give the files of "
         "all ranks of a group together."},
        {KNEE_GAP_ONE_WORKER,
         "One worker: how the job scales is not in this trace. Ask knee predict --params N "
         "--compute-time T --cluster NAME, with T as the compute of its step."},
        {KNEE_GAP_NO_COMPUTE,
         "There is next to no compute beside the communication: R says nothing, and no lever is "
         "told. Record whole steps with the GPU's kernels (ProfilerActivity.CUDA); of a benchmark "
         "of collectives ask knee fit."},
        {KNEE_GAP_NO_COLLECTIVES,
         "There are no collectives. If the job has several workers, record a step "
         "that synchronises."},
        {KNEE_GAP_UNMATCHED,
         "The ranks' collectives do not match: record the same steps on all of them "
         "(schedule=torch.profiler.schedule(...))."},
        {KNEE_GAP_OTHER_STEPS,
         "The ranks recorded other steps: nothing of theirs can be matched. Record the same steps "
         "on all of them (schedule=torch.profiler.schedule(...))."},
        {KNEE_GAP_LOOSE, "Many collectives do not end together on their ranks: how much of them is "
                         "waiting cannot be told."},
        {KNEE_GAP_NO_STEPS, "There are no steps in the trace: the whole file counts as one. Call "
                            "prof.step() after each."},
        {KNEE_GAP_LOSSES, "The file is damaged or cut: what is lost is listed below."},
        {KNEE_GAP_WHOLE_GRAPHS, "CUDA graphs are recorded as one piece each: record with "
                                "--cuda-graph-trace=node."},
        {KNEE_GAP_SERVING, "A model is served here, not trained: busy share, gaps and exposed "
                           "communication are told, "
                           "levers of training are not."},
        {KNEE_GAP_LAID_OUT,
         "No starts are recorded: the GPU's work is laid out as early as its dependencies allow, "
         "without the host's time. Gaps and steps are not in it."},
        {KNEE_GAP_SHARED_GPU,
         "The ranks share one GPU: they take turns on it, so each one's compute looks longer than "
         "it is. Give each rank a GPU of its own (CUDA_VISIBLE_DEVICES)."},
        {KNEE_GAP_NO_LAUNCHES,
         "Most kernels lack their launches: host-bound and idle cannot be told apart. "
         "Record CPU activities too."},
        {KNEE_GAP_GPU, "There is no preset for this GPU: its price and links are not known. Give "
                       "--price, or the --gpu or --cluster that is nearest."},
        {KNEE_GAP_LARGE_BATCH, "Large-batch breakdown cannot be seen in a trace: give --noise or "
                               "--critical-batch with a batch."},
    };
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
        if ((gaps & sentences[i].gap) && which-- == 0)
            return sentences[i].sentence;
    return NULL;
}
