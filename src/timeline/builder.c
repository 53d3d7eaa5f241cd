/* SPDX-License-Identifier: MIT */
#include "timeline/builder_parts.h"

#include "base/hash.h"
#include "timeline/account.h"

#include <stdlib.h>
#include <string.h>

struct knee_builder *knee_builder_new(const struct knee_trace_options *options,
                                      const struct knee_alloc *alloc)
{
    struct knee_builder *b = knee_resize(alloc, NULL, sizeof *b);
    if (!b)
        return NULL;
    memset(b, 0, sizeof *b);
    b->options = options;
    b->alloc = alloc;
    return b;
}

void knee_builder_drop_device(struct knee_builder *b, struct knee_raw_device *device)
{
    struct knee_raw_span *spans = device->spans.data;
    for (size_t i = 0; i < device->spans.count; i++)
        knee_resize(b->alloc, spans[i].facts, 0);
    knee_list_release(&device->spans, b->alloc);
}

void knee_builder_free(struct knee_builder *b)
{
    if (!b)
        return;
    for (size_t d = 0; d < b->devices.count; d++)
        knee_builder_drop_device(b, &((struct knee_raw_device *)b->devices.data)[d]);
    knee_list_release(&b->devices, b->alloc);
    knee_list_release(&b->text, b->alloc);
    knee_list_release(&b->names, b->alloc);
    knee_list_release(&b->launches, b->alloc);
    knee_list_release(&b->comm_ops, b->alloc);
    knee_list_release(&b->steps, b->alloc);
    knee_list_release(&b->loads, b->alloc);
    knee_list_release(&b->host, b->alloc);
    knee_list_release(&b->copies, b->alloc);
    knee_list_release(&b->products, b->alloc);
    knee_list_release(&b->grids, b->alloc);
    knee_list_release(&b->long_calls, b->alloc);
    knee_resize(b->alloc, b->slots, 0);
    knee_resize(b->alloc, b->device_slots, 0);
    knee_resize(b->alloc, b, 0);
}

/* ---- Names ---- */

static const char *name_text(const struct knee_builder *b, uint32_t row)
{
    return (const char *)b->text.data + ((const struct knee_text_row *)b->names.data)[row].offset;
}

static bool grow_slots(struct knee_builder *b)
{
    size_t count = b->slot_count ? b->slot_count * 2 : 1024;
    uint32_t *slots = knee_resize(b->alloc, NULL, count * sizeof *slots);
    if (!slots) {
        b->failed = true;
        return false;
    }
    memset(slots, 0, count * sizeof *slots);
    const struct knee_text_row *names = b->names.data;
    for (uint32_t row = 0; row < b->names.count; row++) {
        size_t at = names[row].hash & (count - 1);
        while (slots[at])
            at = (at + 1) & (count - 1);
        slots[at] = row + 1;
    }
    knee_resize(b->alloc, b->slots, 0);
    b->slots = slots;
    b->slot_count = count;
    return true;
}

/* Room for `length` more bytes of names. */
static char *grow_text(struct knee_builder *b, size_t length)
{
    struct knee_list *text = &b->text;
    if (text->capacity - text->count < length) {
        size_t capacity = text->capacity ? text->capacity : 16384;
        while (capacity - text->count < length)
            capacity *= 2;
        char *data = knee_resize(b->alloc, text->data, capacity);
        if (!data) {
            b->failed = true;
            return NULL;
        }
        text->data = data;
        text->capacity = capacity;
    }
    char *at = (char *)text->data + text->count;
    text->count += length;
    return at;
}

/* Names are C strings in the end: a NUL inside becomes a question mark before anything is looked
 * up, so that the name is found again. */
static uint32_t name_with_nul(struct knee_builder *b, const char *text, size_t length)
{
    char *copy = knee_resize(b->alloc, NULL, length);
    if (!copy) {
        b->failed = true;
        return KNEE_NO_NAME;
    }
    for (size_t i = 0; i < length; i++)
        copy[i] = text[i] ? text[i] : '?';
    uint32_t row = knee_builder_name(b, copy, length);
    knee_resize(b->alloc, copy, 0);
    return row;
}

