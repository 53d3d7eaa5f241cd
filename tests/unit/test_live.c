/* SPDX-License-Identifier: MIT */
/* The live agent's parts: steps found in what is enqueued, a sampled step as a trace, lines read
 * back and joined. What it does inside a process is tested by
 * tests/measure/live and agent. */
#include "trace_help.h"

#include "live/live_agent.h"
#include "read/live/live_read.h"

#include <inttypes.h>

/* ---- Steps ---- */

struct feed {
    struct live_period *period;
    uint64_t seq[4];
    int64_t now_ns;
    size_t boundaries;
    struct live_boundary first, last;
};

static bool feed_one(struct feed *f, const char *op, uint64_t count, uint16_t comm)
{
    struct live_event event = {.kind = LIVE_ENQUEUED,
                               .op = live_op_of(op),
                               .type = live_type_of("ncclFloat32"),
                               .comm = comm,
                               .count = count,
                               .seq = f->seq[comm]++,
                               .at_ns = f->now_ns += 1000};
    struct live_boundary boundary;
    if (!live_period_take(f->period, &event, &boundary))
        return false;
    if (!f->boundaries++)
        f->first = boundary;
    f->last = boundary;
    return true;
}

static struct feed feed_new(void)
{
    return (struct feed){.period = live_period_new()};
}

static void ddp_step(struct feed *f)
{
    for (uint64_t i = 0; i < 5; i++)
        feed_one(f, "AllReduce", 1000000 + i, 0);
}

TEST(test_steps_of_ddp)
{
    struct feed f = feed_new();
    for (int i = 0; i < 50; i++)
        ddp_step(&f);
    assert_int_equal(live_period_length(f.period), 5);
    assert_true(f.boundaries > 40);
    assert_int_equal(f.last.number, 49); /* from the place on the communicator */
    assert_int_equal(f.last.number - f.first.number, f.boundaries - 1);
    live_period_free(f.period);
}

/* Sixty layers gather alike: the period is at first one gather, and mended by the first break. */
TEST(test_steps_of_fsdp)
{
    struct feed f = feed_new();
    size_t late = 0;
    for (int step = 0; step < 40; step++) {
        size_t before = f.boundaries;
        for (int i = 0; i < 60; i++)
            feed_one(&f, "AllGather", 500000, 0);
        for (int i = 0; i < 60; i++)
            feed_one(&f, "ReduceScatter", 500000, 0);
        late += step >= 10 && f.boundaries - before == 1;
    }
    assert_int_equal(live_period_length(f.period), 120);
    assert_int_equal(late, 30);
    live_period_free(f.period);
}

/* Losses, norms and barriers come when they like; steps stay. */
TEST(test_small_collectives_do_not_matter)
{
    struct feed f = feed_new();
    size_t before = 0;
    for (int step = 0; step < 100; step++) {
        before = f.boundaries;
        ddp_step(&f);
        if (step % 7 == 3)
            feed_one(&f, "AllReduce", 1, 0);
        if (step >= 20)
            assert_int_equal(f.boundaries - before, 1);
    }
    live_period_free(f.period);
}

/* Two ranks of one communicator, of which one also has another: their numbers agree. */
TEST(test_ranks_agree_on_numbers)
{
    struct feed a = feed_new(), b = feed_new();
    for (int step = 0; step < 60; step++) {
        ddp_step(&a);
        ddp_step(&b);
        if (step > 20)
            assert_int_equal(a.last.number, b.last.number);
    }
    live_period_free(a.period);
    live_period_free(b.period);
}

TEST(test_another_phase_of_the_job)
{
    struct feed f = feed_new();
    for (int step = 0; step < 40; step++)
        ddp_step(&f);
    int64_t number = f.last.number;
    for (int step = 0; step < 100; step++) /* evaluation, say */
        feed_one(&f, "AllGather", 7000, 0);
    for (int step = 0; step < 40; step++)
        ddp_step(&f);
    assert_int_equal(live_period_length(f.period), 5);
    assert_true(f.last.number > number); /* numbers never come twice */
    live_period_free(f.period);
}

/* ---- A sampled step ---- */

