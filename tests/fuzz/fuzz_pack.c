/* SPDX-License-Identifier: MIT */
/* A packed trace from any bytes: refused, or whole enough to be accounted, outlined and packed. */
#include "timeline/wire_format.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct knee_trace trace;
    struct knee_account account;
    struct knee_err err;
    if (knee_trace_unpack(data, size, NULL, &trace, &err) != KNEE_OK)
        return 0;
    unsigned char *again = malloc(knee_trace_packed_size(&trace));
    if (again)
        knee_trace_pack(&trace, again);
    free(again);
    struct knee_trace outline;
    if (knee_trace_outline(&trace, NULL, &outline, &err) == KNEE_OK)
        knee_trace_release(&outline);
    if (knee_account(&trace, 1, NULL, &account, &err) == KNEE_OK)
        knee_account_release(&account);
    knee_trace_release(&trace);
    return 0;
}
