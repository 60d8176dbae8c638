#include "core/krylov.h"
#include "core/eigen.h"
#include "core/fold.h"
#include "core/products.h"
#include "core/isa.h"
#include "core/parts.h"
#include "core/scratch.h"
#include "core/sequence.h"
#include "core/tall.h"

#include <float.h>
#include <math.h>
#include <string.h>

/*
 * Block Krylov method for the leading eigenpairs of K^c (Golub and Underwood 1977), 16 columns at a
 * time: K^c times a block is a fold over tiles of K, centered afterwards. The basis Q is kept
 * orthonormal in full (two passes against all of it), T = Q'K^cQ is kept in full, and Ritz pairs
 * are those of T. When the basis is full it starts again from its leading Ritz vectors and the next
 * block (thick restart, Wu and Simon 2000). The residual of a Ritz pair (theta, Qs) is |R s_last|,
 * R the part of the last product that was new, s_last the last 16 entries of s.
 *
 * Residuals do not see an eigenvector that the basis is orthogonal to, as it is to all but 16 of an
 * eigenspace. Of K^c = [T R'; R C] the norm |C|_F^2 = |K^c|_F^2 - |T|_F^2 - 2|R|_F^2 is known, so
 * with a = the largest Ritz value that has not converged, b = |R|_F, c = |C|_F no other eigenvalue
 * exceeds ((a + c) + sqrt((a - c)^2 + 4 b^2))/2. Where that is not below the last value asked for
 * (slowly falling spectra), the leading vectors are kept and a new random block is iterated beside
 * them: what they lack comes up, and the search ends when a round finds nothing new.
 *
 * A product takes 2 n^2 (16 + the cost of a kernel value) flops where K is not stored. Scratch in
 * multiples of n: the basis, a block, and as many columns as survive a restart, two blocks more,
 * and the accumulators of the fold.
 */

enum {
  BLOCK = KM_BLOCK,
  BASIS = 25 * BLOCK,     /* columns of the basis, at least */
  MOST_PRODUCTS = 400,    /* blocks */
  EXTRA = 2 * BLOCK,      /* Ritz vectors beyond those asked for that survive a restart */
  FIRST_CHECK = 4,        /* blocks before the first look at the Ritz pairs */
  FRESH_BLOCKS = 6,       /* blocks of a round that starts at random */
  MOST_TRIES = 5          /* at an orthonormal block */
};

static const double tolerance = 1e-10; /* of residuals, on the scale of the largest eigenvalue */

typedef struct {
  const km_source *source;
  km_centering mean;
  km_poll poll;
  size_t n, rows; /* rows: n with zeros below */
  size_t cap;     /* columns that the basis may have */
  size_t done;    /* columns that K^c was applied to; BLOCK more follow */
  int products;
  double floor; /* rounding of a product */
  uint64_t seed;
  double *basis;         /* rows x (cap + BLOCK) */
  double *spare;         /* rows x kept(count) */
  double *t;             /* cap x cap: Q'K^cQ */
  double *r;             /* BLOCK x BLOCK: the new part of the last product */
  double *coefficients;  /* (cap + BLOCK) x BLOCK, row-major */
  double *block, *image; /* n x BLOCK */
  double *ritz;          /* cap x cap: a copy of T, destroyed */
  double *values, *vectors, *residuals; /* cap; cap x kept(count); cap */
  double *known;         /* count: values before a round of the search */
  double *fold, *small;  /* scratch */
  int *iwork;
} krylov;

static size_t kept(size_t count) { return round_up(count, BLOCK) + EXTRA; }

size_t km_krylov_basis(size_t count) {
  return larger(BASIS, 2 * kept(count) + 4 * BLOCK);
}

/* --- The basis --------------------------------------------------------------- */

static void scale(size_t n, double f, double *x) {
  SIMD
  for (size_t i = 0; i < n; i++) x[i] *= f;
}

/* A column of numbers between -1 and 1 from a sequence of its own, zeros below n. */
static void random_column(krylov *s, double *x) {
  for (size_t i = 0; i < s->n; i++) x[i] = (double) (next_number(&s->seed) >> 11) * 0x1p-52 - 1;
  memset(x + s->n, 0, (s->rows - s->n) * sizeof *x);
}

static double *column(const krylov *s, size_t j) { return s->basis + j * s->rows; }

/* R'R = G (row-major, as km_tall_inner gives it); 0 if a column keeps less than 1e-5 of its length:
   then R is too rough to divide by. */
