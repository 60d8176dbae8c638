#include "core/cholesky.h"
#include "core/dense.h"
#include "core/parts.h"
#include "core/scratch.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/*
 * LL' = A by steps of LEAF columns. After the step that ends at column p, all columns before p are
 * done, and the next w get their part of the last w, where w is the largest power of two in p
 * (counted in steps): what halving the columns again and again does, but in a loop, so that polls
 * can stand between its steps. Nearly all work is in products as deep as wide (core/dense.c). The
 * triangular solves go the same way. A step itself is a triangle of LEAF columns against strips of
 * rows (of columns of X, transposed), by substitution. n^3 / 3 flops for the factor, n^2 p for a
 * solve; scratch as of the products.
 */

enum {
  BAND = KM_BAND,      /* columns of the innermost triangles */
  LEAF = 4 * KM_BAND,  /* columns of a step */
  STRIP = 2 * KM_BAND, /* rows that substitute together */
  FEW = 6,             /* right sides that are solved one by one */
  WORTH = KM_DENSE_WORTH
};

/* x (rows x BAND, its columns ldx apart) <- x L'^{-1}. leaf: -L, on its diagonal 1 / L_jj, columns
   LEAF apart; rows a multiple of STRIP. */
INLINE void substitute_body(const size_t lanes, size_t rows, const double *leaf, double *x,
                            size_t ldx) {
  for (size_t i = 0; i < rows; i += 6 * lanes) {
    for (size_t j = 0; j < BAND; j++) {
      double s[6][8], *column = x + i + j * ldx;
      UNROLL
      for (size_t q = 0; q < 6; q++)
        SIMD
        for (size_t c = 0; c < lanes; c++) s[q][c] = column[q * lanes + c];
      for (size_t k = 0; k < j; k++) {
        const double f = leaf[j + k * LEAF], *before = x + i + k * ldx;
        UNROLL
        for (size_t q = 0; q < 6; q++)
          SIMD
          for (size_t c = 0; c < lanes; c++) s[q][c] += f * before[q * lanes + c];
      }
      const double inverse = leaf[j + j * LEAF];
      UNROLL
      for (size_t q = 0; q < 6; q++)
        SIMD
        for (size_t c = 0; c < lanes; c++) column[q * lanes + c] = s[q][c] * inverse;
    }
  }
}

VERSIONS(substitute, (size_t rows, const double *leaf, double *x, size_t ldx),
         (8, rows, leaf, x, ldx), (4, rows, leaf, x, ldx), (2, rows, leaf, x, ldx))

/* Rows that substitute together, on a stack whose vectors may not be aligned. */
typedef struct {
  double room[STRIP * LEAF + 8];
} strip;

static double *start_strip(strip *s, size_t columns) {
  const uintptr_t line = 64;
  double *x = (double *) (((uintptr_t) s->room + line - 1) / line * line);
  memset(x, 0, STRIP * round_up(columns, BAND) * sizeof *x);
  return x;
}

/* The same for the first columns of a leaf. x: STRIP x LEAF. */
static void substitute_strip(size_t columns, const double *leaf, double *x) {
  for (size_t j = 0; j < columns; j += BAND) {
    const factor before = {leaf + j, LEAF, 1};
    km_multiply(BAND, STRIP, j, before, x, STRIP, x + j * STRIP, STRIP);
    substitute_version()(STRIP, leaf + j + j * LEAF, x + j * STRIP, STRIP);
  }
}

/* --- The factor -------------------------------------------------------------- */

typedef struct {
  size_t n;
  double *l;
  double *leaf;  /* LEAF x LEAF, as substitute_strip has it; 1 on the diagonal after the last */
  double *block; /* LEAF x LEAF */
  double *own;   /* of the products */
} factoring;

