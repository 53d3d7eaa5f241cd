/* SPDX-License-Identifier: MIT */
/*
 * Every change that a replay can be asked for, on a small recording of DDP and one of FSDP: what is
 * answered lies in its band, what is refused or misspelt says why, and memory may run out anywhere.
 */
#include "judge/work_names.h"
#include "out/answer.h"
#include "say/answers.h"
#include "shown.h"
#include "trace_help.h"

#include "judge/judge.h"
#include "knee_replay.h"
#include "out/answer.h"
#include "say/answers.h"
#include "timeline/where.h"

struct recording {
    struct knee_trace traces[2];
    struct knee_account account;
};

/* The seed's events as two ranks of one job. */
static void record(const char *seed, struct recording *out)
{
    static char whole[16384];
    const char *text = seed_of(seed) + 1;
    struct knee_err err;
    for (int rank = 0; rank < 2; rank++) {
        int length =
            snprintf(whole, sizeof whole,
                     "{\"distributedInfo\": {\"rank\": %d, \"world_size\": 2}, %s", rank, text);
        struct source source = {.data = whole, .length = (size_t)length};
        struct knee_trace_options options = {.host = true};
        if (knee_trace_read((struct knee_reader){source_read, &source}, "seed", &options, NULL,
                            &out->traces[rank], &err))
            fail_msg("%s", err.what);
    }
    assert_ok(knee_account(out->traces, 2, NULL, &out->account, &err));
}

static void recording_release(struct recording *all)
{
    knee_account_release(&all->account);
    for (int rank = 0; rank < 2; rank++)
        knee_trace_release(&all->traces[rank]);
}

/* "key value key value ..."; a switch has the value on. With `on` collectives cost what they do
 * there. */
static struct knee_changes changes_of(const char *words, const struct knee_cluster *on)
{
    struct knee_changes changes;
    knee_changes_init(&changes);
    set_words(&knee_change_keys, &changes, words);
    changes.on = changes.cluster ? on : NULL;
    return changes;
}

/* Why it is refused on DDP and on FSDP; "": it is answered; NULL: it is misspelt. */
static const struct {
    const char *words, *ddp, *fsdp;
} cases[] = {
    {"", "", ""},
    {"wire bf16", "", ""},
    {"wire fp16", "", ""},
    {"wire fp8", "", ""},
    {"wire int8", "", ""},
    {"wire f32", "gradients travel as f32 already", "gradients travel as f32 already"},
    {"wire topk:0.01", "", ""},
    {"wire powersgd:4", "", ""},
    {"wire topk", NULL, NULL},
    {"wire topk:x", NULL, NULL},
    {"wire topk:0", NULL, NULL},
    {"wire bf16:2", NULL, NULL},
    {"wire zip", NULL, NULL},
    {"network 2x", "", ""},
    {"network free", "", ""},
    {"network 0x", NULL, NULL},
    {"network fast", NULL, NULL},
    {"scale gemm=2", "", "no kernel has 'gemm' in its name"},
    {"scale nccl=2", "", ""},
    {"scale zzz=2", "no kernel has", "no kernel has"},
    {"scale =2", NULL, NULL},
    {"scale gemm", NULL, NULL},
    {"scale gemm=x", NULL, NULL},
    {"scale gemm=-1", NULL, NULL},
    {"scale "
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaaaaaaa"
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=2",
     NULL, NULL},
    {"batch 2x", "", ""},
    {"batch 0.5x", "", ""},
    {"accumulate 4", "", "the recording does not tell the backward pass apart"},
    {"sync-every 4", "", "with FSDP no rank has all parameters"},
    {"even on", "", ""},
    {"loader-ahead on", "no waiting for a DataLoader", "no waiting for a DataLoader"},
    {"no-host-gaps on", "", ""},
    {"pinned on", "", "no copy from pageable memory is recorded"},
    {"overlap on", "", "the recording does not tell the backward pass apart"},
    {"keep-params on", "no FSDP annotations", "parameters are not gathered again"},
    {"prefetch 2", "no FSDP annotations", "no gather is seen to wait"},
    {"hsdp 1", "no FSDP annotations", "name a --cluster"},
    {"hsdp 1 cluster x", "", ""},
    {"hsdp 2 cluster x", "", ""},
    {"hsdp 3 cluster x", "", ""},
    {"bucket 1KB", "travel in such buckets already",
     "FSDP sends the gradients of a module at once"},
    {"bucket 1GB", "travel in such buckets already",
     "FSDP sends the gradients of a module at once"},
    {"cluster x", "", ""},
    {"cluster x algorithm ring", "", ""},
    {"cluster x algorithm rnig", NULL, NULL},
    {"algorithm ring", "name one with --cluster", "name one with --cluster"},
    {"workers 1", "", ""},
    {"workers 2", "", ""},
    {"workers 16", "", ""},
    {"workers 16 strong on", "", ""},
    {"workers 16 cluster x", "", ""},
    {"without 1", "", ""},
    {"without 7", "rank 7 is not recorded", "rank 7 is not recorded"},
    {"without 1,7", "rank 7 is not recorded", "rank 7 is not recorded"},
    {"without 1,x", NULL, NULL},
    {"without 1;0", NULL, NULL},
    {"without 0,1", "no rank would be left", "no rank would be left"},
    {"without a", NULL, NULL},
    {"wire bf16 even on bucket 1KB overlap on", "", ""},
    {"keep-params on prefetch 3 wire fp8 network 2x", "", ""},
    {"batch 2x accumulate 2 workers 8 no-host-gaps on pinned on", "", ""},
};

