/* SPDX-License-Identifier: MIT */
/* predict, and the example job that needs no file. */
#include "ask/ask.h"
#include "base/keys.h"
#include "base/text.h"
#include "job/batch.h"
#include "knee_read.h"

#include <math.h>
#include <string.h>

#define LARGEST_JOB ((size_t)1 << 20)

struct predict_options {
    const char *job, *solve, *target;
    bool example, force;
    unsigned char source[KNEE_KEYS_MAX];
};

#define WORD(key_name, field, absent, words)                                                       \
    KNEE_OPTION(struct predict_options, key_name, KNEE_KEY_WORD, field, "Question", absent,        \
                KNEE_OFF_PAGE(words))

static const struct knee_key rows[] = {
    WORD("job", job, "none",
         "YAML job file with these options as keys; options on the command line win"),
    WORD("solve", solve, "none",
         "find the value of this input that reaches --for: bandwidth, latency, local-batch, "
         "overlap, hidden, compress, local-steps, loader-rate or gpus"),
    WORD("for", target, "",
         "target of --solve: efficiency=0.9, step=150ms, throughput=1000, ratio=0.1 or gamma=1"),
    KNEE_OPTION(struct predict_options, "example", KNEE_KEY_SWITCH, example, "Question", "",
                KNEE_OFF_PAGE("use the built-in example job ('knee example' prints it)")),
    KNEE_OPTION(struct predict_options, "force", KNEE_KEY_SWITCH, force, "Question", "",
                KNEE_OFF_PAGE("accept values that no real machine has")),
};

static const struct knee_keys predict_keys = KNEE_KEY_TABLE(rows, struct predict_options);

/* ---- The example: a 7B model on A100 nodes whose network is their weak side ---- */

static const struct {
    const char *key, *value, *why;
} example[] = {
    {"model", "llama2-7b", "6.74B parameters, sequences of 4096 tokens"},
    {"global-batch", "512", "sequences: 2M tokens a step"},
    {"cluster", "p4de", "8 x A100 a node, 4 x 100 Gbit/s EFA"},
    {"mfu", "45%", "while it computes"},
    {"overlap", "0.5", "half of what could hide does"},
    {"jitter", "1%", "how much ranks differ from step to step"},
    {"critical-batch", "1000", "sequences; assumed for the sake of the example"},
    {"min-steps", "100k", "likewise"},
    {"workers", "8..512x2", ""},
};
#define EXAMPLE (sizeof example / sizeof *example)

/* Like a job file: flags that were given stay. */
static knee_status set_example(struct knee_job *job, struct knee_err *err)
{
    knee_status status = KNEE_OK;
    for (size_t i = 0; i < EXAMPLE && !status; i++)
        if (job->source[knee_keys_find(&knee_job_keys, example[i].key)] != KNEE_FLAG)
            status = knee_keys_set(&knee_job_keys, job, example[i].key, example[i].value, KNEE_FILE,
                                   err);
    return status;
}

static knee_status answer_example(struct knee_ask_question *q, struct knee_err *err)
{
    struct knee_text *text = q->outs[0].text;
    (void)err;
    knee_text_puts(text,
                   "# A job for knee predict. Every flag is a key; see knee predict --help.\n");
    for (size_t i = 0; i < EXAMPLE; i++)
        knee_text_printf(text, "%s: %s%s%s\n", example[i].key, example[i].value,
                         example[i].why[0] ? "  # " : "", example[i].why);
    return KNEE_OK;
}

const struct knee_ask_command knee_ask_example = {
    .name = "example", .operands = "", .answer = answer_example};

/* ---- predict ---- */

struct predict_room {
    struct knee_job job;
    struct predict_options options;
};

static void init(void *room, void **objects)
{
    struct predict_room *all = room;
    knee_job_init(&all->job);
    objects[0] = &all->job;
    objects[1] = &all->options;
}

