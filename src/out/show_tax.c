/* SPDX-License-Identifier: MIT */
/* The taxes of the axes as text, JSON (schema knee.tax/1), CSV or Markdown. */
#include "out/inputs.h"
#include "out/plain_words.h"
#include "out/show_plan.h"
#include "out/table.h"
#include "out/words.h"

#include <math.h>

static const char *link_of(const struct knee_axis_tax *axis)
{
    return axis->crosses_nodes ? "network" : "node";
}

static bool binds(const struct knee_tax *tax, const struct knee_axis_tax *axis)
{
    return !tax->bubble_binds && axis->axis == tax->binding && axis->exposed_s > 0;
}

static void axes_table(const struct knee_tax *tax, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    static const char *const headers[] = {"axis", "degree", "collective", "buffer",  "calls",
                                          "link", "t_comm", "window",     "exposed", "tax"};
    struct knee_table table;
    knee_table_init(&table, "lrlrrlrrrr", text->alloc);
    KNEE_HEADS(&table, headers);
    for (int i = 0; i < KNEE_AXES; i++) {
        const struct knee_axis_tax *axis = &tax->axes[i];
        bool used = axis->degree > 1;
        knee_table_cell(&table, "%s%s", knee_axis_name(axis->axis), binds(tax, axis) ? " <" : "");
        knee_table_cell(&table, "%.0f", axis->degree);
        knee_table_cell(&table, "%s", used ? axis->collective : "-");
        knee_table_number(&table, used ? axis->buffer_bytes : NAN, KNEE_UNIT_BYTES);
        knee_table_number(&table, used ? axis->calls : NAN, KNEE_UNIT_COUNT);
        knee_table_cell(&table, "%s", used ? link_of(axis) : "-");
        knee_table_number(&table, used ? axis->comm_s : NAN, KNEE_UNIT_SECONDS);
        knee_table_number(&table, used ? axis->window_s : NAN, KNEE_UNIT_SECONDS);
        knee_table_number(&table, used ? axis->exposed_s : NAN, KNEE_UNIT_SECONDS);
        knee_table_cell(&table, "%s", used ? knee_percent(axis->tax).s : "-");
    }
    knee_table_write(&table, format, style, text);
    knee_table_release(&table);
}

static void summary(const struct knee_tax *tax, struct knee_text *text)
{
    knee_text_printf(text, "  %s parameters on %.0f GPUs, %s on each; %s tokens per micro-step\n",
                     knee_human(tax->params, KNEE_UNIT_COUNT).s, tax->gpus,
                     knee_human(tax->params_per_gpu, KNEE_UNIT_COUNT).s,
                     knee_human(tax->tokens_per_gpu, KNEE_UNIT_COUNT).s);
    knee_text_printf(text, "  compute %s, step %s; bubble (pp-1)/(M+pp-1) = %s; MFU about %s\n",
                     knee_human(tax->compute_s, KNEE_UNIT_SECONDS).s,
                     knee_surely(tax->step_s, tax->step_sure, KNEE_UNIT_SECONDS).s,
                     knee_percent(tax->bubble).s, knee_percent(tax->mfu).s);
    knee_text_printf(text,
                     "  gathers hide when local tokens >= peak MFU / BW = %.0f over the network\n",
                     ceil(tax->local_tokens_min));
    knee_text_printf(
        text,
        "  TP tax at the peak, per rank added: peak / (3 BW h) = %s on the node's link, "
        "%s on the network; tp ranks pay (tp-1) times that forward\n",
        knee_percent(tax->tp_tax_in).s, knee_percent(tax->tp_tax_out).s);
}

static void write_text(const struct knee_tax *tax, enum knee_format format,
                       const struct knee_style *style, struct knee_text *text)
{
    struct knee_text sentence = {.alloc = text->alloc};
    struct knee_plain plain = knee_plain_empty(text->alloc);
    knee_tax_plain(tax, &plain);
    knee_say_plain(&plain, format, style, text);
    knee_tax_sentence(tax, &sentence);
    knee_say(&sentence, format, style, text);
    knee_text_puts(text, "\n");
    axes_table(tax, format, style, text);
    knee_text_puts(text, "\n");
    summary(tax, text);
    if (style->brief)
        return;
    knee_text_puts(text, "\n");
    knee_inputs_write(&knee_tax_keys, &tax->job, format, style, text);
}

