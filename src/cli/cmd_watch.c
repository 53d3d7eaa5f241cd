/* SPDX-License-Identifier: MIT */
/* knee watch: looks at a running job's rings again and again, says what they say, and calls when a
 * condition holds. */
#include "base/error.h"
#include "base/keys.h"
#include "cli/cli.h"
#include "cli/ras.h"
#include "cli/watcher.h"
#include "out/show_ras.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct watch_options {
    const char *when, *command, *prom, *listen, *ras;
    bool once;
    double every_s, price_per_hour;
    unsigned char source[KNEE_KEYS_MAX];
};

#define OPTION(key_name, key_kind, field, heading, absent, words)                                  \
    {                                                                                              \
        .name = key_name, .kind = key_kind, .offset = offsetof(struct watch_options, field),       \
        .group = heading, .otherwise = absent, .help = words                                       \
    }

static const struct knee_key rows[] = {
    OPTION("once", KNEE_KEY_SWITCH, once, "Watching", "", "look once and end"),
    KNEE_NUMBER(struct watch_options, "every", every_s, KNEE_UNIT_SECONDS, 0.1, 86400, "Watching",
                "2s", "time between two looks"),
    KNEE_NUMBER(struct watch_options, "price", price_per_hour, KNEE_UNIT_DOLLARS, 0, KNEE_HUGE,
                "Watching", "indicative, of the GPU that the ranks name",
                "of a rank's GPU, an hour"),
    OPTION("when", KNEE_KEY_WORD, when, "Alarms", "none",
           "such as 'R > 0.5 for 5m; silent > 0': of R, E, exposed, step, wait, late, trend, "
           "silent, age"),
    OPTION("run", KNEE_KEY_WORD, command, "Alarms", "end with 1",
           "what the shell runs when a condition begins to hold; KNEE_ALARM says which"),
    OPTION("ras", KNEE_KEY_WORD, ras, "Watching", "a folder is watched",
           "ask NCCL's RAS service instead: any running job with NCCL 2.28.7, nothing prepared"),
    OPTION("prom", KNEE_KEY_WORD, prom, "Prometheus", "none",
           "write metrics to this file at every look, for node_exporter's text collector"),
    OPTION("listen", KNEE_KEY_WORD, listen, "Prometheus", "none",
           "answer GET /metrics here; without a host on the loopback only"),
};

static const struct knee_keys watch_keys = KNEE_KEY_TABLE(rows, struct watch_options);

/* ---- Signals ---- */

static volatile sig_atomic_t stopped;

static void stop(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

/* Also a terminal that goes ends it well: metrics that nobody renews would be believed. The signals
 * are held back except while it rests, or one that comes just before the rest would be slept over.
 * `before` is the mask to rest with. What is ignored (nohup) stays so. */
static void take_signals(sigset_t *before)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = stop}, was;
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        sigaddset(&held, ends[i]);
        if (sigaction(ends[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
            sigaction(ends[i], &action, NULL);
    }
    sigprocmask(SIG_BLOCK, &held, before);
}

/* ---- Alarms ---- */

/* Runs the command and waits for it. */
static knee_status run_command(const char *command, const char *words, struct knee_err *err)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        setenv("KNEE_ALARM", words, 1);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return KNEE_OK;
    return knee_fail(err, KNEE_SYSTEM, "--run", "'%.60s' did not succeed", command);
}

/* Those that began to hold since the last look; without a command the first ends it all. */
static knee_status call(const struct watch_options *options, const struct cli_watcher *watcher,
                        bool *was, struct knee_err *err)
{
    knee_status status = KNEE_OK;
    for (size_t i = 0; i < watcher->alarm_count && !status; i++) {
        bool begins = watcher->states[i].goes && !was[i];
        was[i] = watcher->states[i].goes;
        if (!begins)
            continue;
        const char *words = watcher->alarm_words[i];
        status = options->command ? run_command(options->command, words, err)
                                  : knee_fail(err, KNEE_GATE, "--when", "%s holds: it is %.4g",
                                              words, watcher->states[i].value);
    }
    return status;
}

/* ---- Looking ---- */

static knee_status export_to(const struct watch_options *options,
                             const struct knee_watch_report *report, struct knee_text *metrics,
                             struct knee_err *err)
{
    knee_text_release(metrics);
    if (!options->prom && !options->listen)
        return KNEE_OK;
    knee_write_watch_prom(report, metrics);
    if (metrics->failed)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the output");
    return options->prom ? cli_write_file(options->prom, metrics, err) : KNEE_OK;
}

static knee_status look(struct cli_run *run, struct cli_watcher *watcher, bool *was,
                        struct knee_text *metrics)
{
    const struct watch_options *options = run->objects[0];
    struct knee_style style = cli_style(run);
    knee_status status = cli_watcher_look(watcher, &run->err);
    if (status)
        return status;
    struct knee_watch_report report = cli_watcher_report(watcher);
    knee_write_watch(&report, cli_format(run), &style, &run->text);
    run->answered = true;
    status = export_to(options, &report, metrics, &run->err);
    return status ? status : call(options, watcher, was, &run->err);
}

/* What one look said, in place of what the one before did. Where nobody looks and somebody is
 * served, nothing is said. */
