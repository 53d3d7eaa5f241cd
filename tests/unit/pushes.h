/* SPDX-License-Identifier: MIT */
/* A file handed to a question in memory, as the page and the library do it. */
#ifndef KNEE_TESTS_PUSHES_H
#define KNEE_TESTS_PUSHES_H

#include "knee.h"

#include <string.h>

static inline knee_status push_text(struct knee_ask *ask, const char *name, const char *text,
                                    size_t length)
{
    size_t size = 0;
    knee_status status = knee_push_begin(ask, name, NULL);
    for (size_t from = 0; !status && from < length; from += size) {
        char *room = knee_push_room(ask, &size);
        if (!room)
            return KNEE_SYSTEM;
        size = size < length - from ? size : length - from;
        memcpy(room, text + from, size);
        knee_push_filled(ask, size);
    }
    return status ? status : knee_push_end(ask, NULL);
}

#endif
