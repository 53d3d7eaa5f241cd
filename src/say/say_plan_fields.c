/* SPDX-License-Identifier: MIT */
/* The values of knee plan (schema knee.plan/1) and of its operations (knee.ops/1). The sentences
 * are in say_plan.c. */
#include "job/framework.h"
#include "judge/run_verdict.h"
#include "knee_plan.h"
#include "knee_timeline.h"
#include "say/plan_fields.h"
#include "say/short.h"

#include <math.h>
#include <stdint.h>

#define A     struct knee_plan_answer
#define ROW   struct knee_plan_row
#define FOUND struct knee_found
#define COST  struct knee_plan_cost
#define PLAN  struct knee_plan
#define MEM   struct knee_memory

static const char *word(const struct knee_choices *choices, int row)
{
    const char *name = row >= 0 ? choices->name((size_t)row) : NULL;
    return name ? name : "-";
}

/* ---- One plan ---- */

A_TEXT(shard, PLAN, word(&knee_shard_names, it->shard))
A_TEXT(recompute, PLAN, word(&knee_recompute_names, it->recompute))
A_TEXT(schedule, PLAN, word(&knee_schedule_names, it->schedule))
A_TEXT(precision, PLAN, word(&knee_precision_names, it->precision))
A_TEXT(offload, PLAN, word(&knee_offload_names, it->offload))

#define NUM(member, words) KEY(PLAN, member, #member, NUMBER, words)
#define DEGREES                                                                                    \
    NUM(tp, "tensor parallel"), NUM(pp, "pipeline stages"), NUM(vp, "virtual stages per rank"),    \
        NUM(cp, "context parallel"), NUM(ep, "expert parallel"), NUM(etp, "experts' TP"),          \
        NUM(dp, "data parallel"), NUM(micro_batch, "sequences")
#define CHOICES                                                                                    \
    KEY_BY(shard, "shard", TEXT, "what is sharded over data-parallel ranks"),                      \
        KEY_BY(recompute, "recompute", TEXT, "activations recomputed"),                            \
        KEY_BY(schedule, "schedule", TEXT, "of the pipeline"),                                     \
        KEY_BY(offload, "offload", TEXT, "what is kept on the host")
static const struct knee_field plan_fields[] = {
    NUM(gpus, "GPUs in use"),
    DEGREES,
    NUM(global_batch, "sequences per step"),
    NUM(shard_size, "ranks that share one copy"),
    NUM(seq_par, "sequence parallel: 1 or 0"),
    CHOICES,
    KEY_BY(precision, "precision", TEXT, "of the matrix products"),
};

/* ---- Its memory and time ---- */

A_NUMBER(low_bytes, MEM, knee_memory_sure(it).low)
A_NUMBER(high_bytes, MEM, knee_memory_sure(it).high)
A_NUMBER(fit, MEM, knee_memory_fit(it))
#define ROOM(member, key, head, words) KNEE_FIELD(MEM, member, key, head, BYTES, FULL, words)
const struct knee_field knee_memory_fields[KNEE_MEMORY_FIELDS] = {
    ROOM(parameters, "parameters_bytes", "parameters", "weights"),
    ROOM(gradients, "gradients_bytes", "gradients", "gradients"),
    ROOM(optimizer, "optimizer_bytes", "optimizer", "optimizer states"),
    ROOM(activations, "activations_bytes", "activations", "activations"),
    ROOM(buffers, "buffers_bytes", "buffers", "communication buffers"),
    ROOM(fragmentation, "fragmentation_bytes", "fragmentation", "lost by the allocator"),
    ROOM(base, "base_bytes", "context", "CUDA context and libraries"),
    ROOM(total, "total_bytes", "total", "sum"),
    ROOM(capacity, "capacity_bytes", "memory of the GPU", "of the GPU"),
    KEY_BY(low_bytes, "low_bytes", BYTES, "low end of the total"),
    KEY_BY(high_bytes, "high_bytes", BYTES, "high end of the total"),
    KEY_BY(fit, "fit_probability", SHARE, "probability that it fits"),
};

