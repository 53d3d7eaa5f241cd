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
    unsigned char length;
    signed char kind;
};
#define WORD(text, kind)                                                                           \
    {                                                                                              \
        text, sizeof(text) - 1, kind                                                               \
    }

/* Anywhere in the name of a call into the driver, behind "cuda", "cu" or "hip". */
static const struct word calls[] = {
    WORD("CaptureMode", KNEE_HOST_UNUSED), WORD("EventQuery", KNEE_HOST_UNUSED),
    WORD("EventRecord", KNEE_HOST_RECORD), WORD("GetAttribute", KNEE_HOST_UNUSED),
    WORD("INVALID", KNEE_HOST_UNUSED),     WORD("IsCapturing", KNEE_HOST_UNUSED),
    WORD("Launch", KNEE_HOST_LAUNCH),      WORD("Memcpy", KNEE_HOST_LAUNCH),
    WORD("Memset", KNEE_HOST_LAUNCH),      WORD("Synchronize", KNEE_HOST_SYNC),
    WORD("WaitEvent", KNEE_HOST_WAIT),
};

/* First row + 1 of each letter; rows of one letter stand together. */
static const unsigned char calls_by_letter[256] = {
    ['C'] = 1, ['E'] = 2, ['G'] = 4, ['I'] = 5, ['L'] = 7, ['M'] = 8, ['S'] = 10, ['W'] = 11};

/* At the start of the name of an operation or annotation. */
static const struct word scopes[] = {
    WORD("DistributedDataParallel.forward", KNEE_HOST_SCOPE),
    WORD("FSDP::", KNEE_HOST_SCOPE),
    WORD("Optimizer.", KNEE_HOST_SCOPE),
    WORD("ProfilerStep#", KNEE_HOST_SCOPE),
    WORD("autograd::engine::evaluate_function", KNEE_HOST_SCOPE),
    WORD("enumerate(DataLoader)", KNEE_HOST_SCOPE),
    WORD("gloo:", KNEE_HOST_SCOPE),
    WORD("nccl:", KNEE_HOST_SCOPE),
    WORD("record_param_comms", KNEE_HOST_SCOPE),
    WORD("torch.distributed.ddp.reducer::", KNEE_HOST_SCOPE),
    WORD("torch::distributed::reducer::", KNEE_HOST_SCOPE),
};
static const unsigned char scopes_by_letter[256] = {
    ['D'] = 1, ['F'] = 2, ['O'] = 3, ['P'] = 4, ['a'] = 5,
    ['e'] = 6, ['g'] = 7, ['n'] = 8, ['r'] = 9, ['t'] = 10};

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* The word that `text` begins with, among the rows of its first letter from `row` + 1 on. */
static inline const struct word *word_at(const struct word *table, size_t count, size_t row,
                                         struct knee_slice text)
{
    for (; row && row <= count && table[row - 1].text[0] == text.at[0]; row++) {
        const struct word *word = &table[row - 1];
        if (text.length >= word->length && text.at[1] == word->text[1] &&
            memcmp(text.at, word->text, word->length) == 0)
            return word;
    }
    return NULL;
}

static int kind_of_call(struct knee_slice name)
{
    for (size_t i = 0; i < name.length; i++) {
        size_t row = calls_by_letter[(unsigned char)name.at[i]];
        const struct word *word = row ? word_at(calls, COUNT(calls), row,
                                                (struct knee_slice){name.at + i, name.length - i})
                                      : NULL;
        if (word)
            return word->kind;
    }
    return KNEE_HOST_CALL;
}

static int kind_of_scope(struct knee_slice name)
{
    size_t row = name.length ? scopes_by_letter[(unsigned char)name.at[0]] : 0;
    const struct word *word = row ? word_at(scopes, COUNT(scopes), row, name) : NULL;
    return word ? word->kind : KNEE_HOST_UNUSED;
}

int knee_kineto_host_kind(const struct knee_event *e)
{
    switch (e->category) {
    case KNEE_CAT_RUNTIME: return kind_of_call(e->name);
    case KNEE_CAT_HOST: return kind_of_scope(e->name);
    default: return KNEE_HOST_UNUSED;
    }
}
