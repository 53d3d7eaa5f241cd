/* SPDX-License-Identifier: MIT */
/* cluster: a cluster from wherever it is described, as a file that can be edited and kept. */
#include "ask/ask.h"

#include "base/error.h"
#include "knee_read.h"

static knee_status answer(struct knee_ask_question *q, struct knee_err *err)
{
    struct knee_cluster cluster;
    if (q->word_count == 0)
        return knee_fail_hint(err, KNEE_USAGE, "",
                              "for example: knee cluster dgx-h100, or a topology file",
                              "no cluster given");
    knee_status status = knee_ask_read_cluster(q->ask, q->words[0], &cluster, err);
    for (size_t i = 0; i < 2 && q->outs[i].text && !status; i++)
        if (q->outs[i].format == KNEE_TEXT)
            knee_write_cluster(&cluster, q->outs[i].text);
        else
            knee_answer_write(&knee_cluster_answer, &cluster, q->outs[i].format, &q->style,
                              q->outs[i].text);
    return status;
}

const struct knee_ask_command knee_ask_cluster = {
    .name = "cluster", .most_words = 1, .operands = "CLUSTER", .answer = answer};
