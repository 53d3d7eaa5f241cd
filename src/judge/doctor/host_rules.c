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

double knee_cpus_in(const char *list)
{
    struct knee_slice rest = knee_slice_of(list), piece, low;
    double sum = 0, from, to;
    while (knee_slice_until(&rest, ',', &piece)) {
        knee_slice_until(&piece, '-', &low);
        if (!knee_slice_number(knee_slice_trim(low), &from))
            continue;
        if (!knee_slice_number(knee_slice_trim(piece), &to))
            to = from;
        sum += to >= from ? to - from + 1 : 0;
    }
    return sum;
}

/* The quota of cgroup 2 or 1 (-1: none), or the CPUs of its set: the least. fmin() drops NaN. */
static double cpus_allowed(const struct knee_facts *facts)
{
    double quota = knee_fact_value(facts, "", "cgroup.quota_us"),
           period = knee_fact_value(facts, "", "cgroup.period_us");
    const struct knee_fact *set = knee_fact_find(facts, "", "cgroup.cpuset");
    double cpus = knee_fact_value(facts, "", "cgroup.cpus");
    if (quota > 0 && period > 0)
        cpus = fmin(cpus, quota / period);
    if (set && knee_cpus_in(set->value) > 0)
        cpus = fmin(cpus, knee_cpus_in(set->value));
    return cpus;
}

static void processors(struct knee_exam *exam)
{
    double cpus = cpus_allowed(exam->facts);
    if (exam->gpus > 0 && cpus < 2 * exam->gpus)
        knee_blame(exam, "cpu_quota", "", NAN, "%.1f CPUs for %.0f GPUs", cpus, exam->gpus);
}

/* Translating every transfer slows GPUDirect down or breaks it; passing through does not. */
static void iommu(struct knee_exam *exam)
{
    const struct knee_fact *line = knee_fact_find(exam->facts, "", "kernel.cmdline");
    size_t groups = knee_facts_count(exam->facts, "iommu.group"), translated = 0;
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "iommu.group", &row);)
        translated += strncmp(row->value, "DMA", 3) == 0;
    if (exam->virtual_machine ||
        (line && (strstr(line->value, "iommu=pt") || strstr(line->value, "iommu.passthrough=1"))))
        return;
    /* Kernels since 5.15 translate by default; the fix is the same, the harm is smaller. */
    if (translated > 0 && (exam->gpus > 1 || exam->rdma == KNEE_PRESENT))
        knee_blame_at(exam, KNEE_NOTE, "iommu_translates", "", NAN,
                      "%zu of %zu IOMMU groups are translated (type DMA)", translated, groups);
    if (!line)
        return;
    if (strstr(line->value, "intel_iommu=on") || strstr(line->value, "amd_iommu=on") ||
        strstr(line->value, "iommu=force"))
        knee_blame_at(exam, exam->gpus > 1 || exam->rdma == KNEE_PRESENT ? KNEE_WARNING : KNEE_NOTE,
                      "iommu_translates", "", NAN,
                      "the kernel was booted with the IOMMU on and without iommu=pt");
}

static bool of_amd(const struct knee_facts *facts)
{
    for (const struct knee_fact *row = NULL; knee_fact_next(facts, "gpu.name", &row);)
        if (strstr(row->value, "AMD") || strstr(row->value, "Instinct") ||
            strstr(row->value, "Radeon"))
            return true;
    return false;
}

/* Only where the kernel's modules were really looked at, and ports that are worth it. AMD's driver
 * does it by itself. */
static void gpudirect(struct knee_exam *exam)
{
    const struct knee_fact *driver = knee_fact_find(exam->facts, "", "driver.version_text");
    double rate = 0;
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "ib.rate", &row);)
        rate = fmax(rate, row->number);
    if (exam->gpus == 0 || exam->geforce || rate < 100 ||
        !knee_facts_count(exam->facts, "module.list") || of_amd(exam->facts))
        return;
    bool module = knee_facts_count(exam->facts, "module.nvidia_peermem") ||
                  knee_facts_count(exam->facts, "module.nv_peer_mem");
    bool open = driver && strstr(driver->value, "Open Kernel Module") &&
                knee_version_number(knee_fact_find(exam->facts, "", "kernel.release")
                                        ? knee_fact_find(exam->facts, "", "kernel.release")->value
                                        : "") >= 51200;
    if (!module && !open)
        knee_blame(
            exam, "gdr_off", "", NAN,
            "nvidia_peermem is not loaded and DMA-BUF needs the open driver: no GPUDirect RDMA");
    else if (module && !knee_facts_count(exam->facts, "peer_memory") && exam->nccl <= 22203 &&
             knee_facts_count(exam->facts, "net.mtu"))
        knee_blame(exam, "gdr_peermem_name", "", NAN,
                   "nvidia_peermem is loaded, but nothing is under /sys/kernel/mm/memory_peers, "
                   "where this NCCL looks");
}