static size_t lay_out(factoring *s, size_t n, double *work) {
  km_scratch scratch = {work, 0};
  s->n = n;
  s->leaf = take_aligned(&scratch, LEAF * LEAF);
  s->block = take_aligned(&scratch, LEAF * LEAF);
  size_t most = 0; /* of the products of all steps */
  for (size_t w = LEAF; w < n; w *= 2)
    most = larger(most, km_product_work(n - w, smaller(w, n - w), w));
  s->own = take_aligned(&scratch, most);
  return scratch.used;
}

size_t km_factor_work(size_t n) {
  factoring s;
  return lay_out(&s, n, NULL);
}

/* Factor of a BAND x BAND triangle, its columns LEAF apart. Returns the place of the first pivot
   that is no positive number, from 1 on, or 0. */
static size_t factor_band(double *a) {
  for (size_t j = 0; j < BAND; j++) {
    double *column = a + j * LEAF;
    for (size_t k = 0; k < j; k++) {
      const double f = a[j + k * LEAF], *before = a + k * LEAF;
      SIMD
      for (size_t i = 0; i < BAND; i++) column[i] -= f * before[i];
    }
    const double pivot = column[j];
    if (!(pivot > 0) || !isfinite(pivot)) return j + 1;
    const double root = sqrt(pivot);
    for (size_t i = j + 1; i < BAND; i++) column[i] /= root;
    column[j] = root;
  }
  return 0;
}

/* Factor of the triangle in s->block (order a multiple of BAND), and s->leaf from it. */
static size_t factor_leaf(const factoring *s, size_t order) {
  double *a = s->block, *leaf = s->leaf;
  memset(leaf, 0, LEAF * order * sizeof *leaf);
  for (size_t j = 0; j < order; j += BAND) {
    /* Columns j .. of rows j .. below less what the columns before have of them. */
    double *panel = a + j + j * LEAF;
    const factor before = {leaf + j, LEAF, 1};
    km_multiply(BAND, order - j, j, before, a + j, LEAF, panel, LEAF);
    const size_t bad = factor_band(panel);
    if (bad) return j + bad;
    for (size_t k = j; k < j + BAND; k++) {
      leaf[k + k * LEAF] = 1 / a[k + k * LEAF];
      for (size_t i = k + 1; i < j + BAND; i++) leaf[i + k * LEAF] = -a[i + k * LEAF];
    }
    strip room;
    for (size_t i0 = j + BAND; i0 < order; i0 += STRIP) {
      const size_t rows = smaller(STRIP, order - i0);
      double *rest = start_strip(&room, BAND);
      for (size_t k = 0; k < BAND; k++)
        memcpy(rest + k * STRIP, a + i0 + (j + k) * LEAF, rows * sizeof *rest);
      substitute_version()(STRIP, leaf + j + j * LEAF, rest, STRIP);
      for (size_t k = 0; k < BAND; k++)
        for (size_t i = 0; i < rows; i++) {
          a[i0 + i + (j + k) * LEAF] = rest[i + k * STRIP];
          leaf[i0 + i + (j + k) * LEAF] = -rest[i + k * STRIP];
        }
    }
  }
  return 0;
}

/* Rows i0 .. of columns p .. p + width - 1 of L. */
static void factor_strip(const factoring *s, size_t p, size_t width, size_t i0) {
  const size_t rows = smaller(STRIP, s->n - i0);
  strip room;
  double *x = start_strip(&room, width);
  for (size_t j = 0; j < width; j++)
    memcpy(x + j * STRIP, s->l + i0 + (p + j) * s->n, rows * sizeof *x);
  substitute_strip(round_up(width, BAND), s->leaf, x);
  for (size_t j = 0; j < width; j++)
    memcpy(s->l + i0 + (p + j) * s->n, x + j * STRIP, rows * sizeof *x);
}

