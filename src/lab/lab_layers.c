/* SPDX-License-Identifier: MIT */
/*
 * The layers, forward and backward. Backward adds to the slopes of its inputs and to the gradients
 * of its parameters, so that a value used twice and a batch in several pieces come out right.
 */
#include "lab/lab_net.h"

#include <math.h>
#include <string.h>

static lab_real *out_of(const struct lab_net *net, int node)
{
    return net->activations + net->nodes[node].at;
}

static lab_real *slope_of(const struct lab_net *net, int node)
{
    return net->slopes + net->nodes[node].at;
}

static lab_real *own(const struct lab_net *net, const struct lab_node *node)
{
    return net->activations + node->at;
}

static lab_real *own_slope(const struct lab_net *net, const struct lab_node *node)
{
    return net->slopes + node->at;
}

static size_t rows_of(const struct lab_net *net, const struct lab_node *node)
{
    return net->batch * node->rows;
}

/* Values per row of what comes in: rows may be joined (an MLP reads all bytes at once). */
static size_t width_in(const struct lab_net *net, const struct lab_node *node)
{
    const struct lab_node *in = &net->nodes[node->in[0]];
    return in->rows * in->width / node->rows;
}

/* ---- Bytes to vectors: one row of a table for the byte, one for its place ---- */

static void embed_forward(struct lab_net *net, const struct lab_node *node)
{
    const lab_real *bytes = net->params + node->param, *places = bytes + LAB_BYTES * node->width;
    lab_real *out = own(net, node);
    for (size_t row = 0; row < rows_of(net, node); row++)
        for (size_t i = 0; i < node->width; i++)
            out[row * node->width + i] = bytes[net->tokens[row] * node->width + i] +
                                         places[row % node->rows * node->width + i];
}

static void embed_backward(struct lab_net *net, const struct lab_node *node)
{
    lab_real *bytes = net->grads + node->param, *places = bytes + LAB_BYTES * node->width;
    const lab_real *slope = own_slope(net, node);
    for (size_t row = 0; row < rows_of(net, node); row++)
        for (size_t i = 0; i < node->width; i++) {
            bytes[net->tokens[row] * node->width + i] += slope[row * node->width + i];
            places[row % node->rows * node->width + i] += slope[row * node->width + i];
        }
}

const struct lab_layer lab_embed = {"embed", embed_forward, embed_backward};

/* ---- Layer norm: (x - mean) / deviation, times a gain, plus a bias ---- */

#define NORM_FLOOR ((lab_real)1e-5)

static void norm_forward(struct lab_net *net, const struct lab_node *node)
{
    size_t width = node->width;
    const lab_real *gain = net->params + node->param, *bias = gain + width;
    for (size_t row = 0; row < rows_of(net, node); row++) {
        const lab_real *x = out_of(net, node->in[0]) + row * width;
        lab_real *y = own(net, node) + row * width, *kept = net->kept + node->kept_at + 2 * row;
        lab_real mean = 0, square = 0;
        for (size_t i = 0; i < width; i++)
            mean += x[i] / (lab_real)width;
        for (size_t i = 0; i < width; i++)
            square += (x[i] - mean) * (x[i] - mean) / (lab_real)width;
        kept[0] = mean;
        kept[1] = 1 / (lab_real)sqrt((double)(square + NORM_FLOOR));
        for (size_t i = 0; i < width; i++)
            y[i] = (x[i] - mean) * kept[1] * gain[i] + bias[i];
    }
}

static void norm_backward(struct lab_net *net, const struct lab_node *node)
{
    size_t width = node->width;
    const lab_real *gain = net->params + node->param;
    lab_real *gain_grad = net->grads + node->param, *bias_grad = gain_grad + width;
    for (size_t row = 0; row < rows_of(net, node); row++) {
        const lab_real *x = out_of(net, node->in[0]) + row * width;
        const lab_real *slope = own_slope(net, node) + row * width;
        const lab_real *kept = net->kept + node->kept_at + 2 * row;
        lab_real *into = slope_of(net, node->in[0]) + row * width, sum = 0, along = 0;
        for (size_t i = 0; i < width; i++) {
            lab_real normal = (x[i] - kept[0]) * kept[1], inner = slope[i] * gain[i];
            sum += inner / (lab_real)width;
            along += inner * normal / (lab_real)width;
            gain_grad[i] += slope[i] * normal;
            bias_grad[i] += slope[i];
        }
        for (size_t i = 0; i < width; i++) {
            lab_real normal = (x[i] - kept[0]) * kept[1];
            into[i] += kept[1] * (slope[i] * gain[i] - sum - normal * along);
        }
    }
}

const struct lab_layer lab_norm = {"norm", norm_forward, norm_backward};

/* ---- Linear: y = x W' + b, W of width x width_in ---- */

