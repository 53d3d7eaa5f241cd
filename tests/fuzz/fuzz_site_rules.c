/* SPDX-License-Identifier: MIT */
/* A site's rules from any bytes, tried on a small host. */
#include "knee_doctor.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static const char rate[] = "400 Gb/sec (4X NDR)\n", env[] = "NCCL_IB_HCA=mlx5_1\n";
    struct knee_site_rules rules;
    struct knee_facts facts = {0};
    struct knee_checkup checkup;
    struct knee_err err;
    if (knee_site_rules_read((const char *)data, size, "rules", &rules, &err))
        return 0;
    knee_host_file(&facts, "sys/class/infiniband/mlx5_0/ports/1/rate", rate, strlen(rate));
    knee_host_file(&facts, "env", env, strlen(env));
    struct knee_doctor_options options = {.site = &rules};
    if (knee_doctor_examine(&facts, 1, &options, NULL, &checkup, &err) == KNEE_OK)
        knee_checkup_release(&checkup);
    knee_facts_release(&facts);
    knee_site_rules_release(&rules);
    return 0;
}
