/* SPDX-License-Identifier: MIT */
/* doctor: what the program fills in before it asks. */
#ifndef KNEE_ASK_ASK_DOCTOR_H
#define KNEE_ASK_ASK_DOCTOR_H

#include "ask/ask.h"
#include "knee_doctor.h"

struct knee_ask_doctor_options {
    const char *from, *log, *save, *rules_file, *job, *nccl;
    bool rules, bench;
    int gate;
    double limit_s, window_s;
    unsigned char source[KNEE_KEYS_MAX];
    /* What the program looked at: this host, the hosts of an MPI job, or saved ones. It releases
     * them. NULL: only files are read, and they are one host. */
    struct knee_facts *hosts;
    size_t host_count;
    /* The words are files of this folder of a job: those that cannot be read are counted. */
    const char *folder;
};

#endif
