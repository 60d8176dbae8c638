#include "apps/noisy.h"
#include "core/isa.h"
#include "core/panel.h"
#include "core/parts.h"
#include "core/scratch.h"
#include "core/tile.h"

#include <math.h>
#include <string.h>

/*
 * With C = LL' the points L^{-1} x_i and L^{-1} y_j have an RBF kernel of bandwidth 1 between them.
 * For each pair of parts a factor (d^3 / 3 flops), a substitution for the points of both (d^2 a
 * point) and a tile of kernel values; neither factor nor substitution where both have no noise.
 * Doubles: n d for the packed points of both sides, and d^2 for each of up to 32 workers, fewer
 * where d is large.
 */

enum { WORKERS = 32, PACK = KM_PACK, PANEL = KM_TILE_COLS };

static const double poll_work = 1e9;         /* operations between two polls */
static const km_kernel rbf = {.family = KM_RBF};

/* Parts, packed one by one. */
typedef struct {
  const km_noisy *of;
  double *packed; /* a part starts at the pack of its first point and one for each part before */
  int *noisy;     /* has the part any noise? */
} side;

/* The scratch of a worker. */
typedef struct {
  double *rows, *columns, *tile, *factor;
} room;

typedef struct {
  size_t d, pairs, workers;
  side rows, columns;
  int symmetric;
  double each; /* operations of a pair, about */
  double *inner;
  room rooms[WORKERS];
  int statuses[WORKERS];
} products;

/* Packs of n points in parts: each part may end in one that is not full. */
static size_t packs_of(const km_noisy *of) { return of->n / PACK + of->parts.count; }

static size_t first_pack(const side *s, size_t part) {
  return km_run_start(&s->of->parts, part) / PACK + part;
}

static size_t lay_out_room(room *own, size_t d, double *work) {
  km_scratch scratch = {work, 0};
  own->rows = take_aligned(&scratch, km_panel_size(d));
  own->columns = take_aligned(&scratch, km_panel_size(d));
  own->tile = take_aligned(&scratch, KM_PANEL_TILE);
  own->factor = take_aligned(&scratch, d * d);
  return scratch.used;
}

static size_t lay_out(products *all, double *work) {
  const size_t d = all->d;
  km_scratch scratch = {work, 0};
  all->rows.packed = take_aligned(&scratch, packs_of(all->rows.of) * PACK * d);
  all->columns.packed = all->rows.packed;
  if (!all->symmetric)
    all->columns.packed = take_aligned(&scratch, packs_of(all->columns.of) * PACK * d);
  const size_t most = smaller(WORKERS, all->pairs), desk = lay_out_room(&all->rooms[0], d, NULL);
  double *desks = take(&scratch, room_that_fits(1, most, desk));
  all->workers = workers_that_fit(1, most, desk);
  for (size_t worker = 0; work && worker < all->workers; worker++)
    lay_out_room(&all->rooms[worker], d, desks + worker * desk);
  return scratch.used;
}

static products products_of(size_t d, const km_noisy *rows, const km_noisy *columns) {
  products all = {.d = d, .rows.of = rows, .columns.of = columns ? columns : rows,
                  .symmetric = !columns};
  const size_t p = rows->parts.count;
  all.pairs = columns ? p * columns->parts.count : p * (p + 1) / 2;
  const double values = (double) rows->n * (double) all.columns.of->n;
  const double size = (double) d, few = 1024; /* operations of any pair */
  all.each = few + size * size * size / 8 +
             (size + KM_EXP_COST) * values / ((double) p * (double) all.columns.of->parts.count);
  return all;
}

size_t km_noisy_inner_work(size_t d, const km_noisy *rows, const km_noisy *columns) {
  products all = products_of(d, rows, columns);
  return lay_out(&all, NULL);
}

size_t km_noisy_inner_iwork(const km_noisy *rows, const km_noisy *columns) {
  return rows->parts.count + (columns ? columns->parts.count : 0);
}

