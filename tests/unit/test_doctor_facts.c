/* SPDX-License-Identifier: MIT */
/*
 * The doctor's rules by facts alone: for each rule the facts that make it speak, those that change
 * how bad it is, and those that silence it.
 */
#include "base/text.h"
#include "judge/doctor/doctor_judge.h"
#include "machines.h"
#include "out/answer.h"
#include "say/answers.h"

/* Facts in the form that knee writes them. */
#define SAYS(subject, key, value)         subject "\t" key "\tnan\t" value "\n"
#define HAS(subject, key, number)         subject "\t" key "\t" number "\t" number "\n"
#define BOTH(subject, key, number, value) subject "\t" key "\t" number "\t" value "\n"
#define ENV(name, value)                  SAYS(name, "env", value)
#define HOST(key, value)                  SAYS("", key, value)

/* Rows without words end before them. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
enum { NOTE = KNEE_NOTE, WARNING = KNEE_WARNING, ERROR = KNEE_ERROR, SILENT = KNEE_SEVERITIES };

struct said {
    const char *facts, *rule;
    int severity;      /* SILENT: the rule is not there */
    const char *words; /* in the evidence; NULL: whatever they are */
};

static struct knee_facts facts_of(const char *lines)
{
    struct knee_facts facts = {0};
    knee_facts_read(&facts, lines, strlen(lines));
    return facts;
}

static void check_rows(const struct said *rows, size_t count,
                       const struct knee_doctor_options *options)
{
    for (size_t i = 0; i < count; i++) {
        OWNED(knee_facts) facts = facts_of(rows[i].facts);
        OWNED(knee_checkup) c = examine(&facts, 1, options);
        const struct knee_ailment *a = found(&c, rows[i].rule);
        if ((a ? (int)a->severity : SILENT) != rows[i].severity)
            fail_msg("%s is %d, not %d:\n%s", rows[i].rule, a ? (int)a->severity : SILENT,
                     rows[i].severity, rows[i].facts);
        if (a && rows[i].words && !strstr(a->evidence, rows[i].words))
            fail_msg("%s: '%s' is not in '%s'", rows[i].rule, rows[i].words, a->evidence);
    }
}
#define CHECK(rows, options) check_rows(rows, sizeof(rows) / sizeof *(rows), options)

/* ---- What is asked first: is there RDMA, are there several nodes, which NCCL ---- */

#define MEMLOCK HAS("", "limit.memlock_bytes", "65536")
#define MTU     HAS("eth0", "net.mtu", "1500")
#define LOOP    ENV("NCCL_SOCKET_IFNAME", "lo")
#define NOT_BR  ENV("NCCL_SOCKET_IFNAME", "^docker0")
#define TWELVE  ENV("NCCL_NVLS_ENABLE", "0")
#define AT_H100 SAYS("GPU 0", "gpu.name", "NVIDIA H100 80GB HBM3")
#define GPU1    SAYS("GPU 1", "gpu.name", "NVIDIA H100 80GB HBM3")
#define GPU2    SAYS("GPU 2", "gpu.name", "NVIDIA H100 80GB HBM3")
#define GPU3    SAYS("GPU 3", "gpu.name", "NVIDIA H100 80GB HBM3")
#define GAMER   SAYS("GPU 0", "gpu.name", "NVIDIA GeForce RTX 4090")

static const struct said first_asked[] = {
    {MEMLOCK, "memlock_low", WARNING, "64 KiB"},
    {MEMLOCK MTU, "memlock_low", NOTE},
    {MEMLOCK MTU HAS("mlx5_0:1", "ib.rate", "400"), "memlock_low", WARNING},
    {MEMLOCK MTU SAYS("mlx5_0:1", "ib.state", "4: ACTIVE"), "memlock_low", WARNING},
    {MEMLOCK MTU SAYS("mlx5_0", "ib.type", "MT4129"), "memlock_low", WARNING},
    {MEMLOCK MTU SAYS("mlx5_0", "log.device", "IB"), "memlock_low", WARNING},
    {HAS("", "limit.memlock_bytes", "1e10"), "memlock_low", SILENT},
    {HAS("", "limit.nofile", "1024"), "nofile_low", NOTE, "1024"},
    {LOOP, "wrong_interface", WARNING, "127.0.0.1"},
    {LOOP HAS("", "log.ranks", "8"), "wrong_interface", WARNING},
    {LOOP HAS("", "log.ranks", "8") SAYS("n1", "log.host", "n1"), "wrong_interface", NOTE},
    {ENV("NCCL_SOCKET_IFNAME", "=lo"), "wrong_interface", WARNING},
    {NOT_BR, "wrong_interface", NOTE, "lo may be taken"},
    {NOT_BR SAYS("n1", "log.host", "n1") SAYS("n2", "log.host", "n2"), "wrong_interface", WARNING},
    {NOT_BR HAS("", "log.nodes", "2"), "wrong_interface", WARNING},
    {NOT_BR HAS("", "log.ranks", "16") HAS("", "log.local_ranks", "8"), "wrong_interface", WARNING},
    {NOT_BR HAS("", "log.ranks", "8") HAS("", "log.local_ranks", "8"), "wrong_interface", NOTE},
    {NOT_BR HAS("", "log.via.socket", "1"), "wrong_interface", WARNING},
    {NOT_BR HAS("", "log.via.plain", "1"), "wrong_interface", WARNING},
    {NOT_BR HAS("", "log.via.gdr", "1"), "wrong_interface", WARNING},
    {TWELVE, "env_too_new", SILENT},
    {TWELVE SAYS("2.12.12", "log.version", "x"), "env_too_new", WARNING, "2.17"},
    {TWELVE HOST("nccl.version", "2.12.12"), "env_too_new", WARNING},
    {TWELVE HOST("nccl.version", "2.28.9") SAYS("2.12.12", "log.version", "x"), "env_too_new",
     WARNING},
    {HOST("kernel.cmdline", "intel_iommu=on"), "iommu_translates", NOTE},
    {HOST("kernel.cmdline", "intel_iommu=on") AT_H100 GPU1, "iommu_translates", WARNING},
    {HOST("kernel.cmdline", "amd_iommu=on") HAS("mlx5_0:1", "ib.rate", "400"), "iommu_translates",
     WARNING},
    {HOST("kernel.cmdline", "intel_iommu=on") HOST("machine.vendor", "QEMU"), "iommu_translates",
     SILENT},
};

TEST(what_is_asked_first)
{
    CHECK(first_asked, NULL);
}

TEST(versions)
{
    static const struct {
        const char *text;
        double number;
    } rows[] = {
        {"2.28.9", 22809}, {"2.28", 22800},   {"2.28.9.4", 22809},    {"5.15.0-1063", 51500},
        {"2", NAN},        {"", NAN},         {"v2.1", NAN},          {"2.x", NAN},
        {"2./3", NAN},     {"10.20", 102000}, {"2.27.3+cuda", 22703}, {"2.28.3rc1", 22803},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double got = knee_version_number(rows[i].text);
        if (isnan(rows[i].number) ? !isnan(got) : got != rows[i].number)
            fail_msg("%s is %.0f", rows[i].text, got);
    }
}

TEST(lists_of_cpus)
{
    assert_near(knee_cpus_in("0-15,64-79"), 32, 0);
    assert_near(knee_cpus_in("3, 5"), 2, 0);
    assert_near(knee_cpus_in("7-4,x,1-x"), 1, 0);
    assert_near(knee_cpus_in(""), 0, 0);
}

/* ---- Ports ---- */

#define PORT(n, state)   SAYS("mlx5_" n ":1", "ib.state", state)
#define RATE(n, g, text) BOTH("mlx5_" n ":1", "ib.rate", g, text)
#define PHYS(n, phys)    SAYS("mlx5_" n ":1", "ib.phys", phys)
#define LAYER(n, layer)  SAYS("mlx5_" n ":1", "ib.layer", layer)
#define GOOD(n)          PORT(n, "4: ACTIVE") RATE(n, "400", "400 Gb/sec (4X NDR)") LAYER(n, "InfiniBand")
#define IB(n)            LAYER(n, "InfiniBand")

static const struct said ports[] = {
    {GOOD("0"), "rail_narrow", SILENT},
    {PORT("0", "Active") RATE("0", "200", "200 Gb/sec (2X NDR)") IB("0"), "rail_narrow", WARNING,
     "2 of 4 lanes"},
    {PORT("0", "Active") RATE("0", "200", "200 Gb/sec (2X NDR)"), "rail_narrow", SILENT},
    {PORT("0", "Active") RATE("0", "200", "200 Gb/sec") IB("0"), "rail_narrow", SILENT},
    {PORT("0", "Active") RATE("0", "200", "200 Gb/sec (NDR)") IB("0"), "rail_narrow", SILENT},
    {PORT("0", "Active") RATE("0", "200", "200 Gb/sec (") IB("0"), "rail_narrow", SILENT},
    {GOOD("0") PORT("1", "2: INIT") PHYS("1", "5: LinkUp") IB("1"), "ib_not_active", ERROR, "INIT"},
    {GOOD("0") PORT("1", "2: INIT") PHYS("1", "LINK_UP") IB("1"), "ib_not_active", ERROR},
    {GOOD("0") PORT("1", "2: INIT") IB("1"), "rail_down", ERROR, "no physical state"},
    {GOOD("0") PORT("1", "2: INIT") PHYS("1", "2: Polling") IB("1"), "rail_down", ERROR, "1 of 2"},
    {GOOD("0") PORT("1", "1: DOWN") PHYS("1", "5: LinkUp") IB("1"), "rail_down", ERROR},
    {GOOD("0") PORT("1", "1: DOWN") LAYER("1", "Ethernet"), "frontend_down", NOTE,
     "no physical state"},
    {GOOD("0") PORT("1", "1: DOWN") LAYER("1", "Ethernet"), "rail_down", SILENT},
    {GOOD("0") PORT("1", "1: DOWN") PHYS("1", "3: Disabled") LAYER("1", "Ethernet"),
     "frontend_down", NOTE, "3: Disabled"},
    {GOOD("0") GOOD("1") PORT("2", "4: ACTIVE") RATE("2", "100", "100 Gb/sec (4X EDR)") IB("2"),
     "rail_slow", ERROR, "25%"},
    {PORT("0", "1: DOWN"), "frontend_down", NOTE},
    {PORT("0", "1: DOWN") AT_H100 GPU1 GPU2 GPU3, "rail_down", ERROR, "0 of 1"},
    {PORT("0", "1: DOWN") GAMER GPU1 GPU2 GPU3, "rail_down", SILENT},
    {PORT("0", "1: DOWN") PORT("1", "1: DOWN") PORT("2", "1: DOWN") PORT("3", "1: DOWN"),
     "rail_down", ERROR, "0 of 4"},
    {PORT("0", "1: DOWN") AT_H100 GPU1 GPU2 GPU3 PORT("1", "4: ACTIVE") LAYER("1", "Ethernet"),
     "rail_down", SILENT},
};

/* One more than are looked at: it is told of, in either table. */
TEST(too_many_ports)
{
    static const char *const keys[] = {"ib.state\tnan\t4: ACTIVE", "ib.gid.0\tnan\tfe80:: v2"};
    for (size_t kind = 0; kind < 2; kind++)
        for (size_t count = 96; count <= 97; count++) {
            OWNED(knee_text) text = {0};
            for (size_t i = 0; i < count; i++)
                knee_text_printf(&text, "mlx5_%zu:1\t%s\n", i, keys[kind]);
            OWNED(knee_facts) facts = facts_of(text.data);
            OWNED(knee_checkup) c = examine(&facts, 1, NULL);
            const struct knee_ailment *a = found(&c, "ports_many");
            assert_int_equal(a != NULL, count > 96);
            if (a)
                assert_non_null(strstr(a->evidence, kind ? "1 GIDs of further" : "1 further port"));
        }
}

#define ROUTED             "0000:0000:0000:0000:0000:ffff:0a01:0203"
#define NOTHING            "0000:0000:0000:0000:0000:0000:0000:0000"
#define GID(n, row, text)  SAYS("mlx5_" n ":1", "ib.gid." row, text)
#define TYPE(n, row, text) SAYS("mlx5_" n ":1", "ib.gidtype." row, text)
#define WANT(row)          ENV("NCCL_IB_GID_INDEX", row)
#define TEN                "1111111111"

