/* SPDX-License-Identifier: MIT */
/*
 * Inside the reader of training logs. Logs are read by mechanism, not by framework: what all of
 * them have in common is a counter that grows, and beside it a time, a rate or a time stamp. The
 * text is searched for a fixed list of marks, all at once (train_log_find.c). A line with a mark is
 * cut into "name: number" pairs (train_log_pairs.c). One table knows what names mean
 * (train_log_words.c); a format only lists the names that it uses otherwise (train_log_formats.c).
 * Progress bars,
 * "[10/53]" counters and lines of unknown shape with a time stamp are in train_log_lines.c. Marks
 * of facts say something about the job (train_log_facts.c), marks of events when it started, saved
 * and ended (train_log_account.c). At the end rows become steps with seconds (train_log_steps.c).
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
    TRAIN_TIME,           /* likewise, where the line has a counter: "time: 0.5" */
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
    TRAIN_TFLOPS,      /* per worker */
    TRAIN_PART,        /* seconds of a micro-batch: a step is their sum */
    TRAIN_RUNTIME,     /* seconds of the whole run */
    TRAIN_RUN_STEPS,   /* steps of the whole run */
    TRAIN_RUN_RATE,    /* steps per second since the start of the run */
    TRAIN_MEAN_S,      /* seconds of a step as a running mean: "0.6 (3.9)", a bar's "2.9s/it" */
    TRAIN_DATA_S,      /* of the step: waiting for data */
    TRAIN_DATA_MEAN_S, /* likewise, of the steps so far */
    TRAIN_COMM_S,      /* of the step: exposed communication, where a timer has it */
    TRAIN_BLOCK_S,     /* seconds of a step by a block of steps, evaluation perhaps included */
    TRAIN_TOTAL,       /* of the counter: 53 of "[10/53]" */
    TRAIN_EPOCH,       /* whose steps the counter counts, where the line prints it */
    TRAIN_SKIPPED,     /* steps that the optimiser skipped */
    TRAIN_WHATS
};

/* A row as it was read; NaN where the line does not say. */
struct train_raw {
    double value[TRAIN_WHATS];
    unsigned format;
};

struct knee_train_key {
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

#define TRAIN_MARKS 24
struct train_format {
    const char *name;
    const char *mark[TRAIN_MARKS];
    const struct knee_train_key *keys; /* name NULL ends */
    unsigned flags;
    /* Reads the line another way; NULL: pairs. False: nothing in it to use. */
    bool (*read)(struct knee_train_reader *reader, struct train_line line, struct train_raw *raw);
};
extern const struct train_format knee_train_formats[];
extern const size_t knee_train_format_count;
unsigned knee_train_format_named(const char *name); /* its row */

/* ---- Marks: train_log_find.c ---- */

#define TRAIN_PATTERNS 255
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
    unsigned hash; /* of the name */
    double value;
    double mean;    /* in parentheses behind it: "0.6 (3.9)"; NaN */
    double unit_s;  /* seconds that its unit is: "5ms", "5 sec", "5ms/step"; NaN: none of time */
    double clock_s; /* "1:02:03" in seconds; NaN */
    enum train_what per; /* by its unit: "5 it/s", "5 tokens/s", "5 s/it"; TRAIN_NOTHING */
};
struct train_pairs {
    const char *at, *end;
    bool suffixes;
};
bool knee_train_pairs_next(struct train_pairs *pairs, struct train_pair *out);
/* The pair's number as the key wants it. A unit of time beside the number goes before the key's. */
double knee_train_value(const struct knee_train_key *key, const struct train_pair *pair);
/* The number at `*at`, which moves past it; NaN: there is none. Commas between thousands are
 * skipped. */
double knee_train_number(const char **at, const char *end);
/* Seconds since 1970 of the first date and time of a line, in any of the usual spellings:
 * "2024-03-07 15:27:02,646", "2024/03/07 ...", "03/07/2024 ...", "03/07 ..." (of 1970), glog's
 * "I0307 ...", "Thu Mar 7 15:27:02 2024"; NaN: there is none. */
double knee_train_stamp(struct knee_slice line);
/* Seconds of the day of a line that begins with a time and no date, "15:27:02.646"; NaN. */
double knee_train_time_of_day(struct knee_slice line);
/* "1:02:03", "04:59", "9 days, 21:16:28", "5h 59m 14s" in seconds; NaN. */
double knee_train_clock(struct knee_slice text);
/* Rank that wrote the line, by its prefix; -1: it does not say. *of: the number of ranks where the
 * prefix has it too, else NaN. */
int knee_train_rank(struct knee_slice line, double *of);

