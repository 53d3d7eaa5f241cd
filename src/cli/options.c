/* SPDX-License-Identifier: MIT */
/* Flags: --name value, --name=value, --switch. The tables know what there is. */
#include "base/error.h"
#include "base/format.h"
#include "base/keys.h"
#include "base/number.h"
#include "base/spell.h"
#include "cli/cli.h"
#include "reach/runtime.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SWITCH(key_name, field, words)                                                             \
    KNEE_OPTION(struct cli_common, key_name, KNEE_KEY_SWITCH, field, "Output", "", words)

static const struct knee_key rows[] = {
    SWITCH("json", json, "print JSON with a versioned schema"),
    SWITCH("csv", csv, "print the table as CSV with exact numbers"),
    SWITCH("markdown", markdown, "print Markdown"),
    SWITCH("brief", brief, "print at most three lines: headline, reason, effect"),
    SWITCH("full", full, "print everything"),
    SWITCH("wide", wide, "do not wrap tables"),
    SWITCH("color", color, "always use colour (NO_COLOR=1 turns it off)"),
    SWITCH("ascii", ascii, "use ASCII characters only"),
    KNEE_OPTION(struct cli_common, "output", KNEE_KEY_WORD, output, "Output", "standard output",
                "write to this file"),
    KNEE_OPTION(struct cli_common, "html", KNEE_KEY_WORD, html, "Output", "none",
                "also write an HTML page that opens offline"),
    SWITCH("help", help, "show the common options"),
    SWITCH("help-all", help_all, "show all options"),
};

const struct knee_keys cli_common_keys = KNEE_KEY_TABLE(rows, struct cli_common);

/* What help prints for the value of an option; those not listed here take a FILE. */
static const struct {
    const char *key, *metavar;
} word_metavars[] = {
    {"for", "TARGET=VALUE"}, {"solve", "INPUT"},   {"bytes", "SIZES"},
    {"cluster", "CLUSTER"},  {"wire", "FORMAT"},   {"network", "FACTOR|free"},
    {"algorithm", "NAME"},   {"without", "RANKS"}, {"scale", "PATTERN=F"},
    {"when", "CONDITION"},   {"run", "COMMAND"},   {"listen", "[HOST:]PORT"},
    {"ras", "HOST[:PORT]"},  {"dir", "DIR"},       {"from", "DIR"},
    {"root", "DIR"},         {"save", "DIR"},      {"record", "DIR"},
    {"nccl", "VERSION"},     {"gpu", "NAME"},      {"on", "NAME"},
    {"curve", "NAME"},
};

const char *cli_metavar(const struct knee_key *key)
{
    switch (key->kind) {
    case KNEE_KEY_NUMBER:
        return key->unit == KNEE_UNIT_COUNT && key->min == 0 && key->max == 1
                   ? "0|1"
                   : knee_unit_metavar(key->unit);
    case KNEE_KEY_CHOICE: return "NAME";
    case KNEE_KEY_WORKERS: return "LIST";
    case KNEE_KEY_WORD:
        for (size_t i = 0; i < sizeof word_metavars / sizeof *word_metavars; i++)
            if (strcmp(key->name, word_metavars[i].key) == 0)
                return word_metavars[i].metavar;
        return "FILE";
    case KNEE_KEY_PARSED: return "CLUSTER";
    case KNEE_KEY_SWITCH: break;
    }
    return "";
}

/* Short flags, each with the option that it stands for. */
static const struct {
    const char *flag, *name;
} short_flags[] = {{"-o", "output"}, {"-q", "brief"}, {"-v", "full"}, {"-m", "model"},
                   {"-g", "gpu"},    {"-n", "gpus"},  {"-h", "help"}, {"-?", "help"}};

const char *cli_option(const struct knee_key *key)
{
    return strcmp(key->name, "workers") == 0 ? "gpus" : key->name;
}

const char *cli_short_flag(const struct knee_key *key)
{
    for (size_t i = 0; i < sizeof short_flags / sizeof *short_flags; i++)
        if (strcmp(short_flags[i].name, cli_option(key)) == 0)
            return short_flags[i].flag;
    return "";
}

const struct knee_keys *const *cli_keys(const struct cli_command *command)
{
    return command->ask ? command->ask->keys : command->keys;
}

