/* SPDX-License-Identifier: MIT */
/* The description of an answer itself: the keys as Markdown for docs/reference/json.md, the tree as
 * JSON. */
#include "out/answer.h"

#include <string.h>

static const char *const kinds[] = {
    [KNEE_AS_TEXT] = "text",     [KNEE_AS_COUNT] = "count",     [KNEE_AS_LARGE] = "count",
    [KNEE_AS_NUMBER] = "number", [KNEE_AS_SECONDS] = "seconds", [KNEE_AS_MS] = "seconds",
    [KNEE_AS_BYTES] = "bytes",   [KNEE_AS_MESSAGE] = "bytes",   [KNEE_AS_RATE] = "bytes/s",
    [KNEE_AS_FLOPS] = "FLOP/s",  [KNEE_AS_SHARE] = "fraction",  [KNEE_AS_CHANGE] = "fraction",
    [KNEE_AS_TIMES] = "factor",  [KNEE_AS_DOLLARS] = "dollars", [KNEE_AS_JOULES] = "joules",
    [KNEE_AS_WATTS] = "watts",   [KNEE_AS_YES_NO] = "boolean",  [KNEE_AS_OBJECT] = "object",
    [KNEE_AS_INLINE] = "object", [KNEE_AS_LIST] = "list",       [KNEE_AS_INPUTS] = "list",
};

/* ---- Markdown ---- */

static void document(const struct knee_field *fields, size_t count, const char *prefix,
                     struct knee_text *text)
{
    for (size_t i = 0; i < count; i++) {
        const struct knee_field *field = &fields[i];
        struct knee_text path = {.alloc = text->alloc};
        bool list = field->kind == KNEE_AS_LIST || field->kind == KNEE_AS_INPUTS;
        knee_text_printf(&path, "%s%s%s%s", prefix, *prefix && field->key ? "." : "",
                         field->key ? field->key : "", list ? "[]" : "");
        if (field->key)
            knee_text_printf(text, "| `%s` | %s | %s%s |\n", path.data ? path.data : "",
                             kinds[field->kind], field->about ? field->about : "",
                             field->interval ? " (with `low_`, `high_`)" : "");
        if (field->fields)
            document(field->fields, field->field_count, path.data ? path.data : "", text);
        knee_text_end(&path, text);
    }
}

void knee_answer_document(const struct knee_answer_type *type, struct knee_text *text)
{
    knee_text_printf(text, "## %s\n\n| key | kind | meaning |\n|---|---|---|\n", type->schema);
    document(type->fields, type->field_count, "", text);
}

/* ---- JSON ---- */

static const char *const tiers[] = {[KNEE_TIER_SCREEN] = "default",
                                    [KNEE_TIER_BRIEF] = "brief",
                                    [KNEE_TIER_FULL] = "full",
                                    [KNEE_TIER_DATA] = "data"};

static void describe(struct knee_json *json, const struct knee_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct knee_field *field = &fields[i];
        if (field->metric && !field->key)
            continue;
        if (field->kind == KNEE_AS_INLINE) {
            describe(json, field->fields, field->field_count);
            continue;
        }
        knee_json_begin(json, NULL, '{', !field->fields);
        knee_json_string(json, "key", field->key);
        knee_json_string(json, "heading", field->heading);
        knee_json_string(json, "kind", kinds[field->kind]);
        knee_json_string(json, "tier", tiers[field->tier]);
        knee_json_bool(json, "interval", field->interval);
        if (field->fields) {
            knee_json_open(json, "fields", '[');
            describe(json, field->fields, field->field_count);
            knee_json_close(json, ']');
        }
        knee_json_close(json, '}');
    }
}

void knee_answer_schema(const struct knee_answer_type *type, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", type->schema);
    knee_json_open(&json, "views", '[');
    for (size_t i = 0; i < type->view_count; i++) {
        knee_json_open_flat(&json, NULL, '{');
        knee_json_string(&json, "list", type->views[i].list);
        knee_json_string(&json, "title", type->views[i].title);
        knee_json_string(&json, "tier", tiers[type->views[i].tier]);
        knee_json_close(&json, '}');
    }
    knee_json_close(&json, ']');
    knee_json_open(&json, "fields", '[');
    describe(&json, type->fields, type->field_count);
    knee_json_close(&json, ']');
    knee_json_close(&json, '}');
}
