/* SPDX-License-Identifier: MIT */
/*
 * NCCL's variables: names that it does not know, values that it reads otherwise than people think,
 * and settings that contradict each other. What NCCL reads is done here as NCCL does it: integers
 * by strtoll with base 0 and the rest ignored ("true" is 0), levels by exact words, the environment
 * before ~/.nccl.conf (or the file that NCCL_CONF_FILE names) before /etc/nccl.conf.
 */
#include "judge/doctor/doctor_judge.h"

#include "base/format.h"
#include "base/spell.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINTED_MAX 1024 /* variables of a host; no environment has as many that matter */

const struct knee_nccl_variable *knee_nccl_variable_at(size_t row)
{
    return row < knee_nccl_variables_count ? &knee_nccl_variables[row] : NULL;
}

const struct knee_nccl_variable *knee_nccl_variable_of(const char *name)
{
    if (strncmp(name, "NCCL_", 5) != 0)
        return NULL;
    for (size_t i = 0; i < knee_nccl_variables_count; i++)
        if (strcmp(knee_nccl_variables[i].name, name + 5) == 0)
            return &knee_nccl_variables[i];
    return NULL;
}

/* strtoll(value, base 0), without errno, which the core does not have: too many digits are "too
 * large". */
bool knee_nccl_integer(const char *value, long long *out, bool *clean)
{
    char *end = NULL;
    if (!value[0])
        return false;
    long long number = strtoll(value, &end, 0);
    while (*end == ' ' || *end == '\t')
        end++;
    *clean = end != value && *end == '\0';
    if (number == 9223372036854775807LL || number == -9223372036854775807LL - 1)
        return false;
    *out = number;
    return true;
}

static bool is_integer(const struct knee_nccl_variable *v)
{
    return v && (strcmp(v->kind, "int") == 0 || strcmp(v->kind, "switch") == 0);
}

/* ---- Before anything else ---- */

static const struct knee_fact *raw(const struct knee_facts *facts, size_t count, const char *key,
                                   const char *subject)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(facts->rows[i].key, key) == 0 && strcmp(facts->rows[i].subject, subject) == 0)
            return &facts->rows[i];
    return NULL;
}

static void adopt(struct knee_facts *facts, size_t count, const char *key, const char *from)
{
    for (size_t i = 0; i < count; i++) {
        struct knee_fact fact = facts->rows[i];
        if (strcmp(fact.key, key) != 0 || raw(facts, facts->count, "env", fact.subject))
            continue;
        knee_fact_put(facts, fact.subject, "env", knee_slice_of(fact.value));
        knee_fact_put(facts, fact.subject, "env.from", knee_slice_of(from));
    }
}

void knee_env_settle(struct knee_facts *facts)
{
    if (raw(facts, facts->count, "env.settled", ""))
        return;
    const struct knee_fact *named = raw(facts, facts->count, "env", "NCCL_CONF_FILE");
    if (named && named->value[0])
        adopt(facts, facts->count, "conf.file", "NCCL_CONF_FILE");
    else
        adopt(facts, facts->count, "conf.home", "~/.nccl.conf");
    adopt(facts, facts->count, "conf.etc", "/etc/nccl.conf");
    size_t count = facts->count;
    for (size_t i = 0; i < count; i++) {
        struct knee_fact fact = facts->rows[i];
        char key[128];
        long long number;
        bool clean;
        if (strcmp(fact.key, "env") != 0)
            continue;
        knee_format(key, sizeof key, "env.%.110s", fact.subject);
        size_t at = facts->count;
        if (!is_integer(knee_nccl_variable_of(fact.subject))) {
            knee_fact_put(facts, "", key, knee_slice_of(fact.value));
        } else if (knee_nccl_integer(fact.value, &number, &clean)) {
            char digits[24];
            knee_format(digits, sizeof digits, "%lld", number);
            knee_fact_put(facts, "", key, knee_slice_of(digits));
            if (facts->count > at)
                facts->rows[at].number = (double)number;
        }
    }
    knee_fact_put(facts, "", "env.settled", knee_slice_of("yes"));
}

