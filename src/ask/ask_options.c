/* SPDX-License-Identifier: MIT */
/*
 * options: the commands that can be asked and what each takes, from the tables that the program's
 * flags come from. The page builds its forms from it, Python its signatures, knee mcp its tools.
 */
#include "ask/ask.h"

#include "base/number.h"
#include "out/json.h"

static const char *unit_name(enum knee_unit unit)
{
    static const char *const names[KNEE_UNITS] = {"count", "factor",  "fraction", "seconds",
                                                  "bytes", "bytes/s", "flop/s",   "/s",
                                                  "watts", "dollars", "joules"};
    return names[unit];
}

static void put_choices(struct knee_json *json, const struct knee_choices *choices)
{
    knee_json_open_flat(json, "choices", '[');
    for (size_t c = 0; c < choices->count(); c++)
        knee_json_string(json, NULL, choices->name(c));
    knee_json_close(json, ']');
}

static void put_option(struct knee_json *json, const struct knee_key *key)
{
    static const char *const kinds[] = {
        [KNEE_KEY_NUMBER] = "number", [KNEE_KEY_CHOICE] = "choice", [KNEE_KEY_WORKERS] = "workers",
        [KNEE_KEY_SWITCH] = "switch", [KNEE_KEY_WORD] = "word",     [KNEE_KEY_PARSED] = "choice"};
    bool number = key->kind == KNEE_KEY_NUMBER;
    knee_json_open_flat(json, NULL, '{');
    knee_json_string(json, "name", key->name);
    knee_json_string(json, "kind", kinds[key->kind]);
    knee_json_string(json, "unit", number ? unit_name(key->unit) : "");
    knee_json_string(json, "example", number ? knee_unit_example(key->unit) : "");
    knee_json_string(json, "group", key->group);
    knee_json_string(json, "otherwise", key->otherwise);
    knee_json_string(json, "help", key->help);
    if (key->choices)
        put_choices(json, key->choices);
    knee_json_close(json, '}');
}

static void put_command(struct knee_json *json, const struct knee_ask_command *command)
{
    knee_json_open(json, NULL, '{');
    knee_json_string(json, "name", command->name);
    knee_json_string(json, "operands", command->operands);
    knee_json_bool(json, "output", command->takes_output);
    knee_json_open(json, "options", '[');
    for (size_t t = 0; t < ASK_TABLES && command->keys[t]; t++)
        for (size_t i = 0; i < command->keys[t]->count; i++)
            if (knee_ask_takes(command->only[t], &command->keys[t]->rows[i]))
                put_option(json, &command->keys[t]->rows[i]);
    knee_json_close(json, ']');
    knee_json_close(json, '}');
}

void knee_ask_put_options(const struct knee_ask_command *const *commands, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.options/1");
    knee_json_string(&json, "version", KNEE_VERSION);
    knee_json_open(&json, "commands", '[');
    for (; *commands; commands++)
        put_command(&json, *commands);
    knee_json_close(&json, ']');
    knee_json_close(&json, '}');
}

static knee_status answer(struct knee_ask_question *q, struct knee_err *err)
{
    (void)err;
    knee_ask_put_options(knee_ask_commands, q->outs[0].text);
    return KNEE_OK;
}

const struct knee_ask_command knee_ask_options = {.name = "options", .answer = answer};
