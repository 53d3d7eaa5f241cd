/* SPDX-License-Identifier: MIT */
/*
 * Shape -> operations. T tokens, width h, tp ranks:
 *
 *   linear T x k -> T x n      forward (T, n, k); backward (T, k, n) for the input and (n, k, T)
 *                              for the weights; with 8 bits a cast of what goes in, each way
 *   attention, fused           2 (dq + dv) FLOPs per pair of positions that the mask leaves,
 *                              backward 2.5 times that
 *   attention, through memory  all pairs are computed, and every score is moved some bytes
 *   state space, linear        in, convolution and scan, out; the scan in chunks, at half the rate
 *   attention                  of fused attention (assumed: no measured run has told)
 *   LoRA                       no products for weights; what adapters read and write
 *   QLoRA                      frozen weights become 16 bits before every product, each way
 *   everything else            bytes only: norms, residuals, rotations, activations, router,
 *                              permutations, loss
 *
 * Bytes of norms and residuals are split over tp only with sequence parallelism. A layer is the
 * mean over the layers where these differ in kind: what only a share of them has counts as that
 * share.
 */
#include "job/ops.h"

#include "job/plan.h"
#include "job/shape.h"

#include <math.h>

struct knee_split knee_split_of(const struct knee_shape *shape, const struct knee_rates *rates,
                                const struct knee_plan *plan)
{
    bool fused = rates->fused_attention > 0;
    return (struct knee_split){
        .shape = shape,
        .rates = rates,
        .tokens = plan->micro_batch * shape->seq / plan->cp,
        .context_share = 1 / plan->cp,
        .tp = plan->tp,
        .etp = plan->etp,
        .ep = plan->ep,
        .imbalance = plan->imbalance,
        .seq_par = plan->seq_par > 0,
        .fused = fused,
        .fp8_attention = plan->fp8_attention > 0,
        .modules = fused || plan->modules >= 0 ? knee_plan_modules(plan, shape) : 0,
        .dtype = knee_precision_dtype(plan->precision),
        .precision = plan->precision,
    };
}

double knee_split_scaling(const struct knee_split *s)
{
    return s->precision == KNEE_FP8_BLOCK ? s->rates->fp8_block
           : s->precision == KNEE_FP8_ROW ? s->rates->fp8_row
                                          : 1;
}

double knee_split_routed(const struct knee_split *s)
{
    return s->tokens * s->etp / s->tp * s->shape->topk;
}

struct list {
    struct knee_operation *op;
    size_t count;
    double adapted_in, adapted_out; /* values that go into maps with adapters, and come out */
};

static struct knee_operation *add(struct list *list, const char *name,
                                  enum knee_operation_kind kind, enum knee_part part, bool backward)
{
    struct knee_operation *op = &list->op[list->count];
    if (list->count + 1 < KNEE_OPERATIONS_MAX)
        list->count++;
    *op = (struct knee_operation){
        .name = name, .kind = kind, .part = part, .backward = backward, .count = 1};
    return op;
}

void knee_op_product(double m, double n, double k, enum knee_dtype dtype,
                     struct knee_operation *out)
{
    static const double bytes_of[KNEE_DTYPES] = {2, 1, 0.5625}; /* 4 bits with their scales */
    *out = (struct knee_operation){
        .kind = KNEE_OPERATION_GEMM,
        .part = KNEE_PART_GEMM,
        .count = 1,
        .m = m,
        .n = n,
        .k = k,
        .dtype = dtype,
        .flops = 2 * m * n * k,
        .bytes = (m + n) * k * bytes_of[dtype] + 2 * m * n,
    };
}

/* `count` products of m x k and k x n. */
struct product {
    double m, n, k, count;
};

static void product(struct list *list, const char *name, bool backward, struct product p,
                    enum knee_dtype dtype)
{
    struct knee_operation *op = add(list, name, KNEE_OPERATION_GEMM, KNEE_PART_GEMM, backward);
    knee_op_product(p.m, p.n, p.k, dtype, op);
    op->name = name;
    op->backward = backward;
    op->count = p.count;
}

static void moved(struct list *list, const char *name, bool backward, double bytes)
{
    if (bytes > 0)
        add(list, name, KNEE_OPERATION_BYTES, KNEE_PART_MEMORY, backward)->bytes = bytes;
}

