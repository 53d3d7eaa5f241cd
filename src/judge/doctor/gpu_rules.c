/* SPDX-License-Identifier: MIT */
/* GPUs, beyond what the table says of one value: some missing, slow PCIe under load, NVLinks that
 * are down, pairs with fewer links than the others. */
#include "judge/doctor/doctor_judge.h"

#include <math.h>
#include <string.h>

/* GPUs of the PCI bus, as lspci or /sys tell; those on it that the driver does not list are lost.
 */
static double gpus_on_bus(const struct knee_facts *facts)
{
    double listed = 0, found = 0;
    for (const struct knee_fact *row = NULL; knee_fact_next(facts, "pci.what", &row);)
        listed += strcmp(row->value, "gpu") == 0;
    for (const struct knee_fact *row = NULL; knee_fact_next(facts, "pcidev.class", &row);)
        found += knee_pci_is_gpu(facts, row->subject);
    return fmax(listed, found);
}

static void missing(struct knee_exam *exam)
{
    double attached = knee_fact_value(exam->facts, "", "gpus.attached");
    double listed = knee_fact_value(exam->facts, "", "gpus.listed");
    double bus = gpus_on_bus(exam->facts);
    if (attached < bus && listed == attached)
        knee_blame_at(exam, KNEE_ERROR, "gpu_not_listed", "", NAN,
                      "%.0f GPUs are on the PCI bus, nvidia-smi knows %.0f", bus, attached);
    if (listed < attached)
        knee_blame(exam, "gpu_not_listed", "", NAN, "nvidia-smi says %.0f GPUs and lists %.0f",
                   attached, listed);
}

/* Slots of eight lanes are common: narrower than the other GPUs of the host is a fault, all alike
 * is a remark. */
static void pcie_width(struct knee_exam *exam)
{
    double widest = knee_facts_most(exam->facts, "gpu.pcie_width");
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "gpu.pcie_width", &row);) {
        double most = knee_fact_value(exam->facts, row->subject, "gpu.pcie_width_max");
        if (row->number < most)
            knee_blame_at(exam, row->number < widest ? KNEE_WARNING : KNEE_NOTE, "gpu_pcie_narrow",
                          row->subject, row->number / most, "PCIe width x%.0f of x%.0f%s",
                          row->number, most,
                          row->number < widest ? ", other GPUs of the host have more" : "");
    }
}

/* On a workstation a lower power limit is a choice; in a cluster it makes one GPU the straggler for
 * all. Power grows with the clock and the square of the voltage, which follows the clock: the clock
 * goes with the cube root of the power. */
static void power(struct knee_exam *exam)
{
    for (const struct knee_fact *row = NULL;
         knee_fact_next(exam->facts, "gpu.power_limit", &row);) {
        double usual = knee_fact_value(exam->facts, row->subject, "gpu.power_default");
        if (row->number < 0.99 * usual)
            knee_blame_at(exam, exam->geforce ? KNEE_NOTE : KNEE_WARNING, "power_limit_low",
                          row->subject, cbrt(row->number / usual),
                          "power limit %.0f W, the default is %.0f W", row->number, usual);
    }
}

/* Idle GPUs lower the speed of their link: only busy ones are judged. */
static void pcie_speed(struct knee_exam *exam)
{
    for (const struct knee_fact *gen = NULL; knee_fact_next(exam->facts, "gpu.pcie_gen", &gen);) {
        double most = knee_fact_value(exam->facts, gen->subject, "gpu.pcie_gen_max");
        double util = knee_fact_value(exam->facts, gen->subject, "gpu.util");
        if (gen->number < most && util >= 50)
            knee_blame(exam, "gpu_pcie_slow", gen->subject, gen->number / most,
                       "PCIe generation %.0f of %.0f at %.0f %% load", gen->number, most, util);
    }
}

/* A GPU at work runs at half its clock and less only when something holds it down. */
static void clocks(struct knee_exam *exam)
{
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "gpu.clock", &row);) {
        double most = knee_fact_value(exam->facts, row->subject, "gpu.clock_max");
        double util = knee_fact_value(exam->facts, row->subject, "gpu.util");
        if (row->number < 0.5 * most && util >= 50)
            knee_blame(exam, "clock_low", row->subject, row->number / most,
                       "%.0f of %.0f MHz at %.0f %% load", row->number, most, util);
    }
}

/* What is left of a clock that heat lowers shows under load only. */
static void heat(struct knee_exam *exam)
{
    for (const struct knee_fact *row = NULL;
         knee_fact_next(exam->facts, "gpu.event.sw_thermal", &row);) {
        const char *gpu = row->subject;
        double util = knee_fact_value(exam->facts, gpu, "gpu.util");
        double left = knee_fact_value(exam->facts, gpu, "gpu.clock") /
                      knee_fact_value(exam->facts, gpu, "gpu.clock_max");
        if (strcmp(row->value, "Active") == 0)
            knee_blame(exam, "sw_thermal", gpu, util >= 50 ? left : NAN,
                       "the driver lowers the clock because of heat");
    }
}

