/* SPDX-License-Identifier: MIT */
/*
 * What is made small is, over the products,
 *
 *   sum of huber(log(model / measured)) + sum over constants of (log(value / start) / sigma)^2 / 20
 *
 * by Gauss-Newton steps on logarithms with numeric derivatives, damped until the sum falls. A
 * constant that the products do not tell about (no 8-bit ones among them) stays where it is.
 */
#include "predict/calibrate/product_fit.h"

#include "base/error.h"
#include "base/linear.h"
#include "base/order.h"
#include "predict/plan/op_time.h"

#include <math.h>
#include <string.h>

#define HUBER   0.05
#define NUDGE   0.01 /* of the logarithm, for derivatives */
#define LONGEST 0.5  /* change of a logarithm in one round */
#define PULL    0.05 /* weight of the squared distance from the start */
#define ROUNDS  40
#define MOST    1024 /* products: more tell nothing new, and take time */

static const struct {
    size_t offset;
    double sigma; /* how far such a constant strays, of its logarithm */
} constants[] = {
    {offsetof(struct knee_rates, gemm_16bit), 0.3},
    {offsetof(struct knee_rates, gemm_8bit), 0.3},
    {offsetof(struct knee_rates, gemm_4bit), 0.3},
    {offsetof(struct knee_rates, gemm_depth_16bit), 0.7},
    {offsetof(struct knee_rates, gemm_depth_8bit), 0.7},
    {offsetof(struct knee_rates, gemm_depth_4bit), 0.7},
    {offsetof(struct knee_rates, gemm_waves_16bit), 0.7},
    {offsetof(struct knee_rates, gemm_waves_8bit), 0.7},
    {offsetof(struct knee_rates, gemm_waves_4bit), 0.7},
    {offsetof(struct knee_rates, gemm_start_s), 0.5},
    {offsetof(struct knee_rates, gemm_memory), 0.3},
};
#define CONSTANTS (sizeof constants / sizeof *constants)
_Static_assert(CONSTANTS <= KNEE_UNKNOWNS_MAX, "they are solved for at once");

static double *constant_of(struct knee_rates *rates, size_t i)
{
    return (double *)(void *)((char *)rates + constants[i].offset);
}

double knee_timed_product_s(const struct knee_machine *machine,
                            const struct knee_timed_product *product)
{
    struct knee_operation op;
    knee_op_product(product->m, product->n, product->k, product->dtype, &op);
    return knee_operation_s(machine, &op);
}

/* ---- The fit ---- */

/* Which products: every `every`-th from `from` on. */
struct fitting {
    const struct knee_timed_product *products;
    size_t count, from, every;
    struct knee_machine machine; /* its rates are what is fitted */
    double start[CONSTANTS];
    double loss;
};

/* A GPU may have no rate for a type. */
static bool known(const struct fitting *fit, size_t i)
{
    return fit->machine.peak_flops[fit->products[i].dtype] > 0;
}

static double huber(double e)
{
    e = fabs(e);
    return e < HUBER ? e * e / (2 * HUBER) : e - HUBER / 2;
}

static double strayed(const struct fitting *fit, size_t i)
{
    struct knee_rates rates = fit->machine.rates;
    return log(*constant_of(&rates, i) / fit->start[i]) / constants[i].sigma;
}

static double off_by(const struct fitting *fit, size_t i)
{
    return log(knee_timed_product_s(&fit->machine, &fit->products[i]) / fit->products[i].seconds);
}

static double loss_of(const struct fitting *fit)
{
    double sum = 0;
    for (size_t i = fit->from; i < fit->count; i += fit->every)
        sum += known(fit, i) ? huber(off_by(fit, i)) : 0;
    for (size_t j = 0; j < CONSTANTS; j++)
        sum += PULL * strayed(fit, j) * strayed(fit, j);
    return sum;
}

/* Adds one product to the normal equations. */
static void add_product(struct fitting *fit, size_t i, struct knee_matrix *normal, double *right)
{
    double error = off_by(fit, i), weight = 1 / fmax(HUBER, fabs(error)), slope[CONSTANTS];
    for (size_t j = 0; j < CONSTANTS; j++) {
        double *value = constant_of(&fit->machine.rates, j), kept = *value;
        *value = kept * exp(NUDGE);
        slope[j] = (off_by(fit, i) - error) / NUDGE;
        *value = kept;
    }
    for (size_t j = 0; j < CONSTANTS; j++) {
        right[j] -= weight * slope[j] * error;
        for (size_t k = 0; k <= j; k++)
            normal->at[j][k] += weight * slope[j] * slope[k];
    }
}

static void assemble(struct fitting *fit, struct knee_matrix *normal, double *right)
{
    memset(normal, 0, sizeof *normal);
    memset(right, 0, CONSTANTS * sizeof *right);
    normal->size = CONSTANTS;
    for (size_t i = fit->from; i < fit->count; i += fit->every)
        if (known(fit, i))
            add_product(fit, i, normal, right);
    for (size_t j = 0; j < CONSTANTS; j++) {
        double sigma = constants[j].sigma;
        right[j] -= 2 * PULL * strayed(fit, j) / sigma;
        normal->at[j][j] += 2 * PULL / (sigma * sigma);
    }
}

