/* SPDX-License-Identifier: MIT */
/*
 * knee.h - where does the next worker stop paying, why, and what should be changed.
 *
 * The header to begin with; the structs are in knee_*.h. What holds for every call:
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

/* The door memory comes through. resize(ctx, NULL, n) allocates, resize(ctx, p, 0) frees and
 * returns NULL. Where a call takes `const struct knee_alloc *`, NULL means the C library's. */
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

KNEE_PUBLIC_END
#ifdef __cplusplus
}
#endif
#endif
