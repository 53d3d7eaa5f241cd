/* SPDX-License-Identifier: MIT */
/*
 * All rules, one row each. A row with a key is judged by the table alone: the fact, a test, a
 * limit. A row without one belongs to a function (the other files of this folder) that needs more
 * than one fact; it names what is wrong, how bad it is, the cure and what it hurts all the same.
 * The shares that are left are measured ones where a source is named: 33 of 93 GB/s without
 * GPUDirect RDMA (NVIDIA/nccl#1412).
 */
#include "judge/doctor/doctor_judge.h"

#include "base/keys.h"

#include <math.h>
#include <string.h>

#define NO_GDR                                                                                     \
    (33.3 / 93.0) /* NVIDIA/nccl#1412: bus bandwidth before and after loading nvidia-peermem */

static const char *const severities[] = {"note", "warning", "error"};
KNEE_WORDS(knee_severity_names, "severity", severities);

#define FACT(id, sev, key, test, limit, says, cure)                                                \
    {                                                                                              \
        id, KNEE_##sev, key, test, limit, says, cure, KNEE_HURTS_NOTHING, NAN, NULL                \
    }
#define COST(id, sev, key, test, limit, says, cure, hurt, left, also)                              \
    {                                                                                              \
        id, KNEE_##sev, key, test, limit, says, cure, KNEE_HURTS_##hurt, left, also                \
    }
#define CODE(id, sev, cure, hurt, left, also)                                                      \
    {                                                                                              \
        id, KNEE_##sev, NULL, NULL, NULL, NULL, cure, KNEE_HURTS_##hurt, left, also                \
    }
#define LOG(id, sev, key, cure, hurt, left, also)                                                  \
    {                                                                                              \
        id, KNEE_##sev, key, "any", "", "{value}", cure, KNEE_HURTS_##hurt, left, also             \
    }

