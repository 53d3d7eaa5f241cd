/* SPDX-License-Identifier: MIT */
/* The formats that are read as a whole, from any bytes; the first one says which. */
#include "knee_timeline.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"a.xplane.pb", "a.0.et", "a.json", "a_kernel_trace.csv"};
    struct knee_trace trace;
    struct knee_account account;
    struct knee_err err;
    char *copy = size ? malloc(size) : NULL;
    if (!copy)
        return 0;
    memcpy(copy, data + 1, size - 1);
    if (knee_image_read((struct knee_file_bytes){names[data[0] & 3], copy, size - 1}, NULL, NULL,
                        &trace, &err) == KNEE_OK) {
        if (knee_account(&trace, 1, NULL, &account, &err) == KNEE_OK)
            knee_account_release(&account);
        knee_trace_release(&trace);
    }
    free(copy);
    return 0;
}
