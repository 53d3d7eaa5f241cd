/* SPDX-License-Identifier: MIT */
/*
 * What people know about logs, in a CSV beside them: a row per file with its hardware, and where it
 * comes from (a column "cluster", or else "source_url", cut to its site, owner and repository).
 */
#ifndef KNEE_READ_LOG_LOG_INDEX_H
#define KNEE_READ_LOG_LOG_INDEX_H

#include "base/slice.h"

struct knee_log_index_row {
    char hardware[300], origin[160]; /* empty where the index does not say */
};

/* It is a table with a column "file". */
bool knee_log_index_good(struct knee_slice csv);

/* False: the index has no row for `file` (a name without folders), or no column "file". */
bool knee_log_index_find(struct knee_slice csv, const char *file, struct knee_log_index_row *out);

#endif
