/* SPDX-License-Identifier: MIT */
/*
 * Writes a made-up Kineto trace of a given size to standard output, for benchmarks: training steps
 * of a transformer on one rank of several, in Kineto's own layout, with nested host operations,
 * Python frames, launches, flows, kernels with long and varied names, copies, collectives with
 * their arguments, steps and a data loader. Durations and gaps are random but reproducible; ranks
 * of one seed share their collectives and their clock.
 *
 *   gen_trace MEGABYTES [RANK [RANKS [SEED]]] > trace.json
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t written, state, shared_state;
static int64_t host_ns, gpu_ns, comm_ns;
static unsigned external_id = 1000, correlation = 5000, flow = 1, python_id = 1;
static int rank, ranks = 8;

static uint64_t next(uint64_t *s)
{
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * 2685821657736338717u;
}

static int64_t range(uint64_t *s, int64_t low, int64_t high)
{
    return low + (int64_t)(next(s) % (uint64_t)(high - low + 1));
}

#define EMIT(...) (written += (uint64_t)printf(__VA_ARGS__))
#define US(ns)    (long long)((ns) / 1000), (int)((ns) % 1000)

static const char *const ops[] = {
    "aten::linear",
    "aten::addmm",
    "aten::mm",
    "aten::layer_norm",
    "aten::native_layer_norm",
    "aten::gelu",
    "aten::add",
    "aten::mul",
    "aten::scaled_dot_product_attention",
    "aten::transpose",
    "aten::view",
    "aten::reshape",
    "aten::empty",
    "aten::as_strided",
    "aten::copy_",
    "aten::to",
    "aten::sum",
    "aten::dropout",
    "autograd::engine::evaluate_function: AddmmBackward0",
    "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
    "aten::fill_"};
static const char *const frames[] = {"torch/nn/modules/module.py(1739): _wrapped_call_impl",
                                     "torch/nn/modules/linear.py(124): forward",
                                     "train.py(88): step",
                                     "torch/optim/adamw.py(243): step",
                                     "<built-in function linear>",
                                     "torch/utils/_contextlib.py(117): decorate_context",
                                     "model/transformer.py(310): forward"};
static const char *const kernels[] = {
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_%dx128_32x%d_tn_align8>("
    "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_%dx128_32x%d_tn_align8::Params)",
    "void at::native::vectorized_elementwise_kernel<%d, "
    "at::native::CUDAFunctor_add<c10::BFloat16>, "
    "std::array<char*, %dul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, "
    "%dul>)",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, "
    "%d>(int, "
    "float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*, %d)",
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<%d, 128, %d, 4, "
    "false, "
    "false, cutlass::bfloat16_t, pytorch_flash::Flash_kernel_traits<%d, 128, 64, 4, "
    "cutlass::bfloat16_t> >"
    ", false, true, false, false, true, true, false>(pytorch_flash::Flash_fwd_params)",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
    "at::native::func_wrapper_t<float, "
    "at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, "
    "float)#%d}>, unsigned int, float, %d> >(at::native::ReduceOp<float>)",
    "nvjet_tst_%dx%d_64x4_2x1_v_bz_coopA_bias_TNT",
    "void "
    "at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::"
    "TensorIteratorBase"
    "&)::{lambda()#%d}::operator()() const::{lambda()#%d}::operator()() const::{lambda(float)#1}, "
    "std::array<char*, 2ul>, 4, TrivialOffsetCalculator<1, unsigned int>, "
    "TrivialOffsetCalculator<1, "
    "unsigned int>, at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> "
    ">(int)"};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static void emit_host(const char *cat, const char *name, int64_t start, int64_t dur)
{
    EMIT("  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d,\n"
         "    \"ts\": %lld.%03d, \"dur\": %lld.%03d,\n    \"args\": {\n"
         "      \"External id\": %u,\"Record function id\": 0, \"Sequence number\": %u, \"Ev "
         "Idx\": %u\n    }\n  },\n",
         cat, name, 4000 + rank, 4000 + rank, US(start), US(dur), external_id, external_id / 3,
         external_id);
    external_id++;
}

static void emit_python(void)
{
    int64_t dur = range(&state, 2000, 90000);
    EMIT("  {\n    \"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"%s\", \"pid\": %d, "
         "\"tid\": %d,\n"
         "    \"ts\": %lld.%03d, \"dur\": %lld.%03d,\n    \"args\": {\n"
         "      \"Python id\": %u, \"Python parent id\": %u, \"Ev Idx\": %u\n    }\n  },\n",
         frames[next(&state) % COUNT(frames)], 4000 + rank, 4000 + rank, US(host_ns), US(dur),
         python_id, python_id / 2, external_id);
    python_id++;
}

static void emit_flow(char phase, int64_t at, int tid)
{
    EMIT("  {\n    \"ph\": \"%c\", \"id\": %u, \"pid\": %d, \"tid\": %d, \"ts\": %lld.%03d,\n"
         "    \"cat\": \"ac2g\", \"name\": \"ac2g\"%s\n  },\n",
         phase, flow, phase == 's' ? 4000 + rank : rank, tid, US(at),
         phase == 'f' ? ", \"bp\": \"e\"" : "");
}

static void emit_launch(const char *call, int64_t dur)
{
    EMIT("  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"%s\", \"pid\": %d, "
         "\"tid\": %d,\n"
         "    \"ts\": %lld.%03d, \"dur\": %lld.%03d,\n    \"args\": {\n"
         "      \"External id\": %u, \"cbid\": 211, \"correlation\": %u\n    }\n  },\n",
         call, 4000 + rank, 4000 + rank, US(host_ns), US(dur), external_id, correlation);
    emit_flow('s', host_ns, 4000 + rank);
}

/* One operation: a nest of host events, a launch and its kernel. */
static void emit_op(void)
{
    char name[1024];
    int64_t took = range(&state, 4000, 16000), kernel = range(&state, 3000, 60000);
    int nest = (int)range(&state, 1, 4);
    for (int i = 0; i < nest; i++)
        emit_host("cpu_op", ops[next(&state) % COUNT(ops)], host_ns + 200 * i, took - 400 * i);
    if (next(&state) % 2)
        emit_python();
    host_ns += took / 2;
    int64_t call = range(&state, 2500, 7000);
    emit_launch("cudaLaunchKernel", call);
    int a = 8 << next(&state) % 5, b = 1 + (int)(next(&state) % 6);
    snprintf(name, sizeof name, kernels[next(&state) % COUNT(kernels)], a, b, a, b);
    if (gpu_ns < host_ns + call)
        gpu_ns = host_ns + call + 800;
    EMIT("  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"pid\": %d, \"tid\": 7,\n"
         "    \"ts\": %lld.%03d, \"dur\": %lld.%03d,\n    \"args\": {\n"
         "      \"External id\": %u, \"queued\": 0, \"device\": %d, \"context\": 1,\n"
         "      \"stream\": 7, \"correlation\": %u,\n      \"registers per thread\": %d,\n"
         "      \"shared memory\": %d, \"blocks per SM\": %d.%d, \"warps per SM\": %d.5,\n"
         "      \"grid\": [%d, 1, 1],\n      \"block\": [%d, 1, 1],\n      \"est. achieved "
         "occupancy %%\": %d\n"
         "    }\n  },\n",
         name, rank, US(gpu_ns), US(kernel), external_id, rank, correlation, 32 + a, 1024 * b, b, a,
         a, a * 132, 128, 10 * b);
    emit_flow('f', gpu_ns, 7);
    gpu_ns += kernel + range(&state, 0, 900);
    host_ns += call + range(&state, 500, 3000);
    correlation++;
    flow++;
}

