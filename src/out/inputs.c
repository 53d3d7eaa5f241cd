/* SPDX-License-Identifier: MIT */
/* The inputs that were used, each with where it came from. */
#include "out/inputs.h"

#include "base/format.h"
#include "base/number.h"
#include "out/table.h"

const char *knee_source_name(enum knee_source source)
{
    static const char *const names[] = {
        [KNEE_UNSET] = "not given", [KNEE_DEFAULT] = "assumed", [KNEE_PRESET] = "preset",
        [KNEE_FILE] = "file",       [KNEE_FLAG] = "given",      [KNEE_DERIVED] = "derived",
    };
    return names[source];
}

/* A list of worker counts as it was written. */
static void put_workers(const struct knee_workers *workers, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < workers->ranges && used < size; i++) {
        double from = workers->range[i].from, to = workers->range[i].to;
        double factor = workers->range[i].factor, step = workers->range[i].step;
        char by[32] = "";
        if (factor > 1)
            knee_format(by, sizeof by, "x%g", factor);
        else if (step > 1)
            knee_format(by, sizeof by, "+%g", step);
        int wrote = knee_format(out + used, size - used, from == to ? "%s%.0f" : "%s%.0f..%.0f%s",
                                i ? "," : "", from, to, by);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

static void value_text(const struct knee_key *key, const void *field, char *out, size_t size)
{
    switch (key->kind) {
    case KNEE_KEY_NUMBER: knee_number_human(out, size, *(const double *)field, key->unit); break;
    case KNEE_KEY_CHOICE:
        knee_format(out, size, "%s", key->choices->name((size_t) * (const int *)field));
        break;
    case KNEE_KEY_WORKERS: put_workers(field, out, size); break;
    case KNEE_KEY_SWITCH:
        knee_format(out, size, "%s", *(const bool *)field ? "true" : "false");
        break;
    case KNEE_KEY_WORD: knee_format(out, size, "%s", *(const char *const *)field); break;
    case KNEE_KEY_PARSED: knee_format(out, size, "%s", (const char *)field); break;
    }
}

void knee_inputs_json(const struct knee_keys *keys, const void *object, struct knee_json *json)
{
    const unsigned char *source = (const unsigned char *)object + keys->source_offset;
    char value[512];
    knee_json_open(json, "inputs", '[');
    for (size_t row = 0; row < keys->count; row++) {
        const struct knee_key *key = &keys->rows[row];
        const void *field = (const char *)object + key->offset;
        if (source[row] == KNEE_UNSET)
            continue;
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "name", key->name);
        value_text(key, field, value, sizeof value);
        if (key->kind == KNEE_KEY_NUMBER)
            knee_json_number(json, "value", *(const double *)field);
        else
            knee_json_string(json, "value", value);
        knee_json_string(json, "text", value);
        knee_json_string(json, "source", knee_source_name(source[row]));
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

void knee_inputs_write(const struct knee_keys *keys, const void *object, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    const unsigned char *source = (const unsigned char *)object + keys->source_offset;
    struct knee_table table;
    char value[512];
    knee_table_init(&table, "lll", text->alloc);
    knee_table_cell(&table, "input");
    knee_table_cell(&table, "value");
    knee_table_cell(&table, "source");
    for (size_t row = 0; row < keys->count; row++) {
        if (source[row] == KNEE_UNSET)
            continue;
        value_text(&keys->rows[row], (const char *)object + keys->rows[row].offset, value,
                   sizeof value);
        knee_table_cell(&table, "%s", keys->rows[row].name);
        knee_table_cell(&table, "%s", value);
        knee_table_cell(&table, "%s", knee_source_name(source[row]));
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}
