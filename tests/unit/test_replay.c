/* SPDX-License-Identifier: MIT */
/*
 * Replay against a second method: a small model of a DDP job that writes its own traces. The same
 * model with one thing changed says what the replay of the unchanged trace must say. And the laws:
 * no change is no change, a free network and even workers are never slower, changes commute, and a
 * timeline that is written and read back has the same step.
 */
#include "unit.h"

#include "judge/judge.h"
#include "knee_out.h"
#include "knee_replay.h"
#include "replay/replay_graph.h"
#include "timeline/builder.h"
#include "timelines.h"

/* ---- A job that writes its traces ---- */

enum { RANKS = 4, LAYERS = 6, STEPS = 3, LATENCY = 6000, CALL = 4000 };

struct job {
    int ranks;
    double batch;           /* of kernels of forward and backward */
    int64_t kernel, apply;  /* of a layer; of the optimizer */
    int64_t host;           /* between two calls */
    int64_t alpha, per_mb;  /* of an all-reduce */
    int64_t mb;             /* of a layer's gradients */
    int64_t sleep[RANKS];   /* before the backward pass */
    int64_t load;           /* before the forward pass */
    bool ahead;             /* worker processes load meanwhile, and more of them could */
    int64_t starved[RANKS]; /* longer than that */
    bool never_waits;       /* the host runs ahead and waits for nothing */
    double slow[RANKS];     /* kernels of this rank */
    bool silent;            /* the profiler does not record that the host waits */
    int64_t wakes;          /* how late the host is back from that wait */
    int buckets; /* of equal size, and no scopes distinguish the passes; 0: one a layer */
};

static struct job job_like(uint64_t *seed)
{
    struct job job = {.ranks = 2 + upto(seed, RANKS - 2), .batch = 1};
    job.kernel = 50000 + upto(seed, 900000);
    job.apply = 30000 + upto(seed, 100000);
    job.host = 3000 + upto(seed, 60000);
    job.alpha = 20000 + upto(seed, 100000);
    job.per_mb = upto(seed, 60000);
    job.mb = 1 + upto(seed, 40);
    for (int r = 0; r < RANKS; r++)
        job.slow[r] = 1;
    return job;
}

/* One rank while it is written. */
struct rank {
    struct knee_builder *builder;
    int64_t host, gpu, wire; /* until when each is busy */
    uint64_t correlation;
};

static uint32_t named(struct rank *r, const char *name)
{
    return knee_builder_name(r->builder, name, strlen(name));
}

/* The host calls; the work starts when it has come and the stream is free. */
static int64_t call(struct rank *r, const struct job *job, int thread, const char *what)
{
    r->host += job->host;
    knee_builder_host(r->builder, r->host, r->host + CALL, thread, KNEE_HOST_LAUNCH,
                      named(r, what));
    knee_builder_launch(r->builder, r->host, r->host + CALL, thread, ++r->correlation);
    r->host += CALL;
    return r->host - CALL + LATENCY;
}

static void compute(struct rank *r, const struct job *job, int thread, const char *name,
                    int64_t took)
{
    int64_t ready = call(r, job, thread, "cudaLaunchKernel");
    int64_t start = ready > r->gpu ? ready : r->gpu;
    r->gpu = start + took;
    knee_builder_span(r->builder, &(struct knee_gpu_work){0, start, r->gpu, named(r, name), 7,
                                                          r->correlation, false, NULL});
}

static int64_t pass_ns(const struct job *job, int rank)
{
    double scaled = 2000 + job->batch * ((double)job->kernel * job->slow[rank] - 2000);
    return (int64_t)rint(scaled);
}

static void forward(struct rank *r, const struct job *job, int rank)
{
    int64_t load = job->load + job->starved[rank];
    if (load) {
        knee_builder_load(r->builder, -1, r->host, r->host + load, job->ahead);
        r->host += load;
    }
    for (int l = 0; l < LAYERS; l++)
        compute(r, job, 1, "gemm_forward", pass_ns(job, rank));
    r->host += job->sleep[rank];
}

/* A scope around what is called until it is closed. */
static void scope(struct rank *r, const struct job *job, int thread, const char *name, int64_t from)
{
    if (!job->buckets)
        knee_builder_host(r->builder, from, r->host + 1, thread, KNEE_HOST_SCOPE, named(r, name));
}

