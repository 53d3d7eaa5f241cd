/* SPDX-License-Identifier: MIT */
/*
 * Parts of the reader of training logs, one by one: numbers, clocks, stamps and ranks; what lines
 * say about the job; blocks, tables and documents with their caps; tensors of TensorBoard.
 */
#include "read/run/train_log.h"
#include "unit.h"

static knee_status read_log(const char *text, size_t length, struct knee_train_log *out,
                            struct knee_err *err)
{
    struct knee_train_reader *reader = knee_train_begin("test.log", NULL);
    assert_non_null(reader);
    knee_train_push(reader, text, length);
    return knee_train_end(reader, out, err);
}

static struct knee_train_log log_of(const char *text)
{
    struct knee_train_log log;
    struct knee_err err;
    if (read_log(text, strlen(text), &log, &err))
        fail_msg("%s: %s", err.what, text);
    return log;
}

static bool same(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fabs(b) || (isnan(a) && isnan(b));
}

/* ---- Numbers, clocks, stamps, ranks ---- */

TEST(numbers_of_every_kind)
{
    static const struct {
        const char *text;
        double value;
        const char *rest;
    } cases[] = {
        {"5", 5, ""},
        {"-5.5x", -5.5, "x"},
        {"+7", 7, ""},
        {"1,234", 1234, ""},
        {"1,234,567 x", 1234567, " x"},
        {"12,34", 12, ",34"},
        {"1,2345", 1, ",2345"},
        {"1e3", 1000, ""},
        {"1e+3", 1000, ""},
        {"1E-3", 1e-3, ""},
        {"1e", 1, "e"},
        {"1e+", 1, "e+"},
        {"1ex", 1, "ex"},
        {"1e-30", 1e-30, ""},
        {"1e30", 1e30, ""},
        {"1e-99999", 0, ""},
        {"5.", 5, "."},
        {".5", 0.5, ""},
        {"1.2.3", 1.2, ".3"},
        {"x", NAN, "x"},
        {"-", NAN, "-"},
        {"", NAN, ""},
        {"123456789012345678901234567890", 123456789012345678901234567890.0, ""},
        {"0.1234567890123456789012345", 0.1234567890123456789012345, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *p = cases[i].text;
        double value = knee_train_number(&p, p + strlen(p));
        if (!same(value, cases[i].value) || strcmp(p, cases[i].rest) != 0)
            fail_msg("%s: %.17g, then '%s'", cases[i].text, value, p);
    }
}

TEST(clocks_and_stamps)
{
    static const struct {
        const char *text;
        double seconds;
    } clocks[] = {{"04:59", 299},
                  {"1:02:03", 3723},
                  {"9 days, 21:16:28", 854188},
                  {"1 day, 0:00:01", 86401},
                  {"3 days", NAN},
                  {"5", NAN},
                  {"1:2:3:4", NAN},
                  {"1:x", NAN},
                  {"1-2", NAN},
                  {"x", NAN},
                  {"1:", NAN},
                  {"", NAN}},
      stamps[] = {{"[2024-03-07 15:27:02,646] x", 1709825222.646},
                  {"2024-03-07T15:27:02.5", 1709825222.5},
                  {"2024-03-07 15:27:02", 1709825222},
                  {"2024-03-07 15:27:02.", 1709825222},
                  {"2024-03-07 15:27:02;5", 1709825222},
                  {"1970-01-01 00:00:00", 0},
                  {"2024-02-29 00:00:00", 1709164800},
                  {"24-03-07 15:27:02", 1709825222},
                  {"2024-03-07x15:27:02", NAN},
                  {"2024-03-07 15:27:0x", NAN},
                  {"x024-03-07 15:27:02", NAN},
                  {"2024-x3-07 15:27:02", NAN},
                  {"2024-03-x7 15:27:02", NAN},
                  {"2024-03-07 x5:27:02", NAN},
                  {"2024-03-07 15:x7:02", NAN},
                  {"2024-03-07 15.27:02", NAN},
                  {"short", NAN}};
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++)
        if (!same(knee_train_clock(knee_slice_of(clocks[i].text)), clocks[i].seconds))
            fail_msg("%s: %g", clocks[i].text, knee_train_clock(knee_slice_of(clocks[i].text)));
    for (size_t i = 0; i < sizeof stamps / sizeof *stamps; i++)
        if (!same(knee_train_stamp(knee_slice_of(stamps[i].text)), stamps[i].seconds))
            fail_msg("%s: %.3f", stamps[i].text, knee_train_stamp(knee_slice_of(stamps[i].text)));
}

