/* SPDX-License-Identifier: MIT */
/* nvidia-smi nvlink -s: the links of each GPU and their rates. */
#include "read/host/host_read.h"

#include "base/format.h"

struct links {
    char gpu[48];
    double active, inactive;
};

static void end_gpu(struct knee_facts *facts, struct links *links)
{
    if (links->gpu[0] && links->active + links->inactive > 0) {
        knee_fact_number(facts, links->gpu, "nvlink.active", links->active);
        knee_fact_number(facts, links->gpu, "nvlink.links", links->active + links->inactive);
        knee_fact_number(facts, links->gpu, "nvlink.inactive", links->inactive);
    }
    *links = (struct links){0};
}

bool knee_read_nvlink(struct knee_facts *facts, struct knee_slice text)
{
    struct links links = {0};
    struct knee_slice line;
    if (!knee_slice_has(text, "Link 0: ") || !knee_slice_has(text, "GPU "))
        return false;
    while (knee_slice_line(&text, &line)) {
        double number;
        struct knee_slice trimmed = knee_slice_trim(line);
        size_t colon = knee_slice_find(trimmed, ": ");
        if (knee_slice_starts(trimmed, "GPU ") &&
            knee_slice_number_after(trimmed, "GPU ", &number)) {
            end_gpu(facts, &links);
            knee_format(links.gpu, sizeof links.gpu, "GPU %.0f", number);
        } else if (knee_slice_starts(trimmed, "Link ") && colon < trimmed.length) {
            struct knee_slice value = knee_slice_from(trimmed, colon + 2);
            bool off = knee_slice_has(value, "inactive");
            *(off ? &links.inactive : &links.active) += 1;
            if (!off)
                knee_fact_put(facts, links.gpu, "nvlink.rate", value);
        }
    }
    end_gpu(facts, &links);
    return true;
}
