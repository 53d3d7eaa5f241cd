/* SPDX-License-Identifier: MIT */
/* Bytes and seconds of checkpoints. */
#include "predict/goodput/checkpoint.h"

#include <math.h>
#include <string.h>

#define WEIGHT_BYTES 2.0  /* of what every replica reads */
#define HOST_COPY    25e9 /* bytes per second of one GPU to pinned memory: PCIe 4, or 5 shared */

static const struct {
    const char *framework;
    double bytes;
} per_param[] = {
    {"megatron", 14}, {"nemo", 14}, {"deepspeed", 14}, {"torchtitan", 12}, {"fsdp", 12},
};

double knee_checkpoint_bytes_per_param(const char *framework)
{
    for (size_t i = 0; framework && i < sizeof per_param / sizeof *per_param; i++)
        if (strcmp(per_param[i].framework, framework) == 0)
            return per_param[i].bytes;
    return 14;
}

static double seconds_at(double bytes, double rate)
{
    return rate > 0 ? bytes / rate : 0;
}

void knee_checkpoint_of(const struct knee_checkpoint_job *job, const struct knee_storage *s,
                        struct knee_checkpoint *out)
{
    double bytes = job->bytes_per_param * job->trained_params;
    double again = WEIGHT_BYTES * job->trained_params * (job->copies - 1);
    double at_nodes = seconds_at(1 / job->nodes, s->node_rate);
    *out = (struct knee_checkpoint){
        .bytes = bytes,
        .write_s = fmax(fmax(seconds_at(bytes, s->total_rate), bytes * at_nodes),
                        seconds_at(bytes / job->writers, s->writer_rate)),
        .read_s = fmax(seconds_at(bytes + again, s->total_rate), (bytes + again) * at_nodes),
        .snapshot_s = bytes / job->gpus / HOST_COPY,
    };
}
