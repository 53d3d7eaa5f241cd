/* SPDX-License-Identifier: MIT */
/*
 * Who records what the GPU does in a sampled step: CUPTI, which comes for a sample and leaves
 * again; CUPTI that records all steps (KNEE_LIVE_ALWAYS); or, for MPI, nothing: the calls
 * themselves are all there is and cost nothing.
 */
#include "live/live_agent.h"

static bool cupti_begins(void)
{
    static int told;
    enum live_cupti_state state = live_cupti_begin();
    if (state == LIVE_CUPTI_TAKEN)
        live_say(&told, "another profiler has CUPTI; sampling goes on when it has let go of it");
    return state == LIVE_CUPTI_ON;
}

static void cupti_stops(void)
{
    live_cupti_end();
    live_cupti_forget(INT64_MAX);
    live_cupti_leave();
}

static void keep_all(int64_t before_ns)
{
    (void)before_ns;
}

static void do_nothing(void) {}

static bool mpi_begins(void)
{
    return true;
}

static size_t mpi_drains(bool ask)
{
    (void)ask;
    return 0;
}

static struct live_recording mpi_recording(void)
{
    return (struct live_recording){0};
}

static const struct live_recorder
    cupti = {cupti_begins, live_cupti_drain,     live_cupti_end, live_cupti_leave,
             cupti_stops,  live_cupti_recording, keep_all,       true,
             false},
    cupti_always = {cupti_begins,         live_cupti_drain,  do_nothing, do_nothing, cupti_stops,
                    live_cupti_recording, live_cupti_forget, true,       true},
    mpi = {mpi_begins,    mpi_drains, do_nothing, do_nothing, do_nothing,
           mpi_recording, keep_all,   false,      false};

const struct live_recorder *live_recorder(void)
{
    if (live_about().source == LIVE_FROM_MPI)
        return &mpi;
    return !live_config()->cupti ? NULL : live_config()->always ? &cupti_always : &cupti;
}
