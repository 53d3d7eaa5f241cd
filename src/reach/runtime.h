/* SPDX-License-Identifier: MIT */
/*
 * The runtime: how processes of one run find and reach each other, as a table of calls.
 *
 *   self   one process; always there
 *   local  several processes on this host, forked; needs no launcher
 *   mpi    build/knee-mpi.so, loaded only under mpirun: knee itself needs no MPI
 *   nccl   build/knee-nccl.so over one of these: collectives on GPU buffers
 *
 * What holds for every call: it returns true on success; on failure fault[] says why, and the run
 * cannot go on (a rank that cannot reach another cannot tell it so): abort(). Calls may come from
 * any thread (but see one_thread), and only one at a time. Buffers stay untouched by the caller
 * until the request is done. Counts are elements, sizes are bytes.
 */
#ifndef KNEE_REACH_RUNTIME_H
#define KNEE_REACH_RUNTIME_H

#include "knee_collective.h"

enum knee_runtime_type { KNEE_RUNTIME_F32, KNEE_RUNTIME_F64, KNEE_RUNTIME_I64, KNEE_RUNTIME_U8 };
enum knee_runtime_op { KNEE_RUNTIME_SUM, KNEE_RUNTIME_MAX, KNEE_RUNTIME_MIN };

struct knee_request; /* something under way; NULL: nothing, done */

struct knee_runtime {
    const char *name; /* "self", "local", "mpi", "nccl" */
    int rank, size;
    int host, host_count; /* which host this rank is on, in order of first rank; how many */
    const char *host_name;
    const int *host_of; /* host of every rank; [size] */
    void *state;
    const char *device_name; /* of what collective() works on: "CPU", "NVIDIA H200" */
    bool on_device;          /* collective() works on buffer_new()'s memory alone; the rest stays
                                with the host's */
    bool one_thread;         /* only the thread that opened it may make calls */

    bool (*barrier)(struct knee_runtime *rt);
    /* In place, over all ranks, the same result everywhere. */
    bool (*all_reduce)(struct knee_runtime *rt, void *buffer, size_t count,
                       enum knee_runtime_type type, enum knee_runtime_op op);
    /* The same without waiting. At most INT_MAX elements. */
    bool (*all_reduce_start)(struct knee_runtime *rt, void *buffer, size_t count,
                             enum knee_runtime_type type, enum knee_runtime_op op,
                             struct knee_request **out);
    /* At most INT_MAX bytes each. Sending to oneself works. A receive names the exact size. */
    bool (*send_start)(struct knee_runtime *rt, const void *data, size_t bytes, int to, int tag,
                       struct knee_request **out);
    bool (*receive_start)(struct knee_runtime *rt, void *data, size_t bytes, int from, int tag,
                          struct knee_request **out);
    /* Makes progress; when it is done, sets *request to NULL and *done. A NULL *request is done.
     * Messages progress only inside test and wait. */
    bool (*test)(struct knee_runtime *rt, struct knee_request **request, bool *done);
    bool (*wait)(struct knee_runtime *rt, struct knee_request **request);
    /* The engine's own collective on f32, out of place, sum, root 0. `count` is what nccl-tests
     * counts: elements in the larger of the two buffers (all_gather, gather: of `out`;
     * reduce_scatter, scatter: of `in`; all_to_all, all_to_allv: of each), a multiple of `size`
     * where it is shared out. send_recv: to the next rank, from the one before. */
    bool (*collective)(struct knee_runtime *rt, enum knee_op op, const void *in, void *out,
                       size_t count);
    /* Everyone's bytes at rank 0, one after the other: *all (free() it) and sizes[size]. Other
     * ranks get NULL and may pass NULL for both. */
    bool (*gather_bytes)(struct knee_runtime *rt, const void *mine, size_t size, void **all,
                         size_t *sizes);
    /* Memory the collectives work on: the host's, or a GPU's. */
    bool (*buffer_new)(struct knee_runtime *rt, size_t bytes, void **out);
    void (*buffer_release)(struct knee_runtime *rt, void *buffer);
    bool (*buffer_put)(struct knee_runtime *rt, void *buffer, const void *from, size_t bytes);
    bool (*buffer_get)(struct knee_runtime *rt, const void *buffer, void *to, size_t bytes);
    /* Ends every rank of the run; does not return. `why` is written to standard error. */
    void (*abort)(struct knee_runtime *rt, const char *why);
    /* The last call of every rank; frees *rt. Nothing may be under way. */
    void (*finish)(struct knee_runtime *rt);
    char fault[256];
};

/* Opens the runtime called `name`; NULL picks what KNEE_RUNTIME in the environment says, or mpi
 * when the process was started by mpirun (or srun with PMI), else self. KNEE_SYSTEM when it is not
 * there, with what to do. End with finish(). */
knee_status knee_runtime_open(const char *name, struct knee_runtime **out, struct knee_err *err);

/* The same over `base`, which is owned by what comes out, or ended on failure. */
knee_status knee_runtime_open_over(const char *name, struct knee_runtime *base,
                                   struct knee_runtime **out, struct knee_err *err);

/* Makes `ranks` of this one process: every one of them returns from here, with its rank. */
knee_status knee_runtime_fork(int ranks, struct knee_runtime **out, struct knee_err *err);

/* The file of this program, for starting it again; false: the system does not say. */
bool knee_runtime_program(char *path, size_t size);
/* Where an object that belongs to this program lies; false: it is not there. */
bool knee_runtime_object(const char *object, char *path, size_t size);

/* Was this process started as one of several? */
bool knee_runtime_launched(void);

/* The rank that the launcher gave this process, known before anything is opened; 0 when alone. */
int knee_runtime_rank(void);

/* What a loadable object exports: it fills *rt, which is zeroed, or writes rt->fault. `base` is the
 * runtime it may stand on (nccl); it is then owned by *rt. */
#define KNEE_RUNTIME_ENTRY "knee_runtime_fill"
typedef bool knee_runtime_fill_fn(struct knee_runtime *rt, struct knee_runtime *base);

/* And the number of the layout it was built with, which is looked at first: an object left over
 * from another build would write elsewhere. Raise it with every change of struct knee_runtime or of
 * what its calls mean; KNEE_RUNTIME_ABI joins the struct's size, for the day someone forgets. */
#define KNEE_RUNTIME_LAYOUT 1
#define KNEE_RUNTIME_ABI                                                                           \
    ((uint32_t)KNEE_RUNTIME_LAYOUT << 16 | (uint32_t)sizeof(struct knee_runtime))
#define KNEE_RUNTIME_ABI_ENTRY "knee_runtime_abi"

KNEE_PUBLIC_BEGIN
knee_runtime_fill_fn knee_runtime_fill;
extern const uint32_t knee_runtime_abi;
KNEE_PUBLIC_END
knee_runtime_fill_fn knee_runtime_fill_self;

#endif
