/* SPDX-License-Identifier: MIT */
/* GPUs, beyond what the table says of one value: some missing, slow PCIe under load, NVLinks that
 * are down, pairs with fewer links than the others. */
#include "judge/doctor/doctor_judge.h"

#include <math.h>
#include <string.h>

static void missing(struct knee_exam *exam)
{
    double attached = knee_fact_value(exam->facts, "", "gpus.attached");
    double listed = knee_fact_value(exam->facts, "", "gpus.listed");
    if (listed < attached)
        knee_blame(exam, "gpu_not_listed", "", NAN, "nvidia-smi says %.0f GPUs and lists %.0f",
                   attached, listed);
}

/* Slots of eight lanes are common: narrower than the other GPUs of the host is a fault, all alike
 * is a remark. */
static void pcie_width(struct knee_exam *exam)
{
    size_t first, end = knee_facts_range(exam->facts, "gpu.pcie_width", &first);
    double widest = 0;
    for (size_t i = first; i < end; i++)
        widest = fmax(widest, exam->facts->rows[i].number);
    for (size_t i = first; i < end; i++) {
        const struct knee_fact *row = &exam->facts->rows[i];
        double most = knee_fact_value(exam->facts, row->subject, "gpu.pcie_width_max");
        if (row->number < most)
            knee_blame_at(exam, row->number < widest ? KNEE_WARNING : KNEE_NOTE, "gpu_pcie_narrow",
                          row->subject, row->number / most, "PCIe width x%.0f of x%.0f%s",
                          row->number, most,
                          row->number < widest ? ", other GPUs of the host have more" : "");
    }
}

/* On a workstation somebody wanted it so; in a cluster it makes one GPU the straggler of all. */
static void power(struct knee_exam *exam)
{
    size_t first, end = knee_facts_range(exam->facts, "gpu.power_limit", &first);
    for (size_t i = first; i < end; i++) {
        const struct knee_fact *row = &exam->facts->rows[i];
        double usual = knee_fact_value(exam->facts, row->subject, "gpu.power_default");
        if (row->number < 0.99 * usual)
            knee_blame_at(exam, exam->geforce ? KNEE_NOTE : KNEE_WARNING, "power_limit_low",
                          row->subject, NAN, "power limit %.0f W, the default is %.0f W",
                          row->number, usual);
    }
}

/* Idle GPUs lower the speed of their link: only busy ones are judged. */
static void pcie_speed(struct knee_exam *exam)
{
    size_t first, end = knee_facts_range(exam->facts, "gpu.pcie_gen", &first);
    for (size_t i = first; i < end; i++) {
        const struct knee_fact *gen = &exam->facts->rows[i];
        double most = knee_fact_value(exam->facts, gen->subject, "gpu.pcie_gen_max");
        double util = knee_fact_value(exam->facts, gen->subject, "gpu.util");
        if (gen->number < most && util >= 50)
            knee_blame(exam, "gpu_pcie_slow", gen->subject, gen->number / most,
                       "PCIe generation %.0f of %.0f at %.0f %% load", gen->number, most, util);
    }
}

/* All links of all GPUs down is a card without a bridge; some of them is a fault. */
static void links(struct knee_exam *exam)
{
    size_t first, end = knee_facts_range(exam->facts, "nvlink.inactive", &first);
    double active = 0;
    for (size_t i = first; i < end; i++)
        active += knee_fact_value(exam->facts, exam->facts->rows[i].subject, "nvlink.active");
    for (size_t i = first; i < end; i++) {
        const struct knee_fact *row = &exam->facts->rows[i];
        double all = knee_fact_value(exam->facts, row->subject, "nvlink.links");
        if (row->number > 0 && active > 0)
            knee_blame(exam, "nvlink_inactive", row->subject, (all - row->number) / all,
                       "%.0f of %.0f NVLinks are inactive", row->number, all);
        else if (row->number > 0)
            knee_blame(exam, "nvlink_absent", row->subject, NAN, "no NVLink is active on any GPU");
    }
}

/* GPUs with fewer active links than the other GPUs of the node. */
static void uneven_links(struct knee_exam *exam)
{
    size_t first, end = knee_facts_range(exam->facts, "nvlink.active", &first);
    double most = 0;
    for (size_t i = first; i < end; i++)
        most = fmax(most, exam->facts->rows[i].number);
    for (size_t i = first; i < end; i++) {
        const struct knee_fact *row = &exam->facts->rows[i];
        if (row->number < most &&
            !(knee_fact_value(exam->facts, row->subject, "nvlink.inactive") > 0))
            knee_blame(exam, "nvlink_pair_short", row->subject, row->number / most,
                       "%.0f NVLinks, other GPUs have %.0f", row->number, most);
    }
}

/* Behind switches all pairs have the same, 12 and more; meshes (NV1, NV2, NV6) differ by design. */
static void pairs(struct knee_exam *exam)
{
    size_t first, end = knee_facts_range(exam->facts, "topo.least_nvlinks", &first);
    bool none = end > first;
    for (size_t i = first; i < end; i++) {
        const struct knee_fact *row = &exam->facts->rows[i];
        double most = knee_fact_value(exam->facts, row->subject, "topo.most_nvlinks");
        none = none && most == 0;
        if (most >= 12 && row->number < most)
            knee_blame(exam, "nvlink_pair_short", row->subject, row->number / most,
                       "%.0f NVLinks to one GPU, %.0f to others", row->number, most);
    }
    if (none)
        knee_blame(exam, "p2p_over_pcie", "", NAN,
                   "GPUs have no NVLink: peer copies go over PCIe, where ACS or the IOMMU can make "
                   "them hang");
}

/* Of all GPUs far from all NICs it is the machine; of some, it is where the NICs are. */
static void near_nics(struct knee_exam *exam)
{
    size_t first, end = knee_facts_range(exam->facts, "topo.nearest_nic", &first), far = 0;
    for (size_t i = first; i < end; i++)
        far += strcmp(exam->facts->rows[i].value, "SYS") == 0;
    if (far > 0 && far == end - first)
        knee_soften(exam, "gpu_far_from_nic");
}

void knee_check_gpus(struct knee_exam *exam)
{
    missing(exam);
    pcie_speed(exam);
    pcie_width(exam);
    power(exam);
    links(exam);
    uneven_links(exam);
    pairs(exam);
    near_nics(exam);
}
