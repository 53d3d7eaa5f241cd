/* SPDX-License-Identifier: MIT */
/* The account: every nanosecond against a map of nanoseconds, matching, clocks, steps, stragglers.
 */
#include "trace_help.h"

#include "knee_out.h"
#include "out/answer.h"
#include "say/answers.h"

#include "timeline/account.h"
#include "timeline/builder.h"
#include "timeline/recordings.h"

static struct knee_builder *builder(void)
{
    struct knee_builder *b = knee_builder_new(NULL, NULL);
    assert_non_null(b);
    return b;
}

static void add(struct knee_builder *b, const char *name, int64_t start, int64_t end,
                int32_t stream, int64_t launch_end)
{
    static uint64_t correlation;
    correlation++;
    knee_builder_span(
        b, &(struct knee_gpu_work){0, start, end, knee_builder_name(b, name, strlen(name)), stream,
                                   launch_end == KNEE_NO_TIME ? KNEE_NO_CORRELATION : correlation,
                                   strncmp(name, "Mem", 3) == 0, NULL});
    if (launch_end != KNEE_NO_TIME)
        knee_builder_launch(b, launch_end - 2, launch_end, 1, correlation);
}

static struct knee_trace finish(struct knee_builder *b, int64_t rank, int64_t world)
{
    struct knee_trace trace = {.rank = rank, .world_size = world, .format = "test"};
    char name[32];
    snprintf(name, sizeof name, "rank%lld", (long long)rank);
    trace.file = strdup(name);
    assert_ok(knee_builder_finish(b, &trace, NULL));
    knee_builder_free(b);
    return trace;
}

static struct knee_account account_of(const struct knee_trace *traces, size_t count)
{
    struct knee_account account;
    struct knee_err err;
    if (knee_account(traces, count, NULL, &account, &err))
        fail_msg("%s", err.what);
    return account;
}

static void release_all(struct knee_account *account, struct knee_trace *traces, size_t count)
{
    knee_account_release(account);
    for (size_t i = 0; i < count; i++)
        knee_trace_release(&traces[i]);
}

#define NCCL "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"

/* ---- Second method: a map with one entry per nanosecond ---- */

enum { SPAN = 600, RANKS = 3 };

static void map_labels(const struct knee_account *account, size_t r, const int64_t *last_start,
                       int *map)
{
    const struct knee_rank_account *rank = &account->ranks[r];
    bool compute[SPAN] = {0}, transfer[SPAN] = {0}, wait[SPAN] = {0}, copy[SPAN] = {0},
         load[SPAN] = {0};
    size_t call = 0;
    for (size_t i = 0; i < rank->source->span_count; i++) {
        const struct knee_span *span = &rank->source->spans[i];
        int64_t there = span->start_ns;
        if (span->kind == KNEE_SPAN_COMM) {
            if (rank->split)
                there = last_start[call];
            there = there < span->start_ns ? span->start_ns : there;
            call++;
        }
        for (int64_t t = span->start_ns; t < span->end_ns; t++) {
            compute[t] |= span->kind == KNEE_SPAN_COMPUTE;
            copy[t] |= span->kind == KNEE_SPAN_COPY;
            transfer[t] |= span->kind == KNEE_SPAN_COMM && t >= there;
            wait[t] |= span->kind == KNEE_SPAN_COMM && t < there;
        }
    }
    for (size_t i = 0; i < rank->trace->load_count; i++)
        for (int64_t t = rank->trace->loads[i].start_ns;
             t < rank->trace->loads[i].end_ns && t < SPAN; t++)
            load[t] = true;
    for (int64_t t = 0; t < SPAN; t++) {
        map[t] = compute[t]    ? KNEE_COMPUTE
                 : transfer[t] ? KNEE_TRANSFER
                 : wait[t]     ? KNEE_WAIT
                 : copy[t]     ? KNEE_COPY
                               : -1;
        if (map[t] >= 0)
            continue;
        /* idle: when was the work handed over that ends this gap? */
        int64_t next = INT64_MAX, handed = KNEE_NO_TIME;
        for (size_t i = 0; i < rank->source->span_count; i++) {
            const struct knee_span *span = &rank->source->spans[i];
            if (span->start_ns > t && span->start_ns < next && span->end_ns > span->start_ns)
                next = span->start_ns;
        }
        for (size_t i = 0; i < rank->source->span_count; i++) {
            const struct knee_span *span = &rank->source->spans[i];
            if (span->start_ns == next && span->launch_ns != KNEE_NO_TIME &&
                (handed == KNEE_NO_TIME || span->launch_ns < handed))
                handed = span->launch_ns;
        }
        map[t] =
            handed != KNEE_NO_TIME && t < handed ? (load[t] ? KNEE_STARVED : KNEE_HOST) : KNEE_IDLE;
    }
}

TEST(every_nanosecond_against_a_map)
{
    uint64_t seed = 4711;
    static const char *const names[] = {"gemm", "softmax", "Memcpy HtoD", NCCL};
    for (int round = 0; round < 400; round++) {
        struct knee_trace traces[RANKS];
        size_t ranks = 1 + (size_t)(chance(&seed) * RANKS);
        int collectives = (int)(chance(&seed) * 6);
        int64_t starts[RANKS][8], ends[8], last_start[8];
        for (int c = 0; c < collectives; c++) {
            last_start[c] = 0;
            for (size_t r = 0; r < ranks; r++) {
                starts[r][c] = c * 90 + (int64_t)(chance(&seed) * 40);
                last_start[c] = starts[r][c] > last_start[c] ? starts[r][c] : last_start[c];
            }
            ends[c] = last_start[c] + 1 + (int64_t)(chance(&seed) * 40);
        }
        for (size_t r = 0; r < ranks; r++) {
            struct knee_builder *b = builder();
            int count = 1 + (int)(chance(&seed) * 30);
            for (int i = 0; i < count; i++) {
                int64_t start = (int64_t)(chance(&seed) * 500);
                add(b, names[(int)(chance(&seed) * 3)], start,
                    start + 1 + (int64_t)(chance(&seed) * 25), 7 + (int32_t)(chance(&seed) * 2),
                    chance(&seed) < 0.8 ? start - (int64_t)(chance(&seed) * 20) : KNEE_NO_TIME);
            }
            for (int c = 0; c < collectives; c++)
                add(b, NCCL, starts[r][c], ends[c], 20,
                    starts[r][c] - (int64_t)(chance(&seed) * 10));
            for (int i = 0; i < 3; i++) {
                int64_t start = (int64_t)(chance(&seed) * 500);
                knee_builder_load(b, -1, start, start + (int64_t)(chance(&seed) * 60), false);
            }
            traces[r] = finish(b, (int64_t)r, (int64_t)ranks);
        }
        struct knee_account account = account_of(traces, ranks);
        for (size_t r = 0; r < ranks; r++) {
            const struct knee_rank_account *rank = &account.ranks[r];
            int map[SPAN];
            int64_t sums[KNEE_LABELS] = {0};
            map_labels(&account, r, last_start, map);
            for (int64_t t = rank->start_ns; t < rank->end_ns; t++)
                sums[map[t]]++;
            for (int label = 0; label < KNEE_LABELS; label++)
                if (sums[label] != rank->ledger.label_ns[label])
                    fail_msg("round %d rank %zu: %s is %lld, by the map %lld", round, r,
                             knee_label_name((enum knee_label)label),
                             (long long)rank->ledger.label_ns[label], (long long)sums[label]);
            for (size_t i = 0; i < rank->run_count;
                 i++) /* the runs say the same, moment by moment */
                for (int64_t t = rank->runs[i].start_ns;
                     t < (i + 1 < rank->run_count ? rank->runs[i + 1].start_ns : rank->end_ns); t++)
                    assert_int_equal(map[t], rank->runs[i].label);
        }
        release_all(&account, traces, ranks);
    }
}