static const struct said gids[] = {
    {GID("0", "3", ROUTED " RoCE v2"), "gid_index_unusual", SILENT},
    {GID("0", "5", ROUTED " RoCE v2"), "gid_index_unusual", NOTE, "is 5 here"},
    {GID("0", "5", ROUTED " RoCE v2") WANT("-1"), "gid_index_unusual", NOTE},
    {GID("0", "5", ROUTED " RoCE v2") WANT(""), "gid_index_unusual", NOTE},
    {GID("0", "5", ROUTED " RoCE v2") WANT("5"), "gid_index_unusual", SILENT},
    {GID("0", "5", ROUTED " RoCE v2") WANT("5"), "gid_index", SILENT},
    {GID("0", "5", ROUTED " RoCE v2") WANT("3"), "gid_index", ERROR,
     "=3 is not there; 5 is RoCE v2"},
    {GID("0", "2", ROUTED) TYPE("0", "2", "IB/RoCE v1") GID("0", "3", ROUTED)
         TYPE("0", "3", "RoCE v2") WANT("2"),
     "gid_index", ERROR, "=2 is RoCE v1; 3 is RoCE v2"},
    {GID("0", "2", NOTHING) GID("0", "3", ROUTED " v2") WANT("2"), "gid_index", ERROR, "is empty"},
    {GID("0", "2", ":: v2") GID("0", "3", ROUTED " v2") WANT("2"), "gid_index", ERROR, "is empty"},
    {GID("0", "1", "fe80::1 RoCE v2") GID("0", "0", "fe80::1 v1"), "ip_missing", WARNING,
     "link-local"},
    {GID("0", "1", "fe80::1 RoCE v2") LAYER("0", "Unspecified"), "ip_missing", SILENT},
    {GID("0", "1", "fe80::1 RoCE v2") LAYER("0", "Ethernet"), "ip_missing", WARNING},
    {GID("0", "1", "fe80::1 RoCE v2") PORT("0", "1: DOWN"), "ip_missing", SILENT},
    {GID("0", "1", "fe80::1 RoCE v2") PORT("0", "Active"), "ip_missing", WARNING},
    {GID("0", "1", "fe80::1 RoCE v2") PORT("0", "PORT_ACTIVE (4)"), "ip_missing", WARNING},
    {GID("0", "1", "fe80::1 RoCE v2") GID("1", "3", ROUTED " v2") GID("1", "1", "fe80::1 v2"),
     "ip_missing", WARNING},
    {GID("0", "0", "fe80::1") IB("0") WANT("3"), "gid_index_useless", NOTE, "on InfiniBand"},
    {GID("0", "0", "fe80::1") IB("0"), "gid_index_useless", SILENT},
    {GID("0", TEN TEN TEN TEN TEN TEN, ROUTED " v2"), "gid_index_unusual", SILENT},
    {WANT("1"), "gid_index", WARNING, "link-local"},
    {WANT("2"), "gid_index", WARNING, "RoCE v1"},
    {WANT("3"), "gid_index", SILENT},
    {WANT("x"), "gid_index", SILENT},
    {WANT("2") IB("0"), "gid_index", SILENT},
    {WANT("2") IB("0"), "gid_index_useless", NOTE},
    {WANT("-1") IB("0"), "gid_index_useless", SILENT},
};

TEST(ports_and_their_addresses)
{
    CHECK(ports, NULL);
    CHECK(gids, NULL);
}

/* Names of adapters and interfaces. */
#define HCA(list)    ENV("NCCL_IB_HCA", list)
#define IFNAME(list) ENV("NCCL_SOCKET_IFNAME", list)
#define TWO          HAS("mlx5_1:1", "ib.rate", "400") HAS("mlx5_10:1", "ib.rate", "400")
#define ETH          HAS("eth0", "net.mtu", "1500") HAS("eth1", "net.mtu", "1500")

static const struct said names[] = {
    {HCA("mlx5_1"), "hca_prefix_maybe", NOTE},
    {HCA("^mlx5_1"), "hca_prefix_maybe", SILENT},
    {HCA("=mlx5_1"), "hca_prefix_maybe", SILENT},
    {HCA("mlx5_2"), "hca_prefix_maybe", SILENT},
    {HCA("mlx5_1") TWO, "hca_prefix", WARNING, "mlx5_1 in NCCL_IB_HCA also takes mlx5_10"},
    {HCA("=mlx5_1") TWO, "hca_prefix", SILENT},
    {HCA("mlx5_") TWO, "hca_prefix", SILENT},
    /* mlx5_1 takes mlx5_10 alone, as it may be meant; mlx5_0 has nothing to do with that */
    {HCA("mlx5_1,mlx5_0") HAS("mlx5_0:1", "ib.rate", "400") HAS("mlx5_10:1", "ib.rate", "400"),
     "hca_prefix", SILENT},
    {HCA("mlx5_1,mlx5_2") SAYS("mlx5_1:1", "ib.state", "4: ACTIVE"), "hca_absent", WARNING,
     "mlx5_2"},
    {HCA("mlx5_2") TWO, "hca_absent", ERROR, "2 adapters"},
    {HCA("^mlx5_2") TWO, "hca_absent", SILENT},
    {HCA("^mlx5") TWO, "hca_absent", ERROR, "leaves no adapter"},
    {HCA("^mlx5") MTU, "hca_absent", SILENT},
    {HCA("mlx5") MTU, "hca_absent", WARNING, "falls back to TCP"},
    {HCA("mlx5_1:2") TWO, "hca_absent", ERROR},
    {HCA("mlx5_1:x") TWO, "hca_absent", SILENT},
    {HCA(",,mlx5_10:1,") TWO, "hca_absent", SILENT},
    {HCA("") TWO, "hca_absent", SILENT},
    {HCA("mlx5_100000") TWO, "hca_absent", ERROR},
    {HCA("=mlx5_10") TWO, "hca_absent", SILENT},
    {HCA("mlx5_bond") SAYS("mlx5_bond_0", "ib.state", "4: ACTIVE"), "hca_prefix", SILENT},
    {HCA("a1") HAS("a1b:1", "ib.rate", "400") HAS("a1:1", "ib.rate", "400"), "hca_prefix", SILENT},
    {HCA("a1") HAS("a1/:1", "ib.rate", "400") HAS("a1:1", "ib.rate", "400"), "hca_prefix", SILENT},
    {HCA("a-") HAS("a-1:1", "ib.rate", "400") HAS("a-:1", "ib.rate", "400"), "hca_prefix", SILENT},
    {HCA("mlx5_1,mlx5_2") TWO HAS("mlx5_2:1", "ib.rate", "400") HAS("mlx5_20:1", "ib.rate", "400"),
     "hca_prefix", WARNING, "mlx5_1 in NCCL_IB_HCA also takes mlx5_10"},
    {IFNAME("eth0") ETH, "interface_absent", SILENT},
    {IFNAME("=ens") ETH, "interface_absent", ERROR, "no such interface"},
    {IFNAME("^lo,docker") ETH, "wrong_interface", SILENT},
    {IFNAME("^l") ETH, "wrong_interface", SILENT},
    {IFNAME("^ens") ETH, "interface_absent", SILENT},
    {IFNAME("=docker0") ETH, "wrong_interface", WARNING, "bridge or tunnel"},
    {IFNAME("eth1") HAS("eth1", "net.mtu", "1500") HAS("eth10", "net.mtu", "1500"),
     "interface_prefix", NOTE, "eth10"},
    {ENV("GLOO_SOCKET_IFNAME", "eth1") HAS("eth1", "net.mtu", "1500")
         HAS("eth10", "net.mtu", "1500"),
     "interface_prefix", SILENT},
    {ENV("GLOO_SOCKET_IFNAME", "^lo,docker0"), "wrong_interface", SILENT},
    {ENV("NCCL_OOB_NET_IFNAME", ""), "wrong_interface", SILENT},
    {IFNAME("veth9") HAS("", "log.ranks", "8") SAYS("n1", "log.host", "n1"), "wrong_interface",
     NOTE},
};

TEST(names_of_devices)
{
    CHECK(names, NULL);
}

/* ---- GPUs ---- */

#define G(n, key, value)    SAYS("GPU " n, "gpu." key, value)
#define GN(n, key, number)  HAS("GPU " n, "gpu." key, number)
#define LINK(n, key, count) HAS("GPU " n, "nvlink." key, count)
#define NAMED(n, name)      SAYS("GPU " n, "gpu.name", name)
#define FABRIC              SAYS("nvidia-fabricmanager", "service.state", "inactive (dead)")

static const struct said gpu_rows[] = {
    {HAS("", "gpus.attached", "8") HAS("", "gpus.listed", "7"), "gpu_not_listed", NOTE,
     "says 8 GPUs and lists 7"},
    {HAS("", "gpus.attached", "1") HAS("", "gpus.listed", "1") SAYS("a", "pci.what", "gpu")
         SAYS("b", "pci.what", "gpu") SAYS("c", "pci.what", "nic"),
     "gpu_not_listed", ERROR, "2 GPUs are on the PCI bus"},
    {HAS("", "gpus.attached", "2") HAS("", "gpus.listed", "1") SAYS("a", "pci.what", "gpu")
         SAYS("b", "pci.what", "gpu") SAYS("c", "pci.what", "gpu"),
     "gpu_not_listed", NOTE},
    {GN("0", "pcie_width", "8") GN("0", "pcie_width_max", "16"), "gpu_pcie_narrow", NOTE,
     "x8 of x16"},
    {GN("0", "pcie_width", "8") GN("0", "pcie_width_max", "16") GN("1", "pcie_width", "16"),
     "gpu_pcie_narrow", WARNING, "other GPUs"},
    {GN("0", "pcie_width", "8"), "gpu_pcie_narrow", SILENT},
    {GN("0", "power_limit", "500") GN("0", "power_default", "700"), "power_limit_low", WARNING,
     "500 W"},
    {GAMER GN("0", "power_limit", "500") GN("0", "power_default", "700"), "power_limit_low", NOTE},
    {GN("0", "power_limit", "699") GN("0", "power_default", "700"), "power_limit_low", SILENT},
    {GN("0", "pcie_gen", "3") GN("0", "pcie_gen_max", "5") GN("0", "util", "99"), "gpu_pcie_slow",
     WARNING, "3 of 5"},
    {GN("0", "pcie_gen", "3") GN("0", "pcie_gen_max", "5") GN("0", "util", "9"), "gpu_pcie_slow",
     SILENT},
    {GN("0", "pcie_gen", "5") GN("0", "pcie_gen_max", "5") GN("0", "util", "99"), "gpu_pcie_slow",
     SILENT},
    {GN("0", "clock", "400") GN("0", "clock_max", "1980") GN("0", "util", "99"), "clock_low",
     WARNING, "400 of 1980"},
    {GN("0", "clock", "400") GN("0", "clock_max", "1980") GN("0", "util", "0"), "clock_low",
     SILENT},
    {G("0", "event.sw_thermal", "Active"), "sw_thermal", WARNING},
    {G("0", "event.sw_thermal", "Not Active"), "sw_thermal", SILENT},
    {G("0", "ecc", "Disabled"), "ecc_off", NOTE, "ECC is off: "},
    {G("0", "ecc", "Disabled") G("1", "ecc", "Enabled"), "ecc_off", WARNING, "on for other GPUs"},
    {G("0", "ecc", "N/A"), "ecc_off", SILENT},
    {GAMER G("0", "ecc", "Disabled"), "ecc_off", SILENT},
    {G("0", "ecc", "Enabled") G("0", "ecc_pending", "Disabled"), "ecc_mode_pending", NOTE,
     "ECC is Enabled, and Disabled after a reset"},
    {G("0", "ecc", "Enabled") G("0", "ecc_pending", "Enabled"), "ecc_mode_pending", SILENT},
    {G("0", "ecc_pending", "Enabled"), "ecc_mode_pending", SILENT},
    {GN("0", "memory_used", "9000") GN("0", "util", "0"), "gpu_memory_held", NOTE, "9000"},
    {GN("0", "memory_used", "900") GN("0", "util", "0"), "gpu_memory_held", SILENT},
    {GN("0", "memory_used", "9000") GN("0", "util", "7"), "gpu_memory_held", SILENT},
    {GN("0", "memory_used", "9000") GN("0", "util", "0") G("0", "process", "python"),
     "gpu_memory_held", SILENT},
    {GAMER GN("0", "memory_used", "9000") GN("0", "util", "0"), "gpu_memory_held", SILENT},
    {G("0", "lost", "GPU is lost"), "gpu_lost", ERROR, "is lost"},
    {SAYS("3b:00", "kernel.off_bus", "has fallen off the bus"), "gpu_lost", ERROR},
    {SAYS("3b:00", "kernel.off_bus", "fallen") BOTH("3b:00", "xid.79", "1", "Xid (3b:00): 79"),
     "gpu_lost", SILENT},
    {HOST("smi.failed", "cannot talk to the driver"), "smi_failed", ERROR},
    {HOST("smi.failed", "Driver/library version mismatch"), "driver_mismatch", ERROR},
    {HOST("smi.failed", "no") SAYS("n", "kernel.driver_mismatch", "API mismatch"),
     "driver_mismatch", ERROR, "API mismatch"},
    {HOST("smi.failed", "no") SAYS("n", "kernel.driver_mismatch", "API mismatch"), "smi_failed",
     SILENT},
    {FABRIC, "fabric_manager_down", ERROR},
    {FABRIC NAMED("0", "NVIDIA H100 80GB HBM3"), "fabric_manager_down", ERROR},
    {FABRIC NAMED("0", "NVIDIA L40S"), "fabric_manager_down", NOTE},
    {FABRIC NAMED("0", "NVIDIA H200 NVL"), "fabric_manager_down", NOTE},
    {LINK("0", "inactive", "1") LINK("0", "active", "17") LINK("0", "links", "18"),
     "nvlink_inactive", ERROR, "1 of 18"},
    {LINK("0", "inactive", "0") LINK("0", "active", "18") LINK("0", "links", "18"),
     "nvlink_inactive", SILENT},
    {LINK("0", "inactive", "4") LINK("0", "active", "0") LINK("0", "links", "4"), "nvlink_absent",
     NOTE},
    {LINK("0", "inactive", "0") LINK("0", "active", "0"), "nvlink_absent", SILENT},
    {LINK("0", "active", "12") LINK("1", "active", "18"), "nvlink_pair_short", WARNING,
     "12 NVLinks, other GPUs have 18"},
    {LINK("0", "active", "12") LINK("0", "inactive", "6") LINK("1", "active", "18"),
     "nvlink_pair_short", SILENT},
    {HAS("GPU 0", "topo.least_nvlinks", "6") HAS("GPU 0", "topo.most_nvlinks", "18"),
     "nvlink_pair_short", WARNING, "6 NVLinks to one GPU"},
    {HAS("GPU 0", "topo.least_nvlinks", "1") HAS("GPU 0", "topo.most_nvlinks", "2"),
     "nvlink_pair_short", SILENT},
    {HAS("GPU 0", "topo.least_nvlinks", "18") HAS("GPU 0", "topo.most_nvlinks", "18"),
     "nvlink_pair_short", SILENT},
    {HAS("GPU 0", "topo.least_nvlinks", "0") HAS("GPU 0", "topo.most_nvlinks", "0"),
     "p2p_over_pcie", NOTE},
    {HAS("GPU 0", "topo.least_nvlinks", "0") HAS("GPU 0", "topo.most_nvlinks", "0")
         HAS("GPU 1", "topo.least_nvlinks", "0") HAS("GPU 1", "topo.most_nvlinks", "4")
             HAS("GPU 2", "topo.least_nvlinks", "0"),
     "p2p_over_pcie", SILENT},
    {SAYS("GPU 0", "topo.nearest_nic", "SYS"), "gpu_far_from_nic", NOTE},
    {SAYS("GPU 0", "topo.nearest_nic", "SYS") SAYS("GPU 1", "topo.nearest_nic", "PIX"),
     "gpu_far_from_nic", WARNING},
};

