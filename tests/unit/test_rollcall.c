/* SPDX-License-Identifier: MIT */
/* Roll calls: made-up records whose truth is known, as JSON and as pickle; and damage. */
#include "knee_rollcall.h"
#include "read/value_tree.h"
#include "timeline/rollcall.h"

#include "unit.h"

/* ---- Making records ---- */

struct maker {
    char text[1 << 16];
    size_t used;
};

static void put(struct maker *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    m->used += (size_t)vsnprintf(m->text + m->used, sizeof m->text - m->used, format, args);
    va_end(args);
    assert_true(m->used < sizeof m->text);
}

static void add(struct knee_rollcall *roll, const char *file, const char *data, size_t length)
{
    struct knee_err err = {0};
    char *copy = malloc(length + 1);
    memcpy(copy, data, length);
    if (knee_rollcall_read(roll, file, copy, length, &err))
        fail_msg("%s: %s", err.where, err.what);
    free(copy);
}

static struct knee_roll_answer join(struct knee_rollcall *roll)
{
    struct knee_roll_answer answer;
    struct knee_err err;
    assert_ok(knee_rollcall_join(roll, NULL, &answer, &err));
    return answer;
}

/* Four ranks, twenty all-reduces of 1 MB; the wire takes `wire_us`, rank `late` comes `by_us` after
 * the others (a negative one: each in turn). */
static void inspector(struct knee_rollcall *roll, int late, int by_us, int wire_us)
{
    for (int rank = 0; rank < 4; rank++) {
        struct maker m = {.used = 0};
        char file[32];
        for (int n = 0; n < 20; n++) {
            bool last = rank == (late < 0 ? n % 4 : late);
            put(&m,
                "{\"header\":{\"id\":\"0xabc\",\"rank\":%d,\"n_ranks\":4,\"nnodes\":1},"
                "\"metadata\":{\"inspector_output_format_version\":\"v4.0\",\"hostname\":\"h\"},"
                "\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":%d,\"coll_msg_size_bytes\":"
                "1048576,\"coll_exec_time_us\":%d}}\n",
                rank, n, wire_us + (last ? 0 : by_us));
        }
        snprintf(file, sizeof file, "host-pid%d.log", rank);
        add(roll, file, m.text, m.used);
    }
}

TEST(the_late_rank_is_named)
{
    OWNED(knee_rollcall) roll = {0};
    inspector(&roll, 2, 500, 100);
    OWNED(knee_roll_answer) a = join(&roll);
    assert_int_equal(a.joined, 20);
    assert_int_equal(a.rank_count, 4);
    for (size_t i = 0; i < 4; i++) {
        const struct knee_roll_rank *rank = &a.ranks[i];
        assert_int_equal(rank->late, rank->rank == 2);
        assert_int_equal(rank->wait_ns, rank->rank == 2 ? 0 : 20 * 500000);
        assert_int_equal(rank->transfer_ns, 20 * 100000);
        assert_int_equal(rank->wait_ns + rank->transfer_ns, rank->duration_ns);
    }
    assert_int_equal(a.ranks[2].held_ns, 20 * 500000);
    /* bus bandwidth: 2 (n - 1) / n S over the wire's time, not over the stay's */
    assert_near(a.collectives[0].bus_bytes_per_s, 1.5 * 1048576 / 100e-6, 1);
    assert_near(a.collectives[0].transfer_s, 100e-6, 1e-12);
}

TEST(ranks_in_turn_are_nobody)
{
    OWNED(knee_rollcall) roll = {0};
    inspector(&roll, -1, 500, 100);
    OWNED(knee_roll_answer) a = join(&roll);
    for (size_t i = 0; i < a.rank_count; i++)
        assert_false(a.ranks[i].late);
    assert_int_equal(a.wait_ns, 20 * 3 * 500000);
}

/* Also one that is last always, by a time that is nothing beside the wire's. */
TEST(what_is_small_is_nobody)
{
    OWNED(knee_rollcall) roll = {0};
    inspector(&roll, 1, 2, 1000);
    OWNED(knee_roll_answer) a = join(&roll);
    for (size_t i = 0; i < a.rank_count; i++)
        assert_false(a.ranks[i].late);
}

/* Two communicators, three kinds; all-to-all may have other sizes on other ranks. Rank 1 is late in
 * both, rank 3 in the second: most time first, ranks by communicator. */
