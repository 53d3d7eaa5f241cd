/* SPDX-License-Identifier: MIT */
/* Tables of runs from any bytes: read or refused; every row is predicted or has a reason why not.
 */
#include "knee_out.h"
#include "knee_read.h"
#include "out/answer.h"
#include "say/answers.h"
#include "seldom.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct knee_runs runs;
    struct knee_validation *v = malloc(sizeof *v);
    struct knee_err err;
    struct knee_text text = {0};
    struct knee_style style = {0};
    if (v && !knee_runs_read((struct knee_named_text){(const char *)data, size, "fuzz"}, "h200",
                             NULL, &runs, &err)) {
        if (runs.count < 100 && seldom(data, size, 8) &&
            !knee_validate(&runs, NULL, 0.8, NULL, v, &err)) {
            for (size_t i = 0; i < runs.count; i++)
                if (!runs.run[i].skipped[0] && !(v->result[i].predicted_s > 0))
                    abort();
            for (int format = KNEE_TEXT; format <= KNEE_MARKDOWN; format++)
                knee_answer_write(&knee_validate_answer, v, (enum knee_format)format, &style,
                                  &text);
            knee_text_release(&text);
            knee_validation_release(v);
        }
        knee_runs_release(&runs);
    }
    free(v);
    return 0;
}
