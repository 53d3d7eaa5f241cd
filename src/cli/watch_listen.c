/* SPDX-License-Identifier: MIT */
/*
 * A server for Prometheus: one text, a few clients at once. Each has a second from the moment it
 * connects until it has its answer; when all places are taken the one that came first goes.
 * Nothing of what a client sends is believed beyond the first line and Host.
 */
#include "base/error.h"
#include "cli/watcher.h"
#include "reach/start.h"
#include "reach/stop.h"
#include "read/live/http_request.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENT_S 1.0

/* ---- Opening ---- */

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

/* 0 to 65535, or the name of a service; getaddrinfo() takes 70000 for 4464. */
static bool is_port(const char *port)
{
    char *end;
    unsigned long number = strtoul(port, &end, 10);
    return *end || number <= 65535;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 ==
               127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

knee_status cli_listen(const char *where, struct cli_server *server, struct knee_err *err)
{
    char host[256];
    const char *port = NULL;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
    int one = 1;
    if (!split(where, host, sizeof host, &port) || !is_port(port) ||
        getaddrinfo(host, port, &hints, &found) != 0)
        return knee_fail_hint(err, KNEE_USAGE, "--listen",
                              "9757 is the loopback only, 0.0.0.0:9757 lets other hosts ask",
                              "'%.60s' is not [HOST:]PORT", where);
    int fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool good = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
                bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, 64) == 0;
    int why = errno;
    server->local = is_loopback(found->ai_addr);
    freeaddrinfo(found);
    if (!good) {
        if (fd >= 0)
            close(fd);
        return knee_fail(err, KNEE_SYSTEM, "--listen", "%.60s: %s", where, strerror(why));
    }
    server->fd = fd;
    return KNEE_OK;
}

/* ---- One client ---- */

static void drop(struct cli_client *client)
{
    if (client->fd > 0)
        close(client->fd);
    free(client->request);
    knee_text_release(&client->answer);
    *client = (struct cli_client){0};
}

void cli_server_close(struct cli_server *server)
{
    for (size_t i = 0; i < CLI_CLIENTS; i++)
        drop(&server->clients[i]);
    if (server->fd > 0)
        close(server->fd);
    *server = (struct cli_server){0};
}

static void write_answer(const struct cli_server *server, const struct knee_http_request *request,
                         const struct knee_text *metrics, struct knee_text *out)
{
    bool known = knee_slice_is(request->path, "/metrics");
    const char *status = "200 OK";
    if (server->local && !knee_http_host_is_local(request))
        status = "403 Forbidden";
    else if (!request->get && !request->head)
        status = "405 Method Not Allowed";
    else if (!known)
        status = "404 Not Found";
    bool good = strcmp(status, "200 OK") == 0;
    knee_text_printf(out,
                     "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                     "Content-Length: %zu\r\nConnection: close\r\n\r\n",
                     status, good ? metrics->length : 0);
    if (good && request->get && metrics->length)
        knee_text_add(out, metrics->data, metrics->length);
}

/* Takes what came; false: the client goes. */
static bool hear(const struct cli_server *server, struct cli_client *client,
                 const struct knee_text *metrics)
{
    struct knee_http_request request;
    if (!client->request && !(client->request = malloc(KNEE_HTTP_HEAD)))
        return false;
    ssize_t got =
        recv(client->fd, client->request + client->used, KNEE_HTTP_HEAD - client->used, 0);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    client->used += (size_t)got;
    if (knee_http_read((struct knee_slice){client->request, client->used}, &request))
        write_answer(server, &request, metrics, &client->answer);
    return got > 0 && client->used < KNEE_HTTP_HEAD;
}

/* Sends what goes out at once; false: all is sent, or the client is gone. */
static bool tell(struct cli_client *client)
{
    const struct knee_text *answer = &client->answer;
    ssize_t sent = answer->failed ? -1
                                  : send(client->fd, answer->data + client->sent,
                                         answer->length - client->sent, MSG_NOSIGNAL);
    if (sent < 0)
        return !answer->failed && (errno == EAGAIN || errno == EINTR);
    client->sent += (size_t)sent;
    return client->sent < answer->length;
}

static void attend(const struct cli_server *server, struct cli_client *client,
                   const struct knee_text *metrics)
{
    bool stays = client->answer.length ? true : hear(server, client, metrics);
    if (client->answer.length)
        stays = tell(client);
    if (!stays)
        drop(client);
}

/* ---- All of them ---- */

static void let_in(struct cli_server *server)
{
    size_t row = 0;
    for (size_t i = 0; i < CLI_CLIENTS; i++)
        if (server->clients[i].until_s < server->clients[row].until_s)
            row = i; /* a free place has 0 */
    int fd = accept(server->fd, NULL, NULL);
    if (fd < 0)
        return;
    drop(&server->clients[row]);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    server->clients[row] = (struct cli_client){.fd = fd, .until_s = knee_clock_s() + CLIENT_S};
}

/* One wait, of at most so many seconds; false: a stop is asked for. */
static bool serve_some(struct cli_server *server, const struct knee_text *metrics, double seconds)
{
    struct pollfd polls[CLI_CLIENTS + 1];
    double now_s = knee_clock_s();
    for (size_t i = 0; i < CLI_CLIENTS; i++) {
        struct cli_client *client = &server->clients[i];
        if (client->fd > 0 && client->until_s <= now_s)
            drop(client);
        polls[i] = (struct pollfd){.fd = client->fd > 0 ? client->fd : -1,
                                   .events = client->answer.length ? POLLOUT : POLLIN};
        if (client->fd > 0 && client->until_s - now_s < seconds)
            seconds = client->until_s - now_s;
    }
    polls[CLI_CLIENTS] = (struct pollfd){.fd = server->fd > 0 ? server->fd : -1, .events = POLLIN};
    int ready = knee_stop_poll(polls, CLI_CLIENTS + 1, (int)(1000 * seconds) + 1);
    for (size_t i = 0; ready > 0 && i < CLI_CLIENTS; i++)
        if (polls[i].fd >= 0 && polls[i].revents)
            attend(server, &server->clients[i], metrics);
    if (ready > 0 && polls[CLI_CLIENTS].revents)
        let_in(server);
    return ready >= 0;
}

bool cli_serve(struct cli_server *server, const struct knee_text *metrics, double seconds)
{
    double end_s = knee_clock_s() + seconds;
    bool on = true;
    for (double left_s = seconds; on && left_s > 0; left_s = end_s - knee_clock_s())
        on = serve_some(server, metrics, left_s < 1 ? left_s : 1);
    return on;
}