TEST(several_groups_and_kinds)
{
    static const struct {
        const char *op, *group;
        int bytes, us;
    } kinds[] = {{"AllReduce", "0xa", 1 << 20, 100},
                 {"AllReduce", "0xb", 1 << 22, 900},
                 {"AlltoAll", "0xb", 1 << 16, 300}};
    OWNED(knee_rollcall) roll = {0};
    for (int rank = 0; rank < 4; rank++)
        for (size_t k = 0; k < 3; k++) {
            struct maker m = {.used = 0};
            char file[32];
            for (int n = 0; n < 12; n++)
                put(&m,
                    "{\"header\":{\"id\":\"%s\",\"rank\":%d,\"n_ranks\":4,\"nnodes\":1},"
                    "\"metadata\":{\"inspector_output_format_version\":\"v4.0\",\"hostname\":"
                    "\"h\"},\"coll_perf\":{\"coll\":\"%s\",\"coll_sn\":%d,"
                    "\"coll_msg_size_bytes\":%d,\"coll_exec_time_us\":%d}}\n",
                    kinds[k].group, rank, kinds[k].op, k == 2 ? 100 + n : n,
                    kinds[k].bytes + (k == 2 ? rank : 0), kinds[k].us + (rank == 1 ? 0 : 400));
            snprintf(file, sizeof file, "host-pid%d-%zu.log", rank, k);
            add(&roll, file, m.text, m.used);
        }
    OWNED(knee_roll_answer) a = join(&roll);
    assert_int_equal(a.joined, 36);
    assert_int_equal(a.rank_count, 8);
    for (size_t i = 1; i < a.rank_count; i++)
        assert_true(
            a.ranks[i - 1].group < a.ranks[i].group ||
            (a.ranks[i - 1].group == a.ranks[i].group && a.ranks[i - 1].rank < a.ranks[i].rank));
    for (size_t i = 0; i < a.rank_count; i++)
        assert_int_equal(a.ranks[i].late, a.ranks[i].rank == 1);
    for (size_t i = 1; i < a.collective_count; i++)
        assert_true(a.collectives[i - 1].duration_s * (double)a.collectives[i - 1].calls >=
                    a.collectives[i].duration_s * (double)a.collectives[i].calls);
    assert_int_equal(a.mismatched, 0);
}

/* A header that stands alone is carried over; sizes of parts become those of the whole. */
TEST(headers_are_carried_over)
{
    static const char *const text =
        "{\"dump_stats\":{\"header\":{\"id\":\"0x1\",\"rank\":0,\"n_ranks\":8}},\"metadata\":{}}\n"
        "{\"coll_perf\":{\"coll\":\"ReduceScatter\",\"coll_sn\":3,\"coll_msg_size_bytes\":1000,"
        "\"coll_exec_time_us\":5663.5}}\n"
        "not a line of it\n";
    OWNED(knee_rollcall) roll = {0};
    add(&roll, "x.jsonl", text, strlen(text));
    assert_int_equal(roll.entry_count, 1);
    assert_int_equal(roll.entries[0].bytes, 8000);
    assert_int_equal(roll.entries[0].duration_ns, 5663500);
    assert_int_equal(roll.skipped, 1);
}

