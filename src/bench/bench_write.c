/* SPDX-License-Identifier: MIT */
/*
 * A bench as text in the columns of nccl-tests, as its JSON, or as CSV, so that everything that
 * reads nccl-tests reads this; what knee adds follows in separate columns and members.
 */
#include "base/number.h"
#include "bench/bench.h"
#include "out/answer.h"
#include "say/short.h"

#include <math.h>
#include <stdio.h>

#define BENCH    struct knee_bench
#define ROW      struct knee_bench_row
#define PAIR     struct knee_bench_pair
#define EXCHANGE struct knee_exchange

static const char *algorithm_of(const struct knee_bench *bench, const struct knee_bench_row *row)
{
    return row->exchange ? row->exchange->algorithm : bench->rt->name;
}

/* Of our own algorithms: the time is hops alpha + share S / B. */
static double hops_of(const struct knee_bench *bench, const struct knee_bench_row *row)
{
    return row->exchange ? row->exchange->hops(bench->rt->size) : NAN;
}

static double share_of(const struct knee_bench *bench, const struct knee_bench_row *row)
{
    return row->exchange ? row->exchange->share(bench->rt->size) : NAN;
}

/* What one rank contributes or gets, where the buffer is shared out: nccl-tests' count. */
static double count_of(const struct knee_bench *bench, const struct knee_bench_row *row)
{
    switch (row->op) {
    case KNEE_OP_ALL_GATHER:
    case KNEE_OP_REDUCE_SCATTER:
    case KNEE_OP_ALL_TO_ALL:
    case KNEE_OP_ALL_TO_ALLV:
    case KNEE_OP_GATHER:
    case KNEE_OP_SCATTER: return row->count / bench->rt->size;
    default: return row->count;
    }
}

static const char *redop_of(enum knee_op op)
{
    bool sums = op == KNEE_OP_ALL_REDUCE || op == KNEE_OP_REDUCE || op == KNEE_OP_REDUCE_SCATTER;
    return sums ? "sum" : "none";
}

static int root_of(enum knee_op op)
{
    bool rooted = op == KNEE_OP_BROADCAST || op == KNEE_OP_REDUCE || op == KNEE_OP_GATHER ||
                  op == KNEE_OP_SCATTER;
    return rooted ? 0 : -1;
}

static double algbw(const struct knee_bench_row *row)
{
    return row->bytes / row->spread.median_s;
}

static double busbw(const struct knee_bench *bench, const struct knee_bench_row *row)
{
    return algbw(row) * knee_op_bus_factor(row->op, bench->rt->size);
}

/* ---- Text ---- */

static void text_head(const struct knee_bench *bench, struct knee_text *text)
{
    const struct knee_bench_options *o = &bench->options;
    const struct knee_runtime *rt = bench->rt;
    knee_text_printf(text, "# knee bench " KNEE_VERSION ": %d ranks on %d host%s over %s\n",
                     rt->size, rt->host_count, rt->host_count == 1 ? "" : "s", rt->name);
    knee_text_printf(text,
                     "# nThread 1 nGpus 1 minBytes %.0f maxBytes %.0f step: %g(factor) warmup "
                     "iters: %.0f iters: %.0f\n#\n# Using devices\n",
                     o->min_bytes, o->max_bytes, o->factor, o->warmup, o->iterations);
    for (int r = 0; r < rt->size; r++) {
        int device = 0;
        for (int before = 0; before < r; before++)
            device += rt->host_of[before] == rt->host_of[r];
        knee_text_printf(text, "#  Rank %2d Group  0 Pid %6lld on %10s device %2d [0x00] %s\n", r,
                         (long long)bench->pids[r], bench->host_names[rt->host_of[r]], device,
                         bench->rt->device_name);
    }
}

static void text_table_head(const struct knee_bench *bench, const struct knee_bench_row *row,
                            struct knee_text *text)
{
    knee_text_printf(text, "#\n# Collective test starting: %s_perf\n# algorithm: %s",
                     knee_op_name(row->op), algorithm_of(bench, row));
    if (row->exchange)
        knee_text_printf(text, " hops %.9g share %.9g", hops_of(bench, row), share_of(bench, row));
    knee_text_puts(text, "\n#\n");
    knee_text_printf(text, "#%11s %12s %9s %7s %6s %9s %7s %7s %7s %9s %9s %9s %6s %9s %7s\n",
                     "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong",
                     "min", "p95", "max", "iters", "expected", "of it");
    knee_text_printf(text, "#%11s %12s %9s %7s %6s %9s %7s %7s %7s %9s %9s %9s %6s %9s %7s\n",
                     "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)",
                     "(us)", "(us)", "", "(us)", "(%)");
}

