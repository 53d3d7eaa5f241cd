/* SPDX-License-Identifier: MIT */
/*
 * How a text was kept. Container runtimes store each line as JSON, and terminals and pagers break
 * long lines at the width of the window. Both are undone in place, before any line is read. A line
 * that was put together again is followed by as many empty lines as it had breaks inside words, so
 * line numbers stay those of the file.
 *
 * A text is broken at its longest line if several lines have exactly that length and most of those
 * end inside a word. Where words are kept whole, a line of PyTorch's tells: the next line begins
 * like none, and its first word would not have fitted.
 */
#include "base/fold.h"
#include "read/hang/job_lines.h"

enum { NARROWEST = 60, WIDEST = 250, HEAD = 1 << 16, LEAST = 2 };

/* ---- Docker's JSON ---- */

static size_t put_utf8(unsigned code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 63));
        return 2;
    }
    out[0] = (char)(0xe0 | code >> 12);
    out[1] = (char)(0x80 | (code >> 6 & 63));
    out[2] = (char)(0x80 | (code & 63));
    return 3;
}

static unsigned hex4(const char *at)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        char c = knee_lower(at[i]);
        value = value * 16 + (unsigned)(knee_is_digit(c)         ? c - '0'
                                        : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                                                                 : 0);
    }
    return value;
}

/* The string that begins at `at`, decoded to `out`; its end of line is left off. */
static size_t decode(struct knee_slice text, size_t at, char *out)
{
    size_t used = 0;
    for (; at < text.length && text.at[at] != '"'; at++) {
        char c = text.at[at];
        if (c != '\\' || at + 1 >= text.length) {
            out[used++] = c;
            continue;
        }
        c = text.at[++at];
        if (c == 'u' && at + 4 < text.length) {
            used += put_utf8(hex4(text.at + at + 1), out + used);
            at += 4;
        } else {
            out[used++] = c == 'n' || c == 'r' ? '\n' : c == 't' ? '\t' : c;
        }
    }
    while (used && out[used - 1] == '\n')
        used--;
    for (size_t i = 0; i < used; i++)
        out[i] = out[i] == '\n' ? ' ' : out[i];
    return used;
}

/* {"log":"text\n","stream":"stderr","time":"..."} */
static size_t unpack(char *data, size_t length)
{
    static const char *const key = "{\"log\":\"";
    struct knee_slice rest = {data, length}, line;
    size_t used = 0;
    while (knee_slice_line(&rest, &line)) {
        if (knee_slice_starts(line, key)) {
            used += decode(line, strlen(key), data + used);
        } else {
            memmove(data + used, line.at, line.length);
            used += line.length;
        }
        if (used < length)
            data[used++] = '\n';
    }
    return used;
}

/* ---- Broken lines ---- */

/* Characters, not bytes: bars are drawn with some that take three. */
static size_t columns(struct knee_slice line)
{
    size_t count = 0;
    for (size_t i = 0; i < line.length; i++)
        count += ((unsigned char)line.at[i] & 0xc0) != 0x80;
    return count;
}

static size_t first_word(struct knee_slice line)
{
    size_t i = 0;
    while (i < line.length && line.at[i] != ' ')
        i++;
    return i;
}

/* Does a line begin here, as PyTorch, Python or a launcher begins one? */
static bool is_beginning(struct knee_slice line)
{
    static const char *const words[] = {"#",          "frame #",    "Exception raised",
                                        "Last error", "ncclRemote", "Traceback",
                                        "File \"",    " ",          "terminate ca"};
    struct knee_job_line one = knee_job_line_of(line);
    bool begins =
        !line.length || one.time_s >= 0 || (one.rank >= 0 && !knee_slice_starts(line, "[Rank "));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        begins = begins || knee_slice_starts(line, words[i]);
    struct knee_slice word = {line.at, first_word(line)};
    return begins || knee_slice_has(word, ".py:") ||
           (line.length > 2 && line.at[0] == '[' && strchr("IWEF", line.at[1]));
}

/* Would the next line's first word not have fitted, and does it begin nothing? */
static bool is_pushed(size_t longest, struct knee_slice line, struct knee_slice next)
{
    return columns(line) + 1 + first_word(next) > longest && !is_beginning(next);
}

