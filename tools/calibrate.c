/* SPDX-License-Identifier: MIT */
/*
 * Renews the fitted values of data/constants.csv from measured runs:
 *
 *   calibrate CONSTANTS.csv RUNS[@WEIGHT[@GPU]] ... > NEW.csv
 *   calibrate --bands RUNS ... > BANDS.csv
 *   calibrate --doubts RUNS[@WEIGHT] ... > DOUBTS.csv
 *   calibrate --families RUNS ...   errors of each family of software, predicted from the others
 *   calibrate --rows RUNS ...       the same for an eighth of the rows at a time: known software
 *   calibrate --unnamed RUNS ...    the same where no software is named, with the shipped constants
 *   calibrate --own RUNS ...        what three rows of one's own bring, source by source
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
    if (knee_runs_read((struct knee_named_text){data, length, argument}, gpu, NULL, &more, &err)) {
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

/* Leaving out a source then leaves out all software of its family: NeMo's versions, Megatron-LM's
 * papers. */
static void sources_are_families(struct knee_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++) {
        const struct knee_profile *p = knee_profile_at((size_t)runs->run[i].platform.profile);
        const char *family = !p ? "none" : p->family[0] ? p->family : p->name;
        snprintf(runs->run[i].source, sizeof runs->run[i].source, "%s", family);
    }
}

#define EIGHTHS 8

/* Leaving out a source then leaves out every eighth row, whatever its source: what to expect of
 * further rows of known software. */
static void sources_are_eighths(struct knee_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++)
        snprintf(runs->run[i].source, sizeof runs->run[i].source, "rows %zu of 8", 1 + i % EIGHTHS);
}

/* Reads the tables and predicts each part (a source, if `parts` is NULL) without its rows. */
static bool cross_validate(int count, char **tables, void (*parts)(struct knee_runs *),
                           struct knee_runs *runs, struct knee_validation *v)
{
    struct knee_err err;
    for (int i = 0; i < count; i++)
        add_runs(tables[i], runs);
    if (parts)
        parts(runs);
    bool good = !knee_validate(runs, NULL, 0.8, NULL, v, &err) &&
                !knee_cross_validate(v, 0, 1, NULL, NULL, &err);
    if (!good)
        fprintf(stderr, "calibrate: %s\n", err.what);
    return good;
}

/* The runs of the tables, each priced as if no software were named: as typical software, with the
 * shipped constants. Sources are families, so an interval is judged on families it was not made of.
 */
static bool price_unnamed(int count, char **tables, struct knee_runs *runs,
                          struct knee_validation *v)
{
    struct knee_err err;
    for (int i = 0; i < count; i++)
        add_runs(tables[i], runs);
    sources_are_families(runs);
    for (size_t i = 0; i < runs->count; i++)
        runs->run[i].platform.profile = -1;
    double *room = calloc(runs->count, sizeof *room);
    bool good = room && !knee_validate(runs, NULL, 0.8, NULL, v, &err);
    for (size_t i = 0; good && i < runs->count; i++) {
        v->result[i].held_out_error = v->result[i].error;
        v->result[i].held_out_spread = 1; /* no fit was made without the family */
    }
    if (good)
        knee_judge_bands(v, room);
    free(room);
    return good;
}

static int report_unnamed(int count, char **tables)
{
    static struct knee_validation v;
    struct knee_runs runs = {0};
    if (!price_unnamed(count, tables, &runs, &v))
        return 4;
    const struct knee_run_errors *group[] = {&v.all, &v.dense, &v.moe};
    for (size_t i = 0; i < 3; i++)
        printf("%-32s %4zu rows  %5.1f / %4.1f %%\n", group[i]->name, group[i]->rows,
               100 * group[i]->mape, 100 * group[i]->median);
    for (int i = KNEE_BAND_UNNAMED; i < KNEE_RUN_BANDS; i++) {
        const struct knee_run_band *b = &v.left_out_band[i];
        printf("%-32s %4zu rows of %zu families  %.3f to %.3f, left out inside %.1f %%\n", b->name,
               b->rows, b->sources, b->low, b->high, 100 * b->covered_left_out);
    }
    knee_validation_release(&v);
    knee_runs_release(&runs);
    return 0;
}

/* What to expect of software that was never seen, or of rows that were not. */
static int report_left_out(int count, char **tables, void (*parts)(struct knee_runs *))
{
    static struct knee_validation v;
    struct knee_runs runs = {0};
    if (!cross_validate(count, tables, parts, &runs, &v))
        return 4;
    const struct knee_run_errors *group[] = {&v.held_out_all, &v.held_out_dense, &v.held_out_moe};
    for (size_t i = 0; i < 3 + v.source_count; i++) {
        const struct knee_run_errors *e = i < 3 ? group[i] : &v.held_out[i - 3];
        printf("%-24s %4zu rows  left out %5.1f / %4.1f %%\n", e->name, e->rows, 100 * e->mape,
               100 * e->median);
    }
    for (int i = 0; i < KNEE_BAND_UNNAMED; i++) {
        const struct knee_run_band *b = &v.left_out_band[i];
        printf("%-24s %4zu rows  %.3f to %.3f, left out inside %.1f %%\n", b->name, b->rows, b->low,
               b->high, 100 * b->covered_left_out);
    }
    knee_validation_release(&v);
    knee_runs_release(&runs);
    return 0;
}

/* The mean error of runs, with constants of one's own or the shipped ones. */
static double mean_error(const struct knee_runs *runs, const struct knee_rates *rates)
{
    static struct knee_validation v;
    struct knee_err err;
    if (knee_validate(runs, rates, 0.8, NULL, &v, &err))
        return NAN;
    double error = v.all.mape;
    knee_validation_release(&v);
    return error;
}

