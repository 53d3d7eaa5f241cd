/* SPDX-License-Identifier: MIT */
/*
 * The plain part of Python's pickle: what builds dictionaries, lists, tuples, texts and numbers.
 * An opcode that would import, call or build anything else is refused by name; nothing is run. The
 * machine has a stack of nodes, marks on it, and a memo. A container that is fetched from the memo
 * comes as a copy of what it held then, so that no cycle can be made.
 */
#include "base/list.h"
#include "base/text.h"
#include "read/value_tree.h"

#include <string.h>

enum { MARK = -1 };

/* What a file may make of its bytes. */
enum { FREE_NODES = 65536, VISITS_A_BYTE = 8 };

struct machine {
    struct knee_tree *tree;
    const unsigned char *p, *end;
    int64_t *stack; /* rows, or MARK */
    size_t depth, stack_capacity;
    uint32_t *memo;
    size_t memo_count, memo_capacity;
    size_t nodes_left; /* limits memory: one or two bytes make a node of 32, and no dump consists of
                          nothing else */
    uint64_t visits_left; /* nodes below recalled values: a reader of the tree walks them again */
    const char *trouble;
    bool no_memory, stopped;
};

static void bad(struct machine *m, const char *trouble)
{
    if (!m->trouble)
        m->trouble = trouble;
}

static bool broken(const struct machine *m)
{
    return m->trouble || m->no_memory;
}

/* ---- Bytes ---- */

