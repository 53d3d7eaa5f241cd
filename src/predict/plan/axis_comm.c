/* SPDX-License-Identifier: MIT */
#include "predict/plan/axis_comm.h"

#include <math.h>

/* Members of the group that sit in one node. */
static double in_node(const struct knee_machine *machine, struct knee_group group)
{
    return fmax(1, fmin(group.size, machine->node_size / group.stride));
}

static double node_rate(const struct knee_machine *machine)
{
    return machine->rates.node_link * machine->node_bytes_per_s;
}

static double network_rate(const struct knee_machine *machine)
{
    return machine->rates.network * machine->network_bytes_per_s;
}

/* A ring enters and leaves each node once per channel; with `inside` members there, their shares of
 * the NICs carry it side by side. */
static double ring_rate(const struct knee_machine *machine, struct knee_group group)
{
    double inside = in_node(machine, group);
    if (inside >= group.size)
        return node_rate(machine);
    return fmin(network_rate(machine) * inside, node_rate(machine));
}

/* Hops of a ring: cheap ones inside nodes, one between each pair of neighbouring nodes. */
static double ring_latency_s(const struct knee_machine *machine, struct knee_group group)
{
    double inside = in_node(machine, group), nodes = group.size / inside;
    double in = machine->rates.node_latency_s * (1 + 0.25 * (inside - 1));
    return in + fmax(0, nodes - 1) * machine->rates.network_latency_s;
}

double knee_gather_s(const struct knee_machine *machine, struct knee_group group, double bytes)
{
    if (group.size <= 1)
        return 0;
    double moved = (group.size - 1) / group.size * bytes;
    return ring_latency_s(machine, group) + moved / ring_rate(machine, group);
}

double knee_gathers_s(const struct knee_machine *machine, struct knee_group group, double bytes,
                      double calls)
{
    if (group.size <= 1)
        return 0;
    return knee_gather_s(machine, group, bytes) +
           (fmax(1, calls) - 1) * ring_latency_s(machine, group);
}

double knee_exchange_s(const struct knee_machine *machine, struct knee_group group, double bytes)
{
    if (group.size <= 1)
        return 0;
    double inside = in_node(machine, group), each = bytes / group.size;
    double out = each * (group.size - inside), in = each * (inside - 1);
    double latency = 2 * machine->rates.node_latency_s;
    if (out > 0)
        latency += machine->rates.network_latency_s;
    return latency + fmax(in / node_rate(machine), out / network_rate(machine));
}

double knee_send_s(const struct knee_machine *machine, double stride, double bytes)
{
    if (stride < machine->node_size)
        return machine->rates.node_latency_s + bytes / node_rate(machine);
    return machine->rates.network_latency_s + bytes / network_rate(machine);
}
