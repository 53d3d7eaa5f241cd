/* SPDX-License-Identifier: MIT */
/*
 * Names of communication: one table of words, from the libraries' own sources and real traces.
 * A word, in lower case here, is searched anywhere in the name; case does not matter; the first row
 * that fits wins. What no row knows is looked at once more without its underscores and other signs:
 * letters that spell a collective make it communication.
 * Everything else that runs as a kernel is compute; memcpy and memset are copies, which is decided
 * by the event's category, except that a copy from one GPU to another is communication.
 */
#include "timeline/kinds.h"

#include "base/fold.h"

#include <string.h>

static const struct knee_pattern patterns[] = {
    /* compute and communication in one kernel (Flux, Triton-distributed, symmetric-memory GEMMs) */
    {"flux::", KNEE_SPAN_FUSED, KNEE_OP_UNKNOWN},
    {"ag_gemm", KNEE_SPAN_FUSED, KNEE_OP_ALL_GATHER},
    {"allgather_gemm", KNEE_SPAN_FUSED, KNEE_OP_ALL_GATHER},
    {"gemm_rs", KNEE_SPAN_FUSED, KNEE_OP_REDUCE_SCATTER},
    {"gemm_reducescatter", KNEE_SPAN_FUSED, KNEE_OP_REDUCE_SCATTER},
    {"gemm_allreduce", KNEE_SPAN_FUSED, KNEE_OP_ALL_REDUCE},
    {"gemm_ag", KNEE_SPAN_FUSED, KNEE_OP_ALL_GATHER},
    /* work of the host or of the tools that only looks like it; inductor names a kernel after the
     * operations that it fuses, collectives that it waits for among them */
    {"triton_poi_fused", KNEE_SPAN_COMPUTE, KNEE_OP_UNKNOWN},
    {"triton_red_fused", KNEE_SPAN_COMPUTE, KNEE_OP_UNKNOWN},
    {"triton_per_fused", KNEE_SPAN_COMPUTE, KNEE_OP_UNKNOWN},
    {"triton_tem_fused", KNEE_SPAN_COMPUTE, KNEE_OP_UNKNOWN},
    {"triton_for_fused", KNEE_SPAN_COMPUTE, KNEE_OP_UNKNOWN}, /* foreach */
    {"triton_spl_fused", KNEE_SPAN_COMPUTE, KNEE_OP_UNKNOWN}, /* split scan */
    {"triton_unk_fused", KNEE_SPAN_COMPUTE, KNEE_OP_UNKNOWN},
    {"get_dispatch_layout", KNEE_SPAN_COMPUTE, KNEE_OP_UNKNOWN},
    /* NCCL, RCCL, HCCL of every era */
    {"nccl", KNEE_SPAN_COMM, KNEE_OP_UNKNOWN},
    {"rccl", KNEE_SPAN_COMM, KNEE_OP_UNKNOWN},
    {"hccl", KNEE_SPAN_COMM, KNEE_OP_UNKNOWN},
    {"msccl", KNEE_SPAN_COMM, KNEE_OP_UNKNOWN}, /* mscclKernel_*, mscclpp:: */
    /* PyTorch symmetric memory */
    {"multimem_all_gather", KNEE_SPAN_COMM, KNEE_OP_ALL_GATHER},
    {"multimem_reduce_scatter", KNEE_SPAN_COMM, KNEE_OP_REDUCE_SCATTER},
    {"multimem_", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE},
    {"one_shot_all_reduce", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE},
    {"two_shot_all_reduce", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE},
    {"all_to_all_vdev", KNEE_SPAN_COMM, KNEE_OP_ALL_TO_ALLV},
    {"::barrier_kernel", KNEE_SPAN_COMM, KNEE_OP_BARRIER},
    {"wait_signal_kernel", KNEE_SPAN_COMM, KNEE_OP_SEND_RECV},
    {"put_signal_kernel", KNEE_SPAN_COMM, KNEE_OP_SEND_RECV},
    /* TransformerEngine */
    {"kuserbuffers_push", KNEE_SPAN_COMM, KNEE_OP_SEND_RECV},
    {"userbuffers_fp16_sum_inplace", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE},
    /* expert parallelism: DeepEP and its relatives, NVSHMEM */
    {"deep_ep", KNEE_SPAN_COMM, KNEE_OP_ALL_TO_ALL},
    {"ep::internode", KNEE_SPAN_COMM, KNEE_OP_ALL_TO_ALL},
    {"ep::intranode", KNEE_SPAN_COMM, KNEE_OP_ALL_TO_ALL},
    {"low_latency::dispatch", KNEE_SPAN_COMM, KNEE_OP_ALL_TO_ALL},
    {"low_latency::combine", KNEE_SPAN_COMM, KNEE_OP_ALL_TO_ALL},
    {"hybrid_ep::", KNEE_SPAN_COMM, KNEE_OP_ALL_TO_ALL},
    {"pplx::", KNEE_SPAN_COMM, KNEE_OP_ALL_TO_ALL},
    {"mori::", KNEE_SPAN_COMM, KNEE_OP_ALL_TO_ALL},
    {"mori_ep", KNEE_SPAN_COMM, KNEE_OP_ALL_TO_ALL},
    {"iris::all_scatter", KNEE_SPAN_COMM, KNEE_OP_ALL_GATHER},
    {"iris::", KNEE_SPAN_COMM, KNEE_OP_UNKNOWN},
    {"nvshmem", KNEE_SPAN_COMM, KNEE_OP_UNKNOWN},
    /* inference: vLLM, AITER, QuickReduce, FlashInfer, TensorRT-LLM */
    {"cross_device_reduce", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE},
    {"quickreduce", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE},
    {"allreduce_fusion", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE},
    {"all_reduce_kernel", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE},
    {"oneshotallreduce", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE},
    {"twoshotallreduce", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE},
    {"customallreduce", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE},
    {"reduce_scatter_cross_device_store", KNEE_SPAN_COMM, KNEE_OP_REDUCE_SCATTER},
    {"allgather_lastdim", KNEE_SPAN_COMM, KNEE_OP_ALL_GATHER},
    {"moea2adispatch", KNEE_SPAN_COMM, KNEE_OP_ALL_TO_ALL},
    {"moea2acombine", KNEE_SPAN_COMM, KNEE_OP_ALL_TO_ALL},
    {"moealltoall", KNEE_SPAN_COMM, KNEE_OP_ALL_TO_ALL},
    {"nvls_all_gather", KNEE_SPAN_COMM, KNEE_OP_ALL_GATHER},
    /* Ascend, Intel */
    {"hcom_", KNEE_SPAN_COMM, KNEE_OP_UNKNOWN},
    {"oneccl", KNEE_SPAN_COMM, KNEE_OP_UNKNOWN},
    /* XLA */
    {"all-reduce", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE},
    {"all-gather", KNEE_SPAN_COMM, KNEE_OP_ALL_GATHER},
    {"reduce-scatter", KNEE_SPAN_COMM, KNEE_OP_REDUCE_SCATTER},
    {"all-to-all", KNEE_SPAN_COMM, KNEE_OP_ALL_TO_ALL},
    {"collective-permute", KNEE_SPAN_COMM, KNEE_OP_SEND_RECV},
    {"collective-broadcast", KNEE_SPAN_COMM, KNEE_OP_BROADCAST},
    {"async-collective", KNEE_SPAN_COMM, KNEE_OP_UNKNOWN},
    /* one GPU's memory to another's: copy-engine collectives, async tensor parallel */
    {"memcpy ptop", KNEE_SPAN_COMM, KNEE_OP_SEND_RECV},
    {"memcpyp2p", KNEE_SPAN_COMM, KNEE_OP_SEND_RECV},
    /* CPU jobs */
    {"gloo:", KNEE_SPAN_COMM, KNEE_OP_UNKNOWN},
};

