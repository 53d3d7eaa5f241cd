/* SPDX-License-Identifier: MIT */
/*
 * nccl-tests' JSON (-J): "results": [{"size", "out_of_place": {"time", "alg_bw", ...}, ...}], times
 * in us; and knee bench's (schema knee.bench/1): "rows": [{"collective", "ranks", "nodes", "bytes",
 * "time_s"}]. Scalars come with their paths; a row ends where the next one begins.
 */
#include "read/log.h"
#include "read/scalars.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct taking {
    struct knee_log_reader *r;
    long row; /* index of the element being taken; -1: none */
    double size, time_s[2], algbw[2], busbw[2], wrong[2], ranks, nodes;
    enum knee_op op;
    bool any_op;
    size_t line;
};

static void reset(struct taking *t)
{
    t->size = t->ranks = t->nodes = NAN;
    for (int i = 0; i < 2; i++)
        t->time_s[i] = t->algbw[i] = t->busbw[i] = t->wrong[i] = NAN;
    t->any_op = false;
}

static const char *reason_against(const struct taking *t)
{
    if (isnan(t->size))
        return "no size";
    if (!(t->size > 0))
        return "0 bytes";
    if (isnan(t->time_s[0]) && isnan(t->time_s[1]))
        return "no time";
    for (int i = 0; i < 2; i++) {
        if (t->time_s[i] <= 0)
            return "the time is 0 or less";
        if (t->wrong[i] > 0)
            return "the run had wrong results";
        double algbw = t->size / t->time_s[i] * 1e-9;
        if (fabs(t->algbw[i] - algbw) > 0.011 + 0.02 * algbw)
            return "algbw is not size / time";
    }
    if (t->any_op && t->op == KNEE_OP_UNKNOWN)
        return "the collective is not known";
    return NULL;
}

/* knee bench: a change of collective, ranks or nodes is another table. */
static void begin_if_other(struct taking *t)
{
    struct knee_log *log = &t->r->log;
    bool other = (t->any_op && log->op != t->op) || (!isnan(t->ranks) && log->ranks != t->ranks) ||
                 (!isnan(t->nodes) && log->nodes != t->nodes);
    if (!other)
        return;
    knee_log_end(t->r, true);
    if (t->any_op) {
        log->op = t->op;
        log->op_known = KNEE_SAID;
    }
    if (t->ranks >= 2) {
        log->ranks = t->ranks;
        log->ranks_known = KNEE_SAID;
    }
    if (t->nodes >= 1) {
        log->nodes = t->nodes;
        log->nodes_known = KNEE_SAID;
    }
}

static void end_row(struct taking *t)
{
    if (t->row < 0)
        return;
    const char *reason = reason_against(t);
    if (reason) {
        knee_log_refuse(t->r, t->line, knee_slice_of("an element of results or rows"), reason);
    } else {
        begin_if_other(t);
        int best = t->time_s[1] < t->time_s[0] || isnan(t->time_s[0]);
        struct knee_sample sample = {t->size, t->time_s[best], t->time_s[0], t->time_s[1], t->line};
        double ratio = t->algbw[best] > 0.5 ? t->busbw[best] / t->algbw[best] : NAN;
        knee_log_add(t->r, &sample, ratio, 0.005 * (1 + ratio) / t->algbw[best]);
    }
    t->row = -1;
    reset(t);
}

/* The part of a path after "name[index].", with the index; NULL: another path. */
static const char *member(const char *path, const char *name, long *index)
{
    size_t length = strlen(name);
    char *end = NULL;
    if (strncmp(path, name, length) != 0 || path[length] != '[')
        return NULL;
    long long value = strtoll(path + length + 1, &end, 10);
    if (!end || end[0] != ']' || end[1] != '.')
        return NULL;
    *index = (long)value;
    return end + 2;
}

