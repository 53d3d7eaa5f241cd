/* SPDX-License-Identifier: MIT */
#include "read/file_kinds.h"

#include "base/slice.h"
#include "knee_scale.h"
#include "read/trace/roll_readers.h"

#include <string.h>

/* ---- What no list of words can say ---- */

/* Protocol 2 and later begin so. */
static bool is_pickle(const char *head, size_t length)
{
    return length > 2 && (unsigned char)head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
}

static bool is_text(const char *head, size_t length)
{
    return memchr(head, '\n', length) && !memchr(head, '\0', length);
}

/* ---- The table ---- */

#define TIMELINE    "trace replay scale diff report"
#define NOT_A_TRACE "\"schemaVersion\"|\"deviceProperties\"|\"distributedInfo\"|\"traceEvents\""

static const struct knee_file_kind kinds[] = {
    {.name = "answer",
     .what = "an answer of knee",
     .commands = "report",
     .run = "knee report FILE",
     .magic = "{\n  \"schema\": \"knee.|{\"schema\": \"knee."},
    {.name = "database",
     .what = "a database of Nsight Systems or rocpd",
     .reader = KNEE_READ_DATABASE,
     .commands = TIMELINE,
     .run = "knee trace FILE",
     .magic = "SQLite format 3"},
    {.name = "nsys-rep",
     .what = "a report of Nsight Systems",
     .commands = "",
     .run = "nsys export --type sqlite FILE",
     .ends = ".nsys-rep|.qdrep"},
    {.name = "ncu-rep",
     .what = "a report of Nsight Compute, which is of one kernel",
     .commands = "",
     .run = "nsys profile -t cuda,nvtx",
     .ends = ".ncu-rep"},
    {.name = "xplane",
     .what = "a profile of XLA",
     .reader = KNEE_READ_IMAGE,
     .commands = TIMELINE,
     .run = "knee trace FILE",
     .ends = ".xplane.pb"},
    {.name = "chakra",
     .what = "a Chakra execution trace",
     .reader = KNEE_READ_IMAGE,
     .commands = TIMELINE,
     .run = "knee trace FILE",
     .ends = ".et"},
    {.name = "archive",
     .what = "an archive",
     .commands = "",
     .run = "unzip FILE",
     .magic = "PK\x03\x04"},
    {.name = "flight recorder",
     .what = "a Flight Recorder dump",
     .reader = KNEE_READ_ROLLCALL,
     .commands = "trace hang",
     .run = "knee hang FILE",
     .test = is_pickle},
    {.name = "inspector",
     .what = "a file of NCCL Inspector",
     .reader = KNEE_READ_ROLLCALL,
     .commands = "trace",
     .run = "knee trace FILE",
     .test = knee_is_inspector},
    {.name = "flight recorder",
     .what = "a Flight Recorder dump",
     .reader = KNEE_READ_ROLLCALL,
     .commands = "trace hang",
     .run = "knee hang FILE",
     .magic = "{",
     .any = "\"pg_config\"|\"pg_status\"|\"collective_seq_id\"",
     .none = NOT_A_TRACE},
    {.name = "rocprofv3 json",
     .what = "an output of rocprofv3",
     .reader = KNEE_READ_IMAGE,
     .commands = TIMELINE,
     .run = "knee trace FILE",
     .any = "\"rocprofiler-sdk-tool\""},
    {.name = "rocprofv3",
     .what = "an output of rocprofv3",
     .reader = KNEE_READ_IMAGE,
     .commands = TIMELINE,
     .run = "knee trace FILE",
     .all = "Start_Timestamp|End_Timestamp|Correlation_Id"},
    {.name = "chakra json",
     .what = "a Chakra execution trace",
     .reader = KNEE_READ_IMAGE,
     .commands = TIMELINE,
     .run = "knee trace FILE",
     .any = "\"workload_graph\""},
    {.name = "operations",
     .what = "a log of a pipeline's operations",
     .reader = KNEE_READ_STREAM,
     .commands = "replay trace",
     .run = "knee replay FILE",
     .any = "\"forward-compute\"|\"backward-compute\""},
    {.name = "trace",
     .what = "a trace",
     .reader = KNEE_READ_STREAM,
     .commands = TIMELINE,
     .run = "knee trace FILE",
     .magic = "{|[",
     .any = "\"traceEvents\"|\"ph\"|\"displayTimeUnit\"|\"schemaVersion\""},
    {.name = "trainer state",
     .what = "a log of the Hugging Face trainer",
     .commands = "scale diff report",
     .run = "knee scale FILE",
     .any = "\"log_history\""},
    {.name = "model",
     .what = "a model's configuration",
     .commands = "plan",
     .run = "knee plan --hf FILE",
     .magic = "{",
     .any = "\"hidden_size\"|\"n_embd\"|\"num_hidden_layers\"|\"architectures\""},
    {.name = "deepspeed",
     .what = "a DeepSpeed configuration",
     .commands = "plan",
     .run = "knee plan --deepspeed FILE",
     .magic = "{",
     .any = "\"zero_optimization\"|\"train_micro_batch_size_per_gpu\"|\"train_batch_size\""},
    {.name = "collectives",
     .what = "measured collectives",
     .commands = "fit collective report",
     .run = "knee fit FILE",
     .any = "busbw|algbw|OSU MPI|\"schema\": \"nccl"},
    {.name = "topology",
     .what = "NCCL's topology",
     .commands = "cluster doctor",
     .run = "knee cluster FILE",
     .magic = "<system"},
    {.name = "sacct",
     .what = "an output of sacct",
     .commands = "scale",
     .run = "knee scale FILE",
     .test = knee_is_sacct},
    {.name = "runs",
     .what = "a table of runs",
     .commands = "scale validate calibrate report",
     .run = "knee scale FILE",
     .ends = ".csv|.tsv",
     .test = knee_scale_is_table},
    {.name = "table",
     .what = "a table",
     .commands = "fit validate scale",
     .run = "knee fit FILE",
     .ends = ".csv|.tsv",
     .any = ","},
    {.name = "job",
     .what = "a job file",
     .commands = "predict plan tax cluster fit report",
     .run = "knee predict FILE",
     .ends = ".yaml|.yml"},
    {.name = "training log",
     .what = "a training log",
     .commands = "scale diff hang report validate calibrate",
     .run = "knee scale FILE",
     .any = "iteration |elapsed time per| loss|loss:|\"loss\"|tokens/s|it/s]|samples/sec|"
            "global_step"},
    {.name = "error output",
     .what = "the error output of a rank",
     .commands = "hang doctor",
     .run = "knee hang FILE",
     .any = "ProcessGroupNCCL|WorkNCCL(|Traceback (most recent call last)|ChildFailedError"},
    {.name = "NCCL log",
     .what = "a log of NCCL",
     .commands = "doctor hang",
     .run = "knee doctor FILE",
     .any = "NCCL INFO|NCCL WARN|NCCL version"},
    /* A file that does not exist yet, or is damaged, is recognised by its name alone. */
    {.name = "trace",
     .what = "a trace",
     .reader = KNEE_READ_STREAM,
     .commands = TIMELINE,
     .run = "knee trace FILE",
     .ends = ".json|.knee"},
    {.name = "database",
     .what = "a database of Nsight Systems or rocpd",
     .reader = KNEE_READ_DATABASE,
     .commands = TIMELINE,
     .run = "knee trace FILE",
     .ends = ".sqlite|.rpd|.db"},
    {.name = "rocprofv3",
     .what = "an output of rocprofv3",
     .reader = KNEE_READ_IMAGE,
     .commands = TIMELINE,
     .run = "knee trace FILE",
     .ends = "kernel_trace.csv"},
    {.name = "text",
     .what = "a text without a trace's events",
     .commands = "scale diff hang report validate calibrate doctor fit collective cluster",
     .run = "knee scale FILE for a training log, knee hang for error output",
     .test = is_text},
};

