#include "core/axes.h"
#include "core/back.h"
#include "core/center.h"
#include "core/eigen.h"
#include "core/krylov.h"
#include "core/plain.h"
#include "core/profiles.h"
#include "core/range.h"
#include "core/scores.h"
#include "core/tridiag.h"
#include "driver.h"

#include <math.h>
#include <string.h>

/* Matrices in full: reductions, spectra, scores along a path of lambda. */

enum { N = 50, LARGE = 260, D = 3 };

static double dot_of(size_t n, const double *v) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += v[i] * v[i];
  return sum;
}

static void copy(double *to, const double *from, size_t count) {
  memcpy(to, from, count * sizeof *to);
}

/* Of two panels on one thread, and of more on several. */
static void reductions(void) {
  double *a = gram(31, N, D), *diag = room(LARGE), *off = room(LARGE), *tau = room(LARGE);
  km_tridiag(N, a, diag, off, tau, room(km_tridiag_work(N)), poll);
  put("tridiag_diag", diag, N);
  put("tridiag_off", off, N - 1);
  double *q = room(N * N), *back = room(N * N);
  for (size_t i = 0; i < N * N; i++) back[i] = q[i] = i % (N + 1) == 0;
  for (size_t j = 0; j < N; j++) km_tridiag_apply(N, a, tau, q + j * N);
  put("tridiag_q", q, N * N);
  km_tridiag_back(N, a, tau, N, back, room(km_tridiag_back_work(N, N)), poll);
  put("tridiag_back", back, N * N);
  double *first = inputs(32, N);
  km_first_reflector(N, first);
  put("first_reflector", first, N);

  a = gram(31, LARGE, D);
  km_tridiag(LARGE, a, diag, off, tau, room(km_tridiag_work(LARGE)), poll);
  double *y = inputs(33, LARGE), *values = room(LARGE), *shares = room(LARGE);
  must(km_tridiag_spectrum(LARGE, diag, off, values, shares,
                           room(km_tridiag_spectrum_work(LARGE))) == KM_OK,
       "no spectrum of a tridiagonal matrix");
  put("spectrum", values, LARGE);
  put("spectrum_first", shares, LARGE);
  copy(first = room(LARGE), y, LARGE);
  km_tridiag_apply(LARGE, a, tau, first);
  put("tridiag_applied", first, LARGE);
  must(km_tridiag_solve(LARGE, diag, off, 0.5, y, room(km_tridiag_solve_work(LARGE))) == KM_OK,
       "no solution of a tridiagonal system");
  km_tridiag_apply(LARGE, a, tau, y);
  put("tridiag_solve", y, LARGE);
}

/* One reflection on both sides, then all that make the matrix tridiagonal. */
static void plain(void) {
  double *a = gram(31, N, D), *v = inputs(36, N), *q = room(N * N), *y = inputs(35, 2 * N);
  double *diag = room(N), *off = room(N), *tau = room(N), *w = room(N);
  km_plain_reflection(N, a, v, 2 / dot_of(N, v), w);
  put("reflected", a, N * N);
  for (size_t i = 0; i < N * N; i++) a[i] *= 0x1p200;
  must(km_plain_scale(N, a) > 190, "a matrix that is not scaled");
  put("scaled", a, N * N);
  km_plain_tridiag(N, a, diag, off, tau, w);
  put("plain_diag", diag, N);
  put("plain_off", off, N - 1);
  km_plain_axes(N, a, tau, q);
  put("plain_axes", q, N * N);
  km_plain_apply(N, a, tau, 2, y);
  put("plain_applied", y, 2 * N);
  must(km_tridiag_plain(N) && !km_tridiag_plain(LARGE), "one way to reduce all matrices");
}

