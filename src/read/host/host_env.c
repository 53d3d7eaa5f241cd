/* SPDX-License-Identifier: MIT */
/*
 * The environment and what acts like it: env's output, /proc/PID/environ, and NCCL's files of
 * settings (NCCL_CONF_FILE, ~/.nccl.conf, /etc/nccl.conf), whose names are taken up to '=' without
 * trimming. Also ulimit -a and lsmod. Only variables that matter to training are kept, by the
 * prefixes of libraries and by name; none that sounds like a secret is.
 */
#include "read/host/host_read.h"

#include "base/format.h"

#include <string.h>

static const char *const kept[] = {
    "NCCL_",        "RCCL_",     "CUDA_",    "TORCH_",   "PYTORCH_", "OMP_",     "MKL_NUM",
    "FI_",          "UCX_",      "GLOO_",    "EFA_",     "HSA_",     "HIP_",     "ROCR_",
    "OMPI_MCA_btl", "SLURM_NN",  "SLURM_NT", "SLURM_GP", "KMP_",     "GOMP_",    "NVSHMEM_",
    "SHARP_",       "MELLANOX_", "AWS_OFI",  "LD_PRELO", "XLA_",     "OPENBLAS",
};

/* Prefixes that others use too, for tokens among other things: by their full names. */
static const char *const kept_names[] = {
    "MASTER_ADDR",
    "MASTER_PORT",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "SLURM_LOCALID",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "PMI_LOCAL_RANK",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_TF32_OVERRIDE",
    "TF_CPP_MIN_LOG_LEVEL",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_GPU_THREAD_MODE",
    "TF_XLA_FLAGS",
};

/* Words of names that are never kept, and the names of settings that only contain one. */
static const char *const secret_words[] = {"KEY", "TOKEN", "SECRET", "PASS", "CRED"};
static const char *const no_secrets[] = {"PKEY", "BYPASS"};

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static bool sounds_secret(struct knee_slice name)
{
    char text[128];
    struct knee_slice rest, part;
    size_t length = name.length < sizeof text ? name.length : sizeof text;
    if (name.length > sizeof text)
        return true; /* no setting has such a name */
    for (size_t i = 0; i < length; i++)
        text[i] = upper(name.at[i]);
    rest = (struct knee_slice){text, length};
    while (knee_slice_until(&rest, '_', &part)) {
        bool setting = false;
        for (size_t i = 0; i < sizeof no_secrets / sizeof *no_secrets; i++)
            setting = setting || knee_slice_is(part, no_secrets[i]);
        for (size_t i = 0; !setting && i < sizeof secret_words / sizeof *secret_words; i++)
            if (knee_slice_has(part, secret_words[i]))
                return true;
    }
    return false;
}

/* NCLL_, NNCL_, nccl_, NCCLDEBUG: what people write for NCCL_. Its letters come in any order. */
static bool meant_for_nccl(struct knee_slice name)
{
    size_t word = 0;
    while (word < name.length && strchr("NCLncl", name.at[word]) && name.at[word])
        word++;
    bool end = word == name.length || name.at[word] == '_' || name.at[word] == '-';
    return word >= 3 && word <= 6 && (end || word >= 4);
}

static bool keep(struct knee_slice name)
{
    if (sounds_secret(name))
        return false;
    if (meant_for_nccl(name))
        return true;
    for (size_t i = 0; i < sizeof kept_names / sizeof *kept_names; i++)
        if (knee_slice_is(name, kept_names[i]))
            return true;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (knee_slice_starts(name, kept[i]))
            return true;
    return false;
}

static bool is_name(struct knee_slice name)
{
    for (size_t i = 0; i < name.length; i++) {
        char c = name.at[i];
        bool dash = c == '-' && meant_for_nccl(name); /* docker takes it, no shell does */
        if (!(c == '_' || dash || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
              (c >= '0' && c <= '9')))
            return false;
    }
    return name.length > 0 && !(name.at[0] >= '0' && name.at[0] <= '9');
}

/* "export NAME='value'" as people paste it. */
static bool assignment(struct knee_slice line, struct knee_slice *name, struct knee_slice *value)
{
    line = knee_slice_trim(line);
    bool shell = knee_slice_starts(line, "export ");
    if (shell)
        line = knee_slice_trim(knee_slice_from(line, 7));
    size_t at = knee_slice_find(line, "=");
    *name = (struct knee_slice){line.at, at};
    *value = knee_slice_from(line, at + 1);
    if (shell) { /* a remark behind it */
        value->length = knee_slice_find(*value, " #");
        *value = knee_slice_trim(*value);
    }
    if (value->length > 1 && (value->at[0] == '"' || value->at[0] == '\'') &&
        value->at[value->length - 1] == value->at[0])
        *value = (struct knee_slice){value->at + 1, value->length - 2};
    return at < line.length && is_name(*name);
}

