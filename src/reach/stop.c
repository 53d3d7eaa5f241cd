/* SPDX-License-Identifier: MIT */
#include "reach/stop.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Signal handlers reach nothing but globals. */
static const char *file_name, *last_line;
static char *volatile kept;

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

static void on_signal(int number)
{
    (void)number;
    if (kept) {
        int fd = file_name ? open(file_name, O_WRONLY | O_CREAT | O_TRUNC, 0666) : STDOUT_FILENO;
        if (fd >= 0)
            write_all(fd, kept);
    }
    write_all(STDERR_FILENO, last_line);
    _exit(KNEE_SYSTEM);
}

static void set(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

void knee_stop_arm(const char *file, const char *line)
{
    file_name = file;
    last_line = line;
    set(on_signal);
}

void knee_stop_disarm(void)
{
    set(SIG_DFL);
    free(kept);
    kept = NULL;
}

/* The old text is freed only when no handler can be reading it any more. */
void knee_stop_keep(struct knee_text *text)
{
    char *before = kept;
    if (text->failed || !text->data) {
        knee_text_release(text);
        return;
    }
    kept = text->data;
    memset(text, 0, sizeof *text);
    free(before);
}
