/* SPDX-License-Identifier: MIT */
/* Pairs of hosts measured briefly by knee bench; a host most of whose pairs are slow, and single
 * slow links, become facts beside what the files say. */
#include "bench/bench.h"
#include "doctor/doctor.h"
#include "read/host/facts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double rate_of(const struct knee_bench_pair *pair)
{
    return 1 / pair->line.s_per_byte;
}

/* Its pairs, how many are slow, and the worst of them against the middle of all. */
struct host_pairs {
    size_t all, slow;
    double worst;
};

static struct host_pairs pairs_of(const struct knee_bench *bench, int host, double middle)
{
    struct host_pairs p = {0, 0, 1};
    for (size_t i = 0; i < bench->pair_count; i++) {
        const struct knee_bench_pair *pair = &bench->pairs[i];
        if (bench->rt->host_of[pair->a] != host && bench->rt->host_of[pair->b] != host)
            continue;
        p.all++;
        p.slow += pair->slow;
        if (pair->slow)
            p.worst = fmin(p.worst, rate_of(pair) / middle);
    }
    return p;
}

/* As knee bench has it: at least two of its links, and more than half of them. */
static bool to_blame(const struct host_pairs *p)
{
    return p->slow >= 2 && 2 * p->slow > p->all;
}

static void tell_hosts(const struct knee_bench *bench, struct knee_facts *hosts, size_t count,
                       double middle)
{
    for (size_t h = 0; h < count; h++) {
        struct host_pairs p = pairs_of(bench, (int)h, middle);
        char text[128];
        snprintf(text, sizeof text,
                 "%.0f %% of the middle rate at worst, %zu of its %zu pairs are slow",
                 100 * p.worst, p.slow, p.all);
        if (to_blame(&p))
            knee_fact_put(&hosts[h], "", "bench.slow_host", knee_slice_of(text));
        knee_fact_number(&hosts[h], "", "bench.pairs", (double)p.all);
    }
}

static void tell_links(const struct knee_bench *bench, struct knee_facts *hosts, double middle)
{
    for (size_t i = 0; i < bench->pair_count; i++) {
        const struct knee_bench_pair *pair = &bench->pairs[i];
        int a = bench->rt->host_of[pair->a], b = bench->rt->host_of[pair->b];
        struct host_pairs pa = pairs_of(bench, a, middle), pb = pairs_of(bench, b, middle);
        char text[128];
        if (!pair->slow || a == b || to_blame(&pa) || to_blame(&pb))
            continue;
        snprintf(text, sizeof text, "%.0f %% of the middle rate between %.40s and %.40s",
                 100 * rate_of(pair) / middle, hosts[a].host, hosts[b].host);
        knee_fact_put(&hosts[a], hosts[b].host, "bench.slow_link", knee_slice_of(text));
    }
}

void knee_host_bench(struct knee_runtime *rt, struct knee_facts *hosts, size_t count,
                     struct knee_err *err)
{
    struct knee_bench_options options;
    struct knee_bench bench = {0};
    knee_bench_options_init(&options);
    options.pairs = true;
    options.min_bytes = options.max_bytes = 1024; /* one small row: the pairs are what is wanted */
    options.iterations = 3;
    options.warmup = 1;
    if (knee_bench_options_complete(&options, err) ||
        knee_bench_run(rt, &options, NULL, NULL, &bench, err))
        rt->abort(rt, err->what);
    double middle = 1 / bench.wire.s_per_byte;
    if (rt->rank == 0) {
        tell_hosts(&bench, hosts, count, middle);
        tell_links(&bench, hosts, middle);
    }
    knee_bench_release(&bench);
}
