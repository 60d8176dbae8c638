#include "core/lowrank.h"
#include "core/dense.h"
#include "core/parts.h"
#include "core/scratch.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/*
 * Cholesky with diagonal pivoting in blocks of columns. The residuals are the diagonal of K - FF',
 * which is positive semi-definite: their sum bounds every error. Taking the point of largest
 * residual as the next pivot needs a column of K - FF' after the other; here a block of pivots is
 * chosen from candidates, points of large residuals: their own block of K - FF' is factored with
 * pivoting as long as the residuals are at least a share of the largest (Harbrecht, Peters and
 * Schneider, 2012, for the steps one by one). No column is formed in vain, and nearly all work is
 * a product with F, strip by strip: 2 n rank^2 flops, n cap doubles; no n x n matrix.
 *
 * F is packed as km_multiply reads it: STRIP points together, column by column, GROUP columns of
 * all points after each other.
 */

enum {
  STRIP = KM_BAND,
  GROUP = 4 * KM_BAND,
  BLOCK = 48,       /* pivots chosen at once, at most */
  CANDIDATES = 128, /* from so many */
  LEAF = 8,         /* columns of a block that substitute one by one */
  WORTH = KM_DENSE_WORTH
};

static const double share = 0.125; /* of the largest residual: what makes a pivot */

typedef struct {
  const km_source *source;
  size_t n, strips;
  double *f, *residual;
  double *rows;     /* those of F at the candidates: rank x candidates, row-major */
  double *gram;     /* K - FF' there, its lower half */
  double *small;    /* its factor: candidates x BLOCK */
  double *chosen;   /* minus those at the pivots: rank x width, row-major */
  double *triangle; /* minus the factor there, on its diagonal 1 / L_jj: BLOCK x width */
  double *columns;  /* n x BLOCK, of K at the pivots; not of a stored K */
  double *sums;     /* of residuals, after each column: strips x BLOCK */
  double *drawn;    /* n: sums of residuals, for random pivots */
  double *points, *walk, *own;
  size_t rank, count, width; /* columns of F; pivots of the block, and these rounded up */
  const int *pivots;         /* those of the block */
} pivoting;

/* The kernel values of the source with the points y (m of them). */
static km_source between(const km_source *source, const double *y, size_t m) {
  km_source columns = *source;
  columns.y = y;
  columns.m = m;
  return columns;
}

/* Those between the points x (m of them) alone. */
static km_source among(const km_source *source, const double *x, size_t m) {
  km_source part = *source;
  part.x = x;
  part.n = part.m = m;
  return part;
}

static size_t lay_out(pivoting *s, const km_source *source, size_t cap, double *work) {
  km_scratch scratch = {work, 0};
  const size_t n = source->n, most = smaller(n, CANDIDATES);
  s->source = source;
  s->n = n;
  s->strips = pieces(n, STRIP);
  s->f = take(&scratch, s->strips * STRIP * round_up(cap, GROUP));
  s->residual = take_aligned(&scratch, s->strips * STRIP);
  s->rows = take_aligned(&scratch, cap * most);
  s->gram = take_aligned(&scratch, most * most);
  s->small = take_aligned(&scratch, most * BLOCK);
  s->chosen = take_aligned(&scratch, cap * BLOCK);
  s->triangle = take_aligned(&scratch, BLOCK * BLOCK);
  s->sums = take_aligned(&scratch, s->strips * BLOCK);
  s->own = take_aligned(&scratch, km_product_work(most, most, cap));
  s->drawn = take(&scratch, n);
  if (source->k) return scratch.used;
  const km_source columns = between(source, source->x, BLOCK);
  const km_source part = among(source, source->x, most);
  s->columns = take_aligned(&scratch, n * BLOCK);
  s->points = take_aligned(&scratch, larger(most, BLOCK) * source->d);
  s->walk = take_aligned(&scratch,
                         larger(km_fold_store_work(&columns), km_fold_store_work(&part)));
  return scratch.used;
}

size_t km_lowrank_work(const km_source *source, size_t cap) {
  pivoting s;
  return lay_out(&s, source, cap, NULL);
}

/* Columns c .. of a strip, to the end of the group. */
static size_t place(size_t strips, size_t strip, size_t c) {
  return ((c / GROUP * strips + strip) * GROUP + c % GROUP) * STRIP;
}

