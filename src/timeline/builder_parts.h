/* SPDX-License-Identifier: MIT */
/*
 * What builder.c collects and builder_finish.c makes a trace of. Events come in any order: spans
 * wait per device, calls of the host and what they say of copies and collectives wait in lists of
 * their own, and are joined by correlation at the end.
 */
#ifndef KNEE_TIMELINE_BUILDER_PARTS_H
#define KNEE_TIMELINE_BUILDER_PARTS_H

#include "base/list.h"
#include "base/text.h"
#include "timeline/builder.h"

struct knee_text_row {
    size_t offset, length; /* in the text of all names */
    uint64_t hash;
    struct knee_kernel_facts facts;
    bool classified;
};

/* A span before it is joined. */
struct knee_raw_span {
    struct knee_span span;
    uint64_t correlation;
    struct knee_call_facts *facts; /* NULL for most */
};

struct knee_raw_launch {
    uint64_t correlation;
    int64_t start_ns, end_ns, thread;
    uint32_t host; /* row of the host's events + 1; 0: not kept */
};

struct knee_raw_copy {
    uint64_t correlation;
    int64_t bytes;
};

struct knee_raw_comm_op {
    int64_t start_ns, end_ns, thread;
    struct knee_call_facts facts;
};

struct knee_raw_device {
    int64_t key;
    struct knee_list spans; /* raw_span */
};

enum { MOST_DEVICES = 1 << 16 }; /* in one file; as many ranks as knee writes into one */

enum { KNEE_RECENT_NAME_BITS = 12, KNEE_RECENT_NAMES = 1 << KNEE_RECENT_NAME_BITS };

struct knee_builder {
    const struct knee_trace_options *options;
    const struct knee_alloc *alloc;
    bool failed;
    struct knee_list text, names; /* char, struct knee_text_row */
    uint32_t *slots;              /* hash table of names: row + 1 */
    size_t slot_count;
    uint32_t recent[KNEE_RECENT_NAMES]; /* names met of late, by a cheap mark: row + 1 */
    struct knee_list devices, launches, comm_ops, steps, loads; /* marks are raw until the end */
    struct knee_list host, copies, products, grids, long_calls;
    uint32_t *device_slots; /* hash table of devices: row + 1 */
    size_t device_slot_count;
    int64_t last_device_key;
    size_t last_device;
    uint64_t bad_times, lost_devices; /* events that were not taken, and why */
    struct knee_copied copied[KNEE_COPY_KINDS];
    int64_t long_launch_start_ns, long_launch_end_ns;
    uint64_t captures;
    bool operations, backward;
};

/* One more row; NULL once memory is out, which stays so. Inline: every event comes through here. */
static inline void *knee_builder_grow(struct knee_builder *b, struct knee_list *list, size_t size)
{
    if (b->failed)
        return NULL;
    if (list->count < list->capacity)
        return (char *)list->data + list->count++ * size;
    void *row = knee_list_add(list, size, b->alloc);
    b->failed = !row;
    return row;
}

void knee_builder_drop_device(struct knee_builder *builder, struct knee_raw_device *device);
/* What the name in this row says of a kernel; classified at the first call. */
const struct knee_kernel_facts *knee_builder_facts(struct knee_builder *builder, uint32_t row);

#endif