/* Columns p .. of L; returns the place of a bad pivot, or 0. */
static size_t factor_step(const factoring *s, size_t p) {
  const size_t n = s->n, width = smaller(LEAF, n - p), order = round_up(width, BAND);
  double *block = s->block, *at = s->l + p + p * n;
  memset(block, 0, LEAF * order * sizeof *block);
  for (size_t j = 0; j < order; j++) {
    if (j < width)
      memcpy(block + j + j * LEAF, at + j + j * n, (width - j) * sizeof *block);
    else
      block[j + j * LEAF] = 1;
  }
  const size_t bad = factor_leaf(s, order);
  if (bad) return p + bad;
  for (size_t j = 0; j < width; j++)
    memcpy(at + j + j * n, block + j + j * LEAF, (width - j) * sizeof *block);
#ifdef _OPENMP
#pragma omp taskloop default(none) shared(s, p) firstprivate(n, width) grainsize(4)
#endif
  for (size_t i0 = p + width; i0 < n; i0 += STRIP) factor_strip(s, p, width, i0);
  return 0;
}

/* How far back the columns before p go that the next ones get their parts of. */
static size_t reach(size_t p) {
  const size_t steps = p / LEAF;
  return (steps & (~steps + 1)) * LEAF;
}

/* What the columns from p on get of those before. */
static km_product factor_update(const factoring *s, size_t p) {
  const size_t n = s->n, w = reach(p);
  double *at = s->l + p + (p - w) * n;
  return (km_product){.m = n - p,
                      .n = smaller(w, n - p),
                      .depth = w,
                      .times = -1,
                      .a = {at, 1, n},
                      .b = {at, n, 1},
                      .c = s->l + p + p * n,
                      .ldc = n,
                      .lower = 1};
}

/* Steps from p on, to the first whose update is large, which is left, or until their flops are
   enough for a poll; *p is where they end. */
static size_t factor_some(const factoring *s, size_t *p) {
  const size_t n = s->n;
  for (double done = 0; *p < n && done < km_dense_poll;) {
    const size_t bad = factor_step(s, *p);
    *p += LEAF;
    if (bad || *p >= n) return bad;
    const km_product update = factor_update(s, *p);
    const double flops = km_product_flops(&update);
    if (flops > km_dense_poll / 2) return 0;
    km_multiply_tasks(&update, s->own);
    done += flops + (double) (n - *p) * LEAF * LEAF;
  }
  return 0;
}

static void copy_lower(size_t n, const double *k, double shift, double *l) {
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(n, k, shift, l) schedule(dynamic, 16) \
    num_threads(km_threads((double) n * (double) n))
#endif
  for (size_t j = 0; j < n; j++) {
    memset(l + j * n, 0, j * sizeof *l);
    memcpy(l + j + j * n, k + j + j * n, (n - j) * sizeof *l);
    l[j + j * n] += shift;
  }
}

km_status km_factor(size_t n, const double *k, double shift, double *l, double *work, int *info,
                    km_poll poll) {
  factoring s = {.l = l};
  lay_out(&s, n, work);
  copy_lower(n, k, shift, l);
  size_t bad = 0;
  for (size_t p = 0; p < n && !bad;) {
    if (poll) poll();
#ifdef _OPENMP
#pragma omp parallel default(none) shared(s, p, bad) \
  num_threads(km_threads((double) n * (double) n * (double) n / (3 * WORTH)))
#pragma omp master
#endif
    bad = factor_some(&s, &p);
    if (p < n && !bad) {
      const km_product update = factor_update(&s, p);
      if (km_product_flops(&update) > km_dense_poll / 2) km_multiply_add(&update, s.own, poll);
    }
  }
  *info = (int) bad;
  return bad ? KM_NOT_POSITIVE : KM_OK;
}

/* --- Solves ------------------------------------------------------------------ */

/* Rows of X are counted in the order in which they are solved: from the last on if transposed. */
typedef struct {
  size_t n, p;
  const double *l;
  size_t ldl;
  int transposed;
  double *x;
  size_t ldx;
  double *leaf; /* as above */
  double *own;
} solving;

