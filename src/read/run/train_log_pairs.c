/* SPDX-License-Identifier: MIT */
/*
 * Names and numbers of a line. Frameworks write "name: 1.5 | name: 2", "name=1.5, name=2", "name
 * 1.5 | name 2", {"name": 1.5} and mixtures of them; what they have in common is that a name stands
 * before its number and that |, comma, brackets or the number before end a name. So one pass reads
 * all of them: the name of a number that does not follow a letter is the text before it, back to
 * the last such end.
 */
#include "read/run/train_log.h"

#include "base/fold.h"

#include <math.h>
#include <string.h>

/* What a character is to the walk: part of a word, a digit, the end of a name, or one that must be
 * looked at (8): + - . / : = */
enum { WORD = 1, DIGIT = 2, ENDS = 4 };
/* clang-format off */
static const unsigned char kinds[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 4, 8, 8, 8, /* + , - . / */
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 8, 4, 4, 8, 4, 0, /* digits : ; < = > */
    0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 0, 4, 0, 1, /* [ ] _ */
    0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 4, 4, 0, 0, /* { | } */
};
/* clang-format on */

static unsigned kind(char c)
{
    return kinds[(unsigned char)c];
}

static bool letter(char c)
{
    return kind(c) == WORD;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t';
}

/* ---- Numbers ---- */

static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static double scaled(double mantissa, int exponent)
{
    if (exponent >= 0 && exponent <= 22)
        return mantissa * tens[exponent];
    if (exponent < 0 && exponent >= -22)
        return mantissa / tens[-exponent];
    return mantissa * pow(10, exponent);
}

/* "e-05" after the digits; returns 0 and consumes nothing if no exponent follows. */
static int take_exponent(const char **at, const char *end)
{
    const char *p = *at;
    int value = 0;
    if (p >= end || (*p != 'e' && *p != 'E'))
        return 0;
    bool minus = ++p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    if (p >= end || !knee_is_digit(*p))
        return 0;
    for (; p < end && knee_is_digit(*p); p++)
        if (value < 1000)
            value = 10 * value + (*p - '0');
    *at = p;
    return minus ? -value : value;
}

static bool thousands(const char *p, const char *end)
{
    return end - p >= 4 && knee_is_digit(p[1]) && knee_is_digit(p[2]) && knee_is_digit(p[3]) &&
           (end - p == 4 || !knee_is_digit(p[4]));
}

double knee_train_number(const char **at, const char *end)
{
    const char *p = *at, *first;
    uint64_t mantissa = 0;
    int dropped = 0, places = 0;
    bool minus = p < end && *p == '-', point = false;
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    for (first = p; p < end; p++) {
        if (*p == '.' && !point && p + 1 < end && knee_is_digit(p[1])) {
            point = true;
            continue;
        }
        if (*p == ',' && !point && p > first && thousands(p, end))
            continue;
        if (!knee_is_digit(*p))
            break;
        if (mantissa < UINT64_MAX / 10 - 1)
            mantissa = 10 * mantissa + (uint64_t)(*p - '0'), places += point;
        else
            dropped += !point;
    }
    if (p == first)
        return NAN;
    double value = scaled((double)mantissa, take_exponent(&p, end) - places + dropped);
    *at = p;
    return minus ? -value : value;
}

/* ---- Pairs ---- */

static bool number_starts(const char *p, const char *end)
{
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    return p < end && (knee_is_digit(*p) || (*p == '.' && p + 1 < end && knee_is_digit(p[1])));
}

/* What ends a name without being part of one. */
static bool ends_name(char c)
{
    return kind(c) == ENDS;
}

/* After ':' or '=': does the value follow, blanks and quotes left aside? */
static bool value_follows(const char *p, const char *end)
{
    while (p < end && (blank(*p) || *p == '"' || *p == '\''))
        p++;
    return number_starts(p, end);
}

static void set_name(struct train_pair *pair, const char *from, const char *to)
{
    size_t used = 0;
    unsigned hash = 0;
    bool gap = false;
    for (; from < to; from++) {
        char c = knee_lower(*from);
        if (!(kind(c) & (WORD | DIGIT)) || c == '_') {
            gap = used > 0;
            continue;
        }
        if (used + 2 >= TRAIN_NAME) { /* no name of a table is that long */
            used = 0;
            break;
        }
        if (gap) {
            pair->name[used++] = '_';
            hash = knee_train_hash(hash, '_');
        }
        gap = false;
        pair->name[used++] = c;
        hash = knee_train_hash(hash, c);
    }
    pair->name[used] = '\0';
    pair->length = used;
    pair->hash = hash;
}

