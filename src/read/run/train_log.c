/* SPDX-License-Identifier: MIT */
/*
 * Training logs, pushed in pieces. What is pushed is searched for marks up to its last end of line;
 * only lines with a mark are looked at, so that the noise between them costs next to nothing. A few
 * things are blocks of lines: Megatron's arguments, DeepSpeed's configuration, tables; and a file
 * that is one JSON document is kept whole (train_log_document.c).
 */
#include "read/run/train_log.h"

#include "base/csv.h"
#include "base/fold.h"
#include "base/list.h"

#include <math.h>
#include <string.h>

#define ARGUMENT_LINES 2000
#define BLOCK_BYTES    ((size_t)1 << 20)
#define ENOUGH_ROWS    2 /* a log with fewer rows of known shape is looked at again */

/* Pattern ids: formats first, then facts, then the beginnings of blocks. */
static unsigned fact_id(void)
{
    return (unsigned)knee_train_format_count;
}

static unsigned block_id(void)
{
    return fact_id() + (unsigned)knee_train_fact_count();
}

enum { BLOCK_ARGUMENTS, BLOCK_DEEPSPEED, BLOCK_NANOTRON, BLOCKS };

static unsigned event_id(void)
{
    return block_id() + BLOCKS;
}

struct knee_train_reader *knee_train_begin(const char *name, const struct knee_alloc *alloc)
{
    struct knee_train_reader *r = knee_zeroed(alloc, sizeof *r);
    if (!r)
        return NULL;
    r->alloc = r->arguments.alloc = r->deepspeed.alloc = r->document.alloc = r->kept.alloc = alloc;
    knee_slice_copy(knee_slice_of(name), r->name, sizeof r->name);
    for (unsigned f = 0; f < knee_train_format_count; f++)
        for (size_t m = 0; m < TRAIN_MARKS; m++)
            knee_train_finder_add(&r->finder, knee_train_formats[f].mark[m], f);
    knee_train_facts_marks(&r->finder, fact_id());
    knee_train_finder_add(&r->finder, "- arguments -", block_id() + BLOCK_ARGUMENTS);
    knee_train_finder_add(&r->finder, "json = {", block_id() + BLOCK_DEEPSPEED);
    knee_train_finder_add(&r->finder, "Config(general=GeneralArgs(", block_id() + BLOCK_NANOTRON);
    knee_train_event_marks(&r->finder, event_id());
    knee_train_finder_ready(&r->finder);
    knee_train_facts_init(&r->facts);
    knee_train_words_init(&r->words);
    r->stride = 1;
    r->rank = -1;
    r->first_line = true;
    r->buffer = knee_resize(alloc, NULL, TRAIN_CHUNK);
    r->clean = knee_resize(alloc, NULL, TRAIN_LINE_MAX);
    if (r->buffer && r->clean)
        return r;
    knee_train_abandon(r);
    return NULL;
}

void knee_train_abandon(struct knee_train_reader *r)
{
    if (!r)
        return;
    knee_resize(r->alloc, r->buffer, 0);
    knee_resize(r->alloc, r->clean, 0);
    knee_resize(r->alloc, r->raw, 0);
    knee_resize(r->alloc, r->events.row, 0);
    knee_text_release(&r->arguments);
    knee_text_release(&r->deepspeed);
    knee_text_release(&r->document);
    knee_text_release(&r->kept);
    knee_resize(r->alloc, r, 0);
}

/* ---- Rows ---- */

void knee_train_raw_init(struct train_raw *raw, unsigned format)
{
    for (size_t i = 0; i < TRAIN_WHATS; i++)
        raw->value[i] = NAN;
    raw->format = format;
}

/* Every second row goes, and from now on only every second one of those that come is kept. */
static void thin_out(struct knee_train_reader *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->raw_count; i += 2)
        r->raw[kept++] = r->raw[i];
    r->counts.thinned += r->raw_count - kept;
    r->raw_count = kept;
    r->stride *= 2;
    r->skip = 0;
}

/* Of a log with too many rows: is this one of those that are not kept? */
static bool passed_over(struct knee_train_reader *r)
{
    if (++r->skip < r->stride) {
        r->counts.thinned++;
        r->counts.used++;
        return true;
    }
    r->skip = 0;
    return false;
}

