/* SPDX-License-Identifier: MIT */
/*
 * What launchers and loggers put before a line, and whose line it is. Prefixes come in any order
 * and several at once: "0: [default0]:[rank0]: ...", "[1,3]<stderr>:", "node7: ", "(node7)",
 * "18:11:06.680 ", "2026-05-19 10:10:29,701 ", "(RayWorker pid=12, ip=10.0.0.1) ",
 * "[pod/train-0/main] ", "train-1  | ", "Nov 16 12:00:00 node7 python[12]: ". "[Rank 3]" of older
 * PyTorch is the job's rank where nothing else says one, else the rank inside a group. What stands
 * before "[rank3]:" and is none of these is passed over.
 */
#include "base/fold.h"
#include "read/hang/job_record.h"
#include "read/trace/trace_json.h"

#include <string.h>

/* A decimal number at the beginning; its digits, 0: none. */
static size_t number_at(struct knee_slice text, int64_t *value)
{
    size_t i = 0;
    *value = 0;
    for (; i < text.length && i < 15 && knee_is_digit(text.at[i]); i++)
        *value = *value * 10 + (text.at[i] - '0');
    return i;
}

/* "MARKERnumberEND": how long it is, 0: not that. Letters of the marker may be of either case. */
static size_t marked_number(struct knee_slice text, const char *marker, char end, int64_t *value)
{
    size_t i = 0, digits;
    for (; marker[i]; i++)
        if (i >= text.length || knee_lower(text.at[i]) != marker[i])
            return 0;
    digits = number_at(knee_slice_from(text, i), value);
    i += digits;
    return digits && digits < 7 && i < text.length && text.at[i] == end ? i + 1 : 0;
}

/* ---- Stamps ---- */

static bool two_digits(const char *at, int *value)
{
    if (!knee_is_digit(at[0]) || !knee_is_digit(at[1]))
        return false;
    *value = (at[0] - '0') * 10 + (at[1] - '0');
    return true;
}

/* "12:00:20.696577084" from `day` on; how long it is. */
static size_t clock_at(struct knee_slice text, double day, double *time_s)
{
    int h, m, s;
    double part = 0, unit = 0.1;
    size_t i = 8;
    if (text.length < 8 || !two_digits(text.at, &h) || text.at[2] != ':' ||
        !two_digits(text.at + 3, &m) || text.at[5] != ':' || !two_digits(text.at + 6, &s))
        return 0;
    if (i + 1 < text.length && (text.at[i] == '.' || text.at[i] == ',') &&
        knee_is_digit(text.at[i + 1]))
        for (i++; i < text.length && knee_is_digit(text.at[i]); i++, unit /= 10)
            part += unit * (text.at[i] - '0');
    *time_s = day * 86400 + h * 3600 + m * 60 + s + part;
    return i;
}

/* Months of 31 days: stamps are compared, not shown. */
static double day_of(int month, int day)
{
    return 31.0 * month + day;
}

/* "2026-11-16 12:00:19", "2026-11-16T12:00:19.123" */
static size_t date_at(struct knee_slice text, double *time_s)
{
    int month, day;
    size_t clock;
    if (text.length < 19 || text.at[4] != '-' || text.at[7] != '-' ||
        !two_digits(text.at + 5, &month) || !two_digits(text.at + 8, &day) ||
        !knee_is_digit(text.at[0]) || !knee_is_digit(text.at[3]))
        return 0;
    clock = clock_at(knee_slice_from(text, 11), day_of(month, day), time_s);
    return clock ? 11 + clock : 0;
}

/* glog's "E1116 12:00:20.69": the month has one or two digits, the day two. */
static size_t glog_at(struct knee_slice text, double *time_s)
{
    int64_t date;
    size_t digits = number_at(knee_slice_from(text, 1), &date), clock;
    if (text.length < 14 || !strchr("IWEF", text.at[0]) || digits < 3 || digits > 4 ||
        text.at[1 + digits] != ' ')
        return 0;
    clock = clock_at(knee_slice_from(text, digits + 2),
                     day_of((int)(date / 100), (int)(date % 100)), time_s);
    return clock ? digits + 2 + clock : 0;
}