static uint32_t find_or_add_name(struct knee_builder *b, const char *text, size_t length)
{
    uint64_t hash = knee_keyed(knee_hash_key_for(b), text, length);
    if (b->failed || (b->names.count * 2 >= b->slot_count && !grow_slots(b)))
        return KNEE_NO_NAME;
    size_t at = hash & (b->slot_count - 1);
    const struct knee_text_row *names = b->names.data;
    for (; b->slots[at]; at = (at + 1) & (b->slot_count - 1)) {
        uint32_t row = b->slots[at] - 1;
        if (names[row].hash == hash && names[row].length == length &&
            memcmp(name_text(b, row), text, length) == 0)
            return row;
    }
    if (length && memchr(text, '\0', length))
        return name_with_nul(b, text, length);
    if (b->names.count >= UINT32_MAX - 2)
        return KNEE_NO_NAME;
    struct knee_text_row *name = knee_builder_grow(b, &b->names, sizeof *name);
    char *copy = name ? grow_text(b, length + 1) : NULL;
    if (!copy)
        return KNEE_NO_NAME;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *name = (struct knee_text_row){
        .offset = (size_t)(copy - (char *)b->text.data), .length = length, .hash = hash};
    b->slots[at] = (uint32_t)b->names.count;
    return (uint32_t)b->names.count - 1;
}

/* Where a name of eight bytes or more stands among the recent ones. A cheap sum of its words: names
 * that share a place only push each other out. */
static size_t recent_place(const char *text, size_t length)
{
    uint64_t mark = length, other = 0, words[2];
    size_t i = 0;
    for (; i + 16 <= length; i += 16) { /* two sums, for each has to wait for itself */
        memcpy(words, text + i, sizeof words);
        mark = knee_rotate(mark, 11) + words[0];
        other = knee_rotate(other, 13) + words[1];
    }
    memcpy(words, text + i - (i + 8 > length ? 8 : 0), sizeof *words);
    memcpy(words + 1, text + length - 8, sizeof *words);
    mark = knee_rotate(mark, 11) + knee_rotate(other, 31) + words[0];
    return (size_t)((mark ^ knee_rotate(words[1], 29)) * 0x9e3779b97f4a7c15u >>
                    (64 - KNEE_RECENT_NAME_BITS));
}

/* A file says few names, and each of them often: most are known without their keyed hash. */
uint32_t knee_builder_name(struct knee_builder *b, const char *text, size_t length)
{
    if (!text || length < 8)
        return find_or_add_name(b, text ? text : "", length); /* NULL: an event without a name */
    uint32_t *recent = &b->recent[recent_place(text, length)];
    if (*recent && ((const struct knee_text_row *)b->names.data)[*recent - 1].length == length &&
        memcmp(name_text(b, *recent - 1), text, length) == 0)
        return *recent - 1;
    uint32_t row = find_or_add_name(b, text, length);
    if (row != KNEE_NO_NAME)
        *recent = row + 1;
    return row;
}

const struct knee_kernel_facts *knee_builder_facts(struct knee_builder *b, uint32_t row)
{
    struct knee_text_row *name = &((struct knee_text_row *)b->names.data)[row];
    if (!name->classified) {
        name->facts = knee_kernel_facts(name_text(b, row), b->options);
        name->classified = true;
    }
    return &name->facts;
}

/* ---- Events ---- */

/* The slot of a device, or the empty one where it belongs. */
static uint32_t *device_slot(const struct knee_builder *b, int64_t key)
{
    const struct knee_raw_device *devices = b->devices.data;
    uint64_t hash = knee_keyed(knee_hash_key_for(b), &key, sizeof key);
    size_t at = (size_t)hash & (b->device_slot_count - 1);
    while (b->device_slots[at] && devices[b->device_slots[at] - 1].key != key)
        at = (at + 1) & (b->device_slot_count - 1);
    return &b->device_slots[at];
}

