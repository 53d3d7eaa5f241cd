/* SPDX-License-Identifier: MIT */
/* A question from bytes: the first line is the command, lines up to an empty one are its keys, and
 * what follows is attached as "a" and pushed as a trace. */
#include "knee.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *text_of(const char *from, size_t length)
{
    char *text = malloc(length + 1);
    if (!text)
        abort();
    memcpy(text, from, length);
    text[length] = '\0';
    return text;
}

static void push(struct knee_ask *ask, const char *data, size_t length)
{
    if (knee_push_begin(ask, "a", NULL))
        return;
    while (length > 0) {
        size_t size;
        char *room = knee_push_room(ask, &size);
        size = size < length ? size : length;
        if (!room)
            break;
        memcpy(room, data, size);
        knee_push_filled(ask, size);
        data += size;
        length -= size;
    }
    knee_push_end(ask, NULL);
}

/* A search of everything takes too long for one input. */
static bool stop(void *ctx, double share)
{
    (void)share;
    return --*(int *)ctx > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *all = text_of((const char *)data, size);
    char *end = memchr(all, '\n', size), *gap = end ? strstr(end, "\n\n") : NULL;
    int patience = 8;
    struct knee_text answer = {0};
    struct knee_err err;
    struct knee_ask *ask = knee_ask_begin(NULL);
    char *command = text_of(all, end ? (size_t)(end - all) : size);
    char *lines = end ? text_of(end, gap ? (size_t)(gap - end) : strlen(end)) : NULL;
    if (ask && gap && !strstr(lines ? lines : "", "cross")) {
        size_t left = size - (size_t)(gap + 2 - all);
        knee_ask_watch(ask, stop, &patience);
        if (knee_attach(ask, "a", gap + 2, left, &err))
            abort();
        if (strcmp(command, "trace") == 0 || strcmp(command, "diff") == 0)
            push(ask, gap + 2, left);
        for (int format = KNEE_TEXT; format <= KNEE_MARKDOWN; format++)
            knee_ask(ask, command, lines, (enum knee_format)format, &answer, &err);
    }
    knee_ask_end(ask);
    knee_text_release(&answer);
    free(lines);
    free(command);
    free(all);
    return 0;
}
