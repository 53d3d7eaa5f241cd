/* SPDX-License-Identifier: MIT */
/* An answer for machines: JSON is the tree of fields, CSV the rows of the first view. */
#include "base/number.h"
#include "out/answer.h"
#include "out/inputs.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ---- JSON ---- */

static void json_fields(struct knee_json *json, const struct knee_field *fields, size_t count,
                        const struct knee_at *at);

static void json_value(struct knee_json *json, const struct knee_field *field,
                       const struct knee_at *at)
{
    struct knee_value value;
    knee_value_of(field, at, json->text->alloc, &value);
    json->text->failed = json->text->failed || value.words.failed;
    if (value.is == KNEE_A_TEXT)
        knee_json_string(json, field->key, knee_value_string(&value));
    else if (value.is == KNEE_A_BOOL)
        knee_json_bool(json, field->key, value.number != 0);
    else if (value.is == KNEE_NANOSECONDS)
        knee_json_ns(json, field->key, value.whole, true);
    else if (field->interval)
        knee_json_sure(json, field->key, value.number, (struct knee_sure){value.low, value.high});
    else if (value.is == KNEE_NOTHING && field->kind == KNEE_AS_TEXT)
        knee_json_string(json, field->key, NULL);
    else
        knee_json_number(json, field->key, value.number);
    knee_value_release(&value);
}

static void json_row(struct knee_json *json, const struct knee_field *list,
                     const struct knee_at *row)
{
    bool bare = list->field_count == 1 && !list->fields[0].key;
    if (bare) {
        json_value(json, list->fields, row);
        return;
    }
    knee_json_begin(json, NULL, '{', !list->tall);
    json_fields(json, list->fields, list->field_count, row);
    knee_json_close(json, '}');
}

static void json_list(struct knee_json *json, const struct knee_field *list,
                      const struct knee_at *at)
{
    struct knee_at row = {.up = at, .said = at->said};
    knee_json_begin(json, list->key, '[',
                    !list->tall && list->field_count == 1 && !list->fields[0].key);
    for (; (row.row = knee_row_at(list, at, row.index)) != NULL; row.index++)
        json_row(json, list, &row);
    knee_json_close(json, ']');
}

static void json_object(struct knee_json *json, const struct knee_field *field,
                        const struct knee_at *at)
{
    struct knee_at inside = {
        .row = knee_object_at(field, at), .up = at, .index = at->index, .said = at->said};
    bool braces = field->kind == KNEE_AS_OBJECT;
    if (!inside.row) {
        if (braces)
            knee_json_string(json, field->key, NULL);
        return;
    }
    if (braces)
        knee_json_begin(json, field->key, '{', field->flat);
    json_fields(json, field->fields, field->field_count, &inside);
    if (braces)
        knee_json_close(json, '}');
}

static void json_fields(struct knee_json *json, const struct knee_field *fields, size_t count,
                        const struct knee_at *at)
{
    for (size_t i = 0; i < count; i++) {
        const struct knee_field *field = &fields[i];
        bool unnamed = !field->key && field->kind != KNEE_AS_INLINE; /* of text or metrics alone */
        if (unnamed || !knee_field_there(field, at))
            continue;
        switch (field->kind) {
        case KNEE_AS_OBJECT:
        case KNEE_AS_INLINE: json_object(json, field, at); break;
        case KNEE_AS_LIST: json_list(json, field, at); break;
        case KNEE_AS_INPUTS: knee_inputs_json(field->keys, knee_object_at(field, at), json); break;
        default: json_value(json, field, at);
        }
    }
}

static void json_line(struct knee_json *json, const char *key, const struct knee_text *words)
{
    knee_json_string(json, key, words->length ? words->data : NULL);
}

static void json_lines(struct knee_json *json, const char *key, const struct knee_text *words)
{
    knee_json_open(json, key, '[');
    for (const char *line = words->data; line && *line;) {
        struct knee_text one = {.alloc = json->text->alloc};
        size_t length = strcspn(line, "\n");
        knee_text_add(&one, line, length);
        if (length)
            knee_json_words(json, NULL, &one);
        knee_text_release(&one);
        line += length + (line[length] == '\n');
    }
    knee_json_close(json, ']');
}

