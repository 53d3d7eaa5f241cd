/* SPDX-License-Identifier: MIT */
/* The tree of values, and JSON into it. Open containers stand on a stack, nothing recurses. */
#include "read/value_tree.h"

#include "base/decimal.h"
#include "base/fold.h"
#include "base/list.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

/* ---- The tree ---- */

uint32_t knee_tree_add(struct knee_tree *tree, struct knee_tree_node node)
{
    if (tree->count + 1 >= KNEE_TREE_NONE ||
        !knee_room(tree->alloc, &tree->nodes, &tree->capacity, tree->count + 1, sizeof node))
        return KNEE_TREE_NONE;
    node.next = KNEE_TREE_NONE;
    tree->nodes[tree->count] = node;
    return (uint32_t)tree->count++;
}

static uint32_t below(const struct knee_tree_node *node)
{
    return node->kind == KNEE_TREE_LIST || node->kind == KNEE_TREE_MAP ? node->below : 0;
}

static uint32_t sum(uint32_t a, uint32_t b)
{
    return a > UINT32_MAX / 2 - b ? UINT32_MAX / 2 : a + b;
}

void knee_tree_append(struct knee_tree *tree, uint32_t parent, uint32_t child, uint32_t key)
{
    struct knee_tree_node *above = &tree->nodes[parent];
    tree->nodes[child].key = key;
    if (above->first == KNEE_TREE_NONE)
        above->first = child;
    else
        tree->nodes[above->last].next = child;
    above->last = child;
    above->below = sum(above->below, 1 + below(&tree->nodes[child]));
}

void knee_tree_release(struct knee_tree *tree)
{
    knee_resize(tree->alloc, tree->nodes, 0);
    tree->nodes = NULL;
    tree->count = tree->capacity = 0;
}

static bool holds(const struct knee_tree *tree, uint32_t node, enum knee_tree_kind kind)
{
    return node < tree->count && tree->nodes[node].kind == kind;
}

uint32_t knee_tree_first(const struct knee_tree *tree, uint32_t node)
{
    bool container = holds(tree, node, KNEE_TREE_LIST) || holds(tree, node, KNEE_TREE_MAP);
    return container ? tree->nodes[node].first : KNEE_TREE_NONE;
}

uint32_t knee_tree_next(const struct knee_tree *tree, uint32_t node)
{
    return node < tree->count ? tree->nodes[node].next : KNEE_TREE_NONE;
}

uint32_t knee_tree_get(const struct knee_tree *tree, uint32_t map, const char *key)
{
    uint32_t at = holds(tree, map, KNEE_TREE_MAP) ? tree->nodes[map].first : KNEE_TREE_NONE;
    size_t length = strlen(key);
    for (; at != KNEE_TREE_NONE; at = tree->nodes[at].next) {
        struct knee_slice name = knee_tree_text(tree, tree->nodes[at].key);
        if (name.length == length && memcmp(name.at, key, length) == 0)
            break;
    }
    return at;
}

double knee_tree_number(const struct knee_tree *tree, uint32_t node, double otherwise)
{
    double number = otherwise;
    if (holds(tree, node, KNEE_TREE_NUMBER))
        return tree->nodes[node].number;
    if (holds(tree, node, KNEE_TREE_TEXT) && knee_slice_number(tree->nodes[node].text, &number))
        return number;
    return otherwise;
}

int64_t knee_tree_whole(const struct knee_tree *tree, uint32_t node, int64_t otherwise)
{
    if (holds(tree, node, KNEE_TREE_NUMBER) && tree->nodes[node].is_whole)
        return tree->nodes[node].whole;
    double number = knee_tree_number(tree, node, NAN);
    return fabs(number) < 9e18 ? (int64_t)number : otherwise;
}

struct knee_slice knee_tree_text(const struct knee_tree *tree, uint32_t node)
{
    return holds(tree, node, KNEE_TREE_TEXT) ? tree->nodes[node].text : (struct knee_slice){"", 0};
}

bool knee_tree_true(const struct knee_tree *tree, uint32_t node)
{
    return holds(tree, node, KNEE_TREE_TRUE);
}

