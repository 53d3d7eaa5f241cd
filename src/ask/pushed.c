/* SPDX-License-Identifier: MIT */
#include "ask/pushed.h"

#include "base/error.h"
#include "base/keys.h"
#include "base/text.h"
#include "timeline/recordings.h"

#include <string.h>

void knee_ask_told_release(struct knee_ask_told *told)
{
    knee_account_release(&told->account);
    knee_resize(told->alloc, told->traces, 0);
    knee_resize(told->alloc, told->jobs, 0);
    knee_resize(told->alloc, told->holders, 0);
    knee_resize(told->alloc, told->unused, 0);
    *told = (struct knee_ask_told){0};
}

void knee_ask_pushed_release(struct knee_ask_pushed *pushed)
{
    knee_ask_told_release(&pushed->last);
    knee_trace_abandon(pushed->reader);
    for (size_t i = 0; i < pushed->count; i++)
        knee_trace_release(&pushed->traces[i]);
    knee_resize(pushed->alloc, pushed->traces, 0);
    knee_resize(pushed->alloc, pushed->sets, 0);
    knee_ask_patterns_release(&pushed->patterns);
    *pushed = (struct knee_ask_pushed){.alloc = pushed->alloc};
}

/* Room for so many traces more. */
static bool make_room(struct knee_ask_pushed *pushed, size_t more)
{
    size_t count = pushed->count + more;
    struct knee_trace *traces =
        knee_resize(pushed->alloc, pushed->traces, count * sizeof *pushed->traces);
    pushed->traces = traces ? traces : pushed->traces;
    int *sets = traces ? knee_resize(pushed->alloc, pushed->sets, count * sizeof *sets) : NULL;
    pushed->sets = sets ? sets : pushed->sets;
    return sets != NULL;
}

/* The trace that was pushed last, where it has no GPU work and hosts that communicate (gloo). */
static struct knee_trace *of_hosts(struct knee_ask_pushed *pushed)
{
    struct knee_trace *last = pushed->count ? &pushed->traces[pushed->count - 1] : NULL;
    return last && !pushed->reader && last->rank_count == 0 && last->cpu_comm ? last : NULL;
}

bool knee_push_again(struct knee_ask *ask)
{
    return of_hosts(knee_ask_pushed_of(ask)) != NULL;
}

/* Drops the trace of hosts when it is begun again: it is then read as a job without GPUs. */
static bool begins_again(struct knee_ask_pushed *pushed, const char *name)
{
    struct knee_trace *last = of_hosts(pushed);
    if (!last || strcmp(last->file, name) != 0)
        return false;
    knee_ask_told_release(&pushed->last); /* it may point into it */
    knee_trace_release(last);
    pushed->count--;
    return true;
}

knee_status knee_push_begin(struct knee_ask *ask, const char *name, struct knee_err *err)
{
    struct knee_ask_pushed *pushed = knee_ask_pushed_of(ask);
    struct knee_trace_options options = {.cpu = begins_again(pushed, name),
                                         .host = true, /* for replay */
                                         .detail = !KNEE_ON_PAGE,
                                         .shapes = !KNEE_ON_PAGE, /* operations of diff */
                                         .patterns = pushed->patterns.rows,
                                         .pattern_count = pushed->patterns.count};
    knee_trace_abandon(pushed->reader);
    pushed->reader = NULL;
    if (make_room(pushed, 1))
        pushed->reader = knee_trace_begin(name, &options, pushed->alloc);
    return pushed->reader ? KNEE_OK : knee_fail(err, KNEE_SYSTEM, name, "out of memory");
}

char *knee_push_room(struct knee_ask *ask, size_t *size)
{
    struct knee_ask_pushed *pushed = knee_ask_pushed_of(ask);
    *size = 0;
    return pushed->reader ? knee_trace_room(pushed->reader, size) : NULL;
}

void knee_push_filled(struct knee_ask *ask, size_t size)
{
    struct knee_ask_pushed *pushed = knee_ask_pushed_of(ask);
    if (pushed->reader)
        knee_trace_filled(pushed->reader, size);
}

knee_status knee_push_end(struct knee_ask *ask, struct knee_err *err)
{
    struct knee_ask_pushed *pushed = knee_ask_pushed_of(ask);
    if (!pushed->reader)
        return knee_fail(err, KNEE_USAGE, "", "no trace was begun");
    knee_status status = knee_trace_end(pushed->reader, &pushed->traces[pushed->count], err);
    pushed->reader = NULL;
    pushed->sets[pushed->count] = KNEE_ASK_BY_NAME;
    pushed->count += status == KNEE_OK;
    return status;
}

void knee_push_clear(struct knee_ask *ask)
{
    knee_ask_pushed_release(knee_ask_pushed_of(ask));
}

knee_status knee_ask_adopt(struct knee_ask *ask, struct knee_trace *traces, size_t count, int set,
                           struct knee_err *err)
{
    struct knee_ask_pushed *pushed = knee_ask_pushed_of(ask);
    bool good = make_room(pushed, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (good) {
            pushed->sets[pushed->count] = set;
            pushed->traces[pushed->count++] = traces[i];
        } else {
            knee_trace_release(&traces[i]);
        }
    }
    return good ? KNEE_OK : knee_fail(err, KNEE_SYSTEM, "", "out of memory for the traces");
}