/* syslog's "Nov 16 12:00:00" */
static size_t syslog_at(struct knee_slice text, double *time_s)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int day;
    if (text.length < 16 || text.at[3] != ' ' || text.at[6] != ' ' || text.at[15] != ' ')
        return 0;
    char padded[2] = {text.at[4] == ' ' ? '0' : text.at[4], text.at[5]};
    for (int month = 0; month < 12; month++)
        if (memcmp(text.at, months + 3 * month, 3) == 0 && two_digits(padded, &day))
            return clock_at(knee_slice_from(text, 7), day_of(month + 1, day), time_s) ? 15 : 0;
    return 0;
}

static size_t stamp_at(struct knee_slice text, double *time_s)
{
    struct knee_slice inner = knee_slice_from(text, 1);
    double clock_s;
    size_t length;
    if (knee_slice_starts(text, "[")) {
        if ((length = date_at(inner, time_s)) || (length = glog_at(inner, time_s)))
            return length + 1;
        return 0;
    }
    if ((length = date_at(text, time_s)) || (length = glog_at(text, time_s)) ||
        (length = syslog_at(text, time_s)))
        return length;
    return clock_at(text, 0, &clock_s); /* a clock without a date orders nothing */
}

/* ---- Prefixes ---- */

/* Takes `length` bytes off, and what separates prefixes. */
static void cut(struct knee_slice *text, size_t length)
{
    *text = knee_slice_from(*text, length);
    while (text->length && (text->at[0] == ' ' || text->at[0] == '\t'))
        *text = knee_slice_from(*text, 1);
}

/* "node-07: ", "10.3.35.83: ", "node-07:4711:4712 [3] ": a name with a digit or a dot. */
static size_t host_at(struct knee_slice text, char *host)
{
    size_t i = 0, dots = 0;
    bool digit = false;
    for (;
         i < text.length && i < 63 && (knee_is_word_char(text.at[i]) || strchr("-._", text.at[i]));
         i++) {
        digit = digit || knee_is_digit(text.at[i]);
        dots += text.at[i] == '.';
    }
    if (i < 2 || !digit || (!knee_is_letter(text.at[0]) && dots != 3) || i + 1 >= text.length ||
        text.at[i] != ':' || text.at[i + 1] != ' ' || knee_job_is_exception(text))
        return 0; /* "sqlite3.OperationalError: " is not a host */
    knee_slice_copy((struct knee_slice){text.at, i}, host, 64);
    return i + 1;
}

/* "[default3]:", "[trainer3]:": a role of torchrun and the rank in it. */
static size_t role_at(struct knee_slice text, int64_t *value)
{
    size_t i = 1, digits;
    while (i < text.length && i < 32 && (knee_is_letter(text.at[i]) || text.at[i] == '_'))
        i++;
    if (!knee_slice_starts(text, "[") || i < 2)
        return 0;
    digits = number_at(knee_slice_from(text, i), value);
    i += digits;
    return digits && digits < 7 && knee_slice_starts(knee_slice_from(text, i), "]:") ? i + 1 : 0;
}

/* "[1,3]<stderr>:" */
static size_t mpirun_at(struct knee_slice text, int64_t *value)
{
    int64_t job;
    size_t length = marked_number(text, "[", ',', &job), more;
    if (!length || !(more = marked_number(knee_slice_from(text, length), "", ']', value)))
        return 0;
    length += more;
    struct knee_slice rest = knee_slice_from(text, length);
    return knee_slice_starts(rest, "<std") ? length + knee_slice_find(rest, ">") + 1 : length;
}

/* "3: ", "3:[" */
static size_t label_at(struct knee_slice text, int64_t *value)
{
    size_t length = marked_number(text, "", ':', value);
    return length && length < text.length && strchr(" [:", text.at[length]) ? length : 0;
}

