/* SPDX-License-Identifier: MIT */
/* The account of many ranks with many collectives each, made up in memory: seconds of the account
 * and megabytes at its height, for N ranks and for half of them, so that what is not linear shows.
 * Usage: bench/match [RANKS [CALLS]], 1024 and 10000 by default. */
#include "timeline/builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static uint64_t state = 1;

static int64_t random_below(int64_t most)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)most);
}

/* A tensor group of 8, a data group of the others: two channels on every rank. */
static struct knee_trace make_rank(int64_t rank, int64_t ranks, int64_t calls)
{
    struct knee_builder *b = knee_builder_new(NULL, NULL);
    struct knee_trace trace = {.rank = rank, .world_size = ranks, .format = "made up"};
    static const char kernel[] = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)";
    int64_t clock = (rank / 8) * 3000000 % 50000000; /* every node has its own */
    char tensor[32], data[32];
    snprintf(tensor, sizeof tensor, "tp%lld", (long long)(rank / 8));
    snprintf(data, sizeof data, "dp%lld", (long long)(rank % 8));
    for (int64_t i = 0; i < calls && b; i++) {
        struct knee_call_facts facts = KNEE_CALL_UNKNOWN;
        const char *group = i % 4 ? tensor : data;
        int64_t start = clock + 100000 * i + random_below(40000);
        facts.op = KNEE_OP_ALL_REDUCE;
        facts.bytes = 1 << 20;
        facts.group_size = i % 4 ? 8 : ranks / 8;
        facts.group = knee_builder_name(b, group, strlen(group)) + 1;
        knee_builder_span(b,
                          &(struct knee_gpu_work){0, start, clock + 100000 * i + 60000,
                                                  knee_builder_name(b, kernel, sizeof kernel - 1),
                                                  20, KNEE_NO_CORRELATION, false, &facts});
    }
    trace.file = strdup("made up");
    if (!b || !trace.file || knee_builder_finish(b, &trace, NULL))
        exit(4);
    knee_builder_free(b);
    return trace;
}

static double measure(int64_t ranks, int64_t calls)
{
    struct knee_trace *traces = calloc((size_t)ranks, sizeof *traces);
    struct knee_account account;
    struct knee_err err;
    struct rusage usage;
    if (!traces)
        exit(4);
    for (int64_t r = 0; r < ranks; r++)
        traces[r] = make_rank(r, ranks, calls);
    double start = now_s();
    if (knee_account(traces, (size_t)ranks, NULL, &account, &err)) {
        fprintf(stderr, "%s\n", err.what);
        exit(4);
    }
    double took = now_s() - start;
    getrusage(RUSAGE_SELF, &usage);
    printf("%5lld ranks x %6lld calls: %7.2f s CPU, %6ld MB resident, %zu matched, %zu not, "
           "%.0f ns a call\n",
           (long long)ranks, (long long)calls, took, usage.ru_maxrss / 1024, account.instances,
           account.unmatched, 1e9 * took / ((double)ranks * (double)calls));
    knee_account_release(&account);
    for (int64_t r = 0; r < ranks; r++)
        knee_trace_release(&traces[r]);
    free(traces);
    return took;
}

int main(int argc, char **argv)
{
    int64_t ranks = argc > 1 ? atoll(argv[1]) : 1024, calls = argc > 2 ? atoll(argv[2]) : 10000;
    double half = measure(ranks / 2, calls), all = measure(ranks, calls);
    printf("twice the ranks take %.2f times as long\n", all / half);
    return 0;
}
