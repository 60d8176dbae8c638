#include "apps/changes.h"
#include "core/isa.h"
#include "core/scratch.h"
#include "core/shrunk.h"

#include <math.h>
#include <string.h>

/*
 * Gains: S of the differences of neighbors / sqrt(2), of which jumps are few, is shrunk to the
 * identity (core/shrunk.h), L L'; with sums c_t of the first t bins a cut gains
 * |L^{-1} c_t|^2 n / (t (n - t)). 2 n r^2 + r^3 / 3 flops an order. Segments: dynamic programming,
 * n^2 most / 2 steps.
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

size_t km_segment_costs_work(size_t n, size_t r) { return 2 * n * r + r * r + n; }

/* For each j backwards from it, before_i: the sum of y_s'y_i over s = i + 1 .. j. */
void km_segment_costs(size_t n, size_t r, const double *x, size_t count, const int *cuts,
                      double *costs, double *work) {
  double *y = work, *d = y + n * r, *s = d + n * r, *before = s + r * r;
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
  memset(costs, 0, n * n * sizeof *costs);
  memset(before, 0, n * sizeof *before);
  for (size_t j = 0; j < n; j++) {
    double squares = 0, all = 0;
    for (size_t i = j + 1; i-- > 0;) {
      double inner = 0, own = 0;
      for (size_t l = 0; l < r; l++) {
        inner += y[l + i * r] * y[l + j * r];
        own += y[l + i * r] * y[l + i * r];
      }
      if (i < j) before[i] += inner;
      squares += own;
      all += own + 2 * before[i];
      costs[i + j * n] = squares - all / (double) (j - i + 1);
    }
  }
}

void km_segments(size_t n, const double *costs, size_t least, size_t most, double *totals,
                 int *last, double *work, km_poll poll) {
  double *now = work, *before = work + n;
  memset(last, 0, n * most * sizeof *last);
  for (size_t j = 0; j < n; j++) {
    now[j] = j + 1 < least ? INFINITY : costs[j * n];
    if (j + 1 >= least) last[j] = 1;
  }
  totals[0] = now[n - 1];
  for (size_t count = 1; count < most; count++) {
    double *swap = before;
    before = now;
    now = swap;
    poll();
    for (size_t j = 0; j < n; j++) {
      now[j] = INFINITY;
      for (size_t i = count * least; i + least <= j + 1; i++) {
        const double total = before[i - 1] + costs[i + j * n];
        if (total < now[j]) {
          now[j] = total;
          last[j + count * n] = (int) i + 1;
        }
      }
    }
    totals[count] = now[n - 1];
  }
}
