/* SPDX-License-Identifier: MIT */
/*
 * knee mcp: the commands as tools of the Model Context Protocol, so that an assistant quotes knee's
 * numbers instead of guessing them. JSON-RPC 2.0, one message a line on standard input and output.
 *
 * A call is this program started once more with the arguments as options: the answer is what a
 * person would get, whatever goes wrong in it ends with it, and an assistant can neither write a
 * file nor reach the network with the options that are offered.
 */
#include "base/error.h"
#include "base/keys.h"
#include "cli/cli.h"
#include "out/json.h"
#include "reach/runtime.h"
#include "read/value_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ARGUMENTS = 512,
    ANSWER_MAX = 8 << 20,
    INVALID = -32600,
    NO_METHOD = -32601,
    WRONG = -32602
};

/* Options that write files are not offered. */
static const char *const writes[] = {"perfetto", "chakra", "calibrate", "runs", "record"};

static bool offered(const struct cli_command *command, size_t table, size_t row)
{
    const struct knee_keys *keys = cli_keys(command)[table];
    bool good = cli_takes(command, table, row);
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++)
        good = good && strcmp(keys->rows[row].name, writes[i]) != 0;
    return good;
}

/* What the library answers. */
static bool is_tool(const struct cli_command *command)
{
    return command->ask != NULL;
}

/* ---- Messages ---- */

static void put_id(struct knee_json *json, const struct knee_tree *tree, uint32_t id)
{
    struct knee_slice text = knee_tree_text(tree, id);
    if (id == KNEE_TREE_NONE || tree->nodes[id].kind == KNEE_TREE_NULL)
        knee_json_number(json, "id", NAN);
    else if (tree->nodes[id].kind == KNEE_TREE_TEXT) {
        struct knee_text copy = {0};
        knee_text_add(&copy, text.at, text.length);
        knee_json_words(json, "id", &copy);
    } else
        knee_json_whole(json, "id", knee_tree_whole(tree, id, 0));
}

static void begin(struct knee_json *json, const struct knee_tree *tree, uint32_t id)
{
    knee_json_open_flat(json, NULL, '{');
    knee_json_string(json, "jsonrpc", "2.0");
    put_id(json, tree, id);
}

static void fail(struct knee_json *json, int code, const char *what)
{
    knee_json_open_flat(json, "error", '{');
    knee_json_whole(json, "code", code);
    knee_json_string(json, "message", what);
    knee_json_close(json, '}');
}

/* ---- tools/list ---- */

static void put_property(struct knee_json *json, const struct knee_key *key)
{
    enum { FEW = 40 };
    struct knee_text words = {0};
    knee_text_puts(&words, key->help);
    if (key->otherwise && key->otherwise[0])
        knee_text_printf(&words, " [%s]", key->otherwise);
    knee_json_open_flat(json, key->name, '{');
    knee_json_string(json, "type", key->kind == KNEE_KEY_SWITCH ? "boolean" : "string");
    knee_json_words(json, "description", &words);
    if (key->kind == KNEE_KEY_CHOICE && key->choices && key->choices->count() <= FEW) {
        knee_json_open_flat(json, "enum", '[');
        for (size_t i = 0; i < key->choices->count(); i++)
            knee_json_string(json, NULL, key->choices->name(i));
        knee_json_close(json, ']');
    }
    knee_json_close(json, '}');
}

static void put_files(struct knee_json *json, const char *operands)
{
    knee_json_open_flat(json, "files", '{');
    knee_json_string(json, "type", "array");
    knee_json_string(json, "description", operands);
    knee_json_open_flat(json, "items", '{');
    knee_json_string(json, "type", "string");
    knee_json_close(json, '}');
    knee_json_close(json, '}');
}

static void put_format(struct knee_json *json)
{
    knee_json_open_flat(json, "format", '{');
    knee_json_string(json, "type", "string");
    knee_json_string(json, "description",
                     "brief: headline, reason and effect; text: one screen; json: every number");
    knee_json_open_flat(json, "enum", '[');
    knee_json_string(json, NULL, "brief");
    knee_json_string(json, NULL, "text");
    knee_json_string(json, NULL, "json");
    knee_json_close(json, ']');
    knee_json_close(json, '}');
}

