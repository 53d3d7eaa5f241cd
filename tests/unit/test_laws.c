/* SPDX-License-Identifier: MIT */
/* Laws that hold for every job: tried on a few thousand random ones. */
#include "unit.h"

#include "judge/judge.h"

enum { JOBS = 3000 };

/* A random job; every feature is in some of them. */
static struct knee_job random_job(uint64_t *seed)
{
    struct knee_job job;
    knee_job_init(&job);
    job.params = between(seed, 1e6, 1e12);
    job.flops_per_s = between(seed, 1e12, 1e15);
    job.hw.bandwidth_bytes_per_s = between(seed, 1e8, 1e12);
    job.hw.latency_s = chance(seed) < 0.3 ? 0 : between(seed, 1e-7, 1e-4);
    if (chance(seed) < 0.5)
        job.global_batch = between(seed, 16, 1e7);
    else
        job.local_batch = between(seed, 1, 1e4);
    if (chance(seed) < 0.3)
        job.hidden = chance(seed);
    else
        job.overlap = chance(seed);
    if (chance(seed) < 0.4)
        job.loader_rate_per_s = between(seed, 1, 1e5);
    if (chance(seed) < 0.2)
        job.jitter = 0.2 * chance(seed);
    if (chance(seed) < 0.3)
        job.compress = between(seed, 1, 100), job.encode_time_s = between(seed, 1e-6, 1e-2);
    if (chance(seed) < 0.2)
        job.accumulate = floor(between(seed, 1, 32));
    if (chance(seed) < 0.2)
        job.local_steps = floor(between(seed, 1, 100));
    if (chance(seed) < 0.3) {
        job.hw.gpus_per_node = 8;
        job.hw.node_bandwidth_bytes_per_s = between(seed, 1e10, 1e12);
    }
    if (chance(seed) < 0.4)
        job.algorithm = (int)(chance(seed) * 5);
    return job;
}

static double random_workers(uint64_t *seed)
{
    return floor(between(seed, 1, 5000));
}

static struct knee_row row_at(const struct knee_job *job, double workers)
{
    struct knee_terms terms = terms_of(job);
    struct knee_row row;
    knee_evaluate(&terms, workers, &row);
    return row;
}

#define FOR_RANDOM_JOBS                                                                            \
    uint64_t seed = 20261115;                                                                      \
    for (int n = 0; n < UNIT_SOME(JOBS); n++)

TEST(labels_sum_to_the_step)
{
    FOR_RANDOM_JOBS
    {
        struct knee_job job = random_job(&seed);
        struct knee_row row = row_at(&job, random_workers(&seed));
        double sum = 0;
        for (int label = 0; label < KNEE_LABELS; label++) {
            assert_true(row.step.label_s[label] >= 0);
            sum += row.step.label_s[label];
        }
        assert_relative(sum, row.step.wall_s, 1e-12);
    }
}

static bool inside(struct knee_sure sure, double value)
{
    return sure.low <= value * (1 + 1e-12) && value <= sure.high * (1 + 1e-12);
}

static double width(struct knee_sure sure)
{
    return sure.high - sure.low;
}

/* Every prediction lies in its band, which is none at one worker, as wide at other counts unless
 * little is lost, and narrower where the exchange was measured; a share of the peak that is told
 * narrows the step. */
TEST(bands_hold_what_they_are_about)
{
    FOR_RANDOM_JOBS
    {
        struct knee_job job = random_job(&seed);
        struct knee_terms terms = terms_of(&job);
        struct knee_closed_doubt none = {{1, 1}, 1}, mfu = {{0.5, 2}, 1}, near = {{1, 1}, 64};
        struct knee_row row, loose, one, at, twice;
        double workers = floor(between(&seed, 32, 128));
        knee_evaluate(&terms, 1, &one);
        knee_evaluate(&terms, workers, &row);
        knee_evaluate(&terms, 2 * workers, &twice);
        loose = at = row;
        assert_true(isnan(row.step_sure.low));
        knee_doubt_row(&terms, &none, &one);
        knee_doubt_row(&terms, &none, &row);
        knee_doubt_row(&terms, &none, &twice);
        knee_doubt_row(&terms, &mfu, &loose);
        knee_doubt_row(&terms, &near, &at);
        assert_relative(one.efficiency_sure.low, one.efficiency_sure.high, 1e-12);
        assert_true(inside(row.step_sure, row.step.wall_s));
        assert_true(inside(row.efficiency_sure, row.efficiency));
        assert_true(inside(row.ratio_sure, row.ratio));
        assert_true(row.efficiency_sure.high <= 1 + 1e-12);
        assert_true(row.efficiency / row.efficiency_sure.low <=
                    twice.efficiency / twice.efficiency_sure.low * (1 + 1e-12));
        assert_true(width(at.efficiency_sure) <= width(row.efficiency_sure));
        assert_true(width(loose.step_sure) > width(row.step_sure));
    }
}

