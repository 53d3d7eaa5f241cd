/* SPDX-License-Identifier: MIT */
/* rocm-smi --showallinfo --json: a card is an object of strings. */
#include "read/host/host_read.h"

#include "base/format.h"
#include "base/json_values.h"

#include <string.h>

static const struct {
    const char *word, *key;
} names[] = {
    {"Card series", "gpu.name"},
    {"Card Series", "gpu.name"},
    {"VBIOS version", "gpu.vbios"},
    {"PCIe Replay Count", "gpu.pcie_replays"},
    {"GPU use (%)", "gpu.util"},
    {"Max Graphics Package Power (W)", "gpu.power_limit"},
    {"Temperature (Sensor junction) (C)", "gpu.temperature"},
    {"Performance Level", "gpu.performance"},
};

bool knee_read_rocm(struct knee_facts *facts, struct knee_slice text)
{
    struct knee_json_values values;
    bool any = false;
    if (!knee_slice_has(text, "\"card0\"") && !knee_slice_has(text, "\"system\""))
        return false;
    knee_json_values_init(&values, text.at, text.length);
    while (knee_json_values_next(&values)) {
        char subject[32];
        const char *dot = strchr(values.path, '.');
        if (!dot || values.kind != KNEE_JSON_STRING)
            continue;
        bool driver = strcmp(values.path, "system.Driver version") == 0;
        bool card = strncmp(values.path, "card", 4) == 0;
        any = any || driver || card;
        if (driver)
            knee_fact_put(facts, "", "driver", knee_slice_of(values.text));
        if (!card)
            continue;
        knee_format(subject, sizeof subject, "GPU %.*s",
                    (int)(dot - values.path < 20 ? dot - values.path : 20), values.path);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strcmp(dot + 1, names[i].word) == 0)
                knee_fact_put(facts, subject, names[i].key, knee_slice_of(values.text));
    }
    return any;
}
