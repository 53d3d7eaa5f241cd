/* SPDX-License-Identifier: MIT */
/* collective: what a collective should take, by which algorithm, and how a measured run compares.
 */
#include "ask/ask_logs.h"
#include "base/error.h"
#include "base/keys.h"

#include <math.h>
#include <string.h>

struct collective_options {
    const char *bytes, *cluster, *against;
    double ranks, per_node, sharers, skew;
    bool sharp;
    unsigned char source[KNEE_KEYS_MAX];
};

#define WORD(key_name, field, absent, words)                                                       \
    KNEE_OPTION(struct collective_options, key_name, KNEE_KEY_WORD, field, "Question", absent,     \
                KNEE_OFF_PAGE(words))
#define NUMBER(key_name, field, unit, low, high, absent, words)                                    \
    KNEE_NUMBER(struct collective_options, key_name, field, unit, low, high, "Question", absent,   \
                KNEE_OFF_PAGE(words))

static const struct knee_key rows[] = {
    WORD("bytes", bytes, "1K..8Gx4, or from the log",
         "message sizes as in nccl-tests: 1M, 4K..8G or 4K..8Gx4; K is 1024"),
    NUMBER("ranks", ranks, KNEE_UNIT_COUNT, 2, KNEE_WORKERS_MAX, "from the log, else one node",
           "number of ranks"),
    WORD("cluster", cluster, "recognised from the log",
         "preset name, file (YAML, nvidia-smi topo -m, NCCL's XML) or one line: '8xh100 * 16 @ "
         "ib400x8'"),
    NUMBER("ranks-per-node", per_node, KNEE_UNIT_COUNT, 1, KNEE_WORKERS_MAX, "as many as fit",
           "ranks per node"),
    NUMBER("sharers", sharers, KNEE_UNIT_COUNT, 1, 1e6, "1",
           "communicators that share the links at the same time"),
    NUMBER("skew", skew, KNEE_UNIT_FACTOR, 1, 1e6, "1",
           "all_to_allv: largest message divided by the mean"),
    KNEE_OPTION(struct collective_options, "sharp", KNEE_KEY_SWITCH, sharp, "Question", "",
                KNEE_OFF_PAGE("reduce in the network switches (SHARP)")),
    WORD("against", against, "none", "compare with this nccl-tests log"),
};

static const struct knee_keys collective_keys = KNEE_KEY_TABLE(rows, struct collective_options);

/* Everything a run is made of. */
struct question {
    struct collective_options options;
    struct knee_ask_logs logs;  /* with --against */
    const struct knee_log *log; /* its table; NULL: none */
    struct knee_cluster cluster;
    double bytes[KNEE_SIZES_MAX];
    struct knee_collective_query query;
};

static knee_status find_op(const struct knee_ask_question *asked, struct question *q,
                           struct knee_err *err)
{
    const char *word = asked->word_count ? asked->words[0] : NULL;
    q->query.op = word ? knee_op_of(word, strlen(word)) : q->log ? q->log->op : KNEE_OP_UNKNOWN;
    if (q->query.op != KNEE_OP_UNKNOWN)
        return KNEE_OK;
    if (word)
        knee_choice_find(&knee_op_names, word, "", err);
    else
        knee_fail(err, KNEE_USAGE, "", "no collective given");
    knee_hint(err, "for example knee collective all_reduce --ranks 64 --cluster dgx-h100");
    return KNEE_USAGE;
}

static knee_status find_cluster(const struct knee_ask_question *asked, struct question *q,
                                struct knee_err *err)
{
    if (q->options.cluster)
        return knee_ask_read_cluster(asked->ask, q->options.cluster, &q->cluster, err);
    bool known = q->log && knee_log_cluster(q->log, q->logs.about[0].hardware, &q->cluster);
    if (known)
        return knee_log_wire(q->log, knee_ask_alloc(asked->ask), &q->cluster, err);
    return knee_fail_hint(err, KNEE_USAGE, "",
                          "add --cluster: a preset, a file, or '8xh100 * 16 @ ib400x8'",
                          "the cluster is unknown");
}

/* What the log says, and over it what the options say. */
static knee_status find_rest(struct question *q, struct knee_err *err)
{
    struct knee_placement *p = &q->query.placement;
    const struct collective_options *o = &q->options;
    enum knee_op op = q->query.op;
    double node = q->cluster.levels[0].count;
    if (q->log)
        knee_log_question(q->log, &q->cluster, q->bytes, &q->query);
    else
        *p = (struct knee_placement){node >= 2 ? node : 8, NAN, 1, 1};
    q->query.op = op;
    q->query.bytes = q->bytes;
    struct {
        double *field, value;
    } given[] = {{&p->ranks, o->ranks},
                 {&p->per_node, o->per_node},
                 {&p->sharers, o->sharers},
                 {&p->skew, o->skew}};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (!isnan(given[i].value))
            *given[i].field = given[i].value;
    q->cluster.sharp = q->cluster.sharp || o->sharp;
    if (!o->bytes && q->log)
        return KNEE_OK;
    return knee_sizes_parse(o->bytes ? o->bytes : "1K..8Gx4", "--bytes", q->bytes, KNEE_SIZES_MAX,
                            &q->query.size_count, err);
}

static knee_status price(struct knee_ask_question *asked, struct question *q, struct knee_err *err)
{
    struct knee_collective collective;
    knee_status status = find_op(asked, q, err);
    if (!status)
        status = find_cluster(asked, q, err);
    if (!status)
        status = find_rest(q, err);
    if (!status)
        status = knee_collective_run(&q->cluster, &q->query, knee_ask_alloc(asked->ask),
                                     &collective, err);
    if (status)
        return status;
    if (q->log)
        knee_collective_against(&collective, q->log);
    ASK_ANSWER(asked, &knee_collective_answer, &collective);
    knee_collective_release(&collective);
    return KNEE_OK;
}

static knee_status answer(struct knee_ask_question *asked, struct knee_err *err)
{
    struct question *q = asked->objects[1];
    struct knee_ask_log_options log_options;
    knee_ask_log_options_init(&log_options);
    log_options.ranks = q->options.ranks;
    if (!q->options.against)
        return price(asked, q, err);
    knee_status status =
        knee_ask_logs_read(asked->ask, &q->options.against, 1, &log_options, &q->logs, err);
    if (status)
        return status;
    q->log = &q->logs.logs.logs[0];
    status = price(asked, q, err);
    knee_ask_logs_release(&q->logs);
    return status;
}

static void init(void *room, void **objects)
{
    struct question *q = room;
    knee_keys_clear(&collective_keys, &q->options);
    objects[0] = &q->options;
    objects[1] = q;
}

const struct knee_ask_command knee_ask_collective = {
    .name = "collective",
    .keys = {&collective_keys},
    .most_words = 1,
    .operands = "OP",
    .size = sizeof(struct question),
    .init = init,
    .answer = answer,
};
