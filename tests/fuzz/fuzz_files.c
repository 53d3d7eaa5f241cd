/* SPDX-License-Identifier: MIT */
/* Files of keys: the first byte says which table of keys, the rest is the file. What is refused
 * changes nothing; what is taken is within its range. And the index that may lie beside logs. */
#include "knee_job.h"
#include "knee_plan.h"
#include "knee_read.h"
#include "knee_replay.h"

#include "read/log/log_index.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct knee_keys *keys, const void *object)
{
    for (size_t i = 0; i < keys->count; i++) {
        const struct knee_key *key = &keys->rows[i];
        const unsigned char *source = (const unsigned char *)object + keys->source_offset;
        double value;
        if (key->kind != KNEE_KEY_NUMBER || source[i] != KNEE_FILE)
            continue;
        memcpy(&value, (const char *)object + key->offset, sizeof value);
        if (!(value >= key->min && value <= key->max))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        const struct knee_keys *keys;
        size_t size;
    } tables[] = {{&knee_rates_keys, sizeof(struct knee_rates)},
                  {&knee_shape_keys, sizeof(struct knee_shape)},
                  {&knee_plan_keys, sizeof(struct knee_plan)},
                  {&knee_platform_keys, sizeof(struct knee_platform)},
                  {&knee_tax_keys, sizeof(struct knee_tax_job)}};
    static char object[1 << 16], before[1 << 16];
    struct knee_err err;
    if (size == 0)
        return 0;
    size_t row = data[0] % (sizeof tables / sizeof *tables);
    const char *text = (const char *)data + 1;
    if (tables[row].size > sizeof object)
        abort();
    memset(object, 0, tables[row].size);
    memcpy(before, object, tables[row].size);
    if (knee_yaml_read((struct knee_named_text){text, size - 1, "fuzz"}, tables[row].keys, object,
                       tables[row].size, &err)) {
        if (memcmp(object, before, tables[row].size) != 0 || !err.what[0])
            abort();
    } else {
        check(tables[row].keys, object);
    }
    struct knee_log_index_row found;
    struct knee_slice csv = {text, size - 1};
    if (knee_log_index_good(csv))
        knee_log_index_find(csv, "a.log", &found);
    return 0;
}
