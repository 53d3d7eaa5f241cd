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
        if (step->label_s[label] > 0.0005 * step->wall_s)
            knee_text_printf(text, " %s %s %s",
                             style->ascii ? shades[label].ascii : shades[label].unicode,
                             knee_label_name((enum knee_label)label),
                             knee_human(step->label_s[label], KNEE_UNIT_SECONDS).s);
    knee_text_puts(text, "\n");
}

/* Nanoseconds of waiting in each of WIDTH parts of the common window. */
static void waits_of(const struct knee_rank_account *rank, int64_t from_ns, int64_t part_ns,
                     int64_t *waits)
{
    for (size_t i = 0; i < rank->run_count; i++) {
        if (rank->runs[i].label != KNEE_WAIT)
            continue;
        int64_t own = rank->trace->base_ns + rank->shift_ns;
        int64_t start = rank->runs[i].start_ns + own - from_ns;
        int64_t end =
            (i + 1 < rank->run_count ? rank->runs[i + 1].start_ns : rank->end_ns) + own - from_ns;
        for (int64_t part = start / part_ns; part < WIDTH && part * part_ns < end; part++) {
            int64_t a = start > part * part_ns ? start : part * part_ns;
            int64_t b = end < (part + 1) * part_ns ? end : (part + 1) * part_ns;
            if (part >= 0 && b > a)
                waits[part] += b - a;
        }
    }
}

void knee_strip_write(const struct knee_account *account, const struct knee_style *style,
                      struct knee_text *text)
{
    static const char *const unicode[] = {" ", "░", "▒", "▓", "█"};
    static const char *const ascii[] = {" ", ".", "-", "=", "#"};
    int64_t from = INT64_MAX, to = INT64_MIN;
    for (size_t r = 0; r < account->rank_count; r++) {
        const struct knee_rank_account *rank = &account->ranks[r];
        int64_t own = rank->trace->base_ns + rank->shift_ns;
        from = rank->start_ns + own < from ? rank->start_ns + own : from;
        to = rank->end_ns + own > to ? rank->end_ns + own : to;
    }
    int64_t part = (to - from) / WIDTH + 1;
    for (size_t r = 0; r < account->rank_count && r < MOST_RANKS; r++) {
        int64_t waits[WIDTH] = {0};
        waits_of(&account->ranks[r], from, part, waits);
        knee_text_printf(text, "  %4lld %s", (long long)account->ranks[r].rank,
                         style->ascii ? "|" : "│");
        for (int i = 0; i < WIDTH; i++) {
            int64_t level = (waits[i] * 5 - 1) / part;
            level = waits[i] == 0 ? 0 : level < 1 ? 1 : level > 4 ? 4 : level;
            knee_text_puts(text, style->ascii ? ascii[level] : unicode[level]);
        }
        knee_text_printf(text, "%s\n", style->ascii ? "|" : "│");
    }
    if (account->rank_count > MOST_RANKS)
        knee_text_printf(text, "  and %zu more ranks\n", account->rank_count - MOST_RANKS);
}
