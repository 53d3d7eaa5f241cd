/* SPDX-License-Identifier: MIT */
/* knee watch --ras: what NCCL's RAS service says of a running job: who is behind, what stands
 * still, who is gone. */
#include "say/short.h"
#include "say/watch_report.h"

#include <math.h>

enum { NAMED = 6 };

#define REPORT struct knee_ras_report
#define ANSWER struct knee_ras_answer
#define ROW    struct knee_ras_row

static const char *state_of(const ROW *row)
{
    return row->rank->dead           ? "dead"
           : row->rank->unresponsive ? "unresponsive"
           : row->rank->missing      ? "missing"
           : row->rank->failed       ? "error"
           : row->late               ? "late"
           : row->still              ? "still"
                                     : "";
}

A_TEXT(state, ROW, state_of(it))
OBJECT(rank_object, ROW, it->rank)
OBJECT(answer_object, REPORT, it->answer)

#define OF_RANK(member, name, head, look, tier, words)                                             \
    KNEE_FIELD(struct knee_ras_rank, member, name, head, look, tier, words)
static const struct knee_field rank_fields[] = {
    OF_RANK(comm, "communicator", "communicator", TEXT, FULL, "its hash"),
    OF_RANK(rank, "rank", "rank", COUNT, SCREEN, "rank in the communicator"),
    OF_RANK(host, "host", "node", TEXT, SCREEN, "its node"),
    OF_RANK(pid, "pid", "pid", NUMBER, FULL, "its process"),
    OF_RANK(calls, "calls", "calls", COUNT, SCREEN, "collectives enqueued"),
};
static const struct knee_field row_fields[] = {
    KNEE_AMONG_BY(rank_object, rank_fields),
    KNEE_FIELD(ROW, calls_per_s, "calls_per_s", "calls/s", NUMBER, FULL, "rate while it was asked"),
    KNEE_FIELD(ROW, lag, "lag", "calls behind", COUNT, SCREEN,
               "calls behind the first rank, at the last answer"),
    KNEE_FIELD(ROW, uneven, "uneven", "looks with a gap", COUNT, FULL,
               "occasions on which counts differed"),
    KNEE_FIELD(ROW, behind, "behind", "behind in", COUNT, FULL, "of these, with this rank behind"),
    KNEE_GET(state, "state", "state", TEXT, SCREEN,
             "dead, unresponsive, missing, error, late, still or empty"),
};
#define OF_JOB(member, name, look, words) KEY(ANSWER, member, name, look, words)
static const struct knee_field answer_fields[] = {
    OF_JOB(answers, "answers", COUNT, "answers of the service"),
    OF_JOB(seconds, "seconds", TIME, "from the first to the last"),
    OF_JOB(comms, "communicators", COUNT, "communicators"),
    OF_JOB(still_comms, "still", COUNT, "of these, without a new call"),
    KNEE_ROWS(ANSWER, rows, count, "ranks", row_fields, "one row per rank and communicator"),
};
static const struct knee_field fields[] = {
    KNEE_SENTENCE,
    KEY(REPORT, nccl, "nccl", TEXT, "release of NCCL"),
    KNEE_AMONG_BY(answer_object, answer_fields),
};

static bool any_stands_out(const ANSWER *a)
{
    return a->dead || a->unresponsive || a->failed || a->late || a->still_comms;
}
WHEN(stands_out, ROW, !any_stands_out(at->up->row) || *state_of(it))

static const struct knee_view views[] = {{.list = "ranks", .pick = stands_out}};

/* ---- Sentences ---- */

#define IS(name, holds)                                                                            \
    static bool is_##name(const ROW *row)                                                          \
    {                                                                                              \
        return holds;                                                                              \
    }
IS(dead, row->rank->dead)
IS(unresponsive, row->rank->unresponsive && !row->rank->dead)
IS(failed, row->rank->failed)
IS(late, row->late)
IS(waited_for, row->still && row->lag > 0)

/* "Rank 3 on node0 is dead." "Ranks 3 on node0, 5 on node1 are dead." False: none is. */
static bool say_ranks(const ANSWER *a, bool (*is)(const ROW *), const char *one, const char *many,
                      struct knee_text *text)
{
    size_t count = 0, shown = 0;
    for (size_t i = 0; i < a->count; i++)
        count += is(&a->rows[i]);
    if (!count)
        return false;
    PUT(text, "{}Rank{} ", text->length ? " " : "", count == 1 ? "" : "s");
    for (size_t i = 0; i < a->count && shown < NAMED; i++)
        if (is(&a->rows[i]))
            PUT(text, "{}{} on {.40}", shown++ ? ", " : "", a->rows[i].rank->rank,
                a->rows[i].rank->host);
    PUT(text, "[ and {} more] {}.", count - shown, count == 1 ? one : many);
    return true;
}

static void say_still(const ANSWER *a, struct knee_said *said)
{
    PUT(said->headline.length ? &said->reason : &said->headline,
        "HUNG or idle: {} of {} communicators enqueued nothing for {time}.", a->still_comms,
        a->comms, a->seconds);
    if (!say_ranks(a, is_waited_for, "is behind: the others wait for it",
                   "are behind: the others wait for them", &said->effect))
        PUT(&said->effect, "All ranks have enqueued as many calls: they wait on a GPU or outside "
                           "NCCL, or run CUDA graphs.");
}

static void say(const void *result, struct knee_said *said)
{
    const REPORT *r = result;
    const ANSWER *a = r->answer;
    PUT(&said->title, "{ranks} in {communicators}, NCCL {.20}, {answers} in {time}", a->count,
        a->comms, r->nccl, a->answers, a->seconds);
    say_ranks(a, is_dead, "is dead", "are dead", &said->headline);
    say_ranks(a, is_unresponsive, "does not respond", "do not respond", &said->headline);
    say_ranks(a, is_failed, "reports an error", "report errors", &said->headline);
    say_ranks(a, is_late, "is always behind", "are always behind",
              said->headline.length ? &said->reason : &said->headline);
    if (a->still_comms)
        say_still(a, said);
    if (!said->headline.length)
        PUT(&said->headline, "All ranks respond; none is consistently behind.");
    else
        PUT(&said->next, "knee doctor on that node | knee hang --ras HOST");
}

const struct knee_answer_type knee_ras_answer_type = {
    .schema = "knee.ras/1", KNEE_FIELDS(fields), KNEE_VIEWS(views), .say = say};
