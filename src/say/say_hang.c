/* SPDX-License-Identifier: MIT */
/* knee hang: which rank, which collective, why. Schema knee.hang/1. */
#include "base/slice.h"
#include "judge/hang/hang.h"
#include "say/short.h"

#include <math.h>
#include <string.h>

enum { LISTED = 12 };

#define REPORT struct knee_hang_report

#define CALL  struct knee_hang_call
#define RANK  struct knee_hang_rank
#define STATE struct knee_hang_state
#define MARK  struct knee_job_mark

#define ANSWER TOP(REPORT)->answer
#define RECORD TOP(REPORT)->record

static const char *certainty_name(enum knee_certainty certainty)
{
    static const char *const names[] = {"certain", "likely", "cannot tell"};
    return names[certainty];
}

/* ---- Fields of a call ---- */

A_TEXT(call_group, CALL, RECORD->roll.groups[it->group].name)
A_TEXT(call_description, CALL, RECORD->roll.groups[it->group].description)
A_NUMBER(call_number, CALL, it->waits >= 0 ? (double)it->waits : (double)NAN)
A_TEXT(call_operation, CALL, it->waits >= 0 ? knee_op_name(it->op) : NULL)
A_NUMBER(call_elements, CALL,
         it->waits >= 0 && it->elements >= 0 ? (double)it->elements : (double)NAN)

static const struct knee_field call_fields[] = {
    KEY_BY(call_group, "group", TEXT, "process group"),
    KEY_BY(call_description, "description", TEXT, "what the group is for"),
    KEY_BY(call_number, "number", COUNT, "sequence number in the group"),
    KEY_BY(call_operation, "operation", TEXT, "the collective"),
    KEY_BY(call_elements, "elements", COUNT, "elements that go in"),
    KEY(CALL, frame, "frame", TEXT, "line of the program that made the call"),
};

/* ---- Ranks ---- */

A_TEXT(rank_class, RANK, it->kind != KNEE_HANG_NOT ? knee_hang_kind(it->kind)->name : NULL)
A_NUMBER(rank_exit, RANK, it->exit >= 0 ? it->exit : (double)NAN)

static const char *state_of(const RANK *rank)
{
    const CALL *call = rank->call;
    if (call && call->waits >= 0)
        return call->broken                  ? "lost its connection"
               : call->dump && call->started ? "started, not done"
               : call->dump                  ? "enqueued, not started"
                                             : "waits";
    if (rank->exit == 0)
        return "ended well";
    if (call)
        return rank->dump || rank->talked ? "alive, did not enter" : "ended";
    return rank->dump ? "nothing recorded" : rank->text ? "no collective line" : "no line";
}

A_TEXT(rank_state, RANK, state_of(it))
OBJECT(rank_call, RANK, it->call && it->call->waits >= 0 ? it->call : NULL)

static void number_or_none(struct knee_value *out, const CALL *call, bool entered)
{
    int64_t number = !call ? -1 : entered ? call->entered : call->completed;
    if (number >= 0)
        knee_value_number(out, (double)number);
}

GETTER(rank_completed, RANK, number_or_none(out, it->call, false))
GETTER(rank_entered, RANK, number_or_none(out, it->call, true))

static const struct knee_field rank_fields[] = {
    KEY(RANK, rank, "rank", COUNT, "rank"),
    KEY(RANK, host, "host", TEXT, "its node"),
    KEY_BY(rank_completed, "completed", COUNT, "last call that it finished"),
    KEY_BY(rank_entered, "enqueued", COUNT, "last call that it enqueued"),
    KNEE_OBJECT(rank_call, "waiting", call_fields, "the call it waits in", .flat = true),
    KEY_BY(rank_state, "state", TEXT, "what it does"),
    KEY_BY(rank_class, "class", TEXT, "of the ranks named: the verdict's class"),
    KEY_BY(rank_exit, "exit", COUNT, "exit status, 128 + signal"),
};

/* ---- The same for ranks in one state ---- */

