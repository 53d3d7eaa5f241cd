/* SPDX-License-Identifier: MIT */
/*
 * doctor: what is wrong with a host, a cluster or a job, by the outputs and logs that are named.
 * Looking at a live host or walking a saved one needs an operating system: the program does it
 * (cli/cmd_doctor.c) and hands over the facts.
 */
#include "ask/ask_doctor.h"

#include "ask/ask_hang.h"
#include "base/error.h"
#include "base/format.h"
#include "base/keys.h"
#include "base/slice.h"
#include "judge/doctor/doctor_judge.h"
#include "judge/hang/hang.h"
#include "knee_read.h"

#include <math.h>
#include <string.h>

#define LARGEST_TEXT ((size_t)1 << 20) /* of rules and job files */

#define WORD(key_name, field, heading, absent, words)                                              \
    KNEE_OPTION(struct knee_ask_doctor_options, key_name, KNEE_KEY_WORD, field, heading, absent,   \
                words)

static const struct knee_key rows[] = {
    WORD("from", from, "What to check", "this host",
         "host saved with --save, or a folder with one folder per host"),
    WORD("root", from, "What to check", "this host", "the same as --from"),
    WORD("log", log, "What to check", "none", "log with NCCL messages (NCCL_DEBUG=INFO or WARN)"),
    WORD("save", save, "What to check", "none",
         "save what knee reads of this host, without secrets, for --from"),
    WORD("nccl", nccl, "What to check", "from the log or the library",
         "NCCL release in use, such as 2.28.9"),
    KNEE_NUMBER(struct knee_ask_doctor_options, "limit", limit_s, KNEE_UNIT_SECONDS, 0.01, 600,
                "What to check", "5s", "time limit for nvidia-smi and other commands"),
    KNEE_NUMBER(struct knee_ask_doctor_options, "window", window_s, KNEE_UNIT_SECONDS, 0, 3600,
                "What to check", "counters are not checked",
                "read the ports' error counters twice, this far apart"),
    KNEE_OPTION(struct knee_ask_doctor_options, "bench", KNEE_KEY_SWITCH, bench, "What to check",
                "", "under mpirun: also measure every pair of hosts briefly and report slow ones"),
    WORD("rules-file", rules_file, "Rules", "none",
         "CSV with your own rules; columns id,severity,key,test,limit,says,cure"),
    KNEE_OPTION(struct knee_ask_doctor_options, "rules", KNEE_KEY_SWITCH, rules, "Rules", "",
                "list all rules"),
    KNEE_CHOICE(struct knee_ask_doctor_options, "gate", gate, knee_severity_names, "Rules",
                "warning",
                "exit with status 1 if a finding is at least this bad: note, warning or error"),
    WORD("job", job, "Cost", "cost of one all-reduce",
         "job file as for knee predict: shows what each finding costs this job"),
};

static const struct knee_keys doctor_keys = KNEE_KEY_TABLE(rows, struct knee_ask_doctor_options);

/* Of the job's inputs those that a price needs; the others belong into the job file. */
static const char *const job_names[] = {
    "model", "params",  "global-batch", "global-tokens", "local-batch",
    "gpu",   "cluster", "mfu",          "overlap",       "workers",
    "price", "at",      "compute-time", "seq",           NULL};

/* What is examined. */
struct examined {
    struct knee_facts own, *hosts; /* `own` where the program has looked at none */
    size_t count;
    struct knee_job_record job; /* texts and dumps of a job among the files */
    char strange[200];          /* names of files that are not recognised */
};

/* ---- Files ---- */

/* One file: as an output of a host, as a text or dump of a job, or as both. */
static knee_status take_file(struct examined *p, const char *name, char *data, size_t length,
                             struct knee_err *err)
{
    struct knee_facts *facts = &p->hosts[0];
    const char *base = knee_base_name(name);
    struct knee_slice text = {data, length};
    bool known = knee_host_file(facts, base, data, length);
    if (!facts->host[0])
        knee_format(facts->host, sizeof facts->host, "%.60s", knee_ask_input_name(name));
    if (known && !knee_job_signs(text, NULL))
        return KNEE_OK;
    p->job.nccl_elsewhere = known;
    knee_status status = knee_job_read(&p->job, knee_ask_input_name(name), data, length, err);
    bool used = !status && p->job.files[p->job.file_count - 1].kind != NULL;
    if (used && !known) {
        facts->strange--;
        facts->files++;
    } else if (!known) {
        knee_names_add(p->strange, sizeof p->strange, base);
    }
    return status;
}

