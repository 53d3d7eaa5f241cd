/* SPDX-License-Identifier: MIT */
/*
 * Ten healthy machines, as the files and outputs that knee doctor would read there, made from the
 * documented formats; and how to spoil one of their files. Nothing here is taken from the rules.
 */
#ifndef KNEE_TESTS_MACHINES_H
#define KNEE_TESTS_MACHINES_H

#include "knee_doctor.h"
#include "read/host/facts.h"
#include "unit.h"

static inline void give(struct knee_facts *facts, const char *path, const char *text)
{
    if (!knee_host_file(facts, path, text, strlen(text)))
        fail_msg("%s is not understood", path);
}

static inline struct knee_checkup examine(struct knee_facts *facts, size_t count,
                                          const struct knee_doctor_options *options)
{
    struct knee_checkup checkup;
    struct knee_err err;
    if (knee_doctor_examine(facts, count, options, NULL, &checkup, &err))
        fail_msg("%s %s", err.where, err.what);
    return checkup;
}

/* The worst of a rule; findings are sorted so. */
static inline const struct knee_ailment *found(const struct knee_checkup *c, const char *id)
{
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->findings[i].rule->id, id) == 0)
            return &c->findings[i];
    return NULL;
}

/* ---- Parts ---- */

struct gpu_values {
    const char *name, *pending, *errors, *thermal, *brake, *limit, *width, *fabric, *recovery,
        *load, *gen, *clock, *app_clock, *ecc, *mode;
};
static const struct gpu_values good_gpu = {"NVIDIA H100 80GB HBM3",
                                           "No",
                                           "0",
                                           "Not Active",
                                           "Not Active",
                                           "700.00 W",
                                           "16x",
                                           "Completed",
                                           "None",
                                           "0 %",
                                           "5",
                                           "1980 MHz",
                                           "1980 MHz",
                                           "Enabled",
                                           "Default"};

/* nvidia-smi -q -x of one GPU, the fields that are judged and some around them. */
static inline void gpu_xml(char *out, size_t size, int bus, const struct gpu_values *v)
{
    snprintf(
        out, size,
        "<gpu "
        "id=\"00000000:%02X:00.0\"><product_name>%s</product_name><persistence_mode>Enabled</"
        "persistence_mode>"
        "<mig_mode><current_mig>Disabled</current_mig></mig_mode><vbios_version>96.00.99.00.01</"
        "vbios_version>"
        "<gpu_recovery_action>%s</gpu_recovery_action>"
        "<pci><pci_gpu_link_info><pcie_gen><max_link_gen>5</max_link_gen><current_link_gen>%s</"
        "current_link_gen></pcie_gen>"
        "<link_widths><max_link_width>16x</max_link_width><current_link_width>%s</"
        "current_link_width></link_widths>"
        "</pci_gpu_link_info></pci><performance_state>P0</performance_state>"
        "<clocks_event_reasons><clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>"
        "<clocks_event_reason_hw_thermal_slowdown>%s</clocks_event_reason_hw_thermal_slowdown>"
        "<clocks_event_reason_hw_power_brake_slowdown>%s</"
        "clocks_event_reason_hw_power_brake_slowdown>"
        "</clocks_event_reasons><compute_mode>%s</compute_mode>"
        "<ecc_mode><current_ecc>%s</current_ecc></ecc_mode>"
        "<clocks><sm_clock>%s</sm_clock></clocks><max_clocks><sm_clock>1980 "
        "MHz</sm_clock></max_clocks>"
        "<applications_clocks><graphics_clock>%s</graphics_clock></applications_clocks>"
        "<default_applications_clocks><graphics_clock>1980 MHz</graphics_clock>"
        "</default_applications_clocks><utilization><gpu_util>%s</gpu_util></utilization>"
        "<ecc_errors><volatile><sram_uncorrectable_parity>0</sram_uncorrectable_parity>"
        "<dram_uncorrectable>%s</dram_uncorrectable></volatile><aggregate><dram_uncorrectable>9</"
        "dram_uncorrectable>"
        "</aggregate></ecc_errors><remapped_rows><remapped_row_pending>%s</remapped_row_pending>"
        "<remapped_row_failure>No</remapped_row_failure></remapped_rows>"
        "<gpu_power_readings><current_power_limit>%s</"
        "current_power_limit><default_power_limit>700.00 W</default_power_limit>"
        "</gpu_power_readings><fabric><state>%s</state><status>Success</status></fabric></gpu>",
        bus, v->name, v->recovery, v->gen, v->width, v->thermal, v->brake, v->mode, v->ecc,
        v->clock, v->app_clock, v->load, v->errors, v->pending, v->limit, v->fabric);
}