/* ---- Names: train_log_words.c ---- */

#define TRAIN_WORDS_HASH 512
struct train_words {
    unsigned char first[TRAIN_WORDS_HASH], next[256]; /* row + 1; 0: none */
};
static inline unsigned knee_train_hash(unsigned hash, char c)
{
    return hash * 31 + (unsigned char)c;
}
void knee_train_words_init(struct train_words *words);
/* What a name means in any log; NULL: nothing. */
const struct knee_train_key *knee_train_word(const struct train_words *words,
                                             const struct train_pair *pair);
const struct knee_train_key *knee_train_table_key(const char *name, size_t length);
/* What a name that is not in the table means by the words in it: "total used time", "avg loss so
 * far is"; NULL: nothing. */
const struct knee_train_key *knee_train_guess(const struct train_pair *pair);
/* What a unit behind a number says it is: "tokens" "s", "s" "it", "batch" of "200batch"; *seconds
 * where it is a time. */
enum train_what knee_train_unit(struct knee_slice of, struct knee_slice per, double *seconds);

/* ---- Facts: train_log_facts.c ---- */

struct train_facts {
    double workers, mesh, nodes, per_node, batch, micro, accumulate, local_batch, seq, params;
    double dp, shard, tp, pp, cp, ep; /* degrees of a mesh */
    double layers, hidden, heads, kv_heads, ffn, vocab, head_dim;
    double zero_stage, run_steps, train_samples;
    double block_start_s, block_tokens, block_samples;
    bool block_epoch; /* the block is an epoch */
    char gpu[KNEE_TRAIN_TEXT], model[KNEE_TRAIN_TEXT];
    const char *workers_from;
};
enum fact_kind {
    FACT_NUMBER,  /* the number after the mark */
    FACT_LIST,    /* how many numbers follow: 0,1,2,3 */
    FACT_TEXT,    /* words up to " with", " size:" or the end */
    FACT_PARTS,   /* several pairs: a mesh */
    FACT_AFTER,   /* the number after a stroke: 1/8 */
    FACT_DEGREES, /* "['pp', 'dp'], [2, 4]" */
    FACT_FIELDS,  /* several "name=value," in parentheses: a model */
    FACT_BEFORE,  /* the number before the mark */
    FACT_TASKS,   /* "--ntasks=64 --ntasks-per-node=8": tasks, where a node has several */
    FACT_GPU,     /* words that name a GPU */
};

/* Rows of data/train_facts.csv and data/train_fields.csv; `into`: an offset in struct train_facts.
 */
struct knee_train_fact {
    const char *mark;
    size_t into;
    enum fact_kind reads;
    const char *source; /* where a worker count comes from; NULL: it is none */
};
extern const struct knee_train_fact knee_train_facts[];
extern const size_t knee_train_facts_count;
struct knee_train_field {
    const char *name;
    size_t into;
    enum fact_kind reads;
};
extern const struct knee_train_field knee_train_fields[];
extern const size_t knee_train_fields_count;

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

/* ---- When things happened: train_log_account.c ---- */

enum train_event_kind {
    TRAIN_SAVE_BEGINS,
    TRAIN_SAVE_ENDS,
    TRAIN_EVALUATES,
    TRAIN_ENDS_WELL,
    TRAIN_LIMIT,
    TRAIN_CANCELLED,
    TRAIN_HANGS,
    TRAIN_EVENTS_KINDS
};
struct train_event {
    enum train_event_kind kind;
    double stamp_s, step, seconds; /* step of a checkpoint; seconds that a hang took; NaN */
};
#define TRAIN_EVENTS_MAX 4096
struct train_events {
    struct train_event *row;
    size_t count, room, dropped;
    char tail[4096]; /* the last bytes of the log */
    size_t tail_length;
    char host[64];
};
/* A row of the log on the clock. */
struct train_point {
    double stamp_s, step, seconds;
    unsigned run;
    bool evaluation;
};
void knee_train_event_marks(struct train_finder *finder, unsigned first_id);
/* False: no memory. */
bool knee_train_event_read(struct knee_train_reader *reader, size_t row, struct knee_slice line,
                           size_t mark);
void knee_train_tail(struct train_events *events, const char *data, size_t size);
/* `points` in the order of the log; `runs` with their medians. */
void knee_train_account(const struct knee_train_reader *reader, const struct train_point *points,
                        size_t count, struct knee_train_log *log);

/* ---- The reader: train_log.c ---- */