/* ---- The bus ---- */

#define BRIDGE(at, from, to)                                                                       \
    SAYS(at, "pci.what", "bridge")                                                                 \
    HAS(at, "pci.bus_from", from) HAS(at, "pci.bus_to", to)
#define ACS(at, how)     SAYS(at, "pci.acs", how)
#define WHAT(at, what)   SAYS(at, "pci.what", what)
#define WIDTH(at, width) SAYS(at, "pci.lnk_width", width)
#define BUS_DEVICE(at, vendor, class)                                                              \
    SAYS(at, "pcidev.vendor", vendor)                                                              \
    SAYS(at, "pcidev.class", class) HAS(at, "pcidev.width", "8") HAS(at, "pcidev.width_max", "16")

static const struct said pci_rows[] = {
    {BRIDGE("0000:17:01.0", "25", "25") ACS("0000:17:01.0", "SrcValid+ ReqRedir-")
         WHAT("0000:19:00.0", "gpu"),
     "acs_on", WARNING, "SrcValid+"},
    {BRIDGE("0000:17:01.0", "25", "25") ACS("0000:17:01.0", "SrcValid- ReqRedir+")
         WHAT("0000:19:00.0", "nic"),
     "acs_on", WARNING, "ReqRedir+"},
    {BRIDGE("0000:17:01.0", "25", "25") ACS("0000:17:01.0", "SrcValid+") WHAT("0000:19:00.0", "gpu")
         HOST("machine.vendor", "QEMU"),
     "acs_on", NOTE},
    {BRIDGE("0000:17:01.0", "25", "25") ACS("0000:17:01.0", "SrcValid- ReqRedir-")
         WHAT("0000:19:00.0", "gpu"),
     "acs_on", SILENT},
    {WHAT("0000:19:00.0", "gpu") ACS("0000:19:00.0", "SrcValid+"), "acs_on", SILENT},
    {ACS("0000:19:00.0", "SrcValid+"), "acs_on_elsewhere", SILENT},
    {BRIDGE("0000:17:01.0", "25", "25") ACS("0000:17:01.0", "SrcValid+"), "acs_on_elsewhere", NOTE,
     "shows no GPU"},
    {BRIDGE("0000:17:01.0", "25", "30") ACS("0000:17:01.0", "SrcValid+") WHAT("0000:18:00.0", "gpu")
         WHAT("0000:1f:00.0", "nic") WHAT("0000:1a:00.0", "disk"),
     "acs_on", SILENT},
    {BRIDGE("0001:17:01.0", "25", "25") ACS("0001:17:01.0", "SrcValid+")
         WHAT("0000:19:00.0", "gpu"),
     "acs_on", SILENT},
    {BRIDGE("0001:17:01.0", "25", "25") ACS("0001:17:01.0", "SrcValid+")
         WHAT("0001:19:00.0", "gpu"),
     "acs_on", WARNING},
    {BRIDGE("slot", "25", "25") ACS("slot", "SrcValid+") WHAT("0000:19:00.0", "gpu"), "acs_on",
     WARNING},
    {WHAT("a", "gpu") WIDTH("a", "x8 (downgraded)"), "gpu_pcie_narrow", NOTE, "x8"},
    {WHAT("a", "gpu") WIDTH("a", "x8 (downgraded)") WHAT("b", "gpu") WIDTH("b", "x16 (ok)"),
     "gpu_pcie_narrow", WARNING},
    {WHAT("a", "nic") WIDTH("a", "x8 (downgraded)"), "nic_pcie_narrow", WARNING},
    {WHAT("a", "nic") WIDTH("a", "x16 (ok)") SAYS("a", "pci.lnk_speed", "16GT/s (downgraded)"),
     "nic_pcie_slow", WARNING, "16GT/s"},
    {WHAT("a", "nic") WIDTH("a", "x16 (ok)") SAYS("a", "pci.lnk_speed", "16GT/s (ok)"),
     "nic_pcie_slow", SILENT},
    {WHAT("a", "gpu") WIDTH("a", "x16") SAYS("a", "pci.lnk_speed", "2.5GT/s (downgraded)"),
     "nic_pcie_slow", SILENT},
    {WHAT("a", "bridge") WIDTH("a", "x8 (downgraded)"), "nic_pcie_narrow", SILENT},
    {WIDTH("a", "x8 (downgraded)"), "gpu_pcie_narrow", SILENT},
    {BUS_DEVICE("a", "0x10de", "0x030200"), "gpu_pcie_narrow", NOTE, "width 8 of 16"},
    {BUS_DEVICE("a", "0x10de", "0x030000"), "gpu_pcie_narrow", NOTE},
    {BUS_DEVICE("a", "0x10de", "0x068000"), "gpu_pcie_narrow", SILENT},
    {BUS_DEVICE("a", "0x1002", "0x120000"), "gpu_pcie_narrow", NOTE},
    {BUS_DEVICE("a", "0x1002", "0x038000"), "gpu_pcie_narrow", NOTE},
    {BUS_DEVICE("a", "0x1002", "0x030000"), "gpu_pcie_narrow", SILENT},
    {BUS_DEVICE("a", "0x8086", "0x030000"), "gpu_pcie_narrow", SILENT},
    {BUS_DEVICE("a", "0x10de", "0x030200") GN("0", "pcie_width", "16"), "gpu_pcie_narrow", SILENT},
    {BUS_DEVICE("a", "0x15b3", "0x020700"), "nic_pcie_narrow", NOTE},
    {BUS_DEVICE("a", "0x15b3", "0x020000"), "nic_pcie_narrow", NOTE},
    {BUS_DEVICE("a", "0x8086", "0x020000"), "nic_pcie_narrow", SILENT},
    {BUS_DEVICE("a", "0x15b3", "0x020700") HAS("mlx5_0", "ib.pcie_width", "16"), "nic_pcie_narrow",
     SILENT},
    {BUS_DEVICE("a", "0x15b3", "0x020700") BUS_DEVICE("b", "0x15b3", "0x020700")
         HAS("b", "pcidev.width", "16"),
     "nic_pcie_narrow", WARNING, "others of its kind"},
    {BUS_DEVICE("a", "0x15b3", "0x020700") HAS("a", "pcidev.width", "0"), "nic_pcie_narrow",
     SILENT},
    {SAYS("a", "pcidev.class", "0x020700") HAS("a", "pcidev.width", "8"), "nic_pcie_narrow",
     SILENT},
};

/* ---- The kernel's log ---- */

#define X(key, value) BOTH("0000:3b:00", key, "1", value)

static const struct said kernel_rows[] = {
    {X("xid.79", "NVRM: Xid (PCI:0000:3b:00): 79, fallen"), "xid_hardware", ERROR,
     "Xid 79 (1x): the GPU has fallen off the bus: Xid (PCI"},
    {X("xid.79", "Xid (a)") BOTH("0000:9a:00", "xid.79", "2", "Xid (b)"), "xid_hardware", ERROR,
     "Xid 79 (1x)"},
    {X("xid.31", "no prefix"), "xid_application", WARNING, ": no prefix"},
    {X("xid.45", "Xid (x): 45"), "xid_consequence", NOTE},
    {X("xid.999", "Xid (x): 999"), "xid_other", WARNING, "not in knee's list"},
    {X("xid.149", "Xid (x): 149, NETIR Nonfatal"), "xid_nvlink", WARNING},
    {X("xid.149", "Xid (x): 149, NETIR Fatal"), "xid_nvlink", ERROR},
    {X("xid.149.fatal", "Xid (x): 149, Nonfatal first"), "xid_nvlink", ERROR},
    {X("xid.74", "Xid (x): 74, Nonfatal"), "xid_nvlink", ERROR},
    {X("xid.154", "Xid (x): 154, Nonfatal"), "xid_hardware", ERROR},
    {BOTH("NVSwitch 0", "sxid.nonfatal", "2", "detected NVSwitch non-fatal error 1"), "sxid_few",
     NOTE, "2 errors"},
    {BOTH("NVSwitch 0", "sxid.nonfatal", "6", "x") BOTH("NVSwitch 1", "sxid.nonfatal", "6", "x"),
     "sxid_nonfatal", WARNING, "12 errors"},
    {BOTH("NVSwitch 0", "sxid.fatal", "1", "[9] detected NVSwitch fatal error"), "sxid_fatal",
     ERROR, "1x: detected NVSwitch"},
    {HAS("0000:1a:00.0", "kernel.link_down", "2"), "link_flaps", NOTE},
    {HAS("0000:1a:00.0", "kernel.link_down", "3"), "link_flaps", WARNING, "3x"},
};

TEST(gpus_bus_and_kernel)
{
    CHECK(gpu_rows, NULL);
    CHECK(pci_rows, NULL);
    CHECK(kernel_rows, NULL);
}

/* ---- The host ---- */

#define PEER(mod)           HAS("", mod, "1")
#define WIRED               AT_H100 HAS("mlx5_0:1", "ib.rate", "400") HAS("", "module.list", "1")
#define RANK(n)             ENV_NUMBER("LOCAL_RANK", n)
#define ENV_NUMBER(name, n) HAS(name, "env", n)
#define CPUS(list)          HOST("process.cpus", list)
#define BESIDE(gpu, list)   SAYS(gpu, "gpupci.cpus", list)
#define UP(name, mtu, speed)                                                                       \
    HAS(name, "net.mtu", mtu)                                                                      \
    HAS(name, "net.speed", speed) SAYS(name, "net.state", "up")

