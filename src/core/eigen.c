#include "core/eigen.h"
#include "core/axes.h"
#include "core/back.h"
#include "core/blas.h"
#include "core/order.h"
#include "core/parts.h"
#include "core/scratch.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

/*
 * Of a tridiagonal T: QL without square roots (Pal, Walker, Kahan; Parlett 1998, 8.15), the first
 * row of the eigenvectors carried along as in Golub and Welsch (1969): O(n^2). Eigenvectors of T by
 * LAPACK: multiple relatively robust representations (dstemr), O(n) a vector, which depend on no
 * BLAS but fail at some multiple eigenvalues, and may take those in the middle of a cluster for its
 * first ones; there by division (dstedc), which multiple eigenvalues make short. Below ROTATED rows
 * all pairs are found at once by rotations (axes.c): LAPACK takes longer there.
 */

enum {
  ROTATED = 64,
  PATIENCE = 30 /* sweeps that find no eigenvalue, before the bound of what is zero is doubled */
};

/*
 * One QL sweep over rows 0 .. m of T with the shift of Wilkinson. d: diagonal; e2: squares of the
 * off-diagonal; z: first row of the eigenvectors, or NULL. With p = (cos of the rotation times the
 * shifted diagonal entry)^2 as in Parlett, but p' = num^2 / (r p) puts one division, not two and a
 * root, on the way from one rotation to the next.
 */
static void ql_sweep(size_t m, double *restrict d, double *restrict e2, double *restrict z) {
  const double tiny = 1e-220; /* below it the cosine is zero: num^2 would underflow */
  const double root = sqrt(e2[0]), half = (d[1] - d[0]) / (2 * root);
  const double shift = d[0] - root / (half + copysign(sqrt(half * half + 1), half));
  double gamma = d[m] - shift, p = gamma * gamma, c = 1, s = 0;
  double sign = copysign(1, gamma), before = 1, carried = z ? z[m] : 0;
  for (size_t i = m; i-- > 0;) {
    const double r = p + e2[i], inverse = 1 / r, alpha = d[i];
    const double num = p * (alpha - shift) - e2[i] * gamma;
    const double c_next = p * inverse, s_next = e2[i] * inverse, gamma_next = num * inverse;
    if (i + 1 < m) e2[i + 1] = s * r;
    d[i + 1] = gamma + (alpha - gamma_next);
    if (z) {
      const double cosine = sign * sqrt(c_next), sine = sqrt(s_next);
      z[i + 1] = sine * z[i] + cosine * carried;
      carried = cosine * z[i] - sine * carried;
    }
    const double turned = p > tiny ? sign * copysign(1, num) : -before;
    p = p > tiny ? num * num / (r * p) : c * e2[i];
    before = sign;
    sign = turned;
    c = c_next;
    s = s_next;
    gamma = gamma_next;
  }
  d[0] = shift + gamma;
  e2[0] = s * p;
  if (z) z[0] = sign * carried; /* the new off-diagonal has that sign; e2 forgets it */
}

static void reverse(size_t n, double *x) {
  for (size_t i = 0; i < n / 2; i++) {
    const double keep = x[i];
    x[i] = x[n - 1 - i];
    x[n - 1 - i] = keep;
  }
}

/*
 * Eigenvalues of T, of norm about 1, into d. Off-diagonals of a quarter of a rounding count as
 * zero; between eigenvalues that are equal one of a rounding may stay, whatever the sweeps.
 */
static km_status ql(size_t n, double *d, double *e2, double *z) {
  double small2 = DBL_EPSILON * DBL_EPSILON / 16;
  size_t sweeps = 0, end = 0, since = 0;
  for (size_t i = 0; i < n;) {
    size_t m = i;
    while (m + 1 < n && !(e2[m] <= small2)) m++;
    if (m == i) {
      i++;
      since = 0;
      continue;
    }
    if (since++ == PATIENCE) {
      small2 *= 4;
      since = 0;
    }
    if (m != end && fabs(d[i]) > fabs(d[m])) { /* a new block: start at its smaller end */
      reverse(m - i + 1, d + i);
      reverse(m - i, e2 + i);
      if (z) reverse(m - i + 1, z + i);
    }
    end = m;
    if (sweeps++ > 30 * n) return KM_NO_CONVERGENCE;
    ql_sweep(m - i, d + i, e2 + i, z ? z + i : NULL);
  }
  return KM_OK;
}

