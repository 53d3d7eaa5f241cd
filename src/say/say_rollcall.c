/* SPDX-License-Identifier: MIT */
/* knee trace over a roll call (Flight Recorder dumps, NCCL Inspector files): who is missing, who is
 * late. Schema knee.rollcall/1. */
#include "knee_reports.h"
#include "say/short.h"

#include <math.h>
#include <string.h>

enum { NAMED = 6 };

#define REPORT struct knee_roll_report
#define ANSWER struct knee_roll_answer
#define RANK   struct knee_roll_rank
#define STUCK  struct knee_stuck
#define KIND   struct knee_collective_account

#define GROUP(row) TOP(REPORT)->roll->groups[row]

static void known(struct knee_value *out, int64_t value)
{
    if (value >= 0)
        knee_value_number(out, (double)value);
}

/* "9 and 14", "0, 1, 2 and 5 more" */
static void say_ranks(const int32_t *ranks, size_t count, struct knee_text *text)
{
    size_t shown = count > NAMED ? NAMED : count;
    for (size_t i = 0; i < shown; i++)
        PUT(text, "{}{}", i == 0 ? "" : i + 1 == count ? " and " : ", ", ranks[i]);
    PUT(text, "[ and {} more]", count - shown);
}

/* ---- Lists ---- */

A_NUMBER(bare_rank, void, *(const int32_t *)at->row)

static const struct knee_field bare_fields[] = {
    {.kind = COUNT, .tier = DATA, .get = bare_rank, .about = "rank"},
};

GETTER(why, struct knee_blamed, bool silent = it->blame == KNEE_BLAME_SILENT;
       knee_value_text(out, silent ? "silent" : "behind"))

static const struct knee_field blamed_fields[] = {
    KEY(struct knee_blamed, rank, "rank", COUNT, "rank"),
    KEY_BY(why, "why", TEXT, "`silent` or `behind`"),
    KEY(struct knee_blamed, groups, "groups", COUNT, "groups that wait for it"),
};

A_TEXT(stuck_group, STUCK, GROUP(it->group).name)

A_TEXT(stuck_for, STUCK, GROUP(it->group).description ? GROUP(it->group).description : "")
A_TEXT(stuck_op, STUCK, knee_op_name(it->op))
GETTER(stuck_bytes, STUCK, known(out, it->bytes))

WORDS(stuck_absent, STUCK, say_ranks(it->absent, it->absent_count, text))

static const struct knee_field stuck_fields[] = {
    KNEE_GET(stuck_group, "group", "group", TEXT, SCREEN, "process group"),
    KNEE_GET(stuck_for, "description", "used for", TEXT, FULL, "what the group is for"),
    KNEE_FIELD(STUCK, sequence, "number", "number", COUNT, SCREEN, "sequence number in the group"),
    KNEE_GET(stuck_op, "name", "operation", TEXT, SCREEN, "operation"),
    KNEE_GET(stuck_bytes, "bytes", "size", MESSAGE, SCREEN, "message size"),
    KNEE_FIELD(STUCK, entered, "entered", "entered", COUNT, SCREEN, "ranks that wait in it"),
    KNEE_GET(stuck_absent, NULL, "missing ranks", TEXT, SCREEN, "members"),
    KNEE_ROWS(STUCK, absent, absent_count, "not_in_it", bare_fields, "members that did not enter"),
};

A_NUMBER(kind_size, KIND, it->group_size > 0 ? it->group_size : (double)NAN)
A_TEXT(kind_op, KIND, knee_op_name(it->op))
GETTER(kind_bytes, KIND, known(out, it->bytes))

#define OF_KIND(member, name, head, look, words)                                                   \
    KNEE_FIELD(KIND, member, name, head, look, FULL, words)
static const struct knee_field kind_fields[] = {
    OF_KIND(group, "group", "group", TEXT, "process group"),
    OF_KIND(description, "description", NULL, TEXT, "what the group is for"),
    KNEE_GET(kind_size, "group_size", "ranks", COUNT, FULL, "its size"),
    KNEE_GET(kind_op, "name", "operation", TEXT, FULL, "operation"),
    KNEE_GET(kind_bytes, "bytes", "size", MESSAGE, FULL, "message size"),
    OF_KIND(calls, "calls", "calls", COUNT, "calls on all ranks"),
    OF_KIND(matched, "joined", "joined", COUNT, "collectives found on all ranks"),
    OF_KIND(duration_s, "duration_s", "duration", TIME, "of a call, waiting included"),
    OF_KIND(wait_s, "wait_s", "wait", TIME, "for the last rank"),
    OF_KIND(transfer_s, "transfer_s", "transfer", TIME, "without waiting"),
    OF_KIND(bus_bytes_per_s, "busbw_bytes_per_s", "bus bandwidth", RATE, "bus bandwidth"),
    OF_KIND(expected_s, "expected_s", "expected", TIME, "transfer on the cluster given"),
};

A_TEXT(rank_group, RANK, GROUP(it->group).name)
A_TEXT(rank_mark, RANK, it->late ? "<- late" : "")

