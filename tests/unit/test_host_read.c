/* SPDX-License-Identifier: MIT */
/*
 * Readers of what a host prints: a few lines of every output, odd ones among them, and all the
 * facts that must come of it. Laws: a reader takes its own outputs only, and adds nothing when it
 * says no; facts that are written and read again are the same; what no memory is left for is said.
 */
#include "base/text.h"
#include "out/answer.h"
#include "read/host/host_read.h"
#include "say/answers.h"
#include "unit.h"

struct sample {
    knee_host_reader *reader;
    const char *text;
    const char *facts; /* "subject|key|value", a line each, in order; NULL: it is not such an output
                        */
};

#define X(name) knee_read_##name

static const struct sample samples[] = {
    /* ---- nvidia-smi -q ---- */
    {X(smi_text),
     "==============NVSMI LOG==============\n\n"
     "Driver Version                            : 550.54\n"
     "Attached GPUs                             : 2\n"
     "GPU 00000000:19:00.0\n"
     "    Product Name                          : NVIDIA H100\n"
     "    Retired Pages\n"
     "        Single Bit ECC                    : 2\n"
     "        Double Bit ECC                    : 1\n"
     "    Clocks Throttle Reasons\n"
     "\t    Idle                              : Active\n"
     "    Processes                             : None\n"
     "GPU 00000000:3B:00.0\n"
     "    Product Name                          : NVIDIA H100\n",
     "|driver|550.54\n"
     "GPU 0000:19:00.0|gpu.event.idle|Active\n"
     "GPU 0000:19:00.0|gpu.name|NVIDIA H100\n"
     "GPU 0000:3b:00.0|gpu.name|NVIDIA H100\n"
     "GPU 0000:19:00.0|gpu.retired|3\n"
     "GPU 0000:19:00.0|gpu.retired.double|1\n"
     "GPU 0000:19:00.0|gpu.retired.single|2\n"
     "|gpus.attached|2\n"
     "|gpus.listed|2\n"
     "|smi.cut_off|yes\n"},
    {X(smi_text), "Driver Version : 1\n", NULL},
    {X(smi_xml),
     "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log>\n<nvidia_smi_log>\n"
     "<driver_version>550.54</driver_version>\n<gpu id=\"00000000:06:00.0\">\n"
     "<product_name>NVIDIA H100</product_name>\n<empty/>\n<vbios_version></vbios_version>\n"
     "<clocks_throttle_reasons><clocks_throttle_reason_hw_slowdown>Not "
     "Active</clocks_throttle_reason_hw_slowdown></clocks_throttle_reasons>\n"
     "<retired_pages><double_bit_retirement><retired_count>0</retired_count>"
     "</double_bit_retirement></retired_pages>\n"
     "</gpu>\n<gpu><product_name>without an address</product_name></gpu>\n</nvidia_smi_log>\n",
     "|driver|550.54\n"
     "GPU 0000:06:00.0|gpu.event.hw_slowdown|Not Active\n"
     "GPU 0000:06:00.0|gpu.name|without an address\n"
     "GPU 0000:06:00.0|gpu.retired.double|0\n"
     "|gpus.listed|1\n"},
    {X(smi_xml), "<nvidia_smi_log><a></b></c></d><cuda_version>12.4</cuda_version",
     "|gpus.listed|0\n|smi.cut_off|yes\n"},
    {X(smi_xml), "<html></html>", NULL},
    {X(smi_table),
     "| NVIDIA-SMI 550.54   Driver Version: 550.54   CUDA Version: 12.4 |\n"
     "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:19:00.0 Off |                    0 |\n"
     "|   1  NVIDIA H100 80GB HBM3          Off |   00000000:3B:00.0 Off |                  N/A |\n"
     "|   x  NVIDIA H100                    Off |   00000000:3B:00.0 Off |                  N/A |\n"
     "|   2  NVIDIA H100                    Off |   nowhere Off |                  N/A |\n"
     "|  30C too few cells\n"
     "| Processes:                              |\n"
     "|    0   N/A  N/A      4242      C   python3          61000MiB |\n"
     "|    0   N/A  N/A      4243      G   Xorg             10MiB |\n"
     "|    0   N/A  N/A      4244    C+G   mixed            10MiB |\n"
     "|    0   N/A  N/A      4245      C\n"
     "|  No running processes found                         |\n",
     "|driver|550.54\n"
     "GPU 0000:19:00.0|gpu.ecc.uncorrected.table|0\n"
     "GPU 0000:19:00.0|gpu.name|NVIDIA H100 80GB HBM3\n"
     "GPU 0000:3b:00.0|gpu.name|NVIDIA H100 80GB HBM3\n"
     "GPU 0000:19:00.0|gpu.persistence|Enabled\n"
     "GPU 0000:3b:00.0|gpu.persistence|Disabled\n"
     "|gpu.process|mixed\n"
     "|gpus.listed|2\n"},
    {X(smi_table),
     "| NVIDIA-SMI 550.54   Driver Version: \n"
     "|   0  H100 |   00000000:19:00.0 Off |  0 |\n| Processes |\n|    0   1    M+C   both   1 |\n",
     "GPU 0000:19:00.0|gpu.ecc.uncorrected.table|0\nGPU 0000:19:00.0|gpu.name|\n"
     "GPU 0000:19:00.0|gpu.persistence|Disabled\n|gpu.process|both\n|gpus.listed|1\n"},
    {X(smi_table), "| something else |\n", NULL},
    {X(smi_metrics),
     "# HELP nvidia_smi_x\n"
     "nvidia_smi_remapped_rows_pending{uuid=\"a\"} 1\n"
     "nvidia_smi_remapped_rows_failure{uuid=\"a\"} 0\n"
     "nvidia_smi_pcie_link_width_current{uuid=\"a\"} 8\n"
     "nvidia_smi_something_else{uuid=\"a\"} 8\n"
     "nvidia_smi_pcie_link_width_max{uuid=\"a\"} many\n"
     "nvidia_smi_pcie_link_width_max\n",
     "GPU a|gpu.pcie_width|8\nGPU a|gpu.remap.failure|No\nGPU a|gpu.remap.pending|Yes\n"},
    {X(smi_metrics), "nvidia_smi_ is what the metrics begin with\n", NULL},
    {X(smi_csv),
     "name, driver_version, remapped_rows.pending, remapped_rows.failure, power.limit [W], "
     "clocks_event_reasons.active, else\n"
     "H100, 550.54, 1, 0, 700.00 W, 0x0000000000000088, 1\n"
     "H100, 550.54, 0, 1, 700.00 W\n",
     "|driver|550.54\n"
     "GPU 0|gpu.event.hw_power_brake|Active\n"
     "GPU 0|gpu.event.hw_slowdown|Active\n"
     "GPU 0|gpu.event.hw_thermal|Not Active\n"
     "GPU 0|gpu.event.sw_thermal|Not Active\n"
     "GPU 0|gpu.name|H100\n"
     "GPU 1|gpu.name|H100\n"
     "GPU 0|gpu.power_limit|700.00 W\n"
     "GPU 1|gpu.power_limit|700.00 W\n"
     "GPU 0|gpu.remap.failure|0\n"
     "GPU 1|gpu.remap.failure|Yes\n"
     "GPU 0|gpu.remap.pending|Yes\n"
     "GPU 1|gpu.remap.pending|0\n"},
    {X(smi_csv), "pid, process_name, used_memory [MiB]\n7, python3, 9 MiB\n8\n",
     "|gpu.process|python3\n"},
    {X(smi_csv), "a, b\n1, 2\n", NULL},
    {X(smi_csv), "alone\n", NULL},
    {X(smi_csv), "", NULL},
    {X(smi_failure),
     "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
     "Unable to determine the device handle for GPU0000:5D:00.0: GPU is lost.  Reboot\n"
     "Unable to determine the device handle for GPU: \nGPU is lost\n",
     "|gpu.lost|GPU is lost\n"
     "GPU .0|gpu.lost|Unable to determine the device handle for GPU:\n"
     "GPU 0000:5d:00.0|gpu.lost|Unable to determine the device handle for GPU0000:5D:00.0: GPU is "
     "lost.  Reboot\n"
     "|smi.failed|NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA "
     "driver.\n"},
    {X(rocm),
     "{\"card0\": {\"Card series\": \"MI300X\", \"GPU use (%)\": \"0\", \"n\": 5, \"else\": "
     "\"x\"}, \"flat\": \"x\", \"system\": {\"Driver version\": \"6.7\"}}",
     "|driver|6.7\nGPU card0|gpu.name|MI300X\nGPU card0|gpu.util|0\n"},
    {X(rocm), "{\"system\": {\"Driver version\": \"6.7\"}}", "|driver|6.7\n"},
    {X(rocm), "{\"system\": {\"cores\": \"8\"}}", NULL},
    {X(rocm), "{}", NULL},

    /* ---- NVLink, topology ---- */
    {X(nvlink),
     "GPU 0: NVIDIA H100 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n"
     "\t Link 2\nGPU 1: NVIDIA H100 (UUID: GPU-2)\nGPU x: nobody\n",
     "GPU 0|nvlink.active|1\nGPU 0|nvlink.inactive|1\nGPU 0|nvlink.links|2\nGPU "
     "0|nvlink.rate|26.562 GB/s\n"},
    {X(nvlink), "\t Link 0: 26 GB/s GPU \n", "|nvlink.rate|26 GB/s GPU\n"},
    {X(nvlink), "GPU 0\n", NULL},
    {X(nvlink_errors),
     "GPU 0: NVIDIA H100\n\t Link 0: Replay Errors: 0\n\t Link 0: Recovery Errors: 3\n"
     "\t Link 0: CRC Errors: 5\nGPU x\n",
     "GPU 0|nvlink.errors|Link 0: CRC Errors: 5\n|nvlink.errors_read|yes\nGPU "
     "0|nvlink.recovered|Link 0: Recovery Errors: 3\n"},
    {X(nvlink_errors), "Link 0: 26 GB/s\n", NULL},
    {X(topo_matrix),
     "intro\n\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\x1b[0m\n"
     "GPU0\t X \tNV18\tSYS\tPIX\t0-31\n"
     "GPU1\tNV18\t X \tNODE\tSYS\t0-31\n"
     "GPU2\tSYS\tCNS\n"
     "NIC0\tPIX\tSYS\tSYS\t X \n"
     "\nLegend:\n",
     "GPU 0|topo.farthest_gpu|SYS\n"
     "GPU 1|topo.farthest_gpu|NODE\n"
     "GPU 0|topo.least_nvlinks|0\n"
     "GPU 1|topo.least_nvlinks|0\n"
     "GPU 0|topo.most_nvlinks|18\n"
     "GPU 1|topo.most_nvlinks|18\n"
     "GPU 0|topo.nearest_nic|PIX\n"
     "GPU 1|topo.nearest_nic|SYS\n"},
    {X(topo_matrix), " \tGPU0\tGPU1\tmlx5_0\tmlx5_1\nGPU0\tX\tCNS\tSYS\tPXB\nGPU1\tOK\tX\tX\tPHB\n",
     "GPU 0|topo.nearest_nic|PXB\nGPU 1|topo.nearest_nic|PHB\nGPU 0|topo.p2p|refused\n"},
    {X(topo_matrix), "GPU0 alone\nNIC0 NIC1\n", NULL},

    /* ---- InfiniBand ---- */
    {X(ibstat),
     "State: before any device\nCA 'mlx5_0'\n\tCA type: MT4129\n\tFirmware version: 28.39\n"
     "\tState: of no port\n\tno colon\n\t: no name\n\tPort 1:\n\t\tState: Active\n\t\tRate: 400\n"
     "\tPort x: odd\nibpanic: [1] main: ibwarn 'mlx5_9' failed\n",
     "mlx5_0|ib.firmware|28.39\n"
     "mlx5_9|ib.panic|ibpanic: [1] main: ibwarn 'mlx5_9' failed\n"
     "mlx5_0:1|ib.rate|400\n"
     "mlx5_0:1|ib.state|Active\n"
     "mlx5_0|ib.type|MT4129\n"},
    {X(ibstat), "CA 'mlx5_0'\n", NULL},
    {X(ibstatus),
     "Infiniband device 'mlx5_0' port 1 status:\n\tstate:\t\t 4: ACTIVE\n\trate:\t 400 Gb/sec\n"
     "Infiniband device 'mlx5_1' status:\n\tstate: 1: DOWN\n",
     "mlx5_0:1|ib.rate|400 Gb/sec\nmlx5_0:1|ib.state|4: ACTIVE\n"},
    {X(ibstatus), "nothing\n", NULL},
    {X(devinfo),
     "hca_id:\tmlx5_0\n\tport:\t1\n\t\tstate:\t\tPORT_ACTIVE (4)\n\t\tactive_width:\t4X (2)\n"
     "\t\tactive_speed:\t100.0 Gbps (128)\n\t\tlink_layer:\tEthernet\n"
     "\t\tGID[  3]:\t\t::ffff:10.0.0.1, RoCE v2\n\t\tGID[  0]:\t\tfe80::1\n\t\tGID[x]: odd\n"
     "\tport:\tmany\n\tport:\t2\n\t\tstate:\tPORT_DOWN (1)\n\t\tactive_speed:\tunknown\n"
     "no colon\n",
     "mlx5_0:1|ib.gid.0|fe80::1 RoCE v1\n"
     "mlx5_0:1|ib.gid.3|::ffff:10.0.0.1 RoCE v2\n"
     "mlx5_0:1|ib.layer|Ethernet\n"
     "mlx5_0:1|ib.rate|400 Gb/sec (4X)\n"
     "mlx5_0:1|ib.state|Active\n"
     "mlx5_0:2|ib.state|Down\n"},
    {X(devinfo), "GID[ 0]: fe80::1\nactive_speed: 25.0 Gbps (32)\n",
     "hca:1|ib.gid.0|fe80::1 RoCE "
     "v1\n"},
    {X(devinfo), "port: 1\n", NULL},
    {X(show_gids),
     "mlx5_0\t1\t0\tfe80::1\tv1\n"
     "DEV\tPORT\tINDEX\tGID\tIPv4\tVER\tDEV\n---\t----\n"
     "mlx5_0\t1\t0\tfe80::1\t\tv1\tens1\n"
     "mlx5_0\t1\t3\t::ffff:10.0.0.1\t10.0.0.1\tv2\tens1\n"
     "mlx5_0\t1\t2\t::ffff:10.0.0.1\tv2\n"
     "mlx5_0\tx\t3\t::1\tv1\nmlx5_0\t1\tx\t::1\tv1\nn_gids_found=3\n",
     "mlx5_0:1|ib.gid.0|fe80::1 RoCE v1\n"
     "mlx5_0:1|ib.gid.2|::ffff:10.0.0.1 RoCE v2\n"
     "mlx5_0:1|ib.gid.3|::ffff:10.0.0.1 RoCE v2\n"},
    {X(show_gids), "INDEX of GID\n", NULL},
    {X(rdma_link),
     "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1\n"
     "link mlx5_1 state DOWN physical_state DISABLED\nlink\nlink mlx5_2/1 state DOWN\n"
     "link mlx5_3/1 physical_state\n",
     "mlx5_0:1|ib.phys|LINK_UP\nmlx5_0:1|ib.state|ACTIVE\n"},
    {X(rdma_link), "link to nothing\n", NULL},
    {X(ibdev2netdev),
     "mlx5_3 port 1 ==> ib3 (Down)\n0000:5e:00.0 mlx5_4 (MT4129) port 1 ==> ib4 (Up)\n"
     "mlx5_5 port x ==> ib5 (Up)\n",
     "mlx5_3:1|ib.state|Down\nmlx5_4:1|ib.state|Active\n"},

    /* ---- Interfaces, mounts ---- */
    {X(ip_link),
     "1: lo: <LOOPBACK,UP> mtu 65536 qdisc noqueue state UNKNOWN\n"
     "3: ens1np0@if4: <BROADCAST,UP> mtu 9000 qdisc mq state UP\n"
     "4: ens2: <BROADCAST> mtu 1500 state DOWN\n"
     "eth0: flags=4163<UP,BROADCAST,RUNNING>  mtu 1500\n"
     "5 ens3: <UP> mtu 1500\n6: ens4 <UP> mtu 1500\n7: : <UP> mtu 1500\n8:\n: <UP> mtu 1500\n"
     "9: ens5: <UP> mtu many\n\n",
     "ens1np0|net.mtu|9000\nens2|net.mtu|1500\neth0|net.mtu|1500\nlo|net.mtu|65536\n"
     "ens1np0|net.state|up\nens2|net.state|down\neth0|net.state|up\n"},
    {X(ip_link), "mtu 1500\n", NULL},
    {X(ethtool),
     "Speed: before any name\nSettings for ens1np0:\n\tSupported ports: [ FIBRE ]\n"
     "\tSupported link modes:   100000baseCR4/Full\n\t                        "
     "200000baseCR4/Full\n\tSupported pause frame use: 400000base\n\tSpeed: 100000Mb/s\n"
     "\tDuplex: Full\n",
     "ens1np0|net.duplex|Full\nens1np0|net.speed|100000Mb/s\nens1np0|net.speed_max|200000\n"},
    {X(ethtool), "Speed: 100\n", NULL},
    {X(df),
     "Filesystem Size Used\ntmpfs\n/dev/sda1 100G 5G /home\nshm x 0 0 0% "
     "/dev/shm\nshm 64M 0 64M 0% /dev/shm\n",
     "|shm.bytes|67108864\n"},
    {X(df), "Filesystem Size Used\nshm 65536 0 0 0% /dev/shm\n", "|shm.bytes|67108864\n"},
    {X(df), "Filesystem Size Used\nshm many 0 0 0% /dev/shm\n", NULL},
    {X(df), "Filesystem\n", NULL},
    {X(mounts), "overlay / overlay rw 0 0\nshm /dev/shm tmpfs rw,nosuid,size=65536k 0 0\n",
     "|shm.bytes|67108864\n"},
    {X(mounts), "tmpfs on /dev/shm type tmpfs (rw,size=1G)\n", "|shm.bytes|1073741824\n"},
    {X(mounts),
     "none /dev/shm tmpfs rw 0 0\nnone /dev/shm ext4 size=5 0\nnone /dev/shm tmpfs "
     "size=,x\nnone /dev/shm tmpfs size=x\n",
     ""},
    {X(mounts), "nothing\n", NULL},

    /* ---- PCI ---- */
    {X(lspci),
     "0000:15:01.0 PCI bridge: Broadcom\n\tBus: primary=15, secondary=16, subordinate=1c, x\n"
     "\tBus: primary=15, secondary=16\n\tBus: primary=15\n"
     "\tLnkCap:\tPort #0, Speed 32GT/s, Width x16\n\tLnkSta:\tSpeed 16GT/s, Width x8\n"
     "\tLnkSta:\tSpeed 16GT/s (ok), Width x8 (downgraded)\n\tLnkSta:\tSpeed 16GT/s\n"
     "\tACSCtl:\tSrcValid+ ReqRedir+\n"
     "19:00.0 3D controller: NVIDIA Corporation H100 (rev ff)\n"
     "1a:00.0 Ethernet controller: Intel Corporation\n"
     "1b:00.0 Ethernet controller: Mellanox Technologies\n"
     "aaaaaaa not an address\nzz:00.0 neither\n1b:00:0 nor this\nabc short\n",
     "GPU 0000:19:00.0|gpu.lost|19:00.0 3D controller: NVIDIA Corporation H100 (rev ff)\n"
     "0000:15:01.0|pci.acs|SrcValid+ ReqRedir+\n"
     "0000:15:01.0|pci.bus_from|22\n"
     "0000:15:01.0|pci.bus_to|28\n"
     "0000:15:01.0|pci.lnk_speed|16GT/s (ok)\n"
     "0000:15:01.0|pci.lnk_width|x8 (downgraded)\n"
     "0000:15:01.0|pci.name|0000:15:01.0 PCI bridge: Broadcom\n"
     "0000:19:00.0|pci.name|19:00.0 3D controller: NVIDIA Corporation H100 (rev ff)\n"
     "0000:1b:00.0|pci.name|1b:00.0 Ethernet controller: Mellanox Technologies\n"
     "0000:15:01.0|pci.what|bridge\n"
     "0000:19:00.0|pci.what|gpu\n"
     "0000:1b:00.0|pci.what|nic\n"},
    {X(lspci),
     "19:00.0 Display controller: AMD/ATI\n\tLnkCap: Speed 32GT/s, Width "
     "x16\n\tLnkSta: Speed 16GT/s, Width x8\n",
     "0000:19:00.0|pci.lnk_speed|16GT/s (downgraded)\n"
     "0000:19:00.0|pci.lnk_width|x8 (downgraded)\n"
     "0000:19:00.0|pci.name|19:00.0 Display controller: AMD/ATI\n"
     "0000:19:00.0|pci.what|gpu\n"},
    {X(lspci), "\tACSCtl: SrcValid- ReqRedir-\n\tACSCtl: SrcValid- ReqRedir+\n\tother\n",
     "|pci.acs|SrcValid- ReqRedir+\n|pci.what|bridge\n"},
    {X(lspci), "\tACSCtl: SrcValid+\na\nb\nc\nd\n", "|pci.acs|SrcValid+\n|pci.what|bridge\n"},
    {X(lspci), "a\nb\nc\nd\ne\nf\n", NULL},
    {X(lspci), "19:00.0 USB controller: somebody\n", NULL},

    /* ---- The kernel's log ---- */
    {X(kernel_log),
     "[  1.0] NVRM: Xid (PCI:0000:04:00): 149, NETIR_LINK_EVT Fatal XC0\n"
     "[  2.0] NVRM: Xid (0000:04:00): 45, caused by previous Xid 149\n"
     "[  3.0] NVRM: Xid (PCI:0000:04:00: cut off\n"
     "[  4.0] nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32\n"
     "[  4.0] nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Data {0x1}\n"
     "detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:83:00.0\n"
     "[  5.0] mlx5_core 0000:41:00.0: Port: 1 Link down: Link down\n"
     "[  6.0] python3 invoked: Out of memory: Killed process 7\n",
     "0000:41:00.0|kernel.link_down|[  5.0] mlx5_core 0000:41:00.0: Port: 1 Link down: Link down\n"
     "|kernel.log|read\n"
     "|kernel.oom|[  6.0] python3 invoked: Out of memory: Killed process 7\n"
     "NVSwitch 0000:83:00.0|sxid.fatal|detected NVSwitch fatal error 20034 on fid 0 on NVSwitch "
     "pci bus id 00000000:83:00.0\n"
     "NVSwitch 0000:05:00.0|sxid.nonfatal|[  4.0] nvidia-nvswitch3: SXid (PCI:0000:05:00.0): "
     "12028, Non-fatal, Link 32\n"
     "GPU 0000:04:00.0|xid.149|[  2.0] NVRM: Xid (0000:04:00): 45, caused by previous Xid 149\n"
     "GPU 0000:04:00.0|xid.149.fatal|[  1.0] NVRM: Xid (PCI:0000:04:00): 149, NETIR_LINK_EVT Fatal "
     "XC0\n"
     "GPU 0000:04:00.0|xid.45|[  2.0] NVRM: Xid (0000:04:00): 45, caused by previous Xid 149\n"},
    {X(kernel_log), "[   12.345678] all is well\n", "|kernel.log|read\n"},
    {X(kernel_log), "6,339,5140900,-;all is well\n", "|kernel.log|read\n"},
    {X(kernel_log), "systemd[1]: kernel: ok\n", "|kernel.log|read\n"},
    {X(kernel_log), "[12] no point in it\n", NULL},
    {X(kernel_log), "[a.b] no number\n", NULL},
    {X(kernel_log), "x,1,2,-;no number\n", NULL},
    {X(kernel_log), "", NULL},

    /* ---- Health ---- */
    {X(dcgm),
     "+---+\n| Overall Health | Failure |\n| PCIe | Fail - GPU: 5 |\n| Power | Warning |\n"
     "| NVLink | Warn - 2 |\n| Memory | Pass |\n| alone\nno bar\n|",
     "|dcgm.failure|Overall Health: Failure\n|dcgm.read|yes\n|dcgm.warning|Power: Warning\n"},
    {X(dcgm), "| Diagnostic | Result |\n", "|dcgm.read|yes\n"},
    {X(dcgm), "| Diagnostic |\n", NULL},
    {X(fabric_service),
     "sshd.service - OpenSSH\n   Active: active (running)\n"
     "nvidia-fabricmanager.service - NVIDIA\n   Active: failed (Result: exit-code)\n",
     "nvidia-fabricmanager|service.state|failed (Result: exit-code)\n"},
    {X(fabric_service), "x nvidia-fabricmanager.service loaded active running NVIDIA\n",
     "nvidia-fabricmanager|service.state|active (running)\n"},
    {X(fabric_service),
     "sshd.service loaded active\nnvidia-fabricmanager.service not-found inactive\n"
     "nvidia-fabricmanager.service\nnvidia-fabricmanager.service loaded\n"
     "nvidia-fabricmanager.service loaded failed failed\n",
     "nvidia-fabricmanager|service.state|failed\n"},
    {X(fabric_service), "fabricmanager.service\n", NULL},
    {X(fabric_service), "sshd.service\n", NULL},
    {X(fabric_word), "active\n", "nvidia-fabricmanager|service.state|active (running)\n"},
    {X(fabric_word), "failed", "nvidia-fabricmanager|service.state|failed\n"},
    {X(fabric_word), "unknown\n", ""},
    {X(fabric_word), "else\n", NULL},
    {X(imex), "Connectivity\nDomain State: DEGRADED\n", "|imex.domain|DEGRADED\n"},
    {X(imex), "Domain\n", NULL},
    {X(clock), "System time     : 0.000012 seconds slow\nLeap status     : Normal\nno colon\n",
     "|clock.leap|Normal\n|clock.offset|0.000012 seconds slow\n"},
    {X(clock), "System clock synchronized: no\n", "|clock.synchronised|no\n"},
    {X(clock), "12:00\n", NULL},

    /* ---- The environment ---- */
    {X(env),
     "# a remark\nNCCL_DEBUG=INFO\nexport NCCL_IB_HCA='mlx5' # all of them\nexport CUDA_X=\"a b\"\n"
     "SECRET=1\nNCLL_ALGO=Ring\nNCCL-PROTO=LL\nnc_x=1\nnccldebug=1\nncclx=1\nnclnclncl=1\n"
     "OMP_NUM_THREADS='\n1X=2\nA B=3\n\nnot one\n",
     "CUDA_X|env|a b\nNCCL-PROTO|env|LL\nNCCL_DEBUG|env|INFO\nNCCL_IB_HCA|env|mlx5\n"
     "NCLL_ALGO|env|Ring\nOMP_NUM_THREADS|env|'\nnccldebug|env|1\nncclx|env|1\n"
     "CUDA_X|env.from|environment\nNCCL-PROTO|env.from|environment\n"
     "NCCL_DEBUG|env.from|environment\nNCCL_IB_HCA|env.from|environment\n"
     "NCLL_ALGO|env.from|environment\nOMP_NUM_THREADS|env.from|environment\n"
     "nccldebug|env.from|environment\nncclx|env.from|environment\n|env.read|yes\n"},
    {X(env), "A-B=1\n", NULL},
    {X(env), "one\ntwo\nA=1\n", NULL},
    {X(nccl_conf), "# remark\n\nNCCL_DEBUG=WARN\nodd\n NCCL_ALGO=Ring\n",
     " NCCL_ALGO|conf.etc|Ring\nNCCL_DEBUG|conf.etc|WARN\n"},
    {X(ulimit),
     "max locked memory (kbytes, -l) 64\nopen files (-n) unlimited\nstack size none at all\n",
     "|limit.memlock_bytes|65536\n|limit.nofile|unlimited\n"},
    {X(ulimit), "Max open files 1024 2048 files\n", "|limit.nofile|1024\n"},
    {X(ulimit), "open files (-n)\n", NULL},
    {X(lsmod), "Module Size Used by\nnvidia 123 4\nnvidia_peermem 99 0\nalone\nsnd 5\n",
     "|module.list|read\n|module.nvidia|loaded\n|module.nvidia_peermem|loaded\n"},
    {X(lsmod), "nvidia is a company\nthat 1\n", NULL},
    {X(lsmod), "snd 5\n", NULL},

    /* ---- NCCL's log ---- */
    {X(nccl_log), "RuntimeError: NCCL error\nLast error:\nsome warning nobody knows\n",
     "|log.lines|1\n|log.other_warning|some warning nobody knows\n"},
    {X(nccl_log), "NCCL error\nLast error: Cuda failure 'no such device'\n",
     "|log.cuda_failure|Last error: Cuda failure 'no such device'\n|log.lines|1\n"},
    {X(nccl_log), "NCCL_ is what its variables begin with\n", NULL},
    {X(nccl_log), "nothing\n", NULL},
    {X(nccl_log),
     "a:1:2 [0] NCCL INFO RCCL_X set by environment to 1.\n"
     "a:9:2 [0] NCCL INFO RCCL_X set by environment to 2.\n"
     "a:1:2 [0] NCCL INFO RCCL_X set by environment to 1.\n"
     "a:1:2 [0] NCCL INFO RCCL_X set by env to 3\na:1:2 [0] NCCL INFO OTHER_X set to 5\n"
     "a:1:2 [0] NCCL INFO NCCL_Y set to \n",
     "NCCL_Y|env|\nRCCL_X|env|1\nNCCL_Y|env.from|the log\nRCCL_X|env.from|the log\n"
     "RCCL_X|env.other|2\na|log.host|seen\n|log.lines|6\n"},
    {X(nccl_log),
     "a:1:2 [0] NCCL INFO NET/IB : Using [0]hfi1_0:1/IB [1]opa_1:1/IB [0]hfi1_0:1/IB [2]x ; OOB "
     "eth0\na:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[0] via NVL\n",
     "hfi1_0:1|log.device|IB\nopa_1:1|log.device|IB\na|log.device_count|3\na|log.host|seen\n"
     "|log.lines|2\n|log.omni_path|yes\n|log.via.p2p|1\n"},
    {X(nccl_log),
     "a:1:2 [0] NCCL INFO MNNVL healthMask \na:1:2 [0] NCCL INFO MNNVL healthMask 0xa\n"
     "a:1:2 [0] NCCL INFO MNNVL healthMask 0x1 x\n",
     "a|log.host|seen\n|log.lines|3\na|log.nvls_fabric|a:1:2 [0] NCCL INFO MNNVL healthMask 0x1 "
     "x\n"},
    {X(nccl_log), "NCCL version \nNCCL version x.y\nRCCL version : \nNCCL version 2.19.3-x+cuda\n",
     "|log.lines|1\n2.19.3|log.version|NCCL version 2.19.3-x+cuda\n"},
    {X(nccl_log), "NCCL error\nnobody INFO something\nLast error: HIP failure 'x'\n",
     "|log.cuda_failure|Last error: HIP failure 'x'\n|log.lines|1\n"},
    {X(nccl_log),
     "a:1:2 [0] NCCL WARN NET/IB : Got completion with error 12, opcode 0\n"
     "a:1:2 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.2 with status=13\n"
     "a:1:2 [0] NCCL WARN NET/IB : Got completion status=IBV_WC_RETRY_EXC_ERR(12) from peer x\n"
     "a:1:2 [0] NCCL WARN NET/IB : Got completion of nothing\n",
     "a|log.completion.12|a:1:2 [0] NCCL WARN NET/IB : Got completion with error 12, opcode 0\n"
     "a|log.completion.13|a:1:2 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.2 with "
     "status=13\n"
     "a|log.completion_old|a:1:2 [0] NCCL WARN NET/IB : Got completion with error 12, opcode 0\n"
     "a|log.host|seen\n|log.lines|4\n"},
    {X(nccl_log),
     "a:1:2 [0] NCCL INFO Bootstrap : Using [0]eth0:10.0.0.1<0> odd :x<0> eth1:10.0.0.2 x<0:5\n",
     "a|log.address|10.0.0.1\neth0|log.bootstrap|10.0.0.1\na|log.host|seen\n|log.lines|1\n"},
    {X(nccl_log), "a:1:2 [0] INFO nothing in particular\n", "a|log.host|seen\n|log.lines|1\n"},
};
#define SAMPLES (sizeof samples / sizeof *samples)

