/* SPDX-License-Identifier: MIT */
/*
 * Lines of any framework, by three mechanisms. A line of pairs has a counter ("iter: 40", or
 * "[10/53]" behind an epoch) and perhaps a time. A progress bar has "5/16 [04:59<10:57, 59.8s/it]".
 * And where no line of the log is of these shapes, lines of one shape are compared: an integer that
 * grows from one to the next is a counter, and the lines' time stamps are the clock.
 */
#include "read/run/train_log.h"

#include "base/fold.h"

#include <math.h>
#include <string.h>

/* ---- Pairs ---- */

static bool is_time(enum train_what what)
{
    return what == TRAIN_SECONDS;
}

/* A number without a name that is known: by its unit. */
static void set_unit(struct train_raw *raw, const struct train_pair *pair)
{
    if (isnan(raw->value[pair->per]))
        raw->value[pair->per] = pair->value * (is_time(pair->per) ? pair->unit_s : 1);
}

/* "Time 0.6 (3.9)": what one step took, and the mean of all. "Batch 0.6 (3.9)" is a time too. */
static void set_value(struct train_raw *raw, const struct knee_train_key *key,
                      const struct train_pair *pair, bool last)
{
    enum train_what what = key->what;
    if (what == TRAIN_STEP && !isnan(pair->mean))
        what = TRAIN_SECONDS;
    if (!isnan(pair->clock_s) && (what == TRAIN_TIME || what == TRAIN_ELAPSED)) {
        if (isnan(raw->value[TRAIN_ELAPSED]))
            raw->value[TRAIN_ELAPSED] = pair->clock_s;
        return;
    }
    /* Of several times of a line the longest is the step's: the others are parts of it. */
    last = last || (what == TRAIN_SECONDS && knee_train_value(key, pair) > raw->value[what]);
    if (!isnan(raw->value[what]) && !last)
        return;
    raw->value[what] = knee_train_value(key, pair);
    if (strcmp(key->name, "time_data") == 0)
        raw->value[TRAIN_DATA_S] = pair->mean;
    else if ((what == TRAIN_SECONDS || what == TRAIN_TIME) && !isnan(pair->mean))
        raw->value[TRAIN_MEAN_S] = pair->mean * raw->value[what] / pair->value;
    if (what == TRAIN_DATA_S) /* most single steps do not wait at all */
        raw->value[TRAIN_DATA_MEAN_S] = pair->mean * key->scale;
}

void knee_train_read_pairs(struct knee_train_reader *r, const struct train_format *format,
                           struct knee_slice text, struct train_raw *raw)
{
    struct train_pairs pairs = {text.at, text.at + text.length, format->flags & TRAIN_SUFFIXES};
    struct train_pair pair;
    bool last = format->flags & TRAIN_COUNT_LAST;
    while (knee_train_pairs_next(&pairs, &pair)) {
        const struct knee_train_key *key =
            knee_train_key_find(format->keys, pair.name, pair.length);
        if (!key)
            key = knee_train_word(&r->words, &pair);
        if (!key && format->read == knee_train_read_line)
            key = knee_train_guess(&pair);
        if (key)
            set_value(raw, key, &pair, last);
        else if (pair.per != TRAIN_NOTHING)
            set_unit(raw, &pair);
    }
}

/* ---- Loops that do not train ---- */

static bool has_any(struct knee_slice text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (knee_slice_has(text, words[i]))
            return true;
    return false;
}

/* Whether a loop with this before its counter may be the training's. Preparing data, loading and
 * evaluating have counters too, and say so. */
static bool training_loop(struct knee_slice name)
{
    static const char *const others[] = {
        "alid",   "val",     "Eval",     "anity",     "etch",    "oad",     "oken",    "plit",
        "Map",    "apping",  "esolving", "lattening", "Saving",  "Writing", "enerat",  "Filter",
        "rocess", "Predict", "Convert",  "Creating",  "Packing", "ncoding", "ampling", "Test",
        "test",   "Comput",  "xtract",   "Capturing", "Upload",  "ompil"};
    return !has_any(name, others, sizeof others / sizeof *others);
}

/* ---- Counters in brackets ---- */

static bool blank(char c)
{
    return c == ' ' || c == '\t';
}

/* "10/53" or "2000 / 8223" at `p`, which is the first digit; false: it is none, or part of a date
 * ("11/01 11:27:04", "2024/01/24") or of the "(0/8)" that is a rank. */
