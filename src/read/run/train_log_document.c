/* SPDX-License-Identifier: MIT */
/*
 * Files that are one JSON document: the trainer_state.json of Hugging Face's Trainer (a list of
 * what it logged, the run's seconds at the end), and Megatron's golden values (a table per
 * quantity, keyed by step).
 */
#include "base/json_values.h"
#include "read/run/train_log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- trainer_state.json ---- */

static void trainer_state(struct knee_train_reader *r)
{
    static const struct knee_train_key keys[] = {{"log_history[].step", TRAIN_STEP, 1},
                                                 {"log_history[].loss", TRAIN_LOSS, 1},
                                                 {"log_history[].eval_loss", TRAIN_EVAL, 1},
                                                 {"log_history[].train_runtime", TRAIN_RUNTIME, 1},
                                                 {NULL, TRAIN_NOTHING, 0}};
    struct knee_json_values v;
    struct train_raw raw;
    size_t element = 0;
    double steps = NAN;
    unsigned format = knee_train_format_named("Hugging Face metrics");
    knee_train_raw_init(&raw, format);
    knee_json_values_init(&v, r->document.data, r->document.length);
    while (knee_json_values_next(&v)) {
        if (strcmp(v.path, "global_step") == 0 && v.kind == KNEE_JSON_NUMBER)
            steps = v.number;
        const struct knee_train_key *key = knee_train_key_find(keys, v.path, strlen(v.path));
        if (!key || v.kind != KNEE_JSON_NUMBER)
            continue;
        if (v.elements != element && element > 0) {
            knee_train_row_add(r, &raw);
            knee_train_raw_init(&raw, format);
        }
        element = v.elements;
        raw.value[key->what] = v.number;
    }
    raw.value[TRAIN_RUN_STEPS] = steps;
    if (element > 0)
        knee_train_row_add(r, &raw);
}

/* ---- Results of a run: train_results.json, all_results.json ---- */

static void results(struct knee_train_reader *r)
{
    static const struct knee_train_key keys[] = {{"train_runtime", TRAIN_RUNTIME, 1},
                                                 {"train_steps_per_second", TRAIN_STEPS_PER_S, 1},
                                                 {"train_loss", TRAIN_LOSS, 1},
                                                 {"eval_loss", TRAIN_EVAL, 1},
                                                 {NULL, TRAIN_NOTHING, 0}};
    struct knee_json_values v;
    struct train_raw raw;
    knee_train_raw_init(&raw, knee_train_format_named("Hugging Face metrics"));
    knee_json_values_init(&v, r->document.data, r->document.length);
    while (knee_json_values_next(&v)) {
        const struct knee_train_key *key = knee_train_key_find(keys, v.path, strlen(v.path));
        if (key && v.kind == KNEE_JSON_NUMBER)
            raw.value[key->what] = v.number;
    }
    if (!isnan(raw.value[TRAIN_RUNTIME]))
        knee_train_row_add(r, &raw);
}

/* ---- Golden values ---- */

/* Older files have lists instead of tables: the first step and the distance stand beside them. */
static void golden_list(struct knee_train_reader *r, const char *name, enum train_what what)
{
    struct knee_json_values v;
    struct train_raw raw;
    double step = 0, interval = 1;
    size_t length = strlen(name);
    knee_json_values_init(&v, r->document.data, r->document.length);
    while (knee_json_values_next(&v)) {
        if (v.kind != KNEE_JSON_NUMBER || strncmp(v.path, name, length) != 0)
            continue;
        const char *field = v.path + length;
        if (strcmp(field, ".start_step") == 0)
            step = v.number;
        else if (strcmp(field, ".step_interval") == 0 && v.number >= 1)
            interval = v.number;
        else if (strcmp(field, ".values[]") == 0) {
            knee_train_raw_init(&raw, knee_train_format_named("JSON lines"));
            raw.value[TRAIN_STEP] = step;
            raw.value[what] = v.number;
            knee_train_row_add(r, &raw);
            step += interval;
        }
    }
}

static void golden(struct knee_train_reader *r, const char *table, enum train_what what)
{
    struct knee_json_values v;
    struct train_raw raw;
    size_t length = strlen(table);
    knee_json_values_init(&v, r->document.data, r->document.length);
    while (knee_json_values_next(&v)) {
        if (v.kind != KNEE_JSON_NUMBER || strncmp(v.path, table, length) != 0)
            continue;
        const char *p = v.path + length;
        knee_train_raw_init(&raw, knee_train_format_named("JSON lines"));
        raw.value[TRAIN_STEP] = knee_train_number(&p, v.path + strlen(v.path));
        raw.value[what] = v.number;
        knee_train_row_add(r, &raw);
    }
}

void knee_train_document_read(struct knee_train_reader *r)
{
    struct knee_slice text = {r->document.data, r->document.length};
    if (!text.at || r->document.failed)
        return;
    if (knee_slice_has(text, "\"log_history\""))
        trainer_state(r);
    else
        golden(r, "iteration-time.values.", TRAIN_SECONDS);
    if (r->raw_count == 0)
        golden_list(r, "iteration-time", TRAIN_SECONDS);
    if (r->raw_count == 0)
        results(r);
    if (r->raw_count == 0)
        golden(r, "lm loss.values.", TRAIN_LOSS);
    if (r->raw_count == 0)
        golden_list(r, "lm loss", TRAIN_LOSS);
    r->counts.used += r->raw_count;
}
