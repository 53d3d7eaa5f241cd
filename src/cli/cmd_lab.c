/* SPDX-License-Identifier: MIT */
/* knee lab: a real data-parallel training job, measured and predicted. */
#include "base/error.h"
#include "base/keys.h"
#include "base/order.h"
#include "cli/cli.h"
#include "cli/ranks.h"
#include "job/batch.h"
#include "lab/lab_hunt.h"
#include "lab/lab_optimizer.h"
#include "out/answer.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct lab_options {
    int model, optimizer, wire, sync;
    double width, layers, heads, context, global_batch, global_tokens, local_batch, accumulate,
        steps, rate, warmup, seed, local_steps, bucket, compute_time, params, loader_threads,
        decode_time, host_time, pace, pace_latency, tolerance, seeds;
    bool no_overlap, synthetic, hunt, push, constant_rate;
    struct knee_workers workers;
    const char *text, *record;
    unsigned char source[KNEE_KEYS_MAX];
};

static const char *const models[] = {"transformer", "mlp"};
KNEE_WORDS(cli_lab_models, "lab model", models);

#define NUMBER(name, field, unit, low, high, heading, absent, words)                               \
    KNEE_NUMBER(struct lab_options, name, field, unit, low, high, heading, absent, words)
#define CHOICE(name, field, list, heading, absent, words)                                          \
    KNEE_CHOICE(struct lab_options, name, field, list, heading, absent, words)
#define OTHER(key_name, key_kind, field, heading, absent, words)                                   \
    KNEE_OPTION(struct lab_options, key_name, key_kind, field, heading, absent, words)

