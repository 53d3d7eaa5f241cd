/* SPDX-License-Identifier: MIT */
/*
 * What names mean. Frameworks write the same few quantities under some hundred names; a name that
 * means the same wherever it is used stands here once, and formats list only those that they use
 * otherwise. Units say as much as names: 5 "it/s", 5 "tokens/s" and 5 "s/it" need no name at all.
 */
#include "read/run/train_log.h"

#include <math.h>
#include <string.h>

static const struct train_key rows[] = {
    {"step", TRAIN_STEP, 1},
    {"global_step", TRAIN_STEP, 1},
    {"global_step_max_steps", TRAIN_STEP, 1},
    {"iteration", TRAIN_STEP, 1},
    {"training_iteration", TRAIN_STEP, 1},
    {"iter", TRAIN_STEP, 1},
    {"batch", TRAIN_STEP, 1},
    {"num_updates", TRAIN_STEP, 1},
    {"update", TRAIN_STEP, 1},
    {"completed_step", TRAIN_STEP, 1},
    {"current_steps", TRAIN_STEP, 1},
    {"step_idx", TRAIN_STEP, 1},
    {"steps", TRAIN_STEP, 1},
    {"up", TRAIN_STEP, 1},
    {"iters", TRAIN_STEP, 1},
    {"batch_id", TRAIN_STEP, 1},
    {"batch_idx", TRAIN_STEP, 1},
    {"iter_num", TRAIN_STEP, 1},
    {"global_iter", TRAIN_STEP, 1},
    {"train_iter", TRAIN_STEP, 1},
    {"training_step", TRAIN_STEP, 1},
    {"optimizer_step", TRAIN_STEP, 1},
    {"total_step", TRAIN_STEP, 1},
    {"tobal_step", TRAIN_STEP, 1}, /* as PaddleNLP spells it */
    {"trainer_global_step", TRAIN_STEP, 1},
    {"train_global_step", TRAIN_STEP, 1},
    {"train_step", TRAIN_STEP, 1},
    {"validation_loss_at_iteration", TRAIN_STEP, 1},
    {"time", TRAIN_TIME, 1},
    {"step_s", TRAIN_SECONDS, 1},
    {"step_time", TRAIN_SECONDS, 1},
    {"step_time_s", TRAIN_SECONDS, 1},
    {"step_time_ms", TRAIN_SECONDS, 1e-3},
    {"step_ms", TRAIN_SECONDS, 1e-3},
    {"ms_step", TRAIN_SECONDS, 1e-3},
    {"time_step", TRAIN_SECONDS, 1e-3},
    {"time_per_step", TRAIN_SECONDS, 1},
    {"per_step_time", TRAIN_SECONDS, 1},
    {"current_step_time", TRAIN_SECONDS, 1},
    {"total_step_time", TRAIN_SECONDS, 1},
    {"sec_per_step", TRAIN_SECONDS, 1},
    {"seconds_per_step", TRAIN_SECONDS, 1},
    {"sec_step", TRAIN_SECONDS, 1},
    {"train_step_time", TRAIN_SECONDS, 1},
    {"train_step_timing", TRAIN_SECONDS, 1},
    {"train_step_timing_in_s", TRAIN_SECONDS, 1},
    {"timing_s_step", TRAIN_SECONDS, 1},
    {"throughput_step_time", TRAIN_SECONDS, 1},
    {"time_metrics_end_to_end_s", TRAIN_SECONDS, 1},
    {"end_to_end_s", TRAIN_SECONDS, 1},
    {"iter_time", TRAIN_SECONDS, 1},
    {"iter_time_s", TRAIN_SECONDS, 1},
    {"iter_time_ms", TRAIN_SECONDS, 1e-3},
    {"iteration_time", TRAIN_SECONDS, 1},
    {"time_per_iteration", TRAIN_SECONDS, 1},
    {"time_per_iteration_ms", TRAIN_SECONDS, 1e-3},
    {"elapsed_time_per_iteration_ms", TRAIN_SECONDS, 1e-3},
    {"sec_iter", TRAIN_SECONDS, 1},
    {"s_it", TRAIN_SECONDS, 1},
    {"batch_time", TRAIN_SECONDS, 1},
    {"batch_cost", TRAIN_SECONDS, 1},
    {"avg_batch_cost", TRAIN_SECONDS, 1},
    {"batch_t", TRAIN_SECONDS, 1},
    {"train_time", TRAIN_SECONDS, 1},
    {"timer", TRAIN_SECONDS, 1},
    {"time_data", TRAIN_SECONDS, 1}, /* BasicSR: "time (data): 0.48 (0.002)" */
    {"dt", TRAIN_TIME, 1},
    {"dt_ms", TRAIN_SECONDS, 1e-3},
    {"last_time", TRAIN_TIME, 1},
    {"e2e_latency", TRAIN_SECONDS, 1},
    {"perf_step_time", TRAIN_SECONDS, 1},
    {"perf_time_per_step", TRAIN_SECONDS, 1},
    {"perf_step_time_seconds", TRAIN_SECONDS, 1},
    {"data_time", TRAIN_DATA_S, 1},
    {"data", TRAIN_DATA_S, 1},
    {"data_cost", TRAIN_DATA_S, 1},
    {"reader_cost", TRAIN_DATA_S, 1},
    {"avg_reader_cost", TRAIN_DATA_S, 1},
    {"time_metrics_data_loading_s", TRAIN_DATA_S, 1},
    {"backward_allreduce_microstep", TRAIN_COMM_S, 1e-3},
    {"elapsed_s", TRAIN_ELAPSED, 1},
    {"wall", TRAIN_ELAPSED, 1},
    {"walltime", TRAIN_ELAPSED, 1},
    {"train_wall", TRAIN_INTERVAL, 1}, /* fairseq: training since the line before */
    {"interval_runtime", TRAIN_INTERVAL, 1},
    {"it_sec", TRAIN_STEPS_PER_S, 1},
    {"iter_s", TRAIN_STEPS_PER_S, 1},
    {"it_s", TRAIN_STEPS_PER_S, 1},
    {"ups", TRAIN_STEPS_PER_S, 1},
    {"steps_s", TRAIN_STEPS_PER_S, 1},
    {"steps_sec", TRAIN_STEPS_PER_S, 1},
    {"updates_s", TRAIN_STEPS_PER_S, 1},
    {"updates_sec", TRAIN_STEPS_PER_S, 1},
    {"iter_per_sec", TRAIN_STEPS_PER_S, 1},
    {"iters_per_sec", TRAIN_STEPS_PER_S, 1},
    {"iterations_per_second", TRAIN_STEPS_PER_S, 1},
    {"batches_per_second", TRAIN_STEPS_PER_S, 1},
    {"steps_per_sec", TRAIN_STEPS_PER_S, 1},
    {"steps_per_second", TRAIN_STEPS_PER_S, 1},
    {"global_step_sec", TRAIN_STEPS_PER_S, 1},
    {"interval_steps_per_second", TRAIN_STEPS_PER_S, 1},
    {"train_throughput_batches_per_sec", TRAIN_STEPS_PER_S, 1},
    {"throughput_batches_per_sec", TRAIN_STEPS_PER_S, 1},
    {"throughput_device_batches_per_second", TRAIN_STEPS_PER_S, 1},
    {"throughput_device_bps", TRAIN_STEPS_PER_S, 1},
    {"train_speed_iter_s", TRAIN_RUN_RATE, 1}, /* ms-swift: since the start */
    {"train_speed_s_it", TRAIN_MEAN_S, 1},
    {"tokens_per_s", TRAIN_TOKENS_PER_S, 1},
    {"tokens_per_sec", TRAIN_TOKENS_PER_S, 1},
    {"tokens_per_second", TRAIN_TOKENS_PER_S, 1},
    {"tokens_s", TRAIN_TOKENS_PER_S, 1},
    {"tokens_sec", TRAIN_TOKENS_PER_S, 1},
    {"tok_sec", TRAIN_TOKENS_PER_S, 1},
    {"global_tokens_sec", TRAIN_TOKENS_PER_S, 1},
    {"perf_tokens_per_sec", TRAIN_TOKENS_PER_S, 1},
    {"train_tokens_per_sec", TRAIN_TOKENS_PER_S, 1},
    {"throughput_tokens_per_sec", TRAIN_TOKENS_PER_S, 1},
    {"wps", TRAIN_TOKENS_PER_S, 1},
    {"ips_total", TRAIN_TOKENS_PER_S, 1},
    {"tps_per_gpu", TRAIN_WORKER_TOKENS, 1},
    {"tokens_s_gpu", TRAIN_WORKER_TOKENS, 1},
    {"tokens_s_device", TRAIN_WORKER_TOKENS, 1},
    {"tokens_per_second_per_gpu", TRAIN_WORKER_TOKENS, 1},
    {"tokens_per_sec_per_gpu", TRAIN_WORKER_TOKENS, 1},
    {"tokens_per_gpu_tokens_s_gpu", TRAIN_WORKER_TOKENS, 1},
    {"tokens_s_gpu_inst_harmonic_mean", TRAIN_WORKER_TOKENS, 1},
    {"tokens_per_gpu_per_second_tgs", TRAIN_WORKER_TOKENS, 1},
    {"tgs_tokens_gpu_second", TRAIN_WORKER_TOKENS, 1},
    {"interval_tokens_per_second_per_device", TRAIN_WORKER_TOKENS, 1},
    {"throughput_tps", TRAIN_WORKER_TOKENS, 1},
    {"throughput_device_tokens_per_sec", TRAIN_WORKER_TOKENS, 1},
    {"perf_throughput", TRAIN_WORKER_TOKENS, 1},
    {"samples_sec", TRAIN_SAMPLES_PER_S, 1},
    {"samples_per_s", TRAIN_SAMPLES_PER_S, 1},
    {"samples_per_sec", TRAIN_SAMPLES_PER_S, 1},
    {"samples_per_second", TRAIN_SAMPLES_PER_S, 1},
    {"samplespersec", TRAIN_SAMPLES_PER_S, 1},
    {"currsamplespersec", TRAIN_SAMPLES_PER_S, 1},
    {"cursamplespersec", TRAIN_SAMPLES_PER_S, 1},
    {"throughput_samples_per_sec", TRAIN_SAMPLES_PER_S, 1},
    {"interval_samples_per_second", TRAIN_SAMPLES_PER_S, 1},
    {"wpb", TRAIN_TOKENS, 1},
    {"num_tokens_per_step", TRAIN_TOKENS, 1},
    {"global_batch_size", TRAIN_BATCH, 1},
    {"consumed_samples", TRAIN_SAMPLES, 1},
    {"loss", TRAIN_LOSS, 1},
    {"train_loss", TRAIN_LOSS, 1},
    {"lm_loss", TRAIN_LOSS, 1},
    {"avg_loss", TRAIN_LOSS, 1},
    {"average_loss", TRAIN_LOSS, 1},
    {"step_loss", TRAIN_LOSS, 1},
    {"total_loss", TRAIN_LOSS, 1},
    {"loss_train", TRAIN_LOSS, 1},
    {"reduced_train_loss", TRAIN_LOSS, 1},
    {"global_avg_loss", TRAIN_LOSS, 1},
    {"loss_metrics_global_avg_loss", TRAIN_LOSS, 1},
    {"eval_loss", TRAIN_EVAL, 1},
    {"val_loss", TRAIN_EVAL, 1},
    {"valid_loss", TRAIN_EVAL, 1},
    {"validation_loss", TRAIN_EVAL, 1},
    {"lm_loss_value", TRAIN_EVAL, 1},
    {"tflops", TRAIN_TFLOPS, 1},
    {"tflop_s", TRAIN_TFLOPS, 1},
    {"tflop_s_device", TRAIN_TFLOPS, 1},
    {"tflops_per_gpu", TRAIN_TFLOPS, 1},
    {"perf_tflops", TRAIN_TFLOPS, 1},
    {"model_tflops_per_gpu", TRAIN_TFLOPS, 1},
    {"throughput_per_gpu_tflop_s_gpu", TRAIN_TFLOPS, 1},
    {"compute_per_gpu_tflop_s_gpu", TRAIN_TFLOPS, 1},
    {"interval_hardware_tflops_per_device", TRAIN_TFLOPS, 1},
    {"number_of_skipped_iterations", TRAIN_SKIPPED, 1},
};
#define ROWS (sizeof rows / sizeof *rows)
_Static_assert(ROWS < 255, "a row's number and one more fit into a byte");