static const struct said host_rows[] = {
    {HAS("", "shm.bytes", "67108864"), "shm_small", NOTE, "67 MB"},
    {HAS("", "shm.bytes", "67108864") AT_H100 GPU1, "shm_small", WARNING},
    {AT_H100 HAS("", "cgroup.quota_us", "100000") HAS("", "cgroup.period_us", "100000"),
     "cpu_quota", WARNING, "1.0 CPUs for 1 GPUs"},
    {AT_H100 HAS("", "cgroup.quota_us", "-1") HAS("", "cgroup.period_us", "100000"), "cpu_quota",
     SILENT},
    {AT_H100 HAS("", "cgroup.quota_us", "100000"), "cpu_quota", SILENT},
    {AT_H100 HOST("cgroup.cpuset", "0"), "cpu_quota", WARNING},
    {AT_H100 HAS("", "cgroup.cpus", "1"), "cpu_quota", WARNING},
    {AT_H100 HOST("cgroup.cpuset", "all"), "cpu_quota", SILENT},
    {HOST("cgroup.cpuset", "0"), "cpu_quota", SILENT},
    {AT_H100 GPU1 HOST("iommu.group", "DMA"), "iommu_translates", NOTE, "1 of 1"},
    {HOST("iommu.group", "DMA-FQ") HAS("mlx5_0:1", "ib.rate", "400"), "iommu_translates", NOTE},
    {AT_H100 HOST("iommu.group", "DMA"), "iommu_translates", SILENT},
    {AT_H100 GPU1 HOST("iommu.group", "identity"), "iommu_translates", SILENT},
    {AT_H100 GPU1 HOST("kernel.cmdline", "quiet"), "iommu_translates", SILENT},
    {AT_H100 GPU1 HOST("kernel.cmdline", "iommu=force"), "iommu_translates", WARNING},
    {AT_H100 GPU1 HOST("kernel.cmdline", "intel_iommu=on iommu=pt"), "iommu_translates", SILENT},
    {AT_H100 GPU1 HOST("kernel.cmdline", "iommu.passthrough=1"), "iommu_translates", SILENT},
    {WIRED, "gdr_off", WARNING, "not loaded"},
    {WIRED GAMER, "gdr_off", SILENT},
    {WIRED HAS("", "log.lines", "9") HAS("", "log.via.plain", "4"), "gdr_off", WARNING,
     "not loaded"}, /* and its channels say so */
    {WIRED HAS("mlx5_0:1", "ib.rate", "40"), "gdr_off", SILENT},
    {WIRED SAYS("GPU 0", "gpu.name", "AMD Instinct MI300X"), "gdr_off", SILENT},
    {WIRED SAYS("GPU 0", "gpu.name", "Instinct MI300X"), "gdr_off", SILENT},
    {WIRED SAYS("GPU 0", "gpu.name", "Radeon Pro"), "gdr_off", SILENT},
    {AT_H100 HAS("mlx5_0:1", "ib.rate", "400"), "gdr_off", SILENT},
    {HAS("mlx5_0:1", "ib.rate", "400") HAS("", "module.list", "1"), "gdr_off", SILENT},
    {WIRED HOST("driver.version_text", "NVIDIA UNIX x86_64 Kernel Module 550")
         HOST("kernel.release", "6.8.0"),
     "gdr_off", WARNING},
    {WIRED HOST("driver.version_text", "Open Kernel Module"), "gdr_off", WARNING},
    {WIRED HOST("driver.version_text", "Open Kernel Module") HOST("kernel.release", "6.8.0"),
     "gdr_off", SILENT},
    {WIRED HOST("driver.version_text", "Open Kernel Module") HOST("kernel.release", "5.4.0"),
     "gdr_off", WARNING},
    {WIRED PEER("module.nvidia_peermem"), "gdr_off", SILENT},
    {WIRED PEER("module.nv_peer_mem"), "gdr_off", SILENT},
    {WIRED PEER("module.nvidia_peermem") MTU HOST("nccl.version", "2.20.5"), "gdr_peermem_name",
     WARNING, "memory_peers"},
    {WIRED PEER("module.nvidia_peermem") MTU HOST("nccl.version", "2.28.9"), "gdr_peermem_name",
     SILENT},
    {WIRED PEER("module.nv_peer_mem") MTU HOST("nccl.version", "2.20.5") PEER("peer_memory"),
     "gdr_peermem_name", SILENT},
    {WIRED PEER("module.nvidia_peermem") HOST("nccl.version", "2.20.5"), "gdr_peermem_name",
     SILENT},
    {HAS("eth0", "net.mtu", "1500") HAS("eth0", "net.speed", "10000"), "mtu_small", SILENT},
    {UP("eth9", "1500", "200000"), "mtu_small", NOTE},
    {UP("eth9", "9000", "200000"), "mtu_small", SILENT},
    {UP("eth9", "1500", "200000") SAYS("eth9", "net.state", "down"), "mtu_small", SILENT},
    {UP("eth0", "9000", "10000") UP("eth1", "1500", "10000") UP("eth2", "9000", "10000")
         UP("eth3", "9000", "10000"),
     "mtu_differs", WARNING, "1500 bytes a frame; others have 9000"},
    {UP("eth0", "9000", "10000") UP("eth1", "1500", "10000") UP("eth2", "9000", "10000")
         UP("ens3", "9000", "10000"),
     "mtu_differs", SILENT},
    {UP("eth0", "9000", "9") UP("eth1", "1500", "9") UP("eth2", "1500", "9") UP("eth3", "1500", "9")
         UP("eth4", "9000", "9") UP("eth5", "9000", "9"),
     "mtu_differs", SILENT},
    {UP("eth0", "9000", "9") UP("eth1", "1500", "9") UP("eth2", "9000", "9") UP("eth3", "9000", "9")
         SAYS("eth3", "net.state", "down"),
     "mtu_differs", SILENT},
    {UP("eth0", "9000", "9") UP("eth1", "9000", "5") UP("eth2", "9000", "9") UP("eth3", "9000", "9")
         GOOD("0"),
     "net_slow", WARNING, "5 Mb/s; others have 9"},
    {UP("ethernet-" TEN TEN TEN TEN TEN "-a-name-that-is-too-long-for-any-kernel", "9", "9"),
     "mtu_differs", SILENT},
    {HAS("eth0", "net.speed_max", "100000") HAS("eth0", "net.speed", "25000"), "net_below_mode",
     NOTE, "25000 Mb/s"},
    {HAS("eth0", "net.speed_max", "100000") HAS("eth0", "net.speed", "100000"), "net_below_mode",
     SILENT},
    {HAS("eth0", "net.speed_max", "100000") HAS("eth0", "net.speed", "-1"), "net_below_mode",
     SILENT},
    {HOST("clock.leap", "Not synchronised"), "clock_unsynchronised", WARNING, "no source"},
    {HOST("clock.synchronised", "no"), "clock_unsynchronised", WARNING},
    {HOST("clock.synchronised", "yes") HAS("", "clock.offset", "0.5"), "clock_unsynchronised",
     WARNING, "0.5 s off"},
    {HAS("", "clock.offset", "0.01"), "clock_unsynchronised", SILENT},
    {CPUS("0-3") RANK("0") BESIDE("a", "8-15"), "affinity_far", WARNING, "rank 0"},
    {CPUS("0-3,x,7") RANK("0") BESIDE("a", "8-15"), "affinity_far", WARNING},
    {CPUS("0-3,9") RANK("0") BESIDE("a", "8-15"), "affinity_far", SILENT},
    {CPUS("0-3") RANK("-1") BESIDE("a", "8-15"), "affinity_far", SILENT},
    {CPUS("0-3") RANK("900") BESIDE("a", "8-15"), "affinity_far", SILENT},
    {CPUS("0-3") BESIDE("a", "8-15"), "affinity_far", SILENT},
    {RANK("0") BESIDE("a", "8-15"), "affinity_far", SILENT},
    {CPUS("0-3") ENV_NUMBER("PMI_LOCAL_RANK", "0") BESIDE("a", "8-15"), "affinity_far", WARNING},
    {CPUS("0-3") RANK("1") BESIDE("a", "0-3") BESIDE("b", "8-15"), "affinity_far", WARNING, "8-15"},
    {CPUS("0-3") RANK("1") ENV("CUDA_VISIBLE_DEVICES", "1,0") BESIDE("a", "0-3")
         BESIDE("b", "8-15"),
     "affinity_far", SILENT},
    {CPUS("0-3") RANK("1") ENV("CUDA_VISIBLE_DEVICES", "1") BESIDE("a", "0-3") BESIDE("b", "8-15"),
     "affinity_far", WARNING},
    {CPUS("0-3") RANK("2") ENV("CUDA_VISIBLE_DEVICES", "1,0") BESIDE("a", "8-15"), "affinity_far",
     SILENT},
    {CPUS("0-3") RANK("0") ENV("CUDA_VISIBLE_DEVICES", "GPU-77") BESIDE("a", "8-15"),
     "affinity_far", SILENT},
    {CPUS("0-3") RANK("0") SAYS("a", "pcidev.cpus", "8") SAYS("a", "pcidev.vendor", "0x15b3")
         SAYS("b", "pcidev.cpus", "8-15") SAYS("b", "pcidev.vendor", "0x10de")
             SAYS("b", "pcidev.class", "0x030200"),
     "affinity_far", WARNING, "8-15"},
    {CPUS("0-3") RANK("0") BESIDE("a", "x,2"), "affinity_far", SILENT},
    {BOTH("h", "bench.slow_host", "60", "60 % of the others"), "slow_host", WARNING, "60 %"},
    {BOTH("a-b", "bench.slow_link", "50", "50 % of the others"), "slow_link", WARNING, "50 %"},
    {BOTH("h", "bench.slow_host", "60", "60 %") HAS("", "shm.bytes", "1")
         AT_H100 GPU1 HOST("clock.leap", "Not synchronised"),
     "slow_host", WARNING, "; it also has: "},
};

TEST(the_host_itself)
{
    CHECK(host_rows, NULL);
}

/* ---- The environment ---- */

#define NCCL(version) HOST("nccl.version", version)
#define ROCE          LAYER("0", "Ethernet")

