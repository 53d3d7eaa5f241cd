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

/* Megatron-LM, Megatron-DeepSpeed, GPT-NeoX, Primus, Megatron-Bridge. */
static const struct train_key megatron[] = {
    {"iteration", TRAIN_STEP, 1},
    {"elapsed_time_per_iteration_ms", TRAIN_SECONDS, 1e-3},
    {"global_batch_size", TRAIN_BATCH, 1},
    {"consumed_samples", TRAIN_SAMPLES, 1},
    {"lm_loss", TRAIN_LOSS, 1},
    {"throughput_per_gpu_tflop_s_gpu", TRAIN_TFLOPS, 1},
    {"compute_per_gpu_tflop_s_gpu", TRAIN_TFLOPS, 1},
    {"approx_flops_per_gpu", TRAIN_TFLOPS, 1},
    {"tflops", TRAIN_TFLOPS, 1},
    {"samples_sec", TRAIN_SAMPLES_PER_S, 1},
    {"samples_per_second", TRAIN_SAMPLES_PER_S, 1},
    {"tokens_per_gpu_tokens_s_gpu", TRAIN_WORKER_TOKENS, 1},
    {"tokens_s_gpu_inst_harmonic_mean", TRAIN_WORKER_TOKENS, 1},
    {"tokens_per_gpu_per_second_tgs", TRAIN_WORKER_TOKENS, 1},
    {"validation_loss_at_iteration", TRAIN_STEP, 1},
    {"lm_loss_value", TRAIN_EVAL, 1},
    END};
static const struct train_key bridge[] = {
    {"step_time", TRAIN_SECONDS, 1}, {"gpu_utilization", TRAIN_TFLOPS, 1}, END};
static const struct train_key nemo[] = {{"iteration", TRAIN_STEP, 1},
                                        {"global_step", TRAIN_STEP, 1},
                                        {"global_batch_size", TRAIN_BATCH, 1},
                                        {"reduced_train_loss", TRAIN_LOSS, 1},
                                        {"val_loss", TRAIN_EVAL, 1},
                                        {"train_step_timing_in_s", TRAIN_SECONDS, 1},
                                        {"consumed_samples", TRAIN_SAMPLES, 1},
                                        {"tflops_per_gpu", TRAIN_TFLOPS, 1},
                                        {"tokens_per_sec_per_gpu", TRAIN_WORKER_TOKENS, 1},
                                        END};
static const struct train_key nanotron[] = {{"iteration", TRAIN_STEP, 1},
                                            {"time_per_iteration_ms", TRAIN_SECONDS, 1e-3},
                                            {"elapsed_time_per_iteration_ms", TRAIN_SECONDS, 1e-3},
                                            {"tokens_per_sec", TRAIN_TOKENS_PER_S, 1},
                                            {"tokens_per_sec_per_gpu", TRAIN_WORKER_TOKENS, 1},
                                            {"model_tflops_per_gpu", TRAIN_TFLOPS, 1},
                                            {"global_batch_size", TRAIN_BATCH_TOKENS, 1},
                                            {"lm_loss", TRAIN_LOSS, 1},
                                            END};
static const struct train_key pipeline[] = {{"steps", TRAIN_STEP, 1},
                                            {"loss", TRAIN_LOSS, 1},
                                            {"iter_time_s", TRAIN_SECONDS, 1},
                                            {"samples_sec", TRAIN_SAMPLES_PER_S, 1},
                                            END};
static const struct train_key chat[] = {
    {"e2e_latency", TRAIN_SECONDS, 1}, {"cursamplespersec", TRAIN_SAMPLES_PER_S, 1}, END};
static const struct train_key torchtitan[] = {{"step", TRAIN_STEP, 1},
                                              {"loss", TRAIN_LOSS, 1},
                                              {"tps", TRAIN_WORKER_TOKENS, 1},
                                              {"wps", TRAIN_WORKER_TOKENS, 1},
                                              {"tflops", TRAIN_TFLOPS, 1},
                                              {"global_avg_loss", TRAIN_LOSS, 1},
                                              {"throughput_tps", TRAIN_WORKER_TOKENS, 1},
                                              {"end_to_end_s", TRAIN_SECONDS, 1},
                                              {"validation_loss", TRAIN_EVAL, 1},
                                              END};
