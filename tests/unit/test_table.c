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

static void narrow_tables_fit_and_lose_nothing(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (size_t columns = 1; columns <= KNEE_COLUMNS_MAX; columns++)
        for (int width = 40; width <= 200; width += 40) {
            char align[KNEE_COLUMNS_MAX + 1];
            memset(align, 'r', columns);
            align[columns] = '\0';
            struct knee_table table;
            struct knee_text text = {0};
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
            knee_text_release(&text);
            knee_table_release(&table);
        }
}

static void a_pipe_gets_all_columns_in_one_line(void **state)
{
    (void)state;
    uint64_t seed = 7;
    struct knee_table table;
    struct knee_text text = {0};
    knee_table_init(&table, "rrrrrrrrrrrrrrrrrrrr", NULL);
    fill(&table, 5, 20, &seed);
    knee_table_write(&table, KNEE_TEXT, &(struct knee_style){0}, &text);
    size_t lines = 0;
    for (const char *c = text.data; *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 5);
    knee_text_release(&text);
    knee_table_release(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrow_tables_fit_and_lose_nothing),
        cmocka_unit_test(a_pipe_gets_all_columns_in_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
