/* SPDX-License-Identifier: MIT */
/* What the agent leaves away: it never unpacks anything, and must load on hosts without the
 * libraries for that. These stand in for src/read/trace/gzip.c. */
#include "read/trace/reader.h"

struct knee_gunzip *knee_gunzip_new(struct knee_reader inner, const struct knee_alloc *alloc)
{
    (void)inner, (void)alloc;
    return NULL;
}

void knee_gunzip_free(struct knee_gunzip *gunzip)
{
    (void)gunzip;
}

ptrdiff_t knee_gunzip_read(struct knee_gunzip *gunzip, void *buffer, size_t size)
{
    (void)gunzip, (void)buffer, (void)size;
    return -1;
}

const char *knee_gunzip_trouble(const struct knee_gunzip *gunzip)
{
    (void)gunzip;
    return "";
}