#define OF_RANK(member, name, head, look, tier, words)                                             \
    KNEE_FIELD(RANK, member, name, head, look, tier, words)
static const struct knee_field rank_fields[] = {
    KNEE_GET(rank_group, "group", "group", TEXT, FULL, "process group"),
    OF_RANK(rank, "rank", "rank", COUNT, SCREEN, "rank"),
    OF_RANK(calls, "calls", NULL, COUNT, DATA, "calls seen"),
    OF_RANK(joined, "joined", "collectives", COUNT, SCREEN, "collectives timed on all their ranks"),
    OF_RANK(last, "last", "came last", COUNT, SCREEN, "of these, it came last"),
    KNEE_NS(RANK, wait_ns, "wait_s", "wait", TIME, SCREEN, "for the last rank"),
    KNEE_NS(RANK, transfer_ns, "transfer_s", "transfer", TIME, FULL, "without waiting"),
    KNEE_NS(RANK, held_ns, "held_s", "delays others by", TIME, SCREEN,
            "what the others waited for it"),
    OF_RANK(late, "late", NULL, YES_NO, DATA, "last too often for chance"),
    KNEE_GET(rank_mark, NULL, "", TEXT, SCREEN, "late"),
};

/* ---- The answer ---- */

A_NUMBER(skipped, struct knee_rollcall, (double)it->skipped)
A_TEXT(machine, ANSWER, *it->machine ? it->machine : NULL)

#define ONLY(type, member, name, look, words) KEY(type, member, name, look, words)
static const struct knee_field roll_fields[] = {
    ONLY(struct knee_rollcall, format, "format", TEXT, "kind of the files"),
    ONLY(struct knee_rollcall, source_count, "files", COUNT, "files read"),
    ONLY(struct knee_rollcall, entry_count, "entries", COUNT, "calls in them"),
    KEY_BY(skipped, "skipped", COUNT, "entries not readable"),
};
static const struct knee_field answer_fields[] = {
    ONLY(ANSWER, joined, "joined", COUNT, "collectives timed on all their ranks"),
    ONLY(ANSWER, partial, "partial", COUNT, "collectives with some of their ranks"),
    ONLY(ANSWER, mismatched, "mismatched", COUNT, "ranks disagree on operation or size"),
    ONLY(ANSWER, p2p, "p2p", COUNT, "sends and receives, only counted"),
    KNEE_NS(ANSWER, wait_ns, "wait_s", NULL, TIME, DATA, "over all ranks"),
    KNEE_NS(ANSWER, transfer_ns, "transfer_s", NULL, TIME, DATA, "over all ranks"),
    KEY_BY(machine, "machine", TEXT, "cluster of expected times"),
    KNEE_ROWS(ANSWER, blamed, blamed_count, "blamed", blamed_fields, "ranks the others wait for"),
    KNEE_ROWS(ANSWER, missing, missing_count, "missing", bare_fields, "ranks without a dump"),
    KNEE_ROWS(ANSWER, stuck, stuck_count, "stuck", stuck_fields, "unfinished collectives"),
    KNEE_ROWS(ANSWER, collectives, collective_count, "collectives", kind_fields, "most time first"),
    KNEE_ROWS(ANSWER, ranks, rank_count, "ranks", rank_fields, "one row per group and rank"),
};
static const struct knee_field verdict_fields[] = {KNEE_SENTENCE};
static const struct knee_field fields[] = {
    KNEE_GROUP("verdict", verdict_fields, "the answer"),
    KNEE_AMONG(REPORT, roll, roll_fields, .pointer = true),
    KNEE_AMONG(REPORT, answer, answer_fields, .pointer = true),
};

/* One table on a screen: what is stuck, or else who is late and who waits. */
WHEN(timed, RANK, !TOP(REPORT)->answer->stuck_count && (it->joined || it->duration_ns > 0))

static const struct knee_view views[] = {
    {.list = "ranks", .title = "Ranks", .pick = timed},
    {.list = "stuck", .title = "Unfinished collectives"},
    {.list = "collectives", .title = "Collectives", .tier = FULL},
};

/* ---- Sentences ---- */

/* Groups in which ranks wait and of which a rank without a dump is a member. */
static size_t groups_that_wait(const REPORT *r)
{
    size_t count = 0;
    for (size_t i = 0; i < r->answer->stuck_count; i++) {
        const struct knee_comm_group *group = &r->roll->groups[r->answer->stuck[i].group];
        bool found = false;
        for (size_t m = 0; m < group->member_count && !found; m++)
            for (size_t k = 0; k < r->answer->missing_count && !found; k++)
                found = group->members[m] == r->answer->missing[k];
        count += found;
    }
    return count;
}

static void say_blamed(const ANSWER *a, struct knee_text *text)
{
    int32_t ranks[NAMED] = {0};
    bool one = a->blamed_count == 1, silent = a->blamed[0].blame == KNEE_BLAME_SILENT;
    for (size_t i = 0; i < a->blamed_count && i < NAMED; i++)
        ranks[i] = a->blamed[i].rank;
    PUT(text, "Look at rank{} ", one ? "" : "s");
    say_ranks(ranks, a->blamed_count, text);
    knee_text_printf(text,
                     silent ? ": %s not entered what the others wait in. "
                            : ": %s fallen behind the others. ",
                     one ? "it has" : "they have");
}

