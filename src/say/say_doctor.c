/* SPDX-License-Identifier: MIT */
/* knee doctor: what is wrong, the evidence, the fix and the cost; and the table of rules. */
#include "knee_doctor.h"
#include "say/short.h"

#include <math.h>
#include <string.h>

#define CHECKUP struct knee_checkup
#define FINDING struct knee_ailment
#define TOLL    struct knee_toll
#define RULE    struct knee_doctor_rule

/* ---- What it costs ---- */

static void cost_sentence(const CHECKUP *c, const FINDING *f, struct knee_text *text)
{
    const TOLL *p = &f->price;
    if (p->lost == 1 && isnan(p->ratio_after))
        PUT(text, "the job does not run");
    else if (p->slows_job)
        PUT(text, "step {time} -> {time}", p->step_before_s, p->step_after_s);
    if (p->slows_job && p->dollars_per_day > 0)
        PUT(text, ", {dollars} per day", p->dollars_per_day);
    if (p->slows_wire)
        PUT(text, "{}all-reduce of {message} on {GPUs} runs at {share} of its rate",
            p->slows_job ? "; " : "", c->bytes, c->ranks, p->share);
    if (!p->slows_job && !p->slows_wire && !isnan(p->share))
        PUT(text, "no effect on an all-reduce of {message} on {GPUs}", c->bytes, c->ranks);
}

WORDS(cost_words, void, cost_sentence(TOP(CHECKUP), UP(FINDING), text))

#define COST(member, name, look, words) KEY(TOLL, member, name, look, words)
static const struct knee_field cost_fields[] = {
    COST(share, "collective_rate_left", SHARE, "left of the collective's bandwidth"),
    COST(healthy_s, "collective_healthy_s", TIME, "the collective without the problem"),
    COST(hurt_s, "collective_hurt_s", TIME, "the collective with it"),
    COST(ratio_before, "ratio_before", NUMBER, "R of the job without it"),
    COST(ratio_after, "ratio_after", NUMBER, "R of the job with it"),
    COST(step_before_s, "step_before_s", TIME, "step of the job without it"),
    COST(step_after_s, "step_after_s", TIME, "step of the job with it"),
    COST(lost, "throughput_lost", SHARE, "share of the job's throughput"),
    COST(dollars_per_day, "dollars_per_day", DOLLARS, "paid for that"),
    KNEE_GET(cost_words, "words", "cost", TEXT, SCREEN, "in words"),
};

/* ---- Findings ---- */

A_TEXT(severity, FINDING, knee_severity_names.name((size_t)it->severity))

static const char *word_of(const FINDING *f)
{
    static const char *const words[] = {
        [KNEE_NOTE] = "NOTE", [KNEE_WARNING] = "WARN", [KNEE_ERROR] = "ERROR"};
    return words[f->severity];
}

enum { HEADLINE = 80 };

/* Where it is and what was seen: "node7: mlx5_3:1: 200 Gb/s" or "3 hosts, first node7: ...". Leaves
 * out the first `skip` bytes of the evidence, which the headline has printed. */
static void say_evidence(const CHECKUP *c, const FINDING *f, size_t skip, struct knee_text *text)
{
    if (f->hosts > 1)
        PUT(text, "{} hosts, first {.60}: ", f->hosts, f->host);
    else if (f->host[0] && c->hosts > 1)
        PUT(text, "{.60}: ", f->host);
    if (f->where[0] && !strstr(f->evidence, f->where))
        PUT(text, "{.90}: ", f->where);
    knee_text_puts(text, f->evidence + skip);
}

/* Bytes of the first sentence, at most `most`; a longer one ends after a whole word. */
static size_t first_sentence(const char *words, size_t most)
{
    const char *stop = strstr(words, ". ");
    size_t length = stop ? (size_t)(stop - words) : strlen(words);
    while (length && strchr(".;: ", words[length - 1]))
        length--;
    if (length <= most)
        return length;
    for (length = most; length && words[length] != ' ';)
        length--;
    return length ? length : most;
}

/* The rule's title, or the first sentence of the evidence where a rule has none. */
static void say_problem(const FINDING *f, size_t most, struct knee_text *text)
{
    const char *words = f->rule->title ? f->rule->title : f->evidence;
    knee_text_add(text, words, first_sentence(words, most));
}