/* --- The pivots of a block --------------------------------------------------- */

/* Of the points with such residuals the largest in each of so many ranges: neighbors, which know
   of each other, often stand together. Returns how many. */
static size_t find_candidates(const pivoting *s, double least, size_t *at) {
  const double *residual = s->residual;
  size_t all = 0, seen = 0, count = 0;
  for (size_t i = 0; i < s->n; i++) all += residual[i] >= least;
  const size_t ranges = smaller(all, CANDIDATES);
  for (size_t i = 0; i < s->n; i++) {
    if (!(residual[i] >= least)) continue;
    if (seen++ == share_start(all, ranges, count))
      at[count++] = i;
    else if (residual[i] > residual[at[count - 1]])
      at[count - 1] = i;
  }
  return count;
}

static void gather_points(const pivoting *s, size_t count, const size_t *at) {
  const size_t n = s->n, d = s->source->d;
  for (size_t l = 0; l < d; l++)
    for (size_t q = 0; q < count; q++) s->points[q + l * count] = s->source->x[at[q] + l * n];
}

static void gather_rows(const pivoting *s, size_t count, const size_t *at) {
  const size_t rank = s->rank, strips = s->strips;
  const double *f = s->f;
  double *rows = s->rows;
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(count, at, f, rows) firstprivate(rank, strips) \
    schedule(static) num_threads(km_threads((double) rank * (double) count))
#endif
  for (size_t g = 0; g < rank; g += GROUP)
    for (size_t q = 0; q < count; q++) {
      const double *from = f + place(strips, at[q] / STRIP, g) + at[q] % STRIP;
      const size_t end = smaller(rank, g + GROUP);
      for (size_t c = g; c < end; c++, from += STRIP) rows[c * count + q] = *from;
    }
}

/* s->gram <- K - FF' at the candidates. */
static void find_gram(const pivoting *s, size_t count, const size_t *at, km_poll poll) {
  const km_source *source = s->source;
  if (source->k) {
    for (size_t p = 0; p < count; p++)
      for (size_t q = p; q < count; q++)
        s->gram[q + p * count] = source->k[at[q] + at[p] * s->n];
  } else {
    gather_points(s, count, at);
    const km_source part = among(source, s->points, count);
    km_fold_store(&part, s->gram, s->walk, poll);
  }
  gather_rows(s, count, at);
  const km_product known = {.m = count,
                            .n = count,
                            .depth = s->rank,
                            .times = -1,
                            .a = {s->rows, 1, count},
                            .b = {s->rows, count, 1},
                            .c = s->gram,
                            .ldc = count,
                            .lower = 1};
  km_multiply_add(&known, s->own, poll);
}

/* Column j of the factor of s->gram, with candidate p for a pivot; left: residuals of all. */
static void eliminate(const pivoting *s, size_t count, size_t j, size_t p, double *left) {
  double *column = s->small + j * count;
  const double root = sqrt(left[p]);
  for (size_t q = 0; q < count; q++)
    column[q] = s->gram[q < p ? p + q * count : q + p * count];
  for (size_t k = 0; k < j; k++)
    subtract(count, s->small[p + k * count], s->small + k * count, column);
  for (size_t q = 0; q < count; q++) {
    column[q] = left[q] > 0 ? column[q] / root : 0;
    left[q] -= column[q] * column[q];
  }
  column[p] = root;
  left[p] = 0;
}

/* Factors s->gram until no residual is `least` or there are `most` columns. which: the pivots,
   as numbers of candidates. Returns how many. */
static size_t choose(const pivoting *s, size_t count, const size_t *at, double least, size_t most,
                     size_t *which) {
  double left[CANDIDATES];
  for (size_t q = 0; q < count; q++) left[q] = s->residual[at[q]];
  for (size_t j = 0; j < most; j++) {
    size_t p = 0;
    for (size_t q = 1; q < count; q++)
      if (left[q] > left[p]) p = q;
    if (!(left[p] >= least)) return j;
    which[j] = p;
    eliminate(s, count, j, p, left);
  }
  return most;
}

/* --- Their columns ----------------------------------------------------------- */

