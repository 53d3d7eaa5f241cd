/* SPDX-License-Identifier: MIT */
/* Training logs of every dialect, line by line from a grammar: asked as scale and as diff of logs.
 */
#include "grammar.h"
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
static const char *const odd[] = {
    "nan",  "inf",   "-1",    "0",  "1e400", "1E-320", "99999999999999999999999", "",
    "0x10", "1,000", "1.2.3", "--", "1e5e5", "\xff",   "12345678901234567890.5"};
static char number[64];
static const char *num(double v)
{
    if (coin(40))
        return PICK(odd);
    snprintf(number, sizeof number, below(2) ? "%.3f" : "%.6E", v * (coin(30) ? 1e9 : 1));
    return number;
}
static void one(struct buf *b)
{
    unsigned kind = below(12), n = 2 + below(40), workers = 1u << below(12);
    double s = 0.2 + below(50) / 10.0;
    unsigned k0 = below(3);
    if (coin(2))
        add(b,
            "using world size: %u, data-parallel size: %u, context-parallel size: 1 "
            "tensor-model-parallel size: %u, pipeline-model-parallel size: %u\n",
            workers, workers / (1 + below(4)), 1u << below(4), 1u << below(4));
    if (coin(3))
        add(b,
            "  global_batch_size ............................... %s\n  micro_batch_size "
            "................................ %u\n  seq_length "
            "...................................... %u\n  num_layers "
            "...................................... %u\n  hidden_size "
            "..................................... %s\n  num_attention_heads "
            "............................. %u\n",
            num(1 << below(12)), below(9), 1u << below(16), below(130), num(1 << below(15)),
            1u << below(8));
    if (coin(4))
        add(b,
            "[2024-01-01 00:00:00,000] [INFO] [config.py:1000:print]   train_batch_size "
            "............. %s\nworld_size=%u\n--nnodes %u --nproc_per_node %u\n",
            num(256), workers, below(20), below(17));
    for (unsigned i = 0; i < n && decisions < decisions_end; i++) {
        unsigned it = coin(12) ? below(5) : k0 + i;
        double t = s * (coin(9) ? 10 : 1) + below(20) / 100.0, loss = 10.0 / (1 + i);
        switch (coin(10) ? below(12) : kind) {
        case 0:
            add(b,
                " [2024-01-01 %02u:%02u:%02u] iteration %8u/ 500000 | consumed samples: %12u | "
                "elapsed time per iteration (ms): %s | learning rate: 1.5E-04 | global batch size: "
                "%5u | lm loss: %s | loss scale: 1.0 | grad norm: 1.0 | number of skipped "
                "iterations: %u | throughput per GPU (TFLOP/s/GPU): %s |\n",
                below(25), below(61), below(61), it, it * 8, num(1e3 * t), 1u << below(12),
                num(loss), below(2), num(400));
            break;
        case 1:
            add(b, "{'loss': %s, 'grad_norm': %s, 'learning_rate': 1e-05, 'epoch': %s}\n",
                num(loss), num(1), num(it / 10.0));
            break;
        case 2:
            add(b,
                "[rank0]:[titan] 2024-01-01 00:00:%02u,%03u - root - INFO - \x1b[32mstep: %2u  "
                "\x1b[33mloss: %s  \x1b[38;2;1;2;3mmemory: 40.1GiB(50.0%%)  \x1b[34mtps: %s  "
                "\x1b[36mtflops: %s  \x1b[35mmfu: %s%%\x1b[39m\n",
                below(60), below(1000), it, num(loss), num(8000), num(400), num(40));
            break;
        case 3:
            add(b,
                "[2024-01-01 00:%02u:%02u,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=%u, "
                "skipped=0, lr=[1e-05], mom=[(0.9, 0.95)]\n[2024-01-01 00:00:00,000] [INFO] "
                "[timer.py:260:stop] epoch=0/micro_step=%u/global_step=%u, "
                "RunningAvgSamplesPerSec=%s, CurrSamplesPerSec=%s, MemAllocated=1.0GB\n",
                below(60), below(60), it, it, it, num(100), num(100));
            break;
        case 4:
            add(b, "Epoch 0: %3u%%|###| %u/500 [%02u:%02u<%02u:%02u, %s%s, loss=%s, v_num=0]\r",
                it / 5, it, below(60), below(60), below(60), below(60), num(1 / t),
                coin(2) ? "it/s" : "s/it", num(loss));
            break;
        case 5:
            add(b,
                "Training epoch 0, iteration %u/99 | lr: 1e-4 | global_batch_size: %u | "
                "global_step: %u | reduced_train_loss: %s | train_step_timing in s: %s | "
                "consumed_samples: %u\n",
                it, 1u << below(11), it, num(loss), num(t), it * 9);
            break;
        case 6:
            add(b, "%sstep,step_s,loss,tokens_per_s,workers\n%u,%s,%s,%s,%u\n", i ? "#" : "", it,
                num(t), num(loss), num(1e6), workers);
            break;
        case 7:
            add(b,
                "{\"step\": %u, \"step_s\": %s, \"loss\": %s, \"world_size\": %u, \"time\": "
                "\"2024-01-01T00:%02u:%02u\"}\n",
                it, num(t), num(loss), workers, below(60), below(60));
            break;
        case 8:
            add(b, "Throughput: %s samples/s, Iteration time: %s ms, step %u loss %s, %u GPUs\n",
                num(1000), num(1e3 * t), it, num(loss), workers);
            break;
        case 9:
            add(b,
                "INFO:lightning:step %u: train_loss=%s, seconds_per_step=%s\nRuntimeError: CUDA "
                "out of memory. Tried to allocate 2.00 GiB\n",
                it, num(loss), num(t));
            break;
        case 10:
            add(b,
                "NCCL INFO comm 0x1 rank %u nranks %u cudaDev 0 busId 1000\nnode%u: Loss spike "
                "%s\n%*s\n",
                below(9), workers, below(9), num(loss), (int)below(200), "x");
            break;
        default:
            add(b, "iter %u: loss %s, time %sms, mfu %s%%\n", it, num(loss), num(1e3 * t), num(30));
            break;
        }
    }
    if (coin(8))
        b->n = b->n * below(100) / 100;
}
static const char *const more[] = {
    "",
    "strict\n",
    "at = 128\n",
    "at-batch = 4096\ntokens = 1T\n",
    "model = llama3-8b\ngpu = h100\nglobal-batch = 512\n",
    "curve = loss\n",
    "runs = r\n",
    "tolerance = 0.05\nloss-behind = 0.1\n",
    "gpu-util = 30\ncpu-util = 99\nlate-rank = 3\n",
    "flops-achieved = 400T\nmodel = llama3-70b\ntp = 8\npp = 4\ngpu = h200\n"};
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decisions = data;
    decisions_end = data + size;
    struct knee_ask *ask = knee_ask_begin(NULL);
    struct knee_text answer = {0};
    struct knee_err err;
    struct buf b[5] = {{0}}, lines = {0};
    int patience = 8;
    bool diff = coin(4);
    unsigned files = diff ? 2 : 1 + below(5);
    if (!ask)
        return 0;
    knee_ask_watch(ask, stop, &patience);
    for (unsigned i = 0; i < files; i++) {
        char name[16];
        snprintf(name, sizeof name, "run%u.log", i);
        one(&b[i]);
        knee_attach(ask, name, b[i].d ? b[i].d : "", b[i].n, &err);
        if (coin(3) && !diff)
            add(&lines, "word = %s=%s\n", coin(6) ? PICK(odd) : coin(2) ? "8" : "64", name);
        else
            add(&lines, "word = %s\n", name);
    }
    add(&lines, "%s", diff ? "" : PICK(more));
    unsigned only = below(KNEE_MARKDOWN + 1); /* one format of four: four times the inputs */
    for (int f = KNEE_TEXT; f <= KNEE_MARKDOWN; f++) {
        if (!all_formats && f != (int)only)
            continue;
        answer.length = 0;
        if (knee_ask(ask, diff ? "diff" : "scale", lines.d ? lines.d : "", (enum knee_format)f,
                     &answer, &err) == KNEE_SYSTEM)
            continue; /* no memory: what there is of an answer is not one */
        look(&answer, (enum knee_format)f);
    }
    const struct knee_text *runs = knee_pull(ask, "r");
    if (runs && runs->length) { /* what it writes, it must read */
        answer.length = 0;
        knee_attach(ask, "runs.csv", runs->data, runs->length, &err);
        knee_status s = knee_ask(ask, "validate", "word = runs.csv\n", KNEE_JSON, &answer, &err);
        if (s == KNEE_INPUT && strstr(err.what, "not ")) {
            fprintf(stderr, "runs do not read back: %s %s\n%.300s\n", err.where, err.what,
                    runs->data);
            abort();
        }
    }
    knee_ask_end(ask);
    knee_text_release(&answer);
    for (unsigned i = 0; i < 5; i++)
        free(b[i].d);
    free(lines.d);
    return 0;
}
