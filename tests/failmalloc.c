/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into knee by ./check: allocation number KNEE_FAIL_AT fails, once or (KNEE_FAIL_ALL)
 * from there on. The program must then end with its own message and status, not with a signal.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

static long calls, fail_at = -1, all;

static int fails(void)
{
    if (fail_at < 0) {
        const char *at = getenv("KNEE_FAIL_AT");
        fail_at = at ? atol(at) : 0;
        all = getenv("KNEE_FAIL_ALL") != NULL;
    }
    calls++;
    return fail_at && (calls == fail_at || (all && calls > fail_at));
}

void *malloc(size_t size)
{
    static void *(*real)(size_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "malloc");
    return fails() ? NULL : real(size);
}

void *realloc(void *ptr, size_t size)
{
    static void *(*real)(void *, size_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "realloc");
    return fails() ? NULL : real(ptr, size);
}
