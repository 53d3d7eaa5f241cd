/* SPDX-License-Identifier: MIT */
/*
 * A text of a job: standard error or output of a rank, of a node, of all ranks mixed; a scheduler's
 * or the kernel's log. Lines with a word of data/job_triggers.csv in them are looked at, by the
 * readers of process groups and launchers first, then by the table of failures. Error lines that
 * none of them knows are counted, so that a job with unknown errors does not look healthy.
 */
#include "read/hang/job_lines.h"

#include "base/fold.h"
#include "base/slice.h"
#include "base/text.h"

enum { LONGEST = 16384 };

/* ---- Small things ---- */

int64_t knee_job_number(struct knee_slice text, const char *before)
{
    size_t at = before[0] ? knee_slice_find(text, before) : 0;
    int64_t value = 0;
    size_t digits = 0;
    if (at >= text.length && before[0])
        return -1;
    struct knee_slice rest = knee_slice_from(text, at + strlen(before));
    while (rest.length && strchr(" =:#'\"", rest.at[0]))
        rest = knee_slice_from(rest, 1);
    for (; digits < rest.length && digits < 18 && knee_is_digit(rest.at[digits]); digits++)
        value = value * 10 + (rest.at[digits] - '0');
    return digits ? value : -1;
}

struct knee_slice knee_job_line_above(struct knee_slice *text)
{
    size_t end = text->length - (text->length && text->at[text->length - 1] == '\n'), start = end;
    while (start > 0 && text->at[start - 1] != '\n')
        start--;
    struct knee_slice line = {text->at + start, end - start};
    text->length = start;
    return line;
}

int64_t knee_job_whose(const struct knee_job_place *place, const struct knee_job_line *line)
{
    if (line->named || place->file_rank < 0)
        return line->rank < KNEE_JOB_RANKS ? line->rank : KNEE_JOB_NO_RANK;
    return place->file_rank;
}

/* Lines of one rank in two files of one name, in two folders, are of two jobs or two attempts: what
 * ranks do cannot be compared. */
static void note_file(struct knee_job_place *place, const struct knee_job_line *line)
{
    struct knee_job_record *record = place->record;
    struct knee_job_rank *row = line->named ? knee_job_rank_at(record, line->rank) : NULL;
    if (!row || row->named_file == place->file + 1 || record->mixed[1])
        return;
    if (row->named_file && strcmp(knee_base_name(record->files[row->named_file - 1].name),
                                  knee_base_name(record->files[place->file].name)) == 0) {
        record->mixed[0] = row->named_file;
        record->mixed[1] = place->file + 1;
    }
    row->named_file = row->named_file ? row->named_file : place->file + 1;
}

uint32_t knee_job_mark_line(struct knee_job_place *place, const struct knee_job_line *line,
                            enum knee_failure failure)
{
    note_file(place, line);
    return knee_job_mark(place->record,
                         (struct knee_job_mark){(int32_t)knee_job_whose(place, line), place->file,
                                                place->line, place->time_s, failure, NULL},
                         line->text);
}

/* ---- Other facts ---- */

/* "host:12:34 [0] NCCL INFO comm 0x.. rank 3 nranks 8 cudaDev 3 ... - Init COMPLETE" */
static bool nccl_line(struct knee_job_place *place, const struct knee_job_line *line)
{
    struct knee_job_record *record = place->record;
    int64_t world = knee_job_number(line->text, "nranks "),
            rank = knee_job_number(line->text, " rank ");
    if (!knee_slice_has(line->text, "NCCL INFO") && !knee_slice_has(line->text, "NCCL WARN"))
        return false;
    if (world > record->world && world <= KNEE_JOB_RANKS)
        record->world = world;
    struct knee_slice rest = line->text, host;
    if (world > 0 && world == record->world && rank >= 0 && rank < world &&
        knee_slice_until(&rest, ':', &host) && host.length < 64) {
        struct knee_job_rank *row = knee_job_rank_at(record, rank);
        if (row && !row->host[0])
            knee_slice_copy(knee_slice_trim(host), row->host, sizeof row->host);
    }
    if (record->failed_warned && knee_slice_has(line->text, "Init COMPLETE")) {
        record->failed = KNEE_FAILED_NOT; /* it found another way */
        record->failed_warned = false;
    }
    return !knee_slice_has(line->text, "NCCL WARN");
}