/* Without signs between letters; the last resort, so only what can mean nothing else. */
static const struct knee_pattern letters[] = {
    /* inside of one GPU */
    {"warpallreduce", KNEE_SPAN_COMPUTE, KNEE_OP_UNKNOWN},
    {"blockallreduce", KNEE_SPAN_COMPUTE, KNEE_OP_UNKNOWN},
    {"quadallreduce", KNEE_SPAN_COMPUTE, KNEE_OP_UNKNOWN},
    {"allreduce", KNEE_SPAN_COMM, KNEE_OP_ALL_REDUCE},
    {"allgather", KNEE_SPAN_COMM, KNEE_OP_ALL_GATHER},
    {"reducescatter", KNEE_SPAN_COMM, KNEE_OP_REDUCE_SCATTER},
    {"alltoall", KNEE_SPAN_COMM, KNEE_OP_ALL_TO_ALL},
    {"userbuffers", KNEE_SPAN_COMM, KNEE_OP_UNKNOWN},
    {"moea2a", KNEE_SPAN_COMM, KNEE_OP_ALL_TO_ALL},
    {"crossdevice", KNEE_SPAN_COMM, KNEE_OP_UNKNOWN},
    {"waitsignal", KNEE_SPAN_COMM, KNEE_OP_UNKNOWN},
    /* gemm fused with a collective is found above; MTIA's requests of its DMA engine are copies */
    {"dmarequest", KNEE_SPAN_COPY, KNEE_OP_UNKNOWN},
};

