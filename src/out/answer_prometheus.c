/* SPDX-License-Identifier: MIT */
/* Metrics of an answer: each field that has a name in Prometheus, rows distinguished by the fields
 * that are labels. A value that is unknown or not finite has no line. */
#include "base/number.h"
#include "out/answer.h"

#include <math.h>
#include <string.h>

struct metrics {
    const struct knee_answer_type *type;
    struct knee_at top;
};

static void put_label(const char *value, struct knee_text *text)
{
    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            knee_text_puts(text, "\\");
        if (*value == '\n')
            knee_text_puts(text, "\\n");
        else
            knee_text_add(text, value, 1);
    }
}

/* rank="3",host="node1": the fields of one row that are labels. */
static void put_labels_of(const struct knee_field *fields, size_t count, const struct knee_at *row,
                          const char **before, struct knee_text *text)
{
    for (size_t i = 0; i < count; i++) {
        struct knee_value value;
        struct knee_text shown = {.alloc = text->alloc};
        char exact[48];
        if (!fields[i].label)
            continue;
        knee_value_of(&fields[i], row, text->alloc, &value);
        knee_number_exact(exact, sizeof exact, value.number);
        if (value.is == KNEE_A_NUMBER)
            knee_text_puts(&shown, exact);
        else
            knee_value_show(&value, KNEE_AS_TEXT, &shown);
        knee_text_printf(text, "%s%s=\"", *before, fields[i].key);
        put_label(shown.data ? shown.data : "", text);
        knee_text_puts(text, "\"");
        *before = ",";
        knee_text_end(&shown, text);
        knee_value_release(&value);
    }
}

/* {job="a",rank="3"}: those of the answer, then those of the row; nothing where there are none. */
static void put_labels(const struct metrics *of, const struct knee_field *list,
                       const struct knee_at *row, struct knee_text *text)
{
    const char *before = "{";
    put_labels_of(of->type->fields, of->type->field_count, &of->top, &before, text);
    if (list)
        put_labels_of(list->fields, list->field_count, row, &before, text);
    knee_text_puts(text, *before == ',' ? "}" : "");
}

/* HELP and TYPE stand before the first sample of a metric that has one. */
static void put_sample(const struct metrics *of, const struct knee_field *field,
                       const struct knee_field *list, const struct knee_at *at, bool *begun,
                       struct knee_text *text)
{
    struct knee_value value;
    char exact[48];
    if (!knee_field_there(field, at))
        return;
    knee_value_of(field, at, text->alloc, &value);
    if (value.is != KNEE_NOTHING && value.is != KNEE_A_TEXT && isfinite(value.number)) {
        if (!*begun)
            knee_text_printf(text, "# HELP %s %s\n# TYPE %s gauge\n", field->metric,
                             field->about ? field->about : "", field->metric);
        *begun = true;
        knee_number_exact(exact, sizeof exact, value.number);
        knee_text_puts(text, field->metric);
        put_labels(of, list, at, text);
        knee_text_printf(text, " %s\n", exact);
    }
    knee_value_release(&value);
}

static void put_fields(const struct metrics *of, const struct knee_field *fields, size_t count,
                       const struct knee_at *at, struct knee_text *text);

static void put_metric(const struct metrics *of, const struct knee_field *field,
                       const struct knee_field *list, const struct knee_at *at,
                       struct knee_text *text)
{
    bool begun = false;
    if (!list) {
        put_sample(of, field, NULL, at, &begun, text);
        return;
    }
    struct knee_at row = {.up = at, .said = at->said};
    for (; (row.row = knee_row_at(list, at, row.index)) != NULL; row.index++)
        put_sample(of, field, list, &row, &begun, text);
}

static void put_list(const struct metrics *of, const struct knee_field *list,
                     const struct knee_at *at, struct knee_text *text)
{
    for (size_t i = 0; i < list->field_count; i++)
        if (list->fields[i].metric)
            put_metric(of, &list->fields[i], list, at, text);
}

static void put_object(const struct metrics *of, const struct knee_field *field,
                       const struct knee_at *at, struct knee_text *text)
{
    struct knee_at inside = {.row = knee_object_at(field, at), .up = at, .said = at->said};
    if (inside.row)
        put_fields(of, field->fields, field->field_count, &inside, text);
}

static void put_fields(const struct metrics *of, const struct knee_field *fields, size_t count,
                       const struct knee_at *at, struct knee_text *text)
{
    for (size_t i = 0; i < count; i++) {
        const struct knee_field *field = &fields[i];
        if (!knee_field_there(field, at))
            continue;
        if (field->kind == KNEE_AS_LIST)
            put_list(of, field, at, text);
        else if (field->kind == KNEE_AS_OBJECT || field->kind == KNEE_AS_INLINE)
            put_object(of, field, at, text);
        else if (field->metric)
            put_metric(of, field, NULL, at, text);
    }
}

void knee_answer_prometheus(const struct knee_answer_type *type, const void *result,
                            struct knee_text *text)
{
    struct knee_said said;
    struct metrics of = {.type = type, .top = {.row = result, .said = &said}};
    knee_said_init(&said, text->alloc);
    put_fields(&of, type->fields, type->field_count, &of.top, text);
    knee_said_release(&said);
}