size_t knee_env_list(const struct knee_facts *facts, struct knee_setting *settings)
{
    size_t first, end = knee_facts_range(facts, "env", &first), count = 0;
    for (size_t i = first; i < end && count < KNEE_SETTINGS_MAX; i++) {
        const struct knee_fact *fact = &facts->rows[i],
                               *from = knee_fact_find(facts, fact->subject, "env.from");
        struct knee_setting *s = &settings[count];
        long long number;
        bool clean;
        if (strncmp(fact->subject, "NCCL_", 5) != 0)
            continue;
        *s = (struct knee_setting){.read = ""};
        knee_format(s->name, sizeof s->name, "%s", fact->subject);
        knee_format(s->value, sizeof s->value, "%.127s", fact->value);
        knee_format(s->from, sizeof s->from, "%.31s", from ? from->value : "");
        if (!fact->value[0])
            knee_format(s->read, sizeof s->read, "default");
        else if (is_integer(knee_nccl_variable_of(fact->subject)) &&
                 knee_nccl_integer(fact->value, &number, &clean))
            knee_format(s->read, sizeof s->read, "%lld", number);
        else if (is_integer(knee_nccl_variable_of(fact->subject)))
            knee_format(s->read, sizeof s->read, "default");
        count++;
    }
    return count;
}

/* ---- Names ---- */

static bool begins(const char *name, enum knee_variable_role role)
{
    for (size_t i = 0; i < knee_other_variables_count; i++) {
        const struct knee_other_variable *row = &knee_other_variables[i];
        if (row->role == role && strncmp(name, row->name, strlen(row->name)) == 0)
            return true;
    }
    return false;
}

/* The variable of NCCL that a name is nearest to, case and - _ alike; NULL: none within two edits.
 */
static const struct knee_nccl_variable *nearest_variable(const char *name)
{
    size_t best = 3;
    const struct knee_nccl_variable *found = NULL;
    for (size_t i = 0; i < knee_nccl_variables_count; i++) {
        char full[64];
        struct knee_nearest one = {.wanted = name};
        knee_format(full, sizeof full, "NCCL_%s", knee_nccl_variables[i].name);
        knee_nearest_offer(&one, full);
        if (one.name && one.distance < best) {
            best = one.distance;
            found = &knee_nccl_variables[i];
        }
    }
    return found;
}

/* A name that has all of a variable's and more (NCCL_DEBUG_SUBSYSTEM), or only its end
 * (NCCL_IFNAME); NULL: none, or several. */
static const struct knee_nccl_variable *longer_or_shorter(const char *rest)
{
    const struct knee_nccl_variable *found = NULL;
    size_t length = strlen(rest), count = 0;
    for (size_t i = 0; i < knee_nccl_variables_count; i++) {
        const char *name = knee_nccl_variables[i].name;
        size_t known = strlen(name);
        bool more =
            known >= 6 && length > known && strncmp(rest, name, known) == 0 && rest[known] != '_';
        bool less = length >= 4 && known > length + 1 && name[known - length - 1] == '_' &&
                    strcmp(name + known - length, rest) == 0;
        if (more || less) {
            found = &knee_nccl_variables[i];
            count++;
        }
    }
    return count == 1 ? found : NULL;
}

static void unknown_name(struct knee_exam *exam, const struct knee_fact *fact)
{
    const char *name = fact->subject;
    const struct knee_nccl_variable *nearest = nearest_variable(name);
    if (strpbrk(name, " \t")) {
        knee_blame(exam, "env_blank_name", name, NAN,
                   "'%s=%s' sets a variable with a blank in its name", name, fact->value);
        return;
    }
    if (begins(name, KNEE_ROLE_RENAMED)) {
        knee_blame(exam, "env_renamed", name, NAN, "%s is an old name of PyTorch's", name);
        return;
    }
    if (begins(name, KNEE_ROLE_OTHER))
        return;
    if (nearest) {
        knee_blame(exam, "env_misspelt", name, NAN,
                   "%s=%s: unknown NCCL variable; did you mean NCCL_%s?", name, fact->value,
                   nearest->name);
    } else if (strncmp(name, "NCCL_", 5) == 0) {
        nearest = longer_or_shorter(name + 5);
        knee_blame(exam, "env_unknown", name, NAN, "%s=%s: no NCCL up to 2.30 has it%s%s%s", name,
                   fact->value, nearest ? "; did you mean NCCL_" : "", nearest ? nearest->name : "",
                   nearest ? "?" : "");
    }
}

