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
#include "base/format.h"
#include "base/keys.h"

#include <math.h>
#include <string.h>

static const char between[] = " \t-_.()/"; /* the words of a name */

struct place {
    const struct knee_gpu_word *word; /* NULL: nowhere */
    const char *start, *end;
};

/* Nothing, a count ("8x") or a box (DGX, HGX) stands before it in its word. */
static bool may_start(const char *text, const char *at)
{
    const char *name = at;
    while (at > text && (knee_is_digit(at[-1]) || knee_lower(at[-1]) == 'x'))
        at--;
    if (at < name && knee_lower(name[-1]) != 'x')
        return false;
    if (at < name && at > text + 1 && knee_lower(at[-1]) == 'g')
        at -= 2;
    return at == text || !knee_is_word_char(at[-1]);
}

/* Nothing, a plural, a count ("x8") or a socket ("sxm5") stands behind it in its word. */
static bool may_end(const char *at)
{
    char c = knee_lower(*at);
    if (c == 's' && knee_lower(at[1]) == 'x')
        return true;
    if (c == 's' || (c == 'x' && knee_is_digit(at[1])))
        at++;
    while (c == 'x' && knee_is_digit(*at))
        at++;
    return !knee_is_word_char(*at);
}

/* Where the words end that begin here; NULL: others stand here. A family may have its number behind
 * it: "rtx6000d". */
static const char *match(const char *at, const char *words, bool family)
{
    for (; *words; words++) {
        if (*words == ' ') {
            const char *start = at;
            while (*at && strchr(between, *at))
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
static struct place find(const char *text)
{
    struct place found[2] = {{0}, {0}}; /* a model, a family */
    for (const char *at = text; *at && !found[0].word; at++) {
        if (!knee_is_letter(*at) || !may_start(text, at))
            continue;
        for (size_t i = 0; i < knee_gpu_words_count; i++) {
            const struct knee_gpu_word *word = &knee_gpu_words[i];
            bool family = !strpbrk(word->words, "0123456789");
            struct place *best = &found[family];
            const char *end = match(at, word->words, family);
            if (end && (!best->word || (best->start == at && end > best->end)))
                *best = (struct place){word, at, end};
        }
    }
    return found[found[0].word ? 0 : 1];
}

const char *knee_gpu_name_in(const char *text)
{
    struct place found = find(text);
    return found.word ? found.word->gpu : NULL;
}

const struct knee_gpu *knee_gpu_in(const char *text)
{
    const char *name = knee_gpu_name_in(text);
    return name ? knee_gpu_named(name) : NULL;
}

int knee_gpu_row_in(const char *text)
{
    const struct knee_gpu *gpu = knee_gpu_in(text);
    return gpu ? (int)(gpu - knee_gpus) : -1;
}

/* Only these words, or what memory and sockets are called, up to `end`. */
static bool only(const char *at, const char *end, const char *const *words, size_t count)
{
    while (at < end) {
        char word[24];
        size_t length = 0;
        bool known = false;
        while (at < end && strchr(between, *at))
            at++;
        if (at < end && !knee_is_word_char(*at))
            return false;
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
    static const char *const vendors[] = {"nvidia", "amd",   "instinct", "intel",
                                          "habana", "tesla", "geforce"};
    static const char *const parts[] = {"hbm",    "sxm",     "nvl72",     "tensor",
                                        "core",   "gpu",     "blackwell", "workstation",
                                        "server", "edition", "generation"};
    char number[24]; /* "4090" alone is a GeForce card */
    if (strlen(text) == 4 && strspn(text, "0123456789") == 4) {
        knee_format(number, sizeof number, "rtx %s", text);
        text = number;
    }
    struct place found = find(text);
    const struct knee_gpu *gpu = found.word ? knee_gpu_named(found.word->gpu) : NULL;
    if (!gpu || !only(text, found.start, vendors, sizeof vendors / sizeof *vendors) ||
        !only(found.end, found.end + strlen(found.end), parts, sizeof parts / sizeof *parts))
        return -1;
    return (int)(gpu - knee_gpus);
}

static const struct knee_gpu_stand_in *stand_in_of(const char *gpu)
{
    for (size_t i = 0; i < knee_gpu_stand_ins_count; i++)
        if (strcmp(knee_gpu_stand_ins[i].gpu, gpu) == 0)
            return &knee_gpu_stand_ins[i];
    return NULL;
}

void knee_cluster_of_gpu(const char *name, struct knee_cluster *out)
{
    const struct knee_gpu *gpu = knee_gpu_named(name);
    const struct knee_gpu_stand_in *other = stand_in_of(name);
    const struct knee_cluster_preset *preset =
        knee_cluster_preset_named(other ? other->cluster : gpu->cluster);
    knee_cluster_from_preset(preset, out);
    knee_format(out->gpu, sizeof out->gpu, "%s", name);
    if (other && !isnan(other->bytes_per_s))
        out->levels[0].bytes_per_s =
            other->bytes_per_s * knee_link_named(preset->node_link)->achieved;
}

const char *knee_gpu_advice(const char *text)
{
    /* accelerators that people ask for; they have no row, because logs never name them as GPUs */
    static const struct {
        const char *start, *advice;
    } others[] = {
        {"trainium", "no public run or kernel rate of Trainium is known to price it with"},
        {"trn", "no public run or kernel rate of Trainium is known to price it with"},
        {"inf", "Inferentia does not train"},
        {"tpu", "name its generation: tpu-v5e, tpu-v5p, tpu-v6e or tpu-v7x"},
    };
    char low[16] = "";
    for (size_t i = 0; text[i] && i + 1 < sizeof low; i++)
        low[i] = knee_lower(text[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strncmp(low, others[i].start, strlen(others[i].start)) == 0)
            return others[i].advice;
    if (knee_choice_find(&knee_cluster_preset_names, text, "", NULL) >= 0)
        return "it names a cluster: use --cluster";
    return knee_gpu_name_in(text) ? "give a similar GPU with --flops and --memory; knee list gpus"
                                  : NULL;
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
