/* SPDX-License-Identifier: MIT */
/* Jobs that hang for a known reason, made up with any rank, number and size: the answer must follow
 * the text. Then the same job in other clothes: mixed, coloured, wrapped, in another order, cut. */
#include "base/text.h"
#include "hang_job.h"
#include "say/answers.h"
#include "say/fields.h"

#include "unit.h"

enum { WORLD = 6, ROOM = 1 << 16 };

/* ---- Writing jobs ---- */

struct job {
    char text[WORLD][ROOM]; /* standard error of each rank */
    char exits[WORLD][16];
    bool given[WORLD];
};

static struct job *new_job(void)
{
    struct job *job = calloc(1, sizeof *job);
    assert_non_null(job);
    for (int r = 0; r < WORLD; r++)
        job->given[r] = true;
    return job;
}

static void line(struct job *job, int rank, const char *format, ...)
{
    va_list args;
    char *end = job->text[rank] + strlen(job->text[rank]);
    va_start(args, format);
    vsnprintf(end, ROOM - (size_t)(end - job->text[rank]), format, args);
    va_end(args);
}

static void status(struct job *job, int rank, const char *group, int number, int enqueued,
                   int completed)
{
    line(job, rank,
         "[rank%d]:[E1116 12:00:20.5 ProcessGroupNCCL.cpp:2303] [PG ID %s PG GUID %s Rank %d]  "
         "failure detected by watchdog at work sequence id: %d PG status: last enqueued work: %d, "
         "last completed work: %d\n",
         rank, group, group, rank, number, enqueued, completed);
}

static void waits(struct job *job, int rank, int number, const char *op, int size)
{
    line(job, rank,
         "[rank%d]:[E1116 12:00:20.4 ProcessGroupNCCL.cpp:689] [Rank %d] Watchdog caught "
         "collective operation timeout: WorkNCCL(SeqNum=%d, OpType=%s, NumelIn=%d, NumelOut=%d, "
         "Timeout(ms)=9000) ran for 9003 milliseconds before timing out.\n",
         rank, rank, number, op, size, size);
}

static void waits_and_says(struct job *job, int rank, int number, const char *op, int size,
                           int enqueued)
{
    waits(job, rank, number, op, size);
    status(job, rank, "0(default_pg)", number, enqueued, number - 1);
}

static void signalled(struct job *job, int rank, int enqueued, int completed)
{
    line(job, rank,
         "[rank%d]:[E1116 12:00:20.6 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) "
         "Rank %d] Received a dump signal due to a collective timeout from  rank 3 and we will "
         "try our best to dump the debug info. Last enqueued NCCL work: %d, last completed NCCL "
         "work: %d.This is most likely caused by incorrect usages\n",
         rank, rank, enqueued, completed);
}

/* ---- Reading them ---- */

static void read_files(struct read *read, const struct job *job, bool backwards)
{
    knee_job_record_init(&read->record, NULL);
    for (int i = 0; i < WORLD; i++) {
        int r = backwards ? WORLD - 1 - i : i;
        char name[32];
        snprintf(name, sizeof name, "logs/rank%d.err", r);
        if (job->given[r])
            add(read, name, job->text[r], strlen(job->text[r]));
        snprintf(name, sizeof name, "logs/rank%d.exit", r);
        if (job->exits[r][0])
            add(read, name, job->exits[r], strlen(job->exits[r]));
    }
    judge(read);
}

static void expect(const struct job *job, enum knee_hang_class kind, int rank)
{
    for (int backwards = 0; backwards < 2; backwards++) {
        OWNED(read) read;
        read_files(&read, job, backwards);
        if (read.answer.kind != kind)
            fail_msg("%s, not %s", knee_hang_kind(read.answer.kind)->name,
                     knee_hang_kind(kind)->name);
        assert_int_equal(read.answer.named_count, rank >= 0);
        if (rank >= 0)
            assert_int_equal(read.answer.named[0], rank);
    }
}

/* ---- Classes ---- */

typedef void made(struct job *job, int rank, int number);

static void make_skip(struct job *job, int rank, int number)
{
    for (int r = 0; r < WORLD; r++)
        waits_and_says(job, r, number, "ALLREDUCE", r == rank ? 70000 : 4096,
                       r == rank ? number + 2 : number);
}

static void make_other(struct job *job, int rank, int number)
{
    for (int r = 0; r < WORLD; r++)
        waits_and_says(job, r, number, r == rank ? "_ALLGATHER_BASE" : "ALLREDUCE", 4096, number);
}

static void make_size(struct job *job, int rank, int number)
{
    for (int r = 0; r < WORLD; r++)
        waits_and_says(job, r, number, "ALLREDUCE", r == rank ? 1000 : 4096, number);
}

static void make_behind(struct job *job, int rank, int number)
{
    for (int r = 0; r < WORLD; r++)
        if (r == rank)
            signalled(job, r, number - 1, number - 1);
        else
            waits_and_says(job, r, number, "ALLREDUCE", 4096, number + 2);
}

