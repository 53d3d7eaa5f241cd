/* SPDX-License-Identifier: MIT */
/* Flight Recorder dumps (pickle, JSON) and Inspector lines from any bytes: two files, cut at the
 * first byte 0xff. */
#include "knee_out.h"
#include "out/answer.h"
#include "say/answers.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_part(struct knee_rollcall *roll, const char *name, const uint8_t *data,
                      size_t size)
{
    struct knee_err err;
    char *copy = malloc(size ? size : 1); /* exactly: a byte too many is seen */
    if (!copy)
        return;
    memcpy(copy, data, size);
    knee_rollcall_read(roll, name, copy, size, &err);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *cut = size ? memchr(data, 0xff, size) : NULL;
    size_t first = cut ? (size_t)(cut - data) : size;
    struct knee_rollcall roll = {0};
    struct knee_roll_answer answer;
    struct knee_err err;
    struct knee_style style = {0};
    struct knee_text text = {0};
    read_part(&roll, "_dump_0", data, first);
    if (cut)
        read_part(&roll, "_dump_1", cut + 1, size - first - 1);
    if (roll.source_count && knee_rollcall_join(&roll, NULL, &answer, &err) == KNEE_OK) {
        struct knee_roll_report report = {&roll, &answer};
        knee_answer_write(&knee_roll_answer_type, &report, KNEE_TEXT, &style, &text);
        knee_answer_write(&knee_roll_answer_type, &report, KNEE_JSON, &style, &text);
        knee_roll_answer_release(&answer);
    }
    knee_text_release(&text);
    knee_rollcall_release(&roll);
    return 0;
}
