/* SPDX-License-Identifier: MIT */
/*
 * A log of NCCL, beyond single lines: which network was taken although a better one may be there,
 * what the channels go over, devices that do not belong together, interfaces that others cannot
 * reach, errors of which one follows from another.
 */
#include "judge/doctor/doctor_judge.h"

#include "base/format.h"

#include <math.h>
#include <string.h>

static const struct knee_fact *log_fact(const struct knee_exam *exam, const char *key)
{
    return knee_fact_find(exam->facts, NULL, key);
}

static double count_of(const struct knee_exam *exam, const char *key)
{
    double value = knee_fact_value(exam->facts, "", key);
    return isnan(value) ? 0 : value;
}

static const char *env(const struct knee_exam *exam, const char *name)
{
    const struct knee_fact *fact = knee_fact_find(exam->facts, name, "env");
    return fact ? fact->value : "";
}

/* ---- The network ---- */

/* A socket on IPoIB: InfiniBand is there, and could be used as such. */
static bool over_ipoib(const struct knee_exam *exam)
{
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "log.socket", &row);)
        if (strncmp(row->subject, "ib", 2) == 0)
            return true;
    return false;
}

/* Why no verbs device was found, and whether that matters: on one node it does not. */
static void without_verbs(struct knee_exam *exam)
{
    const struct knee_fact *verbs = log_fact(exam, "log.libibverbs_missing");
    const struct knee_fact *device = log_fact(exam, "log.ib_no_device");
    bool wanted = env(exam, "NCCL_IB_HCA")[0] || exam->expected_bytes_per_s > 0 || over_ipoib(exam);
    bool one_node = exam->nodes == KNEE_ABSENT;
    if (verbs && strcmp(env(exam, "FI_PROVIDER"), "efa") == 0)
        knee_blame(exam, "efa_plugin_missing", verbs->subject, NAN,
                   "FI_PROVIDER=efa, but no plugin was loaded: %s", verbs->value);
    else if (verbs)
        knee_blame_at(exam, one_node || log_fact(exam, "log.efa_absent") ? KNEE_NOTE : KNEE_WARNING,
                      "libibverbs_missing", verbs->subject, NAN, "%s%s", verbs->value,
                      one_node ? " (one node: nothing is lost)" : "");
    const struct knee_fact *shut = log_fact(exam, "log.device_unusable");
    if (device && shut)
        knee_blame(exam, "ib_absent", device->subject, NAN, "%s; %s", shut->value, device->value);
    else if (device && wanted)
        knee_blame(exam, "ib_absent", device->subject, NAN, "%s%s%s", device->value,
                   env(exam, "NCCL_IB_HCA")[0] ? "; NCCL_IB_HCA=" : "", env(exam, "NCCL_IB_HCA"));
    else if (!device && !verbs && over_ipoib(exam) && exam->nodes != KNEE_ABSENT &&
             log_fact(exam, "log.network.Socket"))
        knee_blame(exam, "ib_absent", "", NAN,
                   "sockets over IPoIB: InfiniBand is there and is not used as such");
    else if (device && exam->nodes == KNEE_PRESENT)
        knee_blame(exam, "socket_only", device->subject, NAN,
                   "%s: traffic between nodes goes over TCP", device->value);
}

static void networks(struct knee_exam *exam)
{
    const struct knee_fact *socket = NULL, *other = NULL;
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "log.network.*", &row);)
        *(strcmp(row->key, "log.network.Socket") == 0 ? &socket : &other) = row;
    if (socket && other && strcmp(socket->subject, other->subject) != 0)
        knee_blame(exam, "network_mismatch", socket->subject, NAN, "%s says Socket, %s says %s",
                   socket->subject[0] ? socket->subject : "one node",
                   other->subject[0] ? other->subject : "another",
                   other->key + strlen("log.network."));
    else
        without_verbs(exam);
}

/* ---- Channels ---- */

/* Omni-Path through verbs has no GPUDirect RDMA: its absence says nothing there. */
static void channels(struct knee_exam *exam)
{
    double gdr = count_of(exam, "log.via.gdr"), plain = count_of(exam, "log.via.plain");
    const struct knee_fact *off = log_fact(exam, "log.gdr_off");
    bool told = log_fact(exam, "log.gdr_distance") || log_fact(exam, "log.gdr_unsupported");
    const struct knee_fact *far = log_fact(exam, "log.gdr_distance");
    if (log_fact(exam, "log.omni_path"))
        return;
    /* Every GPU reports the NICs that are far from it; it matters only if no NIC is near. */
    if (far && gdr == 0 && !log_fact(exam, "log.gdr_enabled"))
        knee_blame(exam, "gdr_distance", far->subject, NAN, "%s", far->value);
    if (off && gdr == 0)
        knee_blame(exam, "gdr_off", off->subject, NAN, "%s", off->value);
    else if (plain > 0 && gdr == 0 && !told)
        knee_blame(exam, "gdr_off", "", NAN,
                   "%.0f channels go over the network without GDRDMA, none with it", plain);
    else if (plain > 0 && gdr > 0)
        knee_blame(exam, "gdr_partial", "", gdr / (gdr + plain),
                   "%.0f channels go over the network with GDRDMA, %.0f without", gdr, plain);
    if (count_of(exam, "log.via.shm") > 0 && count_of(exam, "log.via.p2p") == 0)
        knee_blame_at(exam, KNEE_NOTE, "p2p_disabled", "", NAN,
                      "GPUs of one node talk through shared memory, none over P2P");
}