#define PART(part, key) KNEE_FIELD(COST, part_s[part], key, key, TIME, FULL, "seconds per step")
static const struct knee_field part_fields[] = {
    PART(KNEE_PART_GEMM, "products"),
    PART(KNEE_PART_ATTENTION, "attention"),
    PART(KNEE_PART_MEMORY, "memory-bound"),
    PART(KNEE_PART_HEAD, "embedding and head"),
    PART(KNEE_PART_RECOMPUTE, "recompute"),
    PART(KNEE_PART_OPTIMIZER, "optimizer"),
    PART(KNEE_PART_HOST, "host"),
    PART(KNEE_PART_TP, "TP"),
    PART(KNEE_PART_CP, "CP"),
    PART(KNEE_PART_EP, "EP"),
    PART(KNEE_PART_PP, "PP"),
    PART(KNEE_PART_DP, "DP"),
    PART(KNEE_PART_SHARD, "sharding"),
    PART(KNEE_PART_BUBBLE, "bubble"),
    PART(KNEE_PART_JITTER, "stragglers"),
    PART(KNEE_PART_LOADER, "loader"),
    PART(KNEE_PART_OFFLOAD, "offload"),
};
A_TEXT(binding, COST, knee_part_name(knee_plan_binding(it)))
static void ratio(const struct knee_at *at, struct knee_value *out)
{
    struct knee_step step;
    knee_plan_step(at->row, &step);
    knee_value_number(out, knee_step_ratio(&step));
}
#define STEP                                                                                       \
    KNEE_FIELD(COST, step_s, "step_s", "step", TIME, SCREEN,                                       \
               "one step; `low_s` and `high_s` hold 90% of measured runs", .interval = true,       \
               .bare = true, .interval_offset = offsetof(COST, low_s))
static const struct knee_field cost_fields[] = {
    STEP,
    KNEE_FIELD(COST, tokens_per_s, "tokens_per_s", "tokens/s", LARGE, SCREEN, "of all GPUs"),
    KEY(COST, mfu_full, "mfu_full_attention", SHARE, "attention of all pairs"),
    KNEE_FIELD(COST, mfu_causal, "mfu_causal_attention", "MFU", SHARE, SCREEN, "causal attention"),
    KEY(COST, hfu, "hfu_causal_attention", SHARE, "with recomputation"),
    KEY_BY(binding, "binding", TEXT, "largest overhead; products: none above 2%"),
    KEY_BY(ratio, "ratio", NUMBER, "exposed communication / compute"),
    KNEE_GROUP("parts_s", part_fields, "where the step goes", .flat = true),
    KNEE_INSIDE(COST, memory, "memory", knee_memory_fields, "of one GPU", .flat = true),
    KEY(COST, fits, "fits", YES_NO, "into the GPU's memory"),
};
static const struct knee_field found_fields[] = {
    KNEE_INSIDE(FOUND, plan, "plan", plan_fields, "degrees and choices", .flat = true),
    KNEE_AMONG(FOUND, cost, cost_fields),
};

/* ---- A run with failures ---- */

#define RUN                               struct knee_plan_run
#define R(member, key, head, kind, words) KNEE_FIELD(RUN, cost.member, key, head, kind, FULL, words)
#define E(member, key, head, kind, words)                                                          \
    KNEE_FIELD(RUN, energy.member, key, head, kind, FULL, words)
static const struct knee_field energy_fields[] = {
    E(watts.measured, "measured", NULL, YES_NO, "the power was measured on this GPU"),
    E(watts.from, "watts_from", NULL, TEXT, "the GPU it was measured on"),
    E(gpu_w, "gpu_w", "power of one GPU in a step", WATTS, "mean"),
    E(server_w, "server_w", "power with its share of the server", WATTS, "mean"),
    E(gpu_j, "gpu_joules", "energy of the GPUs", JOULES, "of the run"),
    E(server_j, "server_joules", "energy of the servers", JOULES, "of the run"),
    E(site_j, "site_joules", "energy of the building", JOULES, "of the run"),
    E(billion_j, "joules_per_billion_tokens", "energy of a billion tokens", JOULES, "site"),
    E(billion_co2e_g, "co2e_g_per_billion_tokens", "CO2e of a billion tokens, g", LARGE, "--grid"),
    E(co2e_g, "co2e_g", "CO2e of the run, g", LARGE, "--grid"),
    E(capped.cap_w, "cap_w", "power limit", WATTS, "one limit that was tried"),
    E(capped.step, "capped_step_ratio", "step with the limit", TIMES, "over the step without"),
    E(capped.joules, "capped_joules_ratio", "energy with the limit", TIMES, "over that without"),
};
static const struct knee_field run_fields[] = {
    KNEE_BETWEEN(RUN, cost.goodput.kept, cost.sure, "goodput", "goodput", SHARE, FULL,
                 "share of time in steps that count"),
    R(goodput.checkpoint, "checkpoint_share", "waiting for checkpoints", SHARE, "of the time"),
    R(goodput.lost, "lost_share", "steps lost to stops", SHARE, "of the time"),
    R(goodput.restart, "restart_share", "restarts", SHARE, "of the time"),
    R(stops.mean_s, "stop_every_s", "time between stops", TIME, "unplanned stops"),
    R(stop_count, "stops", "stops in the run", COUNT, "expected"),
    R(stops.restart_s, "restart_s", "restart", TIME, "from a stop to the next step"),
    R(minute_s, "restart_minute_s", "one more minute of restart takes", TIME, "over the run"),
    R(minute_cost, "restart_minute_cost", "and costs", DOLLARS, "over the run"),
    R(checkpoint.bytes, "checkpoint_bytes", "checkpoint", BYTES, "its size"),
    R(checkpoint.write_s, "checkpoint_write_s", "to write it", TIME, "seconds"),
    R(checkpoint.read_s, "checkpoint_read_s", "to read it", TIME, "seconds"),
    R(stops.block_s, "checkpoint_block_s", "training waits for", TIME, "per checkpoint"),
    R(stops.every_s, "checkpoint_every_s", "interval", TIME, "between checkpoints"),
    R(best_every_s, "best_checkpoint_every_s", "best interval", TIME, "highest goodput"),
    R(best_kept, "best_goodput", "goodput with it", SHARE, "share"),
    R(other_kept, "other_mode_goodput", "goodput with the other mode", SHARE, "sync or async"),
    R(spares, "spare_nodes", "spare nodes", COUNT, "so that repairs seldom delay a restart"),
    KNEE_GROUP("energy", energy_fields, "energy of the run", .flat = true),
};