static void pack_part(const side *s, size_t d, size_t part) {
  const size_t n = s->of->n, start = km_run_start(&s->of->parts, part);
  const size_t count = km_run_size(&s->of->parts, part);
  const double *covariance = s->of->covariances + part * d * d;
  double *packed = s->packed + first_pack(s, part) * PACK * d;
  for (size_t i = 0; i < count; i += PACK) {
    const size_t these = smaller(PACK, count - i);
    for (size_t l = 0; l < d; l++) {
      double *to = packed + i * d + l * PACK;
      memcpy(to, s->of->x + start + i + l * n, these * sizeof *to);
      memset(to + these, 0, (PACK - these) * sizeof *to);
    }
  }
  s->noisy[part] = 0;
  for (size_t i = 0; i < d * d; i++)
    if (covariance[i] != 0) s->noisy[part] = 1;
}

static void pack_parts(const side *s, size_t d) {
  const size_t count = s->of->parts.count;
  const double cost = (double) d * ((double) s->of->n + (double) d * (double) count);
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(s, d) firstprivate(count) schedule(dynamic, 16) \
    num_threads(km_threads(cost))
#else
  (void) cost;
#endif
  for (size_t part = 0; part < count; part++) pack_part(s, d, part);
}

/* The lower half of l <- factor of I + a + b, but its diagonal inverted; *height <- the product of
   that, or -1 where a pivot is no positive number. */
INLINE void factor_body(size_t d, const double *a, const double *b, double *l, double *height) {
  double product = 1;
  *height = -1;
  for (size_t j = 0; j < d; j++) {
    double *column = l + j * d;
    SIMD
    for (size_t i = j; i < d; i++) column[i] = a[i + j * d] + b[i + j * d];
    column[j] += 1;
    for (size_t k = 0; k < j; k++) {
      const double *before = l + k * d, f = before[j];
      SIMD
      for (size_t i = j; i < d; i++) column[i] -= f * before[i];
    }
    if (!(column[j] > 0) || !isfinite(column[j])) return;
    const double inverse = 1 / sqrt(column[j]);
    SIMD
    for (size_t i = j + 1; i < d; i++) column[i] *= inverse;
    column[j] = inverse;
    product *= inverse;
  }
  *height = product;
}

VERSIONS(factor, (size_t d, const double *a, const double *b, double *l, double *height),
         (d, a, b, l, height), (d, a, b, l, height), (d, a, b, l, height))

/* whitened <- L^{-1} x for the points of a pack. l: as `factor` leaves it. */
INLINE void whiten_body(const size_t lanes, size_t d, const double *l, const double *points,
                        double *whitened) {
  for (size_t i = 0; i < PACK; i += 4 * lanes) {
    for (size_t j = 0; j < d; j++) {
      double s[4][8];
      const double *from = points + j * PACK + i, inverse = l[j + j * d];
      double *to = whitened + j * PACK + i;
      UNROLL
      for (size_t q = 0; q < 4; q++)
        SIMD
        for (size_t c = 0; c < lanes; c++) s[q][c] = from[q * lanes + c];
      for (size_t k = 0; k < j; k++) {
        const double f = l[j + k * d], *before = whitened + k * PACK + i;
        UNROLL
        for (size_t q = 0; q < 4; q++)
          SIMD
          for (size_t c = 0; c < lanes; c++) s[q][c] -= f * before[q * lanes + c];
      }
      UNROLL
      for (size_t q = 0; q < 4; q++)
        SIMD
        for (size_t c = 0; c < lanes; c++) to[q * lanes + c] = s[q][c] * inverse;
    }
  }
}

VERSIONS(whiten, (size_t d, const double *l, const double *points, double *whitened),
         (8, d, l, points, whitened), (4, d, l, points, whitened), (2, d, l, points, whitened))

/* Points from number `first` of a part on, whitened unless l is NULL. */
static km_point_set panel_of(const side *s, size_t d, size_t part, size_t first, const double *l,
                             double *points) {
  const double *from = s->packed + first_pack(s, part) * PACK * d + first * d;
  const size_t count = smaller(PANEL, km_run_size(&s->of->parts, part) - first);
  const size_t whole = round_up(count, PACK) * d;
  if (!l) {
    memcpy(points, from, whole * sizeof *points);
  } else {
    whiten_loop *whiten = whiten_version();
    for (size_t i = 0; i < whole; i += PACK * d) whiten(d, l, from + i, points + i);
  }
  return km_panel_set(d, points, count);
}

