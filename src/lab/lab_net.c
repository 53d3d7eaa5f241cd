/* SPDX-License-Identifier: MIT */
/*
 * Models as tapes. A transformer (pre-norm, learned places, no dropout; Radford et al. 2019) and an
 * MLP over the last bytes (Bengio et al. 2003).
 */
#include "lab/lab_net.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Chance ---- */

uint64_t lab_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717u;
}

double lab_uniform(uint64_t *state)
{
    return ((double)(lab_random(state) >> 11) + 0.5) / 9007199254740992.0;
}

double lab_normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(lab_uniform(state)));
    return radius * cos(2 * 3.14159265358979323846 * lab_uniform(state));
}

/* ---- Laying out ---- */

static void add_tensor(struct lab_net *net, size_t rows, size_t columns, double spread)
{
    if (net->tensor_count == LAB_TENSORS_MAX) {
        net->forgetful = true;
        return;
    }
    net->tensors[net->tensor_count++] =
        (struct lab_tensor){net->param_count, rows, columns, (lab_real)spread};
    net->param_count += rows * columns;
}

/* Appends a node; its tensors are added after it by the caller, before the next node. */
static int add_node(struct lab_net *net, struct lab_node node, size_t kept)
{
    if (net->node_count == LAB_NODES_MAX) {
        net->forgetful = true;
        return (int)net->node_count - 1;
    }
    node.param = net->param_count;
    node.at = net->activations_per_example; /* times batch_max, once that is known */
    node.kept_at = net->kept_per_example;
    net->activations_per_example += node.rows * node.width;
    net->kept_per_example += kept;
    net->nodes[net->node_count] = node;
    return (int)net->node_count++;
}

static int add_embed(struct lab_net *net, size_t width)
{
    int node = add_node(
        net, (struct lab_node){&lab_embed, {-1, -1}, net->context, width, 0, 0, 0, 0, 0}, 0);
    add_tensor(net, LAB_BYTES, width, 0.1);
    add_tensor(net, net->context, width, 0.1);
    return node;
}

static int add_norm(struct lab_net *net, int in)
{
    size_t rows = net->nodes[in].rows, width = net->nodes[in].width;
    int node =
        add_node(net, (struct lab_node){&lab_norm, {in, -1}, rows, width, 0, 0, 0, 0, 0}, 2 * rows);
    add_tensor(net, 1, width, -1);
    add_tensor(net, 1, width, 0);
    return node;
}

static int add_linear(struct lab_net *net, int in, size_t rows, size_t width)
{
    size_t width_in = net->nodes[in].rows * net->nodes[in].width / rows;
    int node =
        add_node(net, (struct lab_node){&lab_linear, {in, -1}, rows, width, 0, 0, 0, 0, 0}, 0);
    add_tensor(net, width, width_in, 1 / sqrt((double)width_in));
    add_tensor(net, 1, width, 0);
    net->flops_per_example += 6 * (double)rows * (double)width * (double)width_in;
    return node;
}

static int add_gelu(struct lab_net *net, int in)
{
    const struct lab_node *from = &net->nodes[in];
    return add_node(net,
                    (struct lab_node){&lab_gelu, {in, -1}, from->rows, from->width, 0, 0, 0, 0, 0},
                    from->rows * from->width);
}

static int add_sum(struct lab_net *net, int a, int b)
{
    const struct lab_node *from = &net->nodes[a];
    return add_node(net,
                    (struct lab_node){&lab_sum, {a, b}, from->rows, from->width, 0, 0, 0, 0, 0}, 0);
}

static int add_attention(struct lab_net *net, int in, size_t heads)
{
    size_t rows = net->nodes[in].rows, width = net->nodes[in].width / 3;
    net->flops_per_example += 12 * (double)rows * (double)rows * (double)width;
    /* one more head than there are: the slopes of the one that is worked on */
    return add_node(net,
                    (struct lab_node){&lab_attention, {in, -1}, rows, width, heads, 0, 0, 0, 0},
                    (heads + 1) * rows * rows);
}