static void reduce(struct rank *ranks, const struct job *job, int layer, int step)
{
    int64_t ready[RANKS], last = 0;
    for (int k = 0; k < job->ranks; k++) {
        struct rank *r = &ranks[k];
        int64_t from = r->host;
        ready[k] = call(r, job, 2, "cuLaunchKernelEx");
        ready[k] = r->gpu > ready[k] ? r->gpu : ready[k];
        ready[k] = r->wire > ready[k] ? r->wire : ready[k];
        last = ready[k] > last ? ready[k] : last;
        scope(r, job, 2, "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
              from);
        scope(r, job, 2, "record_param_comms", from + 1);
    }
    int64_t bytes = (layer ? job->mb : 20 * job->mb) * 1000000 / 20;
    if (job->buckets)
        bytes = LAYERS / job->buckets * job->mb * 1000000;
    int64_t took = job->alpha + bytes / 1000 * job->per_mb / 1000;
    for (int k = 0; k < job->ranks; k++) {
        struct knee_call_facts facts = KNEE_CALL_UNKNOWN;
        struct rank *r = &ranks[k];
        facts.op = KNEE_OP_ALL_REDUCE;
        facts.bytes = bytes;
        facts.dtype_bytes = 4;
        facts.group_size = job->ranks;
        facts.sequence = step * LAYERS + layer;
        facts.group = named(r, "0") + 1;
        r->wire = last + took;
        knee_builder_span(
            r->builder, &(struct knee_gpu_work){0, ready[k], r->wire,
                                                named(r, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
                                                16, r->correlation, false, &facts});
    }
}

static void backward(struct rank *ranks, const struct job *job, int step)
{
    for (int l = 0; l < LAYERS; l++) {
        for (int k = 0; k < job->ranks; k++) {
            int64_t from = ranks[k].host;
            compute(&ranks[k], job, 2, "gemm_backward", (job->buckets ? 2 : 1) * pass_ns(job, k));
            scope(&ranks[k], job, 2, "autograd::engine::evaluate_function: AddmmBackward0", from);
        }
        if (!job->buckets || (l + 1) % (LAYERS / job->buckets) == 0)
            reduce(ranks, job, l, step);
    }
}

/* The stream waits for every all-reduce, then the optimizer runs, then the host waits. */
static void finish(struct rank *r, const struct job *job, int rank)
{
    for (int l = 0; l < (job->buckets ? job->buckets : LAYERS); l++) {
        knee_builder_host(r->builder, r->host, r->host + 1, 2, KNEE_HOST_WAIT,
                          named(r, "cudaStreamWaitEvent"));
        r->host += 1;
    }
    r->gpu = r->wire > r->gpu ? r->wire : r->gpu;
    int64_t from = r->host;
    compute(r, job, 1, "sgd", (int64_t)rint((double)job->apply * job->slow[rank]));
    scope(r, job, 1, "Optimizer.step#SGD.step", from);
    if (job->never_waits)
        return;
    int64_t start = r->host + job->host, done = r->gpu > r->wire ? r->gpu : r->wire;
    int64_t end = start + 2000 > done + 3000 ? start + 2000 : done + 3000;
    end += job->wakes;
    if (!job->silent)
        knee_builder_host(r->builder, start, end, 1, KNEE_HOST_SYNC,
                          named(r, "cudaDeviceSynchronize"));
    r->host = end;
}

struct recording {
    struct knee_trace traces[RANKS];
    struct knee_account account;
};

static void recording_release(struct recording *all)
{
    knee_account_release(&all->account);
    for (int r = 0; r < RANKS; r++)
        knee_trace_release(&all->traces[r]);
}

/* The account points into the traces, so that a recording must not be moved. */
static void record(const struct job *job, struct recording *out)
{
    struct rank ranks[RANKS] = {{0}};
    struct knee_err err;
    memset(out, 0, sizeof *out);
    for (int k = 0; k < job->ranks; k++) {
        ranks[k].builder = knee_builder_new(NULL, NULL);
        ranks[k].host = ranks[k].gpu = ranks[k].wire = 1000000;
    }
    for (int step = 0; step < STEPS; step++) {
        int64_t from[RANKS];
        for (int k = 0; k < job->ranks; k++) {
            from[k] = ranks[k].host;
            forward(&ranks[k], job, k);
        }
        backward(ranks, job, step);
        for (int k = 0; k < job->ranks; k++) {
            finish(&ranks[k], job, k);
            knee_builder_step(ranks[k].builder, from[k], ranks[k].host, step);
        }
    }
    for (int k = 0; k < job->ranks; k++) {
        struct knee_trace *trace = &out->traces[k];
        *trace = (struct knee_trace){.format = "kineto", .rank = k, .world_size = job->ranks};
        trace->file = strdup("made");
        assert_ok(knee_builder_finish(ranks[k].builder, trace, &err));
        trace->ranks[0].device = k;
        knee_builder_free(ranks[k].builder);
    }
    assert_ok(knee_account(out->traces, (size_t)job->ranks, NULL, &out->account, &err));
}

/* "key value key value ..."; a switch has the value on. */
static struct knee_changes changes_of(const char *words)
{
    struct knee_changes changes;
    knee_changes_init(&changes);
    set_words(&knee_change_keys, &changes, words);
    return changes;
}

static struct knee_replay replay(const struct recording *all, const char *words)
{
    struct knee_changes changes = changes_of(words);
    struct knee_replay answer;
    struct knee_err err;
    if (knee_replay(&all->account, &changes, NULL, &answer, &err))
        fail_msg("%s: %s", words, err.what);
    return answer;
}

/* The mean of complete steps, over ranks. */
static double mean_step(const struct knee_account *account)
{
    double sum = 0;
    for (size_t r = 0; r < account->rank_count; r++) {
        double steps = 0, all = 0;
        for (size_t i = 0; i < account->step_count; i++) {
            const struct knee_step_account *step = &account->steps[i];
            if (step->rank != r || !step->complete)
                continue;
            all += 1e-9 * (double)step->ledger.window_ns;
            steps++;
        }
        sum += all / steps / (double)account->rank_count;
    }
    return sum;
}

/* The step of a job by the model itself. */
static double step_of(const struct job *job)
{
    struct recording all;
    record(job, &all);
    double step = mean_step(&all.account);
    recording_release(&all);
    return step;
}

/* ---- No change is no change ---- */

TEST(unchanged_is_measured)
{
    uint64_t seed = 1;
    for (int i = 0; i < 60; i++) {
        struct job job = job_like(&seed);
        job.sleep[upto(&seed, job.ranks - 1)] = upto(&seed, 1) * 2000000;
        OWNED(recording) all;
        record(&job, &all);
        OWNED(knee_graph) graph;
        struct knee_replay_times times;
        struct knee_err err;
        assert_ok(knee_graph_init(&graph, &all.account, NULL, &err));
        assert_ok(knee_graph_run(&graph, &times, &err));
        for (size_t n = 0; n < graph.count; n++) {
            assert_int_equal(times.start_ns[n], graph.nodes[n].start_ns);
            assert_int_equal(times.end_ns[n], graph.nodes[n].end_ns);
        }
        assert_int_equal(graph.unexplained_ns, 0); /* the edges are all found */
        assert_int_equal(graph.unmet, 0);
        knee_replay_times_release(&times, NULL);
    }
}

TEST(nothing_changes_nothing)
{
    static const char *const words[] = {"scale gemm=1", "network 1x", "batch 1x", "accumulate 1",
                                        "sync-every 1"};
    uint64_t seed = 2;
    for (int i = 0; i < 20; i++) {
        struct job job = job_like(&seed);
        OWNED(recording) all;
        record(&job, &all);
        for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
            struct knee_replay answer = replay(&all, words[w]);
            assert_string_equal(answer.rows[0].refused, "");
            assert_true(answer.all.step_s == answer.replayed_step_s);
            assert_true(answer.replayed_step_s == answer.measured_step_s);
        }
    }
}

