/* SPDX-License-Identifier: MIT */
/*
 * Jobs without GPUs: the same files from MPI's profiling interface, by LD_PRELOAD. A blocking
 * collective is recorded from call to return; of those that do not block, the time in MPI_Wait and
 * its like. What lies outside of MPI counts as the job's own work.
 */
#include "live/live_agent.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* ---- Communicators: an attribute keeps the row ---- */

static int keyval = MPI_KEYVAL_INVALID;

/* Members in the world's numbering say who it is; a duplicate has the same members, so the order of
 * its making counts too, which is the same on all of them. */
static uint64_t id_of(MPI_Comm comm, int size)
{
    static uint64_t made;
    MPI_Group world, group;
    uint64_t hash = UINT64_C(0xcbf29ce484222325) + made++;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Comm_group(comm, &group);
    for (int i = 0; i < size; i++) {
        int there = 0;
        PMPI_Group_translate_ranks(group, 1, &i, world, &there);
        hash = (hash ^ (uint64_t)(uint32_t)there) * UINT64_C(0x100000001b3);
    }
    PMPI_Group_free(&world);
    PMPI_Group_free(&group);
    return hash;
}

static uint16_t comm_row(MPI_Comm comm)
{
    void *kept = NULL;
    int found = 0, rank = 0, size = 0;
    if (keyval == MPI_KEYVAL_INVALID)
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    PMPI_Comm_get_attr(comm, keyval, &kept, &found);
    if (found)
        return (uint16_t)(uintptr_t)kept;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    uint16_t row = live_comm_row(id_of(comm, size), rank, size);
    PMPI_Comm_set_attr(comm, keyval, (void *)(uintptr_t)row);
    return row;
}

/* ---- Calls ---- */

static struct live_event begin(const char *op, MPI_Comm comm, int64_t count, MPI_Datatype type,
                               int peer)
{
    struct live_event event = {.kind = LIVE_ENQUEUED, .dur_ns = -1};
    if (!live_listens())
        return event;
    int64_t now_ns = live_now_ns();
    int size = 0;
    if (type != MPI_DATATYPE_NULL)
        PMPI_Type_size(type, &size);
    event.op = live_op_of(op);
    event.comm = comm_row(comm);
    event.pair = peer >= 0;
    event.peer = peer;
    event.count = (uint64_t)(count * size); /* bytes: types are counted as such */
    event.seq =
        event.pair ? live_pair_next(event.comm, event.op, peer) : live_comm_next(event.comm);
    event.sn = event.seq;
    event.at_ns = live_now_ns();
    live_push(&event);
    live_took_ns(event.at_ns - now_ns);
    return event;
}

static void end(struct live_event *event)
{
    if (!live_listens() || !event->at_ns)
        return;
    int64_t now_ns = live_now_ns();
    event->kind = LIVE_RAN;
    event->dur_ns = now_ns - event->at_ns;
    live_push(event);
    live_took_ns(live_now_ns() - now_ns);
}

static int size_of(MPI_Comm comm)
{
    int size = 1;
    PMPI_Comm_size(comm, &size);
    return size;
}

static int64_t sum(const int *counts, MPI_Comm comm)
{
    int64_t all = 0;
    for (int i = 0; live_is_on() && counts && i < size_of(comm); i++)
        all += counts[i];
    return all;
}

/* One function of MPI: its name and parameters, and what is recorded of it. */
#define CALL(name, parameters, arguments, op, comm, count, type, peer)                             \
    LIVE_EXPORT int MPI_##name parameters;                                                         \
    LIVE_EXPORT int MPI_##name parameters                                                          \
    {                                                                                              \
        struct live_event event = begin(op, comm, count, type, peer);                              \
        int result = PMPI_##name arguments;                                                        \
        end(&event);                                                                               \
        return result;                                                                             \
    }

