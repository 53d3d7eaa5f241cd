/* SPDX-License-Identifier: MIT */
/*
 * A recorded timeline as a graph: what each piece of work waited for. Nodes are GPU work and the
 * moments at which the host came back from waiting for it; their times are those measured, on one
 * clock. An edge says "not before this has ended"; beside edges a node follows the one before it in
 * its lane (a stream or a thread) and the host's call that handed it over. What the edges do not
 * explain stays as the node's own delay, so that a graph that is not changed replays to the
 * nanosecond.
 *
 * host_line.c finds out what the host did, replay_nodes.c makes the nodes, replay_edges.c the
 * edges; change_*.c alter a copy; replay_run.c turns it into tasks of the simulator's engine and
 * runs them.
 */
#ifndef KNEE_REPLAY_REPLAY_GRAPH_H
#define KNEE_REPLAY_REPLAY_GRAPH_H

#include "knee_timeline.h"
#include "timeline/account.h"

enum { KNEE_NO_NODE = -1 };

/* What a launch belongs to, by the operation or annotation around it. */
enum knee_work_pass {
    KNEE_WORK_FORWARD,
    KNEE_WORK_BACKWARD,
    KNEE_WORK_OPTIMIZER,
    KNEE_WORK_EXCHANGE, /* copies and casts for communication */
    KNEE_WORK_INPUT,    /* from the host */
    KNEE_WORKS
};

/* What work of FSDP is for. */
enum knee_shard_role {
    KNEE_SHARD_NONE,
    KNEE_SHARD_GATHER,   /* the all-gather and the copy into its buffer */
    KNEE_SHARD_COPY_OUT, /* from the gathered buffer to parameters */
    KNEE_SHARD_REDUCE,   /* the reduce-scatter and the copy into its buffer */
};

enum knee_node_kind { KNEE_NODE_HOST, KNEE_NODE_COMPUTE, KNEE_NODE_COMM, KNEE_NODE_COPY };

struct knee_node {
    int64_t start_ns, end_ns; /* as measured */
    double share;        /* of the GPU that it had, on average; 1 where ranks do not share one */
    double work_ns;      /* of communication that meets: from the last start to its end */
    int64_t delay_ns;    /* what nothing explains */
    int64_t turn_ns;     /* of work_ns: waiting for its turn on a GPU of several ranks */
    int64_t order;       /* in its lane */
    int32_t rank, lane;  /* rows; lanes are per rank */
    int32_t host;        /* host node after which it was handed over; never none but root */
    int64_t host_lag_ns; /* from its end to when the work may start */
    int64_t call_ns;     /* measured start of the call that handed it over */
    int64_t bytes;       /* that a copy moves; 0: not known */
    uint32_t span, call, meet; /* rows + 1 of the rank's spans and calls, of the graph's meets */
    int32_t step;              /* row of the rank's steps; -1: none */
    unsigned char kind, phase, shard; /* shard: enum knee_shard_role */
    bool backward;                    /* handed over inside the backward pass */
    bool both;                        /* communication and compute in one kernel */
    bool gone;  /* takes no time and meets no other rank; order and edges stay */
    bool saved; /* among graph->saved */
};

/* Of a node that a change edits: what it was. */
struct knee_saved_node {
    double work_ns;
    int64_t delay_ns, host_lag_ns, order;
    int32_t row, lane, host;
    bool gone;
};

enum knee_edge_source {
    KNEE_EDGE_REAL,    /* ids of the trace, or the stream's own order at a synchronisation */
    KNEE_EDGE_RULED,   /* what the framework is known to do */
    KNEE_EDGE_GUESSED, /* explains a gap */
    KNEE_EDGE_SOURCES
};

/* lag_ns may be below zero: `to` need not wait for the very end; KNEE_EDGE_CUT: a change took it
 * away. */
#define KNEE_EDGE_CUT INT64_MIN
struct knee_graph_edge {
    int32_t from, to;
    int64_t lag_ns;
    unsigned char source;
};

/* A collective over ranks. Members are the nodes whose .meet it is, from `first` by
 * knee_graph.next_member. */
struct knee_graph_meet {
    int32_t first, count;
    enum knee_op op;
    int64_t bytes; /* -1: not known */
    int32_t group_size;
    uint64_t group;        /* which communicator */
    double pure_ns;        /* last start to last end */
    int32_t element_bytes; /* of one number in it; 0: not known */
    bool gradients; /* of the exchange between data-parallel ranks: gradients or parameters */
};

struct knee_graph_rank {
    int32_t first, count;      /* nodes of the trace; those that a change adds come after all */
    int32_t root;              /* host node at which all begins */
    int32_t lanes, first_lane; /* lanes of all ranks count on; set by knee_graph_count_lanes() */
    double steps;              /* complete ones */
    int64_t start_ns, end_ns;  /* of GPU work, as measured */
    int64_t from_ns;           /* where the first step begins */
    int64_t to_ns;             /* where the last one ends; ... */
    int32_t to_host;        /* ... the host's node there, where it ends after all work; else none */
    double measured_step_s; /* mean of complete steps */
};