static void linear_forward(struct lab_net *net, const struct lab_node *node)
{
    size_t in = width_in(net, node), rows = rows_of(net, node);
    const lab_real *weights = net->params + node->param, *bias = weights + node->width * in;
    lab_real *out = own(net, node);
    for (size_t row = 0; row < rows; row++)
        memcpy(out + row * node->width, bias, node->width * sizeof *out);
    lab_gemm((struct lab_gemm){.b_transposed = true,
                               .rows = rows,
                               .columns = node->width,
                               .inner = in,
                               .a_stride = in,
                               .b_stride = in,
                               .c_stride = node->width,
                               .alpha = 1,
                               .beta = 1},
             out_of(net, node->in[0]), weights, out);
}

static void linear_backward(struct lab_net *net, const struct lab_node *node)
{
    size_t in = width_in(net, node), rows = rows_of(net, node);
    const lab_real *weights = net->params + node->param, *slope = own_slope(net, node);
    lab_real *weights_grad = net->grads + node->param, *bias_grad = weights_grad + node->width * in;
    lab_gemm((struct lab_gemm){.a_transposed = true,
                               .rows = node->width,
                               .columns = in,
                               .inner = rows,
                               .a_stride = node->width,
                               .b_stride = in,
                               .c_stride = in,
                               .alpha = 1,
                               .beta = 1},
             slope, out_of(net, node->in[0]), weights_grad);
    for (size_t row = 0; row < rows; row++)
        for (size_t i = 0; i < node->width; i++)
            bias_grad[i] += slope[row * node->width + i];
    lab_gemm((struct lab_gemm){.rows = rows,
                               .columns = in,
                               .inner = node->width,
                               .a_stride = node->width,
                               .b_stride = in,
                               .c_stride = in,
                               .alpha = 1,
                               .beta = 1},
             slope, weights, slope_of(net, node->in[0]));
}

const struct lab_layer lab_linear = {"linear", linear_forward, linear_backward};

/* ---- GELU, the tanh form (Hendrycks and Gimpel 2016) ---- */

#define GELU_ROOT  ((lab_real)0.7978845608028654) /* sqrt(2 / pi) */
#define GELU_CUBIC ((lab_real)0.044715)

static void gelu_forward(struct lab_net *net, const struct lab_node *node)
{
    const lab_real *x = out_of(net, node->in[0]);
    lab_real *y = own(net, node), *kept = net->kept + node->kept_at;
    for (size_t i = 0; i < rows_of(net, node) * node->width; i++) {
        kept[i] = (lab_real)tanh((double)(GELU_ROOT * (x[i] + GELU_CUBIC * x[i] * x[i] * x[i])));
        y[i] = x[i] * (1 + kept[i]) / 2;
    }
}

static void gelu_backward(struct lab_net *net, const struct lab_node *node)
{
    const lab_real *x = out_of(net, node->in[0]), *slope = own_slope(net, node);
    const lab_real *kept = net->kept + node->kept_at;
    lab_real *into = slope_of(net, node->in[0]);
    for (size_t i = 0; i < rows_of(net, node) * node->width; i++) {
        lab_real inner = GELU_ROOT * (1 + 3 * GELU_CUBIC * x[i] * x[i]);
        into[i] += slope[i] * ((1 + kept[i]) + x[i] * (1 - kept[i] * kept[i]) * inner) / 2;
    }
}

const struct lab_layer lab_gelu = {"gelu", gelu_forward, gelu_backward};

/* ---- Causal attention; queries, keys and values stand side by side in what comes in ---- */

/* One head of one example: strides and where its parts are. */
struct head {
    size_t length, size, stride_in, stride_out;
    lab_real scale;
    size_t query, key, value, out, weights;
};

static struct head head_at(const struct lab_net *net, const struct lab_node *node, size_t example,
                           size_t which)
{
    size_t in = 3 * node->width, size = node->width / node->heads;
    size_t from = net->nodes[node->in[0]].at + example * node->rows * in + which * size;
    return (struct head){
        .length = node->rows,
        .size = size,
        .stride_in = in,
        .stride_out = node->width,
        .scale = 1 / (lab_real)sqrt((double)size),
        .query = from,
        .key = from + node->width,
        .value = from + 2 * node->width,
        .out = node->at + example * node->rows * node->width + which * size,
        .weights = node->kept_at + (example * node->heads + which) * node->rows * node->rows,
    };
}

/* Softmax of the first i + 1 values of each row i; the rest is 0: no byte sees what follows it. */
static void causal_softmax(lab_real *weights, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        lab_real *row = weights + i * length, most = row[0], sum = 0;
        for (size_t j = 1; j <= i; j++)
            most = row[j] > most ? row[j] : most;
        for (size_t j = 0; j <= i; j++)
            sum += row[j] = (lab_real)exp((double)(row[j] - most));
        for (size_t j = 0; j < length; j++)
            row[j] = j <= i ? row[j] / sum : 0;
    }
}

