/* SPDX-License-Identifier: MIT */
/* Is it a model that is served, not trained? By the names of its kernels: words that only inference
 * engines have, and none of those that training has. */
#include "judge/judge.h"
#include "timeline/kinds.h"

static const char *const serves[] = {
    "vllm::",       "sglang",       "sgl_kernel",       "paged_attention",   "pagedattention",
    "flashinfer",   "tensorrt_llm", "decode_attention", "reshape_and_cache", "batchdecode",
    "batchprefill", "kv_cache",     "llama_token",
};
static const char *const trains[] = {
    "backward", "_bwd", "bwd_", "adam", "optimizer", "multi_tensor", "dgrad", "wgrad", "nll_loss",
};

static bool any(const struct knee_trace *trace, const char *const *words, size_t count)
{
    for (size_t n = 0; n < trace->name_count; n++)
        for (size_t i = 0; i < count; i++)
            if (knee_has_word(trace->names[n], words[i]))
                return true;
    return false;
}
#define ANY(trace, words) any(trace, words, sizeof(words) / sizeof *(words))

bool knee_is_serving(const struct knee_account *account)
{
    const struct knee_trace *trace = account->ranks[0].trace;
    return account->step_source != KNEE_STEPS_OPTIMIZER && ANY(trace, serves) &&
           !ANY(trace, trains);
}