static const struct knee_rule rules[] = {
    /* ---- GPUs ---- */
    FACT("gpu_output_cut_off", ERROR, "smi.cut_off", "is", "yes",
         "the output of nvidia-smi ends in the middle",
         "run nvidia-smi -q -x again; dmesg may tell why it hangs"),
    CODE("gpu_not_listed", NOTE,
         "none, if nvidia-smi was asked for some GPUs only (-i); else look for Xid 79 in dmesg",
         NOTHING, NAN, NULL),
    COST("row_remap_pending", ERROR, "gpu.remap.pending", "is", "Yes",
         "a row of its memory waits to be remapped",
         "drain the node and reset the GPU: nvidia-smi --gpu-reset -i {where}", NOTHING, NAN, NULL),
    COST("row_remap_failure", ERROR, "gpu.remap.failure", "is", "Yes",
         "a row of its memory could not be remapped", "have the GPU replaced", ALL, NAN, NULL),
    FACT("page_retirement_pending", ERROR, "gpu.retired_pending", "is", "Yes",
         "pages of its memory wait to be retired", "drain the node and reset the GPU or reboot"),
    FACT("pages_retired", WARNING, "gpu.retired", "above", "59",
         "{value} pages of its memory are retired (60 is the limit)", "have the GPU replaced"),
    COST("ecc_uncorrected", ERROR, "gpu.ecc.uncorrected.*", "above", "0",
         "{value} uncorrected memory errors since the driver was loaded",
         "drain the node, reset the GPU; replace it when they come back", ALL, NAN, NULL),
    FACT(
        "ecc_corrected_many", WARNING, "gpu.ecc.corrected.*", "above", "20000000",
        "{value} corrected memory errors since the driver was loaded (Azure takes a node out at 20 "
        "million)",
        "drain the node, reset the GPU; replace it when they come back"),
    FACT("remap_exhausted", WARNING, "gpu.remap.exhausted", "above", "0",
         "{value} of its memory have no spare row left", "have the GPU replaced"),
    FACT("pcie_replays", NOTE, "gpu.pcie_replays", "above", "1000",
         "{value} PCIe packets were sent again",
         "watch whether they grow; reseat the GPU or riser"),
    COST("gpu_hot", WARNING, "gpu.temperature", "over", "gpu.temperature_slow",
         "{value}, it slows down at {other}", "check fans, air flow and coolant", NOTHING, NAN,
         "hw_thermal"),
    FACT("ecc_threshold", ERROR, "gpu.ecc.threshold", "is", "Yes",
         "more SRAM errors than the limit", "have the GPU replaced"),
    FACT("ecc_repair_pending", WARNING, "gpu.ecc.repair.*", "is", "Yes",
         "a repair waits for a reset", "reset the GPU"),
    FACT("ecc_unrepairable", ERROR, "gpu.ecc.unrepairable", "is", "Yes",
         "memory that cannot be repaired", "have the GPU replaced"),
    COST("hw_power_brake", ERROR, "gpu.event.hw_power_brake", "is", "Active",
         "hardware power brake: the power supply tells the GPU to slow down",
         "check power supplies, cables and the rack's power cap", COMPUTE, 0.5, NULL),
    COST("hw_thermal", ERROR, "gpu.event.hw_thermal", "is", "Active",
         "too hot: the hardware halves the clock",
         "check fans, air flow and coolant; nvidia-smi -q -d TEMPERATURE", COMPUTE, 0.5, NULL),
    COST("hw_slowdown", ERROR, "gpu.event.hw_slowdown", "is", "Active",
         "hardware slowdown: heat or power",
         "nvidia-smi -q -d PERFORMANCE says which; check cooling and power", COMPUTE, 0.5, NULL),
    CODE("sw_thermal", WARNING, "check fans and air flow", COMPUTE, NAN, NULL),
    CODE(
        "gpu_lost", ERROR,
        "drain the node and reboot it; look for Xid 79 in dmesg; reseat or replace the GPU when it "
        "comes back",
        ALL, NAN, NULL),
    CODE("smi_failed", ERROR,
         "dmesg | grep NVRM; load or install the driver; in a container start it again with --gpus "
         "all",
         ALL, NAN, "gpu_lost"),
    CODE("driver_mismatch", ERROR,
         "the driver was updated under running modules: reboot, or unload and load the nvidia "
         "modules",
         ALL, NAN, NULL),
    COST("clocks_lowered", WARNING, "gpu.app_clock", "under", "gpu.app_default",
         "application clock {value}, the default is {other}", "nvidia-smi -rac -i {where}", COMPUTE,
         NAN, NULL),
    CODE("clock_low", WARNING,
         "nvidia-smi -q -d CLOCK,PERFORMANCE says why; nvidia-smi -rgc takes a clock lock away; "
         "check cooling and power",
         COMPUTE, NAN, "power_limit_low"),
    CODE("ecc_off", NOTE, "nvidia-smi -e 1, then reset the GPU", NOTHING, NAN, NULL),
    COST("compute_mode", ERROR, "gpu.compute_mode", "is", "Prohibited",
         "compute mode Prohibited: no program may use it", "nvidia-smi -c 0 -i {where}", ALL, NAN,
         NULL),
    FACT("compute_exclusive", NOTE, "gpu.compute_mode", "has", "Exclusive",
         "compute mode {value}: one process at a time", "nvidia-smi -c 0, if several shall share"),
    CODE("gpu_memory_held", NOTE,
         "nvidia-smi and fuser -v /dev/nvidia* show who holds it; a leftover outside of this "
         "container, if nobody does",
         NOTHING, NAN, "gpu_in_use"),
    COST("dcgm_failure", ERROR, "dcgm.failure", "any", "", "{value}",
         "drain the node; dcgmi diag -r 3 says more", ALL, NAN, NULL),
    FACT("dcgm_warning", WARNING, "dcgm.warning", "any", "", "{value}",
         "dcgmi diag -r 3 with no job on the node"),
    COST("imex_down", ERROR, "imex.domain", "not", "UP|", "IMEX domain is {value}, not UP",
         "systemctl restart nvidia-imex on all nodes of the rack; the same nodes_config.cfg on all",
         ALL, NAN, "imex_missing"),
    CODE("power_limit_low", WARNING,
         "nvidia-smi -i {where} -pl with the default, or ask who lowered it", COMPUTE, NAN, NULL),
    CODE("gpu_pcie_narrow", WARNING,
         "reseat the GPU or riser; lspci -vvv shows which link is narrow", NOTHING, NAN, NULL),
    CODE("gpu_pcie_slow", WARNING,
         "reseat the GPU or riser; check the BIOS setting of the slot's speed", NOTHING, NAN, NULL),
    FACT("fabric_state", ERROR, "gpu.fabric.state", "not", "Completed|N/A|Not Supported|",
         "NVLink fabric state {value}, not Completed",
         "systemctl status nvidia-fabricmanager; start it, or reboot the node"),
    FACT("fabric_status", ERROR, "gpu.fabric.status", "not", "Success|N/A|Not Supported|",
         "NVLink fabric status {value}, not Success",
         "restart nvidia-fabricmanager with no job on the node; look at its log"),
    FACT("fabric_health", ERROR, "gpu.fabric.health", "not", "Healthy|N/A|Not Supported|",
         "NVLink fabric health {value}",
         "nvidia-smi -q says which part; reset the GPUs of the node"),
    FACT("gpu_recovery", ERROR, "gpu.recovery", "not", "None|N/A|Not Supported|",
         "the driver asks for: {value}", "drain the node and do it"),
    FACT("gpu_reset_required", ERROR, "gpu.reset_required", "is", "Yes",
         "the driver asks for a reset", "drain the node; nvidia-smi --gpu-reset -i {where}"),
    FACT("gpu_drain", WARNING, "gpu.drain", "is", "Yes", "the driver recommends drain and reset",
         "drain the node and reset the GPU"),
    FACT("persistence_off", NOTE, "gpu.persistence", "is", "Disabled",
         "persistence mode is off: the first call of a job is slow",
         "systemctl enable --now nvidia-persistenced"),
    FACT("mig_on", NOTE, "gpu.mig", "is", "Enabled",
         "MIG is on: the GPU is cut into parts without NVLink",
         "nvidia-smi -mig 0, if training shall use all of it"),
    FACT("ecc_mode_pending", NOTE, NULL, NULL, NULL, NULL, "reset the GPU or reboot"),
    FACT("gpu_in_use", NOTE, "gpu.process", "any", "", "{value} runs on it",
         "end it before the job starts, if it is a leftover"),
    COST("nvlink_inactive", ERROR, NULL, NULL, NULL, NULL,
         "reset the GPUs of the node; replace the board or bridge when it stays", NODE, NAN, NULL),
    FACT("nvlink_recovered", WARNING, "nvlink.recovered", "any", "",
         "{value}: the link went down and came back",
         "reset the GPUs of the node; replace the board or bridge when it comes back"),
    FACT("nvlink_errors", NOTE, "nvlink.errors", "any", "", "{value}",
         "watch whether they grow: nvidia-smi nvlink -e"),
    COST("fabric_manager_down", ERROR, "service.state", "lacks", "active (running)", "{value}",
         "systemctl enable --now nvidia-fabricmanager, then reset the GPUs or reboot", ALL, NAN,
         "nvls_fabric"),
    FACT("nvlink_absent", NOTE, NULL, NULL, NULL, NULL, "none, if no NVLink bridge is fitted"),
    COST("nvlink_pair_short", WARNING, NULL, NULL, NULL, NULL,
         "nvidia-smi nvlink -s shows which link is down", NODE, NAN, NULL),
    COST("gpu_far_from_nic", WARNING, "topo.nearest_nic", "is", "SYS",
         "its nearest NIC is on another socket (SYS)",
         "use the NICs beside the GPUs; with fewer NICs than GPUs leave NCCL_PXN_DISABLE unset",
         NETWORK, NO_GDR, "gdr_distance"),
    FACT("p2p_refused", WARNING, "topo.p2p", "is", "refused",
         "the driver refuses peer access to another GPU",
         "check ACS and IOMMU; on GeForce there is none"),
    FACT("p2p_over_pcie", NOTE, NULL, NULL, NULL, NULL,
         "if P2P hangs: iommu=pt or off, ACS off on the bridges; NCCL_P2P_DISABLE=1 only to prove "
         "it"),

    /* ---- InfiniBand, RoCE, Ethernet, PCIe ---- */
    COST("rail_down", ERROR, NULL, NULL, NULL, NULL,
         "check cable and switch port; ip link set DEVICE up; ibstat", NETWORK, NAN, NULL),
    FACT("frontend_down", NOTE, NULL, NULL, NULL, NULL,
         "none, if nothing is plugged in there; keep it out of NCCL_IB_HCA and NCCL_SOCKET_IFNAME"),
    FACT("ports_many", NOTE, NULL, NULL, NULL, NULL,
         "virtual functions? show doctor the ports that the job uses: --from a folder with theirs"),
    COST(
        "rail_slow", ERROR, NULL, NULL, NULL, NULL,
        "reseat or replace the cable; check the switch port's speed: mlxlink -d DEVICE; until then "
        "NCCL_IB_HCA=^={where} on all hosts: the others may be quicker without it",
        NETWORK, NAN, NULL),
    COST("rail_narrow", WARNING, NULL, NULL, NULL, NULL,
         "reseat or replace the cable: lanes are missing", NETWORK, NAN, NULL),
    COST("rail_below_cluster", WARNING, NULL, NULL, NULL, NULL,
         "check cable, transceiver and switch port, or give the right --cluster", NETWORK, NAN,
         NULL),
    COST("ib_not_active", ERROR, NULL, NULL, NULL, NULL,
         "start the subnet manager (opensm); check that the switch knows the port", NETWORK, NAN,
         NULL),
    FACT("ib_device_unreadable", WARNING, "ib.panic", "any", "", "{value}",
         "give the container all of /dev/infiniband, or none of the device in /sys"),
    COST("nic_pcie_narrow", WARNING, "ib.pcie_width", "under", "ib.pcie_width_max",
         "PCIe width x{value} of x{other}",
         "reseat the adapter; check the slot's lanes and the BIOS", NETWORK, NAN, NULL),
    COST("nic_pcie_slow", WARNING, "ib.pcie_speed", "under", "ib.pcie_speed_max",
         "PCIe speed {value} of {other}", "check the slot's speed in the BIOS; reseat the adapter",
         NETWORK, NAN, NULL),
    FACT("ib_errors", WARNING, "ib.grew.error", "above", "0",
         "errors grew while knee looked: {value}",
         "replace the cable; look at the switch port too"),
    FACT("ib_congested", NOTE, "ib.grew.wait_share", "above", "0.1",
         "the port waited {value} of the time for the fabric",
         "look for jobs that share the fabric, and at adaptive routing"),
    COST("gid_index", ERROR, NULL, NULL, NULL, NULL,
         "unset NCCL_IB_GID_INDEX (NCCL 2.21 and newer find the RoCE v2 row themselves), before "
         "that set the row of RoCE v2 with an IPv4 address (show_gids)",
         ALL, NAN, "ib_timeout"),
    FACT("gid_index_useless", NOTE, NULL, NULL, NULL, NULL,
         "unset NCCL_IB_GID_INDEX: it is for RoCE"),
    FACT("gid_index_unusual", NOTE, NULL, NULL, NULL, NULL,
         "never set NCCL_IB_GID_INDEX=3 here; unset it with NCCL 2.21 or newer"),
    COST("ip_missing", WARNING, NULL, NULL, NULL, NULL,
         "give every RoCE port an IPv4 address in a routed subnet, or take it out of NCCL_IB_HCA",
         ALL, NAN, NULL),
    FACT("mtu_small", NOTE, NULL, NULL, NULL, NULL,
         "ip link set INTERFACE mtu 9000, on all hosts and switches alike"),
    FACT("mtu_differs", WARNING, NULL, NULL, NULL, NULL,
         "ip link set INTERFACE mtu as its fellows have it, and on the switch port"),
    COST("net_slow", WARNING, NULL, NULL, NULL, NULL,
         "reseat or replace the cable; check the switch port's speed: ethtool INTERFACE", NETWORK,
         NAN, NULL),
    FACT("net_below_mode", NOTE, NULL, NULL, NULL, NULL,
         "none, if the switch port is not faster; else cable, transceiver, auto-negotiation"),
    FACT("half_duplex", WARNING, "net.duplex", "is", "Half", "half duplex",
         "auto-negotiation on at both ends: ethtool -s INTERFACE autoneg on"),
    COST("acs_on", WARNING, NULL, NULL, NULL, NULL,
         "setpci -s BRIDGE ECAP_ACS+0x6.w=0000 as root on bare metal, or off in the BIOS", NETWORK,
         NO_GDR, "gdr_off"),
    FACT("acs_on_elsewhere", NOTE, NULL, NULL, NULL, NULL,
         "none, unless a GPU lies behind it (lspci -t)"),
    FACT("iommu_translates", WARNING, NULL, NULL, NULL, NULL,
         "boot with iommu=pt, or with the IOMMU off"),
    COST("gdr_off", WARNING, NULL, NULL, NULL, NULL,
         "modprobe nvidia-peermem, or the open driver with kernel 5.12 and newer (DMA-BUF); keep "
         "ACS off",
         NETWORK, NO_GDR, "gdr_peermem_name"),
    COST("gdr_peermem_name", WARNING, NULL, NULL, NULL, NULL,
         "NCCL 2.23.4 or newer, or DMA-BUF: NCCL up to 2.22.3 looks only under "
         "/sys/kernel/mm/memory_peers",
         NETWORK, NO_GDR, "gdr_off"),

    /* ---- The kernel's log ---- */
    CODE("xid_hardware", ERROR,
         "drain the node; reset the GPU or reboot; have it replaced when it comes back", ALL, NAN,
         NULL),
    CODE("xid_nvlink", ERROR,
         "drain the node, reset all GPUs of it; check NVLink and fabric manager", ALL, NAN,
         "nvls_fabric"),
    CODE("xid_driver", ERROR, "reboot the node; newer driver and firmware", ALL, NAN, NULL),
    CODE("xid_application", WARNING,
         "a fault of the program on that GPU, not of the hardware: compute-sanitizer", NOTHING, NAN,
         NULL),
    CODE("xid_consequence", NOTE, "look for the first Xid: this one follows from it", NOTHING, NAN,
         NULL),
    CODE("xid_other", WARNING, "look it up in NVIDIA's Xid catalogue", NOTHING, NAN, NULL),
    CODE("sxid_fatal", ERROR,
         "drain the node and reboot; have the NVSwitch board checked when it comes back", ALL, NAN,
         "nvls_fabric"),
    CODE("sxid_nonfatal", WARNING,
         "look at it with the next maintenance: NVSwitch ports report errors again and again",
         NOTHING, NAN, NULL),
    CODE("sxid_few", NOTE, "none, while there are few of them", NOTHING, NAN, NULL),
    LOG("host_out_of_memory", ERROR, "kernel.oom",
        "less host memory per rank (loader workers, pinned buffers), or a larger limit", ALL, NAN,
        NULL),
    LOG("nccl_segfault", ERROR, "kernel.nccl_segfault",
        "newer NCCL; ulimit -s 8192 if the stack is unlimited", ALL, NAN, NULL),
    LOG("kernel_panic", ERROR, "kernel.panic",
        "send the record in /sys/fs/pstore to the vendor; take the node out", ALL, NAN, NULL),
    LOG("peermem_context", NOTE, "kernel.peermem_context",
        "none: a process died while its GPU memory was registered", NOTHING, NAN, NULL),
    LOG("mkey_limits", ERROR, "kernel.mkey",
        "fewer registrations (NCCL_LOCAL_REGISTER=0, fewer communicators), newer adapter firmware",
        ALL, NAN, NULL),
    LOG("pcie_limited", WARNING, "kernel.pcie_limited",
        "reseat the card; the slot gives fewer lanes or less speed than the card has", NETWORK, NAN,
        NULL),
    LOG("cable_unplugged", NOTE, "kernel.cable", "none, if the port is not used", NOTHING, NAN,
        NULL),
    LOG("aer_uncorrected", ERROR, "kernel.aer_uncorrected",
        "take the node out; reseat or replace the device", ALL, NAN, NULL),
    LOG("aer_corrected", NOTE, "kernel.aer_corrected",
        "watch it: a link that retrains becomes slow before it fails", NOTHING, NAN, NULL),
    LOG("gpu_init_failed", ERROR, "kernel.gpu_init", "reboot; reseat or replace the GPU", ALL, NAN,
        NULL),
    LOG("amd_gpu_reset", ERROR, "kernel.amd_reset",
        "reboot the node; newer driver and firmware; have the GPU checked when it comes back", ALL,
        NAN, NULL),
    LOG("amd_ras", ERROR, "kernel.amd_ras",
        "drain the node and reset the GPU; have it replaced when it comes back", ALL, NAN, NULL),
    CODE("link_flaps", WARNING,
         "reseat or replace the cable or transceiver; look at the switch port's log", NOTHING, NAN,
         "port_flap"),
    LOG("module_error", ERROR, "kernel.module", "reseat or replace the transceiver or cable",
        NETWORK, NAN, "rail_down"),
    LOG("nic_hot", WARNING, "kernel.nic_hot", "check fans and air flow of the adapter", NOTHING,
        NAN, NULL),
    LOG("cpu_hot", WARNING, "kernel.cpu_hot",
        "check the fans; loaders and launches slow down with the CPU", NOTHING, NAN, NULL),
    LOG("machine_check", WARNING, "kernel.mce",
        "look at it with mcelog or rasdaemon; take the node out when they grow", NOTHING, NAN,
        NULL),
    LOG("hung_task", WARNING, "kernel.hung_task", "look at what it waits for: storage, mostly",
        NOTHING, NAN, NULL),
    LOG("soft_lockup", WARNING, "kernel.soft_lockup", "newer driver; look at what ran on that CPU",
        NOTHING, NAN, NULL),
    LOG("nic_health", ERROR, "kernel.nic_health", "reset or replace the adapter: mlxfwreset",
        NETWORK, NAN, NULL),

    /* ---- Limits and the rest of the host ---- */
    CODE(
        "memlock_low", WARNING,
        "ulimit -l unlimited: LimitMEMLOCK=infinity in the service, --ulimit memlock=-1 for docker",
        ALL, NAN, NULL),
    CODE("nofile_low", NOTE, "ulimit -n 131072 for large jobs", NOTHING, NAN, NULL),
    FACT("stack_unlimited", NOTE, "limit.stack_bytes", "is", "unlimited",
         "stack size unlimited: threads get 2 MB and NCCL's search may crash", "ulimit -s 8192"),
    CODE("shm_small", WARNING,
         "docker run --shm-size=1g (or --ipc=host); in Kubernetes an emptyDir with medium Memory "
         "on /dev/shm",
         ALL, NAN, "shm_full"),
    FACT("numa_balancing", NOTE, "kernel.numa_balancing", "above", "0",
         "the kernel moves pages between NUMA nodes", "sysctl kernel.numa_balancing=0"),
    FACT("governor", NOTE, "cpu.governor", "not", "performance|", "CPU governor {value}",
         "cpupower frequency-set -g performance"),
    CODE("cpu_quota", WARNING, "give the container more CPUs: two for each GPU beside the loaders",
         NOTHING, NAN, NULL),
    FACT("cpu_throttled", WARNING, "cgroup.throttled", "above", "0.05",
         "the container used up its CPU quota in {value} of all periods",
         "give the container more CPUs, or no limit"),
    FACT("cpu_pressure", WARNING, "pressure.cpu", "above", "20",
         "tasks wait for a CPU {value} % of the time",
         "fewer loader workers or other jobs; more CPUs"),
    FACT("cpu_steal", WARNING, "cpu.steal", "above", "0.05",
         "{value} of the CPU time went to other machines of this host", "ask for dedicated CPUs"),
    CODE("clock_skew", WARNING,
         "systemctl status chronyd: let all hosts take the time from one source", NOTHING, NAN,
         NULL),
    CODE("clock_unsynchronised", WARNING,
         "systemctl enable --now chronyd; chronyc makestep: logs and timeouts of hosts cannot be "
         "compared",
         NOTHING, NAN, "clock_skew"),
    CODE("hosts_differ", WARNING, "make the named hosts like the others", NOTHING, NAN, NULL),
    CODE("hosts_differ_slightly", NOTE,
         "make the named hosts like the others with the next maintenance", NOTHING, NAN, NULL),
    CODE("rails_differ", ERROR,
         "the named hosts have fewer or slower ports: every ring goes at their rate", NETWORK, NAN,
         NULL),
    CODE("slow_host", WARNING,
         "look at its ports, cables, MTU and other jobs; take it out of the job until then",
         NETWORK, NAN, "rail_slow"),
    CODE("slow_link", WARNING,
         "look at the switches between the two; knee bench --pairs shows the whole map", NETWORK,
         NAN, NULL),
    CODE("affinity_far", WARNING,
         "start each rank on the CPUs of its GPU: numactl --cpunodebind, srun --cpu-bind, mpirun "
         "--bind-to numa",
         NOTHING, NAN, NULL),

    /* ---- NCCL's environment ---- */
    CODE("env_misspelt", WARNING, "correct the name: NCCL ignores it in silence", NOTHING, NAN,
         NULL),
    CODE("env_unknown", NOTE, "take it out, unless a plugin reads it", NOTHING, NAN, NULL),
    CODE("env_gone", NOTE, "take it out: this NCCL ignores it", NOTHING, NAN, NULL),
    CODE("env_too_new", WARNING, "newer NCCL, or take it out: this one ignores it", NOTHING, NAN,
         NULL),
    CODE("env_not_a_number", WARNING, "write 0 or 1 (or the number)", NOTHING, NAN, NULL),
    CODE("env_octal", NOTE, "write the number without the leading 0", NOTHING, NAN, NULL),
    CODE("env_bad_level", WARNING, "one of LOC NVL PIX PXB PHB SYS, in capitals", NOTHING, NAN,
         NULL),
    CODE("env_bad_word", WARNING, "one of the words in NCCL's manual", NOTHING, NAN, NULL),
    CODE("env_out_of_range", WARNING, "a value that the field behind it can hold", NOTHING, NAN,
         NULL),
    CODE("env_blank_name", WARNING, "no blanks and no export before = in NCCL's files", NOTHING,
         NAN, NULL),
    CODE("env_tilde", WARNING, "write the whole path: NCCL does not expand ~", NOTHING, NAN, NULL),
    CODE("env_renamed", NOTE, "TORCH_NCCL_... is its name now", NOTHING, NAN, NULL),
    CODE("env_overridden", NOTE,
         "take the line out of the file, or the variable out of the environment", NOTHING, NAN,
         NULL),
    COST("p2p_disabled", WARNING, NULL, NULL, NULL, NULL,
         "unset NCCL_P2P_DISABLE and NCCL_P2P_LEVEL (keep it only where P2P hangs: GeForce, ACS)",
         SHM, NAN, "p2p_unsupported"),
    COST("shm_disabled", WARNING, "env.NCCL_SHM_DISABLE", "above", "0",
         "NCCL_SHM_DISABLE={value}: GPUs without P2P talk over the network inside the node",
         "unset NCCL_SHM_DISABLE; make /dev/shm larger if that was the reason", NOTHING, NAN, NULL),
    COST("ib_disabled", WARNING, NULL, NULL, NULL, NULL, "unset NCCL_IB_DISABLE and NCCL_NET",
         SOCKET, NAN, NULL),
    COST("gdr_level_off", WARNING, NULL, NULL, NULL, NULL, "unset NCCL_NET_GDR_LEVEL", NETWORK,
         NO_GDR, NULL),
    COST("dmabuf_off", NOTE, "env.NCCL_DMABUF_ENABLE", "is", "0",
         "NCCL_DMABUF_ENABLE=0: GPUDirect RDMA only with nvidia-peermem", "unset it", NOTHING, NAN,
         NULL),
    COST("nvls_off", NOTE, "env.NCCL_NVLS_ENABLE", "is", "0",
         "NCCL_NVLS_ENABLE=0: no reduction in the NVLink switch",
         "unset it where fabric manager is healthy", NVLS, NAN, NULL),
    COST("nvls_forced", WARNING, "env.NCCL_NVLS_ENABLE", "is", "1",
         "NCCL_NVLS_ENABLE=1: the job fails where NVLS has no resources (2, the default, falls "
         "back)",
         "unset NCCL_NVLS_ENABLE; check fabric manager and IMEX", ALL, NAN, "nvls_fabric"),
    COST("cumem_off", NOTE, "env.NCCL_CUMEM_ENABLE", "is", "0",
         "NCCL_CUMEM_ENABLE=0: no NVLS, no NVLink between nodes (NVL72)", "unset it", NVLS, NAN,
         NULL),
    FACT("mnnvl_off", NOTE, "env.NCCL_MNNVL_ENABLE", "is", "0",
         "NCCL_MNNVL_ENABLE=0: NVLink between nodes is not used", "unset it on NVL72"),
    FACT("pxn_disabled", NOTE, "env.NCCL_PXN_DISABLE", "above", "0",
         "NCCL_PXN_DISABLE={value}: all-to-all leaves its rail", "unset it"),
    FACT("p2p_direct_off", NOTE, "env.NCCL_P2P_DIRECT_DISABLE", "above", "0",
         "NCCL_P2P_DIRECT_DISABLE={value}: GPUs of one process copy through buffers", "unset it"),
    FACT("ras_off", NOTE, "env.NCCL_RAS_ENABLE", "is", "0",
         "NCCL_RAS_ENABLE=0: nothing tells which rank hangs", "unset it"),
    FACT("mismatch_ignored", WARNING, "env.NCCL_IGNORE_NET_MISMATCH", "above", "0",
         "NCCL_IGNORE_NET_MISMATCH={value} hides that nodes have different networks",
         "unset it and give all nodes the same adapters"),
    FACT("p2p_warning_hidden", WARNING, "env.NCCL_IGNORE_DISABLED_P2P", "above", "0",
         "NCCL_IGNORE_DISABLED_P2P={value} hides a broken NVLink",
         "unset it; nvidia-smi nvlink -s"),
    FACT("ib_timeout_short", WARNING, NULL, NULL, NULL, NULL,
         "unset NCCL_IB_TIMEOUT (20 since 2.23), or 22 for large fabrics"),
    FACT("ib_retry_none", WARNING, "env.NCCL_IB_RETRY_CNT", "is", "0",
         "NCCL_IB_RETRY_CNT=0: one lost packet ends the job", "unset it (7)"),
    FACT("ib_retry_invalid", WARNING, "env.NCCL_IB_RETRY_CNT", "above", "7",
         "NCCL_IB_RETRY_CNT={value}: the field has 3 bits, 7 is the most", "unset it (7)"),
    FACT("roce_version_crash", WARNING, NULL, NULL, NULL, NULL,
         "newer NCCL, or unset NCCL_IB_ROCE_VERSION_NUM (NVIDIA/nccl#1538)"),
    FACT("qps_one_on_roce", NOTE, NULL, NULL, NULL, NULL,
         "NCCL_IB_QPS_PER_CONNECTION=4 where the fabric spreads flows by hash"),
    FACT("ar_threshold", NOTE, NULL, NULL, NULL, NULL,
         "NCCL_IB_AR_THRESHOLD below NCCL_BUFFSIZE, or unset"),
    FACT("socket_threads", WARNING, NULL, NULL, NULL, NULL,
         "NCCL_SOCKET_NTHREADS at most 16, times NCCL_NSOCKS_PERTHREAD at most 64"),
    FACT("channels_few", WARNING, NULL, NULL, NULL, NULL,
         "unset NCCL_MAX_NCHANNELS and NCCL_MAX_CTAS, or 16 and more"),
    FACT("channels_contradict", WARNING, NULL, NULL, NULL, NULL, "unset both; NCCL chooses"),
    FACT("channels_both_names", NOTE, NULL, NULL, NULL, NULL,
         "keep NCCL_MIN_CTAS and NCCL_MAX_CTAS (2.17 and newer)"),
    FACT("algo_forced", NOTE, "env.NCCL_ALGO", "any", "", "NCCL_ALGO={value} is set",
         "unset it, unless it was measured to be quicker"),
    FACT("proto_forced", NOTE, NULL, NULL, NULL, NULL,
         "unset NCCL_PROTO, unless it was measured to be quicker"),
    FACT("proto_ll128", WARNING, NULL, NULL, NULL, NULL,
         "unset NCCL_PROTO: LL128 corrupts data on links that do not support it"),
    FACT("buffsize_odd", NOTE, NULL, NULL, NULL, NULL, "a power of two"),
    FACT("nthreads_odd", WARNING, NULL, NULL, NULL, NULL, "64, 128, 256 or 512"),
    CODE("net_contradict", ERROR, "unset NCCL_IB_DISABLE, or NCCL_NET", ALL, NAN, "net_not_found"),
    FACT("algo_contradict", WARNING, NULL, NULL, NULL, NULL,
         "unset one of the two: since 2.24 NCCL fails where no algorithm is left"),
    FACT("mnnvl_contradict", WARNING, NULL, NULL, NULL, NULL, "unset NCCL_CUMEM_ENABLE"),
    FACT("graph_contradict", WARNING, NULL, NULL, NULL, NULL, "unset one of the two"),
    FACT("debug_left_on", NOTE, NULL, NULL, NULL, NULL, "NCCL_DEBUG=WARN in production"),
    FACT("debug_file_shared", NOTE, NULL, NULL, NULL, NULL,
         "NCCL_DEBUG_FILE with %h and %p in it: ranks overwrite each other"),
    FACT("cross_nic_set", NOTE, NULL, NULL, NULL, NULL,
         "1 only where all NICs meet in one switch, 0 only on rail-only fabrics; else unset"),
    CODE("wrong_interface", WARNING,
         "NCCL_SOCKET_IFNAME with the name of a routed interface, for example =eth0", ALL, NAN,
         "peer_unreachable"),
    CODE("interface_absent", ERROR,
         "name an interface that is there (ip -br link), or unset NCCL_SOCKET_IFNAME", ALL, NAN,
         "version_mismatch"),
    CODE("interface_prefix", NOTE, "put = before the name: =eth0", NOTHING, NAN, NULL),
    CODE("hca_absent", ERROR,
         "name adapters that are there (ibstat -l), or unset NCCL_IB_HCA; RDMA may not be switched "
         "on for the container",
         SOCKET, NAN, "ib_absent"),
    CODE("hca_prefix", WARNING, "put = before the list: NCCL_IB_HCA==mlx5_1", NOTHING, NAN, NULL),
    CODE("hca_prefix_maybe", NOTE, "put = before the list where there are ten adapters and more",
         NOTHING, NAN, NULL),
    FACT("launch_blocking", ERROR, "env.CUDA_LAUNCH_BLOCKING", "is", "1",
         "CUDA_LAUNCH_BLOCKING=1: every kernel is waited for, nothing overlaps",
         "unset it: it is for debugging"),
    FACT("max_connections", NOTE, "env.CUDA_DEVICE_MAX_CONNECTIONS", "is", "1",
         "CUDA_DEVICE_MAX_CONNECTIONS=1: right for Megatron's tensor parallelism before Blackwell, "
         "kills the overlap of DDP and FSDP",
         "unset it unless Megatron asks for it"),
    CODE("distributed_debug", WARNING, "unset it: it is for debugging", NOTHING, NAN, NULL),
    FACT("async_errors_off", NOTE, "env.TORCH_NCCL_ASYNC_ERROR_HANDLING", "is", "0",
         "TORCH_NCCL_ASYNC_ERROR_HANDLING=0: a rank that fails leaves the others hanging",
         "unset it"),
    CODE("no_gpu_visible", WARNING, "set it to the GPUs of this rank, or unset it", ALL, NAN,
         "gpu_unavailable"),
    CODE("gpu_visible_twice", WARNING, "name every GPU once", ALL, NAN, "duplicate_gpu"),
    FACT("blocking_wait", WARNING, "env.TORCH_NCCL_BLOCKING_WAIT", "is", "1",
         "TORCH_NCCL_BLOCKING_WAIT=1: the host waits for each collective", "unset it"),
    FACT("plugin_preloaded", NOTE, "env.LD_PRELOAD", "has", "libnccl-net",
         "LD_PRELOAD={value}: NCCL opens the plugin itself",
         "put its folder on LD_LIBRARY_PATH instead"),
    FACT("omp_one", NOTE, "env.OMP_NUM_THREADS", "is", "1",
         "OMP_NUM_THREADS=1: torchrun's default; slow where the loader uses threads of the host",
         "set it to the cores of a rank"),
    CODE("fi_provider_slow", WARNING, "FI_PROVIDER=efa on AWS, or unset it", SOCKET, NAN,
         "efa_absent"),
    FACT("efa_no_rdma", NOTE, NULL, NULL, NULL, NULL,
         "FI_EFA_USE_DEVICE_RDMA=1 on p4d and p5 (libfabric before 1.18)"),

    /* ---- NCCL's log ---- */
    COST("ib_absent", WARNING, NULL, NULL, NULL, NULL,
         "turn RDMA on for the job (device plugin, --device=/dev/infiniband); then leave "
         "NCCL_IB_DISABLE alone",
         SOCKET, NAN, "libibverbs_missing"),
    CODE("socket_only", NOTE,
         "none, if the cluster has no RDMA; else install libibverbs and pass /dev/infiniband",
         SOCKET, NAN, NULL),
    COST("libibverbs_missing", WARNING, NULL, NULL, NULL, NULL,
         "apt-get install libibverbs1 (rdma-core) in the image; on AWS put aws-ofi-nccl's "
         "libnccl-net.so on LD_LIBRARY_PATH",
         SOCKET, NAN, "efa_plugin_missing"),
    COST("efa_plugin_missing", WARNING, NULL, NULL, NULL, NULL,
         "install aws-ofi-nccl and put its libnccl-net.so on LD_LIBRARY_PATH", SOCKET, NAN, NULL),
    LOG("efa_absent", WARNING, "log.efa_absent",
        "pass the EFA devices into the container: --device=/dev/infiniband/uverbs0 and so on",
        SOCKET, NAN, "wrong_interface"),
    LOG("ofi_failed", ERROR, "log.ofi_failed",
        "fi_info -p efa must list devices; libfabric, aws-ofi-nccl and the EFA driver of one "
        "release",
        ALL, NAN, "efa_absent"),
    CODE("network_mismatch", ERROR,
         "the same network on all nodes: install libibverbs on those that say Socket", ALL, NAN,
         "libibverbs_missing"),
    LOG("shm_full", ERROR, "log.shm_full",
        "docker run --shm-size=1g (or --ipc=host); in Kubernetes an emptyDir with medium Memory on "
        "/dev/shm",
        ALL, NAN, NULL),
    LOG("nvls_fabric", ERROR, "log.nvls_fabric",
        "restart nvidia-fabricmanager with the GPUs idle, or reboot the node; NCCL_NVLS_ENABLE=0 "
        "until then",
        ALL, NAN, NULL),
    LOG("duplicate_gpu", ERROR, "log.duplicate_gpu",
        "one rank per GPU: set the device by local rank; check CUDA_VISIBLE_DEVICES", ALL, NAN,
        NULL),
    LOG("nvlink_broken", ERROR, "log.nvlink_broken",
        "nvidia-smi nvlink -s and -e; reset or replace the GPU; NCCL_IGNORE_DISABLED_P2P=1 only "
        "hides it",
        SHM, NAN, NULL),
    LOG("p2p_unsupported", WARNING, "log.p2p_unsupported",
        "none on GeForce (NCCL_P2P_DISABLE=1 where the job fails); else check ACS, IOMMU and "
        "nvidia-smi topo -p2p r",
        SHM, NAN, "p2p_disabled"),
    LOG("version_too_old", ERROR, "log.version_too_old",
        "newer NCCL (or framework build): this one does not know the GPU", ALL, NAN,
        "driver_too_old"),
    LOG("driver_too_old", ERROR, "log.driver_too_old",
        "newer driver, or a framework built for an older CUDA", ALL, NAN, NULL),
    LOG("env_mismatch", ERROR, "log.env_mismatch",
        "the same NCCL_* variables and the same NCCL on all nodes", ALL, NAN, "version_mismatch"),
    CODE("env_differs", WARNING,
         "the same NCCL_* variables on all ranks: pass them through the launcher", ALL, NAN,
         "env_mismatch"),
    CODE("version_mismatch", ERROR, "the same NCCL on all nodes", ALL, NAN, NULL),
    LOG("device_unusable", WARNING, "log.device_unusable",
        "give all containers the same adapters; unset NCCL_IGNORE_NET_MISMATCH", ALL, NAN,
        "env_mismatch"),
    LOG("port_flap", ERROR, "log.port_flap",
        "look at link_downed of that port; change cable or transceiver; check the switch port", ALL,
        NAN, "ib_timeout"),
    CODE("ib_timeout", ERROR,
         "ib_write_bw between the two GIDs; check routing and PFC; a RoCE v2 GID (leave "
         "NCCL_IB_GID_INDEX unset since 2.21); raise NCCL_IB_TIMEOUT only when the fabric is sound",
         ALL, NAN, "gid_index"),
    CODE("ib_not_ready", ERROR,
         "the receiver was not ready: a hung rank, or too few receive buffers; look for the rank "
         "that stopped first",
         ALL, NAN, NULL),
    CODE("ib_access", ERROR,
         "a wrong memory registration: check nvidia-peermem against the driver, ACS and IOMMU", ALL,
         NAN, "gdr_off"),
    CODE("ib_flushed", NOTE,
         "look for the first completion error, from which this one follows; alone: GPUDirect RDMA "
         "is "
         "broken (peermem, ACS, IOMMU)",
         NOTHING, NAN, "gdr_off"),
    LOG("cross_nic", ERROR, "log.cross_nic",
        "NCCL_CROSS_NIC=0 where rails do not reach each other; else route between the subnets of "
        "the ports",
        ALL, NAN, "ib_timeout"),
    CODE("gdr_distance", WARNING,
         "use a NIC on the GPU's PCIe switch; NCCL_NET_GDR_LEVEL=SYS only as a trial", NETWORK,
         NO_GDR, NULL),
    LOG("gdr_unsupported", WARNING, "log.gdr_unsupported",
        "none on this instance type: p4d, p5 and newer have GPUDirect RDMA", NETWORK, NO_GDR, NULL),
    CODE("gdr_partial", WARNING,
         "check which adapters lack GPUDirect RDMA: NET/IB lines of NCCL_DEBUG=INFO, "
         "NCCL_DEBUG_SUBSYS=NET",
         NETWORK, NO_GDR, "env_mismatch"),
    CODE("extra_nic", WARNING, "keep the slow device out: NCCL_IB_HCA=^DEVICE", NETWORK, 0.5, NULL),
    LOG("plugin_too_old", WARNING, "log.plugin_too_old",
        "a network plugin built for this NCCL: the one found is not used", NOTHING, NAN,
        "version_mismatch"),
    CODE("peer_unreachable", ERROR,
         "NCCL_SOCKET_IFNAME with a routed interface; open the firewall between the nodes", ALL,
         NAN, "wrong_interface"),
    LOG("peer_died", NOTE, "log.peer_died",
        "look at the rank that stopped first: this follows from it", NOTHING, NAN, NULL),
    LOG("sysfs_topology", ERROR, "log.sysfs_topology",
        "newer NCCL, or a machine that shows its PCI tree; NCCL_TOPO_FILE", ALL, NAN, NULL),
    LOG("kernel_flags", WARNING, "log.kernel_flags", "boot with iommu=pt (and amd_iommu=on)",
        NOTHING, NAN, NULL),
    LOG("hsa_variable", NOTE, "log.hsa_variable", "set the variable that the line names", NOTHING,
        NAN, "kernel_flags"),
    LOG("net_not_found", ERROR, "log.net_not_found", "correct NCCL_NET and NCCL_NET_PLUGIN", ALL,
        NAN, NULL),
    LOG("gpu_memory_full", ERROR, "log.gpu_memory",
        "leave NCCL some memory: fewer communicators or channels, smaller NCCL_BUFFSIZE", ALL, NAN,
        NULL),
    LOG("invalid_device", ERROR, "log.invalid_device",
        "set the device by local rank; check CUDA_VISIBLE_DEVICES", ALL, NAN, NULL),
    LOG("cuda_failure", ERROR, "log.cuda_failure",
        "look for the first error of this rank; a driver that fits the CUDA of the framework; "
        "dmesg for Xids",
        ALL, NAN, "driver_too_old"),
    LOG("registration_refused", ERROR, "log.registration",
        "nvidia-peermem or DMA-BUF that fits driver and OFED; NCCL_IB_PCI_RELAXED_ORDERING=0 or "
        "NCCL_NET_GDR_LEVEL=LOC as a trial",
        ALL, NAN, "gdr_off"),
    LOG("hosts_confused", ERROR, "log.hosts_confused",
        "ranks that NCCL takes for one host do not share /dev/shm: give their containers one IPC "
        "namespace (--ipc=host), or another NCCL_HOSTID each",
        ALL, NAN, "shm_full"),
    CODE("imex_missing", ERROR,
         "NVLink between nodes needs IMEX: nvidia-imex-ctl -N must say UP, every container needs "
         "the "
         "same /dev/nvidia-caps-imex-channels/channel0; NCCL_MNNVL_ENABLE=0 until then",
         ALL, NAN, "nvls_fabric"),
    LOG("cumem_refused", ERROR, "log.cumem_refused",
        "the container forbids a call of CUDA: docker run --cap-add SYS_NICE (NUMA calls), or "
        "NCCL_CUMEM_HOST_ENABLE=0; raise the limit of locked memory",
        ALL, NAN, NULL),
    LOG("gpu_unavailable", ERROR, "log.gpu_unavailable",
        "another process holds the GPU, or it is not visible: nvidia-smi, compute mode (nvidia-smi "
        "-c 0), CUDA_VISIBLE_DEVICES",
        ALL, NAN, "invalid_device"),
    LOG("gid_changed", WARNING, "log.gid_changed",
        "keep the addresses of RoCE ports as they are while a job runs (DHCP, NetworkManager, "
        "containers that come and go); leave NCCL_IB_GID_INDEX unset since 2.21",
        ALL, NAN, "ib_timeout"),
    LOG("graph_file_wrong", ERROR, "log.graph_file",
        "unset NCCL_GRAPH_FILE (look into /etc/nccl.conf too): it was written for other GPUs", ALL,
        NAN, NULL),
    LOG("rank_count", ERROR, "log.rank_count",
        "start every rank once, with one world size: look for leftovers of another job on the same "
        "port",
        ALL, NAN, "env_mismatch"),
    LOG("stranger_connects", ERROR, "log.stranger",
        "something else reached NCCL's port: two hosts with one address or name, a leftover of "
        "another job, a port scanner; NCCL_SOCKET_IFNAME with an address of its own on each host",
        ALL, NAN, "wrong_interface"),
    LOG("threads_refused", ERROR, "log.threads",
        "more processes: ulimit -u, pids.max of the container", ALL, NAN, NULL),
    LOG("efa_fork", WARNING, "log.efa_fork",
        "FI_EFA_FORK_SAFE=1 (RDMAV_FORK_SAFE=1 before libfabric 1.13), or a newer kernel", NOTHING,
        NAN, NULL),
    LOG("topology_broken", ERROR, "log.topology_broken",
        "NCCL 2.27.3 or newer: 2.25 and 2.26 lose adapters of other nodes; the same adapters on "
        "all "
        "nodes",
        ALL, NAN, "env_mismatch"),
    LOG("topo_file_wrong", ERROR, "log.topo_file",
        "correct or unset NCCL_TOPO_FILE (plugins bring one of their own): it lacks what this NCCL "
        "reads",
        ALL, NAN, "graph_file_wrong"),
    LOG("no_algorithm", ERROR, "log.no_algorithm",
        "unset NCCL_ALGO and NCCL_PROTO: what they ask for is not there", ALL, NAN,
        "algo_contradict"),
    LOG("topology_poor", WARNING, "log.topology_poor",
        "NCCL found no ring that fits: in a VM give it NCCL_TOPO_FILE; else check P2P, ACS and "
        "which NICs it may use",
        NOTHING, NAN, "p2p_disabled"),
    LOG("libcuda_missing", WARNING, "log.libcuda",
        "put the driver's libcuda.so on LD_LIBRARY_PATH (a link without .1)", NOTHING, NAN, NULL),
    LOG("other_warning", NOTE, "log.other_warning", "none that knee knows: read the line", NOTHING,
        NAN, NULL),
    LOG("app_fault", WARNING, "log.app_fault", "a fault of the program: compute-sanitizer", NOTHING,
        NAN, NULL),
    LOG("collective_timeout", WARNING, "log.timeout",
        "find the rank that did not come: TORCH_NCCL_TRACE_BUFFER_SIZE, py-spy", ALL, NAN, NULL),
};
#define RULES (sizeof rules / sizeof *rules)