static const struct said env_rows[] = {
    {ENV("NCCL_IB_TIMEOUT", "0"), "ib_timeout_short", WARNING, "never times out"},
    {ENV("NCCL_IB_TIMEOUT", "32"), "ib_timeout_short", WARNING, "never times out"},
    {ENV("NCCL_IB_TIMEOUT", "13"), "ib_timeout_short", WARNING, "gives up after"},
    {ENV("NCCL_IB_TIMEOUT", "14"), "ib_timeout_short", SILENT},
    {ENV("NCCL_SOCKET_NTHREADS", "17"), "socket_threads", WARNING, "17 threads x 1"},
    {ENV("NCCL_SOCKET_NTHREADS", "16"), "socket_threads", SILENT},
    {ENV("NCCL_SOCKET_NTHREADS", "16") ENV("NCCL_NSOCKS_PERTHREAD", "5"), "socket_threads", WARNING,
     "16 threads x 5"},
    {ENV("NCCL_IB_AR_THRESHOLD", "8000000"), "ar_threshold", NOTE},
    {ENV("NCCL_IB_AR_THRESHOLD", "8000000") ENV("NCCL_BUFFSIZE", "16777216"), "ar_threshold",
     SILENT},
    {ENV("NCCL_IB_AR_THRESHOLD", "2097152") ENV("NCCL_BUFFSIZE", "1048576"), "ar_threshold", NOTE},
    {ENV("NCCL_IB_QPS_PER_CONNECTION", "1") ROCE, "qps_one_on_roce", NOTE},
    {ENV("NCCL_IB_QPS_PER_CONNECTION", "1") IB("0"), "qps_one_on_roce", SILENT},
    {ENV("NCCL_IB_QPS_PER_CONNECTION", "1"), "qps_one_on_roce", SILENT},
    {ENV("NCCL_IB_QPS_PER_CONNECTION", "2") ROCE, "qps_one_on_roce", SILENT},
    {ENV("NCCL_CROSS_NIC", "0"), "cross_nic_set", NOTE, "=0"},
    {ENV("NCCL_CROSS_NIC", "2"), "cross_nic_set", SILENT},
    {ENV("NCCL_IB_ROCE_VERSION_NUM", "2") NCCL("2.22.3"), "roce_version_crash", WARNING},
    {ENV("NCCL_IB_ROCE_VERSION_NUM", "2"), "roce_version_crash", NOTE, "is not known"},
    {ENV("NCCL_IB_ROCE_VERSION_NUM", "2") NCCL("2.28.9"), "roce_version_crash", SILENT},
    {ENV("NCCL_MIN_NCHANNELS", "16") ENV("NCCL_MAX_NCHANNELS", "8"), "channels_contradict", WARNING,
     "NCCL_MIN_NCHANNELS=16"},
    {ENV("NCCL_MAX_NCHANNELS", "8"), "channels_few", WARNING, "=8"},
    {ENV("NCCL_MAX_NCHANNELS", "8") GAMER, "channels_few", SILENT},
    {ENV("NCCL_MAX_NCHANNELS", "0"), "channels_few", SILENT},
    {ENV("NCCL_MAX_NCHANNELS", "32"), "channels_few", SILENT},
    {ENV("NCCL_MAX_NRINGS", "4") NCCL("2.4.8"), "channels_few", SILENT},
    {ENV("NCCL_MAX_NCHANNELS", "32") ENV("NCCL_MIN_CTAS", "16"), "channels_both_names", NOTE},
    {ENV("NCCL_MIN_NCHANNELS", "16") ENV("NCCL_MAX_CTAS", "32"), "channels_both_names", NOTE},
    {ENV("NCCL_MAX_CTAS", "32"), "channels_both_names", SILENT},
    {ENV("NCCL_NTHREADS", "100"), "nthreads_odd", WARNING, "=100"},
    {ENV("NCCL_NTHREADS", "64"), "nthreads_odd", SILENT},
    {ENV("NCCL_NTHREADS", "128"), "nthreads_odd", SILENT},
    {ENV("NCCL_NTHREADS", "512"), "nthreads_odd", SILENT},
    {ENV("NCCL_BUFFSIZE", "3000000"), "buffsize_odd", NOTE},
    {ENV("NCCL_BUFFSIZE", "-4"), "buffsize_odd", SILENT},
    {ENV("NCCL_PROTO", "ll128"), "proto_ll128", WARNING},
    {ENV("NCCL_PROTO", "Simple"), "proto_forced", NOTE, "Simple"},
    {ENV("NCCL_GRAPH_STREAM_ORDERING", "0") ENV("NCCL_GRAPH_MIXING_SUPPORT", "1"),
     "graph_contradict", WARNING},
    {ENV("NCCL_GRAPH_STREAM_ORDERING", "0") ENV("NCCL_GRAPH_MIXING_SUPPORT", "0"),
     "graph_contradict", SILENT},
    {ENV("NCCL_ALGO", "^NVLS") ENV("NCCL_NVLS_ENABLE", "0"), "algo_contradict", SILENT},
    {ENV("NCCL_ALGO", "PAT") ENV("NCCL_PAT_ENABLE", "0"), "algo_contradict", WARNING, "PAT"},
    {ENV("NCCL_MNNVL_ENABLE", "1") ENV("NCCL_CUMEM_ENABLE", "1"), "mnnvl_contradict", SILENT},
    {ENV("NCCL_DEBUG", "TRACE"), "debug_left_on", NOTE, "NCCL_DEBUG=TRACE  prints"},
    {ENV("NCCL_DEBUG", "INFO"), "debug_left_on", SILENT},
    {ENV("NCCL_DEBUG", "info") ENV("NCCL_DEBUG_SUBSYS", "ALL"), "debug_left_on", NOTE,
     "NCCL_DEBUG_SUBSYS=ALL"},
    {ENV("NCCL_DEBUG", "info") ENV("NCCL_DEBUG_SUBSYS", "INIT"), "debug_left_on", SILENT},
    {ENV("NCCL_DEBUG_FILE", "/tmp/nccl.log"), "debug_file_shared", NOTE},
    {ENV("NCCL_DEBUG_FILE", "/tmp/nccl.%h"), "debug_file_shared", NOTE},
    {ENV("NCCL_DEBUG_FILE", "/tmp/nccl.%h.%p"), "debug_file_shared", SILENT},
    {ENV("NCCL_DEBUG_FILE", "stderr"), "debug_file_shared", SILENT},
    {ENV("NCCL_DEBUG_FILE", "stdout"), "debug_file_shared", SILENT},
    {ENV("FI_PROVIDER", "efa") ENV("FI_EFA_USE_DEVICE_RDMA", "0"), "efa_no_rdma", NOTE},
    {ENV("FI_PROVIDER", "efa") ENV("FI_EFA_USE_DEVICE_RDMA", "1"), "efa_no_rdma", SILENT},
    {ENV("FI_PROVIDER", "tcp"), "fi_provider_slow", NOTE},
    {ENV("FI_PROVIDER", "sockets") HAS("", "module.efa", "1"), "fi_provider_slow", WARNING},
    {ENV("CUDA_VISIBLE_DEVICES", ""), "no_gpu_visible", NOTE},
    {ENV("CUDA_VISIBLE_DEVICES", "-1") AT_H100, "no_gpu_visible", WARNING},
    {ENV("CUDA_VISIBLE_DEVICES", "0,,1,"), "gpu_visible_twice", SILENT},
    {ENV("CUDA_VISIBLE_DEVICES", "0,10,1"), "gpu_visible_twice", SILENT},
    {ENV("CUDA_VISIBLE_DEVICES", "0,1,,1"), "gpu_visible_twice", WARNING},
    {ENV("NCCL_IB_SL", "-1"), "env_out_of_range", WARNING, "0 to 15"},
    {ENV("NCCL_IB_SL", "99999999999999999999"), "env_out_of_range", SILENT},
    {ENV("NCCL_IB_DISABLE", "(set)"), "env_not_a_number", SILENT},
    {ENV("NCCL_IB_TIMEOUT", "20\t"), "env_not_a_number", SILENT},
    {ENV("NCCL_IB_TIMEOUT", "0"), "env_octal", SILENT},
    {ENV("NCCL_IB_TIMEOUT", "024"), "env_octal", NOTE},
    {ENV("NCCL_IB_TIMEOUT", "0x14"), "env_octal", SILENT},
    {ENV("NCCL_IB_TIMEOUT", "0-"), "env_octal", SILENT},
    {ENV("NCCL_P2P_LEVEL", "5"), "env_bad_level", SILENT},
    {ENV("NCCL_P2P_LEVEL", ""), "env_bad_level", SILENT},
    {ENV("NCCL_ALGO", "ring@0"), "env_bad_word", SILENT},
    {ENV("NCCL_ALGO", "{ring}"), "env_bad_word", WARNING, "'{ring}'"},
    {ENV("NCCL_ALGO", "ring;tree"), "env_bad_word", SILENT},
    {ENV("NCCL_ALGO", "ring:x") NCCL("2.20.5"), "env_bad_word", WARNING, "'ring:x'"},
    {ENV("NCCL_ALGO", ""), "env_bad_word", SILENT},
    {ENV("NCCL_ALGO", "ring;;tree"), "env_bad_word", SILENT},
    {ENV("NCCL_ALGO", "PAT") ENV("NCCL_PAT_ENABLE", "1"), "algo_contradict", SILENT},
    {ENV("NCCL_QQQ", "1"), "env_unknown", NOTE, "=1: no NCCL"},
    {ENV("NCCL_BUFFSIZE_IN_BYTES", "1"), "env_unknown", NOTE, "has it"},
    {ENV("NCCL_NET", "IB"), "net_contradict", SILENT},
    {ENV("NCCL_NET", "Socket") MTU, "ib_disabled", NOTE},
    {ENV("NCCL_P2P_DISABLE", "1") GAMER, "p2p_disabled", NOTE},
    {ENV("NCCL_IFNAME", "eth0"), "env_unknown", NOTE, "no NCCL up to 2.30 has it"},
    {ENV("NCCL_DEBUG_SUBSYSTEM", "INIT"), "env_unknown", NOTE, "did you mean NCCL_DEBUG_SUBSYS?"},
    {ENV("NCCL_OFI_NCCL_PROTOCOL", "RDMA"), "env_unknown", SILENT},
    {ENV("XNCCL_DEBUG", "INFO"), "env_misspelt", WARNING, "did you mean NCCL_DEBUG?"},
    {ENV("TORCH_NCCL_NOTHING_LIKE_IT", "1"), "env_misspelt", SILENT},
    {ENV("NVIDIA_DRIVER_CAPABILITIES", "all"), "env_misspelt", SILENT},
    {ENV("NOTHING_LIKE_IT", "1"), "env_misspelt", SILENT},
    {ENV("CUDA_VISIBLE", "1"), "env_misspelt", SILENT},
    {ENV("OMP_NUM_THREADS", "4"), "env_misspelt", SILENT},
    {ENV("omp_num_threads", "4"), "env_misspelt", SILENT},
    {ENV("my NCCL_DEBUG", "INFO"), "env_blank_name", WARNING, "blank"},
    {SAYS("NCCL_IB_SL", "conf.etc", "1") SAYS("NCCL_IB_SL", "conf.home", "2"), "env_overridden",
     NOTE, "not 1 of /etc/nccl.conf"},
    {SAYS("NCCL_IB_SL", "conf.home", "2") ENV("NCCL_IB_SL", "1")
         SAYS("NCCL_IB_SL", "env.from", "environment"),
     "env_overridden", NOTE, "not 2 of ~/.nccl.conf"},
    {SAYS("NCCL_IB_SL", "conf.home", "2") ENV("NCCL_IB_SL", "2")
         SAYS("NCCL_IB_SL", "env.from", "environment"),
     "env_overridden", SILENT},
    {SAYS("NCCL_IB_SL", "conf.home", "2") ENV("NCCL_IB_SL", "1"), "env_overridden", SILENT},
    {SAYS("NCCL_IB_SL", "conf.home", "2") ENV("NCCL_CONF_FILE", "/opt/x"), "env_overridden",
     SILENT},
    {SAYS("NCCL_IB_SL", "conf.home", "16") ENV("NCCL_CONF_FILE", ""), "env_out_of_range", WARNING},
};

TEST(the_environment)
{
    CHECK(env_rows, NULL);
}

/* ---- A log of NCCL ---- */

#define LOG                 HAS("", "log.lines", "9")
#define FROM(key, text)     SAYS("n1", "log." key, text)
#define ONE_NODE            HAS("", "log.ranks", "8") SAYS("n1", "log.host", "n1")
#define NODES               HAS("", "log.nodes", "2")
#define NO_DEVICE           FROM("ib_no_device", "No device found")
#define IPOIB               SAYS("ib0", "log.socket", "10.0.0.1")
#define SOCKETS             FROM("network.Socket", "Socket")
#define UNREACHED           FROM("peer_unreachable", "Connect to 10.0.0.4 returned 113")
#define RETRIED             FROM("peer_retried", "Connection refused, retrying")
#define CHANNELS(kind, n)   HAS("", "log.via." kind, n)
#define DEVICE(name, layer) SAYS(name, "log.device", layer)
#define USED(name)          SAYS(name, "log.device_used", "yes")
#define FLUSHED             FROM("completion.5", "error 5")
#define TIMED_OUT           FROM("completion.12", "error 12")