/* Interfaces behind RoCE ports with small frames. */
static void frames(struct knee_exam *exam)
{
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "net.mtu", &row);) {
        double speed = knee_fact_value(exam->facts, row->subject, "net.speed");
        if (row->number < 4200 && speed >= 100000 &&
            knee_fact_is(exam->facts, row->subject, "net.state", "up"))
            knee_blame(exam, "mtu_small", row->subject, NAN, "frames of %.0f bytes at %.0f Gb/s",
                       row->number, speed / 1000);
    }
}

/* ---- Interfaces compared with others of the host ---- */

#define INTERFACES_MAX 256 /* each is compared with all others */

/* Rows [*first, end) of a key of interfaces, at most so many. */
static size_t interfaces(const struct knee_facts *facts, const char *key, size_t *first)
{
    size_t end = knee_facts_range(facts, key, first);
    return end < *first + INTERFACES_MAX ? end : *first + INTERFACES_MAX;
}

/* Names without their digits: ens1np0 and ens2np0 are of one kind. */
static void stem_of(const char *name, char *out, size_t size)
{
    size_t used = 0;
    for (; *name && used + 1 < size; name++)
        if (*name < '0' || *name > '9')
            out[used++] = *name;
    out[used] = '\0';
}

static bool fellows(const struct knee_facts *facts, const char *a, const char *b)
{
    char one[48], other[48];
    stem_of(a, one, sizeof one);
    stem_of(b, other, sizeof other);
    return strcmp(one, other) == 0 && knee_fact_is(facts, a, "net.state", "up") &&
           knee_fact_is(facts, b, "net.state", "up");
}

/* The value that most interfaces of this kind (three or more) have, if it is above this one's;
 * otherwise NaN. `first`: this is the first interface of its kind; it often belongs to another
 * network. */
static double fellows_have(const struct knee_facts *facts, const char *key,
                           const struct knee_fact *row, bool *is_first)
{
    size_t first, end = interfaces(facts, key, &first), more = 0, all = 0;
    double best = 0;
    *is_first = true;
    for (size_t i = first; i < end; i++) {
        const struct knee_fact *other = &facts->rows[i];
        if (!fellows(facts, row->subject, other->subject))
            continue;
        all++;
        more += other->number > row->number;
        best = fmax(best, other->number);
        *is_first = *is_first && strcmp(other->subject, row->subject) >= 0;
    }
    return more >= 3 && 2 * more > all ? best : NAN;
}

static void odd_interfaces(struct knee_exam *exam)
{
    static const struct {
        const char *key, *rule, *unit;
        bool slows;
    } table[] = {
        {"net.mtu", "mtu_differs", "bytes a frame", false},
        {"net.speed", "net_slow", "Mb/s", true},
    };
    for (size_t k = 0; k < 2; k++) {
        size_t first, end = interfaces(exam->facts, table[k].key, &first);
        size_t further = knee_facts_range(exam->facts, table[k].key, &first) - end;
        if (further)
            knee_blame(exam, "ports_many", "", NAN, "%zu further interfaces were not compared",
                       further);
        for (size_t i = first; i < end; i++) {
            const struct knee_fact *row = &exam->facts->rows[i];
            bool is_first;
            double usual = fellows_have(exam->facts, table[k].key, row, &is_first);
            if (isnan(usual))
                continue;
            double left = table[k].slows && exam->rdma != KNEE_PRESENT ? row->number / usual : NAN;
            knee_blame_at(exam, is_first ? KNEE_NOTE : KNEE_WARNING, table[k].rule, row->subject,
                          left, "%.0f %s; others have %.0f", row->number, table[k].unit, usual);
        }
    }
}

