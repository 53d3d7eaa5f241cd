/* SPDX-License-Identifier: MIT */
/*
 * What says outright that something is wrong: nvidia-smi that fails, dcgmi health and diag, the
 * states of the fabric manager and of IMEX, chronyc tracking and timedatectl.
 */
#include "read/host/host_read.h"

#include "base/format.h"

#include <string.h>

/* ---- nvidia-smi, when it has nothing else to say ---- */

static const char *const failures[] = {
    "NVIDIA-SMI has failed because",
    "Failed to initialize NVML:",
    "No devices were found",
    "NVIDIA-SMI couldn't find libnvidia-ml",
};

/* "Unable to determine the device handle for GPU 0000:5D:00.0: GPU is lost." */
static bool lost_gpu(struct knee_facts *facts, struct knee_slice line)
{
    static const char *const before = "Unable to determine the device handle for ";
    size_t at = knee_slice_find(line, before);
    char gpu[48] = "";
    if (at == line.length && !knee_slice_has(line, "GPU is lost"))
        return false;
    struct knee_slice rest = knee_slice_from(line, at + strlen(before)), word;
    if (knee_slice_starts(rest, "GPU"))
        rest = knee_slice_from(rest, 3);
    if (knee_slice_word(&rest, &word)) {
        while (word.length > 0 && word.at[word.length - 1] == ':')
            word.length--;
        knee_gpu_subject(word, gpu, sizeof gpu);
    }
    knee_fact_put(facts, gpu, "gpu.lost", line);
    return true;
}

bool knee_read_smi_failure(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line;
    bool any = false;
    while (knee_slice_line(&text, &line)) {
        any = lost_gpu(facts, line) || any;
        for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
            if (knee_slice_starts(line, failures[i])) {
                knee_fact_put(facts, "", "smi.failed", line);
                any = true;
            }
    }
    return any;
}

/* ---- dcgmi health -c, dcgmi diag ---- */

/* "| PCIe    | Fail - GPU: 5   |": its two cells; false: no such row. */
static bool cells(struct knee_slice line, struct knee_slice *name, struct knee_slice *value)
{
    struct knee_slice piece, rest = knee_slice_trim(line);
    if (!knee_slice_starts(rest, "|"))
        return false;
    rest = knee_slice_from(rest, 1);
    if (!knee_slice_until(&rest, '|', name) || !knee_slice_until(&rest, '|', &piece))
        return false;
    *name = knee_slice_trim(*name);
    *value = knee_slice_trim(piece);
    return true;
}

bool knee_read_dcgm(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line, name, value;
    if (!knee_slice_has(text, "| Overall Health") &&
        !(knee_slice_has(text, "| Diagnostic") && knee_slice_has(text, "| Result")))
        return false;
    while (knee_slice_line(&text, &line)) {
        char row[160];
        if (!cells(line, &name, &value))
            continue;
        bool bad = knee_slice_starts(value, "Fail"),
             poor = knee_slice_is(value, "Warning") || knee_slice_starts(value, "Warn ");
        knee_format(row, sizeof row, "%.*s: %.*s", (int)(name.length < 60 ? name.length : 60),
                    name.at, (int)(value.length < 80 ? value.length : 80), value.at);
        if (bad || poor)
            knee_fact_count(facts, "", bad ? "dcgm.failure" : "dcgm.warning", knee_slice_of(row));
    }
    knee_fact_put(facts, "", "dcgm.read", knee_slice_of("yes"));
    return true;
}

/* ---- The fabric manager: systemctl status, is-active, list-units ---- */

#define SERVICE "nvidia-fabricmanager"

static void set_service(struct knee_facts *facts, struct knee_slice state)
{
    knee_fact_put(facts, SERVICE, "service.state", state);
}

/* "nvidia-fabricmanager.service loaded failed failed NVIDIA fabric manager service" */
static bool unit_line(struct knee_facts *facts, struct knee_slice line)
{
    struct knee_slice word, load, active;
    bool here = false;
    while (!here && knee_slice_word(&line, &word))
        here = knee_slice_starts(word, SERVICE);
    if (!here || !knee_slice_word(&line, &load) || !knee_slice_is(load, "loaded") ||
        !knee_slice_word(&line, &active))
        return false;
    set_service(facts,
                knee_slice_is(active, "active") ? knee_slice_of("active (running)") : active);
    return true;
}

bool knee_read_fabric_service(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line;
    bool status = knee_slice_has(text, "Active: ");
    if (!knee_slice_has(text, "fabricmanager.service"))
        return false;
    for (bool here = false; knee_slice_line(&text, &line);) {
        size_t at = knee_slice_find(line, "Active: ");
        /* Of a list of services' status, the one of ours. */
        here = knee_slice_has(line, ".service - ") ? knee_slice_has(line, SERVICE) : here;
        if (status && here && at < line.length) {
            set_service(facts, knee_slice_from(line, at + 8));
            return true;
        }
        if (!status && unit_line(facts, line))
            return true;
    }
    return false;
}

/* systemctl is-active: one word, in a file that is named after the service. */
bool knee_read_fabric_word(struct knee_facts *facts, struct knee_slice text)
{
    static const char *const states[] = {"inactive", "failed", "activating", "deactivating"};
    struct knee_slice word = knee_slice_trim(text);
    word.length = knee_slice_find(word, "\n");
    if (knee_slice_is(word, "active"))
        set_service(facts, knee_slice_of("active (running)"));
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (knee_slice_is(word, states[i])) {
            set_service(facts, word);
            return true;
        }
    return knee_slice_is(word, "active") || knee_slice_is(word, "unknown");
}

/* ---- nvidia-imex-ctl -N ---- */

bool knee_read_imex(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line;
    while (knee_slice_line(&text, &line)) {
        size_t at = knee_slice_find(line, "Domain State: ");
        if (at == line.length)
            continue;
        knee_fact_put(facts, "", "imex.domain", knee_slice_from(line, at + 14));
        return true;
    }
    return false;
}

/* ---- chronyc tracking, timedatectl ---- */

bool knee_read_clock(struct knee_facts *facts, struct knee_slice text)
{
    static const char *const labels[][2] = {{"Leap status", "clock.leap"},
                                            {"System time", "clock.offset"},
                                            {"System clock synchronized", "clock.synchronised"},
                                            {"NTP synchronized", "clock.synchronised"}};
    struct knee_slice line;
    if (!knee_slice_has(text, "Leap status") && !knee_slice_has(text, "synchronized:"))
        return false;
    while (knee_slice_line(&text, &line)) {
        size_t colon = knee_slice_find(line, ":");
        struct knee_slice name = knee_slice_trim((struct knee_slice){line.at, colon});
        for (size_t i = 0; i < sizeof labels / sizeof *labels && colon < line.length; i++)
            if (knee_slice_is(name, labels[i][0]))
                knee_fact_put(facts, "", labels[i][1],
                              knee_slice_trim(knee_slice_from(line, colon + 1)));
    }
    return true;
}
