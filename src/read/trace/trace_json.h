/* SPDX-License-Identifier: MIT */
/* What the container reader (trace_json.c) hands to those who know what events mean. */
#ifndef KNEE_READ_TRACE_TRACE_JSON_H
#define KNEE_READ_TRACE_TRACE_JSON_H

#include "read/trace/scan.h"
#include "timeline/builder.h"

enum knee_category {
    KNEE_CAT_NONE, /* the event has no category */
    KNEE_CAT_SKIP, /* one that says nothing to us */
    KNEE_CAT_KERNEL,
    KNEE_CAT_COPY,
    KNEE_CAT_RUNTIME, /* host calls into the GPU's driver */
    KNEE_CAT_HOST,    /* host operations and annotations */
    KNEE_CAT_PYTHON,  /* calls of Python functions: most of a file with stacks */
};

/* What stands in the args of events that we want. */
struct knee_event_args {
    int64_t stream; /* -1 */
    uint64_t correlation;
    struct knee_slice collective, dtype, group, description, members, label;
    struct knee_slice dims, types, inputs; /* of an operation, as they stand there */
    struct knee_slice grid;                /* of a kernel */
    int64_t autograd;                      /* -1 */
    int64_t in_elements, out_elements, group_size, sequence; /* -1 */
    int64_t from, to;                                        /* ranks of a group; -1 */
    int64_t bytes;                                           /* -1 */
};

/* One event, its texts still in the window. */
struct knee_event {
    char phase;
    enum knee_category category;
    bool has_start, has_duration, bad_time;
    bool has_args;      /* `args` is filled */
    bool annotates;     /* of KNEE_CAT_HOST: the user's words, not an operation */
    bool named;         /* the name was looked at: host_kind is set */
    unsigned char seen; /* of enum knee_seen, also of events that are of no other use */
    int host_kind;      /* enum knee_host_kind or KNEE_HOST_UNUSED */
    struct knee_slice name, raw_args;
    int64_t pid, tid, start_ns, duration_ns;
    struct knee_event_args args;
    unsigned keep;       /* of enum knee_keep */
    const char *reached; /* how far an event that cannot be read was looked at */
};

/* What one event shows of the recording. */
enum knee_seen {
    KNEE_SEEN_BACKWARD = 1,  /* it belongs to a backward pass */
    KNEE_SEEN_CAPTURE = 2,   /* a CUDA graph is captured */
    KNEE_SEEN_OPERATION = 4, /* an operation of PyTorch on the host */
};

/* What is kept beside GPU work. */
enum knee_keep {
    KNEE_KEEP_CPU = 1,  /* without a GPU: host operations are the work */
    KNEE_KEEP_HOST = 2, /* what the host did */
    KNEE_KEEP_ALL = 4,  /* all of it, and the grids of kernels */
};
static inline unsigned knee_keep_of(const struct knee_trace_options *options)
{
    return (options->cpu ? KNEE_KEEP_CPU : 0u) | (options->host ? KNEE_KEEP_HOST : 0u) |
           (options->detail ? KNEE_KEEP_ALL : 0u);
}

/* Process and thread as they stood in an event, from behind its name to its time. */
struct knee_event_ids {
    char text[56];
    size_t length; /* 0: none yet */
    int64_t pid, tid;
};

/* How the args of an event stood up to its correlation. The first number is of no use; it and the
 * correlation are mostly all that differs from one event to the next. */
struct knee_args_alike {
    char text[128];    /* before the first number, and from behind it to the correlation */
    size_t head, tail; /* lengths of the two; a tail of 0: none yet */
    int64_t stream;
};
enum { KNEE_ALIKE = 4 };

/* What lasts from one event of a file to the next. */
struct knee_event_scan {
    unsigned keep; /* of enum knee_keep */
    bool framed;   /* the event stands alone in its lines, as Kineto writes it: ",\n  {" */
    bool wide;     /* knee_scan_can_be_wide() */
    uint64_t repaired, commas;    /* counts of the last event's repairs */
    struct knee_event_ids ids[2]; /* of the host and of the GPU: mostly those of the event before */
    struct knee_args_alike alike[2][KNEE_ALIKE]; /* of the GPU and of calls into its driver */
};

/* The event at p (its opening brace); returns what follows it, NULL or KNEE_SCAN_BAD. */
const char *knee_scan_event(const char *p, const char *end, struct knee_event *event,
                            struct knee_event_scan *scan);

void knee_clear_args(struct knee_event_args *args); /* all members empty */

/* The members of args, from after the brace to after the end, into event->args. */
const char *knee_scan_args(const char *p, const char *end, struct knee_event *event,
                           struct knee_event_scan *scan);

/* State that lasts over a file. */
struct knee_event_sink {
    struct knee_builder *builder;
    const struct knee_trace_options *options;
    struct knee_trace *trace;
    uint64_t negative; /* durations below zero */
    uint64_t cpu_comm; /* host-side communication: needed if the trace has no GPU work */
    uint64_t gpu_spans, xprof_spans;
    unsigned seen;            /* of enum knee_seen */
    struct knee_xprof *xprof; /* made when the first process is named like a device */
};

/* Is there anything in the args of such an event that we want? And beyond its stream and
 * correlation? */
bool knee_event_wants_args(const struct knee_event *event);
bool knee_event_wants_more(const struct knee_event *event);

/* Can an event of this category and name be of use? (`keep`: of enum knee_keep.) Looks at the name
 * once and keeps what it says: sets event->named and event->host_kind. */
bool knee_kineto_wants(struct knee_event *event, unsigned keep);

/* Takes one event whose category is known. False: its time cannot be used. */
bool knee_kineto_event(struct knee_event_sink *sink, struct knee_event *event);

/* What kind of host event it is; KNEE_HOST_UNUSED: of no use to replay. (kineto_host.c) */
#define KNEE_HOST_UNUSED (-1)
int knee_kineto_host_kind(const struct knee_event *event);

/* Takes a metadata event, or one without category. */
bool knee_xprof_event(struct knee_event_sink *sink, const struct knee_event *event);
void knee_xprof_free(struct knee_xprof *xprof, const struct knee_alloc *alloc);

/* The rank that a file's name speaks of ("rank-3.json", "worker0.", "_r1of2"), or -1. */
int64_t knee_rank_from_name(const char *file);

#endif
