/* SPDX-License-Identifier: MIT */
/*
 * NCCL's topology file (NCCL_TOPO_DUMP_FILE): one node as XML. Only tags and attributes are looked
 * at, one after the other; what nests in what does not matter for what is taken: GPUs with their
 * compute capability and NVLinks, network adapters with their speed.
 */
#include "read/cluster/cluster_read.h"

#include "base/error.h"
#include "base/format.h"
#include "cluster/cluster.h"
#include "cluster/gpu_words.h"
#include "cluster/presets.h"

#include <math.h>
#include <string.h>

struct node {
    double gpus, sm, links; /* links: NVLinks of all GPUs */
    double nics, slowest_mbit;
    bool switched;     /* NVLinks end at a switch */
    double gpu_gts;    /* PCIe of the last device seen before a GPU */
    const char *named; /* the GPU, by its PCI ids */
    char adapter[24];
    bool no_gdr;
};

/* The value of an attribute in the text of one tag. */
static bool attribute(struct knee_slice tag, const char *name, struct knee_slice *out)
{
    char key[32];
    knee_format(key, sizeof key, " %s=\"", name);
    size_t at = knee_slice_find(tag, key);
    if (at == tag.length)
        return false;
    struct knee_slice rest = knee_slice_from(tag, at + strlen(key));
    return knee_slice_until(&rest, '"', out);
}

static double number_of(struct knee_slice tag, const char *name)
{
    struct knee_slice value;
    double number = NAN;
    if (!attribute(tag, name, &value))
        return NAN;
    size_t digits = 0; /* "32.0 GT/s PCIe" */
    while (digits < value.length &&
           (value.at[digits] == '.' || (value.at[digits] >= '0' && value.at[digits] <= '9')))
        digits++;
    value.length = digits;
    return knee_slice_number(value, &number) ? number : NAN;
}

/* Beyond what any node has, and far within what a cluster file may say. */
#define MOST_LINKS   1024
#define MOST_GPUS    65536
#define FASTEST_MBIT 1e9

static void see_gpu(struct node *n, struct knee_slice tag)
{
    double sm = number_of(tag, "sm");
    n->gpus++;
    if (!isnan(sm))
        n->sm = sm;
}

static void see_nvlink(struct node *n, struct knee_slice tag)
{
    struct knee_slice class;
    double count = number_of(tag, "count");
    n->links += isnan(count) ? 1 : count;
    if (attribute(tag, "tclass", &class) && knee_slice_is(class, "0x068000"))
        n->switched = true;
}

static void see_net(struct node *n, struct knee_slice tag)
{
    struct knee_slice name;
    double mbit = number_of(tag, "speed");
    if (!(mbit > 0))
        return;
    n->nics++;
    n->slowest_mbit = n->nics == 1 ? mbit : fmin(n->slowest_mbit, mbit);
    n->no_gdr = n->no_gdr || number_of(tag, "gdr") == 0;
    if (attribute(tag, "name", &name))
        knee_slice_copy(name, n->adapter, sizeof n->adapter);
}

/* A GPU's PCI ids name it: "0x10de", "0x2330". */
static void see_pci(struct node *n, struct knee_slice tag)
{
    struct knee_slice class, vendor, device;
    if (!attribute(tag, "class", &class) || !knee_slice_starts(class, "0x03"))
        return;
    if (attribute(tag, "vendor", &vendor) && attribute(tag, "device", &device)) {
        char words[32];
        knee_format(words, sizeof words, "pci %.*s %.*s", vendor.length == 6 ? 4 : 0,
                    vendor.at + (vendor.length == 6 ? 2 : 0), device.length == 6 ? 4 : 0,
                    device.at + (device.length == 6 ? 2 : 0));
        n->named = knee_gpu_name_in(words);
    }
    n->gpu_gts = number_of(tag, "link_speed");
}

static const struct {
    const char *tag;
    void (*see)(struct node *n, struct knee_slice tag);
} tags[] = {{"gpu", see_gpu}, {"nvlink", see_nvlink}, {"net", see_net}, {"pci", see_pci}};

static const struct {
    const char *adapter, *transport;
} adapters[] = {{"mlx", "ib"},        {"rdmap", "efa"}, {"efa", "efa"}, {"bnxt", "roce"},
                {"cxi", "slingshot"}, {"hfi", "opa"},   {"eth", "eth"}, {"en", "eth"}};

