/* SPDX-License-Identifier: MIT */
/*
 * XPlane protobuf, what JAX and TensorFlow profilers write before it is made into JSON, and without
 * that one's limit of a million events. Planes named /device:... are devices; on a GPU the lines
 * named "Stream #..." are its work, on a TPU the lines "XLA Ops" and "Async XLA Ops". All other
 * lines repeat the same work or group it. A TPU's waiting for the other chips stands in the line
 * "XLA TraceMe", as barrier-cores right before the collective: the two are put together again.
 * Names follow the lines in the file, so each plane is walked twice. Times are picoseconds after
 * the line's start.
 */
#include "base/error.h"
#include "base/fold.h"
#include "base/list.h"
#include "base/order.h"
#include "base/protobuf.h"
#include "base/text.h"
#include "read/trace/image.h"

#include <stdlib.h>
#include <string.h>

/* A barrier and its collective are apart by less than this. */
#define NEXT_TO_NS 100000

struct named {
    uint64_t id;
    struct knee_slice name;
};

struct interval {
    int64_t start_ns, end_ns;
};

struct plane {
    struct knee_image *image;
    struct knee_slice name;
    struct named *names; /* by id */
    size_t name_count, name_capacity;
    struct interval *barriers; /* in the order of the line, which is that of time */
    size_t barrier_count, barrier_capacity;
    int64_t device;
    bool streams; /* it has lines of streams: it is a GPU */
    bool no_memory;
};

/* ---- Names ---- */

/* An HLO instruction is named by what stands before its equals sign, without the percent sign. */
static struct knee_slice short_name(struct knee_slice name, struct knee_slice display)
{
    size_t equals = knee_slice_find(name, " = ");
    if (!knee_slice_starts(name, "%") || equals == name.length)
        return name;
    return display.length ? display : (struct knee_slice){name.at + 1, equals - 1};
}

/* One entry of the map: 1 key, 2 {1 id, 2 name, 4 display name} */
static void take_name(struct plane *p, struct knee_slice entry)
{
    struct named named = {0};
    struct knee_slice display = {"", 0}, name = {"", 0};
    struct knee_proto pair = knee_proto_of(entry);
    while (knee_proto_next(&pair)) {
        if (pair.field == 1 && !pair.is_bytes)
            named.id = pair.number;
        if (pair.field != 2 || !pair.is_bytes)
            continue;
        struct knee_proto value = knee_proto_of(pair.bytes);
        while (knee_proto_next(&value)) {
            if (value.field == 2 && value.is_bytes)
                name = value.bytes;
            else if (value.field == 4 && value.is_bytes)
                display = value.bytes;
        }
    }
    named.name = short_name(name, display);
    p->no_memory = p->no_memory || !knee_room(p->image->alloc, &p->names, &p->name_capacity,
                                              p->name_count + 1, sizeof named);
    if (!p->no_memory)
        p->names[p->name_count++] = named;
}

KNEE_BY(by_id, struct named, id)

static struct knee_slice name_of(const struct plane *p, uint64_t id)
{
    size_t low;
    KNEE_BISECT(low, p->name_count, p->names[low].id < id);
    bool found = low < p->name_count && p->names[low].id == id;
    return found ? p->names[low].name : (struct knee_slice){"", 0};
}

/* The number that a name ends in: "/device:TPU:3", step "17". */
static int64_t ordinal(struct knee_slice name)
{
    size_t at = name.length;
    int64_t number = 0;
    while (at > 0 && knee_is_digit(name.at[at - 1]) && name.length - at < 9)
        at--;
    for (size_t i = at; i < name.length; i++)
        number = number * 10 + (name.at[i] - '0');
    return number;
}

/* ---- Lines ---- */

enum role { OTHER, STREAM, XLA_OPS, XLA_ASYNC, BARRIERS, STEPS };

/* XLine: 1 id, 2 name, 3 timestamp_ns, 4 events */
struct line {
    enum role role;
    uint64_t id;
    int64_t start_ns;
    bool bad;
};