/* "0-2, 5 and 3 more" */
static void list_ranks(const struct knee_hang_answer *a, uint32_t state, struct knee_text *text)
{
    size_t pieces = 0;
    for (size_t r = 0; r < a->rank_count && pieces <= LISTED; r++) {
        size_t end = r;
        if (a->ranks[r].state != state)
            continue;
        while (end + 1 < a->rank_count && a->ranks[end + 1].state == state)
            end++;
        if (pieces == LISTED)
            PUT(text, " ...");
        else if (end > r + 1)
            PUT(text, "{}{}-{}", pieces ? ", " : "", r, end);
        else if (end > r)
            PUT(text, "{}{}, {}", pieces ? ", " : "", r, end);
        else
            PUT(text, "{}{}", pieces ? ", " : "", r);
        pieces++;
        r = end;
    }
}

WORDS(state_ranks, STATE, list_ranks(ANSWER, it->like->state, text))
A_TEXT(state_node, STATE, it->count == 1 ? it->like->host : "")
GETTER(state_completed, STATE, number_or_none(out, it->like->call, false))

static void state_waits(const struct knee_at *at, struct knee_value *out)
{
    const CALL *call = ((const STATE *)at->row)->like->call;
    if (!call || call->waits < 0)
        return;
    knee_value_printf(out, "%s %lld", knee_op_name(call->op), (long long)call->waits);
    if (call->elements >= 0)
        PUT(&out->words, ", {count}", call->elements);
}

A_TEXT(state_word, STATE, state_of(it->like))
GETTER(state_class, STATE, enum knee_hang_class kind = it->like->kind;
       knee_value_text(out, kind != KNEE_HANG_NOT ? knee_hang_kind(kind)->name : NULL))

static const struct knee_field state_fields[] = {
    KNEE_GET(state_ranks, "ranks", "ranks", TEXT, SCREEN, "ranks in this state"),
    KNEE_GET(state_class, "class", "class", TEXT, SCREEN,
             "of the ranks named: the verdict's class"),
    KNEE_GET(state_node, "node", "node", TEXT, SCREEN, "of a single rank"),
    KNEE_GET(state_completed, "completed", "completed", COUNT, SCREEN,
             "last call that they finished"),
    KNEE_GET(state_waits, "waiting", "waiting in", TEXT, SCREEN, "operation, number, elements"),
    KNEE_GET(state_word, "state", "state", TEXT, SCREEN, "what they do"),
};

/* ---- Evidence ---- */

ROW_OF(evidence_row, void,
       index < ANSWER->evidence_count ? &RECORD->marks[ANSWER->evidence[index]] : NULL)

A_TEXT(mark_file, MARK, RECORD->files[it->file].name)

GETTER(mark_place, MARK,
       knee_value_printf(out, "%.40s:%u", knee_base_name(RECORD->files[it->file].name), it->line))
A_NUMBER(mark_rank, MARK, it->rank >= 0 ? it->rank : (double)NAN)

static void mark_short(const struct knee_at *at, struct knee_value *out)
{
    const char *text = ((const MARK *)at->row)->text;
    size_t length = strcspn(text, "\r\n");
    knee_value_printf(out, "%.*s%s", (int)(length > 72 ? 72 : length), text,
                      length > 72 ? "..." : "");
}

static const struct knee_field evidence_fields[] = {
    KNEE_GET(mark_rank, "rank", "rank", COUNT, SCREEN, "whose line it is"),
    KEY_BY(mark_file, "file", TEXT, "file"),
    KNEE_GET(mark_place, "place", "evidence", TEXT, SCREEN, "file:line"),
    KEY(MARK, line, "line", COUNT, "from 1; 0: the whole file"),
    KEY(MARK, text, "text", TEXT, "the line"),
    KNEE_GET(mark_short, "says", "says", TEXT, SCREEN, "its beginning"),
};

/* ---- The verdict ---- */

