#ifndef KM_PRODUCTS_H
#define KM_PRODUCTS_H

#include "core/isa.h"

#include <stddef.h>

/* Products with narrow matrices, and with vectors. */

enum { KM_BAND = 24 }; /* columns of a narrow matrix: three AVX-512 vectors */

/* A'V for A(k, l) = at[k * down + l * across]. */
typedef struct {
  const double *at;
  size_t down, across;
} factor;

/*
 * C += times AB, or C = times AB if fresh. A(i, k) = a.at[i * a.down + k * a.across], m x depth;
 * B(k, j) likewise, depth x n; C: m x n, its columns ldc apart. If lower, what stands above the
 * diagonal of C is of no use, before or after.
 */
typedef struct {
  size_t m, n, depth;
  double times;
  factor a, b;
  double *c;
  size_t ldc;
  int fresh, lower;
} km_product;

double km_product_flops(const km_product *product);

/* out += A'V. A: depth x rows; v: depth x cols, row-major; out: rows x cols, row-major; rows a
   multiple of 8, cols of KM_BAND. */
void km_multiply(size_t rows, size_t cols, size_t depth, factor a, const double *v, size_t ldv,
                 double *out, size_t ldo);

static inline double dot(size_t n, const double *x, const double *y) {
  double sum = 0;
  SIMD_SUMS(sum)
  for (size_t i = 0; i < n; i++) sum += x[i] * y[i];
  return sum;
}

/* y <- y - f x */
static inline void subtract(size_t n, double f, const double *restrict x, double *restrict y) {
  SIMD
  for (size_t i = 0; i < n; i++) y[i] -= f * x[i];
}

/* Sum by halves: the rounding error grows with log n, not n. */
double km_total(size_t n, const double *x);

#endif
