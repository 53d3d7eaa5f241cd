/* SPDX-License-Identifier: MIT */
/*
 * From the inputs to days and dollars. The interval of the goodput comes from what was not given.
 * Its upper end has all assumed inputs at their good ends, which a well-run site reaches together.
 * For its lower end each is moved to its bad end by itself, and what that costs is added as
 * independent effects are (root of the sum of squares).
 */
#include "predict/goodput/run_cost.h"

#include "base/error.h"
#include "base/keys.h"

#include <math.h>
#include <string.h>

#define HOUR_S 3600.0
#define DAY_S  86400.0

/* Seconds in which all ranks agree on a checkpoint and stop, beside copying or writing it. */
#define COORDINATION_S 1.0
/* One process that serialises and writes. */
#define WRITER_RATE 2e9
/* Spare nodes suffice with this probability. */
#define ENOUGH 0.99

#define NUMBER(name, field, unit, low, high, absent, words)                                        \
    KNEE_NUMBER(struct knee_run_inputs, name, field, unit, low, high, "Failures and energy",       \
                absent, KNEE_OFF_PAGE(words))

static const char *const mode_words[] = {"sync", "async"};
KNEE_WORDS(knee_checkpoint_modes, "checkpoint mode", mode_words);

static const struct knee_key rows[] = {
    NUMBER("mtbf", gpu_hours_per_stop, KNEE_UNIT_COUNT, 1, 1e12, "30000 (8000-50000)",
           "GPU-hours between failures that stop the job"),
    NUMBER("restart", restart_s, KNEE_UNIT_SECONDS, 1, 1e7, "15 min (5-45)",
           "time from a failure to the next step, without loading the checkpoint"),
    KNEE_CHOICE(struct knee_run_inputs, "checkpoint", mode, knee_checkpoint_modes,
                "Failures and energy", "sync",
                KNEE_OFF_PAGE("sync: training waits for the write; async: only for the copy to the "
                              "host")),
    NUMBER("checkpoint-every", every_s, KNEE_UNIT_SECONDS, 1, 1e9, "the best interval",
           "time between checkpoints"),
    NUMBER("filesystem", filesystem_rate, KNEE_UNIT_BYTES_PER_S, 1e6, 1e15, "no separate limit",
           "write bandwidth of the file system, all nodes together"),
    NUMBER("node-filesystem", node_rate, KNEE_UNIT_BYTES_PER_S, 1e6, 1e13,
           "2 GB/s (0.5-8) without --filesystem", "write bandwidth of one node"),
    NUMBER("repair", repair_s, KNEE_UNIT_SECONDS, 1, 1e9, "1 day",
           "time to repair a node: sets the number of spare nodes"),
    NUMBER("grid", grid, KNEE_UNIT_COUNT, 0, 5000, "none",
           "carbon intensity in grams of CO2e per kWh: adds CO2e to the answer"),
    NUMBER("pue", overhead, KNEE_UNIT_FACTOR, 1, 10, "1.2",
           "power usage effectiveness of the data centre"),
};

const struct knee_keys knee_run_keys = KNEE_KEY_TABLE(rows, struct knee_run_inputs);

void knee_run_init(struct knee_run_inputs *inputs)
{
    memset(inputs, 0, sizeof *inputs);
    knee_keys_clear(&knee_run_keys, inputs);
}

static void fill(struct knee_run_inputs *inputs, double *field, double value)
{
    knee_keys_fill(&knee_run_keys, inputs, field, value, KNEE_DEFAULT);
}

void knee_run_complete(struct knee_run_inputs *in)
{
    fill(in, &in->gpu_hours_per_stop, KNEE_STOP_GPU_HOURS);
    fill(in, &in->restart_s, 900);
    if (isnan(in->filesystem_rate))
        fill(in, &in->node_rate, 2e9);
    fill(in, &in->repair_s, DAY_S);
    fill(in, &in->overhead, 1.2);
    if (in->mode < 0) {
        in->mode = KNEE_CHECKPOINT_SYNC;
        in->source[knee_keys_find(&knee_run_keys, "checkpoint")] = KNEE_DEFAULT;
    }
}

static bool assumed(const struct knee_run_inputs *in, const char *name)
{
    return in->source[knee_keys_find(&knee_run_keys, name)] == KNEE_DEFAULT;
}

/* ---- The stops of a run ---- */

static struct knee_checkpoint checkpoint_of(const struct knee_run_question *q,
                                            const struct knee_run_inputs *in)
{
    struct knee_storage storage = {in->filesystem_rate, in->node_rate, WRITER_RATE};
    struct knee_checkpoint out;
    knee_checkpoint_of(&q->job, &storage, &out);
    return out;
}

static struct knee_stops stops_of(const struct knee_run_question *q,
                                  const struct knee_run_inputs *in, int mode)
{
    struct knee_checkpoint checkpoint = checkpoint_of(q, in);
    bool async = mode == KNEE_CHECKPOINT_ASYNC;
    struct knee_stops stops = {
        .mean_s = in->gpu_hours_per_stop * HOUR_S / q->job.gpus,
        .restart_s = in->restart_s + checkpoint.read_s,
        .block_s = COORDINATION_S + (async ? checkpoint.snapshot_s : checkpoint.write_s),
        .write_s = async ? checkpoint.write_s : 0,
    };
    stops.every_s = isnan(in->every_s) ? knee_best_interval(&stops) : in->every_s;
    return stops;
}

