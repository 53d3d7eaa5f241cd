/* SPDX-License-Identifier: MIT */
#include "reach/stop.h"

#include "reach/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- One stop ---- */

static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
enum { STOPS = sizeof stops / sizeof *stops };

static struct {
    _Atomic int came; /* set by a handler, read by every thread */
    int ends[2];      /* a byte in it: a signal came; it is never read */
    bool have_pipe;
    unsigned depth;
    bool taken[STOPS];
} asked;

static void on_stop(int number)
{
    int why = errno;
    if (!asked.came) {
        asked.came = number;
        ssize_t wrote = write(asked.ends[1], "", 1); /* it cannot be full */
        (void)wrote;
    }
    errno = why;
}

/* Without a pipe (no descriptors left) the flag alone is there, and waits are cut into pieces. */
static void open_pipe(void)
{
    if (asked.have_pipe || pipe(asked.ends) != 0)
        return;
    for (int i = 0; i < 2; i++) {
        fcntl(asked.ends[i], F_SETFD, FD_CLOEXEC);
        fcntl(asked.ends[i], F_SETFL, O_NONBLOCK);
    }
    asked.have_pipe = true;
}

void knee_stop_catch(void)
{
    struct sigaction before, on = {.sa_handler = on_stop, .sa_flags = (int)SA_RESETHAND};
    bool launched = knee_runtime_launched();
    if (asked.depth++)
        return;
    open_pipe();
    for (size_t i = 0; i < STOPS; i++) {
        bool take = stops[i] == SIGINT || !launched;
        asked.taken[i] = take && sigaction(stops[i], NULL, &before) == 0 &&
                         before.sa_handler == SIG_DFL && sigaction(stops[i], &on, NULL) == 0;
    }
}

void knee_stop_release(void)
{
    struct sigaction off = {.sa_handler = SIG_DFL};
    if (!asked.depth || --asked.depth)
        return;
    for (size_t i = 0; i < STOPS; i++)
        if (asked.taken[i])
            sigaction(stops[i], &off, NULL);
}

int knee_stop_signal(void)
{
    return asked.came;
}

const _Atomic int *knee_stop_flag(void)
{
    return &asked.came;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

enum { PIECE_MS = 200 }; /* of a wait without the pipe */

int knee_stop_poll(struct pollfd *fds, size_t count, int timeout_ms)
{
    struct pollfd all[KNEE_STOP_FDS + 1];
    int64_t end_ms = now_ms() + timeout_ms;
    count = count < KNEE_STOP_FDS ? count : KNEE_STOP_FDS;
    for (size_t i = 0; i < count; i++)
        all[i] = fds[i];
    all[count] = (struct pollfd){.fd = asked.have_pipe ? asked.ends[0] : -1, .events = POLLIN};
    for (;;) {
        int64_t left_ms = timeout_ms < 0 ? 3600000 : end_ms - now_ms();
        left_ms = left_ms < 0 ? 0 : left_ms;
        if (!asked.have_pipe && left_ms > PIECE_MS)
            left_ms = PIECE_MS;
        if (asked.came)
            return -1;
        int ready = poll(all, (nfds_t)count + 1, (int)left_ms);
        if (asked.came)
            return -1;
        if (ready > 0) {
            for (size_t i = 0; i < count; i++)
                fds[i] = all[i];
            return ready;
        }
        if (ready < 0 && errno != EINTR)
            return 0;
        if (timeout_ms >= 0 && now_ms() >= end_ms)
            return 0;
    }
}

bool knee_stop_sleep(double seconds)
{
    return knee_stop_poll(NULL, 0, (int)(1000 * seconds + 0.5)) == 0;
}

/* ---- What to say last ---- */

/* Signal handlers reach nothing but globals. */
static const char *last_line;
static char *_Atomic kept;
static atomic_bool ending; /* a handler runs, in whichever thread, and will end the process */

/* Only write(2) and friends may be called here. */
static void write_all(int fd, const char *text)
{
    size_t left = strlen(text);
    while (left) {
        ssize_t wrote = write(fd, text, left);
        if (wrote <= 0)
            return;
        text += wrote;
        left -= (size_t)wrote;
    }
}

static void wait_for_the_end(void)
{
    for (;;)
        pause();
}

/* MPI starts threads: the handler may run in one of them while the main thread goes on. */
static void on_signal(int number)
{
    if (atomic_exchange(&ending, true))
        wait_for_the_end();
    const char *text = atomic_load(&kept);
    if (text)
        write_all(STDOUT_FILENO, text);
    write_all(STDERR_FILENO, last_line);
    _exit(number == SIGINT ? 128 + SIGINT : KNEE_SYSTEM); /* Ctrl-C does not count as a failure */
}

static void set(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigaddset(&action.sa_mask, SIGTERM); /* one handler at a time in a thread */
    sigaddset(&action.sa_mask, SIGINT);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

void knee_stop_arm(const char *line)
{
    last_line = line;
    set(on_signal);
}

/* A handler says that it is there before it looks at the text: where none has, none can be reading
 * the text that was replaced. */
static void replace(char *text)
{
    char *before = atomic_exchange(&kept, text);
    if (atomic_load(&ending))
        wait_for_the_end();
    free(before);
}

void knee_stop_disarm(void)
{
    set(SIG_DFL);
    replace(NULL);
}

void knee_stop_keep(struct knee_text *text)
{
    if (text->failed || !text->data) {
        knee_text_release(text);
        return;
    }
    replace(text->data);
    memset(text, 0, sizeof *text);
}
