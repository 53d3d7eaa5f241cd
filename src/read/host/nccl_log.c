/* SPDX-License-Identifier: MIT */
/*
 * NCCL's and RCCL's lines (NCCL_DEBUG=INFO or WARN), alone or inside a training log: which network,
 * which devices, what the channels go over, which settings; and a table of words that stand for
 * trouble. What a word means is the rules' business. Lines are matched by what NCCL's sources
 * print, in their old and new forms, not by files and line numbers.
 */
#include "read/host/host_read.h"

#include "base/format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX  64
#define SETTINGS_MAX 256 /* different variables; NCCL has as many */

/* Where a row looks: in every line, in NCCL's lines, in its warnings. */
enum where { ANY, NCCL, WARN };

static const struct {
    const char *key;
    enum where where;
    const char *word, *and, *not_this; /* all of the first two, none of the last */
} words[] = {
    /* ---- Shared memory, limits, processes ---- */
    {"log.shm_full", ANY, "No space left on device", "/dev/shm", NULL},
    {"log.shm_full", WARN, "No space left on device", "", NULL},
    {"log.shm_full", WARN, "Error while creating shared memory segment", "", NULL},
    {"log.shm_full", ANY, "out of shared memory", "", "cuda"},
    {"log.hosts_confused", WARN, "/dev/shm/nccl-", "No such file or directory", NULL},
    {"log.open_files", NCCL, "Too many open files", "", NULL},
    {"log.threads", WARN, "pthread_create", "Resource temporarily unavailable", NULL},
    {"log.rank_count", WARN, "mismatch in rank count", "", NULL},
    {"log.rank_count", WARN, "has already checked in", "", NULL},
    {"log.stranger", WARN, "socketFinalizeAccept", "wrong ", NULL},
    {"log.stranger", WARN, "socketFinalizeConnect", "wrong ", NULL},
    {"log.graph_file", WARN, "XML Import Channel", "not found", NULL},

    /* ---- The network's devices ---- */
    {"log.libibverbs_missing", NCCL, "Failed to open libibverbs.so", "", NULL},
    {"log.ib_no_device", NCCL, "No device found", "NET/IB", NULL},
    {"log.device_unusable", NCCL, "Unable to open device", "NET/IB", NULL},
    {"log.port_flap", NCCL, "async event", "port error", NULL},
    {"log.port_flap", NCCL, "async event", "link down", NULL},
    {"log.port_flap", NCCL, "async event", "port active", NULL},
    {"log.port_flap", WARN, "async fatal event", "", NULL},
    {"log.gid_changed", NCCL, "async event", "GID table change", NULL},
    {"log.ip_missing", WARN, "ibv_modify_qp", "Network is unreachable", NULL},
    {"log.ip_missing", WARN, "ibv_modify_qp", "No route to host", NULL},
    {"log.gid_index", WARN, "ibv_modify_qp", "Invalid argument", NULL},
    {"log.gid_index", WARN, "ibv_modify_qp", "No such device", NULL},
    {"log.gid_index", WARN, "ibv_modify_qp", "local GID fe80", NULL},
    {"log.gid_index", WARN, "ibv_modify_qp", "No data available", NULL},
    {"log.gid_index", WARN, "ibv_create_ah", "failed", NULL},
    {"log.gid_index", WARN, "ibv_query_gid", "failed", NULL},
    {"log.gid_index", WARN, "RoceGetVersionNum", "failed", NULL},
    {"log.cross_nic", WARN, "ibv_modify_qp", "timed out", "local GID fe80"},
    {"log.memlock", WARN, "ibv_reg_mr", "Cannot allocate memory", NULL},
    {"log.memlock", WARN, "Unable to register memory", "Cannot allocate memory", NULL},
    {"log.memlock", WARN, "ibv_create_", "Cannot allocate memory", NULL},
    {"log.memlock", WARN, "ibv_create_", "Unknown error -12", NULL}, /* ENOMEM of some drivers */
    {"log.memlock", WARN, "ibv_reg_mr", "Unknown error -12", NULL},
    /* Before 2.9 NCCL did not print the reason; its manual names the limit. */
    {"log.memlock", WARN, "Call to ibv_create_", "failed", "failed with"},
    {"log.memlock", WARN, "Call to ibv_reg_mr", "failed", "failed with"},
    {"log.registration", WARN, "ibv_reg_", "failed with", "Cannot allocate memory"},
    {"log.registration", WARN, "Unable to register memory", "", "Cannot allocate memory"},
    {"log.gdr_distance", NCCL, "GPU Direct RDMA Disabled for GPU", "distance", NULL},
    {"log.gdr_off", NCCL, "GPU Direct RDMA Disabled for HCA", "NET/IB", NULL},
    {"log.gdr_enabled", NCCL, "GPU Direct RDMA Enabled for GPU", "", NULL},
    {"log.gdr_unsupported", NCCL, "disabling GDR", "", NULL},
    {"log.gdr_unsupported", NCCL, "NET/OFI", "GDR support not found", NULL},

    /* ---- libfabric ---- */
    {"log.efa_absent", NCCL, "NET/OFI Selected Provider is", "", " efa"},
    {"log.efa_absent", NCCL, "NET/OFI Selected provider is", "", " efa"},
    {"log.efa_absent", NCCL, "NET/OFI No eligible providers", "", NULL},
    {"log.efa_absent", NCCL, "NET/OFI", "initialization failed", NULL},
    {"log.efa_absent", ANY, "fi_getinfo", "provider efa output empty list", NULL},
    {"log.ofi_failed", WARN, "NET/OFI", "ailed", "initialization failed"},
    {"log.ofi_failed", WARN, "NET/OFI", "Couldn't", NULL},
    {"log.ofi_failed", WARN, "NET/OFI", "completed with error", NULL},
    {"log.ofi_failed", NCCL, "EFA provider requires at least libfabric", "", NULL},
    {"log.efa_fork", ANY, "EFA provider is operating in a condition", "", NULL},

    /* ---- Plugins ---- */
    {"log.plugin_absent", NCCL, "NET/Plugin", "o plugin found", NULL},
    {"log.plugin_absent", NCCL, "NET/Plugin", "Could not find: libnccl-net.so", NULL},
    {"log.plugin_too_old", NCCL, "ncclNetPlugin symbol (>=", "not supported", "CollNet"},
    {"log.net_not_found", NCCL, "network", "not found", "Plugin"},
    {"log.net_not_found", WARN, "Failed to initialize any NET plugin", "", NULL},

    /* ---- CUDA's and HIP's own words, behind "Cuda failure 2 '...'" ---- */
    {"log.nvls_fabric", WARN, "nvls.cc", "uda failure", "'initialization error'"},
    {"log.nvls_fabric", WARN, "nvls.cc", "CUDA error", NULL},
    {"log.nvls_fabric", ANY, "Failed to bind NVLink SHARP", "", NULL},
    {"log.nvls_fabric", ANY, "configuration error in the Fabric Manager", "", NULL},
    {"log.nvls_fabric", ANY, "system not yet initialized", "", NULL},
    {"log.gpu_memory", ANY, " failure", "'out of memory'", NULL},
    {"log.invalid_device", ANY, " failure", "'invalid device ordinal'", NULL},
    {"log.version_too_old", ANY, "no kernel image is available", "", NULL},
    {"log.version_too_old", ANY, "device kernel image is invalid", "", NULL},
    {"log.version_too_old", ANY, " failure", "'named symbol not found'", NULL},
    {"log.version_too_old", ANY, " failure", "'invalid device function'", NULL},
    {"log.version_too_old", NCCL, "ncclMaxSharedMem", "exceeds", NULL},
    {"log.driver_too_old", ANY, "CUDA driver version is insufficient", "", NULL},
    {"log.driver_too_old", ANY, "is not supported in the installed CUDA driver", "", NULL},
    {"log.driver_too_old", ANY, "PTX was compiled with an unsupported toolchain", "", NULL},
    {"log.driver_too_old", ANY, "forward compatibility was attempted", "", NULL},
    {"log.driver_too_old", ANY, "unsupported display driver / cuda driver", "", NULL},
    {"log.driver_too_old", NCCL, "some PFN functions not found", "", NULL},
    {"log.p2p_unsupported", ANY, "P2P is disabled between connected GPUs", "", NULL},
    {"log.p2p_unsupported", NCCL, "Could not enable P2P between dev", "", NULL},
    {"log.p2p_unsupported", ANY, "peer access is not supported between", "", NULL},
    {"log.nvlink_broken", ANY, "P2P is disabled between NVLINK connected GPUs", "", NULL},
    {"log.nvlink_broken", WARN, "Failed to find reverse path", "nlinks", NULL},
    {"log.nvlink_error", ANY, "uncorrectable NVLink error", "", NULL},
    {"log.cumem_refused", ANY, " failure", "'OS call failed", NULL},
    {"log.gpu_unavailable", ANY, "busy or unavailable", "CUDA", NULL},
    {"log.gpu_unavailable", ANY, "no CUDA-capable device is detected", "", NULL},
    {"log.ecc", ANY, "uncorrectable ECC error", "", NULL},
    {"log.app_fault", ANY, "an illegal memory access was encountered", "", NULL},
    {"log.app_fault", ANY, "device-side assert triggered", "", NULL},
    {"log.app_fault", ANY, " failure", "'unspecified launch failure'", NULL},
    {"log.libcuda", NCCL, "Failed to find CUDA library", "", NULL},
    {"log.duplicate_gpu", ANY, "Duplicate GPU detected", "", NULL},

    /* ---- Ranks that do not agree ---- */
    {"log.env_mismatch", ANY, "collective mismatch error", "", NULL},
    {"log.env_mismatch", WARN, "Mismatched collective", "", NULL},
    {"log.env_mismatch", WARN, "essage truncated", "", NULL},
    {"log.version_mismatch", ANY, "ismatched NCCL version", "", NULL},
    {"log.version_mismatch", WARN, "NCCL version", "mismatch", NULL},
    {"log.network_mismatch", WARN, "network", "mismatch", "version"},

    /* ---- Sockets ---- */
    {"log.interface_absent", ANY, "no socket interface found", "", NULL},
    {"log.interface_absent", WARN, "o usable listening interface found", "", NULL},
    {"log.interface_absent", ANY, "connecting to address", "neither AF_INET", NULL},
    {"log.interface_absent", WARN, "ocket creation failed", "Address family not supported", NULL},
    {"log.peer_unreachable", WARN, "onnect", "Connection timed out", "ibv_"},
    {"log.peer_unreachable", WARN, "onnect", "Connection refused", "ibv_"},
    {"log.peer_unreachable", WARN, "onnect", "Network is unreachable", "ibv_"},
    {"log.peer_unreachable", WARN, "onnect", "No route to host", "ibv_"},
    {"log.peer_unreachable", WARN, "onnect", "Software caused connection abort", "ibv_"},
    {"log.peer_unreachable", WARN, "onnect", "Cannot assign requested address", "ibv_"},
    {"log.peer_unreachable", WARN, "in the same subnet as remote address", "", NULL},
    {"log.peer_unreachable", WARN, "exceeded retries", "", NULL},
    {"log.peer_unreachable", ANY, "client socket has timed out", "", NULL},
    {"log.peer_retried", NCCL, "Call to connect returned", "retrying", NULL},
    {"log.peer_retried", NCCL, "etrying", "onnect", NULL},
    {"log.peer_died", WARN, "Connection closed by remote peer", "", NULL},
    {"log.peer_died", WARN, "Connection reset by peer", "", NULL},
    {"log.peer_died", WARN, "Broken pipe", "", NULL},
    {"log.peer_died", ANY, "ncclRemoteError", "", NULL},

    /* ---- The host ---- */
    {"log.sysfs_topology", WARN, "Could not find real path of /sys/", "", "/sys/class/net"},
    {"log.topology_poor", NCCL, "Could not find a path for pattern", "", NULL},
    {"log.topology_broken", WARN, "Could not find NET with id", "", NULL},
    {"log.topo_file", WARN, "Attribute ", " not found", NULL},
    {"log.topo_file", WARN, "Could not open XML topology file", "", NULL},
    {"log.topo_file", WARN, "XML Parse", "", NULL},
    {"log.no_algorithm", WARN, "no algorithm/protocol available", "", NULL},
    {"log.no_algorithm", WARN, "Invalid value for NCCL_ALGO", "", NULL},
    {"log.kernel_flags", NCCL, "from kernel command line", "Missing", NULL},
    {"log.hsa_variable", NCCL, "HSA_", "from environment", NULL},
    {"log.complete", NCCL, "Init COMPLETE", "", NULL},
    {"log.mnnvl", NCCL, "MNNVL 1 cliqueId", "", NULL},
    {"log.timeout", ANY, "Watchdog caught collective operation timeout", "", NULL},
};

