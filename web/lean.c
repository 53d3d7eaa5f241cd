/* SPDX-License-Identifier: MIT */
/* What the page leaves to the program, and says so when it is asked: it takes the place of the
 * files that the Makefile names in `page_leaves`, whose bytes would not fit into the page. */
#include "ask/ask_measured.h"
#include "base/error.h"
#include "judge/doctor/doctor_judge.h"
#include "knee_doctor.h"
#include "knee_out.h"
#include "knee_plan.h"
#include "knee_read.h"
#include "knee_replay.h"
#include "knee_scale.h"
#include "predict/plan/published_runs.h"
#include "read/hang/job_record.h"
#include "read/host/host_read.h"
#include "read/log/log.h"
#include "say/answers.h"
#include "say/scale_fields.h"
#include "say/trace_fields.h"
#include "timeline/where.h"

static knee_status not_here(const char *where, const char *what, struct knee_err *err)
{
    knee_fail(err, KNEE_USAGE, where, "the page %s", what);
    knee_hint(err, "the program does");
    return KNEE_USAGE;
}

knee_status knee_yaml_read(struct knee_named_text from, const struct knee_keys *keys, void *object,
                           size_t object_size, struct knee_err *err)
{
    (void)keys, (void)object, (void)object_size;
    return not_here(from.name, "reads no job files", err);
}

knee_status knee_cluster_read(const char *text, size_t length, const char *name,
                              struct knee_cluster *out, struct knee_fitted *record,
                              struct knee_err *err)
{
    (void)text, (void)length, (void)out, (void)record;
    return not_here(name, "reads no cluster files", err);
}

knee_status knee_torchtitan_read(const char *text, size_t length, const char *name, double layers,
                                 struct knee_plan *plan, struct knee_err *err)
{
    (void)text, (void)length, (void)layers, (void)plan;
    return not_here(name, "reads no torchtitan files", err);
}

/* Files dropped on the page are of one host. */
void knee_check_alike(struct knee_checkup *out, struct knee_facts *hosts, size_t count)
{
    (void)out, (void)hosts, (void)count;
}

/* A dropped file has no path: what stands under /sys and /proc is not known by its name. */
bool knee_read_known_path(struct knee_facts *facts, const char *path, struct knee_slice text)
{
    (void)facts, (void)path, (void)text;
    return false;
}

bool knee_read_paths(struct knee_facts *facts, struct knee_slice text)
{
    return knee_read_known_path(facts, "", text);
}

bool knee_read_lspci(struct knee_facts *facts, struct knee_slice text)
{
    return knee_read_known_path(facts, "", text);
}

void knee_check_pci(struct knee_exam *exam)
{
    (void)exam;
}

bool knee_pci_is_gpu(const struct knee_facts *facts, const char *device)
{
    (void)facts, (void)device;
    return false;
}

/* Of measured collectives the page reads what benchmarks print, not tables. */
static bool is_never(struct knee_slice text)
{
    (void)text;
    return false;
}
const struct knee_log_format knee_log_csv = {"CSV", is_never, NULL};

/* Presets are compared with logs as they are; hosts without GPUs have none and would need a fit. */
knee_status knee_fit(const struct knee_log_view *logs, const struct knee_cluster *prior,
                     struct knee_cluster *out, struct knee_fitted *record, struct knee_err *err)
{
    (void)prior, (void)out, (void)record;
    return not_here(logs->logs[0].file, "fits no links of hosts without GPUs", err);
}

knee_status knee_simulate(const struct knee_shape *shape, const struct knee_machine *machine,
                          const struct knee_plan *plan, const struct knee_alloc *alloc,
                          struct knee_trace *out, struct knee_err *err)
{
    (void)shape, (void)machine, (void)plan, (void)alloc, (void)out;
    return not_here("--simulate", "simulates no steps", err);
}

