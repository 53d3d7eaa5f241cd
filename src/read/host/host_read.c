/* SPDX-License-Identifier: MIT */
/* Reads one file of a host. Its path decides the reader; if that is not enough, its content does.
 * Readers are tried in turn, the most specific ones first. */
#include "read/host/host_read.h"

#include <string.h>

static knee_host_reader *const readers[] = {
    knee_read_paths,         knee_read_smi_xml,      knee_read_smi_text,
    knee_read_smi_metrics,   knee_read_smi_table,    knee_read_dcgm,
    knee_read_nvlink_errors, knee_read_nvlink,       knee_read_fabric_service,
    knee_read_imex,          knee_read_clock,        knee_read_df,
    knee_read_rdma_link,     knee_read_ibdev2netdev, knee_read_ip_link,
    knee_read_ibstat,        knee_read_ibstatus,     knee_read_show_gids,
    knee_read_rocm,          knee_read_nccl_log,     knee_read_devinfo,
    knee_read_ethtool,       knee_read_ulimit,       knee_read_lspci,
    knee_read_topo_matrix,   knee_read_kernel_log,   knee_read_lsmod,
    knee_read_smi_csv,       knee_read_smi_failure,  knee_read_env,
};

/* Files whose name says more than their content; `part`: somewhere in the name. */
static const struct {
    const char *name;
    knee_host_reader *reader;
    bool part;
} names[] = {
    {"env", knee_read_env, false},
    {"environ", knee_read_env, false},
    {"nccl.conf", knee_read_nccl_conf, false},
    {".nccl.conf", knee_read_nccl_home, false},
    {"NCCL_CONF_FILE", knee_read_nccl_named, false},
    {"dmesg", knee_read_kernel_log, false},
    {"mounts", knee_read_mounts, false},
    {"mountinfo", knee_read_mounts, false},
    {"mount.txt", knee_read_mounts, false},
    {"fabricmanager", knee_read_fabric_word, true},
};

static bool by_name(struct knee_facts *facts, const char *path, struct knee_slice text)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((names[i].part ? strstr(base, names[i].name) != NULL
                           : strcmp(base, names[i].name) == 0) &&
            names[i].reader(facts, text))
            return true;
    return false;
}

static bool understood(struct knee_facts *facts, const char *path, struct knee_slice text)
{
    if (knee_read_known_path(facts, path, text) || by_name(facts, path, text))
        return true;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (readers[i](facts, text))
            return true;
    return false;
}

bool knee_host_file(struct knee_facts *facts, const char *path, const char *text, size_t length)
{
    struct knee_slice slice = {text ? text : "", length};
    bool known = slice.length > 0 && understood(facts, path, slice);
    *(known ? &facts->files : &facts->strange) += 1;
    return known;
}
