/* SPDX-License-Identifier: MIT */
#include "out/table.h"

#include "base/format.h"
#include "base/number.h"

#include <stdarg.h>
#include <string.h>

void knee_table_init(struct knee_table *table, const char *align, const struct knee_alloc *alloc)
{
    memset(table, 0, sizeof *table);
    table->columns = strlen(align);
    memcpy(table->align, align, table->columns);
    table->cells.alloc = alloc;
}

void knee_table_release(struct knee_table *table)
{
    knee_text_release(&table->cells);
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

void knee_table_heads(struct knee_table *table, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        knee_table_cell(table, "%s", names[i]);
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

/* Columns on a terminal: code points. */
static size_t display_width(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void write_padded(const char *cell, char align, size_t width, struct knee_text *text)
{
    size_t pad = width - display_width(cell);
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

static void write_text(const struct knee_table *table, const struct knee_style *style,
                       struct knee_text *text)
{
    size_t widths[KNEE_COLUMNS_MAX] = {0};
    const char *cell = table->cells.data;
    for (size_t i = 0; i < table->cell_count; i++, cell += strlen(cell) + 1) {
        size_t width = display_width(cell), column = i % table->columns;
        widths[column] = width > widths[column] ? width : widths[column];
    }
    cell = table->cells.data;
    for (size_t i = 0; i < table->cell_count; i++, cell += strlen(cell) + 1) {
        size_t column = i % table->columns;
        bool header = i < table->columns, last = column + 1 == table->columns;
        if (header && column == 0 && style->color)
            knee_text_puts(text, "\033[1m");
        knee_text_puts(text, "  ");
        write_padded(cell, table->align[column], widths[column], text);
        if (!last)
            continue;
        trim_line(text);
        if (header && style->color)
            knee_text_puts(text, "\033[0m");
        knee_text_puts(text, "\n");
    }
}

static void write_markdown(const struct knee_table *table, struct knee_text *text)
{
    const char *cell = table->cells.data;
    for (size_t i = 0; i < table->cell_count; i++, cell += strlen(cell) + 1) {
        bool last = i % table->columns + 1 == table->columns;
        knee_text_puts(text, "| ");
        for (const char *c = cell; *c; c++) {
            if (*c == '|')
                knee_text_puts(text, "\\");
            knee_text_add(text, c, 1);
        }
        knee_text_puts(text, last ? " |\n" : " ");
        if (i + 1 != table->columns)
            continue;
        for (size_t column = 0; column < table->columns; column++)
            knee_text_puts(text, table->align[column] == 'r' ? "|---:" : "|---");
        knee_text_puts(text, "|\n");
    }
}

static void write_csv(const struct knee_table *table, struct knee_text *text)
{
    const char *cell = table->cells.data;
    for (size_t i = 0; i < table->cell_count; i++, cell += strlen(cell) + 1) {
        bool quote = strpbrk(cell, ",\"\n") != NULL;
        if (quote)
            knee_text_puts(text, "\"");
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

void knee_table_write(const struct knee_table *table, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text)
{
    if (table->cells.failed) {
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