struct nccl_log {
    struct knee_facts *facts;
    char host[64];
    size_t lines, devices;
    struct {
        char name[40], layer[8];
        double index;
        bool used;
    } device[DEVICES_MAX];
    double gdr, plain, socket, shm, p2p; /* channels by what they go over */
    double ranks, nodes, local_ranks;
    bool omni_path;
    size_t setting[SETTINGS_MAX], settings; /* rows of the facts */
    bool last_error;                        /* the line before announced NCCL's last warning */
};

/* The number behind the last colon of a word, which is cut off. */
static bool cut_number(struct knee_slice *word)
{
    size_t at = word->length;
    double number;
    while (at > 0 && word->at[at - 1] != ':')
        at--;
    if (at < 2 || !knee_slice_number(knee_slice_from(*word, at), &number))
        return false;
    word->length = at - 1;
    return true;
}

/* "host:pid:tid [dev] NCCL INFO": the host; "" when the line has none. Launchers put more in front:
 * "[1,0]<stdout>:host:pid:tid", "[trainer3]:host:pid:tid". */
static void find_host(struct knee_slice line, size_t at, char *out, size_t size)
{
    struct knee_slice before = {line.at, at}, word, best = {line.at, 0};
    while (knee_slice_word(&before, &word)) {
        bool thread = cut_number(&word), process = thread && cut_number(&word);
        if (!process)
            continue;
        size_t start = word.length;
        while (start > 0 && word.at[start - 1] != ':')
            start--;
        best = knee_slice_from(word, start);
    }
    knee_slice_copy(best, out, size);
}

