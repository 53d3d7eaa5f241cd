/* SPDX-License-Identifier: MIT */
/*
 * Ports of InfiniBand and RoCE as the tools print them: ibstat, ibstatus, ibv_devinfo -v,
 * show_gids. A port is "mlx5_0:1". The same facts come from /sys (known_paths.c); a port that is
 * down prints a rate that was not negotiated.
 */
#include "read/host/host_read.h"

#include "base/format.h"

#include <math.h>
#include <string.h>

struct port {
    char device[32], name[48];
};

static struct knee_slice between(struct knee_slice line, char quote)
{
    struct knee_slice piece = {line.at, 0};
    knee_slice_until(&line, quote, &piece);
    knee_slice_until(&line, quote, &piece);
    return piece;
}

static void set_port(struct port *port, double number)
{
    knee_format(port->name, sizeof port->name, "%s:%.0f", port->device, number);
}

/* "name: value"; false if the line has no colon. */
static bool pair(struct knee_slice line, struct knee_slice *name, struct knee_slice *value)
{
    size_t colon = knee_slice_find(line, ":");
    *name = knee_slice_trim((struct knee_slice){line.at, colon});
    *value = knee_slice_trim(knee_slice_from(line, colon + 1));
    return colon < line.length && name->length > 0;
}

static const struct {
    const char *word, *key;
} stat_words[] = {
    {"State", "ib.state"},      {"Physical state", "ib.phys"}, {"Rate", "ib.rate"},
    {"Link layer", "ib.layer"}, {"Base lid", "ib.lid"},        {"state", "ib.state"},
    {"phys state", "ib.phys"},  {"rate", "ib.rate"},           {"link_layer", "ib.layer"},
    {"phys_state", "ib.phys"},  {"SM lid", "ib.sm_lid"},
};

static void stat_line(struct knee_facts *facts, struct port *port, struct knee_slice line)
{
    struct knee_slice name, value;
    double number;
    if (!pair(line, &name, &value) || !port->device[0])
        return;
    if (knee_slice_starts(name, "Port ") && knee_slice_number(knee_slice_from(name, 5), &number)) {
        set_port(port, number);
        return;
    }
    if (knee_slice_is(name, "CA type"))
        knee_fact_put(facts, port->device, "ib.type", value);
    if (knee_slice_is(name, "Firmware version"))
        knee_fact_put(facts, port->device, "ib.firmware", value);
    for (size_t i = 0; i < sizeof stat_words / sizeof *stat_words; i++)
        if (port->name[0] && knee_slice_is(name, stat_words[i].word))
            knee_fact_put(facts, port->name, stat_words[i].key, value);
}

bool knee_read_ibstat(struct knee_facts *facts, struct knee_slice text)
{
    struct port port = {0};
    struct knee_slice line;
    if (!knee_slice_has(text, "CA '") || !knee_slice_has(text, "CA type"))
        return false;
    while (knee_slice_line(&text, &line)) {
        if (knee_slice_starts(line, "CA '")) {
            port = (struct port){0};
            knee_slice_copy(between(line, '\''), port.device, sizeof port.device);
        } else if (knee_slice_starts(line, "ibpanic") || knee_slice_has(line, "ibpanic:")) {
            knee_slice_copy(between(line, '\''), port.device, sizeof port.device);
            knee_fact_put(facts, port.device, "ib.panic", line);
        } else {
            stat_line(facts, &port, line);
        }
    }
    return true;
}

bool knee_read_ibstatus(struct knee_facts *facts, struct knee_slice text)
{
    struct port port = {0};
    struct knee_slice line;
    double number;
    if (!knee_slice_has(text, "Infiniband device '"))
        return false;
    while (knee_slice_line(&text, &line)) {
        if (knee_slice_starts(line, "Infiniband device '")) {
            port = (struct port){0};
            knee_slice_copy(between(line, '\''), port.device, sizeof port.device);
            if (knee_slice_number_after(line, "' port ", &number))
                set_port(&port, number);
        } else {
            stat_line(facts, &port, line);
        }
    }
    return true;
}