static struct knee_diagnosis diagnosis_of(const struct knee_account *account)
{
    struct knee_job job;
    struct knee_diagnosis d;
    struct knee_err err;
    knee_job_init(&job);
    if (knee_diagnose(account, &job, NULL, &d, &err))
        fail_msg("%s", err.what);
    return d;
}

/* Two ranks, three all-reduces; rank 1 comes 40 late to each because its host sleeps. */
static struct knee_trace late_rank(int64_t rank, int64_t clock)
{
    struct knee_builder *b = builder();
    for (int64_t k = 0; k < 5; k++) {
        int64_t t = clock + 600000 * k, late = rank == 1 ? 400000 : 0;
        add(b, "gemm", t, t + 100000, 7, t - 1000);
        add(b, "relu", t + 100000 + late, t + 150000 + late, 7, t + 99000 + late);
        add(b, NCCL, t + 150000 + late, t + 600000, 20, t + 149000 + late);
    }
    return finish(b, rank, 2);
}

TEST(a_late_rank_is_named_with_its_cause)
{
    struct knee_trace traces[] = {late_rank(0, 0), late_rank(1, 0)};
    struct knee_account account = account_of(traces, 2);
    assert_int_equal(account.instances, 5);
    assert_int_equal(account.transfer_ns, 5 * 50000);
    assert_int_equal(account.ranks[0].ledger.label_ns[KNEE_WAIT], 5 * 400000);
    assert_int_equal(account.ranks[0].ledger.label_ns[KNEE_TRANSFER], 5 * 50000);
    assert_int_equal(account.ranks[1].ledger.label_ns[KNEE_WAIT], 0);
    assert_int_equal(account.straggler_count, 1);
    assert_int_equal(account.ranks[account.stragglers[0].rank].rank, 1);
    assert_int_equal(account.stragglers[0].last_count, 5);
    assert_int_equal(account.stragglers[0].lateness_ns, 5 * 400000);
    assert_int_equal(account.stragglers[0].cause, KNEE_HOST);
    struct knee_diagnosis d = diagnosis_of(&account);
    assert_int_equal(d.suspect, KNEE_SUSPECT_STRAGGLER);
    assert_int_equal(d.late_ranks, 1);
    release_all(&account, traces, 2);
}

/* The same with rank 1's clock three milliseconds ahead: its collectives would start after the
 * others' had ended, so the clocks are moved together, and the answer is the same. */
TEST(clocks_that_contradict_are_moved_together)
{
    struct knee_trace traces[] = {late_rank(0, 0), late_rank(1, 3000000)};
    struct knee_account account = account_of(traces, 2);
    assert_int_equal(account.largest_shift_ns, -3000000);
    assert_int_equal(account.residual_ns, 0);
    assert_int_equal(account.ranks[0].ledger.label_ns[KNEE_WAIT], 5 * 400000);
    assert_int_equal(account.transfer_ns, 5 * 50000);
    knee_account_release(&account);
    /* but a base time that says so is believed without any shift */
    traces[1].base_ns = -3000000;
    account = account_of(traces, 2);
    assert_int_equal(account.largest_shift_ns, 0);
    assert_int_equal(account.ranks[0].ledger.label_ns[KNEE_WAIT], 5 * 400000);
    release_all(&account, traces, 2);
}

TEST(one_rank_cannot_be_split_and_missing_ranks_give_bounds)
{
    struct knee_trace one = late_rank(0, 0);
    struct knee_account account = account_of(&one, 1);
    assert_false(account.ranks[0].split);
    assert_int_equal(account.instances, 0);
    knee_account_release(&account);
    struct knee_trace two[] = {late_rank(0, 0), late_rank(1, 0)};
    two[0].world_size = two[1].world_size = 4;
    account = account_of(two, 2);
    assert_true(account.ranks[0].split && account.ranks[0].bounded);
    assert_int_equal(account.instances, 0);
    assert_int_equal(account.partial, 5);
    assert_int_equal(account.ranks[0].ledger.label_ns[KNEE_WAIT], 5 * 400000);
    struct knee_diagnosis d = diagnosis_of(&account);
    assert_true(d.bounded);
    assert_true(d.gaps & KNEE_GAP_BOUNDS);
    assert_int_equal(d.suspect, KNEE_SUSPECT_STRAGGLER);
    knee_account_release(&account);
    knee_trace_release(&one);
    knee_trace_release(&two[0]);
    knee_trace_release(&two[1]);
}

/* ---- Matching, with known truth ---- */

/* One call of a collective; `late` of it is waited by nobody. */
struct made_call {
    enum knee_op op;
    int64_t start, end, bytes, peer;
    int32_t stream;
    bool sends;
    const char *group, *members;
};

