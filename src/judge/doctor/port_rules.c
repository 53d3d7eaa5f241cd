/* SPDX-License-Identifier: MIT */
/*
 * Ports of InfiniBand and RoCE. The rails are the ports of the kind with the highest total rate:
 * eight ports at 400 Gb/s, not the two of the front end. The kind is the adapter's model, or the
 * link layer if the model is unknown. A rail that is down or slower than the other rails is a
 * fault; any other port that is down is a note. The rate of an inactive port means nothing, and
 * neither does the total of a counter.
 */
#include "judge/doctor/doctor_judge.h"

#include "base/format.h"

#include <math.h>
#include <string.h>

#define PORTS_MAX 96

struct rail_port {
    const char *name; /* "mlx5_3:1" */
    char kind[64];
    double rate, width;
    bool active, up, infiniband;
};

struct ports {
    size_t count;
    struct rail_port port[PORTS_MAX];
    const char *rail; /* kind */
    double rails, rails_active, rate;
};

static bool says(const char *value, const char *word)
{
    return value && strstr(value, word) != NULL;
}

static const char *text(const struct knee_facts *facts, const char *subject, const char *key)
{
    const struct knee_fact *fact = knee_fact_find(facts, subject, key);
    return fact ? fact->value : NULL;
}

/* "400 Gb/sec (4X NDR)": lanes; NaN if the text does not contain them. */
static double lanes(const char *rate)
{
    const char *open = rate ? strchr(rate, '(') : NULL;
    return open && open[1] >= '1' && open[1] <= '9' ? (double)(open[1] - '0') : NAN;
}

static void add_port(struct ports *p, const struct knee_facts *facts, const struct knee_fact *state)
{
    struct rail_port *port = &p->port[p->count++];
    const char *name = state->subject, *layer = text(facts, name, "ib.layer");
    const char *phys = text(facts, name, "ib.phys"), *rate = text(facts, name, "ib.rate");
    char device[64];
    knee_format(device, sizeof device, "%.*s", (int)strcspn(name, ":"), name);
    const char *type = text(facts, device, "ib.type");
    *port = (struct rail_port){
        .name = name, .rate = knee_fact_value(facts, name, "ib.rate"), .width = lanes(rate)};
    port->active = says(state->value, "ctive") || says(state->value, "ACTIVE");
    port->up = !phys || says(phys, "LinkUp") || says(phys, "LINK_UP");
    port->infiniband = says(layer, "InfiniBand");
    knee_format(port->kind, sizeof port->kind, "%s %s", type ? type : "", layer ? layer : "");
}

static double rate_of(const struct ports *p, const char *kind)
{
    double best = 0;
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->port[i].kind, kind) == 0 && p->port[i].active && p->port[i].rate > best)
            best = p->port[i].rate;
    return best;
}

/* Rails: the kind whose ports together have the most rate. */
static void find_rails(struct ports *p)
{
    double best = -1;
    for (size_t i = 0; i < p->count; i++) {
        double ports = 0, active = 0, rate = rate_of(p, p->port[i].kind);
        for (size_t k = 0; k < p->count; k++)
            if (strcmp(p->port[k].kind, p->port[i].kind) == 0) {
                ports++;
                active += p->port[k].active;
            }
        if (ports * rate > best) {
            best = ports * rate;
            p->rail = p->port[i].kind;
            p->rails = ports;
            p->rails_active = active;
            p->rate = rate;
        }
    }
}

static void check_down(struct knee_exam *exam, const struct ports *p, const struct rail_port *port,
                       bool rail)
{
    const char *state = text(exam->facts, port->name, "ib.state");
    const char *phys = text(exam->facts, port->name, "ib.phys");
    if (rail && port->up && phys && says(state, "INIT"))
        knee_blame(exam, "ib_not_active", port->name, p->rails_active / p->rails,
                   "the link is up, but the port is %s", state);
    else if (rail)
        knee_blame(exam, "rail_down", port->name, p->rails_active / p->rails,
                   "%.0f of %.0f ports of this kind carry traffic; this one: %s, %s",
                   p->rails_active, p->rails, state, phys ? phys : "no physical state");
    else
        knee_blame(exam, "frontend_down", port->name, NAN, "%s, %s; not one of the %.0f rails",
                   state, phys ? phys : "no physical state", p->rails);
}

static void check_rate(struct knee_exam *exam, const struct ports *p, const struct rail_port *port,
                       bool rail)
{
    if (rail && port->rate < 0.99 * p->rate) {
        knee_blame(exam, "rail_slow", port->name, port->rate / p->rate,
                   "%.0f Gb/s; the other ports run at %.0f. Rings through this port get %.0f%%",
                   port->rate, p->rate, 100 * port->rate / p->rate);
    } else if (port->width < 4 && port->infiniband) {
        knee_blame(exam, "rail_narrow", port->name, port->width / 4, "%.0f of 4 lanes (%.0f Gb/s)",
                   port->width, port->rate);
    } else if (rail && port->rate * 1e9 / 8 < 0.99 * exam->expected_bytes_per_s) {
        double expected = exam->expected_bytes_per_s * 8e-9;
        knee_blame(exam, "rail_below_cluster", port->name, port->rate / expected,
                   "%.0f Gb/s; expected %.0f for this cluster", port->rate, expected);
    }
}

/* No port at all is active: nothing is plugged in, unless the machine is made for a fabric. */
static bool needs_rails(const struct knee_exam *exam, const struct ports *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->port[i].active)
            return false;
    return p->rails >= 4 || (exam->gpus >= 4 && !exam->geforce);
}

