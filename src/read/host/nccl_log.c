/* SPDX-License-Identifier: MIT */
/*
 * NCCL's and RCCL's lines (NCCL_DEBUG=INFO or WARN), alone or inside a training log: which network,
 * which devices, what the channels go over, which settings; and the messages of
 * data/nccl_log_patterns.csv. What a word means is the rules' business. Lines are matched by what
 * NCCL's sources print, in their old and new forms, not by files and line numbers.
 */
#include "read/host/host_read.h"

#include "base/format.h"
#include "base/hash.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX  64
#define SETTINGS_MAX 256 /* different variables; NCCL has as many */

/* The values of one variable. A program may set one between two communicators, so that every rank
 * prints several: only a value that the first process never printed differs between ranks. */
enum { VALUES = 4 };
struct seen_values {
    uint64_t process; /* that printed the variable first */
    size_t count;
    struct {
        struct knee_slice text;
        bool by_first;
    } value[VALUES];
};

struct nccl_log {
    struct knee_facts *facts;
    char host[64];
    size_t lines, devices;
    struct {
        char name[40], layer[8];
        double index;
        bool used;
    } device[DEVICES_MAX];
    double gdr, plain, socket, shm, p2p; /* channels by what they go over */
    double ranks, nodes, local_ranks;
    bool omni_path;
    size_t setting[SETTINGS_MAX], settings; /* rows of the facts */
    struct seen_values *values;             /* beside them; NULL: no memory */
    uint64_t process;                       /* that printed the line: its host and number */
    bool last_error;                        /* the line before announced NCCL's last warning */
};

/* The number behind the last colon of a word, which is cut off. */
static bool cut_number(struct knee_slice *word)
{
    size_t at = word->length;
    double number;
    while (at > 0 && word->at[at - 1] != ':')
        at--;
    if (at < 2 || !knee_slice_number(knee_slice_from(*word, at), &number))
        return false;
    word->length = at - 1;
    return true;
}

/* "host:pid:tid [dev] NCCL INFO": the host; "" when the line has none. Launchers put more in front:
 * "[1,0]<stdout>:host:pid:tid", "[trainer3]:host:pid:tid". */
static void find_host(struct knee_slice line, size_t at, char *out, size_t size)
{
    struct knee_slice before = {line.at, at}, word, best = {line.at, 0};
    while (knee_slice_word(&before, &word)) {
        bool thread = cut_number(&word), process = thread && cut_number(&word);
        if (!process)
            continue;
        size_t start = word.length;
        while (start > 0 && word.at[start - 1] != ':')
            start--;
        best = knee_slice_from(word, start);
    }
    knee_slice_copy(best, out, size);
}

