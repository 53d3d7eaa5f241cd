# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Sourced by tests that start something and look at it while it runs. A fixed sleep assumes how fast a machine is; these wait for
# what must come, and their limits are for what never comes.

# wait_for SECONDS COMMAND...: until COMMAND succeeds; 1 when it has not after so many seconds
wait_for() {
    local end=$((SECONDS + $1 + 1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.05
    done
}
gone() { ! kill -0 "$1" 2>/dev/null || [ "$(ps -o stat= -p "$1" | cut -c1)" = Z ]; }
# catches PID NUMBER: the process has a handler for this signal
catches() { (((0x$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status") >> ($2 - 1)) & 1)); }
# changes FILE COUNT: it has become another file COUNT times, as one that is written anew and renamed into place
changes() {
    local file=$1 left=$2 last
    for (( ; left > 0; left--)); do
        last=$(stat -c %i-%z "$file" 2>/dev/null)
        wait_for 60 is_other "$file" "$last" || return 1
    done
}
is_other() { [ -e "$1" ] && [ "$(stat -c %i-%z "$1")" != "$2" ]; }
