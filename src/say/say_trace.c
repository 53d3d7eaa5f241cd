/* SPDX-License-Identifier: MIT */
/*
 * Sentences about traces. Line one is what to do, or what the recording is, or "Healthy"; line two
 * why, with the number that shows it; line three what it buys. All three speak of the one row that
 * judge chose (`lever` in the diagnosis), so that they cannot contradict each other.
 */
#include "say/trace_fields.h"

#include "judge/judge.h"
#include "say/numbers.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* What is being said, of what. */
struct speech {
    const struct knee_account *account;
    const struct knee_diagnosis *d;
    const struct knee_lever *lever; /* that is advised; NULL: none */
    struct knee_trace_facts f;
    const char *window; /* what times are of: without marks there is no step */
};
typedef void sayer(const struct speech *s, struct knee_text *text);

static void capitalised(struct knee_text *text, const char *phrase)
{
    knee_text_printf(text, "%c%s", knee_capital(*phrase), phrase + (*phrase != 0));
}

/* ---- Late ranks ---- */

static long long late_rank(const struct speech *s, size_t i)
{
    return (long long)s->account->ranks[s->account->stragglers[i].rank].rank;
}

/* "rank 1", "ranks 7, 5 and 4". */
static void list_late(const struct speech *s, const char *rank, struct knee_text *text)
{
    size_t late = s->d->late_ranks, shown = late < 4 ? late : 4;
    knee_text_printf(text, "%s%s ", rank, late == 1 ? "" : "s");
    for (size_t i = 0; i < shown; i++)
        knee_text_printf(text, "%s%lld",
                         i == 0          ? ""
                         : i + 1 == late ? " and "
                                         : ", ",
                         late_rank(s, i));
    if (late > shown)
        knee_text_printf(text, " and %zu others", late - shown);
}

/* ---- Line one: changes ---- */

static void head_link(const struct speech *s, struct knee_text *text)
{
    const struct knee_collective_account *c = &s->account->collectives[s->d->slow_wire];
    knee_text_printf(text, "Slow link: %s %s runs at %s, expected %s.", SAY_BYTES((double)c->bytes),
                     knee_op_name(c->op), SAY_RATE(s->d->wire_bytes_per_s),
                     SAY_RATE(s->d->wire_bytes_per_s * s->d->wire_slowdown));
}

static void head_even(const struct speech *s, struct knee_text *text)
{
    const struct knee_diagnosis *d = s->d;
    if (d->lone.least_s > 0) {
        knee_text_printf(text, "Rank %lld waits at least %s per %s for another rank.",
                         (long long)s->account->ranks[0].rank, SAY_TIME(d->lone.least_s),
                         s->window);
    } else if (d->late_ranks == 1 && s->f.excess_s > 0) {
        const char *doing = knee_cause_doing(s->account->stragglers[0].cause);
        knee_text_printf(text, "Rank %lld is late: it %s %s per %s longer than the others.",
                         late_rank(s, 0), doing ? doing : "is late", SAY_TIME(s->f.excess_s),
                         s->window);
    } else if (d->late_ranks) {
        list_late(s, "Rank", text);
        knee_text_puts(text, d->late_ranks == 1 ? " is late: the others wait."
                                                : " are late: the others wait.");
    } else {
        knee_text_puts(text, "Even out the ranks: they wait for each other in turn.");
    }
}

static void head_launches(const struct speech *s, struct knee_text *text)
{
    bool torch = s->d->program == KNEE_PROGRAM_TORCH;
    if (s->d->micro_batches > 1) {
        knee_text_printf(
            text, "Launch-bound: use fewer than %.0f micro-batches per step, or a CUDA graph.",
            s->d->micro_batches);
        return;
    }
    knee_text_printf(text, "Launch-bound: capture the %s as a CUDA graph%s.",
                     s->d->recording == KNEE_RECORDED_FORWARD ? "forward pass"
                     : torch                                  ? "step"
                                                              : "work",
                     s->f.compiled ? ""
                     : torch       ? ", or use torch.compile"
                                   : ", or launch fewer kernels");
}

static void head_device(const struct speech *s, struct knee_text *text)
{
    knee_text_printf(text, "Remove device-to-device copies: they take %s of the %s.",
                     SAY_SHARE(s->f.device_share), s->window);
}

static void head_fused(const struct speech *s, struct knee_text *text)
{
    knee_text_printf(text, "%s: %s of GPU time is unfused elementwise kernels.",
                     s->d->program == KNEE_PROGRAM_TORCH ? "Use torch.compile" : "Fuse kernels",
                     SAY_SHARE(s->f.unfused_share));
}

