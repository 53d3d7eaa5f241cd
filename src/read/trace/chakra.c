/* SPDX-License-Identifier: MIT */
/*
 * Chakra execution traces (MLCommons), as protobuf (a varint length before each message: one of
 * metadata, then nodes) and in the JSON form of its converter. A node has a duration and what it
 * depends on, seldom a start. Where there is none, the GPU's work is laid out as early as its
 * dependencies and the order of its streams allow; dependencies through the host's nodes count, the
 * host's time does not. One collective stands there several times: only GPU nodes are work.
 */
#include "read/trace/chakra.h"
#include "base/error.h"
#include "base/format.h"
#include "base/list.h"
#include "base/order.h"
#include "base/protobuf.h"
#include "base/slice.h"
#include "base/text.h"
#include "read/trace/image.h"
#include "read/value_tree.h"

#include <stdlib.h>
#include <string.h>

const enum knee_op knee_chakra_ops[KNEE_CHAKRA_OPS] = {
    KNEE_OP_ALL_REDUCE,     KNEE_OP_REDUCE,    KNEE_OP_ALL_GATHER, KNEE_OP_GATHER,
    KNEE_OP_SCATTER,        KNEE_OP_BROADCAST, KNEE_OP_ALL_TO_ALL, KNEE_OP_REDUCE_SCATTER,
    KNEE_OP_REDUCE_SCATTER, KNEE_OP_BARRIER};

struct item {
    uint64_t id;
    struct knee_slice name, group;
    int64_t type, comm_type, comm_size, stream, duration_ns, start_ns; /* start -1: not known */
    bool on_host;
    size_t first_dep, dep_count;
    size_t waits_for; /* dependencies that are not laid out yet */
    bool placed;
    int64_t ready_ns;
};

struct graph {
    struct knee_image *image;
    struct item *items; /* by id */
    size_t count, capacity;
    uint64_t *deps; /* ids; later rows */
    size_t dep_count, dep_capacity;
    bool timed; /* nodes have starts */
    bool no_memory;
};

static void add_dep(struct graph *g, struct item *item, uint64_t id)
{
    g->no_memory = g->no_memory || !knee_room(g->image->alloc, &g->deps, &g->dep_capacity,
                                              g->dep_count + 1, sizeof *g->deps);
    if (!g->no_memory) {
        g->deps[g->dep_count++] = id;
        item->dep_count++;
    }
}

static void add_item(struct graph *g, const struct item *item)
{
    g->no_memory = g->no_memory || !knee_room(g->image->alloc, &g->items, &g->capacity,
                                              g->count + 1, sizeof *g->items);
    if (!g->no_memory) {
        g->items[g->count++] = *item;
        g->timed = g->timed || item->start_ns >= 0;
    }
}

static struct item new_item(const struct graph *g)
{
    return (struct item){.comm_size = -1, .start_ns = -1, .first_dep = g->dep_count};
}

/* ---- Protobuf ---- */

/* Packed, or one by one. */
static void take_deps(struct graph *g, struct item *item, const struct knee_proto *field)
{
    if (!field->is_bytes) {
        add_dep(g, item, field->number);
        return;
    }
    struct knee_proto list = knee_proto_of(field->bytes);
    while (list.p < list.end && !g->no_memory) {
        uint64_t id = knee_proto_varint(&list);
        if (!list.bad)
            add_dep(g, item, id);
    }
}

