/* SPDX-License-Identifier: MIT */
/* The fields of knee trace's answer: schema knee.trace/1 over a struct knee_trace_report. */
#include "say/trace_fields.h"

#include "judge/judge.h"
#include "say/short.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ---- What the data cannot answer ---- */

const char *knee_gap_sentence(unsigned gaps, size_t which)
{
    static const struct {
        unsigned gap;
        const char *sentence;
    } sentences[] = {
        {KNEE_GAP_ONE_RANK, "One rank only: most waiting counts as transfer. Record all ranks."},
        {KNEE_GAP_RANKS_MISSING,
         "Ranks are missing: wait and transfer cannot be separated. Give all ranks."},
        {KNEE_GAP_BOUNDS, "Ranks are missing: the wait shown is a lower bound. Give all ranks."},
        {KNEE_GAP_ONE_WORKER, "One GPU: how the job scales is not in this trace (knee predict)."},
        {KNEE_GAP_NO_COMPUTE,
         "Almost no compute is recorded. Record whole steps with ProfilerActivity.CUDA."},
        {KNEE_GAP_NO_COLLECTIVES, "No collectives are recorded."},
        {KNEE_GAP_UNMATCHED, "The ranks' collectives do not match: record the same steps on all."},
        {KNEE_GAP_OTHER_STEPS, "The ranks recorded different steps, so nothing can be matched. "
                               "Record the same steps on all."},
        {KNEE_GAP_LOOSE, "Many collectives end apart: wait and transfer cannot be separated."},
        {KNEE_GAP_NO_STEPS,
         "No steps are marked: the whole recording counts as one. Call prof.step() after each."},
        {KNEE_GAP_LOSSES, "The file is damaged or cut: losses are listed with -v."},
        {KNEE_GAP_WHOLE_GRAPHS, "CUDA graphs are whole: record with --cuda-graph-trace=node."},
        {KNEE_GAP_LAID_OUT,
         "No start times are recorded: work starts as early as possible, without gaps."},
        {KNEE_GAP_SHARED_GPU,
         "Ranks that share one GPU take turns: their compute looks longer than it is."},
        {KNEE_GAP_NO_LAUNCHES, "Launches are missing: record CPU activities too."},
        {KNEE_GAP_GPU,
         "No preset for this GPU: price and links are unknown. Give --gpu or --cluster."},
        {KNEE_GAP_LARGE_BATCH, "Large-batch breakdown is not in a trace: give --noise."},
    };
    for (size_t i = 0; i < KNEE_COUNT_OF(sentences); i++)
        if ((gaps & sentences[i].gap) && which-- == 0)
            return sentences[i].sentence;
    return NULL;
}

/* ---- Why a rank is late ---- */

static const struct {
    const char *doing, *fix;
} causes[KNEE_LABELS + 1] = {
    [KNEE_COMPUTE] = {"computes", "even out the work, check clocks and temperature"},
    [KNEE_COPY] = {"copies", "pin memory and copy asynchronously"},
    [KNEE_STARVED] = {"waits for its data", "give its loader more processes or faster storage"},
    [KNEE_HOST] = {"waits for launches", "pin its processes to cores, or use CUDA graphs"},
    [KNEE_IDLE] = {"is idle", "see what its streams wait for"},
};

const char *knee_cause_fix(enum knee_label cause)
{
    return causes[cause].fix ? causes[cause].fix : "see its timeline";
}

/* NULL: not known. */
const char *knee_cause_doing(enum knee_label cause)
{
    return causes[cause].doing;
}

#define REPORT    struct knee_trace_report
#define DIAGNOSIS struct knee_diagnosis

static const struct knee_account *account_at(const struct knee_at *at)
{
    return knee_report_at(at)->account;
}

static const DIAGNOSIS *diagnosis_at(const struct knee_at *at)
{
    return knee_report_at(at)->diagnosis;
}

/* ---- Verdict ---- */

static void put_said(const struct knee_text *words, struct knee_value *out)
{
    knee_value_printf(out, "%s", words->data ? words->data : "");
}
GETTER(get_voids, void, put_said(&at->said->voids, out))
GETTER(get_do, void, put_said(&at->said->headline, out))
static void get_formal(const struct knee_at *at, struct knee_value *out)
{
    knee_value_printf(out, "%s", "");
    knee_say_formal(knee_report_at(at), &out->words);
}
A_TEXT(get_recording, DIAGNOSIS, knee_recorded_name(it->recording))
static void get_kind(const struct knee_at *at, struct knee_value *out)
{
    static const char *const kinds[] = {"recording", "change", "healthy", "remainder"};
    knee_value_text(out, kinds[((const DIAGNOSIS *)at->row)->headline]);
}
A_TEXT(get_suspect, DIAGNOSIS, knee_suspect_name(it->suspect))
A_NUMBER(get_large_batch, DIAGNOSIS,
         it->gaps &KNEE_GAP_LARGE_BATCH ? NAN : it->share[KNEE_SUSPECT_LARGE_BATCH])
static const struct knee_lever *advised(const struct knee_at *at)
{
    const DIAGNOSIS *d = diagnosis_at(at);
    return d->lever < d->lever_count ? &d->levers[d->lever] : NULL;
}
A_TEXT(get_lever, void, advised(at) ? advised(at)->name : NULL)
A_NUMBER(get_unprofiled, DIAGNOSIS, it->unprofiled_s > 0 ? it->unprofiled_s : NAN)
A_NUMBER(get_lever_gain, void, advised(at) ? advised(at)->gain : NAN)

