/* SPDX-License-Identifier: MIT */
/* Collectives by name, in the spellings of NCCL, nccl-tests, MPI and OSU; and bus bandwidth. */
#include "knee_collective.h"

#include <string.h>

/* What nccl-tests multiplies algorithm bandwidth with to get bus bandwidth. */
enum bus { BUS_ONE, BUS_ALL_BUT_ONE, BUS_TWICE }; /* 1, (n-1)/n, 2(n-1)/n */

static const struct {
    const char *name;
    enum bus bus;
} ops[KNEE_OPS] = {
    [KNEE_OP_UNKNOWN] = {"unknown", BUS_ONE},
    [KNEE_OP_BARRIER] = {"barrier", BUS_ONE},
    [KNEE_OP_ALL_REDUCE] = {"all_reduce", BUS_TWICE},
    [KNEE_OP_ALL_GATHER] = {"all_gather", BUS_ALL_BUT_ONE},
    [KNEE_OP_REDUCE_SCATTER] = {"reduce_scatter", BUS_ALL_BUT_ONE},
    [KNEE_OP_ALL_TO_ALL] = {"all_to_all", BUS_ALL_BUT_ONE},
    [KNEE_OP_ALL_TO_ALLV] = {"all_to_allv", BUS_ALL_BUT_ONE},
    [KNEE_OP_BROADCAST] = {"broadcast", BUS_ONE},
    [KNEE_OP_REDUCE] = {"reduce", BUS_ONE},
    [KNEE_OP_GATHER] = {"gather", BUS_ALL_BUT_ONE},
    [KNEE_OP_SCATTER] = {"scatter", BUS_ALL_BUT_ONE},
    [KNEE_OP_SEND_RECV] = {"send_recv", BUS_ONE},
};

const char *knee_op_name(enum knee_op op)
{
    return op < KNEE_OPS ? ops[op].name : "?";
}

static size_t op_count(void)
{
    return KNEE_OPS - KNEE_OP_ALL_REDUCE;
}

static const char *op_name(size_t row)
{
    return row < op_count() ? ops[KNEE_OP_ALL_REDUCE + row].name : NULL;
}

const struct knee_choices knee_op_names = {"collective", op_count, op_name};

double knee_op_bus_factor(enum knee_op op, double ranks)
{
    switch (ops[op].bus) {
    case BUS_ONE: return 1;
    case BUS_ALL_BUT_ONE: return (ranks - 1) / ranks;
    case BUS_TWICE: return 2 * (ranks - 1) / ranks;
    }
    return 1;
}

/* Lower-case letters only: nccl, osu and mpi before it, perf, mpi and test after it, are dropped.
 */
static const struct {
    const char *letters;
    enum knee_op op;
} spellings[] = {
    {"allreduce", KNEE_OP_ALL_REDUCE},
    {"allgather", KNEE_OP_ALL_GATHER},
    {"reducescatter", KNEE_OP_REDUCE_SCATTER},
    {"alltoall", KNEE_OP_ALL_TO_ALL},
    {"alltoallv", KNEE_OP_ALL_TO_ALLV},
    {"broadcast", KNEE_OP_BROADCAST},
    {"bcast", KNEE_OP_BROADCAST},
    {"reduce", KNEE_OP_REDUCE},
    {"gather", KNEE_OP_GATHER},
    {"scatter", KNEE_OP_SCATTER},
    {"sendrecv", KNEE_OP_SEND_RECV},
    {"latency", KNEE_OP_SEND_RECV}, /* osu_latency */
    {"pingpong", KNEE_OP_SEND_RECV},
};

static size_t keep_letters(const char *word, size_t length, char *out, size_t size)
{
    size_t kept = 0;
    for (size_t i = 0; i < length; i++) {
        char c = word[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (c < 'a' || c > 'z')
            continue;
        if (kept + 1 >= size)
            return 0;
        out[kept++] = c;
    }
    out[kept] = '\0';
    return kept;
}

enum knee_op knee_op_of(const char *word, size_t length)
{
    static const char *const before[] = {"nccl", "rccl", "osu", "mpi"};
    static const char *const after[] = {"mpi", "perf", "test", "base", "i"};
    char letters[40], *start = letters;
    size_t left = keep_letters(word, length, letters, sizeof letters);
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        size_t n = strlen(before[i]);
        if (left > n && memcmp(start, before[i], n) == 0)
            start += n, left -= n;
    }
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
        size_t n = strlen(after[i]);
        if (left > n && memcmp(start + left - n, after[i], n) == 0)
            start[left -= n] = '\0';
    }
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        if (strcmp(start, spellings[i].letters) == 0)
            return spellings[i].op;
    return KNEE_OP_UNKNOWN;
}