/* ---- Against the model with the change ---- */

static void follows_the_model(const char *words, const struct job *before, const struct job *after,
                              double tolerance)
{
    OWNED(recording) all;
    record(before, &all);
    struct knee_replay answer = replay(&all, words);
    double truth = step_of(after);
    if (answer.rows[0].refused[0])
        fail_msg("%s: %s", words, answer.rows[0].refused);
    if (!(fabs(answer.all.step_s / truth - 1) <= tolerance))
        fail_msg("%s: %.9f, not %.9f (before: %.9f)", words, answer.all.step_s, truth,
                 answer.measured_step_s);
    assert_true(answer.all.low_s <= truth && truth <= answer.all.high_s);
}

/* Waits that are not recorded show as pauses, on a busy machine too, and after the last step. */
TEST(pauses_are_waits)
{
    uint64_t seed = 21;
    for (int i = 0; i < 20; i++) {
        struct job job = job_like(&seed), after;
        job.silent = true;
        job.alpha = 20000000;
        job.wakes = upto(&seed, 2000000);
        after = job;
        after.alpha = after.per_mb = 0;
        job.kernel = after.kernel = 10000000;
        follows_the_model("network free", &job, &after, 0.01);
    }
}

TEST(changes_come_true)
{
    uint64_t seed = 3;
    for (int i = 0; i < 60; i++) {
        struct job job = job_like(&seed), after = job;
        after.alpha = after.per_mb = 0;
        follows_the_model("network free", &job, &after, 1e-9);
        after = job;
        after.kernel /= 2;
        job.kernel = 2 * after.kernel;
        follows_the_model("scale gemm=0.5", &job, &after, 1e-6);
        after = job;
        after.batch = 2;
        follows_the_model("batch 2x", &job, &after, 1e-6);
        after = job;
        job.load = 3000000 + upto(&seed, 3000000);
        after.load = 100000;
        job.ahead = i % 2;
        if (job.ahead || step_of(&after) > 1e-9 * (double)job.load) /* else loading takes it */
            follows_the_model("loader-ahead on", &job, &after, 1e-9);
    }
}