bool knee_has_word(const char *text, const char *word)
{
    char first = knee_lower(*word);
    for (; *text; text++) {
        if (knee_lower(*text) != first)
            continue;
        size_t i = 1;
        while (word[i] && knee_lower(text[i]) == knee_lower(word[i]))
            i++;
        if (!word[i])
            return true;
    }
    return false;
}

/* ---- What a collective's name tells ---- */

struct word {
    const char *text, *meaning;
};

/* Longer words first where one begins another. */
static const struct word algorithms[] = {
    {"COLLNET_DIRECT", "COLLNET_DIRECT"},
    {"COLLNET_CHAIN", "COLLNET_CHAIN"},
    {"COLLNET", "COLLNET"},
    {"NVLS_TREE", "NVLS_TREE"},
    {"NVLS", "NVLS"},
    {"_RING", "RING"},
    {"_TREE", "TREE"},
    {"_PAT_", "PAT"},
    {"Ring", "RING"},
    {"Tree", "TREE"},
    {"multimem", "MULTIMEM"},
    {"one_shot", "ONE_SHOT"},
    {"oneshot", "ONE_SHOT"},
    {"two_shot", "TWO_SHOT"},
    {"twoshot", "TWO_SHOT"},
    {"1stage", "ONE_SHOT"},
    {"2stage", "TWO_SHOT"},
    {"Symk", "SYMMETRIC"},
    {"internode_ll", "LOW_LATENCY"},
    {"PtoP", "COPY_ENGINE"},
};
static const struct word protocols[] = {
    {"LL128", "LL128"}, {"SIMPLE", "SIMPLE"}, {"Simple", "SIMPLE"},
    {"_LL", "LL"},      {"LLKernel", "LL"},
};
static const struct word dtypes[] = {
    {"_bf16", "bf16"},  {"bfloat16", "bf16"}, {"f8e4m3", "f8e4m3"}, {"f8e5m2", "f8e5m2"},
    {"_f16", "f16"},    {"half", "f16"},      {"_f32", "f32"},      {"float", "f32"},
    {"_f64", "f64"},    {"double", "f64"},    {"uint8_t", "u8"},    {"_u8", "u8"},
    {"int8_t", "i8"},   {"_i8", "i8"},        {"uint32_t", "u32"},  {"_u32", "u32"},
    {"int32_t", "i32"}, {"_i32", "i32"},      {"uint64_t", "u64"},  {"_u64", "u64"},
    {"int64_t", "i64"}, {"_i64", "i64"},
};

static const char *look_up(const char *name, const struct word *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(name, words[i].text))
            return words[i].meaning;
    return "";
}
#define LOOK_UP(name, words) look_up(name, words, sizeof(words) / sizeof *(words))