/* The preset of a transport with that rate; its rate is set to what the file says. */
static void set_network(const struct node *n, struct knee_level *level)
{
    const char *transport = "ib";
    double rate = n->slowest_mbit * 1e6 / 8;
    for (size_t i = 0; i < sizeof adapters / sizeof *adapters; i++)
        if (strncmp(n->adapter, adapters[i].adapter, strlen(adapters[i].adapter)) == 0) {
            transport = adapters[i].transport;
            break;
        }
    const struct knee_link *best = knee_link_nearest(transport, rate);
    if (!best)
        return;
    knee_level_set_link(level, best, n->nics);
    level->bytes_per_s = rate * best->achieved;
}

/* As many NVLinks as there are: some may be down, or the GPU may have fewer than the usual one. */
static void set_nvlinks(const struct knee_link *all, double share, struct knee_level *level)
{
    level->bytes_per_s = all->bytes_per_s * all->achieved * share;
}

/* The GPU by its PCI ids, or by its capability where it has all the links of the usual one; if
 * neither tells, it has no name, and its links come from those it has. */
static void set_gpu(const struct node *n, double links, struct knee_cluster *t)
{
    double whole = knee_nvlinks_of(n->sm);
    const struct knee_gpu *usual = knee_gpu_of_links(n->sm, whole);
    const struct knee_gpu *gpu = knee_gpu_of_links(n->sm, links);
    if (n->named)
        knee_cluster_of_gpu(n->named, t);
    else
        knee_cluster_of_gpu(usual && links > 0 ? usual->name : "h100-pcie", t);
    if (!n->named && !gpu)
        knee_format(t->gpu, sizeof t->gpu, "sm_%.0f", n->sm);
    bool preset = !n->named || knee_gpu_named(n->named);
    if (preset && usual && links > 0 && strncmp(t->levels[0].name, "nvlink", 6) == 0)
        set_nvlinks(knee_link_named(usual->node_link), links / whole, &t->levels[0]);
    if (links == 0)
        knee_level_set_link(&t->levels[0], knee_link_named(n->gpu_gts < 32 ? "pcie4" : "pcie5"), 1);
}

static knee_status fill(const struct node *n, const char *name, struct knee_cluster *out,
                        struct knee_err *err)
{
    struct knee_cluster t;
    if (n->gpus == 0)
        return knee_fail(err, KNEE_INPUT, name, "there is no <gpu> in it");
    double links = n->links / n->gpus;
    if (links > MOST_LINKS || n->gpus > MOST_GPUS || n->slowest_mbit > FASTEST_MBIT)
        return knee_fail(
            err, KNEE_INPUT, name,
            "no node is like this: %g GPUs with %g NVLinks each, adapters of %g Mbit/s", n->gpus,
            links, n->slowest_mbit);
    set_gpu(n, links, &t);
    t.levels[0].count = n->gpus;
    if (!n->switched)
        t.nvls_share = 0;
    if (n->nics > 0)
        set_network(n, &t.levels[1]);
    knee_format(t.name, sizeof t.name, "%.40s: %.0f x sm_%.0f with %g x NVLink, %.0f x NIC", name,
                n->gpus, n->sm, links, n->nics);
    *out = t;
    return KNEE_OK;
}

knee_status knee_nccl_topology_read(struct knee_slice text, const char *name,
                                    struct knee_cluster *out, struct knee_err *err)
{
    struct node n = {.gpu_gts = NAN};
    while (text.length > 0) {
        struct knee_slice tag, skipped;
        if (!knee_slice_until(&text, '<', &skipped) || text.length == 0)
            break;
        if (!memchr(text.at, '>', text.length))
            return knee_fail(err, KNEE_INPUT, name, "a tag does not end: the file is cut off");
        knee_slice_until(&text, '>', &tag);
        for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
            size_t length = strlen(tags[i].tag);
            if (knee_slice_starts(tag, tags[i].tag) && tag.length > length &&
                (tag.at[length] == ' ' || tag.at[length] == '>'))
                tags[i].see(&n, tag);
        }
    }
    return fill(&n, name, out, err);
}