/* An all-reduce that all ranks share: it ends when the last has come and the wire is done. */
static void emit_collective(void)
{
    long long elements = (long long)range(&shared_state, 1 << 20, 1 << 24);
    int64_t wire = elements / 20, late = range(&shared_state, 0, 40000);
    emit_host("user_annotation", "nccl:all_reduce", host_ns, 30000);
    emit_launch("cudaLaunchKernelExC", 6000);
    int64_t start = host_ns + 7000;
    if (start < comm_ns)
        start = comm_ns;
    EMIT("  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": "
         "\"ncclDevKernel_AllReduce_Sum_bf16_RING_LL("
         "ncclDevKernelArgsStorage<4096ul>)\", \"pid\": %d, \"tid\": 20,\n"
         "    \"ts\": %lld.%03d, \"dur\": %lld.%03d,\n    \"args\": {\n"
         "      \"External id\": %u, \"queued\": 0, \"device\": %d, \"context\": 1,\n"
         "      \"stream\": 20, \"correlation\": %u,\n      \"registers per thread\": 96,\n"
         "      \"shared memory\": 103808, \"blocks per SM\": 0.12, \"warps per SM\": 1.2,\n"
         "      \"grid\": [16, 1, 1],\n      \"block\": [544, 1, 1],\n      \"est. achieved "
         "occupancy %%\": 0,\n"
         "      \"Collective name\": \"allreduce\", \"In msg nelems\": %lld, \"Out msg nelems\": "
         "%lld, "
         "\"Group size\": %d, \"dtype\": \"BFloat16\", \"In split size\": \"[]\", \"Out split "
         "size\": \"[]\", "
         "\"Process Group Name\": \"0\", \"Process Group Description\": \"default_pg\", "
         "\"Process Group Ranks\": \"[0, 1, 2, 3, 4, 5, 6, 7]\"\n    }\n  },\n",
         rank, US(start), US(wire + late), external_id, rank, correlation, elements, elements,
         ranks);
    emit_flow('f', start, 20);
    comm_ns = start + wire + late + 2000;
    host_ns += 12000;
    correlation++;
    flow++;
}

