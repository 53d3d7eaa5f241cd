/* SPDX-License-Identifier: MIT */
/* A member "rank" begins a row; what follows it up to the next one is that row's. */
#include "read/live/ras_read.h"

#include "base/error.h"
#include "base/format.h"
#include "base/json_values.h"
#include "base/list.h"
#include "base/slice.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define RANKS   "communicators[].ranks[]."
#define MISSING "communicators[].missing_ranks[]."

struct reading {
    struct knee_ras *ras;
    char comm[40];
    bool failed;
};

static struct knee_ras_rank *new_row(struct reading *r, bool missing)
{
    struct knee_ras *ras = r->ras;
    if (!knee_room(ras->alloc, &ras->ranks, &ras->room, ras->count + 1, sizeof *ras->ranks)) {
        r->failed = true;
        return NULL;
    }
    struct knee_ras_rank *row = &ras->ranks[ras->count++];
    *row = (struct knee_ras_rank){.rank = -1, .pid = -1, .missing = missing};
    memcpy(row->comm, r->comm, sizeof row->comm);
    return row;
}

static int64_t whole(const struct knee_json_values *v)
{
    return v->kind == KNEE_JSON_NUMBER && v->number >= 0 && v->number < 1e15 ? (int64_t)v->number
                                                                             : -1;
}

/* Numbers, true, and names of results other than success. */
static bool is_set(const struct knee_json_values *v)
{
    if (v->kind == KNEE_JSON_STRING)
        return v->text[0] && strcmp(v->text, "ncclSuccess") != 0 && strcmp(v->text, "0") != 0 &&
               strcmp(v->text, "No error") != 0 && strcmp(v->text, "no error") != 0;
    return v->kind == KNEE_JSON_TRUE ||
           (v->kind == KNEE_JSON_NUMBER && (v->number > 0 || v->number < 0));
}

static void take_member(const struct knee_json_values *v, const char *name,
                        struct knee_ras_rank *row)
{
    if (strcmp(name, "host") == 0) {
        knee_slice_copy(knee_slice_of(v->text), row->host, sizeof row->host);
    } else if (strcmp(name, "pid") == 0) {
        row->pid = whole(v);
    } else if (strncmp(name, "collective_counts.", 18) == 0) {
        int64_t calls = whole(v);
        row->calls += calls > 0 && row->calls < INT64_MAX - calls ? calls : 0;
    } else if (strcmp(name, "status.async_error") == 0 || strcmp(name, "status.abort_flag") == 0) {
        row->failed = row->failed || is_set(v);
    } else if (strcmp(name, "status.unresponsive") == 0) {
        row->unresponsive = is_set(v);
    } else if (strcmp(name, "status.considered_dead") == 0) {
        row->dead = is_set(v);
    }
}

static void take(struct reading *r, const struct knee_json_values *v)
{
    bool missing = strncmp(v->path, MISSING, sizeof MISSING - 1) == 0;
    if (strcmp(v->path, "nccl_version") == 0) {
        knee_slice_copy(knee_slice_of(v->text), r->ras->nccl, sizeof r->ras->nccl);
    } else if (strcmp(v->path, "communicators[].hash") == 0) {
        if (v->kind == KNEE_JSON_STRING)
            knee_slice_copy(knee_slice_of(v->text), r->comm, sizeof r->comm);
        else
            knee_format(r->comm, sizeof r->comm, "%.0f", v->number);
    } else if (missing || strncmp(v->path, RANKS, sizeof RANKS - 1) == 0) {
        const char *name = v->path + (missing ? sizeof MISSING : sizeof RANKS) - 1;
        struct knee_ras_rank *row = r->ras->count ? &r->ras->ranks[r->ras->count - 1] : NULL;
        if (strcmp(name, "rank") == 0) {
            row = new_row(r, missing);
            if (row)
                row->rank = whole(v);
        } else if (row && row->missing == missing && strcmp(row->comm, r->comm) == 0) {
            take_member(v, name, row);
        }
    }
}

int knee_ras_compare(const void *a, const void *b)
{
    const struct knee_ras_rank *x = a, *y = b;
    int order = strcmp(x->comm, y->comm);
    return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

knee_status knee_ras_read(const char *text, size_t length, const struct knee_alloc *alloc,
                          struct knee_ras *out, struct knee_err *err)
{
    struct knee_ras ras = {.alloc = alloc};
    struct reading reading = {.ras = &ras};
    struct knee_json_values values;
    bool known = false;
    const char *brace = length ? memchr(text, '{', length) : NULL;
    size_t skipped = brace ? (size_t)(brace - text) : length;
    knee_json_values_init(&values, text + skipped, length - skipped);
    while (!reading.failed && knee_json_values_next(&values)) {
        known = known || strcmp(values.path, "communicators_count") == 0 ||
                strncmp(values.path, "communicators[]", 15) == 0;
        take(&reading, &values);
    }
    if (reading.failed || values.error || !known) {
        knee_ras_release(&ras);
        if (reading.failed)
            return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
        return knee_fail(err, KNEE_INPUT, "", "this is not an answer of NCCL's RAS service%s%s",
                         values.error ? ": " : "", values.error ? values.error : "");
    }
    if (ras.count)
        qsort(ras.ranks, ras.count, sizeof *ras.ranks, knee_ras_compare);
    *out = ras;
    return KNEE_OK;
}

void knee_ras_release(struct knee_ras *ras)
{
    knee_resize(ras->alloc, ras->ranks, 0);
    memset(ras, 0, sizeof *ras);
}
