/* SPDX-License-Identifier: MIT */
/*
 * What a cluster is, from the words people put into file names, tables and logs: a GPU, perhaps an
 * instance type that has a preset, a transport, "8x400 Gb/s". Each kind of word has its table (that
 * of GPUs is data/gpu_words.csv); what
 * is not said comes from the preset of the instance, or from the cluster the GPU is usually in.
 */
#include "base/decimal.h"
#include "base/fold.h"
#include "base/format.h"
#include "cluster/cluster.h"
#include "cluster/gpu_words.h"
#include "cluster/presets.h"

#include <math.h>
#include <string.h>

/* Words are looked for in order; the first that stands in the text counts. */
struct word {
    const char *word, *means;
};

static const struct word instances[] = {
    {"p4de", "p4de"},         {"p4d", "p4d"},
    {"p5en", "p5en"},         {"p5.", "p5"},
    {"p6-b200", "p6-b200"},   {"a3-mega", "a3-mega"},
    {"a3mega", "a3-mega"},    {"a3-high", "a3-high"},
    {"a3high", "a3-high"},    {"a3-ultra", "a3-ultra"},
    {"a3ultra", "a3-ultra"},  {"a4-high", "a4"},
    {"frontier", "frontier"},
};

/* Machines that only count where neither an instance nor a GPU is named: they came with several. */
static const struct word boxes[] = {
    {"nvl72", "gb200-nvl72"}, {"dgx-1", "dgx1-v100"}, {"dgx-2", "dgx1-v100"}, {"p5", "p5"},
    {"a3-", "a3-high"},       {"a4-", "a4"},
};

/* A transport by name, and the rate that such a name stands for when none is given. */
static const struct {
    const char *word, *transport;
    double gbit;
} networks[] = {
    {"tcpxo", "tcpxo", 200}, {"tcpx", "tcpx", 200},     {"slingshot", "slingshot", 200},
    {"efa", "efa", 100},     {"omni-path", "opa", 100}, {"roce", "roce", 0},
    {"gib", "roce", 400},    {"xdr", "ib", 800},        {"ndr", "ib", 400},
    {"hdr", "ib", 200},      {"edr", "ib", 100},        {"infiniband", "ib", 0},
    {" ib ", "ib", 0},       {"_ib_", "ib", 0},         {"net/ib", "ib", 0},
    {"socket", "eth", 0},    {"ethernet", "eth", 0},    {"rdma", "roce", 0},
    {"tcp", "eth", 0},
};

static const struct {
    const char *word;
    double gbit;
} adapters[] = {{"cx-5", 100},       {"cx-6", 200},       {"cx-7", 400},      {"cx-8", 400},
                {"connectx-5", 100}, {"connectx-6", 200}, {"connectx-7", 400}};

/* Where a word stands, not as the tail of another one ("b200" is not in "gb200", but "h100" is in
 * "8xh100" and "dgxh100"). */
static const char *find_word(const char *text, const char *word)
{
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if (at == text || !knee_is_letter(at[-1]) || at[-1] == 'x' || !knee_is_letter(word[0]))
            return at;
    return NULL;
}

static const char *look_up(const char *text, const struct word *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (find_word(text, words[i].word))
            return words[i].means;
    return NULL;
}
#define LOOK_UP(text, table) look_up(text, table, sizeof table / sizeof *table)

/* The number that ends before `end` (after spaces and 'x's are skipped back); 0: none. */
static double number_before(const char *text, const char *end)
{
    while (end > text && (end[-1] == ' ' || end[-1] == 'x'))
        end--;
    const char *start = end;
    while (start > text && knee_is_digit(start[-1]) && end - start < 6)
        start--;
    return start < end ? knee_decimal_parse(start, NULL) : 0;
}

/* A rate as people write it after a number: Gb/s, Gbit, Gbps, or G after "8x400". Capital B is
 * bytes, and mostly memory. */
static bool is_rate(const char *unit, bool times)
{
    if (strncmp(unit, "Gb/", 3) == 0 || strncmp(unit, "Gbit", 4) == 0 ||
        strncmp(unit, "Gbps", 4) == 0 || strncmp(unit, "gbps", 4) == 0 ||
        strncmp(unit, "Gb ", 3) == 0)
        return true;
    return times && unit[0] == 'G' && !knee_is_letter(unit[1]);
}

/* "4x100 Gb/s", "2x CX-5 100 Gb/s", "200 Gb/s", "8x400G", "8x CX-8": rate and ports of the network.
 * `text` is as it was written, `low` the same in small letters. */
static void find_ports(const char *text, const char *low, double *gbit, double *ports)
{
    for (const char *at = text; *at && *gbit == 0; at++) {
        if (!knee_is_digit(*at) || (at > text && knee_is_digit(at[-1])))
            continue;
        const char *end = at;
        while (knee_is_digit(*end))
            end++;
        bool times = at > text && at[-1] == 'x';
        const char *unit = end + (*end == ' ');
        if (end - at > 4 || !is_rate(unit, times))
            continue;
        *gbit = knee_decimal_parse(at, NULL);
        if (times)
            *ports = number_before(text, at);
    }
    for (size_t i = 0; i < sizeof adapters / sizeof *adapters; i++) {
        const char *at = strstr(low, adapters[i].word);
        if (!at)
            continue;
        if (*gbit == 0)
            *gbit = adapters[i].gbit;
        if (*ports == 0 && at > low && at[-1] != '-')
            *ports = number_before(low, at);
    }
}

static void set_network(const char *written, const char *text, struct knee_cluster *t,
                        const struct knee_link *usual)
{
    double gbit = 0, ports = 0;
    struct knee_level *level = &t->levels[1];
    find_ports(written, text, &gbit, &ports);
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        if (!strstr(text, networks[i].word))
            continue;
        bool same = strncmp(usual->name, networks[i].transport, strlen(networks[i].transport)) == 0;
        double rate = gbit > 0               ? gbit
                      : networks[i].gbit > 0 ? networks[i].gbit
                                             : usual->bytes_per_s * 8e-9;
        if (same && fabs(usual->bytes_per_s * 8e-9 - rate) < 1)
            break; /* what the preset has already */
        const struct knee_link *link = knee_link_nearest(networks[i].transport, rate * 1e9 / 8);
        if (link)
            knee_level_set_link(level, link, level->ports);
        break;
    }
    if (ports > 0)
        level->ports = ports;
}

bool knee_cluster_recognise(const char *text, struct knee_cluster *out)
{
    char low[1024];
    size_t used = knee_fold(text, low, sizeof low - 1);
    for (size_t i = 0; i < used; i++)
        low[i] = low[i] == '\t' || low[i] == ',' ? ' ' : low[i];
    memcpy(low + used, " ", 2);
    const char *gpu = knee_gpu_name_in(text);
    const char *machine = LOOK_UP(low, instances);
    if (!machine && !gpu)
        machine = LOOK_UP(low, boxes);
    if (!machine && !gpu)
        return false;
    struct knee_cluster t;
    if (machine)
        knee_cluster_from_preset(knee_cluster_preset_named(machine), &t);
    else
        knee_cluster_of_gpu(gpu, &t);
    const struct knee_cluster_preset *preset = knee_cluster_preset_named(t.name);
    set_network(text, low, &t, knee_link_named(preset->net_link));
    knee_format(t.name, sizeof t.name, "%s: %.0f x %s on %s, %.0f x %s", preset->name,
                t.levels[0].count, t.gpu, t.levels[0].name, t.levels[1].ports, t.levels[1].name);
    *out = t;
    return true;
}
