/* SPDX-License-Identifier: MIT */
/* lspci, plain, -nn or -vvv: GPUs, NICs and bridges; with -vvv also link width and speed, ACS, and
 * which buses lie behind a bridge. */
#include "read/host/host_read.h"

#include "base/format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* "19:00.0" or "0000:19:00.0"; false: the line begins with something else. */
static bool address_of(struct knee_slice line, char *out, size_t size)
{
    struct knee_slice word;
    if (line.length == 0 || !hex(line.at[0]) || !knee_slice_word(&line, &word))
        return false;
    if (word.length != 7 && word.length != 12)
        return false;
    for (size_t i = 0; i < word.length; i++)
        if (!hex(word.at[i]) && word.at[i] != ':' && word.at[i] != '.')
            return false;
    char whole[16];
    knee_format(whole, sizeof whole, "%s%.*s", word.length == 7 ? "0000:" : "", (int)word.length,
                word.at);
    if (whole[4] != ':' || whole[7] != ':' || whole[10] != '.')
        return false;
    knee_format(out, size, "%s", whole);
    return true;
}

/* First that fits; NVSwitches are "Bridge: NVIDIA", not "PCI bridge". */
static const struct {
    const char *class, *vendor, *what;
} classes[] = {
    {"3D controller", "NVIDIA", "gpu"},
    {"VGA compatible", "NVIDIA", "gpu"},
    {"Processing accelerators", "AMD", "gpu"},
    {"Display controller", "AMD", "gpu"},
    {"PCI bridge", "", "bridge"},
    {"Bridge", "NVIDIA", "nvswitch"},
    {"Infiniband controller", "", "nic"},
    {"Ethernet controller", "Mellanox", "nic"},
    {"Ethernet controller", "EFA", "nic"},
};

static void device_line(struct knee_facts *facts, const char *device, struct knee_slice line)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (knee_slice_has(line, classes[i].class) &&
            (!classes[i].vendor[0] || knee_slice_has(line, classes[i].vendor))) {
            char gpu[48];
            knee_gpu_subject(knee_slice_of(device), gpu, sizeof gpu);
            if (strcmp(classes[i].what, "gpu") == 0 && knee_slice_has(line, "(rev ff)"))
                knee_fact_put(facts, gpu, "gpu.lost", line); /* it does not answer any more */
            knee_fact_put(facts, device, "pci.what", knee_slice_of(classes[i].what));
            knee_fact_put(facts, device, "pci.name", line);
            return;
        }
}

/* "Bus: primary=15, secondary=16, subordinate=1c" */
static void bus_line(struct knee_facts *facts, const char *device, struct knee_slice line)
{
    static const char *const words[][2] = {{"secondary=", "pci.bus_from"},
                                           {"subordinate=", "pci.bus_to"}};
    for (size_t i = 0; i < 2; i++) {
        char digits[8];
        size_t at = knee_slice_find(line, words[i][0]);
        if (at == line.length)
            return;
        knee_slice_copy(knee_slice_from(line, at + strlen(words[i][0])), digits, 3);
        knee_fact_number(facts, device, words[i][1], (double)strtoll(digits, NULL, 16));
    }
}

/* What a link can do, of the line before. */
struct link_most {
    double speed, width;
};

/* "LnkCap: Port #0, Speed 32GT/s, Width x16, ASPM not supported" */
static struct link_most most_of(struct knee_slice line)
{
    struct link_most most = {NAN, NAN};
    knee_slice_number_after(line, "Speed ", &most.speed);
    knee_slice_number_after(line, "Width x", &most.width);
    return most;
}

/* The word as lspci writes it since 3.6; before, the numbers had to be compared. */
static void put_link(struct knee_facts *facts, const char *device, const char *key,
                     struct knee_slice value, double number, double most)
{
    char text[64];
    bool less = number < most && !knee_slice_has(value, "(");
    knee_format(text, sizeof text, "%.*s%s", (int)(value.length < 40 ? value.length : 40), value.at,
                less ? " (downgraded)" : "");
    knee_fact_put(facts, device, key, knee_slice_of(text));
}

/* "LnkSta: Speed 16GT/s (downgraded), Width x8 (downgraded)" */
static void link_line(struct knee_facts *facts, const char *device, struct knee_slice line,
                      struct link_most most)
{
    struct link_most now = most_of(line);
    struct knee_slice speed = knee_slice_from(line, knee_slice_find(line, "Speed ") + 6), rest;
    size_t width = knee_slice_find(line, "Width ");
    if (width == line.length)
        return;
    struct knee_slice wide = knee_slice_from(line, width + 6);
    rest = speed;
    knee_slice_until(&rest, ',', &speed);
    rest = wide;
    knee_slice_until(&rest, ',', &wide);
    put_link(facts, device, "pci.lnk_speed", speed, now.speed, most.speed);
    put_link(facts, device, "pci.lnk_width", wide, now.width, most.width);
}

/* lspci -vvv | grep ACSCtl: no device is named; how many of them redirect. */
static bool alone(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line;
    bool any = false;
    while (knee_slice_line(&text, &line)) {
        struct knee_slice inner = knee_slice_trim(line);
        if (!knee_slice_starts(inner, "ACSCtl:"))
            continue;
        any = true;
        if (knee_slice_has(inner, "ReqRedir+") || knee_slice_has(inner, "SrcValid+")) {
            knee_fact_put(facts, "", "pci.acs", knee_slice_from(inner, 7));
            knee_fact_put(facts, "", "pci.what", knee_slice_of("bridge"));
        }
    }
    return any;
}

bool knee_read_lspci(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line, whole = text;
    char device[32] = "";
    struct link_most most = {NAN, NAN};
    size_t devices = 0, lines = 0, before = facts->count;
    while (knee_slice_line(&text, &line)) {
        lines += line.length > 0;
        struct knee_slice inner = knee_slice_trim(line);
        if (address_of(line, device, sizeof device)) {
            devices++;
            device_line(facts, device, line);
        } else if (!device[0]) {
            if (lines > 4)
                return alone(facts, whole);
        } else if (knee_slice_starts(inner, "Bus: primary=")) {
            bus_line(facts, device, inner);
        } else if (knee_slice_starts(inner, "LnkCap:")) {
            most = most_of(inner);
        } else if (knee_slice_starts(inner, "LnkSta:")) {
            link_line(facts, device, inner, most);
            most = (struct link_most){NAN, NAN};
        } else if (knee_slice_starts(inner, "ACSCtl:")) {
            knee_fact_put(facts, device, "pci.acs", knee_slice_from(inner, 7));
        }
    }
    return devices > 0 ? facts->count > before : alone(facts, whole);
}
