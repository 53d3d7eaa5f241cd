/* SPDX-License-Identifier: MIT */
/* exp, log, pow, fmin and fmax of the page (web/math.c) against the C library's. */
#include "unit.h"

#include <stdbool.h>

#define exp  page_exp
#define exp2 page_exp2
#define log  page_log
#define log2 page_log2
#define pow  page_pow
#define fmin page_fmin
#define fmax page_fmax
double page_exp(double x), page_exp2(double x), page_log(double x), page_log2(double x),
    page_pow(double x, double y), page_fmin(double a, double b), page_fmax(double a, double b);
#include "../../web/math.c"
#undef exp
#undef exp2
#undef log
#undef log2
#undef pow
#undef fmin
#undef fmax

/* Within so many times the distance of two doubles; what is not finite, and 0, is the same. */
static bool agrees(double found, double wanted, double distances)
{
    if (isnan(wanted))
        return isnan(found);
    if (isinf(wanted) || fabs(wanted) < 0x1p-1021)
        return found == wanted || fabs(found - wanted) < 0x1p-1022;
    return fabs(found - wanted) <= distances * 0x1p-52 * fabs(wanted);
}

static void assert_agree(double x, double y)
{
    if (!agrees(page_exp(x), exp(x), 3) || !agrees(page_exp2(x), exp2(x), 3) ||
        !agrees(page_log(x), log(x), 3) || !agrees(page_log2(x), log2(x), 3))
        fail_msg("of %g: %g %g %g %g", x, page_exp(x), page_exp2(x), page_log(x), page_log2(x));
    if (!agrees(page_fmin(x, y), fmin(x, y), 0) || !agrees(page_fmax(x, y), fmax(x, y), 0))
        fail_msg("of %g and %g: %g %g", x, y, page_fmin(x, y), page_fmax(x, y));
    if (!agrees(page_pow(x, y), pow(x, y), 1000)) /* 2e-13 */
        fail_msg("%g to the %g: %g, not %g", x, y, page_pow(x, y), pow(x, y));
}

TEST(usual_numbers)
{
    uint64_t seed = 1;
    for (int i = 0; i < 200000; i++) {
        seed = seed * 6364136223846793005 + 1442695040888963407;
        double share = (double)(seed >> 11) * 0x1p-53;
        assert_agree(1400 * share - 700, 7.5);
        assert_agree(exp(1400 * share - 700), (double)(seed % 40) / 8 - 2.5);
    }
}

TEST(unusual_numbers)
{
    static const double of[] = {0,        -0.0,      1,       -1,          2,     0.5, -0.5,
                                INFINITY, -INFINITY, NAN,     65,          -65,   64,  3,
                                -3,       66,        1e-310,  5e-324,      1e308, 709, -745.5,
                                1023.9,   -1073.5,   -1076.5, 1.0000000001};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (size_t k = 0; k < sizeof of / sizeof *of; k++)
            assert_agree(of[i], of[k]);
}

TEST(powers_of_two_are_exact)
{
    for (int k = -1022; k < 1024; k++) {
        assert_true(page_exp2(k) == ldexp(1, k));
        assert_true(page_log2(ldexp(1, k)) == k);
    }
}