static bool grow_device_slots(struct knee_builder *b)
{
    size_t count = b->device_slot_count ? b->device_slot_count * 4 : 64;
    uint32_t *slots = knee_resize(b->alloc, b->device_slots, count * sizeof *slots);
    if (!slots) {
        b->failed = true;
        return false;
    }
    memset(slots, 0, count * sizeof *slots);
    b->device_slots = slots;
    b->device_slot_count = count;
    for (uint32_t row = 0; row < b->devices.count; row++)
        *device_slot(b, ((struct knee_raw_device *)b->devices.data)[row].key) = row + 1;
    return true;
}

static struct knee_raw_device *device_of(struct knee_builder *b, int64_t key)
{
    struct knee_raw_device *devices = b->devices.data;
    if (b->devices.count && b->last_device_key == key)
        return &devices[b->last_device];
    if (b->failed || (b->devices.count * 2 >= b->device_slot_count && !grow_device_slots(b)))
        return NULL;
    uint32_t *slot = device_slot(b, key);
    if (!*slot) {
        if (b->devices.count == MOST_DEVICES) {
            b->lost_devices++;
            return NULL;
        }
        if (!knee_builder_grow(b, &b->devices, sizeof *devices))
            return NULL;
        devices = b->devices.data;
        devices[b->devices.count - 1] = (struct knee_raw_device){.key = key};
        *slot = (uint32_t)b->devices.count;
    }
    size_t row = *slot - 1;
    b->last_device = row;
    b->last_device_key = key;
    return &devices[row];
}

void knee_builder_span(struct knee_builder *b, const struct knee_gpu_work *work)
{
    bool good = knee_time_is_good(work->start_ns, work->end_ns);
    b->bad_times += !good;
    struct knee_raw_device *device =
        work->name == KNEE_NO_NAME || !good ? NULL : device_of(b, work->device);
    struct knee_raw_span *raw = device ? knee_builder_grow(b, &device->spans, sizeof *raw) : NULL;
    if (!raw)
        return;
    enum knee_span_kind kind = knee_builder_facts(b, work->name)->kind;
    if (work->copy && kind != KNEE_SPAN_COMM)
        kind = KNEE_SPAN_COPY;
    *raw = (struct knee_raw_span){
        .span = {.start_ns = work->start_ns,
                 .end_ns = work->end_ns,
                 .launch_ns = KNEE_NO_TIME,
                 .name = work->name,
                 .stream = work->stream,
                 .step = -1,
                 .kind = kind},
        .correlation = work->correlation,
    };
    if (!work->facts || (kind != KNEE_SPAN_COMM && kind != KNEE_SPAN_FUSED))
        return;
    raw->facts = knee_resize(b->alloc, NULL, sizeof *raw->facts);
    if (raw->facts)
        *raw->facts = *work->facts;
    else
        b->failed = true;
}

void knee_builder_launch(struct knee_builder *b, int64_t start_ns, int64_t end_ns, int64_t thread,
                         uint64_t correlation)
{
    bool good = knee_time_is_good(start_ns, end_ns);
    b->bad_times += !good;
    struct knee_raw_launch *launch =
        good ? knee_builder_grow(b, &b->launches, sizeof *launch) : NULL;
    if (launch)
        *launch = (struct knee_raw_launch){correlation, start_ns, end_ns, thread,
                                           (uint32_t)b->host.count};
}

void knee_builder_copy(struct knee_builder *b, uint64_t correlation, int64_t bytes)
{
    struct knee_raw_copy *copy = knee_builder_grow(b, &b->copies, sizeof *copy);
    if (copy)
        *copy = (struct knee_raw_copy){correlation, bytes};
}

void knee_builder_copied(struct knee_builder *b, uint32_t name, int64_t bytes, int64_t duration_ns)
{
    if (name == KNEE_NO_NAME || bytes < 0 || bytes > INT64_MAX / 4096 || duration_ns < 0)
        return;
    struct knee_copied *copied = &b->copied[knee_copy_kind_of(name_text(b, name))];
    copied->count++;
    copied->bytes = knee_add_ns(copied->bytes, bytes); /* held at the largest number */
    copied->time_ns = knee_add_ns(copied->time_ns, duration_ns);
}