/* Worker processes load ahead already: then more of them are needed. */
static void head_loader(const struct speech *s, struct knee_text *text)
{
    knee_text_puts(text, s->d->loads_ahead
                             ? "Input-bound: the loader's workers are too slow, use more of them."
                             : "Input-bound: load batches ahead of the step.");
}

static void head_batch(const struct speech *s, struct knee_text *text)
{
    knee_text_printf(text, "Give each GPU a batch %.0f times as large, if memory allows.",
                     s->d->roofline.mend);
}

/* ---- Line two: why ---- */

static void of_the_step(const struct speech *s, double share, struct knee_text *text)
{
    knee_text_printf(text, "%s of the %s %s is ", SAY_SHARE(share), SAY_TIME(s->d->step.wall_s),
                     s->window);
}

static void why_link(const struct speech *s, struct knee_text *text)
{
    of_the_step(s, s->d->split ? s->d->share[KNEE_SUSPECT_COMM] : s->f.exposed_share, text);
    knee_text_puts(text, s->d->split ? "transfer." : "exposed communication.");
    if (!s->d->split && s->d->lone.least_s > 0)
        knee_text_printf(text, " At least %s of it is waiting for another rank.",
                         SAY_TIME(s->d->lone.least_s));
    if (s->d->late_ranks && s->d->share[KNEE_SUSPECT_STRAGGLER] >= KNEE_WORTH_IT) {
        knee_text_printf(
            text, " Another %s is waiting: ", SAY_SHARE(s->d->share[KNEE_SUSPECT_STRAGGLER]));
        list_late(s, "rank", text);
        knee_text_puts(text, s->d->late_ranks == 1 ? " is late." : " are late.");
    }
}

static void why_even(const struct speech *s, struct knee_text *text)
{
    const struct knee_diagnosis *d = s->d;
    if (d->lone.least_s > 0) {
        knee_text_printf(text,
                         "%s takes %s at one place, %s takes %s at another: the rest is waiting. "
                         "Record all ranks.",
                         SAY_BYTES((double)d->lone.bytes), SAY_TIME(d->lone.long_s),
                         d->lone.bytes == d->lone.short_bytes
                             ? "the same"
                             : SAY_BYTES((double)d->lone.short_bytes),
                         SAY_TIME(d->lone.short_s));
        return;
    }
    of_the_step(s, d->share[KNEE_SUSPECT_STRAGGLER], text);
    knee_text_puts(text, "waiting for ");
    if (d->late_ranks)
        list_late(s, "rank", text);
    else
        knee_text_puts(text, "other ranks, a different one each time");
    if (d->late_ranks && s->f.excess_s > 0)
        knee_text_printf(text, ". Fix: %s", knee_cause_fix(s->account->stragglers[0].cause));
    knee_text_puts(text, ".");
}

static void why_launches(const struct speech *s, struct knee_text *text)
{
    const struct knee_step *step = &s->d->step;
    knee_text_printf(text,
                     "The GPU computes for %s and waits for launches for %s of the %s %s: %s "
                     "kernels, half of them shorter than %s.",
                     SAY_TIME(step->label_s[KNEE_COMPUTE]), SAY_TIME(step->label_s[KNEE_HOST]),
                     SAY_TIME(step->wall_s), s->window, SAY_COUNT(rint(s->f.kernels)),
                     SAY_TIME(1e-9 * (double)s->account->ranks[0].median_kernel_ns));
    if (s->f.compiled)
        knee_text_puts(text, " Part of the model is compiled already.");
}

static void why_loader(const struct speech *s, struct knee_text *text)
{
    knee_text_printf(text, "The GPU waits for batches for %s of the %s %s.",
                     SAY_TIME(s->d->step.label_s[KNEE_STARVED]), SAY_TIME(s->d->step.wall_s),
                     s->window);
}

/* "16 copies (device to device) per step, 34 GB at 2.1 TB/s: 16.2 of the 19 ms step, not hidden" */
static void why_copies(const struct speech *s, struct knee_text *text)
{
    const struct knee_copy_share *c = &s->d->copies[s->f.copy];
    knee_text_printf(text, "%s %s (%s) per %s", SAY(KNEE_AS_NUMBER, c->count),
                     rint(c->count) == 1 ? "copy" : "copies", knee_copy_kind_name(s->f.copy),
                     s->window);
    if (c->bytes > 0)
        knee_text_printf(text, ", %s at %s", SAY_BYTES(c->bytes), SAY_RATE(c->bytes_per_s));
    knee_text_printf(text, ": %s of the %s %s, not hidden", SAY_TIME(c->exposed_s),
                     SAY_TIME(s->d->step.wall_s), s->window);
    if (s->f.copy_at_link)
        knee_text_puts(text, ". That is the full rate of the link");
    else if (s->f.copy == KNEE_COPY_DEVICE && s->d->program == KNEE_PROGRAM_TORCH)
        knee_text_puts(text, ". They come from clone, contiguous, cat or copy_");
    knee_text_puts(text, ".");
}