static void add_made(struct knee_builder *b, const struct made_call *c, int64_t size)
{
    static const char name[] = "ncclDevKernel_SendRecv(x)";
    struct knee_call_facts facts = KNEE_CALL_UNKNOWN;
    facts.op = c->op;
    facts.bytes = c->bytes;
    facts.peer = c->peer;
    facts.sends = c->sends;
    facts.group_size = size;
    if (c->group) {
        facts.group = knee_builder_name(b, c->group, strlen(c->group)) + 1;
        facts.members = knee_builder_name(b, c->members, strlen(c->members)) + 1;
    }
    knee_builder_span(b, &(struct knee_gpu_work){0, c->start, c->end,
                                                 knee_builder_name(b, name, strlen(name)),
                                                 c->stream, KNEE_NO_CORRELATION, false, &facts});
}

/* Four ranks, all-to-alls of sizes that differ; rank 2's host is 500 us away before each. Ends
 * differ by up to 200 us, as when processes share a GPU. */
TEST(all_to_alls_match_and_name_the_late_rank)
{
    struct knee_trace traces[4];
    for (int64_t r = 0; r < 4; r++) {
        struct knee_builder *b = builder();
        for (int64_t i = 0; i < 8; i++) {
            int64_t t = 2000000 * i, late = r == 2 ? 500000 : 10000 * r;
            knee_builder_step(b, t, t + 2000000, i);
            add(b, "gemm", t + 100000 + late, t + 200000 + late, 7, t + 99000 + late);
            add_made(b,
                     &(struct made_call){.op = i % 2 ? KNEE_OP_ALL_TO_ALL : KNEE_OP_ALL_TO_ALLV,
                                         .start = t + 200000 + late,
                                         .end = t + 900000 + ((r + i) % 4) * 66000,
                                         .bytes = 1000 * (r + 1) + i,
                                         .stream = 20,
                                         .peer = -1,
                                         .group = "0",
                                         .members = "[0, 1, 2, 3]"},
                     4);
        }
        traces[r] = finish(b, r, 4);
    }
    struct knee_account account = account_of(traces, 4);
    assert_int_equal(account.instances, 8);
    assert_int_equal(account.unmatched, 0);
    for (size_t r = 0; r < 4; r++) {
        assert_true(account.ranks[r].split && !account.ranks[r].bounded);
        assert_int_equal(account.ranks[r].ledger.label_ns[KNEE_WAIT],
                         r == 2 ? 0 : 8 * (500000 - 10000 * (int64_t)r));
    }
    struct knee_diagnosis d = diagnosis_of(&account);
    assert_int_equal(d.late_ranks, 1);
    assert_int_equal(account.stragglers[0].rank, 2);
    assert_int_equal(account.stragglers[0].cause, KNEE_HOST);
    assert_float_equal((double)account.stragglers[0].held_ns, 8 * 490000, 8 * 490000 * 0.05);
    release_all(&account, traces, 4);
}

/* A pipeline of ranks 4, 6 and 9: peers count inside the group. Rank 6 is late with what it sends;
 * what rank 4 sends is taken before it comes. */
TEST(sends_meet_their_receives)
{
    static const int64_t ranks[] = {4, 6, 9};
    struct knee_trace traces[3];
    for (int64_t p = 0; p < 3; p++) {
        struct knee_builder *b = builder();
        for (int64_t i = 0; i < 8; i++) {
            int64_t t = 1000000 * i;
            struct made_call call = {.op = KNEE_OP_SEND_RECV,
                                     .bytes = 4096,
                                     .stream = 20,
                                     .group = "7",
                                     .members = "[4, 6, 9]"};
            knee_builder_step(b, t, t + 1000000, i);
            if (p < 2) { /* to the next: from 0 at 100000, from 1 at 700000 */
                call.sends = true;
                call.peer = p + 1;
                call.start = t + (p ? 700000 : 100000);
                call.end = t + (p ? 800000 : 120000);
                add_made(b, &call, 3);
            }
            if (p > 0) { /* from the one before: 1 comes when 0 has gone, 2 waits long for 1 */
                call.sends = false;
                call.peer = p - 1;
                call.start = t + (p == 1 ? 130000 : 50000);
                call.end = t + (p == 1 ? 200000 : 800000);
                add_made(b, &call, 3);
            }
            add(b, "gemm", t + 200000, t + (p == 1 ? 690000 : 250000), 7, t + 190000);
            call.op = KNEE_OP_ALL_REDUCE;
            call.peer = -1;
            call.start = t + (p ? 810000 : 260000);
            call.end = t + 950000;
            add_made(b, &call, 3);
        }
        traces[p] = finish(b, ranks[p], 10);
    }
    struct knee_account account = account_of(traces, 3);
    assert_int_equal(account.instances, 8 + 8); /* 1 to 2, and all-reduces */
    assert_int_equal(account.loose, 8);         /* 0 to 1: nobody waited */
    assert_int_equal(account.unmatched, 0);
    for (size_t r = 0; r < 3; r++)
        assert_true(account.ranks[r].split && !account.ranks[r].bounded);
    assert_int_equal(account.ranks[0].ledger.label_ns[KNEE_WAIT], 8 * 550000);
    assert_int_equal(account.ranks[1].ledger.label_ns[KNEE_WAIT], 0);
    assert_int_equal(account.ranks[2].ledger.label_ns[KNEE_WAIT], 8 * (650000 - 50000));
    struct knee_diagnosis d = diagnosis_of(&account);
    assert_int_equal(d.late_ranks, 1);
    assert_int_equal(account.stragglers[0].rank, 1);
    assert_int_equal(account.stragglers[0].cause, KNEE_COMPUTE);
    release_all(&account, traces, 3);
}

/* A broadcast is a rendezvous only where it ended as one. */
TEST(a_rendezvous_is_what_ends_together)
{
    for (int together = 0; together < 2; together++) {
        struct knee_trace traces[2];
        for (int64_t r = 0; r < 2; r++) {
            struct knee_builder *b = builder();
            for (int64_t i = 0; i < 5; i++)
                add_made(b,
                         &(struct made_call){.op = KNEE_OP_BROADCAST,
                                             .start = 5000000 * i + 400000 * r,
                                             .end = 5000000 * i + 700000 +
                                                    (together ? 10000 : 900000) * r,
                                             .bytes = 64,
                                             .peer = -1,
                                             .stream = 20},
                         2);
            traces[r] = finish(b, r, 2);
        }
        struct knee_account account = account_of(traces, 2);
        struct knee_diagnosis d = diagnosis_of(&account);
        assert_int_equal(account.instances, together ? 5 : 0);
        assert_int_equal(account.loose, together ? 0 : 5);
        assert_int_equal(account.ranks[0].split, together);
        assert_int_equal(account.ranks[0].ledger.label_ns[KNEE_WAIT], together ? 5 * 400000 : 0);
        assert_int_equal(d.gaps & (KNEE_GAP_LOOSE | KNEE_GAP_UNMATCHED),
                         together ? 0 : KNEE_GAP_LOOSE);
        release_all(&account, traces, 2);
    }
}