/* Letters from `p` on. */
static struct knee_slice letters(const char *p, const char *end)
{
    const char *stop = p;
    while (stop < end && letter(*stop))
        stop++;
    return (struct knee_slice){p, (size_t)(stop - p)};
}

/* The unit at `p`, "ms", "s/it", "tokens/sec", skipped so that it is not taken for the next name.
 * Any other word stays. */
static const char *take_unit(const char *p, const char *end, struct train_pair *pair)
{
    struct knee_slice of = letters(p, end), per = {p, 0};
    const char *stop = p + of.length;
    bool over = stop + 1 < end && *stop == '/' && letter(stop[1]);
    if (over) {
        per = letters(stop + 1, end);
        stop = per.at + per.length;
    }
    pair->per = knee_train_unit(of, per, &pair->unit_s);
    bool plain =
        !over && (!isnan(pair->unit_s) || knee_slice_is(of, "GB") || knee_slice_is(of, "None"));
    if (pair->per == TRAIN_STEP) { /* "101-200batch:", but not "epoch 0 step 100" */
        if (knee_is_digit(p[-1]) && stop < end && *stop == ':')
            return stop;
        pair->per = TRAIN_NOTHING;
    }
    bool whole = stop == end || blank(*stop) || ends_name(*stop) || *stop == ')';
    if (whole && (plain || pair->per != TRAIN_NOTHING))
        return stop;
    pair->unit_s = NAN;
    pair->per = TRAIN_NOTHING;
    return p;
}

/* Thousands, millions ... of "1.25K"; 1 where no such letter follows. */
static double suffix_scale(const char *p, const char *end)
{
    static const struct {
        char letter;
        double scale;
    } suffixes[] = {{'K', 1e3}, {'M', 1e6}, {'B', 1e9}, {'G', 1e9}, {'T', 1e12}};
    if (p == end || (p + 1 < end && letter(p[1])))
        return 1;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (*p == suffixes[i].letter)
            return suffixes[i].scale;
    return 1;
}

/* The total of "10/ 500"; `p` where there is none. */
static const char *skip_total(const char *p, const char *end)
{
    const char *slash = p;
    while (slash < end && blank(*slash))
        slash++;
    if (slash == end || *slash != '/')
        return p;
    for (slash++; slash < end && blank(*slash);)
        slash++;
    if (slash == end || !knee_is_digit(*slash))
        return p;
    knee_train_number(&slash, end);
    return slash;
}

/* The end of a range, "[0-20]" or "101-200batch", is how far it is. */
static const char *take_range(const char *p, const char *end, struct train_pair *pair)
{
    const char *at = p + 1;
    if (end - p < 3 || *p != '-' || !knee_is_digit(*at))
        return p;
    double last = knee_train_number(&at, end);
    if (at == end || (*at != ']' && !letter(*at)) || !(last > pair->value))
        return p;
    pair->value = last;
    return at;
}

/* The mean of "0.6 (3.9)"; `p` where there is none. */
static const char *take_mean(const char *p, const char *end, struct train_pair *pair)
{
    const char *at = p;
    while (at < end && blank(*at))
        at++;
    if (at == end || *at != '(' || !number_starts(at + 1, end))
        return p;
    at++;
    double mean = knee_train_number(&at, end);
    if (at == end || *at != ')')
        return p;
    pair->mean = mean;
    return at + 1;
}

/* The rest of "1:02:03"; `p` where there is none. */
static const char *take_clock(const char *p, const char *end, struct train_pair *pair)
{
    const char *at = p;
    double sum = pair->value;
    int parts = 1;
    while (parts < 3 && end - at >= 3 && *at == ':' && knee_is_digit(at[1]) &&
           knee_is_digit(at[2]) && (end - at == 3 || !knee_is_digit(at[3]))) {
        sum = 60 * sum + 10 * (at[1] - '0') + (at[2] - '0');
        at += 3;
        parts++;
    }
    if (parts < 2 || sum < 0)
        return p;
    pair->clock_s = sum;
    return at;
}

