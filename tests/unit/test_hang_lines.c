/* SPDX-License-Identifier: MIT */
/* What launchers, schedulers and libraries write when a job ends, one cause per row; and one job
 * stored in the ways in which terminals, containers and loggers keep text. */
#include "hang_job.h"

enum { RANKS = 4, ROOM = 1 << 15 };

static void expect(const char *text, enum knee_hang_class kind, const char *ranks)
{
    OWNED(read) read;
    char named[64] = "";
    knee_job_record_init(&read.record, NULL);
    add(&read, "job.log", text, strlen(text));
    judge(&read);
    for (size_t i = 0; i < read.answer.named_count; i++)
        snprintf(named + strlen(named), sizeof named - strlen(named), "%s%d", i ? " " : "",
                 read.answer.named[i]);
    if (read.answer.kind != kind)
        fail_msg("%s, not %s: %.90s", knee_hang_kind(read.answer.kind)->name,
                 knee_hang_kind(kind)->name, text);
    assert_string_equal(named, ranks);
}

struct row {
    const char *text;
    enum knee_hang_class kind;
    const char *ranks;
};

#define BLOCK(time, rank, code)                                                                    \
    "  time      : 2026-01-02_03:04:" time "\n  host      : n1\n  rank      : " rank               \
    " (local_rank: 0)\n  exitcode  : " code " (pid: 9)\n"
#define ROOT "Root Cause (first observed failure):\n[0]:\n"

