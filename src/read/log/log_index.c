/* SPDX-License-Identifier: MIT */
#include "read/log/log_index.h"

#include <string.h>

enum column { FILE_NAME, HARDWARE, CLUSTER, SOURCE, COLUMNS };

static const char *const names[COLUMNS] = {"file", "hardware", "cluster", "source_url"};

/* The next cell off *line, quotation marks taken off; false when there is none left. */
static bool next_cell(struct knee_slice *line, struct knee_slice *cell, bool *more)
{
    if (!*more)
        return false;
    if (line->length == 0 || line->at[0] != '"') {
        const char *comma = line->length ? memchr(line->at, ',', line->length) : NULL;
        *more = comma != NULL;
        size_t length = comma ? (size_t)(comma - line->at) : line->length;
        *cell = (struct knee_slice){line->at, length};
        *line = knee_slice_from(*line, length + 1);
        return true;
    }
    size_t end = 1; /* "" inside stands for one mark; it stays doubled, which no word here minds */
    while (end < line->length &&
           !(line->at[end] == '"' && (end + 1 >= line->length || line->at[end + 1] != '"')))
        end += line->at[end] == '"' ? 2 : 1;
    if (end > line->length)
        end = line->length;
    *cell = (struct knee_slice){line->at + 1, end - 1};
    *line = knee_slice_from(*line, end + 1);
    *more = line->length > 0 && line->at[0] == ',';
    *line = knee_slice_from(*line, 1);
    return true;
}

/* "https://github.com/owner/repo/blob/..." up to the repository. */
static struct knee_slice site_of(struct knee_slice url)
{
    size_t slashes = 0;
    for (size_t i = 0; i < url.length; i++)
        if (url.at[i] == '/' && ++slashes == 5)
            return (struct knee_slice){url.at, i};
    return url;
}

bool knee_log_index_find(struct knee_slice csv, const char *file, struct knee_log_index_row *out)
{
    int where[COLUMNS] = {-1, -1, -1, -1};
    struct knee_slice line, cell;
    bool more = true;
    if (!knee_slice_line(&csv, &line))
        return false;
    for (int column = 0; next_cell(&line, &cell, &more); column++)
        for (int i = 0; i < COLUMNS; i++)
            if (knee_slice_is(knee_slice_trim(cell), names[i]))
                where[i] = column;
    while (where[FILE_NAME] >= 0 && knee_slice_line(&csv, &line)) {
        struct knee_slice cells[COLUMNS] = {{"", 0}, {"", 0}, {"", 0}, {"", 0}};
        more = true;
        for (int column = 0; next_cell(&line, &cell, &more); column++)
            for (int i = 0; i < COLUMNS; i++)
                if (column == where[i])
                    cells[i] = knee_slice_trim(cell);
        if (!knee_slice_is(cells[FILE_NAME], file))
            continue;
        struct knee_slice origin = cells[CLUSTER].length ? cells[CLUSTER] : site_of(cells[SOURCE]);
        knee_slice_copy(cells[HARDWARE], out->hardware, sizeof out->hardware);
        knee_slice_copy(origin, out->origin, sizeof out->origin);
        return true;
    }
    return false;
}
