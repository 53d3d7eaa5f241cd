/* SPDX-License-Identifier: MIT */
/*
 * Put before every source of a coverage build. A process that ends by _exit() would leave no
 * counts; and half a file, to which nothing is added any more, would be left by one that is killed
 * while it writes them, or that may write only small files. So one process of a program writes at a
 * time, who kills waits for it, and who has a limit leaves it or writes nothing.
 */
#ifndef KNEE_COV_EXIT_H
#define KNEE_COV_EXIT_H

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

void __gcov_dump(void);

/* One for all sources of an object. */
__attribute__((weak, visibility("hidden"))) int cov_locked;

/* Past the C library, whose calls may be watched. Held until the process ends. */
static inline void cov_lock(void)
{
    if (cov_locked)
        return;
    cov_locked = 1;
    long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        syscall(SYS_flock, fd, LOCK_EX);
}

static inline void cov_without_limit(int status, void *unused)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY}, now;
    (void)unused;
    if (getrlimit(RLIMIT_FSIZE, &now) == 0 && now.rlim_cur != RLIM_INFINITY &&
        setrlimit(RLIMIT_FSIZE, &limit) != 0) {
        fflush(NULL);
        (_exit)(status);
    }
}

__attribute__((weak, visibility("hidden"))) int cov_begun;

__attribute__((constructor)) static void cov_begin(void)
{
    if (!cov_begun++)
        on_exit(cov_without_limit, NULL); /* the first to come is the last to go */
}

static inline __attribute__((noreturn)) void cov_exit(int status)
{
    cov_lock();
    cov_without_limit(status, NULL);
    open("/none.gcda",
         O_RDONLY | O_CLOEXEC); /* tests/failmalloc.c lets nothing fail from here on */
    __gcov_dump();
    (_exit)(status);
}
#define _exit(status) cov_exit(status)

static inline int cov_kill(pid_t pid, int number)
{
    if (number == SIGKILL)
        cov_lock();
    return (kill)(pid, number);
}
#define kill(pid, number) cov_kill(pid, number)

/* It is as slow as a sanitizer's: tests/unit/unit.h. */
#define UNIT_SANITIZED 1

#endif
