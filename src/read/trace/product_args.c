/* SPDX-License-Identifier: MIT */
/*
 * One row per operation that multiplies: which of its inputs are the factors, and, of attention,
 * which argument says that it is causal (order of arguments: native_functions.yaml of PyTorch).
 * Operations that only call one of these (linear, matmul, scaled_dot_product_attention) are left
 * out, so that nothing counts twice.
 */
#include "read/trace/product_args.h"

#include <string.h>

struct row {
    const char *name;     /* behind "aten::" */
    unsigned char length; /* of the name */
    unsigned char factor; /* the first factor, or the queries; the next input is the other */
    unsigned char causal; /* of attention */
    bool attention, backward;
};

static const struct row table[] = {
    {"mm", 2, 0, 0, false, false},
    {"bmm", 3, 0, 0, false, false},
    {"addmm", 5, 1, 0, false, false},
    {"baddbmm", 7, 1, 0, false, false},
    {"_scaled_mm", 10, 0, 0, false, false},
    {"_scaled_dot_product_flash_attention", 35, 0, 4, true, false},
    {"_scaled_dot_product_cudnn_attention", 35, 0, 6, true, false},
    {"_scaled_dot_product_efficient_attention", 39, 0, 6, true, false},
    {"_scaled_dot_product_flash_attention_backward", 44, 1, 11, true, true},
    {"_scaled_dot_product_cudnn_attention_backward", 44, 1, 14, true, true},
    {"_scaled_dot_product_efficient_attention_backward", 48, 1, 11, true, true},
};

static const struct row *row_of(struct knee_slice name)
{
    if (name.length < 8 || name.length > 64 || memcmp(name.at, "aten::", 6) != 0 ||
        (name.at[6] != 'm' && name.at[6] != 'a' && name.at[6] != 'b' && name.at[6] != '_'))
        return NULL;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (name.length == 6u + table[i].length &&
            memcmp(name.at + 6, table[i].name, table[i].length) == 0)
            return &table[i];
    return NULL;
}

bool knee_names_product(struct knee_slice name)
{
    return row_of(name) != NULL;
}

/* Lengths beyond this are damage. */
#define LONGEST 1e9
enum { MOST_DIMS = 4 };

struct dims {
    double length[MOST_DIMS];
    size_t count;
};

/* The list `which` of a list of lists: "[[8, 512], [], [512, 64]]". False: it is not there, is
 * nested deeper, or has other things than lengths in it. */
static bool take_dims(struct knee_slice text, size_t which, struct dims *out)
{
    size_t depth = 0, list = 0;
    double number = -1;
    *out = (struct dims){0};
    for (size_t i = 0; i < text.length; i++) {
        char c = text.at[i];
        bool here = depth == 2 && list == which;
        if (c == '[' && ++depth > 2 && list == which)
            return false;
        if (here && c >= '0' && c <= '9') {
            number = (number < 0 ? 0 : 10 * number) + (c - '0');
            if (number > LONGEST)
                return false;
        } else if (here && number >= 0 && (c == ',' || c == ']')) {
            if (out->count == MOST_DIMS || number < 1)
                return false;
            out->length[out->count++] = number;
            number = -1;
        }
        if (c == ']' && depth-- == 2 && list == which)
            return out->count > 0;
        list += c == ',' && depth == 1;
    }
    return false;
}

/* One list of lengths, from its bracket on, without spaces. False: it has other things in it, or
 * there is no room. */
static bool copy_shape(struct knee_slice text, size_t at, char *out, size_t size)
{
    size_t used = 0;
    for (; at < text.length && used < size; at++) {
        char c = text.at[at];
        if (c == ' ')
            continue;
        if (used && c != ',' && c != ']' && (c < '0' || c > '9'))
            return false;
        out[used++] = c;
        if (c == ']')
            return true;
    }
    return false;
}

static size_t shape_length(const char *shape)
{
    size_t length = 1;
    while (shape[length - 1] != ']')
        length++;
    return length;
}

enum { MOST_SHAPES = 3 };

size_t knee_shapes_text(struct knee_slice dims, char *out, size_t size)
{
    static const char more[] = "...";
    size_t used = 0, shapes = 0;
    for (size_t i = 0; i + 1 < dims.length; i++) {
        if (dims.at[i] != '[' || dims.at[i + 1] < '0' || dims.at[i + 1] > '9')
            continue; /* a list of lists, or of nothing: a number or None */
        if (used + 1 + sizeof more > size || shapes == MOST_SHAPES ||
            !copy_shape(dims, i, out + used + 1, size - used - sizeof more)) {
            memcpy(out + used, more, used ? sizeof more - 1 : 0);
            return used ? used + sizeof more - 1 : 0;
        }
        out[used] = shapes++ ? 'x' : ' ';
        used += 1 + shape_length(out + used + 1);
    }
    return used;
}

/* The text `which` of a list of texts: ["", "", "True"]. */
static struct knee_slice take_word(struct knee_slice text, size_t which)
{
    size_t word = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.at[i] != '"')
            continue;
        size_t start = ++i;
        while (i < text.length && text.at[i] != '"')
            i++;
        if (word++ == which)
            return (struct knee_slice){text.at + start, i - start};
    }
    return (struct knee_slice){NULL, 0};
}

static bool is_word(struct knee_slice text, const char *word)
{
    return text.at && text.length == strlen(word) && memcmp(text.at, word, text.length) == 0;
}

static int bytes_of_type(struct knee_slice type)
{
    static const struct {
        const char *name;
        int bytes;
    } types[] = {{"c10::BFloat16", 2}, {"c10::Half", 2}, {"float", 4}, {"double", 8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (is_word(type, types[i].name))
            return types[i].bytes;
    return type.length > 11 && memcmp(type.at, "c10::Float8", 11) == 0 ? 1 : 0;
}

/* (m x k) (k x n), or as many of them as the first of three lengths says. */
static bool take_matrices(const struct dims *a, const struct dims *b, struct knee_product *out)
{
    size_t last = a->count - 1;
    if (a->count != b->count || a->count < 2 || a->count > 3 ||
        a->length[last] != b->length[last - 1] || (a->count == 3 && a->length[0] != b->length[0]))
        return false;
    out->count = a->count == 3 ? a->length[0] : 1;
    out->m = a->length[last - 1];
    out->k = a->length[last];
    out->n = b->length[last];
    return true;
}

/* Queries and keys: examples, heads, positions, values of a head. */
static bool take_attention(const struct dims *q, const struct dims *k, struct knee_product *out)
{
    if (q->count != 4 || k->count != 4 || q->length[3] != k->length[3])
        return false;
    out->count = q->length[0] * q->length[1];
    out->m = q->length[2];
    out->n = k->length[2];
    out->k = q->length[3];
    return true;
}

bool knee_product_from(const struct knee_event *e, struct knee_product *out)
{
    const struct row *row = row_of(e->name);
    struct dims first, second;
    struct knee_product product = {0};
    if (!row || !e->has_args || !take_dims(e->args.dims, row->factor, &first) ||
        !take_dims(e->args.dims, row->factor + 1u, &second))
        return false;
    if (!(row->attention ? take_attention : take_matrices)(&first, &second, &product))
        return false;
    product.attention = row->attention;
    product.backward = row->backward;
    product.causal = row->attention && is_word(take_word(e->args.inputs, row->causal), "True");
    product.element_bytes = bytes_of_type(take_word(e->args.types, row->factor));
    *out = product;
    return true;
}
