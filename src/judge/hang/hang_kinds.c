/* SPDX-License-Identifier: MIT */
/* The table of classes. */
#include "judge/hang/hang.h"

static const struct knee_hang_kind kinds[KNEE_HANG_CLASSES] = {
    [KNEE_HANG_NOT] = {"not hung", "no timeout, no error of a rank, no bad exit status",
                       "did not hang", "nothing to do"},
    [KNEE_HANG_OOM] = {"crashed: out of memory",
                       "OutOfMemoryError of this rank before any timeout, or the kernel's oom-kill",
                       "ran out of memory",
                       "lower the batch or sequence length of that rank, or shard more; compare "
                       "its input with the other ranks'"},
    [KNEE_HANG_HOST_OOM] = {"crashed: out of memory",
                            "the kernel or the scheduler killed a process for its memory",
                            "ran out of host memory",
                            "ask for more memory per node, or start fewer data loader workers; "
                            "dmesg of its node names the process"},
    [KNEE_HANG_EXCEPTION] = {"crashed: exception",
                             "an exception of this rank that no other rank's failure explains",
                             "raised an exception", "correct that error"},
    [KNEE_HANG_SIGNAL] = {"crashed: signal", "exit status 128 + signal, or a signal's name",
                          "died from a signal",
                          "look for a core file and the last native library call of that rank "
                          "(PYTHONFAULTHANDLER=1 prints its stack)"},
    [KNEE_HANG_KILLED] = {"crashed: signal", "SIGKILL, and the launcher saw it end first",
                          "was killed by SIGKILL",
                          "look for oom-kill in dmesg of its node: the kernel kills the process "
                          "that needs most host memory"},
    [KNEE_HANG_NCCL] = {"crashed: NCCL error", "an NCCL error that is not about a peer",
                        "got an NCCL error",
                        "give the log to knee doctor, with NCCL_DEBUG=WARN set"},
    [KNEE_HANG_GPU_ERROR] = {"crashed: GPU error", "ECC, Xid or a lost GPU before any timeout",
                             "had a GPU error",
                             "look up the Xid in dmesg of its node; drain the node if it is ECC or "
                             "a lost GPU"},
    [KNEE_HANG_GPU_FAULT] = {"crashed: GPU error",
                             "illegal address or failed assertion in a kernel before any timeout",
                             "failed inside a GPU kernel",
                             "run it with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer; an index or "
                             "label out of range is the usual cause"},
    [KNEE_HANG_NODE] = {"crashed: lost node", "the scheduler reports the node as failed",
                        "lost the node", "drain that node and restart from the last checkpoint"},
    [KNEE_HANG_FROZEN] = {"frozen", "no line and no dump, while others of its group wait",
                          "gave no sign of life",
                          "check its node with ps, dmesg and py-spy dump --pid PID: the process is "
                          "stopped, the node is down or the kernel hangs"},
    [KNEE_HANG_LEFT_OUT] = {"left one out",
                            "its call under that number is the others' next one, or it is ahead",
                            "skipped a collective",
                            "look for a branch or early return that depends on the rank before "
                            "that call"},
    [KNEE_HANG_OTHER_OP] = {"other collective", "another operation under the same number",
                            "called a different collective",
                            "look for a branch that depends on the rank (evaluation, logging, end "
                            "of epoch)"},
    [KNEE_HANG_OTHER_SIZE] = {"other size", "the same operation with another size",
                              "used a different size",
                              "make the shapes equal: last batch (drop_last), unused parameters, "
                              "a metric of local length"},
    [KNEE_HANG_DATA_END] = {"ran out of data",
                            "StopIteration, or it went on to the barrier behind the loop",
                            "ended the loop early",
                            "give every rank the same number of batches: drop_last, a padded "
                            "sampler, or Join()"},
    [KNEE_HANG_LOADER] = {"in its data loader",
                          "did not enter the first call of a step; or its last line says so",
                          "stayed in the data loader",
                          "check storage and data loader on its node: py-spy dump --pid PID"},
    [KNEE_HANG_CHECKPOINT] = {"in its checkpoint",
                              "rank 0 alone did not enter the next step, or its last line says so",
                              "stayed in the checkpoint",
                              "save asynchronously, or raise the timeout above the time a save "
                              "takes"},
    [KNEE_HANG_EVALUATION] = {"in its evaluation", "its last line says so", "stayed in evaluation",
                              "evaluate on all ranks, or put a longer timeout around it"},
    [KNEE_HANG_COMPILE] = {"compiling", "its last line says so", "kept compiling",
                           "raise the timeout of the first steps, or share the compile cache"},
    [KNEE_HANG_BUSY] = {"busy elsewhere", "alive, and did not enter what the others wait in",
                        "did not enter the call",
                        "py-spy dump --pid PID on that rank shows where it is"},
    [KNEE_HANG_CROSSED] = {"two groups in opposite order",
                           "two groups share ranks, all have entered both, in another order",
                           "used two groups in opposite order",
                           "call collectives of several groups in the same order on every rank"},
    [KNEE_HANG_RECEIVES] = {"receives what nobody sends", /* words: ok, a value of JSON */
                            "a send or receive is the last thing it did",
                            "waited in a send or receive without a partner",
                            "match every recv with a send of the peer (batch_isend_irecv)"},
    [KNEE_HANG_GPU_LATE] = {"GPU does not get there",
                            "enqueued like on the others, and not started or not finished",
                            "never started the call on its GPU",
                            "find what blocks that GPU: nvidia-smi, Xid in dmesg, a kernel that "
                            "does not end"},
    [KNEE_HANG_ALONE] = {"only one rank called it", "one rank waits after the training ended",
                         "called a collective that the others did not",
                         "move the collective out of 'if rank == 0'"},
    [KNEE_HANG_NETWORK] = {"network", "a completion error or a link that went down",
                           "lost the network",
                           "run knee doctor on that node; check its port counters and cables"},
    [KNEE_HANG_VERSION] = {"version mismatch", "versions or environments that differ",
                           "had a different version",
                           "install the same NCCL, PyTorch and environment on all nodes"},
    [KNEE_HANG_NO_START] = {"never started", "fewer ranks joined than the job has",
                            "never joined the job",
                            "check the launcher's output, MASTER_ADDR, port and firewall of the "
                            "missing node"},
    [KNEE_HANG_SHORT_LIMIT] = {"timeout too short", "it went on after the timeout",
                               "still made progress", "raise the timeout"},
    [KNEE_HANG_TIME_LIMIT] = {"time limit", "the scheduler ended the job at its time limit",
                              "was ended by its time limit",
                              "ask for more time, or save a checkpoint before the limit"},
    [KNEE_HANG_CANCELLED] = {"cancelled", "the scheduler cancelled the job", "was cancelled",
                             "ask the scheduler who or what cancelled it: sacct -j JOB"},
    [KNEE_HANG_WIRE] = {"GPU or network", "all ranks of the group are in the same call",
                        "no rank is missing",
                        "run knee doctor on the nodes; check NCCL_DEBUG=WARN lines and Xid"},
    [KNEE_HANG_UNKNOWN] =
        {"cannot tell", "an error or a timeout that no rule explains",
         "is not explained by these files",
         "record dumps next time: TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 "
         "TORCH_FR_DUMP_TEMP_FILE=/shared/fr_"},
};

