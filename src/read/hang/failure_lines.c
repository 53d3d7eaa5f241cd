/* SPDX-License-Identifier: MIT */
/*
 * Lines that say why a process ended. A table of words gives the class; the last line of a Python
 * traceback is an exception by its form. Some lines only follow from another rank's failure: they
 * are known and are no cause.
 */
#include "base/fold.h"
#include "read/hang/job_lines.h"

enum { BACK = 80 };

/* "torch.OutOfMemoryError: ...", "RuntimeError: ...", "StopIteration": the last line of a
 * traceback. Names of exceptions begin with a capital and end in one of these. */
bool knee_job_is_exception(struct knee_slice text)
{
    static const char *const ends[] = {"Error",     "Exception", "StopIteration", "Exit",
                                       "Interrupt", "Timeout",   "Failure"};
    size_t length = 0, name = 0;
    while (length < text.length &&
           (knee_is_word_char(text.at[length]) || strchr("._", text.at[length]))) {
        name = text.at[length] == '.' ? length + 1 : name;
        length++;
    }
    if (length == 0 || (length < text.length && text.at[length] != ':') || name >= length ||
        text.at[name] < 'A' || text.at[name] > 'Z')
        return false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end = strlen(ends[i]);
        if (length - name >= end && memcmp(text.at + length - end, ends[i], end) == 0)
            return true;
    }
    return false;
}

static bool matches(const struct knee_failure_line *row, struct knee_slice text)
{
    return knee_slice_has(text, row->word) && (!row->and[0] || knee_slice_has(text, row->and));
}

static const struct knee_failure_line *failure_of(struct knee_slice text)
{
    for (size_t i = 0; i < knee_failure_lines_count; i++)
        if (matches(&knee_failure_lines[i], text))
            return &knee_failure_lines[i];
    return NULL;
}

static bool is_jobs(enum knee_failure failure)
{
    return failure == KNEE_FAILED_TIME || failure == KNEE_FAILED_NODE ||
           failure == KNEE_FAILED_CANCEL || failure == KNEE_FAILED_NO_START;
}

/* How much a job's failure explains: one that may be the end of another gives way to it. */
static int rank_of(enum knee_failure failure)
{
    return failure == KNEE_FAILED_NOT                                          ? 0
           : failure == KNEE_FAILED_CANCEL || failure == KNEE_FAILED_EXCEPTION ? 1
           : failure == KNEE_FAILED_NCCL || failure == KNEE_FAILED_SIGNAL ||
                   failure == KNEE_FAILED_KILLED
               ? 2
               : 3;
}

/* Only the first and the last failure are kept: some programs print thousands. */
static uint32_t mark_last(struct knee_job_place *place, const struct knee_job_line *line,
                          enum knee_failure failure, uint32_t first, uint32_t last)
{
    uint32_t mark = knee_job_mark_line(place, line, failure);
    return last == first ? mark : knee_job_mark_over(place->record, last, mark);
}

void knee_job_fail(struct knee_job_place *place, const struct knee_job_line *line,
                   enum knee_failure failure)
{
    struct knee_job_record *record = place->record;
    struct knee_job_rank *row = knee_job_rank_at(record, knee_job_whose(place, line));
    if (is_jobs(failure) || !row) {
        uint32_t mark =
            mark_last(place, line, failure, record->failed_mark, record->failed_last.mark);
        record->failed_last = (struct knee_job_failure){failure, mark, place->time_s};
        if (rank_of(failure) <= rank_of(record->failed) && (place->aside || !record->failed_aside))
            return;
        record->failed = failure;
        record->failed_mark = mark;
        record->failed_aside = place->aside;
        record->failed_warned = false;
        return;
    }
    row->text = true;
    uint32_t mark = mark_last(place, line, failure, row->failure_mark, row->last.mark);
    row->last = (struct knee_job_failure){failure, mark, place->time_s};
    /* the first one counts; a specific class replaces "an exception" */
    if (row->failure != KNEE_FAILED_NOT && (place->aside || !row->aside) &&
        !(row->failure == KNEE_FAILED_EXCEPTION && failure != KNEE_FAILED_EXCEPTION &&
          failure != KNEE_FAILED_NCCL))
        return;
    row->failure = failure;
    row->aside = place->aside;
    row->failure_s = place->time_s;
    row->failure_mark = mark;
}