/* x_j <- x of number order_{n - 1 - j}. keep: n. */
static void put_in_order(size_t n, const int *order, double *x, double *keep) {
  memcpy(keep, x, n * sizeof *x);
  for (size_t j = 0; j < n; j++) x[j] = keep[order[n - 1 - j]];
}

/* T / 2^exponent has entries of 1 at most, whose squares are numbers. */
static int exponent_of(size_t n, const double *diag, const double *off) {
  double largest = 0;
  int exponent = 0;
  for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(diag[i]));
  for (size_t i = 0; i + 1 < n; i++) largest = fmax(largest, fabs(off[i]));
  frexp(largest, &exponent);
  return exponent;
}

typedef struct {
  double *e2; /* n; at the end what is put in order */
  int *order;
} spectrum;

static size_t lay_out_spectrum(spectrum *s, size_t n, double *work) {
  km_scratch scratch = {work, 0};
  s->e2 = take(&scratch, n);
  s->order = (int *) take(&scratch, n);
  return scratch.used;
}

size_t km_tridiag_spectrum_work(size_t n) {
  spectrum s;
  return lay_out_spectrum(&s, n, NULL);
}

km_status km_tridiag_spectrum(size_t n, const double *diag, const double *off, double *values,
                              double *first, double *work) {
  const int exponent = exponent_of(n, diag, off);
  spectrum s;
  lay_out_spectrum(&s, n, work);
  for (size_t i = 0; i < n; i++) values[i] = ldexp(diag[i], -exponent);
  for (size_t i = 0; i + 1 < n; i++) {
    const double e = ldexp(off[i], -exponent);
    s.e2[i] = e * e;
  }
  if (first) memset(first, 0, n * sizeof *first);
  if (first) first[0] = 1;
  const km_status status = ql(n, values, s.e2, first);
  for (size_t i = 0; i < n; i++) values[i] = ldexp(values[i], exponent);
  if (first)
    for (size_t i = 0; i < n; i++) first[i] = fabs(first[i]);
  km_order(n, values, 1, s.order);
  put_in_order(n, s.order, values, s.e2);
  if (first) put_in_order(n, s.order, first, s.e2);
  return status;
}

typedef struct {
  double *pivot, *factor_l; /* n each */
} ldl;

static size_t lay_out_ldl(ldl *s, size_t n, double *work) {
  km_scratch scratch = {work, 0};
  s->pivot = take(&scratch, n);
  s->factor_l = take(&scratch, n);
  return scratch.used;
}

size_t km_tridiag_solve_work(size_t n) {
  ldl s;
  return lay_out_ldl(&s, n, NULL);
}

/* T + lambda I = LDL', then two substitutions. */
km_status km_tridiag_solve(size_t n, const double *diag, const double *off, double lambda,
                           double *x, double *work) {
  ldl s;
  lay_out_ldl(&s, n, work);
  double *pivot = s.pivot, *factor_l = s.factor_l;
  for (size_t i = 0; i < n; i++) {
    pivot[i] = diag[i] + lambda;
    if (i > 0) {
      factor_l[i] = off[i - 1] / pivot[i - 1];
      pivot[i] -= factor_l[i] * off[i - 1];
      x[i] -= factor_l[i] * x[i - 1];
    }
    if (!(pivot[i] > 0)) return KM_NOT_POSITIVE;
  }
  x[n - 1] /= pivot[n - 1];
  for (size_t i = n - 1; i-- > 0;) x[i] = x[i] / pivot[i] - factor_l[i + 1] * x[i + 1];
  return KM_OK;
}

/* From increasing to decreasing order of the values. */
static void reverse_pairs(size_t n, size_t count, double *values, double *vectors) {
  reverse(count, values);
  for (size_t j = 0; j < count / 2; j++) {
    double *left = vectors + j * n, *right = vectors + (count - 1 - j) * n;
    for (size_t i = 0; i < n; i++) {
      const double keep = left[i];
      left[i] = right[i];
      right[i] = keep;
    }
  }
}

void km_fix_sign(size_t n, double *u) {
  const double within = 1 - 1e-8;
  double largest = 0;
  for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(u[i]));
  size_t i = 0;
  while (i + 1 < n && fabs(u[i]) < within * largest) i++;
  if (u[i] < 0)
    for (size_t k = 0; k < n; k++) u[k] = -u[k];
}

