/* SPDX-License-Identifier: MIT */
/*
 * Lists of devices and interfaces (NCCL_IB_HCA, NCCL_SOCKET_IFNAME) compared with those of the
 * host, the way NCCL matches them: '^' takes all others, '=' whole names, else a name is a prefix:
 * mlx5_1 takes mlx5_10.
 */
#include "judge/doctor/doctor_judge.h"

#include "base/format.h"

#include <math.h>
#include <string.h>

struct name_list {
    bool not, exact;
    struct knee_slice rest;
};

static struct name_list list_of(const char *value)
{
    struct name_list list = {.rest = knee_slice_of(value)};
    list.not = list.rest.at[0] == '^';
    list.rest = knee_slice_from(list.rest, list.not );
    list.exact = list.rest.at[0] == '='; /* the string's end where nothing is left */
    list.rest = knee_slice_from(list.rest, list.exact);
    return list;
}

/* The next name, with its port apart (NaN: any). NCCL does not trim: " mlx5_1" does not match
 * mlx5_1. */
static bool next_name(struct name_list *list, struct knee_slice *name, double *port)
{
    while (knee_slice_until(&list->rest, ',', name)) {
        size_t colon = knee_slice_find(*name, ":");
        *port = NAN;
        if (colon < name->length)
            knee_slice_number(knee_slice_from(*name, colon + 1), port);
        name->length = colon;
        if (name->length > 0)
            return true;
    }
    return false;
}

static bool takes(const struct name_list *list, struct knee_slice name, const char *device)
{
    size_t length = strlen(device);
    return list->exact ? knee_slice_is(name, device)
                       : length >= name.length && memcmp(device, name.at, name.length) == 0;
}

struct tally {
    size_t devices, taken;
    char missing[64], longer[64], shorter[64];
};

/* The devices are the subjects of a key, ports cut off. */
static struct tally count(const struct knee_facts *facts, const char *key, const char *value)
{
    struct tally t = {0};
    size_t first, end = knee_facts_range(facts, key, &first);
    struct name_list list = list_of(value);
    struct knee_slice name;
    double port, has;
    t.devices = end - first;
    while (next_name(&list, &name, &port)) {
        size_t hits = 0;
        bool whole = false;
        char longer[64] = "";
        for (size_t i = first; i < end; i++) {
            char device[64];
            knee_format(device, sizeof device, "%.*s", (int)strcspn(facts->rows[i].subject, ":"),
                        facts->rows[i].subject);
            if (!takes(&list, name, device) ||
                (knee_slice_number_after(knee_slice_of(facts->rows[i].subject), ":", &has) &&
                 !isnan(port) && has != port))
                continue;
            hits++;
            whole = whole || knee_slice_is(name, device);
            if (strlen(device) > name.length && name.at[name.length - 1] >= '0' &&
                name.at[name.length - 1] <= '9' && device[name.length] >= '0' &&
                device[name.length] <= '9')
                knee_format(longer, sizeof longer, "%s", device);
        }
        t.taken += hits;
        if (hits == 0)
            knee_slice_copy(name, t.missing, sizeof t.missing);
        if (longer[0] && whole && !t.shorter[0]) {
            knee_slice_copy(name, t.shorter, sizeof t.shorter);
            memcpy(t.longer, longer, sizeof longer);
        }
    }
    return t;
}