#define OWN_ROWS 3

/* What three rows of one's own bring: of each source three rows, spread over it, are calibrated to;
 * the others are judged, before and after. */
static int report_own(int count, char **tables)
{
    struct knee_runs runs = {0};
    double before = 0, after = 0, rows = 0;
    for (int i = 0; i < count; i++)
        add_runs(tables[i], &runs);
    for (size_t i = 0; i < runs.count; i++) /* software that knee has not seen */
        runs.run[i].platform.profile = knee_profile_row("generic");
    char *seen = calloc(runs.count, 1);
    struct knee_measured_run *own = calloc(runs.count, sizeof *own),
                             *rest = calloc(runs.count, sizeof *rest);
    for (size_t i = 0; seen && own && rest && i < runs.count; i++) {
        size_t n = 0, mine = 0, others = 0;
        for (size_t k = i; k < runs.count; k++) /* one source on one GPU */
            if (!seen[k] && !runs.run[k].skipped[0] &&
                strcmp(runs.run[k].source, runs.run[i].source) == 0 &&
                strcmp(runs.run[k].gpu, runs.run[i].gpu) == 0) {
                seen[k] = 1;
                rest[n++] = runs.run[k];
            }
        if (n < 2 * OWN_ROWS)
            continue;
        for (size_t k = 0; k < n; k++) {
            bool taken = mine < OWN_ROWS && k >= mine * (n - 1) / (OWN_ROWS - 1);
            struct knee_measured_run run = rest[k];
            *(taken ? &own[mine++] : &rest[others++]) = run;
        }
        struct knee_runs few = runs, many = runs;
        struct knee_rates rates;
        struct knee_platform platform;
        struct knee_err err;
        few.run = own;
        few.count = mine;
        many.run = rest;
        many.count = others;
        if (knee_calibrate(&few, NULL, &rates, &platform, &err))
            continue;
        double one = mean_error(&many, NULL), two = mean_error(&many, &rates);
        printf("%-28.28s %-8.8s %4zu rows  %5.1f -> %5.1f %%\n", runs.run[i].source,
               runs.run[i].gpu, others, 100 * one, 100 * two);
        before += one * (double)others;
        after += two * (double)others;
        rows += (double)others;
    }
    printf("three own rows: error on the others %.1f -> %.1f %% (%.0f rows)\n", 100 * before / rows,
           100 * after / rows, rows);
    free(seen);
    free(own);
    free(rest);
    knee_runs_release(&runs);
    return 0;
}

/* How sure predictions are, from runs of sources that were left out of the fit. What is assumed
 * cannot make a run surer. */
static int write_bands(int count, char **tables)
{
    static struct knee_validation v, unnamed;
    struct knee_runs runs = {0}, again = {0};
    if (!cross_validate(count, tables, NULL, &runs, &v) ||
        !price_unnamed(count, tables, &again, &unnamed))
        return 4;
    puts(
        "# How sure a predicted step time is: measured over predicted lies between low and high in "
        "90 of 100 runs of sources that the constants were not fitted to. pair: median "
        "error of "
        "the "
        "ratio of two plans' times. Made by `make calibrate` (docs/evidence/validate.md); the rows "
        "are "
        "classes in the order of enum knee_band_class.");
    puts("name,low,high,rows,sources,pair");
    for (int i = 0; i < KNEE_RUN_BANDS; i++) {
        bool named = i < KNEE_BAND_UNNAMED;
        const struct knee_run_band *b = &(named ? &v : &unnamed)->left_out_band[i], *surer = b;
        if (named)
            surer = &v.left_out_band[KNEE_BAND_KNOWN];
        if (i == KNEE_BAND_UNNAMED_EXPERTS) /* four families; dense runs have enough of their own */
            surer = &v.left_out_band[KNEE_BAND_EXPERTS];
        printf("%s,%.4g,%.4g,%zu,%zu,%.2g\n", b->name, fmin(b->low, surer->low),
               fmax(b->high, surer->high), b->rows, b->sources, v.decisions.pair_error);
    }
    knee_validation_release(&v);
    knee_validation_release(&unnamed);
    knee_runs_release(&runs);
    knee_runs_release(&again);
    return 0;
}

/* The same of E(K) and of closed forms. */
static int write_doubts(int count, char **tables)
{
    static struct knee_validation v;
    struct knee_runs runs = {0};
    if (!cross_validate(count, tables, NULL, &runs, &v))
        return 4;
    puts("# How sure what is no step time of knee plan is: measured over predicted lies between "
         "low and high in 90 of 100 runs of sources that nothing was fitted to. E(K): a factor, "
         "however far K is from the count it is measured from. Share of the peak: of "
         "a closed form's step. Made by `make calibrate` (docs/evidence/validate.md); the rows are "
         "those of "
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
    if (argc >= 3 && strcmp(argv[1], "--families") == 0)
        return report_left_out(argc - 2, argv + 2, sources_are_families);
    if (argc >= 3 && strcmp(argv[1], "--rows") == 0)
        return report_left_out(argc - 2, argv + 2, sources_are_eighths);
    if (argc >= 3 && strcmp(argv[1], "--unnamed") == 0)
        return report_unnamed(argc - 2, argv + 2);
    if (argc >= 3 && strcmp(argv[1], "--own") == 0)
        return report_own(argc - 2, argv + 2);
    if (argc >= 3 && strcmp(argv[1], "--bands") == 0)
        return write_bands(argc - 2, argv + 2);
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
