/* SPDX-License-Identifier: MIT */
#include "out/gzip_out.h"

#include <string.h>

#if KNEE_HAVE_ISAL
#include <isa-l/igzip_lib.h>
#elif KNEE_HAVE_ZLIB
#include <zlib.h>
#endif

#define BLOCK 65536

struct knee_packer {
    struct knee_text *out;
#if KNEE_HAVE_ISAL
    struct isal_zstream stream;
    unsigned char level[ISAL_DEF_LVL1_DEFAULT];
#elif KNEE_HAVE_ZLIB
    z_stream stream;
#endif
    unsigned char block[BLOCK];
};

/* What must be zero at first. */
#if KNEE_HAVE_ISAL
#define HEAD offsetof(struct knee_packer, level)
#else
#define HEAD offsetof(struct knee_packer, block)
#endif

/* Each library: start; work on what is in the stream, all of it, and end it if `last`; stop. */
#if KNEE_HAVE_ISAL
static bool start(struct knee_packer *p)
{
    isal_deflate_init(&p->stream);
    p->stream.gzip_flag = IGZIP_GZIP;
    p->stream.level = 1;
    p->stream.level_buf = p->level;
    p->stream.level_buf_size = sizeof p->level;
    return true;
}

static bool work(struct knee_packer *p, bool last)
{
    p->stream.end_of_stream = last;
    do {
        p->stream.next_out = p->block;
        p->stream.avail_out = BLOCK;
        if (isal_deflate(&p->stream) != COMP_OK)
            return false;
        knee_text_add(p->out, (const char *)p->block, BLOCK - p->stream.avail_out);
    } while (p->stream.avail_out == 0 && !p->out->failed);
    return true;
}

static void stop(struct knee_packer *p)
{
    (void)p;
}
#elif KNEE_HAVE_ZLIB
static bool start(struct knee_packer *p)
{
    return deflateInit2(&p->stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK;
}

static bool work(struct knee_packer *p, bool last)
{
    do {
        p->stream.next_out = p->block;
        p->stream.avail_out = BLOCK;
        int status = deflate(&p->stream, last ? Z_FINISH : Z_NO_FLUSH);
        if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
            return false;
        knee_text_add(p->out, (const char *)p->block, BLOCK - p->stream.avail_out);
    } while (p->stream.avail_out == 0 && !p->out->failed);
    return true;
}

static void stop(struct knee_packer *p)
{
    deflateEnd(&p->stream);
}
#endif

struct knee_packer *knee_pack_begin(struct knee_text *out)
{
    struct knee_packer *p = knee_resize(out->alloc, NULL, sizeof *p);
    out->failed = out->failed || !p;
    if (!p)
        return NULL;
    memset(p, 0, HEAD);
    p->out = out;
#if KNEE_HAVE_ISAL || KNEE_HAVE_ZLIB
    out->failed = out->failed || !start(p);
#endif
    return p;
}

bool knee_pack_add(struct knee_packer *p, const char *data, size_t length)
{
#if KNEE_HAVE_ISAL || KNEE_HAVE_ZLIB
    for (size_t part; length && !p->out->failed; data += part, length -= part) {
        part = length < BLOCK ? length : BLOCK;
        p->stream.next_in = (unsigned char *)data; /* not written to */
        p->stream.avail_in = (unsigned)part;
        p->out->failed = !work(p, false) || p->out->failed;
    }
#else
    knee_text_add(p->out, data, length);
#endif
    return !p->out->failed;
}

void knee_pack_end(struct knee_packer *p)
{
    if (!p)
        return;
#if KNEE_HAVE_ISAL || KNEE_HAVE_ZLIB
    p->out->failed = !work(p, true) || p->out->failed;
    stop(p);
#endif
    knee_resize(p->out->alloc, p, 0);
}

void knee_put_base64(struct knee_text *out, const char *data, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *from = (const unsigned char *)data;
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        unsigned bits = (unsigned)from[i] << 16;
        if (left > 1)
            bits |= (unsigned)from[i + 1] << 8;
        if (left > 2)
            bits |= from[i + 2];
        char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63],
                        left > 1 ? digits[bits >> 6 & 63] : '=',
                        left > 2 ? digits[bits & 63] : '='};
        knee_text_add(out, four, sizeof four);
    }
}