const struct knee_plan_run *knee_plan_run_at(const A *a, const ROW *row)
{
    return a->runs && row && row->fits ? &a->runs[row - a->rows] : NULL;
}
OBJECT(run_object, void, knee_plan_run_at(at->up->row, at->row))
WHEN(has_run, void, run_object(at) != NULL)

/* ---- One GPU count ---- */

ROW_OF(best_row, ROW, index < it->found.count ? &it->found.best[index] : NULL)
/* Places of the front that add something to the one before. */
static const void *front_row(const struct knee_at *at, size_t index)
{
    const FOUND *front = ((const ROW *)at->row)->found.front;
    for (int i = 0; i < KNEE_FRONT; i++) {
        double step = front[i].cost.step_s;
        bool adds = isfinite(step) && (i == 0 || step < front[i - 1].cost.step_s);
        if (adds && index-- == 0)
            return &front[i];
    }
    return NULL;
}
ROW_OF(nearest_row, ROW, index == 0 ? &it->found.nearest : NULL)
WHEN(has_nearest, ROW, !it->fits && it->found.nearest_valid)
A_NUMBER(idle, ROW, it->fits ? it->gpus - it->found.best[0].plan.gpus : NAN)
#define BEST(name, field)                                                                          \
    GETTER(name, ROW, knee_value_number(out, it->fits ? it->found.best[0].cost.field : NAN))
BEST(best_tokens, tokens_per_s)
BEST(best_mfu, mfu_causal)
GETTER(best_step, ROW, const COST *c = &it->found.best[0].cost;
       knee_value_between(out, it->fits ? c->step_s : NAN, c->low_s, c->high_s))
static void best_plan(const struct knee_at *at, struct knee_value *out)
{
    const ROW *row = at->row;
    out->is = KNEE_A_TEXT;
    if (row->fits)
        knee_say_plan(&row->found.best[0].plan, &out->words);
    else
        knee_value_text(out, "does not fit");
}
A_TEXT(row_mark, void, UP(A)->chosen == at->index && UP(A)->row_count > 1 ? "<- use" : "")
static const struct knee_field search_fields[] = {
    KEY(ROW, found.plans, "plans", COUNT, "looked at"),
    KEY(ROW, found.priced, "priced", COUNT, "in full"),
    KEY(ROW, found.too_large, "too_large", COUNT, "do not fit"),
    KEY(ROW, found.pruned, "pruned_splits", COUNT, "cannot win, by a bound"),
};
static const struct knee_field row_fields[] = {
    KNEE_FIELD(ROW, gpus, "gpus", "GPUs", COUNT, SCREEN, "GPUs there are"),
    KNEE_GET(best_step, "best_step_s", "step", TIME, SCREEN, "of the best plan", .interval = true,
             .bare = true),
    KNEE_GET(best_tokens, "best_tokens_per_s", "tokens/s", LARGE, SCREEN, "of the best plan"),
    KNEE_BETWEEN(ROW, efficiency, efficiency_sure, "efficiency", "efficiency", SHARE, SCREEN,
                 "tokens per second and GPU against the baseline", .bare = true),
    KNEE_GET(best_mfu, "best_mfu", "MFU", SHARE, FULL, "causal, of the best plan"),
    KNEE_FIELD(ROW, cost_per_billion, "cost_per_billion_tokens", "$/1e9 tokens", DOLLARS, SCREEN,
               "dollars"),
    KEY(ROW, fits, "fits", YES_NO, "some plan does"),
    KNEE_GET(idle, "idle_gpus", "idle", COUNT, FULL, "GPUs that the best plan leaves idle"),
    KNEE_BETWEEN(ROW, time_s, time_sure, "time_s", "time", TIME, FULL, "for all --tokens"),
    KNEE_BETWEEN(ROW, cost, cost_sure, "cost", "cost", DOLLARS, FULL, "for all --tokens"),
    KNEE_GET(best_plan, "best_plan", "best plan", TEXT, FULL, "in words"),
    KNEE_OBJECT(run_object, "run", run_fields, "with failures and energy",
                .heading = KNEE_SHOWN("the run"), .when = has_run),
    KNEE_ROWS_BY(best_row, "best", found_fields, "best plans, fastest first"),
    KNEE_ROWS_BY(front_row, "front", found_fields, "less memory for more time"),
    KNEE_ROWS_BY(nearest_row, "nearest", found_fields, "the plan that lacks the least memory",
                 .when = has_nearest),
    KNEE_GROUP("search", search_fields, "what the search did", .flat = true),
    KNEE_GET(row_mark, "mark", "", TEXT, SCREEN, "the count to use"),
};