/* Calls of a rank without a GPU: work, then two all-reduces, in every step; rank 1 works longer. */
static struct knee_text sample_of(int rank, int64_t work_ns, size_t known)
{
    enum { CALLS = 6 };
    static struct live_event calls[2][CALLS];
    uint16_t comm = live_comm_row(0x77, rank, 2);
    int64_t at_ns = INT64_C(1700000000000000000);
    struct live_about about = {.rank = rank, .world = 2, .source = LIVE_FROM_MPI};
    struct live_sample sample = {.calls = calls[rank], .call_count = known};
    struct knee_text text = {0};
    for (size_t i = 0; i < CALLS; i++) {
        int64_t work = i % 2 ? 100000 : work_ns, meet = i % 2 ? 100000 : 3000000;
        calls[rank][i] = (struct live_event){.kind = LIVE_RAN,
                                             .op = live_op_of("AllReduce"),
                                             .comm = comm,
                                             .peer = -1,
                                             .count = 1 << 20,
                                             .seq = 10 + i,
                                             .at_ns = at_ns + work,
                                             .dur_ns = meet - work + 400000};
        if (i == 2)
            sample.start = (struct live_boundary){7, at_ns + work, comm, 12};
        if (i == 4)
            sample.end = (struct live_boundary){8, at_ns + work, comm, 14};
        at_ns += meet + 400000;
    }
    live_trace_write(&sample, &about, &text);
    assert_false(text.failed);
    return text;
}

/* The ring's labels are those of knee trace on the file; they sum to the window; and all ranks
 * together show the wait that a rank alone cannot. */
TEST(test_ring_and_trace_give_one_step)
{
    struct knee_text texts[2] = {sample_of(0, 1000000, 6), sample_of(1, 2500000, 6)};
    struct knee_trace traces[2];
    struct knee_account account;
    struct knee_err err;
    for (int r = 0; r < 2; r++) {
        struct live_labels labels = {0};
        int64_t sum = 0;
        live_trace_label(&texts[r], 7, &labels);
        assert_true(labels.known);
        for (int i = 0; i < KNEE_LABELS; i++)
            sum += labels.label_ns[i];
        assert_int_equal(sum, labels.window_ns);
        assert_ok(read_bytes(texts[r].data, texts[r].length, "step.json", &traces[r], &err));
        assert_int_equal(traces[r].rank, r);
        assert_ok(knee_account(&traces[r], 1, NULL, &account, &err));
        bool found = false;
        for (size_t i = 0; i < account.step_count; i++) {
            if (account.steps[i].number != 7)
                continue;
            found = true;
            assert_int_equal(account.steps[i].ledger.window_ns, labels.window_ns);
            for (int k = 0; k < KNEE_LABELS; k++)
                assert_int_equal(account.steps[i].ledger.label_ns[k], labels.label_ns[k]);
        }
        assert_true(found);
        knee_account_release(&account);
    }
    assert_ok(knee_account(traces, 2, NULL, &account, &err));
    assert_true(account.instances >= 2);
    assert_int_equal(account.stragglers[0].rank, 1);
    for (size_t i = 0; i < account.step_count; i++)
        if (account.steps[i].number == 7 && account.steps[i].rank == 0)
            assert_near((double)account.steps[i].ledger.label_ns[KNEE_WAIT], 1500000, 2);
    knee_account_release(&account);
    for (int r = 0; r < 2; r++) {
        knee_trace_release(&traces[r]);
        knee_text_release(&texts[r]);
    }
}

/* A rank that waits in the call that ends its step has not told of it when the step is written: its
 * work before that call counts all the same. */
TEST(test_work_before_a_call_that_still_runs)
{
    struct knee_text texts[2] = {sample_of(0, 1000000, 6), sample_of(0, 1000000, 4)};
    struct live_labels labels[2] = {{0}};
    for (int i = 0; i < 2; i++) {
        live_trace_label(&texts[i], 7, &labels[i]);
        assert_true(labels[i].known);
        knee_text_release(&texts[i]);
    }
    assert_true(labels[0].label_ns[KNEE_COMPUTE] > 1000000);
    for (int k = 0; k < KNEE_LABELS; k++)
        assert_int_equal(labels[1].label_ns[k], labels[0].label_ns[k]);
}

/*
 * Two ranks on one H200 (2026-11-15): a graph with an all-reduce, then one more. NCCL announces the
 * graph's when the graph comes to it: in the middle step after the next launch. The calls before
 * the first kernel were launched before the recording began.
 */
