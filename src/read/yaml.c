/* SPDX-License-Identifier: MIT */
/*
 * Job files: one flat mapping of keys to values or lists of them, in YAML. Nesting and repeated
 * keys are refused with their line, beside what yaml_scan.c refuses.
 */
#include "base/error.h"
#include "base/format.h"
#include "base/keys.h"
#include "knee_read.h"
#include "read/yaml_scan.h"

#include <string.h>

#define LARGEST_FILE   ((size_t)1 << 20)
#define LARGEST_OBJECT 8192

struct reader {
    const char *name; /* of the file */
    const struct knee_keys *keys;
    void *object;
    bool seen[KNEE_KEYS_MAX];
    char list[64];   /* key of the list being read; "": none */
    char value[512]; /* its members so far, joined by commas */
    size_t list_line;
    struct knee_err *err;
};

static knee_status fail_at(struct reader *r, size_t line, const char *what, const char *hint)
{
    char where[128];
    knee_format(where, sizeof where, "%.100s:%zu", r->name, line);
    knee_fail(r->err, KNEE_INPUT, where, "%s", what);
    if (hint)
        knee_hint(r->err, "%s", hint);
    return KNEE_INPUT;
}

static knee_status set_key(struct reader *r, const char *key, const char *value, size_t line)
{
    struct knee_err inner;
    char what[512];
    size_t row = knee_keys_find(r->keys, key);
    if (row < r->keys->count && r->seen[row]) {
        knee_format(what, sizeof what, "the key '%s' is given twice", key);
        return fail_at(r, line, what, "keep one");
    }
    if (row < r->keys->count) {
        r->seen[row] = true;
        if (knee_keys_source(r->keys, r->object)[row] == KNEE_FLAG)
            return KNEE_OK;
    }
    if (row < r->keys->count && r->keys->rows[row].kind == KNEE_KEY_WORD)
        return fail_at(r, line, "this key is for the command line only", key);
    if (knee_keys_set(r->keys, r->object, key, value, KNEE_FILE, &inner) == KNEE_OK)
        return KNEE_OK;
    knee_format(what, sizeof what, "%s%s%s", inner.where, inner.where[0] ? ": " : "", inner.what);
    return fail_at(r, line, what, inner.hint[0] ? inner.hint : NULL);
}

static knee_status end_list(struct reader *r)
{
    char key[sizeof r->list];
    if (!r->list[0])
        return KNEE_OK;
    memcpy(key, r->list, sizeof key);
    r->list[0] = '\0';
    return set_key(r, key, r->value, r->list_line);
}

/* One more member of the list, or the first of a new one. */
static knee_status add_member(struct reader *r, const char *key, bool first,
                              const struct knee_scalar *scalar)
{
    if (first) {
        knee_status status = end_list(r);
        if (status)
            return status;
        memcpy(r->list, key, sizeof r->list);
        r->value[0] = '\0';
        r->list_line = scalar->line;
    }
    size_t used = strlen(r->value);
    int wrote = knee_format(r->value + used, sizeof r->value - used, "%s%s", used ? "," : "",
                            scalar->value);
    if (wrote < 0 || (size_t)wrote >= sizeof r->value - used)
        return fail_at(r, scalar->line, "a value is too long", NULL);
    return KNEE_OK;
}

/* "key", or "key[2]" for a member of a list; anything else is nested. */
static knee_status take(void *ctx, const struct knee_scalar *scalar)
{
    struct reader *r = ctx;
    char key[sizeof r->list] = "";
    size_t length = strcspn(scalar->path, ".["), digits = 0;
    const char *rest = scalar->path + length;
    if (length == 0)
        return fail_at(r, scalar->line, "this is not a list of keys",
                       "write one 'key: value' per line");
    if (*rest == '[')
        digits = strspn(rest + 1, "0123456789");
    if (*rest && (digits == 0 || strcmp(rest + 1 + digits, "]") != 0))
        return fail_at(r, scalar->line, "a value is nested", "write one 'key: value' per line");
    memcpy(key, scalar->path, length < sizeof key ? length : sizeof key - 1);
    if (*rest)
        return add_member(r, key, strcmp(rest, "[0]") == 0, scalar);
    knee_status status = end_list(r);
    if (!status && strlen(scalar->value) >= sizeof r->value)
        status = fail_at(r, scalar->line, "a value is too long", NULL);
    return status ? status : set_key(r, key, scalar->value, scalar->line);
}

knee_status knee_yaml_read(struct knee_named_text from, const struct knee_keys *keys, void *object,
                           size_t object_size, struct knee_err *err)
{
    _Alignas(max_align_t) unsigned char copy[LARGEST_OBJECT];
    struct reader r = {.name = from.name, .keys = keys, .object = copy, .err = err};
    if (from.length > LARGEST_FILE)
        return knee_fail(err, KNEE_INPUT, from.name, "larger than 1 MiB: not a job file");
    if (object_size > sizeof copy)
        return knee_fail(err, KNEE_SYSTEM, from.name, "object too large");
    memcpy(copy, object, object_size);
    struct knee_slice yaml = {from.text, from.length};
    knee_status status = knee_yaml_scan(yaml, from.name, take, &r, err);
    if (!status)
        status = end_list(&r);
    if (!status)
        memcpy(object, copy, object_size);
    return status;
}
