/* SPDX-License-Identifier: MIT */
/*
 * f32, bf16 (to nearest, ties to even), fp8 e4m3 with a scale per 128 values, int8 with a scale per
 * 256, and one bit with the mean magnitude per 1024. A block is its f32 scale, then its values.
 */
#include "measure/lab_format.h"

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

static void encode_blocks(const float *values, size_t count, size_t block, float top,
                          to_byte *convert, unsigned char *out)
{
    for (size_t at = 0; at < count; at += block) {
        size_t n = count - at < block ? count - at : block;
        float scale = largest(values + at, n) / top;
        memcpy(out, &scale, sizeof scale);
        out += sizeof scale;
        for (size_t i = 0; i < n; i++)
            *out++ = scale > 0 ? convert(values[at + i] / scale) : 0;
    }
}

static void decode_blocks(const unsigned char *in, size_t count, size_t block, from_byte *convert,
                          float *values)
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

/* e4m3: 1 sign, 4 exponent (bias 7), 3 mantissa bits; no infinity; the largest is 448. */
#define FP8_TOP 448.0f

static unsigned char to_fp8(float x)
{
    unsigned char sign = signbit(x) ? 0x80 : 0;
    int exponent = 0;
    float magnitude = fminf(fabsf(x), FP8_TOP);
    if (!(magnitude > 0))
        return sign;
    frexpf(magnitude, &exponent); /* magnitude = m 2^exponent, m in [0.5, 1) */
    int power = exponent - 1 < -6 ? -6 : exponent - 1;
    float eighths = rintf(ldexpf(magnitude, 3 - power)); /* 8..16, below 8 when subnormal */
    if (eighths >= 16) {
        eighths = 8;
        power++;
    }
    if (power > 8 || (power == 8 && eighths > 14)) {
        power = 8;
        eighths = 14;
    }
    if (eighths < 8)
        return (unsigned char)(sign | (unsigned char)eighths);
    return (unsigned char)(sign | (unsigned char)((power + 7) << 3) |
                           (unsigned char)((int)eighths - 8));
}

static float from_fp8(unsigned char byte)
{
    int power = (byte >> 3 & 15) - 7, eighths = (byte & 7) + 8;
    if (power == -7) {
        power = -6;
        eighths -= 8;
    }
    float magnitude = ldexpf((float)eighths, power - 3);
    return byte & 0x80 ? -magnitude : magnitude;
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
    return (unsigned char)(signed char)lrintf(fmaxf(-127, fminf(127, x)));
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
