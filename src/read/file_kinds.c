/* SPDX-License-Identifier: MIT */
#include "read/file_kinds.h"

#include "base/slice.h"

#include <string.h>

/* ---- What no list of words can say ---- */

/* Protocol 2 and later begin so. */
bool knee_is_pickle(const char *head, size_t length)
{
    return length > 2 && (unsigned char)head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
}

bool knee_is_text(const char *head, size_t length)
{
    return memchr(head, '\n', length) && !memchr(head, '\0', length);
}

const struct knee_file_kind *knee_file_kind_at(size_t row)
{
    return row < knee_file_kinds_count ? &knee_file_kinds[row] : NULL;
}

size_t knee_file_kind_row(const struct knee_file_kind *kind)
{
    return kind ? (size_t)(kind - knee_file_kinds) + 1 : 0;
}

/* ---- Asking it ---- */

/* The next word of a list; *list moves behind it. */
static struct knee_slice next_word(const char **list)
{
    struct knee_slice word = {*list, strcspn(*list, "|")};
    *list += word.length + ((*list)[word.length] == '|');
    return word;
}

static bool has(struct knee_slice text, struct knee_slice word)
{
    for (size_t i = 0; i + word.length <= text.length; i++)
        if (text.at[i] == word.at[0] && memcmp(text.at + i, word.at, word.length) == 0)
            return true;
    return false;
}

static bool starts(struct knee_slice text, struct knee_slice word)
{
    return text.length >= word.length && memcmp(text.at, word.at, word.length) == 0;
}

static bool ends(struct knee_slice name, struct knee_slice word)
{
    return name.length >= word.length &&
           memcmp(name.at + name.length - word.length, word.at, word.length) == 0;
}

/* How many words of a list `is` true of; *count: of how many. */
static size_t matching(const char *list, struct knee_slice text,
                       bool (*is)(struct knee_slice, struct knee_slice), size_t *count)
{
    size_t found = 0;
    for (*count = 0; *list; ++*count)
        found += is(text, next_word(&list));
    return found;
}

static struct knee_slice without_gz(const char *name)
{
    struct knee_slice slice = knee_slice_of(name);
    slice.length -= ends(slice, knee_slice_of(".gz")) ? 3 : 0;
    return slice;
}

static bool is_kind(const struct knee_file_kind *kind, const char *name, struct knee_slice head)
{
    size_t count;
    struct knee_slice trimmed = head;
    while (trimmed.length && strchr(" \t\r\n", trimmed.at[0]) && trimmed.at[0])
        trimmed.at++, trimmed.length--;
    return (!kind->ends || matching(kind->ends, without_gz(name), ends, &count)) &&
           (!kind->magic || matching(kind->magic, trimmed, starts, &count)) &&
           (!kind->any || matching(kind->any, head, has, &count)) &&
           (!kind->all || matching(kind->all, head, has, &count) == count) &&
           (!kind->none || !matching(kind->none, head, has, &count)) &&
           (!kind->test || kind->test(head.at, head.length));
}

const struct knee_file_kind *knee_file_kind_of(const char *name, const char *head, size_t length)
{
    struct knee_slice text = {head ? head : "",
                              length < KNEE_KIND_HEAD ? length : (size_t)KNEE_KIND_HEAD};
    for (size_t i = 0; i < knee_file_kinds_count; i++)
        if (is_kind(&knee_file_kinds[i], name, text))
            return &knee_file_kinds[i];
    return NULL;
}

bool knee_file_kind_for(const struct knee_file_kind *kind, const char *command)
{
    size_t length = strlen(command);
    for (const char *at = kind->commands; (at = strstr(at, command)); at++)
        if ((at == kind->commands || at[-1] == ' ') && (!at[length] || at[length] == ' '))
            return true;
    return false;
}

bool knee_file_ends_like_trace(const char *name)
{
    size_t count;
    for (size_t i = 0; i < knee_file_kinds_count; i++)
        if (knee_file_kinds[i].ends && knee_file_kinds[i].reader != KNEE_READ_OTHERWISE &&
            matching(knee_file_kinds[i].ends, without_gz(name), ends, &count))
            return true;
    return false;
}
