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
    size_t lengths[WORDS];
};

static size_t block_at(const char *at)
{
    return (size_t)(unsigned char)at[0] << 8 | (unsigned char)at[1];
}

struct knee_line_finder *knee_line_finder_new(const char *const *words, size_t count,
                                              const struct knee_alloc *alloc)
{
    struct knee_line_finder *f = knee_resize(alloc, NULL, sizeof *f);
    if (!f)
        return NULL;
    memset(f, 0, sizeof *f);
    memset(f->step, SHORTEST - BLOCK + 1, sizeof f->step);
    for (size_t w = 0; w < count && w < WORDS; w++) {
        f->words[w] = words[w];
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

static bool word_at(const struct knee_line_finder *f, struct knee_slice text, size_t at)
{
    size_t block = block_at(text.at + at + SHORTEST - BLOCK);
    for (size_t w = f->first[block]; w; w = f->next[w - 1])
        if (f->lengths[w - 1] <= text.length - at &&
            memcmp(text.at + at, f->words[w - 1], f->lengths[w - 1]) == 0)
            return true;
    return false;
}

size_t knee_line_find(const struct knee_line_finder *f, struct knee_slice text, size_t from)
{
    while (from + SHORTEST <= text.length) {
        size_t step = f->step[block_at(text.at + from + SHORTEST - BLOCK)];
        if (step == 0) {
            if (word_at(f, text, from))
                return from;
            step = 1;
        }
        from += step;
    }
    return text.length;
}
