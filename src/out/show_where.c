/* SPDX-License-Identifier: MIT */
/* Where in a step time goes, as text and JSON. */
#include "out/show_where.h"

#include "out/table.h"

#include <math.h>
#include <string.h>

#define MS(value)   knee_human(value, KNEE_UNIT_SECONDS).s
#define RATE(value) knee_human(value, KNEE_UNIT_FLOPS).s

/* ---- Products against the roofline ---- */

void knee_json_roofline(struct knee_json *json, const struct knee_roofline *r)
{
    if (!(r->product_s > 0))
        return;
    bool judged = r->judged_s > 0;
    knee_json_open_flat(json, "products", '{');
    knee_json_number(json, "kernels_s", r->product_s);
    knee_json_number(json, "flops", r->flops);
    knee_json_number(json, "flops_per_s", r->flops / r->product_s);
    knee_json_number(json, "judged_s", r->judged_s);
    knee_json_number(json, "judged_flops_per_s", judged ? r->judged_flops / r->judged_s : NAN);
    knee_json_number(json, "peak_flops_per_s", judged ? r->peak_flops : NAN);
    knee_json_number(json, "flops_per_byte", judged ? r->judged_flops / r->judged_bytes : NAN);
    knee_json_number(json, "shapes_reach_s", judged ? r->reach_s : NAN);
    knee_json_number(json, "large_batch_s", judged ? r->large_s : NAN);
    knee_json_number(json, "batch_rows", r->rows);
    knee_json_number(json, "batch_factor", r->mend);
    knee_json_number(json, "batch_factor_step_s", r->mended_s);
    knee_json_number(json, "optimizer_s", r->optimizer_s);
    knee_json_close(json, '}');
}

void knee_say_roofline(const struct knee_account *account, const struct knee_diagnosis *d,
                       struct knee_text *text)
{
    const struct knee_roofline *r = &d->roofline;
    double compute_s = d->step.label_s[KNEE_COMPUTE];
    (void)account;
    if (!(r->product_s > 0)) {
        knee_text_puts(text, "FLOP/s of products are not known: no shapes are recorded "
                             "(record_shapes=True).");
        return;
    }
    knee_text_printf(text, "Products and attention take %s (%s of compute) at %s", MS(r->product_s),
                     knee_percent(r->product_s / compute_s).s, RATE(r->flops / r->product_s));
    if (!(r->judged_s > 0)) {
        knee_text_puts(text, "; the peak for their type on this GPU is not known.");
        return;
    }
    knee_text_printf(text, ": %s of the peak (%s), where their shapes can reach %s",
                     knee_percent(r->judged_flops / r->judged_s / r->peak_flops).s,
                     RATE(r->peak_flops),
                     knee_percent(r->judged_flops / r->reach_s / r->peak_flops).s);
    if (!isnan(r->large_s))
        knee_text_printf(text, " and large ones %s",
                         knee_percent(r->judged_flops / r->large_s / r->peak_flops).s);
    knee_text_printf(text, "; %.0f FLOPs a byte.", r->judged_flops / r->judged_bytes);
}

/* ---- Tables of --where ---- */

#define HEADERS(table, ...)                                                                        \
    do {                                                                                           \
        static const char *const words[] = {__VA_ARGS__};                                          \
        KNEE_HEADS(table, words);                                                                  \
    } while (0)

static const char *const act_names[KNEE_ACTS] = {
    [KNEE_ACT_PYTHON] = "Python",        [KNEE_ACT_OPERATIONS] = "operations",
    [KNEE_ACT_LAUNCH] = "launching",     [KNEE_ACT_ITEM] = ".item()",
    [KNEE_ACT_SYNC] = "synchronize",     [KNEE_ACT_ALLOC] = "cudaMalloc/Free",
    [KNEE_ACT_COPY] = "blocking copy",   [KNEE_ACT_LOADER] = "data loader",
    [KNEE_ACT_GC] = "garbage collector", [KNEE_ACT_COLLECTIVE] = "collective's call",
};

struct page {
    const struct knee_account *account;
    const struct knee_diagnosis *d;
    const struct knee_where *where;
    enum knee_format format;
    const struct knee_style *style;
    struct knee_text *text;
};

static void heading(const struct page *page, const char *words)
{
    if (page->format == KNEE_MARKDOWN)
        knee_text_printf(page->text, "\n## %s\n\n", words);
    else
        knee_text_printf(page->text, page->style->color ? "\n\033[1m%s\033[0m\n" : "\n%s\n", words);
}