/* "NVLinks are inactive: node7, GPU 3." as far as 80 characters reach. */
static void say_headline(const CHECKUP *c, const FINDING *f, struct knee_text *text)
{
    size_t start = text->length;
    say_problem(f, HEADLINE - 1, text);
    size_t used = text->length - start + 1;
    const char *host = f->hosts == 1 && c->hosts > 1 ? f->host : "";
    const char *where = f->rule->title && f->parts == 1 ? f->where : "";
    const char *before = ": ";
    if (f->hosts > 1 && used + 20 < HEADLINE)
        PUT(text, ": {} hosts", f->hosts);
    else if (*host && used + 2 + strlen(host) <= HEADLINE)
        PUT(text, ": {}", host);
    if (text->length - start + 1 > used)
        before = ", ";
    used = text->length - start + 1;
    if (*where && used + 2 + strlen(where) <= HEADLINE)
        PUT(text, "{}{}", before, where);
    PUT(text, ".");
}

/* "WARN  NVLinks are inactive [nvlink_inactive]: node7: GPU 3: 2 of 6 NVLinks are inactive" */
static void first_line(const struct knee_at *at, struct knee_value *out)
{
    const FINDING *f = at->row;
    out->is = KNEE_A_TEXT;
    knee_text_printf(&out->words, "%-5s ", word_of(f));
    if (f->rule->title)
        PUT(&out->words, "{} [[{}]]: ", f->rule->title, f->rule->id);
    else
        PUT(&out->words, "[[{}]] ", f->rule->id);
    say_evidence(TOP(CHECKUP), f, 0, &out->words);
}

A_TEXT(rule_id, FINDING, it->rule->id)
WORDS(title, FINDING, say_problem(it, HEADLINE, text))
A_TEXT(also, FINDING, it->rule->also ? it->rule->also : "")

#define OF_FINDING(member, name, look, words) KEY(FINDING, member, name, look, words)
static const struct knee_field finding_fields[] = {
    KNEE_GET(first_line, NULL, "", TEXT, SCREEN, "severity, rule, evidence"),
    KEY_BY(rule_id, "id", TEXT, "rule"),
    KEY_BY(severity, "severity", TEXT, "note, warning or error"),
    KEY_BY(title, "title", TEXT, "the problem in a few words"),
    OF_FINDING(host, "host", TEXT, "the first host that has it"),
    OF_FINDING(hosts, "hosts", COUNT, "hosts that have it"),
    OF_FINDING(where, "where", TEXT, "port, GPU, variable or interface"),
    OF_FINDING(parts, "parts", COUNT, "parts that have it"),
    OF_FINDING(evidence, "evidence", TEXT, "the line or value"),
    KNEE_FIELD(FINDING, cure, "cure", "fix", TEXT, SCREEN, "what to do"),
    KNEE_GET(also, "looks_the_same", "looks the same", TEXT, FULL,
             "rule of another cause with the same signs"),
    KNEE_INSIDE(FINDING, price, "cost", cost_fields, "what it costs"),
};

/* ---- The rest of the answer ---- */

A_TEXT(setting_reads, struct knee_setting, it->read[0] ? it->read : it->value)

#define SETTING(member, name, head, words)                                                         \
    KNEE_FIELD(struct knee_setting, member, name, head, TEXT, FULL, words)
static const struct knee_field setting_fields[] = {
    SETTING(name, "name", "variable", "NCCL variable"),
    SETTING(value, "value", "value", "as it is set"),
    KNEE_GET(setting_reads, "reads", "NCCL reads", TEXT, FULL, "the value that NCCL uses"),
    SETTING(from, "from", "from", "where it is set"),
};

struct gap {
    const char *what, *why;
};

ROW_OF(gap_row, void, index < TOP(CHECKUP)->gap_count ? &TOP(CHECKUP)->gaps[index] : NULL)

static const struct knee_field gap_fields[] = {
    KNEE_FIELD(struct gap, what, "what", "not checked", TEXT, FULL, "subject"),
    KNEE_FIELD(struct gap, why, "why", "reason", TEXT, FULL, "what is missing"),
};

static size_t count_of(const CHECKUP *c, enum knee_severity severity)
{
    size_t worse =
        severity == KNEE_ERROR ? 0 : knee_checkup_count(c, (enum knee_severity)(severity + 1));
    return knee_checkup_count(c, severity) - worse;
}