A_TEXT(verdict_class, void, knee_hang_kind(ANSWER->kind)->name)
A_TEXT(verdict_certainty, void, certainty_name(ANSWER->certainty))
ROW_OF(named_row, void, index < ANSWER->named_count ? &ANSWER->named[index] : NULL)
A_NUMBER(bare_rank, void, *(const int32_t *)at->row)

static const struct knee_field bare_rank_fields[] = {
    {.kind = COUNT, .tier = DATA, .get = bare_rank, .about = "rank"},
};

OBJECT(verdict_collective, void, ANSWER->waits)
OBJECT(verdict_instead, void,
       ANSWER->instead != NULL && ANSWER->instead->waits >= 0 ? ANSWER->instead : NULL)
A_TEXT(verdict_fix, void, knee_hang_fix(TOP(REPORT)))

static const struct knee_field verdict_fields[] = {
    KEY_BY(verdict_class, "class", TEXT, "what happened; docs/guide/hang.md lists the classes"),
    KNEE_ROWS_BY(named_row, "ranks", bare_rank_fields, "the ranks to look at"),
    KEY_BY(verdict_certainty, "certainty", TEXT, "`certain`, `likely` or `cannot tell`"),
    KNEE_OBJECT(verdict_collective, "collective", call_fields, "what the others wait in",
                .flat = true),
    KNEE_OBJECT(verdict_instead, "instead", call_fields, "the call that a rank named is in",
                .flat = true),
    KNEE_SENTENCE,
    KEY_BY(verdict_fix, "fix", TEXT, "what to do"),
};

A_NUMBER(unknown_errors, void, (double)RECORD->unknown_errors)
A_TEXT(first_unknown, void,
       RECORD->unknown_mark != KNEE_JOB_NO_MARK ? RECORD->marks[RECORD->unknown_mark].text : NULL)
A_NUMBER(file_count, void, (double)RECORD->file_count)
A_NUMBER(files_unknown, void, (double)(RECORD->unknown_files + RECORD->refused_files))
ROW_OF(states_row, void, index < ANSWER->state_count ? &ANSWER->states[index] : NULL)
ROW_OF(ranks_row, void, index < ANSWER->rank_count ? &ANSWER->ranks[index] : NULL)

static const struct knee_field fields[] = {
    KNEE_GROUP("verdict", verdict_fields, "the answer"),
    KNEE_ROWS_BY(states_row, "states", state_fields, "ranks in the same state, those named first"),
    KNEE_ROWS_BY(evidence_row, "evidence", evidence_fields, "the lines behind the answer"),
    KNEE_ROWS_BY(ranks_row, "ranks", rank_fields, "one row per rank"),
    KEY_BY(file_count, "files", COUNT, "files read"),
    KEY_BY(files_unknown, "files_not_used", COUNT,
           "files that are not recognised or cannot be read"),
    KEY_BY(unknown_errors, "unknown_errors", COUNT,
           "lines that report an error and that no rule knows"),
    KEY_BY(first_unknown, "first_unknown", TEXT, "the first of them"),
};

static const struct knee_view views[] = {
    {.list = "states", .most = 6},
    {.list = "evidence", .tier = FULL},
};

/* ---- Sentences ---- */

/* "Rank 2", "Ranks 0 and 1", "Ranks 0, 2, 4 and 25 more" */
static void say_ranks(const int32_t *ranks, size_t count, struct knee_text *text)
{
    size_t shown = count > 6 ? 5 : count;
    PUT(text, "Rank{} ", count == 1 ? "" : "s");
    for (size_t i = 0; i < shown; i++)
        PUT(text, "{}{}", i == 0 ? "" : i + 1 == count ? " and " : ", ", ranks[i]);
    PUT(text, "[ and {} more]", count - shown);
}

static void say_call(const REPORT *r, const CALL *call, struct knee_text *text)
{
    const struct knee_comm_group *group = &r->record->roll.groups[call->group];
    PUT(text, "{} {}", knee_op_name(call->op), call->waits);
    if (call->elements >= 0)
        PUT(text, " of {count} element{}", call->elements, call->elements == 1 ? "" : "s");
    const char *about = group->description ? group->description : "";
    about = strcmp(about, "undefined") == 0 ? "" : about;
    if (strcmp(group->name, "?") != 0 && strcmp(about, "default_pg") != 0)
        PUT(text, " in group {.40}{}{.40}{}", group->name, about[0] ? " (" : "", about,
            about[0] ? ")" : "");
}

