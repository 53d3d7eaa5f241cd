/* SPDX-License-Identifier: MIT */
/* The account over several processes is the account of one, whoever holds the spans. */
#include "reach/shared_account.h"
#include "timeline/wire_format.h"

#include "ranks.h"
#include "timelines.h"

struct job {
    const struct timelines *set;
    knee_status status;
    char *words;
    size_t spans_at_0; /* of the traces that others hold */
};

/* A trace as it comes to rank 0: its outline, packed and unpacked. */
static struct knee_trace travelled(const struct knee_trace *trace)
{
    struct knee_trace outline, back;
    if (knee_trace_outline(trace, NULL, &outline, NULL))
        abort();
    size_t size = knee_trace_packed_size(&outline);
    unsigned char *bytes = malloc(size);
    knee_trace_pack(&outline, bytes);
    if (knee_trace_unpack(bytes, size, NULL, &back, NULL))
        abort();
    free(bytes);
    knee_trace_release(&outline);
    return back;
}

static void lead(struct knee_runtime *rt, struct job *job)
{
    struct knee_trace traces[TRACES_MAX] = {0};
    struct knee_account account;
    int holders[TRACES_MAX] = {0};
    size_t count = job->set->count;
    for (size_t i = 0; i < count; i++) {
        holders[i] = (int)i % rt->size;
        traces[i] = holders[i] ? travelled(&job->set->traces[i]) : job->set->traces[i];
        job->spans_at_0 += holders[i] ? spans_of(&traces[i]) : 0;
    }
    job->status = knee_account_over(rt, traces, count, holders, &account, NULL);
    if (!job->status) {
        job->words = all_words(traces, count, &account);
        knee_account_release(&account);
    }
    for (size_t i = 0; i < count; i++)
        if (holders[i])
            knee_trace_release(&traces[i]);
}

static void one_rank(struct knee_runtime *rt, void *ctx)
{
    struct job *job = ctx;
    struct knee_trace own[TRACES_MAX] = {0};
    struct knee_account account;
    size_t count = 0;
    if (rt->rank == 0) {
        lead(rt, job);
        return;
    }
    for (size_t i = 0; i < job->set->count; i++)
        if ((int)i % rt->size == rt->rank)
            own[count++] = job->set->traces[i];
    if (knee_account_over(rt, own, count, NULL, &account, NULL) || account.rank_count)
        abort();
}

/* What of interest the random sets had in them. */
struct seen {
    size_t refused, matched, shifted, split, late;
};

static void look(const struct knee_account *account, struct seen *seen)
{
    bool split = false;
    for (size_t r = 0; r < account->rank_count; r++)
        split = split || account->ranks[r].split;
    seen->matched += account->instances > 0;
    seen->shifted += account->largest_shift_ns != 0;
    seen->split += split;
    seen->late += account->straggler_count > 1;
}

TEST(any_number_of_processes_says_the_same)
{
    uint64_t seed = 20261115;
    struct seen seen = {0};
    size_t spans = 0, spans_at_0 = 0;
    int rounds = UNIT_SANITIZED ? 100 : 300;
    for (int round = 0; round < rounds; round++) {
        OWNED(timelines) set = random_timelines(&seed);
        struct knee_account account;
        knee_status alone = knee_account(set.traces, set.count, NULL, &account, NULL);
        char *words = alone ? NULL : all_words(set.traces, set.count, &account);
        for (int n = 1; n <= 4; n++) {
            struct job job = {.set = &set};
            on_ranks(n, one_rank, &job);
            assert_int_equal(job.status, alone);
            if (!alone)
                assert_string_equal(job.words, words);
            free(job.words);
            spans_at_0 += job.spans_at_0;
            for (size_t i = 0; i < set.count; i++)
                spans += (int)i % n ? spans_of(&set.traces[i]) : 0;
        }
        seen.refused += alone == KNEE_INPUT;
        free(words);
        if (!alone) {
            look(&account, &seen);
            knee_account_release(&account);
        }
    }
    size_t some = (size_t)rounds / 10;
    assert_true(seen.refused && seen.matched > some && seen.shifted > some);
    assert_true(seen.split > some && seen.late > some);
    assert_true(spans_at_0 < spans / 2); /* half of them are calls here */
}
