/* SPDX-License-Identifier: MIT */
/*
 * Which lines of a large log are worth reading? All of them are searched for some forty words at
 * once (Wu and Manber, 1994): two bytes at the end of a window of SHORTEST bytes say how far the
 * window may move without missing a word. Most of a log is passed in steps of four bytes.
 */
#include "base/text.h"
#include "read/hang/job_record.h"

#include <string.h>

enum { SHORTEST = 5, BLOCK = 2, BLOCKS = 1 << 16, WORDS = 96 };

struct knee_line_finder {
    unsigned char step[BLOCKS];  /* how far the window may move; 0: look at the words */
    unsigned char first[BLOCKS]; /* a word whose window ends in this block, + 1; 0: none */
    unsigned char next[WORDS];   /* the next word with the same block, + 1 */
    const char *words[WORDS];
    uint32_t heads[WORDS]; /* their first four bytes */
    size_t lengths[WORDS];
};

/* Two bytes as a number, the same one wherever they stand; and four. */
static size_t block_at(const char *at)
{
    uint16_t block;
    memcpy(&block, at, sizeof block);
    return block;
}

static uint32_t head_at(const char *at)
{
    uint32_t head;
    memcpy(&head, at, sizeof head);
    return head;
}

struct knee_line_finder *knee_line_finder_new(const char *const *words, size_t count,
                                              const struct knee_alloc *alloc)
{
    struct knee_line_finder *f = knee_zeroed(alloc, sizeof *f);
    if (!f)
        return NULL;
    memset(f->step, SHORTEST - BLOCK + 1, sizeof f->step);
    for (size_t w = 0; w < count && w < WORDS; w++) {
        f->words[w] = words[w];
        f->heads[w] = head_at(words[w]);
        f->lengths[w] = strlen(words[w]);
        for (size_t i = 0; i + BLOCK <= SHORTEST; i++) {
            size_t block = block_at(words[w] + i);
            unsigned char step = (unsigned char)(SHORTEST - BLOCK - i);
            f->step[block] = step < f->step[block] ? step : f->step[block];
        }
        size_t last = block_at(words[w] + SHORTEST - BLOCK);
        f->next[w] = f->first[last];
        f->first[last] = (unsigned char)(w + 1);
    }
    return f;
}

static bool word_at(const struct knee_line_finder *f, const char *at, const char *end)
{
    uint32_t head = head_at(at);
    for (size_t w = f->first[block_at(at + SHORTEST - BLOCK)]; w; w = f->next[w - 1])
        if (f->heads[w - 1] == head && f->lengths[w - 1] <= (size_t)(end - at) &&
            memcmp(at, f->words[w - 1], f->lengths[w - 1]) == 0)
            return true;
    return false;
}

size_t knee_line_find(const struct knee_line_finder *f, struct knee_slice text, size_t from)
{
    const char *end = text.at + text.length, *at = text.at + from;
    while (end - at >= SHORTEST) {
        size_t step = f->step[block_at(at + SHORTEST - BLOCK)];
        if (step == 0) {
            if (word_at(f, at, end))
                return (size_t)(at - text.at);
            step = 1;
        }
        at += step;
    }
    return text.length;
}