#define SHARE_OF(suspect, name)                                                                    \
    KNEE_FIELD(DIAGNOSIS, share[suspect], name, NULL, SHARE, DATA, "share of the step")
static const struct knee_field evidence_fields[] = {
    SHARE_OF(KNEE_SUSPECT_COMM, "exposed communication"),
    SHARE_OF(KNEE_SUSPECT_INPUT, "starved input"),
    SHARE_OF(KNEE_SUSPECT_STRAGGLER, "straggler"),
    SHARE_OF(KNEE_SUSPECT_TINY_BATCH, "tiny per-GPU batch"),
    KNEE_GET(get_large_batch, "large-batch breakdown", NULL, SHARE, DATA, "null: not in a trace"),
    SHARE_OF(KNEE_SUSPECT_COPY, "exposed copies"),
    SHARE_OF(KNEE_SUSPECT_IDLE, "idle GPU"),
    SHARE_OF(KNEE_SUSPECT_UNFUSED, "unfused kernels"),
    KNEE_FIELD(DIAGNOSIS, load_share, "loader_share", NULL, SHARE, DATA,
               "of host step time spent waiting for batches"),
};

#define SPREAD struct knee_step_spread
WHEN(has_worst, SPREAD, it->steps > 1)
A_TEXT(worst_label, SPREAD, knee_label_name(it->label))
A_NUMBER(worst_rank, SPREAD, (double)account_at(at)->ranks[it->rank].rank)
static const struct knee_field spread_fields[] = {
    KNEE_FIELD(SPREAD, steps, "complete_steps", NULL, COUNT, DATA, ""),
    KNEE_FIELD(SPREAD, median_s, "median_s", NULL, TIME, DATA, ""),
    KNEE_FIELD(SPREAD, p95_s, "p95_s", NULL, TIME, DATA, ""),
    KNEE_FIELD(SPREAD, worst_s, "worst_s", NULL, TIME, DATA, ""),
    KNEE_FIELD(SPREAD, worst, "worst_step", NULL, COUNT, DATA, "its number", .when = has_worst),
    KNEE_GET(worst_label, "worst_label", NULL, TEXT, DATA, "what makes it longer",
             .when = has_worst),
    KNEE_GET(worst_rank, "worst_rank", NULL, COUNT, DATA, "on which rank", .when = has_worst),
    KNEE_FIELD(SPREAD, excess_s, "worst_excess_s", NULL, TIME, DATA, "by how much",
               .when = has_worst),
};

#define ROOF struct knee_roofline
WHEN(has_products, DIAGNOSIS, it->roofline.product_s > 0)
static void if_judged(const struct knee_at *at, double value, struct knee_value *out)
{
    knee_value_number(out, ((const ROOF *)at->row)->judged_s > 0 ? value : NAN);
}
GETTER(get_peak, ROOF, if_judged(at, it->peak_flops, out))
GETTER(get_reach, ROOF, if_judged(at, it->reach_s, out))
GETTER(get_large, ROOF, if_judged(at, it->large_s, out))
#define OF_ROOF(member, name, kind, words) KNEE_FIELD(ROOF, member, name, NULL, kind, DATA, words)
static const struct knee_field product_fields[] = {
    OF_ROOF(product_s, "kernels_s", TIME, "per step"),
    OF_ROOF(flops, "flops", NUMBER, "per step"),
    OF_ROOF(flops_per_s, "flops_per_s", FLOPS, ""),
    OF_ROOF(judged_s, "judged_s", TIME, "those with a known peak"),
    OF_ROOF(judged_flops_per_s, "judged_flops_per_s", FLOPS, ""),
    KNEE_GET(get_peak, "peak_flops_per_s", NULL, FLOPS, DATA, "of the GPU for their type"),
    OF_ROOF(flops_per_byte, "flops_per_byte", NUMBER, ""),
    KNEE_GET(get_reach, "shapes_reach_s", NULL, TIME, DATA, "what these shapes allow"),
    KNEE_GET(get_large, "large_batch_s", NULL, TIME, DATA, "in a very large batch"),
    OF_ROOF(rows, "batch_rows", COUNT, "rows of most products"),
    OF_ROOF(mend, "batch_factor", NUMBER, "a batch so many times as large is enough"),
    OF_ROOF(mended_s, "batch_factor_step_s", TIME, "what today's examples take then"),
    OF_ROOF(optimizer_s, "optimizer_s", TIME, "per step"),
};

static const void *late_row(const struct knee_at *at, size_t index)
{
    return index < diagnosis_at(at)->late_ranks ? &account_at(at)->stragglers[index] : NULL;
}
static void late_rank(const struct knee_at *at, struct knee_value *out)
{
    size_t row = ((const struct knee_straggler *)at->row)->rank;
    knee_value_number(out, (double)account_at(at)->ranks[row].rank);
}
static const struct knee_field late_fields[] = {
    KNEE_GET(late_rank, NULL, NULL, COUNT, DATA, "rank")};

