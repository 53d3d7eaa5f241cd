/* SPDX-License-Identifier: MIT */
/*
 * Answers as data. Each command has its own result struct; one `struct knee_answer_type`
 * describes it, and src/out renders any such answer as text, Markdown, CSV, JSON, Prometheus or a
 * schema without knowing the command. The description has three parts:
 *
 *   fields    the tree of values, one row each: key, heading, kind, tier, where the value is. JSON
 *             is this tree. docs/reference/json.md and the page's schema are generated from it.
 *   views     which lists of the tree are tables in text, in which tier, with which rows. The first
 *             view is also the CSV.
 *   say       a function that fills `struct knee_said`: title, headline, reason, effect, what was
 *             assumed, what to run next. It takes numbers from the result and computes none.
 *
 * A field is one row of a table:
 *
 *   static const struct knee_field rank_fields[] = {
 *       KNEE_FIELD(struct rank, rank, "rank", "rank", KNEE_AS_COUNT, KNEE_TIER_SCREEN, "global
 * rank"), KNEE_FIELD(struct rank, wait_s, "wait_s", "wait", KNEE_AS_SECONDS, KNEE_TIER_SCREEN, ""),
 *       KNEE_GET(late_word, "state", "", KNEE_AS_TEXT, KNEE_TIER_SCREEN, "late or not"),
 *   };
 *   static const struct knee_field job_fields[] = {
 *       KNEE_FIELD(struct job, step_s, "step_s", "step", KNEE_AS_SECONDS, KNEE_TIER_SCREEN, "..."),
 *       KNEE_ROWS(struct job, ranks, rank_count, "ranks", rank_fields, "one row per rank"),
 *   };
 *
 * A value sits at an offset in its row (KNEE_FIELD finds the C type by itself) or comes from a
 * function (KNEE_GET). NaN, NULL and an unset value are `null` in JSON and an empty cell elsewhere.
 */
#ifndef KNEE_SAY_FIELDS_H
#define KNEE_SAY_FIELDS_H

#include "base/text.h"
#include "knee_keys.h"

#include <stddef.h>
#include <stdint.h>

/* What a value is. JSON and CSV have it exact, in the base unit; text as src/say/numbers.h says. */
enum knee_kind {
    KNEE_AS_TEXT,    /* text */
    KNEE_AS_COUNT,   /* 4,680 */
    KNEE_AS_LARGE,   /* 605k, 1.2M: tokens, parameters */
    KNEE_AS_NUMBER,  /* three significant digits, no unit */
    KNEE_AS_SECONDS, /* 354 ms, 6.9 s, 15.7 h */
    KNEE_AS_MS,      /* seconds; the text has milliseconds and the heading the unit */
    KNEE_AS_BYTES,   /* 62 GB */
    KNEE_AS_MESSAGE, /* 32 MiB where it is a round one, else 34 MB */
    KNEE_AS_RATE,    /* bytes/s: 1.5 GB/s */
    KNEE_AS_FLOPS,   /* 790 TFLOP/s */
    KNEE_AS_SHARE,   /* 0.49: 49% */
    KNEE_AS_CHANGE,  /* 0.12: +12% */
    KNEE_AS_TIMES,   /* 1.45x */
    KNEE_AS_DOLLARS, /* $1.2M */
    KNEE_AS_JOULES,  /* 5.2 kJ */
    KNEE_AS_WATTS,   /* 690 W */
    KNEE_AS_YES_NO,  /* true, false: yes, no */
    /* Not values: containers of other fields */
    KNEE_AS_OBJECT, /* {...} under its key */
    KNEE_AS_INLINE, /* the fields of another struct, as if they stood here */
    KNEE_AS_LIST,   /* [...] of rows */
    KNEE_AS_INPUTS, /* the inputs of a key table that were used, with where each came from */
};

/* A row that is being rendered. */
struct knee_at {
    const void *row;          /* what offsets count from */
    const struct knee_at *up; /* what it is inside; NULL at the top */
    size_t index;             /* among the rows of its list */
    const struct knee_said *said;
};

/* One value. `words` is for text that a getter puts together; it is released by who asked. */
struct knee_value {
    enum { KNEE_NOTHING, KNEE_A_NUMBER, KNEE_NANOSECONDS, KNEE_A_TEXT, KNEE_A_BOOL } is;
    double number, low, high; /* low < high: the interval */
    int64_t whole;            /* KNEE_NANOSECONDS */
    const char *text;         /* KNEE_A_TEXT; NULL: see words */
    struct knee_text words;
};

