/* SPDX-License-Identifier: MIT */
#include "read/trace/scan.h"

#include <string.h>

#ifdef __SSE2__
#include <immintrin.h>
#endif

const char knee_scan_bad[1] = "";

/* The next quote or bracket of any kind: [ and { differ in bit 5 only, as do ] and }. */
#ifdef __SSE2__

static inline const char *next_structure(const char *p)
{
    const __m128i quote = _mm_set1_epi8('"'), open = _mm_set1_epi8('{');
    const __m128i close = _mm_set1_epi8('}'), bit = _mm_set1_epi8(0x20);
    for (;; p += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i folded = _mm_or_si128(block, bit);
        __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(folded, open), _mm_cmpeq_epi8(folded, close));
        int mask = _mm_movemask_epi8(_mm_or_si128(hit, _mm_cmpeq_epi8(block, quote)));
        if (mask)
            return p + __builtin_ctz((unsigned)mask);
    }
}

#else

static inline const char *next_structure(const char *p)
{
    for (;; p += 8) {
        uint64_t word = knee_scan_load(p), folded = word | 0x2020202020202020u;
        if (knee_scan_same(word, '"') | knee_scan_same(folded, '{') | knee_scan_same(folded, '}'))
            break;
    }
    while (*p != '"' && (*p | 0x20) != '{' && (*p | 0x20) != '}')
        p++;
    return p;
}

#endif

/* Can the quote at `p` close a string of this role, by what follows it? Two strings with only space
 * between them lack a comma, which is dealt with elsewhere. */
static bool closes(const char *p, const char *next, enum knee_string_role role)
{
    if (*next == ':')
        return role != KNEE_STRING_VALUE;
    if (role == KNEE_STRING_KEY)
        return false;
    return *next == ',' || *next == '}' || *next == ']' || (*next == '"' && next > p + 1);
}

const char *knee_scan_string_slow(const char *p, const char *end, enum knee_string_role role,
                                  uint64_t *repaired)
{
    for (;; p = knee_scan_quote(p)) {
        if (p >= end)
            return NULL;
        if (*p == '\\') {
            p += 2;
            continue;
        }
        const char *next = knee_scan_space(p + 1);
        if (next >= end)
            return NULL;
        if (closes(p, next, role))
            return p;
        ++*repaired;
        p++;
    }
}

static const char *rest_with_care(const char *p, const char *end, size_t depth, uint64_t *repaired)
{
    while (depth > 0) {
        p = next_structure(p);
        if (p >= end)
            return NULL;
        if (*p == '"') {
            p = knee_scan_quote(p + 1);
            /* The usual case by hand: what follows a closing quote is mostly one of these. */
            if (*p != '"' || (p[1] != ':' && p[1] != ',') || p + 1 >= end)
                p = knee_scan_string_slow(p, end, KNEE_STRING_ANY, repaired);
            if (!p)
                return NULL;
        } else if ((*p | 0x20) == '{') {
            depth++;
        } else {
            depth--;
        }
        p++;
    }
    return p;
}

/* ---- Stepping over what is not wanted, 64 bytes at a time ---- */

/*
 * One bit per byte: where quotes, backslashes and brackets are. Between an odd quote and the next a
 * byte is inside a string: the running exclusive-or of the quotes' bits. This counts on quotes
 * coming in pairs, which damaged files do not keep, so a skip is believed only when it is short,
 * meets no backslash, and ends where an event may end; all else is gone through again with care.
 * Every processor does the same, so that a damaged file gives the same answer everywhere.
 */
enum { LONGEST_SKIP = 4096 };

struct marks {
    uint64_t quotes, slashes, opens, closes;
};

static inline uint64_t inside_by_shifts(uint64_t quotes)
{
    quotes ^= quotes << 1;
    quotes ^= quotes << 2;
    quotes ^= quotes << 4;
    quotes ^= quotes << 8;
    quotes ^= quotes << 16;
    quotes ^= quotes << 32;
    return quotes;
}

/* Where `depth` becomes 0 among the brackets of a block. */
static const char *end_in_block(const char *block, uint64_t opens, uint64_t closes, size_t *depth)
{
    for (uint64_t all = opens | closes; all; all &= all - 1) {
        uint64_t bit = all & -all;
        *depth += opens & bit ? 1 : (size_t)-1;
        if (*depth == 0)
            return block + __builtin_ctzll(bit);
    }
    return NULL;
}

