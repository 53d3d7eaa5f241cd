/* SPDX-License-Identifier: MIT */
/* Training logs and tables of runs from any bytes, in pieces: the same log comes out however they
 * are cut, and every figure of it is one that can be. */
#include "knee_scale.h"
#include "seldom.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static knee_status read_in(const char *text, size_t size, size_t piece, struct knee_train_log *out)
{
    struct knee_train_reader *reader = knee_train_begin("fuzz", NULL);
    struct knee_err err;
    if (!reader)
        abort();
    for (size_t at = 0; at < size; at += piece)
        knee_train_push(reader, text + at, size - at < piece ? size - at : piece);
    return knee_train_end(reader, out, &err);
}

static void check(const struct knee_train_log *log)
{
    bool timed = log->timing != KNEE_TIMED_NOT;
    if (timed != (log->timed > 0) || (timed && !(log->median_s > 0 && log->median_s < 1e9)) ||
        (timed && !(log->p95_s > 0)) || log->timed > log->row_count ||
        (!isnan(log->workers) && !(log->workers >= 1)))
        abort();
}

static void read_table(const char *text, size_t size, bool judged)
{
    struct knee_scale_row rows[32];
    struct knee_err err;
    size_t count, refused;
    if (!knee_scale_is_table(text, size) ||
        knee_scale_table_read((struct knee_named_text){text, size, "fuzz"}, NULL,
                              &(struct knee_scale_table){rows, 32, &count, &refused}, &err))
        return;
    struct knee_scale_answer a = {
        .question = {.tolerance = 0.8, .at_batch = NAN, .symptoms = {NAN, NAN, NAN, NAN, false}},
        .rows = rows,
        .row_count = count};
    for (size_t i = 0; i < count; i++)
        rows[i].model.step_s = rows[i].model.comm_share = rows[i].model.host_share = NAN;
    if (!judged || knee_scale_judge(&a, &err))
        return;
    for (size_t i = 0; i < a.ask_count; i++)
        if (!a.asks[i].refused[0] && !(a.asks[i].at.low_s <= a.asks[i].at.high_s))
            abort();
}

/* Outputs of sacct: what is read is accounted for, and no host has more failures than jobs. */
static void read_jobs(const char *text, size_t size)
{
    struct knee_sched_jobs jobs = {.row = NULL};
    struct knee_sched_account account;
    struct knee_err err;
    if (!knee_is_sacct(text, size))
        return;
    if (!knee_sched_read((struct knee_named_text){text, size, "fuzz"}, &jobs, &err) &&
        !knee_sched_account(&jobs, &account, &err))
        for (size_t i = 0; i < account.listed; i++)
            if (account.host[i].failed > account.host[i].jobs ||
                !(account.host[i].chance >= 0 && account.host[i].chance <= 1))
                abort();
    knee_sched_release(&jobs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct knee_train_log whole, pieces;
    const char *text = (const char *)data;
    read_jobs(text, size);
    read_table(text, size, seldom(data, size, 16));
    knee_status first = read_in(text, size, size ? size : 1, &whole);
    knee_status second = read_in(text, size, 7, &pieces);
    if (first != second)
        abort();
    if (first)
        return 0;
    check(&whole);
    if (whole.row_count != pieces.row_count || whole.timed != pieces.timed ||
        memcmp(&whole.median_s, &pieces.median_s, sizeof whole.median_s) != 0 ||
        memcmp(&whole.counts, &pieces.counts, sizeof whole.counts) != 0)
        abort();
    knee_train_log_release(&whole);
    knee_train_log_release(&pieces);
    return 0;
}
