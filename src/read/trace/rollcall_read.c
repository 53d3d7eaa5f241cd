/* SPDX-License-Identifier: MIT */
/* Which kind of roll call a file holds. */
#include "base/error.h"
#include "knee_rollcall.h"
#include "read/file_kinds.h"
#include "read/trace/roll_readers.h"

#include <string.h>

bool knee_rollcall_recognise(const char *head, size_t length)
{
    const struct knee_file_kind *kind = knee_file_kind_of("", head, length);
    return kind && kind->reader == KNEE_READ_ROLLCALL;
}

static knee_status read_tree(struct knee_rollcall *roll, const char *file, char *data,
                             size_t length, struct knee_err *err)
{
    struct knee_tree tree = {.alloc = roll->alloc};
    bool pickle = length > 0 && (unsigned char)data[0] == 0x80;
    knee_status status = pickle ? knee_tree_pickle(&tree, data, length, file, err)
                                : knee_tree_json(&tree, data, length, file, err);
    if (!status && !knee_is_flight_recorder(&tree))
        status = knee_fail(err, KNEE_INPUT, file,
                           "not a Flight Recorder dump: no entries and process groups in it");
    roll->format = "flight recorder";
    if (!status)
        status = knee_flight_recorder_read(roll, file, &tree, err);
    knee_tree_release(&tree);
    return status;
}

static knee_status read_own(struct knee_rollcall *roll, const char *file, char *data, size_t length,
                            struct knee_err *err)
{
    if (!knee_is_inspector(data, length < 4096 ? length : 4096))
        return read_tree(roll, file, data, length, err);
    roll->format = "nccl inspector";
    return knee_inspector_read(roll, file, data, length, err);
}

knee_status knee_rollcall_read(struct knee_rollcall *roll, const char *file, char *data,
                               size_t length, struct knee_err *err)
{
    struct knee_rollcall own = {.alloc = roll->alloc};
    knee_status status = read_own(&own, file, data, length, err);
    if (!status)
        status = knee_rollcall_take(roll, &own, err);
    knee_rollcall_release(&own);
    return status;
}
