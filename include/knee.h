/* SPDX-License-Identifier: MIT */
/*
 * knee.h - how many GPUs are worth paying for, what limits a job, and what to change.
 *
 * A question is a command and lines of key = value, the answer is JSON:
 *
 *     struct knee_text answer = {0};
 *     struct knee_err err;
 *     if (knee_ask(NULL, "predict", "params = 7B\ngpu = h100\nglobal-batch = 4M\n", KNEE_JSON,
 *                  &answer, &err))
 *         printf("%s: %s; %s\n", err.where, err.what, err.hint);
 *     else
 *         puts(answer.data);
 *     knee_text_release(&answer);
 *
 * This header is all that it takes, and it is kept stable. The structs behind it are in knee_*.h
 * and may change with the minor version. What holds for every call:
 *  - Units are in the names: _s seconds, _bytes, _bytes_per_s, _w watts. Money is US dollars.
 *    A double that is NaN means "not known" or "there is none".
 *  - A call that can fail returns knee_status. On failure the outputs are untouched and *err says
 *    what, where and what to do. `err` may be NULL.
 *  - Structs are plain data. `*_init` makes one usable, `*_release` frees what it owns, takes a
 *    zeroed struct, and may be called twice.
 *  - The library never prints, exits, reads a clock or the environment, and keeps no globals that
 *    change: calls on different objects may run in different threads.
 *  - Strings returned or found in structs are borrowed: static, or owned by the struct they are in.
 */
#ifndef KNEE_H
#define KNEE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What stands between KNEE_PUBLIC_BEGIN and _END can be seen from outside of libknee.so; nothing
 * else can. */
#if defined __GNUC__
#define KNEE_PUBLIC_BEGIN _Pragma("GCC visibility push(default)")
#define KNEE_PUBLIC_END   _Pragma("GCC visibility pop")
#else
#define KNEE_PUBLIC_BEGIN
#define KNEE_PUBLIC_END
#endif

