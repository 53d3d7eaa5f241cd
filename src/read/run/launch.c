/* SPDX-License-Identifier: MIT */
/*
 * A plan as what a framework takes: options of Megatron-LM's pretrain_gpt.py, the configurations of
 * DeepSpeed (JSON), torchtitan (TOML) and NeMo (Megatron-Bridge's YAML). What the framework cannot
 * do (job/framework.c) is refused with the option that keeps it out of the search. The importers
 * (knee plan --megatron, --deepspeed, --torchtitan, --nemo) read the same plan back.
 */
#include "read/run/launch.h"
#include "base/error.h"
#include "base/format.h"
#include "base/keys.h"
#include "base/text.h"
#include "job/framework.h"
#include "job/plan.h"
#include "knee_plan.h"
#include "read/run/import.h"

#include <math.h>
#include <string.h>

static const char *const framework_words[] = {"megatron", "deepspeed", "torchtitan", "nemo"};
KNEE_WORDS(knee_launch_frameworks, "framework", framework_words);

/* What the framework cannot do is refused, with what to ask for instead. */
static knee_status refuse(const struct knee_plan_answer *a, const struct knee_plan *p,
                          const char *name, const char *title, struct knee_err *err)
{
    const struct knee_framework *framework = knee_framework_named(name);
    int rule = knee_framework_breaks(framework, p, &a->shape);
    struct knee_obstacle obstacle;
    if (rule < 0)
        return KNEE_OK;
    knee_framework_says(framework, rule, &obstacle);
    knee_fail(err, KNEE_USAGE, "--emit", "%s cannot run this plan: %s", title, obstacle.what);
    knee_hint(err, "add --framework %s, or %s", name, obstacle.instead);
    return KNEE_USAGE;
}

/* How many groups hold a whole copy each of what is sharded; 1: all ranks share one. */
static double copies(const struct knee_plan *p)
{
    return p->shard == KNEE_REPLICATE ? 1 : p->dp * p->cp / p->shard_size;
}

/* The layers do not divide, but two more would: embedding and loss stand in for one each. */
static bool stand_ins(const struct knee_plan *p, const struct knee_shape *s)
{
    double pieces = p->pp * p->vp;
    return p->pp > 1 && fmod(s->layers, pieces) != 0 && fmod(s->layers + 2, pieces) == 0;
}

/* ---- What there is to write: NaN or "" is not ---- */

static double given(bool is, double value)
{
    return is ? value : NAN;
}

#define WORDS(field, words) knee_format(field, sizeof field, "%s", words)

/* `options`: of a command line, which has a switch where a file has true or false. */
static void fill_shape(const struct knee_shape *s, bool options, struct knee_import *in)
{
    bool experts = s->experts > 1, latent = s->kv_rank > 0, learned = s->positions > 0;
    in->layers = s->layers;
    in->hidden = s->hidden;
    in->ffn = s->ffn;
    in->heads = s->heads;
    in->grouped = !latent && s->kv_heads < s->heads;
    in->groups = given(options ? in->grouped > 0 : !latent, s->kv_heads);
    in->head_dim = given(!latent, s->head_dim);
    in->seq = s->seq;
    in->positions = options ? fmax(s->seq, s->positions) : given(learned, s->positions);
    in->vocab = s->vocab;
    in->swiglu = s->glu > 0;
    in->tied = s->tied > 0;
    in->untied = !(s->tied > 0);
    in->bias = s->bias > 0;
    in->no_bias = !(s->bias > 0);
    WORDS(in->position_type, learned ? "learned_absolute" : "rope");
    in->experts = given(experts, s->experts);
    in->topk = given(experts, s->topk);
    in->expert_ffn = given(experts, s->expert_ffn);
    in->shared_ffn = given(experts && s->shared_ffn > 0, s->shared_ffn);
    in->mla = given(latent, 1);
    in->q_rank = given(latent && s->q_rank > 0, s->q_rank);
    in->kv_rank = given(latent, s->kv_rank);
    in->unrotated = given(latent, s->head_dim - s->rope_dim);
    in->rope = given(latent, s->rope_dim);
    in->value = given(latent, s->value_dim);
}

