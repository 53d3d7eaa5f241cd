/* SPDX-License-Identifier: MIT */
/* Rules that a site adds: CSV with the columns id,severity,key,test,limit,says and the fix, which
 * is named `cure`. words: ok, the column's name */
#include "judge/doctor/doctor_judge.h"

#include "base/csv.h"
#include "base/format.h"
#include "base/keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SITE_RULES_MAX 1024
#define COLUMNS        7

/* What each test compares a fact with. */
static const struct test {
    const char *name;
    bool number, key;
} tests[] = {
    {"is", false, false},    {"not", false, false}, {"has", false, false},
    {"lacks", false, false}, {"any", false, false}, {"above", true, false},
    {"below", true, false},  {"over", false, true}, {"under", false, true},
};

static const struct test *test_named(const char *name)
{
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (strcmp(tests[i].name, name) == 0)
            return &tests[i];
    return NULL;
}

/* A limit that no fact can be compared with would make a rule that never fires. */
static knee_status check_test(const char *name, const char *limit, const char *where,
                              struct knee_err *err)
{
    const struct test *test = test_named(name);
    double number;
    if (!test)
        return knee_fail_hint(err, KNEE_INPUT, where,
                              "is, not, has, lacks, any, above, below, over, under",
                              "unknown test '%.40s'", name);
    if (test->number && !knee_slice_number(knee_slice_of(limit), &number))
        return knee_fail(err, KNEE_INPUT, where, "the limit of '%s' is a number, not '%.40s'", name,
                         limit);
    if (test->key && !limit[0])
        return knee_fail(err, KNEE_INPUT, where, "the limit of '%s' is another key", name);
    return KNEE_OK;
}

/* The fields of the row, one after the other in the strings of `out`. */
static knee_status take_row(const struct knee_csv *csv, const char *name, char **next,
                            const char *end, struct knee_doctor_rule *rule, struct knee_err *err)
{
    const char *field[COLUMNS];
    char where[128];
    knee_format(where, sizeof where, "%.100s:%zu", name, csv->line);
    for (size_t i = 0; i < COLUMNS; i++) {
        field[i] = *next;
        knee_csv_text(csv, i, *next, (size_t)(end - *next));
        *next += strlen(*next) + 1;
    }
    int severity = knee_choice_find(&knee_severity_names, field[1], where, err);
    if (severity < 0)
        return KNEE_INPUT;
    if (!field[0][0] || !field[2][0])
        return knee_fail(err, KNEE_INPUT, where, "a rule needs an id and a key");
    if (check_test(field[3], field[4], where, err))
        return KNEE_INPUT;
    *rule = (struct knee_doctor_rule){.id = field[0],
                                      .severity = (enum knee_severity)severity,
                                      .key = field[2],
                                      .test = field[3],
                                      .limit = field[4],
                                      .says = field[5],
                                      .cure = field[6],
                                      .hurts = KNEE_HURTS_NOTHING,
                                      .share = NAN,
                                      .origin = "this site"};
    return KNEE_OK;
}

knee_status knee_site_rules_read(const char *text, size_t length, const char *name,
                                 struct knee_site_rules *out, struct knee_err *err)
{
    struct knee_site_rules rules = {0};
    struct knee_csv csv;
    knee_status status = KNEE_OK;
    size_t room = length + (size_t)SITE_RULES_MAX * COLUMNS + 1;
    rules.rows = calloc(SITE_RULES_MAX, sizeof *rules.rows);
    rules.strings = calloc(room, 1);
    char *next = rules.strings;
    if (!rules.rows || !rules.strings) {
        knee_site_rules_release(&rules);
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory");
    }
    knee_csv_init(&csv, text, length);
    while (!status && knee_csv_row(&csv)) {
        char first[32];
        knee_csv_text(&csv, 0, first, sizeof first);
        if (strcmp(first, "id") == 0 || first[0] == '#')
            continue;
        if (rules.count == SITE_RULES_MAX)
            status = knee_fail(err, KNEE_INPUT, name, "more than %d rules", SITE_RULES_MAX);
        else if (!(status = take_row(&csv, name, &next, rules.strings + room,
                                     &rules.rows[rules.count], err)))
            rules.count++;
    }
    if (status) {
        knee_site_rules_release(&rules);
        return status;
    }
    *out = rules;
    return KNEE_OK;
}

void knee_site_rules_release(struct knee_site_rules *rules)
{
    free(rules->rows);
    free(rules->strings);
    *rules = (struct knee_site_rules){0};
}