/* ---- JSON ---- */

struct json {
    struct knee_tree *tree;
    char *start, *p, *end;
    const char *trouble;
    bool no_memory;
};

static void skip_space(struct json *j)
{
    while (j->p < j->end && (*j->p == ' ' || *j->p == '\n' || *j->p == '\t' || *j->p == '\r'))
        j->p++;
}

static uint32_t add(struct json *j, struct knee_tree_node node)
{
    uint32_t row = knee_tree_add(j->tree, node);
    j->no_memory |= row == KNEE_TREE_NONE;
    return row;
}

static uint32_t bad(struct json *j, const char *trouble)
{
    if (!j->trouble)
        j->trouble = trouble;
    return KNEE_TREE_NONE;
}

/* Four digits at p; -1: there are none. */
static int hex4(const char *p, const char *end)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        char c = p + i < end ? knee_lower(p[i]) : 'x';
        if (!knee_is_digit(c) && (c < 'a' || c > 'f'))
            return -1;
        value = value * 16 + (knee_is_digit(c) ? c - '0' : c - 'a' + 10);
    }
    return value;
}

/* A character as UTF-8, which is never longer than its escape; halves of pairs become '?'. */
static char *put_character(char *to, int code)
{
    if (code >= 0xd800 && code < 0xe000)
        code = '?';
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 63));
    } else {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 63));
        *to++ = (char)(0x80 | (code & 63));
    }
    return to;
}

/* What follows a backslash; NULL: no escape. */
static char *escape(struct json *j, char *to)
{
    static const char from[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char c = j->p < j->end ? *j->p++ : '\0';
    const char *found = c ? strchr(from, c) : NULL;
    if (found) {
        *to = meant[found - from];
        return to + 1;
    }
    int code = c == 'u' ? hex4(j->p, j->end) : -1;
    if (code < 0)
        return NULL;
    j->p += 4;
    return put_character(to, code);
}

/* From after the quote to after the closing one. Most texts have no escape: nothing moves. */
static uint32_t text(struct json *j)
{
    char *from = j->p, *to = j->p;
    while (to < j->end && *to != '"' && *to != '\\')
        to++;
    j->p = to;
    while (j->p < j->end && *j->p != '"') {
        if (*j->p == '\\') {
            j->p++;
            to = escape(j, to);
            if (!to)
                return bad(j, "an escape that is none");
        } else {
            *to++ = *j->p++;
        }
    }
    if (j->p == j->end)
        return bad(j, "it ends inside of a text");
    j->p++;
    return add(
        j, (struct knee_tree_node){.kind = KNEE_TREE_TEXT, .text = {from, (size_t)(to - from)}});
}

/* Anything but a short whole number. */
static uint32_t long_number(struct json *j)
{
    char digits[40];
    size_t used = 0;
    bool whole = true;
    int64_t value = 0;
    while (j->p < j->end && used + 1 < sizeof digits &&
           (knee_is_digit(*j->p) || (*j->p && strchr("+-.eE", *j->p))))
        digits[used++] = *j->p++;
    digits[used] = '\0';
    for (size_t i = digits[0] == '-'; i < used; i++) {
        whole = whole && knee_is_digit(digits[i]) && value <= (INT64_MAX - 9) / 10;
        value = whole ? value * 10 + (digits[i] - '0') : 0;
    }
    whole = whole && used > (digits[0] == '-');
    value = digits[0] == '-' ? -value : value;
    const char *end = digits + used;
    double read = whole ? (double)value : knee_decimal_parse(digits, &end);
    if (end == digits || *end)
        return bad(j, "something that is not a value");
    return add(j, (struct knee_tree_node){
                      .kind = KNEE_TREE_NUMBER, .number = read, .is_whole = whole, .whole = value});
}

static uint32_t number(struct json *j)
{
    bool negative = *j->p == '-';
    const char *from = j->p + negative, *at = from;
    int64_t value = 0;
    for (; at < j->end && at - from < 18 && knee_is_digit(*at); at++)
        value = value * 10 + (*at - '0');
    bool more = at < j->end && (knee_is_digit(*at) || *at == '.' || *at == 'e' || *at == 'E' ||
                                *at == '+' || *at == '-');
    if (at == from || more)
        return long_number(j);
    j->p += at - j->p;
    value = negative ? -value : value;
    return add(j, (struct knee_tree_node){.kind = KNEE_TREE_NUMBER,
                                          .number = (double)value,
                                          .is_whole = true,
                                          .whole = value});
}

/* true, false, null, and what Python writes for numbers that are none. */
static uint32_t word(struct json *j)
{
    static const struct {
        const char *spelt;
        enum knee_tree_kind kind;
    } words[] = {{"true", KNEE_TREE_TRUE},     {"false", KNEE_TREE_FALSE},
                 {"null", KNEE_TREE_NULL},     {"NaN", KNEE_TREE_NULL},
                 {"Infinity", KNEE_TREE_NULL}, {"-Infinity", KNEE_TREE_NULL}};
    if (knee_is_digit(*j->p))
        return number(j);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i].spelt);
        if ((size_t)(j->end - j->p) >= length && memcmp(j->p, words[i].spelt, length) == 0) {
            j->p += length;
            return add(j, (struct knee_tree_node){.kind = words[i].kind});
        }
    }
    return number(j);
}