void knee_train_row_add(struct knee_train_reader *r, const struct train_raw *raw)
{
    if (r->raw_count == TRAIN_ROWS_MAX)
        thin_out(r);
    if (!knee_room(r->alloc, &r->raw, &r->raw_room, r->raw_count + 1, sizeof *raw)) {
        r->failed = true;
        return;
    }
    r->raw[r->raw_count++] = *raw;
}

static bool says_something(const struct train_raw *raw)
{
    static const enum train_what any[] = {
        TRAIN_SECONDS,       TRAIN_ELAPSED,        TRAIN_SAMPLES_PER_S, TRAIN_TOKENS_PER_S,
        TRAIN_WORKER_TOKENS, TRAIN_WORKER_SAMPLES, TRAIN_STEPS_PER_S,   TRAIN_LOSS,
        TRAIN_EVAL,          TRAIN_RUNTIME,        TRAIN_INTERVAL,      TRAIN_PART,
        TRAIN_BLOCK_S,       TRAIN_RUN_RATE,       TRAIN_MEAN_S};
    for (size_t i = 0; i < sizeof any / sizeof *any; i++)
        if (!isnan(raw->value[any[i]]))
            return true;
    return false;
}

/* Only the first rank that prints is read. */
static bool other_rank(struct knee_train_reader *r, struct knee_slice line)
{
    double of;
    int rank = knee_train_rank(line, &of);
    if (of >= 1 && !(r->facts.workers >= of)) {
        r->facts.workers = of;
        r->facts.workers_from = "rank of the lines";
    }
    if (rank < 0 || rank == r->rank)
        return false;
    if (r->rank < 0) {
        r->rank = rank;
        return false;
    }
    return true;
}

/* The line's own date and time; else one that a pair gave in seconds since 1970; else the time of
 * day, which goes back at midnight. */
static void set_stamp(struct knee_train_reader *r, struct knee_slice line, struct train_raw *raw)
{
    double stamp = knee_train_stamp(line), clock;
    if (isnan(stamp) && raw->value[TRAIN_STAMP] > 1e8)
        return;
    raw->value[TRAIN_STAMP] = stamp;
    if (!isnan(stamp) || isnan(clock = knee_train_time_of_day(line)))
        return;
    r->day_s += clock < r->clock_s - 43200 ? 86400 : 0;
    r->clock_s = clock;
    raw->value[TRAIN_STAMP] = r->day_s + clock;
}

static void read_row(struct knee_train_reader *r, unsigned format, struct train_line line)
{
    const struct train_format *f = &knee_train_formats[format];
    struct train_raw raw;
    if (r->stride > 1 && !f->read && passed_over(r))
        return;
    knee_train_raw_init(&raw, format);
    bool good = true;
    if (f->read)
        good = f->read(r, line, &raw);
    else
        knee_train_read_pairs(r, f, line.text, &raw);
    if (!(f->flags & TRAIN_NO_STAMP))
        set_stamp(r, line.text, &raw);
    if (!good || !says_something(&raw)) {
        r->counts.unusable += f->read == NULL && !(f->flags & TRAIN_LAST_RESORT);
        return;
    }
    if (other_rank(r, line.text)) {
        r->counts.other_ranks++;
        return;
    }
    if (r->stride > 1 && f->read && passed_over(r))
        return;
    r->counts.used++;
    r->timed_rows += knee_train_has_time(&raw) &&
                     (!isnan(raw.value[TRAIN_STEP]) || !isnan(raw.value[TRAIN_SECONDS]));
    knee_train_row_add(r, &raw);
}

/* ---- Blocks of lines ---- */

/* GPT-NeoX ends values with "....updated". */
static struct knee_slice without_origin(struct knee_slice line)
{
    static const char *const ends[] = {"updated", "default"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t length = strlen(ends[i]);
        if (line.length <= length || memcmp(line.at + line.length - length, ends[i], length) != 0)
            continue;
        line.length -= length;
        while (line.length > 0 && line.at[line.length - 1] == '.')
            line.length--;
        break;
    }
    return line;
}

