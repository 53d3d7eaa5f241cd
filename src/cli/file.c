/* SPDX-License-Identifier: MIT */
/* Files in and out, for the commands, through the doors of reach/files.h. */
#include "base/error.h"
#include "cli/cli.h"
#include "out/words.h"
#include "reach/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The user can fix an input that is missing or not a file. A lack of memory or descriptors, or a
 * failing disk, is a system error: no answer may be given without that input. */
knee_status cli_cannot(const char *name, const char *what, struct knee_err *err)
{
    static const int systems[] = {ENOMEM, EMFILE, ENFILE, EIO, EAGAIN, ENOBUFS};
    knee_status status = KNEE_INPUT;
    int why = errno;
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
        status = why == systems[i] ? KNEE_SYSTEM : status;
    knee_fail(err, status, name, "cannot be %s: %s", what, strerror(why));
    if (why == ENOENT || why == ENOTDIR)
        knee_hint(err, "check the path");
    return status;
}

static knee_status read_all(int fd, const char *name, size_t cap, char **data, size_t *length,
                            struct knee_err *err)
{
    struct knee_text text = {0};
    char block[65536];
    ptrdiff_t got = 0;
    size_t most = KNEE_TEXT_CAP - sizeof block - 1; /* more than a text holds is too large */
    cap = cap < most ? cap : most;
    while (!text.failed && text.length <= cap &&
           (got = knee_input_read(fd, block, sizeof block)) > 0)
        knee_text_add(&text, block, (size_t)got);
    knee_status status = KNEE_OK;
    if (got < 0)
        status = cli_cannot(name, "read", err);
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

knee_status cli_open(const char *name, int *fd, struct knee_err *err)
{
    *fd = strcmp(name, "-") == 0 ? STDIN_FILENO : knee_open_input(AT_FDCWD, name, KNEE_INPUT_NAMED);
    return *fd < 0 ? cli_cannot(name, "opened", err) : KNEE_OK;
}

void cli_close(int fd)
{
    if (fd > STDIN_FILENO)
        close(fd);
}

knee_status cli_read_file(const char *name, size_t cap, char **data, size_t *length,
                          struct knee_err *err)
{
    int fd;
    knee_status status = cli_open(name, &fd, err);
    if (status)
        return status;
    status = read_all(fd, fd == STDIN_FILENO ? "standard input" : name, cap, data, length, err);
    cli_close(fd);
    return status;
}

knee_status cli_stopped(struct knee_err *err)
{
    return knee_fail(err, KNEE_SYSTEM, "", "stopped by signal %d", knee_stop_signal());
}

/* ---- Writing ---- */

static bool write_bytes(void *ctx, const char *data, size_t size)
{
    return size == 0 || fwrite(data, 1, size, ctx) == size;
}

knee_status cli_write_file(const char *name, const struct knee_text *text, struct knee_err *err)
{
    return knee_output_write(name, 0666, text, err);
}

knee_status cli_write_perfetto(const char *name, const struct knee_account *account,
                               struct knee_err *err)
{
    struct knee_output out;
    knee_status status = knee_output_open(&out, name, 0666, err);
    if (status)
        return status;
    bool good = knee_write_perfetto(account, (struct knee_sink){write_bytes, out.file}, NULL);
    return knee_output_close(&out, good, err);
}

static knee_status write_rank(const char *prefix, int64_t rank, struct knee_chakra_graph *graph,
                              size_t row, struct knee_err *err)
{
    char name[4096];
    struct knee_output out;
    if ((size_t)snprintf(name, sizeof name, "%s.%lld.et", prefix, (long long)rank) >= sizeof name)
        return knee_fail(err, KNEE_USAGE, "--chakra", "the name is too long");
    knee_status status = knee_output_open(&out, name, 0666, err);
    if (status)
        return status;
    bool good = knee_chakra_write(graph, row, (struct knee_sink){write_bytes, out.file});
    return knee_output_close(&out, good, err);
}

knee_status cli_write_chakra(const char *prefix, const struct knee_account *account,
                             struct knee_err *err)
{
    struct knee_chakra_graph *graph = NULL;
    knee_status status = knee_chakra_begin(account, NULL, &graph, err);
    for (size_t r = 0; r < account->rank_count && !status; r++)
        status = write_rank(prefix, account->ranks[r].rank, graph, r, err);
    knee_chakra_end(graph);
    return status;
}

knee_status cli_print(struct cli_run *run)
{
    knee_finish_answer(&run->text, cli_format(run), cli_style(run).color);
    if (!run->text.failed && run->text.length == 0)
        return KNEE_OK;
    if (run->text.failed)
        return knee_fail(&run->err, KNEE_SYSTEM, "", "out of memory for the output");
    if (run->common.output)
        return cli_write_file(run->common.output, &run->text, &run->err);
    bool bad = fwrite(run->text.data, 1, run->text.length, stdout) != run->text.length;
    bad = fflush(stdout) != 0 || bad;
    if (bad)
        return knee_fail(&run->err, KNEE_SYSTEM, "standard output", "cannot be written: %s",
                         strerror(errno));
    return KNEE_OK;
}
