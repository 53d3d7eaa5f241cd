/* SPDX-License-Identifier: MIT */
/* Finishing a trace: spans are sorted, doubles dropped, launches and collectives joined to them by
 * correlation, and steps numbered. */
#include "timeline/builder_parts.h"

#include "base/error.h"
#include "base/order.h"
#include "base/sort.h"
#include "timeline/account.h"

#include <stdlib.h>
#include <string.h>

/* ---- Finishing: sort, drop doubles, join, number ---- */

KNEE_BY(by_comm_op, struct knee_raw_comm_op, start_ns)
KNEE_BY(by_product, struct knee_product, start_ns)
KNEE_BY(by_device, struct knee_raw_device, key)

/* The order of `count` rows by a key of theirs: keys to free, or NULL without memory. */
static struct knee_sort_key *order_of(struct knee_builder *b, const void *rows, size_t count,
                                      size_t size, uint64_t (*key)(const void *row))
{
    struct knee_sort_key *keys = knee_resize(b->alloc, NULL, 2 * (count + 1) * sizeof *keys);
    if (!keys) {
        b->failed = true;
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        keys[i] = (struct knee_sort_key){key((const char *)rows + i * size), i};
    knee_sort(keys, keys + count, count);
    return keys;
}

static uint64_t span_key(const void *row)
{
    return knee_sort_signed(((const struct knee_raw_span *)row)->span.start_ns);
}

static uint64_t launch_key(const void *row)
{
    return ((const struct knee_raw_launch *)row)->correlation;
}

/* The same work written twice: merged files. Work without a correlation may well repeat. */
static bool same_work(const struct knee_raw_span *a, const struct knee_raw_span *b)
{
    return a->correlation != KNEE_NO_CORRELATION && a->correlation == b->correlation &&
           a->span.start_ns == b->span.start_ns && a->span.end_ns == b->span.end_ns &&
           a->span.stream == b->span.stream && a->span.name == b->span.name;
}

/* Does an earlier row of the same start describe the same work? `order` is sorted by start. */
static bool is_double(const struct knee_raw_span *raw, const struct knee_sort_key *order, size_t i)
{
    for (size_t j = i; j-- > 0 && order[j].key == order[i].key && i - j < 64;)
        if (same_work(&raw[order[j].row], &raw[order[i].row]))
            return true;
    return false;
}

/* Launches by correlation. Kernels run nearly in the order of their launches, so the next look-up
 * mostly ends one row after the last. */
struct launch_index {
    const struct knee_raw_launch *launches;
    struct knee_sort_key *order;
    size_t count, last;
};

static const struct knee_raw_launch *find_launch(struct launch_index *index, uint64_t correlation)
{
    const struct knee_sort_key *order = index->order;
    size_t low = 0, high = index->count;
    for (size_t near = index->last; near < index->count && near < index->last + 4; near++)
        if (order[near].key == correlation) {
            index->last = near;
            return &index->launches[order[near].row];
        }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (order[middle].key < correlation)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == index->count || order[low].key != correlation)
        return NULL;
    index->last = low;
    return &index->launches[order[low].row];
}

/* What spans are joined with: launches, and the steps of the device. */
struct joiner {
    struct launch_index launches;
    int64_t device;
    struct knee_marks steps;
    const struct knee_mark *first_step; /* of the whole file: row 0 */
};

/* The step whose host time contains `ns`, or -1. */
static int32_t find_step(const struct joiner *joiner, int64_t ns)
{
    size_t row = knee_marks_before(joiner->steps, ns);
    if (row == 0 || ns >= joiner->steps.list[row - 1].end_ns)
        return -1;
    return (int32_t)(&joiner->steps.list[row - 1] - joiner->first_step);
}

/* The innermost described operation around a launch, on the same thread. */
static const struct knee_raw_comm_op *find_comm_op(const struct knee_builder *b,
                                                   const struct knee_raw_launch *launch)
{
    const struct knee_raw_comm_op *ops = b->comm_ops.data;
    size_t low;
    KNEE_BISECT(low, b->comm_ops.count, ops[low].start_ns <= launch->start_ns);
    for (size_t back = 0; back < 16 && low > 0; back++) {
        const struct knee_raw_comm_op *op = &ops[--low];
        if (op->thread == launch->thread && launch->start_ns < op->end_ns)
            return op;
    }
    return NULL;
}

