/* SPDX-License-Identifier: MIT */
/*
 * What launchers add to a log: prefixes before every line ("0: ", "[1,0]<stdout>:", "(head,
 * rank=0)", time stamps, quotation marks), and separate lines that show ranks, nodes and the test.
 * Both are tables.
 */
#include "base/fold.h"
#include "read/log/log.h"

#include <math.h>

/* Length of "(head, rank=0, pid=3808) " and the like, closing bracket included. */
static size_t bracket_length(struct knee_slice line, char open, char close)
{
    if (line.length == 0 || line.at[0] != open)
        return 0;
    for (size_t i = 1; i < line.length && i < 80; i++)
        if (line.at[i] == close)
            return i + 1;
    return 0;
}

static size_t after_parenthesis(struct knee_slice line)
{
    return bracket_length(line, '(', ')');
}

/* "[1,0]<stdout>:", "[0] ", "[default0]:", "[rank0]: ", "[2024-05-01 12:00:00] " */
static size_t after_bracket(struct knee_slice line)
{
    size_t end = bracket_length(line, '[', ']');
    if (end == 0)
        return 0;
    struct knee_slice rest = knee_slice_from(line, end);
    if (knee_slice_starts(rest, "<stdout>:") || knee_slice_starts(rest, "<stderr>:"))
        return end + 9;
    return end + (rest.length > 0 && rest.at[0] == ':');
}

/* "0: ", " 12: " */
static size_t after_task(struct knee_slice line)
{
    size_t i = 0;
    while (i < line.length && knee_is_digit(line.at[i]))
        i++;
    return i > 0 && i < 7 && i < line.length && line.at[i] == ':' &&
                   (i + 1 == line.length || line.at[i + 1] == ' ')
               ? i + 1
               : 0;
}

/* "2024-05-01T12:00:00.000Z " */
static size_t after_time(struct knee_slice line)
{
    if (line.length < 20 || !knee_is_digit(line.at[0]) || line.at[4] != '-' || line.at[7] != '-' ||
        (line.at[10] != 'T' && line.at[10] != ' ') || line.at[13] != ':')
        return 0;
    size_t i = 11;
    while (i < line.length && line.at[i] != ' ')
        i++;
    return i;
}

/* "node-3: #  size ...": a host before a comment or a row. */
static size_t after_host(struct knee_slice line)
{
    for (size_t i = 0; i + 2 < line.length && i < 64; i++) {
        if (line.at[i] == ' ' || line.at[i] == '#')
            return 0;
        if (line.at[i] != ':' || line.at[i + 1] != ' ')
            continue;
        struct knee_slice rest = knee_slice_trim(knee_slice_from(line, i + 1));
        return rest.length > 0 && (rest.at[0] == '#' || knee_is_digit(rest.at[0])) ? i + 1 : 0;
    }
    return 0;
}

static size_t after_quote(struct knee_slice line)
{
    return line.length > 0 && (line.at[0] == '>' || line.at[0] == '|');
}

/* "\033[1m" */
static size_t after_colour(struct knee_slice line)
{
    if (line.length < 3 || line.at[0] != '\033' || line.at[1] != '[')
        return 0;
    for (size_t i = 2; i < line.length && i < 16; i++)
        if (line.at[i] >= '@' && line.at[i] <= '~')
            return i + 1;
    return 0;
}

static size_t (*const prefixes[])(struct knee_slice) = {
    after_colour, after_quote, after_parenthesis, after_bracket, after_task, after_time, after_host,
};

struct knee_slice knee_log_strip(struct knee_slice line)
{
    for (int turn = 0; turn < 8; turn++) {
        size_t cut = 0;
        line = knee_slice_trim(line);
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && cut == 0; i++)
            cut = prefixes[i](line);
        if (cut == 0)
            break;
        line = knee_slice_from(line, cut);
    }
    return knee_slice_trim(line);
}

/* ---- Lines that give something away ---- */

/* One word, and where the number after it goes. */
static const struct {
    const char *before;
    size_t offset;
} numbers[] = {
    {"SLURM_NTASKS=", offsetof(struct knee_run_facts, ranks_said)},
    {"SLURM_NPROCS=", offsetof(struct knee_run_facts, ranks_said)},
    {"SLURM_NNODES=", offsetof(struct knee_run_facts, nodes_said)},
    {"SLURM_JOB_NUM_NODES=", offsetof(struct knee_run_facts, nodes_said)},
    {"--ntasks-per-node", offsetof(struct knee_run_facts, per_node_said)},
    {"-npernode ", offsetof(struct knee_run_facts, per_node_said)},
    {"--npernode ", offsetof(struct knee_run_facts, per_node_said)},
    {"ppr:", offsetof(struct knee_run_facts, per_node_said)},
    {"srun -N", offsetof(struct knee_run_facts, nodes_said)},
    {"--nodes", offsetof(struct knee_run_facts, nodes_said)},
    {"mpirun -np ", offsetof(struct knee_run_facts, ranks_said)},
    {"mpirun -n ", offsetof(struct knee_run_facts, ranks_said)},
    {" -np ", offsetof(struct knee_run_facts, ranks_said)},
    {"--ntasks=", offsetof(struct knee_run_facts, ranks_said)},
};

static bool read_numbers(struct knee_run_facts *run, struct knee_slice line)
{
    bool any = false;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double value;
        if (!knee_slice_number_after(line, numbers[i].before, &value) || value < 1)
            continue;
        double *field = (double *)((char *)run + numbers[i].offset);
        if (isnan(*field))
            *field = value;
        any = true;
    }
    return any;
}

/* A command that names the test: ".../all_reduce_perf -b 8 -e 8G", "osu_allreduce -d cuda". */
static bool read_command(struct knee_log *log, struct knee_slice line)
{
    struct knee_slice word;
    bool any = false;
    while (knee_slice_word(&line, &word)) {
        size_t slash = word.length;
        while (slash > 0 && word.at[slash - 1] != '/' && word.at[slash - 1] != '=')
            slash--;
        struct knee_slice name = knee_slice_from(word, slash);
        size_t perf = knee_slice_find(name, "_perf");
        if (perf == name.length && !knee_slice_starts(name, "osu_"))
            continue;
        if (perf < name.length)
            name.length = perf;
        enum knee_op op = knee_op_of(name.at, name.length);
        if (op == KNEE_OP_UNKNOWN)
            continue;
        any = true;
        if (log->op_known < KNEE_SAID) {
            log->op = op;
            log->op_known = KNEE_SAID;
        }
    }
    return any;
}

static bool read_environment(struct knee_log *log, struct knee_slice line)
{
    if (!knee_slice_has(line, "NCCL_ALGO=") && !knee_slice_has(line, "NCCL_PROTO="))
        return false;
    log->seen |= KNEE_SEEN_FORCED_ALGO;
    return true;
}

bool knee_log_launcher_line(struct knee_log_reader *r, struct knee_slice line)
{
    bool numbers_read = read_numbers(&r->run, line);
    bool command = read_command(&r->log, line);
    bool environment = read_environment(&r->log, line);
    return numbers_read || command || environment;
}