/* What belongs to a number: its unit, the total of "10/ 500", the mean of "0.6 (3.9)". */
static const char *after_number(const char *p, const char *end, bool suffixes,
                                struct train_pair *pair)
{
    pair->unit_s = pair->mean = pair->clock_s = NAN;
    pair->per = TRAIN_NOTHING;
    if (p == end)
        return p;
    p = take_clock(take_range(p, end, pair), end, pair);
    if (p == end)
        return p;
    if (suffixes)
        pair->value *= suffix_scale(p, end);
    if (letter(*p)) {
        const char *stop = take_unit(p, end, pair);
        while (p < end && (letter(*p) || *p == '%'))
            p++;
        p = stop > p ? stop : p;
    } else if (*p == '%') {
        p++;
    }
    p = skip_total(p, end);
    const char *word = p;
    while (word < end && blank(*word))
        word++;
    bool open = isnan(pair->unit_s) && pair->per == TRAIN_NOTHING;
    if (open && word > p && word < end && letter(*word)) {
        const char *stop = take_unit(word, end, pair);
        p = stop > word ? stop : p;
    }
    return take_mean(p, end, pair);
}

/* ".4f" is a print format, not a number: programs list their source, "{loss:.4f}", at the head of a
 * log. */
static bool print_format(const char *p, const char *begin)
{
    return *p == '.' && p > begin && p[-1] == ':';
}

double knee_train_value(const struct knee_train_key *key, const struct train_pair *pair)
{
    bool time = key->what == TRAIN_SECONDS || key->what == TRAIN_TIME ||
                key->what == TRAIN_ELAPSED || key->what == TRAIN_PART ||
                key->what == TRAIN_INTERVAL || key->what == TRAIN_DATA_S;
    return pair->value * (time && !isnan(pair->unit_s) ? pair->unit_s : key->scale);
}

/* A column is as wide as its largest number. */
static bool padded_digit(const char *p, const char *end)
{
    while (p < end && *p == ' ')
        p++;
    return p < end && knee_is_digit(*p);
}

bool knee_train_pairs_next(struct train_pairs *pairs, struct train_pair *out)
{
    const char *p = pairs->at, *end = pairs->end, *name = p;
    while (p < end) {
        char c = *p;
        if (kind(c) == 0) {
            p++;
            continue;
        }
        if (kind(c) == WORD) { /* digits in it too */
            while (p < end && kind(*p) & (WORD | DIGIT))
                p++;
            continue;
        }
        if (kind(c) == ENDS) { /* "Batch [ 20]": the bracket is around the number only */
            bool around = c == '[' && p > name && padded_digit(p + 1, end);
            p++;
            name = around ? name : p;
            continue;
        }
        if (print_format(p, pairs->at)) {
            for (p++; p < end && knee_is_digit(*p);)
                p++;
            continue;
        }
        if (number_starts(p, end) && (p == pairs->at || !letter(p[-1]))) {
            const char *start = p;
            set_name(out, name, start);
            out->value = knee_train_number(&p, end);
            p = after_number(p, end, pairs->suffixes, out);
            name = p;
            if (out->length == 0 && out->per == TRAIN_NOTHING)
                continue;
            pairs->at = p;
            return true;
        }
        bool apart = c == '-' && p > pairs->at && blank(p[-1]);
        if (apart || ((c == ':' || c == '=') && !value_follows(p + 1, end)) ||
            (c == '/' && p + 1 < end && letter(p[1]) && p > pairs->at && knee_is_digit(p[-1])))
            name = p + 1;
        p++;
    }
    pairs->at = end;
    return false;
}

/* ---- Times and ranks ---- */

static bool digits(const char *p, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!knee_is_digit(p[i]))
            return false;
    return true;
}

static double two(const char *p)
{
    return 10 * (p[0] - '0') + (p[1] - '0');
}

/* Days since 1970 of a date of the Gregorian calendar. */
static double days_of(double year, double month, double day)
{
    double y = month <= 2 ? year - 1 : year;
    double era_day = floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
    return 365 * y + floor(y / 4) - floor(y / 100) + floor(y / 400) + era_day - 719468;
}

