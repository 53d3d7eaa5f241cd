/* SPDX-License-Identifier: MIT */
/* Clusters from presets, one line, YAML, nvidia-smi and NCCL's XML: the same object; and layouts.
 */
#include "cluster/gpu_words.h"
#include "cluster/presets.h"
#include "knee_out.h"
#include "knee_read.h"
#include "out/answer.h"
#include "say/answers.h"
#include "unit.h"

#include "collective/collective.h"

static struct knee_fitted record, read_back;

static struct knee_cluster parse(const char *line)
{
    struct knee_cluster t;
    struct knee_err err;
    if (knee_cluster_parse(line, &t, &err))
        fail_msg("%s: %s; %s", line, err.what, err.hint);
    return t;
}

static struct knee_cluster read_text(const char *text)
{
    struct knee_cluster t;
    struct knee_err err;
    if (knee_cluster_read(text, strlen(text), "test", &t, &read_back, &err))
        fail_msg("%s: %s", err.where, err.what);
    return t;
}

static struct knee_cluster preset(const char *name)
{
    struct knee_cluster t = {0};
    for (size_t row = 0; knee_cluster_preset_at(row); row++)
        if (strcmp(knee_cluster_preset_at(row)->name, name) == 0) {
            knee_cluster_from_preset(knee_cluster_preset_at(row), &t);
            return t;
        }
    fail_msg("no preset %s", name);
    return t;
}

static void assert_same_levels(const struct knee_cluster *a, const struct knee_cluster *b)
{
    assert_int_equal(a->level_count, b->level_count);
    for (size_t l = 0; l < a->level_count; l++) {
        const struct knee_level *x = &a->levels[l], *y = &b->levels[l];
        assert_string_equal(x->name, y->name);
        assert_near(x->count, y->count, 0);
        assert_relative(x->latency_s, y->latency_s, 1e-14);
        assert_relative(x->bytes_per_s, y->bytes_per_s, 1e-14);
        assert_near(x->ports, y->ports, 0);
        assert_near(x->oversubscription, y->oversubscription, 0);
        assert_int_equal(x->shared, y->shared);
    }
}

TEST(a_line_is_a_preset)
{
    struct knee_cluster line = parse("8xH100:nvlink4 * 0 @ ib400x8"), named = preset("dgx-h100");
    assert_same_levels(&line, &named);
    assert_near(line.launch_s, named.launch_s, 0);
    assert_near(line.nvls_share, named.nvls_share, 0);
    struct knee_cluster usual = parse("8 x h100 * 0"); /* the usual network of that GPU */
    assert_same_levels(&usual, &named);
}

TEST(a_line_says_everything)
{
    struct knee_cluster t = parse("4xgh200 * 32 @ slingshot200x4{sharing=shared} * 16 @ "
                                  "spine/3{latency=9us,bandwidth=1GB/s}");
    assert_int_equal(t.level_count, 3);
    assert_true(t.levels[1].shared);
    assert_near(t.levels[2].oversubscription, 3, 0);
    assert_near(t.levels[2].latency_s, 9e-6, 1e-18);
    assert_near(t.levels[2].bytes_per_s, 1e9, 0);
    assert_near(knee_cluster_ranks(&t), 4 * 32 * 16, 0);
    OWNED(knee_text) text = {0};
    knee_cluster_line(&t, &text);
    struct knee_cluster again = parse(text.data);
    assert_same_levels(&t, &again);
    struct knee_cluster spine = parse("8xh100 * 4 @ ib400 * 2 @ ib200/1000000");
    assert_near(spine.levels[2].oversubscription, 1e6, 0);
    assert_near(spine.levels[1].ports, 1, 0);
    assert_near(spine.levels[2].ports, 0, 0); /* a switch: as many as lead to it */
}

/* What has no preset says what to do; a cloud's instance is a cluster. */
TEST(accelerators_that_people_name_are_known)
{
    static const struct {
        const char *name, *advice;
    } rows[] = {
        {"Trainium2", "Trainium"}, {"trn1.32xlarge", "Trainium"}, {"TPU", "generation"},
        {"inf2", "Inferentia"},    {"p4d", "--cluster"},          {"p4d.24xlarge", "--cluster"},
    };
    static const char names[] = "p4d.24xlarge|Standard_ND96asr_v4|a3-megagpu-8g|p6|a2|a3";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *advice = knee_gpu_advice(rows[i].name);
        if (!advice || !strstr(advice, rows[i].advice))
            fail_msg("%s: %s", rows[i].name, advice ? advice : "-");
    }
    assert_null(knee_gpu_advice("tape"));
    for (struct pieces p = {.rest = names}; next_piece(&p);)
        if (knee_choice_find(&knee_cluster_preset_names, p.text, "", NULL) < 0)
            fail_msg("%s", p.text);
}