static int factor_block(const double *g, double *r) {
  const double smallest = 1e-10;
  for (size_t j = 0; j < BLOCK; j++) {
    for (size_t i = 0; i <= j; i++) {
      double sum = g[i * BLOCK + j];
      for (size_t l = 0; l < i; l++) sum -= r[l + i * BLOCK] * r[l + j * BLOCK];
      if (i < j)
        r[i + j * BLOCK] = sum / r[i + i * BLOCK];
      else if (!(sum > smallest * g[j * BLOCK + j]))
        return 0;
      else
        r[j + j * BLOCK] = sqrt(sum);
    }
  }
  return 1;
}

/* out (row-major) = R^{-1} */
static void invert_upper(const double *r, double *out) {
  memset(out, 0, BLOCK * BLOCK * sizeof *out);
  for (size_t j = 0; j < BLOCK; j++) {
    out[j * BLOCK + j] = 1 / r[j + j * BLOCK];
    for (size_t i = j; i-- > 0;) {
      double sum = 0;
      for (size_t l = i + 1; l <= j; l++) sum -= r[i + l * BLOCK] * out[l * BLOCK + j];
      out[i * BLOCK + j] = sum / r[i + i * BLOCK];
    }
  }
}

/* W = QR in place, column by column. One that depends on others becomes random, its row of R 0. */
static void orthonormalize_columns(krylov *s, double *w, double *r) {
  for (size_t j = 0; j < BLOCK; j++) {
    double *x = w + j * s->rows, length = 0;
    const double before = sqrt(dot(s->rows, x, x));
    int random = 0;
    for (int pass = 0; pass < 2; pass++) {
      for (size_t l = 0; l < j; l++) {
        const double f = dot(s->rows, w + l * s->rows, x);
        subtract(s->rows, f, w + l * s->rows, x);
        if (!random) r[l + j * BLOCK] += f;
      }
      length = sqrt(dot(s->rows, x, x));
      if (!random && !(length > 64 * DBL_EPSILON * before)) {
        random_column(s, x);
        random = 1;
        pass = -1;
      }
    }
    if (!random) r[j + j * BLOCK] = length;
    scale(s->rows, 1 / length, x);
  }
}

/* W = QR in place for the block W; returns the smallest entry on the diagonal of R. */
static double orthonormalize(krylov *s, double *w, double *r) {
  double g[BLOCK * BLOCK], least = INFINITY;
  memset(r, 0, BLOCK * BLOCK * sizeof *r);
  km_tall_inner(s->rows, BLOCK, w, w, g, s->small);
  if (factor_block(g, r)) {
    invert_upper(r, g);
    memcpy(s->spare, w, s->rows * BLOCK * sizeof *w);
    memset(w, 0, s->rows * BLOCK * sizeof *w);
    km_tall_add(s->rows, BLOCK, s->spare, g, 1, w);
  } else {
    memset(r, 0, BLOCK * BLOCK * sizeof *r);
    orthonormalize_columns(s, w, r);
  }
  for (size_t j = 0; j < BLOCK; j++) least = fmin(least, r[j + j * BLOCK]);
  return least;
}

/* r <- (a b), upper triangles. */
static void multiply_upper(const double *a, const double *b, double *r) {
  for (size_t j = 0; j < BLOCK; j++)
    for (size_t i = 0; i < BLOCK; i++) {
      double sum = 0;
      for (size_t l = i; l <= j; l++) sum += a[i + l * BLOCK] * b[l + j * BLOCK];
      r[i + j * BLOCK] = sum;
    }
}

/* Makes the block after k columns orthonormal and orthogonal to them: block = Q_new R + Q(...). */
static void orthogonalize(krylov *s, size_t k) {
  double *w = column(s, k), again[BLOCK * BLOCK], product[BLOCK * BLOCK];
  const double most_lost = 0.7;
  orthonormalize(s, w, s->r);
  for (int round = 0; round < MOST_TRIES; round++) {
    km_tall_inner(s->rows, k, s->basis, w, s->coefficients, s->small);
    km_tall_add(s->rows, k, s->basis, s->coefficients, -1, w);
    const double least = orthonormalize(s, w, again);
    multiply_upper(again, s->r, product);
    memcpy(s->r, product, sizeof product);
    if (least > most_lost) return;
  }
}