/* A warning that NCCL's callers hand on, "NCCL INFO init.cc:1358 -> 2", ended a call. 6: a peer. */
static bool nccl_warning(struct knee_job_place *place, const struct knee_job_line *line)
{
    struct knee_job_record *record = place->record;
    struct knee_slice rest = place->after, next = {"", 0};
    if (!knee_slice_has(line->text, "NCCL WARN"))
        return false;
    for (int i = 0; i < 6 && knee_slice_line(&rest, &next); i++)
        if (knee_slice_has(next, "NCCL INFO"))
            break;
    int64_t code = knee_slice_has(next, "NCCL INFO") ? knee_job_number(next, " -> ") : -1;
    code = knee_slice_has(line->text, "shared memory segment") ? 2 : code;
    if (code <= 0 || code == 6 || record->failed != KNEE_FAILED_NOT)
        return code > 0;
    record->failed = KNEE_FAILED_NCCL;
    record->failed_warned = true;
    record->failed_mark = knee_job_mark_line(place, line, KNEE_FAILED_NCCL);
    return true;
}

bool knee_job_signs(struct knee_slice text, const struct knee_alloc *alloc)
{
    static const char *const signs[] = {
        "ProcessGroup", "Traceback (most", "srun: error", "slurmstepd",    "OutOfMemoryError",
        "WorkNCCL(",    "StopIteration",   "exitcode  :", "Communicators", "NODE_FAIL",
        "[rank0]",      "[rank1]",         "watchdog",    "CANCELLED",     "worker_count=",
        "MPI_ABORT",    "missing ranks",   "OOMKilled",   "return code",   "RESOURCE_EXH",
        "Rendezvous",   "heartbeat timeo", "job killed",  "signal 9",      "halted"};
    struct knee_line_finder *finder =
        knee_line_finder_new(signs, sizeof signs / sizeof *signs, alloc);
    bool found = finder && knee_line_find(finder, text, 0) < text.length;
    knee_resize(alloc, finder, 0);
    return found;
}

static bool ended_line(struct knee_job_place *place, const struct knee_job_line *line)
{
    if (!knee_slice_has(line->text, "Trainer.fit` stopped") &&
        !knee_slice_has(line->text, "train_runtime"))
        return false;
    for (size_t r = 0; r < place->record->rank_count; r++)
        place->record->ranks[r].ran_out = true;
    struct knee_job_rank *row = knee_job_rank_at(place->record, 0);
    if (row)
        row->ran_out = true;
    knee_job_mark_line(place, line, KNEE_FAILED_NOT);
    return true;
}

/* Does a word stand there on its own, and not in TORCH_NCCL_ASYNC_ERROR_HANDLING or "Error: 0.31"?
 */
static bool has_word(struct knee_slice text, const char *word)
{
    size_t length = strlen(word);
    for (size_t at; (at = knee_slice_find(text, word)) < text.length;) {
        char before = at ? text.at[at - 1] : ' ',
             after = at + length < text.length ? text.at[at + length] : ' ';
        bool value = (after == ':' || after == '=') &&
                     knee_job_number(knee_slice_from(text, at + length), "") >= 0;
        if (before != '_' && after != '_' && !knee_is_letter(after) && !value &&
            (knee_lower(before) == before || !knee_is_letter(before)))
            return true;
        text = knee_slice_from(text, at + length);
    }
    return false;
}

/* Python's: "train.py:83: UserWarning: ...". The line behind it quotes the source. */
static bool is_warning(struct knee_slice text)
{
    return knee_slice_has(text, ".py:") && knee_slice_has(text, "Warning: ");
}

static struct knee_slice line_before(const struct knee_job_place *place)
{
    struct knee_slice text = place->before;
    size_t end =
        text.length > 0 && text.at[text.length - 1] == '\n' ? text.length - 1 : text.length;
    size_t start = end;
    while (start > 0 && text.at[start - 1] != '\n' && end - start < LONGEST)
        start--;
    return (struct knee_slice){text.at + start, end - start};
}

