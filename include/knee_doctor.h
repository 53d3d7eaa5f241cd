/* SPDX-License-Identifier: MIT */
/* Doctor: is a host, a cluster, an environment or a log what it should be, and what does it cost if
 * not. What knee.h says of every call holds here; these structs may change with the minor version.
 */
#ifndef KNEE_DOCTOR_H
#define KNEE_DOCTOR_H

#include "base/map.h"
#include "knee_collective.h"

/* ---- Facts: what is known of one host ------------------------------------------------------- */

/* "mlx5_3:1" has "ib.rate" "400 Gb/sec (4X NDR)". The same for files of a live host, of a saved
 * one, and for outputs of commands. */
struct knee_fact {
    const char *subject; /* which part: a port, a GPU, a variable; "" is the host itself */
    const char *key;     /* what: docs/reference/doctor.md lists them */
    const char *value;   /* as it was written, without blanks at its ends */
    double number;       /* the number that the value begins with; NaN: none */
    size_t order;        /* in which it came */
};

struct knee_fact_page; /* where the strings are */
struct knee_facts {
    char host[64];
    struct knee_fact *rows; /* by key, then subject, once sorted */
    size_t count, capacity;
    size_t files;   /* read and understood */
    size_t strange; /* not understood */
    size_t unread;  /* there, but not readable, too large, no file, or a link that leads outside */
    size_t dropped; /* beyond KNEE_FACTS_MAX */
    bool sorted, no_memory;
    struct knee_fact_page *pages;
    struct knee_map index; /* by subject and key: row + 1 (uint32_t) */
    size_t indexed;        /* rows in it */
    const struct knee_alloc *alloc;
};
#define KNEE_FACTS_MAX ((size_t)1 << 17)

/* Zeroed is empty. */
void knee_facts_release(struct knee_facts *facts);

/* One file of a host: `path` as seen from its root ("sys/class/net/eth0/mtu"), or the output of a
 * command (nvidia-smi -q, -q -x, nvlink -s, topo -m; ibstat, ibstatus, ibv_devinfo, show_gids;
 * lspci -vvv; dmesg; ulimit -a; lsmod; env; rocm-smi --json; a log with NCCL's lines), recognised
 * by content. False: nothing in it was recognised. */
bool knee_host_file(struct knee_facts *facts, const char *path, const char *text, size_t length);

/* The files of a host that are worth reading, with * for any name; NULL past the end. */
const char *knee_host_path(size_t row);

/* The facts as lines "subject TAB key TAB value", and back. */
void knee_facts_write(const struct knee_facts *facts, struct knee_text *text);
void knee_facts_read(struct knee_facts *facts, const char *text, size_t length);

/* ---- Rules and findings --------------------------------------------------------------------- */

enum knee_severity { KNEE_NOTE, KNEE_WARNING, KNEE_ERROR, KNEE_SEVERITIES };
extern const struct knee_choices knee_severity_names; /* note, warning, error */

/* What a finding makes slower; how much of it is left is the finding's share. */
enum knee_hurt {
    KNEE_HURTS_NOTHING,
    KNEE_HURTS_NETWORK, /* between nodes */
    KNEE_HURTS_NODE,    /* between GPUs of a node */
    KNEE_HURTS_COMPUTE,
    KNEE_HURTS_NVLS,   /* reduction in the switch of a node */
    KNEE_HURTS_SOCKET, /* the network becomes TCP over Ethernet */
    KNEE_HURTS_SHM,    /* the node's link becomes host memory over PCIe */
    KNEE_HURTS_ALL,    /* the job does not run, or hangs */
};

/* A row of data/doctor_rules.csv. */
struct knee_doctor_rule {
    const char *id;
    enum knee_severity severity;
    const char *title; /* the headline; NULL: the first sentence of the evidence */
    const char *key;   /* the fact it tests; NULL: a function tests it */
    const char
        *test; /* is, not, above, below, has, lacks, over (another key), under (another key), any */
    const char *limit;
    const char *says; /* {where} {value} {other} are filled in */
    const char *cure;
    enum knee_hurt hurts;
    double share;       /* left of what it hurts; NaN: value over other */
    const char *also;   /* other causes that look the same, by id; NULL: none */
    const char *origin; /* where it is documented */
};
const struct knee_doctor_rule *knee_rule_at(size_t row);     /* NULL past the end */
const struct knee_doctor_rule *knee_rule_of(const char *id); /* NULL: none */

