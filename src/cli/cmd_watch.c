/* SPDX-License-Identifier: MIT */
/* knee watch: looks at a running job's rings again and again, says what they say, and calls when a
 * condition holds. */
#include "base/error.h"
#include "base/keys.h"
#include "cli/cli.h"
#include "cli/ras.h"
#include "cli/watcher.h"
#include "out/answer.h"
#include "reach/start.h"
#include "reach/stop.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct watch_options {
    const char *when, *command, *prom, *listen, *ras;
    bool once;
    double every_s, price_per_hour;
    unsigned char source[KNEE_KEYS_MAX];
};

#define OPTION(key_name, key_kind, field, heading, absent, words)                                  \
    KNEE_OPTION(struct watch_options, key_name, key_kind, field, heading, absent, words)

static const struct knee_key rows[] = {
    OPTION("once", KNEE_KEY_SWITCH, once, "Watching", "", "print the state once and exit"),
    KNEE_NUMBER(struct watch_options, "every", every_s, KNEE_UNIT_SECONDS, 0.1, 86400, "Watching",
                "2s", "time between updates"),
    KNEE_NUMBER(struct watch_options, "price", price_per_hour, KNEE_UNIT_DOLLARS, 0, KNEE_HUGE,
                "Watching", "list price of the GPU", "price of one GPU per hour"),
    OPTION("when", KNEE_KEY_WORD, when, "Alarms", "none",
           "alarm conditions such as 'R > 0.5 for 5m; silent > 0', on R, E, exposed, step, wait, "
           "late, trend, silent or age"),
    OPTION("run", KNEE_KEY_WORD, command, "Alarms", "exit with status 1",
           "shell command to run when an alarm starts; KNEE_ALARM holds the condition"),
    OPTION("ras", KNEE_KEY_WORD, ras, "Watching", "watch a folder",
           "ask NCCL's RAS service on HOST instead: any running job with NCCL 2.28.7 or newer"),
    OPTION("prom", KNEE_KEY_WORD, prom, "Prometheus", "none",
           "write metrics to this file for the textfile collector of node_exporter"),
    OPTION("listen", KNEE_KEY_WORD, listen, "Prometheus", "none",
           "serve Prometheus metrics at /metrics; without HOST on localhost only"),
};

static const struct knee_keys watch_keys = KNEE_KEY_TABLE(rows, struct watch_options);

static double every(const struct watch_options *options)
{
    return isnan(options->every_s) ? 2 : options->every_s;
}

/* Everything that goes on from one look to the next. */
struct watching {
    struct cli_watcher watcher;
    struct cli_server server;
    struct cli_alarm_commands commands;
    struct knee_text metrics;
    bool was[CLI_ALARMS]; /* which alarms held at the last look */
    char missed[256];     /* why the last look failed; "": it did not */
};

/* ---- Alarms ---- */

/* Those that began to hold since the last look; without a command the first ends it all. */
static knee_status call(struct watching *w, struct cli_run *run)
{
    const struct watch_options *options = run->objects[0];
    for (size_t i = 0; i < w->watcher.alarm_count; i++) {
        const struct knee_alarm_state *state = &w->watcher.states[i];
        bool begins = state->goes && !w->was[i];
        w->was[i] = state->goes;
        if (begins && !options->command)
            return knee_fail(&run->err, KNEE_GATE, "--when", "%s: the value is %.4g",
                             w->watcher.alarm_words[i], state->value);
        if (begins)
            cli_alarm_start(&w->commands, i, options->command, w->watcher.alarm_words[i]);
    }
    return KNEE_OK;
}

/* ---- Looking ---- */

static knee_status export_to(const struct watch_options *options,
                             const struct knee_watch_report *report, struct knee_text *metrics,
                             struct knee_err *err)
{
    knee_text_release(metrics);
    if (!options->prom && !options->listen)
        return KNEE_OK;
    knee_answer_prometheus(&knee_watch_answer, report, metrics);
    if (metrics->failed)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory for the output");
    return options->prom ? cli_write_file(options->prom, metrics, err) : KNEE_OK;
}

/* One line per look where the output is not a terminal: the time, the state, the headline. */
static void write_line(const struct knee_watch_report *report, struct knee_text *text)
{
    char when[32] = "";
    time_t now = time(NULL);
    struct tm parts;
    struct knee_said said;
    if (gmtime_r(&now, &parts))
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &parts);
    knee_said_init(&said, text->alloc);
    knee_watch_answer.say(report, &said);
    const struct knee_text *lead = said.voids.length ? &said.voids : &said.title;
    knee_text_printf(text, "%s %s%s %s\n", when, lead->data ? lead->data : "",
                     said.voids.length ? "" : ".", said.headline.data ? said.headline.data : "");
    text->failed = text->failed || knee_said_failed(&said);
    knee_said_release(&said);
}

static knee_status look(struct cli_run *run, struct watching *w)
{
    const struct watch_options *options = run->objects[0];
    struct knee_style style = cli_style(run);
    w->watcher.command_failures = w->commands.failed;
    knee_status status = cli_watcher_look(&w->watcher, &run->err);
    if (status)
        return status;
    struct knee_watch_report report = cli_watcher_report(&w->watcher);
    if (options->once || run->common.output || cli_format(run) != KNEE_TEXT ||
        isatty(STDOUT_FILENO))
        knee_answer_write(&knee_watch_answer, &report, cli_format(run), &style, &run->text);
    else
        write_line(&report, &run->text);
    run->answered = true;
    status = export_to(run->objects[0], &report, &w->metrics, &run->err);
    return status ? status : call(w, run);
}