/* out = K^c in; in, out: n x p, p <= BLOCK. */
static void multiply_centered(const krylov *s, const double *in, size_t p, double *out) {
  const size_t n = s->n;
  km_fold_apply(s->source, in, p, out, s->fold, s->poll);
  for (size_t j = 0; j < p; j++) {
    double total = 0, down = 0;
    for (size_t i = 0; i < n; i++) {
      total += in[i + j * n];
      down += s->mean.at[i] * in[i + j * n];
    }
    const double shift = s->mean.norm2 * total - down;
    for (size_t i = 0; i < n; i++) out[i + j * n] += shift - total * s->mean.at[i];
  }
}

/* Columns of the basis from number j on, without the zeros below; and back. */
static void unpad(const krylov *s, const double *from, double *to) {
  for (size_t j = 0; j < BLOCK; j++) memcpy(to + j * s->n, from + j * s->rows, s->n * sizeof *to);
}

static void pad(const krylov *s, const double *from, double *to) {
  for (size_t j = 0; j < BLOCK; j++) {
    memcpy(to + j * s->rows, from + j * s->n, s->n * sizeof *to);
    memset(to + j * s->rows + s->n, 0, (s->rows - s->n) * sizeof *to);
  }
}

/* Applies K^c to the block after the `done` columns: T grows by it, the next block follows it. */
static void extend(krylov *s) {
  const size_t first = s->done, k = first + BLOCK;
  double *next = column(s, k);
  unpad(s, column(s, first), s->block);
  multiply_centered(s, s->block, BLOCK, s->image);
  pad(s, s->image, next);
  km_tall_inner(s->rows, k, s->basis, next, s->coefficients, s->small);
  for (size_t i = 0; i < k; i++)
    for (size_t j = 0; j < BLOCK; j++) {
      const double entry = s->coefficients[i * BLOCK + j];
      s->t[i + (first + j) * s->cap] = s->t[first + j + i * s->cap] = entry;
    }
  km_tall_add(s->rows, k, s->basis, s->coefficients, -1, next);
  s->done = k;
  s->products++;
  orthogonalize(s, k);
}

/* Begins a block of random columns after the first `k`. */
static void begin(krylov *s, size_t k) {
  for (size_t j = 0; j < BLOCK; j++) random_column(s, column(s, k + j));
  s->done = k;
  orthogonalize(s, k);
}

/* --- Ritz pairs ----------------------------------------------------------------- */

/* |R s_last| for a vector of Ritz coefficients. */
static double ritz_residual(const krylov *s, const double *vector) {
  const double *last = vector + s->done - BLOCK;
  double sum = 0;
  for (size_t i = 0; i < BLOCK; i++) {
    double entry = 0;
    for (size_t j = i; j < BLOCK; j++) entry += s->r[i + j * BLOCK] * last[j];
    sum += entry * entry;
  }
  return sqrt(sum);
}

/* The leading `want` Ritz pairs (as many as there are) with residuals; their number. */
static size_t ritz_pairs(krylov *s, size_t want, km_status *status) {
  const size_t k = s->done;
  want = smaller(want, k);
  *status = KM_NO_CONVERGENCE;
  for (int divide = 0; divide < 2 && *status != KM_OK; divide++) {
    for (size_t j = 0; j < k; j++)
      for (size_t i = 0; i < k; i++)
        s->ritz[i + j * k] = (s->t[i + j * s->cap] + s->t[j + i * s->cap]) / 2;
    *status = km_eigen(k, s->ritz, want, s->values, s->vectors, divide, s->small, s->iwork,
                       s->poll);
  }
  if (*status == KM_OK)
    for (size_t j = 0; j < want; j++) s->residuals[j] = ritz_residual(s, s->vectors + j * k);
  return want;
}

/* What a residual may be. */
static double aim(const krylov *s) { return fmax(tolerance * fabs(s->values[0]), s->floor); }

/* How many of the leading Ritz pairs have converged, with room for what is not in the estimate. */
static size_t converged(const krylov *s, size_t want) {
  size_t count = 0;
  while (count < want && s->residuals[count] <= aim(s) / 2) count++;
  return count;
}

/* spare (rows x BLOCK-fold): the first `count` Ritz vectors, then zeros. Returns its columns. */
static size_t ritz_vectors(krylov *s, size_t count) {
  const size_t k = s->done, columns = round_up(count, BLOCK);
  memset(s->spare, 0, s->rows * columns * sizeof *s->spare);
  for (size_t c = 0; c < columns; c += BLOCK) {
    for (size_t i = 0; i < k; i++)
      for (size_t j = 0; j < BLOCK; j++)
        s->coefficients[i * BLOCK + j] = c + j < count ? s->vectors[i + (c + j) * k] : 0;
    km_tall_add(s->rows, k, s->basis, s->coefficients, 1, s->spare + c * s->rows);
  }
  return columns;
}