static bool same_text(struct knee_slice a, struct knee_slice b)
{
    return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

static void note_value(const struct nccl_log *log, struct seen_values *seen,
                       struct knee_slice value)
{
    size_t i = 0;
    if (seen->count == 0)
        seen->process = log->process;
    while (i < seen->count && !same_text(seen->value[i].text, value))
        i++;
    if (i == VALUES)
        return;
    if (i == seen->count) {
        seen->value[i].text = value;
        seen->value[i].by_first = false;
        seen->count++;
    }
    seen->value[i].by_first = seen->value[i].by_first || seen->process == log->process;
}

/* Which of the values is `text`; their count: none. */
static size_t printed(const struct seen_values *seen, const char *text)
{
    size_t i = 0;
    while (i < seen->count && !same_text(seen->value[i].text, knee_slice_of(text)))
        i++;
    return i;
}

/* A value that only other processes have; one from a file beside the log is the first. */
static void tell_values(const struct nccl_log *log)
{
    for (size_t k = 0; log->values && k < log->settings; k++) {
        const struct knee_fact *known = &log->facts->rows[log->setting[k]];
        bool from_log = printed(&log->values[k], known->value) < log->values[k].count;
        for (size_t i = 0; i < log->values[k].count; i++) {
            if ((from_log && log->values[k].value[i].by_first) ||
                printed(&log->values[k], known->value) == i)
                continue;
            knee_fact_put(log->facts, known->subject, "env.other", log->values[k].value[i].text);
            break;
        }
    }
}

/* "host:pid" of "host:pid:tid [0] NCCL INFO": what threads of one process have in common. */
static size_t process_end(struct knee_slice line, size_t at)
{
    size_t colons = 0, end = 0;
    for (size_t i = 0; i < at; i++) {
        if (line.at[i] == ' ')
            colons = 0;
        else if (line.at[i] == ':' && ++colons == 2)
            end = i;
    }
    return end ? end : at;
}

/* "NCCL_IB_DISABLE set by environment to 1." and "NCCL_IB_HCA set to mlx5_0,mlx5_1". */
static void setting(struct nccl_log *log, struct knee_slice line)
{
    static const char *const forms[] = {" set by environment to ", " set by env to ", " set to "};
    for (size_t i = 0; i < 3; i++) {
        size_t at = knee_slice_find(line, forms[i]), start = at;
        while (start > 0 && at < line.length && line.at[start - 1] != ' ')
            start--;
        struct knee_slice name = {line.at + start, at - start};
        if (at == line.length ||
            !(knee_slice_starts(name, "NCCL_") || knee_slice_starts(name, "RCCL_")))
            continue;
        struct knee_slice value = knee_slice_trim(knee_slice_from(line, at + strlen(forms[i])));
        if (value.length > 0 && value.at[value.length - 1] == '.')
            value.length--;
        char text[64];
        knee_slice_copy(name, text, sizeof text);
        for (size_t k = 0; k < log->settings; k++) {
            const struct knee_fact *known = &log->facts->rows[log->setting[k]];
            if (strcmp(known->subject, text) != 0)
                continue;
            if (i == 0 && log->values)
                note_value(log, &log->values[k], value);
            return;
        }
        size_t before = log->facts->count;
        if (log->settings == SETTINGS_MAX) {
            log->facts->dropped++;
            return;
        }
        knee_fact_put(log->facts, text, "env", value);
        if (log->facts->count > before) {
            log->setting[log->settings] = before;
            if (log->values)
                note_value(log, &log->values[log->settings], value);
            log->settings++;
        }
        knee_fact_put(log->facts, text, "env.from", knee_slice_of("the log"));
        return;
    }
}

/* Variables that are known already, from a file beside the log. */
static void known_settings(struct nccl_log *log)
{
    for (size_t i = 0; i < log->facts->count && log->settings < SETTINGS_MAX; i++)
        if (strcmp(log->facts->rows[i].key, "env") == 0)
            log->setting[log->settings++] = i;
}

/* "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>" */
static void devices(struct nccl_log *log, struct knee_slice line)
{
    struct knee_slice rest = knee_slice_from(line, knee_slice_find(line, "Using [") + 6), word;
    double count = 0;
    while (knee_slice_word(&rest, &word) && log->devices < DEVICES_MAX &&
           !knee_slice_is(word, "OOB")) {
        size_t bracket = word.length, slash = knee_slice_find(word, "/");
        double index = NAN;
        while (bracket > 0 && word.at[bracket - 1] != ']')
            bracket--;
        knee_slice_number_after(word, "[", &index);
        struct knee_slice name = {word.at + bracket, slash > bracket ? slash - bracket : 0};
        if (slash == word.length || name.length == 0)
            continue;
        count++;
        struct knee_slice layer = knee_slice_from(word, slash + 1);
        layer.length = knee_slice_find(layer, "/");
        char text[40];
        knee_slice_copy(name, text, sizeof text);
        size_t known = 0;
        while (known < log->devices && strcmp(log->device[known].name, text) != 0)
            known++;
        if (known < log->devices)
            continue;
        memcpy(log->device[log->devices].name, text, sizeof text);
        knee_slice_copy(layer, log->device[log->devices].layer, 8);
        log->device[log->devices].index = index;
        log->omni_path =
            log->omni_path || knee_slice_starts(name, "hfi1") || knee_slice_starts(name, "opa");
        log->devices++;
    }
    if (log->host[0] && count > 0)
        knee_fact_number(log->facts, log->host, "log.device_count", count);
}

/* "Channel 01/0 : 0[0] -> 5[1] [send] via NET/IBext/1(1)/GDRDMA" */
static void channel(struct nccl_log *log, struct knee_slice line)
{
    size_t at = knee_slice_find(line, "NET/");
    bool arrow = knee_slice_has(line, "-> NET/") || knee_slice_has(line, "via ");
    if (!arrow)
        return;
    if (knee_slice_has(line, "via SHM") || knee_slice_has(line, "via direct shared memory"))
        log->shm++;
    else if (knee_slice_has(line, "via P2P") || knee_slice_has(line, "via NVL"))
        log->p2p++;
    if (at == line.length)
        return;
    if (knee_slice_has(line, "NET/Socket"))
        log->socket++;
    else
        *(knee_slice_has(line, "GDRDMA") ? &log->gdr : &log->plain) += 1;
    struct knee_slice rest = knee_slice_from(line, at + 4), piece;
    double index;
    knee_slice_until(&rest, '/', &piece);
    piece = (struct knee_slice){rest.at, 0};
    while (piece.length < rest.length && rest.at[piece.length] >= '0' &&
           rest.at[piece.length] <= '9')
        piece.length++;
    if (!knee_slice_number(piece, &index))
        return;
    for (size_t i = 0; i < log->devices; i++)
        log->device[i].used = log->device[i].used || log->device[i].index == index;
}

/* "eth0:10.0.0.1<0>", with [0] before it when there are several. */
static void interfaces(struct nccl_log *log, struct knee_slice rest, const char *key)
{
    struct knee_slice word;
    while (knee_slice_word(&rest, &word)) {
        size_t bracket = knee_slice_find(word, "]"), angle = knee_slice_find(word, "<");
        if (bracket < word.length) {
            word = knee_slice_from(word, bracket + 1);
            angle = knee_slice_find(word, "<");
        }
        size_t colon = knee_slice_find(word, ":");
        if (colon == word.length || colon == 0 || angle == word.length || angle < colon)
            continue;
        char name[48];
        knee_slice_copy((struct knee_slice){word.at, colon}, name, sizeof name);
        struct knee_slice address = {word.at + colon + 1, angle - colon - 1};
        if (log->host[0] && strcmp(key, "log.bootstrap") == 0)
            knee_fact_put(log->facts, log->host, "log.address", address);
        knee_fact_count(log->facts, name, key,
                        (struct knee_slice){word.at + colon + 1, angle - colon - 1});
    }
}

static const struct {
    const char *word, *key;
} addresses[] = {
    {"Bootstrap : Using ", "log.bootstrap"},  {"Bootstrap: Using ", "log.bootstrap"},
    {"NET/Socket : Using ", "log.socket"},    {"NET/Socket: Using ", "log.socket"},
    {"NET : Using interface ", "log.socket"},
};

/* Completion errors carry a status of the verbs: 12 is "retry exceeded", 13 "receiver not ready".
 */
static void completion(struct nccl_log *log, struct knee_slice line)
{
    static const char *const before[] = {"with error ", "status=", "status "};
    double status = NAN;
    char key[40];
    for (size_t i = 0; i < 3 && isnan(status); i++)
        knee_slice_number_after(line, before[i], &status);
    if (isnan(status)) { /* since 2.28: "status=IBV_WC_RETRY_EXC_ERR(12)" */
        struct knee_slice named = knee_slice_from(line, knee_slice_find(line, "status="));
        knee_slice_number_after(named, "(", &status);
    }
    if (isnan(status))
        return;
    /* Before it named the peer (2.12), NCCL took row 0 of the GID table unless told otherwise. */
    if (status == 12 && !knee_slice_has(line, "from peer"))
        knee_fact_count(log->facts, log->host, "log.completion_old", line);
    knee_format(key, sizeof key, "log.completion.%.0f", status);
    knee_fact_count(log->facts, log->host, key, line);
}

/* healthMask: fields of two bits; 2 is "no fault", 0 "not supported", 1 a fault. */
static void health(struct nccl_log *log, struct knee_slice line)
{
    char digits[20];
    struct knee_slice rest = knee_slice_from(line, knee_slice_find(line, "healthMask ") + 11), word;
    if (!knee_slice_word(&rest, &word))
        return;
    knee_slice_copy(word, digits, sizeof digits);
    for (unsigned long long mask = strtoull(digits, NULL, 0); mask; mask >>= 2)
        if ((mask & 3) == 1) {
            knee_fact_count(log->facts, log->host, "log.nvls_fabric", line);
            return;
        }
}

static void sizes(struct nccl_log *log, struct knee_slice line)
{
    double number;
    if (knee_slice_number_after(line, "nranks ", &number) ||
        knee_slice_number_after(line, "nRanks ", &number))
        log->ranks = fmax(log->ranks, number);
    if (knee_slice_number_after(line, "nNodes ", &number))
        log->nodes = fmax(log->nodes, number);
    if (knee_slice_number_after(line, "localRanks ", &number))
        log->local_ranks = fmax(log->local_ranks, number);
}

/* "NCCL version 2.28.9+cuda13.0", "RCCL version : 2.21.5-main:a29a210+" */
static void version(struct nccl_log *log, struct knee_slice line)
{
    size_t at = knee_slice_find(line, "CCL version ");
    struct knee_slice rest = knee_slice_from(line, at + 12), word;
    char text[24];
    bool any = at < line.length && knee_slice_word(&rest, &word);
    if (any && knee_slice_is(word, ":"))
        any = knee_slice_word(&rest, &word);
    if (!any || word.at[0] < '1' || word.at[0] > '9')
        return;
    word.length = knee_slice_find(word, "-");
    word.length = knee_slice_find(word, "+");
    while (word.length > 0 && (word.at[word.length - 1] < '0' || word.at[word.length - 1] > '9'))
        word.length--;
    knee_slice_copy(word, text, sizeof text);
    knee_fact_count(log->facts, text, "log.version", line);
    log->lines++;
}

static void network(struct nccl_log *log, struct knee_slice line)
{
    size_t at = knee_slice_find(line, "Using network ");
    size_t skip = 14;
    if (at == line.length) {
        at = knee_slice_find(line, "Using internal Network ");
        skip = 23;
    }
    if (at < line.length) {
        char key[64] = "log.network.";
        knee_slice_copy(knee_slice_trim(knee_slice_from(line, at + skip)), key + 12,
                        sizeof key - 12);
        knee_fact_count(log->facts, log->host, key, line);
    }
}

static void nccl_line(struct nccl_log *log, struct knee_slice line)
{
    log->lines++;
    setting(log, line);
    network(log, line);
    sizes(log, line);
    if (knee_slice_has(line, "NET/IB") && knee_slice_has(line, "Using ["))
        devices(log, line);
    if (knee_slice_has(line, "Channel ") || knee_slice_has(line, "Ring "))
        channel(log, line);
    if (knee_slice_has(line, "Got completion"))
        completion(log, line);
    if (knee_slice_has(line, "healthMask "))
        health(log, line);
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        size_t at = knee_slice_find(line, addresses[i].word);
        if (at < line.length)
            interfaces(log, knee_slice_from(line, at + strlen(addresses[i].word)),
                       addresses[i].key);
    }
}

