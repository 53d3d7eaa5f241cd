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
    size_t depth, documents;
    knee_scalar_taker *take;
    void *ctx;
    struct knee_err *err;
};

static const char one_per_line[] = "write one 'key: value' per line";

static knee_status fail_at(struct yaml *y, size_t line, const char *what, const char *hint)
{
    char where[128];
    knee_format(where, sizeof where, "%.100s:%zu", y->name, line + 1);
    knee_fail(y->err, KNEE_INPUT, where, "%s", what);
    if (hint)
        knee_hint(y->err, "%s", hint);
    return KNEE_INPUT;
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
    return extend(y, y->base[d], piece) ? KNEE_OK : fail_at(y, line, "a path is too long", NULL);
}

static knee_status open_collection(struct yaml *y, bool list, size_t line)
{
    if (y->depth > 0 && y->at_key[y->depth - 1])
        return fail_at(y, line, "a key is not a word", one_per_line);
    knee_status status = name_value(y, line);
    if (status)
        return status;
    if (y->depth == DEPTH_MAX)
        return fail_at(y, line, "nested too deeply", NULL);
    y->list[y->depth] = list;
    y->index[y->depth] = 0; /* of a mapping: its keys so far */
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
        return fail_at(y, line, "a zero byte in a value", NULL);
    if (y->depth == 0)
        return fail_at(y, line, "this is not a list of keys", one_per_line);
    if (!y->list[d] && y->at_key[d]) {
        char piece[80];
        knee_format(piece, sizeof piece, "%s%.64s", y->base[d] ? "." : "", value);
        y->at_key[d] = false;
        y->index[d]++;
        return extend(y, y->base[d], piece) ? KNEE_OK
                                            : fail_at(y, line, "a path is too long", NULL);
    }
    knee_status status = name_value(y, line);
    if (status)
        return status;
    struct knee_scalar scalar = {.path = y->path, .value = value, .line = line + 1};
    end_value(y);
    return y->take(y->ctx, &scalar);
}

static knee_status close_collection(struct yaml *y, size_t line)
{
    size_t d = --y->depth;
    struct knee_scalar nothing = {.path = y->path, .value = "", .empty = true, .line = line + 1};
    bool empty = y->index[d] == 0 && y->base[d] > 0;
    y->path[y->base[d]] = '\0';
    end_value(y);
    return empty ? y->take(y->ctx, &nothing) : KNEE_OK;
}

static knee_status take_event(struct yaml *y, const yaml_event_t *event)
{
    size_t line = event->start_mark.line;
    switch (event->type) {
    case YAML_SCALAR_EVENT: return take_scalar(y, event);
    case YAML_SEQUENCE_START_EVENT: return open_collection(y, true, line);
    case YAML_MAPPING_START_EVENT: return open_collection(y, false, line);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: return close_collection(y, line);
    case YAML_ALIAS_EVENT:
        return fail_at(y, line, "aliases are not supported", "write the value out");
    case YAML_DOCUMENT_START_EVENT:
        return y->documents++ ? fail_at(y, line, "a second document", "keep one") : KNEE_OK;
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
    const char *from = text.at ? text.at : ""; /* libyaml aborts on a NULL text */
    yaml_parser_set_input_string(&y.parser, (const unsigned char *)from, text.length);
    while (!status && !done) {
        yaml_event_t event;
        if (!yaml_parser_parse(&y.parser, &event)) {
            char what[160];
            knee_format(what, sizeof what, "not YAML: %.100s",
                        y.parser.problem ? y.parser.problem : "damaged");
            status = y.parser.error == YAML_MEMORY_ERROR
                         ? knee_fail(err, KNEE_SYSTEM, name, "out of memory")
                         : fail_at(&y, y.parser.problem_mark.line, what, one_per_line);
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
    knee_hint(err,
              "apt-get install libyaml-dev, build again, or give a preset or the keys as flags");
    return KNEE_SYSTEM;
}

#endif
