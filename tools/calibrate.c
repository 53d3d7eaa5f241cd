/* SPDX-License-Identifier: MIT */
/*
 * Renews the fitted values of data/constants.csv from measured runs:
 *
 *   calibrate CONSTANTS.csv RUNS[@WEIGHT[@GPU]] ... > NEW.csv
 *
 * RUNS is a table as `knee validate` takes it. Lines without a prior go through unchanged. What the
 * fit reaches is printed to standard error. `make calibrate` runs it on ../shared/data.
 */
#include "predict/calibrate/calibrate.h"
#include "job/profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_all(const char *name, size_t *length)
{
    FILE *file = fopen(name, "rb");
    size_t room = (size_t)1 << 24;
    char *data = file ? malloc(room) : NULL;
    if (!data) {
        fprintf(stderr, "calibrate: cannot read %s\n", name);
        exit(3);
    }
    *length = fread(data, 1, room, file);
    fclose(file);
    return data;
}

/* RUNS@WEIGHT@GPU: adds the runs to `all`. */
static void add_runs(char *argument, struct knee_runs *all)
{
    struct knee_runs more;
    struct knee_err err;
    char *weight = strchr(argument, '@'), *gpu = weight ? strchr(weight + 1, '@') : NULL;
    if (weight)
        *weight++ = '\0';
    if (gpu)
        *gpu++ = '\0';
    size_t length;
    char *data = read_all(argument, &length);
    if (knee_runs_read(data, length, argument, gpu, NULL, &more, &err)) {
        fprintf(stderr, "calibrate: %s: %s\n", err.where, err.what);
        exit(3);
    }
    struct knee_measured_run *grown =
        realloc(all->run, (all->count + more.count) * sizeof *all->run);
    if (!grown)
        exit(4);
    all->run = grown;
    for (size_t i = 0; i < more.count; i++) {
        more.run[i].weight = weight ? atof(weight) : 1;
        all->run[all->count++] = more.run[i];
    }
    knee_runs_release(&more);
    free(data);
}

static void report(const struct knee_fit *fit)
{
    double sum = 0, weight = 0;
    for (size_t i = 0; i < fit->runs->count; i++)
        if (fit->use[i]) {
            sum += fit->runs->run[i].weight * fabs(exp(fit->log_error[i]) - 1);
            weight += fit->runs->run[i].weight;
        }
    fprintf(stderr, "calibrate: %zu constants, %zu runs, mean error %.2f %% (weighted)\n",
            fit->fitted_count, fit->runs->count, 100 * sum / weight);
}

/* Copies the file, the fitted values replaced. Lines are those of knee_constants, in order. */
static void write_constants(const char *name, const struct knee_fit *fit)
{
    size_t length, row = 0;
    char *data = read_all(name, &length);
    data[length < ((size_t)1 << 24) ? length : length - 1] = '\0';
    bool header = true;
    for (char *line = strtok(data, "\n"); line; line = strtok(NULL, "\n")) {
        if (line[0] == '#' || header) {
            header = header && line[0] == '#';
            puts(line);
            continue;
        }
        const struct knee_constant *c = &knee_constants[row];
        double value = fit->values[row++];
        if (isnan(c->sigma))
            puts(line);
        else
            printf("%s,%s,%s,%s,%.5g,%.6g,%.6g,%s\n", c->scope, c->owner, c->constant, c->op, value,
                   c->prior, c->sigma, c->origin);
    }
    free(data);
}

int main(int argc, char **argv)
{
    struct knee_runs runs = {0};
    struct knee_fit fit;
    struct knee_err err;
    for (int i = 2; i < argc; i++)
        add_runs(argv[i], &runs);
    if (argc < 3 || knee_fit_init(&fit, &runs, KNEE_FIT_SHIPPED, NULL, &err)) {
        fprintf(stderr, "usage: calibrate CONSTANTS.csv RUNS[@WEIGHT[@GPU]] ...\n");
        return 2;
    }
    knee_fit_run(&fit, 60);
    report(&fit);
    write_constants(argv[1], &fit);
    knee_fit_release(&fit);
    knee_runs_release(&runs);
    return 0;
}
