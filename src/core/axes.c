#include "core/axes.h"
#include "core/isa.h"
#include "core/plain.h"
#include "core/scratch.h"

#include <float.h>
#include <math.h>

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
  const int exponent = km_plain_scale(n, a);
  km_plain_tridiag(n, a, values, s.off, s.tau, s.w);
  km_plain_axes(n, a, s.tau, vectors);
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
  for (size_t i = 0; i < n; i++) values[i] = ldexp(values[i] * norm, exponent);
  return KM_OK;
}