static void finish_table(const struct page *page, struct knee_table *table, size_t shown,
                         size_t count)
{
    knee_table_write(table, page->format, page->style, page->text);
    knee_table_release(table);
    if (count > shown && page->format == KNEE_TEXT)
        knee_text_printf(page->text, "  and %zu more (--json lists them all)\n", count - shown);
}

static void seconds_cell(struct knee_table *table, double seconds)
{
    knee_table_number(table, seconds, KNEE_UNIT_SECONDS);
}

/* Those with the most exposed time, in the order of the step. */
static bool is_among_most(const struct knee_where *w, size_t row, size_t most)
{
    double own = w->buckets[row].transfer_s + w->buckets[row].wait_s;
    size_t before = 0;
    for (size_t i = 0; i < w->bucket_count; i++) {
        double other = w->buckets[i].transfer_s + w->buckets[i].wait_s;
        before += other > own || (other == own && i < row);
    }
    return before < most;
}

static void buckets_table(const struct page *page)
{
    enum { MOST = 12 };
    const struct knee_where *w = page->where;
    struct knee_table table;
    size_t shown = 0;
    if (w->bucket_count == 0)
        return;
    heading(page, "Each collective of a step, in order");
    knee_table_init(&table, "rlrrrrrr", page->text->alloc);
    HEADERS(&table, "#", "collective", "size", "starts at", "hidden", "exposed", "transfer",
            "wait");
    for (size_t i = 0; i < w->bucket_count; i++) {
        const struct knee_bucket *b = &w->buckets[i];
        if (w->bucket_count > MOST && !is_among_most(w, i, MOST))
            continue;
        shown++;
        knee_table_cell(&table, "%zu", b->order + 1);
        knee_table_cell(&table, "%s", knee_op_name(b->op));
        knee_table_number(&table, b->bytes >= 0 ? (double)b->bytes : NAN, KNEE_UNIT_BYTES);
        seconds_cell(&table, b->start_s);
        seconds_cell(&table, b->hidden_s);
        seconds_cell(&table, b->transfer_s + b->wait_s);
        seconds_cell(&table, page->d->split ? b->transfer_s : NAN);
        seconds_cell(&table, page->d->split ? b->wait_s : NAN);
    }
    finish_table(page, &table, shown, w->bucket_count);
}

static void label_cells(struct knee_table *table, const double *label_s)
{
    seconds_cell(table, label_s[KNEE_COMPUTE]);
    seconds_cell(table, label_s[KNEE_TRANSFER] + label_s[KNEE_WAIT]);
    seconds_cell(table, label_s[KNEE_COPY]);
    seconds_cell(table, label_s[KNEE_STARVED]);
    seconds_cell(table, label_s[KNEE_HOST]);
    seconds_cell(table, label_s[KNEE_IDLE]);
}

static void places_table(const struct page *page, int kind, const char *title, size_t most)
{
    const struct knee_place *places = page->where->places[kind];
    size_t count = page->where->place_count[kind];
    struct knee_table table;
    if (count == 0 || (count == 1 && kind != KNEE_PLACE_PASS))
        return;
    heading(page, title);
    knee_table_init(&table, "lrrrrrrr", page->text->alloc);
    HEADERS(&table, "of a step", "in all", "compute", "exposed", "copy", "starved", "host-bound",
            "idle");
    for (size_t i = 0; i < count && i < most; i++) {
        const char *name = places[i].name;
        name += strncmp(name, "nn.Module: ", 11) == 0 ? 11 : 0;
        knee_table_cell(&table, "%s", knee_safe(name, 44).s);
        seconds_cell(&table, places[i].total_s);
        label_cells(&table, places[i].label_s);
    }
    finish_table(page, &table, most, count);
}

static double path_of(const struct knee_where *w, size_t rank)
{
    double sum = 0;
    for (int label = 0; label < KNEE_LABELS; label++)
        sum += w->path_s[rank * KNEE_LABELS + (size_t)label];
    return sum;
}

static void path_table(const struct page *page)
{
    enum { MOST = 8 };
    const struct knee_where *w = page->where;
    struct knee_table table;
    size_t shown = 0, count = 0;
    if (w->rank_count < 2 || !(w->path_step_s > 0))
        return;
    heading(page, "Critical path: the chain over ranks that makes the step");
    knee_table_init(&table, "rrrrrrrrrr", page->text->alloc);
    HEADERS(&table, "rank", "share", "in all", "compute", "transfer", "wait", "copy", "starved",
            "host-bound", "idle");
    for (size_t r = 0; r < w->rank_count; r++) {
        const double *label_s = &w->path_s[r * KNEE_LABELS];
        size_t longer = 0;
        for (size_t i = 0; i < w->rank_count; i++)
            longer += path_of(w, i) > path_of(w, r);
        count += path_of(w, r) > 0;
        if (longer >= MOST || !(path_of(w, r) > 0))
            continue;
        shown++;
        knee_table_cell(&table, "%lld", (long long)page->account->ranks[r].rank);
        knee_table_cell(&table, "%s", knee_percent(path_of(w, r) / w->path_step_s).s);
        seconds_cell(&table, path_of(w, r));
        for (int label = 0; label < KNEE_LABELS; label++)
            seconds_cell(&table, label_s[label]);
    }
    finish_table(page, &table, shown, count);
}