/* Gives a kernel to the product that launched it: the last one begun on that thread, if it had not
 * ended. */
static void add_to_product(struct knee_builder *b, const struct knee_raw_launch *launch,
                           int64_t device, const struct knee_span *span)
{
    struct knee_product *products = b->products.data;
    size_t low;
    KNEE_BISECT(low, b->products.count, products[low].start_ns <= launch->start_ns);
    for (size_t back = 0; back < 8 && low > 0; back++) {
        struct knee_product *product = &products[--low];
        if (product->thread != launch->thread || launch->start_ns >= product->end_ns)
            continue;
        int64_t ns = span->end_ns - span->start_ns;
        if (product->kernel_ns == 0)
            product->first_ns = span->start_ns;
        product->kernel_ns = knee_add_ns(product->kernel_ns, ns);
        product->device = device;
        if (ns >= product->longest_ns) {
            product->longest_ns = ns;
            product->kernel = span->name + 1;
            product->launch = span->launch;
        }
        return;
    }
}

/* The buffer as nccl-tests counts it: the larger side. */
static int64_t call_bytes(enum knee_op op, const struct knee_call_facts *facts, const char *dtype)
{
    int size = facts->dtype_bytes ? facts->dtype_bytes : knee_dtype_bytes(dtype, strlen(dtype));
    int64_t elements = facts->in_elements;
    if (op == KNEE_OP_ALL_GATHER || facts->out_elements > elements)
        elements = facts->out_elements;
    if (facts->bytes >= 0)
        return facts->bytes;
    return size > 0 && elements >= 0 && elements <= INT64_MAX / 16 ? elements * size : -1;
}

static bool add_call(struct knee_builder *b, struct knee_list *calls, struct knee_raw_span *raw,
                     size_t span, const struct knee_raw_launch *launch)
{
    static const struct knee_call_facts unknown = KNEE_CALL_UNKNOWN;
    const struct knee_raw_comm_op *op = launch ? find_comm_op(b, launch) : NULL;
    const struct knee_call_facts *facts = raw->facts ? raw->facts : op ? &op->facts : &unknown;
    const struct knee_kernel_facts *kernel = knee_builder_facts(b, raw->span.name);
    struct knee_call *call = knee_builder_grow(b, calls, sizeof *call);
    if (!call)
        return false;
    /* A SendRecv kernel may carry an all-to-all: what was asked for says more than the kernel. */
    enum knee_op what = facts->op != KNEE_OP_UNKNOWN ? facts->op : kernel->op;
    *call = (struct knee_call){
        .span = (uint32_t)span,
        .op = what,
        .algorithm = kernel->algorithm,
        .protocol = kernel->protocol,
        .dtype = kernel->dtype,
        .bytes = call_bytes(what, facts, kernel->dtype),
        .group_size = facts->group_size > INT32_MAX ? -1 : (int32_t)facts->group_size,
        .element_bytes = facts->dtype_bytes
                             ? facts->dtype_bytes
                             : knee_dtype_bytes(kernel->dtype, strlen(kernel->dtype)),
        .group = facts->group,
        .description = facts->description,
        .members = facts->members,
        .sequence = facts->sequence,
        .peer = facts->peer >= 0 && facts->peer <= INT32_MAX ? (int32_t)facts->peer : -1,
        .sends = facts->sends,
    };
    raw->span.call = (uint32_t)calls->count;
    return true;
}

/* Joins one span with its launch, its step and its call. */
static bool join(struct knee_builder *b, struct knee_raw_span *raw, size_t row,
                 struct joiner *joiner, struct knee_list *calls, struct knee_span *out)
{
    const struct knee_raw_launch *launch = raw->correlation == KNEE_NO_CORRELATION
                                               ? NULL
                                               : find_launch(&joiner->launches, raw->correlation);
    if (launch) {
        raw->span.launch_ns = launch->end_ns;
        raw->span.launch = launch->host;
    }
    raw->span.step = find_step(joiner, launch ? launch->start_ns : raw->span.start_ns);
    bool comm = raw->span.kind == KNEE_SPAN_COMM || raw->span.kind == KNEE_SPAN_FUSED;
    if (comm && !add_call(b, calls, raw, row, launch))
        return false;
    if (launch && b->products.count && raw->span.kind == KNEE_SPAN_COMPUTE)
        add_to_product(b, launch, joiner->device, &raw->span);
    *out = raw->span;
    return true;
}

