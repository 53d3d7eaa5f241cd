/* SPDX-License-Identifier: MIT */
/* Small systems of equations, for fits. */
#ifndef KNEE_BASE_LINEAR_H
#define KNEE_BASE_LINEAR_H

#include <stdbool.h>
#include <stddef.h>

#define KNEE_UNKNOWNS_MAX 16

/* A symmetric positive definite matrix; only [row][column <= row] is read. */
struct knee_matrix {
    size_t size;
    double at[KNEE_UNKNOWNS_MAX][KNEE_UNKNOWNS_MAX];
};

/* Solves matrix x = right into `right`. False, and nothing changed, when it is not definite. */
bool knee_matrix_solve(const struct knee_matrix *matrix, double *right);

/* The diagonal of its inverse: variances. False as above. */
bool knee_matrix_inverse_diagonal(const struct knee_matrix *matrix, double *out);

/* A tridiagonal symmetric system, diagonal and what stands beside it; overwrites all three. */
void knee_tridiagonal_solve(size_t size, double *diagonal, double *beside, double *right);

#endif
