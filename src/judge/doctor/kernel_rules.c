/* SPDX-License-Identifier: MIT */
/*
 * Xid and SXid of the kernel's log: what each number means is a table (NVIDIA's catalogue; Azure's
 * list of those that take a node out). From 144 to 150 the text says whether it is fatal.
 */
#include "judge/doctor/doctor_judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct xid {
    int number;
    const char *rule, *meaning;
} xids[] = {
    {8, "xid_driver", "the GPU stopped processing"},
    {13, "xid_application", "exception in a kernel: an address out of range, mostly"},
    {31, "xid_application", "memory page fault: an illegal address of the program"},
    {32, "xid_application", "invalid push buffer"},
    {38, "xid_driver", "driver firmware error"},
    {43, "xid_application", "the program's work was stopped after an error in it"},
    {44, "xid_hardware", "fault during context switch"},
    {45, "xid_consequence", "work of a program was ended"},
    {48, "xid_hardware", "double bit memory error"},
    {54, "xid_hardware", "no auxiliary power"},
    {56, "xid_hardware", "display engine error"},
    {57, "xid_hardware", "error in the frame buffer"},
    {58, "xid_hardware", "unstable memory clock"},
    {61, "xid_driver", "internal micro-controller breakpoint"},
    {62, "xid_hardware", "internal micro-controller halt"},
    {63, "xid_hardware", "a memory row was marked for remapping: the GPU needs a reset"},
    {64, "xid_hardware", "a memory row could not be remapped"},
    {65, "xid_hardware", "video engine error"},
    {68, "xid_hardware", "video processor exception"},
    {69, "xid_application", "graphics engine class error"},
    {73, "xid_hardware", "video encoder error"},
    {74, "xid_nvlink", "NVLink error"},
    {79, "xid_hardware", "the GPU has fallen off the bus"},
    {80, "xid_hardware", "corrupted data sent to the GPU"},
    {81, "xid_hardware", "VGA subsystem error"},
    {92, "xid_hardware", "many single bit errors"},
    {94, "xid_hardware", "contained memory error: one program was ended"},
    {95, "xid_hardware", "uncontained memory error: the GPU needs a reset"},
    {109, "xid_driver", "context switch timeout"},
    {119, "xid_driver", "the GPU's system processor (GSP) did not answer"},
    {120, "xid_driver", "error of the GPU's system processor (GSP)"},
    {121, "xid_hardware", "error on the link to the CPU (C2C)"},
    {123, "xid_driver", "power management unit error"},
    {140, "xid_hardware", "memory errors that were not recovered"},
    {143, "xid_driver", "the GPU could not be initialised"},
    {144, "xid_nvlink", "NVLink: SAW error"},
    {145, "xid_nvlink", "NVLink: RLW error"},
    {146, "xid_nvlink", "NVLink: TLW error"},
    {147, "xid_nvlink", "NVLink: TREX error"},
    {148, "xid_nvlink", "NVLink: NVLPW error"},
    {149, "xid_nvlink", "NVLink: link event"},
    {150, "xid_nvlink", "NVLink: MSE error"},
    {154, "xid_hardware", "the driver asks for a recovery action"},
};

static const struct xid *xid_of(int number)
{
    for (size_t i = 0; i < sizeof xids / sizeof *xids; i++)
        if (xids[i].number == number)
            return &xids[i];
    return NULL;
}

/* The message behind the time and the prefix. */
static const char *message(const char *line)
{
    const char *at = strstr(line, "Xid (");
    if (!at)
        at = strstr(line, "detected NVSwitch");
    return at ? at : line;
}

static void check_xids(struct knee_exam *exam)
{
    const char *last = "";
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "xid.*", &row);) {
        int number = (int)strtoll(row->key + 4, NULL, 10);
        const struct xid *xid = xid_of(number);
        const char *rule = xid ? xid->rule : "xid_other";
        /* Every number is a separate finding, with all devices that reported it. */
        exam->apart = strcmp(row->key, last) != 0;
        last = row->key;
        bool mild = number >= 144 && number <= 150 && !strstr(row->key, ".fatal") &&
                    strstr(row->value, "Nonfatal");
        knee_blame_at(exam, mild ? KNEE_WARNING : knee_rule_of(rule)->severity, rule, row->subject,
                      NAN, "Xid %d (%.0fx): %s: %.200s", number, row->number,
                      xid ? xid->meaning : "not in knee's list", message(row->value));
    }
    exam->apart = false;
}

/* One or two that are not fatal come with restarts of the fabric manager; again and again is a
 * fault. */
static void check_sxids(struct knee_exam *exam)
{
    double sum = 0;
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "sxid.nonfatal", &row);)
        sum += row->number;
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "sxid.nonfatal", &row);)
        knee_blame(exam, sum >= 10 ? "sxid_nonfatal" : "sxid_few", row->subject, NAN,
                   "%.0f errors of NVSwitches that are not fatal: %.200s", sum,
                   message(row->value));
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "sxid.fatal", &row);)
        knee_blame(exam, "sxid_fatal", row->subject, NAN, "%.0fx: %.250s", row->number,
                   message(row->value));
}

/* Once or twice comes with booting; three times is a link that flaps (gpud counts so, too). */
static void check_links(struct knee_exam *exam)
{
    for (const struct knee_fact *row = NULL;
         knee_fact_next(exam->facts, "kernel.link_down", &row);) {
        knee_blame_at(exam, row->number >= 3 ? KNEE_WARNING : KNEE_NOTE, "link_flaps", row->subject,
                      NAN, "the link went down %.0fx: %.200s", row->number, row->value);
    }
}

void knee_check_kernel(struct knee_exam *exam)
{
    check_links(exam);
    check_xids(exam);
    check_sxids(exam);
}