static const struct knee_key rows[] = {
    OTHER("hunt", KNEE_KEY_SWITCH, hunt, "Question", "",
          "cause each of the five problems in turn and check that knee names it"),
    OTHER("push", KNEE_KEY_SWITCH, push, "Question", "",
          "apply the changes one by one and measure efficiency and loss"),
    OTHER("ranks", KNEE_KEY_WORKERS, workers, "Question", "1, 2, 4 ... all ranks",
          "rank counts to run: 1,2,4 or 1..8x2"),
    NUMBER("tolerance", tolerance, KNEE_UNIT_FRACTION, 1e-6, 1, "Question", "0.8",
           "lowest efficiency still worth paying for"),
    NUMBER("seeds", seeds, KNEE_UNIT_COUNT, 1, 9, "Question", "3", "number of seeds for --hunt"),
    OTHER("record", KNEE_KEY_WORD, record, "Question", "none",
          "write the timelines of the largest count to this folder, for knee trace"),

    CHOICE("model", model, cli_lab_models, "Model", "transformer",
           "transformer or mlp; both predict the next byte of a text"),
    NUMBER("width", width, KNEE_UNIT_COUNT, 4, 4096, "Model", "32", "hidden size"),
    NUMBER("layers", layers, KNEE_UNIT_COUNT, 1, 48, "Model", "2", "layers"),
    NUMBER("heads", heads, KNEE_UNIT_COUNT, 1, 64, "Model", "4",
           "attention heads; must divide --width"),
    NUMBER("context", context, KNEE_UNIT_COUNT, 2, 1024, "Model", "32",
           "bytes (tokens) per sequence"),
    OTHER("text", KNEE_KEY_WORD, text, "Model", "1 MiB of generated text", "training text"),

    KNEE_BATCH_ROWS(struct lab_options, 1, 1e6, "Training", "32"),
    NUMBER("local-batch", local_batch, KNEE_UNIT_COUNT, 1, 1e6, "Training", "fixed global batch",
           "sequences per step and rank: the global batch then grows with the ranks"),
    NUMBER("accumulate", accumulate, KNEE_UNIT_COUNT, 1, 1e4, "Training", "1",
           "micro-batches per step (gradient accumulation)"),
    NUMBER("steps", steps, KNEE_UNIT_COUNT, 2, 1e7, "Training", "20", "steps of each run"),
    CHOICE("optimizer", optimizer, lab_optimizer_names, "Training", "adam",
           "sgd, adam, lars or lamb"),
    NUMBER("rate", rate, KNEE_UNIT_FACTOR, 0, 1e6, "Training", "usual rate of the optimizer",
           "peak learning rate, then cosine decay to a tenth of it"),
    NUMBER("warmup", warmup, KNEE_UNIT_COUNT, 0, 1e7, "Training", "a tenth of the steps",
           "steps of linear warm-up"),
    OTHER("constant-rate", KNEE_KEY_SWITCH, constant_rate, "Training", "",
          "keep the learning rate constant after the warm-up"),
    NUMBER("seed", seed, KNEE_UNIT_COUNT, 0, 1e9, "Training", "1",
           "random seed of parameters and batches"),

    CHOICE("sync", sync, lab_sync_names, "Exchange", "every-step",
           "every-step, local-sgd, diloco or streaming-diloco"),
    NUMBER("local-steps", local_steps, KNEE_UNIT_COUNT, 1, 1e6, "Exchange", "8",
           "steps between exchanges, with --sync other than every-step"),
    CHOICE("wire", wire, lab_wire_names, "Exchange", "f32",
           "f32, bf16, fp8, int8, 1-bit, powersgd or top-k"),
    OTHER("no-overlap", KNEE_KEY_SWITCH, no_overlap, "Exchange", "",
          "exchange after the backward pass, not during it"),
    NUMBER("bucket", bucket, KNEE_UNIT_BYTES, 1, 1e12, "Exchange", "a quarter of the gradient",
           "bucket size of the gradient exchange"),
    NUMBER("pace", pace, KNEE_UNIT_BYTES_PER_S, 1, 1e15, "Exchange", "no limit",
           "limit the sending rate, to emulate a slow link"),
    NUMBER("pace-latency", pace_latency, KNEE_UNIT_SECONDS, 0, 10, "Exchange", "0",
           "delay of each message, to emulate a slow link"),

    OTHER("synthetic-compute", KNEE_KEY_SWITCH, synthetic, "Compute and input", "",
          "wait instead of computing, so that more ranks than cores can run"),
    NUMBER("compute-time", compute_time, KNEE_UNIT_SECONDS, 1e-6, 3600, "Compute and input", "60ms",
           "with --synthetic-compute: compute time of the batch on one rank"),
    NUMBER("params", params, KNEE_UNIT_COUNT, 64, 1e9, "Compute and input", "250k",
           "with --synthetic-compute: number of gradient values"),
    NUMBER("loader-threads", loader_threads, KNEE_UNIT_COUNT, 1, LAB_LOADER_THREADS,
           "Compute and input", "2", "data loader threads"),
    NUMBER("decode-time", decode_time, KNEE_UNIT_SECONDS, 0, 10, "Compute and input", "0",
           "extra data loader time per example"),
    NUMBER("host-time", host_time, KNEE_UNIT_SECONDS, 0, 10, "Compute and input", "as measured",
           "extra host time per operation"),
};

static const struct knee_keys lab_keys = KNEE_KEY_TABLE(rows, struct lab_options);

static double or_else(double value, double otherwise)
{
    return isnan(value) ? otherwise : value;
}

/* ---- When the run is ended from outside ---- */

static char last_words[700], last_words_kept[700], last_file[4096];
enum { SOMETHING = 4096 }; /* bytes of a timeline with events in it, not its head alone */
static pid_t speaker;      /* who says it when alive; 0: this process */

/* mpirun ends the others when one rank dies. The first rank says so, or the second when it was the
 * first that died. */
static void on_end(int signal_number)
{
    (void)signal_number;
    bool mine = speaker == 0 || kill(speaker, 0) != 0;
    struct stat info;
    bool kept = last_file[0] && stat(last_file, &info) == 0 && info.st_size > SOMETHING;
    const char *words = kept ? last_words_kept : last_words;
    if (mine && write(STDERR_FILENO, words, strlen(words)) < 0)
        _exit(KNEE_SYSTEM);
    _exit(KNEE_SYSTEM);
}