/* "NCCL_IB_DISABLE set by environment to 1." and "NCCL_IB_HCA set to mlx5_0,mlx5_1". */
static void setting(struct nccl_log *log, struct knee_slice line)
{
    static const char *const forms[] = {" set by environment to ", " set by env to ", " set to "};
    for (size_t i = 0; i < 3; i++) {
        size_t at = knee_slice_find(line, forms[i]), start = at;
        while (start > 0 && at < line.length && line.at[start - 1] != ' ')
            start--;
        struct knee_slice name = {line.at + start, at - start};
        if (at == line.length ||
            !(knee_slice_starts(name, "NCCL_") || knee_slice_starts(name, "RCCL_")))
            continue;
        struct knee_slice value = knee_slice_trim(knee_slice_from(line, at + strlen(forms[i])));
        if (value.length > 0 && value.at[value.length - 1] == '.')
            value.length--;
        char text[64], seen[1024];
        knee_slice_copy(name, text, sizeof text);
        knee_slice_copy(value, seen, sizeof seen);
        for (size_t k = 0; k < log->settings; k++) {
            const struct knee_fact *known = &log->facts->rows[log->setting[k]];
            if (strcmp(known->subject, text) != 0)
                continue;
            if (strcmp(known->value, seen) != 0 && i == 0)
                knee_fact_put(log->facts, text, "env.other", value);
            return;
        }
        size_t before = log->facts->count;
        if (log->settings == SETTINGS_MAX) {
            log->facts->dropped++;
            return;
        }
        knee_fact_put(log->facts, text, "env", value);
        if (log->facts->count > before)
            log->setting[log->settings++] = before;
        knee_fact_put(log->facts, text, "env.from", knee_slice_of("the log"));
        return;
    }
}

