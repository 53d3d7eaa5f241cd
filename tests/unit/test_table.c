/* SPDX-License-Identifier: MIT */
/* Tables on a narrow terminal: nothing wider than it, nothing lost. */
#include "out/table.h"
#include "unit.h"

#include <string.h>

static void fill(struct knee_table *table, size_t rows, size_t columns, uint64_t *seed)
{
    for (size_t row = 0; row < rows; row++)
        for (size_t column = 0; column < columns; column++) {
            unsigned value = (unsigned)(chance(seed) * 1e6);
            bool same = column % 3 == 2 && row > 0;
            knee_table_cell(table,
                            row == 0 ? "head%zu"
                            : same   ? "same%zu"
                                     : "r%zuc%zu.%u",
                            row == 0 || same ? column : row, column, value);
        }
}

/* The longest line of a text. */
static size_t longest_line(const char *text)
{
    size_t longest = 0;
    for (const char *end; *text; text = *end ? end + 1 : end) {
        end = strchr(text, '\n');
        end = end ? end : text + strlen(text);
        longest = (size_t)(end - text) > longest ? (size_t)(end - text) : longest;
    }
    return longest;
}

TEST(narrow_tables_fit_and_lose_nothing)
{
    uint64_t seed = 7;
    for (size_t columns = 1; columns <= KNEE_COLUMNS_MAX; columns++)
        for (int width = 40; width <= 200; width += 40) {
            char align[KNEE_COLUMNS_MAX + 1];
            memset(align, 'r', columns);
            align[columns] = '\0';
            OWNED(knee_table) table;
            OWNED(knee_text) text = {0};
            knee_table_init(&table, align, NULL);
            fill(&table, 5, columns, &seed);
            struct knee_style style = {.table_width = width};
            knee_table_write(&table, KNEE_TEXT, &style, &text);
            assert_false(text.failed);
            const char *said = strstr(text.data, "  the same in every row");
            size_t tables = said ? (size_t)(said - text.data) : text.length;
            const char *cell = table.cells.data;
            for (size_t i = 0; i < table.cell_count; i++, cell += strlen(cell) + 1)
                assert_non_null(strstr(text.data, cell));
            text.data[tables] = '\0';
            assert_true(longest_line(text.data) <= (size_t)width);
        }
}

TEST(a_pipe_gets_all_columns_in_one_line)
{
    uint64_t seed = 7;
    OWNED(knee_table) table;
    OWNED(knee_text) text = {0};
    knee_table_init(&table, "rrrrrrrrrrrrrrrrrrrr", NULL);
    fill(&table, 5, 20, &seed);
    knee_table_write(&table, KNEE_TEXT, &(struct knee_style){0}, &text);
    size_t lines = 0;
    for (const char *c = text.data; *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 5);
}

/* A spreadsheet must not compute what a file's name says; numbers stay numbers, also those that end
 * where an exponent would begin. */
TEST(formulas_are_defused_and_numbers_kept)
{
    static const struct {
        const char *cell, *csv;
    } cases[] = {
        {"-1e", "-1e"},
        {"+12.5 %", "+12.5 %"},
        {"-1e-05 s", "-1e-05 s"},
        {"-1E+3", "-1E+3"},
        {"-0.5", "-0.5"},
        {"+5e3x", "+5e3x"},
        {"-1e-05!", "'-1e-05!"},
        {"=1+1", "'=1+1"},
        {"+SUM(A1)", "'+SUM(A1)"},
        {"@x", "'@x"},
        {"-", "-"},
        {"-a", "'-a"},
        {"\tx", "'\tx"},
        {"1e", "1e"},
        {"", ""},
        {"a\"b", "\"a\"\"b\""},
        {"-1,5", "\"'-1,5\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED(knee_table) table;
        OWNED(knee_text) text = {0};
        char want[64];
        knee_table_init(&table, "ll", NULL);
        knee_table_cell(&table, "%s", cases[i].cell);
        knee_table_cell(&table, "=|"); /* what comes after it does not matter */
        knee_table_write(&table, KNEE_CSV, &(struct knee_style){0}, &text);
        snprintf(want, sizeof want, "%s,'=|\n", cases[i].csv);
        assert_string_equal(text.data, want);
    }
}

/* Rows that their first column does not tell apart get numbers when they are stacked, and so do
 * very many; what is the same in all of them is said once, "-" where it is nothing. */
TEST(stacked_rows_can_be_told_apart)
{
    static const char *const heads[] = {"same", "left", "right", "none"};
    for (size_t rows = 3; rows <= 600; rows += 597)
        for (int color = 0; color < 2; color++) {
            OWNED(knee_table) table;
            OWNED(knee_text) text = {0};
            const struct knee_style style = {.table_width = 30, .color = color};
            knee_table_init(&table, "llrl", NULL);
            for (size_t i = 0; i < 4; i++)
                knee_table_cell(&table, "%s", heads[i]);
            for (size_t row = 0; row < rows; row++) {
                knee_table_cell(&table, rows > 500 ? "%zu" : "all", row);
                knee_table_cell(&table, "a long cell %zu", row);
                knee_table_cell(&table, "another one %zu", row);
                knee_table_cell(&table, "%s", "");
            }
            knee_table_write(&table, KNEE_TEXT, &style, &text);
            assert_non_null(strstr(text.data, "     #"));
            assert_non_null(strstr(text.data, "\n     1"));
            assert_non_null(strstr(text.data, "none -"));
            assert_true((strchr(text.data, '\033') != NULL) == (color > 0));
        }
    OWNED(knee_table) empty;
    struct knee_text text = {0};
    knee_table_init(&empty, "l", NULL);
    knee_table_write(&empty, KNEE_TEXT, &(struct knee_style){0}, &text);
    assert_int_equal(text.length, 0);
}
