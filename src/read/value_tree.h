/* SPDX-License-Identifier: MIT */
/*
 * A document as a tree of values, for formats that cannot be taken value by value: JSON, and the
 * plain part of Python's pickle (dictionaries, lists, tuples, texts, numbers). Texts stay in the
 * bytes they came from; depth, and with it nesting, is capped. Nothing in a pickle is ever run: an
 * opcode that would call something is refused.
 */
#ifndef KNEE_READ_VALUE_TREE_H
#define KNEE_READ_VALUE_TREE_H

#include "base/slice.h"
#include "knee.h"

#define KNEE_TREE_DEPTH 64
#define KNEE_TREE_NONE  UINT32_MAX

enum knee_tree_kind {
    KNEE_TREE_NULL,
    KNEE_TREE_FALSE,
    KNEE_TREE_TRUE,
    KNEE_TREE_NUMBER,
    KNEE_TREE_TEXT,
    KNEE_TREE_LIST,
    KNEE_TREE_MAP,
};

struct knee_tree_node {
    enum knee_tree_kind kind;
    bool is_whole; /* `whole` holds the number exactly */
    uint32_t next; /* sibling; KNEE_TREE_NONE: none */
    uint32_t key;  /* of a map's child: the node of its key */
    union {        /* by kind */
        struct {
            uint32_t first, last; /* children of lists and maps */
            uint32_t below;       /* of a pickle: nodes below it, whichever way they got there */
        };
        struct {
            int64_t whole;
            double number;
        };
        struct knee_slice text;
    };
};

/* Node 0 is the document. Zeroed is empty; free with knee_tree_release(). */
struct knee_tree {
    struct knee_tree_node *nodes;
    size_t count, capacity;
    const struct knee_alloc *alloc;
};

/* Puts the JSON value that `json` begins with in place of what the tree held; what follows it is
 * not looked at. Escapes are resolved in place: the bytes change, and must outlive the tree.
 * KNEE_INPUT: not JSON. */
knee_status knee_tree_json(struct knee_tree *tree, char *json, size_t length, const char *name,
                           struct knee_err *err);

/* The same for a pickle. */
knee_status knee_tree_pickle(struct knee_tree *tree, const void *bytes, size_t length,
                             const char *name, struct knee_err *err);

void knee_tree_release(struct knee_tree *tree);

/* A new node, KNEE_TREE_NONE when memory ran out; and a child put at the end of a list, or of a map
 * under a key. */
uint32_t knee_tree_add(struct knee_tree *tree, struct knee_tree_node node);
void knee_tree_append(struct knee_tree *tree, uint32_t parent, uint32_t child, uint32_t key);

/* The member of a map; KNEE_TREE_NONE when there is none, or `map` is not one. */
uint32_t knee_tree_get(const struct knee_tree *tree, uint32_t map, const char *key);
uint32_t knee_tree_first(const struct knee_tree *tree, uint32_t node);
uint32_t knee_tree_next(const struct knee_tree *tree, uint32_t node);

/* What a node says, else `otherwise`; numbers may stand in quotes. */
int64_t knee_tree_whole(const struct knee_tree *tree, uint32_t node, int64_t otherwise);
double knee_tree_number(const struct knee_tree *tree, uint32_t node, double otherwise);
struct knee_slice knee_tree_text(const struct knee_tree *tree, uint32_t node);
bool knee_tree_true(const struct knee_tree *tree, uint32_t node);

#endif
