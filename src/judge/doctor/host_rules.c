/* SPDX-License-Identifier: MIT */
/* The host around the GPUs: limits, /dev/shm, CPUs, IOMMU, GPUDirect RDMA. */
#include "judge/doctor/doctor_judge.h"

#include <math.h>
#include <string.h>

#define GIGABYTE 1e9

static void limits(struct knee_exam *exam)
{
    double memlock = knee_fact_value(exam->facts, "", "limit.memlock_bytes");
    double files = knee_fact_value(exam->facts, "", "limit.nofile");
    if (memlock < GIGABYTE)
        knee_blame_at(exam, exam->rdma == KNEE_ABSENT ? KNEE_NOTE : KNEE_WARNING, "memlock_low", "",
                      NAN, "locked memory is limited to %.0f KiB: RDMA cannot register its buffers",
                      memlock / 1024);
    if (files < 4096)
        knee_blame(exam, "nofile_low", "", NAN, "%.0f open files at most", files);
}

/* Docker gives 64 MB; the segments of eight GPUs take some 10 MB each. */
static void shared_memory(struct knee_exam *exam)
{
    double bytes = knee_fact_value(exam->facts, "", "shm.bytes");
    if (bytes < 0.9 * GIGABYTE)
        knee_blame_at(exam, exam->gpus > 1 ? KNEE_WARNING : KNEE_NOTE, "shm_small", "/dev/shm", NAN,
                      "%.0f MB; NCCL and loaders want 1 GB and more", bytes * 1e-6);
}

static void processors(struct knee_exam *exam)
{
    double cpus = knee_fact_value(exam->facts, "", "cgroup.cpus");
    if (exam->gpus > 0 && cpus < 2 * exam->gpus)
        knee_blame(exam, "cpu_quota", "", NAN, "%.1f CPUs for %.0f GPUs", cpus, exam->gpus);
}

/* Translating every transfer slows GPUDirect down or breaks it; passing through does not. */
static void iommu(struct knee_exam *exam)
{
    const struct knee_fact *line = knee_fact_find(exam->facts, "", "kernel.cmdline");
    if (!line || exam->virtual_machine || strstr(line->value, "iommu=pt") ||
        strstr(line->value, "iommu.passthrough=1"))
        return;
    if (strstr(line->value, "intel_iommu=on") || strstr(line->value, "amd_iommu=on") ||
        strstr(line->value, "iommu=force"))
        knee_blame_at(exam, exam->gpus > 1 || exam->rdma == KNEE_PRESENT ? KNEE_WARNING : KNEE_NOTE,
                      "iommu_translates", "", NAN,
                      "the kernel was booted with the IOMMU on and without iommu=pt");
}

static bool any(const struct knee_facts *facts, const char *key)
{
    size_t first;
    return knee_facts_range(facts, key, &first) > first;
}

/* Only where the kernel's modules were really looked at, and ports that are worth it. */
static void gpudirect(struct knee_exam *exam)
{
    const struct knee_fact *driver = knee_fact_find(exam->facts, "", "driver.version_text");
    double rate = 0;
    size_t first, end = knee_facts_range(exam->facts, "ib.rate", &first);
    for (size_t i = first; i < end; i++)
        rate = fmax(rate, exam->facts->rows[i].number);
    if (exam->gpus == 0 || exam->geforce || rate < 100 || !any(exam->facts, "module.list"))
        return;
    bool module =
        any(exam->facts, "module.nvidia_peermem") || any(exam->facts, "module.nv_peer_mem");
    bool open = driver && strstr(driver->value, "Open Kernel Module") &&
                knee_version_number(knee_fact_find(exam->facts, "", "kernel.release")
                                        ? knee_fact_find(exam->facts, "", "kernel.release")->value
                                        : "") >= 51200;
    if (!module && !open)
        knee_blame(
            exam, "gdr_off", "", NAN,
            "nvidia_peermem is not loaded and DMA-BUF needs the open driver: no GPUDirect RDMA");
    else if (module && !any(exam->facts, "peer_memory") && exam->nccl <= 22203 &&
             any(exam->facts, "net.mtu"))
        knee_blame(exam, "gdr_peermem_name", "", NAN,
                   "nvidia_peermem is loaded, but nothing is under /sys/kernel/mm/memory_peers, "
                   "where this NCCL looks");
}

/* Interfaces behind RoCE ports with small frames. */
static void frames(struct knee_exam *exam)
{
    size_t first, end = knee_facts_range(exam->facts, "net.mtu", &first);
    for (size_t i = first; i < end; i++) {
        const struct knee_fact *row = &exam->facts->rows[i];
        double speed = knee_fact_value(exam->facts, row->subject, "net.speed");
        if (row->number < 4200 && speed >= 100000 &&
            knee_fact_is(exam->facts, row->subject, "net.state", "up"))
            knee_blame(exam, "mtu_small", row->subject, NAN, "frames of %.0f bytes at %.0f Gb/s",
                       row->number, speed / 1000);
    }
}

/* "0-15,64-79" has CPU n. */
static bool in_list(const char *list, long cpu)
{
    double from = 0, to = 0;
    struct knee_slice rest = knee_slice_of(list), piece, low;
    while (knee_slice_until(&rest, ',', &piece)) {
        knee_slice_until(&piece, '-', &low);
        if (!knee_slice_number(knee_slice_trim(low), &from))
            continue;
        if (!knee_slice_number(knee_slice_trim(piece), &to))
            to = from;
        if ((double)cpu >= from && (double)cpu <= to)
            return true;
    }
    return false;
}

/* A rank (its launcher says which) that may not run on any CPU of its GPU. */
static void affinity(struct knee_exam *exam)
{
    const struct knee_fact *own = knee_fact_find(exam->facts, "", "process.cpus");
    const struct knee_fact *rank = knee_fact_find(exam->facts, "LOCAL_RANK", "env");
    size_t first, end = knee_facts_range(exam->facts, "gpupci.cpus", &first);
    if (!own || !rank || !(rank->number >= 0) || rank->number >= (double)(end - first))
        return;
    const struct knee_fact *gpu = &exam->facts->rows[first + (size_t)rank->number];
    for (long cpu = 0; cpu < 4096; cpu++)
        if (in_list(own->value, cpu) && in_list(gpu->value, cpu))
            return;
    knee_blame(exam, "affinity_far", gpu->subject, NAN,
               "rank %.0f runs on CPUs %s, its GPU is beside %s", rank->number, own->value,
               gpu->value);
}

/* What knee bench measured; the values begin with per cent. */
static void measured(struct knee_exam *exam)
{
    static const char *const keys[][2] = {{"bench.slow_host", "slow_host"},
                                          {"bench.slow_link", "slow_link"}};
    for (size_t k = 0; k < 2; k++) {
        size_t first, end = knee_facts_range(exam->facts, keys[k][0], &first);
        for (size_t i = first; i < end; i++)
            knee_blame(exam, keys[k][1], exam->facts->rows[i].subject,
                       exam->facts->rows[i].number / 100, "%s", exam->facts->rows[i].value);
    }
}

void knee_check_host(struct knee_exam *exam)
{
    measured(exam);
    limits(exam);
    shared_memory(exam);
    processors(exam);
    iommu(exam);
    gpudirect(exam);
    frames(exam);
    affinity(exam);
}
