/* SPDX-License-Identifier: MIT */
/*
 * Does a job still make progress at the end of its text? Steps, batches and epochs are counted in
 * many forms: "step 11", "[40/124]", "| 27/41 [05:56<03:01", "Epoch[17] Batch [20]",
 * "[epoch: 4/200, iter: 300/489]". An error before the last of them was caught, or a launcher
 * started the ranks again. Several ranks that print the same step are one step: the numbers must
 * differ.
 */
#include "base/fold.h"
#include "read/hang/job_lines.h"

enum { HEAD = 300, DISTINCT = 3 };

int64_t knee_job_step_of(struct knee_slice line)
{
    static const char *const words[] = {"step", "iteration", "iter"};
    struct knee_job_line one = knee_job_line_of(line);
    char head[16];
    knee_slice_copy(one.text, head, sizeof head);
    for (size_t i = 0; head[i]; i++)
        head[i] = knee_lower(head[i]);
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        if (strncmp(head, words[w], strlen(words[w])) == 0)
            return knee_job_number(knee_slice_from(one.text, strlen(words[w])), "");
    return -1;
}

/* "40/124", as many digits as it has; 0: not that. */
static size_t count_at(struct knee_slice text, uint64_t *value)
{
    size_t i = 0;
    for (*value = 0; i < text.length && i < 12 && knee_is_digit(text.at[i]); i++)
        *value = *value * 10 + (uint64_t)(text.at[i] - '0');
    return i && i + 1 < text.length && text.at[i] == '/' && knee_is_digit(text.at[i + 1]) ? i : 0;
}

/* "[40/124]", and a bar's "27/41 [05:56<03:01"; not the date of "[12/25 15:48:20]". */
static bool has_count(struct knee_slice line, uint64_t *value)
{
    for (size_t i = 0; i + 4 < line.length && i < HEAD; i++) {
        struct knee_slice rest = knee_slice_from(line, i + 1);
        size_t digits = strchr("[| ", line.at[i]) ? count_at(rest, value) : 0, end = digits + 1;
        while (digits && end < rest.length && knee_is_digit(rest.at[end]))
            end++;
        struct knee_slice next = knee_slice_from(rest, end);
        if (digits &&
            (line.at[i] == '[' ? knee_slice_starts(next, "]") || knee_slice_starts(next, ",")
                               : knee_slice_starts(next, " [")))
            return true;
    }
    return false;
}

/* "Epoch[17] Batch [0-1100]", "step=74": a counter's word and its number, however they are joined.
 * All such numbers of the line go into `value`. */
static bool has_counter(struct knee_slice line, uint64_t *value)
{
    static const char *const words[] = {"step", "iteration", "iters", "iter", "epoch", "batch"};
    bool found = false;
    for (size_t i = 0; i + 5 < line.length && i < HEAD; i++) {
        if ((i && knee_is_word_char(line.at[i - 1])) || !strchr("sSiIeEbB", line.at[i]))
            continue;
        struct knee_slice rest = knee_slice_from(line, i);
        for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
            size_t at = 0;
            while (words[w][at] && at < rest.length && knee_lower(rest.at[at]) == words[w][at])
                at++;
            if (words[w][at])
                continue;
            for (int gap = 0; gap < 6 && at < rest.length && strchr(" =:[(#", rest.at[at]); gap++)
                at++;
            int64_t number = at < rest.length && knee_is_digit(rest.at[at])
                                 ? knee_job_number(knee_slice_from(rest, at), "")
                                 : -1;
            *value = number >= 0 ? *value * 1000003u + (uint64_t)number : *value;
            found = found || number >= 0;
            break;
        }
    }
    return found;
}

/* Some number of the progress that a line shows. What reports an error or a finished run's summary
 * shows none. */
static bool progress_of(struct knee_slice line, uint64_t *value)
{
    static const char *const others[] = {"rror", "xception", "File \"", "wandb:"};
    struct knee_slice text = knee_slice_trim(line);
    int64_t step = knee_job_step_of(line);
    *value = step >= 0 ? (uint64_t)step : 0;
    if (step >= 0)
        return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (knee_slice_has(text, others[i]))
            return false;
    return has_count(text, value) || has_counter(text, value);
}

uint32_t knee_job_goes_on_until(struct knee_slice text, uint32_t last)
{
    uint64_t seen = 0, before = 0, value;
    for (uint32_t i = 0; i < KNEE_JOB_TAIL && text.length && i < last; i++) {
        struct knee_slice line = knee_job_line_above(&text);
        if (knee_slice_starts(knee_slice_trim(line), "{'loss'"))
            seen++; /* it has no number, and one rank prints it */
        else if (progress_of(line, &value) && (!seen || value != before)) {
            seen++;
            before = value;
        }
        if (seen == DISTINCT)
            return last - i;
    }
    return 0;
}