/* LEAF columns from x on, of which `count` are there, after those before: what the residuals lose
   and their sums. Of a point that is accounted for there is only rounding left. */
INLINE void substitute_body(const size_t lanes, size_t count, size_t width, const double *leaf,
                            double *x, double *residual, double *sums) {
  for (size_t j = 0; j < count; j++) sums[j] = 0;
  for (size_t i = 0; i < STRIP; i += lanes) {
    double d[8];
    SIMD
    for (size_t c = 0; c < lanes; c++) d[c] = residual[i + c];
    for (size_t j = 0; j < count; j++) {
      double v[8], *column = x + i + j * STRIP, sum = 0;
      SIMD
      for (size_t c = 0; c < lanes; c++) v[c] = column[c];
      for (size_t k = 0; k < j; k++) {
        const double f = leaf[j + k * width], *before = x + i + k * STRIP;
        SIMD
        for (size_t c = 0; c < lanes; c++) v[c] += f * before[c];
      }
      const double inverse = leaf[j + j * width];
      SIMD_SUMS(sum)
      for (size_t c = 0; c < lanes; c++) {
        v[c] = d[c] > 0 ? v[c] * inverse : 0;
        d[c] -= v[c] * v[c];
        column[c] = v[c];
        sum += d[c] > 0 ? d[c] : 0;
      }
      sums[j] += sum;
    }
    SIMD
    for (size_t c = 0; c < lanes; c++) residual[i + c] = d[c];
  }
}

VERSIONS(substitute,
         (size_t count, size_t width, const double *leaf, double *x, double *residual,
          double *sums),
         (8, count, width, leaf, x, residual, sums), (4, count, width, leaf, x, residual, sums),
         (2, count, width, leaf, x, residual, sums))

/* The block's columns in a strip: (K - FF') at the pivots, times L'^{-1}. */
static void add_strip(const pivoting *s, size_t strip) {
  const size_t n = s->n, width = s->width, first = strip * STRIP, rows = smaller(STRIP, n - first);
  const uintptr_t line = 64;
  double room[STRIP * BLOCK + 8];
  double *x = (double *) (((uintptr_t) room + line - 1) / line * line);
  memset(x, 0, STRIP * width * sizeof *x);
  for (size_t j = 0; j < s->count; j++) {
    const double *k =
        s->source->k ? s->source->k + (size_t) s->pivots[j] * n : s->columns + j * n;
    memcpy(x + j * STRIP, k + first, rows * sizeof *x);
  }
  for (size_t g = 0; g < s->rank; g += GROUP) {
    const factor at_pivots = {s->chosen + g * width, width, 1};
    km_multiply(width, STRIP, smaller(GROUP, s->rank - g), at_pivots,
                s->f + place(s->strips, strip, g), STRIP, x, STRIP);
  }
  for (size_t j = 0; j < s->count; j += LEAF) {
    const factor before = {s->triangle + j, width, 1};
    km_multiply(LEAF, STRIP, j, before, x, STRIP, x + j * STRIP, STRIP);
    substitute_version()(smaller(LEAF, s->count - j), width, s->triangle + j + j * width,
                         x + j * STRIP, s->residual + first, s->sums + strip * BLOCK + j);
  }
  for (size_t j = 0; j < s->count; j++)
    memcpy(s->f + place(s->strips, strip, s->rank + j), x + j * STRIP, STRIP * sizeof *x);
}

static void add_strips(const pivoting *s, km_poll poll) {
  const size_t strips = s->strips, depth = s->rank + s->count;
  const double flops = 2 * (double) STRIP * (double) s->width * (double) depth;
  const size_t most = 1 + (size_t) (km_dense_poll / flops);
  for (size_t first = 0; first < strips; first += most) {
    const size_t last = smaller(strips, first + most);
    if (poll) poll();
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(s, first) firstprivate(last) schedule(dynamic, 4) \
    num_threads(km_threads((double) (last - first) * flops / WORTH))
#endif
    for (size_t strip = first; strip < last; strip++) add_strip(s, strip);
  }
}

