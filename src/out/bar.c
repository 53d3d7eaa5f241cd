/* SPDX-License-Identifier: MIT */
#include "out/bar.h"

#include "out/words.h"

#include <math.h>

enum { WIDTH = 72, MOST_RANKS = 32 };

static const struct {
    const char *unicode, *ascii;
} shades[KNEE_LABELS] = {
    [KNEE_COMPUTE] = {"█", "#"}, [KNEE_TRANSFER] = {"▓", "T"}, [KNEE_WAIT] = {"▒", "w"},
    [KNEE_COPY] = {"░", "c"},    [KNEE_STARVED] = {"╳", "s"},  [KNEE_HOST] = {"╱", "h"},
    [KNEE_IDLE] = {"·", "."},
};

void knee_bar_write(const struct knee_step *step, const struct knee_style *style,
                    struct knee_text *text)
{
    double done = 0;
    size_t drawn = 0;
    knee_text_puts(text, "  ");
    for (int label = 0; label < KNEE_LABELS; label++) {
        const char *shade = style->ascii ? shades[label].ascii : shades[label].unicode;
        done += step->label_s[label];
        size_t to = (size_t)lrint(WIDTH * fmin(1, done / step->wall_s));
        knee_text_repeat(text, shade, to > drawn ? to - drawn : 0);
        drawn = to > drawn ? to : drawn;
    }
    knee_text_puts(text, "\n ");
    for (int label = 0; label < KNEE_LABELS; label++)
        if (knee_shows(step->label_s[label] / step->wall_s))
            knee_text_printf(text, " %s %s %s",
                             style->ascii ? shades[label].ascii : shades[label].unicode,
                             knee_label_name((enum knee_label)label),
                             knee_human(step->label_s[label], KNEE_UNIT_SECONDS).s);
    knee_text_puts(text, "\n");
}

void knee_strip_write(const struct knee_account *account, const struct knee_style *style,
                      struct knee_text *text)
{
    static const char *const unicode[] = {" ", "░", "▒", "▓", "█"};
    static const char *const ascii[] = {" ", ".", "-", "=", "#"};
    for (size_t r = 0; r < account->rank_count && r < MOST_RANKS; r++) {
        const int64_t *waits = account->ranks[r].waits_ns;
        knee_text_printf(text, "  %4lld %s", (long long)account->ranks[r].rank,
                         style->ascii ? "|" : "│");
        for (int i = 0; i < KNEE_STRIP; i++) {
            int64_t level = (waits[i] * 5 - 1) / account->strip_part_ns;
            level = waits[i] == 0 ? 0 : level < 1 ? 1 : level > 4 ? 4 : level;
            knee_text_puts(text, style->ascii ? ascii[level] : unicode[level]);
        }
        knee_text_printf(text, "%s\n", style->ascii ? "|" : "│");
    }
    if (account->rank_count > MOST_RANKS)
        knee_text_printf(text, "  and %zu more ranks\n", account->rank_count - MOST_RANKS);
}
