/* SPDX-License-Identifier: MIT */
/* One examination: what the checks share. Each check looks at the facts of one host (or of all) and
 * adds findings by the id of their rule. */
#ifndef KNEE_JUDGE_DOCTOR_DOCTOR_JUDGE_H
#define KNEE_JUDGE_DOCTOR_DOCTOR_JUDGE_H

#include "base/error.h"
#include "read/host/facts.h"

extern const struct knee_nccl_variable knee_nccl_variables[];
extern const size_t knee_nccl_variables_count;
/* Rows of data/alike_facts.csv, data/other_variables.csv and data/xids.csv. */
struct knee_alike_fact {
    const char *key, *what, *rule;
    bool absence, ratio, merged;
};
extern const struct knee_alike_fact knee_alike_facts[];
extern const size_t knee_alike_facts_count;
enum knee_variable_role { KNEE_ROLE_OTHER, KNEE_ROLE_RENAMED, KNEE_ROLE_NEAR };
struct knee_other_variable {
    const char *name;
    enum knee_variable_role role;
};
extern const struct knee_other_variable knee_other_variables[];
extern const size_t knee_other_variables_count;
struct knee_xid {
    int number;
    const char *rule, *says;
};
extern const struct knee_xid knee_xids[];
extern const size_t knee_xids_count;
extern const struct knee_doctor_rule knee_doctor_rules[];
extern const size_t knee_doctor_rules_count;

/* What is known of whether a thing is there. */
enum knee_presence { KNEE_UNKNOWN, KNEE_ABSENT, KNEE_PRESENT };

struct knee_exam {
    struct knee_facts *facts; /* of the host that is looked at */
    struct knee_checkup *out;
    double nccl;              /* version as 22809 for 2.28.9; NaN: not known */
    enum knee_presence rdma;  /* adapters for InfiniBand, RoCE or EFA */
    enum knee_presence nodes; /* is the job on several */
    bool geforce, virtual_machine;
    bool apart; /* every finding stands for itself */
    double gpus;
    double expected_bytes_per_s; /* of a port, as the cluster says that was given; NaN: none was */
};

/* Adds a finding, or another part to one of this host that is there already. `left` is the share
 * that is left of what it hurts; NaN: as the rule says. */
void knee_blame(struct knee_exam *exam, const char *id, const char *subject, double left,
                const char *fmt, ...) KNEE_PRINTF(5, 6);
void knee_blame_at(struct knee_exam *exam, enum knee_severity severity, const char *id,
                   const char *subject, double left, const char *fmt, ...) KNEE_PRINTF(6, 7);

void knee_blame_rule(struct knee_exam *exam, const struct knee_doctor_rule *rule,
                     enum knee_severity severity, const char *subject, double left,
                     const char *evidence);

/* A rule's findings on this host become notes: what they say follows from something else. */
void knee_soften(struct knee_exam *exam, const char *id);

/* "a, b, c ...": another name in a list of `size` bytes, or that there are more. */
void knee_names_add(char *names, size_t size, const char *name);

/* "2.28.9" as 22809; NaN: no version. */
double knee_version_number(const char *text);

/* By its name: docker0, veth1a2b, tailscale0. */
bool knee_interface_is_virtual(const char *interface);

/* A device of /sys/bus/pci/devices, by its class and vendor. */
bool knee_pci_is_gpu(const struct knee_facts *facts, const char *device);

/* How many CPUs a list has: "0-15,64-79" has 32. */
double knee_cpus_in(const char *list);

const struct knee_nccl_variable *
knee_nccl_variable_of(const char *name); /* with NCCL_; NULL: none */

/* Values from files of settings join the environment where it has none; integers become what NCCL
 * reads. Before anything is looked at. */
void knee_env_settle(struct knee_facts *facts);

/* NCCL's variables of a host with what NCCL reads; how many went into settings[KNEE_SETTINGS_MAX].
 */
size_t knee_env_list(const struct knee_facts *facts, struct knee_setting *settings);

/* Variables that this release of NCCL does not have do nothing: no other rule shall speak of them.
 */
void knee_env_retire(struct knee_exam *exam);

/* The checks, one file each. */
void knee_check_rows(struct knee_exam *exam, const struct knee_doctor_rule *rows, size_t count);
void knee_check_table(struct knee_exam *exam);
void knee_check_env(struct knee_exam *exam);
void knee_check_names(struct knee_exam *exam);
void knee_check_ports(struct knee_exam *exam);
void knee_check_gids(struct knee_exam *exam);
void knee_check_gpus(struct knee_exam *exam);
void knee_check_pci(struct knee_exam *exam);
void knee_check_kernel(struct knee_exam *exam);
void knee_check_host(struct knee_exam *exam);
void knee_check_log(struct knee_exam *exam);
void knee_check_alike(struct knee_checkup *out, struct knee_facts *hosts, size_t count);

/* Prices all findings: what the collective, and the job if there is one, lose by each. */
knee_status knee_price_all(struct knee_checkup *out, const struct knee_facts *hosts,
                           size_t host_count, const struct knee_doctor_options *options,
                           struct knee_err *err);

#endif
