/* SPDX-License-Identifier: MIT */
/* Keys: one row per input, from which flags, YAML keys, help and completion come. What knee.h says
 * of every call holds here; these structs may change with the minor version. */
#ifndef KNEE_KEYS_H
#define KNEE_KEYS_H

#include "knee.h"

/* The text of a file, and the name by which errors call it. */
struct knee_named_text {
    const char *text;
    size_t length;
    const char *name;
};

#define KNEE_WORKERS_MAX   16777216.0 /* largest worker count */
#define KNEE_ROWS_MAX      10000      /* most worker counts in one table */
#define KNEE_WORKER_RANGES 32
/* Worker counts as written: from..to by a factor (x2) or by a step (+8). */
struct knee_workers {
    size_t ranges;
    struct {
        double from, to, factor, step;
    } range[KNEE_WORKER_RANGES];
};

/* The worker counts of a list, ascending and without repeats, into `out`, which has room for
 * `capacity` of them; KNEE_ROWS_MAX is always enough. Returns how many, 0 for a list that is too
 * long. */
size_t knee_workers_list(const struct knee_workers *workers, double *out, size_t capacity);

/* ---- Keys: one row per input; flags, YAML keys, help and completion come from it ---------- */

enum knee_unit {
    KNEE_UNIT_COUNT,       /* 7B, 350M, 2048 */
    KNEE_UNIT_FACTOR,      /* 4, 4x */
    KNEE_UNIT_FRACTION,    /* 0.7, 70% */
    KNEE_UNIT_SECONDS,     /* 180ms, 5us */
    KNEE_UNIT_BYTES,       /* 2, 2B, 4KiB */
    KNEE_UNIT_BYTES_PER_S, /* 25GB/s, 400Gbit/s */
    KNEE_UNIT_FLOPS,       /* 60TFLOP/s */
    KNEE_UNIT_PER_S,       /* 12000/s */
    KNEE_UNIT_WATTS,       /* 700W */
    KNEE_UNIT_DOLLARS,     /* $2.50, 2.5/h */
    KNEE_UNIT_JOULES,      /* 5kJ */
    KNEE_UNITS
};

/* How much of an answer is shown: -q, the default, -v. KNEE_TIER_DATA marks a field that only JSON
 * and CSV have. */
enum knee_tier { KNEE_TIER_SCREEN, KNEE_TIER_BRIEF, KNEE_TIER_FULL, KNEE_TIER_DATA };

enum knee_key_kind {
    KNEE_KEY_NUMBER,  /* double */
    KNEE_KEY_CHOICE,  /* int: row of `choices`, -1 when not given */
    KNEE_KEY_WORKERS, /* struct knee_workers */
    KNEE_KEY_SWITCH,  /* bool; takes no value on the command line */
    KNEE_KEY_WORD,    /* const char *, borrowed from the caller */
    KNEE_KEY_PARSED,  /* the result of `parse`: `size` bytes that begin with its name as text */
};

/* A named list, such as the GPU presets. */
struct knee_choices {
    const char *what; /* "GPU preset" */
    size_t (*count)(void);
    const char *(*name)(size_t row);
    int (*spelt)(const char *text);          /* row of another spelling, -1: none; may be NULL */
    const char *(*advice)(const char *text); /* of a name that is not in the list; may be NULL */
};

struct knee_key {
    const char *name; /* --name on the command line, name: in YAML */
    enum knee_key_kind kind;
    enum knee_unit unit;                /* numbers */
    double min, max;                    /* numbers: allowed range, both ends included */
    const struct knee_choices *choices; /* choices; of what is parsed the names it knows */
    knee_status (*parse)(const char *text, const char *where, void *field, struct knee_err *err);
    size_t size;           /* of what is parsed */
    size_t offset;         /* of the field in the object */
    const char *group;     /* heading in help and man page */
    const char *otherwise; /* what holds when it is not given, in words */
    const char *help;
};

/* Where a value came from; shown to the user for every input. */
enum knee_source {
    KNEE_UNSET,
    KNEE_DEFAULT, /* assumed by knee */
    KNEE_PRESET,  /* from a preset that was named */
    KNEE_FILE,    /* from the job file */
    KNEE_FLAG,    /* from the command line, or set by the caller */
    KNEE_DERIVED, /* computed from others */
};

#define KNEE_KEYS_MAX 96

struct knee_keys {
    const struct knee_key *rows;
    size_t count;
    size_t source_offset; /* of `unsigned char source[KNEE_KEYS_MAX]` in the object */
};

/* Sets one input from text. `source` is kept with the value. An unknown name or a bad
 * value gives KNEE_USAGE with the nearest valid spelling; a word is kept by reference. */
knee_status knee_keys_set(const struct knee_keys *keys, void *object, const char *name,
                          const char *text, enum knee_source source, struct knee_err *err);

#endif
