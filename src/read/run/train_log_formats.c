/* SPDX-License-Identifier: MIT */
/*
 * What each framework writes, as rows: the mark that a line of steps has, and what its names mean.
 * Order is precedence: of two formats that report the same step the first one counts.
 */
#include "read/run/train_log.h"

#include "base/fold.h"

#include <math.h>
#include <string.h>

#define END                                                                                        \
    {                                                                                              \
        NULL, TRAIN_NOTHING, 0                                                                     \
    }

static const struct knee_train_key megatron[] = {{"approx_flops_per_gpu", TRAIN_TFLOPS, 1}, END};
static const struct knee_train_key bridge[] = {{"gpu_utilization", TRAIN_TFLOPS, 1}, END};
static const struct knee_train_key nanotron[] = {{"global_batch_size", TRAIN_BATCH_TOKENS, 1}, END};
static const struct knee_train_key pipeline[] = {{"steps", TRAIN_STEP, 1}, END};
static const struct knee_train_key torchtitan[] = {
    {"tps", TRAIN_WORKER_TOKENS, 1}, {"wps", TRAIN_WORKER_TOKENS, 1}, END};
/* Its validation says "validate step: 20  loss: 3.1". */
static const struct knee_train_key torchtitan_eval[] = {
    {"validate_step", TRAIN_STEP, 1}, {"loss", TRAIN_EVAL, 1}, END};
static const struct knee_train_key lsai[] = {{"tokens_per_second", TRAIN_WORKER_TOKENS, 1}, END};
static const struct knee_train_key maxtext[] = {
    {"seconds", TRAIN_SECONDS, 1}, {"lm_loss", TRAIN_NOTHING, 1}, END};
static const struct knee_train_key paddle[] = {
    {"speed", TRAIN_STEPS_PER_S, 1}, {"ips", TRAIN_WORKER_TOKENS, 1}, END};
static const struct knee_train_key dllogger[] = {
    {"took", TRAIN_SECONDS, 1}, {"throughput_train", TRAIN_SAMPLES_PER_S, 1}, END};
static const struct knee_train_key fairseq[] = {{"avg_tokens", TRAIN_TOKENS, 1}, END};
static const struct knee_train_key fairseq_train[] = {{"bsz", TRAIN_BATCH, 1}, END};
static const struct knee_train_key modded[] = {
    {"train_time", TRAIN_ELAPSED, 1e-3}, {"step_time", TRAIN_SECONDS, 1e-3}, END};
static const struct knee_train_key llmc_main[] = {
    {"s", TRAIN_STEP, 1}, {"trl", TRAIN_LOSS, 1}, {"tel", TRAIN_EVAL, 1}, END};
static const struct knee_train_key litgpt[] = {{"iter_time", TRAIN_PART, 1e-3}, END};
static const struct knee_train_key nanochat[] = {{"dt", TRAIN_SECONDS, 1e-3}, END};
static const struct knee_train_key picotron[] = {{"global_batch_size", TRAIN_TOKENS, 1}, END};
static const struct knee_train_key automodel[] = {{"tps", TRAIN_TOKENS_PER_S, 1}, END};
static const struct knee_train_key trainer_log[] = {{"throughput", TRAIN_TOKENS_PER_S, 1}, END};
static const struct knee_train_key hf[] = {{"train_runtime", TRAIN_RUNTIME, 1},
                                           {"train_steps_per_second", TRAIN_STEPS_PER_S, 1},
                                           {"global_step", TRAIN_RUN_STEPS, 1},
                                           END};

/* Tables and lines of JSON of any origin: wandb, CSV loggers, Automodel, the user's. */
const struct knee_train_key knee_train_table_keys[] = {
    {"runtime", TRAIN_ELAPSED, 1}, /* wandb: _runtime */
    {"timestamp", TRAIN_STAMP, 1},
    {"created_at", TRAIN_STAMP, 1},
    {"tps", TRAIN_TOKENS_PER_S, 1},
    {"tokens", TRAIN_TOKENS, 1},
    {"batch", TRAIN_BATCH, 1},
    {"batch_size", TRAIN_BATCH, 1},
    {"global_batch", TRAIN_BATCH, 1},
    {"samples", TRAIN_SAMPLES, 1},
    END};

/* ---- Lines that are not pairs ---- */