/* Its validation says "validate step: 20  loss: 3.1". */
static const struct train_key torchtitan_eval[] = {
    {"validate_step", TRAIN_STEP, 1}, {"loss", TRAIN_EVAL, 1}, END};
static const struct train_key lsai[] = {{"step", TRAIN_STEP, 1},
                                        {"loss", TRAIN_LOSS, 1},
                                        {"tokens_per_second", TRAIN_WORKER_TOKENS, 1},
                                        {"global_tokens_sec", TRAIN_TOKENS_PER_S, 1},
                                        {"tflops", TRAIN_TFLOPS, 1},
                                        {"global_batch_size", TRAIN_BATCH, 1},
                                        END};
static const struct train_key maxtext[] = {{"completed_step", TRAIN_STEP, 1},
                                           {"seconds", TRAIN_SECONDS, 1},
                                           {"tflop_s_device", TRAIN_TFLOPS, 1},
                                           {"tflop_s", TRAIN_TFLOPS, 1},
                                           {"tokens_s_device", TRAIN_WORKER_TOKENS, 1},
                                           {"loss", TRAIN_LOSS, 1},
                                           END};
static const struct train_key paddle_trainer[] = {
    {"global_step", TRAIN_STEP, 1},
    {"loss", TRAIN_LOSS, 1},
    {"interval_runtime", TRAIN_INTERVAL, 1},
    {"interval_steps_per_second", TRAIN_STEPS_PER_S, 1},
    {"interval_samples_per_second", TRAIN_SAMPLES_PER_S, 1},
    {"interval_tokens_per_second_per_device", TRAIN_WORKER_TOKENS, 1},
    {"interval_hardware_tflops_per_device", TRAIN_TFLOPS, 1},
    END};
static const struct train_key paddle[] = {
    {"total_step", TRAIN_STEP, 1},   {"tobal_step", TRAIN_STEP, 1}, /* as it is spelled */
    {"global_step", TRAIN_STEP, 1},  {"batch", TRAIN_STEP, 1},
    {"loss", TRAIN_LOSS, 1},         {"avg_batch_cost", TRAIN_SECONDS, 1},
    {"speed", TRAIN_STEPS_PER_S, 1}, {"ips_total", TRAIN_TOKENS_PER_S, 1},
    {"ips", TRAIN_WORKER_TOKENS, 1}, END};
static const struct train_key paddle_words[] = {{"step_idx", TRAIN_STEP, 1},
                                                {"avg_loss", TRAIN_LOSS, 1},
                                                {"batch_cost", TRAIN_SECONDS, 1},
                                                {"ips", TRAIN_WORKER_TOKENS, 1},
                                                END};
static const struct train_key dllogger[] = {{"took", TRAIN_SECONDS, 1},
                                            {"loss", TRAIN_LOSS, 1},
                                            {"training_iteration", TRAIN_STEP, 1},
                                            {"iteration", TRAIN_STEP, 1},
                                            {"average_loss", TRAIN_LOSS, 1},
                                            {"step_loss", TRAIN_LOSS, 1},
                                            {"total_loss", TRAIN_LOSS, 1},
                                            {"throughput_train", TRAIN_SAMPLES_PER_S, 1},
                                            END};
static const struct train_key fairseq[] = {
    {"step", TRAIN_STEP, 1},         {"avg_loss", TRAIN_LOSS, 1},
    {"avg_tokens", TRAIN_TOKENS, 1}, {"tokens_s", TRAIN_TOKENS_PER_S, 1},
    {"walltime", TRAIN_ELAPSED, 1},  END};
static const struct train_key fairseq_train[] = {
    {"loss", TRAIN_LOSS, 1},        {"num_updates", TRAIN_STEP, 1},
    {"wps", TRAIN_TOKENS_PER_S, 1}, {"ups", TRAIN_STEPS_PER_S, 1},
    {"bsz", TRAIN_BATCH, 1},        {"wpb", TRAIN_TOKENS, 1},
    {"wall", TRAIN_ELAPSED, 1},     END};
