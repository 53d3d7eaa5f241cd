/* SPDX-License-Identifier: MIT */
#include "out/bar.h"

#include "out/words.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 72 };

static const char *shade_of(const struct knee_bar_part *part, size_t row, bool ascii)
{
    static const char *const unicode[] = {"█", "▓", "▒", "░", "╳", "╱", "╲", "·"};
    static const char *const plain[] = {"#", "=", "+", "-", "x", "/", "o", "."};
    const char *own = ascii ? part->ascii : part->unicode;
    return own ? own : ascii ? plain[row % 8] : unicode[row % 8];
}

void knee_parts_write(const struct knee_bar_part *parts, size_t count,
                      const struct knee_style *style, struct knee_text *text)
{
    double done = 0;
    size_t drawn = 0;
    knee_text_puts(text, "  ");
    for (size_t i = 0; i < count; i++) {
        done += parts[i].share;
        size_t to = (size_t)lrint(WIDTH * fmin(1, fmax(0, done)));
        knee_text_repeat(text, shade_of(&parts[i], i, style->ascii), to > drawn ? to - drawn : 0);
        drawn = to > drawn ? to : drawn;
    }
    size_t used = 0, width = style->width > 20 ? (size_t)style->width : 80;
    for (size_t i = 0; i < count; i++) {
        if (!knee_shows(parts[i].share))
            continue;
        struct knee_word share = knee_say_number(parts[i].share, KNEE_AS_SHARE);
        size_t length = 4 + strlen(parts[i].name) + 1 + strlen(share.s);
        bool fresh = used == 0 || used + length > width;
        knee_text_printf(text, "%s  %s %s %s", fresh ? "\n" : "",
                         shade_of(&parts[i], i, style->ascii), parts[i].name, share.s);
        used = fresh ? length : used + length;
    }
    knee_text_puts(text, "\n");
}
