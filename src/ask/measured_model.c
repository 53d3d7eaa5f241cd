/* SPDX-License-Identifier: MIT */
/* What the model of knee plan says about measured runs, and the runs as a table for validate. */
#include "ask/ask_measured.h"

#include "base/fold.h"
#include "base/format.h"
#include "base/keys.h"
#include "base/text.h"
#include "cluster/gpu_words.h"
#include "cluster/hardware.h"
#include "job/profile.h"

#include <math.h>
#include <string.h>

void knee_ask_said_init(struct knee_ask_said *said)
{
    knee_shape_init(&said->shape);
    knee_plan_init(&said->plan);
    knee_platform_init(&said->platform);
}

/* What was given by flags goes over what the log says. */
static void overlay(const struct knee_keys *keys, const void *given, void *onto)
{
    const unsigned char *source = (const unsigned char *)given + keys->source_offset;
    unsigned char *own = knee_keys_source(keys, onto);
    for (size_t i = 0; i < keys->count; i++) {
        size_t offset = keys->rows[i].offset;
        size_t size = keys->rows[i].kind == KNEE_KEY_CHOICE ? sizeof(int) : sizeof(double);
        if (source[i] != KNEE_FLAG)
            continue;
        memcpy((char *)onto + offset, (const char *)given + offset, size);
        own[i] = KNEE_FLAG;
    }
}

/* The profile that the log's framework has. */
static void pick_profile(const struct knee_train_log *log, struct knee_platform *platform)
{
    char words[KNEE_TRAIN_TEXT];
    const struct knee_gpu *gpu = knee_hardware_gpu(&platform->hw);
    if (platform->profile >= 0 || !gpu)
        return;
    knee_fold(log->format, words, sizeof words);
    platform->profile = knee_profile_pick(words, gpu->name, "bf16");
}

/* ---- The table ---- */

/* A number of the table; what is not known is left empty. */
static void add_number(struct knee_text *text, double value)
{
    if (isfinite(value))
        knee_text_printf(text, "%.10g", value);
    knee_text_puts(text, ",");
}

static const char *choice(const struct knee_choices *choices, int row)
{
    return row >= 0 ? choices->name((size_t)row) : "";
}

/* A name as one cell: no comma, quote or end of line. */
static void add_name(struct knee_text *text, const char *name)
{
    for (; *name; name++) {
        char c = strchr(",\"\n\r", *name) ? '_' : *name;
        knee_text_add(text, &c, 1);
    }
}

/* One line for knee validate: only runs whose GPU and shape are known. */
static void add_run(const struct knee_scale_row *row, struct knee_shape shape,
                    const struct knee_plan *plan, const struct knee_platform *platform,
                    struct knee_text *table)
{
    const struct knee_gpu *gpu = knee_hardware_gpu(&platform->hw);
    if (!gpu || knee_shape_complete(&shape, NULL))
        return;
    const double numbers[] = {row->workers,
                              shape.layers,
                              shape.hidden,
                              shape.heads,
                              shape.kv_heads,
                              shape.head_dim,
                              shape.ffn,
                              shape.glu,
                              shape.vocab,
                              shape.seq,
                              row->batch,
                              plan->micro_batch,
                              plan->tp,
                              plan->pp,
                              plan->vp,
                              plan->cp,
                              plan->shard >= 0 ? (double)plan->shard : (double)NAN,
                              plan->seq_par,
                              row->step_s};
    if (table->length == 0)
        knee_text_puts(
            table,
            "id,source,gpu,precision,recompute,overlap,profile,n_gpus,layers,hidden,heads,kv_heads,"
            "head_dim,ffn,glu,vocab,seq,global_batch,micro_batch,tp,pp,vp,cp,"
            "zero,seq_par,step_time_s,curve\n");
    add_name(table, row->source);
    knee_text_printf(table, ",%s,%s,%s,%s,%s%s,%s,", row->log ? row->log->format : "table",
                     gpu->name, choice(&knee_precision_names, plan->precision),
                     choice(&knee_recompute_names, plan->recompute),
                     plan->overlap_dp == 0 ? "no dp " : "", plan->overlap_tp == 0 ? "no tp" : "",
                     choice(&knee_profile_names, platform->profile));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        add_number(table, numbers[i]);
    knee_text_puts(table, "log\n");
}

/* ---- The model ---- */

double knee_ask_copy_workers(const struct knee_plan *plan)
{
    return fmax(plan->tp, 1) * fmax(plan->pp, 1) * fmax(plan->cp, 1);
}

/* An argument that knee does not understand makes another model: no ratio. */
static void leave_out(struct knee_scale_row *row)
{
    struct knee_scale_model *m = &row->model;
    m->step_s = m->low_s = m->high_s = m->mfu_full = m->mfu_causal = NAN;
    m->comm_share = m->bubble_share = m->host_share = NAN;
    knee_format(m->missing, sizeof m->missing, "an argument that knee does not model: %.90s",
                row->log->unpriced);
}

void knee_ask_model_row(const struct knee_ask_said *said, struct knee_scale_row *row,
                        struct knee_text *table)
{
    struct knee_shape shape;
    struct knee_plan plan;
    struct knee_platform platform = said->platform;
    knee_shape_init(&shape);
    knee_plan_init(&plan);
    if (row->log) {
        shape = row->log->shape;
        plan = row->log->plan;
        if (!knee_hardware_gpu(&platform.hw))
            platform.hw.gpu = knee_gpu_row_in(row->log->gpu);
        pick_profile(row->log, &platform);
    }
    overlay(&knee_shape_keys, &said->shape, &shape);
    overlay(&knee_plan_keys, &said->plan, &plan);
    bool split = plan.tp >= 1 || plan.pp >= 1 || plan.cp >= 1;
    if (split && !(row->replica >= knee_ask_copy_workers(&plan)))
        row->replica = knee_ask_copy_workers(&plan);
    knee_scale_model(&shape, &plan, &platform, row);
    if (row->log && row->log->unpriced[0])
        leave_out(row);
    if (table)
        add_run(row, shape, &plan, &platform, table);
}
