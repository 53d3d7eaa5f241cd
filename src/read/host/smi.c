/* SPDX-License-Identifier: MIT */
/*
 * nvidia-smi -q as text and as XML, the plain table, and --query-gpu as Prometheus text. One table
 * of fields says what each is called in text and in XML; the path below the GPU must match, so that
 * what stands under MIG devices or under "aggregate" is not taken for the GPU's. Drivers before
 * 535.54 write "throttle" for "event", and other names for power: rows of the table, not versions.
 */
#include "read/host/host_read.h"

#include "base/format.h"

#include <string.h>

#define PATH_BYTES 256
#define DEPTH_MAX  16

static const struct knee_smi_field host_fields[] = {
    {"driver", "driver_version", "Driver Version", ""},
    {"cuda", "cuda_version", "CUDA Version", ""},
    {"gpus.attached", "attached_gpus", "Attached GPUs", ""},
};

void knee_gpu_subject(struct knee_slice address, char *out, size_t size)
{
    char name[32];
    address = knee_slice_trim(address);
    size_t colons = 0;
    for (size_t i = 0; i < address.length; i++)
        colons += address.at[i] == ':';
    if (colons == 2 && address.length > 8 && address.at[8] == ':')
        address = knee_slice_from(address, 4); /* 00000000: and 0000: are the same domain */
    knee_slice_copy(address, name, sizeof name);
    for (char *c = name; *c; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    char *dot = strrchr(name, '.');
    knee_format(out, size, "GPU %s%s%s", colons == 1 ? "0000:" : "", name, dot ? "" : ".0");
}

/* ---- What both forms of -q share ---- */

struct smi {
    struct knee_facts *facts;
    char gpu[48]; /* "" before the first one */
    double gpus;
    double retired;
    bool named, ended; /* text: the GPU's first and last field were seen */
};

static void end_gpu(struct smi *smi)
{
    if (smi->gpu[0] && smi->retired > 0)
        knee_fact_number(smi->facts, smi->gpu, "gpu.retired", smi->retired);
    smi->retired = 0;
}

static void begin_gpu(struct smi *smi, struct knee_slice address)
{
    end_gpu(smi);
    knee_gpu_subject(address, smi->gpu, sizeof smi->gpu);
    smi->gpus++;
    smi->named = smi->ended = false;
}

static void take(struct smi *smi, const char *path, struct knee_slice value, bool xml)
{
    const struct knee_smi_field *table = smi->gpu[0] ? knee_smi_fields : host_fields;
    size_t count = smi->gpu[0] ? knee_smi_fields_count : sizeof host_fields / sizeof *host_fields;
    for (size_t i = 0; i < count; i++) {
        if (!path[0] || strcmp(xml ? table[i].xml : table[i].text, path) != 0)
            continue;
        size_t before = smi->facts->count;
        knee_fact_put(smi->facts, smi->gpu, table[i].key, value);
        if (smi->facts->count > before && strncmp(table[i].key, "gpu.retired.", 12) == 0 &&
            smi->facts->rows[before].number > 0)
            smi->retired += smi->facts->rows[before].number;
        return;
    }
}

/* "throttle" became "event" in 535.54, in text and in XML. */
static void modern(char *path)
{
    static const char *const words[][2] = {{"throttle", "event"}, {"Throttle", "Event"}};
    for (size_t w = 0; w < 2; w++)
        for (char *at; (at = strstr(path, words[w][0]));) {
            for (size_t i = 0; words[w][1][i]; i++)
                at[i] = words[w][1][i];
            memmove(at + 5, at + 8, strlen(at + 8) + 1);
        }
}

static void finish(struct smi *smi, bool whole)
{
    end_gpu(smi);
    knee_fact_number(smi->facts, "", "gpus.listed", smi->gpus);
    if (!whole)
        knee_fact_put(smi->facts, "", "smi.cut_off", knee_slice_of("yes"));
}

/* ---- Text: sections by how far they are indented ---- */

struct outline {
    size_t depth;
    size_t indent[DEPTH_MAX];
    char name[DEPTH_MAX][48];
};

static void leaf_path(const struct outline *o, struct knee_slice name, char *path)
{
    size_t used = 0;
    path[0] = '\0';
    for (size_t i = 0; i < o->depth && used < PATH_BYTES - 100; i++)
        used += (size_t)knee_format(path + used, PATH_BYTES - used, "%s/", o->name[i]);
    knee_slice_copy(name, path + used, PATH_BYTES - used < 100 ? PATH_BYTES - used : 100);
    modern(path);
}

static void text_line(struct smi *smi, struct outline *o, struct knee_slice line)
{
    char path[PATH_BYTES];
    size_t indent = 0, colon = knee_slice_find(line, " : ");
    while (indent < line.length && (line.at[indent] == ' ' || line.at[indent] == '\t'))
        indent++;
    struct knee_slice name = knee_slice_trim((struct knee_slice){line.at, colon});
    if (name.length == 0)
        return;
    if (indent == 0 && knee_slice_starts(line, "GPU ") && colon == line.length) {
        begin_gpu(smi, knee_slice_from(name, 4));
        o->depth = 0;
        return;
    }
    smi->named = smi->named || knee_slice_is(name, "Product Name");
    smi->ended = smi->ended || knee_slice_is(name, "Processes");
    while (o->depth > 0 && o->indent[o->depth - 1] >= indent)
        o->depth--;
    if (colon < line.length) {
        leaf_path(o, name, path);
        take(smi, path, knee_slice_from(line, colon + 3), false);
    } else if (o->depth < DEPTH_MAX) {
        o->indent[o->depth] = indent;
        knee_slice_copy(name, o->name[o->depth], sizeof o->name[0]);
        o->depth++;
    }
}

bool knee_read_smi_text(struct knee_facts *facts, struct knee_slice text)
{
    struct smi smi = {.facts = facts};
    struct outline o = {0};
    struct knee_slice line;
    if (!knee_slice_has(text, "NVSMI LOG") && !knee_slice_has(text, "Attached GPUs"))
        return false;
    while (knee_slice_line(&text, &line))
        text_line(&smi, &o, line);
    /* A whole -q ends each GPU with its processes; -d prints parts and names no product. */
    finish(&smi, smi.ended || !smi.named);
    return true;
}

/* ---- XML: tags, one path; nothing is built up ---- */

struct tags {
    size_t depth, length[DEPTH_MAX + 1]; /* of the path at each depth */
    size_t too_deep;
    char path[PATH_BYTES];
};

static void open_tag(struct tags *t, struct knee_slice name)
{
    if (t->depth == DEPTH_MAX || t->length[t->depth] + name.length + 2 > PATH_BYTES) {
        t->too_deep++;
        return;
    }
    size_t at = t->length[t->depth];
    if (at > 0)
        t->path[at++] = '/';
    memcpy(t->path + at, name.at, name.length);
    t->depth++;
    t->length[t->depth] = at + name.length;
    t->path[at + name.length] = '\0';
}

static void close_tag(struct tags *t)
{
    if (t->too_deep > 0) {
        t->too_deep--;
    } else if (t->depth > 0) {
        t->depth--;
        t->path[t->length[t->depth]] = '\0';
    }
}

static void xml_leaf(struct smi *smi, const struct tags *t, struct knee_slice value)
{
    char path[PATH_BYTES];
    const char *root = "nvidia_smi_log/";
    const char *rest = strncmp(t->path, root, strlen(root)) == 0 ? t->path + strlen(root) : "";
    if (strncmp(rest, "gpu/", 4) == 0)
        rest += 4;
    memcpy(path, rest, strlen(rest) + 1);
    modern(path);
    take(smi, path, value, true);
}

/* <gpu id="00000000:06:00.0"> */
static void gpu_tag(struct smi *smi, struct knee_slice tag)
{
    size_t at = knee_slice_find(tag, "id=\"");
    struct knee_slice rest = knee_slice_from(tag, at + 4), id;
    if (at < tag.length && knee_slice_until(&rest, '"', &id))
        begin_gpu(smi, id);
}

static void one_tag(struct smi *smi, struct tags *t, struct knee_slice tag,
                    struct knee_slice before)
{
    struct knee_slice rest = tag, name;
    if (tag.length == 0 || tag.at[0] == '?' || tag.at[0] == '!')
        return;
    if (tag.at[0] == '/') {
        before = knee_slice_trim(before);
        if (before.length > 0 && before.length < 512 && t->too_deep == 0)
            xml_leaf(smi, t, before);
        close_tag(t);
        return;
    }
    knee_slice_word(&rest, &name);
    if (knee_slice_is(name, "gpu") && t->depth == 1)
        gpu_tag(smi, tag);
    open_tag(t, name);
    if (tag.at[tag.length - 1] == '/')
        close_tag(t);
}

bool knee_read_smi_xml(struct knee_facts *facts, struct knee_slice text)
{
    struct smi smi = {.facts = facts};
    struct tags t = {0};
    struct knee_slice before, tag;
    if (!knee_slice_has(text, "<nvidia_smi_log"))
        return false;
    bool whole = knee_slice_has(text, "</nvidia_smi_log>");
    while (knee_slice_until(&text, '<', &before) && knee_slice_until(&text, '>', &tag)) {
        one_tag(&smi, &t, tag, before);
        /* What stands after this tag belongs to the next one. */
    }
    finish(&smi, whole);
    return true;
}

/* ---- The plain table: names, persistence, uncorrected errors ---- */

/* "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:19:00.0 Off |                    0 |" */
static void table_row(struct smi *smi, struct knee_slice line)
{
    struct knee_slice cell[4], word;
    double number;
    for (size_t i = 0; i < 4; i++)
        if (!knee_slice_until(&line, '|', &cell[i]))
            return;
    struct knee_slice first = cell[1], bus = cell[2], errors = knee_slice_trim(cell[3]);
    if (!knee_slice_word(&first, &word) || !knee_slice_number(word, &number) ||
        !knee_slice_word(&bus, &word) || !knee_slice_has(word, ":"))
        return;
    begin_gpu(smi, word);
    first = knee_slice_trim(first);
    size_t end = first.length;
    while (end > 0 && first.at[end - 1] != ' ')
        end--;
    knee_fact_put(smi->facts, smi->gpu, "gpu.name", (struct knee_slice){first.at, end});
    knee_fact_put(
        smi->facts, smi->gpu, "gpu.persistence",
        knee_slice_of(knee_slice_is(knee_slice_from(first, end), "On") ? "Enabled" : "Disabled"));
    if (knee_slice_number(errors, &number))
        knee_fact_put(smi->facts, smi->gpu, "gpu.ecc.uncorrected.table", errors);
}

/* "|    0   N/A  N/A      4242      C   python3          61000MiB |": programs that compute. */
static void process_row(struct smi *smi, struct knee_slice line)
{
    struct knee_slice word, name = {line.at, 0};
    bool computes = false, type = false;
    while (!type && knee_slice_word(&line, &word)) {
        computes =
            knee_slice_is(word, "C") || knee_slice_is(word, "C+G") || knee_slice_is(word, "M+C");
        type = computes || knee_slice_is(word, "G");
    }
    if (computes && knee_slice_word(&line, &name))
        knee_fact_put(smi->facts, "", "gpu.process", name);
}

bool knee_read_smi_table(struct knee_facts *facts, struct knee_slice text)
{
    struct smi smi = {.facts = facts};
    struct knee_slice line;
    bool processes = false;
    if (!knee_slice_has(text, "| NVIDIA-SMI "))
        return false;
    while (knee_slice_line(&text, &line)) {
        size_t at = knee_slice_find(line, "Driver Version: ");
        struct knee_slice rest = knee_slice_from(line, at + 16), word;
        if (at < line.length && knee_slice_word(&rest, &word))
            knee_fact_put(facts, "", "driver", word);
        processes = processes || knee_slice_starts(line, "| Processes");
        if (knee_slice_starts(line, "|  ") && processes)
            process_row(&smi, line);
        else if (knee_slice_starts(line, "|  "))
            table_row(&smi, line);
    }
    finish(&smi, true);
    return true;
}

/* ---- --query-gpu as Prometheus text: nvidia_smi_NAME{uuid="..."} VALUE ---- */

static const struct {
    const char *name, *key;
    const char *one; /* what 1 stands for; NULL: the number itself */
} metrics[] = {
    {"ecc_errors_uncorrected_volatile_total", "gpu.ecc.uncorrected.total", NULL},
    {"remapped_rows_pending", "gpu.remap.pending", "Yes"},
    {"remapped_rows_failure", "gpu.remap.failure", "Yes"},
    {"retired_pages_pending", "gpu.retired_pending", "Yes"},
    {"clocks_event_reasons_hw_slowdown", "gpu.event.hw_slowdown", "Active"},
    {"clocks_event_reasons_hw_thermal_slowdown", "gpu.event.hw_thermal", "Active"},
    {"clocks_event_reasons_hw_power_brake_slowdown", "gpu.event.hw_power_brake", "Active"},
    {"clocks_event_reasons_sw_thermal_slowdown", "gpu.event.sw_thermal", "Active"},
    {"clocks_throttle_reasons_hw_slowdown", "gpu.event.hw_slowdown", "Active"},
    {"pcie_link_width_current", "gpu.pcie_width", NULL},
    {"pcie_link_width_max", "gpu.pcie_width_max", NULL},
    {"power_default_limit_watts", "gpu.power_default", NULL},
    {"enforced_power_limit_watts", "gpu.power_limit", NULL},
    {"persistence_mode", "gpu.persistence", "Enabled"},
};

static bool metric_line(struct knee_facts *facts, struct knee_slice line)
{
    struct knee_slice name, labels, rest = line;
    char subject[64];
    double value;
    knee_slice_until(&rest, '{', &name);
    if (!knee_slice_starts(line, "nvidia_smi_") || !knee_slice_until(&rest, '}', &labels) ||
        !knee_slice_number(knee_slice_trim(rest), &value))
        return false;
    name = knee_slice_from(name, 11);
    struct knee_slice uuid = knee_slice_from(labels, knee_slice_find(labels, "uuid=\"") + 6), id;
    knee_slice_until(&uuid, '"', &id);
    knee_format(subject, sizeof subject, "GPU %.*s", (int)(id.length < 40 ? id.length : 40), id.at);
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        if (!knee_slice_is(name, metrics[i].name))
            continue;
        if (metrics[i].one)
            knee_fact_put(facts, subject, metrics[i].key,
                          knee_slice_of(value == 1 ? metrics[i].one : "No"));
        else
            knee_fact_number(facts, subject, metrics[i].key, value);
    }
    return true;
}

bool knee_read_smi_metrics(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line;
    bool any = false;
    if (!knee_slice_has(text, "nvidia_smi_"))
        return false;
    while (knee_slice_line(&text, &line))
        any = metric_line(facts, line) || any;
    return any;
}