/* All GPUs good but the last, which is `last`. */
static inline void gpus(struct knee_facts *facts, int count, const char *name,
                        const struct gpu_values *last)
{
    static char text[65536];
    size_t used = (size_t)snprintf(
        text, sizeof text,
        "<?xml version=\"1.0\" ?>\n<nvidia_smi_log><driver_version>570.86.15</driver_version>"
        "<cuda_version>12.8</cuda_version><attached_gpus>%d</attached_gpus>",
        count);
    for (int i = 0; i < count; i++) {
        struct gpu_values v = i == count - 1 ? *last : good_gpu;
        v.name = name;
        gpu_xml(text + used, sizeof text - used, 0x10 + i, &v);
        used += strlen(text + used);
    }
    snprintf(text + used, sizeof text - used, "</nvidia_smi_log>\n");
    give(facts, "nvidia-smi-q.xml", text);
}

static inline void port_file(struct knee_facts *facts, const char *device, const char *file,
                             const char *text)
{
    char path[160];
    snprintf(path, sizeof path, "sys/class/infiniband/%s/%s", device, file);
    give(facts, path, text);
}

static inline void port(struct knee_facts *facts, const char *device, const char *type,
                        const char *rate, const char *layer)
{
    port_file(facts, device, "hca_type", type);
    port_file(facts, device, "fw_ver", "28.43.1014\n");
    port_file(facts, device, "ports/1/state", "4: ACTIVE\n");
    port_file(facts, device, "ports/1/phys_state", "5: LinkUp\n");
    port_file(facts, device, "ports/1/rate", rate);
    port_file(facts, device, "ports/1/link_layer", layer);
    port_file(facts, device, "device/current_link_width", "16\n");
    port_file(facts, device, "device/max_link_width", "16\n");
    port_file(facts, device, "device/current_link_speed", "32.0 GT/s PCIe\n");
    port_file(facts, device, "device/max_link_speed", "32.0 GT/s PCIe\n");
    port_file(facts, device, "ports/1/counters/link_downed", "255\n"); /* 8 bits, stuck: history */
    port_file(facts, device, "ports/1/counters/port_rcv_errors", "14\n");
}

static inline void rails(struct knee_facts *facts, int count, const char *rate, const char *layer)
{
    for (int i = 0; i < count; i++) {
        char device[24];
        snprintf(device, sizeof device, "mlx5_%d", i);
        port(facts, device, "MT4129\n", rate, layer);
        if (strcmp(layer, "Ethernet\n") != 0)
            continue;
        port_file(facts, device, "ports/1/gids/0", "fe80:0000:0000:0000:a288:c2ff:fead:eab8\n");
        port_file(facts, device, "ports/1/gids/1", "fe80:0000:0000:0000:a288:c2ff:fead:eab8\n");
        port_file(facts, device, "ports/1/gids/2", "0000:0000:0000:0000:0000:ffff:0a01:0203\n");
        port_file(facts, device, "ports/1/gids/3", "0000:0000:0000:0000:0000:ffff:0a01:0203\n");
        port_file(facts, device, "ports/1/gid_attrs/types/0", "IB/RoCE v1\n");
        port_file(facts, device, "ports/1/gid_attrs/types/1", "RoCE v2\n");
        port_file(facts, device, "ports/1/gid_attrs/types/2", "IB/RoCE v1\n");
        port_file(facts, device, "ports/1/gid_attrs/types/3", "RoCE v2\n");
    }
}

static inline void interface(struct knee_facts *facts, const char *name, const char *mtu,
                             const char *speed)
{
    char path[96];
    snprintf(path, sizeof path, "sys/class/net/%s/mtu", name);
    give(facts, path, mtu);
    snprintf(path, sizeof path, "sys/class/net/%s/operstate", name);
    give(facts, path, "up\n");
    snprintf(path, sizeof path, "sys/class/net/%s/speed", name);
    give(facts, path, speed);
}

