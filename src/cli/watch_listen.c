/* SPDX-License-Identifier: MIT */
/* A server for Prometheus: one text, one client at a time, nothing of what it sends is believed
 * beyond its first line. */
#include "base/error.h"
#include "cli/watcher.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { REQUEST = 4096, CLIENT_MS = 1000 };

/* "9400", "host:9400", "[::1]:9400"; the loopback where no host stands. */
static bool split(const char *where, char *host, size_t size, const char **port)
{
    const char *colon = strrchr(where, ':');
    size_t length = colon ? (size_t)(colon - where) : 0;
    *port = colon ? colon + 1 : where;
    if (length >= size || !**port)
        return false;
    bool bracket = length > 2 && where[0] == '[' && where[length - 1] == ']';
    memcpy(host, where + bracket, length - 2 * (size_t)bracket);
    host[length - 2 * (size_t)bracket] = '\0';
    if (!length)
        memcpy(host, "127.0.0.1", sizeof "127.0.0.1");
    return true;
}

knee_status cli_listen(const char *where, int *fd, struct knee_err *err)
{
    char host[256];
    const char *port = NULL;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
    int one = 1;
    if (!split(where, host, sizeof host, &port) || getaddrinfo(host, port, &hints, &found) != 0) {
        knee_fail(err, KNEE_USAGE, "--listen", "'%.60s' is not [HOST:]PORT", where);
        knee_hint(err, "9757 is the loopback only, 0.0.0.0:9757 lets other hosts ask");
        return KNEE_USAGE;
    }
    int server = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool good = server >= 0 && server < FD_SETSIZE && /* it is waited for by a set */
                setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
                bind(server, found->ai_addr, found->ai_addrlen) == 0 && listen(server, 16) == 0;
    int why = errno;
    freeaddrinfo(found);
    if (!good) {
        if (server >= 0)
            close(server);
        return knee_fail(err, KNEE_SYSTEM, "--listen", "%.60s: %s", where, strerror(why));
    }
    *fd = server;
    return KNEE_OK;
}

static void send_all(int client, const char *data, size_t length)
{
    while (length) {
        ssize_t sent = send(client, data, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return;
        data += sent;
        length -= (size_t)sent;
    }
}

/* Reads until the empty line that ends a request's head; false: it never came. */
static bool read_request(int client, char *request)
{
    size_t used = 0;
    while (used + 1 < REQUEST) {
        ssize_t got = recv(client, request + used, REQUEST - 1 - used, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        used += (size_t)got;
        request[used] = '\0';
        if (strstr(request, "\r\n\r\n") || strstr(request, "\n\n"))
            return true;
    }
    return false;
}

static void answer(int client, const struct knee_text *metrics)
{
    char request[REQUEST] = "", head[256];
    struct timeval limit = {.tv_sec = CLIENT_MS / 1000};
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (!read_request(client, request))
        return;
    bool good =
        strncmp(request, "GET /metrics", 12) == 0 && (request[12] == ' ' || request[12] == '?');
    size_t length = good ? metrics->length : 0;
    snprintf(head, sizeof head,
             "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
             "Content-Length: %zu\r\nConnection: close\r\n\r\n",
             good ? "200 OK" : "404 Not Found", length);
    send_all(client, head, strlen(head));
    if (length)
        send_all(client, metrics->data, length);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Is there a client within so many seconds? Signals come in here alone. */
static bool client_comes(int fd, double seconds, const sigset_t *resting)
{
    struct timespec limit = {.tv_sec = (time_t)seconds};
    fd_set ready;
    FD_ZERO(&ready);
    if (fd >= 0)
        FD_SET((unsigned)fd, &ready); /* the macro of musl divides by a size */
    limit.tv_nsec = (long)(1e9 * (seconds - (double)limit.tv_sec));
    return pselect(fd + 1, &ready, NULL, NULL, &limit, resting) > 0;
}

void cli_serve(int fd, const struct knee_text *metrics, double seconds, const sigset_t *resting,
               const volatile sig_atomic_t *stop)
{
    double end_s = now_s() + seconds;
    for (double left_s = seconds; left_s > 0 && !*stop; left_s = end_s - now_s()) {
        if (!client_comes(fd, left_s, resting))
            continue;
        int client = accept(fd, NULL, NULL);
        if (client < 0)
            continue;
        answer(client, metrics);
        close(client);
    }
}