static void put_tool(struct knee_json *json, const struct cli_command *command)
{
    const char *operands = command->ask ? command->ask->operands : command->operands;
    knee_json_open_flat(json, NULL, '{');
    knee_json_string(json, "name", command->name);
    knee_json_string(json, "description", command->summary);
    knee_json_open_flat(json, "inputSchema", '{');
    knee_json_string(json, "type", "object");
    knee_json_open_flat(json, "properties", '{');
    if (operands && operands[0])
        put_files(json, operands);
    put_format(json);
    for (size_t t = 0; t < CLI_TABLES && cli_keys(command)[t]; t++)
        for (size_t i = 0; i < cli_keys(command)[t]->count; i++)
            if (offered(command, t, i))
                put_property(json, &cli_keys(command)[t]->rows[i]);
    knee_json_close(json, '}');
    knee_json_close(json, '}');
    knee_json_close(json, '}');
}

static void list_tools(struct knee_json *json)
{
    knee_json_open_flat(json, "result", '{');
    knee_json_open_flat(json, "tools", '[');
    for (size_t i = 0; cli_commands[i]; i++)
        if (is_tool(cli_commands[i]))
            put_tool(json, cli_commands[i]);
    knee_json_close(json, ']');
    knee_json_close(json, '}');
}

/* ---- tools/call ---- */

/* The command line of a call. */
struct call {
    const struct cli_command *command;
    char *arguments[ARGUMENTS];
    size_t count;
    struct knee_text text[ARGUMENTS];
    char wrong[160]; /* empty: nothing is */
};

static void add(struct call *call, const char *before, struct knee_slice text)
{
    struct knee_text *one = &call->text[call->count];
    if (call->count + 1 >= ARGUMENTS) {
        snprintf(call->wrong, sizeof call->wrong, "too many arguments");
        return;
    }
    knee_text_puts(one, before);
    knee_text_add(one, text.at, text.length);
    call->arguments[call->count++] = one->data;
    if (one->failed || !one->data)
        snprintf(call->wrong, sizeof call->wrong, "out of memory");
}

static const struct knee_key *key_of(const struct cli_command *command, const char *name)
{
    for (size_t t = 0; t < CLI_TABLES && cli_keys(command)[t]; t++)
        for (size_t i = 0; i < cli_keys(command)[t]->count; i++)
            if (offered(command, t, i) && knee_same_name(cli_keys(command)[t]->rows[i].name, name))
                return &cli_keys(command)[t]->rows[i];
    return NULL;
}

/* A number as it was written, a list with commas. */
static void add_value(struct call *call, const struct knee_tree *tree, uint32_t node,
                      struct knee_text *text)
{
    enum knee_tree_kind kind = tree->nodes[node].kind;
    if (kind == KNEE_TREE_TEXT) {
        struct knee_slice slice = knee_tree_text(tree, node);
        knee_text_add(text, slice.at, slice.length);
    } else if (kind == KNEE_TREE_NUMBER && tree->nodes[node].is_whole) {
        knee_text_printf(text, "%lld", (long long)tree->nodes[node].whole);
    } else if (kind == KNEE_TREE_NUMBER) {
        knee_text_printf(text, "%.17g", tree->nodes[node].number);
    } else if (kind == KNEE_TREE_LIST) {
        for (uint32_t n = knee_tree_first(tree, node); n != KNEE_TREE_NONE;
             n = knee_tree_next(tree, n)) {
            knee_text_puts(text, n == knee_tree_first(tree, node) ? "" : ",");
            if (tree->nodes[n].kind == KNEE_TREE_LIST || tree->nodes[n].kind == KNEE_TREE_MAP)
                snprintf(call->wrong, sizeof call->wrong, "a list inside a list");
            else
                add_value(call, tree, n, text);
        }
    } else {
        snprintf(call->wrong, sizeof call->wrong, "a value is neither text nor number");
    }
}

static void add_option(struct call *call, const struct knee_tree *tree, const char *name,
                       uint32_t node)
{
    const struct knee_key *key = key_of(call->command, name);
    struct knee_text option = {0};
    enum knee_tree_kind kind = tree->nodes[node].kind;
    if (!key) {
        snprintf(call->wrong, sizeof call->wrong, "%s has no option '%.60s'", call->command->name,
                 name);
        return;
    }
    if (kind == KNEE_TREE_NULL || kind == KNEE_TREE_FALSE)
        return;
    knee_text_printf(&option, "--%s", key->name);
    if (key->kind != KNEE_KEY_SWITCH || kind != KNEE_TREE_TRUE) {
        knee_text_puts(&option, "=");
        add_value(call, tree, node, &option);
    }
    add(call, "", (struct knee_slice){option.data, option.length});
    knee_text_release(&option);
}

