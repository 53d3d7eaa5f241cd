/* SPDX-License-Identifier: MIT */
/*
 * A name is words that stand together in the text, whole ones: what may stand before it in the same
 * word is a count or a box ("8xh100", "dgxa100"), what may stand behind it a count, a plural or a
 * socket ("a100x8", "H100s", "h100sxm5"). The model named first counts, and of its spellings the
 * longest; a family ("rtx") counts only where no model is named.
 */
#include "cluster/gpu_words.h"

#include "base/error.h"
#include "base/fold.h"

#include <math.h>
#include <stdio.h> /* snprintf only */
#include <string.h>

struct place {
    const struct knee_gpu_word *word; /* NULL: nowhere */
    const char *start, *end;
};

static bool boundary(const char *text, const char *at)
{
    return at == text || !knee_is_word_char(at[-1]);
}

static bool may_start(const char *text, const char *at)
{
    if (boundary(text, at))
        return true;
    if (knee_lower(at[-1]) != 'x')
        return false;
    while (at > text && (knee_is_digit(at[-1]) || knee_lower(at[-1]) == 'x'))
        at--;
    bool box = at - text >= 2 && knee_lower(at[-1]) == 'g' &&
               (knee_lower(at[-2]) == 'd' || knee_lower(at[-2]) == 'h'); /* DGX, HGX */
    return boundary(text, box ? at - 2 : at);
}

static bool may_end(const char *at)
{
    const char *tail = at;
    if (knee_lower(*tail) == 's' && !knee_is_word_char(tail[1]))
        return true;
    if (knee_lower(*tail) == 'x' && knee_is_digit(tail[1]))
        for (tail++; knee_is_digit(*tail);)
            tail++;
    bool socket = knee_lower(at[0]) == 's' && knee_lower(at[1]) == 'x' && knee_lower(at[2]) == 'm';
    return socket || !knee_is_word_char(*tail);
}

/* Where the words end that begin here; NULL: others stand here. A family may have its number behind
 * it: "rtx6000d". */
static const char *match(const char *at, const char *words, bool family)
{
    for (; *words; words++) {
        if (*words == ' ') {
            const char *start = at;
            while (*at && strchr(" \t-_.(/", *at))
                at++;
            if (at == start)
                return NULL;
        } else if (*words == '-' ? *at != '-' && *at != '_' : knee_lower(*at) != *words) {
            return NULL;
        } else {
            at++;
        }
    }
    return may_end(at) || (family && knee_is_digit(*at)) ? at : NULL;
}

/* Families are rows without a digit. */
static struct place find(const char *text, bool families)
{
    struct place found = {0};
    for (const char *at = text; *at && !found.word; at++) {
        if (!knee_is_letter(*at) || !may_start(text, at))
            continue;
        for (size_t i = 0; i < knee_gpu_words_count; i++) {
            const struct knee_gpu_word *word = &knee_gpu_words[i];
            bool family = !strpbrk(word->words, "0123456789");
            const char *end = family == families ? match(at, word->words, family) : NULL;
            if (end && (!found.word || end > found.end))
                found = (struct place){word, at, end};
        }
    }
    return found;
}

static struct place find_any(const char *text)
{
    struct place found = find(text, false);
    return found.word ? found : find(text, true);
}

const struct knee_gpu_word *knee_gpu_word_in(const char *text)
{
    return find_any(text).word;
}

const struct knee_gpu *knee_gpu_in(const char *text)
{
    const struct knee_gpu_word *word = knee_gpu_word_in(text);
    return word ? knee_gpu_named(word->gpu) : NULL;
}

/* Only these words, or what memory and sockets are called, up to `end`. */
static bool only(const char *at, const char *end, const char *const *words, size_t count)
{
    while (at < end) {
        char word[24];
        size_t length = 0;
        bool known = false;
        for (; at < end && !knee_is_word_char(*at); at++)
            ;
        for (; at < end && knee_is_word_char(*at) && length + 1 < sizeof word; at++)
            word[length++] = knee_lower(*at);
        word[length] = '\0';
        for (size_t i = 0; i < count; i++)
            known = known || strncmp(word, words[i], strlen(words[i])) == 0;
        bool memory = length > 2 && knee_is_digit(word[0]) && strcmp(word + length - 2, "gb") == 0;
        if (length > 0 && !known && !memory)
            return false;
    }
    return true;
}

int knee_gpu_spelt(const char *text)
{
    static const char *const vendors[] = {"nvidia", "amd", "instinct", "intel", "habana", "tesla"};
    static const char *const parts[] = {"hbm", "sxm", "tensor", "core", "gpu"};
    struct place found = find_any(text);
    const struct knee_gpu *gpu = found.word ? knee_gpu_named(found.word->gpu) : NULL;
    if (!gpu || !only(text, found.start, vendors, sizeof vendors / sizeof *vendors) ||
        !only(found.end, found.end + strlen(found.end), parts, sizeof parts / sizeof *parts))
        return -1;
    return (int)(gpu - knee_gpus);
}

void knee_cluster_of_gpu_word(const struct knee_gpu_word *word, struct knee_cluster *out)
{
    const struct knee_gpu *gpu = knee_gpu_named(word->gpu);
    const struct knee_cluster_preset *preset =
        knee_cluster_preset_named(word->cluster[0] ? word->cluster : gpu->cluster);
    const struct knee_link *link = knee_link_named(preset->node_link);
    knee_cluster_from_preset(preset, out);
    snprintf(out->gpu, sizeof out->gpu, "%s", word->gpu);
    if (!gpu && !isnan(word->bytes_per_s))
        out->levels[0].bytes_per_s = word->bytes_per_s * link->achieved;
}

static bool chooses_gpu(const struct knee_key *key)
{
    return key->kind == KNEE_KEY_CHOICE && key->choices == &knee_gpu_names;
}

const char *knee_gpu_choice(const struct knee_key *key, const char *text)
{
    int row = chooses_gpu(key) ? knee_gpu_spelt(text) : -1;
    return row < 0 ? text : knee_gpus[row].name;
}

void knee_gpu_choice_refused(const struct knee_key *key, const char *text, struct knee_err *err)
{
    const struct knee_gpu_word *word = chooses_gpu(key) ? knee_gpu_word_in(text) : NULL;
    if (!word || knee_gpu_named(word->gpu) || !err)
        return;
    err->hint[0] = '\0'; /* the nearest spelling */
    knee_hint(err, "%s is known, its figures are not: 'knee list gpus' shows the presets",
              word->gpu);
}

/* ---- Topologies: GPUs without a name ---- */

static const struct {
    double sm, nvlinks;
    const char *gpu;
} generations[] = {
    {70, 6, "v100"}, {80, 12, "a100"}, {90, 18, "h100"}, {100, 18, "b200"}, {103, 18, "b300"}};

const struct knee_gpu *knee_gpu_of_links(double sm, double nvlinks)
{
    for (size_t i = 0; i < sizeof generations / sizeof *generations; i++)
        if ((isnan(sm) || generations[i].sm == sm) && generations[i].nvlinks == nvlinks)
            return knee_gpu_named(generations[i].gpu);
    return NULL;
}

double knee_nvlinks_of(double sm)
{
    for (size_t i = 0; i < sizeof generations / sizeof *generations; i++)
        if (generations[i].sm == sm)
            return generations[i].nvlinks;
    return NAN;
}
