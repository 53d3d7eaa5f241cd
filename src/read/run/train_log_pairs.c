/* SPDX-License-Identifier: MIT */
/*
 * Names and numbers of a line. Frameworks write "name: 1.5 | name: 2", "name=1.5, name=2",
 * "name 1.5 | name 2", {"name": 1.5} and mixtures of them; what they have in common is that a name
 * stands before its number and that |, comma, brackets or the number before end a name. So one walk
 * serves all: wherever a number stands after something that is no letter, what is before it, back
 * to the last such end, is its name.
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

/* "e-05" after the digits; 0 and nothing taken when it is no exponent. */
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
        if (gap)
            pair->name[used++] = '_';
        gap = false;
        pair->name[used++] = c;
    }
    pair->name[used] = '\0';
    pair->length = used;
}

/* Seconds that a unit is; NaN: it is no unit of time. */
static double unit_seconds(const char *word, size_t length)
{
    static const struct {
        const char *name;
        size_t length;
        double seconds;
    } units[] = {{"s", 1, 1},       {"sec", 3, 1},   {"secs", 4, 1},
                 {"seconds", 7, 1}, {"ms", 2, 1e-3}, {"us", 2, 1e-6}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].length == length && memcmp(units[i].name, word, length) == 0)
            return units[i].seconds;
    return NAN;
}

/* Units that stand apart from their number, so that they are not taken for the next name. */
static const char *skip_unit(const char *p, const char *end, double *unit_s)
{
    static const struct {
        const char *name;
        size_t length;
    } units[] = {{"seq/s", 5},          {"sec", 3},          {"ms", 2},          {"s", 1},
                 {"sequences/sec", 13}, {"sequences/s", 11}, {"step/s", 6},      {"words/sec", 9},
                 {"tokens/s", 8},       {"samples/s", 9},    {"tokens/sec", 10}, {"GB", 2},
                 {"img/s", 5},          {"None", 4}};
    const char *word = p, *stop;
    while (word < end && blank(*word))
        word++;
    if (word == end || !letter(*word))
        return p;
    for (stop = word; stop < end && !blank(*stop) && !ends_name(*stop);)
        stop++;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].length == (size_t)(stop - word) &&
            memcmp(units[i].name, word, units[i].length) == 0) {
            *unit_s = unit_seconds(word, (size_t)(stop - word));
            return stop;
        }
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

/* What belongs to a number: its unit, and the total of "10/ 500". */
static const char *after_number(const char *p, const char *end, bool suffixes,
                                struct train_pair *pair)
{
    pair->unit_s = NAN;
    if (suffixes)
        pair->value *= suffix_scale(p, end);
    const char *unit = p;
    while (p < end && (letter(*p) || *p == '%'))
        p++;
    if (p > unit)
        pair->unit_s = unit_seconds(unit, (size_t)(p - unit));
    const char *slash = p;
    while (slash < end && blank(*slash))
        slash++;
    if (slash < end && *slash == '/') {
        const char *total = slash + 1;
        while (total < end && blank(*total))
            total++;
        if (total < end && knee_is_digit(*total)) {
            knee_train_number(&total, end);
            return total;
        }
    }
    return skip_unit(p, end, &pair->unit_s);
}

/* ".4f" of a program's listing at the head of its log, "{loss:.4f}", is no number. */
static bool print_format(const char *p, const char *begin)
{
    return *p == '.' && p > begin && p[-1] == ':';
}

double knee_train_value(const struct train_key *key, const struct train_pair *pair)
{
    bool time = key->what == TRAIN_SECONDS || key->what == TRAIN_ELAPSED ||
                key->what == TRAIN_PART || key->what == TRAIN_INTERVAL;
    return pair->value * (time && !isnan(pair->unit_s) ? pair->unit_s : key->scale);
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
        if (kind(c) == ENDS) {
            name = ++p;
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
            if (out->length == 0)
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

double knee_train_stamp(struct knee_slice line)
{
    static const char shape[] = "0000-00-00 00:00:00";
    size_t length = sizeof shape - 1, reach = line.length < 192 ? line.length : 192;
    for (size_t i = 0; i + length <= reach; i++) {
        const char *p = line.at + i;
        if (p[4] != '-' || p[7] != '-' || p[13] != ':' || p[16] != ':' ||
            (p[10] != ' ' && p[10] != 'T') || !digits(p, 4) || !digits(p + 5, 2) ||
            !digits(p + 8, 2) || !digits(p + 11, 2) || !digits(p + 14, 2) || !digits(p + 17, 2))
            continue;
        double days = days_of(100 * two(p) + two(p + 2), two(p + 5), two(p + 8)), part = 0;
        const char *rest = p + length, *end = line.at + line.length;
        double unit = 0.1;
        if (rest < end && (*rest == '.' || *rest == ','))
            for (rest++; rest < end && knee_is_digit(*rest); rest++, unit /= 10)
                part += unit * (*rest - '0');
        return 86400 * days + 3600 * two(p + 11) + 60 * two(p + 14) + two(p + 17) + part;
    }
    return NAN;
}

double knee_train_clock(struct knee_slice text)
{
    const char *p = text.at, *end = p + text.length;
    double sum = 0, days = 0;
    int parts = 0;
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

/* Primus: [20250620 15:31:09][rank-7/8][INFO ] */
static bool rank_of(struct knee_slice head, int *rank, double *of)
{
    size_t at = knee_slice_find(head, "[rank-");
    const char *p = head.at + at + (at < head.length ? strlen("[rank-") : 0);
    const char *end = head.at + head.length;
    double own = p < end ? knee_train_number(&p, end) : NAN;
    if (!(own >= 0 && own < 1e6) || p >= end || *p++ != '/')
        return false;
    double all = knee_train_number(&p, end);
    if (!(all > own && all <= 1e6))
        return false;
    *rank = (int)own;
    *of = all;
    return true;
}

/* [rank3]: [default3]: [1,3]<stdout>: 3: */
int knee_train_rank(struct knee_slice line, double *of)
{
    static const char *const before[] = {"[rank", "[default", "[1,"};
    struct knee_slice head = {line.at, line.length < 48 ? line.length : 48};
    int said;
    *of = NAN;
    if (rank_of(head, &said, of))
        return said;
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