static inline void server(struct knee_facts *facts)
{
    interface(facts, "lo", "65536\n", "0\n");
    interface(facts, "eno1", "9000\n", "25000\n");
    give(facts, "proc/self/limits",
         "Limit                     Soft Limit           Hard Limit           Units\n"
         "Max stack size            8388608              unlimited            bytes\n"
         "Max open files            1048576              1048576              files\n"
         "Max locked memory         unlimited            unlimited            bytes\n");
    give(facts, "proc/cmdline",
         "BOOT_IMAGE=/vmlinuz-5.15.0-1063-nvidia root=/dev/md0 ro iommu=pt\n");
    give(facts, "proc/sys/kernel/osrelease", "5.15.0-1063-nvidia\n");
    give(facts, "proc/modules",
         "nvidia_peermem 16384 0 - Live 0x0\nmlx5_ib 475136 0 - Live 0x0\nnvidia 56598528 9 - Live "
         "0x0\n");
    give(facts, "proc/pressure/cpu", "some avg10=0.00 avg60=0.12 avg300=0.00 total=12345\n");
    knee_facts_read(facts, "\tshm.bytes\t1e11\t1e11\n", strlen("\tshm.bytes\t1e11\t1e11\n"));
}

/* ---- The machines ---- */

static inline void dgx_h100(struct knee_facts *facts)
{
    gpus(facts, 8, "NVIDIA H100 80GB HBM3", &good_gpu);
    rails(facts, 8, "400 Gb/sec (4X NDR)\n", "InfiniBand\n");
    port(facts, "mlx5_bond_0", "MT41692\n", "200 Gb/sec (2X NDR)\n", "Ethernet\n");
    server(facts);
    give(facts, "env", "NCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME=eno1\nOMP_NUM_THREADS=12\n");
}

static inline void dgx_a100(struct knee_facts *facts)
{
    gpus(facts, 8, "NVIDIA A100-SXM4-80GB", &good_gpu);
    rails(facts, 10, "200 Gb/sec (4X HDR)\n", "InfiniBand\n");
    server(facts);
    give(facts, "nvlink.txt",
         "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n\t Link 0: 25 GB/s\n\t Link 1: 25 GB/s\n"
         "GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-2)\n\t Link 0: 25 GB/s\n\t Link 1: 25 GB/s\n");
    give(facts, "env",
         "NCCL_IB_HCA==mlx5_0,mlx5_1\nNCCL_IB_QPS_PER_CONNECTION=2\nNCCL_TOPO_DUMP_FILE=/tmp/"
         "t.xml\n");
}

static inline void
roce_h200(struct knee_facts *facts) /* eight RoCE rails, as the next one's fabric */
{
    gpus(facts, 8, "NVIDIA H200", &good_gpu);
    rails(facts, 8, "400 Gb/sec (4X NDR)\n", "Ethernet\n");
    server(facts);
    give(facts, "env", "NCCL_IB_GID_INDEX=3\nNCCL_IB_TC=106\nNCCL_IB_TIMEOUT=22\n");
}

static inline void gb200_tray(struct knee_facts *facts)
{
    gpus(facts, 4, "NVIDIA GB200", &good_gpu);
    rails(facts, 4, "400 Gb/sec (4X NDR)\n", "InfiniBand\n");
    server(facts);
    give(facts, "env", "NCCL_MNNVL_ENABLE=1\nNCCL_CUMEM_ENABLE=1\n");
}