/* Of a matrix with many eigenvalues of 0, too. */
static void small_axes(void) {
  enum { ORDER = 30 };
  double *values = room(ORDER), *vectors = room(ORDER * ORDER), *work = room(km_axes_work(ORDER));
  double *low = room(ORDER * ORDER);
  const double *a = inputs(37, 2 * ORDER);
  for (size_t i = 0; i < ORDER; i++)
    for (size_t j = 0; j < ORDER; j++)
      low[i + j * ORDER] = a[i] * a[j] + a[i + ORDER] * a[j + ORDER];
  must(km_axes(ORDER, gram(31, ORDER, D), values, vectors, work) == KM_OK, "no axes");
  put("axes", values, ORDER);
  put("axes_vectors", vectors, ORDER * ORDER);
  must(km_axes(ORDER, low, values, vectors, work) == KM_OK, "no axes of two directions");
  put("few_axes", values, ORDER);
  put("few_axes_vectors", vectors, ORDER * ORDER);
  for (size_t at = 0; at < ORDER; at += ORDER - 1) {
    memset(low, 0, ORDER * ORDER * sizeof *low);
    for (size_t i = 0; i < ORDER; i++) low[i + i * ORDER] = 1;
    low[at + at * ORDER] = NAN;
    must(km_axes(ORDER, low, values, vectors, work) != KM_OK, "axes of NaN");
    memset(low, 0, ORDER * ORDER * sizeof *low);
    low[at + at * ORDER] = NAN;
    must(km_axes(ORDER, low, values, vectors, work) != KM_OK, "axes of NaN and 0");
  }
}

/* The eigenpairs of gram(31, n, D), by dstemr or by what stands in for it. */
static void eigenpairs(const char *of_values, const char *of_vectors, size_t n, size_t count,
                       int divide) {
  double *values = room(count), *vectors = room(n * count);
  must(km_eigen(n, gram(31, n, D), count, values, vectors, divide,
                room(km_eigen_work(n, count, divide)), int_room(km_eigen_iwork(n, divide)),
                poll) == KM_OK,
       "no eigenvectors");
  put(of_values, values, count);
  put(of_vectors, vectors, n * count);
}

static void eigen(void) {
  eigenpairs("values", "vectors", N, N, 0);
  eigenpairs("values_divide", "vectors_divide", N, N, 1);
  eigenpairs("values_large", "vectors_large", LARGE, LARGE, 0);
  eigenpairs("leading", "leading_vectors", LARGE, 5, 0);
  double u[] = {0.5, -0.9, 0.9};
  km_fix_sign(3, u);
  put("fix_sign", u, 3);
}

/* Of points on a line, by few columns and by all eigenpairs; of those in space they are too many. */
static void ranges(void) {
  enum { CAP = LARGE / 4 };
  double *values = room(LARGE), *work = room(km_range_work(LARGE, CAP)), *all = room(LARGE * LARGE);
  int *iwork = int_room(km_range_iwork(CAP));
  size_t wanted, rank = km_range(LARGE, gram(31, LARGE, D), CAP, values, &wanted, work, iwork, poll);
  must(rank == 0 && wanted > CAP, "a low rank of points in space");
  rank = km_range(LARGE, gram(31, LARGE, 1), CAP, values, &wanted, work, iwork, poll);
  must(rank > 5 && rank <= CAP && wanted == 0, "no low rank of points on a line");
  put("range", values, rank);
  put("range_vectors", work, LARGE * rank);
  must(km_eigen_range(LARGE, gram(31, LARGE, 1), values, all, &rank, 0,
                      room(km_eigen_work(LARGE, LARGE, 0)), int_room(km_eigen_iwork(LARGE, 0)),
                      poll) == KM_OK && rank <= CAP,
       "no range of points on a line");
  put("range_all", values, rank);
  put("range_all_vectors", all, LARGE * rank);
}

static void krylov(void) {
  enum { COUNT = 3, POINTS = 600 };
  const km_source source = points(KM_RBF, 34, POINTS, 2);
  double *k = gram(34, POINTS, 2), *at = room(POINTS);
  const km_centering mean = km_row_means(POINTS, k, at);
  const double square =
      km_centered_square(&source, mean, room(km_centered_square_work(&source)), poll);
  double *values = room(COUNT), *vectors = room(POINTS * COUNT), residual = 1;
  int products = 0;
  must(km_krylov_basis(COUNT) < POINTS, "a basis larger than the matrix");
  must(km_krylov(&source, mean, square, COUNT, values, vectors, &residual, &products,
                 room(km_krylov_work(&source, COUNT)), int_room(km_krylov_iwork(COUNT)),
                 poll) == KM_OK,
       "no convergence of the Krylov iteration");
  must(residual < 1e-8 && products > 0, "a large residual of the Krylov iteration");
  put("krylov", values, COUNT);
  put("krylov_vectors", vectors, POINTS * COUNT);
}