TEST(bad_lines_are_refused)
{
    static const char lines[] =
        "|8x|8xzzz|8xh100:ib4000|8xh100 *|8xh100 * 4 @|8xh100 * 4 @ ib400x|"
        "8xh100 * 4 @ ib400x0|8xh100 * 4 @ ib400/0.5|8xh100 * 4 @ ib400/1000001|"
        "8xh100 * 4 @ ib400{latency}|"
        "8xh100 * 4 @ ib400{latency=5parsec}|8xh100 * 4 @ ib400{colour=red}|"
        "8xh100 * 4 @ ib400{sharing=maybe}|8xh100 * 4 @ ib400 nonsense|"
        "8xh100 * 2 * 2 * 2 * 2|8xh100 * 2 @ ib400 * 2 @ a * 2 @ b * 2 @ c";
    for (struct pieces p = {.rest = lines}; next_piece(&p);) {
        struct knee_cluster t = {.launch_s = 42};
        struct knee_err err;
        if (!knee_cluster_parse(p.text, &t, &err))
            fail_msg("'%s' was taken", p.text);
        assert_true(err.what[0] != '\0');
        assert_near(t.launch_s, 42, 0); /* untouched */
    }
}

#if KNEE_HAVE_YAML
TEST(yaml_reads_back)
{
    for (int format = KNEE_TEXT; format <= KNEE_JSON; format++) {
        struct knee_cluster t = parse("8xa100 * 32 @ roce200x8/2 * 4 @ spine/2");
        OWNED(knee_text) text = {0};
        snprintf(t.name, sizeof t.name, "a \"name\": with #everything");
        t.floor_s = 3.5e-5;
        t.sharp = true;
        t.nvls_share = 0.25;
        t.fitted = &record;
        record.curve_count = 2;
        for (size_t i = 0; i < 2; i++)
            record.curves[i] = (struct knee_curve){.op = KNEE_OP_BROADCAST,
                                                   .ranks = 8,
                                                   .nodes = 1,
                                                   .knots = 3,
                                                   .bytes = {8, 1e6, 1e9},
                                                   .time_s = {1.0 / 3e4, 1e-4, 1.0 / 3},
                                                   .rows = 30,
                                                   .median_error = 0.1,
                                                   .source = "a.log"};
        record.parameter_count = 1;
        record.parameters[0] =
            (struct knee_parameter){"launch", 1, 0.5, 2, KNEE_UNIT_SECONDS, true};
        if (format == KNEE_TEXT)
            knee_write_cluster(&t, &text);
        else
            knee_answer_write(&knee_cluster_answer, &t, (enum knee_format)format,
                              &(struct knee_style){0}, &text);
        struct knee_cluster again = read_text(text.data);
        assert_same_levels(&t, &again);
        assert_near(again.floor_s, t.floor_s, 0);
        assert_near(again.launch_s, t.launch_s, 0);
        assert_near(again.nvls_share, 0.25, 0);
        assert_true(again.sharp);
        assert_memory_equal(again.protocols, t.protocols, sizeof t.protocols);
        assert_int_equal(again.fitted->curve_count, 2);
        assert_int_equal(again.fitted->curves[1].op, KNEE_OP_BROADCAST);
        assert_memory_equal(again.fitted->curves[1].time_s, record.curves[1].time_s,
                            sizeof record.curves[1].time_s);
        assert_string_equal(again.fitted->curves[1].source, "a.log");
        assert_int_equal(again.fitted->parameter_count, 1);
        assert_near(again.fitted->parameters[0].high, 2, 0);
        assert_true(again.fitted->parameters[0].fitted);
    }
}

