/* SPDX-License-Identifier: MIT */
/* knee: picks the command, prints its text or one line of error, and exits with its status. */
#include "base/error.h"
#include "base/hash.h"
#include "base/spell.h"
#include "cli/cli.h"
#include "cli/input_files.h"
#include "reach/stop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct cli_command *const cli_commands[] = {
    &cli_predict, &cli_plan,    &cli_scale,      &cli_validate, &cli_trace,   &cli_replay,
    &cli_diff,    &cli_tax,     &cli_collective, &cli_fit,      &cli_cluster, &cli_report,
    &cli_bench,   &cli_lab,     &cli_doctor,     &cli_record,   &cli_watch,   &cli_live,
    &cli_capture, &cli_list,    &cli_schema,     &cli_example,  &cli_man,     &cli_completion,
    &cli_hang,    &cli_run_job, &cli_mcp,        &cli_version,  NULL,
};

static const struct cli_command *find_command(const char *name)
{
    for (size_t i = 0; cli_commands[i]; i++)
        if (strcmp(cli_commands[i]->name, name) == 0)
            return cli_commands[i];
    return NULL;
}

static knee_status no_such_command(struct cli_run *run, const char *name)
{
    struct knee_nearest nearest = {.wanted = name};
    for (size_t i = 0; cli_commands[i]; i++)
        knee_nearest_offer(&nearest, cli_commands[i]->name);
    knee_fail(&run->err, KNEE_USAGE, "", "there is no command '%.60s'", name);
    if (nearest.name)
        knee_hint(&run->err, "did you mean 'knee %s'?", nearest.name);
    else
        knee_hint(&run->err, "'knee --help' lists them");
    return KNEE_USAGE;
}

/* knee, knee help, knee --help, knee help COMMAND, knee COMMAND ... */
static knee_status dispatch(struct cli_run *run, int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "help";
    bool help = strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
    if (strcmp(name, "--version") == 0)
        name = "version";
    if (help && argc > 2) {
        run->common.help = true;
        name = argv[2];
    } else if (help) {
        cli_overview(false, &run->text);
        return argc > 1 ? KNEE_OK : KNEE_USAGE;
    }
    if (help && (strcmp(name, "--all") == 0 || strcmp(name, "-a") == 0)) {
        cli_overview(true, &run->text);
        return KNEE_OK;
    }
    run->command = find_command(name);
    if (!run->command)
        return no_such_command(run, name);
    if (run->common.help) {
        cli_help(run->command, false, cli_width(), &run->text);
        return KNEE_OK;
    }
    return (run->command->main ? run->command->main : cli_ask)(run, argc - 2, argv + 2);
}

static void print_error(const struct knee_err *err)
{
    fprintf(stderr, "knee: %s%s%s%s%s\n", err->where, err->where[0] ? ": " : "", err->what,
            err->hint[0] ? "; " : "", err->hint);
}

int main(int argc, char **argv)
{
    struct cli_run run = {.typed = argv};
    run.words = calloc((size_t)argc + 1, sizeof *run.words);
    run.ask = cli_ask_open();
    if (!run.words || !run.ask) {
        fputs("knee: out of memory\n", stderr);
        free(run.words);
        return KNEE_SYSTEM;
    }
    for (int i = 1; i < argc; i++)
        run.asked = knee_hash_add(run.asked ^ KNEE_HASH_START, argv[i], strlen(argv[i]) + 1);
    knee_status status = dispatch(&run, argc, argv);
    if (run.common.help && !status && run.command && !run.text.length)
        cli_help(run.command, run.common.help_all, cli_width(), &run.text);
    if (!run.quiet && (!run.err.what[0] || status == KNEE_GATE || run.answered)) {
        knee_status printed = cli_print(&run);
        status = printed ? printed : status;
    }
    if (run.common.html && !run.quiet && (!status || status == KNEE_GATE || run.answered)) {
        knee_status written = cli_write_page(&run);
        status = written ? written : status;
    }
    if ((status == KNEE_INPUT || status == KNEE_USAGE) && !run.quiet && !run.answered)
        cli_name_right_command(&run, &run.err);
    if (run.err.what[0] && !run.quiet)
        print_error(&run.err);
    /* A launcher ends all ranks when one fails, with a signal: the rank that speaks ends first, and
     * the silent ones wait for that signal, a second at most. */
    if (run.quiet && status)
        knee_stop_sleep(1);
    knee_ask_end(run.ask);
    knee_text_release(&run.text);
    knee_text_release(&run.answer);
    knee_text_release(&run.trace);
    free(run.words);
    return knee_stop_signal() ? 128 + knee_stop_signal() : (int)status;
}