/* Names of GPT-NeoX and of the first Megatrons in the words of today's: the importer knows those. A
 * value may have another word too. */
static void add_argument(struct knee_train_reader *r, struct knee_slice line)
{
    static const struct {
        const char *own, *megatron, *value, *instead;
    } names[] = {
        {" train_batch_size .", "  global_batch_size ... ", NULL, NULL},
        {" train_micro_batch_size_per_gpu .", "  micro_batch_size ... ", NULL, NULL},
        {" model_parallel_size .", "  tensor_model_parallel_size ... ", NULL, NULL},
        {" pipe_parallel_size .", "  pipeline_model_parallel_size ... ", "0", "1"},
        {" global_num_gpus .", "  world_size ... ", NULL, NULL},
        {" intermediate_size .", "  ffn_hidden_size ... ", NULL, NULL},
        {" moe_num_experts .", "  num_experts ... ", NULL, NULL},
        {" moe_top_k .", "  moe_router_topk ... ", NULL, NULL},
        {" checkpoint_activations .", "  recompute_granularity ... ", "True", "full"},
    };
    line = without_origin(line);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t at = knee_slice_find(line, names[i].own);
        if (at == line.length)
            continue;
        struct knee_slice value = knee_slice_from(line, at + strlen(names[i].own));
        while (value.length > 0 && (value.at[0] == '.' || value.at[0] == ' '))
            value = knee_slice_from(value, 1);
        knee_text_puts(&r->arguments, names[i].megatron);
        bool other = names[i].value && knee_slice_is(value, names[i].value);
        line = other ? knee_slice_of(names[i].instead) : value;
        break;
    }
    knee_text_add(&r->arguments, line.at, line.length);
    knee_text_puts(&r->arguments, "\n");
}

static void argument_line(struct knee_train_reader *r, struct knee_slice line)
{
    r->counts.facts++;
    if (knee_slice_has(line, "----------------") || knee_slice_has(line, "end of arguments") ||
        ++r->block_lines > ARGUMENT_LINES)
        r->state = TRAIN_TEXT;
    else if (line.length < 512)
        add_argument(r, line);
}

/* nanotron's configuration, a field a line; it ends with its last parenthesis. */
static void config_line(struct knee_train_reader *r, struct knee_slice line)
{
    size_t prefix = knee_slice_find(line, "]: ");
    struct knee_slice text = prefix == line.length ? line : knee_slice_from(line, prefix + 3);
    bool inside = text.length > 0 && (text.at[0] == ' ' || text.at[0] == '\t');
    if (!inside || ++r->block_lines > ARGUMENT_LINES) {
        r->state = TRAIN_TEXT;
        return;
    }
    r->counts.facts++;
    knee_train_fact_field(&r->facts, text);
}

static void brace_line(struct knee_train_reader *r, struct knee_slice line)
{
    r->counts.facts++;
    for (size_t i = 0; i < line.length && r->state == TRAIN_BRACES; i++) {
        char c = line.at[i];
        r->braces += (c == '{') - (c == '}');
        knee_text_add(&r->deepspeed, &c, 1);
        if (r->braces == 0)
            r->state = TRAIN_TEXT;
    }
    knee_text_puts(&r->deepspeed, "\n");
    if (r->deepspeed.length > BLOCK_BYTES)
        r->state = TRAIN_TEXT;
}

static void begin_block(struct knee_train_reader *r, unsigned which, struct knee_slice line,
                        size_t mark)
{
    if (which == BLOCK_ARGUMENTS) {
        r->counts.facts++;
        if (knee_slice_has(line, "end of arguments"))
            return;
        r->state = TRAIN_ARGUMENTS;
        r->block_lines = 0;
    } else if (which == BLOCK_NANOTRON) {
        r->counts.facts++;
        r->state = TRAIN_CONFIG;
        r->block_lines = 0;
    } else if (r->deepspeed.length == 0) {
        r->state = TRAIN_BRACES;
        r->braces = 0;
        brace_line(r, knee_slice_from(line, mark + strlen("json = ")));
    }
}

/* ---- Tables ---- */

