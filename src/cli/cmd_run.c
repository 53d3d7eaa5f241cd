/* SPDX-License-Identifier: MIT */
/*
 * knee run -- COMMAND: starts a job with everything recorded that costs nothing, and says at its
 * end what limited it, or where it hung. The job is a child of this process in the same process
 * group: what a terminal sends reaches both, what is sent to knee alone is handed on, and the exit
 * status is the job's own.
 */
#include "base/error.h"
#include "base/keys.h"
#include "cli/cli.h"
#include "reach/files.h"
#include "reach/runtime.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct run_options {
    const char *dir;
    bool no_agent;
    unsigned char source[KNEE_KEYS_MAX];
};

static const struct knee_key rows[] = {
    KNEE_OPTION(struct run_options, "dir", KNEE_KEY_WORD, dir, "Recording", "knee-run",
                "folder for the recordings; with several nodes, one that all of them share"),
    KNEE_OPTION(struct run_options, "no-agent", KNEE_KEY_SWITCH, no_agent, "Recording", "",
                "do not load knee's recorder; the Flight Recorder stays on"),
};
static const struct knee_keys run_keys = KNEE_KEY_TABLE(rows, struct run_options);

/* ---- The job's environment ---- */

/* What the user has set stays. */
static void set_variable(void *ctx, const char *name, const char *value)
{
    bool *good = ctx;
    *good = setenv(name, value, 0) == 0 && *good;
}

/* The release in the name of PyTorch's folder: FOLDER/lib*, python3*, *-packages, torch-RELEASE. */
static bool find_release(const char *folder, size_t level, char *release, size_t size)
{
    static const char *const starts[] = {"lib", "python3", "", "torch-"};
    size_t length = strlen(starts[level]);
    char path[PATH_MAX];
    struct dirent *entry;
    bool found = false;
    int fd = knee_open_folder(AT_FDCWD, folder, KNEE_INPUT_NAMED);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !dir)
        close(fd);
    while (dir && !found && (entry = readdir(dir))) {
        const char *name = entry->d_name;
        if (strncmp(name, starts[level], length) != 0 || (level == 2 && !strstr(name, "-packages")))
            continue;
        if (level == 3)
            found = name[length] >= '0' && name[length] <= '9' &&
                    (size_t)snprintf(release, size, "%s", name + length) < size;
        else if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) < sizeof path)
            found = find_release(path, level + 1, release, size);
    }
    if (dir)
        closedir(dir);
    return found;
}

/* Does the Python beside `folder`/program have PyTorch 2.9 or newer? By the name of the package's
 * folder: to start Python and ask it takes seconds. *found: it has some PyTorch. */
static bool has_new_torch(const char *folder, size_t length, bool *found)
{
    char parent[PATH_MAX], release[64];
    unsigned major = 0, minor = 0;
    int used = snprintf(parent, sizeof parent, "%.*s/..", (int)length, folder);
    *found = used > 0 && (size_t)used < sizeof parent &&
             find_release(parent, 0, release, sizeof release);
    return *found && sscanf(release, "%u.%u", &major, &minor) == 2 &&
           (major > 2 || (major == 2 && minor >= 9));
}

/* The first PyTorch beside the program, or beside the programs of the path. */
static bool is_torch_new(const char *program)
{
    const char *slash = strrchr(program, '/'), *at = getenv("PATH");
    bool found = false, is_new = false;
    if (slash)
        is_new = has_new_torch(program, (size_t)(slash - program), &found);
    for (; at && !found; at = strchr(at, ':'), at = at ? at + 1 : NULL)
        if (*at == '/')
            is_new = has_new_torch(at, strcspn(at, ":"), &found);
    return is_new;
}

/* PyTorch keeps the last collectives of every rank and writes them when one does not end. Releases
 * up to 2.7 know only the first of two names, those from 2.9 on warn about it. */
static void set_flight_recorder(const char *dir, const char *program, bool *good)
{
    char file[PATH_MAX + 16];
    snprintf(file, sizeof file, "%s/flight/rank_", dir);
    if (!is_torch_new(program)) {
        set_variable(good, "TORCH_NCCL_TRACE_BUFFER_SIZE", "2000");
        set_variable(good, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", file);
    }
    set_variable(good, "TORCH_FR_BUFFER_SIZE", "2000");
    set_variable(good, "TORCH_FR_DUMP_TEMP_FILE", file);
    set_variable(good, "TORCH_NCCL_ENABLE_TIMING", "1");
    set_variable(good, "TORCH_NCCL_DUMP_ON_TIMEOUT", "1");
}

static knee_status prepare(struct cli_run *run, const struct run_options *options,
                           const char *program, char *dir)
{
    char inside[PATH_MAX + 8];
    bool good = true;
    const char *name = options->dir ? options->dir : "knee-run";
    knee_status status = KNEE_OK;
    if ((mkdir(name, 0777) != 0 && errno != EEXIST) || !realpath(name, dir))
        return knee_fail(&run->err, KNEE_SYSTEM, name, "cannot be made: %s", strerror(errno));
    snprintf(inside, sizeof inside, "%s/flight", dir);
    if (mkdir(inside, 0777) != 0 && errno != EEXIST)
        return knee_fail(&run->err, KNEE_SYSTEM, inside, "cannot be made: %s", strerror(errno));
    set_flight_recorder(dir, program, &good);
    snprintf(inside, sizeof inside, "%s/live", dir);
    if (!options->no_agent)
        status = cli_live_environment(inside, set_variable, &good, &run->err);
    if (status == KNEE_SYSTEM && run->err.where[0]) { /* no agent here: the job runs all the same */
        fprintf(stderr, "knee run: %s %s: steps are not recorded\n", run->err.where, run->err.what);
        memset(&run->err, 0, sizeof run->err);
        status = KNEE_OK;
    }
    return good ? status : knee_fail(&run->err, KNEE_SYSTEM, "", "out of memory");
}

/* ---- The job ---- */

static volatile sig_atomic_t job;
static const int handed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
enum { HANDED_ON = sizeof handed_on / sizeof *handed_on };

/* A terminal has sent it to the job as well. */
static void hand_on(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code <= 0 && job > 0)
        kill((pid_t)job, number);
}