TEST(late_ranks_are_found)
{
    uint64_t seed = 4;
    for (int i = 0; i < 60; i++) {
        struct job even = job_like(&seed), late = even;
        int who = upto(&seed, even.ranks - 1);
        late.sleep[who] = 2000000 + upto(&seed, 20000000);
        follows_the_model("even on", &late, &even, 1e-9);
        late = even;
        late.slow[who] = 1.5;
        follows_the_model("even on", &late, &even, 1e-5);
    }
}

/* A rank whose batches come late, beside others that load as quickly as ever. */
TEST(starved_ranks_are_late)
{
    uint64_t seed = 31;
    for (int i = 0; i < 60; i++) {
        struct job even = job_like(&seed), late;
        even.load = upto(&seed, 1) * 2000000;
        even.silent = upto(&seed, 1);
        late = even;
        late.starved[upto(&seed, even.ranks - 1)] = 2000000 + upto(&seed, 5000000);
        follows_the_model("even on", &late, &even, 1e-6);
    }
}

/* A host that waits for nothing and hands over kernels more slowly than they run: the start of the
 * recording is the one wait there is. */
TEST(hosts_that_never_wait)
{
    uint64_t seed = 32;
    for (int i = 0; i < 40; i++) {
        struct job job = job_like(&seed);
        OWNED(recording) all;
        job.never_waits = true;
        job.kernel = 2000 + upto(&seed, 3000);
        job.apply = 2000;
        job.alpha = job.per_mb = 0;
        job.host = 30000 + upto(&seed, 60000);
        job.load = upto(&seed, 1) * 300000;
        record(&job, &all);
        struct knee_replay answer = replay(&all, "no-host-gaps on");
        double busy = 1e-9 * (double)(2 * LAYERS * job.kernel + job.apply);
        double least = fmax(fmax(busy, 1e-9 * (double)job.load), answer.replayed_step_s / 20);
        assert_true(answer.all.step_s >= 0.999 * least);
        assert_true(answer.all.step_s <= 1.5 * (busy + 1e-9 * (double)job.load) + 1e-4);
    }
}

/* A profiler makes the host slower; with the step measured without it changes are as they are on
 * the faster host. */