WHEN(has_slow_wire, DIAGNOSIS, it->slow_wire != SIZE_MAX)
static const struct knee_field wire_fields[] = {
    KNEE_FIELD(DIAGNOSIS, slow_wire, "collective", NULL, COUNT, DATA, "row of `collectives`"),
    KNEE_FIELD(DIAGNOSIS, wire_slowdown, "times_slower", NULL, TIMES, DATA, "than expected"),
    KNEE_FIELD(DIAGNOSIS, wire_bytes_per_s, "busbw_bytes_per_s", NULL, RATE, DATA, "as measured"),
};

#define ENERGY struct knee_trace_energy
static const struct knee_field energy_fields[] = {
    KNEE_FIELD(ENERGY, gpu_w, "gpu_w", NULL, WATTS, DATA, "mean of one GPU"),
    KNEE_FIELD(ENERGY, server_w, "server_w", NULL, WATTS, DATA, "with its server"),
    KNEE_FIELD(ENERGY, gpu_step_j, "joules_per_step", NULL, JOULES, DATA, "of one GPU"),
    KNEE_FIELD(ENERGY, product, "product_share", NULL, SHARE, DATA, "of the time"),
    KNEE_FIELD(ENERGY, memory, "memory_share", NULL, SHARE, DATA, "of the time"),
    KNEE_FIELD(ENERGY, wait, "wait_share", NULL, SHARE, DATA, "of the time"),
    KNEE_FIELD(ENERGY, idle, "idle_share", NULL, SHARE, DATA, "of the time"),
    KNEE_FIELD(ENERGY, measured, "measured", NULL, YES_NO, DATA, "else scaled"),
    KNEE_FIELD(ENERGY, from, "watts_from", NULL, TEXT, DATA, "GPU that was measured"),
};

static const void *gap_row(const struct knee_at *at, size_t index)
{
    return knee_gap_sentence(diagnosis_at(at)->gaps, index);
}
A_TEXT(gap_text, void, it)
static const struct knee_field gap_fields[] = {
    KNEE_GET(gap_text, NULL, NULL, TEXT, DATA, "what the data cannot answer")};

static const struct knee_field diagnosis_fields[] = {
    KNEE_GET(get_recording, "recording", NULL, TEXT, DATA, "what was recorded"),
    KNEE_GET(get_kind, "kind", NULL, TEXT, DATA, "recording, change, healthy or remainder"),
    KNEE_GET(get_suspect, "suspect", NULL, TEXT, DATA, "main cause of lost time"),
    KNEE_GROUP("evidence", evidence_fields, "share of the step by suspect"),
    KNEE_GET(get_lever, "lever", NULL, TEXT, DATA, "the advised change"),
    KNEE_GET(get_lever_gain, "lever_gain", NULL, CHANGE, DATA, "of throughput"),
    KNEE_FIELD(DIAGNOSIS, ratio, "ratio", NULL, NUMBER, DATA, "exposed communication / compute"),
    KNEE_FIELD(DIAGNOSIS, efficiency, "efficiency", NULL, SHARE, DATA, "1 / (1 + ratio)"),
    KNEE_FIELD(DIAGNOSIS, overlap, "overlap", NULL, SHARE, DATA,
               "share of communication hidden behind compute"),
    KNEE_FIELD(DIAGNOSIS, step.wall_s, "step_s", NULL, TIME, DATA, "mean step"),
    KNEE_GET(get_unprofiled, "unprofiled_step_s", NULL, TIME, DATA,
             "without the profiler, by replay; null: not known to be shorter"),
    KNEE_INSIDE(DIAGNOSIS, spread, "step_spread", spread_fields, "how far steps differ",
                .flat = true),
    KNEE_INSIDE(DIAGNOSIS, roofline, "products", product_fields,
                "matrix products and attention against the GPU", .flat = true,
                .when = has_products),
    KNEE_ROWS_BY(late_row, "late_ranks", late_fields, "ranks the others wait for"),
    KNEE_GROUP("slow_wire", wire_fields, "the collective that loses most", .flat = true,
               .when = has_slow_wire),
    KNEE_FIELD(DIAGNOSIS, cost.stall_day, "stall_cost_per_day", NULL, DOLLARS, DATA,
               "dollars without useful work"),
    KNEE_INSIDE(DIAGNOSIS, energy, "energy", energy_fields, "what the GPUs draw", .flat = true),
    KNEE_ROWS_BY(gap_row, "cannot_tell", gap_fields, "what the data cannot answer"),
};
static const struct knee_field verdict_fields[] = {
    KNEE_SENTENCE,
    KNEE_GET(get_voids, "voids", NULL, TEXT, DATA, "what makes the rest doubtful"),
    KNEE_GET(get_do, "do", NULL, TEXT, DATA, "what to do"),
    KNEE_GET(knee_get_reason, "why", NULL, TEXT, DATA, "why"),
    KNEE_GET(knee_get_effect, "buys", NULL, TEXT, DATA, "what it buys"),
    KNEE_GET(get_formal, "formal", NULL, TEXT, DATA, "R, efficiency, overlap"),
    KNEE_AMONG(REPORT, diagnosis, diagnosis_fields, .pointer = true),
};

/* ---- Ranks and steps ---- */

