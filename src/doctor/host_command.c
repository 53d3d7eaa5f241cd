/* SPDX-License-Identifier: MIT */
/* Programs that tell about the host, all at the same time, each with a time limit. One that does
 * not end within it is a finding: a driver that hangs is why people ask. */
#include "base/text.h"
#include "doctor/doctor.h"
#include "reach/child.h"
#include "reach/start.h"
#include "reach/stop.h"

#include <string.h>
#include <unistd.h>

#define COMMANDS_MAX 8
#define OUTPUT_BYTES ((size_t)16 << 20)

struct program {
    struct knee_child child;
    bool ended; /* its output is whole */
    int status;
    struct knee_text out;
};

static void take_some(struct program *program)
{
    char block[65536];
    ssize_t got = read(program->child.fd, block, sizeof block);
    if (got > 0 && program->out.length + (size_t)got <= OUTPUT_BYTES) {
        knee_text_add(&program->out, block, (size_t)got);
        return;
    }
    program->ended = got == 0;
    close(program->child.fd);
    program->child.fd = -1;
}

/* Until all have ended or the time is over; a program may close its output and go on. */
static void listen_to(struct program *programs, size_t count, double until_s)
{
    for (;;) {
        struct pollfd polls[COMMANDS_MAX];
        size_t open = 0, running = 0;
        for (size_t i = 0; i < count; i++) {
            struct program *p = &programs[i];
            polls[i] = (struct pollfd){.fd = p->child.fd, .events = POLLIN};
            open += p->child.fd >= 0;
            running += p->child.pid && !knee_child_ended(&p->child, &p->status);
        }
        double left_s = until_s - knee_clock_s();
        if ((open == 0 && running == 0) || left_s <= 0)
            return;
        int wait_ms = open ? (int)(left_s * 1000) + 1 : 5;
        if (knee_stop_poll(polls, count, wait_ms) < 0)
            return;
        for (size_t i = 0; i < count; i++)
            if (polls[i].fd >= 0 && polls[i].revents)
                take_some(&programs[i]);
    }
}

/* The program is not to blame when the user stops it. */
static bool finish(struct program *p, const char *name, struct knee_file_sink to)
{
    bool hangs = p->child.pid && !knee_stop_signal();
    knee_child_kill(&p->child);
    if (p->ended && p->status != 127 && p->out.length > 0 && !hangs)
        to.take(to.ctx, name, p->out.data, p->out.length);
    knee_text_release(&p->out);
    return hangs;
}

unsigned knee_host_commands(const struct knee_host_command *commands, size_t count, double limit_s,
                            struct knee_file_sink to)
{
    struct program programs[COMMANDS_MAX];
    unsigned hanging = 0;
    count = count < COMMANDS_MAX ? count : COMMANDS_MAX;
    memset(programs, 0, sizeof programs);
    for (size_t i = 0; i < count; i++)
        knee_child_start(&programs[i].child, commands[i].argv, true);
    listen_to(programs, count, knee_clock_s() + limit_s);
    for (size_t i = 0; i < count; i++)
        hanging |= finish(&programs[i], commands[i].name, to) ? 1u << i : 0;
    return hanging;
}