TEST(measured_steps_set_the_pace)
{
    uint64_t seed = 33;
    for (int i = 0; i < 20; i++) {
        struct job job = job_like(&seed), recorded, after;
        job.never_waits = true;
        job.kernel = 5000;
        job.alpha = 2000 + upto(&seed, 2000);
        job.per_mb = 0;
        job.host = 20000 + upto(&seed, 20000);
        recorded = after = job;
        recorded.host = 2 * job.host + CALL;
        after.alpha = after.per_mb = 0;
        char words[64];
        snprintf(words, sizeof words, "step-time %.9fs network free", step_of(&job));
        follows_the_model(words, &recorded, &after, 0.03);
    }
}

/* Half the bytes: alpha + beta S / 2, where the recording shows alpha by a small all-reduce. */
TEST(sizes_are_priced)
{
    uint64_t seed = 5;
    for (int i = 0; i < 40; i++) {
        struct job job = job_like(&seed), after = job;
        after.per_mb /= 2;
        job.per_mb = 2 * after.per_mb;
        OWNED(recording) all;
        record(&job, &all);
        struct knee_replay answer = replay(&all, "wire bf16");
        double truth = step_of(&after);
        /* casting costs a little: three passes over the gradients at 1 TB/s, and two kernels */
        double casting = LAYERS * (3e-6 * (double)job.mb + 10e-6);
        assert_true(answer.all.low_s - casting <= truth && truth <= answer.all.high_s);
        assert_false(answer.all.training_changes);
    }
}

/* ---- Laws ---- */

TEST(never_slower)
{
    static const char *const words[] = {
        "network free",    "network 2x",           "even on",
        "no-host-gaps on", "network free even on", "overlap on even on"};
    uint64_t seed = 6;
    for (int i = 0; i < 40; i++) {
        struct job job = job_like(&seed);
        job.sleep[upto(&seed, job.ranks - 1)] = upto(&seed, 5000000);
        job.slow[upto(&seed, job.ranks - 1)] = 1 + chance(&seed);
        OWNED(recording) all;
        record(&job, &all);
        for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
            struct knee_replay answer = replay(&all, words[w]);
            assert_true(answer.all.step_s <= answer.replayed_step_s);
        }
        struct knee_replay rare = replay(&all, "accumulate 4"); /* most passes exchange nothing */
        assert_true(rare.all.ratio <= rare.ratio / 2);
    }
}

/* The lever that a row of the replay has become; NULL: it is not offered from a recording. */
static const struct knee_lever *lever_of_row(const struct knee_diagnosis *d,
                                             const struct knee_replay_row *row)
{
    struct knee_lever known;
    if (!knee_change_replayed(row->name, &known))
        return NULL;
    for (size_t i = 0; i < d->lever_count; i++)
        if (strcmp(d->levers[i].name, known.name) == 0)
            return &d->levers[i];
    return NULL;
}

/* The headline is a change only if no other that is safe gains more. */
static void the_best_safe_change_is_advised(const struct knee_diagnosis *d)
{
    for (size_t i = 0; i < d->lever_count; i++) {
        const struct knee_lever *other = &d->levers[i];
        assert_false(other->kind & KNEE_LEVER_WORKERS);
        assert_true(other->gain <= KNEE_MOST_TIMES - 1);
        assert_relative(other->cost_ratio, other->row.workers / d->workers / (1 + other->gain),
                        1e-12);
        if (other->numerics == KNEE_NUMERICS_TRAINING || (other->kind & KNEE_LEVER_HARDWARE))
            continue;
        if (d->headline == KNEE_SAYS_HEALTHY)
            assert_true(other->gain < KNEE_WORTH_A_CHANGE);
        if (d->headline == KNEE_SAYS_CHANGE && !(other->kind & KNEE_LEVER_HOST))
            assert_true(d->levers[d->lever].gain >= other->gain);
    }
}