/* Not NCCL's own prefix: NCCL's after all (NCLL_DEBUG, nccl_debug), or one of those around it. */
static void other_prefix(struct knee_exam *exam, const struct knee_fact *fact)
{
    struct knee_nearest nearest = {.wanted = fact->subject};
    if (fact->subject[0] == 'N' || fact->subject[0] == 'n' || strstr(fact->subject, "NCCL_")) {
        if (strncmp(fact->subject, "NVIDIA_", 7) != 0 && strncmp(fact->subject, "TORCH_", 6) != 0)
            unknown_name(exam, fact);
    }
    for (size_t i = 0; i < knee_other_variables_count; i++)
        if (knee_other_variables[i].role == KNEE_ROLE_NEAR)
            knee_nearest_offer(&nearest, knee_other_variables[i].name);
    size_t length = strlen(fact->subject), other = nearest.name ? strlen(nearest.name) : 0;
    /* A name that only begins another (CUDA_VISIBLE) counts as near for questions, not here. */
    if (nearest.name && nearest.distance > 0 && nearest.distance <= 2 && length + 2 >= other)
        knee_blame(exam, "env_misspelt", fact->subject, NAN,
                   "%s=%s: no program reads this variable; did you mean %s?", fact->subject,
                   fact->value, nearest.name);
}

static bool other_release(struct knee_exam *exam, const struct knee_fact *fact,
                          const struct knee_nccl_variable *v)
{
    double since = knee_version_number(v->since),
           last = v->last[0] ? knee_version_number(v->last) : NAN;
    /* NCCL prints "set by environment" when it reads a variable: builds know more than releases */
    if (knee_fact_is(exam->facts, fact->subject, "env.from", "the log"))
        return false;
    if (!isnan(last) && !(exam->nccl <= last)) {
        knee_blame(exam, "env_gone", fact->subject, NAN,
                   "%s=%s does nothing: the last NCCL with it was %s", fact->subject, fact->value,
                   v->last);
        return true;
    }
    if (exam->nccl < since) {
        knee_blame(exam, "env_too_new", fact->subject, NAN,
                   "%s=%s does nothing: it came with NCCL %s", fact->subject, fact->value,
                   v->since);
        return true;
    }
    return false;
}

void knee_env_retire(struct knee_exam *exam)
{
    for (const struct knee_fact *row = NULL; knee_fact_next(exam->facts, "env.NCCL_*", &row);) {
        struct knee_fact *fact = &exam->facts->rows[row - exam->facts->rows];
        const struct knee_nccl_variable *v = knee_nccl_variable_of(fact->key + 4);
        if (v && (exam->nccl < knee_version_number(v->since) ||
                  (v->last[0] && !(exam->nccl <= knee_version_number(v->last))))) {
            fact->value = "";
            fact->number = NAN;
        }
    }
}

/* ---- Values ---- */

static void integer_value(struct knee_exam *exam, const struct knee_fact *fact)
{
    long long number = 0;
    bool clean = false;
    if (!fact->value[0])
        return;
    if (!knee_nccl_integer(fact->value, &number, &clean))
        knee_blame(exam, "env_not_a_number", fact->subject, NAN,
                   "%s=%s is too large: the default holds", fact->subject, fact->value);
    else if (!clean)
        knee_blame(exam, "env_not_a_number", fact->subject, NAN, "%s=%s is read as %lld",
                   fact->subject, fact->value, number);
    else if (fact->value[0] == '0' && fact->value[1] >= '0' && fact->value[1] <= '7')
        knee_blame(exam, "env_octal", fact->subject, NAN, "%s=%s is octal: %lld", fact->subject,
                   fact->value, number);
}

static void level_value(struct knee_exam *exam, const struct knee_fact *fact)
{
    static const char *const levels[] = {"LOC", "NVL", "NVB", "C2C", "PIX",
                                         "PXB", "P2C", "PXN", "PHB", "SYS"};
    long long number;
    bool clean = false;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (strcmp(fact->value, levels[i]) == 0)
            return;
    if (fact->value[0] &&
        !(knee_nccl_integer(fact->value, &number, &clean) && clean && number >= 0))
        knee_blame(exam, "env_bad_level", fact->subject, NAN,
                   "%s=%s: not a level, so NCCL ignores it", fact->subject, fact->value);
}

