/* SPDX-License-Identifier: MIT */
/* Documents as trees: JSON and pickle, what they say, what is refused and where; wrong questions
 * get the answer that was asked for; too little memory. */
#include "base/text.h"
#include "read/value_tree.h"
#include "unit.h"

/* The tree as text again: plain, in order. */
static void write_node(const struct knee_tree *tree, uint32_t at, struct knee_text *out)
{
    const struct knee_tree_node *node = &tree->nodes[at];
    static const char *const words[] = {"null", "false", "true"};
    if (node->kind <= KNEE_TREE_TRUE)
        knee_text_puts(out, words[node->kind]);
    else if (node->kind == KNEE_TREE_NUMBER)
        knee_text_printf(out, "%g%s", node->number, node->is_whole ? "" : "f");
    else if (node->kind == KNEE_TREE_TEXT)
        knee_text_printf(out, "'%.*s'", (int)node->text.length, node->text.at);
    if (node->kind < KNEE_TREE_LIST)
        return;
    knee_text_puts(out, node->kind == KNEE_TREE_LIST ? "[" : "{");
    for (uint32_t child = node->first; child != KNEE_TREE_NONE; child = tree->nodes[child].next) {
        knee_text_puts(out, child == node->first ? "" : " ");
        if (node->kind == KNEE_TREE_MAP) {
            write_node(tree, tree->nodes[child].key, out);
            knee_text_puts(out, ":");
        }
        write_node(tree, child, out);
    }
    knee_text_puts(out, node->kind == KNEE_TREE_LIST ? "]" : "}");
}

struct document {
    const char *bytes;
    size_t length;
    const char *says; /* as write_node() has it, or what is wrong with it */
    bool good;
};
#define GOOD(bytes, says)                                                                          \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, says, true                                                       \
    }
#define BAD(bytes, says)                                                                           \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, says, false                                                      \
    }

static knee_status read_document(const struct document *d, bool pickle, struct knee_tree *tree,
                                 char **copy, struct knee_err *err)
{
    *copy = malloc(d->length ? d->length : 1); /* exactly: a byte too many is seen by ASan */
    memcpy(*copy, d->bytes, d->length);
    return pickle ? knee_tree_pickle(tree, *copy, d->length, "d", err)
                  : knee_tree_json(tree, *copy, d->length, "d", err);
}

static void check(const struct document *documents, size_t count, bool pickle)
{
    for (size_t i = 0; i < count; i++) {
        struct knee_tree tree = {0};
        struct knee_text text = {0};
        struct knee_err err = {0};
        char *copy;
        knee_status status = read_document(&documents[i], pickle, &tree, &copy, &err);
        if (!status)
            write_node(&tree, 0, &text);
        const char *seen = status ? err.what : text.data;
        if (!status != documents[i].good || strcmp(seen, documents[i].says) != 0)
            fail_msg("document %zu, %s: '%s', not '%s'", i, documents[i].bytes, seen,
                     documents[i].says);
        knee_text_release(&text);
        knee_tree_release(&tree);
        free(copy);
    }
}