static void make_ended(struct job *job, int rank, int number)
{
    make_behind(job, rank, number);
    line(job, rank,
         "c10d_logger.py:83: UserWarning: barrier(): using the device under current "
         "context.\n");
}

static void make_receives(struct job *job, int rank, int number)
{
    line(job, rank,
         "[rank%d]:[W1116 12:00:10.1 ProcessGroupNCCL.cpp:4094] Warning: An unbatched "
         "P2P op (send/recv) was called on this ProcessGroup with size 4.\n",
         rank);
    make_behind(job, rank, number);
}

static void make_saving(struct job *job, int rank, int number)
{
    make_behind(job, rank, number);
    line(job, rank, "Saving model checkpoint to /shared/run/step_%d\n", number);
}

static void make_frozen(struct job *job, int rank, int number)
{
    line(job, rank, "[rank%d]:[W1116 12:00:01.1 Utils.hpp:137] Warning: a variable\n", rank);
    for (int r = 0; r < WORLD; r++)
        if (r != rank)
            waits_and_says(job, r, number, "ALLREDUCE", 4096, number + 2);
}

static void make_gone(struct job *job, int rank, int number)
{
    int first = (rank + 1) % WORLD;
    line(job, first,
         "[rank%d]:[E1116 12:00:11.4 ProcessGroupNCCL.cpp:612] [Rank %d] Collective "
         "WorkNCCL(SeqNum=%d, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=9000) "
         "raised the following async exception: NCCL error: remote process exited or there was a "
         "network error, NCCL version 2.28.9\n",
         first, first, number);
    make_frozen(job, rank, number);
}

static void make_oom(struct job *job, int rank, int number)
{
    line(job, rank, "[rank%d]: Traceback (most recent call last):\n", rank);
    line(job, rank, "[rank%d]:   File \"/home/a/train.py\", line %d, in <module>\n", rank, number);
    line(job, rank,
         "[rank%d]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4 "
         "GiB\n",
         rank);
    for (int r = 0; r < WORLD; r++)
        if (r != rank)
            waits_and_says(job, r, number, "ALLREDUCE", 4096, number + 2);
}

static void make_exception(struct job *job, int rank, int number)
{
    line(job, rank, "[rank%d]: ValueError: too many values to unpack\n", rank);
    for (int r = 0; r < WORLD; r++)
        if (r != rank) {
            waits_and_says(job, r, number, "ALLREDUCE", 4096, number + 2);
            line(job, r, "[rank%d]:[E1116 12:00:21.4 c10.cpp:1] later\n", r);
            line(job, r, "[rank%d]: RuntimeError: it follows from the timeout\n", r);
        }
}

static void make_signal(struct job *job, int rank, int number)
{
    make_frozen(job, rank, number);
    for (int r = 0; r < WORLD; r++)
        snprintf(job->exits[r], sizeof job->exits[r], "exit %d\n", r == rank ? 139 : 134);
}

