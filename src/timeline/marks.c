/* SPDX-License-Identifier: MIT */
#include "timeline/marks.h"

#include "base/order.h"

#include <stdlib.h>
#include <string.h>

/* The outer one first. */
KNEE_SORT(by_device_and_time, struct knee_raw_mark,
          KNEE_THEN(KNEE_UP(mark.device),
                    KNEE_THEN(KNEE_UP(mark.start_ns), KNEE_DOWN(mark.end_ns))))

KNEE_BY_TWO(by_device_and_end, struct knee_raw_mark, mark.device, mark.end_ns)

static void sort(struct knee_raw_mark *raw, size_t count,
                 int (*compare)(const void *, const void *))
{
    if (count > 1)
        qsort(raw, count, sizeof *raw, compare);
}

/* Keeps the marks of the source that says most about steps. */
static size_t keep_best(struct knee_raw_mark *raw, size_t count, enum knee_step_source *source)
{
    size_t kept = 0;
    *source = KNEE_STEPS_NONE;
    for (size_t i = 0; i < count; i++)
        *source = raw[i].source < *source ? raw[i].source : *source;
    for (size_t i = 0; i < count; i++)
        if (raw[i].source == *source)
            raw[kept++] = raw[i];
    return kept;
}

/* From the end of one optimizer step to the end of the next: of several optimizers, the one that
 * comes last counts. The first has no beginning. */
static size_t between_optimizers(struct knee_raw_mark *raw, size_t count)
{
    size_t kept = 0, made = 0;
    sort(raw, count, by_device_and_end);
    uint32_t name = count ? raw[count - 1].name : 0;
    for (size_t i = 0; i < count; i++)
        if (raw[i].name == name)
            raw[kept++] = raw[i];
    for (size_t i = 1; i < kept; i++) {
        struct knee_mark before = raw[i - 1].mark, now = raw[i].mark;
        if (before.device != now.device || before.end_ns >= now.end_ns)
            continue;
        now.start_ns = before.end_ns;
        now.number = (int64_t)made;
        raw[made++].mark = now; /* made < i: row i is still as it was */
    }
    return made;
}

static bool has_device(const int64_t *devices, size_t count, int64_t key)
{
    size_t low;
    KNEE_BISECT(low, count, devices[low] < key);
    return low < count && devices[low] == key;
}

/* A file that holds several processes, as knee writes it, has marks for every device under the
 * device's own number. Anything else is one process, whose marks are those of all its devices. */
static void find_owners(struct knee_raw_mark *raw, size_t count, const int64_t *devices,
                        size_t device_count)
{
    size_t owned = 0;
    sort(raw, count, by_device_and_time);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || raw[i].mark.device != raw[i - 1].mark.device)
            owned += has_device(devices, device_count, raw[i].mark.device);
    if (device_count > 1 && owned == device_count)
        return;
    for (size_t i = 0; i < count; i++)
        raw[i].mark.device = -1;
    sort(raw, count, by_device_and_time);
}

/* A mark inside another one is a part of that step, not a step. */
static size_t drop_nested(struct knee_raw_mark *raw, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const struct knee_mark *last = kept ? &raw[kept - 1].mark : NULL;
        if (!last || last->device != raw[i].mark.device || raw[i].mark.end_ns > last->end_ns)
            raw[kept++] = raw[i];
    }
    return kept;
}

size_t knee_marks_settle(struct knee_raw_mark *raw, size_t count, const int64_t *devices,
                         size_t device_count, enum knee_step_source *source)
{
    if (source) {
        count = keep_best(raw, count, source);
        if (*source == KNEE_STEPS_OPTIMIZER)
            count = between_optimizers(raw, count);
        *source = count ? *source : KNEE_STEPS_NONE;
    }
    find_owners(raw, count, devices, device_count);
    return source ? drop_nested(raw, count) : count;
}

struct knee_marks knee_marks_of(const struct knee_mark *list, size_t count, int64_t device)
{
    size_t low, end;
    if (count == 0 || list[0].device == -1)
        return (struct knee_marks){list, count};
    KNEE_BISECT(low, count, list[low].device < device);
    for (end = low; end < count && list[end].device == device; end++)
        ;
    return (struct knee_marks){list + low, end - low};
}

size_t knee_marks_before(struct knee_marks marks, int64_t ns)
{
    size_t low;
    KNEE_BISECT(low, marks.count, marks.list[low].start_ns <= ns);
    return low;
}

bool knee_names_step(const char *text, size_t length, int64_t *number)
{
    static const char *const words[] = {"profilerstep", "train_step", "training_step",
                                        "step",         "iteration",  "iter"};
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        size_t i = 0, word = strlen(words[w]);
        while (i < word && i < length && (text[i] | 0x20) == (words[w][i] | 0x20))
            i++;
        if (i < word)
            continue;
        while (i < length && text[i] && strchr(" _#:=-", text[i]))
            i++;
        int64_t value = 0;
        for (size_t digits = i; i < length && text[i] >= '0' && text[i] <= '9' && i - digits < 12;
             i++)
            value = value * 10 + (text[i] - '0');
        if (i < length)
            continue;
        *number = value;
        return true;
    }
    return false;
}
