/* SPDX-License-Identifier: MIT */
/*
 * Inside the reader of training logs. A log goes through in four steps: the text is searched for a
 * fixed list of marks, all at once (train_log_find.c); a line with the mark of a format is cut into
 * "name: number" pairs (train_log_pairs.c), whose names the format's table knows
 * (train_log_formats.c); marks of facts say something about the job (train_log_facts.c); and at the
 * end rows become steps with seconds (train_log_steps.c).
 */
#ifndef KNEE_READ_RUN_TRAIN_LOG_H
#define KNEE_READ_RUN_TRAIN_LOG_H

#include "base/slice.h"
#include "base/text.h"
#include "knee_scale.h"

/* What a number in a line is. */
enum train_what {
    TRAIN_NOTHING,
    TRAIN_STEP,
    TRAIN_SECONDS,        /* of this step */
    TRAIN_ELAPSED,        /* since the start, seconds */
    TRAIN_INTERVAL,       /* since the row before, seconds */
    TRAIN_STAMP,          /* when the line was written, seconds since 1970 */
    TRAIN_SAMPLES_PER_S,  /* of all workers */
    TRAIN_TOKENS_PER_S,   /* of all workers */
    TRAIN_WORKER_TOKENS,  /* tokens per second of one worker */
    TRAIN_WORKER_SAMPLES, /* samples per second of one worker */
    TRAIN_STEPS_PER_S,
    TRAIN_TOKENS, /* of this step, all workers */
    TRAIN_BATCH,
    TRAIN_BATCH_TOKENS, /* global batch in tokens */
    TRAIN_SAMPLES,      /* so far */
    TRAIN_LOSS,
    TRAIN_EVAL,
    TRAIN_TFLOPS,    /* per worker */
    TRAIN_PART,      /* seconds of a micro-batch: a step is their sum */
    TRAIN_RUNTIME,   /* seconds of the whole run */
    TRAIN_RUN_STEPS, /* steps of the whole run */
    TRAIN_WHATS
};

/* A row as it was read; NaN where the line does not say. */
struct train_raw {
    double value[TRAIN_WHATS];
    unsigned format;
};

struct train_key {
    const char *name; /* as train_pairs() writes it */
    enum train_what what;
    double scale;
};

struct knee_train_reader;
struct train_line {
    struct knee_slice text; /* without colours, from the line's start */
    size_t mark;            /* where the mark stands */
};

enum train_flags {
    TRAIN_EACH_LINE = 1,   /* every line is one more step, whatever number it has */
    TRAIN_SUFFIXES = 2,    /* numbers may end in K, M, B, T */
    TRAIN_COUNT_LAST = 4,  /* a better step number may follow a worse one in the line */
    TRAIN_NO_STAMP = 8,    /* time stamps are not worth reading: there is something better */
    TRAIN_LAST_RESORT = 16 /* only when no other format is there */
};

#define TRAIN_MARKS 6
struct train_format {
    const char *name;
    const char *mark[TRAIN_MARKS];
    const struct train_key *keys; /* name NULL ends */
    unsigned flags;
    /* Reads the line another way; NULL: pairs. False: nothing in it to use. */
    bool (*read)(struct knee_train_reader *reader, struct train_line line, struct train_raw *raw);
};
extern const struct train_format knee_train_formats[];
extern const size_t knee_train_format_count;

/* ---- Marks: train_log_find.c ---- */

#define TRAIN_PATTERNS 250
struct train_finder {
    struct {
        const char *text;
        size_t length;
        unsigned id, next; /* next pattern that ends with the same two bytes; 0: none */
    } pattern[TRAIN_PATTERNS];
    size_t count; /* patterns 1 ... count */
    size_t shortest;
    unsigned char shift[65536];
    unsigned char first[65536]; /* pattern that ends (at its shortest length) with these bytes */
};
void knee_train_finder_add(struct train_finder *finder, const char *text, unsigned id);
void knee_train_finder_ready(struct train_finder *finder);
/* Where the next pattern from `at` on begins, its id in *id; `length`: none. */
size_t knee_train_finder_next(const struct train_finder *finder, const char *data, size_t length,
                              size_t at, unsigned *id);

/* ---- Pairs: train_log_pairs.c ---- */

#define TRAIN_NAME 64
/* One "name: number" of a line. `name` is lower case, other characters than letters and digits as
 * one underscore. */
