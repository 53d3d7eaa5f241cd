/* SPDX-License-Identifier: MIT */
/*
 * Datagrams between UNIX sockets, each {size_t size; char type[32]} and a payload. "ctxt" registers
 * {int32 gpu, pid; int64 job} and is answered with a count; "req" asks {int32 type, n; int64 job;
 * int32 pids[n]}, own first, and is answered with lines KEY=VALUE, or none.
 */
#include "cli/kineto_peer.h"

#include "base/error.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct head {
    uint64_t size;
    char type[32];
};

struct datagram {
    struct head head;
    char payload[4096];
};

/* Abstract unless a folder is said; the name carries a trailing NUL: without it clients cannot
 * send. */
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

knee_status cli_kineto_open(struct cli_kineto *kineto, struct knee_err *err)
{
    struct sockaddr_un address;
    socklen_t length = address_of(&address);
    *kineto = (struct cli_kineto){.fd = -1};
    if (!length)
        return knee_fail(err, KNEE_USAGE, "KINETO_IPC_SOCKET_DIR", "is too long for a socket");
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, length) != 0) {
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
static const char *config_for(struct cli_kineto *kineto, const struct datagram *in,
                              const char *config)
{
    int32_t count = 0, pid = 0;
    if (in->head.size < 20)
        return "";
    memcpy(&count, in->payload + 4, sizeof count);
    memcpy(&pid, in->payload + 16, sizeof pid);
    if (count < 1 || was_told(kineto, pid))
        return "";
    if (!config || kineto->count == CLI_KINETO_MOST) {
        kineto->late++;
        return "";
    }
    kineto->pids[kineto->count++] = pid;
    return config;
}

static void answer_one(struct cli_kineto *kineto, const char *config)
{
    struct datagram in = {{0}, {0}}, out = {{0}, {0}};
    struct sockaddr_un from = {.sun_family = AF_UNIX};
    socklen_t length = sizeof from;
    ssize_t got =
        recvfrom(kineto->fd, &in, sizeof in, MSG_DONTWAIT, (struct sockaddr *)&from, &length);
    if (got < (ssize_t)sizeof in.head || in.head.size > (uint64_t)got - sizeof in.head)
        return;
    in.head.type[sizeof in.head.type - 1] = '\0';
    memcpy(out.head.type, in.head.type, sizeof out.head.type);
    if (strcmp(in.head.type, "ctxt") == 0) {
        int32_t instances = 1;
        memcpy(out.payload, &instances, sizeof instances);
        out.head.size = sizeof instances;
    } else if (strcmp(in.head.type, "req") == 0) {
        const char *words = config_for(kineto, &in, config);
        out.head.size = strlen(words);
        memcpy(out.payload, words, strlen(words));
    } else {
        return;
    }
    sendto(kineto->fd, &out, sizeof out.head + out.head.size, MSG_DONTWAIT | MSG_NOSIGNAL,
           (const struct sockaddr *)&from, length);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void cli_kineto_answer(struct cli_kineto *kineto, const char *config, int64_t until_ns,
                       const volatile sig_atomic_t *stop)
{
    for (int64_t left_ns = until_ns - now_ns(); left_ns > 0 && !*stop;
         left_ns = until_ns - now_ns()) {
        struct pollfd ready = {.fd = kineto->fd, .events = POLLIN};
        int64_t left_ms = left_ns / 1000000 + 1;
        if (poll(&ready, 1, left_ms < 1000 ? (int)left_ms : 1000) > 0)
            answer_one(kineto, config);
    }
}