static const struct {
    double launch_us, run_us, took_us;
} graph_kernels[] = {
    {-27042.2, -11567.0, 6051.9}, {-26328.5, -5512.2, 5079.7}, {-360.5, 15420.2, 5778.5},
    {0.0, 21202.5, 6996.5},       {28286.0, 40003.2, 5589.1},  {28643.2, 45596.5, 4846.1},
};
static const double graph_calls_us[] = {-51537.0, -51441.0, -26434.0, -26312.5,
                                        106.5,    155.8,    28552.0,  28662.8};
enum { GRAPH_KERNELS = 6, GRAPH_CALLS = 8 };

static int64_t graph_ns(double us)
{
    return INT64_C(1794783236670000000) + (int64_t)(us * 1e3);
}

/* As the agent writes it; `late_us`: so much later the second of the middle step is announced;
 * `before`: so many kernels were launched before the recording began. */
static struct knee_text graph_sample(double late_us, size_t before)
{
    struct live_record records[2 * GRAPH_KERNELS];
    struct live_event calls[GRAPH_CALLS];
    uint16_t comm = live_comm_row(0x5022, 0, 2);
    const char *const kernel = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", *launch = "cudaLaunch";
    for (size_t i = 0; i < GRAPH_KERNELS; i++) {
        int64_t launched = graph_ns(graph_kernels[i].launch_us);
        int64_t ran = graph_ns(graph_kernels[i].run_us);
        records[2 * i] = (struct live_record){.start_ns = launched,
                                              .end_ns = launched + 15000,
                                              .correlation = (uint32_t)(i < before ? 99 : i + 1),
                                              .name = live_cupti_name_row(launch, launch),
                                              .kind = LIVE_HOST_CALL};
        records[2 * i + 1] =
            (struct live_record){.start_ns = ran,
                                 .end_ns = ran + (int64_t)(graph_kernels[i].took_us * 1e3),
                                 .correlation = (uint32_t)i + 1,
                                 .name = live_cupti_name_row(kernel, kernel),
                                 .stream = 7,
                                 .kind = LIVE_KERNEL};
    }
    for (size_t i = 0; i < GRAPH_CALLS; i++)
        calls[i] = (struct live_event){.op = live_op_of("AllReduce"),
                                       .comm = comm,
                                       .count = i % 2 ? 1 << 20 : 1 << 22,
                                       .seq = 897 + i,
                                       .at_ns = graph_ns(graph_calls_us[i])};
    calls[5].at_ns += (int64_t)(late_us * 1e3);
    struct live_about about = {.rank = 0, .world = 2, .source = LIVE_FROM_CUDA};
    struct live_sample sample = {.start = {600, calls[4].at_ns, comm, 901},
                                 .end = {601, calls[6].at_ns, comm, 903},
                                 .calls = calls,
                                 .call_count = GRAPH_CALLS,
                                 .recording = {records, 2 * GRAPH_KERNELS, 0}};
    struct knee_text text = {0};
    live_trace_write(&sample, &about, &text);
    assert_false(text.failed);
    return text;
}

TEST(test_collectives_of_graphs_meet_by_order)
{
    for (size_t before = 0; before < 2; before++) {
        OWNED(knee_text) text = graph_sample(0, before);
        struct live_labels labels = {0};
        const char *at = text.data;
        for (size_t seq = 899 + before; seq <= 904; seq++) {
            char word[32];
            snprintf(word, sizeof word, "\"Seq\": %zu}", seq);
            at = strstr(at, word); /* kernels stand in the order of their launches */
            assert_non_null(at);
        }
        live_trace_label(&text, 600, &labels);
        assert_true(labels.known);
        assert_near((double)labels.window_ns, (28286.0 + 360.5) * 1e3, 10);
    }
}

/* No order holds: by time, and a kernel whose call nobody knows has none. */
TEST(test_calls_without_an_order_meet_by_time)
{
    OWNED(knee_text) text = graph_sample(40000, 0);
    int named = 0;
    for (const char *at = text.data; (at = strstr(at, "\"Seq\": ")); at++)
        named++;
    assert_in_range(named, 3, GRAPH_KERNELS - 1);
}

/* ---- Lines ---- */