int knee_dtype_bytes(const char *name, size_t length)
{
    static const struct {
        const char *name;
        int bytes;
    } types[] = {
        {"Float", 4},
        {"BFloat16", 2},
        {"Half", 2},
        {"Double", 8},
        {"Byte", 1},
        {"Char", 1},
        {"Bool", 1},
        {"Short", 2},
        {"Int", 4},
        {"Long", 8},
        {"Float8_e4m3fn", 1},
        {"Float8_e5m2", 1},
        {"Float8_e4m3fnuz", 1},
        {"Float8_e5m2fnuz", 1},
        {"f16", 2},
        {"bf16", 2},
        {"f32", 4},
        {"f64", 8},
        {"u8", 1},
        {"i8", 1},
        {"u32", 4},
        {"i32", 4},
        {"u64", 8},
        {"i64", 8},
        {"f8e4m3", 1},
        {"f8e5m2", 1},
        {"UInt16", 2},
        {"UInt32", 4},
        {"UInt64", 8},
        {"ComplexFloat", 8},
        {"ComplexDouble", 16},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].name) == length && memcmp(types[i].name, name, length) == 0)
            return types[i].bytes;
    return 0;
}

bool knee_op_is_barrier(enum knee_op op)
{
    return op == KNEE_OP_ALL_REDUCE || op == KNEE_OP_ALL_GATHER || op == KNEE_OP_REDUCE_SCATTER ||
           op == KNEE_OP_BARRIER;
}

/* `folded` is spelt without signs now. */
static const struct knee_pattern *by_letters(char *folded, size_t length)
{
    size_t kept = 0;
    for (size_t i = 0; i < length; i++)
        if (knee_is_word_char(folded[i]))
            folded[kept++] = folded[i];
    folded[kept] = '\0';
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (strstr(folded, letters[i].word))
            return &letters[i];
    return NULL;
}

struct knee_kernel_facts knee_kernel_facts(const char *name,
                                           const struct knee_trace_options *options)
{
    struct knee_kernel_facts facts = {KNEE_SPAN_COMPUTE, KNEE_OP_UNKNOWN, "", "", ""};
    const struct knee_pattern *found = NULL;
    char folded[2048]; /* longer names say what they are before that */
    size_t length = 0;
    for (; name[length] && length + 1 < sizeof folded; length++)
        folded[length] = knee_lower(name[length]);
    folded[length] = '\0';
    for (size_t i = 0; options && i < options->pattern_count && !found; i++)
        if (knee_has_word(folded, options->patterns[i].word))
            found = &options->patterns[i];
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns && !found; i++)
        if (strstr(folded, patterns[i].word))
            found = &patterns[i];
    if (!found)
        found = by_letters(folded, length);
    if (!found)
        return facts;
    facts.kind = found->kind;
    facts.op = found->op;
    if (found->kind != KNEE_SPAN_COMM && found->kind != KNEE_SPAN_FUSED)
        return facts;
    if (facts.op == KNEE_OP_UNKNOWN)
        facts.op = knee_op_from_name(name, strlen(name));
    facts.algorithm = LOOK_UP(name, algorithms);
    facts.protocol = LOOK_UP(name, protocols);
    facts.dtype = LOOK_UP(name, dtypes);
    return facts;
}

/* ---- Copies ---- */

static const char *const copy_kinds[KNEE_COPY_KINDS] = {
    [KNEE_COPY_DEVICE] = "device to device",
    [KNEE_COPY_IN_PAGEABLE] = "pageable host memory to device",
    [KNEE_COPY_IN_PINNED] = "pinned host memory to device",
    [KNEE_COPY_IN] = "host to device",
    [KNEE_COPY_OUT_PAGEABLE] = "device to pageable host memory",
    [KNEE_COPY_OUT_PINNED] = "device to pinned host memory",
    [KNEE_COPY_OUT] = "device to host",
    [KNEE_COPY_SET] = "memset",
    [KNEE_COPY_OTHER] = "other copies",
};

const char *knee_copy_kind_name(enum knee_copy_kind kind)
{
    return kind < KNEE_COPY_KINDS ? copy_kinds[kind] : "?";
}

/* The row of `one` or, one and two further on, of pinned memory and of memory not named. */
static enum knee_copy_kind by_memory(const char *name, enum knee_copy_kind pageable)
{
    if (knee_has_word(name, "pageable"))
        return pageable;
    return (enum knee_copy_kind)((int)pageable + (knee_has_word(name, "pinned") ? 1 : 2));
}

