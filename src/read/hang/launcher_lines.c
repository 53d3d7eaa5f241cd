/* SPDX-License-Identifier: MIT */
/*
 * Who ended how, as launchers and schedulers tell it:
 *
 *   torchrun   "  host      : node7", "  rank      : 3 (local_rank: 3)", "  exitcode  : -11 (pid:
 * 1)" srun       "srun: error: nid006132: task 0: Exited with exit code 1", "... tasks 0-3,7:
 * Killed" slurmstepd "*** STEP 1.0 ON n7 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***"
 *   mpirun     "mpirun noticed that process rank 3 with PID 0 on node n7 exited on signal 11"
 *              "MPI_ABORT was invoked on rank 3", "Process name: [[29973,1],3]", "Exit code:    1"
 *   MPICH      "=   RANK 3 PID 7 RUNNING AT n7", "=   KILLED BY SIGNAL: 9 (Killed)"
 *   Lightning  "[rank: 1] Child process with PID 7 terminated with code 1."
 *   Composer   "Rank 2 crashed with exit code -6"
 *   DeepSpeed  "['python', ..., '--local_rank=3'] exits with return code = -11": any of its node
 */
#include "base/fold.h"
#include "read/hang/job_lines.h"

/* Signals that strsignal() names; 0: not one of them. */
static int signal_of(struct knee_slice text)
{
    static const struct {
        const char *word;
        int number;
    } signals[] = {
        {"Segmentation fault", 11},
        {"Speicherzugriffsfehler", 11},
        {"Erreur de segmentation", 11},
        {"Violaci", 11}, /* Violacion de segmento, with or without its accent */
        {"SIGSEGV", 11},
        {"Bus error", 7},
        {"Aborted", 6},
        {"SIGABRT", 6},
        {"Illegal instruction", 4},
        {"Floating point exception", 8},
        {"Out Of Memory", 9},
        {"Killed", 9},
        {"SIGKILL", 9},
        {"Terminated", 15},
        {"SIGTERM", 15},
    };
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (knee_slice_has(text, signals[i].word))
            return signals[i].number;
    return 0;
}

static void set_exit(struct knee_job_place *place, const struct knee_job_line *line, int64_t rank,
                     int64_t status)
{
    struct knee_job_rank *row = knee_job_rank_at(place->record, rank);
    if (!row)
        return;
    row->text = true;
    if (row->exit >= 0)
        return;
    row->exit = (int32_t)(status < 0 ? 128 - status : status) & 255;
    row->exit_mark = knee_job_mark_line(place, line, KNEE_FAILED_NOT);
}

static int64_t signed_after(struct knee_slice text, const char *word)
{
    size_t at = knee_slice_find(text, word);
    struct knee_slice rest = knee_slice_from(text, at + strlen(word));
    while (rest.length && (rest.at[0] == ' ' || rest.at[0] == ':'))
        rest = knee_slice_from(rest, 1);
    bool negative = knee_slice_starts(rest, "-");
    int64_t value = knee_job_number(knee_slice_from(rest, negative), "");
    return negative && value >= 0 ? -value : value;
}

/* A rank fails once in a run. When it fails again later, the file has two runs in it. */
static void note_again(struct knee_job_place *place, const struct knee_job_rank *row)
{
    const struct knee_job_record *record = place->record;
    if (row->exit < 0 || row->exit_s < 0 || place->table_s <= row->exit_s + 1 ||
        row->exit_mark == KNEE_JOB_NO_MARK || record->marks[row->exit_mark].file != place->file)
        return;
    knee_job_forget(place, record->marks[row->exit_mark].line + 1);
}

/* "slurmstepd: error: *** JOB 815 ON n7 CANCELLED AT ...": one file may hold several jobs. */
static void note_job(struct knee_job_place *place, struct knee_slice text)
{
    int64_t job = knee_job_number(text, "*** JOB ");
    if (job <= 0)
        return;
    if (place->job && job != place->job)
        knee_job_forget(place, place->job_line + 1);
    place->job = place->record->slurm_job = job;
    place->job_line = place->line;
}