struct train_pair {
    char name[TRAIN_NAME];
    size_t length;
    double value;
    double unit_s; /* seconds that its unit is: "5ms", "5 sec"; NaN: none of time */
};
struct train_pairs {
    const char *at, *end;
    bool suffixes;
};
bool knee_train_pairs_next(struct train_pairs *pairs, struct train_pair *out);
/* The pair's number as the key wants it. A unit of time beside the number goes before the key's. */
double knee_train_value(const struct train_key *key, const struct train_pair *pair);
/* The number at `*at`, which moves past it; NaN: there is none. Commas between thousands are
 * skipped. */
double knee_train_number(const char **at, const char *end);
/* Seconds since 1970 of the first "2024-03-07 15:27:02,646" of a line; NaN: there is none. */
double knee_train_stamp(struct knee_slice line);
/* "1:02:03", "04:59", "9 days, 21:16:28" in seconds; NaN. */
double knee_train_clock(struct knee_slice text);
/* Rank that wrote the line, by its prefix; -1: it does not say. *of: the number of ranks where the
 * prefix has it too, else NaN. */
int knee_train_rank(struct knee_slice line, double *of);

/* ---- Facts: train_log_facts.c ---- */

struct train_facts {
    double workers, mesh, nodes, per_node, batch, micro, accumulate, local_batch, seq, params;
    double dp, shard, tp, pp, cp, ep; /* degrees of a mesh */
    double layers, hidden, heads, kv_heads, ffn, vocab, head_dim;
    double zero_stage, run_steps, train_samples;
    double block_start_s, block_tokens, block_samples;
    char gpu[KNEE_TRAIN_TEXT], model[KNEE_TRAIN_TEXT];
    const char *workers_from;
};
void knee_train_facts_init(struct train_facts *facts);
void knee_train_facts_marks(struct train_finder *finder, unsigned first_id);
size_t knee_train_fact_count(void);
/* Reads fact number `row` in the line; false: it is not there after all. */
bool knee_train_fact_read(struct train_facts *facts, size_t row, struct knee_slice line,
                          size_t mark);
/* "tp=4," of nanotron's configuration. */
void knee_train_fact_field(struct train_facts *facts, struct knee_slice line);
/* Fills what the log says about the job. */
void knee_train_facts_finish(const struct train_facts *facts, const struct knee_text *arguments,
                             const struct knee_text *deepspeed, struct knee_train_log *log);

/* ---- The reader: train_log.c ---- */

#define TRAIN_ROWS_MAX     131072
#define TRAIN_LINE_MAX     65536
#define TRAIN_CHUNK        262144
#define TRAIN_DOCUMENT_MAX ((size_t)16 << 20)
#define TRAIN_TABLE_MAX    64 /* columns of a table that are looked at */

struct knee_train_reader {
    const struct knee_alloc *alloc;
    char name[KNEE_TRAIN_TEXT];
    struct train_finder finder;
    struct train_facts facts;
    struct knee_train_counts counts;
    struct train_raw *raw;
    size_t raw_count, raw_room;
    unsigned stride, skip; /* every stride-th row is kept */
    int rank;              /* that speaks; -1: none has said */
    double part_s;         /* micro-batches of the step so far */
    char *buffer;          /* bytes whose line is not complete yet */
    size_t used;
    char *clean; /* a line without colours */
    enum {
        TRAIN_TEXT,
        TRAIN_ARGUMENTS,
        TRAIN_CONFIG,
        TRAIN_BRACES,
        TRAIN_TABLE,
        TRAIN_DOCUMENT,
        TRAIN_EVENTS
    } state;
    int braces;
    size_t block_lines;
    struct knee_text arguments, deepspeed, document;
    bool first_line, failed;
    size_t columns; /* of a table */
    struct {
        enum train_what what;
        double scale;
    } column[TRAIN_TABLE_MAX];
};

/* The row of a table with this name, as train_pairs() writes it; NULL. */
const struct train_key *knee_train_key_find(const struct train_key *keys, const char *name,
                                            size_t length);
extern const struct train_key
    knee_train_table_keys[]; /* for tables and lines of JSON of any origin */

/* A file that is one JSON document: trainer_state.json, Megatron's golden values. */
void knee_train_document_read(struct knee_train_reader *reader);
/* What a tag or the name of a column is. */
enum train_what knee_train_column(const char *text, double *scale);
/* TensorBoard's event files: train_log_events.c. Their bytes are in reader->document. */
bool knee_train_is_events(const char *data, size_t length);
void knee_train_events_read(struct knee_train_reader *reader, unsigned format);
/* One more row. */
void knee_train_row_add(struct knee_train_reader *reader, const struct train_raw *raw);
void knee_train_raw_init(struct train_raw *raw, unsigned format);

/* Rows into steps, and all figures of the log. */
knee_status knee_train_steps_finish(struct knee_train_reader *reader, struct knee_train_log *log,
                                    struct knee_err *err);

#endif