static bool counter_at(const char *begin, const char *p, const char *end, double *at, double *of)
{
    const char *q = p;
    *at = knee_train_number(&q, end);
    while (q < end && blank(*q))
        q++;
    if (q == end || *q != '/')
        return false;
    for (q++; q < end && blank(*q);)
        q++;
    const char *total = q;
    *of = q < end && knee_is_digit(*q) ? knee_train_number(&q, end) : NAN;
    bool rank = p > begin && p[-1] == '(';
    bool date = (p > begin && p[-1] == '/') || (q < end && (*q == '/' || *q == '.')) ||
                (end - q >= 3 && *q == ' ' && knee_is_digit(q[1]) && knee_is_digit(q[2]) &&
                 end - q >= 4 && q[3] == ':') ||
                (total[0] == '0' && q - total == 2);
    return *of >= 2 && *at <= *of && *at == floor(*at) && *of == floor(*of) && !rank && !date;
}

struct counter {
    double at, of;
    const char *start;
};

/* The last counter with a total of a line: the innermost. */
static bool find_counter(struct knee_slice line, struct counter *counter)
{
    const char *begin = line.at, *end = begin + line.length, *p = begin;
    bool found = false;
    while (p < end && (p = memchr(p, '/', (size_t)(end - p)))) {
        const char *digit = p++;
        double value, total;
        while (digit > begin && blank(digit[-1]))
            digit--;
        if (digit == begin || !knee_is_digit(digit[-1]))
            continue;
        while (digit > begin && knee_is_digit(digit[-1]))
            digit--;
        if (digit > begin && (knee_is_word_char(digit[-1]) || digit[-1] == '.' || digit[-1] == '-'))
            continue;
        if (!counter_at(begin, digit, end, &value, &total))
            continue;
        *counter = (struct counter){value, total, digit};
        found = true;
    }
    return found;
}

/* The last word before a counter: "Extracting" of "Extracting 10/438". */
static struct knee_slice word_before(struct knee_slice line, const char *at)
{
    while (at > line.at && !knee_is_letter(at[-1]))
        at--;
    const char *end = at;
    while (at > line.at && knee_is_letter(at[-1]))
        at--;
    return (struct knee_slice){at, (size_t)(end - at)};
}

/* The number behind "Epoch", "epoch: [", "Epoch(train)  ["; NaN. *start: where it stands. */
static double epoch_of(struct knee_slice line, const char **start)
{
    size_t at = knee_slice_find(line, "poch");
    const char *p = line.at + at + (at < line.length ? 4 : 0), *end = line.at + line.length;
    const char *reach = end - p > 12 ? p + 12 : end;
    while (p < reach && !knee_is_digit(*p) && *p != ',')
        p++;
    *start = p;
    return p < reach && knee_is_digit(*p) ? knee_train_number(&p, end) : NAN;
}

/* Evaluation steps have separate counters and times. A line with both losses is of the training. */
static bool is_evaluation(struct knee_slice line)
{
    static const char *const words[] = {
        "(val)",  "(test)",  "Test:",   "Test ",   "test:", "Val:",  "Valid", "task/s",
        "valid ", "Evaluat", "evaluat", "Validat", "Eval:", "eval:", "val:"};
    static const char *const trains[] = {"rain loss", "rain_loss", "rain Loss", "raining loss"};
    struct knee_slice head = {line.at, line.length < 160 ? line.length : 160};
    struct knee_slice before = {head.at, knee_slice_find(head, " val ")};
    bool val = before.length < head.length && !knee_slice_has(before, "oss");
    return (val || has_any(head, words, sizeof words / sizeof *words)) &&
           !has_any(head, trains, sizeof trains / sizeof *trains);
}

static struct knee_slice after(struct knee_slice text, const char *word)
{
    size_t at = knee_slice_find(text, word);
    return knee_slice_from(text, at == text.length ? at : at + strlen(word));
}

/* "elapsed_time": "25m 15s", elapsed:5:10:34 */
static double elapsed_said(struct knee_slice line)
{
    struct knee_slice rest = after(line, "lapsed"), piece;
    rest = knee_slice_from(rest, rest.length > 5 && memcmp(rest.at, "_time", 5) == 0 ? 5 : 0);
    while (rest.length && rest.at[0] && strchr("'\":= ", rest.at[0]))
        rest = knee_slice_from(rest, 1);
    size_t end = 0;
    bool quoted = rest.length && rest.at > line.at && strchr("'\"", rest.at[-1]);
    while (end < rest.length &&
           !(rest.at[end] && strchr(quoted ? "'\"}|" : "'\"}|,; ", rest.at[end])))
        end++;
    piece = (struct knee_slice){rest.at, end};
    return knee_train_clock(knee_slice_trim(piece));
}

