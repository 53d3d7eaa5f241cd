/* SPDX-License-Identifier: MIT */
#include "reach/start.h"

#include "reach/exchange.h"

#include <math.h>
#include <sched.h>
#include <time.h>

enum { CLOCK_TAG = 80, ROUND_TRIPS = 8, MOST_RANKS = 128 };

static const double slack_s = 300e-6; /* waking up on a busy host */

double knee_clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool send_time(struct knee_runtime *rt, double time_s, int to)
{
    struct knee_request *request = NULL;
    return rt->send_start(rt, &time_s, sizeof time_s, to, CLOCK_TAG, &request) &&
           rt->wait(rt, &request);
}

static bool receive_time(struct knee_runtime *rt, double *time_s, int from)
{
    struct knee_request *request = NULL;
    return rt->receive_start(rt, time_s, sizeof *time_s, from, CLOCK_TAG, &request) &&
           rt->wait(rt, &request);
}

/* Rank 0's side: answers with its clock. */
static bool answer(struct knee_runtime *rt, int other)
{
    double theirs_s;
    for (int i = 0; i < ROUND_TRIPS; i++)
        if (!receive_time(rt, &theirs_s, other) || !send_time(rt, knee_clock_s(), other))
            return false;
    return true;
}

static bool ask(struct knee_runtime *rt, double *offset_s, double *half_s)
{
    *half_s = INFINITY;
    for (int i = 0; i < ROUND_TRIPS; i++) {
        double sent_s = knee_clock_s(), theirs_s = 0;
        if (!send_time(rt, sent_s, 0) || !receive_time(rt, &theirs_s, 0))
            return false;
        double half = (knee_clock_s() - sent_s) / 2;
        if (half < *half_s) {
            *half_s = half;
            *offset_s = theirs_s - (sent_s + half);
        }
    }
    return true;
}

bool knee_start_measure(struct knee_runtime *rt, struct knee_start *start)
{
    double half_s = 0;
    start->known = rt->size <= MOST_RANKS;
    start->offset_s = 0;
    if (!start->known)
        return true;
    for (int r = 1; rt->rank == 0 && r < rt->size; r++)
        if (!answer(rt, r))
            return false;
    if (rt->rank > 0 && !ask(rt, &start->offset_s, &half_s))
        return false;
    if (!rt->all_reduce(rt, &half_s, 1, KNEE_RUNTIME_F64, KNEE_RUNTIME_MAX))
        return false;
    start->margin_s = 1.2 * (ceil(log2(rt->size)) + 1) * half_s + slack_s;
    return true;
}

/* Sleeps most of the way; waking up is no more exact than this, so the rest is spent awake. */
static void wait_until(double at_s)
{
    static const double awake_s = 200e-6;
    double left_s = at_s - knee_clock_s() - awake_s;
    if (left_s > 0) {
        struct timespec left = {(time_t)left_s, (long)(fmod(left_s, 1) * 1e9)};
        nanosleep(&left, NULL);
    }
    while (knee_clock_s() < at_s)
        sched_yield();
}

bool knee_start_together(struct knee_runtime *rt, struct knee_start *start, double *at_s)
{
    double latest_s = knee_clock_s() + start->offset_s;
    if (!start->known) {
        bool good = rt->barrier(rt);
        *at_s = knee_clock_s();
        return good;
    }
    if (!knee_exchange_latest(rt, &latest_s))
        return false;
    *at_s = latest_s + start->margin_s - start->offset_s;
    start->missed += knee_clock_s() > *at_s;
    wait_until(*at_s);
    return true;
}
