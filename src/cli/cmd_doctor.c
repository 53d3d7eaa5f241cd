/* SPDX-License-Identifier: MIT */
/* knee doctor: is this cluster what it should be, and what does it cost if not. */
#include "ask/ask_doctor.h"
#include "base/error.h"
#include "base/slice.h"
#include "cli/cli.h"
#include "cli/ranks.h"
#include "doctor/doctor.h"
#include "reach/stop.h"
#include "read/hang/job_record.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What the program has found before it asks. */
struct found {
    struct knee_facts *hosts;
    size_t count;
    char **names;             /* files of a job's folder; NULL: the words are the files */
    struct knee_arena memory; /* of the names */
};

static void release(struct found *found)
{
    for (size_t i = 0; i < found->count; i++)
        knee_facts_release(&found->hosts[i]);
    free(found->hosts);
    knee_arena_release(&found->memory);
}

/* ---- Folders ---- */

static bool is_folder(const char *name)
{
    struct stat info;
    return stat(name, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Is this file the output of a job, by its first megabyte? */
static bool is_job_file(const char *name)
{
    enum { HEAD = 1 << 20 };
    char *head = malloc(HEAD);
    int fd = head ? knee_open_input(AT_FDCWD, name, KNEE_INPUT_LISTED) : -1;
    ptrdiff_t more = fd < 0 ? 0 : 1;
    size_t got = 0;
    while (more > 0 && got < HEAD) {
        more = knee_input_read(fd, head + got, HEAD - got);
        got += more > 0 ? (size_t)more : 0;
    }
    bool dump = got > 4 && knee_rollcall_recognise(head, got < 4096 ? got : 4096);
    bool is = dump || knee_job_signs((struct knee_slice){head ? head : "", got}, NULL);
    cli_close(fd);
    free(head);
    return is;
}

/* The files of a folder in which a job left its output; NULL: it is something else, or no memory.
 */
static char **job_folder(struct cli_run *run, const char *folder, struct knee_arena *arena)
{
    size_t passed = 0, job = 0;
    char **names = cli_job_files(&folder, 1, &passed, arena, &run->err);
    for (size_t i = 0; names && names[i] && !job; i++)
        job += is_job_file(names[i]);
    return job ? names : NULL;
}

/* A saved host or several, or the folder of a job. Files that are named are left to the library. */
static knee_status find_hosts(struct cli_run *run, struct knee_ask_doctor_options *options,
                              struct found *found)
{
    if (!options->from && run->word_count == 1 && is_folder(run->words[0])) {
        found->names = job_folder(run, run->words[0], &found->memory);
        if (found->names)
            options->folder = run->words[0];
        else
            options->from = run->words[0];
        run->word_count = 0;
    }
    return options->from ? knee_host_folder(options->from, &found->hosts, &found->count, &run->err)
                         : KNEE_OK;
}

static knee_status save(struct cli_run *run, const struct knee_ask_doctor_options *options)
{
    struct knee_facts facts = {0};
    struct knee_text left_out = {0};
    knee_status status =
        knee_host_save(options->save, options->limit_s, &facts, &left_out, &run->err);
    if (!status)
        knee_text_printf(&run->text, "Saved %zu facts of %s to %s. Left out, may be secret: %s\n",
                         facts.count, facts.host, options->save,
                         left_out.length ? left_out.data : "none");
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

static knee_status look(struct cli_run *run, const struct knee_ask_doctor_options *options,
                        struct found *out)
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

/* ---- The question ---- */

static knee_status find(struct cli_run *run, struct knee_ask_doctor_options *options,
                        struct found *found)
{
    bool files = options->from || options->log || run->word_count;
    if (options->bench && (files || !knee_runtime_launched())) {
        knee_fail(&run->err, KNEE_USAGE, "--bench", "needs at least two MPI ranks");
        knee_hint(&run->err, "mpirun -H a,b,c,d knee doctor --bench");
        return KNEE_USAGE;
    }
    knee_stop_catch();
    knee_status status = files ? find_hosts(run, options, found) : look(run, options, found);
    if (!status && knee_stop_signal())
        status = cli_stopped(&run->err);
    knee_stop_release();
    options->hosts = found->hosts;
    options->host_count = found->count;
    return status;
}

/* The files of a job's folder stand where the folder stood. */
static knee_status ask(struct cli_run *run, const struct found *found)
{
    const char **words = run->words;
    if (found->names) {
        run->words = (const char **)found->names;
        while (found->names[run->word_count])
            run->word_count++;
    }
    knee_status status = cli_answer(run, NULL);
    run->words = words;
    return status;
}

static knee_status save_or_ask(struct cli_run *run)
{
    struct knee_ask_doctor_options *options = run->objects[0];
    struct found found = {0};
    knee_status status = KNEE_OK;
    options->limit_s = isnan(options->limit_s) ? 5 : options->limit_s;
    options->window_s = isnan(options->window_s) ? 0 : options->window_s;
    if (options->save && !options->rules) {
        knee_stop_catch();
        status = save(run, options);
        return !status && knee_stop_signal() ? cli_stopped(&run->err) : status;
    }
    if (!options->rules)
        status = find(run, options, &found);
    if (!status && !run->quiet)
        status = ask(run, &found);
    release(&found);
    return status;
}

static knee_status doctor_main(struct cli_run *run, int argc, char **argv)
{
    run->quiet = knee_runtime_rank() > 0;
    return cli_ask_with(run, argc, argv, save_or_ask);
}

const struct cli_command cli_doctor = {
    .name = "doctor",
    .operands = "[FILE...]",
    .summary = "what is wrong with this node, cluster or job folder",
    .common = {"from", "save", "log", "cluster", "gate", "bench"},
    .about = "Checks this node (all nodes under mpirun or srun), a saved node, command outputs, or "
             "a job's logs. Prints what is wrong, the evidence, the fix and the cost. Needs no "
             "root and changes nothing.",
    .examples = "  knee doctor\n"
                "  mpirun -H a,b,c,d knee doctor --gate error\n"
                "  mpirun -H a,b,c,d knee doctor --bench\n"
                "  knee doctor --log train.log --cluster dgx-h100\n"
                "  knee doctor ibstat.txt nvidia-smi-q.xml dmesg.txt\n"
                "  knee doctor --from saved --model llama2-7b --gpus 64\n"
                "  knee doctor --rules --markdown\n",
    .ask = &knee_ask_doctor,
    .main = doctor_main,
};