void knee_ask_share(struct knee_ask *ask, const size_t *jobs, const int *holders, size_t job_count)
{
    struct knee_ask_pushed *pushed = knee_ask_pushed_of(ask);
    pushed->jobs = jobs;
    pushed->holders = holders;
    pushed->job_count = job_count;
}

/* ---- The traces that are meant ---- */

/* A word is a trace's name, or the folder it is in. */
static bool names(const char *word, const char *file)
{
    size_t length = strlen(word);
    while (length > 1 && word[length - 1] == '/')
        length--;
    return strncmp(word, file, length) == 0 && (file[length] == '\0' || file[length] == '/');
}

static bool is_meant(const struct knee_ask_pushed *pushed, size_t trace, const char *word,
                     size_t number)
{
    int set = pushed->sets[trace];
    return !word || set == KNEE_ASK_TOGETHER || set == (int)number ||
           (set == KNEE_ASK_BY_NAME && names(word, pushed->traces[trace].file));
}

static knee_status pick(const struct knee_ask_pushed *pushed, const char *word, size_t number,
                        struct knee_ask_told *told, struct knee_err *err)
{
    size_t before = told->count;
    for (size_t t = 0; told->traces && t < pushed->count; t++)
        if (is_meant(pushed, t, word, number))
            told->traces[told->count++] = pushed->traces[t];
    if (told->count > before || pushed->job_count)
        return KNEE_OK;
    return knee_fail_hint(err, KNEE_INPUT, word ? word : "", "push its bytes before the question",
                          "no trace was pushed%s", word ? " under this name" : "");
}

/* The runs that other processes have already found. */
static void take_shared(const struct knee_ask_pushed *pushed, struct knee_ask_told *told)
{
    told->job_count = pushed->job_count;
    memcpy(told->jobs, pushed->jobs, told->count * sizeof *told->jobs);
    if (pushed->holders)
        memcpy(told->holders, pushed->holders, told->count * sizeof *told->holders);
}

static void leave_out(struct knee_ask_told *told, const char *file, const char *why)
{
    told->unused[told->unused_count++] = (struct knee_refused_file){file, why};
}

/* A file without GPU work is ignored when other files have some: it is not a separate run. */
static void set_idle_aside(struct knee_ask_told *told)
{
    size_t kept = 0, working = 0;
    for (size_t i = 0; i < told->count; i++)
        working += told->traces[i].rank_count > 0;
    if (working == 0)
        return; /* the account says what is missing */
    for (size_t i = 0; i < told->count; i++)
        if (told->traces[i].rank_count)
            told->traces[kept++] = told->traces[i];
        else
            leave_out(told, told->traces[i].file, "no GPU work in it");
    told->count = kept;
}

/* Tells runs apart, and leaves out recordings that repeat others. */
static knee_status tell_runs(struct knee_ask_told *told, struct knee_err *err)
{
    set_idle_aside(told);
    struct knee_recording *rows = knee_resize(told->alloc, NULL, (told->count + 1) * sizeof *rows);
    size_t kept = 0;
    if (!rows)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    knee_status status =
        knee_tell_recordings(told->traces, told->count, told->alloc, rows, &told->job_count, err);
    for (size_t i = 0; i < told->count && !status; i++) {
        if (rows[i].same_as != SIZE_MAX) {
            leave_out(told, told->traces[i].file, "the same recording as another file");
            continue;
        }
        told->jobs[kept] = rows[i].job;
        told->traces[kept++] = told->traces[i];
    }
    told->count = status ? told->count : kept;
    knee_resize(told->alloc, rows, 0);
    return status;
}

knee_status knee_ask_pick(struct knee_ask *ask, const char *const *words, size_t word_count,
                          size_t first, struct knee_ask_told *out, struct knee_err *err)
{
    const struct knee_ask_pushed *pushed = knee_ask_pushed_of(ask);
    bool together = pushed->job_count || (pushed->count && pushed->sets[0] == KNEE_ASK_TOGETHER);
    size_t rounds = word_count && !together ? word_count : 1; /* one may be named twice */
    size_t most = pushed->count * rounds + 1;
    memset(out, 0, sizeof *out);
    out->alloc = pushed->alloc;
    out->traces = knee_resize(out->alloc, NULL, most * sizeof *out->traces);
    out->jobs = knee_resize(out->alloc, NULL, most * sizeof *out->jobs);
    out->unused = knee_resize(out->alloc, NULL, most * sizeof *out->unused);
    out->holders =
        pushed->holders ? knee_resize(out->alloc, NULL, most * sizeof *out->holders) : NULL;
    knee_status status = KNEE_OK;
    if (!out->traces || !out->jobs || !out->unused || (pushed->holders && !out->holders)) {
        knee_ask_told_release(out);
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    }
    for (size_t w = 0; w < rounds && !status; w++)
        status = pick(pushed, word_count ? words[w] : NULL, first + w, out, err);
    if (!status && pushed->job_count)
        take_shared(pushed, out);
    else if (!status)
        status = tell_runs(out, err);
    if (status)
        knee_ask_told_release(out);
    return status;
}

knee_status knee_ask_one_run(const struct knee_ask_told *told, const char *name,
                             struct knee_err *err)
{
    if (told->job_count < 2)
        return KNEE_OK;
    return knee_fail_hint(err, KNEE_INPUT, name, "name the folder or file of one of them",
                          "these are traces of %zu runs", told->job_count);
}