static void kernels_table(const struct page *page)
{
    enum { MOST = 12 };
    const struct knee_where *w = page->where;
    struct knee_table table;
    size_t shown = 0, count = 0;
    heading(page, "Kernels");
    bool pairs = false;
    for (size_t i = 0; i < w->kernel_count; i++)
        pairs = pairs || w->kernels[i].places;
    knee_table_init(&table, pairs ? "lrrrrrrrr" : "lrrrrr", page->text->alloc);
    HEADERS(&table, "kernel", "blocks", "calls", "time", "of compute", "rate");
    if (pairs)
        HEADERS(&table, "alone", "beside comm.", "slower");
    for (size_t i = 0; i < w->kernel_count; i++) {
        const struct knee_kernel_use *k = &w->kernels[i];
        if (k->kind == KNEE_SPAN_COPY || ++count > MOST)
            continue;
        shown++;
        knee_table_cell(&table, "%s", knee_safe(k->name, 52).s);
        if (k->blocks >= 0)
            knee_table_cell(&table, "%lld", (long long)k->blocks);
        else
            knee_table_cell(&table, "-");
        knee_table_cell(&table, "%.3g", k->calls);
        seconds_cell(&table, k->total_s);
        knee_table_cell(&table, "%s",
                        knee_percent(k->exposed_s / page->d->step.label_s[KNEE_COMPUTE]).s);
        knee_table_number(&table, k->flops_s > 0 ? k->flops / k->flops_s : NAN, KNEE_UNIT_FLOPS);
        if (!pairs)
            continue;
        seconds_cell(&table, k->alone_s);
        seconds_cell(&table, k->beside_s);
        knee_table_cell(&table, "%s",
                        isnan(k->beside_s / k->alone_s)
                            ? ""
                            : knee_signed_percent(k->beside_s / k->alone_s - 1).s);
    }
    finish_table(page, &table, shown, count);
}

static void copies_table(const struct page *page)
{
    enum { MOST = 8 };
    const struct knee_where *w = page->where;
    struct knee_table table;
    size_t shown = 0, count = 0;
    for (size_t i = 0; i < w->kernel_count; i++)
        count += w->kernels[i].kind == KNEE_SPAN_COPY;
    if (count == 0)
        return;
    heading(page, "Copies");
    knee_table_init(&table, "lrrrrr", page->text->alloc);
    HEADERS(&table, "copy", "calls", "bytes", "time", "rate", "exposed");
    for (size_t i = 0; i < w->kernel_count && shown < MOST; i++) {
        const struct knee_kernel_use *k = &w->kernels[i];
        if (k->kind != KNEE_SPAN_COPY)
            continue;
        shown++;
        knee_table_cell(&table, "%s", knee_safe(k->name, 44).s);
        knee_table_cell(&table, "%.3g", k->calls);
        knee_table_number(&table, k->bytes, KNEE_UNIT_BYTES);
        seconds_cell(&table, k->total_s);
        knee_table_number(&table, k->bytes / k->total_s, KNEE_UNIT_BYTES_PER_S);
        seconds_cell(&table, k->exposed_s);
    }
    finish_table(page, &table, shown, count);
}

/* Launches are said to be worth a graph when the GPU waits for them and its kernels are short. */
static void say_launches(const struct page *page)
{
    const struct knee_launches *l = &page->where->launches;
    struct knee_text line = {.alloc = page->text->alloc};
    knee_text_printf(&line,
                     "%.0f kernels a step in %.0f launches, which take %s of the host; %s of the "
                     "kernels are shorter than 10 us",
                     l->kernels, l->launches, MS(l->launch_s), knee_percent(l->short_share).s);
    if (l->graphs > 0)
        knee_text_printf(&line, "; %.3g launches are CUDA graphs", l->graphs);
    if (page->where->graphs_help)
        knee_text_puts(&line, ": a candidate for CUDA graphs or torch.compile");
    knee_text_puts(&line, ".");
    knee_say(&line, page->format, page->style, page->text);
}

