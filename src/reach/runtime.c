/* SPDX-License-Identifier: MIT */
/*
 * Picks and loads the runtime. The loadable objects lie beside the program, as in build/, or in
 * ../lib/knee, as installed; one is only looked for when the run needs it.
 */
#include "reach/runtime.h"

#include "base/error.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What launchers tell a process of itself. A rank alone says nothing: every shell inside a Slurm
 * step has one. mpirun's own size does, be it 1. */
static const struct {
    const char *size, *rank;
    long least;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", 1},
    {"PMI_SIZE", "PMI_RANK", 2},              /* MPICH, Slurm's pmi2 */
    {"SLURM_STEP_NUM_TASKS", "PMIX_RANK", 2}, /* Slurm's pmix */
};

/* The rank that a launcher gave; NULL: there is none. */
static const char *launched_rank(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *size = getenv(launchers[i].size), *rank = getenv(launchers[i].rank);
        if (size && rank && strtol(size, NULL, 10) >= launchers[i].least)
            return rank;
    }
    return NULL;
}

/* What the user wants instead, in KNEE_RUNTIME; NULL: what the launcher says. */
static const char *asked_for(void)
{
    const char *name = getenv("KNEE_RUNTIME");
    return name && *name ? name : NULL;
}

bool knee_runtime_launched(void)
{
    const char *asked = asked_for();
    return asked ? strcmp(asked, "self") != 0 : launched_rank() != NULL;
}

int knee_runtime_rank(void)
{
    const char *rank = knee_runtime_launched() ? launched_rank() : NULL;
    return rank ? (int)strtol(rank, NULL, 10) : 0;
}

struct engine {
    const char *name;
    const char *object;         /* NULL: built in */
    knee_runtime_fill_fn *fill; /* built in */
    bool stands_on;             /* needs a runtime under it */
    const char *missing;        /* what to do when the object is not there */
};

static const struct engine engines[] = {
    {"self", NULL, knee_runtime_fill_self, false, ""},
    {"mpi", "knee-mpi.so", NULL, false,
     "install openmpi-bin and libopenmpi-dev and build again: make MPI=1"},
    {"nccl", "knee-nccl.so", NULL, true, "install CUDA and NCCL and build again: make CUDA=1"},
};

static const struct engine *find_engine(const char *name)
{
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++)
        if (strcmp(engines[i].name, name) == 0)
            return &engines[i];
    return NULL;
}

/* FOLDER/object into `path`, if it can be read there. */
static bool object_in(const char *folder, size_t length, const char *below, const char *object,
                      char *path, size_t size)
{
    int wrote = snprintf(path, size, "%.*s%s/%s", (int)length, folder, below, object);
    return wrote > 0 && (size_t)wrote < size && access(path, R_OK) == 0;
}

