/* SPDX-License-Identifier: MIT */
#include "bench/bench.h"

#include "base/error.h"
#include "bench/bench_pairs.h"
#include "reach/start.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FEWEST = 5, NAME_SIZE = 64 };

/* What one row needs, made once for all. */
struct desk {
    struct knee_bench *bench;
    struct knee_runtime *rt;
    void *in, *out, *scratch; /* the runtime's memory */
    float *host;              /* to fill and to check them */
    double *samples_s;
    size_t capacity; /* elements */
    struct knee_start start;
};

static bool out_of_memory(struct knee_runtime *rt)
{
    snprintf(rt->fault, sizeof rt->fault, "out of memory");
    return false;
}

static bool set_up(struct desk *desk)
{
    struct knee_runtime *rt = desk->rt;
    size_t bytes = desk->capacity * sizeof(float);
    desk->host = malloc(bytes);
    desk->samples_s = calloc((size_t)desk->bench->options.iterations + 1, sizeof(double));
    if (!desk->host || !desk->samples_s)
        return out_of_memory(rt);
    return rt->buffer_new(rt, bytes, &desk->in) && rt->buffer_new(rt, bytes, &desk->out) &&
           rt->buffer_new(rt, bytes, &desk->scratch);
}

static void clear_up(struct desk *desk)
{
    void *const buffers[] = {desk->in, desk->out, desk->scratch};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i])
            desk->rt->buffer_release(desk->rt, buffers[i]);
    free(desk->host);
    free(desk->samples_s);
}

/* ---- One call ---- */

/* Ours work in place: the input goes to where it belongs in the output first. */
static bool call_ours(struct desk *desk, const struct knee_bench_row *row, size_t count)
{
    struct knee_runtime *rt = desk->rt;
    size_t in = knee_bench_in(row->op, rt->rank, rt->size, count);
    float *data = desk->out,
          *to = row->op == KNEE_OP_ALL_GATHER ? data + (size_t)rt->rank * in : data;
    memcpy(to, desk->in, in * sizeof *data);
    return row->exchange->run(rt, data, desk->scratch, count);
}

static bool call(struct desk *desk, const struct knee_bench_row *row, size_t count)
{
    return row->exchange ? call_ours(desk, row, count)
                         : desk->rt->collective(desk->rt, row->op, desk->in, desk->out, count);
}

static bool timed_call(struct desk *desk, const struct knee_bench_row *row, size_t count,
                       double *time_s)
{
    double start_s;
    if (!knee_start_together(desk->rt, &desk->start, &start_s) || !call(desk, row, count))
        return false;
    *time_s = knee_clock_s() - start_s;
    return true;
}

/* ---- Right or wrong ---- */

static bool fill_input(struct desk *desk, enum knee_op op, size_t count)
{
    struct knee_runtime *rt = desk->rt;
    size_t in = knee_bench_in(op, rt->rank, rt->size, count);
    for (size_t i = 0; i < in; i++)
        desk->host[i] = knee_bench_input(rt->rank, i);
    return rt->buffer_put(rt, desk->in, desk->host, in * sizeof(float));
}

static bool spoil_output(struct desk *desk, size_t count)
{
    for (size_t i = 0; i < count; i++)
        desk->host[i] = NAN;
    return desk->rt->buffer_put(desk->rt, desk->out, desk->host, count * sizeof(float));
}

static bool count_wrong(struct desk *desk, const struct knee_bench_row *row, size_t count,
                        int64_t *wrong)
{
    struct knee_runtime *rt = desk->rt;
    size_t out = knee_bench_out(row->op, rt->rank, rt->size, count);
    bool apart = row->exchange && row->op == KNEE_OP_REDUCE_SCATTER;
    const float *from = (const float *)desk->out + (apart ? (size_t)rt->rank * out : 0);
    if (!rt->buffer_get(rt, from, desk->host, out * sizeof(float)))
        return false;
    for (size_t i = 0; i < out; i++)
        *wrong += !(desk->host[i] == knee_bench_output(row->op, rt->rank, rt->size, count, i));
    return true;
}

/* ---- One row ---- */

/* How often, so that a row takes about the time it may: from a second call, for the first one opens
 * connections; with all that goes with a call; the slowest rank's. */
static bool choose_times(struct desk *desk, const struct knee_bench_row *row, size_t count,
                         size_t *warmup, size_t *iterations)
{
    const struct knee_bench_options *options = &desk->bench->options;
    double began_s = knee_clock_s(), unused_s;
    if (!timed_call(desk, row, count, &unused_s))
        return false;
    double one_s = knee_clock_s() - began_s;
    if (!desk->rt->all_reduce(desk->rt, &one_s, 1, KNEE_RUNTIME_F64, KNEE_RUNTIME_MAX))
        return false;
    double fit = options->row_time_s / fmax(one_s, 1e-9);
    double fewest = fmin(FEWEST, options->iterations);
    *iterations = (size_t)fmin(options->iterations, fmax(fewest, floor(fit)));
    *warmup = (size_t)fmax(0, fmin(options->warmup - 2, floor(fit / 5)));
    return true;
}