/* "1000/1000 - 115s - loss: 2.1": all steps of an epoch and what they took, as Keras writes it. */
static double bar_seconds(struct knee_slice line, double total)
{
    struct knee_slice rest = after(line, " - ");
    const char *p = rest.at, *end = p + rest.length;
    double seconds = p < end && knee_is_digit(*p) ? knee_train_number(&p, end) : NAN;
    bool unit = end - p >= 2 && p[0] == 's' && p[1] == ' ';
    return unit ? seconds / total : NAN;
}

/* "7s - loss: 1.12", " - 12s - loss: 0.40": an epoch of Keras, whose number is on the line before.
 */
static void set_keras_epoch(struct knee_train_reader *r, struct knee_slice line,
                            struct train_raw *raw)
{
    struct knee_slice text = knee_slice_trim(line);
    text = knee_slice_from(text, knee_slice_starts(text, "- ") ? 2 : 0);
    const char *p = text.at, *end = p + text.length;
    double seconds = p < end && knee_is_digit(*p) ? knee_train_number(&p, end) : NAN;
    struct knee_slice rest = {p, (size_t)(end - p)};
    if (!knee_slice_starts(rest, "s - loss: "))
        return;
    raw->value[TRAIN_SECONDS] = seconds;
    raw->value[TRAIN_STEP] = raw->value[TRAIN_EPOCH] = ++r->keras_epochs;
}

/* "Trained 904 steps, 0:10:02 elapsed": an epoch in one line. */
static double epoch_seconds(struct knee_slice line)
{
    size_t steps = knee_slice_find(line, " steps, "), start = steps;
    while (start > 0 && knee_is_digit(line.at[start - 1]))
        start--;
    if (steps == line.length || start == steps)
        return NAN;
    const char *p = line.at + start;
    double count = knee_train_number(&p, line.at + steps);
    struct knee_slice clock = knee_slice_from(line, steps + strlen(" steps, "));
    clock.length = knee_slice_find(clock, " elapsed");
    return knee_train_clock(knee_slice_trim(clock)) / count;
}

/* A counter in brackets on a line where no name has one, with its epoch if the line prints it. Of a
 * counter with a name the total: "iter: 10/47". A line that counts epochs alone has TRAIN_EPOCH as
 * its step. False: the counter is of something else. */
static bool set_counter(struct knee_slice line, struct train_raw *raw)
{
    const char *where;
    struct counter c;
    double epoch = epoch_of(line, &where), step = raw->value[TRAIN_STEP];
    if (epoch == floor(epoch))
        raw->value[TRAIN_EPOCH] = epoch;
    if (!find_counter(line, &c) || c.of == epoch)
        return true;
    bool epochs = c.start == where;
    if (!training_loop(word_before(line, c.start)))
        return false;
    if (!isnan(step)) {
        if (step == c.at && !epochs)
            raw->value[TRAIN_TOTAL] = c.of;
        return true;
    }
    raw->value[TRAIN_TOTAL] = c.of;
    if (isnan(epoch) && c.at == c.of) /* the end of an epoch, which has no number */
        return true;
    raw->value[TRAIN_STEP] = c.at + (isnan(epoch) || epochs ? 0 : epoch * c.of);
    return true;
}

bool knee_train_read_line(struct knee_train_reader *r, struct train_line line,
                          struct train_raw *raw)
{
    if (is_evaluation(line.text))
        return false;
    knee_train_read_pairs(r, &knee_train_formats[raw->format], line.text, raw);
    double batch = raw->value[TRAIN_STEP];
    if (batch != floor(batch)) /* "step 0.4": no counter */
        raw->value[TRAIN_STEP] = NAN;
    if (!set_counter(line.text, raw))
        return false;
    if (isnan(raw->value[TRAIN_STEP]) && isnan(raw->value[TRAIN_EPOCH]))
        set_keras_epoch(r, line.text, raw);
    double elapsed_s = elapsed_said(line.text);
    if (!isnan(elapsed_s)) /* as a pair it was "5" of "5:10:34" */
        raw->value[TRAIN_ELAPSED] = elapsed_s;
    if (isnan(raw->value[TRAIN_SECONDS]))
        raw->value[TRAIN_SECONDS] = epoch_seconds(line.text);
    if (isnan(raw->value[TRAIN_SECONDS]) && isnan(raw->value[TRAIN_STEP]))
        raw->value[TRAIN_SECONDS] = bar_seconds(line.text, raw->value[TRAIN_TOTAL]);
    bool counts = !isnan(raw->value[TRAIN_STEP]) || !isnan(raw->value[TRAIN_TOTAL]);
    if (counts && isnan(raw->value[TRAIN_SECONDS]))
        raw->value[TRAIN_SECONDS] = raw->value[TRAIN_TIME];
    bool known = knee_train_formats[raw->format].keys != NULL;
    bool epoch = !isnan(raw->value[TRAIN_EPOCH]) && !isnan(raw->value[TRAIN_LOSS]);
    return counts || known || epoch || !isnan(raw->value[TRAIN_SECONDS]) ||
           !isnan(raw->value[TRAIN_STEPS_PER_S]);
}