A_NUMBER(errors, void, (double)count_of(TOP(CHECKUP), KNEE_ERROR))
A_NUMBER(warnings, void, (double)count_of(TOP(CHECKUP), KNEE_WARNING))
A_NUMBER(notes, void, (double)count_of(TOP(CHECKUP), KNEE_NOTE))
A_TEXT(cluster, void, TOP(CHECKUP)->cluster.level_count ? TOP(CHECKUP)->cluster_from : "")

#define ONLY(function, name, look, words) KEY_BY(function, name, look, words)
#define COUNTED(member, name, words)      KEY(CHECKUP, member, name, COUNT, words)
static const struct knee_field fields[] = {
    COUNTED(hosts, "hosts", "hosts looked at"),
    COUNTED(facts, "facts", "facts known of them"),
    COUNTED(files, "files", "files read"),
    COUNTED(strange, "files_not_understood", "files that are not recognised"),
    COUNTED(unread, "files_not_read", "files that cannot be read"),
    COUNTED(dropped, "facts_left_out", "facts beyond the limit"),
    ONLY(cluster, "cluster", TEXT, "what costs are for; empty: no costs"),
    ONLY(errors, "errors", COUNT, "findings that stop or halve a job"),
    ONLY(warnings, "warnings", COUNT, "findings that cost time"),
    ONLY(notes, "notes", COUNT, "findings that may matter"),
    KNEE_ROWS(CHECKUP, findings, count, "findings", finding_fields, "worst first", .tall = true),
    KNEE_ROWS(CHECKUP, settings, setting_count, "settings", setting_fields,
              "NCCL variables that are set"),
    KNEE_ROWS_BY(gap_row, "not_looked_at", gap_fields, "what could not be checked"),
};

/* The first finding is the headline; notes are for -v. */
static bool further(const struct knee_at *row)
{
    return row->index > 0 && ((const FINDING *)row->row)->severity > KNEE_NOTE;
}

static const struct knee_view views[] = {
    {.list = "findings", .blocks = true, .pick = further},
    {.list = "settings", .title = "Settings of NCCL", .tier = FULL},
    {.list = "not_looked_at", .tier = FULL},
};

/* ---- Sentences ---- */

static void say_title(const CHECKUP *c, struct knee_text *text)
{
    const struct {
        size_t count;
        const char *noun;
    } parts[] = {{count_of(c, KNEE_ERROR), "error"},
                 {count_of(c, KNEE_WARNING), "warning"},
                 {count_of(c, KNEE_NOTE), "note"}};
    const char *before = ": ";
    PUT(text, "{hosts}[, {files}]", c->hosts, c->files);
    for (size_t i = 0; i < KNEE_COUNT_OF(parts); i++)
        if (parts[i].count) {
            PUT(text, "{}{}", before, knee_say_count((double)parts[i].count, parts[i].noun).s);
            before = ", ";
        }
    PUT(text, "[; {files} not recognised]", c->strange);
}

static bool ends_sentence(const char *words)
{
    size_t length = strlen(words);
    return length && strchr(".!?", words[length - 1]);
}

static void say_first(const CHECKUP *c, struct knee_said *said)
{
    const FINDING *first = c->count ? &c->findings[0] : NULL;
    if (!first || first->severity == KNEE_NOTE) {
        PUT(&said->headline, "No problems found on {hosts}, in {facts}.", c->hosts, c->facts);
        if (first)
            PUT(&said->reason, "{notes} with -v.", c->count);
        return;
    }
    say_headline(c, first, &said->headline);
    struct knee_text cost = {.alloc = said->reason.alloc};
    cost_sentence(c, first, &cost);
    PUT(&said->reason, "{} [[{}]]: ", word_of(first), first->rule->id);
    size_t said_already = first->rule->title ? 0 : first_sentence(first->evidence, HEADLINE - 1);
    while (said_already && strchr(". ", first->evidence[said_already]) &&
           first->evidence[said_already])
        said_already++;
    if (first->evidence[said_already] == '\0')
        said_already = 0;
    say_evidence(c, first, said_already, &said->reason);
    if (cost.length)
        PUT(&said->reason, "{} Cost: {}.", ends_sentence(first->evidence) ? "" : ".", cost.data);
    knee_text_end(&cost, &said->reason);
    PUT(&said->effect, "Fix: {}{}", first->cure, ends_sentence(first->cure) ? "" : ".");
}

