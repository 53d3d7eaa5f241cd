/* SPDX-License-Identifier: MIT */
/* Putting facts together, and asking for them. */
#ifndef KNEE_READ_HOST_FACTS_H
#define KNEE_READ_HOST_FACTS_H

#include "base/slice.h"
#include "knee_doctor.h"

/* Adds a fact; strings are copied, cut at 1023 bytes, control bytes become '?'. */
void knee_fact_add(struct knee_facts *facts, struct knee_slice subject, const char *key,
                   struct knee_slice value);
void knee_fact_put(struct knee_facts *facts, const char *subject, const char *key,
                   struct knee_slice value);
void knee_fact_number(struct knee_facts *facts, const char *subject, const char *key, double value);

/* Counts: the fact's number grows by one; its value is that of the first time. */
void knee_fact_count(struct knee_facts *facts, const char *subject, const char *key,
                     struct knee_slice first);

/* By key, then subject; of several alike the last one that came stays. */
void knee_facts_sort(struct knee_facts *facts);

/* ---- On sorted facts ---- */

/* The rows of a key: [*first, return). With a '*' at its end: of all keys that begin so. */
size_t knee_facts_range(const struct knee_facts *facts, const char *key, size_t *first);
size_t knee_facts_count(const struct knee_facts *facts, const char *key);

/* The next row of a key after *row (NULL: the first one); false: there are no more. */
bool knee_fact_next(const struct knee_facts *facts, const char *key, const struct knee_fact **row);

/* The largest number of a key's rows; 0: none. */
double knee_facts_most(const struct knee_facts *facts, const char *key);

/* The fact of a subject (NULL: any); NULL: there is none. */
const struct knee_fact *knee_fact_find(const struct knee_facts *facts, const char *subject,
                                       const char *key);
bool knee_fact_is(const struct knee_facts *facts, const char *subject, const char *key,
                  const char *value);
double knee_fact_value(const struct knee_facts *facts, const char *subject, const char *key);

#endif