/* NULL: no such condition. */
static bool has(struct knee_slice line, const char *word)
{
    return !word || knee_slice_has(line, word);
}

static bool trouble(struct nccl_log *log, struct knee_slice line, enum knee_log_where where)
{
    bool any = false;
    for (size_t i = 0; i < knee_nccl_log_patterns_count; i++) {
        const struct knee_nccl_log_pattern *p = &knee_nccl_log_patterns[i];
        if (p->where <= where && has(line, p->word) && has(line, p->also) &&
            !(*p->without && knee_slice_has(line, p->without))) {
            knee_fact_count(log->facts, log->host, p->key, line);
            any = true;
        }
    }
    return any;
}

/* Where the level of a line stands; its length: it is none of NCCL's. Up to 2.3 the word NCCL was
 * not there, only "host:pid:tid [0] INFO". */
static size_t level_at(struct knee_slice line, bool *warns)
{
    static const char *const levels[] = {"NCCL INFO", "NCCL WARN", "NCCL TRACE", " INFO ",
                                         " WARN "};
    char host[64];
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        size_t at = knee_slice_find(line, levels[i]);
        if (at == line.length)
            continue;
        *warns = i == 1 || i == 4;
        find_host(line, at, host, sizeof host);
        if (i < 3 || host[0])
            return at;
    }
    return line.length;
}