static const struct said log_networks[] = {
    {LOG FROM("libibverbs_missing", "no libibverbs.so"), "libibverbs_missing", WARNING},
    {LOG FROM("libibverbs_missing", "no libibverbs.so") ONE_NODE, "libibverbs_missing", NOTE,
     "nothing is lost"},
    {LOG FROM("libibverbs_missing", "no libibverbs.so") FROM("efa_absent", "tcp"),
     "libibverbs_missing", NOTE},
    {LOG FROM("libibverbs_missing", "no libibverbs.so") ENV("FI_PROVIDER", "efa"),
     "efa_plugin_missing", WARNING},
    {LOG FROM("libibverbs_missing", "no libibverbs.so") ENV("FI_PROVIDER", "tcp"),
     "efa_plugin_missing", SILENT},
    {LOG NO_DEVICE FROM("device_unusable", "Unable to open"), "ib_absent", WARNING,
     "Unable to open; No device"},
    {LOG NO_DEVICE HCA("mlx5"), "ib_absent", WARNING, "; NCCL_IB_HCA=mlx5"},
    {LOG NO_DEVICE IPOIB, "ib_absent", WARNING, "No device found"},
    {LOG NO_DEVICE NODES, "socket_only", NOTE, "over TCP"},
    {LOG NO_DEVICE, "socket_only", SILENT},
    {LOG IPOIB SOCKETS, "ib_absent", WARNING, "over IPoIB"},
    {LOG IPOIB SOCKETS ONE_NODE, "ib_absent", SILENT},
    {LOG IPOIB, "ib_absent", SILENT},
    {LOG IPOIB SOCKETS FROM("libibverbs_missing", "x"), "ib_absent", SILENT},
    {IPOIB SOCKETS, "ib_absent", SILENT}, /* no log */
    {LOG SAYS("", "log.network.Socket", "Socket") SAYS("n2", "log.network.IB", "IB"),
     "network_mismatch", ERROR, "one node says Socket, n2 says IB"},
    {LOG SOCKETS SAYS("", "log.network.IB", "IB"), "network_mismatch", ERROR,
     "n1 says Socket, another says IB"},
    {LOG SOCKETS FROM("network.IB", "IB"), "network_mismatch", SILENT},
    {LOG FROM("network.IB", "IB"), "network_mismatch", SILENT},
    {LOG FROM("gdr_distance", "distance 9 > 5"), "gdr_distance", WARNING},
    {LOG FROM("gdr_distance", "distance 9 > 5") FROM("gdr_enabled", "GDR"), "gdr_distance", SILENT},
    {LOG FROM("gdr_distance", "distance 9 > 5") CHANNELS("gdr", "2"), "gdr_distance", SILENT},
    {LOG FROM("gdr_distance", "distance 9 > 5") FROM("omni_path", "hfi1"), "gdr_distance", SILENT},
    {LOG FROM("gdr_off", "Disabled for HCA 0"), "gdr_off", WARNING, "HCA 0"},
    {LOG FROM("gdr_off", "Disabled for HCA 0") CHANNELS("gdr", "2"), "gdr_off", SILENT},
    {LOG CHANNELS("plain", "4"), "gdr_off", WARNING, "4 channels"},
    {LOG CHANNELS("plain", "4") FROM("gdr_unsupported", "x"), "gdr_off", SILENT},
    {LOG CHANNELS("plain", "4") FROM("gdr_distance", "x"), "gdr_off", SILENT},
    {LOG CHANNELS("plain", "4") CHANNELS("gdr", "12"), "gdr_partial", WARNING, "12 channels"},
    {LOG CHANNELS("plain", "0") CHANNELS("gdr", "12"), "gdr_partial", SILENT},
    {LOG CHANNELS("shm", "4"), "p2p_disabled", NOTE, "shared memory"},
    {LOG CHANNELS("shm", "4") CHANNELS("p2p", "4"), "p2p_disabled", SILENT},
    {LOG DEVICE("a", "IB") DEVICE("b", "IB") DEVICE("c", "RoCE"), "extra_nic", WARNING,
     "RoCE among 2"},
    {LOG DEVICE("a", "RoCE") DEVICE("b", "RoCE") DEVICE("c", "IB"), "extra_nic", WARNING,
     "IB among 2"},
    {LOG DEVICE("a", "IB") DEVICE("b", "IB") DEVICE("c", "RoCE") USED("a"), "extra_nic", SILENT},
    {LOG DEVICE("a", "IB") DEVICE("b", "IB") DEVICE("c", "RoCE") USED("c"), "extra_nic", WARNING},
    {LOG DEVICE("a", "IB") DEVICE("b", "IB"), "extra_nic", SILENT},
    {LOG DEVICE("a", "RoCE") DEVICE("b", "RoCE"), "extra_nic", SILENT},
    {LOG DEVICE("a", "RoCE"), "extra_nic", SILENT},
    {LOG HAS("n1", "log.device_count", "8") HAS("n2", "log.device_count", "6"), "rails_differ",
     WARNING, "n2 uses 6 adapters, others 8"},
};

static const struct said log_interfaces[] = {
    {LOG UNREACHED, "peer_unreachable", ERROR},
    {LOG RETRIED, "peer_unreachable", ERROR, "retrying"},
    {LOG RETRIED FROM("complete", "Init COMPLETE"), "peer_unreachable", SILENT},
    {LOG UNREACHED FROM("gpu_memory", "out of memory"), "peer_unreachable", NOTE},
    {LOG UNREACHED SAYS("lo", "log.bootstrap", "127.0.0.1"), "wrong_interface", ERROR,
     "lo (127.0.0.1) is used, and a peer"},
    {LOG UNREACHED SAYS("lo", "log.socket", "10.0.0.1"), "wrong_interface", ERROR},
    {LOG UNREACHED SAYS("docker0", "log.socket", "172.17.0.1"), "wrong_interface", ERROR},
    {LOG UNREACHED SAYS("eth0", "log.socket", "fe80::1"), "wrong_interface", ERROR},
    {LOG SAYS("eth0", "log.socket", "fe80::1"), "wrong_interface", SILENT},
    {LOG UNREACHED SAYS("lo", "log.socket", "127.0.0.1") SAYS("zt0", "log.socket", "10.0.0.1"),
     "wrong_interface", ERROR, "lo (127.0.0.1)"},
    {LOG UNREACHED SAYS("eth0", "log.socket", "10.0.0.1"), "wrong_interface", SILENT},
    {LOG SAYS("eth0", "log.bootstrap", "127.0.0.1"), "wrong_interface", WARNING, "cannot reach it"},
    {LOG SAYS("eth0", "log.bootstrap", "127.0.0.1") ONE_NODE, "wrong_interface", SILENT},
    {LOG SAYS("docker0", "log.socket", "172.17.0.1"), "wrong_interface", SILENT},
    {LOG SAYS("docker0", "log.socket", "172.17.0.1") SOCKETS, "wrong_interface", NOTE},
    {LOG SAYS("docker0", "log.socket", "172.17.0.1") CHANNELS("socket", "2"), "wrong_interface",
     WARNING},
    {LOG SAYS("n1", "log.address", "172.17.0.2") SAYS("n2", "log.address", "172.17.0.3")
         SAYS("n3", "log.address", "172.17.0.2"),
     "wrong_interface", ERROR, "n1 and n3 both have"},
    {LOG SAYS("n1", "log.address", "10.0.0.1") SAYS("n2", "log.address", "10.0.0.2"),
     "wrong_interface", SILENT},
    {LOG FROM("mnnvl", "MNNVL 1") FROM("invalid_device", "invalid device ordinal"), "imex_missing",
     ERROR},
    {LOG FROM("mnnvl", "MNNVL 1") FROM("invalid_device", "invalid device ordinal"),
     "invalid_device", NOTE},
    {LOG FROM("mnnvl", "MNNVL 1") FROM("cuda_failure", "800"), "cuda_failure", NOTE},
    {LOG FROM("mnnvl", "MNNVL 1"), "imex_missing", SILENT},
    {LOG FROM("cuda_failure", "800"), "imex_missing", SILENT},
    {LOG FLUSHED, "ib_flushed", WARNING, "flushed"},
    {LOG FLUSHED TIMED_OUT, "ib_flushed", NOTE},
    {LOG TIMED_OUT, "ib_timeout", ERROR, "no answer"},
    {LOG TIMED_OUT FROM("port_flap", "down"), "ib_timeout", NOTE},
    {LOG TIMED_OUT FROM("gid_changed", "x"), "ib_timeout", NOTE},
    {LOG TIMED_OUT FROM("completion_old", "x"), "gid_index", ERROR, "takes row 0"},
    {LOG TIMED_OUT FROM("completion_old", "x") FROM("port_flap", "down"), "gid_index", SILENT},
    {LOG TIMED_OUT FROM("completion_old", "x") WANT("3"), "ib_timeout", ERROR},
    {LOG FLUSHED FROM("completion_old", "x"), "gid_index", SILENT},
    {LOG FROM("completion.13", "x"), "ib_not_ready", ERROR, "receiver not ready"},
    {LOG FROM("gpu_memory", "x") FROM("nvls_fabric", "y"), "nvls_fabric", NOTE},
    {LOG FROM("open_files", "Too many open files"), "nofile_low", ERROR},
    {LOG FROM("nvlink_error", "x"), "nvlink_broken", ERROR},
    {LOG SAYS("2.20.5", "log.version", "x") SAYS("2.21.5", "log.version", "x"), "version_mismatch",
     ERROR, "NCCL 2.20.5 and 2.21.5"},
    {ENV("NCCL_ALGO", "Ring") SAYS("NCCL_ALGO", "env.other", "Tree"), "env_differs", WARNING,
     "NCCL_ALGO is Ring on one rank and Tree on another"},
    {ENV("NCCL_IB_HCA", "a") SAYS("NCCL_IB_HCA", "env.other", "b"), "env_differs", SILENT},
    {ENV("NCCL_HOSTID", "a") SAYS("NCCL_HOSTID", "env.other", "b"), "env_differs", SILENT},
};

TEST(a_log_of_nccl)
{
    CHECK(log_networks, NULL);
    CHECK(log_interfaces, NULL);
}

/* The same with a cluster at hand: what its ports should do is known. */
TEST(held_against_a_cluster)
{
    static const struct said rows[] = {
        {PORT("0", "4: ACTIVE") RATE("0", "200", "200 Gb/sec (4X HDR)"), "rail_below_cluster",
         WARNING, "expected 400"},
        {GOOD("0"), "rail_below_cluster", SILENT},
        {LOG NO_DEVICE, "ib_absent", WARNING, "No device found"},
    };
    static const struct said unknown[] = {
        {PORT("0", "4: ACTIVE") RATE("0", "200", "200 Gb/sec (4X HDR)"), "rail_below_cluster",
         SILENT},
    };
    struct knee_cluster cluster;
    struct knee_doctor_options options = {.cluster = &cluster};
    assert_true(knee_cluster_recognise("dgx-h100", &cluster));
    CHECK(rows, &options);
    cluster.level_count = 1;
    CHECK(unknown, &options);
    cluster.level_count = 2;
    snprintf(cluster.levels[1].name, sizeof cluster.levels[1].name, "ours");
    CHECK(unknown, &options);
}

/* ---- Hosts against each other ---- */

enum { MOST_HOSTS = 5 };
#define AND "|" /* the next host */

static const struct {
    const char *hosts, *rule;
    int severity;
    const char *name, *where, *words; /* of the first odd host */
    double left;
} several[] = {
    {GOOD("0") AND GOOD("0") AND RATE("0", "200", "200 Gb/sec"), "rails_differ", ERROR, "h2",
     "mlx5_0:1 rate", "h2: 200 Gb/sec; 2 of 3 hosts have 400", 0.5},
    {GOOD("0") AND GOOD("0") AND MTU, "rails_differ", ERROR, "h2", "mlx5_0:1 rate",
     "h2: does not have it; 2 of 3", NAN},
    {MTU AND MTU AND GOOD("0"), "rails_differ", ERROR, "h2", "mlx5_0:1 rate",
     "h2: 400 Gb/sec (4X NDR); 2 of 3 hosts have none", NAN},
    {ENV("NCCL_ALGO", "Ring") AND ENV("NCCL_ALGO", "Tree") AND ENV("NCCL_ALGO", "Tree") AND MTU,
     "hosts_differ", WARNING, "h0", "NCCL_ALGO", "h0, h3: Ring; 2 of 4 hosts have Tree", NAN},
    {ENV("LOCAL_RANK", "0") AND ENV("LOCAL_RANK", "1"), "hosts_differ", SILENT, "", "", "", NAN},
    {HAS("lo", "net.mtu", "1") AND HAS("lo", "net.mtu", "2"), "hosts_differ", SILENT, "", "", "",
     NAN},
    {HAS("veth1", "net.mtu", "1") AND HAS("veth1", "net.mtu", "2"), "hosts_differ", SILENT, "", "",
     "", NAN},
    {MTU AND AT_H100 AND AT_H100 GPU1 AND NAMED("0", "NVIDIA A100"), "hosts_differ", WARNING, "h3",
     "GPU", "h3: NVIDIA A100; 2 of 4", NAN},
    {NCCL("2.20.5") AND MTU AND NCCL("2.20.5"), "hosts_differ", SILENT, "", "", "", NAN},
    {NCCL("2.20.5") AND NCCL("2.21.5"), "hosts_differ", WARNING, "h1", "NCCL",
     "h1: 2.21.5; 1 of 2 hosts have 2.20.5", NAN},
    {HAS("", "clock.ahead_s", "0") AND MTU AND HAS("", "clock.ahead_s", "2.5"), "clock_skew",
     WARNING, "h2", "", "2.5 s ahead of h0", NAN},
    {BOTH("h0", "bench.slow_host", "60", "60 %") AND LOOP, "slow_host", WARNING, "h0", "h0", "60 %",
     0.6},
    {HAS("", "clock.ahead_s", "0.01") AND HAS("", "clock.ahead_s", "0"), "clock_skew", SILENT, "",
     "", "", NAN},
};

static size_t make_hosts(const char *lines, struct knee_facts *hosts)
{
    size_t count = 0;
    for (const char *end = lines; end; lines = end ? end + 1 : NULL, count++) {
        assert_true(count < MOST_HOSTS);
        end = strchr(lines, '|');
        hosts[count] = (struct knee_facts){0};
        knee_facts_read(&hosts[count], lines, end ? (size_t)(end - lines) : strlen(lines));
        snprintf(hosts[count].host, sizeof hosts[count].host, "h%zu", count);
    }
    return count;
}

