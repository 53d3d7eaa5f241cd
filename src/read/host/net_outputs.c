/* SPDX-License-Identifier: MIT */
/* Interfaces as the tools print them: ip link, ip addr, ifconfig, ibdev2netdev, ethtool; and the
 * size of /dev/shm in a list of mounts or in df. */
#include "read/host/host_read.h"

#include "base/format.h"

#include <math.h>
#include <string.h>

/* ---- ip link, ip addr: "3: ens1np0@if4: <BROADCAST,UP> mtu 9000 qdisc mq state UP ..."
 * ifconfig: "eth0: flags=4163<UP,BROADCAST,RUNNING>  mtu 1500" ---- */

static bool interface_line(struct knee_facts *facts, struct knee_slice line)
{
    struct knee_slice rest = line, word;
    char name[48];
    double mtu, number;
    if (!knee_slice_word(&rest, &word) || !knee_slice_number_after(line, "> mtu ", &mtu))
        if (!knee_slice_number_after(line, ">  mtu ", &mtu))
            return false;
    if (word.length < 2 || word.at[word.length - 1] != ':')
        return false;
    word.length--;
    if (knee_slice_number(word, &number)) { /* ip counts them */
        if (!knee_slice_word(&rest, &word) || word.length < 2 || word.at[word.length - 1] != ':')
            return false;
        word.length--;
    }
    word.length = knee_slice_find(word, "@");
    knee_slice_copy(word, name, sizeof name);
    knee_fact_number(facts, name, "net.mtu", mtu);
    if (knee_slice_has(line, "state UP") || knee_slice_has(line, "RUNNING"))
        knee_fact_put(facts, name, "net.state", knee_slice_of("up"));
    else if (knee_slice_has(line, "state DOWN"))
        knee_fact_put(facts, name, "net.state", knee_slice_of("down"));
    return true;
}

bool knee_read_ip_link(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line;
    bool any = false;
    if (!knee_slice_has(text, "> mtu ") && !knee_slice_has(text, ">  mtu "))
        return false;
    while (knee_slice_line(&text, &line))
        any = interface_line(facts, line) || any;
    return any;
}

/* ---- ibdev2netdev: "mlx5_3 port 1 ==> ib3 (Down)" ---- */

bool knee_read_ibdev2netdev(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line, word;
    bool any = false;
    while (knee_slice_line(&text, &line)) {
        char device[32], port[48];
        double number;
        size_t arrow = knee_slice_find(line, " ==> ");
        if (arrow == line.length || !knee_slice_number_after(line, " port ", &number))
            continue;
        /* With -v an address stands before the device. */
        struct knee_slice before = {line.at, knee_slice_find(line, " port ")};
        while (knee_slice_word(&before, &word) && knee_slice_has(word, ":"))
            ;
        knee_slice_copy(word, device, sizeof device);
        knee_format(port, sizeof port, "%s:%.0f", device, number);
        knee_fact_put(facts, port, "ib.state",
                      knee_slice_of(knee_slice_has(line, "(Up)") ? "Active" : "Down"));
        any = true;
    }
    return any;
}

/* ---- ethtool ---- */

/* "100000baseCR4/Full": the fastest that the adapter can do, in Mb/s. */
static double fastest_mode(struct knee_slice line)
{
    struct knee_slice word;
    double best = 0, speed;
    while (knee_slice_word(&line, &word)) {
        word.length = knee_slice_find(word, "base");
        if (knee_slice_number(word, &speed))
            best = fmax(best, speed);
    }
    return best;
}

bool knee_read_ethtool(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line;
    char name[48] = "";
    bool any = false, supported = false;
    double best = 0;
    if (!knee_slice_has(text, "ettings for ") && !knee_slice_has(text, "NIC statistics:") &&
        !knee_slice_has(text, "bus-info:"))
        return false;
    while (knee_slice_line(&text, &line)) {
        struct knee_slice inner = knee_slice_trim(line);
        any = true;
        if (knee_slice_starts(inner, "Settings for ")) {
            struct knee_slice rest = knee_slice_from(inner, 13), word;
            knee_slice_until(&rest, ':', &word);
            knee_slice_copy(word, name, sizeof name);
            best = 0;
        } else if (!name[0]) {
            continue;
        } else if (knee_slice_starts(inner, "Speed: ")) {
            knee_fact_put(facts, name, "net.speed", knee_slice_from(inner, 7));
        } else if (knee_slice_starts(inner, "Duplex: ")) {
            knee_fact_put(facts, name, "net.duplex", knee_slice_from(inner, 8));
        }
        /* The list of modes goes on over lines without a colon. */
        supported = knee_slice_has(inner, ":") ? knee_slice_starts(inner, "Supported link modes")
                                               : supported;
        if (supported && fastest_mode(inner) > best)
            knee_fact_number(facts, name, "net.speed_max", best = fastest_mode(inner));
    }
    return any;
}

/* ---- /dev/shm ---- */

/* "65536k", "1G", "64M": bytes; in KiB without a letter when `kilo`. */
static bool size_of(struct knee_slice word, bool kilo, double *bytes)
{
    static const char letters[] = "KMGTkmgt";
    double unit = kilo ? 1024 : 1, number;
    if (word.length == 0)
        return false;
    char last = word.at[word.length - 1];
    const char *letter = last ? strchr(letters, last) : NULL;
    if (letter) {
        unit = pow(1024, (double)((letter - letters) % 4 + 1));
        word.length--;
    }
    if (!knee_slice_number(word, &number))
        return false;
    *bytes = number * unit;
    return true;
}

/* "shm  64M  0  64M  0% /dev/shm", in KiB without a letter */
bool knee_read_df(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line, word;
    if (!knee_slice_has(text, "Filesystem") || !knee_slice_has(text, "/dev/shm"))
        return false;
    while (knee_slice_line(&text, &line)) {
        double bytes;
        if (!knee_slice_has(line, " /dev/shm") || !knee_slice_word(&line, &word) ||
            !knee_slice_word(&line, &word) || !size_of(word, true, &bytes))
            continue;
        knee_fact_number(facts, "", "shm.bytes", bytes);
        return true;
    }
    return false;
}

/* The kernel's list of mounts, mountinfo, and mount: "shm /dev/shm tmpfs rw,nosuid,size=65536k 0
 * 0". Without a size it is half of the memory. */
bool knee_read_mounts(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line, size;
    bool any = false;
    while (knee_slice_line(&text, &line)) {
        double bytes;
        any = any || knee_slice_has(line, " / ") || knee_slice_has(line, " /proc ");
        if (!knee_slice_has(line, " /dev/shm ") || !knee_slice_has(line, "tmpfs"))
            continue;
        any = true;
        size_t at = knee_slice_find(line, "size=");
        if (at == line.length)
            continue;
        size = knee_slice_from(line, at + 5);
        for (size_t i = 0; i < size.length; i++)
            if (strchr(", )", size.at[i]))
                size.length = i;
        if (size_of(size, false, &bytes))
            knee_fact_number(facts, "", "shm.bytes", bytes);
    }
    return any;
}