/* gloo: any thread of the pool takes a call. In the order of their starts all of them match. */
TEST(calls_on_a_pool_of_threads_match)
{
    struct knee_trace traces[3];
    uint64_t seed = 99;
    for (int64_t r = 0; r < 3; r++) {
        struct knee_builder *b = builder();
        for (int64_t i = 0; i < 40; i++)
            add_made(b,
                     &(struct made_call){.op = KNEE_OP_ALL_REDUCE,
                                         .start = 1000000 * i + 50000 * ((r + i) % 3),
                                         .end = 1000000 * i + 300000,
                                         .bytes = 4096,
                                         .peer = -1,
                                         .stream = (int32_t)(chance(&seed) * 4)},
                     3);
        traces[r] = finish(b, r, 3);
        traces[r].format = "cpu";
    }
    struct knee_account account = account_of(traces, 3);
    assert_int_equal(account.instances, 40);
    assert_int_equal(account.residual_ns, 0);
    struct knee_diagnosis d = diagnosis_of(&account);
    assert_int_equal(d.late_ranks, 0); /* each comes last in turn */
    release_all(&account, traces, 3);
}

/* One profiler began two calls later. All calls look alike; their ends tell. */
TEST(a_later_start_is_found_by_the_ends)
{
    struct knee_trace traces[2];
    for (int64_t r = 0; r < 2; r++) {
        struct knee_builder *b = builder();
        for (int64_t i = 2 * r; i < 10; i++)
            add(b, NCCL, 1000000 * i + 5000 * i * i, 1000000 * i + 600000 + 5000 * i * i, 20,
                KNEE_NO_TIME);
        traces[r] = finish(b, r, 2);
    }
    struct knee_account account = account_of(traces, 2);
    assert_int_equal(account.instances, 8);
    assert_int_equal(account.unmatched, 2);
    assert_int_equal(account.largest_shift_ns, 0);
    assert_int_equal(account.residual_ns, 0);
    release_all(&account, traces, 2);
}

/* Rank 2 never meets rank 0, only rank 1, whose clock is off: the shift is found through it. */
TEST(clocks_are_found_over_other_ranks)
{
    static const int64_t off[] = {0, 7000000, -4000000};
    struct knee_trace traces[3];
    for (int64_t r = 0; r < 3; r++) {
        struct knee_builder *b = builder();
        for (int64_t i = 0; i < 12; i++) {
            bool even = i % 2 == 0;
            if ((even && r == 2) || (!even && r == 0))
                continue;
            add_made(b,
                     &(struct made_call){.op = KNEE_OP_ALL_REDUCE,
                                         .start = 1000000 * i + 100000 * r + off[r],
                                         .end = 1000000 * i + 500000 + off[r],
                                         .bytes = 64,
                                         .peer = -1,
                                         .stream = 20,
                                         .group = even ? "a" : "b",
                                         .members = even ? "[0, 1]" : "[1, 2]"},
                     2);
        }
        traces[r] = finish(b, r, 3);
    }
    struct knee_account account = account_of(traces, 3);
    assert_int_equal(account.ranks[1].shift_ns, -7000000);
    assert_int_equal(account.ranks[2].shift_ns, 4000000);
    assert_int_equal(account.instances, 12);
    assert_int_equal(account.ranks[1].ledger.label_ns[KNEE_WAIT], 6 * 100000);
    release_all(&account, traces, 3);
}

/* Ends agree within 300 us only: rank 1's 50 us are nobody's lateness. */
TEST(lateness_within_what_clocks_leave_is_nobodys)
{
    struct knee_trace traces[2];
    for (int64_t r = 0; r < 2; r++) {
        struct knee_builder *b = builder();
        for (int64_t i = 0; i < 20; i++) {
            int64_t t = 1000000 * i, jitter = r == 1 ? (i % 2 ? 300000 : -300000) : 0;
            add(b, "gemm", t, t + 100000 + 50000 * r, 7, t - 10);
            add(b, NCCL, t + 100000 + 50000 * r, t + 600000 + jitter, 20, t);
        }
        traces[r] = finish(b, r, 2);
    }
    struct knee_account account = account_of(traces, 2);
    assert_int_equal(account.instances, 20);
    assert_int_equal(account.residual_ns, 300000);
    struct knee_diagnosis d = diagnosis_of(&account);
    assert_int_equal(account.stragglers[0].lateness_ns, 0);
    assert_int_equal(d.late_ranks, 0);
    release_all(&account, traces, 2);
}

/* A kernel that starts after its step has ended on the host still belongs to the step that launched
 * it. */
TEST(a_kernel_belongs_to_the_step_of_its_launch)
{
    struct knee_builder *b = builder();
    knee_builder_step(b, 100, 200, 7);
    knee_builder_step(b, 200, 300, 8);
    add(b, "before", 90, 120, 7, 95); /* launched before the first step */
    add(b, "a", 150, 260, 7, 120);    /* step 7, runs into the host's step 8 */
    add(b, "b", 265, 400, 7, 190);    /* step 7, starts in the host's step 8 */
    add(b, "c", 420, 500, 7, 290);    /* step 8 */
    add(b, "d", 600, 610, 7, 350);    /* after the last step */
    OWNED(knee_trace) trace = finish(b, 0, 1);
    OWNED(knee_account) account = account_of(&trace, 1);
    static const int64_t numbers[] = {-1, 7, 8, -1}, starts[] = {90, 120, 400, 500},
                         windows[] = {30, 280, 100, 110};
    assert_int_equal(account.step_count, 4);
    int64_t sum = 0;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(account.steps[i].number, numbers[i]);
        assert_int_equal(account.steps[i].start_ns, starts[i]);
        assert_int_equal(account.steps[i].ledger.window_ns, windows[i]);
        sum += account.steps[i].ledger.window_ns;
    }
    assert_int_equal(sum, account.ranks[0].ledger.window_ns);
    assert_int_equal(account.steps[1].ledger.label_ns[KNEE_COMPUTE], 110 + 135);
}

