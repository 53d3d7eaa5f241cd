/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include "base/format.h"
#include "base/printable.h"

#include <stdarg.h>
#include <string.h>

static void fill(struct knee_err *err, knee_status status, const char *where, const char *fmt,
                 va_list args)
{
    if (!err)
        return;
    memset(err, 0, sizeof *err);
    err->status = status;
    knee_format(err->where, sizeof err->where, "%s", where ? where : "");
    knee_vformat(err->what, sizeof err->what, fmt, args);
    knee_printable(err->where, strlen(err->where));
    knee_printable(err->what, strlen(err->what));
}

knee_status knee_fail(struct knee_err *err, knee_status status, const char *where, const char *fmt,
                      ...)
{
    va_list args;
    va_start(args, fmt);
    fill(err, status, where, fmt, args);
    va_end(args);
    return status;
}

knee_status knee_fail_hint(struct knee_err *err, knee_status status, const char *where,
                           const char *hint, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fill(err, status, where, fmt, args);
    va_end(args);
    knee_hint(err, "%s", hint);
    return status;
}

void knee_hint(struct knee_err *err, const char *fmt, ...)
{
    if (!err || err->hint[0])
        return;
    va_list args;
    va_start(args, fmt);
    knee_vformat(err->hint, sizeof err->hint, fmt, args);
    va_end(args);
    knee_printable(err->hint, strlen(err->hint));
}