TEST(step_is_never_below_its_floors)
{
    FOR_RANDOM_JOBS
    {
        struct knee_job job = random_job(&seed);
        struct knee_row row = row_at(&job, random_workers(&seed));
        double almost = row.step.wall_s * (1 + 1e-12);
        assert_true(almost >= row.step.label_s[KNEE_COMPUTE]);
        assert_true(almost >= row.step.label_s[KNEE_COMPUTE] + row.exposed_load_s);
        assert_true(almost >= row.load_s);
        if (isnan(job.hidden))
            assert_true(almost >= row.step.comm_s);
        assert_true(row.efficiency <= 1 + 1e-12);
    }
}

TEST(more_bandwidth_never_slows)
{
    FOR_RANDOM_JOBS
    {
        struct knee_job job = random_job(&seed);
        double workers = random_workers(&seed);
        double before = row_at(&job, workers).step.wall_s;
        job.hw.bandwidth_bytes_per_s *= 1 + chance(&seed);
        assert_true(row_at(&job, workers).step.wall_s <= before * (1 + 1e-12));
    }
}

TEST(full_overlap_is_the_maximum)
{
    FOR_RANDOM_JOBS
    {
        struct knee_job job = random_job(&seed);
        job.overlap = 1;
        job.hidden = job.jitter = job.accumulate = job.local_steps = job.encode_time_s = NAN;
        struct knee_row row = row_at(&job, random_workers(&seed));
        double most = fmax(fmax(row.step.label_s[KNEE_COMPUTE], row.step.comm_s), row.load_s);
        assert_relative(row.step.wall_s, most, 1e-12);
    }
}

TEST(gamma_is_the_same_for_every_model_size)
{
    FOR_RANDOM_JOBS
    {
        struct knee_job job = random_job(&seed);
        double workers = random_workers(&seed);
        job.hw.latency_s = 0;
        job.encode_time_s = NAN;
        double before = row_at(&job, workers).gamma;
        job.params = between(&seed, 1e6, 1e12);
        assert_relative(row_at(&job, workers).gamma, before, 1e-9);
    }
}

TEST(strong_and_weak_agree_at_the_same_local_batch)
{
    FOR_RANDOM_JOBS
    {
        struct knee_job job = random_job(&seed);
        double workers = random_workers(&seed);
        struct knee_row before = row_at(&job, workers);
        job.global_batch = before.global_batch;
        job.local_batch = NAN;
        struct knee_row strong = row_at(&job, workers);
        job.local_batch = strong.local_batch;
        job.global_batch = NAN;
        struct knee_row weak = row_at(&job, workers);
        assert_relative(weak.step.wall_s, strong.step.wall_s, 1e-9);
        assert_relative(weak.ratio, strong.ratio, 1e-7);
    }
}

/* Second method: speed each part up by a little and see which shortens the step most. */
TEST(what_binds_is_what_helps_most)
{
    const double little = 1e-6;
    int tried = 0;
    FOR_RANDOM_JOBS
    {
        struct knee_job job = random_job(&seed);
        job.jitter = job.encode_time_s = NAN;
        double workers = random_workers(&seed);
        struct knee_terms terms = terms_of(&job), faster;
        struct knee_row row, other;
        knee_evaluate(&terms, workers, &row);
        double gain[3];
        faster = terms;
        faster.compute_s *= 1 - little;
        knee_evaluate(&faster, workers, &other);
        gain[KNEE_BINDS_COMPUTE] = row.step.wall_s - other.step.wall_s;
        faster = terms;
        faster.comm_scale *= 1 - little;
        knee_evaluate(&faster, workers, &other);
        gain[KNEE_BINDS_COMM] = row.step.wall_s - other.step.wall_s;
        faster = terms;
        faster.loader_rate_per_s /= 1 - little;
        knee_evaluate(&faster, workers, &other);
        gain[KNEE_BINDS_LOAD] = row.step.wall_s - other.step.wall_s;
        int best = 0;
        for (int i = 1; i < 3; i++)
            best = gain[i] > gain[best] ? i : best;
        double second = 0;
        for (int i = 0; i < 3; i++)
            second = i != best && gain[i] > second ? gain[i] : second;
        if (gain[best] < 1.001 * second)
            continue; /* a tie but for rounding */
        tried++;
        assert_int_equal(row.binding, best);
    }
    assert_true(tried > UNIT_SOME(JOBS) / 2);
}