#define RANK struct knee_rank_account
#define STEP struct knee_step_account
static const RANK *rank_of_step(const struct knee_at *at)
{
    return &account_at(at)->ranks[((const STEP *)at->row)->rank];
}
/* Wait and transfer are separate, or there is neither. */
static void put_split(const RANK *rank, int64_t ns, struct knee_value *out)
{
    knee_value_ns(out, ns, rank->split || rank->source->call_count == 0);
}
#define SPLIT(name, type, rank, label)                                                             \
    static void name(const struct knee_at *at, struct knee_value *out)                             \
    {                                                                                              \
        put_split(rank, ((const type *)at->row)->ledger.label_ns[label], out);                     \
    }
SPLIT(rank_wait, RANK, at->row, KNEE_WAIT)
SPLIT(rank_transfer, RANK, at->row, KNEE_TRANSFER)
SPLIT(step_wait, STEP, rank_of_step(at), KNEE_WAIT)
SPLIT(step_transfer, STEP, rank_of_step(at), KNEE_TRANSFER)

GETTER(get_exposed, void, knee_value_ns(out, knee_ledger_exposed_ns(at->row), true))
A_NUMBER(get_ratio, void, knee_ledger_ratio(it))
A_NUMBER(get_efficiency, void, knee_ledger_efficiency(it))
A_NUMBER(get_overlap, void, knee_ledger_overlap(it))
#define LEDGER                 struct knee_ledger
#define NS(member, name, head) KNEE_NS(LEDGER, member, name, head, TIME, FULL, "")
static const struct knee_field busy_fields[] = {
    NS(window_ns, "window_s", "window"),
    NS(label_ns[KNEE_COMPUTE], "compute_s", "compute"),
    KNEE_GET(get_exposed, "exposed_comm_s", "exposed", TIME, FULL, "wait + transfer"),
};
static const struct knee_field lost_fields[] = {
    NS(label_ns[KNEE_COPY], "exposed_copy_s", "copies"),
    NS(label_ns[KNEE_STARVED], "starved_input_s", "input"),
    NS(label_ns[KNEE_HOST], "host_bound_s", "launches"),
    NS(label_ns[KNEE_IDLE], "idle_s", "idle"),
    KNEE_GET(get_ratio, "ratio", "R", NUMBER, FULL, "exposed communication / compute"),
    KNEE_GET(get_efficiency, "efficiency", NULL, SHARE, DATA, "1 / (1 + ratio)"),
};
static const struct knee_field hidden_fields[] = {
    NS(comm_ns, "comm_s", NULL),
    KNEE_GET(get_overlap, "overlap", NULL, SHARE, DATA, "hidden communication"),
};

A_TEXT(rank_file, RANK, it->trace->file)
A_TEXT(rank_format, RANK, it->trace->format)
A_TEXT(rank_gpu, RANK, it->trace->gpu_name)
A_NUMBER(rank_device, RANK, (double)it->source->device)
A_NUMBER(rank_load, RANK, it->stepped_ns ? (double)it->load_ns / (double)it->stepped_ns : NAN)
/* Sums over the recording are data; the text has the mean step of each rank instead. */
static const struct knee_field rank_fields[] = {
    KNEE_GET(rank_file, "file", NULL, TEXT, DATA, ""),
    KNEE_FIELD(RANK, rank, "rank", NULL, COUNT, DATA, "global rank"),
    KNEE_AMONG(RANK, ledger, busy_fields),
    KNEE_GET(rank_wait, "wait_s", NULL, TIME, DATA, "null: not told from transfer"),
    KNEE_GET(rank_transfer, "transfer_s", NULL, TIME, DATA, "likewise"),
    KNEE_AMONG(RANK, ledger, lost_fields),
    KNEE_AMONG(RANK, ledger, hidden_fields),
    KNEE_FIELD(RANK, bounded, "wait_is_a_lower_bound", NULL, YES_NO, DATA, ""),
    KNEE_GET(rank_format, "format", NULL, TEXT, DATA, ""),
    KNEE_GET(rank_device, "device", NULL, COUNT, DATA, ""),
    KNEE_GET(rank_gpu, "gpu", NULL, TEXT, DATA, ""),
    KNEE_FIELD(RANK, kernels, "kernels", NULL, COUNT, DATA, "compute kernels"),
    KNEE_NS(RANK, median_kernel_ns, "median_kernel_s", NULL, TIME, DATA, ""),
    KNEE_GET(rank_load, "loader_share", NULL, SHARE, DATA,
             "of host step time spent waiting for batches"),
    KNEE_NS(RANK, shift_ns, "clock_shift_s", NULL, TIME, DATA,
            "added to its times gives the common clock"),
};

A_NUMBER(step_rank, void, (double)rank_of_step(at)->rank)
static const struct knee_field step_fields[] = {
    KNEE_GET(step_rank, "rank", "rank", COUNT, FULL, "global rank"),
    KNEE_FIELD(STEP, number, "step", "step", COUNT, FULL, "-1: outside of all steps"),
    KNEE_FIELD(STEP, complete, "complete", "complete", YES_NO, FULL, ""),
    KNEE_AMONG(STEP, ledger, busy_fields),
    KNEE_GET(step_wait, "wait_s", "wait", TIME, FULL, ""),
    KNEE_GET(step_transfer, "transfer_s", "transfer", TIME, FULL, ""),
    KNEE_AMONG(STEP, ledger, lost_fields),
};