static uint32_t value(struct json *j)
{
    if (j->p == j->end)
        return bad(j, "it ends early");
    if (*j->p == '"') {
        j->p++;
        return text(j);
    }
    if (*j->p != '{' && *j->p != '[')
        return word(j);
    enum knee_tree_kind kind = *j->p++ == '{' ? KNEE_TREE_MAP : KNEE_TREE_LIST;
    return add(
        j, (struct knee_tree_node){.kind = kind, .first = KNEE_TREE_NONE, .last = KNEE_TREE_NONE});
}

static bool take(struct json *j, char c)
{
    skip_space(j);
    if (j->p == j->end || *j->p != c)
        return false;
    j->p++;
    return true;
}

/* The next child of the container on top, or its end. */
static uint32_t child(struct json *j, uint32_t above, bool *closed)
{
    bool map = j->tree->nodes[above].kind == KNEE_TREE_MAP;
    bool begun = j->tree->nodes[above].first != KNEE_TREE_NONE;
    uint32_t key = KNEE_TREE_NONE;
    *closed = take(j, map ? '}' : ']');
    if (*closed)
        return KNEE_TREE_NONE;
    if (begun && !take(j, ','))
        return bad(j, "a comma is missing");
    if (map) {
        key = take(j, '"') ? text(j) : bad(j, "a name is missing");
        if (key == KNEE_TREE_NONE || !take(j, ':'))
            return bad(j, "a colon is missing");
    }
    skip_space(j);
    uint32_t row = value(j);
    if (row != KNEE_TREE_NONE)
        knee_tree_append(j->tree, above, row, key);
    return row;
}

static void document(struct json *j)
{
    uint32_t open[KNEE_TREE_DEPTH], row;
    size_t depth = 0;
    skip_space(j);
    row = value(j);
    for (bool closed = false; !j->trouble && !j->no_memory;) {
        enum knee_tree_kind kind = closed ? KNEE_TREE_NULL : j->tree->nodes[row].kind;
        if (kind == KNEE_TREE_LIST || kind == KNEE_TREE_MAP) {
            if (depth == KNEE_TREE_DEPTH) {
                bad(j, "nested too deeply");
                return;
            }
            open[depth++] = row;
        }
        if (depth == 0)
            return;
        row = child(j, open[depth - 1], &closed);
        depth -= closed;
    }
}

knee_status knee_tree_json(struct knee_tree *tree, char *json, size_t length, const char *name,
                           struct knee_err *err)
{
    struct json j = {.tree = tree, .start = json, .p = json, .end = json + length};
    tree->count = 0;
    document(&j);
    if (j.no_memory)
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory");
    if (j.trouble)
        return knee_fail(err, KNEE_INPUT, name, "not JSON at byte %zu: %s", (size_t)(j.p - j.start),
                         j.trouble);
    return KNEE_OK;
}
