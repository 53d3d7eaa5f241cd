/* SPDX-License-Identifier: MIT */
/*
 * The agent: the code that runs inside a user's job. Three kinds of threads meet here:
 *
 *   the job's own threads and NCCL's   call in (live_nccl.c, live_pmpi.c): they fill slots of a
 *                                      fixed pool and push events into a fixed queue, no more
 *   CUPTI's                            fill buffers of a fixed pool (live_cupti.c)
 *   the writer, the agent's only one   empties the queue, finds steps, samples, writes files
 *
 * Whatever fails turns the agent off with one line on standard error (live_off()), and the job goes
 * on. docs/reference/watch.md describes the files.
 */
#ifndef KNEE_LIVE_AGENT_H
#define KNEE_LIVE_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define LIVE_EXPORT __attribute__((visibility("default")))

enum live_source { LIVE_FROM_CUDA, LIVE_FROM_NCCL, LIVE_FROM_MPI };

/* ---- What is set, from KNEE_LIVE_* ---- */

struct live_config {
    char dir[1024];
    int64_t limit_bytes; /* of this process's folder */
    double budget;       /* share of the job's time that the agent may take */
    bool always;         /* record all steps, whatever it costs */
    bool kernel_times;   /* ask NCCL for times of kernels even where that is slow */
    bool cupti, nvml;
    char cupti_library[1024], nvml_library[1024]; /* "": the usual names */
    double clock_scale;                           /* of tests: so many seconds pass in one. 1 */
};

/* ---- Operations, algorithms, protocols and types by NCCL's names (live_names.c) ---- */

enum { LIVE_OP_UNKNOWN = 0, LIVE_NAME_NONE = 0 };
uint8_t live_op_of(const char *name), live_algo_of(const char *name),
    live_proto_of(const char *name);
/* NCCL's numbers, as the first profiler interface gives them. */
uint8_t live_op_numbered(unsigned number), live_algo_numbered(unsigned number),
    live_proto_numbered(unsigned number), live_type_numbered(unsigned number);
uint8_t live_type_of(const char *name);
const char *live_op_name(uint8_t op), *live_algo_name(uint8_t algo),
    *live_proto_name(uint8_t proto);
/* As traces name a collective ("allreduce") and a type ("Float"). */
const char *live_trace_op(uint8_t op), *live_trace_type(uint8_t type);
unsigned live_type_bytes(uint8_t type);
/* Does a kernel of this name run that operation? */
bool live_kernel_runs(const char *kernel, uint8_t op);

/* ---- Events: what the job's threads tell the writer ---- */

enum live_event_kind {
    LIVE_ENQUEUED, /* the host handed a collective over */
    LIVE_RAN,      /* it has run, or will not be heard of again */
};

struct live_event {
    uint8_t kind, op, algo, proto, type, channels;
    bool pair;     /* a send or receive */
    uint16_t comm; /* row of live_comm() */
    int32_t peer;
    uint32_t launch; /* calls of one launch have the same one; 0: not known */
    int64_t at_ns;   /* when it was enqueued */
    uint64_t seq, sn, count;
    int64_t dur_ns;                   /* -1: not known */
    int64_t gpu_ns;                   /* start on the GPU's clock; 0: not known */
    uint32_t shortest_ns, longest_ns; /* of its channels */
};

/* A queue of fixed size for many writers and one reader; what does not fit is counted. */
bool live_push(const struct live_event *event);
bool live_pull(struct live_event *event);
uint64_t live_pushed_too_many(void);

/* ---- Communicators ---- */

enum { LIVE_COMMS = 1024 };
struct live_comm {
    uint64_t id;
    int rank, size; /* -1: not known */
};
/* The row of a communicator, added if it is not there. The table never shrinks; when it is full
 * the last row stands for all others. */
uint16_t live_comm_row(uint64_t id, int rank, int size);
struct live_comm live_comm(uint16_t row);
/* The next sequence number of a communicator, or of a kind of call with a peer. */
uint64_t live_comm_next(uint16_t row);
uint64_t live_pair_next(uint16_t row, uint8_t op, int peer);

/* ---- The agent (live_agent.c) ---- */