static int add_block(struct lab_net *net, int x, const struct lab_shape *shape)
{
    int y = add_linear(net, add_norm(net, x), net->context, 3 * shape->width);
    y = add_linear(net, add_attention(net, y, shape->heads), net->context, shape->width);
    x = add_sum(net, x, y);
    y = add_gelu(net, add_linear(net, add_norm(net, x), net->context, 4 * shape->width));
    y = add_linear(net, y, net->context, shape->width);
    return add_sum(net, x, y);
}

static void lay_out(struct lab_net *net, const struct lab_shape *shape)
{
    size_t rows = shape->mlp ? 1 : net->context;
    int x = add_embed(net, shape->mlp ? 16 : shape->width);
    for (size_t layer = 0; layer < shape->layers; layer++)
        x = shape->mlp ? add_gelu(net, add_linear(net, x, 1, shape->width))
                       : add_block(net, x, shape);
    if (!shape->mlp)
        x = add_norm(net, x);
    x = add_linear(net, x, rows, LAB_BYTES);
    add_node(net, (struct lab_node){&lab_loss, {x, -1}, rows, LAB_BYTES, 0, 0, 0, 0, 0}, 0);
    for (size_t i = 0; i < net->node_count; i++) {
        size_t end = i + 1 < net->node_count ? net->nodes[i + 1].param : net->param_count;
        net->nodes[i].param_count = end - net->nodes[i].param;
        net->nodes[i].at *= net->batch_max;
        net->nodes[i].kept_at *= net->batch_max;
    }
}

bool lab_net_init(struct lab_net *net, const struct lab_shape *shape, size_t batch_max)
{
    memset(net, 0, sizeof *net);
    net->context = shape->context;
    net->batch_max = batch_max;
    lay_out(net, shape);
    size_t room = net->activations_per_example * batch_max;
    net->params = calloc(net->param_count, sizeof *net->params);
    net->grads = knee_arena_take(&net->memory, net->param_count, sizeof *net->grads);
    net->activations = knee_arena_take(&net->memory, room, sizeof *net->activations);
    net->slopes = knee_arena_take(&net->memory, room, sizeof *net->slopes);
    net->kept =
        knee_arena_take(&net->memory, net->kept_per_example * batch_max + 1, sizeof *net->kept);
    if (!net->forgetful && net->params && !net->memory.failed)
        return true;
    lab_net_release(net);
    return false;
}

void lab_net_release(struct lab_net *net)
{
    free(net->params);
    knee_arena_release(&net->memory);
    memset(net, 0, sizeof *net);
}

void lab_net_start(struct lab_net *net, uint64_t seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (size_t t = 0; t < net->tensor_count; t++) {
        const struct lab_tensor *tensor = &net->tensors[t];
        for (size_t i = 0; i < tensor->rows * tensor->columns; i++)
            net->params[tensor->at + i] =
                tensor->spread < 0 ? 1 : (lab_real)((double)tensor->spread * lab_normal(&state));
    }
}

size_t lab_net_guesses(const struct lab_net *net)
{
    return net->nodes[net->node_count - 1].rows;
}

/* ---- Running ---- */

void lab_net_forward(struct lab_net *net, size_t node)
{
    net->nodes[node].layer->forward(net, &net->nodes[node]);
}

void lab_net_begin_backward(struct lab_net *net)
{
    for (size_t i = 0; i < net->node_count; i++)
        memset(net->slopes + net->nodes[i].at, 0,
               net->batch * net->nodes[i].rows * net->nodes[i].width * sizeof *net->slopes);
}

void lab_net_backward(struct lab_net *net, size_t node)
{
    net->nodes[node].layer->backward(net, &net->nodes[node]);
}

double lab_net_run(struct lab_net *net, bool backward)
{
    for (size_t i = 0; i < net->node_count; i++)
        lab_net_forward(net, i);
    if (backward)
        lab_net_begin_backward(net);
    for (size_t i = net->node_count; backward && i-- > 0;)
        lab_net_backward(net, i);
    return net->loss;
}
