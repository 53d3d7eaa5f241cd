/* SPDX-License-Identifier: MIT */
/*
 * A key table describes the fields of an object: name, unit, range, help. Setting a field from text
 * is the same work for a flag, a YAML key or a slider, so it is done here, once.
 */
#include "base/keys.h"

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/spell.h"

#include <math.h>
#include <string.h>

bool knee_same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !(*a == '_' && *b == '-') && !(*a == '-' && *b == '_'))
            return false;
    return *a == *b;
}

static size_t find_exactly(const struct knee_keys *keys, const char *name)
{
    size_t row = 0;
    while (row < keys->count && !knee_same_name(name, keys->rows[row].name))
        row++;
    return row;
}

size_t knee_keys_find(const struct knee_keys *keys, const char *name)
{
    /* People say all of these; a table has one of them. */
    static const char *const processes[] = {"workers", "gpus", "ranks"};
    size_t row = find_exactly(keys, name);
    for (size_t i = 0; row == keys->count && i < sizeof processes / sizeof *processes; i++) {
        if (!knee_same_name(name, processes[i]))
            continue;
        for (size_t j = 0; row == keys->count && j < sizeof processes / sizeof *processes; j++)
            row = find_exactly(keys, processes[j]);
    }
    return row;
}

unsigned char *knee_keys_source(const struct knee_keys *keys, void *object)
{
    return (unsigned char *)object + keys->source_offset;
}

void knee_keys_unset(const struct knee_keys *keys, void *object, size_t row)
{
    void *field = (char *)object + keys->rows[row].offset;
    knee_keys_source(keys, object)[row] = KNEE_UNSET;
    if (keys->rows[row].kind == KNEE_KEY_NUMBER)
        *(double *)field = NAN;
    else if (keys->rows[row].kind == KNEE_KEY_CHOICE)
        *(int *)field = -1;
    else if (keys->rows[row].kind == KNEE_KEY_PARSED)
        memset(field, 0, keys->rows[row].size);
    else if (keys->rows[row].kind == KNEE_KEY_SWITCH)
        *(bool *)field = false;
    else if (keys->rows[row].kind == KNEE_KEY_WORD)
        *(const char **)field = NULL;
}

void knee_keys_clear(const struct knee_keys *keys, void *object)
{
    for (size_t row = 0; row < keys->count; row++)
        knee_keys_unset(keys, object, row);
}

void knee_keys_fill(const struct knee_keys *keys, void *object, double *field, double value,
                    enum knee_source source)
{
    if (!isnan(*field) || isnan(value))
        return;
    *field = value;
    size_t offset = (size_t)((char *)field - (char *)object);
    for (size_t row = 0; row < keys->count; row++)
        if (keys->rows[row].offset == offset)
            knee_keys_source(keys, object)[row] = (unsigned char)source;
}

static bool said(unsigned char source)
{
    return source == KNEE_FILE || source == KNEE_FLAG;
}

knee_status knee_keys_settle(const struct knee_keys *keys, void *object, size_t one, size_t other,
                             const char *what, const char *hint, struct knee_err *err)
{
    const unsigned char *source = knee_keys_source(keys, object);
    if (!said(source[one]) || !said(source[other]))
        return KNEE_OK;
    if (source[one] == source[other]) {
        knee_fail(err, KNEE_USAGE, "", "%s", what);
        knee_hint(err, "%s", hint);
        return KNEE_USAGE;
    }
    knee_keys_unset(keys, object, source[one] == KNEE_FILE ? one : other);
    return KNEE_OK;
}

const struct knee_key *knee_keys_out_of_range(const struct knee_keys *keys, const void *object)
{
    for (size_t row = 0; row < keys->count; row++) {
        const struct knee_key *key = &keys->rows[row];
        if (key->kind != KNEE_KEY_NUMBER)
            continue;
        double value = *(const double *)(const void *)((const char *)object + key->offset);
        if (!isnan(value) && !(value >= key->min && value <= key->max))
            return key;
    }
    return NULL;
}