static struct knee_slice after(struct knee_slice text, const char *word)
{
    size_t at = knee_slice_find(text, word);
    return knee_slice_from(text, at == text.length ? at : at + strlen(word));
}

/* The text between quotes after "name". */
static struct knee_slice quoted(struct knee_slice line, const char *name)
{
    struct knee_slice rest = after(line, name), piece;
    knee_slice_until(&rest, '"', &piece);
    if (!knee_slice_until(&rest, '"', &piece))
        piece.length = 0;
    return piece;
}

static double number_after(struct knee_slice line, const char *name)
{
    struct knee_slice rest = after(line, name);
    const char *p = rest.at, *end = p + rest.length;
    while (p < end && (*p == ' ' || *p == ':' || *p == '"'))
        p++;
    return knee_train_number(&p, end);
}

static void take_pairs(struct knee_train_reader *reader, struct train_line line,
                       const struct knee_train_key *keys, struct train_raw *raw)
{
    const struct train_format format = {.keys = keys, .flags = TRAIN_COUNT_LAST};
    knee_train_read_pairs(reader, &format, line.text, raw);
}

/* The micro-batches of a step, up to the one that is marked. */
static bool read_litgpt(struct knee_train_reader *reader, struct train_line line,
                        struct train_raw *raw)
{
    take_pairs(reader, line, litgpt, raw);
    reader->part_s += raw->value[TRAIN_PART];
    if (!knee_slice_has(line.text, "(step)") && !knee_slice_has(line.text, "(optimizer.step)")) {
        raw->value[TRAIN_LOSS] = NAN;
        return true;
    }
    raw->value[TRAIN_SECONDS] = reader->part_s;
    reader->part_s = 0;
    return true;
}

/* "rank=0 time (ms) | forward_microstep: 1330.05 | backward_microstep: 4766.88 | ... |
 * step_microstep: 0.05" of DeepSpeed's wall_clock_breakdown */
static bool read_timers(struct knee_train_reader *reader, struct train_line line,
                        struct train_raw *raw)
{
    static const char *const parts[] = {
        " forward_microstep:", " backward_microstep:", " step_microstep:"};
    double sum = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        sum += number_after(line.text, parts[i]);
    take_pairs(reader, line, NULL, raw);
    raw->value[TRAIN_PART] = 1e-3 * sum;
    return !isnan(sum);
}

/* The number that stands before `unit`; NaN. */
static double number_before(struct knee_slice text, const char *unit)
{
    size_t end = knee_slice_find(text, unit), start = end;
    while (start > 0 && end < text.length && strchr("0123456789.,", text.at[start - 1]) &&
           text.at[start - 1])
        start--;
    const char *p = text.at + start;
    return knee_train_number(&p, text.at + end);
}

/* "step 61/74 | loss 4.2 | ... | 44.57 ms | 40.1% bf16 MFU | 91886 tok/s", and before that
 * "step 1/74: train loss 5.3 (acc 5.3) (128.4 ms, 31875 tok/s)" */
static bool read_llmc(struct knee_train_reader *reader, struct train_line line,
                      struct train_raw *raw)
{
    take_pairs(reader, line, NULL, raw);
    raw->value[TRAIN_SECONDS] = 1e-3 * number_before(line.text, " ms");
    raw->value[TRAIN_TOKENS_PER_S] = number_before(line.text, " tok/s");
    return !isnan(raw->value[TRAIN_STEP]);
}

/* tinygrad: "4 4.32 s run, 11.8750 loss, ..." */
static bool read_tinygrad(struct knee_train_reader *reader, struct train_line line,
                          struct train_raw *raw)
{
    (void)reader;
    struct knee_slice text = knee_slice_trim(line.text);
    const char *p = text.at;
    raw->value[TRAIN_STEP] = knee_train_number(&p, text.at + text.length);
    raw->value[TRAIN_SECONDS] = knee_slice_has(text, " ms run,")
                                    ? 1e-3 * number_before(text, " ms run,")
                                    : number_before(text, " s run,");
    raw->value[TRAIN_LOSS] = number_before(text, " loss");
    return !isnan(raw->value[TRAIN_STEP]);
}

