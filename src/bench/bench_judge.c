/* SPDX-License-Identifier: MIT */
/* What stands out in a bench: links and hosts unlike the rest, times that should be shorter. */
#include "base/number.h"
#include "bench/bench.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double slow_rate = 0.8;    /* of the median rate of all pairs */
static const double late_latency = 1.5; /* times the median latency */
static const double slow_time = 1.10;   /* times what alpha and beta say */
static const double most_latency = 0.2; /* of the time: above, a busy host is as likely to blame */
static const double slack_s = 50e-6;    /* latencies closer than this are alike */

static void add_finding(struct knee_bench *bench, const char *fmt, ...) KNEE_PRINTF(2, 3);
static void add_finding(struct knee_bench *bench, const char *fmt, ...)
{
    if (bench->finding_count == KNEE_BENCH_FINDINGS_MAX)
        return;
    struct knee_bench_finding *finding = &bench->findings[bench->finding_count++];
    va_list args;
    va_start(args, fmt);
    vsnprintf(finding->words, sizeof finding->words, fmt, args);
    va_end(args);
}

struct words {
    char s[32];
};

static struct words human(double value, enum knee_unit unit)
{
    struct words words = {""};
    knee_number_human(words.s, sizeof words.s, value, unit);
    return words;
}

static const char *host_of(const struct knee_bench *bench, int rank)
{
    return bench->host_names[bench->rt->host_of[rank]];
}

/* ---- Pairs ---- */

static double median_of(const struct knee_bench *bench, bool rate)
{
    double *values = malloc((bench->pair_count + 1) * sizeof *values), median = NAN;
    for (size_t i = 0; values && i < bench->pair_count; i++)
        values[i] = rate ? 1 / bench->pairs[i].line.s_per_byte : bench->pairs[i].line.alpha_s;
    if (values)
        median = knee_median(values, bench->pair_count);
    free(values);
    return median;
}

static bool is_odd(const struct knee_bench_pair *pair)
{
    return pair->slow || pair->late;
}

/* A host is to blame when at least two of its links, and more than half of them, are odd. */
static bool host_is_odd(const struct knee_bench *bench, int rank)
{
    size_t odd = 0, all = 0;
    for (size_t i = 0; i < bench->pair_count; i++)
        if (bench->pairs[i].a == rank || bench->pairs[i].b == rank) {
            all++;
            odd += is_odd(&bench->pairs[i]);
        }
    return odd >= 2 && 2 * odd > all;
}

static void name_host(struct knee_bench *bench, int rank, double rate, double alpha_s)
{
    double worst = INFINITY, latest = 0;
    for (size_t i = 0; i < bench->pair_count; i++)
        if ((bench->pairs[i].a == rank || bench->pairs[i].b == rank) && is_odd(&bench->pairs[i])) {
            worst = fmin(worst, 1 / bench->pairs[i].line.s_per_byte);
            latest = fmax(latest, bench->pairs[i].line.alpha_s);
        }
    add_finding(bench,
                "host %s is unlike the others: down to %s and up to %s latency on its links, "
                "where the middle of all is %s and %s",
                host_of(bench, rank), human(worst, KNEE_UNIT_BYTES_PER_S).s,
                human(latest, KNEE_UNIT_SECONDS).s, human(rate, KNEE_UNIT_BYTES_PER_S).s,
                human(alpha_s, KNEE_UNIT_SECONDS).s);
}