static void check_steps(struct knee_trace trace, size_t complete, double step_s)
{
    OWNED(knee_account) account = account_of(&trace, 1);
    struct knee_diagnosis d = diagnosis_of(&account);
    assert_float_equal(d.steps, complete, 0);
    assert_float_equal(d.step.wall_s, step_s, 1e-12);
    double sum = 0;
    for (int label = 0; label < KNEE_LABELS; label++)
        sum += d.step.label_s[label];
    assert_float_equal(sum, step_s, 1e-12);
    knee_trace_release(&trace);
}

/* The host works for 600 of 1000 before the first kernel: the step is 1000, the gap is its own, in
 * the first step and in the last. */
TEST(a_gap_before_the_first_kernel_is_in_the_step)
{
    struct knee_builder *b = builder();
    for (int64_t i = 0; i < 3; i++) {
        int64_t t = 5000 + 1000 * i;
        knee_builder_step(b, t, t + 1000, i);
        knee_builder_load(b, -1, t, t + 500, false);
        add(b, "gemm", t + 600, t + 900, 7, t + 590);
    }
    struct knee_trace trace = finish(b, 0, 1);
    struct knee_account account = account_of(&trace, 1);
    assert_int_equal(account.ranks[0].ledger.window_ns, 2300); /* GPU work only */
    assert_int_equal(account.step_count, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct knee_ledger *ledger = &account.steps[i].ledger;
        assert_int_equal(ledger->window_ns, 1000);
        assert_int_equal(ledger->label_ns[KNEE_COMPUTE], 300);
        assert_int_equal(ledger->label_ns[KNEE_STARVED], 500);
        assert_int_equal(ledger->label_ns[KNEE_HOST], 90 + 100);
    }
    knee_account_release(&account);
    check_steps(trace, 3, 1000e-9);
}

/* The GPU lags two steps behind the host, and runs at first what was launched before the recording
 * began: steps of 1000 are neither longer nor shorter for it. */
TEST(a_lagging_gpu_does_not_change_the_step)
{
    for (int recorded = 0; recorded < 2; recorded++) {
        struct knee_builder *b = builder();
        for (int64_t i = 0; i < 4; i++) {
            int64_t host = 10000 + 300 * i, gpu = 12000 + 1000 * i;
            knee_builder_step(b, host, host + 300, 100 + i);
            for (int64_t k = 0; k < 10; k++)
                add(b, "gemm", gpu + 100 * k, gpu + 100 * k + 95, 7, host + 10 + k);
        }
        for (int64_t k = 0; k < 20 && recorded; k++) /* no launch in the trace */
            add(b, "gemm", 10000 + 100 * k, 10000 + 100 * k + 95, 7, KNEE_NO_TIME);
        check_steps(finish(b, 0, 1), 4,
                    recorded ? 1000e-9 : 998.75e-9); /* ends with its last kernel */
    }
}

/* Handed over long before it runs, the first kernel waits: for work that is not in the trace, and
 * the step begins with it; or, where what its stream had before is there, for somebody else on the
 * GPU, and that is the step's own time. */
TEST(what_the_first_kernel_waits_for)
{
    for (int known = 0; known < 2; known++) {
        struct knee_builder *b = builder();
        knee_builder_step(b, 1000, 2000, 4);
        add(b, "gemm", 400, 900, 7, known ? 300 : KNEE_NO_TIME);
        add(b, "gemm", 1300, 1900, 7, 1000);
        add(b, "gemm", 2300, 2400, 7, 2050);
        check_steps(finish(b, 0, 1), 1, known ? 1000e-9 : 700e-9);
    }
}

/* Loops annotated without the loading between their steps: the last one's end is not known. */
TEST(annotated_steps_run_from_start_to_start)
{
    struct knee_builder *b = builder();
    for (int64_t i = 0; i < 4; i++) {
        knee_builder_step_of(b, &(struct knee_raw_mark){
                                    {1000 * i, 1000 * i + 700, i, -1}, KNEE_STEPS_ANNOTATION, 0});
        knee_builder_step_of(b, &(struct knee_raw_mark){{1000 * i + 10, 1000 * i + 300, i, -1},
                                                        KNEE_STEPS_ANNOTATION,
                                                        0});
        knee_builder_step_of(b, &(struct knee_raw_mark){{1000 * i + 600, 1000 * i + 650, 0, -1},
                                                        KNEE_STEPS_OPTIMIZER,
                                                        1});
        add(b, "gemm", 1000 * i + 100, 1000 * i + 600, 7, 1000 * i + 90);
    }
    struct knee_trace trace = finish(b, 0, 1);
    assert_int_equal(trace.step_source, KNEE_STEPS_ANNOTATION);
    check_steps(trace, 3, 1000e-9);
    b = builder(); /* optimizers alone; the second one of each step is where it ends */
    for (int64_t i = 0; i < 4; i++) {
        knee_builder_step_of(b, &(struct knee_raw_mark){{1000 * i + 500, 1000 * i + 550, 0, -1},
                                                        KNEE_STEPS_OPTIMIZER,
                                                        1});
        knee_builder_step_of(b, &(struct knee_raw_mark){{1000 * i + 600, 1000 * i + 650, 0, -1},
                                                        KNEE_STEPS_OPTIMIZER,
                                                        2});
        add(b, "gemm", 1000 * i + 100, 1000 * i + 600, 7, 1000 * i + 90);
    }
    trace = finish(b, 0, 1);
    assert_int_equal(trace.step_source, KNEE_STEPS_OPTIMIZER);
    check_steps(trace, 3, 1000e-9);
}