static void fill_precision(const struct knee_plan *p, struct knee_import *in)
{
    static const char *const mixed[KNEE_PRECISIONS] = {
        [KNEE_BF16] = "bf16_mixed",
        [KNEE_FP16] = "fp16_mixed",
        [KNEE_FP8] = "bf16_with_fp8_delayed_scaling_mixed",
        [KNEE_FP8_BLOCK] = "bf16_with_fp8_subchannel_scaling_mixed",
    };
    bool fp8 = p->precision == KNEE_FP8 || p->precision == KNEE_FP8_BLOCK;
    in->fp16 = p->precision == KNEE_FP16;
    in->bf16 = p->precision != KNEE_FP16;
    WORDS(in->fp8, fp8 ? "hybrid" : "");
    WORDS(in->fp8_recipe, !fp8 ? "" : p->precision == KNEE_FP8 ? "delayed" : "blockwise");
    WORDS(in->mixed, mixed[p->precision] ? mixed[p->precision] : "");
    in->bf16_reduce = p->gradient_bytes == 2;
    in->fp32_reduce = given(p->gradient_bytes == 2, 0);
}

static void fill_sharding(const struct knee_plan *p, struct knee_import *in)
{
    bool sharded = p->shard >= KNEE_ZERO1, fsdp = p->shard >= KNEE_ZERO2;
    in->distributed = sharded;
    in->overlap_dp = p->overlap_dp > 0;
    in->gather = given(sharded, p->overlap_dp > 0);
    in->copies = given(copies(p) > 1, copies(p));
    in->fsdp = in->unfused = given(fsdp, 1);
    in->offload = in->precise = given(p->offload == KNEE_OFFLOAD_OPTIMIZER, 1);
    if (fsdp) {
        WORDS(in->sharding, p->shard == KNEE_ZERO2 ? "optim_grads" : "optim_grads_params");
        WORDS(in->outer, "no_shard");
        WORDS(in->checkpoint, "fsdp_dtensor");
    }
}

static void fill_megatron(const struct knee_plan_answer *a, const struct knee_plan *p, bool options,
                          struct knee_import *in)
{
    bool two = stand_ins(p, &a->shape), full = p->recompute == KNEE_FULL;
    double last = knee_plan_short_last(p, a->shape.layers);
    fill_shape(&a->shape, options, in);
    in->tp = p->tp;
    in->pp = p->pp;
    in->vp = given(p->vp > 1, p->vp);
    in->ends = given(two, 1);
    in->last_layers = given(!two && last > 0, last);
    in->cp = p->cp;
    in->ep = given(p->ep > 1, p->ep);
    in->etp = given(p->ep > 1, p->etp);
    in->seq_par = p->seq_par > 0;
    WORDS(in->recompute, full ? "full" : p->recompute == KNEE_SELECTIVE ? "selective" : "");
    WORDS(in->method, full ? "uniform" : "");
    in->recomputed = given(full, 1);
    in->micro = p->micro_batch;
    in->batch = p->global_batch;
    in->overlap_tp = given(options || p->tp > 1, p->overlap_tp > 0);
    fill_sharding(p, in);
    fill_precision(p, in);
}

static void fill_deepspeed(const struct knee_plan *p, struct knee_import *in)
{
    in->batch = p->global_batch;
    in->micro = p->micro_batch;
    WORDS(in->fp16_part, p->precision == KNEE_FP16 ? "{\"enabled\": true}" : "");
    WORDS(in->bf16_part, p->precision != KNEE_FP16 ? "{\"enabled\": true}" : "");
    in->tp = given(p->tp > 1, p->tp);
    in->stage = p->shard;
    in->mics = given(copies(p) > 1, p->shard_size);
    WORDS(in->host_part, p->offload == KNEE_OFFLOAD_OPTIMIZER ? "{\"device\": \"cpu\"}" : "");
    in->overlap = p->overlap_dp > 0;
}

static void fill_stages(const struct knee_plan_answer *a, const struct knee_plan *p,
                        struct knee_import *in)
{
    bool staged = p->pp > 1;
    double ends = stand_ins(p, &a->shape) ? 1 : 0;
    in->pp = p->pp;
    in->stage_micro = given(staged, p->micro_batch);
    in->stage_layers = given(staged, (a->shape.layers + 2 * ends) / (p->pp * p->vp));
    in->first_less = in->last_less = given(staged, ends);
    WORDS(in->schedule, !staged                           ? ""
                        : p->schedule == KNEE_INTERLEAVED ? "Interleaved1F1B"
                        : p->schedule == KNEE_GPIPE       ? "GPipe"
                                                          : "1F1B");
}

