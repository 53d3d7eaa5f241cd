/* SPDX-License-Identifier: MIT */
/*
 * Asks the library what the program would be asked, and prints what it would print with --json.
 * Against the library, once it is installed:
 *   cc examples/ask.c $(pkg-config --cflags --libs knee) -o ask
 *   ./ask predict 'params = 7B' 'gpu = h100' 'global-batch = 4M'
 *   ./ask predict 'word = examples/job.yaml' examples/job.yaml
 *   ./ask trace rank0.json rank1.json
 * An argument with '=' is a line of the question; any other is a file: it is attached under its
 * name, or, JSON for trace, diff and replay, pushed.
 */
#include "knee.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES = 64 };

static char *read_all(const char *name, size_t *length)
{
    FILE *file = fopen(name, "rb");
    size_t room = (size_t)64 << 20;
    char *data = file ? malloc(room) : NULL;
    *length = data ? fread(data, 1, room, file) : 0;
    if (file)
        fclose(file);
    return data;
}

/* A trace of any size goes through the room that the library offers. */
static knee_status push(struct knee_ask *ask, const char *name, struct knee_err *err)
{
    FILE *file = fopen(name, "rb");
    size_t size, got;
    char *room;
    knee_status status = knee_push_begin(ask, name, err);
    while (!status && file && (room = knee_push_room(ask, &size)) &&
           (got = fread(room, 1, size, file)) > 0)
        knee_push_filled(ask, got);
    if (file)
        fclose(file);
    return status ? status : knee_push_end(ask, err);
}

/* "patterns = NAME" says how traces are read: NAME must be known before they are pushed. */
static bool is_patterns(const char *lines, const char *name)
{
    const char *line = strstr(lines, "patterns");
    line = line ? line + strcspn(line, "=") : "";
    line += strspn(line, "= ");
    return strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == '\n';
}

int main(int argc, char **argv)
{
    static char lines[65536];
    char *data[FILES];
    size_t length, used = 0, files = 0;
    struct knee_text answer = {0};
    struct knee_err err = {0};
    struct knee_ask *ask = knee_ask_begin(NULL);
    const char *command = argc > 1 ? argv[1] : "";
    bool traces = strcmp(command, "trace") == 0 || strcmp(command, "diff") == 0 ||
                  strcmp(command, "replay") == 0;
    knee_status status = ask ? KNEE_OK : KNEE_SYSTEM;
    for (int i = 2; i < argc && !status; i++) {
        if (strchr(argv[i], '=')) {
            used += (size_t)snprintf(lines + used, sizeof lines - used, "%s\n", argv[i]);
            status = used < sizeof lines ? KNEE_OK : KNEE_USAGE;
        } else if (traces && strstr(argv[i], ".json")) {
            status = push(ask, argv[i], &err);
        } else if (files < FILES && (data[files] = read_all(argv[i], &length))) {
            status = knee_attach(ask, argv[i], data[files++], length, &err);
            if (!status && traces && is_patterns(lines, argv[i]))
                status = knee_push_patterns(ask, argv[i], &err);
        }
    }
    if (!status)
        status = knee_ask(ask, command, lines, KNEE_JSON, &answer, &err);
    if (answer.data)
        fputs(answer.data, stdout);
    if (status && err.what[0]) /* a gate may fail without words: the answer has them */
        fprintf(stderr, "knee: %s%s%s%s%s\n", err.where, err.where[0] ? ": " : "", err.what,
                err.hint[0] ? "; " : "", err.hint);
    knee_text_release(&answer);
    knee_ask_end(ask);
    while (files > 0)
        free(data[--files]);
    return (int)status;
}