/* PyTorch prints NCCL's last warning behind "Last error:", on the same line or on the next one. */
static bool last_error(struct nccl_log *log, struct knee_slice line)
{
    size_t at = knee_slice_find(line, "Last error:");
    bool was = log->last_error;
    log->last_error = at < line.length;
    if (!log->last_error)
        return was;
    return knee_slice_trim(knee_slice_from(line, at + strlen("Last error:"))).length > 0;
}

static void take_line(struct nccl_log *log, struct knee_slice line)
{
    bool is_warning = false;
    size_t at = level_at(line, &is_warning);
    version(log, line);
    if (at < line.length) {
        find_host(line, at, log->host, sizeof log->host);
        log->process = knee_hash(line.at, process_end(line, at));
        if (log->host[0])
            knee_fact_count(log->facts, log->host, "log.host", knee_slice_of("seen"));
        nccl_line(log, line);
    } else if (knee_slice_starts(line, "Channel ")) {
        channel(log, line);
    }
    is_warning = last_error(log, line) || is_warning;
    if (!is_warning && knee_slice_has(line, " via "))
        return; /* most lines of a log list channels, and those never report an error */
    if (trouble(log, line,
                is_warning          ? KNEE_IN_WARN
                : at == line.length ? KNEE_IN_ANY
                                    : KNEE_IN_NCCL))
        log->lines++;
    else if (is_warning && !knee_slice_has(line, "Got completion")) {
        log->lines += at == line.length; /* PyTorch's line is NCCL's too */
        knee_fact_count(log->facts, log->host,
                        knee_slice_has(line, "uda failure") || knee_slice_has(line, "HIP failure")
                            ? "log.cuda_failure"
                            : "log.other_warning",
                        line);
    }
}