/* Moved per weight that goes from 4 bits to 16. Reading and writing alone are 2.5 bytes. Measured,
 * at 0.85 of the memory rate: bitsandbytes 7.5 on A10G and 4.3 to 5.3 on A100 (litgpt's tables of
 * LoRA and QLoRA on Llama 2 7B and Mistral 7B), torchao 15 on RTX 4090 (torchtune's table). */
#define DEQUANTISED_BYTES 7.5

/* `count` linear maps of m x k -> m x n, forward and backward. */
static void linear(struct list *list, const struct knee_split *s, const char *name,
                   struct product p)
{
    product(list, name, false, p, s->dtype);
    product(list, name, true, (struct product){p.m, p.k, p.n, p.count}, s->dtype);
    list->adapted_in += p.m * p.k * p.count;
    list->adapted_out += p.m * p.n * p.count;
    if (s->shape->lora_rank <= 0) { /* frozen weights need no gradients */
        product(list, name, true, (struct product){p.n, p.k, p.m, p.count}, s->dtype);
        list->op[list->count - 1].weights = true;
    }
    for (int backward = 0; s->shape->qlora_rank > 0 && backward < 2; backward++)
        moved(list, "dequantisation", backward, DEQUANTISED_BYTES * p.n * p.k * p.count);
    if (s->dtype == KNEE_16BIT)
        return;
    double cast = 4 * s->rates->cast * p.m * p.count / knee_split_scaling(s);
    moved(list, "cast", false, cast * p.k);
    moved(list, "cast", true, cast * p.n);
}

/* Only a share of the layers has what the list has more than it had `before`. */
static void only_in(struct list *list, const struct list *before, double share)
{
    list->adapted_in = before->adapted_in + share * (list->adapted_in - before->adapted_in);
    list->adapted_out = before->adapted_out + share * (list->adapted_out - before->adapted_out);
    for (size_t i = before->count; share != 1 && i < list->count; i++) {
        struct knee_operation *op = &list->op[i];
        bool whole = op->kind == KNEE_OPERATION_GEMM || op->kind == KNEE_OPERATION_BYTES;
        op->count *= whole ? share : 1;
        op->flops *= whole ? 1 : share;
        op->bytes *= whole ? 1 : share;
    }
}

static void projections(struct list *list, const struct knee_split *s)
{
    const struct knee_shape *shape = s->shape;
    double h = shape->hidden, t = s->tokens, heads = shape->heads / s->tp;
    if (shape->kv_rank > 0) {
        double unrotated = shape->head_dim - shape->rope_dim;
        if (shape->q_rank > 0)
            linear(list, s, "query down", (struct product){t, shape->q_rank, h, 1});
        linear(
            list, s, "query",
            (struct product){t, heads * shape->head_dim, shape->q_rank > 0 ? shape->q_rank : h, 1});
        linear(list, s, "key-value down",
               (struct product){t, shape->kv_rank + shape->rope_dim, h, 1});
        linear(list, s, "key-value up",
               (struct product){t, heads * (unrotated + shape->value_dim), shape->kv_rank, 1});
    } else {
        double wide = shape->heads + 2 * fmax(shape->kv_heads, fmin(s->tp, shape->heads));
        if (shape->attention_gate > 0)
            wide += shape->heads;
        linear(list, s, "query-key-value",
               (struct product){t, wide * shape->head_dim / s->tp, h, 1});
        list->adapted_in += 2 * t * h; /* three maps in one, each with its own adapter */
    }
    linear(list, s, "attention out", (struct product){t, h, heads * shape->value_dim, 1});
}

static void scores(struct list *list, const struct knee_split *s)
{
    const struct knee_shape *shape = s->shape;
    double heads = shape->heads / s->tp;
    double per_pair = 2 * (shape->head_dim + shape->value_dim) * heads * s->tokens;
    double met = s->fused ? knee_shape_pairs(shape, shape->causal > 0) : shape->seq;
    for (int backward = 0; backward < 2; backward++) {
        enum knee_operation_kind kind = s->fused ? KNEE_OPERATION_FLASH : KNEE_OPERATION_SCORES;
        struct knee_operation *op = add(list, "scores", kind, KNEE_PART_ATTENTION, backward);
        op->flops = per_pair * met * (backward ? s->fused ? 2.5 : 2 : 1);
        op->k = shape->head_dim;
        op->n = shape->seq;
        double each = backward ? s->rates->scores_backward_bytes : s->rates->scores_forward_bytes;
        op->bytes = s->fused ? 0 : heads * s->tokens * shape->seq * each;
    }
}

