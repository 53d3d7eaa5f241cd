/* SPDX-License-Identifier: MIT */
/* YAML as scalars with their paths, from libyaml's events; nothing is expanded. */
#include "read/yaml_scan.h"
#include "base/error.h"
#include "base/format.h"

#include <string.h>

#if KNEE_HAVE_YAML
#include <yaml.h>

#define DEPTH_MAX 8

struct yaml {
    yaml_parser_t parser;
    const char *name;
    char path[256];
    size_t base[DEPTH_MAX]; /* length of the path of each open collection */
    bool list[DEPTH_MAX];
    size_t index[DEPTH_MAX];
    bool at_key[DEPTH_MAX]; /* of a mapping: the next scalar is a key */
    size_t depth;
    knee_scalar_taker *take;
    void *ctx;
    struct knee_err *err;
};

static knee_status fail_at(struct yaml *y, size_t line, const char *what)
{
    char where[128];
    knee_format(where, sizeof where, "%.100s:%zu", y->name, line + 1);
    return knee_fail(y->err, KNEE_INPUT, where, "%s", what);
}

static bool extend(struct yaml *y, size_t from, const char *piece)
{
    size_t length = strlen(piece);
    if (from + length >= sizeof y->path)
        return false;
    memcpy(y->path + from, piece, length + 1);
    return true;
}

/* The path of the next value in the innermost collection. */
static knee_status name_value(struct yaml *y, size_t line)
{
    char piece[32];
    size_t d = y->depth - 1;
    if (y->depth == 0 || !y->list[d])
        return KNEE_OK; /* the key has named it */
    knee_format(piece, sizeof piece, "[%zu]", y->index[d]++);
    return extend(y, y->base[d], piece) ? KNEE_OK : fail_at(y, line, "a path is too long");
}

static knee_status open_collection(struct yaml *y, bool list, size_t line)
{
    knee_status status = name_value(y, line);
    if (status)
        return status;
    if (y->depth == DEPTH_MAX)
        return fail_at(y, line, "nested too deeply");
    y->list[y->depth] = list;
    y->index[y->depth] = 0;
    y->at_key[y->depth] = !list;
    y->base[y->depth++] = strlen(y->path);
    return KNEE_OK;
}

/* A value is over: the mapping it stood in expects a key. */
static void end_value(struct yaml *y)
{
    if (y->depth > 0 && !y->list[y->depth - 1])
        y->at_key[y->depth - 1] = true;
}

static knee_status take_scalar(struct yaml *y, const yaml_event_t *event)
{
    const char *value = (const char *)event->data.scalar.value;
    size_t line = event->start_mark.line, d = y->depth - 1;
    if (strlen(value) != event->data.scalar.length)
        return fail_at(y, line, "a zero byte in a value");
    if (y->depth == 0)
        return fail_at(y, line, "this is not a list of keys");
    if (!y->list[d] && y->at_key[d]) {
        char piece[80];
        knee_format(piece, sizeof piece, "%s%.64s", y->base[d] ? "." : "", value);
        y->at_key[d] = false;
        return extend(y, y->base[d], piece) ? KNEE_OK : fail_at(y, line, "a path is too long");
    }
    knee_status status = name_value(y, line);
    if (status)
        return status;
    struct knee_scalar scalar = {
        .path = y->path,
        .value = value,
        .quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE,
        .line = line + 1,
    };
    y->take(y->ctx, &scalar);
    end_value(y);
    return KNEE_OK;
}

static knee_status take_event(struct yaml *y, const yaml_event_t *event)
{
    size_t line = event->start_mark.line;
    switch (event->type) {
    case YAML_SCALAR_EVENT: return take_scalar(y, event);
    case YAML_SEQUENCE_START_EVENT: return open_collection(y, true, line);
    case YAML_MAPPING_START_EVENT: return open_collection(y, false, line);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        y->depth--;
        end_value(y);
        return KNEE_OK;
    case YAML_ALIAS_EVENT: return fail_at(y, line, "aliases are not supported");
    default: return KNEE_OK;
    }
}

knee_status knee_yaml_scan(struct knee_slice text, const char *name, knee_scalar_taker *take,
                           void *ctx, struct knee_err *err)
{
    struct yaml y = {.name = name, .take = take, .ctx = ctx, .err = err};
    knee_status status = KNEE_OK;
    bool done = false;
    if (!yaml_parser_initialize(&y.parser))
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory");
    yaml_parser_set_input_string(&y.parser, (const unsigned char *)text.at, text.length);
    while (!status && !done) {
        yaml_event_t event;
        if (!yaml_parser_parse(&y.parser, &event)) {
            char what[160];
            knee_format(what, sizeof what, "not YAML: %.100s",
                        y.parser.problem ? y.parser.problem : "damaged");
            status = y.parser.error == YAML_MEMORY_ERROR
                         ? knee_fail(err, KNEE_SYSTEM, name, "out of memory")
                         : fail_at(&y, y.parser.problem_mark.line, what);
            break;
        }
        done = event.type == YAML_STREAM_END_EVENT;
        status = take_event(&y, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&y.parser);
    return status;
}

#else

knee_status knee_yaml_scan(struct knee_slice text, const char *name, knee_scalar_taker *take,
                           void *ctx, struct knee_err *err)
{
    (void)text, (void)take, (void)ctx;
    knee_fail(err, KNEE_SYSTEM, name, "this knee was built without libyaml");
    knee_hint(err, "apt-get install libyaml-dev and build again, or name a preset");
    return KNEE_SYSTEM;
}

#endif
