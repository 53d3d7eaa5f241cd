/* SPDX-License-Identifier: MIT */
/* Lists in files given in addition to traces: names of communication, and gradient norms. */
#include "ask/ask_trace.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/format.h"
#include "base/slice.h"
#include "base/spell.h"
#include "base/text.h"
#include "timeline/kinds.h"

#include <math.h>
#include <string.h>

enum { MOST_PATTERNS = 256, LARGEST = 1 << 20 };

/* ---- Names of communication: WORD KIND [OPERATION] ---- */

static bool kind_named(struct knee_slice word, enum knee_span_kind *kind)
{
    static const char *const words[] = {[KNEE_SPAN_COMPUTE] = "compute",
                                        [KNEE_SPAN_COMM] = "comm",
                                        [KNEE_SPAN_FUSED] = "fused",
                                        [KNEE_SPAN_COPY] = "copy"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (knee_slice_is(word, words[i])) {
            *kind = (enum knee_span_kind)i;
            return true;
        }
    return false;
}

/* A misspelt operation must not become an unknown one. */
static knee_status no_operation(struct knee_slice op, const char *where, struct knee_err *err)
{
    char word[64];
    knee_format(word, sizeof word, "%.*s", (int)(op.length < 40 ? op.length : 40), op.at);
    struct knee_nearest nearest = {.wanted = word};
    for (int row = KNEE_OP_BARRIER; row < KNEE_OPS; row++)
        knee_nearest_offer(&nearest, knee_op_name((enum knee_op)row));
    knee_fail(err, KNEE_INPUT, where, "there is no collective '%s'", word);
    if (nearest.name)
        knee_hint(err, "did you mean '%s'?", nearest.name);
    else
        knee_hint(err, "write all_reduce, broadcast, ...; or leave it out");
    return KNEE_INPUT;
}

/* One line, whose words are cut off by NULs in the list's own copy of the text. */
static knee_status take_pattern(struct knee_ask_patterns *list, struct knee_slice line,
                                const char *where, struct knee_err *err)
{
    struct knee_slice word = {0}, kind = {0}, op = {0};
    if (!knee_slice_word(&line, &word) || word.at[0] == '#')
        return KNEE_OK;
    bool has_kind = knee_slice_word(&line, &kind), has_op = knee_slice_word(&line, &op);
    if (list->count == MOST_PATTERNS)
        return knee_fail(err, KNEE_INPUT, where, "more than %d patterns", MOST_PATTERNS);
    struct knee_pattern *pattern = &list->rows[list->count];
    if (!has_kind || !kind_named(kind, &pattern->kind)) {
        int length = (int)(kind.length < 40 ? kind.length : 40);
        return knee_fail_hint(err, KNEE_INPUT, where, "write WORD and compute, comm, fused or copy",
                              "'%.*s' is not a kind of work", length, has_kind ? kind.at : "");
    }
    pattern->op = has_op ? knee_op_spelt(op.at, op.length) : KNEE_OP_UNKNOWN;
    if (has_op && pattern->op == KNEE_OP_UNKNOWN)
        return no_operation(op, where, err);
    char *end = list->text + (word.at - list->text) + word.length;
    *end = '\0';
    pattern->word = word.at;
    list->count++;
    return KNEE_OK;
}

void knee_ask_patterns_release(struct knee_ask_patterns *list)
{
    knee_resize(list->alloc, list->text, 0);
    knee_resize(list->alloc, list->rows, 0);
    *list = (struct knee_ask_patterns){.alloc = list->alloc};
}

static knee_status take_patterns(struct knee_ask_patterns *list, size_t length, const char *name,
                                 struct knee_err *err)
{
    struct knee_slice rest = {list->text, length}, line;
    knee_status status = KNEE_OK;
    char where[128];
    for (size_t number = 1; !status && knee_slice_line(&rest, &line); number++) {
        knee_format(where, sizeof where, "%.100s:%zu", name, number);
        status = take_pattern(list, line, where, err);
    }
    return status;
}

knee_status knee_push_patterns(struct knee_ask *ask, const char *name, struct knee_err *err)
{
    struct knee_ask_patterns *list = &knee_ask_pushed_of(ask)->patterns;
    struct knee_ask_bytes bytes = {.data = NULL};
    knee_ask_patterns_release(list);
    list->alloc = knee_ask_alloc(ask);
    if (!name)
        return KNEE_OK;
    knee_status status = knee_ask_read(ask, name, LARGEST, &bytes, err);
    if (status)
        return status;
    list->text = knee_resize(list->alloc, NULL, bytes.length + 1);
    list->rows = knee_resize(list->alloc, NULL, MOST_PATTERNS * sizeof *list->rows);
    if (list->text && list->rows) {
        memcpy(list->text, bytes.data, bytes.length);
        list->text[bytes.length] = '\0';
        status = take_patterns(list, bytes.length, name, err);
    } else {
        status = knee_fail(err, KNEE_SYSTEM, name, "out of memory");
    }
    knee_ask_done(&bytes);
    if (status)
        knee_ask_patterns_release(list);
    return status;
}

/* ---- Gradient norms: BATCH,SQUARED_NORM ---- */

struct line_sums {
    double n, x, y, xx, xy;
};

/* False: no two positive numbers. */
static bool take_norm(struct knee_slice line, struct line_sums *sums)
{
    char text[128];
    const char *end;
    knee_format(text, sizeof text, "%.*s", (int)(line.length < 120 ? line.length : 120), line.at);
    double batch = knee_decimal_parse(text, &end);
    if (end == text)
        return false;
    end += strspn(end, ", \t;");
    const char *second = end;
    double norm = knee_decimal_parse(second, &end);
    if (end == second || !(batch > 0) || !(norm > 0) || !isfinite(batch) || !isfinite(norm))
        return false;
    double x = 1 / batch;
    sums->n++, sums->x += x, sums->y += norm, sums->xx += x * x, sums->xy += x * norm;
    return true;
}

static bool is_heading(struct knee_slice line)
{
    for (size_t i = 0; i < line.length; i++)
        if (line.at[i] >= 'a' && line.at[i] <= 'z')
            return true;
    return false;
}

static knee_status add_norms(struct knee_slice text, const char *name, struct line_sums *sums,
                             struct knee_err *err)
{
    struct knee_slice line;
    for (size_t number = 1; knee_slice_line(&text, &line); number++) {
        line = knee_slice_trim(line);
        if (line.length == 0 || line.at[0] == '#' || (number == 1 && is_heading(line)))
            continue;
        if (!take_norm(line, sums)) {
            char where[128];
            knee_format(where, sizeof where, "%.100s:%zu", name, number);
            return knee_fail_hint(err, KNEE_INPUT, where, "for example 32,0.081",
                                  "not a batch and a squared norm");
        }
    }
    return KNEE_OK;
}

/* E|G_B|^2 = |G|^2 + tr(Sigma)/B: a straight line in 1/B; its slope over its height at 0 is the
 * noise scale (McCandlish et al. 2018, appendix A.1), by least squares over all lines. */
static knee_status scale_of(const struct line_sums *s, const char *name, double *scale,
                            struct knee_err *err)
{
    double spread = s->n * s->xx - s->x * s->x;
    if (s->n < 2 || !(spread > 1e-12 * s->n * s->xx))
        return knee_fail_hint(err, KNEE_INPUT, name,
                              "measure the gradient's squared norm at two batch sizes at least",
                              "fewer than two batch sizes");
    double slope = (s->n * s->xy - s->x * s->y) / spread, height = (s->y - slope * s->x) / s->n;
    if (!(slope > 0) || !(height > 0)) {
        knee_fail(err, KNEE_INPUT, name,
                  "the norms do not fall with the batch: no noise scale in them");
        knee_hint(err, "average over more steps");
        return KNEE_INPUT;
    }
    *scale = slope / height;
    return KNEE_OK;
}

knee_status knee_ask_noise(struct knee_ask *ask, const char *name, double *scale,
                           struct knee_err *err)
{
    struct knee_ask_bytes bytes = {.data = NULL};
    struct line_sums sums = {0};
    knee_status status = knee_ask_read(ask, name, LARGEST, &bytes, err);
    if (status)
        return status;
    status = add_norms((struct knee_slice){bytes.data, bytes.length}, name, &sums, err);
    knee_ask_done(&bytes);
    return status ? status : scale_of(&sums, name, scale, err);
}