/* One step of 200 is twice as long, because rank 1's host was away. */
TEST(the_worst_step_is_named)
{
    struct knee_trace traces[2];
    for (int64_t r = 0; r < 2; r++) {
        struct knee_builder *b = builder();
        int64_t t = 0;
        for (int64_t i = 0; i < 200; i++) {
            int64_t away = i == 77 && r == 1 ? 1000000 : 0, all = i == 77 ? 2000000 : 1000000;
            knee_builder_step(b, t, t + all, i);
            add(b, "gemm", t + 1000 + away, t + 700000 + away, 7, t + 900 + away);
            add(b, NCCL, t + 700000 + away, t + all - 1000, 20, t + 1900 + away);
            t += all;
        }
        traces[r] = finish(b, r, 2);
    }
    struct knee_account account = account_of(traces, 2);
    struct knee_diagnosis d = diagnosis_of(&account);
    assert_int_equal(d.spread.steps, 200);
    assert_float_equal(d.spread.median_s, 1e-3, 1e-12);
    assert_float_equal(d.spread.p95_s, 1e-3, 1e-12);
    assert_float_equal(d.spread.worst_s, 2e-3, 1e-12);
    assert_int_equal(d.spread.worst, 77);
    assert_int_equal(d.spread.label, KNEE_HOST);
    assert_int_equal(account.ranks[d.spread.rank].rank, 1);
    assert_float_equal(d.spread.excess_s, 1e-3, 2e-6);
    assert_float_equal(d.spread.error_s, 1e-3 / 200, 1e-9); /* one of n steps longer by d: d / n */
    release_all(&account, traces, 2);
}

TEST(steps_from_the_repeating_collectives)
{
    struct knee_builder *b = builder();
    add(b, "ncclDevKernel_Broadcast", -1200, -1000, 20, KNEE_NO_TIME); /* weights, once */
    for (int64_t step = 0; step < 4; step++) { /* 3.7 steps: the fourth is cut */
        add(b, NCCL, 1000 * step, 1000 * step + 10, 20, KNEE_NO_TIME);
        add(b, "ncclDevKernel_AllGather_RING_LL(x)", 1000 * step + 20, 1000 * step + 30, 20,
            KNEE_NO_TIME);
        if (step < 3)
            add(b, NCCL, 1000 * step + 40, 1000 * step + 50, 20, KNEE_NO_TIME);
    }
    add(b, "gemm", 3600, 3700, 7, KNEE_NO_TIME);
    struct knee_trace trace = finish(b, 0, 1);
    struct knee_account account = account_of(&trace, 1);
    assert_int_equal(account.step_source, KNEE_STEPS_SEQUENCE);
    knee_account_release(&account);
    check_steps(trace, 3, 1000e-9);
}

/* What the account writes for Perfetto is read back to the same account. */
static bool append(void *ctx, const char *data, size_t size)
{
    struct source *s = ctx;
    char *grown = realloc((void *)(uintptr_t)s->data, s->length + size + 1);
    assert_non_null(grown);
    memcpy(grown + s->length, data, size);
    s->data = grown;
    s->length += size;
    return true;
}

TEST(a_written_trace_reads_back_the_same)
{
    struct knee_trace traces[] = {late_rank(0, 5000000), late_rank(1, 5000000)}, back;
    struct knee_account first = account_of(traces, 2);
    struct source text = {0};
    assert_true(knee_write_perfetto(&first, (struct knee_sink){append, &text}, NULL));
    assert_ok(knee_trace_read((struct knee_reader){source_read, &text}, "back.json", NULL, NULL,
                              &back, NULL));
    for (int k = 0; k < KNEE_LOSSES; k++)
        assert_int_equal(back.losses[k].count, 0);
    struct knee_account second = account_of(&back, 1);
    assert_int_equal(second.rank_count, 2);
    assert_int_equal(second.instances, first.instances);
    for (size_t r = 0; r < 2; r++) {
        assert_memory_equal(&first.ranks[r].ledger, &second.ranks[r].ledger,
                            sizeof first.ranks[r].ledger);
        assert_int_equal(first.ranks[r].run_count, second.ranks[r].run_count);
    }
    knee_account_release(&second);
    knee_account_release(&first);
    knee_trace_release(&back);
    free((void *)(uintptr_t)text.data);
    knee_trace_release(&traces[0]);
    knee_trace_release(&traces[1]);
}

/* Ranks whose steps lie at other times keep them, and their loads, in one file. */
TEST(steps_of_ranks_read_back_the_same)
{
    struct knee_trace traces[2], back;
    for (int64_t r = 0; r < 2; r++) {
        struct knee_builder *b = builder();
        for (int64_t i = 0; i < 3; i++) {
            int64_t t = 7000000 + 1000000 * i + 400000 * r;
            knee_builder_step(b, t, t + 1000000, 5 + i);
            knee_builder_load(b, -1, t, t + 50000 * (r + 1), false);
            add(b, "gemm", t + 200000, t + 500000, 7, t + 190000);
            add(b, "late", t + 900000, t + 1100000, 7, t + 890000);
        }
        traces[r] = finish(b, r, 2);
    }
    struct knee_account first = account_of(traces, 2);
    struct source text = {0};
    assert_true(knee_write_perfetto(&first, (struct knee_sink){append, &text}, NULL));
    assert_ok(knee_trace_read((struct knee_reader){source_read, &text}, "back.json", NULL, NULL,
                              &back, NULL));
    struct knee_account second = account_of(&back, 1);
    assert_int_equal(first.step_count, second.step_count);
    for (size_t i = 0; i < first.step_count; i++) {
        assert_int_equal(first.steps[i].number, second.steps[i].number);
        assert_memory_equal(&first.steps[i].ledger, &second.steps[i].ledger,
                            sizeof first.steps[i].ledger);
    }
    knee_account_release(&second);
    knee_account_release(&first);
    knee_trace_release(&back);
    free((void *)(uintptr_t)text.data);
    knee_trace_release(&traces[0]);
    knee_trace_release(&traces[1]);
}

/* ---- Which recordings belong together ---- */

static struct knee_trace recording(int64_t rank, int64_t world, int64_t start, int64_t first_step)
{
    struct knee_builder *b = builder();
    for (int64_t i = 0; i < 3; i++) {
        knee_builder_step(b, start + 1000000 * i, start + 1000000 * (i + 1), first_step + i);
        add(b, "gemm", start + 1000000 * i + 100, start + 1000000 * i + 500000, 7,
            start + 1000000 * i + 50);
        add(b, NCCL, start + 1000000 * i + 500000, start + 1000000 * i + 900000, 20,
            start + 1000000 * i + 60);
    }
    struct knee_trace trace = finish(b, rank, world);
    trace.rank_stated = true;
    return trace;
}