/* The header's name in the spelling of the keys; of wandb's "run - name" the name. */
enum train_what knee_train_column(const char *text, double *scale)
{
    char name[TRAIN_NAME];
    const char *dash = strstr(text, " - ");
    size_t used = 0;
    bool gap = false;
    if (strstr(text, "__MIN") || strstr(text, "__MAX"))
        return TRAIN_NOTHING;
    for (text = dash ? dash + 3 : text; *text && used + 2 < sizeof name; text++) {
        char c = knee_lower(*text);
        if (!knee_is_word_char(c)) {
            gap = used > 0;
            continue;
        }
        if (gap)
            name[used++] = '_';
        gap = false;
        name[used++] = c;
    }
    name[used] = '\0';
    const struct knee_train_key *key = used ? knee_train_table_key(name, used) : NULL;
    *scale = key ? key->scale : 1;
    return key ? key->what == TRAIN_TIME ? TRAIN_NOTHING : key->what : TRAIN_NOTHING;
}

/* A first line whose words are names of columns, a step and something beside it among them. */
static bool begin_table(struct knee_train_reader *r, struct knee_slice line)
{
    struct knee_csv csv;
    bool step = false, more = false;
    knee_csv_init(&csv, line.at, line.length);
    if (!knee_csv_row(&csv) || csv.fields < 2)
        return false;
    for (size_t i = 0; i < csv.fields && i < TRAIN_TABLE_MAX; i++) {
        char text[128];
        knee_csv_text(&csv, i, text, sizeof text);
        r->column[i].what = knee_train_column(text, &r->column[i].scale);
        step = step || r->column[i].what == TRAIN_STEP;
        more = more || (r->column[i].what != TRAIN_STEP && r->column[i].what != TRAIN_NOTHING);
    }
    r->columns = csv.fields < TRAIN_TABLE_MAX ? csv.fields : TRAIN_TABLE_MAX;
    return step && more;
}

static void table_line(struct knee_train_reader *r, struct knee_slice line)
{
    struct knee_csv csv;
    struct train_raw raw;
    if (r->stride > 1 && passed_over(r))
        return;
    knee_train_raw_init(&raw, knee_train_format_named("table"));
    knee_csv_init(&csv, line.at, line.length);
    if (!knee_csv_row(&csv))
        return;
    for (size_t i = 0; i < csv.fields && i < r->columns; i++) {
        char text[64];
        double value;
        knee_csv_text(&csv, i, text, sizeof text);
        if (r->column[i].what == TRAIN_NOTHING)
            continue;
        if (knee_slice_number(knee_slice_of(text), &value))
            raw.value[r->column[i].what] = value * r->column[i].scale;
        else if (r->column[i].what == TRAIN_STAMP)
            raw.value[TRAIN_STAMP] = knee_train_stamp(knee_slice_of(text));
    }
    if (!says_something(&raw)) {
        r->counts.unusable++;
        return;
    }
    r->counts.used++;
    knee_train_row_add(r, &raw);
}

/* ---- Lines ---- */

/* Without colours: ESC [ ... letter. */
static struct knee_slice without_colours(struct knee_train_reader *r, struct knee_slice line)
{
    if (line.length == 0 || !memchr(line.at, '\x1b', line.length))
        return line;
    size_t used = 0;
    for (size_t i = 0; i < line.length; i++) {
        if (line.at[i] == '\x1b' && i + 1 < line.length && line.at[i + 1] == '[') {
            for (i += 2; i < line.length && (line.at[i] < '@' || line.at[i] > '~');)
                i++;
            continue;
        }
        r->clean[used++] = line.at[i];
    }
    return (struct knee_slice){r->clean, used};
}

/* All that the line's marks say, the first of which is not before `from`. Progress bars may have
 * something better behind them. */