/* Variables that are known already, from a file beside the log. */
static void known_settings(struct nccl_log *log)
{
    for (size_t i = 0; i < log->facts->count && log->settings < SETTINGS_MAX; i++)
        if (strcmp(log->facts->rows[i].key, "env") == 0)
            log->setting[log->settings++] = i;
}

/* "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>" */
static void devices(struct nccl_log *log, struct knee_slice line)
{
    struct knee_slice rest = knee_slice_from(line, knee_slice_find(line, "Using [") + 6), word;
    double count = 0;
    while (knee_slice_word(&rest, &word) && log->devices < DEVICES_MAX &&
           !knee_slice_is(word, "OOB")) {
        size_t bracket = word.length, slash = knee_slice_find(word, "/");
        double index = NAN;
        while (bracket > 0 && word.at[bracket - 1] != ']')
            bracket--;
        knee_slice_number_after(word, "[", &index);
        struct knee_slice name = {word.at + bracket, slash > bracket ? slash - bracket : 0};
        if (slash == word.length || name.length == 0)
            continue;
        count++;
        struct knee_slice layer = knee_slice_from(word, slash + 1);
        layer.length = knee_slice_find(layer, "/");
        char text[40];
        knee_slice_copy(name, text, sizeof text);
        size_t known = 0;
        while (known < log->devices && strcmp(log->device[known].name, text) != 0)
            known++;
        if (known < log->devices)
            continue;
        memcpy(log->device[log->devices].name, text, sizeof text);
        knee_slice_copy(layer, log->device[log->devices].layer, 8);
        log->device[log->devices].index = index;
        log->omni_path =
            log->omni_path || knee_slice_starts(name, "hfi1") || knee_slice_starts(name, "opa");
        log->devices++;
    }
    if (log->host[0] && count > 0)
        knee_fact_number(log->facts, log->host, "log.device_count", count);
}

