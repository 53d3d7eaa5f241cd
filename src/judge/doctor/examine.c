/* SPDX-License-Identifier: MIT */
/*
 * The examination: every host by every check, then all hosts against each other, then the price of
 * what was found. Findings of one rule on one host become one; the same on several hosts too.
 */
#include "judge/doctor/doctor_judge.h"

#include "base/format.h"
#include "base/list.h"
#include "base/text.h"
#include "cluster/presets.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define FINDINGS_MAX 4096

double knee_version_number(const char *text)
{
    double part[3] = {0, 0, 0};
    size_t count = 0;
    for (; *text && count < 3; count++) {
        if (*text < '0' || *text > '9')
            break;
        for (; *text >= '0' && *text <= '9'; text++)
            part[count] = part[count] * 10 + (*text - '0');
        text += *text == '.';
    }
    return count < 2 ? NAN : part[0] * 10000 + part[1] * 100 + part[2];
}

/* ---- Findings ---- */

/* Parts of one host with one trouble are one finding; variables are not: each says its own. */
static struct knee_ailment *same(struct knee_exam *exam, const struct knee_doctor_rule *rule,
                                 enum knee_severity severity, const char *subject)
{
    bool variable = exam->apart || knee_fact_find(exam->facts, subject, "env") != NULL;
    for (size_t i = exam->out->count; i-- > 0 && !variable;) {
        struct knee_ailment *a = &exam->out->findings[i];
        if (a->rule == rule && a->severity == severity && strcmp(a->host, exam->facts->host) == 0)
            return a;
    }
    return NULL;
}

static struct knee_ailment *fresh(struct knee_checkup *out)
{
    if (out->count == FINDINGS_MAX) {
        out->unlisted++;
        return NULL;
    }
    if (!knee_room(out->alloc, &out->findings, &out->capacity, out->count + 1,
                   sizeof *out->findings)) {
        out->no_memory = true;
        return NULL;
    }
    return &out->findings[out->count++];
}

/* The fix, with the name of the part filled in. */
static void fill_cure(struct knee_ailment *a, const char *subject)
{
    const char *cure = a->rule->cure, *mark = strstr(cure, "{where}");
    const char *name = strncmp(subject, "GPU ", 4) == 0 ? subject + 4 : subject;
    size_t before = mark ? (size_t)(mark - cure) : strlen(cure);
    knee_format(a->cure, sizeof a->cure, "%.*s%s%s", (int)before, cure, mark ? name : "",
                mark ? mark + 7 : "");
}

void knee_names_add(char *names, size_t size, const char *name)
{
    size_t used = strlen(names), ends = used > 4 ? used - 4 : 0;
    bool fits = used + strlen(name) + sizeof ",  ..." <= size;
    if (fits)
        knee_format(names + used, size - used, "%s%s", used ? ", " : "", name);
    else if (strcmp(names + ends, " ...") != 0)
        knee_format(names + used, size - used, " ...");
}

/* "eth1" is one of "br-eth1, eth1", and not of "br-eth1" alone. */
static bool is_named(const char *names, const char *name)
{
    struct knee_slice rest = knee_slice_of(names), one;
    while (knee_slice_until(&rest, ',', &one))
        if (knee_slice_is(knee_slice_trim(one), name))
            return true;
    return false;
}

static void another_part(struct knee_ailment *a, const char *subject, double left)
{
    a->left = fmin(a->left, left); /* drops NaN */
    if (!subject[0] || is_named(a->where, subject))
        return;
    a->parts++;
    knee_names_add(a->where, sizeof a->where, subject);
}

void knee_blame_rule(struct knee_exam *exam, const struct knee_doctor_rule *rule,
                     enum knee_severity severity, const char *subject, double left,
                     const char *evidence)
{
    struct knee_ailment *a = same(exam, rule, severity, subject);
    if (a) {
        another_part(a, subject, left);
        return;
    }
    if (!(a = fresh(exam->out)))
        return;
    *a = (struct knee_ailment){.rule = rule,
                               .severity = severity,
                               .hosts = 1,
                               .parts = 1,
                               .left = isnan(left) ? rule->share : left};
    knee_format(a->host, sizeof a->host, "%s", exam->facts->host);
    knee_format(a->where, sizeof a->where, "%.80s", subject);
    knee_format(a->evidence, sizeof a->evidence, "%s", evidence);
    fill_cure(a, subject);
}

enum { EVIDENCE = 320 };

void knee_blame(struct knee_exam *exam, const char *id, const char *subject, double left,
                const char *fmt, ...)
{
    const struct knee_doctor_rule *rule = knee_rule_of(id);
    char evidence[EVIDENCE];
    va_list args;
    va_start(args, fmt);
    knee_vformat(evidence, sizeof evidence, fmt, args);
    va_end(args);
    knee_blame_rule(exam, rule, rule->severity, subject, left, evidence);
}