/* State space (Mamba 2) or linear attention (gated delta rule): both have values with a gate, keys
 * and queries shared by groups of heads, a convolution over both, and a scan. */
static void state_space(struct list *list, const struct knee_split *s)
{
    const struct knee_shape *shape = s->shape;
    double inner = shape->linear_heads * shape->linear_dim / s->tp, t = s->tokens;
    double in = knee_linear_in(shape, s->tp), factor = 2 * s->rates->elementwise * t;
    double moves = 2 * (in - inner) + 4 * inner; /* convolution in and out, gate, norm */
    linear(list, s, "state in", (struct product){t, in, shape->hidden, 1});
    linear(list, s, "state out", (struct product){t, shape->hidden, inner, 1});
    for (int backward = 0; backward < 2; backward++) {
        struct knee_operation *op =
            add(list, "scan", KNEE_OPERATION_SCAN, KNEE_PART_ATTENTION, backward);
        op->flops = t * knee_linear_scan_flops(shape) / s->tp * (backward ? 2.5 : 1);
        op->k = shape->linear_dim;
        op->n = shape->seq;
        moved(list, "convolution", backward, (backward ? 1.6 : 1) * factor * moves);
    }
}

static void full_attention(struct list *list, const struct knee_split *s)
{
    const struct knee_shape *shape = s->shape;
    double wide = shape->heads * shape->head_dim + shape->kv_heads * shape->head_dim;
    if (shape->kv_rank > 0)
        wide = shape->heads * (1.5 * shape->head_dim + 0.5 * shape->value_dim) +
               2 * (shape->q_rank + shape->kv_rank);
    double factor = 2 * s->rates->elementwise * s->tokens; /* 2 bytes a value */
    double own = 2 * wide / s->tp;                         /* rotation, layout */
    projections(list, s);
    scores(list, s);
    moved(list, "rotation", false, factor * own);
    moved(list, "rotation", true, 1.5 * factor * own);
}

static void attention(struct list *list, const struct knee_split *s)
{
    double linear_share = knee_shape_linear(s->shape);
    double factor = 2 * s->rates->elementwise * s->tokens;
    double across = 10 * s->shape->hidden / (s->seq_par ? s->tp : 1); /* two norms, residuals */
    struct list before = *list;
    if (linear_share < 1)
        full_attention(list, s);
    only_in(list, &before, 1 - linear_share);
    before = *list;
    if (linear_share > 0)
        state_space(list, s);
    only_in(list, &before, linear_share);
    moved(list, "norms and residuals", false, factor * across);
    moved(list, "norms and residuals", true, 1.6 * factor * across);
}

/* A feed-forward part of `width` on m tokens, `count` of them side by side. */
static void feed_forward(struct list *list, const struct knee_split *s, const char *name, double m,
                         double width, double count)
{
    double in = s->shape->glu > 0 ? 2 : 1, h = s->shape->hidden;
    double acted = 2 * s->rates->elementwise * m * count * (in + 1) * width;
    linear(list, s, name, (struct product){m, in * width, h, count});
    list->adapted_in += (in - 1) * m * h * count;
    linear(list, s, name, (struct product){m, h, width, count});
    moved(list, "activation", false, acted);
    moved(list, "activation", true, 1.7 * acted);
}

/* Biases of experts (gpt-oss) are added expert by expert, times the router's weight, outside the
 * products: what comes out of one is read, promoted to 32 bits, joined and rounded again. */
#define BIAS_FORWARD_BYTES 20.0 /* 2 + 4 sum, 4 + 4 join, 4 + 2 round */
#define BIAS_BACKWARD_BYTES                                                                        \
    36.0 /* rounding 12; gradients of the bias and of the weight 12 each                           \
          */

