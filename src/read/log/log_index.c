/* SPDX-License-Identifier: MIT */
#include "read/log/log_index.h"

#include "base/csv.h"

enum column { FILE_NAME, HARDWARE, CLUSTER, SOURCE, COLUMNS };

static const char *const names[COLUMNS] = {"file", "hardware", "cluster", "source_url"};

/* "https://github.com/owner/repo/blob/..." up to the repository. */
static struct knee_slice site_of(struct knee_slice url)
{
    size_t slashes = 0;
    for (size_t i = 0; i < url.length; i++)
        if (url.at[i] == '/' && ++slashes == 5)
            return (struct knee_slice){url.at, i};
    return url;
}

static bool find_columns(struct knee_csv *csv, size_t where[COLUMNS])
{
    for (int i = 0; i < COLUMNS; i++)
        where[i] = KNEE_CSV_FIELDS;
    if (!knee_csv_row(csv))
        return false;
    for (size_t column = 0; column < csv->fields; column++)
        for (int i = 0; i < COLUMNS; i++)
            if (knee_slice_is(knee_csv_slice(csv, column), names[i]))
                where[i] = column;
    return where[FILE_NAME] < KNEE_CSV_FIELDS;
}

bool knee_log_index_good(struct knee_slice text)
{
    struct knee_csv csv;
    size_t where[COLUMNS];
    knee_csv_init(&csv, text.at, text.length);
    return find_columns(&csv, where);
}

bool knee_log_index_find(struct knee_slice text, const char *file, struct knee_log_index_row *out)
{
    struct knee_csv csv;
    size_t where[COLUMNS];
    knee_csv_init(&csv, text.at, text.length);
    if (!find_columns(&csv, where))
        return false;
    while (knee_csv_row(&csv)) {
        if (!knee_slice_is(knee_csv_slice(&csv, where[FILE_NAME]), file))
            continue;
        struct knee_slice cluster = knee_csv_slice(&csv, where[CLUSTER]);
        struct knee_slice origin =
            cluster.length ? cluster : site_of(knee_csv_slice(&csv, where[SOURCE]));
        knee_csv_text(&csv, where[HARDWARE], out->hardware, sizeof out->hardware);
        knee_slice_copy(origin, out->origin, sizeof out->origin);
        return true;
    }
    return false;
}