static bool listen_for_the_end(struct knee_runtime *rt, const char *record)
{
    double first = rt->rank == 0 ? (double)getpid() : 0;
    if (rt->size == 1)
        return true;
    if (!lab_reduce(rt, &first, 1))
        return false;
    static const char ended[] = "knee: lab: stopped by mpirun because a rank ended early";
    snprintf(last_words, sizeof last_words, "%s%s\n", ended,
             record ? "; nothing was recorded yet" : "; --record DIR keeps timelines");
    snprintf(last_words_kept, sizeof last_words_kept,
             "%s; what was recorded is kept: knee trace %.400s\n", ended, record ? record : "");
    if (record)
        snprintf(last_file, sizeof last_file, "%.4000s/rank%d.json", record, rt->rank);
    if (rt->rank > 1 || (rt->rank == 1 && rt->host_of[1] != rt->host_of[0]))
        last_words[0] = last_words_kept[0] = '\0';
    speaker = rt->rank == 0 ? 0 : (pid_t)first;
    signal(SIGTERM, on_end);
    return true;
}

/* ---- From options to a set-up ---- */

static void show_progress(void *ctx, size_t step, size_t steps)
{
    const char *what = ctx;
    if (step % (steps / 20 + 1) == 0 || step == steps)
        fprintf(stderr, "\r  %s: step %zu of %zu%s", what, step, steps,
                step == steps ? "\r\033[K" : "");
}

static struct lab_setup set_up(const struct lab_options *o, bool progress)
{
    bool weak = !isnan(o->local_batch);
    double params = or_else(o->params, 250000), steps = or_else(o->steps, 20);
    static char label[] = "training";
    return (struct lab_setup){
        .shape = {.mlp = o->model == 1,
                  .width = (size_t)or_else(o->width, 32),
                  .layers = (size_t)or_else(o->layers, 2),
                  .heads = (size_t)or_else(o->heads, 4),
                  .context = (size_t)or_else(o->context, 32)},
        .weak = weak,
        .batch = (size_t)(weak ? o->local_batch : or_else(o->global_batch, 32)),
        .accumulate = (size_t)or_else(o->accumulate, 1),
        .steps = (size_t)steps,
        .untimed = (size_t)fmin(3, steps / 4),
        .optimizer = o->optimizer < 0 ? 1 : o->optimizer,
        .wire = o->wire < 0 ? 0 : o->wire,
        .rate = o->rate,
        .warmup = (size_t)or_else(o->warmup, floor(steps / 10)),
        .constant_rate = o->constant_rate,
        .sync = o->sync < 0 ? LAB_EVERY_STEP : (enum lab_sync)o->sync,
        .local_steps = (size_t)or_else(o->local_steps, 8),
        .overlap = !o->no_overlap,
        .bucket_bytes = o->bucket,
        .loader_threads = (size_t)or_else(o->loader_threads, 2),
        .decode_s = or_else(o->decode_time, 0),
        .host_s = or_else(o->host_time, 0),
        .synthetic = o->synthetic,
        .compute_s = or_else(o->compute_time, 0.06),
        .params = (size_t)params,
        .late_rank = -1,
        .pace_bytes_per_s = or_else(o->pace, isnan(o->pace_latency) ? 0 : 1e15),
        .pace_latency_s = or_else(o->pace_latency, 0),
        .seed = (uint64_t)or_else(o->seed, 1),
        .text_fd = -1,
        .write_file = cli_write_file,
        .progress = progress ? show_progress : NULL,
        .progress_ctx = label,
    };
}

static knee_status check(const struct lab_options *o, const struct lab_setup *s,
                         struct knee_err *err)
{
    if (!isnan(o->global_batch) && !isnan(o->local_batch))
        return knee_fail_hint(err, KNEE_USAGE, "", "keep one of them",
                              "both global-batch and local-batch are given");
    if (!s->shape.mlp && s->shape.width % s->shape.heads != 0)
        return knee_fail_hint(err, KNEE_USAGE, "--heads", "choose --width as a multiple of --heads",
                              "%zu heads do not divide a width of %zu", s->shape.heads,
                              s->shape.width);
    if (o->hunt && o->push)
        return knee_fail_hint(err, KNEE_USAGE, "", "keep one of them",
                              "both --hunt and --push are given");
    if (!o->synthetic && (!isnan(o->compute_time) || !isnan(o->params))) {
        knee_fail(err, KNEE_USAGE, isnan(o->params) ? "--compute-time" : "--params",
                  "is for --synthetic-compute only");
        knee_hint(err, "the model's own arithmetic takes the time it takes: see --width, --layers");
        return KNEE_USAGE;
    }
    return KNEE_OK;
}

