/* SPDX-License-Identifier: MIT */
/* One reader per output of a command: each knows its own and adds facts. */
#ifndef KNEE_READ_HOST_HOST_READ_H
#define KNEE_READ_HOST_HOST_READ_H

#include "read/host/facts.h"

/* Reads all of the text; false when it is not such an output (nothing is added then). */
typedef bool knee_host_reader(struct knee_facts *facts, struct knee_slice text);

knee_host_reader knee_read_smi_text, knee_read_smi_xml, knee_read_smi_metrics, knee_read_smi_table,
    knee_read_nvlink, knee_read_topo_matrix, knee_read_ibstat, knee_read_ibstatus,
    knee_read_devinfo, knee_read_show_gids, knee_read_lspci, knee_read_rocm, knee_read_kernel_log,
    knee_read_ulimit, knee_read_lsmod, knee_read_env, knee_read_nccl_conf, knee_read_nccl_home,
    knee_read_nccl_log, knee_read_ethtool, knee_read_smi_csv, knee_read_nvlink_errors,
    knee_read_rdma_link, knee_read_fabric_service, knee_read_df, knee_read_smi_failure,
    knee_read_dcgm, knee_read_fabric_word, knee_read_imex, knee_read_clock, knee_read_ip_link,
    knee_read_ibdev2netdev, knee_read_mounts, knee_read_nccl_named, knee_read_paths;

/* A file by where it lies: sys/class/net/eth0/mtu. */
bool knee_read_known_path(struct knee_facts *facts, const char *path, struct knee_slice text);

/* "GPU 0000:19:00.0" of any spelling of a bus address: 00000000:19:00.0, 0000:19:00, 19:00.0. */
void knee_gpu_subject(struct knee_slice address, char *out, size_t size);

/* A row of data/nccl_log_patterns.csv: a message that means trouble. Where it looks: in every line,
 * in NCCL's lines, in its warnings. */
enum knee_log_where { KNEE_IN_ANY, KNEE_IN_NCCL, KNEE_IN_WARN };
struct knee_nccl_log_pattern {
    const char *key;
    enum knee_log_where where;
    const char *word, *also, *without; /* all of the first two, none of the last */
    const char *origin;
};
extern const struct knee_nccl_log_pattern knee_nccl_log_patterns[];
extern const size_t knee_nccl_log_patterns_count;

/* Rows of data/smi_fields.csv, data/host_paths.csv and data/kernel_lines.csv. */
struct knee_smi_field {
    const char *key, *xml, *text, *query; /* "": not there */
};
extern const struct knee_smi_field knee_smi_fields[];
extern const size_t knee_smi_fields_count;
struct knee_host_path {
    const char *path, *key;
    char join;                /* 0: only the first star is the subject */
    knee_host_reader *reader; /* NULL: the text is the value */
};
extern const struct knee_host_path knee_host_paths[];
extern const size_t knee_host_paths_count;
struct knee_kernel_line {
    const char *key, *word, *and; /* both words are in the line */
};
extern const struct knee_kernel_line knee_kernel_lines[];
extern const size_t knee_kernel_lines_count;

#endif
