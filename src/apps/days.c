#include "apps/days.h"
#include "core/eigen.h"
#include "core/order.h"
#include "core/scratch.h"
#include "core/shrunk.h"

#include <float.h>
#include <math.h>
#include <string.h>

/*
 * Scores: concentration steps (Rousseeuw and van Driessen, Technometrics 41, 1999) from distances
 * to coordinate medians in units of max(1, mad), with the metric of core/shrunk.h. With S = V
 * diag(s) V' of the h kept days, a day of noise b is judged by (1 - rho) S + (rho + b - 1) I, with
 * eigenvalues of b min(1/2, rho + (1 - b)_+) at least, no limit where b = 1; without a kept day S
 * is (h - 1)/(h - 2) S less a term of rank one (Sherman and Morrison). 6 (n r^2 + some 10 r^3)
 * flops, r (2 n + 2 r) doubles and what eigenvectors take.
 */

enum { STEPS = 4 };

static const double share_kept = 0.75, mad_units = 1.4826, least_left = 0.01;

typedef struct {
  size_t n, r, h;
  double *x, *noise, *distances;     /* in the order of the first coordinate */
  double *y;                         /* r: of one day */
  double *points, *s, *vectors;      /* kept: r x h; r x r each */
  double *center, *values, *column;  /* r, r, n */
  double rho;
  double *eigen;
  int *order, *near, *before, *integers;
} scoring;

static size_t lay_out(scoring *a, size_t n, size_t r, double *work) {
  km_scratch scratch = {work, 0};
  a->x = take(&scratch, n * r);
  a->noise = take(&scratch, n);
  a->distances = take(&scratch, n);
  a->y = take(&scratch, r);
  a->points = take(&scratch, n * r);
  a->s = take(&scratch, r * r);
  a->vectors = take(&scratch, r * r);
  a->center = take(&scratch, r);
  a->values = take(&scratch, r);
  a->column = take(&scratch, n);
  a->eigen = take(&scratch, km_eigen_work(r, r, 1));
  return scratch.used;
}

static size_t lay_out_ints(scoring *a, size_t n, size_t r, int *work) {
  km_int_scratch scratch = {work, 0};
  a->order = take_ints(&scratch, n);
  a->near = take_ints(&scratch, n);
  a->before = take_ints(&scratch, n);
  a->integers = take_ints(&scratch, km_eigen_iwork(r, 1));
  return scratch.used;
}

size_t km_day_scores_work(size_t n, size_t r) {
  scoring a;
  return lay_out(&a, n, r, NULL);
}

size_t km_day_scores_iwork(size_t n, size_t r) {
  scoring a;
  return lay_out_ints(&a, n, r, NULL);
}

static void start(scoring *a) {
  memset(a->distances, 0, a->n * sizeof *a->distances);
  for (size_t j = 0; j < a->r; j++) {
    for (size_t t = 0; t < a->n; t++) a->column[t] = a->x[j + t * a->r];
    const double middle = km_middle(a->n, a->column);
    for (size_t t = 0; t < a->n; t++) a->column[t] = fabs(a->x[j + t * a->r] - middle);
    const double unit = fmax(1, mad_units * km_middle(a->n, a->column));
    for (size_t t = 0; t < a->n; t++) {
      const double away = (a->x[j + t * a->r] - middle) / unit;
      a->distances[t] += away * away;
    }
  }
}

/* The metric of the days near[0 .. h - 1], in increasing order. */
static km_status find_metric(scoring *a, km_poll poll) {
  const size_t r = a->r, h = a->h;
  memset(a->center, 0, r * sizeof *a->center);
  for (size_t i = 0; i < h; i++)
    for (size_t j = 0; j < r; j++) a->center[j] += a->x[j + (size_t) a->near[i] * r];
  for (size_t j = 0; j < r; j++) a->center[j] /= (double) h;
  for (size_t i = 0; i < h; i++)
    for (size_t j = 0; j < r; j++)
      a->points[j + i * r] = a->x[j + (size_t) a->near[i] * r] - a->center[j];
  a->rho = km_shrunk_moments(h, r, a->points, (double) (h - 1), a->s);
  return km_eigen(r, a->s, r, a->values, a->vectors, 1, a->eigen, a->integers, poll);
}

/* a->y: squares along the eigenvectors; times: of S. */
static double distance(const scoring *a, double noise, double times) {
  const double floor = noise * fmin(0.5, a->rho + fmax(0, 1 - noise));
  double sum = 0;
  for (size_t j = 0; j < a->r; j++) {
    const double variance =
      (1 - a->rho) * times * fmax(a->values[j], 0) + (a->rho + (noise - 1));
    sum += a->y[j] / fmax(variance, floor);
  }
  return sum;
}

static void rotate(const scoring *a, size_t t) {
  for (size_t j = 0; j < a->r; j++) {
    double along = 0;
    for (size_t i = 0; i < a->r; i++)
      along += a->vectors[i + j * a->r] * (a->x[i + t * a->r] - a->center[i]);
    a->y[j] = along * along;
  }
}

static double left_out(const scoring *a, double noise) {
  const double h = (double) a->h, own = distance(a, noise, (h - 1) / (h - 2));
  const double less = (1 - a->rho) * h / ((h - 1) * (h - 2)) * own;
  return h * h / ((h - 1) * (h - 1)) * own / fmax(1 - less, least_left);
}