static bool rank_medians(struct desk *desk, struct knee_bench_row *row, size_t iterations)
{
    struct knee_runtime *rt = desk->rt;
    double *sorted = malloc((iterations + 1) * sizeof *sorted), median;
    size_t *sizes = calloc((size_t)rt->size, sizeof *sizes);
    void *all = NULL;
    bool good = sorted && sizes;
    if (good) {
        memcpy(sorted, desk->samples_s, iterations * sizeof *sorted);
        median = knee_median(sorted, iterations);
        good = rt->gather_bytes(rt, &median, sizeof median, &all, sizes);
    } else {
        out_of_memory(rt);
    }
    row->rank_median_s = all;
    free(sorted);
    free(sizes);
    return good;
}

/* The first call is checked, and so is the last. */
static bool measure_row(struct desk *desk, struct knee_bench_row *row, size_t count)
{
    struct knee_runtime *rt = desk->rt;
    size_t warmup = 0, iterations = 0;
    double unused_s;
    int64_t wrong = 0;
    if (!knee_start_measure(rt, &desk->start) || !fill_input(desk, row->op, count) ||
        !spoil_output(desk, count) || !timed_call(desk, row, count, &unused_s) ||
        !count_wrong(desk, row, count, &wrong) ||
        !choose_times(desk, row, count, &warmup, &iterations))
        return false;
    for (size_t i = 0; i < warmup; i++)
        if (!timed_call(desk, row, count, &unused_s))
            return false;
    if (!spoil_output(desk, count))
        return false;
    for (size_t i = 0; i < iterations; i++)
        if (!timed_call(desk, row, count, &desk->samples_s[i]))
            return false;
    if (!count_wrong(desk, row, count, &wrong) || !rank_medians(desk, row, iterations) ||
        !rt->all_reduce(rt, &wrong, 1, KNEE_RUNTIME_I64, KNEE_RUNTIME_SUM) ||
        !rt->all_reduce(rt, desk->samples_s, iterations, KNEE_RUNTIME_F64, KNEE_RUNTIME_MAX))
        return false;
    row->wrong = wrong;
    row->spread = knee_spread_of(desk->samples_s, iterations);
    return true;
}

static void expect(struct knee_bench *bench, struct knee_bench_row *row)
{
    double ranks = bench->rt->size;
    struct knee_line rate_only = bench->wire;
    rate_only.alpha_s = 0;
    row->expected_s =
        knee_bench_expected_s(row->op, row->exchange, ranks, row->bytes, &bench->wire);
    double bytes_s = knee_bench_expected_s(row->op, row->exchange, ranks, row->bytes, &rate_only);
    row->latency_share = 1 - bytes_s / row->expected_s;
}

/* ---- The sweep ---- */

/* Shared out evenly: a multiple of the ranks, at least one element each. */
static size_t count_for(enum knee_op op, int size, double bytes)
{
    size_t count = (size_t)(bytes / sizeof(float)), ranks = (size_t)size;
    bool whole = op == KNEE_OP_ALL_REDUCE || op == KNEE_OP_BROADCAST || op == KNEE_OP_REDUCE ||
                 op == KNEE_OP_SEND_RECV;
    if (!whole)
        count -= count % ranks;
    return count ? count : whole ? 1 : ranks;
}

static size_t size_count(const struct knee_bench_options *options)
{
    return 1 + (size_t)floor(log(options->max_bytes / options->min_bytes) / log(options->factor) +
                             1e-9);
}

/* The operations asked for that can be done; the others are named in bench->unable. */
static size_t choose_ops(struct knee_bench *bench, struct knee_bench_row *kinds)
{
    const struct knee_bench_options *options = &bench->options;
    const char *algorithm = knee_bench_algorithms.name((size_t)options->algorithm);
    size_t count = 0;
    for (int op = KNEE_OP_ALL_REDUCE; op < KNEE_OPS; op++) {
        if (options->collective != 0 && options->collective != op - KNEE_OP_ALL_REDUCE + 1)
            continue;
        const struct knee_exchange *exchange = knee_exchange_find(algorithm, (enum knee_op)op);
        if (options->algorithm == 0 || exchange) {
            kinds[count++] = (struct knee_bench_row){.op = (enum knee_op)op, .exchange = exchange};
        } else {
            size_t used = strlen(bench->unable);
            snprintf(bench->unable + used, sizeof bench->unable - used, "%s%s", used ? ", " : "",
                     knee_op_name((enum knee_op)op));
        }
    }
    return count;
}

