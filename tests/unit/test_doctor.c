/* SPDX-License-Identifier: MIT */
/*
 * The doctor: ten and more healthy machines without a finding above "note", faults planted one by
 * one and found by their rule, hosts that differ, prices that follow laws, and what NCCL 2.28.9
 * itself printed.
 */
#include "machines.h"
#include "out/answer.h"
#include "say/answers.h"

#include "base/json_values.h"
#include "base/text.h"

/* ---- Healthy machines ---- */

TEST(healthy_machines_are_healthy)
{
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        OWNED(knee_facts) facts = {0};
        machines[i].make(&facts);
        OWNED(knee_checkup) c = examine(&facts, 1, NULL);
        for (size_t k = 0; k < c.count; k++)
            if (c.findings[k].severity > KNEE_NOTE)
                fail_msg("%s: %s: %s", machines[i].name, c.findings[k].rule->id,
                         c.findings[k].evidence);
    }
}

/* ---- Planted faults: a file of a healthy machine, and the rule that must say so ---- */

#define XID(text) "[  12.5] NVRM: " text "\n"

static const struct fault {
    void (*machine)(struct knee_facts *facts);
    const char *path, *text, *rule, *where, *cure; /* words that must be in where and cure */
} faults[] = {
    {dgx_h100, "sys/class/infiniband/mlx5_3/ports/1/state", "1: DOWN\n", "rail_down", "mlx5_3:1",
     "cable"},
    {dgx_h100, "sys/class/infiniband/mlx5_5/ports/1/rate", "200 Gb/sec (2X NDR)\n", "rail_slow",
     "mlx5_5:1", "cable"},
    {dgx_h100, "sys/class/infiniband/mlx5_2/ports/1/state", "2: INIT\n", "ib_not_active",
     "mlx5_2:1", "subnet manager"},
    {dgx_a100, "sys/class/infiniband/mlx5_4/device/current_link_width", "8\n", "nic_pcie_narrow",
     "mlx5_4", "reseat"},
    {dgx_h100, "sys/class/infiniband/mlx5_1/device/current_link_speed", "16.0 GT/s PCIe\n",
     "nic_pcie_slow", "mlx5_1", "BIOS"},
    {roce_h200, "sys/class/infiniband/mlx5_6/ports/1/gids/3",
     "0000:0000:0000:0000:0000:0000:0000:0000\n", "gid_index", "mlx5_6:1", "NCCL_IB_GID_INDEX"},
    {roce_h200, "env", "NCCL_IB_GID_INDEX=2\n", "gid_index", "mlx5_0:1", "RoCE v2"},
    {dgx_h100, "dmesg", XID("Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."),
     "xid_hardware", "3b:00", "reset"},
    {dgx_h100, "dmesg", XID("Xid (PCI:0000:9a:00): 119, pid=7, Timeout waiting for RPC from GSP!"),
     "xid_driver", "9a:00", "reboot"},
    {gb200_tray, "dmesg",
     XID("Xid (PCI:0008:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x0 0x0)"),
     "xid_nvlink", "0008:01:00", "NVLink"},
    {dgx_h100, "dmesg",
     "[9.1] nvidia-nvswitch0: SXid (PCI:0000:00:00.0): 20034, Fatal, Link 30 LTSSM Fault Up\n",
     "sxid_fatal", "NVSwitch", "reboot"},
    {dgx_h100, "service.txt",
     "x nvidia-fabricmanager.service - NVIDIA fabric manager\n     Loaded: loaded\n     Active: "
     "inactive (dead)\n",
     "fabric_manager_down", "nvidia-fabricmanager", "systemctl"},
    {cpu_only, "dmesg", "[77.1] Out of memory: Killed process 4242 (python3)\n",
     "host_out_of_memory", "", "memory"},
    {dgx_h100, "dmesg",
     "[3.3] mlx5_core 0000:41:00.0: 126.016 Gb/s available PCIe bandwidth, limited by 16.0 GT/s "
     "PCIe x8 link at "
     "0000:40:01.0\n",
     "pcie_limited", "0000:41:00.0", "reseat"},
    {dgx_h100, "ulimit.txt", "max locked memory       (kbytes, -l) 64\nopen files (-n) 131072\n",
     "memlock_low", "", "memlock"},
    {dgx_h100, "knee.facts", "\tshm.bytes\t67108864\t67108864\n", "shm_small", "/dev/shm",
     "shm-size"},
    {dgx_h100, "proc/cmdline", "ro quiet amd_iommu=on\n", "iommu_translates", "", "iommu=pt"},
    {dgx_a100, "proc/pressure/cpu", "some avg10=55.00 avg60=61.20 avg300=8.00 total=1\n",
     "cpu_pressure", "", "loader"},
    {container, "sys/fs/cgroup/cpu.max", "400000 100000\n", "cpu_quota", "", "CPUs"},
    {dgx_h100, "nvlink.txt",
     "GPU 0: NVIDIA H100 (UUID: x)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n",
     "nvlink_inactive", "GPU 0", "reset"},
    {dgx_h100, "topo.txt",
     "\tGPU0\tGPU1\tNIC0\tCPU Affinity\nGPU0\t X \tNV18\tPIX\t0-51\nGPU1\tNV18\t X "
     "\tSYS\t52-103\nNIC0\tPIX\tSYS\t X \n",
     "gpu_far_from_nic", "GPU 1", "NIC"},
    {dgx_h100, "lspci.txt",
     "17:01.0 PCI bridge: Broadcom / LSI PEX890xx\n\tBus: primary=17, secondary=19, "
     "subordinate=19, sec-latency=0\n"
     "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+\n19:00.0 3D controller: NVIDIA "
     "Corporation Device 2330\n",
     "acs_on", "0000:17:01.0", "setpci"},
    {dgx_h100, "env", "NCCL_IB_DISABLE=1\n", "ib_disabled", "NCCL_IB_DISABLE", "unset"},
    {dgx_h100, "env", "NCCL_P2P_DISABLE=1\n", "p2p_disabled", "NCCL_P2P_DISABLE", "unset"},
    {dgx_h100, "env", "NCCL_SHM_DISABLE=0x1\n", "shm_disabled", "", "unset"},
    {dgx_h100, "env", "NCCL_IB_DISABLE=true\n", "env_not_a_number", "NCCL_IB_DISABLE", "0 or 1"},
    {dgx_h100, "env", "NCCL_SOCKET_IFNAM=eno1\n", "env_misspelt", "NCCL_SOCKET_IFNAM", "name"},
    {dgx_h100, "env", "NCCL_NET_GDR_LEVEL=sys\n", "env_bad_level", "NCCL_NET_GDR_LEVEL",
     "capitals"},
    {dgx_h100, "env", "NCCL_ALGO=Rings\n", "env_bad_word", "NCCL_ALGO", "words"},
    {dgx_h100, "env", "NCCL_IB_HCA=mlx5_20,mlx5_21\n", "hca_absent", "NCCL_IB_HCA", "ibstat"},
    {dgx_h100, "env", "NCCL_SOCKET_IFNAME==ens99\n", "interface_absent", "NCCL_SOCKET_IFNAME",
     "ip -br link"},
    {dgx_h100, "env", "GLOO_SOCKET_IFNAME=ens99\n", "interface_absent", "GLOO_SOCKET_IFNAME",
     "ip -br link"},
    {dgx_h100, "env", "NCCL_OOB_NET_IFNAME==ens99\n", "interface_absent", "NCCL_OOB_NET_IFNAME",
     "ip -br link"},
    {dgx_h100, "env", "NCCL_SOCKET_IFNAME=lo\n", "wrong_interface", "NCCL_SOCKET_IFNAME", "routed"},
    {dgx_h100, "env", "NCCL_MIN_CTAS=32\nNCCL_MAX_CTAS=16\n", "channels_contradict",
     "NCCL_MIN_CTAS", "unset"},
    {plain_ethernet, "env", "NCCL_SOCKET_NTHREADS=16\nNCCL_NSOCKS_PERTHREAD=8\n", "socket_threads",
     "NCCL_SOCKET_NTHREADS", "64"},
    {dgx_h100, "env", "NCCL_IB_RETRY_CNT=9\n", "ib_retry_invalid", "", "7"},
    {dgx_h100, "env", "NCCL_IB_TIMEOUT=40\n", "ib_timeout_short", "NCCL_IB_TIMEOUT", "unset"},
    {dgx_h100, "env", "NCCL_PROTO=LL128\n", "proto_ll128", "NCCL_PROTO", "unset"},
    {gb200_tray, "env", "NCCL_NVLS_ENABLE=1\n", "nvls_forced", "", "fabric manager"},
    {dgx_h100, "env", "CUDA_LAUNCH_BLOCKING=1\n", "launch_blocking", "", "unset"},
    {dgx_h100, "env", "TORCH_DISTRIBUTED_DEBUG=DETAIL\n", "distributed_debug", "", "unset"},
    {dgx_h100, ".nccl.conf", "NCCL_DEBUG =INFO\n", "env_blank_name", "NCCL_DEBUG ", "blanks"},
    {dgx_h100, ".nccl.conf", "export NCCL_IB_SL=1\n", "env_blank_name", "export NCCL_IB_SL",
     "export"},
    {dgx_h100, "env", "NCCL_CONF_FILE=~/nccl.conf\n", "env_tilde", "NCCL_CONF_FILE", "path"},
    /* The same facts in other places and other words */
    {container, "proc/self/mountinfo",
     "812 811 0:52 / /dev/shm rw,nosuid - tmpfs shm rw,size=64m\n", "shm_small", "/dev/shm",
     "shm-size"},
    {container, "sys/fs/cgroup/cpuset.cpus.effective", "0-3,64-67\n", "cpu_quota", "", "CPUs"},
    {container, "sys/fs/cgroup/cpu.stat", "usage_usec 9\nnr_periods 400\nnr_throttled 90\n",
     "cpu_throttled", "", "limit"},
    {container, "sys/fs/cgroup/cpu.pressure", "some avg10=55.00 avg60=61.20 avg300=8.00 total=1\n",
     "cpu_pressure", "", "loader"},
    {dgx_h100, "dmesg", "[ 12.5] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\n", "gpu_lost",
     "", "reboot"},
    {cpu_only, "dmesg", "[ 12.5] Memory cgroup out of memory: Killed process 7 (python)\n",
     "host_out_of_memory", "", "memory"},
    {cpu_only, "dmesg", "[ 12.5] amdgpu 0000:83:00.0: amdgpu: GPU reset begin!\n", "amd_gpu_reset",
     "0000:83:00.0", "firmware"},
    {dgx_h100, "dmesg",
     "[ 1.5] pcieport 0000:16:00.0: AER: Uncorrected (Fatal) error received: 0000:1a:00.0\n",
     "aer_uncorrected", "", "device"},
    {dgx_h100, "gpu.csv",
     "index, name, utilization.gpu [%], clocks.sm [MHz], clocks.max.sm [MHz]\n0, NVIDIA H100, 99 "
     "%, "
     "600 MHz, 1980 MHz\n",
     "clock_low", "GPU 0", "CLOCK"},
    {cpu_only, "smi.txt", "Failed to initialize NVML: Driver/library version mismatch\n",
     "driver_mismatch", "", "modules"},
    {gb200_tray, "imex.txt", "Node #0 * 10.0.0.8 * - READY\n\nDomain State: DEGRADED\n",
     "imex_down", "", "nvidia-imex"},
    {dgx_h100, "diag.txt",
     "| Diagnostic    | Result        |\n| Denylist      | Pass          |\n| PCIe          | Fail "
     "- "
     "GPU: 5 |\n",
     "dcgm_failure", "", "dcgmi"},
};