static struct knee_cluster dgx(void)
{
    struct knee_cluster cluster;
    struct knee_err err;
    if (knee_cluster_parse("8xh100 * 16 @ ib400x8", &cluster, &err))
        fail_msg("%s", err.what);
    return cluster;
}

static void check_answer(const char *words, const char *want, const struct knee_replay *a)
{
    bool one = strlen(words) > 0;
    for (const char *c = strchr(words, ' '); c && (c = strchr(c + 1, ' ')); c = strchr(c + 1, ' '))
        one = one && strstr(words, "cluster") == NULL && strstr(words, "strong") != NULL;
    for (size_t r = 0; r < a->row_count; r++) {
        const struct knee_replay_row *row = &a->rows[r];
        if (row->refused[0])
            continue;
        if (!(row->step_s > 0) || !(row->low_s <= row->step_s && row->step_s <= row->high_s))
            fail_msg("%s, %s: %g, from %g to %g", words, row->name, row->step_s, row->low_s,
                     row->high_s);
    }
    assert_true(a->replayed_step_s > 0 && a->all.step_s > 0);
    if (one && !(want[0] ? strstr(a->rows[0].refused, want) != NULL : !a->rows[0].refused[0]))
        fail_msg("%s: refused: '%s', not '%s'", words, a->rows[0].refused, want);
}

TEST(changes_are_answered_or_refused)
{
    struct knee_cluster cluster = dgx();
    for (int fsdp = 0; fsdp < 2; fsdp++) {
        struct recording all;
        record(fsdp ? "replay/fsdp.json" : "replay/ddp.json", &all);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct knee_changes changes = changes_of(cases[i].words, &cluster);
            const char *want = fsdp ? cases[i].fsdp : cases[i].ddp;
            struct knee_replay answer;
            struct knee_err err = {0};
            knee_status status = knee_replay(&all.account, &changes, NULL, &answer, &err);
            assert_int_equal(status, want ? KNEE_OK : KNEE_USAGE);
            if (status) { /* misspelt: the word itself is in what is said */
                assert_non_null(strchr(err.what, '\''));
                continue;
            }
            check_answer(cases[i].words, want, &answer);
        }
        recording_release(&all);
    }
}

static bool is_wire(const char *row, const void *context)
{
    return strncmp(row, context, 4) == 0;
}

static const struct knee_replay_row *row_named(const struct knee_replay *a, const char *name)
{
    for (size_t i = 0; i < a->row_count; i++)
        if (strcmp(a->rows[i].name, name) == 0)
            return &a->rows[i];
    fail_msg("no row %s", name);
    return NULL;
}

