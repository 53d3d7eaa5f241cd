/* SPDX-License-Identifier: MIT */
#include "out/words.h"
#include "judge/judge.h"

#include "base/format.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

struct knee_word knee_human(double value, enum knee_unit unit)
{
    struct knee_word word = {""};
    knee_number_human(word.s, sizeof word.s, value, unit);
    return word;
}

/* Takes the unit away from what is said to be in the same one right after; "1 d 3 h" has two. */
static void drop_unit(struct knee_word *word, const char *after)
{
    char *unit = strrchr(word->s, ' '), *same = strrchr(after, ' ');
    if (unit && same && strcmp(unit, same) == 0 && strchr(word->s, ' ') == unit)
        *unit = '\0';
}

struct knee_word knee_range(double low_s, double high_s)
{
    struct knee_word low = knee_human(low_s, KNEE_UNIT_SECONDS), word = {""};
    struct knee_word high = knee_human(high_s, KNEE_UNIT_SECONDS);
    drop_unit(&low, high.s);
    knee_format(word.s, sizeof word.s, "%.100s to %.100s", low.s, high.s);
    return word;
}

static struct knee_word in_unit(double value, enum knee_unit unit)
{
    return unit == KNEE_UNIT_FRACTION ? knee_percent(value) : knee_human(value, unit);
}

struct knee_word knee_surely(double value, struct knee_sure sure, enum knee_unit unit)
{
    struct knee_word it = in_unit(value, unit), word = {""};
    if (isnan(value) || isnan(sure.low) || isnan(sure.high))
        return it;
    struct knee_word low = in_unit(sure.low, unit), high = in_unit(sure.high, unit);
    if (strcmp(low.s, high.s) == 0) /* as sure as it is written */
        return it;
    drop_unit(&low, high.s);
    drop_unit(&high, it.s);
    knee_format(word.s, sizeof word.s, "%.80s (%.80s to %.80s)", it.s, low.s, high.s);
    return word;
}

struct knee_word knee_memory_word(const struct knee_memory *memory)
{
    return knee_surely(memory->total, knee_memory_sure(memory), KNEE_UNIT_BYTES);
}

struct knee_word knee_percent(double share)
{
    struct knee_word word = {""};
    knee_format(word.s, sizeof word.s, isnan(share) ? "-" : "%.1f %%", 100 * share);
    return word;
}

bool knee_shows(double share)
{
    return share > 0.0005; /* one decimal of a percentage */
}

/* From ten times as much on, per cent are no help. */
struct knee_word knee_signed_percent(double share)
{
    struct knee_word word = {""};
    if (share >= 9)
        knee_format(word.s, sizeof word.s, share < 99 ? "%.1f times" : "%.0f times", 1 + share);
    else
        knee_format(word.s, sizeof word.s, isnan(share) ? "-" : "%+.1f %%", 100 * share);
    return word;
}

struct knee_word knee_change_word(double before, double after)
{
    struct knee_word word = {""};
    double times = after > before ? after / before : before / after;
    const char *how = after > before ? "longer" : "shorter";
    if (times < 3)
        knee_format(word.s, sizeof word.s, "%.1f %% %s", 100 * fabs(after - before) / before, how);
    else
        knee_format(word.s, sizeof word.s, times < 100 ? "%.1f times %s" : "%.0f times %s", times,
                    after > before ? "as long" : "shorter");
    return word;
}

struct knee_word knee_short(double value)
{
    struct knee_word word = {""};
    if (isnan(value))
        knee_format(word.s, sizeof word.s, "-");
    else
        knee_format(word.s, sizeof word.s,
                    value < 10     ? "%.3f"
                    : value < 1000 ? "%.1f"
                                   : "%.0f",
                    value);
    return word;
}

struct knee_word knee_ratio_word(double ratio)
{
    struct knee_word word = {""};
    const char *format = ratio < 9.95 ? "%.2f" : ratio < 99.5 ? "%.1f" : "%.0f";
    if (isnan(ratio))
        knee_format(word.s, sizeof word.s, "-");
    else if (ratio > KNEE_HIGHEST_RATIO)
        knee_format(word.s, sizeof word.s, "over %d", KNEE_HIGHEST_RATIO);
    else
        knee_format(word.s, sizeof word.s, format, ratio);
    return word;
}