static void write_facts(struct knee_facts *facts, struct knee_text *out)
{
    knee_facts_sort(facts);
    for (size_t i = 0; i < facts->count; i++)
        knee_text_printf(out, "%s|%s|%s\n", facts->rows[i].subject, facts->rows[i].key,
                         facts->rows[i].value);
}

/* A copy that is exactly as long: a byte too many is seen by ASan. */
static bool read_sample(const struct sample *s, knee_host_reader *reader, struct knee_facts *facts)
{
    size_t length = strlen(s->text);
    char *copy = malloc(length + 1);
    assert_non_null(copy);
    memcpy(copy, s->text, length);
    bool read = reader(facts, (struct knee_slice){copy, length});
    free(copy);
    return read;
}

TEST(outputs_say_what_they_say)
{
    for (size_t i = 0; i < SAMPLES; i++) {
        OWNED(knee_facts) facts = {0};
        OWNED(knee_text) seen = {0};
        bool read = read_sample(&samples[i], samples[i].reader, &facts);
        write_facts(&facts, &seen);
        if (read != (samples[i].facts != NULL))
            fail_msg("%s: %s", samples[i].text, read ? "taken" : "not taken");
        if (strcmp(seen.data ? seen.data : "", read ? samples[i].facts : "") != 0)
            fail_msg("%s\ngives\n%s\nnot\n%s", samples[i].text, seen.data, samples[i].facts);
    }
}