/* Counts go up; a sweep also measures one worker. */
static knee_status check_workers(const double *list, size_t count, int ranks, struct knee_err *err)
{
    size_t wanted = count + (count > 0 && list[0] > 1);
    if (wanted > KNEE_LAB_ROWS) {
        knee_fail(err, KNEE_USAGE, "--ranks", "%zu rank counts, but knee lab measures at most %d",
                  wanted, KNEE_LAB_ROWS);
        knee_hint(err, "take fewer: %.0f..%.0fx2", list[0], list[count - 1]);
        return KNEE_USAGE;
    }
    for (size_t i = 0; i < count; i++)
        if (list[i] > ranks) {
            knee_fail(err, KNEE_USAGE, "--ranks", "%.0f ranks, but mpirun started %d", list[i],
                      ranks);
            knee_hint(err, "start more: mpirun -n %.0f knee lab ...", list[i]);
            return KNEE_USAGE;
        }
    return KNEE_OK;
}

/* The counts of the sweep, from 1 up to the ranks there are. */
static knee_status list_workers(const struct lab_options *o, int ranks, struct lab_sweep *sweep,
                                struct knee_err *err)
{
    double *list = malloc(KNEE_ROWS_MAX * sizeof *list);
    size_t count = 0;
    if (!list)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    if (o->workers.ranges)
        count = knee_workers_list(&o->workers, list, KNEE_ROWS_MAX);
    for (int k = 1; !o->workers.ranges && k < ranks; k *= 2)
        list[count++] = k;
    if (!o->workers.ranges)
        list[count++] = ranks;
    knee_status status = check_workers(list, count, ranks, err);
    sweep->workers[sweep->count++] = 1;
    sweep->baseline = count > 0 && list[0] > 1;
    for (size_t i = 0; !status && i < count; i++)
        if (list[i] > 1)
            sweep->workers[sweep->count++] = list[i];
    free(list);
    return status;
}

static void note(struct knee_lab *lab, const char *words)
{
    if (lab->note_count < KNEE_LAB_NOTES)
        snprintf(lab->notes[lab->note_count++], sizeof lab->notes[0], "%s", words);
}

static void describe(struct knee_lab *lab, const struct knee_runtime *rt,
                     const struct lab_options *o, const struct lab_setup *s, double params)
{
    lab->synthetic = s->synthetic;
    lab->paced = s->pace_bytes_per_s > 0;
    lab->weak = s->weak;
    lab->runtime = rt->name;
    lab->model = s->synthetic ? "no model" : models[s->shape.mlp];
    lab->wire = lab_wire_at(s->wire)->name;
    lab->sync = lab_sync_names.name(s->sync);
    lab->optimizer = lab_optimizer_names.name((size_t)s->optimizer);
    lab->ranks = rt->size;
    lab->hosts = rt->host_count;
    lab->params = params;
    lab->batch = (double)s->batch;
    lab->accumulate = (double)s->accumulate;
    lab->local_steps = s->sync == LAB_EVERY_STEP ? 1 : (double)s->local_steps;
    lab->steps = (double)s->steps;
    lab->overlap = s->overlap;
    lab->tolerance = or_else(o->tolerance, 0.8);
    lab->record = o->record;
    lab->median_error = lab->worst_error = lab->critical_batch = NAN;
    lab->latency_s = lab->bandwidth_bytes_per_s = NAN;
    lab->measured = lab->predicted = (struct knee_lab_knee){NAN, NAN};
}