static const struct train_key modded[] = {{"step", TRAIN_STEP, 1},
                                          {"train_loss", TRAIN_LOSS, 1},
                                          {"val_loss", TRAIN_EVAL, 1},
                                          {"train_time", TRAIN_ELAPSED, 1e-3},
                                          {"step_time", TRAIN_SECONDS, 1e-3},
                                          END};
static const struct train_key llmc_main[] = {
    {"s", TRAIN_STEP, 1}, {"trl", TRAIN_LOSS, 1}, {"tel", TRAIN_EVAL, 1}, END};
static const struct train_key internlm[] = {{"step", TRAIN_STEP, 1},
                                            {"loss", TRAIN_LOSS, 1},
                                            {"tgs_tokens_gpu_second", TRAIN_WORKER_TOKENS, 1},
                                            {"tflops", TRAIN_TFLOPS, 1},
                                            END};
static const struct train_key litgpt[] = {{"step", TRAIN_STEP, 1},
                                          {"loss_train", TRAIN_LOSS, 1},
                                          {"iter_time", TRAIN_PART, 1e-3},
                                          {"loss", TRAIN_LOSS, 1},
                                          END};
static const struct train_key nanogpt[] = {
    {"iter", TRAIN_STEP, 1}, {"loss", TRAIN_LOSS, 1}, {"time", TRAIN_SECONDS, 1e-3}, END};
static const struct train_key nanogpt_eval[] = {
    {"step", TRAIN_STEP, 1}, {"val_loss", TRAIN_EVAL, 1}, {"iter", TRAIN_STEP, 1}, END};
static const struct train_key nanochat[] = {{"step", TRAIN_STEP, 1},
                                            {"loss", TRAIN_LOSS, 1},
                                            {"dt", TRAIN_SECONDS, 1e-3},
                                            {"tok_sec", TRAIN_TOKENS_PER_S, 1},
                                            END};
/* Composer, OLMo, OLMo-core: a block of lines for each step, one of which has the rate. */
static const struct train_key composer[] = {
    {"train_throughput_batches_per_sec", TRAIN_STEPS_PER_S, 1},
    {"throughput_batches_per_sec", TRAIN_STEPS_PER_S, 1},
    {"throughput_device_batches_per_second", TRAIN_STEPS_PER_S, 1},
    {"throughput_device_bps", TRAIN_STEPS_PER_S, 1},
    END};
/* fms-fsdp, NeMo-RL: likewise, with the seconds. */
static const struct train_key step_lines[] = {
    {"current_step_time", TRAIN_SECONDS, 1}, {"total_step_time", TRAIN_SECONDS, 1}, END};
static const struct train_key verl[] = {{"step", TRAIN_STEP, 1},
                                        {"timing_s_step", TRAIN_SECONDS, 1},
                                        {"perf_time_per_step", TRAIN_SECONDS, 1},
                                        {"perf_throughput", TRAIN_WORKER_TOKENS, 1},
                                        END};
/* The FSDP example of awsome-distributed-training: "Batch 34 Loss: 7.9, Speed: 5.80 samples/sec,
 * lr: 0.0001" */
static const struct train_key batch_lines[] = {
    {"batch", TRAIN_STEP, 1}, {"loss", TRAIN_LOSS, 1}, {"speed", TRAIN_SAMPLES_PER_S, 1}, END};
static const struct train_key picotron[] = {{"step", TRAIN_STEP, 1},
                                            {"loss", TRAIN_LOSS, 1},
                                            {"time_step", TRAIN_SECONDS, 1e-3},
                                            {"global_batch_size", TRAIN_TOKENS, 1},
                                            {"tokens_s", TRAIN_TOKENS_PER_S, 1},
                                            {"tokens_s_gpu", TRAIN_WORKER_TOKENS, 1},
                                            END};
static const struct train_key automodel[] = {
    {"step", TRAIN_STEP, 1}, {"loss", TRAIN_LOSS, 1}, {"tps", TRAIN_TOKENS_PER_S, 1}, END};
static const struct train_key open_clip[] = {
    {"batch_t", TRAIN_SECONDS, 1}, {"loss", TRAIN_LOSS, 1}, END};