static void head_pageable(const struct speech *s, struct knee_text *text)
{
    knee_text_puts(text, s->f.copy == KNEE_COPY_OUT_PAGEABLE
                             ? "Copy less to the host: copies to pageable memory hold up the GPU."
                             : "Pin host memory: copies from pageable memory hold up the GPU.");
}

static void why_fused(const struct speech *s, struct knee_text *text)
{
    bool first = true;
    knee_text_puts(text, "GPU time: ");
    for (int w = 0; w < KNEE_KERNEL_KINDS; w++) {
        if (s->f.kind_share[w] < KNEE_WORTH_IT)
            continue;
        knee_text_printf(text, "%s%s %s", first ? "" : ", ",
                         knee_kernel_kind_name((enum knee_kernel_kind)w),
                         SAY_SHARE(s->f.kind_share[w]));
        first = false;
    }
    knee_text_puts(text, ".");
}

static void why_stopped(const struct speech *s, struct knee_text *text)
{
    knee_text_printf(text,
                     "The same kernels are quick in other steps: %s of the %s %s is waiting for "
                     "another process.",
                     SAY_TIME(s->d->spent_s[KNEE_SPENT_STOPPED]), SAY_TIME(s->d->step.wall_s),
                     s->window);
}

static void why_again(const struct speech *s, struct knee_text *text)
{
    knee_text_printf(text,
                     "The backward pass runs kernels of the forward pass again for %s of the %s "
                     "%s.",
                     SAY_TIME(s->d->spent_s[KNEE_SPENT_AGAIN]), SAY_TIME(s->d->step.wall_s),
                     s->window);
}

static void why_batch(const struct speech *s, struct knee_text *text)
{
    const struct knee_roofline *r = &s->d->roofline;
    knee_text_printf(text,
                     "Products of %s rows reach %s of the GPU's peak; larger ones could reach %s.",
                     SAY_COUNT(r->rows), SAY_SHARE(r->of_peak), SAY_SHARE(r->reached_of_peak));
    if (r->optimizer_counts)
        knee_text_printf(text, " The optimizer takes %s for any batch.", SAY_TIME(r->optimizer_s));
}

/* Rows without their own sentence are about communication. */
static void why_comm(const struct speech *s, struct knee_text *text)
{
    const struct knee_diagnosis *d = s->d;
    of_the_step(s, s->f.exposed_share, text);
    knee_text_puts(text, "exposed communication");
    if (d->split)
        knee_text_printf(text, ": %s%s transfer, %s%s waiting", d->bounded ? "at most " : "",
                         SAY_TIME(d->step.label_s[KNEE_TRANSFER]), d->bounded ? "at least " : "",
                         SAY_TIME(d->step.label_s[KNEE_WAIT]));
    else if (!isnan(d->overlap))
        knee_text_printf(text, "; %s of communication is hidden", SAY_SHARE(d->overlap));
    knee_text_puts(text, ".");
}

/* Changes with their own sentences; the others use the words of the table of changes. A row
 * without a head has words and, where they go on, the share of GPU time and the rest. */
static const struct {
    const char *name;
    sayer *head, *why;
    const char *words, *rest;
    enum knee_spent spent;
} changes[] = {
    {"expected link rate", head_link, why_link, NULL, NULL, 0},
    {"even workers", head_even, why_even, NULL, NULL, 0},
    {"fewer launches", head_launches, why_launches, NULL, NULL, 0},
    {"faster loader", head_loader, why_loader, NULL, NULL, 0},
    {"hidden copies", head_pageable, why_copies, NULL, NULL, 0},
    {"no device copies", head_device, why_copies, NULL, NULL, 0},
    {"copies beside compute", NULL, why_copies,
     "Copy less between host and GPU, or copy while the GPU computes.", NULL, 0},
    {"fused kernels", head_fused, why_fused, NULL, NULL, 0},
    {"tensor cores", NULL, why_fused,
     "Use TF32: ", " of GPU time is 32-bit products off the tensor cores.", KNEE_SPENT_PLAIN},
    {"16 bits", NULL, why_fused, "Use bf16: ", " of GPU time is products of 32-bit numbers.",
     KNEE_SPENT_WIDE_PRODUCT},
    {"32 bits", NULL, why_fused, "Use float32: ", " of GPU time is products of 64-bit numbers.",
     KNEE_SPENT_DOUBLE},
    {"less indexing", NULL, why_fused, "Index less: gathering and scattering takes ",
     " of GPU time.", KNEE_SPENT_INDEXING},
    {"fused optimizer", NULL, why_fused, "Use a fused optimizer: it takes ",
     " of GPU time in separate kernels.", KNEE_SPENT_OPTIMIZER},
    {"fused attention", NULL, why_fused, "Use fused attention: scores in memory take ",
     " of GPU time.", KNEE_SPENT_SCORES},
    {"no checkpointing", NULL, why_again,
     "Turn off activation checkpointing if memory allows: it takes ", " of GPU time.",
     KNEE_SPENT_AGAIN},
    {"GPU alone", NULL, why_stopped, "Another process uses the GPU: kernels are stopped for ",
     " of their time.", KNEE_SPENT_STOPPED},
    {"one tensor", NULL, why_fused, "Allocate tensors that grow once: torch.cat takes ",
     " of GPU time.", KNEE_SPENT_JOINING},
    {"channels last", NULL, why_fused, "Use channels_last: converting layouts takes ",
     " of GPU time.", KNEE_SPENT_LAYOUT},
    {"bigger local batch", head_batch, why_batch, NULL, NULL, 0},
};