#define PER_STEP struct knee_rank_step
WHEN(row_split, PER_STEP, it->split)
static bool row_whole(const struct knee_at *at)
{
    return !row_split(at);
}
A_NUMBER(row_exposed, PER_STEP, knee_step_exposed_s(&it->step))
GETTER(row_name, PER_STEP, knee_value_printf(out, "rank %lld", (long long)it->rank))
A_TEXT(row_mark, PER_STEP, it->late ? "<- late" : "")
#define STEP_NS(label, name, head, ...)                                                            \
    KNEE_FIELD(PER_STEP, step.label_s[label], name, head, MS, SCREEN, "per step", __VA_ARGS__)
static const struct knee_field per_step_fields[] = {
    KNEE_GET(row_name, "name", "per step, ms", TEXT, SCREEN, "rank 0"),
    KNEE_FIELD(PER_STEP, rank, "rank", NULL, COUNT, DATA, "global rank"),
    KNEE_FIELD(PER_STEP, delays_s, "delays_others_s", "delays others by", MS, SCREEN,
               "how long others wait for it"),
    STEP_NS(KNEE_COMPUTE, "compute_s", "compute", ),
    STEP_NS(KNEE_TRANSFER, "transfer_s", "transfer", .when = row_split),
    STEP_NS(KNEE_WAIT, "wait_s", "wait", .when = row_split),
    KNEE_GET(row_exposed, "exposed_comm_s", "exposed comm.", MS, SCREEN,
             "where wait and transfer are not separate", .when = row_whole),
    STEP_NS(KNEE_HOST, "host_bound_s", "launches", ),
    STEP_NS(KNEE_STARVED, "starved_input_s", "input", ),
    STEP_NS(KNEE_COPY, "exposed_copy_s", "copies", ),
    STEP_NS(KNEE_IDLE, "idle_s", "idle", ),
    KNEE_FIELD(PER_STEP, step.wall_s, "step_s", "step", MS, FULL, ""),
    KNEE_FIELD(PER_STEP, late, "late", NULL, YES_NO, DATA, "the others wait for it"),
    KNEE_GET(row_mark, "mark", "", TEXT, SCREEN, "late ranks"),
};

/* ---- Stragglers ---- */

#define LATE struct knee_straggler
A_TEXT(late_cause, LATE, it->excess_ns > 0 ? knee_label_name(it->cause) : NULL)
A_TEXT(late_fix, LATE, it->excess_ns > 0 ? knee_cause_fix(it->cause) : NULL)
static const struct knee_field straggler_fields[] = {
    KNEE_GET(late_rank, "rank", "rank", COUNT, FULL, "global rank"),
    KNEE_FIELD(LATE, last_count, "last_count", "last at", COUNT, FULL,
               "collectives that it entered last"),
    KNEE_NS(LATE, lateness_ns, "lateness_s", "late by", TIME, FULL, "in the whole recording"),
    KNEE_NS(LATE, held_ns, "held_s", NULL, TIME, DATA, "of it by its own work"),
    KNEE_GET(late_cause, "cause", "because", TEXT, FULL, "what it does longer than the others"),
    KNEE_NS(LATE, excess_ns, "excess_s", "longer by", TIME, FULL, ""),
    KNEE_GET(late_fix, "fix", "fix", TEXT, FULL, "what to do"),
};

/* ---- Collectives ---- */

#define COLL struct knee_collective_account
A_TEXT(coll_name, COLL, knee_op_name(it->op))
static void coll_bytes(const struct knee_at *at, struct knee_value *out)
{
    int64_t bytes = ((const COLL *)at->row)->bytes;
    knee_value_number(out, bytes >= 0 ? (double)bytes : NAN);
}
static void coll_ranks(const struct knee_at *at, struct knee_value *out)
{
    int32_t size = ((const COLL *)at->row)->group_size;
    knee_value_number(out, size > 0 ? (double)size : NAN);
}
A_NUMBER(coll_excess, COLL, it->transfer_s - it->expected_s)
A_NUMBER(coll_expected_rate, COLL,
         it->group_size > 0
             ? knee_op_bus_factor(it->op, it->group_size) * (double)it->bytes / it->expected_s
             : NAN)
#define OF_COLL(member, name, head, kind, words)                                                   \
    KNEE_FIELD(COLL, member, name, head, kind, FULL, words)
static const struct knee_field collective_fields[] = {
    KNEE_GET(coll_name, "name", "collective", TEXT, FULL, "operation"),
    OF_COLL(algorithm, "algorithm", NULL, TEXT, "of NCCL"),
    OF_COLL(protocol, "protocol", NULL, TEXT, "of NCCL"),
    OF_COLL(dtype, "dtype", NULL, TEXT, ""),
    KNEE_GET(coll_bytes, "bytes", "size", BYTES, FULL, "as nccl-tests counts"),
    OF_COLL(group, "group", NULL, TEXT, "communicator"),
    OF_COLL(description, "description", NULL, TEXT, "of the communicator"),
    KNEE_GET(coll_ranks, "group_size", "ranks", COUNT, FULL, ""),
    OF_COLL(axis, "axis", "axis", TEXT, "DP, FSDP, TP, PP, EP by what it looks like"),
    OF_COLL(calls, "calls", "calls", COUNT, "on all ranks"),
    OF_COLL(matched, "matched", NULL, COUNT, "found on all ranks"),
    OF_COLL(transfer_s, "transfer_s", "transfer", TIME, "per call"),
    OF_COLL(wait_s, "wait_s", "wait", TIME, "per call"),
    OF_COLL(duration_s, "duration_s", NULL, TIME, "per call"),
    OF_COLL(bus_bytes_per_s, "busbw_bytes_per_s", "bus", RATE, ""),
    OF_COLL(expected_s, "expected_s", "expected", TIME, "per call on this machine"),
    KNEE_GET(coll_excess, "excess_s", NULL, TIME, DATA, "transfer - expected"),
    KNEE_GET(coll_expected_rate, "expected_busbw_bytes_per_s", NULL, RATE, DATA, ""),
};