/* ---- Progress bars ---- */

#define SHORT_BAR_S 0.02 /* shorter steps inside the bar's first second are of something else */

/* Takes "5/16", "614/?" or "12it" off the end of the text before a progress bar's bracket, then the
 * bar, so that its name is left. False if it is not a bar. */
static bool split_bar(struct knee_slice head, struct knee_slice *name, struct knee_slice *count)
{
    head = knee_slice_trim(head);
    bool open = head.length > 2 && memcmp(head.at + head.length - 2, "it", 2) == 0;
    size_t end = open ? head.length - 2 : head.length, start = end;
    while (start > 0 && strchr("0123456789/?", head.at[start - 1]) && head.at[start - 1])
        start--;
    *count = (struct knee_slice){head.at + start, end - start};
    size_t percent = knee_slice_find(head, "%|");
    *name = (struct knee_slice){head.at, percent == head.length ? start : percent};
    while (percent < head.length && name->length > 0 && name->at[name->length - 1] >= '0' &&
           name->at[name->length - 1] <= '9')
        name->length--;
    *name = knee_slice_trim(*name);
    bool total = knee_slice_has(*count, "/");
    if (open) /* without a total: only where its name says that it trains */
        return count->length > 0 && !total &&
               (knee_slice_has(*name, "poch") || knee_slice_has(*name, "rain"));
    return count->length > 0 && total && percent < head.length;
}

/* Seconds of a step by the bar's "59.78s/it" or "1.37it/s", a mean of the last ones. */
static double bar_rate(struct knee_slice text, size_t bracket, size_t mark)
{
    size_t start = mark;
    while (start > bracket && (knee_is_digit(text.at[start - 1]) || text.at[start - 1] == '.'))
        start--;
    const char *p = text.at + start;
    double value = knee_train_number(&p, text.at + mark);
    bool seconds = mark < text.length && text.at[mark] == 's' && text.at[mark + 1] == '/';
    return seconds ? value : 1 / value;
}

bool knee_train_read_bar(struct knee_train_reader *reader, struct train_line line,
                         struct train_raw *raw)
{
    (void)reader;
    struct knee_slice text = line.text, name, count, piece;
    size_t bracket = line.mark;
    while (bracket > 0 && text.at[bracket] != '[')
        bracket--;
    if (!split_bar((struct knee_slice){text.at, bracket}, &name, &count) || !training_loop(name))
        return false;
    const char *p = count.at, *end = count.at + count.length;
    raw->value[TRAIN_STEP] = knee_train_number(&p, end);
    if (p + 1 < end && *p++ == '/')
        raw->value[TRAIN_TOTAL] = knee_train_number(&p, end);
    raw->value[TRAIN_MEAN_S] = bar_rate(text, bracket, line.mark);
    struct knee_slice clock = knee_slice_from(text, bracket + 1);
    knee_slice_until(&clock, knee_slice_has(clock, "<") ? '<' : ',', &piece);
    raw->value[TRAIN_ELAPSED] = knee_train_clock(piece);
    struct knee_slice loss = after(clock, "loss=");
    p = loss.at;
    raw->value[TRAIN_LOSS] = knee_train_number(&p, loss.at + loss.length);
    bool prepares = raw->value[TRAIN_ELAPSED] == 0 && raw->value[TRAIN_MEAN_S] < SHORT_BAR_S;
    return raw->value[TRAIN_STEP] > 0 && !prepares;
}

/* ---- Lines of unknown shape ---- */

#define SHAPES      24 /* different shapes of lines that are compared */
#define PLACES      16 /* integers of a line */
#define SHAPE_LINES 3  /* of one shape before its counter is believed */

/* Lines that are alike but for their numbers. */
struct shape {
    unsigned hash;
    size_t lines, places;
    double first[PLACES], last[PLACES], stride[PLACES];
    size_t even[PLACES]; /* lines that are as far from the one before as that from its own */
    bool grows[PLACES];
    size_t counters; /* lines with a "10/53" */
};

