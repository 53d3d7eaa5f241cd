/* SPDX-License-Identifier: MIT */
/* The hosts of an MPI job: the first rank of each tells about the host, the others about their
 * variables. */
#include "base/text.h"
#include "doctor/doctor.h"
#include "read/host/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void must(struct knee_runtime *rt, bool good)
{
    if (!good)
        rt->abort(rt, rt->fault);
}

/* Memory, or the end of all ranks. */
static void *rows(struct knee_runtime *rt, size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (!memory) {
        rt->abort(rt, "out of memory");
        abort(); /* not reached */
    }
    return memory;
}

static double wall_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What the first rank has and this one does not. */
static void compare_first(struct knee_facts *host, struct knee_facts *rank)
{
    size_t first, end = knee_facts_range(host, "env", &first);
    const char *missing[64];
    size_t count = 0;
    for (size_t i = first; i < end && count < 64; i++)
        if (strncmp(host->rows[i].subject, "NCCL_", 5) == 0 &&
            !knee_fact_find(rank, host->rows[i].subject, "env"))
            missing[count++] = host->rows[i].subject;
    for (size_t i = 0; i < count; i++)
        knee_fact_put(host, missing[i], "env.other", knee_slice_of("not set"));
}

/* Variables of a further rank that differ from those of its host's first. */
static void compare_rank(struct knee_facts *host, struct knee_facts *rank)
{
    knee_facts_sort(host);
    knee_facts_sort(rank);
    compare_first(host, rank);
    knee_facts_sort(host);
    for (size_t i = 0; i < rank->count; i++) {
        const struct knee_fact *mine = &rank->rows[i];
        const struct knee_fact *first = knee_fact_find(host, mine->subject, "env");
        if (strcmp(mine->key, "env") != 0 || strncmp(mine->subject, "NCCL_", 5) != 0)
            continue;
        if (!first || strcmp(first->value, mine->value) != 0) {
            knee_fact_put(host, mine->subject, "env.other", knee_slice_of(mine->value));
            knee_facts_sort(host);
        }
    }
}

/* Clocks were read behind one barrier: who is ahead of the slowest. */
static void set_clocks(struct knee_facts *hosts, size_t count, const double *clock_s)
{
    double least = count ? clock_s[0] : 0;
    for (size_t i = 1; i < count; i++)
        least = clock_s[i] < least ? clock_s[i] : least;
    for (size_t i = 0; i < count; i++)
        knee_fact_number(&hosts[i], "", "clock.ahead_s", clock_s[i] - least);
}

static void unpack(struct knee_runtime *rt, const char *all, const size_t *sizes,
                   struct knee_facts *hosts, const double *clocks_s, double *host_clock_s)
{
    for (int rank = 0; rank < rt->size; rank++) {
        struct knee_facts *host = &hosts[rt->host_of[rank]], further = {0};
        const char *line = memchr(all, '\n', sizes[rank]);
        size_t head = line ? (size_t)(line - all) : 0;
        bool first = host->host[0] == '\0';
        knee_facts_read(first ? host : &further, all + head + (line != NULL),
                        sizes[rank] - head - (line != NULL));
        if (first) {
            snprintf(host->host, sizeof host->host, "%.*s", (int)(head < 60 ? head : 60), all);
            host_clock_s[rt->host_of[rank]] = clocks_s[rank];
            host->files = 1;
        } else {
            compare_rank(host, &further);
        }
        knee_facts_release(&further);
        all += sizes[rank];
    }
}

void knee_host_gather(struct knee_runtime *rt, struct knee_facts *mine, struct knee_facts **hosts,
                      size_t *count)
{
    struct knee_text text = {0};
    void *all = NULL, *clocks = NULL;
    size_t *sizes = rows(rt, (size_t)rt->size, sizeof *sizes);
    size_t *eights = rows(rt, (size_t)rt->size, sizeof *eights);
    knee_text_printf(&text, "%s\n", mine->host[0] ? mine->host : rt->host_name);
    knee_facts_write(mine, &text);
    if (text.failed)
        rt->abort(rt, "out of memory");
    must(rt, rt->barrier(rt));
    double clock_s = wall_s();
    must(rt, rt->gather_bytes(rt, &clock_s, sizeof clock_s, &clocks, eights));
    must(rt, rt->gather_bytes(rt, text.data, text.length, &all, sizes));
    knee_text_release(&text);
    *hosts = NULL;
    *count = 0;
    if (rt->rank == 0) {
        double *host_clock_s = rows(rt, (size_t)rt->host_count, sizeof *host_clock_s);
        *hosts = rows(rt, (size_t)rt->host_count, sizeof **hosts);
        *count = (size_t)rt->host_count;
        unpack(rt, all, sizes, *hosts, clocks, host_clock_s);
        set_clocks(*hosts, *count, host_clock_s);
        free(host_clock_s);
    }
    free(all);
    free(clocks);
    free(sizes);
    free(eights);
}
