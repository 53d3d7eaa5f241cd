/* SPDX-License-Identifier: MIT */
/* This host. Files first, then programs that are there (at the same time), then what only calls
 * tell. */
#include "base/text.h"
#include "doctor/doctor.h"
#include "reach/stop.h"
#include "read/host/facts.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define LOG_BYTES ((size_t)8 << 20)

struct both {
    struct knee_facts *facts;
    struct knee_file_sink also;
};

static void take(void *ctx, const char *path, const char *data, size_t length)
{
    struct both *both = ctx;
    knee_host_file(both->facts, path, data, length);
    if (both->also.take)
        both->also.take(both->also.ctx, path, data, length);
}

/* ---- The kernel's log, without waiting for more of it ---- */

static void kernel_log(struct both *both)
{
    struct knee_text text = {0};
    char record[8192];
    int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t got;
    if (fd < 0)
        return;
    while (text.length < LOG_BYTES &&
           ((got = read(fd, record, sizeof record)) > 0 || (got < 0 && errno == EPIPE)))
        if (got > 0)
            knee_text_add(&text, record, (size_t)got);
    close(fd);
    if (text.length && !text.failed)
        take(both, "dmesg", text.data, text.length);
    knee_text_release(&text);
}

/* ---- Files of settings ---- */

static void settings(struct both *both)
{
    char path[4096];
    size_t length = 0;
    const char *file = getenv("NCCL_CONF_FILE"), *home = getenv("HOME");
    if (file && *file)
        snprintf(path, sizeof path, "%s", file);
    else
        snprintf(path, sizeof path, "%s/.nccl.conf", home ? home : "");
    char *data = knee_host_slurp(path, (size_t)1 << 20, &length);
    if (data)
        take(both, file && *file ? "NCCL_CONF_FILE" : ".nccl.conf", data, length);
    free(data);
}

/* ---- What only calls tell ---- */

/* ncclGetVersion is the one call that asks nothing of a GPU. */
static void library(struct knee_facts *facts)
{
    void *nccl = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
    int version = 0;
    char text[32];
    if (!nccl)
        return;
    int (*get)(int *) = NULL;
    void *symbol = dlsym(nccl, "ncclGetVersion");
    memcpy(&get, &symbol, sizeof get);
    if (get && get(&version) == 0 && version > 0) {
        int base = version >= 10000 ? 10000 : 1000; /* 2.9 and newer: 20900 */
        snprintf(text, sizeof text, "%d.%d.%d", version / base, version % base / 100,
                 version % 100);
        knee_fact_put(facts, "", "nccl.version", knee_slice_of(text));
    }
    dlclose(nccl);
}

static void shared_memory(struct knee_facts *facts)
{
    struct statvfs info;
    if (statvfs("/dev/shm", &info) == 0)
        knee_fact_number(facts, "", "shm.bytes", (double)info.f_blocks * (double)info.f_frsize);
}

/* ---- Counters over a window ---- */

static const struct {
    const char *counter, *key;
} growing[] = {
    {"symbol_error", "ib.grew.error"},
    {"link_error_recovery", "ib.grew.error"},
    {"link_downed", "ib.grew.error"},
    {"port_rcv_errors", "ib.grew.error"},
    {"local_link_integrity_errors", "ib.grew.error"},
    {"port_xmit_discards", "ib.grew.error"},
    {"out_of_sequence", "ib.grew.error"},
    {"packet_seq_err", "ib.grew.error"},
    {"local_ack_timeout_err", "ib.grew.error"},
};

static void read_counter(void *ctx, const char *path, const char *data, size_t length)
{
    struct knee_facts *facts = ctx;
    if (strstr(path, "counters/"))
        knee_host_file(facts, path, data, length);
}

static void growth(struct knee_facts *facts, double window_s)
{
    struct knee_facts later = {0};
    if (!knee_stop_sleep(window_s))
        return;
    knee_host_walk("", false, (struct knee_file_sink){read_counter, &later});
    knee_facts_sort(facts);
    knee_facts_sort(&later);
    for (size_t i = 0; i < later.count; i++)
        for (size_t k = 0; k < sizeof growing / sizeof *growing; k++) {
            const struct knee_fact *now = &later.rows[i];
            if (strcmp(now->key + strlen("ib.counter."), growing[k].counter) != 0)
                continue;
            double grown = now->number - knee_fact_value(facts, now->subject, now->key);
            char text[96];
            snprintf(text, sizeof text, "%.0f %s in %.2g s", grown, growing[k].counter, window_s);
            if (grown > 0)
                knee_fact_put(facts, now->subject, growing[k].key, knee_slice_of(text));
            knee_facts_sort(facts);
        }
    knee_facts_release(&later);
}

