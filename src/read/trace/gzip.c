/* SPDX-License-Identifier: MIT */
/*
 * gzip in front of a reader: ISA-L where it is there (three times as fast), else zlib. A file that
 * does not start with the gzip magic passes through. Members follow each other; what comes after
 * damage is not guessed at.
 */
#include "base/text.h"
#include "read/trace/reader.h"

#include <string.h>

#if defined(KNEE_HAVE_ISAL) && KNEE_HAVE_ISAL
#include <isa-l/igzip_lib.h>
#elif defined(KNEE_HAVE_ZLIB) && KNEE_HAVE_ZLIB
#include <zlib.h>
#endif

enum { INPUT = KNEE_WINDOW_BYTES / 2 };

struct knee_gunzip {
    struct knee_reader inner;
    const struct knee_alloc *alloc;
    const char *trouble;
    bool started, plain, ended, inner_ended;
    unsigned char *next; /* compressed bytes not used yet */
    size_t available;
#if defined(KNEE_HAVE_ISAL) && KNEE_HAVE_ISAL
    struct inflate_state state;
#elif defined(KNEE_HAVE_ZLIB) && KNEE_HAVE_ZLIB
    z_stream state;
#endif
    unsigned char input[INPUT];
};

/* Gets more compressed bytes; false at the end or after a failure (which is in *failed). */
static bool feed(struct knee_gunzip *g, bool *failed)
{
    if (g->available || g->inner_ended)
        return g->available > 0;
    ptrdiff_t got = g->inner.read(g->inner.ctx, g->input, sizeof g->input);
    if (got <= 0) {
        g->inner_ended = true;
        *failed = got < 0;
        return false;
    }
    g->next = g->input;
    g->available = (size_t)got;
    return true;
}

/* Two bytes tell what it is; a pipe may give one at first. */
static void feed_second(struct knee_gunzip *g)
{
    if (g->available != 1 || g->inner_ended)
        return;
    ptrdiff_t got = g->inner.read(g->inner.ctx, g->input + 1, sizeof g->input - 1);
    if (got > 0)
        g->available += (size_t)got;
}

#if defined(KNEE_HAVE_ISAL) && KNEE_HAVE_ISAL

static bool begin(struct knee_gunzip *g)
{
    isal_inflate_init(&g->state);
    g->state.crc_flag = ISAL_GZIP;
    return true;
}

static void finish(struct knee_gunzip *g)
{
    (void)g;
}

static bool next_member(struct knee_gunzip *g)
{
    isal_inflate_reset(&g->state);
    g->state.crc_flag = ISAL_GZIP;
    return true;
}

/* Inflates some; *done at the end of a member. False: the data is damaged. */
static bool inflate_some(struct knee_gunzip *g, unsigned char *out, size_t size, size_t *made,
                         bool *done)
{
    g->state.next_in = g->next;
    g->state.avail_in = (uint32_t)g->available;
    g->state.next_out = out;
    g->state.avail_out = (uint32_t)size;
    int result = isal_inflate(&g->state);
    g->next = g->state.next_in;
    g->available = g->state.avail_in;
    *made = size - g->state.avail_out;
    *done = g->state.block_state == ISAL_BLOCK_FINISH;
    return result == ISAL_DECOMP_OK || result == ISAL_END_INPUT;
}

#elif defined(KNEE_HAVE_ZLIB) && KNEE_HAVE_ZLIB

static bool begin(struct knee_gunzip *g)
{
    return inflateInit2(&g->state, 15 + 16) == Z_OK;
}

static void finish(struct knee_gunzip *g)
{
    if (g->started && !g->plain)
        inflateEnd(&g->state);
}

static bool next_member(struct knee_gunzip *g)
{
    return inflateReset(&g->state) == Z_OK;
}

static bool inflate_some(struct knee_gunzip *g, unsigned char *out, size_t size, size_t *made,
                         bool *done)
{
    g->state.next_in = g->next;
    g->state.avail_in = (uInt)g->available;
    g->state.next_out = out;
    g->state.avail_out = (uInt)size;
    int result = inflate(&g->state, Z_NO_FLUSH);
    g->next = g->state.next_in;
    g->available = g->state.avail_in;
    *made = size - g->state.avail_out;
    *done = result == Z_STREAM_END;
    return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR;
}

#else

static bool begin(struct knee_gunzip *g)
{
    g->trouble = "this knee was built without zlib: gunzip the file first";
    return false;
}

static void finish(struct knee_gunzip *g)
{
    (void)g;
}

static bool next_member(struct knee_gunzip *g)
{
    (void)g;
    return false;
}