/* "Channel 01/0 : 0[0] -> 5[1] [send] via NET/IBext/1(1)/GDRDMA" */
static void channel(struct nccl_log *log, struct knee_slice line)
{
    size_t at = knee_slice_find(line, "NET/");
    bool arrow = knee_slice_has(line, "-> NET/") || knee_slice_has(line, "via ");
    if (!arrow)
        return;
    if (knee_slice_has(line, "via SHM") || knee_slice_has(line, "via direct shared memory"))
        log->shm++;
    else if (knee_slice_has(line, "via P2P") || knee_slice_has(line, "via NVL"))
        log->p2p++;
    if (at == line.length)
        return;
    if (knee_slice_has(line, "NET/Socket"))
        log->socket++;
    else
        *(knee_slice_has(line, "GDRDMA") ? &log->gdr : &log->plain) += 1;
    struct knee_slice rest = knee_slice_from(line, at + 4), piece;
    double index;
    knee_slice_until(&rest, '/', &piece);
    piece = (struct knee_slice){rest.at, 0};
    while (piece.length < rest.length && rest.at[piece.length] >= '0' &&
           rest.at[piece.length] <= '9')
        piece.length++;
    if (!knee_slice_number(piece, &index))
        return;
    for (size_t i = 0; i < log->devices; i++)
        log->device[i].used = log->device[i].used || log->device[i].index == index;
}

/* "eth0:10.0.0.1<0>", with [0] before it when there are several. */
static void interfaces(struct nccl_log *log, struct knee_slice rest, const char *key)
{
    struct knee_slice word;
    while (knee_slice_word(&rest, &word)) {
        size_t bracket = knee_slice_find(word, "]"), angle = knee_slice_find(word, "<");
        if (bracket < word.length) {
            word = knee_slice_from(word, bracket + 1);
            angle = knee_slice_find(word, "<");
        }
        size_t colon = knee_slice_find(word, ":");
        if (colon == word.length || colon == 0 || angle == word.length || angle < colon)
            continue;
        char name[48];
        knee_slice_copy((struct knee_slice){word.at, colon}, name, sizeof name);
        struct knee_slice address = {word.at + colon + 1, angle - colon - 1};
        if (log->host[0] && strcmp(key, "log.bootstrap") == 0)
            knee_fact_put(log->facts, log->host, "log.address", address);
        knee_fact_count(log->facts, name, key,
                        (struct knee_slice){word.at + colon + 1, angle - colon - 1});
    }
}

static const struct {
    const char *word, *key;
} addresses[] = {
    {"Bootstrap : Using ", "log.bootstrap"},  {"Bootstrap: Using ", "log.bootstrap"},
    {"NET/Socket : Using ", "log.socket"},    {"NET/Socket: Using ", "log.socket"},
    {"NET : Using interface ", "log.socket"},
};

/* Completion errors carry a status of the verbs: 12 is "retry exceeded", 13 "receiver not ready".
 */
static void completion(struct nccl_log *log, struct knee_slice line)
{
    static const char *const before[] = {"with error ", "status=", "status "};
    double status = NAN;
    char key[40];
    for (size_t i = 0; i < 3 && isnan(status); i++)
        knee_slice_number_after(line, before[i], &status);
    if (isnan(status)) { /* since 2.28: "status=IBV_WC_RETRY_EXC_ERR(12)" */
        struct knee_slice named = knee_slice_from(line, knee_slice_find(line, "status="));
        knee_slice_number_after(named, "(", &status);
    }
    if (isnan(status))
        return;
    /* Before it named the peer (2.12), NCCL took row 0 of the GID table unless told otherwise. */
    if (status == 12 && !knee_slice_has(line, "from peer"))
        knee_fact_count(log->facts, log->host, "log.completion_old", line);
    knee_format(key, sizeof key, "log.completion.%.0f", status);
    knee_fact_count(log->facts, log->host, key, line);
}

