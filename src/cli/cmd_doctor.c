/* SPDX-License-Identifier: MIT */
/* knee doctor: is this cluster what it should be, and what does it cost if not. */
#include "base/error.h"
#include "base/keys.h"
#include "cli/cli.h"
#include "cli/ranks.h"
#include "doctor/doctor.h"
#include "knee_read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LARGEST_LOG ((size_t)1 << 30)

struct doctor_options {
    const char *from, *log, *save, *rules_file, *job, *nccl;
    bool rules, bench;
    int gate;
    double limit_s, window_s;
    unsigned char source[KNEE_KEYS_MAX];
};

#define WORD(key_name, field, heading, absent, words)                                              \
    {                                                                                              \
        .name = key_name, .kind = KNEE_KEY_WORD, .offset = offsetof(struct doctor_options, field), \
        .group = heading, .otherwise = absent, .help = words                                       \
    }

static const struct knee_key rows[] = {
    WORD("from", from, "What to look at", "this host",
         "a saved host, or a folder with one folder per host: files of /sys, /proc, /etc and "
         "outputs of commands"),
    WORD("root", from, "What to look at", "this host", "the same as --from"),
    WORD("log", log, "What to look at", "none",
         "a log with NCCL's lines (NCCL_DEBUG=INFO or WARN), alone or in a training log"),
    WORD("save", save, "What to look at", "nothing is written",
         "folder to write this host to, for --from elsewhere; secrets stay out"),
    WORD("nccl", nccl, "What to look at", "as the log or the library says",
         "NCCL release in use, such as 2.28.9"),
    KNEE_NUMBER(struct doctor_options, "limit", limit_s, KNEE_UNIT_SECONDS, 0.01, 600,
                "What to look at", "5s", "longest time that nvidia-smi and others may take"),
    KNEE_NUMBER(struct doctor_options, "window", window_s, KNEE_UNIT_SECONDS, 0, 3600,
                "What to look at", "counters are not judged",
                "read the ports' error counters twice, so long apart"),
    {.name = "bench",
     .kind = KNEE_KEY_SWITCH,
     .offset = offsetof(struct doctor_options, bench),
     .group = "What to look at",
     .otherwise = "",
     .help = "under mpirun: also measure every pair of hosts for a moment, and join slow ones with "
             "what was found"},
    WORD("rules-file", rules_file, "Rules", "none",
         "CSV with rules of your site: id,severity,key,test,limit,says,cure"),
    {.name = "rules",
     .kind = KNEE_KEY_SWITCH,
     .offset = offsetof(struct doctor_options, rules),
     .group = "Rules",
     .otherwise = "",
     .help = "list all rules and stop"},
    KNEE_CHOICE(struct doctor_options, "gate", gate, knee_severity_names, "Rules", "warning",
                "exit with status 1 when a finding is at least this bad: note, warning or error"),
    WORD("job", job, "Price", "the price is that of an all-reduce",
         "job file as for knee predict: what each finding costs this job"),
};

static const struct knee_keys doctor_keys = KNEE_KEY_TABLE(rows, struct doctor_options);

/* Of the job's inputs those that a price needs; the others belong into the job file. */
static const char *const job_names[] = {
    "model", "params",  "global-batch", "global-tokens", "local-batch",
    "gpu",   "cluster", "mfu",          "overlap",       "workers",
    "price", "at",      "compute-time", "seq",           NULL};

struct patients {
    struct knee_facts *hosts;
    size_t count;
};

static void release(struct patients *p)
{
    for (size_t i = 0; i < p->count; i++)
        knee_facts_release(&p->hosts[i]);
    free(p->hosts);
}

/* ---- Inputs ---- */

static knee_status read_input(struct cli_run *run, struct knee_facts *facts, const char *name)
{
    char *data = NULL;
    size_t length = 0;
    knee_status status = cli_read_file(name, LARGEST_LOG, &data, &length, &run->err);
    if (!status)
        status = knee_host_input(facts, name, data ? data : "", length, &run->err);
    free(data);
    if (!facts->host[0])
        snprintf(facts->host, sizeof facts->host, "%.60s", cli_input_name(name));
    return status;
}

