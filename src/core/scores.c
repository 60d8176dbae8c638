#include "core/scores.h"
#include "core/isa.h"
#include "core/parts.h"
#include "core/products.h"
#include "core/scratch.h"

#include <string.h>

/*
 * Leave-one-out scores of F-KMSE, from K = U diag(gamma) U'. With
 * h_j = gamma_j/(gamma_j + lambda), x = U'e, y = U'f (f the target at the points), c = 1/(n - 1):
 *
 * gcv, printed: sums over j, O(n) for each lambda.
 *
 * loocv: with A = (K + lambda I)^{-1}, v_j = c x_j h_j - y_j/(gamma_j + lambda) the coordinates of
 * v = e/(n - 1) - p, p = lambda Ae/(n - 1) + Af and r_i = p_i/A_ii,
 *   beta^(-i) = v - c e_i + r_i A e_i,
 *   score_i = K_ii - 2 e_i'K beta + beta'K beta + |f|^2 + 2 f'beta - 2 f_i
 *           = (1 + c)^2 K_ii - 2 (1 + c) (f_i + (Kv)_i + r_i (KA)_ii) + r_i^2 (AKA)_ii
 *             + 2 r_i (AKv + Af)_i + v'Kv + |f|^2 + 2 f'v.
 * Five sums over j give all that depends on i: of U_ij^2 times 1 - h_j and h_j (1 - h_j), of U_ij
 * times the coordinates of p, Kv and AKv + Af. U is read once for BLOCK values of lambda. Cost:
 * 10 n^2 flops for each lambda.
 *
 * Nothing is divided by gamma_j, and the smaller of (KA)_ii and lambda A_ii = 1 - (KA)_ii is summed
 * as such (whether lambda < gamma_1 tells), the other is its complement. So with a singular K and
 * lambda -> 0, where A_ii ~ 1/lambda, r_i = lambda p_i / (lambda A_ii) and r_i^2 (AKA)_ii stay of
 * the size of K. Of eigenvectors that are left out, as their gamma_j is 0, only sums are known:
 * (KA)_ii is summed whatever lambda, which costs eps/(lambda A_ii) of r_i; lambda Ae is e less the
 * sum of h_j x_j u_j; and what f has beside UU'f adds its part over lambda to Af. Against refits
 * (n <= 65; low rank, duplicates, K = ee', K = 0, a target) the largest difference for lambda from
 * 1e-14 to 1e12 times gamma_1 was 3e-14 max K_ii; to leave out eigenvectors changed scores by
 * 2e-15, with a target by 2e-12 at lambda = 1e-10 gamma_1. The scores need n >= 2; n = 1 gives NaN.
 */

enum {
  ROWS = 72,    /* rows of U that are dealt to a worker */
  COLS = 64,    /* columns of a chunk of them, copied to its slice */
  BLOCK = 20,   /* values of lambda */
  SUMS = 5,     /* sums for each row and lambda */
  WORKERS = 32, /* shares of ROWS rows between two polls */
  COPY = ROWS * COLS,
  SLICE = COPY + BLOCK * SUMS * ROWS
};

/* ---- scores from the spectrum alone ---- */

static double gcv(size_t n, const double *gamma, const double *q, double trace, double lambda) {
  double a = 0, k = 0, m = 0, s1 = 0, s2 = 0, p = 0, r = 0, v = 0;
  for (size_t j = 0; j < n; j++) {
    const double inverse = 1 / (gamma[j] + lambda), h = gamma[j] * inverse;
    a += inverse;
    k += h;
    m += h * inverse;
    s1 += q[j] * inverse;
    s2 += q[j] * inverse * inverse;
    p += gamma[j] * h * q[j];
    r += gamma[j] * h * h * q[j];
    v += h * h * q[j] * inverse;
  }
  const double size = (double) n, others = size - 1;
  const double c = lambda * size / a, cross = c * s1 * k / size;
  const double square = size * r + c * c * s2 * m / size + trace + 2 * (c * v - p - cross);
  return (trace - 2 * (p + cross - trace) / others + square / (others * others)) / size;
}

void km_score_gcv(size_t n, const double *gamma, const double *q, double trace, size_t count,
                  const double *lambda, double *score) {
  for (size_t l = 0; l < count; l++) score[l] = gcv(n, gamma, q, trace, lambda[l]);
}

void km_score_printed(size_t n, const double *gamma, const double *q, size_t count,
                      const double *lambda, double *score) {
  const double size = (double) n;
  for (size_t l = 0; l < count; l++) {
    double sum = 0;
    for (size_t j = 0; j < n; j++) {
      const double h = gamma[j] / (gamma[j] + lambda[l]), w2 = q[j] / (size * size);
      const double left = 1 - h / size;
      sum += gamma[j] / (left * left) * (w2 * h * (h - 2) + 1 / size);
    }
    score[l] = sum;
  }
}

