/* SPDX-License-Identifier: MIT */
/* All commands that can be asked. A new one is a row here. */
#include "ask/ask.h"

#include "base/error.h"

const struct knee_ask_command *const knee_ask_commands[] = {
    &knee_ask_predict,
    &knee_ask_plan,
    &knee_ask_scale,
    &knee_ask_validate,
    &knee_ask_trace,
    &knee_ask_diff,
    &knee_ask_replay,
    &knee_ask_tax,
    &knee_ask_collective,
    &knee_ask_fit,
    &knee_ask_cluster,
    &knee_ask_list,
    &knee_ask_example,
    &knee_ask_hang,
    &knee_ask_doctor,
    &knee_ask_options,
    NULL,
};

const char *knee_ask_command(size_t row)
{
    return row < sizeof knee_ask_commands / sizeof *knee_ask_commands - 1
               ? knee_ask_commands[row]->name
               : NULL;
}

knee_status knee_ask(struct knee_ask *ask, const char *command, const char *lines,
                     enum knee_format format, struct knee_text *answer, struct knee_err *err)
{
    struct knee_ask *own = ask ? NULL : knee_ask_begin(answer->alloc);
    if (!ask && !own)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    knee_status status = knee_ask_lines(
        ask ? ask : own, &(struct knee_ask_asked){knee_ask_commands, command, lines, format},
        answer, err);
    knee_ask_end(own);
    return status;
}