const struct knee_rule *knee_rule_at(size_t row)
{
    return row < RULES ? &rules[row] : NULL;
}

const struct knee_rule *knee_rule_of(const char *id)
{
    for (size_t i = 0; i < RULES; i++)
        if (strcmp(rules[i].id, id) == 0)
            return &rules[i];
    return NULL;
}

/* ---- Judging a row ---- */

/* "a|b|c" has the value; an empty alternative at the end stands for an empty value. */
static bool one_of(const char *list, const char *value)
{
    struct knee_slice rest = knee_slice_of(list), piece;
    while (knee_slice_until(&rest, '|', &piece))
        if (knee_slice_is(piece, value))
            return true;
    return value[0] == '\0';
}

/* Against a number, or another fact of the same subject. Half a per cent is measuring. */
static bool compare(const struct knee_fact *fact, double other, bool above)
{
    return above ? fact->number > other * 1.005 : fact->number < other * 0.995;
}

static bool holds(const struct knee_facts *facts, const struct knee_rule *rule,
                  const struct knee_fact *fact, const struct knee_fact **other)
{
    double limit = NAN;
    if (strcmp(rule->test, "is") == 0)
        return strcmp(fact->value, rule->limit) == 0;
    if (strcmp(rule->test, "not") == 0)
        return !one_of(rule->limit, fact->value);
    if (strcmp(rule->test, "has") == 0)
        return strstr(fact->value, rule->limit) != NULL;
    if (strcmp(rule->test, "lacks") == 0)
        return !strstr(fact->value, rule->limit);
    if (strcmp(rule->test, "any") == 0)
        return fact->value[0] != '\0';
    if (strcmp(rule->test, "over") == 0 || strcmp(rule->test, "under") == 0) {
        *other = knee_fact_find(facts, fact->subject, rule->limit);
        return *other && compare(fact, (*other)->number, rule->test[0] == 'o');
    }
    knee_slice_number(knee_slice_of(rule->limit), &limit);
    return strcmp(rule->test, "above") == 0 ? fact->number > limit : fact->number < limit;
}

