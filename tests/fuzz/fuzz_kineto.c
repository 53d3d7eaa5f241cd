/* SPDX-License-Identifier: MIT */
/* Traces of Kineto with ranks, grammar first: pushed and asked as trace, diff, replay. */
#include "grammar.h"
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
static const char *const names[] = {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)",
                                    "ncclKernel_SendRecv",
                                    "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_nn",
                                    "Memcpy HtoD (Pinned -> Device)",
                                    "void at::native::vectorized_elementwise_kernel",
                                    "nccl:all_reduce",
                                    "nccl:_all_gather_base",
                                    "cudaLaunchKernel",
                                    "cudaStreamSynchronize",
                                    "ProfilerStep#1",
                                    "ProfilerStep#2",
                                    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                                    "Optimizer.step#AdamW.step",
                                    "FullyShardedDataParallel.forward",
                                    "aten::mm",
                                    "flash_fwd_kernel",
                                    "Memset (Device)",
                                    "\\u001b[31m",
                                    "=1+1",
                                    "",
                                    "gloo:all_reduce",
                                    "multi_tensor_apply_kernel",
                                    "c10d::allreduce_",
                                    "nccl:send 0->1",
                                    "deep_ep::dispatch",
                                    "## forward ##"};
static const char *const cats[] = {"kernel",     "kernel",          "kernel",
                                   "gpu_memcpy", "gpu_memset",      "cuda_runtime",
                                   "cpu_op",     "user_annotation", "gpu_user_annotation",
                                   "ac2g",       "cuda_driver",     "python_function",
                                   "Trace",      "fwdbwd"};
static const char *const numbers[] = {"0",
                                      "1",
                                      "2",
                                      "3.5",
                                      "1000",
                                      "1e3",
                                      "-1",
                                      "1e18",
                                      "9223372036854775807",
                                      "-9223372036854775808",
                                      "1e400",
                                      "0.0000001",
                                      "4294967296",
                                      "\"7\"",
                                      "null",
                                      "18446744073709551616",
                                      "1700000000000000.123",
                                      "86400000000",
                                      "3153600000000000"};
static const char *const ops[] = {
    "allreduce", "_allgather_base", "reduce_scatter", "all_to_all", "send", "recv",
    "broadcast", "barrier",         "coalesced",      "wait",       "x",    ""};