static void tell(const struct nccl_log *log)
{
    const struct {
        const char *key;
        double value;
    } counts[] = {{"log.via.gdr", log->gdr},       {"log.via.plain", log->plain},
                  {"log.via.socket", log->socket}, {"log.via.shm", log->shm},
                  {"log.via.p2p", log->p2p},       {"log.ranks", log->ranks},
                  {"log.nodes", log->nodes},       {"log.local_ranks", log->local_ranks}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].value > 0)
            knee_fact_number(log->facts, "", counts[i].key, counts[i].value);
    for (size_t i = 0; i < log->devices; i++) {
        knee_fact_put(log->facts, log->device[i].name, "log.device",
                      knee_slice_of(log->device[i].layer));
        if (log->device[i].used)
            knee_fact_put(log->facts, log->device[i].name, "log.device_used", knee_slice_of("yes"));
    }
    if (log->omni_path)
        knee_fact_put(log->facts, "", "log.omni_path", knee_slice_of("yes"));
    knee_fact_number(log->facts, "", "log.lines", (double)log->lines);
}

/* Words that only NCCL's lines and errors have: without one of them it is some other text. */
static const char *const signs[] = {
    "NCCL INFO",    "NCCL WARN",        "NCCL version",    "NCCL error",
    "NCCL failure", "ProcessGroupNCCL", "ncclSystemError", "ncclInternalError",
    "ncclInvalid",  "ncclUnhandled",    "ncclRemoteError", "P2P is disabled between",
    "NCCL_",        "NET/OFI"};

/* "host:12:34 [0] include/socket.h:344 WARN ..." of releases up to 2.3. */
static bool is_old_line(struct knee_slice line)
{
    bool warns;
    return knee_slice_has(line, " [") && level_at(line, &warns) < line.length;
}

bool knee_read_nccl_log(struct knee_facts *facts, struct knee_slice text)
{
    struct nccl_log log = {.facts = facts};
    struct knee_slice line;
    bool likely = false;
    for (size_t i = 0; !likely && i < sizeof signs / sizeof *signs; i++)
        likely = knee_slice_has(text, signs[i]);
    for (struct knee_slice rest = text; !likely && knee_slice_line(&rest, &line);)
        likely = is_old_line(line);
    if (!likely)
        return false;
    log.values = knee_zeroed(facts->alloc, SETTINGS_MAX * sizeof *log.values);
    facts->no_memory = facts->no_memory || !log.values;
    known_settings(&log);
    while (knee_slice_line(&text, &line))
        take_line(&log, line);
    tell_values(&log);
    knee_resize(facts->alloc, log.values, 0);
    if (log.lines > 0)
        tell(&log);
    return log.lines > 0;
}
