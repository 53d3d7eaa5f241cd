/* SPDX-License-Identifier: MIT */
/*
 * Matrix products. OpenBLAS is loaded when the lab runs, not linked: the rest of knee starts
 * without it and works where it is not installed. One thread: a rank is one worker.
 */
#include "lab/lab_net.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#ifndef KNEE_HAVE_BLAS
#define KNEE_HAVE_BLAS 0
#endif

#if KNEE_HAVE_BLAS
/* CBLAS's own values. */
enum { ROW_MAJOR = 101, NOT_TRANSPOSED = 111, TRANSPOSED = 112 };
typedef void sgemm_function(int, int, int, int, int, int, float, const float *, int, const float *,
                            int, float, float *, int);
static sgemm_function *sgemm;

bool lab_blas(bool wanted)
{
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so", "libblas.so.3"};
    sgemm = NULL;
    if (!wanted)
        return false;
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    for (size_t i = 0; i < sizeof names / sizeof *names && !sgemm; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        void *symbol = library ? dlsym(library, "cblas_sgemm") : NULL;
        memcpy(&sgemm, &symbol, sizeof sgemm);
    }
    return sgemm != NULL;
}

static bool try_blas(const struct lab_gemm *s, const lab_real *a, const lab_real *b, lab_real *c)
{
    if (!sgemm || sizeof(lab_real) != sizeof(float))
        return false;
    sgemm(ROW_MAJOR, s->a_transposed ? TRANSPOSED : NOT_TRANSPOSED,
          s->b_transposed ? TRANSPOSED : NOT_TRANSPOSED, (int)s->rows, (int)s->columns,
          (int)s->inner, (float)s->alpha, (const void *)a, (int)s->a_stride, (const void *)b,
          (int)s->b_stride, (float)s->beta, (void *)c, (int)s->c_stride);
    return true;
}
#else
bool lab_blas(bool wanted)
{
    (void)wanted;
    return false;
}

static bool try_blas(const struct lab_gemm *s, const lab_real *a, const lab_real *b, lab_real *c)
{
    (void)s, (void)a, (void)b, (void)c;
    return false;
}
#endif

/* Eight sums side by side, so that the compiler can use vectors. */
static lab_real dot(const lab_real *a, const lab_real *b, size_t n)
{
    lab_real sums[8] = {0}, sum = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t j = 0; j < 8; j++)
            sums[j] += a[i + j] * b[i + j];
    for (; i < n; i++)
        sum += a[i] * b[i];
    for (size_t j = 0; j < 8; j++)
        sum += sums[j];
    return sum;
}

static void add_scaled(lab_real *to, const lab_real *from, lab_real factor, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += factor * from[i];
}

void lab_gemm(struct lab_gemm s, const lab_real *a, const lab_real *b, lab_real *c)
{
    if (s.rows == 0 || s.columns == 0 || try_blas(&s, a, b, c))
        return;
    for (size_t i = 0; i < s.rows; i++) {
        lab_real *row = c + i * s.c_stride;
        for (size_t j = 0; j < s.columns; j++)
            row[j] = s.beta == 0 ? 0 : row[j] * s.beta;
        for (size_t k = 0; !s.b_transposed && k < s.inner; k++)
            add_scaled(row, b + k * s.b_stride,
                       s.alpha * (s.a_transposed ? a[k * s.a_stride + i] : a[i * s.a_stride + k]),
                       s.columns);
        for (size_t j = 0; s.b_transposed && j < s.columns; j++) {
            if (!s.a_transposed)
                row[j] += s.alpha * dot(a + i * s.a_stride, b + j * s.b_stride, s.inner);
            for (size_t k = 0; s.a_transposed && k < s.inner; k++)
                row[j] += s.alpha * a[k * s.a_stride + i] * b[j * s.b_stride + k];
        }
    }
}
