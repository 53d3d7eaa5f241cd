/* SPDX-License-Identifier: MIT */
/*
 * Tables of the OSU micro-benchmarks: "# OSU MPI-CUDA Allreduce Latency Test v7.0", a line of
 * column names, then size and average latency in us (or MB/s). Sizes are those of one message; what
 * knee counts is the whole buffer, so gathers, scatters and all-to-all are multiplied by the ranks,
 * which these tables do not say: a launcher's line or --ranks must.
 */
#include "read/log/log.h"

#include <math.h>

static bool sniff(struct knee_slice text)
{
    struct knee_slice line;
    for (int i = 0; i < 2000 && knee_slice_line(&text, &line); i++)
        if (knee_slice_has(line, "# OSU ") && knee_slice_has(line, " Test"))
            return true;
    return false;
}

/* "# OSU MPI-CUDA Allreduce Latency Test v5.9": the word before Latency or Bandwidth. */
static enum knee_op read_title(struct knee_slice line)
{
    struct knee_slice word;
    enum knee_op op = KNEE_OP_UNKNOWN;
    line = knee_slice_from(line, knee_slice_find(line, "OSU ") + 4);
    while (knee_slice_word(&line, &word)) {
        if (knee_slice_is(word, "Latency") || knee_slice_is(word, "Bandwidth") ||
            knee_slice_is(word, "Bi-Directional"))
            break;
        op = knee_op_of(word.at, word.length);
    }
    return op == KNEE_OP_UNKNOWN ? KNEE_OP_SEND_RECV : op;
}

static bool per_rank(enum knee_op op)
{
    return op == KNEE_OP_ALL_GATHER || op == KNEE_OP_GATHER || op == KNEE_OP_SCATTER ||
           op == KNEE_OP_ALL_TO_ALL || op == KNEE_OP_ALL_TO_ALLV;
}

static const char *use_row(struct knee_log_reader *r, double size, double value, bool bandwidth)
{
    double ranks = isnan(r->hints.ranks) ? r->run.ranks_said : r->hints.ranks;
    struct knee_sample sample = {
        .bytes = size,
        .time_s = bandwidth ? size / (value * 1e6) : value * 1e-6,
        .in_place_s = NAN,
        .line = r->line,
    };
    if (!(size > 0))
        return "0 bytes";
    if (!(value > 0))
        return "the time is 0 or less";
    if (per_rank(r->log.op)) {
        if (isnan(ranks))
            return "sizes are per rank and the number of ranks is not known: give --ranks";
        sample.bytes *= ranks;
    }
    sample.out_of_place_s = sample.time_s;
    knee_log_add(r, &sample, NAN, NAN);
    return NULL;
}

static void take_row(struct knee_log_reader *r, struct knee_slice line, bool bandwidth)
{
    struct knee_slice rest = line, word;
    double size, value;
    if (!knee_slice_word(&rest, &word) || !knee_slice_number(word, &size)) {
        r->others++;
        return;
    }
    const char *reason = "no second column";
    if (knee_slice_word(&rest, &word))
        reason = knee_slice_number(word, &value) ? use_row(r, size, value, bandwidth)
                                                 : "a column is not a number";
    if (reason)
        knee_log_refuse(r, r->line, line, reason);
}

static void read_tables(struct knee_log_reader *r)
{
    struct knee_slice line;
    bool in_table = false, bandwidth = false;
    while (knee_log_line(r, &line)) {
        line = knee_log_strip(line);
        if (knee_slice_has(line, "# OSU ") && knee_slice_has(line, " Test")) {
            knee_log_end(r, true);
            r->log.op = read_title(line);
            r->log.op_known = KNEE_SAID;
            if (knee_slice_has(line, "OSU MPI ")) /* with GPU buffers it says MPI-CUDA, MPI-ROCM */
                knee_slice_copy(knee_slice_of("CPU"), r->log.gpu, sizeof r->log.gpu);
            bandwidth = knee_slice_has(line, "Bandwidth");
            in_table = true;
            if (r->log.op == KNEE_OP_SEND_RECV && isnan(r->run.ranks_said))
                r->run.ranks_said = 2;
            r->facts++;
        } else if (line.length == 0 || line.at[0] == '#' || knee_log_launcher_line(r, line)) {
            r->facts++;
        } else if (in_table) {
            take_row(r, line, bandwidth);
        } else {
            r->others++;
        }
    }
}

const struct knee_log_format knee_log_osu = {"OSU", sniff, read_tables};