/* Every reader on every output, whole and cut in half: one that says no has added nothing. */
TEST(who_says_no_adds_nothing)
{
    for (size_t r = 0; r < SAMPLES; r++)
        for (size_t i = 0; i < 2 * SAMPLES; i++) {
            struct knee_facts facts = {0};
            struct sample s = samples[i / 2];
            char half[4096];
            size_t length = strlen(s.text);
            snprintf(half, sizeof half, "%.*s", (int)(i % 2 ? length / 2 : length), s.text);
            s.text = half;
            if (r > 0 && samples[r].reader == samples[r - 1].reader)
                continue;
            if (!read_sample(&s, samples[r].reader, &facts) && facts.count)
                fail_msg("a reader says no to what it took %s = %s from:\n%s", facts.rows[0].key,
                         facts.rows[0].value, half);
            knee_facts_release(&facts);
        }
}

/* By its content alone a file finds its reader, or one that says the same. */
TEST(files_find_their_reader)
{
    static const struct {
        const char *path, *text, *facts;
    } cases[] = {
        {"sys/class/infiniband/mlx5_0/ports/1/state", "\n4: ACTIVE\n",
         "mlx5_0:1|ib.state|4: "
         "ACTIVE\n"},
        {"sys/class/infiniband/mlx5_0/ports/1/gids/3", "fe80::1\n", "mlx5_0:1|ib.gid.3|fe80::1\n"},
        {"sys/class/net/eth0/mtu", "\n", "eth0|net.mtu|\n"},
        {"proc/self/status", "Name: x\nCpus_allowed_list:\t0-3\n", "|process.cpus|0-3\n"},
        {"proc/self/status", "Name: x\n", ""},
        {"proc/stat", "cpu 10 0 0 80 0 0 0 10 0 0\n", "|cpu.steal|0.1\n"},
        {"proc/stat", "cpu 10 0 0\n", ""},
        {"proc/stat", "cpu 0 0 0 0 0 0 0 0\n", ""},
        {"proc/stat", "\n", ""},
        {"proc/pressure/cpu", "some avg10=0.00 avg60=3.20 total=1\n", "|pressure.cpu|3.20\n"},
        {"proc/pressure/cpu", "none\n", ""},
        {"proc/pressure/cpu", "avg60=", ""},
        {"sys/fs/cgroup/cpu.max", "200000 100000\n", "|cgroup.cpus|2\n"},
        {"sys/fs/cgroup/cpu.max", "max 100000\n", ""},
        {"sys/fs/cgroup/cpu.max", "5 0\n", ""},
        {"sys/fs/cgroup/cpu.max", "5\n", ""},
        {"sys/fs/cgroup/cpu.max", "5 x\n", ""},
        {"sys/fs/cgroup/cpu.stat", "nr_periods 1000\nnr_throttled 700\n",
         "|cgroup.throttled|0.7\n"},
        {"sys/fs/cgroup/cpu.stat", "nr_periods 0\nnr_throttled 700\n", ""},
        {"sys/fs/cgroup/cpu.stat", "nr_periods 5\n", ""},
        {"sys/fs/cgroup/cpu.stat", "usage_usec 5\n", ""},
        {"etc/nccl.conf", "NCCL_DEBUG=INFO\n", "NCCL_DEBUG|conf.etc|INFO\n"},
        {"root/.nccl.conf", "NCCL_DEBUG=INFO\n", "NCCL_DEBUG|conf.home|INFO\n"},
        {"NCCL_CONF_FILE", "NCCL_DEBUG=INFO\n", "NCCL_DEBUG|conf.file|INFO\n"},
        {"out/systemctl_fabricmanager.txt", "inactive\n",
         "nvidia-fabricmanager|service.state|inactive\n"},
        {"grep.txt", "/sys/class/net/eth0/mtu:1500\nsys/class/net/eth1/mtu:9000\nelse:1\n",
         "eth0|net.mtu|1500\neth1|net.mtu|9000\n"},
        {"grep.txt", "sys/class/nothing:1500\nproc/nothing\n", NULL},
        {"empty", "", NULL},
        {"letter", "Dear all,\n", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED(knee_facts) facts = {0};
        OWNED(knee_text) seen = {0};
        bool read = knee_host_file(&facts, cases[i].path, cases[i].text, strlen(cases[i].text));
        assert_int_equal(facts.files + facts.strange, 1);
        assert_int_equal(facts.files, read);
        write_facts(&facts, &seen);
        if (read != (cases[i].facts != NULL) ||
            strcmp(seen.data ? seen.data : "", read ? cases[i].facts : "") != 0)
            fail_msg("%s: %s gives %s", cases[i].path, cases[i].text, seen.data);
    }
    struct knee_facts facts = {0};
    assert_false(knee_host_file(&facts, "nothing", NULL, 0));
    assert_int_equal(facts.strange, 1);
}

/* Sections and tags deeper, and names longer, than any that nvidia-smi prints are passed over. */
TEST(deep_outputs_are_passed_over)
{
    static const char word[] = "a_name_that_is_longer_than_thirty_bytes";
    OWNED(knee_text) text = {0}, xml = {0};
    OWNED(knee_facts) facts = {0};
    knee_text_puts(&text, "NVSMI LOG\n");
    knee_text_puts(&xml, "<nvidia_smi_log>");
    for (size_t depth = 1; depth <= 24; depth++) {
        knee_text_repeat(&text, " ", depth);
        knee_text_printf(&text, "%s\n", word);
        knee_text_repeat(&text, " ", depth + 1);
        knee_text_puts(&text, "Product Name : x\n");
        knee_text_printf(&xml, "<%s>", depth % 2 ? word : "b");
    }
    for (size_t depth = 24; depth >= 1; depth--)
        knee_text_printf(&xml, "x</%s>", depth % 2 ? word : "b");
    knee_text_puts(&text, "Driver Version : 550.54\n");
    knee_text_puts(&xml, "<long>");
    knee_text_repeat(&xml, "0123456789", 60);
    knee_text_puts(&xml, "</long><driver_version>551.00</driver_version><gpu id=\"></gpu>"
                         "</nvidia_smi_log>");
    assert_true(knee_read_smi_text(&facts, (struct knee_slice){text.data, text.length}));
    knee_facts_sort(&facts);
    assert_true(knee_fact_is(&facts, "", "driver", "550.54"));
    knee_facts_release(&facts);
    assert_true(knee_read_smi_xml(&facts, (struct knee_slice){xml.data, xml.length}));
    knee_facts_sort(&facts);
    assert_true(knee_fact_is(&facts, "", "driver", "551.00"));
    assert_true(knee_fact_is(&facts, "", "gpus.listed", "0"));
}

TEST(addresses_of_one_gpu)
{
    static const char *const cases[][2] = {{"00000000:19:00.0", "GPU 0000:19:00.0"},
                                           {"0000:19:00.0", "GPU 0000:19:00.0"},
                                           {" 19:00.0 ", "GPU 0000:19:00.0"},
                                           {"0000:19:00", "GPU 0000:19:00.0"},
                                           {"00000000:AB:00.0", "GPU 0000:ab:00.0"},
                                           {"a:b:c", "GPU a:b:c.0"},
                                           {"x", "GPU x.0"},
                                           {"", "GPU .0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[48];
        knee_gpu_subject(knee_slice_of(cases[i][0]), name, sizeof name);
        assert_string_equal(name, cases[i][1]);
    }
}

/* More variables and devices than NCCL has: the first ones are kept, the rest is counted. What the
 * environment said holds against the log. */
TEST(many_settings_are_counted)
{
    OWNED(knee_text) text = {0};
    OWNED(knee_facts) facts = {0};
    static const char env[] = "NCCL_DEBUG=INFO\n";
    for (int i = 0; i < 300; i++)
        knee_text_printf(&text, "a:1:2 [0] NCCL INFO NCCL_V%d set by environment to %d.\n", i, i);
    knee_text_puts(&text, "a:1:2 [0] NCCL INFO NCCL_DEBUG set by environment to WARN.\n"
                          "a:1:2 [0] NCCL INFO NET/IB : Using");
    for (int i = 0; i < 70; i++)
        knee_text_printf(&text, " [%d]mlx5_%d:1/IB", i, i);
    knee_text_puts(&text, "\n");
    assert_true(knee_host_file(&facts, "env", env, strlen(env)));
    assert_true(knee_read_nccl_log(&facts, (struct knee_slice){text.data, text.length}));
    assert_int_equal(facts.dropped, 300 - 255);
    struct knee_checkup checkup; /* and it is said */
    struct knee_text said = {0};
    struct knee_style style = {0};
    struct knee_err err;
    assert_ok(knee_doctor_examine(&facts, 1, NULL, NULL, &checkup, &err));
    knee_answer_write(&knee_doctor_answer, &checkup, KNEE_TEXT, &style, &said);
    knee_answer_write(&knee_doctor_answer, &checkup, KNEE_JSON, &style, &said);
    assert_non_null(strstr(said.data, "Skipped 45 facts"));
    assert_non_null(strstr(said.data, "\"facts_left_out\": 45"));
    knee_text_release(&said);
    knee_checkup_release(&checkup);
    knee_facts_sort(&facts);
    assert_true(knee_fact_is(&facts, "NCCL_DEBUG", "env", "INFO"));
    assert_true(knee_fact_is(&facts, "NCCL_DEBUG", "env.other", "WARN"));
    assert_true(knee_fact_is(&facts, "mlx5_63:1", "log.device", "IB"));
    assert_null(knee_fact_find(&facts, "mlx5_64:1", "log.device"));
}

/* ---- Facts ---- */

static size_t rows_of(const struct knee_facts *facts, const char *key)
{
    size_t first, end = knee_facts_range(facts, key, &first);
    return end - first;
}

/* More of one thing than there is room for is counted, and numbers come back as they were. */
TEST(facts_come_back)
{
    OWNED(knee_facts) facts = {0}, again = {0};
    OWNED(knee_text) text = {0};
    for (size_t i = 0; i < KNEE_FACTS_MAX + 5; i++) {
        char subject[32];
        snprintf(subject, sizeof subject, "s%zu", i % (KNEE_FACTS_MAX / 2));
        knee_fact_number(&facts, subject, i % 3 ? "key" : "key.more", (double)i / 7);
    }
    assert_int_equal(facts.count, KNEE_FACTS_MAX);
    assert_int_equal(facts.dropped, 5);
    knee_fact_count(&facts, "nobody", "key", knee_slice_of("no room"));
    assert_int_equal(facts.dropped, 6);
    knee_facts_write(&facts, &text);
    knee_facts_read(&again, text.data, text.length);
    knee_facts_sort(&facts);
    knee_facts_sort(&again);
    assert_int_equal(facts.count, again.count);
    for (size_t i = 0; i < facts.count; i++) {
        assert_string_equal(facts.rows[i].subject, again.rows[i].subject);
        assert_string_equal(facts.rows[i].key, again.rows[i].key);
        assert_true(facts.rows[i].number == again.rows[i].number);
    }
    assert_int_equal(rows_of(&facts, "key*"), facts.count);
    assert_int_equal(rows_of(&facts, "key") + rows_of(&facts, "key.more"), facts.count);
    assert_true(rows_of(&facts, "key") > 0 && rows_of(&facts, "key.more") > 0);
    assert_int_equal(rows_of(&facts, "kez"), 0);
    assert_int_equal(rows_of(&facts, ""), 0);
    assert_non_null(knee_fact_find(&facts, NULL, "key"));
    assert_null(knee_fact_find(&facts, "nobody", "key"));
    assert_null(knee_fact_find(&facts, NULL, "ke"));
    assert_false(knee_fact_is(&facts, NULL, "nothing", ""));
    assert_true(isnan(knee_fact_value(&facts, NULL, "nothing")));
}

/* What many hosts say in turn is counted for each of them, and does not fill the table. */
TEST(counts_go_on_whatever_comes_between)
{
    enum { HOSTS = 3000, TURNS = 50 };
    OWNED(knee_facts) facts = {0};
    for (int turn = 0; turn < TURNS; turn++)
        for (int host = 0; host < HOSTS; host++) {
            char name[32];
            snprintf(name, sizeof name, "node%d", host);
            knee_fact_count(&facts, name, "log.host", knee_slice_of("seen"));
        }
    assert_int_equal(facts.count, HOSTS);
    knee_facts_sort(&facts);
    for (int host = 0; host < HOSTS; host++)
        assert_true(facts.rows[host].number == TURNS);
    knee_fact_count(&facts, "node7", "log.host", knee_slice_of("seen")); /* and after that */
    assert_int_equal(facts.count, HOSTS);
    assert_true(knee_fact_value(&facts, "node7", "log.host") == TURNS + 1);
}

TEST(lines_that_are_no_facts_are_left_out)
{
    static const char text[] = "no tab\nsubject\t\nsubject\tkey\nsubject\tkey\tnan\tvalue\n"
                               "subject\tother\t-5\t-5 mV\n";
    OWNED(knee_facts) facts = {0};
    knee_facts_read(&facts, text, strlen(text));
    knee_facts_sort(&facts);
    assert_int_equal(facts.count, 2);
    assert_true(isnan(knee_fact_value(&facts, "subject", "key")));
    assert_true(knee_fact_is(&facts, "subject", "key", "value"));
    assert_true(knee_fact_value(&facts, "subject", "other") == -5);
}

/* Two gigabytes of pages are not needed: the second page is a new one. */
TEST(no_memory_is_said)
{
    char value[1200];
    memset(value, 'v', sizeof value);
    FOR_EACH_FAILURE(memory) {
        OWNED(knee_facts) facts = {.alloc = &memory.alloc};
        for (int i = 0; i < 300; i++) {
            knee_fact_add(&facts, knee_slice_of("subject"), "key",
                          (struct knee_slice){value, sizeof value});
            knee_fact_number(&facts, "subject", "number", i);
            knee_fact_count(&facts, "subject", "count", knee_slice_of("first"));
        }
        bool enough = !failing_met(&memory);
        assert_int_equal(facts.no_memory, !enough);
    }
}