/* Small sizes may come out alike once they are shared out evenly. */
static bool same_as_last(const struct knee_bench *bench, enum knee_op op, size_t count)
{
    const struct knee_bench_row *last = &bench->rows[bench->row_count ? bench->row_count - 1 : 0];
    return bench->row_count && last->op == op && last->count == (double)count;
}

static bool sweep(struct desk *desk, const struct knee_bench_row *kinds, size_t kind_count,
                  knee_bench_tell *tell, void *ctx)
{
    struct knee_bench *bench = desk->bench;
    for (size_t k = 0; k < kind_count; k++) {
        double bytes = bench->options.min_bytes;
        for (size_t s = size_count(&bench->options); s > 0; s--, bytes *= bench->options.factor) {
            size_t count = count_for(kinds[k].op, bench->rt->size, bytes);
            struct knee_bench_row row = kinds[k];
            if (same_as_last(bench, kinds[k].op, count)) {
                bench->rows_wanted--;
                continue;
            }
            row.count = (double)count;
            row.bytes = row.count * sizeof(float);
            if (!measure_row(desk, &row, count))
                return false;
            expect(bench, &row);
            bench->rows[bench->row_count++] = row;
            if (bench->rt->rank == 0) {
                knee_bench_judge(bench);
                if (tell)
                    tell(ctx, bench);
            }
        }
    }
    return true;
}

/* What every rank tells rank 0 about itself. */
struct card {
    char host[NAME_SIZE];
    int64_t pid;
};

static bool keep_cards(struct knee_bench *bench, const struct card *cards)
{
    const struct knee_runtime *rt = bench->rt;
    bench->host_names = calloc((size_t)rt->host_count + 1, sizeof *bench->host_names);
    bench->pids = calloc((size_t)rt->size, sizeof *bench->pids);
    bool good = bench->host_names && bench->pids;
    for (int r = 0; good && r < rt->size; r++) {
        char **name = &bench->host_names[rt->host_of[r]];
        *name = *name ? *name : strdup(cards[r].host);
        bench->pids[r] = cards[r].pid;
        good = *name != NULL;
    }
    return good;
}

static bool gather_cards(struct knee_bench *bench)
{
    struct knee_runtime *rt = bench->rt;
    struct card mine = {.pid = getpid()};
    void *all = NULL;
    size_t *sizes = calloc((size_t)rt->size, sizeof *sizes);
    snprintf(mine.host, sizeof mine.host, "%s", rt->host_name);
    bool good = sizes ? rt->gather_bytes(rt, &mine, sizeof mine, &all, sizes) : out_of_memory(rt);
    if (good && rt->rank == 0)
        good = keep_cards(bench, all) || out_of_memory(rt);
    free(all);
    free(sizes);
    return good;
}

static knee_status fault(const struct knee_runtime *rt, struct knee_err *err)
{
    return knee_fail(err, KNEE_SYSTEM, "", "%s", rt->fault);
}

knee_status knee_bench_run(struct knee_runtime *rt, const struct knee_bench_options *options,
                           knee_bench_tell *tell, void *ctx, struct knee_bench *out,
                           struct knee_err *err)
{
    struct knee_bench_row kinds[KNEE_OPS];
    struct desk desk = {.bench = out, .rt = rt};
    memset(out, 0, sizeof *out);
    out->rt = rt;
    out->options = *options;
    out->wire = (struct knee_line){NAN, NAN, NAN};
    size_t kind_count = choose_ops(out, kinds);
    if (kind_count == 0)
        return knee_fail_hint(err, KNEE_USAGE, "--algorithm", "--algorithm mpi does all",
                              "%s does not do %s",
                              knee_bench_algorithms.name((size_t)options->algorithm), out->unable);
    out->rows_wanted = kind_count * size_count(options);
    out->rows = calloc(out->rows_wanted, sizeof *out->rows);
    desk.capacity = (size_t)(options->max_bytes / sizeof(float)) + (size_t)rt->size;
    if (!out->rows)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    bool good = gather_cards(out) && set_up(&desk) &&
                (rt->on_device || knee_bench_measure_pairs(out)) &&
                sweep(&desk, kinds, kind_count, tell, ctx);
    clear_up(&desk);
    return good ? KNEE_OK : fault(rt, err);
}

void knee_bench_release(struct knee_bench *bench)
{
    for (size_t i = 0; i < bench->row_count; i++)
        free(bench->rows[i].rank_median_s);
    for (int h = 0; bench->host_names && h < bench->rt->host_count; h++)
        free(bench->host_names[h]);
    free(bench->host_names);
    free(bench->pids);
    free(bench->rows);
    free(bench->pairs);
    memset(bench, 0, sizeof *bench);
}
