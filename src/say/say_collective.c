/* SPDX-License-Identifier: MIT */
/* knee collective: a collective over message sizes, expected and measured. Schema
 * knee.collective/1. */
#include "knee_logs.h"
#include "say/short.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define C    struct knee_collective
#define SIZE struct knee_collective_size
#define ROW  struct knee_collective_row
#define MSG  MESSAGE

/* ---- Fields ---- */

static void nccl_words(const struct knee_nccl_choice *choice, struct knee_value *out)
{
    if (choice->algorithm)
        knee_value_printf(out, "%s/%s", choice->algorithm, choice->protocol);
}

/* The size that a row belongs to. */
static const SIZE *size_of(const struct knee_at *at)
{
    const C *c = at->up->row;
    size_t size = 0;
    while (size + 1 < c->query.size_count && at->index >= c->sizes[size].last)
        size++;
    return &c->sizes[size];
}
A_TEXT(algorithm, ROW, it->algorithm->name)
A_TEXT(protocol, ROW, knee_protocol_name(it->protocol))
GETTER(row_nccl, void, nccl_words(&size_of(at)->nccl, out))
A_NUMBER(row_expected, void, size_of(at)->expected_s)
A_NUMBER(row_measured, void, size_of(at)->measured_s)
static const struct knee_field row_fields[] = {
    KNEE_FIELD(ROW, bytes, "bytes", "size", MSG, FULL, "the whole buffer, as nccl-tests counts"),
    KNEE_GET(algorithm, "algorithm", "algorithm", TEXT, FULL, "of knee list algorithms"),
    KNEE_GET(protocol, "protocol", "protocol", TEXT, FULL, "its best protocol"),
    KNEE_FIELD(ROW, time_s, "time_s", "time", TIME, FULL, "of one call"),
    KNEE_FIELD(ROW, algbw_bytes_per_s, "algbw_bytes_per_s", "algbw", RATE, FULL, "size / time"),
    KNEE_FIELD(ROW, busbw_bytes_per_s, "busbw_bytes_per_s", "busbw", RATE, FULL,
               "bus bandwidth as nccl-tests has it"),
    KNEE_FIELD(ROW, winner, "winner", "fastest", YES_NO, FULL, "at this size"),
    KEY_BY(row_nccl, "nccl_choice", TEXT, "what NCCL's tables choose"),
    KEY_BY(row_expected, "expected_s", TIME, "what NCCL should take at best"),
    KEY_BY(row_measured, "measured_s", TIME, "of the log"),
};

/* Bus over algorithm bandwidth, from the winner's row. */
static double factor(const struct knee_at *at)
{
    const C *c = at->up->row;
    const ROW *winner = &c->rows[((const SIZE *)at->row)->winner];
    return winner->busbw_bytes_per_s / winner->algbw_bytes_per_s;
}
A_TEXT(winner_name, SIZE, UP(C)->rows[it->winner].algorithm->name)
A_TEXT(winner_protocol, SIZE, knee_protocol_name(UP(C)->rows[it->winner].protocol))
A_TEXT(bound_by, SIZE, it->latency_bound ? "latency" : "bandwidth")
GETTER(nccl_choice, SIZE, nccl_words(&it->nccl, out))
A_NUMBER(expected_busbw, SIZE, factor(at) * it->bytes / it->expected_s)
A_NUMBER(measured_busbw, SIZE, factor(at) * it->bytes / it->measured_s)
A_TEXT(finding_name, SIZE, it->finding == SIZE_MAX ? NULL : UP(C)->findings[it->finding].name)
A_TEXT(mark, SIZE, it->slow ? "<- slow" : "")
static const struct knee_field size_fields[] = {
    KNEE_FIELD(SIZE, bytes, "bytes", "size", MSG, SCREEN, "the whole buffer"),
    KNEE_GET(measured_busbw, "measured_busbw_bytes_per_s", "measured busbw", RATE, SCREEN,
             "bus bandwidth of the log"),
    KNEE_GET(expected_busbw, "expected_busbw_bytes_per_s", "expected busbw", RATE, SCREEN,
             "bus bandwidth that NCCL should reach"),
    KNEE_FIELD(SIZE, expected_s, "expected_s", "expected time", TIME, SCREEN,
               "what NCCL should take at best"),
    KNEE_FIELD(SIZE, slowdown, "slowdown", "slowdown", TIMES, SCREEN, "measured / expected"),
    KNEE_GET(nccl_choice, "nccl_choice", "NCCL picks", TEXT, FULL, "by its tables"),
    KNEE_GET(bound_by, "bound_by", "limited by", TEXT, SCREEN, "latency or bandwidth"),
    KNEE_FIELD(SIZE, measured_s, "measured_s", "measured time", TIME, FULL, "of the log"),
    KNEE_GET(winner_name, "winner", "fastest algorithm", TEXT, FULL, "of all, NCCL's or not"),
    KEY_BY(winner_protocol, "protocol", TEXT, "its protocol"),
    KEY(SIZE, latency_share, "latency_share", SHARE, "of its time"),
    KEY(SIZE, nccl.time_s, "nccl_estimate_s", TIME, "by NCCL's tables"),
    KNEE_GET(finding_name, "reason", "likely reason", TEXT, FULL, "why it is slow"),
    KNEE_GET(mark, "mark", "", TEXT, SCREEN, "slow sizes"),
};
ROW_OF(size_row, C, index < it->query.size_count ? &it->sizes[index] : NULL)
/* Eight sizes over the whole range; slow ones are large as a rule, so the last is always one. */
static bool spread(const struct knee_at *row)
{
    size_t count = ((const C *)row->up->row)->query.size_count;
    if (count <= 8)
        return true;
    size_t part = row->index * 7 / (count - 1);
    return row->index == 0 || part != (row->index - 1) * 7 / (count - 1);
}

