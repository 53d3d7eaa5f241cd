/* SPDX-License-Identifier: MIT */
/*
 * Folders that others wrote, as files: a saved host (the walk of doctor --from) and the folders of
 * a job's ranks (watch). Bytes choose names, kinds (file, link, pipe, folder) and contents; the
 * folder lies in memory and is removed after each input.
 */
#define _XOPEN_SOURCE 700 /* nftw() */
#include "grammar.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

/* The rooms that need an operating system are not in the library. */
#include "../../src/cli/rings.c"
#include "../../src/doctor/host_folder.c"
#undef FILE_BYTES
#include "../../src/doctor/host_walk.c"
#include "../../src/reach/files.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* No host of ours is asked, and nothing stops a wait. */
void knee_host_live(struct knee_facts *facts, double limit_s, double window_s,
                    struct knee_file_sink also)
{
    (void)facts, (void)limit_s, (void)window_s, (void)also;
}
int knee_stop_poll(struct pollfd *fds, size_t count, int timeout_ms)
{
    return poll(fds, (nfds_t)count, timeout_ms);
}

static const char *const parts[] = {
    "sys",       "class",          "infiniband", "mlx5_0", "ports",
    "1",         "counters",       "gids",       "net",    "eth0",
    "etc",       "proc",           "sys/kernel", "env",    "nccl.log",
    "dmesg",     "nvidia-smi.xml", "topo",       "lspci",  "host1",
    "host2",     "cpuinfo",        "meminfo",    "ulimit", "statistics",
    "rx_errors", "gid_attrs",      "types",      "0",      "nvidia-smi -q -x"};
static const char *const rank_parts[] = {"node0-r0-4100", "node0-r1-4101",    "about.json",
                                         "steps.jsonl",   "calls.jsonl",      "step-000128.json",
                                         "step-x.json",   "collectives.jsonl"};
static const char *const targets[] = {"..", ".", "/dev/zero", "/nonexistent", "1", "/etc", "host1"};
static const char *const contents[] = {
    "{\"schema\": \"knee.live/1\", \"agent\": \"0.1.0\", \"pid\": 4100, \"rank\": 0, "
    "\"world_size\": 2, "
    "\"host\": \"node0\"}\n",
    "{\"step\": 1, \"end_ns\": 1794770000000000000, \"step_ns\": 95360000, \"compute_ns\": "
    "55130000}\n",
    "{\"op\": \"AllReduce\", \"bytes\": 8192, \"ranks\": 2, \"calls\": 4, \"ns\": 100}\n",
    "NCCL_DEBUG=INFO\nNCCL_IB_HCA=mlx5\n",
    "4: ACTIVE\n",
    "0\n",
    ""};

static int drop_name(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

/* One name below `root`: the folders above it are made as they come. */
static void put(const char *root, bool ranks)
{
    char path[512];
    int length = snprintf(path, sizeof path, "%s", root);
    for (unsigned deep = 1 + below(ranks ? 2 : 6); deep > 0; deep--) {
        mkdir(path, 0700);
        length += snprintf(path + length, sizeof path - (size_t)length, "/%s",
                           ranks ? PICK(rank_parts) : PICK(parts));
    }
    unsigned kind = below(8);
    if (kind == 0) {
        (void)!symlink(PICK(targets), path);
    } else if (kind == 1) {
        mkfifo(path, 0600);
    } else if (kind == 2) {
        mkdir(path, 0700);
    } else {
        int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_APPEND, 0600);
        if (fd < 0)
            return;
        const char *text = PICK(contents);
        size_t own = below(64);
        own = own < (size_t)(decisions_end - decisions) ? own : (size_t)(decisions_end - decisions);
        (void)!write(fd, text, strlen(text));
        (void)!write(fd, decisions, own);
        decisions += own;
        close(fd);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char root[64];
    struct knee_err err;
    decisions = data;
    decisions_end = data + size;
    snprintf(root, sizeof root, "/dev/shm/knee-fuzz-%d", (int)getpid());
    bool ranks = coin(2);
    mkdir(root, 0700);
    for (unsigned i = 0; i < 16 && decisions < decisions_end; i++)
        put(root, ranks);
    if (ranks) {
        struct cli_rings rings;
        if (cli_rings_read(root, &rings, &err) == KNEE_OK) {
            char **files = NULL;
            int64_t step;
            uint64_t bytes;
            cli_rings_sampled(&rings, &step, &files, &bytes, &err); /* files go with the rings */
            cli_rings_release(&rings);
        }
    } else {
        struct knee_facts *hosts = NULL;
        size_t count = 0;
        if (knee_host_folder(root, &hosts, &count, &err) == KNEE_OK) {
            for (size_t i = 0; i < count; i++)
                knee_facts_release(&hosts[i]);
            free(hosts);
        }
    }
    knee_forget_inputs();
    nftw(root, drop_name, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