static size_t lay_out_solve(solving *s, size_t n, size_t p, double *work) {
  km_scratch scratch = {work, 0};
  s->n = n;
  s->p = p;
  s->leaf = take_aligned(&scratch, p > FEW ? LEAF * LEAF : 0);
  size_t most = 0;
  for (size_t w = LEAF; p > FEW && w < n; w *= 2)
    most = larger(most, km_product_work(smaller(w, n - w), p, w));
  s->own = take_aligned(&scratch, most);
  return scratch.used;
}

size_t km_triangle_solve_work(size_t n, size_t p) {
  solving s;
  return lay_out_solve(&s, n, p, NULL);
}

/* The triangle of the `width` rows that start with the k-th. */
static void load_leaf(const solving *s, size_t k, size_t width) {
  const size_t order = round_up(width, BAND);
  double *leaf = s->leaf;
  memset(leaf, 0, LEAF * order * sizeof *leaf);
  for (size_t j = 0; j < order; j++) leaf[j + j * LEAF] = 1;
  for (size_t j = 0; j < width; j++) {
    const size_t at = s->transposed ? s->n - 1 - k - j : k + j;
    const double *column = s->l + at * s->ldl;
    leaf[j + j * LEAF] = 1 / column[at];
    if (s->transposed)
      for (size_t i = 0; i < j; i++) leaf[j + i * LEAF] = -column[s->n - 1 - k - i];
    else
      for (size_t i = j + 1; i < width; i++) leaf[i + j * LEAF] = -column[k + i];
  }
}

/* Rows k .. of columns c0 .. of X. */
static void solve_strip(const solving *s, size_t k, size_t width, size_t c0) {
  const size_t columns = smaller(STRIP, s->p - c0);
  const size_t top = s->transposed ? s->n - k - width : k;
  strip room;
  double *x = start_strip(&room, width);
  for (size_t c = 0; c < columns; c++) {
    const double *from = s->x + top + (c0 + c) * s->ldx;
    for (size_t j = 0; j < width; j++)
      x[c + j * STRIP] = from[s->transposed ? width - 1 - j : j];
  }
  substitute_strip(round_up(width, BAND), s->leaf, x);
  for (size_t c = 0; c < columns; c++) {
    double *to = s->x + top + (c0 + c) * s->ldx;
    for (size_t j = 0; j < width; j++)
      to[s->transposed ? width - 1 - j : j] = x[c + j * STRIP];
  }
}

static void solve_step(const solving *s, size_t k) {
  const size_t width = smaller(LEAF, s->n - k), p = s->p;
  load_leaf(s, k, width);
#ifdef _OPENMP
#pragma omp taskloop default(none) shared(s, k) firstprivate(p, width) grainsize(4)
#endif
  for (size_t c0 = 0; c0 < p; c0 += STRIP) solve_strip(s, k, width, c0);
}

/* What the rows from the k-th on get of those before. */
static km_product solve_update(const solving *s, size_t k) {
  const size_t w = reach(k), next = smaller(w, s->n - k), n = s->n;
  const size_t to = s->transposed ? n - k - next : k, from = s->transposed ? n - k : k - w;
  const factor down = {s->l + to + from * s->ldl, 1, s->ldl};
  const factor across = {s->l + from + to * s->ldl, s->ldl, 1};
  return (km_product){.m = next,
                      .n = s->p,
                      .depth = w,
                      .times = -1,
                      .a = s->transposed ? across : down,
                      .b = {s->x + from, 1, s->ldx},
                      .c = s->x + to,
                      .ldc = s->ldx};
}

/* As factor_some. */
static void solve_some(const solving *s, size_t *k) {
  const size_t n = s->n;
  for (double done = 0; *k < n && done < km_dense_poll;) {
    solve_step(s, *k);
    *k += LEAF;
    if (*k >= n) return;
    const km_product update = solve_update(s, *k);
    const double flops = km_product_flops(&update);
    if (flops > km_dense_poll / 2) return;
    km_multiply_tasks(&update, s->own);
    done += flops + (double) s->p * LEAF * LEAF;
  }
}