static void unknown_line(struct knee_job_place *place, const struct knee_job_line *line)
{
    static const char *const words[] = {
        "Traceback", "Error",  "ERROR",    "WARN",       "FATAL",       "Fatal",
        "CANCELLED", "Killed", "MISMATCH", "INCOMPLETE", "srun: error", "slurmstepd: error"};
    if (place->record->nccl_elsewhere && knee_slice_has(line->text, "NCCL "))
        return;
    bool warned = is_warning(line->text);
    if (warned || is_warning(line_before(place)) || line->level == 'I' || line->level == 'W')
        return; /* whatever they quote */
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (has_word(line->text, words[i])) {
            if (place->record->unknown_errors++ == 0)
                place->record->unknown_mark = knee_job_mark_line(place, line, KNEE_FAILED_NOT);
            return;
        }
}

/* A process's lines without a rank belong to the rank that its other lines name. */
static void use_stream(struct knee_job_place *place, struct knee_job_line *line)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < line->stream.length; i++)
        hash = (hash ^ (unsigned char)line->stream.at[i]) * 16777619u;
    hash |= 1; /* never 0 */
    struct knee_job_stream *row = &place->streams[hash % KNEE_JOB_STREAMS];
    for (int i = 0; i < 8 && row->hash && row->hash != hash; i++)
        row = &place->streams[(hash + (uint32_t)i + 1) % KNEE_JOB_STREAMS];
    if (!line->stream.length || (row->hash && row->hash != hash))
        return;
    if (!line->named) {
        line->rank = line->rank < 0 && row->hash ? row->rank : line->rank;
        return;
    }
    bool other = row->hash && row->rank != line->rank;
    *row = (struct knee_job_stream){hash, other ? KNEE_JOB_NO_RANK : (int32_t)line->rank};
}

/* PyTorch writes the second and its part at two moments: a step back of less than one is one. A
 * line without a stamp is as old as the last one before it, or as the rank's own last one where
 * ranks follow each other. */
static void use_stamp(struct knee_job_place *place, const struct knee_job_line *line,
                      struct knee_job_rank *row)
{
    if (line->time_s < 0) {
        bool own = place->disordered && row && row->stamp_s >= 0;
        place->time_s = own ? row->stamp_s : place->last_s;
        return;
    }
    if (line->front_s >= 0)
        place->shift_s = line->time_s - line->front_s;
    place->time_s = line->time_s + (line->front_s < 0 && !line->level ? place->shift_s : 0);
    place->disordered = place->disordered || place->time_s < place->last_s - 2;
    place->last_s = place->time_s;
    if (row)
        row->stamp_s = place->time_s;
}

static bool read_line(struct knee_job_place *place, struct knee_slice text)
{
    struct knee_job_line line = knee_job_line_of(text);
    use_stream(place, &line);
    int64_t rank = knee_job_whose(place, &line);
    struct knee_job_rank *row = line.named ? knee_job_rank_at(place->record, rank) : NULL;
    if (row)
        row->text = true;
    if (row && line.host[0] && !row->host[0])
        memcpy(row->host, line.host, sizeof row->host);
    if (!row && rank >= 0 && (size_t)rank < place->record->rank_count)
        row = &place->record->ranks[rank];
    use_stamp(place, &line, row);
    if (knee_job_group_line(place, &line) || knee_job_launcher_line(place, &line) ||
        nccl_line(place, &line) || ended_line(place, &line) ||
        knee_job_absence_line(place, &line) || knee_job_failure_line(place, &line) ||
        nccl_warning(place, &line))
        return true;
    int64_t world = knee_job_number(line.text, "world_size");
    if (world > place->record->world && world <= KNEE_JOB_RANKS)
        place->record->world = world;
    unknown_line(place, &line);
    return line.named && !place->name_only;
}

/* Ranks that write at the same moment may leave several lines in one. */
static bool read_lines(struct knee_job_place *place, struct knee_slice text)
{
    bool known = false;
    while (text.length) {
        size_t end = knee_job_line_end(text);
        known = read_line(place, (struct knee_slice){text.at, end}) || known;
        text = knee_slice_from(text, end);
    }
    return known;
}

/* ---- Steps that a rank printed ---- */

