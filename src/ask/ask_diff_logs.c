/* SPDX-License-Identifier: MIT */
/* diff of two training logs: is the step longer, beyond chance, and what was set otherwise. */
#include "ask/ask_measured.h"
#include "base/error.h"
#include "knee_out.h"
#include "out/answer.h"
#include "say/answers.h"

static knee_status check_gate(double most, const struct knee_log_comparison *c,
                              struct knee_err *err)
{
    if (!(c->slower > most) || !c->significant)
        return KNEE_OK;
    return knee_fail(err, KNEE_GATE, "--max-slower",
                     "the step is %.3g %% longer at equal work > %.3g %%", 100 * c->slower,
                     100 * most);
}

static knee_status read_timed(struct knee_ask *ask, const char *name, struct knee_train_log *log,
                              struct knee_err *err)
{
    knee_status status = knee_ask_train_log(ask, name, log, err);
    if (status || log->timing != KNEE_TIMED_NOT)
        return status;
    knee_train_log_release(log);
    return knee_fail(err, KNEE_INPUT, name, "nothing in the log says how long a step takes");
}

knee_status knee_ask_compare_logs(struct knee_ask_question *q, double max_slower,
                                  struct knee_err *err)
{
    struct knee_train_log before, after;
    knee_status status = read_timed(q->ask, q->words[0], &before, err);
    if (status)
        return status;
    status = read_timed(q->ask, q->words[1], &after, err);
    if (!status) {
        struct knee_log_comparison compared;
        knee_compare_logs(&before, &after, &compared);
        ASK_WRITE(q, knee_answer_write, &knee_diff_logs_answer, &compared);
        status = check_gate(max_slower, &compared, err);
        knee_train_log_release(&after);
    }
    knee_train_log_release(&before);
    return status;
}

knee_status knee_ask_diff_logs(struct knee_ask *ask, const char *const *words, bool *logs,
                               struct knee_err *err)
{
    knee_status status = KNEE_OK;
    bool both = true;
    for (size_t i = 0; i < 2 && both && !status; i++)
        status = knee_ask_is_train_log(ask, words[i], &both, err);
    *logs = both && !status;
    return status;
}