/* ---- Changes ---- */

#define LEVER struct knee_lever
A_BOOL(lever_training, LEVER, it->numerics == KNEE_NUMERICS_TRAINING)
static void lever_from(const struct knee_at *at, struct knee_value *out)
{
    static const char *const from[] = {"closed form", "replay", "recording"};
    knee_value_text(out, from[((const LEVER *)at->row)->by]);
}
A_TEXT(lever_numerics, LEVER, knee_numerics_name(it->numerics))
A_NUMBER(lever_times, LEVER, 1 + it->gain)
static const struct knee_field lever_fields[] = {
    KNEE_FIELD(LEVER, words, "words", "change", TEXT, SCREEN, "in words"),
    KNEE_FIELD(LEVER, name, "name", NULL, TEXT, DATA, "the change"),
    KNEE_FIELD(LEVER, change, "change", NULL, TEXT, DATA, "its value"),
    KNEE_FIELD(LEVER, row.ratio, "ratio", NULL, NUMBER, DATA, "R after the change"),
    KNEE_FIELD(LEVER, row.step.wall_s, "step_s", "step", TIME, SCREEN,
               "after the change; `low_s` and `high_s` are its interval", .interval = true,
               .interval_offset = offsetof(LEVER, low_s)),
    KNEE_FIELD(LEVER, gain, "gain", NULL, CHANGE, DATA, "of throughput"),
    KNEE_GET(lever_times, "throughput", "speed", TIMES, SCREEN, "after / before"),
    KNEE_GET(lever_numerics, "numerics", "numerics", TEXT, SCREEN,
             "same, rounding, or changes optimizer"),
    KNEE_FIELD(LEVER, risk, "risk", "side effect", TEXT, FULL, ""),
    KNEE_GET(lever_training, "changes_training", NULL, YES_NO, DATA, ""),
    KNEE_GET(lever_from, "from", "from", TEXT, FULL, "how it was priced"),
    KNEE_FIELD(LEVER, action, "do", NULL, TEXT, DATA, "what to do"),
    KNEE_FIELD(LEVER, how, "how", NULL, TEXT, DATA, "what to type"),
};

/* ---- What was lost ---- */

/* A loss is one of a trace's KNEE_LOSSES kinds that happened. */
static const struct knee_loss *nth_loss(const REPORT *r, size_t index, const struct knee_trace **of)
{
    for (size_t t = 0; t < r->trace_count; t++)
        for (int k = 0; k < KNEE_LOSSES; k++)
            if (r->traces[t].losses[k].count && index-- == 0) {
                *of = &r->traces[t];
                return &r->traces[t].losses[k];
            }
    return NULL;
}
static const void *loss_row(const struct knee_at *at, size_t index)
{
    const struct knee_trace *trace;
    return nth_loss(at->row, index, &trace);
}
static enum knee_loss_kind loss_kind(const struct knee_at *at, const struct knee_trace **trace)
{
    const struct knee_loss *loss = nth_loss(knee_report_at(at), at->index, trace);
    return loss ? (enum knee_loss_kind)(loss - (*trace)->losses) : KNEE_LOSS_TRUNCATED;
}
static void loss_file(const struct knee_at *at, struct knee_value *out)
{
    const struct knee_trace *trace;
    loss_kind(at, &trace);
    knee_value_text(out, trace->file);
}
static void loss_what(const struct knee_at *at, struct knee_value *out)
{
    const struct knee_trace *trace;
    knee_value_text(out, knee_loss_name(loss_kind(at, &trace)));
}
static void loss_lost(const struct knee_at *at, struct knee_value *out)
{
    const struct knee_trace *trace;
    knee_value_bool(out, knee_loss_is_lost(loss_kind(at, &trace)));
}
A_NUMBER(loss_count, struct knee_loss, (double)it->count)
A_NUMBER(loss_byte, struct knee_loss, (double)it->first_byte)
static const struct knee_field loss_fields[] = {
    KNEE_GET(loss_file, "file", "file", TEXT, FULL, ""),
    KNEE_GET(loss_what, "what", "lost or repaired", TEXT, FULL, ""),
    KNEE_GET(loss_count, "count", "count", COUNT, FULL, ""),
    KNEE_GET(loss_byte, "first_byte", "first at byte", COUNT, FULL, ""),
    KNEE_GET(loss_lost, "lost", NULL, YES_NO, DATA, "else repaired"),
};
static const struct knee_field refused_fields[] = {
    KNEE_FIELD(struct knee_refused_file, file, "file", "file not used", TEXT, FULL, ""),
    KNEE_FIELD(struct knee_refused_file, why, "why", "why", TEXT, FULL, ""),
};