static unsigned bucket(unsigned hash)
{
    return (hash ^ hash >> 9) % TRAIN_WORDS_HASH;
}

void knee_train_words_init(struct train_words *words)
{
    memset(words, 0, sizeof *words);
    for (size_t i = ROWS; i-- > 0;) {
        unsigned hash = 0;
        for (const char *p = rows[i].name; *p; p++)
            hash = knee_train_hash(hash, *p);
        words->next[i] = words->first[bucket(hash)];
        words->first[bucket(hash)] = (unsigned char)(i + 1);
    }
}

const struct train_key *knee_train_word(const struct train_words *words,
                                        const struct train_pair *pair)
{
    unsigned row = words->first[bucket(pair->hash)];
    for (; row; row = words->next[row - 1])
        if (strcmp(rows[row - 1].name, pair->name) == 0)
            return &rows[row - 1];
    return NULL;
}

/* Is `word` one of the words of a name? */
static bool has_word(const char *name, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = name; (at = strstr(at, word)); at += length)
        if ((at == name || at[-1] == '_') && (at[length] == '\0' || at[length] == '_'))
            return true;
    return false;
}

static bool has_one(const char *name, const char *const *words)
{
    for (; *words; words++)
        if (has_word(name, *words))
            return true;
    return false;
}

const struct train_key *knee_train_guess(const struct train_pair *pair)
{
    static const char *const others[] = {
        "eta",   "remaining", "remain",    "left",    "epoch", "eval",     "val",
        "valid", "test",      "inference", "forward", "nms",   "backward", "validation",
        "save",  "estimated", "expected",  "finish",  NULL};
    static const char *const times[] = {"time", "elapsed", "took", "seconds", "secs", NULL};
    static const char *const since[] = {"total", "used", "elapsed", "wall", "overall", NULL};
    static const char *const input[] = {"data", "loading", "reader", "load", "dataloader", NULL};
    static const char *const steps[] = {"step", "iter", "iteration", "batch", NULL};
    static const struct train_key loss = {"", TRAIN_LOSS, 1}, whole = {"", TRAIN_ELAPSED, 1},
                                  data = {"", TRAIN_DATA_S, 1}, one = {"", TRAIN_SECONDS, 1},
                                  any = {"", TRAIN_TIME, 1};
    const char *name = pair->name;
    if (has_one(name, others))
        return NULL;
    if (has_word(name, "loss"))
        return &loss;
    if (!has_one(name, times))
        return NULL;
    return has_one(name, since)   ? &whole
           : has_one(name, input) ? &data
           : has_one(name, steps) ? &one
                                  : &any;
}