/* "global step 5: loss = 62.5 (20.205 sec/step)", "global_step/sec: 4.2" */
static const struct train_key tensorflow[] = {{"global_step", TRAIN_STEP, 1},
                                              {"loss", TRAIN_LOSS, 1},
                                              {"global_step_sec", TRAIN_STEPS_PER_S, 1},
                                              END};
static const struct train_key deepspeed[] = {{"global_step", TRAIN_STEP, 1},
                                             {"currsamplespersec", TRAIN_SAMPLES_PER_S, 1},
                                             {"samplespersec", TRAIN_SAMPLES_PER_S, 1},
                                             END};
static const struct train_key trainer_log[] = {{"current_steps", TRAIN_STEP, 1},
                                               {"loss", TRAIN_LOSS, 1},
                                               {"eval_loss", TRAIN_EVAL, 1},
                                               {"throughput", TRAIN_TOKENS_PER_S, 1},
                                               END};
static const struct train_key hf[] = {{"loss", TRAIN_LOSS, 1},
                                      {"eval_loss", TRAIN_EVAL, 1},
                                      {"train_runtime", TRAIN_RUNTIME, 1},
                                      {"train_steps_per_second", TRAIN_STEPS_PER_S, 1},
                                      {"step", TRAIN_STEP, 1},
                                      {"global_step", TRAIN_RUN_STEPS, 1},
                                      END};
static const struct train_key lightning[] = {{"train_step_timing_in_s", TRAIN_SECONDS, 1},
                                             {"global_step", TRAIN_STEP, 1},
                                             {"loss", TRAIN_LOSS, 1},
                                             {"reduced_train_loss", TRAIN_LOSS, 1},
                                             END};

