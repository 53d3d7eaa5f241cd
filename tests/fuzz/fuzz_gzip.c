/* SPDX-License-Identifier: MIT */
/*
 * gzip, with structure: the bytes are cut into members, each packed by our own packer, damaged at
 * places or not, and unpacked in portions of any size, from reads of any size. What is whole comes
 * back as it was; what is not says so. The rest of the bytes as they are.
 */
#include "out/gzip_out.h"
#include "read/trace/reader.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct source {
    const char *data;
    size_t length, at, portion;
};

static ptrdiff_t give(void *ctx, void *buffer, size_t size)
{
    struct source *s = ctx;
    size = size < s->portion ? size : s->portion;
    size = size < s->length - s->at ? size : s->length - s->at;
    if (size)
        memcpy(buffer, s->data + s->at, size);
    s->at += size;
    return (ptrdiff_t)size;
}

/* Everything that comes out; true: without trouble. */
static bool unpack(struct source source, size_t portion, struct knee_text *out)
{
    char *buffer = malloc(portion);
    struct knee_gunzip *gunzip = knee_gunzip_new((struct knee_reader){give, &source}, NULL);
    ptrdiff_t got = 0;
    if (!buffer || !gunzip)
        abort();
    while (out->length < (1 << 20) && (got = knee_gunzip_read(gunzip, buffer, portion)) > 0)
        knee_text_add(out, buffer, (size_t)got);
    bool good = got >= 0 && !knee_gunzip_trouble(gunzip);
    knee_gunzip_free(gunzip);
    free(buffer);
    return good;
}

static void pack_member(struct knee_text *out, const uint8_t *data, size_t size)
{
    struct knee_packer *packer = knee_pack_begin(out);
    if (!packer || !knee_pack_add(packer, (const char *)data, size))
        abort();
    knee_pack_end(packer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct knee_text packed = {0}, plain = {0}, back = {0}, raw = {0};
    if (size < 4)
        return 0;
    size_t reads = 1 + data[0] * (size_t)data[0], portion = 1 + data[1], harm = data[2];
    const uint8_t *at = data + 3, *end = data + size;
    for (int members = 0; at < end && members < 8; members++) {
        size_t length = *at++;
        length = length < (size_t)(end - at) ? length : (size_t)(end - at);
        if (length == 0)
            continue;
        pack_member(&packed, at, length);
        knee_text_add(&plain, (const char *)at, length);
        at += length;
    }
    bool harmed = harm && packed.length > 18;
    if (harmed)
        packed.data[10 + harm % (packed.length - 18)] ^= (char)(1 + harm % 255);
    bool good = unpack((struct source){packed.data, packed.length, 0, reads}, portion, &back);
    bool same = back.length == plain.length &&
                (!plain.length || memcmp(back.data, plain.data, plain.length) == 0);
    if (packed.length && !harmed && (!good || !same))
        abort();
    unpack((struct source){(const char *)data, size, 0, reads}, portion, &raw);
    knee_text_release(&packed);
    knee_text_release(&plain);
    knee_text_release(&back);
    knee_text_release(&raw);
    return 0;
}