static void write_csv(const struct knee_tax *tax, const struct knee_style *style,
                      struct knee_text *text)
{
    static const char *const headers[] = {"axis",      "degree", "collective", "buffer_bytes",
                                          "calls",     "link",   "comm_s",     "window_s",
                                          "exposed_s", "tax",    "binds"};
    struct knee_table table;
    knee_table_init(&table, "lrlrrlrrrrl", text->alloc);
    KNEE_HEADS(&table, headers);
    for (int i = 0; i < KNEE_AXES; i++) {
        const struct knee_axis_tax *axis = &tax->axes[i];
        knee_table_cell(&table, "%s", knee_axis_name(axis->axis));
        knee_table_exact(&table, axis->degree);
        knee_table_cell(&table, "%s", axis->collective);
        knee_table_exact(&table, axis->buffer_bytes);
        knee_table_exact(&table, axis->calls);
        knee_table_cell(&table, "%s", link_of(axis));
        knee_table_exact(&table, axis->comm_s);
        knee_table_exact(&table, axis->window_s);
        knee_table_exact(&table, axis->exposed_s);
        knee_table_exact(&table, axis->tax);
        knee_table_cell(&table, "%s", binds(tax, axis) ? "true" : "false");
    }
    knee_table_write(&table, KNEE_CSV, style, text);
    knee_table_release(&table);
}

static void json_axis(struct knee_json *json, const struct knee_tax *tax,
                      const struct knee_axis_tax *axis)
{
    knee_json_open_flat(json, NULL, '{');
    knee_json_string(json, "axis", knee_axis_name(axis->axis));
    knee_json_number(json, "degree", axis->degree);
    knee_json_string(json, "collective", axis->collective);
    knee_json_number(json, "buffer_bytes", axis->buffer_bytes);
    knee_json_number(json, "calls", axis->calls);
    knee_json_string(json, "link", link_of(axis));
    knee_json_number(json, "comm_s", axis->comm_s);
    knee_json_number(json, "window_s", axis->window_s);
    knee_json_number(json, "exposed_s", axis->exposed_s);
    knee_json_number(json, "tax", axis->tax);
    knee_json_bool(json, "binds", binds(tax, axis));
    knee_json_close(json, '}');
}

static void write_json(const struct knee_tax *tax, struct knee_text *text)
{
    struct knee_json json = {.text = text};
    struct knee_plain plain = knee_plain_empty(text->alloc);
    struct knee_text sentence = {.alloc = text->alloc};
    knee_tax_sentence(tax, &sentence);
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "schema", "knee.tax/1");
    knee_json_open(&json, "verdict", '{');
    knee_json_words(&json, "sentence", &sentence);
    knee_tax_plain(tax, &plain);
    knee_json_plain(&json, &plain);
    knee_json_string(&json, "binding",
                     tax->bubble_binds                       ? "bubble"
                     : tax->axes[tax->binding].exposed_s > 0 ? knee_axis_name(tax->binding)
                                                             : "none");
    knee_json_close(&json, '}');
    knee_json_open(&json, "axes", '[');
    for (int i = 0; i < KNEE_AXES; i++)
        json_axis(&json, tax, &tax->axes[i]);
    knee_json_close(&json, ']');
    knee_json_open(&json, "thresholds", '{');
    knee_json_number(&json, "local_tokens_min", tax->local_tokens_min);
    knee_json_number(&json, "local_tokens", tax->tokens_per_gpu);
    knee_json_number(&json, "tp_tax_node", tax->tp_tax_in);
    knee_json_number(&json, "tp_tax_network", tax->tp_tax_out);
    knee_json_close(&json, '}');
    knee_json_number(&json, "params", tax->params);
    knee_json_number(&json, "params_per_gpu", tax->params_per_gpu);
    knee_json_number(&json, "gpus", tax->gpus);
    knee_json_number(&json, "compute_s", tax->compute_s);
    knee_json_number(&json, "bubble", tax->bubble);
    knee_json_sure(&json, "step_s", tax->step_s, tax->step_sure);
    knee_json_number(&json, "mfu", tax->mfu);
    if (tax->memory.total > 0) {
        knee_memory_json(&json, &tax->memory);
        knee_json_bool(&json, "fits", tax->memory.total <= tax->memory.capacity);
    }
    knee_inputs_json(&knee_tax_keys, &tax->job, &json);
    knee_json_close(&json, '}');
}

void knee_write_tax(const struct knee_tax *tax, enum knee_format format,
                    const struct knee_style *style, struct knee_text *text)
{
    if (format == KNEE_JSON)
        write_json(tax, text);
    else if (format == KNEE_CSV)
        write_csv(tax, style, text);
    else
        write_text(tax, format, style, text);
}