/* What took the host's lead most, and what helps against it. */
static void say_gap_reason(const struct page *page)
{
    static const char *const cures[KNEE_ACTS] = {
        [KNEE_ACT_ITEM] = "keep the number on the GPU, or ask for it every so many steps",
        [KNEE_ACT_SYNC] = "take the synchronisation out, or do what follows it elsewhere",
        [KNEE_ACT_ALLOC] = "let the allocator keep its memory: no empty_cache() in the loop",
        [KNEE_ACT_COPY] = "pin the memory and copy with non_blocking=True",
        [KNEE_ACT_LOADER] = "give the loader more workers or faster storage",
        [KNEE_ACT_GC] = "collect garbage every so many steps (gc.disable(), gc.collect())",
    };
    const struct knee_where *w = page->where;
    struct knee_text line = {.alloc = page->text->alloc};
    int most = KNEE_ACT_ITEM;
    for (int act = KNEE_ACT_ITEM; act <= KNEE_ACT_GC; act++)
        most = w->gaps[act].total_s > w->gaps[most].total_s ? act : most;
    const struct knee_host_gap *gap = &w->gaps[most];
    if (3 * gap->total_s < w->gaps_s)
        return;
    knee_text_printf(&line, "%s of the %s that the GPU waits for its host begins with %s",
                     MS(gap->total_s), MS(w->gaps_s), act_names[most]);
    if (2 * gap->act_s[KNEE_ACT_PYTHON] > gap->total_s)
        knee_text_printf(&line, ", and is then spent in Python (%s)",
                         MS(gap->act_s[KNEE_ACT_PYTHON]));
    knee_text_printf(&line, ": %s.", cures[most]);
    knee_say(&line, page->format, page->style, page->text);
}

static void gaps_table(const struct page *page)
{
    const struct knee_where *w = page->where;
    struct knee_table table;
    size_t shown = 0;
    heading(page, "What the host does while the GPU waits for it");
    say_launches(page);
    if (!(w->gaps_s > 0))
        return;
    knee_table_init(&table, "lrrrrrrrrr", page->text->alloc);
    HEADERS(&table, "began with", "gaps", "time", "Python", "operations", "launching", ".item()",
            "sync", "malloc", "other");
    for (int i = 0; i < KNEE_ACTS; i++) {
        const struct knee_host_gap *gap = &w->gaps[i];
        const double *s = gap->act_s;
        if (!(gap->total_s > 0))
            continue;
        shown++;
        knee_table_cell(&table, "%s", act_names[i]);
        knee_table_cell(&table, "%.3g", gap->count);
        seconds_cell(&table, gap->total_s);
        for (int act = KNEE_ACT_PYTHON; act <= KNEE_ACT_ALLOC; act++)
            seconds_cell(&table, s[act]);
        seconds_cell(&table, s[KNEE_ACT_COPY] + s[KNEE_ACT_LOADER] + s[KNEE_ACT_GC] +
                                 s[KNEE_ACT_COLLECTIVE]);
    }
    finish_table(page, &table, shown, shown);
    say_gap_reason(page);
}

void knee_write_where(const struct knee_account *account, const struct knee_diagnosis *d,
                      const struct knee_where *where, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text)
{
    struct page page = {account, d, where, format, style, text};
    struct knee_text line = {.alloc = text->alloc};
    buckets_table(&page);
    path_table(&page);
    if (where->host) {
        places_table(&page, KNEE_PLACE_PASS, "Passes", KNEE_LABELS);
        places_table(&page, KNEE_PLACE_MODULE, "Modules", 12);
        places_table(&page, KNEE_PLACE_RANGE, "Annotations", 8);
        gaps_table(&page);
    }
    kernels_table(&page);
    knee_say_roofline(account, d, &line);
    if (where->half_empty_s > 0)
        knee_text_printf(&line,
                         " %s of compute is in kernels of so few blocks that half of the GPU "
                         "has none.",
                         knee_percent(where->half_empty_s / d->step.label_s[KNEE_COMPUTE]).s);
    knee_say(&line, format, style, text);
    copies_table(&page);
}

/* ---- JSON of --where ---- */

static void json_labels(struct knee_json *json, const double *label_s)
{
    static const char *const keys[KNEE_LABELS] = {
        "compute_s",       "transfer_s",   "wait_s", "exposed_copy_s",
        "starved_input_s", "host_bound_s", "idle_s"};
    for (int label = 0; label < KNEE_LABELS; label++)
        knee_json_number(json, keys[label], label_s[label]);
}