#define DEFINE_SKIP(name, attribute, marks_of, inside_of)                                          \
    attribute static const char *name(const char *p, const char *end, size_t depth)                \
    {                                                                                              \
        const char *limit = end - p > LONGEST_SKIP ? p + LONGEST_SKIP : end;                       \
        uint64_t inside = 0; /* all ones while a string goes on from the block before */           \
        for (; p + 64 <= limit; p += 64) {                                                         \
            struct marks m = marks_of(p);                                                          \
            if (m.slashes)                                                                         \
                return NULL;                                                                       \
            uint64_t strings = inside_of(m.quotes) ^ inside;                                       \
            inside = 0 - (strings >> 63);                                                          \
            m.opens &= ~strings;                                                                   \
            m.closes &= ~strings;                                                                  \
            size_t closes = (size_t)__builtin_popcountll(m.closes);                                \
            if (closes >= depth) {                                                                 \
                const char *found = end_in_block(p, m.opens, m.closes, &depth);                    \
                if (found)                                                                         \
                    return found + 1;                                                              \
            } else {                                                                               \
                depth += (size_t)__builtin_popcountll(m.opens) - closes;                           \
            }                                                                                      \
        }                                                                                          \
        return NULL;                                                                               \
    }

/*
 * The end of an event that is laid out in lines as Kineto lays it out is cheaper to find: a line
 * that begins with two spaces and a brace. The same care is taken: quotes before it must be even in
 * number, no backslash among them, and the end must not be far.
 */
struct lines {
    uint32_t stops; /* line breaks with a brace (or the letter y) three bytes on, and backslashes */
    uint32_t quotes;
};

static const char *event_end_at(const char *stop, const char *limit, uint32_t quotes)
{
    bool here =
        stop + 4 < limit && memcmp(stop, "\n  }", 4) == 0 && (stop[4] == ',' || stop[4] == '\n');
    return here && !__builtin_parity(quotes) ? stop + 4 : NULL;
}

#define DEFINE_EVENT_END(name, attribute, lines_of, bytes)                                         \
    attribute static const char *name(const char *p, const char *end)                              \
    {                                                                                              \
        const char *limit = end - p > LONGEST_SKIP ? p + LONGEST_SKIP : end;                       \
        uint32_t quotes = 0; /* odd or even, at each place of a block */                           \
        for (; limit - p > 3; p += (bytes)) {                                                      \
            struct lines l = lines_of(p);                                                          \
            if (l.stops)                                                                           \
                return event_end_at(p + __builtin_ctz(l.stops), limit,                             \
                                    quotes ^ (l.quotes & (l.stops ^ (l.stops - 1))));              \
            quotes ^= l.quotes;                                                                    \
        }                                                                                          \
        return NULL;                                                                               \
    }

#ifdef __SSE2__

static inline uint64_t join4(int a, int b, int c, int d)
{
    return (uint64_t)(unsigned)a | (uint64_t)(unsigned)b << 16 | (uint64_t)(unsigned)c << 32 |
           (uint64_t)(unsigned)d << 48;
}

static inline uint64_t equal16(const __m128i *b, __m128i what)
{
    return join4(_mm_movemask_epi8(_mm_cmpeq_epi8(b[0], what)),
                 _mm_movemask_epi8(_mm_cmpeq_epi8(b[1], what)),
                 _mm_movemask_epi8(_mm_cmpeq_epi8(b[2], what)),
                 _mm_movemask_epi8(_mm_cmpeq_epi8(b[3], what)));
}

static inline struct marks marks_sse2(const char *p)
{
    const __m128i fold = _mm_set1_epi8(0x20);
    __m128i b[4];
    struct marks m;
    for (int i = 0; i < 4; i++)
        b[i] = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
    m.quotes = equal16(b, _mm_set1_epi8('"'));
    m.slashes = equal16(b, _mm_set1_epi8('\\'));
    for (int i = 0; i < 4; i++)
        b[i] = _mm_or_si128(b[i], fold);
    m.opens = equal16(b, _mm_set1_epi8('{'));
    m.closes = equal16(b, _mm_set1_epi8('}'));
    return m;
}

