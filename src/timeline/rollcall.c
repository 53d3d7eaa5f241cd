/* SPDX-License-Identifier: MIT */
/*
 * Roll call. Entries are sorted by group, sequence number and rank, so that the members of one
 * collective are neighbours. All members of a collective that needs data from every member leave it
 * together. So the shortest stay is the time on the wire, the excess of a longer stay is waiting,
 * and the rank with the shortest stay arrived last. Clocks are never compared with each other.
 */
#include "knee_rollcall.h"

#include "base/error.h"
#include "base/list.h"
#include "base/sort.h"
#include "base/text.h"
#include "timeline/rollcall.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Collecting ---- */

static void drop(const struct knee_alloc *alloc, void *memory)
{
    knee_resize(alloc, memory, 0);
}

static char *copy(const struct knee_alloc *alloc, struct knee_slice text)
{
    size_t length = text.length < KNEE_ROLL_NAME ? text.length : KNEE_ROLL_NAME;
    char *made = knee_resize(alloc, NULL, length + 1);
    if (made)
        knee_slice_copy(text, made, length + 1);
    return made;
}

bool knee_rollcall_add(struct knee_rollcall *roll, struct knee_entry entry)
{
    if (entry.sequence < 0 || entry.sequence >= KNEE_ROLL_SEQUENCES || entry.rank < 0 ||
        entry.rank >= KNEE_ROLL_RANKS || entry.duration_ns > KNEE_LONGEST_NS) {
        roll->skipped++;
        return true;
    }
    if (!knee_room(roll->alloc, &roll->entries, &roll->entry_capacity, roll->entry_count + 1,
                   sizeof entry))
        return false;
    roll->entries[roll->entry_count++] = entry;
    return true;
}

uint32_t knee_rollcall_group(struct knee_rollcall *roll, struct knee_slice name)
{
    char kept[KNEE_ROLL_NAME + 1]; /* as it is kept: cut, control bytes as '?' */
    knee_slice_copy(name, kept, sizeof kept);
    struct knee_slice cut = knee_slice_of(kept);
    roll->names.alloc = roll->alloc;
    uint32_t row = knee_map_add(&roll->names, cut.at, cut.length);
    if (row < roll->group_count || row >= KNEE_ROLL_GROUPS)
        return row < roll->group_count ? row : UINT32_MAX;
    struct knee_comm_group group = {.size = -1};
    if (knee_room(roll->alloc, &roll->groups, &roll->group_capacity, row + 1, sizeof group))
        group.name = copy(roll->alloc, cut);
    roll->names.failed = !group.name;
    if (!group.name)
        return UINT32_MAX;
    roll->groups[roll->group_count++] = group;
    return row;
}

bool knee_rollcall_describe(struct knee_rollcall *roll, uint32_t group, struct knee_slice words)
{
    struct knee_comm_group *g = &roll->groups[group];
    if (!g->description && words.length)
        g->description = copy(roll->alloc, words);
    return g->description || !words.length;
}

/* Unfinished calls stand in few places: the last ones are looked at first. */
uint32_t knee_rollcall_frame(struct knee_rollcall *roll, struct knee_slice place)
{
    char kept[KNEE_ROLL_NAME + 1];
    knee_slice_copy(place, kept, sizeof kept);
    for (size_t i = roll->frame_count; i-- > 0;)
        if (strcmp(roll->frames[i], kept) == 0)
            return (uint32_t)i + 1;
    if (roll->frame_count == KNEE_ROLL_FRAMES)
        return 0;
    if (!knee_room(roll->alloc, &roll->frames, &roll->frame_capacity, roll->frame_count + 1,
                   sizeof *roll->frames))
        return UINT32_MAX;
    char *made = copy(roll->alloc, knee_slice_of(kept));
    if (!made)
        return UINT32_MAX;
    roll->frames[roll->frame_count++] = made;
    return (uint32_t)roll->frame_count;
}

bool knee_rollcall_source(struct knee_rollcall *roll, const char *file, int64_t rank,
                          size_t first_entry)
{
    struct knee_roll_source source = {
        .rank = rank, .entries = roll->entry_count - first_entry, .waited_out = -1};
    for (size_t i = first_entry; i < roll->entry_count; i++)
        source.pending += roll->entries[i].pending;
    if (!knee_room(roll->alloc, &roll->sources, &roll->source_capacity, roll->source_count + 1,
                   sizeof *roll->sources))
        return false;
    source.file = copy(roll->alloc, knee_slice_of(file));
    if (source.file)
        roll->sources[roll->source_count++] = source;
    return source.file;
}

void knee_rollcall_release(struct knee_rollcall *roll)
{
    for (size_t i = 0; i < roll->group_count; i++) {
        drop(roll->alloc, roll->groups[i].name);
        drop(roll->alloc, roll->groups[i].description);
        drop(roll->alloc, roll->groups[i].members);
    }
    for (size_t i = 0; i < roll->source_count; i++)
        drop(roll->alloc, roll->sources[i].file);
    for (size_t i = 0; i < roll->frame_count; i++)
        drop(roll->alloc, roll->frames[i]);
    drop(roll->alloc, roll->frames);
    drop(roll->alloc, roll->entries);
    drop(roll->alloc, roll->groups);
    drop(roll->alloc, roll->sources);
    knee_map_release(&roll->names);
    const struct knee_alloc *alloc = roll->alloc;
    *roll = (struct knee_rollcall){.alloc = alloc};
}

/* ---- Taking one into another ---- */