/* Words of a list, in any case; '^' before it means "all but these". */
static const struct {
    const char *variable, *words;
} vocabularies[] = {
    {"NCCL_ALGO", " tree ring collnetdirect collnetchain collnet nvls nvlstree pat "},
    {"NCCL_PROTO", " ll ll128 simple "},
    {"NCCL_DEBUG", " none version warn info abort trace "},
    {"NCCL_DEBUG_SUBSYS", " init coll p2p shm net graph tuning env alloc call proxy nvls bootstrap "
                          "reg profile ras destroy symmetric gin all "},
    {"NCCL_LAUNCH_MODE", " group parallel "},
    {"NCCL_SOCKET_FAMILY", " af_inet af_inet6 "},
};

static bool word_of(const char *words, struct knee_slice token)
{
    char wanted[40] = " ";
    size_t used = 1;
    token = knee_slice_trim(token);
    if (token.length > 32)
        return false;
    for (size_t i = 0; i < token.length; i++)
        wanted[used++] = token.at[i] >= 'A' && token.at[i] <= 'Z' ? (char)(token.at[i] - 'A' + 'a')
                                                                  : token.at[i];
    wanted[used++] = ' ';
    wanted[used] = '\0';
    return strstr(words, wanted) != NULL;
}

/* Every word of "a,b" or "^a,b" is one of the vocabulary; the first that is not comes out. */
static bool all_words(const char *words, struct knee_slice list, struct knee_slice *bad)
{
    struct knee_slice token;
    if (list.length > 0 && list.at[0] == '^')
        list = knee_slice_from(list, 1);
    while (knee_slice_until(&list, ',', &token))
        if (token.length > 0 && !word_of(words, token)) {
            *bad = token;
            return false;
        }
    return true;
}

/* Since 2.24 also "allreduce:tree,ring;broadcast:ring"; before, such a word is not known. */
static void word_value(struct knee_exam *exam, const struct knee_fact *fact)
{
    for (size_t i = 0; i < sizeof vocabularies / sizeof *vocabularies; i++) {
        struct knee_slice rest = knee_slice_of(fact->value), part, token = rest;
        if (strcmp(vocabularies[i].variable, fact->subject) != 0 || strchr(fact->value, '@'))
            continue;
        bool good = true, parts = strpbrk(fact->value, ":;") && !(exam->nccl < 22400);
        while (good && knee_slice_until(&rest, parts ? ';' : '\0', &part)) {
            size_t colon = knee_slice_find(part, ":");
            if (parts && colon < part.length)
                part = knee_slice_from(part, colon + 1);
            good = all_words(vocabularies[i].words, part, &token);
        }
        if (!good)
            knee_blame(exam, "env_bad_word", fact->subject, NAN, "%s=%s: '%.*s' is not one of:%s",
                       fact->subject, fact->value, (int)(token.length < 32 ? token.length : 32),
                       token.at, vocabularies[i].words);
    }
}

/* What the field behind a variable holds. */
static const struct {
    const char *variable;
    double least, most;
    enum knee_severity severity;
} ranges[] = {
    {"NCCL_IB_TC", 0, 255, KNEE_WARNING},
    {"NCCL_IB_SL", 0, 15, KNEE_WARNING},
    {"NCCL_IB_GID_INDEX", -1, 255, KNEE_WARNING},
    {"NCCL_IB_QPS_PER_CONNECTION", 1, 128, KNEE_WARNING},
    {"NCCL_CROSS_NIC", 0, 2, KNEE_WARNING},
    {"NCCL_NVLS_ENABLE", 0, 2, KNEE_WARNING},
    {"NCCL_MAX_CTAS", 1, 64, KNEE_NOTE}, /* NCCL itself takes the most */
    {"NCCL_MIN_CTAS", 1, 64, KNEE_NOTE},
    {"NCCL_MAX_NCHANNELS", 1, 64, KNEE_NOTE},
    {"NCCL_MIN_NCHANNELS", 1, 64, KNEE_NOTE},
};