static void fill_torchtitan(const struct knee_plan_answer *a, const struct knee_plan *p,
                            struct knee_import *in)
{
    bool whole = p->shard == KNEE_REPLICATE, by_op = p->recompute == KNEE_BY_OP;
    double shards = whole ? 1 : p->shard_size / p->cp;
    in->local = p->pp > 1 ? p->global_batch / p->dp : p->micro_batch; /* sequences of a replica */
    in->batch = p->global_batch;
    in->seq = a->shape.seq;
    WORDS(in->reduce, p->gradient_bytes == 2 ? "bfloat16" : "");
    in->replicate = p->dp / shards;
    in->shard = shards;
    WORDS(in->reshard, whole ? "" : p->shard == KNEE_ZERO2 ? "never" : "always");
    in->tp = p->tp;
    in->async_tp = given(p->tp > 1, p->overlap_tp > 0);
    in->cp = p->cp;
    fill_stages(a, p, in);
    in->ep = given(p->ep > 1, p->ep);
    in->etp = given(p->ep > 1, p->etp);
    WORDS(in->mode, p->recompute == KNEE_FULL ? "full" : by_op ? "selective" : "none");
    WORDS(in->method, by_op ? "op" : "");
    in->compiled = 1;
    WORDS(in->converters, p->precision == KNEE_BF16        ? ""
                          : p->precision == KNEE_FP8_BLOCK ? "[\"quantize.linear.mx\"]"
                                                           : "[\"quantize.linear.float8\"]");
    WORDS(in->recipe, p->precision == KNEE_FP8_ROW ? "rowwise" : "");
}

/* ---- Writing it by the names of data/import_names.csv ---- */

/* How a format looks: a section's name and end; a name with its value in a section, at the top,
 * and alone (a switch); between values, and before a section. */
struct form {
    const char *title; /* of the framework */
    enum knee_import_format format;
    const char *launch; /* after torchrun; NULL: nothing before the settings */
    const char *open, *close, *inside, *top, *alone, *between, *before, *end;
    bool options, quotes;  /* names of options; words in quotes */
    bool comments, shaped; /* it can hold comments; the model's shape is in it */
};

static const struct form forms[] = {
    {"Megatron-LM", KNEE_FROM_MEGATRON, " pretrain_gpt.py", .top = " \\\n  --%s %s",
     .alone = " \\\n  --%s", .end = "\n", .options = true, .comments = true, .shaped = true},
    {"DeepSpeed", KNEE_FROM_DEEPSPEED, NULL, "  \"%s\": {\n", "\n  }", "    \"%s\": %s",
     "  \"%s\": %s", .between = ",\n", .before = ",\n", .end = "\n}\n", .quotes = true},
    {"torchtitan", KNEE_FROM_TORCHTITAN,
     " -m torchtitan.train --job.config_file THIS_FILE --model.name NAME --model.flavor FLAVOR\n",
     "[%s]\n", "", "%s = %s\n", .before = "\n", .quotes = true, .comments = true},
    {"NeMo", KNEE_FROM_MEGATRON, " RECIPE.py --config-file THIS_FILE\n", "%s:\n", "", "  %s: %s\n",
     "%s: %s\n", .comments = true, .shaped = true},
};

/* The value of a row as it is written; "": it is not. */
static void value_of(const struct form *f, const struct knee_import *in,
                     const struct knee_import_name *row, char value[KNEE_IMPORT_WORD])
{
    const void *at = (const char *)in + row->into;
    const char *words = at;
    double number = row->form == KNEE_IMPORT_WORDS ? 0 : *(const double *)at;
    *value = '\0';
    if (row->form == KNEE_IMPORT_WORDS && *words)
        knee_format(value, KNEE_IMPORT_WORD, f->quotes && !strchr("[{", *words) ? "\"%s\"" : "%s",
                    words);
    else if (row->form == KNEE_IMPORT_TRUTH && (number > 0 || (!f->options && number == 0)))
        knee_format(value, KNEE_IMPORT_WORD, "%s", number > 0 ? "true" : "false");
    else if (row->form == KNEE_IMPORT_NUMBER && !isnan(number))
        knee_format(value, KNEE_IMPORT_WORD, "%.0f", number);
}