/* Every row of the standard table that somebody can do is a lever, with the same numbers. */
TEST(levers_are_rows)
{
    uint64_t seed = 12;
    for (int i = 0; i < 10; i++) {
        struct job job = job_like(&seed);
        struct recording all;
        struct knee_job given;
        struct knee_diagnosis d;
        size_t answered = 0;
        job.sleep[0] = upto(&seed, 5000000);
        record(&job, &all);
        knee_job_init(&given);
        assert_ok(knee_diagnose(&all.account, &given, NULL, &d, NULL));
        assert_ok(knee_replay_levers(&all.account, false, NULL, &d, NULL));
        assert_string_equal(d.closed_because, "");
        struct knee_replay answer = replay(&all, "");
        for (size_t r = 0; r < answer.row_count; r++) {
            const struct knee_replay_row *row = &answer.rows[r];
            if (row->refused[0] || strcmp(row->name, "network free") == 0)
                continue;
            const struct knee_lever *lever = lever_of_row(&d, row);
            if (!lever)
                continue;
            answered++;
            assert_true(lever->by == KNEE_BY_REPLAY && lever->row.step.wall_s == row->step_s);
            assert_true(lever->gain == row->gain);
            assert_int_equal(lever->numerics == KNEE_NUMERICS_TRAINING, row->training_changes);
        }
        assert_true(answered > 5);
        the_best_safe_change_is_advised(&d);
        recording_release(&all);
    }
}

TEST(changes_commute)
{
    static const char *const pairs[][2] = {
        {"wire bf16 even on", "even on wire bf16"},
        {"batch 2x network 2x bucket 30MB", "bucket 30MB network 2x batch 2x"},
        {"scale gemm=0.7 accumulate 3", "accumulate 3 scale gemm=0.7"},
    };
    uint64_t seed = 7;
    for (int i = 0; i < 20; i++) {
        struct job job = job_like(&seed);
        job.sleep[0] = 3000000;
        OWNED(recording) all;
        record(&job, &all);
        for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
            double a = replay(&all, pairs[p][0]).all.step_s;
            double b = replay(&all, pairs[p][1]).all.step_s;
            assert_true(a == b);
        }
    }
}

/* Buckets as large as all gradients: one all-reduce; more than one cannot be better than hidden. */
TEST(buckets_keep_bytes)
{
    uint64_t seed = 8;
    for (int i = 0; i < 20; i++) {
        struct job job = job_like(&seed);
        OWNED(recording) all;
        record(&job, &all);
        struct knee_changes changes = changes_of("bucket 1TB");
        OWNED(knee_replayed) replayed;
        struct knee_err err;
        assert_ok(knee_replay_timeline(&all.account, &changes, NULL, &replayed, &err));
        int64_t before = 0, after = 0;
        const struct knee_rank *old = all.account.ranks[0].source, *new = replayed.traces[0].ranks;
        for (size_t c = 0; c < old->call_count; c++)
            before += old->calls[c].bytes;
        for (size_t c = 0; c < new->call_count; c++)
            after += new->calls[c].bytes;
        assert_int_equal(new->call_count, STEPS);
        assert_relative((double)after, (double)before, 1e-6);
    }
}

/* One large bucket in smaller ones, where neither the passes nor a latency are recorded: backward
 * takes two thirds of the compute, a hop 50 us. */
TEST(large_buckets_are_parted)
{
    uint64_t seed = 33;
    for (int i = 0; i < 40; i++) {
        struct job one = job_like(&seed), parted;
        char words[32];
        one.alpha = 2 * (one.ranks - 1) * 50000;
        one.kernel += 500000;
        one.host = 3000; /* ahead of the GPU */
        one.buckets = 1;
        parted = one;
        parted.buckets = 2 + upto(&seed, 1);
        snprintf(words, sizeof words, "bucket %dMB", LAYERS / parted.buckets * (int)one.mb);
        follows_the_model(words, &one, &parted, 0.02);
        snprintf(words, sizeof words, "bucket %dMB", LAYERS * (int)one.mb);
        follows_the_model(words, &parted, &one, 0.02);
    }
}

/* ---- Round trip ---- */

struct bytes {
    struct knee_text text;
    size_t at;
};

static bool keep(void *ctx, const char *data, size_t size)
{
    struct bytes *bytes = ctx;
    char *more = realloc(bytes->text.data, bytes->text.length + size);
    assert_non_null(more);
    memcpy(more + bytes->text.length, data, size);
    bytes->text.data = more;
    bytes->text.length += size;
    return true;
}

static ptrdiff_t give(void *ctx, void *buffer, size_t size)
{
    struct bytes *bytes = ctx;
    size_t left = bytes->text.length - bytes->at;
    size = size < left ? size : left;
    memcpy(buffer, bytes->text.data + bytes->at, size);
    bytes->at += size;
    return (ptrdiff_t)size;
}