static void range_value(struct knee_exam *exam, const struct knee_fact *fact)
{
    long long number = 0;
    bool clean = false;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (strcmp(ranges[i].variable, fact->subject) == 0 &&
            knee_nccl_integer(fact->value, &number, &clean) &&
            ((double)number < ranges[i].least || (double)number > ranges[i].most))
            knee_blame_at(exam, ranges[i].severity, "env_out_of_range", fact->subject, NAN,
                          "%s=%lld is outside of %.0f to %.0f", fact->subject, number,
                          ranges[i].least, ranges[i].most);
}

static void one_variable(struct knee_exam *exam, const struct knee_fact *fact)
{
    const struct knee_nccl_variable *v = knee_nccl_variable_of(fact->subject);
    if (strncmp(fact->subject, "NCCL_", 5) != 0) {
        other_prefix(exam, fact);
        return;
    }
    if (!v) {
        unknown_name(exam, fact);
        return;
    }
    if (other_release(exam, fact, v))
        return;
    range_value(exam, fact);
    if (is_integer(v) && strcmp(fact->value, "(set)") != 0)
        integer_value(exam, fact);
    else if (strcmp(v->kind, "level") == 0)
        level_value(exam, fact);
    else if (strcmp(v->kind, "words") == 0)
        word_value(exam, fact);
    if ((strcmp(fact->subject, "NCCL_CONF_FILE") == 0 ||
         strcmp(fact->subject, "NCCL_DEBUG_FILE") == 0) &&
        fact->value[0] == '~')
        knee_blame(exam, "env_tilde", fact->subject, NAN, "%s=%s", fact->subject, fact->value);
}

/* ---- Several variables at once ---- */

static double number(const struct knee_exam *exam, const char *name)
{
    char key[64];
    knee_format(key, sizeof key, "env.NCCL_%s", name);
    return knee_fact_value(exam->facts, "", key);
}

static const char *word(const struct knee_exam *exam, const char *name)
{
    char key[64];
    knee_format(key, sizeof key, "env.%s", name);
    const struct knee_fact *fact = knee_fact_find(exam->facts, "", key);
    return fact ? fact->value : "";
}

/* A log may have the lines of one node of many: only so few ranks fit into one. */
enum { MOST_GPUS_OF_A_NODE = 16 };

static void transports(struct knee_exam *exam)
{
    /* A leftover where there is something to lose, a remark where there is not. */
    bool one_node = exam->nodes == KNEE_ABSENT &&
                    knee_fact_value(exam->facts, "", "log.ranks") <= MOST_GPUS_OF_A_NODE;
    enum knee_severity net = exam->rdma == KNEE_ABSENT || one_node ? KNEE_NOTE : KNEE_WARNING;
    enum knee_severity p2p = exam->geforce ? KNEE_NOTE : KNEE_WARNING;
    const char *gdr = word(exam, "NCCL_NET_GDR_LEVEL"), *level = word(exam, "NCCL_P2P_LEVEL");
    if (number(exam, "IB_DISABLE") > 0)
        knee_blame_at(exam, net, "ib_disabled", "NCCL_IB_DISABLE", NAN,
                      "NCCL_IB_DISABLE=%s: traffic between nodes goes over TCP",
                      word(exam, "NCCL_IB_DISABLE"));
    if (word_of(" socket ",
                knee_slice_of(word(exam, "NCCL_NET")))) /* NCCL does not mind the case */
        knee_blame_at(exam, net, "ib_disabled", "NCCL_NET", NAN,
                      "NCCL_NET=%s: traffic between nodes goes over TCP", word(exam, "NCCL_NET"));
    if (word_of(" ib ", knee_slice_of(word(exam, "NCCL_NET"))) && number(exam, "IB_DISABLE") > 0)
        knee_blame(exam, "net_contradict", "NCCL_NET", NAN,
                   "NCCL_NET=IB with NCCL_IB_DISABLE=%s: no network is left",
                   word(exam, "NCCL_IB_DISABLE"));
    if (number(exam, "P2P_DISABLE") > 0)
        knee_blame_at(exam, p2p, "p2p_disabled", "NCCL_P2P_DISABLE", NAN,
                      "NCCL_P2P_DISABLE=%s: GPUs of a node talk through host memory",
                      word(exam, "NCCL_P2P_DISABLE"));
    if (strcmp(level, "LOC") == 0 || strcmp(level, "0") == 0)
        knee_blame_at(exam, p2p, "p2p_disabled", "NCCL_P2P_LEVEL", NAN,
                      "NCCL_P2P_LEVEL=%s: GPUs of a node talk through host memory", level);
    if (strcmp(gdr, "LOC") == 0 || strcmp(gdr, "0") == 0)
        knee_blame_at(exam, net, "gdr_level_off", "NCCL_NET_GDR_LEVEL", NAN,
                      "NCCL_NET_GDR_LEVEL=%s: no GPUDirect RDMA", gdr);
}