static void emit_step(int number)
{
    int64_t start = host_ns, loader = range(&state, 100000, 900000);
    emit_host("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
              host_ns, loader);
    host_ns += loader;
    for (int i = 0; i < 2000; i++) {
        emit_op();
        if (i > 1000 && i % 40 == 0)
            emit_collective();
    }
    if (host_ns < comm_ns)
        host_ns = comm_ns;
    char name[32];
    snprintf(name, sizeof name, "ProfilerStep#%d", number);
    emit_host("user_annotation", name, start, host_ns - start);
}

int main(int argc, char **argv)
{
    uint64_t size = argc > 1 ? (uint64_t)strtoull(argv[1], NULL, 10) * 1000000 : 1000000;
    rank = argc > 2 ? atoi(argv[2]) : 0;
    ranks = argc > 3 ? atoi(argv[3]) : 8;
    uint64_t seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;
    shared_state = seed * 0x9e3779b97f4a7c15u + 1;
    state = shared_state ^ ((uint64_t)(rank + 1) * 0xbf58476d1ce4e5b9u);
    host_ns = gpu_ns = comm_ns = 3848399294681648;
    EMIT("\n  {\n    \"schemaVersion\": 1,\n    \"deviceProperties\": [\n    {\n      \"id\": %d, "
         "\"name\": "
         "\"NVIDIA H100 80GB HBM3\", \"totalGlobalMem\": 85174583296\n    }\n    ],\n"
         "      \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %d, \"world_size\": %d},\n"
         "  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": 1790857026000000000,\n  "
         "\"traceEvents\": [\n",
         rank, rank, ranks);
    for (int step = 10; written < size; step++)
        emit_step(step);
    EMIT("  {\n    \"name\": \"process_name\", \"ph\": \"M\", \"ts\": %lld.%03d, \"pid\": %d, "
         "\"tid\": 0,\n"
         "    \"args\": {\n      \"name\": \"python\"\n    }\n  }\n  ],\n  \"traceName\": \"made "
         "up\"\n}\n",
         US(host_ns), rank);
    return 0;
}