static void say_frame(const CALL *call, struct knee_text *text)
{
    if (call->frame[0])
        PUT(text, ", at {}", knee_base_name(call->frame));
}

static bool is_busy(enum knee_hang_class kind)
{
    return kind >= KNEE_HANG_LOADER && kind <= KNEE_HANG_BUSY;
}

/* " was killed by signal 11, a segmentation fault" */
static bool say_signal(const struct knee_hang_answer *a, struct knee_text *text)
{
    static const struct {
        int signal;
        const char *name;
    } signals[] = {{4, "an illegal instruction"},
                   {6, "an abort"},
                   {7, "a bus error"},
                   {8, "a floating point exception"},
                   {11, "a segmentation fault"}};
    int signal = a->named_count == 1 ? a->ranks[a->named[0]].exit - 128 : 0;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (a->kind == KNEE_HANG_SIGNAL && signals[i].signal == signal) {
            PUT(text, " was killed by signal {}, {}.", signal, signals[i].name);
            return true;
        }
    return false;
}

/* The calls that differ are the answer themselves. */
static bool say_other(const struct knee_hang_answer *a, struct knee_text *text)
{
    if (a->kind != KNEE_HANG_OTHER_OP || !a->waits || !a->instead || a->named_count != 1 ||
        a->instead->op == a->waits->op)
        return false;
    PUT(text, " called {} where the others called {}: number {}.", knee_op_name(a->instead->op),
        knee_op_name(a->waits->op), a->waits->waits);
    return true;
}

/* What the ranks named did. `call` is what the others wait in; NULL leaves it out. */
static void say_deed(const struct knee_hang_answer *a, const CALL *call, struct knee_text *text)
{
    const char *does = knee_hang_kind(a->kind)->does;
    bool guess = a->certainty == KNEE_LIKELY && a->kind != KNEE_HANG_FROZEN;
    if (say_signal(a, text) || (call && say_other(a, text)))
        return;
    if (a->tie)
        PUT(text, " are in different calls under one number, {}.",
            (long long)(a->waits ? a->waits->waits : -1));
    else if (a->kind == KNEE_HANG_BUSY && call)
        PUT(text, " did not enter {} {}.", knee_op_name(call->op), call->waits);
    else if (is_busy(a->kind) && call)
        PUT(text, " probably {} and did not enter {} {}.", does, knee_op_name(call->op),
            call->waits);
    else if (call && ((a->kind >= KNEE_HANG_LEFT_OUT && a->kind <= KNEE_HANG_OTHER_SIZE) ||
                      a->kind == KNEE_HANG_GPU_LATE || a->kind == KNEE_HANG_ALONE))
        PUT(text, " {}{}: {} {}.", guess ? "probably " : "", does, knee_op_name(call->op),
            call->waits);
    else
        PUT(text, " {}{}.", guess ? "probably " : "", does);
}

enum { HEADLINE = 80 };

/* The ranks and what they did. Where that is longer than a line, the ranks are counted instead of
 * named, then the collective is left out: the next line has it. */
static void headline_ranks(const REPORT *r, struct knee_text *text)
{
    const struct knee_hang_answer *a = r->answer;
    const CALL *call = a->waits && a->waits->waits >= 0 ? a->waits : NULL;
    for (int shorter = 0; shorter < 3; shorter++) {
        struct knee_text line = {.alloc = text->alloc};
        if (shorter && a->named_count > 1)
            knee_text_puts(&line, knee_say_count((double)a->named_count, "rank").s);
        else
            say_ranks(a->named, a->named_count, &line);
        say_deed(a, shorter < 2 ? call : NULL, &line);
        if (line.length <= HEADLINE || shorter == 2)
            knee_text_add(text, line.data ? line.data : "", line.length);
        text->failed = text->failed || line.failed;
        bool fits = line.length <= HEADLINE;
        knee_text_release(&line);
        if (fits)
            return;
    }
}