/* Slower than what the adapter says that it can do. */
static void below_mode(struct knee_exam *exam)
{
    for (const struct knee_fact *most = NULL;
         knee_fact_next(exam->facts, "net.speed_max", &most);) {
        double speed = knee_fact_value(exam->facts, most->subject, "net.speed");
        if (speed > 0 && speed < most->number)
            knee_blame(exam, "net_below_mode", most->subject, NAN,
                       "%.0f Mb/s, the adapter can do %.0f", speed, most->number);
    }
}

/* ---- The clock ---- */

static void time_source(struct knee_exam *exam)
{
    double offset = knee_fact_value(exam->facts, "", "clock.offset");
    if (knee_fact_is(exam->facts, "", "clock.leap", "Not synchronised") ||
        knee_fact_is(exam->facts, "", "clock.synchronised", "no"))
        knee_blame(exam, "clock_unsynchronised", "", NAN, "its clock follows no source of time");
    else if (offset > 0.1)
        knee_blame(exam, "clock_unsynchronised", "", NAN, "its clock is %.3g s off", offset);
}

/* ---- Ranks ---- */

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

/* The rank on its host, as launchers say it; NaN: none does. */
static double local_rank(const struct knee_facts *facts)
{
    static const char *const names[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID",
                                        "MPI_LOCALRANKID", "PMI_LOCAL_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        double rank = knee_fact_value(facts, names[i], "env");
        if (rank >= 0)
            return rank;
    }
    return NAN;
}

/* The GPU of a rank among those in CUDA_VISIBLE_DEVICES. If it lists one, all ranks use that one.
 */
static double gpu_of_rank(const struct knee_facts *facts, double rank)
{
    const struct knee_fact *visible = knee_fact_find(facts, "CUDA_VISIBLE_DEVICES", "env");
    struct knee_slice rest = knee_slice_of(visible ? visible->value : ""), piece;
    double only = NAN, at = 0, number;
    for (; knee_slice_until(&rest, ',', &piece); at++) {
        if (!knee_slice_number(knee_slice_trim(piece), &number))
            return NAN; /* by UUID */
        if (at == rank)
            return number;
        only = number;
    }
    return at == 0 ? rank : at == 1 ? only : NAN;
}

/* The CPUs near a GPU, counted in the order of the bus. */
static const struct knee_fact *cpus_of_gpu(const struct knee_facts *facts, double gpu)
{
    bool driver = knee_fact_find(facts, NULL, "gpupci.cpus");
    const char *key = driver ? "gpupci.cpus" : "pcidev.cpus";
    for (const struct knee_fact *row = NULL; knee_fact_next(facts, key, &row);)
        if ((driver || knee_pci_is_gpu(facts, row->subject)) && gpu-- == 0)
            return row;
    return NULL;
}

/* A rank that may not run on any CPU of its GPU. */
static void affinity(struct knee_exam *exam)
{
    const struct knee_fact *own = knee_fact_find(exam->facts, "", "process.cpus");
    double rank = local_rank(exam->facts);
    const struct knee_fact *gpu =
        isnan(rank) ? NULL : cpus_of_gpu(exam->facts, gpu_of_rank(exam->facts, rank));
    if (!own || !gpu)
        return;
    for (long cpu = 0; cpu < 4096; cpu++)
        if (in_list(own->value, cpu) && in_list(gpu->value, cpu))
            return;
    knee_blame(exam, "affinity_far", gpu->subject, NAN,
               "rank %.0f runs on CPUs %s; its GPU is attached to %s", rank, own->value,
               gpu->value);
}

/* What knee bench measured; the values begin with per cent. */
static void measured(struct knee_exam *exam)
{
    static const char *const keys[][2] = {{"bench.slow_host", "slow_host"},
                                          {"bench.slow_link", "slow_link"}};
    for (size_t k = 0; k < 2; k++) {
        for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, keys[k][0], &row);)
            knee_blame(exam, keys[k][1], row->subject, row->number / 100, "%s", row->value);
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
    odd_interfaces(exam);
    below_mode(exam);
    time_source(exam);
    affinity(exam);
}
