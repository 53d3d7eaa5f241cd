/* SPDX-License-Identifier: MIT */
/* Collectives by name, in the spellings of NCCL, nccl-tests, PyTorch, XLA, MPI and OSU; and bus
 * bandwidth. */
#include "collective/collective_op.h"

#include "base/fold.h"

#include <stdbool.h>
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

const struct knee_choices knee_op_names = {
    .what = "collective", .count = op_count, .name = op_name};

double knee_op_bus_factor(enum knee_op op, double ranks)
{
    switch (ops[op].bus) {
    case BUS_ONE: return 1;
    case BUS_ALL_BUT_ONE: return (ranks - 1) / ranks;
    case BUS_TWICE: return 2 * (ranks - 1) / ranks;
    }
    return 1;
}

/* ---- Names: one table for logs, traces, files and flags ---- */

/* In small letters, nothing else; what another begins with or holds comes after it. */
static const struct spelling {
    const char *letters;
    size_t length;
    enum knee_op op;
    bool alone; /* counts only if no other name matches: osu_latency */
} spellings[] = {
#define SPELT(letters, op)                                                                         \
    {                                                                                              \
        letters, sizeof letters - 1, op, false                                                     \
    }
    SPELT("allreduce", KNEE_OP_ALL_REDUCE),
    SPELT("reducescatter", KNEE_OP_REDUCE_SCATTER),
    SPELT("allgather", KNEE_OP_ALL_GATHER),
    SPELT("alltoallv", KNEE_OP_ALL_TO_ALLV),
    SPELT("alltoall", KNEE_OP_ALL_TO_ALL),
    SPELT("broadcast", KNEE_OP_BROADCAST),
    SPELT("bcast", KNEE_OP_BROADCAST),
    SPELT("sendrecv", KNEE_OP_SEND_RECV),
    SPELT("reduce", KNEE_OP_REDUCE),
    SPELT("gather", KNEE_OP_GATHER),
    SPELT("scatter", KNEE_OP_SCATTER),
    SPELT("barrier", KNEE_OP_BARRIER),
    SPELT("send", KNEE_OP_SEND_RECV),
    SPELT("recv", KNEE_OP_SEND_RECV),
    SPELT("collectivepermute", KNEE_OP_SEND_RECV), /* XLA */
    SPELT("pingpong", KNEE_OP_SEND_RECV),
#undef SPELT
    {"latency", 7, KNEE_OP_SEND_RECV, true}, /* osu_latency */
};
#define SPELLINGS (sizeof spellings / sizeof *spellings)

/* What libraries, benchmarks and frameworks put before a name ("i": it does not block) and behind
 * it. */
static const char *const before[] = {"nccl", "rccl", "hccl", "gloo", "osu", "pmpi", "mpi", "i"};
static const char *const after[] = {"perf",   "mpi",    "test",   "base",  "coalesced", "tensor",
                                    "into",   "single", "object", "list",  "oop",       "anysource",
                                    "kernel", "start",  "done",   "block", "v"};

#define LETTERS_MAX 256

/* The letters of a name, small, and which of them begin a word: the first behind anything else, a
 * capital behind a small one. Parameters of a kernel are not its name. */
struct letters {
    char at[LETTERS_MAX];
    bool begins[LETTERS_MAX];
    size_t count;
};

static void keep_letters(const char *name, size_t length, struct letters *out)
{
    size_t kept = 0;
    bool last = false, small = false; /* was a letter; a small one */
    for (size_t i = 0; i < length && kept + 1 < LETTERS_MAX && name[i] != '('; i++) {
        bool letter = knee_is_letter(name[i]), capital = letter && name[i] <= 'Z';
        if (letter) {
            out->at[kept] = knee_lower(name[i]);
            out->begins[kept++] = !last || (capital && small);
        }
        last = letter;
        small = letter && !capital;
    }
    out->at[kept] = '\0';
    out->count = kept;
}

/* "ncclallreduce", "Iallreduce": what stands before is known to do so. */
static bool behind_prefix(const struct letters *l, size_t at)
{
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        size_t n = strlen(before[i]);
        if (at >= n && l->begins[at - n] && memcmp(l->at + at - n, before[i], n) == 0)
            return true;
    }
    return false;
}

enum knee_op knee_op_from_name(const char *name, size_t length)
{
    struct letters l;
    size_t whole = SPELLINGS, part = SPELLINGS; /* rows that begin a word, or stand in one */
    keep_letters(name, length, &l);
    for (size_t at = 0; at + 4 <= l.count; at++) {
        char first = l.at[at];
        if (first != 'a' && first != 'r' && first != 'b' && first != 's' && first != 'g' &&
            first != 'c' && first != 'p')
            continue;
        for (size_t i = 0; i < whole; i++) {
            const struct spelling *s = &spellings[i];
            if (s->letters[0] != first || s->alone || l.count - at < s->length ||
                memcmp(l.at + at, s->letters, s->length) != 0)
                continue;
            if (l.begins[at] || behind_prefix(&l, at))
                whole = i;
            else if (i < part)
                part = i;
            break;
        }
    }
    size_t row = whole < SPELLINGS ? whole : part;
    return row < SPELLINGS ? spellings[row].op : KNEE_OP_UNKNOWN;
}

/* Cuts one of `words` off the front or the back; false: none stands there, or nothing would be
 * left. */
static bool cut(char **start, size_t *left, const char *const *words, size_t count, bool front)
{
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(words[i]);
        if (*left <= n || memcmp(*start + (front ? 0 : *left - n), words[i], n) != 0)
            continue;
        *left -= n;
        *start += front ? n : 0;
        return true;
    }
    return false;
}

static enum knee_op spelt(const char *letters, size_t length)
{
    for (size_t i = 0; i < SPELLINGS; i++)
        if (length == spellings[i].length && memcmp(letters, spellings[i].letters, length) == 0)
            return spellings[i].op;
    return KNEE_OP_UNKNOWN;
}

enum knee_op knee_op_spelt(const char *word, size_t length)
{
    struct letters l;
    keep_letters(word, length, &l);
    char *start = l.at;
    size_t left = l.count;
    enum knee_op op;
    bool library = left > 4 && memcmp(start + 1, "ccl", 3) == 0;
    while ((op = spelt(start, left)) == KNEE_OP_UNKNOWN &&
           (cut(&start, &left, before, sizeof before / sizeof *before, true) ||
            cut(&start, &left, after, sizeof after / sizeof *after, false)))
        ;
    if (op == KNEE_OP_UNKNOWN && library && strstr(l.at, "kernel"))
        return knee_op_from_name(word, length); /* ncclDevKernel_AllReduce_Sum_f32_RING_LL */
    return op;
}

enum knee_op knee_op_of(const char *word, size_t length)
{
    enum knee_op op = knee_op_spelt(word, length);
    return op == KNEE_OP_BARRIER ? KNEE_OP_UNKNOWN : op;
}
