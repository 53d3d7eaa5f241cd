/* SPDX-License-Identifier: MIT */
/*
 * The wire format of protocol buffers, field by field. Nothing is believed: a length that goes past
 * the end, a number that does not end or an unknown wire type makes the cursor bad and ends it.
 */
#ifndef KNEE_BASE_PROTOBUF_H
#define KNEE_BASE_PROTOBUF_H

#include "base/slice.h"

#include <stdint.h>

struct knee_proto {
    const unsigned char *p, *end;
    bool bad;
    /* of the field last read */
    uint32_t field;
    bool is_bytes; /* `bytes` holds it, else `number` (fixed ones as their bits) */
    uint64_t number;
    struct knee_slice bytes;
};

static inline struct knee_proto knee_proto_of(struct knee_slice bytes)
{
    const unsigned char *start = (const unsigned char *)bytes.at;
    return (struct knee_proto){.p = start, .end = start + bytes.length};
}

/* A base-128 number; more than 64 bits are bad. */
static inline uint64_t knee_proto_varint(struct knee_proto *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && c->p < c->end; shift += 7) {
        unsigned char byte = *c->p++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    c->bad = true;
    c->p = c->end;
    return 0;
}

static inline uint64_t knee_proto_fixed(struct knee_proto *c, size_t size)
{
    uint64_t value = 0;
    if ((size_t)(c->end - c->p) < size) {
        c->bad = true;
        c->p = c->end;
        return 0;
    }
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)c->p[i] << (8 * i);
    c->p += size;
    return value;
}

static inline struct knee_slice knee_proto_slice(struct knee_proto *c)
{
    uint64_t length = knee_proto_varint(c);
    struct knee_slice slice = {(const char *)c->p, 0};
    if (length > (uint64_t)(c->end - c->p)) {
        c->bad = true;
        c->p = c->end;
        return slice;
    }
    slice.length = (size_t)length;
    c->p += length;
    return slice;
}

/* The next field; false at the end, or with c->bad set. */
static inline bool knee_proto_next(struct knee_proto *c)
{
    if (c->bad || c->p == c->end)
        return false;
    uint64_t key = knee_proto_varint(c);
    c->field = (uint32_t)(key >> 3);
    c->is_bytes = (key & 7) == 2;
    switch (key & 7) {
    case 0: c->number = knee_proto_varint(c); break;
    case 1: c->number = knee_proto_fixed(c, 8); break;
    case 2: c->bytes = knee_proto_slice(c); break;
    case 5: c->number = knee_proto_fixed(c, 4); break;
    default: c->bad = true; break;
    }
    c->bad = c->bad || key >> 3 == 0 || key >> 3 > 536870911;
    return !c->bad;
}

#endif