/* nccl-tests prints two decimals; a slow network needs more to say anything. */
static int decimals(double gigabytes_per_s)
{
    return gigabytes_per_s < 1 ? 4 : 2;
}

static void text_row(const struct knee_bench *bench, const struct knee_bench_row *row,
                     struct knee_text *text)
{
    const struct knee_spread *s = &row->spread;
    knee_text_printf(text, " %11.0f %12.0f %9s %7s %6d %9.2f %7.*f %7.*f %7lld", row->bytes,
                     count_of(bench, row), "float", redop_of(row->op), root_of(row->op),
                     s->median_s * 1e6, decimals(algbw(row) * 1e-9), algbw(row) * 1e-9,
                     decimals(busbw(bench, row) * 1e-9), busbw(bench, row) * 1e-9,
                     (long long)row->wrong);
    knee_text_printf(text, " %9.2f %9.2f %9.2f %6zu", s->min_s * 1e6, s->p95_s * 1e6,
                     s->max_s * 1e6, s->count);
    if (isnan(row->expected_s))
        knee_text_printf(text, " %9s %7s\n", "-", "-");
    else
        knee_text_printf(text, " %9.2f %7.1f\n", row->expected_s * 1e6,
                         s->median_s / row->expected_s * 100);
}

static void text_line(struct knee_text *text, const char *what, const struct knee_line *line)
{
    char alpha[32], rate[32];
    knee_number_human(alpha, sizeof alpha, line->alpha_s, KNEE_UNIT_SECONDS);
    knee_number_human(rate, sizeof rate, 1 / line->s_per_byte, KNEE_UNIT_BYTES_PER_S);
    knee_text_printf(text, "# %s: alpha %s, beta %s", what, alpha, rate);
}

/* Is row i the first of one of our algorithms, and were enough sizes timed for a fit? */
static bool fits(const struct knee_bench *bench, size_t i, struct knee_line *line)
{
    const struct knee_exchange *exchange = bench->rows[i].exchange;
    for (size_t k = 0; k < i; k++)
        if (bench->rows[k].exchange == exchange)
            return false;
    return exchange && knee_bench_refit(bench, exchange, line);
}

static void text_fits(const struct knee_bench *bench, struct knee_text *text)
{
    if (!isnan(bench->wire.alpha_s)) {
        text_line(text, "messages between neighbours", &bench->wire);
        knee_text_puts(text, " (median of the pairs)\n");
    }
    for (size_t i = 0; i < bench->row_count; i++) {
        const struct knee_exchange *exchange = bench->rows[i].exchange;
        struct knee_line line;
        char what[96];
        if (!fits(bench, i, &line))
            continue;
        snprintf(what, sizeof what, "fit of %s %s, fastest runs", exchange->algorithm,
                 knee_op_name(exchange->op));
        text_line(text, what, &line);
        knee_text_printf(text, ", worst row %.1f %% off (%s)\n", line.worst * 100,
                         exchange->formula);
    }
}

static const struct knee_bench_pair *pair_of(const struct knee_bench *bench, int a, int b)
{
    for (size_t i = 0; i < bench->pair_count; i++) {
        const struct knee_bench_pair *p = &bench->pairs[i];
        if ((p->a == a && p->b == b) || (p->a == b && p->b == a))
            return p;
    }
    return NULL;
}

static int first_rank(const struct knee_bench *bench, int host)
{
    int r = 0;
    while (bench->rt->host_of[r] != host)
        r++;
    return r;
}