static enum role role_of(struct knee_slice name)
{
    return knee_slice_starts(name, "Stream #")      ? STREAM
           : knee_slice_is(name, "XLA Ops")         ? XLA_OPS
           : knee_slice_is(name, "Async XLA Ops")   ? XLA_ASYNC
           : knee_slice_starts(name, "XLA TraceMe") ? BARRIERS
           : knee_slice_is(name, "Steps")           ? STEPS
                                                    : OTHER;
}

static struct line line_of(struct knee_slice bytes)
{
    struct line line = {.role = OTHER};
    struct knee_proto c = knee_proto_of(bytes);
    while (knee_proto_next(&c)) {
        if (c.field == 1 && !c.is_bytes)
            line.id = c.number;
        else if (c.field == 2 && c.is_bytes)
            line.role = role_of(c.bytes);
        else if (c.field == 3 && !c.is_bytes)
            line.start_ns = c.number <= (uint64_t)KNEE_LAST_NS ? (int64_t)c.number : -1;
    }
    line.bad = c.bad || line.start_ns < 0;
    return line;
}

/* XEvent: 1 metadata id, 2 offset_ps, 3 duration_ps. False: its time cannot be used. */
static bool event_of(struct knee_slice bytes, const struct line *line, uint64_t *id,
                     struct interval *out)
{
    uint64_t offset_ps = 0, duration_ps = 0;
    struct knee_proto c = knee_proto_of(bytes);
    *id = 0;
    while (knee_proto_next(&c)) {
        if (c.field == 1 && !c.is_bytes)
            *id = c.number;
        else if (c.field == 2 && !c.is_bytes)
            offset_ps = c.number;
        else if (c.field == 3 && !c.is_bytes)
            duration_ps = c.number;
    }
    uint64_t most = (uint64_t)KNEE_LAST_NS;
    if (c.bad || offset_ps > most || duration_ps > most)
        return false;
    out->start_ns = line->start_ns + (int64_t)(offset_ps / 1000);
    out->end_ns = line->start_ns + (int64_t)((offset_ps + duration_ps) / 1000);
    return true;
}

static void add_barrier(struct plane *p, struct interval barrier)
{
    p->no_memory = p->no_memory || !knee_room(p->image->alloc, &p->barriers, &p->barrier_capacity,
                                              p->barrier_count + 1, sizeof barrier);
    if (!p->no_memory)
        p->barriers[p->barrier_count++] = barrier;
}

KNEE_BY(by_end, struct interval, end_ns)

/* The start of the barrier that ends where a collective begins, else the collective's own. */
static int64_t with_barrier(const struct plane *p, int64_t start_ns)
{
    size_t low;
    KNEE_BISECT(low, p->barrier_count, p->barriers[low].end_ns <= start_ns);
    bool near = low > 0 && start_ns - p->barriers[low - 1].end_ns <= NEXT_TO_NS;
    return near ? p->barriers[low - 1].start_ns : start_ns;
}

static bool is_communication(const struct plane *p, struct knee_slice name)
{
    char text[256];
    knee_slice_copy(name, text, sizeof text);
    return knee_kernel_facts(text, p->image->options).kind == KNEE_SPAN_COMM;
}

static void take_work(struct plane *p, const struct line *line, uint64_t id, struct interval at)
{
    struct knee_slice name = name_of(p, id);
    bool copy = knee_slice_starts(name, "Memcpy") || knee_slice_starts(name, "Memset") ||
                knee_slice_starts(name, "copy-") ||
                (line->role == XLA_ASYNC && !is_communication(p, name)); /* "async-copy" ... */
    if (line->role == XLA_OPS && p->barrier_count && is_communication(p, name))
        at.start_ns = with_barrier(p, at.start_ns);
    knee_image_span(p->image, name,
                    (struct knee_gpu_work){p->device, at.start_ns, at.end_ns, 0,
                                           (int32_t)(line->id & INT32_MAX), KNEE_NO_CORRELATION,
                                           copy, NULL});
}

