/* SPDX-License-Identifier: MIT */
/* Answers of NCCL's RAS service from any bytes: the whole, then its first half. */
#include "judge/ras_judge.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct knee_ras answers[2];
    struct knee_ras_answer answer;
    struct knee_err err;
    size_t count = 0;
    for (size_t i = 0; i < 2; i++)
        if (knee_ras_read((const char *)data, i ? size / 2 : size, NULL, &answers[count], &err) ==
            KNEE_OK) {
            answers[count].at_ns = (int64_t)count * 1000000000;
            count++;
        }
    if (count && knee_ras_judge(answers, count, NULL, &answer, &err) == KNEE_OK)
        knee_ras_answer_release(&answer);
    for (size_t i = 0; i < count; i++)
        knee_ras_release(&answers[i]);
    return 0;
}