/* ---- GIDs ---- */

/* "ib.gid.3" "::ffff:200.0.209.6 RoCE v2": address, then type. */
static void add_gid(struct knee_facts *facts, const char *port, double index, struct knee_slice gid,
                    const char *type)
{
    char key[32], value[128];
    knee_format(key, sizeof key, "ib.gid.%.0f", index);
    knee_format(value, sizeof value, "%.*s %s", (int)(gid.length < 60 ? gid.length : 60), gid.at,
                type);
    knee_fact_put(facts, port, key, knee_slice_of(value));
}

/* "4X (2)" */
static double lanes_of(struct knee_slice value)
{
    double lanes = NAN;
    value.length = knee_slice_find(value, "X");
    knee_slice_number(value, &lanes);
    return lanes;
}

/* "100.0 Gbps (128)" is that of one lane. */
static void set_rate(struct knee_facts *facts, const char *port, double lanes,
                     struct knee_slice value)
{
    char rate[48];
    double speed;
    value.length = knee_slice_find(value, " Gbps");
    if (isnan(lanes) || !knee_slice_number(value, &speed))
        return;
    knee_format(rate, sizeof rate, "%.0f Gb/sec (%.0fX)", lanes * speed, lanes);
    knee_fact_put(facts, port, "ib.rate", knee_slice_of(rate));
}

/* hca_id: mlx5_0 / port: 1 / "GID[  3]:   ::ffff:200.0.209.6, RoCE v2" */
bool knee_read_devinfo(struct knee_facts *facts, struct knee_slice text)
{
    struct port port = {"hca", "hca:1"};
    struct knee_slice line, name, value;
    double number, lanes = NAN;
    if (!knee_slice_has(text, "GID[") && !knee_slice_has(text, "hca_id:"))
        return false;
    while (knee_slice_line(&text, &line)) {
        if (!pair(line, &name, &value))
            continue;
        if (knee_slice_is(name, "hca_id"))
            knee_slice_copy(value, port.device, sizeof port.device);
        else if (knee_slice_is(name, "port") && knee_slice_number(value, &number))
            set_port(&port, number);
        else if (knee_slice_starts(name, "GID[") &&
                 knee_slice_number_after(name, "GID[", &number)) {
            struct knee_slice rest = value, gid;
            knee_slice_until(&rest, ',', &gid);
            add_gid(facts, port.name, number, gid,
                    knee_slice_has(rest, "v2") ? "RoCE v2" : "RoCE v1");
        } else if (knee_slice_is(name, "state"))
            knee_fact_put(facts, port.name, "ib.state",
                          knee_slice_of(knee_slice_has(value, "ACTIVE") ? "Active" : "Down"));
        else if (knee_slice_is(name, "link_layer"))
            knee_fact_put(facts, port.name, "ib.layer", value);
        else if (knee_slice_is(name, "active_width"))
            lanes = lanes_of(value);
        else if (knee_slice_is(name, "active_speed"))
            set_rate(facts, port.name, lanes, value);
    }
    return true;
}

/* DEV PORT INDEX GID [IPv4] VER DEV */
bool knee_read_show_gids(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line, word[7];
    bool head = false;
    if (!knee_slice_has(text, "INDEX") || !knee_slice_has(text, "GID"))
        return false;
    while (knee_slice_line(&text, &line)) {
        size_t count = 0;
        double port, index;
        while (count < 7 && knee_slice_word(&line, &word[count]))
            count++;
        head = head || (count > 3 && knee_slice_is(word[0], "DEV"));
        if (!head || count < 5 || !knee_slice_number(word[1], &port) ||
            !knee_slice_number(word[2], &index))
            continue;
        char device[32], name[48];
        knee_slice_copy(word[0], device, sizeof device);
        knee_format(name, sizeof name, "%s:%.0f", device, port);
        bool second = knee_slice_is(word[4], "v2") || (count > 5 && knee_slice_is(word[5], "v2"));
        add_gid(facts, name, index, word[3], second ? "RoCE v2" : "RoCE v1");
    }
    return head;
}
