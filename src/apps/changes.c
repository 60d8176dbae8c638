#include "apps/changes.h"
#include "core/isa.h"
#include "core/scratch.h"

#include <math.h>
#include <string.h>

/*
 * Gains: S = sum d d' / (n - 1) over differences of neighbors d / sqrt(2), of which jumps are few;
 * the metric is L L' = (1 - rho) S + rho I, Ledoit and Wolf's rho with the identity as target
 * (J. Multivariate Anal. 88, 2004), that of bins which differ by independent rows alone; with sums
 * c_t of the first t bins a cut gains |L^{-1} c_t|^2 n / (t (n - t)). 2 n r^2 + r^3 / 3 flops an
 * order. Segments: dynamic programming, n^2 most / 2 steps.
 */

enum { WORKERS = 32, PANEL = 64 };

static const double least_shrinkage = 0.05;

typedef struct {
  double *metric;     /* r x r, then its lower Cholesky factor */
  double *difference; /* r */
  double *sums;       /* n x r */
} room;

static size_t lay_out(room *own, size_t n, size_t r, double *work) {
  km_scratch scratch = {work, 0};
  own->metric = take(&scratch, r * r);
  own->difference = take(&scratch, r);
  own->sums = take(&scratch, n * r);
  return scratch.used;
}

size_t km_cut_gains_work(size_t n, size_t r, size_t count) {
  room own;
  return smaller(WORKERS, count) * lay_out(&own, n, r, NULL);
}

/* The lower half of (1 - rho) S + rho I. */
static void find_metric(const km_cuts *cuts, const int *order, const room *own) {
  const size_t r = cuts->r;
  const double h = (double) (cuts->n - 1);
  const double half = sqrt(0.5);
  double *s = own->metric, *d = own->difference, fourth = 0, square = 0, trace = 0;
  memset(s, 0, r * r * sizeof *s);
  for (size_t t = 1; t < cuts->n; t++) {
    const double *now = cuts->x + r * (size_t) (order[t] - 1);
    const double *before = cuts->x + r * (size_t) (order[t - 1] - 1);
    double norm2 = 0;
    for (size_t i = 0; i < r; i++) {
      d[i] = (now[i] - before[i]) * half;
      norm2 += d[i] * d[i];
    }
    fourth += norm2 * norm2;
    for (size_t j = 0; j < r; j++) {
      const double times = d[j];
      double *column = s + j * r;
      SIMD
      for (size_t i = j; i < r; i++) column[i] += times * d[i];
    }
  }
  for (size_t j = 0; j < r; j++)
    for (size_t i = j; i < r; i++) {
      const double value = s[i + j * r] /= h;
      square += (i > j ? 2 : 1) * value * value;
      if (i == j) trace += value;
    }
  const double apart = (fourth / h - square) / h;
  const double rho = fmin(1, fmax(least_shrinkage, apart / (square - 2 * trace + (double) r)));
  for (size_t j = 0; j < r; j++) {
    for (size_t i = j; i < r; i++) s[i + j * r] *= 1 - rho;
    s[j + j * r] += rho;
  }
}

/* Eigenvalues are rho at least. */
static void factor_metric(size_t r, double *l) {
  for (size_t j = 0; j < r; j++) {
    const double root = sqrt(l[j + j * r]);
    for (size_t i = j; i < r; i++) l[i + j * r] /= root;
    for (size_t k = j + 1; k < r; k++) {
      const double times = l[k + j * r];
      double *column = l + k * r;
      const double *first = l + j * r;
      SIMD
      for (size_t i = k; i < r; i++) column[i] -= times * first[i];
    }
  }
}

static void add_up(const km_cuts *cuts, const int *order, double *sums) {
  const size_t n = cuts->n, r = cuts->r;
  for (size_t t = 0; t + 1 < n; t++) {
    const double *bin = cuts->x + r * (size_t) (order[t] - 1);
    for (size_t j = 0; j < r; j++)
      sums[t + j * n] = (t ? sums[t - 1 + j * n] : 0) + bin[j];
  }
}

static void find_gains(const km_cuts *cuts, const int *order, const room *own, double *gains) {
  const size_t n = cuts->n, r = cuts->r, m = n - 1;
  find_metric(cuts, order, own);
  factor_metric(r, own->metric);
  add_up(cuts, order, own->sums);
  memset(gains, 0, m * sizeof *gains);
  for (size_t j = 0; j < r; j++) {
    double *own_sums = own->sums + j * n;
    for (size_t k = 0; k < j; k++) {
      const double times = own->metric[j + k * r], *before = own->sums + k * n;
      SIMD
      for (size_t t = 0; t < m; t++) own_sums[t] -= times * before[t];
    }
    const double root = own->metric[j + j * r];
    SIMD
    for (size_t t = 0; t < m; t++) {
      own_sums[t] /= root;
      gains[t] += own_sums[t] * own_sums[t];
    }
  }
  for (size_t t = 0; t < m; t++) {
    const size_t first = t + 1, second = n - first;
    const int wanted = first >= cuts->least && second >= cuts->least;
    gains[t] *= wanted ? (double) n / ((double) first * (double) second) : 0;
  }
}

void km_cut_gains(const km_cuts *cuts, double *gains, double *work, km_poll poll) {
  const size_t n = cuts->n, r = cuts->r, workers = smaller(WORKERS, cuts->count);
  const double each = (double) r * (double) r * (2 * (double) n + (double) r / 3);
  room own;
  const size_t size = lay_out(&own, n, r, NULL);
  for (size_t first = 0; first < cuts->count; first += PANEL) {
    const size_t count = smaller(PANEL, cuts->count - first);
    poll();
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(cuts, gains, work) \
    firstprivate(n, r, workers, first, count, size) schedule(static) \
    num_threads(km_threads(each * (double) count / 4))
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

/* For each j backwards from it, work_i: the sum of gram_si over s = i + 1 .. j. */
void km_segment_costs(size_t n, const double *gram, double *costs, double *work) {
  memset(costs, 0, n * n * sizeof *costs);
  memset(work, 0, n * sizeof *work);
  for (size_t j = 0; j < n; j++) {
    double squares = 0, all = 0;
    for (size_t i = j + 1; i-- > 0;) {
      const double own = gram[i + i * n];
      if (i < j) work[i] += gram[i + j * n];
      squares += own;
      all += own + 2 * work[i];
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