/* Neither a space nor what tables are drawn with. */
static bool is_inside(char c)
{
    return !strchr(" \t|+-=*[]", c);
}

/* Steps are often printed in lines of one length, one after the other. */
static bool is_alike(struct knee_slice line, struct knee_slice next)
{
    enum { SAME = 8 };
    return line.length >= SAME && next.length >= SAME && memcmp(line.at, next.at, SAME) == 0;
}

struct width {
    size_t longest, count, inside; /* lines of that length; those that end inside a word */
};

static void look_at(struct width *w, struct knee_slice line, struct knee_slice next)
{
    size_t wide = line.length < w->longest ? line.length : columns(line);
    bool inside = wide >= w->longest && line.length && next.length &&
                  is_inside(line.at[line.length - 1]) && is_inside(next.at[0]) &&
                  !is_alike(line, next);
    /* PyTorch's line would have an end of line before the next one begins */
    inside = inside || (next.length && next.at[0] != '[' && knee_slice_has(line, "ProcessGroup"));
    if (wide > w->longest) {
        w->longest = wide;
        w->count = w->inside = 0;
    }
    w->count += wide == w->longest;
    w->inside += wide == w->longest && inside;
}

/* Do most lines of PyTorch that go on end before the last column? Then words were kept whole. */
static bool by_words(struct knee_slice text, size_t longest)
{
    struct knee_slice line, next;
    size_t full = 0, short_of = 0;
    bool more = knee_slice_line(&text, &line);
    while (more && (more = knee_slice_line(&text, &next))) {
        bool own = knee_slice_has(line, "[rank") || knee_slice_has(line, "ProcessGroup");
        bool on = own && is_pushed(longest, line, next);
        full += on && columns(line) == longest;
        short_of += on && columns(line) < longest;
        line = next;
    }
    return short_of > full;
}

enum breaks { UNBROKEN, INSIDE_WORDS, BETWEEN_WORDS };

/* The first line that is wide enough says that nothing was broken. */
static enum breaks find_width(struct knee_slice text, size_t *longest)
{
    struct knee_slice head = {text.at, text.length < HEAD ? text.length : HEAD}, rest = head, line,
                      next;
    struct width w = {0};
    bool more = knee_slice_line(&rest, &line);
    while (more) {
        more = knee_slice_line(&rest, &next);
        if (line.length > WIDEST && columns(line) > WIDEST)
            return UNBROKEN;
        look_at(&w, line, more ? next : (struct knee_slice){"", 0});
        line = next;
    }
    *longest = w.longest;
    if (w.longest < NARROWEST)
        return UNBROKEN;
    if (by_words(head, w.longest))
        return BETWEEN_WORDS;
    return w.count >= LEAST && 2 * w.inside >= w.count ? INSIDE_WORDS : UNBROKEN;
}

static size_t join(char *data, size_t length, enum breaks breaks, size_t longest)
{
    struct knee_slice rest = {data, length}, line, next;
    size_t used = 0, joined = 0;
    bool more = knee_slice_line(&rest, &line), inside = breaks == INSIDE_WORDS;
    while (more) {
        more = knee_slice_line(&rest, &next);
        bool on = more && line.length && next.length &&
                  (inside ? columns(line) == longest : is_pushed(longest, line, next));
        memmove(data + used, line.at, line.length);
        used += line.length;
        joined += on && inside; /* else a space takes the place of the break */
        if (on && !inside && line.at[line.length - 1] != ' ')
            data[used++] = ' ';
        for (size_t i = 0; !on && i <= joined && used < length; i++)
            data[used++] = '\n';
        joined = on ? joined : 0;
        line = next;
    }
    return used;
}

size_t knee_job_layout(char *data, size_t length)
{
    size_t longest = 0;
    if (length > 8 && memcmp(data, "{\"log\":\"", 8) == 0)
        length = unpack(data, length);
    enum breaks breaks = find_width((struct knee_slice){data, length}, &longest);
    return breaks == UNBROKEN ? length : join(data, length, breaks, longest);
}
