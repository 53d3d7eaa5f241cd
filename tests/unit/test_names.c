/* SPDX-License-Identifier: MIT */
/* Names: whichever door a GPU's or a collective's name comes in by, it is the same thing. */
#include "unit.h"

#include "base/keys.h"
#include "cluster/gpu_words.h"
#include "collective/collective_op.h"
#include "knee_logs.h"
#include "knee_read.h"
#include "knee_runs.h"
#include "timeline/kinds.h"

static struct knee_fitted record; /* of cluster files: none is read here */

/* ---- GPUs ---- */

/* Each door: the preset it takes the name for; "": none. */

static const char *by_look_up(const char *name)
{
    const struct knee_gpu *gpu = knee_gpu_in(name);
    return gpu ? gpu->name : "";
}

static const char *by_log(const char *name)
{
    static struct knee_cluster t;
    if (!knee_cluster_recognise(name, &t))
        return "";
    return knee_gpu_named(t.gpu) ? t.gpu : "";
}

static const char *by_table_of_runs(const char *name)
{
    char csv[512];
    struct knee_runs runs;
    struct knee_err err;
    int length = snprintf(csv, sizeof csv, "gpu,n_gpus,step_time_s\n%s,8,1\n", name);
    assert_ok(knee_runs_read((struct knee_named_text){csv, (size_t)length, "runs.csv"}, NULL, NULL,
                             &runs, &err));
    int row = runs.run[0].platform.hw.gpu;
    if (row < 0)
        assert_non_null(strstr(runs.run[0].skipped, "no constants for"));
    knee_runs_release(&runs);
    return row < 0 ? "" : knee_gpu_at((size_t)row)->name;
}

static const char *by_trace(const char *name)
{
    static struct knee_trace trace = {.format = "kineto"};
    static struct knee_rank source;
    struct knee_rank_account rank = {.trace = &trace, .source = &source};
    struct knee_account account = {.ranks = &rank, .rank_count = 1, .world_size = 1};
    struct knee_job job;
    struct knee_diagnosis diagnosis;
    struct knee_err err;
    snprintf(trace.gpu_name, sizeof trace.gpu_name, "%s", name);
    rank.ledger.window_ns = rank.ledger.label_ns[KNEE_COMPUTE] = 1000000;
    knee_job_init(&job);
    assert_ok(knee_diagnose(&account, &job, NULL, &diagnosis, &err));
    int row = diagnosis.inputs.hw.gpu;
    assert_int_equal((diagnosis.gaps & KNEE_GAP_GPU) != 0, row < 0); /* and it is said */
    return row < 0 ? "" : knee_gpu_at((size_t)row)->name;
}

static const char *by_list_of_smi(const char *name)
{
    static struct knee_cluster t;
    struct knee_err err;
    char text[512];
    int length = snprintf(text, sizeof text,
                          "GPU 0: %s (UUID: GPU-1)\nGPU 1: %s (UUID: GPU-2)\n\n"
                          "\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\t X \n",
                          name, name);
    assert_ok(knee_cluster_read(text, (size_t)length, "topo", &t, &record, &err));
    return knee_gpu_named(t.gpu) ? t.gpu : "";
}

static const struct {
    const char *door;
    const char *(*ask)(const char *name);
} doors[] = {{"look-up", by_look_up},
             {"log", by_log},
             {"table of runs", by_table_of_runs},
             {"trace", by_trace},
             {"nvidia-smi -L", by_list_of_smi}};

static void every_door(const char *name, const char *preset)
{
    for (size_t i = 0; i < sizeof doors / sizeof *doors; i++)
        if (strcmp(doors[i].ask(name), preset) != 0)
            fail_msg("%s takes '%s' for '%s', not '%s'", doors[i].door, name, doors[i].ask(name),
                     preset);
}

static void upper(char *text)
{
    for (; *text; text++)
        *text = (char)(*text >= 'a' && *text <= 'z' ? *text - 'a' + 'A' : *text);
}

