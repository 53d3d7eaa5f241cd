/* SPDX-License-Identifier: MIT */
/*
 * wire: an Ethernet switch in one process, with links of a set rate and delay. Every named network
 * namespace gets a TAP device e0 that is plugged into it; tools/testbed runs it.
 *
 *   wire RATE_BIT_PER_S DELAY_S [PORT:RATE:DELAY ...] -- NAMESPACE...
 *
 * How it thinks: a frame leaves its host at the rate of the host's link, travels for the delay, and
 * enters the other host at the rate of that host's link. Cut-through: entering overlaps leaving
 * unless the other link is busy or slower. Nothing is dropped: a host that sends faster than its
 * link is simply not read, so that its kernel queues and TCP feels it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    PORTS_MAX = 64,
    QUEUE_MAX = 1 << 14, /* frames on the way to one port */
    FRAME_MAX = 65536,
    BACKLOG_NS = 2000000, /* how far ahead of its link a host may send */
    SPIN_NS = 5000,       /* sleeping is no finer than this */
    BURST = 16,           /* frames from one port before the next has its turn */
    ETHERNET_HEADER = 14,
};

struct frame {
    int64_t due_ns;
    size_t size;
    unsigned char *bytes;
};

struct port {
    int fd;
    double ns_per_byte;
    int64_t delay_ns;
    int64_t sent_ns, received_ns; /* when each direction of the link falls idle */
    struct frame *queue;
    size_t head, tail;
    uint64_t frames, bytes, dropped;
    int64_t late_ns, latest_ns; /* how late frames were delivered: sum and worst */
};

static struct port ports[PORTS_MAX];
static size_t port_count;
static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
    (void)number;
    stopping = 1;
}

static void die(const char *what)
{
    fprintf(stderr, "wire: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* A TAP device e0 inside the namespace; this process stays outside. */
static int open_tap(const char *name)
{
    char path[256];
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI, .ifr_name = "e0"};
    snprintf(path, sizeof path, "/var/run/netns/%s", name);
    int outside = open("/proc/self/ns/net", O_RDONLY), inside = open(path, O_RDONLY);
    if (outside < 0 || inside < 0 || setns(inside, CLONE_NEWNET) != 0)
        die(path);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request) != 0)
        die("/dev/net/tun");
    if (setns(outside, CLONE_NEWNET) != 0)
        die("setns");
    close(outside);
    close(inside);
    return fd;
}

/* Puts a frame that has left its host at `left_ns` on the way to `to`. */
static void forward(const struct port *from, struct port *to, const unsigned char *bytes,
                    size_t size, int64_t left_ns)
{
    if (to->head - to->tail == QUEUE_MAX) {
        to->dropped++;
        return;
    }
    int64_t takes_ns = (int64_t)((double)size * to->ns_per_byte);
    int64_t begins_ns = left_ns - takes_ns;
    begins_ns = to->received_ns > begins_ns ? to->received_ns : begins_ns;
    to->received_ns = begins_ns + takes_ns;
    int64_t ends_ns = to->received_ns > left_ns ? to->received_ns : left_ns;
    unsigned char *copy = malloc(size);
    if (!copy)
        die("memory");
    memcpy(copy, bytes, size);
    to->queue[to->head++ % QUEUE_MAX] =
        (struct frame){ends_ns + (from->delay_ns + to->delay_ns) / 2, size, copy};
}

/* The last byte of the address is the port: tools/testbed numbers them so. */
static void switch_frame(size_t from, const unsigned char *bytes, size_t size, int64_t left_ns)
{
    bool everyone = bytes[0] & 1;
    for (size_t p = 0; p < port_count; p++)
        if (p != from && (everyone || bytes[5] == p))
            forward(&ports[from], &ports[p], bytes, size, left_ns);
}

/* Delivers what is due; says when the next frame is. True: something was delivered. */
static bool deliver(struct port *port, int64_t *next_ns)
{
    bool any = false;
    while (port->tail != port->head) {
        struct frame *frame = &port->queue[port->tail % QUEUE_MAX];
        int64_t now = now_ns(), late = now - frame->due_ns;
        if (late < 0) {
            *next_ns = frame->due_ns < *next_ns ? frame->due_ns : *next_ns;
            break;
        }
        if (write(port->fd, frame->bytes, frame->size) < 0 && errno == EAGAIN)
            return true;
        port->frames++;
        port->bytes += frame->size;
        port->late_ns += late;
        port->latest_ns = late > port->latest_ns ? late : port->latest_ns;
        free(frame->bytes);
        port->tail++;
        any = true;
    }
    return any;
}