#define CROSS struct knee_crossover
A_TEXT(from_name, CROSS, it->from->name)
A_TEXT(to_name, CROSS, it->to->name)
A_TEXT(from_protocol, CROSS, knee_protocol_name(it->from_protocol))
A_TEXT(to_protocol, CROSS, knee_protocol_name(it->to_protocol))
static const struct knee_field crossover_fields[] = {
    KNEE_FIELD(CROSS, bytes, "bytes", "from size", MSG, FULL, "where the fastest changes"),
    KNEE_GET(from_name, "from", "from", TEXT, FULL, "algorithm before"),
    KEY_BY(from_protocol, "from_protocol", TEXT, "its protocol"),
    KNEE_GET(to_name, "to", "to", TEXT, FULL, "algorithm after"),
    KEY_BY(to_protocol, "to_protocol", TEXT, "its protocol"),
};
#define FINDING struct knee_finding
static const struct knee_field finding_fields[] = {
    KNEE_FIELD(FINDING, name, "reason", "likely reason", TEXT, FULL, "why it is slow"),
    KNEE_FIELD(FINDING, evidence, "evidence", "evidence", TEXT, FULL, "in the log"),
    KNEE_FIELD(FINDING, cure, "cure", "fix", TEXT, FULL, "what to do"),
    KNEE_FIELD(FINDING, from_bytes, "from_bytes", "from", MSG, FULL, "smallest size"),
    KNEE_FIELD(FINDING, to_bytes, "to_bytes", "to", MSG, FULL, "largest size"),
    KNEE_FIELD(FINDING, slowdown, "slowdown", "slower by", TIMES, FULL, "measured / expected"),
};
A_TEXT(op_name, C, knee_op_name(it->query.op))
static const struct knee_field fields[] = {
    KNEE_SENTENCE,
    KEY_BY(op_name, "collective", TEXT, "the operation"),
    KEY(C, layout.ranks, "ranks", COUNT, "of the communicator"),
    KEY(C, layout.units[1], "nodes", COUNT, "they are on"),
    KEY(C, cluster.name, "cluster", TEXT, "the cluster"),
    KEY(C, peak_bytes_per_s, "peak_busbw_bytes_per_s", RATE, "bus bandwidth of large messages"),
    KEY(C, half_bandwidth_bytes, "half_bandwidth_bytes", MSG, "size that reaches half of it"),
    KEY(C, curve, "expected_from_curve", YES_NO, "fitted to such runs"),
    KNEE_ROWS(C, rows, row_count, "rows", row_fields, "one row per size and algorithm"),
    KNEE_ROWS_BY(size_row, "sizes", size_fields, "one row per size"),
    KNEE_ARRAY(C, crossovers, crossover_count, "crossovers", crossover_fields,
               "where the fastest algorithm changes"),
    KNEE_ARRAY(C, findings, finding_count, "findings", finding_fields, "why it is slow"),
};
static const struct knee_view views[] = {
    {.list = "rows", .title = "All algorithms", .tier = FULL},
    {.list = "sizes", .pick = spread},
    {.list = "findings", .title = "Findings", .tier = FULL},
    {.list = "crossovers", .title = "Fastest algorithm, NCCL's or not", .tier = FULL},
};