#ifdef __cplusplus
extern "C" {
#endif
KNEE_PUBLIC_BEGIN

/* ---- Version ------------------------------------------------------------------------------- */

#define KNEE_VERSION_MAJOR    0
#define KNEE_VERSION_MINOR    1
#define KNEE_VERSION_PATCH    0
#define KNEE_VERSION          KNEE_DOTTED(KNEE_VERSION_MAJOR, KNEE_VERSION_MINOR, KNEE_VERSION_PATCH)
#define KNEE_DOTTED(a, b, c)  KNEE_DOTTED_(a, b, c)
#define KNEE_DOTTED_(a, b, c) #a "." #b "." #c

/* Of the library that runs, where KNEE_VERSION is that of the header that was compiled with. */
const char *knee_version(void);

/* ---- Status, errors, memory ------------------------------------------------------------- */

/* The values are also the exit codes of the program. */
typedef enum knee_status {
    KNEE_OK = 0,     /* fine */
    KNEE_GATE = 1,   /* a limit that the user set was not kept */
    KNEE_USAGE = 2,  /* an option or a value is wrong */
    KNEE_INPUT = 3,  /* a file cannot be used */
    KNEE_SYSTEM = 4, /* no memory, or the system refused */
} knee_status;

struct knee_err {
    knee_status status;
    char where[128]; /* option, or file:line; may be empty */
    char what[256];
    char hint[256]; /* what to do, or the nearest valid spelling; may be empty */
};

/* The door memory comes through. resize(ctx, NULL, n) allocates, resize(ctx, p, 0) frees (nothing
 * where p is NULL) and returns NULL. Where a call takes `const struct knee_alloc *`, NULL means the
 * C library's. */
struct knee_alloc {
    void *(*resize)(void *ctx, void *ptr, size_t size);
    void *ctx;
};

/* Text that grows. `failed` sticks once memory ran out or the cap was met; `data` is then
 * incomplete. Zeroed is empty and uses the C library's memory. Free with knee_text_release(). */
struct knee_text {
    char *data; /* NUL-terminated, or NULL while empty */
    size_t length, capacity;
    bool failed;
    const struct knee_alloc *alloc;
};
void knee_text_release(struct knee_text *text);

/* ---- Ask ----------------------------------------------------------------------------------- */

enum knee_format { KNEE_TEXT, KNEE_JSON, KNEE_CSV, KNEE_MARKDOWN };

/*
 * What lives between questions: the bytes that questions name, the traces they are about, and what
 * they made in addition to their answers. Everything comes from `alloc` (NULL: the C library's).
 * One ask is for one thread at a time; several asks may be at work in several threads. NULL: no
 * memory.
 */
struct knee_ask;
struct knee_ask *knee_ask_begin(const struct knee_alloc *alloc);
void knee_ask_end(struct knee_ask *ask); /* NULL: nothing */

/*
 * Asks. `command` is one of those of the program:
 *
 *     predict     a data-parallel job by closed forms: knee, changes, walls, cost
 *     tax         the overhead of each parallel axis, and which one is largest
 *     plan        the best way to spread a model over GPUs: one plan where the keys fix it all,
 *                 the search where they do not
 *     collective  the time of a collective, the best algorithm, compared with a log
 *     fit         a cluster from logs of nccl-tests and others, and how far to trust it
 *     cluster     a cluster from a preset, one line or a file, as YAML
 *     trace       recorded steps: R, the cause, the late rank, the best change
 *     diff        why one recording's step is longer than another's; of two logs whether it is
 *     replay      what a recorded job would do with something changed
 *     scale       a job's own curve from training logs, tables of runs and traces
 *     validate    how well measured runs are predicted
 *     list        the presets, with where their figures come from
 *     example     a job file to start from
 *     options     the commands and the keys that each takes, as JSON
 *
 * `lines` (may be NULL) has one input per line, with the names and the spellings of the command
 * line: "global-batch = 4M" for --global-batch 4M. A switch may stand alone: "simulate". What the
 * command line has without an option is a line "word = all_reduce", as often as it takes. Empty
 * lines and lines that begin with # are passed over. A key that there is not gives KNEE_USAGE with
 * the nearest one, as the program does.
 *
 * The answer is appended to `answer`: byte for byte what the program prints with --json, --csv,
 * --markdown, or as text of 100 columns. JSON begins with its schema and version, "knee.predict/1".
 * Fields may be added to a version; none is renamed or changes its meaning.
 *
 * KNEE_GATE: the answer is there, and a limit in the question is not kept (a budget, a deadline).
 * So it is with KNEE_INPUT after "strict". On other failures nothing is appended.
 *
 * `ask` may be NULL when the question names no bytes and no traces; memory then comes from
 * answer->alloc.
 */
knee_status knee_ask(struct knee_ask *ask, const char *command, const char *lines,
                     enum knee_format format, struct knee_text *answer, struct knee_err *err);

/* The commands there are, from row 0 on; NULL after the last. */
const char *knee_ask_command(size_t row);

/* Called now and then while a plan is searched or runs are validated, with the share that is done
 * (0 to 1). When it returns false the work ends: plan answers with what was found so far. NULL
 * ends the watching. */
void knee_ask_watch(struct knee_ask *ask, bool (*progress)(void *ctx, double share), void *ctx);

/* ---- Attach: the files of a question ------------------------------------------------------- */

/*
 * Bytes under a name. Wherever the command line takes a file, a line takes the name of bytes that
 * were attached before: the library opens no files.
 *
 *     predict     job = NAME, or word = NAME      YAML
 *     predict, tax, plan, collective, fit, trace, replay
 *                 cluster = NAME                  YAML, nvidia-smi topo -m, NCCL's topology XML
 *     collective  against = NAME                  a log of nccl-tests or another
 *     fit         word = NAME                     logs; index = NAME: a CSV that says of what
 *     cluster     word = NAME                     as cluster = NAME
 *     plan        hf = NAME                       Hugging Face config.json
 *                 deepspeed = NAME                DeepSpeed configuration
 *                 megatron = NAME                 Megatron log or launch script
 *     plan, validate
 *                 rates = NAME                    YAML
 *     validate    word = NAME                     CSV of runs
 *     replay      word = NAME                     a log of a pipeline's operations, JSON
 *     scale       word = [COUNT=]NAME             logs, tables of runs, traces, each gzipped or not
 *     trace       noise = NAME                    lines of BATCH,SQUARED_NORM
 *
 * The name is copied. The bytes are borrowed: they must stay until the ask ends or the name is
 * attached anew, and need no NUL at their end.
 */
knee_status knee_attach(struct knee_ask *ask, const char *name, const char *data, size_t length,
                        struct knee_err *err);

/* ---- Push: traces, piece by piece ---------------------------------------------------------- */

/*
 * A trace of PyTorch (Kineto) or JAX, as JSON that is unpacked already, pushed as it comes; it is
 * read on the way and its bytes are not kept. Begin; then fill the room that is offered, say how
 * much of it was filled, until there is no more; end. What is damaged is passed over, counted and
 * in the answer.
 *
 *     knee_push_begin(ask, "rank0.json", &err);
 *     while ((room = knee_push_room(ask, &size)) && (got = fread(room, 1, size, file)) > 0)
 *         knee_push_filled(ask, got);
 *     knee_push_end(ask, &err);
 *
 * trace and replay are then about all traces that were pushed, or those that "word = NAME" lines
 * name; diff is about the two sides "word = BEFORE" and "word = AFTER". A word is the name of a
 * trace, or what several names begin with up to a '/': "monday" for "monday/rank0.json",
 * "monday/rank1.json".
 */
/* More names of communication for the traces that are pushed from now on: bytes that are attached
 * under `name`, lines of WORD KIND [OPERATION] as knee trace --patterns takes them. NULL: the
 * built-in ones alone. */
knee_status knee_push_patterns(struct knee_ask *ask, const char *name, struct knee_err *err);
knee_status knee_push_begin(struct knee_ask *ask, const char *name, struct knee_err *err);
char *knee_push_room(struct knee_ask *ask, size_t *size); /* NULL: no memory, or not begun */
void knee_push_filled(struct knee_ask *ask, size_t size);
/* KNEE_INPUT when there is nothing in it that can be used. */
knee_status knee_push_end(struct knee_ask *ask, struct knee_err *err);
/* True when the trace that just ended has no GPU work but communication between hosts (gloo). Push
 * it once more under the same name: it is then read as a job without GPUs. */
bool knee_push_again(struct knee_ask *ask);

/* Forgets the traces that were pushed. */
void knee_push_clear(struct knee_ask *ask);

/* ---- Pull: further output of a question ---------------------------------------------------- */

/*
 * Where the command line names a file to write, a line names what can be pulled afterwards:
 *
 *     fit         output = NAME       the cluster, YAML for cluster = NAME
 *     plan        perfetto = NAME     the simulated step, a trace
 *     trace       perfetto = NAME     all ranks, aligned and labelled, as one trace
 *     replay      perfetto = NAME     the timeline after the changes, the same way
 *     scale       runs = NAME         the runs as a table, for validate
 *     validate    calibrate = NAME    constants fitted to the runs, YAML for rates = NAME
 *
 * NULL: nothing was made under this name. It stays until the ask ends or makes it anew.
 */
const struct knee_text *knee_pull(const struct knee_ask *ask, const char *name);

KNEE_PUBLIC_END
#ifdef __cplusplus
}
#endif
#endif
