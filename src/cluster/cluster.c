/* SPDX-License-Identifier: MIT */
/*
 * A cluster as levels of links, from a preset or from one line of text; both give the same object,
 * as do YAML (read/cluster/cluster_file.c), nvidia-smi (read/cluster/smi_topology.c) and NCCL's XML
 * (read/cluster/nccl_topology.c). The lowest level joins GPUs, the next one nodes, then leaves. A
 * level's rate is the link's raw rate times what large collectives reach of it; its latency is what
 * its transport adds up to, wire and host.
 */
#include "cluster/cluster.h"
#include "base/fold.h"

#include "base/decimal.h"
#include "base/error.h"
#include "base/format.h"
#include "base/keys.h"
#include "base/number.h"
#include "base/spell.h"
#include "cluster/gpu_words.h"
#include "cluster/presets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Protocols, as the least absolute error in log time over public measurements gave them: 2, 4 and 8
 * GPUs of five types in one node (aiconfigurator's NCCL tables) and 24 nccl-tests logs over two to
 * four nodes, every log counting the same; rounded. The median error over those logs is 14.9 %;
 * with each log left out in turn it is 15.4 % on the ones left out, so that no single log decides
 * them. NCCL's own constants say the same in kind: LL has the lowest latency per hop and little
 * bandwidth, LL128 more bandwidth, Simple all of it and a slow hop. Nearly all of those logs are of
 * two nodes and say nothing about further hops (net_more): that comes from published training runs
 * on up to 1,500 GPUs, whose error falls steadily from 7 to about 1.2, 9 us a hop on InfiniBand.
 */
static const struct knee_protocol protocols[KNEE_PROTOCOLS] = {
    [KNEE_LL] = {.launch_s = 0,
                 .node_hop = 1,
                 .net_hop = 1,
                 .node_share = 0.02,
                 .net_share = 0.13,
                 .net_more = 1},
    [KNEE_LL128] = {1.5e-6, 1, 2.1, 0.46, 0.33, 1.2},
    [KNEE_SIMPLE] = {23e-6, 1.6, 7, 1, 1, 1.2},
};

void knee_cluster_init(struct knee_cluster *cluster)
{
    memset(cluster, 0, sizeof *cluster);
    cluster->level_count = 1;
    cluster->levels[0] = (struct knee_level){.ports = 1, .oversubscription = 1};
    cluster->launch_s = 8e-6;
    cluster->peer_s = 0.58e-6; /* all-to-all of 2, 4 and 8 GPUs, as the protocols */
    memcpy(cluster->protocols, protocols, sizeof protocols);
}

void knee_cluster_plain(struct knee_cluster *out)
{
    struct knee_cluster t;
    knee_cluster_init(&t);
    knee_format(t.name, sizeof t.name, "hosts that send messages");
    knee_format(t.gpu, sizeof t.gpu, "cpu");
    t.plain = true;
    t.launch_s = t.peer_s = 0;
    for (int p = 0; p < KNEE_PROTOCOLS; p++)
        t.protocols[p] = (struct knee_protocol){0, 1, 1, 1, 1, 1};
    t.level_count = 2;
    t.levels[0] = (struct knee_level){"memory", 1, 1e-6, 10e9, 1, 1, true};
    t.levels[1] = (struct knee_level){"network", 0, 50e-6, 1e9, 1, 1, true};
    *out = t;
}

double knee_transport_latency_s(const char *link)
{
    const struct knee_transport *transport = knee_transport_of(link);
    return transport ? transport->wire_s + transport->host_s : NAN;
}

const struct knee_link *knee_link_nearest(const char *transport, double bytes_per_s)
{
    const struct knee_link *best = NULL;
    size_t length = strlen(transport);
    for (size_t i = 0; i < knee_links_count; i++) {
        const struct knee_link *link = &knee_links[i];
        const char *rate = link->name + length; /* "ib400": not another transport, no variant */
        if (strncmp(link->name, transport, length) != 0 || *rate < '0' || *rate > '9' ||
            strchr(rate, '-'))
            continue;
        if (!best ||
            fabs(log(link->bytes_per_s / bytes_per_s)) < fabs(log(best->bytes_per_s / bytes_per_s)))
            best = link;
    }
    return best;
}

void knee_level_set_link(struct knee_level *level, const struct knee_link *link, double ports)
{
    knee_format(level->name, sizeof level->name, "%s", link->name);
    level->latency_s = knee_transport_latency_s(link->name);
    level->bytes_per_s = link->bytes_per_s * link->achieved;
    level->ports = ports;
    level->oversubscription = 1;
}

void knee_cluster_set_gpu_link(struct knee_cluster *cluster, const struct knee_link *link)
{
    const struct knee_transport *transport = knee_transport_of(link->name);
    knee_level_set_link(&cluster->levels[0], link, 1);
    if (!transport)
        return;
    if (!isnan(transport->launch_s))
        cluster->launch_s = transport->launch_s;
    cluster->nvls_share = transport->nvls_share;
}

void knee_cluster_from_preset(const struct knee_cluster_preset *preset, struct knee_cluster *out)
{
    struct knee_cluster t;
    knee_cluster_init(&t);
    knee_format(t.name, sizeof t.name, "%s", preset->name);
    knee_format(t.gpu, sizeof t.gpu, "%s", preset->gpu);
    knee_cluster_set_gpu_link(&t, knee_link_named(preset->node_link));
    knee_level_set_link(&t.levels[1], knee_link_named(preset->net_link), preset->nics_per_node);
    t.levels[0].count = preset->gpus_per_node;
    t.level_count = 2;
    *out = t;
}

void knee_cluster_free_latency(struct knee_cluster *cluster)
{
    for (size_t l = 0; l < cluster->level_count; l++)
        cluster->levels[l].latency_s = 0;
    for (int p = 0; p < KNEE_PROTOCOLS; p++)
        cluster->protocols[p].launch_s = 0;
    cluster->launch_s = cluster->peer_s = cluster->floor_s = 0;
    cluster->fitted = NULL;
}

/* ---- One line of text ---- */

struct scan {
    char text[256]; /* lower case, no spaces */
    const char *at;
    struct knee_err *err;
};

static knee_status scan_fail(const struct scan *s, const char *what)
{
    knee_status status =
        knee_fail(s->err, KNEE_USAGE, "cluster", "%s at '%.40s'", what, *s->at ? s->at : "the end");
    knee_hint(s->err, "for example 8xh100:nvlink4 * 16 @ ib400x8");
    return status;
}

static bool skip(struct scan *s, char c)
{
    if (*s->at != c)
        return false;
    s->at++;
    return true;
}

/* A whole number; false leaves the place. */
static bool scan_count(struct scan *s, double *out)
{
    const char *end = NULL;
    if (*s->at < '0' || *s->at > '9')
        return false;
    double value = knee_decimal_parse(s->at, &end);
    if (value != rint(value) || value > KNEE_WORKERS_MAX)
        return false;
    s->at = end;
    *out = value;
    return true;
}

/* The longest row of a list that stands here; NULL: none. */
static const char *scan_name(struct scan *s, const struct knee_choices *choices)
{
    const char *best = NULL;
    for (size_t i = 0; i < choices->count(); i++) {
        const char *name = choices->name(i);
        if (strncmp(s->at, name, strlen(name)) == 0 && (!best || strlen(name) > strlen(best)))
            best = name;
    }
    if (best)
        s->at += strlen(best);
    return best;
}

static size_t word_length(const char *text)
{
    return strcspn(text, ":*@/{},=");
}

static knee_status no_such_name(struct scan *s, const struct knee_choices *choices)
{
    char word[64];
    knee_format(word, sizeof word, "%.*s", (int)word_length(s->at), s->at);
    knee_choice_find(choices, word, "cluster", s->err);
    return KNEE_USAGE;
}

/* "{latency=5us,bandwidth=46gb/s,sharing=shared}"; bytes, since the text is in lower case. */
static knee_status scan_pairs(struct scan *s, struct knee_level *level)
{
    if (!skip(s, '{'))
        return KNEE_OK;
    while (!skip(s, '}')) {
        char key[16], value[32];
        size_t length = word_length(s->at);
        knee_format(key, sizeof key, "%.*s", (int)length, s->at);
        s->at += length;
        if (!skip(s, '='))
            return scan_fail(s, "no key=value");
        length = strcspn(s->at, ",}");
        knee_format(value, sizeof value, "%.*s", (int)length, s->at);
        s->at += length;
        char *gb = strstr(value, "gb/s");
        if (gb)
            memcpy(gb, "GB/s", 4);
        knee_status status = knee_level_set(level, key, value, "cluster", s->err);
        if (status)
            return status;
        if (!skip(s, ',') && *s->at != '}')
            return scan_fail(s, "no , or }");
    }
    return KNEE_OK;
}

knee_status knee_level_set(struct knee_level *level, const char *key, const char *value,
                           const char *where, struct knee_err *err)
{
    static const struct {
        const char *key;
        enum knee_unit unit;
        size_t offset;
        double min, max;
    } numbers[] = {
        {"count", KNEE_UNIT_COUNT, offsetof(struct knee_level, count), 0, KNEE_WORKERS_MAX},
        {"latency", KNEE_UNIT_SECONDS, offsetof(struct knee_level, latency_s), 0, 10},
        {"bandwidth", KNEE_UNIT_BYTES_PER_S, offsetof(struct knee_level, bytes_per_s), 1, 1e15},
        {"ports", KNEE_UNIT_COUNT, offsetof(struct knee_level, ports), 0, KNEE_WORKERS_MAX},
        {"oversubscription", KNEE_UNIT_FACTOR, offsetof(struct knee_level, oversubscription), 1,
         1e6},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double number = 0;
        if (!knee_same_name(key, numbers[i].key))
            continue;
        knee_status status = knee_number_parse(value, numbers[i].unit, where, &number, err);
        if (status)
            return status;
        if (!(number >= numbers[i].min && number <= numbers[i].max))
            return knee_fail(err, KNEE_USAGE, where, "%s '%.40s' is out of range", key, value);
        memcpy((char *)level + numbers[i].offset, &number, sizeof number);
        return KNEE_OK;
    }
    if (!knee_same_name(key, "sharing"))
        return knee_fail_hint(err, KNEE_USAGE, where,
                              "count, link, latency, bandwidth, ports, oversubscription or sharing",
                              "a level has no '%.40s'", key);
    if (strcmp(value, "shared") != 0 && strcmp(value, "striped") != 0)
        return knee_fail(err, KNEE_USAGE, where, "sharing '%.40s' is neither shared nor striped",
                         value);
    level->shared = strcmp(value, "shared") == 0;
    return KNEE_OK;
}

/* The GPU that stands here, in any spelling; NULL: none. */
static const char *scan_gpu(struct scan *s)
{
    char word[64];
    size_t length = word_length(s->at);
    knee_format(word, sizeof word, "%.*s", (int)length, s->at);
    int row = length < sizeof word ? knee_gpu_spelt(word) : -1;
    if (row < 0)
        return NULL;
    s->at += length;
    return knee_gpus[row].name;
}

/* "8xh100:nvlink4{...}" */
static knee_status scan_gpus(struct scan *s, struct knee_cluster *t)
{
    double count = 1;
    const char *at = s->at;
    if (scan_count(s, &count) && !skip(s, 'x')) /* "1xa100", but also "a100" */
        s->at = at;
    const char *gpu = scan_gpu(s), *link = NULL;
    if (!gpu)
        return no_such_name(s, &knee_gpu_names);
    if (skip(s, ':') && !(link = scan_name(s, &knee_link_names)))
        return no_such_name(s, &knee_link_names);
    knee_format(t->gpu, sizeof t->gpu, "%s", gpu);
    const struct knee_gpu *preset = knee_gpu_named(gpu);
    knee_cluster_set_gpu_link(t, knee_link_named(link ? link : preset->node_link));
    t->levels[0].count = count;
    return scan_pairs(s, &t->levels[0]);
}

/* The network of the cluster that the GPU is usually sold in. */
static void usual_network(const struct knee_cluster *t, struct knee_level *level)
{
    const struct knee_gpu *gpu = knee_gpu_named(t->gpu);
    const struct knee_cluster_preset *usual = knee_cluster_preset_named(gpu->cluster);
    double ports = fmax(1, usual->nics_per_node * t->levels[0].count / usual->gpus_per_node);
    knee_level_set_link(level, knee_link_named(usual->net_link), ports);
}

/* A level of switches without a name in the presets: what comes up from below goes on. */
static void name_level(struct scan *s, const struct knee_level *below, struct knee_level *level)
{
    size_t length = word_length(s->at);
    knee_format(level->name, sizeof level->name, "%.*s", (int)length, s->at);
    s->at += length;
    level->latency_s = below->latency_s + 1e-6; /* two switches more */
    level->bytes_per_s = below->bytes_per_s;
}

/* "16 @ ib400x8/2{...}" */
static knee_status scan_level(struct scan *s, struct knee_cluster *t)
{
    struct knee_level *level = &t->levels[t->level_count];
    *level = (struct knee_level){.oversubscription = 1};
    double count = 0;
    if (!scan_count(s, &count))
        return scan_fail(s, "no count of units");
    if (!skip(s, '@')) {
        if (t->level_count > 1)
            return scan_fail(s, "no @ and link");
        usual_network(t, level);
    } else {
        const char *link = scan_name(s, &knee_link_names);
        if (!link && t->level_count == 1)
            return no_such_name(s, &knee_link_names);
        if (link)
            knee_level_set_link(level, knee_link_named(link), t->level_count == 1);
        else
            name_level(s, &t->levels[t->level_count - 1], level);
        if (skip(s, 'x') && (!scan_count(s, &level->ports) || level->ports < 1))
            return scan_fail(s, "no number of ports");
        if (skip(s, '/')) {
            const char *end = NULL;
            level->oversubscription = knee_decimal_parse(s->at, &end);
            if (end == s->at || !(level->oversubscription >= 1) || level->oversubscription > 1e6)
                return scan_fail(s, "no oversubscription from 1 on");
            s->at = end;
        }
    }
    level->count = count;
    t->level_count++;
    return scan_pairs(s, level);
}

/* Spaces are nothing and capitals are small. */
static bool flatten(const char *text, char *out, size_t size)
{
    size_t used = 0;
    for (; *text; text++) {
        if (*text == ' ' || *text == '\t')
            continue;
        if (used + 1 >= size)
            return false;
        out[used++] = knee_lower(*text);
    }
    out[used] = '\0';
    return true;
}

/* Names go into files as they are, so they are plain text. */
static bool is_plain(const char *text)
{
    for (; *text; text++)
        if (*text != '\t' && (*text < ' ' || *text > '~'))
            return false;
    return true;
}

knee_status knee_cluster_parse(const char *text, struct knee_cluster *out, struct knee_err *err)
{
    struct scan s = {.err = err};
    struct knee_cluster t;
    knee_cluster_init(&t);
    if (!is_plain(text))
        return knee_fail(err, KNEE_USAGE, "cluster", "it has characters that are no plain text");
    if (!flatten(text, s.text, sizeof s.text))
        return knee_fail(err, KNEE_USAGE, "cluster", "longer than %zu characters", sizeof s.text);
    s.at = s.text;
    knee_format(t.name, sizeof t.name, "%s", text);
    knee_status status = scan_gpus(&s, &t);
    while (!status && skip(&s, '*')) {
        if (t.level_count == KNEE_LEVELS_MAX)
            return knee_fail(err, KNEE_USAGE, "cluster", "more than %d levels", KNEE_LEVELS_MAX);
        status = scan_level(&s, &t);
    }
    if (!status && *s.at)
        status = scan_fail(&s, "something that does not belong here");
    if (!status)
        *out = t;
    return status;
}

void knee_cluster_line(const struct knee_cluster *cluster, struct knee_text *text)
{
    for (size_t l = 0; l < cluster->level_count; l++) {
        const struct knee_level *level = &cluster->levels[l];
        char latency[40], rate[40];
        if (l == 0)
            knee_text_printf(text, "%.0fx%s:%s", level->count, cluster->gpu, level->name);
        else
            knee_text_printf(text, " * %.0f @ %s", level->count, level->name);
        if (l > 0 && level->ports > 0)
            knee_text_printf(text, "x%.0f", level->ports);
        if (level->oversubscription > 1)
            knee_text_printf(text, "/%g", level->oversubscription);
        knee_number_exact(latency, sizeof latency, level->latency_s);
        knee_number_exact(rate, sizeof rate, level->bytes_per_s);
        knee_text_printf(text, "{latency=%s,bandwidth=%s%s}", latency, rate,
                         level->shared ? ",sharing=shared" : "");
    }
}
