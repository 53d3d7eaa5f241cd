/* SPDX-License-Identifier: MIT */
/* knee bench --power as an answer. Schema knee.power/1; its CSV has the columns of data/power.csv.
 */
#include "bench/power_say.h"
#include "bench/power_bench.h"
#include "say/short.h"

#include <math.h>

#define ROW   struct knee_power_row
#define BENCH struct knee_power_bench

static void gpu_name(const struct knee_at *at, struct knee_value *out)
{
    const BENCH *bench = at->up->row;
    knee_value_text(out, *bench->name ? bench->name : bench->gpu);
}

static const struct knee_field row_fields[] = {
    KNEE_GET(gpu_name, "gpu", NULL, TEXT, DATA, "preset, or the driver's name"),
    KNEE_FIELD(ROW, kind, "kind", "kind", TEXT, SCREEN, "idle, wait, memory, product or burst"),
    KNEE_FIELD(ROW, watts, "watts", "power", WATTS, SCREEN, "mean power"),
    KNEE_FIELD(ROW, low, "low", "low", WATTS, SCREEN, "lowest mean of half a second"),
    KNEE_FIELD(ROW, high, "high", "high", WATTS, SCREEN, "highest mean of half a second"),
    KNEE_FIELD(ROW, what, "origin", "what runs", TEXT, SCREEN, "what ran"),
};
static const struct knee_field fields[] = {
    KNEE_SENTENCE,
    KNEE_FIELD(BENCH, gpu, "gpu", NULL, TEXT, DATA, "name of the GPU"),
    KNEE_FIELD(BENCH, limit_w, "limit_w", NULL, WATTS, DATA, "power limit"),
    KNEE_ARRAY(BENCH, rows, count, "rows", row_fields, "one row per kind of work"),
};
static const struct knee_view views[] = {{.list = "rows"}};

static double watts_of(const BENCH *bench, enum knee_power_kind kind)
{
    return (size_t)kind < bench->count ? bench->rows[kind].watts : NAN;
}

static void say(const void *result, struct knee_said *said)
{
    const BENCH *bench = result;
    struct knee_watts assumed;
    knee_text_printf(&said->title, "%s, power limit %s", bench->gpu, SAY(WATTS, bench->limit_w));
    knee_text_printf(&said->headline, "It draws %s in products and %s while it waits.",
                     SAY(WATTS, watts_of(bench, KNEE_POWER_PRODUCT)),
                     SAY(WATTS, watts_of(bench, KNEE_POWER_WAIT)));
    knee_watts_of(bench->name, bench->limit_w, NAN, &assumed);
    knee_text_printf(&said->reason, "knee assumes %s and %s, measured on %s.",
                     SAY(WATTS, assumed.at[KNEE_POWER_PRODUCT]),
                     SAY(WATTS, assumed.at[KNEE_POWER_WAIT]),
                     assumed.measured ? "such a GPU" : "an H200 and scaled by the power limit");
    knee_text_puts(&said->next, "knee bench --power --csv");
}

const struct knee_answer_type knee_power_answer = {
    .schema = "knee.power/1", KNEE_FIELDS(fields), KNEE_VIEWS(views), .say = say};