enum knee_copy_kind knee_copy_kind_of(const char *name)
{
    if (knee_has_word(name, "memset"))
        return KNEE_COPY_SET;
    if (knee_has_word(name, "dtod") || knee_has_word(name, "devicetodevice"))
        return KNEE_COPY_DEVICE;
    if (knee_has_word(name, "htod") || knee_has_word(name, "hosttodevice"))
        return by_memory(name, KNEE_COPY_IN_PAGEABLE);
    if (knee_has_word(name, "dtoh") || knee_has_word(name, "devicetohost"))
        return by_memory(name, KNEE_COPY_OUT_PAGEABLE);
    return KNEE_COPY_OTHER;
}

/* ---- What compute is ---- */

/* A word anywhere in the name; the first row that fits wins. Names are those of PyTorch's own
 * kernels, cuBLAS, cuDNN, CUTLASS, rocBLAS (Cijk), MIOpen, inductor (triton_poi, _red, _per: not
 * templates), Triton libraries and XLA. */
static const struct {
    const char *word;
    enum knee_kernel_kind kind;
} works[] = {
    {"adam", KNEE_KERNEL_OPTIMIZER},
    {"fusedoptimizer", KNEE_KERNEL_OPTIMIZER},
    {"multi_tensor", KNEE_KERNEL_OPTIMIZER},
    {"foreach", KNEE_KERNEL_OPTIMIZER},
    {"triton_tem_", KNEE_KERNEL_PRODUCT},
    {"triton_poi", KNEE_KERNEL_ELEMENTWISE},
    {"triton_red", KNEE_KERNEL_ELEMENTWISE},
    {"triton_per", KNEE_KERNEL_ELEMENTWISE},
    {"layer_norm", KNEE_KERNEL_NORM},
    {"layernorm", KNEE_KERNEL_NORM},
    {"rms_norm", KNEE_KERNEL_NORM},
    {"rmsnorm", KNEE_KERNEL_NORM},
    {"batch_norm", KNEE_KERNEL_NORM},
    {"batchnorm", KNEE_KERNEL_NORM},
    {"group_norm", KNEE_KERNEL_NORM},
    {"groupnorm", KNEE_KERNEL_NORM},
    {"rowwisemoments", KNEE_KERNEL_NORM},
    {"gammabeta", KNEE_KERNEL_NORM},
    {"bn_fw", KNEE_KERNEL_NORM},
    {"bn_bw", KNEE_KERNEL_NORM},
    {"index_elementwise", KNEE_KERNEL_INDEXING},
    {"indexfunc", KNEE_KERNEL_INDEXING},
    {"scatter_gather", KNEE_KERNEL_INDEXING},
    {"elementwise", KNEE_KERNEL_ELEMENTWISE},
    {"flash", KNEE_KERNEL_ATTENTION},
    {"fmha", KNEE_KERNEL_ATTENTION},
    {"attention", KNEE_KERNEL_ATTENTION},
    {"attn", KNEE_KERNEL_ATTENTION},
    {"gemm", KNEE_KERNEL_PRODUCT},
    {"gemv", KNEE_KERNEL_PRODUCT},
    {"cutlass", KNEE_KERNEL_PRODUCT},
    {"nvjet", KNEE_KERNEL_PRODUCT},
    {"xmma", KNEE_KERNEL_PRODUCT},
    {"cijk_", KNEE_KERNEL_PRODUCT},
    {"wgrad", KNEE_KERNEL_PRODUCT},
    {"dgrad", KNEE_KERNEL_PRODUCT},
    {"conv", KNEE_KERNEL_PRODUCT},
    {"winograd", KNEE_KERNEL_PRODUCT},
    {"fprop", KNEE_KERNEL_PRODUCT},
    {"matmul", KNEE_KERNEL_PRODUCT},
    {"splitkreduce", KNEE_KERNEL_PRODUCT},
    {"dot_product", KNEE_KERNEL_PRODUCT},
    {"cublas", KNEE_KERNEL_PRODUCT},
    {"reduce", KNEE_KERNEL_ELEMENTWISE},
    {"softmax", KNEE_KERNEL_ELEMENTWISE},
    {"copy", KNEE_KERNEL_ELEMENTWISE},
    {"catarray", KNEE_KERNEL_ELEMENTWISE},
    {"dropout", KNEE_KERNEL_ELEMENTWISE},
    {"embedding", KNEE_KERNEL_INDEXING},
    {"index", KNEE_KERNEL_INDEXING},
    {"gather", KNEE_KERNEL_INDEXING},
    {"scatter", KNEE_KERNEL_INDEXING},
    {"transpose", KNEE_KERNEL_ELEMENTWISE},
    {"permute", KNEE_KERNEL_ELEMENTWISE},
    {"gelu", KNEE_KERNEL_ELEMENTWISE},
    {"silu", KNEE_KERNEL_ELEMENTWISE},
    {"swiglu", KNEE_KERNEL_ELEMENTWISE},
    {"act_and_mul", KNEE_KERNEL_ELEMENTWISE},
    {"rotary", KNEE_KERNEL_ELEMENTWISE},
    {"rope", KNEE_KERNEL_ELEMENTWISE},
    {"cross_entropy", KNEE_KERNEL_ELEMENTWISE},
    {"nll_loss", KNEE_KERNEL_ELEMENTWISE},
    {"cast", KNEE_KERNEL_ELEMENTWISE},
    {"fill", KNEE_KERNEL_ELEMENTWISE},
    {"pool", KNEE_KERNEL_ELEMENTWISE},
    {"fusion", KNEE_KERNEL_ELEMENTWISE},
};

