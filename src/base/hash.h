/* SPDX-License-Identifier: MIT */
/*
 * Two hashes of bytes. knee_keyed() is for tables of names that came from somewhere: SipHash-1-3
 * under a key that a file's maker cannot know, so that no set of names meets in one slot. Its
 * values differ from run to run. knee_hash() (FNV-1a) is the same everywhere, for what ranks
 * compare with each other; names can be made that meet in it.
 */
#ifndef KNEE_BASE_HASH_H
#define KNEE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- For tables of names ---- */

struct knee_hash_key {
    uint64_t a, b;
};

static inline uint64_t knee_rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

/* One round of SipHash (Aumasson and Bernstein 2012). */
#define KNEE_SIP_ROUND(v0, v1, v2, v3)                                                             \
    do {                                                                                           \
        v0 += v1;                                                                                  \
        v2 += v3;                                                                                  \
        v1 = knee_rotate(v1, 13) ^ v0;                                                             \
        v3 = knee_rotate(v3, 16) ^ v2;                                                             \
        v0 = knee_rotate(v0, 32) + v3;                                                             \
        v2 += v1;                                                                                  \
        v3 = knee_rotate(v3, 21) ^ v0;                                                             \
        v1 = knee_rotate(v1, 17) ^ v2;                                                             \
        v2 = knee_rotate(v2, 32);                                                                  \
    } while (0)

static inline uint64_t knee_keyed(struct knee_hash_key key, const void *bytes, size_t length)
{
    uint64_t v0 = key.a ^ 0x736f6d6570736575u, v1 = key.b ^ 0x646f72616e646f6du;
    uint64_t v2 = key.a ^ 0x6c7967656e657261u, v3 = key.b ^ 0x7465646279746573u;
    uint64_t word, last = (uint64_t)length << 56;
    const char *at = bytes;
    for (; length >= 8; at += 8, length -= 8) {
        memcpy(&word, at, 8);
        v3 ^= word;
        KNEE_SIP_ROUND(v0, v1, v2, v3);
        v0 ^= word;
    }
    word = 0;
    if (length)
        memcpy(&word, at, length);
    last |= word;
    v3 ^= last;
    KNEE_SIP_ROUND(v0, v1, v2, v3);
    v0 ^= last;
    v2 ^= 0xff;
    KNEE_SIP_ROUND(v0, v1, v2, v3);
    KNEE_SIP_ROUND(v0, v1, v2, v3);
    KNEE_SIP_ROUND(v0, v1, v2, v3);
    return v0 ^ v1 ^ v2 ^ v3;
}

/* A key for the table at `table`, for as long as it stays there. The core asks no system for
 * chance: where memory and the program lie is chosen anew for each run, and no file knows it. */
static inline struct knee_hash_key knee_hash_key_for(const void *table)
{
    return (struct knee_hash_key){(uint64_t)(uintptr_t)table,
                                  (uint64_t)(uintptr_t)&knee_hash_key_for};
}

/* ---- The same everywhere ---- */

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