static void find_distances(const scoring *a, int leave, double *distances) {
  size_t next = 0;
  for (size_t t = 0; t < a->n; t++) {
    const int kept = next < a->h && (size_t) a->near[next] == t;
    next += (size_t) kept;
    rotate(a, t);
    distances[t] = kept && leave ? left_out(a, a->noise[t]) : distance(a, a->noise[t], 1);
  }
}

/* The h nearest, in the order of their numbers. */
static void keep_nearest(scoring *a) {
  size_t count = 0;
  km_order(a->n, a->distances, 1, a->near);
  memset(a->column, 0, a->n * sizeof *a->column);
  for (size_t i = 0; i < a->h; i++) a->column[a->near[i]] = 1;
  for (size_t t = 0; t < a->n; t++)
    if (a->column[t] > 0) a->near[count++] = (int) t;
}

static km_status concentrate(scoring *a, km_poll poll) {
  start(a);
  keep_nearest(a);
  for (size_t step = 0; step < STEPS; step++) {
    memcpy(a->before, a->near, a->h * sizeof *a->near);
    const km_status status = find_metric(a, poll);
    if (status != KM_OK) return status;
    find_distances(a, 0, a->distances);
    keep_nearest(a);
    if (!memcmp(a->before, a->near, a->h * sizeof *a->near)) break;
  }
  return find_metric(a, poll);
}

/* Of the last of n distances, in logs; a day that is where the others are has a tiny one. */
static double outlying_of(size_t n, const double *distances, const int *order) {
  double mean = 0, square = 0, last = 0;
  const double others = (double) (n - 1);
  for (size_t t = 0; t < n; t++) {
    if ((size_t) order[t] + 1 == n) last = log(fmax(distances[t], DBL_MIN));
    else mean += log(fmax(distances[t], DBL_MIN)) / others;
  }
  for (size_t t = 0; t < n; t++) {
    const double away = log(fmax(distances[t], DBL_MIN)) - mean;
    if ((size_t) order[t] + 1 < n) square += away * away;
  }
  if (last == mean) return 0;
  return (last - mean) / sqrt(square / (others - 1) * (1 + 1 / others));
}

km_status km_day_scores(const km_days *days, double *distances, double *outlying, int *kept,
                        double *work, int *iwork, km_poll poll) {
  const size_t n = days->n, r = days->r;
  scoring a = {.n = n, .r = r, .h = (size_t) ceil(share_kept * (double) n)};
  lay_out(&a, n, r, work);
  lay_out_ints(&a, n, r, iwork);
  km_order(n, days->x, r, a.order);
  for (size_t t = 0; t < n; t++) {
    memcpy(a.x + t * r, days->x + (size_t) a.order[t] * r, r * sizeof *a.x);
    a.noise[t] = days->noise[a.order[t]];
  }
  km_status status = concentrate(&a, poll);
  if (status != KM_OK) return status;
  find_distances(&a, 1, a.distances);
  memset(kept, 0, n * sizeof *kept);
  for (size_t i = 0; i < a.h; i++) kept[a.order[a.near[i]]] = 1;
  for (size_t t = 0; t < n; t++) distances[a.order[t]] = a.distances[t];
  a.h = n;
  for (size_t t = 0; t < n; t++) a.near[t] = (int) t;
  status = find_metric(&a, poll);
  if (status != KM_OK) return status;
  find_distances(&a, 1, a.distances);
  *outlying = outlying_of(n, a.distances, a.order);
  return KM_OK;
}

/* --- Neighbors --------------------------------------------------------------- */

static double squared_distance(size_t r, const double *a, const double *b) {
  double sum = 0;
  for (size_t j = 0; j < r; j++) sum += (a[j] - b[j]) * (a[j] - b[j]);
  return sum;
}

/*
 * Adds what a segment of m points makes of sum D(t, t - 1) less its mean, and its variance: pairs
 * of steps are the same, share a point, or are apart. rows: m.
 */
static void add_segment(size_t m, size_t r, const double *y, double *rows, double sums[2]) {
  double square = 0, stars = 0, all = 0, seen = 0;
  if (m < 4) return;
  memset(rows, 0, m * sizeof *rows);
  for (size_t j = 0; j < m; j++)
    for (size_t i = 0; i < j; i++) {
      const double d = squared_distance(r, y + i * r, y + j * r);
      square += 2 * d * d;
      rows[i] += d;
      rows[j] += d;
      if (i + 1 == j) seen += d;
    }
  for (size_t i = 0; i < m; i++) {
    stars += rows[i] * rows[i];
    all += rows[i];
  }
  const double n = (double) m, mean = all / n;
  const double apart = (all * all - 4 * stars + 2 * square) / (n * (n - 1));
  sums[0] += seen - mean;
  sums[1] += square / n + 2 * (stars - square) / (n * (n - 1)) + apart - mean * mean;
}

double km_neighbors(size_t r, const double *x, size_t count, const int *ends, double *work) {
  double sums[2] = {0, 0};
  size_t first = 0;
  for (size_t segment = 0; segment < count; segment++) {
    const size_t end = (size_t) ends[segment];
    add_segment(end - first, r, x + first * r, work, sums);
    first = end;
  }
  return sums[1] > 0 ? sums[0] / sqrt(sums[1]) : 0;
}
