/* SPDX-License-Identifier: MIT */
#include "out/table.h"

#include "base/format.h"
#include "base/number.h"
#include "out/words.h"

#include <stdarg.h>
#include <string.h>

void knee_table_init(struct knee_table *table, const char *align, const struct knee_alloc *alloc)
{
    memset(table, 0, sizeof *table);
    table->columns = strlen(align);
    table->cells.alloc = table->align.alloc = alloc;
    knee_text_puts(&table->align, align);
}

void knee_table_begin(struct knee_table *table, size_t columns, const struct knee_alloc *alloc)
{
    knee_table_init(table, "", alloc);
    table->columns = columns;
    knee_text_repeat(&table->align, "r", columns);
}

void knee_table_release(struct knee_table *table)
{
    knee_text_release(&table->cells);
    knee_text_release(&table->align);
    table->cell_count = 0;
}

void knee_table_cell(struct knee_table *table, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    knee_text_vprintf(&table->cells, fmt, args);
    va_end(args);
    knee_text_add(&table->cells, "", 1);
    table->cell_count++;
}

void knee_table_number(struct knee_table *table, double value, enum knee_unit unit)
{
    char text[48];
    knee_number_human(text, sizeof text, value, unit);
    knee_table_cell(table, "%s", text);
}

void knee_table_exact(struct knee_table *table, double value)
{
    char text[48];
    knee_number_exact(text, sizeof text, value);
    knee_table_cell(table, "%s", strcmp(text, "null") ? text : "");
}

