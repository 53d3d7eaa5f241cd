/* SPDX-License-Identifier: MIT */
/* Runs a fuzz target on files and on all files of folders, without libFuzzer: the corpus is a test
 * wherever there is a C compiler. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t runs;

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
    for (size_t i = 0; i < size; i++)
        exact[i] = data[i];
    LLVMFuzzerTestOneInput(exact, size);
    runs++;
    free(exact);
    free(data);
    fclose(file);
    return 0;
}

int main(int argc, char **argv)
{
    int bad = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (!folder) {
            bad += run_file(argv[i]);
            continue;
        }
        for (struct dirent *entry; (entry = readdir(folder));) {
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            if (entry->d_name[0] != '.')
                bad += run_file(path);
        }
        closedir(folder);
    }
    printf("%zu inputs\n", runs);
    return bad != 0;
}