/* Changes are made to one copy of the graph, one after the other, and each is set back: a row is
 * the same whatever was run before it. */
TEST(rows_do_not_depend_on_each_other)
{
    static const char *const words[] = {
        "wire bf16",    "even on",         "network 2x",   "network free", "overlap on",
        "bucket 100MB", "loader-ahead on", "pinned on",    "batch 2x",     "no-host-gaps on",
        "accumulate 4", "keep-params on",  "sync-every 8", "wire fp8",     "wire powersgd:4"};
    struct knee_cluster cluster = dgx();
    for (int fsdp = 0; fsdp < 2; fsdp++) {
        struct recording all;
        record(fsdp ? "replay/fsdp.json" : "replay/ddp.json", &all);
        struct knee_changes none = changes_of("", &cluster);
        struct knee_replay table, alone, wires;
        assert_int_equal(knee_replay(&all.account, &none, NULL, &table, NULL), KNEE_OK);
        assert_ok(knee_replay_standard(
            &all.account, &(struct knee_replay_table){.wanted = is_wire, .context = "wire"}, NULL,
            &wires, NULL));
        assert_int_equal(wires.row_count, 3);
        for (size_t i = 0; i < wires.row_count; i++)
            assert_memory_equal(&wires.rows[i], row_named(&table, wires.rows[i].name),
                                sizeof *wires.rows);
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            struct knee_changes changes = changes_of(words[i], &cluster);
            assert_int_equal(knee_replay(&all.account, &changes, NULL, &alone, NULL), KNEE_OK);
            if (memcmp(&alone.rows[0], row_named(&table, alone.rows[0].name), sizeof *alone.rows))
                fail_msg("%s: another row alone than in the table", words[i]);
        }
        recording_release(&all);
    }
}

/* The timeline of every change: it accounts for the step that the answer tells, or it is refused.
 */
TEST(changed_timelines_have_the_step)
{
    struct knee_cluster cluster = dgx();
    for (int fsdp = 0; fsdp < 2; fsdp++) {
        struct recording all;
        record(fsdp ? "replay/fsdp.json" : "replay/ddp.json", &all);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct knee_changes changes = changes_of(cases[i].words, &cluster);
            struct knee_replayed replayed;
            struct knee_account account;
            struct knee_err err = {0};
            knee_status status =
                knee_replay_timeline(&all.account, &changes, NULL, &replayed, &err);
            if (status) {
                assert_true(status == KNEE_INPUT || status == KNEE_USAGE);
                assert_true(strlen(err.what) > 10);
                continue;
            }
            assert_ok(knee_account(replayed.traces, replayed.count, NULL, &account, &err));
            assert_true(account.rank_count >= 1 && account.rank_count <= 2);
            knee_account_release(&account);
            knee_replayed_release(&replayed);
        }
        recording_release(&all);
    }
}

/* One allocation after the other fails: no answer, and nothing is left behind. */
TEST(memory_may_run_out)
{
    struct knee_cluster cluster = dgx();
    for (int fsdp = 0; fsdp < 2; fsdp++) {
        OWNED(recording) all;
        record(fsdp ? "replay/fsdp.json" : "replay/ddp.json", &all);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i += UNIT_SANITIZED ? 5 : 1) {
            struct knee_changes changes = changes_of(cases[i].words, &cluster);
            struct knee_replay whole;
            knee_status whole_status = knee_replay(&all.account, &changes, NULL, &whole, NULL);
            FOR_EACH_FAILURE(f) {
                struct knee_replay answer;
                struct knee_replayed replayed;
                struct knee_err err = {0};
                bool timeline = (i + (size_t)fsdp) % 2;
                knee_status status =
                    timeline
                        ? knee_replay_timeline(&all.account, &changes, &f.alloc, &replayed, &err)
                        : knee_replay(&all.account, &changes, &f.alloc, &answer, &err);
                bool told = timeline ? status != KNEE_GATE : status == whole_status;
                if (!told && status != KNEE_SYSTEM)
                    fail_msg("%s: %d without allocation %zu: %s", cases[i].words, (int)status,
                             f.fail_at, err.what);
                if (!status && !timeline && answer.all.step_s != whole.all.step_s)
                    fail_msg("%s: another answer without allocation %zu", cases[i].words,
                             f.fail_at);
                if (!status && timeline)
                    knee_replayed_release(&replayed);
            }
        }
    }
}

