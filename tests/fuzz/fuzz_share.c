/* SPDX-License-Identifier: MIT */
/* Tasks (first byte even) and outcomes (odd) of two ranks from any bytes: refused, or good enough
 * to work with. */
#include "timeline/builder.h"
#include "timeline/wire_format.h"

#include <stdlib.h>
#include <string.h>

enum { RANKS = 2, CALLS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct knee_trace traces[RANKS];

static struct knee_trace made_up(int rank)
{
    static const char all_reduce[] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)";
    struct knee_trace trace = {.rank = rank, .world_size = RANKS, .format = "fuzz"};
    struct knee_builder *b = knee_builder_new(NULL, NULL);
    if (!b)
        abort();
    for (int c = 0; c < CALLS; c++) {
        int64_t at = 1000 * c;
        knee_builder_span(b, &(struct knee_gpu_work){0, at, at + 300 + 100 * rank,
                                                     knee_builder_name(b, "gemm", 4), 7,
                                                     KNEE_NO_CORRELATION, false, NULL});
        knee_builder_span(
            b, &(struct knee_gpu_work){0, at + 300 + 100 * rank, at + 700,
                                       knee_builder_name(b, all_reduce, sizeof all_reduce - 1), 20,
                                       KNEE_NO_CORRELATION, false, NULL});
    }
    trace.file = strdup("fuzz");
    if (knee_builder_finish(b, &trace, NULL))
        abort();
    knee_builder_free(b);
    return trace;
}

static void list(struct knee_account *account, struct knee_between *between,
                 struct knee_share *shares)
{
    if (knee_account_begin(traces, RANKS, NULL, account, between, NULL) ||
        between->tasks[0].meeting_count != CALLS)
        abort();
    for (size_t i = 0; i < RANKS; i++)
        shares[i] =
            (struct knee_share){&account->ranks[i], &between->tasks[i], &between->outcomes[i]};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct knee_account account;
    struct knee_between between;
    struct knee_share shares[RANKS];
    if (size == 0)
        return 0;
    for (int r = 0; r < RANKS && !traces[r].file; r++)
        traces[r] = made_up(r);
    list(&account, &between, shares);
    bool good = true;
    if (data[0] % 2 == 0) {
        for (size_t i = 0; i < RANKS; i++)
            knee_task_release(shares[i].task, NULL);
        good = !knee_tasks_unpack(data + 1, size - 1, shares, RANKS, NULL, NULL);
        for (size_t i = 0; i < RANKS && good; i++)
            if (!knee_account_rank(shares[i].rank, shares[i].task, NULL, shares[i].outcome))
                abort();
        knee_between_release(&between);
        knee_account_release(&account);
        return 0;
    }
    good = !knee_outcomes_unpack(data + 1, size - 1, shares, RANKS, NULL, NULL);
    if (good && knee_account_end(&account, &between, NULL))
        abort(); /* labels do not sum up, or memory went */
    knee_between_release(&between);
    knee_account_release(&account);
    return 0;
}
