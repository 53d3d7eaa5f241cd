/* SPDX-License-Identifier: MIT */
#include "ask/pushed.h"

#include "base/error.h"
#include "base/text.h"

#include <string.h>

void knee_ask_told_release(struct knee_ask_told *told)
{
    knee_diagnosis_release(&told->diagnosis);
    knee_account_release(&told->account);
    knee_resize(told->alloc, told->traces, 0);
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

knee_status knee_push_begin(struct knee_ask *ask, const char *name, struct knee_err *err)
{
    static const struct knee_trace_options options = {.host = true}; /* for replay */
    struct knee_ask_pushed *pushed = knee_ask_pushed_of(ask);
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
    for (size_t t = 0; t < pushed->count; t++)
        if (is_meant(pushed, t, word, number))
            told->traces[told->count++] = pushed->traces[t];
    if (told->count > before)
        return KNEE_OK;
    knee_fail(err, KNEE_INPUT, word ? word : "", "no trace was pushed%s",
              word ? " under this name" : "");
    knee_hint(err, "push its bytes before the question");
    return KNEE_INPUT;
}

knee_status knee_ask_pick(struct knee_ask *ask, const char *const *words, size_t word_count,
                          struct knee_ask_told *out, struct knee_err *err)
{
    const struct knee_ask_pushed *pushed = knee_ask_pushed_of(ask);
    bool together = pushed->count && pushed->sets[0] == KNEE_ASK_TOGETHER;
    size_t rounds = word_count && !together ? word_count : 1; /* one may be named twice */
    memset(out, 0, sizeof *out);
    out->alloc = pushed->alloc;
    out->traces = knee_resize(out->alloc, NULL, (pushed->count * rounds + 1) * sizeof *out->traces);
    knee_status status = KNEE_OK;
    if (!out->traces)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    for (size_t w = 0; w < rounds && !status; w++)
        status = pick(pushed, word_count ? words[w] : NULL, w, out, err);
    if (status)
        knee_ask_told_release(out);
    return status;
}