/* All files of one call are of one format, and each rank of a Flight Recorder is there once. */
static knee_status may_take(const struct knee_rollcall *roll, const struct knee_rollcall *from,
                            struct knee_err *err)
{
    const char *file = from->source_count ? from->sources[0].file : "";
    if (roll->format && from->format && strcmp(roll->format, from->format) != 0)
        return knee_fail(err, KNEE_INPUT, file, "a %s file among files of %s: left out",
                         from->format, roll->format);
    for (size_t f = 0; f < from->source_count; f++)
        for (size_t i = 0; i < roll->source_count && from->sources[f].rank >= 0; i++)
            if (roll->sources[i].rank == from->sources[f].rank)
                return knee_fail(err, KNEE_INPUT, file,
                                 "rank %lld was there already, from %.60s: left out",
                                 (long long)roll->sources[i].rank, roll->sources[i].file);
    return KNEE_OK;
}

/* The row of a group of another roll call, which gives what it knows of it. */
static uint32_t take_group(struct knee_rollcall *roll, struct knee_comm_group *from)
{
    uint32_t row = knee_rollcall_group(roll, knee_slice_of(from->name));
    if (row == UINT32_MAX)
        return row;
    struct knee_comm_group *into = &roll->groups[row];
    into->size = from->size > 0 ? from->size : into->size;
    if (!into->description) {
        into->description = from->description;
        from->description = NULL;
    }
    if (!into->members) {
        into->members = from->members;
        into->member_count = from->member_count;
        from->members = NULL;
    }
    return row;
}

static bool take_entries(struct knee_rollcall *roll, struct knee_rollcall *from)
{
    size_t wanted = roll->entry_count + from->entry_count;
    uint32_t *rows =
        knee_resize(roll->alloc, NULL, (from->group_count + from->frame_count + 2) * sizeof *rows);
    bool good = rows;
    uint32_t *frames = good ? rows + from->group_count : NULL;
    for (size_t g = 0; g < from->group_count && good; g++)
        good = (rows[g] = take_group(roll, &from->groups[g])) != UINT32_MAX;
    for (size_t f = 0; f < from->frame_count && good; f++)
        good = (frames[f + 1] = knee_rollcall_frame(roll, knee_slice_of(from->frames[f]))) !=
               UINT32_MAX;
    if (good)
        frames[0] = 0; /* no stack */
    if (good && wanted > roll->entry_capacity) {
        size_t larger = wanted + wanted / 4;
        void *grown = knee_resize(roll->alloc, roll->entries, larger * sizeof *roll->entries);
        good = grown;
        roll->entries = good ? grown : roll->entries;
        roll->entry_capacity = good ? larger : roll->entry_capacity;
    }
    for (size_t i = 0; i < from->entry_count && good; i++) {
        struct knee_entry *entry = &roll->entries[roll->entry_count++];
        *entry = from->entries[i];
        entry->group = rows[entry->group];
        entry->frame = frames[entry->frame];
    }
    drop(roll->alloc, rows);
    return good;
}

static bool take_sources(struct knee_rollcall *roll, struct knee_rollcall *from)
{
    for (size_t i = 0; i < from->source_count; i++) {
        if (!knee_room(roll->alloc, &roll->sources, &roll->source_capacity, roll->source_count + 1,
                       sizeof *roll->sources))
            return false;
        roll->sources[roll->source_count++] = from->sources[i];
        from->sources[i].file = NULL;
    }
    return true;
}

knee_status knee_rollcall_take(struct knee_rollcall *roll, struct knee_rollcall *from,
                               struct knee_err *err)
{
    knee_status status = may_take(roll, from, err);
    if (status)
        return status;
    if (!take_entries(roll, from) || !take_sources(roll, from))
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the collectives");
    roll->format = roll->format ? roll->format : from->format;
    roll->skipped += from->skipped;
    roll->untimed += from->untimed;
    knee_rollcall_release(from);
    return KNEE_OK;
}

/* ---- In order ---- */

/* By group, then collectives before sends, then number, then rank. Ranks get no more bits than they
 * need: sorting takes its time by bytes that differ. */
bool knee_rollcall_sort(struct knee_rollcall *roll, size_t ranks)
{
    size_t count = roll->entry_count;
    int bits = 1;
    while ((ranks - 1) >> bits)
        bits++;
    struct knee_sort_key *keys = knee_resize(roll->alloc, NULL, (2 * count + 1) * sizeof *keys);
    struct knee_entry *sorted = knee_resize(roll->alloc, NULL, (count + 1) * sizeof *sorted);
    bool good = keys && sorted;
    for (size_t i = 0; i < count && good; i++) {
        const struct knee_entry *e = &roll->entries[i];
        keys[i] = (struct knee_sort_key){
            (uint64_t)e->p2p << 63 | (uint64_t)e->sequence << bits | (uint64_t)e->rank, i};
    }
    if (good)
        knee_sort(keys, keys + count, count);
    for (size_t i = 0; i < count && good; i++)
        keys[i].key = roll->entries[keys[i].row].group;
    if (good)
        knee_sort(keys, keys + count, count);
    for (size_t i = 0; i < count && good; i++)
        sorted[i] = roll->entries[keys[i].row];
    drop(roll->alloc, keys);
    if (!good) {
        drop(roll->alloc, sorted);
        return false;
    }
    drop(roll->alloc, roll->entries);
    roll->entries = sorted;
    roll->entry_capacity = count + 1;
    return true;
}