void knee_check_ports(struct knee_exam *exam)
{
    struct ports p = {0};
    size_t first, end = knee_facts_range(exam->facts, "ib.state", &first);
    for (size_t i = first; i < end && p.count < PORTS_MAX; i++)
        add_port(&p, exam->facts, &exam->facts->rows[i]);
    if (end > first + PORTS_MAX)
        knee_blame(exam, "ports_many", "", NAN, "%zu further ports were not looked at",
                   end - first - PORTS_MAX);
    find_rails(&p);
    for (size_t i = 0; i < p.count; i++) {
        bool rail = strcmp(p.port[i].kind, p.rail) == 0;
        if (!p.port[i].active)
            check_down(exam, &p, &p.port[i], rail && (p.rails_active > 0 || needs_rails(exam, &p)));
        else
            check_rate(exam, &p, &p.port[i], rail);
    }
}

/* ---- GIDs of RoCE ports ---- */

enum gid { GID_NONE, GID_EMPTY, GID_V1, GID_LINK_LOCAL, GID_GOOD };
static const char *const gid_words[] = {"not there", "empty", "RoCE v1", "link-local: not routed",
                                        "RoCE v2"};

/* The value is "address type" from a tool, or an address with the type in a file beside it. */
static enum gid gid_at(const struct knee_facts *facts, const char *port, const char *index)
{
    char key[64];
    knee_format(key, sizeof key, "ib.gid.%s", index);
    const char *gid = text(facts, port, key);
    knee_format(key, sizeof key, "ib.gidtype.%s", index);
    const char *type = text(facts, port, key);
    type = type ? type : gid;
    if (!gid)
        return GID_NONE;
    if (strncmp(gid, "0000:0000:0000:0000:0000:0000:0000:0000", 39) == 0 ||
        strncmp(gid, ":: ", 3) == 0)
        return GID_EMPTY;
    if (!says(type, "v2"))
        return GID_V1;
    return strncmp(gid, "fe80", 4) == 0 ? GID_LINK_LOCAL : GID_GOOD;
}

/* The best row of a port's table; NULL: it has none at all. */
static const char *best_gid(const struct knee_facts *facts, const char *port, enum gid *best)
{
    const char *index = NULL;
    *best = GID_NONE;
    for (const struct knee_fact *row = NULL; knee_fact_next(facts, "ib.gid.*", &row);) {
        const char *at = row->key + strlen("ib.gid.");
        if (strcmp(row->subject, port) != 0)
            continue;
        enum gid gid = gid_at(facts, port, at);
        if (gid > *best) {
            *best = gid;
            index = at;
        }
    }
    return index;
}

static void gid_is_useless(struct knee_exam *exam, const char *wanted)
{
    knee_blame(exam, "gid_index_useless", "NCCL_IB_GID_INDEX", NAN,
               "NCCL_IB_GID_INDEX=%s on InfiniBand", wanted);
}

static void check_port_gids(struct knee_exam *exam, const char *port, const char *wanted)
{
    enum gid best;
    const char *layer = text(exam->facts, port, "ib.layer"),
               *state = text(exam->facts, port, "ib.state");
    const char *index = best_gid(exam->facts, port, &best);
    if (says(layer, "InfiniBand")) {
        if (wanted)
            gid_is_useless(exam, wanted);
        return;
    }
    if (!index || (layer && !says(layer, "Ethernet")) || /* EFA has none and needs none */
        (state && !says(state, "ctive") && !says(state, "ACTIVE")))
        return;
    enum gid set = wanted ? gid_at(exam->facts, port, wanted) : GID_GOOD;
    if (wanted && set != GID_GOOD)
        knee_blame(exam, "gid_index", port, NAN, "NCCL_IB_GID_INDEX=%s is %s; %s is %s", wanted,
                   gid_words[set], index, gid_words[best]);
    else if (best != GID_GOOD)
        knee_blame(exam, "ip_missing", port, NAN,
                   "its best GID is %s: the port has no routed address", gid_words[best]);
    else if (!wanted && gid_at(exam->facts, port, "3") != GID_GOOD)
        knee_blame(exam, "gid_index_unusual", port, NAN,
                   "the routed RoCE v2 row is %s here, not 3 as on most hosts", index);
}

/* Without the table: the kernel fills it in pairs, RoCE v1 then v2, the link-local pair first. */
static void guess_gid(struct knee_exam *exam, const char *wanted)
{
    double row = NAN;
    knee_slice_number(knee_slice_of(wanted), &row);
    if (says(text(exam->facts, NULL, "ib.layer"), "InfiniBand"))
        gid_is_useless(exam, wanted);
    else if (row == 1 || fmod(row, 2) == 0)
        knee_blame_at(
            exam, KNEE_WARNING, "gid_index", "NCCL_IB_GID_INDEX", NAN,
            "row %s of a GID table is %s as kernels fill it; the table itself is not here", wanted,
            row == 1 ? "link-local: not routed" : "RoCE v1");
}

void knee_check_gids(struct knee_exam *exam)
{
    const char *wanted = text(exam->facts, "NCCL_IB_GID_INDEX", "env");
    size_t first, end = knee_facts_range(exam->facts, "ib.gid.*", &first);
    const char *done[PORTS_MAX];
    size_t count = 0, further = 0;
    if (wanted && (!wanted[0] || wanted[0] == '-'))
        wanted = NULL;
    for (size_t i = first; i < end; i++) {
        const char *port = exam->facts->rows[i].subject;
        size_t k = 0;
        while (k < count && strcmp(done[k], port) != 0)
            k++;
        if (k < count)
            continue;
        if (count == PORTS_MAX) {
            further++;
            continue;
        }
        done[count++] = port;
        check_port_gids(exam, port, wanted);
    }
    if (further)
        knee_blame(exam, "ports_many", "", NAN, "%zu GIDs of further ports were not looked at",
                   further);
    if (first == end && wanted)
        guess_gid(exam, wanted);
}