static bool inflate_some(struct knee_gunzip *g, unsigned char *out, size_t size, size_t *made,
                         bool *done)
{
    (void)g, (void)out, (void)size;
    *made = 0;
    *done = true;
    return false;
}

#endif

struct knee_gunzip *knee_gunzip_new(struct knee_reader inner, const struct knee_alloc *alloc)
{
    struct knee_gunzip *g = knee_resize(alloc, NULL, sizeof *g);
    if (!g)
        return NULL;
    memset(g, 0, offsetof(struct knee_gunzip, input));
    g->inner = inner;
    g->alloc = alloc;
    return g;
}

void knee_gunzip_free(struct knee_gunzip *g)
{
    if (!g)
        return;
    finish(g);
    knee_resize(g->alloc, g, 0);
}

const char *knee_gunzip_trouble(const struct knee_gunzip *g)
{
    return g->trouble;
}

static bool is_gzip(const struct knee_gunzip *g)
{
    return g->available >= 2 && g->next[0] == 0x1f && g->next[1] == 0x8b;
}

static ptrdiff_t read_plain(struct knee_gunzip *g, void *buffer, size_t size)
{
    if (g->available) {
        size_t count = g->available < size ? g->available : size;
        memcpy(buffer, g->next, count);
        g->next += count;
        g->available -= count;
        return (ptrdiff_t)count;
    }
    return g->inner_ended ? 0 : g->inner.read(g->inner.ctx, buffer, size);
}

/* After a member: zero bytes may pad it, another may follow; anything else is not ours. */
static void after_member(struct knee_gunzip *g)
{
    bool failed = false;
    while (feed(g, &failed) && *g->next == 0) {
        g->next++;
        g->available--;
    }
    if (failed)
        g->trouble = "it could not be read to its end";
    if (!g->available) {
        g->ended = true;
    } else if (g->next[0] != 0x1f || !next_member(g)) {
        g->ended = true;
        g->trouble = "something else follows the compressed data";
    }
}

static ptrdiff_t read_gzip(struct knee_gunzip *g, unsigned char *buffer, size_t size)
{
    while (!g->ended) {
        bool failed = false, done = false;
        size_t made = 0;
        if (!feed(g, &failed)) {
            g->ended = true;
            g->trouble = failed ? "it could not be read to its end" : "it ends early";
            return failed ? -1 : 0;
        }
        if (!inflate_some(g, buffer, size, &made, &done)) {
            g->ended = true;
            g->trouble = g->trouble ? g->trouble : "it is damaged";
        } else if (done) {
            after_member(g);
        }
        if (made)
            return (ptrdiff_t)made;
    }
    return 0;
}

ptrdiff_t knee_gunzip_read(struct knee_gunzip *g, void *buffer, size_t size)
{
    bool failed = false;
    if (size > (1u << 30))
        size = 1u << 30; /* the libraries count in 32 bits */
    if (!g->started) {
        g->started = true;
        g->plain = true;
        if (!feed(g, &failed))
            return failed ? -1 : 0;
        feed_second(g);
        if (is_gzip(g)) {
            g->plain = !begin(g);
            g->ended = g->plain;
            if (g->plain && !g->trouble)
                g->trouble = "out of memory";
        }
    }
    if (g->ended)
        return 0;
    return g->plain ? read_plain(g, buffer, size) : read_gzip(g, buffer, size);
}

/* Doubles the buffer when it is full. False: no memory, and the buffer is as it was. */
static bool make_room(const struct knee_alloc *alloc, char **buffer, size_t *capacity, size_t used)
{
    if (used < *capacity)
        return true;
    size_t larger = *capacity ? *capacity * 2 : 1 << 20;
    char *grown = knee_resize(alloc, *buffer, larger);
    if (!grown)
        return false;
    *buffer = grown;
    *capacity = larger;
    return true;
}

knee_status knee_gunzip_all(struct knee_reader reader, size_t cap, const struct knee_alloc *alloc,
                            void **data, size_t *length)
{
    struct knee_gunzip *gunzip = knee_gunzip_new(reader, alloc);
    char *buffer = NULL;
    size_t used = 0, capacity = 0;
    ptrdiff_t got = gunzip ? 1 : -1;
    while (got > 0) {
        if (used > cap || !make_room(alloc, &buffer, &capacity, used)) {
            got = -1;
        } else {
            got = knee_gunzip_read(gunzip, buffer + used, capacity - used);
            used += got > 0 ? (size_t)got : 0;
        }
    }
    knee_gunzip_free(gunzip);
    if (got < 0) {
        knee_resize(alloc, buffer, 0);
        return KNEE_SYSTEM;
    }
    *data = buffer;
    *length = used;
    return KNEE_OK;
}