TEST(test_classes)
{
    static const struct {
        made *make;
        enum knee_hang_class kind;
    } rows[] = {
        {make_skip, KNEE_HANG_LEFT_OUT},     {make_other, KNEE_HANG_OTHER_OP},
        {make_size, KNEE_HANG_OTHER_SIZE},   {make_ended, KNEE_HANG_DATA_END},
        {make_receives, KNEE_HANG_RECEIVES}, {make_saving, KNEE_HANG_CHECKPOINT},
        {make_frozen, KNEE_HANG_FROZEN},     {make_gone, KNEE_HANG_SIGNAL},
        {make_oom, KNEE_HANG_OOM},           {make_exception, KNEE_HANG_EXCEPTION},
        {make_signal, KNEE_HANG_SIGNAL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int rank = 0; rank < WORLD; rank++) {
            struct job *job = new_job();
            rows[i].make(job, rank, 17 + 13 * rank);
            expect(job, rows[i].kind, rank);
            free(job);
        }
}

/* Without a word of its own: rank 0 saves, the others load. */
TEST(test_behind)
{
    for (int rank = 0; rank < WORLD; rank++) {
        struct job *job = new_job();
        make_behind(job, rank, 40 + rank);
        expect(job, rank ? KNEE_HANG_LOADER : KNEE_HANG_CHECKPOINT, rank);
        free(job);
    }
}

/* Two groups: a rank is in one and waits for the other, its partner the other way round. */
TEST(test_crossed)
{
    struct read read;
    for (int a = 0; a + 1 < WORLD; a++) {
        struct job *job = new_job();
        for (int r = 0; r < WORLD; r++) {
            for (int turn = 0; turn < 2; turn++) {
                bool pair = r == a ? turn == 0 : turn == 1;
                if (r != a && r != a + 1 && pair)
                    continue;
                waits(job, r, pair ? 1 : 37, "ALLREDUCE", 4096);
                status(job, r, pair ? "1" : "0(default_pg)", pair ? 1 : 37, pair ? 1 : 37,
                       pair ? -1 : 36);
            }
        }
        read_files(&read, job, false);
        assert_int_equal(read.answer.kind, KNEE_HANG_CROSSED);
        assert_int_equal(read.answer.named_count, 2);
        assert_int_equal(read.answer.named[0], a);
        assert_int_equal(read.answer.named[1], a + 1);
        read_release(&read);
        free(job);
    }
}

TEST(test_all_in_the_same_call)
{
    struct job *job = new_job();
    for (int r = 0; r < WORLD; r++)
        waits_and_says(job, r, 44, "ALLREDUCE", 4096, 46);
    expect(job, KNEE_HANG_WIRE, -1);
    free(job);
}

TEST(test_ended_well)
{
    struct job *job = new_job();
    for (int r = 0; r < WORLD; r++) {
        line(job, r, "step 1 loss 0.5\nstep 2 loss 0.4\n");
        snprintf(job->exits[r], sizeof job->exits[r], "0\n");
    }
    expect(job, KNEE_HANG_NOT, -1);
    free(job);
}

/* ---- Other clothes ---- */

/* One file with all ranks' lines in turn, each behind `prefix`. */
static void read_mixed(struct read *read, const struct job *job, const char *prefix)
{
    static char all[WORLD * ROOM * 2];
    const char *at[WORLD];
    bool more = true;
    size_t used = 0;
    for (int r = 0; r < WORLD; r++)
        at[r] = job->text[r];
    while (more) {
        more = false;
        for (int r = 0; r < WORLD; r++) {
            const char *end = strchr(at[r], '\n');
            if (!end)
                continue;
            used += (size_t)sprintf(all + used, prefix, r);
            memcpy(all + used, at[r], (size_t)(end + 1 - at[r]));
            used += (size_t)(end + 1 - at[r]);
            at[r] = end + 1;
            more = true;
        }
    }
    used +=
        (size_t)sprintf(all + used, "host1:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks %d\n", WORLD);
    knee_job_record_init(&read->record, NULL);
    add(read, "slurm-4711.out", all, used);
    judge(read);
}

TEST(test_prefixes)
{
    static const char *const prefixes[] = {
        "", "%d: ", "[1,%d]<stderr>:", "\x1b[31m", "node1: ", "18:11:06.680 ", "[default%d]:"};
    static made *const makes[] = {make_skip, make_size, make_oom, make_frozen, make_other};
    for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++)
        for (size_t m = 0; m < sizeof makes / sizeof *makes; m++) {
            struct job *job = new_job();
            struct read plain, mixed;
            makes[m](job, 4, 55);
            read_files(&plain, job, false);
            read_mixed(&mixed, job, prefixes[p]);
            assert_int_equal(mixed.answer.kind, plain.answer.kind);
            assert_int_equal(mixed.answer.named_count, 1);
            assert_int_equal(mixed.answer.named[0], 4);
            read_release(&plain);
            read_release(&mixed);
            free(job);
        }
}

/* A terminal of 80 columns has broken the lines. */
TEST(test_wrapped)
{
    struct job *job = new_job(), *wrapped = new_job();
    for (int r = 0; r < WORLD; r++) {
        waits(job, r, 40, "ALLREDUCE", r == 2 ? 1000 : 4096);
        size_t used = 0, column = 0;
        for (const char *at = job->text[r]; *at; at++) {
            if (column == 80 && *at != '\n') {
                wrapped->text[r][used++] = '\n';
                column = 0;
            }
            wrapped->text[r][used++] = *at;
            column = *at == '\n' ? 0 : column + 1;
        }
    }
    expect(wrapped, KNEE_HANG_OTHER_SIZE, 2);
    free(job);
    free(wrapped);
}

/* Cut anywhere: never another rank. */
TEST(test_cut)
{
    struct job *job = new_job();
    make_oom(job, 3, 21);
    for (size_t cut = 0; cut < strlen(job->text[3]); cut += 7) {
        struct read read;
        struct job *less = new_job();
        memcpy(less, job, sizeof *less);
        for (int r = 0; r < WORLD; r++)
            if (cut < strlen(less->text[r]))
                less->text[r][cut] = '\0';
        read_files(&read, less, false);
        for (size_t i = 0; i < read.answer.named_count; i++)
            assert_true(read.answer.certainty != KNEE_CERTAIN || read.answer.named[i] == 3);
        read_release(&read);
        free(less);
    }
    free(job);
}

/* Lines past the last that is kept belong to no mark, not to the first one. */
TEST(test_marks_end)
{
    struct read *read = calloc(1, sizeof *read);
    assert_non_null(read);
    knee_job_record_init(&read->record, NULL);
    for (uint32_t i = 0; i < KNEE_JOB_MARKS; i++)
        assert_int_equal(
            knee_job_mark(&read->record, (struct knee_job_mark){.line = i}, knee_slice_of("x")), i);
    assert_int_equal(
        knee_job_mark(&read->record, (struct knee_job_mark){.line = 1}, knee_slice_of("x")),
        KNEE_JOB_NO_MARK);
    assert_int_equal(read->record.mark_count, KNEE_JOB_MARKS);
    knee_job_record_release(&read->record);
    free(read);
}