TEST(hosts_that_differ)
{
    for (size_t i = 0; i < sizeof several / sizeof *several; i++) {
        struct knee_facts hosts[MOST_HOSTS];
        size_t count = make_hosts(several[i].hosts, hosts);
        struct knee_checkup c = examine(hosts, count, NULL);
        const struct knee_ailment *a = found(&c, several[i].rule);
        if ((a ? (int)a->severity : SILENT) != several[i].severity)
            fail_msg("row %zu: %s", i, a ? a->evidence : "silent");
        if (a &&
            (strcmp(a->host, several[i].name) != 0 || strcmp(a->where, several[i].where) != 0 ||
             !strstr(a->evidence, several[i].words) ||
             (isnan(several[i].left) ? !isnan(a->left) : a->left != several[i].left)))
            fail_msg("row %zu: %s, %s: %s, %g left", i, a->host, a->where, a->evidence, a->left);
        knee_checkup_release(&c);
        for (size_t k = 0; k < count; k++)
            knee_facts_release(&hosts[k]);
    }
}

/* Names of hosts and of parts that do not fit are told to be there; all are counted. */
TEST(more_than_can_be_named)
{
    enum { HOSTS = 41, PORTS = 120 };
    static struct knee_facts hosts[HOSTS];
    for (size_t i = 0; i < HOSTS; i++) {
        hosts[i] = facts_of(i % 2 ? NCCL("2.21.5") : NCCL("2.20.5"));
        snprintf(hosts[i].host, sizeof hosts[i].host, "a-host-with-a-name-%zu", i);
    }
    OWNED(knee_checkup) c = examine(hosts, HOSTS, NULL);
    const struct knee_ailment *a = found(&c, "hosts_differ");
    assert_int_equal(a->hosts, HOSTS / 2);
    assert_non_null(strstr(a->evidence, "a-host-with-a-name-1, a-host-with-a-name-3"));
    assert_non_null(strstr(a->evidence, " ...: 2.21.5; 21 of 41"));
    assert_null(strstr(a->evidence, "... ..."));
    knee_checkup_release(&c);
    for (size_t i = 0; i < HOSTS; i++)
        knee_facts_release(&hosts[i]);
    OWNED(knee_facts) facts = {0};
    for (int i = 0; i < PORTS; i++) { /* more than are looked at */
        char name[24];
        snprintf(name, sizeof name, "mlx5_%03d:1", i);
        knee_fact_put(&facts, name, "ib.state", knee_slice_of(i ? "1: DOWN" : "4: ACTIVE"));
        knee_fact_put(&facts, name, "ib.gid.1", knee_slice_of("fe80::1 v2"));
        knee_fact_put(&facts, name, "ib.rate", knee_slice_of("400 Gb/sec (4X NDR)"));
    }
    c = examine(&facts, 1, NULL);
    a = found(&c, "rail_down");
    assert_true(a->parts >= 90 && a->parts < PORTS);
    assert_string_equal(a->where + strlen(a->where) - 4, " ...");
    assert_near(a->left, 1.0 / 96, 1e-12);
}

/* A name inside of another is a part of its own; a part without a load says nothing of one with. */
TEST(parts_of_one_finding)
{
    OWNED(knee_facts) facts = facts_of(
        HAS("br-eth1", "net.speed_max", "9") HAS("br-eth1", "net.speed", "5")
            HAS("eth1", "net.speed_max", "9") HAS("eth1", "net.speed", "5") /* and GPUs: */
        LINK("0", "active", "12") LINK("1", "active", "18") HAS("GPU 0", "topo.least_nvlinks", "6")
            HAS("GPU 0", "topo.most_nvlinks", "18") G("0", "event.sw_thermal", "Active")
                G("1", "event.sw_thermal", "Active") GN("1", "util", "99") GN("1", "clock", "500")
                    GN("1", "clock_max", "1000"));
    OWNED(knee_checkup) c = examine(&facts, 1, NULL);
    const struct knee_ailment *a = found(&c, "net_below_mode");
    assert_int_equal(a->parts, 2);
    assert_string_equal(a->where, "br-eth1, eth1");
    a = found(&c, "nvlink_pair_short"); /* told twice */
    assert_int_equal(a->parts, 1);
    assert_string_equal(a->where, "GPU 0");
    a = found(&c, "sw_thermal");
    assert_int_equal(a->parts, 2);
    assert_near(a->left, 0.5, 1e-12);
}

static bool has_gap(const struct knee_checkup *c, const char *what)
{
    for (size_t i = 0; i < c->gap_count; i++)
        if (strcmp(c->gaps[i].what, what) == 0)
            return true;
    return false;
}

/* What is too much is said to be: findings, facts, variables. */
TEST(too_much_is_told)
{
    OWNED(knee_facts) facts = {0};
    for (int i = 0; i < 5000; i++) {
        char key[24];
        snprintf(key, sizeof key, "xid.%d", 1000 + i);
        knee_fact_put(&facts, "0000:3b:00", key, knee_slice_of("Xid (x): y"));
    }
    OWNED(knee_checkup) c = examine(&facts, 1, NULL);
    assert_int_equal(c.count, 4096);
    assert_int_equal(c.unlisted, 5000 - 4096);
    assert_true(has_gap(&c, "further findings") && c.dropped == 0);
    knee_checkup_release(&c);
    knee_facts_release(&facts);
    knee_fact_put(&facts, "NCCL_IB_TIMEOUT", "env", knee_slice_of("22"));
    for (size_t i = 0; i <= KNEE_FACTS_MAX; i++)
        knee_fact_put(&facts, "", "x", knee_slice_of("y"));
    c = examine(&facts, 1, NULL);
    assert_true(c.dropped > 0 && !has_gap(&c, "further findings"));
    assert_int_equal(c.count, 0);
    knee_checkup_release(&c);
    knee_facts_release(&facts);
    for (int i = 0; i < 1030; i++) {
        char name[24];
        snprintf(name, sizeof name, "A%d", i);
        knee_fact_put(&facts, name, "env", knee_slice_of("1"));
    }
    c = examine(&facts, 1, NULL);
    assert_string_equal(found(&c, "env_unknown")->evidence,
                        "6 further variables were not looked at");
}

/* ---- What NCCL makes of it ---- */

TEST(settings_as_they_are_read)
{
    struct knee_facts facts = facts_of(
        ENV("NCCL_IB_TIMEOUT", "") ENV("NCCL_IB_SL", "99999999999999999999")
            ENV("NCCL_ALGO", "Ring") ENV("NCCL_IB_TC", "0x10") ENV("CUDA_VISIBLE_DEVICES", "0"));
    struct knee_checkup c = examine(&facts, 1, NULL);
    static const char *const wanted[][2] = {{"NCCL_ALGO", ""},
                                            {"NCCL_IB_SL", "default"},
                                            {"NCCL_IB_TC", "16"},
                                            {"NCCL_IB_TIMEOUT", "default"}};
    assert_int_equal(c.setting_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(c.settings[i].name, wanted[i][0]);
        assert_string_equal(c.settings[i].read, wanted[i][1]);
    }
    knee_checkup_release(&c);
    for (int i = 0; i < KNEE_SETTINGS_MAX + 8; i++) {
        char name[24];
        snprintf(name, sizeof name, "NCCL_OFI_%d", i);
        knee_fact_put(&facts, name, "env", knee_slice_of("1"));
    }
    c = examine(&facts, 1, NULL);
    assert_int_equal(c.setting_count, KNEE_SETTINGS_MAX);
    knee_checkup_release(&c);
    knee_facts_release(&facts);
    assert_null(knee_nccl_variable_of("CUDA_VISIBLE_DEVICES"));
    assert_null(knee_nccl_variable_of("NCCL_"));
    long long number = 0;
    bool clean = false;
    assert_true(knee_nccl_integer("7 \t", &number, &clean) && number == 7 && clean);
}

/* ---- Rules of a site ---- */

TEST(rules_of_a_site)
{
    static const struct {
        const char *csv, *what;
    } bad[] = {
        {"a,grave,ib.rate,any,,says,cure\n", "grave"},
        {",warning,ib.rate,any,,says,cure\n", "a rule needs an id and a key"},
        {"a,warning,,any,,says,cure\n", "a rule needs an id and a key"},
        {"a,warning,ib.rate,abov,1,says,cure\n", "unknown test 'abov'"},
        {"a,warning,ib.rate,above,fast,says,cure\n",
         "the limit of 'above' is a number, not 'fast'"},
        {"a,warning,ib.rate,below,,says,cure\n", "the limit of 'below' is a number, not ''"},
        {"a,warning,ib.rate,over,,says,cure\n", "the limit of 'over' is another key"},
    };
    struct knee_site_rules rules;
    struct knee_err err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(
            knee_site_rules_read(bad[i].csv, strlen(bad[i].csv), "site.csv", &rules, &err),
            KNEE_INPUT);
        if (!strstr(err.what, bad[i].what) || strcmp(err.where, "site.csv:1") != 0)
            fail_msg("%s: %s: %s", bad[i].csv, err.where, err.what);
    }
    char many[1025 * 16] = "";
    for (size_t i = 0, used = 0; i < 1025; i++)
        used += (size_t)snprintf(many + used, sizeof many - used, "a,note,b,any\n");
    assert_int_equal(knee_site_rules_read(many, strlen(many), "site.csv", &rules, &err),
                     KNEE_INPUT);
    assert_string_equal(err.what, "more than 1024 rules");
}

/* Every test of a row, and what it says. */
TEST(tests_of_a_row)
{
    static const char csv[] = "# ours\n"
                              "id,severity,key,test,limit,says,cure\n"
                              "is,note,x,is,5,{where} is {value},{where}\n"
                              "not,note,x,not,6|7,no {value},c\n"
                              "has,note,x,has,5,h,c\n"
                              "lacks,note,x,lacks,6,l,c\n"
                              "any,note,x,any,,a,c\n"
                              "above,note,x,above,4,a,c\n"
                              "below,note,x,below,6,b,c\n"
                              "over,note,x,over,y,{value} over {other},c\n"
                              "under,note,x,under,z,{value} under {other}{other,c\n";
    static const char *const ids[] = {"is",    "not",   "has",  "lacks", "any",
                                      "above", "below", "over", "under"};
    static const char *const no[] = {"5.01", "6", "4", "6", "", "4", "6", "4.01", "6.01"};
    struct knee_site_rules rules;
    struct knee_err err;
    assert_ok(knee_site_rules_read(csv, strlen(csv), "site.csv", &rules, &err));
    struct knee_doctor_options options = {.site = &rules};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        for (int holds = 0; holds < 2; holds++) {
            OWNED(knee_facts) facts = {0};
            knee_fact_put(&facts, "part", "x", knee_slice_of(holds ? "5" : no[i]));
            knee_fact_put(&facts, "part", "y", knee_slice_of("4"));
            knee_fact_put(&facts, "part", "z", knee_slice_of("6"));
            knee_fact_put(&facts, "other", "x", knee_slice_of(""));
            OWNED(knee_checkup) c = examine(&facts, 1, &options);
            const struct knee_ailment *a = found(&c, ids[i]);
            if ((a && strstr(a->where, "part")) != holds)
                fail_msg("%s of %s", ids[i], holds ? "5" : no[i]);
            if (holds && i == 0)
                assert_string_equal(a->evidence, "part is 5");
            if (holds && i == 7)
                assert_string_equal(a->evidence, "5 over 4");
            if (holds && i == 8)
                assert_string_equal(a->evidence, "5 under 6{other");
        }
    knee_site_rules_release(&rules);
    assert_null(knee_rule_of("nothing of the kind"));
    assert_null(knee_severity_names.name(KNEE_SEVERITIES));
}

/* Words that are too long for what is told are cut there. */
TEST(long_words_are_cut)
{
    char csv[1024], value[400];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (int way = 0; way < 3; way++) {
        snprintf(csv, sizeof csv, "a,note,x,any,,%s,cure\n",
                 way == 0   ? "{value}"
                 : way == 1 ? value
                            : "is {other}.");
        OWNED(knee_site_rules) rules;
        struct knee_err err;
        assert_ok(knee_site_rules_read(csv, strlen(csv), "site.csv", &rules, &err));
        struct knee_doctor_options options = {.site = &rules};
        OWNED(knee_facts) facts = {0};
        knee_fact_put(&facts, "", "x", knee_slice_of(value));
        OWNED(knee_checkup) c = examine(&facts, 1, &options);
        if (way < 2)
            assert_memory_equal(found(&c, "a")->evidence, value, sizeof c.findings->evidence - 1);
        else
            assert_string_equal(found(&c, "a")->evidence, "is .");
    }
}

/* ---- The price ---- */

