/* SPDX-License-Identifier: MIT */
/*
 * Being CUPTI's one client, for the time of a sample. Attached, CUPTI makes every launch of the job
 * 2 to 5 us longer, whether it records or not (docs/reference/watch.md): so it leaves the process
 * after each sample and comes again for the next.
 *
 * CUPTI can be finalised safely only when a call into CUDA returns: the first job thread to return
 * from such a call does it. It must stay when a CUDA graph was launched meanwhile: what CUPTI put
 * into the graph would remain, and the next replay would fail (seen with CUDA 13.0). Calls that
 * name graphs are therefore listened to all the time, and once one was heard CUPTI stays for good.
 */
#include "live/live_agent.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum {
    SITE_EXIT = 1,     /* a callback at the end of a call */
    LEAVES_SINCE = 26, /* CUDA 12.8. Before 12.6 there was more that leaving broke */
    IDS = 2048,        /* of calls, in each domain: more than there are */
    GRAPH_CALLS = 64,
};

static int (*subscribe)(void **subscriber, void *callback, void *data);
static int (*unsubscribe)(void *subscriber);
static int (*callback_name)(int domain, uint32_t id, const char **name);
static int (*enable_callback)(uint32_t on, void *subscriber, int domain, uint32_t id);
static int (*enable_domain)(uint32_t on, void *subscriber, int domain);
static int (*finalize)(void);
static int (*get_version)(uint32_t *version);

/* Without the second list it stays attached. */
static const struct live_symbol needed[] = {{"cuptiSubscribe", &subscribe},
                                            {"cuptiUnsubscribe", &unsubscribe}};
static const struct live_symbol leaving_needs[] = {
    {"cuptiGetCallbackName", &callback_name}, {"cuptiEnableCallback", &enable_callback},
    {"cuptiEnableDomain", &enable_domain},    {"cuptiFinalize", &finalize},
    {"cuptiGetVersion", &get_version},
};

enum leaving { STAYS, MAY_LEAVE, LEAVES, LEFT };
static _Atomic int leaving;
static _Atomic bool graphs; /* one was launched or made while CUPTI was here */
static void *subscriber;    /* NULL: we are not its client */

static struct {
    int domain;
    uint32_t id;
} graph_calls[GRAPH_CALLS];
static size_t graph_call_count;

bool live_client_load(void *library)
{
    live_symbols_find(library, leaving_needs, sizeof leaving_needs / sizeof *leaving_needs);
    return live_symbols_find(library, needed, sizeof needed / sizeof *needed);
}

/* ---- Graphs ---- */

static bool is_graph_call(int domain, uint32_t id)
{
    for (size_t i = 0; i < graph_call_count; i++)
        if (graph_calls[i].id == id && graph_calls[i].domain == domain)
            return true;
    return false;
}

static bool touches_graph(const char *name)
{
    return strstr(name, "Graph") &&
           (strstr(name, "Launch") || strstr(name, "Instantiate") || strstr(name, "Upload"));
}

/* Their numbers differ between releases; their names do not. */
static void list_graph_calls(void)
{
    for (int domain = LIVE_DOMAIN_DRIVER; domain <= LIVE_DOMAIN_RUNTIME; domain++)
        for (uint32_t id = 1; id < IDS && graph_call_count < GRAPH_CALLS; id++) {
            const char *name = NULL;
            if (callback_name(domain, id, &name) != 0 || !name || !touches_graph(name))
                continue;
            graph_calls[graph_call_count].domain = domain;
            graph_calls[graph_call_count++].id = id;
        }
}

static void on_call(void *data, int domain, uint32_t id, const void *what)
{
    uint32_t site = 0;
    int expected = MAY_LEAVE;
    (void)data;
    if (is_graph_call(domain, id))
        atomic_store(&graphs, true);
    memcpy(&site, what, sizeof site);
    if (site != SITE_EXIT || atomic_load(&graphs) ||
        !atomic_compare_exchange_strong(&leaving, &expected, LEAVES))
        return;
    finalize();
    atomic_store(&leaving, LEFT);
}

/* ---- Coming ---- */

static bool can_leave(void)
{
    uint32_t version = 0;
    return finalize && get_version(&version) == 0 && version >= LEAVES_SINCE;
}

int live_client_come(bool for_good)
{
    void (*callback)(void *, int, uint32_t, const void *) = on_call;
    void *pointer;
    memcpy(&pointer, &callback, sizeof pointer);
    int code = subscribe(&subscriber, pointer, NULL);
    if (code != 0)
        subscriber = NULL;
    else if (for_good || atomic_load(&graphs) || !can_leave())
        live_client_stay(); /* no other tool is the client */
    if (!subscriber)
        return code;
    if (!graph_call_count)
        list_graph_calls();
    for (size_t i = 0; i < graph_call_count; i++)
        enable_callback(1, subscriber, graph_calls[i].domain, graph_calls[i].id);
    return 0;
}

/* ---- Going ---- */

void live_client_stay(void)
{
    if (subscriber)
        unsubscribe(subscriber);
    subscriber = NULL;
}

/* A job thread must return from a CUDA call. If none does, or with a graph, CUPTI stays. */
static bool see_off(void)
{
    enum { PATIENCE_MS = 500 };
    struct timespec nap = {0, 1000000};
    int expected = MAY_LEAVE;
    atomic_store(&leaving, MAY_LEAVE);
    for (int ms = 0; ms < PATIENCE_MS && atomic_load(&leaving) != LEFT && !atomic_load(&graphs);
         ms++)
        nanosleep(&nap, NULL);
    if (atomic_compare_exchange_strong(&leaving, &expected, STAYS))
        return false;
    while (atomic_load(&leaving) != LEFT)
        nanosleep(&nap, NULL);
    return true;
}

bool live_client_leave(void)
{
    static int told;
    bool left = false;
    if (subscriber && !atomic_load(&graphs) &&
        enable_domain(1, subscriber, LIVE_DOMAIN_RUNTIME) == 0 &&
        enable_domain(1, subscriber, LIVE_DOMAIN_DRIVER) == 0)
        left = see_off();
    if (left)
        subscriber = NULL;
    live_client_stay();
    if (atomic_load(&graphs))
        live_say(&told, "the job launches CUDA graphs: CUPTI stays after a sample, because leaving "
                        "would break them; its other launches take a few microseconds longer");
    return left;
}