TEST(planted_faults_are_found)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        OWNED(knee_facts) facts = {0};
        const struct fault *f = &faults[i];
        f->machine(&facts);
        if (strcmp(f->path, "knee.facts") == 0)
            knee_facts_read(&facts, f->text, strlen(f->text));
        else
            give(&facts, f->path, f->text);
        OWNED(knee_checkup) c = examine(&facts, 1, NULL);
        const struct knee_ailment *a = found(&c, f->rule);
        if (!a)
            fail_msg("%s (%s) is not found", f->rule, f->text);
        if (a->severity < KNEE_WARNING || !strstr(a->where, f->where) || !strstr(a->cure, f->cure))
            fail_msg("%s: severity %d, where '%s', cure '%s'", f->rule, (int)a->severity, a->where,
                     a->cure);
    }
    assert_true(sizeof faults / sizeof *faults >= 30);
}

/* Values of one GPU of eight, and the rule that must say so. */
TEST(sick_gpus_are_found)
{
    struct {
        struct gpu_values values;
        const char *rule;
    } sick[13];
    for (size_t i = 0; i < 13; i++)
        sick[i].values = good_gpu;
    sick[0].values.pending = "Yes", sick[0].rule = "row_remap_pending";
    sick[1].values.errors = "3", sick[1].rule = "ecc_uncorrected";
    sick[2].values.thermal = "Active", sick[2].rule = "hw_thermal";
    sick[3].values.brake = "Active", sick[3].rule = "hw_power_brake";
    sick[4].values.limit = "500.00 W", sick[4].rule = "power_limit_low";
    sick[5].values.width = "8x", sick[5].rule = "gpu_pcie_narrow";
    sick[6].values.fabric = "In Progress", sick[6].rule = "fabric_state";
    sick[7].values.recovery = "Drain and Reset", sick[7].rule = "gpu_recovery";
    sick[8].values.load = "97 %", sick[8].values.gen = "3", sick[8].rule = "gpu_pcie_slow";
    sick[9].values.app_clock = "1200 MHz", sick[9].rule = "clocks_lowered";
    sick[10].values.load = "99 %", sick[10].values.clock = "345 MHz", sick[10].rule = "clock_low";
    sick[11].values.ecc = "Disabled", sick[11].rule = "ecc_off";
    sick[12].values.mode = "Prohibited", sick[12].rule = "compute_mode";
    for (size_t i = 0; i < 13; i++) {
        OWNED(knee_facts) facts = {0};
        gpus(&facts, 8, "NVIDIA H100 80GB HBM3", &sick[i].values);
        OWNED(knee_checkup) c = examine(&facts, 1, NULL);
        const struct knee_ailment *a = found(&c, sick[i].rule);
        if (!a || a->severity < KNEE_WARNING || strcmp(a->where, "GPU 0000:17:00.0") != 0)
            fail_msg("%s: %s", sick[i].rule, a ? a->where : "not found");
        assert_int_equal(knee_checkup_count(&c, KNEE_WARNING), 1);
    }
}

