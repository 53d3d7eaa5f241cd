/* SPDX-License-Identifier: MIT */
/*
 * Series of numbers from any bytes (a byte says which kind: steady, a level, far away, tiny), and
 * when they changed for good; the bytes as a condition of an alarm. A change that is found lies in
 * the series, is as large as was asked for, and comes out the same when all values are moved.
 */
#include "judge/alarm.h"
#include "judge/change_point.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 512 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static double value_of(uint8_t kind, uint8_t byte)
{
    static const double scales[] = {1, 1e-3, 1e-9, 1e9, 1e150, -1, 0, 1e-300};
    return kind < 192 ? 100 + kind / 64 * 20.0 + byte / 64.0 : scales[kind & 7] * byte;
}

static void find_change(const double *values, size_t count, double least)
{
    struct knee_change change, moved;
    double low = INFINITY, high = -INFINITY, shifted[VALUES];
    if (knee_change_point(values, count, least, NULL, &change, NULL))
        abort(); /* memory went */
    for (size_t i = 0; i < count; i++) {
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
        shifted[i] = values[i] + 1024;
    }
    if (change.found &&
        (change.at == 0 || change.at >= count || !(fabs(change.after - change.before) >= least) ||
         change.before < low || change.before > high || change.after < low || change.after > high ||
         !(change.chance >= 0 && change.chance <= 1)))
        abort();
    if (low < 64 ||
        high > 256) /* moved values are rounded: only near ones keep their differences */
        return;
    if (knee_change_point(shifted, count, least, NULL, &moved, NULL) ||
        moved.found != change.found || (moved.found && moved.at != change.at))
        abort();
}

static void read_condition(const uint8_t *data, size_t size)
{
    struct knee_alarm alarm;
    struct knee_err err = {0};
    enum knee_unit unit;
    char text[256];
    size = size < sizeof text - 1 ? size : sizeof text - 1;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    if (knee_alarm_parse(text, &alarm, &err)) {
        if (!err.what[0])
            abort();
        return;
    }
    if (!knee_alarm_metric(&alarm, &unit) || isnan(alarm.limit) || !(alarm.for_s >= 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double values[VALUES];
    size_t count = 0;
    for (size_t i = 1; i + 1 < size && count < VALUES; i += 2)
        values[count++] = value_of(data[i], data[i + 1]);
    if (count > 0)
        find_change(values, count, data[0] / 16.0);
    read_condition(data, size);
    return 0;
}
