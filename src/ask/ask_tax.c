/* SPDX-License-Identifier: MIT */
/* tax: what each parallel axis pays. */
#include "ask/ask.h"
#include "base/error.h"

static void init(void *room, void **objects)
{
    knee_tax_job_init(room);
    objects[0] = room;
}

static knee_status answer(struct knee_ask_question *q, struct knee_err *err)
{
    struct knee_tax tax;
    knee_status status = knee_tax_run(q->objects[0], &tax, err);
    if (!status)
        ASK_ANSWER(q, &knee_tax_answer, &tax);
    if (!status && tax.memory.total > tax.memory.capacity) {
        status = knee_fail(err, KNEE_GATE, "", "this split does not fit into the GPUs' memory");
        q->answered = true;
    }
    return status;
}

const struct knee_ask_command knee_ask_tax = {
    .name = "tax",
    .keys = {&knee_tax_keys},
    .operands = "",
    .size = sizeof(struct knee_tax_job),
    .init = init,
    .answer = answer,
};
