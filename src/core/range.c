#include "core/range.h"
#include "core/cholesky.h"
#include "core/dense.h"
#include "core/eigen.h"
#include "core/lowrank.h"
#include "core/scratch.h"
#include "core/sequence.h"

#include <float.h>
#include <math.h>
#include <string.h>

/*
 * K ~ FF' by pivots, then F'F = V G V': the eigenvalues of K are those of F'F, its eigenvectors
 * FV G^{-1/2}. As those are known to eps gamma_1, columns of FV near the rounding are orthogonal to
 * 1 / n only; with LL' = (FV)'FV the columns of U = FV L'^{-1} are so to eps, and each takes from
 * larger ones alone, so that U'KU stays G to eps gamma_1.
 *
 * K - FF' is positive semi-definite and its trace is at most a part of n eps gamma_1, of which
 * |K|_F^2 / tr K is no larger than gamma_1. That holds for no K that has negative eigenvalues: the
 * products of K and of the pairs with a fixed vector from -1 to 1 must agree.
 */

static const double part = 0.125; /* of the rounding: what F may leave out */

typedef struct {
  double *f;                             /* n x cap: F, at the end the eigenvectors */
  double *sides, *sums, *squares; /* n: numbers, K times these, squares of columns of K */
  double *turned;                        /* n x cap: FV */
  double *gram, *v, *low;                /* cap x cap: F'F; V; L, at the end its inverse */
  double *stage;                         /* scratch of the steps */
  double *pivoted;                       /* that of the first, in the place of the last five */
} room;

static km_source stored(size_t n, const double *k) { return (km_source){.n = n, .m = n, .k = k}; }

static size_t lay_out(room *s, size_t n, size_t cap, double *work) {
  km_scratch scratch = {work, 0};
  const double none = 0;
  const km_source source = stored(n, &none);
  const size_t products = larger(km_product_work(cap, cap, n), km_product_work(n, cap, cap));
  const size_t solver = larger(km_eigen_work(cap, cap, 0), km_eigen_work(cap, cap, 1));
  const size_t factors = larger(km_factor_work(cap), km_triangle_inverse_work(cap));
  s->f = take(&scratch, n * cap);
  s->sides = take(&scratch, n);
  s->sums = take(&scratch, n);
  s->squares = take(&scratch, n);
  const size_t before = scratch.used;
  s->pivoted = take(&scratch, km_lowrank_work(&source, cap));
  const size_t first = scratch.used;
  scratch.used = before;
  s->turned = take(&scratch, n * cap);
  s->gram = take(&scratch, cap * cap);
  s->v = take(&scratch, cap * cap);
  s->low = take(&scratch, cap * cap);
  s->stage = take(&scratch, larger(products, larger(solver, factors)));
  return larger(first, scratch.used);
}

size_t km_range_work(size_t n, size_t cap) {
  room s;
  return lay_out(&s, n, cap, NULL);
}

size_t km_range_iwork(size_t cap) {
  return larger(cap, larger(km_eigen_iwork(cap, 0), km_eigen_iwork(cap, 1)));
}

/* Fills what is of K itself; returns |K|_F^2. */
static double survey(size_t n, const double *k, const room *s) {
  double *sides = s->sides, *sums = s->sums, *squares = s->squares;
  uint64_t state = 1;
  for (size_t i = 0; i < n; i++)
    sides[i] = ldexp((double) (next_number(&state) >> 11), -52) - 1;
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(n, k, sides, sums, squares) schedule(static) \
    num_threads(km_threads(2 * (double) n * (double) n))
#endif
  for (size_t j = 0; j < n; j++) {
    sums[j] = dot(n, k + j * n, sides);
    squares[j] = dot(n, k + j * n, k + j * n);
  }
  return km_total(n, squares);
}

/* out (columns of a x columns of b) = A'B, or (rows of a x columns of b) = AB. */
static void multiply(size_t rows, size_t m, const double *a, size_t n, const double *b, int turned,
                     double *out, const room *s, km_poll poll) {
  km_product product = {.m = turned ? m : rows,
                        .n = n,
                        .depth = turned ? rows : m,
                        .times = 1,
                        .a = {a, turned ? rows : 1, turned ? 1 : rows},
                        .b = {b, 1, turned ? rows : m},
                        .c = out,
                        .fresh = 1,
                        .lower = turned};
  product.ldc = product.m;
  km_multiply_add(&product, s->stage, poll);
}

/* out <- the columns of u (n x rank), made orthonormal, each by those before it; 0 where they are
   of a lower rank. */
static int make_orthonormal(size_t n, size_t rank, const double *u, double *out, const room *s,
                            km_poll poll) {
  int info = 0;
  multiply(n, rank, u, rank, u, 1, s->gram, s, poll);
  if (km_factor(rank, s->gram, 0, s->low, s->stage, &info, poll) != KM_OK) return 0;
  km_triangle_inverse(rank, s->low, s->gram, s->stage, poll);
  for (size_t j = 0; j < rank; j++)
    for (size_t i = 0; i < rank; i++) s->low[i + j * rank] = s->gram[j + i * rank];
  multiply(n, rank, u, rank, s->low, 0, out, s, poll);
  for (size_t j = 0; j < rank; j++) km_fix_sign(n, out + j * n);
  return 1;
}

/* Do K and U diag(values) U' give the same with that vector, but for what is rounding? */
static int agrees(size_t n, size_t rank, double small, const double *values, const double *u,
                  const room *s) {
  double off = 0;
  for (size_t j = 0; j < rank; j++) {
    const double along = dot(n, u + j * n, s->sides);
    subtract(n, values[j] * along, u + j * n, s->sums);
  }
  off = dot(n, s->sums, s->sums);
  return off <= 4 * small * small * (double) n;
}

size_t km_range(size_t n, const double *k, size_t cap, double *values, size_t *wanted,
                double *work, int *iwork, km_poll poll) {
  const km_source source = stored(n, k);
  const double rounding = (double) n * DBL_EPSILON;
  double trace = 0, left;
  room s;
  lay_out(&s, n, cap, work);
  const double square = survey(n, k, &s);
  for (size_t i = 0; i < n; i++) trace += k[i + i * n];
  *wanted = 0;
  if (!(trace > 0 && square > 0 && isfinite(square))) return 0;
  const double tolerance = part * rounding * (square / trace / trace);
  const size_t columns = km_lowrank(&source, tolerance, cap, iwork, &left, s.pivoted, poll);
  /* The logarithm of what is left falls ever more slowly. */
  if (columns == cap + 1)
    *wanted = cap + (size_t) ((double) cap * (log(tolerance) / log(left / trace) - 1));
  if (columns > cap) return 0;
  km_lowrank_unpack(n, s.pivoted, columns, s.f);
  km_status status = KM_NO_CONVERGENCE;
  for (int divide = 0; divide < 2 && status != KM_OK; divide++) {
    multiply(n, columns, s.f, columns, s.f, 1, s.gram, &s, poll);
    km_mirror(columns, s.gram);
    status = km_eigen(columns, s.gram, columns, values, s.v, divide, s.stage, iwork, poll);
  }
  if (status != KM_OK) return 0;
  const double small = rounding * values[0];
  size_t rank = columns;
  while (rank > 1 && values[rank - 1] < small) rank--;
  multiply(n, columns, s.f, rank, s.v, 0, s.turned, &s, poll);
  if (!make_orthonormal(n, rank, s.turned, s.f, &s, poll)) return 0;
  return agrees(n, rank, small, values, s.f, &s) ? rank : 0;
}
