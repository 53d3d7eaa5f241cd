/* SPDX-License-Identifier: MIT */
/*
 * What names mean. Frameworks write the same few quantities under some hundred names; a name that
 * means the same wherever it is used stands in data/train_keys.csv once, and formats list only
 * those that they use otherwise. Units say as much as names: 5 "it/s", 5 "tokens/s" and 5 "s/it"
 * need no name at all.
 */
#include "read/run/train_log.h"

#include <math.h>
#include <string.h>

static unsigned bucket(unsigned hash)
{
    return (hash ^ hash >> 9) % TRAIN_WORDS_HASH;
}

void knee_train_words_init(struct train_words *words)
{
    memset(words, 0, sizeof *words);
    for (size_t i = knee_train_keys_count; i-- > 0;) {
        unsigned hash = 0;
        for (const char *p = knee_train_keys[i].name; *p; p++)
            hash = knee_train_hash(hash, *p);
        words->next[i] = words->first[bucket(hash)];
        words->first[bucket(hash)] = (unsigned char)(i + 1);
    }
}

const struct knee_train_key *knee_train_word(const struct train_words *words,
                                             const struct train_pair *pair)
{
    unsigned row = words->first[bucket(pair->hash)];
    for (; row; row = words->next[row - 1])
        if (strcmp(knee_train_keys[row - 1].name, pair->name) == 0)
            return &knee_train_keys[row - 1];
    return NULL;
}

/* Is `word` one of the words of a name? */
static bool has_word(const char *name, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = name; (at = strstr(at, word)); at += length)
        if ((at == name || at[-1] == '_') && (at[length] == '\0' || at[length] == '_'))
            return true;
    return false;
}

static bool has_one(const char *name, const char *const *words)
{
    for (; *words; words++)
        if (has_word(name, *words))
            return true;
    return false;
}

const struct knee_train_key *knee_train_guess(const struct train_pair *pair)
{
    static const char *const others[] = {
        "eta",   "remaining", "remain",    "left",    "epoch", "eval",     "val",
        "valid", "test",      "inference", "forward", "nms",   "backward", "validation",
        "save",  "estimated", "expected",  "finish",  NULL};
    static const char *const times[] = {"time", "elapsed", "took", "seconds", "secs", NULL};
    static const char *const since[] = {"total", "used", "elapsed", "wall", "overall", NULL};
    static const char *const input[] = {"data", "loading", "reader", "load", "dataloader", NULL};
    static const char *const steps[] = {"step", "iter", "iteration", "batch", NULL};
    static const struct knee_train_key loss = {"", TRAIN_LOSS, 1}, whole = {"", TRAIN_ELAPSED, 1},
                                       data = {"", TRAIN_DATA_S, 1}, one = {"", TRAIN_SECONDS, 1},
                                       any = {"", TRAIN_TIME, 1};
    const char *name = pair->name;
    if (has_one(name, others))
        return NULL;
    if (has_word(name, "loss"))
        return &loss;
    if (!has_one(name, times))
        return NULL;
    return has_one(name, since)   ? &whole
           : has_one(name, input) ? &data
           : has_one(name, steps) ? &one
                                  : &any;
}

/* A column's name. */
const struct knee_train_key *knee_train_table_key(const char *name, size_t length)
{
    const struct knee_train_key *own = knee_train_key_find(knee_train_table_keys, name, length);
    for (size_t i = 0; i < knee_train_keys_count && !own; i++)
        if (strlen(knee_train_keys[i].name) == length &&
            memcmp(knee_train_keys[i].name, name, length) == 0)
            own = &knee_train_keys[i];
    return own;
}

/* ---- Units ---- */

enum unit { UNIT_NONE, UNIT_TIME, UNIT_STEP, UNIT_SAMPLE, UNIT_TOKEN };

static enum unit unit_of(struct knee_slice word, double *seconds)
{
    static const struct {
        const char *name;
        enum unit unit;
        double seconds;
    } units[] = {
        {"s", UNIT_TIME, 1},          {"sec", UNIT_TIME, 1},         {"secs", UNIT_TIME, 1},
        {"second", UNIT_TIME, 1},     {"seconds", UNIT_TIME, 1},     {"ms", UNIT_TIME, 1e-3},
        {"us", UNIT_TIME, 1e-6},      {"it", UNIT_STEP, 0},          {"its", UNIT_STEP, 0},
        {"iter", UNIT_STEP, 0},       {"iters", UNIT_STEP, 0},       {"iteration", UNIT_STEP, 0},
        {"step", UNIT_STEP, 0},       {"steps", UNIT_STEP, 0},       {"batch", UNIT_STEP, 0},
        {"batches", UNIT_STEP, 0},    {"updates", UNIT_STEP, 0},     {"sample", UNIT_SAMPLE, 0},
        {"samples", UNIT_SAMPLE, 0},  {"seq", UNIT_SAMPLE, 0},       {"sequences", UNIT_SAMPLE, 0},
        {"image", UNIT_SAMPLE, 0},    {"images", UNIT_SAMPLE, 0},    {"img", UNIT_SAMPLE, 0},
        {"imgs", UNIT_SAMPLE, 0},     {"examples", UNIT_SAMPLE, 0},  {"token", UNIT_TOKEN, 0},
        {"instance", UNIT_SAMPLE, 0}, {"instances", UNIT_SAMPLE, 0}, {"ins", UNIT_SAMPLE, 0},
        {"tokens", UNIT_TOKEN, 0},    {"tok", UNIT_TOKEN, 0},        {"words", UNIT_TOKEN, 0},
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (knee_slice_is(word, units[i].name)) {
            *seconds = units[i].unit == UNIT_TIME ? units[i].seconds : NAN;
            return units[i].unit;
        }
    *seconds = NAN;
    return UNIT_NONE;
}

enum train_what knee_train_unit(struct knee_slice of, struct knee_slice per, double *seconds)
{
    double per_s;
    enum unit above = unit_of(of, seconds), below = unit_of(per, &per_s);
    if (above == UNIT_STEP && per.length == 0)
        return TRAIN_STEP;
    if (above == UNIT_TIME && below == UNIT_STEP)
        return TRAIN_SECONDS;
    if (per.length == 0 || below != UNIT_TIME || per_s != 1)
        return TRAIN_NOTHING;
    *seconds = NAN;
    return above == UNIT_STEP     ? TRAIN_STEPS_PER_S
           : above == UNIT_SAMPLE ? TRAIN_SAMPLES_PER_S
           : above == UNIT_TOKEN  ? TRAIN_TOKENS_PER_S
                                  : TRAIN_NOTHING;
}