/* "[INFO] ... 0/40, SamplesPerSec=83.5": the number after the stroke is the step. */
static bool read_deepspeed(struct knee_train_reader *reader, struct train_line line,
                           struct train_raw *raw)
{
    take_pairs(reader, line, NULL, raw);
    size_t end = knee_slice_find(line.text, "SamplesPerSec="), start;
    size_t average = knee_slice_find(line.text, "RunningAvgSamplesPerSec=");
    end = average < end ? average : end;
    struct knee_slice head = knee_slice_trim((struct knee_slice){line.text.at, end});
    if (!isnan(raw->value[TRAIN_STEP]) || head.length == 0 || head.at[head.length - 1] != ',')
        return true;
    for (start = --head.length; start > 0 && knee_is_digit(head.at[start - 1]);)
        start--;
    const char *p = head.at + start;
    if (start > 1 && head.at[start - 1] == '/' && knee_is_digit(head.at[start - 2]))
        raw->value[TRAIN_STEP] = knee_train_number(&p, head.at + head.length);
    return true;
}

/* DLLogger's other back end: {"elapsedtime": "12.5", "type": "LOG", "step": [0, 20], "data": {...}}
 */
static bool read_dllogger_json(struct knee_train_reader *reader, struct train_line line,
                               struct train_raw *raw)
{
    (void)reader;
    struct knee_slice step = after(line.text, "\"step\":"), piece;
    step.length = knee_slice_find(step, "]");
    while (knee_slice_until(&step, ',', &piece)) {
        const char *p = piece.at, *end = p + piece.length;
        while (p < end && !knee_is_digit(*p))
            p++;
        raw->value[TRAIN_STEP] = knee_train_number(&p, end);
    }
    line.text = after(line.text, "\"data\":");
    take_pairs(reader, line, dllogger, raw);
    return !isnan(raw->value[TRAIN_STEP]);
}

static bool read_torchtitan(struct knee_train_reader *reader, struct train_line line,
                            struct train_raw *raw)
{
    take_pairs(reader, line,
               knee_slice_has(line.text, "validate step:") ? torchtitan_eval : torchtitan, raw);
    return true;
}

/* "step 4 | epoch 0 | loss 1.55 | ... | mem 11.66 GiB | tps 6924.50(3462.25/gpu) | ..." */
static bool read_automodel(struct knee_train_reader *reader, struct train_line line,
                           struct train_raw *raw)
{
    take_pairs(reader, line, automodel, raw);
    raw->value[TRAIN_WORKER_TOKENS] = number_before(line.text, "/gpu)");
    return true;
}

static bool read_tensorflow(struct knee_train_reader *reader, struct train_line line,
                            struct train_raw *raw)
{
    take_pairs(reader, line, NULL, raw);
    raw->value[TRAIN_SECONDS] = number_before(line.text, " sec/step)");
    return true;
}

/* ---- MLPerf: one event a line ---- */

/* Seconds of a step by a block, which may have evaluations in it. Some logs call the steps of an
 * epoch its samples: a rate beside it tells (see by_mlperf()). */
static void block_stop(struct train_facts *facts, double now_s, double samples,
                       struct train_raw *raw)
{
    double steps = facts->block_tokens / (facts->batch * facts->seq);
    if (isnan(steps))
        steps = (samples - facts->block_samples) / facts->batch;
    if (isnan(steps)) /* "epoch_count" of a block of epochs */
        steps = facts->block_tokens * facts->train_samples / facts->batch;
    double seconds = (now_s - facts->block_start_s) / steps;
    if (seconds > 0 && steps >= 1)
        raw->value[TRAIN_BLOCK_S] = seconds;
}

/* The throughput of gpt3 is in tokens: a step of less than two milliseconds is none. */
static void tokens_or_samples(const struct train_facts *facts, struct train_raw *raw)
{
    double rate = raw->value[TRAIN_SAMPLES_PER_S];
    if (!(facts->batch / rate < 2e-3 && facts->seq > 1))
        return;
    raw->value[TRAIN_TOKENS_PER_S] = rate;
    raw->value[TRAIN_SAMPLES_PER_S] = NAN;
}

