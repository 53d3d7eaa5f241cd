/* SPDX-License-Identifier: MIT */
/* What the lab found as text, JSON (schema knee.lab/1), CSV or Markdown. */
#include "out/show_lab.h"

#include "out/json.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>
#include <string.h>

static const char *compute_word(const struct knee_lab *lab)
{
    return lab->synthetic ? "compute (synthetic)" : "compute";
}

/* ---- Sentences ---- */

static void say_knee(const struct knee_lab *lab, struct knee_text *text)
{
    const struct knee_lab_row *last = &lab->rows[lab->row_count - 1];
    if (lab->row_count < 2)
        return;
    if (isnan(lab->measured.tolerance_workers) || lab->measured.tolerance_workers >= last->workers)
        knee_text_printf(text, "The knee lies beyond %.0f workers: E(%.0f) = %s >= %s",
                         last->workers, last->workers, knee_percent(last->efficiency).s,
                         knee_percent(lab->tolerance).s);
    else
        knee_text_printf(text,
                         "The knee is at %.0f workers: the last count of the sweep with E(K) >= %s",
                         lab->measured.tolerance_workers, knee_percent(lab->tolerance).s);
    knee_text_printf(text, "; predicted: %.0f. ", lab->predicted.tolerance_workers);
    if (!isnan(lab->measured.gamma_one_workers) || !isnan(lab->predicted.gamma_one_workers))
        knee_text_printf(text, "Communication equals compute (gamma = 1) at K = %s, predicted %s. ",
                         knee_short(lab->measured.gamma_one_workers).s,
                         knee_short(lab->predicted.gamma_one_workers).s);
    if (!isnan(lab->median_error))
        knee_text_printf(text, "Predicted against measured step: %s median, %s worst.",
                         knee_percent(lab->median_error).s, knee_percent(lab->worst_error).s);
}

static void say_set_up(const struct knee_lab *lab, struct knee_text *text)
{
    knee_text_printf(
        text, "%s, %s values exchanged as %s in %.0f bucket%s, %s%s; %s scaling, batch %.0f%s",
        lab->model, knee_human(lab->params, KNEE_UNIT_COUNT).s, lab->wire, lab->buckets,
        lab->buckets == 1 ? "" : "s", lab->sync,
        lab->overlap ? ", overlapping backward" : ", after backward", lab->weak ? "weak" : "strong",
        lab->batch, lab->weak ? " per worker" : "");
    if (lab->accumulate > 1)
        knee_text_printf(text, " in %.0f micro-steps", lab->accumulate);
    knee_text_printf(text, "; %s, %.0f steps; %d rank%s on %d host%s (%s)\n", lab->optimizer,
                     lab->steps, lab->ranks, lab->ranks == 1 ? "" : "s", lab->hosts,
                     lab->hosts == 1 ? "" : "s", lab->runtime);
    if (!isnan(lab->latency_s))
        knee_text_printf(text, "measured before the run: alpha %s, %s each way%s\n",
                         knee_human(lab->latency_s, KNEE_UNIT_SECONDS).s,
                         knee_human(lab->bandwidth_bytes_per_s, KNEE_UNIT_BYTES_PER_S).s,
                         lab->paced ? " (held back to stand in for a slow link)" : "");
    if (lab->synthetic)
        knee_text_puts(text, "SYNTHETIC COMPUTE: timed waits instead of arithmetic; nothing is "
                             "learned, and there is no loss\n");
}

/* ---- Tables ---- */