static void compare(struct knee_lab *lab)
{
    double errors[KNEE_LAB_ROWS];
    size_t n = 0;
    for (size_t i = 1; i < lab->row_count; i++)
        errors[n++] = fabs(lab->rows[i].predicted_step_s / lab->rows[i].measured_step_s - 1);
    if (n == 0)
        return;
    lab->median_error = knee_median(errors, n);
    lab->worst_error = errors[n - 1];
}

static void add_notes(struct knee_lab *lab, const struct knee_runtime *rt, bool sweep)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int here = 0;
    for (int r = 0; r < rt->size; r++)
        here += rt->host_of[r] == rt->host;
    if (rt->size == 1)
        note(lab, "one process: to see scaling, run for example: mpirun -n 4 knee lab");
    if (!lab->synthetic && sweep && here > cores)
        note(lab,
             "there are more ranks than cores on a host, so ranks take turns at the arithmetic, "
             "which the prediction does not know: --synthetic-compute keeps the network visible");
    if (lab->record && lab->hunt_count)
        note(lab, "timelines are written, a folder for each run: knee trace shows what they say");
    else if (lab->record)
        note(lab,
             "timelines are written: knee trace shows what they say; steps.csv is the run's log, "
             "for knee scale");
    if (lab->record && !isnan(lab->critical_batch) && !lab->hunt_count)
        note(lab, "noise.csv beside them holds gradient norms at two batch sizes, for knee trace "
                  "--noise");
}

/* ---- The command ---- */

/* Beside timelines of real arithmetic: the norms that tell the critical batch. */
static knee_status keep_noise(struct knee_runtime *rt, const struct lab_setup *s,
                              const float *params, const char *folder, struct knee_lab *lab,
                              struct knee_err *err)
{
    struct lab_noise noise = {0};
    knee_status status = lab_measure_noise(rt, s, params, &noise, err);
    if (status)
        return status;
    lab->critical_batch = noise.critical_batch;
    return rt->rank == 0 ? lab_write_noise(s, folder, &noise, err) : KNEE_OK;
}

static knee_status sweep_main(struct knee_runtime *rt, const struct lab_options *o,
                              const struct lab_setup *s, struct knee_lab *lab, struct knee_err *err)
{
    struct lab_sweep sweep = {.tolerance = lab->tolerance, .record = o->record};
    knee_status status = list_workers(o, rt->size, &sweep, err);
    if (!status && o->push)
        return lab_push_levers(rt, s, &sweep, lab, err);
    if (!status)
        status = lab_sweep_link(rt, s, &sweep.link, err);
    if (!status)
        status = lab_sweep_run(rt, s, &sweep, err);
    if (!status && o->record && sweep.params && sweep.workers[sweep.count - 1] == rt->size)
        status = keep_noise(rt, s, sweep.params, o->record, lab, err);
    free(sweep.params);
    if (status)
        return status;
    lab->latency_s = sweep.link.latency_s;
    lab->bandwidth_bytes_per_s = sweep.link.bytes_per_s;
    lab->row_count = sweep.count;
    memcpy(lab->rows, sweep.rows, sizeof sweep.rows);
    lab->measured = sweep.measured;
    lab->predicted = sweep.predicted;
    lab->buckets = sweep.buckets;
    compare(lab);
    return KNEE_OK;
}

static double count_params(const struct lab_setup *s)
{
    struct lab_net *net = calloc(1, sizeof *net);
    double count = s->synthetic ? (double)s->params : 0;
    if (!s->synthetic && net && lab_net_init(net, &s->shape, 1))
        count = (double)net->param_count;
    if (net)
        lab_net_release(net);
    free(net);
    return count;
}