/* A block of torchrun's table. */
static bool table_line(struct knee_job_place *place, const struct knee_job_line *line)
{
    struct knee_slice t = line->text, before = place->before;
    if (knee_slice_starts(t, "host      :")) {
        struct knee_slice above = knee_slice_trim(knee_job_line_above(&before));
        size_t time = knee_slice_find(above, "time      : ");
        place->table_s = knee_job_line_of(knee_slice_from(above, time + 12)).time_s;
        knee_slice_copy(knee_slice_trim(knee_slice_from(t, 11)), place->table_host,
                        sizeof place->table_host);
    } else if (knee_slice_starts(t, "rank      :")) {
        place->table_rank = knee_job_number(t, ":");
        struct knee_job_rank *row = knee_job_rank_at(place->record, place->table_rank);
        if (row && place->table_host[0])
            memcpy(row->host, place->table_host, sizeof row->host);
        if (row)
            note_again(place, row);
        if (row)
            row->exit_s = place->table_s;
    } else if (knee_slice_starts(t, "exitcode  :")) {
        set_exit(place, line, place->table_rank, signed_after(t, "exitcode  "));
        struct knee_job_rank *row = knee_job_rank_at(place->record, place->table_rank);
        if (row)
            row->root = row->root || place->table_root;
    } else if (knee_slice_starts(t, "Root Cause (first observed failure)")) {
        place->table_root = true;
    } else {
        place->table_root = place->table_root && !knee_slice_has(t, "ChildFailedError");
        return knee_slice_starts(t, "error_file:") || knee_slice_starts(t, "traceback :");
    }
    return true;
}

/* "0-3,7" */
static void each_task(struct knee_job_place *place, const struct knee_job_line *line,
                      struct knee_slice list, int64_t status)
{
    struct knee_slice piece;
    while (knee_slice_until(&list, ',', &piece)) {
        int64_t first = knee_job_number(piece, ""), last = knee_job_number(piece, "-");
        last = last < first ? first : last;
        for (int64_t r = first; r >= 0 && r <= last && r < KNEE_JOB_RANKS; r++) {
            struct knee_job_line own = *line;
            own.rank = r;
            own.named = true;
            if (knee_slice_has(line->text, "Out Of Memory"))
                knee_job_fail(place, &own, KNEE_FAILED_HOST_OOM);
            set_exit(place, line, r, status);
            struct knee_job_rank *row = knee_job_rank_at(place->record, r);
            if (row && line->host[0])
                memcpy(row->host, line->host, sizeof row->host);
        }
    }
}

/* "srun: error: nid006132: task 0: Exited with exit code 1" */
static bool srun_line(struct knee_job_place *place, const struct knee_job_line *line)
{
    struct knee_job_line own = *line;
    struct knee_slice rest = line->text, host, list;
    if (!knee_slice_starts(rest, "srun: error: "))
        return false;
    rest = knee_slice_from(rest, 13);
    knee_slice_until(&rest, ':', &host);
    knee_slice_copy(host, own.host, sizeof own.host);
    rest = knee_slice_trim(rest);
    if (!knee_slice_starts(rest, "task"))
        return false;
    knee_slice_until(&rest, ' ', &list);
    knee_slice_until(&rest, ':', &list);
    int64_t code = knee_job_number(rest, "exit code ");
    int signal = signal_of(rest);
    if (code >= 0 || signal)
        each_task(place, &own, list, code >= 0 ? code : -signal);
    return true;
}

/* A rank that mpirun or MPICH saw end first. */
static void set_first(struct knee_job_place *place, const struct knee_job_line *line, int64_t rank,
                      int64_t status)
{
    struct knee_job_rank *row = knee_job_rank_at(place->record, rank);
    set_exit(place, line, rank, status);
    if (row)
        row->root = true;
}

