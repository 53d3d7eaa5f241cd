/* SPDX-License-Identifier: MIT */
/* The live agent's lines from any bytes: the first half is one rank's, the second another's; and
 * what they say together. */
#include "judge/watch.h"
#include "read/live/live_read.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct knee_live_rank ranks[2];
    struct knee_live_joined joined;
    struct knee_err err;
    const char *text = (const char *)data;
    for (size_t r = 0; r < 2; r++) {
        knee_live_init(&ranks[r], NULL);
        const char *from = text + (r ? size / 2 : 0);
        size_t length = r ? size - size / 2 : size / 2;
        knee_live_read_about(&ranks[r], from, length, &err);
        knee_live_read_steps(&ranks[r], from, length, &err);
        knee_live_read_calls(&ranks[r], from, length, &err);
    }
    if (knee_live_join(ranks, 2, NULL, &joined, &err) == KNEE_OK) {
        struct knee_watch watch;
        struct knee_watch_given given = {INT64_C(1794770000000000000), NAN, 0, NULL};
        if (knee_watch(ranks, 2, &joined, &given, &watch, &err) == KNEE_OK)
            knee_watch_release(&watch);
        knee_live_joined_release(&joined);
    }
    for (size_t r = 0; r < 2; r++)
        knee_live_release(&ranks[r]);
    return 0;
}