/* Devices of /sys/bus/pci/devices: eight GPUs and eight adapters, the sixth of each spoilt. */
static void bus(struct knee_facts *facts, const char *width, const char *speed)
{
    static const char *const kinds[][2] = {{"0x10de\n", "0x030200\n"}, {"0x15b3\n", "0x020700\n"}};
    for (int i = 0; i < 16; i++) {
        bool bad = i % 8 == 5;
        const char *const files[][2] = {{"vendor", kinds[i / 8][0]},
                                        {"class", kinds[i / 8][1]},
                                        {"current_link_width", bad ? width : "16\n"},
                                        {"max_link_width", "16\n"},
                                        {"current_link_speed", bad ? speed : "32.0 GT/s PCIe\n"},
                                        {"max_link_speed", "32.0 GT/s PCIe\n"},
                                        {"local_cpulist", i % 8 < 4 ? "0-31\n" : "32-63\n"}};
        for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
            char path[96];
            snprintf(path, sizeof path, "sys/bus/pci/devices/0000:%02x:00.0/%s", 0x10 + i,
                     files[k][0]);
            give(facts, path, files[k][1]);
        }
    }
}

TEST(devices_of_the_bus)
{
    OWNED(knee_facts) facts = {0};
    bus(&facts, "8\n", "16.0 GT/s PCIe\n");
    give(&facts, "env", "SLURM_LOCALID=6\n");
    give(&facts, "proc/self/status", "Name:\tpython\nCpus_allowed_list:\t0-7\n");
    OWNED(knee_checkup) c = examine(&facts, 1, NULL);
    assert_string_equal(found(&c, "gpu_pcie_narrow")->where, "0000:15:00.0");
    assert_string_equal(found(&c, "nic_pcie_narrow")->where, "0000:1d:00.0");
    assert_string_equal(found(&c, "nic_pcie_slow")->where, "0000:1d:00.0");
    assert_string_equal(found(&c, "affinity_far")->where, "0000:16:00.0");
    assert_null(found(&c, "gpu_pcie_slow")); /* idle GPUs slow their links down */
    knee_checkup_release(&c);
    knee_facts_release(&facts);
    facts = (struct knee_facts){0}; /* the rank sees one GPU only, and that is beside it */
    bus(&facts, "16\n", "32.0 GT/s PCIe\n");
    give(&facts, "env", "LOCAL_RANK=6\nCUDA_VISIBLE_DEVICES=2\n");
    give(&facts, "proc/self/status", "Cpus_allowed_list:\t0-7\n");
    c = examine(&facts, 1, NULL);
    assert_int_equal(c.count, 0);
}

