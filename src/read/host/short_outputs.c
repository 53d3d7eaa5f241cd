/* SPDX-License-Identifier: MIT */
/* Outputs of a few lines: nvidia-smi --query-gpu as CSV, nvidia-smi nvlink -e, rdma link. */
#include "read/host/host_read.h"

#include "base/csv.h"
#include "base/format.h"

#include <stdlib.h>
#include <string.h>

/* ---- nvidia-smi --query-gpu=... --format=csv ---- */

/* clocks_event_reasons.active: bits. */
static const struct {
    unsigned long long bit;
    const char *key;
} events[] = {{0x8, "gpu.event.hw_slowdown"},
              {0x20, "gpu.event.sw_thermal"},
              {0x40, "gpu.event.hw_thermal"},
              {0x80, "gpu.event.hw_power_brake"}};

/* "Yes" or "Active" of a yes-or-no field that CSV writes as 1. */
static struct knee_slice yes(const char *key, struct knee_slice value)
{
    bool one = knee_slice_is(value, "1");
    if (one && (strcmp(key, "gpu.remap.pending") == 0 || strcmp(key, "gpu.remap.failure") == 0))
        return knee_slice_of("Yes");
    return value;
}

static void cell(struct knee_facts *facts, const char *gpu, struct knee_slice name,
                 struct knee_slice value)
{
    name.length = knee_slice_find(name, " ["); /* "power.limit [W]" */
    for (size_t i = 0; i < knee_smi_fields_count; i++) {
        const char *key = knee_smi_fields[i].key;
        if (name.length && knee_slice_is(name, knee_smi_fields[i].query))
            knee_fact_put(facts, strcmp(key, "driver") == 0 ? "" : gpu, key, yes(key, value));
    }
    if (!knee_slice_is(name, "clocks_event_reasons.active") &&
        !knee_slice_is(name, "clocks_throttle_reasons.active"))
        return;
    char digits[24];
    knee_slice_copy(value, digits, sizeof digits);
    unsigned long long bits = strtoull(digits, NULL, 16);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        knee_fact_put(facts, gpu, events[i].key,
                      knee_slice_of(bits & events[i].bit ? "Active" : "Not Active"));
}

/* nvidia-smi --query-compute-apps: programs, a line each. */
static bool compute_apps(struct knee_facts *facts, struct knee_csv *csv,
                         const struct knee_csv *header)
{
    size_t name = 0, rows = 0;
    while (name < header->fields && !knee_slice_is(knee_csv_slice(header, name), "process_name"))
        name++;
    if (name == header->fields)
        return false;
    for (; knee_csv_row(csv) && rows < 1024; rows++)
        if (name < csv->fields)
            knee_fact_put(facts, "", "gpu.process", knee_csv_slice(csv, name));
    return true;
}

bool knee_read_smi_csv(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_csv csv, header;
    knee_csv_init(&csv, text.at, text.length);
    size_t known = 0, rows = 0;
    if (!knee_csv_row(&csv) || csv.fields < 2)
        return false;
    header = csv;
    if (compute_apps(facts, &csv, &header))
        return true;
    for (size_t i = 0; i < header.fields; i++) {
        struct knee_slice name = knee_csv_slice(&header, i);
        name.length = knee_slice_find(name, " [");
        for (size_t k = 0; k < knee_smi_fields_count; k++)
            known += name.length && knee_slice_is(name, knee_smi_fields[k].query);
        known += knee_slice_has(name, "_reasons.active");
    }
    while (known > 0 && knee_csv_row(&csv) && rows < 1024) {
        char gpu[32];
        knee_format(gpu, sizeof gpu, "GPU %zu", rows++);
        for (size_t i = 0; i < csv.fields && i < header.fields; i++)
            cell(facts, gpu, knee_csv_slice(&header, i), knee_csv_slice(&csv, i));
    }
    return rows > 0;
}

/* ---- nvidia-smi nvlink -e ---- */

bool knee_read_nvlink_errors(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line;
    char gpu[32] = "";
    double number;
    if (!knee_slice_has(text, "Link 0: ") || !knee_slice_has(text, " Errors: "))
        return false;
    while (knee_slice_line(&text, &line)) {
        struct knee_slice trimmed = knee_slice_trim(line);
        if (knee_slice_starts(trimmed, "GPU ") && knee_slice_number_after(trimmed, "GPU ", &number))
            knee_format(gpu, sizeof gpu, "GPU %.0f", number);
        else if (knee_slice_number_after(trimmed, " Errors: ", &number) && number > 0)
            knee_fact_put(facts, gpu,
                          knee_slice_has(trimmed, "Recovery") ? "nvlink.recovered"
                                                              : "nvlink.errors",
                          trimmed);
    }
    knee_fact_put(facts, "", "nvlink.errors_read", knee_slice_of("yes"));
    return true;
}

/* ---- rdma link: "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1" ---- */

bool knee_read_rdma_link(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line, word;
    bool any = false;
    while (knee_slice_line(&text, &line)) {
        char port[48];
        struct knee_slice rest = line;
        if (!knee_slice_word(&rest, &word) || !knee_slice_is(word, "link") ||
            !knee_slice_word(&rest, &word) || !knee_slice_has(rest, "physical_state"))
            continue;
        knee_slice_copy(word, port, sizeof port);
        char *slash = strrchr(port, '/');
        if (!slash)
            continue;
        *slash = ':';
        while (knee_slice_word(&rest, &word)) {
            bool phys = knee_slice_is(word, "physical_state");
            if ((phys || knee_slice_is(word, "state")) && knee_slice_word(&rest, &word))
                knee_fact_put(facts, port, phys ? "ib.phys" : "ib.state", word);
        }
        any = true;
    }
    return any;
}
