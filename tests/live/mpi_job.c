/* SPDX-License-Identifier: MIT */
/* A job over MPI: steps of work (sleep) and an all-reduce; one rank works longer.
 * mpi_job STEPS WORK_MS LATE_RANK LATE_MS; prints, per rank, the mean wait that must be seen. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, steps = argc > 1 ? atoi(argv[1]) : 50, work_ms = argc > 2 ? atoi(argv[2]) : 20;
    int late = argc > 3 ? atoi(argv[3]) : -1, late_ms = argc > 4 ? atoi(argv[4]) : 20;
    static double data[4096], sum[4096];
    double worked_s = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < steps; i++) {
        double began_s = now_s();
        usleep((useconds_t)(1000 * (work_ms + (rank == late ? late_ms : 0))));
        worked_s += now_s() - began_s;
        MPI_Allreduce(data, sum, 4096, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(data, sum, 1024, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    double most_s = 0;
    worked_s /= steps;
    PMPI_Allreduce(&worked_s, &most_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    printf("%d %.6f\n", rank, most_s - worked_s);
    MPI_Finalize();
    return 0;
}