/* The basis starts again with the first `keep` Ritz vectors, and zeros that fill a block: they give
   Ritz values 0. What follows them is the next block of the old basis, or a random one; then
   what is kept must have converged, as residuals towards the old next block are not seen. */
static void restart(krylov *s, size_t keep, int fresh) {
  const size_t k = s->done, columns = ritz_vectors(s, keep);
  memmove(column(s, columns), column(s, k), s->rows * BLOCK * sizeof *s->basis);
  memcpy(s->basis, s->spare, s->rows * columns * sizeof *s->basis);
  memset(s->t, 0, s->cap * s->cap * sizeof *s->t);
  for (size_t j = 0; j < keep; j++) s->t[j + j * s->cap] = s->values[j];
  s->done = columns;
  if (fresh) begin(s, columns);
}

/* No eigenvalue beyond the first `sure` Ritz values exceeds this. */
static double bound_of_rest(const krylov *s, size_t sure, size_t want, double square) {
  double inside = 0, coupling = 0;
  for (size_t j = 0; j < s->done; j++) inside += dot(s->done, s->t + j * s->cap, s->t + j * s->cap);
  for (size_t i = 0; i < BLOCK * BLOCK; i++) coupling += s->r[i] * s->r[i];
  const double rounding = 64 * DBL_EPSILON * square + 2 * sqrt(square) * s->floor;
  const double rest = fmax(square - inside - 2 * coupling, 0) + rounding;
  const double a = sure < want ? s->values[sure] : s->values[want - 1], c = sqrt(rest);
  return (a + c + sqrt((a - c) * (a - c) + 4 * coupling)) / 2;
}

/* Blocks until the next look: residuals fall by a factor in each block, which grows. */
static int blocks_to_go(double residual, double before, int passed, double aim) {
  const double growth = 1.5;
  if (!(before > residual) || !(residual > 0)) return 2;
  const double each = growth * log(before / residual) / passed;
  const double ahead = ceil(log(residual / aim) / each);
  return ahead < 1 ? 1 : ahead > 6 ? 6 : (int) ahead;
}

/* Extends the basis, for at least `blocks` blocks, until `count` Ritz pairs have converged.
   *want: the pairs that are looked at. */
static km_status iterate(krylov *s, size_t count, int blocks, size_t *want) {
  double before = 0;
  km_status status = KM_OK;
  for (;;) {
    const int passed = blocks;
    for (; blocks > 0; blocks--) {
      if (s->done + BLOCK > s->cap) {
        ritz_pairs(s, kept(count), &status);
        if (status != KM_OK) return status;
        restart(s, kept(count), 0);
      }
      extend(s);
    }
    *want = ritz_pairs(s, count + BLOCK, &status);
    if (status != KM_OK) return status;
    if (converged(s, *want) >= count) return KM_OK;
    if (s->products >= MOST_PRODUCTS) return KM_NO_CONVERGENCE;
    double worst = 0;
    for (size_t j = 0; j < count && j < *want; j++) worst = fmax(worst, s->residuals[j]);
    blocks = *want < count ? 1 : blocks_to_go(worst, before, passed, aim(s) / 2);
    before = worst;
  }
}

/* May a Ritz pair beyond the first `count` still rise above their last? */
static int rising(const krylov *s, size_t count, size_t want) {
  for (size_t j = count; j < want; j++)
    if (s->residuals[j] > aim(s) && s->values[j] + s->residuals[j] > s->values[count - 1] + aim(s))
      return 1;
  return 0;
}

/* Rounds from random blocks until one finds nothing new. */
static km_status search_rest(krylov *s, size_t count, size_t want) {
  for (;;) {
    memcpy(s->known, s->values, count * sizeof *s->known);
    restart(s, converged(s, want), 1);
    km_status status = iterate(s, count, FRESH_BLOCKS, &want);
    while (status == KM_OK && rising(s, count, want) && s->products < MOST_PRODUCTS)
      status = iterate(s, count, 2, &want);
    if (status != KM_OK) return status;
    if (rising(s, count, want)) return KM_NO_CONVERGENCE;
    double change = 0;
    for (size_t j = 0; j < count; j++) change = fmax(change, fabs(s->values[j] - s->known[j]));
    if (change <= aim(s)) return KM_OK;
    if (s->products >= MOST_PRODUCTS) return KM_NO_CONVERGENCE;
  }
}

