/* SPDX-License-Identifier: MIT */
/* Where the hours of one log went: steps of 10 s, and between two of them something that takes a
 * known time. Each part gets its seconds, and the parts sum to the wall time. */
#include "knee_read.h"
#include "knee_scale.h"
#include "unit.h"

struct writer {
    char text[1 << 15];
    size_t used;
    int now_s;
};

/* A line with the time at its head. */
static void stamped(struct writer *w, const char *format, ...)
{
    va_list args;
    w->used += (size_t)snprintf(w->text + w->used, sizeof w->text - w->used,
                                "[2026-01-01 %02d:%02d:%02d] ", w->now_s / 3600, w->now_s / 60 % 60,
                                w->now_s % 60);
    va_start(args, format);
    w->used += (size_t)vsnprintf(w->text + w->used, sizeof w->text - w->used, format, args);
    va_end(args);
}

static void steps(struct writer *w, int first, int last)
{
    for (int i = first; i <= last; i++) {
        w->now_s += 10;
        stamped(w,
                "iteration %8d/     500 | consumed samples: %d | elapsed time per iteration (ms): "
                "10000.0 | global batch size:    32 | lm loss: 1.0E+01 |\n",
                i, 32 * i);
    }
}

static struct knee_train_log read_log(const struct writer *w)
{
    struct knee_train_log log;
    struct knee_err err;
    struct knee_train_reader *reader = knee_train_begin("test.log", NULL);
    assert_non_null(reader);
    knee_train_push(reader, w->text, w->used);
    if (knee_train_end(reader, &log, &err))
        fail_msg("%s", err.what);
    return log;
}

static void check_sum(const struct knee_train_account *a)
{
    double sum = 0;
    for (int p = 0; p < KNEE_TIME_PARTS; p++) {
        assert_true(a->part_s[p] >= 0);
        sum += a->part_s[p];
    }
    assert_near(sum, a->wall_s, 1e-6);
}

/* What stands between step 10 and step 11, `before_s` and `after_s` around its second line. */
TEST(test_parts)
{
    static const struct {
        const char *first, *second; /* "": no such line */
        int first_s, second_s;      /* that pass before each */
        enum knee_time_part part;
        double seconds;
    } rows[] = {
        {"", "", 0, 0, KNEE_TIME_GAP, 0},
        {"", "", 30, 0, KNEE_TIME_SLOW, 30},  /* less than a minute: slow steps */
        {"", "", 600, 0, KNEE_TIME_GAP, 600}, /* nothing was written */
        {"saving checkpoint at iteration 10 to /run\n",
         "successfully saved checkpoint at iteration 10\n", 0, 45, KNEE_TIME_CHECKPOINT, 45},
        {"Saving model checkpoint to /run\n", "", 0, 0, KNEE_TIME_CHECKPOINT, 0},
        {"Saving model checkpoint to /run\n", "text\n", 0, 25, KNEE_TIME_CHECKPOINT, 25},
        {"***** Running Evaluation *****\n", "text\n", 0, 80, KNEE_TIME_EVALUATION, 80},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct writer *w = calloc(1, sizeof *w);
        assert_non_null(w);
        stamped(w, "starting\n");
        w->now_s += 100;
        steps(w, 1, 10);
        w->now_s += rows[i].first_s;
        if (rows[i].first[0]) {
            w->now_s += 1;
            stamped(w, "%s", rows[i].first);
        }
        w->now_s += rows[i].second_s;
        if (rows[i].second[0])
            stamped(w, "%s", rows[i].second);
        w->now_s -= rows[i].first[0] != 0;
        steps(w, 11, 40);
        struct knee_train_log log = read_log(w);
        const struct knee_train_account *a = &log.account;
        check_sum(a);
        assert_near(a->part_s[rows[i].part], rows[i].seconds, 1e-6);
        assert_near(a->part_s[KNEE_TIME_STEPS], 400, 1e-6);
        assert_near(a->part_s[KNEE_TIME_STARTUP], 100, 1e-6);
        assert_int_equal(a->starts, 1);
        assert_int_equal(isnan(a->gap_s), rows[i].part != KNEE_TIME_GAP || rows[i].seconds == 0);
        if (!isnan(a->gap_s))
            assert_near(a->gap_after, 10, 0);
        knee_train_log_release(&log);
        free(w);
    }
}

