/* SPDX-License-Identifier: MIT */
/*
 * What the host did, as far as replay needs it: calls that hand work to the GPU, wait for it or
 * make one stream wait for another, and the operations and annotations that say what a launch
 * belongs to (a collective, the backward pass, the optimizer, a shard of FSDP). Everything else is
 * time of the host that passes between two calls.
 */
#include "read/trace/trace_json.h"

#include <string.h>

struct word {
    const char *text;
    int kind;
};

/* Anywhere in the name of a call into the driver, behind "cuda", "cu" or "hip". */
static const struct word calls[] = {
    {"Launch", KNEE_HOST_LAUNCH},       {"Memcpy", KNEE_HOST_LAUNCH},
    {"Memset", KNEE_HOST_LAUNCH},       {"Synchronize", KNEE_HOST_SYNC},
    {"WaitEvent", KNEE_HOST_WAIT},      {"EventRecord", KNEE_HOST_RECORD},
    {"EventQuery", KNEE_HOST_UNUSED},   {"IsCapturing", KNEE_HOST_UNUSED},
    {"GetAttribute", KNEE_HOST_UNUSED}, {"CaptureMode", KNEE_HOST_UNUSED},
    {"INVALID", KNEE_HOST_UNUSED},
};

/* At the start of the name of an operation or annotation. */
static const struct word scopes[] = {
    {"autograd::engine::evaluate_function", KNEE_HOST_SCOPE},
    {"record_param_comms", KNEE_HOST_SCOPE},
    {"nccl:", KNEE_HOST_SCOPE},
    {"gloo:", KNEE_HOST_SCOPE},
    {"FSDP::", KNEE_HOST_SCOPE},
    {"Optimizer.", KNEE_HOST_SCOPE},
    {"DistributedDataParallel.forward", KNEE_HOST_SCOPE},
    {"torch::distributed::reducer::", KNEE_HOST_SCOPE},
    {"torch.distributed.ddp.reducer::", KNEE_HOST_SCOPE},
    {"enumerate(DataLoader)", KNEE_HOST_SCOPE},
    {"ProfilerStep#", KNEE_HOST_SCOPE},
};

static bool contains(struct knee_slice name, const char *word)
{
    size_t length = strlen(word);
    for (size_t i = 0; i + length <= name.length; i++)
        if (name.at[i] == word[0] && memcmp(name.at + i, word, length) == 0)
            return true;
    return false;
}

static int kind_of_call(struct knee_slice name)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (contains(name, calls[i].text))
            return calls[i].kind;
    return KNEE_HOST_CALL;
}

static int kind_of_scope(struct knee_slice name)
{
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++) {
        size_t length = strlen(scopes[i].text);
        if (name.length >= length && memcmp(name.at, scopes[i].text, length) == 0)
            return scopes[i].kind;
    }
    return KNEE_HOST_UNUSED;
}

int knee_kineto_host_kind(const struct knee_event *e)
{
    switch (e->category) {
    case KNEE_CAT_RUNTIME: return kind_of_call(e->name);
    case KNEE_CAT_HOST: return kind_of_scope(e->name);
    default: return KNEE_HOST_UNUSED;
    }
}