void knee_blame_at(struct knee_exam *exam, enum knee_severity severity, const char *id,
                   const char *subject, double left, const char *fmt, ...)
{
    char evidence[EVIDENCE];
    va_list args;
    va_start(args, fmt);
    knee_vformat(evidence, sizeof evidence, fmt, args);
    va_end(args);
    knee_blame_rule(exam, knee_rule_of(id), severity, subject, left, evidence);
}

void knee_soften(struct knee_exam *exam, const char *id)
{
    for (size_t i = 0; i < exam->out->count; i++) {
        struct knee_ailment *a = &exam->out->findings[i];
        if (strcmp(a->rule->id, id) == 0 && strcmp(a->host, exam->facts->host) == 0)
            a->severity = KNEE_NOTE;
    }
}

/* ---- What the checks ask first ---- */

static enum knee_presence rdma_of(const struct knee_facts *facts)
{
    if (knee_facts_count(facts, "ib.rate") || knee_facts_count(facts, "ib.state") ||
        knee_facts_count(facts, "ib.type") || knee_facts_count(facts, "log.device"))
        return KNEE_PRESENT;
    /* A host whose interfaces are known and that has no adapter has none. */
    return knee_facts_count(facts, "net.mtu") ? KNEE_ABSENT : KNEE_UNKNOWN;
}

static enum knee_presence nodes_of(const struct knee_facts *facts, size_t hosts)
{
    size_t seen = knee_facts_count(facts, "log.host");
    double ranks = knee_fact_value(facts, "", "log.ranks"),
           nodes = knee_fact_value(facts, "", "log.nodes");
    double local = knee_fact_value(facts, "", "log.local_ranks");
    if (hosts > 1 || seen > 1 || nodes > 1 || (local > 0 && ranks > local) ||
        knee_facts_count(facts, "log.via.socket") || knee_facts_count(facts, "log.via.plain") ||
        knee_facts_count(facts, "log.via.gdr"))
        return KNEE_PRESENT;
    if (ranks > 0 && seen == 1)
        return KNEE_ABSENT;
    return KNEE_UNKNOWN;
}

static bool named(const struct knee_facts *facts, const char *key, const char *const *words)
{
    for (const struct knee_fact *row = NULL; knee_fact_next(facts, key, &row);)
        for (const char *const *w = words; *w; w++)
            if (strstr(row->value, *w))
                return true;
    return false;
}

static double version_of(const struct knee_facts *facts, const char *given)
{
    const struct knee_fact *line = knee_fact_find(facts, NULL, "log.version");
    const struct knee_fact *library = knee_fact_find(facts, "", "nccl.version");
    if (given)
        return knee_version_number(given);
    if (line)
        return knee_version_number(line->subject);
    return library ? knee_version_number(library->value) : NAN;
}

/* What a port of the cluster's network carries; NaN: no cluster, or a network without a name. */
static double port_of(const struct knee_cluster *cluster)
{
    const struct knee_link *link =
        cluster && cluster->level_count > 1 ? knee_link_named(cluster->levels[1].name) : NULL;
    return link ? link->bytes_per_s : NAN;
}

/* ---- Gaps: what could not be looked at ---- */

static const struct gap {
    const char *key, *what, *why;
} gaps[] = {
    {"gpu.name", "GPUs", "no output of nvidia-smi or rocm-smi"},
    {"ib.rate", "InfiniBand and RoCE ports", "nothing under /sys/class/infiniband and no ibstat"},
    {"nvlink.active", "NVLink links", "no output of nvidia-smi nvlink -s"},
    {"pci.acs", "ACS on PCIe bridges",
     "needs lspci -vvv as root: save its output and give it with --from"},
    {"kernel.log", "the kernel's log", "no dmesg, or it may not be read without root"},
    {"env*", "the environment", "no variable that NCCL, CUDA or PyTorch read is set"},
    {"net.mtu", "interfaces", "nothing under /sys/class/net"},
};

/* What there was too much of. */
static const struct gap more_findings = {NULL, "further findings", "there are more than 4096"};
_Static_assert(FINDINGS_MAX == 4096, "as the words say");
_Static_assert(sizeof gaps / sizeof *gaps + 1 <= KNEE_CHECKUP_GAPS, "all of them at once");

static void note_gap(struct knee_checkup *out, const struct gap *gap)
{
    out->gaps[out->gap_count].what = gap->what;
    out->gaps[out->gap_count++].why = gap->why;
}

static void note_gaps(struct knee_checkup *out, struct knee_facts *hosts, size_t count)
{
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++) {
        bool seen = false;
        for (size_t i = 0; i < count && !seen; i++)
            seen = knee_facts_count(&hosts[i], gaps[g].key);
        if (!seen)
            note_gap(out, &gaps[g]);
    }
    if (out->unlisted)
        note_gap(out, &more_findings);
}