/* Only a file of one rank tells whose steps they are. */
static void count_steps(struct knee_job_place *place, struct knee_slice text)
{
    struct knee_job_rank *row = knee_job_rank_at(place->record, place->file_rank);
    struct knee_slice rest = text, line;
    int64_t first = -1, second = -1, last = -1;
    if (!row)
        return;
    for (int i = 0; i < KNEE_JOB_TAIL && second < 0 && knee_slice_line(&rest, &line); i++) {
        int64_t step = knee_job_step_of(line);
        second = first >= 0 ? step : -1;
        first = first < 0 ? step : first;
    }
    for (int i = 0; i < KNEE_JOB_TAIL && last < 0 && text.length > 0; i++)
        last = knee_job_step_of(knee_job_line_above(&text));
    if (last < 0)
        return;
    row->last_step = last > row->last_step ? last : row->last_step;
    row->steps = second == first + 1 ? last - first + 1 : row->steps;
}

/* ---- Failures that the program survived ---- */

static bool survived(const struct knee_job_place *place, uint32_t mark, uint32_t until)
{
    const struct knee_job_record *record = place->record;
    return mark != KNEE_JOB_NO_MARK && record->marks[mark].file == place->file &&
           record->marks[mark].line < until;
}

/* An error after which the steps go on was caught, or the launcher started the ranks again. */
static void drop_survived(struct knee_job_place *place, uint32_t until)
{
    struct knee_job_record *record = place->record;
    if (record->mark_count == place->first_mark)
        return;
    if (survived(place, record->failed_mark, until)) {
        bool over = survived(place, record->failed_last.mark, until);
        record->failed = over ? KNEE_FAILED_NOT : record->failed_last.failure;
        record->failed_mark = over ? KNEE_JOB_NO_MARK : record->failed_last.mark;
    }
    for (size_t r = 0; until && r < record->rank_count; r++) {
        struct knee_job_rank *rank = &record->ranks[r];
        if (!survived(place, rank->failure_mark, until))
            continue;
        bool over = rank->failure == KNEE_FAILED_NOT || survived(place, rank->last.mark, until);
        rank->failure = over ? KNEE_FAILED_NOT : rank->last.failure;
        rank->failure_mark = over ? KNEE_JOB_NO_MARK : rank->last.mark;
        rank->failure_s = rank->last.time_s;
        rank->absent = KNEE_ABSENT_NOT;
    }
}

void knee_job_forget(struct knee_job_place *place, uint32_t until)
{
    struct knee_job_record *record = place->record;
    drop_survived(place, until);
    for (size_t r = 0; r < record->rank_count; r++) {
        struct knee_job_rank *rank = &record->ranks[r];
        if (!survived(place, rank->exit_mark, until))
            continue;
        rank->exit = -1;
        rank->exit_mark = KNEE_JOB_NO_MARK;
        rank->root = false;
    }
    for (size_t m = 0; m < record->member_count; m++)
        if (survived(place, record->members[m].mark, until)) {
            record->members[m].waits = -1;
            record->members[m].known = record->members[m].timed_out = false;
        }
}

/* ---- The file ---- */

/* Colours and cursor movements go, tabs become spaces. */
static struct knee_slice plain(struct knee_slice line, char *buffer)
{
    size_t used = 0;
    if (!line.length || !memchr(line.at, 27, line.length))
        return line;
    for (size_t i = 0; i < line.length && used < LONGEST; i++) {
        if (line.at[i] != 27) {
            buffer[used++] = line.at[i];
            continue;
        }
        i += i + 1 < line.length && line.at[i + 1] == '[';
        while (i + 1 < line.length && !knee_is_letter(line.at[i + 1]))
            i++;
        i++; /* the letter that ends it */
    }
    return (struct knee_slice){buffer, used};
}

static size_t count_lines(const char *at, size_t length)
{
    size_t count = 0;
    const char *end = at + length;
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at)))) {
        count++;
        at++;
    }
    return count;
}

/* "[rank3" at `at`: nothing new if lines of that rank are known; other words in the line are found
 * after it. */
