/* SPDX-License-Identifier: MIT */
/*
 * An answer as text or Markdown. The default tier is one screen: everything but the table is
 * written first, and the table gets the lines that are left, at most KNEE_SCREEN_ROWS rows and
 * KNEE_SCREEN_COLUMNS columns. A column without a value is not shown; one that has the same value
 * in every row is the first to go where there is no room, then the last ones.
 */
#include "base/format.h"
#include "base/printable.h"
#include "out/answer.h"
#include "out/bar.h"
#include "out/inputs.h"
#include "out/plot.h"
#include "out/words.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define WIDTH 80

struct page {
    const struct knee_answer_view *view;
    enum knee_format format;
    const struct knee_style *style;
    int width;
    bool full;
};

static size_t lines_of(const struct knee_text *text)
{
    size_t lines = 0;
    for (size_t i = 0; i < text->length; i++)
        lines += text->data[i] == '\n';
    return lines;
}

/* ---- Sentences ---- */

/* Sentences quote names and lines of files: no control characters on a terminal. */
static void put_safe(const char *words, size_t length, struct knee_text *text)
{
    for (size_t i = 0; i < length;) {
        size_t whole = knee_printable_length(words + i, length - i);
        if (whole)
            knee_text_add(text, words + i, whole);
        else
            knee_text_puts(text, words[i] == '\n' || words[i] == '\t' ? " " : "?");
        i += whole ? whole : 1;
    }
}

static void put_line(const struct page *page, const char *lead, const struct knee_text *words,
                     const char *color, struct knee_text *text)
{
    struct knee_text line = {.alloc = text->alloc};
    if (!words->length)
        return;
    knee_text_puts(&line, lead);
    if (page->format == KNEE_MARKDOWN)
        knee_markdown_add(&line, words->data, words->length);
    else
        put_safe(words->data, words->length, &line);
    bool colored = color && page->style->color && page->format == KNEE_TEXT;
    knee_text_puts(text, colored ? color : "");
    if (line.data)
        knee_wrap(line.data, page->width, "", text);
    if (colored && text->length > 0 && !text->failed) {
        text->data[--text->length] = '\0'; /* the line break goes behind the colour's end */
        knee_text_puts(text, "\033[0m\n");
    }
    knee_text_end(&line, text);
}

static void put_lines(const struct page *page, const char *lead, const struct knee_text *words,
                      struct knee_text *text)
{
    for (const char *at = words->data; at && *at;) {
        struct knee_text one = {.alloc = text->alloc};
        size_t length = strcspn(at, "\n");
        knee_text_add(&one, at, length);
        put_line(page, lead, &one, NULL, text);
        knee_text_end(&one, text);
        at += length + (at[length] == '\n');
    }
}

static void blank(struct knee_text *text)
{
    if (text->length > 0)
        knee_text_puts(text, "\n");
}

#define BOLD  "\033[1m"
#define ALERT "\033[1;31m"

static void put_head(const struct page *page, struct knee_text *text)
{
    const struct knee_said *said = &page->view->said;
    bool apart = page->format == KNEE_MARKDOWN;
    put_line(page, apart ? "### " : "", &said->title, NULL, text);
    blank(text);
    put_line(page, "", &said->voids, ALERT, text);
    if (apart && said->voids.length)
        blank(text);
    put_line(page, apart ? "**" : "", &said->headline, BOLD, text);
    if (apart && said->headline.length && !text->failed) {
        text->data[--text->length] = '\0';
        knee_text_puts(text, "**\n\n");
    }
    put_line(page, "", &said->reason, NULL, text);
    put_line(page, "", &said->effect, NULL, text);
}

/* -q: one line each, not wrapped, so that a script can take the first. */
static void put_brief(const struct page *page, struct knee_text *text)
{
    const struct knee_said *said = &page->view->said;
    const struct knee_text *const lines[] = {&said->voids, &said->headline, &said->reason,
                                             &said->effect};
    size_t put = 0;
    for (size_t i = 0; i < KNEE_COUNT_OF(lines) && put < 3; i++)
        if (lines[i]->length) {
            size_t length = lines[i]->length;
            while (length > 0 && lines[i]->data[length - 1] == ' ')
                length--;
            put_safe(lines[i]->data, length, text);
            knee_text_puts(text, "\n");
            put++;
        }
}

/* ---- Tables ---- */

