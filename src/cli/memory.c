/* SPDX-License-Identifier: MIT */
/*
 * The C library's memory, in large pages where blocks are large. A trace is kept in a few arrays of
 * many megabytes, and the first touch of each page of 4 KiB costs as much as reading some kilobytes
 * of JSON does.
 */
#include "cli/cli.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef MADV_HUGEPAGE
enum { PAGE = 4096, LARGE = 1 << 21 };

static void use_large_pages(void *block, size_t size)
{
    uintptr_t from = ((uintptr_t)block + PAGE - 1) / PAGE * PAGE;
    uintptr_t to = ((uintptr_t)block + size) / PAGE * PAGE;
    if (size >= LARGE)
        (void)madvise((void *)from, to - from, MADV_HUGEPAGE); /* a wish: it may not be granted */
}
#else
static void use_large_pages(void *block, size_t size)
{
    (void)block, (void)size;
}
#endif

static void *resize(void *ctx, void *block, size_t size)
{
    (void)ctx;
    if (size == 0) {
        free(block);
        return NULL;
    }
    block = realloc(block, size);
    if (block)
        use_large_pages(block, size);
    return block;
}

const struct knee_alloc cli_memory = {resize, NULL};