/* One right side: L is read once, column by column. */
static void solve_one(const solving *s, double *x, km_poll poll) {
  const size_t n = s->n, often = 1024;
  for (size_t k = 0; k < n; k++) {
    const size_t j = s->transposed ? n - 1 - k : k, below = n - 1 - j;
    const double *column = s->l + j + j * s->ldl;
    if (poll && k % often == 0) poll();
    if (s->transposed) {
      x[j] = (x[j] - dot(below, column + 1, x + j + 1)) / column[0];
    } else {
      x[j] /= column[0];
      subtract(below, x[j], column + 1, x + j + 1);
    }
  }
}

void km_triangle_solve(size_t n, size_t p, const double *l, size_t ldl, int transposed, double *x,
                       size_t ldx, double *work, km_poll poll) {
  solving s = {.l = l, .ldl = ldl, .transposed = transposed, .x = x, .ldx = ldx};
  lay_out_solve(&s, n, p, work);
  if (p <= FEW) {
    for (size_t c = 0; c < p; c++) solve_one(&s, x + c * ldx, poll);
    return;
  }
  for (size_t k = 0; k < n;) {
    if (poll) poll();
#ifdef _OPENMP
#pragma omp parallel default(none) shared(s, k) \
  num_threads(km_threads((double) n * (double) n * (double) p / WORTH))
#pragma omp master
#endif
    solve_some(&s, &k);
    if (k < n) {
      const km_product update = solve_update(&s, k);
      if (km_product_flops(&update) > km_dense_poll / 2) km_multiply_add(&update, s.own, poll);
    }
  }
}

/* --- The inverse of a triangle ------------------------------------------------ */

enum { TOGETHER = 384 }; /* columns of the inverse, whose zeros above are left out */

size_t km_triangle_inverse_work(size_t n) {
  return km_triangle_solve_work(n, smaller(n, TOGETHER));
}

void km_triangle_inverse(size_t n, const double *l, double *inverse, double *work, km_poll poll) {
  memset(inverse, 0, n * n * sizeof *inverse);
  for (size_t j = 0; j < n; j++) inverse[j + j * n] = 1;
  for (size_t j0 = 0; j0 < n; j0 += TOGETHER)
    km_triangle_solve(n - j0, smaller(TOGETHER, n - j0), l + j0 + j0 * n, n, 0,
                      inverse + j0 + j0 * n, n, work, poll);
}

/* --- A triangle and its transpose --------------------------------------------- */

enum { ROWS_TOGETHER = 128 }; /* rows of the product, whose common zeros are left out */

size_t km_triangle_gram_work(size_t n) {
  return km_product_work(smaller(n, ROWS_TOGETHER), n, n);
}

void km_triangle_gram(size_t n, const double *l, double *gram, double *work, km_poll poll) {
  for (size_t i = 0; i < n; i += ROWS_TOGETHER) {
    const size_t count = smaller(ROWS_TOGETHER, n - i);
    const km_product rows = {.m = count,
                             .n = i + count,
                             .depth = n - i,
                             .times = 1,
                             .a = {l + i + i * n, n, 1},
                             .b = {l + i, 1, n},
                             .c = gram + i,
                             .ldc = n,
                             .fresh = 1};
    km_multiply_add(&rows, work, poll);
  }
  km_mirror(n, gram);
}

size_t km_resolvent_work(size_t n) {
  return larger(km_factor_work(n), larger(km_triangle_inverse_work(n), km_triangle_gram_work(n)));
}

km_status km_resolvent(size_t n, const double *k, double shift, double times, double plus,
                       double *out, double *room, double *work, int *info, km_poll poll) {
  const km_status status = km_factor(n, k, shift, out, work, info, poll);
  if (status != KM_OK) return status;
  km_triangle_inverse(n, out, room, work, poll);
  km_triangle_gram(n, room, out, work, poll);
  for (size_t i = 0; i < n * n; i++) out[i] *= times;
  for (size_t i = 0; i < n; i++) out[i * (n + 1)] += plus;
  return KM_OK;
}