static bool is_folder(const char *name)
{
    struct stat info;
    return stat(name, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Files of one host (or logs of one job) are one patient; a folder may hold several. */
static knee_status read_files(struct cli_run *run, const struct doctor_options *options,
                              struct patients *out)
{
    struct patients p = {0};
    const char *folder = options->from;
    knee_status status = KNEE_OK;
    if (!folder && run->word_count == 1 && is_folder(run->words[0]))
        folder = run->words[0];
    if (folder)
        status = knee_host_folder(folder, &p.hosts, &p.count, &run->err);
    else if (!(p.hosts = calloc(1, sizeof *p.hosts)))
        status = knee_fail(&run->err, KNEE_SYSTEM, "", "out of memory");
    else
        p.count = 1;
    if (!status && options->log && p.hosts)
        status = read_input(run, &p.hosts[0], options->log);
    for (size_t i = 0; i < run->word_count && !status && p.hosts; i++)
        if (run->words[i] != folder)
            status = read_input(run, &p.hosts[0], run->words[i]);
    if (status)
        release(&p);
    else
        *out = p;
    return status;
}

static knee_status save(struct cli_run *run, const struct doctor_options *options)
{
    struct knee_facts facts = {0};
    struct knee_text left_out = {0};
    knee_status status =
        knee_host_save(options->save, options->limit_s, &facts, &left_out, &run->err);
    if (!status)
        knee_text_printf(
            &run->text, "%zu facts of %s are in %s. Left out, for they may be secrets: %s\n",
            facts.count, facts.host, options->save, left_out.length ? left_out.data : "nothing");
    knee_text_release(&left_out);
    knee_facts_release(&facts);
    return status;
}

/* The first rank of a host looks at the host, the others at their variables alone. */
static bool first_of_host(const struct knee_runtime *rt)
{
    for (int rank = 0; rank < rt->rank; rank++)
        if (rt->host_of[rank] == rt->host)
            return false;
    return true;
}

static knee_status look(struct cli_run *run, const struct doctor_options *options,
                        struct patients *out)
{
    struct knee_runtime *rt = NULL;
    struct knee_facts mine = {0};
    struct knee_file_sink nobody = {NULL, NULL};
    knee_status status =
        knee_runtime_launched() ? knee_runtime_open(NULL, &rt, &run->err) : KNEE_OK;
    if (status)
        return status;
    if (rt)
        cli_same_question(run, rt);
    if (!rt || first_of_host(rt))
        knee_host_live(&mine, options->limit_s, options->window_s, nobody);
    else
        knee_host_variables(&mine);
    if (rt) {
        knee_host_gather(rt, &mine, &out->hosts, &out->count);
        if (options->bench)
            knee_host_bench(rt, out->hosts, out->count, &run->err);
        run->quiet = rt->rank > 0;
        rt->finish(rt);
        knee_facts_release(&mine);
        return KNEE_OK;
    }
    out->hosts = malloc(sizeof *out->hosts);
    if (!out->hosts) {
        knee_facts_release(&mine);
        return knee_fail(&run->err, KNEE_SYSTEM, "", "out of memory");
    }
    out->hosts[0] = mine;
    out->count = 1;
    return KNEE_OK;
}

/* ---- The answer ---- */

static knee_status read_job(struct cli_run *run, const char *name, struct knee_job *job)
{
    char *data = NULL;
    size_t length = 0;
    knee_status status = cli_read_file(name, (size_t)1 << 20, &data, &length, &run->err);
    if (!status)
        status = knee_yaml_read(data ? data : "", length, name, &knee_job_keys, job, sizeof *job,
                                &run->err);
    free(data);
    return status;
}

static knee_status read_rules(struct cli_run *run, const char *name, struct knee_site_rules *out)
{
    char *data = NULL;
    size_t length = 0;
    knee_status status = cli_read_file(name, (size_t)1 << 20, &data, &length, &run->err);
    if (!status)
        status =
            knee_site_rules_read(data ? data : "", length, cli_input_name(name), out, &run->err);
    free(data);
    return status;
}

/* Was anything said of the job itself, beside the cluster? */
static bool has_job(const struct knee_job *job)
{
    return job->model >= 0 || !isnan(job->params) || !isnan(job->compute_time_s);
}

/* Without --gate the answer itself has said how many warnings and errors there are. */
static knee_status check_gate(struct cli_run *run, int gate, const struct knee_checkup *checkup)
{
    enum knee_severity least = gate < 0 ? KNEE_WARNING : (enum knee_severity)gate;
    size_t bad = knee_checkup_count(checkup, least);
    if (bad && gate >= 0)
        knee_fail(&run->err, KNEE_GATE, "--gate", "%zu findings are at least '%s'", bad,
                  knee_severity_names.name((size_t)gate));
    return bad ? KNEE_GATE : KNEE_OK;
}

static knee_status examine(struct cli_run *run, const struct doctor_options *options,
                           const struct knee_job *job, struct patients *p)
{
    struct knee_site_rules site = {0};
    struct knee_checkup checkup;
    struct knee_doctor_options question = {
        .site = &site, .nccl = options->nccl, .job = has_job(job) ? job : NULL};
    knee_status status = KNEE_OK;
    if (options->rules_file)
        status = read_rules(run, options->rules_file, &site);
    if (job->hw.cluster.level_count > 0)
        question.cluster = &job->hw.cluster;
    if (!status)
        status = knee_doctor_examine(p->hosts, p->count, &question, NULL, &checkup, &run->err);
    if (!status) {
        struct knee_style style = cli_style(run);
        knee_write_checkup(&checkup, cli_format(run), &style, &run->text);
        status = check_gate(run, options->gate, &checkup);
        knee_checkup_release(&checkup);
    }
    knee_site_rules_release(&site);
    return status;
}

static knee_status doctor_main(struct cli_run *run, int argc, char **argv)
{
    struct doctor_options options = {0};
    struct knee_job job;
    struct patients p = {0};
    knee_keys_clear(&doctor_keys, &options);
    knee_job_init(&job);
    run->objects[0] = &options;
    run->objects[1] = &job;
    run->quiet = knee_runtime_rank() > 0;
    knee_status status = cli_parse(run, argc, argv);
    if (status || run->common.help)
        return status;
    options.limit_s = isnan(options.limit_s) ? 5 : options.limit_s;
    options.window_s = isnan(options.window_s) ? 0 : options.window_s;
    if (options.rules) {
        struct knee_style style = cli_style(run);
        knee_write_rules(cli_format(run), &style, &run->text);
        return KNEE_OK;
    }
    if (options.save)
        return save(run, &options);
    if (options.job && (status = read_job(run, options.job, &job)))
        return status;
    bool files = options.from || options.log || run->word_count;
    if (options.bench && (files || !knee_runtime_launched())) {
        knee_fail(&run->err, KNEE_USAGE, "--bench", "one process has nobody to measure with");
        knee_hint(&run->err, "mpirun -H a,b,c,d knee doctor --bench");
        return KNEE_USAGE;
    }
    status = files ? read_files(run, &options, &p) : look(run, &options, &p);
    if (!status && !run->quiet)
        status = examine(run, &options, &job, &p);
    release(&p);
    return status;
}

const struct cli_command cli_doctor = {
    .name = "doctor",
    .operands = "[FILE...]",
    .summary = "is this cluster what it should be, and what does it cost if not",
    .about =
        "Looks at this host (under mpirun or srun at all of them), a saved host, outputs of\n"
        "commands or a log of NCCL; says what is wrong, where, on what evidence, the cure, and\n"
        "what it costs: of the collective's bandwidth, or of a job. No root, nothing is changed.",
    .examples = "  knee doctor\n"
                "  mpirun -H a,b,c,d knee doctor --gate error\n"
                "  mpirun -H a,b,c,d knee doctor --bench\n"
                "  knee doctor --log train.log --cluster dgx-h100\n"
                "  knee doctor ibstat.txt nvidia-smi-q.xml dmesg.txt\n"
                "  knee doctor --from saved --model llama2-7b --workers 64\n"
                "  knee doctor --rules --markdown\n",
    .keys = {&doctor_keys, &knee_job_keys},
    .only = {NULL, job_names},
    .most_words = CLI_WORDS,
    .main = doctor_main,
};