/* ---- The whole ---- */

#define ROWS_OF(function, owner, list, count)                                                      \
    static const void *function(const struct knee_at *at, size_t index)                            \
    {                                                                                              \
        return index < owner->count ? &owner->list[index] : NULL;                                  \
    }
ROWS_OF(rank_row, account_at(at), ranks, rank_count)
ROWS_OF(straggler_row, account_at(at), stragglers, straggler_count)
ROWS_OF(collective_row, account_at(at), collectives, collective_count)
ROWS_OF(step_row, account_at(at), steps, step_count)
ROWS_OF(lever_row, diagnosis_at(at), levers, lever_count)

static const void *per_step_row(const struct knee_at *at, size_t index)
{
    const REPORT *r = at->row;
    return r->per_step && index < r->account->rank_count ? &r->per_step[index] : NULL;
}
static const void *idle_row(const struct knee_at *at, size_t index)
{
    const struct knee_idle_gaps *gaps = ((const REPORT *)at->row)->gaps;
    return gaps && index < gaps->count ? &gaps->rows[index] : NULL;
}
static void step_source(const struct knee_at *at, struct knee_value *out)
{
    static const char *const words[] = {
        [KNEE_STEPS_PROFILER] = "profiler",   [KNEE_STEPS_ANNOTATION] = "annotations",
        [KNEE_STEPS_OPTIMIZER] = "optimizer", [KNEE_STEPS_SEQUENCE] = "collectives",
        [KNEE_STEPS_KERNELS] = "kernels",     [KNEE_STEPS_NONE] = "none",
    };
    knee_value_text(out, words[account_at(at)->step_source]);
}
static void not_replayed(const struct knee_at *at, struct knee_value *out)
{
    const char *because = diagnosis_at(at)->closed_because;
    knee_value_text(out, *because ? because : NULL);
}
static void machine(const struct knee_at *at, struct knee_value *out)
{
    const char *name = account_at(at)->machine;
    knee_value_text(out, *name ? name : NULL);
}
A_BOOL(machine_assumed, void, account_at(at)->machine_assumed)
GETTER(transfer, void,
       knee_value_ns(out, account_at(at)->transfer_ns, account_at(at)->instances > 0))
#define ACCOUNT struct knee_account
static const struct knee_field matching_fields[] = {
    KNEE_FIELD(ACCOUNT, instances, "collectives", NULL, COUNT, DATA, "matched"),
    KNEE_FIELD(ACCOUNT, partial, "partial", NULL, COUNT, DATA, "some members only"),
    KNEE_FIELD(ACCOUNT, loose, "not_ended_together", NULL, COUNT, DATA, ""),
    KNEE_FIELD(ACCOUNT, unmatched, "unmatched_calls", NULL, COUNT, DATA, ""),
    KNEE_FIELD(ACCOUNT, further, "calls_of_further_kinds", NULL, COUNT, DATA, ""),
    KNEE_GET(transfer, "transfer_s", NULL, TIME, DATA, "of all matched ones"),
    KNEE_NS(ACCOUNT, largest_shift_ns, "largest_clock_shift_s", NULL, TIME, DATA, ""),
    KNEE_NS(ACCOUNT, residual_ns, "residual_s", NULL, TIME, DATA, "median spread of matched ends"),
    KNEE_FIELD(ACCOUNT, world_size, "world_size", NULL, COUNT, DATA, "-1: unknown"),
};
static const void *inputs_of(const struct knee_at *at)
{
    return &diagnosis_at(at)->inputs;
}
WHEN(has_where, REPORT, it->where)

static const struct knee_field fields[] = {
    KNEE_GROUP("verdict", verdict_fields, "what is wrong and what to do"),
    KNEE_ROWS_BY(rank_row, "ranks", rank_fields, "one row per rank, over the recording"),
    KNEE_ROWS_BY(per_step_row, "per_step", per_step_fields, "the mean step of each rank"),
    KNEE_ROWS_BY(straggler_row, "stragglers", straggler_fields, "ranks that come last"),
    KNEE_ROWS_BY(collective_row, "collectives", collective_fields, "most time first"),
    KNEE_ROWS_BY(lever_row, "levers", lever_fields, "changes, most gain first"),
    KNEE_GET(not_replayed, "not_replayed", NULL, TEXT, DATA, "why changes come from closed forms"),
    KNEE_GET(step_source, "step_source", NULL, TEXT, DATA, "what marks the steps"),
    KNEE_GET(machine, "expected_of", NULL, TEXT, DATA, "machine of expected times"),
    KNEE_GET(machine_assumed, "expected_is_assumed", NULL, YES_NO, DATA, ""),
    KNEE_ROWS_BY(step_row, "steps", step_fields, "every step of every rank"),
    KNEE_ROWS_BY(idle_row, "gaps", knee_idle_gap_fields, "above 1% of the step, longest first"),
    KNEE_INSIDE(REPORT, account, "matching", matching_fields, "calls found on all ranks",
                .pointer = true),
    {.key = "where",
     .kind = KNEE_AS_OBJECT,
     .about = KNEE_ABOUT("with --where"),
     .offset = offsetof(REPORT, where),
     .pointer = true,
     .fields = knee_where_fields,
     .field_count = KNEE_WHERE_FIELDS,
     .when = has_where},
    {.key = "inputs",
     .kind = KNEE_AS_INPUTS,
     .object = inputs_of,
     .keys = &knee_job_keys,
     .tier = FULL,
     .about = KNEE_ABOUT("`name`, `value`, `text`, `source` of every input that was used")},
    KNEE_ROWS_BY(loss_row, "losses", loss_fields, "what was lost or repaired"),
    KNEE_ROWS(REPORT, refused, refused_count, "refused", refused_fields, "files not used"),
};

