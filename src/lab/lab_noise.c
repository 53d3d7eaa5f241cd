/* SPDX-License-Identifier: MIT */
/*
 * The gradient noise scale. A large batch is cut into PIECES small ones: their gradients' squared
 * norms, and that of their mean, are the two points of E|G_B|^2 = |G|^2 + tr(Sigma) / B.
 */
#include "base/text.h"
#include "lab/lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 16, DRAWS = 4 };

static double squared(const float *x, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

/* Adds this rank's draws to sums[0] (small) and sums[1] (large). */
static bool draw(struct lab_net *net, const struct lab_loader_plan *plan, struct lab_batch *batch,
                 float *mean, uint64_t first_step, double *sums)
{
    for (uint64_t d = 0; d < DRAWS; d++) {
        memset(mean, 0, net->param_count * sizeof *mean);
        for (uint64_t piece = 0; piece < PIECES; piece++) {
            if (!lab_loader_read(plan, first_step + d * PIECES + piece, false, batch))
                return false;
            memset(net->grads, 0, net->param_count * sizeof *net->grads);
            lab_net_run(net, true);
            sums[0] += squared(net->grads, net->param_count) / PIECES;
            for (size_t i = 0; i < net->param_count; i++)
                mean[i] += net->grads[i] / PIECES;
        }
        sums[1] += squared(mean, net->param_count);
    }
    return true;
}

static void conclude(struct lab_noise *n)
{
    double b = n->small_batch, c = n->large_batch;
    double noise = (n->small_norm - n->large_norm) / (1 / b - 1 / c);
    double signal = (c * n->large_norm - b * n->small_norm) / (c - b);
    n->critical_batch = noise > 0 && signal > 0 ? noise / signal : NAN;
}

knee_status lab_measure_noise(struct knee_runtime *runtime, const struct lab_setup *setup,
                              const float *params, struct lab_noise *out, struct knee_err *err)
{
    struct lab_net *net = calloc(1, sizeof *net);
    struct lab_batch batch = {0};
    size_t small = setup->shape.mlp ? 32 : 4;
    struct lab_loader_plan plan = {.fd = setup->text_fd,
                                   .text_bytes = setup->text_bytes,
                                   .context = setup->shape.context,
                                   .guesses = setup->shape.mlp ? 1 : setup->shape.context,
                                   .global_batch = small,
                                   .count = small,
                                   .seed = setup->seed + 1000003};
    double sums[2] = {0, 0};
    float *mean = NULL;
    bool good = net && lab_net_init(net, &setup->shape, small) &&
                lab_batch_init(&batch, small, plan.context) &&
                (mean = malloc(net->param_count * sizeof *mean));
    if (good) {
        memcpy(net->params, params, net->param_count * sizeof *params);
        net->tokens = batch.tokens;
        net->targets = batch.targets;
        net->batch = small;
        net->count = (double)small * (double)lab_net_guesses(net);
        good = draw(net, &plan, &batch, mean, (uint64_t)runtime->rank * DRAWS * PIECES, sums);
    }
    if (net)
        lab_net_release(net);
    free(net);
    free(mean);
    lab_batch_release(&batch);
    if (!good)
        return knee_fail(err, KNEE_SYSTEM, "", "the gradient noise cannot be measured");
    if (!lab_reduce(runtime, sums, 2))
        return knee_fail(err, KNEE_SYSTEM, "", "%.200s", runtime->fault);
    double all = (double)DRAWS * runtime->size;
    *out = (struct lab_noise){(double)small, sums[0] / all, (double)(small * PIECES), sums[1] / all,
                              NAN};
    conclude(out);
    return KNEE_OK;
}

knee_status lab_write_noise(const struct lab_setup *setup, const char *folder,
                            const struct lab_noise *noise, struct knee_err *err)
{
    struct knee_text name = {0}, text = {0};
    knee_text_printf(&name, "%s/noise.csv", folder);
    knee_text_printf(&text, "batch,squared_norm\n%.17g,%.17g\n%.17g,%.17g\n", noise->small_batch,
                     noise->small_norm, noise->large_batch, noise->large_norm);
    knee_status status = name.failed ? knee_fail(err, KNEE_SYSTEM, folder, "out of memory")
                                     : setup->write_file(name.data, &text, err);
    knee_text_release(&name);
    knee_text_release(&text);
    return status;
}