/* AttributeProto: 1 name, and one of many fields for the value; writers differ in which. */
static void take_attribute(struct item *item, struct knee_slice bytes)
{
    struct knee_slice name = {"", 0}, text = {"", 0};
    int64_t value = 0;
    struct knee_proto c = knee_proto_of(bytes);
    while (knee_proto_next(&c)) {
        if (c.field == 1 && c.is_bytes)
            name = c.bytes;
        else if (c.field >= 29 && c.is_bytes)
            text = c.bytes;
        else if (c.field > 2 && !c.is_bytes)
            value = (int64_t)c.number;
    }
    const struct {
        const char *name;
        int64_t *to;
    } numbers[] = {{"comm_type", &item->comm_type}, {"comm_size", &item->comm_size},
                   {"stream", &item->stream},       {"tid", &item->stream},
                   {"start_ns", &item->start_ns},   {"duration_ns", &item->duration_ns}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (knee_slice_is(name, numbers[i].name))
            *numbers[i].to = value;
    if (knee_slice_is(name, "is_cpu_op"))
        item->on_host = value != 0;
    if (knee_slice_is(name, "pg_name") || knee_slice_is(name, "comm_group"))
        item->group = text;
}

static int64_t from_us(uint64_t us)
{
    return us <= (uint64_t)KNEE_LONGEST_NS / 1000 ? (int64_t)us * 1000 : KNEE_LONGEST_NS;
}

/* Node: 1 id, 2 name, 3 type, 4 and 5 dependencies, 6 start, 7 duration (us), 10 attributes. */
static bool take_node(struct graph *g, struct knee_slice bytes)
{
    struct item item = new_item(g);
    struct knee_proto c = knee_proto_of(bytes);
    while (knee_proto_next(&c) && !g->no_memory) {
        if (c.field == 4 || c.field == 5)
            take_deps(g, &item, &c);
        else if (c.field == 10 && c.is_bytes)
            take_attribute(&item, c.bytes);
        else if (c.field == 2 && c.is_bytes)
            item.name = c.bytes;
        else if (c.is_bytes)
            continue;
        else if (c.field == 1)
            item.id = c.number;
        else if (c.field == 3)
            item.type = (int64_t)c.number;
        else if (c.field == 6 && item.start_ns < 0 && c.number > 0)
            item.start_ns = from_us(c.number);
        else if (c.field == 7)
            item.duration_ns = from_us(c.number);
    }
    if (!c.bad)
        add_item(g, &item);
    return !c.bad;
}

/* ---- Laying out ---- */

KNEE_BY(by_id, struct item, id)

static size_t row_of(const struct graph *g, uint64_t id)
{
    size_t low;
    KNEE_BISECT(low, g->count, g->items[low].id < id);
    return low < g->count && g->items[low].id == id ? low : SIZE_MAX;
}

/* Who waits for a row: followers[first[row] .. first[row + 1]). */
struct followers {
    size_t *first, *list;
};

static bool find_followers(struct graph *g, struct followers *f)
{
    f->first = knee_zeroed(g->image->alloc, (g->count + 2) * sizeof *f->first);
    f->list = knee_resize(g->image->alloc, NULL, (g->dep_count + 1) * sizeof *f->list);
    if (!f->first || !f->list)
        return false;
    for (size_t i = 0; i < g->count; i++)
        for (size_t d = 0; d < g->items[i].dep_count; d++) {
            uint64_t *dep = &g->deps[g->items[i].first_dep + d];
            size_t row = row_of(g, *dep);
            *dep = row == i ? SIZE_MAX : row; /* of another file, or itself: nothing to wait for */
            if (*dep == SIZE_MAX)
                continue;
            g->items[i].waits_for++;
            f->first[row + 2]++;
        }
    for (size_t i = 2; i < g->count + 2; i++)
        f->first[i] += f->first[i - 1];
    for (size_t i = 0; i < g->count; i++)
        for (size_t d = 0; d < g->items[i].dep_count; d++) {
            uint64_t row = g->deps[g->items[i].first_dep + d];
            if (row != SIZE_MAX)
                f->list[f->first[row + 1]++] = i;
        }
    return true;
}

/* A heap of rows: the one that is ready first comes out first, of those the lowest id. */
struct queue {
    size_t *rows, count;
};

static bool before(const struct graph *g, size_t a, size_t b)
{
    int64_t x = g->items[a].ready_ns, y = g->items[b].ready_ns;
    return x != y ? x < y : a < b;
}

static void queue_put(const struct graph *g, struct queue *q, size_t row)
{
    size_t at = q->count++;
    for (; at > 0 && before(g, row, q->rows[(at - 1) / 2]); at = (at - 1) / 2)
        q->rows[at] = q->rows[(at - 1) / 2];
    q->rows[at] = row;
}

static size_t queue_take(const struct graph *g, struct queue *q)
{
    size_t top = q->rows[0], last = q->rows[--q->count], at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= q->count)
            break;
        child += child + 1 < q->count && before(g, q->rows[child + 1], q->rows[child]);
        if (!before(g, q->rows[child], last))
            break;
        q->rows[at] = q->rows[child];
        at = child;
    }
    q->rows[at] = last;
    return top;
}

/* Until when a stream is taken; few streams, so they are looked for one by one. */
enum { STREAMS = 256 };
struct lanes {
    int64_t stream[STREAMS], free_ns[STREAMS];
    size_t count;
};

static int64_t *lane_of(struct lanes *lanes, int64_t stream)
{
    size_t i = 0;
    while (i < lanes->count && lanes->stream[i] != stream)
        i++;
    if (i == lanes->count && i < STREAMS) {
        lanes->stream[i] = stream;
        lanes->free_ns[lanes->count++] = 0;
    }
    return &lanes->free_ns[i < STREAMS ? i : STREAMS - 1];
}