typedef struct {
  double *own; /* of the solver */
  double *all; /* n x n: where it finds all eigenvectors, but only some are wanted */
} solver_room;

static size_t solver_doubles(size_t n, int divide) { return divide ? 1 + 4 * n + n * n : 18 * n; }

static size_t solver_ints(size_t n, int divide) { return divide ? 3 + 5 * n : 10 * n; }

static size_t lay_out_solver(solver_room *s, size_t n, size_t count, int divide, double *work) {
  km_scratch scratch = {work, 0};
  s->own = take(&scratch, solver_doubles(n, divide));
  s->all = take(&scratch, divide && count < n ? n * n : 0);
  return scratch.used;
}

typedef struct {
  double *diag, *off, *tau, *found; /* n each: T, its reflectors, its values */
  double *same, *next;              /* n each: T once more */
  double *stage;                    /* scratch of the reduction, the solver, the way back */
} pairs;

static size_t lay_out_pairs(pairs *s, size_t n, size_t count, int divide, double *work) {
  km_scratch scratch = {work, 0};
  solver_room room;
  const size_t transform = larger(km_tridiag_work(n), km_tridiag_back_work(n, count));
  s->diag = take(&scratch, n);
  s->off = take(&scratch, n);
  s->tau = take(&scratch, n);
  s->found = take(&scratch, n);
  s->same = take(&scratch, n);
  s->next = take(&scratch, n);
  s->stage = take(&scratch, larger(transform, lay_out_solver(&room, n, count, divide, NULL)));
  return scratch.used;
}

typedef struct {
  double *values, *vectors; /* n, n x n, in no order */
  double *own;              /* of km_axes */
} rotated;

static size_t lay_out_rotated(rotated *s, size_t n, double *work) {
  km_scratch scratch = {work, 0};
  s->values = take(&scratch, n);
  s->vectors = take(&scratch, n * n);
  s->own = take(&scratch, km_axes_work(n));
  return scratch.used;
}

size_t km_eigen_work(size_t n, size_t count, int divide) {
  pairs s;
  rotated all;
  const size_t small = lay_out_rotated(&all, smaller(n, ROTATED - 1), NULL);
  return n < ROTATED ? small : larger(small, lay_out_pairs(&s, n, count, divide, NULL));
}

/* The solver's own, then the supports of vectors that dstemr tells. */
size_t km_eigen_iwork(size_t n, int divide) { return solver_ints(n, divide) + 2 * n; }

/* How many eigenvalues of T exceed x: the positive pivots of T - xI. */
static size_t count_above(size_t n, const double *diag, const double *off, double x) {
  const double least = 1e-290;
  size_t count = 0;
  double pivot = 1;
  for (size_t i = 0; i < n; i++) {
    const double e = i ? off[i - 1] : 0;
    pivot = diag[i] - x - e * e / pivot;
    if (fabs(pivot) < least) pivot = -least;
    count += pivot > 0;
  }
  return count;
}

/* Are these, in increasing order, the `count` largest eigenvalues of T, of norm about 1? */
static int are_leading(size_t n, const pairs *s, size_t count) {
  const double within = ((double) n / 2 + 8) * DBL_EPSILON;
  for (size_t j = 0; j < count; j++) {
    const size_t rank = count - j;
    const double value = s->found[j];
    if (count_above(n, s->same, s->next, value + within) >= rank ||
        count_above(n, s->same, s->next, value - within) < rank)
      return 0;
  }
  return 1;
}

/* The last `count` eigenvalues of T in increasing order, into s->found, and their eigenvectors. */
static km_status by_representations(size_t n, const pairs *s, size_t count, double *vectors,
                                    int *iwork) {
  const int order = (int) n, first = (int) (n - count + 1), room = (int) count;
  const int lwork = (int) solver_doubles(n, 0), liwork = (int) solver_ints(n, 0);
  const double none = 0;
  int found = 0, info = 0, accurate = 1;
  memcpy(s->same, s->diag, n * sizeof *s->same);
  memcpy(s->next, s->off, n * sizeof *s->next);
  F77_CALL(dstemr)("V", count == n ? "A" : "I", &order, s->diag, s->off, &none, &none, &first,
                   &order, &found, s->found, vectors, &order, &room, iwork + liwork, &accurate,
                   s->stage, &lwork, iwork, &liwork, &info FCONE FCONE);
  if (info != 0 || found != room) return KM_NO_CONVERGENCE;
  return count == n || are_leading(n, s, count) ? KM_OK : KM_NO_CONVERGENCE;
}