/* What it costs. NaN: not known. */
struct knee_toll {
    double share;                       /* left of the collective's bandwidth */
    double healthy_s, hurt_s;           /* the collective, without and with the finding */
    double ratio_before, ratio_after;   /* R of the job */
    double step_before_s, step_after_s; /* of the job */
    double lost;                        /* share of the job's throughput */
    double dollars_per_day;             /* paid for that */
    bool slows_wire, slows_job;         /* by enough to say it */
};

struct knee_ailment { /* a finding */
    const struct knee_doctor_rule *rule;
    enum knee_severity severity;
    char host[64];  /* the first one */
    char where[96]; /* the parts, "" when it is the host */
    char evidence[320], cure[320];
    size_t hosts, parts; /* that have it */
    double left;         /* share left of what it hurts; NaN: the price does not know */
    struct knee_toll price;
};

/* A variable of NCCL that is set, and the value that NCCL uses. */
struct knee_setting {
    char name[64], value[128];
    char from[32]; /* environment, ~/.nccl.conf, /etc/nccl.conf, the log */
    char read[32]; /* the integer that NCCL reads; "": the text itself; "default": nothing */
};
#define KNEE_SETTINGS_MAX 128

/* Rows that a site adds: CSV with the columns id,severity,key,test,limit,says,cure. */
struct knee_site_rules {
    struct knee_doctor_rule *rows;
    size_t count;
    char *strings;
};
knee_status knee_site_rules_read(const char *csv, size_t length, const char *name,
                                 struct knee_site_rules *out, struct knee_err *err);
void knee_site_rules_release(struct knee_site_rules *rules);

struct knee_doctor_options {
    const struct knee_site_rules *site; /* may be NULL */
    const struct knee_job *job;         /* may be NULL: the price is that of a collective */
    const struct knee_cluster *cluster; /* may be NULL: as far as the facts tell */
    const char *nccl;                   /* version in use; NULL: as the facts say */
    /* How the job ended, as the hang rules say it; NULL: nothing is known, or it ended well */
    const char *job_end, *job_fix, *job_where;
    bool job_blames;           /* it names a rank or a call */
    size_t unknown_errors;     /* lines that report an error and that no rule knows */
    const char *unknown_error; /* the first of them, with its place */
};

#define KNEE_CHECKUP_GAPS 16
struct knee_checkup {
    struct knee_ailment *findings; /* worst first */
    size_t count, capacity;
    size_t hosts;
    size_t facts, files, strange, unread; /* over all hosts */
    size_t dropped;                       /* facts that there was no room for */
    char strange_names[200];              /* files that are not known */
    struct knee_cluster cluster;          /* what prices are for; level_count 0: none */
    char cluster_from[96];
    double ranks, bytes;   /* of the collective that is priced */
    bool ethernet_assumed; /* a finding means TCP, and no interface says its speed: 100 Gb/s */
    double price_per_hour; /* of one GPU; NaN: not known */
    struct {
        const char *what, *why;
    } gaps[KNEE_CHECKUP_GAPS]; /* what could not be looked at */
    size_t gap_count;
    size_t unlisted;               /* findings beyond the most that are kept */
    struct knee_setting *settings; /* of the first host that has any; by name */
    size_t setting_count;
    bool no_memory;
    const struct knee_alloc *alloc;
};

/* All hosts (sorts their facts). Free with knee_checkup_release(). */
knee_status knee_doctor_examine(struct knee_facts *hosts, size_t host_count,
                                const struct knee_doctor_options *options,
                                const struct knee_alloc *alloc, struct knee_checkup *out,
                                struct knee_err *err);
void knee_checkup_release(struct knee_checkup *checkup);

/* How many findings are at least this bad. */
size_t knee_checkup_count(const struct knee_checkup *checkup, enum knee_severity least);

/* ---- NCCL's variables ------------------------------------------------------------------------ */

struct knee_nccl_variable {
    const char *name;         /* without NCCL_ */
    const char *since, *last; /* releases that have it; "" is the newest */
    const char *kind;         /* switch, int, level, words, names, text */
    const char *standard;     /* what holds when it is not set; "": decided at run time */
    const char *meaning;      /* "": not documented */
};
const struct knee_nccl_variable *knee_nccl_variable_at(size_t row); /* NULL past the end */

/* The integer that NCCL makes of a value: strtoll with base 0, the rest ignored. `clean`: all of
 * the value was a number. False: empty, or too large: the default holds. */
bool knee_nccl_integer(const char *value, long long *out, bool *clean);

#endif