/* Where no rank is known; NULL: made of what the class does. */
static const char *const sentences[KNEE_HANG_CLASSES] = {
    [KNEE_HANG_LEFT_OUT] = "A rank skipped a collective; too few ranks are here to tell which.",
    [KNEE_HANG_OTHER_OP] = "Ranks called different collectives; too few are here to tell which.",
    [KNEE_HANG_OTHER_SIZE] = "Ranks used different sizes; too few are here to tell which is wrong.",
    [KNEE_HANG_NODE] = "The job lost a node.",
    [KNEE_HANG_NETWORK] = "The network between nodes failed; no line says which rank.",
    [KNEE_HANG_VERSION] = "Versions or environments differ between ranks.",
    [KNEE_HANG_NO_START] = "Some ranks never joined the job.",
    [KNEE_HANG_TIME_LIMIT] = "The job was ended by its time limit.",
    [KNEE_HANG_CANCELLED] = "The job was cancelled from outside.",
};

const char *knee_hang_sentence(enum knee_hang_class kind)
{
    return sentences[kind];
}

const struct knee_hang_kind *knee_hang_kind(enum knee_hang_class kind)
{
    return &kinds[kind];
}

const char *knee_hang_fix(const struct knee_hang_report *report)
{
    const struct knee_job_record *record = report->record;
    if (report->answer->kind == KNEE_HANG_UNKNOWN && report->answer->silent_count)
        return "give the output and dumps of those ranks too; a node that died leaves none";
    bool later = record->later_errors && !record->unknown_errors && !report->answer->waits;
    return report->answer->kind == KNEE_HANG_UNKNOWN && later
               ? "give the output of all ranks and of the launcher: the first error is not here"
               : kinds[report->answer->kind].fix;
}