/* Hosts by hosts; ranks by ranks when there is one host. '!' marks what is unlike the rest. */
static void text_pairs(const struct knee_bench *bench, struct knee_text *text)
{
    const struct knee_runtime *rt = bench->rt;
    bool hosts = rt->host_count > 1;
    int size = hosts ? rt->host_count : rt->size;
    knee_text_printf(text, "#\n# MB/s between %s (! unlike the rest), one message at a time\n#%15s",
                     hosts ? "hosts" : "ranks", "");
    for (int b = 0; b < size; b++)
        knee_text_printf(text, " %9d", b);
    for (int a = 0; a < size; a++) {
        int ra = hosts ? first_rank(bench, a) : a;
        knee_text_printf(text, "\n# %2d %11.11s", a, bench->host_names[rt->host_of[ra]]);
        for (int b = 0; b < size; b++) {
            const struct knee_bench_pair *p = pair_of(bench, ra, hosts ? first_rank(bench, b) : b);
            if (p)
                knee_text_printf(text, " %8.1f%c", 1e-6 / p->line.s_per_byte,
                                 p->slow || p->late ? '!' : ' ');
            else
                knee_text_printf(text, " %8s ", "-");
        }
    }
    knee_text_puts(text, "\n");
}

static void write_text(const struct knee_bench *bench, struct knee_text *text)
{
    for (size_t i = 0; i < bench->row_count; i++) {
        if (i == 0 || bench->rows[i].op != bench->rows[i - 1].op) {
            text_head(bench, text); /* every table stands alone, as if nccl-tests had run again */
            text_table_head(bench, &bench->rows[i], text);
        }
        text_row(bench, &bench->rows[i], text);
    }
    knee_text_printf(
        text, "#\n# time is the median over iterations of the slowest rank%s\n",
        isnan(bench->wire.alpha_s) ? "" : "; expected is from the messages between neighbours");
    text_fits(bench, text);
    if (bench->options.pairs && bench->pair_count)
        text_pairs(bench, text);
    if (bench->unable[0])
        knee_text_printf(text, "# not timed: %s does not do %s\n",
                         knee_bench_algorithms.name((size_t)bench->options.algorithm),
                         bench->unable);
    for (size_t i = 0; i < bench->finding_count; i++)
        knee_text_printf(text, "# ! %s\n", bench->findings[i].words);
    if (bench->row_count < bench->rows_wanted)
        knee_text_printf(text, "# stopped after %zu of %zu rows\n", bench->row_count,
                         bench->rows_wanted);
    else if (bench->finding_count == 0)
        knee_text_puts(text, "# nothing stands out\n");
}

/* ---- A measured size: what all formats have, CSV alone, JSON alone ---- */

A_NUMBER(elements, ROW, count_of(TOP(BENCH), it))
A_TEXT(type, void, "float")
A_TEXT(redop, ROW, redop_of(it->op))
A_NUMBER(root, ROW, root_of(it->op))
A_NUMBER(median_us, ROW, it->spread.median_s * 1e6)
A_NUMBER(alg_rate, ROW, algbw(it))
A_NUMBER(alg_gb, ROW, algbw(it) * 1e-9)
A_NUMBER(bus_rate, ROW, busbw(TOP(BENCH), it))
A_NUMBER(bus_gb, ROW, busbw(TOP(BENCH), it) * 1e-9)
A_TEXT(collective, ROW, knee_op_name(it->op))
A_TEXT(algorithm, ROW, algorithm_of(TOP(BENCH), it))
A_NUMBER(hops, ROW, hops_of(TOP(BENCH), it))
A_NUMBER(share, ROW, share_of(TOP(BENCH), it))
A_NUMBER(ranks, void, TOP(BENCH)->rt->size)
A_NUMBER(nodes, void, TOP(BENCH)->rt->host_count)
A_TEXT(device, void, TOP(BENCH)->rt->device_name)
A_NUMBER(seconds, double, *it)
ROW_OF(rank_row, ROW,
       it->rank_median_s &&index < (size_t)TOP(BENCH)->rt->size ? &it->rank_median_s[index] : NULL)

