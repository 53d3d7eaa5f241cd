/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include "base/format.h"

#include <stdarg.h>
#include <string.h>

/* Terminals act on control bytes, so a name quoted from the input must not carry any. */
static void make_printable(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

knee_status knee_fail(struct knee_err *err, knee_status status, const char *where, const char *fmt,
                      ...)
{
    if (!err)
        return status;
    memset(err, 0, sizeof *err);
    err->status = status;
    knee_format(err->where, sizeof err->where, "%s", where ? where : "");
    va_list args;
    va_start(args, fmt);
    knee_vformat(err->what, sizeof err->what, fmt, args);
    va_end(args);
    make_printable(err->where);
    make_printable(err->what);
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
    make_printable(err->hint);
}