/* On a terminal each look replaces the one before. With metrics and no terminal nothing is
 * printed. */
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

/* Report a failed look once and keep trying: the job may not have started, or a file system may be
 * away. Remove the metrics file: stale metrics would look current. */
static void miss(struct cli_run *run, struct watching *w)
{
    const struct watch_options *options = run->objects[0];
    if (strcmp(w->missed, run->err.what) != 0)
        fprintf(stderr, "knee: %s: %s; looking again every %g s (Ctrl-C stops)\n", run->err.where,
                run->err.what, every(options));
    snprintf(w->missed, sizeof w->missed, "%s", run->err.what);
    w->watcher.failed_looks++;
    run->err = (struct knee_err){0};
    knee_text_release(&run->text);
    knee_text_release(&w->metrics);
    if (options->prom)
        knee_output_remove(options->prom);
}

/* Rests, and looks after commands of alarms meanwhile. False: a stop was asked for. */
static bool rest(struct watching *w, double seconds)
{
    double end_s = knee_clock_s() + seconds;
    bool on = true;
    for (double left_s = seconds; on && left_s > 0; left_s = end_s - knee_clock_s()) {
        bool running = cli_alarm_reap(&w->commands);
        on = cli_serve(&w->server, &w->metrics, running && left_s > 0.5 ? 0.5 : left_s);
    }
    return on;
}

static knee_status watch_on(struct cli_run *run, struct watching *w)
{
    const struct watch_options *options = run->objects[0];
    knee_status status = KNEE_OK;
    do {
        status = look(run, w);
        if (status == KNEE_INPUT || (status == KNEE_SYSTEM && !run->answered)) {
            miss(run, w);
            status = KNEE_OK;
        } else if (!status) {
            w->missed[0] = '\0';
            status = show(run);
        }
        run->answered = run->answered && status;
    } while (!status && rest(w, every(options)));
    if (options->prom)
        knee_output_remove(options->prom); /* a job that is not watched has no metrics */
    return status;
}

/* The command of an alarm belongs to the answer of a single look. */
static knee_status watch_once(struct cli_run *run, struct watching *w)
{
    const struct watch_options *options = run->objects[0];
    knee_status status = look(run, w);
    while (!status && cli_alarm_reap(&w->commands) && knee_stop_sleep(0.02))
        continue;
    if (!status && w->commands.failed)
        return knee_fail(&run->err, KNEE_SYSTEM, "--run", "'%.60s' failed", options->command);
    return status;
}

static knee_status watch_folder(struct cli_run *run)
{
    const struct watch_options *options = run->objects[0];
    struct watching w = {.watcher = {.dir = run->words[0],
                                     .price_per_hour = options->price_per_hour,
                                     .trace_step = -1}};
    knee_status status = KNEE_OK;
    if (options->when)
        status = cli_watcher_alarms(&w.watcher, options->when, &run->err);
    if (!status && options->listen && options->once)
        status = knee_fail(&run->err, KNEE_USAGE, "--listen", "does not work with --once");
    if (!status && options->listen)
        status = cli_listen(options->listen, &w.server, &run->err);
    if (!status)
        status = options->once ? watch_once(run, &w) : watch_on(run, &w);
    cli_alarm_end(&w.commands);
    cli_server_close(&w.server);
    cli_watcher_release(&w.watcher);
    knee_text_release(&w.metrics);
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
        struct knee_ras_report report = {&judged, answers[count - 1].nccl};
        knee_answer_write(&knee_ras_answer_type, &report, cli_format(run), &style, &run->text);
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
        knee_fail(&run->err, KNEE_USAGE, "--ras", "works only with --once and --every");
        knee_hint(&run->err, "alarms and metrics need a folder: knee record env");
        return KNEE_USAGE;
    }
    knee_status status = look_at_ras(run, options->ras);
    while (!status && !options->once) {
        status = show(run);
        if (status || !knee_stop_sleep(every(options)))
            return status;
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
        return knee_fail(&run->err, KNEE_USAGE, "--html",
                         "not available for a running job; use knee report");
    if (options.ras) {
        knee_stop_catch();
        return watch_ras(run);
    }
    if (run->word_count != 1) {
        knee_fail(&run->err, KNEE_USAGE, "", "no folder given");
        knee_hint(&run->err,
                  "give the folder of knee record env, for example: knee watch knee-live");
        return KNEE_USAGE;
    }
    knee_stop_catch(); /* SIGHUP too: stale metrics would look current */
    return watch_folder(run);
}

const struct cli_command cli_watch = {
    .name = "watch",
    .operands = "[DIR]",
    .summary = "a running job: is it healthy, which rank is late, since when",
    .common = {"once", "every", "when", "run", "listen", "ras"},
    .about = "Reads the files of 'knee record env' and prints the state of the job "
             "every two seconds: RUNNING, STALE or HUNG, efficiency, which rank is late and since "
             "when. --when sets alarms, --listen serves Prometheus.",
    .examples = "  knee watch /shared/run7\n"
                "  knee watch /shared/run7 --once --json\n"
                "  knee watch /shared/run7 --when 'R > 0.5 for 5m' --run ./page-me\n"
                "  knee watch /shared/run7 --listen 9757\n",
    .keys = {&watch_keys},
    .most_words = 1,
    .main = watch_main,
};