static const struct {
    const char *key;
    size_t offset;
    double scale;
} row_numbers[] = {
    {"size", offsetof(struct taking, size), 1},
    {"bytes", offsetof(struct taking, size), 1},
    {"ranks", offsetof(struct taking, ranks), 1},
    {"nodes", offsetof(struct taking, nodes), 1},
    {"time_s", offsetof(struct taking, time_s[0]), 1},
    {"time_us", offsetof(struct taking, time_s[0]), 1e-6},
    {"out_of_place.time", offsetof(struct taking, time_s[0]), 1e-6},
    {"out_of_place.cpu_time", offsetof(struct taking, time_s[0]), 1e-6},
    {"out_of_place.alg_bw", offsetof(struct taking, algbw[0]), 1},
    {"out_of_place.bus_bw", offsetof(struct taking, busbw[0]), 1},
    {"out_of_place.nwrong", offsetof(struct taking, wrong[0]), 1},
    {"in_place.time", offsetof(struct taking, time_s[1]), 1e-6},
    {"in_place.cpu_time", offsetof(struct taking, time_s[1]), 1e-6},
    {"in_place.alg_bw", offsetof(struct taking, algbw[1]), 1},
    {"in_place.bus_bw", offsetof(struct taking, busbw[1]), 1},
    {"in_place.nwrong", offsetof(struct taking, wrong[1]), 1},
};

static void take_row_member(struct taking *t, const char *key, const struct knee_scalar *s)
{
    double number;
    if (strcmp(key, "collective") == 0) {
        t->op = knee_op_of(s->value, strlen(s->value));
        t->any_op = true;
    }
    if (!knee_slice_number(knee_slice_of(s->value), &number))
        return;
    for (size_t i = 0; i < sizeof row_numbers / sizeof *row_numbers; i++)
        if (strcmp(key, row_numbers[i].key) == 0)
            *(double *)((char *)t + row_numbers[i].offset) = number * row_numbers[i].scale;
}

static void take_device(struct knee_log_reader *r, const char *key, const struct knee_scalar *s)
{
    double number;
    struct knee_run_facts *run = &r->run;
    bool numeric = knee_slice_number(knee_slice_of(s->value), &number);
    if (strcmp(key, "rank") == 0 && numeric) {
        run->max_rank = fmax(isnan(run->max_rank) ? 0 : run->max_rank, number);
        run->listed++;
    } else if (strcmp(key, "device") == 0 && numeric) {
        run->max_device = fmax(isnan(run->max_device) ? 0 : run->max_device, number);
    } else if (strcmp(key, "hostname") == 0) {
        knee_run_host(&run->hosts, run->host, knee_slice_of(s->value));
    } else if (strcmp(key, "device_info") == 0 && !r->log.gpu[0]) {
        knee_slice_copy(knee_slice_of(s->value), r->log.gpu, sizeof r->log.gpu);
    }
}

static void take(void *ctx, const struct knee_scalar *s)
{
    struct taking *t = ctx;
    struct knee_log_reader *r = t->r;
    long index = 0;
    double number;
    const char *key = member(s->path, "results", &index);
    if (!key)
        key = member(s->path, "rows", &index);
    if (key) {
        if (index != t->row)
            end_row(t);
        t->row = index;
        t->line = s->line;
        take_row_member(t, key, s);
    } else if ((key = member(s->path, "config.devices", &index)) ||
               (key = member(s->path, "devices", &index))) {
        take_device(r, key, s);
    } else if (strncmp(s->path, "args[", 5) == 0) {
        knee_log_launcher_line(r, knee_slice_of(s->value));
    } else if (strcmp(s->path, "nccl_version") == 0) {
        knee_slice_copy(knee_slice_of(s->value), r->log.library, sizeof r->log.library);
    } else if (strcmp(s->path, "config.ngpus") == 0 &&
               knee_slice_number(knee_slice_of(s->value), &number)) {
        r->log.gpus_per_process = number;
    }
}

static bool sniff(struct knee_slice text)
{
    text = knee_slice_trim(text);
    while (text.length && (text.at[0] == '\n' || text.at[0] == ' ' || text.at[0] == '\r'))
        text = knee_slice_from(text, 1);
    return text.length && text.at[0] == '{' &&
           (knee_slice_has(text, "\"results\"") || knee_slice_has(text, "\"rows\""));
}

static void read_json(struct knee_log_reader *r)
{
    struct taking t = {.r = r, .row = -1};
    size_t line = 0;
    reset(&t);
    const char *wrong = knee_json_scan(r->text, take, &t, &line);
    if (wrong)
        t.row = -1; /* half of an element is none */
    end_row(&t);
    r->line = line;
    if (wrong)
        knee_log_refuse(r, line, knee_slice_of(wrong), "the JSON is damaged here");
}

const struct knee_log_format knee_log_json = {"JSON", sniff, read_json};