/* A rank that is killed, locked or whose node is gone writes no dump: it comes first. */
static void say_stuck(const REPORT *r, struct knee_said *said)
{
    const ANSWER *a = r->answer;
    size_t groups = groups_that_wait(r);
    if (a->missing_count) {
        bool one = a->missing_count == 1;
        PUT(&said->headline, "{} rank{} ", groups ? "Check" : "No dump of", one ? "" : "s");
        say_ranks(a->missing, a->missing_count, &said->headline);
        knee_text_puts(&said->headline, groups ? " first: no dump, and other ranks wait." : ".");
        PUT(&said->reason, groups == 1 ? "[{groups} with {} waits. ]" : "[{groups} with {} wait. ]",
            groups, one ? "it" : "them");
    }
    if (a->blamed_count)
        say_blamed(a, a->missing_count ? &said->reason : &said->headline);
    else if (a->stuck_count && !a->missing_count)
        PUT(&said->headline,
            "All ranks are in the same collectives: a GPU or the network is stuck.");
    if (a->mismatched)
        PUT(&said->reason,
            "Ranks disagree on operation or size in {collectives}, first number {} of group "
            "{.40}. ",
            a->mismatched, a->mismatch_sequence, r->roll->groups[a->mismatch_group].name);
    if (said->headline.length)
        PUT(&said->next, "knee hang with the same files and the ranks' logs");
}

static void say_late(const REPORT *r, struct knee_said *said)
{
    const ANSWER *a = r->answer;
    const RANK *late = NULL;
    for (size_t i = 0; i < a->rank_count; i++)
        if (a->ranks[i].late && (!late || a->ranks[i].held_ns > late->held_ns))
            late = &a->ranks[i];
    struct knee_text *text = said->headline.length ? &said->effect : &said->headline;
    if (late) {
        PUT(text, "Rank {} is late: it comes last at {} of {} collectives.", late->rank, late->last,
            late->joined);
        PUT(&said->reason, "The others waited {time} for it. ", 1e-9 * (double)late->held_ns);
        if (!said->next.length)
            PUT(&said->next, "knee doctor on the node of rank {}, then record a trace", late->rank);
    } else if (a->joined) {
        PUT(text, "No rank is late more often than by chance.");
    }
    if (a->wait_ns + a->transfer_ns > 0)
        PUT(&said->reason,
            "Waiting is {}{share} of the time in collectives, the rest is transfer. ",
            a->partial ? "at least " : "",
            (double)a->wait_ns / (double)(a->wait_ns + a->transfer_ns));
    if (a->slow_wire != SIZE_MAX) {
        const KIND *c = &a->collectives[a->slow_wire];
        PUT(&said->effect,
            "Slow link: {} of {message} at {rate}; {} reaches {rate}. Check the transport: "
            "NCCL_DEBUG=INFO.",
            knee_op_name(c->op), c->bytes, c->bus_bytes_per_s, a->machine,
            c->bus_bytes_per_s * c->transfer_s / c->expected_s);
    }
}

static void say_title(const REPORT *r, struct knee_text *text)
{
    const ANSWER *a = r->answer;
    size_t pending = 0;
    bool dumps = strcmp(r->roll->format, "flight recorder") == 0;
    for (size_t i = 0; r->roll->sources && i < r->roll->source_count; i++)
        pending += r->roll->sources[i].pending;
    PUT(text, "{}, {groups}, ",
        knee_say_count((double)r->roll->source_count,
                       dumps ? "Flight Recorder dump" : "NCCL Inspector file")
            .s,
        r->roll->group_count);
    if (a->joined + a->partial == 0 && pending)
        PUT(text, "{unfinished calls} compared", pending);
    else
        PUT(text, "{collectives} matched", a->joined);
}

static void say(const void *result, struct knee_said *said)
{
    const REPORT *r = result;
    const ANSWER *a = r->answer;
    say_title(r, &said->title);
    say_stuck(r, said);
    say_late(r, said);
    if (!said->headline.length)
        PUT(&said->headline, "No collective was found on two or more ranks.");
    if (!a->joined && !a->partial && !a->stuck_count)
        knee_text_puts(&said->reason, r->roll->untimed
                                          ? "No times recorded: set TORCH_NCCL_ENABLE_TIMING=1."
                                          : "Give the files of all ranks.");
    PUT(&said->after, "[Skipped: {unreadable records}.\n]", r->roll->skipped);
    PUT(&said->notes,
        "{collectives} had only some of their ranks; {point-to-point calls} only counted.\n",
        a->partial, a->p2p);
    PUT(&said->notes, "No clocks were compared. These files hold no compute; efficiency needs a "
                      "trace: docs/guide/record.md.\n");
}

const struct knee_answer_type knee_roll_answer_type = {
    .schema = "knee.rollcall/1", KNEE_FIELDS(fields), KNEE_VIEWS(views), .say = say};
