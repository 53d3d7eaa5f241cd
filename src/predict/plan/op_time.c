/* SPDX-License-Identifier: MIT */
/*
 * Time of an operation: what it computes over the rate it reaches, or what it moves over the
 * memory rate, whichever is longer, after a start.
 *
 *   product    t0 + longer(2 m n k / (e peak), bytes / (b memory rate)), lengths rounded up to 64,
 *              e = e_max k / (k + k0) w / (w + w0), w = waves of 128 x 128 tiles over the GPU
 *   attention  FLOPs / (e peak s / (s + s0)); heads shorter than 128 values reach less
 *   scan       as attention, at half its rate (assumed: no measured run has told)
 */
#include "predict/plan/op_time.h"

#include <math.h>

#define STRIP              64.0
#define TILE               16384.0 /* 128 x 128 results */
#define FLASH_START_S      6e-6
#define SCAN_SLOWER        2.0
#define BATCHED_SHARE      0.45 /* of the peak: batched small products of unfused attention */
#define ODD_HEAD           6.0  /* the same without tensor cores: head_dim no multiple of 8 */
#define ATTENTION_LAUNCHES 2.5  /* backward over forward */

double knee_longer(double a, double b)
{
    double c = a * a, d = b * b;
    return sqrt(sqrt(c * c + d * d));
}

struct reach {
    double share, depth, waves;
};

static struct reach reach_of(const struct knee_split *split, enum knee_dtype dtype)
{
    const struct knee_rates *r = split->rates;
    if (dtype == KNEE_16BIT)
        return (struct reach){r->gemm_16bit, r->gemm_depth_16bit, r->gemm_waves_16bit};
    if (dtype == KNEE_4BIT)
        return (struct reach){r->gemm_4bit, r->gemm_depth_4bit, r->gemm_waves_4bit};
    return (struct reach){r->gemm_8bit * knee_split_scaling(split), r->gemm_depth_8bit,
                          r->gemm_waves_8bit};
}

/* Products are computed in pieces of 64: what does not fill the last one is computed all the same.
 */
static double rounded(double length)
{
    return STRIP * ceil(length / STRIP);
}

static double product_s(const struct knee_split *split, const struct knee_machine *machine,
                        const struct knee_operation *op)
{
    const struct knee_rates *r = split->rates;
    struct reach reach = reach_of(split, op->dtype);
    double m = rounded(op->m), n = rounded(op->n), k = rounded(op->k);
    double waves = m * n / (TILE * r->processors);
    double share = reach.share * r->gemm * k / (k + reach.depth) * waves / (waves + reach.waves);
    if (op->weights)
        share *= r->weight_gradient;
    double rate = share * machine->peak_flops[op->dtype] * machine->clock * r->clock;
    double compute = 2 * m * n * k / rate;
    double memory = op->bytes / (r->gemm_memory * machine->memory_bytes_per_s);
    double once = knee_longer(compute, memory) + r->gemm_start_s;
    return op->grouped ? op->count * once / r->expert_gemm : op->count * once;
}

static double flash_s(const struct knee_split *split, const struct knee_machine *machine,
                      const struct knee_operation *op)
{
    const struct knee_rates *r = split->rates;
    double length = op->n * split->context_share;
    double share = (op->backward ? r->flash_backward : r->flash_forward) * r->flash;
    if (r->portable_attention > 0)
        share *= r->flash_portable;
    if (split->fp8_attention)
        share *= r->flash_8bit;
    share *= length / (length + r->flash_length) * (op->k <= 64 ? r->flash_small_head : 1);
    double start = FLASH_START_S * (op->backward ? ATTENTION_LAUNCHES : 1);
    double rate = share * machine->peak_flops[KNEE_16BIT] * machine->clock * r->clock;
    return op->flops / rate + start;
}

static double streamed_s(const struct knee_split *split, const struct knee_machine *machine,
                         double bytes)
{
    return bytes / (split->rates->memory * machine->memory_bytes_per_s);
}

static double scores_s(const struct knee_split *split, const struct knee_machine *machine,
                       const struct knee_operation *op)
{
    double slower = fmod(op->k, 8) != 0 ? ODD_HEAD : 1;
    double rate = BATCHED_SHARE * split->rates->gemm * machine->peak_flops[KNEE_16BIT];
    return op->flops * slower / (rate * machine->clock) + streamed_s(split, machine, op->bytes);
}

static double seconds_of(const struct knee_split *split, const struct knee_machine *machine,
                         const struct knee_operation *op)
{
    switch (op->kind) {
    case KNEE_OPERATION_GEMM: return product_s(split, machine, op);
    case KNEE_OPERATION_FLASH: return flash_s(split, machine, op);
    case KNEE_OPERATION_SCAN: return SCAN_SLOWER * flash_s(split, machine, op);
    case KNEE_OPERATION_SCORES: return scores_s(split, machine, op);
    case KNEE_OPERATION_BYTES: return op->count * streamed_s(split, machine, op->bytes);
    }
    return 0;
}

size_t knee_ops_timed(const struct knee_split *split, const struct knee_machine *machine,
                      enum knee_operations_of what, struct knee_operation *out)
{
    size_t count = knee_ops_list(split, what, out);
    for (size_t i = 0; i < count; i++)
        out[i].seconds = seconds_of(split, machine, &out[i]);
    return count;
}

double knee_operation_s(const struct knee_machine *machine, const struct knee_operation *op)
{
    struct knee_split split = {
        .rates = &machine->rates, .context_share = 1, .precision = KNEE_FP8, .dtype = op->dtype};
    return seconds_of(&split, machine, op);
}
