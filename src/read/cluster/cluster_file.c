/* SPDX-License-Identifier: MIT */
/*
 * knee's own cluster files: what knee fit and knee cluster write (out/show_cluster.c), in YAML. A
 * file begins from "from:" (a preset or a one-line string) or from a GPU with its usual links;
 * every other key changes one number. Where a key stands does not matter: a file is read once for
 * each kind of key, those that set many numbers first. Unknown keys are refused: a misspelt number
 * must not vanish.
 */
#include "read/cluster/cluster_read.h"

#include "base/error.h"
#include "base/format.h"
#include "base/keys.h"
#include "base/number.h"
#include "cluster/cluster.h"
#include "cluster/gpu_words.h"
#include "cluster/presets.h"
#include "knee_collective.h"
#include "read/yaml_scan.h"

#include <stdlib.h>
#include <string.h>

/* What a key sets, from all of it to one number: the order of the passes. */
enum pass { PASS_FROM, PASS_PLAIN, PASS_GPU, PASS_LINKS, PASS_NUMBERS, PASSES };

struct reading {
    struct knee_cluster t;
    struct knee_fitted *record;
    const char *name;
    enum pass pass;
    size_t level_count; /* as the file lists them */
    size_t line;
    struct knee_err *err;
    knee_status status; /* sticks */
};

static void refuse(struct reading *r, const char *what, const char *value)
{
    char where[128];
    if (r->status)
        return;
    knee_format(where, sizeof where, "%.100s:%zu", r->name, r->line);
    r->status = knee_fail(r->err, KNEE_INPUT, where, "%s '%.60s'", what, value);
}

static bool read_number(struct reading *r, const char *value, enum knee_unit unit, double min,
                        double max, double *out)
{
    double number;
    if (knee_number_parse(value, unit, "", &number, NULL) || !(number >= min && number <= max)) {
        refuse(r, "not a number in range:", value);
        return false;
    }
    *out = number;
    return true;
}

/* "levels[2].latency" is member 2, key "latency"; NULL: another list. */
static const char *member(const char *path, const char *list, size_t most, size_t *index)
{
    size_t length = strlen(list);
    char *end = NULL;
    if (strncmp(path, list, length) != 0 || path[length] != '[')
        return NULL;
    unsigned long long i = strtoull(path + length + 1, &end, 10);
    if (i >= most || !end || *end != ']')
        return "";
    *index = (size_t)i;
    return end[1] == '.' ? end + 2 : end + 1;
}

/* ---- The topology itself ---- */

static const struct {
    const char *key;
    enum knee_unit unit;
    size_t offset;
    double max;
} numbers[] = {
    {"launch", KNEE_UNIT_SECONDS, offsetof(struct knee_cluster, launch_s), 100},
    {"peer", KNEE_UNIT_SECONDS, offsetof(struct knee_cluster, peer_s), 100},
    {"floor", KNEE_UNIT_SECONDS, offsetof(struct knee_cluster, floor_s), 100},
    {"nvls-share", KNEE_UNIT_FRACTION, offsetof(struct knee_cluster, nvls_share), 10},
};

/* A link at the lowest level; the number of GPUs stays. */
static void set_gpu_link(struct reading *r, const struct knee_link *link)
{
    double count = r->t.levels[0].count;
    knee_cluster_set_gpu_link(&r->t, link);
    r->t.levels[0].count = count;
}

static void start_from(struct reading *r, const char *value)
{
    struct knee_cluster t;
    const struct knee_cluster_preset *preset = knee_cluster_preset_named(value);
    if (preset)
        knee_cluster_from_preset(preset, &t);
    else if (knee_cluster_parse(value, &t, NULL))
        refuse(r, "neither a preset nor a cluster in one line:", value);
    if (!r->status)
        r->t = t;
}

/* A guess, which the other keys change. */
static void set_plain(struct reading *r, const char *value)
{
    char name[sizeof r->t.name];
    if (strcmp(value, "true") != 0)
        return;
    memcpy(name, r->t.name, sizeof name);
    knee_cluster_plain(&r->t);
    memcpy(r->t.name, name, sizeof name);
}

static void set_gpu(struct reading *r, const char *value)
{
    int row = knee_gpu_spelt(value);
    const struct knee_gpu *gpu = row < 0 ? NULL : knee_gpu_at((size_t)row);
    knee_format(r->t.gpu, sizeof r->t.gpu, "%s", gpu ? gpu->name : value);
    if (gpu && !r->t.levels[0].name[0])
        set_gpu_link(r, knee_link_named(gpu->node_link));
}

static void ignore(struct reading *r, const char *value)
{
    (void)r, (void)value;
}

static void set_name(struct reading *r, const char *value)
{
    knee_format(r->t.name, sizeof r->t.name, "%s", value);
}

static void set_sharp(struct reading *r, const char *value)
{
    r->t.sharp = strcmp(value, "true") == 0;
}

