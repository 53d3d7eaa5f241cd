/* SPDX-License-Identifier: MIT */
/* Help, man page and shell completion, all written from the command and key tables. */
#include "base/error.h"
#include "base/keys.h"
#include "cli/cli.h"
#include "out/words.h"

#include <string.h>

typedef void row_writer(const struct knee_key *key, struct knee_text *text);

/* Calls `heading` for each new group and `row` for each key, the common ones last. */
static void each_key(const struct cli_command *command,
                     void (*heading)(const char *group, struct knee_text *), row_writer *row,
                     struct knee_text *text)
{
    const char *group = "";
    for (size_t t = 0; t <= CLI_TABLES; t++) {
        const struct knee_keys *keys = t < CLI_TABLES ? cli_keys(command)[t] : &cli_common_keys;
        if (!keys)
            continue;
        for (size_t i = 0; i < keys->count; i++) {
            if (t < CLI_TABLES && !cli_takes(command, t, i))
                continue;
            if (heading && strcmp(group, keys->rows[i].group) != 0)
                heading(group = keys->rows[i].group, text);
            row(&keys->rows[i], text);
        }
    }
}

/* ---- Help ---- */

enum { NAME_WIDTH = 24 };

/* "  -n, --gpus LIST", what it means and its default, wrapped behind it. */
static void help_row(const struct knee_key *key, int width, struct knee_text *text)
{
    struct knee_text words = {.alloc = text->alloc}, lines = {.alloc = text->alloc};
    size_t start = text->length;
    const char *metavar = cli_metavar(key), *letter = cli_short_flag(key);
    knee_text_printf(text, "  %s%s--%s%s%s", letter, *letter ? ", " : "", cli_option(key),
                     *metavar ? " " : "", metavar);
    size_t used = text->length - start;
    bool default_known = key->otherwise[0] && strcmp(key->otherwise, "none") != 0;
    knee_text_printf(&words, "%s%s%s%s", key->help, default_known ? " [" : "",
                     default_known ? key->otherwise : "", default_known ? "]" : "");
    if (used > NAME_WIDTH)
        knee_text_puts(text, "\n");
    knee_text_repeat(text, " ", used > NAME_WIDTH ? NAME_WIDTH + 2 : NAME_WIDTH + 2 - used);
    knee_wrap(words.data ? words.data : "", width - NAME_WIDTH - 2, "", &lines);
    for (const char *line = lines.data; line && *line;) {
        size_t length = strcspn(line, "\n");
        if (line != lines.data)
            knee_text_repeat(text, " ", NAME_WIDTH + 2);
        knee_text_add(text, line, length);
        knee_text_puts(text, "\n");
        line += length + (line[length] != '\0');
    }
    text->failed = text->failed || words.failed || lines.failed;
    knee_text_release(&words);
    knee_text_release(&lines);
}

static bool is_common(const struct cli_command *command, const char *name)
{
    for (size_t i = 0; i < sizeof command->common / sizeof *command->common; i++)
        if (command->common[i] && strcmp(command->common[i], name) == 0)
            return true;
    return false;
}

static size_t count_rare(const struct cli_command *command)
{
    size_t rare = 0;
    for (size_t t = 0; t < CLI_TABLES && cli_keys(command)[t]; t++)
        for (size_t i = 0; i < cli_keys(command)[t]->count; i++)
            rare +=
                cli_takes(command, t, i) && !is_common(command, cli_keys(command)[t]->rows[i].name);
    return rare;
}

/* A group with its heading; `common`: only those options, in the command's order. */
static void help_common(const struct cli_command *command, int width, struct knee_text *text)
{
    knee_text_puts(text, "\nOptions:\n");
    for (size_t c = 0; c < sizeof command->common / sizeof *command->common; c++)
        for (size_t t = 0; command->common[c] && t < CLI_TABLES && cli_keys(command)[t]; t++) {
            size_t row = knee_keys_find(cli_keys(command)[t], command->common[c]);
            if (row < cli_keys(command)[t]->count && cli_takes(command, t, row))
                help_row(&cli_keys(command)[t]->rows[row], width, text);
        }
}

enum { HELP_ROWS = 256 };

/* Every option under its group; a group that several tables share is printed once. */
static void help_all(const struct cli_command *command, int width, struct knee_text *text)
{
    const struct knee_key *rows[HELP_ROWS];
    size_t count = 0;
    for (size_t t = 0; t <= CLI_TABLES; t++) {
        const struct knee_keys *keys = t < CLI_TABLES ? cli_keys(command)[t] : &cli_common_keys;
        for (size_t i = 0; keys && i < keys->count && count < HELP_ROWS; i++)
            if (t == CLI_TABLES || cli_takes(command, t, i))
                rows[count++] = &keys->rows[i];
    }
    for (size_t first = 0; first < count; first++) {
        const char *group = rows[first]->group;
        size_t before = 0;
        while (before < first && strcmp(rows[before]->group, group) != 0)
            before++;
        if (before < first)
            continue;
        knee_text_printf(text, "\n%s:\n", group);
        for (size_t i = first; i < count; i++)
            if (strcmp(rows[i]->group, group) == 0)
                help_row(rows[i], width, text);
    }
}

