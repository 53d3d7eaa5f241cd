/* SPDX-License-Identifier: MIT */
/*
 * Dumps of PyTorch's Flight Recorder (torch.distributed, version 2.x), one per rank, as pickle or
 * JSON. Groups are known to all ranks by their name, which is process_group[0] of an entry and the
 * key of pg_config; pg_id is a rank's own number and is not used. A dump made on a timeout may hold
 * unfinished entries only. The rank stands in the file's name, not in the file.
 */
#include "base/error.h"
#include "base/fold.h"
#include "base/format.h"
#include "base/slice.h"
#include "base/text.h"
#include "read/trace/roll_readers.h"
#include "read/trace/trace_json.h"
#include "timeline/kinds.h"

#include <math.h>
#include <string.h>

int64_t knee_rollcall_rank_of_name(const char *file)
{
    const char *base = knee_base_name(file);
    const char *end = strchr(base, '.'), *at;
    int64_t rank = knee_rank_from_name(file);
    end = end && end > base ? end : base + strlen(base);
    for (at = end; at > base && knee_is_digit(at[-1]);)
        at--;
    if (rank >= 0 || at == end || end - at > 6)
        return rank;
    for (rank = 0; at < end; at++)
        rank = rank * 10 + (*at - '0');
    return rank;
}

/* ---- Groups ---- */

/* "[0, 4, 8, 12]" */
static bool read_members(struct knee_rollcall *roll, uint32_t row, struct knee_slice text)
{
    struct knee_comm_group *group = &roll->groups[row];
    size_t most = 1, count = 0;
    if (group->members)
        return true;
    for (size_t i = 0; i < text.length; i++)
        most += text.at[i] == ',';
    int32_t *members = knee_resize(roll->alloc, NULL, most * sizeof *members);
    if (!members)
        return false;
    for (size_t i = 0; i < text.length && count < most;) {
        int64_t rank = 0;
        if (!knee_is_digit(text.at[i])) {
            i++;
            continue;
        }
        for (; i < text.length && knee_is_digit(text.at[i]); i++)
            rank = rank < KNEE_ROLL_RANKS ? rank * 10 + (text.at[i] - '0') : rank;
        if (rank < KNEE_ROLL_RANKS)
            members[count++] = (int32_t)rank;
    }
    group->members = members;
    group->member_count = count;
    group->size = count ? (int32_t)count : group->size;
    return true;
}

static bool read_groups(struct knee_rollcall *roll, const struct knee_tree *tree)
{
    uint32_t at = knee_tree_first(tree, knee_tree_get(tree, 0, "pg_config"));
    for (; at != KNEE_TREE_NONE; at = knee_tree_next(tree, at)) {
        struct knee_slice name = knee_tree_text(tree, knee_tree_get(tree, at, "name"));
        if (!name.length)
            continue;
        uint32_t row = knee_rollcall_group(roll, name);
        if (row == UINT32_MAX ||
            !knee_rollcall_describe(roll, row,
                                    knee_tree_text(tree, knee_tree_get(tree, at, "desc"))) ||
            !read_members(roll, row, knee_tree_text(tree, knee_tree_get(tree, at, "ranks"))))
            return false;
    }
    return true;
}

/* ---- Entries ---- */

/* Bytes of the tensors of a call: shapes and types stand side by side. -1: a type is not known. */
static double tensor_bytes(const struct knee_tree *tree, uint32_t entry, const char *sizes,
                           const char *types)
{
    uint32_t shape = knee_tree_first(tree, knee_tree_get(tree, entry, sizes));
    uint32_t type = knee_tree_first(tree, knee_tree_get(tree, entry, types));
    double sum = 0;
    for (; shape != KNEE_TREE_NONE; shape = knee_tree_next(tree, shape)) {
        struct knee_slice word = knee_tree_text(tree, type);
        double elements = 1;
        int width = knee_dtype_bytes(word.at, word.length);
        if (width <= 0)
            return -1;
        for (uint32_t d = knee_tree_first(tree, shape); d != KNEE_TREE_NONE;
             d = knee_tree_next(tree, d))
            elements *= knee_tree_number(tree, d, 0);
        sum += elements * width;
        if (knee_tree_next(tree, type) != KNEE_TREE_NONE)
            type = knee_tree_next(tree, type);
    }
    return sum;
}

