#include "apps/fda.h"
#include "core/cholesky.h"
#include "core/dense.h"
#include "core/scratch.h"

#include <float.h>
#include <math.h>
#include <string.h>

/*
 * Without point i of class c (n_c points, d = d_i) the scatter is that of the other rows and
 * columns less n_c/(n_c - 1) dd', and M_c becomes M_c - d/(n_c - 1). All vectors are combinations
 * of the columns of X = [M_1, ..., M_C, d]; without row and column i the products are
 *   G = X'PX - (X'Pe_i)(e_i'PX)/P_ii,
 * and Sherman-Morrison gives those with dd' left out. With S the coefficients of sqrt(n_k) (M_k -
 * M) and w those of k_i - M_k, E = S'GS and u = S'Gw, the squared distance on the axes is u'E^+ u,
 * whatever their rotation. u lies in the range of E, of rank C - 1 at most: elimination with the
 * largest pivot left gives it, up to pivots that are rounding of what E is added up from.
 * Of products that a large r makes too small for numbers one factor is divided first. With T =
 * L^{-1} and P = T'T the products of a point are dots of columns of T and of T times `within`, and
 * products with PM. 4 n^3 / 3 flops, and some 8 (C + 1)^3 a point; 2 n^2 doubles, and 5 (C + 1)^2 a
 * worker.
 */

enum { WORKERS = 32, FEWEST = 8 };

static const double poll_work = 134217728; /* operations between two polls */

typedef struct {
  double *g;              /* (C + 1) x (C + 1), row-major, as the others are */
  double *spread, *times; /* S and GS, (C + 1) x C */
  double *inner, *sides;  /* E and the u of each class as columns, C x C */
  double *column;         /* C + 1 */
} room;

/* The products that points are left out by. */
typedef struct {
  double *at;     /* n x (classes + 1): e_i'P[M, d_i] */
  double *means;  /* classes x classes: M'PM */
  double *inner;  /* n x classes: d_i'PM */
  double *square; /* n: d_i'Pd_i */
  double *pivot;  /* n: P_ii */
  double *white, *inverse; /* n x n, with a factor */
  double *own;             /* of dense algebra, and then of the workers */
} tables;

static size_t lay_out(room *r, size_t classes, double *work) {
  km_scratch scratch = {work, 0};
  const size_t last = classes + 1;
  r->g = take(&scratch, last * last);
  r->spread = take(&scratch, last * classes);
  r->times = take(&scratch, last * classes);
  r->inner = take(&scratch, classes * classes);
  r->sides = take(&scratch, classes * classes);
  r->column = take(&scratch, last);
  return scratch.used;
}

static size_t lay_out_tables(tables *t, const km_fda_fit *fit, double *work) {
  km_scratch scratch = {work, 0};
  const size_t n = fit->n, c = fit->classes;
  room r;
  t->at = take(&scratch, n * (c + 1));
  t->means = take(&scratch, c * c);
  t->inner = take(&scratch, n * c);
  t->square = take(&scratch, n);
  t->pivot = take(&scratch, n);
  t->white = take_aligned(&scratch, fit->factor ? n * n : 0);
  t->inverse = take_aligned(&scratch, fit->factor ? n * n : 0);
  size_t own = larger(km_product_work(n, c, n), km_product_work(c, c, n));
  own = larger(own, room_that_fits(FEWEST, WORKERS, lay_out(&r, c, NULL)));
  if (fit->factor) {
    own = larger(own, larger(km_triangle_solve_work(n, n), km_triangle_solve_work(n, c)));
    own = larger(own, km_triangle_inverse_work(n));
  }
  t->own = take_aligned(&scratch, own);
  return scratch.used;
}

size_t km_fda_left_out_work(const km_fda_fit *fit) {
  tables t;
  return lay_out_tables(&t, fit, NULL);
}

/* out <- A'PM, A: n x columns. */
static void multiply_means(const km_fda_fit *fit, const tables *t, const double *a, size_t columns,
                           double *out, km_poll poll) {
  const km_product product = {.m = columns,
                              .n = fit->classes,
                              .depth = fit->n,
                              .times = 1,
                              .a = {a, fit->n, 1},
                              .b = {t->at, 1, fit->n},
                              .c = out,
                              .ldc = columns,
                              .fresh = 1};
  km_multiply_add(&product, t->own, poll);
}

static void fill(const km_fda_fit *fit, const tables *t, km_poll poll) {
  const size_t n = fit->n, c = fit->classes;
  const double *white = fit->within;
  double *last = t->at + n * c;
  memcpy(t->at, fit->means, n * c * sizeof *t->at);
  if (fit->factor) {
    for (int transposed = 0; transposed < 2; transposed++)
      km_triangle_solve(n, c, fit->factor, n, transposed, t->at, n, t->own, poll);
    memcpy(t->white, fit->within, n * n * sizeof *t->white);
    km_triangle_solve(n, n, fit->factor, n, 0, t->white, n, t->own, poll);
    km_triangle_inverse(n, fit->factor, t->inverse, t->own, poll);
    km_column_dots(n, n, t->inverse, t->inverse, t->pivot);
    km_column_dots(n, n, t->inverse, t->white, last);
    white = t->white;
  } else {
    for (size_t i = 0; i < n; i++) {
      t->pivot[i] = 1;
      last[i] = fit->within[i + i * n];
    }
  }
  km_column_dots(n, n, white, white, t->square);
  multiply_means(fit, t, fit->means, c, t->means, poll);
  multiply_means(fit, t, fit->within, n, t->inner, poll);
}