TEST(a_file_may_be_short)
{
    struct knee_cluster t = read_text("from: dgx-h100\nlevels:\n  - link: nvlink4\n    count: 8\n"
                                      "  - link: ib400\n    ports: 4\n    latency: 5us\n");
    assert_near(t.levels[1].ports, 4, 0);
    assert_near(t.levels[1].latency_s, 5e-6, 1e-18);
    assert_near(t.launch_s, 4.6e-6, 1e-18);
    struct knee_cluster given = read_text("launch: 1us\nfrom: 8xh100 * 4\nname: x\n");
    assert_string_equal(given.name, "x");
}

TEST(bad_files_are_refused)
{
    static const char *const files[] = {
        "",
        "levels: 3\n",
        "launch: fast\n",
        "lunch: 1us\nfrom: dgx-h100\n",
        "levels:\n  - count: 8\n",
        "from: nowhere\n",
        "from: dgx-h100\nlevels:\n  - bandwidth: -1\n",
        "from: dgx-h100\ncurves:\n  - {collective: dance}\n",
        "from: dgx-h100\ncurves:\n  - {collective: reduce, bytes: [8, 4], time: [1, 2]}\n",
        "from: dgx-h100\ncurves:\n  - {collective: reduce, bytes: [4, 8], time: [2, 1]}\n",
        "from: dgx-h100\nprotocols:\n  - {name: Simple}\n",
        "a: &a b\nb: *a\n",
        "from: dgx-h100\ncurves:\n  - {collective: reduce, bytes: [0, 8], time: [1, 2]}\n",
        "from: dgx-h100\ncurves:\n  - {collective: reduce, bytes: [4, 8], time: [0, 2]}\n",
        "from: dgx-h100\nlevels: [1, 2]\n",
        "from: dgx-h100\nlevels:\n  - {count: 8}\n  - {count: 2}\n  - {count: 2}\n  - {count: "
        "2}\n  - {count: 2}\n  - {count: 2}\n  - {count: 2}\n  - {count: 2}\n  - {count: 2}\n",
        "levels:\n  - {count: 8, bandwidth: 1 GB/s}\n  - {count: 8, bandwidth: 1 GB/s, ports: "
        "0}\n",
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct knee_cluster t;
        struct knee_err err = {0};
        if (!knee_cluster_read(files[i], strlen(files[i]), "test", &t, &record, &err))
            fail_msg("'%s' was taken", files[i]);
        assert_true(err.what[0] != '\0');
    }
}
#endif

/* A DGX H100 as nvidia-smi prints it, tabs and all, cut to four GPUs and three NICs. */
static const char smi[] =
    "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tNIC2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV18\tNV18\tNV18\tPIX\tSYS\tNODE\t0-47,96-143\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tNV18\tNV18\tSYS\tPXB\tNODE\t0-47,96-143\t0\t\tN/A\n"
    "GPU2\tNV18\tNV18\t X \tNV18\tSYS\tSYS\tSYS\t48-95,144-191\t1\t\tN/A\n"
    "GPU3\tNV18\tNV18\tNV18\t X \tSYS\tSYS\tSYS\t48-95,144-191\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\tSYS\tSYS\t X \tSYS\tSYS\n"
    "\nLegend:\n\n  X    = Self\n";

TEST(nvidia_smi_matrix)
{
    struct knee_cluster t = read_text(smi);
    assert_near(t.levels[0].count, 4, 0);
    assert_string_equal(t.levels[0].name, "nvlink4");
    assert_near(t.levels[1].ports, 2, 0); /* NIC2 is behind no switch of a GPU */
    char spaces[sizeof smi];
    memcpy(spaces, smi, sizeof smi); /* pasted with spaces it says the same */
    for (char *c = spaces; *c; c++)
        *c = *c == '\t' ? ' ' : *c;
    struct knee_cluster pasted = read_text(spaces);
    assert_same_levels(&t, &pasted);
    /* Bridges between pairs only: the slowest pair decides. */
    struct knee_cluster pairs = read_text("GPU0 GPU1 GPU2 mlx5_0\nGPU0  X  NV4 SYS NODE\n"
                                          "GPU1 NV4  X  SYS NODE\nGPU2 SYS SYS  X  NODE\n");
    assert_string_equal(pairs.levels[0].name, "pcie5");
    assert_near(pairs.levels[1].ports, 1, 0);
    struct knee_err err;
    char cut[300];
    snprintf(cut, sizeof cut, "%.250s", smi);
    assert_int_equal(knee_cluster_read(cut, strlen(cut), "cut", &t, &record, &err), KNEE_INPUT);
}

