/* SPDX-License-Identifier: MIT */
/* Asks predict/goodput about the plans of an answer. */
#include "judge/run_verdict.h"

#include "cluster/hardware.h"

#include <math.h>

#define HOUR_S      3600.0
#define KWH_J       3.6e6
#define BILLION     1e9
#define CAP_WHAT_IF 0.8 /* of the board's power */

bool knee_run_asked(const struct knee_run_inputs *inputs, double tokens)
{
    bool asked = !isnan(tokens);
    for (size_t i = 0; i < knee_run_keys.count; i++)
        asked = asked || inputs->source[i] == KNEE_FLAG || inputs->source[i] == KNEE_FILE;
    return asked;
}

/* ---- Failures ---- */

/* How often the weights lie in all GPUs together: shards and experts are there once. */
static double copies_of(const struct knee_found *found, double params)
{
    double held = found->cost.memory.parameters * found->plan.gpus; /* 2 bytes each */
    return fmin(found->plan.dp, fmax(1, held / (2 * params)));
}

/* Processes that write a share each: of a model that is not sharded one replica writes it all. */
static double writers_of(const struct knee_found *found, double gpus)
{
    return found->plan.shard == KNEE_REPLICATE ? gpus / found->plan.dp : gpus;
}

/* `found` NULL: whatever the plan. */
static struct knee_run_question question_of(const struct knee_plan_answer *a, double gpus,
                                            const struct knee_found *found)
{
    struct knee_params params;
    knee_shape_params(&a->shape, &params);
    const char *framework = a->framework ? knee_framework_word(a->framework) : NULL;
    return (struct knee_run_question){
        .inputs = a->run,
        .job = {.trained_params = params.trained,
                .bytes_per_param = knee_checkpoint_bytes_per_param(framework),
                .gpus = gpus,
                .nodes = fmax(1, gpus / a->machine.node_size),
                .writers = found ? writers_of(found, gpus) : gpus,
                .copies = found ? copies_of(found, params.total) : 1},
        .node_size = a->machine.node_size,
        .productive_s = NAN,
        .dollars_per_s = gpus * a->machine.price_per_hour / HOUR_S,
    };
}

knee_status knee_plan_run_check(const struct knee_plan_answer *a, struct knee_err *err)
{
    struct knee_run_question q = question_of(a, a->rows[0].gpus, NULL);
    return knee_run_check(&q, err);
}

double knee_plan_goodput_at(const struct knee_plan_answer *a, double gpus)
{
    struct knee_run_question q = question_of(a, gpus, NULL);
    struct knee_run_cost cost;
    knee_run_price(&q, &cost);
    return cost.goodput.kept;
}

/* ---- Energy ---- */

static struct knee_watts watts_of(const struct knee_plan_answer *a, double cap_w)
{
    const struct knee_gpu *gpu = knee_hardware_gpu(&a->platform.hw);
    struct knee_watts watts;
    knee_watts_of(gpu ? gpu->name : NULL, a->machine.power_w, cap_w, &watts);
    return watts;
}

static double step_joules(const struct knee_watts *watts, const struct knee_plan_cost *cost)
{
    struct knee_gpu_seconds seconds = knee_plan_seconds(cost);
    return knee_gpu_joules(watts, &seconds);
}

/* Compute runs at the square root of the power that is left: a 5090 at 68 % of its power kept 82 %
 * of its speed, an H200 held at 690 W instead of 850 87 %. */
static struct knee_capped capped_at(const struct knee_plan_answer *a, const struct knee_found *f,
                                    const struct knee_watts *watts)
{
    struct knee_machine slower = a->machine;
    struct knee_plan_cost cost;
    if (!watts->measured)
        return (struct knee_capped){NAN, NAN, NAN};
    double cap_w = CAP_WHAT_IF * watts->cap_w;
    struct knee_watts then = watts_of(a, cap_w);
    slower.clock *= sqrt(CAP_WHAT_IF);
    knee_plan_price(&a->shape, &slower, &f->plan, &cost);
    return (struct knee_capped){.cap_w = cap_w,
                                .step = cost.step_s / f->cost.step_s,
                                .joules = step_joules(&then, &cost) / step_joules(watts, &f->cost)};
}

/* A GPU idles during a restart; work that is lost was computed and used energy. */
static void price_energy(const struct knee_plan_answer *a, const struct knee_plan_row *row,
                         const struct knee_run_cost *cost, struct knee_run_energy *e)
{
    const struct knee_found *best = &row->found.best[0];
    const struct knee_goodput *g = &cost->goodput;
    e->watts = watts_of(a, a->platform.power_cap_w);
    e->gpu_w = step_joules(&e->watts, &best->cost) / best->cost.step_s;
    e->server_w = knee_wall_joules(e->gpu_w, 1);
    double stopped = g->restart + g->checkpoint, idle_w = e->watts.at[KNEE_POWER_IDLE];
    double mean_w = (1 - stopped) * e->gpu_w + stopped * idle_w;
    double per_token_s = 1 / (best->cost.tokens_per_s * g->kept);
    double site_w = row->gpus * a->run->overhead * knee_wall_joules(mean_w, 1);
    e->billion_j = BILLION * per_token_s * site_w;
    e->gpu_j = cost->time_s * row->gpus * mean_w;
    e->server_j = cost->time_s * row->gpus * knee_wall_joules(mean_w, 1);
    e->site_j = cost->time_s * site_w;
    e->billion_co2e_g = e->billion_j / KWH_J * a->run->grid;
    e->co2e_g = e->site_j / KWH_J * a->run->grid;
    e->capped = capped_at(a, best, &e->watts);
}

void knee_plan_run_of(const struct knee_plan_answer *a, const struct knee_plan_row *row,
                      struct knee_plan_run *out)
{
    const struct knee_found *best = &row->found.best[0];
    struct knee_run_question q = question_of(a, row->gpus, best);
    q.productive_s = a->question.tokens / best->cost.tokens_per_s;
    knee_run_price(&q, &out->cost);
    price_energy(a, row, &out->cost, &out->energy);
}