/* ---- exact leave-one-out ---- */

/* sums (SUMS x ROWS) += U^2 or U (cols x ROWS) times the coefficients (cols x SUMS), for lanes
   x vectors rows. */
INLINE void add_rows(const size_t lanes, const size_t vectors, size_t cols,
                     const double *restrict u, const double *restrict coefficients,
                     double *restrict sums) {
  double s0[3][8], s1[3][8], s2[3][8], s3[3][8], s4[3][8];
  UNROLL
  for (size_t v = 0; v < vectors; v++)
    SIMD
    for (size_t e = 0; e < lanes; e++)
      s0[v][e] = s1[v][e] = s2[v][e] = s3[v][e] = s4[v][e] = 0;
  for (size_t j = 0; j < cols; j++) {
    const double *f = coefficients + j * SUMS;
    UNROLL
    for (size_t v = 0; v < vectors; v++) {
      const double *column = u + j * ROWS + v * lanes;
      SIMD
      for (size_t e = 0; e < lanes; e++) {
        const double x = column[e], square = x * x;
        s0[v][e] += f[0] * square;
        s1[v][e] += f[1] * square;
        s2[v][e] += f[2] * x;
        s3[v][e] += f[3] * x;
        s4[v][e] += f[4] * x;
      }
    }
  }
  UNROLL
  for (size_t v = 0; v < vectors; v++) {
    double *sum = sums + v * lanes;
    SIMD
    for (size_t e = 0; e < lanes; e++) {
      sum[e] += s0[v][e];
      sum[e + ROWS] += s1[v][e];
      sum[e + 2 * ROWS] += s2[v][e];
      sum[e + 3 * ROWS] += s3[v][e];
      sum[e + 4 * ROWS] += s4[v][e];
    }
  }
}

/* The same for all rows of a chunk and all lambda; coefficients: count x n x SUMS. */
INLINE void add_chunk_body(const size_t lanes, const size_t vectors, size_t n, size_t cols,
                           size_t count, const double *u, const double *coefficients,
                           double *sums) {
  for (size_t l = 0; l < count; l++) {
    const double *f = coefficients + l * n * SUMS;
    for (size_t i = 0; i < ROWS; i += lanes * vectors)
      add_rows(lanes, vectors, cols, u + i, f, sums + l * SUMS * ROWS + i);
  }
}

VERSIONS(add_chunk,
         (size_t n, size_t cols, size_t count, const double *u, const double *coefficients,
          double *sums),
         (8, 3, n, cols, count, u, coefficients, sums),
         (4, 2, n, cols, count, u, coefficients, sums),
         (2, 2, n, cols, count, u, coefficients, sums))

typedef struct {
  size_t n, rank, count; /* rank: eigenvectors; count: values of lambda in this block */
  const double *gamma;   /* rank, decreasing */
  const double *u;       /* n x rank */
  const double *lambda;  /* count */
  const double *x, *y;   /* rank: U'e, U'f */
  double *rest;          /* n: f - UU'f, all 0 (as y then) where there is no target or rank = n */
  double *coefficients;  /* count x rank x SUMS */
  double *common;        /* count: what does not depend on i */
  double *slices;        /* of SLICE, WORKERS at most: a copy of U, and the sums */
  double *totals;        /* shares of rows x BLOCK: sums of scores over their rows */
} loocv;

static int is_whole(const loocv *s) { return s->rank == s->n; }

/* Is (KA)_ii summed, and not its complement? */
static int is_large(const loocv *s, double lambda) {
  return !is_whole(s) || lambda >= s->gamma[0];
}

static void set_coefficients(const loocv *s, size_t l) {
  const double lambda = s->lambda[l], c = 1 / ((double) s->n - 1);
  const int large = is_large(s, lambda);
  double vkv = 0, fv = -dot(s->n, s->rest, s->rest) / lambda;
  for (size_t j = 0; j < s->rank; j++) {
    double *f = s->coefficients + (l * s->rank + j) * SUMS;
    const double inverse = 1 / (s->gamma[j] + lambda);
    const double h = s->gamma[j] * inverse, rest = lambda * inverse;
    const double t = s->y[j] * inverse, v = c * s->x[j] * h - t;
    f[0] = large ? h : rest;
    f[1] = h * rest;
    f[2] = c * s->x[j] * (is_whole(s) ? rest : -h) + t;
    f[3] = s->gamma[j] * v;
    f[4] = h * v + t;
    vkv += s->gamma[j] * v * v;
    fv += s->y[j] * v;
  }
  s->common[l] = vkv + 2 * fv;
}