/* Tables and lines of JSON of any origin: wandb, CSV loggers, Automodel, one's own. */
const struct train_key knee_train_table_keys[] = {
    {"step", TRAIN_STEP, 1},
    {"global_step", TRAIN_STEP, 1},
    {"iteration", TRAIN_STEP, 1},
    {"iter", TRAIN_STEP, 1},
    {"trainer_global_step", TRAIN_STEP, 1},
    {"train_global_step", TRAIN_STEP, 1},
    {"step_s", TRAIN_SECONDS, 1},
    {"step_time", TRAIN_SECONDS, 1},
    {"step_time_s", TRAIN_SECONDS, 1},
    {"step_time_ms", TRAIN_SECONDS, 1e-3},
    {"step_ms", TRAIN_SECONDS, 1e-3},
    {"train_step_timing_in_s", TRAIN_SECONDS, 1},
    {"time_per_iteration_ms", TRAIN_SECONDS, 1e-3},
    {"iteration_time", TRAIN_SECONDS, 1},
    {"perf_step_time", TRAIN_SECONDS, 1},
    {"perf_time_per_step", TRAIN_SECONDS, 1},
    {"perf_step_time_seconds", TRAIN_SECONDS, 1},
    {"time_metrics_end_to_end_s", TRAIN_SECONDS, 1},
    {"train_step_time", TRAIN_SECONDS, 1},
    {"train_step_timing", TRAIN_SECONDS, 1},
    {"timing_s_step", TRAIN_SECONDS, 1},
    {"throughput_step_time", TRAIN_SECONDS, 1},
    {"seconds_per_step", TRAIN_SECONDS, 1},
    {"sec_per_step", TRAIN_SECONDS, 1},
    {"iter_time", TRAIN_SECONDS, 1},
    {"dt_ms", TRAIN_SECONDS, 1e-3},
    {"runtime", TRAIN_ELAPSED, 1}, /* wandb: _runtime */
    {"elapsed_s", TRAIN_ELAPSED, 1},
    {"timestamp", TRAIN_STAMP, 1},
    {"tps", TRAIN_TOKENS_PER_S, 1},
    {"tps_per_gpu", TRAIN_WORKER_TOKENS, 1},
    {"tokens_per_s", TRAIN_TOKENS_PER_S, 1},
    {"tokens_per_sec", TRAIN_TOKENS_PER_S, 1},
    {"tokens_per_second", TRAIN_TOKENS_PER_S, 1},
    {"tokens_per_second_per_gpu", TRAIN_WORKER_TOKENS, 1},
    {"tokens_per_sec_per_gpu", TRAIN_WORKER_TOKENS, 1},
    {"perf_tokens_per_sec", TRAIN_TOKENS_PER_S, 1},
    {"train_tokens_per_sec", TRAIN_TOKENS_PER_S, 1},
    {"throughput_tokens_per_sec", TRAIN_TOKENS_PER_S, 1},
    {"throughput_tps", TRAIN_WORKER_TOKENS, 1},
    {"throughput_device_tokens_per_sec", TRAIN_WORKER_TOKENS, 1},
    {"samples_per_s", TRAIN_SAMPLES_PER_S, 1},
    {"samples_per_sec", TRAIN_SAMPLES_PER_S, 1},
    {"samples_per_second", TRAIN_SAMPLES_PER_S, 1},
    {"throughput_samples_per_sec", TRAIN_SAMPLES_PER_S, 1},
    {"num_tokens_per_step", TRAIN_TOKENS, 1},
    {"tokens", TRAIN_TOKENS, 1},
    {"batch", TRAIN_BATCH, 1},
    {"batch_size", TRAIN_BATCH, 1},
    {"global_batch", TRAIN_BATCH, 1},
    {"global_batch_size", TRAIN_BATCH, 1},
    {"consumed_samples", TRAIN_SAMPLES, 1},
    {"samples", TRAIN_SAMPLES, 1},
    {"loss", TRAIN_LOSS, 1},
    {"train_loss", TRAIN_LOSS, 1},
    {"lm_loss", TRAIN_LOSS, 1},
    {"reduced_train_loss", TRAIN_LOSS, 1},
    {"loss_metrics_global_avg_loss", TRAIN_LOSS, 1},
    {"eval_loss", TRAIN_EVAL, 1},
    {"val_loss", TRAIN_EVAL, 1},
    {"validation_loss", TRAIN_EVAL, 1},
    {"tflops", TRAIN_TFLOPS, 1},
    {"perf_tflops", TRAIN_TFLOPS, 1},
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

static void take_pairs(struct train_line line, const struct train_key *keys, struct train_raw *raw)
{
    struct train_pairs pairs = {line.text.at, line.text.at + line.text.length, false};
    struct train_pair pair;
    while (knee_train_pairs_next(&pairs, &pair)) {
        const struct train_key *key = knee_train_key_find(keys, pair.name, pair.length);
        if (key)
            raw->value[key->what] = knee_train_value(key, &pair);
    }
}

/* Whether a bar with this before it is the training's: nothing, or a word for it ("Epoch 0:", the
 * "1|20|Loss: 1.5:" of torchtune). "Loading:", "Validation DataLoader 0:" are others. */
static bool training_bar(struct knee_slice name)
{
    static const char *const words[] = {"poch", "rain", "tep", "teration", "oss"};
    static const char *const others[] = {"alid", "val", "anity", "etch", "oad", "oken", "split"};
    if (name.length == 0)
        return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (knee_slice_has(name, others[i]))
            return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (knee_slice_has(name, words[i]))
            return true;
    return false;
}

/* Takes "5/16", "614/?" or "12it" off the end of what stands before a bar's bracket, then the bar,
 * so that its name is left. False: it is no bar. */
static bool split_bar(struct knee_slice head, struct knee_slice *name, struct knee_slice *count)
{
    head = knee_slice_trim(head);
    bool open = head.length > 2 && memcmp(head.at + head.length - 2, "it", 2) == 0;
    size_t end = open ? head.length - 2 : head.length, start = end;
    while (start > 0 && strchr("0123456789/?", head.at[start - 1]) && head.at[start - 1])
        start--;
    *count = (struct knee_slice){head.at + start, end - start};
    size_t percent = knee_slice_find(head, "%|");
    *name = (struct knee_slice){head.at, percent == head.length ? start : percent};
    while (percent < head.length && name->length > 0 && name->at[name->length - 1] >= '0' &&
           name->at[name->length - 1] <= '9')
        name->length--;
    *name = knee_slice_trim(*name);
    bool total = knee_slice_has(*count, "/");
    return count->length > 0 && (open ? !total : total && percent < head.length);
}

/* "5/16 [04:59<10:57, 59.78s/it]": bars of all ranks come one after the other. */
static bool read_bar(struct knee_train_reader *reader, struct train_line line,
                     struct train_raw *raw)
{
    (void)reader;
    struct knee_slice text = line.text, name, count, piece;
    size_t bracket = line.mark;
    while (bracket > 0 && text.at[bracket] != '[')
        bracket--;
    if (!split_bar((struct knee_slice){text.at, bracket}, &name, &count) || !training_bar(name))
        return false;
    const char *p = count.at;
    raw->value[TRAIN_STEP] = knee_train_number(&p, count.at + count.length);
    struct knee_slice clock = knee_slice_from(text, bracket + 1);
    knee_slice_until(&clock, knee_slice_has(clock, "<") ? '<' : ',', &piece);
    raw->value[TRAIN_ELAPSED] = knee_train_clock(piece);
    size_t loss = knee_slice_find(clock, "loss=");
    if (loss < clock.length)
        raw->value[TRAIN_LOSS] = number_after(clock, "loss=");
    return raw->value[TRAIN_STEP] > 0;
}

static bool read_trainer_log(struct knee_train_reader *reader, struct train_line line,
                             struct train_raw *raw)
{
    (void)reader;
    take_pairs(line, trainer_log, raw);
    raw->value[TRAIN_ELAPSED] = knee_train_clock(quoted(line.text, "\"elapsed_time\":"));
    return true;
}

/* The micro-batches of a step, up to the one that is marked. */
static bool read_litgpt(struct knee_train_reader *reader, struct train_line line,
                        struct train_raw *raw)
{
    take_pairs(line, litgpt, raw);
    reader->part_s += raw->value[TRAIN_PART];
    if (!knee_slice_has(line.text, "(step)") && !knee_slice_has(line.text, "(optimizer.step)")) {
        raw->value[TRAIN_LOSS] = NAN;
        return true;
    }
    raw->value[TRAIN_SECONDS] = reader->part_s;
    reader->part_s = 0;
    return true;
}

/* nanoGPT, Lit-LLaMA: other lines have a time too, but no iteration. */
static bool read_nanogpt(struct knee_train_reader *reader, struct train_line line,
                         struct train_raw *raw)
{
    (void)reader;
    take_pairs(line, nanogpt, raw);
    return !isnan(raw->value[TRAIN_STEP]);
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
    static const struct train_key keys[] = {
        {"step", TRAIN_STEP, 1}, {"loss", TRAIN_LOSS, 1}, {"train_loss", TRAIN_LOSS, 1}, END};
    (void)reader;
    take_pairs(line, keys, raw);
    raw->value[TRAIN_SECONDS] = 1e-3 * number_before(line.text, " ms");
    raw->value[TRAIN_TOKENS_PER_S] = number_before(line.text, " tok/s");
    return !isnan(raw->value[TRAIN_STEP]);
}

/* "[INFO] ... 0/40, SamplesPerSec=83.5": the number after the stroke is the step. */
static bool read_deepspeed(struct knee_train_reader *reader, struct train_line line,
                           struct train_raw *raw)
{
    (void)reader;
    take_pairs(line, deepspeed, raw);
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
    take_pairs(line, dllogger, raw);
    return !isnan(raw->value[TRAIN_STEP]);
}

static bool read_torchtitan(struct knee_train_reader *reader, struct train_line line,
                            struct train_raw *raw)
{
    (void)reader;
    take_pairs(line, knee_slice_has(line.text, "validate step:") ? torchtitan_eval : torchtitan,
               raw);
    return true;
}

/* "step 4 | epoch 0 | loss 1.55 | ... | mem 11.66 GiB | tps 6924.50(3462.25/gpu) | ..." */
static bool read_automodel(struct knee_train_reader *reader, struct train_line line,
                           struct train_raw *raw)
{
    (void)reader;
    take_pairs(line, automodel, raw);
    raw->value[TRAIN_WORKER_TOKENS] = number_before(line.text, "/gpu)");
    return true;
}

static bool read_tensorflow(struct knee_train_reader *reader, struct train_line line,
                            struct train_raw *raw)
{
    (void)reader;
    take_pairs(line, tensorflow, raw);
    raw->value[TRAIN_SECONDS] = number_before(line.text, " sec/step)");
    return true;
}

/* ---- MLPerf: one event a line ---- */

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
        raw->value[TRAIN_SECONDS] = seconds;
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
    static const struct train_key stats[] = {{"train_step_time", TRAIN_SECONDS, 1},
                                             {"train_step_timing", TRAIN_SECONDS, 1},
                                             {"throughput", TRAIN_SAMPLES_PER_S, 1},
                                             {"reduced_train_loss", TRAIN_LOSS, 1},
                                             {"loss", TRAIN_LOSS, 1},
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
        take_pairs(line, stats, raw);
        tokens_or_samples(facts, raw);
    } else if (knee_slice_is(key, "train_loss"))
        raw->value[TRAIN_LOSS] = value;
    else if (knee_slice_is(key, "eval_accuracy"))
        raw->value[TRAIN_EVAL] = value;
    else if (knee_slice_is(key, "block_start")) {
        facts->block_start_s = now_s;
        facts->block_samples = samples;
        facts->block_tokens = number_after(line.text, "\"epoch_count\":");
    } else if (knee_slice_is(key, "block_stop"))
        block_stop(facts, now_s, samples, raw);
    return true;
}