/* No rank waits in a known call. */
static const char *unexplained(const REPORT *r)
{
    const struct knee_hang_answer *a = r->answer;
    bool stuck = false, killed = r->record->rank_count > 0, idle = a->call_count > 0;
    for (size_t i = 0; i < r->record->rank_count; i++) {
        stuck = stuck || r->record->ranks[i].watchdog_stuck;
        killed = killed && r->record->ranks[i].exit > 128;
    }
    for (size_t i = 0; i < a->call_count; i++)
        idle = idle && a->calls[i].completed >= 0 && a->calls[i].completed == a->calls[i].entered;
    if (r->record->mixed[1])
        return "Cannot tell: give the files of one job, or of its last attempt.";
    return stuck  ? "The watchdog itself is stuck: a CUDA call or the GIL, not a collective."
           : idle ? "Nothing is outstanding in these groups: look at the host or other groups."
           : killed && !r->record->unknown_errors
               ? "Cannot tell: every rank was killed, and none left an error line."
           : r->record->later_errors && !r->record->unknown_errors
               ? "Cannot tell: these errors follow from another rank's, which is not here."
               : "Cannot tell: an error that no rule explains.";
}

/* Some wait, and no rule says for whom. */
static void headline_waits(const struct knee_hang_answer *a, struct knee_text *text)
{
    if (a->silent_count == 1)
        PUT(text, "Cannot tell: nothing of rank {} is here, and the others wait.", a->silent[0]);
    else if (a->silent_count)
        PUT(text, "Cannot tell: nothing of {} ranks is here, and the others wait.",
            a->silent_count);
    else
        PUT(text, "Cannot tell which rank: no line says who keeps the others waiting.");
}

static void say_headline(const REPORT *r, struct knee_text *text)
{
    const struct knee_hang_answer *a = r->answer;
    if (a->kind == KNEE_HANG_NOT && a->certainty == KNEE_CERTAIN)
        PUT(text, "Not hung: all {} ranks ended well.", a->rank_count);
    else if (a->kind == KNEE_HANG_NOT)
        PUT(text, "Not hung: no timeout, error or bad exit status in these files.");
    else if (a->behind && a->named_count)
        PUT(text, "{} of {} ranks are {} collective{} behind the others.", a->named_count,
            a->rank_count, a->behind, a->behind == 1 ? "" : "s");
    else if (a->named_count)
        headline_ranks(r, text);
    else if (a->kind == KNEE_HANG_WIRE)
        PUT(text, "All ranks are in the same call: a GPU or the network is stuck.");
    else if (a->kind == KNEE_HANG_UNKNOWN && a->waits)
        headline_waits(a, text);
    else if (a->kind == KNEE_HANG_UNKNOWN)
        knee_text_puts(text, unexplained(r));
    else if (knee_hang_kind(a->kind)->sentence)
        knee_text_puts(text, knee_hang_kind(a->kind)->sentence);
    else
        PUT(text, "The job {}; no line says which rank.", knee_hang_kind(a->kind)->does);
}

/* Where a line begins to say something: behind hosts, places and commands. */
static const char *point_of(const char *line)
{
    static const char *const words[] = {"WorkNCCL(",          "NCCL WARN ",
                                        "UserWarning: ",      "exits with return code = ",
                                        "failed (exitcode: ", "[c10d] "};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(line, words[i]))
            return strstr(line, words[i]);
    return line;
}

/* Its first sentence, which the table of evidence has in full. */
static void say_first_error(const char *line, struct knee_text *text)
{
    line = point_of(line);
    const char *end = strstr(line, ". ");
    size_t length = end ? (size_t)(end - line) : strlen(line);
    length -= !end && length && line[length - 1] == '.';
    knee_text_printf(text, "First error: %.*s%s", (int)(length < 90 ? length : 90), line,
                     length < 90 ? "." : "...");
}