static const char step_line[] = "{\"t_ns\": 1794769847345814268, \"step\": 136, \"steps\": 1, "
                                "\"step_s\": 0.020392058, \"calls\": 4, "
                                "\"comm\": \"abc0\", \"seq\": 544, \"sampled\": true, \"trace\": "
                                "\"step-000136.json\", \"compute_s\": 0.006, "
                                "\"idle_s\": 0.5, \"throttle\": 18446744073709551615, \"new\": [1, "
                                "2], \"newer\": \"x\\\"y\"}\n";

TEST(test_lines_are_read)
{
    struct knee_live_rank rank;
    struct knee_err err;
    char text[4096];
    knee_live_init(&rank, NULL);
    snprintf(text, sizeof text, "%s{\"t_ns\": 12x}\n\n%s{\"t_ns\": 17947", step_line, step_line);
    assert_ok(knee_live_read_steps(&rank, text, strlen(text), &err));
    assert_int_equal(rank.step_count, 2);
    assert_int_equal(rank.damaged, 3);
    const struct knee_live_step *s = &rank.steps[1];
    assert_int_equal(s->t_ns, INT64_C(1794769847345814268)); /* to the nanosecond */
    assert_int_equal(s->comm, 0xabc0);
    assert_true(s->throttle == UINT64_MAX);
    assert_int_equal(s->sampled, 1);
    assert_string_equal(s->trace, "step-000136.json");
    assert_near(s->label_s[KNEE_COMPUTE], 0.006, 0);
    assert_near(s->label_s[KNEE_IDLE], 0.5, 0);
    assert_true(isnan(s->energy_j) && s->sm_mhz == -1);
    assert_int_equal(knee_live_read_about(&rank, "{}", 2, &err), KNEE_INPUT);
    knee_live_release(&rank);
    knee_live_release(&rank);
}

static void add_call(struct knee_live_rank *rank, int n, int r, int64_t seq, int64_t dur_ns)
{
    char line[256];
    struct knee_err err;
    snprintf(line, sizeof line,
             "{\"comm\": \"f00\", \"seq\": %" PRId64
             ", \"op\": \"AllReduce\", \"bytes\": 4, \"start_ns\": 5, \"dur_ns\": %" PRId64
             ", \"step\": %" PRId64 ", \"rank\": %d, \"n\": %d}\n",
             seq, dur_ns, seq / 2, r, n);
    assert_ok(knee_live_read_calls(rank, line, strlen(line), &err));
}

/* Truth: each rank comes at its own time, all end together. The join sees only how long each was in
 * it, and says who came last and how long the others waited. */
TEST(test_join_finds_the_truth)
{
    enum { RANKS = 5, CALLS = 200 };
    struct knee_live_rank ranks[RANKS];
    struct knee_live_joined joined;
    struct knee_err err;
    uint64_t seed = 3;
    int64_t truth_ns[RANKS] = {0};
    size_t last[RANKS] = {0};
    for (int r = 0; r < RANKS; r++)
        knee_live_init(&ranks[r], NULL);
    for (int c = 0; c < CALLS; c++) {
        int64_t came_ns[RANKS], latest_ns = 0, wire_ns = 1000 + (int64_t)(1e6 * chance(&seed));
        int who = 0;
        for (int r = 0; r < RANKS; r++) {
            came_ns[r] = (int64_t)(1e6 * chance(&seed)) + (r == 3 ? 800000 : 0);
            who = came_ns[r] > latest_ns ? r : who;
            latest_ns = came_ns[r] > latest_ns ? came_ns[r] : latest_ns;
        }
        last[who]++;
        for (int r = 0; r < RANKS; r++) {
            truth_ns[r] += latest_ns - came_ns[r];
            add_call(&ranks[r], RANKS, r, c, latest_ns - came_ns[r] + wire_ns);
        }
    }
    add_call(&ranks[0], RANKS, 0, CALLS, 5); /* the others died in it */
    add_call(&ranks[1], RANKS, 1, CALLS, -1);
    assert_ok(knee_live_join(ranks, RANKS, NULL, &joined, &err));
    assert_int_equal(joined.count, CALLS);
    assert_int_equal(joined.partial, 1);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(joined.wait_ns[r], truth_ns[r]);
        assert_int_equal(joined.last[r], last[r]);
    }
    assert_int_equal(ranks[0].calls[CALLS].wait_ns, -1);
    knee_live_joined_release(&joined);
    for (int r = 0; r < RANKS; r++)
        knee_live_release(&ranks[r]);
}