static void add_format(struct call *call, struct knee_slice format)
{
    static const char *const names[][2] = {{"brief", "--brief"}, {"json", "--json"}, {"text", ""}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (format.length == strlen(names[i][0]) &&
            memcmp(format.at, names[i][0], format.length) == 0) {
            if (names[i][1][0])
                add(call, names[i][1], (struct knee_slice){"", 0});
            return;
        }
    snprintf(call->wrong, sizeof call->wrong, "format is brief, text or json");
}

static void add_arguments(struct call *call, const struct knee_tree *tree, uint32_t map)
{
    uint32_t files = KNEE_TREE_NONE;
    for (uint32_t n = knee_tree_first(tree, map); n != KNEE_TREE_NONE && !call->wrong[0];
         n = knee_tree_next(tree, n)) {
        struct knee_slice key = knee_tree_text(tree, tree->nodes[n].key);
        char name[64] = "";
        memcpy(name, key.at, key.length < sizeof name ? key.length : sizeof name - 1);
        if (strcmp(name, "files") == 0)
            files = n;
        else if (strcmp(name, "format") == 0)
            add_format(call, knee_tree_text(tree, n));
        else
            add_option(call, tree, name, n);
    }
    if (files == KNEE_TREE_NONE)
        return;
    add(call, "--", (struct knee_slice){"", 0});
    if (tree->nodes[files].kind == KNEE_TREE_TEXT)
        add(call, "", knee_tree_text(tree, files));
    for (uint32_t n = knee_tree_first(tree, files); n != KNEE_TREE_NONE && !call->wrong[0];
         n = knee_tree_next(tree, n))
        add(call, "", knee_tree_text(tree, n));
}

/* Both ends until both are closed; what is too much is thrown away. */
static void drain(int out, int errors, struct knee_text *text, struct knee_text *complaint)
{
    struct pollfd ends[2] = {{.fd = out, .events = POLLIN}, {.fd = errors, .events = POLLIN}};
    struct knee_text *into[2] = {text, complaint};
    char buffer[65536];
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        if (poll(ends, 2, -1) < 0 && errno != EINTR)
            return;
        for (int i = 0; i < 2; i++) {
            if (ends[i].fd < 0 || !ends[i].revents)
                continue;
            ssize_t got = read(ends[i].fd, buffer, sizeof buffer);
            if (got <= 0 && !(got < 0 && errno == EINTR))
                ends[i].fd = -1;
            else if (got > 0 && into[i]->length < ANSWER_MAX)
                knee_text_add(into[i], buffer, (size_t)got);
        }
    }
}

static void become(struct call *call, const char *self, const int *ends)
{
    int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[3], STDERR_FILENO);
    for (int i = 0; i < 4; i++)
        close(ends[i]);
    execv(self, call->arguments);
    _exit(KNEE_SYSTEM);
}