static knee_status show(struct cli_run *run)
{
    const struct watch_options *options = run->objects[0];
    bool terminal = isatty(STDOUT_FILENO) && !run->common.output;
    if (!terminal && !run->common.output && (options->prom || options->listen)) {
        knee_text_release(&run->text);
        return KNEE_OK;
    }
    if (terminal)
        fputs("\033[H\033[J", stdout);
    knee_status status = cli_print(run);
    knee_text_release(&run->text);
    return status;
}

static knee_status watch_on(struct cli_run *run, struct cli_watcher *watcher, int fd)
{
    const struct watch_options *options = run->objects[0];
    struct knee_text metrics = {0};
    bool was[CLI_ALARMS] = {false};
    knee_status status = KNEE_OK;
    sigset_t resting;
    take_signals(&resting);
    while (!stopped) {
        status = look(run, watcher, was, &metrics);
        if (status)
            break;
        status = show(run);
        if (status)
            break;
        cli_serve(fd, &metrics, isnan(options->every_s) ? 2 : options->every_s, &resting, &stopped);
    }
    if (options->prom)
        unlink(options->prom); /* a job that nobody watches has no metrics */
    knee_text_release(&metrics);
    return status;
}

static knee_status watch_once(struct cli_run *run, struct cli_watcher *watcher)
{
    struct knee_text metrics = {0};
    bool was[CLI_ALARMS] = {false};
    knee_status status = look(run, watcher, was, &metrics);
    knee_text_release(&metrics);
    return status;
}

static knee_status watch_folder(struct cli_run *run)
{
    const struct watch_options *options = run->objects[0];
    struct cli_watcher watcher = {
        .dir = run->words[0], .price_per_hour = options->price_per_hour, .trace_step = -1};
    int fd = -1;
    knee_status status = KNEE_OK;
    if (options->when)
        status = cli_watcher_alarms(&watcher, options->when, &run->err);
    if (!status && options->listen && options->once)
        status = knee_fail(&run->err, KNEE_USAGE, "--listen", "with --once nobody could ask");
    if (!status && options->listen)
        status = cli_listen(options->listen, &fd, &run->err);
    if (!status)
        status = options->once ? watch_once(run, &watcher) : watch_on(run, &watcher, fd);
    if (fd >= 0)
        close(fd);
    cli_watcher_release(&watcher);
    return status;
}

/* ---- RAS ---- */

static knee_status look_at_ras(struct cli_run *run, const char *where)
{
    struct knee_ras answers[CLI_RAS_ANSWERS] = {{0}};
    struct knee_ras_answer judged = {0};
    struct knee_style style = cli_style(run);
    size_t count = 0;
    knee_status status = cli_ras_ask(where, answers, &count, &run->err);
    if (!status)
        status = knee_ras_judge(answers, count, NULL, &judged, &run->err);
    if (!status) {
        knee_write_ras(&judged, answers[count - 1].nccl, cli_format(run), &style, &run->text);
        run->answered = true;
    }
    knee_ras_answer_release(&judged);
    for (size_t i = 0; i < count; i++)
        knee_ras_release(&answers[i]);
    return status;
}

static knee_status watch_ras(struct cli_run *run)
{
    const struct watch_options *options = run->objects[0];
    if (options->when || options->prom || options->listen || run->word_count) {
        knee_fail(&run->err, KNEE_USAGE, "--ras", "goes alone, or with --once and --every");
        knee_hint(&run->err, "alarms and metrics are of a folder: knee live env");
        return KNEE_USAGE;
    }
    knee_status status = look_at_ras(run, options->ras);
    while (!status && !options->once) {
        status = show(run);
        poll(NULL, 0, (int)(1000 * (isnan(options->every_s) ? 2 : options->every_s)));
        if (!status)
            status = look_at_ras(run, options->ras);
    }
    return status;
}

static knee_status watch_main(struct cli_run *run, int argc, char **argv)
{
    struct watch_options options = {0};
    knee_keys_clear(&watch_keys, &options);
    run->objects[0] = &options;
    knee_status status = cli_parse(run, argc, argv);
    if (status || run->common.help)
        return status;
    if (run->common.html)
        return knee_fail(&run->err, KNEE_USAGE, "--html", "a running job has no page: knee report");
    if (options.ras)
        return watch_ras(run);
    if (run->word_count != 1) {
        knee_fail(&run->err, KNEE_USAGE, "", "no folder was named");
        knee_hint(&run->err, "the one of knee live env --dir, for example: knee watch knee-live");
        return KNEE_USAGE;
    }
    return watch_folder(run);
}

const struct cli_command cli_watch = {
    .name = "watch",
    .operands = "[DIR]",
    .summary = "a running job: R, who keeps the others waiting, since when, what it costs",
    .about =
        "Reads what the live agent writes (knee live env), of all ranks that share a folder, and\n"
        "says it again every two seconds. Sampled steps are accounted as knee trace does; between\n"
        "them collectives are joined by communicator and number. docs/live.md.",
    .examples =
        "  knee watch /shared/run7\n"
        "  knee watch /shared/run7 --once --json\n"
        "  knee watch /shared/run7 --when 'R > 0.5 for 5m' --run 'mail -s \"$KNEE_ALARM\" me'\n"
        "  knee watch /shared/run7 --listen 9757\n",
    .keys = {&watch_keys},
    .most_words = 1,
    .main = watch_main,
};
