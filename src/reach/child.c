/* SPDX-License-Identifier: MIT */
#include "reach/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child: the parent may be gone before prctl() has asked for the signal. */
static void become(const char *const *argv, const int *ends, pid_t parent)
{
    int null = open("/dev/null", O_RDWR);
    sigset_t none;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    dup2(null, STDIN_FILENO);
    if (ends) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        setenv("LC_ALL", "C", 1); /* what it prints is read by knee */
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(argv[0], (char *const *)(void *)argv);
    _exit(127);
}

bool knee_child_start(struct knee_child *child, const char *const *argv, bool listen)
{
    int ends[2];
    pid_t parent = getpid();
    *child = (struct knee_child){.fd = -1};
    if (listen && pipe(ends))
        return false;
    for (int i = 0; listen && i < 2; i++)
        fcntl(ends[i], F_SETFD, FD_CLOEXEC); /* none of the others may keep it open */
    child->pid = fork();
    if (child->pid == 0)
        become(argv, listen ? ends : NULL, parent);
    if (listen)
        close(ends[1]);
    if (listen && child->pid < 0)
        close(ends[0]);
    child->fd = listen && child->pid > 0 ? ends[0] : -1;
    child->pid = child->pid > 0 ? child->pid : 0;
    return child->pid != 0;
}

bool knee_child_ended(struct knee_child *child, int *status)
{
    int how = 0;
    pid_t ended = child->pid ? waitpid(child->pid, &how, WNOHANG) : 0;
    if (ended == 0 || (ended < 0 && errno == EINTR))
        return false;
    child->pid = 0;
    *status = ended < 0 ? 127 : WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
    return true;
}

bool knee_child_kill(struct knee_child *child)
{
    enum { PAUSE_MS = 5, PAUSES = 40 };
    int status;
    if (child->fd >= 0)
        close(child->fd);
    child->fd = -1;
    if (!child->pid)
        return true;
    kill(-child->pid, SIGKILL);
    kill(child->pid, SIGKILL); /* it may not have its group yet */
    for (int i = 0; i < PAUSES; i++) {
        if (knee_child_ended(child, &status))
            return true;
        poll(NULL, 0, PAUSE_MS);
    }
    child->pid = 0;
    return false;
}
