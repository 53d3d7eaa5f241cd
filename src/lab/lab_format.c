/* SPDX-License-Identifier: MIT */
/*
 * f32, bf16 (to nearest, ties to even), fp8 e4m3 with a scale per 128 values, int8 with a scale per
 * 256, and one bit with the mean magnitude per 1024. A block is its f32 scale, then its values.
 */
#include "lab/lab_format.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

size_t lab_format_bytes(const struct lab_format *f, size_t count)
{
    size_t blocks = f->block ? (count + f->block - 1) / f->block : 0;
    size_t bytes = 0, whole = f->block ? count / f->block : 0;
    if (!f->block)
        return count * f->bits / 8;
    bytes = whole * ((f->block * f->bits + 7) / 8);
    return bytes + ((count - whole * f->block) * f->bits + 7) / 8 + blocks * sizeof(float);
}

static void f32_encode(const float *values, size_t count, unsigned char *out)
{
    memcpy(out, values, count * sizeof *values);
}

static void f32_decode(const unsigned char *in, size_t count, float *values)
{
    memcpy(values, in, count * sizeof *values);
}

const struct lab_format lab_f32 = {"f32", 0, 32, true, f32_encode, f32_decode};

static void bf16_encode(const float *values, size_t count, unsigned char *out)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bool nan = (bits & 0x7fffffff) > 0x7f800000;
        uint32_t rounded = nan ? bits | 0x400000 : bits + 0x7fff + ((bits >> 16) & 1);
        uint16_t half = (uint16_t)(rounded >> 16);
        memcpy(out + 2 * i, &half, sizeof half);
    }
}

static void bf16_decode(const unsigned char *in, size_t count, float *values)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, in + 2 * i, sizeof half);
        uint32_t bits = (uint32_t)half << 16;
        memcpy(&values[i], &bits, sizeof bits);
    }
}

const struct lab_format lab_bf16 = {"bf16", 0, 16, true, bf16_encode, bf16_decode};

/* ---- Formats with a scale ---- */

typedef unsigned char to_byte(float scaled);
typedef float from_byte(unsigned char byte);

static float largest(const float *values, size_t count)
{
    float most = 0;
    for (size_t i = 0; i < count; i++)
        most = fabsf(values[i]) > most ? fabsf(values[i]) : most;
    return most;
}

static inline void encode_blocks(const float *values, size_t count, size_t block, float top,
                                 to_byte *convert, unsigned char *out)
{
    for (size_t at = 0; at < count; at += block) {
        size_t n = count - at < block ? count - at : block;
        float most = largest(values + at, n), scale = most / top, inverse = top / most;
        memcpy(out, &scale, sizeof scale);
        out += sizeof scale;
        for (size_t i = 0; i < n; i++)
            *out++ = isfinite(inverse) ? convert(values[at + i] * inverse) : 0;
    }
}

static inline void decode_blocks(const unsigned char *in, size_t count, size_t block,
                                 from_byte *convert, float *values)
{
    for (size_t at = 0; at < count; at += block) {
        size_t n = count - at < block ? count - at : block;
        float scale;
        memcpy(&scale, in, sizeof scale);
        in += sizeof scale;
        for (size_t i = 0; i < n; i++)
            values[at + i] = scale * convert(*in++);
    }
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* e4m3: 1 sign, 4 exponent (bias 7), 3 mantissa bits; no infinity; the largest is 448. Rounds to
 * nearest, ties to even, by adding half of what is cut off, as for bf16. Below 2^-6 values are
 * multiples of 2^-9. */
#define FP8_TOP      448.0f
#define ROUNDS_WHOLE 12582912.0f /* 1.5 * 2^23: adding it leaves whole numbers in the low bits */

static unsigned char to_fp8(float x)
{
    uint32_t bits = bits_of(x), sign = bits >> 24 & 0x80, size = bits & 0x7fffffff;
    uint32_t code;
    if (size < 0x3c800000) /* 2^-6 */
        code = bits_of(float_of(size) * 512 + ROUNDS_WHOLE) & 15;
    else
        code = ((size + 0x7ffff + (size >> 20 & 1)) >> 20) - ((127 - 7) << 3);
    return (unsigned char)(sign | (code < 0x7e ? code : 0x7e));
}

static float from_fp8(unsigned char byte)
{
    uint32_t size = byte & 0x7f, sign = (uint32_t)(byte & 0x80) << 24;
    uint32_t bits = size < 8 ? bits_of((float)size / 512) : (size << 20) + ((127 - 7) << 23);
    return float_of(bits | sign);
}

static void fp8_encode(const float *values, size_t count, unsigned char *out)
{
    encode_blocks(values, count, lab_fp8.block, FP8_TOP, to_fp8, out);
}

static void fp8_decode(const unsigned char *in, size_t count, float *values)
{
    decode_blocks(in, count, lab_fp8.block, from_fp8, values);
}

const struct lab_format lab_fp8 = {"fp8", 128, 8, false, fp8_encode, fp8_decode};

static unsigned char to_int8(float x)
{
    return (unsigned char)(bits_of(x + ROUNDS_WHOLE) & 0xff); /* |x| <= 127 by its scale */
}

static float from_int8(unsigned char byte)
{
    return (float)(signed char)byte;
}

static void int8_encode(const float *values, size_t count, unsigned char *out)
{
    encode_blocks(values, count, lab_int8.block, 127, to_int8, out);
}

static void int8_decode(const unsigned char *in, size_t count, float *values)
{
    decode_blocks(in, count, lab_int8.block, from_int8, values);
}

const struct lab_format lab_int8 = {"int8", 256, 8, false, int8_encode, int8_decode};

/* ---- One bit: the sign, and the mean magnitude of the block ---- */

static void one_bit_encode(const float *values, size_t count, unsigned char *out)
{
    for (size_t at = 0; at < count; at += lab_one_bit.block) {
        size_t n = count - at < lab_one_bit.block ? count - at : lab_one_bit.block;
        float scale = 0;
        for (size_t i = 0; i < n; i++)
            scale += fabsf(values[at + i]) / (float)n;
        memcpy(out, &scale, sizeof scale);
        out += sizeof scale;
        memset(out, 0, (n + 7) / 8);
        for (size_t i = 0; i < n; i++)
            out[i / 8] = (unsigned char)(out[i / 8] | (values[at + i] < 0 ? 1u << i % 8 : 0u));
        out += (n + 7) / 8;
    }
}

static void one_bit_decode(const unsigned char *in, size_t count, float *values)
{
    for (size_t at = 0; at < count; at += lab_one_bit.block) {
        size_t n = count - at < lab_one_bit.block ? count - at : lab_one_bit.block;
        float scale;
        memcpy(&scale, in, sizeof scale);
        in += sizeof scale;
        for (size_t i = 0; i < n; i++)
            values[at + i] = in[i / 8] >> i % 8 & 1 ? -scale : scale;
        in += (n + 7) / 8;
    }
}

const struct lab_format lab_one_bit = {"1-bit", 1024, 1, false, one_bit_encode, one_bit_decode};