static void fabric(struct knee_exam *exam)
{
    double timeout = number(exam, "IB_TIMEOUT"), qps = number(exam, "IB_QPS_PER_CONNECTION");
    double threads = number(exam, "SOCKET_NTHREADS"), sockets = number(exam, "NSOCKS_PERTHREAD");
    double threshold = number(exam, "IB_AR_THRESHOLD"), buffer = number(exam, "BUFFSIZE");
    double cross = number(exam, "CROSS_NIC");
    if (timeout == 0 || timeout >= 32)
        knee_blame(exam, "ib_timeout_short", "NCCL_IB_TIMEOUT", NAN,
                   "NCCL_IB_TIMEOUT=%.0f never times out", timeout);
    else if (timeout < 14) /* the shortest default there ever was */
        knee_blame(exam, "ib_timeout_short", "NCCL_IB_TIMEOUT", NAN,
                   "NCCL_IB_TIMEOUT=%.0f gives up after %.3g s (4.096 us x 2^%.0f x 7 tries)",
                   timeout, 4.096e-6 * pow(2, timeout) * 7, timeout);
    if (threads > 16 || threads * (isnan(sockets) ? 1 : sockets) > 64)
        knee_blame(exam, "socket_threads", "NCCL_SOCKET_NTHREADS", NAN,
                   "%.0f threads x %.0f sockets: refused", threads, isnan(sockets) ? 1 : sockets);
    if (threshold > (isnan(buffer) ? 4194304 : buffer))
        knee_blame(exam, "ar_threshold", "NCCL_IB_AR_THRESHOLD", NAN,
                   "NCCL_IB_AR_THRESHOLD=%.0f is above the buffer: adaptive routing is never used",
                   threshold);
    if (qps == 1 && knee_fact_find(exam->facts, NULL, "ib.layer") &&
        !knee_fact_is(exam->facts, NULL, "ib.layer", "InfiniBand"))
        knee_blame(exam, "qps_one_on_roce", "NCCL_IB_QPS_PER_CONNECTION", NAN,
                   "one queue pair per connection on RoCE");
    if (!isnan(cross) && cross != 2)
        knee_blame(exam, "cross_nic_set", "NCCL_CROSS_NIC", NAN, "NCCL_CROSS_NIC=%.0f", cross);
    if (exam->nccl == 22203 && word(exam, "NCCL_IB_ROCE_VERSION_NUM")[0])
        knee_blame(exam, "roce_version_crash", "NCCL_IB_ROCE_VERSION_NUM", NAN,
                   "NCCL 2.22.3 dumps core when it is set");
    else if (isnan(exam->nccl) && word(exam, "NCCL_IB_ROCE_VERSION_NUM")[0])
        knee_blame_at(exam, KNEE_NOTE, "roce_version_crash", "NCCL_IB_ROCE_VERSION_NUM", NAN,
                      "NCCL 2.22.3 dumps core when it is set; which NCCL is in use is not known");
}

static void channels(struct knee_exam *exam)
{
    static const char *const pairs[][2] = {{"NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"},
                                           {"NCCL_MIN_CTAS", "NCCL_MAX_CTAS"},
                                           {"NCCL_MIN_NRINGS", "NCCL_MAX_NRINGS"},
                                           {"NCCL_MIN_CTAS", "NCCL_MAX_NCHANNELS"},
                                           {"NCCL_MIN_NCHANNELS", "NCCL_MAX_CTAS"}};
    bool old = false, new = false;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        double least = number(exam, pairs[i][0] + 5), most = number(exam, pairs[i][1] + 5);
        old = old || ((i == 0 || i == 2) && (!isnan(least) || !isnan(most)));
        new = new || (i == 1 && (!isnan(least) || !isnan(most)));
        if (least > most)
            knee_blame(exam, "channels_contradict", pairs[i][0], NAN,
                       "%s=%.0f is more than %s=%.0f", pairs[i][0], least, pairs[i][1], most);
        /* Large messages over NVLink want 16 channels and more; V100 and PCIe take 2 to 12. */
        if (most > 0 && most < 16 && !exam->geforce && i < 2)
            knee_blame(exam, "channels_few", pairs[i][1], NAN,
                       "%s=%.0f: large messages get few thread blocks", pairs[i][1], most);
    }
    if (old && new)
        knee_blame(exam, "channels_both_names", "NCCL_MIN_NCHANNELS", NAN,
                   "both NCHANNELS and CTAS are set: the stricter one wins");
}

