/* SPDX-License-Identifier: MIT */
/* Which GPU a text names: one table for traces, logs, tables, topologies and flags. */
#ifndef KNEE_CLUSTER_GPU_WORDS_H
#define KNEE_CLUSTER_GPU_WORDS_H

#include "cluster/cluster.h"
#include "cluster/presets.h"

/* The GPU that a text names anywhere, by its name here: "NVIDIA GH200 480GB", "02_a100x8_hdr.log",
 * "8xH100". NULL: it names none that is known. Words are whole words: GH200 does not match H200,
 * nor L40 L40S. */
const char *knee_gpu_name_in(const char *text);

/* The preset of that GPU; NULL: the text names none, or one without a preset. */
const struct knee_gpu *knee_gpu_in(const char *text);

/* Row of the preset when the text is the GPU's name and nothing else: a vendor before it, and
 * memory or socket after it, may stand there. -1: it is not. */
int knee_gpu_spelt(const char *text);

/* The row of knee_gpu_in(), as knee_hardware.gpu has it; -1: the text names none. */
int knee_gpu_row_in(const char *text);

/* The usual GPU of a generation, by CUDA compute capability times ten (NaN: not known) and the
 * NVLinks that one GPU has in all; NULL: none. Others may have the same: topologies do not name
 * their GPUs. */
const struct knee_gpu *knee_gpu_of_links(double sm, double nvlinks);

/* The NVLinks of a whole GPU of that capability; NaN: not known. */
double knee_nvlinks_of(double sm);

/* The cluster that logs of a GPU usually come from, by its name here: its preset's, or a stand-in's
 * links. The name must be one of knee_gpu_name_in(). */
void knee_cluster_of_gpu(const char *gpu, struct knee_cluster *out);

/* What to do about a name that has no preset; NULL: it names nothing known. */
const char *knee_gpu_advice(const char *text);

#endif
