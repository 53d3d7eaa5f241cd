/* SPDX-License-Identifier: MIT */
#include "base/linear.h"

#include <math.h>
#include <string.h>

/* Cholesky: matrix = lower * lower^T. */
static bool factor(const struct knee_matrix *matrix, struct knee_matrix *lower)
{
    *lower = *matrix;
    for (size_t j = 0; j < matrix->size; j++) {
        double sum = matrix->at[j][j];
        for (size_t k = 0; k < j; k++)
            sum -= lower->at[j][k] * lower->at[j][k];
        if (!(sum > 0))
            return false;
        lower->at[j][j] = sqrt(sum);
        for (size_t i = j + 1; i < matrix->size; i++) {
            double below = matrix->at[i][j];
            for (size_t k = 0; k < j; k++)
                below -= lower->at[i][k] * lower->at[j][k];
            lower->at[i][j] = below / lower->at[j][j];
        }
    }
    return true;
}

static void substitute(const struct knee_matrix *lower, double *x)
{
    size_t n = lower->size;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            x[i] -= lower->at[i][k] * x[k];
        x[i] /= lower->at[i][i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            x[i] -= lower->at[k][i] * x[k];
        x[i] /= lower->at[i][i];
    }
}

bool knee_matrix_solve(const struct knee_matrix *matrix, double *right)
{
    struct knee_matrix lower;
    if (!factor(matrix, &lower))
        return false;
    substitute(&lower, right);
    return true;
}

bool knee_matrix_inverse_diagonal(const struct knee_matrix *matrix, double *out)
{
    struct knee_matrix lower;
    if (!factor(matrix, &lower))
        return false;
    for (size_t j = 0; j < matrix->size; j++) {
        double column[KNEE_UNKNOWNS_MAX] = {0};
        column[j] = 1;
        substitute(&lower, column);
        out[j] = column[j];
    }
    return true;
}

void knee_tridiagonal_solve(size_t size, double *diagonal, double *beside, double *right)
{
    for (size_t i = 1; i < size; i++) {
        double share = beside[i - 1] / diagonal[i - 1];
        diagonal[i] -= share * beside[i - 1];
        right[i] -= share * right[i - 1];
    }
    for (size_t i = size; i-- > 0;) {
        if (i + 1 < size)
            right[i] -= beside[i] * right[i + 1];
        right[i] /= diagonal[i];
    }
}