/* ---- All plans, flat: the CSV, and the table of one GPU count ---- */

static const ROW *row_of(const A *a, const FOUND *found)
{
    for (size_t i = 0; i < a->row_count; i++)
        if (found >= a->rows[i].found.best && found < a->rows[i].found.best + KNEE_PLANS_MAX)
            return &a->rows[i];
    return NULL;
}
static const void *plan_row(const struct knee_at *at, size_t index)
{
    const A *a = at->row;
    for (size_t i = 0; i < a->row_count; index -= a->rows[i++].found.count)
        if (index < a->rows[i].found.count)
            return &a->rows[i].found.best[index];
    return NULL;
}
/* The row's own values, for its first plan only: they are of the count. */
static void of_count(const struct knee_at *at, struct knee_value *out, size_t offset)
{
    const ROW *row = row_of(at->up->row, at->row);
    bool first = at->row == (const void *)&row->found.best[0];
    knee_value_number(out, first ? *(const double *)(const void *)((const char *)row + offset)
                                 : (double)NAN);
}
#define OF_COUNT(name, member)                                                                     \
    static void name(const struct knee_at *at, struct knee_value *out)                             \
    {                                                                                              \
        of_count(at, out, offsetof(ROW, member));                                                  \
    }
OF_COUNT(count_efficiency, efficiency)
OF_COUNT(count_low, efficiency_sure.low)
OF_COUNT(count_high, efficiency_sure.high)
OF_COUNT(count_cost, cost)
A_NUMBER(plan_gpus, void, row_of(at->up->row, it)->gpus)
A_NUMBER(plan_rank, FOUND, (double)(it - row_of(at->up->row, it)->found.best) + 1)
static void plan_words(const struct knee_at *at, struct knee_value *out)
{
    const PLAN *p = &((const FOUND *)at->row)->plan;
    const struct {
        const char *name;
        double degree;
    } axes[] = {{"TP ", p->tp}, {"PP ", p->pp}, {"x", p->vp},           {"CP ", p->cp},
                {"EP ", p->ep}, {"DP ", p->dp}, {"mb ", p->micro_batch}};
    for (size_t i = 0; i < KNEE_COUNT_OF(axes); i++)
        if (axes[i].degree > 1 || i == 6)
            knee_value_printf(out, "%s%s%.0f", out->words.length && i != 2 ? " " : "", axes[i].name,
                              axes[i].degree);
    if (p->shard >= KNEE_ZERO1 && p->shard <= KNEE_ZERO3)
        knee_value_printf(out, " ZeRO-%d", p->shard - KNEE_ZERO1 + 1);
    if (p->shard == KNEE_ZERO3 && p->shard_size < p->dp * p->cp)
        knee_value_printf(out, "/%.0f", p->shard_size);
    if (p->recompute == KNEE_SELECTIVE)
        knee_value_printf(out, " sel.");
    else if (p->recompute != KNEE_KEEP)
        knee_value_printf(out, " %s", word(&knee_recompute_names, p->recompute));
    if (p->schedule == KNEE_ZERO_BUBBLE)
        knee_value_printf(out, " ZB");
    if (p->offload == KNEE_OFFLOAD_OPTIMIZER)
        knee_value_printf(out, " offload");
}
static void plan_mark(const struct knee_at *at, struct knee_value *out)
{
    const A *a = at->up->row;
    const ROW *shown = a->chosen == SIZE_MAX ? NULL : knee_plan_shown(a);
    knee_value_text(out, shown && at->row == (const void *)shown->found.best ? "<- use" : "");
}
A_NUMBER(oom, MEM, 1 - knee_memory_fit(it))
/* What the first saves against the second, and what the others lose to the first. */
static void why(const struct knee_at *at, struct knee_value *out)
{
    const FOUND *found = at->row;
    const struct knee_search_result *all = &row_of(at->up->row, found)->found;
    bool first = found == all->best;
    if (all->count < 2)
        return;
    struct knee_advantage gain =
        knee_plan_advantage(&all->best[0].cost, first ? &all->best[1].cost : &found->cost);
    if (!gain.none)
        knee_value_printf(out, "%s %s on %s", first ? "saves" : "loses", SAY_TIME(gain.seconds),
                          knee_part_name(gain.part));
}
static const struct knee_field flat_degrees[] = {DEGREES, CHOICES,
                                                 NUM(shard_size, "ranks that share one copy"),
                                                 NUM(seq_par, "sequence parallel: 1 or 0")};