static void kernels(struct knee_exam *exam)
{
    double threads = number(exam, "NTHREADS"), buffer = number(exam, "BUFFSIZE");
    const char *proto = word(exam, "NCCL_PROTO");
    if (!isnan(threads) && threads != 64 && threads != 128 && threads != 256 && threads != 512)
        knee_blame(exam, "nthreads_odd", "NCCL_NTHREADS", NAN, "NCCL_NTHREADS=%.0f", threads);
    if (buffer > 0 && fmod(log2(buffer), 1) != 0)
        knee_blame(exam, "buffsize_odd", "NCCL_BUFFSIZE", NAN,
                   "NCCL_BUFFSIZE=%.0f is not a power of two", buffer);
    if (strcmp(proto, "LL128") == 0 || strcmp(proto, "ll128") == 0)
        knee_blame(exam, "proto_ll128", "NCCL_PROTO", NAN, "NCCL_PROTO=%s alone", proto);
    else if (proto[0])
        knee_blame(exam, "proto_forced", "NCCL_PROTO", NAN, "NCCL_PROTO=%s is set", proto);
    if (number(exam, "GRAPH_STREAM_ORDERING") == 0 && number(exam, "GRAPH_MIXING_SUPPORT") > 0)
        knee_blame(
            exam, "graph_contradict", "NCCL_GRAPH_STREAM_ORDERING", NAN,
            "NCCL_GRAPH_STREAM_ORDERING=0 with NCCL_GRAPH_MIXING_SUPPORT=1 is not supported");
}

/* An algorithm that is asked for, and switched off by another variable. */
static void algorithms(struct knee_exam *exam)
{
    static const struct {
        const char *algorithm, *variable;
    } table[] = {
        {" nvls nvlstree ", "NVLS_ENABLE"},
        {" collnet collnetdirect collnetchain ", "COLLNET_ENABLE"},
        {" pat ", "PAT_ENABLE"},
    };
    const char *algo = word(exam, "NCCL_ALGO");
    for (size_t i = 0; i < sizeof table / sizeof *table && algo[0] && algo[0] != '^'; i++) {
        struct knee_slice bad;
        if (all_words(table[i].algorithm, knee_slice_of(algo), &bad) &&
            number(exam, table[i].variable) == 0)
            knee_blame(exam, "algo_contradict", "NCCL_ALGO", NAN,
                       "NCCL_ALGO=%s, but NCCL_%s=0 switches it off", algo, table[i].variable);
    }
    if (number(exam, "MNNVL_ENABLE") == 1 && number(exam, "CUMEM_ENABLE") == 0)
        knee_blame(exam, "mnnvl_contradict", "NCCL_MNNVL_ENABLE", NAN,
                   "NCCL_MNNVL_ENABLE=1 needs cuMem, and NCCL_CUMEM_ENABLE=0 switches it off");
}

/* ---- Around NCCL ---- */

/* "0,0,1" has a device twice. */
static bool twice(const char *list)
{
    struct knee_slice rest = knee_slice_of(list), one, other;
    while (knee_slice_until(&rest, ',', &one))
        for (struct knee_slice later = rest; knee_slice_until(&later, ',', &other);)
            if (one.length > 0 && one.length == other.length &&
                memcmp(one.at, other.at, one.length) == 0)
                return true;
    return false;
}