/* The job starts again at step `first` after step 40, `pause_s` later. */
TEST(test_restarts)
{
    static const struct {
        int first, pause_s;
        double lost, gap_s;
    } rows[] = {
        {31, 120, 10, 0}, /* steps 31 to 40 once more; the pause is start-up */
        {31, 7200, 10, 7200},
        {1, 120, 0, 0}, /* from the first step: another pass */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct writer *w = calloc(1, sizeof *w);
        assert_non_null(w);
        steps(w, 1, 40);
        w->now_s += rows[i].pause_s;
        steps(w, rows[i].first, rows[i].first + 39);
        struct knee_train_log log = read_log(w);
        check_sum(&log.account);
        assert_int_equal(log.account.starts, 2);
        assert_near(log.account.lost_steps, rows[i].lost, 1e-9);
        assert_near(log.account.part_s[KNEE_TIME_LOST], 10 * rows[i].lost, 1e-6);
        assert_near(log.account.part_s[KNEE_TIME_GAP], rows[i].gap_s, 1e-6);
        knee_train_log_release(&log);
        free(w);
    }
}

/* How it ended, and what was not saved by then: the checkpoint of step 30 was the last. */
TEST(test_ends)
{
    static const struct {
        const char *lines;
        enum knee_train_end_kind ended;
        double unsaved, hang_s;
        const char *host;
    } rows[] = {
        {"[exiting program after 40 iterations]\n", KNEE_ENDED_WELL, 0, 0, ""},
        {"slurmstepd: error: *** STEP 1.1 ON n7 CANCELLED AT 2026-01-01T01:00:00 DUE TO TIME LIMIT "
         "***\n",
         KNEE_ENDED_LIMIT, 10, 0, "n7"},
        {"slurmstepd: error: *** STEP 1.1 ON n8 CANCELLED AT 2026-01-01T01:00:00 ***\n",
         KNEE_ENDED_CANCELLED, 10, 0, "n8"},
        {"Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3) ran for 600000 "
         "milliseconds before timing out.\n",
         KNEE_ENDED_HANG, 10, 600, ""},
        {"nothing more\n", KNEE_ENDED_UNKNOWN, 10, 0, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct writer *w = calloc(1, sizeof *w);
        assert_non_null(w);
        steps(w, 1, 30);
        stamped(w, "saving checkpoint at iteration 30 to /run\n");
        stamped(w, "successfully saved checkpoint at iteration 30\n");
        steps(w, 31, 40);
        w->now_s += 700;
        stamped(w, "%s", rows[i].lines);
        struct knee_train_log log = read_log(w);
        const struct knee_train_account *a = &log.account;
        check_sum(a);
        assert_int_equal(a->ended, rows[i].ended);
        assert_near(a->saved_step, 30, 0);
        assert_near(a->unsaved_steps, rows[i].unsaved, 0);
        assert_near(a->part_s[KNEE_TIME_HANG], rows[i].hang_s, 1e-6);
        assert_string_equal(log.host, rows[i].host);
        knee_train_log_release(&log);
        free(w);
    }
}

/* Only its beginning is printed; the steps that follow show that it ended. */
TEST(test_followed_checkpoint)
{
    struct writer *w = calloc(1, sizeof *w);
    assert_non_null(w);
    steps(w, 1, 30);
    stamped(w, "Saving model checkpoint to: /run/model-0030.pth\n");
    steps(w, 31, 40);
    struct knee_train_log log = read_log(w);
    assert_near(log.account.saved_step, 30, 0);
    assert_near(log.account.unsaved_steps, 10, 0);
    knee_train_log_release(&log);
    free(w);
}

/* Its only checkpoint was not complete: all of it is unsaved. Names past the last are "?". */
TEST(test_unfinished_checkpoint)
{
    struct writer *w = calloc(1, sizeof *w);
    assert_non_null(w);
    steps(w, 1, 40);
    stamped(w, "saving checkpoint at iteration 40 to /run\n");
    struct knee_train_log log = read_log(w);
    assert_near(log.account.unsaved_steps, 40, 0);
    knee_train_log_release(&log);
    free(w);
    for (int p = 0; p < KNEE_TIME_PARTS; p++)
        assert_string_not_equal(knee_time_part_name((enum knee_time_part)p), "?");
    assert_string_equal(knee_time_part_name(KNEE_TIME_PARTS), "?");
    assert_string_equal(knee_train_end_name(KNEE_ENDED_HANG), "hang");
    assert_string_equal(knee_train_end_name((enum knee_train_end_kind)99), "?");
}
