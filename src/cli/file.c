/* SPDX-License-Identifier: MIT */
/* Files in and out, for the commands: the only place that opens any. */
#include "base/error.h"
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static knee_status read_all(FILE *file, const char *name, size_t cap, char **data, size_t *length,
                            struct knee_err *err)
{
    struct knee_text text = {0};
    char block[65536];
    size_t got;
    while (text.length <= cap && (got = fread(block, 1, sizeof block, file)) > 0)
        knee_text_add(&text, block, got);
    knee_status status = KNEE_OK;
    if (ferror(file))
        status = knee_fail(err, KNEE_INPUT, name, "cannot be read: %s", strerror(errno));
    else if (text.failed)
        status = knee_fail(err, KNEE_SYSTEM, name, "out of memory");
    else if (text.length > cap)
        status = knee_fail(err, KNEE_INPUT, name, "larger than %zu bytes", cap);
    if (status) {
        knee_text_release(&text);
        return status;
    }
    *data = text.data;
    *length = text.length;
    return KNEE_OK;
}

knee_status cli_read_file(const char *name, size_t cap, char **data, size_t *length,
                          struct knee_err *err)
{
    if (strcmp(name, "-") == 0)
        return read_all(stdin, "standard input", cap, data, length, err);
    FILE *file = fopen(name, "rb");
    if (!file)
        return knee_fail(err, KNEE_INPUT, name, "cannot be opened: %s", strerror(errno));
    knee_status status = read_all(file, name, cap, data, length, err);
    fclose(file);
    return status;
}

const char *cli_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *cli_input_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : cli_base_name(path);
}

knee_status cli_write_file(const char *name, const struct knee_text *text, struct knee_err *err)
{
    if (text->failed)
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory for the output");
    FILE *file = fopen(name, "wb");
    if (!file)
        return knee_fail(err, KNEE_SYSTEM, name, "cannot be written: %s", strerror(errno));
    bool bad = fwrite(text->data, 1, text->length, file) != text->length;
    bad = fclose(file) != 0 || bad;
    return bad ? knee_fail(err, KNEE_SYSTEM, name, "cannot be written: %s", strerror(errno))
               : KNEE_OK;
}

static ptrdiff_t read_fd(void *ctx, void *buffer, size_t size)
{
    ptrdiff_t got;
    do
        got = read(*(int *)ctx, buffer, size);
    while (got < 0 && errno == EINTR);
    return got;
}

struct knee_reader cli_reader(int *fd)
{
    return (struct knee_reader){read_fd, fd};
}

knee_status cli_print(struct cli_run *run)
{
    if (run->text.failed)
        return knee_fail(&run->err, KNEE_SYSTEM, "", "out of memory for the output");
    if (run->text.length == 0)
        return KNEE_OK;
    if (run->common.output)
        return cli_write_file(run->common.output, &run->text, &run->err);
    bool bad = fwrite(run->text.data, 1, run->text.length, stdout) != run->text.length;
    bad = fflush(stdout) != 0 || bad;
    if (bad)
        return knee_fail(&run->err, KNEE_SYSTEM, "standard output", "cannot be written: %s",
                         strerror(errno));
    return KNEE_OK;
}