static inline struct lines lines_sse2(const char *p)
{
    __m128i here = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i on = _mm_loadu_si128((const __m128i *)(const void *)(p + 3));
    __m128i brace = _mm_cmpeq_epi8(_mm_and_si128(on, _mm_set1_epi8(~6)), _mm_set1_epi8('{' & ~6));
    __m128i line = _mm_and_si128(_mm_cmpeq_epi8(here, _mm_set1_epi8('\n')), brace);
    __m128i stop = _mm_or_si128(line, _mm_cmpeq_epi8(here, _mm_set1_epi8('\\')));
    return (struct lines){(uint32_t)_mm_movemask_epi8(stop),
                          (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(here, _mm_set1_epi8('"')))};
}

DEFINE_SKIP(skip_narrow, , marks_sse2, inside_by_shifts)
DEFINE_EVENT_END(event_end_narrow, , lines_sse2, 16)

#define AVX2 __attribute__((target("avx2,pclmul,popcnt")))

/* Multiplying by all ones without carries is the running exclusive-or. */
AVX2 static inline uint64_t inside_by_product(uint64_t quotes)
{
    __m128i product =
        _mm_clmulepi64_si128(_mm_set_epi64x(0, (long long)quotes), _mm_set1_epi8(-1), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

AVX2 static inline uint64_t equal32(__m256i low, __m256i high, __m256i what)
{
    return (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, what)) |
           (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, what)) << 32;
}

AVX2 static inline struct marks marks_avx2(const char *p)
{
    __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)p);
    __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
    const __m256i fold = _mm256_set1_epi8(0x20);
    struct marks m;
    m.quotes = equal32(low, high, _mm256_set1_epi8('"'));
    m.slashes = equal32(low, high, _mm256_set1_epi8('\\'));
    low = _mm256_or_si256(low, fold);
    high = _mm256_or_si256(high, fold);
    m.opens = equal32(low, high, _mm256_set1_epi8('{'));
    m.closes = equal32(low, high, _mm256_set1_epi8('}'));
    return m;
}

AVX2 static inline struct lines lines_avx2(const char *p)
{
    __m256i here = _mm256_loadu_si256((const __m256i *)(const void *)p);
    __m256i on = _mm256_loadu_si256((const __m256i *)(const void *)(p + 3));
    on = _mm256_and_si256(on, _mm256_set1_epi8(~6));
    __m256i line = _mm256_and_si256(_mm256_cmpeq_epi8(here, _mm256_set1_epi8('\n')),
                                    _mm256_cmpeq_epi8(on, _mm256_set1_epi8('{' & ~6)));
    __m256i stop = _mm256_or_si256(line, _mm256_cmpeq_epi8(here, _mm256_set1_epi8('\\')));
    __m256i quote = _mm256_cmpeq_epi8(here, _mm256_set1_epi8('"'));
    return (struct lines){(uint32_t)_mm256_movemask_epi8(stop),
                          (uint32_t)_mm256_movemask_epi8(quote)};
}

DEFINE_SKIP(skip_avx2, AVX2, marks_avx2, inside_by_product)
DEFINE_EVENT_END(event_end_avx2, AVX2, lines_avx2, 32)

bool knee_scan_can_be_wide(void)
{
    int avx2 = __builtin_cpu_supports("avx2") != 0, pclmul = __builtin_cpu_supports("pclmul") != 0;
    return avx2 & pclmul;
}

const char *knee_scan_skip(const char *p, const char *end, size_t depth, bool wide)
{
    return wide ? skip_avx2(p, end, depth) : skip_narrow(p, end, depth);
}

const char *knee_scan_event_end(const char *p, const char *end, bool wide)
{
    return wide ? event_end_avx2(p, end) : event_end_narrow(p, end);
}

#else

/* One bit for each of 8 bytes that equals `what`, the first byte the lowest. The high bit of a byte
 * of `differs` is clear where all of its bits are; the product gathers one bit of each byte. */
static inline uint64_t equal8(uint64_t word, unsigned char what)
{
    const uint64_t ones = 0x0101010101010101u, low = 0x7f7f7f7f7f7f7f7fu;
    uint64_t x = word ^ ones * what, differs = ((x & low) + low) | x | low;
    return (~differs >> 7) * 0x0102040810204080u >> 56;
}