static knee_status work(struct cli_run *run, struct knee_runtime *rt, struct lab_options *o)
{
    knee_status status = knee_batch_settle(&lab_keys, o, or_else(o->context, 32), &run->err);
    struct lab_setup s = set_up(o, rt->rank == 0 && isatty(STDERR_FILENO));
    struct knee_lab *lab = calloc(1, sizeof *lab);
    if (!status)
        status = check(o, &s, &run->err);
    if (!lab)
        return knee_fail(&run->err, KNEE_SYSTEM, "", "out of memory");
    if (!status && o->record && mkdir(o->record, 0777) != 0 && errno != EEXIST)
        status =
            knee_fail(&run->err, KNEE_SYSTEM, o->record, "cannot be made: %s", strerror(errno));
    if (!status)
        status = lab_open_text(o->text, &s.text_fd, &s.text_bytes, &run->err);
    if (!status) {
        double params = count_params(&s);
        if (!listen_for_the_end(rt, o->record))
            status = knee_fail(&run->err, KNEE_SYSTEM, "", "%.200s", rt->fault);
        lab_blas(true);
        if (isnan(s.bucket_bytes))
            s.bucket_bytes = params; /* a quarter of 4 bytes each */
        describe(lab, rt, o, &s, params);
        s.record = o->hunt ? o->record : NULL;
        if (!status)
            status = o->hunt ? lab_hunt(rt, &s, (size_t)or_else(o->seeds, 3), lab, &run->err)
                             : sweep_main(rt, o, &s, lab, &run->err);
    }
    if (!status && rt->rank == 0) {
        struct knee_style style = cli_style(run);
        if (rt->size > 1) { /* mpirun's terminal is not the reader's */
            style.color = false;
            style.width = 0;
        }
        add_notes(lab, rt, lab->row_count > 1);
        knee_answer_write(&knee_lab_answer, lab, cli_format(run), &style, &run->text);
        if (run->common.html)
            knee_answer_write(&knee_lab_answer, lab, KNEE_JSON, &style, &run->answer);
    }
    if (s.text_fd >= 0)
        close(s.text_fd);
    free(lab);
    return status;
}

/* The exchange runs in its own thread. Every rank gets here; one of them prints it, as for wrong
 * use. */
static knee_status too_few_threads(struct knee_err *err)
{
    knee_fail(err, KNEE_USAGE, "",
              "this MPI takes calls from one thread only, and the lab makes them from two");
    knee_hint(err, "use an MPI that offers MPI_THREAD_SERIALIZED");
    return KNEE_USAGE;
}

/* All ranks come to the same usage errors: the first one speaks. Other failures may be one rank's
 * own, and the rest wait for it: it ends the run. */
static knee_status lab_main(struct cli_run *run, int argc, char **argv)
{
    struct lab_options options = {0};
    struct knee_runtime *rt = NULL;
    knee_keys_clear(&lab_keys, &options);
    run->objects[0] = &options;
    run->quiet = knee_runtime_rank() > 0;
    knee_status status = cli_parse(run, argc, argv);
    if (status || run->common.help)
        return status;
    if ((status = knee_runtime_open(NULL, &rt, &run->err)))
        return status;
    run->quiet = rt->rank > 0;
    cli_same_question(run, rt);
    status = rt->one_thread ? too_few_threads(&run->err) : work(run, rt, &options);
    if (status && status != KNEE_USAGE && rt->size > 1) {
        char why[720];
        snprintf(why, sizeof why, "lab: %s%s%s%s%s", run->err.where, run->err.where[0] ? ": " : "",
                 run->err.what, run->err.hint[0] ? "; " : "", run->err.hint);
        rt->abort(rt, why);
    }
    signal(SIGTERM, SIG_DFL);
    rt->finish(rt);
    return status;
}

const struct cli_command cli_lab = {
    .name = "lab",
    .operands = "",
    .summary = "run a small data-parallel job and compare with the model",
    .common = {"ranks", "steps", "global-batch", "wire", "sync", "hunt", "push", "record"},
    .about =
        "Trains a small language model on 1, 2, 4 ... ranks of mpirun and compares the measured "
        "step times with the predicted ones.",
    .examples = "  knee lab\n"
                "  mpirun -n 4 knee lab --local-batch 16\n"
                "  mpirun -n 8 knee lab --synthetic-compute --params 1M --json\n"
                "  mpirun -n 2 knee lab --synthetic-compute --hunt\n"
                "  mpirun -n 2 knee lab --record runs/ && knee trace runs/\n",
    .keys = {&lab_keys},
    .main = lab_main,
};