/* Columns at the pivots `which` among `all` candidates. */
static void load_pivots(const pivoting *s, size_t all, const size_t *which, km_poll poll) {
  const size_t count = s->count, width = s->width;
  for (size_t c = 0; c < s->rank; c++)
    for (size_t j = 0; j < width; j++)
      s->chosen[c * width + j] = j < count ? -s->rows[c * all + which[j]] : 0;
  memset(s->triangle, 0, width * width * sizeof *s->triangle);
  for (size_t k = 0; k < count; k++) {
    s->triangle[k + k * width] = 1 / s->small[which[k] + k * all];
    for (size_t j = k + 1; j < count; j++)
      s->triangle[j + k * width] = -s->small[which[j] + k * all];
  }
  if (s->source->k) return;
  size_t at[BLOCK];
  for (size_t j = 0; j < count; j++) at[j] = (size_t) s->pivots[j];
  gather_points(s, count, at);
  const km_source columns = between(s->source, s->points, count);
  km_fold_store(&columns, s->columns, s->walk, poll);
}

/* Adds the columns until what is left of the trace is `enough`; returns what is. Rows at the
   pivots come from their own factor: exactly a triangle. */
static double add_block(pivoting *s, size_t all, const size_t *which, double enough,
                        km_poll poll) {
  const size_t count = s->count;
  double own[BLOCK], left = 0;
  load_pivots(s, all, which, poll);
  for (size_t j = 0; j < count; j++) {
    own[j] = s->residual[s->pivots[j]];
    s->residual[s->pivots[j]] = 0;
  }
  add_strips(s, poll);
  for (size_t k = 0; k < count; k++) {
    double *column = s->f + place(s->strips, 0, s->rank);
    left = 0;
    for (size_t strip = 0; strip < s->strips; strip++) left += s->sums[strip * BLOCK + k];
    for (size_t j = k; j < count; j++) {
      const size_t p = (size_t) s->pivots[j];
      const double entry = s->small[which[j] + k * all];
      column[p / STRIP * GROUP * STRIP + p % STRIP] = entry;
      own[j] -= entry * entry;
      if (j > k && own[j] > 0) left += own[j];
    }
    s->rank++;
    if (left <= enough) break;
  }
  return left;
}

/* The state before the first column; *trace: of K. Returns what is left of it. */
static double start(pivoting *s, const km_source *source, size_t cap, double *trace,
                    double *work) {
  double left = 0;
  *trace = 0;
  lay_out(s, source, cap, work);
  s->rank = 0;
  km_diagonal(source, s->residual);
  for (size_t i = s->n; i < s->strips * STRIP; i++) s->residual[i] = 0;
  for (size_t i = 0; i < s->n; i++) {
    *trace += s->residual[i];
    if (s->residual[i] > 0) left += s->residual[i];
  }
  return left;
}

/* The chosen of the candidates as the pivots of a block, which is added as in add_block(). */
static double add_chosen(pivoting *s, size_t all, const size_t *at, const size_t *which,
                         int *pivots, double enough, km_poll poll) {
  s->width = round_up(s->count, LEAF);
  s->pivots = pivots + s->rank;
  for (size_t j = 0; j < s->count; j++) pivots[s->rank + j] = (int) at[which[j]];
  return add_block(s, all, which, enough, poll);
}

size_t km_lowrank(const km_source *source, double tolerance, size_t cap, int *pivots, double *left,
                  double *work, km_poll poll) {
  pivoting s;
  size_t at[CANDIDATES], which[BLOCK];
  double trace;
  *left = start(&s, source, cap, &trace, work);
  const double enough = tolerance * trace;
  while (!(*left <= enough)) {
    double top = 0;
    for (size_t i = 0; i < s.n; i++)
      if (s.residual[i] > top) top = s.residual[i];
    if (!(top > 0)) return cap + 2;
    if (s.rank == cap) return cap + 1;
    const double least = fmin(top, fmax(share * top, enough / (double) s.n));
    const size_t all = find_candidates(&s, least, at);
    find_gram(&s, all, at, poll);
    s.count = choose(&s, all, at, least, smaller(BLOCK, cap - s.rank), which);
    *left = add_chosen(&s, all, at, which, pivots, enough, poll);
  }
  return s.rank;
}

/* --- Random pivots ------------------------------------------------------------ */

