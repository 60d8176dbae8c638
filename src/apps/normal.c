#include "apps/normal.h"

#include "core/isa.h"
#include "core/arithmetic.h"

#include <math.h>

/*
 * Columns less their means, made orthogonal one after the other (twice, so that rounding does not
 * grow) and as long as sqrt(n): z R^-1 with the triangular root R of the covariance. Mahalanobis
 * distances do not depend on the root. Then n(n-1)/2 exponentials of each sample: O(n^2 d + n d^2)
 * flops. Samples stand side by side in the lanes of vectors, so that few points make no short
 * loops: 999 samples of 30 points take 2.3 ms with their draws, one after the other 3.8
 * (bench/gof.R).
 */

enum {
  LANES = KM_NORMAL_LANES,
  PAIRS = 64 /* whose exponentials are taken at a time */
};

typedef enum { PLAIN, PRODUCTS, APART } summand; /* a, a b, (a - b)^2 */

/* Their sum over n numbers of each sample, `step` apart. Sums of `lanes` samples are a vector, so
   that they stay in registers. */
INLINE void add_up(const size_t lanes, const summand what, size_t n, size_t step, const double *a,
                   const double *b, double *sums) {
  double s[LANES / 2][LANES];
  UNROLL
  for (size_t v = 0; v < LANES / lanes; v++)
    SIMD
    for (size_t e = 0; e < lanes; e++) s[v][e] = 0;
  for (size_t i = 0; i < n; i++)
    UNROLL
    for (size_t v = 0; v < LANES / lanes; v++)
      SIMD
      for (size_t e = 0; e < lanes; e++) {
        const size_t at = i * step * LANES + v * lanes + e;
        const double apart = what == APART ? a[at] - b[at] : 0;
        s[v][e] += what == PLAIN ? a[at] : what == PRODUCTS ? a[at] * b[at] : apart * apart;
      }
  UNROLL
  for (size_t v = 0; v < LANES / lanes; v++)
    SIMD
    for (size_t e = 0; e < lanes; e++) sums[v * lanes + e] = s[v][e];
}

INLINE void standardize(const size_t lanes, size_t n, size_t d, double *z) {
  double s[LANES];
  for (size_t l = 0; l < d; l++) {
    double *column = z + l * n * LANES;
    add_up(lanes, PLAIN, n, 1, column, NULL, s);
    for (size_t i = 0; i < n; i++)
      SIMD
      for (size_t e = 0; e < LANES; e++) column[i * LANES + e] -= s[e] / (double) n;
    for (size_t pass = 0; pass < 2; pass++)
      for (size_t k = 0; k < l; k++) {
        const double *restrict before = z + k * n * LANES;
        add_up(lanes, PRODUCTS, n, 1, before, column, s);
        for (size_t i = 0; i < n; i++)
          SIMD
          for (size_t e = 0; e < LANES; e++)
            column[i * LANES + e] -= s[e] / (double) n * before[i * LANES + e];
      }
    add_up(lanes, PRODUCTS, n, 1, column, column, s);
    for (size_t e = 0; e < LANES; e++) s[e] = sqrt((double) n / s[e]);
    for (size_t i = 0; i < n; i++)
      SIMD
      for (size_t e = 0; e < LANES; e++) column[i * LANES + e] *= s[e];
  }
}

/* sums += exp of `count` numbers of each sample, which are overwritten. */
INLINE void add_exps(const size_t lanes, size_t count, double *u, double *sums) {
  double s[LANES];
  km_simd()->exp_all(u, count * LANES, u);
  add_up(lanes, PLAIN, count, 1, u, NULL, s);
  for (size_t e = 0; e < LANES; e++) sums[e] += s[e];
}

/* times |to - from|^2 for a point of each sample; times |to|^2 unless these are pairs. */
INLINE void distances(const size_t lanes, const int pairs, size_t n, size_t d, const double *to,
                      const double *from, double times, double *u) {
  add_up(lanes, pairs ? APART : PRODUCTS, d, n, to, pairs ? from : to, u);
  SIMD
  for (size_t e = 0; e < LANES; e++) u[e] *= times;
}

INLINE void means_body(const size_t lanes, size_t n, size_t d, double theta, double *z,
                       double *means) {
  double u[PAIRS * LANES], pairs[LANES] = {0}, points[LANES] = {0};
  const double by_pairs = -1 / (2 * theta * theta), by_points = -1 / (2 * (theta * theta + 1));
  size_t count = 0;
  standardize(lanes, n, d, z);
  for (size_t i = 0; i < n; i++)
    for (size_t j = i + 1; j < n; j++) {
      distances(lanes, 1, n, d, z + j * LANES, z + i * LANES, by_pairs, u + count++ * LANES);
      if (count == PAIRS || (i + 2 == n && j + 1 == n)) {
        add_exps(lanes, count, u, pairs);
        count = 0;
      }
    }
  for (size_t i = 0; i < n; i++) {
    distances(lanes, 0, n, d, z + i * LANES, z, by_points, u);
    add_exps(lanes, 1, u, points);
  }
  for (size_t e = 0; e < LANES; e++) {
    const double size = (double) n;
    means[2 * e] = (size + 2 * pairs[e]) / (size * size);
    means[2 * e + 1] = points[e] / size;
  }
}

VERSIONS(means, (size_t n, size_t d, double theta, double *z, double *means),
         (8, n, d, theta, z, means), (4, n, d, theta, z, means), (2, n, d, theta, z, means))

void km_standardized_means(size_t n, size_t d, double theta, double *z, double *means) {
  means_version()(n, d, theta, z, means);
}