enum knee_kernel_kind knee_kernel_kind_of(const char *name)
{
    char folded[KNEE_FOLDED];
    knee_fold(name, folded, sizeof folded);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (strstr(folded, works[i].word))
            return works[i].kind;
    return KNEE_KERNEL_OTHER;
}

/* cuBLAS and CUTLASS name their 32-bit products NAME_sgemm_128x64 or, since cuBLAS 12, by the
 * instruction (ffma). Kernels that were written by hand and convolutions, for which cuDNN uses
 * TF32 unless told otherwise, do not count: the advice does not concern them. */
bool knee_kernel_is_plain(const char *name)
{
    const char *product = strstr(name, "_sgemm_");
    return (product && knee_is_digit(product[7])) ||
           (strstr(name, "xmma_gemm") && strstr(name, "_ffma"));
}

/* Products named after TF32, CUTLASS's instruction for it, and PyTorch's attention of 32 bits. */
bool knee_kernel_is_wide(const char *name)
{
    return strstr(name, "tf32") || strstr(name, "_s1688gemm_") ||
           (strstr(name, "fmha_cutlass") && strstr(name, "_f32_"));
}

/* cuBLAS and CUTLASS: sm90_xmma_gemm_f64f64_f64f64_f64, tensorop_d884gemm, dgemm_128x64. */
bool knee_kernel_is_double(const char *name)
{
    return strstr(name, "f64f64") || strstr(name, "d884gemm") || strstr(name, "dgemm_");
}

/* PyTorch's softmax_warp_forward<in, out, sum, log2, is_log, is_masked> and cunn_SoftMaxForward,
 * and the scaled, masked ones of Megatron and Apex. The logarithm is a loss, not attention. */
bool knee_kernel_is_softmax(const char *name)
{
    const char *warp = strstr(name, "softmax_warp_");
    return warp ? !strstr(warp, ", true, ")
                : strstr(name, "cunn_SoftMax") && !strstr(name, "LogSoftMax");
}

const char *knee_kernel_kind_name(enum knee_kernel_kind kind)
{
    static const char *const names[KNEE_KERNEL_KINDS] = {
        [KNEE_KERNEL_PRODUCT] = "GEMM",      [KNEE_KERNEL_ATTENTION] = "attention",
        [KNEE_KERNEL_NORM] = "norm",         [KNEE_KERNEL_ELEMENTWISE] = "elementwise",
        [KNEE_KERNEL_INDEXING] = "indexing", [KNEE_KERNEL_OPTIMIZER] = "optimizer",
        [KNEE_KERNEL_OTHER] = "other",
    };
    return kind < KNEE_KERNEL_KINDS ? names[kind] : "?";
}