/* Number of a month's name, "Jan" ... "Dec"; 0: it is none. */
static double month_named(const char *p)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (size_t i = 0; i < 12; i++)
        if (memcmp(names + 3 * i, p, 3) == 0)
            return (double)(i + 1);
    return 0;
}

/* The year after "15:27:02 CEST "; 1970 if none is printed. */
static double year_after(const char *p, const char *end)
{
    while (p < end && (blank(*p) || letter(*p)))
        p++;
    bool year = end - p >= 4 && digits(p, 4) && (end - p == 4 || !knee_is_digit(p[4]));
    return year ? 100 * two(p) + two(p + 2) : 1970;
}

struct date {
    double year, month, day;
};

static bool slashes(const char *p, size_t first, size_t second)
{
    return (p[first] == '-' || p[first] == '/') && p[second] == p[first];
}

/* The date that ends at `p`, of a line that began at `begin`; false: there is none. */
static bool date_before(const char *begin, const char *p, const char *clock_end, const char *end,
                        struct date *d)
{
    size_t room = (size_t)(p - begin);
    const char *q = p - 10;
    if (room >= 10 && slashes(q, 4, 7) && digits(q, 4) && digits(q + 5, 2) && digits(q + 8, 2))
        *d = (struct date){100 * two(q) + two(q + 2), two(q + 5), two(q + 8)};
    else if (room >= 10 && slashes(q, 2, 5) && digits(q, 2) && digits(q + 3, 2) && digits(q + 6, 4))
        *d = (struct date){100 * two(q + 6) + two(q + 8), two(q), two(q + 3)};
    else if (room >= 8 && digits(p - 8, 8))
        *d = (struct date){100 * two(p - 8) + two(p - 6), two(p - 4), two(p - 2)};
    else if (room >= 8 && slashes(p - 8, 2, 5) && digits(p - 8, 2) && digits(p - 5, 2) &&
             digits(p - 2, 2) && (room == 8 || !knee_is_digit(p[-9])))
        *d = p[-3] == '-' ? (struct date){2000 + two(p - 8), two(p - 5), two(p - 2)}
                          : (struct date){2000 + two(p - 2), two(p - 8), two(p - 5)};
    else if (room >= 5 && p[-3] == '/' && digits(p - 5, 2) && digits(p - 2, 2))
        *d = (struct date){1970, two(p - 5), two(p - 2)};
    else if (room >= 5 && digits(p - 4, 4) && p[-5] && strchr("IWEF", p[-5]))
        *d = (struct date){1970, two(p - 4), two(p - 2)};
    else if (room >= 6 && p[-3] == ' ' && knee_is_digit(p[-1]) &&
             (p[-2] == ' ' || knee_is_digit(p[-2])))
        *d = (struct date){year_after(clock_end, end), month_named(p - 6),
                           (p[-2] == ' ' ? 0 : 10 * (p[-2] - '0')) + (p[-1] - '0')};
    else
        return false;
    return d->month >= 1 && d->month <= 12 && d->day >= 1 && d->day <= 31 && d->year >= 1970;
}

#define STAMP_REACH 192

/* Every "15:27:02" of the line's beginning is looked at: is there a date before it? Of several the
 * first with a part of a second. */
double knee_train_stamp(struct knee_slice line)
{
    double whole = NAN;
    const char *begin = line.at, *all = begin + line.length;
    const char *end = line.length < STAMP_REACH ? all : begin + STAMP_REACH;
    for (const char *p = begin; p < end && (p = memchr(p, ':', (size_t)(end - p))); p++) {
        if (p - begin < 7 || end - p < 6 || p[3] != ':' || !digits(p - 2, 2) || !digits(p + 1, 2) ||
            !digits(p + 4, 2) || (p[-3] != ' ' && p[-3] != 'T'))
            continue;
        struct date d;
        const char *rest = p + 6;
        double part = 0, unit = 0.1;
        if (!date_before(begin, p - 3, rest, all, &d))
            continue;
        if (rest < all && (*rest == '.' || *rest == ','))
            for (rest++; rest < all && knee_is_digit(*rest); rest++, unit /= 10)
                part += unit * (*rest - '0');
        double stamp = 86400 * days_of(d.year, d.month, d.day) + 3600 * two(p - 2) +
                       60 * two(p + 1) + two(p + 4) + part;
        if (unit < 0.1)
            return stamp;
        whole = isnan(whole) ? stamp : whole;
    }
    return whole;
}