/* Off on one GPU of many is a mistake, off on all a choice; on cards for desks it is the default.
 */
static void without_ecc(struct knee_exam *exam)
{
    size_t on = 0;
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "gpu.ecc", &row);)
        on += strcmp(row->value, "Enabled") == 0;
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "gpu.ecc", &row);)
        if (strcmp(row->value, "Disabled") == 0 && !exam->geforce)
            knee_blame_at(exam, on ? KNEE_WARNING : KNEE_NOTE, "ecc_off", row->subject, NAN,
                          "ECC is off%s: memory errors go undetected",
                          on ? " here, on for other GPUs" : "");
}

/* What was asked for and waits for a reset. */
static void ecc_to_come(struct knee_exam *exam)
{
    for (const struct knee_fact *row = NULL;
         knee_fact_next(exam->facts, "gpu.ecc_pending", &row);) {
        const struct knee_fact *now = knee_fact_find(exam->facts, row->subject, "gpu.ecc");
        if (now && strcmp(now->value, row->value) != 0)
            knee_blame(exam, "ecc_mode_pending", row->subject, NAN,
                       "ECC is %s, and %s after a reset", now->value, row->value);
    }
}

/* Memory in use on an idle GPU although no visible process holds it. */
static void held_memory(struct knee_exam *exam)
{
    for (const struct knee_fact *row = NULL;
         knee_fact_next(exam->facts, "gpu.memory_used", &row);) {
        if (row->number > 1024 && knee_fact_value(exam->facts, row->subject, "gpu.util") == 0 &&
            !knee_fact_find(exam->facts, row->subject, "gpu.process") && !exam->geforce)
            knee_blame(exam, "gpu_memory_held", row->subject, NAN,
                       "%s are in use, and no process is listed", row->value);
    }
}

/* nvidia-smi that has only this to say. */
static void failures(struct knee_exam *exam)
{
    const struct knee_fact *failed = knee_fact_find(exam->facts, "", "smi.failed"),
                           *mixed = knee_fact_find(exam->facts, NULL, "kernel.driver_mismatch");
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "gpu.lost", &row);)
        knee_blame(exam, "gpu_lost", row->subject, NAN, "%s", row->value);
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "kernel.off_bus", &row);)
        if (!knee_fact_find(exam->facts, NULL, "xid.79"))
            knee_blame(exam, "gpu_lost", row->subject, NAN, "%s", row->value);
    if (failed && strstr(failed->value, "version mismatch"))
        mixed = failed;
    if (mixed)
        knee_blame(exam, "driver_mismatch", "", NAN, "%s", mixed->value);
    else if (failed)
        knee_blame(exam, "smi_failed", "", NAN, "%s", failed->value);
}

/* Only boards with NVSwitches need the fabric manager. */
static void no_switches(struct knee_exam *exam)
{
    static const char *const words[] = {"SXM", "HBM3", "H200", "H800", "H20", "B200", "B300"};
    bool switched = false;
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "gpu.name", &row);)
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            switched = switched || (strstr(row->value, words[k]) && !strstr(row->value, "NVL"));
    if (knee_facts_count(exam->facts, "gpu.name") && !switched)
        knee_soften(exam, "fabric_manager_down");
}

/* All links of all GPUs down is a card without a bridge; some of them is a fault. */
static void links(struct knee_exam *exam)
{
    double active = 0;
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "nvlink.inactive", &row);)
        active += knee_fact_value(exam->facts, row->subject, "nvlink.active");
    for (const struct knee_fact *row = NULL;
         knee_fact_next(exam->facts, "nvlink.inactive", &row);) {
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
    double most = knee_facts_most(exam->facts, "nvlink.active");
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "nvlink.active", &row);) {
        if (row->number < most &&
            !(knee_fact_value(exam->facts, row->subject, "nvlink.inactive") > 0))
            knee_blame(exam, "nvlink_pair_short", row->subject, row->number / most,
                       "%.0f NVLinks, other GPUs have %.0f", row->number, most);
    }
}

/* Behind switches all pairs have the same, 12 and more; meshes (NV1, NV2, NV6) differ by design. */
static void pairs(struct knee_exam *exam)
{
    bool none = knee_facts_count(exam->facts, "topo.least_nvlinks") > 0;
    for (const struct knee_fact *row = NULL;
         knee_fact_next(exam->facts, "topo.least_nvlinks", &row);) {
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
    size_t far = 0;
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "topo.nearest_nic", &row);)
        far += strcmp(row->value, "SYS") == 0;
    if (far > 0 && far == knee_facts_count(exam->facts, "topo.nearest_nic"))
        knee_soften(exam, "gpu_far_from_nic");
}

void knee_check_gpus(struct knee_exam *exam)
{
    missing(exam);
    pcie_speed(exam);
    pcie_width(exam);
    power(exam);
    clocks(exam);
    heat(exam);
    without_ecc(exam);
    ecc_to_come(exam);
    held_memory(exam);
    failures(exam);
    no_switches(exam);
    links(exam);
    uneven_links(exam);
    pairs(exam);
    near_nics(exam);
}