/* Where launches are recorded, work without one was launched before the recording began, or by
 * something that is not recorded: it belongs to the step of the work before it, not to the step in
 * which the GPU came to it. */
static void settle_unlaunched(struct knee_rank *rank)
{
    int32_t step = -1;
    if (rank->launched * 2 < rank->span_count)
        return;
    for (size_t i = 0; i < rank->span_count; i++) {
        if (rank->spans[i].launch_ns == KNEE_NO_TIME)
            rank->spans[i].step = step;
        else
            step = rank->spans[i].step;
    }
}

/* Totals of a rank that stay known without its spans. */
static void sum_up(struct knee_rank *rank)
{
    rank->work = rank->span_count;
    rank->start_ns = rank->end_ns = rank->span_count ? rank->spans[0].start_ns : 0;
    for (size_t i = 0; i < rank->span_count; i++) {
        const struct knee_span *span = &rank->spans[i];
        rank->end_ns = span->end_ns > rank->end_ns ? span->end_ns : rank->end_ns;
        rank->launched += span->launch_ns != KNEE_NO_TIME;
    }
}

static bool finish_device(struct knee_builder *b, struct knee_raw_device *device,
                          struct joiner *joiner, struct knee_rank *rank, struct knee_loss *doubles)
{
    struct knee_raw_span *raw = device->spans.data;
    struct knee_list calls = {0};
    size_t count = device->spans.count, kept = 0;
    struct knee_sort_key *order = order_of(b, raw, count, sizeof *raw, span_key);
    struct knee_span *spans = knee_resize(b->alloc, NULL, (count + 1) * sizeof *spans);
    b->failed = b->failed || !spans;
    for (size_t i = 0; i < count && !b->failed; i++) {
        if (is_double(raw, order, i))
            doubles->count++;
        else if (join(b, &raw[order[i].row], kept, joiner, &calls, &spans[kept]))
            kept++;
    }
    knee_resize(b->alloc, order, 0);
    rank->device = device->key;
    rank->spans = spans;
    rank->span_count = kept;
    sum_up(rank);
    settle_unlaunched(rank);
    rank->call_count = calls.count;
    rank->calls = knee_list_take(&calls, sizeof *rank->calls, b->alloc);
    knee_builder_drop_device(b, device);
    return !b->failed;
}

static bool finish_names(struct knee_builder *b, struct knee_trace *out)
{
    const struct knee_text_row *names = b->names.data;
    size_t count = b->names.count;
    if (count == 0)
        return true;
    /* One block: the pointers, then the text. */
    char **pointers = knee_resize(b->alloc, NULL, count * sizeof *pointers + b->text.count);
    if (!pointers)
        return false;
    char *text = (char *)(pointers + count);
    memcpy(text, b->text.data, b->text.count);
    for (size_t i = 0; i < count; i++)
        pointers[i] = text + names[i].offset;
    out->names = pointers;
    out->name_count = count;
    return true;
}

KNEE_BY(by_launch, struct knee_copy_size, launch)

/* The sizes of copies, by the calls that handed them over. */
static bool finish_copies(struct knee_builder *b, struct launch_index *index,
                          struct knee_trace *out)
{
    const struct knee_raw_copy *copies = b->copies.data;
    size_t count = b->copies.count;
    if (count == 0)
        return true;
    out->copies = knee_resize(b->alloc, NULL, count * sizeof *out->copies);
    for (size_t i = 0; out->copies && i < count; i++) {
        const struct knee_raw_launch *launch = find_launch(index, copies[i].correlation);
        if (launch && launch->host)
            out->copies[out->copy_count++] = (struct knee_copy_size){launch->host, copies[i].bytes};
    }
    if (out->copies)
        qsort(out->copies, out->copy_count, sizeof *out->copies, by_launch);
    return out->copies != NULL;
}