static void check_hca(struct knee_exam *exam, const char *value)
{
    struct name_list list = list_of(value);
    const char *key = knee_fact_find(exam->facts, NULL, "ib.rate") ? "ib.rate" : "ib.state";
    struct tally t = count(exam->facts, key, value);
    if (t.devices > 0 && t.missing[0] && !list.not )
        knee_blame_at(exam, t.taken ? KNEE_WARNING : KNEE_ERROR, "hca_absent", "NCCL_IB_HCA", NAN,
                      "NCCL_IB_HCA names %s, which is not there (%zu adapters are)", t.missing,
                      t.devices);
    else if (exam->rdma == KNEE_ABSENT && !list.not )
        knee_blame_at(exam, KNEE_WARNING, "hca_absent", "NCCL_IB_HCA", NAN,
                      "NCCL_IB_HCA=%s, but this host shows no adapter: NCCL falls back to TCP",
                      value);
    if (list.not &&t.devices > 0 && t.taken >= t.devices)
        knee_blame(exam, "hca_absent", "NCCL_IB_HCA", NAN, "NCCL_IB_HCA=%s leaves no adapter",
                   value);
    if (t.shorter[0])
        knee_blame(exam, "hca_prefix", "NCCL_IB_HCA", NAN, "%s in NCCL_IB_HCA also takes %s",
                   t.shorter, t.longer);
    else if (t.devices == 0 && !list.exact && strstr(value, "_1") && !strchr(value, '^'))
        knee_blame(exam, "hca_prefix_maybe", "NCCL_IB_HCA", NAN,
                   "NCCL_IB_HCA=%s: names are prefixes, mlx5_1 takes mlx5_10 too", value);
}

/* Interfaces of containers, virtual machines and tunnels: there on every host, leading to none. */
bool knee_interface_is_virtual(const char *interface)
{
    static const char *const names[] = {
        "veth", "docker", "virbr",   "cni",     "br-",  "ip6tnl",    "lxc",           "podman",
        "cali", "cilium", "flannel", "tunl",    "tun0", "tailscale", "wg0",           "zt",
        "utun", "vmnet",  "nerdctl", "kube-ip", "ppp",  "nodelocal", "CloudflareWARP"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(interface, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static bool only_loopback(const char *value)
{
    return strcmp(value, "lo") == 0 || strcmp(value, "=lo") == 0;
}

static bool leaves_loopback(const char *value)
{
    struct name_list list = list_of(value);
    struct knee_slice name;
    double port;
    bool lo = false;
    while (next_name(&list, &name, &port))
        lo = lo || knee_slice_is(name, "lo") || knee_slice_is(name, "l");
    return value[0] == '^' && !lo;
}

static void check_interface(struct knee_exam *exam, const char *variable, const char *value)
{
    struct tally t = count(exam->facts, "net.mtu", value);
    struct name_list list = list_of(value);
    const char *first = value + (value[0] == '=');
    bool nccl = strcmp(variable, "NCCL_SOCKET_IFNAME") == 0;
    if (only_loopback(value))
        knee_blame_at(exam, exam->nodes == KNEE_ABSENT ? KNEE_NOTE : KNEE_WARNING,
                      "wrong_interface", variable, NAN, "%s=%s: no other host can reach 127.0.0.1",
                      variable, value);
    else if (!list.not &&knee_interface_is_virtual(first))
        knee_blame_at(exam, exam->nodes == KNEE_ABSENT ? KNEE_NOTE : KNEE_WARNING,
                      "wrong_interface", variable, NAN,
                      "%s=%s: a bridge or tunnel of this host, other hosts cannot reach it",
                      variable, value);
    else if (nccl && leaves_loopback(value))
        knee_blame_at(exam, exam->nodes == KNEE_PRESENT ? KNEE_WARNING : KNEE_NOTE,
                      "wrong_interface", variable, NAN,
                      "%s=%s replaces the default exclusions: lo may be taken", variable, value);
    else if (t.devices > 0 && !list.not &&t.taken == 0)
        knee_blame(exam, "interface_absent", variable, NAN,
                   "%s=%s, but this host has no such interface", variable, value);
    else if (t.shorter[0] && nccl)
        knee_blame(exam, "interface_prefix", variable, NAN, "%s in %s also takes %s", t.shorter,
                   variable, t.longer);
}

void knee_check_names(struct knee_exam *exam)
{
    static const char *const interfaces[] = {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME",
                                             "NCCL_OOB_NET_IFNAME"};
    const struct knee_fact *hca = knee_fact_find(exam->facts, "NCCL_IB_HCA", "env");
    if (hca && hca->value[0])
        check_hca(exam, hca->value);
    for (size_t i = 0; i < 3; i++) {
        const struct knee_fact *fact = knee_fact_find(exam->facts, interfaces[i], "env");
        if (fact && fact->value[0])
            check_interface(exam, interfaces[i], fact->value);
    }
}
