/* SPDX-License-Identifier: MIT */
/*
 * Facts of one host: strings in pages that never move, rows that are sorted once all are there.
 * What memory or the cap refuses is counted, not hidden.
 */
#include "read/host/facts.h"

#include "base/number.h"
#include "base/order.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES  65536
#define VALUE_BYTES 1023

struct knee_fact_page {
    struct knee_fact_page *next;
    size_t used;
    char bytes[PAGE_BYTES];
};

void knee_facts_release(struct knee_facts *facts)
{
    while (facts->pages) {
        struct knee_fact_page *next = facts->pages->next;
        knee_resize(facts->alloc, facts->pages, 0);
        facts->pages = next;
    }
    knee_resize(facts->alloc, facts->rows, 0);
    knee_map_release(&facts->index);
    *facts = (struct knee_facts){.alloc = facts->alloc};
}

/* A copy that stays where it is; NULL: no memory. */
static const char *keep(struct knee_facts *facts, struct knee_slice text)
{
    size_t length = text.length < VALUE_BYTES ? text.length : VALUE_BYTES;
    struct knee_fact_page *page = facts->pages;
    if (length == 0)
        return "";
    if (!page || PAGE_BYTES - page->used < length + 1) {
        page = knee_resize(facts->alloc, NULL, sizeof *page);
        if (!page) {
            facts->no_memory = true;
            return NULL;
        }
        page->next = facts->pages;
        page->used = 0;
        facts->pages = page;
    }
    char *to = page->bytes + page->used;
    knee_slice_copy(text, to, length + 1);
    page->used += length + 1;
    return to;
}

static struct knee_fact *new_row(struct knee_facts *facts)
{
    if (facts->count >= KNEE_FACTS_MAX) {
        facts->dropped++;
        return NULL;
    }
    bool room = knee_room(facts->alloc, &facts->rows, &facts->capacity, facts->count + 1,
                          sizeof *facts->rows);
    facts->no_memory = facts->no_memory || !room;
    return room ? &facts->rows[facts->count] : NULL;
}

/* "400 Gb/sec" begins with 400, "16x" with 16; "4: ACTIVE" is a code, but its number does no harm.
 */
static double leading_number(struct knee_slice value)
{
    size_t digits = 0;
    double number;
    while (digits < value.length && digits < 32 &&
           ((value.at[digits] >= '0' && value.at[digits] <= '9') || value.at[digits] == '.' ||
            (digits == 0 && value.at[0] == '-')))
        digits++;
    return knee_slice_number((struct knee_slice){value.at, digits}, &number) ? number : NAN;
}

void knee_fact_add(struct knee_facts *facts, struct knee_slice subject, const char *key,
                   struct knee_slice value)
{
    struct knee_fact *row = new_row(facts);
    if (!row)
        return;
    value = knee_slice_trim(value);
    struct knee_fact fact = {keep(facts, subject), keep(facts, knee_slice_of(key)),
                             keep(facts, value), leading_number(value), facts->count};
    if (!fact.subject || !fact.key || !fact.value)
        return;
    *row = fact;
    facts->count++;
    facts->sorted = false;
}

void knee_fact_put(struct knee_facts *facts, const char *subject, const char *key,
                   struct knee_slice value)
{
    knee_fact_add(facts, knee_slice_of(subject), key, value);
}

void knee_fact_number(struct knee_facts *facts, const char *subject, const char *key, double value)
{
    size_t before = facts->count;
    char text[40];
    knee_number_exact(text, sizeof text, value);
    knee_fact_put(facts, subject, key, knee_slice_of(text));
    if (facts->count > before)
        facts->rows[before].number = value;
}

/* Where the number of a subject and key's row stands, the last row that has them; NULL: no memory.
 */
static uint32_t *row_of(struct knee_facts *facts, const char *subject, const char *key)
{
    facts->index.alloc = facts->alloc;
    knee_map_part(&facts->index, subject, strlen(subject) + 1);
    uint32_t *row = knee_map_row(&facts->index, key, strlen(key), sizeof *row);
    facts->no_memory = facts->no_memory || !row;
    return row;
}

void knee_fact_count(struct knee_facts *facts, const char *subject, const char *key,
                     struct knee_slice first)
{
    for (uint32_t *row; facts->indexed < facts->count; *row = (uint32_t)++facts->indexed)
        if (!(row = row_of(facts, facts->rows[facts->indexed].subject,
                           facts->rows[facts->indexed].key)))
            return;
    const uint32_t *known = row_of(facts, subject, key);
    size_t before = facts->count;
    if (known && *known)
        facts->rows[*known - 1].number++;
    else if (known)
        knee_fact_put(facts, subject, key, first);
    if (facts->count > before)
        facts->rows[before].number = 1;
}

