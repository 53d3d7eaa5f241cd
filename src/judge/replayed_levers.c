/* SPDX-License-Identifier: MIT */
/*
 * Levers from a replay. A mean step in a closed form cannot know what hides behind what; where the
 * timeline is at hand, the standard table of changes is replayed and takes the place of the closed
 * forms' levers: every one of them is a row of `knee replay`, with the same numbers.
 */
#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "judge/judge.h"
#include "knee_replay.h"

#include <math.h>
#include <string.h>

/* A graph that leaves more of the time open than this does not know what depends on what. */
#define MOST_UNEXPLAINED 0.25

/* What a row of the standard table is called as a lever; `like` is the lever of the closed forms
 * whose examples it needs (a bigger global batch needs more of them). */
static const struct {
    const char *row, *name, *change, *like, *risk;
    unsigned kind;
} table[] = {
    {"wire bf16", "compress: bf16", "wire bf16", NULL, "small: rounding of the sum",
     KNEE_LEVER_COMPRESS},
    {"wire fp8", "compress: fp8", "wire fp8", NULL, "needs scaling; watch the loss",
     KNEE_LEVER_COMPRESS},
    {"wire powersgd:4", "compress: PowerSGD", "wire powersgd:4", NULL,
     "needs error feedback; loses a little accuracy at low rank", KNEE_LEVER_COMPRESS},
    {"even", "even workers", "even", NULL, "find the slow worker", KNEE_LEVER_STRAGGLER},
    {"network 2x", "faster link", "network 2x", NULL, "money for hardware", KNEE_LEVER_NETWORK},
    {"overlap", "overlap", "overlap", NULL, "none for quality", KNEE_LEVER_OVERLAP},
    {"bucket 100 MB", "larger buckets", "bucket 100 MB", NULL,
     "memory; the last bucket is sent later", KNEE_LEVER_OVERLAP},
    {"loader-ahead", "faster loader", "loader-ahead", NULL, "CPU cores or storage",
     KNEE_LEVER_INPUT},
    {"no-host-gaps", "fewer launches", "no-host-gaps", NULL,
     "CUDA graphs or compilation; fixed shapes", KNEE_LEVER_HOST},
    {"pinned", "hidden copies", "pinned", NULL, "none for quality", KNEE_LEVER_HOST},
    {"keep-params", "keep parameters", "keep-params", NULL,
     "memory: all parameters stay between forward and backward",
     KNEE_LEVER_OVERLAP | KNEE_LEVER_NETWORK},
    {"batch 2x", "bigger local batch", "batch 2x", "bigger local batch",
     "memory; global batch 2x, nearer to the critical batch", KNEE_LEVER_BATCH},
    {"accumulate 4", "accumulate", "accumulate 4", "accumulate",
     "no memory; global batch 4x, nearer to the critical batch", KNEE_LEVER_BATCH},
    {"workers ", "more workers", "twice as many, same local batch", "bigger local batch",
     "each pays less than the last; global batch 2x", KNEE_LEVER_WORKERS},
    {"sync-every 8", "local SGD", "sync-every 8", NULL,
     "workers drift apart between synchronisations", KNEE_LEVER_SYNC},
};
#define TABLE (sizeof table / sizeof *table)
_Static_assert(TABLE <= KNEE_LEVERS_MAX, "KNEE_LEVERS_MAX is too small");

/* Examples needed before over after the change, as the closed forms know them; NaN: not known. */
static double examples_ratio(const struct knee_prediction *p, const char *like)
{
    for (size_t i = 0; like && i < p->lever_count; i++)
        if (strcmp(p->levers[i].name, like) == 0)
            return (1 + p->levers[i].quality_gain) / (1 + p->levers[i].gain);
    return isnan(p->at.time_to_quality_s) ? NAN : 1;
}

static struct knee_lever lever_of(const struct knee_prediction *p,
                                  const struct knee_replay_row *row, size_t known)
{
    struct knee_lever lever = {.name = table[known].name,
                               .change = table[known].change,
                               .risk = table[known].risk,
                               .kind = table[known].kind,
                               .training = row->training_changes,
                               .replayed = true,
                               .gain = row->gain,
                               .low_s = row->low_s,
                               .high_s = row->high_s,
                               .knee_workers = NAN};
    lever.row = p->at;
    memset(lever.row.step.label_s, 0, sizeof lever.row.step.label_s);
    lever.row.step.wall_s = row->step_s;
    lever.row.ratio = row->ratio;
    lever.row.efficiency = 1 / (1 + row->ratio);
    lever.row.throughput_per_s = p->at.throughput_per_s * (1 + row->gain);
    lever.quality_gain = (1 + row->gain) * examples_ratio(p, table[known].like) - 1;
    lever.cost_ratio = 1 / (1 + row->gain);
    lever.saved_per_day = (1 - lever.cost_ratio) * p->at.workers * p->job.hw.price_per_hour * 24;
    return lever;
}