static const struct knee_field flat_memory[] = {
    KNEE_FIELD(MEM, total, "memory_bytes", "memory", BYTES, SCREEN, "of one GPU"),
    KNEE_GET(oom, "oom_risk", "OOM risk", SHARE, SCREEN, "probability of running out of memory",
             .bare = true),
    KEY_BY(low_bytes, "low_bytes", BYTES, "low end of it"),
    KEY_BY(high_bytes, "high_bytes", BYTES, "high end of it"),
    KEY_BY(fit, "fit_probability", SHARE, "probability that it fits"),
};
static const struct knee_field flat_cost[] = {
    STEP,
    KNEE_AMONG(COST, memory, flat_memory),
    KNEE_FIELD(COST, tokens_per_s, "tokens_per_s", "tokens/s", LARGE, FULL, "of all GPUs"),
    KEY(COST, mfu_full, "mfu_full", SHARE, "attention of all pairs"),
    KNEE_FIELD(COST, mfu_causal, "mfu_causal", "MFU", SHARE, FULL, "causal attention"),
    KNEE_GET(binding, "binds", "largest overhead", TEXT, FULL, "products: none above 2%"),
};
static const struct knee_field flat_fields[] = {
    KNEE_GET(plan_rank, "rank", "#", COUNT, SCREEN, "1: the best"),
    KNEE_GET(plan_words, "plan", "plan", TEXT, SCREEN, "in short"),
    KNEE_AMONG(FOUND, cost, flat_cost),
    KNEE_GET(plan_mark, "mark", "", TEXT, SCREEN, "the plan to use"),
    KNEE_GET(plan_gpus, "gpus", "GPUs", COUNT, FULL, "GPUs there are"),
    KNEE_AMONG(FOUND, plan, flat_degrees),
    KEY_BY(count_efficiency, "efficiency", SHARE, "of the count, at rank 1"),
    KEY_BY(count_low, "low_efficiency", SHARE, "likewise"),
    KEY_BY(count_high, "high_efficiency", SHARE, "likewise"),
    KEY_BY(count_cost, "cost", DOLLARS, "likewise"),
    KNEE_GET(why, "why", "against the best", TEXT, FULL, "where it gains or loses most"),
};

/* ---- What the plan sends, where it lies, what was simulated ---- */

#define SENT struct knee_traffic
A_TEXT(sent_axis, SENT, knee_part_name(it->part))
A_TEXT(sent_op, SENT, knee_op_name(it->op))
static const struct knee_field sent_fields[] = {
    KNEE_GET(sent_axis, "axis", "axis", TEXT, FULL, "TP, DP, ..."),
    KNEE_GET(sent_op, "collective", "collective", TEXT, FULL, "its operation"),
    KNEE_FIELD(SENT, group.size, "ranks", "ranks", COUNT, FULL, "of the group"),
    KEY(SENT, group.stride, "stride", COUNT, "between its ranks"),
    KNEE_FIELD(SENT, bytes, "bytes", "size", MESSAGE, FULL, "of one call"),
    KNEE_FIELD(SENT, calls, "calls", "calls", COUNT, FULL, "per step"),
    KNEE_FIELD(SENT, each_s, "time_s", "each", TIME, FULL, "alone"),
};
#define AXIS struct knee_plan_axis
A_TEXT(over, AXIS,
       it->inside >= it->size ? "node link"
       : it->inside <= 1      ? "network"
                              : "node link and network")