static bool read_mllog(struct knee_train_reader *reader, struct train_line line,
                       struct train_raw *raw)
{
    static const struct knee_train_key stats[] = {{"time", TRAIN_SECONDS, 1},
                                                  {"throughput", TRAIN_SAMPLES_PER_S, 1},
                                                  {"imgs_sec", TRAIN_SAMPLES_PER_S, 1},
                                                  {"step", TRAIN_SAMPLES, 1},
                                                  END};
    struct train_facts *facts = &reader->facts;
    struct knee_slice key = quoted(line.text, "\"key\":");
    double now_s = 1e-3 * number_after(line.text, "\"time_ms\":");
    double value = number_after(line.text, "\"value\":");
    double samples = number_after(line.text, "\"samples_count\":");
    if (isnan(samples))
        samples = number_after(line.text, "\"epoch_num\":") /
                  (isnan(facts->seq) || facts->seq < 1 ? 1 : facts->seq);
    raw->value[TRAIN_SAMPLES] = samples;
    if (knee_slice_is(key, "global_batch_size") && value >= 1)
        facts->batch = value;
    else if (knee_slice_is(key, "max_sequence_length") && value >= 1)
        facts->seq = value;
    else if (knee_slice_is(key, "train_samples") && value >= 1)
        facts->train_samples = value;
    else if (knee_slice_is(key, "tracked_stats")) {
        take_pairs(reader, line, stats, raw);
        tokens_or_samples(facts, raw);
    } else if (knee_slice_is(key, "train_loss"))
        raw->value[TRAIN_LOSS] = value;
    else if (knee_slice_is(key, "eval_accuracy"))
        raw->value[TRAIN_EVAL] = value;
    else if (knee_slice_is(key, "throughput")) {
        raw->value[TRAIN_SAMPLES_PER_S] = value;
        tokens_or_samples(facts, raw);
    } else if (knee_slice_is(key, "block_start")) {
        facts->block_start_s = now_s;
        facts->block_samples = samples;
        facts->block_tokens = number_after(line.text, "\"epoch_count\":");
        facts->block_epoch = false;
    } else if (knee_slice_is(key, "epoch_start") && !(facts->block_start_s > 0)) {
        facts->block_start_s = now_s;
        facts->block_tokens = 1;
        facts->block_epoch = true;
    } else if (knee_slice_is(key, facts->block_epoch ? "epoch_stop" : "block_stop")) {
        block_stop(facts, now_s, samples, raw);
        facts->block_start_s = NAN;
    }
    return true;
}

/* ---- The table ---- */

/* What every format has in common is read without any of this: a row is here because its lines need
 * other marks, because a name means something else in it, or because it is not made of pairs. */