static void expert_biases(struct list *list, const struct knee_split *s, double routed)
{
    const struct knee_shape *shape = s->shape;
    double in = shape->glu > 0 ? 2 : 1, values = in * shape->expert_ffn / s->etp + shape->hidden;
    double each = shape->bias > 1 ? s->rates->expert_bias * routed * values : 0;
    moved(list, "expert biases", false, BIAS_FORWARD_BYTES * each);
    moved(list, "expert biases", true, BIAS_BACKWARD_BYTES * each);
}

static void experts(struct list *list, const struct knee_split *s)
{
    const struct knee_shape *shape = s->shape;
    double local = shape->experts / s->ep, routed = knee_split_routed(s) * s->imbalance;
    double own = s->tokens / (s->seq_par ? s->tp : 1);
    double router = own * (24 * shape->experts + 2 * shape->hidden);
    double permuted = 16 * s->rates->expert_copies * routed * shape->hidden;
    size_t first = list->count;
    double in = list->adapted_in, out = list->adapted_out; /* routed experts have no adapters */
    feed_forward(list, s, "experts", routed / local, shape->expert_ffn / s->etp, local);
    list->adapted_in = in;
    list->adapted_out = out;
    for (size_t i = first; i < list->count; i++)
        list->op[i].grouped = true;
    for (int backward = 0; backward < 2; backward++) {
        moved(list, "router", backward, router);
        moved(list, "permutation", backward, permuted);
    }
    expert_biases(list, s, routed);
    if (shape->shared_ffn > 0)
        feed_forward(list, s, "shared expert", s->tokens, shape->shared_ffn / s->tp, 1);
}

/* What adapters add: down to their rank and up again, added to what the map gives; backward their
 * own gradients and the input's. */
static void adapters(struct list *list, const struct knee_split *s)
{
    double rank = s->shape->lora_rank, in = list->adapted_in, out = list->adapted_out;
    if (rank <= 0 || s->tokens <= 0)
        return;
    product(list, "adapters", false, (struct product){s->tokens, rank, (in + out) / s->tokens, 1},
            KNEE_16BIT);
    product(list, "adapters", true, (struct product){s->tokens, rank, (in + out) / s->tokens, 2},
            KNEE_16BIT);
    moved(list, "adapters", false, 4 * out);
    moved(list, "adapters", true, 4 * in);
}

static void head(struct list *list, const struct knee_split *s)
{
    double n = s->shape->vocab / s->tp, h = s->shape->hidden, t = s->tokens;
    product(list, "logits", false, (struct product){t, n, h, 1}, KNEE_16BIT);
    product(list, "logits", true, (struct product){t, h, n, 1}, KNEE_16BIT);
    if (s->shape->lora_rank <= 0) {
        product(list, "logits", true, (struct product){n, h, t, 1}, KNEE_16BIT);
        list->op[list->count - 1].weights = true;
    }
    moved(list, "loss", false, 10 * s->rates->loss * t * n);
    moved(list, "loss", true, 8 * s->rates->loss * t * n);
    for (size_t i = 0; i < list->count; i++)
        list->op[i].part = KNEE_PART_HEAD;
}

size_t knee_ops_list(const struct knee_split *s, enum knee_operations_of what,
                     struct knee_operation *out)
{
    struct list list = {.op = out};
    if (what == KNEE_OPERATIONS_HEAD) {
        head(&list, s);
        return list.count;
    }
    if (what == KNEE_OPERATIONS_EMBEDDING) {
        moved(&list, "embedding", false, 8 * s->tokens * s->shape->hidden);
        out[0].part = KNEE_PART_HEAD;
        return list.count;
    }
    attention(&list, s);
    struct list before = list;
    if (what == KNEE_OPERATIONS_EXPERT)
        experts(&list, s);
    else if (knee_shape_fed(s->shape) > 0)
        feed_forward(&list, s, "feed-forward", s->tokens, s->shape->ffn / s->tp, 1);
    if (what == KNEE_OPERATIONS_DENSE)
        only_in(&list, &before, knee_shape_fed(s->shape));
    if (s->shape->lora_attention > 0) {
        list.adapted_in = before.adapted_in;
        list.adapted_out = before.adapted_out;
    }
    adapters(&list, s);
    return list.count;
}
