/* SPDX-License-Identifier: MIT */
/* Any text as a number: what strtod() of the C locale makes of it, and back. */
#include "base/decimal.h"
#include "base/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[2000], ours[1300], theirs[1300], *end;
    const char *our_end;
    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    double value = knee_decimal_parse(text, &our_end), other = strtod(text, &end);
    if (strpbrk(text, "xXnN")) /* hex, inf and nan are no numbers here */
        return 0;
    if (our_end != end || memcmp(&value, &other, sizeof value) != 0)
        abort();
    int precision = size ? data[0] % 40 : 17;
    for (const char *const *format = (const char *const[]){"%.*g", "%.*f", "%.*e", NULL}; *format;
         format++) {
        int a = knee_format(ours, sizeof ours, *format, precision, value);
        int b = snprintf(theirs, sizeof theirs, *format, precision, value);
        if (a != b || strcmp(ours, theirs) != 0)
            abort();
    }
    return 0;
}