/* Puts one node at its place and returns its end. */
static int64_t place(struct item *item, struct lanes *lanes)
{
    item->placed = true;
    if (item->on_host)
        return item->ready_ns;
    int64_t *lane = lane_of(lanes, item->stream);
    item->start_ns = *lane > item->ready_ns ? *lane : item->ready_ns;
    int64_t end = item->start_ns + item->duration_ns;
    *lane = end < KNEE_LAST_NS ? end : KNEE_LAST_NS;
    return *lane;
}

/* Places what is ready, and what becomes ready by it. */
static void run(struct graph *g, const struct followers *f, struct queue *q, struct lanes *lanes)
{
    while (q->count) {
        size_t row = queue_take(g, q);
        int64_t end = place(&g->items[row], lanes);
        for (size_t i = f->first[row]; i < f->first[row + 1]; i++) {
            struct item *next = &g->items[f->list[i]];
            if (next->placed)
                continue;
            next->ready_ns = end > next->ready_ns ? end : next->ready_ns;
            if (--next->waits_for == 0)
                queue_put(g, q, f->list[i]);
        }
    }
}

/* Converters write nodes that wait for each other in a circle: the one of the lowest number goes
 * first then, and it is counted. */
static void run_all(struct graph *g, const struct followers *f, struct queue *q,
                    struct lanes *lanes)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->items[i].waits_for == 0)
            queue_put(g, q, i);
    run(g, f, q, lanes);
    for (size_t i = 0; i < g->count; i++) {
        if (g->items[i].placed)
            continue;
        g->image->trace->losses[KNEE_REPAIR_CIRCLE].count++;
        queue_put(g, q, i);
        run(g, f, q, lanes);
    }
}

static bool lay_out(struct graph *g)
{
    struct followers f = {0};
    struct queue q = {.rows = knee_resize(g->image->alloc, NULL, (g->count + 1) * sizeof *q.rows)};
    struct lanes *lanes = knee_resize(g->image->alloc, NULL, sizeof *lanes);
    bool good = find_followers(g, &f) && q.rows && lanes;
    if (good) {
        lanes->count = 0;
        run_all(g, &f, &q, lanes);
    }
    void *all[] = {f.first, f.list, q.rows, lanes};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        knee_resize(g->image->alloc, all[i], 0);
    return good;
}

/* ---- Into the timeline ---- */

static enum knee_op op_of(const struct item *item)
{
    if (item->type != KNEE_CHAKRA_COLLECTIVE)
        return KNEE_OP_SEND_RECV;
    bool known = item->comm_type >= 0 && item->comm_type < KNEE_CHAKRA_OPS;
    return known ? knee_chakra_ops[item->comm_type] : KNEE_OP_UNKNOWN;
}

/* A node that communicates is communication whatever its name is. */
static void add_span(struct graph *g, const struct item *item)
{
    struct knee_call_facts facts = KNEE_CALL_UNKNOWN;
    char name[512];
    bool talks = item->type >= KNEE_CHAKRA_SEND && item->type <= KNEE_CHAKRA_COLLECTIVE;
    struct knee_slice called = item->name;
    knee_slice_copy(called, name, sizeof name);
    if (talks && knee_kernel_facts(name, g->image->options).kind != KNEE_SPAN_COMM) {
        knee_format(name, sizeof name, "nccl:%s", knee_op_name(op_of(item)));
        called = knee_slice_of(name);
    }
    facts.op = op_of(item);
    facts.bytes = item->comm_size > 0 ? item->comm_size : -1;
    if (item->group.length)
        facts.group = knee_builder_name(g->image->builder, item->group.at, item->group.length) + 1;
    knee_image_span(g->image, called,
                    (struct knee_gpu_work){0, item->start_ns, item->start_ns + item->duration_ns, 0,
                                           (int32_t)(item->stream & INT32_MAX), KNEE_NO_CORRELATION,
                                           knee_slice_starts(called, "Memcpy") ||
                                               knee_slice_starts(called, "Memset"),
                                           talks ? &facts : NULL});
}