static void marked_line(struct knee_train_reader *r, struct knee_slice given, size_t from)
{
    unsigned id, format = fact_id();
    bool fact = false;
    size_t mark = 0;
    struct knee_slice line = without_colours(r, given);
    size_t at = knee_train_finder_next(&r->finder, line.at, line.length,
                                       line.at == given.at ? from : 0, &id);
    while (at < line.length) {
        if (id < format) {
            format = id;
            mark = at;
        }
        if (format < fact_id() && !(knee_train_formats[format].flags & TRAIN_LAST_RESORT))
            break;
        if (id >= event_id()) {
            r->failed = !knee_train_event_read(r, id - event_id(), line, at) || r->failed;
            fact = true;
        } else if (id >= block_id()) {
            begin_block(r, id - block_id(), line, at);
            return;
        }
        if (id >= fact_id() && id < block_id())
            fact = knee_train_fact_read(&r->facts, id - fact_id(), line, at) || fact;
        at = knee_train_finder_next(&r->finder, line.at, line.length, at + 1, &id);
    }
    r->counts.facts += fact;
    if (format < fact_id())
        read_row(r, format, (struct train_line){line, mark});
}

/* The first line with anything in it tells tables and documents from logs. */
static void first_line(struct knee_train_reader *r, struct knee_slice line)
{
    struct knee_slice text = knee_slice_trim(line);
    if (text.length >= 3 && memcmp(text.at, "\xef\xbb\xbf", 3) == 0)
        text = knee_slice_from(text, 3);
    if (text.length == 0)
        return;
    r->first_line = false;
    if (knee_slice_is(text, "{")) {
        r->state = TRAIN_DOCUMENT;
        knee_text_add(&r->document, text.at, text.length);
    } else if (begin_table(r, text)) {
        r->state = TRAIN_TABLE;
        r->counts.facts++;
    } else {
        marked_line(r, line, 0);
    }
}

static void document_line(struct knee_train_reader *r, struct knee_slice line)
{
    if (r->document.length + line.length > TRAIN_DOCUMENT_MAX) {
        r->counts.cut++;
        return;
    }
    knee_text_add(&r->document, line.at, line.length);
    knee_text_puts(&r->document, "\n");
}

/* `mark`: how far the line is known to be without a mark. */
static void one_line(struct knee_train_reader *r, struct knee_slice line, size_t mark)
{
    if (r->first_line)
        first_line(r, line);
    else if (r->state == TRAIN_ARGUMENTS)
        argument_line(r, without_colours(r, line));
    else if (r->state == TRAIN_CONFIG)
        config_line(r, without_colours(r, line));
    else if (r->state == TRAIN_BRACES)
        brace_line(r, line);
    else if (r->state == TRAIN_TABLE)
        table_line(r, line);
    else if (r->state == TRAIN_DOCUMENT)
        document_line(r, line);
    else
        marked_line(r, line, mark);
}

static bool ends_line(char c)
{
    return c == '\n' || c == '\r';
}

static size_t line_end(const char *data, size_t length, size_t at)
{
    const char *newline = memchr(data + at, '\n', length - at);
    size_t end = newline ? (size_t)(newline - data) : length;
    const char *back = memchr(data + at, '\r', end - at);
    return back ? (size_t)(back - data) : end;
}

static struct knee_slice line_of(struct knee_train_reader *r, const char *data, size_t from,
                                 size_t to)
{
    if (to - from > TRAIN_LINE_MAX) {
        r->counts.cut++;
        to = from + TRAIN_LINE_MAX;
    }
    return (struct knee_slice){data + from, to - from};
}

/* Of a log with too many rows: a line that is not kept is passed over at its mark. */
static bool passed_at_mark(struct knee_train_reader *r, unsigned id)
{
    bool plain = id < fact_id() && !knee_train_formats[id].read &&
                 !(knee_train_formats[id].flags & TRAIN_LAST_RESORT);
    return plain && r->skip + 1 < r->stride && passed_over(r);
}

/* Whole lines: one after the other inside blocks, from mark to mark elsewhere. */
static void read_lines(struct knee_train_reader *r, const char *data, size_t length)
{
    size_t at = 0;
    while (at < length) {
        size_t start = at, end, mark = at;
        unsigned id;
        if (r->state == TRAIN_TEXT && !r->first_line) {
            mark = knee_train_finder_next(&r->finder, data, length, at, &id);
            if (mark == length)
                return;
            if (passed_at_mark(r, id)) {
                at = line_end(data, length, mark) + 1;
                continue;
            }
            for (start = mark; start > at && !ends_line(data[start - 1]);)
                start--;
            end = line_end(data, length, mark);
        } else {
            end = line_end(data, length, at);
        }
        one_line(r, line_of(r, data, start, end), mark - start);
        at = end + 1;
    }
}

