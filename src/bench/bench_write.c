/* SPDX-License-Identifier: MIT */
/*
 * A bench as text in the columns of nccl-tests, as its JSON, or as CSV, so that everything that
 * reads nccl-tests reads this; what knee adds follows in separate columns and members.
 */
#include "base/number.h"
#include "bench/bench.h"
#include "out/json.h"
#include "out/table.h"

#include <math.h>
#include <stdio.h>

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

static bool seen_before(const struct knee_bench *bench, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (bench->rows[k].exchange == bench->rows[i].exchange)
            return true;
    return false;
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
        if (!exchange || seen_before(bench, i) || !knee_bench_refit(bench, exchange, &line))
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

/* ---- JSON ---- */

static void json_config(const struct knee_bench *bench, struct knee_json *json)
{
    const struct knee_bench_options *o = &bench->options;
    const struct knee_runtime *rt = bench->rt;
    knee_json_open(json, "config", '{');
    knee_json_whole(json, "nthreads", 1);
    knee_json_whole(json, "ngpus", 1);
    knee_json_number(json, "minimum_bytes", o->min_bytes);
    knee_json_number(json, "maximum_bytes", o->max_bytes);
    knee_json_number(json, "step_factor", o->factor);
    knee_json_number(json, "warmup_iters", o->warmup);
    knee_json_number(json, "iterations", o->iterations);
    knee_json_bool(json, "validation", true);
    knee_json_open(json, "devices", '[');
    for (int r = 0; r < rt->size; r++) {
        knee_json_open_flat(json, NULL, '{');
        knee_json_whole(json, "rank", r);
        knee_json_string(json, "hostname", bench->host_names[rt->host_of[r]]);
        knee_json_whole(json, "device", 0);
        knee_json_string(json, "device_info", bench->rt->device_name);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
    knee_json_close(json, '}');
}

static void json_spread(const struct knee_bench *bench, const struct knee_bench_row *row,
                        struct knee_json *json)
{
    const struct knee_spread *s = &row->spread;
    knee_json_whole(json, "iterations", (int64_t)s->count);
    knee_json_number(json, "min_s", s->min_s);
    knee_json_number(json, "median_s", s->median_s);
    knee_json_number(json, "p95_s", s->p95_s);
    knee_json_number(json, "max_s", s->max_s);
    knee_json_bool(json, "two_modes", s->two_modes);
    knee_json_number(json, "expected_s", row->expected_s);
    knee_json_open_flat(json, "rank_median_s", '[');
    for (int r = 0; row->rank_median_s && r < bench->rt->size; r++)
        knee_json_number(json, NULL, row->rank_median_s[r]);
    knee_json_close(json, ']');
}

/* nccl-tests' members first: sizes in bytes, times in us, GB/s. */
static void json_row(const struct knee_bench *bench, const struct knee_bench_row *row,
                     struct knee_json *json)
{
    knee_json_open(json, NULL, '{');
    knee_json_number(json, "size", row->bytes);
    knee_json_number(json, "count", count_of(bench, row));
    knee_json_string(json, "type", "float");
    knee_json_string(json, "redop", redop_of(row->op));
    knee_json_whole(json, "root", root_of(row->op));
    knee_json_open_flat(json, "out_of_place", '{');
    knee_json_number(json, "time", row->spread.median_s * 1e6);
    knee_json_number(json, "alg_bw", algbw(row) * 1e-9);
    knee_json_number(json, "bus_bw", busbw(bench, row) * 1e-9);
    knee_json_whole(json, "nwrong", row->wrong);
    knee_json_close(json, '}');
    knee_json_string(json, "collective", knee_op_name(row->op));
    knee_json_string(json, "algorithm", algorithm_of(bench, row));
    knee_json_number(json, "hops", hops_of(bench, row));
    knee_json_number(json, "share", share_of(bench, row));
    knee_json_whole(json, "ranks", bench->rt->size);
    knee_json_whole(json, "nodes", bench->rt->host_count);
    json_spread(bench, row, json);
    knee_json_close(json, '}');
}

static void json_line(struct knee_json *json, const struct knee_line *line)
{
    knee_json_number(json, "alpha_s", line->alpha_s);
    knee_json_number(json, "bytes_per_s", 1 / line->s_per_byte);
}

static void json_fits(const struct knee_bench *bench, struct knee_json *json)
{
    knee_json_open_flat(json, "messages", '{');
    json_line(json, &bench->wire);
    knee_json_close(json, '}');
    knee_json_open(json, "fits", '[');
    for (size_t i = 0; i < bench->row_count; i++) {
        const struct knee_exchange *exchange = bench->rows[i].exchange;
        struct knee_line line;
        if (!exchange || seen_before(bench, i) || !knee_bench_refit(bench, exchange, &line))
            continue;
        knee_json_open_flat(json, NULL, '{');
        knee_json_string(json, "collective", knee_op_name(exchange->op));
        knee_json_string(json, "algorithm", exchange->algorithm);
        json_line(json, &line);
        knee_json_number(json, "worst_error", line.worst);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void json_pairs(const struct knee_bench *bench, struct knee_json *json)
{
    knee_json_open(json, "pairs", '[');
    for (size_t i = 0; i < bench->pair_count; i++) {
        const struct knee_bench_pair *p = &bench->pairs[i];
        knee_json_open_flat(json, NULL, '{');
        knee_json_whole(json, "a", p->a);
        knee_json_whole(json, "b", p->b);
        json_line(json, &p->line);
        knee_json_bool(json, "outlier", p->slow || p->late);
        knee_json_close(json, '}');
    }
    knee_json_close(json, ']');
}

static void write_json(const struct knee_bench *bench, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.bench/1");
    knee_json_string(&json, "runtime", bench->rt->name);
    knee_json_bool(&json, "complete", bench->row_count == bench->rows_wanted);
    json_config(bench, &json);
    knee_json_open(&json, "results", '[');
    for (size_t i = 0; i < bench->row_count; i++)
        json_row(bench, &bench->rows[i], &json);
    knee_json_close(&json, ']');
    json_fits(bench, &json);
    json_pairs(bench, &json);
    knee_json_open(&json, "findings", '[');
    for (size_t i = 0; i < bench->finding_count; i++)
        knee_json_string(&json, NULL, bench->findings[i].words);
    knee_json_close(&json, ']');
    knee_json_close(&json, '}');
    knee_text_puts(text, "\n");
}

/* ---- CSV and Markdown ---- */

static void write_table(const struct knee_bench *bench, enum knee_format format,
                        const struct knee_style *style, struct knee_text *text)
{
    static const char *const headers[] = {
        "collective", "algorithm",  "ranks", "nodes",      "bytes",     "time_s",
        "min_s",      "p95_s",      "max_s", "iterations", "algbw_Bps", "busbw_Bps",
        "wrong",      "expected_s", "hops",  "share",      "device"};
    struct knee_table table;
    knee_table_init(&table, "llrrrrrrrrrrrrrrl", text->alloc);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        knee_table_cell(&table, "%s", headers[i]);
    for (size_t i = 0; i < bench->row_count; i++) {
        const struct knee_bench_row *row = &bench->rows[i];
        const struct knee_spread *s = &row->spread;
        const double numbers[] = {bench->rt->size,
                                  bench->rt->host_count,
                                  row->bytes,
                                  s->median_s,
                                  s->min_s,
                                  s->p95_s,
                                  s->max_s,
                                  (double)s->count,
                                  algbw(row),
                                  busbw(bench, row),
                                  (double)row->wrong,
                                  row->expected_s,
                                  hops_of(bench, row),
                                  share_of(bench, row)};
        knee_table_cell(&table, "%s", knee_op_name(row->op));
        knee_table_cell(&table, "%s", algorithm_of(bench, row));
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
            knee_table_exact(&table, numbers[n]);
        knee_table_cell(&table, "%s", bench->rt->device_name);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

void knee_bench_write(const struct knee_bench *bench, enum knee_format format,
                      const struct knee_style *style, struct knee_text *text)
{
    if (format == KNEE_JSON)
        write_json(bench, text);
    else if (format == KNEE_TEXT)
        write_text(bench, text);
    else
        write_table(bench, format, style, text);
}
