/* SPDX-License-Identifier: MIT */
/* knee trace --names: what each kernel and call was taken for. Schema knee.names/1. */
#include "judge/work_names.h"
#include "say/short.h"

#define NAME struct knee_work_name

static const char *const kinds[] = {[KNEE_SPAN_COMPUTE] = "compute",
                                    [KNEE_SPAN_COMM] = "comm",
                                    [KNEE_SPAN_FUSED] = "fused",
                                    [KNEE_SPAN_COPY] = "copy"};
A_TEXT(kind, NAME, kinds[it->kind])
A_TEXT(op, NAME,
       it->kind == KNEE_SPAN_COMM || it->kind == KNEE_SPAN_FUSED ? knee_op_name(it->op) : "")
GETTER(short_name, NAME, knee_value_printf(out, "%.32s", it->name))
static const struct knee_field name_fields[] = {
    KNEE_GET(kind, "taken_for", "taken for", TEXT, SCREEN, "compute, comm, fused or copy"),
    KNEE_GET(op, "operation", "operation", TEXT, SCREEN, "of communication"),
    KNEE_FIELD(NAME, calls, "calls", "calls", COUNT, SCREEN, "over all ranks"),
    KNEE_NS(NAME, ns, "time_s", "time", TIME, SCREEN, "over all ranks"),
    KNEE_GET(short_name, "begins", "name", TEXT, SCREEN, "its first 32 characters"),
    KEY(NAME, name, "name", TEXT, "as the trace has it"),
};
static const struct knee_field fields[] = {
    KNEE_ROWS(struct knee_work_names, rows, count, "names", name_fields, "communication first")};
static const struct knee_view views[] = {{.list = "names"}};

static void say(const void *result, struct knee_said *said)
{
    const struct knee_work_names *names = result;
    size_t comm = 0;
    for (size_t i = 0; i < names->count; i++)
        comm += names->rows[i].kind == KNEE_SPAN_COMM || names->rows[i].kind == KNEE_SPAN_FUSED;
    PUT(&said->headline, "{names} in these traces, {} of them communication.", names->count, comm);
    PUT(&said->next, "wrong? --patterns FILE with lines of WORD KIND [[OPERATION]]");
}

const struct knee_answer_type knee_names_answer = {
    .schema = "knee.names/1", KNEE_FIELDS(fields), KNEE_VIEWS(views), .say = say};