TEST(solving_then_predicting_gives_what_was_asked)
{
    static const char *const variables[] = {"bandwidth", "latency", "local-batch", "overlap",
                                            "compress"};
    int solved = 0;
    FOR_RANDOM_JOBS
    {
        if (n % 4)
            continue;
        struct knee_job job = random_job(&seed);
        struct knee_solution solution;
        struct knee_err err;
        char wanted[64];
        const char *variable = variables[(int)(chance(&seed) * 5)];
        job.at = random_workers(&seed);
        double efficiency = 0.05 + 0.9 * chance(&seed);
        snprintf(wanted, sizeof wanted, "efficiency=%.17g", efficiency);
        assert_ok(knee_job_complete(&job, &err));
        assert_ok(knee_solve(&job, variable, wanted, &solution, &err));
        if (isnan(solution.value) || solution.any)
            continue;
        solved++;
        struct knee_job then = job;
        if (strcmp(variable, "local-batch") == 0) {
            then.scaling = KNEE_WEAK;
            then.local_batch = solution.value;
        } else if (strcmp(variable, "overlap") == 0) {
            then.overlap = solution.value;
            then.hidden = NAN;
        } else {
            double *field = strcmp(variable, "bandwidth") == 0 ? &then.hw.bandwidth_bytes_per_s
                            : strcmp(variable, "latency") == 0 ? &then.hw.latency_s
                                                               : &then.compress;
            *field = solution.value;
        }
        struct knee_terms terms;
        struct knee_row row;
        knee_terms_init(&then, &terms);
        knee_evaluate(&terms, job.at, &row);
        assert_relative(row.efficiency, efficiency, 1e-6);
    }
    assert_true(solved > UNIT_SOME(100));
}

/* Second method: try every whole count. */
TEST(knees_are_those_of_brute_force)
{
    enum { MOST = 3000 };
    int found = 0;
    FOR_RANDOM_JOBS
    {
        if (n % 10)
            continue;
        struct knee_job job = random_job(&seed);
        job.jitter = NAN;
        job.algorithm = -1; /* ring: no steps in the curve */
        struct knee_terms terms = terms_of(&job);
        struct knee_knee knee;
        double quality, best = 0, best_workers = 0, last = NAN;
        knee_find(&terms, 0.8, &knee, &quality);
        for (int k = 1; k <= MOST && k <= terms.most_workers; k++) {
            struct knee_row row;
            knee_evaluate(&terms, k, &row);
            if (row.efficiency >= 0.8)
                last = k;
            if (row.throughput_per_s > best) {
                best = row.throughput_per_s;
                best_workers = k;
            }
        }
        if (knee.tolerance_workers < MOST) {
            assert_near(last, knee.tolerance_workers, 0);
            assert_near(knee_tolerance_workers(&terms, 0.8), last, 0);
            found++;
        }
        if (knee.peak_throughput_workers < MOST) {
            struct knee_row row;
            knee_evaluate(&terms, knee.peak_throughput_workers, &row);
            assert_true(row.throughput_per_s >= best * (1 - 1e-12) || best_workers == MOST ||
                        best_workers == terms.most_workers);
        }
        if (!isnan(knee.gamma_one_workers)) {
            struct knee_row row;
            knee_evaluate(&terms, knee.gamma_one_workers, &row);
            assert_true(row.gamma >= 1);
            knee_evaluate(&terms, knee.gamma_one_workers * (1 - 1e-9), &row);
            assert_true(row.gamma < 1 || knee.gamma_one_workers == 1);
        }
    }
    assert_true(found > UNIT_SOME(50));
}

TEST(completing_twice_changes_nothing)
{
    FOR_RANDOM_JOBS
    {
        struct knee_job job = random_job(&seed), again;
        struct knee_err err;
        assert_ok(knee_job_complete(&job, &err));
        again = job;
        assert_ok(knee_job_complete(&again, &err));
        assert_memory_equal(&job, &again, sizeof job);
    }
}