static const char *any_of(uint64_t *seed, const char *const *words, size_t count)
{
    return words[(size_t)(chance(seed) * (double)count)];
}
#define ANY_OF(seed, ...)                                                                          \
    any_of(seed, (const char *const[]){__VA_ARGS__},                                               \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* A line as somebody may write it; `mark` stands where a value is that nobody asks for. */
static void any_line(struct maker *m, uint64_t *seed, const char *mark)
{
    const char *space = ANY_OF(seed, "", "", " ");
    put(m, "{\"header\":%s", space);
    put(m, "{\"id\":%s,", ANY_OF(seed, "\"0xa\"", "\"0xa\"", "\"0xb\"", "7"));
    if (chance(seed) < 0.8)
        put(m, "\"comm_name\":\"dp\",\"rank\":%s%s,", space,
            ANY_OF(seed, "0", "1", "-1", "\"2\"", "1.0"));
    put(m, "\"n_ranks\":%s},", ANY_OF(seed, "4", "4", "null", "99999999999999999999"));
    put(m, "\"metadata\":{\"git_rev\":\"%s\",\"list\":[1,{\"coll_perf\":2}]}", mark);
    if (chance(seed) < 0.1)
        put(m, ",\"header\":{\"id\":\"0xc\"}");
    put(m, ",%s%s:{", space, ANY_OF(seed, "\"coll_perf\"", "\"coll_perf\"", "\"p2p_perf\""));
    put(m, "\"coll\":\"%s\",", ANY_OF(seed, "AllReduce", "AllGather", "ReduceScatter", "x"));
    put(m, "\"p2p_sn\":4,\"coll_sn\":%s,", ANY_OF(seed, "0", "17", "-3", "\"5\"", "1e3", "[3]"));
    put(m, "\"coll_msg_size_bytes\":%s,%s", ANY_OF(seed, "1024", "1048576", "0.5", "true"), space);
    put(m, "\"coll_exec_time_us\":%s}", ANY_OF(seed, "17", "12.5", "1e2", "\"3\"", "-1", "nan"));
    put(m, "%s}%s\n", space, ANY_OF(seed, "", "", "}", " trailing"));
}

/* Lines are read by their bytes where they are plain, and by a tree where anything is not, an
 * escape for one: both say the same. */
TEST(bytes_say_what_a_tree_says)
{
    size_t read = 0;
    for (uint64_t seed = 1; seed < 300; seed++) {
        struct maker plain = {.used = 0}, escaped = {.used = 0};
        OWNED(knee_rollcall) by_bytes = {0}, by_tree = {0};
        for (int i = 0; i < 40; i++) {
            uint64_t line = seed * 1000 + (uint64_t)i, again = line;
            any_line(&plain, &line, "A");
            any_line(&escaped, &again, "\\u0041");
        }
        add(&by_bytes, "a.log", plain.text, plain.used);
        add(&by_tree, "a.log", escaped.text, escaped.used);
        assert_int_equal(by_bytes.entry_count, by_tree.entry_count);
        assert_int_equal(by_bytes.skipped, by_tree.skipped);
        assert_int_equal(by_bytes.untimed, by_tree.untimed);
        assert_int_equal(by_bytes.group_count, by_tree.group_count);
        for (size_t g = 0; g < by_tree.group_count; g++)
            assert_string_equal(by_bytes.groups[g].name, by_tree.groups[g].name);
        for (size_t i = 0; i < by_tree.entry_count; i++) {
            const struct knee_entry *a = &by_bytes.entries[i], *b = &by_tree.entries[i];
            assert_int_equal(a->group, b->group);
            assert_int_equal(a->rank, b->rank);
            assert_int_equal(a->sequence, b->sequence);
            assert_int_equal(a->bytes, b->bytes);
            assert_int_equal(a->duration_ns, b->duration_ns);
            assert_true(a->op == b->op && a->p2p == b->p2p);
        }
        read += by_tree.entry_count;
    }
    assert_true(read > 1000);
}

/* ---- Flight Recorder ---- */

#define DUMP                                                                                       \
    "{\"version\": \"2.9\", \"pg_config\": {\"7\": {\"name\": \"7\", \"desc\": \"dp\", "           \
    "\"ranks\": "                                                                                  \
    "\"[0, 1, 2, 3]\"}}, \"entries\": ["

static void dump_entry(struct maker *m, int sequence, const char *op, const char *state, double ms)
{
    put(m,
        "%s{\"process_group\": [\"7\", \"dp\"], \"collective_seq_id\": %d, \"p2p_seq_id\": 0, "
        "\"is_p2p\": false, \"profiling_name\": \"nccl:%s\", \"input_sizes\": [[1024, 4]], "
        "\"input_dtypes\": [\"BFloat16\"], \"output_sizes\": [[1024, 4]], \"output_dtypes\": "
        "[\"BFloat16\"], \"state\": \"%s\", \"time_created_ns\": 1758610505592849034",
        m->text[m->used - 1] == '[' ? "" : ", ", sequence, op, state);
    if (ms >= 0)
        put(m, ", \"duration_ms\": %.6f", ms);
    put(m, "}");
}

/* The tree as a pickle of protocol 2, as torch writes it: texts are remembered. */
static void pickled(const struct knee_tree *tree, uint32_t at, struct maker *m)
{
    const struct knee_tree_node *node = &tree->nodes[at];
    uint32_t length = (uint32_t)node->text.length;
    unsigned char bits[8];
    switch (node->kind) {
    case KNEE_TREE_NULL: put(m, "N"); return;
    case KNEE_TREE_TRUE: put(m, "\x88"); return;
    case KNEE_TREE_FALSE: put(m, "\x89"); return;
    case KNEE_TREE_TEXT:
        m->text[m->used++] = 'X';
        memcpy(m->text + m->used, &length, 4); /* the test's machine writes low bytes first */
        memcpy(m->text + m->used + 4, node->text.at, length);
        m->used += 4 + length;
        return;
    case KNEE_TREE_NUMBER:
        memcpy(bits, node->is_whole ? (const void *)&node->whole : (const void *)&node->number, 8);
        put(m, node->is_whole ? "\x8a\x08" : "G");
        for (int i = 0; i < 8; i++)
            m->text[m->used++] = (char)bits[node->is_whole ? i : 7 - i];
        return;
    default: break;
    }
    put(m, node->kind == KNEE_TREE_MAP ? "}(" : "](");
    for (uint32_t child = node->first; child != KNEE_TREE_NONE; child = tree->nodes[child].next) {
        if (node->kind == KNEE_TREE_MAP)
            pickled(tree, tree->nodes[child].key, m);
        pickled(tree, child, m);
    }
    put(m, node->kind == KNEE_TREE_MAP ? "u" : "e");
}

static void to_pickle(const char *json, struct maker *m)
{
    struct knee_tree tree = {0};
    struct knee_err err;
    char *copy = strdup(json);
    m->used = 0;
    assert_ok(knee_tree_json(&tree, copy, strlen(copy), "t", &err));
    put(m, "\x80\x02");
    pickled(&tree, 0, m);
    put(m, ".");
    knee_tree_release(&tree);
    free(copy);
}

/* Rank 3 comes last by 2 ms at each of ten; told as JSON or as pickle. */
static void timed_dumps(struct knee_rollcall *roll, bool pickle)
{
    for (int rank = 0; rank < 4; rank++) {
        struct maker m = {.used = 0}, packed;
        char file[32];
        put(&m, DUMP);
        for (int n = 1; n <= 10; n++)
            dump_entry(&m, n, "all_reduce", "completed", rank == 3 ? 1.5 : 3.5);
        put(&m, "]}");
        snprintf(file, sizeof file, "nccl_trace_rank_%d", rank);
        if (pickle)
            to_pickle(m.text, &packed);
        add(roll, file, pickle ? packed.text : m.text, pickle ? packed.used : m.used);
    }
}

TEST(a_pickle_says_what_json_says)
{
    for (int pickle = 0; pickle < 2; pickle++) {
        OWNED(knee_rollcall) roll = {0};
        timed_dumps(&roll, pickle);
        OWNED(knee_roll_answer) a = join(&roll);
        assert_int_equal(a.joined, 10);
        assert_int_equal(a.stuck_count, 0);
        assert_true(a.ranks[3].late && a.ranks[3].rank == 3);
        assert_int_equal(a.ranks[0].wait_ns, 10 * 2000000);
        assert_int_equal(a.collectives[0].bytes, 1024 * 4 * 2);
        assert_int_equal(a.collectives[0].group_size, 4);
    }
}

/* Whose dump it is stands in the name of the file, or in the dump. */
TEST(ranks_of_dumps)
{
    static const struct {
        const char *file, *more;
        int rank; /* -1: refused */
    } cases[] = {
        {"nccl_trace_rank_3", "", 3},
        {"/tmp/4/_dump_12", "", 12},
        {"rank3.json", "", 3},
        {"dump7.pickle", "", 7},
        {".hidden5", "", 5},
        {"dump", "", -1},
        {"dump.1", "", -1},
        {"dump12345678", "", -1},
        {"5", "", 5},
        {"dump", "\"rank\": 9, ", 9},
        {"dump", "\"rank\": 99999999, ", -1},
        {"dump", "\"rank\": -2, ", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct maker m = {.used = 0};
        OWNED(knee_rollcall) roll = {0};
        struct knee_err err = {0};
        put(&m, "{%s%s", cases[i].more, &DUMP[1]);
        dump_entry(&m, 1, "all_reduce", "completed", 1);
        put(&m, "]}");
        knee_status status = knee_rollcall_read(&roll, cases[i].file, m.text, m.used, &err);
        if (!status != (cases[i].rank >= 0))
            fail_msg("%s %s: %s", cases[i].file, cases[i].more, status ? err.what : "taken");
        if (status)
            assert_string_equal(err.what, "no rank in the name of this Flight Recorder dump");
        else
            assert_int_equal(roll.entries[0].rank, cases[i].rank);
    }
}

TEST(entries_say)
{
    static const struct {
        const char *entry;
        size_t kept, skipped, untimed;
        int64_t bytes, duration_ns;
    } cases[] = {
        {"\"process_group\": [\"7\"], \"state\": \"completed\", \"duration_ms\": 1.5, "
         "\"input_sizes\": [[2, 3]], \"input_dtypes\": [\"Float\"]",
         1, 0, 0, 24, 1500000},
        {"\"process_group\": [\"7\"], \"state\": \"completed\", \"duration_ms\": 1.5, "
         "\"input_sizes\": [[2], [3]], \"input_dtypes\": [\"Float\", \"Double\"]",
         1, 0, 0, 32, 1500000},
        {"\"process_group\": [\"7\"], \"state\": \"completed\", \"duration_ms\": 1.5, "
         "\"input_sizes\": [[2], [3]], \"input_dtypes\": [\"Float\"], \"output_sizes\": [[9]], "
         "\"output_dtypes\": [\"odd\"]",
         1, 0, 0, 20, 1500000},
        {"\"process_group\": [\"7\"], \"state\": \"completed\", \"duration_ms\": -1", 1, 0, 1, -1,
         -1},
        {"\"process_group\": [\"7\"], \"state\": \"completed\", \"duration_ms\": 1e12", 1, 0, 1, -1,
         -1},
        {"\"process_group\": [\"7\"], \"state\": \"started\", \"duration_ms\": 1", 1, 0, 0, -1, -1},
        {"\"process_group\": [\"7\"], \"state\": \"scheduled\", \"is_p2p\": true, \"p2p_seq_id\": "
         "2, "
         "\"profiling_name\": \"send\"",
         1, 0, 0, -1, -1},
        {"\"process_group\": [\"7\"]", 0, 1, 0, 0, 0},
        {"\"process_group\": [], \"state\": \"completed\"", 0, 1, 0, 0, 0},
        {"\"state\": \"completed\"", 0, 1, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct maker m = {.used = 0};
        OWNED(knee_rollcall) roll = {0};
        put(&m,
            "{\"pg_status\": {}, \"pg_config\": {\"7\": {\"name\": \"7\", \"ranks\": \"[0, x, "
            "99999999999, 1]\"}, \"again\": {\"name\": \"7\", \"ranks\": \"[5]\"}, \"8\": {}}, "
            "\"entries\": [{\"collective_seq_id\": 1, %s}]}",
            cases[i].entry);
        add(&roll, "_dump_0", m.text, m.used);
        if (roll.entry_count != cases[i].kept || roll.skipped != cases[i].skipped ||
            roll.untimed != cases[i].untimed)
            fail_msg("%s: %zu kept, %zu skipped", cases[i].entry, roll.entry_count,
                     (size_t)roll.skipped);
        if (roll.entry_count) {
            assert_int_equal(roll.entries[0].bytes, cases[i].bytes);
            assert_int_equal(roll.entries[0].duration_ns, cases[i].duration_ns);
            assert_int_equal(roll.groups[roll.entries[0].group].member_count, 2);
        }
    }
}

/* A trace of Kineto lists process groups too: it is none of these. */
TEST(roll_calls_are_told_from_traces)
{
    static const struct {
        const char *head;
        bool is;
    } cases[] = {
        {"{\"pg_config\": {}}", true},
        {" {\"pg_status\": {}}", true},
        {"{\"entries\": [{\"collective_seq_id\": 1", true},
        {"{\"pg_config\": {}, \"schemaVersion\": 1}", false},
        {"{\"pg_config\": {}, \"deviceProperties\": []}", false},
        {"{\"pg_config\": {}, \"distributedInfo\": {}}", false},
        {"{\"pg_config\": {}, \"traceEvents\": []}", false},
        {"{\"else\": 1}", false},
        {"[\"pg_config\"]", false},
        {"\x80\x02}.", true},
        {"\x80\x09}.", false},
        {"\x80", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (knee_rollcall_recognise(cases[i].head, strlen(cases[i].head)) != cases[i].is)
            fail_msg("%s", cases[i].head);
}

#define HEAD "{\"header\":{\"id\":\"0xa\",\"rank\":1,\"n_ranks\":4}"
static const struct {
    const char *line;
    size_t kept;
    int rank;
    int64_t bytes, duration_ns;
} inspected[] = {
    {HEAD ",\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":1,\"coll_msg_size_bytes\":8,"
          "\"coll_exec_time_us\":5}}",
     1, 1, 8, 5000},
    {HEAD " , \"coll_perf\" : { \"coll\" : \"AllReduce\" , \"coll_sn\" : 1 , "
          "\"coll_msg_size_bytes\" : 8 , \"coll_exec_time_us\" : 5.5 } }",
     1, 1, 8, 5500},
    {HEAD ",\"coll_perf\":{\"coll\":\"AllGather\",\"coll_sn\":1,\"coll_msg_size_bytes\":8,"
          "\"coll_exec_time_us\":5}}",
     1, 1, 32, 5000},
    {HEAD ",\"coll_perf\":{\"coll\":\"AllGather\",\"coll_sn\":1,"
          "\"coll_msg_size_bytes\":1000000000000000000,\"coll_exec_time_us\":1e13}}",
     1, 1, 1000000000000000000, -1},
    {"{\"header\":{\"id\":\"0xa\",\"rank\":99999999,\"n_ranks\":0},\"coll_perf\":{\"coll\":"
     "\"AllGather\",\"coll_sn\":1,\"coll_msg_size_bytes\":8,\"coll_exec_time_us\":-5}}",
     0, 0, 0, 0},
    {HEAD ",\"p2p_perf\":{\"p2p_sn\":3}}", 1, 1, -1, -1},
    {HEAD ",\"coll_perf\":{\"coll\":\"AllReduce\",\"coll\":\"AllGather\",\"coll_sn\":1,"
          "\"extra\":{\"a\":[1,\"}\"]},\"coll_msg_size_bytes\":8,\"coll_exec_time_us\":5}}",
     1, 1, 8, 5000},
    {HEAD ",\"coll_perf\":[1]}", 0, 0, 0, 0},
    {HEAD ",\"coll_perf\":{\"coll\":\"AllRed", 0, 0, 0, 0},
    {HEAD ",\"coll_perf\":{\"coll\"", 0, 0, 0, 0},
    {HEAD ",\"coll_perf\":{\"coll\":", 0, 0, 0, 0},
    {HEAD ",\"coll_perf\":{\"coll\":\"x\"", 0, 0, 0, 0},
    {HEAD ",\"coll_perf\":{\"coll\":{\"a\":", 0, 0, 0, 0},
    {HEAD ",\"coll_perf\":", 0, 0, 0, 0},
    {HEAD ",\"coll_perf\"", 0, 0, 0, 0},
    {HEAD ",", 0, 0, 0, 0},
    {HEAD, 0, 0, 0, 0},
    {"{\"header\":{\"id\":", 0, 0, 0, 0},
    {"{\"header\":", 0, 0, 0, 0},
    {"{\"header\":5,\"coll_perf\":{}}", 0, 0, 0, 0},
    {"{\"coll_perf\":{\"coll_sn\":1}}", 1, 0, -1, -1}, /* of the header before */
    {"{\"header\":{\"id\":\"0xa\",\"rank\":x},\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":x}"
     "}",
     0, 0, 0, 0},
};

/* Odd spacing and odd values of Inspector's lines: a line is taken, or counted as skipped. */
TEST(lines_of_inspector_say)
{
    for (size_t i = 0; i < sizeof inspected / sizeof *inspected; i++) {
        struct maker m = {.used = 0};
        OWNED(knee_rollcall) roll = {0};
        put(&m,
            "{\"header\":{\"id\":\"0xb\",\"rank\":0,\"n_ranks\":2},\"metadata\":{"
            "\"inspector_output_format_version\":\"v4.0\"},\"coll_perf\":{\"coll\":\"AllReduce\""
            ",\"coll_sn\":0,\"coll_msg_size_bytes\":1,\"coll_exec_time_us\":1}}\n");
        put(&m, "%s\n", inspected[i].line);
        add(&roll, "host-pid1.log", m.text, m.used);
        if (roll.entry_count != 1 + inspected[i].kept)
            fail_msg("%s: %zu kept", inspected[i].line, roll.entry_count - 1);
        if (inspected[i].kept) {
            const struct knee_entry *e = &roll.entries[1];
            if (e->rank != inspected[i].rank || e->bytes != inspected[i].bytes ||
                e->duration_ns != inspected[i].duration_ns)
                fail_msg("%s: rank %d, %lld bytes, %lld ns", inspected[i].line, (int)e->rank,
                         (long long)e->bytes, (long long)e->duration_ns);
        }
    }
}

static void dump(struct knee_rollcall *roll, int rank, int oldest_pending, int newest)
{
    struct maker m = {.used = 0};
    char file[32];
    put(&m, DUMP);
    for (int n = oldest_pending; n <= newest; n++)
        dump_entry(&m, n, "all_reduce", "scheduled", -1);
    put(&m, "]}");
    snprintf(file, sizeof file, "_dump_%d", rank);
    add(roll, file, m.text, m.used);
}

TEST(who_stays_away_is_named)
{
    OWNED(knee_rollcall) roll = {0};
    dump(&roll, 0, 8, 9);
    dump(&roll, 1, 8, 8);
    dump(&roll, 2, 8, 7); /* nothing is under way there */
    OWNED(knee_roll_answer) a = join(&roll);
    assert_int_equal(a.stuck_count, 1);
    assert_int_equal(a.stuck[0].sequence, 8);
    assert_int_equal(a.stuck[0].entered, 2);
    assert_int_equal(a.stuck[0].absent_count, 1);
    assert_int_equal(a.stuck[0].absent[0], 2);
    assert_int_equal(a.blamed_count, 1);
    assert_int_equal(a.blamed[0].rank, 2);
    assert_int_equal(a.blamed[0].blame, KNEE_BLAME_SILENT);
    assert_int_equal(a.missing_count, 1); /* a member whose dump was not given */
    assert_int_equal(a.missing[0], 3);
}

/* Two process groups stand still: rank 2 stays away from both, rank 1 from the second. What the
 * ranks that wait are in is the oldest call, whatever was queued behind it. */
TEST(who_holds_up_most_groups_comes_first)
{
    static const char *const groups[] = {"7", "8"};
    OWNED(knee_rollcall) roll = {0};
    for (int rank = 0; rank < 3; rank++) {
        struct maker m = {.used = 0};
        char file[32];
        put(&m, "{\"version\": \"2.9\", \"pg_config\": {\"7\": {\"name\": \"7\", \"desc\": \"dp\", "
                "\"ranks\": \"[0, 1, 2]\"}, \"8\": {\"name\": \"8\", \"desc\": \"tp\", \"ranks\": "
                "\"[0, 1, 2]\"}}, \"entries\": [");
        for (int g = 0; g < 2; g++)
            if (rank != 2 && !(rank == 1 && g == 1))
                for (int n = 4; n < 6 - rank; n++)
                    put(&m,
                        "%s{\"process_group\": [\"%s\", \"x\"], \"collective_seq_id\": %d, "
                        "\"p2p_seq_id\": 0, \"is_p2p\": false, \"profiling_name\": \"nccl:%s\", "
                        "\"input_sizes\": [[8]], \"input_dtypes\": [\"Float\"], "
                        "\"output_sizes\": [[8]], \"output_dtypes\": [\"Float\"], \"state\": "
                        "\"%s\", \"time_created_ns\": 1758610505592849034}",
                        m.text[m.used - 1] == '[' ? "" : ", ", groups[g], n,
                        n == 4 ? "all_reduce" : "all_gather",
                        rank == 1 ? "completed" : "scheduled");
        put(&m, "]}");
        snprintf(file, sizeof file, "_dump_%d", rank);
        add(&roll, file, m.text, m.used);
    }
    OWNED(knee_roll_answer) a = join(&roll);
    assert_int_equal(a.stuck_count, 2);
    assert_int_equal(a.stuck[0].absent_count, 2);
    assert_int_equal(a.stuck[1].absent_count, 1);
    assert_int_equal(a.stuck[0].op, KNEE_OP_ALL_REDUCE);
    assert_int_equal(a.blamed_count, 2);
    assert_int_equal(a.blamed[0].rank, 2);
    assert_int_equal(a.blamed[0].groups, 2);
    assert_int_equal(a.blamed[1].rank, 1);
}

TEST(who_is_behind_is_named)
{
    OWNED(knee_rollcall) roll = {0};
    dump(&roll, 0, 8, 9);
    dump(&roll, 1, 5, 9);
    dump(&roll, 2, 8, 9);
    dump(&roll, 3, 8, 9);
    OWNED(knee_roll_answer) a = join(&roll);
    assert_int_equal(a.blamed_count, 1);
    assert_int_equal(a.blamed[0].rank, 1);
    assert_int_equal(a.blamed[0].blame, KNEE_BLAME_BEHIND);
}

TEST(another_operation_is_a_mismatch)
{
    OWNED(knee_rollcall) roll = {0};
    for (int rank = 0; rank < 2; rank++) {
        struct maker m = {.used = 0};
        put(&m, DUMP);
        dump_entry(&m, 4, rank ? "all_gather" : "all_reduce", "completed", 1);
        put(&m, "]}");
        add(&roll, rank ? "rank1" : "rank0", m.text, m.used);
    }
    OWNED(knee_roll_answer) a = join(&roll);
    assert_int_equal(a.mismatched, 1);
    assert_int_equal(a.mismatch_sequence, 4);
    assert_int_equal(a.joined + a.partial, 0);
}

TEST(a_rank_is_taken_once)
{
    OWNED(knee_rollcall) roll = {0};
    struct knee_err err = {0};
    char again[] = DUMP "]}";
    dump(&roll, 0, 1, 2);
    assert_int_equal(knee_rollcall_read(&roll, "copy/_dump_0", again, strlen(again), &err),
                     KNEE_INPUT);
    assert_string_equal(err.what, "rank 0 was there already, from _dump_0: left out");
}

/* ---- What must not be read ---- */

TEST(nothing_in_a_pickle_is_run)
{
    static const char attack[] = "\x80\x02"
                                 "cos\nsystem\nX\x02\x00\x00\x00ls\x85R.";
    OWNED(knee_rollcall) roll = {0};
    struct knee_err err = {0};
    char data[sizeof attack];
    memcpy(data, attack, sizeof attack);
    assert_int_equal(knee_rollcall_read(&roll, "_dump_0", data, sizeof attack - 1, &err),
                     KNEE_INPUT);
    assert_string_equal(err.what,
                        "a pickle with opcode 0x63 at byte 2, which would run code: not read");
}

TEST(a_cut_is_refused_or_counted)
{
    struct maker m = {.used = 0}, packed;
    put(&m, DUMP);
    dump_entry(&m, 1, "all_reduce", "completed", 1.25);
    put(&m, "]}");
    to_pickle(m.text, &packed);
    for (int pickle = 0; pickle < 2; pickle++)
        for (size_t cut = 0; cut < (pickle ? packed.used : m.used); cut++) {
            OWNED(knee_rollcall) roll = {0};
            struct knee_err err = {0};
            char *data = malloc(cut + 1); /* exactly: a byte too many is seen by ASan */
            memcpy(data, pickle ? packed.text : m.text, cut);
            assert_int_equal(knee_rollcall_read(&roll, "_dump_0", data, cut, &err), KNEE_INPUT);
            assert_true(err.what[0]);
            free(data);
        }
}

/* Any byte of a pickle may be any other. */
TEST(damage_does_no_harm)
{
    struct maker m = {.used = 0}, packed;
    put(&m, DUMP);
    dump_entry(&m, 1, "all_reduce", "completed", 1.25);
    put(&m, "]}");
    to_pickle(m.text, &packed);
    for (size_t at = 0; at < packed.used; at++)
        for (int byte = 0; byte < 256; byte += 5) {
            OWNED(knee_rollcall) roll = {0};
            struct knee_err err = {0};
            char *data = malloc(packed.used);
            memcpy(data, packed.text, packed.used);
            data[at] = (char)byte;
            if (!knee_rollcall_read(&roll, "_dump_0", data, packed.used, &err)) {
                struct knee_roll_answer a = join(&roll);
                knee_roll_answer_release(&a);
            }
            free(data);
        }
}

/* ---- When memory runs out ---- */

TEST(no_memory_is_said)
{
    FOR_EACH_FAILURE(f) {
        OWNED(knee_rollcall) roll = {.alloc = &f.alloc};
        OWNED(knee_roll_answer) a = {.alloc = &f.alloc};
        struct knee_err err = {0};
        char text[] = DUMP "{\"process_group\": [\"7\", \"dp\"], \"collective_seq_id\": 1, "
                           "\"state\": \"scheduled\", \"profiling_name\": \"nccl:all_reduce\"}]}";
        knee_status status = knee_rollcall_read(&roll, "_dump_0", text, strlen(text), &err);
        if (!status)
            status = knee_rollcall_join(&roll, &f.alloc, &a, &err);
        assert_true(status == KNEE_OK || status == KNEE_SYSTEM);
    }
}

TEST(folders_of_traces_are_no_roll_calls)
{
    static const char kineto[] = "{\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": 0, "
                                 "\"pg_config\": [{\"pg_name\": \"0\"}]}, \"traceEvents\": [";
    assert_false(knee_rollcall_recognise(kineto, strlen(kineto)));
    assert_true(knee_rollcall_recognise(DUMP, strlen(DUMP)));
    assert_true(knee_rollcall_recognise("\x80\x02}q", 4));
    assert_false(knee_rollcall_recognise("", 0));
}

/* Of several ranks at once, none may be there already. */
TEST(no_rank_is_taken_in_twice)
{
    OWNED(knee_rollcall) roll = {0};
    OWNED(knee_rollcall) others = {0};
    struct knee_err err = {0};
    dump(&roll, 1, 8, 9);
    dump(&others, 3, 8, 9);
    dump(&others, 1, 8, 9);
    assert_int_equal(knee_rollcall_take(&roll, &others, &err), KNEE_INPUT);
    assert_non_null(strstr(err.what, "rank 1 was there already"));
}
