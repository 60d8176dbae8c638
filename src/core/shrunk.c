#include "core/shrunk.h"
#include "core/isa.h"

#include <math.h>
#include <string.h>

/*
 * rho of Ledoit and Wolf (J. Multivariate Anal. 88, 2004) with the identity as target, not less
 * than 0.05: (sum |x_i|^4 / n - |S|^2) / n over |S - I|^2, norms of Frobenius. n r^2 flops.
 */

static const double least_shrinkage = 0.05;

enum { SIDE_BY_SIDE = 4 };

static void add_point(size_t r, const double *point, double *s) {
  for (size_t j = 0; j < r; j++) {
    const double times = point[j];
    double *column = s + j * r;
    SIMD
    for (size_t i = j; i < r; i++) column[i] += times * point[i];
  }
}

/* Four points after each other, as add_point does. */
static void add_four(size_t r, const double *x, double *s) {
  const double *x1 = x + r, *x2 = x1 + r, *x3 = x2 + r;
  for (size_t j = 0; j < r; j++) {
    const double by = x[j], by1 = x1[j], by2 = x2[j], by3 = x3[j];
    double *column = s + j * r;
    SIMD
    for (size_t i = j; i < r; i++)
      column[i] = column[i] + by * x[i] + by1 * x1[i] + by2 * x2[i] + by3 * x3[i];
  }
}

double km_shrunk_moments(size_t n, size_t r, const double *x, double freedom, double *s) {
  double fourth = 0, square = 0, trace = 0;
  memset(s, 0, r * r * sizeof *s);
  size_t t = 0;
  for (; t + SIDE_BY_SIDE <= n; t += SIDE_BY_SIDE) add_four(r, x + t * r, s);
  for (; t < n; t++) add_point(r, x + t * r, s);
  for (t = 0; t < n; t++) {
    const double *point = x + t * r;
    double norm2 = 0;
    for (size_t j = 0; j < r; j++) norm2 += point[j] * point[j];
    fourth += norm2 * norm2;
  }
  for (size_t j = 0; j < r; j++) {
    for (size_t i = j; i < r; i++) {
      const double value = s[i + j * r] / freedom;
      s[i + j * r] = s[j + i * r] = value;
      square += (i > j ? 2 : 1) * value * value;
    }
    trace += s[j + j * r];
  }
  const double apart = (fourth / (double) n - square) / (double) n;
  return fmin(1, fmax(least_shrinkage, apart / (square - 2 * trace + (double) r)));
}

/* Eigenvalues are rho at least. */
void km_factor_shrunk(size_t r, double rho, double *s) {
  for (size_t j = 0; j < r; j++) {
    for (size_t i = j; i < r; i++) s[i + j * r] *= 1 - rho;
    s[j + j * r] += rho;
  }
  for (size_t j = 0; j < r; j++) {
    const double *first = s + j * r;
    const double root = sqrt(first[j]);
    for (size_t i = j; i < r; i++) s[i + j * r] /= root;
    for (size_t k = j + 1; k < r; k++) {
      const double times = first[k];
      double *column = s + k * r;
      SIMD
      for (size_t i = k; i < r; i++) column[i] -= times * first[i];
    }
  }
}

void km_whiten(size_t n, size_t r, const double *l, double *x) {
  for (size_t t = 0; t < n; t++) {
    double *point = x + t * r;
    for (size_t j = 0; j < r; j++) {
      const double *column = l + j * r, value = point[j] /= column[j];
      SIMD
      for (size_t i = j + 1; i < r; i++) point[i] -= value * column[i];
    }
  }
}
