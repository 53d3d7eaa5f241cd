/* SPDX-License-Identifier: MIT */
/* What is said of traces, in sentences. */
#include "out/words.h"

#include <math.h>
#include <stdint.h>

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

static void say_exposed(const struct knee_account *account, const struct knee_diagnosis *d,
                        struct knee_text *text)
{
    double exposed = knee_step_exposed_s(&d->step);
    if (d->step.comm_s <= 0) {
        knee_text_printf(
            text, "There is no communication in this trace: a step of %s, %s of it compute.",
            MS(d->step.wall_s), knee_percent(d->step.label_s[KNEE_COMPUTE] / d->step.wall_s).s);
        return;
    }
    knee_text_printf(text, "R = %s", knee_short(d->ratio).s);
    if (account->rank_count > 1 && d->lowest_ratio <= d->highest_ratio)
        knee_text_printf(text, " (%s to %s over %zu ranks)", knee_short(d->lowest_ratio).s,
                         knee_short(d->highest_ratio).s, account->rank_count);
    knee_text_printf(text, ", E = %s, overlap %s: %s of the %s step is exposed communication",
                     knee_percent(d->efficiency).s, knee_percent(d->overlap).s, MS(exposed),
                     MS(d->step.wall_s));
    if (d->split)
        knee_text_printf(text, ", %s%s transfer and %s%s waiting", d->bounded ? "at most " : "",
                         MS(d->step.label_s[KNEE_TRANSFER]), d->bounded ? "at least " : "",
                         MS(d->step.label_s[KNEE_WAIT]));
    knee_text_puts(text, ".");
}

/* None of the five; but copies or idle time may still be large. */
static void say_no_suspect(const struct knee_diagnosis *d, struct knee_text *text)
{
    enum knee_label most =
        d->step.label_s[KNEE_COPY] > d->step.label_s[KNEE_IDLE] ? KNEE_COPY : KNEE_IDLE;
    double share = d->step.label_s[most] / d->step.wall_s;
    knee_text_puts(text, " None of the five suspects takes 2 % of the step");
    if (share >= 0.02)
        knee_text_printf(text, ", but %s takes %s",
                         most == KNEE_COPY ? "copying" : "unexplained idle time",
                         knee_percent(share).s);
    knee_text_puts(text, ".");
}

static void say_suspect(const struct knee_account *account, const struct knee_diagnosis *d,
                        struct knee_text *text)
{
    const struct knee_rank_account *first = &account->ranks[0];
    double share = d->share[d->suspect];
    switch (d->suspect) {
    case KNEE_SUSPECT_STRAGGLER:
        knee_text_printf(
            text, " The cause is a straggler, not the network: %s of the step is waiting for ",
            knee_percent(share).s);
        if (d->late_ranks)
            list_late_ranks(account, d, text);
        else
            knee_text_puts(text, "others, in turn");
        knee_text_puts(text, ".");
        break;
    case KNEE_SUSPECT_COMM:
        knee_text_printf(text, " The cause is exposed communication: %s takes %s of the step%s.",
                         d->split ? "transfer" : "it", knee_percent(share).s,
                         d->split ? "" : " (how much of it is waiting cannot be told)");
        break;
    case KNEE_SUSPECT_INPUT:
        knee_text_printf(
            text,
            " The cause is starved input: the GPU waits for batches for %s (%s) of the "
            "step, and the loader takes %s of the host's.",
            MS(d->step.label_s[KNEE_STARVED]), knee_percent(share).s,
            knee_percent(d->load_share).s);
        break;
    case KNEE_SUSPECT_TINY_BATCH:
        knee_text_printf(
            text,
            " The cause is too little work per GPU: it waits for launches for %s (%s) of "
            "the step; half of its %zu kernels are shorter than %s.",
            MS(d->step.label_s[KNEE_HOST]), knee_percent(share).s, first->kernels,
            MS(1e-9 * (double)first->median_kernel_ns));
        break;
    case KNEE_SUSPECT_LARGE_BATCH:
        knee_text_printf(
            text,
            " The batch is past the critical size: %s of the examples are wasted, and no "
            "faster system helps.",
            knee_percent(share).s);
        break;
    default: say_no_suspect(d, text); break;
    }
    if (d->suspect != KNEE_SUSPECT_STRAGGLER && d->late_ranks &&
        d->share[KNEE_SUSPECT_STRAGGLER] > 0.02) {
        knee_text_printf(text, " A further %s is waiting for ",
                         knee_percent(d->share[KNEE_SUSPECT_STRAGGLER]).s);
        list_late_ranks(account, d, text);
        knee_text_puts(text, ".");
    }
    if (d->suspect != KNEE_SUSPECT_INPUT && d->load_share >= 0.02)
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

static void say_trace_lever(const struct knee_account *account, const struct knee_diagnosis *d,
                            struct knee_text *text)
{
    const struct knee_prediction *p = &d->prediction;
    double transfer = d->step.label_s[KNEE_TRANSFER], wall = d->step.wall_s;
    if (d->suspect == KNEE_SUSPECT_STRAGGLER && d->late_ranks)
        knee_text_printf(
            text,
            " Lever: %s: the step goes from %s to %s at best. A faster network would save "
            "%s at most.",
            knee_cause_cure(account->stragglers[0].cause), MS(wall),
            MS(wall - d->step.label_s[KNEE_WAIT]), knee_percent(transfer / wall).s);
    else if (d->lever != SIZE_MAX)
        knee_text_printf(text, " Lever: %s (%s): step %s -> %s, R %s -> %s, %s throughput.",
                         p->levers[d->lever].name, p->levers[d->lever].change, MS(wall),
                         MS(p->levers[d->lever].row.step.wall_s), knee_short(d->ratio).s,
                         knee_short(p->levers[d->lever].row.ratio).s,
                         knee_signed_percent(p->levers[d->lever].gain).s);
    if (!isnan(p->cost.stall_day) && p->cost.stall_day > 0)
        knee_text_printf(text, " The stall costs %s of %s a day at %s a GPU-hour.",
                         DOLLARS(p->cost.stall_day), DOLLARS(p->cost.day),
                         DOLLARS(p->job.hw.price_per_hour));
}

void knee_diagnosis_sentence(const struct knee_account *account, const struct knee_diagnosis *d,
                             struct knee_text *text)
{
    say_exposed(account, d, text);
    say_suspect(account, d, text);
    say_trace_lever(account, d, text);
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
         "Ranks are missing: what is called waiting is the least that it can be. Give the files of "
         "all ranks of a group together."},
        {KNEE_GAP_NO_COLLECTIVES,
         "There are no collectives. If the job has several workers, record a step "
         "that synchronises."},
        {KNEE_GAP_UNMATCHED,
         "The ranks' collectives do not match: record the same steps on all of them "
         "(schedule=torch.profiler.schedule(...))."},
        {KNEE_GAP_LOOSE, "Many collectives do not end together on their ranks: how much of them is "
                         "waiting cannot be told."},
        {KNEE_GAP_NO_STEPS, "There are no steps in the trace: the whole file counts as one. Call "
                            "prof.step() after each."},
        {KNEE_GAP_LOSSES, "The file is damaged or cut: what is lost is listed below."},
        {KNEE_GAP_WHOLE_GRAPHS, "CUDA graphs are recorded as one piece each: record with "
                                "--cuda-graph-trace=node."},
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
