# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# For tests/measure/live and tests/measure/agent: plays events into the agent. Sourced, with the program's name as $1.
set -u
knee=${1:-build/knee}
build=$(dirname "$knee")
command -v python3 >/dev/null 2>&1 || { echo "python3 is missing: apt-get install python3"; exit 77; }
make -s B="$build" "$build/tests/live/play" "$build"/tests/live/{cupti,gpu,gpu_older}.so "$build/libknee_live.so" || exit 4
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
fail() { echo "FAILED: $*"; bad=1; }
export WORLD_SIZE=2 KNEE_LIVE_CUPTI=0 KNEE_LIVE_NVML=0

# play DIR RANK KEY=VALUE...: plays into the agent; what it says on standard error beside the mask goes to DIR.err
play() {
    local dir=$1 rank=$2
    shift 2
    RANK=$rank KNEE_LIVE_DIR=$dir timeout 120 "${player:-$build/tests/live/play}" "${agent:-$build/libknee_live.so}" "$@" >"$tmp/out" 2>"$tmp/err"
    local status=$?
    grep -v '^mask' "$tmp/err" >"$dir.err"
    return $status
}
check() { python3 tests/live/check.py "$@" || fail "$*"; }

with_cupti() { # SETTING... -- KEY=VALUE...: plays 0.5 s with the stand-in
    local settings=()
    while [ "$1" != -- ]; do settings+=("$1"); shift; done
    shift
    rm -rf "$tmp/with"
    (for setting in KNEE_LIVE_CUPTI=1 KNEE_LIVE_CUPTI_LIBRARY="$PWD/$build/tests/live/cupti.so" KNEE_LIVE_BUDGET=0.1 "${settings[@]}"; do export "${setting?}"; done
     play "$tmp/with" 0 cuda=1 steps=160 step_us=3000 "$@") || fail "${settings[*]} $*: status $? $(cat "$tmp/err")"
}
