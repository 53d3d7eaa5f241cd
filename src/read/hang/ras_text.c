/* SPDX-License-Identifier: MIT */
/*
 * What `ncclras` prints (NCCL 2.24 to 2.28): a summary, a table of communicators, then errors and
 * warnings, each with the ranks that are unlike the others:
 *
 *   #0-0 (fa93daea854b060b) MISMATCH
 *     Communicator ranks have different AllGather operation counts
 *     30 ranks have launched up to operation 640
 *     2 ranks have launched up to operation 641
 *     Rank 12 -- GPU 4 managed by process 323032 on node 10.137.190.124
 */
#include "base/fold.h"
#include "read/hang/job_record.h"

#include <string.h>

bool knee_is_ras_text(struct knee_slice text)
{
    struct knee_slice head = {text.at, text.length < 8192 ? text.length : 8192};
    return (knee_slice_has(head, "Job summary") && knee_slice_has(head, "Communicators")) ||
           (knee_slice_has(head, "in group") && knee_slice_has(head, "per comm"));
}

/* Groups of ranks with one count, as the text lists them. */
struct counts {
    int64_t most, fewest;       /* operation numbers */
    int64_t most_of, fewest_of; /* how many ranks have them */
    bool incomplete, mismatch;
};

static bool number_after(struct knee_slice line, const char *before, int64_t *out)
{
    double value;
    if (!knee_slice_number_after(line, before, &value) || !(value >= 0 && value < 1e15))
        return false;
    *out = (int64_t)value;
    return true;
}

/* "30 ranks have launched up to operation 640" */
static bool count_line(struct knee_slice line, struct counts *c)
{
    int64_t op;
    double ranks;
    struct knee_slice rest = line, word;
    if (!number_after(line, "launched up to operation ", &op) || !knee_slice_word(&rest, &word) ||
        !knee_slice_number(word, &ranks) || !(ranks > 0 && ranks < 1e9))
        return false;
    if (c->most_of == 0 || op > c->most) {
        c->most = op;
        c->most_of = (int64_t)ranks;
    }
    if (c->fewest_of == 0 || op < c->fewest) {
        c->fewest = op;
        c->fewest_of = (int64_t)ranks;
    }
    return true;
}

/* The ranks listed are the few: those ahead when they are fewer than those behind. */
static void rank_line(struct knee_job_record *record, const struct counts *c,
                      struct knee_job_mark mark, struct knee_slice line)
{
    double number;
    if (!knee_slice_number_after(line, "Rank ", &number) ||
        !(number >= 0 && number < KNEE_JOB_RANKS))
        return;
    mark.rank = (int32_t)number;
    struct knee_job_rank *row = knee_job_rank_at(record, mark.rank);
    if (!row)
        return;
    size_t node = knee_slice_find(line, " on node ");
    if (node < line.length)
        knee_slice_copy(knee_slice_trim(knee_slice_from(line, node + 9)), row->host,
                        sizeof row->host);
    row->text = true;
    uint32_t at = knee_job_mark(record, mark, line);
    if (c->incomplete) {
        row->ras_missing = true;
        row->failure_mark = at;
    } else if (c->mismatch && c->most_of && c->most != c->fewest) {
        row->ras_calls = c->most_of <= c->fewest_of ? c->most : c->fewest;
        row->failure_mark = at;
    }
}

/* Ranks that are not listed are the many. */
static void fill_others(struct knee_job_record *record, const struct counts *c, int64_t world)
{
    if (!c->mismatch || !c->most_of || c->most == c->fewest || world <= 0 ||
        world > KNEE_JOB_RANKS || !knee_job_rank_at(record, world - 1))
        return;
    for (int64_t r = 0; r < world; r++)
        if (record->ranks[r].ras_calls < 0) {
            record->ranks[r].ras_calls = c->most_of <= c->fewest_of ? c->fewest : c->most;
            record->ranks[r].text = true;
        }
}

/* A process that does not answer, where no communicator says its rank. */
static void process_line(struct knee_job_record *record, struct knee_job_mark mark,
                         struct knee_slice line)
{
    if (record->failed == KNEE_FAILED_NOT) {
        record->failed = KNEE_FAILED_NODE;
        record->failed_mark = knee_job_mark(record, mark, line);
    }
}

void knee_job_ras_text(struct knee_job_record *record, uint32_t file, struct knee_slice text)
{
    struct counts c = {0};
    struct knee_slice line, rest = text;
    int64_t world = 0;
    uint32_t at = 0;
    while (knee_slice_line(&rest, &line)) {
        struct knee_slice trimmed = knee_slice_trim(line);
        struct knee_job_mark mark = {KNEE_JOB_NO_RANK, file, ++at, -1, 0, NULL};
        if (knee_slice_starts(trimmed, "#") || knee_slice_is(trimmed, "INCOMPLETE")) {
            fill_others(record, &c, world);
            c = (struct counts){.incomplete = knee_slice_has(trimmed, "INCOMPLETE"),
                                .mismatch = knee_slice_has(trimmed, "MISMATCH")};
        } else if (count_line(trimmed, &c)) {
            knee_job_mark(record, mark, trimmed);
            world = c.most_of + (c.most == c.fewest ? 0 : c.fewest_of);
        } else if (knee_slice_starts(trimmed, "Rank ")) {
            rank_line(record, &c, mark, trimmed);
        } else if (c.incomplete && knee_slice_starts(trimmed, "Process ")) {
            process_line(record, mark, trimmed);
        }
    }
    fill_others(record, &c, world);
    record->world = world > record->world ? world : record->world;
}
