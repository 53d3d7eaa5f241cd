/* SPDX-License-Identifier: MIT */
/*
 * nccl-tests' JSON (-J): "results": [{"size", "out_of_place": {"time", "alg_bw", ...}, ...}], times
 * in us; and knee bench's (schema knee.bench/1): "rows": [{"collective", "ranks", "nodes", "bytes",
 * "time_s"}], with "algorithm", "hops" and "share" for its own algorithms. Values come with their
 * paths; a row ends where the next one begins.
 */
#include "base/json_values.h"
#include "read/log/log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct taking {
    struct knee_log_reader *r;
    size_t row; /* element being taken; 0: none */
    double size, time_s[2], algbw[2], busbw[2], wrong[2], ranks, nodes;
    double hops, share, quickest_s;
    char algorithm[24];
    enum knee_op op;
    bool any_op;
    size_t line;
};

static void reset(struct taking *t)
{
    t->size = t->ranks = t->nodes = t->quickest_s = NAN;
    t->hops = t->share = 0;
    t->algorithm[0] = '\0';
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

/* knee bench: a change of collective, ranks, nodes or algorithm is another table. */
static void begin_if_other(struct taking *t)
{
    struct knee_log *log = &t->r->log;
    bool other = (t->any_op && log->op != t->op) || (!isnan(t->ranks) && log->ranks != t->ranks) ||
                 (!isnan(t->nodes) && log->nodes != t->nodes) || log->hops != t->hops ||
                 log->share != t->share;
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
    knee_log_own_algorithm(log, knee_slice_of(t->algorithm), t->hops, t->share);
}

static void end_row(struct taking *t)
{
    if (t->row == 0)
        return;
    const char *reason = reason_against(t);
    if (reason) {
        knee_log_refuse(t->r, t->line, knee_slice_of("an element of results or rows"), reason);
    } else {
        begin_if_other(t);
        int best = t->time_s[1] < t->time_s[0] || isnan(t->time_s[0]);
        struct knee_sample sample = {t->size, t->time_s[best], t->time_s[0], t->time_s[1], t->line};
        knee_log_quickest(&t->r->log, t->quickest_s, &sample);
        double ratio = t->algbw[best] > 0.5 ? t->busbw[best] / t->algbw[best] : NAN;
        knee_log_add(t->r, &sample, ratio, 0.005 * (1 + ratio) / t->algbw[best]);
    }
    t->row = 0;
    reset(t);
}

/* The part of a path after "name[]."; NULL: another path. */
static const char *member(const char *path, const char *name)
{
    size_t length = strlen(name);
    bool same = strncmp(path, name, length) == 0 && strncmp(path + length, "[].", 3) == 0;
    return same ? path + length + 3 : NULL;
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
    {"hops", offsetof(struct taking, hops), 1},
    {"share", offsetof(struct taking, share), 1},
    {"min_s", offsetof(struct taking, quickest_s), 1},
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

/* NaN: it is none. Some writers put numbers in quotes. */
static double number_of(const struct knee_json_values *v)
{
    double number = NAN;
    if (v->kind == KNEE_JSON_STRING && !knee_slice_number(knee_slice_of(v->text), &number))
        return NAN;
    return v->kind == KNEE_JSON_NUMBER ? v->number : number;
}

static void take_row_member(struct taking *t, const char *key, const struct knee_json_values *v)
{
    double number = number_of(v);
    if (strcmp(key, "collective") == 0) {
        t->op = knee_op_of(v->text, strlen(v->text));
        t->any_op = true;
    } else if (strcmp(key, "algorithm") == 0) {
        knee_slice_copy(knee_slice_of(v->text), t->algorithm, sizeof t->algorithm);
    }
    if (isnan(number))
        return;
    for (size_t i = 0; i < sizeof row_numbers / sizeof *row_numbers; i++)
        if (strcmp(key, row_numbers[i].key) == 0)
            *(double *)((char *)t + row_numbers[i].offset) = number * row_numbers[i].scale;
}

static void take_device(struct knee_log_reader *r, const char *key,
                        const struct knee_json_values *v)
{
    struct knee_run_facts *run = &r->run;
    double number = number_of(v);
    if (strcmp(key, "rank") == 0 && !isnan(number)) {
        run->max_rank = fmax(isnan(run->max_rank) ? 0 : run->max_rank, number);
        run->listed++;
    } else if (strcmp(key, "device") == 0 && !isnan(number)) {
        run->max_device = fmax(isnan(run->max_device) ? 0 : run->max_device, number);
    } else if (strcmp(key, "hostname") == 0) {
        knee_run_host(&run->hosts, run->host, knee_slice_of(v->text));
    } else if (strcmp(key, "device_info") == 0 && !r->log.gpu[0]) {
        knee_slice_copy(knee_slice_of(v->text), r->log.gpu, sizeof r->log.gpu);
    }
}

static void take(struct taking *t, struct knee_json_values *v)
{
    struct knee_log_reader *r = t->r;
    const char *key = member(v->path, "results");
    if (!key)
        key = member(v->path, "rows");
    if (key) {
        if (v->elements != t->row)
            end_row(t);
        t->row = v->elements;
        t->line = knee_json_values_line(v);
        take_row_member(t, key, v);
    } else if ((key = member(v->path, "config.devices")) || (key = member(v->path, "devices"))) {
        take_device(r, key, v);
    } else if (strcmp(v->path, "args[]") == 0) {
        knee_log_launcher_line(r, knee_slice_of(v->text));
    } else if (strcmp(v->path, "nccl_version") == 0) {
        knee_slice_copy(knee_slice_of(v->text), r->log.library, sizeof r->log.library);
    } else if (strcmp(v->path, "config.ngpus") == 0 && !isnan(number_of(v))) {
        r->log.gpus_per_process = number_of(v);
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
    struct taking t = {.r = r};
    struct knee_json_values values;
    reset(&t);
    knee_json_values_init(&values, r->text.at, r->text.length);
    while (knee_json_values_next(&values))
        take(&t, &values);
    if (values.error)
        t.row = 0; /* half of an element is none */
    end_row(&t);
    r->line = knee_json_values_line(&values);
    if (values.error)
        knee_log_refuse(r, r->line, knee_slice_of(values.error), "the JSON is damaged here");
}

const struct knee_log_format knee_log_json = {"JSON", sniff, read_json};