static size_t change_row(const struct speech *s)
{
    size_t i = 0;
    while (i < KNEE_COUNT_OF(changes) && strcmp(s->lever->name, changes[i].name) != 0)
        i++;
    return i;
}

static void head_change(const struct speech *s, struct knee_text *text)
{
    size_t row = change_row(s);
    if (row == KNEE_COUNT_OF(changes)) {
        capitalised(text, s->lever->action);
        knee_text_puts(text, ".");
    } else if (changes[row].head) {
        changes[row].head(s, text);
    } else {
        knee_text_puts(text, changes[row].words);
        if (changes[row].rest)
            knee_text_printf(text, "%s%s", SAY_SHARE(s->f.spent_share[changes[row].spent]),
                             changes[row].rest);
    }
}

static void say_forward(const struct speech *s, struct knee_text *text)
{
    if (s->d->recording == KNEE_RECORDED_FORWARD)
        knee_text_puts(text, "A forward pass only: no backward pass is recorded. ");
}

static void why_change(const struct speech *s, struct knee_text *text)
{
    size_t row = change_row(s);
    say_forward(s, text);
    (row < KNEE_COUNT_OF(changes) ? changes[row].why : why_comm)(s, text);
}

/* ---- Nothing to change ---- */

static const char *plain_label(const struct speech *s)
{
    static const char *const words[KNEE_LABELS] = {
        [KNEE_TRANSFER] = "exposed communication",
        [KNEE_WAIT] = "waiting for other ranks",
        [KNEE_COPY] = "copies",
        [KNEE_STARVED] = "waiting for input",
        [KNEE_HOST] = "waiting for launches",
        [KNEE_IDLE] = "idle time",
    };
    if (s->f.remainder == KNEE_IDLE && (s->d->gaps & KNEE_GAP_NO_LAUNCHES))
        return "gaps; the host is not recorded";
    return words[s->f.remainder];
}

static void head_healthy(const struct speech *s, struct knee_text *text)
{
    if (s->d->unprofiled_s > 0)
        knee_text_printf(text,
                         "Healthy without the profiler: the GPU computes for about %s of the %s.",
                         SAY_SHARE(s->f.compute_share), s->window);
    else if (s->d->step.comm_s > 0)
        knee_text_printf(text, "Healthy: %s efficiency, computing for %s of the %s.",
                         SAY_SHARE(s->d->efficiency), SAY_SHARE(s->f.compute_share), s->window);
    else
        knee_text_printf(text, "Healthy: the GPU computes for %s of the %s.",
                         SAY_SHARE(s->f.compute_share), s->window);
}

static void why_healthy(const struct speech *s, struct knee_text *text)
{
    say_forward(s, text);
    knee_text_puts(text, "No change that keeps the result gains 5%");
    if (s->f.remainder_share > 0)
        knee_text_printf(text, ". Largest remainder: %s of %s",
                         SAY_TIME(s->d->step.label_s[s->f.remainder]), plain_label(s));
    if (s->f.unfused_share >= KNEE_UNFUSED_SHOWN)
        knee_text_printf(text, "; %s of GPU time is elementwise and norm kernels",
                         SAY_SHARE(s->f.unfused_share));
    knee_text_puts(text, ".");
}

