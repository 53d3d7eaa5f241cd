/* SPDX-License-Identifier: MIT */
/*
 * What the ranks of one command do together under mpirun. A rank that cannot reach the others
 * cannot tell them so: it ends all of them.
 */
#include "cli/ranks.h"

#include "cli/cli.h"

#include <stdlib.h>

static void must(struct knee_runtime *rt, bool good)
{
    if (!good)
        rt->abort(rt, rt->fault);
}

/* Which rank this is, MPI knows better than the environment, where an old rank may be left over. */
knee_status cli_join(struct cli_run *run, struct knee_runtime **rt)
{
    if (!knee_runtime_launched())
        return KNEE_OK;
    knee_status status = knee_runtime_open(NULL, rt, &run->err);
    if (!status) {
        run->quiet = (*rt)->rank > 0;
        cli_same_question(run, *rt);
    }
    return status;
}

void cli_same_question(struct cli_run *run, struct knee_runtime *rt)
{
    int64_t own = (int64_t)(run->asked >> 1), least = own, most = own;
    must(rt, rt->all_reduce(rt, &least, 1, KNEE_RUNTIME_I64, KNEE_RUNTIME_MIN));
    must(rt, rt->all_reduce(rt, &most, 1, KNEE_RUNTIME_I64, KNEE_RUNTIME_MAX));
    if (least != most && own == most)
        rt->abort(rt, "the ranks were started with different options; give all the same");
    if (least != most)
        must(rt, rt->barrier(rt)); /* the one that speaks ends all */
}

knee_status cli_agree(struct cli_run *run, struct knee_runtime *rt, knee_status own)
{
    if (!rt)
        return own;
    int64_t worst = own, speaker = own ? rt->rank : rt->size;
    must(rt, rt->all_reduce(rt, &worst, 1, KNEE_RUNTIME_I64, KNEE_RUNTIME_MAX));
    must(rt, rt->all_reduce(rt, &speaker, 1, KNEE_RUNTIME_I64, KNEE_RUNTIME_MIN));
    if (worst)
        run->quiet = rt->rank != speaker;
    return (knee_status)worst;
}

void cli_hand_out(struct knee_runtime *rt, char **data, size_t *length)
{
    int64_t size = rt->rank == 0 ? (int64_t)*length : 0;
    must(rt, rt->all_reduce(rt, &size, 1, KNEE_RUNTIME_I64, KNEE_RUNTIME_MAX));
    if (rt->rank > 0) {
        *data = calloc((size_t)size + 1, 1);
        *length = (size_t)size;
        if (!*data)
            rt->abort(rt, "out of memory");
    }
    must(rt, rt->all_reduce(rt, *data, *length, KNEE_RUNTIME_U8, KNEE_RUNTIME_MAX));
}

void *cli_collect(struct knee_runtime *rt, const void *mine, size_t size)
{
    void *all = NULL;
    size_t *sizes = calloc((size_t)rt->size, sizeof *sizes);
    if (!sizes)
        rt->abort(rt, "out of memory");
    must(rt, rt->gather_bytes(rt, mine, size, &all, sizes));
    free(sizes);
    return all;
}