/* ---- Causes, as text ---- */

static void expect_text(const char *text, enum knee_hang_class kind, int rank)
{
    OWNED(read) read;
    knee_job_record_init(&read.record, NULL);
    add(&read, "job.log", text, strlen(text));
    judge(&read);
    if (read.answer.kind != kind)
        fail_msg("%s, not %s: %.60s", knee_hang_kind(read.answer.kind)->name,
                 knee_hang_kind(kind)->name, text);
    assert_int_equal(read.answer.named_count, rank >= 0);
    if (rank >= 0)
        assert_int_equal(read.answer.named[0], rank);
}

#define WATCHDOG(rank, number, op, in, out)                                                        \
    "[rank" #rank "]:[E1116 12:00:20.4 ProcessGroupNCCL.cpp:689] [Rank " #rank                     \
    "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" #number ", OpType=" #op     \
    ", NumelIn=" #in ", NumelOut=" #out ", Timeout(ms)=9000) ran for 9003 milliseconds before "    \
    "timing out.\n"
#define STUCK(rank, count)                                                                         \
    "[rank" #rank "]:[E1116 12:00:20.4 ProcessGroupNCCL.cpp:1] [PG ID 0 PG GUID 0(default_pg) "    \
    "Rank " #rank "] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making "        \
    "progress. workMetaList_.size() = " #count "\n"
#define NRANKS(count) "n1:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks " #count " - Init COMPLETE\n"

