/* SPDX-License-Identifier: MIT */
/* Values of an answer, wherever they are kept. */
#include "say/fields.h"

#include "say/numbers.h"

#include <math.h>
#include <string.h>

/* ---- What getters set ---- */

void knee_value_number(struct knee_value *out, double number)
{
    out->is = isnan(number) ? KNEE_NOTHING : KNEE_A_NUMBER;
    out->number = number;
}

void knee_value_between(struct knee_value *out, double number, double low, double high)
{
    knee_value_number(out, number);
    out->low = low;
    out->high = high;
}

void knee_value_text(struct knee_value *out, const char *text)
{
    out->is = text ? KNEE_A_TEXT : KNEE_NOTHING;
    out->text = text;
}

void knee_value_bool(struct knee_value *out, bool truth)
{
    out->is = KNEE_A_BOOL;
    out->number = truth;
}

void knee_value_ns(struct knee_value *out, int64_t ns, bool known)
{
    out->is = known ? KNEE_NANOSECONDS : KNEE_NOTHING;
    out->whole = ns;
    out->number = known ? (double)ns / 1e9 : NAN;
}

void knee_value_printf(struct knee_value *out, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    knee_text_vprintf(&out->words, fmt, args);
    va_end(args);
    out->is = KNEE_A_TEXT;
}

void knee_value_release(struct knee_value *value)
{
    knee_text_release(&value->words);
}

/* ---- Reading ---- */

static double count_at(const struct knee_field *field, const void *at)
{
    switch (field->is) {
    case KNEE_IS_INT: return *(const int *)at;
    case KNEE_IS_UNSIGNED: return *(const unsigned *)at;
    case KNEE_IS_SIZE: return (double)*(const size_t *)at;
    case KNEE_IS_I64: return (double)*(const int64_t *)at;
    default: return *(const double *)at;
    }
}

static void stored(const struct knee_field *field, const void *at, struct knee_value *out)
{
    switch (field->is) {
    case KNEE_IS_BOOL: knee_value_bool(out, *(const bool *)at); break;
    case KNEE_IS_STRING: knee_value_text(out, *(const char *const *)at); break;
    case KNEE_IS_CHARS: knee_value_text(out, at); break;
    default:
        if (field->nanoseconds)
            knee_value_ns(out, *(const int64_t *)at, true);
        else
            knee_value_number(out, count_at(field, at));
    }
}

void knee_value_of(const struct knee_field *field, const struct knee_at *at,
                   const struct knee_alloc *alloc, struct knee_value *out)
{
    *out = (struct knee_value){.low = NAN, .high = NAN, .number = NAN, .words = {.alloc = alloc}};
    if (field->get) {
        field->get(at, out);
        return;
    }
    stored(field, (const char *)at->row + field->offset, out);
    if (field->interval) {
        const double *ends = (const void *)((const char *)at->row + field->interval_offset);
        out->low = ends[0];
        out->high = ends[1];
    }
}

const char *knee_value_string(const struct knee_value *value)
{
    const char *text = value->text ? value->text : value->words.data;
    return text ? text : "";
}

bool knee_value_empty(const struct knee_value *value)
{
    return value->is == KNEE_NOTHING || (value->is == KNEE_A_TEXT && !*knee_value_string(value));
}

void knee_value_show(const struct knee_value *value, enum knee_kind kind, struct knee_text *text)
{
    text->failed = text->failed || value->words.failed;
    if (value->is == KNEE_NOTHING)
        return;
    if (value->is == KNEE_A_TEXT)
        knee_text_puts(text, knee_value_string(value));
    else if (value->is == KNEE_A_BOOL)
        knee_text_puts(text, value->number != 0 ? "yes" : "no");
    else
        knee_text_puts(text, knee_say_interval(value->number, value->low, value->high, kind).s);
}

const void *knee_same_row(const struct knee_at *at)
{
    return at->row;
}

const void *knee_top_row(const struct knee_at *at)
{
    while (at->up)
        at = at->up;
    return at->row;
}

const void *knee_object_at(const struct knee_field *field, const struct knee_at *at)
{
    const char *where = (const char *)at->row + field->offset;
    if (field->object)
        return field->object(at);
    return field->pointer ? *(const void *const *)where : where;
}

const void *knee_row_at(const struct knee_field *field, const struct knee_at *at, size_t index)
{
    if (field->row)
        return field->row(at, index);
    const char *row = at->row;
    const void *const *held = (const void *)(row + field->offset);
    const char *first = field->pointer ? *held : row + field->offset;
    size_t count = *(const size_t *)(const void *)(row + field->count_offset);
    return index < count ? first + index * field->row_size : NULL;
}

bool knee_field_there(const struct knee_field *field, const struct knee_at *at)
{
    return !field->when || field->when(at);
}

/* ---- Sentences ---- */

static struct knee_text *part_of(struct knee_said *said, size_t part)
{
    struct knee_text *const parts[] = {&said->title,   &said->voids,  &said->headline,
                                       &said->reason,  &said->effect, &said->after,
                                       &said->assumed, &said->next,   &said->notes};
    return part < KNEE_COUNT_OF(parts) ? parts[part] : NULL;
}

void knee_said_init(struct knee_said *said, const struct knee_alloc *alloc)
{
    *said = (struct knee_said){.title = {.alloc = NULL}};
    for (size_t i = 0; part_of(said, i); i++)
        part_of(said, i)->alloc = alloc;
}

void knee_said_release(struct knee_said *said)
{
    for (size_t i = 0; part_of(said, i); i++)
        knee_text_release(part_of(said, i));
}

bool knee_said_failed(const struct knee_said *said)
{
    struct knee_said copy = *said;
    for (size_t i = 0; part_of(&copy, i); i++)
        if (part_of(&copy, i)->failed)
            return true;
    return false;
}

static void put(const struct knee_text *words, struct knee_value *out)
{
    if (words->length)
        knee_value_printf(out, "%s%s", out->words.length ? " " : "", words->data);
}

void knee_get_headline(const struct knee_at *at, struct knee_value *out)
{
    put(&at->said->voids, out);
    put(&at->said->headline, out);
}

void knee_get_reason(const struct knee_at *at, struct knee_value *out)
{
    put(&at->said->reason, out);
}

void knee_get_effect(const struct knee_at *at, struct knee_value *out)
{
    put(&at->said->effect, out);
}

void knee_get_sentence(const struct knee_at *at, struct knee_value *out)
{
    knee_get_headline(at, out);
    put(&at->said->reason, out);
    put(&at->said->effect, out);
}