/* `count` bytes, the lowest first. */
static uint64_t low_first(struct machine *m, size_t count)
{
    uint64_t value = 0;
    if ((size_t)(m->end - m->p) < count) {
        bad(m, "it ends early");
        m->p = m->end;
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        value |= (uint64_t)m->p[i] << (8 * i);
    m->p += count;
    return value;
}

static struct knee_slice bytes(struct machine *m, uint64_t count)
{
    struct knee_slice slice = {(const char *)m->p, 0};
    if ((uint64_t)(m->end - m->p) < count) {
        bad(m, "it ends inside of a text");
        return slice;
    }
    slice.length = (size_t)count;
    m->p += count;
    return slice;
}

/* ---- Stack and memo ---- */

static bool grow(struct machine *m, void *array, size_t *capacity, size_t wanted, size_t size)
{
    if (knee_room(m->tree->alloc, array, capacity, wanted, size))
        return true;
    m->no_memory = true;
    return false;
}

static void push(struct machine *m, int64_t row)
{
    if (grow(m, &m->stack, &m->stack_capacity, m->depth + 1, sizeof *m->stack))
        m->stack[m->depth++] = row;
}

static void push_node(struct machine *m, struct knee_tree_node node)
{
    if (m->nodes_left == 0)
        bad(m, "too many values for its size");
    m->nodes_left -= m->nodes_left > 0;
    uint32_t row = broken(m) ? KNEE_TREE_NONE : knee_tree_add(m->tree, node);
    if (row == KNEE_TREE_NONE)
        m->no_memory = !m->trouble;
    else
        push(m, row);
}

static void push_container(struct machine *m, enum knee_tree_kind kind)
{
    push_node(
        m, (struct knee_tree_node){.kind = kind, .first = KNEE_TREE_NONE, .last = KNEE_TREE_NONE});
}

static void push_whole(struct machine *m, int64_t whole)
{
    push_node(m, (struct knee_tree_node){.kind = KNEE_TREE_NUMBER,
                                         .is_whole = true,
                                         .whole = whole,
                                         .number = (double)whole});
}

static void push_text(struct machine *m, struct knee_slice text)
{
    push_node(m, (struct knee_tree_node){.kind = KNEE_TREE_TEXT, .text = text});
}

/* The node on top stays; KNEE_TREE_NONE: there is none. */
static uint32_t top(struct machine *m)
{
    if (m->depth == 0 || m->stack[m->depth - 1] == MARK) {
        bad(m, "it takes from an empty stack");
        return KNEE_TREE_NONE;
    }
    return (uint32_t)m->stack[m->depth - 1];
}

/* Memos are numbered as they are made, by every writer: a gap is damage. */
static void remember(struct machine *m, uint64_t at)
{
    uint32_t row = top(m);
    if (row == KNEE_TREE_NONE || at > m->memo_count) {
        bad(m, "it remembers out of turn");
        return;
    }
    if (grow(m, &m->memo, &m->memo_capacity, m->memo_count + 1, sizeof *m->memo)) {
        m->memo[at] = row;
        m->memo_count += at == m->memo_count;
    }
}

static void recall(struct machine *m, uint64_t at)
{
    if (at >= m->memo_count) {
        bad(m, "it recalls what was not remembered");
        return;
    }
    const struct knee_tree_node *node = &m->tree->nodes[m->memo[at]];
    uint64_t below = node->kind == KNEE_TREE_LIST || node->kind == KNEE_TREE_MAP ? node->below : 0;
    if (below > m->visits_left) {
        bad(m, "it repeats what it holds too often");
        return;
    }
    m->visits_left -= below;
    push_node(m, *node);
}

/* ---- Containers ---- */

/* Where what stands above the last mark begins; the mark goes. */
static size_t to_mark(struct machine *m)
{
    size_t at = m->depth;
    while (at > 0 && m->stack[at - 1] != MARK)
        at--;
    if (at == 0)
        bad(m, "a mark is missing");
    return at;
}

/* The items of the stack from `from` on become children of the container under them. What is part
 * of something has left the stack, and comes back from the memo as a copy: no item has siblings. */
static void extend(struct machine *m, size_t from, size_t below, enum knee_tree_kind kind)
{
    size_t stride = kind == KNEE_TREE_MAP ? 2 : 1;
    if (below == 0 || m->stack[below - 1] == MARK ||
        m->tree->nodes[m->stack[below - 1]].kind != kind || (m->depth - from) % stride) {
        bad(m, "it adds to something that is not a container");
        return;
    }
    uint32_t above = (uint32_t)m->stack[below - 1];
    for (size_t i = from; i < m->depth; i += stride) {
        if (m->stack[i] == MARK || m->stack[i + stride - 1] == MARK) {
            bad(m, "a mark is too much");
            return;
        }
        knee_tree_append(m->tree, above, (uint32_t)m->stack[i + stride - 1],
                         stride == 2 ? (uint32_t)m->stack[i] : KNEE_TREE_NONE);
    }
    m->depth = below;
}

/* The last `count` items, or all above the mark (which is at count - 1 then), as a list. */
static void tuple(struct machine *m, size_t from, size_t below)
{
    uint32_t row = knee_tree_add(m->tree, (struct knee_tree_node){.kind = KNEE_TREE_LIST,
                                                                  .first = KNEE_TREE_NONE,
                                                                  .last = KNEE_TREE_NONE});
    m->no_memory = row == KNEE_TREE_NONE;
    for (size_t i = from; i < m->depth && !broken(m); i++) {
        if (m->stack[i] == MARK)
            bad(m, "a mark is too much");
        else
            knee_tree_append(m->tree, row, (uint32_t)m->stack[i], KNEE_TREE_NONE);
    }
    m->depth = below;
    if (!broken(m))
        push(m, row);
}

static void tuple_of(struct machine *m, size_t count)
{
    if (m->depth < count)
        bad(m, "it takes from an empty stack");
    else
        tuple(m, m->depth - count, m->depth - count);
}

/* ---- Opcodes ---- */

/* Two's complement, lowest byte first. No number of a dump is longer than 8 bytes. */
static void long_number(struct machine *m, uint64_t count)
{
    if (count > 8) {
        bad(m, "a number of more than 8 bytes");
        return;
    }
    uint64_t value = low_first(m, (size_t)count);
    if (count > 0 && count < 8 && value >> (8 * count - 1) & 1)
        value |= UINT64_MAX << (8 * count);
    push_whole(m, (int64_t)value);
}

/* A double, highest byte first. */
static void real(struct machine *m)
{
    uint64_t swapped = low_first(m, 8), bits = 0;
    double value;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | (swapped >> (8 * i) & 0xff);
    memcpy(&value, &bits, sizeof value);
    push_node(m, (struct knee_tree_node){.kind = KNEE_TREE_NUMBER, .number = value});
}

static void between_marks(struct machine *m, enum knee_tree_kind kind)
{
    size_t from = to_mark(m);
    if (!broken(m))
        extend(m, from, from - 1, kind);
}

static void one_item(struct machine *m, enum knee_tree_kind kind)
{
    size_t items = kind == KNEE_TREE_MAP ? 2 : 1;
    if (m->depth < items + 1)
        bad(m, "it takes from an empty stack");
    else
        extend(m, m->depth - items, m->depth - items, kind);
}

static void tuple_to_mark(struct machine *m)
{
    size_t from = to_mark(m);
    if (!broken(m))
        tuple(m, from, from - 1);
}

/* False: not one of those that build containers. */
static bool build(struct machine *m, unsigned op)
{
    switch (op) {
    case '}': push_container(m, KNEE_TREE_MAP); return true;
    case ']':
    case ')': push_container(m, KNEE_TREE_LIST); return true;
    case '(': push(m, MARK); return true;
    case 'u': between_marks(m, KNEE_TREE_MAP); return true;
    case 'e': between_marks(m, KNEE_TREE_LIST); return true;
    case 's': one_item(m, KNEE_TREE_MAP); return true;
    case 'a': one_item(m, KNEE_TREE_LIST); return true;
    case 't': tuple_to_mark(m); return true;
    case 0x85:
    case 0x86:
    case 0x87: tuple_of(m, op - 0x84); return true;
    default: return false;
    }
}

/* False: not one of those that say a value. */
static bool say(struct machine *m, unsigned op)
{
    switch (op) {
    case 'N': push_node(m, (struct knee_tree_node){.kind = KNEE_TREE_NULL}); return true;
    case 0x88: push_node(m, (struct knee_tree_node){.kind = KNEE_TREE_TRUE}); return true;
    case 0x89: push_node(m, (struct knee_tree_node){.kind = KNEE_TREE_FALSE}); return true;
    case 'J': push_whole(m, (int32_t)(uint32_t)low_first(m, 4)); return true;
    case 'K': push_whole(m, (int64_t)low_first(m, 1)); return true;
    case 'M': push_whole(m, (int64_t)low_first(m, 2)); return true;
    case 0x8a: long_number(m, low_first(m, 1)); return true;
    case 'G': real(m); return true;
    case 'X':
    case 'B': push_text(m, bytes(m, low_first(m, 4))); return true;
    case 0x8c:
    case 'C':
    case 'U': push_text(m, bytes(m, low_first(m, 1))); return true;
    case 0x8d: push_text(m, bytes(m, low_first(m, 8))); return true;
    default: return false;
    }
}

/* Opcodes of the memo and of framing, and STOP; false for any other opcode. */
static bool keep(struct machine *m, unsigned op)
{
    switch (op) {
    case 0x80: low_first(m, 1); return true;
    case 0x95: low_first(m, 8); return true;
    case 'q': remember(m, low_first(m, 1)); return true;
    case 'r': remember(m, low_first(m, 4)); return true;
    case 0x94: remember(m, m->memo_count); return true;
    case 'h': recall(m, low_first(m, 1)); return true;
    case 'j': recall(m, low_first(m, 4)); return true;
    case '.': m->stopped = true; return true;
    default: return false;
    }
}

static knee_status refuse(const struct machine *m, size_t at, unsigned op, const char *name,
                          struct knee_err *err)
{
    static const char calls[] = "cioRbQP\x81\x82\x83\x84\x92\x93";
    if (m->no_memory)
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory");
    if (m->trouble)
        return knee_fail(err, KNEE_INPUT, name, "a damaged pickle at byte %zu: %s", at, m->trouble);
    bool runs = op && memchr(calls, (int)op, sizeof calls - 1);
    knee_fail(err, KNEE_INPUT, name, "a pickle with opcode 0x%02x at byte %zu%s", op, at,
              runs ? ", which would run code: not read" : ", which dumps do not have");
    knee_hint(err,
              "a Flight Recorder dump holds plain values only; write it as JSON with json.dump");
    return KNEE_INPUT;
}

knee_status knee_tree_pickle(struct knee_tree *tree, const void *data, size_t length,
                             const char *name, struct knee_err *err)
{
    const unsigned char *start = data;
    struct machine m = {.tree = tree,
                        .p = start,
                        .end = start + length,
                        .nodes_left = length / 2 + FREE_NODES,
                        .visits_left = (uint64_t)VISITS_A_BYTE * length + FREE_NODES};
    size_t at = 0;
    unsigned op = 0;
    bool known = true;
    tree->count = 0;
    push_node(&m, (struct knee_tree_node){.kind = KNEE_TREE_NULL}); /* becomes the document */
    m.depth = 0;
    while (known && !broken(&m) && !m.stopped) {
        at = (size_t)(m.p - start);
        op = (unsigned)low_first(&m, 1);
        if (!broken(&m))
            known = build(&m, op) || say(&m, op) || keep(&m, op);
    }
    knee_status status = KNEE_OK;
    if (m.stopped && m.depth && m.stack[m.depth - 1] != MARK)
        tree->nodes[0] = tree->nodes[m.stack[m.depth - 1]];
    else if (m.stopped)
        bad(&m, "it holds nothing");
    if (!known || broken(&m))
        status = refuse(&m, at, op, name, err);
    knee_resize(tree->alloc, m.stack, 0);
    knee_resize(tree->alloc, m.memo, 0);
    return status;
}