TEST(levers_are_what_the_closed_forms_say)
{
    FOR_RANDOM_JOBS
    {
        if (n % 20)
            continue;
        struct knee_job job = random_job(&seed);
        OWNED(knee_prediction) p;
        struct knee_err err;
        job.at = random_workers(&seed);
        assert_ok(knee_predict(&job, NULL, &p, &err));
        for (size_t i = 0; i < p.lever_count; i++) {
            const struct knee_lever *lever = &p.levers[i];
            assert_relative(1 + lever->gain, lever->row.throughput_per_s / p.at.throughput_per_s,
                            1e-12);
            assert_true(lever->cost_ratio > 0);
            if (i > 0)
                assert_true(knee_lever_gain(lever) <= knee_lever_gain(&p.levers[i - 1]));
            if (strcmp(lever->name, "overlap") == 0 && isnan(job.hidden))
                assert_true(lever->gain >= -1e-12);
            if (strcmp(lever->name, "faster link") == 0) { /* the job on a link twice as fast */
                struct knee_job then = job;
                bool inside = job.hw.gpus_per_node > 1 && job.at <= job.hw.gpus_per_node;
                *(inside ? &then.hw.node_bandwidth_bytes_per_s : &then.hw.bandwidth_bytes_per_s) *=
                    2;
                assert_relative(lever->row.throughput_per_s,
                                row_at(&then, lever->row.workers).throughput_per_s, 1e-9);
                assert_true(lever->gain >= -1e-12);
            }
        }
    }
}

/* What trains otherwise, or costs money for hardware, is advised only where no safe change is worth
 * it; among safe ones the best is. */
TEST(the_best_safe_lever_is_advised)
{
    FOR_RANDOM_JOBS
    {
        struct knee_job job = random_job(&seed);
        OWNED(knee_prediction) p;
        struct knee_err err;
        job.at = random_workers(&seed);
        assert_ok(knee_predict(&job, NULL, &p, &err));
        const unsigned apart = KNEE_LEVER_WORKERS | KNEE_LEVER_FEWER | KNEE_LEVER_HARDWARE;
        const struct knee_lever *first =
            p.verdict.lever == SIZE_MAX ? NULL : &p.levers[p.verdict.lever];
        for (size_t i = 0; i < p.lever_count; i++) {
            const struct knee_lever *other = &p.levers[i];
            if (other->numerics == KNEE_NUMERICS_TRAINING || (other->kind & apart) ||
                knee_lever_gain(other) < KNEE_WORTH_IT)
                continue;
            assert_non_null(first);
            assert_true(first->numerics != KNEE_NUMERICS_TRAINING);
            assert_true(knee_lever_gain(first) >= knee_lever_gain(other));
        }
    }
}

/* Strong or weak, four micro-steps are four times the batch, each as large as one was. */
TEST(batch_levers_say_how_large_the_batch_is)
{
    FOR_RANDOM_JOBS
    {
        if (n % 20)
            continue;
        struct knee_job job = random_job(&seed);
        OWNED(knee_prediction) p;
        struct knee_err err;
        assert_ok(knee_predict(&job, NULL, &p, &err));
        for (size_t i = 0; i < p.lever_count && !isnan(p.at.global_batch); i++) {
            const struct knee_lever *lever = &p.levers[i];
            bool twice = strcmp(lever->name, "bigger local batch") == 0;
            bool four = strcmp(lever->name, "accumulate") == 0;
            if (!twice && !four)
                continue;
            assert_relative(lever->row.global_batch, (twice ? 2 : 4) * p.at.global_batch, 1e-12);
            assert_relative(lever->row.local_batch, (twice ? 2 : 1) * p.at.local_batch, 1e-12);
        }
    }
}

/* A lever that is pulled gives the row that was promised; pulled or not, the judge says the same of
 * the same terms. */
TEST(levers_do_what_they_promise)
{
    FOR_RANDOM_JOBS
    {
        if (n % 20)
            continue;
        struct knee_job job = random_job(&seed);
        OWNED(knee_prediction) p;
        struct knee_terms terms;
        struct knee_row row;
        struct knee_err err;
        job.at = random_workers(&seed);
        assert_ok(knee_predict(&job, NULL, &p, &err));
        for (size_t i = 0; i < p.lever_count; i++) {
            double workers = knee_levers_pull(&p, p.levers[i].name, &terms);
            knee_evaluate(&terms, workers, &row);
            assert_memory_equal(&row.step, &p.levers[i].row.step, sizeof row.step);
            assert_true(row.workers == p.levers[i].row.workers);
        }
        struct knee_row at = p.at;
        size_t lever = p.verdict.lever;
        double workers = knee_levers_pull(&p, "no such lever+", &terms);
        assert_ok(knee_predict_changed(&p, &terms, workers, &p, &err));
        assert_memory_equal(&at.step, &p.at.step, sizeof at.step);
        assert_true(p.verdict.lever == lever);
    }
}
