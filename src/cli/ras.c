/* SPDX-License-Identifier: MIT */
/* Lines out, lines and one JSON text in; the server closes the connection at the end of each
 * answer. */
#include "cli/ras.h"

#include "base/error.h"
#include "base/text.h"
#include "reach/clock.h"
#include "reach/start.h"
#include "reach/stop.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define LARGEST ((size_t)16 << 20) /* 300 bytes a rank: 50,000 ranks */

enum { PAUSE_MS = 50, LIMIT_S = 10, LINE = 256 };

/* So many answers quickly; then, until the counts have moved often enough, slowly. */
enum { QUICK = 40, SLOW_PAUSE_MS = 200, MOVES = 16 };

/* Rows of all answers that are kept, 160 bytes each. 20,000 ranks fill it in 26 answers. */
enum { MOST_ROWS = 1 << 19 };

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
    if (socket_fd < 0)
        return knee_fail_hint(
            err, KNEE_INPUT, where,
            "a job with NCCL 2.24 or later listens at port 28028 of its hosts, unless "
            "NCCL_RAS_ENABLE=0",
            "cannot be reached: %s", strerror(why));
    *fd = socket_fd;
    return KNEE_OK;
}

struct talk {
    const char *where;
    int fd;
    double until_s;
};

static bool send_line(int fd, const char *line)
{
    size_t length = strlen(line);
    return send(fd, line, length, MSG_NOSIGNAL) == (ssize_t)length;
}

/* recv() with one limit for the whole answer: a server that sends a byte a second, or a user who
 * wants to stop, is not waited for. */
static ssize_t receive(const struct talk *talk, void *data, size_t size)
{
    struct pollfd ready = {.fd = talk->fd, .events = POLLIN};
    double left_s = talk->until_s - knee_clock_s();
    if (left_s <= 0 || knee_stop_poll(&ready, 1, (int)(1000 * left_s) + 1) <= 0)
        return -1;
    return recv(talk->fd, data, size, MSG_DONTWAIT);
}

/* One line, without its end. */
static bool read_line(const struct talk *talk, char *line)
{
    for (size_t used = 0; used + 1 < LINE; used++) {
        if (receive(talk, line + used, 1) != 1)
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
static knee_status read_rest(const struct talk *talk, struct knee_text *text, struct knee_err *err)
{
    char block[65536];
    ssize_t got = 0;
    do {
        got = receive(talk, block, sizeof block);
        if (got > 0)
            knee_text_add(text, block, (size_t)got);
    } while (got > 0 && text->length < LARGEST);
    if (text->failed)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    return got == 0 ? KNEE_OK : broken(talk->where, err);
}

/* `json`: KNEE_INPUT and *words where the service has none; else as it answers. */
static knee_status ask_status(const struct talk *talk, bool json, struct knee_text *text,
                              bool *words, struct knee_err *err)
{
    const char *where = talk->where;
    int fd = talk->fd;
    char line[LINE] = "";
    if (!send_line(fd, "CLIENT PROTOCOL 2\n") || !read_line(talk, line))
        return broken(where, err);
    if (strncmp(line, "SERVER PROTOCOL", 15) != 0)
        return knee_fail(err, KNEE_INPUT, where, "is not NCCL's RAS service");
    if (json && (!send_line(fd, "SET FORMAT json\n") || !read_line(talk, line)))
        return broken(where, err);
    *words = json && strcmp(line, "OK") != 0;
    if (*words)
        return knee_fail_hint(err, KNEE_INPUT, where, "knee hang --ras HOST reads its words",
                              "does not answer in JSON: NCCL is older than 2.28.7");
    if (!send_line(fd, "VERBOSE STATUS\n"))
        return broken(where, err);
    return read_rest(talk, text, err);
}

static knee_status call(const char *where, bool json, struct knee_text *text, bool *words,
                        struct knee_err *err)
{
    int fd = -1;
    knee_status status = connect_to(where, &fd, err);
    if (!status)
        status =
            ask_status(&(struct talk){where, fd, knee_clock_s() + LIMIT_S}, json, text, words, err);
    if (fd >= 0)
        close(fd);
    return status;
}

knee_status cli_ras_text(const char *where, struct knee_text *text, struct knee_err *err)
{
    bool words = false;
    struct knee_err refused = {.status = KNEE_OK};
    knee_status status = call(where, true, text, &words, &refused);
    if (status && words)
        return call(where, false, text, &words, err);
    if (status && err)
        *err = refused;
    return status;
}

static knee_status ask_once(const char *where, struct knee_ras *out, struct knee_err *err)
{
    struct knee_text text = {0};
    bool words = false;
    knee_status status = call(where, true, &text, &words, err);
    if (!status)
        status = knee_ras_read(text.data ? text.data : "", text.length, NULL, out, err);
    if (!status)
        out->at_ns = knee_clock_ns(CLOCK_MONOTONIC);
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
    size_t rows = 0;
    *count = 0;
    for (;;) {
        knee_status status = ask_once(where, &answers[*count], err);
        if (status)
            return status;
        rows += answers[*count].count;
        size_t moves = ++*count < QUICK ? 1 : count_moves(answers, *count);
        if (*count == CLI_RAS_ANSWERS || moves == 0 || moves >= MOVES || rows > MOST_ROWS)
            return KNEE_OK;
        if (!knee_stop_sleep(1e-3 * (*count < QUICK ? PAUSE_MS : SLOW_PAUSE_MS)))
            return KNEE_OK;
    }
}
