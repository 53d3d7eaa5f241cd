/* SPDX-License-Identifier: MIT */
/* Numbers and worker lists from any bytes: read or refused, never anything else. */
#include "base/keys.h"
#include "base/number.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static double list[KNEE_ROWS_MAX];
    struct knee_workers workers;
    struct knee_err err;
    if (size < 1 || size > 1000)
        return 0;
    char text[1024];
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    double value = 0;
    if (knee_number_parse(text, (enum knee_unit)(data[0] % KNEE_UNITS), "x", &value, &err) == 0 &&
        !isfinite(value))
        abort();
    if (knee_workers_parse(text, "x", &workers, &err) == 0) {
        size_t count = knee_workers_list(&workers, list, KNEE_ROWS_MAX);
        for (size_t i = 1; i < count; i++)
            if (!(list[i] > list[i - 1]))
                abort();
    }
    return 0;
}