TEST(runs_are_told_apart)
{
    struct knee_trace traces[] = {
        recording(0, 2, 0, 5),        recording(1, 2, 300, 5), /* a run of two ranks ... */
        recording(0, 2, 90000000, 9), recording(0, 2, 0, 5),   /* its second cycle; a file twice */
        recording(1, 2, 80000000, 9), /* of another host: its clock is off by more than a window */
        recording(0, 4, 0, 5),        /* another world */
    };
    enum { COUNT = sizeof traces / sizeof *traces };
    struct knee_recording told[COUNT];
    size_t jobs = 0;
    static const size_t expected[COUNT] = {0, 0, 1, 0, 1, 2};
    assert_ok(knee_tell_recordings(traces, COUNT, NULL, told, &jobs, NULL));
    assert_int_equal(jobs, 3);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(told[i].job, expected[i]);
        assert_int_equal(told[i].same_as, i == 3 ? 0 : SIZE_MAX);
    }
    for (size_t i = 0; i < COUNT; i++)
        knee_trace_release(&traces[i]);
}

/* Rank 0 at steps 2 to 4 and rank 1 at steps 5 to 7: no clock is moved, nothing is matched. */
TEST(other_steps_are_not_matched)
{
    struct knee_trace traces[] = {recording(0, 2, 0, 2), recording(1, 2, 3000000, 5)};
    struct knee_account account = account_of(traces, 2);
    struct knee_diagnosis d = diagnosis_of(&account);
    assert_true(account.other_steps);
    assert_int_equal(account.instances + account.partial, 0);
    assert_int_equal(account.largest_shift_ns, 0);
    assert_false(account.ranks[0].split);
    assert_true(d.gaps & KNEE_GAP_OTHER_STEPS);
    release_all(&account, traces, 2);
}

/* ---- Hostile files ---- */

/* Kernels of ranks that take turns of 2 ms on one GPU, or have one each. A kernel that its turn
 * does not let end goes on in the next one. */
static bool kernels_take_turns(size_t ranks, bool one_gpu, int64_t device)
{
    enum { KERNELS = 300, TURN_NS = 2000000 };
    static struct knee_span spans[4][KERNELS];
    struct knee_rank sources[4];
    struct knee_rank_account rows[4];
    struct knee_trace trace = {.format = "kineto", .host = ""};
    uint64_t seed = 7 * ranks + one_gpu;
    for (size_t r = 0; r < ranks; r++) {
        int64_t at = 0; /* of the rank's turns, or its GPU */
        for (size_t i = 0; i < KERNELS; i++) {
            int64_t end = at + 1000 + (int64_t)((r ? 2e5 : 9e5) * chance(&seed)), ns[] = {at, end};
            for (int k = 0; k < 2 && one_gpu; k++)
                ns[k] += (ns[k] / TURN_NS) * TURN_NS * (int64_t)(ranks - 1) + TURN_NS * (int64_t)r;
            spans[r][i] =
                (struct knee_span){.kind = KNEE_SPAN_COMPUTE, .start_ns = ns[0], .end_ns = ns[1]};
            at = end;
        }
        sources[r] =
            (struct knee_rank){.device = r ? device : 0, .spans = spans[r], .span_count = KERNELS};
        rows[r] = (struct knee_rank_account){.source = &sources[r], .trace = &trace};
    }
    return knee_take_turns(&(struct knee_account){.ranks = rows, .rank_count = ranks});
}

TEST(ranks_on_one_gpu_start_kernels_in_turns)
{
    for (size_t ranks = 2; ranks <= 4; ranks++) {
        assert_true(kernels_take_turns(ranks, true, 0));
        assert_false(kernels_take_turns(ranks, false, 0)); /* CUDA_VISIBLE_DEVICES: all are 0 */
        assert_false(kernels_take_turns(ranks, true, 1));
    }
    assert_false(kernels_take_turns(1, true, 0));
}

/* Three kernels of 4e18 ns each would sum to more than 64 bits: no event is that long. And a
 * thousand of the longest that are let through: sums are held, labels still add up. */
TEST(sums_stay_in_64_bits)
{
    struct knee_trace trace =
        trace_of("{\"traceEvents\": [" K("ncclAllReduce", "0", "4000000000000000") ", " K(
            "ncclAllReduce", "1", "4000000000000000") ", " K("gemm", "2", "5") "]}");
    assert_int_equal(trace.losses[KNEE_LOSS_TIME].count, 2);
    assert_int_equal(spans_of(&trace), 1);
    knee_trace_release(&trace);
    struct knee_trace two[2];
    for (int64_t r = 0; r < 2; r++) {
        struct knee_builder *b = builder();
        for (int64_t i = 0; i < 1000; i++) {
            int64_t at = r ? KNEE_LAST_NS - KNEE_LONGEST_NS - i : KNEE_FIRST_NS + i;
            knee_builder_step(b, at, at + KNEE_LONGEST_NS, i);
            knee_builder_load(b, -1, at, at + KNEE_LONGEST_NS, false);
            add(b, NCCL, at, at + KNEE_LONGEST_NS, 20, at + 2);
        }
        add(b, "gemm", KNEE_LAST_NS - 5, KNEE_LAST_NS + 5, 20, KNEE_NO_TIME); /* too late */
        two[r] = finish(b, r, 2);
        assert_int_equal(two[r].losses[KNEE_LOSS_TIME].count, 1);
    }
    struct knee_account account = account_of(two, 2);
    diagnosis_of(&account);
    assert_true(account.transfer_ns >= 0 && account.ranks[0].load_ns > 0);
    for (size_t i = 0; i < account.collective_count; i++)
        assert_true(account.collectives[i].duration_s > 0);
    release_all(&account, two, 2);
}

TEST(names_are_found_again)
{
    struct knee_builder *b = builder();
    uint32_t nul = knee_builder_name(b, "a\0b", 3), word = knee_builder_name(b, "gemm", 4);
    assert_int_equal(knee_builder_name(b, "a\0b", 3), nul);
    assert_int_equal(knee_builder_name(b, "a?b", 3), nul);
    assert_int_not_equal(knee_builder_name(b, "gemmgemm", 8), word);
    assert_int_not_equal(knee_builder_name(b, "gem", 3), word);
    assert_int_equal(knee_builder_name(b, "gemm", 4), word);
    knee_builder_free(b);
}