struct knee_word knee_size(double bytes)
{
    static const char *const suffix[] = {"", "K", "M", "G", "T"};
    struct knee_word word = {""};
    size_t i = 0;
    double value = bytes;
    while (i < 4 && value >= 1024 && fmod(value, 1024) == 0) {
        value /= 1024;
        i++;
    }
    if (value == floor(value) && value < 10000)
        knee_format(word.s, sizeof word.s, "%.0f%s", value, suffix[i]);
    else
        knee_number_human(word.s, sizeof word.s, bytes, KNEE_UNIT_BYTES);
    return word;
}

const char *knee_unit_word(enum knee_unit unit)
{
    return unit == KNEE_UNIT_SECONDS       ? "s"
           : unit == KNEE_UNIT_BYTES_PER_S ? "bytes/s"
           : unit == KNEE_UNIT_FRACTION    ? "share"
                                           : "factor";
}

#define EFFICIENCY(row) knee_surely((row)->efficiency, (row)->efficiency_sure, KNEE_UNIT_FRACTION).s
#define COUNT(value)    knee_human(value, KNEE_UNIT_COUNT).s
#define SECONDS(value)  knee_human(value, KNEE_UNIT_SECONDS).s
#define DOLLARS(value)  knee_human(value, KNEE_UNIT_DOLLARS).s

static void say_memory(const struct knee_prediction *p, struct knee_text *text)
{
    const struct knee_feasibility *m = &p->memory;
    if (m->fits)
        return;
    knee_text_printf(text,
                     "It does not fit unsharded: %s of weights, gradients and optimizer states, "
                     "%s a GPU. ",
                     knee_human(m->needed_bytes, KNEE_UNIT_BYTES).s,
                     knee_human(m->capacity_bytes, KNEE_UNIT_BYTES).s);
    if (!isnan(m->zero1_workers))
        knee_text_printf(text,
                         "Shard the states over %.0f or more (ZeRO-1), or everything over %.0f "
                         "(FSDP); ",
                         m->zero1_workers, m->zero3_workers);
    else
        knee_text_printf(text, "Shard everything over %.0f or more (FSDP, ZeRO-3); ",
                         m->zero3_workers);
    knee_text_puts(text, "knee plan finds the split. ");
}

struct knee_word knee_knee_word(const struct knee_knee *knee)
{
    struct knee_word word = {""};
    if (isnan(knee->sure.low) || knee->sure.low == knee->sure.high)
        return word;
    if (isnan(knee->sure.high))
        knee_format(word.s, sizeof word.s, " (%.0f or more)", knee->sure.low);
    else
        knee_format(word.s, sizeof word.s, " (%.0f to %.0f)", knee->sure.low, knee->sure.high);
    return word;
}

static struct knee_word knee_ratio_surely(const struct knee_row *row)
{
    struct knee_word word = knee_short(row->ratio), low = knee_short(row->ratio_sure.low);
    struct knee_word high = knee_short(row->ratio_sure.high);
    if (strcmp(low.s, high.s) != 0)
        knee_format(word.s, sizeof word.s, "%.40s (%.40s to %.40s)", knee_short(row->ratio).s,
                    low.s, high.s);
    return word;
}

static void say_knee(const struct knee_prediction *p, struct knee_text *text)
{
    const struct knee_knee *knee = &p->knee;
    double tolerance = p->job.tolerance;
    if (isnan(knee->tolerance_workers)) {
        knee_text_printf(text, "No knee up to %.0f workers: E(K) stays >= %s.", KNEE_SEARCH_MAX,
                         knee_percent(tolerance).s);
    } else if (knee->tolerance_workers == knee->limit_workers) {
        knee_text_printf(
            text,
            "The knee is at %.0f worker%s%s, where each has one example left: E(%.0f) = %s "
            ">= %s. More takes an axis that splits an example (knee plan).",
            knee->tolerance_workers, knee->tolerance_workers == 1 ? "" : "s",
            knee_knee_word(knee).s, knee->tolerance_workers,
            knee_percent(knee->tolerance_efficiency).s, knee_percent(tolerance).s);
    } else {
        /* As many decimals as tell the two sides of the tolerance apart. */
        int decimals = 1;
        while (decimals < 6 &&
               100 * (knee->tolerance_efficiency - knee->next_efficiency) < 2 * pow(10, -decimals))
            decimals++;
        knee_text_printf(
            text, "The knee is at %.0f worker%s%s: E(%.0f) = %.*f %% >= %g %% > %.*f %% = E(%.0f).",
            knee->tolerance_workers, knee->tolerance_workers == 1 ? "" : "s",
            knee_knee_word(knee).s, knee->tolerance_workers, decimals,
            100 * knee->tolerance_efficiency, 100 * tolerance, decimals,
            100 * knee->next_efficiency, knee->tolerance_workers + 1);
    }
    if (!isnan(knee->gamma_one_workers))
        knee_text_printf(text, " Communication equals compute (gamma = 1) at K = %.4g.",
                         knee->gamma_one_workers);
}