/* Takes the step, with growing caution until the loss falls; false: it does not. */
static bool improve(struct fitting *fit)
{
    struct knee_matrix normal;
    struct knee_rates kept = fit->machine.rates;
    double right[CONSTANTS];
    assemble(fit, &normal, right);
    for (double damping = 1e-3; damping < 1e4; damping *= 8) {
        struct knee_matrix damped = normal;
        double change[CONSTANTS];
        memcpy(change, right, sizeof change);
        for (size_t j = 0; j < CONSTANTS; j++)
            damped.at[j][j] *= 1 + damping;
        if (!knee_matrix_solve(&damped, change))
            continue;
        for (size_t j = 0; j < CONSTANTS; j++)
            *constant_of(&fit->machine.rates, j) *= exp(fmin(LONGEST, fmax(-LONGEST, change[j])));
        double loss = loss_of(fit);
        if (loss < fit->loss) {
            bool enough = fit->loss - loss < 1e-5 * loss;
            fit->loss = loss;
            return !enough;
        }
        fit->machine.rates = kept;
    }
    return false;
}

static void run(struct fitting *fit)
{
    for (size_t j = 0; j < CONSTANTS; j++)
        fit->start[j] = *constant_of(&fit->machine.rates, j);
    fit->loss = loss_of(fit);
    for (int round = 0; round < ROUNDS && improve(fit); round++)
        ;
}

/* ---- How good it is ---- */

static double median_off(const struct fitting *fit, const struct knee_machine *machine)
{
    double off[MOST];
    size_t count = 0;
    for (size_t i = fit->from; i < fit->count; i += fit->every) {
        if (!known(fit, i))
            continue;
        double model_s = knee_timed_product_s(machine, &fit->products[i]);
        off[count++] = fabs(log(model_s / fit->products[i].seconds));
    }
    return knee_median(off, count);
}

/* All of them together, so that those count that take time: the model's time over the measured. */
static double speed_of(const struct fitting *fit, const struct knee_machine *machine)
{
    double model_s = 0, measured_s = 0;
    for (size_t i = fit->from; i < fit->count; i += fit->every)
        if (known(fit, i)) {
            model_s += knee_timed_product_s(machine, &fit->products[i]);
            measured_s += fit->products[i].seconds;
        }
    return model_s / measured_s;
}

/* Fitted on every second product, the others predicted. */
static double left_out(const struct fitting *all)
{
    struct fitting half = *all;
    half.every *= 2;
    run(&half);
    half.from += all->every;
    return median_off(&half, &half.machine);
}

/* As the GPU is when nothing else runs. */
static struct knee_machine alone(const struct knee_machine *machine)
{
    struct knee_machine out = *machine;
    out.rates.gemm_16bit = out.rates.gemm_alone;
    out.rates.gemm = 1;
    return out;
}

/* Rates in training change by the same factors as those measured alone. */
static void keep_fitted(const struct knee_machine *machine, struct knee_products_fit *out)
{
    for (size_t i = 0; i < knee_rates_keys.count; i++)
        if (knee_rates_keys.rows[i].kind == KNEE_KEY_NUMBER)
            *(double *)(void *)((char *)&out->rates + knee_rates_keys.rows[i].offset) = NAN;
    for (size_t j = 0; j < CONSTANTS; j++) {
        double now = *constant_of(&out->machine.rates, j);
        if (now != *constant_of(&out->as_known.rates, j))
            *constant_of(&out->rates, j) = now;
    }
    if (out->of[KNEE_16BIT]) {
        out->rates.gemm_alone = out->machine.rates.gemm_16bit;
        out->rates.gemm_16bit *= machine->rates.gemm_16bit / machine->rates.gemm_alone;
    }
}

knee_status knee_products_fit(const struct knee_timed_product *products, size_t count,
                              const struct knee_machine *machine, struct knee_products_fit *out,
                              struct knee_err *err)
{
    struct fitting fit = {products, count, 0, (count + MOST - 1) / MOST, alone(machine), {0}, 0};
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < count; i += fit.every)
        if (known(&fit, i)) {
            out->of[products[i].dtype]++;
            out->count++;
        }
    if (out->count < KNEE_PRODUCTS_FEWEST) {
        knee_fail(err, KNEE_INPUT, "", "%zu products are too few for a fit", out->count);
        knee_hint(err, "give at least %d, small and large, of types that the GPU has",
                  KNEE_PRODUCTS_FEWEST);
        return KNEE_INPUT;
    }
    out->shipped_rates = machine->rates;
    out->as_known = fit.machine;
    out->left_out = out->count < 2 * KNEE_PRODUCTS_FEWEST ? NAN : left_out(&fit);
    run(&fit);
    out->machine = fit.machine;
    out->shipped = median_off(&fit, &out->as_known);
    out->fitted = median_off(&fit, &out->machine);
    out->speed = speed_of(&fit, &out->as_known);
    keep_fitted(machine, out);
    return KNEE_OK;
}