static const struct knee_field all_fields[] = {
    KNEE_GET(collective, "collective", "collective", TEXT, SCREEN, "as nccl-tests names it"),
    KNEE_GET(algorithm, "algorithm", "algorithm", TEXT, SCREEN, "or the runtime's name"),
    KNEE_GET(ranks, "ranks", "ranks", COUNT, FULL, "ranks"),
    KNEE_GET(nodes, "nodes", "nodes", COUNT, FULL, "hosts"),
    KNEE_FIELD(ROW, spread.count, "iterations", "iterations", COUNT, FULL, "iterations timed"),
    KNEE_FIELD(ROW, spread.min_s, "min_s", "fastest", TIME, FULL, "slowest rank of each iteration"),
    KNEE_FIELD(ROW, spread.p95_s, "p95_s", "p95", TIME, FULL, "likewise"),
    KNEE_FIELD(ROW, spread.max_s, "max_s", "slowest", TIME, FULL, "likewise"),
    KNEE_FIELD(ROW, expected_s, "expected_s", "expected", TIME, SCREEN, "from the messages"),
    KNEE_GET(hops, "hops", "hops", NUMBER, FULL, "messages one after another"),
    KNEE_GET(share, "share", "share", NUMBER, FULL, "of the buffer that a rank sends"),
};
static const struct knee_field table_fields[] = {
    KNEE_AMONG_BY(knee_same_row, all_fields),
    KNEE_FIELD(ROW, bytes, "bytes", "size", MESSAGE, SCREEN, "of the buffer"),
    KNEE_FIELD(ROW, spread.median_s, "time_s", "time", TIME, SCREEN, "median"),
    KNEE_GET(alg_rate, "algbw_Bps", "algbw", RATE, FULL, "size / time"),
    KNEE_GET(bus_rate, "busbw_Bps", "busbw", RATE, SCREEN, "what a link carries"),
    KNEE_FIELD(ROW, wrong, "wrong", "wrong", COUNT, FULL, "elements; -1: not looked at"),
    KNEE_GET(device, "device", "device", TEXT, FULL, "what the ranks run on"),
};
static const struct knee_field rank_fields[] = {KEY_BY(seconds, NULL, TIME, "own clock")};
static const struct knee_field place_fields[] = {
    KEY_BY(median_us, "time", NUMBER, "us"),
    KEY_BY(alg_gb, "alg_bw", NUMBER, "GB/s"),
    KEY_BY(bus_gb, "bus_bw", NUMBER, "GB/s"),
    KEY(ROW, wrong, "nwrong", COUNT, "wrong elements"),
};
static const struct knee_field result_fields[] = {
    KEY(ROW, bytes, "size", BYTES, "of the buffer"),
    KEY_BY(elements, "count", COUNT, "elements"),
    KEY_BY(type, "type", TEXT, "of an element"),
    KEY_BY(redop, "redop", TEXT, "sum or none"),
    KEY_BY(root, "root", COUNT, "-1: none"),
    KNEE_GROUP("out_of_place", place_fields, "as in nccl-tests", .flat = true),
    KNEE_AMONG_BY(knee_same_row, all_fields),
    KEY(ROW, spread.median_s, "median_s", TIME, "median"),
    KEY(ROW, spread.two_modes, "two_modes", YES_NO, "two groups of times"),
    KNEE_ROWS_BY(rank_row, "rank_median_s", rank_fields, "per rank"),
};

/* ---- The rest of JSON ---- */

A_NUMBER(zero, void, 0)
A_NUMBER(one, void, 1)
A_BOOL(yes, void, true)
A_NUMBER(rank, void, (double)at->index)
A_TEXT(host, int, TOP(BENCH)->host_names[*it])
ROW_OF(rank_host, BENCH, index < (size_t)it->rt->size ? &it->rt->host_of[index] : NULL)

static const struct knee_field device_fields[] = {
    KEY_BY(rank, "rank", COUNT, "rank"),
    KEY_BY(host, "hostname", TEXT, "its host"),
    KEY_BY(zero, "device", COUNT, "0"),
    KEY_BY(device, "device_info", TEXT, "its device"),
};
static const struct knee_field config_fields[] = {
    KEY_BY(one, "nthreads", COUNT, "1"),
    KEY_BY(one, "ngpus", COUNT, "1"),
    KEY(BENCH, options.min_bytes, "minimum_bytes", BYTES, "smallest buffer"),
    KEY(BENCH, options.max_bytes, "maximum_bytes", BYTES, "largest buffer"),
    KEY(BENCH, options.factor, "step_factor", NUMBER, "from one size to the next"),
    KEY(BENCH, options.warmup, "warmup_iters", COUNT, "iterations not timed"),
    KEY(BENCH, options.iterations, "iterations", COUNT, "iterations timed"),
    KEY_BY(yes, "validation", YES_NO, "results are checked"),
    KNEE_ROWS_BY(rank_host, "devices", device_fields, "one per rank"),
};