static void say_gap(const struct speech *s, struct knee_text *text)
{
    const struct knee_idle_gap *gap = &s->d->gap;
    const char *in = gap->next ? strstr(gap->next, "namespace)::") : NULL; /* anonymous */
    const char *next = in ? in + 12 : gap->next;
    next = next && strncmp(next, "void ", 5) == 0 ? next + 5 : next;
    size_t name = next ? strcspn(next, "(<") : 0;
    while (name > 0 && next[name - 1] == ' ')
        name--;
    knee_text_printf(text, "The longest gap is %s", SAY_TIME(gap->length_s));
    if (gap->call)
        knee_text_printf(text, ", the host is in %s", knee_safe(gap->call, 40).s);
    if (next)
        knee_text_printf(text, "%s %s", gap->call ? "; next runs" : ", before",
                         knee_safe(next, name < 48 ? name : 48).s);
    knee_text_puts(text, ".");
}

static void head_remainder(const struct speech *s, struct knee_text *text)
{
    const struct knee_diagnosis *d = s->d;
    const struct knee_word is = knee_say_number(s->f.remainder_share, KNEE_AS_SHARE);
    const char *share = is.s, *step = s->window;
    enum knee_label left = s->f.remainder;
    if (d->gaps & KNEE_GAP_NO_COMPUTE)
        knee_text_puts(text, "Almost no compute is recorded: communication cannot be judged.");
    else if (left == KNEE_TRANSFER && !d->split)
        knee_text_printf(text, "%s of the %s is exposed communication: record all ranks.", share,
                         step);
    else if (left == KNEE_IDLE && (d->gaps & KNEE_GAP_NO_LAUNCHES))
        knee_text_printf(text, "The GPU does nothing for %s of the %s; its host is not recorded.",
                         share, step);
    else if (left == KNEE_IDLE && s->f.gap_counts && d->gap.call)
        knee_text_printf(text, "The GPU is idle for %s of the %s: the host is in %s.", share, step,
                         knee_safe(d->gap.call, 24).s);
    else if (left == KNEE_IDLE)
        knee_text_printf(text, "The GPU is idle for %s of the %s with work queued.", share, step);
    else if (left == KNEE_HOST && d->gap.call && 2 * d->gap.length_s >= d->step.label_s[KNEE_HOST])
        knee_text_printf(text, "The GPU waits for its host for %s of the %s: it is in %s.", share,
                         step, knee_safe(d->gap.call, 24).s);
    else if (left == KNEE_HOST)
        knee_text_printf(text, "The GPU waits for its host for %s of the %s.", share, step);
    else if (left == KNEE_COPY)
        knee_text_printf(text, "Copies take %s of the %s, and nothing hides them.", share, step);
    else if (left == KNEE_WAIT && d->late_ranks) {
        knee_text_printf(text, "%s of the %s is waiting for ", share, step);
        list_late(s, "rank", text);
        knee_text_puts(
            text, s->account->stragglers[0].cause == KNEE_HOST ? ", whose hosts are late." : ".");
    } else
        knee_text_printf(text, "%s of the %s is %s; no safe change gains 5%%.", share, step,
                         plain_label(s));
}

static void why_remainder(const struct speech *s, struct knee_text *text)
{
    const struct knee_diagnosis *d = s->d;
    enum knee_label left = s->f.remainder;
    if (left == KNEE_TRANSFER || left == KNEE_WAIT) {
        why_comm(s, text);
        if (left == KNEE_WAIT && d->lever_count > 0 && (d->levers[0].kind & KNEE_LEVER_HOST))
            knee_text_puts(text, " Pin the late ranks to their own cores, or use CUDA graphs.");
        else if (d->gaps & KNEE_GAP_QUICK_WIRE)
            knee_text_puts(text, " Small collectives are fast, so the link works: most of it is "
                                 "waiting for other ranks.");
        else if (!d->split)
            knee_text_puts(text, " One rank does not show how much of it is waiting.");
    } else if (left == KNEE_COPY) {
        why_copies(s, text);
    } else if (left >= KNEE_STARVED && s->f.gap_counts) {
        say_gap(s, text);
        if (left == KNEE_IDLE && !d->gap.call)
            knee_text_puts(text, d->gaps & KNEE_GAP_NO_LAUNCHES
                                     ? " Record the host too."
                                     : " Check what its stream waits for: events, other streams.");
    } else {
        knee_text_printf(text, "The GPU computes for %s of the %s %s.",
                         SAY_TIME(d->step.label_s[KNEE_COMPUTE]), SAY_TIME(d->step.wall_s),
                         s->window);
    }
}

/* ---- What was recorded ---- */

