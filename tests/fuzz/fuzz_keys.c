/* SPDX-License-Identifier: MIT */
/* Questions as key = value with real names and values at their edges, for every command without a
 * recording. */
#include "ask/ask.h"
#include "base/keys.h"
#include "grammar.h"
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
static const char *const values[] = {"0",
                                     "1",
                                     "2",
                                     "8",
                                     "64",
                                     "512",
                                     "4096",
                                     "1048576",
                                     "0.5",
                                     "1%",
                                     "99%",
                                     "100%",
                                     "-1",
                                     "nan",
                                     "inf",
                                     "1e308",
                                     "1e-308",
                                     "4M",
                                     "7B",
                                     "1T",
                                     "25MB",
                                     "400Gb/s",
                                     "3.35TB/s",
                                     "5us",
                                     "180ms",
                                     "1h",
                                     "30d",
                                     "auto",
                                     "none",
                                     "full",
                                     "selective",
                                     "on",
                                     "off",
                                     "h100",
                                     "h200",
                                     "b200",
                                     "mi300x",
                                     "gpt2",
                                     "llama3-8b",
                                     "llama3-405b",
                                     "deepseek-v3",
                                     "dgx-h100",
                                     "gb200-nvl72",
                                     "ring",
                                     "tree",
                                     "zero1",
                                     "zero3",
                                     "fsdp",
                                     "bf16",
                                     "fp8",
                                     "1f1b",
                                     "interleaved",
                                     "zero-bubble",
                                     "megatron",
                                     "torchtitan",
                                     "a",
                                     "1,2,4,8",
                                     "8,16,32,64,128",
                                     "1..1024",
                                     "1:1024",
                                     "all",
                                     "all_reduce",
                                     "all_to_all",
                                     "efficiency=0.9",
                                     "bandwidth",
                                     "$3",
                                     "700W",
                                     "",
                                     " ",
                                     "'",
                                     "\xe2\x82\xac",
                                     "1e18",
                                     "9007199254740993",
                                     "0x1p4",
                                     "1/3",
                                     "2x",
                                     "0.25x"};
static const char *const starts[] = {
    "",
    "model = llama3-8b\ngpu = h100\ngpus = 64\n",
    "params = 7B\ngpu = h100\nglobal-batch = 4M\n",
    "model = deepseek-v3\ngpu = h200\ngpus = 256\nglobal-batch = 4096\n",
    "word = all_reduce\nbytes = 1MB\nranks = 64\ncluster = dgx-h100\n",
    "model = llama2-7b\ngpu = h100\ntp = 8\n",
    "compute-time = 180ms\ncomm-time = 120ms\n",
    "model = gpt2\ngpu = a100\ngpus = 8\nsimulate\n",
    "word = a\n"};
static const char attached[] =
    "latency: 5us\nbandwidth: 50GB/s\nlevels:\n  - {size: 8, latency: 2us, bandwidth: 450GB/s}\n  "
    "- {size: 64, latency: 5us, bandwidth: 50GB/s}\n";
static const struct knee_ask_command *pick_command(void)
{
    unsigned count = 0;
    while (knee_ask_commands[count])
        count++;
    return knee_ask_commands[below(count)];
}

/* A key that the command takes, or one of another command that it refuses. */
static const char *pick_key(const struct knee_ask_command *command)
{
    unsigned tables = 0;
    while (tables < ASK_TABLES && command->keys[tables])
        tables++;
    if (tables == 0)
        return NULL;
    const struct knee_keys *keys = command->keys[below(tables)];
    return keys->count ? keys->rows[below((unsigned)keys->count)].name : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decisions = data;
    decisions_end = data + size;
    struct knee_ask *ask = knee_ask_begin(NULL);
    struct knee_text answer = {0};
    struct knee_err err;
    struct buf lines = {0};
    int patience = 6;
    const struct knee_ask_command *command = pick_command();
    unsigned n = below(8);
    if (!ask)
        return 0;
    knee_ask_watch(ask, stop, &patience);
    knee_attach(ask, "a", attached, sizeof attached - 1, &err);
    add(&lines, "%s", PICK(starts));
    for (unsigned i = 0; i < n; i++) {
        const char *name = pick_key(command);
        if (!name)
            continue;
        if (coin(6))
            add(&lines, "%s\n", name);
        else
            add(&lines, "%s = %s\n", name, PICK(values));
    }
    unsigned only = below(KNEE_MARKDOWN + 1); /* one format of four: four times the inputs */
    for (int f = KNEE_TEXT; f <= KNEE_MARKDOWN; f++) {
        if (!all_formats && f != (int)only)
            continue;
        answer.length = 0;
        patience = 6;
        if (knee_ask(ask, command->name, lines.d ? lines.d : "", (enum knee_format)f, &answer,
                     &err) == KNEE_SYSTEM)
            continue; /* no memory: what there is of an answer is not one */
        look(&answer, (enum knee_format)f);
        if (err.status && (strstr(err.what, "nan") == err.what))
            abort();
        if (f == KNEE_TEXT && answer.length &&
            (strstr(answer.data, " nan ") || strstr(answer.data, "-nan ") ||
             strstr(answer.data, " nan\n"))) {
            fprintf(stderr, "nan in an answer to %s:\n%s", command->name, lines.d);
            abort();
        }
    }
    knee_ask_end(ask);
    knee_text_release(&answer);
    free(lines.d);
    return 0;
}