bool cli_takes(const struct cli_command *command, size_t table, size_t row)
{
    return knee_ask_takes(command->ask ? command->ask->only[table] : command->only[table],
                          &cli_keys(command)[table]->rows[row]);
}

/* The table that has `name`, and its object. */
static const struct knee_keys *find_table(struct cli_run *run, const char *name, void **object)
{
    if (knee_keys_find(&cli_common_keys, name) < cli_common_keys.count) {
        *object = &run->common;
        return &cli_common_keys;
    }
    const struct knee_keys *const *keys = cli_keys(run->command);
    for (size_t i = 0; i < CLI_TABLES && keys[i]; i++) {
        size_t row = knee_keys_find(keys[i], name);
        if (row < keys[i]->count && cli_takes(run->command, i, row)) {
            *object = run->objects[i];
            return keys[i];
        }
    }
    return NULL;
}

/* Options that people know from other tools. */
static const char *instead_of(struct cli_run *run, const char *name)
{
    static const struct {
        const char *name, *needs, *hint;
    } others[] = {
        {"nodes", "workers", "count GPUs: 8 nodes of 8 are --gpus 64"},
        {"params", "model", "name the model: --model llama3-8b, or --hf config.json"},
        {"size", "bytes", "use --bytes, for example --bytes 1M"},
        {"batch", "global-batch", "use --global-batch (sequences) or --global-tokens"},
        {"batch-size", "global-batch", "use --global-batch (sequences) or --global-tokens"},
        {"batch-tokens", "global-tokens", "use --global-tokens"},
    };
    void *object;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i].name) == 0 && find_table(run, others[i].needs, &object))
            return others[i].hint;
    return NULL;
}

static knee_status unknown_option(struct cli_run *run, const char *name)
{
    struct knee_nearest nearest = {.wanted = name};
    const struct knee_keys *const *keys = cli_keys(run->command);
    for (size_t i = 0; i < CLI_TABLES && keys[i]; i++)
        for (size_t row = 0; row < keys[i]->count; row++)
            if (cli_takes(run->command, i, row))
                knee_nearest_offer(&nearest, keys[i]->rows[row].name);
    for (size_t row = 0; row < cli_common_keys.count; row++)
        knee_nearest_offer(&nearest, cli_common_keys.rows[row].name);
    knee_fail(&run->err, KNEE_USAGE, "", "there is no option --%.60s", name);
    const char *instead = instead_of(run, name);
    if (instead)
        knee_hint(&run->err, "%s", instead);
    else if (nearest.name)
        knee_hint(&run->err, "did you mean --%s?", nearest.name);
    else
        knee_hint(&run->err, "knee %s --help lists them", run->command->name);
    return KNEE_USAGE;
}

static const char *long_name(const char *flag)
{
    for (size_t i = 0; i < sizeof short_flags / sizeof *short_flags; i++)
        if (strcmp(flag, short_flags[i].flag) == 0)
            return short_flags[i].name;
    return strncmp(flag, "--", 2) == 0 ? flag + 2 : NULL;
}

/* One flag at argv[*at]; moves *at past a value that stands apart. */
static knee_status parse_flag(struct cli_run *run, int argc, char **argv, int *at)
{
    char name[64];
    const char *flag = long_name(argv[*at]), *value = strchr(flag, '=');
    size_t length = value ? (size_t)(value - flag) : strlen(flag);
    snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), flag);
    void *object = NULL;
    const struct knee_keys *keys = find_table(run, name, &object);
    if (!keys)
        return unknown_option(run, name);
    const struct knee_key *key = &keys->rows[knee_keys_find(keys, name)];
    if (value)
        value++;
    else if (key->kind == KNEE_KEY_SWITCH)
        value = "true";
    else if (*at + 1 < argc)
        value = argv[++*at];
    else {
        knee_fail(&run->err, KNEE_USAGE, "", "--%s needs a value", key->name);
        if (key->kind == KNEE_KEY_NUMBER)
            knee_hint(&run->err, "for example %s", knee_unit_example(key->unit));
        return KNEE_USAGE;
    }
    if (key->kind == KNEE_KEY_NUMBER && key->unit == KNEE_UNIT_BYTES_PER_S &&
        strspn(value, "0123456789.eE+-") == strlen(value)) {
        char where[80];
        knee_format(where, sizeof where, "--%s", key->name);
        knee_fail(&run->err, KNEE_USAGE, where, "'%.60s' needs a unit", value);
        knee_hint(&run->err, "for example 400Gb/s or 50GB/s");
        return KNEE_USAGE;
    }
    return knee_ask_set(run->ask, keys, object, knee_keys_find(keys, name), value, &run->err);
}