bool knee_runtime_program(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    path[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* Code is loaded from where this program came from and from nowhere else: its own folder when that
 * is where it was built, ../lib/knee when it was installed, or the folder that KNEE_PLUGIN_DIR
 * names, which then is the only one. */
bool knee_runtime_object(const char *object, char *path, size_t size)
{
    const char *told = getenv("KNEE_PLUGIN_DIR");
    if (told && *told)
        return object_in(told, strlen(told), "", object, path, size);
    char program[PATH_MAX];
    size_t length = knee_runtime_program(program, sizeof program) ? strlen(program) : 0;
    while (length > 0 && program[length - 1] != '/')
        length--;
    return length > 0 && (object_in(program, length - 1, "", object, path, size) ||
                          object_in(program, length, "../lib/knee", object, path, size));
}

/* May this program load that file? Only if root, this user or the owner of the program owns it, in
 * a folder that is not writable by all users. */
static bool trusted(const char *path)
{
    struct stat program, part;
    char folder[PATH_MAX];
    bool known = stat("/proc/self/exe", &program) == 0;
    snprintf(folder, sizeof folder, "%s", path);
    for (int up = 0; up < 2; up++) { /* the object, then its folder */
        if (stat(folder, &part) != 0 || part.st_mode & S_IWOTH)
            return false;
        if (part.st_uid != 0 && part.st_uid != geteuid() &&
            !(known && part.st_uid == program.st_uid))
            return false;
        char *slash = strrchr(folder, '/');
        if (!slash)
            return true;
        *slash = '\0';
    }
    return true;
}

static knee_status refuse_object(const char *path, struct knee_err *err)
{
    return knee_fail_hint(err, KNEE_SYSTEM, path,
                          "it and its folder must be root's or yours, and not writable by all",
                          "is not loaded: another user could have put it there");
}

/* What the object at `path` exports, once its number says that it was built for this program. */
static knee_status entry_of(const char *path, const char *object, void **fill, struct knee_err *err)
{
    /* Global: MPI loads parts of itself that look for its symbols. Never unloaded, for MPI cannot
     * be started twice. */
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    const uint32_t *abi = handle ? dlsym(handle, KNEE_RUNTIME_ABI_ENTRY) : NULL;
    if (handle && (!abi || *abi != KNEE_RUNTIME_ABI))
        return knee_fail_hint(err, KNEE_SYSTEM, path,
                              "build and install both together: make install",
                              "this object was built for another knee than this one");
    *fill = handle ? dlsym(handle, KNEE_RUNTIME_ENTRY) : NULL;
    if (*fill)
        return KNEE_OK;
    const char *why = dlerror();
    return knee_fail(err, KNEE_SYSTEM, object, "cannot be loaded: %s", why ? why : "");
}

static knee_status load(const struct engine *engine, knee_runtime_fill_fn **fill,
                        struct knee_err *err)
{
    char path[PATH_MAX];
    if (!knee_runtime_object(engine->object, path, sizeof path)) {
        knee_fail(err, KNEE_SYSTEM, "", "this run needs %s, which this build does not have",
                  engine->object);
        knee_hint(err, "%s", engine->missing);
        return KNEE_SYSTEM;
    }
    void *symbol = NULL;
    if (!trusted(path))
        return refuse_object(path, err);
    knee_status status = entry_of(path, engine->object, &symbol, err);
    if (status)
        return status;
    memcpy(fill, &symbol, sizeof symbol); /* ISO C has no cast from object to function pointer */
    return KNEE_OK;
}

/* The others may be waiting for this rank in the runtime below: they end too. */
static knee_status cannot_start(const struct engine *engine, struct knee_runtime *base,
                                const char *why, struct knee_err *err)
{
    struct knee_err own = {0};
    err = err ? err : &own;
    knee_fail(err, KNEE_SYSTEM, "", "%s cannot start: %s", engine->name, why);
    if (base && base->size > 1)
        base->abort(base, err->what);
    if (base)
        base->finish(base);
    return KNEE_SYSTEM;
}

knee_status knee_runtime_open_over(const char *name, struct knee_runtime *base,
                                   struct knee_runtime **out, struct knee_err *err)
{
    const struct engine *engine = find_engine(name);
    if (!engine)
        return knee_fail(err, KNEE_USAGE, "", "there is no runtime '%.40s'", name);
    knee_runtime_fill_fn *fill = engine->fill;
    struct knee_err why = {0};
    if (!fill && load(engine, &fill, &why)) {
        if (!base && err)
            *err = why;
        return base ? cannot_start(engine, base, why.what, err) : why.status;
    }
    struct knee_runtime *rt = calloc(1, sizeof *rt);
    if (rt && fill && fill(rt, base)) {
        *out = rt;
        return KNEE_OK;
    }
    knee_status status = cannot_start(engine, base, rt ? rt->fault : "out of memory", err);
    free(rt);
    return status;
}

static knee_status check_asked_for(const char *name, struct knee_err *err)
{
    const struct engine *engine = find_engine(name);
    if (engine && !engine->stands_on)
        return KNEE_OK;
    return knee_fail_hint(err, KNEE_USAGE, "KNEE_RUNTIME", "self or mpi",
                          "there is no runtime '%.40s'", name);
}

knee_status knee_runtime_open(const char *name, struct knee_runtime **out, struct knee_err *err)
{
    struct knee_runtime *base = NULL;
    const char *asked = name ? NULL : asked_for();
    knee_status status = asked ? check_asked_for(asked, err) : KNEE_OK;
    name = name ? name : asked ? asked : knee_runtime_launched() ? "mpi" : "self";
    const struct engine *engine = find_engine(name);
    if (!status && engine && engine->stands_on)
        status = knee_runtime_open(NULL, &base, err);
    return status ? status : knee_runtime_open_over(name, base, out, err);
}