static void list_settings(struct knee_checkup *out, const struct knee_facts *hosts, size_t count)
{
    out->settings = knee_resize(out->alloc, NULL, KNEE_SETTINGS_MAX * sizeof *out->settings);
    out->no_memory = out->no_memory || !out->settings;
    for (size_t i = 0; out->settings && i < count && out->setting_count == 0; i++)
        out->setting_count = knee_env_list(&hosts[i], out->settings);
}

/* ---- All of it ---- */

static void examine_host(struct knee_facts *facts, size_t hosts,
                         const struct knee_doctor_options *options, struct knee_checkup *out)
{
    static const char *const geforce[] = {"GeForce", "RTX", "TITAN", "GTX", NULL};
    static const char *const machines[] = {
        "KVM", "Virtual", "VMware", "QEMU", "Amazon EC2", "Google Compute", "HVM", "xen", NULL};
    struct knee_exam exam = {.facts = facts, .out = out};
    exam.nccl = version_of(facts, options->nccl);
    exam.rdma = rdma_of(facts);
    exam.nodes = nodes_of(facts, hosts);
    exam.geforce = named(facts, "gpu.name", geforce);
    exam.virtual_machine = named(facts, "machine.*", machines);
    exam.gpus = (double)knee_facts_count(facts, "gpu.name");
    exam.expected_bytes_per_s = port_of(options->cluster);
    static void (*const checks[])(struct knee_exam *) = {
        knee_check_table, knee_check_env, knee_check_names,  knee_check_ports, knee_check_gids,
        knee_check_gpus,  knee_check_pci, knee_check_kernel, knee_check_host,  knee_check_log,
    };
    knee_env_retire(&exam);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        checks[i](&exam);
    if (options->site)
        knee_check_rows(&exam, options->site->rows, options->site->count);
}

/* The same on several hosts is one finding: its first host, and how many. */
static void join_hosts(struct knee_checkup *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++) {
        struct knee_ailment *a = &out->findings[i], *b = NULL;
        for (size_t k = 0; k < kept && !b; k++)
            if (out->findings[k].rule == a->rule && out->findings[k].severity == a->severity &&
                strcmp(out->findings[k].where, a->where) == 0 &&
                strcmp(out->findings[k].evidence, a->evidence) == 0)
                b = &out->findings[k];
        if (b)
            b->hosts += a->hosts;
        else
            out->findings[kept++] = *a;
    }
    out->count = kept;
}

/* A host that was measured to be slow, and what else was found on it. */
static void explain_slow(struct knee_checkup *out)
{
    for (size_t i = 0; i < out->count; i++) {
        struct knee_ailment *slow = &out->findings[i];
        bool any_other = false;
        if (strcmp(slow->rule->id, "slow_host") != 0)
            continue;
        for (size_t k = 0; k < out->count; k++) {
            const struct knee_ailment *a = &out->findings[k];
            size_t used = strlen(slow->evidence);
            if (k == i || a->severity < KNEE_WARNING || strcmp(a->host, slow->host) != 0)
                continue;
            knee_format(slow->evidence + used, sizeof slow->evidence - used, "%s%s%s%s%s",
                        any_other ? ", " : "; it also has: ", a->rule->id, a->where[0] ? " (" : "",
                        a->where, a->where[0] ? ")" : "");
            any_other = true;
        }
    }
}

static int worst_first(const void *a, const void *b)
{
    const struct knee_ailment *x = a, *y = b;
    if (x->severity != y->severity)
        return x->severity > y->severity ? -1 : 1;
    double lost_x = isnan(x->price.lost) ? 1 - x->price.share : x->price.lost;
    double lost_y = isnan(y->price.lost) ? 1 - y->price.share : y->price.lost;
    lost_x = isnan(lost_x) ? -1 : lost_x;
    lost_y = isnan(lost_y) ? -1 : lost_y;
    if (lost_x != lost_y)
        return lost_x > lost_y ? -1 : 1;
    int order = strcmp(x->host, y->host);
    if (order == 0)
        order = strcmp(x->rule->id, y->rule->id);
    return order ? order : strcmp(x->where, y->where);
}

/* Hosts that a log has lines of, beside the one whose facts these are. */
static size_t other_hosts(const struct knee_facts *facts)
{
    size_t all = knee_facts_count(facts, "log.host");
    return all > 1 ? all - 1 : 0;
}

/* ---- How the job ended ---- */