KNEE_SORT(by_key, struct knee_fact,
          KNEE_THEN(strcmp(a->key, b->key),
                    KNEE_THEN(strcmp(a->subject, b->subject), KNEE_DOWN(order))))

void knee_facts_sort(struct knee_facts *facts)
{
    size_t kept = 0;
    knee_map_release(&facts->index); /* rows move */
    facts->indexed = 0;
    if (!facts->sorted && facts->count > 1)
        qsort(facts->rows, facts->count, sizeof *facts->rows, by_key);
    /* Of several values of one thing the last one that came holds. */
    for (size_t i = 0; i < facts->count; i++)
        if (kept == 0 || strcmp(facts->rows[kept - 1].key, facts->rows[i].key) != 0 ||
            strcmp(facts->rows[kept - 1].subject, facts->rows[i].subject) != 0)
            facts->rows[kept++] = facts->rows[i];
    facts->count = kept;
    facts->sorted = true;
}

/* The first row whose (key, subject) is not before the one asked for; `subject` may be NULL. */
static size_t lower(const struct knee_facts *facts, const char *key, size_t key_length,
                    const char *subject)
{
    size_t low = 0, high = facts->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct knee_fact *row = &facts->rows[middle];
        int order = strncmp(row->key, key, key_length);
        if (order == 0 && subject)
            order = row->key[key_length] ? 1 : strcmp(row->subject, subject);
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool knee_fact_next(const struct knee_facts *facts, const char *key, const struct knee_fact **row)
{
    size_t length = strlen(key);
    bool open = length > 0 && key[length - 1] == '*';
    length -= open;
    size_t at = *row ? (size_t)(*row - facts->rows) + 1 : lower(facts, key, length, NULL);
    if (at == facts->count || strncmp(facts->rows[at].key, key, length) != 0 ||
        (!open && facts->rows[at].key[length]))
        return false;
    *row = &facts->rows[at];
    return true;
}

size_t knee_facts_range(const struct knee_facts *facts, const char *key, size_t *first)
{
    const struct knee_fact *row = NULL;
    size_t count = 0;
    for (*first = 0; knee_fact_next(facts, key, &row); count++)
        if (count == 0)
            *first = (size_t)(row - facts->rows);
    return *first + count;
}

size_t knee_facts_count(const struct knee_facts *facts, const char *key)
{
    size_t first;
    return knee_facts_range(facts, key, &first) - first;
}

double knee_facts_most(const struct knee_facts *facts, const char *key)
{
    double most = 0;
    for (const struct knee_fact *row = NULL; knee_fact_next(facts, key, &row);)
        most = fmax(most, row->number);
    return most;
}

const struct knee_fact *knee_fact_find(const struct knee_facts *facts, const char *subject,
                                       const char *key)
{
    size_t at = lower(facts, key, strlen(key), subject ? subject : "");
    if (at < facts->count && strcmp(facts->rows[at].key, key) == 0 &&
        (!subject || strcmp(facts->rows[at].subject, subject) == 0))
        return &facts->rows[at];
    return NULL;
}

bool knee_fact_is(const struct knee_facts *facts, const char *subject, const char *key,
                  const char *value)
{
    const struct knee_fact *fact = knee_fact_find(facts, subject, key);
    return fact && strcmp(fact->value, value) == 0;
}

double knee_fact_value(const struct knee_facts *facts, const char *subject, const char *key)
{
    const struct knee_fact *fact = knee_fact_find(facts, subject, key);
    return fact ? fact->number : NAN;
}

void knee_facts_write(const struct knee_facts *facts, struct knee_text *text)
{
    for (size_t i = 0; i < facts->count; i++) {
        const struct knee_fact *row = &facts->rows[i];
        char number[40];
        knee_number_exact(number, sizeof number, row->number);
        knee_text_printf(text, "%s\t%s\t%s\t", row->subject, row->key, number);
        knee_text_puts(text, row->value);
        knee_text_puts(text, "\n");
    }
}

void knee_facts_read(struct knee_facts *facts, const char *text, size_t length)
{
    struct knee_slice rest = {text, length}, line;
    while (knee_slice_line(&rest, &line)) {
        struct knee_slice subject = {line.at, 0}, key, number;
        char name[128];
        size_t before = facts->count, tab = knee_slice_find(line, "\t");
        if (tab == line.length)
            continue;
        subject.length = tab;
        line = knee_slice_from(line, tab + 1);
        if (!knee_slice_until(&line, '\t', &key) || !knee_slice_until(&line, '\t', &number))
            continue;
        knee_slice_copy(key, name, sizeof name);
        knee_fact_add(facts, subject, name, line);
        if (facts->count > before && !knee_slice_number(number, &facts->rows[before].number))
            facts->rows[before].number = NAN;
    }
}
