/* SPDX-License-Identifier: MIT */
/* The files of a job from any bytes, cut at each 0xff: standard error of ranks 0 and 1, a mixed
 * log, a dump, an exit status. */
#include "judge/hang/hang.h"
#include "out/answer.h"
#include "say/answers.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void read_part(struct knee_job_record *record, const char *name, const unsigned char *data,
                      size_t size)
{
    struct knee_err err;
    char *copy = malloc(size ? size : 1); /* exactly: a byte too many is seen */
    if (!copy)
        return;
    memcpy(copy, data, size);
    knee_job_read(record, name, copy, size, &err);
    free(copy);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static const char *const names[] = {"rank0.err", "job.log", "rank1.err", "fr_2", "rank2.exit"};
    struct knee_job_record record;
    struct knee_hang_answer answer;
    struct knee_err err;
    struct knee_style style = {0};
    struct knee_text text = {0};
    knee_job_record_init(&record, NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const unsigned char *cut = size ? memchr(data, 0xff, size) : NULL;
        size_t part = cut && i + 1 < sizeof names / sizeof *names ? (size_t)(cut - data) : size;
        read_part(&record, names[i], data, part);
        data += part + (part < size);
        size -= part + (part < size);
    }
    if (knee_hang_judge(&record, NULL, &answer, &err) == KNEE_OK) {
        struct knee_hang_report report = {&record, &answer};
        knee_answer_write(&knee_hang_answer_type, &report, KNEE_TEXT, &style, &text);
        knee_answer_write(&knee_hang_answer_type, &report, KNEE_JSON, &style, &text);
        knee_hang_answer_release(&answer);
    }
    knee_text_release(&text);
    knee_job_record_release(&record);
    return 0;
}