/* The cells of a table before it is laid out: rows x columns, the headings first. */
struct grid {
    struct knee_leaf *leaves;
    bool *kept; /* of each column */
    size_t columns, rows;
    struct knee_text cells; /* NUL after each */
    const char **at;        /* rows x columns */
    size_t hidden;          /* rows that are not shown */
    bool full;              /* -v */
};

static bool wanted(const struct page *page, const struct knee_field *field)
{
    return field->heading &&
           (field->tier == KNEE_TIER_SCREEN || (page->full && field->tier == KNEE_TIER_FULL));
}

static bool pick(const struct page *page, const struct knee_view *view, const struct knee_at *row,
                 size_t shown, size_t most)
{
    if (page->full || page->format == KNEE_MARKDOWN)
        return !view->most_full || shown < view->most_full;
    return shown < most && (!view->pick || view->pick(row));
}

/* A line that says what the rows after it have in common. */
static void grid_group(struct grid *grid, const char *words)
{
    for (size_t i = 0; i < grid->columns; i++) {
        knee_text_puts(&grid->cells, i == 0 ? words : "");
        knee_text_add(&grid->cells, "", 1);
    }
    grid->rows++;
}

static void grid_row(const struct page *page, struct grid *grid, const struct knee_at *row)
{
    for (size_t i = 0; i < grid->columns; i++) {
        struct knee_value value;
        struct knee_text cell = {.alloc = grid->cells.alloc};
        knee_leaf_value(&grid->leaves[i], row, grid->cells.alloc, &value);
        if (grid->leaves[i].field->bare && !grid->full)
            value.low = value.high = value.number;
        knee_value_show(&value, grid->leaves[i].field->kind, &cell);
        /* A column of zeros goes, unless it stands alone as the risk of a plan does. */
        grid->kept[i] =
            grid->kept[i] ||
            (!knee_value_empty(&value) &&
             (value.is != KNEE_A_NUMBER || value.number != 0 || grid->leaves[i].field->bare));
        /* Texts come from files too: no control characters on a terminal */
        size_t most = i == 0 && !page->full && page->format == KNEE_TEXT ? 44 : 200;
        knee_text_puts(&grid->cells, cell.data ? knee_safe(cell.data, most).s : "");
        knee_text_add(&grid->cells, "", 1);
        knee_text_end(&cell, &grid->cells);
        knee_value_release(&value);
    }
    grid->rows++;
}

static void grid_fill(const struct page *page, const struct knee_view *view,
                      const struct knee_found_list *list, size_t most, struct grid *grid)
{
    struct knee_at row = {.up = &list->at, .said = list->at.said};
    const char *group = NULL;
    size_t shown = 0;
    for (size_t i = 0; i < grid->columns; i++) {
        knee_text_puts(&grid->cells, grid->leaves[i].field->heading);
        knee_text_add(&grid->cells, "", 1);
    }
    grid->rows = 1;
    for (; (row.row = knee_row_at(list->field, &list->at, row.index)) != NULL; row.index++) {
        if (!pick(page, view, &row, shown, most)) {
            grid->hidden++;
            continue;
        }
        const char *of = view->group ? view->group(&row) : NULL;
        if (of && of != group && page->format != KNEE_MARKDOWN)
            grid_group(grid, of);
        group = of;
        grid_row(page, grid, &row);
        shown++;
    }
}

static void grid_index(struct grid *grid)
{
    const char *cell = grid->cells.data;
    for (size_t i = 0; i < grid->rows * grid->columns; i++, cell += strlen(cell) + 1)
        grid->at[i] = cell;
}

/* Columns that are kept, and how wide they are together. */
static size_t grid_kept(const struct grid *grid, size_t *width)
{
    size_t kept = 0;
    *width = 0;
    for (size_t i = 0; i < grid->columns; i++) {
        size_t widest = 0;
        for (size_t row = 0; row < grid->rows; row++) {
            size_t cell = knee_display_width(grid->at[row * grid->columns + i]);
            widest = cell > widest ? cell : widest;
        }
        *width += grid->kept[i] ? 2 + widest : 0;
        kept += grid->kept[i] && *grid->leaves[i].field->heading; /* a mark is not a column */
    }
    return kept;
}

static bool grid_constant(const struct grid *grid, size_t column)
{
    for (size_t row = 2; row < grid->rows; row++)
        if (strcmp(grid->at[row * grid->columns + column], grid->at[grid->columns + column]) != 0)
            return false;
    return grid->rows > 2;
}

/* On a screen: at most KNEE_SCREEN_COLUMNS of them, in its width. The first stays, and so does a
 * mark ("<- use"), which has no heading. */