/* The exit status, or -1 when it could not be started. */
static int start(struct call *call, struct knee_text *text, struct knee_text *complaint)
{
    char self[PATH_MAX];
    int ends[4], status = 0;
    if (!knee_runtime_program(self, sizeof self) || pipe(ends) != 0)
        return -1;
    if (pipe(ends + 2) != 0) {
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    pid_t child = fork();
    if (child == 0)
        become(call, self, ends);
    close(ends[1]);
    close(ends[3]);
    if (child > 0)
        drain(ends[0], ends[2], text, complaint);
    close(ends[0]);
    close(ends[2]);
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void put_text(struct knee_json *json, struct knee_text *text)
{
    knee_json_open_flat(json, NULL, '{');
    knee_json_string(json, "type", "text");
    knee_json_words(json, "text", text);
    knee_json_close(json, '}');
}

static void put_result(struct knee_json *json, struct call *call)
{
    struct knee_text text = {0}, complaint = {0};
    int status = start(call, &text, &complaint);
    bool good = status == KNEE_OK || status == KNEE_GATE;
    if (status < 0 && !complaint.length)
        knee_text_puts(&complaint, "knee could not be started");
    knee_json_open_flat(json, "result", '{');
    knee_json_open_flat(json, "content", '[');
    if (text.length)
        put_text(json, &text);
    if (complaint.length)
        put_text(json, &complaint);
    knee_json_close(json, ']');
    knee_json_bool(json, "isError", !good);
    knee_json_close(json, '}');
    knee_text_release(&text);
    knee_text_release(&complaint);
}

static const struct cli_command *tool_of(struct knee_slice name)
{
    for (size_t i = 0; cli_commands[i]; i++)
        if (is_tool(cli_commands[i]) && strlen(cli_commands[i]->name) == name.length &&
            memcmp(cli_commands[i]->name, name.at, name.length) == 0)
            return cli_commands[i];
    return NULL;
}

static void call_tool(struct knee_json *json, const struct knee_tree *tree, uint32_t params)
{
    struct call *call = calloc(1, sizeof *call);
    const struct cli_command *command =
        tool_of(knee_tree_text(tree, knee_tree_get(tree, params, "name")));
    if (!call || !command) {
        fail(json, WRONG, call ? "there is no such tool" : "out of memory");
        free(call);
        return;
    }
    call->command = command;
    add(call, "knee", (struct knee_slice){"", 0});
    add(call, command->name, (struct knee_slice){"", 0});
    uint32_t arguments = knee_tree_get(tree, params, "arguments");
    if (arguments != KNEE_TREE_NONE)
        add_arguments(call, tree, arguments);
    if (call->wrong[0])
        fail(json, WRONG, call->wrong);
    else
        put_result(json, call);
    for (size_t i = 0; i < call->count; i++)
        knee_text_release(&call->text[i]);
    free(call);
}

/* ---- The rest of the protocol ---- */

static void initialize(struct knee_json *json)
{
    knee_json_open_flat(json, "result", '{');
    knee_json_string(json, "protocolVersion", "2025-06-18");
    knee_json_open_flat(json, "capabilities", '{');
    knee_json_open_flat(json, "tools", '{');
    knee_json_close(json, '}');
    knee_json_close(json, '}');
    knee_json_open_flat(json, "serverInfo", '{');
    knee_json_string(json, "name", "knee");
    knee_json_string(json, "version", KNEE_VERSION);
    knee_json_close(json, '}');
    knee_json_string(json, "instructions",
                     "Sizes training jobs (plan, predict), reads recorded ones (trace, replay, "
                     "diff, scale) and cluster outputs (doctor). Quote the numbers as they are.");
    knee_json_close(json, '}');
}

static bool says(struct knee_slice method, const char *name)
{
    return method.length == strlen(name) && memcmp(method.at, name, method.length) == 0;
}

static void answer(const struct knee_tree *tree, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    uint32_t id = knee_tree_get(tree, 0, "id"), params = knee_tree_get(tree, 0, "params");
    struct knee_slice method = knee_tree_text(tree, knee_tree_get(tree, 0, "method"));
    if (id == KNEE_TREE_NONE && method.length)
        return; /* a notification */
    begin(&json, tree, id);
    if (says(method, "initialize"))
        initialize(&json);
    else if (says(method, "tools/list"))
        list_tools(&json);
    else if (says(method, "tools/call"))
        call_tool(&json, tree, params);
    else if (says(method, "ping")) {
        knee_json_open_flat(&json, "result", '{');
        knee_json_close(&json, '}');
    } else
        fail(&json, method.length ? NO_METHOD : INVALID,
             method.length ? "there is no such method" : "no method");
    knee_json_close(&json, '}');
}

static knee_status serve(struct knee_err *err)
{
    enum { PARSE = -32700 };
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    knee_status status = KNEE_OK;
    while (!status && (length = getline(&line, &capacity, stdin)) > 0) {
        struct knee_tree tree = {0};
        struct knee_text text = {0};
        if (strspn(line, " \t\r\n") == (size_t)length)
            continue;
        if (knee_tree_json(&tree, line, (size_t)length, "standard input", NULL)) {
            struct knee_json json = {.text = &text};
            begin(&json, &tree, KNEE_TREE_NONE);
            fail(&json, PARSE, "not JSON");
            knee_json_close(&json, '}');
        } else {
            answer(&tree, &text);
        }
        if (text.failed)
            status = knee_fail(err, KNEE_SYSTEM, "", "out of memory");
        else if (text.length && (fwrite(text.data, 1, text.length, stdout) != text.length ||
                                 (text.data[text.length - 1] != '\n' && putchar('\n') == EOF) ||
                                 fflush(stdout) != 0))
            status = knee_fail(err, KNEE_SYSTEM, "", "cannot be written: %s", strerror(errno));
        knee_text_release(&text);
        knee_tree_release(&tree);
    }
    free(line);
    return status;
}

static knee_status mcp_main(struct cli_run *run, int argc, char **argv)
{
    knee_status status = cli_parse(run, argc, argv);
    return status || run->common.help ? status : serve(&run->err);
}

const struct cli_command cli_mcp = {
    .name = "mcp",
    .operands = "",
    .summary = "serve the Model Context Protocol on standard input",
    .about =
        "Serves the Model Context Protocol over standard input and output (JSON-RPC, one message "
        "per line): tools/list lists the commands with their options, tools/call runs one. "
        "It writes no files and opens no connections.",
    .examples = "  knee mcp < requests.jsonl\n",
    .main = mcp_main,
};