void knee_builder_long_launch(struct knee_builder *b, int64_t start_ns, int64_t end_ns)
{
    if (end_ns - start_ns > b->long_launch_end_ns - b->long_launch_start_ns) {
        b->long_launch_start_ns = start_ns;
        b->long_launch_end_ns = end_ns;
    }
}

void knee_builder_capture(struct knee_builder *b)
{
    b->captures++;
}

void knee_builder_operation(struct knee_builder *b)
{
    b->operations = true;
}

void knee_builder_backward(struct knee_builder *b)
{
    b->backward = true;
}

static void add_host(struct knee_builder *b, struct knee_list *list, struct knee_host_event row)
{
    struct knee_host_event *event = row.name == KNEE_NO_NAME || list->count >= UINT32_MAX - 1
                                        ? NULL
                                        : knee_builder_grow(b, list, sizeof *event);
    if (event)
        *event = row;
}

void knee_builder_host(struct knee_builder *b, int64_t start_ns, int64_t end_ns, int64_t thread,
                       enum knee_host_kind kind, uint32_t name)
{
    add_host(b, &b->host, (struct knee_host_event){start_ns, end_ns, thread, name, kind, -1});
}

void knee_builder_long_call(struct knee_builder *b, int64_t start_ns, int64_t end_ns,
                            int64_t thread, enum knee_host_kind kind, uint32_t name)
{
    add_host(b, &b->long_calls, (struct knee_host_event){start_ns, end_ns, thread, name, kind, -1});
}

void knee_builder_sequence(struct knee_builder *b, int64_t sequence)
{
    struct knee_host_event *events = b->host.data;
    if (b->host.count)
        events[b->host.count - 1].sequence = sequence;
}

void knee_builder_grid(struct knee_builder *b, uint64_t correlation, int64_t blocks)
{
    struct knee_raw_copy *grid = knee_builder_grow(b, &b->grids, sizeof *grid);
    if (grid)
        *grid = (struct knee_raw_copy){correlation, blocks};
}

void knee_builder_comm_op(struct knee_builder *b, int64_t start_ns, int64_t end_ns, int64_t thread,
                          const struct knee_call_facts *facts)
{
    bool good = knee_time_is_good(start_ns, end_ns);
    b->bad_times += !good;
    struct knee_raw_comm_op *op = good ? knee_builder_grow(b, &b->comm_ops, sizeof *op) : NULL;
    if (op)
        *op = (struct knee_raw_comm_op){start_ns, end_ns, thread, *facts};
}

void knee_builder_product(struct knee_builder *b, const struct knee_product *product)
{
    bool good = knee_time_is_good(product->start_ns, product->end_ns);
    b->bad_times += !good;
    struct knee_product *row = good ? knee_builder_grow(b, &b->products, sizeof *row) : NULL;
    if (row)
        *row = *product;
}

static void add_mark(struct knee_builder *b, struct knee_list *list,
                     const struct knee_raw_mark *raw)
{
    struct knee_mark whole = raw->mark;
    whole.end_ns = whole.end_ns < whole.start_ns ? whole.start_ns : whole.end_ns;
    bool good = knee_time_is_good(whole.start_ns, whole.end_ns);
    b->bad_times += !good;
    struct knee_raw_mark *mark = good ? knee_builder_grow(b, list, sizeof *mark) : NULL;
    if (!mark)
        return;
    *mark = *raw;
    mark->mark = whole;
}

void knee_builder_step(struct knee_builder *b, int64_t start_ns, int64_t end_ns, int64_t number)
{
    knee_builder_step_of(
        b, &(struct knee_raw_mark){{start_ns, end_ns, number, -1}, KNEE_STEPS_PROFILER, 0});
}

void knee_builder_step_of(struct knee_builder *b, const struct knee_raw_mark *step)
{
    add_mark(b, &b->steps, step);
}

void knee_builder_load(struct knee_builder *b, int64_t process, int64_t start_ns, int64_t end_ns,
                       bool ahead)
{
    add_mark(b, &b->loads, &(struct knee_raw_mark){.mark = {start_ns, end_ns, ahead, process}});
}