TEST(every_name_is_one_gpu)
{
    for (size_t i = 0; i < knee_gpu_words_count; i++) {
        const struct knee_gpu_word *word = &knee_gpu_words[i];
        char name[64];
        snprintf(name, sizeof name, "NVIDIA %s", word->words);
        const char *preset = knee_gpu_named(word->gpu) ? word->gpu : "";
        every_door(word->words, preset);
        upper(name);
        every_door(name, preset);
        struct knee_cluster t;
        knee_cluster_of_gpu(word->gpu, &t); /* whatever it is, it has links */
        assert_true(t.levels[0].bytes_per_s > 0);
        assert_true(word->gpu[0] && strlen(word->gpu) < sizeof((struct knee_cluster *)0)->gpu);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(word->words, knee_gpu_words[k].words);
    }
}

/* Preset names, and their full names, are spellings of themselves: for flags and one-line clusters
 * too. */
TEST(every_preset_is_itself)
{
    for (size_t row = 0; knee_gpu_at(row); row++) {
        const struct knee_gpu *gpu = knee_gpu_at(row);
        struct knee_cluster t;
        struct knee_err err;
        char line[64];
        every_door(gpu->name, gpu->name);
        every_door(gpu->full_name, gpu->name);
        assert_int_equal(knee_gpu_spelt(gpu->name), (int)row);
        assert_int_equal(knee_gpu_spelt(gpu->full_name), (int)row);
        assert_string_equal(knee_cluster_preset_named(gpu->cluster)->gpu, gpu->name);
        const char *const spellings[] = {gpu->name, gpu->full_name};
        for (size_t i = 0; i < 2; i++) {
            snprintf(line, sizeof line, "4x%s * 2 @ ib400x4", spellings[i]);
            if (knee_cluster_parse(line, &t, &err))
                fail_msg("%s: %s", line, err.what);
            assert_string_equal(t.gpu, gpu->name);
        }
    }
}

/* What drivers, clouds and people really write. A name that is expected to be itself and has no
 * preset must have none: never another GPU's. */
