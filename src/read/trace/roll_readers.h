/* SPDX-License-Identifier: MIT */
/* The formats that roll calls come in. */
#ifndef KNEE_READ_TRACE_ROLL_READERS_H
#define KNEE_READ_TRACE_ROLL_READERS_H

#include "read/value_tree.h"
#include "timeline/rollcall.h"

/* One rank's dump, as a tree. */
bool knee_is_flight_recorder(const struct knee_tree *tree);
knee_status knee_flight_recorder_read(struct knee_rollcall *roll, const char *file,
                                      const struct knee_tree *tree, struct knee_err *err);

/* Lines of NCCL Inspector, each an object. Changes `data`. */
bool knee_is_inspector(const char *head, size_t length);
knee_status knee_inspector_read(struct knee_rollcall *roll, const char *file, char *data,
                                size_t length, struct knee_err *err);

#endif