#define TRAIN_ROWS_MAX     65536
#define TRAIN_KEPT_MAX     ((size_t)1 << 20) /* text of a log without any known line */
#define TRAIN_LINE_MAX     65536
#define TRAIN_CHUNK        262144
#define TRAIN_DOCUMENT_MAX ((size_t)16 << 20)
#define TRAIN_TABLE_MAX    64 /* columns of a table that are looked at */

struct knee_train_reader {
    const struct knee_alloc *alloc;
    char name[KNEE_TRAIN_TEXT];
    struct train_finder finder;
    struct train_words words;
    struct train_facts facts;
    struct train_events events;
    struct knee_train_counts counts;
    struct train_raw *raw;
    size_t raw_count, raw_room;
    unsigned stride, skip; /* every stride-th row is kept */
    int rank;              /* that speaks; -1: none has said */
    double part_s;         /* micro-batches of the step so far */
    double keras_epochs;   /* lines that end one */
    double day_s, clock_s; /* of lines without a date: midnights that passed, last time */
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
    struct knee_text arguments, deepspeed, document, kept;
    size_t timed_rows; /* rows that print a time */
    bool first_line, failed;
    size_t columns; /* of a table */
    struct {
        enum train_what what;
        double scale;
    } column[TRAIN_TABLE_MAX];
};

/* The row of a table with this name, as train_pairs() writes it; NULL. */
const struct knee_train_key *knee_train_key_find(const struct knee_train_key *keys,
                                                 const char *name, size_t length);
extern const struct knee_train_key knee_train_keys[]; /* data/train_keys.csv */
extern const size_t knee_train_keys_count;
#define KNEE_TRAIN_KEYS_MAX 254 /* a row's number and one more fit into a byte */
extern const struct knee_train_key
    knee_train_table_keys[]; /* for tables and lines of JSON of any origin */

/* ---- Lines of any format: train_log_lines.c ---- */

/* Pairs of a line into the row: names as the format has them, else as the words have them. */
void knee_train_read_pairs(struct knee_train_reader *reader, const struct train_format *format,
                           struct knee_slice text, struct train_raw *raw);
bool knee_train_read_line(struct knee_train_reader *reader, struct train_line line,
                          struct train_raw *raw);
bool knee_train_read_bar(struct knee_train_reader *reader, struct train_line line,
                         struct train_raw *raw);
/* Lines of unknown shape: rows from the integer that grows from line to line and the time stamps,
 * of what was kept of the text. */
void knee_train_read_unknown(struct knee_train_reader *reader, unsigned format);

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

/* ---- Seconds of the rows: train_log_seconds.c ---- */

/* Rows under way: what was read, and what was made of it. */
struct train_work {
    struct train_raw *raw;
    size_t count;
    double *seconds;
    unsigned *run;
    double *scratch; /* room for as many numbers as there are rows */
    size_t runs;
    size_t mixed;   /* rows of several ranks' bars that came between each other */
    size_t clocks;  /* times that a bar's clock began again */
    bool counts_on; /* the counter goes on from one epoch to the next */
    unsigned flags;
    bool lines; /* of any shape */
    double workers;
    const struct knee_alloc *alloc;
};
#define TRAIN_WARM_ROWS 8   /* fewer rows than this are all kept */
#define TRAIN_COARSE    100 /* a difference of a clock counts once it has this many ticks */
static inline double knee_train_get(const struct train_work *w, size_t i, enum train_what what)
{
    return w->raw[i].value[what];
}
/* Fills work->seconds from the best source; where from. */
enum knee_train_timing knee_train_seconds(struct train_work *work, double batch, double seq);
/* What a second source says where it differs: log->other_s. Takes the room of the seconds. */
void knee_train_compare_sources(struct train_work *work, struct knee_train_log *log);
/* A step's seconds, where they are possible ones; NaN. */
double knee_train_possible(double seconds);
double knee_train_median_of(struct train_work *work, enum train_what what);
double knee_train_median_seconds(struct train_work *work);
/* Steps between two rows: by their numbers, or one per line. */
double knee_train_steps_between(const struct train_work *work, size_t from, size_t to);
/* Whether two rows are of two epochs whose number of steps is not printed. */
bool knee_train_unknown_steps(const struct train_work *work, size_t from, size_t to);
/* The smallest tick of a clock: 1 s when all readings are whole seconds. */
double knee_train_tick(const struct train_work *work, enum train_what clock);

/* Whether a row says anything about time. */
bool knee_train_has_time(const struct train_raw *raw);
/* Rows into steps, and all figures of the log. */
knee_status knee_train_steps_finish(struct knee_train_reader *reader, struct knee_train_log *log,
                                    struct knee_err *err);

#endif