TEST(test_causes)
{
    static const struct {
        const char *text;
        enum knee_hang_class kind;
        int rank; /* -1: none is named */
    } rows[] = {
        /* launchers, schedulers, RAS */
        {"  host      : node7\n  rank      : 5 (local_rank: 1)\n  exitcode  : -11 (pid: 9)\n"
         "  host      : node6\n  rank      : 2 (local_rank: 2)\n  exitcode  : -6 (pid: 9)\n",
         KNEE_HANG_SIGNAL, 5},
        {"srun: error: n1: tasks 0-2: Aborted (core dumped)\n"
         "srun: error: n2: task 3: Segmentation fault\n",
         KNEE_HANG_SIGNAL, 3},
        {"slurmstepd: error: *** STEP 1.0 ON n7 CANCELLED AT 2026-01-01T00:00:00 DUE TO "
         "TIME LIMIT ***\n",
         KNEE_HANG_TIME_LIMIT, -1},
        {"slurmstepd: error: *** JOB 1 ON n7 CANCELLED AT 2026-01-01T00:00:00 DUE TO NODE "
         "FAILURE ***\n",
         KNEE_HANG_NODE, -1},
        {"RuntimeError: Timed out initializing process group in store based barrier on "
         "rank: 0, for key: store_based_barrier_key:1 (world_size=2, worker_count=1, "
         "timeout=0:30:00)\n",
         KNEE_HANG_NO_START, 1},
        {"2: [rank2]: StopIteration\n3: [rank3]: nothing\n", KNEE_HANG_DATA_END, 2},
        {"[rank1]: n7:1:2 [1] transport/net_ib.cc:99 NCCL WARN NET/IB : Got completion from "
         "peer 10.0.0.1 with error 12\n",
         KNEE_HANG_NETWORK, 1},
        {"[    5.0] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n",
         KNEE_HANG_GPU_ERROR, -1},
        {"something about an Error: that is known to no rule\n", KNEE_HANG_UNKNOWN, -1},
        {"export TORCH_NCCL_ASYNC_ERROR_HANDLING=1\nstep 1 loss 1\n", KNEE_HANG_NOT, -1},
        {"Job summary\n===\nCommunicators... (0.00s)\n"
         "#0-0 (fa93) INCOMPLETE\n  Missing communicator data from 1 rank\n"
         "  Rank 1 -- GPU 0 managed by process 60004 on node 10.4.109.13\n",
         KNEE_HANG_FROZEN, 1},
        {"Job summary\n===\nCommunicators... (0.00s)\n#0-0 (fa93) MISMATCH\n"
         "  Communicator ranks have different AllGather operation counts\n"
         "  7 ranks have launched up to operation 641\n"
         "  1 ranks have launched up to operation 640\n"
         "  Rank 6 -- GPU 4 managed by process 3 on node n1\n",
         KNEE_HANG_BUSY, 6},
        /* the word for a signal in srun's language, exit codes, lists of tasks */
        {"srun: error: n2: task 1: Speicherzugriffsfehler\n", KNEE_HANG_SIGNAL, 1},
        {"srun: error: n2: task 2: Bus error\n", KNEE_HANG_SIGNAL, 2},
        {"srun: error: n1: tasks 0-1,3: Terminated\nsrun: error: n2: task 2: Exited with exit code "
         "1\n",
         KNEE_HANG_EXCEPTION, 2},
        {"srun: error: n1: tasks 0-2: Exited with exit code 0\nsrun: error: n2: task 3: Out Of "
         "Memory\n",
         KNEE_HANG_HOST_OOM, 3},
        {"srun: error: n1: task 0: Exited with exit code 2\n", KNEE_HANG_EXCEPTION, 0},
        {"srun: error: Node failure on n7\n", KNEE_HANG_NODE, -1},
        {"[rank1]: Fatal Python error: Segmentation fault\n", KNEE_HANG_SIGNAL, 1},
        {"[rank1]: Fatal Python error: unknown\n", KNEE_HANG_UNKNOWN, -1},
        {"slurmstepd: error: *** JOB 1 ON n7 CANCELLED AT 2026-01-01T00:00:00 ***\n",
         KNEE_HANG_CANCELLED, -1},
        {"slurmstepd: error: Detected 1 oom_kill event in StepId=1.0\n", KNEE_HANG_HOST_OOM, -1},
        /* a rank's own failure */
        {"[rank2]: RuntimeError: CUDA error: an illegal memory access was encountered\n",
         KNEE_HANG_GPU_FAULT, 2},
        {"[rank0]: RuntimeError: Mismatched NCCL version detected : rank 1\n", KNEE_HANG_VERSION,
         0},
        {"[rank0]: torch.distributed.DistBackendError: ncclInternalError: Internal check failed\n",
         KNEE_HANG_NCCL, 0},
        {"[rank3]: KeyboardInterrupt\n", KNEE_HANG_CANCELLED, -1},
        /* the more telling of two errors; of two like it, the earlier */
        {"[rank0]: ValueError: a\n[rank1]: torch.OutOfMemoryError: CUDA out of memory\n",
         KNEE_HANG_OOM, 1},
        {"2026-11-16 12:00:09 [rank0]: ValueError: a\n2026-11-16 12:05:00 [rank1]: "
         "torch.OutOfMemoryError: CUDA out of memory\n",
         KNEE_HANG_EXCEPTION, 0},
        {"[rank1]: RuntimeError: a\n[rank1]: torch.OutOfMemoryError: CUDA out of memory\n",
         KNEE_HANG_OOM, 1},
        /* TORCH_DISTRIBUTED_DEBUG=DETAIL says who disagrees */
        {"[rank1]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running "
         "collective: CollectiveFingerPrint(SequenceNumber=5, OpType=ALLREDUCE, TensorShape=[10]), "
         "but Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=5, "
         "OpType=BROADCAST, TensorShape=[20])\n",
         KNEE_HANG_OTHER_OP, 0},
        {"[rank1]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running "
         "collective: CollectiveFingerPrint(SequenceNumber=6, OpType=ALLREDUCE, TensorShape=[10]), "
         "but Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=5, "
         "OpType=BROADCAST, TensorShape=[20])\n",
         KNEE_HANG_OTHER_OP, 0},
        /* heartbeats: who holds fewer calls has enqueued fewer */
        {NRANKS(4) STUCK(0, 3) STUCK(1, 3) STUCK(2, 1) STUCK(3, 3), KNEE_HANG_BUSY, 2},
        {NRANKS(4) STUCK(0, 3) STUCK(1, 3) STUCK(2, 3) STUCK(3, 3), KNEE_HANG_UNKNOWN, -1},
        {NRANKS(4) STUCK(0, 3) STUCK(1, 3) STUCK(2, 1) STUCK(3, 1), KNEE_HANG_UNKNOWN, -1},
        /* all-reduce ends for all together: who is in an earlier one has a GPU that is late */
        {NRANKS(4) WATCHDOG(0, 8, ALLREDUCE, 64, 64) WATCHDOG(1, 7, ALLREDUCE, 64, 64)
             WATCHDOG(2, 8, ALLREDUCE, 64, 64) WATCHDOG(3, 8, ALLREDUCE, 64, 64),
         KNEE_HANG_GPU_LATE, 1},
        /* a broadcast's root leaves before the others: no rank is named */
        {NRANKS(4) WATCHDOG(0, 8, BROADCAST, 64, 64) WATCHDOG(1, 7, BROADCAST, 64, 64)
             WATCHDOG(2, 8, BROADCAST, 64, 64) WATCHDOG(3, 8, BROADCAST, 64, 64),
         KNEE_HANG_WIRE, -1},
        /* a barrier of one element that only one rank reached, after the end of training */
        {NRANKS(4) "`Trainer.fit` stopped: `max_steps=10` reached.\n" WATCHDOG(0, 9, ALLREDUCE, 1,
                                                                               1),
         KNEE_HANG_ALONE, 0},
        /* sizes of a gather give the world: rank 3 of four is silent */
        {WATCHDOG(0, 9, _ALLGATHER_BASE, 64, 256) WATCHDOG(1, 9, _ALLGATHER_BASE, 64, 256)
             WATCHDOG(2, 9, _ALLGATHER_BASE, 64, 256),
         KNEE_HANG_FROZEN, 3},
        {WATCHDOG(0, 9, _REDUCE_SCATTER_BASE, 256, 64) WATCHDOG(1, 9, _REDUCE_SCATTER_BASE, 256, 64)
             WATCHDOG(2, 9, _REDUCE_SCATTER_BASE, 256, 64),
         KNEE_HANG_FROZEN, 3},
        /* most of the job is silent: some logs are not here */
        {NRANKS(8) WATCHDOG(0, 9, ALLREDUCE, 64, 64) WATCHDOG(1, 9, ALLREDUCE, 64, 64),
         KNEE_HANG_UNKNOWN, -1},
        /* a time limit that ended a hang is not its cause */
        {NRANKS(3) WATCHDOG(0, 9, ALLREDUCE, 64, 64)
             WATCHDOG(1, 9, ALLREDUCE, 64, 64) "slurmstepd: error: *** STEP 1.0 ON n7 CANCELLED AT "
                                               "2026-01-01T00:00:00 DUE TO TIME "
                                               "LIMIT ***\n",
         KNEE_HANG_FROZEN, 2},
        /* older PyTorch's words for the group; the ranks that desync debug lists */
        {"[E ProcessGroupNCCL.cpp:1] [PG 0 (default_pg) Rank 0] Timeout at NCCL work: 7, last "
         "enqueued NCCL work: 7, last completed NCCL work: 6.\n"
         "[rank1]: [PG 0 (default_pg) Rank 1] last enqueued NCCL work: 6, last completed NCCL "
         "work: 6. ProcessGroup\n"
         "- [0, 2] joined but didn't finish collective #7 (count from 1)\n",
         KNEE_HANG_UNKNOWN, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_text(rows[i].text, rows[i].kind, rows[i].rank);
}

/* The last line of the rank that did not come says what it does instead. */
TEST(test_busy_with)
{
    static const struct {
        const char *line;
        enum knee_hang_class kind;
    } rows[] = {
        {"Running validation on 400 batches\n", KNEE_HANG_EVALUATION},
        {"Evaluating at step 40\n", KNEE_HANG_EVALUATION},
        {"torch.compile: recompiling forward\n", KNEE_HANG_COMPILE},
        {"Tokenizing shard 7\n\n\n", KNEE_HANG_LOADER},
        {"DataLoader restarts\r\n", KNEE_HANG_LOADER},
        {"Writing checkpoint to /shared/run", KNEE_HANG_CHECKPOINT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct job *job = new_job();
        make_behind(job, 4, 40);
        line(job, 4, "%s", rows[i].line);
        expect(job, rows[i].kind, 4);
        free(job);
    }
}

/* Exit statuses alone: 137 may be the launcher's own, where others wait. */
TEST(test_exits)
{
    static const struct {
        const char *others, *one;
        enum knee_hang_class kind;
        int rank;
    } rows[] = {
        {"0", "exit 137\n", KNEE_HANG_KILLED, 3},      {"143", "rc=1", KNEE_HANG_EXCEPTION, 3},
        {"0", "exitcode: -11\n", KNEE_HANG_SIGNAL, 3}, {"143", "143", KNEE_HANG_UNKNOWN, -1},
        {"0", "nothing", KNEE_HANG_NOT, -1},           {"0", "4711", KNEE_HANG_NOT, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct job *job = new_job();
        for (int r = 0; r < WORLD; r++)
            snprintf(job->exits[r], sizeof job->exits[r], "%s",
                     r == 3 ? rows[i].one : rows[i].others);
        expect(job, rows[i].kind, rows[i].rank);
        free(job);
    }
}

/* The logs of one rank from two attempts: their ranks cannot be compared. */
TEST(test_two_attempts)
{
    struct job *job = new_job();
    struct read read;
    make_size(job, 1, 30);
    knee_job_record_init(&read.record, NULL);
    for (int attempt = 0; attempt < 2; attempt++)
        for (int r = 0; r < WORLD; r++) {
            char name[48];
            snprintf(name, sizeof name, "attempt_%d/%d/stderr.log", attempt, r);
            add(&read, name, job->text[r], strlen(job->text[r]));
        }
    judge(&read);
    assert_int_equal(read.answer.kind, KNEE_HANG_UNKNOWN);
    assert_int_equal(read.answer.certainty, KNEE_CANNOT_TELL);
    assert_int_equal(read.answer.named_count, 0);
    read_release(&read);
    free(job);
}

/* ---- Dumps ---- */

/* Calls of ranks, one after the other: "RANK GROUP NUMBER ELEMENTS STATE; ...". Group 7 has all
 * ranks, group 8 ranks 0 and 1; a call is scheduled, started or completed. */
static void expect_dumps(const char *calls, enum knee_hang_class kind, int named)
{
    OWNED(read) read;
    knee_job_record_init(&read.record, NULL);
    for (int rank = 0; rank < 4; rank++) {
        char text[4096], name[16];
        size_t used = (size_t)snprintf(
            text, sizeof text,
            "{\"version\": \"2.9\", \"pg_config\": {\"7\": {\"name\": \"7\", \"desc\": \"dp\", "
            "\"ranks\": \"[0, 1, 2, 3]\"}, \"8\": {\"name\": \"8\", \"desc\": \"tp\", \"ranks\": "
            "\"[0, 1]\"}}, \"entries\": [");
        bool any = false;
        for (const char *c = calls, *next; c; c = next) {
            int of, group, number, elements;
            char state[16];
            next = strchr(c, ';') ? strchr(c, ';') + 1 : NULL;
            assert_int_equal(
                sscanf(c, "%d %d %d %d %15[a-z]", &of, &group, &number, &elements, state), 5);
            if (of != rank)
                continue;
            used += (size_t)snprintf(
                text + used, sizeof text - used,
                "%s{\"process_group\": [\"%d\", \"x\"], \"collective_seq_id\": %d, "
                "\"p2p_seq_id\": 0, \"is_p2p\": false, \"profiling_name\": \"nccl:all_reduce\", "
                "\"input_sizes\": [[%d]], \"input_dtypes\": [\"Float\"], \"output_sizes\": [[%d]], "
                "\"output_dtypes\": [\"Float\"], \"state\": \"%s\", \"time_created_ns\": "
                "1758610505592849034}",
                any ? ", " : "", group, number, elements, elements, state);
            any = true;
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "]}");
        snprintf(name, sizeof name, "fr_%d", rank);
        if (any)
            add(&read, name, text, used);
    }
    judge(&read);
    if (read.answer.kind != kind)
        fail_msg("%s, not %s: %s", knee_hang_kind(read.answer.kind)->name,
                 knee_hang_kind(kind)->name, calls);
    assert_int_equal(read.answer.named_count > 0, named >= 0);
    if (named >= 0)
        assert_int_equal(read.answer.named[0], named);
}

TEST(test_dumps)
{
    static const struct {
        const char *calls;
        enum knee_hang_class kind;
        int named;
    } rows[] = {
        /* three GPUs have reached the call, the fourth has not */
        {"0 7 4 8 started; 1 7 4 8 started; 2 7 4 8 scheduled; 3 7 4 8 started", KNEE_HANG_GPU_LATE,
         2},
        /* the same, and the fourth rank's dump is missing: what is there counts more */
        {"0 7 4 8 started; 1 7 4 8 started; 2 7 4 8 scheduled", KNEE_HANG_GPU_LATE, 2},
        /* its GPU is in a call of another group */
        {"0 7 4 8 scheduled; 0 8 2 8 started; 1 7 4 8 started; 2 7 4 8 started; 3 7 4 8 started",
         KNEE_HANG_WIRE, -1},
        /* ranks 0 and 1 have begun two groups in opposite order */
        {"0 7 4 8 started; 0 8 2 8 scheduled; 1 8 2 8 started; 1 7 4 8 scheduled; 2 7 4 8 started; "
         "3 7 4 8 started",
         KNEE_HANG_CROSSED, 0},
        /* another size under one number */
        {"0 7 4 8 started; 1 7 4 9 started; 2 7 4 8 started; 3 7 4 8 started", KNEE_HANG_OTHER_SIZE,
         1},
        /* two against two: all are named, and the first of them is rank 0 */
        {"0 7 4 8 started; 1 7 4 9 started; 2 7 4 8 started; 3 7 4 9 started", KNEE_HANG_OTHER_SIZE,
         0},
        /* the calls of a step have sizes 1, 2, 3: rank 2 is in the third where the second is due */
        {"0 7 1 1 completed; 0 7 2 2 completed; 0 7 3 3 completed; 0 7 4 1 completed; "
         "0 7 5 2 started; 1 7 5 2 started; 3 7 5 2 started; 2 7 4 1 completed; 2 7 5 3 started",
         KNEE_HANG_LEFT_OUT, 2},
        /* all GPUs are in it: the wire */
        {"0 7 4 8 started; 1 7 4 8 started; 2 7 4 8 started; 3 7 4 8 started", KNEE_HANG_WIRE, -1},
        /* rank 3 gave no dump */
        {"0 7 4 8 started; 1 7 4 8 started; 2 7 4 8 started", KNEE_HANG_FROZEN, 3},
        /* rank 1 has finished all it entered, and did not enter the fourth */
        {"0 7 4 8 started; 1 7 3 8 completed; 2 7 4 8 started; 3 7 4 8 started", KNEE_HANG_LOADER,
         1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_dumps(rows[i].calls, rows[i].kind, rows[i].named);
}

/* A dump that cannot be read is counted; the rest of the files is judged. */
/* Files of some ranks only. What the others show is used; a rank that has no file is not named. */
TEST(test_missing_files)
{
    static const struct {
        void (*make)(struct job *, int rank, int number);
        enum knee_hang_class kind;
    } rows[] = {{make_behind, KNEE_HANG_UNKNOWN},
                {make_frozen, KNEE_HANG_UNKNOWN},
                {make_size, KNEE_HANG_OTHER_SIZE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct job *job = new_job();
        struct read read;
        rows[i].make(job, 1, 30);
        knee_job_record_init(&read.record, NULL);
        add(&read, "launch.log", "world_size=4\n", 13);
        for (int r = 0; r < WORLD; r++) {
            char name[32];
            snprintf(name, sizeof name, "rank%d.err", r);
            /* of two sizes one rank each is here: the others would decide */
            if (rows[i].kind == KNEE_HANG_OTHER_SIZE ? r < 2 : r != 1)
                add(&read, name, job->text[r], strlen(job->text[r]));
        }
        judge(&read);
        assert_int_equal(read.answer.kind, rows[i].kind);
        assert_int_equal(read.answer.certainty, KNEE_CANNOT_TELL);
        assert_int_equal(read.answer.named_count, 0);
        read_release(&read);
        free(job);
    }
}

TEST(test_damaged_dump)
{
    struct job *job = new_job();
    struct read read;
    make_size(job, 1, 30);
    knee_job_record_init(&read.record, NULL);
    add(&read, "fr_0", "\x80\x02}q\x01(X\x07", 9);
    for (int r = 0; r < WORLD; r++) {
        char name[32];
        snprintf(name, sizeof name, "rank%d.err", r);
        add(&read, name, job->text[r], strlen(job->text[r]));
    }
    add(&read, "core",
        "\x7f"
        "ELF\0\0\0\0",
        8);
    judge(&read);
    assert_int_equal(read.record.refused_files, 1);
    assert_int_equal(read.record.unknown_files, 1);
    assert_int_equal(read.answer.kind, KNEE_HANG_OTHER_SIZE);
    assert_int_equal(read.answer.named[0], 1);
    read_release(&read);
    free(job);
}

/* The finder of lines and a plain search agree. */
TEST(test_finder)
{
    static const char *const words[] = {"Error", "Traceback", "nranks ", "ERROR"};
    struct knee_line_finder *finder = knee_line_finder_new(words, 4, NULL);
    assert_non_null(finder);
    for (unsigned seed = 1; seed < 400; seed++) {
        char text[200];
        size_t best = sizeof text - 1;
        unsigned x = seed * 2654435761u;
        for (size_t i = 0; i + 1 < sizeof text; i++, x = x * 1664525u + 1013904223u)
            text[i] = "Eroackbn TtRsO"[(x >> 24) % 14];
        text[sizeof text - 1] = '\0';
        if (seed % 2)
            memcpy(text + seed % 150, words[seed % 4], strlen(words[seed % 4]));
        for (size_t w = 0; w < 4; w++) {
            const char *at = strstr(text, words[w]);
            if (at && (size_t)(at - text) < best)
                best = (size_t)(at - text);
        }
        assert_int_equal(knee_line_find(finder, (struct knee_slice){text, sizeof text - 1}, 0),
                         best);
    }
    knee_resize(NULL, finder, 0);
}

/* Law: whatever happened to however many ranks, the headline is one plain line of 80 characters. */
TEST(test_every_headline_fits_a_line)
{
    enum { RANKS = 40 };
    int32_t named[RANKS];
    struct knee_hang_rank ranks[RANKS] = {{0}};
    struct knee_job_record record = {0};
    struct knee_comm_group group = {.name = "0"};
    struct knee_hang_call call = {
        .waits = 12345678, .op = KNEE_OP_REDUCE_SCATTER, .elements = 1, .frame = ""};
    record.roll.groups = &group;
    ranks[0].host = "";
    for (int i = 0; i < RANKS; i++)
        named[i] = i < 1 ? 0 : 131000 + i; /* the first row of `ranks` is looked at */
    for (int kind = 0; kind < KNEE_HANG_CLASSES; kind++)
        for (int variant = 0; variant < 24; variant++) {
            static const size_t counts[] = {0, 1, 5, RANKS};
            struct knee_hang_answer a = {.kind = (enum knee_hang_class)kind,
                                         .certainty = (enum knee_certainty)(variant / 4 % 3),
                                         .named = named,
                                         .named_count = counts[variant % 4],
                                         .waits = variant < 12 ? &call : NULL,
                                         .ranks = ranks,
                                         .rank_count = 131072,
                                         .tie = variant == 7};
            struct knee_hang_report report = {&record, &a};
            OWNED(knee_said) said = {0};
            knee_hang_answer_type.say(&report, &said);
            const char *line = said.headline.data;
            if (!line || strlen(line) > 80 || strpbrk(line, "()[]{}\n") || strstr(line, "--"))
                fail_msg("%s: %s", knee_hang_kind(a.kind)->name, line ? line : "nothing");
        }
}