static const struct knee_field axis_fields[] = {
    KNEE_FIELD(AXIS, name, "axis", "axis", TEXT, FULL, "TP, DP, ..."),
    KNEE_FIELD(AXIS, size, "ranks", "ranks", COUNT, FULL, "along it"),
    KNEE_FIELD(AXIS, stride, "apart", "stride", COUNT, FULL, "between neighbours"),
    KNEE_FIELD(AXIS, inside, "in_node", "in a node", COUNT, FULL, "of its ranks"),
    KNEE_GET(over, "over", "over", TEXT, FULL, "node link, network, or both"),
};
WHEN(some_plan, void, knee_plan_shown(at->row) != NULL)

#if !KNEE_JSON_ONLY /* the page simulates nothing */
#define RANK                 struct knee_rank_account
#define NS(label, key, head) KNEE_NS(RANK, ledger.label, key, head, TIME, FULL, "per step")
GETTER(x_ns, RANK, knee_value_ns(out, knee_ledger_exposed_ns(&it->ledger), true))
GETTER(wait_ns, RANK, knee_value_ns(out, it->ledger.label_ns[KNEE_WAIT], it->split))
GETTER(transfer_ns, RANK, knee_value_ns(out, it->ledger.label_ns[KNEE_TRANSFER], it->split))
A_NUMBER(overlap, RANK, knee_ledger_overlap(&it->ledger))
A_NUMBER(rank_ratio, RANK, knee_ledger_ratio(&it->ledger))
A_NUMBER(rank_share, RANK, 1 / (1 + knee_ledger_ratio(&it->ledger)))
static const struct knee_field stage_fields[] = {
    KNEE_FIELD(RANK, rank, "rank", "rank", COUNT, FULL, "first rank of the stage"),
    NS(window_ns, "window_s", "step"),
    NS(label_ns[KNEE_COMPUTE], "compute_s", "compute"),
    NS(comm_ns, "comm_s", "comm"),
    KNEE_GET(x_ns, "exposed_comm_s", "exposed", TIME, FULL, "communication nothing hides"),
    KNEE_GET(wait_ns, "wait_s", "wait", TIME, FULL, "null: not separable"),
    KNEE_GET(transfer_ns, "transfer_s", "transfer", TIME, FULL, "likewise"),
    KEY_BY(overlap, "overlap", SHARE, "of communication"),
    NS(label_ns[KNEE_COPY], "exposed_copy_s", NULL),
    NS(label_ns[KNEE_STARVED], "starved_input_s", NULL),
    NS(label_ns[KNEE_HOST], "host_bound_s", "host"),
    NS(label_ns[KNEE_IDLE], "idle_s", "idle"),
    KNEE_GET(rank_ratio, "ratio", "R", NUMBER, FULL, "exposed communication / compute"),
    KEY_BY(rank_share, "efficiency", SHARE, "compute / (compute + exposed)"),
};
ROW_OF(stage_row, A, index < it->simulated->rank_count ? &it->simulated->ranks[index] : NULL)
#endif
WHEN(simulated, A, it->simulated != NULL)
static const struct knee_field simulation_fields[] = {
    KNEE_FIELD(A, simulated_s, "step_s", "simulated step", TIME, FULL, "event by event"),
    KNEE_FIELD(A, closed_s, "closed_form_s", "closed form", TIME, FULL,
               "without stragglers and loader, which are not simulated"),
#if !KNEE_JSON_ONLY
    KNEE_ROWS_BY(stage_row, "stages", stage_fields, "first rank of each pipeline stage"),
#endif
};

#define REMEDY struct knee_remedy
GETTER(remedy_bytes, REMEDY, struct knee_sure sure = knee_memory_sure(&it->cost.memory);
       knee_value_between(out, it->cost.memory.total, sure.low, sure.high))
static const struct knee_field remedy_fields[] = {
    KNEE_FIELD(REMEDY, what, "what", "makes it fit", TEXT, SCREEN, "the change"),
    KNEE_FIELD(REMEDY, cost.step_s, "step_s", "step", TIME, SCREEN, "with it", .interval = true,
               .interval_offset = offsetof(REMEDY, cost.low_s)),
    KNEE_GET(remedy_bytes, "memory_bytes", "memory", BYTES, SCREEN, "with it", .interval = true),
    KNEE_INSIDE(REMEDY, plan, "plan", plan_fields, "the plan", .flat = true),
};

/* ---- All ---- */

