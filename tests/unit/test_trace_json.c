/* SPDX-License-Identifier: MIT */
/*
 * The container of traces: what stands around the events, documents of several kinds, damage and
 * what it costs, events that are too large, stops, and too little memory. Then what single events
 * say: devices of XProf, shapes of products.
 */
#include "read/trace/product_args.h"
#include "read/trace/reader.h"
#include "trace_help.h"

/* ---- Around the events ---- */

#define WITH(member) "{" member ", \"traceEvents\": [" K("gemm", "1", "2") "]}"

TEST(members_are_read)
{
    static const struct {
        const char *member;
        int64_t rank, world, base_ns;
        const char *backend, *gpu, *host;
    } cases[] = {
        {"\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8}", 3, 8, 0,
         "nccl", "", ""},
        {"\"distributedInfo\": {\"rank\" : \"3\", \"world_size\" :8}", 3, 8, 0, "", "", ""},
        {"\"distributedInfo\": {\"rank\" 3, \"ranking\": 4, \"world_size\": 0}", -1, -1, 0, "", "",
         ""},
        {"\"distributedInfo\": {\"rank\": none, \"backend\": 7}", -1, -1, 0, "", "", ""},
        {"\"distributedInfo\": {\"rank\": -1, \"world_size\": -8}", -1, -1, 0, "", "", ""},
        {"\"distributedInfo\": {\"backend\": \"a\tb\"}", -1, -1, 0, "a?b", "", ""},
        {"\"distributedInfo\": {\"backend\": \"0123456789012345678901234567890123456789\"}", -1, -1,
         0, "0123456789012345678901234567890", "", ""},
        {"\"distributedInfo\": {\"rank\"   }", -1, -1, 0, "", "", ""},
        {"\"distributedInfo\": {\"backend\":   }", -1, -1, 0, "", "", ""},
        {"\"baseTimeNanoseconds\": 1700000000000000000", -1, -1, 1700000000000000000, "", "", ""},
        {"\"baseTimeNanoseconds\": -5", -1, -1, 0, "", "", ""},
        {"\"baseTimeNanoseconds\": 9223372036854775800", -1, -1, 0, "", "", ""},
        {"\"baseTimeNanoseconds\": null", -1, -1, 0, "", "", ""},
        {"\"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA H200\"}]", -1, -1, 0, "",
         "NVIDIA H200", ""},
        {"\"host_name\": \"node\t1\"", -1, -1, 0, "", "", "node?1"},
        {"\"hostname\": "
         "\"0123456789012345678901234567890123456789012345678901234567890123456789\"",
         -1, -1, 0, "", "", "012345678901234567890123456789012345678901234567890123456789012"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048];
        snprintf(text, sizeof text, "{%s, \"traceEvents\": [%s]}", cases[i].member,
                 K("gemm", "1", "2"));
        OWNED(knee_trace) t = trace_of(text);
        if (t.rank != cases[i].rank || t.world_size != cases[i].world ||
            t.base_ns != cases[i].base_ns || strcmp(t.backend, cases[i].backend) ||
            strcmp(t.gpu_name, cases[i].gpu) || strcmp(t.host, cases[i].host))
            fail_msg("%s: rank %d of %d, %s, %s, %s", cases[i].member, (int)t.rank,
                     (int)t.world_size, t.backend, t.gpu_name, t.host);
        assert_int_equal(spans_of(&t), 1);
    }
}