/* ---- Sentences ---- */

static size_t measured(const C *c)
{
    size_t known = 0;
    for (size_t i = 0; i < c->query.size_count; i++)
        known += isnan(c->sizes[i].measured_s) ? 0 : 1;
    return known;
}

/* The size that stands for large messages: the last measured one, or the last. */
static const SIZE *largest(const C *c, bool log)
{
    size_t i = c->query.size_count;
    while (--i > 0 && log && isnan(c->sizes[i].measured_s))
        ;
    return &c->sizes[i];
}

static double busbw(const C *c, const SIZE *size, double seconds)
{
    return knee_op_bus_factor(c->query.op, c->layout.ranks) * size->bytes / seconds;
}

static void say_measured(const C *c, size_t known, struct knee_said *said)
{
    const SIZE *large = largest(c, true);
    if (c->slow_count == 0)
        PUT(&said->headline, "Healthy: all {} measured sizes run as fast as expected.", known);
    else
        PUT(&said->headline, "Slow: {} of {} sizes take longer than expected.", c->slow_count,
            known);
    PUT(&said->reason, "{message} reaches {rate} of bus bandwidth; expected: {rate}.", large->bytes,
        busbw(c, large, large->measured_s), busbw(c, large, large->expected_s));
    if (c->finding_count)
        PUT(&said->effect, "Likely reason: {} ({}). Fix: {}.", c->findings[0].name,
            c->findings[0].evidence, c->findings[0].cure);
    else if (c->slow_count)
        PUT(&said->effect,
            "Reason unknown. To find out: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,TUNING.");
}

static void say_expected(const C *c, struct knee_said *said)
{
    const SIZE *large = largest(c, false), *small = &c->sizes[0];
    if (isnan(large->expected_s)) {
        PUT(&said->headline, "NCCL has no algorithm for this collective here.");
        return;
    }
    PUT(&said->headline, "{message} should reach {rate} of bus bandwidth.", large->bytes,
        busbw(c, large, large->expected_s));
    PUT(&said->reason, "It takes {time}", large->expected_s);
    if (small != large)
        PUT(&said->reason, "; {message} takes {time}", small->bytes, small->expected_s);
    PUT(&said->reason, ".");
    for (size_t i = 0; small != large && i < c->query.size_count; i++)
        if (!c->sizes[i].latency_bound) {
            PUT(&said->effect, "Messages below {message} are limited by latency.",
                c->sizes[i].bytes);
            break;
        }
}

static void say(const void *result, struct knee_said *said)
{
    const C *c = result;
    size_t known = measured(c);
    double nodes = c->layout.levels > 1 ? c->layout.units[1] : 1;
    PUT(&said->title, "{} on {ranks}, {nodes}, {}", knee_op_name(c->query.op), c->layout.ranks,
        nodes, c->cluster.name);
    if (known)
        say_measured(c, known, said);
    else
        say_expected(c, said);
    knee_text_puts(&said->assumed, c->curve ? "the curve fitted to this collective and rank count"
                                   : c->cluster.plain ? "the fastest algorithm on these hosts"
                                                      : "the fastest of NCCL's own algorithms, by "
                                                        "the cost model");
    if (!known)
        PUT(&said->next, "--against LOG compares a run of nccl-tests");
    else if (c->slow_count)
        PUT(&said->next, "knee doctor on the nodes");
}

const struct knee_answer_type knee_collective_answer = {
    .schema = "knee.collective/1", KNEE_FIELDS(fields), KNEE_VIEWS(views), .say = say};
