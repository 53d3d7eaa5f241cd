/* SPDX-License-Identifier: MIT */
/*
 * Hosts against each other: what most have is taken to be right, and the others are named.
 * data/alike_facts.csv says which facts must be alike and how bad it is when they are not. A fact
 * that a host lacks is a difference only where the table says so (a port, a variable); elsewhere it
 * was not looked at.
 */
#include "judge/doctor/doctor_judge.h"

#include "base/format.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

/* Variables that must differ, or that launchers set for each rank. */
static const char *const own[] = {
    "LOCAL_RANK",      "NCCL_HOSTID",   "NCCL_DEBUG_FILE", "NCCL_COMM_ID",
    "CUDA_VISIBLE",    "MASTER_",       "LOCAL_WORLD",     "HIP_VISIBLE",
    "ROCR_VISIBLE",    "NVIDIA_",       "SLURM_",          "OMPI_",
    "NCCL_TOPO_DUMP_", "TORCHELASTIC_", "LOCAL_",          "NCCL_GRAPH_DUMP"};

static bool of_its_own(const char *subject)
{
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strncmp(subject, own[i], strlen(own[i])) == 0)
            return true;
    return strcmp(subject, "lo") == 0 || strncmp(subject, "veth", 4) == 0;
}

struct votes {
    const struct knee_fact **fact; /* of every host; NULL: not there */
    size_t hosts;
};

static bool same_value(const struct knee_fact *a, const struct knee_fact *b)
{
    return a == b || (a && b && strcmp(a->value, b->value) == 0);
}

/* The value that most hosts have; ties go to the one seen first. */
static size_t majority(const struct votes *v, const struct knee_fact **value, bool absence)
{
    size_t best = 0;
    *value = NULL;
    for (size_t i = 0; i < v->hosts; i++) {
        size_t count = 0;
        if (!v->fact[i] && !absence)
            continue;
        for (size_t k = 0; k < v->hosts; k++)
            count += same_value(v->fact[i], v->fact[k]);
        if (count > best) {
            best = count;
            *value = v->fact[i];
        }
        if (best > v->hosts / 2)
            break;
    }
    return best;
}

static double share(const struct knee_fact *a, const struct knee_fact *b)
{
    double x = a ? a->number : 0, y = b ? b->number : 0;
    return x > 0 && y > 0 ? fmin(x, y) / fmax(x, y) : NAN;
}

static void report(struct knee_checkup *out, struct knee_facts *hosts, const struct votes *v,
                   size_t row, const char *subject)
{
    const struct knee_fact *most, *other = NULL;
    size_t count = majority(v, &most, knee_alike_facts[row].absence), strange = 0,
           before = out->count;
    char names[160] = "", where[96];
    struct knee_exam exam = {.out = out, .apart = true};
    for (size_t i = 0; i < v->hosts; i++) {
        if (same_value(v->fact[i], most) || (!v->fact[i] && !knee_alike_facts[row].absence))
            continue;
        if (strange++ == 0) {
            exam.facts = &hosts[i];
            other = v->fact[i];
        }
        knee_names_add(names, sizeof names, hosts[i].host);
    }
    if (strange == 0)
        return;
    knee_format(where, sizeof where, "%.60s%s%s", subject,
                subject[0] && knee_alike_facts[row].what[0] ? " " : "", knee_alike_facts[row].what);
    knee_blame(&exam, knee_alike_facts[row].rule, where,
               knee_alike_facts[row].ratio ? share(other, most) : NAN,
               "%s: %s; %zu of %zu hosts have %s", names, other ? other->value : "does not have it",
               count, v->hosts, most ? most->value : "none");
    if (out->count > before)
        out->findings[before].hosts = strange;
}

/* Has an earlier host, from which the subject was compared already? */
static bool seen_before(struct knee_facts *hosts, size_t host, size_t row, const char *subject)
{
    for (size_t i = 0; i < host; i++)
        if (knee_fact_find(&hosts[i], subject, knee_alike_facts[row].key))
            return true;
    return false;
}

static void compare_row(struct knee_checkup *out, struct knee_facts *hosts, size_t count,
                        size_t row, struct votes *v)
{
    for (size_t h = 0; h < count; h++) {
        size_t first, end = knee_facts_range(&hosts[h], knee_alike_facts[row].key, &first);
        for (size_t i = first; i < end; i++) {
            const char *subject = hosts[h].rows[i].subject;
            if (i > first && knee_alike_facts[row].merged)
                continue;
            if (of_its_own(subject) ||
                seen_before(hosts, h, row, knee_alike_facts[row].merged ? NULL : subject))
                continue;
            for (size_t k = 0; k < count; k++)
                v->fact[k] =
                    knee_fact_find(&hosts[k], knee_alike_facts[row].merged ? NULL : subject,
                                   knee_alike_facts[row].key);
            report(out, hosts, v, row, knee_alike_facts[row].merged ? "" : subject);
        }
        if (knee_alike_facts[row].merged && knee_facts_count(&hosts[h], knee_alike_facts[row].key))
            break;
    }
}

/* ---- Clocks ---- */

static void clocks(struct knee_checkup *out, struct knee_facts *hosts, size_t count)
{
    double low = INFINITY, high = -INFINITY;
    size_t late = 0, early = 0;
    for (size_t i = 0; i < count; i++) {
        double ahead = knee_fact_value(&hosts[i], "", "clock.ahead_s");
        if (ahead < low)
            low = ahead, late = i;
        if (ahead > high)
            high = ahead, early = i;
    }
    if (!(high - low > 0.1)) /* a tenth of a second is far beyond NTP and what gathering takes */
        return;
    struct knee_exam exam = {.facts = &hosts[early], .out = out};
    knee_blame(&exam, "clock_skew", "", NAN, "its clock is %.3g s ahead of %s's", high - low,
               hosts[late].host);
}

void knee_check_alike(struct knee_checkup *out, struct knee_facts *hosts, size_t count)
{
    struct votes v = {.hosts = count};
    if (count < 2)
        return;
    v.fact = knee_resize(out->alloc, NULL, count * sizeof *v.fact);
    if (!v.fact) {
        out->no_memory = true;
        return;
    }
    for (size_t row = 0; row < knee_alike_facts_count; row++)
        compare_row(out, hosts, count, row, &v);
    knee_resize(out->alloc, v.fact, 0);
    clocks(out, hosts, count);
}