static inline struct marks marks_of(const char *p)
{
    struct marks m = {0};
    for (int i = 0; i < 8; i++) {
        uint64_t word = knee_scan_load(p + 8 * i), folded = word | 0x2020202020202020u;
        m.quotes |= equal8(word, '"') << 8 * i;
        m.slashes |= equal8(word, '\\') << 8 * i;
        m.opens |= equal8(folded, '{') << 8 * i;
        m.closes |= equal8(folded, '}') << 8 * i;
    }
    return m;
}

static inline struct lines lines_of(const char *p)
{
    uint64_t word = knee_scan_load(p), on = knee_scan_load(p + 3) & 0xf9f9f9f9f9f9f9f9u;
    uint64_t line = equal8(word, '\n') & equal8(on, '{' & ~6);
    return (struct lines){(uint32_t)(line | equal8(word, '\\')), (uint32_t)equal8(word, '"')};
}

DEFINE_SKIP(skip_narrow, , marks_of, inside_by_shifts)
DEFINE_EVENT_END(event_end_narrow, , lines_of, 8)

bool knee_scan_can_be_wide(void)
{
    return false;
}

const char *knee_scan_skip(const char *p, const char *end, size_t depth, bool wide)
{
    (void)wide;
    return skip_narrow(p, end, depth);
}

const char *knee_scan_event_end(const char *p, const char *end, bool wide)
{
    (void)wide;
    return event_end_narrow(p, end);
}

#endif

const char *knee_scan_rest(const char *p, const char *end, size_t depth, uint64_t *repaired)
{
    const char *after =
        KNEE_SCAN_FAST ? knee_scan_skip(p, end, depth, knee_scan_can_be_wide()) : NULL;
    if (after && after < end) {
        const char *next = knee_scan_space(after);
        if (next < end && (*next == ',' || *next == '}' || *next == ']'))
            return after;
    }
    return rest_with_care(p, end, depth, repaired);
}

/* Bytes of numbers and literals: 1.5e+3, true, null, inf. */
static const bool in_word[256] = {
    ['0'] = 1, ['1'] = 1, ['2'] = 1, ['3'] = 1, ['4'] = 1, ['5'] = 1, ['6'] = 1, ['7'] = 1,
    ['8'] = 1, ['9'] = 1, ['-'] = 1, ['+'] = 1, ['.'] = 1, ['a'] = 1, ['b'] = 1, ['c'] = 1,
    ['d'] = 1, ['e'] = 1, ['f'] = 1, ['g'] = 1, ['h'] = 1, ['i'] = 1, ['j'] = 1, ['k'] = 1,
    ['l'] = 1, ['m'] = 1, ['n'] = 1, ['o'] = 1, ['p'] = 1, ['q'] = 1, ['r'] = 1, ['s'] = 1,
    ['t'] = 1, ['u'] = 1, ['v'] = 1, ['w'] = 1, ['x'] = 1, ['y'] = 1, ['z'] = 1, ['A'] = 1,
    ['E'] = 1, ['F'] = 1, ['I'] = 1, ['N'] = 1, ['T'] = 1,
};

static const char *scan_word(const char *p, const char *end)
{
    const char *start = p;
    while (in_word[(unsigned char)*p])
        p++;
    if (p >= end)
        return NULL;
    return p == start ? KNEE_SCAN_BAD : p;
}

const char *knee_scan_value(const char *p, const char *end, uint64_t *repaired)
{
    if (p >= end)
        return NULL;
    if (*p == '"') {
        p = knee_scan_string(p + 1, end, KNEE_STRING_VALUE, repaired);
        return p ? p + 1 : NULL;
    }
    if (*p == '{' || *p == '[')
        return knee_scan_rest(p + 1, end, 1, repaired);
    return scan_word(p, end);
}

const uint32_t knee_scan_powers[9] = {1,      10,      100,      1000,     10000,
                                      100000, 1000000, 10000000, 100000000};

/* All digits at p; false when there are none, or more than 16. */
static inline bool scan_digits(const char **p, uint64_t *value)
{
    unsigned count, more;
    *value = knee_scan_eight(*p, &count);
    *p += count;
    if (count < 8)
        return count > 0;
    uint32_t rest = knee_scan_eight(*p, &more);
    *value = *value * knee_scan_powers[more] + rest;
    *p += more;
    return more < 8 || !knee_scan_is_digit(**p);
}

/* Up to the year 2096, and a little before 1970: sums and differences of two such times, a base
 * time added, fit into 64 bits of nanoseconds. */