KNEE_BY(by_grid, struct knee_grid, launch)

static bool finish_grids(struct knee_builder *b, struct launch_index *index, struct knee_trace *out)
{
    const struct knee_raw_copy *grids = b->grids.data;
    size_t count = b->grids.count;
    if (count == 0)
        return true;
    out->grids = knee_resize(b->alloc, NULL, count * sizeof *out->grids);
    for (size_t i = 0; out->grids && i < count; i++) {
        const struct knee_raw_launch *launch = find_launch(index, grids[i].correlation);
        if (launch && launch->host)
            out->grids[out->grid_count++] = (struct knee_grid){launch->host, grids[i].bytes};
    }
    if (out->grids)
        qsort(out->grids, out->grid_count, sizeof *out->grids, by_grid);
    return out->grids != NULL;
}

static bool finish_ranks(struct knee_builder *b, struct knee_trace *out)
{
    struct knee_raw_device *devices = b->devices.data;
    size_t count = b->devices.count;
    if (count == 0 || b->failed)
        return !b->failed;
    out->ranks = knee_resize(b->alloc, NULL, count * sizeof *out->ranks);
    if (!out->ranks)
        return false;
    memset(out->ranks, 0, count * sizeof *out->ranks);
    out->rank_count = count;
    struct joiner joiner = {.launches = {.launches = b->launches.data, .count = b->launches.count},
                            .first_step = out->steps};
    struct launch_index *index = &joiner.launches;
    index->order = order_of(b, b->launches.data, index->count, sizeof *index->launches, launch_key);
    bool good = index->order != NULL && finish_copies(b, index, out) && finish_grids(b, index, out);
    for (size_t i = 0; i < count && good; i++) {
        joiner.steps = knee_marks_of(out->steps, out->step_count, devices[i].key);
        joiner.device = devices[i].key;
        good = finish_device(b, &devices[i], &joiner, &out->ranks[i],
                             &out->losses[KNEE_REPAIR_DUPLICATE]);
    }
    knee_resize(b->alloc, index->order, 0);
    for (size_t i = 0; i < count && good; i++) /* only damage puts a time beyond all clocks */
        if (out->ranks[i].end_ns > 0 && out->base_ns > KNEE_LAST_NS - out->ranks[i].end_ns)
            out->base_ns = 0;
    return good;
}

static uint64_t host_key(const void *row)
{
    return knee_sort_signed(((const struct knee_host_event *)row)->start_ns);
}

/* The host's events by start, and the launches' rows with them. */
static bool sort_host(struct knee_builder *b)
{
    size_t count = b->host.count;
    struct knee_host_event *events = b->host.data;
    struct knee_raw_launch *launches = b->launches.data;
    if (count == 0)
        return true;
    struct knee_sort_key *order = order_of(b, events, count, sizeof *events, host_key);
    struct knee_host_event *sorted = knee_resize(b->alloc, NULL, count * sizeof *sorted);
    uint32_t *place = knee_resize(b->alloc, NULL, count * sizeof *place);
    bool good = order && sorted && place;
    for (size_t i = 0; good && i < count; i++) {
        sorted[i] = events[order[i].row];
        place[order[i].row] = (uint32_t)i;
    }
    for (size_t i = 0; good && i < b->launches.count; i++)
        if (launches[i].host)
            launches[i].host = place[launches[i].host - 1] + 1;
    knee_resize(b->alloc, order, 0);
    knee_resize(b->alloc, place, 0);
    if (good)
        memcpy(events, sorted, count * sizeof *sorted);
    knee_resize(b->alloc, sorted, 0);
    return good;
}

KNEE_BY_TWO(by_host_start, struct knee_host_event, start_ns, end_ns)

/* qsort() must not be given a null pointer, even for nothing. */
static void sort_list(struct knee_list *list, size_t size,
                      int (*compare)(const void *, const void *))
{
    if (list->count > 1)
        qsort(list->data, list->count, size, compare);
}

