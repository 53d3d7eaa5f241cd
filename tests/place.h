/* SPDX-License-Identifier: MIT */
/*
 * Where in the program a call comes from: a number made of the return addresses up to main, within
 * the objects they lie in, so that it is the same in every run. For objects that make calls fail,
 * each place in turn (tests/failmalloc.c, tests/wire.c).
 */
#ifndef KNEE_TESTS_PLACE_H
#define KNEE_TESTS_PLACE_H

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PLACE_DEPTH = 48, PLACE_OWN = 7, PLACES = 1 << 14 };

/* Of the frames that are knee's own the innermost ones count: what failed, and who is told.
 * *direct: knee's own code made the call, itself or through the C library; not another library. */
static inline uint64_t place_here(bool *direct)
{
    void *frames[PLACE_DEPTH];
    Dl_info self, info;
    int count = backtrace(frames, PLACE_DEPTH), own = 0;
    uint64_t hash = UINT64_C(14695981039346656037);
    bool outside = false;
    *direct = false;
    if (!dladdr(frames[0], &self))
        return 0;
    for (int i = 1; i < count && own < PLACE_OWN; i++) {
        if (!dladdr(frames[i], &info) || info.dli_fbase == self.dli_fbase)
            continue;
        if (strstr(info.dli_fname, "/ld-linux")) /* loading, or what a coverage build does last */
            return 0;
        bool ours = strstr(info.dli_fname, "/knee") || strstr(info.dli_fname, "libknee");
        *direct = *direct || (ours && !outside);
        outside = outside || (!ours && !strstr(info.dli_fname, "/libc.so"));
        if (!ours)
            continue;
        own++;
        hash ^= (uint64_t)((char *)frames[i] - (char *)info.dli_fbase);
        hash *= UINT64_C(1099511628211);
    }
    return hash & UINT64_C(0xffffffffffffff);
}

/* True the first time in this process; never for no place. */
static inline bool place_is_new(uint64_t place)
{
    static _Atomic uint64_t seen[PLACES];
    for (size_t i = 0; i < PLACES; i++) {
        size_t at = (size_t)(place + i) % PLACES;
        uint64_t empty = 0;
        if (atomic_compare_exchange_strong(&seen[at], &empty, place | 1))
            return true;
        if (empty == (place | 1))
            return false;
    }
    return false;
}

static inline uint64_t place_wanted(const char *variable)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 16) : 0;
}

/* Past the C library: its calls are the ones that are watched. */
static inline void place_note(const char *file, const char *kind, long call, uint64_t place,
                              bool direct)
{
    char line[128];
    int length = snprintf(line, sizeof line, "%s %ld %016llx %d\n", kind, call,
                          (unsigned long long)place, direct);
    long fd = syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd >= 0 && length > 0) {
        syscall(SYS_write, fd, line, (size_t)length);
        syscall(SYS_close, fd);
    }
}

#endif