/* One table on the screen: ranks where there are several, else the changes; with --where what
 * takes most of the step. */
static bool shows_ranks(const struct knee_at *row)
{
    const REPORT *r = knee_report_at(row);
    return r->account->rank_count > 1 && !r->where;
}
static bool shows_change(const struct knee_at *row)
{
    const REPORT *r = knee_report_at(row);
    return r->account->rank_count == 1 && !r->where &&
           ((const LEVER *)row->row)->gain >= KNEE_WORTH_IT &&
           r->diagnosis->headline != KNEE_SAYS_RECORDING;
}
static bool shows_kernels(const struct knee_at *row)
{
    return knee_report_at(row)->where->look == KNEE_LOOK_KERNELS;
}
static bool shows_collectives(const struct knee_at *row)
{
    return knee_report_at(row)->where->look == KNEE_LOOK_COLLECTIVES;
}
static bool shows_gaps(const struct knee_at *row)
{
    return knee_report_at(row)->where->look == KNEE_LOOK_GAPS;
}
#define IN_FULL .tier = FULL
static const struct knee_view views[] = {
    {.list = "ranks", IN_FULL}, /* CSV */
    {.list = "per_step", .pick = shows_ranks, .title = "Ranks, per step"},
    {.list = "levers", .pick = shows_change, .title = "Changes"},
    {.list = "where.kernels", .pick = shows_kernels, .title = "Kernels", .most_full = 32},
    {.list = "where.collectives",
     .pick = shows_collectives,
     .title = "Collectives in order",
     .most_full = 32},
    {.list = "where.host_gaps", .pick = shows_gaps, .title = "What the host does in gaps"},
    {.list = "stragglers", IN_FULL, .title = "Ranks that come last", .most_full = 16},
    {.list = "collectives", IN_FULL, .title = "Collectives", .most_full = 32},
    {.list = "where.critical_path", IN_FULL, .title = "Critical path over ranks", .most_full = 16},
    {.list = "where.passes", IN_FULL, .title = "Passes"},
    {.list = "where.module_classes", IN_FULL, .title = "Modules by class", .most_full = 16},
    {.list = "where.modules", IN_FULL, .title = "Modules", .most_full = 16},
    {.list = "where.annotations", IN_FULL, .title = "Annotations", .most_full = 16},
    {.list = "where.copies", IN_FULL, .title = "Copies", .most_full = 16},
    {.list = "steps", IN_FULL, .title = "Steps", .most_full = 32},
    {.list = "gaps", IN_FULL, .title = "Gaps above 1% of the step", .most_full = 16},
    {.list = "losses", IN_FULL, .title = "Lost or repaired", .most_full = 32},
    {.list = "refused", IN_FULL, .title = "Files not used", .most_full = 32},
    {.list = "inputs", IN_FULL, .title = "Inputs"},
};

size_t knee_step_parts(const struct knee_step *step, bool split,
                       struct knee_bar_part parts[KNEE_PARTS_MAX])
{
    static const struct knee_bar_part looks[KNEE_LABELS] = {
        [KNEE_COMPUTE] = {"compute", 0, "█", "#"}, [KNEE_TRANSFER] = {"transfer", 0, "▓", "T"},
        [KNEE_WAIT] = {"wait", 0, "▒", "w"},       [KNEE_COPY] = {"copies", 0, "░", "c"},
        [KNEE_STARVED] = {"input", 0, "╳", "s"},   [KNEE_HOST] = {"launches", 0, "╱", "h"},
        [KNEE_IDLE] = {"idle", 0, "·", "."},
    };
    for (int label = 0; label < KNEE_LABELS; label++) {
        parts[label] = looks[label];
        parts[label].share = step->wall_s > 0 ? step->label_s[label] / step->wall_s : 0;
    }
    if (!split)
        parts[KNEE_TRANSFER].name = "exposed comm.";
    return step->wall_s > 0 ? KNEE_LABELS : 0;
}

static size_t bar(const void *result, struct knee_bar_part parts[KNEE_PARTS_MAX])
{
    return knee_step_parts(&((const REPORT *)result)->diagnosis->step,
                           ((const REPORT *)result)->diagnosis->split, parts);
}
static const struct knee_picture pictures[] = {{.tier = SCREEN, .bar = bar}};

const struct knee_answer_type knee_trace_answer = {.schema = "knee.trace/1",
                                                   KNEE_FIELDS(fields),
                                                   KNEE_VIEWS(views),
                                                   .pictures = pictures,
                                                   .picture_count = KNEE_COUNT_OF(pictures),
                                                   .say = knee_say_trace};