static const char xml[] =
    "<system version=\"1\">\n"
    " <cpu host_hash=\"0x1\" numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\">\n"
    "  <pci busid=\"0000:16:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\">\n"
    "   <pci busid=\"0000:18:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\">\n"
    "    <gpu dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"1\">\n"
    "     <nvlink target=\"0000:07:00.0\" count=\"5\" tclass=\"0x068000\"/>\n"
    "     <nvlink target=\"0000:06:00.0\" count=\"13\" tclass=\"0x068000\"/>\n"
    "    </gpu></pci>\n"
    "   <pci busid=\"0000:2a:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\">\n"
    "    <gpu dev=\"1\" sm=\"90\" rank=\"1\" gdr=\"1\">\n"
    "     <nvlink target=\"0000:07:00.0\" count=\"18\" tclass=\"0x068000\"/>\n"
    "    </gpu></pci>\n"
    "   <pci busid=\"0000:19:00.0\" class=\"0x020000\">\n"
    "    <nic><net name=\"mlx5_0\" dev=\"0\" speed=\"200000\" port=\"1\" gdr=\"1\"/></nic>\n"
    "   </pci></pci></cpu></system>\n";

TEST(nccl_xml)
{
    struct knee_cluster t = read_text(xml), h100 = preset("dgx-h100");
    assert_near(t.levels[0].count, 2, 0);
    assert_string_equal(t.gpu, "h100");
    assert_relative(t.levels[0].bytes_per_s, h100.levels[0].bytes_per_s, 1e-12); /* 18 links */
    assert_true(t.nvls_share > 0);
    assert_string_equal(t.levels[1].name, "ib200");
    assert_near(t.levels[1].ports, 1, 0);
    assert_near(t.levels[1].bytes_per_s, 25e9 * 0.93, 1);
    struct knee_err err;
    assert_int_equal(knee_cluster_read(xml, 500, "cut", &t, &record, &err), KNEE_INPUT);
    static const char endless[] =
        "<system version=\"1\"><cpu numaid=\"0\"><gpu dev=\"0\" sm=\"90\"><nvlink "
        "count=\"11111111111\"/></gpu></cpu></system>";
    assert_int_equal(knee_cluster_read(endless, sizeof endless - 1, "endless", &t, &record, &err),
                     KNEE_INPUT);
    assert_int_equal(knee_cluster_read("<system></system>", 17, "empty", &t, &record, &err),
                     KNEE_INPUT);
    /* An adapter too fast, tags that only begin like known ones, ids that are none, a loose end. */
    static const char fast[] = "<system version=\"1\"><cpu numaid=\"0\"><gpu dev=\"0\" sm=\"90\"/>"
                               "<net name=\"x\" speed=\"99999999999\"/></cpu></system>";
    assert_int_equal(knee_cluster_read(fast, sizeof fast - 1, "fast", &t, &record, &err),
                     KNEE_INPUT);
    t = read_text("<system version=\"1\"><cpu numaid=\"0\"><gpus/><netting a=\"1\"/><pci "
                  "class=\"0x030200\" vendor=\"nvidia\" device=\"h100\" link_speed=\"16.0 "
                  "GT/s\"/><pci class=\"0x030200\" vendor=\"0x10de\"/><gpu dev=\"0\" "
                  "sm=\"90\"/><net name=\"cxi0\" speed=\"200000\"/></cpu></system><");
    assert_near(t.levels[0].count, 1, 0);
    assert_near(t.levels[1].ports, 1, 0);
}