/* The inner product of part a of the rows and part b of the columns. */
static km_status pair_inner(const products *all, size_t a, size_t b, const room *own,
                            double *inner) {
  const side *rows = &all->rows, *columns = &all->columns;
  const size_t d = all->d, n = km_run_size(&rows->of->parts, a);
  const size_t m = km_run_size(&columns->of->parts, b);
  const double *u = rows->of->parts.weights + km_run_start(&rows->of->parts, a);
  const double *v = columns->of->parts.weights + km_run_start(&columns->of->parts, b);
  const int same = all->symmetric && a == b, noisy = rows->noisy[a] || columns->noisy[b];
  const double *factor = noisy ? own->factor : NULL;
  double height = 1, sum = 0;
  if (noisy) {
    factor_version()(d, rows->of->covariances + a * d * d, columns->of->covariances + b * d * d,
                     own->factor, &height);
    if (height < 0) return KM_NOT_POSITIVE;
  }
  for (size_t i = 0; i < n; i += PANEL) {
    const km_point_set x = panel_of(rows, d, a, i, factor, own->rows);
    for (size_t j = same ? i : 0; j < m; j += PANEL) {
      const double times = same && j > i ? 2 : 1;
      const km_point_set y =
        same && j == i ? x : panel_of(columns, d, b, j, factor, own->columns);
      double sums[PANEL] = {0};
      km_panel_columns(&rbf, d, x, y, u + i, own->tile, sums);
      for (size_t c = 0; c < y.count; c++) sum += times * v[j + c] * sums[c];
    }
  }
  *inner = height * sum;
  return KM_OK;
}

/* Pairs first .. last - 1: of the same parts those of a <= b, counted along the rows. */
static km_status run_pairs(const products *all, size_t first, size_t last, const room *own) {
  const size_t count = all->rows.of->parts.count;
  size_t a = 0, b = first;
  if (all->symmetric)
    for (; b >= count - a; a++) b -= count - a;
  for (size_t index = first; index < last; index++) {
    const size_t row = all->symmetric ? a : index % count;
    const size_t column = all->symmetric ? a + b : index / count;
    const km_status status = pair_inner(all, row, column, own, all->inner + row + column * count);
    if (status != KM_OK) return status;
    if (!all->symmetric) continue;
    all->inner[column + row * count] = all->inner[row + column * count];
    if (++b == count - a) {
      a++;
      b = 0;
    }
  }
  return KM_OK;
}

km_status km_noisy_inner(size_t d, const km_noisy *rows, const km_noisy *columns, double *inner,
                         double *work, int *iwork, km_poll poll) {
  products all = products_of(d, rows, columns);
  lay_out(&all, work);
  all.inner = inner;
  all.rows.noisy = all.columns.noisy = iwork;
  pack_parts(&all.rows, d);
  if (columns) {
    all.columns.noisy += rows->parts.count;
    pack_parts(&all.columns, d);
  }
  const size_t at_once = larger(all.workers, (size_t) (poll_work / all.each));
  for (size_t first = 0; first < all.pairs; first += at_once) {
    const size_t count = smaller(at_once, all.pairs - first);
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(all, first) firstprivate(count) schedule(dynamic) \
    num_threads(km_threads((double) count * all.each))
#endif
    for (size_t worker = 0; worker < all.workers; worker++)
      all.statuses[worker] =
        (int) run_pairs(&all, first + share_start(count, all.workers, worker),
                        first + share_start(count, all.workers, worker + 1), &all.rooms[worker]);
    for (size_t worker = 0; worker < all.workers; worker++)
      if (all.statuses[worker] != KM_OK) return (km_status) all.statuses[worker];
    if (poll) poll();
  }
  return KM_OK;
}
