/* SPDX-License-Identifier: MIT */
/* The daemon's side of Kineto's on-demand trigger: processes of a PyTorch job that were started
 * with KINETO_USE_DAEMON=1 ask every ten seconds or so whether to record. */
#ifndef KNEE_CLI_KINETO_PEER_H
#define KNEE_CLI_KINETO_PEER_H

#include "knee.h"

enum { CLI_KINETO_MOST = 1024 }; /* processes of a host */

struct cli_kineto {
    int fd;
    char path[108];                   /* of the socket, where it is a file; "": it has none */
    int32_t pids[CLI_KINETO_MOST];    /* processes asked to record */
    int32_t senders[CLI_KINETO_MOST]; /* the same as the kernel reports them; 0: unknown */
    size_t count;
    size_t late; /* processes that asked when it was too late */
};

/* Takes the place of dynolog's daemon on this host. KNEE_SYSTEM: there is one already. */
knee_status cli_kineto_open(struct cli_kineto *kineto, struct knee_err *err);
void cli_kineto_close(struct cli_kineto *kineto);

/* Answers requests until `until_ns` (since 1970), each process once with `config`; with NULL no
 * process is asked to record. Returns earlier when a stop is requested. */
void cli_kineto_answer(struct cli_kineto *kineto, const char *config, int64_t until_ns);

#endif