static bool mpi_line(struct knee_job_place *place, const struct knee_job_line *line)
{
    struct knee_slice t = line->text;
    int64_t rank = knee_job_number(t, "process rank "), signal = knee_job_number(t, "on signal "),
            code = knee_job_number(t, "Exit code:");
    if (rank >= 0 && signal >= 0)
        set_first(place, line, rank, -signal);
    else if ((rank = knee_job_number(t, "MPI_ABORT was invoked on rank ")) >= 0)
        set_first(place, line, rank, 1);
    else if (knee_slice_starts(t, "Process name: [["))
        place->table_rank = knee_job_number(knee_slice_from(t, knee_slice_find(t, "],")), "],");
    else if (knee_slice_starts(t, "Exit code:") && code > 0)
        set_first(place, line, place->table_rank, code);
    else if (knee_slice_starts(t, "=   RANK "))
        place->table_rank = knee_job_number(t, "RANK ");
    else if (knee_slice_starts(t, "=   KILLED BY SIGNAL"))
        set_first(place, line, place->table_rank, -knee_job_number(t, "SIGNAL"));
    else
        return false;
    return true;
}

/* Launchers that name the rank in a sentence. */
static bool said_line(struct knee_job_place *place, const struct knee_job_line *line)
{
    struct knee_slice t = line->text;
    size_t at = knee_slice_find(t, "Rank ");
    int64_t rank = knee_job_number(knee_slice_from(t, at), "Rank ");
    if (knee_slice_has(t, " crashed with exit code ") && rank >= 0)
        set_first(place, line, rank, signed_after(t, "with exit code"));
    else if (knee_slice_starts(t, "Child process with PID") && line->named)
        set_first(place, line, line->rank, signed_after(t, "terminated with code"));
    else
        return false;
    return true;
}

/* A process of a node, so its rank in the job is not known. */
static bool local_line(struct knee_job_place *place, const struct knee_job_line *line)
{
    static const char *const words[] = {"failed (exitcode: ", "exits with return code = "};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!knee_slice_has(line->text, words[i]))
            continue;
        struct knee_job_line job = *line;
        int64_t code = signed_after(line->text, words[i]);
        job.rank = KNEE_JOB_NO_RANK;
        job.named = true; /* nor is it the rank of the file */
        if (code)
            knee_job_fail(place, &job,
                          code > 0      ? KNEE_FAILED_EXCEPTION
                          : code == -9  ? KNEE_FAILED_KILLED
                          : code == -15 ? KNEE_FAILED_CANCEL
                                        : KNEE_FAILED_SIGNAL);
        return true;
    }
    return false;
}

/* A shell's or faulthandler's word: "Killed", "job.sh: line 8: 815 Killed  python train.py". */
static bool shell_line(struct knee_job_place *place, const struct knee_job_line *line)
{
    struct knee_slice t = line->text;
    int64_t rank = knee_job_whose(place, line);
    bool said = knee_slice_starts(t, "Fatal Python error: ") || knee_slice_has(t, "core dumped") ||
                knee_slice_is(t, "Killed") || knee_slice_is(t, "Segmentation fault") ||
                knee_slice_is(t, "Bus error") ||
                (knee_slice_has(t, ": line ") && knee_slice_has(t, " Killed "));
    int signal = said ? signal_of(t) : 0;
    if (!signal)
        return false;
    if (rank >= 0)
        set_exit(place, line, rank, -signal);
    else
        knee_job_fail(place, line, signal == 9 ? KNEE_FAILED_KILLED : KNEE_FAILED_SIGNAL);
    return true;
}

bool knee_job_launcher_line(struct knee_job_place *place, const struct knee_job_line *line)
{
    note_job(place, line->text);
    return table_line(place, line) || srun_line(place, line) || mpi_line(place, line) ||
           said_line(place, line) || local_line(place, line) || shell_line(place, line);
}