TEST(what_people_write)
{
    static const struct {
        const char *text, *gpu, *link;
        double ports;
    } cases[] = {
        {"2x p4de.24xlarge (16x A100-80GB), EFA 4x100 Gb/s", "a100", "efa100-v1", 4},
        {"2x DGX A100 (16 GPU), 8x200 Gb/s ConnectX-6 HDR IB each", "a100", "ib200", 8},
        {"2 nodes x 8 GPU (DGX-1 class), RoCE SR-IOV 2x CX-5 100 Gb/s", "v100", "roce100", 2},
        {"NVIDIA H100 80GB HBM3", "h100", "ib400", 8},
        {"12_dgxa100x2_hdr_allreduce.log", "a100", "ib200", 8},
        {"2 nodes x 4 GH200 (Alps), Slingshot-11 4x200 Gb/s", "gh200", "slingshot200", 4},
        {"GB200 NVL72, 1 rack", "gb200", "ib400", 72},
        {"2x GCP a3-megagpu-8g (16x H100), GPUDirect-TCPXO 8x200 Gb/s", "h100", "tcpxo200", 8},
        {"2 nodes x 1 B200, RoCE 1x400 Gb/s", "b200", "roce400", 1},
        {"8x RTX 6000D (PCIe), 8x CX-8 RoCE", "rtx", "roce400", 8},
        {"16 MI300X, 8x400G RoCE", "mi300x", "roce400", 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_cluster t;
        assert_true(knee_cluster_recognise(cases[i].text, &t));
        if (strcmp(t.gpu, cases[i].gpu) != 0 || strcmp(t.levels[1].name, cases[i].link) != 0 ||
            t.levels[1].ports != cases[i].ports)
            fail_msg("'%s' is %s", cases[i].text, t.name);
    }
    struct knee_cluster t;
    assert_false(knee_cluster_recognise("a log of something", &t));
}

static struct knee_layout layout(const struct knee_cluster *t, double ranks, double per_node,
                                 double sharers)
{
    struct knee_placement placement = {ranks, per_node, sharers, 1};
    struct knee_layout s;
    struct knee_err err;
    if (knee_layout_init(t, &placement, &s, &err))
        fail_msg("%s", err.what);
    return s;
}

/* Ports: each rank its own part, or all of them for whoever is there; a lone rank has one. */
TEST(ports_are_shared_or_striped)
{
    struct knee_cluster t = parse("8xh100 * 16 @ ib400x8{bandwidth=10GB/s}");
    assert_near(layout(&t, 16, NAN, 1).bytes_per_s[1], 80e9, 1);
    assert_near(layout(&t, 2, 1, 1).bytes_per_s[1], 10e9, 1);
    assert_near(layout(&t, 8, 4, 1).bytes_per_s[1], 40e9, 1);
    t.levels[1].shared = true;
    assert_near(layout(&t, 2, 1, 1).bytes_per_s[1], 80e9, 1);
    t.levels[1].shared = false;
    t.levels[1].ports = 2; /* four GPUs to a port */
    assert_near(layout(&t, 2, 1, 1).bytes_per_s[1], 10e9, 1);
    assert_near(layout(&t, 16, NAN, 1).bytes_per_s[1], 20e9, 1);
    assert_near(layout(&t, 16, NAN, 2).bytes_per_s[1], 10e9, 1); /* two communicators at once */
}

TEST(levels_above_leaves)
{
    struct knee_cluster t = parse("8xh100 * 4 @ ib400x8{bandwidth=10GB/s} * 8 @ spine/2");
    struct knee_layout s = layout(&t, 256, NAN, 1);
    assert_int_equal(s.levels, 3);
    assert_near(s.units[1], 32, 0);
    assert_near(s.units[2], 8, 0);
    assert_near(s.units[3], 1, 0);
    assert_near(s.bytes_per_s[2], 4 * 80e9 / 2, 1); /* four nodes, half of it goes up */
    struct knee_counts counts = {0};
    assert_true(knee_ring.count(&s, KNEE_OP_ALL_REDUCE, 1, &counts));
    assert_near(counts.hops[0] + counts.hops[1] + counts.hops[2], 2 * 255, 0);
    assert_near(counts.hops[2], 16, 0);
    struct knee_placement too_many = {4096, NAN, 1, 1};
    struct knee_err err;
    assert_int_equal(knee_layout_init(&t, &too_many, &s, &err), KNEE_USAGE);
}

/* Every link preset has a transport, and every transport a link. */
TEST(presets_have_transports)
{
    for (size_t row = 0; knee_link_at(row); row++)
        assert_non_null(knee_transport_of(knee_link_at(row)->name));
    struct knee_cluster ib = preset("dgx-a100"), efa = preset("p4d");
    assert_near(ib.levels[1].latency_s, 1.5e-6 + 6e-6, 1e-18); /* wire and host */
    assert_near(efa.levels[1].latency_s, 15e-6 + 55e-6, 1e-18);
    for (size_t row = 0; knee_cluster_preset_at(row); row++) {
        struct knee_cluster t;
        knee_cluster_from_preset(knee_cluster_preset_at(row), &t);
        assert_true(t.launch_s > 0 && t.levels[0].latency_s > 0 && t.levels[1].bytes_per_s > 0);
    }
}
