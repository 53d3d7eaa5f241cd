/* SPDX-License-Identifier: MIT */
/*
 * A key table describes the fields of an object: name, unit, range, help. Setting a field from text
 * is the same work for a flag, a YAML key or a slider, so it is done here, once.
 */
#include "base/keys.h"

#include "base/error.h"
#include "base/fold.h"
#include "base/format.h"
#include "base/number.h"
#include "base/spell.h"

#include <math.h>
#include <stdint.h>
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

/* People say all words of a line, and old files too; a table has one of them. */
static const char *const synonyms[][3] = {{"workers", "gpus", "ranks"}, {"lora", "lora-rank", ""}};

static bool says_one(const char *const *words, const char *name)
{
    return knee_same_name(name, words[0]) || knee_same_name(name, words[1]) ||
           knee_same_name(name, words[2]);
}

size_t knee_keys_find(const struct knee_keys *keys, const char *name)
{
    size_t row = find_exactly(keys, name);
    for (size_t i = 0; row == keys->count && i < sizeof synonyms / sizeof *synonyms; i++)
        for (size_t j = 0; row == keys->count && j < 3 && says_one(synonyms[i], name); j++)
            row = find_exactly(keys, synonyms[i][j]);
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

knee_status knee_keys_settle(const struct knee_keys *keys, void *object,
                             const struct knee_conflict *rows, struct knee_err *err)
{
    size_t one = rows->one, other = rows->other;
    const unsigned char *source = knee_keys_source(keys, object);
    if (!said(source[one]) || !said(source[other]))
        return KNEE_OK;
    if (source[one] == source[other]) {
        knee_fail(err, KNEE_USAGE, "", "%s", rows->what);
        knee_hint(err, "%s", rows->hint);
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

/* ---- Names ---- */

/* Letters and digits alone decide: dgxh100 is dgx-h100. */
static bool same_letters(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a && !knee_is_word_char(*a))
            a++;
        while (*b && !knee_is_word_char(*b))
            b++;
        if (knee_lower(*a) != knee_lower(*b))
            return false;
        if (!*a)
            return true;
    }
}

/* The name has this word: "8b" is one of llama3-8b, "b" is none. */
static bool has_word(const char *name, const char *word, size_t length)
{
    for (const char *at = name; *at; at++) {
        size_t same = 0;
        if (at > name && knee_is_word_char(at[-1]))
            continue;
        while (same < length && knee_lower(at[same]) == knee_lower(word[same]))
            same++;
        if (same == length && !knee_is_word_char(at[length]))
            return true;
    }
    return false;
}

/* Words of the text that the name has, with a bonus for one that names a size ("8B"). */
static size_t words_shared(const char *text, const char *name)
{
    size_t shared = 0;
    for (const char *at = text; *at;) {
        size_t length = 0;
        while (knee_is_word_char(at[length]))
            length++;
        if (length > 1 && has_word(name, at, length))
            shared += knee_is_digit(at[0]) ? 2 : 1;
        at += length ? length : 1;
    }
    return shared;
}

#define OFFERED 3
#define FEW     8 /* a list this short is shown whole */

/* At most three names that share words with the text, the nearest in spelling first. */
static size_t offers(const struct knee_choices *choices, const char *text, const char **out)
{
    size_t rank[OFFERED] = {0}, found = 0, count = choices->count();
    struct knee_nearest nearest = {.wanted = text};
    for (size_t row = 0; row < count; row++)
        knee_nearest_offer(&nearest, choices->name(row));
    for (size_t row = 0; row < count; row++) {
        const char *name = choices->name(row);
        size_t score = name == nearest.name ? SIZE_MAX : words_shared(text, name), at = found;
        if (score == 0)
            continue;
        while (at > 0 && rank[at - 1] < score)
            at--;
        for (size_t i = found < OFFERED ? found : OFFERED - 1; i > at; i--) {
            rank[i] = rank[i - 1];
            out[i] = out[i - 1];
        }
        if (at < OFFERED) {
            rank[at] = score;
            out[at] = name;
            found += found < OFFERED;
        }
    }
    return found;
}

static void offer(const struct knee_choices *choices, const char *text, struct knee_err *err)
{
    const char *near[FEW];
    char list[160] = "";
    bool all = false;
    size_t used = 0, count = offers(choices, text, near);
    if (count == 0 && choices->count() <= FEW) {
        all = true;
        for (; count < choices->count(); count++)
            near[count] = choices->name(count);
    }
    for (size_t i = 0; i < count && used < sizeof list; i++)
        used += (size_t)knee_format(list + used, sizeof list - used, "%s%s%s%s",
                                    i == 0           ? ""
                                    : i + 1 == count ? " or "
                                                     : ", ",
                                    all ? "" : "'", near[i], all ? "" : "'");
    if (all)
        knee_hint(err, "use %s", list);
    else if (count)
        knee_hint(err, "did you mean %s?", list);
    else
        knee_hint(err, "'knee list' shows them all");
}

int knee_choice_find(const struct knee_choices *choices, const char *name, const char *where,
                     struct knee_err *err)
{
    size_t count = choices->count();
    for (size_t row = 0; row < count; row++)
        if (knee_same_name(name, choices->name(row)))
            return (int)row;
    int spelt = choices->spelt ? choices->spelt(name) : -1;
    bool path = name[0] == '.' || name[0] == '/'; /* ./NAME is a file */
    for (size_t row = 0; row < count && spelt < 0 && !path; row++)
        if (same_letters(name, choices->name(row)))
            spelt = (int)row;
    if (spelt >= 0)
        return spelt;
    knee_fail(err, KNEE_USAGE, where, "there is no %s '%.60s'", choices->what, name);
    const char *advice = choices->advice ? choices->advice(name) : NULL;
    if (advice)
        knee_hint(err, "%s", advice);
    else
        offer(choices, name, err);
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

/* Lengths that models have in powers of two: --seq 8k is 8192, 4M tokens are 4Mi. */
static double in_powers_of_two(const struct knee_key *key, const char *text, double number)
{
    static const char *const lengths[] = {"seq", "vocab", "window", "positions", "global-tokens"};
    char last = text[0] ? text[strlen(text) - 1] : 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        if (strcmp(key->name, lengths[i]) == 0)
            return last == 'k' || last == 'K'   ? number / 1e3 * 1024
                   : last == 'm' || last == 'M' ? number / 1e6 * 1024 * 1024
                                                : number;
    return number;
}

/* A small rate without a unit: 400 is Gb/s to one reader and GB/s to another. Programs may pass
 * bytes per second. */
static bool needs_unit(const struct knee_key *key, const char *text, double number)
{
    return key->unit == KNEE_UNIT_BYTES_PER_S && number > 0 && number < 1e6 &&
           strspn(text, "0123456789.eE+- ") == strlen(text);
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
            number = in_powers_of_two(key, text, number);
        if (!status && needs_unit(key, text, number)) {
            status = knee_fail(err, KNEE_USAGE, where, "'%.60s' needs a unit", text);
            knee_hint(err, "for example 400Gb/s or 50GB/s");
        }
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
    bool flag = source == KNEE_FLAG; /* the flag is --gpus; files may say workers */
    knee_format(where, sizeof where, "%s%s", flag ? "--" : "",
                flag && strcmp(key->name, "workers") == 0 ? "gpus" : key->name);
    knee_status status = set_field(key, (char *)object + key->offset, text, where, err);
    if (!status)
        knee_keys_source(keys, object)[row] = (unsigned char)source;
    return status;
}