static void json_buckets(struct knee_json *json, const struct knee_where *w)
{
    knee_json_open(json, "collectives", '[');
    for (size_t i = 0; i < w->bucket_count; i++) {
        const struct knee_bucket *b = &w->buckets[i];
        knee_json_open_flat(json, NULL, '{');
        knee_json_whole(json, "order", (int64_t)b->order + 1);
        knee_json_string(json, "name", knee_op_name(b->op));
        knee_json_number(json, "bytes", b->bytes >= 0 ? (double)b->bytes : NAN);
        knee_json_string(json, "group", b->group);
        knee_json_whole(json, "calls", (int64_t)b->calls);
        knee_json_number(json, "start_s", b->start_s);
        knee_json_number(json, "hidden_s", b->hidden_s);
        knee_json_number(json, "exposed_transfer_s", b->transfer_s);
        knee_json_number(json, "exposed_wait_s", b->wait_s);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_kernels(struct knee_json *json, const struct knee_where *w, bool copies)
{
    knee_json_open(json, copies ? "copies" : "kernels", '[');
    for (size_t i = 0; i < w->kernel_count; i++) {
        const struct knee_kernel_use *k = &w->kernels[i];
        if ((k->kind == KNEE_SPAN_COPY) != copies)
            continue;
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "name", k->name);
        knee_json_number(json, "calls", k->calls);
        knee_json_number(json, "time_s", k->total_s);
        knee_json_number(json, copies ? "exposed_s" : "compute_s", k->exposed_s);
        if (copies) {
            knee_json_number(json, "bytes", k->bytes);
        } else {
            knee_json_number(json, "blocks", k->blocks >= 0 ? (double)k->blocks : NAN);
            knee_json_number(json, "flops_per_s", k->flops_s > 0 ? k->flops / k->flops_s : NAN);
            knee_json_number(json, "alone_s", k->alone_s);
            knee_json_number(json, "beside_communication_s", k->beside_s);
        }
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_places(struct knee_json *json, const struct knee_where *w, int kind,
                        const char *key)
{
    knee_json_open(json, key, '[');
    for (size_t i = 0; i < w->place_count[kind]; i++) {
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "name", w->places[kind][i].name);
        json_labels(json, w->places[kind][i].label_s);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_path(struct knee_json *json, const struct knee_account *account,
                      const struct knee_where *w)
{
    knee_json_number(json, "critical_path_s", w->path_step_s);
    knee_json_open(json, "critical_path", '[');
    for (size_t r = 0; r < w->rank_count; r++) {
        if (!(path_of(w, r) > 0))
            continue;
        knee_json_open_flat(json, NULL, '{');
        knee_json_whole(json, "rank", account->ranks[r].rank);
        json_labels(json, &w->path_s[r * KNEE_LABELS]);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_gaps(struct knee_json *json, const struct knee_where *w)
{
    knee_json_open(json, "host_gaps", '[');
    for (int i = 0; i < KNEE_ACTS; i++) {
        if (!(w->gaps[i].total_s > 0))
            continue;
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "began_with", act_names[i]);
        knee_json_number(json, "count", w->gaps[i].count);
        knee_json_number(json, "time_s", w->gaps[i].total_s);
        knee_json_open_flat(json, "doing", '{');
        for (int act = 0; act < KNEE_ACTS; act++)
            if (w->gaps[i].act_s[act] > 0)
                knee_json_number(json, act_names[act], w->gaps[i].act_s[act]);
        knee_json_close(json, '}');
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
    knee_json_open_flat(json, "launches", '{');
    knee_json_number(json, "kernels", w->launches.kernels);
    knee_json_number(json, "launches", w->launches.launches);
    knee_json_number(json, "graphs", w->launches.graphs);
    knee_json_number(json, "launch_s", w->launches.launch_s);
    knee_json_number(json, "short_share", w->launches.short_share);
    knee_json_close(json, '}');
}

void knee_json_where(struct knee_json *json, const struct knee_account *account,
                     const struct knee_where *w)
{
    knee_json_open(json, "where", '{');
    json_buckets(json, w);
    json_path(json, account, w);
    json_kernels(json, w, false);
    knee_json_number(json, "half_empty_s", w->half_empty_s);
    json_kernels(json, w, true);
    if (w->host) {
        json_places(json, w, KNEE_PLACE_PASS, "passes");
        json_places(json, w, KNEE_PLACE_MODULE, "modules");
        json_places(json, w, KNEE_PLACE_RANGE, "annotations");
        json_gaps(json, w);
    }
    knee_json_close(json, '}');
}
