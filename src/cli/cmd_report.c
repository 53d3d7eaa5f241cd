/* SPDX-License-Identifier: MIT */
/* knee report: the page of what is named: traces, a log, a job file, or what knee --json printed.
 */
#include "base/error.h"
#include "base/json_values.h"
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HEAD = 4096 };

/* What a file is, by what stands in its first bytes. */
static const struct {
    const char *sign;
    const struct cli_command *command;
} signs[] = {
    {"traceEvents", &cli_trace},
    {"busbw", &cli_collective},
    {"algbw", &cli_collective},
    {"OSU MPI", &cli_collective},
};

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), wanted = strlen(end);
    return length >= wanted && strcmp(name + length - wanted, end) == 0;
}

/* The first bytes of a file as a string; "" for a folder. */
static knee_status read_head(const char *name, char *head, struct knee_err *err)
{
    struct stat info;
    FILE *file = stat(name, &info) == 0 ? fopen(name, "rb") : NULL;
    if (!file)
        return cli_cannot(name, "opened", err);
    size_t got = fread(head, 1, HEAD, file);
    fclose(file);
    for (size_t i = 0; i < got; i++)
        if (!head[i])
            head[i] = ' ';
    head[got] = '\0';
    return KNEE_OK;
}

/* "trace" when the file begins as an answer of knee trace --json does; false: it is no answer. */
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

/* The page would stand still over what is no JSON. */
static knee_status check_json(const char *name, const char *data, size_t length,
                              struct knee_err *err)
{
    struct knee_json_values values;
    knee_json_values_init(&values, data, length);
    while (knee_json_values_next(&values))
        ;
    if (!values.error && values.at == values.end)
        return KNEE_OK;
    knee_fail(err, KNEE_INPUT, name, "not an answer of knee: line %zu: %s",
              knee_json_values_line(&values), values.error ? values.error : "more than one value");
    knee_hint(err, "write it again with --json");
    return KNEE_INPUT;
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
    const struct cli_command *command =
        ends_with(name, ".yaml") || ends_with(name, ".yml") ? &cli_predict : &cli_trace;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strstr(head, signs[i].sign))
            command = signs[i].command;
    return run_command(run, command);
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
    .summary = "a page to look at, with sliders: one file that needs no network",
    .about =
        "Writes one HTML file that carries the answer and the core that made it: of traces, a\n"
        "log of nccl-tests, a job file, or what any command printed with --json. Without a\n"
        "name it is the calculator alone.",
    .examples = "  knee report runs/ -o report.html\n"
                "  knee report job.yaml\n"
                "  knee validate runs.csv --json | tee runs.json; knee report runs.json\n",
    .most_words = CLI_WORDS,
    .main = report_main,
};