const struct knee_file_kind *knee_file_kind_at(size_t row)
{
    return row < sizeof kinds / sizeof *kinds ? &kinds[row] : NULL;
}

size_t knee_file_kind_row(const struct knee_file_kind *kind)
{
    return kind ? (size_t)(kind - kinds) + 1 : 0;
}

/* ---- Asking it ---- */

/* The next word of a list; *list moves behind it. */
static struct knee_slice next_word(const char **list)
{
    struct knee_slice word = {*list, strcspn(*list, "|")};
    *list += word.length + ((*list)[word.length] == '|');
    return word;
}

static bool has(struct knee_slice text, struct knee_slice word)
{
    for (size_t i = 0; i + word.length <= text.length; i++)
        if (text.at[i] == word.at[0] && memcmp(text.at + i, word.at, word.length) == 0)
            return true;
    return false;
}

static bool starts(struct knee_slice text, struct knee_slice word)
{
    return text.length >= word.length && memcmp(text.at, word.at, word.length) == 0;
}

static bool ends(struct knee_slice name, struct knee_slice word)
{
    return name.length >= word.length &&
           memcmp(name.at + name.length - word.length, word.at, word.length) == 0;
}

/* How many words of a list `is` true of; *count: of how many. */
static size_t matching(const char *list, struct knee_slice text,
                       bool (*is)(struct knee_slice, struct knee_slice), size_t *count)
{
    size_t found = 0;
    for (*count = 0; *list; ++*count)
        found += is(text, next_word(&list));
    return found;
}

static struct knee_slice without_gz(const char *name)
{
    struct knee_slice slice = knee_slice_of(name);
    slice.length -= ends(slice, knee_slice_of(".gz")) ? 3 : 0;
    return slice;
}

static bool is_kind(const struct knee_file_kind *kind, const char *name, struct knee_slice head)
{
    size_t count;
    struct knee_slice trimmed = head;
    while (trimmed.length && strchr(" \t\r\n", trimmed.at[0]) && trimmed.at[0])
        trimmed.at++, trimmed.length--;
    return (!kind->ends || matching(kind->ends, without_gz(name), ends, &count)) &&
           (!kind->magic || matching(kind->magic, trimmed, starts, &count)) &&
           (!kind->any || matching(kind->any, head, has, &count)) &&
           (!kind->all || matching(kind->all, head, has, &count) == count) &&
           (!kind->none || !matching(kind->none, head, has, &count)) &&
           (!kind->test || kind->test(head.at, head.length));
}

const struct knee_file_kind *knee_file_kind_of(const char *name, const char *head, size_t length)
{
    struct knee_slice text = {head ? head : "",
                              length < KNEE_KIND_HEAD ? length : (size_t)KNEE_KIND_HEAD};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (is_kind(&kinds[i], name, text))
            return &kinds[i];
    return NULL;
}

bool knee_file_kind_for(const struct knee_file_kind *kind, const char *command)
{
    size_t length = strlen(command);
    for (const char *at = kind->commands; (at = strstr(at, command)); at++)
        if ((at == kind->commands || at[-1] == ' ') && (!at[length] || at[length] == ' '))
            return true;
    return false;
}

bool knee_file_ends_like_trace(const char *name)
{
    size_t count;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].ends && kinds[i].reader != KNEE_READ_OTHERWISE &&
            matching(kinds[i].ends, without_gz(name), ends, &count))
            return true;
    return false;
}