static void say_cause(const struct knee_prediction *p, struct knee_text *text)
{
    const struct knee_row *at = &p->at;
    const struct knee_verdict *verdict = &p->verdict;
    knee_text_printf(text, " At %.0f worker%s R = %s: %s exposed / %s compute. E(K) = %s",
                     at->workers, at->workers == 1 ? "" : "s", knee_ratio_surely(at).s,
                     SECONDS(knee_step_exposed_s(&at->step)),
                     SECONDS(at->step.label_s[KNEE_COMPUTE]), EFFICIENCY(at));
    switch (verdict->suspect) {
    case KNEE_SUSPECT_NONE:
        knee_text_printf(text, ": no bottleneck above %g %% of the step", 100 * KNEE_NO_BOTTLENECK);
        break;
    case KNEE_SUSPECT_LARGE_BATCH:
        knee_text_printf(text,
                         ": %s; the batch of %s is past the critical %s, so %s of the examples are "
                         "wasted (statistical wall)",
                         knee_suspect_name(verdict->suspect), COUNT(at->global_batch),
                         COUNT(p->job.critical_batch), knee_percent(verdict->suspect_share).s);
        break;
    default:
        knee_text_printf(text, ": %s takes %s of the %s step", knee_suspect_name(verdict->suspect),
                         knee_percent(verdict->suspect_share).s,
                         knee_surely(at->step.wall_s, at->step_sure, KNEE_UNIT_SECONDS).s);
    }
    knee_text_printf(text, "; rule for %s: %s.", verdict->regime->name, verdict->regime->rule);
}

static void say_lever(const struct knee_prediction *p, struct knee_text *text)
{
    const struct knee_verdict *verdict = &p->verdict;
    if (verdict->suspect == KNEE_SUSPECT_LARGE_BATCH)
        knee_text_printf(text, " A faster network buys nothing here.");
    if (verdict->lever == SIZE_MAX) {
        knee_text_printf(text, " No lever gains 1 %%.");
        return;
    }
    const struct knee_lever *lever = &p->levers[verdict->lever];
    knee_text_printf(text, " Lever: %s (%s): R %s -> %s, E %s -> %s, %s throughput", lever->name,
                     lever->change, knee_short(p->at.ratio).s, knee_short(lever->row.ratio).s,
                     knee_percent(p->at.efficiency).s, knee_percent(lever->row.efficiency).s,
                     knee_signed_percent(lever->gain).s);
    if (!isnan(lever->quality_gain))
        knee_text_printf(text, ", time to quality %s -> %s", SECONDS(p->at.time_to_quality_s),
                         SECONDS(lever->row.time_to_quality_s));
    knee_text_puts(text, ".");
}

static void say_cost(const struct knee_prediction *p, struct knee_text *text)
{
    const struct knee_cost *cost = &p->cost;
    if (!isnan(cost->stall_day) && cost->stall_day > 0)
        knee_text_printf(text, " The stall costs %s of %s a day.", DOLLARS(cost->stall_day),
                         DOLLARS(cost->day));
}

void knee_prediction_sentence(const struct knee_prediction *prediction, struct knee_text *text)
{
    say_memory(prediction, text);
    say_knee(prediction, text);
    say_cause(prediction, text);
    say_lever(prediction, text);
    say_cost(prediction, text);
}

