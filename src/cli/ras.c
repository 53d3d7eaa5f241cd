/* SPDX-License-Identifier: MIT */
/* Lines out, lines and one JSON text in; the server closes the connection at the end of each
 * answer. */
#include "cli/ras.h"

#include "base/error.h"
#include "base/text.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define LARGEST ((size_t)64 << 20)

enum { PAUSE_MS = 50, LIMIT_S = 10, LINE = 256 };

/* So many answers quickly; then, until the counts have moved often enough, slowly. */
enum { QUICK = 40, SLOW_PAUSE_MS = 200, MOVES = 16 };

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static knee_status connect_to(const char *where, int *fd, struct knee_err *err)
{
    char host[256];
    const char *colon = strrchr(where, ':');
    size_t length = colon ? (size_t)(colon - where) : strlen(where);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    struct timeval limit = {.tv_sec = LIMIT_S};
    snprintf(host, sizeof host, "%.*s", (int)(length < 255 ? length : 255), where);
    int why =
        getaddrinfo(host[0] ? host : "localhost", colon ? colon + 1 : "28028", &hints, &found);
    if (why)
        return knee_fail(err, KNEE_USAGE, "--ras", "%.60s: %s", where, gai_strerror(why));
    int socket_fd = -1;
    for (struct addrinfo *a = found; a && socket_fd < 0; a = a->ai_next) {
        socket_fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, 0);
        if (socket_fd < 0)
            continue;
        setsockopt(socket_fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        setsockopt(socket_fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        if (connect(socket_fd, a->ai_addr, a->ai_addrlen) != 0) {
            why = errno;
            close(socket_fd);
            socket_fd = -1;
        }
    }
    freeaddrinfo(found);
    if (socket_fd < 0) {
        knee_fail(err, KNEE_INPUT, where, "cannot be reached: %s", strerror(why));
        knee_hint(err, "a job with NCCL 2.24 or later listens at port 28028 of its hosts, unless "
                       "NCCL_RAS_ENABLE=0");
        return KNEE_INPUT;
    }
    *fd = socket_fd;
    return KNEE_OK;
}

static bool send_line(int fd, const char *line)
{
    size_t length = strlen(line);
    return send(fd, line, length, MSG_NOSIGNAL) == (ssize_t)length;
}

/* One line, without its end. */
static bool read_line(int fd, char *line)
{
    for (size_t used = 0; used + 1 < LINE; used++) {
        ssize_t got;
        do
            got = recv(fd, line + used, 1, 0);
        while (got < 0 && errno == EINTR);
        if (got != 1)
            return false;
        line[used + 1] = '\0';
        if (line[used] == '\n') {
            line[used] = '\0';
            return true;
        }
    }
    return false;
}

static knee_status broken(const char *where, struct knee_err *err)
{
    return knee_fail(err, KNEE_INPUT, where, "broke off in the middle of an answer");
}

/* To the end; the server closes. */
static knee_status read_rest(const char *where, int fd, struct knee_text *text,
                             struct knee_err *err)
{
    char block[65536];
    ssize_t got = 0;
    do {
        got = recv(fd, block, sizeof block, 0);
        if (got > 0)
            knee_text_add(text, block, (size_t)got);
    } while ((got > 0 && text->length < LARGEST) || (got < 0 && errno == EINTR));
    if (text->failed)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    return got == 0 ? KNEE_OK : broken(where, err);
}

static knee_status talk(const char *where, int fd, struct knee_text *text, struct knee_err *err)
{
    char line[LINE] = "";
    if (!send_line(fd, "CLIENT PROTOCOL 2\n") || !read_line(fd, line))
        return broken(where, err);
    if (strncmp(line, "SERVER PROTOCOL", 15) != 0)
        return knee_fail(err, KNEE_INPUT, where, "is not NCCL's RAS service");
    if (!send_line(fd, "SET FORMAT json\n") || !read_line(fd, line))
        return broken(where, err);
    if (strcmp(line, "OK") != 0) {
        knee_fail(err, KNEE_INPUT, where, "does not answer in JSON: NCCL is older than 2.28.7");
        knee_hint(err, "echo STATUS | nc HOST 28028 says in words who is behind");
        return KNEE_INPUT;
    }
    if (!send_line(fd, "VERBOSE STATUS\n"))
        return broken(where, err);
    return read_rest(where, fd, text, err);
}

static knee_status ask_once(const char *where, struct knee_ras *out, struct knee_err *err)
{
    struct knee_text text = {0};
    int fd = -1;
    knee_status status = connect_to(where, &fd, err);
    if (!status)
        status = talk(where, fd, &text, err);
    if (fd >= 0)
        close(fd);
    if (!status)
        status = knee_ras_read(text.data ? text.data : "", text.length, NULL, out, err);
    if (!status)
        out->at_ns = now_ns();
    knee_text_release(&text);
    return status;
}

/* How often the largest count has changed from one answer to the next. */
static size_t count_moves(const struct knee_ras *answers, size_t count)
{
    size_t moves = 0;
    int64_t before = -1;
    for (size_t i = 0; i < count; i++) {
        int64_t most = -1;
        for (size_t r = 0; r < answers[i].count; r++)
            most = answers[i].ranks[r].calls > most ? answers[i].ranks[r].calls : most;
        moves += i > 0 && most != before;
        before = most;
    }
    return moves;
}

knee_status cli_ras_ask(const char *where, struct knee_ras *answers, size_t *count,
                        struct knee_err *err)
{
    *count = 0;
    for (;;) {
        knee_status status = ask_once(where, &answers[*count], err);
        if (status)
            return status;
        size_t moves = ++*count < QUICK ? 1 : count_moves(answers, *count);
        if (*count == CLI_RAS_ANSWERS || moves == 0 || moves >= MOVES)
            return KNEE_OK;
        poll(NULL, 0, *count < QUICK ? PAUSE_MS : SLOW_PAUSE_MS);
    }
}
