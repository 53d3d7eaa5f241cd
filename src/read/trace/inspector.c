/* SPDX-License-Identifier: MIT */
/*
 * What NCCL Inspector writes: a JSON object per line, with a header (communicator, rank in it, its
 * size), metadata and one collective or send. From version 4.3 on header and metadata may stand in
 * a line of their own, for the lines that follow. Sizes are those of one rank where ranks hold
 * parts (all-gather, reduce-scatter); times are whole microseconds, some writers' with a point.
 * dump_timestamp_us is when the line was written, and says nothing of when the call was.
 */
#include "base/error.h"
#include "base/text.h"
#include "collective/collective_op.h"
#include "read/trace/roll_readers.h"

#include <math.h>
#include <string.h>

bool knee_is_inspector(const char *head, size_t length)
{
    struct knee_slice text = {head, length}, line;
    for (int i = 0; i < 8 && knee_slice_line(&text, &line); i++)
        if (knee_slice_starts(knee_slice_trim(line), "{") &&
            (knee_slice_has(line, "\"coll_perf\"") || knee_slice_has(line, "\"p2p_perf\"") ||
             knee_slice_has(line, "\"inspector_output_format_version\"")))
            return true;
    return false;
}

/* What a header said last. */
struct header {
    uint32_t group;
    int64_t rank, size;
};

/* False: no memory. */
static bool take_header(struct knee_rollcall *roll, const struct knee_tree *tree, uint32_t at,
                        struct header *header)
{
    struct knee_slice id = knee_tree_text(tree, knee_tree_get(tree, at, "id"));
    header->group = knee_rollcall_group(roll, id);
    header->rank = knee_tree_whole(tree, knee_tree_get(tree, at, "rank"), -1);
    header->size = knee_tree_whole(tree, knee_tree_get(tree, at, "n_ranks"), -1);
    if (header->group == UINT32_MAX)
        return false;
    if (header->size > 0 && header->size < KNEE_ROLL_RANKS)
        roll->groups[header->group].size = (int32_t)header->size;
    return knee_rollcall_describe(roll, header->group,
                                  knee_tree_text(tree, knee_tree_get(tree, at, "comm_name")));
}

static bool add_call(struct knee_rollcall *roll, const struct knee_tree *tree, uint32_t call,
                     const struct header *header)
{
    struct knee_slice word = knee_tree_text(tree, knee_tree_get(tree, call, "coll"));
    int64_t bytes = knee_tree_whole(tree, knee_tree_get(tree, call, "coll_msg_size_bytes"), -1);
    double us = knee_tree_number(tree, knee_tree_get(tree, call, "coll_exec_time_us"), NAN);
    struct knee_entry entry = {
        .group = header->group,
        .rank = header->rank >= 0 && header->rank < KNEE_ROLL_RANKS ? (int32_t)header->rank : -1,
        .sequence = knee_tree_whole(tree, knee_tree_get(tree, call, "coll_sn"), -1),
        .op = knee_op_from_name(word.at, word.length),
        .bytes = bytes,
        .duration_ns = us >= 0 && us < 1e12 ? (int64_t)(us * 1e3 + 0.5) : -1,
    };
    bool parts = entry.op == KNEE_OP_ALL_GATHER || entry.op == KNEE_OP_REDUCE_SCATTER;
    if (parts && bytes > 0 && header->size > 0 && bytes < INT64_MAX / KNEE_ROLL_RANKS)
        entry.bytes = bytes * header->size;
    roll->untimed += entry.duration_ns < 0;
    return knee_rollcall_add(roll, entry);
}

static bool add_send(struct knee_rollcall *roll, const struct knee_tree *tree, uint32_t send,
                     const struct header *header)
{
    return knee_rollcall_add(
        roll,
        (struct knee_entry){
            .group = header->group,
            .rank =
                header->rank >= 0 && header->rank < KNEE_ROLL_RANKS ? (int32_t)header->rank : -1,
            .sequence = knee_tree_whole(tree, knee_tree_get(tree, send, "p2p_sn"), -1),
            .op = KNEE_OP_SEND_RECV,
            .bytes = -1,
            .duration_ns = -1,
            .p2p = true,
        });
}

/* One line. False: no memory. */
static bool take_line(struct knee_rollcall *roll, const struct knee_tree *tree,
                      struct header *header)
{
    uint32_t head = knee_tree_get(tree, 0, "header"), call = knee_tree_get(tree, 0, "coll_perf"),
             send = knee_tree_get(tree, 0, "p2p_perf"),
             stats = knee_tree_get(tree, 0, "dump_stats");
    if (head == KNEE_TREE_NONE && stats != KNEE_TREE_NONE)
        head = knee_tree_get(tree, stats, "header");
    if (head != KNEE_TREE_NONE && !take_header(roll, tree, head, header))
        return false;
    bool useful = (call != KNEE_TREE_NONE || send != KNEE_TREE_NONE) && header->group != UINT32_MAX;
    if (!useful) {
        roll->skipped += head == KNEE_TREE_NONE && stats == KNEE_TREE_NONE;
        return true;
    }
    return call != KNEE_TREE_NONE ? add_call(roll, tree, call, header)
                                  : add_send(roll, tree, send, header);
}

knee_status knee_inspector_read(struct knee_rollcall *roll, const char *file, char *data,
                                size_t length, struct knee_err *err)
{
    struct knee_tree tree = {.alloc = roll->alloc};
    struct knee_slice text = {data, length}, line;
    struct header header = {.group = UINT32_MAX, .rank = -1, .size = -1};
    size_t first = roll->entry_count;
    bool good = true;
    while (good && knee_slice_line(&text, &line)) {
        struct knee_slice object = knee_slice_trim(line);
        if (!object.length)
            continue;
        knee_status status =
            knee_tree_json(&tree, data + (object.at - data), object.length, file, NULL, NULL);
        if (status == KNEE_INPUT)
            roll->skipped++;
        good = status == KNEE_INPUT || (!status && take_line(roll, &tree, &header));
    }
    knee_tree_release(&tree);
    if (!good || !knee_rollcall_source(roll, file, -1, first))
        return knee_fail(err, KNEE_SYSTEM, file, "out of memory");
    return KNEE_OK;
}
