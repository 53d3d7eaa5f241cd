/* SPDX-License-Identifier: MIT */
#include "base/printable.h"

#include <stdint.h>

/* Ranges of characters that are not shown: controls, no width, turned direction, no character. */
static const struct {
    uint32_t from, to;
} hidden[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},
    {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
    {0xd800, 0xdfff}, {0xfeff, 0xfeff}, {0xfff9, 0xffff}, {0xe0000, 0xe007f},
};

/* The character at `at` and its bytes; 0: not UTF-8, or longer than it need be. */
static size_t decode(const unsigned char *at, size_t left, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = *at < 0x80 ? 1 : *at < 0xc0 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;
    if (length == 0 || length > left || *at > 0xf4)
        return 0;
    *code = length == 1 ? *at : *at & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (at[i] & 0x3f);
    }
    return *code >= least[length] && *code <= 0x10ffff ? length : 0;
}

size_t knee_printable_length(const char *at, size_t left)
{
    uint32_t code = 0;
    if (left && *at >= 0x20 && *at < 0x7f)
        return 1;
    size_t length = left ? decode((const unsigned char *)at, left, &code) : 0;
    for (size_t i = 0; length && i < sizeof hidden / sizeof *hidden; i++)
        if (code >= hidden[i].from && code <= hidden[i].to)
            return 0;
    return length;
}

void knee_printable(char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        size_t shown = knee_printable_length(text + i, length - i);
        if (!shown)
            text[i] = '?';
        i += shown ? shown : 1;
    }
}

/* Bytes of a code for colour, ESC [ digits ; m; 0: it is something else. */
static size_t color_code(const char *at, size_t left)
{
    size_t i = 2;
    if (left < 3 || at[0] != '\033' || at[1] != '[')
        return 0;
    while (i < left && ((at[i] >= '0' && at[i] <= '9') || at[i] == ';'))
        i++;
    return i < left && at[i] == 'm' ? i + 1 : 0;
}

void knee_printable_answer(char *text, size_t length, bool color)
{
    for (size_t i = 0; i < length;) {
        size_t shown =
            text[i] == '\n' || text[i] == '\t' ? 1 : knee_printable_length(text + i, length - i);
        if (!shown && color)
            shown = color_code(text + i, length - i);
        if (!shown)
            text[i] = '?';
        i += shown ? shown : 1;
    }
}
