/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target on files and on all files of folders, without libFuzzer: the corpus is a test
 * wherever there is a C compiler. --memory N: on each file up to N times more, and each time
 * another one of the target's allocations fails; it may answer that memory went, and must not
 * crash.
 *
 * The linker leads the library's realloc() and the target's abort() here (Makefile).
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));
void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __real_abort(void) __attribute__((noreturn));
void __wrap_abort(void) __attribute__((noreturn));

static size_t runs, failed_runs, most;
static size_t calls, fail_at; /* fail_at: the call that fails; 0: none */
static jmp_buf back;

void *__wrap_realloc(void *memory, size_t size)
{
    return ++calls == fail_at ? NULL : __real_realloc(memory, size);
}

/* A target takes an answer without memory for a mistake, where nothing fails. */
void __wrap_abort(void)
{
    if (fail_at)
        longjmp(back, 1);
    __real_abort();
}

static void run(const uint8_t *data, size_t size, size_t at)
{
    calls = 0;
    fail_at = at;
    if (setjmp(back) == 0)
        LLVMFuzzerTestOneInput(data, size);
    fail_at = 0;
}

static void run_all(const uint8_t *data, size_t size)
{
    run(data, size, 0);
    runs++;
    size_t count = calls, points = count < most ? count : most;
    for (size_t i = 0; i < points; i++, failed_runs++)
        run(data, size, 1 + i * count / points);
}

static int run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(1 << 24);
    size_t size = file && data ? fread(data, 1, 1 << 24, file) : 0;
    uint8_t *exact = malloc(size ? size : 1); /* so that one byte too many is seen */
    if (!file || !data || !exact) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return 1;
    }
    memcpy(exact, data, size);
    run_all(exact, size);
    free(exact);
    free(data);
    fclose(file);
    return 0;
}

static int run_folder(DIR *folder, const char *name)
{
    int bad = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", name, entry->d_name);
        if (entry->d_name[0] != '.')
            bad += run_file(path);
    }
    return bad;
}

int main(int argc, char **argv)
{
    int bad = 0, first = 1;
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    if (argc > 2 && strcmp(argv[1], "--memory") == 0) {
        most = (size_t)atol(argv[2]);
        first = 3;
    }
    for (int i = first; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        bad += folder ? run_folder(folder, argv[i]) : run_file(argv[i]);
        if (folder)
            closedir(folder);
    }
    printf("%zu inputs", runs);
    if (most)
        printf(", %zu times with an allocation that fails", failed_runs);
    putchar('\n');
    return bad != 0;
}
