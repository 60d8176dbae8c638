#include "core/lowrank.h"
#include "core/isa.h"
#include "core/scratch.h"

#include <math.h>
#include <string.h>

/*
 * Incomplete Cholesky with diagonal pivoting: step r takes the point p of largest residual (the
 * first of several), evaluates the column K e_p and sets F e_r = (K e_p - F F_p') / sqrt(residual
 * of p). The residuals are the diagonal of K - FF', which is positive semi-definite: their sum
 * bounds every error. n rank^2 flops, n cap doubles; no n x n matrix is formed.
 */

static const double tolerance = 1e-13;
enum { SHORT = 16 }; /* threads for a step only where there is so many times the usual work */

typedef struct {
  double *f, *residual, *column, *work;
} factors;

static size_t lay_out(factors *s, const km_source *source, size_t cap, double *work) {
  km_scratch scratch = {work, 0};
  s->f = take(&scratch, source->n * cap);
  s->residual = take(&scratch, source->n);
  s->column = take(&scratch, source->n);
  s->work = take(&scratch, km_fold_column_work(source));
  return scratch.used;
}

size_t km_lowrank_work(const km_source *source, size_t cap) {
  factors s;
  return lay_out(&s, source, cap, NULL);
}

/* Column r of f, and the residuals without it. */
static void add_column(size_t n, size_t cap, size_t r, size_t p, const double *column, double *f,
                       double *residual) {
  const double root = sqrt(residual[p]);
  const double *pivot = f + p * cap;
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(n, cap, r, p, column, f, residual, root, pivot) \
    schedule(dynamic, 128) num_threads(km_threads((double) (n * r / SHORT)))
#endif
  for (size_t i = 0; i < n; i++) {
    double *row = f + i * cap;
    double sum = 0;
    SIMD_SUMS(sum)
    for (size_t c = 0; c < r; c++) sum += row[c] * pivot[c];
    /* Of a point that is accounted for there is only rounding left. */
    if (residual[i] <= 0) {
      row[r] = 0;
    } else if (i != p) {
      row[r] = (column[i] - sum) / root;
      residual[i] -= row[r] * row[r];
    }
  }
  f[p * cap + r] = root;
  residual[p] = 0;
}

size_t km_lowrank(const km_source *source, size_t cap, double *work, km_poll poll) {
  const size_t n = source->n;
  factors s;
  double trace = 0;
  lay_out(&s, source, cap, work);
  km_diagonal(source, s.residual);
  for (size_t i = 0; i < n; i++) trace += s.residual[i];
  for (size_t r = 0; r <= cap; r++) {
    size_t p = 0;
    double left = 0;
    for (size_t i = 0; i < n; i++) {
      if (s.residual[i] > s.residual[p]) p = i;
      if (s.residual[i] > 0) left += s.residual[i];
    }
    if (left <= tolerance * trace) return r;
    if (r == cap) break;
    km_fold_column(source, p, s.column, s.work);
    add_column(n, cap, r, p, s.column, s.f, s.residual);
    if (poll) poll();
  }
  return cap + 1;
}

void km_lowrank_center(size_t n, const double *f, size_t cap, size_t rank, double *factor) {
  for (size_t i = 0; i < n; i++) memcpy(factor + i * rank, f + i * cap, rank * sizeof *factor);
  for (size_t c = 0; c < rank; c++) {
    double mean = 0;
    for (size_t i = 0; i < n; i++) mean += factor[i * rank + c];
    mean /= (double) n;
    for (size_t i = 0; i < n; i++) factor[i * rank + c] -= mean;
  }
}