/* A name that ends in a space is followed by a number; none begins with another. */
static bool is_row(const char *known, const char *name)
{
    return strncmp(known, name, strlen(known)) == 0;
}

/* Rows are in the replay's order: what leaves training as it is first, then most gain. */
static void take_rows(struct knee_prediction *p, const struct knee_replay *replay)
{
    struct knee_lever levers[KNEE_LEVERS_MAX] = {{0}};
    size_t count = 0;
    for (size_t i = 0; i < replay->row_count; i++)
        for (size_t known = 0; known < TABLE; known++)
            if (!replay->rows[i].refused[0] && is_row(table[known].row, replay->rows[i].name))
                levers[count++] = lever_of(p, &replay->rows[i], known);
    memcpy(p->levers, levers, count * sizeof *levers);
    p->lever_count = count;
}

/* With nobody late other ranks wait all the same where they depend on each other: the replay knows.
 */
static void take_punctual(struct knee_diagnosis *d)
{
    const struct knee_prediction *p = &d->prediction;
    for (size_t i = 0; i < p->lever_count; i++)
        if (strcmp(p->levers[i].name, "even workers") == 0)
            d->punctual_step_s = p->levers[i].row.step.wall_s;
}

/* Why this recording is not replayed unasked; NULL: it is. */
static const char *unsuited(const struct knee_account *account, const struct knee_diagnosis *d)
{
    const unsigned alone =
        KNEE_GAP_ONE_RANK | KNEE_GAP_RANKS_MISSING | KNEE_GAP_UNMATCHED | KNEE_GAP_OTHER_STEPS;
    if (d->gaps & KNEE_GAP_NO_COMPUTE)
        return "there is next to no compute";
    if (d->gaps & KNEE_GAP_SERVING)
        return "a model is served here: levers of training are not told";
    if (d->gaps & alone)
        return "ranks are missing, and what they exchange cannot be replayed";
    for (size_t r = 0; r < account->rank_count; r++)
        if (account->ranks[r].trace->host_event_count == 0)
            return "the host's calls are not in the recording, or were not kept";
    return NULL;
}

static bool is_large(const struct knee_account *account)
{
    size_t work = 0;
    uint64_t bytes = 0;
    for (size_t r = 0; r < account->rank_count; r++) {
        const struct knee_rank_account *rank = &account->ranks[r];
        work += rank->source->span_count;
        if (r == 0 || rank->trace != account->ranks[r - 1].trace)
            bytes += rank->trace->bytes;
    }
    return work > KNEE_LEVERS_MOST_WORK || bytes > KNEE_LEVERS_MOST_BYTES;
}

knee_status knee_replay_levers(const struct knee_account *account, bool also_large,
                               const struct knee_alloc *alloc, struct knee_diagnosis *d,
                               struct knee_err *err)
{
    struct knee_replay *replay = NULL;
    struct knee_changes none;
    struct knee_err why = {.status = KNEE_OK};
    const char *reason = unsuited(account, d);
    if (!reason && !also_large && is_large(account))
        reason = "the recording is large: --levers replay does it all the same";
    knee_format(d->closed_because, sizeof d->closed_because, "%s", reason ? reason : "");
    if (reason)
        return KNEE_OK;
    if (!(replay = knee_resize(alloc, NULL, sizeof *replay)))
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the levers");
    knee_changes_init(&none);
    knee_status status = knee_replay(account, &none, alloc, replay, &why);
    if (!status && replay->unexplained > MOST_UNEXPLAINED) {
        knee_format(d->closed_because, sizeof d->closed_because,
                    "nothing in the recording explains %.0f %% of its time",
                    100 * fmin(1, replay->unexplained));
    } else if (!status) {
        take_rows(&d->prediction, replay);
        take_punctual(d);
        knee_diagnosis_choose(d);
    } else if (status == KNEE_SYSTEM && err) {
        *err = why;
    } else {
        knee_format(d->closed_because, sizeof d->closed_because, "%s", why.what);
    }
    knee_resize(alloc, replay, 0);
    return status == KNEE_SYSTEM ? status : KNEE_OK;
}