void knee_answer_json(const struct knee_answer_view *view, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    const struct knee_said *said = &view->said;
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", view->type->schema);
    if (view->type->say) {
        knee_json_open(&json, "answer", '{');
        json_line(&json, "title", &said->title);
        json_line(&json, "void", &said->voids);
        json_line(&json, "headline", &said->headline);
        json_line(&json, "reason", &said->reason);
        json_line(&json, "effect", &said->effect);
        json_lines(&json, "after", &said->after);
        json_line(&json, "assumed", &said->assumed);
        json_line(&json, "next", &said->next);
        json_lines(&json, "notes", &said->notes);
        knee_json_close(&json, '}');
    }
    json_fields(&json, view->type->fields, view->type->field_count, &view->top);
    knee_json_close(&json, '}');
}

/* ---- CSV ---- */

static void csv_heads(const struct knee_leaf *leaf, struct knee_table *table)
{
    struct knee_text name = {.alloc = table->cells.alloc};
    for (size_t i = 0; i < leaf->depth; i++)
        if (leaf->way[i]->key)
            knee_text_printf(&name, "%s_", leaf->way[i]->key);
    knee_text_puts(&name, leaf->field->key ? leaf->field->key : "value");
    const char *key = name.data ? name.data : "";
    knee_table_cell(table, "%s", key);
    if (leaf->field->interval) {
        const char *of = strcmp(key, "step_s") == 0 ? "s" : key; /* as in JSON */
        knee_table_cell(table, "low_%s", of);
        knee_table_cell(table, "high_%s", of);
    }
    knee_text_end(&name, &table->cells);
}

static void csv_cell(const struct knee_leaf *leaf, const struct knee_at *row,
                     struct knee_table *table)
{
    struct knee_value value;
    char exact[48];
    knee_leaf_value(leaf, row, table->cells.alloc, &value);
    table->cells.failed = table->cells.failed || value.words.failed;
    if (value.is == KNEE_A_TEXT)
        knee_table_cell(table, "%s", knee_value_string(&value));
    else if (value.is == KNEE_NANOSECONDS) {
        knee_number_ns(exact, sizeof exact, value.whole);
        knee_table_cell(table, "%s", exact);
    } else if (value.is == KNEE_A_BOOL)
        knee_table_cell(table, "%s", value.number != 0 ? "true" : "false");
    else if (value.is == KNEE_NOTHING)
        knee_table_cell(table, "%s", "");
    else
        knee_table_exact(table, value.number);
    if (leaf->field->interval) {
        knee_table_exact(table, value.is == KNEE_NOTHING ? (double)NAN : value.low);
        knee_table_exact(table, value.is == KNEE_NOTHING ? (double)NAN : value.high);
    }
    knee_value_release(&value);
}

static void csv_rows(const struct knee_found_list *list, struct knee_leaf *leaves, size_t count,
                     struct knee_text *text)
{
    struct knee_table table;
    size_t columns = 0;
    for (size_t i = 0; i < count; i++)
        columns += leaves[i].field->interval ? 3 : 1;
    knee_table_begin(&table, columns, text->alloc);
    for (size_t i = 0; i < count; i++)
        csv_heads(&leaves[i], &table);
    struct knee_at row = {.up = &list->at, .said = list->at.said};
    for (; (row.row = knee_row_at(list->field, &list->at, row.index)) != NULL; row.index++)
        for (size_t i = 0; i < count; i++)
            csv_cell(&leaves[i], &row, &table);
    knee_table_write(&table, KNEE_CSV, &(struct knee_style){0}, text);
    knee_table_release(&table);
}

void knee_answer_csv(const struct knee_answer_view *view, struct knee_text *text)
{
    struct knee_found_list list;
    if (!view->type->view_count || !knee_answer_list(view, view->type->views[0].list, &list) ||
        list.field->kind != KNEE_AS_LIST)
        return;
    size_t count, named = 0;
    struct knee_leaf *leaves = knee_leaves(list.field, text->alloc, &count);
    text->failed = text->failed || !leaves;
    for (size_t i = 0; leaves && i < count; i++)
        if (leaves[i].field->key || count == 1)
            leaves[named++] = leaves[i];
    if (leaves)
        csv_rows(&list, leaves, named, text);
    knee_resize(text->alloc, leaves, 0);
}