/* cgroup 1 has the quota and its period in two files; -1 is no quota. */
TEST(quota_of_cgroup_1)
{
    for (int limited = 0; limited < 2; limited++) {
        OWNED(knee_facts) facts = {0};
        container(&facts);
        give(&facts, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", limited ? "400000\n" : "-1\n");
        give(&facts, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
        OWNED(knee_checkup) c = examine(&facts, 1, NULL);
        assert_true((found(&c, "cpu_quota") != NULL) == limited);
    }
}

/* GPUs that the bus has and the driver does not. */
TEST(a_gpu_is_missing)
{
    OWNED(knee_facts) facts = {0};
    gpus(&facts, 7, "NVIDIA H100 80GB HBM3", &good_gpu);
    bus(&facts, "16\n", "32.0 GT/s PCIe\n");
    OWNED(knee_checkup) c = examine(&facts, 1, NULL);
    assert_int_equal(found(&c, "gpu_not_listed")->severity, KNEE_ERROR);
}

/* The first of a row of interfaces is often another network's: a remark. */
TEST(fellows_of_an_interface)
{
    for (int odd = 0; odd < 2; odd++) {
        OWNED(knee_facts) facts = {0};
        for (int i = 0; i < 5; i++) {
            char name[8];
            snprintf(name, sizeof name, "eth%d", i);
            interface(&facts, name, "8244\n", i == 2 * odd ? "100000\n" : "200000\n");
        }
        OWNED(knee_checkup) c = examine(&facts, 1, NULL);
        const struct knee_ailment *a = found(&c, "net_slow");
        assert_string_equal(a->where, odd ? "eth2" : "eth0");
        assert_int_equal(a->severity, odd ? KNEE_WARNING : KNEE_NOTE);
        assert_near(a->left, 0.5, 1e-12);
    }
}

/* ---- What NCCL reads ---- */

/* What NCCL 2.28.9 printed for these values on an H200 on 2026-11-15: bench/nccl-env. */
static const struct {
    const char *name, *value, *printed;
} h200[] = {
    {"NCCL_CUMEM_HOST_ENABLE", "0", "0"},
    {"NCCL_COLLNET_ENABLE", "00", "0"},
    {"NCCL_SET_STACK_SIZE", "1", "1"},
    {"NCCL_IB_DISABLE", "true", "0"},
    {"NCCL_CHECK_POINTERS", "1", "1"},
    {"NCCL_DMABUF_ENABLE", "1e3", "1"},
    {"NCCL_RAS_ENABLE", "off", "0"},
    {"NCCL_CUMEM_ENABLE", "on", "0"},
    {"NCCL_MNNVL_ENABLE", "0", "0"},
    {"NCCL_PXN_DISABLE", "1", "1"},
    {"NCCL_IGNORE_CPU_AFFINITY", "1", "1"},
    {"NCCL_NVLS_ENABLE", "0", "0"},
    {"NCCL_CROSS_NIC", " 1", "1"},
    {"NCCL_MAX_NCHANNELS", "010", "8"},
    {"NCCL_MIN_NCHANNELS", "4abc", "4"},
    {"NCCL_BUFFSIZE", "0x100000", "1048576"},
    {"NCCL_GRAPH_MIXING_SUPPORT", "0", "0"},
    {"NCCL_NTHREADS", "0400", "256"},
    {"NCCL_WIN_ENABLE", "0", "0"},
    {"NCCL_SOCKET_FAMILY", "AF_INET", "AF_INET"},
    {"NCCL_SOCKET_IFNAME", "^docker0,veth", "^docker0,veth"},
};

TEST(values_are_read_as_nccl_reads_them)
{
    OWNED(knee_facts) facts = {0};
    char text[2048] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof h200 / sizeof *h200; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s=%s\n", h200[i].name,
                                 h200[i].value);
    give(&facts, "env", text);
    OWNED(knee_checkup) c = examine(&facts, 1, NULL);
    for (size_t i = 0; i < sizeof h200 / sizeof *h200; i++) {
        const struct knee_setting *s = NULL;
        for (size_t k = 0; k < c.setting_count; k++)
            if (strcmp(c.settings[k].name, h200[i].name) == 0)
                s = &c.settings[k];
        assert_non_null(s);
        assert_string_equal(s->read[0] ? s->read : s->value, h200[i].printed);
    }
}

TEST(integers)
{
    long long n = -7;
    bool clean = false;
    assert_false(knee_nccl_integer("", &n, &clean));
    assert_false(knee_nccl_integer("99999999999999999999", &n, &clean));
    assert_int_equal(n, -7);
    assert_true(knee_nccl_integer("yes", &n, &clean) && n == 0 && !clean);
    assert_true(knee_nccl_integer("1 ", &n, &clean) && n == 1 && clean);
    assert_true(knee_nccl_integer("0x2", &n, &clean) && n == 2 && clean);
    assert_true(knee_nccl_integer("010", &n, &clean) && n == 8 && clean);
}

static struct knee_checkup with_env(struct knee_facts *facts, const char *env, const char *nccl)
{
    struct knee_doctor_options options = {.nccl = nccl};
    give(facts, "env", env);
    return examine(facts, 1, &options);
}

TEST(releases)
{
    struct {
        const char *env, *nccl, *rule;
    } cases[] = {
        {"NCCL_NVLS_ENABLE=0\n", "2.12.12", "env_too_new"},
        {"NCCL_IB_CUDA_SUPPORT=1\n", "2.28.9", "env_gone"},
        {"NCCL_TREE_THRESHOLD=0\n", "2.20.5", "env_gone"},
        {"NCCL_WORK_FIFO_DEPTH=1024\n", "2.22.3", "env_gone"},
        {"NCCL_IB_ROCE_VERSION_NUM=2\n", "2.22.3", "roce_version_crash"},
        {"NCCL_ASYNC_ERROR_HANDLING=1\n", "2.28.9", "env_renamed"},
        {"NCCL_FOO_BAR_BAZ=1\n", "2.28.9", "env_unknown"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED(knee_facts) facts = {0};
        OWNED(knee_checkup) c = with_env(&facts, cases[i].env, cases[i].nccl);
        if (!found(&c, cases[i].rule))
            fail_msg("%s with %s: no %s", cases[i].env, cases[i].nccl, cases[i].rule);
        assert_int_equal(c.count, 1);
    }
    OWNED(knee_facts) facts = {0}; /* each where it is known says nothing */
    OWNED(knee_checkup) c = with_env(&facts, "NCCL_TREE_THRESHOLD=0\n", "2.4.8");
    assert_int_equal(c.count, 0);
}

/* What people write into the environment of a healthy machine, and what must be said of it; "" is
 * nothing above a note. */
TEST(spellings)
{
    static const struct {
        const char *env, *nccl, *rule;
    } cases[] = {
        {"nccl_ib_timeout=22\n", NULL, "env_misspelt"},
        {"NCCL_ib_timeout=22\n", NULL, "env_misspelt"},
        {"NCLL_IB_TIMEOUT=22\n", NULL, "env_misspelt"},
        {"NCCLIB_TIMEOUT=22\n", NULL, "env_misspelt"},
        {"NCCL-IB-TIMEOUT=22\n", NULL, "env_misspelt"},
        {"NCCL_BI_TIMEOUT=22\n", NULL, "env_misspelt"},
        {"NCCL_IB_TIMEOUTT=20\n", NULL, "env_misspelt"},
        {"CUDA_VISIBLE_DEVICE=0\n", NULL, "env_misspelt"},
        {"TORCH_NCCL_BLOKING_WAIT=1\n", NULL, "env_misspelt"},
        {"CUDA_VISIBLE_DEVICES=0,1\nOMP_NUM_THREADS=4\nTORCH_NCCL_USE_COMM_NONBLOCKING=1\n", NULL,
         ""},
        {"NCCL_ALGO=^Tree\n", NULL, ""},
        {"NCCL_ALGO=Ring,,Tree\n", NULL, ""},
        {"NCCL_ALGO=allreduce:tree,ring;broadcast:ring\n", "2.24.3", ""},
        {"NCCL_ALGO=allreduce:tree\n", "2.18.5", "env_bad_word"},
        {"NCCL_ALGO=allreduce:treee\n", "2.24.3", "env_bad_word"},
        {"NCCL_ALGO=abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz\n", NULL, "env_bad_word"},
        {"NCCL_DEBUG_SUBSYS=init,NET,^tuning\n", NULL, "env_bad_word"},
        {"NCCL_DEBUG_SUBSYS=^init,NET\n", NULL, ""},
        {"NCCL_P2P_LEVEL=LOC\n", NULL, "p2p_disabled"},
        {"NCCL_P2P_LEVEL=0\n", NULL, "p2p_disabled"},
        {"NCCL_P2P_LEVEL=NVL\n", NULL, ""},
        {"NCCL_P2P_LEVEL=-1\n", NULL, "env_bad_level"},
        {"NCCL_P2P_LEVEL=3x\n", NULL, "env_bad_level"},
        {"NCCL_P2P_LEVEL=99999999999999999999\n", NULL, "env_bad_level"},
        {"NCCL_NET_GDR_LEVEL=0\n", NULL, "gdr_level_off"},
        {"NCCL_IB_TIMEOUT=-99999999999999999999\n", NULL, "env_not_a_number"},
        {"NCCL_IB_TIMEOUT=20 \n", NULL, ""},
        {"NCCL_IB_TIMEOUT=20ms\n", NULL, "env_not_a_number"},
        {"NCCL_IB_TIMEOUT=\n", NULL, ""},
        {"NCCL_DEBUG_FILE=~/nccl.log\n", NULL, "env_tilde"},
        {"NCCL_NET=socket\n", NULL, "ib_disabled"},
        {"NCCL_NET=IB\nNCCL_IB_DISABLE=1\n", NULL, "net_contradict"},
        {"NCCL_ALGO=NVLSTree\nNCCL_NVLS_ENABLE=0\n", NULL, "algo_contradict"},
        {"NCCL_ALGO=Ring,NVLS\nNCCL_NVLS_ENABLE=0\n", NULL, ""},
        {"NCCL_MNNVL_ENABLE=1\nNCCL_CUMEM_ENABLE=0\n", NULL, "mnnvl_contradict"},
        {"NCCL_IB_SL=16\n", NULL, "env_out_of_range"},
        {"NCCL_IB_TC=255\n", NULL, ""},
        {"NCCL_SOCKET_IFNAME=docker0\n", NULL, "wrong_interface"},
        {"CUDA_VISIBLE_DEVICES=1,0,1\n", NULL, "gpu_visible_twice"},
        {"TORCH_DISTRIBUTED_DEBUG=detail\n", NULL, "distributed_debug"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED(knee_facts) facts = {0};
        dgx_h100(&facts);
        OWNED(knee_checkup) c = with_env(&facts, cases[i].env, cases[i].nccl);
        const struct knee_ailment *a = found(&c, cases[i].rule);
        if (cases[i].rule[0] ? !a || a->severity < KNEE_WARNING
                             : knee_checkup_count(&c, KNEE_WARNING) > 0)
            fail_msg("%s: not %s", cases[i].env,
                     cases[i].rule[0] ? cases[i].rule : c.findings[0].evidence);
    }
}

/* NCCL does not trim: a blank before a name or a port that is not there take nothing. */
TEST(names_are_taken_as_they_are)
{
    static const char *const envs[] = {"NCCL_IB_HCA=mlx5_2, mlx5_3\n", "NCCL_IB_HCA=mlx5_2:2\n",
                                       "NCCL_IB_HCA==mlx5_2:1,mlx5_3:1\n"};
    for (size_t i = 0; i < 3; i++) {
        OWNED(knee_facts) facts = {0};
        rails(&facts, 8, "400 Gb/sec (4X NDR)\n", "InfiniBand\n");
        OWNED(knee_checkup) c = with_env(&facts, envs[i], NULL);
        assert_true((found(&c, "hca_absent") != NULL) == (i < 2));
    }
}

TEST(environment_beats_files)
{
    OWNED(knee_facts) facts = {0};
    give(&facts, "etc/nccl.conf", "# site\nNCCL_IB_TIMEOUT=18\nNCCL_CROSS_NIC=2\nNCCL_IB_SL=1\n");
    give(&facts, "home/.nccl.conf", "NCCL_IB_TIMEOUT=19\nNCCL_CROSS_NIC=2\n");
    give(&facts, "env", "NCCL_IB_TIMEOUT=22\n");
    OWNED(knee_checkup) c = examine(&facts, 1, NULL);
    assert_int_equal(c.setting_count, 3);
    assert_string_equal(c.settings[0].name, "NCCL_CROSS_NIC");
    assert_string_equal(c.settings[0].from, "~/.nccl.conf");
    assert_string_equal(c.settings[1].name, "NCCL_IB_SL");
    assert_string_equal(c.settings[1].from, "/etc/nccl.conf");
    assert_string_equal(c.settings[2].value, "22");
    assert_string_equal(c.settings[2].from, "environment");
    assert_non_null(found(&c, "env_overridden"));
}

/* With NCCL_CONF_FILE the file in the home folder is not read, whether the named one is there or
 * not.
 */
TEST(the_file_that_is_named)
{
    for (int there = 0; there < 2; there++) {
        OWNED(knee_facts) facts = {0};
        give(&facts, "env", "NCCL_CONF_FILE=/opt/nccl.conf\n");
        give(&facts, ".nccl.conf", "NCCL_IB_SL=1\n");
        if (there)
            give(&facts, "NCCL_CONF_FILE", "NCCL_IB_SL=2\n");
        OWNED(knee_checkup) c = examine(&facts, 1, NULL);
        assert_int_equal(c.setting_count, there ? 2 : 1);
        if (there) {
            assert_string_equal(c.settings[1].value, "2");
            assert_string_equal(c.settings[1].from, "NCCL_CONF_FILE");
        }
    }
}

/* ---- Lines of NCCL ---- */

#define N "n1:10:11 [0] "
static const struct {
    const char *log, *rule;
    enum knee_severity severity;
} lines[] = {
    {N "misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-a to 9 bytes, error: "
       "No space left on device (28)",
     "shm_full", KNEE_ERROR},
    {N "transport/nvls.cc:254 NCCL WARN Cuda failure 1 'invalid argument'", "nvls_fabric",
     KNEE_ERROR},
    {N "NCCL INFO MNNVL busId 0x1 fabric UUID 0.0 cliqueId 0x0 state 3 healthMask 0x89",
     "nvls_fabric", KNEE_ERROR},
    {N "net_ib.cc:9 NCCL WARN NET/IB: Got completion from peer 10.0.0.2<4> with status=12 opcode=1 "
       "len=0 vendor err 129 (Send)",
     "ib_timeout", KNEE_ERROR},
    {N
     "net_ib.cc:9 NCCL WARN NET/IB : Got completion with error 12, opcode 1, len 0, vendor err 129",
     "gid_index", KNEE_ERROR},
    {N "net_ib.cc:9 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4> with error 4, opcode "
       "3, len 3, vendor err 81",
     "ib_access", KNEE_ERROR},
    {N "ib_plugin.c:9 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4> with error 5, opcode "
       "0, len 0, vendor err 249",
     "ib_flushed", KNEE_WARNING},
    {N "ibvwrap.cc:9 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev "
       "mlx5_1:1, local GID ::ffff:1.2.3.4",
     "cross_nic", KNEE_ERROR},
    {N "ibvwrap.cc:9 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev "
       "mlx5_1:1, local GID fe80::1",
     "gid_index", KNEE_ERROR},
    {N "ibvwrap.cc:9 NCCL WARN Call to ibv_modify_qp failed with error Network is unreachable",
     "ip_missing", KNEE_ERROR},
    {N "ibvwrap.cc:9 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory",
     "memlock_low", KNEE_ERROR},
    {N "ibvwrap.cc:9 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Bad address",
     "registration_refused", KNEE_ERROR},
    {N "NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'", "gdr_off", KNEE_WARNING},
    {N "NCCL INFO GPU Direct RDMA Disabled for GPU 1b000 / HCA 3 (distance 9 > 5)", "gdr_distance",
     KNEE_WARNING},
    {N "NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0", "gdr_off", KNEE_WARNING},
    {N "NCCL INFO NET/OFI Selected Provider is sockets (found 1 nics)", "efa_absent", KNEE_WARNING},
    {N "socket.cc:9 NCCL WARN socketPollConnect: Connect to 10.0.0.4<5> returned 113(No route to "
       "host)",
     "peer_unreachable", KNEE_ERROR},
    {N "NCCL INFO Bootstrap : Using lo:127.0.0.1<0>\n" N
       "socket.h:9 NCCL WARN Call to connect timeout : Connection refused",
     "wrong_interface", KNEE_ERROR},
    {N "bootstrap.cc:9 NCCL WARN Bootstrap : no socket interface found", "interface_absent",
     KNEE_ERROR},
    {N "init.cc:9 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000",
     "duplicate_gpu", KNEE_ERROR},
    {N "NCCL INFO Using network IB\nn2:1:2 [0] NCCL INFO Using network Socket", "network_mismatch",
     KNEE_ERROR},
    {N "NCCL INFO NCCL version 2.26.2+cuda12.8\nn2:1:2 [0] NCCL INFO NCCL version 2.27.3+cuda12.8",
     "version_mismatch", KNEE_ERROR},
    {N "NCCL INFO NCCL_ALGO set by environment to Ring\nn2:1:2 [0] NCCL INFO NCCL_ALGO set by "
       "environment to Tree",
     "env_differs", KNEE_WARNING},
    {N "NCCL INFO NET/IB: Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_bond_0:1/RoCE [RO]; OOB "
       "eth0:10.0.0.1<0>",
     "extra_nic", KNEE_WARNING},
    {N "net.cc:9 NCCL WARN Cuda failure 'peer mapping resources exhausted'", "cuda_failure",
     KNEE_ERROR},
    {N "x.cc:9 NCCL WARN something that nobody knows", "other_warning", KNEE_NOTE},
    /* Up to 2.3 without the word NCCL */
    {"n1:10:11 [0] include/socket.h:9 WARN Socket creation failed : Address family not supported "
     "by "
     "protocol",
     "interface_absent", KNEE_ERROR},
    /* Up to 2.8 without a reason */
    {N "misc/ibvwrap.cc:9 NCCL WARN Call to ibv_create_qp failed", "memlock_low", KNEE_ERROR},
    /* Since 2.28 the status has a name */
    {N "net_ib/p2p.cc:9 NCCL WARN NET/IB: Got completion from peer 10.0.0.2<4> with "
       "status=IBV_WC_RNR_RETRY_EXC_ERR(13) opcode=IBV_WC_SEND(0) vendor_err=135 hca mlx5_1",
     "ib_not_ready", KNEE_ERROR},
    /* PyTorch repeats NCCL's last warning behind its own prefix */
    {"[rank5]: ncclSystemError: System call or external library call failed\n[rank5]: Last "
     "error:\n[rank5]: "
     "Error while creating shared memory segment /dev/shm/nccl-b (size 99)\n",
     "shm_full", KNEE_ERROR},
    {"ncclUnhandledCudaError: Call to CUDA function failed.\nLast error: Cuda failure 217 'peer "
     "access is not "
     "supported between these two devices'\n",
     "p2p_unsupported", KNEE_WARNING},
    {N "enqueue.cc:9 NCCL WARN Cuda failure 500 'named symbol not found'", "version_too_old",
     KNEE_ERROR},
    {N "enqueue.cc:9 NCCL WARN HIP failure 'invalid device function'", "version_too_old",
     KNEE_ERROR},
    {N "init.cc:9 NCCL WARN Cuda failure 36 'API call is not supported in the installed CUDA "
       "driver'",
     "driver_too_old", KNEE_ERROR},
    {N "alloc.h:9 NCCL WARN Cuda failure 304 'OS call failed or operation not supported on this "
       "OS'",
     "cumem_refused", KNEE_ERROR},
    {N "misc/socket.cc:9 NCCL WARN socketStartConnect: Connect to 10.0.0.9<4> failed : Software "
       "caused connection "
       "abort",
     "peer_unreachable", KNEE_ERROR},
    {N "misc/socket.cc:9 NCCL WARN socketFinalizeAccept from 10.0.0.9<4>: wrong type 5 != 3",
     "stranger_connects", KNEE_ERROR},
    {N "misc/shmutils.cc:9 NCCL WARN Error while attaching to shared memory segment "
       "/dev/shm/nccl-c (size 9), error: "
       "No such file or directory (2)",
     "hosts_confused", KNEE_ERROR},
    {N "bootstrap.cc:9 NCCL WARN Call to accept failed : Too many open files", "nofile_low",
     KNEE_ERROR},
    {N "bootstrap.cc:9 NCCL WARN Bootstrap Root : mismatch in rank count from procs 8 : 4",
     "rank_count", KNEE_ERROR},
    {N "graph/search.cc:9 NCCL WARN XML Import Channel : dev 3 not found.", "graph_file_wrong",
     KNEE_ERROR},
    {N "net_ib.cc:9 NCCL WARN NET/IB : Got async event : GID table change", "gid_changed",
     KNEE_WARNING},
    {N "ofi.c:9 NCCL WARN NET/OFI Request 0x1 completed with error. RC: 113. Error: no path",
     "ofi_failed", KNEE_ERROR},
    {N "NCCL INFO NET/OFI Selected provider is tcp, fabric is 10.0.0.0/24 (found 1 nics)",
     "efa_absent", KNEE_WARNING},
    {N "NCCL INFO MNNVL 1 cliqueId 2 cliqueSize 8 cliqueRank 0\n" N
       "p2p.cc:9 NCCL WARN Cuda failure 800 'operation not permitted'",
     "imex_missing", KNEE_ERROR},
    {N "net_ib.cc:9 NCCL WARN NET/IB : Unable to open device mlx5_4\n" N
       "NCCL INFO NET/IB : No device found.",
     "ib_absent", KNEE_WARNING},
    {N "NCCL INFO NET/IB : No device found.\n" N
       "NCCL INFO NET/Socket : Using [0]ibp12s0:10.0.0.1<0>",
     "ib_absent", KNEE_WARNING},
    {N "NCCL INFO NET : Using interface ib0:10.0.0.1<0>\n" N
       "NCCL INFO Using internal Network Socket",
     "ib_absent", KNEE_WARNING},
    {N "NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB e:10.0.0.1<0>\nn2:1:2 [0] "
       "NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB e:10.0.0.2<0>",
     "rails_differ", KNEE_WARNING},
    {N "NCCL INFO Bootstrap : Using eth0:172.17.0.2<0>\nn2:1:2 [0] NCCL INFO Bootstrap : Using "
       "eth0:172.17.0.2<0>",
     "wrong_interface", KNEE_ERROR},
    {N "misc/ibvwrap.cc:9 NCCL WARN Call to ibv_create_qp failed with error Unknown error -12",
     "memlock_low", KNEE_ERROR},
    {N
     "misc/ibvwrap.cc:9 NCCL WARN Call to ibv_modify_qp failed with error No data available errno "
     "61",
     "gid_index", KNEE_ERROR},
    {N "graph/topo.h:9 NCCL WARN Could not find NET with id 3", "topology_broken", KNEE_ERROR},
    {N "graph/xml.h:9 NCCL WARN Attribute vendor of node cpu not found", "topo_file_wrong",
     KNEE_ERROR},
    {N "enqueue.cc:9 NCCL WARN Error : no algorithm/protocol available", "no_algorithm",
     KNEE_ERROR},
    /* A rank that died of something else is missed by its peers */
    {N "alloc.h:9 NCCL WARN Cuda failure 2 'out of memory'\nn2:1:2 [0] socket.cc:9 NCCL WARN "
       "socketPollConnect: Connect to 10.0.0.4<5> returned 111(Connection refused)",
     "peer_unreachable", KNEE_NOTE},
};

TEST(lines_of_nccl)
{
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        OWNED(knee_facts) facts = {0};
        give(&facts, "train.log", lines[i].log);
        OWNED(knee_checkup) c = examine(&facts, 1, NULL);
        const struct knee_ailment *a = found(&c, lines[i].rule);
        if (!a || a->severity != lines[i].severity)
            fail_msg("%s: %s", lines[i].rule, lines[i].log);
    }
}

/* What a healthy run prints and what looks like trouble in it: no finding above a note. */
TEST(a_healthy_log)
{
    static const char log[] =
        N "NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin.\n" N
          "NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_7:1/RoCE [RO]; OOB "
          "eth0:10.0.0.1<0>\n" N "NCCL INFO Using network IB\n" N
          "NCCL INFO GPU Direct RDMA Enabled for GPU 0 / HCA 0 (distance 4 <= 5), read 0\n" N
          "NCCL INFO GPU Direct RDMA Disabled for GPU 0 / HCA 1 (distance 9 > 5)\n" N
          "NCCL INFO Call to connect returned Connection refused, retrying\n" N
          "NCCL INFO MNNVL busId 0x1 fabric UUID 0.0 cliqueId 0x0 state 3 healthMask 0xaa\n" N
          "NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n" N
          "NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n" N
          "NCCL INFO comm 0x1 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0\n" N
          "NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 16 - Init COMPLETE\n";
    OWNED(knee_facts) facts = {0};
    give(&facts, "train.log", log);
    OWNED(knee_checkup) c = examine(&facts, 1, NULL);
    for (size_t i = 0; i < c.count; i++)
        if (c.findings[i].severity > KNEE_NOTE)
            fail_msg("%s: %s", c.findings[i].rule->id, c.findings[i].evidence);
}

/* ---- Hosts against each other ---- */

enum { HOSTS = 8 };

static void eight_hosts(struct knee_facts *hosts)
{
    for (size_t i = 0; i < HOSTS; i++) {
        hosts[i] = (struct knee_facts){0};
        dgx_h100(&hosts[i]);
        snprintf(hosts[i].host, sizeof hosts[i].host, "node%zu", i);
    }
}

TEST(the_minority_is_named)
{
    static const struct {
        const char *path, *text, *where, *rule;
    } planted[] = {
        {"sys/class/net/eno1/mtu", "1500\n", "eno1 MTU", "hosts_differ"},
        {"sys/class/infiniband/mlx5_4/ports/1/rate", "200 Gb/sec (2X NDR)\n", "mlx5_4:1 rate",
         "rails_differ"},
        {"env", "NCCL_IB_QPS_PER_CONNECTION=4\n", "NCCL_IB_QPS_PER_CONNECTION", "hosts_differ"},
        {"env", "NCCL_SOCKET_IFNAME=eno\n", "NCCL_SOCKET_IFNAME", "hosts_differ"},
        {"proc/sys/kernel/osrelease", "6.8.0-31-generic\n", "kernel", "hosts_differ_slightly"},
    };
    struct knee_facts hosts[HOSTS];
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        size_t odd = (3 * i + 5) % HOSTS;
        char name[16];
        eight_hosts(hosts);
        give(&hosts[odd], planted[i].path, planted[i].text);
        struct knee_checkup c = examine(hosts, HOSTS, NULL);
        const struct knee_ailment *a = found(&c, planted[i].rule);
        snprintf(name, sizeof name, "node%zu", odd);
        if (!a || strcmp(a->where, planted[i].where) != 0 || strcmp(a->host, name) != 0 ||
            a->hosts != 1 || !strstr(a->evidence, "7 of 8"))
            fail_msg("%s on %s: %s %s", planted[i].where, name, a ? a->host : "not found",
                     a ? a->evidence : "");
        knee_checkup_release(&c);
        for (size_t k = 0; k < HOSTS; k++)
            knee_facts_release(&hosts[k]);
    }
}

TEST(equal_hosts_do_not_differ)
{
    struct knee_facts hosts[HOSTS];
    eight_hosts(hosts);
    struct knee_checkup c = examine(hosts, HOSTS, NULL);
    assert_int_equal(knee_checkup_count(&c, KNEE_NOTE), 0);
    knee_checkup_release(&c);
    for (size_t k = 0; k < HOSTS; k++)
        knee_facts_release(&hosts[k]);
}

/* ---- The price ---- */

static double share_at(const char *rate)
{
    struct knee_facts facts = {0};
    dgx_h100(&facts);
    give(&facts, "sys/class/infiniband/mlx5_5/ports/1/rate", rate);
    struct knee_checkup c = examine(&facts, 1, NULL);
    const struct knee_ailment *a = found(&c, "rail_slow");
    assert_non_null(a);
    double share = a->price.share;
    assert_relative(share, a->price.healthy_s / a->price.hurt_s, 1e-12);
    knee_checkup_release(&c);
    knee_facts_release(&facts);
    return share;
}

TEST(slower_rails_cost_more)
{
    double half = share_at("200 Gb/sec (2X NDR)\n"), quarter = share_at("100 Gb/sec (1X NDR)\n");
    assert_true(quarter < half && half < 1);
    /* One level at half its rate makes the whole at most twice as slow. */
    assert_true(half >= 0.5 && quarter >= 0.25);
}

TEST(a_job_pays_what_predict_says)
{
    OWNED(knee_facts) facts = {0};
    struct knee_job job =
        job_of("model llama2-7b cluster dgx-h100 global-batch 512 workers 64 price 3");
    struct knee_doctor_options options = {.job = &job};
    OWNED(knee_prediction) before =
        predict("model llama2-7b cluster dgx-h100 global-batch 512 workers 64 price 3");
    dgx_h100(&facts);
    give(&facts, "sys/class/infiniband/mlx5_5/ports/1/rate", "200 Gb/sec (2X NDR)\n");
    OWNED(knee_checkup) c = examine(&facts, 1, &options);
    const struct knee_toll *p = &found(&c, "rail_slow")->price;
    assert_near(p->ratio_before, before.at.ratio, 1e-12);
    assert_near(p->step_before_s, before.at.step.wall_s, 1e-12);
    assert_true(p->ratio_after > p->ratio_before && p->step_after_s > p->step_before_s);
    assert_near(p->lost, 1 - p->step_before_s / p->step_after_s, 1e-12);
    assert_relative(p->dollars_per_day, p->lost * 64 * 3 * 24, 1e-9);
    /* The second way: predict itself with half the network. */
    struct knee_job half = before.job;
    half.hw.bandwidth_bytes_per_s /= 2;
    half.at = 64;
    OWNED(knee_prediction) after;
    assert_ok(knee_predict(&half, NULL, &after, NULL));
    assert_relative(p->step_after_s, after.at.step.wall_s, 1e-9);
}

/* A lower limit costs more; without a limit there is no cost; what nobody would notice is not told
 * as a loss. */
TEST(lower_limits_cost_more)
{
    static const char *const limits[] = {"690.00 W", "500.00 W", "350.00 W"};
    double before = 0;
    for (size_t i = 0; i < 3; i++) {
        OWNED(knee_facts) facts = {0};
        struct gpu_values values = good_gpu;
        struct knee_job job =
            job_of("model llama2-7b cluster dgx-h100 global-batch 512 workers 64 price 3");
        struct knee_doctor_options options = {.job = &job};
        values.limit = limits[i];
        gpus(&facts, 8, "NVIDIA H100 80GB HBM3", &values);
        OWNED(knee_checkup) c = examine(&facts, 1, &options);
        double lost = found(&c, "power_limit_low")->price.lost;
        assert_true(lost > before && lost < 0.5);
        before = lost;
    }
    assert_true(before > 0.1); /* half the power: the clock's cube root, 21 %, of the compute */
}

/* ---- Forms ---- */

TEST(facts_go_and_come_back)
{
    OWNED(knee_facts) facts = {0}, again = {0};
    OWNED(knee_text) text = {0}, second = {0};
    dgx_h100(&facts);
    knee_facts_write(&facts, &text);
    knee_facts_read(&again, text.data, text.length);
    knee_facts_write(&again, &second);
    assert_string_equal(text.data, second.data);
    assert_int_equal(facts.count, again.count);
}

TEST(json_is_json)
{
    OWNED(knee_facts) facts = {0};
    OWNED(knee_text) text = {0};
    struct knee_style style = {0};
    struct knee_json_values values;
    size_t ids = 0;
    dgx_h100(&facts);
    give(&facts, "env", "NCCL_IB_DISABLE=\"\x01\\x\nNCCL_P2P_DISABLE=1\n");
    OWNED(knee_checkup) c = examine(&facts, 1, NULL);
    knee_answer_write(&knee_doctor_answer, &c, KNEE_JSON, &style, &text);
    knee_json_values_init(&values, text.data, text.length);
    while (knee_json_values_next(&values))
        ids += strcmp(values.path, "findings[].id") == 0;
    assert_null(values.error);
    assert_int_equal(ids, c.count);
}

/* Every id is unique, every cure there, every "looks the same" a rule. */
/* Law: whatever rule fires, on whatever host, the headline is one plain line of 80 characters. */
TEST(every_headline_fits_a_line)
{
    static const struct {
        const char *host, *where;
        size_t hosts;
    } places[] = {{"n7", "", 1},
                  {"n7", "GPU 3", 1},
                  {"ip-10-0-255-255.eu-central-1.compute.internal", "mlx5_bond_0:1", 1},
                  {"n7", "enp226s0f0np0 and a device name that is much longer than usual", 1},
                  {"n7", "GPU 3", 1024}};
    for (size_t row = 0; knee_rule_at(row); row++)
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            const struct knee_doctor_rule *rule = knee_rule_at(row);
            struct knee_ailment f = {.rule = rule,
                                     .severity = KNEE_ERROR,
                                     .hosts = places[i].hosts,
                                     .parts = 1,
                                     .left = NAN};
            snprintf(f.host, sizeof f.host, "%s", places[i].host);
            snprintf(f.where, sizeof f.where, "%s", places[i].where);
            snprintf(f.evidence, sizeof f.evidence,
                     "an evidence without a stop that goes on and on, longer than any line of any "
                     "terminal of eighty columns is");
            snprintf(f.cure, sizeof f.cure, "replace it");
            struct knee_checkup c = {.hosts = 2000, .findings = &f, .count = 1};
            OWNED(knee_said) said = {0};
            knee_doctor_answer.say(&c, &said);
            const char *line = said.headline.data;
            if (strlen(line) > 80 || strpbrk(line, "()[]{}") || strchr(line, '\n') ||
                strstr(line, "--") || strchr(line, '.') == line)
                fail_msg("%s: %s", rule->id, line);
            if (rule->title && (strlen(rule->title) > 56 || strstr(line, rule->title) != line))
                fail_msg("%s: %s is not the title", rule->id, line);
        }
}

TEST(the_table_is_sound)
{
    const struct knee_doctor_rule *rule;
    for (size_t i = 0; (rule = knee_rule_at(i)); i++) {
        assert_ptr_equal(knee_rule_of(rule->id), rule);
        assert_true(rule->cure && rule->cure[0]);
        assert_true(!rule->key == !rule->test);
        if (rule->also && !knee_rule_of(rule->also))
            fail_msg("%s looks like %s, which is no rule", rule->id, rule->also);
    }
    const struct knee_nccl_variable *v;
    size_t count = 0;
    for (; (v = knee_nccl_variable_at(count)); count++)
        if (count > 0 && strcmp(knee_nccl_variable_at(count - 1)->name, v->name) >= 0)
            fail_msg("%s is not in order", v->name);
    assert_true(count >= 270);
}