/* healthMask: fields of two bits; 2 is "no fault", 0 "not supported", 1 a fault. */
static void health(struct nccl_log *log, struct knee_slice line)
{
    char digits[20];
    struct knee_slice rest = knee_slice_from(line, knee_slice_find(line, "healthMask ") + 11), word;
    if (!knee_slice_word(&rest, &word))
        return;
    knee_slice_copy(word, digits, sizeof digits);
    for (unsigned long long mask = strtoull(digits, NULL, 0); mask; mask >>= 2)
        if ((mask & 3) == 1) {
            knee_fact_count(log->facts, log->host, "log.nvls_fabric", line);
            return;
        }
}

static void sizes(struct nccl_log *log, struct knee_slice line)
{
    double number;
    if (knee_slice_number_after(line, "nranks ", &number) ||
        knee_slice_number_after(line, "nRanks ", &number))
        log->ranks = fmax(log->ranks, number);
    if (knee_slice_number_after(line, "nNodes ", &number))
        log->nodes = fmax(log->nodes, number);
    if (knee_slice_number_after(line, "localRanks ", &number))
        log->local_ranks = fmax(log->local_ranks, number);
}

/* "NCCL version 2.28.9+cuda13.0", "RCCL version : 2.21.5-main:a29a210+" */
static void version(struct nccl_log *log, struct knee_slice line)
{
    size_t at = knee_slice_find(line, "CCL version ");
    struct knee_slice rest = knee_slice_from(line, at + 12), word;
    char text[24];
    bool any = at < line.length && knee_slice_word(&rest, &word);
    if (any && knee_slice_is(word, ":"))
        any = knee_slice_word(&rest, &word);
    if (!any || word.at[0] < '1' || word.at[0] > '9')
        return;
    word.length = knee_slice_find(word, "-");
    word.length = knee_slice_find(word, "+");
    while (word.length > 0 && (word.at[word.length - 1] < '0' || word.at[word.length - 1] > '9'))
        word.length--;
    knee_slice_copy(word, text, sizeof text);
    knee_fact_count(log->facts, text, "log.version", line);
    log->lines++;
}

static void network(struct nccl_log *log, struct knee_slice line)
{
    size_t at = knee_slice_find(line, "Using network ");
    size_t skip = 14;
    if (at == line.length) {
        at = knee_slice_find(line, "Using internal Network ");
        skip = 23;
    }
    if (at < line.length) {
        char key[64] = "log.network.";
        knee_slice_copy(knee_slice_trim(knee_slice_from(line, at + skip)), key + 12,
                        sizeof key - 12);
        knee_fact_count(log->facts, log->host, key, line);
    }
}

static void nccl_line(struct nccl_log *log, struct knee_slice line)
{
    log->lines++;
    setting(log, line);
    network(log, line);
    sizes(log, line);
    if (knee_slice_has(line, "NET/IB") && knee_slice_has(line, "Using ["))
        devices(log, line);
    if (knee_slice_has(line, "Channel ") || knee_slice_has(line, "Ring "))
        channel(log, line);
    if (knee_slice_has(line, "Got completion"))
        completion(log, line);
    if (knee_slice_has(line, "healthMask "))
        health(log, line);
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        size_t at = knee_slice_find(line, addresses[i].word);
        if (at < line.length)
            interfaces(log, knee_slice_from(line, at + strlen(addresses[i].word)),
                       addresses[i].key);
    }
}

/* An empty word stands everywhere. */
static bool has(struct knee_slice line, const char *word)
{
    return !word[0] || knee_slice_has(line, word);
}

static bool trouble(struct nccl_log *log, struct knee_slice line, enum where where)
{
    bool any = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].where <= where && has(line, words[i].word) && has(line, words[i].and) &&
            !(words[i].not_this && knee_slice_has(line, words[i].not_this))) {
            knee_fact_count(log->facts, log->host, words[i].key, line);
            any = true;
        }
    return any;
}

/* Where the level of a line stands; its length: it is none of NCCL's. Up to 2.3 the word NCCL was
 * not there, only "host:pid:tid [0] INFO". */
