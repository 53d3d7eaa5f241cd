/* SPDX-License-Identifier: MIT */
/* Lines of key = value into the objects of a command. */
#include "ask/ask.h"
#include "base/keys.h"
#include "base/spell.h"
#include "base/text.h"
#include "out/words.h"

#include <string.h>

bool knee_ask_takes(const char *const *only, const struct knee_key *key)
{
    if (!only)
        return true;
    while (*only && strcmp(*only, key->name) != 0)
        only++;
    return *only != NULL;
}

static bool is_choice(const struct knee_key *key, const char *text)
{
    for (size_t i = 0; key->choices && i < key->choices->count(); i++)
        if (strcmp(key->choices->name(i), text) == 0)
            return true;
    return false;
}

knee_status knee_ask_set(struct knee_ask *ask, const struct knee_keys *keys, void *object,
                         size_t row, const char *text, struct knee_err *err)
{
    const struct knee_key *key = &keys->rows[row];
    /* A preset goes before a file of its name; ./NAME is the file. */
    if (key->kind == KNEE_KEY_PARSED && !is_choice(key, text) && knee_ask_has(ask, text)) {
        knee_keys_source(keys, object)[row] = KNEE_FLAG;
        return knee_ask_read_cluster(ask, text, (void *)((char *)object + key->offset), err);
    }
    return knee_keys_set(keys, object, key->name, text, KNEE_FLAG, err);
}

/* ---- A question from lines ---- */

struct lines {
    const struct knee_ask_command *command;
    struct knee_ask_question question;
    const char **words;
};

static knee_status unknown(const struct knee_ask_command *command, const char *name,
                           struct knee_err *err)
{
    struct knee_nearest nearest = {.wanted = name};
    for (size_t i = 0; i < ASK_TABLES && command->keys[i]; i++)
        for (size_t row = 0; row < command->keys[i]->count; row++)
            if (knee_ask_takes(command->only[i], &command->keys[i]->rows[row]))
                knee_nearest_offer(&nearest, command->keys[i]->rows[row].name);
    knee_fail(err, KNEE_USAGE, "", "there is no option --%.60s", name);
    if (nearest.name)
        knee_hint(err, "did you mean --%s?", nearest.name);
    else
        knee_hint(err, "knee %s --help lists them", command->name);
    return KNEE_USAGE;
}

static knee_status add_word(struct lines *all, const char *word, struct knee_err *err)
{
    if (all->question.word_count == all->command->most_words) {
        knee_fail(err, KNEE_USAGE, "", "unexpected argument '%.60s'", word);
        knee_hint(err, "knee %s %s", all->command->name, all->command->operands);
        return KNEE_USAGE;
    }
    all->words[all->question.word_count++] = word;
    return KNEE_OK;
}

static knee_status set_key(struct lines *all, const char *name, const char *value,
                           struct knee_err *err)
{
    for (size_t i = 0; i < ASK_TABLES && all->command->keys[i]; i++) {
        const struct knee_keys *keys = all->command->keys[i];
        size_t row = knee_keys_find(keys, name);
        if (row == keys->count || !knee_ask_takes(all->command->only[i], &keys->rows[row]))
            continue;
        if (!value && keys->rows[row].kind == KNEE_KEY_SWITCH)
            value = "true";
        if (!value)
            return knee_fail(err, KNEE_USAGE, "", "--%s needs a value", keys->rows[row].name);
        return knee_ask_set(all->question.ask, keys, all->question.objects[i], row, value, err);
    }
    return unknown(all->command, name, err);
}

static char *trimmed(char *text)
{
    text += strspn(text, " \t");
    for (size_t n = strlen(text); n && strchr(" \t\r", text[n - 1]); n--)
        text[n - 1] = '\0';
    return text;
}

/* One line, which is cut up. */
static knee_status take_line(struct lines *all, char *line, struct knee_err *err)
{
    char *value = strchr(line, '=');
    if (value)
        *value++ = '\0';
    const char *name = trimmed(line);
    value = value ? trimmed(value) : NULL;
    if (!value && (!name[0] || name[0] == '#'))
        return KNEE_OK;
    if (value && strcmp(name, "word") == 0)
        return add_word(all, value, err);
    if (value && all->command->takes_output && strcmp(name, "output") == 0) {
        all->question.output = value;
        return KNEE_OK;
    }
    return set_key(all, name, value, err);
}

static knee_status take_lines(struct lines *all, char *rest, struct knee_err *err)
{
    knee_status status = KNEE_OK;
    while (rest && !status) {
        char *line = rest;
        rest = strchr(line, '\n');
        if (rest)
            *rest++ = '\0';
        status = take_line(all, line, err);
    }
    return status;
}

static const struct knee_ask_command *find_command(const struct knee_ask_command *const *commands,
                                                   const char *name, struct knee_err *err)
{
    struct knee_nearest nearest = {.wanted = name};
    for (; *commands; commands++) {
        if (strcmp((*commands)->name, name) == 0)
            return *commands;
        knee_nearest_offer(&nearest, (*commands)->name);
    }
    knee_fail(err, KNEE_USAGE, "", "there is no command '%.60s'", name);
    if (nearest.name)
        knee_hint(err, "did you mean 'knee %s'?", nearest.name);
    else
        knee_hint(err, "'knee --help' lists them");
    return NULL;
}

static size_t count_lines(const char *text)
{
    size_t count = 1;
    while ((text = strchr(text, '\n')))
        text++, count++;
    return count;
}

/* `room` holds the command's objects, `copy` the lines. */
static knee_status answer(struct lines *all, void *room, char *copy, struct knee_text *text,
                          struct knee_err *err)
{
    memset(room, 0, all->command->size ? all->command->size : 1);
    if (all->command->init)
        all->command->init(room, all->question.objects);
    all->question.words = all->words;
    knee_status status = take_lines(all, copy, err);
    if (!status)
        status = all->command->answer(&all->question, err);
    knee_finish_answer(text, all->question.outs[0].format, false);
    if (text->failed)
        status = knee_fail(err, KNEE_SYSTEM, "", "out of memory for the output");
    return status;
}

knee_status knee_ask_lines(struct knee_ask *ask, const struct knee_ask_asked *said,
                           struct knee_text *text, struct knee_err *err)
{
    const struct knee_alloc *alloc = knee_ask_alloc(ask);
    struct lines all = {.command = find_command(said->commands, said->command, err)};
    if (!all.command)
        return KNEE_USAGE;
    const char *lines = said->lines ? said->lines : "";
    all.question = (struct knee_ask_question){.ask = ask, .outs = {{said->format, text}}};
    size_t length = strlen(lines) + 1;
    char *copy = knee_resize(alloc, NULL, length);
    void *room = knee_resize(alloc, NULL, all.command->size ? all.command->size : 1);
    all.words = knee_resize(alloc, NULL, count_lines(lines) * sizeof *all.words);
    knee_status status = KNEE_SYSTEM;
    if (copy && room && all.words) {
        memcpy(copy, lines, length);
        status = answer(&all, room, copy, text, err);
    } else {
        knee_fail(err, status, "", "out of memory");
    }
    knee_resize(alloc, all.words, 0);
    knee_resize(alloc, room, 0);
    knee_resize(alloc, copy, 0);
    return status;
}