A_NUMBER(chosen_gpus, A, it->chosen == SIZE_MAX ? (double)NAN : it->rows[it->chosen].gpus)
A_TEXT(framework, A, it->framework ? knee_framework_word(it->framework) : "any")
WHEN(free_known, A, it->free_known)
static const struct knee_field verdict_fields[] = {
    KNEE_SENTENCE,
    KNEE_DO_WHY_BUYS,
    KEY_BY(chosen_gpus, "gpus", COUNT, "the count to use; null: none"),
    KNEE_BETWEEN(A, knee_gpus, knee_sure, "knee_gpus", NULL, COUNT, DATA, "last useful count"),
    KEY(A, machine.why_assumed, "less_sure", TEXT, "what widens the interval"),
    KEY_BY(framework, "framework", TEXT, "whose plans were searched"),
    KNEE_INSIDE(A, free, "without_framework", found_fields, "the best plan of any framework",
                .when = free_known),
    KEY(A, peak_gpus, "peak_throughput_gpus", COUNT, "highest throughput"),
    KEY(A, question.tolerance, "tolerance", SHARE, "--tolerance"),
    KEY(A, ties, "ties", COUNT, "plans closer than knee's error"),
    KEY(A, apart, "ties_apart", SHARE, "knee's error between two plans"),
};
static const struct knee_field alone_fields[] = {
    KEY(A, replicas_knee, "knee_workers", COUNT, "its last useful count"),
    KEY(A, replicas_limit, "limit_workers", COUNT, "one sequence per GPU"),
    KEY(A, replicas_needed_bytes, "unsharded_bytes", BYTES, "on one GPU"),
};
static const struct knee_field model_inputs[] = {KNEE_USED(A, shape, knee_shape_keys)};
static const struct knee_field platform_inputs[] = {KNEE_USED(A, platform, knee_platform_keys)};
static const struct knee_field run_inputs[] = {KNEE_USED(A, run, knee_run_keys, .pointer = true)};
WHEN(run_asked, A, it->run != NULL)

/* The shown plan's parts, memory and run, for -v. */
OBJECT(shown_cost, void,
       knee_plan_shown(at->row) ? &knee_plan_shown(at->row)->found.best[0].cost : NULL)
OBJECT(shown_memory, void,
       knee_plan_shown(at->row) ? &knee_plan_shown(at->row)->found.best[0].cost.memory : NULL)
OBJECT(shown_run, void, knee_plan_run_at(at->row, knee_plan_shown(at->row)))
static const void *shown_front(const struct knee_at *at, size_t index)
{
    const ROW *row = knee_plan_shown(at->row);
    struct knee_at inside = {.row = row, .up = at};
    return row ? front_row(&inside, index) : NULL;
}
static const struct knee_field front_fields[] = {
    KNEE_GET(plan_words, "plan", "less memory for more time", TEXT, FULL, "in words"),
    KNEE_AMONG(FOUND, cost, flat_cost),
};
#define SHOWN(name, head, getter, table)                                                           \
    KNEE_OBJECT(getter, name, table, "of the plan to use", .heading = KNEE_SHOWN(head),            \
                .flat = true)

#define ALIKE struct knee_alike
const struct knee_field knee_alike_fields[KNEE_ALIKE_FIELDS] = {
    KNEE_FIELD(ALIKE, source, "source", "measured by", TEXT, FULL, "who published it"),
    KNEE_FIELD(ALIKE, model, "model", "model", TEXT, FULL, "as the source names it"),
    KNEE_FIELD(ALIKE, gpu, "gpu", "GPU", TEXT, FULL, "GPU preset"),
    KNEE_FIELD(ALIKE, gpus, "gpus", "GPUs", COUNT, FULL, "GPUs of the job"),
    KNEE_FIELD(ALIKE, precision, "precision", "precision", TEXT, FULL, "of its products"),
    KNEE_FIELD(ALIKE, token_s, "gpu_s_per_token", "GPU time per token", TIME, FULL,
               "step x GPUs / tokens"),
    KNEE_FIELD(ALIKE, difference, "difference", "difference", CHANGE, FULL,
               "this job over it - 1, in time per FLOP of the model"),
};

LIST_OF(alike_row, A, alike, alike_count)