/* The whole buffer: what goes in or what comes out, whichever is more. */
static int64_t call_bytes(const struct knee_tree *tree, uint32_t entry)
{
    double in = tensor_bytes(tree, entry, "input_sizes", "input_dtypes");
    double out = tensor_bytes(tree, entry, "output_sizes", "output_dtypes");
    double most = in > out ? in : out;
    return most > 0 && most < 1e18 ? (int64_t)most : -1;
}

/* "nccl:all_reduce", "nccl:_all_gather_base", "nccl:send 0->3" */
static enum knee_op op_of(struct knee_slice name)
{
    size_t colon = knee_slice_find(name, ":");
    struct knee_slice word = knee_slice_from(name, colon < name.length ? colon + 1 : 0);
    return knee_op_from_name(word.at, word.length);
}

/* Elements that go in, as PyTorch's NumelIn counts them. */
static int64_t elements_in(const struct knee_tree *tree, uint32_t entry)
{
    double sum = 0;
    uint32_t shape = knee_tree_first(tree, knee_tree_get(tree, entry, "input_sizes"));
    if (shape == KNEE_TREE_NONE)
        return -1;
    for (; shape != KNEE_TREE_NONE; shape = knee_tree_next(tree, shape)) {
        double elements = 1;
        for (uint32_t d = knee_tree_first(tree, shape); d != KNEE_TREE_NONE;
             d = knee_tree_next(tree, d))
            elements *= knee_tree_number(tree, d, 0);
        sum += elements;
    }
    return sum >= 0 && sum < 1e18 ? (int64_t)sum : -1;
}

/* Is this file the program's own, and not a library's? */
static bool is_own_file(struct knee_slice file)
{
    return file.length && !knee_slice_has(file, "site-packages/") &&
           !knee_slice_has(file, "dist-packages/") && !knee_slice_has(file, "/torch/") &&
           !knee_slice_starts(file, "<");
}

/* The innermost frame of the program itself, else the innermost: "train.py:16 (evaluate)". */
static uint32_t frame_of(struct knee_rollcall *roll, const struct knee_tree *tree, uint32_t entry)
{
    uint32_t frame = knee_tree_first(tree, knee_tree_get(tree, entry, "frames")), best = frame;
    char place[KNEE_ROLL_NAME], file[128], name[48];
    for (; frame != KNEE_TREE_NONE; frame = knee_tree_next(tree, frame))
        if (is_own_file(knee_tree_text(tree, knee_tree_get(tree, frame, "filename")))) {
            best = frame;
            break;
        }
    if (best == KNEE_TREE_NONE)
        return 0;
    knee_slice_copy(knee_tree_text(tree, knee_tree_get(tree, best, "filename")), file, sizeof file);
    knee_slice_copy(knee_tree_text(tree, knee_tree_get(tree, best, "name")), name, sizeof name);
    knee_format(place, sizeof place, "%s:%lld (%s)", file,
                (long long)knee_tree_whole(tree, knee_tree_get(tree, best, "line"), 0), name);
    return knee_rollcall_frame(roll, knee_slice_of(place));
}

/* How old the call was when the dump was made, against its timeout; -1: the dump does not say. */
static int waited_out(const struct knee_tree *tree, uint32_t entry)
{
    int64_t made = knee_tree_whole(tree, knee_tree_get(tree, entry, "time_created_ns"), -1);
    int64_t seen =
        knee_tree_whole(tree, knee_tree_get(tree, entry, "time_discovered_started_ns"), -1);
    int64_t limit_ms = knee_tree_whole(tree, knee_tree_get(tree, entry, "timeout_ms"), -1);
    if (made < 0 || seen < made || limit_ms <= 0 || limit_ms > INT64_MAX / 2000000)
        return -1;
    return (seen - made) / 1000000 >= limit_ms - limit_ms / 20;
}