static void grid_narrow(const struct page *page, struct grid *grid)
{
    for (int constant = 1; constant >= 0; constant--)
        for (size_t i = grid->columns; i-- > 1;) {
            size_t width, kept = grid_kept(grid, &width);
            if (kept <= KNEE_SCREEN_COLUMNS && width <= (size_t)page->width)
                return;
            bool mark = !*grid->leaves[i].field->heading;
            if (grid->kept[i] && !mark && (!constant || grid_constant(grid, i)))
                grid->kept[i] = false;
        }
}

static void grid_write(const struct page *page, const struct grid *grid, struct knee_text *text)
{
    struct knee_table table;
    struct knee_style style = *page->style;
    knee_table_init(&table, "", text->alloc);
    for (size_t i = 0; i < grid->columns; i++)
        if (grid->kept[i]) {
            bool left = grid->leaves[i].field->kind == KNEE_AS_TEXT;
            knee_text_puts(&table.align, left ? "l" : "r");
            table.columns++;
        }
    for (size_t row = 0; row < grid->rows; row++)
        for (size_t i = 0; i < grid->columns; i++)
            if (grid->kept[i])
                knee_table_cell(&table, "%s", grid->at[row * grid->columns + i]);
    knee_table_write(&table, page->format, &style, text);
    knee_table_release(&table);
    if (grid->hidden)
        knee_text_printf(text, "  %zu more row%s %s\n", grid->hidden, grid->hidden == 1 ? "" : "s",
                         page->full ? "in --json" : "with -v");
}

static bool grid_begin(const struct page *page, const struct knee_found_list *list,
                       struct grid *grid, const struct knee_alloc *alloc)
{
    size_t all;
    *grid = (struct grid){.cells = {.alloc = alloc}, .full = page->full};
    grid->leaves = knee_leaves(list->field, alloc, &all);
    grid->kept = knee_resize(alloc, NULL, (all + 1) * sizeof *grid->kept);
    if (!grid->leaves || !grid->kept)
        return false;
    for (size_t i = 0; i < all; i++)
        if (wanted(page, grid->leaves[i].field)) {
            grid->kept[grid->columns] = false;
            grid->leaves[grid->columns++] = grid->leaves[i];
        }
    return true;
}

static void grid_release(struct grid *grid)
{
    const struct knee_alloc *alloc = grid->cells.alloc;
    knee_resize(alloc, grid->leaves, 0);
    knee_resize(alloc, grid->kept, 0);
    knee_resize(alloc, (void *)grid->at, 0);
    knee_text_release(&grid->cells);
}

static void put_rows(const struct page *page, const struct knee_view *view,
                     const struct knee_found_list *list, size_t most, struct knee_text *text)
{
    struct grid grid;
    bool there = grid_begin(page, list, &grid, text->alloc);
    if (there) {
        grid_fill(page, view, list, most, &grid);
        grid.at = knee_resize(text->alloc, NULL, (grid.rows * grid.columns + 1) * sizeof *grid.at);
        there = grid.at && !grid.cells.failed;
    }
    if (there && grid.rows > 1 && grid.columns > 0) {
        grid_index(&grid);
        grid.kept[0] = true;
        if (!page->full && page->format == KNEE_TEXT)
            grid_narrow(page, &grid);
        grid_write(page, &grid, text);
    }
    text->failed = text->failed || !there;
    grid_release(&grid);
}

/* ---- Blocks ---- */

static void put_block_line(const struct page *page, const char *indent,
                           const struct knee_text *words, struct knee_text *text)
{
    struct knee_text safe = {.alloc = text->alloc};
    put_safe(words->data ? words->data : "", words->length, &safe);
    if (safe.data)
        knee_wrap(safe.data, page->width, indent, text);
    knee_text_end(&safe, text);
}

static void put_block(const struct page *page, const struct knee_leaf *leaves, size_t count,
                      const struct knee_at *row, struct knee_text *text)
{
    bool markdown = page->format == KNEE_MARKDOWN;
    struct knee_text first = {.alloc = text->alloc}, rest = {.alloc = text->alloc};
    for (size_t i = 0; i < count; i++) {
        struct knee_value value;
        struct knee_text line = {.alloc = text->alloc};
        const char *heading = leaves[i].field->heading;
        if (!wanted(page, leaves[i].field))
            continue;
        knee_leaf_value(&leaves[i], row, text->alloc, &value);
        if (*heading)
            knee_text_printf(&line, "%s: ", heading);
        if (!knee_value_empty(&value))
            knee_value_show(&value, leaves[i].field->kind, *heading ? &line : &first);
        if (*heading && !knee_value_empty(&value))
            put_block_line(page, markdown ? "  " : "      ", &line, &rest);
        first.failed = first.failed || line.failed || value.words.failed;
        knee_text_release(&line);
        knee_value_release(&value);
    }
    if (markdown)
        knee_text_puts(text, "- ");
    put_block_line(page, "", &first, text);
    knee_text_move(&rest, text);
    knee_text_end(&first, text);
}

