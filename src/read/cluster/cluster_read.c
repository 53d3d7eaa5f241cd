/* SPDX-License-Identifier: MIT */
/* Reads a cluster from a file: NCCL's XML, the matrix of nvidia-smi, or knee's own YAML. The
 * content shows which of them it is. */
#include "read/cluster/cluster_read.h"
#include "knee_read.h"

knee_status knee_cluster_read(const char *text, size_t length, const char *name,
                              struct knee_cluster *out, struct knee_fitted *record,
                              struct knee_err *err)
{
    struct knee_slice slice = {text, length};
    if (knee_slice_has(slice, "<system") || knee_slice_has(slice, "<cpu "))
        return knee_nccl_topology_read(slice, name, out, err);
    if (knee_slice_has(slice, "GPU0") && knee_slice_has(slice, " X "))
        return knee_smi_topology_read(slice, name, out, err);
    return knee_cluster_file_read(slice, name, out, record, err);
}