static void judge_pairs(struct knee_bench *bench)
{
    double rate = median_of(bench, true), alpha_s = median_of(bench, false);
    for (size_t i = 0; i < bench->pair_count; i++) {
        struct knee_bench_pair *pair = &bench->pairs[i];
        pair->slow = 1 / pair->line.s_per_byte < slow_rate * rate;
        pair->late = pair->line.alpha_s > late_latency * alpha_s + slack_s;
    }
    for (int r = 0; r < bench->rt->size; r++)
        if (host_is_odd(bench, r))
            name_host(bench, r, rate, alpha_s);
    for (size_t i = 0; i < bench->pair_count; i++) {
        const struct knee_bench_pair *pair = &bench->pairs[i];
        if (is_odd(pair) && !host_is_odd(bench, pair->a) && !host_is_odd(bench, pair->b))
            add_finding(bench, "the link %s - %s is unlike the others: %s and %s, not %s and %s",
                        host_of(bench, pair->a), host_of(bench, pair->b),
                        human(1 / pair->line.s_per_byte, KNEE_UNIT_BYTES_PER_S).s,
                        human(pair->line.alpha_s, KNEE_UNIT_SECONDS).s,
                        human(rate, KNEE_UNIT_BYTES_PER_S).s, human(alpha_s, KNEE_UNIT_SECONDS).s);
    }
}

/* ---- Rows ---- */

static bool first_of_its_kind(const struct knee_bench *bench, size_t i)
{
    return i == 0 || bench->rows[i].op != bench->rows[i - 1].op ||
           bench->rows[i].exchange != bench->rows[i - 1].exchange;
}

static const char *algorithm_of(const struct knee_bench_row *row)
{
    return row->exchange ? row->exchange->algorithm : "library's";
}

/* The rows from `first` on of one operation: the middle of measured / expected where the rate
 * decides. Latencies of loaded hosts scatter too much to blame the network for. */
static void judge_times(struct knee_bench *bench, size_t first)
{
    double ratios[256], middle;
    size_t count = 0, last = first;
    for (size_t i = first; i < bench->row_count && (i == first || !first_of_its_kind(bench, i));
         i++) {
        const struct knee_bench_row *row = &bench->rows[i];
        if (row->latency_share < most_latency && count < sizeof ratios / sizeof *ratios) {
            ratios[count++] = row->spread.median_s / row->expected_s;
            last = i;
        }
    }
    middle = knee_median(ratios, count);
    if (!(middle > slow_time))
        return;
    const struct knee_bench_row *row = &bench->rows[last];
    add_finding(bench,
                "%s (%s) is slower than it should be: %.0f %% above what the same hosts reach in "
                "pairs; at %s it takes %s instead of %s",
                knee_op_name(row->op), algorithm_of(row), (middle - 1) * 100,
                human(row->bytes, KNEE_UNIT_BYTES).s,
                human(row->spread.median_s, KNEE_UNIT_SECONDS).s,
                human(row->expected_s, KNEE_UNIT_SECONDS).s);
}

static void judge_modes(struct knee_bench *bench, const struct knee_bench_row *row)
{
    if (!row->spread.two_modes || !(row->latency_share < most_latency / 2))
        return;
    add_finding(bench, "%s (%s) at %s takes one of two times: %s, or %s in %.0f %% of the runs",
                knee_op_name(row->op), algorithm_of(row), human(row->bytes, KNEE_UNIT_BYTES).s,
                human(row->spread.fast_s, KNEE_UNIT_SECONDS).s,
                human(row->spread.slow_s, KNEE_UNIT_SECONDS).s, row->spread.slow_share * 100);
}

void knee_bench_judge(struct knee_bench *bench)
{
    bench->finding_count = 0;
    if (bench->options.pairs)
        judge_pairs(bench);
    for (size_t i = 0; i < bench->row_count; i++)
        if (first_of_its_kind(bench, i))
            judge_times(bench, i);
    for (size_t i = 0; i < bench->row_count; i++)
        judge_modes(bench, &bench->rows[i]);
    for (size_t i = 0; i < bench->row_count; i++)
        if (bench->rows[i].wrong > 0)
            add_finding(bench, "%s at %s gave %lld wrong values", knee_op_name(bench->rows[i].op),
                        human(bench->rows[i].bytes, KNEE_UNIT_BYTES).s,
                        (long long)bench->rows[i].wrong);
}
