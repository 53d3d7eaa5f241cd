/* SPDX-License-Identifier: MIT */
/* Datagrams between UNIX sockets, see read/live/kineto_request.h. */
#include "cli/kineto_peer.h"

#include "base/error.h"
#include "reach/clock.h"
#include "reach/stop.h"
#include "read/live/kineto_request.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct datagram {
    struct knee_kineto_head head;
    char payload[4096];
};

/* Linux' struct ucred and SCM_CREDENTIALS, which its headers show to GNU programs only. */
struct credentials {
    int32_t pid;
    uint32_t uid, gid;
};
enum { CREDENTIALS = 2 };

/* Abstract unless a folder is given. The name includes a trailing NUL; clients cannot send
 * without it. */
static socklen_t address_of(struct sockaddr_un *address)
{
    static const char name[] = "dynolog";
    const char *folder = getenv("KINETO_IPC_SOCKET_DIR");
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (folder && *folder) {
        int length = snprintf(address->sun_path, sizeof address->sun_path, "%s/%s", folder, name);
        bool fits = length > 0 && (size_t)length < sizeof address->sun_path;
        return fits ? (socklen_t)sizeof *address : 0;
    }
    memcpy(address->sun_path + 1, name, sizeof name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + sizeof name);
}

/* A socket left by a killed process, which receives nothing. It is removed. */
static bool left_behind(const struct sockaddr_un *address, socklen_t length)
{
    struct stat info;
    bool is_socket =
        address->sun_path[0] && lstat(address->sun_path, &info) == 0 && S_ISSOCK(info.st_mode);
    int fd = is_socket ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    bool refused = fd >= 0 && connect(fd, (const struct sockaddr *)address, length) != 0 &&
                   errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return refused && unlink(address->sun_path) == 0;
}

knee_status cli_kineto_open(struct cli_kineto *kineto, struct knee_err *err)
{
    struct sockaddr_un address;
    socklen_t length = address_of(&address);
    *kineto = (struct cli_kineto){.fd = -1};
    if (!length)
        return knee_fail(err, KNEE_USAGE, "KINETO_IPC_SOCKET_DIR", "is too long for a socket");
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1;
    bool bound = fd >= 0 && bind(fd, (const struct sockaddr *)&address, length) == 0;
    if (fd >= 0 && !bound && errno == EADDRINUSE && left_behind(&address, length))
        bound = bind(fd, (const struct sockaddr *)&address, length) == 0;
    if (!bound || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof one) != 0) {
        int why = errno;
        if (fd >= 0)
            close(fd);
        knee_fail(err, KNEE_SYSTEM, "dynolog", "cannot take the daemon's place: %s", strerror(why));
        if (why == EADDRINUSE)
            knee_hint(err, "one runs here already: dyno gputrace, or stop it");
        return KNEE_SYSTEM;
    }
    kineto->fd = fd;
    if (address.sun_path[0])
        memcpy(kineto->path, address.sun_path, sizeof kineto->path);
    return KNEE_OK;
}

void cli_kineto_close(struct cli_kineto *kineto)
{
    if (kineto->fd >= 0)
        close(kineto->fd);
    if (kineto->path[0])
        unlink(kineto->path);
    *kineto = (struct cli_kineto){.fd = -1};
}

static bool was_told(const struct cli_kineto *kineto, int32_t pid)
{
    for (size_t i = 0; i < kineto->count; i++)
        if (kineto->pids[i] == pid)
            return true;
    return false;
}

/* What to answer to a request; "": nothing to do. */
static const char *config_for(struct cli_kineto *kineto, int32_t pid, const char *config)
{
    if (!pid || was_told(kineto, pid))
        return "";
    if (!config || kineto->count == CLI_KINETO_MOST) {
        kineto->late++;
        return "";
    }
    kineto->pids[kineto->count++] = pid;
    return config;
}

/* Who sent it, by the kernel's word; false: another user. A process of another container has pid
 * 0. */
static bool may_ask(struct msghdr *message, int32_t *sender)
{
    /* The only ancillary data that this socket asks for, so it is the first. */
    struct cmsghdr *c = CMSG_FIRSTHDR(message);
    struct credentials from;
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != CREDENTIALS)
        return false;
    memcpy(&from, CMSG_DATA(c), sizeof from);
    *sender = from.pid;
    return geteuid() == 0 || from.uid == geteuid();
}

/* A process may sit in another container and have another pid there: what it says is the name of
 * its file. But one process has one place, whatever it says. */
static bool speaks_again(struct cli_kineto *kineto, int32_t sender, int32_t pid)
{
    for (size_t i = 0; i < kineto->count && sender; i++)
        if (kineto->senders[i] == sender)
            return kineto->pids[i] != pid;
    return false;
}

static void answer_one(struct cli_kineto *kineto, const char *config)
{
    struct datagram in = {{0}, {0}}, out = {{0}, {0}};
    struct sockaddr_un from = {.sun_family = AF_UNIX};
    char control[CMSG_SPACE(sizeof(struct credentials))] = {0};
    struct iovec part = {&in, sizeof in};
    struct msghdr message = {.msg_name = &from,
                             .msg_namelen = sizeof from,
                             .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    ssize_t got = recvmsg(kineto->fd, &message, MSG_DONTWAIT);
    struct knee_kineto_request request = knee_kineto_read(&in, got > 0 ? (size_t)got : 0);
    int32_t sender = 0, instances = 1;
    if (request.kind == KNEE_KINETO_NONE || !may_ask(&message, &sender))
        return;
    if (speaks_again(kineto, sender, request.pid))
        config = NULL; /* counted as late */
    memcpy(out.head.type, in.head.type, sizeof out.head.type);
    if (request.kind == KNEE_KINETO_CONTEXT) {
        memcpy(out.payload, &instances, sizeof instances);
        out.head.size = sizeof instances;
    } else {
        size_t before = kineto->count;
        const char *words = config_for(kineto, request.pid, config);
        if (kineto->count > before)
            kineto->senders[before] = sender;
        out.head.size = strlen(words);
        memcpy(out.payload, words, strlen(words));
    }
    sendto(kineto->fd, &out, sizeof out.head + out.head.size, MSG_DONTWAIT | MSG_NOSIGNAL,
           (const struct sockaddr *)&from, message.msg_namelen);
}

void cli_kineto_answer(struct cli_kineto *kineto, const char *config, int64_t until_ns)
{
    for (int64_t left_ns = until_ns - knee_clock_ns(CLOCK_REALTIME); left_ns > 0;
         left_ns = until_ns - knee_clock_ns(CLOCK_REALTIME)) {
        struct pollfd ready = {.fd = kineto->fd, .events = POLLIN};
        int64_t left_ms = left_ns / 1000000 + 1;
        int woken = knee_stop_poll(&ready, 1, left_ms < 1000 ? (int)left_ms : 1000);
        if (woken < 0)
            return;
        if (woken > 0)
            answer_one(kineto, config);
    }
}