/* G of point i. */
static void products(const km_fda_fit *fit, const tables *t, size_t i, const room *r) {
  const size_t n = fit->n, c = fit->classes, size = c + 1;
  for (size_t a = 0; a < size; a++)
    for (size_t b = 0; b <= a; b++) {
      const double whole = a < c   ? t->means[a + b * c]
                           : b < c ? t->inner[i + b * n]
                                   : t->square[i];
      r->g[a * size + b] = whole - t->at[i + a * n] * (t->at[i + b * n] / t->pivot[i]);
    }
  if (fit->factor) {
    const double points = fit->counts[fit->of[i] - 1], times = points / (points - 1);
    memcpy(r->column, r->g + c * size, size * sizeof *r->column);
    const double share = times / (1 - times * r->column[c]);
    for (size_t a = 0; a < size; a++)
      for (size_t b = 0; b <= a; b++) r->g[a * size + b] += share * r->column[a] * r->column[b];
  }
  for (size_t a = 0; a < size; a++)
    for (size_t b = 0; b < a; b++) r->g[b * size + a] = r->g[a * size + b];
}

/* S, where `own` is the class of the point that is left out. */
static void spreads(const km_fda_fit *fit, size_t own, const room *r) {
  const size_t c = fit->classes;
  const double others = (double) fit->n - 1;
  for (size_t k = 0; k < c; k++) {
    const double left = fit->counts[k] - (k == own), root = sqrt(left);
    for (size_t a = 0; a < c; a++)
      r->spread[a * c + k] = root * ((a == k) - (fit->counts[a] - (a == own)) / others);
    r->spread[c * c + k] = root * (1 / others - (k == own) / (fit->counts[k] - 1));
  }
}

/* GS, E, the sides u; returns what E is added up from, at most. */
static double forms(const km_fda_fit *fit, size_t own, const room *r) {
  const size_t c = fit->classes, size = c + 1;
  double most = 0;
  for (size_t k = 0; k < c; k++) {
    double sizes = 0;
    for (size_t a = 0; a < size; a++) {
      double sum = 0, terms = 0;
      for (size_t b = 0; b < size; b++) {
        const double term = r->g[a * size + b] * r->spread[b * c + k];
        sum += term;
        terms += fabs(term);
      }
      r->times[a * c + k] = sum;
      sizes += fabs(r->spread[a * c + k]) * terms;
    }
    most = fmax(most, sizes);
  }
  memset(r->inner, 0, c * c * sizeof *r->inner);
  for (size_t j = 0; j < c; j++) {
    for (size_t a = 0; a < size; a++)
      for (size_t k = 0; k < c; k++)
        r->inner[j * c + k] += r->spread[a * c + j] * r->times[a * c + k];
    const double *own_row = r->times + own * c, *last_row = r->times + c * c;
    for (size_t k = 0; k < c; k++)
      r->sides[j * c + k] = own_row[j] + last_row[j] - r->times[k * c + j];
    r->sides[j * c + own] += last_row[j] / (fit->counts[own] - 1);
  }
  return most;
}

/* The distances of point i, by elimination. */
static void solve(const km_fda_fit *fit, size_t i, double most, const room *r, double *distances) {
  const size_t n = fit->n, c = fit->classes;
  double *e = r->inner, *u = r->sides;
  for (size_t k = 0; k < c; k++) distances[i + k * n] = 0;
  for (size_t step = 0; step + 1 < c; step++) {
    size_t p = 0;
    for (size_t j = 1; j < c; j++)
      if (e[j * c + j] > e[p * c + p]) p = j;
    const double pivot = e[p * c + p];
    if (!(pivot > (double) n * DBL_EPSILON * most)) return;
    for (size_t k = 0; k < c; k++) distances[i + k * n] += u[p * c + k] * (u[p * c + k] / pivot);
    for (size_t j = 0; j < c; j++) {
      if (j == p || e[j * c + p] == 0) continue;
      const double share = e[j * c + p] / pivot;
      for (size_t k = 0; k < c; k++) {
        e[j * c + k] -= share * e[p * c + k];
        u[j * c + k] -= share * u[p * c + k];
      }
    }
    for (size_t k = 0; k < c; k++) e[p * c + k] = e[k * c + p] = 0;
  }
}

void km_fda_left_out(const km_fda_fit *fit, double *distances, double *work, km_poll poll) {
  room r;
  tables t;
  lay_out_tables(&t, fit, work);
  fill(fit, &t, poll);
  const size_t size = lay_out(&r, fit->classes, NULL);
  const size_t workers = workers_that_fit(FEWEST, WORKERS, size);
  const double c = (double) fit->classes + 1, each = 8 * c * c * c;
  const size_t at_once = larger(workers, (size_t) (poll_work / each));
  for (size_t first = 0; first < fit->n; first += at_once) {
    const size_t count = smaller(at_once, fit->n - first);
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(fit, t, distances) \
    firstprivate(size, workers, first, count, each) schedule(static) \
    num_threads(km_threads((double) count * each))
#endif
    for (size_t worker = 0; worker < workers; worker++) {
      room own;
      lay_out(&own, fit->classes, t.own + worker * size);
      for (size_t i = first + share_start(count, workers, worker);
           i < first + share_start(count, workers, worker + 1); i++) {
        const size_t class_of = (size_t) fit->of[i] - 1;
        products(fit, &t, i, &own);
        spreads(fit, class_of, &own);
        solve(fit, i, forms(fit, class_of, &own), &own, distances);
      }
    }
    if (poll) poll();
  }
}