/* The innermost `File "train.py", line 24` of the program's own above an exception. */
static uint32_t find_frame(struct knee_job_place *place, const struct knee_job_line *line)
{
    struct knee_slice text = place->before;
    int64_t rank = knee_job_whose(place, line);
    for (int i = 0; i < BACK && text.length > 1; i++) {
        struct knee_job_line one = knee_job_line_of(knee_job_line_above(&text));
        if (one.named && rank >= 0 && one.rank != rank)
            continue;
        if (knee_slice_starts(one.text, "Traceback"))
            break;
        if (!knee_slice_starts(one.text, "File \"") || knee_slice_has(one.text, "-packages/") ||
            knee_slice_has(one.text, "lib/python") || knee_slice_has(one.text, "\"<"))
            continue;
        return knee_job_mark(place->record,
                             (struct knee_job_mark){(int32_t)rank, place->file,
                                                    place->line - (uint32_t)i - 1, place->time_s,
                                                    KNEE_FAILED_NOT, NULL},
                             one.text);
    }
    return KNEE_JOB_NO_MARK;
}

/* The frame of the failure that this line set, if it set one. */
static void keep_frame(struct knee_job_place *place, const struct knee_job_line *line)
{
    struct knee_job_record *record = place->record;
    struct knee_job_rank *row = knee_job_rank_at(record, knee_job_whose(place, line));
    uint32_t failed = row ? row->failure_mark : KNEE_JOB_NO_MARK;
    if (failed != KNEE_JOB_NO_MARK && record->marks[failed].line == place->line &&
        record->marks[failed].file == place->file)
        row->frame_mark = find_frame(place, line);
}

/* Does a traceback quote this line? The line above it in the same rank's text is the file's. */
static bool is_code(const struct knee_job_place *place, const struct knee_job_line *line)
{
    struct knee_slice text = place->before;
    for (int i = 0; i < 8 && text.length > 1 && line->indent >= 3; i++) {
        struct knee_job_line one = knee_job_line_of(knee_job_line_above(&text));
        if (one.named == line->named && one.rank == line->rank)
            return knee_slice_starts(one.text, "File \"");
    }
    return false;
}

/* The name of an exception behind a logger's prefix: only where a traceback goes before. Behind
 * glog's stamp it is one that PyTorch caught and logged. */
static bool is_logged_exception(const struct knee_job_place *place, struct knee_slice text)
{
    if (!place->traceback || place->line - place->traceback > (uint32_t)BACK * 4)
        return false;
    for (size_t i = 1; i + 1 < text.length && i < 200; i++)
        if (text.at[i] == ' ' && strchr("]|:-", text.at[i - 1]) &&
            knee_job_is_exception(knee_slice_from(text, i + 1)))
            return true;
    return false;
}

/* The agent lost its store while the job ran: the node that kept it had ended. */
static bool while_running(const struct knee_job_place *place)
{
    struct knee_slice before = place->before;
    return knee_slice_has(knee_slice_from(before, before.length > 6000 ? before.length - 6000 : 0),
                          "num_nodes_waiting");
}

static void note_later(struct knee_job_place *place, const struct knee_job_line *line)
{
    struct knee_job_rank *rank = knee_job_rank_at(place->record, knee_job_whose(place, line));
    if (rank && knee_slice_has(line->text, "onnection closed by"))
        rank->peer_closed = rank->peer_closed || rank->timeout_s < 0;
    place->record->timed_out =
        place->record->timed_out || knee_slice_has(line->text, "Watchdog caught");
    if (place->record->later_errors++ == 0)
        place->record->later_mark = knee_job_mark_line(place, line, KNEE_FAILED_NOT);
}