static const char *const types[] = {"Float", "BFloat16", "Byte", "Int", "", "Float8_e4m3fn"};
static void event(struct buf *b, unsigned rank, double *t)
{
    const char *cat = PICK(cats), *name = PICK(names);
    double dur = below(4) ? below(64) * 10.0 : 0;
    unsigned odd = below(24);
    *t += below(3) ? below(32) : -(double)below(64);
    add(b,
        "%s{\"ph\": \"%c\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %u, \"tid\": %u, \"ts\": ",
        b->n && b->d[b->n - 1] == '[' ? "" : ",\n", "XXXXXXsfBEMiC"[below(13)], cat, name, below(4),
        below(5));
    if (odd == 1)
        add(b, "%s", PICK(numbers));
    else
        add(b, "%.3f", 1e6 + *t + (coin(40) ? 1e9 : 0) + rank * (coin(16) ? 1e6 : 0.1));
    add(b, ", \"dur\": ");
    if (odd == 2)
        add(b, "%s", PICK(numbers));
    else
        add(b, "%.3f", dur);
    if (odd == 3) {
        add(b, ", \"id\": %u, \"bp\": \"e\"}", below(8));
        return;
    }
    add(b, ", \"args\": {\"device\": %u, \"stream\": %u, \"correlation\": %s%u", below(3), below(5),
        coin(20) ? "-" : "", below(20));
    if (strstr(name, "nccl") || coin(4)) {
        add(b,
            ", \"Collective name\": \"%s\", \"In msg nelems\": %s, \"Out msg nelems\": %u, "
            "\"dtype\": \"%s\", \"Group size\": %s, \"Process Group Name\": \"%u\"",
            PICK(ops), coin(8) ? PICK(numbers) : "4096", 1u << below(24), PICK(types),
            coin(12) ? PICK(numbers) : "2", below(4));
        if (coin(2))
            add(b, ", \"Process Group Description\": \"%s\", \"Process Group Ranks\": \"%s\"",
                coin(2) ? "mesh_tp" : "default_pg",
                coin(3)   ? "[0, 1]"
                : coin(3) ? "[0, 1, 2, ..., 7]"
                          : "[99999999999999999999, -1");
        if (coin(2))
            add(b, ", \"Seq\": %s", coin(10) ? PICK(numbers) : "5");
    }
    if (coin(6))
        add(b,
            ", \"grid\": [%u, 1, 1], \"block\": [%s], \"est. achieved occupancy %%\": %u, \"Input "
            "Dims\": [[%u, 4096], [4096, %u], []]",
            below(200), coin(5) ? "1,2,3,4,5,6" : "128, 1, 1", below(120), 1u << below(14),
            1u << below(16));
    if (coin(9))
        add(b,
            ", \"Ev Idx\": %u, \"External id\": %u, \"Sequence number\": %u, \"Fwd thread id\": %u",
            below(9), below(9), below(9), below(3));
    add(b, "}}");
}
static void push(struct knee_ask *ask, const char *name, unsigned rank)
{
    struct buf b = {0};
    double t = 0;
    add(&b, "{\n\"schemaVersion\": 1, ");
    if (!coin(4))
        add(&b,
            "\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %s, \"world_size\": %s, "
            "\"pg_count\": 1, \"pg_config\": [{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", "
            "\"ranks\": [0, 1]}]}, ",
            coin(20) ? PICK(numbers)
            : rank   ? "1"
                     : "0",
            coin(20) ? PICK(numbers) : "2");
    if (!coin(4))
        add(&b,
            "\"deviceProperties\": [{\"id\": 0, \"name\": \"%s\", \"totalGlobalMem\": %s, "
            "\"numSms\": 132}], ",
            coin(3)   ? "NVIDIA H100 80GB HBM3"
            : coin(3) ? "AMD Instinct MI300X"
                      : "NVIDIA H20",
            PICK(numbers));
    if (coin(4))
        add(&b, "\"baseTimeNanoseconds\": %s, ", PICK(numbers));
    add(&b, "\"traceEvents\": [");
    unsigned steps = below(4), n = 4 + below(40);
    for (unsigned s = 0; s < steps; s++)
        add(&b,
            "%s{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#%u\", "
            "\"pid\": 1, \"tid\": 1, \"ts\": %u, \"dur\": %u}",
            s ? ",\n" : "", s + below(2), 1000000 + 1000 * s, 1000);
    for (unsigned i = 0; i < n && decisions < decisions_end; i++)
        event(&b, rank, &t);
    add(&b, "]\n}");
    if (coin(12))
        b.n = b.n * below(100) / 100;
    if (!knee_push_begin(ask, name, NULL)) {
        size_t at = 0, room;
        char *to;
        while (at < b.n && (to = knee_push_room(ask, &room))) {
            size_t some = 1 + (coin(3) ? below(64) : 65535);
            room = room < some ? room : some;
            room = room < b.n - at ? room : b.n - at;
            memcpy(to, b.d + at, room);
            knee_push_filled(ask, room);
            at += room;
        }
        knee_push_end(ask, NULL);
    }
    free(b.d);
}
static const char *const lines_trace[] = {
    "",
    "where\n",
    "strict\n",
    "gpu = h100\nparams = 7B\nglobal-batch = 512\n",
    "cluster = dgx-h100\n",
    "perfetto = p\n",
    "levers = replay\n",
    "levers = closed\nprice = 3\nidle-power = 90\n",
    "names\n",
    "max-ratio = 0.1\nmin-overlap = 0.9\n",
    "critical-batch = 1M\nsteps = 1000\nglobal-batch = 4K\nlocal-batch = 8\n"};
static const char *const lines_replay[] = {"",
                                           "even\n",
                                           "wire = bf16\n",
                                           "wire = powersgd:4\nbucket = 25MB\n",
                                           "network = 2x\ncluster = dgx-h100\n",
                                           "workers = 64\n",
                                           "workers = 4096\nstrong\n",
                                           "accumulate = 4\n",
                                           "no-host-gaps\npinned\nloader-ahead\n",
                                           "overlap\nkeep-params\nprefetch\nhsdp = 8\n",
                                           "sync-every = 16\n",
                                           "without = 1\n",
                                           "scale = gemm:0.5\n",
                                           "algorithm = tree\n",
                                           "batch = 2x\n",
                                           "perfetto = p\neven\n"};
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decisions = data;
    decisions_end = data + size;
    struct knee_ask *ask = knee_ask_begin(NULL);
    struct knee_text answer = {0};
    struct knee_err err;
    int patience = 8;
    unsigned ranks = 1 + below(4), what = below(4);
    if (!ask)
        return 0;
    knee_ask_watch(ask, stop, &patience);
    for (unsigned r = 0; r < ranks; r++) {
        char name[40];
        snprintf(name, sizeof name, "%s/rank%u.json", what == 1 && r >= ranks / 2 ? "b" : "a",
                 coin(10) ? 0 : r);
        push(ask, name, r);
    }
    const char *command = what == 1 ? "diff" : what == 2 ? "replay" : "trace";
    const char *lines = what == 1   ? "word = a\nword = b\n"
                        : what == 2 ? PICK(lines_replay)
                                    : PICK(lines_trace);
    unsigned only = below(KNEE_MARKDOWN + 1); /* one format of four: four times the inputs */
    for (int f = KNEE_TEXT; f <= KNEE_MARKDOWN; f++) {
        if (!all_formats && f != (int)only)
            continue;
        answer.length = 0;
        if (knee_ask(ask, command, lines, (enum knee_format)f, &answer, &err) == KNEE_SYSTEM)
            continue; /* no memory: what there is of an answer is not one */
        look(&answer, (enum knee_format)f);
    }
    knee_ask_end(ask);
    knee_text_release(&answer);
    return 0;
}