static const struct {
    const char *key;
    enum pass pass;
    void (*set)(struct reading *r, const char *value);
} words[] = {
    {"from", PASS_FROM, start_from},    {"plain", PASS_PLAIN, set_plain},
    {"gpu", PASS_GPU, set_gpu},         {"name", PASS_NUMBERS, set_name},
    {"sharp", PASS_NUMBERS, set_sharp}, {"schema", PASS_NUMBERS, ignore},
};

static void take_top(struct reading *r, const char *key, const char *value)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(key, words[i].key) == 0) {
            if (r->pass == words[i].pass)
                words[i].set(r, value);
            return;
        }
    if (r->pass != PASS_NUMBERS)
        return;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (knee_same_name(key, numbers[i].key)) {
            double *field = (double *)((char *)&r->t + numbers[i].offset);
            read_number(r, value, numbers[i].unit, 0, numbers[i].max, field);
            return;
        }
    refuse(r, "unknown key", key);
}

static void take_level(struct reading *r, size_t index, const char *key, const char *value)
{
    struct knee_level *level = &r->t.levels[index];
    bool link_key = strcmp(key, "link") == 0 || strcmp(key, "name") == 0;
    if (r->pass != (link_key ? PASS_LINKS : PASS_NUMBERS))
        return;
    for (; r->level_count <= index; r->level_count++)
        if (r->level_count >= r->t.level_count)
            r->t.levels[r->level_count] =
                (struct knee_level){.ports = r->level_count == 1, .oversubscription = 1};
    if (link_key) {
        const struct knee_link *link = knee_link_named(value);
        if (link && index == 0)
            set_gpu_link(r, link);
        else if (link)
            knee_level_set_link(level, link, level->ports);
        else
            knee_format(level->name, sizeof level->name, "%s", value);
        return;
    }
    struct knee_err err;
    if (knee_level_set(level, key, value, "", &err))
        refuse(r, err.what, value);
}