static knee_status read_file(struct knee_ask *ask, struct examined *p, const char *name,
                             struct knee_err *err)
{
    struct knee_ask_job_file file;
    knee_status status = knee_ask_job_file(ask, name, &file, err);
    if (status)
        return status;
    status = take_file(p, name, file.data, file.length, err);
    knee_ask_job_file_done(ask, &file);
    return status;
}

static knee_status read_files(struct knee_ask_question *q, struct examined *p, struct knee_err *err)
{
    const struct knee_ask_doctor_options *options = q->objects[0];
    knee_status status = options->log ? read_file(q->ask, p, options->log, err) : KNEE_OK;
    for (size_t i = 0; i < q->word_count && !status; i++) {
        status = read_file(q->ask, p, q->words[i], err);
        if (status == KNEE_INPUT && options->folder) {
            p->hosts[0].unread++;
            if (err)
                memset(err, 0, sizeof *err); /* it is counted */
            status = KNEE_OK;
        }
        if (!status && !knee_ask_progress(q->ask, (double)(i + 1) / (double)q->word_count))
            status = knee_fail(err, KNEE_SYSTEM, "", "stopped");
    }
    return status;
}

/* Nothing that knee knows: an all-clear would be a lie. */
static knee_status check_read(const struct examined *p, const char *name, struct knee_err *err)
{
    size_t files = 0, strange = 0;
    for (size_t i = 0; i < p->count; i++) {
        files += p->hosts[i].files;
        strange += p->hosts[i].strange + p->hosts[i].unread;
        for (size_t k = 0; k < p->hosts[i].count && !files; k++)
            files += strncmp(p->hosts[i].rows[k].key, "file", 4) != 0;
    }
    if (files)
        return KNEE_OK;
    knee_fail(err, KNEE_INPUT, name, "read nothing: %zu file%s, none recognised", strange,
              strange == 1 ? "" : "s");
    knee_hint(err,
              "give output of nvidia-smi -q, ibstat, lspci -vvv, dmesg, env or rocm-smi --json, an "
              "NCCL log, or a job's folder");
    return KNEE_INPUT;
}

static knee_status read_job(struct knee_ask *ask, const char *name, struct knee_job *job,
                            struct knee_err *err)
{
    struct knee_ask_bytes bytes = {.data = NULL};
    knee_status status = knee_ask_read(ask, name, LARGEST_TEXT, &bytes, err);
    if (!status)
        status = knee_yaml_read((struct knee_named_text){bytes.data, bytes.length, name},
                                &knee_job_keys, job, sizeof *job, err);
    knee_ask_done(&bytes);
    return status;
}

static knee_status read_rules(struct knee_ask *ask, const char *name, struct knee_site_rules *out,
                              struct knee_err *err)
{
    struct knee_ask_bytes bytes = {.data = NULL};
    knee_status status = knee_ask_read(ask, name, LARGEST_TEXT, &bytes, err);
    if (!status)
        status =
            knee_site_rules_read(bytes.data, bytes.length, knee_ask_input_name(name), out, err);
    knee_ask_done(&bytes);
    return status;
}

/* ---- The answer ---- */

/* Is anything given of the job itself, besides the cluster? */
static bool has_job(const struct knee_job *job)
{
    return job->model >= 0 || !isnan(job->params) || !isnan(job->compute_time_s);
}

/* Without --gate the answer itself has said how many warnings and errors there are. */
static knee_status check_gate(int gate, const struct knee_checkup *checkup, struct knee_err *err)
{
    enum knee_severity least = gate < 0 ? KNEE_WARNING : (enum knee_severity)gate;
    size_t bad = knee_checkup_count(checkup, least);
    if (bad && gate >= 0)
        knee_fail(err, KNEE_GATE, "--gate", "%zu findings at or above '%s'", bad,
                  knee_severity_names.name((size_t)gate));
    return bad ? KNEE_GATE : KNEE_OK;
}