static inline void efa_p5(struct knee_facts *facts)
{
    gpus(facts, 8, "NVIDIA H100 80GB HBM3", &good_gpu);
    for (int i = 0; i < 32; i++) {
        char device[24];
        snprintf(device, sizeof device, "rdmap%ds0", 40 + i);
        port_file(facts, device, "ports/1/state", "4: ACTIVE\n");
        port_file(facts, device, "ports/1/rate", "100 Gb/sec (4X EDR)\n");
        port_file(facts, device, "ports/1/link_layer", "Unspecified\n");
    }
    server(facts);
    give(facts, "sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
    give(facts, "proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz-6.1 root=LABEL=/ intel_iommu=on\n");
    give(facts, "env",
         "FI_PROVIDER=efa\nFI_EFA_USE_DEVICE_RDMA=1\nNCCL_OFI_FOO=1\nNCCL_NET_PLUGIN=ofi\n");
}

static inline void gcp_tcpx(struct knee_facts *facts)
{
    gpus(facts, 8, "NVIDIA H100 80GB HBM3", &good_gpu);
    server(facts);
    for (int i = 1; i < 5; i++) {
        char name[8];
        snprintf(name, sizeof name, "eth%d", i);
        interface(facts, name, "8244\n", "200000\n");
    }
    give(facts, "sys/class/dmi/id/sys_vendor", "Google\n");
    give(facts, "env",
         "NCCL_GPUDIRECTTCPX_SOCKET_IFNAME=eth1,eth2\nNCCL_NET_GDR_LEVEL=PIX\nNCCL_SOCKET_IFNAME="
         "eth1\n"
         "NCCL_FASTRAK_NUM_FLOWS=2\nNCCL_PROTO=Simple\n");
}

static inline void plain_ethernet(struct knee_facts *facts)
{
    gpus(facts, 4, "NVIDIA L40S", &good_gpu);
    server(facts);
    give(facts, "env",
         "NCCL_IB_DISABLE=1\nNCCL_SOCKET_NTHREADS=4\nNCCL_NSOCKS_PERTHREAD=4\nNCCL_SOCKET_IFNAME="
         "eno1\n");
}

static inline void cpu_only(struct knee_facts *facts)
{
    server(facts);
    give(facts, "env", "OMP_NUM_THREADS=8\nGLOO_SOCKET_IFNAME=eno1\n");
}

static inline void container(struct knee_facts *facts)
{
    gpus(facts, 8, "NVIDIA H100 80GB HBM3", &good_gpu);
    rails(facts, 8, "400 Gb/sec (4X NDR)\n", "InfiniBand\n");
    interface(facts, "eth0", "1500\n", "10000\n");
    give(facts, "sys/fs/cgroup/cpu.max", "max 100000\n");
    give(facts, "ulimit.txt",
         "core file size (blocks, -c) 0\nmax locked memory       (kbytes, -l) unlimited\nopen "
         "files (-n) 1048576\n");
    knee_facts_read(facts, "\tshm.bytes\t1e11\t1e11\n", strlen("\tshm.bytes\t1e11\t1e11\n"));
}

static inline void virtual_machine(struct knee_facts *facts)
{
    gpus(facts, 1, "NVIDIA A100-SXM4-80GB", &good_gpu);
    interface(facts, "eth0", "1500\n", "50000\n");
    give(facts, "sys/class/dmi/id/product_name", "Virtual Machine\n");
    give(facts, "proc/cmdline", "root=/dev/sda1 intel_iommu=on\n");
    give(facts, "proc/stat", "cpu  1000 0 500 90000 100 0 20 30 0 0\n");
}

static inline void laptop(struct knee_facts *facts)
{
    give(facts, "smi.txt",
         "==============NVSMI LOG==============\n\nDriver Version                            : "
         "550.120\n"
         "Attached GPUs                             : 1\nGPU 00000000:01:00.0\n"
         "    Product Name                          : NVIDIA GeForce RTX 4070 Laptop GPU\n"
         "    Persistence Mode                      : Disabled\n    PCI\n        GPU Link Info\n   "
         "         PCIe Generation\n"
         "                Max                       : 4\n                Current                   "
         ": 1\n"
         "            Link Width\n                Max                       : 16x\n                "
         "Current                   : 8x\n"
         "    GPU Power Readings\n        Current Power Limit               : 80.00 W\n"
         "        Default Power Limit               : 115.00 W\n    Processes                      "
         "       : None\n");
    interface(facts, "wlp3s0", "1500\n", "0\n");
    give(facts, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
    give(facts, "proc/sys/kernel/numa_balancing", "0\n");
    give(facts, "ulimit.txt", "max locked memory       (kbytes, -l) 8192\nopen files (-n) 1024\n");
}

struct machine {
    const char *name;
    void (*make)(struct knee_facts *facts);
};
static const struct machine machines[] = {
    {"DGX H100", dgx_h100},
    {"DGX A100", dgx_a100},
    {"H200 over RoCE", roce_h200},
    {"GB200 tray", gb200_tray},
    {"EFA", efa_p5},
    {"GCP TCPX", gcp_tcpx},
    {"plain Ethernet", plain_ethernet},
    {"CPU only", cpu_only},
    {"container", container},
    {"VM", virtual_machine},
    {"laptop", laptop},
};

#endif