TEST(hard_names)
{
    static const struct {
        const char *name, *gpu;
    } cases[] = {
        {"NVIDIA GH200 480GB", "gh200"},
        {"NVIDIA H200", "h200"},
        {"NVIDIA H200 NVL", "h200-nvl"},
        {"NVIDIA H800", "h800"},
        {"NVIDIA H800 PCIe", "h800-pcie"},
        {"NVIDIA H20", "h20"},
        {"NVIDIA H20-3e", "h20-3e"},
        {"NVIDIA H100 80GB HBM3", "h100"},
        {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", "h100-mig"},
        {"NVIDIA H100 64GB HBM2", "h100-64"},
        {"NVIDIA H100 PCIe", "h100-pcie"},
        {"NVIDIA H100 NVL", "h100-nvl"},
        {"H100-96GB-HBM2e-500W", "h100"},
        {"NVIDIA A100-SXM4-40GB", "a100-40"},
        {"NVIDIA A100-SXM4-80GB", "a100"},
        {"NVIDIA A100-SXM-64GB", "a100-64"},
        {"NVIDIA A100-PCIE-40GB", "a100-pcie-40"},
        {"NVIDIA A100 80GB PCIe", "a100-pcie"},
        {"NVIDIA A800-SXM4-80GB", "a800"},
        {"Tesla V100-SXM2-32GB", "v100"},
        {"Tesla V100-SXM2-16GB", "v100-16"},
        {"Tesla V100-PCIE-16GB", "v100-pcie"},
        {"Tesla V100S-PCIE-32GB", "v100s"},
        {"Tesla T4", "t4"},
        {"NVIDIA L4", "l4"},
        {"NVIDIA L40", "l40"},
        {"NVIDIA L40S", "l40s"},
        {"NVIDIA B200", "b200"},
        {"NVIDIA GB200", "gb200"},
        {"NVIDIA B300 SXM6 AC", "b300"},
        {"NVIDIA GB300", "gb300"},
        {"NVIDIA A10G", "a10g"},
        {"NVIDIA A40", "a40"},
        {"NVIDIA RTX A6000", "rtx-a6000"},
        {"NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"},
        {"NVIDIA GeForce RTX 4090", "rtx-4090"},
        {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"},
        {"AMD Instinct MI300X", "mi300x"},
        {"AMD Instinct MI308X", "mi308x"},
        {"AMD Instinct MI300A", "mi300a"},
        {"AMD Instinct MI325X", "mi325x"},
        {"AMD Instinct MI250X/MI250", "mi250x"},
        {"AMD Instinct MI210", "mi210"},
        {"8xH100", "h100"},
        {"dgxa100x2", "a100"},
        {"h100sxm5", "h100"},
        {"02_mi300x8_allreduce.log", "mi300x"},
        {"16 H100s on InfiniBand", "h100"},
        {"41_rtx6000d_x16_cx8.log", "rtx"},
        {"XH1000", ""},
        {"GRID K1", ""},
        {"some GPU", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        every_door(cases[i].name, knee_gpu_named(cases[i].gpu) ? cases[i].gpu : "");
}

/* A flag takes a name and nothing else. */
TEST(flags_are_strict)
{
    static const struct {
        const char *text, *gpu;
    } cases[] = {
        {"NVIDIA H100 80GB HBM3", "h100"},
        {"H100-SXM5", "h100"},
        {"Tesla V100-SXM2-16GB", "v100-16"},
        {"h100 or so", ""},
        {"my h100", ""},
        {"h800", "h800"},
        {"mi308x", ""},
        {"h1000", ""},
        {"h100\v", ""},
        {"h100!", ""},
        {"", ""},
        {"rtx 4090", "rtx-4090"},
        {"4090", "rtx-4090"},
        {"4091", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int row = knee_gpu_spelt(cases[i].text);
        assert_string_equal(row < 0 ? "" : knee_gpu_at((size_t)row)->name, cases[i].gpu);
    }
}

/* H800 and A800: as H100 and A100, but for 8 of their NVLinks. */
TEST(export_parts_have_their_own_links)
{
    static const struct {
        const char *text, *whole, *gpu;
        double share;
    } parts[] = {{"NVIDIA H800", "NVIDIA H100 80GB HBM3", "h800", 8 / 18.0},
                 {"NVIDIA A800-SXM4-80GB", "NVIDIA A100-SXM4-80GB", "a800", 8 / 12.0}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct knee_cluster part, whole;
        assert_true(knee_cluster_recognise(parts[i].whole, &whole));
        assert_true(knee_cluster_recognise(parts[i].text, &part));
        assert_string_equal(part.gpu, parts[i].gpu);
        assert_relative(part.levels[0].bytes_per_s, parts[i].share * whole.levels[0].bytes_per_s,
                        1e-12);
        const struct knee_gpu *a = knee_gpu_named(parts[i].gpu), *b = knee_gpu_named(whole.gpu);
        assert_true(a->bf16_flops == b->bf16_flops &&
                    a->memory_bytes_per_s == b->memory_bytes_per_s);
    }
}

/* ---- Topologies, which do not name their GPUs ---- */

/* `row[i]`: what GPU i sees of the others, as the matrix prints it. */
static struct knee_cluster of_matrix(const char *const *rows, size_t gpus)
{
    char text[4096];
    size_t used = 0;
    struct knee_cluster t;
    struct knee_err err;
    for (size_t i = 0; i < gpus; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "\tGPU%zu", i);
    for (size_t i = 0; i < gpus; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "\nGPU%zu\t%s", i, rows[i]);
    used += (size_t)snprintf(text + used, sizeof text - used, "\n");
    if (knee_cluster_read(text, used, "topo", &t, &record, &err))
        fail_msg("%s", err.what);
    return t;
}

TEST(matrices_tell_links)
{
    static const char *const four_a100[] = {"X NV4 NV4 NV4", "NV4 X NV4 NV4", "NV4 NV4 X NV4",
                                            "NV4 NV4 NV4 X"};
    static const char *const h800[] = {
        "X NV8 NV8 NV8 NV8 NV8 NV8 NV8", "NV8 X NV8 NV8 NV8 NV8 NV8 NV8",
        "NV8 NV8 X NV8 NV8 NV8 NV8 NV8", "NV8 NV8 NV8 X NV8 NV8 NV8 NV8",
        "NV8 NV8 NV8 NV8 X NV8 NV8 NV8", "NV8 NV8 NV8 NV8 NV8 X NV8 NV8",
        "NV8 NV8 NV8 NV8 NV8 NV8 X NV8", "NV8 NV8 NV8 NV8 NV8 NV8 NV8 X"};
    static const char *const dgx_1[] = {
        "X NV1 NV1 NV2 NV2 SYS SYS SYS", "NV1 X NV2 NV1 SYS NV2 SYS SYS",
        "NV1 NV2 X NV2 SYS SYS NV1 SYS", "NV2 NV1 NV2 X SYS SYS SYS NV1",
        "NV2 SYS SYS SYS X NV1 NV1 NV2", "SYS NV2 SYS SYS NV1 X NV2 NV1",
        "SYS SYS NV1 SYS NV1 NV2 X NV2", "SYS SYS SYS NV1 NV2 NV1 NV2 X"};
    static const char *const bridged[] = {"X NV12 SYS SYS", "NV12 X SYS SYS", "SYS SYS X NV12",
                                          "SYS SYS NV12 X"};
    struct knee_cluster t = of_matrix(four_a100, 4);
    assert_string_equal(t.gpu, "a100");
    t = of_matrix(dgx_1, 8);
    assert_string_equal(t.gpu, "v100");
    assert_string_equal(t.levels[0].name, "nvlink2");
    t = of_matrix(bridged, 4);
    assert_string_equal(t.levels[0].name, "pcie5");
    assert_null(knee_gpu_named(t.gpu));
    t = of_matrix(h800, 8); /* or A800: the matrix does not say which */
    assert_null(knee_gpu_named(t.gpu));
    const struct knee_link *nvlink4 = knee_link_named("nvlink4");
    assert_near(t.levels[0].bytes_per_s, 200e9 * nvlink4->achieved, 1);
}

/* NCCL's file has PCI ids, capability and NVLinks. */
static struct knee_cluster of_xml(const char *device, int sm, int links)
{
    char text[512], nvlink[64] = "";
    struct knee_cluster t;
    struct knee_err err;
    if (links)
        snprintf(nvlink, sizeof nvlink, "<nvlink count=\"%d\" tclass=\"0x068000\"/>", links);
    int length = snprintf(text, sizeof text,
                          "<system version=\"1\"><cpu><pci busid=\"0\" class=\"0x030200\" "
                          "vendor=\"0x10de\" device=\"%s\" link_speed=\"32.0 GT/s PCIe\">"
                          "<gpu dev=\"0\" sm=\"%d\" rank=\"0\">%s</gpu></pci></cpu></system>",
                          device, sm, nvlink);
    if (knee_cluster_read(text, (size_t)length, "topo.xml", &t, &record, &err))
        fail_msg("%s", err.what);
    return t;
}

TEST(pci_ids_name_gpus)
{
    static const struct {
        const char *device;
        int sm, links;
        const char *gpu;
        double bytes_per_s; /* raw */
    } cases[] = {
        {"0x2330", 90, 18, "h100", 450e9},    {"0x2335", 90, 18, "h200", 450e9},
        {"0x2330", 90, 9, "h100", 225e9}, /* half of them down */
        {"0x2342", 90, 18, "gh200", 450e9},   {"0x2324", 90, 8, "h800", 200e9},
        {"0x20b0", 80, 12, "a100-40", 300e9}, {"0x26b5", 89, 0, "l40", 63e9},
        {"0xffff", 90, 18, "h100", 450e9},    {"0xffff", 90, 8, "sm_90", 200e9},
        {"0xffff", 120, 0, "sm_120", 63e9},   {"2330", 86, 0, "sm_86", 63e9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_cluster t = of_xml(cases[i].device, cases[i].sm, cases[i].links);
        const struct knee_link *link = knee_link_named(t.levels[0].name);
        assert_string_equal(t.gpu, cases[i].gpu);
        assert_near(t.levels[0].bytes_per_s, cases[i].bytes_per_s * link->achieved, 1);
    }
}

/* ---- Collectives ---- */

static const struct {
    const char *name;
    enum knee_op op;
} collectives[] = {
    {"all_reduce", KNEE_OP_ALL_REDUCE},
    {"allreduce_", KNEE_OP_ALL_REDUCE},
    {"AllReduce", KNEE_OP_ALL_REDUCE},
    {"all-reduce-start", KNEE_OP_ALL_REDUCE},
    {"allreduce_coalesced_", KNEE_OP_ALL_REDUCE},
    {"nccl:all_reduce", KNEE_OP_ALL_REDUCE},
    {"gloo:all_reduce", KNEE_OP_ALL_REDUCE},
    {"osu_iallreduce", KNEE_OP_ALL_REDUCE},
    {"MPI_Allreduce", KNEE_OP_ALL_REDUCE},
    {"all_reduce_perf_mpi", KNEE_OP_ALL_REDUCE},
    {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
     KNEE_OP_ALL_REDUCE},
    {"ncclKernel_AllReduce_TREE_LL_Sum_float", KNEE_OP_ALL_REDUCE},
    {"_allgather_base_", KNEE_OP_ALL_GATHER},
    {"all_gather_into_tensor", KNEE_OP_ALL_GATHER},
    {"allgather_into_tensor_coalesced_", KNEE_OP_ALL_GATHER},
    {"MPI_Iallgatherv", KNEE_OP_ALL_GATHER},
    {"all_gather_object", KNEE_OP_ALL_GATHER},
    {"_reduce_scatter_base_", KNEE_OP_REDUCE_SCATTER},
    {"reduce_scatter_tensor_coalesced_", KNEE_OP_REDUCE_SCATTER},
    {"MPI_Reduce_scatter_block", KNEE_OP_REDUCE_SCATTER},
    {"ncclDevKernel_ReduceScatter_Sum_bf16_RING_SIMPLE", KNEE_OP_REDUCE_SCATTER},
    {"all_to_all", KNEE_OP_ALL_TO_ALL},
    {"alltoall_base_", KNEE_OP_ALL_TO_ALL},
    {"all_to_all_single", KNEE_OP_ALL_TO_ALL},
    {"alltoall_perf", KNEE_OP_ALL_TO_ALL},
    {"all_to_allv", KNEE_OP_ALL_TO_ALLV},
    {"nccl:all_to_allv", KNEE_OP_ALL_TO_ALLV},
    {"MPI_Alltoallv", KNEE_OP_ALL_TO_ALLV},
    {"broadcast_", KNEE_OP_BROADCAST},
    {"_broadcast_oop", KNEE_OP_BROADCAST},
    {"bcast", KNEE_OP_BROADCAST},
    {"osu_bcast", KNEE_OP_BROADCAST},
    {"ncclBcast", KNEE_OP_BROADCAST},
    {"reduce_", KNEE_OP_REDUCE},
    {"reduce_perf", KNEE_OP_REDUCE},
    {"gather", KNEE_OP_GATHER},
    {"MPI_Gatherv", KNEE_OP_GATHER},
    {"scatter_perf", KNEE_OP_SCATTER},
    {"send", KNEE_OP_SEND_RECV},
    {"recv_", KNEE_OP_SEND_RECV},
    {"recv_any_source_", KNEE_OP_SEND_RECV},
    {"SendRecv", KNEE_OP_SEND_RECV},
    {"ncclDevKernel_SendRecv", KNEE_OP_SEND_RECV},
    {"collective-permute-start", KNEE_OP_SEND_RECV},
    {"barrier", KNEE_OP_BARRIER},
    {"osu_ibarrier", KNEE_OP_BARRIER},
};
#define COLLECTIVES (sizeof collectives / sizeof *collectives)

/* A log whose table tells nothing but times is taken for what its file is called. */
static enum knee_op by_file_name(const char *name)
{
    static const char log[] =
        "#  size  count  type  redop  root  time  algbw  busbw #wrong\n"
        "#  (B)  (elements)  (us)  (GB/s)  (GB/s)\n"
        "1048576 262144 float none -1 100.0 10.49 10.49 0 100.0 10.49 10.49 0\n";
    struct knee_logs logs = {0};
    struct knee_err err;
    struct knee_log_hints hints = {2, 1, KNEE_OP_UNKNOWN, NULL};
    char file[160];
    snprintf(file, sizeof file, "02_a100x2_%s.log", name);
    if (knee_logs_read(&logs, log, sizeof log - 1, file, &hints, &err))
        fail_msg("%s", err.what);
    enum knee_op op = logs.logs[0].op_known == KNEE_INFERRED ? logs.logs[0].op : KNEE_OP_UNKNOWN;
    knee_logs_release(&logs);
    return op;
}

TEST(every_collective_is_one)
{
    for (size_t i = 0; i < COLLECTIVES; i++) {
        const char *name = collectives[i].name;
        enum knee_op op = collectives[i].op, moves = op == KNEE_OP_BARRIER ? KNEE_OP_UNKNOWN : op;
        size_t length = strlen(name);
        if (knee_op_spelt(name, length) != op || knee_op_from_name(name, length) != op ||
            knee_op_of(name, length) != moves)
            fail_msg("%s is %s, %s, %s", name, knee_op_name(knee_op_spelt(name, length)),
                     knee_op_name(knee_op_from_name(name, length)),
                     knee_op_name(knee_op_of(name, length)));
        struct knee_kernel_facts facts;
        char kernel[160];
        snprintf(kernel, sizeof kernel, "nccl_%s", name);
        facts = knee_kernel_facts(kernel, NULL);
        assert_int_equal(facts.op, op);
    }
    /* busbw = algbw: what the ratio of two ranks allows */
    static const char *const files[] = {"all_reduce", "bcast",    "broadcast_perf",
                                        "reduce",     "sendrecv", "Send"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_int_equal(by_file_name(files[i]), knee_op_of(files[i], strlen(files[i])));
}

/* What only looks like one. A text may hold a name; a word must be it. */
TEST(words_are_whole)
{
    static const struct {
        const char *name;
        enum knee_op in, is;
    } cases[] = {
        {"small_reduce", KNEE_OP_REDUCE, KNEE_OP_UNKNOWN},
        {"all_reduce_and_more", KNEE_OP_ALL_REDUCE, KNEE_OP_UNKNOWN},
        {"al_reduce", KNEE_OP_REDUCE, KNEE_OP_UNKNOWN},
        {"allredcue", KNEE_OP_UNKNOWN, KNEE_OP_UNKNOWN},
        {"ncclDevKernel_Generic", KNEE_OP_UNKNOWN, KNEE_OP_UNKNOWN},
        {"latency", KNEE_OP_UNKNOWN, KNEE_OP_SEND_RECV},
        {"kernel(allreduce)", KNEE_OP_UNKNOWN, KNEE_OP_UNKNOWN},
        {"nccl", KNEE_OP_UNKNOWN, KNEE_OP_UNKNOWN},
        {"", KNEE_OP_UNKNOWN, KNEE_OP_UNKNOWN},
        {"i", KNEE_OP_UNKNOWN, KNEE_OP_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t length = strlen(cases[i].name);
        if (knee_op_from_name(cases[i].name, length) != cases[i].in ||
            knee_op_spelt(cases[i].name, length) != cases[i].is)
            fail_msg("%s", cases[i].name);
    }
}

/* Libraries of expert parallelism communicate; what inductor fuses only mentions it. */
TEST(kernels_are_what_they_do)
{
    static const struct {
        const char *name;
        enum knee_span_kind kind;
    } cases[] = {
        {"void deep_ep::internode::notify_dispatch<false, 8>", KNEE_SPAN_COMM},
        {"MORI_EpCombine_kernel", KNEE_SPAN_COMM},
        {"iris::all_scatter", KNEE_SPAN_COMM},
        {"gemm_ag_kernel", KNEE_SPAN_FUSED},
        {"triton_poi_fused_all_gather_into_tensor_0", KNEE_SPAN_COMPUTE},
        {"triton_for_fused_all_reduce_1", KNEE_SPAN_COMPUTE},
        {"triton_spl_fused_reduce_scatter_tensor_2", KNEE_SPAN_COMPUTE},
        {"triton_unk_fused_all_to_all_single_3", KNEE_SPAN_COMPUTE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (knee_kernel_facts(cases[i].name, NULL).kind != cases[i].kind)
            fail_msg("%s", cases[i].name);
}
