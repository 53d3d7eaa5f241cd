/* SPDX-License-Identifier: MIT */
/* knee report: the page of what is named: traces, a log, a job file, or what knee --json printed.
 */
#include "base/error.h"
#include "base/json_values.h"
#include "cli/cli.h"
#include "cli/input_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HEAD = 4096 };

/* The command whose page a file becomes, by its kind (read/file_kinds.h). */
static const struct {
    const char *kind;
    const struct cli_command *command;
} pages[] = {
    {"collectives", &cli_collective}, {"job", &cli_predict}, {"training log", &cli_scale},
    {"trainer state", &cli_scale},    {"runs", &cli_scale},  {"operations", &cli_replay},
    {"NCCL log", &cli_doctor},
};

static const struct cli_command *command_of(const char *name)
{
    const struct knee_file_kind *kind = cli_file_kind(name);
    for (size_t i = 0; kind && i < sizeof pages / sizeof *pages; i++)
        if (strcmp(pages[i].kind, kind->name) == 0)
            return pages[i].command;
    return &cli_trace;
}

/* The first bytes of a file as a string; "" for a folder. */
static knee_status read_head(const char *name, char *head, struct knee_err *err)
{
    struct stat info;
    int fd = -1;
    head[0] = '\0';
    if (stat(name, &info) == 0 && S_ISDIR(info.st_mode))
        return KNEE_OK;
    knee_status status = cli_open(name, &fd, err);
    if (status)
        return status;
    ptrdiff_t came = knee_input_read(fd, head, HEAD);
    size_t got = came > 0 ? (size_t)came : 0;
    cli_close(fd);
    for (size_t i = 0; i < got; i++)
        if (!head[i])
            head[i] = ' ';
    head[got] = '\0';
    return KNEE_OK;
}

/* "trace" when the file begins as an answer of knee trace --json does; false: not an answer. */
static bool find_view(const char *head, char *view, size_t size)
{
    static const char start[] = "{\n  \"schema\": \"knee.";
    size_t length = strcspn(head + strnlen(head, sizeof start - 1), "/\"");
    if (strncmp(head, start, sizeof start - 1) != 0 || length == 0 || length >= size)
        return false;
    memcpy(view, head + sizeof start - 1, length);
    view[length] = '\0';
    return true;
}

/* The page would stop at text that is not JSON. */
static knee_status check_json(const char *name, const char *data, size_t length,
                              struct knee_err *err)
{
    struct knee_json_values values;
    knee_json_values_init(&values, data, length);
    while (knee_json_values_next(&values))
        ;
    if (!values.error && values.at == values.end)
        return KNEE_OK;
    return knee_fail_hint(err, KNEE_INPUT, name, "write it again with --json",
                          "not an answer of knee: line %zu: %s", knee_json_values_line(&values),
                          values.error ? values.error : "more than one value");
}

static knee_status take_answer(struct cli_run *run, const char *name)
{
    char *data = NULL;
    size_t length = 0;
    knee_status status = cli_read_file(name, (size_t)64 << 20, &data, &length, &run->err);
    while (!status && length && strchr(" \r\n", data[length - 1]))
        length--;
    if (!status && (length == 0 || data[length - 1] != '}')) {
        status = knee_fail(&run->err, KNEE_INPUT, name, "the answer does not end: it is cut off");
        knee_hint(&run->err, "write it again with --json");
    }
    if (!status)
        status = check_json(name, data, length, &run->err);
    if (!status)
        knee_text_add(&run->answer, data, length);
    free(data);
    return status;
}

/* Another command on the same words, for its page alone. */
static knee_status run_command(struct cli_run *run, const struct cli_command *command)
{
    static char against[] = "--against";
    char **arguments = calloc(run->word_count + 2, sizeof *arguments);
    if (!arguments)
        return knee_fail(&run->err, KNEE_SYSTEM, "", "out of memory");
    int count = 0;
    if (command == &cli_collective)
        arguments[count++] = against;
    for (size_t i = 0; i < run->word_count; i++)
        arguments[count++] = (char *)run->words[i];
    run->command = command;
    run->view = command->name;
    run->word_count = 0;
    knee_status status = (command->main ? command->main : cli_ask)(run, count, arguments);
    free(arguments);
    knee_text_release(&run->text);
    if (status == KNEE_GATE &&
        run->answered) { /* findings are an answer, and the page shows them */
        run->err = (struct knee_err){0};
        return KNEE_OK;
    }
    return status;
}

static knee_status find_answer(struct cli_run *run)
{
    static char view[32];
    char head[HEAD + 1];
    const char *name = run->words[0];
    knee_status status = read_head(name, head, &run->err);
    if (status)
        return status;
    if (find_view(head, view, sizeof view)) {
        run->view = view;
        return take_answer(run, name);
    }
    return run_command(run, command_of(name));
}

static knee_status report_main(struct cli_run *run, int argc, char **argv)
{
    knee_status status = cli_parse(run, argc, argv);
    if (status || run->common.help)
        return status;
    const char *page = run->common.html     ? run->common.html
                       : run->common.output ? run->common.output
                                            : "knee-report.html";
    run->common.html = page;
    run->common.output = NULL;
    if (run->word_count && (status = find_answer(run)))
        return status;
    run->common.html = page;
    knee_text_printf(&run->text, "Open %s in a browser.\n", page);
    return KNEE_OK;
}

const struct cli_command cli_report = {
    .name = "report",
    .operands = "[TRACE...|LOG|JOB.yaml|ANSWER.json]",
    .summary = "one HTML page that opens offline",
    .about =
        "Writes one HTML file that opens offline: for traces, training logs, nccl-tests logs, job "
        "files, or the --json output of any command. Without a name: the calculator alone.",
    .examples = "  knee report runs/ -o report.html\n"
                "  knee report job.yaml\n"
                "  knee validate runs.csv --json | tee runs.json; knee report runs.json\n",
    .most_words = CLI_WORDS,
    .main = report_main,
};