/* The line of the program that raised it: File "/w/train.py", line 24, in main. */
static void say_place(const REPORT *r, int32_t rank, struct knee_text *text)
{
    const struct knee_job_rank *row = &r->record->ranks[rank];
    if (row->frame_mark == KNEE_JOB_NO_MARK || row->failure_mark != r->answer->evidence[0])
        return;
    const char *file = r->record->marks[row->frame_mark].text;
    const char *quote = strchr(file, '"'), *end = quote ? strchr(quote + 1, '"') : NULL,
               *number = strstr(file, "line ");
    if (!end || !number)
        return;
    const char *base = end;
    while (base > quote + 1 && base[-1] != '/')
        base--;
    knee_text_printf(text, " At %.*s:%.*s.", (int)(end - base < 60 ? end - base : 60), base,
                     (int)strspn(number + 5, "0123456789"), number + 5);
}

/* What the others wait in, and what the rank does instead. */
static void say_reason(const REPORT *r, struct knee_text *text)
{
    const struct knee_hang_answer *a = r->answer;
    if (r->record->mixed[1])
        return;
    if (a->waits && a->waits->waits >= 0) {
        if (a->waiting)
            PUT(text, "{ranks} wait{} in ", a->waiting, a->waiting == 1 ? "s" : "");
        else
            PUT(text, "The others wait in ");
        say_call(r, a->waits, text);
        say_frame(a->waits, text);
        PUT(text, ". ");
    }
    if (a->kind == KNEE_HANG_GPU_LATE) {
        PUT(text, "Its GPU has not started it. ");
    } else if (a->instead && a->instead->waits >= 0 && a->instead != a->waits) {
        bool alike = a->waits && a->instead->op == a->waits->op &&
                     a->instead->waits == a->waits->waits && a->instead->elements >= 0;
        bool same = alike && a->instead->elements == a->waits->elements;
        PUT(text, "Rank {} is in ", a->instead->rank);
        if (same)
            PUT(text, "the same call");
        else if (alike)
            PUT(text, "one of {count} elements", a->instead->elements);
        else
            say_call(r, a->instead, text);
        say_frame(a->instead, text);
        PUT(text, ". ");
    } else if (a->instead && a->instead->waits < 0 && a->instead->completed >= 0) {
        bool barrier = r->record->ranks[a->instead->rank].barrier;
        PUT(text, "Rank {} finished call {} and {}. ", a->instead->rank, a->instead->completed,
            barrier ? "went into a barrier" : "entered none after it");
        if (a->guess)
            PUT(text, "No line says what it does: rank 0 usually saves, others load. ");
    }
    bool later = a->kind == KNEE_HANG_UNKNOWN && !a->waits && r->record->later_errors;
    if (a->evidence_count && (later || r->record->marks[a->evidence[0]].failure != KNEE_FAILED_NOT))
        say_first_error(r->record->marks[a->evidence[0]].text, text);
    if (a->named_count && a->evidence_count)
        say_place(r, a->named[0], text);
    if (a->silent_count > 1 && !a->named_count) {
        PUT(text, "No line of ");
        struct knee_text ranks = {.alloc = text->alloc};
        say_ranks(a->silent, a->silent_count, &ranks);
        PUT(text, "r{}.", ranks.data ? ranks.data + 1 : "");
        knee_text_release(&ranks);
    }
}

static void say_effect(const REPORT *r, struct knee_text *text)
{
    const struct knee_hang_answer *a = r->answer;
    const char *host = a->named_count == 1 ? a->ranks[a->named[0]].host : "";
    if (a->kind == KNEE_HANG_NOT || r->record->mixed[1])
        return;
    if (a->kind == KNEE_HANG_CANCELLED && r->record->slurm_job)
        PUT(text, "Fix: see who or what cancelled it: sacct -j {} -o State,Reason.",
            r->record->slurm_job);
    else
        PUT(text, "Fix: {}.", knee_hang_fix(r));
    PUT(text, "[ Its node: {}.][ The others waited {time}.]", host, a->lost_s);
}

