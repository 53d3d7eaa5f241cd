/* SPDX-License-Identifier: MIT */
/*
 * One command asked by keys and answered in text. A command is a row: its tables of keys, the
 * objects that they fill, and a function that answers. The program fills the objects from flags,
 * knee_ask() from lines; both then call the same function. Nothing here opens a file: bytes that
 * are named come from what was attached, or through the door in struct knee_ask_files.
 */
#ifndef KNEE_ASK_ASK_H
#define KNEE_ASK_ASK_H

#include "knee_out.h"
#include "knee_timeline.h"
#include "out/answer.h"
#include "say/answers.h"

#define ASK_TABLES 5
#define ASK_WORDS  65536

/* Bytes that are read as they come. */
struct knee_ask_stream {
    struct knee_reader reader;
    void (*close)(void *ctx); /* NULL: nothing to close */
    void *ctx;
    const char *data; /* what is left of attached bytes */
    size_t length;
};

/* Where names that nothing was attached under are looked for; zeroed: nowhere. */
struct knee_ask_files {
    bool (*exists)(void *ctx, const char *name);
    /* *data is malloc()ed; NULL for an empty file */
    knee_status (*read)(void *ctx, const char *name, size_t cap, char **data, size_t *length,
                        struct knee_err *err);
    /* fills reader, close and ctx of *stream, which does not move until it is closed */
    knee_status (*open)(void *ctx, const char *name, struct knee_ask_stream *stream,
                        struct knee_err *err);
    /* Where timelines go as they are made; NULL: what is made is kept to be pulled */
    knee_status (*write_perfetto)(void *ctx, const char *name, const struct knee_account *account,
                                  struct knee_err *err);
    void *ctx;
};

/* One text that the answer is written to. */
struct knee_ask_out {
    enum knee_format format;
    struct knee_text *text;
};

struct knee_ask_question {
    struct knee_ask *ask;
    void *objects[ASK_TABLES]; /* beside command->keys[] */
    const char *const *words;  /* what stands there without a key */
    size_t word_count;
    const char *output; /* name of what a command makes beside its answer; NULL: not asked */
    struct knee_style style;
    struct knee_ask_out outs[2];      /* a NULL text ends them */
    bool answered;                    /* the answer stands, even if the status is a failure */
    const struct knee_ask_work *work; /* NULL: all of it is done here */
};

#define ASK_THREADS_MAX 64
/* The threads that plan's options (its first object) ask for; NaN: not said. */
double knee_ask_plan_threads(const void *options);
/* Do validate's options (its first object) ask for fits without each source? */
bool knee_ask_validate_crosses(const void *options);

/* Work that threads and processes share. What is NULL is done here, alone. */
struct knee_ask_work {
    bool silent; /* another process gives the answer */
    /* Meets the other processes: this is number `part` of `parts`. */
    knee_status (*join)(void *ctx, size_t *part, size_t *parts, struct knee_err *err);
    /* All go on, or none does: the worst status of all. */
    knee_status (*agree)(void *ctx, knee_status own);
    /* All plans of one count; and whether the user wants it to end. */
    knee_status (*search)(void *ctx, const struct knee_search *search,
                          struct knee_search_result *out, struct knee_err *err);
    bool (*stopped)(void *ctx);
    /* Row i was found by part i % parts; `own` is how it went here. */
    void (*merge_rows)(void *ctx, struct knee_plan_answer *answer, knee_status own,
                       const struct knee_err *err);
    knee_status (*cross_validate)(void *ctx, struct knee_validation *validation,
                                  struct knee_err *err);
    /* The account of traces whose spans several processes hold; the silent ones get an empty one */
    knee_status (*account)(void *ctx, const struct knee_trace *traces, size_t count,
                           const int *holders, struct knee_account *out, struct knee_err *err);
    const struct knee_refused_file *refused; /* files that could not be used */
    size_t refused_count;
    size_t left_out;  /* files that were not used, or not all of them, or not looked for */
    bool interrupted; /* the user stopped the reading: what is lost is known */
    void *ctx;
};
static inline bool knee_ask_silent(const struct knee_ask_question *question)
{
    return question->work && question->work->silent;
}

struct knee_ask_command {
    const char *name;
    const struct knee_keys *keys[ASK_TABLES]; /* NULL ends */
    const char *const *only[ASK_TABLES];      /* names taken from keys[i], NULL ends; NULL: all */
    size_t most_words;
    const char *operands; /* for the words of an error: "[JOB.yaml]" */
    bool takes_output;    /* makes something beside its answer */
    size_t size;          /* of what holds its objects */
    void (*init)(void *room, void **objects);
    knee_status (*answer)(struct knee_ask_question *question, struct knee_err *err);
};
extern const struct knee_ask_command knee_ask_predict, knee_ask_example, knee_ask_tax,
    knee_ask_collective, knee_ask_fit, knee_ask_cluster, knee_ask_list, knee_ask_plan,
    knee_ask_trace, knee_ask_diff, knee_ask_replay, knee_ask_scale, knee_ask_validate,
    knee_ask_hang, knee_ask_doctor, knee_ask_options;