/* `block` points, each drawn with probabilities like the residuals. sums: n, scratch. */
static void propose(const pivoting *s, size_t block, km_uniform uniform, double *sums,
                    size_t *at) {
  const double *residual = s->residual;
  double sum = 0;
  for (size_t i = 0; i < s->n; i++) sums[i] = sum += residual[i] > 0 ? residual[i] : 0;
  for (size_t q = 0; q < block; q++) {
    const double target = uniform() * sum;
    size_t low = 0, high = s->n - 1;
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (sums[middle] > target)
        high = middle;
      else
        low = middle + 1;
    }
    while (!(residual[low] > 0)) low--; /* rounding of the target, at the end */
    at[q] = low;
  }
}

/*
 * Of the proposals, in their order, those that are accepted: with probability the residual given
 * those before, over the one it was drawn by. So each that is accepted is drawn with probabilities
 * like the residuals given those before: the law of pivots that are drawn one by one (Epperly,
 * Tropp and Webber, 2024). *over: a residual was at most `least`. Returns how many.
 */
static size_t accept(const pivoting *s, size_t block, const size_t *at, double least, size_t most,
                     km_uniform uniform, size_t *which, int *over) {
  double left[CANDIDATES];
  size_t count = 0;
  for (size_t q = 0; q < block; q++) left[q] = s->gram[q + q * block];
  *over = 0;
  for (size_t q = 0; q < block && count < most; q++) {
    if (q > 0 && !(uniform() * s->residual[at[q]] < left[q])) continue;
    if (!(left[q] > least)) {
      *over = 1;
      break;
    }
    which[count] = q;
    eliminate(s, block, count++, q, left);
    for (size_t again = q + 1; again < block; again++)
      if (at[again] == at[q]) left[again] = 0;
  }
  return count;
}

size_t km_random_pivots(const km_source *source, size_t most, size_t block, km_uniform uniform,
                        int *pivots, double *left, double *work, km_poll poll) {
  pivoting s;
  size_t at[CANDIDATES], which[BLOCK];
  double trace, top = 0;
  int over = 0;
  block = smaller(block, smaller(BLOCK, source->n));
  double sum = start(&s, source, most, &trace, work);
  for (size_t i = 0; i < s.n; i++)
    if (s.residual[i] > top) top = s.residual[i];
  const double least = (double) s.n * DBL_EPSILON * top;
  while (sum > 0 && s.rank < most && !over) {
    propose(&s, block, uniform, s.drawn, at);
    find_gram(&s, block, at, poll);
    s.count = accept(&s, block, at, least, most - s.rank, uniform, which, &over);
    if (s.count) sum = add_chosen(&s, block, at, which, pivots, 0, poll);
  }
  *left = trace > 0 ? sum / trace : 0;
  return s.rank;
}

/* --- F, unpacked ------------------------------------------------------------- */

void km_lowrank_unpack(size_t n, const double *f, size_t rank, double *out) {
  const size_t strips = pieces(n, STRIP);
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(n, f, rank, out) firstprivate(strips) \
    schedule(static) num_threads(km_threads((double) n * (double) rank))
#endif
  for (size_t c = 0; c < rank; c++)
    for (size_t strip = 0; strip < strips; strip++)
      memcpy(out + c * n + strip * STRIP, f + place(strips, strip, c),
             smaller(STRIP, n - strip * STRIP) * sizeof *out);
}

/* Columns c0 .. c1 - 1, at most LEAF. */
static void center_columns(size_t n, const double *f, size_t rank, size_t c0, size_t c1,
                           double *out) {
  const size_t strips = pieces(n, STRIP);
  double mean[LEAF] = {0};
  for (size_t c = c0; c < c1; c++) {
    for (size_t i = 0; i < n; i++) mean[c - c0] += f[place(strips, i / STRIP, c) + i % STRIP];
    mean[c - c0] /= (double) n;
  }
  for (size_t i = 0; i < n; i++)
    for (size_t c = c0; c < c1; c++)
      out[i * rank + c] = f[place(strips, i / STRIP, c) + i % STRIP] - mean[c - c0];
}

void km_lowrank_center(size_t n, const double *f, size_t rank, double *out) {
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(n, f, rank, out) schedule(static) \
    num_threads(km_threads((double) n * (double) rank))
#endif
  for (size_t c = 0; c < rank; c += LEAF)
    center_columns(n, f, rank, c, smaller(rank, c + LEAF), out);
}