/* A number of its own for every event: found by hash, and past 65536 counted as lost. */
TEST(devices_are_many_but_not_any_number)
{
    struct knee_builder *b = builder();
    uint32_t name = knee_builder_name(b, "gemm", 4);
    for (int64_t i = 0; i < 70000; i++)
        knee_builder_span(b, &(struct knee_gpu_work){i * 7919, i, i + 1, name, 7,
                                                     KNEE_NO_CORRELATION, false, NULL});
    OWNED(knee_trace) trace = finish(b, 0, 1);
    assert_int_equal(trace.rank_count, 65536);
    assert_int_equal(trace.losses[KNEE_LOSS_DEVICE].count, 70000 - 65536);
}

/* ---- Faults ---- */

#define FAULTY                                                                                     \
    "{\"traceEvents\": [" K("a", "1", "2") ", " K(NCCL, "5", "2") ", " K(                          \
        "ncclDevKernel_AllGather_RING_LL(x)", "8",                                                 \
        "2") ", {\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel_Generic(x)\", "     \
             "\"pid\": 0, \"tid\": 20, \"ts\": 11, "                                               \
             "\"dur\": 2, \"args\": {\"stream\": 20, \"correlation\": 5, \"Collective name\": "    \
             "\"allreduce\", \"Process Group Name\": "                                             \
             "\"0\"}}, {\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": "                      \
             "\"cudaLaunchKernel\", \"pid\": 1, \"tid\": 1, \"ts\": 3, "                           \
             "\"dur\": 1, \"args\": {\"correlation\": 5}}, {\"ph\": \"X\", \"cat\": "              \
             "\"user_annotation\", \"name\": "                                                     \
             "\"ProfilerStep#3\", \"pid\": 1, \"tid\": 1, \"ts\": 0, \"dur\": 10}]}"

/* Every allocation fails once in turn: no crash, no leak, outputs untouched. */
TEST(every_allocation_may_fail)
{
    FOR_EACH_FAILURE(f) {
        struct source source = {.data = FAULTY, .length = strlen(FAULTY)};
        struct knee_trace trace = {0}, no_trace = {0};
        struct knee_account account = {0}, no_account = {0};
        struct knee_diagnosis d;
        struct knee_job job;
        struct knee_err err;
        bool failed = true;
        memset(&d, 0, sizeof d);
        knee_job_init(&job);
        if (knee_trace_read((struct knee_reader){source_read, &source}, "x", NULL, &f.alloc, &trace,
                            &err)) {
            assert_int_equal(err.status, KNEE_SYSTEM);
            assert_memory_equal(&trace, &no_trace, sizeof trace);
        } else if (knee_account(&trace, 1, &f.alloc, &account, &err)) {
            assert_int_equal(err.status, KNEE_SYSTEM);
            assert_memory_equal(&account, &no_account, sizeof account);
        } else if (knee_diagnose(&account, &job, &f.alloc, &d, &err)) {
            assert_int_equal(err.status, KNEE_SYSTEM);
        } else {
            struct knee_trace_report report = {
                .traces = &trace, .trace_count = 1, .account = &account, .diagnosis = &d};
            struct knee_style style = {0};
            failed = false;
            for (int format = KNEE_TEXT; format <= KNEE_MARKDOWN; format++) {
                OWNED(knee_text) text = {.alloc = &f.alloc};
                knee_answer_write(&knee_trace_answer, &report, (enum knee_format)format, &style,
                                  &text);
                failed = failed || text.failed;
            }
        }
        knee_account_release(&account);
        knee_trace_release(&trace);
        assert_true(!failed || failing_met(&f));
    }
}

/* ---- Two accounts ---- */

/* Four ranks of one step each, of which one has more of a label than the others. */
static void make_side(struct knee_rank_account *ranks, const struct knee_trace *trace,
                      double wall_s, double host_s, double rank2_s, struct knee_account *account,
                      struct knee_diagnosis *d)
{
    static const struct knee_rank nothing;
    memset(account, 0, sizeof *account);
    memset(d, 0, sizeof *d);
    memset(ranks, 0, 4 * sizeof *ranks);
    for (size_t r = 0; r < 4; r++) {
        ranks[r].rank = 10 + (int64_t)r;
        ranks[r].trace = trace;
        ranks[r].source = &nothing;
        ranks[r].ledger.label_ns[KNEE_HOST] = (int64_t)(1e9 * (r == 2 ? rank2_s : host_s));
    }
    account->ranks = ranks;
    account->rank_count = 4;
    d->steps = 1;
    d->spread.error_s = NAN;
    d->step.wall_s = wall_s;
    d->step.label_s[KNEE_HOST] = (3 * host_s + rank2_s) / 4;
    d->step.label_s[KNEE_COMPUTE] = wall_s - d->step.label_s[KNEE_HOST];
}

TEST(a_comparison_says_what_moved)
{
    static struct knee_rank_account ranks[2][4];
    static struct knee_account before, after;
    static struct knee_diagnosis b, a;
    static struct knee_comparison c;
    static struct knee_trace trace;
    make_side(ranks[0], &trace, 1, 0.1, 0.1, &before, &b);
    make_side(ranks[1], &trace, 1.2, 0.1, 0.9, &after, &a);
    assert_ok(knee_compare((struct knee_judged_run){&before, &b},
                           (struct knee_judged_run){&after, &a}, NULL, &c, NULL));
    assert_int_equal(c.label, KNEE_HOST);
    assert_near(c.change, 0.2, 1e-12);
    assert_near(c.share_of_before, 0.2, 1e-12);
    assert_true(!c.as_before && c.significant && c.largest_rank == 2);
    assert_near(c.largest_s, 0.9, 1e-9);
    assert_ok(knee_compare((struct knee_judged_run){&after, &a},
                           (struct knee_judged_run){&before, &b}, NULL, &c, NULL));
    assert_true(c.change < 0 && c.largest_rank == 2); /* of the longer side */
    make_side(ranks[1], &trace, 1.004, 0.104, 0.104, &after, &a);
    assert_ok(knee_compare((struct knee_judged_run){&before, &b},
                           (struct knee_judged_run){&after, &a}, NULL, &c, NULL));
    assert_true(c.as_before && c.largest_rank == SIZE_MAX);
    a.spread.error_s = b.spread.error_s = 0.003; /* twice the root of both squares: 8.5 ms */
    assert_ok(knee_compare((struct knee_judged_run){&before, &b},
                           (struct knee_judged_run){&after, &a}, NULL, &c, NULL));
    assert_near(c.chance_s, 2 * 0.003 * sqrt(2), 1e-12);
    assert_true(!c.significant);
}
