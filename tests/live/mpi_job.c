/* SPDX-License-Identifier: MIT */
/* A job over MPI: steps of work (sleep) and an all-reduce; one rank works longer.
 * mpi_job STEPS WORK_MS LATE_RANK LATE_MS [FROM_STEP]; prints, per rank, the wait in a step that
 * must be seen: from its coming to the coming of the last, median. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1000 };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

int main(int argc, char **argv)
{
    static double data[4096], sum[4096], came_s[MOST], last_s[MOST];
    MPI_Init(&argc, &argv);
    int rank, steps = argc > 1 ? atoi(argv[1]) : 50, work_ms = argc > 2 ? atoi(argv[2]) : 20;
    int late = argc > 3 ? atoi(argv[3]) : -1, late_ms = argc > 4 ? atoi(argv[4]) : 20;
    int from = argc > 5 ? atoi(argv[5]) : 0;
    steps = steps < MOST ? steps : MOST;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < steps; i++) {
        usleep((useconds_t)(1000 * (work_ms + (rank == late && i >= from ? late_ms : 0))));
        came_s[i] = now_s();
        MPI_Allreduce(data, sum, 4096, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(data, sum, 1024, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    PMPI_Allreduce(came_s, last_s, steps, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < steps; i++)
        last_s[i] -= came_s[i];
    qsort(last_s, (size_t)steps, sizeof *last_s, compare);
    printf("%d %.6f\n", rank, last_s[steps / 2]);
    MPI_Finalize();
    return 0;
}
