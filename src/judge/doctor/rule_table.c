/* SPDX-License-Identifier: MIT */
/*
 * The rules of data/doctor_rules.csv. A row with a key is judged here: the fact, a test, a limit. A
 * row without one belongs to a function in another file of this folder, which needs several facts;
 * severity, fix and what it slows are in the table all the same.
 */
#include "judge/doctor/doctor_judge.h"

#include "base/keys.h"

#include <math.h>
#include <string.h>

static const char *const severities[] = {"note", "warning", "error"};
KNEE_WORDS(knee_severity_names, "severity", severities);

const struct knee_doctor_rule *knee_rule_at(size_t row)
{
    return row < knee_doctor_rules_count ? &knee_doctor_rules[row] : NULL;
}

const struct knee_doctor_rule *knee_rule_of(const char *id)
{
    for (size_t i = 0; i < knee_doctor_rules_count; i++)
        if (strcmp(knee_doctor_rules[i].id, id) == 0)
            return &knee_doctor_rules[i];
    return NULL;
}

/* ---- Judging a row ---- */

/* "a|b|c" has the value; an empty alternative at the end stands for an empty value. */
static bool one_of(const char *list, const char *value)
{
    struct knee_slice rest = knee_slice_of(list), piece;
    while (knee_slice_until(&rest, '|', &piece))
        if (knee_slice_is(piece, value))
            return true;
    return value[0] == '\0';
}

/* Against a number, or another fact of the same subject. Half a per cent is measuring. */
static bool compare(const struct knee_fact *fact, double other, bool above)
{
    return above ? fact->number > other * 1.005 : fact->number < other * 0.995;
}

static bool holds(const struct knee_facts *facts, const struct knee_doctor_rule *rule,
                  const struct knee_fact *fact, const struct knee_fact **other)
{
    double limit = NAN;
    if (strcmp(rule->test, "is") == 0)
        return strcmp(fact->value, rule->limit) == 0;
    if (strcmp(rule->test, "not") == 0)
        return !one_of(rule->limit, fact->value);
    if (strcmp(rule->test, "has") == 0)
        return strstr(fact->value, rule->limit) != NULL;
    if (strcmp(rule->test, "lacks") == 0)
        return !strstr(fact->value, rule->limit);
    if (strcmp(rule->test, "any") == 0)
        return fact->value[0] != '\0';
    if (strcmp(rule->test, "over") == 0 || strcmp(rule->test, "under") == 0) {
        *other = knee_fact_find(facts, fact->subject, rule->limit);
        return *other && compare(fact, (*other)->number, rule->test[0] == 'o');
    }
    knee_slice_number(knee_slice_of(rule->limit), &limit);
    return strcmp(rule->test, "above") == 0 ? fact->number > limit : fact->number < limit;
}

/* What a fact's number says when it was counted; its value otherwise. */
static const char *fill(const struct knee_doctor_rule *rule, const struct knee_fact *fact,
                        const struct knee_fact *other, char *out, size_t size)
{
    size_t used = 0;
    for (const char *at = rule->says; *at && used + 1 < size;) {
        const char *piece = NULL;
        size_t skip = 0;
        if (strncmp(at, "{value}", 7) == 0)
            piece = fact->value, skip = 7;
        else if (strncmp(at, "{other}", 7) == 0)
            piece = other ? other->value : "", skip = 7;
        else if (strncmp(at, "{where}", 7) == 0)
            piece = fact->subject, skip = 7;
        if (!piece) {
            out[used++] = *at++;
            continue;
        }
        for (; *piece && used + 1 < size; piece++)
            out[used++] = *piece;
        at += skip;
    }
    out[used] = '\0';
    return out;
}

static void check_row(struct knee_exam *exam, const struct knee_doctor_rule *rule)
{
    for (const struct knee_fact *fact = NULL; knee_fact_next(exam->facts, rule->key, &fact);) {
        const struct knee_fact *other = NULL;
        char evidence[320];
        if (!holds(exam->facts, rule, fact, &other))
            continue;
        double left = other ? fact->number / other->number : NAN;
        knee_blame_rule(exam, rule, rule->severity, fact->subject, left,
                        fill(rule, fact, other, evidence, sizeof evidence));
    }
}

void knee_check_rows(struct knee_exam *exam, const struct knee_doctor_rule *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].key)
            check_row(exam, &rows[i]);
}

void knee_check_table(struct knee_exam *exam)
{
    knee_check_rows(exam, knee_doctor_rules, knee_doctor_rules_count);
}
