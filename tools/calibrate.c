/* SPDX-License-Identifier: MIT */
/*
 * Renews the fitted values of data/constants.csv from measured runs:
 *
 *   calibrate CONSTANTS.csv RUNS[@WEIGHT[@GPU]] ... > NEW.csv
 *   calibrate --bands RUNS > BANDS.csv
 *   calibrate --doubts RUNS[@WEIGHT] ... > DOUBTS.csv
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

/* How sure predictions are, from runs of sources that were left out of the fit. What is assumed
 * cannot make a run surer. */
static int write_bands(char *table)
{
    static struct knee_validation v;
    struct knee_runs runs = {0};
    struct knee_err err;
    add_runs(table, &runs);
    if (knee_validate(&runs, NULL, 0.8, NULL, &v, &err) ||
        knee_cross_validate(&v, 0, 1, NULL, NULL, &err)) {
        fprintf(stderr, "calibrate: %s\n", err.what);
        return 4;
    }
    puts(
        "# How sure a predicted step time is: measured over predicted lies between low and high in "
        "90 of 100 runs of sources that the constants were not fitted to. pair: median error of "
        "the "
        "ratio of two plans' times. Made by `make calibrate` (docs/validate.md); the rows are "
        "classes in the order of enum knee_band_class.");
    puts("name,low,high,rows,sources,pair");
    for (int i = 0; i < KNEE_RUN_BANDS; i++) {
        const struct knee_run_band *b = &v.left_out_band[i], *first = &v.left_out_band[0];
        printf("%s,%.4g,%.4g,%zu,%zu,%.2g\n", b->name, fmin(b->low, first->low),
               fmax(b->high, first->high), b->rows, b->sources, v.decisions.pair_error);
    }
    knee_validation_release(&v);
    knee_runs_release(&runs);
    return 0;
}

/* The same of E(K) and of closed forms. */
static int write_doubts(int count, char **tables)
{
    static struct knee_validation v;
    struct knee_runs runs = {0};
    struct knee_err err;
    for (int i = 0; i < count; i++)
        add_runs(tables[i], &runs);
    if (knee_validate(&runs, NULL, 0.8, NULL, &v, &err) ||
        knee_cross_validate(&v, 0, 1, NULL, NULL, &err)) {
        fprintf(stderr, "calibrate: %s\n", err.what);
        return 4;
    }
    puts("# How sure what is no step time of knee plan is: measured over predicted lies between "
         "low and high in 90 of 100 runs of sources that nothing was fitted to. E(K): a factor per "
         "root of the doublings between K and the count it is measured from. Share of the peak: of "
         "a closed form's step. Made by `make calibrate` (docs/validate.md); the rows are those of "
         "enum knee_doubt_kind.");
    puts("name,low,high,rows,sources");
    for (int i = 0; i < KNEE_DOUBTS; i++) {
        const struct knee_run_band *b = &v.left_out_doubt[i], *first = &v.left_out_doubt[0];
        bool curve = i == KNEE_DOUBT_CURVE_ASSUMED; /* what is assumed cannot make a curve surer */
        printf("%s,%.4g,%.4g,%zu,%zu\n", b->name, curve ? fmin(b->low, first->low) : b->low,
               curve ? fmax(b->high, first->high) : b->high, b->rows, b->sources);
        fprintf(stderr, "calibrate: %s: sources left out inside %.3g\n", b->name,
                b->covered_left_out);
    }
    knee_validation_release(&v);
    knee_runs_release(&runs);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "--doubts") == 0)
        return write_doubts(argc - 2, argv + 2);
    if (argc == 3 && strcmp(argv[1], "--bands") == 0)
        return write_bands(argv[2]);
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