/* As many as there are lines for. */
static void put_blocks(const struct page *page, const struct knee_view *view,
                       const struct knee_found_list *list, size_t lines, struct knee_text *text)
{
    size_t count, hidden = 0;
    struct knee_leaf *leaves = knee_leaves(list->field, text->alloc, &count);
    struct knee_at row = {.up = &list->at, .said = list->at.said};
    text->failed = text->failed || !leaves;
    for (; leaves && (row.row = knee_row_at(list->field, &list->at, row.index)) != NULL;
         row.index++) {
        struct knee_text block = {.alloc = text->alloc};
        bool all = page->full || page->format == KNEE_MARKDOWN;
        if (!all && view->pick && !view->pick(&row))
            continue;
        put_block(page, leaves, count, &row, &block);
        hidden += !all && (hidden || lines_of(text) + lines_of(&block) > lines);
        if (hidden)
            knee_text_end(&block, text);
        else
            knee_text_move(&block, text);
    }
    if (hidden)
        knee_text_printf(text, "%zu more with -v\n", hidden);
    knee_resize(text->alloc, leaves, 0);
}

/* An object: one row for each value that it has. */
static void put_object(const struct page *page, const struct knee_found_list *object,
                       struct knee_text *text)
{
    const struct knee_field *field = object->field;
    struct knee_at at = {
        .row = knee_object_at(field, &object->at), .up = &object->at, .said = object->at.said};
    size_t count;
    struct knee_leaf *leaves = knee_leaves(field, text->alloc, &count);
    struct knee_table table;
    text->failed = text->failed || !leaves;
    if (!leaves || !at.row) {
        knee_resize(text->alloc, leaves, 0);
        return;
    }
    knee_table_init(&table, "lr", text->alloc);
    knee_table_cell(&table, "%s", field->heading ? field->heading : field->key);
    knee_table_cell(&table, "%s", "");
    for (size_t i = 0; i < count; i++) {
        struct knee_value value;
        struct knee_text cell = {.alloc = text->alloc};
        knee_leaf_value(&leaves[i], &at, text->alloc, &value);
        if (wanted(page, leaves[i].field) && !knee_value_empty(&value)) {
            knee_value_show(&value, leaves[i].field->kind, &cell);
            knee_table_cell(&table, "%s", leaves[i].field->heading);
            knee_table_cell(&table, "%s", cell.data ? knee_safe(cell.data, 200).s : "");
        }
        text->failed = text->failed || cell.failed || value.words.failed;
        knee_text_release(&cell);
        knee_value_release(&value);
    }
    if (table.cell_count > 2)
        knee_table_write(&table, page->format, page->style, text);
    knee_table_release(&table);
    knee_resize(text->alloc, leaves, 0);
}

/* A list as a table with its title, after an empty line; nothing where it has no rows. */
static void put_view(const struct page *page, const struct knee_view *view, size_t most,
                     struct knee_text *text)
{
    struct knee_found_list list;
    struct knee_text table = {.alloc = text->alloc};
    if (!knee_answer_list(page->view, view->list, &list))
        return;
    if (list.field->kind == KNEE_AS_INPUTS)
        knee_inputs_write(list.field->keys, knee_object_at(list.field, &list.at), page->format,
                          page->style, &table);
    else if (view->blocks)
        put_blocks(page, view, &list, most, &table);
    else if (list.field->kind == KNEE_AS_OBJECT)
        put_object(page, &list, &table);
    else
        put_rows(page, view, &list, most, &table);
    if (table.length) {
        blank(text);
        if (view->title && (page->full || page->format == KNEE_MARKDOWN))
            knee_text_printf(text, page->format == KNEE_MARKDOWN ? "#### %s\n\n" : "%s\n",
                             view->title);
    }
    knee_text_move(&table, text);
}

/* ---- Pictures ---- */

static void put_bar(const struct page *page, const struct knee_picture *picture,
                    struct knee_text *text)
{
    struct knee_bar_part parts[KNEE_PARTS_MAX];
    size_t count = picture->bar(page->view->top.row, parts);
    if (count)
        knee_parts_write(parts, count, page->style, text);
}