const struct train_format knee_train_formats[] = {
    {"Megatron-LM",
     {"elapsed time per iteration (ms):", "elapsed_time_per_iteration_ms=",
      "validation loss at iteration"},
     megatron,
     0,
     NULL},
    {"NeMo", {"train_step_timing in s:"}, NULL, TRAIN_COUNT_LAST, NULL},
    {"nanotron", {"time_per_iteration_ms:"}, nanotron, TRAIN_SUFFIXES, NULL},
    {"Megatron-Bridge", {"Step Time :"}, bridge, TRAIN_EACH_LINE, NULL},
    {"DeepSpeed pipeline", {"iter time (s):"}, pipeline, 0, NULL},
    {"DeepSpeed-Chat", {"E2E latency="}, NULL, TRAIN_EACH_LINE, NULL},
    {"torchtitan",
     {" tps: ", "mtps: ", " wps: ", "mwps: ", " end_to_end(s)="},
     torchtitan,
     0,
     read_torchtitan},
    {"lsai", {"Tokens per second:"}, lsai, 0, NULL},
    {"MaxText", {"completed step:"}, maxtext, 0, NULL},
    {"PaddleNLP trainer", {"interval_steps_per_second:"}, NULL, 0, NULL},
    {"PaddleNLP", {" step/s, "}, paddle, 0, NULL},
    {"PaddleNLP words", {"step_idx:"}, paddle, 0, NULL},
    {"DLLogger",
     {"Training Iteration:", "throughput_train", "frames/s | took "},
     dllogger,
     TRAIN_EACH_LINE,
     NULL},
    {"fairseq (NVIDIA)", {"|walltime "}, fairseq, 0, NULL},
    {"fairseq", {"train_inner | ", "[train_inner]"}, fairseq_train, 0, NULL},
    {"MLPerf", {":::MLLOG"}, NULL, TRAIN_NO_STAMP | TRAIN_EACH_LINE, read_mllog},
    {"modded-nanogpt", {"train_time:"}, modded, 0, NULL},
    {"InternLM", {"tgs (tokens/gpu/second)="}, NULL, 0, NULL},
    {"LitGPT", {"iter time: "}, litgpt, 0, read_litgpt},
    {"nanochat", {"tok/sec:"}, nanochat, 0, NULL},
    {"llm.c", {" MFU | ", " tok/s)"}, NULL, TRAIN_NO_STAMP, read_llmc},
    {"Composer", {"throughput/batches_per_sec:"}, NULL, TRAIN_EACH_LINE, NULL},
    {"OLMo",
     {"throughput/device/batches_per_second=", "throughput/device/BPS="},
     NULL,
     TRAIN_EACH_LINE,
     NULL},
    {"fms-fsdp", {"current step time:"}, NULL, TRAIN_EACH_LINE, NULL},
    {"NeMo-RL", {"Total step time:"}, NULL, TRAIN_EACH_LINE, NULL},
    {"verl", {"timing_s/step:"}, NULL, 0, NULL},
    {"Automodel", {" GiB | tps "}, NULL, 0, read_automodel},
    {"picotron", {"Tokens/s/GPU: "}, picotron, TRAIN_SUFFIXES, NULL},
    {"OpenCLIP", {"Batch (t):"}, NULL, TRAIN_EACH_LINE, NULL},
    {"TensorFlow", {" sec/step)", "global_step/sec:"}, NULL, 0, read_tensorflow},
    {"DeepSpeed", {"SamplesPerSec="}, NULL, 0, read_deepspeed},
    {"DeepSpeed timers", {" | backward_microstep: "}, NULL, TRAIN_EACH_LINE, read_timers},
    {"LLaMA-Factory", {"\"current_steps\""}, trainer_log, 0, knee_train_read_line},
    {"Lightning", {"train_step_timing in s="}, NULL, TRAIN_EACH_LINE, NULL},
    {"DLLogger JSON", {"\"elapsedtime\":"}, NULL, 0, read_dllogger_json},
    {"JSON lines", {"step\":"}, knee_train_table_keys, 0, NULL},
    {"table", {NULL}, knee_train_table_keys, 0, NULL},
    {"TensorBoard", {NULL}, knee_train_table_keys, 0, NULL},
    {"tinygrad", {" s run,", " ms run,"}, NULL, TRAIN_LAST_RESORT, read_tinygrad},
    {"Hugging Face Trainer",
     {"s/it]", "s/it,", "it/s]", "it/s,"},
     NULL,
     TRAIN_LAST_RESORT,
     knee_train_read_bar},
    {"bar",
     {"s/step,", "s/step]", "step/s,", "step/s]", "s/batch,", "s/batch]", "batch/s,", "batch/s]",
      "s/iter,", "s/iter]", "iter/s,", "iter/s]"},
     NULL,
     TRAIN_LAST_RESORT,
     knee_train_read_bar},
    {"Hugging Face metrics",
     {"'loss':", "'eval_loss':", "train_runtime", "\"log_history\"", "'loss' :"},
     hf,
     TRAIN_LAST_RESORT,
     knee_train_read_line},
    {"nanoGPT evaluation", {"val loss "}, NULL, TRAIN_LAST_RESORT, knee_train_read_line},
    {"llm.c losses", {" trl:", " tel:"}, llmc_main, TRAIN_LAST_RESORT, NULL},
    {"key-value lines",
     {"loss:",  "loss=",  "loss ", "Loss ",    "Loss:",   "loss\":", "loss[",  "time:",
      "time=",  "Time ",  "Loss=", "imer:",    "tok/s;",  "okens/s", "teps/s", "_cost:",
      "lapsed", "t/sec ", "s/sec", "amples/s", "mages/s", "img/s",   " time "},
     NULL,
     TRAIN_LAST_RESORT,
     knee_train_read_line},
    {"lines with time stamps", {NULL}, NULL, TRAIN_LAST_RESORT, NULL},
};
const size_t knee_train_format_count = sizeof knee_train_formats / sizeof *knee_train_formats;

unsigned knee_train_format_named(const char *name)
{
    unsigned f = 0;
    while (f + 1 < knee_train_format_count && strcmp(knee_train_formats[f].name, name) != 0)
        f++;
    return f;
}

const struct knee_train_key *knee_train_key_find(const struct knee_train_key *keys,
                                                 const char *name, size_t length)
{
    for (; keys && keys->name; keys++)
        if (keys->name[0] == name[0] && strncmp(keys->name, name, length) == 0 &&
            keys->name[length] == '\0')
            return keys;
    return NULL;
}