/* The first three files that are not recognised. */
static void say_strange(const CHECKUP *c, struct knee_text *text)
{
    enum { NAMED = 3 };
    const char *end = c->strange_names;
    size_t named = 0;
    for (; named < NAMED && *end; named++)
        end += strcspn(end + (named > 0), ",") + (named > 0);
    PUT(text, "Not recognised: ");
    knee_text_add(text, c->strange_names, (size_t)(end - c->strange_names));
    PUT(text, "[ and {} more].\n", c->strange - named);
}

/* Is there a finding that a cluster would give a price to? */
static bool slows_something(const CHECKUP *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->findings[i].severity > KNEE_NOTE &&
            c->findings[i].rule->hurts != KNEE_HURTS_NOTHING &&
            c->findings[i].rule->hurts != KNEE_HURTS_ALL)
            return true;
    return false;
}

/* One line each: what was not checked, not read, not priced. */
static void say_limits(const CHECKUP *c, struct knee_text *text)
{
    for (size_t i = 0; i < c->gap_count; i++)
        PUT(text, "{}{}", i ? ", " : "Not checked: ", c->gaps[i].what);
    knee_text_puts(text, c->gap_count ? ".\n" : "");
    if (c->strange_names[0])
        say_strange(c, text);
    PUT(text, "[Cannot read {files}: no permission, too large, or not a file.\n]", c->unread);
    PUT(text, "[Skipped {facts}: too many.\n]", c->dropped);
    if (!c->cluster.level_count && slows_something(c))
        PUT(text, "Cost unknown: add --cluster.\n");
}

static void say(const void *result, struct knee_said *said)
{
    const CHECKUP *c = result;
    bool priced = c->cluster.level_count && knee_checkup_count(c, KNEE_NOTE);
    say_title(c, &said->title);
    say_first(c, said);
    say_limits(c, &said->after);
    if (priced)
        PUT(&said->assumed, "costs are for {.90}", c->cluster_from);
    if (c->ethernet_assumed)
        PUT(&said->assumed, "{}TCP runs over 100 Gb/s Ethernet", priced ? "; " : "");
}

const struct knee_answer_type knee_doctor_answer = {
    .schema = "knee.doctor/1", KNEE_FIELDS(fields), KNEE_VIEWS(views), .say = say};

/* ---- The rules ---- */

ROW_OF(rule_row, void, knee_rule_at(index))
A_TEXT(rule_severity, RULE, knee_severity_names.name((size_t)it->severity))
A_TEXT(rule_title, RULE, it->title ? it->title : "")
A_TEXT(rule_key, RULE, it->key ? it->key : "")
A_TEXT(rule_test, RULE, it->test ? it->test : "")
A_TEXT(rule_limit, RULE, it->limit ? it->limit : "")

static const struct knee_field rule_fields[] = {
    KNEE_FIELD(RULE, id, "id", "rule", TEXT, SCREEN, "name of the rule"),
    KNEE_GET(rule_severity, "severity", "severity", TEXT, SCREEN, "note, warning or error"),
    KNEE_GET(rule_title, "title", "problem", TEXT, SCREEN,
             "in a few words; empty: the first sentence of the evidence"),
    KEY_BY(rule_key, "key", TEXT, "the fact; empty: several facts"),
    KEY_BY(rule_test, "test", TEXT, "how it is compared"),
    KEY_BY(rule_limit, "limit", TEXT, "with what"),
    KNEE_FIELD(RULE, cure, "cure", "fix", TEXT, SCREEN, "what to do"),
    KEY(RULE, origin, "origin", TEXT, "where it is documented"),
};
static const struct knee_field rules_fields[] = {
    KNEE_ROWS_BY(rule_row, "rules", rule_fields, "all rules"),
};
static const struct knee_view rules_views[] = {{.list = "rules"}};

static void say_rules(const void *result, struct knee_said *said)
{
    size_t count = 0;
    (void)result;
    while (knee_rule_at(count))
        count++;
    PUT(&said->headline, "knee doctor has {} rules.", count);
}

const struct knee_answer_type knee_rules_answer = {.schema = "knee.doctor.rules/1",
                                                   KNEE_FIELDS(rules_fields),
                                                   KNEE_VIEWS(rules_views),
                                                   .say = say_rules};
