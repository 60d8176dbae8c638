#include "core/axes.h"
#include "core/isa.h"
#include "core/products.h"
#include "core/scratch.h"

#include <float.h>
#include <math.h>
#include <string.h>

/*
 * Householder's reflections to a tridiagonal matrix, then implicit QL with Wilkinson's shift, its
 * rotations applied to the product of the reflections (Golub and Van Loan, 8.3): some 9 n^3 flops.
 */

enum { MOST_SWEEPS = 60 }; /* for an eigenvalue; two or three are usual */

typedef struct {
  double *off, *tau, *w; /* n each: beside the diagonal, of the reflections, room */
} axes_room;

static size_t lay_out(axes_room *s, size_t n, double *work) {
  km_scratch scratch = {work, 0};
  s->off = take(&scratch, n);
  s->tau = take(&scratch, n);
  s->w = take(&scratch, n);
  return scratch.used;
}

size_t km_axes_work(size_t n) {
  axes_room s;
  return lay_out(&s, n, NULL);
}

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
  for (size_t i = 0; i < m; i++) w[i] = 0;
  for (size_t j = 0; j < m; j++) {
    const double *column = a + j * n, by = times * v[j];
    SIMD
    for (size_t i = 0; i < m; i++) w[i] += by * column[i];
  }
}

VERSIONS(product, (size_t m, size_t n, const double *a, const double *v, double times, double *w),
         (m, n, a, v, times, w), (m, n, a, v, times, w), (m, n, a, v, times, w))

/* q (m columns, n apart) <- (I - tau v v') q. */
INLINE void reflect_body(size_t m, size_t n, const double *v, double tau, double *q) {
  for (size_t j = 0; j < m; j++) {
    double *column = q + j * n, inner = 0;
    SIMD_SUMS(inner)
    for (size_t i = 0; i < m; i++) inner += v[i] * column[i];
    inner *= tau;
    SIMD
    for (size_t i = 0; i < m; i++) column[i] -= inner * v[i];
  }
}

VERSIONS(reflect, (size_t m, size_t n, const double *v, double tau, double *q),
         (m, n, v, tau, q), (m, n, v, tau, q), (m, n, v, tau, q))

INLINE void rotate_body(size_t n, double c, double s, double *x, double *y) {
  SIMD
  for (size_t k = 0; k < n; k++) {
    const double before = y[k];
    y[k] = s * x[k] + c * before;
    x[k] = c * x[k] - s * before;
  }
}

VERSIONS(rotate, (size_t n, double c, double s, double *x, double *y), (n, c, s, x, y),
         (n, c, s, x, y), (n, c, s, x, y))

/* Column k of a below the diagonal <- v of its reflection; s->off, s->tau of it. */
static void take_reflection(size_t n, size_t k, double *a, const axes_room *s) {
  const size_t m = n - k - 1;
  double *v = a + k + 1 + k * n, largest = 0, norm2 = 0;
  s->tau[k] = s->off[k] = 0;
  for (size_t i = 0; i < m; i++) largest = fmax(largest, fabs(v[i]));
  if (!(largest > 0)) return;
  for (size_t i = 0; i < m; i++) v[i] /= largest;
  norm2 = dot(m, v, v);
  const double alpha = -copysign(sqrt(norm2), v[0]);
  s->off[k] = alpha * largest;
  s->tau[k] = 1 / (norm2 - alpha * v[0]);
  v[0] -= alpha;
}

/* values, s->off: the tridiagonal form; vectors: its axes. */
static void reduce(size_t n, double *a, double *values, double *vectors, const axes_room *s) {
  for (size_t k = 0; k + 1 < n; k++) {
    const size_t m = n - k - 1;
    double *v = a + k + 1 + k * n, *rest = a + k + 1 + (k + 1) * n;
    values[k] = a[k + k * n];
    take_reflection(n, k, a, s);
    if (s->tau[k] == 0) continue;
    product_version()(m, n, rest, v, s->tau[k], s->w);
    subtract(m, s->tau[k] / 2 * dot(m, s->w, v), v, s->w);
    rank_two_version()(m, n, v, s->w, rest);
  }
  values[n - 1] = a[n * n - 1];
  memset(vectors, 0, n * n * sizeof *vectors);
  for (size_t k = 0; k < n; k++) vectors[k + k * n] = 1;
  for (size_t k = n - 1; k-- > 0;)
    reflect_version()(n - k - 1, n, a + k + 1 + k * n, s->tau[k],
                      vectors + k + 1 + (k + 1) * n);
}

/* One QL sweep over rows l .. m of a matrix of norm about 1. */
static void sweep(size_t n, size_t l, size_t m, double *d, double *off, double *vectors) {
  const double half = (d[l + 1] - d[l]) / (2 * off[l]);
  double g = d[m] - d[l] + off[l] / (half + copysign(sqrt(half * half + 1), half));
  double s = 1, c = 1, moved = 0;
  for (size_t i = m; i-- > l;) {
    const double f = s * off[i], b = c * off[i], r = sqrt(f * f + g * g);
    off[i + 1] = r;
    if (r == 0) { /* the matrix has come apart */
      d[i + 1] -= moved;
      off[m] = 0;
      return;
    }
    s = f / r;
    c = g / r;
    g = d[i + 1] - moved;
    const double turn = (d[i] - g) * s + 2 * c * b;
    moved = s * turn;
    d[i + 1] = g + moved;
    g = c * turn - b;
    rotate_version()(n, c, s, vectors + i * n, vectors + (i + 1) * n);
  }
  d[l] -= moved;
  off[l] = g;
  off[m] = 0;
}

km_status km_axes(size_t n, double *a, double *values, double *vectors, double *work) {
  axes_room s;
  lay_out(&s, n, work);
  reduce(n, a, values, vectors, &s);
  s.off[n - 1] = 0;
  double norm = 0;
  for (size_t i = 0; i < n; i++) {
    const double size = fabs(values[i]) + fabs(s.off[i]);
    if (!(size <= DBL_MAX)) return KM_NO_CONVERGENCE; /* NaN, which fmax() would pass over */
    norm = fmax(norm, size);
  }
  if (norm == 0) return KM_OK;
  for (size_t i = 0; i < n; i++) {
    values[i] /= norm;
    s.off[i] /= norm;
  }
  for (size_t l = 0, sweeps = 0; l < n;) {
    size_t m = l;
    while (m + 1 < n && !(fabs(s.off[m]) <= DBL_EPSILON / 4)) m++;
    if (m == l) {
      l++;
      sweeps = 0;
      continue;
    }
    if (sweeps++ > MOST_SWEEPS) return KM_NO_CONVERGENCE;
    sweep(n, l, m, values, s.off, vectors);
  }
  for (size_t i = 0; i < n; i++) values[i] *= norm;
  return KM_OK;
}
