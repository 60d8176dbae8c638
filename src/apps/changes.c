#include "apps/changes.h"
#include "core/dense.h"
#include "core/isa.h"
#include "core/scratch.h"
#include "core/shrunk.h"

#include <math.h>
#include <string.h>

/*
 * Gains: S of the differences of neighbors / sqrt(2), of which jumps are few, is shrunk to the
 * identity (core/shrunk.h), L L'; with sums c_t of the first t bins a cut gains
 * |L^{-1} c_t|^2 n / (t (n - t)). 2 n r^2 + r^3 / 3 flops an order. Segments: the inner
 * products of bins are one product of matrices, n^2 r flops, and sums of theirs costs; dynamic
 * programming takes n^2 most / 2 steps.
 */

enum { WORKERS = 32, PANEL = 64, STRIP = 64 };

typedef struct {
  double *metric; /* r x r, then its lower Cholesky factor */
  double *sums;   /* n x r, before that differences, r x (n - 1) */
} room;

static size_t lay_out(room *own, size_t n, size_t r, double *work) {
  km_scratch scratch = {work, 0};
  own->metric = take(&scratch, r * r);
  own->sums = take(&scratch, n * r);
  return scratch.used;
}

size_t km_cut_gains_work(size_t n, size_t r, size_t count) {
  room own;
  return smaller(WORKERS, count) * lay_out(&own, n, r, NULL);
}

static void take_difference(size_t r, const double *now, const double *before, double *d) {
  const double half = sqrt(0.5);
  for (size_t i = 0; i < r; i++) d[i] = (now[i] - before[i]) * half;
}

static void find_metric(const km_cuts *cuts, const int *order, const room *own) {
  const size_t r = cuts->r, count = cuts->n - 1;
  for (size_t t = 0; t < count; t++)
    take_difference(r, cuts->x + r * (size_t) (order[t + 1] - 1),
                    cuts->x + r * (size_t) (order[t] - 1), own->sums + t * r);
  const double rho = km_shrunk_moments(count, r, own->sums, (double) count, own->metric);
  km_factor_shrunk(r, rho, own->metric);
}

static void add_up(const km_cuts *cuts, const int *order, double *sums) {
  const size_t n = cuts->n, r = cuts->r;
  for (size_t t = 0; t + 1 < n; t++) {
    const double *bin = cuts->x + r * (size_t) (order[t] - 1);
    for (size_t j = 0; j < r; j++)
      sums[t + j * n] = (t ? sums[t - 1 + j * n] : 0) + bin[j];
  }
}

/* Squares of L^{-1} c_t, for `count` of the sums, which stay in the cache. */
static void whiten_strip(size_t count, size_t n, size_t r, const double *l, double *sums,
                         double *gains) {
  for (size_t j = 0; j < r; j++) {
    double *own = sums + j * n;
    size_t k = 0;
    for (; k + 4 <= j; k += 4) {
      const double *by = l + j + k * r, *c = sums + k * n, *c1 = c + n, *c2 = c1 + n, *c3 = c2 + n;
      const double b = by[0], b1 = by[r], b2 = by[2 * r], b3 = by[3 * r];
      SIMD
      for (size_t t = 0; t < count; t++)
        own[t] = own[t] - b * c[t] - b1 * c1[t] - b2 * c2[t] - b3 * c3[t];
    }
    for (; k < j; k++) {
      const double times = l[j + k * r], *before = sums + k * n;
      SIMD
      for (size_t t = 0; t < count; t++) own[t] -= times * before[t];
    }
    const double root = l[j + j * r];
    SIMD
    for (size_t t = 0; t < count; t++) {
      own[t] /= root;
      gains[t] += own[t] * own[t];
    }
  }
}

static void find_gains(const km_cuts *cuts, const int *order, const room *own, double *gains) {
  const size_t n = cuts->n, r = cuts->r, m = n - 1;
  find_metric(cuts, order, own);
  add_up(cuts, order, own->sums);
  memset(gains, 0, m * sizeof *gains);
  for (size_t t = 0; t < m; t += STRIP)
    whiten_strip(smaller(STRIP, m - t), n, r, own->metric, own->sums + t, gains + t);
  for (size_t t = 0; t < m; t++) {
    const size_t first = t + 1, second = n - first;
    const int wanted = first >= cuts->least && second >= cuts->least;
    gains[t] *= wanted ? (double) n / ((double) first * (double) second) : 0;
  }
}