/* Paragraphs, wrapped. */
static void put_about(const char *about, int width, struct knee_text *text)
{
    for (size_t length; *about; about += length + (about[length] != '\0')) {
        struct knee_text one = {.alloc = text->alloc};
        length = strcspn(about, "\n");
        knee_text_add(&one, about, length);
        knee_wrap(one.data ? one.data : "", width, "", text);
        text->failed = text->failed || one.failed;
        knee_text_release(&one);
    }
}

void cli_help(const struct cli_command *command, bool all, int width, struct knee_text *text)
{
    size_t rare = count_rare(command);
    bool own = cli_keys(command)[0] != NULL;
    bool options_first = strncmp(command->operands, "--", 2) == 0;
    knee_text_printf(
        text, "usage: knee %s %s%s%s%s\n\n", command->name, options_first ? "" : command->operands,
        *command->operands && !options_first ? " " : "",
        options_first ? "[OPTION ...] " : "[OPTION ...]", options_first ? command->operands : "");
    put_about(command->about, width, text);
    if (*command->examples)
        knee_text_printf(text, "\nExamples:\n%s", command->examples);
    if (all || (own && !command->common[0])) {
        help_all(command, width, text);
        return;
    }
    help_common(command, width, text);
    knee_text_puts(text, "  -q, -v                  print three lines only; print everything\n"
                         "  --json, --csv, -o FILE  output for programs; write to a file\n");
    knee_text_printf(text, "\n[Defaults] are in brackets. All %zu options: knee %s --help-all\n",
                     rare + cli_common_keys.count, command->name);
}

/* The commands that a newcomer needs, by the question they answer. */
static const struct {
    const char *question, *commands[6];
} questions[] = {
    {"Before launch", {"plan", "predict"}},
    {"A recorded run", {"trace", "replay", "scale", "diff", "hang"}},
    {"A running job", {"run", "record", "watch"}},
    {"A cluster", {"doctor", "bench"}},
    {"Any answer", {"report"}},
};

static const struct cli_command *command_of(const char *name)
{
    for (size_t i = 0; name && cli_commands[i]; i++)
        if (strcmp(cli_commands[i]->name, name) == 0)
            return cli_commands[i];
    return NULL;
}

static void put_command(const struct cli_command *command, struct knee_text *text)
{
    if (command)
        knee_text_printf(text, "  %-12s %s\n", command->name, command->summary);
}

void cli_overview(bool all, struct knee_text *text)
{
    knee_text_puts(text, "usage: knee COMMAND [OPTION ...]\n\n"
                         "Find out why distributed training does not scale, and what to change.\n");
    if (all) {
        knee_text_puts(text, "\n");
        for (size_t i = 0; cli_commands[i]; i++)
            put_command(cli_commands[i], text);
    }
    for (size_t i = 0; !all && i < sizeof questions / sizeof *questions; i++) {
        knee_text_printf(text, "%s%s\n", i ? "" : "\n", questions[i].question);
        for (size_t c = 0; c < sizeof questions[i].commands / sizeof *questions[i].commands; c++)
            put_command(command_of(questions[i].commands[c]), text);
    }
    knee_text_printf(text,
                     "\nTry: knee plan -m llama3-8b -g h100 -n 64\n"
                     "knee COMMAND --help explains a command%s\n",
                     all ? "." : "; knee help --all lists all commands.");
}

/* ---- Man page ---- */

/* Text for roff: a hyphen that is one, and no line that looks like a request. */
static void roff(const char *string, struct knee_text *text)
{
    for (; *string; string++) {
        if (*string == '-')
            knee_text_puts(text, "\\-");
        else if (*string == '\\')
            knee_text_puts(text, "\\e");
        else
            knee_text_add(text, string, 1);
    }
}

static void man_heading(const char *group, struct knee_text *text)
{
    knee_text_printf(text, ".PP\n.I %s\n", group);
}

static void man_row(const struct knee_key *key, struct knee_text *text)
{
    const char *metavar = cli_metavar(key);
    const char *letter = cli_short_flag(key);
    knee_text_puts(text, ".TP\n.B ");
    if (*letter) {
        roff(letter, text);
        knee_text_puts(text, ", ");
    }
    knee_text_puts(text, "\\-\\-");
    roff(cli_option(key), text);
    if (*metavar) {
        knee_text_puts(text, " ");
        roff(metavar, text);
    }
    knee_text_puts(text, "\n");
    roff(key->help, text);
    if (key->otherwise[0]) {
        knee_text_puts(text, " [");
        roff(key->otherwise, text);
        knee_text_puts(text, "]");
    }
    knee_text_puts(text, "\n");
}

