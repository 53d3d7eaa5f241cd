/* SPDX-License-Identifier: MIT */
/* Help, man page and shell completion, all written from the command and key tables. */
#include "base/error.h"
#include "cli/cli.h"

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

static void help_heading(const char *group, struct knee_text *text)
{
    knee_text_printf(text, "\n%s:\n", group);
}

static void help_row(const struct knee_key *key, struct knee_text *text)
{
    size_t start = text->length;
    const char *metavar = cli_metavar(key);
    knee_text_printf(text, "  --%s%s%s", key->name, *metavar ? " " : "", metavar);
    size_t width = text->length - start;
    if (width < 29)
        knee_text_repeat(text, " ", 29 - width);
    knee_text_printf(text, " %s", key->help);
    if (key->otherwise[0])
        knee_text_printf(text, " [%s]", key->otherwise);
    knee_text_puts(text, "\n");
}

void cli_help(const struct cli_command *command, struct knee_text *text)
{
    knee_text_printf(text, "usage: knee %s %s%s[OPTION ...]\n\n%s\n", command->name,
                     command->operands, *command->operands ? " " : "", command->about);
    if (*command->examples)
        knee_text_printf(text, "\nExamples:\n%s", command->examples);
    each_key(command, help_heading, help_row, text);
}

void cli_overview(struct knee_text *text)
{
    knee_text_puts(text,
                   "usage: knee COMMAND [OPTION ...]\n\n"
                   "Where does the next worker stop paying, why, and what should be changed.\n\n");
    for (size_t i = 0; cli_commands[i]; i++)
        knee_text_printf(text, "  %-12s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    knee_text_puts(text,
                   "\nStart with one of these:\n"
                   "  knee predict --model llama3-8b --gpu h100    before launch: where to stop\n"
                   "  knee plan --model llama3-8b --gpu h100 --gpus 64    which split\n"
                   "  knee trace runs/    a recorded job: what is wrong, and what to do\n"
                   "  knee scale run.log    is my tokens/s normal?\n\n"
                   "knee COMMAND --help lists the options of a command, with examples.\n");
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
    knee_text_puts(text, ".TP\n.B \\-\\-");
    roff(key->name, text);
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
    knee_text_puts(text,
                   ".TH KNEE 1 \"\" \"knee " KNEE_VERSION "\" \"User Commands\"\n"
                   ".SH NAME\nknee \\- where does the next worker stop paying, why, and what "
                   "should be changed\n.SH SYNOPSIS\n.B knee\n.I COMMAND\n[\\fIOPTION\\fR ...]\n"
                   ".SH COMMANDS\n");
    for (size_t i = 0; cli_commands[i]; i++)
        man_command(cli_commands[i], text);
    knee_text_puts(text, ".SH EXIT STATUS\n"
                         "0 fine; 1 a limit that was set is not kept; 2 an option or a value is "
                         "wrong; 3 a file cannot be used; 4 the system refused.\n");
    return KNEE_OK;
}

const struct cli_command cli_man = {
    .name = "man",
    .operands = "",
    .summary = "the manual page, in roff",
    .about = "Writes the manual page. Read it with: knee man | man -l -",
    .examples = "",
    .main = man_main,
};

/* ---- Completion ---- */

static void bash_row(const struct knee_key *key, struct knee_text *text)
{
    knee_text_printf(text, " --%s", key->name);
}

static void bash_choices(const struct knee_key *key, struct knee_text *text)
{
    if (!key->choices)
        return;
    knee_text_printf(text, "    --%s) words=\"", key->name);
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
    knee_text_printf(text, " \\\n        '--%s[", key->name);
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
        knee_text_printf(text, ":%s:%s", cli_metavar(key),
                         strcmp(cli_metavar(key), "FILE") == 0 ? "_files" : "");
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
                     fish_command->name, key->name);
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
    knee_fail(&run->err, KNEE_USAGE, "", "no shell that there is completion for");
    knee_hint(&run->err, "bash, zsh or fish");
    return KNEE_USAGE;
}

const struct cli_command cli_completion = {
    .name = "completion",
    .operands = "SHELL",
    .summary = "completion for bash, zsh or fish",
    .about = "Writes a completion script for bash, zsh or fish.",
    .examples = "  . <(knee completion bash)\n",
    .most_words = 1,
    .main = completion_main,
};