static bool take_rank(struct knee_job_line *line)
{
    int64_t value;
    size_t length = marked_number(line->text, "[rank", ']', &value);
    static const char *const others[] = {"[rank ", "[rank: ", "[rank="};
    for (size_t i = 0; i < 3 && !length && !line->named; i++)
        length = marked_number(line->text, others[i], ']', &value);
    if (length) {
        line->rank = value;
        line->named = true;
    } else if ((length = role_at(line->text, &value)) || (length = label_at(line->text, &value)) ||
               (length = mpirun_at(line->text, &value))) {
        line->rank = line->rank >= 0 ? line->rank : value;
    } else {
        return false;
    }
    if (length < line->text.length && line->text.at[length] == ':')
        length++;
    cut(&line->text, length);
    return true;
}

static void take_stamp(struct knee_job_line *line, size_t length, double time_s)
{
    if (time_s >= 0) {
        line->front_s = line->time_s;
        line->time_s = time_s;
        char first = line->text.length > 1 ? line->text.at[line->text.at[0] == '['] : ' ';
        line->level = strchr("IWEF", first) ? first : 0;
    }
    if (knee_slice_starts(line->text, "[")) /* glog: the place follows, to the bracket */
        length = knee_slice_find(line->text, "]") + 1;
    cut(&line->text, length);
}

/* "train-1  | " of docker compose; 0: not that. */
static size_t compose_at(struct knee_slice text)
{
    size_t i = 0;
    while (i < text.length && i < 63 &&
           (knee_is_word_char(text.at[i]) || strchr("-_.", text.at[i])))
        i++;
    if (i < 2 || !knee_is_digit(text.at[i - 1]))
        return 0;
    while (i < text.length && text.at[i] == ' ')
        i++;
    return i + 1 < text.length && text.at[i] == '|' && text.at[i + 1] == ' ' ? i + 1 : 0;
}

/* "python[12]: " of the journal; 0: not that. */
static size_t journal_at(struct knee_slice text)
{
    int64_t value;
    size_t i = 0, more;
    while (i < text.length && i < 63 && text.at[i] != ' ' && text.at[i] != '[')
        i++;
    more = marked_number(knee_slice_from(text, i), "[", ']', &value);
    return i && more && knee_slice_starts(knee_slice_from(text, i + more), ": ") ? i + more + 1 : 0;
}

/* syslog: the host and the program come behind the stamp, without a colon between them. */
static size_t syslog_host(struct knee_slice text, char *host)
{
    size_t space = knee_slice_find(text, " ");
    if (space == 0 || space > 63 || !journal_at(knee_slice_from(text, space + 1)))
        return 0;
    knee_slice_copy((struct knee_slice){text.at, space}, host, 64);
    return space;
}

/* Prefixes that say which process it is, and not which rank. */
static size_t stream_at(struct knee_job_line *line)
{
    struct knee_slice text = line->text, piece = knee_slice_from(text, 5), pod;
    size_t length;
    if (knee_slice_starts(text, "(") && knee_slice_has(text, "pid=") &&
        (length = knee_slice_find(text, ")")) < text.length) {
        length++; /* Ray */
    } else if (knee_slice_starts(text, "[pod/") &&
               (length = knee_slice_find(text, "]")) < text.length) {
        if (knee_slice_until(&piece, '/', &pod) && pod.length < length)
            knee_slice_copy(pod, line->host, sizeof line->host);
        length++;
    } else if (!(length = compose_at(text)) && !(length = journal_at(text))) {
        return 0;
    }
    line->stream = (struct knee_slice){text.at, length};
    return length;
}