static knee_status make_timeline(struct graph *g, struct knee_err *err)
{
    int64_t total = 0;
    if (g->count > 1)
        qsort(g->items, g->count, sizeof *g->items, by_id);
    for (size_t i = 0; i < g->count; i++) {
        struct item *item = &g->items[i];
        if (item->duration_ns < 0 || item->duration_ns > KNEE_LONGEST_NS)
            item->duration_ns = 0;
        if (item->start_ns > KNEE_LAST_NS) /* refused later; until then its end must fit */
            item->start_ns = KNEE_LAST_NS + 1;
        total |= item->on_host ? 0 : item->duration_ns;
    }
    if (!g->timed && !g->no_memory)
        g->no_memory = !lay_out(g);
    if (g->no_memory)
        return knee_fail(err, KNEE_SYSTEM, g->image->file, "out of memory");
    for (size_t i = 0; i < g->count; i++)
        if (!g->items[i].on_host && g->items[i].start_ns >= 0)
            add_span(g, &g->items[i]);
    g->image->trace->laid_out = !g->timed;
    if (total > 0)
        return KNEE_OK;
    knee_fail(err, KNEE_INPUT, g->image->file,
              g->count ? "a Chakra workload without times: it lists work, not measurements"
                       : "not a Chakra trace: there are no nodes in it");
    if (g->count)
        knee_hint(err, "knee collective predicts the time of its collectives");
    return KNEE_INPUT;
}

static knee_status finish(struct graph *g, struct knee_err *err)
{
    knee_status status = make_timeline(g, err);
    knee_resize(g->image->alloc, g->items, 0);
    knee_resize(g->image->alloc, g->deps, 0);
    return status;
}

/* "run.3.et", "run.3.json": files are named by their rank. */
static void take_rank(struct knee_image *image)
{
    const char *base = knee_base_name(image->file);
    const char *end = strstr(base, ".et");
    end = end ? end : strstr(base, ".json");
    const char *at = end ? end : base;
    int64_t rank = 0;
    while (at > base && at[-1] >= '0' && at[-1] <= '9')
        at--;
    if (!end || at == end || end - at > 6 || at == base || at[-1] != '.')
        return;
    for (; at < end; at++)
        rank = rank * 10 + (*at - '0');
    image->trace->rank = rank;
}

knee_status knee_chakra_read(struct knee_image *image, struct knee_err *err)
{
    struct graph g = {.image = image};
    struct knee_proto c = knee_proto_of((struct knee_slice){image->data, image->length});
    bool first = true;
    while (c.p < c.end && !c.bad && !g.no_memory) {
        struct knee_slice message = knee_proto_slice(&c);
        if (!first && !c.bad)
            image->trace->losses[KNEE_LOSS_EVENT].count += !take_node(&g, message);
        first = false; /* the first message is metadata */
    }
    image->trace->losses[KNEE_LOSS_TRUNCATED].count += c.bad && g.count > 0;
    take_rank(image);
    return finish(&g, err);
}

/* ---- JSON ---- */

static void take_list(struct graph *g, struct item *item, const struct knee_tree *tree,
                      uint32_t list)
{
    for (uint32_t at = knee_tree_first(tree, list); at != KNEE_TREE_NONE;
         at = knee_tree_next(tree, at))
        add_dep(g, item, (uint64_t)knee_tree_whole(tree, at, -1));
}

knee_status knee_chakra_json_read(struct knee_image *image, struct knee_err *err)
{
    struct knee_tree tree = {.alloc = image->alloc};
    struct graph g = {.image = image};
    knee_status status = knee_tree_json(&tree, image->data, image->length, image->file, err);
    if (status) {
        knee_tree_release(&tree);
        return status;
    }
    uint32_t at = knee_tree_first(&tree, knee_tree_get(&tree, 0, "workload_graph"));
    for (; at != KNEE_TREE_NONE && !g.no_memory; at = knee_tree_next(&tree, at)) {
        struct item item = new_item(&g);
        int64_t us = knee_tree_whole(&tree, knee_tree_get(&tree, at, "runtime"), 0);
        item.id = (uint64_t)knee_tree_whole(&tree, knee_tree_get(&tree, at, "Id"), 0);
        item.name = knee_tree_text(&tree, knee_tree_get(&tree, at, "Name"));
        item.type = knee_tree_whole(&tree, knee_tree_get(&tree, at, "NodeType"), 0);
        item.comm_type = -1; /* not in this form: the name says it */
        item.duration_ns = us > 0 ? from_us((uint64_t)us) : 0;
        item.on_host = knee_tree_true(&tree, knee_tree_get(&tree, at, "is_cpu_op"));
        item.stream = item.type == KNEE_CHAKRA_COLLECTIVE; /* nor are streams */
        take_list(&g, &item, &tree, knee_tree_get(&tree, at, "ctrlDeps"));
        take_list(&g, &item, &tree, knee_tree_get(&tree, at, "data_deps"));
        add_item(&g, &item);
    }
    take_rank(image);
    status = finish(&g, err);
    knee_tree_release(&tree);
    return status;
}