/* Of a list with both link layers, the smaller part is not a rail; harmless while no channel takes
 * it. */
static void devices(struct knee_exam *exam)
{
    size_t layer[2] = {0, 0}, used = 0;
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "log.device", &row);) {
        layer[strcmp(row->value, "RoCE") == 0]++;
        used += knee_fact_find(exam->facts, row->subject, "log.device_used") != NULL;
    }
    bool few_are_roce = layer[1] <= layer[0];
    if (!layer[0] || !layer[1])
        return;
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "log.device", &row);) {
        bool odd = (strcmp(row->value, "RoCE") == 0) == few_are_roce;
        bool taken = used == 0 || knee_fact_find(exam->facts, row->subject, "log.device_used");
        if (odd && taken)
            knee_blame(exam, "extra_nic", row->subject, NAN,
                       "%s among %zu devices of the other kind", row->value,
                       layer[!few_are_roce ? 1 : 0]);
    }
}

/* Hosts that found fewer adapters than the others. */
static void fewer_devices(struct knee_exam *exam)
{
    double most = knee_facts_most(exam->facts, "log.device_count");
    for (const struct knee_fact *row = NULL;
         knee_fact_next(exam->facts, "log.device_count", &row);) {
        if (row->number < most)
            knee_blame_at(exam, KNEE_WARNING, "rails_differ", row->subject, row->number / most,
                          "%s uses %.0f adapters, others %.0f", row->subject, row->number, most);
    }
}

/* ---- Interfaces ---- */

static bool unreachable(const struct knee_fact *row)
{
    return strncmp(row->value, "127.", 4) == 0 || strcmp(row->subject, "lo") == 0;
}

/* Containers behind separate bridges all have the same first address. */
static void same_address(struct knee_exam *exam)
{
    size_t first, end = knee_facts_range(exam->facts, "log.address", &first);
    for (size_t i = first; i + 1 < end; i++)
        for (size_t k = i + 1; k < end; k++) {
            const struct knee_fact *a = &exam->facts->rows[i], *b = &exam->facts->rows[k];
            if (strcmp(a->value, b->value) != 0)
                continue;
            knee_blame_at(exam, KNEE_ERROR, "wrong_interface", a->subject, NAN,
                          "%s and %s both have the address %s: containers need the host's network "
                          "(--network=host)",
                          a->subject, b->subject, a->value);
            return;
        }
}

static void interfaces(struct knee_exam *exam)
{
    static const char *const keys[] = {"log.socket", "log.bootstrap"};
    const struct knee_fact *failed = log_fact(exam, "log.peer_unreachable"), *bad = NULL;
    if (!failed && !log_fact(exam, "log.complete")) /* retries are usual while others still start */
        failed = log_fact(exam, "log.peer_retried");
    for (size_t k = 0; k < 2; k++) {
        for (const struct knee_fact *row = NULL;
             !bad && knee_fact_next(exam->facts, keys[k], &row);) {
            if (unreachable(row) || knee_interface_is_virtual(row->subject) ||
                (failed && strncmp(row->value, "fe80", 4) == 0))
                bad = row;
        }
    }
    bool over_tcp = log_fact(exam, "log.network.Socket") || log_fact(exam, "log.via.socket");
    /* a link-local address of a tunnel, or a bridge where NCCL's sockets failed */
    bool sure = bad && (strncmp(bad->value, "fe80", 4) == 0 || log_fact(exam, "log.system_error"));
    if (bad && failed)
        knee_blame_at(exam, KNEE_ERROR, "wrong_interface", bad->subject, NAN,
                      "%s (%s) is used, and a peer cannot be reached: %s", bad->subject, bad->value,
                      failed->value);
    else if (bad && exam->nodes != KNEE_ABSENT && (unreachable(bad) || over_tcp || sure))
        knee_blame_at(exam,
                      exam->nodes == KNEE_PRESENT || unreachable(bad) || sure ? KNEE_WARNING
                                                                              : KNEE_NOTE,
                      "wrong_interface", bad->subject, NAN,
                      "%s (%s) is used: other hosts cannot reach it", bad->subject, bad->value);
    else if (failed)
        knee_blame(exam, "peer_unreachable", failed->subject, NAN, "%s", failed->value);
}

/* ---- Completions ---- */