/* ---- The table ---- */

const struct train_format knee_train_formats[] = {
    {"Megatron-LM",
     {"elapsed time per iteration (ms):", "elapsed_time_per_iteration_ms=",
      "validation loss at iteration"},
     megatron,
     TRAIN_NO_STAMP,
     NULL},
    {"NeMo", {"train_step_timing in s:"}, nemo, TRAIN_NO_STAMP | TRAIN_COUNT_LAST, NULL},
    {"nanotron", {"time_per_iteration_ms:"}, nanotron, TRAIN_NO_STAMP | TRAIN_SUFFIXES, NULL},
    {"Megatron-Bridge", {"Step Time :"}, bridge, TRAIN_NO_STAMP | TRAIN_EACH_LINE, NULL},
    {"DeepSpeed pipeline", {"iter time (s):"}, pipeline, TRAIN_NO_STAMP, NULL},
    {"DeepSpeed-Chat", {"E2E latency="}, chat, TRAIN_NO_STAMP | TRAIN_EACH_LINE, NULL},
    {"torchtitan",
     {" tps: ", "mtps: ", " wps: ", "mwps: ", " end_to_end(s)="},
     torchtitan,
     0,
     read_torchtitan},
    {"lsai", {"Tokens per second:"}, lsai, 0, NULL},
    {"MaxText", {"completed step:"}, maxtext, TRAIN_NO_STAMP, NULL},
    {"PaddleNLP trainer", {"interval_steps_per_second:"}, paddle_trainer, TRAIN_NO_STAMP, NULL},
    {"PaddleNLP", {"avg_batch_cost:", " step/s, "}, paddle, TRAIN_NO_STAMP, NULL},
    {"PaddleNLP words", {"step_idx:"}, paddle_words, TRAIN_NO_STAMP, NULL},
    {"DLLogger",
     {"Training Iteration:", "throughput_train", "frames/s | took "},
     dllogger,
     TRAIN_EACH_LINE,
     NULL},
    {"fairseq (NVIDIA)", {"|walltime "}, fairseq, TRAIN_NO_STAMP, NULL},
    {"fairseq", {"train_inner | ", "[train_inner]"}, fairseq_train, TRAIN_NO_STAMP, NULL},
    {"MLPerf", {":::MLLOG"}, NULL, TRAIN_NO_STAMP | TRAIN_EACH_LINE, read_mllog},
    {"modded-nanogpt", {"train_time:"}, modded, TRAIN_NO_STAMP, NULL},
    {"InternLM", {"tgs (tokens/gpu/second)="}, internlm, 0, NULL},
    {"LitGPT", {"iter time: "}, litgpt, TRAIN_NO_STAMP, read_litgpt},
    {"nanochat", {"tok/sec:"}, nanochat, TRAIN_NO_STAMP, NULL},
    {"llm.c", {" MFU | ", " tok/s)"}, NULL, TRAIN_NO_STAMP, read_llmc},
    {"nanoGPT", {", time ", ", time: "}, NULL, TRAIN_NO_STAMP, read_nanogpt},
    {"Composer", {"throughput/batches_per_sec:"}, composer, TRAIN_NO_STAMP | TRAIN_EACH_LINE, NULL},
    {"OLMo",
     {"throughput/device/batches_per_second=", "throughput/device/BPS="},
     composer,
     TRAIN_NO_STAMP | TRAIN_EACH_LINE,
     NULL},
    {"fms-fsdp", {"current step time:"}, step_lines, TRAIN_NO_STAMP | TRAIN_EACH_LINE, NULL},
    {"NeMo-RL", {"Total step time:"}, step_lines, TRAIN_NO_STAMP | TRAIN_EACH_LINE, NULL},
    {"verl", {"timing_s/step:"}, verl, TRAIN_NO_STAMP, NULL},
    {"FSDP example", {" samples/sec, lr: "}, batch_lines, 0, NULL},
    {"Automodel", {" GiB | tps "}, NULL, 0, read_automodel},
    {"picotron", {"Tokens/s/GPU: "}, picotron, TRAIN_NO_STAMP | TRAIN_SUFFIXES, NULL},
    {"OpenCLIP", {"Batch (t):"}, open_clip, TRAIN_NO_STAMP | TRAIN_EACH_LINE, NULL},
    {"TensorFlow", {" sec/step)", "global_step/sec:"}, NULL, TRAIN_NO_STAMP, read_tensorflow},
    {"DeepSpeed", {"SamplesPerSec="}, NULL, 0, read_deepspeed},
    {"LLaMA-Factory", {"\"current_steps\""}, trainer_log, TRAIN_NO_STAMP, read_trainer_log},
    {"Lightning", {"train_step_timing in s="}, lightning, TRAIN_NO_STAMP | TRAIN_EACH_LINE, NULL},
    {"DLLogger JSON", {"\"elapsedtime\":"}, NULL, 0, read_dllogger_json},
    {"JSON lines", {"step\":"}, knee_train_table_keys, 0, NULL},
    {"table", {NULL}, knee_train_table_keys, 0, NULL},
    {"TensorBoard", {NULL}, knee_train_table_keys, 0, NULL},
    {"Hugging Face Trainer",
     {"s/it]", "s/it,", "it/s]", "it/s,"},
     NULL,
     TRAIN_NO_STAMP | TRAIN_LAST_RESORT,
     read_bar},
    {"bar",
     {"s/step,", "s/step]", "step/s,", "step/s]", "s/batch,", "batch/s,"},
     NULL,
     TRAIN_NO_STAMP | TRAIN_LAST_RESORT,
     read_bar},
    {"Hugging Face metrics",
     {"'loss':", "'eval_loss':", "train_runtime", "\"log_history\""},
     hf,
     TRAIN_NO_STAMP | TRAIN_LAST_RESORT,
     NULL},
    {"nanoGPT evaluation", {"val loss "}, nanogpt_eval, TRAIN_NO_STAMP | TRAIN_LAST_RESORT, NULL},
    {"llm.c losses", {" trl:", " tel:"}, llmc_main, TRAIN_NO_STAMP | TRAIN_LAST_RESORT, NULL},
};
const size_t knee_train_format_count = sizeof knee_train_formats / sizeof *knee_train_formats;

const char *knee_train_format_name(size_t row)
{
    return row < knee_train_format_count ? knee_train_formats[row].name : NULL;
}

const struct train_key *knee_train_key_find(const struct train_key *keys, const char *name,
                                            size_t length)
{
    for (; keys && keys->name; keys++)
        if (keys->name[0] == name[0] && strncmp(keys->name, name, length) == 0 &&
            keys->name[length] == '\0')
            return keys;
    return NULL;
}