void knee_solution_sentence(const struct knee_solution *s, struct knee_text *text)
{
    bool ratio = s->target_unit == KNEE_UNIT_FRACTION;
    struct knee_word wanted =
        ratio ? knee_percent(s->wanted) : knee_human(s->wanted, s->target_unit);
    struct knee_word now =
        ratio ? knee_percent(s->now_target) : knee_human(s->now_target, s->target_unit);
    struct knee_word best =
        ratio ? knee_percent(s->best_target) : knee_human(s->best_target, s->target_unit);
    char place[48] = "";
    if (!isnan(s->workers))
        knee_format(place, sizeof place, " at %.0f worker%s", s->workers,
                    s->workers == 1 ? "" : "s");
    if (s->any)
        knee_text_printf(text, "Every %s gives %s %s%s.", s->variable, s->target, wanted.s, place);
    else if (isnan(s->value))
        knee_text_printf(text, "No %s gives %s %s%s: the best, %s, gives %s.", s->variable,
                         s->target, wanted.s, place, knee_human(s->best_value, s->unit).s, best.s);
    else
        knee_text_printf(text, "%s %s %s gives %s %s%s.", s->variable,
                         s->at_most ? "<=" : ">=", knee_human(s->value, s->unit).s, s->target,
                         wanted.s, place);
    if (!isnan(s->now_target) && !isnan(s->now_value))
        knee_text_printf(text, " Now %s gives %s.", knee_human(s->now_value, s->unit).s, now.s);
}

void knee_note_sentence(const struct knee_note *note, struct knee_text *text)
{
    static const char *const fmt[KNEE_NOTES] = {
        [KNEE_NOTE_HALF_EXAMPLE] =
            "From %.0f workers on each has less than one example: use another axis there.",
        [KNEE_NOTE_OVERHIDDEN] = "From %.0f workers on --hidden hides more than there is compute "
                                 "to hide behind: a measured share does not carry that far.",
        [KNEE_NOTE_LATENCY] =
            "From %.0f workers on latency is most of the exchange: see --algorithm tree.",
        [KNEE_NOTE_MEASURED_AT] = "The measured times are taken to be for %.0f workers: "
                                  "--measured-workers says otherwise.",
        [KNEE_NOTE_NO_ENCODE] = "Compression levers leave out the encoding: it needs --params.",
        [KNEE_NOTE_SURE] = "In brackets: where 90 of 100 measured curves lie (docs/validate.md); "
                           "what you gave is taken at your word.",
        [KNEE_NOTE_MFU] = "%.0f %% of the peak is assumed, and published runs are far from it on "
                          "both sides: --mfu, --flops or a measured --compute-time makes the step "
                          "surer, and so does knee plan.",
    };
    if (isnan(note->value))
        knee_text_puts(text, fmt[note->kind]);
    else
        knee_text_printf(text, fmt[note->kind], note->value);
}

void knee_tax_sentence(const struct knee_tax *tax, struct knee_text *text)
{
    const struct knee_tax_job *job = &tax->job;
    const struct knee_axis_tax *worst = &tax->axes[tax->binding];
    if (tax->memory.total > tax->memory.capacity)
        knee_text_printf(text, "It does not fit: %s > %s of a GPU. ",
                         knee_memory_word(&tax->memory).s,
                         knee_human(tax->memory.capacity, KNEE_UNIT_BYTES).s);
    if (tax->bubble_binds)
        knee_text_printf(text,
                         "The pipeline bubble binds: (pp-1)/(M+pp-1) = %s of the step with "
                         "%.0f stages and %.0f micro-steps.",
                         knee_percent(tax->bubble).s, job->degree[KNEE_AXIS_PP],
                         job->micro_batches);
    else if (worst->exposed_s > 0)
        knee_text_printf(text,
                         "%s binds: %s over the %s takes %s and can hide behind %s, a tax of "
                         "%s on %s of compute.",
                         knee_axis_name(tax->binding), worst->collective,
                         worst->crosses_nodes ? "network" : "node's link", SECONDS(worst->comm_s),
                         SECONDS(worst->window_s), knee_percent(worst->tax).s,
                         SECONDS(tax->compute_s));
    else
        knee_text_puts(text, "No axis binds: everything hides behind compute.");
    if (job->degree[KNEE_AXIS_TP] > job->hw.gpus_per_node)
        knee_text_printf(text, " TP %.0f > %.0f GPUs per node: its all-reduces cross the network.",
                         job->degree[KNEE_AXIS_TP], job->hw.gpus_per_node);
    if (job->degree[KNEE_AXIS_FSDP] > 1)
        knee_text_printf(text, " Local tokens %.0f %s %.0f, where gathers take as long as compute.",
                         tax->tokens_per_gpu,
                         tax->tokens_per_gpu >= tax->local_tokens_min ? ">=" : "<",
                         ceil(tax->local_tokens_min));
    if (tax->textbook)
        knee_text_printf(text,
                         " MFU %s -> about %s; how sure that is nobody has measured: --gpu prices "
                         "it as knee plan does, with a low and a high end.",
                         knee_percent(job->mfu).s, knee_percent(tax->mfu).s);
    else
        knee_text_printf(text, " Step %s, MFU %s, %s of memory.",
                         knee_surely(tax->step_s, tax->step_sure, KNEE_UNIT_SECONDS).s,
                         knee_percent(tax->mfu).s, knee_memory_word(&tax->memory).s);
}