/* Logs of a pipeline's operations: nothing of them gets past the reader. */
knee_status knee_op_log_read(const char *json, size_t length, const char *file,
                             const struct knee_alloc *alloc, struct knee_op_log *out,
                             struct knee_err *err)
{
    (void)json, (void)length, (void)alloc, (void)out;
    return not_here(file, "reads no logs of operations", err);
}

void knee_op_log_release(struct knee_op_log *log)
{
    (void)log;
}

knee_status knee_find_slowdown(const struct knee_op_log *log, const struct knee_alloc *alloc,
                               struct knee_slowdown *out, struct knee_err *err)
{
    (void)alloc, (void)out;
    return not_here(log->file, "reads no logs of operations", err);
}

const struct knee_answer_type knee_slowdown_answer = {.schema = ""};

knee_status knee_find_where(const struct knee_account *account, const struct knee_alloc *alloc,
                            struct knee_where *out, struct knee_err *err)
{
    (void)account, (void)alloc, (void)out;
    return not_here("--where", "does not look into kernels and modules", err);
}

void knee_where_release(struct knee_where *where)
{
    (void)where;
}

/* Dropped logs make a curve. */
knee_status knee_ask_diff_logs(struct knee_ask *ask, const char *const *words, bool *logs,
                               struct knee_err *err)
{
    (void)ask, (void)words, (void)err;
    *logs = false;
    return KNEE_OK;
}

knee_status knee_ask_compare_logs(struct knee_ask_question *q, double max_slower,
                                  struct knee_err *err)
{
    (void)q, (void)max_slower;
    return not_here("", "compares no training logs", err);
}

/* --where is not asked for here: nothing has these fields. */
const struct knee_field knee_where_fields[KNEE_WHERE_FIELDS] = {
    [0 ... KNEE_WHERE_FIELDS - 1] = {.key = ""}};
void knee_say_where(const struct knee_where *where, const struct knee_diagnosis *diagnosis,
                    struct knee_text *text)
{
    (void)where, (void)diagnosis, (void)text;
}

/* Published runs are shown by -v alone. */
size_t knee_alike_find(const struct knee_shape *shape, const struct knee_platform *platform,
                       const struct knee_plan *plan, double token_s,
                       struct knee_alike out[KNEE_ALIKE_MAX])
{
    (void)shape, (void)platform, (void)plan, (void)token_s, (void)out;
    return 0;
}

bool knee_is_sacct(const char *data, size_t length)
{
    (void)data, (void)length;
    return false;
}

knee_status knee_sched_read(struct knee_named_text from, struct knee_sched_jobs *out,
                            struct knee_err *err)
{
    (void)from, (void)out, (void)err; /* no file is one, see above */
    return KNEE_OK;
}

void knee_sched_release(struct knee_sched_jobs *jobs)
{
    (void)jobs;
}

void knee_sched_join(struct knee_sched_jobs *jobs, struct knee_train_log *log)
{
    (void)jobs, (void)log;
}

knee_status knee_sched_account(const struct knee_sched_jobs *jobs, struct knee_sched_account *out,
                               struct knee_err *err)
{
    (void)jobs, (void)out, (void)err;
    return KNEE_OK;
}

void knee_say_jobs(const struct knee_scale_answer *a, struct knee_said *said)
{
    (void)a, (void)said;
}

/* Broken lines and the envelopes of containers stay as they are. */
size_t knee_job_layout(char *data, size_t length)
{
    (void)data;
    return length;
}

void knee_list_idle_gaps(const struct knee_account *account, double step_s,
                         struct knee_idle_gaps *out)
{
    (void)account, (void)step_s;
    out->count = 0;
}

knee_status knee_site_rules_read(const char *csv, size_t length, const char *name,
                                 struct knee_site_rules *out, struct knee_err *err)
{
    (void)csv, (void)length, (void)out;
    return not_here(name, "takes no rules of a site", err);
}

void knee_site_rules_release(struct knee_site_rules *rules)
{
    (void)rules;
}