/* Integers of a line, and the hash of what stands between its numbers. The stamp is left out, and
 * so are blanks and signs: columns are padded. */
static unsigned shape_of(struct knee_slice line, double *value, size_t *count)
{
    unsigned hash = 5381;
    const char *p = line.at, *end = p + line.length;
    *count = 0;
    while (p < end) {
        bool word = p > line.at && knee_is_word_char(p[-1]);
        if (!knee_is_digit(*p) || word) {
            if (!blank(*p) && *p != '-' && *p != '+')
                hash = knee_train_hash(hash, knee_is_digit(*p) ? '0' : *p);
            p++;
            continue;
        }
        const char *start = p;
        double number = knee_train_number(&p, end);
        bool whole = !memchr(start, '.', (size_t)(p - start)) && number < 1e15;
        bool clock = p < end && *p == ':';
        bool after = start > line.at && (start[-1] == ':' || start[-1] == '-' || start[-1] == '/');
        if (*count < PLACES)
            value[(*count)++] = whole && !clock && !after ? number : NAN;
    }
    return hash;
}

static struct shape *shape_find(struct shape *shapes, size_t *count, unsigned hash)
{
    for (size_t i = 0; i < *count; i++)
        if (shapes[i].hash == hash)
            return &shapes[i];
    if (*count == SHAPES)
        return NULL;
    shapes[*count] = (struct shape){.hash = hash};
    return &shapes[(*count)++];
}

static void shape_add(struct shape *s, const double *value, size_t count)
{
    if (s->lines == 0)
        s->places = count;
    for (size_t i = 0; i < s->places && i < count; i++) {
        if (s->lines == 0)
            s->first[i] = value[i];
        s->grows[i] = s->lines == 0 ? !isnan(value[i]) : s->grows[i] && value[i] > s->last[i];
        s->even[i] += s->lines > 1 && value[i] - s->last[i] == s->stride[i];
        s->stride[i] = s->lines > 0 ? value[i] - s->last[i] : NAN;
        s->last[i] = value[i];
    }
    s->lines++;
}

#define COUNTER PLACES /* as a place: the counter with a total */

/* The counter with a total of the most lines; else the one that grows the most a line: the finest.
 * A counter that is printed every so often grows by the same number: process ids do not. */
static const struct shape *best_shape(const struct shape *shapes, size_t count, size_t *place)
{
    const struct shape *best = NULL;
    double most = 0;
    size_t lines = 2 * SHAPE_LINES - 1;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < shapes[i].places && shapes[i].lines >= SHAPE_LINES; k++) {
            double rate = (shapes[i].last[k] - shapes[i].first[k]) / (double)shapes[i].lines;
            bool even = 2 * shapes[i].even[k] >= shapes[i].lines - 2;
            if (!shapes[i].grows[k] || !even || rate <= most)
                continue;
            most = rate;
            best = &shapes[i];
            *place = k;
        }
    for (size_t i = 0; i < count; i++)
        if (shapes[i].counters > lines && (!best || shapes[i].lines > best->lines)) {
            lines = shapes[i].counters;
            best = &shapes[i];
            *place = COUNTER;
        }
    return best;
}

void knee_train_read_unknown(struct knee_train_reader *r, unsigned format)
{
    struct shape shapes[SHAPES];
    size_t count = 0, places, place = 0;
    double value[PLACES];
    struct counter c;
    struct knee_slice rest = {r->kept.data, r->kept.length}, line;
    while (rest.at && knee_slice_line(&rest, &line)) {
        if (isnan(knee_train_stamp(line)) || is_evaluation(line))
            continue;
        unsigned hash = shape_of(line, value, &places);
        struct shape *s = shape_find(shapes, &count, hash);
        if (!s)
            continue;
        shape_add(s, value, places);
        s->counters += find_counter(line, &c);
    }
    const struct shape *best = best_shape(shapes, count, &place);
    rest = (struct knee_slice){r->kept.data, r->kept.length};
    while (best && rest.at && knee_slice_line(&rest, &line)) {
        struct train_raw raw;
        if (shape_of(line, value, &places) != best->hash || (place >= places && place != COUNTER))
            continue;
        knee_train_raw_init(&raw, format);
        const char *where;
        double epoch = epoch_of(line, &where);
        if (place == COUNTER)
            set_counter(line, &raw);
        else
            raw.value[TRAIN_STEP] = value[place];
        if (raw.value[TRAIN_STEP] == epoch)
            raw.value[TRAIN_EPOCH] = epoch;
        raw.value[TRAIN_STAMP] = knee_train_stamp(line);
        r->counts.used++;
        knee_train_row_add(r, &raw);
    }
}