static km_status by_division(size_t n, const pairs *s, size_t count, double *vectors, int *iwork) {
  const int order = (int) n;
  const int lwork = (int) solver_doubles(n, 1), liwork = (int) solver_ints(n, 1);
  int info = 0;
  solver_room room;
  lay_out_solver(&room, n, count, 1, s->stage);
  double *all = count < n ? room.all : vectors;
  F77_CALL(dstedc)("I", &order, s->diag, s->off, all, &order, room.own, &lwork, iwork, &liwork,
                   &info FCONE);
  memcpy(s->found, s->diag + n - count, count * sizeof *s->found);
  if (count < n) memcpy(vectors, all + (n - count) * n, n * count * sizeof *vectors);
  return info == 0 ? KM_OK : KM_NO_CONVERGENCE;
}

/* How many of n decreasing values are more than rounding. */
static size_t range_of(size_t n, const double *values) {
  const double small = (double) n * DBL_EPSILON * values[0];
  size_t rank = n;
  while (rank > 1 && values[rank - 1] < small) rank--;
  return 10 * rank < 9 * n ? rank : n;
}

/* The `count` largest eigenvalues, decreasing, and their eigenvectors, by rotations. order: n. */
static km_status by_rotations(size_t n, double *a, size_t count, double *values, double *vectors,
                              double *work, int *order) {
  rotated s;
  lay_out_rotated(&s, n, work);
  const km_status status = km_axes(n, a, s.values, s.vectors, s.own);
  if (status != KM_OK) return status;
  km_order(n, s.values, 1, order);
  for (size_t j = 0; j < count; j++) {
    const size_t from = (size_t) order[n - 1 - j];
    values[j] = s.values[from];
    memcpy(vectors + j * n, s.vectors + from * n, n * sizeof *vectors);
    km_fix_sign(n, vectors + j * n);
  }
  return KM_OK;
}

/* As km_eigen; `rank` is NULL, or where to put how many vectors km_eigen_range is to find. */
static km_status find_pairs(size_t n, double *a, size_t count, double *values, double *vectors,
                            size_t *rank, int divide, double *work, int *iwork, km_poll poll) {
  pairs s;
  if (n < ROTATED) {
    const km_status status = by_rotations(n, a, count, values, vectors, work, iwork);
    if (rank && status == KM_OK) *rank = range_of(n, values);
    return status;
  }
  if (divide && solver_doubles(n, 1) > INT_MAX) return KM_NO_CONVERGENCE; /* LAPACK counts in int */
  lay_out_pairs(&s, n, count, divide, work);
  km_tridiag(n, a, s.diag, s.off, s.tau, s.stage, poll);
  const int exponent = exponent_of(n, s.diag, s.off);
  for (size_t i = 0; i < n; i++) s.diag[i] = ldexp(s.diag[i], -exponent);
  for (size_t i = 0; i + 1 < n; i++) s.off[i] = ldexp(s.off[i], -exponent);
  const km_status status = divide ? by_division(n, &s, count, vectors, iwork)
                                  : by_representations(n, &s, count, vectors, iwork);
  if (status != KM_OK) return status;
  for (size_t j = 0; j < count; j++) values[j] = ldexp(s.found[j], exponent);
  reverse_pairs(n, count, values, vectors);
  if (rank) count = *rank = range_of(n, values);
  km_tridiag_back(n, a, s.tau, count, vectors, s.stage, poll);
  for (size_t j = 0; j < count; j++) km_fix_sign(n, vectors + j * n);
  return KM_OK;
}

km_status km_eigen(size_t n, double *a, size_t count, double *values, double *vectors, int divide,
                   double *work, int *iwork, km_poll poll) {
  return find_pairs(n, a, count, values, vectors, NULL, divide, work, iwork, poll);
}

km_status km_eigen_range(size_t n, double *a, double *values, double *vectors, size_t *rank,
                         int divide, double *work, int *iwork, km_poll poll) {
  return find_pairs(n, a, n, values, vectors, rank, divide, work, iwork, poll);
}