/* Bytes that are no text: kept whole, up to a cap. */
static void push_events(struct knee_train_reader *r, const char *data, size_t size)
{
    size_t room = TRAIN_DOCUMENT_MAX - r->document.length;
    r->counts.cut += size > room;
    knee_text_add(&r->document, data, size < room ? size : room);
}

/* Number of lines that end here; a carriage return before a newline does not count as a line. */
static size_t count_lines(const char *data, size_t length)
{
    size_t count = 0;
    for (const char *at = data; (at = memchr(at, '\n', (size_t)(data + length - at)));)
        at++, count++;
    return count;
}

/* The bytes up to and with the last end of line. */
static size_t whole_lines(const char *data, size_t size)
{
    while (size > 0 && !ends_line(data[size - 1]))
        size--;
    return size;
}

/* As much as the buffer has room for; what it then has of whole lines is read. False: the bytes are
 * no text. */
static bool push_some(struct knee_train_reader *r, const char *data, size_t size)
{
    memcpy(r->buffer + r->used, data, size);
    r->used += size;
    if (r->first_line && knee_train_is_events(r->buffer, r->used))
        return false;
    if (r->first_line && r->used > 1 && r->used < 64 && r->buffer[1] == '\0')
        return true; /* no text begins like that: wait for enough to know */
    size_t whole = whole_lines(r->buffer, r->used);
    if (whole == 0 && r->used == TRAIN_CHUNK)
        whole = r->used; /* longer than any line that is kept */
    read_lines(r, r->buffer, whole);
    memmove(r->buffer, r->buffer + whole, r->used - whole);
    r->used -= whole;
    return true;
}

/* Up to the first end of line what is pushed goes on with what was left over; whole lines are read
 * where they lie; the rest is kept. */
void knee_train_push(struct knee_train_reader *r, const char *data, size_t size)
{
    r->counts.bytes += size;
    if (r->state == TRAIN_EVENTS) {
        push_events(r, data, size);
        return;
    }
    r->counts.lines += count_lines(data, size);
    knee_train_tail(&r->events, data, size);
    if (r->timed_rows < ENOUGH_ROWS && r->kept.length < TRAIN_KEPT_MAX)
        knee_text_add(&r->kept, data,
                      size < TRAIN_KEPT_MAX - r->kept.length ? size
                                                             : TRAIN_KEPT_MAX - r->kept.length);
    while (size > 0) {
        size_t take = r->used || r->first_line ? line_end(data, size, 0) + 1 : 0;
        size_t room = TRAIN_CHUNK - r->used;
        if (take == 0 && (take = whole_lines(data, size)) > 0) {
            read_lines(r, data, take);
        } else {
            take = take == 0 || take > size ? size : take;
            take = take < room ? take : room;
            if (!push_some(r, data, take)) {
                r->state = TRAIN_EVENTS;
                r->counts.lines = 0;
                push_events(r, r->buffer, r->used);
                push_events(r, data + take, size - take);
                r->used = 0;
                return;
            }
        }
        data += take;
        size -= take;
    }
}

knee_status knee_train_end(struct knee_train_reader *r, struct knee_train_log *out,
                           struct knee_err *err)
{
    struct knee_train_log log = {.alloc = r->alloc};
    if (r->used > 0) {
        r->counts.lines++;
        read_lines(r, r->buffer, r->used);
    }
    if (r->state == TRAIN_DOCUMENT)
        knee_train_document_read(r);
    if (r->state == TRAIN_TEXT && r->timed_rows < ENOUGH_ROWS)
        knee_train_read_unknown(r, knee_train_format_named("lines with time stamps"));
    if (r->state == TRAIN_EVENTS && r->document.data)
        knee_train_events_read(r, knee_train_format_named("TensorBoard"));
    memcpy(log.name, r->name, sizeof log.name);
    knee_status status = knee_train_steps_finish(r, &log, err);
    knee_train_abandon(r);
    if (!status)
        *out = log;
    return status;
}

void knee_train_log_release(struct knee_train_log *log)
{
    knee_resize(log->alloc, log->rows, 0);
    log->rows = NULL;
    log->row_count = log->timed = 0;
}
