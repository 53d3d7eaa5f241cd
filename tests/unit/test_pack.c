/* SPDX-License-Identifier: MIT */
/* A trace handed from one process to another is the same trace, or is refused. */
#include "timeline/pack.h"

#include "trace_help.h"

static const char *const text =
    "{\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8}, "
    "\"traceEvents\": ["
    "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#7\", \"pid\": 1, "
    "\"tid\": 1, \"ts\": 0, \"dur\": 900}," K("gemm", "10", "100") "," K(
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)", "100",
        "200") "," K("relu", "350", "20") "," K("ncclDevKernel_ReduceScatter_Sum_f32_RING_SIMPLE",
                                                "400", "50") ", {\"ph\": \"X\", broken]}";

struct packed {
    unsigned char *bytes;
    size_t size;
};

static struct packed pack(const struct knee_trace *trace)
{
    struct packed packed = {.size = knee_trace_packed_size(trace)};
    packed.bytes = malloc(packed.size); /* exactly: a byte too many is seen by ASan */
    knee_trace_pack(trace, packed.bytes);
    return packed;
}

static void assert_same_rank(const struct knee_rank *a, const struct knee_rank *b)
{
    assert_int_equal(a->rank, b->rank);
    assert_int_equal(a->span_count, b->span_count);
    assert_int_equal(a->call_count, b->call_count);
    assert_true(a->start_ns == b->start_ns && a->end_ns == b->end_ns);
    assert_true(a->work == b->work && a->launched == b->launched);
    for (size_t i = 0; i < a->span_count; i++) {
        const struct knee_span *x = &a->spans[i], *y = &b->spans[i];
        assert_true(x->start_ns == y->start_ns && x->end_ns == y->end_ns &&
                    x->launch_ns == y->launch_ns && x->name == y->name && x->call == y->call &&
                    x->stream == y->stream && x->step == y->step && x->kind == y->kind);
    }
    for (size_t i = 0; i < a->call_count; i++) {
        const struct knee_call *x = &a->calls[i], *y = &b->calls[i];
        assert_true(x->span == y->span && x->op == y->op && x->bytes == y->bytes &&
                    x->group_size == y->group_size && x->group == y->group &&
                    x->description == y->description && x->members == y->members &&
                    x->sequence == y->sequence);
        assert_string_equal(x->algorithm, y->algorithm);
        assert_string_equal(x->protocol, y->protocol);
        assert_string_equal(x->dtype, y->dtype);
    }
}

static void what_comes_back_is_the_same(void **state)
{
    (void)state;
    struct knee_trace trace = trace_of(text), back;
    struct knee_err err;
    struct packed packed = pack(&trace);
    assert_int_equal(knee_trace_unpack(packed.bytes, packed.size, NULL, &back, &err), KNEE_OK);
    assert_true(trace.ranks[0].call_count == 2 && trace.step_count == 1);
    assert_string_equal(trace.ranks[0].calls[0].algorithm, "RING");
    assert_string_equal(back.format, trace.format);
    assert_string_equal(back.file, trace.file);
    assert_string_equal(back.backend, trace.backend);
    assert_int_equal(back.rank, 3);
    assert_int_equal(back.name_count, trace.name_count);
    for (size_t i = 0; i < trace.name_count; i++)
        assert_string_equal(back.names[i], trace.names[i]);
    assert_int_equal(back.rank_count, trace.rank_count);
    for (size_t i = 0; i < trace.rank_count; i++)
        assert_same_rank(&trace.ranks[i], &back.ranks[i]);
    assert_int_equal(back.steps[0].number, 7);
    for (int i = 0; i < KNEE_LOSSES; i++)
        assert_int_equal(back.losses[i].count, trace.losses[i].count);
    struct packed again = pack(&back);
    assert_int_equal(again.size, packed.size);
    assert_memory_equal(again.bytes, packed.bytes, packed.size);
    free(again.bytes);
    free(packed.bytes);
    knee_trace_release(&trace);
    knee_trace_release(&back);
}

static void every_shortening_is_refused(void **state)
{
    (void)state;
    struct knee_trace trace = trace_of(text), back;
    struct knee_err err;
    struct packed packed = pack(&trace);
    for (size_t size = 0; size < packed.size; size++) {
        unsigned char *less = malloc(size + 1);
        memcpy(less, packed.bytes, size);
        assert_int_equal(knee_trace_unpack(less, size, NULL, &back, &err), KNEE_INPUT);
        free(less);
    }
    free(packed.bytes);
    knee_trace_release(&trace);
}

/* Whatever byte changes: refused, or a trace that can be accounted. */
static void every_change_is_survived(void **state)
{
    (void)state;
    struct knee_trace trace = trace_of(text), back;
    struct knee_account account;
    struct knee_err err;
    struct packed packed = pack(&trace);
    size_t refused = 0;
    for (size_t at = 0; at < packed.size; at++)
        for (int bit = 0; bit < 8; bit++) {
            packed.bytes[at] ^= (unsigned char)(1 << bit);
            if (knee_trace_unpack(packed.bytes, packed.size, NULL, &back, &err) == KNEE_OK) {
                if (knee_account(&back, 1, NULL, &account, &err) == KNEE_OK)
                    knee_account_release(&account);
                knee_trace_release(&back);
            } else {
                refused++;
            }
            packed.bytes[at] ^= (unsigned char)(1 << bit);
        }
    assert_true(refused > packed.size);
    free(packed.bytes);
    knee_trace_release(&trace);
}

static size_t left;

static void *resize(void *ctx, void *ptr, size_t size)
{
    (void)ctx;
    if (size == 0) {
        free(ptr);
        return NULL;
    }
    return left-- > 0 ? realloc(ptr, size) : NULL;
}

static void no_memory_is_said(void **state)
{
    (void)state;
    struct knee_trace trace = trace_of(text), back;
    struct knee_alloc alloc = {resize, NULL};
    struct knee_err err;
    struct packed packed = pack(&trace);
    knee_status status = KNEE_SYSTEM;
    for (size_t n = 0; status; n++) {
        left = n;
        status = knee_trace_unpack(packed.bytes, packed.size, &alloc, &back, &err);
        assert_true(status == KNEE_OK || status == KNEE_SYSTEM);
        assert_true(n < 100);
    }
    knee_trace_release(&back);
    free(packed.bytes);
    knee_trace_release(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_back_is_the_same),
        cmocka_unit_test(every_shortening_is_refused),
        cmocka_unit_test(every_change_is_survived),
        cmocka_unit_test(no_memory_is_said),
    };
    return RUN(tests);
}
