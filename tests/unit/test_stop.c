/* SPDX-License-Identifier: MIT */
/* What is kept when a run is ended, with the handler in another thread than the one that works. */
#include "reach/stop.h"
#include "unit.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 4 << 20 }; /* more than a pipe takes, and large enough to leave memory when freed */

static void keep(char letter)
{
    struct knee_text text = {0};
    for (size_t i = 0; i < SIZE; i++)
        knee_text_add(&text, &letter, 1);
    knee_stop_keep(&text);
}

static void *idle(void *running)
{
    atomic_store((atomic_bool *)running, true);
    for (;;)
        pause();
    return NULL;
}

/* The handler writes in another thread and waits for its reader; this one keeps more. The signal
 * waits for the thread: a sanitizer complains of one that ends before it knows its stack. It is
 * sent until the handler writes: TSan may never deliver the first. */
static void work_and_be_stopped(bool disarm)
{
    pthread_t thread;
    static atomic_bool running;
    knee_stop_arm("stopped\n");
    keep('a');
    if (pthread_create(&thread, NULL, idle, &running) != 0)
        _exit(9);
    while (!atomic_load(&running))
        usleep(1000);
    for (int written = 0; written == 0; usleep(1000))
        if (pthread_kill(thread, SIGTERM) != 0 || ioctl(STDOUT_FILENO, FIONREAD, &written) != 0)
            _exit(9);
    if (disarm)
        knee_stop_disarm();
    for (;;)
        keep('b');
}

/* All of one text, then the line: what the child wrote, and how it ended. */
static void run_child(bool disarm)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        alarm(60);
        work_and_be_stopped(disarm);
    }
    close(ends[1]);
    struct pollfd begun = {.fd = ends[0], .events = POLLIN};
    assert_int_equal(poll(&begun, 1, 60000), 1);
    usleep(300000); /* the child keeps more meanwhile */
    static char got[SIZE + 64];
    size_t length = 0;
    ssize_t part;
    while (length < sizeof got && (part = read(ends[0], got + length, sizeof got - length)) > 0)
        length += (size_t)part;
    close(ends[0]);
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), KNEE_SYSTEM);
    assert_int_equal(length, SIZE + strlen("stopped\n"));
    for (size_t i = 0; i < SIZE; i++)
        assert_int_equal(got[i], 'a');
    assert_memory_equal(got + SIZE, "stopped\n", 8);
}

TEST(what_is_being_written_is_not_freed)
{
    run_child(false);
}

TEST(an_end_that_has_begun_is_not_disarmed)
{
    run_child(true);
}
