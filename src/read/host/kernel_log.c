/* SPDX-License-Identifier: MIT */
/*
 * The kernel's log (dmesg, /dev/kmsg, pstore, journalctl -k) and the fabric manager's: Xid and SXid
 * with their device, and a table of words for the rest. Each kind is counted per device; the first
 * line is kept as evidence.
 */
#include "read/host/host_read.h"

#include "base/format.h"

#include <string.h>

/* What makes a text a kernel's log although nothing in it is wrong. */
static const char *const signs[] = {"kern  :",        "NVRM:",    "[    0.000000]",
                                    "Linux version ", "kernel: ", "nvidia-nvswitch",
                                    "SUBSYSTEM=",     "[tid "};

/* "[   12.345678] ...", as dmesg prints; "6,339,5140900,-;..." as /dev/kmsg does. */
static bool is_kernel_line(struct knee_slice line)
{
    double number;
    struct knee_slice piece, rest = line;
    if (knee_slice_starts(line, "[")) {
        rest = knee_slice_from(line, 1);
        knee_slice_until(&rest, ']', &piece);
        piece = knee_slice_trim(piece);
        return knee_slice_has(piece, ".") && knee_slice_number(piece, &number);
    }
    return knee_slice_has(line, ",-;") && knee_slice_until(&rest, ',', &piece) &&
           knee_slice_number(piece, &number);
}

/* The device of "(PCI:0000:05:00): 79, ...". */
static struct knee_slice device_after(struct knee_slice line, const char *word)
{
    struct knee_slice rest = knee_slice_from(line, knee_slice_find(line, word) + strlen(word)),
                      piece;
    size_t end = knee_slice_find(rest, ")");
    piece = (struct knee_slice){rest.at, end < rest.length ? end : 0};
    return piece;
}

static void add_xid(struct knee_facts *facts, const char *device, double number,
                    struct knee_slice line, bool fatal)
{
    char key[32];
    knee_format(key, sizeof key, "xid.%.0f%s", number, fatal ? ".fatal" : "");
    knee_fact_count(facts, device, key, line);
}

/* "NVRM: Xid (PCI:0000:04:00): 149, NETIR_LINK_EVT Fatal XC0 ...", "... 45, ... caused by previous
 * Xid 149": the former one is the cause, whether its own line is there or not. */
static bool xid_line(struct knee_facts *facts, struct knee_slice line)
{
    char device[48];
    double number, before;
    bool pci = knee_slice_has(line, "NVRM: Xid (PCI:"); /* drivers before 361 wrote none */
    if (!(pci || knee_slice_has(line, "NVRM: Xid (")) ||
        !knee_slice_number_after(line, "): ", &number))
        return false;
    knee_gpu_subject(device_after(line, pci ? "Xid (PCI:" : "Xid ("), device, sizeof device);
    add_xid(facts, device, number, line, knee_slice_has(line, " Fatal"));
    if (knee_slice_number_after(line, "caused by previous Xid ", &before))
        add_xid(facts, device, before, line, false);
    return true;
}

/* "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 ...", and the fabric
 * manager's "detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci bus id
 * 00000000:83:00.0". */
static bool sxid_line(struct knee_facts *facts, struct knee_slice line)
{
    char device[64], key[32];
    double number;
    bool kernel =
        knee_slice_has(line, "SXid (PCI:") && knee_slice_number_after(line, "): ", &number);
    if (!kernel && !(knee_slice_has(line, "detected NVSwitch ") &&
                     knee_slice_number_after(line, "fatal error ", &number)))
        return false;
    if (kernel && knee_slice_has(line, "Data {"))
        return true; /* the rest of the line before */
    bool fatal = !knee_slice_has(line, "on-fatal") && !knee_slice_has(line, "on fatal");
    struct knee_slice bus = device_after(line, "SXid (PCI:");
    if (!kernel) {
        struct knee_slice rest = knee_slice_from(line, knee_slice_find(line, "pci bus id ") + 11);
        knee_slice_word(&rest, &bus);
        bus = knee_slice_from(bus, 4);
    }
    knee_format(device, sizeof device, "NVSwitch %.*s", (int)(bus.length < 20 ? bus.length : 20),
                bus.at);
    knee_format(key, sizeof key, "sxid.%s", fatal ? "fatal" : "nonfatal");
    knee_fact_count(facts, device, key, line);
    return true;
}

/* The device a line of a driver speaks of: "mlx5_core 0000:41:00.0: ...", "... 0000:41:00.0 ens1:
 * ...". */
static void device_in(struct knee_slice line, char *out, size_t size)
{
    struct knee_slice word;
    out[0] = '\0';
    while (knee_slice_word(&line, &word))
        if ((word.length == 12 || word.length == 13) && word.at[4] == ':' && word.at[7] == ':' &&
            word.at[10] == '.') {
            word.length = 12;
            knee_slice_copy(word, out, size);
            return;
        }
}

static bool known_line(struct knee_facts *facts, struct knee_slice line)
{
    char device[32];
    if (xid_line(facts, line) || sxid_line(facts, line))
        return true;
    for (size_t i = 0; i < knee_kernel_lines_count; i++)
        if (knee_slice_has(line, knee_kernel_lines[i].word) &&
            (!knee_kernel_lines[i].and[0] || knee_slice_has(line, knee_kernel_lines[i].and))) {
            device_in(line, device, sizeof device);
            knee_fact_count(facts, device, knee_kernel_lines[i].key, line);
            return true;
        }
    return false;
}

bool knee_read_kernel_log(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line, whole = text;
    bool any = false;
    while (knee_slice_line(&text, &line))
        any = known_line(facts, line) || any;
    for (size_t i = 0; !any && i < sizeof signs / sizeof *signs; i++)
        any = knee_slice_has(whole, signs[i]);
    any = any || (knee_slice_line(&whole, &line) && is_kernel_line(line));
    if (any)
        knee_fact_put(facts, "", "kernel.log", knee_slice_of("read"));
    return any;
}
