/* SPDX-License-Identifier: MIT */
/* knee replay: what a recorded job would do with something changed. */
#include "base/error.h"
#include "base/keys.h"
#include "cli/traces.h"
#include "knee_replay.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct replay_options {
    const char *perfetto;
    unsigned char source[KNEE_KEYS_MAX];
};

static const struct knee_key rows[] = {
    {.name = "perfetto",
     .kind = KNEE_KEY_WORD,
     .offset = offsetof(struct replay_options, perfetto),
     .group = "Replay",
     .otherwise = "none",
     .help = "write the changed timeline for ui.perfetto.dev; knee trace reads it too"},
};

static const struct knee_keys replay_keys = KNEE_KEY_TABLE(rows, struct replay_options);

static knee_status write_timeline(const char *name, const struct knee_account *account,
                                  const struct knee_changes *changes, struct knee_err *err)
{
    struct knee_replayed replayed;
    struct knee_account after;
    knee_status status = knee_replay_timeline(account, changes, NULL, &replayed, err);
    if (status)
        return status;
    status = knee_account(replayed.traces, replayed.count, NULL, &after, err);
    if (!status) {
        status = cli_write_perfetto(name, &after, err);
        knee_account_release(&after);
    }
    knee_replayed_release(&replayed);
    return status;
}

static knee_status answer(struct cli_run *run, const struct replay_options *options,
                          const struct knee_changes *changes, const struct cli_traces *traces)
{
    struct knee_account account;
    struct knee_replay replay;
    knee_status status = knee_account(traces->traces, traces->count, NULL, &account, &run->err);
    if (status)
        return status;
    status = knee_replay(&account, changes, NULL, &replay, &run->err);
    if (!status) {
        struct knee_style style = cli_style(run);
        knee_write_replay_answer(&replay, cli_format(run), &style, &run->text);
        if (options->perfetto)
            status = write_timeline(options->perfetto, &account, changes, &run->err);
    }
    knee_account_release(&account);
    return status;
}

/* Traces without any GPU work may be a log of a pipeline's operations. */
static bool has_work(const struct cli_traces *traces)
{
    for (size_t i = 0; i < traces->count; i++)
        if (traces->traces[i].rank_count)
            return true;
    return false;
}

static knee_status read_op_log(const char *name, struct knee_op_log *log, struct knee_err *err)
{
    int fd = strcmp(name, "-") == 0 ? -1 : open(name, O_RDONLY | O_CLOEXEC);
    void *data = NULL;
    size_t length = 0;
    if (fd < 0)
        return knee_fail(err, KNEE_INPUT, name, "cannot be opened");
    knee_status status = knee_gunzip_all(cli_reader(&fd), (size_t)4 << 30, NULL, &data, &length);
    close(fd);
    if (status)
        return knee_fail(err, KNEE_INPUT, name, "cannot be unpacked");
    status = knee_op_log_read(data, length, name, NULL, log, err);
    free(data);
    return status;
}

static knee_status answer_op_log(struct cli_run *run)
{
    struct knee_op_log log;
    struct knee_slowdown slowdown;
    knee_status status = read_op_log(run->words[0], &log, &run->err);
    if (status)
        return status;
    status = knee_find_slowdown(&log, NULL, &slowdown, &run->err);
    if (!status) {
        struct knee_style style = cli_style(run);
        knee_write_slowdown(&slowdown, cli_format(run), &style, &run->text);
    }
    knee_op_log_release(&log);
    return status;
}

static knee_status replay_main(struct cli_run *run, int argc, char **argv)
{
    struct replay_options options = {0};
    struct knee_changes changes;
    struct knee_trace_options reading = {.host = true};
    struct knee_cluster cluster;
    struct cli_traces traces;
    knee_changes_init(&changes);
    run->objects[0] = &options;
    run->objects[1] = &changes;
    knee_status status = cli_parse(run, argc, argv);
    if (status || run->common.help)
        return status;
    if (run->word_count == 0) {
        knee_fail(&run->err, KNEE_USAGE, "", "no trace was named");
        knee_hint(&run->err, "name a folder or files, for example: knee replay runs/ --wire bf16");
        return KNEE_USAGE;
    }
    if (changes.cluster) {
        status = knee_ask_read_cluster(run->ask, changes.cluster, &cluster, &run->err);
        changes.on = &cluster;
    }
    if (!status)
        status =
            cli_traces_read(run->words, run->word_count, &reading, NULL, true, &traces, &run->err);
    if (status)
        return status;
    cli_traces_complain(&traces);
    if (run->word_count == 1 && !has_work(&traces) && answer_op_log(run) == KNEE_OK)
        status = KNEE_OK;
    else
        status = answer(run, &options, &changes, &traces);
    cli_traces_release(&traces);
    return status;
}

const struct cli_command cli_replay = {
    .name = "replay",
    .operands = "DIR|FILE...",
    .summary = "what a recorded job would do with something changed",
    .about = "Reads profiler traces of all ranks (PyTorch Kineto JSON), finds out what waited for "
             "what,\n"
             "and runs the job again with each change and with all of them together. Without "
             "changes:\n"
             "the standard table, the best that leaves training as it is first.",
    .examples = "  knee replay runs/\n"
                "  knee replay runs/ --wire bf16 --even --json\n"
                "  knee replay runs/ --bucket 100MB --network 2x --perfetto after.json\n",
    .keys = {&replay_keys, &knee_change_keys},
    .most_words = CLI_WORDS,
    .main = replay_main,
};