/* What a fact's number says when it was counted; its value otherwise. */
static const char *fill(const struct knee_rule *rule, const struct knee_fact *fact,
                        const struct knee_fact *other, char *out, size_t size)
{
    size_t used = 0;
    for (const char *at = rule->says; *at && used + 1 < size;) {
        const char *piece = NULL;
        size_t skip = 0;
        if (strncmp(at, "{value}", 7) == 0)
            piece = fact->value, skip = 7;
        else if (strncmp(at, "{other}", 7) == 0)
            piece = other ? other->value : "", skip = 7;
        else if (strncmp(at, "{where}", 7) == 0)
            piece = fact->subject, skip = 7;
        if (!piece) {
            out[used++] = *at++;
            continue;
        }
        for (; *piece && used + 1 < size; piece++)
            out[used++] = *piece;
        at += skip;
    }
    out[used] = '\0';
    return out;
}

static void check_row(struct knee_exam *exam, const struct knee_rule *rule)
{
    size_t first, end = knee_facts_range(exam->facts, rule->key, &first);
    for (size_t i = first; i < end; i++) {
        const struct knee_fact *fact = &exam->facts->rows[i], *other = NULL;
        char evidence[320];
        if (!holds(exam->facts, rule, fact, &other))
            continue;
        double left = other ? fact->number / other->number : NAN;
        knee_blame_rule(exam, rule, rule->severity, fact->subject, left,
                        fill(rule, fact, other, evidence, sizeof evidence));
    }
}

void knee_check_rows(struct knee_exam *exam, const struct knee_rule *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].key)
            check_row(exam, &rows[i]);
}

void knee_check_table(struct knee_exam *exam)
{
    knee_check_rows(exam, rules, RULES);
}