static void take_prefixes(struct knee_job_line *line)
{
    int64_t value;
    for (int i = 0; i < 8; i++) {
        double time_s = KNEE_JOB_UNTIMED_S;
        size_t length;
        if (take_rank(line))
            continue;
        if (line->named && (length = marked_number(line->text, "[rank ", ']', &value))) {
            line->group_rank = value;
            cut(&line->text, length);
        } else if ((length = stamp_at(line->text, &time_s))) {
            take_stamp(line, length, time_s);
        } else if ((length = stream_at(line)) ||
                   (!line->host[0] && ((length = host_at(line->text, line->host)) ||
                                       (length = syslog_host(line->text, line->host))))) {
            cut(&line->text, length);
        } else if ((length = marked_number(line->text, "[", ']', &value))) {
            cut(&line->text, length); /* "[80746] ": a number of the logger's own */
        } else if (line->time_s >= 0 && (knee_slice_starts(line->text, "stderr F ") ||
                                         knee_slice_starts(line->text, "stdout F "))) {
            cut(&line->text, 9); /* Kubernetes' log files */
        } else if (knee_slice_starts(line->text, "Z ")) {
            cut(&line->text, 2); /* the zone of a stamp */
        } else if (knee_slice_starts(line->text, "[E ProcessGroup") ||
                   knee_slice_starts(line->text, "[F ProcessGroup")) {
            cut(&line->text, knee_slice_find(line->text, "]") + 1);
        } else {
            break;
        }
    }
}

/* Where "[rank3]:" stands at or behind `from`; text.length: nowhere. */
static size_t rank_mark(struct knee_slice text, size_t from)
{
    int64_t rank;
    for (size_t at; from < text.length; from = at + 5) {
        struct knee_slice rest = knee_slice_from(text, from);
        at = from + knee_slice_find(rest, "[rank");
        size_t length = marked_number(knee_slice_from(text, at), "[rank", ']', &rank);
        if (length && knee_slice_starts(knee_slice_from(text, at + length), ":"))
            return at;
    }
    return text.length;
}

size_t knee_job_line_end(struct knee_slice text)
{
    size_t at = rank_mark(text, 0);
    while (at < text.length) {
        at = rank_mark(text, at + 5);
        size_t colon = at + knee_slice_find(knee_slice_from(text, at), ":");
        if (knee_slice_starts(knee_slice_from(text, colon), ":["))
            break;
    }
    return at;
}

static size_t indent_of(struct knee_slice text, const char *at)
{
    size_t count = 0;
    while (at > text.at && at[-1] == ' ') {
        count++;
        at--;
    }
    return count;
}

struct knee_job_line knee_job_line_of(struct knee_slice text)
{
    struct knee_job_line line = {.text = knee_slice_trim(text),
                                 .rank = KNEE_JOB_NO_RANK,
                                 .group_rank = -1,
                                 .stream = {"", 0},
                                 .time_s = KNEE_JOB_UNTIMED_S,
                                 .front_s = KNEE_JOB_UNTIMED_S};
    take_prefixes(&line);
    line.indent = indent_of(text, line.text.at);
    if (line.named)
        return line;
    /* behind a prefix that is not known, or behind a bar without an end of line */
    size_t at = rank_mark(line.text, 0);
    if (at >= line.text.length)
        at = knee_slice_find(line.text, "[E ProcessGroup");
    if (at > 0 && at < line.text.length) {
        line.text = knee_slice_from(line.text, at);
        take_prefixes(&line);
    }
    return line;
}

/* A folder or file that is called by digits alone: torchrun's "attempt_0/3/stderr.log". */
static int64_t rank_of_folder(const char *name)
{
    const char *slash = strrchr(name, '/'), *at = slash;
    int64_t value;
    if (!slash || !strstr(name, "attempt_"))
        return KNEE_JOB_NO_RANK;
    while (at > name && at[-1] != '/')
        at--;
    struct knee_slice folder = {at, (size_t)(slash - at)};
    size_t digits = number_at(folder, &value);
    return digits && digits == folder.length ? value : KNEE_JOB_NO_RANK;
}

int64_t knee_job_rank_of_name(const char *name)
{
    int64_t rank = knee_rank_from_name(name);
    return rank >= 0 && rank < KNEE_JOB_RANKS ? rank : rank_of_folder(name);
}
