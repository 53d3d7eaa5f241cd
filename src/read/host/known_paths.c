/* SPDX-License-Identifier: MIT */
/*
 * The files of a host that are worth reading: data/host_paths.csv says what each gives. The same
 * table tells the program what to open, on a live host and in a saved one.
 */
#include "read/host/host_read.h"

#include "base/format.h"

#include <string.h>

const char *knee_host_path(size_t row)
{
    return row < knee_host_paths_count ? knee_host_paths[row].path : NULL;
}

/* Matches a path against a row; the stars' names come out. */
static bool matches(const char *pattern, const char *path, struct knee_slice star[3])
{
    size_t stars = 0;
    while (*pattern && *path) {
        if (*pattern == '*' && stars < 3) {
            size_t length = strcspn(path, "/");
            star[stars++] = (struct knee_slice){path, length};
            path += length;
            pattern++;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return !*pattern && !*path;
}

/* ---- Values that stand inside a file ---- */

/* "Cpus_allowed_list:	0-31" of proc/self/status */
static void after_label(struct knee_facts *facts, const char *key, struct knee_slice text,
                        const char *label)
{
    struct knee_slice line;
    while (knee_slice_line(&text, &line))
        if (knee_slice_starts(line, label)) {
            knee_fact_put(facts, "", key, knee_slice_from(line, strlen(label)));
            return;
        }
}

/* "cpu  user nice system idle iowait irq softirq steal ...": the share stolen since boot. */
static void steal(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line, word;
    double value[9], sum = 0;
    size_t count = 0;
    if (!knee_slice_line(&text, &line) || !knee_slice_word(&line, &word))
        return;
    while (count < 8 && knee_slice_word(&line, &word) && knee_slice_number(word, &value[count]))
        sum += value[count++];
    if (count == 8 && sum > 0)
        knee_fact_number(facts, "", "cpu.steal", value[7] / sum);
}

/* "some avg10=0.00 avg60=3.20 ..." */
static void pressure(struct knee_facts *facts, struct knee_slice text)
{
    size_t at = knee_slice_find(text, "avg60=");
    struct knee_slice rest = knee_slice_from(text, at + 6), word;
    if (at < text.length && knee_slice_word(&rest, &word))
        knee_fact_put(facts, "", "pressure.cpu", word);
}

/* "200000 100000" is two CPUs; "max 100000" means unlimited. */
static void quota(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice word;
    double most, period;
    struct knee_slice rest = text;
    knee_slice_line(&rest, &text);
    if (knee_slice_word(&text, &word) && knee_slice_number(word, &most) &&
        knee_slice_word(&text, &word) && knee_slice_number(word, &period) && period > 0)
        knee_fact_number(facts, "", "cgroup.cpus", most / period);
}

/* "nr_periods 1000", "nr_throttled 700": the share of periods in which the quota was used up. */
static void throttled(struct knee_facts *facts, struct knee_slice text)
{
    double periods, hit;
    if (knee_slice_number_after(text, "nr_periods ", &periods) && periods > 0 &&
        knee_slice_number_after(text, "nr_throttled ", &hit))
        knee_fact_number(facts, "", "cgroup.throttled", hit / periods);
}

static const struct {
    const char *key;
    const char *label; /* of the line; NULL: see the function */
    void (*read)(struct knee_facts *facts, struct knee_slice text);
} inside[] = {
    {"process.cpus", "Cpus_allowed_list:", NULL},
    {"cpu.stat", NULL, steal},
    {"pressure.cpu", NULL, pressure},
    {"cgroup.cpu_max", NULL, quota},
    {"cgroup.cpu_stat", NULL, throttled},
};

static bool read_inside(struct knee_facts *facts, const char *key, struct knee_slice text)
{
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        if (strcmp(inside[i].key, key) != 0)
            continue;
        if (inside[i].label)
            after_label(facts, key, text, inside[i].label);
        else
            inside[i].read(facts, text);
        return true;
    }
    return false;
}

bool knee_read_known_path(struct knee_facts *facts, const char *path, struct knee_slice text)
{
    for (size_t i = 0; i < knee_host_paths_count; i++) {
        struct knee_slice star[3] = {{"", 0}, {"", 0}, {"", 0}}, line;
        char subject[96], key[96];
        const struct knee_host_path *row = &knee_host_paths[i];
        if (!matches(row->path, path, star))
            continue;
        if (row->reader)
            return row->reader(facts, text);
        if (read_inside(facts, row->key, text))
            return true;
        knee_format(subject, sizeof subject, "%.*s%s%.*s",
                    (int)(star[0].length < 40 ? star[0].length : 40), star[0].at,
                    row->join ? ":" : "",
                    row->join ? (int)(star[1].length < 40 ? star[1].length : 40) : 0, star[1].at);
        knee_format(key, sizeof key, "%s%.*s", row->key,
                    (int)(star[2].length < 60 ? star[2].length : 60), star[2].at);
        while (text.length > 0 && text.at[0] == '\n')
            text = knee_slice_from(text, 1);
        if (!knee_slice_line(&text, &line))
            line = knee_slice_of("");
        knee_fact_put(facts, subject, key, line);
        return true;
    }
    return false;
}

/* grep -r . /sys/class/infiniband: "/sys/class/infiniband/mlx5_0/ports/1/state:4: ACTIVE".
 * Addresses of the PCI bus have colons too: the path ends where a known one does. */
static bool path_line(struct knee_facts *facts, struct knee_slice line)
{
    char path[160];
    if (line.length > 0 && line.at[0] == '/')
        line = knee_slice_from(line, 1);
    if (!knee_slice_starts(line, "sys/") && !knee_slice_starts(line, "proc/"))
        return false;
    for (size_t i = 0; i < line.length && i < sizeof path; i++) {
        if (line.at[i] != ':')
            continue;
        knee_slice_copy((struct knee_slice){line.at, i}, path, sizeof path);
        if (knee_read_known_path(facts, path, knee_slice_trim(knee_slice_from(line, i + 1))))
            return true;
    }
    return false;
}

bool knee_read_paths(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line;
    bool any = false;
    while (knee_slice_line(&text, &line))
        any = path_line(facts, line) || any;
    return any;
}
