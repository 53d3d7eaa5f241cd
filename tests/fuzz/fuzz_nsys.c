/* SPDX-License-Identifier: MIT */
/* An SQLite database from any bytes. */
#include "knee_timeline.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct knee_trace trace;
    struct knee_account account;
    struct knee_err err;
    void *copy = malloc(size + 1);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    if (knee_nsys_read((struct knee_file_bytes){"fuzz", copy, size}, NULL, NULL, &trace, &err) ==
        KNEE_OK) {
        if (knee_account(&trace, 1, NULL, &account, &err) == KNEE_OK)
            knee_account_release(&account);
        knee_trace_release(&trace);
    }
    free(copy);
    return 0;
}
