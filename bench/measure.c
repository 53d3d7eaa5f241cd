/* SPDX-License-Identifier: MIT */
/*
 * measure BYTES COMMAND...: runs a command some times, its output thrown away, and prints the best
 * CPU seconds, the rate for BYTES, and the largest resident set. Best of several (RUNS in the
 * environment, else 5), because timings on shared machines only ever err upwards.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

int main(int argc, char **argv)
{
    double bytes = argc > 1 ? atof(argv[1]) : 0, best_cpu = 1e9, best_wall = 1e9;
    const char *wanted = getenv("RUNS");
    int runs = wanted ? atoi(wanted) : 5;
    long peak_kb = 0;
    for (int run = 0; run < runs && argc > 2; run++) {
        struct rusage usage;
        int status;
        double start = now_s();
        pid_t child = fork();
        if (child == 0) {
            int null = open("/dev/null", O_WRONLY);
            dup2(null, STDOUT_FILENO);
            execvp(argv[2], argv + 2);
            _exit(127);
        }
        if (child < 0 || wait4(child, &status, 0, &usage) < 0 || status != 0) {
            fprintf(stderr, "measure: %s failed\n", argv[2]);
            return 1;
        }
        double cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime), wall = now_s() - start;
        best_cpu = cpu < best_cpu ? cpu : best_cpu;
        best_wall = wall < best_wall ? wall : best_wall;
        peak_kb = usage.ru_maxrss > peak_kb ? usage.ru_maxrss : peak_kb;
    }
    printf("%.3f %.3f %.0f %.1f\n", best_cpu, best_wall, bytes / best_cpu / 1e6,
           (double)peak_kb / 1024);
    return 0;
}