int knee_choice_find(const struct knee_choices *choices, const char *name, const char *where,
                     struct knee_err *err)
{
    struct knee_nearest nearest = {.wanted = name};
    size_t count = choices->count();
    for (size_t row = 0; row < count; row++) {
        if (knee_same_name(name, choices->name(row)))
            return (int)row;
        knee_nearest_offer(&nearest, choices->name(row));
    }
    int spelt = choices->spelt ? choices->spelt(name) : -1;
    if (spelt >= 0)
        return spelt;
    knee_fail(err, KNEE_USAGE, where, "there is no %s '%.60s'", choices->what, name);
    if (choices->known && choices->known(name))
        knee_hint(err, "'knee list' shows those there are");
    else if (nearest.name)
        knee_hint(err, "did you mean '%s'?", nearest.name);
    else
        knee_hint(err, "'knee list' shows them all");
    return -1;
}

static knee_status check_range(const struct knee_key *key, const char *text, double value,
                               const char *where, struct knee_err *err)
{
    char low[32], high[32];
    if (value >= key->min && value <= key->max)
        return KNEE_OK;
    knee_number_human(low, sizeof low, key->min, key->unit);
    knee_number_human(high, sizeof high, key->max, key->unit);
    knee_status status = knee_fail(err, KNEE_USAGE, where, "'%.60s' is out of range", text);
    knee_hint(err, "it must be from %s to %s", low, high);
    return status;
}

static knee_status set_switch(const char *text, const char *where, bool *out, struct knee_err *err)
{
    static const struct {
        const char *word;
        bool value;
    } words[] = {{"true", true},   {"yes", true}, {"on", true},   {"1", true},
                 {"false", false}, {"no", false}, {"off", false}, {"0", false}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i].word) == 0) {
            *out = words[i].value;
            return KNEE_OK;
        }
    return knee_fail(err, KNEE_USAGE, where, "'%.60s' is neither true nor false", text);
}

/* A share above 1 is none: 70 is 70 %. 1.5 is a mistake. */
static bool means_percent(const struct knee_key *key, double number)
{
    return key->unit == KNEE_UNIT_FRACTION && key->max <= 1 && number >= 2 && number <= 100 &&
           number == floor(number);
}

static knee_status set_field(const struct knee_key *key, void *field, const char *text,
                             const char *where, struct knee_err *err)
{
    double number = 0;
    knee_status status;
    switch (key->kind) {
    case KNEE_KEY_NUMBER:
        status = knee_number_parse(text, key->unit, where, &number, err);
        if (!status && means_percent(key, number))
            number /= 100;
        if (!status)
            status = check_range(key, text, number, where, err);
        if (!status)
            *(double *)field = number;
        return status;
    case KNEE_KEY_CHOICE: {
        int row = knee_choice_find(key->choices, text, where, err);
        if (row < 0)
            return KNEE_USAGE;
        *(int *)field = row;
        return KNEE_OK;
    }
    case KNEE_KEY_WORKERS: return knee_workers_parse(text, where, field, err);
    case KNEE_KEY_SWITCH: return set_switch(text, where, field, err);
    case KNEE_KEY_WORD: *(const char **)field = text; return KNEE_OK;
    case KNEE_KEY_PARSED: return key->parse(text, where, field, err);
    }
    return KNEE_USAGE;
}

knee_status knee_keys_set(const struct knee_keys *keys, void *object, const char *name,
                          const char *text, enum knee_source source, struct knee_err *err)
{
    char where[96];
    size_t row = knee_keys_find(keys, name);
    if (row == keys->count) {
        struct knee_nearest nearest = {.wanted = name};
        for (size_t i = 0; i < keys->count; i++)
            knee_nearest_offer(&nearest, keys->rows[i].name);
        knee_fail(err, KNEE_USAGE, "", "there is no key '%.60s'", name);
        if (nearest.name)
            knee_hint(err, "did you mean '%s'?", nearest.name);
        return KNEE_USAGE;
    }
    const struct knee_key *key = &keys->rows[row];
    knee_format(where, sizeof where, "%s%s", source == KNEE_FLAG ? "--" : "", key->name);
    knee_status status = set_field(key, (char *)object + key->offset, text, where, err);
    if (!status)
        knee_keys_source(keys, object)[row] = (unsigned char)source;
    return status;
}