static void surroundings(struct knee_exam *exam)
{
    const struct knee_fact *visible = knee_fact_find(exam->facts, "CUDA_VISIBLE_DEVICES", "env");
    const char *provider = word(exam, "FI_PROVIDER");
    bool efa = knee_fact_find(exam->facts, NULL, "module.efa") != NULL;
    if (word_of(" detail ", knee_slice_of(word(exam, "TORCH_DISTRIBUTED_DEBUG"))))
        knee_blame(exam, "distributed_debug", "TORCH_DISTRIBUTED_DEBUG", NAN,
                   "TORCH_DISTRIBUTED_DEBUG=%s checks every collective",
                   word(exam, "TORCH_DISTRIBUTED_DEBUG"));
    if (word_of(" tcp sockets udp ", knee_slice_of(provider)))
        knee_blame_at(exam, efa ? KNEE_WARNING : KNEE_NOTE, "fi_provider_slow", "FI_PROVIDER", NAN,
                      "FI_PROVIDER=%s: libfabric goes over the host's network stack", provider);
    if (visible && (!visible->value[0] || visible->value[0] == '-'))
        knee_blame_at(exam, exam->gpus > 0 ? KNEE_WARNING : KNEE_NOTE, "no_gpu_visible",
                      "CUDA_VISIBLE_DEVICES", NAN,
                      "CUDA_VISIBLE_DEVICES=%s hides all GPUs from the program", visible->value);
    else if (visible && twice(visible->value))
        knee_blame(exam, "gpu_visible_twice", "CUDA_VISIBLE_DEVICES", NAN,
                   "CUDA_VISIBLE_DEVICES=%s names a GPU twice: CUDA shows none", visible->value);
}

static void debugging(struct knee_exam *exam)
{
    const char *debug = word(exam, "NCCL_DEBUG"), *parts = word(exam, "NCCL_DEBUG_SUBSYS");
    const char *file = word(exam, "NCCL_DEBUG_FILE");
    if (word_of(" trace ", knee_slice_of(debug)) ||
        (word_of(" info ", knee_slice_of(debug)) && word_of(" all ", knee_slice_of(parts))))
        knee_blame(exam, "debug_left_on", "NCCL_DEBUG", NAN, "NCCL_DEBUG=%s %s%s prints every call",
                   debug, parts[0] ? "NCCL_DEBUG_SUBSYS=" : "", parts);
    if (file[0] && !(strstr(file, "%h") && strstr(file, "%p")) && strcmp(file, "stderr") != 0 &&
        strcmp(file, "stdout") != 0)
        knee_blame(exam, "debug_file_shared", "NCCL_DEBUG_FILE", NAN, "NCCL_DEBUG_FILE=%s", file);
    if (strcmp(word(exam, "FI_PROVIDER"), "efa") == 0 &&
        strcmp(word(exam, "FI_EFA_USE_DEVICE_RDMA"), "0") == 0)
        knee_blame(exam, "efa_no_rdma", "FI_EFA_USE_DEVICE_RDMA", NAN, "FI_EFA_USE_DEVICE_RDMA=0");
}

/* What a file of settings says and the environment overrides. */
static void overridden(struct knee_exam *exam)
{
    for (const struct knee_fact *conf = NULL; knee_fact_next(exam->facts, "conf.*", &conf);) {
        const struct knee_fact *env = knee_fact_find(exam->facts, conf->subject, "env");
        const struct knee_fact *from = knee_fact_find(exam->facts, conf->subject, "env.from");
        if (env && from && strcmp(env->value, conf->value) != 0)
            knee_blame(exam, "env_overridden", conf->subject, NAN,
                       "%s=%s of %s holds, not %s of %s", conf->subject, env->value, from->value,
                       conf->value,
                       strcmp(conf->key, "conf.etc") == 0 ? "/etc/nccl.conf" : "~/.nccl.conf");
    }
}

void knee_check_env(struct knee_exam *exam)
{
    size_t first, end = knee_facts_range(exam->facts, "env", &first);
    for (size_t i = first; i < end && i < first + LINTED_MAX; i++)
        one_variable(exam, &exam->facts->rows[i]);
    if (end > first + LINTED_MAX)
        knee_blame(exam, "env_unknown", "", NAN, "%zu further variables were not looked at",
                   end - first - LINTED_MAX);
    transports(exam);
    fabric(exam);
    channels(exam);
    kernels(exam);
    algorithms(exam);
    debugging(exam);
    surroundings(exam);
    overridden(exam);
}
