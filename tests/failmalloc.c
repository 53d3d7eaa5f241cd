/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into knee by tests/faults: allocation number KNEE_FAIL_AT fails, once or
 * (KNEE_FAIL_ALL) from there on. The program must then end with its own message and status, not
 * with a signal. The number of allocations there were goes to the file KNEE_FAIL_COUNT. strdup()
 * and the others of the C library stand on these three.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* glibc's own, by the names that it keeps for those who replace them. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *ptr, size_t size);

static atomic_long calls;
static long fail_at;
static bool all;

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("KNEE_FAIL_AT");
    fail_at = at ? atol(at) : 0;
    all = getenv("KNEE_FAIL_ALL") != NULL;
    atomic_store(&calls, 0); /* what the loader took before is not the program's */
}

__attribute__((destructor)) static void end(void)
{
    const char *name = getenv("KNEE_FAIL_COUNT");
    long count = atomic_load(&calls);
    fail_at = 0;
    FILE *file = name ? fopen(name, "w") : NULL;
    if (file) {
        fprintf(file, "%ld\n", count);
        fclose(file);
    }
}

static bool fails(void)
{
    long call = atomic_fetch_add(&calls, 1) + 1;
    bool failing = fail_at && (call == fail_at || (all && call > fail_at));
    if (failing)
        errno = ENOMEM;
    return failing;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *ptr, size_t size)
{
    return fails() ? NULL : __libc_realloc(ptr, size);
}
