/* SPDX-License-Identifier: MIT */
#include "ask/pushed.h"

#include "base/text.h"

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
    *pushed = (struct knee_ask_pushed){.alloc = pushed->alloc};
}

knee_status knee_push_begin(struct knee_ask *ask, const char *name, struct knee_err *err)
{
    struct knee_ask_pushed *pushed = knee_ask_pushed_of(ask);
    knee_trace_abandon(pushed->reader);
    pushed->reader = NULL;
    struct knee_trace *more =
        knee_resize(pushed->alloc, pushed->traces, (pushed->count + 1) * sizeof *more);
    if (more) {
        pushed->traces = more;
        pushed->reader = knee_trace_begin(name, NULL, pushed->alloc);
    }
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
    pushed->count += status == KNEE_OK;
    return status;
}

void knee_push_clear(struct knee_ask *ask)
{
    knee_ask_pushed_release(knee_ask_pushed_of(ask));
}