bool knee_read_env(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line, name, value, whole = text;
    char end = memchr(text.at, '\0', text.length) ? '\0' : '\n'; /* environ ends with NULs */
    size_t good = 0, all = 0;
    while (knee_slice_until(&text, end, &line)) {
        line = knee_slice_trim(line);
        if (line.length == 0 || line.at[0] == '#')
            continue;
        all++;
        good += assignment(line, &name, &value);
    }
    if (good == 0 || 2 * good < all)
        return false;
    while (knee_slice_until(&whole, end, &line))
        if (assignment(line, &name, &value) && keep(name)) {
            knee_fact_add(facts, name, "env", value);
            knee_fact_add(facts, name, "env.from", knee_slice_of("environment"));
        }
    knee_fact_put(facts, "", "env.read", knee_slice_of("yes"));
    return true;
}

static bool settings(struct knee_facts *facts, struct knee_slice text, const char *key)
{
    struct knee_slice line;
    while (knee_slice_line(&text, &line)) {
        size_t at = knee_slice_find(line, "=");
        if (line.length == 0 || line.at[0] == '#' || at == line.length)
            continue;
        struct knee_slice name = {line.at, at};
        if (!sounds_secret(name))
            knee_fact_add(facts, name, key, knee_slice_from(line, at + 1));
    }
    return true;
}

bool knee_read_nccl_conf(struct knee_facts *facts, struct knee_slice text)
{
    return settings(facts, text, "conf.etc");
}

/* The file that NCCL_CONF_FILE names; ~/.nccl.conf is not read then. */
bool knee_read_nccl_named(struct knee_facts *facts, struct knee_slice text)
{
    return settings(facts, text, "conf.file");
}

bool knee_read_nccl_home(struct knee_facts *facts, struct knee_slice text)
{
    return settings(facts, text, "conf.home");
}

/* ---- ulimit -a ---- */

static const struct {
    const char *word, *key;
    double unit;
} limits[] = {
    {"max locked memory", "limit.memlock_bytes", 1024},
    {"open files", "limit.nofile", 1},
    {"stack size", "limit.stack_bytes", 1024},
    /* /proc/PID/limits has bytes */
    {"Max locked memory", "limit.memlock_bytes", 1},
    {"Max open files", "limit.nofile", 1},
    {"Max stack size", "limit.stack_bytes", 1},
};

static bool limit_line(struct knee_facts *facts, struct knee_slice line)
{
    double number;
    struct knee_slice word;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (!knee_slice_starts(line, limits[i].word))
            continue;
        struct knee_slice rest = knee_slice_from(line, strlen(limits[i].word));
        while (knee_slice_word(&rest, &word)) {
            if (knee_slice_is(word, "unlimited"))
                knee_fact_put(facts, "", limits[i].key, word);
            else if (knee_slice_number(word, &number))
                knee_fact_number(facts, "", limits[i].key, number * limits[i].unit);
            else
                continue;
            return true;
        }
    }
    return false;
}

bool knee_read_ulimit(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line;
    bool any = false;
    if (!knee_slice_has(text, "open files"))
        return false;
    while (knee_slice_line(&text, &line))
        any = limit_line(facts, line) || any;
    return any;
}

/* ---- lsmod, /proc/modules ---- */

static const char *const modules[] = {"nvidia_peermem", "nv_peer_mem", "nvidia", "gdrdrv",
                                      "mlx5_ib",        "efa",         "amdgpu", "ib_uverbs"};

/* Every line of two words or more has a size behind the name. */
static bool is_module_list(struct knee_slice text)
{
    struct knee_slice line, name, size;
    double number;
    while (knee_slice_line(&text, &line))
        if (knee_slice_word(&line, &name) && knee_slice_word(&line, &size) &&
            !knee_slice_number(size, &number) && !knee_slice_is(size, "Size"))
            return false;
    return true;
}

bool knee_read_lsmod(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_slice line, word, size;
    size_t before = facts->count;
    if (!is_module_list(text))
        return false;
    while (knee_slice_line(&text, &line)) {
        char key[48];
        bool row = knee_slice_word(&line, &word) && knee_slice_word(&line, &size);
        for (size_t i = 0; row && i < sizeof modules / sizeof *modules; i++)
            if (knee_slice_is(word, modules[i])) {
                knee_format(key, sizeof key, "module.%s", modules[i]);
                knee_fact_put(facts, "", key, knee_slice_of("loaded"));
            }
    }
    if (facts->count == before)
        return false;
    knee_fact_put(facts, "", "module.list", knee_slice_of("read"));
    return true;
}