static const char man_status[] =
    ".SH EXIT STATUS\n"
    "0 success; 1 a check the user asked for failed; 2 wrong option or value; "
    "3 input cannot be used; 4 system error.\n";

/* knee-plan(1): one command's page. */
static void man_page(const struct cli_command *command, struct knee_text *text)
{
    knee_text_printf(text,
                     ".TH KNEE-%s 1 \"\" \"knee " KNEE_VERSION "\" \"User Commands\"\n"
                     ".SH NAME\nknee-%s \\- ",
                     command->name, command->name);
    roff(command->summary, text);
    knee_text_printf(text, "\n.SH SYNOPSIS\n.B knee %s\n", command->name);
    roff(command->operands, text);
    knee_text_puts(text, "\n[\\fIOPTION\\fR ...]\n.SH DESCRIPTION\n");
    roff(command->about, text);
    if (*command->examples) {
        knee_text_puts(text, "\n.SH EXAMPLES\n.nf\n");
        roff(command->examples, text);
        knee_text_puts(text, ".fi");
    }
    knee_text_puts(text, "\n.SH OPTIONS\n");
    each_key(command, man_heading, man_row, text);
    knee_text_printf(text, "%s.SH SEE ALSO\n.BR knee (1)\n", man_status);
}

static void man_command(const struct cli_command *command, struct knee_text *text)
{
    knee_text_printf(text, ".SS \"knee %s %s\"\n", command->name, command->operands);
    roff(command->about, text);
    knee_text_puts(text, "\n");
    if (*command->examples) {
        knee_text_puts(text, ".PP\n.nf\n");
        roff(command->examples, text);
        knee_text_puts(text, ".fi\n");
    }
    each_key(command, man_heading, man_row, text);
}

static knee_status man_main(struct cli_run *run, int argc, char **argv)
{
    knee_status status = cli_parse(run, argc, argv);
    if (status || run->common.help)
        return status;
    struct knee_text *text = &run->text;
    const struct cli_command *one = run->word_count ? command_of(run->words[0]) : NULL;
    if (run->word_count && !one) {
        knee_fail(&run->err, KNEE_USAGE, "", "no command '%.60s'", run->words[0]);
        knee_hint(&run->err, "knee help --all lists all commands");
        return KNEE_USAGE;
    }
    if (one) {
        man_page(one, text);
        return KNEE_OK;
    }
    knee_text_puts(text,
                   ".TH KNEE 1 \"\" \"knee " KNEE_VERSION "\" \"User Commands\"\n"
                   ".SH NAME\nknee \\- find out why distributed training does not scale, and what "
                   "to change\n.SH SYNOPSIS\n.B knee\n.I COMMAND\n[\\fIOPTION\\fR ...]\n"
                   ".SH COMMANDS\n");
    for (size_t i = 0; cli_commands[i]; i++)
        man_command(cli_commands[i], text);
    knee_text_puts(text, man_status);
    return KNEE_OK;
}

const struct cli_command cli_man = {
    .name = "man",
    .operands = "[COMMAND]",
    .summary = "print the manual page",
    .about = "Prints the manual page of knee or of one command as roff.",
    .examples = "  knee man plan | man -l -\n",
    .most_words = 1,
    .main = man_main,
};

/* ---- Completion ---- */

static void bash_row(const struct knee_key *key, struct knee_text *text)
{
    knee_text_printf(text, " --%s", cli_option(key));
}

static void bash_choices(const struct knee_key *key, struct knee_text *text)
{
    if (!key->choices)
        return;
    knee_text_printf(text, "    --%s) words=\"", cli_option(key));
    for (size_t i = 0; i < key->choices->count(); i++)
        knee_text_printf(text, "%s%s", i ? " " : "", key->choices->name(i));
    knee_text_puts(text, "\" ;;\n");
}

static void write_bash(struct knee_text *text)
{
    knee_text_puts(text,
                   "# bash completion for knee; made by: knee completion bash\n"
                   "_knee() {\n"
                   "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n"
                   "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    words=\"help");
    for (size_t i = 0; cli_commands[i]; i++)
        knee_text_printf(text, " %s", cli_commands[i]->name);
    knee_text_puts(text, "\"\n  else case $prev in\n");
    each_key(&cli_predict, NULL, bash_choices, text);
    knee_text_puts(text, "    *) case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; cli_commands[i]; i++) {
        knee_text_printf(text, "      %s) words=\"", cli_commands[i]->name);
        each_key(cli_commands[i], NULL, bash_row, text);
        knee_text_puts(text, "\" ;;\n");
    }
    knee_text_puts(text, "    esac ;;\n  esac; fi\n"
                         "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                         "}\n"
                         "complete -o default -F _knee knee\n");
}