knee_status cli_parse(struct cli_run *run, int argc, char **argv)
{
    bool flags = true;
    size_t most_words =
        run->command->ask ? run->command->ask->most_words : run->command->most_words;
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i];
        knee_status status = KNEE_OK;
        if (flags && strcmp(arg, "--") == 0) {
            flags = false;
        } else if (flags && long_name(arg)) {
            status = parse_flag(run, argc, argv, &i);
        } else if (flags && arg[0] == '-' && arg[1]) {
            status = knee_fail(&run->err, KNEE_USAGE, "", "there is no option %.60s", arg);
            knee_hint(&run->err,
                      "short flags are -m -g -n -q -v -o -h; the others are spelled out");
        } else if (run->word_count == most_words) {
            status = knee_fail(&run->err, KNEE_USAGE, "", "unexpected argument '%.60s'", arg);
            knee_hint(&run->err, "knee %s %s", run->command->name, run->command->operands);
        } else {
            run->words[run->word_count++] = arg;
        }
        if (status)
            return status;
    }
    run->common.help = run->common.help || run->common.help_all;
    if (run->common.json + run->common.csv + run->common.markdown > 1) {
        knee_fail(&run->err, KNEE_USAGE, "", "more than one of --json, --csv and --markdown");
        knee_hint(&run->err, "keep one");
        return KNEE_USAGE;
    }
    return KNEE_OK;
}

enum knee_format cli_format(const struct cli_run *run)
{
    return run->common.json       ? KNEE_JSON
           : run->common.csv      ? KNEE_CSV
           : run->common.markdown ? KNEE_MARKDOWN
                                  : KNEE_TEXT;
}

static bool speaks_utf8(void)
{
    const char *locale = getenv("LC_ALL");
    if (!locale || !*locale)
        locale = getenv("LC_CTYPE");
    if (!locale || !*locale)
        locale = getenv("LANG");
    return locale && (strstr(locale, "UTF-8") || strstr(locale, "utf8") || strstr(locale, "utf-8"));
}

bool cli_progress(void)
{
    char path[64];
    if (isatty(STDERR_FILENO) || !knee_runtime_launched())
        return isatty(STDERR_FILENO);
    snprintf(path, sizeof path, "/proc/%ld/fd/2", (long)getppid());
    int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    bool terminal = fd >= 0 && isatty(fd);
    if (fd >= 0)
        close(fd);
    return terminal;
}

/* $COLUMNS where it is set and makes sense; 0: not. */
static int columns_asked(void)
{
    const char *columns = getenv("COLUMNS");
    int asked = columns ? atoi(columns) : 0;
    return asked >= 20 && asked <= 1000 ? asked : 0;
}

static int columns_of_terminal(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

struct knee_style cli_style(const struct cli_run *run)
{
    /* mpirun gives each rank a pseudo-terminal; where its output goes is unknown. */
    bool terminal = isatty(STDOUT_FILENO) && !run->common.output && !knee_runtime_launched();
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    struct knee_style style = {
        .ascii = run->common.ascii || !speaks_utf8(),
        .color = !(no_color && *no_color) &&
                 (run->common.color || (terminal && term && strcmp(term, "dumb") != 0)),
        .tier = run->common.brief  ? KNEE_TIER_BRIEF
                : run->common.full ? KNEE_TIER_FULL
                                   : KNEE_TIER_SCREEN,
    };
    int columns = columns_asked();
    if (columns == 0 && terminal)
        columns = columns_of_terminal();
    style.width = columns < 120 ? columns : 120;
    style.table_width = run->common.wide ? 0 : columns;
    if (run->common.brief)
        style.width = 1 << 16; /* one line each, for scripts */
    return style;
}

int cli_width(void)
{
    int columns = columns_asked();
    if (columns == 0 && isatty(STDOUT_FILENO))
        columns = columns_of_terminal();
    return columns ? columns : 80;
}