static void completions(struct knee_exam *exam)
{
    static const struct {
        const char *status, *rule, *meaning;
    } table[] = {
        {"4", "ib_access", "local protection error"},
        {"5", "ib_flushed", "flushed"},
        {"9", "ib_access", "remote invalid request"},
        {"10", "ib_access", "remote access error"},
        {"11", "ib_access", "remote operation error"},
        {"12", "ib_timeout", "no answer after all retries"},
        {"13", "ib_not_ready", "receiver not ready"},
    };
    bool flap = log_fact(exam, "log.port_flap") || log_fact(exam, "log.gid_changed"),
         old = log_fact(exam, "log.completion_old") != NULL;
    size_t kinds = knee_facts_count(exam->facts, "log.completion.*");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char key[40];
        knee_format(key, sizeof key, "log.completion.%s", table[i].status);
        const struct knee_fact *row = log_fact(exam, key);
        if (!row)
            continue;
        bool gid = old && strcmp(table[i].status, "12") == 0 && !env(exam, "NCCL_IB_GID_INDEX")[0];
        bool alone = strcmp(table[i].status, "5") == 0 && kinds == 1;
        knee_blame_at(exam,
                      flap    ? KNEE_NOTE
                      : alone ? KNEE_WARNING
                              : knee_rule_of(table[i].rule)->severity,
                      gid && !flap ? "gid_index" : table[i].rule, row->subject, NAN, "%s: %s%s",
                      table[i].meaning, row->value,
                      gid ? "; a release that takes row 0 of the GID table, RoCE v1 on most hosts"
                          : "");
    }
}

/* CUDA refuses memory of another node: where NCCL took NVLink between nodes, that is IMEX. */
static void between_nodes(struct knee_exam *exam)
{
    static const char *const keys[] = {"log.invalid_device", "log.cuda_failure"};
    for (size_t i = 0; i < 2 && log_fact(exam, "log.mnnvl"); i++) {
        const struct knee_fact *row = log_fact(exam, keys[i]);
        if (row) {
            knee_blame(exam, "imex_missing", row->subject, NAN, "%s", row->value);
            knee_soften(exam, i == 0 ? "invalid_device" : "cuda_failure");
            return;
        }
    }
}

/* If a rank died by itself, the other ranks report that it does not answer: a consequence, not a
 * cause. */
static void consequences(struct knee_exam *exam)
{
    static const char *const deaths[] = {
        "log.shm_full",       "log.memlock",       "log.gpu_memory",  "log.version_too_old",
        "log.driver_too_old", "log.nvls_fabric",   "log.open_files",  "log.duplicate_gpu",
        "log.threads",        "log.cumem_refused", "log.registration"};
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++)
        if (log_fact(exam, deaths[i]))
            knee_soften(exam, "peer_unreachable");
    if (log_fact(exam, "log.gpu_memory")) /* NVLS needs additional buffers */
        knee_soften(exam, "nvls_fabric");
}

/* Lines that say what a rule for other facts says too. */
static void told_outright(struct knee_exam *exam)
{
    static const char *const table[][2] = {
        {"log.version_mismatch", "version_mismatch"},
        {"log.network_mismatch", "network_mismatch"},
        {"log.ip_missing", "ip_missing"},
        {"log.gid_index", "gid_index"},
        {"log.memlock", "memlock_low"},
        {"log.interface_absent", "interface_absent"},
        {"log.ecc", "ecc_uncorrected"},
        {"log.nvlink_error", "nvlink_broken"},
        {"log.open_files", "nofile_low"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct knee_fact *row = log_fact(exam, table[i][0]);
        if (row)
            knee_blame_at(exam, KNEE_ERROR, table[i][1], row->subject, NAN, "%s", row->value);
    }
}

/* ---- Ranks against each other ---- */

static void versions(struct knee_exam *exam)
{
    const struct knee_fact *row = log_fact(exam, "log.version");
    if (knee_facts_count(exam->facts, "log.version") > 1)
        knee_blame(exam, "version_mismatch", "", NAN, "NCCL %s and %s in one log", row->subject,
                   row[1].subject);
}

static void settings(struct knee_exam *exam)
{
    static const char *const own[] = {"NCCL_DEBUG_FILE",     "NCCL_HOSTID",
                                      "NCCL_TOPO_DUMP_FILE", "NCCL_COMM_ID",
                                      "NCCL_SOCKET_IFNAME",  "NCCL_IB_HCA"};
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "env.other", &row);) {
        bool differs = true;
        for (size_t k = 0; k < sizeof own / sizeof *own; k++)
            differs = differs && strcmp(own[k], row->subject) != 0;
        if (differs)
            knee_blame(exam, "env_differs", row->subject, NAN,
                       "%s is %s on one rank and %s on another", row->subject,
                       env(exam, row->subject), row->value);
    }
}

void knee_check_log(struct knee_exam *exam)
{
    settings(exam);
    if (!log_fact(exam, "log.lines"))
        return;
    networks(exam);
    channels(exam);
    devices(exam);
    fewer_devices(exam);
    interfaces(exam);
    same_address(exam);
    between_nodes(exam);
    completions(exam);
    told_outright(exam);
    versions(exam);
    consequences(exam);
}