static void head_recording(const struct speech *s, struct knee_text *text)
{
    const struct knee_diagnosis *d = s->d;
    switch (d->recording) {
    case KNEE_RECORDED_TINY:
        knee_text_printf(text, "Too little GPU work for a verdict: %zu %s, %s.", s->f.work,
                         s->f.work == 1 ? "kernel" : "kernels and copies", SAY_TIME(s->f.busy_s));
        break;
    case KNEE_RECORDED_CAPTURE:
        knee_text_puts(text, "This records the capture of a CUDA graph, not its execution.");
        break;
    case KNEE_RECORDED_FIRST_STEP:
        knee_text_printf(text, "First step: %s of %s is %s.", SAY_TIME(d->cold_s),
                         SAY_TIME(d->recording_s),
                         d->cold_loads      ? "the loader's first batch"
                         : d->cold_compiles ? "the host loading or compiling code"
                                            : "one launch that loads code");
        break;
    default:
        knee_text_printf(text, "Serving%s: the GPU is busy for %s of the %s.",
                         d->prefills && d->decodes ? ", prefill and decode"
                         : d->decodes              ? ", decode"
                         : d->prefills             ? ", prefill"
                                                   : "",
                         SAY_SHARE(s->f.busy_share), s->window);
    }
}

static void why_recording(const struct speech *s, struct knee_text *text)
{
    const struct knee_step *step = &s->d->step;
    switch (s->d->recording) {
    case KNEE_RECORDED_TINY:
        knee_text_puts(text, "Record a few whole steps: docs/guide/record.md.");
        break;
    case KNEE_RECORDED_CAPTURE:
        knee_text_puts(text, "Record the steps that replay the graph.");
        break;
    case KNEE_RECORDED_FIRST_STEP:
        knee_text_printf(text, "Record after a warm-up%s.",
                         s->d->program == KNEE_PROGRAM_TORCH
                             ? ": schedule(wait=1, warmup=3, active=3)"
                         : s->d->program == KNEE_PROGRAM_CUDA
                             ? ": cudaProfilerStart(), nsys profile -c cudaProfilerApi"
                             : "");
        break;
    default:
        knee_text_printf(text,
                         "Of %s: compute %s, exposed communication %s, copies %s, waiting for "
                         "launches %s, idle %s.",
                         SAY_TIME(step->wall_s), SAY_TIME(step->label_s[KNEE_COMPUTE]),
                         SAY_TIME(knee_step_exposed_s(step)), SAY_TIME(step->label_s[KNEE_COPY]),
                         SAY_TIME(step->label_s[KNEE_HOST]), SAY_TIME(step->label_s[KNEE_IDLE]));
        if (s->f.gap_counts && s->d->gap.call) {
            knee_text_puts(text, " ");
            say_gap(s, text);
        }
    }
}

/* ---- Line three: what it buys ---- */

/* A batch that grows takes longer and does more: what counts is what an example takes. */
static void say_gain(const struct speech *s, struct knee_text *text)
{
    const struct knee_diagnosis *d = s->d;
    const struct knee_lever *lever = s->lever;
    if (!lever)
        return;
    if (d->headline == KNEE_SAYS_CHANGE && strcmp(lever->name, "bigger local batch") == 0) {
        knee_text_printf(text, "Today's examples then take %s instead of %s: %s throughput.",
                         SAY_TIME(d->roofline.mended_s), SAY_TIME(s->f.before_s),
                         SAY_TIMES(1 + s->f.batch_gain));
    } else {
        bool bound = ((lever->kind & KNEE_LEVER_NETWORK) && (!d->split || d->bounded)) ||
                     (lever->kind & KNEE_LEVER_INPUT) ||
                     ((lever->kind & KNEE_LEVER_STRAGGLER) && d->lone.least_s > 0);
        bool rough = knee_rough(lever->low_s, lever->high_s);
        double step_s = lever->row.step.wall_s;
        knee_text_printf(
            text, "%s %s goes from %s%s to %s %s%s, %s throughput.",
            d->unprofiled_s > 0 ? "Without the profiler the" : "The", s->window,
            d->unprofiled_s > 0 ? "about " : "", SAY_TIME(s->f.before_s),
            bound ? "at best" : "about",
            rough || bound
                ? SAY_TIME(step_s)
                : knee_say_interval(step_s, lever->low_s, lever->high_s, KNEE_AS_SECONDS).s,
            rough ? " (rough)" : "", SAY_TIMES(1 + lever->gain));
        if (*lever->how)
            knee_text_printf(text, " Try: %s.", lever->how);
    }
    if (s->f.worth_money)
        knee_text_printf(text, " Saves %s of %s per day.", SAY_DOLLARS(lever->saved_per_day),
                         SAY_DOLLARS(d->cost.day));
}

/* ---- Before and after the three lines ---- */

