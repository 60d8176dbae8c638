#include "core/plain.h"
#include "core/isa.h"
#include "core/products.h"

#include <math.h>
#include <string.h>

/*
 * Householder's reflections (Golub and Van Loan, 8.3.1). Both halves are kept: twice the flops of
 * one, but loops over whole columns, which stay in the cache up to some 200 rows.
 */

/* a <- a - v w' - w v', m x m, its columns n apart. */
INLINE void rank_two_body(size_t m, size_t n, const double *v, const double *w, double *a) {
  for (size_t j = 0; j < m; j++) {
    double *column = a + j * n;
    const double by_w = v[j], by_v = w[j];
    SIMD
    for (size_t i = 0; i < m; i++) column[i] -= by_w * w[i] + by_v * v[i];
  }
}

VERSIONS(rank_two, (size_t m, size_t n, const double *v, const double *w, double *a),
         (m, n, v, w, a), (m, n, v, w, a), (m, n, v, w, a))

/* w <- times A v, a symmetric, m x m, its columns n apart. */
INLINE void product_body(size_t m, size_t n, const double *a, const double *v, double times,
                         double *w) {
  size_t j = 0;
  for (size_t i = 0; i < m; i++) w[i] = 0;
  for (; j + 4 <= m; j += 4) {
    const double *a0 = a + j * n, *a1 = a0 + n, *a2 = a1 + n, *a3 = a2 + n;
    const double v0 = times * v[j], v1 = times * v[j + 1];
    const double v2 = times * v[j + 2], v3 = times * v[j + 3];
    SIMD
    for (size_t i = 0; i < m; i++)
      w[i] += (v0 * a0[i] + v1 * a1[i]) + (v2 * a2[i] + v3 * a3[i]);
  }
  for (; j < m; j++) {
    const double *column = a + j * n, by = times * v[j];
    SIMD
    for (size_t i = 0; i < m; i++) w[i] += by * column[i];
  }
}

VERSIONS(product, (size_t m, size_t n, const double *a, const double *v, double times, double *w),
         (m, n, a, v, times, w), (m, n, a, v, times, w), (m, n, a, v, times, w))

/* q (count columns, n apart) <- (I - tau v v') q, v of m numbers. */
INLINE void reflect_body(size_t m, size_t n, const double *v, double tau, size_t count,
                         double *q) {
  for (size_t j = 0; j < count; j++) {
    double *column = q + j * n, inner = 0;
    SIMD_SUMS(inner)
    for (size_t i = 0; i < m; i++) inner += v[i] * column[i];
    inner *= tau;
    SIMD
    for (size_t i = 0; i < m; i++) column[i] -= inner * v[i];
  }
}

VERSIONS(reflect, (size_t m, size_t n, const double *v, double tau, size_t count, double *q),
         (m, n, v, tau, count, q), (m, n, v, tau, count, q), (m, n, v, tau, count, q))

/* The m x m block at a, whose columns are n apart. */
static void reflect_both(size_t m, size_t n, double *a, const double *v, double tau, double *w) {
  product_version()(m, n, a, v, tau, w);
  subtract(m, tau / 2 * dot(m, w, v), v, w);
  rank_two_version()(m, n, v, w, a);
}

int km_plain_scale(size_t n, double *a) {
  double largest = 0;
  int exponent = 0;
  for (size_t i = 0; i < n * n; i++) largest = fabs(a[i]) > largest ? fabs(a[i]) : largest;
  if (largest == 0 || (largest > 0x1p-100 && largest < 0x1p100)) return 0;
  frexp(largest, &exponent);
  for (size_t i = 0; i < n * n; i++) a[i] = ldexp(a[i], -exponent);
  return exponent;
}

void km_plain_reflection(size_t n, double *a, const double *v, double tau, double *w) {
  reflect_both(n, n, a, v, tau, w);
}

/* v (m numbers) <- that of the reflection that leaves only its first number, which is returned;
   NaN where there is one, also beside zeros, which fmax() does not see. */
static double take_reflection(size_t m, double *v, double *tau) {
  double largest = 0, sum = 0;
  *tau = 0;
  for (size_t i = 0; i < m; i++) {
    largest = fmax(largest, fabs(v[i]));
    sum += v[i];
  }
  if (!(largest > 0)) return sum;
  for (size_t i = 0; i < m; i++) v[i] /= largest;
  const double norm2 = dot(m, v, v), alpha = -copysign(sqrt(norm2), v[0]);
  *tau = 1 / (norm2 - alpha * v[0]);
  v[0] -= alpha;
  return alpha * largest;
}

void km_plain_tridiag(size_t n, double *a, double *diag, double *off, double *tau, double *w) {
  for (size_t k = 0; k + 1 < n; k++) {
    const size_t m = n - k - 1;
    double *v = a + k + 1 + k * n;
    diag[k] = a[k + k * n];
    off[k] = take_reflection(m, v, tau + k);
    if (tau[k] != 0) reflect_both(m, n, a + k + 1 + (k + 1) * n, v, tau[k], w);
  }
  diag[n - 1] = a[n * n - 1];
  tau[n - 1] = 0;
}

void km_plain_axes(size_t n, const double *a, const double *tau, double *q) {
  memset(q, 0, n * n * sizeof *q);
  for (size_t k = 0; k < n; k++) q[k + k * n] = 1;
  for (size_t k = n - 1; k-- > 0;)
    if (tau[k] != 0)
      reflect_version()(n - k - 1, n, a + k + 1 + k * n, tau[k], n - k - 1,
                        q + k + 1 + (k + 1) * n);
}

void km_plain_apply(size_t n, const double *a, const double *tau, size_t count, double *y) {
  for (size_t k = n - 1; k-- > 0;)
    if (tau[k] != 0)
      reflect_version()(n - k - 1, n, a + k + 1 + k * n, tau[k], count, y + k + 1);
}
