/* SPDX-License-Identifier: MIT */
/*
 * The files of a host that are worth reading: a table of paths with what each gives. The same table
 * tells the program what to open, on a live host and in a saved one.
 */
#include "read/host/host_read.h"

#include "base/format.h"

#include <math.h>
#include <string.h>

/* The first two * of a path, joined by `join`, are the subject. */
static const struct known {
    const char *path, *key;
    char join;                /* 0: only the first star */
    knee_host_reader *reader; /* NULL: the text is the value */
} known[] = {
    {"sys/class/infiniband/*/ports/*/state", "ib.state", ':', NULL},
    {"sys/class/infiniband/*/ports/*/phys_state", "ib.phys", ':', NULL},
    {"sys/class/infiniband/*/ports/*/rate", "ib.rate", ':', NULL},
    {"sys/class/infiniband/*/ports/*/link_layer", "ib.layer", ':', NULL},
    {"sys/class/infiniband/*/ports/*/lid", "ib.lid", ':', NULL},
    {"sys/class/infiniband/*/ports/*/gids/*", "ib.gid.", ':', NULL},
    {"sys/class/infiniband/*/ports/*/gid_attrs/types/*", "ib.gidtype.", ':', NULL},
    {"sys/class/infiniband/*/ports/*/gid_attrs/ndevs/*", "ib.gidnet.", ':', NULL},
    {"sys/class/infiniband/*/ports/*/counters/*", "ib.counter.", ':', NULL},
    {"sys/class/infiniband/*/ports/*/hw_counters/*", "ib.counter.", ':', NULL},
    {"sys/class/infiniband/*/hca_type", "ib.type", 0, NULL},
    {"sys/class/infiniband/*/fw_ver", "ib.firmware", 0, NULL},
    {"sys/class/infiniband/*/board_id", "ib.board", 0, NULL},
    {"sys/class/infiniband/*/device/numa_node", "ib.numa", 0, NULL},
    {"sys/class/infiniband/*/device/current_link_width", "ib.pcie_width", 0, NULL},
    {"sys/class/infiniband/*/device/max_link_width", "ib.pcie_width_max", 0, NULL},
    {"sys/class/infiniband/*/device/current_link_speed", "ib.pcie_speed", 0, NULL},
    {"sys/class/infiniband/*/device/max_link_speed", "ib.pcie_speed_max", 0, NULL},
    {"sys/class/net/*/mtu", "net.mtu", 0, NULL},
    {"sys/class/net/*/speed", "net.speed", 0, NULL},
    {"sys/class/net/*/operstate", "net.state", 0, NULL},
    {"sys/class/net/*/type", "net.type", 0, NULL},
    {"sys/class/net/*/carrier_changes", "net.carrier_changes", 0, NULL},
    {"sys/class/net/*/device/numa_node", "net.numa", 0, NULL},
    {"sys/bus/pci/drivers/nvidia/*/current_link_width", "gpupci.width", 0, NULL},
    {"sys/bus/pci/drivers/nvidia/*/max_link_width", "gpupci.width_max", 0, NULL},
    {"sys/bus/pci/drivers/nvidia/*/current_link_speed", "gpupci.speed", 0, NULL},
    {"sys/bus/pci/drivers/nvidia/*/max_link_speed", "gpupci.speed_max", 0, NULL},
    {"sys/bus/pci/drivers/nvidia/*/numa_node", "gpupci.numa", 0, NULL},
    {"sys/bus/pci/drivers/nvidia/*/local_cpulist", "gpupci.cpus", 0, NULL},
    {"sys/bus/pci/devices/*/class", "pcidev.class", 0, NULL},
    {"sys/bus/pci/devices/*/vendor", "pcidev.vendor", 0, NULL},
    {"sys/bus/pci/devices/*/current_link_width", "pcidev.width", 0, NULL},
    {"sys/bus/pci/devices/*/max_link_width", "pcidev.width_max", 0, NULL},
    {"sys/bus/pci/devices/*/current_link_speed", "pcidev.speed", 0, NULL},
    {"sys/bus/pci/devices/*/max_link_speed", "pcidev.speed_max", 0, NULL},
    {"sys/bus/pci/devices/*/local_cpulist", "pcidev.cpus", 0, NULL},
    {"sys/module/nvidia_peermem/version", "module.nvidia_peermem", 0, NULL},
    {"sys/module/nv_peer_mem/version", "module.nv_peer_mem", 0, NULL},
    {"sys/kernel/mm/memory_peers/*/version", "peer_memory", 0, NULL},
    {"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "cpu.governor", 0, NULL},
    {"sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "cpu.governor", 0, NULL},
    {"sys/devices/system/cpu/online", "cpu.online", 0, NULL},
    {"sys/kernel/mm/transparent_hugepage/enabled", "kernel.hugepages", 0, NULL},
    {"sys/fs/cgroup/cpu.max", "cgroup.cpu_max", 0, NULL},
    {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "cgroup.quota_us", 0, NULL},
    {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "cgroup.period_us", 0, NULL},
    {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "cgroup.quota_us", 0, NULL},
    {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "cgroup.period_us", 0, NULL},
    {"sys/fs/cgroup/cpuset.cpus.effective", "cgroup.cpuset", 0, NULL},
    {"sys/fs/cgroup/cpuset/cpuset.effective_cpus", "cgroup.cpuset", 0, NULL},
    {"sys/fs/cgroup/cpu.stat", "cgroup.cpu_stat", 0, NULL},
    {"sys/fs/cgroup/cpu/cpu.stat", "cgroup.cpu_stat", 0, NULL},
    {"sys/fs/cgroup/cpu,cpuacct/cpu.stat", "cgroup.cpu_stat", 0, NULL},
    {"sys/kernel/iommu_groups/*/type", "iommu.group", 0, NULL},
    {"sys/class/dmi/id/sys_vendor", "machine.vendor", 0, NULL},
    {"sys/class/dmi/id/product_name", "machine.name", 0, NULL},
    {"sys/hypervisor/type", "machine.hypervisor", 0, NULL},
    {"proc/sys/kernel/osrelease", "kernel.release", 0, NULL},
    {"proc/sys/kernel/hostname", "host.name", 0, NULL},
    {"proc/sys/kernel/numa_balancing", "kernel.numa_balancing", 0, NULL},
    {"proc/cmdline", "kernel.cmdline", 0, NULL},
    {"proc/driver/nvidia/version", "driver.version_text", 0, NULL},
    {"proc/pressure/cpu", "pressure.cpu", 0, NULL},
    {"sys/fs/cgroup/cpu.pressure", "pressure.cpu", 0, NULL},
    {"proc/stat", "cpu.stat", 0, NULL},
    {"proc/mounts", "", 0, knee_read_mounts},
    {"proc/self/mounts", "", 0, knee_read_mounts},
    {"proc/self/mountinfo", "", 0, knee_read_mounts},
    {"proc/modules", "", 0, knee_read_lsmod},
    {"proc/self/limits", "", 0, knee_read_ulimit},
    {"proc/self/environ", "", 0, knee_read_env},
    {"proc/self/status", "process.cpus", 0, NULL},
    {"etc/nccl.conf", "", 0, knee_read_nccl_conf},
};

const char *knee_host_path(size_t row)
{
    return row < sizeof known / sizeof *known ? known[row].path : NULL;
}

/* Matches a path against a row; the stars' names come out. */
static bool matches(const char *pattern, const char *path, struct knee_slice star[3])
{
    size_t stars = 0;
    while (*pattern && *path) {
        if (*pattern == '*' && stars < 3) {
            size_t length = strcspn(path, "/");
            star[stars++] = (struct knee_slice){path, length};
            path += length;
            pattern++;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return !*pattern && !*path;
}

/* ---- Values that stand inside a file ---- */

/* "Cpus_allowed_list:	0-31" of proc/self/status */
static void after_label(struct knee_facts *facts, const char *key, struct knee_slice text,
                        const char *label)
{
    struct knee_slice line;
    while (knee_slice_line(&text, &line))
        if (knee_slice_starts(line, label)) {
            knee_fact_put(facts, "", key, knee_slice_from(line, strlen(label)));
            return;
        }
}

/* "cpu  user nice system idle iowait irq softirq steal ...": the share stolen since boot. */
static void steal(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line, word;
    double value[9], sum = 0;
    size_t count = 0;
    if (!knee_slice_line(&text, &line) || !knee_slice_word(&line, &word))
        return;
    while (count < 8 && knee_slice_word(&line, &word) && knee_slice_number(word, &value[count]))
        sum += value[count++];
    if (count == 8 && sum > 0)
        knee_fact_number(facts, "", "cpu.steal", value[7] / sum);
}

/* "some avg10=0.00 avg60=3.20 ..." */
static void pressure(struct knee_facts *facts, struct knee_slice text)
{
    size_t at = knee_slice_find(text, "avg60=");
    struct knee_slice rest = knee_slice_from(text, at + 6), word;
    if (at < text.length && knee_slice_word(&rest, &word))
        knee_fact_put(facts, "", "pressure.cpu", word);
}

/* "200000 100000" is two CPUs; "max 100000" means unlimited. */
static void quota(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice word;
    double most, period;
    struct knee_slice rest = text;
    knee_slice_line(&rest, &text);
    if (knee_slice_word(&text, &word) && knee_slice_number(word, &most) &&
        knee_slice_word(&text, &word) && knee_slice_number(word, &period) && period > 0)
        knee_fact_number(facts, "", "cgroup.cpus", most / period);
}

/* "nr_periods 1000", "nr_throttled 700": the share of periods in which the quota was used up. */
static void throttled(struct knee_facts *facts, struct knee_slice text)
{
    double periods, hit;
    if (knee_slice_number_after(text, "nr_periods ", &periods) && periods > 0 &&
        knee_slice_number_after(text, "nr_throttled ", &hit))
        knee_fact_number(facts, "", "cgroup.throttled", hit / periods);
}

static const struct {
    const char *key;
    const char *label; /* of the line; NULL: see the function */
    void (*read)(struct knee_facts *facts, struct knee_slice text);
} inside[] = {
    {"process.cpus", "Cpus_allowed_list:", NULL},
    {"cpu.stat", NULL, steal},
    {"pressure.cpu", NULL, pressure},
    {"cgroup.cpu_max", NULL, quota},
    {"cgroup.cpu_stat", NULL, throttled},
};

static bool read_inside(struct knee_facts *facts, const char *key, struct knee_slice text)
{
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        if (strcmp(inside[i].key, key) != 0)
            continue;
        if (inside[i].label)
            after_label(facts, key, text, inside[i].label);
        else
            inside[i].read(facts, text);
        return true;
    }
    return false;
}

bool knee_read_known_path(struct knee_facts *facts, const char *path, struct knee_slice text)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct knee_slice star[3] = {{"", 0}, {"", 0}, {"", 0}}, line;
        char subject[96], key[96];
        const struct known *row = &known[i];
        if (!matches(row->path, path, star))
            continue;
        if (row->reader)
            return row->reader(facts, text);
        if (read_inside(facts, row->key, text))
            return true;
        knee_format(subject, sizeof subject, "%.*s%s%.*s",
                    (int)(star[0].length < 40 ? star[0].length : 40), star[0].at,
                    row->join ? ":" : "",
                    row->join ? (int)(star[1].length < 40 ? star[1].length : 40) : 0, star[1].at);
        knee_format(key, sizeof key, "%s%.*s", row->key,
                    (int)(star[2].length < 60 ? star[2].length : 60), star[2].at);
        while (text.length > 0 && text.at[0] == '\n')
            text = knee_slice_from(text, 1);
        if (!knee_slice_line(&text, &line))
            line = knee_slice_of("");
        knee_fact_put(facts, subject, key, line);
        return true;
    }
    return false;
}

/* grep -r . /sys/class/infiniband: "/sys/class/infiniband/mlx5_0/ports/1/state:4: ACTIVE".
 * Addresses of the PCI bus have colons too: the path ends where a known one does. */
static bool path_line(struct knee_facts *facts, struct knee_slice line)
{
    char path[160];
    if (line.length > 0 && line.at[0] == '/')
        line = knee_slice_from(line, 1);
    if (!knee_slice_starts(line, "sys/") && !knee_slice_starts(line, "proc/"))
        return false;
    for (size_t i = 0; i < line.length && i < sizeof path; i++) {
        if (line.at[i] != ':')
            continue;
        knee_slice_copy((struct knee_slice){line.at, i}, path, sizeof path);
        if (knee_read_known_path(facts, path, knee_slice_trim(knee_slice_from(line, i + 1))))
            return true;
    }
    return false;
}

bool knee_read_paths(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line;
    bool any = false;
    while (knee_slice_line(&text, &line))
        any = path_line(facts, line) || any;
    return any;
}
