/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints: how many bytes, how long to write them and to read them back.
 *
 * Bytes are those of the weights and of the optimizer's states, each written once by the ranks that
 * own them. MLPerf Storage writes 14 bytes for each parameter (bf16 weights, fp32 master weights
 * and two fp32 moments), as Megatron and DeepSpeed do; PyTorch's FSDP keeps fp32 weights only and
 * writes
 * 12. The slowest of three things sets the time: the file system, the nodes' links to it, and what
 * one process can write.
 */
#ifndef KNEE_PREDICT_GOODPUT_CHECKPOINT_H
#define KNEE_PREDICT_GOODPUT_CHECKPOINT_H

#include "knee_job.h"

struct knee_storage { /* bytes per second; NaN or infinite: no limit */
    double total_rate, node_rate, writer_rate;
};

struct knee_checkpoint_job {
    double trained_params;
    double bytes_per_param;
    double gpus, nodes;
    double writers; /* processes that write a share each */
    double copies;  /* of the weights that are read back: data-parallel replicas */
};

struct knee_checkpoint {
    double bytes, write_s, read_s;
    double snapshot_s; /* copying one GPU's share to its host */
};
void knee_checkpoint_of(const struct knee_checkpoint_job *job, const struct knee_storage *storage,
                        struct knee_checkpoint *out);

/* What a framework writes for each trained parameter with Adam; NULL: any framework. */
double knee_checkpoint_bytes_per_param(const char *framework);

#endif
