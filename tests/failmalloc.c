/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into knee by tests/faults: one call of a kind fails, or ends the program. The kind is
 * KNEE_FAIL_KIND, one of the rows of `kinds` or "all"; call number KNEE_FAIL_AT fails, once or
 * (KNEE_FAIL_ALL) from there on, as the system would let it fail; with KNEE_FAIL_KILL the process
 * is killed there instead, a write with half its bytes written. To the file KNEE_FAIL_COUNT goes a
 * line for each kind, its name and the number of calls, and one with the blocks of memory that were
 * not given back. To the file KNEE_FAIL_PLACES goes a line for each place that calls, the first
 * time it does: the kind, the number of the call, the place, which is the same in every run of the
 * same program, and 1 where it is knee's own call; with KNEE_FAIL_PLACE the first call from there
 * fails. What writes the counts of a coverage build does not fail. strdup() and the others of the C
 * library stand on malloc(), what fprintf() writes does not come by here: what knee says about a
 * failure is never lost to it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "place.h"

/* glibc's own, by the names that it keeps for those who replace them. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void __libc_free(void *ptr);

enum kind { ALLOC, OPEN, READ, WRITE, RENAME, FSYNC, MMAP, FORK, THREAD, KINDS };
static const struct {
    const char *name;
    int error;
} kinds[KINDS] = {
    [ALLOC] = {"alloc", ENOMEM}, [OPEN] = {"open", EMFILE},     [READ] = {"read", EIO},
    [WRITE] = {"write", ENOSPC}, [RENAME] = {"rename", EACCES}, [FSYNC] = {"fsync", EIO},
    [MMAP] = {"mmap", ENOMEM},   [FORK] = {"fork", EAGAIN},     [THREAD] = {"thread", EAGAIN}};

static atomic_long calls[KINDS], blocks;
static int wanted = -1; /* a kind; KINDS: all of them, counted together */
static atomic_long together;
static long fail_at;
static bool ready, all, kills;
static const char *places; /* file; NULL: they are not looked for */
static uint64_t fail_place;

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("KNEE_FAIL_AT"), *kind = getenv("KNEE_FAIL_KIND");
    fail_at = at ? atol(at) : 0;
    all = getenv("KNEE_FAIL_ALL") != NULL;
    kills = getenv("KNEE_FAIL_KILL") != NULL;
    places = getenv("KNEE_FAIL_PLACES");
    fail_place = place_wanted("KNEE_FAIL_PLACE");
    bool direct;
    if (places || fail_place)
        place_here(&direct); /* what the unwinder loads, it loads now */
    wanted = kind && strcmp(kind, "all") == 0 ? KINDS : ALLOC;
    for (int i = 0; i < KINDS; i++)
        if (kind && strcmp(kind, kinds[i].name) == 0)
            wanted = i;
    for (int i = 0; i < KINDS; i++)
        atomic_store(&calls[i], 0); /* what the loader took before is not the program's */
    atomic_store(&blocks, 0);
    ready = true;
}

__attribute__((destructor)) static void end(void)
{
    const char *name = getenv("KNEE_FAIL_COUNT");
    long kept = atomic_load(&blocks);
    ready = false;
    FILE *file = name ? fopen(name, "w") : NULL;
    if (!file)
        return;
    for (int i = 0; i < KINDS; i++)
        fprintf(file, "%s %ld\n", kinds[i].name, atomic_load(&calls[i]));
    fprintf(file, "kept %ld\n", kept);
    fclose(file);
}

/* The unwinder may allocate: that is nobody's call. */
static bool fails_here(enum kind kind, long call)
{
    static _Thread_local bool inside;
    static atomic_bool done;
    if (inside)
        return false;
    inside = true;
    bool direct;
    uint64_t place = place_here(&direct);
    bool known = place != 0;
    place ^= (uint64_t)kind << 56;
    if (places && known && place_is_new(place))
        place_note(places, kinds[kind].name, call, place, direct);
    bool failing = known && place == fail_place && !atomic_exchange(&done, true);
    if (failing)
        errno = kinds[kind].error;
    inside = false;
    return failing;
}

static bool fails(enum kind kind)
{
    if (!ready)
        return false;
    long call = atomic_fetch_add(&calls[kind], 1) + 1;
    if (places || fail_place)
        return fails_here(kind, call);
    if (wanted != KINDS && wanted != (int)kind)
        return false;
    call = wanted == KINDS ? atomic_fetch_add(&together, 1) + 1 : call;
    bool failing = fail_at && (call == fail_at || (all && call > fail_at));
    if (failing && kills && kind != WRITE)
        raise(SIGKILL);
    if (failing)
        errno = kinds[kind].error;
    return failing;
}