struct knee_field {
    const char *key;     /* JSON and CSV; NULL: a bare value in a list, or one of text alone */
    const char *heading; /* text and Markdown; NULL: not shown there */
    enum knee_kind kind;
    enum knee_tier tier;
    const char *about;  /* for docs/reference/json.md */
    const char *metric; /* name in Prometheus; NULL: none */
    bool label;         /* Prometheus: tells the rows of its list apart */
    bool interval;      /* low_KEY and high_KEY come with it */
    bool bare;          /* the table of the default screen has it without its interval */

    /* Where the value is: a function, or an offset and what is stored there. */
    void (*get)(const struct knee_at *at, struct knee_value *out);
    size_t offset;
    enum {
        KNEE_IS_DOUBLE,
        KNEE_IS_INT,
        KNEE_IS_UNSIGNED,
        KNEE_IS_SIZE,
        KNEE_IS_I64,
        KNEE_IS_BOOL,
        KNEE_IS_STRING, /* const char * */
        KNEE_IS_CHARS,  /* char[] */
    } is;
    size_t interval_offset; /* of struct knee_sure {low, high}; with `interval` and no `get` */
    bool nanoseconds;       /* an int64_t of nanoseconds; JSON has exact seconds */

    /* OBJECT, INLINE and LIST */
    const struct knee_field *fields;
    size_t field_count;
    const void *(*object)(const struct knee_at *at); /* OBJECT, INLINE: instead of the offset */
    bool pointer;                                    /* the offset is that of a pointer */
    /* The row-th row of a list, NULL after the last; instead of offsets */
    const void *(*row)(const struct knee_at *at, size_t index);
    size_t count_offset, row_size; /* of a size_t; of one row */
    const struct knee_keys *keys;  /* KNEE_AS_INPUTS: of the object at the offset */

    /* Is it there at all? NULL: always. A field that is not there has no key in JSON. */
    bool (*when)(const struct knee_at *at);
    bool flat; /* OBJECT: on one line of JSON */
    bool tall; /* LIST: each value of a row on a line of JSON; else each row */
};

/* The page renders JSON alone: headings and explanations would only make it larger. */
#if KNEE_JSON_ONLY
#define KNEE_ABOUT(words) NULL
#define KNEE_SHOWN(words) NULL
#else
#define KNEE_ABOUT(words) words
#define KNEE_SHOWN(words) words
#endif

#define KNEE_COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define KNEE_STORED(member)                                                                        \
    _Generic(&(member),                                                                            \
        double *: KNEE_IS_DOUBLE,                                                                  \
        const double *: KNEE_IS_DOUBLE,                                                            \
        int *: KNEE_IS_INT,                                                                        \
        unsigned *: KNEE_IS_UNSIGNED,                                                              \
        size_t *: KNEE_IS_SIZE,                                                                    \
        int64_t *: KNEE_IS_I64,                                                                    \
        bool *: KNEE_IS_BOOL,                                                                      \
        char **: KNEE_IS_STRING,                                                                   \
        const char **: KNEE_IS_STRING,                                                             \
        const char *const *: KNEE_IS_STRING,                                                       \
        default: KNEE_IS_CHARS)

/* The parts of a row that macros share. */
#define KNEE_LOOKS(name, head, look, from, words)                                                  \
    .key = name, .heading = KNEE_SHOWN(head), .kind = look, .tier = from, .about = KNEE_ABOUT(words)
#define KNEE_STORED_AT(type, member)                                                               \
    .offset = offsetof(type, member), .is = KNEE_STORED(((type *)0)->member)
#define KNEE_HOLDS(name, look, table, words)                                                       \
    .key = name, .kind = look, .about = KNEE_ABOUT(words), .fields = table,                        \
    .field_count = KNEE_COUNT_OF(table)
#define KNEE_COUNTED(type, member, count)                                                          \
    .offset = offsetof(type, member), .count_offset = offsetof(type, count),                       \
    .row_size = sizeof *((type *)0)->member

/* A member of the row's struct, also one inside another: step.label_s[KNEE_COMPUTE]. Further fields
 * of the row (metric, when, ...) may follow as designated initialisers. */
#define KNEE_FIELD(type, member, name, head, look, from, words, ...)                               \
    {                                                                                              \
        KNEE_LOOKS(name, head, look, from, words), KNEE_STORED_AT(type, member), __VA_ARGS__       \
    }
/* The same with its interval, a struct knee_sure. */
#define KNEE_BETWEEN(type, member, sure, name, head, look, from, words, ...)                       \
    KNEE_FIELD(type, member, name, head, look, from, words, .interval = true,                      \
               .interval_offset = offsetof(type, sure), __VA_ARGS__)