/* How the job ended, in the words of knee hang; what is borrowed lives in *said and *p. */
static knee_status tell_end(struct examined *p, struct knee_doctor_options *question,
                            struct knee_hang_answer *answer, struct knee_said *said,
                            struct knee_err *err)
{
    knee_status status = knee_hang_judge(&p->job, p->job.alloc, answer, err);
    if (status)
        return status;
    struct knee_hang_report report = {&p->job, answer};
    bool waits = answer->waits && answer->waits->waits >= 0;
    knee_hang_answer_type.say(&report, said);
    question->unknown_errors = p->job.unknown_errors;
    if (p->job.unknown_mark != KNEE_JOB_NO_MARK)
        question->unknown_error = p->job.marks[p->job.unknown_mark].text;
    if (answer->kind == KNEE_HANG_NOT ||
        (answer->kind == KNEE_HANG_UNKNOWN && !waits && !p->job.ranks && !p->job.later_errors))
        return KNEE_OK;
    if (answer->kind == KNEE_HANG_UNKNOWN && !waits && p->job.unknown_errors)
        return KNEE_OK; /* the lines themselves are shown */
    knee_text_puts(&said->headline, " ");
    knee_text_puts(&said->headline, said->reason.data ? said->reason.data : "");
    if (said->headline.failed)
        return knee_fail(err, KNEE_SYSTEM, "", "out of memory");
    question->job_end = said->headline.data;
    question->job_fix = knee_hang_fix(&report);
    question->job_where = answer->named_count ? answer->ranks[answer->named[0]].host : "";
    question->job_blames = answer->named_count > 0 || waits;
    return KNEE_OK;
}

static knee_status examine(struct knee_ask_question *q, struct examined *p, struct knee_err *err)
{
    const struct knee_ask_doctor_options *options = q->objects[0];
    const struct knee_job *job = q->objects[1];
    const struct knee_alloc *alloc = knee_ask_alloc(q->ask);
    struct knee_site_rules site = {0};
    struct knee_checkup checkup;
    struct knee_hang_answer end = {0};
    struct knee_said said;
    struct knee_doctor_options question = {
        .site = &site, .nccl = options->nccl, .job = has_job(job) ? job : NULL};
    knee_status status = KNEE_OK;
    knee_said_init(&said, alloc);
    if (options->rules_file)
        status = read_rules(q->ask, options->rules_file, &site, err);
    if (job->hw.cluster.level_count > 0)
        question.cluster = &job->hw.cluster;
    if (!status && p->job.file_count)
        status = tell_end(p, &question, &end, &said, err);
    if (!status)
        status = knee_doctor_examine(p->hosts, p->count, &question, alloc, &checkup, err);
    if (!status) {
        knee_format(checkup.strange_names, sizeof checkup.strange_names, "%s", p->strange);
        ASK_ANSWER(q, &knee_doctor_answer, &checkup);
        q->answered = true;
        status = check_gate(options->gate, &checkup, err);
        knee_checkup_release(&checkup);
    }
    knee_said_release(&said);
    knee_hang_answer_release(&end);
    knee_site_rules_release(&site);
    return status;
}

static knee_status no_files(struct knee_err *err)
{
    return knee_fail_hint(err, KNEE_USAGE, "",
                          "name command outputs and logs; the program looks at hosts and folders",
                          "no files are named");
}

static knee_status answer(struct knee_ask_question *q, struct knee_err *err)
{
    const struct knee_ask_doctor_options *options = q->objects[0];
    struct examined p = {.hosts = options->hosts, .count = options->host_count};
    bool files = options->log || q->word_count;
    if (options->rules) {
        ASK_ANSWER(q, &knee_rules_answer, &q->style);
        return KNEE_OK;
    }
    if (!p.hosts && (!files || options->from || options->save || options->bench))
        return no_files(err);
    knee_status status =
        options->job ? read_job(q->ask, options->job, q->objects[1], err) : KNEE_OK;
    if (status)
        return status;
    if (!p.hosts) {
        p.own.alloc = knee_ask_alloc(q->ask);
        p.hosts = &p.own;
        p.count = 1;
    }
    knee_job_record_init(&p.job, knee_ask_alloc(q->ask));
    status = read_files(q, &p, err);
    const char *name = options->from     ? options->from
                       : options->folder ? options->folder
                       : options->log    ? options->log
                       : q->word_count   ? q->words[0]
                                         : NULL;
    if (!status && name)
        status = check_read(&p, name, err);
    if (!status)
        status = examine(q, &p, err);
    knee_facts_release(&p.own);
    knee_job_record_release(&p.job);
    return status;
}

struct objects {
    struct knee_ask_doctor_options options;
    struct knee_job job;
};

static void init(void *room, void **objects)
{
    struct objects *all = room;
    knee_keys_clear(&doctor_keys, &all->options);
    knee_job_init(&all->job);
    objects[0] = &all->options;
    objects[1] = &all->job;
}

const struct knee_ask_command knee_ask_doctor = {
    .name = "doctor",
    .keys = {&doctor_keys, &knee_job_keys},
    .only = {NULL, job_names},
    .most_words = ASK_WORDS,
    .operands = "[FILE...]",
    .size = sizeof(struct objects),
    .init = init,
    .answer = answer,
};
