/* SPDX-License-Identifier: MIT */
/*
 * Profiles and the constants they are made of: tables from data/profiles.csv, data/constants.csv,
 * data/architectures.csv, data/profile_rules.csv, data/bands.csv and data/doubts.csv.
 *
 * A constant's value is found by walking from the general to the special: what holds for all, for
 * the GPU's architecture, for the GPU, then down the profile's line of bases. A row either sets
 * the value (=), changes what was inherited (*), or changes it every year from 2025 on (^).
 */
#ifndef KNEE_JOB_PROFILE_H
#define KNEE_JOB_PROFILE_H

#include "knee_job.h"

struct knee_constant {
    const char *scope;    /* all, architecture, gpu, profile */
    const char *owner;    /* of what the scope says; empty for all */
    const char *constant; /* name in knee_rates_keys */
    const char *op;       /* =, * or ^ */
    double value;
    double prior, sigma; /* fitted: drawn towards prior, log-normal width sigma. NaN: fixed */
    const char *origin;
};
extern const struct knee_constant knee_constants[];
extern const size_t knee_constants_count;

struct knee_architecture {
    const char *gpu, *architecture;
    double fp4_flops; /* dense peak; NaN where it has none */
    const char *origin;
};
extern const struct knee_architecture knee_architectures[];
extern const size_t knee_architectures_count;

extern const struct knee_profile knee_profiles[];
extern const size_t knee_profiles_count;

/* Which profile a described run has: the first rule all of whose conditions hold. */
struct knee_profile_rule {
    const char *profile;
    const char *words;        /* all of these, separated by +, stand in the description */
    const char *without;      /* and none of these */
    const char *architecture; /* empty: any */
    const char *precision;    /* part of the precision's name; empty: any */
    double from_version;      /* not before; NaN: any */
};
extern const struct knee_profile_rule knee_profile_rules[];
extern const size_t knee_profile_rules_count;

/* Classes of intervals of predicted times, by what is known about the run. */
enum knee_band_class {
    KNEE_BAND_KNOWN,   /* dense, nothing had to be assumed */
    KNEE_BAND_ASSUMED, /* something about software or plan was */
    KNEE_BAND_EXPERTS,
    KNEE_BAND_UNNAMED,         /* dense, priced as typical software because none is named */
    KNEE_BAND_UNNAMED_OTHER,   /* the same with ZeRO-2 or 3, or TP without sequence parallelism */
    KNEE_BAND_UNNAMED_EXPERTS, /* the same with experts */
    KNEE_BANDS
};
struct knee_band {
    const char *name;
    double low, high;     /* 90 % of measured over predicted, sources left out */
    double rows, sources; /* that say so */
    double pair;          /* how well the times of two plans of one job compare */
};
extern const struct knee_band knee_bands[];
extern const size_t knee_bands_count;
/* What a forecast for a named profile on a GPU rests on; `why` it is not known, else NULL. */
enum knee_basis knee_basis_of(int profile, const char *gpu, const char **why);
enum knee_band_class knee_band_class_of(const struct knee_shape *shape, enum knee_basis basis);
struct knee_sure knee_band_step(enum knee_band_class class, double step_s);

/* The same for other predictions than step times: factors on the predicted value. */
enum knee_doubt_kind {
    KNEE_DOUBT_CURVE,         /* E(K), a doubling from what it is measured from */
    KNEE_DOUBT_CURVE_ASSUMED, /* the same where something was assumed, or there are experts */
    KNEE_DOUBT_MFU,           /* a closed form at the usual share of the peak */
    KNEE_DOUBTS
};
struct knee_doubt {
    const char *name;
    double low, high;
    double rows, sources; /* that say so */
};
extern const struct knee_doubt knee_doubts[];
extern const size_t knee_doubts_count;

/* Factors on E(workers) = efficiency, given E(anchor) = 1. They do not grow with the distance:
 * measured curves are no further off after ten doublings than after two. Where little is lost,
 * little more can be. */
struct knee_sure knee_band_curve(enum knee_band_class class, double workers, double anchor,
                                 double efficiency);
/* Factors on a step whose share of the peak was not told. */
struct knee_sure knee_band_mfu(void);

/* The row of a GPU preset, or NULL; and its architecture's name, "" if it has none. */
const struct knee_architecture *knee_architecture_row(const char *gpu);
const char *knee_architecture_of(const char *gpu);

/* Row of a profile by name, or -1. */
int knee_profile_row(const char *name);

/* The profile for a run that a text describes (source, notes ...), in lower case. Versions like
 * 26.04 in the text choose within a family: the newest not after it. */
int knee_profile_pick(const char *description, const char *gpu, const char *precision);

/* Which rows of knee_constants hold for a GPU and a profile, from the general to the special. */
#define KNEE_RECIPE_MAX 256
struct knee_recipe {
    size_t count;
    struct {
        unsigned short constant; /* row of knee_constants */
        unsigned short offset;   /* of the field in struct knee_rates */
        bool times;              /* changes what was inherited */
        double power;            /* by this power of the value: 1, or years since 2025 */
    } step[KNEE_RECIPE_MAX];
};
void knee_recipe_init(const char *gpu, int profile, struct knee_recipe *out);

/* The constants that a recipe gives. `values` replaces the column of values (one per row of
 * knee_constants); NULL: as shipped. Fields no row speaks of are NaN. */
void knee_rates_resolve(const struct knee_recipe *recipe, const double *values,
                        struct knee_rates *out);

#endif