/* int64_t nanoseconds, exact in JSON. */
#define KNEE_NS(type, member, name, head, look, from, words, ...)                                  \
    KNEE_FIELD(type, member, name, head, look, from, words, .nanoseconds = true, __VA_ARGS__)
/* What a function says. */
#define KNEE_GET(function, name, head, look, from, words, ...)                                     \
    {                                                                                              \
        KNEE_LOOKS(name, head, look, from, words), .get = function, __VA_ARGS__                    \
    }
/* A value that only Prometheus has: another unit, or another word for "none". */
#define KNEE_METRIC(function, name, words)                                                         \
    KNEE_GET(function, NULL, NULL, KNEE_AS_NUMBER, KNEE_TIER_DATA, words, .metric = name)
/* A struct inside the row; with .pointer = true a pointer to one, NULL where there is none; one
 * that a function finds; and a key with fields of the row itself. */
#define KNEE_INSIDE(type, member, name, table, words, ...)                                         \
    {                                                                                              \
        KNEE_HOLDS(name, KNEE_AS_OBJECT, table, words), .offset = offsetof(type, member),          \
                                                        __VA_ARGS__                                \
    }
#define KNEE_OBJECT(function, name, table, words, ...)                                             \
    {                                                                                              \
        KNEE_HOLDS(name, KNEE_AS_OBJECT, table, words), .object = function, __VA_ARGS__            \
    }
#define KNEE_GROUP(name, table, words, ...)                                                        \
    KNEE_OBJECT(knee_same_row, name, table, words, __VA_ARGS__)
/* The fields of a struct inside the row, or of one that a function finds, without a key. */
#define KNEE_AMONG(type, member, table, ...)                                                       \
    {                                                                                              \
        KNEE_HOLDS(NULL, KNEE_AS_INLINE, table, NULL), .offset = offsetof(type, member),           \
                                                       __VA_ARGS__                                 \
    }
#define KNEE_AMONG_BY(function, table)                                                             \
    {                                                                                              \
        KNEE_HOLDS(NULL, KNEE_AS_INLINE, table, NULL), .object = function                          \
    }
/* A list: a pointer and a count in the row; an array inside the row and a count; rows that a
 * function finds. */
#define KNEE_ROWS(type, member, count, name, table, words, ...)                                    \
    KNEE_ARRAY(type, member, count, name, table, words, .pointer = true, __VA_ARGS__)
#define KNEE_ARRAY(type, member, count, name, table, words, ...)                                   \
    {                                                                                              \
        KNEE_HOLDS(name, KNEE_AS_LIST, table, words), KNEE_COUNTED(type, member, count),           \
            __VA_ARGS__                                                                            \
    }
#define KNEE_ROWS_BY(function, name, table, words, ...)                                            \
    {                                                                                              \
        KNEE_HOLDS(name, KNEE_AS_LIST, table, words), .row = function, __VA_ARGS__                 \
    }
/* inputs[]: what was used of a key table. */
#define KNEE_USED(type, member, table_of_keys, ...)                                                \
    {                                                                                              \
        .key = "inputs", .kind = KNEE_AS_INPUTS, .offset = offsetof(type, member),                 \
        .keys = &table_of_keys, .tier = KNEE_TIER_FULL,                                            \
        .about = KNEE_ABOUT("`name`, `value`, `text`, `source` of every input that was used"),     \
        __VA_ARGS__                                                                                \
    }

/* ---- Sentences ---- */

/* The sentences about a result. Each part is one line (a sentence or two) and may be empty; `after`
 * and `notes` have one sentence per line. */
struct knee_said {
    struct knee_text title;    /* what this is about: model, GPUs, batch; ranks, steps, GPU */
    struct knee_text voids;    /* what makes the answer worthless; comes before the headline */
    struct knee_text headline; /* what to do, or "Healthy" */
    struct knee_text reason;   /* why, with one number */
    struct knee_text effect;   /* the gain, with its interval */
    struct knee_text after;    /* after the table */
    struct knee_text assumed;  /* what moves the answer by more than 5 % */
    struct knee_text next;     /* one command, or two separated by " | " */
    struct knee_text notes;    /* -v and JSON: where the model is stretched, what was skipped */
};

/* Getters of JSON keys that older versions had: headline, reason, effect and all of them. */
void knee_get_sentence(const struct knee_at *at, struct knee_value *out);
void knee_get_headline(const struct knee_at *at, struct knee_value *out);
void knee_get_reason(const struct knee_at *at, struct knee_value *out);
void knee_get_effect(const struct knee_at *at, struct knee_value *out);
#define KNEE_DO_WHY_BUYS                                                                           \
    KNEE_GET(knee_get_headline, "do", NULL, KNEE_AS_TEXT, KNEE_TIER_DATA, "what to do"),           \
        KNEE_GET(knee_get_reason, "why", NULL, KNEE_AS_TEXT, KNEE_TIER_DATA, "why"),               \
        KNEE_GET(knee_get_effect, "buys", NULL, KNEE_AS_TEXT, KNEE_TIER_DATA, "what it buys")
