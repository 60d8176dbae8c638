#include "core/lowrank.h"

#include <math.h>
#include <string.h>

/*
 * Incomplete Cholesky with diagonal pivoting: step r takes the point p of largest residual (the
 * first of several), evaluates the column K e_p and sets F e_r = (K e_p - F F_p') / sqrt(residual
 * of p). The residuals are the diagonal of K - FF', which is positive semi-definite: their sum
 * bounds every error. n rank^2 flops, n cap doubles; no n x n matrix is formed.
 */

static const double tolerance = 1e-13;
enum {
  SHORT = 16,  /* threads for a step only where there is so many times the usual work */
  LONG = 65536 /* coordinates of a column worth threads */
};

/* The column of kernel values of all points with the point y (d numbers). */
static km_source one_column(const km_source *source, const double *y) {
  km_source column = *source;
  column.y = y;
  column.m = 1;
  return column;
}

size_t km_lowrank_work(const km_source *source) {
  const km_source column = one_column(source, source->x);
  return 2 * source->n + source->d + (source->k ? 0 : km_fold_store_work(&column));
}

/* K e_p, on one thread where it is short: there are many of them, and threads would wait for each
   other longer than they work. */
static void take_column(const km_source *source, size_t p, double *column, double *work) {
  const size_t n = source->n;
  if (source->k) {
    memcpy(column, source->k + p * n, n * sizeof *column);
    return;
  }
  for (size_t l = 0; l < source->d; l++) work[l] = source->x[p + l * n];
  const km_source pair = one_column(source, work);
  const int limit = km_thread_limit();
  if (n * (source->d + 1) < LONG) km_set_thread_limit(1);
  km_fold_store(&pair, column, work + source->d, NULL);
  km_set_thread_limit(limit);
}

/* Column r of f, and the residuals without it. */
static void add_column(size_t n, size_t cap, size_t r, size_t p, const double *column, double *f,
                       double *residual) {
  const double root = sqrt(residual[p]);
  const double *pivot = f + p * cap;
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(n, cap, r, p, column, f, residual, root, pivot) \
    schedule(static) num_threads(km_threads((double) (n * r / SHORT)))
#endif
  for (size_t i = 0; i < n; i++) {
    double *row = f + i * cap;
    double sum = 0;
#ifdef _OPENMP
#pragma omp simd reduction(+ : sum)
#endif
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

size_t km_lowrank(const km_source *source, size_t cap, double *f, double *work, km_poll poll) {
  const size_t n = source->n;
  double *residual = work, *column = work + n, *scratch = work + 2 * n;
  double trace = 0;
  km_diagonal(source, residual);
  for (size_t i = 0; i < n; i++) trace += residual[i];
  for (size_t r = 0; r <= cap; r++) {
    size_t p = 0;
    double left = 0;
    for (size_t i = 0; i < n; i++) {
      if (residual[i] > residual[p]) p = i;
      if (residual[i] > 0) left += residual[i];
    }
    if (left <= tolerance * trace) return r;
    if (r == cap) break;
    take_column(source, p, column, scratch);
    add_column(n, cap, r, p, column, f, residual);
    if (poll) poll();
  }
  return cap + 1;
}

void km_lowrank_centre(size_t n, const double *f, size_t cap, size_t rank, double *factor) {
  for (size_t i = 0; i < n; i++) memcpy(factor + i * rank, f + i * cap, rank * sizeof *factor);
  for (size_t c = 0; c < rank; c++) {
    double mean = 0;
    for (size_t i = 0; i < n; i++) mean += factor[i * rank + c];
    mean /= (double) n;
    for (size_t i = 0; i < n; i++) factor[i * rank + c] -= mean;
  }
}
