/* SPDX-License-Identifier: MIT */
/*
 * The lab's arithmetic: a model is a tape of nodes; each node is a layer with its inputs, its
 * parameters and its activations. Forward walks the tape, backward walks it the other way and adds
 * to the gradients. All parameters stand in one array and so do all gradients, in the order of the
 * tape, so that a bucket of gradients is a range and is complete when backward has passed its
 * nodes.
 */
#ifndef KNEE_LAB_LAB_NET_H
#define KNEE_LAB_LAB_NET_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tests compile the layers a second time in double precision, for finite differences. */
#ifndef LAB_REAL
#define LAB_REAL float
#endif
typedef LAB_REAL lab_real;

enum { LAB_BYTES = 256 }; /* the vocabulary: bytes of text */
enum { LAB_NODES_MAX = 512, LAB_TENSORS_MAX = 1024 };

/* C = alpha op(A) op(B) + beta C, row-major, with BLAS where there is one. */
struct lab_gemm {
    bool a_transposed, b_transposed;
    size_t rows, columns, inner;
    size_t a_stride, b_stride, c_stride;
    lab_real alpha, beta;
};
void lab_gemm(struct lab_gemm shape, const lab_real *a, const lab_real *b, lab_real *c);

/* Loads OpenBLAS, one thread; false: own loops are used. `wanted` false keeps to the own loops. */
bool lab_blas(bool wanted);

struct lab_net;
struct lab_node;

struct lab_layer {
    const char *name;
    void (*forward)(struct lab_net *net, const struct lab_node *node);
    void (*backward)(struct lab_net *net, const struct lab_node *node);
};

/* `rows` per example, each `width` wide; in[1] is -1 but for sums. */
struct lab_node {
    const struct lab_layer *layer;
    int in[2];
    size_t rows, width, heads;
    size_t param, param_count; /* its range of the parameters */
    size_t at, kept_at;        /* its activations; what backward needs beside them */
};

/* One matrix or vector among the parameters. */
struct lab_tensor {
    size_t at, rows, columns;
    lab_real spread; /* standard deviation at the start; negative: all start at 1 */
};

struct lab_net {
    struct lab_node nodes[LAB_NODES_MAX];
    size_t node_count;
    struct lab_tensor tensors[LAB_TENSORS_MAX];
    size_t tensor_count;
    size_t param_count, context, batch_max;
    size_t activations_per_example, kept_per_example;
    double flops_per_example; /* forward and backward, matrix products only */
    lab_real *params;         /* owned */
    lab_real *grads, *activations, *slopes, *kept;
    struct knee_arena memory; /* of those */
    /* Borrowed, one batch: `context` bytes each, and the bytes to be guessed. */
    const unsigned char *tokens, *targets;
    size_t batch;
    double count;   /* what the loss is divided by: guesses in the whole step, on all workers */
    double loss;    /* summed over this batch, then divided by count */
    bool forgetful; /* too large: nodes or tensors did not fit */
};

/* A transformer language model, or an MLP over the last `context` bytes. */
struct lab_shape {
    bool mlp;
    size_t width, layers, heads, context;
};

/* Lays the model out and gives it room for batches of up to `batch_max`. False: out of memory or
 * larger than the tables. Free with lab_net_release(). */
bool lab_net_init(struct lab_net *net, const struct lab_shape *shape, size_t batch_max);
void lab_net_release(struct lab_net *net);
/* The same start for the same seed, on every rank. */
void lab_net_start(struct lab_net *net, uint64_t seed);
/* How many bytes a batch of one guesses. */
size_t lab_net_guesses(const struct lab_net *net);

void lab_net_forward(struct lab_net *net, size_t node);
/* Once before the first lab_net_backward() of a batch. */
void lab_net_begin_backward(struct lab_net *net);
void lab_net_backward(struct lab_net *net, size_t node);
/* All of it; returns the loss. */
double lab_net_run(struct lab_net *net, bool backward);

/* Reproducible chance: xorshift64*, and a normal value from it. */
uint64_t lab_random(uint64_t *state);
double lab_uniform(uint64_t *state);
double lab_normal(uint64_t *state);

extern const struct lab_layer lab_embed, lab_norm, lab_linear, lab_gelu, lab_attention, lab_sum,
    lab_loss;

#endif