size_t knee_display_width(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void write_padded(const char *cell, char align, size_t width, struct knee_text *text)
{
    size_t pad = width - knee_display_width(cell);
    if (align == 'r')
        knee_text_repeat(text, " ", pad);
    knee_text_puts(text, cell);
    if (align == 'l')
        knee_text_repeat(text, " ", pad);
}

static void trim_line(struct knee_text *text)
{
    while (text->length > 0 && text->data[text->length - 1] == ' ')
        text->data[--text->length] = '\0';
}

/* Which columns of a table stand beside each other, and how wide they are. */
struct layout {
    const struct knee_table *table;
    const char **cells; /* all of them, the header's first */
    size_t *widths;     /* of each column; 0: it is not shown */
    bool numbered;      /* the first column does not tell rows apart: number them */
};

#define GAP 2 /* spaces before each column */

static size_t layout_rows(const struct layout *layout)
{
    size_t columns = layout->table->columns;
    return columns ? layout->table->cell_count / columns : 0;
}

static const char *layout_cell(const struct layout *layout, size_t row, size_t column)
{
    return layout->cells[row * layout->table->columns + column];
}

static void layout_measure(struct layout *layout)
{
    const char *cell = layout->table->cells.data;
    for (size_t i = 0; i < layout->table->cell_count; i++, cell += strlen(cell) + 1) {
        size_t width = knee_display_width(cell), column = i % layout->table->columns;
        layout->cells[i] = cell;
        layout->widths[column] = width > layout->widths[column] ? width : layout->widths[column];
    }
}

static size_t layout_width(const struct layout *layout)
{
    size_t width = 0;
    for (size_t column = 0; column < layout->table->columns; column++)
        width += layout->widths[column] ? GAP + layout->widths[column] : 0;
    return width;
}

/* Do all rows, two at least, say the same here? */
static bool one_value(const struct layout *layout, size_t column)
{
    for (size_t row = 2; row < layout_rows(layout); row++)
        if (strcmp(layout_cell(layout, row, column), layout_cell(layout, 1, column)) != 0)
            return false;
    return layout_rows(layout) > 2;
}

/* Columns with the same value in all rows move to a separate line until the rest fits. */
static void drop_columns(struct layout *layout, size_t room, struct knee_text *left_out)
{
    for (size_t column = layout->table->columns; column-- > 1 && layout_width(layout) > room;) {
        if (!one_value(layout, column))
            continue;
        layout->widths[column] = 0;
        const char *value = layout_cell(layout, 1, column);
        knee_text_printf(left_out, "%s%s %s", left_out->length ? ", " : "",
                         layout_cell(layout, 0, column), *value ? value : "-");
    }
}

/* The columns [from, to) that fit beside the first. */
static size_t stack_end(const struct layout *layout, size_t from, size_t room)
{
    size_t width = (layout->numbered ? GAP + 4 : 0) + (from > 0 ? GAP + layout->widths[0] : 0);
    size_t to = from;
    for (; to < layout->table->columns; to++) {
        size_t more = layout->widths[to] ? GAP + layout->widths[to] : 0;
        if (to > from && width + more > room)
            break;
        width += more;
    }
    return to;
}

#define COMPARED 500 /* rows that are worth it, each with each */

static bool first_tells_rows_apart(const struct layout *layout)
{
    if (layout_rows(layout) > COMPARED)
        return false;
    for (size_t row = 1; row < layout_rows(layout); row++)
        for (size_t other = 1; other < row; other++)
            if (strcmp(layout_cell(layout, row, 0), layout_cell(layout, other, 0)) == 0)
                return false;
    return true;
}

static void write_line(const struct layout *layout, size_t row, size_t from, size_t to,
                       const struct knee_style *style, struct knee_text *text)
{
    bool bold = row == 0 && style->color;
    knee_text_puts(text, bold ? "\033[1m" : "");
    if (layout->numbered && row > 0)
        knee_text_printf(text, "  %4zu", row);
    else if (layout->numbered)
        knee_text_puts(text, "     #");
    for (size_t column = 0; column < to; column++) {
        if (!layout->widths[column] || (column > 0 && column < from))
            continue;
        knee_text_puts(text, "  ");
        write_padded(layout_cell(layout, row, column), layout->table->align.data[column],
                     layout->widths[column], text);
    }
    trim_line(text);
    knee_text_puts(text, bold ? "\033[0m\n" : "\n");
}

static void write_layout(struct layout *layout, const struct knee_style *style,
                         struct knee_text *text)
{
    size_t room = style->table_width > 0 ? (size_t)style->table_width : SIZE_MAX;
    size_t columns = layout->table->columns;
    struct knee_text left_out = {.alloc = layout->table->cells.alloc};
    layout_measure(layout);
    drop_columns(layout, room, &left_out);
    layout->numbered = layout_width(layout) > room && !first_tells_rows_apart(layout);
    for (size_t from = 0, to; from < columns; from = to) {
        to = layout_width(layout) > room ? stack_end(layout, from, room) : columns;
        knee_text_puts(text, from > 0 ? "\n" : "");
        for (size_t row = 0; row < layout_rows(layout); row++)
            write_line(layout, row, from, to, style, text);
    }
    if (left_out.length > 0)
        knee_text_printf(text, "  the same in every row: %s\n", left_out.data);
    knee_text_end(&left_out, text);
}

static void write_text(const struct knee_table *table, const struct knee_style *style,
                       struct knee_text *text)
{
    struct layout layout = {.table = table};
    if (table->cell_count == 0)
        return;
    layout.cells = knee_resize(table->cells.alloc, NULL, table->cell_count * sizeof *layout.cells);
    layout.widths = knee_zeroed(table->cells.alloc, table->columns * sizeof *layout.widths);
    if (layout.cells && layout.widths)
        write_layout(&layout, style, text);
    else
        text->failed = true;
    knee_resize(table->cells.alloc, layout.widths, 0);
    knee_resize(table->cells.alloc, layout.cells, 0);
}

static void write_markdown(const struct knee_table *table, struct knee_text *text)
{
    const char *cell = table->cells.data;
    for (size_t i = 0; i < table->cell_count; i++, cell += strlen(cell) + 1) {
        bool last = i % table->columns + 1 == table->columns;
        knee_text_puts(text, "| ");
        for (const char *c = cell, *end; *c; c = end) {
            end = c + 1 + strcspn(c + 1, "|");
            if (*c == '|')
                knee_text_puts(text, "\\");
            knee_markdown_add(text, c, (size_t)(end - c));
        }
        knee_text_puts(text, last ? " |\n" : " ");
        if (i + 1 != table->columns)
            continue;
        for (size_t column = 0; column < table->columns; column++)
            knee_text_puts(text, table->align.data[column] == 'r' ? "|---:" : "|---");
        knee_text_puts(text, "|\n");
    }
}

/* "-0.5", "+12.5 %", "1e-05 s": a number, and at most letters behind it. */
static bool reads_as_number(const char *cell)
{
    const char *digits = cell + (*cell == '-' || *cell == '+');
    const char *rest = digits + strspn(digits, "0123456789.");
    if ((*rest | 0x20) == 'e' && rest[1] && strchr("+-0123456789", rest[1]))
        rest += 2 + strspn(rest + 2, "0123456789");
    return rest > digits &&
           strspn(rest, " %/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(rest);
}

/* A spreadsheet would compute it: names come from files, and files from others. */
static bool reads_as_formula(const char *cell)
{
    return *cell && strchr("=+-@\t\r", *cell) && cell[1] && !reads_as_number(cell);
}

static void write_csv(const struct knee_table *table, struct knee_text *text)
{
    const char *cell = table->cells.data;
    for (size_t i = 0; i < table->cell_count; i++, cell += strlen(cell) + 1) {
        bool quote = strpbrk(cell, ",\"\n") != NULL;
        if (quote)
            knee_text_puts(text, "\"");
        if (reads_as_formula(cell))
            knee_text_puts(text, "'");
        for (const char *c = cell; *c; c++) {
            if (*c == '"')
                knee_text_puts(text, "\"");
            knee_text_add(text, c, 1);
        }
        if (quote)
            knee_text_puts(text, "\"");
        knee_text_puts(text, i % table->columns + 1 == table->columns ? "\n" : ",");
    }
}

void knee_table_json(const struct knee_table *table, const char *key, struct knee_json *json)
{
    const char *head = table->cells.data, *cell = table->cells.data;
    if (table->cells.failed || table->align.failed) {
        json->text->failed = true;
        return;
    }
    knee_json_open(json, key, '[');
    for (size_t i = 0; i < table->cell_count; i++, cell += strlen(cell) + 1) {
        size_t column = i % table->columns;
        if (i < table->columns)
            continue;
        if (column == 0) {
            knee_json_open_flat(json, NULL, '{');
            head = table->cells.data;
        }
        knee_json_string(json, head, cell);
        head += strlen(head) + 1;
        if (column + 1 == table->columns)
            knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

void knee_table_write(const struct knee_table *table, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text)
{
    if (table->cells.failed || table->align.failed) {
        text->failed = true;
        return;
    }
    if (format == KNEE_CSV)
        write_csv(table, text);
    else if (format == KNEE_MARKDOWN)
        write_markdown(table, text);
    else
        write_text(table, style, text);
}
