/* SPDX-License-Identifier: MIT */
/* What one process hands another comes back the same, or is refused. */
#include "timeline/wire_format.h"

#include "timelines.h"

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

TEST(what_comes_back_is_the_same)
{
    OWNED(knee_trace) trace = trace_of(text), back;
    struct knee_err err;
    struct packed packed = pack(&trace);
    assert_ok(knee_trace_unpack(packed.bytes, packed.size, NULL, &back, &err));
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
}

TEST(every_shortening_is_refused)
{
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
TEST(every_change_is_survived)
{
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

TEST(no_memory_is_said)
{
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

/* ---- Outlines, tasks and outcomes ---- */

/* The outline begins the same account. */
TEST(an_outline_has_the_calls)
{
    OWNED(knee_trace) trace = trace_of(text), outline;
    assert_ok(knee_trace_outline(&trace, NULL, &outline, NULL));
    assert_int_equal(outline.ranks[0].work, 4);
    assert_int_equal(outline.ranks[0].span_count, 2);
    assert_int_equal(outline.ranks[0].start_ns, trace.ranks[0].start_ns);
    assert_int_equal(outline.ranks[0].end_ns, trace.ranks[0].end_ns);
    assert_true(outline.name_count < trace.name_count);
    for (size_t i = 0; i < 2; i++) {
        const struct knee_rank *a = &trace.ranks[0], *b = &outline.ranks[0];
        const struct knee_span *x = &a->spans[a->calls[i].span], *y = &b->spans[b->calls[i].span];
        assert_true(x->start_ns == y->start_ns && x->end_ns == y->end_ns);
        assert_string_equal(trace.names[x->name], outline.names[y->name]);
    }
}

/* A set between the begin and the end of its account, as two processes see it. */
struct halfway {
    struct timelines set;
    struct knee_account account;
    struct knee_between between;
    struct knee_share shares[2 * TRACES_MAX];
    struct knee_rank_account ranks[2 * TRACES_MAX];
    struct knee_rank_brief tasks[2 * TRACES_MAX];
    struct knee_outcome outcomes[2 * TRACES_MAX];
    struct knee_share other[2 * TRACES_MAX]; /* the other process's */
    size_t count;
};

static void begin_again(struct halfway *h)
{
    assert_ok(
        knee_account_begin(h->set.traces, h->set.count, NULL, &h->account, &h->between, NULL));
    h->count = h->account.rank_count;
    assert_true(h->count <= 2 * TRACES_MAX);
    for (size_t i = 0; i < h->count; i++) {
        h->shares[i] = (struct knee_share){&h->account.ranks[i], &h->between.tasks[i],
                                           &h->between.outcomes[i]};
        h->ranks[i] = h->account.ranks[i];
        h->other[i] = (struct knee_share){&h->ranks[i], &h->tasks[i], &h->outcomes[i]};
    }
}

/* Two ranks or more that meet often. */
static void go_halfway(struct halfway *h)
{
    memset(h, 0, sizeof *h);
    for (uint64_t seed = 7;;) {
        h->set = random_timelines(&seed);
        if (!knee_account_begin(h->set.traces, h->set.count, NULL, &h->account, &h->between,
                                NULL)) {
            size_t meetings = h->between.tasks[0].meeting_count, ranks = h->account.rank_count;
            knee_between_release(&h->between);
            knee_account_release(&h->account);
            if (ranks > 1 && ranks < 4 && meetings > 3) {
                begin_again(h);
                return;
            }
        }
        timelines_release(&h->set);
    }
}

static void drop_other(struct halfway *h)
{
    for (size_t i = 0; i < h->count; i++) {
        knee_task_release(&h->tasks[i], NULL);
        knee_outcome_release(&h->outcomes[i], NULL);
        free(h->ranks[i].runs);
        h->ranks[i].runs = NULL;
    }
}

static void work(struct halfway *h)
{
    for (size_t i = 0; i < h->count; i++)
        assert_true(knee_account_rank(&h->ranks[i], &h->tasks[i], NULL, &h->outcomes[i]));
}

static struct packed pack_tasks(const struct halfway *h)
{
    struct packed packed = {.size = knee_tasks_pack(h->shares, h->count, NULL)};
    packed.bytes = malloc(packed.size);
    assert_int_equal(knee_tasks_pack(h->shares, h->count, packed.bytes), packed.size);
    return packed;
}

static knee_status take_tasks(struct halfway *h, const unsigned char *bytes, size_t size)
{
    return knee_tasks_unpack(bytes, size, h->other, h->count, NULL, NULL);
}

/* The outcomes of the other process, worked out and packed. */
static struct packed pack_outcomes(struct halfway *h)
{
    struct packed tasks = pack_tasks(h), packed;
    assert_ok(take_tasks(h, tasks.bytes, tasks.size));
    free(tasks.bytes);
    work(h);
    packed.size = knee_outcomes_pack(h->other, h->count, NULL);
    packed.bytes = malloc(packed.size);
    assert_int_equal(knee_outcomes_pack(h->other, h->count, packed.bytes), packed.size);
    return packed;
}

static knee_status take_outcomes(struct halfway *h, const unsigned char *bytes, size_t size)
{
    return knee_outcomes_unpack(bytes, size, h->shares, h->count, NULL, NULL);
}

static void end_halfway(struct halfway *h)
{
    drop_other(h);
    knee_between_release(&h->between);
    knee_account_release(&h->account);
    timelines_release(&h->set);
}

TEST(messages_cut_short_are_refused)
{
    struct halfway h;
    go_halfway(&h);
    struct packed tasks = pack_tasks(&h), outcomes = pack_outcomes(&h);
    for (size_t size = 0; size < tasks.size; size++) {
        unsigned char *less = malloc(size + 1);
        memcpy(less, tasks.bytes, size);
        drop_other(&h);
        assert_int_equal(take_tasks(&h, less, size), KNEE_INPUT);
        free(less);
    }
    for (size_t size = 0; size < outcomes.size; size++) {
        unsigned char *less = malloc(size + 1);
        memcpy(less, outcomes.bytes, size);
        assert_int_equal(take_outcomes(&h, less, size), KNEE_INPUT);
        for (size_t i = 0; i < h.count; i++)
            knee_outcome_release(&h.between.outcomes[i], NULL);
        free(less);
    }
    assert_ok(take_outcomes(&h, outcomes.bytes, outcomes.size));
    free(tasks.bytes);
    free(outcomes.bytes);
    end_halfway(&h);
}

/* Whatever bit changes: refused, or something that can be worked with. */
TEST(changed_tasks_are_survived)
{
    struct halfway h;
    go_halfway(&h);
    struct packed packed = pack_tasks(&h);
    size_t refused = 0;
    for (size_t at = 0; at < 8 * packed.size; at++) {
        packed.bytes[at / 8] ^= (unsigned char)(1 << at % 8);
        if (take_tasks(&h, packed.bytes, packed.size) == KNEE_OK)
            work(&h);
        else
            refused++;
        drop_other(&h);
        for (size_t i = 0; i < h.count; i++)
            h.ranks[i] = h.account.ranks[i];
        packed.bytes[at / 8] ^= (unsigned char)(1 << at % 8);
    }
    assert_true(refused > packed.size);
    free(packed.bytes);
    end_halfway(&h);
}

TEST(changed_outcomes_are_survived)
{
    struct halfway h;
    go_halfway(&h);
    struct packed packed = pack_outcomes(&h);
    size_t refused = 0;
    for (size_t at = 0; at < packed.size; at++) {
        unsigned char bit = (unsigned char)(1 << at % 8);
        packed.bytes[at] ^= bit;
        if (take_outcomes(&h, packed.bytes, packed.size) == KNEE_OK) {
            assert_ok(knee_account_end(&h.account, &h.between, NULL));
            free(all_words(h.set.traces, h.set.count, &h.account));
        } else {
            refused++;
        }
        packed.bytes[at] ^= bit;
        knee_between_release(&h.between);
        knee_account_release(&h.account);
        drop_other(&h);
        begin_again(&h);
    }
    assert_true(refused > packed.size / 4);
    free(packed.bytes);
    end_halfway(&h);
}

/* Every allocation of the other side fails once. */
TEST(no_memory_for_messages_is_said)
{
    struct knee_alloc alloc = {resize, NULL};
    struct halfway h;
    go_halfway(&h);
    struct packed tasks = pack_tasks(&h), outcomes = pack_outcomes(&h);
    struct knee_trace outline;
    knee_status status[3] = {KNEE_SYSTEM, KNEE_SYSTEM, KNEE_SYSTEM};
    for (size_t n = 0; status[0] || status[1] || status[2]; n++) {
        drop_other(&h);
        left = n;
        status[0] = knee_tasks_unpack(tasks.bytes, tasks.size, h.other, h.count, &alloc, NULL);
        left = n;
        status[1] =
            knee_outcomes_unpack(outcomes.bytes, outcomes.size, h.shares, h.count, &alloc, NULL);
        left = n;
        status[2] = knee_trace_outline(&h.set.traces[0], &alloc, &outline, NULL);
        if (!status[2])
            knee_trace_release(&outline);
        for (size_t i = 0; i < h.count; i++)
            knee_outcome_release(&h.between.outcomes[i], NULL);
        for (size_t i = 0; i < 3; i++)
            assert_true(status[i] == KNEE_OK || status[i] == KNEE_SYSTEM);
        assert_true(n < 100);
    }
    free(tasks.bytes);
    free(outcomes.bytes);
    end_halfway(&h);
}
