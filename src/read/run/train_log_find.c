/* SPDX-License-Identifier: MIT */
/*
 * Finding any of a fixed list of words, all at once, after Wu and Manber (1994): the window is as
 * long as the shortest word; the last two bytes of it say how far it may jump. In text without any
 * of the words a few bytes are passed at a time.
 */
#include "read/run/train_log.h"

#include <string.h>

static size_t pair_of(const char *at)
{
    return (size_t)(unsigned char)at[0] << 8 | (unsigned char)at[1];
}

void knee_train_finder_add(struct train_finder *finder, const char *text, unsigned id)
{
    if (!text || finder->count + 1 >= TRAIN_PATTERNS)
        return;
    size_t length = strlen(text), row = ++finder->count;
    finder->pattern[row].text = text;
    finder->pattern[row].length = length;
    finder->pattern[row].id = id;
    if (row == 1 || length < finder->shortest)
        finder->shortest = length;
}

void knee_train_finder_ready(struct train_finder *finder)
{
    size_t window = finder->shortest;
    memset(finder->shift, (int)(window - 1), sizeof finder->shift);
    for (size_t row = 1; row <= finder->count; row++) {
        const char *text = finder->pattern[row].text;
        for (size_t i = 0; i + 1 < window; i++) {
            size_t pair = pair_of(text + i), jump = window - 2 - i;
            if (jump < finder->shift[pair])
                finder->shift[pair] = (unsigned char)jump;
        }
        size_t last = pair_of(text + window - 2);
        finder->pattern[row].next = finder->first[last];
        finder->first[last] = (unsigned char)row;
    }
}

size_t knee_train_finder_next(const struct train_finder *finder, const char *data, size_t length,
                              size_t at, unsigned *id)
{
    size_t window = finder->shortest;
    for (size_t i = at + window - 2; i + 1 < length;) {
        size_t pair = pair_of(data + i);
        if (finder->shift[pair] > 0) {
            i += finder->shift[pair];
            continue;
        }
        size_t start = i + 2 - window;
        for (unsigned row = finder->first[pair]; row; row = finder->pattern[row].next)
            if (finder->pattern[row].length <= length - start &&
                memcmp(data + start, finder->pattern[row].text, finder->pattern[row].length) == 0) {
                *id = finder->pattern[row].id;
                return start;
            }
        i++;
    }
    return length;
}
