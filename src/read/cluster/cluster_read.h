/* SPDX-License-Identifier: MIT */
/* The formats a cluster can come in; one file each. */
#ifndef KNEE_READ_CLUSTER_CLUSTER_READ_H
#define KNEE_READ_CLUSTER_CLUSTER_READ_H

#include "base/slice.h"
#include "knee_cluster.h"

knee_status knee_nccl_topology_read(struct knee_slice text, const char *name,
                                    struct knee_cluster *out, struct knee_err *err);
knee_status knee_smi_topology_read(struct knee_slice text, const char *name,
                                   struct knee_cluster *out, struct knee_err *err);
knee_status knee_cluster_file_read(struct knee_slice text, const char *name,
                                   struct knee_cluster *out, struct knee_fitted *record,
                                   struct knee_err *err);

#endif