/* Sum over the rows of a share, from i0 on, of all that depends on i but K_ii and f_i. */
static double add_scores(const loocv *s, size_t l, size_t i0, size_t rows, const double *sums) {
  const double lambda = s->lambda[l], c = 1 / ((double) s->n - 1);
  const double of_ones = is_whole(s) ? 0 : c;
  const int large = is_large(s, lambda);
  double sum = 0;
  for (size_t i = 0; i < rows; i++) {
    const double *t = sums + i;
    const double ka = large ? t[0] : 1 - t[0], lambda_a = large ? 1 - t[0] : t[0];
    const double af = s->rest[i0 + i] / lambda;
    const double ratio = (of_ones + af + t[2 * ROWS]) / lambda_a, r = lambda * ratio;
    sum += lambda * ratio * ratio * t[ROWS] + 2 * r * (af + t[4 * ROWS]) -
           2 * (1 + c) * (t[3 * ROWS] + r * ka);
  }
  return sum;
}

static void score_rows(const loocv *s, size_t share) {
  const size_t n = s->n, i0 = share * ROWS, rows = smaller(ROWS, n - i0);
  double *copy = s->slices + share % WORKERS * SLICE, *sums = copy + COPY;
  memset(copy, 0, (COPY + s->count * SUMS * ROWS) * sizeof *copy);
  for (size_t j0 = 0; j0 < s->rank; j0 += COLS) {
    const size_t cols = smaller(COLS, s->rank - j0);
    for (size_t j = 0; j < cols; j++)
      memcpy(copy + j * ROWS, s->u + i0 + (j0 + j) * n, rows * sizeof *copy);
    add_chunk_version()(s->rank, cols, s->count, copy, s->coefficients + j0 * SUMS, sums);
  }
  for (size_t l = 0; l < s->count; l++)
    s->totals[share * BLOCK + l] = add_scores(s, l, i0, rows, sums + l * SUMS * ROWS);
}

/* Scores of s->count values of lambda; every: their common part. */
static void score_block(const loocv *s, double every, double *score, km_poll poll) {
  const size_t n = s->n, shares = pieces(n, ROWS);
  for (size_t l = 0; l < s->count; l++) set_coefficients(s, l);
  for (size_t from = 0; from < shares; from += WORKERS) {
    const size_t to = smaller(shares, from + WORKERS);
    if (poll) poll();
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(s, from) firstprivate(to) schedule(dynamic) \
    num_threads(km_threads((double) (to - from) * ROWS * (double) s->rank * (double) s->count))
#endif
    for (size_t share = from; share < to; share++) score_rows(s, share);
  }
  for (size_t l = 0; l < s->count; l++) {
    double sum = 0;
    for (size_t share = 0; share < shares; share++) sum += s->totals[share * BLOCK + l];
    score[l] = every + s->common[l] + sum / (double) n;
  }
}

static size_t lay_out(loocv *s, size_t n, size_t count, double *work) {
  km_scratch scratch = {work, 0};
  s->rest = take(&scratch, n);
  s->slices = take(&scratch, smaller(WORKERS, pieces(n, ROWS)) * SLICE);
  s->coefficients = take(&scratch, smaller(BLOCK, count) * n * SUMS);
  s->common = take(&scratch, BLOCK);
  s->totals = take(&scratch, pieces(n, ROWS) * BLOCK);
  return scratch.used;
}

size_t km_score_loocv_work(size_t n, size_t count) {
  loocv s;
  return lay_out(&s, n, count, NULL);
}

void km_score_loocv(size_t n, size_t rank, const double *gamma, const double *u,
                    const double *along, const double *diagonal, const double *target,
                    double target_norm2, size_t count, const double *lambda, double *score,
                    double *work, km_poll poll) {
  const double c = 1 / ((double) n - 1);
  loocv s = {.n = n, .rank = rank, .gamma = gamma, .u = u};
  lay_out(&s, n, count, work);
  memset(s.rest, 0, n * sizeof *s.rest);
  s.x = along;
  s.y = target ? along + rank : s.rest;
  if (target && !is_whole(&s)) {
    memcpy(s.rest, target, n * sizeof *s.rest);
    for (size_t j = 0; j < rank; j++) subtract(n, s.y[j], u + j * n, s.rest);
  }
  double every = target ? target_norm2 : 0;
  for (size_t i = 0; i < n; i++)
    every += ((1 + c) * diagonal[i] - 2 * (target ? target[i] : 0)) * (1 + c) / (double) n;
  for (size_t from = 0; from < count; from += BLOCK) {
    s.count = smaller(BLOCK, count - from);
    s.lambda = lambda + from;
    score_block(&s, every, score + from, poll);
  }
}
