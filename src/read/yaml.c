/* SPDX-License-Identifier: MIT */
/*
 * Job files: one flat mapping of keys to values, in YAML (or JSON, which is YAML). libyaml's events
 * are taken one by one, so nothing is expanded: aliases, nesting, second documents and repeated
 * keys are refused with their line.
 */
#include "base/error.h"
#include "base/keys.h"
#include "cluster/gpu_words.h"
#include "knee_read.h"

#include <stdio.h> /* snprintf only */
#include <string.h>

#define LARGEST_FILE   ((size_t)1 << 20)
#define LARGEST_OBJECT 8192

#if defined(KNEE_HAVE_YAML) && KNEE_HAVE_YAML
#include <yaml.h>

struct reader {
    yaml_parser_t parser;
    const char *name; /* of the file */
    const struct knee_keys *keys;
    void *object;
    bool seen[KNEE_KEYS_MAX];
    struct knee_err *err;
};

static knee_status fail_at(struct reader *r, size_t line, const char *what, const char *hint)
{
    char where[128];
    snprintf(where, sizeof where, "%.100s:%zu", r->name, line + 1);
    knee_fail(r->err, KNEE_INPUT, where, "%s", what);
    if (hint)
        knee_hint(r->err, "%s", hint);
    return KNEE_INPUT;
}

static knee_status next_event(struct reader *r, yaml_event_t *event)
{
    if (yaml_parser_parse(&r->parser, event))
        return KNEE_OK;
    if (r->parser.error == YAML_MEMORY_ERROR)
        return knee_fail(r->err, KNEE_SYSTEM, r->name, "out of memory");
    const char *problem = r->parser.problem ? r->parser.problem : "not YAML";
    char what[160];
    snprintf(what, sizeof what, "not YAML: %.100s", problem);
    return fail_at(r, r->parser.problem_mark.line, what, "write one 'key: value' per line");
}

static const char *scalar(const yaml_event_t *event)
{
    return (const char *)event->data.scalar.value;
}

/* A value: a scalar, or a list of scalars joined by commas. */
static knee_status read_value(struct reader *r, char *out, size_t size)
{
    yaml_event_t event;
    size_t used = 0;
    bool list = false, done = false;
    out[0] = '\0';
    while (!done) {
        knee_status status = next_event(r, &event);
        if (status)
            return status;
        size_t line = event.start_mark.line;
        if (event.type == YAML_SCALAR_EVENT) {
            int wrote = snprintf(out + used, size - used, "%s%s", used ? "," : "", scalar(&event));
            if (strlen(scalar(&event)) != event.data.scalar.length)
                status = fail_at(r, line, "a zero byte in a value", NULL);
            else if (wrote < 0 || (size_t)wrote >= size - used)
                status = fail_at(r, line, "a value is too long", NULL);
            else
                used += (size_t)wrote;
            done = !list;
        } else if (event.type == YAML_SEQUENCE_START_EVENT && !list) {
            list = true;
        } else if (event.type == YAML_SEQUENCE_END_EVENT) {
            done = true;
        } else if (event.type == YAML_ALIAS_EVENT) {
            status = fail_at(r, line, "aliases are not supported", "write the value out");
        } else {
            status = fail_at(r, line, "a value is nested", "write one 'key: value' per line");
        }
        yaml_event_delete(&event);
        if (status)
            return status;
    }
    return KNEE_OK;
}

static knee_status set_key(struct reader *r, const char *key, const char *value, size_t line)
{
    struct knee_err inner;
    char what[512];
    size_t row = knee_keys_find(r->keys, key);
    if (row < r->keys->count && r->seen[row]) {
        snprintf(what, sizeof what, "the key '%s' is given twice", key);
        return fail_at(r, line, what, "keep one");
    }
    if (row < r->keys->count) {
        r->seen[row] = true;
        if (knee_keys_source(r->keys, r->object)[row] == KNEE_FLAG)
            return KNEE_OK;
    }
    if (row < r->keys->count && r->keys->rows[row].kind == KNEE_KEY_WORD)
        return fail_at(r, line, "this key is for the command line only", key);
    if (row < r->keys->count)
        value = knee_gpu_choice(&r->keys->rows[row], value);
    if (knee_keys_set(r->keys, r->object, key, value, KNEE_FILE, &inner) == KNEE_OK)
        return KNEE_OK;
    snprintf(what, sizeof what, "%s%s%s", inner.where, inner.where[0] ? ": " : "", inner.what);
    return fail_at(r, line, what, inner.hint[0] ? inner.hint : NULL);
}

static knee_status read_pair(struct reader *r, const yaml_event_t *key_event)
{
    char key[64], value[512];
    size_t line = key_event->start_mark.line;
    if (key_event->type != YAML_SCALAR_EVENT)
        return fail_at(r, line, "a key is not a word", "write one 'key: value' per line");
    snprintf(key, sizeof key, "%.63s", scalar(key_event));
    knee_status status = read_value(r, value, sizeof value);
    return status ? status : set_key(r, key, value, line);
}

/* stream-start document-start mapping-start (key value)* mapping-end document-end stream-end */
static knee_status read_document(struct reader *r)
{
    bool in_mapping = false, done = false, any = false;
    knee_status status = KNEE_OK;
    while (!status && !done) {
        yaml_event_t event;
        if ((status = next_event(r, &event)))
            return status;
        switch (event.type) {
        case YAML_STREAM_END_EVENT: done = true; break;
        case YAML_DOCUMENT_START_EVENT:
            if (any)
                status = fail_at(r, event.start_mark.line, "a second document", "keep one");
            any = true;
            break;
        case YAML_MAPPING_END_EVENT: in_mapping = false; break;
        case YAML_MAPPING_START_EVENT:
            if (!in_mapping) {
                in_mapping = true;
                break;
            } /* fall through */
        case YAML_SCALAR_EVENT:
        case YAML_SEQUENCE_START_EVENT:
        case YAML_ALIAS_EVENT:
            if (in_mapping)
                status = read_pair(r, &event);
            else
                status = fail_at(r, event.start_mark.line, "this is not a list of keys",
                                 "write one 'key: value' per line");
            break;
        default: break;
        }
        yaml_event_delete(&event);
    }
    return status;
}

knee_status knee_yaml_read(const char *yaml, size_t length, const char *name,
                           const struct knee_keys *keys, void *object, size_t object_size,
                           struct knee_err *err)
{
    _Alignas(max_align_t) unsigned char copy[LARGEST_OBJECT];
    struct reader r = {.name = name, .keys = keys, .object = copy, .err = err};
    if (length > LARGEST_FILE)
        return knee_fail(err, KNEE_INPUT, name, "larger than 1 MiB: not a job file");
    if (object_size > sizeof copy)
        return knee_fail(err, KNEE_SYSTEM, name, "object too large");
    memcpy(copy, object, object_size);
    if (!yaml_parser_initialize(&r.parser))
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory");
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)yaml, length);
    knee_status status = read_document(&r);
    yaml_parser_delete(&r.parser);
    if (!status)
        memcpy(object, copy, object_size);
    return status;
}

#else

knee_status knee_yaml_read(const char *yaml, size_t length, const char *name,
                           const struct knee_keys *keys, void *object, size_t object_size,
                           struct knee_err *err)
{
    (void)yaml, (void)length, (void)keys, (void)object, (void)object_size;
    knee_fail(err, KNEE_SYSTEM, name, "this knee was built without libyaml");
    knee_hint(err, "apt-get install libyaml-dev, build again, or give the keys as flags");
    return KNEE_SYSTEM;
}

#endif
