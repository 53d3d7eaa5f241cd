/* SPDX-License-Identifier: MIT */
/* A job over MPI: steps of work (sleep) and an all-reduce; one rank works longer.
 * mpi_job STEPS WORK_MS LATE_RANK LATE_MS [FROM_STEP [every]]; every: each other call once, of two
 * ranks; prints, per rank, the wait in a step that
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

/* 100 numbers each, or 50 for each of the two. */
static void every_call(int rank)
{
    static double a[200], b[200];
    static const int hundred[] = {100, 100}, places[] = {0, 100};
    MPI_Comm world, pair = MPI_COMM_WORLD;
    MPI_Request request[2];
    MPI_Comm_dup(pair, &world);
    MPI_Reduce(a, b, 100, MPI_DOUBLE, MPI_SUM, 0, world);
    MPI_Bcast(a, 100, MPI_DOUBLE, 0, world);
    MPI_Allgather(a, 100, MPI_DOUBLE, b, 100, MPI_DOUBLE, world);
    MPI_Allgatherv(a, 100, MPI_DOUBLE, b, hundred, places, MPI_DOUBLE, world);
    MPI_Reduce_scatter(a, b, hundred, MPI_DOUBLE, MPI_SUM, world);
    MPI_Reduce_scatter_block(a, b, 100, MPI_DOUBLE, MPI_SUM, world);
    MPI_Alltoall(a, 100, MPI_DOUBLE, b, 100, MPI_DOUBLE, world);
    MPI_Alltoallv(a, hundred, places, MPI_DOUBLE, b, hundred, places, MPI_DOUBLE, world);
    MPI_Gather(a, 100, MPI_DOUBLE, b, 100, MPI_DOUBLE, 0, world);
    MPI_Scatter(a, 100, MPI_DOUBLE, b, 100, MPI_DOUBLE, 0, world);
    MPI_Barrier(world);
    if (rank == 0)
        MPI_Send(a, 100, MPI_DOUBLE, 1, 5, world);
    else
        MPI_Recv(a, 100, MPI_DOUBLE, 0, 5, world, MPI_STATUS_IGNORE);
    MPI_Isend(a, 100, MPI_DOUBLE, 1 - rank, 6, world, &request[0]);
    MPI_Irecv(b, 100, MPI_DOUBLE, 1 - rank, 6, world, &request[1]);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    MPI_Waitall(1, &request[1], MPI_STATUSES_IGNORE);
    MPI_Comm_free(&world);
}

int main(int argc, char **argv)
{
    static double data[4096], sum[4096], came_s[MOST], last_s[MOST];
    int provided = 0;
    if (argc > 6)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    else
        MPI_Init(&argc, &argv);
    int rank, steps = argc > 1 ? atoi(argv[1]) : 50, work_ms = argc > 2 ? atoi(argv[2]) : 20;
    int late = argc > 3 ? atoi(argv[3]) : -1, late_ms = argc > 4 ? atoi(argv[4]) : 20;
    int from = argc > 5 ? atoi(argv[5]) : 0;
    steps = steps < MOST ? steps : MOST;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 6)
        every_call(rank);
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