static void say_title(const struct speech *s, const struct knee_trace_report *report,
                      struct knee_text *text)
{
    const struct knee_account *account = s->account;
    const char *gpu = account->ranks[0].trace->gpu_name;
    gpu += strncmp(gpu, "NVIDIA ", 7) == 0 ? 7 : 0;
    if (account->world_size > (int64_t)account->rank_count)
        knee_text_printf(text, "%zu of %lld ranks", account->rank_count,
                         (long long)account->world_size);
    else
        knee_text_puts(text, knee_say_count((double)account->rank_count, "rank").s);
    if (account->step_source == KNEE_STEPS_NONE)
        knee_text_puts(text, ", no steps marked");
    else
        knee_text_printf(text, ", %s", knee_say_count(rint(s->d->steps), "step").s);
    knee_text_printf(text, "%s%s.", *gpu ? ", " : "", knee_safe(gpu, 40).s);
    if (account->rank_count > 1 && s->f.matched)
        knee_text_puts(text, " All collectives matched.");
    else if (account->rank_count > 1 && account->unmatched)
        knee_text_printf(text, " %s collective calls not matched.",
                         SAY_COUNT((double)account->unmatched));
    if (report->refused_count)
        knee_text_printf(text, " %s not used.",
                         knee_say_count((double)report->refused_count, "file").s);
}

static void say_void(const struct speech *s, const struct knee_trace_report *report,
                     struct knee_text *text)
{
    const char *cut = NULL;
    bool stopped = false;
    for (size_t t = 0; t < report->trace_count; t++) {
        const struct knee_loss *losses = report->traces[t].losses;
        stopped = stopped || losses[KNEE_LOSS_INTERRUPTED].count;
        if (losses[KNEE_LOSS_GZIP].count || losses[KNEE_LOSS_TRUNCATED].count)
            cut = cut ? cut : report->traces[t].file;
    }
    const char *slash = cut ? strrchr(cut, '/') : NULL;
    if (s->d->gaps & KNEE_GAP_SHARED_GPU)
        knee_text_printf(text,
                         "%s ranks share one GPU: give each its own with CUDA_VISIBLE_DEVICES.",
                         s->account->rank_count == 2 ? "Both" : "All");
    if (stopped)
        knee_text_printf(text, "%sStopped while reading: the rest is missing.",
                         text->length ? " " : "");
    else if (cut)
        knee_text_printf(text, "%sA file is truncated, its end is missing: %s.",
                         text->length ? " " : "", knee_safe(slash ? slash + 1 : cut, 36).s);
    else if (s->d->gaps & KNEE_GAP_LOSSES)
        knee_text_printf(text, "%sPart of the recording is missing: a file is damaged.",
                         text->length ? " " : "");
}

/* The other changes that are safe and worth it; one rank has them as its table. */
static void say_others(const struct speech *s, struct knee_text *text)
{
    const struct knee_diagnosis *d = s->d;
    size_t shown = 0;
    for (size_t i = 0; i < d->lever_count && shown < 3 && s->account->rank_count > 1; i++) {
        const struct knee_lever *lever = &d->levers[i];
        bool idle = (lever->kind & KNEE_LEVER_STRAGGLER) && d->step.label_s[KNEE_WAIT] <= 0;
        if (i == d->lever || idle || !knee_lever_is_advice(lever))
            continue;
        knee_text_printf(text, "%s%s -> %s",
                         shown++    ? "; "
                         : s->lever ? "What else helps: "
                                    : "What helps: ",
                         lever->words, SAY_TIME(lever->row.step.wall_s));
    }
    if (shown)
        knee_text_puts(text, "\n");
}

static void say_after(const struct speech *s, struct knee_text *text)
{
    bool ranges = (s->d->gaps & KNEE_GAP_NO_STEPS) && s->d->program != KNEE_PROGRAM_TORCH;
    const unsigned said = KNEE_GAP_LARGE_BATCH | KNEE_GAP_SHARED_GPU | KNEE_GAP_LOSSES |
                          KNEE_GAP_NO_COLLECTIVES | (ranges ? (unsigned)KNEE_GAP_NO_STEPS : 0) |
                          (s->d->headline == KNEE_SAYS_HEALTHY ? 0 : (unsigned)KNEE_GAP_ONE_WORKER);
    const struct knee_step_spread *spread = &s->d->spread;
    const char *gap = knee_gap_sentence(s->d->gaps & ~said, 0);
    if (s->d->headline != KNEE_SAYS_RECORDING)
        say_others(s, text);
    if (spread->steps > 1 && spread->worst_s > KNEE_STANDS_OUT * spread->median_s)
        knee_text_printf(text,
                         "Step %lld takes %s, the median of %zu is %s: %s on rank %lld is %s "
                         "longer.\n",
                         (long long)spread->worst, SAY_TIME(spread->worst_s), spread->steps,
                         SAY_TIME(spread->median_s), knee_label_name(spread->label),
                         (long long)s->account->ranks[spread->rank].rank,
                         SAY_TIME(spread->excess_s));
    if (!gap && ranges)
        gap =
            "No steps are marked: the whole recording counts as one. Mark them with NVTX (step 1).";
    if (gap)
        knee_text_printf(text, "Note: %s\n", gap);
}

