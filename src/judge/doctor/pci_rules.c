/* SPDX-License-Identifier: MIT */
/* ACS on bridges and links of GPUs and adapters, from lspci -vvv. Only bridges above a GPU or an
 * adapter matter; those above NVSwitches or management do not. */
#include "judge/doctor/doctor_judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "0000:19:00.0": bus and domain in one number. */
static long long bus_of(const char *address)
{
    char *end;
    long long domain = strtoll(address, &end, 16);
    return *end == ':' ? domain * 256 + strtoll(end + 1, NULL, 16) : -1;
}

/* Is a GPU or an adapter behind this bridge? */
static bool above(const struct knee_facts *facts, const char *bridge)
{
    double from = knee_fact_value(facts, bridge, "pci.bus_from"),
           to = knee_fact_value(facts, bridge, "pci.bus_to");
    long long domain = bus_of(bridge) / 256 * 256;
    for (const struct knee_fact *row = NULL; knee_fact_next(facts, "pci.what", &row);) {
        double bus = (double)(bus_of(row->subject) - domain);
        if ((strcmp(row->value, "gpu") == 0 || strcmp(row->value, "nic") == 0) && bus >= from &&
            bus <= to)
            return true;
    }
    return false;
}

static bool lists_devices(const struct knee_facts *facts)
{
    for (const struct knee_fact *row = NULL; knee_fact_next(facts, "pci.what", &row);)
        if (strcmp(row->value, "gpu") == 0 || strcmp(row->value, "nic") == 0)
            return true;
    return false;
}

static void check_acs(struct knee_exam *exam)
{
    bool whole = lists_devices(exam->facts);
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "pci.acs", &row);) {
        if (!strstr(row->value, "ReqRedir+") && !strstr(row->value, "SrcValid+"))
            continue;
        if (!knee_fact_is(exam->facts, row->subject, "pci.what", "bridge"))
            continue;
        if (!whole)
            knee_blame(exam, "acs_on_elsewhere", row->subject, NAN,
                       "ACS sends peer traffic up to the root; the list shows no GPU, so it cannot "
                       "be said whether one is behind it");
        else if (above(exam->facts, row->subject))
            knee_blame_at(exam, exam->virtual_machine ? KNEE_NOTE : KNEE_WARNING, "acs_on",
                          row->subject, NAN, "ACS sends peer traffic up to the root: %s",
                          row->value);
    }
}

/* Slots of eight lanes are common: only a note, unless another GPU of the host has all its lanes.
 */
static bool a_gpu_is_whole(const struct knee_facts *facts)
{
    for (const struct knee_fact *row = NULL; knee_fact_next(facts, "pci.lnk_width", &row);)
        if (knee_fact_is(facts, row->subject, "pci.what", "gpu") &&
            !strstr(row->value, "downgraded"))
            return true;
    return false;
}

static void check_links(struct knee_exam *exam)
{
    enum knee_severity narrow = a_gpu_is_whole(exam->facts) ? KNEE_WARNING : KNEE_NOTE;
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "pci.lnk_width", &row);) {
        const struct knee_fact *what = knee_fact_find(exam->facts, row->subject, "pci.what");
        const struct knee_fact *speed = knee_fact_find(exam->facts, row->subject, "pci.lnk_speed");
        bool nic = what && strcmp(what->value, "nic") == 0,
             gpu = what && strcmp(what->value, "gpu") == 0;
        if ((nic || gpu) && strstr(row->value, "downgraded"))
            knee_blame_at(exam, nic ? KNEE_WARNING : narrow,
                          nic ? "nic_pcie_narrow" : "gpu_pcie_narrow", row->subject, NAN,
                          "PCIe width %s", row->value);
        if (nic && speed && strstr(speed->value, "downgraded"))
            knee_blame(exam, "nic_pcie_slow", row->subject, NAN, "PCIe speed %s", speed->value);
    }
}

/* ---- /sys/bus/pci/devices ---- */

static const char *pci_text(const struct knee_facts *facts, const char *device, const char *key)
{
    const struct knee_fact *fact = knee_fact_find(facts, device, key);
    return fact ? fact->value : "";
}

/* Display controllers of NVIDIA (0x0300, 0x0302), those and accelerators (0x1200, 0x0380) of AMD.
 */
bool knee_pci_is_gpu(const struct knee_facts *facts, const char *device)
{
    const char *class = pci_text(facts, device, "pcidev.class"),
               *vendor = pci_text(facts, device, "pcidev.vendor");
    if (strcmp(vendor, "0x10de") == 0)
        return strncmp(class, "0x0300", 6) == 0 || strncmp(class, "0x0302", 6) == 0;
    return strcmp(vendor, "0x1002") == 0 &&
           (strncmp(class, "0x1200", 6) == 0 || strncmp(class, "0x0380", 6) == 0);
}

/* InfiniBand, and Ethernet of Mellanox: what a cluster's rails are made of. */
static bool is_nic(const struct knee_facts *facts, const char *device)
{
    const char *class = pci_text(facts, device, "pcidev.class");
    return strncmp(class, "0x0207", 6) == 0 ||
           (strncmp(class, "0x0200", 6) == 0 &&
            strcmp(pci_text(facts, device, "pcidev.vendor"), "0x15b3") == 0);
}

/* Below its own maximum and below other devices of its kind: slots of eight lanes are common. */
static void check_others(struct knee_exam *exam, const char *key, const char *most_key,
                         bool (*kind)(const struct knee_facts *, const char *), const char *rule,
                         const char *what)
{
    double best = 0;
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, key, &row);)
        if (kind(exam->facts, row->subject))
            best = fmax(best, row->number);
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, key, &row);) {
        const struct knee_fact *most = knee_fact_find(exam->facts, row->subject, most_key);
        if (!most || !(row->number > 0 && row->number < most->number) ||
            !kind(exam->facts, row->subject))
            continue;
        bool odd = row->number < best;
        knee_blame_at(exam, odd ? KNEE_WARNING : KNEE_NOTE, rule, row->subject,
                      row->number / most->number, "PCIe %s %s of %s%s", what, row->value,
                      most->value, odd ? ", others of its kind have more" : "");
    }
}

/* What nvidia-smi and the adapters' own folders say of the same links comes first. */
static void check_sysfs(struct knee_exam *exam)
{
    if (!knee_facts_count(exam->facts, "gpu.pcie_width"))
        check_others(exam, "pcidev.width", "pcidev.width_max", knee_pci_is_gpu, "gpu_pcie_narrow",
                     "width");
    if (knee_facts_count(exam->facts, "ib.pcie_width"))
        return;
    check_others(exam, "pcidev.width", "pcidev.width_max", is_nic, "nic_pcie_narrow", "width");
    check_others(exam, "pcidev.speed", "pcidev.speed_max", is_nic, "nic_pcie_slow", "speed");
}

void knee_check_pci(struct knee_exam *exam)
{
    check_acs(exam);
    check_links(exam);
    check_sysfs(exam);
}
