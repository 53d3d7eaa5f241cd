/* SPDX-License-Identifier: MIT */
/*
 * TensorBoard's event files: records of length, checksum, bytes, checksum; each a message with a
 * wall time, a step and scalars by tag. Scalars of one step, however many records they come in, are
 * one row. Checksums are not checked; a record that does not fit ends the file, and is counted.
 */
#include "read/run/train_log.h"

#include <math.h>
#include <string.h>

/* A stretch of bytes that is read from the front. */
struct bytes {
    const unsigned char *at, *end;
};

static uint64_t little(const unsigned char *p, size_t size)
{
    uint64_t value = 0;
    for (size_t i = size; i > 0; i--)
        value = value << 8 | p[i - 1];
    return value;
}

static bool varint(struct bytes *b, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && b->at < b->end; shift += 7) {
        unsigned char c = *b->at++;
        value |= (uint64_t)(c & 127) << shift;
        if (c < 128) {
            *out = value;
            return true;
        }
    }
    return false;
}

/* One field of a message: its number, and a varint, fixed value or stretch of bytes. */
struct field {
    uint64_t number, value;
    struct bytes bytes;
    unsigned wire;
};

static bool next_field(struct bytes *b, struct field *out)
{
    uint64_t tag, length;
    if (!varint(b, &tag))
        return false;
    out->number = tag >> 3;
    out->wire = (unsigned)(tag & 7);
    size_t left, size = out->wire == 1 ? 8 : 4;
    switch (out->wire) {
    case 0: return varint(b, &out->value);
    case 1:
    case 5:
        left = (size_t)(b->end - b->at);
        if (left < size)
            return false;
        out->value = little(b->at, size);
        b->at += size;
        return true;
    case 2:
        if (!varint(b, &length) || length > (uint64_t)(b->end - b->at))
            return false;
        out->bytes = (struct bytes){b->at, b->at + length};
        b->at += length;
        return true;
    default: return false;
    }
}

static double float_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return (double)value;
}

static double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A tensor of one float: bytes (field 4) or a list (field 5). */
static double tensor_value(struct bytes tensor)
{
    struct field f;
    while (next_field(&tensor, &f)) {
        bool one = f.wire == 2 && f.bytes.end - f.bytes.at == 4;
        if ((f.number == 4 || f.number == 5) && one)
            return float_of(little(f.bytes.at, 4));
        if (f.number == 5 && f.wire == 5)
            return float_of(f.value);
    }
    return NAN;
}

/* Value of a summary: tag 1, simple value 2, tensor 8. */
static void take_scalar(struct bytes value, struct train_raw *raw)
{
    struct field f;
    char tag[TRAIN_NAME] = "";
    double number = NAN, scale;
    while (next_field(&value, &f)) {
        if (f.number == 1 && f.wire == 2) {
            struct knee_slice text = {(const char *)f.bytes.at, (size_t)(f.bytes.end - f.bytes.at)};
            knee_slice_copy(text, tag, sizeof tag);
        } else if (f.number == 2 && f.wire == 5)
            number = float_of(f.value);
        else if (f.number == 8 && f.wire == 2)
            number = tensor_value(f.bytes);
    }
    enum train_what what = knee_train_column(tag, &scale);
    if (what != TRAIN_NOTHING && isfinite(number))
        raw->value[what] = number * scale;
}

static void take_summary(struct bytes summary, struct train_raw *raw)
{
    struct field f;
    while (next_field(&summary, &f))
        if (f.number == 1 && f.wire == 2)
            take_scalar(f.bytes, raw);
}

/* Event: wall time 1, step 2, summary 5. */
static void take_event(struct knee_train_reader *r, struct bytes event, struct train_raw *raw)
{
    struct field f;
    struct bytes summary = {NULL, NULL};
    double wall = NAN, step = 0;
    while (next_field(&event, &f)) {
        if (f.number == 1 && f.wire == 1)
            wall = double_of(f.value);
        else if (f.number == 2 && f.wire == 0)
            step = (double)f.value;
        else if (f.number == 5 && f.wire == 2)
            summary = f.bytes;
    }
    if (!summary.at)
        return;
    if (!isnan(raw->value[TRAIN_STEP]) && raw->value[TRAIN_STEP] != step) {
        knee_train_row_add(r, raw);
        knee_train_raw_init(raw, raw->format);
    }
    raw->value[TRAIN_STEP] = step;
    raw->value[TRAIN_STAMP] = isfinite(wall) ? wall : NAN;
    take_summary(summary, raw);
}

bool knee_train_is_events(const char *data, size_t length)
{
    struct knee_slice head = {data, length < 64 ? length : 64};
    return head.length >= 24 && little((const unsigned char *)data, 8) < 256 &&
           knee_slice_has(head, "brain.Event:");
}

void knee_train_events_read(struct knee_train_reader *r, unsigned format)
{
    const unsigned char *at = (const unsigned char *)r->document.data;
    const unsigned char *end = at + r->document.length;
    struct train_raw raw;
    knee_train_raw_init(&raw, format);
    while (end - at >= 16) {
        uint64_t length = little(at, 8);
        if (length > (uint64_t)(end - at) - 16) {
            r->counts.cut++;
            break;
        }
        take_event(r, (struct bytes){at + 12, at + 12 + length}, &raw);
        at += 16 + length;
    }
    if (!isnan(raw.value[TRAIN_STEP]))
        knee_train_row_add(r, &raw);
    r->counts.used += r->raw_count;
}