TEST(json_says)
{
    static const struct document documents[] = {
        GOOD("{\"a\": [1, -2.5, true], \"b\": null}", "{'a':[1 -2.5f true] 'b':null}"),
        GOOD(" \t\r\n[ ] behind it", "[]"),
        GOOD("[NaN, Infinity, -Infinity, false]", "[null null null false]"),
        GOOD("[123456789012345678, 1234567890123456789, -9, 1e3, 1E+2, 1.5e-1]",
             "[1.23457e+17 1.23457e+18 -9 1000f 100f 0.15f]"),
        GOOD("[99999999999999999999]", "[1e+20f]"),
        GOOD("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "'\"\\/\b\f\n\r\t'"),
        GOOD("\"\\u0041\\u00e4\\u20ac\\uD83d\"", "'A\xc3\xa4\xe2\x82\xac?'"),
        GOOD("\"x\\u00E4y\"", "'x\xc3\xa4y'"),
        BAD("", "not JSON at byte 0: it ends early"),
        BAD("[1, 2", "not JSON at byte 5: a comma is missing"),
        BAD("[1 2]", "not JSON at byte 3: a comma is missing"),
        BAD("[1,", "not JSON at byte 3: it ends early"),
        BAD("{\"a\" 1}", "not JSON at byte 5: a colon is missing"),
        BAD("{a: 1}", "not JSON at byte 1: a name is missing"),
        BAD("{\"a\": }", "not JSON at byte 6: something that is not a value"),
        BAD("[1+2]", "not JSON at byte 4: something that is not a value"),
        BAD("[1.5\0]", "not JSON at byte 4: a comma is missing"),
        BAD("[-]", "not JSON at byte 2: something that is not a value"),
        BAD("\"abc", "not JSON at byte 4: it ends inside of a text"),
        BAD("\"a\\", "not JSON at byte 3: an escape that is none"),
        BAD("\"a\\x\"", "not JSON at byte 4: an escape that is none"),
        BAD("\"a\\u12", "not JSON at byte 4: an escape that is none"),
        BAD("\"a\\u12g4\"", "not JSON at byte 4: an escape that is none"),
    };
    check(documents, sizeof documents / sizeof *documents, false);
    char deep[KNEE_TREE_DEPTH + 2];
    memset(deep, '[', sizeof deep);
    struct document d = {deep, sizeof deep, "not JSON at byte 65: nested too deeply", false};
    check(&d, 1, false);
}

static const struct document pickles[] = {
    GOOD("\x80\x02}(X\x01\x00\x00\x00"
         "aK\x05X\x01\x00\x00\x00"
         "bNu.",
         "{'a':5 'b':null}"),
    GOOD("]K\x01"
         "aM\x02\x01"
         "a.",
         "[1 258]"),
    GOOD("}\x8c\x01"
         "a\x88s.",
         "{'a':true}"),
    GOOD("](\x89J\xff\xff\xff\xff\x8a\x01\xfe\x8a\x00"
         "e.",
         "[false -1 -2 0]"),
    GOOD("(K\x01K\x02t.", "[1 2]"),
    GOOD("(t.", "[]"),
    GOOD("K\x01K\x02\x86.", "[1 2]"),
    GOOD("K\x01\x85.", "[1]"),
    GOOD("K\x01K\x02K\x03\x87.", "[1 2 3]"),
    GOOD("G\x3f\xf8\x00\x00\x00\x00\x00\x00.", "1.5f"),
    GOOD("U\x02"
         "ab.",
         "'ab'"),
    GOOD("\x8d\x02\x00\x00\x00\x00\x00\x00\x00"
         "ab.",
         "'ab'"),
    GOOD("\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00](\x8c\x01"
         "a\x94h\x00"
         "e.",
         "['a' 'a']"),
    GOOD("](X\x01\x00\x00\x00"
         "aq\x00j\x00\x00\x00\x00r\x01\x00\x00\x00"
         "e.",
         "['a' 'a']"),
    GOOD(").", "[]"),
    BAD("", "a damaged pickle at byte 0: it ends early"),
    BAD("K", "a damaged pickle at byte 0: it ends early"),
    BAD("U\x05"
        "ab",
        "a damaged pickle at byte 0: it ends inside of a text"),
    BAD(".", "a damaged pickle at byte 0: it holds nothing"),
    BAD("(.", "a damaged pickle at byte 1: it holds nothing"),
    BAD("q\x00", "a damaged pickle at byte 0: it takes from an empty stack"),
    BAD("(q\x00", "a damaged pickle at byte 1: it takes from an empty stack"),
    BAD("Nq\x07", "a damaged pickle at byte 1: it remembers out of turn"),
    BAD("h\x00", "a damaged pickle at byte 0: it recalls what was not remembered"),
    BAD("Nu", "a damaged pickle at byte 1: a mark is missing"),
    BAD("Nt", "a damaged pickle at byte 1: a mark is missing"),
    BAD("(Ne", "a damaged pickle at byte 2: it adds to something that is not a container"),
    BAD("((Ne", "a damaged pickle at byte 3: it adds to something that is not a container"),
    BAD("N(Ne", "a damaged pickle at byte 3: it adds to something that is not a container"),
    BAD("}(Nu", "a damaged pickle at byte 3: it adds to something that is not a container"),
    BAD("NNa", "a damaged pickle at byte 2: it adds to something that is not a container"),
    BAD("Na", "a damaged pickle at byte 1: it takes from an empty stack"),
    BAD("}Ns", "a damaged pickle at byte 2: it takes from an empty stack"),
    BAD("](a", "a damaged pickle at byte 2: a mark is too much"),
    BAD("}(Ns", "a damaged pickle at byte 3: a mark is too much"),
    BAD("}N(s", "a damaged pickle at byte 3: a mark is too much"),
    BAD("(\x85", "a damaged pickle at byte 1: a mark is too much"),
    BAD("\x85", "a damaged pickle at byte 0: it takes from an empty stack"),
    BAD("\x8a\x09", "a damaged pickle at byte 0: a number of more than 8 bytes"),
    BAD("R", "a pickle with opcode 0x52 at byte 0, which would run code: not read"),
    BAD("z", "a pickle with opcode 0x7a at byte 0, which dumps do not have"),
    BAD("\0", "a pickle with opcode 0x00 at byte 0, which dumps do not have"),
};

TEST(pickles_say)
{
    check(pickles, sizeof pickles / sizeof *pickles, true);
}

/* Deep stacks and long memos, on which memory runs out everywhere in turn. */
TEST(no_memory_is_said)
{
    struct document d = {NULL, 0, "", true};
    OWNED(knee_text) pickle = {0}, json = {0};
    knee_text_puts(&pickle, "](");
    for (int i = 0; i < 600; i++)
        knee_text_puts(&pickle, "N\x94(tK\x01\x85");
    knee_text_puts(&pickle, "e.");
    knee_text_puts(&json, "[");
    for (int i = 0; i < 300; i++)
        knee_text_puts(&json, i ? ", {\"a\": 1}" : "\"text\"");
    knee_text_puts(&json, "]");
    for (int form = 0; form < 2; form++) {
        d.bytes = form ? pickle.data : json.data;
        d.length = form ? pickle.length : json.length;
        FOR_EACH_FAILURE(memory) {
            struct knee_tree tree = {.alloc = &memory.alloc};
            struct knee_err err = {0};
            char *copy;
            knee_status status = read_document(&d, form, &tree, &copy, &err);
            bool enough = !failing_met(&memory);
            assert_int_equal(status, enough ? KNEE_OK : KNEE_SYSTEM);
            knee_tree_release(&tree);
            free(copy);
        }
    }
}

TEST(wrong_questions_are_answered)
{
    char json[] = "{\"list\": [7], \"text\": \"12.5\", \"word\": \"x\", \"real\": 2.75, \"yes\": "
                  "true, \"big\": 1e30}";
    OWNED(knee_tree) tree = {0};
    struct knee_err err;
    assert_ok(knee_tree_json(&tree, json, strlen(json), "d", &err));
    uint32_t list = knee_tree_get(&tree, 0, "list"), text = knee_tree_get(&tree, 0, "text");
    uint32_t word = knee_tree_get(&tree, 0, "word"), real = knee_tree_get(&tree, 0, "real");
    assert_int_equal(knee_tree_get(&tree, 0, "nothing"), KNEE_TREE_NONE);
    assert_int_equal(knee_tree_get(&tree, list, "list"), KNEE_TREE_NONE);
    assert_int_equal(knee_tree_get(&tree, KNEE_TREE_NONE, "list"), KNEE_TREE_NONE);
    assert_int_equal(knee_tree_first(&tree, text), KNEE_TREE_NONE);
    assert_int_equal(knee_tree_first(&tree, KNEE_TREE_NONE), KNEE_TREE_NONE);
    assert_int_equal(knee_tree_next(&tree, KNEE_TREE_NONE), KNEE_TREE_NONE);
    assert_int_equal(knee_tree_next(&tree, list), text);
    assert_true(knee_tree_number(&tree, text, -1) == 12.5);
    assert_true(knee_tree_number(&tree, word, -1) == -1);
    assert_true(knee_tree_number(&tree, list, -1) == -1);
    assert_int_equal(knee_tree_whole(&tree, knee_tree_first(&tree, list), -1), 7);
    assert_int_equal(knee_tree_whole(&tree, real, -1), 2);
    assert_int_equal(knee_tree_whole(&tree, knee_tree_get(&tree, 0, "big"), -1), -1);
    assert_int_equal(knee_tree_whole(&tree, list, -1), -1);
    assert_int_equal(knee_tree_text(&tree, list).length, 0);
    assert_true(knee_tree_true(&tree, knee_tree_get(&tree, 0, "yes")));
    assert_false(knee_tree_true(&tree, list));
}