static void put_curve(const struct page *page, const struct knee_picture *picture,
                      struct knee_text *text)
{
    struct knee_plot_line line = {.mark = NAN, .level = NAN};
    picture->curve(page->view->top.row, &line);
    if (line.count < 2)
        return;
    double *xy = knee_resize(text->alloc, NULL, 2 * line.count * sizeof *xy);
    if (!xy) {
        text->failed = true;
        return;
    }
    line.x = xy;
    line.y = xy + line.count;
    picture->curve(page->view->top.row, &line);
    struct knee_plot plot = {.x = line.x,
                             .y = line.y,
                             .count = line.count,
                             .y_max = 1,
                             .level = line.level,
                             .mark = line.mark,
                             .title = line.y_name,
                             .mark_name = line.mark_name,
                             .level_name = line.level_name,
                             .x_name = line.x_name};
    knee_plot_write(&plot, page->style, text);
    knee_resize(text->alloc, xy, 0);
}

/* Bars come before the table, curves after it. */
static void put_pictures(const struct page *page, bool bars, struct knee_text *text)
{
    const struct knee_answer_type *type = page->view->type;
    for (size_t i = 0; i < type->picture_count && page->format == KNEE_TEXT; i++) {
        const struct knee_picture *picture = &type->pictures[i];
        struct knee_text drawn = {.alloc = text->alloc};
        if ((picture->tier == KNEE_TIER_FULL && !page->full) || (picture->bar != NULL) != bars)
            continue;
        if (picture->bar)
            put_bar(page, picture, &drawn);
        else
            put_curve(page, picture, &drawn);
        if (drawn.length)
            blank(text);
        knee_text_move(&drawn, text);
    }
}

/* ---- The whole ---- */

static void put_foot(const struct page *page, struct knee_text *text)
{
    const struct knee_said *said = &page->view->said;
    put_lines(page, "", &said->after, text);
    put_line(page, "Assumed: ", &said->assumed, NULL, text);
    put_line(page, "Next: ", &said->next, NULL, text);
}

/* Tables of this tier, with the lines that are left for their rows. */
static void put_views(const struct page *page, enum knee_tier tier, size_t lines,
                      struct knee_text *text)
{
    const struct knee_answer_type *type = page->view->type;
    for (size_t i = 0; i < type->view_count; i++) {
        const struct knee_view *view = &type->views[i];
        size_t used = lines_of(text), frame = 3; /* empty line, headings, "more rows" */
        size_t most = view->blocks ? lines : view->most ? view->most : KNEE_SCREEN_ROWS;
        bool here = page->full || !view->when || view->when(page->view->top.row);
        if (view->tier != tier || !here || (!page->full && used + frame >= lines))
            continue;
        most = most < lines - used - frame ? most : lines - used - frame;
        put_view(page, view, most, text);
    }
}

static void put_page(const struct page *page, struct knee_text *text)
{
    struct knee_text foot = {.alloc = text->alloc}, pictures = {.alloc = text->alloc};
    put_head(page, text);
    put_pictures(page, true, text);
    put_pictures(page, false, &pictures);
    put_foot(page, &foot);
    size_t rest = lines_of(&foot) + lines_of(&pictures) + (pictures.length ? 1 : 0);
    size_t lines = page->full                 ? SIZE_MAX / 2
                   : rest < KNEE_SCREEN_LINES ? KNEE_SCREEN_LINES - rest
                                              : 0;
    put_views(page, KNEE_TIER_SCREEN, lines, text);
    if (pictures.length)
        blank(text);
    knee_text_move(&pictures, text);
    if (page->full)
        put_views(page, KNEE_TIER_FULL, lines, text);
    if (foot.length && page->format == KNEE_MARKDOWN)
        blank(text);
    knee_text_move(&foot, text);
    if (page->full && page->view->said.notes.length) {
        blank(text);
        put_lines(page, "Note: ", &page->view->said.notes, text);
    }
}

void knee_answer_text(const struct knee_answer_view *view, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text)
{
    struct page page = {
        .view = view,
        .format = format,
        .style = style,
        .width = format == KNEE_MARKDOWN ? 1 << 20
                 : style->width > 20     ? style->width
                                         : WIDTH,
        .full = style->tier == KNEE_TIER_FULL,
    };
    if (style->tier == KNEE_TIER_BRIEF)
        put_brief(&page, text);
    else
        put_page(&page, text);
}
