/* SPDX-License-Identifier: MIT */
/* SGD with momentum, AdamW, LARS (You et al. 2017) and LAMB (You et al. 2019). */
#include "lab/lab_optimizer.h"

#include "base/keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOMENTUM   0.9
#define SECOND     0.999
#define TINY       1e-8
#define DECAY      0.01 /* of weights: Adam, LAMB */
#define LARS_DECAY 1e-4
#define LARS_TRUST 0.001

/* One tensor of one step. */
struct piece {
    float *w, *m, *v;
    const float *g;
    size_t count;
    bool vector; /* biases and gains: layer-wise rates make no sense for them */
    double rate;
    size_t step; /* from 1 */
};

static double norm(const float *x, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static void sgd(const struct piece *p)
{
    for (size_t i = 0; i < p->count; i++) {
        p->m[i] = (float)(MOMENTUM * (double)p->m[i] + (double)p->g[i]);
        p->w[i] -= (float)(p->rate * (double)p->m[i]);
    }
}

/* Adam's direction for value i, bias corrected, with decoupled decay. */
static double adam_direction(const struct piece *p, size_t i)
{
    double g = (double)p->g[i];
    p->m[i] = (float)(MOMENTUM * (double)p->m[i] + (1 - MOMENTUM) * g);
    p->v[i] = (float)(SECOND * (double)p->v[i] + (1 - SECOND) * g * g);
    double m = (double)p->m[i] / (1 - pow(MOMENTUM, (double)p->step));
    double v = (double)p->v[i] / (1 - pow(SECOND, (double)p->step));
    return m / (sqrt(v) + TINY) + (p->vector ? 0 : DECAY * (double)p->w[i]);
}

static void adam(const struct piece *p)
{
    for (size_t i = 0; i < p->count; i++)
        p->w[i] -= (float)(p->rate * adam_direction(p, i));
}

static void lars(const struct piece *p)
{
    double w = norm(p->w, p->count), g = norm(p->g, p->count), trust = 1;
    if (!p->vector && w > 0 && g > 0)
        trust = LARS_TRUST * w / (g + LARS_DECAY * w);
    else
        trust = LARS_TRUST;
    for (size_t i = 0; i < p->count; i++) {
        double slope = (double)p->g[i] + LARS_DECAY * (double)p->w[i];
        p->m[i] = (float)(MOMENTUM * (double)p->m[i] + p->rate * trust * slope);
        p->w[i] -= p->m[i];
    }
}

/* The directions take the place of nothing: computed twice, for their norm and for the step. */
static void lamb(const struct piece *p)
{
    double square = 0, w = norm(p->w, p->count), trust = 1;
    double m_scale = 1 / (1 - pow(MOMENTUM, (double)p->step));
    double v_scale = 1 / (1 - pow(SECOND, (double)p->step));
    for (size_t i = 0; i < p->count; i++) {
        double direction = adam_direction(p, i);
        square += direction * direction;
    }
    if (!p->vector && w > 0 && square > 0)
        trust = fmin(w, 10) / sqrt(square);
    for (size_t i = 0; i < p->count; i++) {
        double m = (double)p->m[i] * m_scale, v = (double)p->v[i] * v_scale;
        double direction = m / (sqrt(v) + TINY) + (p->vector ? 0 : DECAY * (double)p->w[i]);
        p->w[i] -= (float)(p->rate * trust * direction);
    }
}

static const struct {
    const char *name;
    void (*update)(const struct piece *);
    double usual_rate;
} table[] = {
    {"sgd", sgd, 0.1},
    {"adam", adam, 0.003},
    {"lars", lars, 10},
    {"lamb", lamb, 0.01},
};

KNEE_NAMES(lab_optimizer_names, "optimizer", table);

double lab_optimizer_usual_rate(int row)
{
    return table[row].usual_rate;
}

bool lab_optimizer_init(struct lab_optimizer *o, int row, size_t param_count)
{
    *o = (struct lab_optimizer){.row = row, .param_count = param_count};
    o->first = calloc(param_count + 1, sizeof *o->first);
    o->second = calloc(param_count + 1, sizeof *o->second);
    if (o->first && o->second)
        return true;
    lab_optimizer_release(o);
    return false;
}

void lab_optimizer_release(struct lab_optimizer *o)
{
    free(o->first);
    free(o->second);
    memset(o, 0, sizeof *o);
}

double lab_optimizer_rate(const struct lab_optimizer *o)
{
    if (o->step < o->warmup)
        return o->rate * (double)(o->step + 1) / (double)o->warmup;
    if (o->constant)
        return o->rate;
    if (o->steps <= o->warmup || o->step >= o->steps)
        return o->steps > o->warmup ? 0.1 * o->rate : o->rate;
    double done = (double)(o->step - o->warmup) / (double)(o->steps - o->warmup);
    return o->rate * (0.1 + 0.45 * (1 + cos(3.14159265358979323846 * done)));
}

void lab_optimizer_step(struct lab_optimizer *o, const struct lab_tensor *tensors,
                        size_t tensor_count, float *params, const float *grads)
{
    double rate = lab_optimizer_rate(o);
    o->step++;
    for (size_t t = 0; t < tensor_count; t++) {
        struct piece piece = {
            .w = params + tensors[t].at,
            .m = o->first + tensors[t].at,
            .v = o->second + tensors[t].at,
            .g = grads + tensors[t].at,
            .count = tensors[t].rows * tensors[t].columns,
            .vector = tensors[t].rows == 1,
            .rate = rate,
            .step = o->step,
        };
        table[o->row].update(&piece);
    }
}