static void write_row(const struct form *f, const struct knee_import_name *row, const char *value,
                      const char *section, struct knee_text *text)
{
    char name[KNEE_IMPORT_WORD];
    size_t length = strlen(section);
    bool inside = *section != '.';
    bool within = strncmp(row->name, section, length) == 0 && row->name[length] == '.';
    knee_format(name, sizeof name, "%s", row->name + (within ? length + 1 : 0));
    for (char *c = name; f->options && *c; c++)
        *c = *c == '_' ? '-' : *c;
    if (f->alone && row->form == KNEE_IMPORT_TRUTH)
        knee_text_printf(text, f->alone, name);
    else
        knee_text_printf(text, inside ? f->inside : f->top, name, value);
}

static void write_rows(const struct form *f, const struct knee_import *in, struct knee_text *text)
{
    const char *section = NULL;
    for (size_t i = 0; i < knee_import_names_count; i++) {
        const struct knee_import_name *row = &knee_import_names[i];
        const char *here = !f->options ? row->section : row->option ? "." : "";
        char value[KNEE_IMPORT_WORD] = "";
        if (row->format == f->format && *here)
            value_of(f, in, row, value);
        if (!*value)
            continue;
        bool other = !section || strcmp(section, here) != 0;
        if (section && other && *section != '.')
            knee_text_puts(text, f->close);
        if (section)
            knee_text_puts(text, other && f->before ? f->before : f->between ? f->between : "");
        if (other && *here != '.')
            knee_text_printf(text, f->open, here);
        write_row(f, row, value, here, text);
        section = here;
    }
    knee_text_puts(text, section && *section != '.' ? f->close : "");
    knee_text_puts(text, f->end ? f->end : "");
}

static void torchrun(const struct knee_plan_answer *a, const struct knee_plan *p,
                     const struct form *f, struct knee_text *text)
{
    double node = a->machine.node_size > 0 ? a->machine.node_size : p->gpus;
    double each = fmin(node, p->gpus);
    knee_text_printf(text, "%storchrun --nnodes %.0f --nproc-per-node %.0f%s",
                     f->options ? "" : "# ", ceil(p->gpus / each), each, f->launch);
}

/* ---- The best plan ---- */

/* What decided the plan and is not among the words above: the reader has to set it. */
static void say_unwritten(const struct knee_shape *s, const struct knee_plan *p, bool shaped,
                          struct knee_text *text)
{
    const struct {
        bool here;
        const char *what;
    } rows[] = {
        {shaped && s->experts > 1 && s->dense_layers > 0, "which layers have experts"},
        {shaped && s->linear_layers > 0, "layers with state space or linear attention"},
        {s->lora_rank > 0, "adapters (LoRA)"},
        {p->recompute != KNEE_KEEP && p->recompute_share < 1, "how many layers are recomputed"},
        {p->graphs > 0, "CUDA graphs"},
    };
    const char *before = "# not written here, set by hand: ";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].here) {
            knee_text_printf(text, "%s%s", before, rows[i].what);
            before = "; ";
        }
    knee_text_puts(text, *before == ';' ? "\n" : "");
}

knee_status knee_launch_write(const struct knee_plan_answer *answer, const struct knee_plan *plan,
                              int framework, struct knee_text *text, struct knee_err *err)
{
    const struct form *f = &forms[framework];
    struct knee_import in;
    knee_status status = refuse(answer, plan, framework_words[framework], f->title, err);
    if (status)
        return status;
    knee_import_init(&in, f->format);
    if (f->format == KNEE_FROM_MEGATRON)
        fill_megatron(answer, plan, f->options, &in);
    else if (f->format == KNEE_FROM_TORCHTITAN)
        fill_torchtitan(answer, plan, &in);
    else
        fill_deepspeed(plan, &in);
    if (f->comments)
        say_unwritten(&answer->shape, plan, f->shaped, text);
    if (f->launch)
        torchrun(answer, plan, f, text);
    else
        knee_text_puts(text, "{\n");
    write_rows(f, &in, text);
    return KNEE_OK;
}
