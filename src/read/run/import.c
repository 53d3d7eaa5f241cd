/* SPDX-License-Identifier: MIT */
#include "read/run/import.h"

#include "base/decimal.h"
#include "base/fold.h"
#include "base/format.h"
#include "base/slice.h"

#include <math.h>
#include <string.h>

static const struct knee_import_name *row_of(enum knee_import_format format, const char *name)
{
    for (size_t i = 0; i < knee_import_names_count; i++)
        if (knee_import_names[i].format == format && strcmp(name, knee_import_names[i].name) == 0)
            return &knee_import_names[i];
    return NULL;
}

static double *number_at(struct knee_import *in, const struct knee_import_name *row)
{
    return (double *)(void *)((char *)in + row->into);
}

void knee_import_init(struct knee_import *in, enum knee_import_format format)
{
    memset(in, 0, sizeof *in);
    for (size_t i = 0; i < knee_import_names_count; i++)
        if (knee_import_names[i].format == format && knee_import_names[i].form != KNEE_IMPORT_WORDS)
            *number_at(in, &knee_import_names[i]) = NAN;
}

bool knee_import_number(struct knee_import *in, enum knee_import_format format, const char *name,
                        double value)
{
    const struct knee_import_name *row = row_of(format, name);
    if (row && row->form != KNEE_IMPORT_WORDS)
        *number_at(in, row) = value;
    return row != NULL;
}

bool knee_import_text(struct knee_import *in, enum knee_import_format format, const char *name,
                      const char *value)
{
    const struct knee_import_name *row = row_of(format, name);
    const char *rest;
    double number = knee_decimal_parse(value, &rest);
    bool whole = number == floor(number) && fabs(number) <= 1e9;
    if (!row)
        return false;
    bool words = row->form == KNEE_IMPORT_WORDS;
    in->known++;
    if (words && strcmp(value, "None") != 0)
        knee_format((char *)in + row->into, KNEE_IMPORT_WORD, "%s", value);
    else if (words)
        return true;
    else if (strcmp(value, "True") == 0 || strcmp(value, "true") == 0 || *value == '\0')
        *number_at(in, row) = 1;
    else if (strcmp(value, "False") == 0 || strcmp(value, "false") == 0)
        *number_at(in, row) = 0;
    else if (rest != value && !*rest &&
             (format == KNEE_FROM_TORCHTITAN ? whole : fabs(number) <= 1e15))
        *number_at(in, row) = number; /* else None, or a variable of the script */
    return true;
}

void knee_import_copy(const char *from, const char *to, char *out, size_t size)
{
    while (from < to && knee_is_blank(*from))
        from++;
    while (to > from && knee_is_blank(to[-1]))
        to--;
    size_t length = (size_t)(to - from) < size - 1 ? (size_t)(to - from) : size - 1;
    memcpy(out, from, length);
    out[length] = '\0';
}

void knee_import_options(struct knee_import *in, const char *text, const char *end,
                         knee_import_take *take, bool dotted)
{
    char name[KNEE_IMPORT_WORD] = "", value[KNEE_IMPORT_WORD];
    const char *stop = text;
    for (const char *at; (at = knee_shell_word(stop, end, &stop)) < end;) {
        bool option = stop - at > 2 && at[0] == '-' && at[1] == '-';
        const char *equals = option ? memchr(at, '=', (size_t)(stop - at)) : NULL;
        if (option && *name)
            take(in, name, "");
        if (option)
            knee_import_copy(at + 2, equals ? equals : stop, name, sizeof name);
        if (option && !equals) {
            if (dotted && !strchr(name, '.'))
                name[0] = '\0';
            continue;
        }
        knee_import_copy(equals ? equals + 1 : at, stop, value, sizeof value);
        if (*name)
            take(in, name, value);
        name[0] = '\0';
    }
    if (*name)
        take(in, name, "");
}

void knee_import_set(const struct knee_keys *keys, void *object, const char *name, double value)
{
    size_t row = knee_keys_find(keys, name);
    unsigned char *source = knee_keys_source(keys, object);
    const struct knee_key *key = &keys->rows[row];
    if (isnan(value) || source[row] == KNEE_FLAG)
        return;
    if (key->kind == KNEE_KEY_NUMBER && !(value >= key->min && value <= key->max))
        return;
    void *field = (char *)object + key->offset;
    if (key->kind == KNEE_KEY_CHOICE)
        *(int *)field = (int)value;
    else
        *(double *)field = value;
    source[row] = KNEE_FILE;
}