TEST(ranks_stand_before_lines)
{
    static const struct {
        const char *line;
        int rank;
        double of;
    } cases[] = {
        {"[20250620 15:31:09][rank-7/8][INFO ]", 7, 8},
        {"[rank-8/7] x", -1, NAN},
        {"[rank-7/2000000] x", -1, NAN},
        {"[rank-2000000/3000000] x", -1, NAN},
        {"[rank-7", -1, NAN},
        {"[rank-7] x", -1, NAN},
        {"[rank-x/8] x", -1, NAN},
        {"[rank-7/x] x", -1, NAN},
        {"[rank3]: x", 3, NAN},
        {"[rank3 x", -1, NAN},
        {"[rank2000000]: x", -1, NAN},
        {"[rankx]: x", -1, NAN},
        {"[rank", -1, NAN},
        {"[default4]: x", 4, NAN},
        {"[1,5]<stdout>: x", 5, NAN},
        {"6: x", 6, NAN},
        {"6:x", -1, NAN},
        {"6:", -1, NAN},
        {"6 x", -1, NAN},
        {"2000000: x", -1, NAN},
        {"x", -1, NAN},
        {"", -1, NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double of;
        int rank = knee_train_rank(knee_slice_of(cases[i].line), &of);
        if (rank != cases[i].rank || !same(of, cases[i].of))
            fail_msg("%s: %d of %g", cases[i].line, rank, of);
    }
}

TEST(names_and_values)
{
    static const struct {
        const char *line, *pairs;
    } cases[] = {
        {"loss: 1.5 | lr: 2e-4", "loss=1.5 lr=0.0002"},
        {"{loss:.4f} step 7", "step=7"},
        {"{loss:.4", ""},
        {"time 5ms next 3 sec last 2us", "time=5s0.001 next=3s1 last=2s1e-06"},
        {"iter 10/ 500 loss 3", "iter=10 loss=3"},
        {"iter 10/x loss 3", "iter=10 x_loss=3"},
        {"a - b 5", "b=5"},
        {"epoch: x, val: 'y': 7", "y=7"},
        {"tokens/s 5 img/s", "tokens_s=5"},
        {"5 nothing before", ""},
        {"a_name_that_is_much_too_long_to_be_one_of_any_table_that_there_is_in_it 5", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct train_pairs pairs = {cases[i].line, cases[i].line + strlen(cases[i].line), false};
        struct train_pair pair;
        char seen[256] = "";
        for (size_t used = 0; knee_train_pairs_next(&pairs, &pair);) {
            used += (size_t)snprintf(seen + used, sizeof seen - used, "%s%s=%g", used ? " " : "",
                                     pair.name, pair.value);
            if (!isnan(pair.unit_s))
                used += (size_t)snprintf(seen + used, sizeof seen - used, "s%g", pair.unit_s);
        }
        if (strcmp(seen, cases[i].pairs) != 0)
            fail_msg("%s: '%s'", cases[i].line, seen);
    }
}

/* ---- What lines say about the job ---- */

#define STEPS                                                                                      \
    " iteration 1/ 99 | elapsed time per iteration (ms): 500.0 |\n"                                \
    " iteration 2/ 99 | elapsed time per iteration (ms): 500.0 |\n"

TEST(lines_say)
{
    static const struct {
        const char *line;
        double workers, batch, seq;
    } cases[] = {
        {"Building 1-D device mesh with ['else'], [4]", 4, NAN, NAN},
        {"Building 2-D device mesh with ['pp', 'dp'], [0, 2]", NAN, NAN, NAN},
        {"Building 2-D device mesh with ['pp', 'dp'], [4", NAN, NAN, NAN},
        {"Building 2-D device mesh with ['pp', 'dp'], [4, 99999999999]", NAN, NAN, NAN},
        {"Building 2-D device mesh with ['pp', 'dp'], [1000000, 1000000]", NAN, NAN, NAN},
        {"Building 2-D device mesh with ['pp', 'dp']", NAN, NAN, NAN},
        {"launch.py --gpus=", NAN, NAN, NAN},
        {"GLOBAL_RANK: 0, MEMBER: 1 of 8", NAN, NAN, NAN},
        {"Total train batch size (w. parallel, distributed & accumulation) = 64", NAN, 64, NAN},
        {"Total train batch size (w. parallel, distributed & accumulation)", NAN, NAN, NAN},
        {"world size: 16\nworld size: 4", 16, NAN, NAN},
        {"world size: none", NAN, NAN, NAN},
        {"world size: 99999999999999999", NAN, NAN, NAN},
        {"torchrun --nproc-per-node 8", 8, NAN, NAN},
        {"Instantaneous batch size per device = 3\nTotal train batch size (w. parallel, x) = 64",
         NAN, 64, NAN},
        {"sequence_length=2048", NAN, NAN, 2048},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s\n%s", cases[i].line, STEPS);
        OWNED(knee_train_log) log = log_of(text);
        if (!same(log.workers, cases[i].workers) || !same(log.batch, cases[i].batch) ||
            !same(log.seq, cases[i].seq))
            fail_msg("%s: %g workers, batch %g, sequence %g", cases[i].line, log.workers, log.batch,
                     log.seq);
    }
}

TEST(models_and_plans_are_found)
{
    OWNED(knee_train_log) log =
        log_of("x ModelArgs(dim=4096, n_layers=32, n_heads=0, n_kv_heads=9000000000000, odd)\n"
               "CUDA capacity: NVIDIA H100 80GB HBM3 with 79 GiB\n - Model llama3 8B size: 8B\n"
               "Building device mesh with parallelism: pp=1, dp_shard=8, tp=1\n" STEPS);
    assert_true(log.shape.layers == 32 && log.shape.hidden == 4096 && log.has_shape);
    assert_true(isnan(log.shape.heads) && isnan(log.shape.kv_heads));
    assert_string_equal(log.gpu, "NVIDIA H100 80GB HBM3");
    assert_string_equal(log.model, "llama3 8B");
    assert_true(log.shape.model >= 0);
    assert_int_equal(log.plan.shard, KNEE_ZERO3);
    knee_train_log_release(&log);
    log = log_of("Config(general=GeneralArgs(project='x',\n"
                 "                    dp=4,\n\ttp=2,\n"
                 "               pp=1,\n [INFO]:                zero_stage=1,\n"
                 "a line that ends it\n" STEPS);
    assert_near(log.workers, 8, 0);
    assert_int_equal(log.plan.shard, KNEE_ZERO1);
    knee_train_log_release(&log);
    log = log_of(
        "mModel "
        "a-name-that-is-longer-than-what-is-kept-of-names-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
        "param base_emb_dim: 4096\n" STEPS);
    assert_false(log.has_shape);
}

/* ---- Caps ---- */

/* Blocks that do not end; the steps behind them are read. */
TEST(blocks_end_at_their_caps)
{
    static const struct {
        const char *begin, *line;
        size_t lines;
    } cases[] = {
        {"---- arguments ----\n", "  some_argument ....... 5....updated\n", 2001},
        {"---- arguments ----\n", "  pipe_parallel_size ....... 0.......default\n", 2001},
        {"Config(general=GeneralArgs(\n", "     dp=4,\n", 2001},
        {"json = {\n",
         "  \"0123456789012345678901234567890123456789012345678901234567890123\": "
         "{}, \n",
         15000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED(knee_text) text = {0};
        knee_text_puts(&text, cases[i].begin);
        knee_text_repeat(&text, cases[i].line, cases[i].lines);
        knee_text_puts(&text, STEPS);
        OWNED(knee_train_log) log = log_of(text.data);
        if (log.row_count != 2)
            fail_msg("%s: %zu rows", cases[i].begin, log.row_count);
    }
}

/* Lines, chunks without an end, documents and event files that are too long. */
TEST(what_is_too_long_is_cut_and_counted)
{
    static const struct {
        const char *begin;
        size_t length;
        const char *end;
        bool read;
    } cases[] = {
        {"x", 70000, " iteration 9/ 99\n" STEPS, true},
        {"iteration 7/ 99 | elapsed time per iteration (ms): 5 | x", 70000, "\n" STEPS, true},
        {"x", 600000, "\n" STEPS, true},
        {"{\n", (size_t)17 << 20, "\n}\n", false},
        {"\x18\0\0\0\0\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\xf0\x3f\x1a\x0d"
         "brain.Event:2\0\0\0\0\0",
         (size_t)17 << 20, "", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t begin = i == 4 ? 40 : strlen(cases[i].begin), end = strlen(cases[i].end);
        if (UNIT_SANITIZED && i > 2)
            continue;
        char *text = malloc(begin + cases[i].length + end);
        memcpy(text, cases[i].begin, begin);
        memset(text + begin, 'x', cases[i].length);
        memcpy(text + begin + cases[i].length, cases[i].end, end);
        struct knee_train_log log;
        struct knee_err err;
        knee_status status = read_log(text, begin + cases[i].length + end, &log, &err);
        assert_int_equal(status, cases[i].read ? KNEE_OK : KNEE_INPUT);
        if (!status) {
            assert_true(log.row_count >= 2);
            knee_train_log_release(&log);
        }
        free(text);
    }
}

/* More rows than are kept: of tables, and of formats that have a reader of their own. */
TEST(long_tables_are_thinned)
{
    enum { STEPS_RUN = 300000 };
    static const char *const rows[] = {
        "%d,0.25\n", "step %d/400000 | loss 4.2 | 250.00 ms | 9%% bf16 MFU | 9 tok/s\n"};
    for (size_t i = 0; i < 2 && !UNIT_SANITIZED; i++) {
        char *text = malloc((size_t)STEPS_RUN * 96);
        size_t used = i ? 0 : (size_t)sprintf(text, "step,step_s\n");
        for (int step = 1; step <= STEPS_RUN; step++)
            used += (size_t)sprintf(text + used, rows[i], step);
        struct knee_train_log log;
        struct knee_err err;
        if (read_log(text, used, &log, &err))
            fail_msg("%s: %s", rows[i], err.what);
        assert_near(log.median_s, 0.25, 1e-9);
        assert_int_equal(log.counts.used, STEPS_RUN);
        assert_int_equal(log.counts.thinned + log.row_count, STEPS_RUN);
        knee_train_log_release(&log);
        free(text);
    }
}

/* ---- Documents ---- */

TEST(documents_say)
{
    static const struct {
        const char *what, *text;
        size_t rows;
        double median_s;
    } cases[] = {
        {"trainer_state.json",
         "{\n\"global_step\": 100, \"log_history\": [{\"step\": 50, \"loss\": 2.5, \"epoch\": "
         "\"1\"}, {\"step\": \"x\", \"loss\": \"y\"}, {\"step\": 100, \"train_runtime\": 50.0}]}\n",
         2, 0.5},
        {"no steps said",
         "{\n\"global_step\": \"100\", \"log_history\": [{\"step\": 50, \"loss\": "
         "2.5}]}\n",
         1, NAN},
        {"results",
         "{\n\"train_runtime\": 50.0, \"train_steps_per_second\": 2, \"train_loss\": "
         "\"x\"}\n",
         1, 0.5},
        {"golden values",
         "{\n\"iteration-time\": {\"values\": {\"1\": 0.5, \"2\": 0.5, \"x\": "
         "\"y\"}}}\n",
         2, 0.5},
        {"golden lists",
         "{\n\"iteration-time\": {\"start_step\": 5, \"step_interval\": 0, "
         "\"values\": [0.5, 0.5], \"else\": 1}}\n",
         2, 0.5},
        {"losses", "{\n\"lm loss\": {\"values\": {\"1\": 9.5, \"2\": 9.4}}}\n", 2, NAN},
        {"lists of losses",
         "{\n\"lm loss\": {\"start_step\": 1, \"step_interval\": 5, \"values\": "
         "[9.5, 9.4]}}\n",
         2, NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED(knee_train_log) log = log_of(cases[i].text);
        if (log.row_count != cases[i].rows || !same(log.median_s, cases[i].median_s))
            fail_msg("%s: %zu rows, %g s", cases[i].what, log.row_count, log.median_s);
    }
}

/* ---- TensorBoard ---- */

struct bytes {
    char data[4096];
    size_t used;
};

static void put(struct bytes *b, const void *data, size_t size)
{
    memcpy(b->data + b->used, data, size);
    b->used += size;
}

static void put_field(struct bytes *b, unsigned field, unsigned wire, const void *data, size_t size)
{
    unsigned char head[2] = {(unsigned char)(field << 3 | wire), (unsigned char)size};
    put(b, head, wire == 2 ? 2 : 1);
    put(b, data, size);
}

static void put_record(struct bytes *file, const struct bytes *message)
{
    uint64_t length = message->used;
    put(file, &length, 8);
    put(file, "\0\0\0\0", 4);
    put(file, message->data, message->used);
    put(file, "\0\0\0\0", 4);
}

/* Values as tensors: four bytes, a packed list, a list; then what is none. */
TEST(tensors_of_tensorboard)
{
    static const float seconds = 0.25F;
    static const struct {
        unsigned field, wire;
        size_t size;
        bool read;
    } cases[] = {{4, 2, 4, true},  {5, 2, 4, true},  {5, 5, 4, true}, {4, 2, 3, false},
                 {4, 5, 4, false}, {6, 2, 4, false}, {6, 5, 4, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes file = {.used = 0}, version = {.used = 0};
        double wall = 1000;
        put_field(&version, 1, 1, &wall, 8);
        put_field(&version, 3, 2, "brain.Event:2", 13);
        put_record(&file, &version);
        for (unsigned char step = 1; step <= 4; step++) {
            struct bytes tensor = {.used = 0}, value = {.used = 0}, summary = {.used = 0},
                         event = {.used = 0};
            put_field(&tensor, cases[i].field, cases[i].wire, &seconds, cases[i].size);
            put_field(&value, 1, 2, "iteration-time", 14);
            put_field(&value, 8, 2, tensor.data, tensor.used);
            put_field(&value, 9, 0, &step, 1);
            put_field(&summary, 1, 2, value.data, value.used);
            put_field(&summary, 2, 0, &step, 1);
            put_field(&event, 2, 0, &step, 1);
            put_field(&event, 5, 2, summary.data, summary.used);
            put_record(&file, &event);
        }
        OWNED(knee_train_log) log;
        struct knee_err err;
        assert_ok(read_log(file.data, file.used, &log, &err));
        assert_int_equal(log.row_count, 4);
        if (same(log.median_s, 0.25) != cases[i].read)
            fail_msg("field %u, wire %u: %g s", cases[i].field, cases[i].wire, log.median_s);
    }
}

/* A line of a job every 200 steps, 100 s apart; an epoch has 1200. */
static int job_line(int form, int n, char *out, size_t size)
{
    int step = 200 * (n + 1), now = 100 * n, epoch = (step - 1) / 1200;
    char stamp[32];
    snprintf(stamp, sizeof stamp, "2026-01-02 %02d:%02d:%02d,000", 3 + now / 3600, now / 60 % 60,
             now % 60);
    switch (form) {
    case 0: /* wide numbers leave no blank in the bracket */
        return snprintf(out, size, "%s Epoch: [%2d/20] Iter [%4d/1200] Loss: 2.3\n", stamp, epoch,
                        (step - 1) % 1200 + 1);
    case 1: /* a counter that goes on from epoch to epoch */
        return snprintf(out, size, "Epoch %d/20:: %s STEP %d loss: 2.1\n", epoch, stamp, step);
    case 2: /* each line ends an epoch, and its number is elsewhere */
        return snprintf(out, size, "100s - loss: 1.12 - acc: 0.7\n");
    case 4: /* the first counter stands still */
        return snprintf(out, size, "%s epoch_out: 0, epoch_in: %d, loss: -0.7\n", stamp, n);
    default: /* nothing else is counted */
        return snprintf(out, size, "%s Epoch %d: train loss 0.013\n", stamp, n);
    }
}

TEST(epochs_and_steps_on_one_line)
{
    for (int form = 0; form < 5; form++) {
        char text[8000];
        size_t used = 0;
        for (int n = 0; n < 48; n++)
            used += (size_t)job_line(form, n, text + used, sizeof text - used);
        OWNED(knee_train_log) log = log_of(text);
        assert_near(log.median_s, form < 2 ? 0.5 : 100, 1e-6);
        assert_int_equal(log.epochs, form == 2 || form == 3);
        assert_int_equal(log.run_count, 1);
    }
}

/* Bars count in units of their own. */
TEST(bars_of_batches)
{
    static const char *const units[] = {"s/batch]", "s/batch, loss=2]", "s/iter]", "s/step]"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        char text[2000];
        size_t used = 0;
        for (int n = 1; n <= 20; n++)
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "Epoch 3/9:: 41%%|###  | %d/41 [%02d:%02d<03:01, 13.00%s\r", n,
                                     13 * n / 60, 13 * n % 60, units[i]);
        OWNED(knee_train_log) log = log_of(text);
        assert_near(log.median_s, 13, 1e-6);
    }
}

TEST(names_past_the_last)
{
    assert_string_equal(knee_train_timing_name(KNEE_TRAIN_TIMINGS), "?");
    knee_train_abandon(NULL);
}

/* A job that is still running, or was killed: its last line ends anywhere. The steps before it
 * count as they do without it. */
TEST(the_last_line_is_cut_anywhere)
{
    static const char *const lines[] = {
        " iteration %d/ 1000 | elapsed time per iteration (ms): 500.0 | loss: 2.0E+00 |",
        "step: %d, step_time: 0.500s, loss: 2.1, 'lr': 1e-3",
        "Epoch: [0][%d/100]  Time  0.500 ( 0.500)  Data  0.010 ( 0.010)  Loss 2.1",
        "Epoch 1:  41%%|###   | %d/41 [00:05<00:03,  2.00it/s, loss=2.1]",
        "{'loss': 2.0, 'step': %d, 'step_time': 0.5, 'epoch': 0.1}",
        "%d/100 [====>......] - ETA: 5s - 500ms/step - loss: 2.0",
        "12/25 15:48:20 train step %d / 1000 0.50 sec/step loss 2.0",
        "Iter(train) [%d/1000]  time: 0.5000  data_time: 0.0100  eta: 0:03:01  loss: 2.0",
        "eta: 0:03:01  iter: %d  total_loss: 2.1  time: 0.5000  data_time: 0.0100",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[4000], last[200];
        size_t used = 0;
        for (int n = 1; n <= 24; n++) {
            used += (size_t)snprintf(text + used, sizeof text - used, lines[i], n);
            used += (size_t)snprintf(text + used, sizeof text - used, "\n");
        }
        int length = snprintf(last, sizeof last, lines[i], 25);
        for (int cut = 0; cut <= length; cut++) {
            snprintf(text + used, sizeof text - used, "%.*s", cut, last);
            OWNED(knee_train_log) log = log_of(text);
            assert_relative(log.median_s, 0.5, 1e-6);
        }
    }
}