/* A finding of no host: it is made where the others are ready. NULL: no room. */
static struct knee_ailment *add_finding(struct knee_checkup *out, const char *id, const char *says)
{
    struct knee_ailment *a = fresh(out);
    if (!a)
        return NULL;
    const struct knee_doctor_rule *rule = knee_rule_of(id);
    *a = (struct knee_ailment){
        .rule = rule, .severity = rule->severity, .hosts = 1, .parts = 1, .left = NAN};
    a->price = (struct knee_toll){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, false, false};
    knee_format(a->evidence, sizeof a->evidence, "%s", says);
    knee_format(a->cure, sizeof a->cure, "%s", rule->cure);
    return a;
}

/* A peer that closed its connection follows from something: a note, where that is known. */
static void fold_peer(struct knee_checkup *out)
{
    for (size_t i = 0; i < out->count && knee_checkup_count(out, KNEE_WARNING) > 1; i++)
        if (strcmp(out->findings[i].rule->id, "peer_died") == 0)
            out->findings[i].severity = KNEE_NOTE;
}

/* What the others say of the failure follows from it. */
static void fold_consequences(struct knee_checkup *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++) {
        struct knee_ailment *a = &out->findings[i];
        if (strcmp(a->rule->id, "collective_timeout") == 0)
            continue;
        if (strcmp(a->rule->id, "peer_died") == 0 || strcmp(a->rule->id, "env_mismatch") == 0)
            a->severity = KNEE_NOTE;
        out->findings[kept++] = *a;
    }
    out->count = kept;
}

/* The end of the job comes first. A bare error without a rank says less than a rule that names its
 * cause. */
static void add_end(struct knee_checkup *out, const struct knee_doctor_options *options)
{
    fold_peer(out);
    bool told = knee_checkup_count(out, KNEE_WARNING) > 0;
    if (options->job_end && (options->job_blames || !told)) {
        if (options->job_blames)
            fold_consequences(out);
        struct knee_ailment *a = add_finding(out, "job_failed", options->job_end);
        if (!a)
            return;
        knee_format(a->cure, sizeof a->cure, "%s", options->job_fix);
        knee_format(a->where, sizeof a->where, "%s", options->job_where);
        struct knee_ailment first = *a;
        memmove(out->findings + 1, out->findings, (out->count - 1) * sizeof first);
        out->findings[0] = first;
    }
    if (options->unknown_errors) {
        char says[320];
        knee_format(says, sizeof says, "%zu error line%s knee does not know, first: %.220s",
                    options->unknown_errors, options->unknown_errors == 1 ? "" : "s",
                    options->unknown_error);
        struct knee_ailment *a = add_finding(out, "unknown_errors", says);
        if (a && knee_checkup_count(out, KNEE_ERROR))
            a->severity = KNEE_NOTE; /* there is something to do already */
    }
}

knee_status knee_doctor_examine(struct knee_facts *hosts, size_t host_count,
                                const struct knee_doctor_options *options,
                                const struct knee_alloc *alloc, struct knee_checkup *out,
                                struct knee_err *err)
{
    static const struct knee_doctor_options none;
    struct knee_checkup checkup = {.hosts = host_count, .alloc = alloc, .price_per_hour = NAN};
    options = options ? options : &none;
    for (size_t i = 0; i < host_count; i++) {
        knee_env_settle(&hosts[i]);
        knee_facts_sort(&hosts[i]);
        checkup.facts += hosts[i].count;
        checkup.files += hosts[i].files;
        checkup.strange += hosts[i].strange;
        checkup.unread += hosts[i].unread;
        checkup.dropped += hosts[i].dropped;
        checkup.hosts += other_hosts(&hosts[i]);
        checkup.no_memory = checkup.no_memory || hosts[i].no_memory;
    }
    for (size_t i = 0; i < host_count; i++)
        examine_host(&hosts[i], host_count, options, &checkup);
    join_hosts(&checkup);
    knee_check_alike(&checkup, hosts, host_count);
    explain_slow(&checkup);
    knee_status status = knee_price_all(&checkup, hosts, host_count, options, err);
    note_gaps(&checkup, hosts, host_count);
    list_settings(&checkup, hosts, host_count);
    if (checkup.count > 1)
        qsort(checkup.findings, checkup.count, sizeof *checkup.findings, worst_first);
    add_end(&checkup, options);
    if (checkup.no_memory)
        status = knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    if (status) {
        knee_checkup_release(&checkup);
        return status;
    }
    *out = checkup;
    return KNEE_OK;
}

void knee_checkup_release(struct knee_checkup *checkup)
{
    knee_resize(checkup->alloc, checkup->findings, 0);
    knee_resize(checkup->alloc, checkup->settings, 0);
    checkup->findings = NULL;
    checkup->settings = NULL;
    checkup->setting_count = 0;
    checkup->count = checkup->capacity = 0;
}

size_t knee_checkup_count(const struct knee_checkup *checkup, enum knee_severity least)
{
    size_t count = 0;
    for (size_t i = 0; i < checkup->count; i++)
        count += checkup->findings[i].severity >= least;
    return count;
}