double knee_train_time_of_day(struct knee_slice line)
{
    const char *p = line.at, *end = p + line.length;
    double part = 0, unit = 0.1;
    p += p < end && (*p == '[' || *p == '(');
    if (end - p < 8 || !digits(p, 2) || p[2] != ':' || !digits(p + 3, 2) || p[5] != ':' ||
        !digits(p + 6, 2) || two(p) >= 24)
        return NAN;
    double whole = 3600 * two(p) + 60 * two(p + 3) + two(p + 6);
    p += 8;
    if (p < end && (*p == '.' || *p == ','))
        for (p++; p < end && knee_is_digit(*p); p++, unit /= 10)
            part += unit * (*p - '0');
    return whole + part;
}

/* "5h 59m 14s" */
static double spoken_clock(struct knee_slice text)
{
    const char *p = text.at, *end = p + text.length;
    double sum = 0;
    while (p < end) {
        double value = knee_train_number(&p, end);
        double unit = p == end    ? NAN
                      : *p == 'd' ? 86400
                      : *p == 'h' ? 3600
                      : *p == 'm' ? 60
                      : *p == 's' ? 1
                                  : NAN;
        sum += value * unit;
        for (p += p < end; p < end && blank(*p);)
            p++;
        if (isnan(sum))
            return NAN;
    }
    return text.length ? sum : NAN;
}

double knee_train_clock(struct knee_slice text)
{
    const char *p = text.at, *end = p + text.length;
    double sum = 0, days = 0;
    int parts = 0;
    if (text.length && strchr("dhms", text.at[text.length - 1]))
        return spoken_clock(text);
    while (p < end) {
        if (!knee_is_digit(*p))
            return NAN;
        double value = knee_train_number(&p, end);
        if (end - p >= 4 && memcmp(p, " day", 4) == 0) {
            days = value;
            while (p < end && !knee_is_digit(*p))
                p++;
            continue;
        }
        sum = 60 * sum + value;
        parts++;
        if (p == end)
            break;
        if (*p++ != ':')
            return NAN;
    }
    return parts >= 2 && parts <= 3 ? 86400 * days + sum : NAN;
}

/* Primus: "[20250620 15:31:09][rank-7/8][INFO ]"; icefall: "INFO [train.py:1011] (0/8) Epoch" */
static bool rank_of(struct knee_slice head, int *rank, double *of)
{
    static const char *const before[] = {"[rank-", "] ("};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        size_t at = knee_slice_find(head, before[i]);
        const char *p = head.at + at + (at < head.length ? strlen(before[i]) : 0);
        const char *end = head.at + head.length;
        double own = p < end && knee_is_digit(*p) ? knee_train_number(&p, end) : NAN;
        if (!(own >= 0 && own < 1e6) || p >= end || *p++ != '/')
            continue;
        double all = knee_train_number(&p, end);
        if (!(all > own && all <= 1e6) || p == end || (*p != ']' && *p != ')'))
            continue;
        *rank = (int)own;
        *of = all;
        return true;
    }
    return false;
}

/* [rank3]: [default3]: [1,3]<stdout>: 3: */
int knee_train_rank(struct knee_slice line, double *of)
{
    static const char *const before[] = {"[rank", "[default", "[1,"};
    struct knee_slice head = {line.at, line.length < 96 ? line.length : 96};
    int said;
    *of = NAN;
    if (rank_of(head, &said, of))
        return said;
    head.length = head.length < 48 ? head.length : 48;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        size_t at = knee_slice_find(head, before[i]);
        if (at == head.length)
            continue;
        const char *p = head.at + at + strlen(before[i]), *end = head.at + head.length;
        double rank = p < end && knee_is_digit(*p) ? knee_train_number(&p, end) : NAN;
        if (rank >= 0 && rank < 1e6 && p < end && *p == ']')
            return (int)rank;
    }
    const char *p = head.at, *end = head.at + head.length;
    double rank = p < end && knee_is_digit(*p) ? knee_train_number(&p, end) : NAN;
    bool label = rank >= 0 && rank < 1e6 && end - p >= 2 && p[0] == ':' && p[1] == ' ';
    return label ? (int)rank : -1;
}