/* Takes what a host sends, as far as its link allows. */
static bool take(size_t p, bool *wants_more, int64_t *next_ns)
{
    static unsigned char bytes[FRAME_MAX];
    struct port *port = &ports[p];
    bool any = false;
    *wants_more = true;
    for (int i = 0; i < BURST; i++) {
        int64_t now = now_ns();
        if (port->sent_ns > now + BACKLOG_NS) {
            int64_t again_ns = port->sent_ns - BACKLOG_NS;
            *next_ns = again_ns < *next_ns ? again_ns : *next_ns;
            *wants_more = false;
            break;
        }
        ssize_t size = read(port->fd, bytes, sizeof bytes);
        if (size <= ETHERNET_HEADER)
            break;
        int64_t begins_ns = port->sent_ns > now ? port->sent_ns : now;
        port->sent_ns = begins_ns + (int64_t)((double)size * port->ns_per_byte);
        switch_frame(p, bytes, (size_t)size, port->sent_ns);
        any = true;
    }
    return any;
}

static void sleep_until(int64_t next_ns, struct pollfd *polls)
{
    int64_t left_ns = next_ns - now_ns() - SPIN_NS;
    if (left_ns <= 0)
        return;
    struct timespec left = {left_ns / 1000000000, left_ns % 1000000000};
    ppoll(polls, port_count, next_ns == INT64_MAX ? NULL : &left, NULL);
}

static void serve(void)
{
    struct pollfd polls[PORTS_MAX];
    while (!stopping) {
        int64_t next_ns = INT64_MAX;
        bool busy = false;
        for (size_t p = 0; p < port_count; p++)
            busy = deliver(&ports[p], &next_ns) || busy;
        for (size_t p = 0; p < port_count; p++) {
            bool wants_more;
            busy = take(p, &wants_more, &next_ns) || busy;
            polls[p] = (struct pollfd){.fd = ports[p].fd, .events = wants_more ? POLLIN : 0};
        }
        if (!busy)
            sleep_until(next_ns, polls);
    }
}

static void report(void)
{
    for (size_t p = 0; p < port_count; p++) {
        const struct port *port = &ports[p];
        double frames = port->frames ? (double)port->frames : 1;
        fprintf(stderr,
                "port %zu: %llu frames, %llu bytes, %llu dropped, late by %.1f us mean, %.1f us "
                "worst\n",
                p, (unsigned long long)port->frames, (unsigned long long)port->bytes,
                (unsigned long long)port->dropped, (double)port->late_ns / 1e3 / frames,
                (double)port->latest_ns / 1e3);
    }
}

static void set_port(struct port *port, double bit_per_s, double delay_s)
{
    port->ns_per_byte = 8e9 / bit_per_s;
    port->delay_ns = (int64_t)(delay_s * 1e9);
}

int main(int argc, char **argv)
{
    int at = 3;
    while (at < argc && strcmp(argv[at], "--") != 0)
        at++;
    if (argc < 5 || at >= argc || argc - at - 1 > PORTS_MAX) {
        fputs("usage: wire RATE_BIT_PER_S DELAY_S [PORT:RATE:DELAY ...] -- NAMESPACE...\n", stderr);
        return 2;
    }
    for (int i = at + 1; i < argc; i++, port_count++) {
        struct port *port = &ports[port_count];
        port->fd = open_tap(argv[i]);
        port->queue = calloc(QUEUE_MAX, sizeof *port->queue);
        if (!port->queue)
            die("memory");
        set_port(port, strtod(argv[1], NULL), strtod(argv[2], NULL));
    }
    for (int i = 3; i < at; i++) {
        unsigned port;
        double bit_per_s, delay_s;
        if (sscanf(argv[i], "%u:%lf:%lf", &port, &bit_per_s, &delay_s) != 3 || port >= port_count) {
            fprintf(stderr, "wire: '%s' is not PORT:RATE:DELAY\n", argv[i]);
            return 2;
        }
        set_port(&ports[port], bit_per_s, delay_s);
    }
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    prctl(PR_SET_TIMERSLACK, 1);
    fprintf(stderr, "ready\n");
    serve();
    report();
    return 0;
}