static double kept_of(const struct knee_run_question *q, const struct knee_run_inputs *in, int mode)
{
    struct knee_stops stops = stops_of(q, in, mode);
    struct knee_goodput goodput;
    knee_goodput_of(&stops, &goodput);
    return goodput.kept;
}

/* ---- The interval ---- */

/* What may be assumed, and between which factors of the usual value it lies: GPU-hours per stop
 * from RSC-1's jobs of 1024 GPUs to Llama 3; restarts from automatic to slow ones; file systems
 * from a shared NFS to flash (MLPerf Storage). */
static const struct {
    const char *key;
    size_t offset;
    double low, high;
    bool good; /* more of it is better */
} unknowns[] = {
    {"mtbf", offsetof(struct knee_run_inputs, gpu_hours_per_stop),
     KNEE_STOP_LEAST / KNEE_STOP_GPU_HOURS, KNEE_STOP_MOST / KNEE_STOP_GPU_HOURS, true},
    {"restart", offsetof(struct knee_run_inputs, restart_s), 1.0 / 3, 3, false},
    {"node-filesystem", offsetof(struct knee_run_inputs, node_rate), 0.25, 4, true},
};

static double *field_of(struct knee_run_inputs *in, size_t i)
{
    return (double *)(void *)((char *)in + unknowns[i].offset);
}

static struct knee_sure sure_of(const struct knee_run_question *q, double kept)
{
    double worse = 0;
    struct knee_run_inputs well_run = *q->inputs;
    for (size_t i = 0; i < sizeof unknowns / sizeof *unknowns; i++) {
        if (!assumed(q->inputs, unknowns[i].key))
            continue;
        struct knee_run_inputs in = *q->inputs;
        *field_of(&in, i) *= unknowns[i].good ? unknowns[i].low : unknowns[i].high;
        *field_of(&well_run, i) *= unknowns[i].good ? unknowns[i].high : unknowns[i].low;
        double down = kept - kept_of(q, &in, in.mode);
        worse += down * down;
    }
    double best = kept_of(q, &well_run, well_run.mode);
    return (struct knee_sure){fmax(0, kept - sqrt(worse)), best};
}

/* ---- The price ---- */

/* What a run of this length costs with these stops. */
static void price_run(const struct knee_run_question *q, struct knee_run_cost *out)
{
    struct knee_stops slower = out->stops;
    struct knee_goodput then;
    slower.restart_s += 60;
    knee_goodput_of(&slower, &then);
    out->time_s = q->productive_s / out->goodput.kept;
    out->cost = out->time_s * q->dollars_per_s;
    out->stop_count = out->time_s / (out->stops.mean_s + out->stops.restart_s);
    out->minute_s = q->productive_s / then.kept - out->time_s;
    out->minute_cost = out->minute_s * q->dollars_per_s;
}

void knee_run_price(const struct knee_run_question *q, struct knee_run_cost *out)
{
    const struct knee_run_inputs *in = q->inputs;
    struct knee_run_cost c = {.mode = (enum knee_checkpoint_mode)in->mode};
    struct knee_goodput best;
    c.stops = stops_of(q, in, in->mode);
    c.checkpoint = checkpoint_of(q, in);
    knee_goodput_of(&c.stops, &c.goodput);
    c.sure = sure_of(q, c.goodput.kept);
    struct knee_stops at_best = c.stops;
    at_best.every_s = c.best_every_s = knee_best_interval(&c.stops);
    knee_goodput_of(&at_best, &best);
    c.best_kept = best.kept;
    struct knee_run_inputs other = *in;
    other.every_s = NAN;
    c.other_kept = kept_of(q, &other, !in->mode);
    c.spares = knee_spare_nodes(q->job.nodes, c.stops.mean_s * q->job.nodes, in->repair_s, ENOUGH);
    price_run(q, &c);
    *out = c;
}

knee_status knee_run_check(const struct knee_run_question *q, struct knee_err *err)
{
    struct knee_stops s = stops_of(q, q->inputs, q->inputs->mode);
    struct knee_checkpoint checkpoint = checkpoint_of(q, q->inputs);
    if (s.restart_s > s.mean_s) {
        knee_fail(err, KNEE_USAGE, "--restart",
                  "a restart takes %.0f s, and %.0f GPUs stop every %.0f s", s.restart_s,
                  q->job.gpus, s.mean_s);
        knee_hint(err, "try fewer GPUs, a shorter --restart, a faster --filesystem or a larger "
                       "--mtbf (GPU-hours per stop)");
        return KNEE_USAGE;
    }
    if (s.every_s + s.block_s < s.write_s) {
        knee_fail(err, KNEE_USAGE, "--checkpoint-every",
                  "a checkpoint takes %.0f s to write, and the next one starts after %.0f s",
                  checkpoint.write_s, s.every_s + s.block_s);
        knee_hint(err, "try --checkpoint-every %.0fs, or a faster --filesystem",
                  ceil(knee_best_interval(&s)));
        return KNEE_USAGE;
    }
    return KNEE_OK;
}