static void say_assumed(const struct speech *s, struct knee_text *text)
{
    const struct knee_diagnosis *d = s->d;
    bool link = s->lever && d->headline == KNEE_SAYS_CHANGE && d->slow_wire != SIZE_MAX &&
                strcmp(s->lever->name, "expected link rate") == 0;
    if (link && s->account->machine_assumed)
        knee_text_printf(text, "links of %s; set --cluster", s->account->machine);
    if (d->profiled_host && d->headline != KNEE_SAYS_RECORDING)
        knee_text_printf(text, "%sthe host is %s; knee replay --step-time takes a measured step",
                         text->length ? "; " : "",
                         d->unprofiled_s > 0 ? "1.6 (1.2-2.5) times as fast without the profiler"
                                             : "as slow as with the profiler");
}

static void say_next(const struct speech *s, const struct knee_trace_report *report,
                     struct knee_text *text)
{
    const char *files = report->asked ? report->asked : "FILES";
    if (s->d->headline == KNEE_SAYS_RECORDING && s->d->recording != KNEE_RECORDED_SERVING)
        return;
    if (report->where)
        knee_text_printf(text, "knee trace -v --where %s", files);
    else if (s->d->lever_count && strlen(files) > 24)
        knee_text_printf(text, "knee replay %s", files);
    else if (s->d->lever_count)
        knee_text_printf(text, "knee replay %s  |  knee trace --where %s", files, files);
    else
        knee_text_printf(text, "knee trace --where %s", files);
}

/* ---- -v ---- */

#define LONG_GAP 0.01 /* of the step: worth a line of -v */

static void say_notes(const struct speech *s, const struct knee_trace_report *report,
                      struct knee_text *text)
{
    const struct knee_trace_energy *e = &s->d->energy;
    knee_say_account(report, text);
    if (s->f.kernels > 0) {
        why_fused(s, text);
        knee_text_puts(text, "\n");
    }
    knee_say_products(&s->d->roofline, text);
    if (s->d->gap.length_s >= LONG_GAP * s->d->step.wall_s) {
        say_gap(s, text);
        knee_text_puts(text, "\n");
    }
    if (s->d->lever_count && *s->d->closed_because)
        knee_text_printf(text, "gains are upper bounds from the average step; not replayed: %s\n",
                         s->d->closed_because);
    if (e->from)
        knee_text_printf(text,
                         "a GPU draws %s on average, %s with its server; %s per step (%s %s)\n",
                         SAY(KNEE_AS_WATTS, e->gpu_w), SAY(KNEE_AS_WATTS, e->server_w),
                         SAY(KNEE_AS_JOULES, e->gpu_step_j),
                         e->measured ? "measured on" : "scaled by the power limit from", e->from);
    if (report->where)
        knee_say_where(report->where, s->d, text);
}

void knee_say_trace(const void *result, struct knee_said *said)
{
    static sayer *const heads[] = {
        [KNEE_SAYS_RECORDING] = head_recording,
        [KNEE_SAYS_CHANGE] = head_change,
        [KNEE_SAYS_HEALTHY] = head_healthy,
        [KNEE_SAYS_REMAINDER] = head_remainder,
    };
    static sayer *const whys[] = {
        [KNEE_SAYS_RECORDING] = why_recording,
        [KNEE_SAYS_CHANGE] = why_change,
        [KNEE_SAYS_HEALTHY] = why_healthy,
        [KNEE_SAYS_REMAINDER] = why_remainder,
    };
    const struct knee_trace_report *report = result;
    const struct knee_diagnosis *d = report->diagnosis;
    struct speech s = {
        .account = report->account,
        .d = d,
        .lever = d->lever < d->lever_count ? &d->levers[d->lever] : NULL,
        .f = knee_trace_facts_of(report->account, d),
        .window = d->gaps & KNEE_GAP_NO_STEPS             ? "recording"
                  : d->recording == KNEE_RECORDED_FORWARD ? "pass"
                                                          : "step",
    };
    say_title(&s, report, &said->title);
    say_void(&s, report, &said->voids);
    heads[d->headline](&s, &said->headline);
    whys[d->headline](&s, &said->reason);
    say_gain(&s, &said->effect);
    say_after(&s, &said->after);
    say_assumed(&s, &said->assumed);
    say_next(&s, report, &said->next);
    say_notes(&s, report, &said->notes);
}