/* Starts what is not running yet. False: the agent is off. Any thread. */
bool live_start(enum live_source source);
bool live_is_on(void);
/* On, and not paused: the job's threads ask this. */
bool live_listens(void);
/* The writer's look for a file "pause" in the folder of all; true: it is there. */
bool live_look_for_pause(void);
/* One line, once, and never again anything. */
void live_off(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* One line that changes nothing; of each `once` only the first. */
void live_say(int *once, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const struct live_config *live_config(void);
int64_t live_now_ns(void); /* since 1970 */
/* Nanoseconds that callbacks took of the job's threads; one in 61 is timed. */
void live_took_ns(int64_t ns);
int64_t live_took_in_all_ns(void);

/* What about.json says; those that are set first win. */
struct live_about {
    char host[64], gpu[96], gpu_uuid[48], nccl[24], why[160];
    int rank, world, local_rank, api;
    bool kernel_times;
    enum live_source source;
    int64_t start_ns;
};
void live_about_nccl(int api, int version, bool kernel_times, const char *why);
void live_about_gpu(const char *name, const char *uuid);
struct live_about live_about(void);

/* ---- Of the writer alone ---- */

/* Files (live_files.c). Nothing is made before the first line. */
void live_files_about(void);
void live_files_step(const struct knee_text *line), live_files_call(const struct knee_text *line);
/* A whole file; true: it is there. `name` has room for the file's name. */
bool live_files_trace(int64_t step, const struct knee_text *text, char *name, size_t size);
void live_files_flush(void);
void live_files_release(void);

/* Steps (live_steps.c): finds the period of what is enqueued. */
struct live_boundary {
    int64_t number, at_ns;
    uint16_t comm;
    uint64_t seq;
};
struct live_period;
struct live_period *live_period_new(void);
void live_period_free(struct live_period *period);
/* Takes a collective; true: with it a step begins, which *out describes. */
bool live_period_take(struct live_period *period, const struct live_event *event,
                      struct live_boundary *out);
size_t live_period_length(const struct live_period *period); /* collectives in a step; 0: unknown */

/* Sampling with CUPTI (live_cupti.c). A recording holds what was launched from somewhere in the
 * step before until after the step's end. */
enum live_record_kind { LIVE_KERNEL, LIVE_COPY, LIVE_FILL, LIVE_HOST_CALL };
struct live_record {
    int64_t start_ns, end_ns; /* host clock */
    uint64_t bytes;
    uint32_t correlation, name, stream, thread;
    uint8_t kind, device;
};
struct live_recording {
    struct live_record *records;
    size_t count;
    uint64_t lost;
};
enum live_cupti_state { LIVE_CUPTI_OFF, LIVE_CUPTI_READY, LIVE_CUPTI_TAKEN, LIVE_CUPTI_ON };
enum live_cupti_state live_cupti_begin(void);
void live_cupti_end(void);
/* After the end: CUPTI leaves the process, if it can; up to half a second. */
void live_cupti_leave(void);
/* Fetches what has come in; the number of new records. `ask`: and what CUPTI still holds, which may
 * keep the job's launches waiting. */
size_t live_cupti_drain(bool ask);
struct live_recording live_cupti_recording(void);
/* Forgets what began before; the buffers stay. */
void live_cupti_forget(int64_t before_ns);
/* Names of kernels and calls, in rows; UINT32_MAX: no room. */
uint32_t live_cupti_name_row(const char *given, const char *text);
const char *live_cupti_name(uint32_t name);

/* Who records a sampled step (live_recorder.c). NULL: steps are timed and not sampled. */
struct live_recorder {
    bool (*begin)(void);       /* false: not now */
    size_t (*drain)(bool ask); /* fetches what has come in; how many are new */
    void (*end)(void);         /* what is launched from now on is not wanted */
    void (*leave)(void);       /* after the last drain of a sample */
    void (*stop)(void);        /* at once; what was recorded is forgotten */
    struct live_recording (*recording)(void);
    void (*forget)(int64_t before_ns); /* what is older than a sample that begins */
    bool has_gpu;                      /* else calls are remembered when they have run */
    bool goes_on;                      /* between samples, too: every drain brings something new */
};
const struct live_recorder *live_recorder(void);

/* Who CUPTI's one client is (live_client.c). Come: 0, or CUPTI's code when another tool is;
 * `for_good`: without leaving again. Leave: true: CUPTI is finalised. Stay: it remains, without us
 * as its client. */
enum { LIVE_DOMAIN_DRIVER = 1, LIVE_DOMAIN_RUNTIME = 2 };
struct live_symbol {
    const char *name;
    void *function; /* where to put it */
};
/* All of them, or none. */
bool live_symbols_find(void *library, const struct live_symbol *list, size_t count);
bool live_client_load(void *library);
int live_client_come(bool for_good);
void live_client_stay(void);
bool live_client_leave(void);

/* A sampled step as a trace, with its labels by the account of knee trace (live_trace.c). */
struct live_sample {
    struct live_boundary start, end;
    const struct live_event *calls; /* enqueued about then, in order; or that ran, for MPI */
    size_t call_count;
    struct live_recording recording;
};
struct live_labels {
    bool known;
    int64_t label_ns[8], window_ns, comm_ns;
};
void live_trace_write(const struct live_sample *sample, const struct live_about *about,
                      struct knee_text *text);
void live_trace_label(const struct knee_text *text, int64_t number, struct live_labels *out);

/* NVML (live_nvml.c), every two seconds. */
struct live_gpu {
    double interval_s, energy_j, power_w; /* negative: not known */
    int sm_mhz, temp_c;
    uint64_t throttle;
    bool fresh;
};
void live_nvml_read(struct live_gpu *out);

/* The writer's round (live_writer.c). */
struct live_writer;
struct live_writer *live_writer_new(void); /* NULL: no memory, and the agent is off */
void live_writer_round(struct live_writer *writer, bool last);
bool live_writer_hurried(struct live_writer *writer); /* something must happen soon */
void live_writer_free(struct live_writer *writer);

/* Slots of collectives that nothing more will be heard of (live_slots.c). */
void live_slots_sweep(bool all);

/* Turns NCCL's profiler events on or off (live_nccl.c). */
void live_nccl_listen(bool on);

/* Which GPU this thread uses, from the driver if it is there (live_nvml.c). */
void live_gpu_here(void);

#endif
