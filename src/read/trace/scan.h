/* SPDX-License-Identifier: MIT */
/*
 * Scanning JSON that may be damaged. All functions work on a window [p, end) that is followed by a
 * sentinel of KNEE_SCAN_PAD quotes, so that no loop needs to look for the end: a result at or past
 * `end` means that the window ends too early. They return NULL then (get more and try again), or
 * KNEE_SCAN_BAD when what stands there cannot be JSON, however kindly it is read.
 *
 * Two inner loops do most of the work: to the end of a string, and to the next quote or bracket.
 * They look at 16 bytes at a time with SSE2, which every x86-64 has, or at 8 in a 64-bit word.
 */
#ifndef KNEE_READ_TRACE_SCAN_H
#define KNEE_READ_TRACE_SCAN_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define KNEE_SCAN_PAD 64

/* The page is smaller without what only makes reading faster. */
#if KNEE_JSON_ONLY
#define KNEE_SCAN_FAST false
#else
#define KNEE_SCAN_FAST true
#endif

extern const char knee_scan_bad[1];
#define KNEE_SCAN_BAD (knee_scan_bad)

static inline bool knee_scan_is(struct knee_slice s, const char *word, size_t length)
{
    return s.length == length && __builtin_memcmp(s.at, word, length) == 0;
}
#define SLICE_IS(s, literal) knee_scan_is(s, literal, sizeof(literal) - 1)

#ifdef __SSE2__

/* The next quote or backslash; the sentinel has one. */
static inline const char *knee_scan_quote(const char *p)
{
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
    for (;; p += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, slash));
        int mask = _mm_movemask_epi8(hit);
        if (mask)
            return p + __builtin_ctz((unsigned)mask);
    }
}

static inline const char *knee_scan_spaces(const char *p)
{
    const __m128i least = _mm_set1_epi8(' ' + 1);
    for (;; p += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)p);
        int mask = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(block, least), block));
        if (mask)
            return p + __builtin_ctz((unsigned)mask);
    }
}

/* The same without a sentinel: the next one before `limit`, or a place before it and near the limit
 * from where on it has to be looked for byte by byte. */
static inline const char *knee_scan_quote_within(const char *p, const char *limit)
{
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
    for (; limit - p >= 16; p += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, slash));
        int mask = _mm_movemask_epi8(hit);
        if (mask)
            return p + __builtin_ctz((unsigned)mask);
    }
    return p;
}

#else

/* Bytes of a word that equal c get their high bit set (and, rarely, one above such a byte). */
static inline uint64_t knee_scan_same(uint64_t word, unsigned char c)
{
    word ^= 0x0101010101010101u * c;
    return (word - 0x0101010101010101u) & ~word & 0x8080808080808080u;
}

static inline uint64_t knee_scan_load(const char *p)
{
    uint64_t word;
    __builtin_memcpy(&word, p, sizeof word);
    return word;
}

static inline const char *knee_scan_quote(const char *p)
{
    while (!(knee_scan_same(knee_scan_load(p), '"') | knee_scan_same(knee_scan_load(p), '\\')))
        p += 8;
    while (*p != '"' && *p != '\\')
        p++;
    return p;
}

static inline const char *knee_scan_quote_within(const char *p, const char *limit)
{
    while (limit - p >= 8 &&
           !(knee_scan_same(knee_scan_load(p), '"') | knee_scan_same(knee_scan_load(p), '\\')))
        p += 8;
    return p;
}

static inline const char *knee_scan_spaces(const char *p)
{
    while ((unsigned char)*p <= ' ')
        p++;
    return p;
}

#endif

/* The first byte at or after p that is not white space (control bytes count as space); stops at the
 * sentinel at the latest. */
static inline const char *knee_scan_space(const char *p)
{
    if ((unsigned char)*p > ' ')
        return p;
    if ((unsigned char)*++p > ' ')
        return p;
    return knee_scan_spaces(p);
}

/* p is after an opening quote; returns the closing one. A quote that nothing of JSON follows was
 * not escaped by its writer: it is taken as text, and *repaired counts it. After a key only a colon
 * can follow, after a value anything but a colon; where it is not known which of them it is,
 * either. */
enum knee_string_role { KNEE_STRING_ANY, KNEE_STRING_KEY, KNEE_STRING_VALUE };
const char *knee_scan_string_slow(const char *p, const char *end, enum knee_string_role role,
                                  uint64_t *repaired);

static inline const char *knee_scan_string(const char *p, const char *end,
                                           enum knee_string_role role, uint64_t *repaired)
{
    const char *quote = knee_scan_quote(p);
    char expected = role == KNEE_STRING_KEY ? ':' : ',';
    if (*quote == '"' && quote[1] == expected && quote + 1 < end)
        return quote;
    return knee_scan_string_slow(quote, end, role, repaired);
}

/* p is at the start of a value of any kind; returns what follows it. Nesting is counted, not
 * recursed into. */
const char *knee_scan_value(const char *p, const char *end, uint64_t *repaired);

/* Where the objects and arrays end that are `depth` deep at p, if their quotes come in pairs and
 * the end is near; NULL: it is not known. `wide`: 32 bytes at a time, which not every CPU can. */
bool knee_scan_can_be_wide(void);
const char *knee_scan_skip(const char *p, const char *end, size_t depth, bool wide);

/* Where an event ends of which each member begins a line, from anywhere in it: after a brace that
 * stands two spaces into its line. NULL: it is not known. */
const char *knee_scan_event_end(const char *p, const char *end, bool wide);

/* The same for what is left of `depth` objects and arrays, from anywhere outside of a string. */
const char *knee_scan_rest(const char *p, const char *end, size_t depth, uint64_t *repaired);

static inline bool knee_scan_is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* The digits at p, 8 at most, as a number; their count in *count. Eight bytes at once: those that
 * are not digits show in the high bits, and pairs, then fours, then eights are added up. */
static inline uint32_t knee_scan_eight(const char *p, unsigned *count)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t word;
    __builtin_memcpy(&word, p, 8);
    uint64_t digits = word - 0x3030303030303030u;
    uint64_t other = ((word + 0x4646464646464646u) | digits) & 0x8080808080808080u;
    /* A byte that is not a digit is always found: carries and borrows spoil only the bytes after
     * it. */
    *count = other ? (unsigned)__builtin_ctzll(other) / 8 : 8;
    if (*count == 0)
        return 0;
    digits <<= 64 - 8 * *count;
    digits = digits * 10 + (digits >> 8);
    return (uint32_t)((((digits & 0x000000ff000000ffu) * 0x000f424000000064u) +
                       (((digits >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u)) >>
                      32);
#else
    uint32_t value = 0;
    for (*count = 0; *count < 8 && knee_scan_is_digit(p[*count]); ++*count)
        value = value * 10 + (uint32_t)(p[*count] - '0');
    return value;
#endif
}

extern const uint32_t knee_scan_powers[9]; /* of ten */

/* A decimal number of microseconds at p as nanoseconds, exactly, rounded half to even past the
 * third decimal; returns what follows it. A number in quotes is taken too. */
const char *knee_scan_us(const char *p, const char *end, int64_t *ns);

/* A whole number (or the whole part of one); BAD for anything else. */
const char *knee_scan_int(const char *p, const char *end, int64_t *value);

#endif
