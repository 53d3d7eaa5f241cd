/* SPDX-License-Identifier: MIT */
/* NCCL's names and numbers of operations, algorithms, protocols and types: one table each. */
#include "live/live_agent.h"

#include <string.h>

struct name {
    const char *nccl;  /* what the profiler interface says since its second version */
    int number;        /* what the first one says; -1: it has none */
    const char *trace; /* as traces write it */
    unsigned bytes;
};

static const struct name ops[] = {
    {"Unknown", -1, "", 0},
    {"AllReduce", 4, "allreduce", 0},
    {"AllGather", 2, "_allgather_base", 0},
    {"ReduceScatter", 3, "_reduce_scatter_base", 0},
    {"Broadcast", 0, "broadcast", 0},
    {"Reduce", 1, "reduce", 0},
    {"Send", 6, "send", 0},
    {"Recv", 7, "recv", 0},
    {"SendRecv", 5, "send", 0},
    {"AlltoAll", -1, "all_to_all", 0},
    {"Gather", -1, "gather", 0},
    {"Scatter", -1, "scatter", 0},
    {"Barrier", -1, "barrier", 0},
    {"Wait", -1, "wait", 0},
};
static const struct name algos[] = {
    {"", -1, "", 0},
    {"TREE", 0, "", 0},
    {"RING", 1, "", 0},
    {"COLLNET_DIRECT", 2, "", 0},
    {"COLLNET_CHAIN", 3, "", 0},
    {"NVLS", 4, "", 0},
    {"NVLS_TREE", 5, "", 0},
    {"PAT", 6, "", 0},
};
static const struct name protos[] = {
    {"", -1, "", 0}, {"LL", 0, "", 0}, {"LL128", 1, "", 0}, {"SIMPLE", 2, "", 0}};
static const struct name types[] = {
    {"", -1, "Byte", 1},
    {"ncclInt8", 0, "Char", 1},
    {"ncclUint8", 1, "Byte", 1},
    {"ncclInt32", 2, "Int", 4},
    {"ncclUint32", 3, "UInt32", 4},
    {"ncclInt64", 4, "Long", 8},
    {"ncclUint64", 5, "UInt64", 8},
    {"ncclFloat16", 6, "Half", 2},
    {"ncclFloat32", 7, "Float", 4},
    {"ncclFloat64", 8, "Double", 8},
    {"ncclBfloat16", 9, "BFloat16", 2},
    {"ncclFloat8e4m3", 10, "Float8_e4m3fn", 1},
    {"ncclFloat8e5m2", 11, "Float8_e5m2", 1},
};

static uint8_t by_name(const struct name *rows, size_t count, const char *name)
{
    for (size_t i = 1; name && i < count; i++)
        if (strcmp(rows[i].nccl, name) == 0)
            return (uint8_t)i;
    return 0;
}

static uint8_t by_number(const struct name *rows, size_t count, unsigned number)
{
    for (size_t i = 1; i < count; i++)
        if (rows[i].number == (int)number)
            return (uint8_t)i;
    return 0;
}
#define ROWS(table) table, sizeof(table) / sizeof *(table)

uint8_t live_op_of(const char *name)
{
    return by_name(ROWS(ops), name);
}
uint8_t live_algo_of(const char *name)
{
    return by_name(ROWS(algos), name);
}
uint8_t live_proto_of(const char *name)
{
    return by_name(ROWS(protos), name);
}
uint8_t live_type_of(const char *name)
{
    return by_name(ROWS(types), name);
}
uint8_t live_op_numbered(unsigned number)
{
    return by_number(ROWS(ops), number);
}
uint8_t live_algo_numbered(unsigned number)
{
    return by_number(ROWS(algos), number);
}
uint8_t live_proto_numbered(unsigned number)
{
    return by_number(ROWS(protos), number);
}
uint8_t live_type_numbered(unsigned number)
{
    return by_number(ROWS(types), number);
}

static const struct name *row(const struct name *rows, size_t count, uint8_t at)
{
    return &rows[at < count ? at : 0];
}

const char *live_op_name(uint8_t op)
{
    return row(ROWS(ops), op)->nccl;
}
const char *live_algo_name(uint8_t algo)
{
    return row(ROWS(algos), algo)->nccl;
}
const char *live_proto_name(uint8_t proto)
{
    return row(ROWS(protos), proto)->nccl;
}
const char *live_trace_op(uint8_t op)
{
    return row(ROWS(ops), op)->trace;
}
const char *live_trace_type(uint8_t type)
{
    return row(ROWS(types), type)->trace;
}
unsigned live_type_bytes(uint8_t type)
{
    return row(ROWS(types), type)->bytes;
}

/* ncclDevKernel_AllReduce_Sum_f32_RING_LL; sends and receives share one. */
bool live_kernel_runs(const char *kernel, uint8_t op)
{
    const char *name = live_op_name(op);
    if (strcmp(name, "Send") == 0 || strcmp(name, "Recv") == 0)
        name = "SendRecv";
    return strstr(kernel, name) != NULL;
}
