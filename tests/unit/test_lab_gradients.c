/* SPDX-License-Identifier: MIT */
/* Backward against finite differences, every parameter of both models, in double precision. */
#define LAB_REAL double
#include "../../src/lab/lab_gemm.c"
#include "../../src/lab/lab_layers.c"
#include "../../src/lab/lab_net.c"
#include "unit.h"

enum { BATCH = 3, CONTEXT = 6 };

static void fill(struct lab_net *net, const struct lab_shape *shape, unsigned char *tokens,
                 unsigned char *targets)
{
    uint64_t state = 5;
    assert_true(lab_net_init(net, shape, BATCH));
    lab_net_start(net, 7);
    for (int i = 0; i < BATCH * CONTEXT; i++) {
        tokens[i] = (unsigned char)(lab_random(&state) >> 60);
        targets[i] = (unsigned char)(lab_random(&state) >> 60);
    }
    net->tokens = tokens;
    net->targets = targets;
    net->batch = BATCH;
    net->count = BATCH * (double)lab_net_guesses(net);
}

TEST(gradients_are_slopes)
{
    for (int mlp = 0; mlp < 2; mlp++) {
        static struct lab_net net;
        unsigned char tokens[BATCH * CONTEXT], targets[BATCH * CONTEXT];
        struct lab_shape shape = {mlp, 8, 2, 2, CONTEXT};
        fill(&net, &shape, tokens, targets);
        lab_net_run(&net, true);
        for (size_t i = 0; i < net.param_count; i += UNIT_SANITIZED ? 7 : 1) {
            double kept = net.params[i], h = 1e-5;
            net.params[i] = kept + h;
            double above = lab_net_run(&net, false);
            net.params[i] = kept - h;
            double below = lab_net_run(&net, false);
            net.params[i] = kept;
            assert_near(net.grads[i], (above - below) / (2 * h), 1e-7);
        }
        lab_net_release(&net);
    }
}

/* Gradients of two halves add up to those of the whole: what data parallelism rests on. */
TEST(halves_add_up)
{
    static struct lab_net net;
    unsigned char tokens[BATCH * CONTEXT], targets[BATCH * CONTEXT];
    struct lab_shape shape = {false, 8, 1, 2, CONTEXT};
    fill(&net, &shape, tokens, targets);
    lab_net_run(&net, true);
    double *whole = malloc(net.param_count * sizeof *whole), loss = net.loss;
    memcpy(whole, net.grads, net.param_count * sizeof *whole);
    memset(net.grads, 0, net.param_count * sizeof *whole);
    net.batch = 1;
    double first = lab_net_run(&net, true);
    net.batch = BATCH - 1;
    net.tokens += CONTEXT;
    net.targets += CONTEXT;
    double second = lab_net_run(&net, true);
    assert_near(first + second, loss, 1e-12);
    for (size_t i = 0; i < net.param_count; i++)
        assert_near(net.grads[i], whole[i], 1e-12);
    free(whole);
    lab_net_release(&net);
}

/* No byte sees what follows it: the first guess does not change with the last byte. */
TEST(attention_is_causal)
{
    static struct lab_net net;
    unsigned char tokens[BATCH * CONTEXT], targets[BATCH * CONTEXT];
    struct lab_shape shape = {false, 8, 2, 2, CONTEXT};
    fill(&net, &shape, tokens, targets);
    lab_net_run(&net, false);
    const struct lab_node *last = &net.nodes[net.node_count - 1];
    double before[2] = {net.activations[last->at],
                        net.activations[last->at + (CONTEXT - 1) * LAB_BYTES]};
    tokens[CONTEXT - 1] ^= 1;
    lab_net_run(&net, false);
    assert_true(net.activations[last->at] == before[0]);
    assert_true(net.activations[last->at + (CONTEXT - 1) * LAB_BYTES] != before[1]);
    lab_net_release(&net);
}