TEST(every_kind_of_document_is_read)
{
    static const struct {
        const char *what, *text;
        size_t spans;
        enum knee_loss_kind loss;
        uint64_t count;
    } cases[] = {
        {"an array", "[" K("a", "1", "2") ", " K("b", "4", "2") "]", 2, KNEE_LOSS_EVENT, 0},
        {"without its end", "[" K("a", "1", "2") ", " K("b", "4", "2"), 2, KNEE_LOSS_TRUNCATED, 0},
        {"cut in an event", "[" K("a", "1", "2") ", {\"ph\": \"X\", ", 1, KNEE_LOSS_TRUNCATED, 1},
        {"an object without its end", "{\"traceEvents\": [" K("a", "1", "2"), 1,
         KNEE_LOSS_TRUNCATED, 1},
        {"events, one a line", K("a", "1", "2") "\n" K("b", "4", "2") "\n", 2, KNEE_REPAIR_COMMA,
         1},
        {"two documents", "[" K("a", "1", "2") "][" K("b", "4", "2") "]", 2, KNEE_REPAIR_DOCUMENT,
         1},
        {"a byte order mark", "\xef\xbb\xbf[" K("a", "1", "2") "]", 1, KNEE_LOSS_EVENT, 0},
        {"noise before", "noise [" K("a", "1", "2") "]", 1, KNEE_LOSS_EVENT, 1},
        {"noise between", "[" K("a", "1", "2") " noise " K("b", "4", "2") "]", 2, KNEE_LOSS_EVENT,
         1},
        {"no comma", "[" K("a", "1", "2") " " K("b", "4", "2") "]", 2, KNEE_REPAIR_COMMA, 1},
        {"an event cut short",
         "[" K("a", "1", "2") ", {\"ph\": \"X\", \"cat\" \"kernel\"}, " K("b", "4", "2") "]", 2,
         KNEE_LOSS_EVENT, 1},
        {"a member without a value", "{\"a\": , \"traceEvents\": [" K("a", "1", "2") "]}", 1,
         KNEE_LOSS_EVENT, 1},
        {"a member without a name", "{5, \"traceEvents\": [" K("a", "1", "2") "]}", 1,
         KNEE_LOSS_EVENT, 1},
        {"events that are no list",
         "{\"traceEvents\": {\"a\": 1}, \"more\": 2}[" K("a", "1", "2") "]", 1,
         KNEE_REPAIR_DOCUMENT, 1},
        {"a string that swallows an event",
         "[{\"ph\": \"X\", \"name\": \"a\"b}, " K("b", "4", "2") ", " K("c", "8", "2") "]", 2,
         KNEE_LOSS_EVENT, 1},
        {"a first key of another name",
         "[{\"a_key_that_is_much_too_long\": 1, \"ph\": \"X\", \"cat\": \"kernel\", \"name\": "
         "\"a\", \"pid\": 0, \"tid\": 7, \"ts\": 1, \"dur\": 2}]",
         1, KNEE_LOSS_EVENT, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED(knee_trace) t = trace_of(cases[i].text);
        if (spans_of(&t) != cases[i].spans || t.losses[cases[i].loss].count != cases[i].count)
            fail_msg("%s: %zu pieces, %d of %s", cases[i].what, spans_of(&t),
                     (int)t.losses[cases[i].loss].count, knee_loss_name(cases[i].loss));
    }
}

TEST(what_is_no_trace_says_what_it_is)
{
    static const struct {
        const char *text, *what;
    } cases[] = {
        {"", "not a trace: an empty file"},
        {"{}", "not a trace: no trace events in it"},
        {"[]", "not a trace: no trace events in it"},
        {"{\"traceEvents\": []}", "not a trace: no trace events in it"},
        {"  \n ", "not a trace: no trace events in it"},
        {"hello", "not a trace: no trace events in it"},
        {"\x89PNG\r\n", "not a trace: a PNG picture"},
        {"PK\x03\x04", "not a trace: a zip archive"},
        {"%PDF-1.7", "not a trace: a PDF"},
        {"\x7f"
         "ELF",
         "not a trace: a program"},
        {"SQLite format 3", "not a trace: an SQLite database"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_trace trace = {0}, untouched = {0};
        struct knee_err err;
        assert_int_equal(read_bytes(cases[i].text, strlen(cases[i].text), "a.json", &trace, &err),
                         KNEE_INPUT);
        assert_memory_equal(&trace, &untouched, sizeof trace);
        assert_string_equal(err.what, cases[i].what);
        assert_non_null(strstr(err.hint, "Kineto"));
    }
}

/* Pushed in pieces of any size a trace is the same. */
TEST(pieces_of_any_size)
{
    static const char text[] =
        "{\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": 3, \"world_size\": 8}, "
        "\"traceEvents\": [" K(
            "gemm", "1.5",
            "2") ", {\"name\": \"x\", \"ph\": \"X\", \"cat\": "
                 "\"cpu_op\", \"pid\": \"worker 5\", \"tid\": \"stream 12345678901\", \"ts\": 5e0, "
                 "\"dur\": "
                 "\"7\", \"args\": {\"Sequence number\": 7, \"Seq\": 1.5, \"x\": {\"y\": [1]}}}, "
                 "{\"ph\": \"kernel\", \"cat\": \"kernel\", \"name\": \"odd\", \"pid\": null, "
                 "\"tid\": [7], "
                 "\"ts\": 1, \"dur\": 1}, {\"ph\": \"X\", \"cat\": \"\", \"name\": \"none\", "
                 "\"ts\": 1}, " K("relu", "8", "2") "], \"hostname\": \"n1\"}";
    OWNED(knee_trace) whole = trace_of(text);
    assert_int_equal(whole.rank, 3);
    assert_string_equal(whole.host, "n1");
    for (size_t piece = 1; piece < sizeof text; piece += piece < 80 ? 1 : 37) {
        struct knee_trace_reader *r = knee_trace_begin("test.json", NULL, NULL);
        OWNED(knee_trace) trace;
        struct knee_err err;
        for (size_t at = 0, size; at < strlen(text); at += size) {
            char *room = knee_trace_room(r, &size);
            size = size < piece ? size : piece;
            size = size < strlen(text) - at ? size : strlen(text) - at;
            memcpy(room, text + at, size);
            knee_trace_filled(r, size);
        }
        assert_ok(knee_trace_end(r, &trace, &err));
        assert_int_equal(spans_of(&trace), spans_of(&whole));
        assert_int_equal(trace.events, whole.events);
        assert_int_equal(trace.rank, 3);
        assert_string_equal(trace.host, "n1");
        for (size_t loss = 0; loss < KNEE_LOSSES; loss++)
            assert_int_equal(trace.losses[loss].count, whole.losses[loss].count);
    }
}

/* ---- Damage, and what it costs ---- */

/* An event in Kineto's layout, or (packed) with the same members in another. */
static size_t put_event(char *out, bool packed, const char *cat, const char *name, int number,
                        const char *args)
{
    return (size_t)sprintf(
        out,
        packed ? ", {\"name\": \"%2$s\", \"ph\": \"X\", \"cat\": \"%1$s\", \"ts\": %3$d.250, "
                 "\"args\": "
                 "{%4$s}, \"dur\": 7.5, \"tid\": 7, \"pid\": 0}"
               : ",\n  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": 0, "
                 "\"tid\": 7,\n"
                 "    \"ts\": %d.250, \"dur\": 7.500,\n    \"args\": {\n      %s\n    }\n  }",
        cat, name, number, args);
}

/* What is alike from one event to the next is compared as a whole: each still gives its own. */
TEST(events_alike_are_told_apart)
{
    static const char *const ids[] = {
        "\"External id\": %d, \"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": 7, "
        "\"correlation\": %d",
        "\"External id\": %d, \"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": 7, "
        "\"correlation\": %d, \"grid\": [1, 1]",
        "\"External id\": %d, \"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": 20, "
        "\"correlation\": %d",
        "\"External id\": %d, \"device\": 0, \"stream\": 7, \"correlation\": 1234%d",
        "\"stream\": %d, \"correlation\": %d",
        "\"correlation\": %d, \"stream\": 7, \"x\": %d",
        "\"External id\": %d, \"stream\": 7, \"correlation\": -%d",
        "\"External id\": -%d, \"stream\": 7, \"correlation\": 0, \"x\": %d",
    };
    static char text[2][1 << 17];
    size_t length[2];
    for (int packed = 0; packed < 2; packed++) {
        uint64_t seed = 11;
        length[packed] = (size_t)sprintf(text[packed], "[%s", K("first", "1", "2"));
        for (int i = 10; i < 200; i++) {
            char args[400], call[200];
            int shape = (int)(chance(&seed) * 2 * sizeof ids / sizeof *ids) / 2,
                correlation = 3 * i + (int)(chance(&seed) * 2);
            snprintf(args, sizeof args, ids[shape], i, correlation);
            snprintf(call, sizeof call, "\"External id\": %d, \"cbid\": %d, \"correlation\": %d", i,
                     211 + shape / 4, correlation);
            char *at = text[packed];
            length[packed] +=
                put_event(at + length[packed], packed, "cuda_runtime", "cudaLaunchKernel", i, call);
            length[packed] += put_event(at + length[packed], packed, "kernel",
                                        shape % 2 ? "gemm" : "a_longer_name", 10 + i, args);
        }
        strcpy(text[packed] + length[packed], "]");
    }
    OWNED(knee_trace) a = trace_of(text[0]);
    OWNED(knee_trace) b = trace_of(text[1]);
    assert_int_equal(a.ranks[0].span_count, 191);
    assert_int_equal(b.ranks[0].span_count, 191);
    assert_int_equal(a.launch_calls, 190);
    assert_memory_equal(a.ranks[0].spans, b.ranks[0].spans, 191 * sizeof *a.ranks[0].spans);
}

/* Events inside events, each of them damaged: all of them looked at from each start would take as
 * long as the square of their number. Past a budget they are left out together. */
TEST(nested_damage_is_given_up)
{
    enum { DEEP = 4000 };
    static const char open[] = "{\"ph\":\"X\",\"a\":", shut[] = "1 @}";
    char *text = malloc(DEEP * (sizeof open + sizeof shut) + 1024);
    size_t used = (size_t)sprintf(text, "[");
    for (int i = 0; i < DEEP; i++)
        used += (size_t)sprintf(text + used, "%s", open);
    for (int i = 0; i < DEEP; i++)
        used += (size_t)sprintf(text + used, "%s", i ? " @}" : shut);
    used += (size_t)sprintf(text + used, ", %s]", K("gemm", "1", "2"));
    struct knee_trace t = trace_of(text);
    assert_int_equal(spans_of(&t), 1);
    assert_true(t.losses[KNEE_LOSS_EVENT].count > 10 && t.losses[KNEE_LOSS_EVENT].count < DEEP / 2);
    knee_trace_release(&t);
    free(text);
}

/* Larger than the window may grow (64 MiB): counted, and reading goes on behind it. */
TEST(what_is_too_large_is_counted)
{
    size_t large = (size_t)70 << 20, used = 0;
    if (UNIT_SANITIZED)
        return;
    static const char *const starts[] = {"[{\"ph\": \"X\", \"name\": \"", "{\"stackFrames\": \""};
    char *text = malloc(large + 1024);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        used = (size_t)sprintf(text, "%s", starts[i]);
        memset(text + used, 'x', large);
        used += large;
        sprintf(text + used, "\"}, %s]", K("gemm", "1", "2"));
        OWNED(knee_trace) t = trace_of(text);
        assert_int_equal(spans_of(&t), 1);
        assert_int_equal(t.losses[KNEE_LOSS_OVERLONG].count + t.losses[KNEE_LOSS_EVENT].count, 1);
    }
    free(text);
}

TEST(a_stop_is_counted)
{
    static const char text[] = "[" K("a", "1", "2") ", " K("b", "4", "2") "]";
    for (size_t after = 0; after < 4; after++) {
        _Atomic int stop = after == 0;
        struct knee_trace_options options = {.cancel = &stop};
        struct knee_trace_reader *r = knee_trace_begin("a.json", &options, NULL);
        struct knee_trace trace;
        struct knee_err err;
        size_t size, at = 0, piece = strlen(text) / 3;
        for (size_t i = 0; i < 3; i++, at += piece) {
            char *room = knee_trace_room(r, &size);
            assert_true(room && size >= piece);
            memcpy(room, text + at, piece);
            knee_trace_filled(r, piece);
            stop = stop || i + 1 == after;
        }
        knee_status status = knee_trace_end(r, &trace, &err);
        assert_int_equal(status, after > 1 ? KNEE_OK : KNEE_INPUT);
        if (status) { /* it was not looked at: nothing is said about what it is */
            assert_string_equal(err.what, "not read: stopped");
        } else {
            assert_int_equal(spans_of(&trace), after - 1);
            knee_trace_release(&trace);
        }
    }
    struct source source = {.data = text, .length = strlen(text)};
    _Atomic int stop = 1;
    struct knee_trace_options options = {.cancel = &stop};
    struct knee_trace trace;
    struct knee_err err;
    assert_int_equal(knee_trace_read((struct knee_reader){source_read, &source}, "a.json", &options,
                                     NULL, &trace, &err),
                     KNEE_INPUT);
    assert_string_equal(err.what, "not read: stopped");
    knee_trace_abandon(NULL);
}

/* Also where the window has to grow. */
TEST(no_memory_is_said)
{
    enum { LARGE = 3 << 20 };
    char *text = malloc(LARGE + 1024);
    int used = sprintf(text, "[%s, {\"ph\": \"X\", \"args\": \"", K("a", "1", "2"));
    memset(text + used, 'x', LARGE);
    sprintf(text + used + LARGE, "\"}, %s]", K("b", "4", "2"));
    FOR_EACH_FAILURE(memory) {
        struct source source = {.data = text, .length = strlen(text)};
        struct knee_trace trace;
        struct knee_err err = {0};
        knee_status status = knee_trace_read((struct knee_reader){source_read, &source}, "a.json",
                                             NULL, &memory.alloc, &trace, &err);
        if (status) {
            assert_int_equal(status, KNEE_SYSTEM);
            assert_string_equal(err.what, "out of memory");
        } else {
            assert_int_equal(spans_of(&trace), 2);
            assert_int_equal(trace.events, 3);
            knee_trace_release(&trace);
        }
    }
    free(text);
}

/* ---- Compressed bytes ---- */

#if KNEE_HAVE_ISAL || KNEE_HAVE_ZLIB
/* "hello\n", made by gzip -n. */
static const char hello[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\xe7\x02"
                            "\x00\x20\x30\x3a\x36\x06\x00\x00\x00";
enum { HELLO = sizeof hello - 1 };

TEST(members_follow_each_other)
{
    static const struct {
        const char *what, *text, *trouble;
        size_t members, zeros, cut, fail_at;
        const char *then;
    } cases[] = {
        {"one", "hello\n", NULL, 1, 0, 0, 0, ""},
        {"two", "hello\nhello\n", NULL, 2, 0, 0, 0, ""},
        {"zeros behind it", "hello\n", NULL, 1, 5, 0, 0, ""},
        {"something else behind it", "hello\n", "something else follows the compressed data", 1, 0,
         0, 0, "text"},
        {"cut off", "hello\n", "it ends early", 1, 0, 9, 0, ""},
        {"cut off in the head", "", "it ends early", 1, 0, 20, 0, ""},
        {"cut off in the second one", "hello\n", "it ends early", 2, 0, 18, 0, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t piece = 1; piece < 40; piece += 13) {
            char data[256] = "", out[64] = "";
            size_t used = 0, got = 0;
            for (size_t m = 0; m < cases[i].members; m++, used += HELLO)
                memcpy(data + used, hello, HELLO);
            used += cases[i].zeros;
            used += (size_t)sprintf(data + used, "%s", cases[i].then);
            used -= cases[i].cut;
            struct source source = {.data = data, .length = used, .piece = piece};
            struct knee_gunzip *g =
                knee_gunzip_new((struct knee_reader){source_read, &source}, NULL);
            for (ptrdiff_t n; (n = knee_gunzip_read(g, out + got, sizeof out - got - 1)) > 0;)
                got += (size_t)n;
            const char *trouble = knee_gunzip_trouble(g);
            if (strcmp(out, cases[i].text) || !trouble != !cases[i].trouble ||
                (trouble && strcmp(trouble, cases[i].trouble)))
                fail_msg("%s, %zu bytes at a time: '%s', %s", cases[i].what, piece, out,
                         trouble ? trouble : "no trouble");
            knee_gunzip_free(g);
        }
}

/* The system refuses: before the first byte, in a member, behind one. */
TEST(reads_that_fail_are_said)
{
    for (size_t fail_at = 1; fail_at <= HELLO + 1; fail_at++) {
        struct source source = {.data = hello, .length = HELLO, .piece = 1, .fail_at = fail_at};
        struct knee_gunzip *g = knee_gunzip_new((struct knee_reader){source_read, &source}, NULL);
        char out[64];
        size_t got = 0;
        ptrdiff_t n;
        while ((n = knee_gunzip_read(g, out + got, sizeof out - got)) > 0)
            got += (size_t)n;
        if (fail_at == HELLO + 1)
            assert_int_equal(got, 6);
        if (fail_at > 3)
            assert_string_equal(knee_gunzip_trouble(g), "it could not be read to its end");
        else
            assert_true(n < 0 || fail_at == 2);
        knee_gunzip_free(g);
    }
}

TEST(damaged_members_are_said)
{
    char data[HELLO];
    memcpy(data, hello, HELLO);
    data[12] ^= 0x55;
    data[20] ^= 0x55; /* the checksum, too */
    struct source source = {.data = data, .length = HELLO};
    struct knee_gunzip *g = knee_gunzip_new((struct knee_reader){source_read, &source}, NULL);
    char out[64];
    while (knee_gunzip_read(g, out, sizeof out) > 0)
        ;
    assert_non_null(knee_gunzip_trouble(g));
    assert_int_equal(knee_gunzip_read(g, out, SIZE_MAX), 0); /* and nothing comes after it */
    knee_gunzip_free(g);
    knee_gunzip_free(NULL);
}
#endif

TEST(all_of_a_file_up_to_a_cap)
{
    static char text[3 << 20];
    memset(text, 'x', sizeof text);
    FOR_EACH_FAILURE(memory) {
        struct source source = {.data = text, .length = sizeof text};
        void *data = NULL;
        size_t length = 0;
        knee_status status = knee_gunzip_all((struct knee_reader){source_read, &source}, SIZE_MAX,
                                             &memory.alloc, &data, &length);
        bool enough = !failing_met(&memory);
        assert_int_equal(status, enough ? KNEE_OK : KNEE_SYSTEM);
        if (enough) {
            assert_int_equal(length, sizeof text);
            assert_memory_equal(data, text, sizeof text);
            failing_resize(&memory, data, 0);
        }
    }
    struct source source = {.data = text, .length = sizeof text};
    void *data = NULL;
    size_t length = 0;
    assert_int_equal(
        knee_gunzip_all((struct knee_reader){source_read, &source}, 1 << 20, NULL, &data, &length),
        KNEE_SYSTEM);
    source = (struct source){.data = text, .length = sizeof text, .fail_at = 1};
    assert_int_equal(
        knee_gunzip_all((struct knee_reader){source_read, &source}, SIZE_MAX, NULL, &data, &length),
        KNEE_SYSTEM);
    assert_null(data);
}

/* ---- XProf ---- */

#define PROCESS(pid, label)                                                                        \
    "{\"ph\": \"M\", \"pid\": " pid ", \"name\": \"process_name\", \"args\": {\"name\": \"" label  \
    "\"}}"
#define THREAD(pid, tid, label)                                                                    \
    "{\"ph\": \"M\", \"pid\": " pid ", \"tid\": " tid ", \"name\": \"thread_name\", \"args\": "    \
    "{\"name\": \"" label "\"}}"
#define RAN(pid, tid, name, ts, dur)                                                               \
    "{\"ph\": \"X\", \"pid\": " pid ", \"tid\": " tid ", \"name\": \"" name "\", \"ts\": " ts      \
    ", \"dur\": " dur "}"

TEST(rows_of_devices_are_told_apart)
{
    /* clang-format off */
    static const char text[] =
        "["
        THREAD("1", "1", "Stream #1") ", "
        PROCESS("1", "/device:TPU:0") ", "
        PROCESS("1", "/device:TPU:0") ", "
        PROCESS("2", "/device:CUSTOM:x") ", "
        PROCESS("3", "/host:CPU") ", "
        THREAD("1", "1", "XLA Ops") ", "
        THREAD("1", "2", "Async XLA Ops") ", "
        THREAD("1", "3", "Steps") ", "
        THREAD("1", "4", "XLA Modules") ", "
        THREAD("1", "5", "XLA Async Ops") ", "
        THREAD("2", "1", "XLA Ops") ", "
        RAN("1", "1", "fusion.1", "10", "5") ", "
        RAN("1", "1", "copy-start", "20", "5") ", "
        RAN("1", "2", "async-copy", "30", "5") ", "
        RAN("1", "2", "all-reduce.1", "40", "5") ", "
        RAN("1", "5", "all-gather.2", "46", "1") ", "
        RAN("1", "3", "7", "5", "95") ", "
        RAN("1", "4", "jit_step", "5", "95") ", "
        RAN("1", "9", "nobody", "5", "95") ", "
        RAN("2", "1", "custom", "5", "95") ", "
        RAN("3", "1", "python", "5", "95") ", "
        RAN("1", "1", "Memset", "50", "-1") ", "
        RAN("1", "1", "Memcpy", "60", "2e13")
        ", {\"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"name\": \"no end\", \"ts\": 70}, "
        "{\"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"name\": \"no start\", \"dur\": 70}, "
        "{\"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"name\": \"nan\", \"ts\": nan, "
        "\"dur\": 70}]";
    /* clang-format on */
    OWNED(knee_trace) t = trace_of(text);
    static const enum knee_span_kind kinds[] = {KNEE_SPAN_COMPUTE, KNEE_SPAN_COPY, KNEE_SPAN_COPY,
                                                KNEE_SPAN_COMM,    KNEE_SPAN_COMM, KNEE_SPAN_COPY};
    assert_string_equal(t.format, "xprof");
    assert_int_equal(t.rank_count, 1);
    assert_int_equal(t.ranks[0].span_count, 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(t.ranks[0].spans[i].kind, kinds[i]);
    assert_int_equal(t.step_count, 1);
    assert_int_equal(t.losses[KNEE_LOSS_TIME].count, 4);
    assert_int_equal(t.losses[KNEE_REPAIR_DURATION].count, 1);
}

/* ---- Shapes of products ---- */

#define FLASH "aten::_scaled_dot_product_flash_attention"

TEST(shapes_are_read)
{
    static const struct {
        const char *name, *dims, *inputs, *types;
        const char *product; /* count x m n k, bytes of a number; "": it is none */
    } shapes[] = {
        {"aten::mm", "[[8, 512], [512, 64]]", "[\"\", \"\"]", "[\"c10::BFloat16\", \"float\"]",
         "1 x 8 64 512, 2"},
        {"aten::addmm", "[[64], [8, 512], [512, 64]]", "", "[\"\", \"float\"]", "1 x 8 64 512, 4"},
        {"aten::bmm", "[[3, 8, 512], [3, 512, 64]]", "", "[\"double\"]", "3 x 8 64 512, 8"},
        {"aten::_scaled_mm", "[[8, 512], [512, 64]]", "", "[\"c10::Float8_e4m3fn\"]",
         "1 x 8 64 512, 1"},
        {"aten::mm", "[[8, 512], [512, 64]]", "", "[\"c10::Something\", \"", "1 x 8 64 512, 0"},
        {"aten::mm", "[[8, 512], [512, 64]]", "", "[]", "1 x 8 64 512, 0"},
        {FLASH, "[[2, 4, 128, 64], [2, 4, 256, 64], [2, 4, 256, 64], [], []]",
         "[\"\", \"\", \"\", \"0.\", \"True\", \"False\"]", "[\"c10::Half\"]",
         "8 x 128 256 64, 2, causal attention"},
        {FLASH, "[[2, 4, 128, 64], [2, 4, 256, 64]]", "[\"\", \"\", \"\", \"0.\", \"Maybe",
         "[\"c10::Half\"]", "8 x 128 256 64, 2, attention"},
        {FLASH, "[[2, 4, 128], [2, 4, 256, 64]]", "", "", ""},
        {FLASH, "[[2, 4, 128, 64], [2, 256, 64]]", "", "", ""},
        {FLASH, "[[2, 4, 128, 64], [2, 4, 256, 32]]", "", "", ""},
        {"aten::mm", "[[8, 512], [512]]", "", "", ""},
        {"aten::mm", "[[8], [512]]", "", "", ""},
        {"aten::mm", "[[1, 2, 3, 4], [1, 2, 3, 4]]", "", "", ""},
        {"aten::mm", "[[1, 2, 3, 4, 5], [1, 2]]", "", "", ""},
        {"aten::mm", "[[8, 512], [64, 512]]", "", "", ""},
        {"aten::bmm", "[[3, 8, 512], [4, 512, 64]]", "", "", ""},
        {"aten::mm", "[[8, 0], [0, 64]]", "", "", ""},
        {"aten::mm", "[[8, 99999999999], [512, 64]]", "", "", ""},
        {"aten::mm", "[[[8, 512]], [512, 64]]", "", "", ""},
        {"aten::mm", "[[8, 512], [[512, 64]]]", "", "", ""},
        {"aten::mm", "[[8, 512], []]", "", "", ""},
        {"aten::mm", "[[8, 512]]", "", "", ""},
        {"aten::mm", "", "", "", ""},
        {"aten::relu", "[[8, 512], [512, 64]]", "", "", ""},
        {"aten::mmm", "[[8, 512], [512, 64]]", "", "", ""},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct knee_event e = {.name = knee_slice_of(shapes[i].name), .has_args = true};
        struct knee_product p = {0};
        char product[64] = "";
        e.args.dims = knee_slice_of(shapes[i].dims);
        e.args.inputs = knee_slice_of(shapes[i].inputs);
        e.args.types = knee_slice_of(shapes[i].types);
        if (knee_product_from(&e, &p))
            snprintf(product, sizeof product, "%g x %g %g %g, %d%s%s%s", p.count, p.m, p.n, p.k,
                     (int)p.element_bytes,
                     p.causal      ? ", causal"
                     : p.attention ? ","
                                   : "",
                     p.attention ? " attention" : "", p.backward ? " backward" : "");
        if (strcmp(product, shapes[i].product) != 0)
            fail_msg("%s of %s: %s", shapes[i].name, shapes[i].dims, product);
    }
    struct knee_event without = {.name = knee_slice_of("aten::mm")};
    struct knee_product p;
    assert_false(knee_product_from(&without, &p));
}

/* ---- What the host did ---- */

#define CALL(name, ts)                                                                             \
    "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"" name                                 \
    "\", \"pid\": 9, \"tid\": 9, \"ts\": " ts ", \"dur\": 30, \"args\": {\"correlation\": 1}}"

static struct knee_trace host_of(const char *events, size_t host_ranks)
{
    char text[4096];
    snprintf(text, sizeof text,
             "{\"distributedInfo\": {\"rank\": 0, \"world_size\": 8}, \"traceEvents\": [%s]}",
             events);
    struct source source = {.data = text, .length = strlen(text)};
    struct knee_trace_options options = {.host = true, .host_ranks = host_ranks};
    struct knee_trace trace;
    struct knee_err err;
    assert_ok(knee_trace_read((struct knee_reader){source_read, &source}, "test.json", &options,
                              NULL, &trace, &err));
    return trace;
}

TEST(test_host_is_kept_where_all_ranks_are_there)
{
    static const struct {
        size_t given, kept;
    } cases[] = {{0, 1}, {1, 0}, {7, 0}, {8, 1}, {9, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED(knee_trace) trace =
            host_of(CALL("cudaLaunchKernel", "10") "," K("gemm", "20", "5"), cases[i].given);
        assert_int_equal(trace.host_event_count, cases[i].kept);
        assert_int_equal(spans_of(&trace), 1);
    }
}

TEST(test_kinds_of_calls)
{
    static const struct {
        const char *name;
        int kind; /* -1: of no use */
    } calls[] = {{"cudaLaunchKernel", KNEE_HOST_LAUNCH},
                 {"cuLaunchKernelEx", KNEE_HOST_LAUNCH},
                 {"cudaGraphLaunch", KNEE_HOST_LAUNCH},
                 {"hipExtModuleLaunchKernel", KNEE_HOST_LAUNCH},
                 {"hipMemcpyWithStream", KNEE_HOST_LAUNCH},
                 {"cudaMemsetAsync", KNEE_HOST_LAUNCH},
                 {"cudaMemGetInfo", KNEE_HOST_CALL},
                 {"cudaDeviceSynchronize", KNEE_HOST_SYNC},
                 {"cudaStreamWaitEvent", KNEE_HOST_WAIT},
                 {"cudaEventRecordWithFlags", KNEE_HOST_RECORD},
                 {"cudaEventQuery", -1},
                 {"cudaFuncGetAttributes", -1},
                 {"cudaStreamIsCapturing", -1},
                 {"cudaThreadExchangeStreamCaptureMode", -1},
                 {"INVALID", -1},
                 {"cudaStreamGetCaptureInfo", KNEE_HOST_CALL},
                 {"cudaMalloc", KNEE_HOST_CALL}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char text[512];
        snprintf(text, sizeof text, CALL("%s", "10"), calls[i].name);
        OWNED(knee_trace) trace = host_of(text, 0);
        assert_int_equal(trace.host_event_count, calls[i].kind >= 0);
        if (calls[i].kind >= 0)
            assert_int_equal(trace.host_events[0].kind, calls[i].kind);
    }
}
