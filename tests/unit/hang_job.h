/* SPDX-License-Identifier: MIT */
/* A job's files, read one after the other and judged. */
#ifndef KNEE_TEST_HANG_JOB_H
#define KNEE_TEST_HANG_JOB_H

#include "judge/hang/hang.h"

#include "unit.h"

struct read {
    struct knee_job_record record;
    struct knee_hang_answer answer;
};

static inline void add(struct read *read, const char *name, const char *text, size_t length)
{
    struct knee_err err = {0};
    char *copy = malloc(length + 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    assert_ok(knee_job_read(&read->record, name, copy, length, &err));
    free(copy);
}

static inline void judge(struct read *read)
{
    struct knee_err err = {0};
    assert_ok(knee_hang_judge(&read->record, NULL, &read->answer, &err));
}

static inline void read_release(struct read *read)
{
    knee_hang_answer_release(&read->answer);
    knee_job_record_release(&read->record);
}

#endif
