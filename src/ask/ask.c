/* SPDX-License-Identifier: MIT */
/* What lives between questions: what was attached and pushed, and what can be pulled. */
#include "ask/ask.h"

#include "ask/pushed.h"
#include "base/keys.h"
#include "base/slice.h"
#include "base/text.h"
#include "cluster/hardware.h"
#include "knee_read.h"

#include <stdlib.h>
#include <string.h>

#define LARGEST_CLUSTER ((size_t)16 << 20)
#define LARGEST_RATES   ((size_t)1 << 20)

/* A name and its bytes: borrowed, or text of our own. */
struct named {
    char *name;
    const char *data;
    size_t length;
    struct knee_text text;
};

struct named_list {
    struct named *rows;
    size_t count;
};

struct knee_ask {
    const struct knee_alloc *alloc;
    struct knee_ask_files files;
    bool (*progress)(void *ctx, double share);
    void *progress_ctx;
    struct named_list attached, pulled;
    struct knee_ask_pushed pushed;
    struct knee_fitted
        *fitted; /* what a fit left in the cluster file read last, which points here */
};

struct knee_ask *knee_ask_begin(const struct knee_alloc *alloc)
{
    struct knee_ask *ask = knee_zeroed(alloc, sizeof *ask);
    if (ask)
        ask->alloc = ask->pushed.alloc = alloc;
    return ask;
}

static void release_list(struct named_list *list, const struct knee_alloc *alloc)
{
    for (size_t i = 0; i < list->count; i++) {
        knee_text_release(&list->rows[i].text);
        knee_resize(alloc, list->rows[i].name, 0);
    }
    knee_resize(alloc, list->rows, 0);
    *list = (struct named_list){0};
}

void knee_ask_end(struct knee_ask *ask)
{
    if (!ask)
        return;
    release_list(&ask->attached, ask->alloc);
    release_list(&ask->pulled, ask->alloc);
    knee_ask_pushed_release(&ask->pushed);
    knee_resize(ask->alloc, ask->fitted, 0);
    knee_resize(ask->alloc, ask, 0);
}

const struct knee_alloc *knee_ask_alloc(const struct knee_ask *ask)
{
    return ask->alloc;
}

struct knee_ask_pushed *knee_ask_pushed_of(struct knee_ask *ask)
{
    return &ask->pushed;
}

void knee_ask_set_files(struct knee_ask *ask, const struct knee_ask_files *files)
{
    ask->files = *files;
}

const struct knee_ask_files *knee_ask_files_of(const struct knee_ask *ask)
{
    return &ask->files;
}

void knee_ask_watch(struct knee_ask *ask, bool (*progress)(void *ctx, double share), void *ctx)
{
    ask->progress = progress;
    ask->progress_ctx = ctx;
}

bool knee_ask_progress(struct knee_ask *ask, double share)
{
    return !ask->progress || ask->progress(ask->progress_ctx, share);
}

/* ---- Names and bytes ---- */

static struct named *find(const struct named_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->rows[i].name, name) == 0)
            return &list->rows[i];
    return NULL;
}

/* The row of `name`, a new one if there is none; NULL: no memory. */
static struct named *take(struct knee_ask *ask, struct named_list *list, const char *name)
{
    struct named *row = find(list, name);
    if (row)
        return row;
    size_t length = strlen(name) + 1;
    char *copy = knee_resize(ask->alloc, NULL, length);
    row = copy ? knee_resize(ask->alloc, list->rows, (list->count + 1) * sizeof *row) : NULL;
    if (!row) {
        knee_resize(ask->alloc, copy, 0);
        return NULL;
    }
    memcpy(copy, name, length);
    list->rows = row;
    row += list->count++;
    *row = (struct named){.name = copy, .text = {.alloc = ask->alloc}};
    return row;
}

knee_status knee_attach(struct knee_ask *ask, const char *name, const char *data, size_t length,
                        struct knee_err *err)
{
    struct named *row = take(ask, &ask->attached, name);
    if (!row)
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory");
    row->data = data;
    row->length = length;
    return KNEE_OK;
}

struct knee_text *knee_ask_pulled(struct knee_ask *ask, const char *name)
{
    struct named *row = take(ask, &ask->pulled, name);
    if (!row)
        return NULL;
    knee_text_release(&row->text);
    return &row->text;
}

const char *knee_ask_pulled_name(const struct knee_ask *ask, size_t row)
{
    return row < ask->pulled.count ? ask->pulled.rows[row].name : NULL;
}