static void scores(void) {
  enum { COUNT = 4 };
  const double lambda[COUNT] = {1e-3, 0.1, 1, 30}, norm2 = 1.5;
  double *k = gram(31, N, D), *a = room(N * N), *values = room(N), *vectors = room(N * N);
  double *q = room(N), *diagonal = room(N), *score = room(COUNT), trace = 0;
  double *along = room(2 * N), *target = inputs(36, N);
  copy(a, k, N * N);
  must(km_eigen(N, a, N, values, vectors, 0, room(km_eigen_work(N, N, 0)),
                int_room(km_eigen_iwork(N, 0)), poll) == KM_OK,
       "no eigenvectors");
  for (size_t j = 0; j < N; j++) {
    double sum = 0, other = 0;
    for (size_t i = 0; i < N; i++) {
      sum += vectors[i + j * N];
      other += vectors[i + j * N] * target[i];
    }
    along[j] = sum;
    along[j + N] = other;
    q[j] = sum * sum;
    diagonal[j] = k[j + j * N];
    trace += diagonal[j];
  }
  km_score_gcv(N, values, q, trace, COUNT, lambda, score);
  put("gcv", score, COUNT);
  km_score_printed(N, values, q, COUNT, lambda, score);
  put("printed", score, COUNT);
  double *work = room(km_score_loocv_work(N, COUNT));
  km_score_loocv(N, N, values, vectors, along, diagonal, NULL, 0, COUNT, lambda, score, work, poll);
  put("loocv", score, COUNT);
  km_score_loocv(N, N, values, vectors, along, diagonal, target, norm2, COUNT, lambda, score, work,
                 poll);
  put("loocv_target", score, COUNT);
  double *few = gram(31, LARGE, 1), *axes = room(km_range_work(LARGE, LARGE / 4));
  size_t wanted;
  diagonal = room(LARGE);
  along = room(LARGE);
  values = room(LARGE);
  for (size_t i = 0; i < LARGE; i++) diagonal[i] = few[i + i * LARGE];
  const size_t rank = km_range(LARGE, few, LARGE / 4, values, &wanted, axes,
                               int_room(km_range_iwork(LARGE / 4)), poll);
  for (size_t j = 0; j < rank; j++) {
    along[j] = 0;
    for (size_t i = 0; i < LARGE; i++) along[j] += axes[i + j * LARGE];
  }
  km_score_loocv(LARGE, rank, values, axes, along, diagonal, NULL, 0, COUNT, lambda, score,
                 room(km_score_loocv_work(LARGE, COUNT)), poll);
  put("loocv_range", score, COUNT);
}

/* Of the points before the 40th and of those from it on; then of them by three features. */
static void subset_spectra(void) {
  enum { FEATURES = 3 };
  const uint64_t words[] = {(UINT64_C(1) << 40) - 1};
  const km_point_rows all = {N, N, gram(31, N, D)};
  const km_point_rows features = {N, FEATURES, inputs(38, N * FEATURES)};
  const km_point_rows *rows[] = {&all, &features};
  double *values = room(2 * 2 * N);
  for (size_t i = 0; i < 4; i++) {
    const km_point_subsets of = {words, N, 1, i % 2 ? N - 40 : 40, NULL, i % 2 != 0};
    must(km_subset_spectra(*rows[i / 2], of, N, 1e-9, values + i * N,
                           room(km_subset_spectra_work(*rows[i / 2], of.most)), poll) == KM_OK,
         "no spectrum of a subset");
  }
  put("subset_spectra", values, 4 * N);
}

void run_spectra(void) {
  reductions();
  plain();
  small_axes();
  subset_spectra();
  eigen();
  ranges();
  krylov();
  scores();
}