const struct knee_field knee_plan_fields[KNEE_PLAN_FIELDS] = {
    KEY(A, baseline_gpus, "baseline_gpus", COUNT, "what efficiency is against"),
    KEY(A, baseline_tokens_per_s, "baseline_tokens_per_s", LARGE, "of it"),
    KEY(A, smallest_gpus, "smallest_gpus", COUNT, "fewest GPUs it fits on"),
    KNEE_GROUP("data_parallel_alone", alone_fields, "the same job as knee predict sees it",
               .flat = true),
    KNEE_ARRAY(A, traffic, traffic_count, "collectives", sent_fields, "what the plan sends"),
    KNEE_GROUP("verdict", verdict_fields, "what to use"),
    KNEE_ROWS(A, rows, row_count, "rows", row_fields, "one row per GPU count"),
    KNEE_ROWS_BY(plan_row, "plans", flat_fields, "all plans shown, one flat row each"),
    KNEE_ARRAY(A, axes, axis_count, "placement", axis_fields, "where each axis lies",
               .when = some_plan),
    KNEE_GROUP("simulation", simulation_fields, "--simulate", .when = simulated),
    KNEE_ARRAY(A, remedies, remedy_count, "remedies", remedy_fields, "what makes it fit"),
    SHOWN("parts", "where the step goes", shown_cost, part_fields),
    SHOWN("memory", "memory of one GPU", shown_memory, knee_memory_fields),
    SHOWN("run", "the run", shown_run, run_fields),
    KNEE_ROWS_BY(shown_front, "tradeoff", front_fields, "less memory for more time"),
    KNEE_ROWS_BY(alike_row, "published_runs", knee_alike_fields, "measured runs like it",
                 .tall = true),
    KNEE_GROUP("model", model_inputs, "inputs of the model"),
    KNEE_GROUP("platform", platform_inputs, "inputs of the platform"),
    KNEE_GROUP("failures", run_inputs, "inputs of the run", .when = run_asked),
};

/* ---- Operations ---- */

#define OP struct knee_layer_operation
A_TEXT(op_pass, OP, it->op.backward ? "backward" : "forward")
A_NUMBER(op_flops, OP, it->op.flops * it->op.count)
A_NUMBER(op_bytes, OP, it->op.bytes * it->op.count)
#define SIDE(name, side)                                                                           \
    GETTER(name, OP,                                                                               \
           knee_value_number(out, it->op.kind == KNEE_OPERATION_GEMM ? it->op.side : (double)NAN))
SIDE(op_m, m)
SIDE(op_n, n)
SIDE(op_k, k)
static void of_peak(const struct knee_at *at, struct knee_value *out)
{
    const A *a = at->up->row;
    const struct knee_operation *op = &((const OP *)at->row)->op;
    double rate = op->flops * op->count / op->seconds;
    knee_value_number(out, op->flops > 0 ? rate / a->machine.peak_flops[op->dtype] : (double)NAN);
}
static const struct knee_field op_fields[] = {
    KNEE_FIELD(OP, op.name, "name", "operation", TEXT, SCREEN, "the operation"),
    KNEE_GET(op_pass, "pass", "pass", TEXT, SCREEN, "forward or backward"),
    KNEE_FIELD(OP, op.seconds, "seconds", "time", TIME, SCREEN, "of all calls in a layer"),
    KNEE_GET(of_peak, "of_peak", "of the peak", SHARE, SCREEN, "share of the GPU's peak"),
    KNEE_GET(op_flops, "flops", "FLOPs", LARGE, SCREEN, "of all calls"),
    KNEE_GET(op_bytes, "bytes", "bytes", BYTES, SCREEN, "of all calls"),
    KNEE_FIELD(OP, layer, "layer", "layer", TEXT, FULL, "dense, experts, embedding or head"),
    KEY(OP, op.weights, "weights", YES_NO, "gradient of weights"),
    KNEE_GET(op_m, "m", "m", COUNT, FULL, "rows"),
    KNEE_GET(op_n, "n", "n", COUNT, FULL, "columns"),
    KNEE_GET(op_k, "k", "k", COUNT, FULL, "inner"),
    KNEE_FIELD(OP, op.count, "count", "count", NUMBER, FULL, "calls in a layer"),
};
const struct knee_field knee_ops_fields[1] = {
    KNEE_ROWS(A, ops, op_count, "operations", op_fields, "of one layer, on one GPU")};

/* For the page: a tax's degrees as a plan. */
static const struct knee_field axes_fields[] = {KNEE_GROUP("found", found_fields, "the plan")};
const struct knee_answer_type knee_axes_answer = {.schema = "knee.axes/1",
                                                  KNEE_FIELDS(axes_fields)};

/* --emit: what a framework takes. */
static const struct knee_field launch_fields[] = {
    KEY(struct knee_launch_result, framework, "framework", TEXT, "its name"),
    KEY(struct knee_launch_result, launch, "launch", TEXT, "what it takes"),
};
const struct knee_answer_type knee_launch_answer = {.schema = "knee.launch/1",
                                                    KNEE_FIELDS(launch_fields)};
