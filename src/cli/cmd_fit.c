/* SPDX-License-Identifier: MIT */
/* knee fit: a cluster file from logs; knee fit --check: how well logs are predicted. */
#include "base/error.h"
#include "base/keys.h"
#include "cli/logs.h"

#include <stdio.h>
#include <string.h>

struct fit_options {
    const char *cluster;
    bool check, strict;
    unsigned char source[KNEE_KEYS_MAX];
};

static const struct knee_key rows[] = {
    {.name = "cluster",
     .kind = KNEE_KEY_WORD,
     .offset = offsetof(struct fit_options, cluster),
     .group = "Fit",
     .otherwise = "what the logs, their names and the index say",
     .help = "where the fit starts: a preset, a file, or '8xh100 * 16 @ ib400x8'"},
    {.name = "check",
     .kind = KNEE_KEY_SWITCH,
     .offset = offsetof(struct fit_options, check),
     .group = "Fit",
     .otherwise = "",
     .help = "only say how well the logs, of any clusters, are predicted"},
    {.name = "strict",
     .kind = KNEE_KEY_SWITCH,
     .offset = offsetof(struct fit_options, strict),
     .group = "Fit",
     .otherwise = "",
     .help = "exit with 3 when a row or a file was refused"},
};

static const struct knee_keys fit_keys = KNEE_KEY_TABLE(rows, struct fit_options);

/* Where a fit starts: what is named, or what the logs look like, several nodes telling more. */
static knee_status find_prior(struct cli_run *run, const struct fit_options *options,
                              const struct cli_logs *logs, struct knee_cluster *out)
{
    if (options->cluster)
        return cli_read_cluster(run, options->cluster, out);
    bool found = false;
    for (int several = 1; several >= 0 && !found; several--)
        for (size_t i = 0; i < logs->logs.count && !found; i++)
            if ((logs->logs.logs[i].nodes > 1) == several)
                found = knee_log_cluster(&logs->logs.logs[i], logs->about[i].hardware, out);
    if (!found)
        knee_log_cluster(&logs->logs.logs[0], NULL, out);
    return KNEE_OK;
}

static size_t refused(const struct cli_logs *logs)
{
    size_t count = logs->unread;
    for (size_t i = 0; i < logs->logs.count; i++)
        count += logs->logs.logs[i].refused;
    return count;
}

/* The cluster file; the report goes on to standard output. */
static knee_status write_cluster(struct cli_run *run, const struct knee_check *check)
{
    struct knee_text yaml = {0};
    if (!run->common.output)
        return KNEE_OK;
    if (check->cluster_count == 0)
        return knee_fail(&run->err, KNEE_INPUT, "", "no log has rows and a known number of ranks");
    knee_write_cluster(&check->clusters[0].cluster, KNEE_TEXT, &yaml);
    knee_status status = cli_write_file(run->common.output, &yaml, &run->err);
    knee_text_release(&yaml);
    run->common.output = NULL;
    return status;
}

static knee_status report(struct cli_run *run, const struct fit_options *options,
                          const struct cli_logs *logs)
{
    struct knee_check check;
    struct knee_cluster prior;
    knee_status status = KNEE_OK;
    if (!options->check || options->cluster)
        status = find_prior(run, options, logs, &prior);
    if (!status)
        status = knee_check_logs(logs->logs.logs, logs->about, logs->logs.count,
                                 options->check && !options->cluster ? NULL : &prior, NULL, &check,
                                 &run->err);
    if (status)
        return status;
    if (!options->check)
        status = write_cluster(run, &check);
    struct knee_style style = cli_style(run);
    if (!status) {
        knee_write_check(&check, cli_format(run), &style, &run->text);
        if (run->common.html)
            knee_write_check(&check, KNEE_JSON, &style, &run->answer);
        if (cli_format(run) == KNEE_TEXT && logs->complaints.data)
            knee_text_puts(&run->text, logs->complaints.data);
    }
    knee_check_release(&check);
    return status;
}

static knee_status fit_main(struct cli_run *run, int argc, char **argv)
{
    struct fit_options options = {0};
    struct cli_log_options log_options;
    struct cli_logs logs;
    cli_log_options_init(&log_options);
    run->objects[0] = &options;
    run->objects[1] = &log_options;
    knee_status status = cli_parse(run, argc, argv);
    if (status || run->common.help)
        return status;
    if ((status = cli_logs_read(run->words, run->word_count, &log_options, &logs, &run->err)))
        return status;
    status = report(run, &options, &logs);
    if (!status && options.strict && refused(&logs))
        status = KNEE_INPUT;
    cli_logs_release(&logs);
    return status;
}

const struct cli_command cli_fit = {
    .name = "fit",
    .operands = "LOG...",
    .summary = "a cluster file from the logs of nccl-tests and others, and how far to trust it",
    .about =
        "Reads logs of nccl-tests (text of every era, JSON), rccl-tests, OSU, knee bench or CSV,\n"
        "all of one cluster, and fits latencies, rates and protocols to them, with their\n"
        "uncertainty; -o writes the cluster file. With --check the logs may be of any clusters:\n"
        "it says how well sizes that were left out, and other logs, are predicted.",
    .examples = "  knee fit all_reduce_16.log all_gather_16.log -o cluster.yaml\n"
                "  knee fit --check logs/*.log --json\n"
                "  knee collective all_reduce --ranks 64 --cluster cluster.yaml\n",
    .keys = {&fit_keys, &cli_log_keys},
    .most_words = CLI_WORDS,
    .main = fit_main,
};