static void zsh_row(const struct knee_key *key, struct knee_text *text)
{
    knee_text_printf(text, " \\\n        '--%s[", cli_option(key));
    for (const char *c = key->help; *c; c++) {
        if (strchr("[]:'\\", *c))
            knee_text_puts(text, *c == '\'' ? "'\\'" : "\\");
        knee_text_add(text, c, 1);
    }
    knee_text_puts(text, "]");
    if (key->choices) {
        knee_text_printf(text, ":%s:(", key->choices->what);
        for (size_t i = 0; i < key->choices->count(); i++)
            knee_text_printf(text, "%s%s", i ? " " : "", key->choices->name(i));
        knee_text_puts(text, ")");
    } else if (key->kind != KNEE_KEY_SWITCH) {
        knee_text_printf(
            text, ":%s:%s", cli_metavar(key),
            strcmp(cli_metavar(key), "FILE") == 0 || strcmp(cli_metavar(key), "DIR") == 0 ? "_files"
                                                                                          : "");
    }
    knee_text_puts(text, "'");
}

static void write_zsh(struct knee_text *text)
{
    knee_text_puts(text, "#compdef knee\n# zsh completion for knee; made by: knee completion zsh\n"
                         "_knee() {\n  if (( CURRENT == 2 )); then\n    compadd help");
    for (size_t i = 0; cli_commands[i]; i++)
        knee_text_printf(text, " %s", cli_commands[i]->name);
    knee_text_puts(text,
                   "\n    return\n  fi\n  local cmd=$words[2]\n  shift words; (( CURRENT-- ))\n"
                   "  case $cmd in\n");
    for (size_t i = 0; cli_commands[i]; i++) {
        knee_text_printf(text, "    %s)\n      _arguments", cli_commands[i]->name);
        each_key(cli_commands[i], NULL, zsh_row, text);
        knee_text_puts(text, " \\\n        '*:file:_files' ;;\n");
    }
    knee_text_puts(text, "  esac\n}\n_knee \"$@\"\n");
}

static void fish_description(const char *words, struct knee_text *text)
{
    knee_text_puts(text, " -d '");
    for (const char *c = words; *c; c++) {
        if (*c == '\'' || *c == '\\')
            knee_text_puts(text, "\\");
        knee_text_add(text, c, 1);
    }
    knee_text_puts(text, "'\n");
}

static const struct cli_command *fish_command; /* the row writers take no context */

static void fish_row(const struct knee_key *key, struct knee_text *text)
{
    knee_text_printf(text, "complete -c knee -n '__fish_seen_subcommand_from %s' -l %s",
                     fish_command->name, cli_option(key));
    if (key->choices) {
        knee_text_puts(text, " -x -a '");
        for (size_t i = 0; i < key->choices->count(); i++)
            knee_text_printf(text, "%s%s", i ? " " : "", key->choices->name(i));
        knee_text_puts(text, "'");
    } else if (key->kind != KNEE_KEY_SWITCH) {
        knee_text_puts(text, " -r");
    }
    fish_description(key->help, text);
}

static void write_fish(struct knee_text *text)
{
    knee_text_puts(text, "# fish completion for knee; made by: knee completion fish\n");
    for (size_t i = 0; cli_commands[i]; i++) {
        knee_text_printf(text, "complete -c knee -n __fish_use_subcommand -a %s",
                         cli_commands[i]->name);
        fish_description(cli_commands[i]->summary, text);
    }
    for (size_t i = 0; cli_commands[i]; i++) {
        fish_command = cli_commands[i];
        each_key(cli_commands[i], NULL, fish_row, text);
    }
}

static const struct {
    const char *name;
    void (*write)(struct knee_text *);
} shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};

static knee_status completion_main(struct cli_run *run, int argc, char **argv)
{
    knee_status status = cli_parse(run, argc, argv);
    if (status || run->common.help)
        return status;
    const char *shell = run->word_count ? run->words[0] : "";
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(shells[i].name, shell) == 0) {
            shells[i].write(&run->text);
            return KNEE_OK;
        }
    knee_fail(&run->err, KNEE_USAGE, "", "unknown shell");
    knee_hint(&run->err, "bash, zsh or fish");
    return KNEE_USAGE;
}

const struct cli_command cli_completion = {
    .name = "completion",
    .operands = "SHELL",
    .summary = "print a completion script for bash, zsh or fish",
    .about = "Prints a completion script for bash, zsh or fish.",
    .examples = "  . <(knee completion bash)\n",
    .most_words = 1,
    .main = completion_main,
};