/* The events of a line, if it is one of those wanted now. */
static void take_line(struct plane *p, struct knee_slice bytes, const struct line *line)
{
    struct knee_proto c = knee_proto_of(bytes);
    while (knee_proto_next(&c) && !p->no_memory) {
        uint64_t id;
        struct interval at;
        if (c.field != 4 || !c.is_bytes)
            continue;
        if (!event_of(c.bytes, line, &id, &at))
            p->image->trace->losses[KNEE_LOSS_TIME].count++;
        else if (line->role == BARRIERS && knee_slice_is(name_of(p, id), "barrier-cores"))
            add_barrier(p, at);
        else if (line->role == STREAM || line->role == XLA_OPS || line->role == XLA_ASYNC)
            take_work(p, line, id, at);
        else if (line->role == STEPS && at.end_ns > at.start_ns)
            knee_builder_step_of(p->image->builder,
                                 &(struct knee_raw_mark){
                                     {at.start_ns, at.end_ns, ordinal(name_of(p, id)), p->device},
                                     KNEE_STEPS_PROFILER,
                                     0});
    }
}

/* ---- Planes ---- */

/* The lines of one pass: barriers first, work needs them. */
static void take_lines(struct plane *p, struct knee_slice bytes, bool work)
{
    struct knee_proto c = knee_proto_of(bytes);
    while (knee_proto_next(&c) && !p->no_memory) {
        if (c.field != 3 || !c.is_bytes)
            continue;
        struct line line = line_of(c.bytes);
        bool ops =
            p->streams ? line.role == STREAM : line.role == XLA_OPS || line.role == XLA_ASYNC;
        bool wanted = work ? line.role == STEPS || ops : line.role == BARRIERS;
        p->image->trace->losses[KNEE_LOSS_EVENT].count += work && line.bad;
        if (wanted && !line.bad)
            take_line(p, c.bytes, &line);
    }
}

/* XPlane: 2 name, 3 lines, 4 names of events. False: it is damaged. */
static bool take_plane(struct plane *p, struct knee_slice bytes)
{
    struct knee_proto c = knee_proto_of(bytes);
    p->name_count = p->barrier_count = 0;
    p->name = (struct knee_slice){"", 0};
    p->streams = false;
    while (knee_proto_next(&c)) {
        if (c.field == 2 && c.is_bytes)
            p->name = c.bytes;
        else if (c.field == 3 && c.is_bytes)
            p->streams = p->streams || line_of(c.bytes).role == STREAM;
    }
    if (c.bad)
        return false;
    if (!knee_slice_starts(p->name, "/device:") || knee_slice_starts(p->name, "/device:CUSTOM"))
        return true;
    for (c = knee_proto_of(bytes); knee_proto_next(&c) && !p->no_memory;)
        if (c.field == 4 && c.is_bytes)
            take_name(p, c.bytes);
    if (p->name_count > 1)
        qsort(p->names, p->name_count, sizeof *p->names, by_id);
    p->device = ordinal(p->name);
    take_lines(p, bytes, false);
    if (p->barrier_count > 1)
        qsort(p->barriers, p->barrier_count, sizeof *p->barriers, by_end);
    take_lines(p, bytes, true);
    return true;
}

knee_status knee_xplane_read(struct knee_image *image, struct knee_err *err)
{
    struct plane p = {.image = image};
    struct knee_proto c = knee_proto_of((struct knee_slice){image->data, image->length});
    size_t planes = 0;
    while (knee_proto_next(&c) && !p.no_memory) {
        if (c.field == 4 && c.is_bytes && !image->trace->host[0])
            knee_slice_copy(c.bytes, image->trace->host, sizeof image->trace->host);
        if (c.field != 1 || !c.is_bytes)
            continue;
        planes++;
        image->trace->losses[KNEE_LOSS_EVENT].count += !take_plane(&p, c.bytes);
    }
    knee_resize(image->alloc, p.names, 0);
    knee_resize(image->alloc, p.barriers, 0);
    if (p.no_memory)
        return knee_fail(err, KNEE_SYSTEM, image->file, "out of memory");
    image->trace->losses[KNEE_LOSS_TRUNCATED].count += c.bad && planes > 0;
    if (planes > 0 && image->trace->events > 0)
        return KNEE_OK;
    knee_fail(err, KNEE_INPUT, image->file,
              planes ? "an XPlane file without work of a device"
                     : "not an XPlane file: its lengths do not fit (saved as text?)");
    knee_hint(err, "copy it as bytes; or convert it where it was made: xprof's trace_viewer tool "
                   "writes trace.json.gz");
    return KNEE_INPUT;
}