static void catch_signals(struct sigaction *before)
{
    struct sigaction act = {.sa_sigaction = hand_on, .sa_flags = SA_SIGINFO | SA_RESTART};
    for (int i = 0; i < HANDED_ON; i++) {
        sigaction(handed_on[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) /* nohup knee run ... */
            sigaction(handed_on[i], &act, NULL);
    }
}

static void let_signals_go(const struct sigaction *before)
{
    for (int i = 0; i < HANDED_ON; i++)
        sigaction(handed_on[i], &before[i], NULL);
}

/* As a shell has it: the status, or 128 and the signal; 127 and 126 where it cannot be started. */
static int wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return KNEE_SYSTEM;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void become(char **command)
{
    execvp(command[0], command);
    fprintf(stderr, "knee run: %s: %s\n", command[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

/* A signal that comes before the child is known waits. */
static knee_status start(char **command, int *status, struct knee_err *err)
{
    struct sigaction before[HANDED_ON];
    sigset_t some, old;
    sigemptyset(&some);
    for (int i = 0; i < HANDED_ON; i++)
        sigaddset(&some, handed_on[i]);
    sigprocmask(SIG_BLOCK, &some, &old);
    catch_signals(before);
    pid_t child = fork();
    if (child == 0) {
        let_signals_go(before);
        sigprocmask(SIG_SETMASK, &old, NULL);
        become(command);
    }
    job = child;
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (child > 0)
        *status = wait_for(child);
    job = 0;
    let_signals_go(before);
    return child > 0
               ? KNEE_OK
               : knee_fail(err, KNEE_SYSTEM, command[0], "cannot be started: %s", strerror(errno));
}

/* ---- What it says ---- */

static bool has_files(const char *folder)
{
    DIR *dir = opendir(folder);
    bool found = false;
    if (!dir)
        return false;
    for (const struct dirent *entry = readdir(dir); entry && !found; entry = readdir(dir))
        found = entry->d_name[0] != '.';
    closedir(dir);
    return found;
}

static bool knows(const char *name)
{
    for (size_t i = 0; cli_commands[i]; i++)
        if (strcmp(cli_commands[i]->name, name) == 0)
            return true;
    return false;
}

/* This program once more, on standard error, for at most a minute: the job's output stays its own.
 */
static void say(const char *command, const char *folder, const char *option)
{
    enum { SECONDS = 60 };
    char self[PATH_MAX];
    pid_t child = knee_runtime_program(self, sizeof self) ? fork() : -1;
    if (child == 0) {
        alarm(SECONDS);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execl(self, "knee", command, folder, "--brief", option, (char *)NULL);
        _exit(KNEE_SYSTEM);
    }
    if (child > 0)
        wait_for(child);
}

/* A job that failed with a Flight Recorder's files hung; else its steps are what there is to say.
 */
static void say_what_was(const char *dir, int status)
{
    char flight[PATH_MAX + 8], live[PATH_MAX + 8];
    snprintf(flight, sizeof flight, "%s/flight", dir);
    snprintf(live, sizeof live, "%s/live", dir);
    if (status != 0 && has_files(flight))
        say(knows("hang") ? "hang" : "trace", flight, NULL);
    else if (has_files(live))
        say("watch", live, "--once");
    else if (status == 0)
        fprintf(stderr, "knee run: nothing was recorded in %s\n", live);
}

static knee_status run_main(struct cli_run *run, int argc, char **argv)
{
    struct run_options options = {0};
    char dir[PATH_MAX];
    int own = 0, status = 0;
    while (own < argc && strcmp(argv[own], "--") != 0)
        own++;
    bool marked = own < argc;
    if (!marked && argc > 0 && argv[0][0] != '-')
        own = 0; /* knee run torchrun ... */
    knee_keys_clear(&run_keys, &options);
    run->objects[0] = &options;
    knee_status parsed = cli_parse(run, own, argv);
    if (parsed || run->common.help)
        return parsed;
    char **command = argv + own + marked;
    if (run->word_count || own + marked >= argc) {
        knee_fail(&run->err, KNEE_USAGE, "", "no command to run");
        knee_hint(&run->err, "knee run -- torchrun --nproc-per-node 8 train.py");
        return KNEE_USAGE;
    }
    knee_status prepared = prepare(run, &options, command[0], dir);
    if (!prepared)
        prepared = start(command, &status, &run->err);
    if (prepared)
        return prepared;
    say_what_was(dir, status);
    return (knee_status)status;
}

const struct cli_command cli_run_job = {
    .name = "run",
    .operands = "-- COMMAND",
    .summary = "run a job, record it, and print what limited it or where it hung",
    .about =
        "Starts the command with knee's recorder and PyTorch's Flight Recorder switched on, waits "
        "for it, and prints what limited the job or where it hung to standard error. Signals and "
        "the exit status are passed through.",
    .common = {"dir", "no-agent"},
    .examples = "  knee run -- torchrun --nproc-per-node 8 train.py\n"
                "  srun knee run --dir /shared/run7 -- python train.py\n",
    .keys = {&run_keys},
    .most_words = 0,
    .main = run_main,
};
