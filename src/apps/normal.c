#include "apps/normal.h"

#include "core/isa.h"
#include "core/arithmetic.h"

#include <math.h>

/*
 * Columns less their means, made orthogonal one after the other (twice, so that rounding does not
 * grow) and as long as sqrt(n): z R^-1 with the triangular root R of the covariance. Mahalanobis
 * distances do not depend on the root. Then n(n-1)/2 exponentials, a row at a time: O(n^2 d + n
 * d^2) flops, n doubles.
 */

static double dot(const double *a, const double *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

static void standardize(double *z, size_t n, size_t d) {
  for (size_t l = 0; l < d; l++) {
    double *column = z + l * n, mean = 0;
    for (size_t i = 0; i < n; i++) mean += column[i];
    mean /= (double) n;
    for (size_t i = 0; i < n; i++) column[i] -= mean;
    for (size_t pass = 0; pass < 2; pass++)
      for (size_t k = 0; k < l; k++) {
        const double *before = z + k * n, share = dot(before, column, n) / (double) n;
        for (size_t i = 0; i < n; i++) column[i] -= share * before[i];
      }
    const double root = sqrt((double) n / dot(column, column, n));
    for (size_t i = 0; i < n; i++) column[i] *= root;
  }
}

/* The sum of exp(-times u) for the `count` numbers u, which are overwritten. */
static double exp_sum(double *u, size_t count, double times) {
  for (size_t i = 0; i < count; i++) u[i] *= -times;
  km_simd()->exp_all(u, count, u);
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += u[i];
  return sum;
}

km_normal_means km_standardized_means(double *z, size_t n, size_t d, double theta, double *work) {
  standardize(z, n, d);
  double pairs = 0;
  for (size_t i = 0; i + 1 < n; i++) {
    const size_t count = n - i - 1;
    for (size_t j = 0; j < count; j++) work[j] = 0;
    for (size_t l = 0; l < d; l++) {
      const double *column = z + l * n + i, here = column[0];
      for (size_t j = 0; j < count; j++) {
        const double u = column[j + 1] - here;
        work[j] += u * u;
      }
    }
    pairs += exp_sum(work, count, 1 / (2 * theta * theta));
  }
  for (size_t i = 0; i < n; i++) work[i] = 0;
  for (size_t l = 0; l < d; l++)
    for (size_t i = 0; i < n; i++) work[i] += z[i + l * n] * z[i + l * n];
  const double points = exp_sum(work, n, 1 / (2 * (theta * theta + 1))), size = (double) n;
  return (km_normal_means){(size + 2 * pairs) / (size * size), points / size};
}