/* vectors (n x count) from spare, and the largest of their residuals, by products of their own. */
static double take_vectors(krylov *s, size_t count, double *vectors) {
  const size_t columns = ritz_vectors(s, count);
  double worst = 0;
  for (size_t c = 0; c < columns; c += BLOCK) {
    unpad(s, s->spare + c * s->rows, s->block);
    multiply_centered(s, s->block, smaller(BLOCK, count - c), s->image);
    s->products++;
    for (size_t j = c; j < count && j < c + BLOCK; j++) {
      double *v = s->block + (j - c) * s->n, *image = s->image + (j - c) * s->n;
      subtract(s->n, s->values[j], v, image);
      worst = fmax(worst, sqrt(dot(s->n, image, image)));
      memcpy(vectors + j * s->n, v, s->n * sizeof *v);
      km_fix_sign(s->n, vectors + j * s->n);
    }
  }
  return worst;
}

static size_t small_work(size_t rows, size_t cap) {
  const size_t eigen = larger(km_eigen_work(cap, cap, 0), km_eigen_work(cap, 1, 1));
  return larger(eigen, km_tall_work(rows, cap + BLOCK));
}

/* A fold of full blocks, and of what is left of the last one. */
static size_t fold_work(const km_source *source, size_t count) {
  const size_t last = count % BLOCK ? count % BLOCK : BLOCK;
  return larger(km_fold_apply_work(source, BLOCK), km_fold_apply_work(source, last));
}

static size_t lay_out(krylov *s, const km_source *source, size_t count, double *work) {
  km_scratch scratch = {work, 0};
  const size_t n = source->n, rows = round_up(n, KM_TALL_ROWS), cap = km_krylov_basis(count);
  s->source = source;
  s->n = n;
  s->rows = rows;
  s->cap = cap;
  s->basis = take_aligned(&scratch, rows * (cap + BLOCK));
  s->spare = take(&scratch, rows * kept(count));
  s->t = take(&scratch, cap * cap);
  s->ritz = take(&scratch, cap * cap);
  s->r = take(&scratch, BLOCK * BLOCK);
  s->coefficients = take(&scratch, (cap + BLOCK) * BLOCK);
  s->block = take(&scratch, n * BLOCK);
  s->image = take(&scratch, n * BLOCK);
  s->values = take(&scratch, cap);
  s->residuals = take(&scratch, cap);
  s->vectors = take(&scratch, cap * kept(count));
  s->known = take(&scratch, count);
  s->fold = take(&scratch, fold_work(source, count));
  s->small = take(&scratch, small_work(rows, cap));
  return scratch.used;
}

size_t km_krylov_work(const km_source *source, size_t count) {
  krylov s;
  return lay_out(&s, source, count, NULL);
}

size_t km_krylov_iwork(size_t count) {
  const size_t cap = km_krylov_basis(count);
  return larger(km_eigen_iwork(cap, 0), km_eigen_iwork(cap, 1));
}

km_status km_krylov(const km_source *source, km_centering mean, double square, size_t count,
                    double *values, double *vectors, double *residual, int *products, double *work,
                    int *iwork, km_poll poll) {
  const size_t n = source->n;
  krylov s = {.mean = mean, .poll = poll, .iwork = iwork};
  lay_out(&s, source, count, work);
  double largest = fabs(mean.norm2);
  for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(mean.at[i]));
  s.floor = 64 * DBL_EPSILON * (double) n * largest;

  size_t want = 0;
  memset(s.t, 0, s.cap * s.cap * sizeof *s.t);
  begin(&s, 0);
  const size_t blocks = larger(FIRST_CHECK, count / BLOCK + 3);
  km_status status = iterate(&s, count, (int) blocks, &want);
  if (status == KM_OK &&
      bound_of_rest(&s, converged(&s, want), want, square) > s.values[count - 1] + aim(&s))
    status = search_rest(&s, count, want);
  if (status != KM_OK) return status;
  *residual = take_vectors(&s, count, vectors);
  *products = s.products;
  memcpy(values, s.values, count * sizeof *values);
  return *residual <= aim(&s) ? KM_OK : KM_NO_CONVERGENCE;
}
