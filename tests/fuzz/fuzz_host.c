/* SPDX-License-Identifier: MIT */
/* Anything as a file of a host: every reader of it, by name, by path and by content, then all
 * rules. */
#include "knee_doctor.h"
#include "out/answer.h"
#include "read/host/host_read.h"
#include "say/answers.h"
#include "seldom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static knee_host_reader *const readers[] = {
    knee_read_smi_text,      knee_read_smi_xml,     knee_read_smi_metrics,    knee_read_smi_table,
    knee_read_nvlink,        knee_read_topo_matrix, knee_read_ibstat,         knee_read_ibstatus,
    knee_read_devinfo,       knee_read_show_gids,   knee_read_lspci,          knee_read_rocm,
    knee_read_kernel_log,    knee_read_ulimit,      knee_read_lsmod,          knee_read_env,
    knee_read_nccl_conf,     knee_read_nccl_log,    knee_read_ethtool,        knee_read_smi_csv,
    knee_read_nvlink_errors, knee_read_rdma_link,   knee_read_fabric_service, knee_read_df,
    knee_read_smi_failure,   knee_read_dcgm,        knee_read_fabric_word,    knee_read_imex,
    knee_read_clock,         knee_read_ip_link,     knee_read_ibdev2netdev,   knee_read_mounts,
    knee_read_nccl_named,    knee_read_paths,
};
#define READERS (sizeof readers / sizeof *readers)

static void judge(struct knee_facts *facts, bool shown)
{
    struct knee_checkup checkup;
    struct knee_text text = {0};
    struct knee_style style = {0};
    struct knee_err err;
    if (knee_doctor_examine(facts, 1, NULL, NULL, &checkup, &err))
        abort(); /* nothing asks for a job, and there is memory */
    for (int format = KNEE_TEXT; shown && format <= KNEE_MARKDOWN; format++)
        knee_answer_write(&knee_doctor_answer, &checkup, (enum knee_format)format, &style, &text);
    knee_text_release(&text);
    knee_checkup_release(&checkup);
}

/* The first byte chooses: a reader, a known path, or what the content looks like. */
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct knee_facts facts = {0}, again = {0};
    struct knee_text lines = {0};
    if (size < 1)
        return 0;
    size_t choice = data[0];
    char *text = malloc(size);
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    struct knee_slice slice = {text, size - 1};
    if (choice < READERS) {
        if (!readers[choice](&facts, slice) && facts.count)
            abort(); /* what is not its own gives nothing */
    } else if (choice < 160) {
        const char *path = knee_host_path(choice - READERS);
        char copy[160];
        snprintf(copy, sizeof copy, "%s", path ? path : "file");
        for (char *c = copy; *c; c++)
            *c = *c == '*' ? '1' : *c;
        knee_host_file(&facts, copy, text, size - 1);
    } else {
        knee_host_file(&facts, "file", text, size - 1);
    }
    knee_facts_write(&facts, &lines);
    knee_facts_read(&again, lines.data ? lines.data : "", lines.length);
    if (!facts.dropped && again.count != facts.count)
        abort();
    judge(&facts, seldom(data, size, 8));
    if (seldom(data, size, 16))
        judge(&again, false);
    knee_text_release(&lines);
    knee_facts_release(&facts);
    knee_facts_release(&again);
    free(text);
    return 0;
}