#define MOST_US  ((uint64_t)4000000000000000)
#define LEAST_NS (-(int64_t)1000000000000000000)

/* Digits past the third decimal: half to even. */
static const char *round_rest(const char *p, int64_t *ns)
{
    bool half = *p == '5', above = *p > '5';
    if (half)
        for (const char *q = p + 1; knee_scan_is_digit(*q); q++)
            above = above || *q != '0';
    while (knee_scan_is_digit(*p))
        p++;
    if (above || (half && (*ns & 1)))
        ++*ns;
    return p;
}

/* 1.5e3, from its first digit: rare, so slow is fine. Up to 18 digits count, exactly. */
static const char *scan_exponent(const char *p, const char *end, int64_t *ns)
{
    int64_t digits = 0;
    int scale = 3, exponent = 0; /* value = digits 10^scale nanoseconds */
    bool point = false, sticky = false;
    for (; knee_scan_is_digit(*p) || *p == '.'; p++) {
        if (*p == '.') {
            point = true;
        } else if (digits < 100000000000000000) {
            digits = digits * 10 + (*p - '0');
            scale -= point;
        } else {
            sticky = sticky || *p != '0';
            scale += !point;
        }
    }
    bool down = *++p == '-';
    p += *p == '-' || *p == '+';
    if (p >= end || !knee_scan_is_digit(*p))
        return p >= end ? NULL : KNEE_SCAN_BAD;
    for (; knee_scan_is_digit(*p); p++)
        exponent = exponent < 1000 ? exponent * 10 + (*p - '0') : exponent;
    scale += down ? -exponent : exponent;
    for (; scale > 0 && digits != 0; scale--) {
        if (digits > (int64_t)MOST_US * 100)
            return KNEE_SCAN_BAD;
        digits *= 10;
    }
    for (; scale < -1 && digits != 0; scale++) {
        sticky = sticky || digits % 10 != 0;
        digits /= 10;
    }
    if (scale == -1) {
        int64_t rest = digits % 10;
        digits /= 10;
        digits += rest > 5 || (rest == 5 && (sticky || (digits & 1)));
    }
    *ns = digits;
    return p;
}

const char *knee_scan_us(const char *p, const char *end, int64_t *ns)
{
    bool quoted = *p == '"';
    p += quoted;
    bool negative = *p == '-';
    p += negative;
    const char *start = p;
    uint64_t whole;
    bool good = scan_digits(&p, &whole) && whole <= MOST_US;
    int64_t value = good ? (int64_t)whole * 1000 : 0;
    if (*p == '.' && good) {
        unsigned count;
        uint32_t decimals = knee_scan_eight(++p, &count);
        if (count <= 3) {
            value += decimals * knee_scan_powers[3 - count];
            p += count;
        } else {
            value += (p[0] - '0') * 100 + (p[1] - '0') * 10 + (p[2] - '0');
            p = round_rest(p + 3, &value);
        }
    }
    if (p >= end)
        return NULL;
    if (*p == 'e' || *p == 'E') {
        p = knee_scan_is_digit(*start) ? scan_exponent(start, end, &value) : KNEE_SCAN_BAD;
        if (!p || p == KNEE_SCAN_BAD)
            return p;
    } else if (!good) {
        return KNEE_SCAN_BAD;
    }
    p += quoted && *p == '"';
    if (p >= end)
        return NULL;
    value = negative ? -value : value;
    if (value < LEAST_NS || value > (int64_t)MOST_US * 1000)
        return KNEE_SCAN_BAD;
    *ns = value;
    return p;
}

const char *knee_scan_int(const char *p, const char *end, int64_t *value)
{
    bool negative = *p == '-';
    p += negative;
    uint64_t result;
    const char *start = p;
    bool good = scan_digits(&p, &result) || p > start;
    for (; knee_scan_is_digit(*p); p++) { /* more than 16 of them */
        good = good && result <= (uint64_t)(INT64_MAX - 9) / 10;
        result = result * 10 + (uint64_t)(*p - '0');
    }
    while (knee_scan_is_digit(*p) || *p == '.' || *p == 'e' || *p == 'E' || *p == '+' || *p == '-')
        p++; /* a fraction is cut off */
    if (p >= end)
        return NULL;
    if (!good)
        return KNEE_SCAN_BAD;
    *value = negative ? -(int64_t)result : (int64_t)result;
    return p;
}
