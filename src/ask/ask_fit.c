/* SPDX-License-Identifier: MIT */
/* fit: a cluster file from logs; with check: how well logs are predicted. */
#include "ask/ask_logs.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/text.h"
#include "knee_read.h"

struct fit_options {
    const char *cluster;
    bool check, strict;
    unsigned char source[KNEE_KEYS_MAX];
};

static const struct knee_key rows[] = {
    KNEE_OPTION(struct fit_options, "cluster", KNEE_KEY_WORD, cluster, "Fit",
                "recognised from the logs",
                "cluster to start from: preset name, file or one line: '8xh100 * 16 @ ib400x8'"),
    KNEE_OPTION(struct fit_options, "check", KNEE_KEY_SWITCH, check, "Fit", "",
                "only check how well the logs are predicted"),
    KNEE_OPTION(struct fit_options, "strict", KNEE_KEY_SWITCH, strict, "Fit", "",
                "exit with status 3 if any file or row cannot be used"),
};

static const struct knee_keys fit_keys = KNEE_KEY_TABLE(rows, struct fit_options);

/* Where a fit starts: what is named, or what the logs look like, several nodes telling more. */
static knee_status find_prior(const struct knee_ask_question *q, const struct fit_options *options,
                              const struct knee_ask_logs *logs, struct knee_cluster *out,
                              struct knee_err *err)
{
    if (options->cluster)
        return knee_ask_read_cluster(q->ask, options->cluster, out, err);
    bool found = false;
    for (int several = 1; several >= 0 && !found; several--)
        for (size_t i = 0; i < logs->logs.count && !found; i++)
            if ((logs->logs.logs[i].nodes > 1) == several)
                found = knee_log_cluster(&logs->logs.logs[i], logs->about[i].hardware, out);
    if (!found)
        knee_log_cluster(&logs->logs.logs[0], NULL, out);
    return KNEE_OK;
}

static size_t refused(const struct knee_ask_logs *logs)
{
    size_t count = logs->unread;
    for (size_t i = 0; i < logs->logs.count; i++)
        count += logs->logs.logs[i].refused;
    return count;
}

/* The cluster file, beside the report. */
static knee_status write_cluster(struct knee_ask_question *q, const struct knee_check *check,
                                 struct knee_err *err)
{
    if (!q->output)
        return KNEE_OK;
    if (check->cluster_count == 0)
        return knee_fail(err, KNEE_INPUT, "", "no log has rows and a known number of ranks");
    struct knee_text *yaml = knee_ask_pulled(q->ask, q->output);
    if (yaml)
        knee_write_cluster(&check->clusters[0].cluster, yaml);
    if (!yaml || yaml->failed)
        return knee_fail(err, KNEE_SYSTEM, q->output, "out of memory for the output");
    return KNEE_OK;
}

static knee_status report(struct knee_ask_question *q, const struct fit_options *options,
                          const struct knee_ask_logs *logs, struct knee_err *err)
{
    struct knee_check check;
    struct knee_cluster prior;
    knee_status status = KNEE_OK;
    if (!options->check || options->cluster)
        status = find_prior(q, options, logs, &prior, err);
    if (!status)
        status = knee_check_logs(
            &(struct knee_log_view){logs->logs.logs, logs->logs.count, knee_ask_alloc(q->ask)},
            logs->about, options->check && !options->cluster ? NULL : &prior, &check, err);
    if (status)
        return status;
    if (!options->check)
        status = write_cluster(q, &check, err);
    if (!status) {
        ASK_ANSWER(q, &knee_fit_answer, &check);
        if (q->outs[0].format == KNEE_TEXT && logs->complaints.data)
            knee_text_puts(q->outs[0].text, logs->complaints.data);
    }
    knee_check_release(&check);
    return status;
}

static knee_status answer(struct knee_ask_question *q, struct knee_err *err)
{
    const struct fit_options *options = q->objects[0];
    struct knee_ask_logs logs;
    knee_status status =
        knee_ask_logs_read(q->ask, q->words, q->word_count, q->objects[1], &logs, err);
    if (status)
        return status;
    status = report(q, options, &logs, err);
    if (!status && options->strict && refused(&logs)) {
        status = knee_fail(err, KNEE_INPUT, "--strict", "%zu rows or files were refused",
                           refused(&logs));
        q->answered = true;
    }
    knee_ask_logs_release(&logs);
    return status;
}

struct fit_room {
    struct fit_options options;
    struct knee_ask_log_options logs;
};

static void init(void *room, void **objects)
{
    struct fit_room *all = room;
    knee_ask_log_options_init(&all->logs);
    objects[0] = &all->options;
    objects[1] = &all->logs;
}

const struct knee_ask_command knee_ask_fit = {
    .name = "fit",
    .keys = {&fit_keys, &knee_ask_log_keys},
    .most_words = ASK_WORDS,
    .operands = "LOG...",
    .takes_output = true,
    .size = sizeof(struct fit_room),
    .init = init,
    .answer = answer,
};
