/* SPDX-License-Identifier: MIT */
/* Programs that tell about the host, all at the same time, each with a time limit. */
#include "base/text.h"
#include "doctor/doctor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COMMANDS_MAX 8
#define OUTPUT_BYTES ((size_t)16 << 20)

struct child {
    pid_t pid;
    int fd; /* -1: nothing more comes */
    bool whole;
    struct knee_text out;
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void start(struct child *child, const char *const *argv)
{
    int ends[2];
    *child = (struct child){.pid = -1, .fd = -1};
    if (pipe(ends))
        return;
    child->pid = fork();
    if (child->pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(ends[1], 1);
        dup2(null, 2);
        close(ends[0]);
        setenv("LC_ALL", "C", 1);
        execvp(argv[0], (char *const *)(void *)argv);
        _exit(127);
    }
    close(ends[1]);
    child->fd = child->pid > 0 ? ends[0] : -1;
    if (child->pid < 0)
        close(ends[0]);
}

static void take_some(struct child *child)
{
    char block[65536];
    ssize_t got = read(child->fd, block, sizeof block);
    if (got > 0 && child->out.length + (size_t)got <= OUTPUT_BYTES) {
        knee_text_add(&child->out, block, (size_t)got);
        return;
    }
    child->whole = got == 0;
    close(child->fd);
    child->fd = -1;
}

/* Until all have ended or the time is over. */
static void listen_to(struct child *children, size_t count, double until)
{
    for (;;) {
        struct pollfd polls[COMMANDS_MAX];
        size_t open = 0;
        for (size_t i = 0; i < count; i++) {
            polls[i] = (struct pollfd){.fd = children[i].fd, .events = POLLIN};
            open += children[i].fd >= 0;
        }
        double left = until - now_s();
        if (open == 0 || left <= 0 || poll(polls, (nfds_t)count, (int)(left * 1000) + 1) < 0)
            return;
        for (size_t i = 0; i < count; i++)
            if (polls[i].fd >= 0 && polls[i].revents)
                take_some(&children[i]);
    }
}

static void finish(struct child *child, const char *name, struct knee_file_sink to)
{
    int status = 0;
    if (child->pid < 0)
        return;
    if (child->fd >= 0) {
        close(child->fd);
        kill(child->pid, SIGKILL);
    }
    waitpid(child->pid, &status, 0);
    if (child->whole && WIFEXITED(status) && WEXITSTATUS(status) != 127 && child->out.length > 0)
        to.take(to.ctx, name, child->out.data, child->out.length);
    knee_text_release(&child->out);
}

void knee_host_commands(const struct knee_host_command *commands, size_t count, double limit_s,
                        struct knee_file_sink to)
{
    struct child children[COMMANDS_MAX] = {{0}};
    count = count < COMMANDS_MAX ? count : COMMANDS_MAX;
    for (size_t i = 0; i < count; i++)
        start(&children[i], commands[i].argv);
    listen_to(children, count, now_s() + limit_s);
    for (size_t i = 0; i < count; i++)
        finish(&children[i], commands[i].name, to);
}