/* A column's name. */
const struct train_key *knee_train_table_key(const char *name, size_t length)
{
    const struct train_key *own = knee_train_key_find(knee_train_table_keys, name, length);
    for (size_t i = 0; i < ROWS && !own; i++)
        if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0)
            own = &rows[i];
    return own;
}

/* ---- Units ---- */

enum unit { UNIT_NONE, UNIT_TIME, UNIT_STEP, UNIT_SAMPLE, UNIT_TOKEN };

static enum unit unit_of(struct knee_slice word, double *seconds)
{
    static const struct {
        const char *name;
        enum unit unit;
        double seconds;
    } units[] = {
        {"s", UNIT_TIME, 1},          {"sec", UNIT_TIME, 1},         {"secs", UNIT_TIME, 1},
        {"second", UNIT_TIME, 1},     {"seconds", UNIT_TIME, 1},     {"ms", UNIT_TIME, 1e-3},
        {"us", UNIT_TIME, 1e-6},      {"it", UNIT_STEP, 0},          {"its", UNIT_STEP, 0},
        {"iter", UNIT_STEP, 0},       {"iters", UNIT_STEP, 0},       {"iteration", UNIT_STEP, 0},
        {"step", UNIT_STEP, 0},       {"steps", UNIT_STEP, 0},       {"batch", UNIT_STEP, 0},
        {"batches", UNIT_STEP, 0},    {"updates", UNIT_STEP, 0},     {"sample", UNIT_SAMPLE, 0},
        {"samples", UNIT_SAMPLE, 0},  {"seq", UNIT_SAMPLE, 0},       {"sequences", UNIT_SAMPLE, 0},
        {"image", UNIT_SAMPLE, 0},    {"images", UNIT_SAMPLE, 0},    {"img", UNIT_SAMPLE, 0},
        {"imgs", UNIT_SAMPLE, 0},     {"examples", UNIT_SAMPLE, 0},  {"token", UNIT_TOKEN, 0},
        {"instance", UNIT_SAMPLE, 0}, {"instances", UNIT_SAMPLE, 0}, {"ins", UNIT_SAMPLE, 0},
        {"tokens", UNIT_TOKEN, 0},    {"tok", UNIT_TOKEN, 0},        {"words", UNIT_TOKEN, 0},
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (knee_slice_is(word, units[i].name)) {
            *seconds = units[i].unit == UNIT_TIME ? units[i].seconds : NAN;
            return units[i].unit;
        }
    *seconds = NAN;
    return UNIT_NONE;
}

enum train_what knee_train_unit(struct knee_slice of, struct knee_slice per, double *seconds)
{
    double per_s;
    enum unit above = unit_of(of, seconds), below = unit_of(per, &per_s);
    if (above == UNIT_STEP && per.length == 0)
        return TRAIN_STEP;
    if (above == UNIT_TIME && below == UNIT_STEP)
        return TRAIN_SECONDS;
    if (per.length == 0 || below != UNIT_TIME || per_s != 1)
        return TRAIN_NOTHING;
    *seconds = NAN;
    return above == UNIT_STEP     ? TRAIN_STEPS_PER_S
           : above == UNIT_SAMPLE ? TRAIN_SAMPLES_PER_S
           : above == UNIT_TOKEN  ? TRAIN_TOKENS_PER_S
                                  : TRAIN_NOTHING;
}