static knee_status read_job(struct knee_ask *ask, const char *name, struct knee_job *job,
                            struct knee_err *err)
{
    struct knee_ask_bytes bytes = {.data = NULL};
    knee_status status = knee_ask_read(ask, name, LARGEST_JOB, &bytes, err);
    if (status)
        return status;
    status = knee_yaml_read((struct knee_named_text){bytes.data, bytes.length, name},
                            &knee_job_keys, job, sizeof *job, err);
    knee_ask_done(&bytes);
    return status;
}

static knee_status gather(struct knee_ask_question *q, const struct predict_options *options,
                          struct knee_job *job, struct knee_err *err)
{
    const char *file = options->job ? options->job : q->word_count ? q->words[0] : NULL;
    if (options->job && q->word_count)
        return knee_fail(err, KNEE_USAGE, "", "two job files, %.60s and %.60s", options->job,
                         q->words[0]);
    if (!options->solve != !options->target)
        return knee_fail_hint(err, KNEE_USAGE, "",
                              "for example --solve bandwidth --for efficiency=0.9 --gpus 64",
                              "--solve and --for go together");
    if (!options->example)
        return file ? read_job(q->ask, file, job, err) : KNEE_OK;
    if (file)
        return knee_fail(err, KNEE_USAGE, "", "both --example and a job file");
    return set_example(job, err);
}

/* What is asked for need not be known: the search for a bandwidth starts from 100 Gb/s. */
static void assume_link(const struct predict_options *options, struct knee_job *job)
{
    struct knee_hardware *hw = &job->hw;
    bool asked = options->solve && strcmp(options->solve, "bandwidth") == 0;
    bool known = hw->gpu >= 0 || hw->link >= 0 || hw->cluster.level_count > 0 ||
                 !isnan(hw->bandwidth_bytes_per_s) || !isnan(job->comm_time_s);
    if (asked && !known)
        knee_keys_fill(&knee_job_keys, job, &hw->bandwidth_bytes_per_s, 12.5e9, KNEE_DEFAULT);
}

/* Of what was given; times that were measured are what they are. */
static knee_status check(const struct knee_prediction *p, struct knee_err *err)
{
    const struct knee_job *job = &p->job;
    struct knee_claim claim = {.step_s =
                                   isnan(job->compute_time_s) ? p->at.step.wall_s : (double)NAN,
                               .tokens = job->seq > 1 ? p->at.global_batch * job->seq : (double)NAN,
                               .bytes_per_s = job->hw.bandwidth_bytes_per_s};
    return knee_claim_check(&claim, err);
}

static knee_status answer(struct knee_ask_question *q, struct knee_err *err)
{
    struct knee_job *job = q->objects[0];
    const struct predict_options *options = q->objects[1];
    struct knee_prediction prediction;
    struct knee_solution solution;
    knee_status status = gather(q, options, job, err);
    if (!status)
        assume_link(options, job);
    if (!status)
        status = knee_predict(job, knee_ask_alloc(q->ask), &prediction, err);
    if (status)
        return status;
    if (!options->force)
        status = check(&prediction, err);
    if (!status && options->solve)
        status = knee_solve(&prediction.job, options->solve, options->target, &solution, err);
    if (!status)
        prediction.solution = options->solve ? &solution : NULL;
    if (!status)
        ASK_ANSWER(q, &knee_predict_answer, &prediction);
    const struct knee_feasibility *memory = &prediction.memory;
    if (!status && !memory->fits && !(memory->zero3_workers <= prediction.at.workers)) {
        status = knee_fail(err, KNEE_GATE, "",
                           "the model does not fit, not even sharded over all %.0f GPUs",
                           prediction.at.workers);
        q->answered = true;
    }
    knee_prediction_release(&prediction);
    return status;
}

const struct knee_ask_command knee_ask_predict = {
    .name = "predict",
    .keys = {&knee_job_keys, &predict_keys},
    .most_words = 1,
    .operands = "[JOB.yaml]",
    .size = sizeof(struct predict_room),
    .init = init,
    .answer = answer,
};
