/* SPDX-License-Identifier: MIT */
/*
 * Renders any answer that src/say/fields.h describes. Nothing here knows a command.
 *
 * Text has three tiers (style->tier): -q prints headline, reason and effect, at most three lines;
 * the default prints one screen of at most KNEE_SCREEN_LINES lines; -v prints everything.
 */
#ifndef KNEE_OUT_ANSWER_H
#define KNEE_OUT_ANSWER_H

#include "knee_out.h"
#include "out/json.h"
#include "out/table.h"
#include "say/fields.h"

#define KNEE_SCREEN_LINES   24
#define KNEE_SCREEN_ROWS    8
#define KNEE_SCREEN_COLUMNS 6

void knee_answer_write(const struct knee_answer_type *type, const void *result,
                       enum knee_format format, const struct knee_style *style,
                       struct knee_text *text);
/* Every field that has a metric, as Prometheus reads it. */
void knee_answer_prometheus(const struct knee_answer_type *type, const void *result,
                            struct knee_text *text);
/* The keys of an answer with what they mean, as Markdown; and the tree of fields as JSON. */
void knee_answer_document(const struct knee_answer_type *type, struct knee_text *text);
void knee_answer_schema(const struct knee_answer_type *type, struct knee_text *text);

/* ---- For the renderers ---- */

/* The sentences about a result, and the result as the first row. */
struct knee_answer_view {
    const struct knee_answer_type *type;
    struct knee_said said;
    struct knee_at top;
};
void knee_answer_json(const struct knee_answer_view *view, struct knee_text *text);
void knee_answer_text(const struct knee_answer_view *view, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text);
void knee_answer_csv(const struct knee_answer_view *view, struct knee_text *text);

/* A value in a table: the objects on the way to it, and its field. */
#define KNEE_LEAF_DEPTH 4
struct knee_leaf {
    const struct knee_field *way[KNEE_LEAF_DEPTH];
    size_t depth;
    const struct knee_field *field;
};
/* All values of a row of `list`, those of objects inside too, to be freed; NULL: no memory. */
struct knee_leaf *knee_leaves(const struct knee_field *list, const struct knee_alloc *alloc,
                              size_t *count);
/* The value of a leaf in a row; nothing where an object on the way is not there. */
void knee_leaf_value(const struct knee_leaf *leaf, const struct knee_at *row,
                     const struct knee_alloc *alloc, struct knee_value *out);

/* The list at a path ("ranks", "where.kernels") and what it is inside; NULL: it is not there. */
struct knee_found_list {
    const struct knee_field *field;
    struct knee_at at, inside[KNEE_LEAF_DEPTH];
    size_t depth; /* of inside */
};
bool knee_answer_list(const struct knee_answer_view *view, const char *path,
                      struct knee_found_list *out);

#endif
