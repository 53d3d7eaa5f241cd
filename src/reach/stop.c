/* SPDX-License-Identifier: MIT */
#include "reach/stop.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* MPI has threads of its own: the handler may run in one of them while the main thread goes on. */
static void on_signal(int number)
{
    if (atomic_exchange(&ending, true))
        wait_for_the_end();
    const char *text = atomic_load(&kept);
    if (text)
        write_all(STDOUT_FILENO, text);
    write_all(STDERR_FILENO, last_line);
    _exit(number == SIGINT ? 128 + SIGINT : KNEE_SYSTEM); /* the user's own wish is no failure */
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
