/* SPDX-License-Identifier: MIT */
/* Finding lists and values in an answer, and which renderer writes it. */
#include "base/slice.h"
#include "out/answer.h"

#include <string.h>

/* ---- The values of a row ---- */

struct walk {
    struct knee_leaf now;
    struct knee_leaf *out;
    size_t count;
};

static void find_leaves(struct walk *walk, const struct knee_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct knee_field *field = &fields[i];
        if (field->kind == KNEE_AS_LIST || field->kind == KNEE_AS_INPUTS ||
            (field->metric && !field->key))
            continue;
        if (field->kind == KNEE_AS_OBJECT || field->kind == KNEE_AS_INLINE) {
            if (walk->now.depth == KNEE_LEAF_DEPTH)
                continue;
            walk->now.way[walk->now.depth++] = field;
            find_leaves(walk, field->fields, field->field_count);
            walk->now.depth--;
            continue;
        }
        walk->now.field = field;
        if (walk->out)
            walk->out[walk->count] = walk->now;
        walk->count++;
    }
}

struct knee_leaf *knee_leaves(const struct knee_field *list, const struct knee_alloc *alloc,
                              size_t *count)
{
    struct walk walk = {.out = NULL};
    find_leaves(&walk, list->fields, list->field_count);
    *count = walk.count;
    walk = (struct walk){.out = knee_resize(alloc, NULL, (walk.count + 1) * sizeof *walk.out)};
    if (walk.out)
        find_leaves(&walk, list->fields, list->field_count);
    return walk.out;
}

void knee_leaf_value(const struct knee_leaf *leaf, const struct knee_at *row,
                     const struct knee_alloc *alloc, struct knee_value *out)
{
    struct knee_at inside[KNEE_LEAF_DEPTH + 1] = {*row};
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < leaf->depth; i++) {
        if (!knee_field_there(leaf->way[i], &inside[i]))
            return;
        inside[i + 1] = (struct knee_at){.row = knee_object_at(leaf->way[i], &inside[i]),
                                         .up = &inside[i],
                                         .index = row->index,
                                         .said = row->said};
        if (!inside[i + 1].row)
            return;
    }
    if (knee_field_there(leaf->field, &inside[leaf->depth]))
        knee_value_of(leaf->field, &inside[leaf->depth], alloc, out);
}

/* ---- Lists by their path ---- */

/* The field of that name among these or in structs inlined among them; *at moves inside. */
static const struct knee_field *named(const struct knee_field *fields, size_t count,
                                      struct knee_slice name, struct knee_at *at,
                                      struct knee_found_list *out)
{
    for (size_t i = 0; i < count; i++)
        if (fields[i].key && knee_slice_is(name, fields[i].key))
            return &fields[i];
    for (size_t i = 0; i < count; i++) {
        const struct knee_field *field = &fields[i];
        if (field->kind != KNEE_AS_INLINE || out->depth == KNEE_LEAF_DEPTH ||
            !knee_field_there(field, at))
            continue;
        struct knee_at before = out->inside[out->depth++] = *at;
        *at = (struct knee_at){.row = knee_object_at(field, &before),
                               .up = &out->inside[out->depth - 1],
                               .said = before.said};
        const struct knee_field *found =
            at->row ? named(field->fields, field->field_count, name, at, out) : NULL;
        if (found)
            return found;
        *at = before;
        out->depth--;
    }
    return NULL;
}

bool knee_answer_list(const struct knee_answer_view *view, const char *path,
                      struct knee_found_list *out)
{
    const struct knee_field *fields = view->type->fields;
    size_t count = view->type->field_count;
    struct knee_at at = view->top;
    out->depth = 0;
    while (out->depth < KNEE_LEAF_DEPTH) {
        size_t length = strcspn(path, ".");
        const struct knee_field *field =
            named(fields, count, (struct knee_slice){path, length}, &at, out);
        if (!field || !knee_field_there(field, &at))
            return false;
        if (!path[length]) {
            out->field = field;
            out->at = at;
            return field->kind == KNEE_AS_LIST || field->kind == KNEE_AS_INPUTS ||
                   field->kind == KNEE_AS_OBJECT;
        }
        if (out->depth == KNEE_LEAF_DEPTH)
            return false;
        out->inside[out->depth] = at;
        at = (struct knee_at){
            .row = knee_object_at(field, &at), .up = &out->inside[out->depth++], .said = at.said};
        if (!at.row)
            return false;
        fields = field->fields;
        count = field->field_count;
        path += length + 1;
    }
    return false;
}

/* ---- Any format ---- */

void knee_answer_write(const struct knee_answer_type *type, const void *result,
                       enum knee_format format, const struct knee_style *style,
                       struct knee_text *text)
{
    struct knee_answer_view view = {.type = type, .top = {.row = result, .said = &view.said}};
    knee_said_init(&view.said, text->alloc);
    if (type->say)
        type->say(result, &view.said);
    text->failed = text->failed || knee_said_failed(&view.said);
    if (format == KNEE_JSON)
        knee_answer_json(&view, text);
#if !KNEE_JSON_ONLY /* the page has JSON alone */
    else if (format == KNEE_CSV)
        knee_answer_csv(&view, text);
    else
        knee_answer_text(&view, format, style, text);
#else
    (void)style;
#endif
    knee_said_release(&view.said);
}
