/* SPDX-License-Identifier: MIT */
/*
 * NCCL's own lines (NCCL_DEBUG=INFO, subsystems INIT, NET, GRAPH, TUNING): "host:pid:tid [dev] NCCL
 * INFO ...". A table of words says what each gives away about the run.
 */
#include "read/log/log.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *word;
    unsigned seen;
} evidence[] = {
    {"GPU Direct RDMA Enabled", KNEE_SEEN_GDR},
    {"GPU Direct RDMA Disabled", KNEE_SEEN_NO_GDR},
    {"/GDRDMA", KNEE_SEEN_GDR},
    {"use ring PXN 0 GDR 0", KNEE_SEEN_NO_GDR},
    {"via NET/Socket", KNEE_SEEN_SOCKET},
    {"Using network Socket", KNEE_SEEN_SOCKET},
    {"Using network IB", KNEE_SEEN_RDMA},
    {"Using network AWS Libfabric", KNEE_SEEN_RDMA},
    {"Using network Libfabric", KNEE_SEEN_RDMA},
    {"via SHM", KNEE_SEEN_SHM},
    {"P2P is disabled", KNEE_SEEN_NO_P2P},
    {"NCCL_P2P_DISABLE set by environment to 1", KNEE_SEEN_NO_P2P},
    {"NCCL_ALGO set by environment", KNEE_SEEN_FORCED_ALGO},
    {"NCCL_PROTO set by environment", KNEE_SEEN_FORCED_ALGO},
};

/* "Channel 01/0 : 6[6] -> 14[6] [send] via NET/IB/3/GDRDMA": without the last word, data is staged
 * in host memory. */
static void see_channel(struct knee_log *log, struct knee_slice line)
{
    if (!knee_slice_has(line, "Channel") || !knee_slice_has(line, "via NET/"))
        return;
    if (!knee_slice_has(line, "via NET/Socket"))
        log->seen |= KNEE_SEEN_RDMA;
    if (!knee_slice_has(line, "GDRDMA"))
        log->seen |= KNEE_SEEN_NO_GDR;
}

/* "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB ...": how many adapters. */
static void count_adapters(struct knee_log *log, struct knee_slice line)
{
    size_t at = knee_slice_find(line, "NET/IB : Using");
    double adapters = 0;
    for (size_t i = at; i + 1 < line.length; i++)
        adapters += line.at[i] == '[' && line.at[i + 1] >= '0' && line.at[i + 1] <= '9';
    double found;
    if (knee_slice_number_after(line, "(found ", &found)) /* "(found 4 nics)": libfabric */
        adapters = found;
    if (adapters > 0 && isnan(log->adapters))
        log->adapters = adapters;
}

static void copy_word(struct knee_slice rest, char *out, size_t size)
{
    struct knee_slice word;
    knee_slice_word(&rest, &word);
    knee_slice_copy(word, out, size);
}

/* "AllReduce: 8192 Bytes -> Algo RING proto SIMPLE ..." and, before NCCL 2.24, "8192 Bytes -> Algo
 * 1 proto 2 time 86.07", whose numbers are rows of NCCL's tables. */
static void see_tuning(struct knee_log *log, struct knee_slice line)
{
    static const char *const algos[] = {
        "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
    static const char *const protos[] = {"LL", "LL128", "SIMPLE"};
    size_t at = knee_slice_find(line, " Bytes -> Algo ");
    struct knee_tuning tuning = {0};
    if (at == line.length || log->tuning_count == KNEE_TUNINGS_KEPT)
        return;
    size_t start = at;
    while (start > 0 && line.at[start - 1] >= '0' && line.at[start - 1] <= '9')
        start--;
    if (!knee_slice_number((struct knee_slice){line.at + start, at - start}, &tuning.bytes))
        return;
    copy_word(knee_slice_from(line, at + 15), tuning.algorithm, sizeof tuning.algorithm);
    size_t proto = knee_slice_find(line, " proto ");
    copy_word(knee_slice_from(line, proto + 7), tuning.protocol, sizeof tuning.protocol);
    double row;
    if (knee_slice_number(knee_slice_of(tuning.algorithm), &row) && row >= 0 && row < 7)
        knee_slice_copy(knee_slice_of(algos[(size_t)row]), tuning.algorithm,
                        sizeof tuning.algorithm);
    if (knee_slice_number(knee_slice_of(tuning.protocol), &row) && row >= 0 && row < 3)
        knee_slice_copy(knee_slice_of(protos[(size_t)row]), tuning.protocol,
                        sizeof tuning.protocol);
    for (size_t i = 0; i < log->tuning_count; i++)
        if (log->tunings[i].bytes == tuning.bytes)
            return; /* every iteration says it again */
    log->tunings[log->tuning_count++] = tuning;
}

/* Where "host:pid:tid [dev]" begins, for NCCL's words that are found `at`. */
static size_t prefix_start(struct knee_slice line, size_t at)
{
    size_t i = at;
    while (i > 0 && line.at[i - 1] == ' ')
        i--;
    if (i > 0 && line.at[i - 1] == ']') {
        while (i > 0 && line.at[i - 1] != '[')
            i--;
        i -= i > 0;
        while (i > 0 && line.at[i - 1] == ' ')
            i--;
    }
    while (i > 0 && line.at[i - 1] != ' ')
        i--;
    return i;
}

struct knee_slice knee_log_before_nccl(struct knee_slice line, size_t at)
{
    struct knee_slice before = {line.at, prefix_start(line, at)};
    before = knee_slice_trim(before);
    /* A launcher's "[0]" may stick to the last number: "-1[0]". */
    if (before.length > 0 && before.at[before.length - 1] == ']') {
        size_t i = before.length;
        while (i > 0 && before.at[i - 1] != '[')
            i--;
        before.length = i > 0 ? i - 1 : before.length;
    }
    return knee_slice_trim(before);
}

static void see_host(struct knee_log_reader *r, struct knee_slice line, size_t at)
{
    size_t start = prefix_start(line, at);
    struct knee_slice prefix = {line.at + start, at - start}, host;
    if (knee_slice_has(prefix, ":") && knee_slice_until(&prefix, ':', &host) && host.length > 0)
        knee_run_host(&r->run.nccl_hosts, r->run.nccl_host, host);
}

void knee_nccl_debug_line(struct knee_log_reader *r, struct knee_slice line, size_t at)
{
    struct knee_log *log = &r->log;
    double value;
    log->seen |= KNEE_SEEN_NCCL;
    see_host(r, line, at);
    for (size_t i = 0; i < sizeof evidence / sizeof *evidence; i++)
        if (knee_slice_has(line, evidence[i].word))
            log->seen |= evidence[i].seen;
    see_channel(log, line);
    count_adapters(log, line);
    see_tuning(log, line);
    if (knee_slice_number_after(line, "nranks ", &value) ||
        knee_slice_number_after(line, "nRanks ", &value))
        r->run.ranks_said = value;
    if (knee_slice_number_after(line, "nNodes ", &value))
        r->run.nodes_said = value;
    size_t version = knee_slice_find(line, "NCCL version ");
    if (version < line.length && !log->library[0])
        knee_slice_copy(knee_slice_from(line, version), log->library, sizeof log->library);
}