static bool add_entry(struct knee_rollcall *roll, const struct knee_tree *tree, uint32_t at,
                      int64_t rank)
{
    uint32_t group = knee_tree_first(tree, knee_tree_get(tree, at, "process_group"));
    struct knee_slice name = knee_tree_text(tree, group);
    struct knee_slice state = knee_tree_text(tree, knee_tree_get(tree, at, "state"));
    struct knee_entry entry = {
        .rank = (int32_t)rank,
        .p2p = knee_tree_true(tree, knee_tree_get(tree, at, "is_p2p")),
        .op = op_of(knee_tree_text(tree, knee_tree_get(tree, at, "profiling_name"))),
        .bytes = call_bytes(tree, at),
        .elements = elements_in(tree, at),
        .started = knee_slice_is(state, "started"),
        .pending = knee_slice_is(state, "scheduled") || knee_slice_is(state, "started"),
        .duration_ns = -1,
    };
    uint32_t retired = knee_tree_get(tree, at, "retired");
    entry.aborted = !entry.pending && retired != KNEE_TREE_NONE && !knee_tree_true(tree, retired);
    double ms = knee_tree_number(tree, knee_tree_get(tree, at, "duration_ms"), NAN);
    entry.sequence = knee_tree_whole(
        tree, knee_tree_get(tree, at, entry.p2p ? "p2p_seq_id" : "collective_seq_id"), -1);
    if (!name.length || !state.length) {
        roll->skipped++;
        return true;
    }
    if (ms >= 0 && ms < 1e9 && !entry.pending)
        entry.duration_ns = (int64_t)(ms * 1e6 + 0.5);
    roll->untimed += !entry.pending && entry.duration_ns < 0;
    entry.group = knee_rollcall_group(roll, name);
    if (entry.pending)
        entry.frame = frame_of(roll, tree, at);
    return entry.frame != UINT32_MAX && entry.group != UINT32_MAX &&
           knee_rollcall_describe(roll, entry.group,
                                  knee_tree_text(tree, knee_tree_next(tree, group))) &&
           knee_rollcall_add(roll, entry);
}

bool knee_is_flight_recorder(const struct knee_tree *tree)
{
    return knee_tree_get(tree, 0, "entries") != KNEE_TREE_NONE &&
           (knee_tree_get(tree, 0, "pg_config") != KNEE_TREE_NONE ||
            knee_tree_get(tree, 0, "pg_status") != KNEE_TREE_NONE ||
            knee_tree_get(tree, 0, "version") != KNEE_TREE_NONE);
}

knee_status knee_flight_recorder_read(struct knee_rollcall *roll, const char *file,
                                      const struct knee_tree *tree, struct knee_err *err)
{
    int64_t rank =
        knee_tree_whole(tree, knee_tree_get(tree, 0, "rank"), knee_rollcall_rank_of_name(file));
    size_t first = roll->entry_count;
    if (rank < 0 || rank >= KNEE_ROLL_RANKS) {
        knee_fail(err, KNEE_INPUT, file, "no rank in the name of this Flight Recorder dump");
        knee_hint(err, "names end in the rank: nccl_trace_rank_3, _dump_3");
        return KNEE_INPUT;
    }
    bool good = read_groups(roll, tree);
    uint32_t at = knee_tree_first(tree, knee_tree_get(tree, 0, "entries"));
    int waited = -1;
    bool whole = knee_tree_whole(tree, knee_tree_get(tree, at, "record_id"), -1) == 0;
    for (; at != KNEE_TREE_NONE && good; at = knee_tree_next(tree, at)) {
        size_t before = roll->entry_count;
        good = add_entry(roll, tree, at, rank);
        if (waited < 0 && roll->entry_count > before && roll->entries[before].pending)
            waited = waited_out(tree, at);
    }
    if (!good || !knee_rollcall_source(roll, file, rank, first))
        return knee_fail(err, KNEE_SYSTEM, file, "out of memory");
    roll->sources[roll->source_count - 1].waited_out = waited;
    roll->sources[roll->source_count - 1].whole = whole;
    return KNEE_OK;
}