static void rows_table(const struct knee_lab *lab, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    const char *const headers[] = {"K",         "step",    "predicted", "error", compute_word(lab),
                                   "comm",      "exposed", "R",         "gamma", "E(K)",
                                   "predicted", "sent",    "loss"};
    struct knee_table table;
    knee_table_init(&table, "rrrrrrrrrrrrr", text->alloc);
    KNEE_HEADS(&table, headers);
    for (size_t i = 0; i < lab->row_count; i++) {
        const struct knee_lab_row *row = &lab->rows[i];
        knee_table_cell(&table, "%.0f", row->workers);
        knee_table_number(&table, row->measured_step_s, KNEE_UNIT_SECONDS);
        knee_table_number(&table, row->predicted_step_s, KNEE_UNIT_SECONDS);
        knee_table_cell(&table, "%s",
                        knee_signed_percent(row->predicted_step_s / row->measured_step_s - 1).s);
        knee_table_number(&table, row->compute_s, KNEE_UNIT_SECONDS);
        knee_table_number(&table, row->comm_s, KNEE_UNIT_SECONDS);
        knee_table_number(&table, row->exposed_comm_s, KNEE_UNIT_SECONDS);
        knee_table_cell(&table, "%s", knee_short(row->ratio).s);
        knee_table_cell(&table, "%s", knee_short(row->gamma).s);
        knee_table_cell(&table, "%s", knee_percent(row->efficiency).s);
        knee_table_cell(&table, "%s", knee_percent(row->predicted_efficiency).s);
        knee_table_number(&table, row->sent_bytes, KNEE_UNIT_BYTES);
        if (isnan(row->loss))
            knee_table_cell(&table, "-");
        else
            knee_table_cell(&table, "%.4f", row->loss);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void hunts_table(const struct knee_lab *lab, enum knee_format format,
                        const struct knee_style *style, struct knee_text *text)
{
    static const char *const headers[] = {"induced", "seed", "how", "named", "moved", "evidence"};
    struct knee_table table;
    knee_table_init(&table, "lrllll", text->alloc);
    KNEE_HEADS(&table, headers);
    for (size_t i = 0; i < lab->hunt_count; i++) {
        const struct knee_lab_hunt *hunt = &lab->hunts[i];
        bool right = strcmp(hunt->induced, hunt->named) == 0;
        knee_table_cell(&table, "%s", hunt->induced);
        knee_table_cell(&table, "%.0f", (double)hunt->seed);
        knee_table_cell(&table, "%s", hunt->how);
        knee_table_cell(&table, "%s%s", hunt->named, right ? "" : " (WRONG)");
        if (isnan(hunt->moved_after))
            knee_table_cell(&table, "-");
        else
            knee_table_cell(&table, "%s -> %s", knee_percent(hunt->moved_before).s,
                            knee_percent(hunt->moved_after).s);
        knee_table_cell(&table, "%s", hunt->evidence);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void pushes_table(const struct knee_lab *lab, const char *part, enum knee_format format,
                         const struct knee_style *style, struct knee_text *text)
{
    static const char *const headers[] = {"lever",      "change",   "K",         "step",
                                          "predicted",  "knee",     "predicted", "sent",
                                          "by formula", "examples", "loss"};
    struct knee_table table;
    knee_table_init(&table, "llrrrrrrrrr", text->alloc);
    KNEE_HEADS(&table, headers);
    for (size_t i = 0; i < lab->push_count; i++) {
        const struct knee_lab_push *push = &lab->pushes[i];
        if (strcmp(push->part, part) != 0)
            continue;
        knee_table_cell(&table, "%s", push->lever);
        knee_table_cell(&table, "%s", push->change);
        knee_table_cell(&table, "%.0f", push->workers);
        knee_table_number(&table, push->step_s, KNEE_UNIT_SECONDS);
        knee_table_number(&table, push->predicted_step_s, KNEE_UNIT_SECONDS);
        knee_table_number(&table, push->knee_workers, KNEE_UNIT_COUNT);
        knee_table_number(&table, push->predicted_knee_workers, KNEE_UNIT_COUNT);
        knee_table_number(&table, push->sent_bytes, KNEE_UNIT_BYTES);
        knee_table_number(&table, push->model_bytes, KNEE_UNIT_BYTES);
        knee_table_number(&table, push->examples, KNEE_UNIT_COUNT);
        knee_table_cell(&table, "%.4f", push->loss);
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void say_hunt(const struct knee_lab *lab, struct knee_text *text)
{
    size_t right = 0;
    for (size_t i = 0; i < lab->hunt_count; i++)
        right += strcmp(lab->hunts[i].induced, lab->hunts[i].named) == 0;
    knee_text_printf(
        text, "%zu of %zu runs named as induced%s. ", right, lab->hunt_count,
        lab->synthetic ? " (synthetic compute, but for the batch sizes, which were trained)" : "");
    if (!isnan(lab->critical_batch))
        knee_text_printf(text,
                         "The critical batch, measured as the gradient noise scale: %s examples.",
                         knee_human(lab->critical_batch, KNEE_UNIT_COUNT).s);
}

static void say(const struct knee_lab *lab, struct knee_text *text)
{
    if (lab->hunt_count)
        say_hunt(lab, text);
    else if (lab->row_count)
        say_knee(lab, text);
}

static void write_text(const struct knee_lab *lab, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    struct knee_text sentence = {.alloc = text->alloc};
    say(lab, &sentence);
    knee_say(&sentence, format, style, text);
    if (lab->row_count > 1 || lab->hunt_count)
        knee_text_puts(text, "\n");
    say_set_up(lab, text);
    knee_text_puts(text, "\n");
    if (lab->row_count)
        rows_table(lab, format, style, text);
    if (lab->hunt_count)
        hunts_table(lab, format, style, text);
    if (lab->push_count) {
        knee_text_puts(text, "\nLevers on a set-up bound by communication; loss after the same "
                             "examples, trained for real\n");
        pushes_table(lab, "communication", format, style, text);
        knee_text_printf(text, "\nPast the critical batch (%s examples, measured)\n",
                         knee_human(lab->critical_batch, KNEE_UNIT_COUNT).s);
        pushes_table(lab, "statistics", format, style, text);
    }
    for (size_t i = 0; i < lab->note_count; i++)
        knee_text_printf(text, "%s  %s\n", i == 0 ? "\n" : "", lab->notes[i]);
}

/* ---- CSV and JSON ---- */

static void write_csv(const struct knee_lab *lab, const struct knee_style *style,
                      struct knee_text *text)
{
    static const char *const headers[] = {"workers",
                                          "measured_step_s",
                                          "predicted_step_s",
                                          "compute_s",
                                          "comm_s",
                                          "exposed_comm_s",
                                          "ratio",
                                          "gamma",
                                          "efficiency",
                                          "predicted_efficiency",
                                          "loss",
                                          "sent_bytes",
                                          "model_bytes",
                                          "synthetic_compute"};
    struct knee_table table;
    knee_table_init(&table, "rrrrrrrrrrrrrl", text->alloc);
    KNEE_HEADS(&table, headers);
    for (size_t i = 0; i < lab->row_count; i++) {
        const struct knee_lab_row *row = &lab->rows[i];
        const double values[] = {row->workers,
                                 row->measured_step_s,
                                 row->predicted_step_s,
                                 row->compute_s,
                                 row->comm_s,
                                 row->exposed_comm_s,
                                 row->ratio,
                                 row->gamma,
                                 row->efficiency,
                                 row->predicted_efficiency,
                                 row->loss,
                                 row->sent_bytes,
                                 row->model_bytes};
        for (size_t v = 0; v < sizeof values / sizeof *values; v++)
            knee_table_exact(&table, values[v]);
        knee_table_cell(&table, "%s", lab->synthetic ? "true" : "false");
    }
    knee_table_write(&table, KNEE_CSV, style, text);
    knee_table_release(&table);
}

static void json_row(struct knee_json *json, const struct knee_lab_row *row)
{
    knee_json_open_flat(json, NULL, '{');
    knee_json_number(json, "workers", row->workers);
    knee_json_number(json, "measured_step_s", row->measured_step_s);
    knee_json_number(json, "predicted_step_s", row->predicted_step_s);
    knee_json_number(json, "compute_s", row->compute_s);
    knee_json_number(json, "comm_s", row->comm_s);
    knee_json_number(json, "exposed_comm_s", row->exposed_comm_s);
    knee_json_number(json, "ratio", row->ratio);
    knee_json_number(json, "gamma", row->gamma);
    knee_json_number(json, "efficiency", row->efficiency);
    knee_json_number(json, "predicted_efficiency", row->predicted_efficiency);
    knee_json_number(json, "loss", row->loss);
    knee_json_number(json, "sent_bytes", row->sent_bytes);
    knee_json_number(json, "model_bytes", row->model_bytes);
    knee_json_close(json, '}');
}

static void json_knee(struct knee_json *json, const char *key, const struct knee_lab_knee *knee)
{
    knee_json_open_flat(json, key, '{');
    knee_json_number(json, "tolerance_workers", knee->tolerance_workers);
    knee_json_number(json, "gamma_one_workers", knee->gamma_one_workers);
    knee_json_close(json, '}');
}

static void json_hunt(struct knee_json *json, const struct knee_lab_hunt *hunt)
{
    knee_json_open_flat(json, NULL, '{');
    knee_json_string(json, "induced", hunt->induced);
    knee_json_string(json, "named", hunt->named);
    knee_json_string(json, "evidence", hunt->evidence);
    knee_json_whole(json, "seed", (int64_t)hunt->seed);
    knee_json_string(json, "how", hunt->how);
    knee_json_number(json, "share_before", hunt->moved_before);
    knee_json_number(json, "share_after", hunt->moved_after);
    knee_json_close(json, '}');
}

static void json_push(struct knee_json *json, const struct knee_lab_push *push)
{
    knee_json_open_flat(json, NULL, '{');
    knee_json_string(json, "part", push->part);
    knee_json_string(json, "lever", push->lever);
    knee_json_string(json, "change", push->change);
    knee_json_number(json, "workers", push->workers);
    knee_json_number(json, "measured_step_s", push->step_s);
    knee_json_number(json, "predicted_step_s", push->predicted_step_s);
    knee_json_number(json, "measured_knee_workers", push->knee_workers);
    knee_json_number(json, "predicted_knee_workers", push->predicted_knee_workers);
    knee_json_number(json, "sent_bytes", push->sent_bytes);
    knee_json_number(json, "model_bytes", push->model_bytes);
    knee_json_number(json, "examples", push->examples);
    knee_json_number(json, "loss", push->loss);
    knee_json_close(json, '}');
}

static void json_set_up(struct knee_json *json, const struct knee_lab *lab)
{
    knee_json_bool(json, "synthetic_compute", lab->synthetic);
    knee_json_bool(json, "paced", lab->paced);
    knee_json_string(json, "scaling", lab->weak ? "weak" : "strong");
    knee_json_string(json, "runtime", lab->runtime);
    knee_json_whole(json, "ranks", lab->ranks);
    knee_json_whole(json, "hosts", lab->hosts);
    knee_json_string(json, "model", lab->model);
    knee_json_string(json, "wire", lab->wire);
    knee_json_string(json, "sync", lab->sync);
    knee_json_string(json, "optimizer", lab->optimizer);
    knee_json_number(json, "params", lab->params);
    knee_json_number(json, "batch", lab->batch);
    knee_json_number(json, "accumulate", lab->accumulate);
    knee_json_number(json, "local_steps", lab->local_steps);
    knee_json_number(json, "steps", lab->steps);
    knee_json_number(json, "buckets", lab->buckets);
    knee_json_bool(json, "overlap", lab->overlap);
    knee_json_number(json, "latency_s", lab->latency_s);
    knee_json_number(json, "bandwidth_bytes_per_s", lab->bandwidth_bytes_per_s);
    knee_json_number(json, "critical_batch", lab->critical_batch);
}

static void write_json(const struct knee_lab *lab, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.lab/1");
    struct knee_text sentence = {.alloc = text->alloc};
    say(lab, &sentence);
    knee_json_words(&json, "sentence", &sentence);
    json_set_up(&json, lab);
    knee_json_open(&json, "rows", '[');
    for (size_t i = 0; i < lab->row_count; i++)
        json_row(&json, &lab->rows[i]);
    knee_json_close(&json, ']');
    knee_json_open(&json, "knee", '{');
    knee_json_number(&json, "tolerance", lab->tolerance);
    json_knee(&json, "measured", &lab->measured);
    json_knee(&json, "predicted", &lab->predicted);
    knee_json_number(&json, "median_error", lab->median_error);
    knee_json_number(&json, "worst_error", lab->worst_error);
    knee_json_close(&json, '}');
    knee_json_open(&json, "hunt", '[');
    for (size_t i = 0; i < lab->hunt_count; i++)
        json_hunt(&json, &lab->hunts[i]);
    knee_json_close(&json, ']');
    knee_json_open(&json, "push", '[');
    for (size_t i = 0; i < lab->push_count; i++)
        json_push(&json, &lab->pushes[i]);
    knee_json_close(&json, ']');
    knee_json_open(&json, "notes", '[');
    for (size_t i = 0; i < lab->note_count; i++)
        knee_json_string(&json, NULL, lab->notes[i]);
    knee_json_close(&json, ']');
    knee_json_close(&json, '}');
}

void knee_write_lab(const struct knee_lab *lab, enum knee_format format,
                    const struct knee_style *style, struct knee_text *text)
{
    if (format == KNEE_JSON)
        write_json(lab, text);
    else if (format == KNEE_CSV)
        write_csv(lab, style, text);
    else
        write_text(lab, format, style, text);
}