/* ---- What is said of it ---- */

struct told {
    struct recording all;
    struct knee_diagnosis diagnosis;
    struct knee_where where;
    struct knee_trace_report report[2];
};

/* Both recordings as knee trace tells them, with everything that it can tell. */
TEST(recordings_are_told)
{
    for (int fsdp = 0; fsdp < 2; fsdp++) {
        struct told t = {.where = {0}};
        struct knee_job job;
        struct knee_err err;
        record(fsdp ? "replay/fsdp.json" : "replay/ddp.json", &t.all);
        knee_job_init(&job);
        assert_ok(knee_diagnose(&t.all.account, &job, NULL, &t.diagnosis, &err));
        assert_ok(knee_find_where(&t.all.account, NULL, &t.where, &err));
        knee_judge_where(&t.diagnosis, &t.where);
        t.report[0] = (struct knee_trace_report){.traces = t.all.traces,
                                                 .trace_count = 2,
                                                 .account = &t.all.account,
                                                 .diagnosis = &t.diagnosis,
                                                 .where = &t.where};
        t.report[1] = t.report[0];
        struct knee_runs_report runs = {.runs = t.report, .count = 2};
        struct knee_work_names names;
        assert_true(knee_work_names_sum(t.all.traces, 2, NULL, &names));
        assert_shown(&knee_trace_answer, &t.report[0], SAYS("2 ranks, 1 step.", "compute"));
        assert_shown(&knee_names_answer, &names, SAYS("comm"));
        assert_shown(&knee_runs_answer, &runs, SAYS("Found 2 runs; name the files of one"));
        knee_resize(NULL, names.rows, 0);
        knee_where_release(&t.where);
        recording_release(&t.all);
    }
}

/* ---- Chakra ---- */

struct counted {
    size_t writes, fail_at, bytes;
};

static bool count_bytes(void *ctx, const char *data, size_t size)
{
    struct counted *c = ctx;
    (void)data;
    c->bytes += size;
    return ++c->writes != c->fail_at;
}

/* All ranks as execution traces; false: memory or the sink did not let it. */
static bool as_chakra(const struct knee_account *account, const struct knee_alloc *alloc,
                      struct counted *counted)
{
    struct knee_chakra_graph *graph;
    struct knee_err err;
    knee_status status = knee_chakra_begin(account, alloc, &graph, &err);
    if (status) {
        assert_int_equal(status, KNEE_SYSTEM);
        return false;
    }
    bool good = true;
    for (size_t rank = 0; rank < account->rank_count && good; rank++)
        good = knee_chakra_write(graph, rank, (struct knee_sink){count_bytes, counted});
    knee_chakra_end(graph);
    return good;
}

TEST(execution_traces_are_whole_or_fail)
{
    for (int fsdp = 0; fsdp < 2; fsdp++) {
        OWNED(recording) all;
        struct counted whole = {0};
        record(fsdp ? "replay/fsdp.json" : "replay/ddp.json", &all);
        assert_true(as_chakra(&all.account, NULL, &whole));
        assert_true(whole.bytes > 500);
        for (size_t fail_at = 1; fail_at <= whole.writes; fail_at++) {
            struct counted some = {.fail_at = fail_at};
            assert_false(as_chakra(&all.account, NULL, &some));
            assert_int_equal(some.writes, fail_at); /* nothing more is written */
        }
        FOR_EACH_FAILURE(f) {
            struct counted some = {0};
            bool good = as_chakra(&all.account, &f.alloc, &some);
            if (good && some.bytes != whole.bytes)
                fail_msg("%zu bytes, not %zu, without allocation %zu", some.bytes, whole.bytes,
                         f.fail_at);
        }
    }
    knee_chakra_end(NULL);
}