CALL(Allreduce, (const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (from, to, n, type, op, comm), "AllReduce", comm, n, type, -1)
CALL(Reduce,
     (const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
     (from, to, n, type, op, root, comm), "Reduce", comm, n, type, -1)
CALL(Bcast, (void *data, int n, MPI_Datatype type, int root, MPI_Comm comm),
     (data, n, type, root, comm), "Broadcast", comm, n, type, -1)
CALL(Allgather,
     (const void *from, int n, MPI_Datatype type, void *to, int m, MPI_Datatype other,
      MPI_Comm comm),
     (from, n, type, to, m, other, comm), "AllGather", comm, m, other, -1)
CALL(Allgatherv,
     (const void *from, int n, MPI_Datatype type, void *to, const int *m, const int *at,
      MPI_Datatype other, MPI_Comm comm),
     (from, n, type, to, m, at, other, comm), "AllGather", comm, sum(m, comm) / size_of(comm),
     other, -1)
CALL(Reduce_scatter,
     (const void *from, void *to, const int *n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (from, to, n, type, op, comm), "ReduceScatter", comm, sum(n, comm) / size_of(comm), type, -1)
CALL(Reduce_scatter_block,
     (const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (from, to, n, type, op, comm), "ReduceScatter", comm, n, type, -1)
CALL(Alltoall,
     (const void *from, int n, MPI_Datatype type, void *to, int m, MPI_Datatype other,
      MPI_Comm comm),
     (from, n, type, to, m, other, comm), "AlltoAll", comm, m, other, -1)
CALL(Alltoallv,
     (const void *from, const int *n, const int *at, MPI_Datatype type, void *to, const int *m,
      const int *there, MPI_Datatype other, MPI_Comm comm),
     (from, n, at, type, to, m, there, other, comm), "AlltoAll", comm, sum(m, comm) / size_of(comm),
     other, -1)
CALL(Gather,
     (const void *from, int n, MPI_Datatype type, void *to, int m, MPI_Datatype other, int root,
      MPI_Comm comm),
     (from, n, type, to, m, other, root, comm), "Gather", comm, n, type, -1)
CALL(Scatter,
     (const void *from, int n, MPI_Datatype type, void *to, int m, MPI_Datatype other, int root,
      MPI_Comm comm),
     (from, n, type, to, m, other, root, comm), "Scatter", comm, m, other, -1)
CALL(Barrier, (MPI_Comm comm), (comm), "Barrier", comm, 0, MPI_BYTE, -1)
CALL(Send, (const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm),
     (data, n, type, to, tag, comm), "Send", comm, n, type, to)
CALL(Recv,
     (void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status),
     (data, n, type, from, tag, comm, status), "Recv", comm, n, type, from < 0 ? 0 : from)

/* Waiting has no communicator and no partners: it is time in communication, no more. */
CALL(Wait, (MPI_Request * request, MPI_Status *status), (request, status), "Wait", MPI_COMM_SELF, 0,
     MPI_BYTE, 0)
CALL(Waitall, (int n, MPI_Request requests[], MPI_Status *statuses), (n, requests, statuses),
     "Wait", MPI_COMM_SELF, 0, MPI_BYTE, 0)

/* ---- Beginning and end ---- */

static void started(void)
{
    int flag = 0;
    if (PMPI_Initialized(&flag) == 0 && flag && live_start(LIVE_FROM_MPI))
        comm_row(MPI_COMM_WORLD); /* the first row: rank and size, if the launcher does not tell */
}

LIVE_EXPORT int MPI_Init(int *argc, char ***argv);
LIVE_EXPORT int MPI_Init(int *argc, char ***argv)
{
    int result = PMPI_Init(argc, argv);
    started();
    return result;
}

LIVE_EXPORT int MPI_Init_thread(int *argc, char ***argv, int wanted, int *provided);
LIVE_EXPORT int MPI_Init_thread(int *argc, char ***argv, int wanted, int *provided)
{
    int result = PMPI_Init_thread(argc, argv, wanted, provided);
    started();
    return result;
}