static void say_voids(const REPORT *r, struct knee_text *text)
{
    const struct knee_job_record *record = r->record;
    enum knee_hang_class kind = r->answer->kind;
    if (record->mixed[1]) {
        PUT(text, "Files of several jobs or attempts are mixed: {.15}, {.15}.",
            knee_base_name(record->files[record->mixed[0] - 1].name),
            knee_base_name(record->files[record->mixed[1] - 1].name));
        return;
    }
    PUT(text, "[{files} cannot be read, first: {}. ]", record->refused_files, record->refused);
    if (record->unknown_errors && (kind == KNEE_HANG_NOT || kind == KNEE_HANG_UNKNOWN) &&
        record->unknown_mark != KNEE_JOB_NO_MARK)
        PUT(text, "{error lines} knee does not know, first: {.80}", record->unknown_errors,
            record->marks[record->unknown_mark].text);
}

static size_t count_kind(const struct knee_job_record *record, const char *kind)
{
    size_t count = 0;
    for (size_t i = 0; i < record->file_count; i++)
        count += record->files[i].kind && strcmp(record->files[i].kind, kind) == 0;
    return count;
}

static void say_title(const REPORT *r, struct knee_text *text)
{
    static const struct {
        const char *kind, *noun;
    } kinds[] = {{"text", "text file"},
                 {"flight recorder", "Flight Recorder dump"},
                 {"ras", "RAS answer"},
                 {"exit status", "exit file"}};
    bool ranks = r->answer->rank_count > 0;
    const char *before = ranks ? ": " : "";
    if (ranks)
        knee_text_puts(text, knee_say_count((double)r->answer->rank_count, "rank").s);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t count = count_kind(r->record, kinds[i].kind);
        if (!count)
            continue;
        PUT(text, "{}{}", before, knee_say_count((double)count, kinds[i].noun).s);
        before = ", ";
    }
    PUT(text, "[; {files} not used]", r->record->unknown_files + r->record->refused_files);
}

/* The lines behind it: file, number, beginning. */
static void say_evidence(const REPORT *r, struct knee_text *text)
{
    const struct knee_hang_answer *a = r->answer;
    if (a->evidence_count)
        PUT(text, "Evidence:\n");
    for (size_t i = 0; i < a->evidence_count && i < 4; i++) {
        const MARK *mark = &r->record->marks[a->evidence[i]];
        const char *base = knee_base_name(r->record->files[mark->file].name);
        size_t used = strlen(base) < 30 ? strlen(base) : 30;
        const char *line = point_of(mark->text);
        size_t length = strcspn(line, "\r\n"), most = 75 - used;
        knee_text_printf(text, "%.30s:%u %.*s%s\n", base, mark->line,
                         (int)(length > most ? most - 3 : length), line,
                         length > most ? "..." : "");
    }
}

static void say(const void *result, struct knee_said *said)
{
    const REPORT *r = result;
    const struct knee_hang_answer *a = r->answer;
    say_title(r, &said->title);
    say_voids(r, &said->voids);
    say_headline(r, &said->headline);
    say_reason(r, &said->reason);
    say_effect(r, &said->effect);
    say_evidence(r, &said->after);
    if (a->kind != KNEE_HANG_NOT)
        PUT(&said->after, "Certainty: {}.{}\n", certainty_name(a->certainty),
            a->dumps || a->certainty == KNEE_CERTAIN || !a->call_count ||
                    a->kind == KNEE_HANG_UNKNOWN
                ? ""
                : " Record dumps next time: TORCH_FR_BUFFER_SIZE=2000 "
                  "TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_FR_DUMP_TEMP_FILE=/shared/fr_");
    PUT(&said->after, "[{ranks} failed after it.\n]", a->followed);
}

const struct knee_answer_type knee_hang_answer_type = {
    .schema = "knee.hang/1", KNEE_FIELDS(fields), KNEE_VIEWS(views), .say = say};
