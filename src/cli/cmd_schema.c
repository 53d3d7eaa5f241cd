/* SPDX-License-Identifier: MIT */
/* knee schema: the keys of every answer. docs/reference/keys.md is its output. */
#include "base/error.h"
#include "cli/cli.h"
#include "out/answer.h"

#include <string.h>

static knee_status schema_main(struct cli_run *run, int argc, char **argv)
{
    knee_status status = cli_parse(run, argc, argv);
    if (status || run->common.help)
        return status;
    const char *wanted = run->word_count ? run->words[0] : NULL;
    size_t found = 0;
    if (!wanted && !run->common.json)
        knee_text_puts(&run->text,
                       "# Keys of the JSON answers\n\nMade by `knee schema`. Every answer also has "
                       "`schema` and `answer` (`title`, `void`, `headline`, `reason`, `effect`, "
                       "`after`, `assumed`, `next`, `notes`).\n\n");
    for (size_t i = 0; knee_answer_types[i]; i++) {
        const struct knee_answer_type *type = knee_answer_types[i];
        if (wanted && strcmp(wanted, type->schema) != 0)
            continue;
        if (run->common.json)
            knee_answer_schema(type, &run->text);
        else
            knee_answer_document(type, &run->text);
        if (!run->common.json && knee_answer_types[i + 1] && !wanted)
            knee_text_puts(&run->text, "\n");
        found++;
    }
    if (found)
        return KNEE_OK;
    knee_fail(&run->err, KNEE_USAGE, "", "no answer has the schema '%.60s'", wanted);
    knee_hint(&run->err, "knee schema lists them");
    return KNEE_USAGE;
}

const struct cli_command cli_schema = {
    .name = "schema",
    .operands = "[SCHEMA]",
    .summary = "keys of the JSON answers",
    .about =
        "Prints the keys of the JSON answers with types and meanings, as Markdown; with --json "
        "as a tree of fields.",
    .examples = "  knee schema knee.replay/1\n",
    .most_words = 1,
    .main = schema_main,
};
