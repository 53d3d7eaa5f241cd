/* SPDX-License-Identifier: MIT */
#include "base/csv.h"

#include <string.h>

void knee_csv_init(struct knee_csv *csv, const char *data, size_t length)
{
    memset(csv, 0, sizeof *csv);
    if (length >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) { /* byte order mark */
        data += 3;
        length -= 3;
    }
    csv->at = data;
    csv->end = data + length;
    csv->next_line = 1;
}

/* After a quoted field's opening quote; leaves `at` behind the closing one. */
static void read_quoted(struct knee_csv *csv, struct knee_csv_field *field)
{
    const char *start = csv->at, *at = start;
    while (at < csv->end && !(*at == '"' && !(at + 1 < csv->end && at[1] == '"'))) {
        csv->next_line += *at == '\n';
        at += *at == '"' ? 2 : 1;
    }
    *field = (struct knee_csv_field){start, (size_t)(at - start), true};
    csv->at = at < csv->end ? at + 1 : at;
}

static bool ends_field(const struct knee_csv *csv, const char *at)
{
    return at >= csv->end || *at == ',' || *at == '\n' || *at == '\r';
}

static void read_field(struct knee_csv *csv, struct knee_csv_field *field)
{
    if (csv->at < csv->end && *csv->at == '"') {
        csv->at++;
        read_quoted(csv, field);
        while (!ends_field(csv, csv->at)) /* what follows a closing quote is dropped */
            csv->at++;
        return;
    }
    const char *start = csv->at;
    while (!ends_field(csv, csv->at))
        csv->at++;
    *field = (struct knee_csv_field){start, (size_t)(csv->at - start), false};
}

/* A comment is not a row: it may hold quotes that do not close. */
static bool skip_comment(struct knee_csv *csv)
{
    if (!csv->comment || *csv->at != csv->comment)
        return false;
    const char *stop = memchr(csv->at, '\n', (size_t)(csv->end - csv->at));
    csv->at = stop ? stop + 1 : csv->end;
    csv->next_line++;
    csv->comments++;
    return true;
}

static void end_line(struct knee_csv *csv)
{
    csv->row_end = csv->at;
    if (csv->at < csv->end && *csv->at == '\r')
        csv->at++;
    if (csv->at < csv->end && *csv->at == '\n')
        csv->at++;
    csv->next_line++;
}

bool knee_csv_row(struct knee_csv *csv)
{
    while (csv->at < csv->end) {
        struct knee_csv_field ignored;
        if (skip_comment(csv))
            continue;
        csv->row = csv->at;
        csv->line = csv->next_line;
        csv->fields = 0;
        for (;;) {
            bool room = csv->fields < KNEE_CSV_FIELDS;
            read_field(csv, room ? &csv->field[csv->fields] : &ignored);
            csv->fields += room;
            if (csv->at >= csv->end || *csv->at != ',')
                break;
            csv->at++;
        }
        end_line(csv);
        if (csv->fields > 1 || csv->field[0].length > 0)
            return true;
    }
    return false;
}

struct knee_slice knee_csv_slice(const struct knee_csv *csv, size_t field)
{
    if (field >= csv->fields)
        return (struct knee_slice){"", 0};
    const struct knee_csv_field *f = &csv->field[field];
    return knee_slice_trim((struct knee_slice){f->start, f->length});
}

struct knee_slice knee_csv_line(const struct knee_csv *csv)
{
    return (struct knee_slice){csv->row, (size_t)(csv->row_end - csv->row)};
}

void knee_csv_text(const struct knee_csv *csv, size_t field, char *out, size_t size)
{
    size_t used = 0;
    if (field < csv->fields) {
        const struct knee_csv_field *f = &csv->field[field];
        for (size_t i = 0; i < f->length && used + 1 < size; i++) {
            unsigned char c = (unsigned char)f->start[i];
            if (f->quoted && c == '"')
                i++; /* doubled */
            if (used > 0 || c > ' ')
                out[used++] = (char)(c < ' ' || c == 0x7f ? ' ' : c);
        }
    }
    while (used > 0 && out[used - 1] == ' ')
        used--;
    out[used] = '\0';
}
