/* SPDX-License-Identifier: MIT */
/*
 * A timeline as Chakra execution traces, one file per rank: metadata, then a node for each piece of
 * GPU work and for each moment at which the host had waited for it, every message with its length
 * before it. Dependencies are the order of streams and the edges that replay finds. Durations are
 * whole microseconds there; start_ns and duration_ns say them exactly to whoever looks for them.
 */
#include "base/order.h"
#include "base/text.h"
#include "knee_out.h"
#include "read/trace/chakra.h"
#include "replay/replay_graph.h"

#include <stdlib.h>
#include <string.h>

struct knee_chakra_graph {
    struct knee_graph graph;
    int32_t *before; /* per node: the one before it in its lane; KNEE_NO_NODE: none */
    int32_t *edges;  /* per node: where its edges begin in `from`; one more at the end */
    int32_t *from;
    const struct knee_alloc *alloc;
};

/* ---- Bytes ---- */

static void put_varint(struct knee_text *to, uint64_t value)
{
    char bytes[10];
    size_t used = 0;
    do {
        bytes[used++] = (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
    knee_text_add(to, bytes, used);
}

static void put_number(struct knee_text *to, uint32_t field, uint64_t value)
{
    put_varint(to, (uint64_t)field << 3);
    put_varint(to, value);
}

static void put_bytes(struct knee_text *to, uint32_t field, const char *bytes, size_t length)
{
    put_varint(to, (uint64_t)field << 3 | 2);
    put_varint(to, length);
    knee_text_add(to, bytes, length);
}

/* AttributeProto: 1 name, `field` the value: 9 int64, 27 bool, 29 text. */
static void put_attribute(struct knee_text *to, const char *name, uint32_t field, int64_t value,
                          const char *text)
{
    struct knee_text attribute = {.alloc = to->alloc};
    put_bytes(&attribute, 1, name, strlen(name));
    if (text)
        put_bytes(&attribute, field, text, strlen(text));
    else
        put_number(&attribute, field, (uint64_t)value);
    put_bytes(to, 10, attribute.data ? attribute.data : "", attribute.length);
    knee_text_end(&attribute, to);
}

/* ---- The graph ---- */

struct place {
    int32_t lane, node;
    int64_t order;
};

KNEE_SORT(by_order, struct place,
          KNEE_THEN(KNEE_UP(lane), KNEE_THEN(KNEE_UP(order), KNEE_UP(node))))

static bool find_lanes(struct knee_chakra_graph *c)
{
    struct knee_graph *g = &c->graph;
    struct place *places = knee_resize(c->alloc, NULL, (g->count + 1) * sizeof *places);
    c->before = knee_resize(c->alloc, NULL, (g->count + 1) * sizeof *c->before);
    if (places && c->before) {
        for (size_t i = 0; i < g->count; i++)
            places[i] = (struct place){g->ranks[g->nodes[i].rank].first_lane + g->nodes[i].lane,
                                       (int32_t)i, g->nodes[i].order};
        if (g->count > 1)
            qsort(places, g->count, sizeof *places, by_order);
        for (size_t i = 0; i < g->count; i++)
            c->before[places[i].node] =
                i && places[i - 1].lane == places[i].lane ? places[i - 1].node : KNEE_NO_NODE;
    }
    bool good = places && c->before;
    knee_resize(c->alloc, places, 0);
    return good;
}

/* Edges by the node they lead to. */
static bool find_edges(struct knee_chakra_graph *c)
{
    struct knee_graph *g = &c->graph;
    c->edges = knee_zeroed(c->alloc, (g->count + 2) * sizeof *c->edges);
    c->from = knee_resize(c->alloc, NULL, (g->edge_count + 1) * sizeof *c->from);
    if (!c->edges || !c->from)
        return false;
    for (size_t i = 0; i < g->edge_count; i++)
        c->edges[g->edges[i].to + 2]++;
    for (size_t i = 2; i < g->count + 2; i++)
        c->edges[i] += c->edges[i - 1];
    for (size_t i = 0; i < g->edge_count; i++)
        c->from[c->edges[g->edges[i].to + 1]++] = g->edges[i].from;
    return true;
}

knee_status knee_chakra_begin(const struct knee_account *account, const struct knee_alloc *alloc,
                              struct knee_chakra_graph **out, struct knee_err *err)
{
    struct knee_chakra_graph *c = knee_zeroed(alloc, sizeof *c);
    if (!c)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the graph");
    c->alloc = alloc;
    knee_status status = knee_graph_init(&c->graph, account, alloc, err);
    if (!status) {
        knee_graph_count_lanes(&c->graph);
        if (!find_lanes(c) || !find_edges(c))
            status = knee_fail(err, KNEE_SYSTEM, "", "out of memory for the graph");
    }
    if (status)
        knee_chakra_end(c);
    else
        *out = c;
    return status;
}

void knee_chakra_end(struct knee_chakra_graph *c)
{
    if (!c)
        return;
    void *all[] = {c->before, c->edges, c->from};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        knee_resize(c->alloc, all[i], 0);
    knee_graph_release(&c->graph);
    knee_resize(c->alloc, c, 0);
}

/* ---- Nodes ---- */

/* Row of a node + 1 is its id: 0 would be left out by some writers. */
static void put_dependencies(const struct knee_chakra_graph *c, int32_t row, struct knee_text *node)
{
    const struct knee_graph *g = &c->graph;
    struct knee_text list = {.alloc = node->alloc};
    int32_t rank = g->nodes[row].rank, host = g->nodes[row].host, before = c->before[row];
    if (before != KNEE_NO_NODE)
        put_varint(&list, (uint64_t)before + 1);
    if (host != KNEE_NO_NODE && host != before && host != row)
        put_varint(&list, (uint64_t)host + 1);
    for (int32_t i = c->edges[row]; i < c->edges[row + 1]; i++)
        if (c->from[i] != before && c->from[i] != host && g->nodes[c->from[i]].rank == rank)
            put_varint(&list, (uint64_t)c->from[i] + 1);
    if (list.length)
        put_bytes(node, 5, list.data, list.length);
    knee_text_end(&list, node);
}

static int64_t number_of(enum knee_op op)
{
    int64_t i = 0;
    while (i < KNEE_CHAKRA_OPS && knee_chakra_ops[i] != op)
        i++;
    return i < KNEE_CHAKRA_OPS ? i : 0;
}

static void put_call(const struct knee_rank_account *rank, const struct knee_call *call,
                     struct knee_text *node)
{
    bool pair = call->op == KNEE_OP_SEND_RECV;
    put_number(node, 3,
               pair ? call->sends ? KNEE_CHAKRA_SEND : KNEE_CHAKRA_RECEIVE
                    : KNEE_CHAKRA_COLLECTIVE);
    if (!pair)
        put_attribute(node, "comm_type", 9, number_of(call->op), NULL);
    if (call->bytes >= 0)
        put_attribute(node, "comm_size", 9, call->bytes, NULL);
    if (pair && call->peer >= 0) {
        put_attribute(node, "comm_src", 7, call->sends ? rank->rank : call->peer, NULL);
        put_attribute(node, "comm_dst", 7, call->sends ? call->peer : rank->rank, NULL);
    }
    if (call->group)
        put_attribute(node, "pg_name", 29, 0, rank->trace->names[call->group - 1]);
}

static void put_node(const struct knee_chakra_graph *c, int32_t row, struct knee_text *node)
{
    const struct knee_node *n = &c->graph.nodes[row];
    const struct knee_rank_account *rank = &c->graph.account->ranks[n->rank];
    const struct knee_span *span = n->span ? &rank->source->spans[n->span - 1] : NULL;
    const struct knee_call *call = n->call ? &rank->source->calls[n->call - 1] : NULL;
    const char *name = span ? rank->trace->names[span->name] : "host";
    int64_t took = span ? span->end_ns - span->start_ns : 0;
    put_number(node, 1, (uint64_t)row + 1);
    put_bytes(node, 2, name, strlen(name));
    if (!call)
        put_number(node, 3, KNEE_CHAKRA_COMPUTE);
    put_dependencies(c, row, node);
    put_number(node, 7, (uint64_t)(took + 500) / 1000);
    put_attribute(node, "is_cpu_op", 27, span == NULL, NULL);
    if (!span)
        return;
    put_attribute(node, "stream", 9, span->stream, NULL);
    put_attribute(node, "start_ns", 9, n->start_ns, NULL);
    put_attribute(node, "duration_ns", 9, took, NULL);
    if (call)
        put_call(rank, call, node);
}

static bool send(struct knee_text *message, struct knee_sink sink)
{
    struct knee_text length = {.alloc = message->alloc};
    put_varint(&length, message->length);
    bool good = !message->failed && !length.failed &&
                sink.write(sink.ctx, length.data, length.length) &&
                (!message->length || sink.write(sink.ctx, message->data, message->length));
    knee_text_release(&length);
    message->length = 0;
    return good;
}

bool knee_chakra_write(struct knee_chakra_graph *c, size_t rank, struct knee_sink sink)
{
    struct knee_text message = {.alloc = c->alloc};
    put_bytes(&message, 1, "0.0.4", 5);
    bool good = send(&message, sink);
    for (size_t i = 0; i < c->graph.count && good; i++) {
        if (c->graph.nodes[i].rank != (int32_t)rank)
            continue;
        put_node(c, (int32_t)i, &message);
        good = send(&message, sink);
    }
    knee_text_release(&message);
    return good;
}