TEST(written_and_read_back)
{
    static const char *const words[] = {"scale gemm=1", "network 2x", "even on wire bf16",
                                        "bucket 40MB"};
    uint64_t seed = 9;
    for (size_t i = 0; i < 12; i++) {
        struct job job = job_like(&seed);
        job.sleep[0] = 4000000;
        OWNED(recording) all;
        record(&job, &all);
        const char *ask = words[i % (sizeof words / sizeof *words)];
        struct knee_changes changes = changes_of(ask);
        OWNED(knee_replayed) replayed;
        struct knee_account account, again;
        struct knee_trace read;
        struct knee_err err;
        struct bytes bytes = {0};
        assert_ok(knee_replay_timeline(&all.account, &changes, NULL, &replayed, &err));
        assert_ok(knee_account(replayed.traces, replayed.count, NULL, &account, &err));
        assert_true(knee_write_perfetto(&account, (struct knee_sink){keep, &bytes}, NULL));
        assert_ok(
            knee_trace_read((struct knee_reader){give, &bytes}, "round", NULL, NULL, &read, &err));
        assert_ok(knee_account(&read, 1, NULL, &again, &err));
        double step = mean_step(&again), ratio = 0, exposed = 0, busy = 0;
        for (size_t r = 0; r < again.rank_count; r++) {
            exposed += (double)knee_ledger_exposed_ns(&again.ranks[r].ledger);
            busy += (double)again.ranks[r].ledger.label_ns[KNEE_COMPUTE];
        }
        ratio = exposed / busy;
        struct knee_replay answer = replay(&all, ask);
        assert_near(step, answer.all.step_s, 1e-9);
        assert_relative(ratio, answer.all.ratio, 1e-9);
        free(bytes.text.data);
        knee_account_release(&again);
        knee_trace_release(&read);
        knee_account_release(&account);
    }
}

/* ---- Anything at all ---- */

/* Traces as chance has them: nothing breaks, and a replay without change is what was measured. */
TEST(any_timeline_replays)
{
    uint64_t seed = 10;
    for (int i = 0; i < 150; i++) {
        struct timelines set = random_timelines(&seed);
        struct knee_account account;
        struct knee_err err;
        if (!knee_account(set.traces, set.count, NULL, &account, &err)) {
            OWNED(knee_graph) graph;
            struct knee_replay_times times;
            double measured_s = 0;
            assert_ok(knee_graph_init(&graph, &account, NULL, &err));
            assert_ok(knee_graph_run(&graph, &times, &err));
            for (size_t r = 0; r < graph.rank_count; r++)
                measured_s += graph.ranks[r].measured_step_s / (double)graph.rank_count;
            assert_near(times.step_s, measured_s, 0.03 * measured_s + 1e-9);
            knee_replay_times_release(&times, NULL);
            knee_account_release(&account);
        }
        for (size_t t = 0; t < set.count; t++)
            knee_trace_release(&set.traces[t]);
    }
}

TEST(refusals_have_reasons)
{
    static const char *const words[] = {"keep-params on", "loader-ahead on", "wire f32",
                                        "hsdp 2",         "algorithm ring",  "scale nothing=2"};
    uint64_t seed = 11;
    struct job job = job_like(&seed);
    OWNED(recording) all;
    record(&job, &all);
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        struct knee_replay answer = replay(&all, words[w]);
        if (!answer.rows[0].refused[0])
            fail_msg("%s is answered", words[w]);
        if (answer.all.step_s != answer.replayed_step_s) /* what is left: nothing */
            fail_msg("%s: %.12g, not %.12g", words[w], answer.all.step_s, answer.replayed_step_s);
    }
}

TEST(memory_may_run_out)
{
    uint64_t seed = 12;
    struct job job = job_like(&seed);
    OWNED(recording) all;
    record(&job, &all);
    struct knee_changes changes = changes_of("wire bf16 even on bucket 40MB overlap on");
    FOR_EACH_FAILURE(f) {
        struct knee_replay answer;
        struct knee_err err;
        knee_status status = knee_replay(&all.account, &changes, &f.alloc, &answer, &err);
        assert_true(status == KNEE_OK || (status == KNEE_SYSTEM && failing_met(&f)));
    }
}