/* Who ended how. What a launcher does to the other ranks is no cause. */
TEST(test_launchers)
{
    static const struct row rows[] = {
        {ROOT BLOCK("05", "5", "-9"), KNEE_HANG_KILLED, "5"},
        {BLOCK("06", "0", "-15") BLOCK("06", "1", "-9") ROOT BLOCK("05", "2", "-9"),
         KNEE_HANG_KILLED, "2"},
        {BLOCK("05", "0", "-6") BLOCK("05", "1", "-6") ROOT BLOCK("05", "2", "-6"),
         KNEE_HANG_UNKNOWN, ""},
        {ROOT BLOCK("05", "2", "-6"), KNEE_HANG_SIGNAL, "2"},
        {BLOCK("09", "0", "1") ROOT BLOCK("05", "3", "1"), KNEE_HANG_EXCEPTION, "3"},
        {BLOCK("05", "0", "1") ROOT BLOCK("05", "3", "1"), KNEE_HANG_EXCEPTION, "0 3"},
        {"ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 3 "
         "(pid: 7) of binary: python\n",
         KNEE_HANG_KILLED, ""},
        {"[launch.py:3:sigkill_handler] ['python', '--local_rank=1'] exits with return code = -11",
         KNEE_HANG_SIGNAL, ""},
        {"[launch.py:3:sigkill_handler] ['python', '--local_rank=1'] exits with return code = 1",
         KNEE_HANG_EXCEPTION, ""},
        {"mpirun noticed that process rank 2 with PID 0 on node n7 exited on signal 9 (Killed).\n",
         KNEE_HANG_KILLED, "2"},
        {"MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\n", KNEE_HANG_EXCEPTION,
         "3"},
        {"  Process name: [[29973,1],6]\n  Exit code:    1\n", KNEE_HANG_EXCEPTION, "6"},
        {"=   RANK 1 PID 7 RUNNING AT n7\n=   KILLED BY SIGNAL: 11 (Segmentation fault)\n",
         KNEE_HANG_SIGNAL, "1"},
        {"srun: error: n1: tasks 1-2: Out Of Memory\n", KNEE_HANG_HOST_OOM, "1 2"},
        {"srun: error: Unable to create step for job 7: Invalid partition\n", KNEE_HANG_UNKNOWN,
         ""},
        {"step 3\nKilled\n", KNEE_HANG_KILLED, ""},
        {"job.sh: line 8:  81 Killed    python train.py\n", KNEE_HANG_KILLED, ""},
        {"Segmentation fault (core dumped)\n", KNEE_HANG_SIGNAL, ""},
        {"ProcessExitedException: process 0 terminated with signal SIGKILL\n", KNEE_HANG_KILLED,
         ""},
        {"CalledProcessError: Command '[]' died with <Signals.SIGSEGV: 11>.\n", KNEE_HANG_SIGNAL,
         ""},
        {"  Reason:       OOMKilled\n", KNEE_HANG_HOST_OOM, ""},
        {"(raylet) A worker died or was killed while executing a task by an unexpected system "
         "error\n",
         KNEE_HANG_SIGNAL, ""},
        {"ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.\n"
         "The actor is dead because its node has died. Node Id: 677d\n",
         KNEE_HANG_NODE, ""},
        {"n1:7:8 [5] ibvwrap.c:262 NCCL WARN Call to ibv_modify_qp failed with 110 Connection "
         "timed "
         "out\n",
         KNEE_HANG_NETWORK, ""},
        {"agent/server/api.py:7] Received 15 death signal, shutting down workers\n",
         KNEE_HANG_CANCELLED, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect(rows[i].text, rows[i].kind, rows[i].ranks);
}

/* Ranks that never joined, or that others wait for. */
TEST(test_absent)
{
    static const struct row rows[] = {
        {"RuntimeError: [Rank 0]: Ranks 4, 5, 7 failed to pass monitoredBarrier in 2000 ms\n",
         KNEE_HANG_BUSY, "4 5 7"},
        {"[1,0]<stderr>:Stalled ops:b [missing ranks: 1, 2]\n", KNEE_HANG_BUSY, "1 2"},
        {"[1,0]<stderr>:a [missing ranks: 1]\n[1,1]<stderr>:torch.OutOfMemoryError: CUDA out of "
         "memory\n",
         KNEE_HANG_OOM, "1"},
        {"XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect. "
         "Timed out task names:\n/job:w/replica:0/task:3\n/job:w/replica:0/task:1\n",
         KNEE_HANG_NO_START, "1 3"},
        {"Task /job:w/replica:0/task:5 heartbeat timeout. This indicates a failure\n",
         KNEE_HANG_FROZEN, "5"},
        {"[E socket.cpp:8] [c10d] The client socket has timed out after 60s\n", KNEE_HANG_NO_START,
         ""},
        {"DistStoreError: Timed out after 601 seconds waiting for clients. 1/8 clients joined.\n",
         KNEE_HANG_NO_START, ""},
        {"RendezvousConnectionError: The connection to the C10d store has failed.\n",
         KNEE_HANG_NO_START, ""},
        /* the agent asks for new nodes while the job runs: its store had ended before */
        {"    num_nodes_waiting = rdzv_handler.num_nodes_waiting()\nRendezvousConnectionError: The "
         "connection to the C10d store has failed.\n",
         KNEE_HANG_UNKNOWN, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect(rows[i].text, rows[i].kind, rows[i].ranks);
}

/* The cause, what only follows from one, and what is no error. */
TEST(test_errors)
{
    static const struct row rows[] = {
        {"[rank2]: RuntimeError: CUDA error: device-side assert triggered\n", KNEE_HANG_GPU_FAULT,
         "2"},
        {"[rank2]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n",
         KNEE_HANG_GPU_ERROR, "2"},
        {"[rank1]: RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.\n",
         KNEE_HANG_HOST_OOM, "1"},
        {"h:1:2 [0] NCCL WARN Call to open failed\nh:1:2 [0] NCCL INFO init.cc:13 -> 2\n",
         KNEE_HANG_NCCL, ""},
        {"h:1:2 [0] NCCL WARN Call to open failed\nh:1:2 [0] NCCL INFO init.cc:13 -> 2\n"
         "h:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2 - Init COMPLETE\n",
         KNEE_HANG_NOT, ""},
        /* a logger's prefix before the exception, only behind a traceback */
        {"2026-01-02 03:04:05 [7/train] Traceback (most recent call last):\n"
         "2026-01-02 03:04:05 [7/train] OSError: [Errno 28] No space left on device\n",
         KNEE_HANG_EXCEPTION, ""},
        /* an error after a timeout of which no call is known */
        {"  what():  [Rank 0] Watchdog caught collective operation timeout: "
         "WorkNCCL(OpType=ALLREDUCE, "
         "Timeout(ms)=1800000) ran for 1804582 milliseconds before timing out.\n"
         "RuntimeError: NCCL error in: a.cpp:38, unhandled cuda error, NCCL version 2.7.8\n",
         KNEE_HANG_UNKNOWN, ""},
        {"2026-01-02 03:04:05 [rank=3] RuntimeError: CUDA error: uncorrectable ECC error\n",
         KNEE_HANG_GPU_ERROR, "3"},
        {"RuntimeError: Socket Timeout\n", KNEE_HANG_UNKNOWN, ""},
        /* only consequences: never "not hung" */
        {"RuntimeError: [gloo/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv\n",
         KNEE_HANG_UNKNOWN, ""},
        {"[rank3]: RuntimeError: [pair.cc:5] Connection closed by peer [10.0.0.4]:4312\n",
         KNEE_HANG_UNKNOWN, ""},
        {"Terminating process because the JAX distributed service detected fatal errors.\n",
         KNEE_HANG_UNKNOWN, ""},
        /* a warning that PyTorch logs, with the exception that it caught */
        {"[rank3]:W0619 13:43:42.034000 23 torch/_inductor/codecache.py:1045] [1/2] Traceback "
         "(most "
         "recent call last):\n[rank3]:W0619 13:43:42.034000 23 torch/_inductor/codecache.py:1045] "
         "[1/2] FileNotFoundError: [Errno 2]\n",
         KNEE_HANG_NOT, ""},
        {"a/logging.py:115: UserWarning: Failed to import x due to: RuntimeError('no Error')\n",
         KNEE_HANG_NOT, ""},
        {"RuntimeError: DataLoader worker (pid 7) is killed by signal: Terminated.\n",
         KNEE_HANG_CANCELLED, ""},
        /* no errors */
        {"Exception ignored in: <function A.__del__>\nTraceback (most recent call last):\n"
         "AssertionError: can only test a child process\n",
         KNEE_HANG_NOT, ""},
        {"epoch 3 train Error: 0.31\n", KNEE_HANG_NOT, ""},
        {"caught StopIteration, restarting the iterator\n", KNEE_HANG_NOT, ""},
        {"  File \"a.py\", line 3\n    raise OutOfMemoryError()\nstep 1\n", KNEE_HANG_NOT, ""},
        {"CUDA out of memory at batch 64, trying 32\nstep 1\nstep 2\nstep 3\n", KNEE_HANG_NOT, ""},
        {"ValueError: first attempt\nstep 1\nstep 2\nstep 3\nCUDA out of memory\n", KNEE_HANG_OOM,
         ""},
        {"[rank1]: ValueError: a\nstep 1\nstep 2\nstep 3\n[rank1]: KeyError: b\n",
         KNEE_HANG_EXCEPTION, "1"},
        {"step 1\nstep 2\nstep 3\nRuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n",
         KNEE_HANG_OOM, ""},
        /* a module with a digit in its name is not a host */
        {"Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\n"
         "sqlite3.OperationalError: no such table: runs\n",
         KNEE_HANG_EXCEPTION, ""},
        /* exceptions by what stands at the end of a traceback */
        {"Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\n"
         "socket.gaierror: [Errno -2] Name or service not known\n",
         KNEE_HANG_EXCEPTION, ""},
        {"[rank1]: Traceback (most recent call last):\n[rank0]: step 3\n"
         "[rank1]:   File \"a.py\", line 3, in f\n[rank1]:     g()\n[rank1]: queue.Empty\n",
         KNEE_HANG_EXCEPTION, "1"},
        {"Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\n"
         "ray.exceptions.RayTaskError(OSError): [36mray::f()\n",
         KNEE_HANG_EXCEPTION, ""},
        {"usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --fp16\n",
         KNEE_HANG_EXCEPTION, ""},
        {"[launch.py:3:sigkill_handler] Main process received SIGINT, exiting\n",
         KNEE_HANG_CANCELLED, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect(rows[i].text, rows[i].kind, rows[i].ranks);
}

/* A thread's error explains less than the process's own, whichever comes first. */
TEST(test_threads)
{
    static const char thread[] =
        "Exception in thread Thread-3:\nTraceback (most recent call last):\n"
        "OSError: handle is closed\n",
                      own[] = "Traceback (most recent call last):\nValueError: wrong shape\n";
    char both[400];
    struct read read;
    expect(thread, KNEE_HANG_EXCEPTION, "");
    for (int own_first = 0; own_first < 2; own_first++)
        for (int named = 0; named < 2; named++) {
            snprintf(both, sizeof both, "%s%s", own_first ? own : thread, own_first ? thread : own);
            knee_job_record_init(&read.record, NULL);
            add(&read, named ? "rank1.err" : "job.log", both, strlen(both));
            judge(&read);
            uint32_t mark = named ? read.record.ranks[1].failure_mark : read.record.failed_mark;
            assert_string_equal(read.record.marks[mark].text, "ValueError: wrong shape");
            read_release(&read);
        }
}

/* Progress in the forms of many programs. An error before it was survived. */
TEST(test_progress)
{
    static const char *const forms[] = {
        "[Step %d/100] Loss: 5.1\n",
        "Epoch[2] Batch [%d]\tSpeed: 25.0 samples/sec\n",
        "[epoch: 4/200, iter: %d/489] total: 1.5\n",
        "2026-01-02 03:04:05,678 - INFO - Iters: %d/20000 || Lr: 0.01\n",
        "Epoch 3: 41%%|###  | %d/41 [05:56<03:01, 12.96s/batch]\n",
        "[INFO] [logging.py:107:log_dist] [Rank 0] step=%d, skipped=0\n",
        "[12/25 15:48:20] epoch:[ 25/25 ] train step:%d loss: 2.6\n",
        "{'loss': 0.%d, 'epoch': 0.1}\n",
    };
    char text[1000];
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        for (int same = 0; same < 2; same++) {
            snprintf(text, sizeof text, "CondaError: Run 'conda init' before 'conda deactivate'\n");
            for (int i = 0; i < 4; i++)
                snprintf(text + strlen(text), sizeof text - strlen(text), forms[f],
                         same ? 10 : 10 + i);
            /* one step that four ranks print is not progress; losses have no number */
            bool goes_on = !same || strncmp(forms[f], "{'loss'", 7) == 0;
            expect(text, goes_on ? KNEE_HANG_NOT : KNEE_HANG_EXCEPTION, "");
        }
    expect("ValueError: bad\nwandb: step 1\nwandb: step 2\nwandb: epoch 3\n", KNEE_HANG_EXCEPTION,
           "");
}

/* Runs that were appended to one file: the last one counts. */
TEST(test_appended)
{
    static const char first[] = BLOCK("05", "1", "1") ROOT BLOCK("04", "0", "1"),
                      second[] = ROOT BLOCK("50", "0", "-9");
    char text[2000];
    snprintf(text, sizeof text, "%s%s", first, second);
    expect(text, KNEE_HANG_KILLED, "0");
    snprintf(text, sizeof text,
             "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***\n%s"
             "slurmstepd: error: *** JOB 8 ON n1 CANCELLED AT 2026-01-02T00:00:00 ***\n",
             first);
    expect(text, KNEE_HANG_EXCEPTION, "0");
    snprintf(text, sizeof text,
             "%sslurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***\n"
             "slurmstepd: error: *** JOB 8 ON n1 CANCELLED AT 2026-01-02T00:00:00 ***\n",
             first);
    expect(text, KNEE_HANG_CANCELLED, "");
}

/* One line about several ranks is shown once; an exception of the job comes before it. */
TEST(test_one_line_of_many)
{
    static const char text[] = "ValueError: bad argument\n"
                               "srun: error: n1: tasks 2-7: Exited with exit code 1\n"
                               "slurmstepd: error: *** JOB 8 ON n1 CANCELLED AT 2026-01-02 ***\n";
    OWNED(read) read;
    knee_job_record_init(&read.record, NULL);
    add(&read, "job.log", text, strlen(text) - 64);
    judge(&read);
    assert_int_equal(read.answer.named_count, 6);
    assert_int_equal(read.answer.evidence_count, 2);
    assert_int_equal(read.record.marks[read.answer.evidence[0]].line, 1);
    read_release(&read);
    knee_job_record_init(&read.record, NULL);
    add(&read, "job.log", text, strlen(text));
    assert_int_equal(read.record.slurm_job, 8);
    judge(&read);
}

/* ---- One job, kept in many ways ---- */

/* Rank 2 is behind and alive, the others wait. */
static void write_rank(int rank, char *out, size_t size)
{
    int used = snprintf(out, size,
                        "[rank%d]:[W1116 12:00:01.1 Utils.hpp:137] Warning: Environment variable "
                        "TORCH_NCCL_TRACE_BUFFER_SIZE is deprecated; use TORCH_FR_BUFFER_SIZE\n",
                        rank);
    if (rank == 2)
        snprintf(out + used, size - (size_t)used,
                 "[rank2]:[E1116 12:00:20.6 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID "
                 "0(default_pg) Rank 2] Received a dump signal due to a collective timeout from  "
                 "rank 3 and we will try our best to dump the debug info. Last enqueued NCCL work: "
                 "39, last completed NCCL work: 39.This is most likely caused by wrong usages\n"
                 "a.py:83: UserWarning: barrier(): using the device under current context.\n");
    else
        snprintf(out + used, size - (size_t)used,
                 "[rank%d]:[E1116 12:00:20.4 ProcessGroupNCCL.cpp:689] [Rank %d] Watchdog caught "
                 "collective operation timeout: WorkNCCL(SeqNum=40, OpType=ALLREDUCE, NumelIn=64, "
                 "NumelOut=64, Timeout(ms)=9000) ran for 9003 milliseconds before timing out.\n"
                 "[rank%d]:[E1116 12:00:20.5 ProcessGroupNCCL.cpp:2303] [PG ID 0 PG GUID "
                 "0(default_pg) Rank %d]  failure detected by watchdog at work sequence id: 40 PG "
                 "status: last enqueued work: 42, last completed work: 39\n",
                 rank, rank, rank, rank);
}

/* Breaks lines after `width` columns; `words`: at the last space before. */
static void wrap(char *text, size_t width, bool words)
{
    static char out[ROOM];
    size_t used = 0;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, "\n"), take = length;
        if (length > width)
            for (take = width; words && take > 0 && at[take] != ' ';)
                take--;
        take = take ? take : width;
        memcpy(out + used, at, take);
        used += take;
        out[used++] = '\n';
        at += take;
        at += *at == '\n' || (words && *at == ' ');
    }
    out[used] = '\0';
    memcpy(text, out, used + 1);
}

/* Puts a prefix before each line; %d: the rank. `json`: as a string of Docker's. */
static void prefix(char *text, const char *format, int rank, bool json)
{
    static char out[ROOM];
    size_t used = 0;
    for (const char *at = text; *at; at += strcspn(at, "\n") + 1) {
        used += (size_t)snprintf(out + used, ROOM - used, format, rank);
        used += (size_t)snprintf(out + used, ROOM - used, "%.*s%s\n", (int)strcspn(at, "\n"), at,
                                 json ? "\\n\",\"stream\":\"stderr\"}" : "");
    }
    memcpy(text, out, used + 1);
}

struct layout {
    const char *prefix;
    size_t width;
    bool words, json;
};

static const struct layout layouts[] = {
    {"", 80, false, false},
    {"", 120, false, false},
    {"", 132, false, false},
    {"", 80, true, false},
    {"", 120, true, false},
    {"%d: ", 120, false, false},
    {"[pod/train-%d/main] ", 0, false, false},
    {"2026-11-16T12:30:00.123456789Z stderr F ", 0, false, false},
    {"train-%d  | ", 0, false, false},
    {"Nov 16 12:30:00 node%d python[12]: ", 0, false, false},
    {"10.0.0.%d: ", 0, false, false},
    {"\x1b[36m(Worker pid=%d, ip=10.0.0.1)\x1b[0m ", 0, false, false},
    {"[trainer%d]:", 0, false, false},
    {"{\"log\":\"", 0, false, true},
};

/* Docker writes characters beyond ASCII, and some within it, as \\u and four digits; a line that
 * is no JSON stays. */
TEST(test_escapes)
{
    char text[] =
        "{\"log\":\"[rank1]: a\\u003cb\\u00e9\\u20AC\\tc\\\"\\r\\n\",\"stream\":\"stderr\"}\n"
        "plain\n{\"log\":\"cut\\";
    size_t length = knee_job_layout(text, sizeof text - 1);
    static const char wanted[] = "[rank1]: a<b\xc3\xa9\xe2\x82\xac\tc\"\nplain\ncut";
    assert_true(length >= sizeof wanted - 1);
    assert_memory_equal(text, wanted, sizeof wanted - 1);
}

/* In a file per rank, and in one file. */
TEST(test_layouts)
{
    static char text[RANKS][ROOM], all[RANKS * ROOM];
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        for (int files = 0; files < 2; files++) {
            OWNED(read) read;
            all[0] = '\0';
            knee_job_record_init(&read.record, NULL);
            for (int r = 0; r < RANKS; r++) {
                char name[16];
                write_rank(r, text[r], ROOM);
                prefix(text[r], layouts[i].prefix, r, layouts[i].json);
                if (layouts[i].width)
                    wrap(text[r], layouts[i].width, layouts[i].words);
                snprintf(name, sizeof name, "rank%d.err", r);
                if (files)
                    add(&read, name, text[r], strlen(text[r]));
                strcat(all, text[r]);
            }
            if (!files)
                add(&read, "job.log", all, strlen(all));
            judge(&read);
            if (read.answer.kind != KNEE_HANG_DATA_END)
                fail_msg("layout %zu: %s", i, knee_hang_kind(read.answer.kind)->name);
            assert_int_equal(read.answer.named_count, 1);
            assert_int_equal(read.answer.named[0], 2);
        }
}

/* The evidence has the line of the file, also where lines were broken inside words. */
TEST(test_line_numbers)
{
    static char text[ROOM];
    OWNED(read) read;
    knee_job_record_init(&read.record, NULL);
    write_rank(1, text, ROOM);
    wrap(text, 80, false);
    add(&read, "rank1.err", text, strlen(text));
    judge(&read);
    assert_true(read.answer.evidence_count > 0);
    assert_int_equal(read.record.marks[read.answer.evidence[0]].line, 3);
}

/* Two ranks wrote into one line; a bar stands before an error. */
TEST(test_run_together)
{
    expect(" 0%|    | 0/247 [00:00<?, ?it/s][rank2]: Traceback (most recent call last):\n"
           "[rank2]: torch.OutOfMemoryError: CUDA out of memory\n",
           KNEE_HANG_OOM, "2");
    expect("[rank0]:[W1116 12:00:01.1 a.cpp:1] x[rank3]:[E1116 12:00:02.1 a.cpp:1] CUDA error: "
           "uncorrectable ECC error\n",
           KNEE_HANG_GPU_ERROR, "3");
}

/* Ranks one after the other in one file: an error without a stamp is as old as its own rank's. */
TEST(test_times)
{
    expect("[rank1]:[E1116 12:10:00.0 ProcessGroupNCCL.cpp:6] [Rank 1] Watchdog caught collective "
           "operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, NumelIn=6, NumelOut=6, "
           "Timeout(ms)=600000) ran for 600003 milliseconds before timing out.\n"
           "[rank2]:[W1116 12:00:00.0 Utils.hpp:137] Warning: is deprecated; use TORCH_X\n"
           "[rank2]: ValueError: bad shard\n",
           KNEE_HANG_EXCEPTION, "2");
}
