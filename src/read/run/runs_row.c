/* SPDX-License-Identifier: MIT */
/* Words of a row of a table of runs: notes, reasons to skip it, and the GPU. */
#include "read/run/runs_row.h"

#include "base/decimal.h"
#include "base/fold.h"
#include "base/format.h"
#include "base/keys.h"
#include "cluster/gpu_words.h"
#include "cluster/presets.h"

#include <math.h>
#include <string.h>

#define GB 1e9

void knee_run_lower(char *text)
{
    for (; *text; text++)
        *text = knee_lower(*text);
}

void knee_run_note(char out[KNEE_RUN_TEXT], const char *what)
{
    size_t used = strlen(out);
    knee_format(out + used, KNEE_RUN_TEXT - used, "%s%s", used ? ", " : "", what);
}

void knee_run_skip(struct knee_run_row *row, const char *fmt, const char *what)
{
    if (!row->run->skipped[0])
        knee_format(row->run->skipped, KNEE_RUN_TEXT, fmt, what);
}

/* ---- GPU ---- */

/* The number that stands before `unit` in a name like H100-96GB-HBM2e-500W; NaN: none does. */
static double number_before(const char *text, const char *unit)
{
    for (const char *at = text; (at = strstr(at, unit)); at++) {
        const char *start = at;
        while (start > text && start[-1] >= '0' && start[-1] <= '9')
            start--;
        bool ends = !((at[strlen(unit)] >= 'a' && at[strlen(unit)] <= 'z'));
        if (start < at && ends)
            return knee_decimal_parse(start, NULL);
    }
    return NAN;
}

/* Tables give raw link rates; what collectives achieve of them is a matter of the kind of link. */
static void achieve(struct knee_hardware *hw, const struct knee_gpu *gpu)
{
    const struct knee_cluster_preset *usual = knee_cluster_preset_named(gpu->cluster);
    hw->node_bandwidth_bytes_per_s *= knee_link_named(usual->node_link)->achieved;
    hw->bandwidth_bytes_per_s *= knee_link_named(usual->net_link)->achieved;
    if (!isnan(hw->bandwidth_bytes_per_s) || !isnan(hw->node_bandwidth_bytes_per_s))
        knee_cluster_from_preset(usual, &hw->cluster);
}

const char *knee_run_gpu(struct knee_run_row *row)
{
    struct knee_platform *platform = &row->run->platform;
    char text[KNEE_CSV_TEXT];
    if (!row->word[GPU][0] && row->gpu)
        knee_format(row->word[GPU], sizeof row->word[GPU], "%s", row->gpu);
    knee_format(text, sizeof text, "%s", row->word[GPU]);
    knee_run_lower(text);
    const struct knee_gpu *gpu = knee_gpu_in(text);
    if (!gpu) {
        knee_run_skip(row, *text ? "there are no constants for %.60s" : "the GPU is not named",
                      row->word[GPU]);
        return "";
    }
    platform->hw.gpu = knee_choice_find(&knee_gpu_names, gpu->name, "", NULL);
    platform->power_cap_w = number_before(text, "w");
    double size = number_before(text, "gb");
    platform->memory_bytes = size * GB;
    if (strcmp(gpu->name, "h100") == 0 && strstr(text, "hbm2e"))
        platform->hw.memory_bytes_per_s = 2.4e12; /* the 96 GB part of cloud providers */
    achieve(&platform->hw, gpu);
    return gpu->name;
}
