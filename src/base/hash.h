/* SPDX-License-Identifier: MIT */
/* A hash of bytes for tables in memory (FNV-1a, 64 bits). Not for what an adversary must not find
 * twice. */
#ifndef KNEE_BASE_HASH_H
#define KNEE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define KNEE_HASH_START 14695981039346656037u

/* Of what `hash` is of, and these bytes after it. */
static inline uint64_t knee_hash_add(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * 1099511628211u;
    return hash;
}

static inline uint64_t knee_hash(const void *bytes, size_t length)
{
    return knee_hash_add(KNEE_HASH_START, bytes, length);
}

#endif