void km_cut_gains(const km_cuts *cuts, double *gains, double *work, km_poll poll) {
  const size_t n = cuts->n, r = cuts->r, workers = smaller(WORKERS, cuts->count);
  room own;
  const size_t size = lay_out(&own, n, r, NULL);
  for (size_t first = 0; first < cuts->count; first += PANEL) {
    const size_t count = smaller(PANEL, cuts->count - first);
    poll();
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(cuts, gains, work) \
    firstprivate(n, r, workers, first, count, size) schedule(static) \
    num_threads(km_threads((double) (r * r * (2 * n + r / 3)) * (double) count / 4))
#endif
    for (size_t worker = 0; worker < workers; worker++) {
      room mine;
      lay_out(&mine, n, r, work + worker * size);
      const size_t begin = first + share_start(count, workers, worker);
      const size_t end = begin + share_size(count, workers, worker);
      for (size_t c = begin; c < end; c++)
        find_gains(cuts, cuts->orders + c * n, &mine, gains + c * (n - 1));
    }
  }
}

/* --- Segments ---------------------------------------------------------------- */

size_t km_segment_costs_work(size_t n, size_t r) {
  return 2 * n * r + r * r + 2 * n + km_product_work(n, n, r);
}

/*
 * Inner products of bins become costs, from the last bin i that may be first on back. before_j: the
 * sum of y_s'y_j over s = i .. j - 1; all: that of y_s'y_t over s, t = i .. j; own_j: y_j'y_j.
 */
static void add_costs(size_t n, double *costs, double *own, double *before, km_poll poll) {
  memset(before, 0, n * sizeof *before);
  for (size_t i = n; i-- > 0;) {
    double *column = costs + i * n, squares = own[i] = column[i], all = squares;
    if (i % PANEL == 0) poll();
    column[i] = 0;
    SIMD
    for (size_t j = i + 1; j < n; j++) before[j] += column[j];
    for (size_t j = i + 1; j < n; j++) {
      squares += own[j];
      all += own[j] + 2 * before[j];
      column[j] = squares - all / (double) (j - i + 1);
    }
  }
}

void km_segment_costs(size_t n, size_t r, const double *x, size_t count, const int *cuts,
                      double *costs, double *work, km_poll poll) {
  double *y = work, *d = y + n * r, *s = d + n * r, *own = s + r * r, *before = own + n;
  size_t next = 0, differences = 0;
  for (size_t t = 1; t < n; t++) {
    const int apart = next < count && (size_t) cuts[next] == t;
    next += (size_t) apart;
    if (!apart) take_difference(r, x + t * r, x + (t - 1) * r, d + r * differences++);
  }
  const double rho = km_shrunk_moments(differences, r, d, (double) differences, s);
  km_factor_shrunk(r, rho, s);
  memcpy(y, x, n * r * sizeof *y);
  km_whiten(n, r, s, y);
  const km_product inner = {n, n, r, 1, {y, r, 1}, {y, 1, r}, costs, n, 1, 1};
  km_multiply_add(&inner, before + n, poll);
  add_costs(n, costs, own, before, poll);
}

/* The last segment of bins 0 .. j begins with bin i, if that costs less than what is known. */
static void try_start(size_t n, size_t i, size_t least, double sum, const double *costs,
                      double *restrict best, int *restrict last) {
  const int start = (int) i + 1;
  SIMD
  for (size_t j = i + least - 1; j < n; j++) {
    const double total = sum + costs[j];
    const int better = total < best[j];
    best[j] = better ? total : best[j];
    last[j] = better ? start : last[j];
  }
}

/* best: of c + 1 segments of bins 0 .. j at best[j + c n]. Starts come in their order, and what
   ends before one is settled when it comes. */
void km_segments(size_t n, const double *costs, size_t least, size_t most, double *totals,
                 int *last, double *best, km_poll poll) {
  memset(last, 0, n * most * sizeof *last);
  for (size_t j = 0; j < n * most; j++) best[j] = INFINITY;
  try_start(n, 0, least, 0, costs, best, last);
  for (size_t i = least; i + least <= n; i++) {
    if (i % PANEL == 0) poll();
    for (size_t c = 1; c < most && c * least <= i; c++)
      try_start(n, i, least, best[i - 1 + (c - 1) * n], costs + i * n, best + c * n, last + c * n);
  }
  for (size_t c = 0; c < most; c++) totals[c] = best[n - 1 + c * n];
}