static void attention_forward(struct lab_net *net, const struct lab_node *node)
{
    lab_real *a = net->activations;
    for (size_t i = 0; i < net->batch * node->heads; i++) {
        struct head h = head_at(net, node, i / node->heads, i % node->heads);
        lab_real *weights = net->kept + h.weights;
        lab_gemm((struct lab_gemm){.b_transposed = true,
                                   .rows = h.length,
                                   .columns = h.length,
                                   .inner = h.size,
                                   .a_stride = h.stride_in,
                                   .b_stride = h.stride_in,
                                   .c_stride = h.length,
                                   .alpha = h.scale},
                 a + h.query, a + h.key, weights);
        causal_softmax(weights, h.length);
        lab_gemm((struct lab_gemm){.rows = h.length,
                                   .columns = h.size,
                                   .inner = h.length,
                                   .a_stride = h.length,
                                   .b_stride = h.stride_in,
                                   .c_stride = h.stride_out,
                                   .alpha = 1},
                 weights, a + h.value, a + h.out);
    }
}

/* Slopes of the weights to slopes of the scores, in place. */
static void softmax_backward(const lab_real *weights, lab_real *slopes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const lab_real *p = weights + i * length;
        lab_real *s = slopes + i * length, along = 0;
        for (size_t j = 0; j <= i; j++)
            along += p[j] * s[j];
        for (size_t j = 0; j < length; j++)
            s[j] = p[j] * (s[j] - along);
    }
}

static void attention_backward(struct lab_net *net, const struct lab_node *node)
{
    lab_real *a = net->activations, *d = net->slopes;
    /* behind the weights of all examples: room for the slopes of one head */
    lab_real *slopes =
        net->kept + node->kept_at + net->batch_max * node->heads * node->rows * node->rows;
    for (size_t i = 0; i < net->batch * node->heads; i++) {
        struct head h = head_at(net, node, i / node->heads, i % node->heads);
        const lab_real *weights = net->kept + h.weights;
        struct lab_gemm shape = {.b_transposed = true,
                                 .rows = h.length,
                                 .columns = h.length,
                                 .inner = h.size,
                                 .a_stride = h.stride_out,
                                 .b_stride = h.stride_in,
                                 .c_stride = h.length,
                                 .alpha = 1};
        lab_gemm(shape, d + h.out, a + h.value, slopes);
        shape = (struct lab_gemm){.a_transposed = true,
                                  .rows = h.length,
                                  .columns = h.size,
                                  .inner = h.length,
                                  .a_stride = h.length,
                                  .b_stride = h.stride_out,
                                  .c_stride = h.stride_in,
                                  .alpha = 1,
                                  .beta = 1};
        lab_gemm(shape, weights, d + h.out, d + h.value);
        softmax_backward(weights, slopes, h.length);
        shape.b_stride = h.stride_in;
        shape.alpha = h.scale;
        lab_gemm(shape, slopes, a + h.query, d + h.key);
        shape.a_transposed = false;
        lab_gemm(shape, slopes, a + h.key, d + h.query);
    }
}

const struct lab_layer lab_attention = {"attention", attention_forward, attention_backward};

/* ---- The sum of two ---- */

static void sum_forward(struct lab_net *net, const struct lab_node *node)
{
    const lab_real *a = out_of(net, node->in[0]), *b = out_of(net, node->in[1]);
    lab_real *out = own(net, node);
    for (size_t i = 0; i < rows_of(net, node) * node->width; i++)
        out[i] = a[i] + b[i];
}

static void sum_backward(struct lab_net *net, const struct lab_node *node)
{
    const lab_real *slope = own_slope(net, node);
    for (int side = 0; side < 2; side++) {
        lab_real *into = slope_of(net, node->in[side]);
        for (size_t i = 0; i < rows_of(net, node) * node->width; i++)
            into[i] += slope[i];
    }
}

const struct lab_layer lab_sum = {"sum", sum_forward, sum_backward};

/* ---- Cross-entropy of the byte that came; its activations are the probabilities ---- */

static void loss_forward(struct lab_net *net, const struct lab_node *node)
{
    double loss = 0;
    for (size_t row = 0; row < rows_of(net, node); row++) {
        const lab_real *x = out_of(net, node->in[0]) + row * node->width;
        lab_real *p = own(net, node) + row * node->width, most = x[0];
        double sum = 0;
        for (size_t i = 1; i < node->width; i++)
            most = x[i] > most ? x[i] : most;
        for (size_t i = 0; i < node->width; i++)
            sum += p[i] = (lab_real)exp((double)(x[i] - most));
        for (size_t i = 0; i < node->width; i++)
            p[i] = (lab_real)((double)p[i] / sum);
        loss += log(fmax(1, sum)) - (double)(x[net->targets[row]] - most); /* exp(0) is in it */
    }
    net->loss = loss / net->count;
}

static void loss_backward(struct lab_net *net, const struct lab_node *node)
{
    for (size_t row = 0; row < rows_of(net, node); row++) {
        const lab_real *p = own(net, node) + row * node->width;
        lab_real *into = slope_of(net, node->in[0]) + row * node->width;
        for (size_t i = 0; i < node->width; i++)
            into[i] += (p[i] - (net->targets[row] == i)) / (lab_real)net->count;
    }
}

const struct lab_layer lab_loss = {"loss", loss_forward, loss_backward};