const struct knee_text *knee_pull(const struct knee_ask *ask, const char *name)
{
    const struct named *row = find(&ask->pulled, name);
    return row ? &row->text : NULL;
}

bool knee_ask_has(const struct knee_ask *ask, const char *name)
{
    return find(&ask->attached, name) ||
           (ask->files.exists && ask->files.exists(ask->files.ctx, name));
}

static knee_status not_attached(const char *name, struct knee_err *err)
{
    return knee_fail_hint(err, KNEE_INPUT, name, "attach its bytes before the question",
                          "nothing is attached under this name");
}

knee_status knee_ask_read(struct knee_ask *ask, const char *name, size_t cap,
                          struct knee_ask_bytes *out, struct knee_err *err)
{
    const struct named *row = find(&ask->attached, name);
    struct knee_ask_bytes bytes = {.data = ""};
    if (row && row->length > cap)
        return knee_fail(err, KNEE_INPUT, name, "larger than %zu bytes", cap);
    if (row && row->length) {
        bytes.data = row->data;
        bytes.length = row->length;
    }
    if (!row && !ask->files.read)
        return not_attached(name, err);
    if (!row) {
        knee_status status =
            ask->files.read(ask->files.ctx, name, cap, &bytes.owned, &bytes.length, err);
        if (status)
            return status;
        bytes.data = bytes.owned ? bytes.owned : "";
    }
    *out = bytes;
    return KNEE_OK;
}

void knee_ask_done(struct knee_ask_bytes *bytes)
{
    free(bytes->owned);
    *bytes = (struct knee_ask_bytes){0};
}

static ptrdiff_t read_attached(void *ctx, void *buffer, size_t size)
{
    struct knee_ask_stream *stream = ctx;
    size_t got = size < stream->length ? size : stream->length;
    if (got)
        memcpy(buffer, stream->data, got);
    stream->data += got;
    stream->length -= got;
    return (ptrdiff_t)got;
}

knee_status knee_ask_stream_open(struct knee_ask *ask, const char *name,
                                 struct knee_ask_stream *stream, struct knee_err *err)
{
    const struct named *row = find(&ask->attached, name);
    *stream = (struct knee_ask_stream){.reader = {read_attached, stream}, .data = ""};
    if (!row && !ask->files.open)
        return not_attached(name, err);
    if (!row)
        return ask->files.open(ask->files.ctx, name, stream, err);
    if (row->length) {
        stream->data = row->data;
        stream->length = row->length;
    }
    return KNEE_OK;
}

void knee_ask_stream_close(struct knee_ask_stream *stream)
{
    if (stream->close)
        stream->close(stream->ctx);
    *stream = (struct knee_ask_stream){.data = ""};
}

const char *knee_ask_input_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : knee_base_name(path);
}

/* ---- What several commands read ---- */

knee_status knee_ask_read_cluster(struct knee_ask *ask, const char *word, struct knee_cluster *out,
                                  struct knee_err *err)
{
    struct knee_ask_bytes bytes = {.data = NULL};
    if (!knee_ask_has(ask, word))
        return knee_cluster_word(word, "--cluster", out, err);
    if (!ask->fitted && !(ask->fitted = knee_resize(ask->alloc, NULL, sizeof *ask->fitted)))
        return knee_fail(err, KNEE_SYSTEM, word, "out of memory");
    knee_status status = knee_ask_read(ask, word, LARGEST_CLUSTER, &bytes, err);
    if (status)
        return status;
    status = knee_cluster_read(bytes.data, bytes.length, knee_ask_input_name(word), out,
                               ask->fitted, err);
    knee_ask_done(&bytes);
    return status;
}

knee_status knee_ask_read_rates(struct knee_ask *ask, const char *name, struct knee_rates *rates,
                                struct knee_err *err)
{
    struct knee_ask_bytes bytes = {.data = NULL};
    memset(rates, 0, sizeof *rates);
    knee_keys_clear(&knee_rates_keys, rates);
    if (!name)
        return KNEE_OK;
    knee_status status = knee_ask_read(ask, name, LARGEST_RATES, &bytes, err);
    if (status)
        return status;
    status = knee_yaml_read((struct knee_named_text){bytes.data, bytes.length, name},
                            &knee_rates_keys, rates, sizeof *rates, err);
    knee_ask_done(&bytes);
    return status;
}
