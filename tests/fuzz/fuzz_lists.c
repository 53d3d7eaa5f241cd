/* SPDX-License-Identifier: MIT */
/* Lists that are said beside traces, from any bytes: names of communication, and gradient norms. */
#include "knee.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct knee_ask *ask = knee_ask_begin(NULL);
    struct knee_text answer = {0};
    struct knee_err err;
    if (ask && knee_attach(ask, "a", (const char *)data, size, &err) == KNEE_OK) {
        if (knee_push_patterns(ask, "a", &err) == KNEE_OK)
            knee_push_patterns(ask, NULL, &err);
        knee_ask(ask, "trace", "noise = a\n", KNEE_JSON, &answer, &err);
    }
    knee_text_release(&answer);
    knee_ask_end(ask);
    return 0;
}
