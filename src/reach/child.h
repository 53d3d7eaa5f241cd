/* SPDX-License-Identifier: MIT */
/* Programs that knee runs: nvidia-smi for the doctor, the command of an alarm. None of them can
 * hold knee up, and none outlives it. */
#ifndef KNEE_REACH_CHILD_H
#define KNEE_REACH_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

struct knee_child {
    pid_t pid; /* 0: none runs */
    int fd;    /* what it prints, when `listen` was set; -1: nothing more comes */
};

/* Starts argv (terminated by NULL) in a new process group with empty standard input; the kernel
 * kills it when knee ends for any reason. `listen`: its standard output is child->fd and its errors
 * go nowhere; else both are knee's. False: it could not be started. */
bool knee_child_start(struct knee_child *child, const char *const *argv, bool listen);

/* True once it has ended: *status as a shell has it, 128 + N for a signal. Does not wait. */
bool knee_child_ended(struct knee_child *child, int *status);

/* Kills the group and waits a moment. A process that sleeps in the kernel cannot be killed: it is
 * left to itself, and false says so. */
bool knee_child_kill(struct knee_child *child);

#endif
