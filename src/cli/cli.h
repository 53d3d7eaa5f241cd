/* SPDX-License-Identifier: MIT */
/*
 * The command line. A command is a row: name, words, tables of keys with the objects they fill, and
 * a function. Flags, help, man page and completion all come from those tables.
 */
#ifndef KNEE_CLI_CLI_H
#define KNEE_CLI_CLI_H

#include "ask/ask.h"
#include "base/arena.h"
#include "base/text.h"
#include "knee_out.h"
#include "reach/files.h"

#include <stdio.h>

/* What every command understands. */
struct cli_common {
    bool help, help_all, json, csv, markdown, ascii, brief, full, wide, color;
    const char *output, *html;
    unsigned char source[KNEE_KEYS_MAX];
};
extern const struct knee_keys cli_common_keys;

#define CLI_TABLES ASK_TABLES
#define CLI_WORDS  ASK_WORDS

/* Everything a run of a command was given. */
struct cli_run {
    const struct cli_command *command;
    struct cli_common common;
    void *objects[CLI_TABLES]; /* beside command->keys[] */
    const char **words;        /* room for as many as there are arguments */
    size_t word_count;
    char *const *typed;      /* the command line; NULL ends */
    struct knee_text text;   /* what will be printed */
    const char *view;        /* of the page; NULL: the command's name */
    struct knee_text answer; /* with --html: the same as JSON, for the page */
    struct knee_text trace;  /* with --html: a trace for the page, gzip */
    struct knee_ask *ask;    /* reads files; what is asked of the library goes through it */
    struct knee_err err;
    uint64_t asked; /* a hash of the command line: all ranks must have the same */
    bool quiet;     /* one of many ranks, and not the one that speaks */
    bool answered;  /* what stands in `text` is an answer even if the command fails */
};

struct cli_command {
    const char *name;
    const char *operands;               /* "[JOB.yaml]" */
    const char *summary;                /* one line */
    const char *about;                  /* a paragraph */
    const char *examples;               /* one per line */
    const char *common[8];              /* options that --help shows first; NULL ends */
    const struct knee_ask_command *ask; /* one that the library answers: what follows is there, but
                                         * main (NULL: cli_ask) */
    const struct knee_keys *keys[CLI_TABLES]; /* beyond the common ones; NULL ends */
    const char *const *only[CLI_TABLES];      /* names taken from keys[i], NULL ends; NULL: all */
    size_t most_words;
    knee_status (*main)(struct cli_run *run, int argc, char **argv);
};
extern const struct cli_command *const cli_commands[]; /* NULL ends */

/* A command's tables, CLI_TABLES of them, NULL ends; and whether it takes row `row` of one. */
const struct knee_keys *const *cli_keys(const struct cli_command *command);
bool cli_takes(const struct cli_command *command, size_t table, size_t row);

/* A command that the library answers: parses, asks, and writes the files that were made. `work`
 * (may be NULL) is what threads and processes share. */
knee_status cli_ask(struct cli_run *run, int argc, char **argv);
knee_status cli_answer(struct cli_run *run, const struct knee_ask_work *work);
/* An ask that finds what is named among the files; NULL: no memory. */
struct knee_ask *cli_ask_open(void);
/* cli_ask with files read first: answer() ends in cli_answer. */
knee_status cli_ask_with(struct cli_run *run, int argc, char **argv,
                         knee_status (*answer)(struct cli_run *));

/* The files of a job that hang and doctor read, folders searched; NULL: no memory. Free each and
 * the list. */
char **cli_job_files(const char *const *words, size_t count, size_t *passed_over,
                     struct knee_arena *arena, struct knee_err *err);

/* Reads flags into the objects of run->command and words into run->words. */
knee_status cli_parse(struct cli_run *run, int argc, char **argv);

/* The format asked for. Two at once are refused by cli_parse(). */
enum knee_format cli_format(const struct cli_run *run);
/* Terminal facts: width, colour, character set. */
struct knee_style cli_style(const struct cli_run *run);
/* Columns of the terminal, of $COLUMNS, or 80. */
int cli_width(void);
/* Is standard error a terminal? Under mpirun: that of mpirun. */
bool cli_progress(void);

/* An input that cannot be `what` ("opened", "read"), by errno: KNEE_INPUT, or KNEE_SYSTEM where the
 * file is not to blame. */
knee_status cli_cannot(const char *name, const char *what, struct knee_err *err);

/* The whole of a file, at most `cap` bytes; "-" is standard input. Free *data with free(). */
knee_status cli_read_file(const char *name, size_t cap, char **data, size_t *length,
                          struct knee_err *err);

/* The error of a run that was stopped before it had an answer; main() makes the status of it. */
knee_status cli_stopped(struct knee_err *err);

/* The file that the user named, by reach/files.h; "-" is standard input. */
knee_status cli_open(const char *name, int *fd, struct knee_err *err);
void cli_close(int fd);

/* Writes text to a file. */
knee_status cli_write_file(const char *name, const struct knee_text *text, struct knee_err *err);
/* A timeline for ui.perfetto.dev; knee trace reads it too. */
knee_status cli_write_perfetto(const char *name, const struct knee_account *account,
                               struct knee_err *err);

/* Chakra execution traces, one per rank: PREFIX.RANK.et; knee trace reads them too. */
knee_status cli_write_chakra(const char *prefix, const struct knee_account *account,
                             struct knee_err *err);

/* What a job's environment needs so that the agent runs in it, one call of set() for each. */
knee_status cli_live_environment(const char *dir, void (*set)(void *, const char *, const char *),
                                 void *ctx, struct knee_err *err);

/* Prints run->text to standard output or the file asked for. */
knee_status cli_print(struct cli_run *run);

/* Writes the page with run->answer and run->trace in it to the file of --html. */
knee_status cli_write_page(struct cli_run *run);

/* The options that most people need, or all of them, in `width` columns. */
void cli_help(const struct cli_command *command, bool all, int width, struct knee_text *text);
/* The commands by question; or all of them. */
void cli_overview(bool all, struct knee_text *text);

/* The value a key takes, as help writes it: "BYTES/S"; "" for a switch. */
const char *cli_metavar(const struct knee_key *key);
/* The option as help, man page and completion write it: tables call the GPU count "workers". */
const char *cli_option(const struct knee_key *key);
/* "-n" for --gpus; "" where there is none. */
const char *cli_short_flag(const struct knee_key *key);

extern const struct cli_command cli_predict, cli_tax, cli_plan, cli_scale, cli_validate, cli_trace,
    cli_replay, cli_diff, cli_collective, cli_fit, cli_cluster, cli_report, cli_bench, cli_lab,
    cli_doctor, cli_schema, cli_live, cli_record, cli_watch, cli_capture, cli_list, cli_example,
    cli_hang, cli_man, cli_completion, cli_version, cli_run_job, cli_mcp, cli_command;

#endif
