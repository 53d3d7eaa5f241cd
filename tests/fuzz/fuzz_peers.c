/* SPDX-License-Identifier: MIT */
/*
 * What strangers on this host may send: datagrams to the place of Kineto's daemon (first byte even;
 * cut at 0xff, several one after another) and requests to the server of metrics (odd). Their
 * sources stand in here: what they read is their own business.
 */
#include "cli/kineto_peer.c"
#include "cli/watch_listen.c"

#include <fcntl.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void pair(int type, int *ends)
{
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        abort();
}

/* Each process is told once, and never more than there are places for. */
static void send_datagrams(const uint8_t *data, size_t size)
{
    static struct cli_kineto kineto;
    int ends[2];
    pair(SOCK_DGRAM, ends);
    kineto = (struct cli_kineto){.fd = ends[0]};
    while (size > 0) {
        const uint8_t *cut = memchr(data, 0xff, size);
        size_t length = cut ? (size_t)(cut - data) : size;
        struct datagram answer;
        if (length > 0 && send(ends[1], data, length, 0) == (ssize_t)length)
            answer_one(&kineto, "ACTIVITIES_DURATION_MSECS=100\n");
        while (recv(ends[1], &answer, sizeof answer, 0) > 0)
            if (answer.head.size > sizeof answer.payload)
                abort();
        length += cut != NULL;
        data += length;
        size -= length;
    }
    for (size_t i = 0; i < kineto.count; i++)
        for (size_t k = 0; k < i; k++)
            if (kineto.pids[i] == kineto.pids[k])
                abort();
    close(ends[0]);
    close(ends[1]);
}

/* An answer is one of the two there are, or none. */
static void send_request(const uint8_t *data, size_t size)
{
    struct knee_text metrics = {.data = "knee_up 1\n", .length = 10};
    char said[512] = "";
    int ends[2];
    pair(SOCK_STREAM, ends);
    size = size < 8192 ? size : 8192;
    if (send(ends[1], data, size, MSG_NOSIGNAL) != (ssize_t)size)
        abort();
    shutdown(ends[1], SHUT_WR);
    answer(ends[0], &metrics);
    ssize_t got = recv(ends[1], said, sizeof said - 1, 0);
    if (got > 0 && strncmp(said, "HTTP/1.1 200 OK", 15) != 0 &&
        strncmp(said, "HTTP/1.1 404 Not Found", 22) != 0)
        abort();
    close(ends[0]);
    close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] % 2 == 0)
        send_datagrams(data + 1, size - 1);
    else if (size > 1)
        send_request(data + 1, size - 1);
    return 0;
}