/* Settles raw marks and hands them over as marks. */
static bool finish_marks(struct knee_builder *b, struct knee_list *list, const int64_t *devices,
                         enum knee_step_source *source, struct knee_mark **out, size_t *count)
{
    struct knee_raw_mark *raw = list->data;
    size_t kept =
        knee_marks_settle(raw, list->count, devices, devices ? b->devices.count : 0, source);
    if (kept) {
        *out = knee_resize(b->alloc, NULL, kept * sizeof **out);
        if (!*out)
            return false;
        for (size_t i = 0; i < kept; i++)
            (*out)[i] = raw[i].mark;
    }
    *count = kept;
    knee_list_release(list, b->alloc);
    return true;
}

KNEE_BY(by_mark, struct knee_mark, start_ns)

/* Optimizer steps are kept beside the steps, whoever marks those. */
static bool keep_optimizers(struct knee_builder *b, struct knee_trace *out)
{
    const struct knee_raw_mark *raw = b->steps.data;
    size_t count = 0;
    for (size_t i = 0; i < b->steps.count; i++)
        count += raw[i].source == KNEE_STEPS_OPTIMIZER;
    out->optimizers = count ? knee_resize(b->alloc, NULL, count * sizeof *out->optimizers) : NULL;
    if (count && !out->optimizers)
        return false;
    for (size_t i = 0; i < b->steps.count; i++)
        if (raw[i].source == KNEE_STEPS_OPTIMIZER)
            out->optimizers[out->optimizer_count++] = raw[i].mark;
    if (count)
        qsort(out->optimizers, count, sizeof *out->optimizers, by_mark);
    return true;
}

static bool finish_all_marks(struct knee_builder *b, struct knee_trace *out)
{
    const struct knee_raw_device *devices = b->devices.data;
    int64_t *keys = knee_resize(b->alloc, NULL, (b->devices.count + 1) * sizeof *keys);
    for (size_t i = 0; i < b->devices.count && keys; i++)
        keys[i] = devices[i].key;
    bool good =
        keys && keep_optimizers(b, out) &&
        finish_marks(b, &b->steps, keys, &out->step_source, &out->steps, &out->step_count) &&
        finish_marks(b, &b->loads, keys, NULL, &out->loads, &out->load_count);
    knee_resize(b->alloc, keys, 0);
    out->first_step = out->last_step = -1;
    for (size_t i = 0; good && out->step_source == KNEE_STEPS_PROFILER && i < out->step_count;
         i++) {
        int64_t number = out->steps[i].number;
        out->first_step = i == 0 || number < out->first_step ? number : out->first_step;
        out->last_step = number > out->last_step ? number : out->last_step;
    }
    return good;
}

knee_status knee_builder_finish(struct knee_builder *b, struct knee_trace *out,
                                struct knee_err *err)
{
    sort_list(&b->comm_ops, sizeof(struct knee_raw_comm_op), by_comm_op);
    sort_list(&b->products, sizeof(struct knee_product), by_product);
    sort_list(&b->devices, sizeof(struct knee_raw_device), by_device);
    sort_list(&b->long_calls, sizeof(struct knee_host_event), by_host_start);
    if (!sort_host(b) || !finish_all_marks(b, out) || !finish_ranks(b, out) ||
        !finish_names(b, out))
        return knee_fail(err, KNEE_SYSTEM, out->file, "out of memory");
    out->losses[KNEE_LOSS_TIME].count += b->bad_times;
    out->losses[KNEE_LOSS_DEVICE].count += b->lost_devices;
    memcpy(out->copied, b->copied, sizeof out->copied);
    out->long_launch_start_ns = b->long_launch_start_ns;
    out->long_launch_end_ns = b->long_launch_end_ns;
    out->captures = b->captures;
    out->backward = b->backward;
    out->launch_calls = b->launches.count;
    out->long_call_count = b->long_calls.count;
    out->long_calls = knee_list_take(&b->long_calls, sizeof(struct knee_host_event), b->alloc);
    out->operations = b->operations;
    out->product_count = b->products.count;
    out->products = knee_list_take(&b->products, sizeof(struct knee_product), b->alloc);
    out->host_event_count = b->host.count;
    out->host_events = knee_list_take(&b->host, sizeof(struct knee_host_event), b->alloc);
    return KNEE_OK;
}