#define REAL(name) real_##name
#define FIND(name)                                                                                 \
    static __typeof__(name) *REAL(name);                                                           \
    if (!REAL(name)) {                                                                             \
        void *symbol = dlsym(RTLD_NEXT, #name);                                                    \
        memcpy(&REAL(name), &symbol, sizeof symbol);                                               \
    }

/* ---- Memory ---- */

static void *counted(void *block)
{
    if (block)
        atomic_fetch_add(&blocks, 1);
    return block;
}

void *malloc(size_t size)
{
    return fails(ALLOC) ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return fails(ALLOC) ? NULL : counted(__libc_calloc(count, size));
}

void *realloc(void *ptr, size_t size)
{
    if (fails(ALLOC))
        return NULL;
    void *block = __libc_realloc(ptr, size);
    return ptr ? block : counted(block);
}

void free(void *ptr)
{
    if (ptr)
        atomic_fetch_sub(&blocks, 1);
    __libc_free(ptr);
}

void *mmap(void *at, size_t length, int rights, int flags, int fd, off_t offset)
{
    FIND(mmap)
    return fails(MMAP) ? MAP_FAILED : REAL(mmap)(at, length, rights, flags, fd, offset);
}

/* ---- Files ---- */

/* A coverage build writes its counts: from here on nothing fails. */
static void look_for_counts(const char *path)
{
    size_t length = strlen(path);
    ready = ready && !(length > 5 && strcmp(path + length - 5, ".gcda") == 0);
}

int open(const char *path, int flags, ...)
{
    FIND(open)
    look_for_counts(path);
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return fails(OPEN) ? -1 : REAL(open)(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    FIND(open64)
    look_for_counts(path);
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return fails(OPEN) ? -1 : REAL(open64)(path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    FIND(fopen)
    return fails(OPEN) ? NULL : REAL(fopen)(path, mode);
}

DIR *opendir(const char *path)
{
    FIND(opendir)
    return fails(OPEN) ? NULL : REAL(opendir)(path);
}

int mkstemp(char *pattern)
{
    FIND(mkstemp)
    return fails(OPEN) ? -1 : REAL(mkstemp)(pattern);
}

ssize_t read(int fd, void *buffer, size_t size)
{
    FIND(read)
    return fails(READ) ? -1 : REAL(read)(fd, buffer, size);
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
    FIND(pread)
    return fails(READ) ? -1 : REAL(pread)(fd, buffer, size, offset);
}

ssize_t pread64(int fd, void *buffer, size_t size, off64_t offset)
{
    FIND(pread64)
    return fails(READ) ? -1 : REAL(pread64)(fd, buffer, size, offset);
}

/* The mark of failed streams is glibc's own (_IO_ERR_SEEN): there is no call that sets it. */
static void mark(FILE *file)
{
    file->_flags |= 0x20;
}

static size_t failed_fread(FILE *file)
{
    mark(file);
    return 0;
}

size_t fread(void *buffer, size_t size, size_t count, FILE *file)
{
    FIND(fread)
    return fails(READ) ? failed_fread(file) : REAL(fread)(buffer, size, count, file);
}

size_t __fread_chk(void *buffer, size_t room, size_t size, size_t count, FILE *file);
size_t __fread_chk(void *buffer, size_t room, size_t size, size_t count, FILE *file)
{
    FIND(__fread_chk)
    return fails(READ) ? failed_fread(file) : REAL(__fread_chk)(buffer, room, size, count, file);
}

ssize_t write(int fd, const void *buffer, size_t size)
{
    FIND(write)
    if (!fails(WRITE))
        return REAL(write)(fd, buffer, size);
    if (kills && REAL(write)(fd, buffer, size / 2) >= 0)
        raise(SIGKILL);
    return -1;
}

size_t fwrite(const void *buffer, size_t size, size_t count, FILE *file)
{
    FIND(fwrite)
    if (!fails(WRITE))
        return REAL(fwrite)(buffer, size, count, file);
    if (kills) {
        REAL(fwrite)(buffer, size, count / 2, file);
        fflush(file);
        raise(SIGKILL);
    }
    mark(file);
    return 0;
}

int fsync(int fd)
{
    FIND(fsync)
    return fails(FSYNC) ? -1 : REAL(fsync)(fd);
}

int rename(const char *from, const char *to)
{
    FIND(rename)
    return fails(RENAME) ? -1 : REAL(rename)(from, to);
}

/* ---- Processes ---- */

pid_t fork(void)
{
    FIND(fork)
    return fails(FORK) ? -1 : REAL(fork)();
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *),
                   void *ctx)
{
    FIND(pthread_create)
    return fails(THREAD) ? EAGAIN : REAL(pthread_create)(thread, attributes, work, ctx);
}