#define KNEE_SENTENCE                                                                              \
    KNEE_GET(knee_get_sentence, "sentence", NULL, KNEE_AS_TEXT, KNEE_TIER_DATA,                    \
             "headline, reason and effect in one line")

/* ---- Pictures ---- */

struct knee_bar_part {
    const char *name;
    double share;                /* of the whole bar */
    const char *unicode, *ascii; /* its shading; NULL: the next of a list */
};
#define KNEE_PARTS_MAX 12

struct knee_plot_line {
    const char *x_name, *y_name; /* y is a share */
    const char *mark_name;       /* NULL: no mark */
    const char *level_name;
    double mark, level; /* a place on x, a height; NaN: none */
    size_t count;
    double *x, *y; /* of `count`: to be filled */
};

struct knee_picture {
    enum knee_tier tier;
    /* One bar: how many parts; 0: no bar. */
    size_t (*bar)(const void *result, struct knee_bar_part parts[KNEE_PARTS_MAX]);
    /* Or a curve: called with x NULL for the count, then to fill x and y. */
    void (*curve)(const void *result, struct knee_plot_line *curve);
};

/* ---- The description of an answer ---- */

struct knee_view {
    const char *list;  /* path of a list in the fields: "ranks", "where.kernels"; or of an object,
                          which is shown as one row per value */
    const char *title; /* NULL: none */
    enum knee_tier tier;
    size_t most;                             /* rows in the default tier; 0: 8 */
    size_t most_full;                        /* rows with -v; 0: all */
    bool (*pick)(const struct knee_at *row); /* rows of the default tier; NULL: the first ones */
    /* Each row as a few lines in place of a table: values without a heading on the first, the
     * others indented below it, "fix: ...". */
    bool blocks;
    bool (*when)(const void *result);                /* on the default screen? NULL: yes */
    const char *(*group)(const struct knee_at *row); /* a line before the first row of each; NULL */
};

struct knee_answer_type {
    const char *schema; /* "knee.plan/1" */
    const struct knee_field *fields;
    size_t field_count;
    const struct knee_view *views;
    size_t view_count;
    const struct knee_picture *pictures;
    size_t picture_count;
    void (*say)(const void *result, struct knee_said *said);
};
#define KNEE_FIELDS(table) .fields = table, .field_count = KNEE_COUNT_OF(table)
#define KNEE_VIEWS(table)  .views = table, .view_count = KNEE_COUNT_OF(table)

/* All answers there are; NULL ends. docs/reference/json.md is made of them. */
extern const struct knee_answer_type *const knee_answer_types[];

/* ---- Reading an answer ---- */

const void *knee_same_row(const struct knee_at *at);
/* The result itself, from wherever a row is. */
const void *knee_top_row(const struct knee_at *at);

/* The value of a field (not of an object or list). Release with knee_value_release(). */
void knee_value_of(const struct knee_field *field, const struct knee_at *at,
                   const struct knee_alloc *alloc, struct knee_value *out);
void knee_value_release(struct knee_value *value);
/* For getters. */
void knee_value_number(struct knee_value *out, double number);
void knee_value_between(struct knee_value *out, double number, double low, double high);
void knee_value_text(struct knee_value *out, const char *text);
void knee_value_bool(struct knee_value *out, bool truth);
void knee_value_ns(struct knee_value *out, int64_t ns, bool known);
void knee_value_printf(struct knee_value *out, const char *fmt, ...) KNEE_PRINTF(2, 3);
/* What a text says, "" where it is none. */
const char *knee_value_string(const struct knee_value *value);
/* NaN, NULL or "" : nothing to show. */
bool knee_value_empty(const struct knee_value *value);
/* What a person reads. Appends. */
void knee_value_show(const struct knee_value *value, enum knee_kind kind, struct knee_text *text);

/* The struct that an OBJECT or INLINE field is about, NULL: none; and row `index` of a list. */
const void *knee_object_at(const struct knee_field *field, const struct knee_at *at);
const void *knee_row_at(const struct knee_field *field, const struct knee_at *at, size_t index);
bool knee_field_there(const struct knee_field *field, const struct knee_at *at);

void knee_said_init(struct knee_said *said, const struct knee_alloc *alloc);
void knee_said_release(struct knee_said *said);
bool knee_said_failed(const struct knee_said *said);

#endif