static void variables(struct both *both)
{
    extern char **environ;
    struct knee_text text = {0};
    for (char **at = environ; *at; at++) {
        knee_text_puts(&text, *at);
        knee_text_add(&text, "\0", 1);
    }
    if (text.length && !text.failed)
        take(both, "proc/self/environ", text.data, text.length);
    knee_text_release(&text);
}

#define PCI_DEVICES "sys/bus/pci/devices/"

/* A server has hundreds of PCI devices: GPUs and adapters are worth their facts. Their classes are
 * read before anything else of them. */
static bool of_other_device(const struct knee_facts *facts, const char *path, const char *data,
                            size_t length)
{
    static const char *const classes[] = {"0x03", "0x12", "0x02"};
    char device[64];
    if (strncmp(path, PCI_DEVICES, strlen(PCI_DEVICES)) != 0)
        return false;
    path += strlen(PCI_DEVICES);
    if (strstr(path, "/class")) {
        for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
            if (length >= 4 && memcmp(data, classes[i], 4) == 0)
                return false;
        return true;
    }
    snprintf(device, sizeof device, "%.*s", (int)strcspn(path, "/"), path);
    for (size_t i = 0; i < facts->count; i++)
        if (strcmp(facts->rows[i].key, "pcidev.class") == 0 &&
            strcmp(facts->rows[i].subject, device) == 0)
            return false;
    return true;
}

/* Skips the environment a process was started with, which may have changed since (see
 * variables()), and the list of mounts, which is private: statvfs() gives the size of /dev/shm. */
static void take_what_holds(void *ctx, const char *path, const char *data, size_t length)
{
    static const char *const others[] = {"proc/self/environ", "proc/mounts", "proc/self/mounts",
                                         "proc/self/mountinfo"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(path, others[i]) == 0)
            return;
    const struct both *both = ctx;
    if (!of_other_device(both->facts, path, data, length))
        take(ctx, path, data, length);
}

void knee_host_variables(struct knee_facts *facts)
{
    struct both both = {facts, {NULL, NULL}};
    variables(&both);
}

static void program_hangs(struct knee_facts *facts, const struct knee_host_command *command,
                          double limit_s)
{
    char words[128];
    snprintf(words, sizeof words, "%s %s did not end within %.3g s", command->argv[0],
             command->argv[1], limit_s);
    knee_fact_put(facts, command->argv[0], "program.hangs", knee_slice_of(words));
}

void knee_host_live(struct knee_facts *facts, double limit_s, double window_s,
                    struct knee_file_sink also)
{
    static const struct knee_host_command commands[] = {
        {"nvidia-smi-q.xml", {"nvidia-smi", "-q", "-x", NULL}},
        {"nvidia-smi-nvlink.txt", {"nvidia-smi", "nvlink", "-s", NULL}},
        {"nvidia-smi-topo.txt", {"nvidia-smi", "topo", "-m", NULL}},
        {"rocm-smi.json", {"rocm-smi", "--showallinfo", "--json", NULL}},
    };
    struct both both = {facts, also};
    size_t unread = knee_host_walk("", false, (struct knee_file_sink){take_what_holds, &both});
    facts->no_memory = facts->no_memory || unread == SIZE_MAX;
    facts->unread += unread == SIZE_MAX ? 0 : unread;
    variables(&both);
    settings(&both);
    kernel_log(&both);
    unsigned hanging = knee_host_commands(commands, sizeof commands / sizeof *commands, limit_s,
                                          (struct knee_file_sink){take, &both});
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (hanging & 1u << i)
            program_hangs(facts, &commands[i], limit_s);
    library(facts);
    shared_memory(facts);
    if (window_s > 0)
        growth(facts, window_s);
    if (!facts->host[0] && gethostname(facts->host, sizeof facts->host - 1))
        snprintf(facts->host, sizeof facts->host, "this host");
}