static struct knee_line fitted(const struct knee_at *at)
{
    struct knee_line line = {NAN, NAN, NAN};
    knee_bench_refit(TOP(BENCH), at->row, &line);
    return line;
}

/* One of our algorithms that was timed often enough, each once. */
static const void *fit_row(const struct knee_at *at, size_t index)
{
    const BENCH *bench = at->row;
    struct knee_line line;
    for (size_t i = 0; i < bench->row_count; i++)
        if (fits(bench, i, &line) && index-- == 0)
            return bench->rows[i].exchange;
    return NULL;
}

A_TEXT(fit_collective, EXCHANGE, knee_op_name(it->op))
A_NUMBER(fit_alpha, void, fitted(at).alpha_s)
A_NUMBER(fit_rate, void, 1 / fitted(at).s_per_byte)
A_NUMBER(fit_worst, void, fitted(at).worst)
A_NUMBER(line_rate, struct knee_line, 1 / it->s_per_byte)
A_BOOL(outlier, PAIR, it->slow || it->late)
A_TEXT(runtime, BENCH, it->rt->name)
A_BOOL(complete, BENCH, it->row_count == it->rows_wanted)

static const struct knee_field fit_fields[] = {
    KEY_BY(fit_collective, "collective", TEXT, "the collective"),
    KEY(EXCHANGE, algorithm, "algorithm", TEXT, "the algorithm"),
    KEY_BY(fit_alpha, "alpha_s", TIME, "latency"),
    KEY_BY(fit_rate, "bytes_per_s", RATE, "rate of long messages"),
    KEY_BY(fit_worst, "worst_error", SHARE, "of its rows"),
};
static const struct knee_field line_fields[] = {
    KEY(struct knee_line, alpha_s, "alpha_s", TIME, "latency"),
    KEY_BY(line_rate, "bytes_per_s", RATE, "rate of long messages"),
};
static const struct knee_field pair_fields[] = {
    KEY(PAIR, a, "a", COUNT, "a rank"),
    KEY(PAIR, b, "b", COUNT, "another"),
    KNEE_AMONG(PAIR, line, line_fields),
    KEY_BY(outlier, "outlier", YES_NO, "unlike the rest"),
};
static const struct knee_field finding_fields[] = {
    KEY(struct knee_bench_finding, words, NULL, TEXT, "what stands out"),
};
static const struct knee_field fields[] = {
    KEY_BY(runtime, "runtime", TEXT, "mpi, local or nccl"),
    KEY_BY(complete, "complete", YES_NO, "false: the run was stopped"),
    KNEE_GROUP("config", config_fields, "as in nccl-tests"),
    KNEE_ROWS(BENCH, rows, row_count, "results", result_fields, "one per size", .tall = true),
    KNEE_INSIDE(BENCH, wire, "messages", line_fields, "between neighbours", .flat = true),
    KNEE_ROWS_BY(fit_row, "fits", fit_fields, "knee's algorithms, from the fastest runs"),
    KNEE_ROWS(BENCH, pairs, pair_count, "pairs", pair_fields, "two ranks each"),
    KNEE_ARRAY(BENCH, findings, finding_count, "findings", finding_fields, "what stands out",
               .tall = true),
};
static const struct knee_answer_type in_json = {.schema = "knee.bench/1", KNEE_FIELDS(fields)};

static const struct knee_field rows_fields[] = {
    KNEE_ROWS(BENCH, rows, row_count, "rows", table_fields, "one per size")};
static const struct knee_view views[] = {{.list = "rows", .most = SIZE_MAX}};
static const struct knee_answer_type as_table = {KNEE_FIELDS(rows_fields), KNEE_VIEWS(views)};

void knee_bench_write(const struct knee_bench *bench, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text)
{
    if (format == KNEE_TEXT)
        write_text(bench, text);
    else
        knee_answer_write(format == KNEE_JSON ? &in_json : &as_table, bench, format, style, text);
}