struct knee_graph {
    const struct knee_account *account;
    struct knee_node *nodes;
    size_t count, capacity;
    int32_t *next_member; /* per node; as large as capacity */
    struct knee_graph_edge *edges;
    size_t edge_count, edge_capacity;
    struct knee_graph_meet *meets;
    size_t meet_count, meet_capacity;
    struct knee_graph_rank *ranks;
    size_t rank_count;
    int64_t origin_ns;      /* common clock; nodes count from here */
    int64_t unexplained_ns; /* delays of more than 20 us, over all ranks */
    size_t unmet;           /* communication without its partners: keeps its measured time */
    size_t sources[KNEE_EDGE_SOURCES];
    bool one_gpu; /* of all ranks: they take turns on it */
    bool phased;  /* backward passes and the exchange of gradients can be distinguished */
    bool fsdp;    /* parameters are gathered by FSDP, which says so */
    const struct knee_alloc *alloc;
    bool failed;
    int32_t *by_call; /* nodes of each rank by their calls, or NULL; of no copy */
    /* Of a copy: the graph that it is of, which it has its nodes in common with; what those that
     * were edited had been; and whether lanes, or the edges that there were, differ. */
    struct knee_graph *copy_of;
    struct knee_saved_node *saved;
    size_t edited_count;
    bool reordered;
};

/* ---- Making it ---- */

knee_status knee_graph_init(struct knee_graph *graph, const struct knee_account *account,
                            const struct knee_alloc *alloc, struct knee_err *err);
/* A copy that may be changed, into a graph that is zeroed or is a copy already. Both have their
 * nodes in common: those that were edited are set back first. False: no memory; it can be released
 * either way, before the graph. */
bool knee_graph_copy(struct knee_graph *graph, struct knee_graph *out);
/* The nodes of the graph that it is a copy of are as recorded again. */
void knee_graph_set_back(struct knee_graph *copy);
void knee_graph_release(struct knee_graph *graph);

/* A node to be changed. Changes write through no other pointer, and nothing that is not saved: what
 * is not edited here is not set back for the next change. */
static inline struct knee_node *knee_graph_edit(struct knee_graph *graph, size_t node)
{
    struct knee_node *n = &graph->nodes[node];
    if (graph->copy_of && node < graph->copy_of->count && !n->saved) {
        n->saved = true;
        graph->saved[graph->edited_count++] =
            (struct knee_saved_node){n->work_ns,    n->delay_ns, n->host_lag_ns, n->order,
                                     (int32_t)node, n->lane,     n->host,        n->gone};
    }
    return n;
}

/* After a change has made lanes. */
void knee_graph_count_lanes(struct knee_graph *graph);

/* KNEE_NO_NODE and graph->failed when memory runs out. */
int32_t knee_graph_add_node(struct knee_graph *graph, const struct knee_node *node);
void knee_graph_add_edge(struct knee_graph *graph, int32_t from, int32_t to, int64_t lag_ns,
                         enum knee_edge_source source);
/* Row + 1; 0 and graph->failed when memory runs out. */
uint32_t knee_graph_add_meet(struct knee_graph *graph, const struct knee_graph_meet *meet);
void knee_graph_join(struct knee_graph *graph, uint32_t meet, int32_t node);

/* ---- What the host did, per rank (host_line.c) ---- */

enum knee_launch_scope { KNEE_SCOPE_NONE, KNEE_SCOPE_COMM };

/* One per host event of the trace. */
struct knee_host_note {
    uint32_t label;       /* row of names + 1 of the FSDP scope around it; 0: none */
    unsigned char phase;  /* enum knee_work_pass */
    bool backward;        /* inside the backward pass */
    bool in_comm, worker; /* inside a collective's call; of a thread that hands over work */
};

struct knee_host_line {
    const struct knee_trace *trace;
    struct knee_host_note *notes; /* per host event */
    bool fsdp;                    /* the trace has FSDP's annotations */
    bool phased;                  /* it tells the backward pass apart */
    const struct knee_alloc *alloc;
};

bool knee_host_line_init(struct knee_host_line *line, const struct knee_trace *trace,
                         const struct knee_alloc *alloc);
void knee_host_line_release(struct knee_host_line *line);

/* ---- Nodes and edges of one rank ---- */

bool knee_graph_add_rank(struct knee_graph *graph, size_t rank, const struct knee_host_line *line);
bool knee_graph_add_edges(struct knee_graph *graph, size_t rank, const struct knee_host_line *line);

/* Sets one_gpu and the nodes' shares. False: no memory. (one_gpu.c) */
bool knee_graph_find_shares(struct knee_graph *graph);

/* ---- Running ---- */

/* What a replay gives: when each node started and ended, and the step. */
struct knee_replay_times {
    int64_t *start_ns, *end_ns; /* per node */
    double step_s;              /* mean over ranks of first start to last end, per step */
};
/* Free with knee_replay_times_release(). */
knee_status knee_graph_run(const struct knee_graph *graph, struct knee_replay_times *out,
                           struct knee_err *err);
void knee_replay_times_release(struct knee_replay_times *times, const struct knee_alloc *alloc);

#endif