static size_t level_at(struct knee_slice line, bool *warns)
{
    static const char *const levels[] = {"NCCL INFO", "NCCL WARN", "NCCL TRACE", " INFO ",
                                         " WARN "};
    char host[64];
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        size_t at = knee_slice_find(line, levels[i]);
        if (at == line.length)
            continue;
        *warns = i == 1 || i == 4;
        find_host(line, at, host, sizeof host);
        if (i < 3 || host[0])
            return at;
    }
    return line.length;
}

/* PyTorch prints NCCL's last warning behind "Last error:", on the same line or on the next one. */
static bool last_error(struct nccl_log *log, struct knee_slice line)
{
    size_t at = knee_slice_find(line, "Last error:");
    bool was = log->last_error;
    log->last_error = at < line.length;
    if (!log->last_error)
        return was;
    return knee_slice_trim(knee_slice_from(line, at + strlen("Last error:"))).length > 0;
}

static void take_line(struct nccl_log *log, struct knee_slice line)
{
    bool is_warning = false;
    size_t at = level_at(line, &is_warning);
    version(log, line);
    if (at < line.length) {
        find_host(line, at, log->host, sizeof log->host);
        if (log->host[0])
            knee_fact_count(log->facts, log->host, "log.host", knee_slice_of("seen"));
        nccl_line(log, line);
    } else if (knee_slice_starts(line, "Channel ")) {
        channel(log, line);
    }
    is_warning = last_error(log, line) || is_warning;
    if (!is_warning && knee_slice_has(line, " via "))
        return; /* most lines of a log are channels, and those never tell of trouble */
    if (trouble(log, line, is_warning ? WARN : at == line.length ? ANY : NCCL))
        log->lines++;
    else if (is_warning && !knee_slice_has(line, "Got completion")) {
        log->lines += at == line.length; /* PyTorch's line is NCCL's too */
        knee_fact_count(log->facts, log->host,
                        knee_slice_has(line, "uda failure") || knee_slice_has(line, "HIP failure")
                            ? "log.cuda_failure"
                            : "log.other_warning",
                        line);
    }
}

static void tell(const struct nccl_log *log)
{
    const struct {
        const char *key;
        double value;
    } counts[] = {{"log.via.gdr", log->gdr},       {"log.via.plain", log->plain},
                  {"log.via.socket", log->socket}, {"log.via.shm", log->shm},
                  {"log.via.p2p", log->p2p},       {"log.ranks", log->ranks},
                  {"log.nodes", log->nodes},       {"log.local_ranks", log->local_ranks}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].value > 0)
            knee_fact_number(log->facts, "", counts[i].key, counts[i].value);
    for (size_t i = 0; i < log->devices; i++) {
        knee_fact_put(log->facts, log->device[i].name, "log.device",
                      knee_slice_of(log->device[i].layer));
        if (log->device[i].used)
            knee_fact_put(log->facts, log->device[i].name, "log.device_used", knee_slice_of("yes"));
    }
    if (log->omni_path)
        knee_fact_put(log->facts, "", "log.omni_path", knee_slice_of("yes"));
    knee_fact_number(log->facts, "", "log.lines", (double)log->lines);
}

/* Words that only NCCL's lines and errors have: without one of them it is some other text. */
static const char *const signs[] = {
    "NCCL INFO",    "NCCL WARN",        "NCCL version",    "NCCL error",
    "NCCL failure", "ProcessGroupNCCL", "ncclSystemError", "ncclInternalError",
    "ncclInvalid",  "ncclUnhandled",    "ncclRemoteError", "P2P is disabled between",
    "NCCL_"};

/* "host:12:34 [0] include/socket.h:344 WARN ..." of releases up to 2.3. */
static bool is_old_line(struct knee_slice line)
{
    bool warns;
    return knee_slice_has(line, " [") && level_at(line, &warns) < line.length;
}

bool knee_read_nccl_log(struct knee_facts *facts, struct knee_slice text)
{
    struct nccl_log log = {.facts = facts};
    struct knee_slice line;
    bool likely = false;
    for (size_t i = 0; !likely && i < sizeof signs / sizeof *signs; i++)
        likely = knee_slice_has(text, signs[i]);
    for (struct knee_slice rest = text; !likely && knee_slice_line(&rest, &line);)
        likely = is_old_line(line);
    if (!likely)
        return false;
    known_settings(&log);
    while (knee_slice_line(&text, &line))
        take_line(&log, line);
    if (log.lines > 0)
        tell(&log);
    return log.lines > 0;
}
