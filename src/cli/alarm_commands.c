/* SPDX-License-Identifier: MIT */
/* What --run runs. A pager that hangs or fails at night must not end the watcher, nor keep it from
 * looking: commands run beside it, and their failures are a metric. */
#include "cli/watcher.h"

#include "reach/start.h"

#include <poll.h>
#include <stdlib.h>

#define LIMIT_S 30.0

void cli_alarm_start(struct cli_alarm_commands *all, size_t alarm, const char *command,
                     const char *words)
{
    const char *argv[] = {"/bin/sh", "-c", command, NULL};
    if (all->rows[alarm].child.pid) { /* the one of the last time still runs */
        all->failed++;
        return;
    }
    setenv("KNEE_ALARM", words, 1);
    all->failed += !knee_child_start(&all->rows[alarm].child, argv, false);
    all->rows[alarm].until_s = knee_clock_s() + LIMIT_S;
}

bool cli_alarm_reap(struct cli_alarm_commands *all)
{
    bool some = false;
    for (size_t i = 0; i < CLI_ALARMS; i++) {
        struct knee_child *child = &all->rows[i].child;
        int status = 0;
        if (!child->pid)
            continue;
        if (knee_child_ended(child, &status)) {
            all->failed += status != 0;
        } else if (knee_clock_s() > all->rows[i].until_s) {
            knee_child_kill(child);
            all->failed++;
        } else {
            some = true;
        }
    }
    return some;
}

/* A command that has just started gets a moment to send its alarm. */
void cli_alarm_end(struct cli_alarm_commands *all)
{
    for (int i = 0; i < 15 && cli_alarm_reap(all); i++)
        poll(NULL, 0, 20);
    for (size_t i = 0; i < CLI_ALARMS; i++)
        if (all->rows[i].child.pid)
            knee_child_kill(&all->rows[i].child);
}