extern const struct knee_ask_command *const knee_ask_commands[]; /* NULL ends */
/* What these commands take, as JSON (schema knee.options/1). */
void knee_ask_put_options(const struct knee_ask_command *const *commands, struct knee_text *text);

/* ---- The ask ---- */

const struct knee_alloc *knee_ask_alloc(const struct knee_ask *ask);
void knee_ask_set_files(struct knee_ask *ask, const struct knee_ask_files *files);

/* Says how far it is; false: the caller wants it to end. */
bool knee_ask_progress(struct knee_ask *ask, double share);

/* Bytes under a name. `owned` is to be freed with knee_ask_done(). */
struct knee_ask_bytes {
    const char *data;
    size_t length;
    char *owned;
};
bool knee_ask_has(const struct knee_ask *ask, const char *name);
knee_status knee_ask_read(struct knee_ask *ask, const char *name, size_t cap,
                          struct knee_ask_bytes *out, struct knee_err *err);
void knee_ask_done(struct knee_ask_bytes *bytes);

/* The same piece by piece, of any size. *stream must not move; close it. */
knee_status knee_ask_stream_open(struct knee_ask *ask, const char *name,
                                 struct knee_ask_stream *stream, struct knee_err *err);
void knee_ask_stream_close(struct knee_ask_stream *stream);

/* What an input is called in answers: its name without folders ("-" is standard input). */
const char *knee_ask_input_name(const char *path);

/* A cluster from a word: the name of bytes, a preset, or one line as '8xh100 * 16 @ ib400x8'. */
knee_status knee_ask_read_cluster(struct knee_ask *ask, const char *word, struct knee_cluster *out,
                                  struct knee_err *err);
/* Constants from YAML; all NaN when `name` is NULL. */
knee_status knee_ask_read_rates(struct knee_ask *ask, const char *name, struct knee_rates *rates,
                                struct knee_err *err);

/* The text that knee_pull() will give for `name`, emptied; NULL: no memory. */
struct knee_text *knee_ask_pulled(struct knee_ask *ask, const char *name);
const struct knee_ask_files *knee_ask_files_of(const struct knee_ask *ask);
/* A timeline under `name`, for ui.perfetto.dev. */
knee_status knee_ask_perfetto(struct knee_ask *ask, const char *name,
                              const struct knee_account *account, struct knee_err *err);
/* The row-th of them; NULL: there are no more. */
const char *knee_ask_pulled_name(const struct knee_ask *ask, size_t row);

/* ---- Keys ---- */

/* Does `only` (may be NULL) let a row of a table in? */
bool knee_ask_takes(const char *const *only, const struct knee_key *key);

/* Sets one input from text; what is parsed may be the name of bytes. */
knee_status knee_ask_set(struct knee_ask *ask, const struct knee_keys *keys, void *object,
                         size_t row, const char *text, struct knee_err *err);

/* A question: `command`, a row of `commands`, and its lines of key = value. */
struct knee_ask_asked {
    const struct knee_ask_command *const *commands;
    const char *command, *lines;
    enum knee_format format;
};

knee_status knee_ask_lines(struct knee_ask *ask, const struct knee_ask_asked *said,
                           struct knee_text *text, struct knee_err *err);

/* The page has JSON alone, and the linker leaves away what it need not write. */
#if KNEE_JSON_ONLY
#define ASK_FORMAT(out) KNEE_JSON
#else
#define ASK_FORMAT(out) ((out).format)
#endif

/* Writes an answer to all of the question's texts. */
#define ASK_ANSWER(question, type, result)                                                         \
    for (size_t out_ = 0; out_ < 2 && (question)->outs[out_].text; out_++)                         \
    knee_answer_write(type, result, ASK_FORMAT((question)->outs[out_]), &(question)->style,        \
                      (question)->outs[out_].text)

/* Writes a result to all of the question's texts with one of the knee_write_...() calls. */
#define ASK_WRITE(question, write, ...)                                                            \
    for (size_t out_ = 0; out_ < 2 && (question)->outs[out_].text; out_++)                         \
    write(__VA_ARGS__, ASK_FORMAT((question)->outs[out_]), &(question)->style,                     \
          (question)->outs[out_].text)

#endif
