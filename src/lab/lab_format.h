/* SPDX-License-Identifier: MIT */
/* Number formats on the wire. A row encodes and decodes runs of values; blocks share a scale. */
#ifndef KNEE_LAB_LAB_FORMAT_H
#define KNEE_LAB_LAB_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

struct lab_format {
    const char *name;
    size_t block;      /* values that share a scale; 0: no scale */
    size_t bits;       /* of a value */
    bool adds_in_ring; /* partial sums may be encoded again at every hop */
    void (*encode)(const float *values, size_t count, unsigned char *out);
    void (*decode)(const unsigned char *in, size_t count, float *values);
};
extern const struct lab_format lab_f32, lab_bf16, lab_fp8, lab_int8, lab_one_bit;

/* Bytes that `count` values take. */
size_t lab_format_bytes(const struct lab_format *format, size_t count);

#endif