struct knee_word knee_safe(const char *name, size_t width)
{
    struct knee_word word = {""};
    size_t used = 0;
    while (*name && width-- > 0 && used + 5 < sizeof word.s) {
        size_t length = knee_utf8_length(name);
        bool odd =
            length == 0 || (unsigned char)*name < 0x20 || *name == 0x7f ||
            (length == 2 && (unsigned char)name[0] == 0xc2 && (unsigned char)name[1] < 0xa0) ||
            (length == 3 && (unsigned char)name[0] == 0xe2 && (unsigned char)name[1] == 0x80 &&
             (unsigned char)name[2] >= 0x8b && (unsigned char)name[2] <= 0xae);
        if (odd) /* control bytes, broken bytes, and characters that turn the direction of text */
            word.s[used++] = '?';
        else
            memcpy(word.s + used, name, length), used += length;
        name += length ? length : 1;
    }
    word.s[used] = '\0';
    return word;
}

/* "<" before a letter begins a tag, "](" an address; both can stand in a kernel's name. */
void knee_markdown_add(struct knee_text *text, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char next = i + 1 < length ? bytes[i + 1] : '\0';
        bool letter = (next | 0x20) >= 'a' && (next | 0x20) <= 'z';
        bool tag = bytes[i] == '<' && (letter || next == '/' || next == '!' || next == '?');
        if (tag)
            knee_text_puts(text, "&lt;");
        else
            knee_text_add(text, bytes + i, 1);
        if (bytes[i] == ']' && next == '(')
            knee_text_puts(text, "\\");
    }
}

/* Where the word at `start` ends. */
static const char *word_end(const char *start)
{
    while (*start && *start != ' ')
        start++;
    return start;
}

void knee_wrap(const char *sentence, int width, const char *indent, struct knee_text *text)
{
    size_t room = (size_t)width, used = 0, margin = strlen(indent);
    while (*sentence) {
        const char *end = word_end(sentence);
        size_t length = (size_t)(end - sentence);
        if (used > 0 && used + 1 + length > room) {
            knee_text_puts(text, "\n");
            used = 0;
        }
        knee_text_puts(text, used == 0 ? indent : " ");
        used += (used == 0 ? margin : 1) + length;
        knee_text_add(text, sentence, length);
        sentence = *end ? end + 1 : end;
    }
    knee_text_puts(text, "\n");
}

int knee_columns(enum knee_format format, const struct knee_style *style)
{
    return format == KNEE_MARKDOWN ? 1 << 20 : style->width > 20 ? style->width : 100;
}

void knee_say(struct knee_text *words, enum knee_format format, const struct knee_style *style,
              struct knee_text *text)
{
    struct knee_text shown = {.alloc = words->alloc};
    if (format == KNEE_MARKDOWN && words->data)
        knee_markdown_add(&shown, words->data, words->length);
    text->failed = text->failed || words->failed || shown.failed;
    if (words->data)
        knee_wrap(shown.data ? shown.data : words->data, knee_columns(format, style), "", text);
    knee_text_release(&shown);
    knee_text_release(words);
}