static bool is_heard(const struct knee_job_record *record, struct knee_slice text, size_t at)
{
    int64_t rank;
    if (text.length - at < 7 || memcmp(text.at + at, "[rank", 5) != 0)
        return false;
    rank = knee_job_number(knee_slice_from(text, at + 5), "");
    return rank < 0 || ((size_t)rank < record->rank_count && record->ranks[rank].text);
}

static bool each_line(struct knee_job_place *place, struct knee_slice text, char *buffer)
{
    const struct knee_line_finder *finder = place->record->finder;
    size_t counted = 0, from = 0, past = 0, lines = 0;
    bool known = false;
    for (size_t at; (at = knee_line_find(finder, text, from)) < text.length;) {
        size_t start = at, end;
        if (is_heard(place->record, text, at)) {
            from = at + 5;
            continue;
        }
        place->name_only = text.at[at] == '[';
        while (start > past && text.at[start - 1] != '\n' && text.at[start - 1] != '\r')
            start--;
        const char *stop = memchr(text.at + at, '\n', text.length - at);
        const char *turn =
            memchr(text.at + at, '\r', (stop ? (size_t)(stop - text.at) : text.length) - at);
        end = turn ? (size_t)(turn - text.at) : stop ? (size_t)(stop - text.at) : text.length;
        lines += count_lines(text.at + counted, start - counted);
        counted = start;
        place->line = (uint32_t)lines + 1;
        place->before = (struct knee_slice){text.at, start};
        place->after = knee_slice_from(text, end + 1);
        size_t length = end - start < LONGEST ? end - start : LONGEST;
        known =
            read_lines(place, plain((struct knee_slice){text.at + start, length}, buffer)) || known;
        from = past = end;
    }
    if (text.length)
        lines += count_lines(text.at + counted, text.length - counted);
    place->line = (uint32_t)lines + (text.length && text.at[text.length - 1] != '\n');
    place->record->lines += lines;
    return known;
}

/* What every rank prints, whatever it does. */
static bool is_common(struct knee_slice text)
{
    return !text.length || knee_slice_starts(text, "[PG ") ||
           knee_slice_has(text, "is deprecated; use TORCH_") ||
           knee_slice_has(text, "debug info") || knee_slice_has(text, "destroy_process_group");
}

/* The last line of a rank's own file that is its own is the last thing it is known to have done. */
static void keep_last(struct knee_job_place *place, struct knee_slice text)
{
    struct knee_job_rank *row = knee_job_rank_at(place->record, place->file_rank);
    if (!row)
        return;
    row->text = row->own_file = true;
    uint32_t line = place->line;
    for (int i = 0; i < 40 && text.length && row->last_mark == KNEE_JOB_NO_MARK; i++, line--) {
        struct knee_slice one = knee_job_line_of(knee_job_line_above(&text)).text;
        if (!is_common(one))
            row->last_mark =
                knee_job_mark(place->record,
                              (struct knee_job_mark){(int32_t)place->file_rank, place->file, line,
                                                     KNEE_JOB_UNTIMED_S, KNEE_FAILED_NOT, NULL},
                              one);
    }
}

bool knee_job_text(struct knee_job_record *record, uint32_t file, struct knee_slice text)
{
    struct knee_job_place place = {.record = record,
                                   .file = file,
                                   .file_rank = knee_job_rank_of_name(record->files[file].name),
                                   .time_s = KNEE_JOB_UNTIMED_S,
                                   .last_s = KNEE_JOB_UNTIMED_S,
                                   .table_s = KNEE_JOB_UNTIMED_S,
                                   .first_mark = record->mark_count,
                                   .table_rank = KNEE_JOB_NO_RANK};
    if (!record->finder)
        record->finder =
            knee_line_finder_new(knee_job_triggers, knee_job_triggers_count, record->alloc);
    char *buffer = knee_resize(record->alloc, NULL, LONGEST);
    record->no_memory = record->no_memory || !buffer || !record->finder;
    bool known = !record->no_memory && each_line(&place, text, buffer);
    if (!record->no_memory) {
        count_steps(&place, text);
        uint32_t until = knee_job_goes_on_until(text, place.line);
        known = known || until;
        drop_survived(&place, until);
        keep_last(&place, text);
    }
    knee_resize(record->alloc, buffer, 0);
    return known;
}