static void take_protocol(struct reading *r, size_t index, const char *key, const char *value)
{
    static const struct {
        const char *key;
        enum knee_unit unit;
        size_t offset;
        double min, max;
    } fields[] = {
        {"launch", KNEE_UNIT_SECONDS, offsetof(struct knee_protocol, launch_s), 0, 100},
        {"node-hop", KNEE_UNIT_FACTOR, offsetof(struct knee_protocol, node_hop), 0, 1e6},
        {"net-hop", KNEE_UNIT_FACTOR, offsetof(struct knee_protocol, net_hop), 0, 1e6},
        {"node-share", KNEE_UNIT_FRACTION, offsetof(struct knee_protocol, node_share), 1e-6, 10},
        {"net-share", KNEE_UNIT_FRACTION, offsetof(struct knee_protocol, net_share), 1e-6, 10},
        {"net-more", KNEE_UNIT_FACTOR, offsetof(struct knee_protocol, net_more), 0, 1e6},
    };
    if (strcmp(key, "name") == 0) {
        if (strcmp(value, knee_protocol_name((enum knee_protocol_name)index)) != 0)
            refuse(r, "protocols are LL, LL128 and Simple, in this order, not", value);
        return;
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (knee_same_name(key, fields[i].key)) {
            double *field = (double *)((char *)&r->t.protocols[index] + fields[i].offset);
            read_number(r, value, fields[i].unit, fields[i].min, fields[i].max, field);
            return;
        }
    refuse(r, "a protocol has no", key);
}

static void take_curve(struct reading *r, size_t index, const char *key, const char *value)
{
    static const struct {
        const char *key;
        size_t offset;
    } fields[] = {
        {"ranks", offsetof(struct knee_curve, ranks)},
        {"nodes", offsetof(struct knee_curve, nodes)},
        {"rows", offsetof(struct knee_curve, rows)},
        {"refused", offsetof(struct knee_curve, refused)},
        {"median-error", offsetof(struct knee_curve, median_error)},
        {"p90-error", offsetof(struct knee_curve, p90_error)},
    };
    struct knee_curve *curve = &r->record->curves[index];
    size_t knot = 0;
    if (index >= r->record->curve_count)
        r->record->curve_count = index + 1;
    const char *rest = member(key, "bytes", KNEE_KNOTS_MAX, &knot);
    bool bytes = rest != NULL;
    if (!rest)
        rest = member(key, "time", KNEE_KNOTS_MAX, &knot);
    if (rest) {
        double *list = bytes ? curve->bytes : curve->time_s;
        enum knee_unit unit = bytes ? KNEE_UNIT_BYTES : KNEE_UNIT_SECONDS;
        if (read_number(r, value, unit, bytes ? 1 : 1e-12, 1e18, &list[knot]) &&
            knot + 1 > curve->knots)
            curve->knots = knot + 1;
        return;
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (knee_same_name(key, fields[i].key)) {
            double *field = (double *)((char *)curve + fields[i].offset);
            if (strcmp(value, "null") != 0)
                read_number(r, value, KNEE_UNIT_COUNT, 0, 1e15, field);
            return;
        }
    if (strcmp(key, "collective") == 0) {
        curve->op = (int)knee_op_of(value, strlen(value));
        if (curve->op == KNEE_OP_UNKNOWN)
            refuse(r, "unknown collective", value);
    } else if (strcmp(key, "source") == 0) {
        knee_format(curve->source, sizeof curve->source, "%s", value);
    } else {
        refuse(r, "a curve has no", key);
    }
}

static void take_parameter(struct reading *r, size_t index, const char *key, const char *value)
{
    static const struct {
        const char *name;
        enum knee_unit unit;
    } units[] = {{"s", KNEE_UNIT_SECONDS},
                 {"bytes/s", KNEE_UNIT_BYTES_PER_S},
                 {"factor", KNEE_UNIT_FACTOR},
                 {"share", KNEE_UNIT_FRACTION}};
    struct knee_parameter *p = &r->record->parameters[index];
    if (index >= r->record->parameter_count)
        r->record->parameter_count = index + 1;
    if (strcmp(key, "name") == 0)
        knee_format(p->name, sizeof p->name, "%s", value);
    else if (strcmp(key, "value") == 0)
        read_number(r, value, KNEE_UNIT_COUNT, 0, 1e18, &p->value);
    else if (strcmp(key, "low") == 0)
        read_number(r, value, KNEE_UNIT_COUNT, 0, 1e18, &p->low);
    else if (strcmp(key, "high") == 0)
        read_number(r, value, KNEE_UNIT_COUNT, 0, 1e18, &p->high);
    else if (strcmp(key, "fitted") == 0)
        p->fitted = strcmp(value, "true") == 0;
    else if (strcmp(key, "unit") == 0)
        for (size_t i = 0; i < sizeof units / sizeof *units; i++)
            p->unit = strcmp(value, units[i].name) == 0 ? units[i].unit : p->unit;
    else
        refuse(r, "a parameter has no", key);
}

static const struct {
    const char *list;
    size_t most;
    void (*take)(struct reading *r, size_t index, const char *key, const char *value);
} lists[] = {
    {"levels", KNEE_LEVELS_MAX, take_level},
    {"protocols", KNEE_PROTOCOLS, take_protocol},
    {"curves", KNEE_CURVES_MAX, take_curve},
    {"parameters", KNEE_PARAMETERS_MAX, take_parameter},
};

static knee_status take(void *ctx, const struct knee_scalar *scalar)
{
    struct reading *r = ctx;
    r->line = scalar->line;
    if (scalar->empty)
        return KNEE_OK; /* an empty list says nothing */
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        size_t index = 0;
        const char *key = member(scalar->path, lists[i].list, lists[i].most, &index);
        if (!key)
            continue;
        if (!*key)
            refuse(r, "too many members, or no mapping, in", lists[i].list);
        else if (r->pass == PASS_NUMBERS || lists[i].take == take_level)
            lists[i].take(r, index, key, scalar->value);
        return r->status;
    }
    take_top(r, scalar->path, scalar->value);
    return r->status;
}

/* What a file must not leave open, and what must hold among its numbers. */
static knee_status check(struct reading *r)
{
    struct knee_cluster *t = &r->t;
    if (r->status)
        return r->status;
    if (r->level_count > 0)
        t->level_count = r->level_count;
    for (size_t l = 0; l < t->level_count; l++)
        if (!(t->levels[l].bytes_per_s > 0) || (l == 1 && !(t->levels[l].ports > 0))) {
            knee_fail(r->err, KNEE_INPUT, r->name, "level %zu has no bandwidth or no ports", l);
            knee_hint(r->err, "name a link preset ('knee list links'), or write bandwidth and "
                              "latency out");
            return KNEE_INPUT;
        }
    for (size_t i = 0; i < r->record->curve_count; i++)
        for (size_t k = 0; k < r->record->curves[i].knots; k++) {
            const struct knee_curve *c = &r->record->curves[i];
            bool first = k == 0;
            if (!(c->bytes[k] > 0) || !(c->time_s[k] > 0) ||
                (!first && !(c->bytes[k] > c->bytes[k - 1])) ||
                (!first && c->time_s[k] < c->time_s[k - 1]))
                return knee_fail(r->err, KNEE_INPUT, r->name,
                                 "curve %zu does not rise from knot to knot", i);
        }
    return KNEE_OK;
}

knee_status knee_cluster_file_read(struct knee_slice text, const char *name,
                                   struct knee_cluster *out, struct knee_fitted *record,
                                   struct knee_err *err)
{
    struct reading r = {.record = record, .name = name, .err = err};
    memset(record, 0, sizeof *record);
    knee_cluster_init(&r.t);
    knee_format(r.t.name, sizeof r.t.name, "%s", name);
    knee_status status = KNEE_OK;
    for (r.pass = PASS_FROM; !status && r.pass < PASSES; r.pass++)
        status = knee_yaml_scan(text, name, take, &r, err);
    if (!status)
        status = check(&r);
    if (record->curve_count > 0 || record->parameter_count > 0)
        r.t.fitted = record;
    if (!status)
        *out = r.t;
    return status;
}