#define NODE8(name)                                                                                \
    NAMED("0", name)                                                                               \
    NAMED("1", name)                                                                               \
    NAMED("2", name)                                                                               \
    NAMED("3", name) NAMED("4", name) NAMED("5", name) NAMED("6", name) NAMED("7", name)
#define H100  NODE8("NVIDIA H100 80GB HBM3")
#define RAILS GOOD("0") GOOD("1")

/* What each kind of hurt costs: the wire (share left), and the job (share lost); NaN: nothing. */
static const struct priced {
    const char *facts, *rule;
    bool wire, job;
} priced[] = {
    {H100 RAILS ENV("NCCL_NET_GDR_LEVEL", "LOC"), "gdr_level_off", true, true}, /* network */
    {H100 RAILS LINK("0", "inactive", "6") LINK("0", "active", "12") LINK("0", "links", "18"),
     "nvlink_inactive", true, true},                                     /* node */
    {H100 RAILS ENV("NCCL_IB_DISABLE", "1"), "ib_disabled", true, true}, /* TCP */
    {H100 RAILS ENV("NCCL_IB_DISABLE", "1") HAS("eth0", "net.speed", "10000"), "ib_disabled", true,
     true},
    {H100 RAILS ENV("NCCL_P2P_DISABLE", "1"), "p2p_disabled", true, true}, /* host */
    {H100 RAILS ENV("NCCL_NVLS_ENABLE", "0"), "nvls_off", true, true},
    {H100 RAILS G("0", "event.hw_thermal", "Active"), "hw_thermal", false, true}, /* compute */
    {H100 RAILS G("0", "event.sw_thermal", "Active"), "sw_thermal", false, false},
    {H100 RAILS G("0", "lost", "lost"), "gpu_lost", false, true}, /* all */
    {H100 RAILS WANT("2"), "gid_index_useless", false, false},    /* nothing */
    {H100 RAILS BOTH("h", "bench.slow_host", "100", "100 %"), "slow_host", false, false},
    {H100 RAILS BOTH("h", "bench.slow_host", "0", "0 %"), "slow_host", false, false},
    {NODE8("NVIDIA A100-SXM4-80GB") ENV("NCCL_P2P_DISABLE", "1"), "p2p_disabled", true, true},
    {NODE8("Tesla V100-SXM2-32GB") ENV("NCCL_P2P_DISABLE", "1"), "p2p_disabled", true, true},
    {H100 GOOD("0") LAYER("0", "Ethernet") ENV("NCCL_IB_DISABLE", "1"), "ib_disabled", true, true},
};

static void check_price(const struct priced *row, const struct knee_job *job)
{
    struct knee_doctor_options options = {.job = job};
    OWNED(knee_facts) facts = facts_of(row->facts);
    OWNED(knee_checkup) c = examine(&facts, 1, &options);
    const struct knee_toll *p = &found(&c, row->rule)->price;
    if (!isnan(p->share) != row->wire || (job && !isnan(p->lost) != row->job))
        fail_msg("%s: %g of the wire, %g of the job", row->rule, p->share, p->lost);
    if (row->wire)
        assert_true(p->share > 0 && p->share <= 1 && p->hurt_s >= p->healthy_s);
    if (job && row->job) {
        assert_true(p->lost >= 0 && p->lost <= 1 && p->step_before_s > 0);
        assert_true(isnan(p->step_after_s) || p->step_after_s >= p->step_before_s);
    }
    if (!job)
        assert_true(isnan(p->lost) && isnan(p->ratio_before) && !p->slows_job);
}

TEST(every_hurt_has_its_price)
{
    struct knee_job on_them = job_of("model llama2-7b global-batch 512 workers 64 mfu 0.4");
    struct knee_job elsewhere = job_of("model llama2-7b gpu h100 global-batch 512 workers 64");
    for (size_t i = 0; i < sizeof priced / sizeof *priced; i++) {
        check_price(&priced[i], NULL);
        check_price(&priced[i], &on_them);
    }
    check_price(&priced[0], &elsewhere);
}

/* Host memory over PCIe 4 takes longer than over PCIe 5; TCP over a slow interface than over a fast
 * one, and what no interface says is assumed and said. */
TEST(slower_is_dearer)
{
    static const char *const pairs[][2] = {
        {NODE8("NVIDIA A100-SXM4-80GB") ENV("NCCL_P2P_DISABLE", "1"),
         H100 ENV("NCCL_P2P_DISABLE", "1")},
        {H100 RAILS ENV("NCCL_IB_DISABLE", "1") HAS("eth0", "net.speed", "10000"),
         H100 RAILS ENV("NCCL_IB_DISABLE", "1") HAS("eth0", "net.speed", "10000")
             HAS("eth1", "net.speed", "200000")},
        {H100 RAILS ENV("NCCL_IB_DISABLE", "1") HAS("eth0", "net.speed", "10000"),
         H100 RAILS ENV("NCCL_IB_DISABLE", "1")},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        double hurt_s[2];
        for (size_t k = 0; k < 2; k++) {
            OWNED(knee_facts) facts = facts_of(pairs[i][k]);
            OWNED(knee_checkup) c = examine(&facts, 1, NULL);
            hurt_s[k] = found(&c, i ? "ib_disabled" : "p2p_disabled")->price.hurt_s;
            assert_true(c.ethernet_assumed == (i == 2 && k == 1));
        }
        assert_true(hurt_s[0] > hurt_s[1]);
    }
}

/* A network that the cluster does not have is not hurt; no cluster, no price; no job without what
 * it needs. */
TEST(what_has_no_price)
{
    OWNED(knee_facts) facts = facts_of(ENV("NCCL_IB_DISABLE", "1") ENV("NCCL_NET_GDR_LEVEL", "0"));
    struct knee_cluster cluster;
    struct knee_doctor_options options = {.cluster = &cluster};
    OWNED(knee_checkup) c = examine(&facts, 1, NULL);
    assert_int_equal(c.cluster.level_count, 0);
    assert_true(isnan(found(&c, "ib_disabled")->price.share) && !c.ethernet_assumed);
    knee_checkup_release(&c);
    assert_true(knee_cluster_recognise("dgx-h100", &cluster));
    cluster.level_count = 1;
    cluster.levels[0].count = 0; /* any number of them */
    c = examine(&facts, 1, &options);
    assert_true(isnan(found(&c, "ib_disabled")->price.share) && !c.ethernet_assumed);
    assert_true(isnan(found(&c, "gdr_level_off")->price.share));
    assert_near(c.ranks, 64, 0);
    knee_checkup_release(&c);
    struct knee_job bare = job_of("workers 64"), small = job_of("model gpt2 gpu h100 workers 2");
    struct knee_err err;
    options = (struct knee_doctor_options){.job = &bare};
    assert_true(knee_doctor_examine(&facts, 1, &options, NULL, &c, &err) != KNEE_OK);
    assert_true(err.what[0] != '\0');
    options.job = &small; /* fewer than a node: the collective is that of eight nodes */
    c = examine(&facts, 1, &options);
    assert_true(c.cluster_from[0] && c.ranks >= 8);
}

/* ---- Laws ---- */

#define TABLE(rows)                                                                                \
    {                                                                                              \
        rows, sizeof rows / sizeof *(rows)                                                         \
    }
static const struct {
    const struct said *rows;
    size_t count;
} tables[] = {
    TABLE(first_asked), TABLE(ports),        TABLE(gids),           TABLE(names),
    TABLE(gpu_rows),    TABLE(pci_rows),     TABLE(kernel_rows),    TABLE(host_rows),
    TABLE(env_rows),    TABLE(log_networks), TABLE(log_interfaces),
};

struct lines {
    const char *at[256];
    size_t length[256], count;
};

static bool same_thing(const char *a, const char *b) /* subject and key */
{
    size_t tabs = 0;
    for (; *a == *b; a++, b++)
        if (*a == '\t' && ++tabs == 2)
            return true;
    return false;
}

/* The facts of a few rows; of two values of one thing the first. */
static void some_facts(uint64_t *seed, struct lines *out)
{
    out->count = 0;
    for (int i = 0; i < 6; i++) {
        size_t t = (size_t)(chance(seed) * (double)(sizeof tables / sizeof *tables));
        size_t r = (size_t)(chance(seed) * (double)tables[t].count);
        for (const char *line = tables[t].rows[r].facts; *line; line = strchr(line, '\n') + 1) {
            bool there = false;
            for (size_t k = 0; k < out->count; k++)
                there = there || same_thing(out->at[k], line);
            if (there || out->count == 256)
                continue;
            out->length[out->count] = (size_t)(strchr(line, '\n') + 1 - line);
            out->at[out->count++] = line;
        }
    }
}

static void tell(const struct lines *lines, bool backwards, struct knee_facts *facts)
{
    for (size_t i = 0; i < lines->count; i++) {
        size_t at = backwards ? lines->count - 1 - i : i;
        knee_facts_read(facts, lines->at[at], lines->length[at]);
    }
}

static struct knee_text json_of(const struct knee_checkup *c)
{
    struct knee_text text = {0};
    struct knee_style style = {0};
    knee_answer_write(&knee_doctor_answer, c, KNEE_JSON, &style, &text);
    return text;
}

static void every_finding_is_whole(const struct knee_checkup *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct knee_ailment *a = &c->findings[i];
        assert_true(a->cure[0] && a->evidence[0] && a->hosts > 0 && a->parts > 0);
        assert_true(!(a->left < 0) && !(a->price.share > 1 + 1e-9) && !(a->price.lost > 1));
        assert_true(i == 0 || c->findings[i - 1].severity >= a->severity);
    }
}

/* The order of facts does not matter; what there is twice as often is counted twice. */
TEST(laws_of_findings)
{
    uint64_t seed = 7;
    for (int round = 0; round < (UNIT_SANITIZED ? 60 : 300); round++) {
        struct lines lines;
        struct knee_facts hosts[4];
        memset(hosts, 0, sizeof hosts);
        some_facts(&seed, &lines);
        for (size_t i = 0; i < 4; i++)
            tell(&lines, i == 1, &hosts[i]);
        struct knee_checkup there = examine(hosts, 1, NULL), back = examine(hosts + 1, 1, NULL);
        struct knee_text one = json_of(&there), other = json_of(&back);
        assert_string_equal(one.data, other.data);
        every_finding_is_whole(&there);
        for (size_t i = 0; i < 4; i++)
            snprintf(hosts[i].host, sizeof hosts[i].host, "h%zu", i);
        struct knee_checkup two = examine(hosts, 2, NULL), four = examine(hosts, 4, NULL);
        assert_int_equal(two.count, four.count);
        for (size_t i = 0; i < two.count; i++) {
            assert_ptr_equal(two.findings[i].rule, four.findings[i].rule);
            if (2 * two.findings[i].hosts != four.findings[i].hosts)
                fail_msg("%s: %zu, %zu", two.findings[i].evidence, two.findings[i].hosts,
                         four.findings[i].hosts);
        }
        knee_text_release(&one), knee_text_release(&other);
        knee_checkup_release(&there), knee_checkup_release(&back);
        knee_checkup_release(&two), knee_checkup_release(&four);
        for (size_t i = 0; i < 4; i++)
            knee_facts_release(&hosts[i]);
    }
}

/* Memory runs out at any call: an error that says so, and nothing is left behind. */
TEST(memory_runs_out)
{
    static const char *const pairs[][2] = {
        {H100 RAILS ENV("NCCL_IB_DISABLE", "1") ENV("NCCL_P2P_DISABLE", "1")
             SAYS("NCCL_IB_SL", "conf.home", "2"),
         MTU},
        {NCCL("2.20.5"), NCCL("2.21.5")}, /* nothing is wrong but that they differ */
    };
    struct knee_job job = job_of("model llama2-7b global-batch 512 workers 64 mfu 0.4 gpu h100");
    struct knee_doctor_options options = {.job = &job};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        FOR_EACH_FAILURE(f) {
            struct knee_facts hosts[2] = {{.alloc = &f.alloc}, {.alloc = &f.alloc}};
            struct knee_checkup c;
            struct knee_err err;
            for (size_t k = 0; k < 2; k++)
                knee_facts_read(&hosts[k], pairs[i][k], strlen(pairs[i][k]));
            knee_status status = knee_doctor_examine(hosts, 2, &options, &f.alloc, &c, &err);
            assert_int_equal(status, failing_met(&f) ? KNEE_SYSTEM : KNEE_OK);
            if (status)
                assert_non_null(strstr(err.what, "out of memory"));
            else
                knee_checkup_release(&c);
            knee_facts_release(&hosts[0]), knee_facts_release(&hosts[1]);
            assert_true(status || f.calls > 7);
        }
}