/* A thread that raises ends alone, and often because the program is ending: another error of the
 * process explains more. Several threads' tracebacks may stand between each other's lines. */
static void note_thread(struct knee_job_place *place, struct knee_slice text, bool exception)
{
    place->aside = false;
    if (knee_slice_starts(text, "Exception in thread ")) {
        place->thread = place->line;
        place->threads++;
    } else if (exception && place->threads) {
        place->threads--;
        place->aside = place->line - place->thread < BACK;
    }
}

/* "queue.Empty", "socket.gaierror: ...", "ray.exceptions.RayTaskError(OSError): ...": what ends a
 * traceback and has no name that exceptions usually have. */
static bool is_raised(struct knee_slice text)
{
    size_t length = 0, dots = 0;
    while (length < text.length &&
           (knee_is_word_char(text.at[length]) || strchr("._", text.at[length])))
        dots += text.at[length++] == '.';
    return dots && length && !knee_is_digit(text.at[0]) &&
           (length == text.length || strchr(":(", text.at[length]));
}

/* A traceback whose last line no other rule would take. Its last line is the first one of the same
 * rank that is not indented more than its first one. */
static void end_traceback(struct knee_job_place *place, const struct knee_job_line *line)
{
    struct knee_slice rest = place->after, next;
    uint32_t first = place->line;
    for (uint32_t i = 1; i <= 4 * BACK && knee_slice_line(&rest, &next); i++) {
        struct knee_job_line one = knee_job_line_of(next);
        if (!one.text.length || one.named != line->named || one.rank != line->rank ||
            one.indent > line->indent || knee_slice_starts(one.text, "File \""))
            continue;
        if (is_raised(one.text) && !knee_job_is_exception(one.text) && !failure_of(one.text)) {
            place->line = first + i;
            knee_job_fail(place, &one, KNEE_FAILED_EXCEPTION);
            place->line = first;
        }
        return;
    }
}

bool knee_job_failure_line(struct knee_job_place *place, const struct knee_job_line *line)
{
    const struct knee_failure_line *row = failure_of(line->text);
    enum knee_failure failure = row ? row->failure : KNEE_FAILED_NOT;
    static const char *const message = "\"message\": \""; /* torchelastic's error file */
    bool exception = knee_job_is_exception(line->text) ||
                     (!row && !line->level && is_logged_exception(place, line->text)) ||
                     (knee_slice_starts(line->text, message) &&
                      knee_job_is_exception(knee_slice_from(line->text, strlen(message))));
    note_thread(place, line->text, exception);
    if (knee_slice_starts(line->text, "Exception ignored in"))
        place->ignored = place->line;
    if (!line->level && (knee_slice_starts(line->text, "Traceback (most recent") ||
                         knee_slice_has(line->text, " Traceback (most recent")))
        place->traceback = place->line;
    if (place->traceback == place->line && !place->ignored)
        end_traceback(place, line);
    if ((row || exception || knee_slice_has(line->text, "Error")) && is_code(place, line))
        return true;
    if (exception && place->ignored && place->line - place->ignored < BACK) {
        place->ignored = 0; /* an object that was deleted: the program goes on */
        return true;
    }
    if (failure == KNEE_FAILED_DATA_END && !exception)
        return true; /* only mentioned */
    if (failure == KNEE_FAILED_NO_START && while_running(place))
        failure = KNEE_FAILED_LATER;
    if (failure == KNEE_FAILED_LATER)
        note_later(place, line);
    else if (failure != KNEE_FAILED_NOT)
        knee_job_fail(place, line, failure);
    else if (exception && !row)
        knee_job_fail(place, line, KNEE_FAILED_EXCEPTION);
    if (exception && failure != KNEE_FAILED_LATER)
        keep_frame(place, line);
    return row || exception || knee_slice_starts(line->text, "Traceback (most recent") ||
           knee_slice_starts(line->text, "File \"");
}
